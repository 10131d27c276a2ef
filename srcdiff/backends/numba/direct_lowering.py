"""Elements and shapes of arrays in the fewest instructions.

For `x[i, j]`, Numba puts all that it knows of `x` into memory of the function, and takes from there what it needs:
some fifty instructions, which LLVM then makes ten of. Most of what generated code does is this, so that the ten are
written at once. They are the same that LLVM comes to, negative indices included. Loops over ranges are left as Numba
has them: with fewer instructions some of them took longer.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.ir_utils import find_const, guard
from numba.core.lowering import Lower

from srcdiff.backends.numba import quick_numpy

_LARGEST_POWER = 64


def _arithmetic(of_floats: str, of_integers: str) -> Callable[..., Any]:
    def write(builder: Any, left: Any, right: Any, are_integers: bool) -> Any:
        if are_integers:
            return getattr(builder, of_integers)(left, right, flags=("nsw",))
        return getattr(builder, of_floats)(left, right)

    return write


def _comparison(sign: str) -> Callable[..., Any]:
    def write(builder: Any, left: Any, right: Any, are_integers: bool) -> Any:
        if are_integers:
            return builder.icmp_signed(sign, left, right)
        return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, left, right)

    return write


_WRITERS = {
    operator.add: _arithmetic("fadd", "add"),
    operator.sub: _arithmetic("fsub", "sub"),
    operator.mul: _arithmetic("fmul", "mul"),
    operator.lt: _comparison("<"),
    operator.le: _comparison("<="),
    operator.gt: _comparison(">"),
    operator.ge: _comparison(">="),
    operator.eq: _comparison("=="),
    operator.ne: _comparison("!="),
}
"""The instructions of operators on two floats or two integers: Numba writes the same."""


class DirectLower(Lower):
    """Numba's lowering, but for elements, shapes, permuted axes, copies and operators on numbers."""

    def pre_block(self, block: Any) -> None:
        self.fields.clear()
        super().pre_block(block)  # type: ignore[no-untyped-call]

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        self.fields.pop(name, None)
        super().storevar(value, name, argidx)  # type: ignore[no-untyped-call]

    @functools.cached_property
    def fields(self) -> dict[str, dict[Any, Any]]:
        """The data, shapes and strides of arrays in variables that the block has loaded."""
        return {}

    def field(self, name: str, *place: Any) -> Any:
        """A part of the array in a variable: its `"data"`, or `"shape", 0`."""
        known = self.fields.setdefault(name, {})
        if place not in known:
            position = self.context.data_model_manager[self.typeof(name)].get_field_position(place[0])  # type: ignore[no-untyped-call]
            indices = (position, *place[1:])
            if name in self._blk_local_varmap or name not in self.varmap:
                known[place] = self.builder.extract_value(self.loadvar(name), indices)  # type: ignore[no-untyped-call]
            else:
                known[place] = self.builder.load(cgutils.gep_inbounds(self.builder, self.varmap[name], 0, *indices))
        return known[place]

    # -- arrays ------------------------------------------------------------------------------------------------------

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        pointer = self.element(value.name, index.name)
        if pointer is None:
            return super().lower_getitem(resty, expr, value, index, signature)  # type: ignore[no-untyped-call]
        dtype = self.typeof(value.name).dtype  # type: ignore[no-untyped-call]
        return self.context.cast(self.builder, self.context.unpack_value(self.builder, dtype, pointer), dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        pointer = self.element(target_var.name, index_var.name)
        kind = self.typeof(value_var.name)  # type: ignore[no-untyped-call]
        if pointer is None or not isinstance(kind, types.Number | types.Boolean):
            return super().lower_setitem(target_var, index_var, value_var, signature)  # type: ignore[no-untyped-call]
        dtype = self.typeof(target_var.name).dtype  # type: ignore[no-untyped-call]
        value = self.loadvar(value_var.name)  # type: ignore[no-untyped-call]
        for to in (signature.args[2], dtype):
            value, kind = self.context.cast(self.builder, value, kind, to), to
        return self.context.pack_value(self.builder, dtype, value, pointer)

    def element(self, array: str, index: str) -> Any:
        """The address of an element that integers select; None if it is not this that an array is indexed by."""
        kind, selected = self.typeof(array), self.typeof(index)  # type: ignore[no-untyped-call]
        parts: tuple[Any, ...] = tuple(selected) if isinstance(selected, types.BaseTuple) else (selected,)  # type: ignore[arg-type]
        if type(kind) is not types.Array or not kind.aligned or len(parts) != kind.ndim or not parts:
            return None
        if self.context.enable_boundscheck or not isinstance(kind.dtype, types.Number | types.Boolean):
            return None
        if not all(isinstance(p, types.Integer) for p in parts):
            return None
        value = self.loadvar(index)  # type: ignore[no-untyped-call]
        is_tuple = isinstance(selected, types.BaseTuple)
        values = [self.builder.extract_value(value, k) for k in range(len(parts))] if is_tuple else [value]
        indices = [self.from_front(array, k, p, v) for k, (p, v) in enumerate(zip(parts, values, strict=True))]
        data = self.field(array, "data")
        if kind.layout not in "CF":
            offsets = [self.builder.mul(self.field(array, "strides", k), i) for k, i in enumerate(indices)]
            return cgutils.pointer_add(self.builder, data, functools.reduce(self.builder.add, offsets))
        return self.builder.gep(data, [self.offset(array, indices, first=kind.layout == "C")])

    def from_front(self, array: str, axis: int, kind: Any, value: Any) -> Any:
        """An index that counts from the front; a negative one counts from the end."""
        index = self.context.cast(self.builder, value, kind, types.intp if kind.signed else types.uintp)
        if not kind.signed or (isinstance(index, ir.Constant) and index.constant >= 0):
            return index
        length, is_negative = self.field(array, "shape", axis), self.builder.icmp_signed("<", index, index.type(0))
        return self.builder.select(is_negative, self.builder.add(index, length), index)

    def offset(self, array: str, indices: Sequence[Any], *, first: bool) -> Any:
        """How many elements an element is from the start, if the `first` axis, or the last, has the widest steps."""
        axes = range(len(indices))
        step, total = None, None
        for axis in reversed(axes) if first else axes:
            part = indices[axis] if step is None else self.builder.mul(indices[axis], step)
            total = part if total is None else self.builder.add(part, total)
            if axis != (0 if first else axes[-1]):
                length = self.field(array, "shape", axis)
                step = length if step is None else self.builder.mul(length, step)
        return total

    def transposed(self, name: str, axes: Sequence[int], kind: Any) -> Any:
        """The array with its axes in another order: Numba compiles texts for wrong ones, which takes three seconds."""
        result = self.loadvar(name)  # type: ignore[no-untyped-call]
        for field in ("shape", "strides"):
            position = self.context.data_model_manager[kind].get_field_position(field)
            values = [self.builder.extract_value(result, (position, axis)) for axis in axes]
            for k, value in enumerate(values):
                result = self.builder.insert_value(result, value, (position, k))
        self.incref(kind, result)  # type: ignore[no-untyped-call]
        return result

    # -- operators -----------------------------------------------------------------------------------------------------

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """Without Numba's search for functions of these types, which takes longer than all the rest of the line."""
        signature = self.fndesc.calltypes[expr]
        if op is operator.pow:
            exponent, kind = guard(find_const, self.func_ir, expr.rhs), signature.return_type
            if type(exponent) is int and 0 <= exponent <= _LARGEST_POWER and isinstance(kind, types.Float):
                (number,) = self.operands(expr.lhs, to=[kind])
                return self.context.cast(self.builder, self.power(number, exponent), kind, resty)
        write = _WRITERS.get(op)
        if write is not None and len(set(signature.args)) == 1 and signature.args[0] in (types.float64, types.int64):
            left, right = self.operands(expr.lhs, expr.rhs, to=signature.args)
            result = write(self.builder, left, right, signature.args[0] == types.int64)
            return self.context.cast(self.builder, result, signature.return_type, resty)
        if op is operator.truediv and isinstance(signature.return_type, types.Complex):
            kind = signature.return_type
            if signature.args == (kind, kind) and not self.context.error_model.raise_on_fp_zero_division:
                quotient = self.complex_quotient(kind, *self.operands(expr.lhs, expr.rhs, to=(kind, kind)))
                return self.context.cast(self.builder, quotient, kind, resty)
        return super().lower_binop(resty, expr, op)  # type: ignore[no-untyped-call]

    def complex_quotient(self, kind: Any, dividend: Any, divisor: Any) -> Any:
        """By Smith's method, without a branch. Numba's own raises for zero, also where real quotients are infinite."""
        b = self.builder
        x, y = (self.context.make_complex(b, kind, number) for number in (dividend, divisor))
        sizes = [b.call(b.module.declare_intrinsic("llvm.fabs", [y.real.type]), [part]) for part in (y.real, y.imag)]
        is_real = b.fcmp_ordered(">=", *sizes)
        large, small = b.select(is_real, y.real, y.imag), b.select(is_real, y.imag, y.real)
        first, second = b.select(is_real, x.real, x.imag), b.select(is_real, x.imag, x.real)
        is_zero = b.fcmp_ordered("==", large, large.type(0.0))
        ratio = b.fdiv(small, b.select(is_zero, large.type(1.0), large))
        scale = b.select(is_zero, sizes[0], b.fadd(large, b.fmul(small, ratio)))
        total = b.select(is_zero, first, b.fadd(first, b.fmul(second, ratio)))
        difference = b.select(is_zero, second, b.fsub(second, b.fmul(first, ratio)))
        out = self.context.make_complex(b, kind)
        out.real = b.fdiv(total, scale)
        out.imag = b.fdiv(b.select(is_real, difference, b.fneg(difference)), scale)
        return out._getvalue()

    def operands(self, *variables: Any, to: Sequence[Any]) -> list[Any]:
        """The values of variables, converted to these types."""
        given = [(self.loadvar(v.name), self.typeof(v.name)) for v in variables]  # type: ignore[no-untyped-call]
        return [self.context.cast(self.builder, x, own, kind) for (x, own), kind in zip(given, to, strict=True)]

    def power(self, number: Any, exponent: int) -> Any:
        """By squaring, in the order of Numba's function, which has a loop and is compiled for each program."""
        result = number.type(1.0)
        while exponent:
            if exponent & 1:
                result = self.builder.fmul(result, number)
            exponent >>= 1
            if exponent:
                number = self.builder.fmul(number, number)
        return result

    # -- other calls and attributes ------------------------------------------------------------------------------------

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        if expr.op == "getattr" and expr.attr == "shape" and type(self.typeof(expr.value.name)) is types.Array:  # type: ignore[no-untyped-call]
            return self.field(expr.value.name, "shape")
        if expr.op in ("pair_first", "pair_second") and isinstance(resty, types.Number | types.Boolean):
            return self.builder.extract_value(self.loadvar(expr.value.name), int(expr.op == "pair_second"))  # type: ignore[no-untyped-call]
        return super().lower_expr(resty, expr)  # type: ignore[no-untyped-call]

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        if getattr(fnty, "typing_key", None) == "array.transpose":
            axes = [guard(find_const, self.func_ir, v) for v in expr.args]
            if set(axes) == set(range(fnty.this.ndim)):
                return self.transposed(expr.func.name, axes, signature.return_type)
        if getattr(fnty, "typing_key", None) == "array.copy" and type(fnty.this) is types.Array:
            array = self.loadvar(expr.func.name)  # type: ignore[no-untyped-call]
            return quick_numpy.copied(self.context, self.builder, fnty.this, signature.return_type, array)
        if getattr(fnty, "typing_key", None) is not range or expr.kws or expr.vararg:
            return super()._lower_call_normal(fnty, expr, signature)  # type: ignore[no-untyped-call]
        given = self.fold_call_args(fnty, signature, expr.args, None, ())  # type: ignore[no-untyped-call]
        kind = given[0].type
        bounds = (kind(0), given[0], kind(1)) if len(given) == 1 else (*given, kind(1))[:3]
        return cgutils.make_anonymous_struct(self.builder, bounds, self.context.get_value_type(signature.return_type))
