"""Attributes of modules, arrays, numbers, records and enums."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import logging
import types
from typing import Any, NoReturn

import numpy as np

from srcdiff.diagnostics.naming_objects import instead_of_attribute
from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Caught,
    Choice,
    DeviceName,
    Element,
    Lazy,
    Method,
    Missing,
    Object,
    OfObjects,
    Optional,
    Own,
    Partial,
    Record,
    Static,
    Structured,
    Super,
    Tuple,
    class_of,
    is_chosen_text,
    is_device_module,
)
from srcdiff.frontend.domain.lattice import are_objects
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter import scipy_objects
from srcdiff.frontend.interpreter.arithmetic import binary, number_of_elements
from srcdiff.frontend.interpreter.choices import for_the_chosen
from srcdiff.frontend.interpreter.class_attributes import has_written, written_attribute
from srcdiff.frontend.interpreter.device_names import device_name
from srcdiff.frontend.interpreter.evaluation import call_value, evaluate_lazily
from srcdiff.frontend.interpreter.foreseen import foresees
from srcdiff.frontend.interpreter.instances import (
    attribute_of_tuple,
    call_descriptor,
    defines,
    has_method,
    in_class,
    read_attribute,
)
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import as_lazy, lengths_of
from srcdiff.frontend.interpreter.materialization import forced, new_lazy
from srcdiff.frontend.interpreter.number_kinds import as_plain_number, is_pythons, numpys_own, pythons_own
from srcdiff.frontend.interpreter.outside import class_attribute, lift, look_up
from srcdiff.frontend.interpreter.presence import key_of, present
from srcdiff.frontend.interpreter.record_fields import attribute_of_records
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.tables import expression
from srcdiff.frontend.source.guards import Attribute, Constant, Summary, class_entry, original
from srcdiff.ir.nodes import Slice, Value
from srcdiff.ir.types import BOOL, Array, Scalar, is_inexact, real_of, scalar_of, zero_of
from srcdiff.signature.enums import attribute_of as attribute_of_member
from srcdiff.signature.jit_classes import standing_for
from srcdiff.signature.random_sources import SOURCES, SourceLayout
from srcdiff.signature.structures import Layout, attributes_of, is_plain_class

_OF_UFUNCS = {"reduce", "reduceat", "accumulate", "outer", "at"}


_TAKEN_LAZILY = {"sum", "mean", "prod", "max", "min", "var", "std", "any", "all", "argmax", "argmin", "dot", "cumsum"}
"""Methods of arrays that work element by element."""


def _is_plain_instance(value: Any) -> bool:
    """Whether it is an instance of a user's class without attributes of its own."""
    kind: Any = type(value)
    return is_plain_class(kind) and not attributes_of(value)


@expression(ast.Attribute)
def attribute_expression(reader: Reader, node: ast.Attribute) -> Abstract:
    if isinstance(node.value, ast.Name):
        key = key_of(reader, node.value.id)
        if key is not None and isinstance(reader.cells.get(key), Optional):
            reader.cells[key] = present(reader, reader.cells[key])
    return attribute_of(reader, evaluate_lazily(reader, node.value), node)


def is_string(x: Abstract) -> bool:
    return isinstance(x, Static) and isinstance(x.value, str) and not isinstance(x.value, enum.Enum)


def is_method(x: Abstract, name: str) -> bool:
    """Whether the class of an object has a function under this name."""
    return defines(x, name) and isinstance(in_class(class_of(x), name), types.FunctionType)  # type: ignore[arg-type]


