"""Outside values: numbers and arrays become inputs, all others are compiled in and guarded."""

from __future__ import annotations

import ast
import contextlib
import enum
import functools
import importlib
import re
import sys
import types
from collections import OrderedDict, deque, namedtuple
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import typed

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.diagnostics.naming_objects import array_of, instead_of, named
from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    Items,
    Keywords,
    List,
    Object,
    Own,
    Poison,
    Record,
    Static,
    Structured,
    Tuple,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import ClassAttribute, Found, IsMentioned
from srcdiff.frontend.interpreter.dictionaries import cell_of
from srcdiff.frontend.interpreter.record_fields import relate_sizes
from srcdiff.frontend.reading import Outside
from srcdiff.frontend.source.guards import (
    Attribute,
    ClassEntry,
    Constant,
    Element,
    Place,
    Summary,
    Variable,
    class_entry,
    contents,
    exactly,
    is_too_large,
    made,
)
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import COMPLEX, FLOAT, Array, Scalar, is_supported_dtype
from srcdiff.library.deques import Deque
from srcdiff.signature.enums import spelled
from srcdiff.signature.own_arrays import has_own_array, own_array, speaks_array
from srcdiff.signature.random_sources import SOURCES
from srcdiff.signature.record_layouts import RecordLayout
from srcdiff.signature.structures import Layout, is_plain_class, is_plain_tuple, layout_of

_MANY = 300  # the largest number of elements in an outside structure


_INFORMATION = {
    type(x): namedtuple(type(x).__name__, type(x).__match_args__)
    for x in (sys.float_info, sys.version_info, sys.int_info, sys.hash_info, sys.flags)
}
"""Named tuples in place of the tuples in which Python describes itself."""


_KEYS = "use strings or integers as keys, or read the values that you need outside the function and pass them in"


def outside_name(reader: Reader, function: types.FunctionType, node: ast.Name) -> Abstract:
    place = Variable(function, node.id)
    try:
        value = place.read()
    except NameError as error:
        reader.refuse("SD204", node, str(error))
    found = lift(reader, value, place, node.id, (), node)
    return Own(found.value) if reader.frame.library and callable(value) and isinstance(found, Static) else found


def look_up(reader: Reader, owner: Any, name: str, node: ast.AST) -> Abstract:
    """An attribute of a module. Mathematical constants are compiled in."""
    place = Attribute(Constant(owner), name)
    found = place.read()
    if type(found) is float and owner.__name__.partition(".")[0] in ("math", "numpy"):
        reader.guard(place, found)
        return Static(found)
    return lift(reader, found, place, name, (), node)


def lift(
    reader: Reader, value: Any, place: Place, name: str, path: tuple[Any, ...], node: ast.AST, held: str | None = None
) -> Abstract:
    """An outside value: numbers and arrays become inputs, all others are compiled in and guarded.

    A structure is taken with its form at this call, and is immutable. A part of it may be `held`: if the structure is
    guarded by its form (`made`), the part needs no guard; if it is `fixed`, the part cannot change while the guard
    holds, so its numbers are compiled in too.
    """
    if isinstance(value, enum.Enum):
        if held is None:
            reader.guard(place, value)
        return Static(value)
    if has_own_array(value):
        return lift_own_array(reader, value, place, name, path, node)
    if isinstance(value, SOURCES):
        reader.guard(place, value)
        return Static(value)
    if isinstance(value, typed.List | typed.Dict):
        plain = list if isinstance(value, typed.List) else dict
        return lift(reader, plain(value), Summary(plain, place), name, path, node, held)
    if type(value) is deque:
        return lift_deque(reader, value, place, name, path)
    if type(value) in _INFORMATION:
        reader.guard(place, value)
        return Tuple(tuple(map(Static, value)), _INFORMATION[type(value)])
    is_opened = is_plain_tuple(type(value)) if isinstance(value, tuple) else not reader.frame.library
    layout = layout_of(value) if is_opened else None
    if layout is not None:
        return lift_parts(reader, value, layout, place, name, path, node, held)
    is_number = isinstance(value, np.inexact) or type(value) in (float, complex)
    if type(value) in (np.ndarray, np.memmap) or (is_number and held != "fixed"):
        return input_from_outside(reader, value, place, name, path, node)
    numpys = isinstance(value, np.integer | np.bool_)
    is_other = isinstance(value, float | complex | tuple | list | dict | set | np.generic | np.ndarray)
    if is_other and not numpys and not is_number:
        what = "a dictionary with keys other than strings and integers" if type(value) is dict else named(value)
        help_ = _KEYS if type(value) is dict else instead_of(type(value))
        message = f"`{name}` from outside the function is {what}, which is not supported"
        reader.refuse("SD201", node, message, help_=help_)
    if held is None:
        reader.guard(place, value)
    kind: Any = type(value)
    if is_plain_class(kind):
        reader.guard(Summary(made, place), made(value))  # attributes may be added to it
        look_at_class(reader, kind)
    return Static(value.item() if isinstance(value, np.generic) else value, numpys)


