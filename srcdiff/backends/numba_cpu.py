"""Compiles the generated source with Numba."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from srcdiff.backends import python

# Keeps NaN and infinity; lets sums be reordered and products be fused with sums.
FASTMATH = frozenset({"reassoc", "contract", "nsz", "arcp"})


def load(
    text: str, functions: Sequence[str], objects: Mapping[str, Any], options: Mapping[str, Any], file: str
) -> Any:
    """The last of the functions, compiled: a Numba dispatcher."""
    import numba

    fastmath = options.get("fastmath", True)
    compile_ = numba.njit(
        error_model=options.get("error_model", "numpy"),
        fastmath=set(FASTMATH) if fastmath is True else fastmath,
        boundscheck=options.get("boundscheck"),
    )
    namespace = python.load(text, objects, file)
    for name in functions:
        namespace[name] = compile_(namespace[name])
    return namespace[functions[-1]]