def attribute_of(reader: Reader, base: Abstract, node: ast.Attribute) -> Abstract:
    """The attribute of a value that the node names."""
    match base:
        case Lazy() if node.attr in ("shape", "ndim", "size", "dtype"):
            return array_attribute(reader, base, node)
        case Lazy() if node.attr in ("real", "imag"):
            return part_of_array(reader, node.attr, base, node)
        case Lazy() if node.attr not in _TAKEN_LAZILY:
            base = forced(reader, base)
    of_scipy = scipy_objects.attribute_of(reader, base, node.attr, node)
    if of_scipy is not None:
        return of_scipy
    match base:
        case Slice() if node.attr in ("start", "stop", "step"):
            part = getattr(base, node.attr)
            return Static(None) if part is None else part
        case Static(value=DeviceName() as device):
            return device_name(reader, f"{device.name}.{node.attr}", node)
        case Static(value=OfObjects()) if node.attr == "T":
            return base
        case Static(value=types.ModuleType() as module) if is_device_module(module):
            return device_name(reader, node.attr, node)
        case Static(value=types.ModuleType() as module):
            if not hasattr(module, node.attr):
                message = f"module `{module.__name__}` has no `{node.attr}`"
                reader.refuse("SD204", node, message, help_="check the spelling")
            if reader.frame.library:
                return Own(original(module, node.attr))
            return look_up(reader, module, node.attr, node)
        case Static(value=np.dtype() as dtype) if node.attr in ("kind", "char", "name", "itemsize", "type"):
            return Static(getattr(dtype, node.attr))
        case Static(value=np.finfo() | np.iinfo() as limits) if hasattr(limits, node.attr):
            found = getattr(limits, node.attr)
            if isinstance(found, np.floating):
                return numpys_own(reader, reader.const(found.item(), Scalar(found.dtype.name)))
            return Static(found.item() if isinstance(found, np.generic) else found)
        case Static(value=np.ufunc()) if node.attr in _OF_UFUNCS:
            return Method(base, node.attr)
        case Static(value=enum.EnumType() as owner) if node.attr in owner.__members__:
            return Static(owner.__members__[node.attr])
        case Static(value=enum.Enum() as member):
            return member_attribute(reader, member, node)
        case Static(value=type() as owner) if node.attr in ("__name__", "__qualname__", "__module__"):
            return Static(getattr(owner, node.attr))
        case Static(value=type() as owner) if has_written(reader, owner.__mro__, node.attr):
            found = written_attribute(reader, owner.__mro__, node.attr, node)
            return attribute_of_class(reader, owner, node.attr, node) if isinstance(found, Missing) else found
        case Static(value=type() as owner) if any(node.attr in vars(k) for k in owner.__mro__):
            return attribute_of_class(reader, standing_for(owner) or owner, node.attr, node)
        case Static(value=dataclasses.Field() as field) if node.attr in ("name", "init", "repr", "compare", "kw_only"):
            return Static(getattr(field, node.attr))
        case Static(value=dataclasses.Field() as field) if node.attr == "metadata":
            place = Summary(dict, Attribute(Constant(field), "metadata"))
            return lift(reader, dict(field.metadata), place, "metadata", (), node, "fixed")
        case Static(value=logging.Logger() as logger) if not callable(getattr(logger, node.attr, None)):
            message = f"`{node.attr}` of a logger is not supported"
            reader.refuse("SD102", node, message, help_="read it outside the function, and pass it in")
        case Static() if isinstance(base.value, (*SOURCES, logging.Logger)):
            return Method(base, node.attr)
        case Caught():
            message = f"`{node.attr}` of an exception is not supported"
            reader.refuse("SD102", node, message, help_="let the function that raises it return the value instead")
        case Static() if _is_plain_instance(base.value):  # an instance without attributes
            return read_attribute(reader, Record((), Layout(type(base.value), ())), node.attr, node)
        case Static(value=bool() | int() | float() | complex()) if node.attr in ("real", "imag"):
            return Static(getattr(base.value, node.attr))
        case Static() if type(base.value) in (complex, float, int) and node.attr == "conjugate":
            return Method(as_value(reader, base), node.attr)
        case Static(value=bool() | int() | float() | complex()) if not (
            hasattr(base.value, node.attr) or hasattr(np.float64, node.attr)
        ):
            refuse_attribute(reader, f"{in_words(reader, base)} has no attribute `{node.attr}`", node)
        case Static(value=frozenset()):
            message = f"`{node.attr}` of a set is not supported"
            reader.refuse("SD203", node, message, help_="use a list, or a dictionary with these keys")
        case Static() if not isinstance(base.value, str):
            reader.refuse(
                "SD203",
                node,
                f"attributes of {in_words(reader, base)} are not supported",
                help_=instead_of_attribute(base.value),
            )
        case Structured() | Element():
            found = attribute_of_records(reader, base, node.attr, node)
            return Method(base, node.attr) if found is None else found
        case Record(kind=SourceLayout()):
            return Method(base, node.attr)
        case Record(kind=layout) if layout.is_instance:
            return read_attribute(reader, base, node.attr, node)
        case Object(kind=kind) if issubclass(kind, dict):
            return Method(base, node.attr)
        case Choice() if are_objects(base.options):
            if any(is_method(option, node.attr) for option in base.options):
                return Method(base, node.attr)
            return for_the_chosen(reader, base, lambda chosen: attribute_of(reader, chosen, node), node)
        case Choice() if is_chosen_text(base) and not any(is_string(option) for option in base.options):
            return for_the_chosen(reader, base, lambda chosen: attribute_of(reader, chosen, node), node)
        case Object() | Super():
            return read_attribute(reader, base, node.attr, node)
        case Tuple(kind=kind) if kind is not None and node.attr in kind._fields:  # type: ignore[attr-defined]
            return base.items[kind._fields.index(node.attr)]  # type: ignore[attr-defined]
        case Tuple() if defines(base, node.attr) and node.attr not in ("_replace", "_make", "_asdict"):
            return attribute_of_tuple(reader, base, node.attr, node)
        case Value(type=Array()):
            return array_attribute(reader, base, node)
        case Value(type=Scalar()):
            return number_attribute(reader, base, node)
    return Method(base, node.attr)


