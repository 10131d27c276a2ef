"""Attributes of classes that the program assigns: `Body.count += 1`, `cls.total = 0.0`.

Such an attribute is a variable of a scope of its class. It exists from the start, so the program is read again when the
first assignment is found. The classes of the caller stay as they are.
"""

from __future__ import annotations

import ast
import enum
import types
from collections.abc import Sequence
from typing import Any

from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Closure,
    Maybe,
    Missing,
    Object,
    Partial,
    Poison,
    Static,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import ClassAttribute, IsWritten
from srcdiff.frontend.interpreter.dictionaries import require_in_reach
from srcdiff.frontend.interpreter.outside import class_attribute
from srcdiff.frontend.interpreter.presence import checked

_HEAP_TYPE = 1 << 9
"""The flag of classes that Python code defines; attributes of others cannot be assigned."""


def has_written(reader: Reader, kinds: Sequence[type], name: str) -> bool:
    """Whether the program assigns this attribute of one of the classes."""
    return any(ClassAttribute(kind, name) in reader.stateful for kind in kinds)


def written_attribute(reader: Reader, kinds: Sequence[type], name: str, node: ast.AST) -> Abstract:
    """The attribute that an assignment gave to the first of the classes that has it; `MISSING` if none did."""
    for kind in kinds:
        scope = reader.class_scopes.get(kind)
        if scope is not None and ClassAttribute(kind, name) in reader.stateful:
            require_in_reach(reader, scope)
            found = reader.cells.get((scope.number, name), MISSING)
            if isinstance(found, Maybe):
                message = f"`{name}` is an attribute of the class `{kind.__name__}` on some paths only"
                reader.refuse("SD202", node, message, help_=f"assign `{name}` in the body of the class")
            if not isinstance(found, Missing):
                return checked(reader, found, name, node) if isinstance(found, Poison) else found
        elif name in vars(kind):
            break
    return MISSING


def is_users_class(x: Abstract) -> bool:
    """Whether it is a class whose attributes Python code may assign."""
    kind = x.value if isinstance(x, Static) else None
    return isinstance(kind, type) and bool(kind.__flags__ & _HEAP_TYPE) and not issubclass(kind, enum.Enum)


def write_class_attribute(reader: Reader, kind: type, name: str, value: Abstract, node: ast.AST) -> None:
    before: Any = vars(kind).get(name)
    is_function = isinstance(value, Closure | Partial) or (isinstance(value, Static) and callable(value.value))
    if is_function or callable(before) or hasattr(type(before), "__get__") or name[:2] == "__":
        message = f"`{name}` of the class `{kind.__name__}` is a method, or becomes one"
        reader.refuse("SD101", node, message, help_="assign numbers, arrays and instances only")
    if type(kind).__setattr__ is not type.__setattr__ or isinstance(before, types.MemberDescriptorType):
        message = f"an attribute of the class `{kind.__name__}` cannot be assigned"
        reader.refuse("SD101", node, message, help_="assign attributes of instances")
    written = ClassAttribute(kind, name)
    if written not in reader.stateful:
        raise IsWritten(written)
    scope = reader.class_scopes[kind]
    require_in_reach(reader, scope)
    reader.cells[scope.number, name] = value


def make_class_scopes(reader: Reader, node: ast.AST) -> None:
    """Create the scopes of the classes, with the attributes that they have before the call."""
    for written in [w for w in reader.stateful if isinstance(w, ClassAttribute)]:
        scope = reader.class_scopes.get(written.kind)
        if scope is None:
            scope = reader.class_scopes[written.kind] = Object(type(written.kind))
            reader.objects[scope.number] = scope
            reader.cells[scope.number, "%class"] = Static(written.kind)
        if written.name in vars(written.kind):
            value = class_attribute(reader, written.kind, written.name, node)
            reader.cells[scope.number, written.name] = value