def lift_own_array(
    reader: Reader, value: Any, place: Place, name: str, path: tuple[Any, ...], node: ast.AST
) -> Abstract:
    """An object that stands for an array or a float. It is converted in every call."""
    try:
        found = own_array(value)
    except TypeError as error:
        reader.refuse("SD201", node, f"`{name}` cannot be converted to an array: {error}")
    if isinstance(found, np.ndarray | float | np.floating):
        return input_from_outside(reader, found, Summary(own_array, place), name, path, node)
    reader.guard(Summary(own_constant, place), own_constant(value))
    return Static(found.item() if isinstance(found, np.generic) else found, isinstance(found, np.generic))


def own_constant(value: Any) -> Any:
    """The integer or boolean that an object stands for, in a comparison."""
    return exactly(own_array(value))


def as_array_from_outside(reader: Reader, x: Abstract, node: ast.AST) -> Abstract:
    """The argument of `np.asarray`. An outside object that NumPy can convert becomes an input."""
    if not (isinstance(x, Static) and speaks_array(x.value)):
        return x
    of = node.args[0] if isinstance(node, ast.Call) and node.args else None
    name = of.id if isinstance(of, ast.Name) else "array"
    return input_from_outside(reader, np.asarray(x.value), Summary(np.asarray, Constant(x.value)), name, (), node)


def lift_deque(reader: Reader, value: deque[Any], place: Place, name: str, path: tuple[Any, ...]) -> Abstract:
    """A deque from outside: an object that is made before anything is read."""
    if id(value) not in reader.lifted:
        raise IsMentioned(Found(value, place, name, path))
    reader.held_outside.append(place)
    reader.guard(place, value)  # whether two of them are identical is compiled in
    return reader.lifted[id(value)]


def made_deque(value: deque[Any]) -> Any:
    """The form of a deque."""
    return value.maxlen, made(list(value))


def lift_parts(
    reader: Reader,
    value: Any,
    layout: Layout,
    place: Place,
    name: str,
    path: tuple[Any, ...],
    node: ast.AST,
    held: str | None,
) -> Abstract:
    is_dictionary = layout.is_mapping and all(type(n) is str for n in layout.names)
    has_identity = (dict if is_dictionary else layout.kind) in reader.stateful
    if has_identity and id(value) not in reader.lifted:
        raise IsMentioned(Found(value, place, name, path))
    if has_identity or layout.kind is list:
        reader.held_outside.append(place)
    if reader.lifted and (has_identity or layout.kind is list):
        reader.guard(place, value)  # whether two of them are identical is compiled in
    if id(value) in reader.lifted:
        return reader.lifted[id(value)]
    if isinstance(layout, RecordLayout):
        reader.held_outside.append(place)
    names = layout.names
    if len(names) > _MANY:
        message = f"`{name}` from outside the function has {len(names)} elements; at most {_MANY} are supported"
        instead = "read the values that you need outside the function, and pass them in"
        help_ = instead if layout.is_mapping else "convert it to an array: `np.array(...)`"
        reader.refuse("SD201", node, message, help_=help_)
    held = None if held == "fixed" and not isinstance(value, tuple) else held  # only a tuple is immutable
    if held is None:
        reader.guard(Summary(made, place), made(value))
    look_at_class(reader, type(value))
    inner = [Attribute(place, str(n)) if layout.is_instance else Element(place, n) for n in names]
    is_opened = held is not None or not is_too_large(value)  # as in `made`
    items = tuple(
        lift_part(reader, v, at, name, (*path, n), node, held or "made", layout)
        if is_opened or not is_too_large(v)
        else too_many_parts(reader, f"`{name}.{n}`" if layout.is_instance else f"`{name}[{n!r}]`", node)
        for v, at, n in zip(layout.taken_apart(value), inner, names, strict=True)
    )
    if layout.kind is list and reader.hoisting:
        handle = reader.lifted[id(value)] = List()
        reader.cells[handle] = Items(items)
        return handle
    if issubclass(layout.kind, tuple | list):
        return Tuple(items, layout.kind if hasattr(value, "_fields") else None, isinstance(value, list))
    if isinstance(layout, RecordLayout):
        return relate_sizes(reader, Structured(items, layout))
    return Record(items, layout, is_outside=is_dictionary)


