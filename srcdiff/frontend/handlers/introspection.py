"""Queries of a program about its values: their classes and their attributes."""

from __future__ import annotations

import abc
import ast
import collections
import enum
import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import typed

from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Arguments,
    Choice,
    Closure,
    Instance,
    Keywords,
    Lazy,
    List,
    Maybe,
    Method,
    Missing,
    Object,
    Optional,
    Partial,
    Range,
    Record,
    Static,
    Super,
    Text,
    Transformed,
    Tuple,
    TypeOf,
    class_of,
    is_instance,
    is_none,
)
from srcdiff.frontend.domain.lattice import is_complex
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.assignments import set_attribute
from srcdiff.frontend.interpreter.attributes import attribute_of
from srcdiff.frontend.interpreter.class_attributes import written_attribute
from srcdiff.frontend.interpreter.dictionaries import write_own
from srcdiff.frontend.interpreter.evaluation import call_value, known_value
from srcdiff.frontend.interpreter.instances import in_class, own_attribute
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.made_dictionaries import is_table
from srcdiff.frontend.interpreter.number_kinds import is_pythons, numpys_own
from srcdiff.frontend.interpreter.outside import look_at_class
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.tables import callee, handles
from srcdiff.frontend.source.guards import Constant, Summary
from srcdiff.frontend.source.matches import matched_part
from srcdiff.ir.nodes import Slice, Value
from srcdiff.ir.types import Array
from srcdiff.library.clocks import CLOCKS, NOW
from srcdiff.library.deques import Deque
from srcdiff.library.language import event_settings
from srcdiff.signature.jit_classes import standing_for

_NUMBERS: dict[str, type] = {
    "float64": float,
    "float32": float,
    "complex128": complex,
    "complex64": complex,
    "int64": int,
    "bool": bool,
}

_NUMPYS: dict[str, tuple[type, ...]] = {
    "float64": (np.float64,),
    "float32": (np.float32,),
    "complex128": (np.complex128,),
    "complex64": (np.complex64,),
    "int64": (np.int64, np.int32, np.int16, np.int8, np.uint64, np.uint32, np.uint16, np.uint8),
    "bool": (np.bool_,),
}


_MATCHED_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes whose pattern with one part matches the whole value."""


def classes_of(reader: Reader, x: Abstract) -> tuple[type, ...]:
    """The classes that a value may have in Python; none if that is unknown."""
    match x:
        case Value(type=Array()) | Lazy():
            return (np.ndarray,)
        case Value():
            return classes_of_number(reader, x)
        case Static(numpys=True):
            return _NUMPYS["bool" if isinstance(x.value, bool) else "int64"]
        case Static():
            return (type(x.value),)
        case Tuple(kind=None, is_list=None):
            return (list, tuple)
        case Tuple():
            return (list if x.is_list else x.kind or tuple,)
        case Record() if is_complex(x):
            return (np.ndarray,)
        case Record():
            return (x.kind.kind,)
        case Object() if is_table(x):
            is_told = not is_none(reader.cells[x.number, "told"])
            return (typed.Dict if is_told else dict,)
        case Object() if x.kind is Deque:
            return (collections.deque,)
        case Object() if x.number in reader.factories:
            return (collections.defaultdict,)
        case Object() if x.site in reader.typed:
            return (typed.Dict,)
        case Object():
            return (x.kind,)
        case List():
            if x in reader.typed or x in reader.tuples:
                return (typed.List if x in reader.typed else tuple,)
            return (list, tuple) if reader.tuples else (list,)
        case Slice():
            return (slice,)
        case Range():
            return (range,)
        case Text():
            return (str,)
        case Closure():
            return (types.FunctionType,)
        case Partial():
            return (types.MethodType, functools.partial)
        case Choice():
            return tuple({k: None for o in x.options for k in classes_of(reader, o)})
    return ()


def classes_of_number(reader: Reader, x: Value) -> tuple[type, ...]:
    """Python's class of a number, or NumPy's. Functions that Numba compiles only have Python's."""
    dtype = x.scalar.dtype
    if reader.frame.told is not None or reader.is_kernel:
        return (_NUMBERS[dtype],)
    if x in reader.whole:
        return (int,)
    if x in reader.powers:
        return (int, float, *_NUMPYS["int64"], np.float64)
    if x in reader.boxes:
        return (np.ndarray, *_NUMPYS[dtype])
    if dtype in ("float32", "complex64") and reader.frame.library:
        return _NUMPYS[dtype]
    if is_pythons(reader, x):
        reader.assumes_pythons = True
        return (_NUMBERS[dtype],)
    is_numpys = dtype in ("float32", "complex64") or x in reader.held
    return _NUMPYS[dtype] if is_numpys else (_NUMBERS[dtype], *_NUMPYS[dtype])


