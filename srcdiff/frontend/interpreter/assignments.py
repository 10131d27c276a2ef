"""Assignment to names, elements and several targets."""

from __future__ import annotations

import ast

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Choice,
    Element,
    Items,
    Iteration,
    List,
    Method,
    Object,
    Record,
    Static,
    Stored,
    Structured,
    Tuple,
    is_array_value,
    is_instance,
)
from srcdiff.frontend.domain.lattice import are_objects, arrays_in
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import IsWritten
from srcdiff.frontend.interpreter.array_assignment import assign_array
from srcdiff.frontend.interpreter.attrs_instances import as_assigned
from srcdiff.frontend.interpreter.choices import assign_to_the_chosen
from srcdiff.frontend.interpreter.class_attributes import is_users_class, write_class_attribute
from srcdiff.frontend.interpreter.dictionaries import is_dictionary, write_item
from srcdiff.frontend.interpreter.evaluation import call_named, evaluate, evaluate_lazily
from srcdiff.frontend.interpreter.index_arrays import assign_part, require_apart
from srcdiff.frontend.interpreter.indexing import array_items, index_of_instance
from srcdiff.frontend.interpreter.instances import call_special, defines, write_attribute
from srcdiff.frontend.interpreter.iteration import drained, for_each, iteration_over, unpacked
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import known_elements
from srcdiff.frontend.interpreter.list_elements import list_position
from srcdiff.frontend.interpreter.list_storage import (
    append,
    changing,
    contents_of_list,
    detached,
    forget_slots,
    new_list,
    put_element,
    set_items,
    stored_contents,
    wide_enough,
)
from srcdiff.frontend.interpreter.lists import assign_slice
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.numba_types import as_declared
from srcdiff.frontend.interpreter.numbers import as_integer, as_number
from srcdiff.frontend.interpreter.presence import needed
from srcdiff.frontend.interpreter.representation import as_value, write_element
from srcdiff.frontend.interpreter.statements import note_name
from srcdiff.frontend.interpreter.structured_arrays import assign_records, write_field
from srcdiff.frontend.interpreter.tables import expression, statement
from srcdiff.frontend.interpreter.typed_elements import as_element_of
from srcdiff.ir.nodes import Index, Item, Value
from srcdiff.ir.types import Array, Stack, is_complex
from srcdiff.signature.structures import Layout
from srcdiff.signature.trees import NODES

ANOTHER = "assign attributes of instances of your own classes only"


def element_place(items: list[Abstract | Item], array: Value) -> tuple[Value, ...] | None:
    """The indices of a single element, if the subscript selects one."""
    indices = tuple(i.value for i in items if isinstance(i, Index))
    return indices if len(indices) == len(items) == array.array.rank else None


def _permutes(node: ast.Assign) -> bool:
    """Whether two elements are swapped: `a[i], a[k] = a[k], a[i]`."""
    target = node.targets[0]
    if len(node.targets) != 1 or not (isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)):
        return False
    if len(target.elts) != 2 or not all(isinstance(t, ast.Subscript) for t in target.elts):
        return False  # with three, two may be equal, and then a list occurs twice
    if any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(target)):
        return False
    return [ast.unparse(t) for t in target.elts] == [ast.unparse(v) for v in reversed(node.value.elts)]


@statement(ast.Assign)
def assignment_statement(reader: Reader, node: ast.Assign) -> None:
    alone = len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript)
    value = evaluate_lazily(reader, node.value) if alone or reader.frame.library else unpacking(reader, node)
    if _permutes(node):
        value = detached(reader, value)  # each value is stored as an element again, exactly once
    for target in node.targets:
        assign_target(reader, target, value)


def unpacking(reader: Reader, node: ast.Assign) -> Abstract:
    """The value to unpack. An iterator is consumed."""
    value = evaluate_lazily(reader, node.value)
    if all(isinstance(t, ast.Tuple | ast.List) for t in node.targets) and len(node.targets) == 1:
        value = drained(reader, value, node.value)
    return forced(reader, value)