def too_many_parts(reader: Reader, name: str, node: ast.AST) -> Poison:
    message = f"{name} from outside the function refers to too many objects, which refer to each other"
    return Poison(Problem("SD201", message, reader.span_of(node), help="pass the values that you need"))


def lift_part(
    reader: Reader, value: Any, place: Place, name: str, path: tuple[Any, ...], node: ast.AST, held: str, layout: Layout
) -> Abstract:
    """A part of an outside structure. An unsupported attribute is poisoned."""
    if not layout.is_instance and not isinstance(layout, RecordLayout):
        return lift(reader, value, place, name, path, node, held)
    if id(value) in reader.lifting:
        message = f"`{name}` from outside the function refers to itself"
        return Poison(Problem("SD201", message, reader.span_of(node), help="pass the values that you need"))
    reader.lifting.append(id(value))
    try:
        return lift(reader, value, place, name, path, node, held)
    except Refusal as refusal:
        return Poison(refusal.problem)
    finally:
        reader.lifting.pop()


def hoist(reader: Reader, mentioned: Iterable[Found], node: ast.AST) -> None:
    """Create objects for outside instances and dictionaries before anything is read. Lists in them can be changed.

    They may refer to each other, so all of them are created before the first gets its attributes.
    """
    each = [(found, layout_of(found.value)) for found in mentioned]
    for found, layout in each:
        reader.lifted[id(found.value)] = empty_for(reader, layout, node)
    reader.hoisting = True
    for found, layout in each:
        new = reader.lifted[id(found.value)]
        if isinstance(new, List):
            reader.guard(Summary(made, found.place), made(found.value))
            fill_list(reader, new, found, node)
            continue
        assert isinstance(new, Object)
        if layout is None:
            reader.guard(Summary(made_deque, found.place), made_deque(found.value))
            elements = reader.cells[new.number, "elements"] = List()
            reader.cells[new.number, "maxlen"] = Static(found.value.maxlen)
            fill_list(reader, elements, found, node)
            continue
        reader.guard(Summary(made, found.place), made(found.value))
        look_at_class(reader, layout.kind)
        is_opened = not is_too_large(found.value)
        for name, value in zip(layout.names, layout.taken_apart(found.value), strict=True):
            path = (*found.path, name)
            place = Element(found.place, name) if layout.is_mapping else Attribute(found.place, str(name))
            if is_opened or not is_too_large(value):
                lifted = lift_part(reader, value, place, found.name, path, node, "made", layout)
            else:
                lifted = too_many_parts(reader, f"`{found.name}.{name}`", node)
            cell = cell_of(reader, new, name) if layout.is_mapping else (new.number, str(name))
            reader.cells[cell] = lifted
        for name in layout.extra:
            reader.cells[new.number, name] = Poison(no_field(reader, layout.kind, name, node))
    reader.hoisting = False


def empty_for(reader: Reader, layout: Layout | None, node: ast.AST) -> List | Object:
    """The list or the object for an outside list, deque, instance or dictionary."""
    if layout is not None and layout.kind is list:
        return List()
    kind = Deque if layout is None else layout.kind
    if layout is None or not layout.is_mapping:
        reader.defaults.setdefault(kind, values_in_class(reader, kind, node))
    new = Object(kind, reader.defaults.get(kind, {}))
    reader.objects[new.number] = new
    return new


def fill_list(reader: Reader, new: List, found: Found, node: ast.AST) -> None:
    """Give the list for an outside list or deque its elements."""
    reader.cells[new] = Items(
        tuple(
            lift(reader, x, Element(found.place, k), found.name, (*found.path, k), node, "made")
            for k, x in enumerate(found.value)
        )
    )


