"""Calls: primitives, builtins, array functions, and the user's functions, which are inlined."""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import enum
import functools
import inspect
import itertools
import math
import operator
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from srcdiff.diagnostics import Problem, Refusal, Span
from srcdiff.diagnostics.naming_objects import instead_of_call, is_installed
from srcdiff.frontend.abstract_values import (
    Abstract,
    Choice,
    Closure,
    DeviceName,
    Drawn,
    Each,
    Group,
    Lazy,
    List,
    Method,
    Optional,
    Partial,
    Poison,
    Record,
    Size,
    Static,
    Stored,
    Through,
    Transformed,
    Tuple,
    arrays_in,
    describe,
    is_complex,
    leaf_types,
    loosened,
)
from srcdiff.frontend.capture import capture, plain_function
from srcdiff.frontend.environment import Frame, Hopeless
from srcdiff.frontend.expressions import CHANGED, INSTEAD
from srcdiff.frontend.growth import (
    Argument,
    Called,
    Growing,
    how_it_grows,
    size,
    steps_without_end,
    too_large,
    without_end,
)
from srcdiff.frontend.guards import Attribute, Constant, Element, Place, Summary, contents
from srcdiff.frontend.kernel_language import numba_type
from srcdiff.frontend.numba_functions import Compiled
from srcdiff.frontend.numba_options import Told, is_replaced
from srcdiff.frontend.scopes import assigned_names, inner_scopes, nonlocal_names
from srcdiff.frontend.strings import TEXT_METHODS
from srcdiff.ir.nodes import Apply, Block, Custom, Library, Value
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, is_float, is_supported_dtype
from srcdiff.library import language
from srcdiff.library.blas_lapack import LibraryCall, opaque
from srcdiff.library.numpy_table import FUNCTIONS, METHODS, STANDARD, UFUNC_METHODS
from srcdiff.signature.descriptions import Description
from srcdiff.signature.structures import Layout, is_plain_tuple
from srcdiff.signature.trees import NODES

_MODULES: dict[str, Any] = {"math": math, "np": np, "builtins": builtins}


@functools.cache
def _primitive_objects() -> dict[Any, str]:
    """The functions users call, by object: `math.sin` and `np.sin` are both `sin`."""
    found: dict[Any, str] = {}
    for primitive in PRIMITIVES.values():
        for name in primitive.names:
            module, _, attribute = name.partition(".")
            function = getattr(_MODULES[module], attribute, None)
            if function is not None:
                found.setdefault(function, primitive.name)
    return found


class RecursionFound(Exception):  # noqa: N818 -- a signal, not an error
    """A function that is being inlined calls itself: it must become a function of its own."""

    def __init__(self, identity: Any) -> None:
        self.identity = identity


@dataclass(frozen=True, slots=True)
class Passed:
    """A value that is passed to a function of the program."""

    function: str
    parameter: str
    value: Value
    span: Span | None


@dataclass(frozen=True, slots=True)
class Named:
    """A value that a statement gives a name to, or returns, as `%return`."""

    name: str
    value: Value
    span: Span | None


