"""Functions compiled by Numba: their declared types and options are respected.

@njit("float64(int64)")          what is passed for `n` is converted first: a float loses its fraction, and with it
def f(n):                        its derivative
    return 2.5 * n

Without a signature and declared types of variables, nothing changes.
"""

from __future__ import annotations

import ast
import inspect
import math
from dataclasses import replace
from typing import Any, NoReturn

from numba.core import types

from srcdiff.diagnostics import Problem, Refusal, Span
from srcdiff.frontend.abstract_values import Abstract, Lazy, Optional, Static, Tuple, describe
from srcdiff.frontend.capture import Captured
from srcdiff.frontend.environment import Frame
from srcdiff.frontend.guards import Attribute, Constant, Summary
from srcdiff.frontend.kernel_language import Kernels
from srcdiff.frontend.numba_options import Told, fitting, results, settings, spelled, type_of
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import BOOL, FLOAT, FLOAT32, INT, Array, Scalar, is_float
from srcdiff.signature.descriptions import Description

_ANY_TYPES = "remove the signature from `@njit`, so that Numba infers the types"


class Compiled(Kernels):
    """Reads functions as Numba compiles them."""

    def __init__(self) -> None:
        super().__init__()
        self.whole: set[Value] = set()
        """Floats to differentiate by that the caller gives as integers."""
        self.error_model = ""
        """The requested error model, which overrides the Numba options."""
        self.told_options: dict[str, Any] = {}
        """What the functions that are read ask of the code that is generated."""
        self.differences: dict[tuple[str, int], str] = {}
        """Lines in which compiled functions give other numbers, and why."""

    def enter(self, function: Any, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Abstract:
        raise NotImplementedError

    def enter_captured(
        self, captured: Captured, frame: Frame, bound: dict[str, Abstract], node: ast.AST | None
    ) -> Abstract:
        """Read the body of a function with the semantics of its Numba options."""
        told = captured.told
        where = captured.node if node is None else node
        if told is None:
            return self.enter(captured.function, frame, bound, where)
        self.ask_for(told)
        bound = {n: bound[n] for n in inspect.signature(captured.function, follow_wrapped=False).parameters}
        span, self.span = self.span, self.decorator(captured)
        if told.compiler:
            message = (
                f"`{captured.name}` is compiled with `pipeline_class={told.compiler}`, which may change its results"
            )
            self.refuse_told(message, "remove `pipeline_class`")
        signatures = self.signatures_for(captured, told, bound, span if node is not None else self.span)
        if told.signatures is not None:
            taken = zip(bound.items(), signatures[0].args, strict=True)
            bound = {n: self.as_told(x, t, f"`{n}`", captured) for (n, x), t in taken}
        variables = dict(told.variables)
        bound = {
            n: self.as_told(x, variables[n], f"`{n}`", captured) if n in variables else x for n, x in bound.items()
        }
        self.span = span
        plain = not told.variables and not told.error_model
        result = self.enter(captured.function if plain else (captured.function, told), frame, bound, where)
        return self.returned_by(result, signatures, captured, told)

    def decorator(self, captured: Captured) -> Span:
        """The place of the Numba options."""
        node = captured.node
        of: ast.AST = next(iter(getattr(node, "decorator_list", ())), node)
        line, column = getattr(of, "lineno", 1), getattr(of, "col_offset", 0)
        end = getattr(of, "end_col_offset", column) if getattr(of, "end_lineno", line) == line else 10_000
        return Span(captured.file, line, column, end, captured.name)

    def refuse_told(self, message: str, help_: str) -> NoReturn:
        raise Refusal(Problem("SD307", message, self.span, help=help_))

    def ask_for(self, told: Told) -> None:
        """Remember what the generated code has to do: the strictest of what the functions ask for."""
        asked = told.options
        if "fastmath" in asked:
            asked["fastmath"] &= self.told_options.get("fastmath", asked["fastmath"])
        self.told_options |= asked
        dispatcher = Constant(told.dispatcher)
        self.guards.add(Attribute(dispatcher, "_can_compile"), told.dispatcher._can_compile)
        if told != Told():
            self.guards.add(Summary(settings, dispatcher), settings(told.dispatcher))

    # -- signatures --------------------------------------------------------------------------------------------------

    def signatures_for(
        self, captured: Captured, told: Told, bound: dict[str, Abstract], span: Span | None
    ) -> list[Any]:
        """The signature that Numba chooses for the arguments, with those that convert them alike."""
        given = [self.type_given(x) for x in bound.values()]
        known = told.dispatcher.nopython_signatures if told.signatures is None else told.signatures
        found = fitting(known, given, told.dispatcher.typingctx)
        if told.signatures is None:  # it compiles another, unless there is one for exactly these types
            return [s for s in found if all(g is None or g == t for g, t in zip(given, s.args, strict=True))]
        if not found or len(results(found)) > 1:
            signatures = " and ".join(f"`{spelled(s)}`" for s in known)
            given_as = ", ".join(f"`{n}`, {self.in_words(x)}" for n, x in bound.items())
            why = "and only the memory layout decides which of them is called for" if found else "but it is called with"
            message = f"`{captured.name}` is compiled for {signatures}, {why} {given_as}"
            raise Refusal(Problem("SD304", message, span, help=f"convert the arguments, or {_ANY_TYPES}"))
        return found

    def type_given(self, x: Abstract) -> Any:
        """The type of an argument as Numba sees it."""
        if isinstance(x, Value) and x in self.whole:
            return types.int64
        if isinstance(x, Tuple):
            parts = [self.type_given(i) for i in x.items]
            return None if None in parts else types.BaseTuple.from_types(tuple(parts), x.kind)
        return type_of(describe(x))

    def returned_by(self, result: Abstract, signatures: list[Any], captured: Captured, told: Told) -> Abstract:
        """What comes back from a function, in the type that its signature has for it."""
        if not signatures:
            return result
        type_, span = signatures[0].return_type, self.span
        self.span = self.decorator(captured)
        if told.signatures is None:
            self.require_same_kind(result, type_, captured)
        else:
            result = self.as_told(result, type_, "the result", captured)
        self.span = span
        return result

    def require_same_kind(self, result: Abstract, type_: Any, captured: Captured) -> None:
        """Refuse a function that Numba has compiled to return integers, where it returns floats."""
        found = result.type if isinstance(result, Value) else None
        if isinstance(found, Scalar) and is_float(found) and isinstance(type_, types.Integer | types.Boolean):
            message = f"Numba compiled `{captured.name}` to return {type_} here, but Python returns a float"
            self.refuse_told(message, "convert the result in the function, and let Numba infer the types")

    # -- conversions -------------------------------------------------------------------------------------------------

    def declared(self, frame: Frame, name: str, value: Abstract) -> Abstract:
        """The assigned value, converted to the declared Numba type of the variable."""
        captured = frame.captured
        if captured is None or captured.told is None:
            return value
        type_ = dict(captured.told.variables).get(name)
        return value if type_ is None else self.as_told(value, type_, f"`{name}`", captured)

    def as_told(self, x: Abstract, type_: Any, what: str, captured: Captured) -> Abstract:
        """Something converted to a type of Numba's, as Numba does it."""
        parts: Any = type_
        match type_:
            case types.Optional() if x != Static(None) and not isinstance(x, Optional):
                return self.as_told(x, type_.type, what, captured)
            case types.BaseTuple() if isinstance(x, Tuple):
                items = zip(x.items, parts, strict=True)
                return replace(x, items=tuple(self.as_told(i, t, what, captured) for i, t in items))
            case types.Number() | types.Boolean():
                return self.number_told(x, type_, what, captured)
            case types.Array():
                found = describe(x)
                if found.kind == "value" and found != Description("value", Array(str(type_.dtype), type_.ndim)):
                    message = f"{what} of `{captured.name}` is {spelled(type_)} in Numba but {found.detail} in NumPy"
                    self.refuse_told(message, f"convert it with `.astype`, or {_ANY_TYPES}")
        return x

    def number_told(self, x: Abstract, type_: Any, what: str, captured: Captured) -> Abstract:
        kind = _KINDS.get(str(type_))
        if kind is None:
            message = f"{what} of `{captured.name}` has the type {type_}, which is not supported"
            self.refuse_told(message, "use a signed integer type, `float64` or `float32`")
        half = 2 ** (type_.bitwidth - 1) if kind == INT else 0
        if isinstance(x, Static) and isinstance(x.value, bool | int | float) and kind != FLOAT32:
            if kind == INT and not (math.isfinite(x.value) and -half <= int(x.value) < half):
                self.raise_always(OverflowError, f"{what} does not fit into {type_}")
            return Static({FLOAT: float, INT: int, BOOL: bool}[kind](x.value))
        value = self.number(self.present(x), captured.node)
        if value.type != kind:
            value = self.pythons_own(self.cast(value, kind))
        if kind == INT and type_.bitwidth < 64 and self.held.get(value) != str(type_):
            low = self.apply("less", value, self.const(-half))
            beyond = self.apply("logical_or", low, self.apply("greater_equal", value, self.const(half)))
            self.raise_if(beyond, OverflowError, f"{what} does not fit into {type_}")
        return value

    # -- where compiled code gives other numbers ---------------------------------------------------------------------

    def note_overlap(self, source: Lazy, target: Value, node: ast.AST, *, in_place: bool) -> None:
        """Remember a line in which Numba may read elements of an array that it has written already.

        It makes no copy of an operand that is a view, of which it changes another part `in_place`; where it makes loops
        parallel, not of an expression either.
        """
        told = self.frame.told
        if told is None or self.frame.library:
            return
        is_view = source.plain or source.view_of is not None
        shared = [array for array, _ in source.reads if not self.disjoint(array, target)]
        shared = [array for array in shared if not self.all_or_nothing(array, target)]
        if not told.parallel:
            shared = [array for array in shared if in_place and is_view and not self.reads_ahead(array, target)]
        if shared:
            span = self.span_of(node)
            where = f"line {span.line}, `{span.text.strip()}`"
            numba, instead = "may read elements that it has overwritten", "copy the operand to avoid the difference"
            self.differences[span.file, span.line] = (
                f"{where}: code compiled by Numba {numba}; srcdiff reads all of them first, as NumPy does ({instead})"
            )

    # -- division ----------------------------------------------------------------------------------------------------

    def before_division(self, divisor: Value) -> None:
        """Raise if the divisor is zero, in a function with `error_model='python'`."""
        told = self.frame.told
        if told is None or told.error_model != "python" or self.error_model or self.frame.library:
            return
        if self.constants.get(divisor, 0) == 0:
            zero = self.const(0.0 if is_float(divisor.type) else 0, divisor.scalar)
            self.raise_if(self.apply("equal", divisor, zero), ZeroDivisionError, "division by zero")


_KINDS = {"float64": FLOAT, "float32": FLOAT32, "bool": BOOL, **{f"int{n}": INT for n in (8, 16, 32, 64)}}
"""The types that there are of numbers; integers that are shorter are looked at whether they fit."""
