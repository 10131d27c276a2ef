"""Turns a formula of the rule table into operations."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Value
from srcdiff.rules.table import CONSTANTS, OPERATORS, Rule

Environment = Mapping[str, Callable[[], Value]]


def names_of(rule: Rule, given: Environment, builder: Builder) -> Environment:
    """What the formulas of a row read: what is given, and what `let` binds, each written when it is first read."""
    names = dict(given)
    for name, expression in rule.let:
        names[name] = functools.cache(functools.partial(build, expression, dict(names), builder))
    return names


def build(expression: ast.expr, names: Environment, builder: Builder) -> Value:
    """Write the formula; each name is asked for only where it is read."""
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


def times(factor: Value, expression: ast.expr, names: Environment, builder: Builder) -> Value | None:
    """`factor * formula`, written as a person would: `t / y` for `1 / y`, a choice of products for a choice."""
    match expression:
        case ast.Constant(value=value) if value == 0:
            return None
        case ast.Constant(value=value) if value == 1:
            return factor
        case ast.Name(
            id="nan"
        ):  # whatever the factor: as a product, its derivative would be NaN where it is not chosen
            return builder.const(CONSTANTS["nan"])
        case ast.UnaryOp(op=ast.USub()):
            inner = times(factor, expression.operand, names, builder)
            return None if inner is None else builder.apply("negative", inner)
        case ast.BinOp(op=ast.Div()):
            top = times(factor, expression.left, names, builder)
            return None if top is None else builder.apply("divide", top, build(expression.right, names, builder))
        case ast.IfExp():
            condition = build(expression.test, names, builder)
            known = builder.constants.get(condition)
            if known is not None:
                return times(factor, expression.body if known else expression.orelse, names, builder)
            sides = [times(factor, side, names, builder) for side in (expression.body, expression.orelse)]
            chosen = [builder.const(0.0) if side is None else side for side in sides]
            return builder.apply("where", condition, *chosen)
    return builder.apply("multiply", factor, build(expression, names, builder))
