"""Questions about the elements that loads and stores touch, asked of isl."""

from __future__ import annotations

from srcdiff.analyses.structure import Structure
from srcdiff.ir.nodes import Load, Store


def never_overwrites(store: Store, access: Load | Store, structure: Structure) -> bool:
    """Whether no run of the store, after a run of the access, touches the same element."""
    return False
