"""The fields of NumPy's structured arrays and records: each is an array or a number."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from srcdiff.diagnostics.naming_objects import array_of
from srcdiff.frontend.domain.abstract_values import Abstract, Element, Static, Structured, Tuple, is_array_value
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.representation import as_value, write_element
from srcdiff.ir.nodes import Index, NewAxis, Value
from srcdiff.ir.types import Array
from srcdiff.signature.record_layouts import RecordLayout, UnusableField, record_layout
from srcdiff.signature.trees import NODES

Records = Structured | Element


def layout_of(x: Records) -> RecordLayout:
    found = x.of.kind if isinstance(x, Element) else x.kind
    assert isinstance(found, RecordLayout)
    return found


def is_record(x: Abstract) -> bool:
    """Whether it is a single record."""
    return isinstance(x, Element) or (isinstance(x, Structured) and layout_of(x).rank is None)


def part_at(reader: Reader, x: Records, k: int, node: ast.AST) -> Abstract:
    """The contents of a field, by its position."""
    layout = layout_of(x)
    whole = x.of if isinstance(x, Element) else x
    found = whole.items[k]
    if isinstance(found, Static) and isinstance(found.value, UnusableField):
        what, help_ = array_of(found.value.dtype)
        reader.refuse("SD201", node, f"the field `{layout.names[k]}` is {what}, which is not supported", help_=help_)
    return element_of(reader, found, x.place) if isinstance(x, Element) else found


def element_of(reader: Reader, array: Abstract, place: tuple[Value, ...]) -> Abstract:
    """The element of a field: a number, a view of the field's own axes, or another record."""
    if isinstance(array, Structured):
        if layout_of(array).rank == len(place):
            return Element((array, *place))
        return parted(array, lambda a: reader.view(a, tuple(map(Index, place))), len(place))
    if not isinstance(array, Value):
        return array
    if array.array.rank == len(place):
        return reader.load(array, place)
    return reader.view(array, tuple(map(Index, place)))


def parted(x: Structured, part: Callable[[Value], Abstract], fewer: int) -> Structured:
    """The same part of each field. It has this many axes fewer."""
    layout = layout_of(x)
    items = [
        parted(i, part, fewer) if isinstance(i, Structured) else part(i) if isinstance(i, Value) else i for i in x.items
    ]
    rank = (layout.rank or 0) - fewer
    return Structured(tuple(items), replace(layout, kind=np.ndarray if layout.rank is None else layout.kind, rank=rank))


def field_position(reader: Reader, x: Records, name: str, node: ast.AST) -> int:
    names = layout_of(x).names
    if name not in names:
        message = f"{in_words(reader, x)} has no field `{name}`; it has {', '.join(map(str, names))}"
        reader.refuse("SD203", node, message)
    return names.index(name)


def read_field(reader: Reader, x: Records, name: str, node: ast.AST) -> Abstract:
    return part_at(reader, x, field_position(reader, x, name, node), node)


def any_field(x: Structured) -> Value:
    """A field without axes of its own if there is one, otherwise the first field."""
    fields = [leaf for leaf in NODES.leaves(x) if isinstance(leaf, Value)]
    return next((f for f in fields if f.array.rank == layout_of(x).rank), fields[0])


def element_of_records(reader: Reader, x: Structured, k: Abstract) -> Abstract:
    """The element at an index of the first axis: a record, or an array with one axis fewer."""
    position = as_value(reader, k)
    if layout_of(x).rank == 1:
        return Element((x, position))
    return parted(x, lambda a: reader.view(a, (Index(position),)), 1)


def attribute_of_records(reader: Reader, x: Records, name: str, node: ast.AST) -> Abstract | None:
    """A field, or an attribute of arrays; None for a method."""
    layout = layout_of(x)
    if name in layout.names and not (layout.kind is not np.void and hasattr(np.ndarray, name)):
        return read_field(reader, x, name, node)
    if name == "dtype":
        return Static(layout.dtype)
    if isinstance(x, Element) or layout.rank is None:
        return Tuple(()) if name == "shape" else None
    lengths = reader.shape(any_field(x))[: layout.rank]
    if name == "shape":
        return Tuple(lengths)
    if name == "ndim":
        return Static(layout.rank)
    if name == "size":
        total = as_value(reader, lengths[0])
        for n in lengths[1:]:
            total = reader.apply("multiply", total, as_value(reader, n))
        return total
    if name == "T" and layout.rank == 1:
        return x
    return None


def as_values(reader: Reader, x: Element, node: ast.AST) -> Structured:
    """The current contents of a record, as a value."""
    layout, items = layout_of(x), []
    for k, whole in enumerate(x.of.items):
        part = part_at(reader, x, k, node) if isinstance(whole, Value | Structured) else whole
        if isinstance(part, Element):
            part = as_values(reader, part, node)
        elif is_array_value(part):
            part = reader.copy(part)
        items.append(part)
    return Structured(tuple(items), replace(layout, kind=np.void, rank=None))


def relate_sizes(reader: Reader, x: Structured, lead: tuple[Any, ...] | None = None) -> Structured:
    """Record that all fields share the axes of the array. Their own axes are known from the dtype."""
    layout = layout_of(x)
    if lead is None:
        lead = reader.keys(any_field(x))[: layout.rank] if layout.rank else ()
    for name, item in zip(layout.dtype.names or (), x.items, strict=True):
        own = (*lead, *(("n", n) for n in layout.dtype[name].shape))
        if isinstance(item, Structured):
            relate_sizes(reader, item, own)
        elif is_array_value(item):
            reader.sizes[item] = own
    return x


# -- new ones --------------------------------------------------------------------------------------------------------


def structured_dtype(x: Abstract) -> np.dtype[np.void] | None:
    """The dtype of a structured array; None for other dtypes."""
    found = x.value if isinstance(x, Static) else None
    if isinstance(found, list):
        found = np.dtype(found)
    found = getattr(found, "dtype", found) if not isinstance(found, np.dtype) else found
    return found if isinstance(found, np.dtype) and found.names is not None else None


def new_fields(
    axes: tuple[Abstract, ...], dtype: np.dtype[np.void], new: Callable[[Abstract, Abstract], Abstract]
) -> Structured:
    """A structured array whose fields are created by `new(shape, dtype)`."""
    names = dtype.names or ()
    items: list[Abstract] = []
    for name in names:
        own, base = (*axes, *(Static(n) for n in dtype[name].shape)), dtype[name].base
        if base.names is not None:
            items.append(new_fields(own, base, new))
        elif base.kind not in "fciub":
            items.append(Static(UnusableField(base)))
        else:
            items.append(new(Tuple(own), Static(base)))
    return Structured(tuple(items), record_layout(np.ndarray, dtype, len(axes)))


def boxed(reader: Reader, x: Structured, items: list[Abstract]) -> Element:
    """A record whose fields are written: an element of an array of its own."""

    def array(part: Abstract) -> Abstract:
        if isinstance(part, Element):  # a nested record is one already
            return part.of
        if not isinstance(part, Value):
            return part
        if isinstance(part.type, Array):
            return reader.view(reader.copy(part), (NewAxis(),))
        own = reader.alloc(part.scalar.dtype, (reader.const(1),), None, part.name)
        write_element(reader, own, (reader.const(0),), part)
        return own

    layout = replace(layout_of(x), kind=np.ndarray, rank=1)
    return Element((Structured(tuple(map(array, items)), layout), reader.const(0)))
