"""NumPy for compiled code: allocations, products and roots as inline instructions, and factors of empty matrices.

Numba compiles a function and its callees for each kind of argument of `np.empty`, `np.zeros` and `@`: a tenth of a
second for an array, half a second for a product. Inline instructions take almost no time to compile. Calls of the C
library are inline, too, because they have vector functions.

Numba's factorisations raise for matrices without elements; NumPy's return empty factors.
"""

from __future__ import annotations

import ast
import cmath
import contextlib
import functools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from srcdiff.backends.numba import blas, lapack, memory_pool, pocketfft, small_products
from srcdiff.ir.types import NEGATIVE, TOO_LARGE


class ProductsByName(ast.NodeTransformer):
    """`a @ b` as `np.matmul(a, b)`: compiled code finds functions by their names, operators are Numba's own."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`min` and `max` of two numbers have names of their own; of others they are Numba's."""
        self.generic_visit(node)
        are_two = len(node.args) == 2 and not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args)
        if are_two and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            node.func.id = f"{node.func.id}_of_two"
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        function = ast.Attribute(ast.Name("np", ast.Load()), "matmul", ast.Load())
        call = ast.Call(function, [node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


@functools.cache
def quick_numpy(*, vector_functions: bool = True) -> types.ModuleType:
    """The replacement of `np` in compiled code."""
    from numba import njit
    from numba.extending import intrinsic

    from srcdiff.backends.numba import lowering

    module = types.ModuleType("numpy")
    module.__dict__["__getattr__"] = functools.partial(getattr, np)
    product, empty, isfinite = intrinsic(_product), intrinsic(_of_shape(zeros=False)), intrinsic(_isfinite)
    compiler = lowering.compiler(vector_functions=vector_functions)
    module.__dict__.update(
        empty=empty,
        zeros=intrinsic(_of_shape(zeros=True)),
        empty_like=intrinsic(_like(zeros=False)),
        zeros_like=intrinsic(_like(zeros=True)),
        copyto=intrinsic(_copyto),
        copy=intrinsic(_copy),
        matmul=product,
        dot=product,
        linalg=_linear_algebra(empty, isfinite),
        fft=pocketfft.transforms(_new),
        isfinite=isfinite,
        maximum=intrinsic(_extreme(np.maximum, "<=")),
        minimum=intrinsic(_extreme(np.minimum, ">=")),
        sign=intrinsic(_sign),
        tanh=intrinsic(_tanh),
        logaddexp=njit(logaddexp, error_model="numpy", pipeline_class=compiler),
        **{name: intrinsic(_of_c_library(name, arity)) for name, arity in _OF_C_LIBRARY.items() if _is_there(name)},
    )
    return module


def _isfinite(typing_context: Any, x: Any) -> Any:
    """By comparisons: Numba tests `x - x`, which LLVM folds to zero where sums may be reordered."""
    from numba.core import types as kinds

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if isinstance(x, kinds.Complex):
            number = context.make_complex(builder, x, value=args[0])
            return builder.and_(is_finite(builder, number.real), is_finite(builder, number.imag))
        if not isinstance(x, kinds.Float):
            return context.get_constant(kinds.boolean, True)
        return is_finite(builder, args[0])

    def is_finite(builder: Any, number: Any) -> Any:
        infinity = number.type(float("inf")), number.type(float("-inf"))
        below, above = (builder.fcmp_ordered(c, number, i) for c, i in zip("<>", infinity, strict=True))
        return builder.and_(below, above)

    return kinds.boolean(x), generate


def _extreme(function: np.ufunc, other: str) -> Callable[..., Any]:
    """The second number where it compares so with the first, or is NaN: one instruction if the second is a constant."""

    def choose(typing_context: Any, x: Any, y: Any) -> Any:
        from llvmlite import ir
        from numba.core import types as kinds

        by_numba = typing_context.resolve_value_type(function)
        signature = typing_context.resolve_function_type(by_numba, (x, y), {})

        def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
            if any(kind != signature.return_type or not isinstance(kind, kinds.Float) for kind in signature.args):
                return context.get_function(by_numba, signature)(builder, args)
            first, second = args[::-1] if isinstance(args[0], ir.Constant) else args
            chosen = builder.select(builder.fcmp_ordered(other, first, second), second, first)
            return builder.select(builder.fcmp_unordered("uno", second, second), second, chosen)

        return signature, generate

    return choose


@functools.cache
def quick_builtins() -> dict[str, Any]:
    """The replacements of Python's functions for which Numba compiles functions: `min` and `max` of two integers, and
    the integer of a boolean."""
    from numba.extending import intrinsic

    chosen = {"min_of_two": intrinsic(_chosen(min, "<")), "max_of_two": intrinsic(_chosen(max, ">"))}
    return {**chosen, "int": intrinsic(_integer)}


def _chosen(function: Callable[..., Any], comparison: str) -> Callable[..., Any]:
    def choose(typing_context: Any, x: Any, y: Any) -> Any:
        from numba.core import types as kinds

        numbers = [kinds.unliteral(n) for n in (x, y)]
        if all(n == kinds.int64 for n in numbers):
            return kinds.int64(*numbers), generate
        return _as_numba_has_it(typing_context, function, [x, y])

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y = args
        return builder.select(builder.icmp_signed(comparison, y, x), y, x)

    return choose


def _integer(typing_context: Any, x: Any) -> Any:
    from numba.core import types as kinds

    if not isinstance(x, kinds.Boolean):
        return _as_numba_has_it(typing_context, int, [x])

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[0], x, kinds.int64)

    return kinds.int64(x), generate


def _as_numba_has_it(typing_context: Any, function: Any, given: Sequence[Any]) -> Any:
    by_numba = typing_context.resolve_value_type(function)
    result = typing_context.resolve_function_type(by_numba, tuple(given), {}).return_type

    def call(x: Any) -> Any:
        return function(x)

    def call_with_two(x: Any, y: Any) -> Any:
        return function(x, y)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.compile_internal(builder, call if len(given) == 1 else call_with_two, signature, args)

    return result(*given), generate


def _sign(typing_context: Any, x: Any) -> Any:
    """One with the sign of the number, unless that is zero or NaN: by one comparison where Numba makes three."""
    from llvmlite import ir
    from numba.core import types as kinds

    by_numba = typing_context.resolve_value_type(np.sign)
    signature = typing_context.resolve_function_type(by_numba, (x,), {})

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        if not isinstance(signature.args[0], kinds.Float):
            return context.get_function(by_numba, signature)(builder, args)
        (number,) = args
        type_ = ir.FunctionType(number.type, [number.type] * 2)
        copysign = builder.module.declare_intrinsic("llvm.copysign", [number.type], type_)
        one = builder.call(copysign, [ir.Constant(number.type, 1.0), number])
        zero = ir.Constant(number.type, 0.0)
        other = builder.fadd(number, zero)  # minus zero has the sign zero
        return builder.select(builder.fcmp_ordered("!=", number, zero), one, other)

    return signature, generate


def logaddexp(x: Any, y: Any) -> Any:
    """Without a branch around its two functions; the difference of equal infinities is NaN."""
    distance = np.float32(0.0) if x == y else abs(x - y)  # a float32 if both of them are
    return (x if x > y else y) + np.log1p(np.exp(-distance))


def _tanh(typing_context: Any, x: Any) -> Any:
    """Numba's hyperbolic tangent of complex numbers overflows for large real parts; that of `cmath` does not."""
    from numba.core import types as kinds

    by_numba = typing_context.resolve_value_type(cmath.tanh if isinstance(x, kinds.Complex) else np.tanh)
    signature = typing_context.resolve_function_type(by_numba, (x,), {})

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return context.get_function(by_numba, signature)(builder, args)

    return signature, generate


_OF_C_LIBRARY = {"hypot": 2, "cbrt": 1}
"""Functions that Numba wraps in a separate function, and their numbers of arguments."""


def _is_there(name: str) -> bool:
    import llvmlite.binding as llvm

    return all(llvm.address_of_symbol(f) for f in (name, f"{name}f"))


def _of_c_library(name: str, arity: int) -> Callable[..., Any]:
    def call(kind: Any) -> tuple[Any, Any]:
        from llvmlite import ir
        from numba.core import cgutils
        from numba.core import types as kinds

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number = context.get_value_type(kind)
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(number, [number] * arity),
                f"{name}f" if kind == kinds.float32 else name,
            )
            return builder.call(function, args)

        return kind(*[kind] * arity), generate

    def common(*given: Any) -> Any:
        from numba.core import types as kinds

        return kinds.float32 if all(g == kinds.float32 for g in given) else kinds.float64

    def of_one(typing_context: Any, x: Any) -> Any:
        return call(common(x))

    def of_two(typing_context: Any, x: Any, y: Any) -> Any:
        return call(common(x, y))

    return of_one if arity == 1 else of_two


