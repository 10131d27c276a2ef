"""How generated text says what only some backends know: threads, their memory, and arrays in the memory of a device.

A backend gives a `Spelling`; what it does not spell does not occur in programs that are compiled for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

from srcdiff.ir.nodes import CoordinateKind


@dataclass(frozen=True, slots=True)
class Spelling:
    """Words and templates that the emitter asks for."""

    arrays: str = "np"
    """What makes the arrays of the host's code, and takes views of them."""
    array_maker: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """Lines that import what `arrays` is made of, and lines that make it; NumPy is imported in any case."""
    imports: tuple[str, ...] = ()
    """Lines below `import numpy as np`."""
    kernel: str = ""
    """The decorator of a function that the host launches."""
    device_function: str = ""
    """The decorator of a function that a thread calls."""
    coordinates: Mapping[CoordinateKind, Sequence[str]] = field(default_factory=dict)
    """Each kind of coordinate, along each axis."""
    thread_array: str = ""
    """An array of a thread (`place` is `local`) or of a block (`shared`), with `shape` and `dtype`."""
    barrier: str = ""
    atomic_add: str = ""
    """Adds `value` to the element of `array` at `index`, whatever other threads do."""
    atomic_max: str = ""
    support: tuple[ModuleType, ...] = ()
    """Modules with functions that are written beside the code that calls them, beside those of all backends."""


NUMPY = Spelling()
"""Plain Python with NumPy: one thread, and the memory of the host."""
