"""The rule table: for each primitive, its derivative with respect to each argument, as source text.

A formula is an expression in the language of the primitives: the arguments by name, `out` for the result, the names
bound by `let`, the names in `CONSTANTS`, numbers, and calls of primitives; those in `OPERATORS` are written as Python
operators. The values that a formula reads are the values that the reverse sweep needs.

>>> rule = RULES["divide"]
>>> {parameter: ast.unparse(formula) for parameter, formula in rule.partials.items()}
{'x': '1.0 / y', 'y': '-out / y'}
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.quick_dataclasses import dataclass

CONSTANTS: dict[str, complex] = {
    "pi": math.pi,
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "euler_gamma": 0.5772156649015329,
    "log_2": 0.6931471805599453,
    "log_10": 2.302585092994046,
    "sqrt_pi": 1.7724538509055159,
    "sqrt_2": 1.4142135623730951,
    "sqrt_2pi": 2.5066282746310002,
    "one": complex(1.0, -0.0),
}
"""`one + z` and `one - z` have the imaginary part of `z` and of `-z`, also the sign of a zero, which says on which side
of a branch cut a number is. `1.0 + z` loses it.
"""

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "power",
    ast.USub: "negative",
    ast.Not: "logical_not",
    ast.And: "logical_and",
    ast.Or: "logical_or",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.IfExp: "where",
}


@dataclass(frozen=True, slots=True)
class Domain:
    """The sampling domain of an argument: open intervals of real numbers or integers, or truth values."""

    intervals: tuple[tuple[float, float], ...]
    kind: str = "real"
    """`real`, `complex`, `int` or `bool`. Only real and complex arguments have derivatives."""


REAL = Domain(((-3.0, 3.0),))
POSITIVE = Domain(((0.1, 4.0),))
ABOVE_ONE = Domain(((1.05, 4.0),))
INSIDE_ONE = Domain(((-0.95, 0.95),))
UNIT = Domain(((0.05, 0.95),))
AWAY_FROM_ZERO = Domain(((-4.0, -0.5), (0.5, 4.0)))
BETWEEN_POLES = Domain(((-1.8, -1.2), (-0.8, -0.2), (0.2, 4.0)))
PLANE = Domain((), "complex")
INTEGER = Domain(((0.0, 9.0),), "int")
ORDER = Domain(((1.0, 5.0),), "int")
UNITS = Domain(((0.0, 1.0),), "int")
BOOLEAN = Domain(((0.0, 2.0),), "bool")


@dataclass(frozen=True, slots=True)
class Edge:
    """A convention: at `inputs` the partials are `partials`, by agreement."""

    inputs: Mapping[str, float]
    partials: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    parameters: tuple[str, ...]
    partials: Mapping[str, ast.expr]
    """By parameter; one that is missing has a derivative of zero everywhere."""
    let: Sequence[tuple[str, ast.expr]]
    domain: Mapping[str, Domain]
    """By parameter: where the formulas are tested."""
    edges: tuple[Edge, ...]
    at_least: Mapping[str, ast.expr]
    """The partials if the argument is a sum of squares: where that is zero, it is least, and its derivative is zero."""
    refused: frozenset[str] = frozenset()
    """The parameters that a derivative exists for, but no formula."""
    of_complex: Mapping[str, ast.expr] = field(default_factory=dict)
    """The partials with respect to complex arguments, where the formulas for real ones are of real numbers only."""
    by_conjugate: Mapping[str, ast.expr] = field(default_factory=dict)
    """The partials with respect to the conjugates of complex arguments, of functions that are not analytic."""

    def partial(self, parameter: str, *, is_complex: bool) -> ast.expr:
        """The partial with respect to an argument that is complex or not."""
        found = self.of_complex.get(parameter) if is_complex else None
        return self.partials[parameter] if found is None else found


RULES: dict[str, Rule] = {}


def derivative_rule(primitive: str) -> Rule | None:
    return RULES.get(primitive)


def edge(**values: float) -> Edge:
    """The convention for the partials at a point: `edge(x=0.0, x_bar=1.0)`.

    >>> edge(x=0.0, x_bar=1.0)
    Edge(inputs={'x': 0.0}, partials={'x': 1.0})
    """
    partials = {name.removesuffix("_bar"): value for name, value in values.items() if name.endswith("_bar")}
    return Edge({name: value for name, value in values.items() if not name.endswith("_bar")}, partials)


def elementwise(
    *signatures: str,
    let: str = "",
    on: Domain | Mapping[str, Domain] = REAL,
    at: Sequence[Edge] = (),
    at_least: Mapping[str, str] | None = None,
    refused: str = "",
    of_complex: Mapping[str, str] | None = None,
    by_conjugate: Mapping[str, str] | None = None,
    **partials: str,
) -> None:
    """One row: a primitive (or several of the same derivative), and a formula for each argument it depends on.

    >>> elementwise("sine(x)", x="cos(x)")
    Traceback (most recent call last):
    srcdiff.rules.table.RowError: sine(x): `sine` is not a primitive
    """
    for signature in signatures:
        try:
            _add(_row(signature, let, on, at, partials, at_least or {}, refused, of_complex or {}, by_conjugate or {}))
        except (RowError, SyntaxError) as problem:
            raise RowError(f"{signature}: {problem}") from None


def constant(*signatures: str, on: Domain | Mapping[str, Domain] = REAL) -> None:
    """Rows of primitives whose derivative is zero wherever it exists."""
    elementwise(*signatures, on=on)


class RowError(Exception):
    """A row of the table that means nothing: a mistake of ours."""


def _row(
    signature: str,
    let: str,
    on: Domain | Mapping[str, Domain],
    at: Sequence[Edge],
    partials: Mapping[str, str],
    at_least: Mapping[str, str],
    refused: str,
    of_complex: Mapping[str, str],
    by_conjugate: Mapping[str, str],
) -> Rule:
    name, parameters = _signature(signature)
    known = {*parameters, "out"}
    bindings = []
    for bound, expression in _bindings(let):
        _require(bound not in known and bound not in CONSTANTS, f"`{bound}` is bound twice")
        _check(expression, known)
        bindings.append((bound, expression))
        known.add(bound)
    formulas = {}
    for parameter, text in partials.items():
        _require(parameter in parameters, f"there is no argument `{parameter}`")
        formulas[parameter] = _parsed(text)
        _check(formulas[parameter], known)
    least = {parameter: ast.parse(text, mode="eval").body for parameter, text in at_least.items()}
    for parameter, formula in least.items():
        _require(parameter in formulas, f"there is no partial with respect to `{parameter}`")
        _check(formula, known)
    complex_formulas = {parameter: _parsed(text) for parameter, text in of_complex.items()}
    conjugate_formulas = {parameter: _parsed(text) for parameter, text in by_conjugate.items()}
    for parameter, formula in (*complex_formulas.items(), *conjugate_formulas.items()):
        _require(parameter in parameters, f"there is no argument `{parameter}`")
        _check(formula, known)
    _require(set(complex_formulas) <= set(formulas), "an argument that is complex may be real, too")
    read = {name for expression in (*formulas.values(), *dict(bindings).values()) for name in names_read(expression)}
    for bound, _ in bindings:
        _require(bound in read, f"nothing reads `{bound}`")
    for edge_ in at:
        _require(set(edge_.inputs) == set(parameters), "an edge gives a value to every argument")
        _require(set(edge_.partials) <= set(formulas), "an edge is about partials of this row")
    on = on if isinstance(on, Mapping) else dict.fromkeys(parameters, on)
    _require(set(on) <= set(parameters), "a domain is for an argument of this row")
    domain = {parameter: on.get(parameter, REAL) for parameter in parameters}
    _require({*refused.split()} <= {*parameters} - {*formulas}, "a refused argument is one without a formula")
    return Rule(
        name,
        parameters,
        formulas,
        tuple(bindings),
        domain,
        tuple(at),
        least,
        frozenset(refused.split()),
        complex_formulas,
        conjugate_formulas,
    )


def _parsed(text: str) -> ast.expr:
    """The formula; `-1j` is one constant."""
    formula = ast.parse(text, mode="eval").body
    match formula:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=complex() as number)):
            return ast.Constant(complex(0.0, -number.imag))
    return formula


def _add(rule: Rule) -> None:
    _require(rule.name not in RULES, "the second row of this primitive")
    RULES[rule.name] = rule


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise RowError(problem)


def _signature(text: str) -> tuple[str, tuple[str, ...]]:
    """The name and the arguments.

    >>> _signature("arctan2(y, x)")
    ('arctan2', ('y', 'x'))
    """
    call = ast.parse(text, mode="eval").body
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        raise RowError("a signature is written `name(argument, ...)`")
    parameters = tuple(argument.id for argument in call.args if isinstance(argument, ast.Name))
    _require(len(set(parameters)) == len(call.args) and not call.keywords, "arguments have names, all different")
    _require(not {*CONSTANTS, "out"} & set(parameters), "an argument has the name of something else")
    _require_primitive(call.func.id, len(parameters))
    return call.func.id, parameters


def _bindings(text: str) -> Iterator[tuple[str, ast.expr]]:
    """The names that `let="a = ...; b = ..."` binds; each may read the names before it."""
    for statement in ast.parse(text).body:
        if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
            raise RowError("`let` is written `name = formula; ...`")
        _require(len(statement.targets) == 1, "`let` binds one name at a time")
        yield statement.targets[0].id, statement.value


def _require_primitive(name: str, count: int) -> None:
    _require(name in PRIMITIVES, f"`{name}` is not a primitive")
    _require(PRIMITIVES[name].arity == count, f"`{name}` takes {PRIMITIVES[name].arity} arguments, not {count}")


def _check(formula: ast.expr, known: set[str]) -> None:
    """Check that a formula is in the language of the primitives."""
    if isinstance(formula, ast.Name):
        _require(formula.id in known or formula.id in CONSTANTS, f"`{formula.id}` is not bound")
    elif isinstance(formula, ast.Constant):
        _require(type(formula.value) in (int, float, complex), f"`{formula.value!r}` is no number")
    else:
        primitive, arguments = application(formula)
        _require_primitive(primitive, len(arguments))
        for argument in arguments:
            _check(argument, known)


def names_read(formula: ast.expr) -> set[str]:
    """The arguments, `out` and the names bound by `let` that a formula reads.

    >>> sorted(names_read(ast.parse("-sin(pi * x) / out", mode="eval").body))
    ['out', 'x']
    """
    if isinstance(formula, ast.Name):
        return {formula.id} - CONSTANTS.keys()
    if isinstance(formula, ast.Constant):
        return set()
    return {name for argument in application(formula)[1] for name in names_read(argument)}


def application(node: ast.expr) -> tuple[str, tuple[ast.expr, ...]]:
    """The primitive that an expression applies, and to what: operators are primitives too.

    >>> primitive, arguments = application(ast.parse("1.0 if x > y else z", mode="eval").body)
    >>> primitive, [ast.unparse(argument) for argument in arguments]
    ('where', ['x > y', '1.0', 'z'])
    """
    match node:
        case ast.Call(func=ast.Name(id=primitive), args=arguments, keywords=[]):
            return primitive, tuple(arguments)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            return OPERATORS[type(operator)], (left, right)
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if type(comparison) in OPERATORS:
            return OPERATORS[type(comparison)], (left, right)
        case ast.BoolOp(op=connective, values=[left, right]):
            return OPERATORS[type(connective)], (left, right)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in OPERATORS:
            return OPERATORS[type(sign)], (operand,)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return OPERATORS[ast.IfExp], (test, body, orelse)
    raise RowError(f"`{ast.unparse(node)}` is not in the language of the primitives")
