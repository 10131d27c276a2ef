"""Instances of classes, and their attributes.

An instance is an immutable value, made of its attributes, if no attribute of an instance of its class is written.
Otherwise the program is read again, and the instances of that class are objects with identity: their attributes are
variables of a scope of their own, so that branches and loops join them like other variables.

    p = Point(1.0, x)       ->      Record((1.0, x), Point)
    p.x += 1.0              ->      p is Object(Point), and `p.x` is the variable `x` of its scope
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any, NoReturn

from numba.core import types as numba_types

from srcdiff.diagnostics import Problem
from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Instance,
    Maybe,
    Missing,
    Object,
    Partial,
    Poison,
    Record,
    Static,
    Super,
    Tuple,
    class_of,
    is_instance,
)
from srcdiff.frontend.domain.lattice import is_complex
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Cells, IsWritten, Key
from srcdiff.frontend.interpreter.class_attributes import written_attribute
from srcdiff.frontend.interpreter.dictionaries import namespace_of, require_in_reach
from srcdiff.frontend.interpreter.evaluation import call_value
from srcdiff.frontend.interpreter.joins import absent
from srcdiff.frontend.interpreter.numba_types import as_told
from srcdiff.frontend.interpreter.numbers import truth_of
from srcdiff.frontend.interpreter.outside import class_attribute, look_at_class, no_field, values_in_class
from srcdiff.frontend.interpreter.presence import checked
from srcdiff.frontend.interpreter.unread import refuse_missing_attribute
from srcdiff.frontend.source.guards import class_entry
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Scalar
from srcdiff.library.hash_tables import HashTable
from srcdiff.library.language import ComplexArray
from srcdiff.signature.attrs_classes import is_frozen, is_written_by_attrs
from srcdiff.signature.jit_classes import field_types
from srcdiff.signature.structures import Layout, is_plain_class, own_methods
from srcdiff.signature.trees import NODES


def new_object(reader: Reader, kind: type, attributes: dict[str, Abstract], node: ast.AST) -> Object:
    """A new object whose scope has these attributes."""
    reader.defaults.setdefault(kind, values_in_class(reader, kind, node))
    found = Object(kind, reader.defaults[kind])
    reader.objects[found.number] = found
    reader.cells.update({(found.number, name): x for name, x in attributes.items()})
    return found


def attributes_now(reader: Reader, x: Object) -> dict[str, Abstract]:
    """The attributes of an object itself, in the order of their creation."""
    return {k[1]: value for k, value in reader.cells.items() if isinstance(k, tuple) and k[0] == x.number}


def object_as_record(reader: Reader, x: Object) -> Record:
    """The current contents of an object, as a value."""
    found = attributes_now(reader, x)
    return Record(tuple(found.values()), Layout(x.kind, tuple(found)))


def in_class(kind: type, name: str) -> Any:
    """An attribute of a class; `MISSING` if it has none."""
    try:
        return class_entry(kind, name)
    except AttributeError:
        return MISSING


# -- reading ---------------------------------------------------------------------------------------------------------


def read_attribute(reader: Reader, owner: Instance | Super, name: str, node: ast.AST) -> Abstract:
    """An attribute of an instance, looked up as in Python: properties, then its own, then those of its class."""
    kind = class_of(owner)
    require_usual_access(reader, kind, ("__getattribute__",), node)
    of: Abstract = owner.of if isinstance(owner, Super) else owner
    kinds = kind.__mro__[kind.__mro__.index(owner.above) + 1 :] if isinstance(owner, Super) else kind.__mro__
    holder = next((k for k in kinds if name in vars(k)), None)
    entry = MISSING if holder is None else vars(holder)[name]
    in_scope = written_attribute(reader, kinds, name, node)
    if isinstance(entry, property) and holder is not None:
        class_attribute(reader, holder, name, node)
        return call_value(reader, Static(entry.fget), [of], node)
    if holder is not None and has_method(entry, "__get__") and has_method(entry, "__set__"):
        return call_descriptor(reader, holder, name, "__get__", [of, Static(kind)], node)
    if not isinstance(owner, Super):
        own = own_attribute(reader, owner, name)
        if not isinstance(own, Missing):
            return _there(reader, owner, name, own, node)
    if not isinstance(in_scope, Missing):
        return in_scope
    if name == "__class__":
        return Static(kind)
    if name in ("__getattribute__", "__setattr__") and holder is object:
        return Partial(Static(getattr if name == "__getattribute__" else setattr), (of,), {})
    if name == "__init__" and holder is object:
        return Partial(Static(object.__init__), (of,), {})
    if name == "__dict__" and isinstance(of, Record | Object) and kind.__dictoffset__ != 0:
        return namespace_of(reader, of)
    if isinstance(owner, Record) and name in owner.kind.extra:
        refuse_missing_attribute(reader, kind, name, no_field(reader, kind, name, node))
    is_empty_slot = isinstance(entry, types.MemberDescriptorType) and not isinstance(owner, Super)
    if holder is None or is_empty_slot:
        require_usual_access(reader, kind, ("__getattr__",), node)
        refuse_missing(reader, owner, name, node)
    if has_method(entry, "__get__"):
        return call_descriptor(reader, holder, name, "__get__", [of, Static(kind)], node)
    found = class_attribute(reader, holder, name, node)
    if isinstance(entry, staticmethod):
        return found
    if isinstance(entry, classmethod):
        return Partial(Static(entry.__func__), (Static(kind),), {})
    if isinstance(entry, functools.cached_property):
        value = call_value(reader, Static(entry.func), [of], node)
        if isinstance(of, Object):
            reader.cells[of.number, name] = value
        elif not _stays(of) or not _stays(value):
            raise IsWritten(kind)  # it may have another value when it is read again
        return value
    if isinstance(entry, types.FunctionType) or hasattr(entry, "py_func"):
        return Partial(Static(entry), (of,), {})
    if isinstance(entry, functools._lru_cache_wrapper):
        message = f"`{name}` of `{kind.__name__}` is cached by `lru_cache`, which is not supported"
        reader.refuse("SD302", node, message, help_="remove the decorator `lru_cache`")
    if hasattr(type(entry), "__get__") and not isinstance(entry, type):
        message = f"`{name}` of `{kind.__name__}` is a descriptor, which is not supported"
        reader.refuse("SD102", node, message, help_="use a method or a property")
    return found


def has_method(entry: Any, name: str) -> bool:
    """Whether an attribute of a class is a descriptor that is written in Python, with this method."""
    kind: Any = type(entry)
    return is_plain_class(kind) and isinstance(in_class(kind, name), types.FunctionType)


def call_descriptor(
    reader: Reader, holder: type, name: str, method: str, args: list[Abstract], node: ast.AST
) -> Abstract:
    """`__get__` or `__set__` of a descriptor, which is an instance in a class."""
    found = class_attribute(reader, holder, name, node)
    if isinstance(found, Static):  # an instance without attributes
        found = Record((), Layout(type(found.value), ()))
    assert isinstance(found, Record | Object)
    return call_value(reader, read_attribute(reader, found, method, node), args, node)


def _stays(x: Abstract) -> bool:
    """Whether a value consists of numbers and constants, so that it is immutable."""
    return all(
        isinstance(leaf, Static) or (isinstance(leaf, Value) and isinstance(leaf.type, Scalar))
        for leaf in NODES.leaves(x)
    )


def require_usual_access(reader: Reader, kind: type, names: tuple[str, ...], node: ast.AST) -> None:
    """Refuse a class that overrides attribute access. The methods written by `dataclasses` are allowed."""
    for method in (in_class(kind, name) for name in names):
        if is_written_by_attrs(method):
            continue
        if isinstance(method, types.FunctionType) and method.__code__.co_filename != "<string>":
            message = f"`{kind.__name__}` defines `{method.__name__}`, which is not supported"
            reader.refuse("SD102", node, message, help_="use properties")


def own_attribute(reader: Reader, owner: Instance, name: str) -> Abstract:
    """An attribute of the instance itself."""
    if isinstance(owner, Object):
        require_in_reach(reader, owner)
        return reader.cells.get((owner.number, name), MISSING)
    return owner.items[owner.kind.names.index(name)] if name in owner.kind.names else MISSING


def _there(reader: Reader, owner: Instance, name: str, found: Abstract, node: ast.AST) -> Abstract:
    """An attribute that may be unusable, or missing on some paths."""
    if isinstance(found, Maybe):
        in_its_class = in_class(class_of(owner), name)
        if in_its_class is not MISSING and not isinstance(in_its_class, types.MemberDescriptorType):
            message = f"`{name}` is an attribute of the instance on some paths, and of its class on others"
            reader.refuse("SD202", node, message, help_=f"assign `{name}` in `__init__`")
        text = f"'{class_of(owner).__name__}' object has no attribute '{name}'"
        if not isinstance(found.flag, Static):
            reader.raise_if(reader.apply("logical_not", found.flag), AttributeError, text)  # type: ignore[arg-type]
        return found.value
    return checked(reader, found, name, node) if isinstance(found, Poison) else found


def defines(x: Abstract, name: str) -> bool:
    """Whether it is an instance of a class with a special method, or a named tuple of such a class."""
    if isinstance(x, Tuple):
        return x.kind is not None and name in own_methods(x.kind)
    return is_instance(x) and in_class(class_of(x), name) not in (MISSING, None)


def call_special(reader: Reader, x: Abstract, name: str, args: list[Abstract], node: ast.AST) -> Abstract:
    """A call of a special method of an instance or a named tuple."""
    if isinstance(x, Tuple):
        return call_value(reader, attribute_of_tuple(reader, x, name, node), args, node)
    assert isinstance(x, Record | Object)
    return call_value(reader, read_attribute(reader, x, name, node), args, node)


def attribute_of_tuple(reader: Reader, x: Tuple, name: str, node: ast.AST) -> Abstract:
    """The attributes that the class of a named tuple defines besides its fields."""
    assert x.kind is not None
    holder = next(k for k in x.kind.__mro__ if name in vars(k))
    entry = vars(holder)[name]
    found = class_attribute(reader, holder, name, node)
    if isinstance(entry, property):
        return call_value(reader, Static(entry.fget), [x], node)
    if isinstance(entry, classmethod):
        return Partial(Static(entry.__func__), (Static(x.kind),), {})
    if isinstance(entry, types.FunctionType) or hasattr(entry, "py_func"):
        return Partial(Static(entry), (x,), {})
    return found


def refuse_missing(reader: Reader, owner: Instance | Super, name: str, node: ast.AST) -> NoReturn:
    kind = class_of(owner)
    known = owner.kind.names if isinstance(owner, Record) else ()
    known = tuple(attributes_now(reader, owner)) if isinstance(owner, Object) else known
    if reader.context.awaited and isinstance(owner, Object):
        problem = Problem("SD204", f"`{kind.__name__}` has no attribute `{name}` on this path", reader.span_of(node))
        reader.too_early(problem, AttributeError, f"'{kind.__name__}' object has no attribute '{name}'")
    if kind is ComplexArray:
        message = f"`{name}` of the eigenvalues of a real matrix is not supported"
        reader.refuse("SD203", node, message, help_="make the matrix complex: `a.astype(complex)`")
    if kind is HashTable:
        reader.refuse("SD203", node, f"a dictionary whose keys are known at run time has no `{name}`")
    has = f"it has {', '.join(map(str, known))}" if known else "it has no attributes"
    help_ = f"check the spelling, or assign `{name}` in `__init__` of `{kind.__name__}`"
    if dataclasses.is_dataclass(kind):
        help_ = f"check the spelling, or declare `{name}` as a field of `{kind.__name__}`"
    span = reader.span if reader.frame.library else reader.span_of(node)
    problem = Problem("SD203", f"`{kind.__name__}` has no `{name}`; {has}", span, help=help_)
    refuse_missing_attribute(reader, kind, name, problem)


# -- writing ---------------------------------------------------------------------------------------------------------


def write_attribute(reader: Reader, owner: Instance, name: str, value: Abstract, node: ast.AST) -> None:
    """Assign an attribute. A property is set by its setter."""
    kind = class_of(owner)
    require_usual_access(reader, kind, ("__setattr__",), node)
    is_new = isinstance(owner, Object) and owner in reader.constructing
    if dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        reader.raise_always(dataclasses.FrozenInstanceError, f"cannot assign to field {name!r}")
    if is_frozen(kind):
        reader.raise_now(sys.modules["attr"].exceptions.FrozenInstanceError, ())
    if set_by_class(reader, owner, name, value, node):
        return
    entry = in_class(kind, name)
    if hasattr(type(entry), "__set__") and not isinstance(entry, types.MemberDescriptorType):
        message = f"`{name}` of `{kind.__name__}` is a descriptor, which is not supported"
        reader.refuse("SD102", node, message, help_="use a property")
    if kind.__dictoffset__ == 0 and not isinstance(entry, types.MemberDescriptorType):
        reader.raise_always(AttributeError, f"{kind.__name__!r} object has no attribute {name!r}")
    if kind not in reader.stateful and not is_new:
        raise IsWritten(kind)
    value = as_field(reader, kind, name, value, node)
    if not isinstance(owner, Object):  # from outside the function, and without attributes
        message = f"an attribute of an instance of `{kind.__name__}` without attributes cannot be assigned"
        reader.refuse("SD101", node, message, help_=f"assign `{name}` in `__init__` of `{kind.__name__}`")
    require_in_reach(reader, owner)
    look_at_class(reader, kind)
    reader.cells[owner.number, name] = value


def is_set_by_class(kind: type, name: str) -> bool:
    """Whether a property or a descriptor of the class decides what an assignment of the attribute does."""
    entry = in_class(kind, name)
    return isinstance(entry, property) or has_method(entry, "__set__")


def set_by_class(reader: Reader, owner: Instance, name: str, value: Abstract, node: ast.AST) -> bool:
    """Call the setter of a property, or `__set__` of a descriptor. Returns false if the class has neither."""
    kind = class_of(owner)
    if not is_set_by_class(kind, name):
        return False
    entry = in_class(kind, name)
    if not isinstance(entry, property):
        holder = next(k for k in kind.__mro__ if name in vars(k))
        call_descriptor(reader, holder, name, "__set__", [owner, value], node)
        return True
    if entry.fset is None:
        reader.raise_always(AttributeError, f"property {name!r} of {kind.__name__!r} object has no setter")
    class_attribute(reader, kind, name, node)
    call_value(reader, Static(entry.fset), [owner, value], node)
    return True


def as_field(reader: Reader, kind: type, name: str, value: Abstract, node: ast.AST) -> Abstract:
    """The value assigned to a field, converted to the field's type for a Numba class."""
    fields = field_types(kind)
    captured = reader.frame.captured
    if not fields or captured is None:
        return value
    if name not in fields:
        reader.refuse("SD203", node, f"`{kind.__name__}` has the fields {', '.join(fields)}, and no `{name}`")
    if fields[name] == numba_types.float32:
        message = f"the field `{name}` of `{kind.__name__}` has single precision, which is not supported"
        reader.refuse("SD203", node, message, help_="declare it as `float64`")
    with reader.at(reader.span_of(node)):
        return as_told(reader, value, fields[name], f"`{name}`", captured)


def written_around(reader: Reader, before: Cells) -> Iterator[Key]:
    """Variables of an earlier state, and attributes of existing objects, that have another value now."""
    for key, x in reader.cells.items():
        if not isinstance(key, tuple) or key[1][:1] == "%":
            continue
        is_new = key not in before and not any(k[0] == key[0] for k in _variables(before))
        if not is_new and before.get(key, absent(reader, key)) is not x:
            yield key


def _variables(cells: Cells) -> Iterator[Key]:
    return (k for k in cells if isinstance(k, tuple))


def truth(reader: Reader, x: Abstract, node: ast.AST) -> Static | Value:
    """The truth value of a value, as in Python. For an instance, `__bool__` or `__len__` of its class decide."""
    if not is_instance(x) or is_complex(x):
        return truth_of(reader, x, node)
    name = next((n for n in ("__bool__", "__len__") if defines(x, n)), None)
    return Static(True) if name is None else truth_of(reader, call_special(reader, x, name, [], node), node)
