"""Augmented assignment: `x += ...` changes arrays and lists in place."""

from __future__ import annotations

import ast

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Element,
    List,
    Namespace,
    Object,
    Record,
    Structured,
    is_array_value,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Mark, name_at
from srcdiff.frontend.interpreter.aliases import forget_doubts
from srcdiff.frontend.interpreter.arithmetic import arithmetic, binary, matrix_product
from srcdiff.frontend.interpreter.array_assignment import assign_array, require_cast
from srcdiff.frontend.interpreter.assignments import assign_target, place_in_array, set_attribute, write_position
from srcdiff.frontend.interpreter.attributes import attribute_of
from srcdiff.frontend.interpreter.dictionaries import changed, is_dictionary, require_constant, write_item
from srcdiff.frontend.interpreter.evaluation import evaluate, evaluate_lazily
from srcdiff.frontend.interpreter.index_arrays import assign_part, read_picked
from srcdiff.frontend.interpreter.indexing import index_of_instance, read_position, subscript
from srcdiff.frontend.interpreter.instances import call_special, defines
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import as_lazy
from srcdiff.frontend.interpreter.list_storage import changing, is_row, stored_contents, write_row
from srcdiff.frontend.interpreter.lists import list_extend
from srcdiff.frontend.interpreter.made_dictionaries import is_table
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.numbers import as_number, is_array
from srcdiff.frontend.interpreter.presence import needed
from srcdiff.frontend.interpreter.representation import as_stored, write_element
from srcdiff.frontend.interpreter.structured_arrays import assign_records
from srcdiff.frontend.interpreter.tables import IN_PLACE, statement
from srcdiff.ir.nodes import Block, Call, Index, Item, NewAxis, Slice, Store, Value, walk
from srcdiff.ir.types import BOOL, Scalar, is_inexact
from srcdiff.signature.trees import NODES


def _holds(x: Abstract, value: Value) -> bool:
    return any(leaf is value for leaf in NODES.leaves(x))


@statement(ast.AugAssign)
def augmented_assignment(reader: Reader, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Subscript):
        augment_element(reader, node, target)
        return
    owner: Abstract = MISSING
    if isinstance(target, ast.Attribute):
        load = ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
        if any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(target.value)):
            owner = evaluate(reader, target.value)
            old = attribute_of(reader, owner, load)
        else:
            old = evaluate(reader, load)
    else:
        old = evaluate(reader, ast.copy_location(ast.Name(target.id, ast.Load()), target))
    changes_no_other(reader, old, node)
    if isinstance(old, List) and augment_in_place(reader, node, old):
        return
    if isinstance(old, Value) and is_array(old) and isinstance(node.op, ast.MatMult):
        product = matrix_product(reader, old, evaluate(reader, node.value), node)
        require_cast(reader, as_lazy(reader, product, node).dtype, old, node)
        assign_array(reader, old, product, node)
        return
    if is_array_value(old):
        assign_array(reader, old, evaluate_operand(reader, node.value), node, type(node.op))
        return
    value = forced(reader, augmented(reader, node, old))
    if isinstance(target, ast.Attribute) and owner is not MISSING:
        set_attribute(reader, owner, target.attr, value, target)
    else:
        assign_target(reader, target, value)


def augmented(reader: Reader, node: ast.AugAssign, old: Abstract) -> Abstract:
    """The value of `x += ...` for a type that is not updated in place, unless its class defines the operator."""
    value = evaluate(reader, node.value)
    special = IN_PLACE.get(type(old))
    found = None if special is None else special(reader, type(node.op), old, value, node)
    return binary(reader, type(node.op), old, value, node) if found is None else found


def changes_no_other(reader: Reader, old: Abstract, node: ast.AST) -> None:
    """`x += ...` of an array without axes changes it under all its names; of a number it rebinds the name."""
    if node not in reader.shared and isinstance(old, Value) and isinstance(old.type, Scalar):
        is_possible = old in reader.boxes or reader.boxed  # for most programs false
        names = reader.cells.items() if is_possible else ()
        holders = {k for k, x in names if name_at(k)[:1] != "%" and _holds(x, old)}
        is_box = old in reader.boxes or bool(reader.boxed & holders)
        if is_box and (reader.boxes.get(old) or len(holders) > 1):
            message = "this changes a zero-dimensional array in place, and other names may refer to the same array"
            instead = "convert it to a number: `float(...)`"
            reader.shared[node] = Problem("SD303", message, reader.span_of(node), help=instead)
    if node in reader.shared:
        raise Refusal(reader.shared[node])


def augment_in_dictionary(reader: Reader, node: ast.AugAssign, base: Abstract) -> None:
    """`params["w"] += ...` updates an array in place, and replaces a number."""
    assert isinstance(node.target, ast.Subscript)
    key = evaluate(reader, node.target.slice)
    assert isinstance(base, Record | Object)
    require_constant(reader, base, key, node)
    old = subscript(reader, base, node.target.slice, node)
    if isinstance(old, Value) and is_array(old):
        assign_array(reader, old, evaluate_operand(reader, node.value), node, type(node.op))
        return
    if isinstance(old, List) and augment_in_place(reader, node, old):
        return
    if not isinstance(base, Namespace):
        changed(reader, base, node)
    new = binary(reader, type(node.op), old, evaluate(reader, node.value), node)
    write_item(reader, base, key, forced(reader, new), node)


def evaluate_operand(reader: Reader, node: ast.expr) -> Abstract:
    """An operand that is read before any write, and not used afterwards."""
    before = reader.state
    value = evaluate_lazily(reader, node)
    forget_doubts(reader, before)
    return value