@statement(ast.AnnAssign)
def annotated_assignment(reader: Reader, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign_target(reader, node.target, evaluate(reader, node.value))


def assign_target(reader: Reader, target: ast.expr, value: Abstract) -> None:
    match target:
        case ast.Name():
            assign_name(reader, target, value)
        case ast.Tuple() | ast.List():
            assign_several(reader, target, value)
        case ast.Subscript():
            assign_element(reader, target, value)
        case ast.Starred():
            assign_target(reader, target.value, value)
        case ast.Attribute():
            assign_attribute(reader, target, value)
        case _:
            reader.refuse("SD101", target, f"`{ast.unparse(target)}` cannot be assigned")


def assign_attribute(reader: Reader, target: ast.Attribute, value: Abstract) -> None:
    owner = needed(reader, evaluate(reader, target.value), target)
    if target.attr != "shape" or not assign_shape(reader, target, owner, value):
        set_attribute(reader, owner, target.attr, value, target)


def set_attribute(reader: Reader, owner: Abstract, name: str, value: Abstract, node: ast.AST) -> None:
    """`owner.name = value`."""
    if isinstance(owner, Structured | Element):
        write_field(reader, owner, name, value, node)
        return
    if name in ("real", "imag") and isinstance(owner, Value) and is_complex(owner.type):
        assign_array(reader, reader.part(owner, name), value, node)
        return
    if isinstance(owner, Choice) and are_objects(owner.options):
        value = forced(reader, value)
        assign_to_the_chosen(reader, owner, lambda one: write_attribute(reader, one, name, value, node), node)
        return
    if is_users_class(owner):
        assert isinstance(owner, Static)
        write_class_attribute(reader, owner.value, name, forced(reader, value), node)
        return
    if not is_instance(owner):
        is_shape = name == "shape" and is_array_value(owner)
        help_ = "assign a view to the name: `x = x.reshape(...)`" if is_shape else ANOTHER
        reader.refuse("SD101", node, f"an attribute of {in_words(reader, owner)} cannot be assigned", help_=help_)
    assert isinstance(owner, Record | Object)
    name_value(reader, value, name)
    value = as_assigned(reader, owner, name, value, node)
    write_attribute(reader, owner, name, value, node)


def assign_shape(reader: Reader, target: ast.Attribute, array: Abstract, shape: Abstract) -> bool:
    """`x.shape = m, n` of an array that was made inside the function.

    If no other name can refer to it, the name stands for a reshaped view from here on. Otherwise the others would see
    the shape change, so it must stay what it is.
    """
    if not (isinstance(array, Value) and isinstance(array.type, Array) and reader.base(array) in reader.new):
        return False
    reader.may_write(array)
    name = only_name(reader, target.value, array)
    if name:
        reader.cells[reader.frame.number, name] = call_named(reader, "reshape", target, array, shape)
        return True
    sizes = known_elements(reader, shape) or (shape,)
    if len(sizes) != array.array.rank or any(isinstance(n, Static) and n.value < 0 for n in sizes):
        return False
    for axis, size in enumerate(sizes):
        differs = reader.apply("not_equal", reader.dim(array, axis), as_integer(reader, size, target))
        reader.raise_if(differs, ValueError, "srcdiff cannot change the shape of an array with several names")
    return True


def only_name(reader: Reader, node: ast.expr, array: Value) -> str:
    """The local name that is all that can refer to an array, or nothing. Lists of any number of arrays may have it."""
    if not isinstance(node, ast.Name) or reader.cells.get((reader.frame.number, node.id)) is not array:
        return ""
    holders = [key for key, x in reader.cells.items() if any(a is array for a in arrays_in(x))]
    lists = [x for x in reader.cells.values() if isinstance(x, Stored)]
    is_held = len(holders) > 1 or any(isinstance(a.type, Stack) for x in lists for a in arrays_in(x))
    return "" if is_held else node.id


def assign_name(reader: Reader, target: ast.Name, value: Abstract) -> None:
    frame = reader.frame
    while target.id in frame.nonlocals and frame.parent is not None:
        frame = frame.parent
    if target.id in reader.frame.nonlocals and target.id not in frame.locals:
        reader.refuse(
            "SD101",
            target,
            f"`{target.id}` is a variable from outside the differentiated function, which cannot be assigned",
            help_="return the value instead of assigning it",
        )
    if isinstance(value, Method):
        message = "a method is assigned to a name, which is not supported"
        reader.refuse("SD102", target, message, help_="call the method")
    value = as_declared(reader, frame, target.id, value)
    name_value(reader, value, target.id)
    note_name(reader, target.id, value)
    if frame.number == reader.main_number and isinstance(value, Value):
        reader.assigned.setdefault(target.id, []).append(value)
    reader.cells[(frame.number, target.id)] = value
    if isinstance(value, Value) and value in reader.boxes:
        reader.boxed.add((frame.number, target.id))


def name_value(reader: Reader, value: Abstract, name: str) -> None:
    """Name the run-time values after the user's variable, if they have no name yet."""
    for part in NODES.named(value, name, Layout.variable):
        leaf = part.value
        contents = reader.cells.get(leaf) if isinstance(leaf, List) else None
        if isinstance(leaf, Value) and not leaf.name:
            leaf.name = part.name
        elif isinstance(contents, Stored):
            for array in contents.arrays:
                array.name = array.name if array.name not in ("", "items") else part.name


def assign_several(reader: Reader, target: ast.Tuple | ast.List, value: Abstract) -> None:
    stars = [k for k, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
    if stars and has_length_at_run_time(reader, value):
        assign_around(reader, target, value, stars[0])
        return
    items = (
        list(unpacked(reader, value, target))
        if not unpackable(reader, value, target)
        else read_all(reader, value, target)
    )
    if not stars:
        if len(items) != len(target.elts):
            text = f"{len(items)} values cannot be unpacked into {len(target.elts)} names"
            reader.refuse("SD203", target, text)
        for part, item in zip(target.elts, items, strict=True):
            assign_target(reader, part, item)
        return
    star = stars[0]
    behind = len(target.elts) - star - 1
    if len(items) < len(target.elts) - 1:
        reader.refuse(
            "SD203",
            target,
            f"{len(items)} values cannot be unpacked into {len(target.elts) - 1} names and a starred name",
        )
    middle = items[star : len(items) - behind]
    for part, item in zip(target.elts[:star], items[:star], strict=True):
        assign_target(reader, part, item)
    assign_target(reader, target.elts[star], new_list(reader, tuple(middle)))
    for part, item in zip(target.elts[star + 1 :], items[len(items) - behind :], strict=True):
        assign_target(reader, part, item)


def unpackable(reader: Reader, value: Abstract, target: ast.Tuple | ast.List) -> bool:
    """Whether the number of elements is only known at run time, and the targets fix it."""
    if any(isinstance(t, ast.Starred) for t in target.elts):
        return False
    return has_length_at_run_time(reader, value)


def has_length_at_run_time(reader: Reader, value: Abstract) -> bool:
    is_array = is_array_value(value)
    return is_array or (isinstance(value, List) and isinstance(contents_of_list(reader, value), Stored))


def assign_around(reader: Reader, target: ast.Tuple | ast.List, value: Abstract, star: int) -> None:
    """`a, *b, c = values`, for any number of values."""
    found = iteration_over(reader, value, target)
    assert isinstance(found, Iteration)
    length, count = as_value(reader, found.length), len(target.elts) - 1
    too_few = reader.apply("less", length, reader.const(count))
    reader.raise_if(too_few, ValueError, f"not enough values to unpack (expected at least {count})")
    middle = new_list(reader, ())
    between = Iteration(
        reader.apply("subtract", length, reader.const(count)),
        lambda k: found.element(reader.apply("add", as_value(reader, k), reader.const(star))),
    )
    for_each(reader, target, between, lambda item: append(reader, middle, item, target))
    first = [found.element(Static(k)) for k in range(star)]
    last = [found.element(reader.apply("subtract", length, reader.const(k))) for k in range(count - star, 0, -1)]
    for part, item in zip(target.elts, [*first, middle, *last], strict=True):
        assign_target(reader, part, item)


def read_all(reader: Reader, value: Abstract, target: ast.Tuple | ast.List) -> list[Abstract]:
    found = iteration_over(reader, value, target)
    assert isinstance(found, Iteration)
    count = len(target.elts)
    wrong = reader.apply("not_equal", as_value(reader, found.length), reader.const(count))
    reader.raise_if(wrong, ValueError, f"expected {count} values to unpack")
    return [found.element(Static(k)) for k in range(count)]


def assign_element(reader: Reader, target: ast.Subscript, value: Abstract) -> None:
    base = evaluate(reader, target.value)
    if is_dictionary(base):
        name_value(reader, value, "item")
        write_item(reader, base, evaluate(reader, target.slice), forced(reader, value), target)
        return
    base = needed(reader, base, target)
    if isinstance(base, List):
        assign_list_element(reader, base, target, value)
        return
    if isinstance(base, Structured | Element):
        assign_records(reader, base, target, value)
        return
    if defines(base, "__setitem__"):
        call_special(reader, base, "__setitem__", [index_of_instance(reader, target), forced(reader, value)], target)
        return
    base, items, place = place_in_array(reader, base, target)
    if isinstance(target.value, ast.Attribute) and target.value.attr == "flat":
        require_apart(reader, base, value, target)
    if place is not None:
        write_element(reader, base, place, as_number(reader, value, target))
    else:
        assign_part(reader, base, items, value, target)


def place_in_array(
    reader: Reader, base: Abstract, target: ast.Subscript
) -> tuple[Value, list[Abstract | Item], tuple[Value, ...] | None]:
    """An array whose elements are assigned, the indices, and the place if it is one element."""
    if isinstance(base, Tuple) and base.is_list and list not in reader.stateful:
        raise IsWritten(list)
    if not is_array_value(base):
        help_ = "convert it to a list first: `list(...)`" if isinstance(base, Tuple) else ""
        reader.refuse("SD203", target, f"the elements of {in_words(reader, base)} cannot be assigned", help_=help_)
    items = array_items(reader, base, target.slice, target)
    return base, items, element_place(items, base)


def assign_list_element(reader: Reader, base: List, target: ast.Subscript, value: Abstract) -> None:
    if isinstance(target.slice, ast.Slice):
        assign_slice(reader, base, target.slice, value, target)
        return
    write_position(reader, base, evaluate(reader, target.slice), value, target)


def write_position(reader: Reader, base: List, position: Abstract, value: Abstract, target: ast.AST) -> None:
    changing(reader, base, target)
    value = as_element_of(reader, base, forced(reader, value), target)
    contents = contents_of_list(reader, base)
    if isinstance(contents, Items) and isinstance(position, Static):
        items = list(contents.items)
        if not -len(items) <= position.value < len(items):
            reader.raise_always(IndexError, "list assignment index out of range")
        items[position.value] = value
        set_items(reader, base, items, target)
        return
    stored = stored_contents(reader, base)
    where = list_position(reader, stored, as_integer(reader, position, target))
    stored = wide_enough(reader, base, value, target)
    if any(isinstance(a.type, Stack) for a in stored.arrays):
        message = "assignment of an array to an element of a list is not supported"
        reader.refuse("SD102", target, message, help_="use an array with one more axis")
    forget_slots(reader, base)
    put_element(reader, base, stored, where, value, target)


@expression(ast.NamedExpr)
def named_expression(reader: Reader, node: ast.NamedExpr) -> Abstract:
    value = evaluate(reader, node.value)
    assign_target(reader, node.target, value)
    return value