def no_field(reader: Reader, kind: type, name: str, node: ast.AST) -> Problem:
    """The problem of a dataclass instance with an attribute that is not a field."""
    is_in_class = hasattr(kind, name)
    what = f"overrides the attribute `{name}` of its class" if is_in_class else f"has `{name}`, which is not a field"
    message = f"this instance of `{kind.__name__}` {what}"
    return Problem("SD203", message, reader.span_of(node), help=f"make `{name}` a field of `{kind.__name__}`")


def values_in_class(reader: Reader, kind: type, node: ast.AST) -> dict[str, Abstract]:
    """The numbers, arrays and constants among the attributes of a class."""
    found: dict[str, Abstract] = {}
    for name in (n for base in reversed(kind.__mro__) for n in vars(base) if not n.startswith("__")):
        if any(ClassAttribute(base, name) in reader.stateful for base in kind.__mro__):
            continue
        if isinstance(class_entry(kind, name), bool | int | float | str | np.generic | np.ndarray | None):
            with contextlib.suppress(Refusal):
                found[name] = class_attribute(reader, kind, name, node)
    return found


def look_at_class(reader: Reader, kind: type) -> None:
    """Guard the methods of the class of a named tuple or a dataclass."""
    if kind not in (tuple, list, dict, OrderedDict):
        reader.guards.add_class(kind)


def input_from_outside(
    reader: Reader, value: Any, place: Place, name: str, path: tuple[Any, ...], node: ast.AST
) -> Value:
    for known in reader.outside:
        if known.place.key == place.key:
            return known.value
    if isinstance(value, np.ndarray):
        if not is_supported_dtype(value.dtype):
            message, help_ = array_of(value.dtype)
            reader.refuse("SD201", node, f"`{name}` is {message}, which is not supported", help_=help_)
        type_: Array | Scalar = Array(value.dtype.name, value.ndim)
    else:
        is_complex = type(value) is complex
        type_ = Scalar(value.dtype.name) if isinstance(value, np.inexact) else COMPLEX if is_complex else FLOAT
    parts = [spelled(p) if isinstance(p, enum.Enum) else str(p) for p in path]
    new = Outside(place, name, path, Value(type_, re.sub(r"\W", "_", "_".join([name, *parts]))))
    reader.outside.append(new)
    reader.given.add(new.value)
    if type(value) in (float, complex):
        reader.pythons.add(new.value)
    return new.value


def imported_module(reader: Reader, name: str) -> Any:
    """The module that an `import` statement imports."""
    module = importlib.import_module(name)
    reader.guard(Element(Constant(sys.modules), name), module)
    return module


def lift_defaults(reader: Reader, function: types.FunctionType, node: ast.AST) -> dict[str, Abstract]:
    """The parameters that have a default, with its current value."""
    code, whole = function.__code__, Constant(function)
    defaults, by_name = function.__defaults__ or (), function.__kwdefaults__ or {}
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    positional, named = Attribute(whole, "__defaults__"), Attribute(whole, "__kwdefaults__")
    found = {
        n: lift_fixed(reader, d, Element(positional, k), n, node)
        for k, (n, d) in enumerate(zip(names, defaults, strict=True))
    }
    return {**found, **{n: lift_fixed(reader, d, Element(named, n), n, node) for n, d in by_name.items()}}


def lift_partial(reader: Reader, function: functools.partial[Any], node: ast.AST) -> tuple[Arguments, Keywords]:
    """The arguments of a `functools.partial`."""
    whole = Constant(function)
    args, keywords = Attribute(whole, "args"), Attribute(whole, "keywords")
    reader.guard(Attribute(whole, "func"), function.func)
    reader.guard(args, function.args)
    reader.guard(Summary(contents, keywords), contents(function.keywords))
    lifted = [lift_fixed(reader, a, Element(args, k), "argument", node) for k, a in enumerate(function.args)]
    return lifted, {n: lift_fixed(reader, a, Element(keywords, n), n, node) for n, a in function.keywords.items()}


def lift_fixed(reader: Reader, value: Any, place: Place, name: str, node: ast.AST) -> Abstract:
    """A default, or another value that cannot change while a guard holds."""
    return lift(reader, value, place, name, (), node, "fixed")


def class_attribute(reader: Reader, kind: type, name: str, node: ast.AST) -> Abstract:
    """An attribute of a class or of one of its bases."""
    place = ClassEntry(kind, name)
    look_at_class(reader, kind)
    found = place.read()
    if isinstance(found, staticmethod):
        reader.guard(place, found)
        return Static(found.__func__)
    return lift(reader, found, place, name, (), node)
