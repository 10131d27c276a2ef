"""From generated source to a function that runs, on each backend."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from srcdiff.backends.cuda.on_device import OnDevice
from srcdiff.backends.numba import machine_code, numba_cpu
from srcdiff.backends.numba.interrupts import held_back
from srcdiff.backends.python import interpreter
from srcdiff.driver.source_cache import is_cached
from srcdiff.emit.module import Module
from srcdiff.frontend.abstract_values import Static
from srcdiff.passes.compilation import Compilation


def load(state: Compilation, backend: str, options: dict[str, Any]) -> Callable[..., Any]:
    module = state.module
    if backend == "cuda":
        return OnDevice(module, state.request, _passed(state), _file(module), options)
    if backend == "python":
        return _interpreted(module.text, module.name, tuple(module.objects.items()))
    with held_back():
        is_kept = is_cached(state.request, backend, options)
        key = machine_code.key_of(module.text, module.objects, options) if is_kept else None
        if key is not None:
            if key not in _loaded:  # the code has the key in its names, and there can be only one of a name
                _loaded[key] = module.objects, _compiled(module, options, key)
            objects, function = _loaded[key]
            if objects == module.objects:
                return function
        # What LLVM has compiled stays in memory: it is compiled once, however many derivatives are made of it.
        same = module.text, repr(sorted(options.items())), *((name, id(x)) for name, x in module.objects.items())
        if same not in _loaded:
            _loaded[same] = module.objects, _compiled(module, options)
        return _loaded[same][1]


@functools.lru_cache(maxsize=256)
def _interpreted(text: str, name: str, objects: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    """The function of the text, run by Python: the same for all derivatives that it is the text of."""
    return interpreter.quiet(interpreter.run(text, dict(objects), f"<srcdiff {name} {serial()}>")[name])


def _passed(state: Compilation) -> tuple[str, ...]:
    """The names of what the generated function takes first: the arguments that exist at run time."""
    return tuple(n for n, x in state.reading.arguments.items() if not isinstance(x, Static))


def _compiled(module: Module, options: dict[str, Any], key: str | None = None) -> Callable[..., Any]:
    file = _file(module, key)
    function: Callable[..., Any] = numba_cpu.load(module.text, module.functions, module.objects, options, file, key)
    return function


def _file(module: Module, key: str | None = None) -> str:
    return f"<srcdiff {module.name} {serial() if key is None else key[:20]}>"


_loaded: dict[Any, tuple[dict[str, Any], Callable[..., Any]]] = {}
"""What has been compiled, with the objects that it refers to: by the key of its machine code, or by its text."""
_count = 0


def serial() -> int:
    """A number that no generated file has yet."""
    global _count
    _count += 1
    return _count
