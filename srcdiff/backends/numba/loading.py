"""From generated source to compiled functions, each compiled once."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from srcdiff.backends.numba import machine_code, numba_cpu
from srcdiff.backends.numba.interrupts import ONE_AT_A_TIME, held_back
from srcdiff.backends.numba.short_lengths import Lengths, short_lengths
from srcdiff.backends.python.interpreter import new_file
from srcdiff.caching import store
from srcdiff.caching.fingerprint import fingerprint
from srcdiff.ir.primitives import BROUGHT_ALONG, THREADS

if TYPE_CHECKING:
    from srcdiff.backends.backend import Generated
    from srcdiff.emit.module import Module


def load_compiled(generated: Generated, options: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of the text, compiled by Numba when it is called, or with its machine code from the disk."""
    module = generated.module
    with held_back():
        key = machine_code.key_of(module.text, module.objects, options) if generated.is_kept else None
        if key is not None:
            if key not in _loaded:  # the code has the key in its names, and there can be only one of a name
                _loaded[key] = module.objects, _compiled(module, options, key)
            objects, function = _loaded[key]
            if objects == module.objects:
                return function
        # Code compiled by LLVM is never freed, so each text is compiled only once in a process.
        same = module.text, repr(sorted(options.items())), *((name, id(x)) for name, x in module.objects.items())
        if same not in _loaded:
            _loaded[same] = module.objects, _compiled(module, options)
        return _loaded[same][1]


def load_calling(text: str, name: str, compiled: Any) -> Callable[..., Any]:
    """A function that calls `compiled`, a compiled function, for several threads at once; kept on disk if that is."""
    with held_back():
        inner = getattr(getattr(compiled, "_cache", None), "key", None)
        key = fingerprint("calling", inner, text) if inner is not None else None
        same = (text, id(compiled)) if key is None else key
        if same not in _loaded:
            file = new_file(name) if key is None else f"<srcdiff {name} {key[:20]}>"
            objects = {"compiled": compiled}
            _loaded[same] = objects, numba_cpu.load(text, [name], objects, {"fastmath": False}, file, key, nogil=True)
        return _loaded[same][1]


def load_for_lengths(function: Any, values: Sequence[Any]) -> Any:
    """A version of a function from `load_compiled` for the short axes of these arguments, or None.

    There is none if there are no such axes, if the function is compiled for any lengths already, or if its first call
    had other lengths: each text has one such version. It raises UnfitError for arguments with other lengths.
    """
    if getattr(function, "overloads", True) or not hasattr(function, "for_lengths"):
        return None
    lengths = short_lengths(values)
    if not lengths:
        return None
    with ONE_AT_A_TIME, held_back():
        return function.for_lengths.of(lengths)


class _ForLengths:
    """The version of a function for the lengths of short axes at its first call."""

    def __init__(self, module: Module, options: Mapping[str, Any], key: str | None) -> None:
        self.module, self.options, self.key = module, options, key
        self.lengths: Lengths | None = None
        self.function: Any = None

    def of(self, lengths: Lengths) -> Any:
        if self.lengths is None:
            self.lengths = lengths
            if self.key is None:
                self.function = _compiled(self.module, self.options, None, lengths)
            elif _is_noted(self.key, lengths):
                self.function = _compiled(self.module, self.options, fingerprint(self.key, repr(lengths)), lengths)
        return self.function if self.lengths == lengths else None


MOST_VERSIONS = 4
"""For how many lengths the machine code of a text is kept on disk. Processes with others use code for any lengths."""


def _is_noted(key: str, lengths: Lengths) -> bool:
    """Whether these are among the lengths for which there is machine code on disk, or can be."""
    name = fingerprint("lengths", key)
    try:
        known = ast.literal_eval((store.get(name) or b"[]").decode())
    except (ValueError, SyntaxError):  # written by somebody else
        known = []
    if lengths not in known and len(known) < MOST_VERSIONS:
        known.append(lengths)
        store.put(name, repr(known).encode())
    return lengths in known


def _compiled(
    module: Module, options: Mapping[str, Any], key: str | None = None, lengths: Lengths = ()
) -> Callable[..., Any]:
    file = new_file(module.name) if key is None else f"<srcdiff {module.name} {key[:20]}>"
    given = module.text, module.functions, module.objects, options, file, key
    function: Callable[..., Any] = numba_cpu.load(*given, lengths=lengths)
    if not lengths and _is_called_once(module) and hasattr(function, "overloads"):
        function.for_lengths = _ForLengths(module, options, key)  # type: ignore[attr-defined]
    return function


def _is_called_once(module: Module) -> bool:
    """Whether the function runs once in a call, in one thread: it does not call itself."""
    text, (*others, name) = module.text, module.functions
    alone = all(other in BROUGHT_ALONG for other in others) and len(re.findall(rf"\b{name}\(", text)) == 1
    return alone and f"import {', '.join(THREADS)}" not in text


_loaded: dict[Any, tuple[dict[str, Any], Callable[..., Any]]] = {}
"""The compiled functions, with the objects that they refer to, by the key of the machine code or by the text."""
