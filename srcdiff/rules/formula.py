"""From formulas of the rule table to operations."""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Value
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import is_complex
from srcdiff.rules.table import CONSTANTS, OPERATORS, RULES, Rule, application

Environment = Mapping[str, Callable[[], Value]]
Number = int | float | complex
Computed = Callable[[str, Sequence[Value | Number]], Value | None]
"""A function that finds the value of a primitive on arguments, if the program computes it."""


def names_of(rule: Rule, given: Environment, builder: Builder) -> Environment:
    """The names that the formulas of a row read: arguments, and names bound by `let`, written at their first use."""
    names = dict(given)
    for name, expression in rule.let:
        names[name] = functools.cache(functools.partial(build, expression, dict(names), builder))
    return names


def build(expression: ast.expr, names: Environment, builder: Builder) -> Value:
    """Write the formula. Names are looked up at their first use."""
    match expression:
        case ast.Constant():
            return builder.const(expression.value)
        case ast.Name():
            if expression.id in names:
                return names[expression.id]()
            return builder.const(CONSTANTS[expression.id])
        case ast.UnaryOp():
            return builder.apply(OPERATORS[type(expression.op)], build(expression.operand, names, builder))
        case ast.BinOp():
            left, right = build(expression.left, names, builder), build(expression.right, names, builder)
            return builder.apply(OPERATORS[type(expression.op)], left, right)
        case ast.Compare():
            left = build(expression.left, names, builder)
            result: Value | None = None
            for op, node in zip(expression.ops, expression.comparators, strict=True):
                right = build(node, names, builder)
                test = builder.apply(OPERATORS[type(op)], left, right)
                result = test if result is None else builder.apply("logical_and", result, test)
                left = right
            assert result is not None
            return result
        case ast.BoolOp():
            parts = [build(v, names, builder) for v in expression.values]
            result = parts[0]
            for part in parts[1:]:
                result = builder.apply(OPERATORS[type(expression.op)], result, part)
            return result
        case ast.IfExp():
            condition = build(expression.test, names, builder)
            known = builder.constants.get(condition)
            if known is not None:
                return build(expression.body if known else expression.orelse, names, builder)
            body, orelse = build(expression.body, names, builder), build(expression.orelse, names, builder)
            return builder.apply("where", condition, body, orelse)
        case ast.Call(func=ast.Name(id=name)):
            return builder.apply(name, *(build(a, names, builder) for a in expression.args))
    raise AssertionError(ast.dump(expression))


def _calls(formula: ast.expr) -> bool:
    """Whether a formula calls a function that takes long."""
    calls = [n.func.id for n in ast.walk(formula) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return any(not PRIMITIVES[name].cheap for name in calls)


_functions = functools.cache(_calls)
"""The same for formulas of the table, which are there for good."""


def calls_functions(rule: Rule) -> bool:
    """Whether a formula of the row calls a function that takes long, as that of `sin` calls `cos`."""
    return any(_functions(formula) for formula in (*rule.partials.values(), *(f for _, f in rule.let)))


@functools.cache
def _is_slow(rule: str) -> bool:
    formulas = (*RULES[rule].partials.values(), *(f for _, f in RULES[rule].let))
    calls = [n.func for f in formulas for n in ast.walk(f) if isinstance(n, ast.Call)]
    return any(PRIMITIVES[name].slow for name in (rule, *(c.id for c in calls if isinstance(c, ast.Name))))


def calls_slow_functions(rule: Rule) -> bool:
    """Whether the primitive of the row, or a formula of it, takes too long to be tried at many points."""
    return _is_slow(rule.name)


def with_values(rule: Rule, given: Mapping[str, Value], computed: Computed) -> tuple[Rule, dict[str, Value]]:
    """The row, in which names stand for the functions that the program has computed itself, and what all names mean."""
    names = dict(given)

    def value_of(node: ast.expr) -> Value | Number | None:
        match node:
            case ast.Constant(value=int() | float() | complex() as number):
                return number
            case ast.Name(id=name):
                return names.get(name, CONSTANTS.get(name))
        primitive, arguments = application(node)
        values = [value_of(a) for a in arguments]
        known = [v for v in values if v is not None]
        return computed(primitive, known) if len(known) == len(values) else None

    class Named(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.expr:
            value = value_of(node) if _calls(node) else None
            if not isinstance(value, Value):
                self.generic_visit(node)
                return node
            name = f"{len(names)}"  # no other name is like that
            names[name] = value
            return ast.Name(name, ast.Load())

    def named(formula: ast.expr) -> ast.expr:
        found: ast.expr = Named().visit(copy.deepcopy(formula)) if _functions(formula) else formula
        return found

    let = tuple((name, named(formula)) for name, formula in rule.let)
    return replace(rule, partials={name: named(f) for name, f in rule.partials.items()}, let=let), names


def times(
    factor: Value,
    expression: ast.expr,
    names: Environment,
    builder: Builder,
    *,
    strong: bool = False,
    conjugated: bool = False,
) -> Value | None:
    """`factor * formula`, written as a person would: `t / y` for `1 / y`, a choice of products for a choice.

    A `strong` factor makes the product zero if it is zero, also if the formula is infinite or NaN.
    If the formula is zero, as it is for a product by a constant zero, there is nothing to add, whatever the factor is.
    The formula may be `conjugated`, as in the adjoint; of real numbers, that is the formula.
    """

    def built(expression: ast.expr) -> Value:
        value = build(expression, names, builder)
        return builder.apply("conjugate", value) if conjugated and is_complex(value.type) else value

    again = functools.partial(times, names=names, builder=builder, strong=strong, conjugated=conjugated)
    multiply, divide = ("strong_multiply", "strong_divide") if strong else ("multiply", "divide")
    match expression:
        case ast.Constant(value=value) if value == 0:
            return None
        case ast.Constant(value=value) if value == 1:
            return factor
        case ast.Constant():
            return builder.apply("multiply", factor, built(expression))
        case ast.Name(id="nan") if not strong:
            # whatever the factor: as a product, its derivative would be NaN where it is not chosen
            return builder.const(CONSTANTS["nan"])
        case ast.UnaryOp(op=ast.USub()):
            inner = again(factor, expression.operand)
            return None if inner is None else builder.apply("negative", inner)
        case ast.BinOp(op=ast.Div()) if not strong or _divides_constant(expression):
            top = again(factor, expression.left)
            return None if top is None else builder.apply(divide, top, built(expression.right))
        case ast.IfExp():
            condition = build(expression.test, names, builder)
            known = builder.constants.get(condition)
            if known is not None:
                return again(factor, expression.body if known else expression.orelse)
            sides = [again(factor, side) for side in (expression.body, expression.orelse)]
            chosen = [builder.const(0.0) if side is None else side for side in sides]
            return builder.apply("where", condition, *chosen)
        case ast.Call(func=ast.Name(id="strong_multiply"), args=[first, second]):  # zero if any of the three is
            product = again(factor, second)
            return None if product is None else builder.apply("strong_multiply", built(first), product)
    partial = built(expression)
    return None if builder.constants.get(partial) == 0 else builder.apply(multiply, factor, partial)


def _divides_constant(expression: ast.expr) -> bool:
    """Whether it is a constant, or a quotient of one: a factor takes the place of the constant."""
    match expression:
        case ast.BinOp(op=ast.Div(), left=left):
            return _divides_constant(left)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _divides_constant(operand)
    return isinstance(expression, ast.Constant)
