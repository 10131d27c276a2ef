"""Making dictionaries: values, objects whose keys are constants, or hash tables whose keys are known at run time.

    {"a": x}                 Record: a value
    d["b"] = y               Object(dict): each key is a variable of its scope
    d[k] = y                 Object(HashTable): a program of the library (library/hash_tables.py)

If a dictionary needs more than the line above, the program is read again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import Abstract, Items, List, Object, Own, Record, Static
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import IsWritten
from srcdiff.frontend.interpreter.dictionaries import DictionaryKey, KeysAtRunTime, cell_of, is_hashed
from srcdiff.frontend.interpreter.evaluation import call_value
from srcdiff.frontend.interpreter.instances import call_special, new_object, read_attribute
from srcdiff.frontend.interpreter.list_storage import contents_of_list, new_list
from srcdiff.frontend.interpreter.numbers import is_array
from srcdiff.library.hash_tables import HashTable
from srcdiff.signature.structures import is_key, mapping_layout

Pairs = Iterable[tuple[Abstract, Abstract]]


def made_dictionary(
    reader: Reader, items: Mapping[DictionaryKey, Abstract], site: object, node: ast.AST, told: Any = None
) -> Record | Object:
    """A new dictionary with constant keys, created at a place of the program."""
    if KeysAtRunTime(site) in reader.stateful:
        return made_table(reader, [(Static(key), x) for key, x in items.items()], node, told)
    if site not in reader.stateful:
        return Record(tuple(items.values()), mapping_layout(dict, items), site)
    new = Object(dict, site=site)
    reader.objects[new.number] = new
    for key, x in items.items():
        reader.cells[cell_of(reader, new, key)] = x
    return new


def dictionary_of_pairs(reader: Reader, pairs: Pairs, site: object, node: ast.AST) -> Record | Object:
    """A new dictionary. If a key is only known at run time, the program is read again, with a hash table."""
    found: dict[Any, Abstract] = {}
    pairs = list(pairs)
    if KeysAtRunTime(site) in reader.stateful:
        return made_table(reader, pairs, node)
    for key, x in pairs:
        if is_hashed(key) and not isinstance(key, Static):
            raise IsWritten(KeysAtRunTime(site))
        if not (isinstance(key, Static) and is_key(key.value)):
            message = "the keys of a dictionary must be constant strings, integers or enum members"
            reader.refuse("SD102", node, message, help_="use integers, or tuples of integers, as keys")
        found[key.value] = x
    return made_dictionary(reader, found, site, node)


FROM_FIRST = "first"
"""A placeholder for a type that is not declared to Numba: it is that of the first element."""


def made_table(reader: Reader, pairs: Pairs, node: ast.AST, told: Any = None) -> Object:
    """A new dictionary with keys known at run time. Numba may have been `told` the type of the values."""
    pairs = list(pairs)
    for key, _ in pairs:
        if not is_hashed(key):
            message = "this dictionary has a key that is known at run time, and a key that is not an integer"
            reader.refuse("SD205", node, message, help_="use integers for all keys, or a dictionary for each kind")
    are_known = all(isinstance(key, Static) for key, _ in pairs)
    keys, values = (new_list(reader, tuple(p[k] for p in pairs) if are_known else ()) for k in (0, 1))
    new = table_of_lists(reader, keys, values, node, told)
    for key, x in () if are_known else pairs:
        call_special(reader, new, "__setitem__", [key, x], node)
    return new


def table_of_lists(reader: Reader, keys: List, values: List, node: ast.AST, told: Any = None) -> Object:
    """A dictionary from distinct keys and their values."""
    if HashTable not in reader.stateful:
        raise IsWritten(HashTable)
    contents = contents_of_list(reader, values)
    items = contents.items if isinstance(contents, Items) else ()
    places = tuple(Static(k) for k, x in enumerate(items) if is_array(x))
    parts: dict[str, Abstract] = {"order": keys, "contents": values, "places": new_list(reader, places)}
    slots = call_value(reader, Own(np.full), [Static(8), Static(-1)], node)
    new = new_object(reader, HashTable, {**parts, "slots": slots, "factory": Static(None), "told": Static(told)}, node)
    if contents != Items(()):
        call_value(reader, read_attribute(reader, new, "enter_all", node), [], node)
    return new


def table_of_pairs(reader: Reader, pairs: Abstract, node: ast.AST) -> Object:
    """A new dictionary from pairs that are known at run time."""
    table = made_table(reader, [], node)
    call_value(reader, read_attribute(reader, table, "fill", node), [pairs], node)
    return table


def is_table(x: Abstract) -> bool:
    """Whether it is a dictionary with keys known at run time."""
    return isinstance(x, Object) and x.kind is HashTable
