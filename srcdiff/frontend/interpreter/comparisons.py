"""Comparisons: of numbers, arrays, tuples and objects, identity, and membership."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Choice,
    Closure,
    Generated,
    Items,
    List,
    Method,
    Object,
    Optional,
    Partial,
    Range,
    Record,
    Slot,
    Static,
    Stored,
    Text,
    Transformed,
    Tuple,
    TypeOf,
    class_of,
    is_array_value,
    is_chosen_text,
    is_instance,
    is_none,
)
from srcdiff.frontend.domain.lattice import same_function
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import IsWritten
from srcdiff.frontend.interpreter.arithmetic import is_text
from srcdiff.frontend.interpreter.device_names import require_values
from srcdiff.frontend.interpreter.dictionaries import is_changing, is_there
from srcdiff.frontend.interpreter.evaluation import evaluate, evaluate_lazily, known_value
from srcdiff.frontend.interpreter.forks import branch_on, left_by_branches
from srcdiff.frontend.interpreter.indexing import key_position
from srcdiff.frontend.interpreter.instances import call_special, defines, truth
from srcdiff.frontend.interpreter.iteration import drained, fold_elements
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import elementwise
from srcdiff.frontend.interpreter.list_storage import contents_of_list, perhaps
from srcdiff.frontend.interpreter.number_kinds import is_pythons, pythons_own
from srcdiff.frontend.interpreter.numbers import NUMBERS, as_number, as_numbers, is_array
from srcdiff.frontend.interpreter.presence import needed, present
from srcdiff.frontend.interpreter.representation import as_value, refuse_text
from srcdiff.frontend.interpreter.tables import COMPARISONS, expression
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import BOOL, INT

_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("less", operator.lt),
    ast.LtE: ("less_equal", operator.le),
    ast.Gt: ("greater", operator.gt),
    ast.GtE: ("greater_equal", operator.ge),
    ast.Eq: ("equal", operator.eq),
    ast.NotEq: ("not_equal", operator.ne),
}


_FUNCTIONS = Closure | Partial | Transformed | Method


@expression(ast.Compare)
def comparison(reader: Reader, node: ast.Compare) -> Abstract:
    if len(node.ops) > 1 and any(_may_raise(c) for c in node.comparators[1:]):
        return compare_in_iteration(reader, node)
    left = evaluate_lazily(reader, node.left)
    result: Abstract | None = None
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right_node, ast.Set):
            right_node = ast.copy_location(ast.Tuple(right_node.elts, ast.Load()), right_node)
        right = evaluate_lazily(reader, right_node)
        test = compare(reader, op, left, right, node)
        if result is None:
            result = test
        elif isinstance(result, Static):
            result = test if result.value else result
        elif isinstance(test, Static):
            result = result if test.value else test
        else:
            both = is_pythons(reader, result) and is_pythons(reader, test)
            result = reader.apply("logical_and", as_value(reader, result), as_value(reader, test))
            result = pythons_own(reader, result) if both else result
        left = right
    assert result is not None
    return result


def compare_in_iteration(reader: Reader, node: ast.Compare) -> Abstract:
    """A chain of comparisons. A comparison is only evaluated if all before it hold."""
    key = (reader.frame.number, "%choice")

    def link(k: int, left: Abstract) -> Abstract:
        right = evaluate(reader, node.comparators[k])
        test = compare(reader, node.ops[k], left, right, node)
        if k + 1 == len(node.ops):
            return test
        if isinstance(test, Static):
            return link(k + 1, right) if test.value else test

        def further() -> None:
            reader.cells[key] = link(k + 1, right)

        def ends() -> None:
            reader.cells[key] = Static(False)

        branch_on(reader, as_value(reader, test), further, ends)
        return left_by_branches(reader, key)

    return link(0, evaluate(reader, node.left))


def compare(reader: Reader, op: ast.cmpop, left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
    for x in (left, right):
        found = COMPARISONS[type(x)](reader, op, left, right, node) if isinstance(x, Record | Object) else None
        if found is not None:
            return found
    if is_chosen_text(left) or is_chosen_text(right):
        return compare_chosen(reader, op, left, right, node)
    if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        left, right = needed(reader, left, node), needed(reader, right, node)
    sides = [x for x in (left, right) if isinstance(x, Optional)]
    if not sides:
        kinds = {isinstance(x, Tuple | List) for x in (left, right) if not is_array_value(x)}
        if isinstance(op, ast.Eq | ast.NotEq) and len(kinds) == 2:
            return Static(isinstance(op, ast.NotEq))  # a tuple is not a number
        return compare_values(reader, op, left, right, node)
    other = right if sides[0] is left else left
    if is_none(other) and isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        there = as_value(reader, sides[0].flag)
        return there if isinstance(op, ast.IsNot | ast.NotEq) else reader.apply("logical_not", there)
    if isinstance(op, ast.Eq | ast.NotEq) and not any(is_array(_inside(x)) for x in (left, right)):
        return compare_presence(reader, op, left, right, node)
    if isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn):
        reader.refuse("SD205", node, "one side of the comparison may be `None`", help_="test it with `is None` first")
    return compare_values(reader, op, present(reader, left), present(reader, right), node)


def compare_chosen(reader: Reader, op: ast.cmpop, left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
    """A comparison with one of several strings: it is decided for each of them."""
    among, is_left = (left, True) if is_chosen_text(left) else (right, False)
    result: Abstract = Static(False)
    for option, is_it in options_of(reader, among):
        test = compare(reader, op, option, right, node) if is_left else compare(reader, op, left, option, node)
        if isinstance(test, Static) and not test.value:
            continue
        holds = is_it if isinstance(test, Static) else reader.apply("logical_and", is_it, as_value(reader, test))
        result = holds if isinstance(result, Static) else reader.apply("logical_or", as_value(reader, result), holds)
    return pythons_own(reader, result) if isinstance(result, Value) else result


def compare_values(reader: Reader, op: ast.cmpop, left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
    require_values(reader, node, left, right)
    is_about_types = isinstance(left, TypeOf) or isinstance(right, TypeOf)
    if is_about_types and isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        return is_type(reader, left, right, isinstance(op, ast.IsNot | ast.NotEq), node)
    if isinstance(op, ast.Is | ast.IsNot):
        return is_identical(reader, left, right, isinstance(op, ast.IsNot), node)
    if isinstance(op, ast.In | ast.NotIn):
        return contains(reader, left, right, isinstance(op, ast.NotIn), node)
    if isinstance(op, ast.Eq | ast.NotEq) and (is_array_value(left) or is_array_value(right)):
        reader.note_meaning("==" if isinstance(op, ast.Eq) else "!=", node)
    primitive, fold = _COMPARE[type(op)]
    if Text in (type(left), type(right)) and is_text(left) and is_text(right):
        refuse_text(reader, "a text with numbers is compared", node)
    if isinstance(left, Static) and isinstance(right, Static):
        try:
            return Static(bool(fold(left.value, right.value)), left.numpys or right.numpys)
        except TypeError as error:
            reader.refuse("SD203", node, str(error))
    if isinstance(left, Static) != isinstance(right, Static):
        text = next(x for x in (left, right) if isinstance(x, Static))
        if not isinstance(text.value, NUMBERS):
            if not isinstance(op, ast.Eq | ast.NotEq):
                message = f"{in_words(reader, left)} and {in_words(reader, right)} cannot be ordered"
                reader.refuse("SD203", node, message)
            return Static(isinstance(op, ast.NotEq))
    if is_array(left) or is_array(right):
        return elementwise(reader, (left, right), lambda v: compare(reader, op, v[0], v[1], node), "bool", node)
    if isinstance(left, Tuple) and isinstance(right, Tuple) and isinstance(op, ast.Eq | ast.NotEq):
        return equal_tuples(reader, op, left, right, node)
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        return ordered_tuples(reader, op, left, right, node)
    result = reader.apply(primitive, *as_numbers(reader, left, right, node))
    return pythons_own(reader, result) if is_pythons(reader, left) and is_pythons(reader, right) else result


def _inside(x: Abstract) -> Abstract:
    return x.value if isinstance(x, Optional) else x


def compare_presence(reader: Reader, op: ast.cmpop, left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
    """`==` of numbers that may be `None`: both are `None`, or neither is and the numbers are equal."""
    flags = [as_value(reader, x.flag) for x in (left, right) if isinstance(x, Optional)]
    same = as_value(reader, compare(reader, ast.Eq(), _inside(left), _inside(right), node))
    for flag in flags:
        same = reader.apply("logical_and", flag, same)
    if len(flags) == 2:
        neither = reader.apply("logical_not", reader.apply("logical_or", *flags))
        same = reader.apply("logical_or", neither, same)
    return reader.apply("logical_not", same) if isinstance(op, ast.NotEq) else same


def is_type(reader: Reader, left: Abstract, right: Abstract, negated: bool, node: ast.AST) -> Abstract:
    """Whether two classes are the same, if one of them is Python's or NumPy's class of a number."""
    one, other = ((x.value,) if isinstance(x, Static) else getattr(x, "options", ()) for x in (left, right))
    if any(a is b for a in one for b in other):
        message = "srcdiff cannot tell here whether this number is Python's or NumPy's"
        reader.refuse("SD205", node, message, help_="use `isinstance`")
    return Static(negated)


def is_identical(reader: Reader, left: Abstract, right: Abstract, negated: bool, node: ast.AST) -> Abstract:
    """`is`, for operands whose identity is known: constants, functions, lists, objects, truth values."""
    if isinstance(left, Object) and isinstance(right, Object):
        return Static((left is right) != negated)
    if Choice in (type(left), type(right)) and {type(left), type(right)} <= {Choice, Object}:
        same = is_same_object(reader, left, right)
        return reader.apply("logical_not", same) if negated else same
    if is_instance(left) and is_instance(right):
        kinds = {class_of(x) for x in (left, right)}
        if len(kinds) > 1:
            return Static(negated)
        raise IsWritten(kinds.pop())  # identity matters
    if isinstance(left, Static) and isinstance(right, Static):
        return Static((left.value is right.value) != negated)
    constant = left if isinstance(left, Static) else right if isinstance(right, Static) else None
    other = right if constant is left else left
    if constant is not None and isinstance(constant.value, bool) and isinstance(other, Value) and other.type == BOOL:
        wanted = constant.value != negated
        return other if wanted else reader.apply("logical_not", other)
    if constant is not None and (not isinstance(constant.value, NUMBERS) or is_array(other)):
        return Static(negated)
    function, another = (left, right) if isinstance(left, _FUNCTIONS) else (right, left)
    if isinstance(function, _FUNCTIONS) and isinstance(another, Static | Value):
        return Static(negated)
    lists = [x for x in (left, right) if isinstance(x, List)]
    certain = not any(isinstance(reader.cells[x], Slot) or len(perhaps(reader, x)) > 1 for x in lists)
    if left is right or (len(lists) == 2 and certain):
        return Static((left is right) != negated)
    message = "srcdiff cannot tell here whether these two are the same object"
    reader.refuse("SD205", node, message, help_="compare with `==`")


def is_same_object(reader: Reader, left: Abstract, right: Abstract) -> Value:
    """Whether two are the same object, of which at least one is chosen at run time."""
    result = reader.const(False)
    for one, is_left in options_of(reader, left):
        for other, is_right in options_of(reader, right):
            if same_function(one, other):
                result = reader.apply("logical_or", result, reader.apply("logical_and", is_left, is_right))
    return result


def options_of(reader: Reader, x: Abstract) -> list[tuple[Abstract, Value]]:
    """The options of a choice, each with the truth value that it is chosen."""
    if not isinstance(x, Choice):
        return [(x, reader.const(True))]
    return [(o, reader.apply("equal", x.number, reader.const(k))) for k, o in enumerate(x.options)]


def equal_tuples(reader: Reader, op: ast.cmpop, left: Tuple, right: Tuple, node: ast.AST) -> Abstract:
    if len(left.items) != len(right.items):
        return Static(isinstance(op, ast.NotEq))
    result: Abstract = Static(True)
    for a, b in zip(left.items, right.items, strict=True):
        test = compare(reader, ast.Eq(), a, b, node)
        if isinstance(result, Static) and result.value:
            result = test
        elif not (isinstance(test, Static) and test.value):
            result = reader.apply("logical_and", as_value(reader, result), as_value(reader, test))
    if isinstance(op, ast.Eq):
        return result
    return (
        Static(not result.value)
        if isinstance(result, Static)
        else reader.apply("logical_not", as_value(reader, result))
    )


def ordered_tuples(reader: Reader, op: ast.cmpop, left: Tuple, right: Tuple, node: ast.AST) -> Abstract:
    """Lexicographic comparison. If all common items are equal, the longer tuple is the larger one."""
    result: Abstract = Static(_COMPARE[type(op)][1](len(left.items), len(right.items)))
    strictly = ast.Lt() if isinstance(op, ast.Lt | ast.LtE) else ast.Gt()
    for a, b in reversed(list(zip(left.items, right.items, strict=False))):
        same, decides = compare(reader, ast.Eq(), a, b, node), compare(reader, strictly, a, b, node)
        if isinstance(same, Static):
            result = result if same.value else decides
        else:
            further = reader.apply("logical_and", as_value(reader, same), as_value(reader, result))
            result = reader.apply("logical_or", as_value(reader, decides), further)
    return result


def contains(reader: Reader, item: Abstract, group: Abstract, negated: bool, node: ast.AST) -> Abstract:
    """`in` for ranges, and for sequences of a length known at run time."""
    found: Abstract
    if isinstance(group, Generated):
        group = drained(reader, group, node)
    if defines(group, "__contains__"):
        found = truth(reader, call_special(reader, group, "__contains__", [item], node), node)
    elif isinstance(group, Range):
        found = in_range(reader, item, group, node)
    elif (is_array_value(group)) or (isinstance(group, List) and isinstance(contents_of_list(reader, group), Stored)):

        def either(so_far: Abstract, other: Abstract) -> Abstract:
            same = as_value(reader, compare(reader, ast.Eq(), other, item, node))
            return reader.apply("logical_or", as_value(reader, so_far), same)

        found = fold_elements(reader, node, group, Static(False), either)
    else:
        return contains_known(reader, item, group, negated, node)
    if isinstance(found, Static):
        return Static(bool(found.value) != negated)
    return reader.apply("logical_not", as_value(reader, found)) if negated else found


def contains_known(reader: Reader, item: Abstract, group: Abstract, negated: bool, node: ast.AST) -> Abstract:
    if isinstance(group, List):
        contents = contents_of_list(reader, group)
        if isinstance(contents, Items):
            group = Tuple(contents.items)
    if is_changing(group):
        there = is_there(reader, group, item, node)
        if isinstance(there, Static):
            return Static(bool(there.value) != negated)
        return reader.apply("logical_not", as_value(reader, there)) if negated else there
    if isinstance(group, Record) and group.kind.is_mapping:
        return Static((key_position(reader, group, item, node) is None) == negated)
    if isinstance(group, Static) and isinstance(item, Static):
        try:
            return Static((item.value in group.value) != negated)
        except TypeError as error:
            reader.refuse("SD203", node, str(error))
    if isinstance(group, Static) and isinstance(group.value, set | frozenset):
        group = Tuple(tuple(map(Static, sorted(group.value, key=repr))))
    if not isinstance(group, Tuple):
        reader.refuse(
            "SD102",
            node,
            f"`in` with {in_words(reader, group)} is not supported",
            help_="compare the elements in a loop",
        )
    result: Abstract = Static(False)
    for other in group.items:
        test = compare(reader, ast.Eq(), item, other, node)
        if isinstance(test, Static):
            result = Static(True) if test.value else result
        elif isinstance(result, Static):
            result = result if result.value else test
        else:
            result = reader.apply(
                "logical_or", as_value(reader, result), test if isinstance(test, Value) else as_value(reader, test)
            )
    if not negated:
        return result
    return (
        Static(not result.value)
        if isinstance(result, Static)
        else reader.apply("logical_not", as_value(reader, result))
    )


def in_range(reader: Reader, item: Abstract, group: Range, node: ast.AST) -> Abstract:
    parts = (item, group.start, group.stop, group.step)
    if all(isinstance(p, Static) for p in parts):
        number, *bounds = (p.value for p in parts if isinstance(p, Static))
        return Static(number in range(*bounds))
    step = known_value(reader, group.step, "the step of the range", node)
    number = as_number(reader, item, node)
    start, stop = as_number(reader, group.start, node), as_number(reader, group.stop, node)
    low, high = ("less_equal", "less") if step > 0 else ("greater_equal", "greater")
    inside = reader.apply("logical_and", reader.apply(low, start, number), reader.apply(high, number, stop))
    if abs(step) == 1 and number.type == INT:
        return inside
    rest = reader.apply("remainder", reader.apply("subtract", number, start), reader.const(abs(step)))
    return reader.apply("logical_and", inside, reader.apply("equal", rest, reader.const(0)))


def _may_raise(node: ast.AST) -> bool:
    """Whether the evaluation may raise or assign."""
    kinds = (ast.Subscript, ast.Call, ast.NamedExpr, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
    return any(isinstance(n, kinds) for n in ast.walk(node))
