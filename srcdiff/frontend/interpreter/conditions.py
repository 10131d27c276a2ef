"""Truth, comparisons, `and`, `or`, and conditional expressions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from srcdiff.frontend.domain.abstract_values import Abstract, Poison, Static
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.arithmetic import unary
from srcdiff.frontend.interpreter.device_names import require_values
from srcdiff.frontend.interpreter.evaluation import evaluate, evaluate_lazily
from srcdiff.frontend.interpreter.forks import branch_on, left_by_branches, take_side
from srcdiff.frontend.interpreter.instances import truth
from srcdiff.frontend.interpreter.number_kinds import is_pythons, pythons_own
from srcdiff.frontend.interpreter.presence import asks, checked, knowing
from srcdiff.frontend.interpreter.tables import expression
from srcdiff.ir.nodes import Apply, Const, If, Operation, Value
from srcdiff.ir.types import BOOL

_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("negative", operator.neg),
    ast.UAdd: ("positive", operator.pos),
    ast.Invert: ("invert", operator.invert),
}


def joined_by_operators(node: ast.BoolOp) -> Iterator[ast.BoolOp]:
    """Nested `and` and `or`, as one list of operands."""
    yield node
    for operand in node.values:
        if isinstance(operand, ast.BoolOp):
            yield from joined_by_operators(operand)


def _never_raises(operation: Operation) -> bool:
    """Whether an expression can be evaluated although Python would not evaluate it."""
    if isinstance(operation, Apply):
        return operation.primitive not in ("divide", "floor_divide", "remainder", "power", "left_shift", "right_shift")
    return isinstance(operation, Const)


class Known(ast.expr):
    """An expression that is only evaluated after a test with a known outcome."""

    _fields = ("inner",)

    def __init__(self, inner: ast.expr, test: ast.expr, truth: bool) -> None:
        super().__init__()
        self.inner, self.test, self.truth = inner, test, truth
        ast.copy_location(self, inner)


def condition(reader: Reader, node: ast.expr) -> Static | Value:
    """The truth value of an expression that is only used as a condition."""
    if isinstance(node, ast.BoolOp):
        reader.conditions |= set(joined_by_operators(node))
    return truth(reader, evaluate(reader, node), node)


@expression(Known)
def known_expression(reader: Reader, node: Known) -> Abstract:
    with knowing(reader, node.test, node.truth):
        return evaluate(reader, node.inner)


@expression(ast.BoolOp)
def boolean_operation(reader: Reader, node: ast.BoolOp) -> Abstract:
    if not asks(reader, node):
        return bool_op(reader, node)
    is_and = isinstance(node.op, ast.And)
    values = list(node.values)
    for k in range(1, len(values)):
        before = values[0] if k == 1 else ast.BoolOp(node.op, node.values[:k])
        values[k] = Known(node.values[k], before, is_and)
    known = ast.copy_location(ast.BoolOp(node.op, values), node)
    reader.conditions |= {known} if node in reader.conditions else set()
    return bool_op(reader, known)


def bool_op(reader: Reader, node: ast.BoolOp) -> Abstract:
    result = evaluate(reader, node.values[0])
    for operand in node.values[1:]:
        result = short_circuit(reader, isinstance(node.op, ast.And), result, operand, node)
    return result


def short_circuit(reader: Reader, is_and: bool, left: Abstract, right: ast.expr, node: ast.AST) -> Abstract:
    whether = truth(reader, left, node)
    if isinstance(whether, Static):
        return evaluate(reader, right) if whether.value == is_and else left
    result: list[Abstract] = []
    asked = node in reader.conditions

    def right_side() -> None:
        value = evaluate(reader, right)
        result.append(truth(reader, value, right) if asked else value)

    def keep() -> None:
        result.append(whether if asked else left)

    key = (reader.frame.number, "%choice")
    branch_on(
        reader,
        whether,
        lambda: take_side(reader, key, right_side if is_and else keep, result),
        lambda: take_side(reader, key, keep if is_and else right_side, result),
    )
    return simplified_choice(reader, left_by_branches(reader, key), is_and)


def simplified_choice(reader: Reader, chosen: Abstract, is_and: bool) -> Abstract:
    """A branch that computes one truth value from scalars, written as `and` or `or` for readability."""
    last = reader.operations[-1] if reader.operations else None
    if isinstance(chosen, Poison):
        return checked(reader, chosen, "the result", None)
    if not (isinstance(last, If) and isinstance(chosen, Value) and chosen.type == BOOL and last.outs == (chosen,)):
        return chosen
    block = last.then if is_and else last.orelse
    if not all(_never_raises(o) for o in block.operations):
        return chosen
    other = last.orelse if is_and else last.then
    if other.yields[0] is not last.condition and reader.constants.get(other.yields[0]) is not (not is_and):
        return chosen
    reader.operations.pop()
    reader.operations.extend(block.operations)
    result = reader.apply("logical_and" if is_and else "logical_or", last.condition, block.yields[0])
    both = is_pythons(reader, last.condition) and is_pythons(reader, block.yields[0])
    return pythons_own(reader, result) if both else result


@expression(ast.IfExp)
def conditional_expression(reader: Reader, node: ast.IfExp) -> Abstract:
    if not asks(reader, node.test):
        return if_exp(reader, node)
    body, orelse = Known(node.body, node.test, True), Known(node.orelse, node.test, False)
    return if_exp(reader, ast.copy_location(ast.IfExp(node.test, body, orelse), node))


def if_exp(reader: Reader, node: ast.IfExp) -> Abstract:
    truth = condition(reader, node.test)
    if isinstance(truth, Static):
        return evaluate(reader, node.body if truth.value else node.orelse)
    key = (reader.frame.number, "%choice")

    def side(expression: ast.expr) -> None:
        reader.cells[key] = evaluate(reader, expression)

    branch_on(reader, truth, lambda: side(node.body), lambda: side(node.orelse))
    chosen = left_by_branches(reader, key)
    return checked(reader, chosen, "the result", node)


@expression(ast.UnaryOp)
def unary_operation(reader: Reader, node: ast.UnaryOp) -> Abstract:
    if isinstance(node.op, ast.Not):
        truth = condition(reader, node.operand)
        if isinstance(truth, Static):
            return Static(not truth.value)
        return pythons_own(reader, reader.apply("logical_not", truth))
    operand = evaluate_lazily(reader, node.operand)
    primitive, fold = _UNARY[type(node.op)]
    require_values(reader, node, operand)
    if isinstance(operand, Static):
        try:
            return Static(fold(operand.value))
        except TypeError as error:
            reader.refuse("SD203", node, str(error))
    return unary(reader, primitive, operand, node)
