"""The sizes of buffers for the reverse sweep, as formulas in the arguments.

>>> from srcdiff.diagnostics import Span
>>> from srcdiff.ir.builder import Builder
>>> from srcdiff.ir.nodes import Block
>>> from srcdiff.ir.types import INT
>>> x, steps, build = Value(Array("float64", 1), "x"), Value(INT, "steps"), Builder()
>>> rows = build.apply("subtract", build.dim(x, 0), build.const(1))
>>> kept = Alloc(Value(Array("float64", 2), "kept"), (steps, rows), keeps=Span("model.py", 7))
>>> function = Function("f", (x, steps), Block((*build.operations, kept)))
>>> size = Sizes(function, {x: "x", steps: "steps"}).of(kept)
>>> print(size, "bytes =", size.evaluated({"x": [0.5, 0.6, 0.7], "steps": 10}))
8 * steps * (len(x) - 1) bytes = 160
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from srcdiff.analyses.symbolic_shapes import lengths_of
from srcdiff.ir.nodes import Alloc, Apply, Const, Copy, Dim, Function, Library, Part, Reshape, Transpose, Value
from srcdiff.ir.primitives import ATOM, PRIMITIVES
from srcdiff.ir.types import Array, bytes_of
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.quick_dataclasses import dataclass

_MOST = 12  # operations in a formula: longer ones tell nothing


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes: a product of expressions in Python, with how tightly each of them binds."""

    each: int
    factors: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        product = PRIMITIVES["multiply"].strength
        return " * ".join([str(self.each), *(t if s > product else f"({t})" for t, s in self.factors)])

    def evaluated(self, names: Mapping[str, Any]) -> int:
        """The number, with these values for the names in it."""
        lengths = [int(eval(text, {"np": np}, dict(names))) for text, _ in self.factors]
        return self.each * int(np.prod([max(0, n) for n in lengths], dtype=np.int64))


class Sizes:
    def __init__(self, function: Function, names: dict[Value, str]) -> None:
        """`names` are the values that formulas may speak of, as the user writes them."""
        self.names, self.definition = names, lengths_of(function).definition
        self.steps = 0

    def of(self, kept: Alloc) -> Size | None:
        """The number of bytes; None if it depends on intermediate values."""
        self.steps = 0
        parts = [self.length(kept.out, axis) for axis in range(kept.out.array.rank)]
        if kept.grows:
            parts[0] = ("iterations", ATOM)  # as many as the loop makes before it is left
        known = tuple(p for p in parts if p is not None)
        return Size(bytes_of(kept.out.array.dtype), known) if len(known) == len(parts) else None

    def length(self, array: Value, axis: int) -> tuple[str, int] | None:
        """The length of an axis, and how tightly its text binds."""
        if array in self.names:
            return (f"len({self.names[array]})" if axis == 0 else f"{self.names[array]}.shape[{axis}]"), ATOM
        match self.definition.get(array):
            case Alloc(like=None, shape=shape) | Reshape(shape=shape):
                return self.number(shape[axis])
            case Alloc(like=source) if source is not None:
                return self.length(source, axis)
            case Copy(array=source) | Part(array=source):
                return self.length(source, axis)
            case Transpose(array=source, axes=axes):
                return self.length(source, axes[axis])
            case Library() as call:
                lengths = LIBRARY[call.function].lengths(call.outs.index(array))
                return None if lengths is None else self.length(call.args[lengths[axis][0]], lengths[axis][1])
        return None

    def number(self, value: Value) -> tuple[str, int] | None:
        if value in self.names:
            return self.names[value], ATOM
        operation = self.definition.get(value)
        self.steps += 1
        match operation:
            case Const():
                return str(operation.value), ATOM
            case Dim():
                return self.length(operation.array, operation.axis)
            case Apply(primitive="range_length"):
                return self.trip_count(operation.args)
            case Apply() if self.steps < _MOST and not isinstance(value.type, Array):
                row = PRIMITIVES[operation.primitive]
                parts = [self.number(a) for a in operation.args]
                known = [p for p in parts if p is not None]
                if len(known) == len(parts) and not row.support:
                    # operands of equal precedence get parentheses, too
                    texts = [t if strength > row.strength or strength == ATOM else f"({t})" for t, strength in known]
                    return row.spelling.format(*texts), row.strength
        return None

    def trip_count(self, bounds: tuple[Value, ...]) -> tuple[str, int] | None:
        parts = [self.number(b) for b in bounds]
        if any(p is None for p in parts):
            return None
        start, stop, step = (p[0] for p in parts if p is not None)
        if step == "1" and start == "0":
            return parts[1]
        if step == "1" and start.isdigit() and parts[1] is not None:
            return f"{stop} - {start}", PRIMITIVES["subtract"].strength
        return f"len(range({start}, {stop}, {step}))", ATOM
