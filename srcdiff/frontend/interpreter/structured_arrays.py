"""NumPy's structured arrays and records: each field is an array or a number.

p["k"], p.k             the field, an array           r = p[i]; r["k"], r.k     the element of the field
p[a:b], p[mask]         of each field the part        p[i] = q[j]               field by field
"""

from __future__ import annotations

import ast

from srcdiff.frontend.domain.abstract_values import Abstract, Element, Static, Structured, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import IsWritten
from srcdiff.frontend.interpreter.array_assignment import assign_array
from srcdiff.frontend.interpreter.evaluation import evaluate, known_value
from srcdiff.frontend.interpreter.index_arrays import assign_part, read_picked
from srcdiff.frontend.interpreter.indexing import array_items
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.numbers import as_number
from srcdiff.frontend.interpreter.record_fields import (
    Records,
    any_field,
    as_values,
    field_position,
    is_record,
    layout_of,
    part_at,
    parted,
    read_field,
)
from srcdiff.frontend.interpreter.representation import write_element
from srcdiff.frontend.interpreter.tables import method, subscripts
from srcdiff.ir.nodes import Index, Item, NewAxis, Slice, Value

# -- writing ---------------------------------------------------------------------------------------------------------


def write_field(reader: Reader, x: Records, name: str, value: Abstract, node: ast.AST) -> None:
    """`r["k"] = value`: a write into the array. A record without an array becomes an element of a new array first."""
    position = field_position(reader, x, name, node)
    if isinstance(x, Structured) and layout_of(x).rank is None:
        if layout_of(x).kind in reader.stateful:
            message = "only records that are arguments, and elements of structured arrays, can be changed"
            reader.refuse("SD203", node, message, help_="use a structured array with one element")
        raise IsWritten(layout_of(x).kind)
    found = (x.of if isinstance(x, Element) else x).items[position]
    if isinstance(found, Value) and isinstance(x, Element) and found.array.rank == len(x.place):
        write_element(reader, found, x.place, as_number(reader, value, node))
        return
    part = part_at(reader, x, position, node)
    if isinstance(part, Value):
        assign_array(reader, part, value, node)
    elif isinstance(part, Element | Structured):
        write_record(reader, part, value, node)


def write_record(reader: Reader, x: Records, value: Abstract, node: ast.AST) -> None:
    """`p[i] = value`, field by field: all fields are read before one is written."""
    count = len(layout_of(x).names)
    if isinstance(value, Element | Structured):
        parts = [part_at(reader, value, k, node) for k in range(len(layout_of(value).names))]
    elif isinstance(value, Tuple):
        parts = [forced(reader, i) for i in value.items]
    else:
        reader.refuse("SD203", node, f"{in_words(reader, value)} cannot be assigned to {in_words(reader, x)}")
    if len(parts) != count:
        reader.refuse("SD203", node, f"{len(parts)} values cannot be assigned to {count} fields")
    for name, part in zip(layout_of(x).names, parts, strict=True):
        write_field(reader, x, str(name), part, node)


# -- subscripts ------------------------------------------------------------------------------------------------------


@subscripts(Structured, Element)
def subscript_records(reader: Reader, base: Records, where: ast.expr, node: ast.AST) -> Abstract:
    if is_record(base) or _names_field(reader, where):
        key = evaluate(reader, where)
        if isinstance(key, Static) and isinstance(key.value, str):
            return read_field(reader, base, key.value, node)
        if isinstance(key, Static) and isinstance(key.value, int) and is_record(base):
            return part_at(reader, base, range(len(layout_of(base).names))[key.value], node)
        reader.refuse("SD205", node, "the name of a field must be known at compile time", help_="write the name itself")
    assert isinstance(base, Structured)
    items = _items(reader, base, where, node)
    return at_items(reader, base, items, node)


def _names_field(reader: Reader, where: ast.expr) -> bool:
    """Whether a subscript is a field name, which is a string."""
    if isinstance(where, ast.Constant):
        return isinstance(where.value, str)
    if not isinstance(where, ast.Name | ast.Attribute):
        return False
    mark = reader.mark()
    found = evaluate(reader, where)
    reader.go_back(mark)
    return isinstance(found, Static) and isinstance(found.value, str)


def _items(reader: Reader, base: Structured, where: ast.expr, node: ast.AST) -> list[Abstract | Item]:
    """The parts of a subscript. Index arrays are computed once for all fields."""
    found = array_items(reader, any_field(base), where, node)
    return [i if isinstance(i, Slice | NewAxis | Index) else forced(reader, i) for i in found]


def at_items(reader: Reader, base: Structured, items: list[Abstract | Item], node: ast.AST) -> Abstract:
    """The part of a structured array that a subscript selects."""
    rank, places = layout_of(base).rank, [i.value for i in items if isinstance(i, Index)]
    if len(places) == len(items) == rank:
        return Element((base, *places))
    basic = [i for i in items if isinstance(i, Slice | Index | NewAxis)]
    if len(basic) == len(items):
        fewer = len(places) - sum(isinstance(i, NewAxis) for i in items)
        return parted(base, lambda a: reader.view(a, tuple(basic)), fewer)
    one = any_field(base)
    picked = forced(reader, read_picked(reader, one, items, node))
    assert isinstance(picked, Value)
    fewer = one.array.rank - picked.array.rank

    def part(a: Value) -> Abstract:
        return picked if a is one else forced(reader, read_picked(reader, a, items, node))

    return parted(base, part, fewer)


def assign_records(reader: Reader, base: Records, target: ast.Subscript, value: Abstract) -> None:
    """`p["k"] = ...`, `p[i] = ...`, `p[a:b] = q[c:d]`."""
    if is_record(base) or _names_field(reader, target.slice):
        name = known_value(reader, evaluate(reader, target.slice), "the name of a field", target, str)
        write_field(reader, base, name, value, target)
        return
    assert isinstance(base, Structured)
    items = _items(reader, base, target.slice, target)
    found = [i.value for i in items if isinstance(i, Index)]
    if len(found) == len(items) == layout_of(base).rank:
        write_record(reader, Element((base, *found)), value, target)
        return
    if not isinstance(value, Structured | Element | Tuple):
        reader.refuse("SD203", target, f"{in_words(reader, value)} cannot be assigned to a structured array")
    _assign_parts(reader, base, items, value, target)


def _assign_parts(
    reader: Reader, base: Structured, items: list[Abstract | Item], value: Abstract, node: ast.AST
) -> None:
    assert isinstance(value, Structured | Element | Tuple)
    count = len(base.items)
    parts = value.items if isinstance(value, Tuple) else [part_at(reader, value, k, node) for k in range(count)]
    if len(parts) != count:
        reader.refuse("SD203", node, f"{len(parts)} values cannot be assigned to {count} fields")
    for k, part in enumerate(parts):
        mine = part_at(reader, base, k, node)
        if isinstance(mine, Structured):
            _assign_parts(reader, mine, items, part, node)
        elif isinstance(mine, Value):
            assign_part(reader, mine, items, part, node)


# -- methods ------------------------------------------------------------------------------------------------------


@method("records", "copy")
def records_copy(reader: Reader, node: ast.AST, owner: Records) -> Abstract:
    if isinstance(owner, Element):
        return as_values(reader, owner, node)
    return parted(owner, reader.copy, 0) if layout_of(owner).rank is not None else owner