def refuse_unknown_class(reader: Reader, x: Abstract, node: ast.AST) -> None:
    if isinstance(x, Value) and not isinstance(x.type, Array):
        message = "srcdiff cannot tell here whether this number is Python's or NumPy's"
        reader.refuse("SD205", node, message, help_="convert it first: `float(...)` or `int(...)`")
    reader.refuse("SD205", node, f"the class of {in_words(reader, x)} is not known at compile time")


# -- classes ---------------------------------------------------------------------------------------------------------


@handles(isinstance)
def call_isinstance(reader: Reader, node: ast.AST, x: Abstract, kinds: Abstract) -> Abstract:
    if isinstance(x, Optional):
        return isinstance_of_optional(reader, node, x, kinds)
    asked = tuple(asked_classes(reader, kinds, node))
    if isinstance(x, Static) and not x.numpys:
        return Static(ask(reader, isinstance, x.value, asked, node))
    answers = {ask(reader, issubclass, k, asked, node) for k in classes_of(reader, x)}
    if len(answers) != 1:
        refuse_unknown_class(reader, x, node)
    return Static(answers.pop())


def isinstance_of_optional(reader: Reader, node: ast.AST, x: Optional, kinds: Abstract) -> Abstract:
    """`isinstance` of a value that is `None` on some paths."""
    there = call_isinstance(reader, node, x.value, kinds)
    is_none = call_isinstance(reader, node, Static(None), kinds)
    if there == is_none:
        return there
    flag = as_value(reader, x.flag)
    return flag if there == Static(True) else reader.apply("logical_not", flag)


def asked_classes(reader: Reader, kinds: Abstract, node: ast.AST) -> Iterator[Any]:
    """The classes in the second argument of `isinstance`."""
    if isinstance(kinds, Tuple):
        for k in kinds.items:
            yield from asked_classes(reader, k, node)
        return
    if not isinstance(kinds, Static):
        reader.refuse("SD205", node, "the class is not known at compile time")
    compiled = standing_for(kinds.value)
    if compiled is not None:
        yield compiled
        return
    is_plain = type(kinds.value) in (type, abc.ABCMeta, enum.EnumType, types.UnionType)
    if not is_plain and type(kinds.value).__module__ not in ("typing", "abc", "numpy"):
        message = f"{in_words(reader, kinds)} has a metaclass of its own, which is not supported"
        reader.refuse("SD102", node, message)
    yield kinds.value


@handles(issubclass)
def call_issubclass(reader: Reader, node: ast.AST, of: Abstract, kinds: Abstract) -> Abstract:
    """`issubclass(type(x), C)`. The class of a number may be one of several."""
    options = of.options if isinstance(of, TypeOf) else (known_value(reader, of, "the class", node, type),)
    asked = tuple(asked_classes(reader, kinds, node))
    answers = {ask(reader, issubclass, standing_for(k) or k, asked, node) for k in options}
    if len(answers) != 1:
        message = "srcdiff cannot tell here whether this number is Python's or NumPy's"
        reader.refuse("SD205", node, message, help_="convert it first: `float(...)` or `int(...)`")
    return Static(answers.pop())