def _linear_algebra(empty: Any, isfinite: Any) -> types.ModuleType:
    """The replacement of `np.linalg`."""
    from numba import njit

    module = types.ModuleType("numpy.linalg")
    module.__dict__["__getattr__"] = functools.partial(getattr, np.linalg)
    module.__dict__.update(
        {f.__name__: njit(f) for f in (svd, qr, lstsq, matrix_rank)}, **lapack.functions(empty, isfinite)
    )
    return module


def svd(a: Any, full_matrices: Any) -> Any:
    if a.size > 0:
        return np.linalg.svd(a, full_matrices)
    rows, columns = (a.shape[0], a.shape[1]) if full_matrices else (0, 0)
    left, right = np.zeros((rows, a.shape[0]), a.dtype), np.zeros((a.shape[1], columns), a.dtype)
    for k in range(rows):
        left[k, k] = 1.0
    for k in range(columns):
        right[k, k] = 1.0
    return left.T, np.zeros(0, a.real.dtype), right.T  # as LAPACK orders them: by columns


def qr(a: Any) -> Any:
    if a.size > 0:
        return np.linalg.qr(a)
    return np.zeros((0, a.shape[0]), a.dtype).T, np.zeros((a.shape[1], 0), a.dtype).T


def lstsq(a: Any, b: Any, rcond: Any) -> Any:
    if a.size > 0:
        return np.linalg.lstsq(a, b, rcond)
    has_residuals = a.shape[0] > a.shape[1]
    residuals = np.zeros(b.shape[1] if has_residuals else 0, a.real.dtype)
    for column in range(residuals.shape[0]):
        for row in range(b.shape[0]):
            residuals[column] += abs(b[row, column]) ** 2
    return np.zeros((b.shape[1], a.shape[1]), a.dtype).T, residuals, 0, np.zeros(0, a.real.dtype)


