"""Derivatives of operations that are programs themselves, of values that they take from the program around them."""

from __future__ import annotations

from srcdiff.ir.nodes import Function
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class WrittenRule:
    """The rule of a `Custom` operation as functions of the IR; they may contain `Derivative` operations."""

    adjoint: Function
    """Takes the arguments, the results, and the adjoints of the results; returns the adjoints that are `given`."""
    tangent: Function
    """Takes the arguments, the results, and the tangents of the arguments; returns the tangents of the results."""
    given: tuple[bool, ...]
    """Which arguments have an adjoint."""

    @property
    def __name__(self) -> str:
        return self.adjoint.name
