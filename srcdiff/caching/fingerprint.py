"""Cache keys: the same for the same program in every process, and different for every other program.

A program is identified by its IR, which contains all called functions and all outside values that are compiled in. An
object without a stable name (a user's function, for example) has no fingerprint, and a program that refers to one is
not cached.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import platform
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np

from srcdiff.diagnostics import Span
from srcdiff.frontend.domain.abstract_values import List
from srcdiff.ir.nodes import Value
from srcdiff.library.call_outs import CallOut

_PACKAGE = Path(__file__).parent.parent


class UnknownError(Exception):
    """Something that cannot be recognised in another process."""


def fingerprint(*things: Any) -> str:
    """A digest of data, programs and classes.

    >>> fingerprint(1) == fingerprint(1), fingerprint(1) == fingerprint(1.0), fingerprint("a", "b") == fingerprint("ab")
    (True, False, False)
    """
    known: dict[Any, int] = {}
    digest = hashlib.sha256()
    for part in _parts(things, known):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _parts(x: Any, known: dict[Any, int]) -> Iterator[str]:
    match x:
        case enum.Enum():
            yield f"member {importable_name(type(x))}.{x.name}"
            yield from _parts(x.value, known)
        case None | bool() | int() | float() | str() | bytes():
            if type(x).__module__ not in ("builtins", "numpy"):
                raise UnknownError(x)
            yield f"{type(x).__name__} {x!r}"
        case Value() | List() | Span():  # described where they first come up
            if x in known:
                yield f"the {known[x]}th"
                return
            known[x] = len(known)
            yield _described(x)
        case tuple() | list() if type(x) in (tuple, list):
            yield f"{type(x).__name__} of {len(x)}"
            for item in x:
                yield from _parts(item, known)
        case dict():
            yield f"dict of {len(x)}"
            for item in x.items():
                yield from _parts(item, known)
        case set() | frozenset():
            yield from _parts((type(x).__name__, *sorted(fingerprint(item) for item in x)), known)
        case _ if dataclasses.is_dataclass(x) and not isinstance(x, type):
            kind, names = _kind(type(x))
            yield kind
            for name in names:
                yield from _parts(getattr(x, name), known)
        case _:
            yield f"object {importable_name(x)}"


def _described(x: Value | List | Span) -> str:
    if isinstance(x, Value):
        return f"Value {x.type} {x.name}"
    if isinstance(x, Span):  # the generated source quotes the lines
        return repr((x, x.text, x.comments))
    return "List"


@functools.cache
def _kind(of: Any) -> tuple[str, tuple[str, ...]]:
    """The name of a dataclass and those of its fields."""
    return importable_name(of), tuple(field.name for field in dataclasses.fields(of))


def importable_name(x: Any) -> str:
    """The module and name by which another process finds the same class; None for a class in a script.

    Functions are not identified by name, because their code may have changed; srcdiff's own are.
    """
    module, name = getattr(x, "__module__", None), getattr(x, "__qualname__", None)
    is_own = isinstance(x, types.FunctionType | CallOut) and str(module).startswith("srcdiff.")
    if not (isinstance(x, type) or is_own) or module is None or name is None or module == "__main__":
        raise UnknownError(x)
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    if found is not x:
        raise UnknownError(x)
    return f"{module}.{name}"


def versions() -> tuple[str, ...]:
    """The compiler, and the kind of machine it compiles for."""
    return sys.version, sys.platform, platform.machine(), np.__version__, numba.__version__, llvmlite.__version__


@functools.cache
def own_source(*parts: str) -> str:
    """A digest of srcdiff's modules, or of some of them: one that is being worked on is another one."""
    digest = hashlib.sha256()
    for part in parts or ("",):
        place = _PACKAGE / part
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(file.relative_to(_PACKAGE).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()
