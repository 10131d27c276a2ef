"""Functions whose derivative the user declares."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any

from srcdiff.diagnostics import DifferentiationError, Problem, Refusal, Span
from srcdiff.diagnostics.naming_objects import by_differences, declared_as
from srcdiff.frontend.domain.abstract_values import Static, Tuple
from srcdiff.frontend.read import read
from srcdiff.frontend.reading import Reading
from srcdiff.frontend.source.capture import capture
from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import inline
from srcdiff.ir.nodes import Alloc, Apply, Block, Custom, Function, If, Program, Raise, Value, values_around, walk
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import Array, Type, is_inexact
from srcdiff.ir.written_rules import WrittenRule
from srcdiff.library import solvers
from srcdiff.library.externals import NO_SECOND
from srcdiff.library.special_functions import FUNCTIONS
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.descriptions import Description


def rules_share_no_memory(function: Function) -> None:
    """Check that a function with a custom rule neither writes to its arguments nor returns them."""
    problems = []
    for operation in walk(function.body):
        if not isinstance(operation, Custom):
            continue
        sites = points_to(Function("rule", operation.params, operation.body))
        given = set(operation.params)
        if written_sites(operation.body, sites) & given:
            message = "a function with a custom rule writes to its arguments"
            problems.append(Problem("SD304", message, operation.span, help=_A_COPY))
        elif any(sites.get(y, frozenset()) & given for y in operation.body.yields):
            message = "a function with a custom rule returns an argument, or part of it"
            problems.append(Problem("SD304", message, operation.span, help=_A_COPY))
    if problems:
        raise DifferentiationError(list(dict.fromkeys(problems)))


_A_COPY = "work on a copy of the array: `a = a.copy()`"


def reads_parameters(adjoint: Callable[..., Any] | Function, count: int) -> list[bool]:
    """Whether an adjoint function reads each of its first parameters."""
    if isinstance(adjoint, Function):
        used = set(values_around(adjoint.body))
        return [p in used for p in adjoint.params[:count]]
    try:
        node = capture(adjoint).node
    except Refusal:
        return [True] * count
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return [k >= len(names) or names[k] in read for k in range(count)]


def adjoint_values(
    rule: Any,
    builder: Builder,
    args: Sequence[Value],
    outs: Sequence[Value],
    seeds: Sequence[Value],
    span: Span | None,
) -> list[Value | None]:
    """Write the adjoint of a call; return the adjoint of each argument, or None for zero."""
    if isinstance(rule, WrittenRule):
        return written_out(rule.adjoint, rule.given).written(builder, [*args, *outs, *seeds])
    if rule.adjoint is None:
        stand_ins = [_stand_in(a, builder) for a in args]
        places = range(len(args), len(args) + len(outs))
        return list(_transposed(rule.tangent, builder, [*args, *outs], stand_ins, seeds, places, span))
    function = read_rule(rule.adjoint, [*args, *outs], seeds, range(len(args)), span)
    return function.written(builder, [*args, *outs, *seeds])


def without_rule(call: Any, count: int, span: Span | None) -> Problem:
    """A call of a library function that is known, but not its derivative."""
    if call.call is not None and call.call.is_seen:
        message = f"what `{call.name}` draws has no derivative with respect to its parameters"
        return Problem("SD301", message, span, help="hold them constant: `srcdiff.stop_gradient(...)`")
    if call.call is not None:
        is_second = call.call.derivative == NO_SECOND
        help_ = _OF_EXTERNAL_RULES if is_second else "pass `vjp`, `jvp` or `differences` to `srcdiff.external`"
        message = f"`{call.name}` is an external function, and has {call.call.derivative}"
        return Problem("SD301", message, span, help=help_)
    help_ = declared_as(call.name, count, can_be_called=True)
    return Problem("SD301", f"`{call.name}` has no derivative rule", span, help=help_)


_OF_EXTERNAL_RULES = (
    "pass `differences` to `srcdiff.external` beside its `vjp` or `jvp`, or write the derivative as a function that "
    "srcdiff reads: `srcdiff.custom_rule`, on a function that calls it"
)


def no_formula(operation: Apply, parameter: str) -> Problem:
    """A function of SciPy that has a derivative with respect to an argument, but no formula for it."""
    row = PRIMITIVES[operation.primitive]
    known_as = row.scipy[0] if row.scipy else row.name if row.name in FUNCTIONS else ""
    name = f"scipy.special.{known_as}" if known_as else row.name
    what = "a derivative" if known_as else "a second derivative"
    message = f"`{name}` has no formula for {what} with respect to `{parameter}`"
    help_ = f"keep `{parameter}` constant, by `srcdiff.stop_gradient`, or declare a rule: `srcdiff.rule_for`"
    if known_as:
        line = by_differences(f"special.{known_as}", "from scipy import special\n")
        help_ = f"keep `{parameter}` constant, by `srcdiff.stop_gradient`, or {line}"
    return Problem("SD301", message, operation.span, help=help_)


def require_shape(result: Value, model: Value, rule: str, builder: Builder, span: Span | None) -> None:
    """Raise if the result of a rule does not have the shape of its argument or result."""
    for axis in range(result.array.rank):
        other = builder.apply("not_equal", builder.dim(result, axis), builder.dim(model, axis))
        text = f"`{rule}` returns an array whose shape differs from that of its argument or result"
        builder.add(If(other, Block((Raise(ValueError, (text,), span=span),)), Block(), span=span))


def tangent_values(
    rule: Any,
    builder: Builder,
    args: Sequence[Value],
    outs: Sequence[Value],
    dots: Sequence[Value | None],
    span: Span | None,
) -> list[Value | None]:
    """Write the tangent of a call from the tangents of its arguments (None for zero); return those of the results."""
    if rule.tangent is None:
        if rule.adjoint is None:
            raise DifferentiationError([without_rule(rule, len(args), span)])
        stand_ins = [out if isinstance(out.type, Array) else _stand_in(out, builder) for out in outs]
        return list(_transposed(rule.adjoint, builder, [*args, *outs], stand_ins, dots, range(len(args)), span))
    all_dots = [_zero(a, builder) if d is None else d for a, d in zip(args, dots, strict=True)]
    if isinstance(rule, WrittenRule):
        return written_out(rule.tangent, (True,) * len(outs)).written(builder, [*args, *outs, *all_dots])
    function = read_rule(rule.tangent, [*args, *outs], all_dots, range(len(args), len(args) + len(outs)), span)
    return function.written(builder, [*args, *outs, *all_dots])


def _transposed(*given: Any) -> Sequence[Value | None]:
    from srcdiff.passes.transpose import transposed  # which differentiates the rule, for which it needs this module

    return transposed(*given)


@functools.lru_cache(maxsize=64)
def written_out(function: Function, given: tuple[bool, ...]) -> RuleFunction:
    """A rule that is a program, with its derivatives written out."""
    captured = capture(solvers.newton)
    reading = Reading(Program(function, ()), {}, Static(None), (), (), captured, {}, {})
    return RuleFunction(_without_derivatives(reading).main, given)


def _without_derivatives(reading: Reading) -> Program:
    from srcdiff.passes.derivative_expansion import without_derivatives  # which needs the passes, and they this module

    return without_derivatives(reading)


def _stand_in(value: Value, builder: Builder) -> Value:
    """The argument for a parameter whose shape alone is read."""
    return value if isinstance(value.type, Array) else builder.zero(value.type)


def _zero(value: Value, builder: Builder) -> Value:
    if not isinstance(value.type, Array):
        return builder.zero(value.type)
    out = Value(value.type)
    zero: float = 0.0 if is_inexact(value.type) else False if value.type.dtype == "bool" else 0
    builder.add(Alloc(out, (), builder.const(zero), value))
    return out


@dataclass(frozen=True, slots=True)
class RuleFunction:
    """A function that is a rule, read for certain types; `given` of its results are None, for zero."""

    main: Function
    given: tuple[bool, ...]

    def written(self, builder: Builder, values: list[Value]) -> list[Value | None]:
        """Write its body with these arguments; return its results."""
        yields = iter(inline(self.main, values, builder))
        return [next(yields) if given else None for given in self.given]


def read_rule(
    rule: Callable[..., Any], known: Sequence[Value], linear: Sequence[Value], like: range, span: Span | None
) -> RuleFunction:
    """A rule, which takes the arguments and results of a call and then its linear arguments.

    Its results have the types of the parameters at the positions `like`. Rules of the library never change, so they are
    cached.
    """
    types = tuple(v.type for v in (*known, *linear))
    find = _read_once if str(getattr(rule, "__module__", "")).startswith("srcdiff.library") else _read_rule
    return find(rule, types, len(known), like, span)


def _read_rule(
    rule: Callable[..., Any], types: tuple[Type, ...], known: int, like: range, span: Span | None
) -> RuleFunction:
    name = named(rule)
    try:
        captured = capture(rule)
    except Refusal as refusal:
        raise DifferentiationError([refusal.problem] if refusal.problem is not None else []) from None
    names = [a.arg for a in (*captured.node.args.posonlyargs, *captured.node.args.args)]
    if len(names) != len(types):
        message = f"the rule `{name}` takes {len(names)} arguments, but needs {len(types)}"
        raise DifferentiationError([Problem("SD306", message, span)])
    descriptions = {n: Description("value", type_) for n, type_ in zip(names, types, strict=True)}
    reading = read(captured, descriptions, inside=span)
    if reading.outside:
        message = f"`{name}` reads `{reading.outside[0].name}`, which is not one of its arguments"
        raise DifferentiationError([Problem("SD306", message, span)])
    program = _without_derivatives(reading)
    if program.callees:
        message = f"the rule `{name}` calls the recursive function `{program.callees[0].name}`"
        raise DifferentiationError([Problem("SD306", message, span, help="write the recursion in the rule as a loop")])
    main = program.main
    if written_sites(main.body, points_to(main)) & set(main.params[:known]):
        message = f"`{name}` writes to its arguments"
        raise DifferentiationError([Problem("SD306", message, span, help="write to a copy: `a = a.copy()`")])
    result = reading.result
    items = list(result.items) if isinstance(result, Tuple) else [result]
    if len(items) != len(like):
        message = f"`{name}` returns {len(items)} values where {len(like)} are needed"
        raise DifferentiationError([Problem("SD306", message, span)])
    given = tuple(not (isinstance(i, Static) and i.value is None) for i in items)
    models = [main.params[k] for k, there in zip(like, given, strict=True) if there]
    for result, model in zip(main.body.yields, models, strict=True):
        ranks = [v.type.rank if isinstance(v.type, Array) else 0 for v in (result, model)]
        if is_inexact(model.type) and ranks[0] != ranks[1]:
            found, wanted = (_AXES.get(rank, f"an array of {rank} axes") for rank in ranks)
            message = f"`{name}` returns {found} for `{model.name}`"
            raise DifferentiationError([Problem("SD306", message, span, help=f"return {wanted}")])
    return RuleFunction(main, given)


_read_once = functools.lru_cache(maxsize=64)(_read_rule)


def named(rule: Callable[..., Any] | Function | None) -> str:
    return rule.name if isinstance(rule, Function) else getattr(rule, "__name__", "the rule")


_AXES = {0: "a number", 1: "an array of one axis"}
