"""Values without identity: objects, lists and elements of structured arrays, replaced by their current contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from srcdiff.frontend.domain.abstract_values import Abstract, Element, List, Object, Optional, Poison, Record, Stored
from srcdiff.frontend.domain.lattice import holds_lists
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.dictionaries import as_mapping, is_changing
from srcdiff.frontend.interpreter.instances import object_as_record
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_storage import contents_of_list, flat_contents
from srcdiff.frontend.interpreter.made_dictionaries import is_table
from srcdiff.frontend.interpreter.record_fields import as_values
from srcdiff.frontend.interpreter.unread import records_in
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array
from srcdiff.library.deques import Deque
from srcdiff.signature.structures import hides
from srcdiff.signature.trees import NODES


def contents_of_object(reader: Reader, x: Object) -> Record:
    """The attributes of an instance, or the entries of a dictionary."""
    return as_mapping(reader, x) if is_changing(x) else object_as_record(reader, x)


def own_contents(reader: Reader, x: List, code: str, what: str, help_: str) -> Abstract:
    """The contents of a list, in arrays of its own if it is stored in arrays. Lists of lists in arrays are refused."""
    contents = contents_of_list(reader, x)
    if isinstance(contents, Stored) and holds_lists(contents.element):
        message = f"{what} is a list of lists with lengths known only at run time, which is not supported"
        reader.refuse(code, None, message, help_=help_)
    return flat_contents(reader, x) if isinstance(contents, Stored) else contents


def with_values(reader: Reader, x: Abstract) -> Abstract:
    """The value with the current contents of elements of structured arrays in their place."""
    return _remade(reader, x, lambda leaf: leaf)


def _remade(reader: Reader, x: Abstract, leaf: Callable[[Abstract], Abstract]) -> Abstract:
    def remade(whole: Any, parts: list[Abstract]) -> Abstract:
        return as_values(reader, whole, reader.frame.node) if isinstance(whole, Element) else whole.remade(parts)

    found: Abstract = NODES.fold(x, leaf, remade)
    return found


def refuse_optional(reader: Reader, x: Abstract) -> NoReturn:
    reader.refuse("SD401", None, f"a part of the result is {in_words(reader, x)}, which is not supported")


def contents_of_result(
    reader: Reader, result: Abstract, when_optional: Callable[[Reader, Abstract], Abstract] = refuse_optional
) -> Abstract:
    """The result of a function with the contents of its lists and objects."""

    def visit(x: Abstract) -> Abstract:
        match x:
            case Object() if is_table(x):
                message = "the result is a dictionary whose keys are known at run time"
                reader.refuse("SD401", None, message, help_="return a list or an array of its values")
            case Object() if x.kind is Deque:
                reader.refuse("SD401", None, "the result is a deque", help_="return an array: `np.array(...)`")
            case Object():
                require_visible(reader, contents_of_object(reader, x))
                return NODES.map(visit, contents_of_object(reader, x))
            case List():
                help_ = "return an array: `np.array(...)`"
                contents = own_contents(reader, x, "SD401", "the result", help_)
                require_visible(reader, contents)
                return NODES.map(visit, contents)
            case Value(type=Array(rank=0)):
                return reader.load(x, ())
            case Optional():
                return when_optional(reader, x)
            case Poison():
                reader.refuse_poison(x)
        return x

    require_visible(reader, result)
    return _remade(reader, result, visit)


def require_visible(reader: Reader, x: Abstract) -> None:
    """Refuse instances with an attribute of their own that a property or a descriptor of the class hides."""
    for record in records_in(x):
        if hides(record.kind.kind, record.kind.names):
            message = f"the result has an instance of `{record.kind.kind.__name__}`, whose class hides its attributes"
            reader.refuse("SD401", None, message, help_="return the attributes that you need")