def matrix_rank(a: Any) -> Any:
    return np.linalg.matrix_rank(a) if a.size > 0 else 0


def _of_shape(*, zeros: bool) -> Callable[..., Any]:
    def make(typing_context: Any, shape: Any, dtype: Any = None) -> Any:
        from numba.core import types as kinds
        from numba.core.typing.npydecl import parse_dtype, parse_shape

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            sizes = _lengths(context, builder, signature.args[0], args[0])
            return _new(context, builder, signature.return_type, sizes, zeros)._getvalue()

        kind = kinds.float64 if dtype is None else parse_dtype(dtype)
        result = kinds.Array(kind, parse_shape(shape), "C")
        return result(shape, kinds.none if dtype is None else dtype), generate

    return make


def _lengths(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """The lengths in a shape, one number or a tuple; none is negative."""
    from numba.core import cgutils
    from numba.core import types as kinds

    is_one = isinstance(kind, kinds.Integer)
    parts = [value] if is_one else cgutils.unpack_tuple(builder, value, count=len(kind))
    types_ = [kind] if is_one else list(kind)
    lengths = [context.cast(builder, v, t, kinds.intp) for v, t in zip(parts, types_, strict=True)]
    for length in lengths:
        with builder.if_then(builder.icmp_signed("<", length, length.type(0)), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, (NEGATIVE,))
    return lengths


def _like(*, zeros: bool) -> Callable[..., Any]:
    def make(typing_context: Any, array: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, sizes = _array(context, builder, array, args[0])
            return _new(context, builder, signature.return_type, sizes, zeros)._getvalue()

        layout = "C" if array.layout == "A" else array.layout
        return array.copy(layout=layout, readonly=False)(array), generate

    return make


def _copyto(typing_context: Any, target: Any, source: Any) -> Any:
    """Between arrays of the same shape: Numba compiles texts for others, which takes three seconds."""
    from numba.core import types as kinds

    if not all(isinstance(a, kinds.Array) for a in (target, source)) or target.ndim != source.ndim:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        (to, lengths), (given, others) = (
            _array(context, builder, kind, value) for kind, value in zip((target, source), args, strict=True)
        )
        for length, other in zip(lengths, others, strict=True):
            with builder.if_then(builder.icmp_signed("!=", length, other), likely=False):
                context.call_conv.return_user_exc(builder, ValueError, ("the arrays have different shapes",))
        _copy_elements(context, builder, (target, to), (source, given), lengths)
        return context.get_dummy_value()

    return kinds.none(target, source), generate


def _copy_elements(
    context: Any, builder: Any, target: tuple[Any, Any], source: tuple[Any, Any], lengths: Sequence[Any]
) -> None:
    """Between arrays of the same shape, each given by its type and its parts."""
    from numba.core import cgutils
    from numba.np import arrayobj

    (kind, to), (other, given) = target, source
    if kind.layout == other.layout in ("C", "F") and kind.dtype == other.dtype:
        cgutils.raw_memmove(builder, to.data, given.data, to.nitems, to.itemsize)
        return
    with cgutils.loop_nest(builder, lengths, cgutils.intp_t) as indices:
        places = [
            cgutils.get_item_pointer(context, builder, each, array, indices)
            for each, array in ((kind, to), (other, given))
        ]
        value = arrayobj.load_item(context, builder, other, places[1])
        value = context.cast(builder, value, other.dtype, kind.dtype)
        arrayobj.store_item(context, builder, kind, value, places[0])


def _copy(typing_context: Any, array: Any) -> Any:
    from numba.core import types as kinds

    if not isinstance(array, kinds.Array):
        return None
    result = array.copy(layout="F" if array.layout == "F" else "C", readonly=False)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return copied(context, builder, array, result, args[0])

    return result(array), generate


def copied(context: Any, builder: Any, kind: Any, result: Any, value: Any) -> Any:
    """A copy of an array in memory of our own."""
    array, lengths = _array(context, builder, kind, value)
    new = _new(context, builder, result, lengths, zeros=False)
    _copy_elements(context, builder, (result, new), (kind, array), lengths)
    return new._getvalue()


def _array(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, list[Any]]:
    """The parts of an array, and its lengths."""
    from numba.core import cgutils
    from numba.np import arrayobj

    array = arrayobj.make_array(kind)(context, builder, value=value)
    return array, cgutils.unpack_tuple(builder, array.shape, count=kind.ndim)


def _new(context: Any, builder: Any, kind: Any, sizes: Any, zeros: bool) -> Any:
    """An array of this kind, in memory that earlier calls have left where there is such."""
    from numba.core import cgutils
    from numba.np import arrayobj

    itemsize = cgutils.intp_t(arrayobj.get_itemsize(context, kind))
    in_memory = list(sizes) if kind.layout == "F" else list(sizes)[::-1]
    strides, size, too_large = [], itemsize, cgutils.false_bit
    for length in in_memory:
        strides.append(size)
        product = builder.smul_with_overflow(size, length)
        size = builder.extract_value(product, 0)
        too_large = builder.or_(too_large, builder.extract_value(product, 1))
    with builder.if_then(too_large, likely=False):
        context.call_conv.return_user_exc(builder, ValueError, (TOO_LARGE,))
    memory = _memory(context, builder, size)
    element = context.get_data_type(kind.dtype)
    array = arrayobj.make_array(kind)(context, builder)
    arrayobj.populate_array(
        array,
        data=builder.bitcast(_elements(builder, memory), element.as_pointer()),
        shape=tuple(sizes),
        strides=tuple(strides if kind.layout == "F" else strides[::-1]),
        itemsize=itemsize,
        meminfo=memory,
    )
    if zeros:
        cgutils.memset(builder, array.data, size, 0)
    return array


def _memory(context: Any, builder: Any, size: Any) -> Any:
    from numba.core import cgutils

    memory_pool.ensure_loaded()
    memory = _call_for_pointer(builder, memory_pool.NEW, size)
    cgutils.guard_memory_error(context, builder, memory, "Allocation failed (probably too large).")
    return memory


def _elements(builder: Any, memory: Any) -> Any:
    """The address of the elements, which LLVM knows not to alias any other array.

    Numba loads the address from memory, so LLVM does not know this, and a loop with many arrays is not vectorised,
    because all pairs would have to be compared. The function that frees the memory does not take this address. So the
    address is marked as escaped, and LLVM moves nothing past a call that may free the memory.
    """
    from llvmlite import ir

    elements = _call_for_pointer(builder, memory_pool.ELEMENTS, memory)
    known = ir.FunctionType(ir.VoidType(), [elements.type])
    builder.asm(known, "", "r,~{memory}", [elements], side_effect=True)
    return elements


def _call_for_pointer(builder: Any, name: str, argument: Any) -> Any:
    """Call a function that returns an unaliased pointer."""
    from llvmlite import ir
    from numba.core import cgutils

    type_ = ir.FunctionType(cgutils.voidptr_t, [argument.type])
    function = cgutils.get_or_insert_function(builder.module, type_, name)
    function.return_value.add_attribute("noalias")
    return builder.call(function, [argument])


def _product(typing_context: Any, a: Any, b: Any, out: Any = None) -> Any:
    """Of matrices and vectors, by BLAS; into a contiguous array, if there is one."""
    from numba.core import types as kinds

    if a.dtype != b.dtype or (a.ndim, b.ndim) not in ((2, 2), (2, 1), (1, 2), (1, 1)):
        return None
    rank = a.ndim + b.ndim - 2
    result = kinds.Array(a.dtype, rank, "C") if rank else a.dtype
    if out is None:
        return result(a, b, kinds.none), _generate_product
    return kinds.none(a, b, out) if rank and out == result else None, _generate_product


_LARGEST_INT = 2**31 - 1
"""The largest length that BLAS takes."""


@contextlib.contextmanager
def _contiguous(context: Any, builder: Any, kinds: Sequence[Any], values: Sequence[Any]) -> Iterator[Any]:
    """The types and values of arguments, with copies of arrays that are not contiguous."""
    from numba.core import types

    given: list[tuple[Any, Any]] = []
    copies: list[tuple[Any, Any]] = []
    for kind, value in zip(kinds, values, strict=True):
        if isinstance(kind, types.Array) and kind.layout not in "CF":
            result = kind.copy(layout="C", readonly=False)
            copies.append((result, copied(context, builder, kind, result, value)))
            given.append(copies[-1])
        else:
            given.append((kind, value))
    yield tuple([kind for kind, _ in given]), tuple([value for _, value in given])
    for kind, value in copies:
        context.nrt.decref(builder, kind, value)


def _generate_product(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    from numba.core import cgutils
    from numba.core import types as types_
    from numba.np import linalg

    blas.ensure_found()
    is_new = signature.return_type != types_.none
    result = signature.return_type if is_new else signature.args[2]
    with _contiguous(context, builder, signature.args, args) as (kinds, values):
        kinds = kinds[:2]
        (a, a_sizes), (b, b_sizes) = (_array(context, builder, k, v) for k, v in zip(kinds, values, strict=False))
        for size in (*a_sizes, *b_sizes):
            with builder.if_then(builder.icmp_signed(">", size, size.type(_LARGEST_INT)), likely=False):
                message = "array size too large to fit in C int"
                context.call_conv.return_user_exc(builder, OverflowError, (message,))
        with builder.if_then(builder.icmp_signed("!=", a_sizes[-1], b_sizes[0]), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, ("shapes do not fit together",))
        if kinds[0].ndim == kinds[1].ndim == 1:
            number = cgutils.alloca_once(builder, context.get_value_type(result))
            linalg.call_xxdot(context, builder, False, result, a_sizes[0], a.data, b.data, number)
            return builder.load(number)
        sizes = [*a_sizes[:-1], *b_sizes[1:]]
        if is_new:
            out = _new(context, builder, result, sizes, zeros=False)
        else:
            out, lengths = _array(context, builder, result, values[2])
            for length, size in zip(lengths, sizes, strict=True):
                with builder.if_then(builder.icmp_signed("!=", length, size), likely=False):
                    context.call_conv.return_user_exc(builder, ValueError, ("shapes do not fit together",))
        terms = builder.mul(out.nitems, a_sizes[-1])
        with builder.if_else(builder.icmp_signed("==", terms, terms.type(0)), likely=False) as (empty, full):
            with empty:
                cgutils.memset(builder, out.data, builder.mul(out.itemsize, out.nitems), 0)
            with full:
                if kinds[1].ndim == 1:
                    with small_products.unless_small(builder, kinds[0], a_sizes, a.data, b.data, out.data):
                        turned = kinds[0].layout == "C"  # BLAS counts columns first
                        linalg.call_xxgemv(context, builder, turned, kinds[0], a_sizes, a.data, b.data, out.data)
                elif kinds[0].ndim == 1:  # as the product of the transposed matrix with the vector
                    other = kinds[1].copy(layout="F" if kinds[1].layout == "C" else "C")
                    with small_products.unless_small(builder, other, b_sizes[::-1], b.data, a.data, out.data):
                        turned = kinds[1].layout == "F"
                        linalg.call_xxgemv(context, builder, turned, kinds[1], b_sizes, b.data, a.data, out.data)
                else:
                    left, right = (kinds[0], a_sizes, a.data), (kinds[1], b_sizes, b.data)
                    linalg.call_xxgemm(context, builder, *left, *right, result, sizes, out.data)
        return out._getvalue() if is_new else context.get_dummy_value()
