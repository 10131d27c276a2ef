"""The elements of Numba's lists and dictionaries: all have one type, the declared one or that of the first element."""

from __future__ import annotations

import ast
from typing import Any

from numba.core import types

from srcdiff.frontend.domain.abstract_values import Abstract, Items, List, Stored, is_none
from srcdiff.frontend.domain.lattice import NOTHING, join
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_storage import common_element, contents_of_list, described_element
from srcdiff.frontend.interpreter.made_dictionaries import FROM_FIRST
from srcdiff.frontend.interpreter.numba_types import as_told


def as_element_of(reader: Reader, owner: List, x: Abstract, node: ast.AST) -> Abstract:
    """A value that is added to a list, converted if the list is Numba's."""
    told = reader.typed.get(owner)
    return x if told is None else converted(reader, owner, told, x, node)


def converted(reader: Reader, owner: List, told: Any, x: Abstract, node: ast.AST) -> Abstract:
    """An element of Numba's list, or the contents if it is a dictionary."""
    if told != FROM_FIRST:
        return told_number(reader, x, told, node)
    contents = contents_of_list(reader, owner)
    if isinstance(contents, Items) and contents.items:
        element = common_element(reader, contents)
    elif isinstance(contents, Stored):
        element = contents.element
    else:
        return x
    if element != NOTHING and join(element, described_element(reader, x, reader.cells)) != element:
        message = f"{in_words(reader, x)} is put into a container of Numba's, whose elements have another type"
        reader.refuse("SD203", node, message, help_="convert all elements to the type of the first, as Numba would")
    return x


def told_number(reader: Reader, x: Abstract, told: Any, node: ast.AST) -> Abstract:
    """A value converted to a declared Numba type, for numbers and tuples of numbers."""
    frame = reader.frame
    while frame.captured is None and frame.parent is not None:
        frame = frame.parent
    is_known = isinstance(told, types.Number | types.Boolean | types.BaseTuple)
    if is_none(x) or frame.captured is None or not is_known:
        return x
    with reader.at(reader.span_of(node) if not reader.frame.library else reader.span):
        return as_told(reader, x, told, "an element", frame.captured)
