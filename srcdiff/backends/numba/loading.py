"""From generated source to compiled functions, each compiled once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from srcdiff.backends.numba import machine_code, numba_cpu
from srcdiff.backends.numba.interrupts import held_back
from srcdiff.backends.python.interpreter import new_file
from srcdiff.caching.fingerprint import fingerprint

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


def _compiled(module: Module, options: Mapping[str, Any], key: str | None = None) -> Callable[..., Any]:
    file = new_file(module.name) if key is None else f"<srcdiff {module.name} {key[:20]}>"
    function: Callable[..., Any] = numba_cpu.load(module.text, module.functions, module.objects, options, file, key)
    return function


_loaded: dict[Any, tuple[dict[str, Any], Callable[..., Any]]] = {}
"""The compiled functions, with the objects that they refer to, by the key of the machine code or by the text."""