def augment_in_instance(reader: Reader, node: ast.AugAssign, target: ast.Subscript, base: Abstract) -> None:
    """`a[i] += ...` of an instance: `a.__setitem__(i, a.__getitem__(i) + ...)`."""
    where = index_of_instance(reader, target)
    old = call_special(reader, base, "__getitem__", [where], target)
    if isinstance(old, List) or (isinstance(node.op, ast.MatMult) and is_array(old)):
        message = f"this update of {in_words(reader, old)} that `__getitem__` returns is not supported"
        reader.refuse("SD102", node, message)
    if isinstance(old, Value) and is_array(old):
        assign_array(reader, old, evaluate_operand(reader, node.value), node, type(node.op))
        if not is_table(base):
            call_special(reader, base, "__setitem__", [where, old], target)
        return
    new = forced(reader, augmented(reader, node, old))
    call_special(reader, base, "__setitem__", [where, new], target)


def augment_element(reader: Reader, node: ast.AugAssign, target: ast.Subscript) -> None:
    base = evaluate(reader, target.value)
    if is_dictionary(base):
        augment_in_dictionary(reader, node, base)
        return
    base = needed(reader, base, target)
    if isinstance(base, List):
        augment_list(reader, node, target, base)
        return
    if isinstance(base, Structured | Element):
        augment_field(reader, node, target, base)
        return
    if defines(base, "__setitem__") and defines(base, "__getitem__"):
        augment_in_instance(reader, node, target, base)
        return
    base, items, place = place_in_array(reader, base, target)
    if place is None:
        augment_part(reader, node, base, items)
        return
    if isinstance(node.op, ast.Add | ast.Sub) and is_inexact(base.type):
        mark = reader.mark()
        amount = as_number(reader, evaluate(reader, node.value), node)
        if not any(o.blocks() or not o.defines() for o in reader.operations[mark.operations :]):
            amount = as_stored(reader, base, amount)
            if isinstance(node.op, ast.Sub):
                amount = reader.apply("negative", amount)
            write_element(reader, base, place, amount, adds=True)
            return
        reader.go_back(mark)  # the right side may change the element, so it is read first, as in Python
    old = reader.load(base, place)
    value = evaluate(reader, node.value)
    if old.type == BOOL and isinstance(node.op, ast.Add):  # the element is NumPy's, and so is the result
        new: Abstract = arithmetic(reader, ast.Add, old, as_number(reader, value, node), node)
    else:
        new = binary(reader, type(node.op), old, value, node)
    write_element(reader, base, place, as_number(reader, new, node))


def augment_field(reader: Reader, node: ast.AugAssign, target: ast.Subscript, base: Structured | Element) -> None:
    """`p["k"] += ...` updates a field of an array in place, and replaces the number in a record."""
    old = subscript(reader, base, target.slice, node)
    if isinstance(old, Value) and is_array(old):
        assign_array(reader, old, evaluate_operand(reader, node.value), node, type(node.op))
        return
    assign_records(reader, base, target, forced(reader, augmented(reader, node, old)))


def augment_part(reader: Reader, node: ast.AugAssign, base: Value, items: list[Abstract | Item]) -> None:
    if isinstance(node.op, ast.MatMult):
        reader.refuse("SD101", node, "`@=` on a part of an array is not supported", help_="write `a = a @ b`")
    mark = reader.mark()
    amount = evaluate_operand(reader, node.value)
    basic = all(isinstance(i, Slice | Index | NewAxis) for i in items)
    if basic or not writes_since(reader, mark, base):
        assign_part(reader, base, items, amount, node, type(node.op))
        return
    reader.go_back(mark)  # as in NumPy, indexed elements are read before the right side changes them
    old = forced(reader, read_picked(reader, base, items, node))
    new = binary(reader, type(node.op), old, evaluate(reader, node.value), node)
    require_cast(reader, as_lazy(reader, new, node).dtype, base, node)
    assign_part(reader, base, items, new, node)


def writes_since(reader: Reader, mark: Mark, array: Value) -> bool:
    """Whether the code read since then may write into an array."""
    read = walk(Block(tuple(reader.operations[mark.operations :])))
    return any(isinstance(o, Call) or (isinstance(o, Store) and not reader.disjoint(o.array, array)) for o in read)


def augment_list(reader: Reader, node: ast.AugAssign, target: ast.Subscript, base: List) -> None:
    position = evaluate(reader, target.slice)
    old = read_position(reader, base, position, target)
    if isinstance(old, Value) and is_array(old):
        assign_array(reader, old, evaluate_operand(reader, node.value), node, type(node.op))
        return
    if isinstance(old, List) and augment_in_place(reader, node, old):
        return
    write_position(reader, base, position, augmented(reader, node, old), target)


def augment_in_place(reader: Reader, node: ast.AugAssign, old: List) -> bool:
    """`+=` and `*=` of lists, which change them under all their names. Returns whether it was one of these."""
    if isinstance(node.op, ast.Add):
        list_extend(reader, node, old, evaluate(reader, node.value))
        return True
    if not isinstance(node.op, ast.Mult):
        return False
    new = binary(reader, ast.Mult, old, evaluate(reader, node.value), node)
    assert isinstance(new, List)
    changing(reader, old, node)
    if is_row(reader, old):
        write_row(reader, old, stored_contents(reader, new))
    else:
        reader.cells[old] = reader.cells[new]
    return True
