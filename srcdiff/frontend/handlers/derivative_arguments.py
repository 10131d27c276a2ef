"""The arguments of a derivative inside a function, separated from the surrounding values."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Group,
    Items,
    List,
    Object,
    Poison,
    Record,
    Static,
    Stored,
    Structured,
)
from srcdiff.frontend.domain.lattice import describe, loosened
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.contents import contents_of_object, own_contents
from srcdiff.frontend.interpreter.dictionaries import KeysAtRunTime, is_changing
from srcdiff.frontend.interpreter.evaluation import call_value
from srcdiff.frontend.interpreter.instances import new_object
from srcdiff.frontend.interpreter.list_storage import (
    as_stored,
    contents_of_list,
    new_list,
    of_numbers,
    restored,
    store_items,
)
from srcdiff.frontend.interpreter.made_dictionaries import FROM_FIRST, is_table, made_dictionary, table_of_lists
from srcdiff.frontend.interpreter.number_kinds import is_pythons
from srcdiff.frontend.interpreter.outside import no_field
from srcdiff.frontend.interpreter.presence import present
from srcdiff.frontend.interpreter.record_fields import boxed
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import FLOAT, Array, Stack
from srcdiff.library.hash_tables import listed_keys
from srcdiff.library.typed_containers import TypedTable
from srcdiff.signature.descriptions import Description, floats_for_integers
from srcdiff.signature.structures import Layout
from srcdiff.signature.trees import NODES


def separated_arguments(
    reader: Reader, given: dict[str, Abstract], wrt: tuple[str, ...]
) -> tuple[dict[str, Abstract], list[tuple[Value, Value]], dict[List, Stored]]:
    """The arguments with new values for those to differentiate by, and the original of each new value."""
    pairs: list[tuple[Value, Value]] = []
    lists: dict[List, Stored] = {}
    inner = dict(given)
    for name in wrt:
        inner[name] = new_arguments(reader, given[name], name, pairs, lists)
    return inner, pairs, lists


def new_arguments(
    reader: Reader, x: Abstract, name: str, pairs: list[tuple[Value, Value]], lists: dict[List, Stored]
) -> Abstract:
    names = NODES.named(x, name, Layout.variable)

    def visit(x: Abstract, has_own_types: bool) -> Abstract:
        parts = NODES.parts(x)
        if parts is None:
            return new_argument(reader, x, next(names).name, pairs, lists, has_own_types)
        own = has_own_types or (isinstance(x, Record) and x.kind.has_own_types and not isinstance(x, Structured))
        layout = NODES.layout(x)
        integers = layout.integers if layout is not None else ()
        remade: Abstract = NODES.remade(x, [visit(part, own or k in integers) for k, part in enumerate(parts)])
        return remade

    return visit(x, False)


def with_contents_of_objects(reader: Reader, given: dict[str, Abstract]) -> tuple[dict[str, Abstract], set[int]]:
    """The arguments with their objects replaced by the current contents, and the numbers of these objects.

    The inner function gets copies, because a derivative changes nothing. If two arguments share an object, or an object
    refers to itself, a copy would have another structure, so the objects stay.
    """
    found: list[int] = []

    def contents(leaf: Abstract) -> Abstract:
        if not isinstance(leaf, Object) or is_table(leaf) or leaf.number in found:
            found.extend([leaf.number] if isinstance(leaf, Object) else [])
            return leaf
        found.append(leaf.number)
        whole = contents_of_object(reader, leaf)
        whole = replace(whole, site=leaf.site) if is_changing(leaf) else whole
        return NODES.map(lambda part: contents(present(reader, part)), whole)

    opened = {name: NODES.map(contents, x) for name, x in given.items()}
    is_shared = len(found) > len(set(found))
    return (given, set()) if is_shared else (opened, set(found))


def new_argument(
    reader: Reader,
    x: Abstract,
    name: str,
    pairs: list[tuple[Value, Value]],
    lists: dict[List, Stored],
    has_own_types: bool = False,
) -> Abstract:
    match x:
        case List() if is_of_structures(reader, x):
            return new_arguments(reader, as_record(reader, x), name, pairs, lists)
        case List():
            of = "an argument of a derivative"
            contents = stored_floats(reader, own_contents(reader, x, "SD203", of, "pass an array: `np.array(...)`"))
            if isinstance(contents, Stored) and not any(isinstance(a.type, Stack) for a in contents.arrays):
                arrays = [new_argument(reader, a, name, pairs, lists) for a in contents.arrays]
                handle = List()
                own = tuple(a for a in arrays if isinstance(a, Value))
                lists[handle] = Stored(contents.element, own, contents.length)
                reader.cells[handle] = lists[handle]
                return handle
            return x
    d = loosened(describe(x)) if has_own_types else floats_for_integers(loosened(describe(x)))
    if d.kind != "value":
        return x
    value = reader.cast(as_value(reader, x), d.detail)
    fresh = reader.register(Value(value.type, value.name or name))
    pairs.append((fresh, value))
    if is_pythons(reader, x):
        reader.pythons.add(fresh)
    if loosened(describe(x)) != d:
        reader.whole.add(fresh)
    if isinstance(value.type, Array):
        stands_for(reader, fresh, value)
    return fresh


def is_of_structures(reader: Reader, x: List) -> bool:
    """Whether it is a list whose elements are known one by one, and not all numbers."""
    contents = contents_of_list(reader, x)
    return isinstance(contents, Items) and bool(contents.items) and not of_numbers(reader, contents)


def as_record(reader: Reader, x: List) -> Record:
    """The current contents of such a list."""
    contents = contents_of_list(reader, x)
    assert isinstance(contents, Items)
    return Record(contents.items, contents.layout)


def with_lists(reader: Reader, x: Abstract) -> Abstract:
    """An argument in the form that the function sees: its lists can be changed."""
    found: Abstract = NODES.fold(x, lambda leaf: leaf, functools.partial(with_new_list, reader))
    return found


def with_new_list(reader: Reader, x: Group | Items, items: Iterable[Abstract]) -> Abstract:
    """A structure of the same kind with these parts. Lists and objects are new and can be changed."""
    if isinstance(x, Record) and x.site is not None and {x.site, KeysAtRunTime(x.site)} & reader.stateful:
        return made_dictionary(reader, dict(zip(x.kind.names, items, strict=True)), x.site, reader.frame.node)
    if isinstance(x, Record) and x.kind.is_converted:
        return opened_container(reader, x.kind.kind, list(items))
    if isinstance(x, Structured):
        return boxed(reader, x, list(items)) if x.kind.kind in reader.stateful else x.remade(items)
    if isinstance(x, Record) and x.kind.kind in reader.stateful and not x.kind.is_mapping:
        kind, node = x.kind.kind, reader.frame.node
        extra = {name: Poison(no_field(reader, kind, name, node)) for name in x.kind.extra}
        return new_object(reader, kind, {**dict(zip(map(str, x.kind.names), items, strict=True)), **extra}, node)
    return new_list(reader, tuple(items)) if x.layout.kind is list else x.remade(items)


def opened_container(reader: Reader, kind: type, parts: list[Abstract]) -> Abstract:
    """A list or dictionary of Numba that is an argument, in the form that the function sees."""
    if not issubclass(kind, TypedTable):
        if isinstance(parts[0], List):
            reader.typed[parts[0]] = FROM_FIRST
        return parts[0]
    contents, order = parts
    keys = call_value(reader, Static(listed_keys), [order, Static(kind.width)], reader.frame.node)
    assert isinstance(contents, List)
    assert isinstance(keys, List)
    return table_of_lists(reader, keys, contents, reader.frame.node, FROM_FIRST)


def stored_floats(reader: Reader, contents: Abstract) -> Abstract:
    """The contents of a list as arrays. Integers to differentiate by become floats."""
    if isinstance(contents, Items):
        element = as_stored(contents).parts[0] if contents.items else Description("value", FLOAT)
        contents = store_items(reader, contents, floats_for_integers(loosened(element)))
    if isinstance(contents, Stored) and contents.element != floats_for_integers(contents.element):
        contents = restored(reader, contents, floats_for_integers(contents.element), reader.frame.node)
    return contents


def stands_for(reader: Reader, fresh: Value, array: Value) -> None:
    """Copy the facts about an array to the parameter that represents it. Sizes are then read from the parameter."""
    for axis, key in enumerate(reader.keys(array)):
        if key[0] not in ("n", "v") and key not in reader.stand_ins:
            reader.stand_ins.add(("d", fresh, axis))
            reader.same = {**reader.same, key: ("d", fresh, axis)}
    reader.sizes[fresh], reader.origins[fresh] = reader.keys(array), reader.origins_of(array)
    if array in reader.contiguous:
        reader.contiguous.add(fresh)
