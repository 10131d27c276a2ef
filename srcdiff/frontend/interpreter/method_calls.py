"""Calls of methods, by the kind of the object they belong to."""

from __future__ import annotations

import ast
import logging

import numpy as np

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    Choice,
    Element,
    Items,
    Keywords,
    Lazy,
    List,
    Method,
    Object,
    Own,
    Record,
    Static,
    Structured,
    Text,
    Tuple,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import IsWritten
from srcdiff.frontend.interpreter.call_arguments import computed, run_handler
from srcdiff.frontend.interpreter.choices import for_the_chosen
from srcdiff.frontend.interpreter.declared_functions import rule_declared_for
from srcdiff.frontend.interpreter.dictionaries import is_dictionary
from srcdiff.frontend.interpreter.elementwise_functions import pythons_copy
from srcdiff.frontend.interpreter.evaluation import call_with
from srcdiff.frontend.interpreter.instances import read_attribute
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_storage import contents_of_list
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.number_kinds import pythons_own
from srcdiff.frontend.interpreter.numbers import is_array
from srcdiff.frontend.interpreter.presence import needed
from srcdiff.frontend.interpreter.representation import refuse_text
from srcdiff.frontend.interpreter.strings import TEXT_METHODS, text_method
from srcdiff.frontend.interpreter.tables import DRAWS, METHODS, callee
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array, is_inexact
from srcdiff.ir.types import is_complex as is_complex_number
from srcdiff.library.numpy_table import METHODS as ARRAY_METHODS
from srcdiff.library.numpy_table import UFUNC_METHODS
from srcdiff.signature.random_sources import SOURCES, SourceLayout

_CHANGING = frozenset(("update", "pop", "setdefault", "clear"))
"""Methods that change a dictionary."""


_VIEWS = frozenset(("keys", "values", "items", "get"))
"""Methods that need a dictionary itself, not its contents as a whole."""


def holds_complex(reader: Reader, x: Abstract) -> bool:
    """Whether a value is or contains complex numbers."""
    match x:
        case Lazy():
            return x.dtype.startswith("complex")
        case Value():
            return is_complex_number(x.type)
        case Static():
            return isinstance(x.value, complex)
        case List():
            contents = contents_of_list(reader, x)
            parts = getattr(contents, "items" if isinstance(contents, Items) else "arrays")
            return any(holds_complex(reader, part) for part in parts)
        case Tuple() | Record():
            return any(holds_complex(reader, part) for part in x.items)
    return False


def holds_reals(reader: Reader, x: Abstract) -> bool:
    """Whether it is an array of real numbers."""
    return is_array(x) and not (is_complex_number(x.type) if isinstance(x, Value) else holds_complex(reader, x))


def is_source(x: Abstract) -> bool:
    """Whether it is a source of random numbers."""
    known = isinstance(x, Static) and isinstance(x.value, SOURCES)
    return known or (isinstance(x, Record) and isinstance(x.kind, SourceLayout))


def _kind_of_owner(x: Abstract) -> str:
    """The kind of objects in the table of methods; empty for others."""
    if is_dictionary(x):
        return "dictionary"
    match x:
        case List():
            return "list"
        case Value():
            return "array"
        case Tuple():
            return "tuple"
        case Structured() | Element():
            return "records"
        case Static(value=logging.Logger()):
            return "logger"
        case Static(value=str()):
            return "text"
    return ""


@callee(Method)
def call_method(reader: Reader, method: Method, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    owner = method.of
    if isinstance(owner, Choice):
        args, keywords = computed(reader, args, keywords)

        def called(chosen: Abstract) -> Abstract:
            if not isinstance(chosen, Object):
                return call_method(reader, Method(chosen, method.name), args, keywords, node)
            return call_with(reader, read_attribute(reader, chosen, method.name, node), args, keywords, node)

        return for_the_chosen(reader, owner, called, node)
    if is_array(owner):
        reader.note_meaning(method.name, node, has_arguments=bool(args or keywords))
    named = ARRAY_METHODS.get(method.name)
    if isinstance(owner, Static) and isinstance(owner.value, np.ufunc):
        if rule_declared_for(reader, owner) is not None:
            message = f"the rule for `{owner.value.__name__}` does not cover its method `{method.name}`"
            reader.refuse("SD304", node, message, help_="write a loop that calls the function")
        return call_with(reader, Own(UFUNC_METHODS[method.name]), [owner, *args], keywords, node)
    if method.name in ("conj", "conjugate") and holds_reals(reader, owner) and not args and not keywords:
        return forced(reader, owner)  # for real numbers it is the array itself; `np.conj` makes a copy
    if is_array(owner) and hasattr(np.ndarray, method.name):
        declared = rule_declared_for(reader, Static(getattr(np.ndarray, method.name)))
        if declared is not None:
            return call_with(reader, Static(declared), [owner, *args], keywords, node)
    if named is not None and is_array(owner):
        return call_with(reader, Own(named), [owner, *args], keywords, node)
    owner = forced(reader, owner)
    args = [forced(reader, a) for a in args]
    if isinstance(owner, Value) and not isinstance(owner.type, Array):
        return call_method_of_number(reader, owner, method.name, args, keywords, node)
    if is_source(owner):
        return DRAWS["source"](reader, owner, method.name, args, keywords, node)
    kind = _kind_of_owner(owner)
    if not kind and isinstance(owner, Record | Object):
        return call_with(reader, read_attribute(reader, owner, method.name, node), args, keywords, node)
    if not kind:
        if isinstance(owner, Text):
            refuse_text(reader, f"`{method.name}` of a text with numbers is not supported", node)
        reader.refuse("SD203", node, f"the method `{method.name}` of {in_words(reader, owner)} is not supported")
    if kind == "dictionary" and method.name not in _CHANGING and method.name not in _VIEWS:
        owner = needed(reader, owner, node)
    function = METHODS.get((kind, method.name))
    if function is None and kind == "text" and method.name in TEXT_METHODS:
        return text_method(reader, method.name, owner, args, keywords, node)
    if function is None:
        code = "SD303" if kind == "array" else "SD102"
        if kind == "tuple" and hasattr(list, method.name):
            if isinstance(owner, Tuple) and owner.is_list and list not in reader.stateful:
                raise IsWritten(list)
            message = "a tuple, or a list from outside the function, cannot be changed"
            reader.refuse(code, node, message, help_="convert it to a list first: `list(...)`")
        words = {"array": "an array", "logger": "a logger"}.get(kind) or in_words(reader, owner)
        reader.refuse(code, node, f"the method `{method.name}` of {words} is not supported")
    return run_handler(reader, function, method.name, node, owner, *args, **keywords)


def call_method_of_number(
    reader: Reader, owner: Value, name: str, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    """NumPy's numbers have the methods of arrays."""
    if name in ("item", "tolist") and not args and not keywords:
        return pythons_own(reader, pythons_copy(reader, owner, "float" if is_inexact(owner.type) else "int"))
    if name == "copy" and not args and not keywords:
        return owner
    if name not in ARRAY_METHODS:
        reader.refuse("SD203", node, f"the method `{name}` of {in_words(reader, owner)} is not supported")
    return call_with(reader, Own(ARRAY_METHODS[name]), [owner, *args], keywords, node)
