"""The head of a generated text: imports and definitions of all objects that the functions below it use.

The text can be copied into a file and runs there. Classes that cannot be imported are an exception: a comment says so.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from srcdiff.emit import formatting
from srcdiff.emit.spelling import Spelling
from srcdiff.ir.nodes import Formatted, Function, Library, Operation, Print, Raise, walk
from srcdiff.ir.primitives import RESERVED, THREADS
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.library.call_outs import CallOut

Objects = dict[str, Any]
"""Objects by their names in the text: exception classes, named tuple classes, and functions that format text."""


def name_objects(functions: Iterable[Function], classes: Iterable[type] = (), taken: Iterable[str] = ()) -> Objects:
    """These classes and the objects that the functions use, each under a name of its own."""
    found: Objects = {kind.__name__: kind for kind in classes}
    names = {*RESERVED, *taken}
    for thing in dict.fromkeys(x for f in functions for o in walk(f.body) for x in _named_by(o)):
        if _is_made(thing):
            name = f"formatted_{name_of(found, thing.__base__)}"
        else:
            name = _free(thing, {*names, *found})
        found[name] = thing
    return found


def _named_by(operation: Operation) -> Iterable[Any]:
    is_formatted = isinstance(operation, Raise | Print) and any(isinstance(p, Formatted) for p in operation.parts)
    match operation:
        case Raise(errors=None):
            yield operation.exception
            if is_formatted:
                yield formatting.formatted(operation.exception)
        case Print() if is_formatted:
            yield printer(operation)
        case Library(function=function) if function in LIBRARY and LIBRARY[function].call is not None:
            yield LIBRARY[function].call


def printer(operation: Print) -> Callable[..., None]:
    if operation.to:
        return formatting.log_text if operation.to == "log" else formatting.warn_text
    return formatting.print_flushed if operation.flush else formatting.print_text


def name_of(objects: Mapping[str, Any], thing: Any) -> str:
    return next(name for name, x in objects.items() if x is thing)


def _free(thing: Any, taken: set[str]) -> str:
    name: str = thing.__name__
    if _is_builtin(name, thing):
        return name
    number = 0
    while name in taken:
        number += 1
        name = f"{thing.__name__}_{number}"
    return name


def _is_builtin(name: str, thing: Any) -> bool:
    return getattr(builtins, name, None) is thing


def write_head(objects: Mapping[str, Any], named: Collection[str], spelling: Spelling) -> list[str]:
    """The lines above the functions. `named` are the modules that the functions use."""
    outside = [line for name, thing in sorted(objects.items()) for line in _imported(name, thing)]
    made = sorted(name for name, thing in objects.items() if _is_made(thing))
    imported, made_here = spelling.array_maker if spelling.array_maker and spelling.arrays in named else ((), ())
    own = [*imported, "from srcdiff.emit.formatting import formatted"] if made else [*imported]
    others = [*(["import numpy as np"] if "np" in named else []), *spelling.imports]
    others += [f"from numba import {', '.join(THREADS)}"] if "prange" in named else []
    others += ["from scipy import special"] if "special" in named else []
    defined = [*made_here, *(f"{name} = formatted({name_of(objects, objects[name].__base__)})" for name in made)]
    parts = [["import math"] if "math" in named else [], others, [*own, *outside], defined]
    return [line for part in parts if part for line in ("", *part)][1:]


def _is_made(thing: Any) -> bool:
    return isinstance(thing, type) and formatting.is_formatted(thing)


def _imported(name: str, thing: Any) -> list[str]:
    """The lines that import an object. Builtins, and classes that `formatted` makes, need none."""
    if _is_made(thing) or _is_builtin(name, thing):
        return []
    if isinstance(thing, CallOut) and not _is_importable(thing):
        return [f"# `{name}` is {thing.meaning}: define it here."]
    if not _is_importable(thing):
        return [f"# `{name}` is a class that no module has: define it here."]
    first, *rest = thing.__qualname__.split(".")
    if rest:
        return [f"from {thing.__module__} import {first}", f"{name} = {thing.__qualname__}"]
    return [f"from {thing.__module__} import {first}{'' if first == name else f' as {name}'}"]


def _is_importable(thing: Any) -> bool:
    found: Any = None if thing.__module__ == "__main__" else sys.modules.get(thing.__module__)
    for step in thing.__qualname__.split("."):
        found = getattr(found, step, None)
    return found is not None and found is (thing.importable if isinstance(thing, CallOut) else thing)
