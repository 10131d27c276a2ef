"""The cache of machine code: Numba looks here before it compiles, and stores what it has compiled.

Numba's own cache needs a file for the function, trusts all files in its directory, and initialises the compiler before
it looks. This one uses a key of the text, reads through the checks of the store, and does not initialise the compiler
unless the code needs it, which saves most of the time of a first call.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Mapping
from typing import Any

import llvmlite.binding as llvm
from numba.core import config, sigutils
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from srcdiff.backends.numba import (
    blas,
    lapack,
    memory_pool,
    pocketfft,
    results,
    scipy_special,
    stack,
    threads,
    vector_math,
)
from srcdiff.caching import store
from srcdiff.caching.fingerprint import UnknownError, fingerprint, importable_name, own_source, versions
from srcdiff.diagnostics.timings import timed
from srcdiff.emit import formatting

_SETTINGS = (
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "LLVM_REFPRUNE_PASS",
    "LLVM_REFPRUNE_FLAGS",
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "USING_SVML",
    "NRT_STATS",
)
"""The settings of Numba that the code depends on, besides the processor."""


def key_of(text: str, objects: Mapping[str, Any], options: Mapping[str, Any]) -> str | None:
    """The key of the machine code, apart from argument types; None if an object has no stable name."""
    try:
        named = {name: _name(x) for name, x in objects.items()}
        settings = [repr(getattr(config, name, None)) for name in _SETTINGS]
        settings += ["vector functions" if vector_math.ensure_loaded() else "", repr(results.ensure_known())]
        own = own_source("__init__.py", "backends", "emit/formatting.py")
        return fingerprint("machine code", text, named, dict(options), settings, versions(), own)
    except (UnknownError, OSError):
        return None


def _name(x: Any) -> str:
    """Numba writes exception classes and namedtuples into the code: by where they can be imported from."""
    if isinstance(x, type) and formatting.is_formatted(x):
        return f"formatted {importable_name(x.__base__)}"
    return importable_name(x)


class MachineCode(_Cache):
    """The code of one function, for every signature it has been compiled for."""

    def __init__(self, key: str) -> None:
        self.key = key

    @property
    def cache_path(self) -> str:
        return str(store.directory())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        args, _ = sigutils.normalize_signature(sig)
        data = store.get(self._entry(args, target_context))
        if data is None:
            return None
        with timed("load machine code"):
            try:
                symbols, content = pickle.loads(data)
                _provide(symbols, target_context)
                parts = pickle.loads(content)
                self._expect(parts, args, target_context)
                return CompileResult._rebuild(target_context, *parts)
            except Exception:  # an entry that does not load, for whatever reason, is replaced
                return None

    def _expect(self, parts: Any, args: Any, target_context: Any) -> None:
        """Reject entries that were not compiled from this text for these arguments; LLVM aborts on other objects."""
        (_, kind, (code, _)), described, _, signature, *_ = parts
        if self.key[:20] not in described.modname or tuple(signature.args) != tuple(args):
            raise LookupError(described.modname)
        if kind != "object" or not code.startswith(_start_of_objects(target_context.codegen())):
            raise LookupError(kind)

    def save_overload(self, sig: Any, data: Any) -> None:
        if data.library.has_dynamic_globals or data.lifted:
            return  # it holds addresses, or code that is compiled later
        args, _ = sigutils.normalize_signature(sig)
        try:
            content = pickle.dumps((_symbols(data.library), dumps(data._reduce())))
        except Exception:  # something in it cannot be written: it is compiled again next time
            return
        store.put(self._entry(args, data.target_context), content)

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def _entry(self, args: Any, target_context: Any) -> str:
        return fingerprint(self.key, [str(a) for a in args], target_context.codegen().magic_tuple())


@functools.cache
def _start_of_objects(codegen: Any) -> bytes:
    """How the object code of this machine starts, whatever is in it."""
    start: bytes = codegen._tm.emit_object(llvm.parse_assembly(""))[:8]
    return start


def _symbols(library: Any) -> list[str]:
    """The external symbols of the code."""
    module = library._final_module
    return [v.name for v in (*module.functions, *module.global_variables) if v.is_declaration and v.name[:5] != "llvm."]


def _provide(symbols: list[str], target_context: Any) -> None:
    """Load the parts of Numba that the code needs: memory management, or all, which takes a third of a second."""
    rtsys.initialize(target_context)
    if memory_pool.NEW in symbols:
        memory_pool.ensure_loaded()
    if threads.RUN in symbols:
        threads.ensure_started()
    if stack.ENTER in symbols:
        stack.ensure_loaded()
    if any(f"numba_{name}" in symbols for name in blas.FUNCTIONS):
        blas.ensure_found()
    if any(name.startswith(scipy_special.PREFIX) for name in symbols):
        scipy_special.ensure_all_known(symbols)
    pocketfft.ensure_all_known(symbols)
    lapack.ensure_all_known(symbols)
    if _missing(symbols):
        target_context.refresh()
        if _missing(symbols):
            raise LookupError(symbols)  # LLVM would end the process


def _missing(symbols: list[str]) -> bool:
    return not all(llvm.address_of_symbol(name) for name in symbols)
