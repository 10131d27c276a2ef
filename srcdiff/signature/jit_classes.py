"""Classes that Numba compiles (`@jitclass`): an ordinary class with the same Python functions stands for each.

Its instances are their fields. Compiled classes are recognised without Numba, which need not be loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

FIELDS = "__srcdiff_fields__"
"""The name under which a class that stands for a compiled one holds the types of its fields."""


def standing_for(kind: Any) -> type | None:
    """The class that stands for a compiled one, or for the class of its instances: its methods are Python functions.

    None for other classes.
    """
    own = getattr(kind, "__dict__", {})
    class_type = own.get("class_type") if type(kind).__name__ == "JitClassType" else None
    instance_type = own.get("_numba_type_")
    class_type = class_type or getattr(instance_type, "class_type", None)
    return None if class_type is None else _class_for(class_type)


@functools.lru_cache(maxsize=256)
def _class_for(class_type: Any) -> type:
    methods = {name: method.py_func for name, method in class_type.jit_methods.items()}
    own: dict[str, Any] = {FIELDS: dict(class_type.struct), **methods}
    own |= {name: staticmethod(method.py_func) for name, method in class_type.jit_static_methods.items()}
    for name, made_of in class_type.jit_props.items():
        own[name] = property(*(getattr(made_of.get(how), "py_func", None) for how in ("get", "set")))
    own["__module__"] = methods["__init__"].__module__
    return type(class_type.class_name, (), own)


def field_types(kind: type) -> Mapping[str, Any]:
    """The types of the fields of a class that stands for a compiled one; nothing for others."""
    found: Mapping[str, Any] = vars(kind).get(FIELDS, {})
    return found


def class_of_value(value: Any) -> type:
    """The class of something; for an instance of a compiled class, the one that stands for that."""
    kind = type(value)
    return (standing_for(kind) or kind) if "_numba_type_" in vars(kind) else kind