def ask(reader: Reader, question: Any, x: Any, kinds: tuple[Any, ...], node: ast.AST) -> bool:
    try:
        return bool(question(x, kinds))
    except TypeError as error:
        reader.refuse("SD203", node, str(error))


@handles(type)
def call_type(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    found = classes_of(reader, x)
    if not found:
        refuse_unknown_class(reader, x, node)
    return Static(found[0]) if len(found) == 1 else TypeOf(found)


@callee(TypeOf)
def call_type_of(reader: Reader, kind: TypeOf, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """`type(scale)(1)`: Python's and NumPy's classes convert numbers alike."""
    for number in (bool, int, float, complex):
        if all(issubclass(k, (number, *_NUMPYS[np.dtype(number).name])) for k in kind.options) and len(args) == 1:
            found = call_value(reader, Static(number), args, node)
            return numpys_own(reader, as_value(reader, found))
    reader.refuse("SD205", node, "the class that is called is not known at compile time")


# -- attributes ------------------------------------------------------------------------------------------------------


def constant_name(reader: Reader, name: Abstract, node: ast.AST) -> str:
    return str.__str__(known_value(reader, name, "the name of the attribute", node, str))


def has_attribute(value: Any, name: str) -> bool:
    return hasattr(value, name)


def is_there(reader: Reader, x: Abstract, name: str, node: ast.AST) -> bool:
    """Whether a value has an attribute."""
    if isinstance(x, Super):
        kinds = class_of(x).__mro__
        return any(name in vars(k) for k in kinds[kinds.index(x.above) + 1 :])
    kind = class_of(x) if is_instance(x) else x.value if isinstance(x, Static) else None
    if isinstance(kind, type) and not isinstance(written_attribute(reader, kind.__mro__, name, node), Missing):
        return True
    if is_instance(x):
        return is_in_instance(reader, x, name, node)
    if isinstance(x, Static) and not isinstance(x.value, bool | int | float | complex):
        refuse_computed(reader, type(x.value), name, node)
        found = has_attribute(x.value, name)
        reader.guard(Summary(has_attribute, Constant(x.value), (name,)), found)
        return found
    answers = {in_class(k, name) is not MISSING for k in classes_of(reader, x)}  # not in the class of the class
    if len(answers) != 1:
        refuse_unknown_class(reader, x, node)
    return answers.pop()


def refuse_computed(reader: Reader, kind: type, name: str, node: ast.AST) -> None:
    if isinstance(in_class(kind, name), property | functools.cached_property):
        message = f"`{name}` of `{kind.__name__}` is a property, which may raise `AttributeError`"
        reader.refuse("SD205", node, message, help_=f"read `.{name}` itself")


def is_in_instance(reader: Reader, x: Instance, name: str, node: ast.AST) -> bool:
    kind = class_of(x)
    refuse_computed(reader, kind, name, node)
    look_at_class(reader, kind)
    own = own_attribute(reader, x, name)
    if isinstance(own, Maybe):
        message = f"`{name}` is an attribute on some paths only"
        reader.refuse("SD205", node, message, help_=f"assign `{name}` in `__init__`")
    if not isinstance(own, Missing) or (isinstance(x, Record) and name in x.kind.extra):
        return True
    if isinstance(x, Object) and reader.context.awaited:
        message = f"an earlier iteration of the loop may have assigned `{name}`"
        reader.refuse("SD205", node, message, help_=f"assign `{name}` in `__init__`")
    found = in_class(kind, name)
    return found is not MISSING and not isinstance(found, types.MemberDescriptorType)


@handles(hasattr, lazy=True)
def call_hasattr(reader: Reader, node: ast.AST, x: Abstract, name: Abstract) -> Abstract:
    return Static(is_there(reader, x, constant_name(reader, name, node), node))


@handles(getattr, lazy=True)
def call_getattr(reader: Reader, node: ast.AST, x: Abstract, name: Abstract, default: Abstract = MISSING) -> Abstract:
    known = constant_name(reader, name, node)
    if default is not MISSING and not is_there(reader, x, known, node):
        return default
    written = ast.Attribute(value=ast.Constant(None), attr=known, ctx=ast.Load())
    return attribute_of(reader, x, ast.copy_location(written, node))


@handles(setattr)
def call_setattr(reader: Reader, node: ast.AST, x: Abstract, name: Abstract, value: Abstract, /) -> Abstract:
    set_attribute(reader, x, constant_name(reader, name, node), value, node)
    return Static(None)


@handles(object.__setattr__)
def call_setattr_of_object(reader: Reader, node: ast.AST, x: Abstract, name: Abstract, value: Abstract, /) -> Abstract:
    """The way to assign an attribute of a frozen dataclass."""
    if not is_instance(x) or isinstance(in_class(class_of(x), constant_name(reader, name, node)), property):
        reader.refuse("SD102", node, f"`object.__setattr__` of {in_words(reader, x)} is not supported")
    write_own(reader, x, name, value, node)
    return Static(None)


@handles(*CLOCKS)
def call_clock(reader: Reader, node: ast.AST) -> Abstract:
    """A program may read the time and store it, but not compute with it."""
    return Static(NOW)


@handles(object.__init__)
def call_init_of_object(reader: Reader, node: ast.AST, of: Abstract) -> Abstract:
    """`super().__init__()` in a class that has no other base."""
    return Static(None)


@handles(vars)
def call_vars(reader: Reader, node: ast.AST, x: Abstract, /) -> Abstract:
    written = ast.Attribute(value=ast.Constant(None), attr="__dict__", ctx=ast.Load())
    return attribute_of(reader, x, ast.copy_location(written, node))


@handles(matched_part)
def call_matched_part(reader: Reader, node: ast.AST, x: Abstract, kind: Abstract, position: Abstract) -> Abstract:
    """The part of an instance that a pattern `Kind(...)` matches."""
    if not (isinstance(kind, Static) and isinstance(kind.value, type) and isinstance(position, Static)):
        reader.refuse("SD205", node, "the class of the pattern is not known at compile time")
    if kind.value in _MATCHED_WHOLE and position.value == 0:
        return x
    names = getattr(kind.value, "__match_args__", ())
    reader.guard(Summary(match_args, Constant(kind.value)), match_args(kind.value))
    if position.value >= len(names):
        message = f"{kind.value.__name__}() accepts {len(names)} positional sub-patterns"
        reader.refuse("SD203", node, message)
    return call_getattr(reader, node, x, Static(names[position.value]))


def match_args(kind: type) -> Any:
    return getattr(kind, "__match_args__", ())


@handles(event_settings)
def call_event_settings(reader: Reader, node: ast.AST, event: Abstract) -> Abstract:
    """A nested function has no attributes."""
    if not isinstance(event, Static):
        return Tuple((Static(0), Static(0.0)))
    found = event_settings(event.value)
    reader.guards.add(Summary(event_settings, Constant(event.value)), found)  # the library reads the same attributes
    return Tuple(tuple(map(Static, found)))


@handles(callable, lazy=True)
def call_callable(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    match x:
        case Choice() if len({call_callable(reader, node, option) for option in x.options}) > 1:
            reader.refuse("SD205", node, "the argument is one of several objects, of which not all can be called")
        case Choice():
            return call_callable(reader, node, x.options[0])
        case Closure() | Partial() | Transformed() | Method():
            return Static(True)
        case Static():
            return Static(callable(x.value))
        case Optional():
            reader.refuse("SD205", node, "the argument may be `None`", help_="test it with `is None` first")
    return Static(is_instance(x) and in_class(class_of(x), "__call__") is not MISSING)
