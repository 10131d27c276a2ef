"""Classes that `attrs` makes: which of their methods it wrote. The package is recognised without importing it."""

from __future__ import annotations

import sys
import types
from typing import Any

_GENERATED = "<attrs generated"


def attributes_declared(kind: type) -> tuple[Any, ...]:
    """The attributes that a class of `attrs` declares; nothing for other classes."""
    found: tuple[Any, ...] = getattr(kind, "__attrs_attrs__", ())
    return found if "attr" in sys.modules else ()


def is_written_by_attrs(method: Any) -> bool:
    """Whether `attrs` wrote a method: `__init__`, `__eq__`, `__setattr__`."""
    if not isinstance(method, types.FunctionType):
        return False
    file = method.__code__.co_filename
    return file.startswith(_GENERATED) or file == getattr(sys.modules.get("attr._make"), "__file__", None)


def sets_all(kind: type) -> bool:
    """Whether the `__init__` of a class is the one that `attrs` wrote for it."""
    return bool(attributes_declared(kind)) and is_written_by_attrs(vars(kind).get("__init__"))


def is_frozen(kind: type) -> bool:
    """Whether attributes of instances cannot be assigned."""
    return any(getattr(vars(base).get("__setattr__"), "__name__", "") == "_frozen_setattrs" for base in kind.__mro__)


def assigned_by(kind: type, name: str) -> tuple[bool, bool] | None:
    """Whether an assignment of an attribute converts the value, and whether it validates it; None if it does more."""
    setter = getattr(kind, "__setattr__", None)
    if not is_written_by_attrs(setter):
        return False, False
    own = dict(zip(setter.__code__.co_freevars, setter.__closure__ or (), strict=True))  # type: ignore[union-attr]
    hook = own["sa_attrs"].cell_contents.get(name) if "sa_attrs" in own else None
    if hook is None:
        return False, False
    setters, made = sys.modules["attr.setters"], sys.modules["attr._make"]
    known = {
        id(getattr(made, "_DEFAULT_ON_SETATTR", None)): (True, True),
        id(setters.convert): (True, False),
        id(setters.validate): (False, True),
    }
    return known.get(id(hook[1]))