class Calls(Compiled):
    """Reads calls."""

    def __init__(self) -> None:
        super().__init__()
        self.active_calls: list[tuple[Any, Any]] = []
        """The calls that are being read: the function with its arguments, known lists by themselves and by kind."""
        self.chain: list[Called] = []
        """The calls that are being read, also those around recursive functions."""
        self.deepest: Span | None = None
        """Where calls were nested more deeply than Python allows."""
        self.led_to: dict[str, Span] = {}
        """For each other file that has been read, the call that led there."""
        self.recursive: set[Any] = set()
        self.handed_over: list[Passed] = []
        self.named: list[Named] = []
        self.unknown_calls: list[Problem] = []
        """Calls of unknown functions, as problems for a backend that does not know them either."""

    def run_body(self, node: ast.FunctionDef | ast.Lambda) -> Abstract:
        raise NotImplementedError

    def kind_of(self, x: Abstract) -> Description:
        """How an argument of a recursive function is described, whichever list it is."""
        raise NotImplementedError

    def call_recursive(self, identity: Any, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Abstract:
        raise NotImplementedError

    def make_derivative(
        self, maker: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        raise NotImplementedError

    def call_inside(
        self, inside: tuple[Any, ...], args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        raise NotImplementedError

    def call_tangent(self, maker: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST) -> Abstract:
        raise NotImplementedError

    def call_derivative(
        self, derivative: Transformed, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        raise NotImplementedError

    def call(self, node: ast.Call) -> Abstract:
        function = self.expr(node.func)
        if isinstance(function, Static) and function.value is builtins.print:
            return self.print_call(node)
        generator = self.generator_call(function, node)
        if generator is not None:
            return generator
        read = self.argument if self.takes_apart(function) else self.lazily
        args = list(self.elements(node.args, read))
        found = self.call_with(function, args, self.keywords(node, read), node)
        return found if self.frame.library else self.without_axes(function, args, found)

    def without_axes(self, function: Abstract, args: list[Abstract], found: Abstract) -> Abstract:
        """A number that is an array without axes in NumPy, which others may hold on to."""
        target = function.value if isinstance(function, Static) else None
        of = function.of if isinstance(function, Method) else args[0] if args else None
        name = function.name if isinstance(function, Method) else getattr(target, "__name__", "")
        if name not in _WITHOUT_AXES or not (isinstance(found, Value) and isinstance(found.type, Scalar)):
            return found
        if not isinstance(function, Method) and getattr(np, name) is not target:
            return found
        box = Value(found.type)
        self.add(Apply(box, "positive", (found,), span=self.span))
        self.boxes[box] = name == "squeeze" and of is not None and self.is_array(of)
        return box

    def keywords(self, node: ast.Call, read: Callable[[ast.expr], Abstract]) -> dict[str, Abstract]:
        found: dict[str, Abstract] = {}
        for keyword in node.keywords:
            if keyword.arg is not None:
                found[keyword.arg] = read(keyword.value)
                continue
            more = self.expr(keyword.value)
            if not (isinstance(more, Record) and more.kind.is_mapping):
                self.refuse("SD102", node, f"`**` of {self.in_words(more)} is not supported")
            found |= {str(name): x for name, x in zip(more.kind.names, more.items, strict=True)}
        return found

    def takes_apart(self, function: Abstract) -> bool:
        """Whether the function takes arrays in lists element by element."""
        return isinstance(function, Static) and _hashable(function.value) and function.value in FUNCTIONS

    def argument(self, node: ast.expr) -> Abstract:
        """An argument whose arrays may not be computed yet, also those in a list that is written here."""
        if isinstance(node, ast.Tuple | ast.List):
            return Tuple(self.elements(node.elts, self.argument))
        return self.lazily(node)

    def call_value(self, function: Abstract, args: list[Abstract], node: ast.AST) -> Abstract:
        return self.call_with(function, args, {}, node)

    def call_with(
        self, function: Abstract, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        if isinstance(function, Method):
            return self.call_method(function, args, keywords, node)
        function = self.present(function)
        target = function.value if isinstance(function, Static) else None
        primitive = _primitive_objects().get(target) if _hashable(target) else None
        library = FUNCTIONS.get(target) if _hashable(target) else None
        handler = self.handler(target)
        lazily = primitive or library or (handler is not None and handler.__name__ in _LAZY) or is_library(target)
        if not is_library(target) and not (handler is not None and handler.__name__ in _GO_THROUGH):
            args = [self.forced(a) if isinstance(a, Through | Drawn) else a for a in args]
        if not lazily:
            args = [a if isinstance(a, Through | Drawn) else self.forced(a) for a in args]
            keywords = {n: self.forced(a) for n, a in keywords.items()}
        if primitive or library:  # an array that may be None must be there; an axis may be None
            args = [self.present(a) if isinstance(a, Optional) and self.is_array(a.value) else a for a in args]
        if isinstance(function, Closure):
            return self.call_closure(function, args, keywords, node)
        if isinstance(function, Transformed):
            return self.call_derivative(function, args, keywords, node)
        if isinstance(function, Partial):
            return self.call_with(function.function, [*function.args, *args], {**function.keywords, **keywords}, node)
        if isinstance(target, functools.partial):
            lifted, named = self.lift_partial(target, node)
            return self.call_with(Static(target.func), [*lifted, *args], {**named, **keywords}, node)
        if isinstance(function, Choice):
            return self.call_choice(function, args, keywords, node)
        if isinstance(function, Record):
            return self.call_method(Method(function, "__call__"), args, keywords, node)
        if not isinstance(function, Static):
            self.refuse("SD203", node, f"{self.in_words(function)} cannot be called")
        if isinstance(target, DeviceName):
            return self.call_device(target.name, args, keywords, node)
        as_type = numba_type(target)
        if as_type is not None and not keywords:
            return self.call_numba_type(as_type, args, node)
        if isinstance(target, enum.EnumType) and len(args) == 1 and not keywords:
            return self.member_of(target, args[0], node)
        if isinstance(target, type) and issubclass(target, tuple) and hasattr(target, "_fields"):
            return self.make_namedtuple(target, args, keywords, node)
        if isinstance(target, type) and dataclasses.is_dataclass(target):
            return self.make_dataclass(target, args, keywords, node)
        if isinstance(target, np.vectorize):
            return self.call_with(self.vectorized(target, node), args, keywords, node)
        if target is not np.real and _is_numpys(target):
            self.refuse_complex((*args, *keywords.values()), node)
        if handler is not None:
            return self.handled(handler, getattr(target, "__name__", str(target)), node, *args, **keywords)
        if _hashable(target) and target in _ABOUT_TYPES and not keywords:
            assert callable(target)
            return Static(target(*(a.value if isinstance(a, Static) else self.example(a, node) for a in args)))
        if primitive is not None:
            return self.call_primitive(primitive, args, keywords, node, target)
        if library is not None:
            if "out" in keywords or writes_parameters(library):
                args = [self.forced(a) for a in args]
                keywords = {n: self.forced(a) for n, a in keywords.items()}
                self.settle()
            return self.call_plain(library, args, keywords, node)
        if _hashable(target) and target in STANDARD:
            return self.call_standard(target, args, keywords, node)
        if isinstance(target, LibraryCall):
            return self.library_call(target, args, node)
        structure = getattr(target, "__srcdiff_structural__", None)
        if structure is not None:
            return self.run_structural(structure, args, node)
        maker = getattr(target, "__srcdiff_maker__", None)
        if maker is not None:
            return self.make_derivative(maker, args, keywords, node)
        inside = getattr(target, "__srcdiff_inside__", None)
        if inside is not None:
            return self.call_inside(inside, args, keywords, node)
        outside = getattr(target, "__srcdiff_outside__", None)
        if outside is not None:
            self.refuse("SD102", node, outside)
        tangents = getattr(target, "__srcdiff_tangents__", None)
        if tangents is not None:
            return self.call_tangent(tangents, args, keywords, node)
        derivative = getattr(target, "__srcdiff_derivative__", None)
        if derivative is not None:
            return self.call_derivative(Transformed(derivative.derivation, Static(derivative.of)), args, keywords, node)
        rule = getattr(target, "__srcdiff_rule__", None)
        if rule is not None:
            return self.call_custom(rule, args, keywords, node)
        unknown = self.call_unknown(target, args, keywords, node)
        if unknown is not None:
            return unknown
        if plain_function(target) is None:
            return self.no_source(target, args, node)
        if hasattr(target, "py_func"):
            self.guard(Attribute(Constant(target), "py_func"), getattr(target, "py_func", None))
        return self.call_plain(target, args, keywords, node)

    def refuse_complex(self, args: Iterable[Abstract], node: ast.AST) -> None:
        if any(is_complex(part) for a in args for part in NODES.nodes(a)):
            self.refuse("SD201", node, "the argument is complex, which is not supported", help_="take its `.real`")

    def member_of(self, kind: enum.EnumType, value: Abstract, node: ast.AST) -> Abstract:
        """The member of an enum that has the value."""
        if not isinstance(value, Static):
            message = f"the member of `{kind.__name__}` must be known at compile time"
            self.refuse("SD205", node, message, help_="pass the member itself as an argument")
        try:
            return Static(kind(value.value))
        except (ValueError, TypeError, KeyError) as error:
            self.raise_always(type(error), str(error))

    def vectorized(self, function: np.vectorize, node: ast.AST) -> Abstract:
        """What `@np.vectorize` has made of a function."""
        for name in ("signature", "excluded", "pyfunc", "otypes"):
            self.guard(Attribute(Constant(function), name), getattr(function, name))
        if function.signature is not None or function.excluded:
            self.refuse("SD303", node, "`np.vectorize` with a signature or excluded arguments is not supported")
        return self.call_value(Static(np.vectorize), [Static(function.pyfunc), Static(function.otypes)], node)

    def call_choice(
        self, function: Choice, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        key = (self.frame.number, "%choice")

        def side(chosen: Abstract) -> None:
            self.names[key] = self.call_with(chosen, args, keywords, node)

        def among(k: int) -> None:
            if k + 1 == len(function.options):
                side(function.options[k])
                return
            is_it = self.apply("equal", function.number, self.const(k))
            self.branch_on(is_it, lambda: side(function.options[k]), lambda: among(k + 1))

        among(0)
        return self.checked(self.chosen(key), "the result", node)

    def no_source(self, target: Any, args: list[Abstract], node: ast.AST) -> Abstract:
        name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or repr(target)
        module = getattr(target, "__module__", "") or ""
        inner = module.removeprefix("numpy").lstrip(".")
        name = f"{inner}.{name}" if inner and "." not in name and not inner.startswith(("_", "lib")) else name
        if module.startswith("numpy.random") or "numpy.random" in str(type(getattr(target, "__self__", None))):
            short = name.rpartition(".")[2]
            if getattr(np.random, short, None) == target:  # a method of NumPy's hidden generator
                name = f"np.random.{short}"
            self.refuse(
                "SD302",
                node,
                f"`{name}` draws random numbers",
                help_="draw the numbers outside the function and pass them in",
            )
        if module.startswith("numpy") or getattr(np, name, None) is target:
            if any(isinstance(a, Value) and isinstance(a.type, Array) for a in args):
                self.refuse("SD303", node, f"`np.{name}` is not supported for arrays")
            self.refuse("SD301", node, f"`np.{name}` has no derivative rule")
        name = name.removeprefix("builtins.")
        reason, instead = instead_of_call(target)
        if type(target).__module__.startswith("numba."):
            reason, instead = "", "call the Python function that Numba compiled, with arrays or in a loop"
            name = getattr(target, "__name__", type(target).__name__)
        self.refuse("SD302", node, reason or f"`{name}` has no Python source and no derivative rule", help_=instead)

    def call_standard(
        self, target: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        """A function of Python's own library; of constants it is a constant."""
        if not keywords and all(isinstance(a, Static) for a in args):
            with contextlib.suppress(TypeError, ValueError, ArithmeticError):
                result = target(*(a.value for a in args if isinstance(a, Static)))
                if isinstance(result, bool | int | float):
                    return Static(result)
        return self.call_plain(STANDARD[target], args, keywords, node)

    def call_primitive(
        self,
        primitive: str,
        args: list[Abstract],
        keywords: dict[str, Abstract],
        node: ast.AST,
        target: Any = None,
    ) -> Abstract:
        row = PRIMITIVES[primitive]
        if target is not None and any(self.is_array(a) for a in (*args, *keywords.values())):
            return self.primitive_on_arrays(primitive, args, keywords, node, target)
        if keywords:
            self.refuse("SD304", node, f"`{primitive}` does not take keyword arguments here")
        if primitive == "power" and len(args) == 3:
            self.refuse("SD304", node, "`pow` with a modulus is not supported")
        if primitive in ("int", "float") and args and isinstance(args[0], Static) and isinstance(args[0].value, str):
            return self.number_in_text({"int": int, "float": float}[primitive], args, node)
        if target in (int, float, bool, abs) and len(args) == 1 and self.is_large(args[0]):
            return self.of_large(target, args[0], node)
        if len(args) != row.arity:
            if primitive == "log" and len(args) == 2:
                top, bottom = (self.call_primitive("log", [a], {}, node) for a in args)
                return self.binary(ast.Div, top, bottom, node)
            if primitive in _OF_ANY_NUMBER and len(args) < 2:
                size, nothing = _OF_ANY_NUMBER[primitive]
                return self.call_primitive(size, args, {}, node) if args else Static(nothing)
            if primitive in _OF_ANY_NUMBER:
                first = self.call_primitive(primitive, args[:2], {}, node)
                return self.call_primitive(primitive, [first, *args[2:]], {}, node)
            self.refuse("SD304", node, f"`{primitive}` takes {row.arity} arguments, but {len(args)} are given")
        if primitive == "power" and isinstance(target, np.ufunc):
            return self.power_of_elements(self.number(args[0], node), self.number(args[1], node), node)
        if primitive == "power":
            return self.binary(ast.Pow, args[0], args[1], node)
        if primitive in ("logical_and", "logical_or"):  # whose operands are numbers that are not zero
            args = [self.truth(a, node) for a in args]
        values = [self.number(a, node) for a in args]
        if isinstance(target, np.ufunc) and row.result != "bool" and all(v.type == BOOL for v in values):
            return self.of_truth_values(primitive, values, target, node)
        if isinstance(target, np.ufunc):
            self.require_long(primitive, values, node)
        if row.result == "float":
            values = [self.cast(v, FLOAT) if not is_float(v.type) else v for v in values]
        if primitive in ("int", "float", "bool"):
            kind = {"int": INT, "float": FLOAT, "bool": BOOL}[primitive]
            if kind == INT:
                self.require_exact(values[0])
            return self.whose(target, args, self.unheld(self.cast(values[0], kind)))
        if target is abs and values[0].type == BOOL and not self.is_pythons(args[0]):
            return values[0]
        if row.result != "bool":
            values = [self.plain_number(v) for v in values]
        return self.whose(target, args, self.apply(primitive, *values))

    def of_large(self, target: Any, large: Static, node: ast.AST) -> Abstract:
        """A builtin function of an integer that has no place in 64 bits."""
        try:
            return Static(target(large.value))
        except OverflowError as error:
            self.raise_always(OverflowError, str(error))

    def whose(self, target: Any, args: list[Abstract], result: Value) -> Value:
        """The result of a function: of one of `math` or a builtin one it is known that it is Python's number."""
        if getattr(target, "__module__", "") not in ("math", "builtins"):
            return result if target is None else self.numpys_own(result)
        is_same = any(result is a for a in args) or (target is abs and not self.is_pythons(args[0]))
        return result if is_same else self.pythons_own(result)

    def of_truth_values(self, primitive: str, values: list[Value], target: np.ufunc, node: ast.AST) -> Value:
        """An elementwise function of truth values, Python's or NumPy's: NumPy has a type for what comes of them."""
        kind = self.promoted(target, values, node)
        self.require_wide(kind, node)
        if primitive == "invert":
            return self.signed(primitive, values[0], kind, node)
        return self.as_element(self.number(self.call_primitive(primitive, list(values), {}, node), node), kind)

    def number_in_text(self, kind: type, args: list[Abstract], node: ast.AST) -> Abstract:
        """`float("inf")`, `int("ff", 16)`."""
        if not all(isinstance(a, Static) for a in args):
            self.refuse("SD205", node, "this must be known at compile time")
        try:
            return Static(kind(*(a.value for a in args if isinstance(a, Static))))
        except ValueError as error:
            self.raise_always(ValueError, str(error))
        except TypeError as error:
            self.refuse("SD203", node, str(error))

    def primitive_on_arrays(
        self, primitive: str, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST, target: Any
    ) -> Abstract:
        """An elementwise function of NumPy, with `out=`, `where=` and `dtype=`."""
        if getattr(target, "__module__", "") == "math":
            help_ = f"use `np.{primitive}`"
            self.refuse("SD203", node, f"`math.{target.__name__}` takes numbers, not arrays", help_=help_)
        if target is bool:
            return self.truth(args[0], node)
        out, where, dtype = (keywords.pop(n, None) for n in ("out", "where", "dtype"))
        if out is None and len(args) == PRIMITIVES[primitive].arity + 1:
            *args, out = args
        if keywords:
            self.refuse("SD304", node, f"`{primitive}` does not support `{next(iter(keywords))}` here")
        kind = self.promoted(target, args, node)
        if dtype is not None and dtype != Static(None):
            kind = self.dtype_of(dtype, node)
            self.promoted(functools.partial(target, dtype=kind), args, node)  # that the operands can be converted

        def element(values: list[Value]) -> Abstract:
            if primitive == "power":
                return self.power_of_elements(values[0], values[1], node)
            if primitive == "invert":
                return self.signed(primitive, values[0], kind, node)
            return self.call_primitive(primitive, list(values), {}, node)

        result = self.elementwise(args, element, kind, node)
        if isinstance(out, Tuple) and len(out.items) == 1:
            out = out.items[0]
        if out is None or (isinstance(out, Static) and out.value is None):
            if where is not None and not (isinstance(where, Static) and where.value is True):
                self.refuse("SD304", node, "`where` without `out` leaves elements uninitialised")
            return result
        if not (isinstance(out, Value) and isinstance(out.type, Array)):
            self.refuse("SD203", node, f"{self.in_words(out)} is used where an array is needed")
        self.require_cast(kind, out, node)
        for operand in (a for a in args if self.is_array(a)):
            if not self.safe(self.lazy(operand, node), out):
                self.note_overlap(self.lazy(operand, node), out, node, in_place=True)
        if where is not None:
            result = self.choose_elements(where, result, out, out.type.dtype, node)
        self.assign_array(out, result, node)
        return out

    # -- the library -------------------------------------------------------------------------------------------------

    def call_named(self, name: str, node: ast.AST, *args: Abstract, **keywords: Abstract) -> Abstract:
        """A function of the library, by the name NumPy has for it."""
        function: Any = np
        for part in name.split("."):
            function = getattr(function, part)
        return self.call_with(Static(function), list(args), keywords, node)

    def matrix_product(self, left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
        return self.call_named("matmul", node, left, right)

    def positions_of(self, mask: Lazy, node: ast.AST) -> tuple[Abstract, ...]:
        found = self.call_named("nonzero", node, mask)
        assert isinstance(found, Tuple)
        return found.items

    def library_call(self, call: LibraryCall, args: list[Abstract], node: ast.AST) -> Abstract:
        """A call of BLAS or LAPACK; the letters of its shapes say which sizes must agree."""
        taken, given = call.shapes.split("->")
        letters_of = taken.split(",")[: len(args)]  # there may be none
        arrays = [
            self.the_array(a, node) if letters else self.number(a, node)
            for a, letters in zip(args, letters_of, strict=True)
        ]
        sizes: dict[str, Size] = {}
        for array, letters in zip(arrays, letters_of, strict=True):
            for axis, letter in enumerate(letters):
                size = self.axis_size(array, axis)
                known = sizes.setdefault(letter, size)
                self.require_equal(known, size, lambda: self.misfit(arrays, node))
        single = all(a.type in (Scalar("float32"), Array("float32", _rank(a))) for a in arrays)
        outs: list[Value] = []
        for k, letters in enumerate(given.split(",")):
            dtype = call.dtypes[k] if call.dtypes else "float32" if single else "float64"
            out = Value(Array(dtype, len(letters)) if letters else Scalar(dtype))
            outs.append(out)
        span = self.span if self.frame.library else self.span_of(node)
        self.add(Library(tuple(outs), call.key or call.name, tuple(arrays), span=span))
        for out, letters in zip(outs, given.split(","), strict=True):
            if letters:
                for axis, letter in enumerate(letters):
                    sizes.setdefault(letter, Size(("d", out, axis), lambda: self.const(0)))
                self.made(out, tuple(sizes[x].key for x in letters))
                self.contiguous.discard(out)
        return outs[0] if len(outs) == 1 else Tuple(tuple(outs))

    def call_unknown(
        self, target: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract | None:
        """A function of NumPy that has no rule, of those that give new arrays: a call without a derivative."""
        name = getattr(target, "__name__", "")
        if name not in _OPAQUE or getattr(np, name, None) is not target:
            return None
        assert callable(target)
        values: list[Value] = []
        try:
            arguments_ = [("", *self.told(x, values, node)) for x in args]
            arguments_ += [(f"{key}=", *self.told(x, values, node)) for key, x in keywords.items()]
            with np.errstate(all="ignore"):
                by_name = dict(zip(keywords, [example for _, example, _ in arguments_[len(args) :]], strict=True))
                found = target(*[example for _, example, _ in arguments_[: len(args)]], **by_name)
        except Exception:
            return None
        results = found if isinstance(found, tuple) else (found,)
        letters = iter(chr(k) for k in range(ord("a"), ord("a") + 1000))
        taken = ",".join("".join(next(letters) for _ in range(_rank(v))) for v in values)
        given = ",".join("".join(next(letters) for _ in range(np.ndim(r))) for r in results)
        dtypes = tuple(np.asarray(r).dtype.name for r in results)
        if not all(is_supported_dtype(np.dtype(d)) for d in dtypes):
            return None
        text = f"np.{name}({', '.join(key + text for key, _, text in arguments_)})"
        call = opaque(f"np.{name}", text, f"{taken}->{given}", dtypes)
        self.unknown_calls.append(Problem("SD302", f"Numba cannot compile `np.{name}`", self.span))
        return self.library_call(call, list(values), node)

    def told(self, x: Abstract, values: list[Value], node: ast.AST) -> tuple[Any, str]:
        """Something of the kind of an argument, and how it is written; what is computed joins the values."""
        match self.array_of(x, node) if isinstance(x, List) else self.forced(x):
            case Static(value=enum.Enum()):
                raise NotImplementedError
            case Static(value=None | bool() | int() | str() as constant) if "{" not in str(constant):
                return constant, repr(constant)
            case Static(value=float() as constant) if math.isfinite(constant):
                return constant, repr(constant)
            case Tuple(items=items):
                parts = [self.told(i, values, node) for i in items]
                return tuple(p for p, _ in parts), f"({', '.join(t for _, t in parts)},)"
            case Value(type=Scalar(dtype=dtype) | Array(dtype=dtype)) as value:
                values.append(value)
                example = np.ones((2,) * _rank(value), dtype)
                return example if _rank(value) else example.item(), f"{{{len(values) - 1}}}"
        raise NotImplementedError

    def misfit(self, arrays: list[Value], node: ast.AST) -> tuple[str | Value, ...]:
        parts: list[str | Value] = ["shapes do not fit together:"]
        for array in arrays:
            parts += [" ", *self.shape_in_words(self.lazy(array, node))]
        return tuple(parts)

    def run_structural(self, function: Callable[..., Any], args: list[Abstract], node: ast.AST) -> Abstract:
        """A function that only moves things about in tuples."""

        def plain(x: Abstract) -> Any:
            if isinstance(x, Tuple) and x.kind is None:
                return tuple(plain(i) for i in x.items)
            if isinstance(x, List) and self.contents(x) is not None:
                return tuple(plain(i) for i in self.contents(x) or ())
            return x.value if isinstance(x, Static) else x

        def abstract(x: Any) -> Abstract:
            if isinstance(x, tuple):
                return Tuple(tuple(abstract(i) for i in x))
            return x if isinstance(x, get_args(Abstract)) else Static(x)

        try:
            return abstract(function(*(plain(a) for a in args)))
        except NotImplementedError as error:
            self.refuse("SD303", node, str(error))
        except (ValueError, TypeError, IndexError) as error:
            self.refuse("SD203", node, str(error))

    def call_each(self, node: ast.AST, *shape: Abstract) -> Abstract:
        items = shape[0].items if len(shape) == 1 and isinstance(shape[0], Tuple) else shape
        return Each(items)

    def call_ndenumerate(self, node: ast.AST, arr: Abstract) -> Abstract:
        array = self.the_array(arr, node)
        return Each(self.lengths(array), array)

    def call_common_shape(self, node: ast.AST, *shapes: Abstract) -> Abstract:
        """The shape that arrays of these shapes are stretched to together."""
        sizes, _, _ = self.broadcast([self.of_shape(s, node) for s in shapes], node)
        return Tuple(tuple(Static(s.key[1]) if s.key[0] == "n" else s.value() for s in sizes))

    def of_shape(self, shape: Abstract, node: ast.AST) -> Lazy:
        """Something that has this shape, and no elements."""
        items = shape.items if isinstance(shape, Tuple) else (shape,)
        values = [self.integer(x, node) for x in items]
        sizes = tuple(Size(self.size_key(v), lambda v=v: v) for v in values)  # type: ignore[misc]
        return Lazy("float64", sizes, lambda _: self.const(0.0))

    def call_stretched(self, node: ast.AST, place: Abstract, whole: Abstract, shape: Abstract) -> Abstract:
        """The place in an array of the shape, which is stretched to the whole one, for a place in the whole."""
        assert isinstance(place, Tuple)
        mine, all_ = self.of_shape(shape, node), self.of_shape(whole, node)
        steps = [
            self.step(own, size) for own, size in zip(mine.sizes, all_.sizes[all_.rank - mine.rank :], strict=True)
        ]
        return Tuple(self.mapped(tuple(self.integer(i, node) for i in place.items), steps))

    def call_zero(self, node: ast.AST, dtype: Abstract) -> Abstract:
        return self.cast(self.const(0.0), _element(self.dtype_of(dtype, node)))

    def call_known(self, node: ast.AST, x: Abstract) -> Abstract:
        return Static(isinstance(x, Static))

    def call_real(self, node: ast.AST, val: Abstract) -> Abstract:
        """Of real numbers it is the array itself."""
        if is_complex(val):
            return val.items[0]
        if self.is_array(val):
            return val
        return (
            self.array_of(val, node)
            if isinstance(val, List | Tuple)
            else self.call_primitive("positive", [val], {}, node)
        )

    def call_is_function(self, node: ast.AST, x: Abstract) -> Abstract:
        return Static(isinstance(x, Closure | Choice | Transformed) or (isinstance(x, Static) and callable(x.value)))

    def call_is_array(self, node: ast.AST, x: Abstract) -> Abstract:
        return Static(self.is_array(x) or isinstance(x, List | Tuple))

    # -- the user's functions ----------------------------------------------------------------------------------------

    def call_plain(self, function: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST) -> Abstract:
        """A call of a Python function, or of one that Numba compiles."""
        try:
            captured = capture(function)
        except Refusal as refusal:
            problem = refusal.problem
            assert problem is not None
            help_ = "let it return a list" if inspect.isgeneratorfunction(function) else ""
            self.refuse("SD302", node, problem.message, help_=help_)
        plain = captured.function
        if captured.node.args.kwarg is not None and is_installed(captured.file):
            message = f"`{captured.name}` is a library function with `**` keywords, which is not supported"
            help_ = instead_of_call(plain)[1]
            if hasattr(plain, "__wrapped__"):
                message = f"`{captured.name}` is wrapped by a library decorator, which is not supported"
                help_ = "call the function itself, without the decorator"
            self.refuse("SD302", node, message, help_=help_)
        if not is_library(plain):
            self.guards.add_function(plain, captured.code)
        bound = self.bind(captured.node, args, keywords, self.lift_defaults(plain, node), captured.name, node)
        library = is_library(plain)
        around = None if library else self.frame.told
        if around is not None and captured.told is None and is_replaced(plain):
            message = f"Numba replaces `{captured.name}` in compiled code: there is an `@overload` of it"
            self.refuse("SD307", node, message, help_="call an `@njit` function without an `@overload`")
        told = captured.told or (None if around is None else Told(parallel=around.parallel))
        scopes = _scopes(captured.node)
        frame = Frame(captured, captured.node, captured.file, captured.name, None, *scopes, library, told)
        return self.enter_captured(captured, frame, bound, node)

    def lift_defaults(self, function: types.FunctionType, node: ast.AST) -> dict[str, Abstract]:
        """The parameters that have a default now, with it."""
        code, whole = function.__code__, Constant(function)
        defaults, by_name = function.__defaults__ or (), function.__kwdefaults__ or {}
        names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        positional, named = Attribute(whole, "__defaults__"), Attribute(whole, "__kwdefaults__")
        found = {
            n: self.lift_fixed(d, Element(positional, k), n, node)
            for k, (n, d) in enumerate(zip(names, defaults, strict=True))
        }
        return {**found, **{n: self.lift_fixed(d, Element(named, n), n, node) for n, d in by_name.items()}}

    def lift_partial(
        self, function: functools.partial[Any], node: ast.AST
    ) -> tuple[list[Abstract], dict[str, Abstract]]:
        """The arguments that a `functools.partial` holds."""
        whole = Constant(function)
        args, keywords = Attribute(whole, "args"), Attribute(whole, "keywords")
        self.guard(Attribute(whole, "func"), function.func)
        self.guard(args, function.args)
        self.guard(Summary(contents, keywords), contents(function.keywords))
        lifted = [self.lift_fixed(a, Element(args, k), "argument", node) for k, a in enumerate(function.args)]
        return lifted, {n: self.lift_fixed(a, Element(keywords, n), n, node) for n, a in function.keywords.items()}

    def lift_fixed(self, value: Any, place: Place, name: str, node: ast.AST) -> Abstract:
        """A default, or what else cannot change while a guard holds."""
        return self.lift(value, place, name, (), node, "fixed")

    def call_closure(
        self, closure: Closure, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        name = getattr(closure.node, "name", "lambda")
        bound = self.bind(closure.node, args, keywords, closure.defaults, name, node)
        outer = closure.frame
        told = None if outer.told is None else outer.told.inside()
        frame = Frame(None, closure.node, outer.file, name, outer, *_scopes(closure.node), outer.library, told)
        return self.enter((closure.node, outer), frame, bound, node)

    def enter(self, function: Any, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Abstract:
        """Read the function's body in its own frame; what it returns is the value of the call."""
        with self.one_deeper(frame, bound, node):
            # a list of unknown length is like any other with such elements; one of known length gets shorter each time
            contents = {n: self.holding(x) if isinstance(x, List) else x for n, x in bound.items()}
            given = [c if isinstance(c, Stored) else bound[n] for n, c in contents.items()]
            identity = (function, tuple(loosened(describe(x)) for x in given))
            if not frame.library:
                self.settle()
            kind = (function, tuple(self.kind_of(x) for x in given))
            if identity in self.recursive or kind in self.recursive:
                return self.call_recursive(function, frame, bound, node)
            if any(identity == active for active, _ in self.active_calls):
                raise RecursionFound(identity)
            if sum(kind == active for _, active in self.active_calls) > _MOST_INLINED:
                raise RecursionFound(kind)
            if len(self.active_calls) > _MOST_NESTED:
                raise self.too_deep(self.span_of(node))
            mark = self.mark()
            try:
                return self.read_inline((identity, kind), frame, bound, node)
            except RecursionFound as found:
                outermost = found.identity == kind and all(kind != active for _, active in self.active_calls)
                if found.identity != identity and not outermost:
                    raise
                recursive = found.identity
            self.go_back(mark)
            self.recursive.add(recursive)
            return self.call_recursive(function, frame, bound, node)

    @contextlib.contextmanager
    def one_deeper(self, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Iterator[None]:
        """Read a call inside of others: refuse one that has no end."""
        depth = len(self.chain)
        if not frame.library:
            self.chain.append(self.called(frame, bound, node))
        try:
            yield
        except RecursionError:
            self.deepest = self.deepest or self.span
            if depth:
                raise  # there is no stack left to say it
            raise self.too_deep(self.deepest) from None
        finally:
            del self.chain[depth:]

    def called(self, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Called:
        """The call as one of those that are being read."""
        before = next((c for c in reversed(self.chain) if c.node is frame.node), None)
        sizes = {n: size(x, self.names) for n, x in bound.items()}
        if before is not None:
            self.refuse_growing(frame.name, too_large(before, sizes), bound, node)
        arguments = {n: Argument(x, self.kind_of(x), describe(x), sizes[n]) for n, x in bound.items()}
        if before is None:
            return Called(frame.node, arguments)
        steps = steps_without_end(before, arguments)
        self.refuse_growing(frame.name, without_end(before, arguments, steps), bound, node)
        return Called(frame.node, arguments, steps)

    def refuse_growing(self, function: str, grown: Growing | None, bound: dict[str, Abstract], node: ast.AST) -> None:
        """Refuse a call that brings a new type, as all before it have."""
        if grown is None:
            return
        message = (
            f"`{function}` calls itself with a new type of `{grown.name}` each time, so compilation would never end"
        )
        label, help_ = how_it_grows(bound[grown.name], grown.is_larger)
        span = self.span if self.frame.library else self.span_of(node)
        problem = Problem("SD308", message, span, f"`{grown.name}` {label}", help=help_.format(function=function))
        raise Hopeless(problem)

    def too_deep(self, span: Span | None) -> Hopeless:
        return Hopeless(Problem("SD308", "the calls are nested too deeply", span))

    def read_inline(
        self, identity: tuple[Any, Any], frame: Frame, bound: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        if not frame.library:
            self.settle()
        outer, span, path = self.frame, self.span, self.path
        if frame is not outer and not frame.library:
            self.handed_over += [Passed(frame.name, n, v, span) for n, x in bound.items() for v in values_in(x)]
        self.active_calls.append(identity)
        self.frame, self.path = frame, (*path, id(node))
        self.names = self.names | {(frame.number, name): x for name, x in bound.items()}
        if frame.file != outer.file and span is not None:
            self.led_to.setdefault(frame.file, span)
        try:
            result = self.run_body(frame.node)
        finally:
            self.frame, self.span, self.path = outer, span, path
            self.active_calls.pop()
            if not inner_scopes(frame.node) & {ast.Lambda, ast.FunctionDef}:
                self.names = {k: v for k, v in self.names.items() if k[0] != frame.number}
        if frame.library and not outer.library:
            self.laid_out_somehow(result, bound)
        if isinstance(result, Group) and (frame is outer or not outer.library):  # nobody takes these as they are
            result = result.remade(map(self.forced, result.items))
        return self.checked(result, f"the result of {frame.name}", node) if isinstance(result, Poison) else result

    def laid_out_somehow(self, result: Abstract, bound: dict[str, Abstract]) -> None:
        """NumPy's own functions lay out what they give as what they were given, mostly."""
        sources = [v for x in bound.values() for v in self.arrays_of(x)]
        for array in self.arrays_of(result):
            self.laid_out_like(array, sources)

    def arrays_of(self, x: Abstract) -> list[Value]:
        """The arrays that something is, holds, or is computed from."""
        found = [array for y in NODES.leaves(x) for array in arrays_in(self.holding(y) if isinstance(y, List) else y)]
        return [array for array in found if isinstance(array.type, Array)]

    def bind(
        self,
        function: ast.FunctionDef | ast.Lambda,
        args: list[Abstract],
        keywords: dict[str, Abstract],
        defaults: dict[str, Abstract],
        name: str,
        node: ast.AST,
    ) -> dict[str, Abstract]:
        """Arguments to parameters, as Python does it."""
        arguments = function.args
        positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        bound: dict[str, Abstract] = dict(zip(positional, args, strict=False))
        extra = args[len(positional) :]
        if arguments.vararg is not None:
            bound[arguments.vararg.arg] = Tuple(tuple(extra))
        elif extra:
            self.refuse("SD304", node, f"`{name}` takes {len(positional)} arguments, but {len(args)} are given")
        names = {*positional, *(a.arg for a in arguments.kwonlyargs)} - {a.arg for a in arguments.posonlyargs}
        if arguments.kwarg is not None:
            message = f"`{name}` takes `**{arguments.kwarg.arg}`, which is not supported"
            self.refuse("SD102", node, message, help_=f"give each parameter of `{name}` a name")
        for keyword, x in keywords.items():
            if keyword not in names or keyword in bound:
                self.refuse("SD304", node, f"`{name}` does not take the keyword `{keyword}` here")
            bound[keyword] = x
        for parameter in (*positional, *(a.arg for a in arguments.kwonlyargs)):
            if parameter not in bound:
                if parameter not in defaults:
                    self.refuse("SD304", node, f"`{name}` needs an argument for `{parameter}`")
                bound[parameter] = defaults[parameter]
        return bound

    def make_namedtuple(
        self, kind: type, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
        if not is_plain_tuple(kind):
            message = f"`{kind.__name__}` overrides methods of a named tuple, which is not supported"
            self.refuse("SD102", node, message, help_="use functions instead of the overridden methods")
        bound = {**dict(zip(fields, args, strict=False)), **keywords}
        defaults = getattr(kind, "_field_defaults", {})
        self.guard(Summary(contents, Attribute(Constant(kind), "_field_defaults")), contents(defaults))
        for name, default in defaults.items():
            if name not in bound:
                bound[name] = self.lift_fixed(default, Constant(default), name, node)
        if set(bound) != set(fields):
            self.refuse("SD304", node, f"`{kind.__name__}` needs the fields {', '.join(fields)}")
        return Tuple(tuple(bound[f] for f in fields), kind)

    def make_dataclass(
        self, kind: type, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        """A new instance, where that only means to remember its fields."""
        fields = {f.name: f for f in dataclasses.fields(kind)}
        self.only_remembers(kind, node)
        bound: dict[str, Abstract] = {**dict(zip(fields, args, strict=False)), **keywords}
        for name, field in fields.items():
            if name not in bound and field.default is not dataclasses.MISSING:
                bound[name] = self.lift_fixed(field.default, Constant(field.default), name, node)
        if set(bound) != set(fields) or len(args) + len(keywords) > len(fields):
            self.refuse("SD304", node, f"`{kind.__name__}` needs the fields {', '.join(fields)}")
        return Record(tuple(bound[f] for f in fields), Layout(kind, tuple(fields)))

    def only_remembers(self, kind: type, node: ast.AST) -> None:
        """Refuse a dataclass that does more than keep its fields when an instance is made."""
        made_by = kind.__init__.__code__  # type: ignore[misc]
        made_by_dataclass = made_by.co_filename == "<string>"
        simple = all(f.init and not f.kw_only for f in dataclasses.fields(kind))
        setter = getattr(kind.__setattr__, "__code__", None)  # of a frozen one, dataclasses writes it
        simple = simple and (setter is None or setter.co_filename == made_by.co_filename)
        if hasattr(kind, "__post_init__") or not made_by_dataclass or not simple:
            message = f"`{kind.__name__}` runs its own code when an instance is created, which is not supported"
            self.refuse("SD102", node, message, help_="create the instance outside the function, and pass it in")

    def call_replaced(self, node: ast.AST, of: Abstract, /, **fields: Abstract) -> Abstract:
        """`dataclasses.replace`."""
        if not (isinstance(of, Record) and of.kind.is_dataclass):
            self.refuse("SD203", node, f"{self.in_words(of)} is used where an instance of a dataclass is needed")
        self.only_remembers(of.kind.kind, node)
        if fields.keys() - set(of.kind.names):
            self.refuse("SD304", node, f"`{of.kind.kind.__name__}` has the fields {', '.join(map(str, of.kind.names))}")
        named = zip(of.kind.names, of.items, strict=True)
        return Record(tuple(fields.get(str(n), x) for n, x in named), of.kind)

    def call_custom(self, rule: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST) -> Abstract:
        """A function whose derivative the user declared: its body is read, but not differentiated."""
        if keywords:
            self.refuse("SD304", node, "a function with a custom rule takes positional arguments only")
        for name in ("function", "adjoint", "tangent"):
            self.guard(Attribute(Constant(rule), name), getattr(rule, name))
        descriptions = [loosened(describe(a)) for a in args]
        if any(leaf_types(d) is None or d.kind not in ("value", "tuple", "static") for d in descriptions):
            self.refuse("SD304", node, "a function with a custom rule takes numbers and arrays only")
        values = [v for a, d in zip(args, descriptions, strict=True) for v in self.leaves(a, d)]
        params: list[Value] = []
        inner: list[Abstract] = []
        for k, d in enumerate(descriptions):
            abstract, fresh = self.fresh(d, f"a{k}")
            inner.append(abstract)
            params += fresh
        before = dict(self.names)
        with self.block() as operations:
            result = self.forced(self.call_plain(rule.function, inner, {}, node))
            description = loosened(describe(result))
            yields = self.leaves(result, description)
        self.names = before
        types = leaf_types(description)
        if types is None or description.kind not in ("value", "tuple"):
            self.refuse("SD304", node, "a function with a custom rule must return numbers, arrays, or a tuple of these")
        out, outs = self.fresh(description, "out")
        body = Block(tuple(operations), tuple(yields))
        self.add(Custom(tuple(outs), tuple(values), tuple(params), body, rule, span=self.span))
        return out

    # -- builtins and array functions --------------------------------------------------------------------------------

    def handler(self, target: Any) -> Callable[..., Abstract] | None:
        name = HANDLERS.get(target) if _hashable(target) else None
        if name is None and getattr(target, "__srcdiff_stop_gradient__", False):
            name = "stop_gradient"
        return None if name is None else getattr(self, f"call_{name}")

    def handled(
        self, handler: Callable[..., Abstract], name: str, node: ast.AST, /, *args: Abstract, **keywords: Abstract
    ) -> Abstract:
        """What a method of ours makes of a call of what the user knows as `name`."""
        try:
            _signature(handler.__func__).bind(self, node, *args, **keywords)  # type: ignore[attr-defined]
        except TypeError as error:
            self.refuse("SD304", node, f"`{name}` does not take these arguments: {error}")
        return handler(node, *args, **keywords)

    # methods

    def call_method(
        self, method: Method, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        owner = method.of
        named = METHODS.get(method.name)
        if isinstance(owner, Static) and isinstance(owner.value, np.ufunc):
            return self.call_with(Static(UFUNC_METHODS[method.name]), [owner, *args], keywords, node)
        if method.name in ("conj", "conjugate") and self.is_array(owner) and not args and not keywords:
            return self.forced(owner)  # of real numbers it is the array itself; `np.conj` makes a new one
        if named is not None and self.is_array(owner):
            return self.call_with(Static(named), [owner, *args], keywords, node)
        owner = self.forced(owner)
        args = [self.forced(a) for a in args]
        if isinstance(owner, Value) and not isinstance(owner.type, Array):
            return self.call_method_of_number(owner, method.name, args, keywords, node)
        if isinstance(owner, List):
            kind = "list"
        elif isinstance(owner, Value) and isinstance(owner.type, Array):
            kind = "array"
        elif isinstance(owner, Tuple):
            kind = "tuple"
        elif isinstance(owner, Record) and owner.kind.is_mapping:
            kind = "dictionary"
        elif isinstance(owner, Record):
            found = self.attribute_of_class(owner, method.name, node)
            return self.call_with(found, [owner, *args], keywords, node)
        elif isinstance(owner, Static) and isinstance(owner.value, str):
            kind = "text"
        elif isinstance(owner, Value) and method.name == "item" and not args and not keywords:
            return self.cast(owner, FLOAT) if is_float(owner.type) else owner  # it was NumPy's, and is Python's now
        else:
            self.refuse("SD203", node, f"{self.in_words(owner)} has no supported method `{method.name}`")
        function = getattr(self, f"{kind}_{method.name}", None)
        if function is None and kind == "text" and method.name in TEXT_METHODS:
            return self.text_method(method.name, owner, args, keywords, node)
        if function is None:
            code = "SD303" if kind == "array" else "SD102"
            if kind == "dictionary" and hasattr(dict, method.name):
                self.refuse(code, node, CHANGED, help_=INSTEAD)
            if kind == "tuple" and hasattr(list, method.name):
                message = "a tuple, or a list from outside the function, cannot be changed"
                self.refuse(code, node, message, help_="convert it to a list first: `list(...)`")
            self.refuse(code, node, f"the {kind} method `{method.name}` is not supported")
        return self.handled(function, method.name, node, owner, *args, **keywords)

    def call_method_of_number(
        self, owner: Value, name: str, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        """NumPy's numbers have the methods of arrays."""
        if name in ("item", "copy", "tolist") and not args and not keywords:
            return owner
        if name not in METHODS:
            self.refuse("SD203", node, f"{self.in_words(owner)} has no supported method `{name}`")
        return self.call_with(Static(METHODS[name]), [owner, *args], keywords, node)

    def tuple__replace(self, node: ast.AST, owner: Tuple, **fields: Abstract) -> Abstract:
        assert owner.kind is not None
        names: tuple[str, ...] = owner.kind._fields  # type: ignore[attr-defined]
        fields = {n: self.forced(x) for n, x in fields.items()}
        return Tuple(tuple(fields.get(n, x) for n, x in zip(names, owner.items, strict=True)), owner.kind)

    def dictionary_keys(self, node: ast.AST, owner: Record) -> Abstract:
        return Tuple(tuple(Static(name) for name in owner.kind.names))

    def dictionary_values(self, node: ast.AST, owner: Record) -> Abstract:
        return Tuple(owner.items)

    def dictionary_items(self, node: ast.AST, owner: Record) -> Abstract:
        return Tuple(tuple(Tuple((Static(n), x)) for n, x in zip(owner.kind.names, owner.items, strict=True)))

    def dictionary_copy(self, node: ast.AST, owner: Record) -> Abstract:
        return owner  # it is not changed

    def dictionary_get(
        self,
        node: ast.AST,
        owner: Record,
        key: Abstract,
        default: Abstract = Static(None),  # noqa: B008
    ) -> Abstract:
        position = self.key_position(owner, key, node)
        return default if position is None else owner.items[position]

    # -- comprehensions ----------------------------------------------------------------------------------------------

    def first_that(self, node: ast.GeneratorExp, wanted: bool) -> Abstract:
        raise NotImplementedError

    def generator_call(self, function: Abstract, node: ast.Call) -> Abstract | None:
        """`sum(... for ...)` and its like become a list first; `any` and `all` stop where they are decided."""
        if isinstance(function, Static) and function.value in (any, all) and len(node.args) == 1:
            generator = node.args[0]
            if isinstance(generator, ast.GeneratorExp):
                return self.first_that(generator, function.value is any)
        if len(node.args) >= 1 and isinstance(node.args[0], ast.GeneratorExp) and _uses_up(function):
            rest, keywords = list(self.elements(node.args[1:])), self.keywords(node, self.expr)
            return self.call_with(function, [self.comprehension(node.args[0]), *rest], keywords, node)
        return None


def _uses_up(function: Abstract) -> bool:
    """Whether a function goes through what it is given at once: other iterators, and users' functions, may not."""
    if not isinstance(function, Static) or not isinstance(function.value, types.BuiltinFunctionType | type):
        return False
    return function.value not in (enumerate, zip, reversed, map, filter, iter)


@functools.cache
def _signature(method: Any) -> inspect.Signature:
    return inspect.signature(method)


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _scopes(node: ast.FunctionDef | ast.Lambda) -> tuple[frozenset[str], frozenset[str]]:
    return assigned_names(node), nonlocal_names(node)


HANDLERS: dict[Any, str] = {
    range: "range",
    len: "len",
    enumerate: "enumerate",
    zip: "zip",
    map: "map",
    filter: "filter",
    sorted: "sorted",
    functools.reduce: "reduce",
    functools.partial: "partial",
    operator.itemgetter: "itemgetter",
    itertools.accumulate: "accumulate",
    itertools.chain: "chain",
    itertools.combinations: "combinations",
    itertools.pairwise: "pairwise",
    itertools.permutations: "permutations",
    itertools.product: "product",
    itertools.starmap: "starmap",
    reversed: "reversed",
    tuple: "tuple",
    list: "list",
    dict: "dict",
    dataclasses.replace: "replaced",
    sum: "sum",
    max: "max",
    min: "min",
    any: "any",
    all: "all",
    round: "round",
    isinstance: "isinstance",
    math.floor: "floor",
    math.ceil: "ceil",
    math.prod: "prod",
    math.fsum: "fsum",
    np.float32: "float32",
    np.float64: "float64",
    np.int64: "int64",
    np.int32: "int32",
    np.bool_: "bool_",
    np.zeros: "zeros",
    np.ones: "ones",
    np.empty: "empty",
    np.full: "full",
    np.zeros_like: "zeros_like",
    np.ones_like: "ones_like",
    np.empty_like: "empty_like",
    np.full_like: "full_like",
    np.copy: "copy",
    np.shape: "shape",
    np.ndim: "ndim",
    np.size: "size",
    np.transpose: "transpose",
    np.array: "array",
    np.asarray: "asarray",
    np.asanyarray: "asarray",
    np.asfortranarray: "asfortranarray",
    np.ascontiguousarray: "ascontiguousarray",
    np.where: "where",
    np.expand_dims: "expand_dims",
    np.reshape: "reshape",
    np.ravel: "ravel",
    np.real: "real",
    np.broadcast_to: "broadcast_to",
    np.ndindex: "each",
    np.ndenumerate: "ndenumerate",
    language.each: "each",
    np.broadcast_shapes: "common_shape",
    language.common_shape: "common_shape",
    language.stretched: "stretched",
    language.zero: "zero",
    language.known: "known",
    language.first_result: "first_result",
    language.is_array: "is_array",
    language.is_function: "is_function",
    language.array_like: "array_like",
    language.counted: "counted",
    language.part: "part",
    language.at_axis: "at_axis",
    language.agree: "agree",
    language.check_positions: "check_positions",
    language.checked: "checked_shape",
    language.at_least_zero: "at_least_zero",
    language.require_apart: "require_apart",
    language.result_type: "result_type",
    language.axes_of_length_one: "axes_of_length_one",
    language.from_places: "from_places",
    language.view_from_places: "view_from_places",
    language.ufunc_at: "ufunc_at",
    language.positions_of: "positions_of",
    language.float_positions: "float_positions",
    language.copied: "copied",
    np.ndarray: "empty",
    np.astype: "astype",
    np.round: "round_array",
    np.around: "round_array",
    slice: "slice",
    divmod: "divmod",
    str: "str",
    repr: "repr",
    format: "format",
}

_MOST_NESTED = 60
"""How deeply calls may be nested."""

_MOST_INLINED = 12
"""How often a function may call itself with lists of known length, which get shorter or longer each time."""

_OF_ANY_NUMBER: dict[str, tuple[str, Any]] = {"hypot": ("fabs", 0.0), "gcd": ("absolute", 0), "lcm": ("absolute", 1)}
"""Functions of as many numbers as are given: what they are of one of them, and of none."""


_LAZY = {
    "call_where",
    "call_broadcast_to",
    "call_astype",
    "call_is_array",
    "call_is_function",
    "call_known",
    "call_shape",
    "call_stop_gradient",
    "call_ndim",
    "call_size",
    "call_len",
    "call_array_like",
    "call_real",
    "call_check_positions",
    "call_require_apart",
    "call_result_type",
    "call_view_from_places",
    "call_ufunc_at",
}
"""What takes arrays that are not computed yet."""


_ABOUT_TYPES = frozenset(
    (
        *(np.dtype, np.finfo, np.iinfo, np.issubdtype, np.result_type, np.promote_types, np.can_cast, np.isscalar),
        *(np.iscomplexobj, np.isrealobj),
    )
)
"""What NumPy says about types is known when the function is compiled."""

_GO_THROUGH = {
    *("call_list", "call_tuple", "call_sum", "call_prod", "call_fsum", "call_max", "call_min", "call_any", "call_all"),
    *("call_sorted", "call_map", "call_starmap", "call_filter", "call_reduce", "call_product", "call_combinations"),
    *("call_permutations", "call_enumerate", "call_zip"),
}
"""What goes through an iterator at once, or when somebody goes through what it gives."""

_WITHOUT_AXES = frozenset(("select", "squeeze", "where"))
"""What gives arrays without axes, where it gives numbers here."""

_OPAQUE = frozenset((*("histogram", "i0", "intersect1d", "kaiser", "setdiff1d", "setxor1d", "union1d"),))
"""Functions that give new numbers or arrays of a type and rank that depend on those of their arguments alone."""


def _is_numpys(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == "numpy"


def _rank(value: Value) -> int:
    return value.type.rank if isinstance(value.type, Array) else 0


def values_in(x: Abstract) -> list[Value]:
    """The values that an argument is made of, as far as they have been computed."""
    found = [leaf.array if isinstance(leaf, Lazy) else leaf for leaf in NODES.leaves(x)]
    return [value for value in found if isinstance(value, Value)]


@functools.cache
def writes_parameters(function: Any) -> bool:
    """Whether a function of the library assigns elements of what it is given."""
    node = capture(function).node
    given = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    targets = [t for n in ast.walk(node) for t in (*getattr(n, "targets", ()), getattr(n, "target", None))]
    return any(isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name) and t.value.id in given for t in targets)


def is_library(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("srcdiff.library")


def _element(dtype: str) -> Scalar:
    return Scalar(dtype) if dtype in ("float64", "float32", "bool") else INT