def member_attribute(reader: Reader, member: enum.Enum, node: ast.Attribute) -> Abstract:
    """The name or the value of an enum member, as constants, and what its class defines."""
    try:
        value = attribute_of_member(member, node.attr)
    except LookupError:
        return own_of_member(reader, member, node)
    place = Attribute(Constant(member), f"_{node.attr}_")
    reader.guard(place, value)
    return lift(reader, value, place, node.attr, (), node, "fixed")


def own_of_member(reader: Reader, member: enum.Enum, node: ast.Attribute) -> Abstract:
    """An attribute that `__init__` gave to an enum member, or a method or property of its class."""
    kind, name = type(member), node.attr
    entry = inspect.getattr_static(kind, name, None)
    match entry:
        case property():
            class_attribute(reader, kind, name, node)
            return call_value(reader, Static(entry.fget), [Static(member)], node)
        case types.FunctionType():
            class_attribute(reader, kind, name, node)
            return Partial(Static(entry), (Static(member),), {})
        case staticmethod() | classmethod():
            return attribute_of_class(reader, kind, name, node)
        case None if name in vars(member):
            place = Attribute(Constant(member), name)
            return lift(reader, place.read(), place, name, (), node)
    message = f"`{kind.__name__}` defines its own `{name}`, which is not supported"
    reader.refuse("SD102", node, message, help_="write a function that computes it, and call that")


def refuse_attribute(reader: Reader, message: str, node: ast.Attribute) -> NoReturn:
    """A number or an array does not have the attribute: this raises in Python, and a `try` may catch it."""
    if foresees(reader, AttributeError):
        reader.raise_always(AttributeError, message)
    reader.refuse("SD203", node, message)


