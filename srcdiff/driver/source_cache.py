"""Generated sources that are kept on disk for the next process."""

from __future__ import annotations

import ast
import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from srcdiff.backends.backend import Trait
from srcdiff.backends.registry import BACKENDS
from srcdiff.caching import store
from srcdiff.caching.fingerprint import UnknownError, fingerprint, own_source, versions
from srcdiff.diagnostics import Span
from srcdiff.diagnostics.timings import timed
from srcdiff.emit.module import Module, nameable
from srcdiff.frontend.source.capture import WRITTEN_FOR
from srcdiff.passes.compilation import Compilation, Request
from srcdiff.passes.workspace_parameters import WorkspaceBuffer, no_memory


def is_cached(request: Request, backend: str, options: dict[str, Any]) -> bool:
    """Whether to cache: functions in files are called again by other processes, interactive ones are not."""
    if Trait.KEPT_ON_DISK not in BACKENDS[backend].traits or os.environ.get("SRCDIFF_SHOW"):
        return False
    wanted = options.get("cache")
    file = request.captured.file
    return Path(WRITTEN_FOR.get(file, file)).is_file() if wanted is None else bool(wanted)


@contextlib.contextmanager
def cached(state: Compilation, options: dict[str, Any]) -> Iterator[bool]:
    """Load the source from the cache and yield whether it was there; otherwise store the source of the block."""
    key = cache_key(state, options) if is_cached(state.request, state.backend, options) else None
    reading = state.reading  # the passes replace it, and the next process has this one
    is_known = key is not None and restore(state, key)
    yield is_known
    if key is not None and not is_known:
        keep(state, key, nameable(reading))


def cache_key(state: Compilation, options: dict[str, Any]) -> str | None:
    """All that the passes read; None if there is something among it that another process cannot recognise."""
    request, reading = state.request, state.reading
    known_otherwise = {"captured", "arguments", "of"}  # the IR of the program determines these
    asked = {f.name: getattr(request, f.name) for f in fields(request) if f.name not in known_otherwise}
    unchosen = [p in reading.unchosen for p in state.program.main.params]
    read = (reading.arguments, reading.result, reading.lists, reading.intermediates, unchosen)
    outside = [o.value for o in reading.outside]
    doc = reading.captured.function.__doc__
    with timed("recognition"):
        try:
            own = versions(), own_source()
            return fingerprint("source", state.backend, asked, options, state.program, read, outside, doc, *own)
        except (UnknownError, OSError):
            return None


def restore(state: Compilation, key: str) -> bool:
    """Take the source from the cache, if it is there."""
    data = store.get(key)
    if data is None:
        return False
    try:
        found = json.loads(data)
        state.module, state.warnings = _restored(found, nameable(state.reading))
        state.equality_tests = [str(text) for text in found["equality_tests"]]
        state.searches = [str(text) for text in found["searches"]]
    except Exception:  # an entry that does not fit, for whatever reason, is replaced
        return False
    return True


def _restored(found: Any, objects: Mapping[str, Any]) -> tuple[Module, list[str]]:
    """Read the output of `_keep`. Raises for anything else."""
    module = Module(
        found["name"],
        found["text"],
        set(found["support"]),
        {name: objects[name] for name in found["objects"]},
        found["functions"],
        tuple(WorkspaceBuffer(**{**b, "keeps": b["keeps"] and Span(**b["keeps"])}) for b in found["workspace"]),
        tuple(Span(**span) for span in found["kept_elsewhere"]),
    )
    defined = [node.name for node in ast.parse(module.text).body if isinstance(node, ast.FunctionDef)]
    if set(module.functions) != set(defined) or module.functions[-1] != module.name:
        raise ValueError(module.functions)
    if not all(isinstance(text, str) for text in (*module.support, *found["warnings"])):
        raise TypeError(found["warnings"])
    no_memory(module.workspace)  # it can be called with some
    return module, found["warnings"]


def keep(state: Compilation, key: str, objects: Mapping[str, Any]) -> None:
    module = state.module
    if any(objects.get(name) is not x for name, x in module.objects.items()):
        return  # it cannot be put together again
    kept = {
        "name": module.name,
        "text": module.text,
        "support": sorted(module.support),
        "objects": list(module.objects),
        "functions": module.functions,
        "workspace": [asdict(buffer) for buffer in module.workspace],
        "kept_elsewhere": [asdict(span) for span in module.kept_elsewhere],
        "warnings": state.warnings,
        "equality_tests": state.equality_tests,
        "searches": state.searches,
    }
    store.put(key, json.dumps(kept).encode())
