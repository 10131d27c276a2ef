"""What a refused statement leaves unread: its names, and attributes that it would have assigned.

Their uses report nothing, because the user has the reason already.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NoReturn

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Group,
    Items,
    Object,
    Poison,
    Record,
)
from srcdiff.frontend.domain.lattice import objects_in
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import IsWritten
from srcdiff.frontend.interpreter.presence import key_of
from srcdiff.frontend.source.scopes import assigned_names
from srcdiff.signature.structures import is_plain_class


def leave_unread(reader: Reader, statement: ast.stmt, problem: Problem | None, *, ends: bool) -> None:
    """Make what a refused statement assigns unusable. If it `ends` the function, the rest of it is not read either."""
    declared = statement.names if isinstance(statement, ast.Global) else ()
    for target in ast.walk(statement):
        if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store):
            poison_attribute(reader, target, problem)
    note_incomplete(reader, statement, problem, ends=ends)
    for name in (*assigned_names(statement), *declared):
        reader.cells[(reader.frame.number, name)] = Poison(None)


def poison_attribute(reader: Reader, target: ast.Attribute, problem: Problem | None) -> None:
    """An attribute is a variable of an object. The program is read again if the instance is a value so far."""
    owner = known_at(reader, target.value)
    if isinstance(owner, Object):
        known = problem or (reader.problems[-1] if reader.problems else None)
        if known is not None and hasattr(owner.kind, target.attr):  # a property may keep it under another name
            reader.incomplete[owner.kind] = known
        reader.cells[owner.number, target.attr] = Poison(None)
    elif isinstance(owner, Record) and owner.kind.is_instance:
        kind = owner.kind.kind
        if is_plain_class(kind) and kind not in reader.stateful:
            raise IsWritten(kind)


def known_at(reader: Reader, node: ast.AST) -> Abstract:
    """What a name, or an attribute of one, refers to. Nothing is written for it."""
    if isinstance(node, ast.Name):
        key = key_of(reader, node.id)
        return MISSING if key is None else reader.cells.get(key, MISSING)
    owner = known_at(reader, node.value) if isinstance(node, ast.Attribute) else MISSING
    if isinstance(owner, Object) and isinstance(node, ast.Attribute):
        return reader.cells.get((owner.number, node.attr), MISSING)
    return MISSING


def note_incomplete(reader: Reader, statement: ast.stmt, problem: Problem | None, *, ends: bool) -> None:
    """Record the classes whose instances may lack attributes: code that was not read would have assigned them."""
    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    known = problem or (reader.problems[-1] if reader.problems else None)
    if known is None or not (ends or any(isinstance(n, ast.Call) for n in ast.walk(statement))):
        return
    is_local = {k: x for k, x in reader.cells.items() if isinstance(k, tuple) and k[0] == reader.frame.number}
    everything = ends or "super" in names
    for kind in classes_in(reader, (x for k, x in is_local.items() if everything or k[1] in names)):
        reader.incomplete[kind] = known


def classes_in(reader: Reader, values: Iterable[Abstract]) -> set[type]:
    """The classes of the instances that the values are or contain, and of those that these refer to."""
    found: set[type] = set()
    seen: set[Object] = set()
    waiting = list(values)
    while waiting:
        x = waiting.pop()
        found |= {record.kind.kind for record in records_in(x)}
        for new in objects_in(x) - seen:
            seen.add(new)
            found.add(new.kind)
            waiting += [y for k, y in reader.cells.items() if isinstance(k, tuple) and k[0] == new.number]
    return found


def records_in(x: Abstract) -> list[Record]:
    """The instances that are values in a value."""
    if not isinstance(x, Group | Items):
        return []
    own = [x] if isinstance(x, Record) and x.kind.is_instance else []
    return [*own, *(r for item in x.items for r in records_in(item))]


def refuse_missing_attribute(reader: Reader, kind: type, name: str, problem: Problem) -> NoReturn:
    """Report an attribute that an instance of the class does not have: once, and not if its assignment was not read."""
    earlier = (reader.incomplete.get(kind), reader.missing.get((kind, name)))
    if any(p is not None and p in reader.problems for p in earlier):
        raise Refusal(None)
    reader.missing[kind, name] = problem
    raise Refusal(problem)
