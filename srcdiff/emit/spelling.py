"""How the text expresses operations that only some backends have: threads, their memory, and device arrays.

A backend has a `Spelling`. It needs no entry for operations that do not occur in programs for that backend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import ModuleType

from srcdiff.ir.nodes import CoordinateKind
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spelling:
    """Words and templates of a backend."""

    arrays: str = "np"
    """The object whose methods create arrays in host code, and views of them."""
    array_maker: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """The lines that import the class of `arrays`, and the lines that create the object."""
    imports: tuple[str, ...] = ()
    """Imports below `import numpy as np`."""
    kernel: str = ""
    """The decorator of a function that the host launches."""
    device_function: str = ""
    """The decorator of a function that a thread calls."""
    coordinates: Mapping[CoordinateKind, Sequence[str]] = field(default_factory=dict)
    """The expressions for each kind of coordinate, one for each axis."""
    thread_array: str = ""
    """An array of a thread (`place` is `local`) or of a block (`shared`), with `shape` and `dtype`."""
    barrier: str = ""
    atomic_add: str = ""
    """Adds `value` to the element of `array` at `index` atomically."""
    atomic_max: str = ""
    support: tuple[ModuleType, ...] = ()
    """Modules with support functions of this backend. Those that the text calls are copied into it."""


NUMPY = Spelling(atomic_add="atomic_add({array}, {index}, {value})")
"""Plain Python with NumPy, and the memory of the host."""
