"""The lattice of descriptions: the part of an abstract value that is not a run-time value.

Descriptions can be compared and joined. The join describes every value that either describes; `POISON` is the top of
the lattice, an unusable value.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, TypeGuard

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Choice,
    Closure,
    Drawn,
    Element,
    Enumerate,
    Generated,
    Group,
    Items,
    Lazy,
    List,
    Maybe,
    Method,
    Missing,
    Object,
    Optional,
    Partial,
    Parts,
    Poison,
    Record,
    Reversed,
    Static,
    Stored,
    Structured,
    Super,
    Through,
    Tuple,
    Zip,
    is_instance,
    is_text,
)
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import BOOL, COMPLEX, FLOAT, INT, Array, Scalar, Stack, Type, element_type, join_scalars
from srcdiff.library.language import ComplexArray
from srcdiff.signature.descriptions import NONE, Description
from srcdiff.signature.record_layouts import RecordLayout
from srcdiff.signature.structures import Layout
from srcdiff.signature.trees import NODES

POISON = Description("poison")
NOTHING = Description("nothing")
"""The element description of a list that has had no elements yet. It joins with every type."""


def describe(x: Abstract) -> Description:
    match x:
        case Value():
            return Description("value", x.type)
        case Static():
            try:
                hash(x.value)
                return Description("static", (type(x.value), x.value))
            except TypeError:
                return Description("static", (type(x.value), id(x.value)))
        case Parts():
            kind = next((name for c, name in _PARTS if isinstance(x, c)), "record")
            return Description(kind, getattr(x, "kind", None), tuple(map(describe, x.items)))
        case List():
            return Description("list", x)
        case Object():
            return Description("object", x)
        case Stored():
            return Description("stored", None, (x.element,))
        case Closure():
            parts = tuple(describe(d) for d in x.defaults.values())
            return Description("closure", (x.node, x.frame, tuple(x.defaults)), parts)
        case Choice():
            return Description("choice", x.options, (Description("value", INT),))
        case Missing():
            return Description("missing")
        case Maybe():
            return Description("maybe", None, (describe(x.value),))
        case Optional():
            return Description("optional", None, (describe(x.value),))
        case Poison():
            return POISON
        case _:
            return Description("other", x)


_PARTS: tuple[tuple[type[Parts], str], ...] = ((Tuple, "tuple"), (Items, "items"), (Element, "element"))


def is_computed(x: Abstract) -> bool:
    """Whether a part of a result is computed by the function. Numbers are; other constants are not."""
    return not isinstance(x, Static) or isinstance(x.value, bool | int | float | complex)


def of_parts(d: Description, items: Iterable[Abstract]) -> Group | Items | Element:
    """The structure with this description and these parts."""
    if d.kind == "items":
        return Items(tuple(items))
    if d.kind == "element":
        return Element(tuple(items))
    made = Structured if isinstance(d.detail, RecordLayout) else Tuple if d.kind == "tuple" else Record
    return made(tuple(items), d.detail)


def scalar_of(d: Description) -> Scalar | None:
    """The scalar type of a described number at run time."""
    if d.kind == "value" and isinstance(d.detail, Scalar):
        return d.detail
    if d.kind == "static":
        type_ = d.detail[0]
        if type_ is bool:
            return BOOL
        if type_ is int or issubclass(type_, enum.IntEnum | enum.IntFlag):
            return INT
        if type_ is float:
            return FLOAT
        if type_ is complex:
            return COMPLEX
    return None


def loosened(d: Description) -> Description:
    """The description with numbers at run time instead of constants, for names that change in a loop."""
    scalar = scalar_of(d)
    if scalar is not None:
        return Description("value", scalar)
    if d.kind in ("tuple", "record", "element", "maybe", "optional", "items", "closure", "owned", "instance"):
        return d.remade(map(loosened, d.parts))
    return d


def number_of(d: Description) -> Scalar | None:
    """The type of a number, or of the element of an array without axes."""
    return element_type(d.detail) if d.kind == "value" and is_without_axes(d.detail) else scalar_of(d)


def is_without_axes(type_: object) -> bool:
    return isinstance(type_, Array) and type_.rank == 0


def join(a: Description, b: Description, *, flags: bool = True) -> Description:
    """The join of two descriptions. Without `flags`, a missing value joins with any value."""
    if a == b or b == NOTHING:
        return a
    if a == NOTHING:
        return b
    if a.kind == "poison" or b.kind == "poison":
        return POISON
    if a.kind == "missing" or b.kind == "missing":
        other = b if a.kind == "missing" else a
        return other if other.kind == "maybe" or not flags else Description("maybe", None, (other,))
    if a.kind == "maybe" or b.kind == "maybe":
        inner = join(a.parts[0] if a.kind == "maybe" else a, b.parts[0] if b.kind == "maybe" else b)
        return POISON if inner.kind == "poison" else Description("maybe", None, (inner,))
    if NONE in (a, b) or "optional" in (a.kind, b.kind):
        return join_with_none(a, b)
    if options(a) and options(b) and sort_of(options(a)) == sort_of(options(b)):
        different = [o for o in options(b) if not any(same_function(o, p) for p in options(a))]
        return Description("choice", (*options(a), *different), (Description("value", INT),))
    left, right = number_of(a), number_of(b)
    if left is not None and right is not None:
        return Description("value", join_scalars(left, right))
    alike = a.kind == b.kind and len(a.parts) == len(b.parts) and a.detail == b.detail
    if alike and a.kind in ("tuple", "record", "element", "items", "closure", "owned", "instance"):
        parts = tuple(join(p, q) for p, q in zip(a.parts, b.parts, strict=True))
        return POISON if POISON in parts else a.remade(parts)
    if a.kind in ("items", "stored") and b.kind in ("items", "stored"):
        parts = a.parts + b.parts
        element = loosened(parts[0])
        for part in parts[1:]:
            element = join(element, loosened(part))
        return POISON if leaf_types(element) is None else list_of(element)
    return POISON


def list_of(element: Description) -> Description:
    """The description of a list whose length is known at run time."""
    return Description("stored", None, (element,))


def join_with_none(a: Description, b: Description) -> Description:
    """The join of a value and `None`, for numbers, arrays and tuples of these."""
    values = [d.parts[0] if d.kind == "optional" else d for d in (a, b) if d != NONE]
    inner = loosened(values[0] if len(values) == 1 else join(values[0], values[1]))
    return Description("optional", None, (inner,)) if is_plain(inner) else POISON


def is_plain(d: Description) -> bool:
    """Whether the description consists of numbers and arrays."""
    return all(leaf.kind == "value" for leaf in NODES.leaves(d))


def options(d: Description) -> tuple[Abstract, ...]:
    """The functions, objects, strings or enum members that a description stands for."""
    if d.kind == "choice":
        functions: tuple[Abstract, ...] = d.detail
        return functions
    if d.kind == "closure" and not d.parts:
        return (Closure(d.detail[0], d.detail[1], {}),)
    if d.kind == "static" and callable(d.detail[1]):
        return (Static(d.detail[1]),)
    if d.kind == "static" and is_text(Static(d.detail[1])):
        return (Static(d.detail[1]),)
    if d.kind == "object" and is_instance(d.detail):
        return (d.detail,)
    return ()


def are_objects(choice: Iterable[Abstract]) -> bool:
    """Whether it is a choice among objects."""
    return any(isinstance(option, Object) for option in choice)


def sort_of(choice: tuple[Abstract, ...]) -> str:
    """What the options of a choice are."""
    return "objects" if are_objects(choice) else "texts" if is_text(choice[0]) else "functions"


def same_function(a: Abstract, b: Abstract) -> bool:
    """Whether two options of a choice are the same."""
    if is_text(a) and is_text(b):
        return type(a.value) is type(b.value) and bool(a.value == b.value)
    if isinstance(a, Closure) and isinstance(b, Closure):
        return a.node is b.node and a.frame is b.frame
    return a is b or (isinstance(a, Static) and isinstance(b, Static) and a.value is b.value)


def is_of_numbers(d: Description) -> bool:
    """Whether elements consist of numbers only: no arrays and no lists."""
    types = stored_types(d)
    return types is not None and all(isinstance(t, Array) for t in types) and not holds_lists(d)


def holds_lists(d: Description) -> bool:
    """Whether elements are or contain lists."""
    return any(leaf.kind == "stored" for leaf in NODES.leaves(d))


def is_complex(x: Abstract) -> TypeGuard[Record]:
    """Whether it is an array of complex numbers."""
    return isinstance(x, Record) and x.kind.kind is ComplexArray


def holds_complex(d: Description) -> bool:
    """Whether it is, or contains, an array of complex numbers."""
    return (d.kind == "record" and d.detail.kind is ComplexArray) or any(map(holds_complex, d.parts))


def part_of(d: Description, path: tuple[int, ...]) -> tuple[Description, int]:
    """A part of a described element, and the number of arrays of the parts before it."""
    before = 0
    for k in path:
        before += sum(len(stored_types(p) or ()) for p in d.parts[:k])
        d = d.parts[k]
    return d, before


def with_part(d: Description, path: tuple[int, ...], part: Description) -> Description:
    """The element description with one part replaced."""
    if not path:
        return part
    return d.remade(with_part(p, path[1:], part) if k == path[0] else p for k, p in enumerate(d.parts))


def stored_types(d: Description) -> tuple[Type, ...] | None:
    """The types of the arrays that store lists of such elements; None if they cannot be stored."""
    match d.kind:
        case "value":
            return (Array(d.detail.dtype, 1) if isinstance(d.detail, Scalar) else Stack(d.detail),)
        case "static" | "nothing":
            return ()
        case "tuple" | "record":
            parts = [stored_types(p) for p in d.parts]
            return None if None in parts else tuple(t for part in parts for t in part or ())
        case "stored":
            rows = stored_types(d.parts[0])
            if rows is None or not all(isinstance(t, Array) and t.rank < _MOST_AXES for t in rows):
                return None
            return (*(Array(t.dtype, t.rank + 1) for t in rows if isinstance(t, Array)), Array("int64", 1))
    return None


_MOST_AXES = 2  # a list of lists of lists would need three


def arrays_in(x: Any) -> Iterator[Value]:
    """The arrays that can be reached from an abstract value."""
    if isinstance(x, Value):
        if isinstance(x.type.element if isinstance(x.type, Stack) else x.type, Array):
            yield x
    elif isinstance(x, Lazy):
        yield from (array for array, _ in x.reads)
        yield from (array for array in (x.array, x.view_of) if array is not None)
    elif isinstance(x, tuple):
        for item in x:
            yield from arrays_in(item)
    elif isinstance(x, Closure):
        yield from arrays_in(tuple(x.defaults.values()))
    elif isinstance(x, Partial):
        yield from arrays_in((x.function, x.args, tuple(x.keywords.values())))
    elif is_dataclass(x) and not isinstance(x, Static | Poison | Description | Layout | type):
        yield from arrays_in(tuple(getattr(x, f.name) for f in fields(x)))


def leaf_types(d: Description) -> tuple[Type, ...] | None:
    """The types of the run-time values in a described value; None if it cannot be stored."""
    if d.kind == "value":
        return (d.detail,)
    if d.kind in ("static", "nothing"):
        return ()
    if d.kind in ("tuple", "record", "element", "items", "closure", "owned", "choice", "instance"):
        parts = [leaf_types(p) for p in d.parts]
        return None if None in parts else tuple(t for part in parts for t in part or ())
    if d.kind in ("maybe", "optional"):
        inner = leaf_types(d.parts[0])
        return None if inner is None else (BOOL, *inner)
    if d.kind == "stored":
        arrays = stored_types(d.parts[0])
        return None if arrays is None else (*arrays, INT)
    return () if d.kind in ("list", "object", "missing") else None


def is_number(x: Abstract) -> bool:
    return isinstance(x, Static) and isinstance(x.value, bool | int | float | complex)


def is_owned(d: Description) -> bool:
    """Whether a list is described by its contents."""
    return d.kind == "owned" or (d.kind == "maybe" and d.parts[0].kind == "owned")


def mentioned(d: Description) -> set[List]:
    """The lists that a description refers to by identity."""
    found = {d.detail} if d.kind == "list" else set()
    return found.union(*(mentioned(p) for p in d.parts)) if d.parts else found


def handles(x: Abstract) -> set[List]:
    """The lists that a value refers to."""
    match x:
        case List():
            return {x}
        case Parts():
            return set().union(*map(handles, x.items))
        case Maybe() | Optional():
            return handles(x.value)
        case Enumerate() | Reversed() | Method():
            return handles(x.of)
        case Zip():
            return set().union(*(handles(i) for i in x.of))
        case Closure():
            return set().union(*(handles(i) for i in x.defaults.values()))
        case Through():
            return handles(x.of)
        case Drawn():
            return {x.items}
        case Generated():
            return set().union(*(handles(i) for i in x.bound.values()))
        case Partial():
            return set().union(*(handles(i) for i in (x.function, *x.args, *x.keywords.values())))
    return set()


def objects_in(x: Any) -> set[Object]:
    """The objects that a value refers to, apart from attributes of objects."""
    match x:
        case Object():
            return {x}
        case Super():
            return objects_in(x.of)
        case tuple() | list():
            return set().union(*map(objects_in, x))
        case dict():
            return set().union(*map(objects_in, x.values()))
        case Closure():
            return objects_in(x.defaults)
        case Generated():
            return objects_in(x.bound)
        case Static() | Poison() | Value() | Description() | Layout() | Lazy() | type():
            return set()
    return set().union(*(objects_in(getattr(x, f.name)) for f in fields(x))) if is_dataclass(x) else set()