def number_attribute(reader: Reader, number: Value, node: ast.Attribute) -> Abstract:
    """NumPy's numbers have the attributes of arrays."""
    if node.attr in ("real", "imag"):
        return part_of_number(reader, node.attr, number)
    found: dict[str, Abstract] = {
        "shape": Tuple(()),
        "ndim": Static(0),
        "size": Static(1),
        "dtype": Static(np.dtype(number.scalar.dtype)),
        "T": number,
    }
    if node.attr not in found and not hasattr(np.float64, node.attr):
        refuse_attribute(reader, f"{in_words(reader, number)} has no attribute `{node.attr}`", node)
    return found.get(node.attr, Method(number, node.attr))


def part_of_number(reader: Reader, part: str, number: Value) -> Value:
    """The real or imaginary part. That of Python's number is Python's."""
    found = reader.apply(part, as_plain_number(reader, number))
    return pythons_own(reader, found) if is_pythons(reader, number) else found


def part_of_array(reader: Reader, part: str, array: Value | Lazy, node: ast.AST) -> Abstract:
    """The real or imaginary parts of an array, as a view. Those of an expression are computed element by element."""
    dtype = array.dtype if isinstance(array, Lazy) else array.array.dtype
    if dtype.startswith("complex"):
        if isinstance(array, Lazy) and array.array is None and not array.plain and array.view_of is None:
            return part_of_expression(reader, part, array)
        found = forced(reader, array)
        assert isinstance(found, Value)
        return reader.part(found, part)
    if part == "real":
        return array
    zeros = new_lazy(reader, dtype, as_lazy(reader, array, node).sizes, lambda _: zero_element(reader, dtype), [])
    return forced(reader, zeros)


def part_of_expression(reader: Reader, part: str, whole: Lazy) -> Lazy:
    """The array of the expression is only computed if that of the parts is needed, which is a view of it."""
    dtype = real_of(scalar_of(whole.dtype)).dtype
    found = new_lazy(reader, dtype, whole.sizes, lambda places: reader.apply(part, whole.at(places)), [whole])
    found.part_of = whole, part
    return found


def zero_element(reader: Reader, dtype: str) -> Value:
    """The zero of the element type of an array."""
    element = scalar_of(dtype)
    return reader.const(zero_of(element) if is_inexact(element) else False if element == BOOL else 0, element)


def attribute_of_class(reader: Reader, kind: type, name: str, node: ast.AST) -> Abstract:
    """An attribute read from a class itself. Class methods are bound to it."""
    entry = class_entry(kind, name)
    if has_method(entry, "__get__"):
        return call_descriptor(reader, kind, name, "__get__", [Static(None), Static(kind)], node)
    found = class_attribute(reader, kind, name, node)
    return Partial(Static(entry.__func__), (Static(kind),), {}) if isinstance(entry, classmethod) else found


def array_attribute(reader: Reader, array: Value | Lazy, node: ast.Attribute) -> Abstract:
    match node.attr:
        case "shape":
            return Tuple(lengths_of(reader, array))
        case "ndim":
            return Static(array.rank if isinstance(array, Lazy) else array.array.rank)
        case "size":
            return number_of_elements(reader, array)
        case "dtype":
            return Static(np.dtype(array.dtype if isinstance(array, Lazy) else array.array.dtype))
    assert isinstance(array, Value)
    match node.attr:
        case "T":
            return reader.transposed(array, tuple(reversed(range(array.array.rank))))
        case "mT" if array.array.rank > 1:
            rank = array.array.rank
            return reader.transposed(array, (*range(rank - 2), rank - 1, rank - 2))
        case "real" | "imag":
            return part_of_array(reader, node.attr, array, node)
        case "flat":
            return call_value(reader, Own(np.ravel), [array], node)
        case "itemsize":
            return Static(np.dtype(array.array.dtype).itemsize)
        case "nbytes":
            itemsize = Static(np.dtype(array.array.dtype).itemsize)
            return binary(reader, ast.Mult, number_of_elements(reader, array), itemsize, node)
    if not hasattr(np.ndarray, node.attr):
        refuse_attribute(reader, f"an array has no attribute `{node.attr}`", node)
    return Method(array, node.attr)
