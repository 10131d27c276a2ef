"""The arrays whose shape is known at compile time.

    a = np.empty((2, 3))          a: (2, 3)
    b = a.T @ x                   b: (3,), whatever the shape of x is
    for ...:
        m = a @ (b + m)           m: (2,), also as a parameter of the loop, if it starts with two elements

An unknown length is None. The parameters of a loop are assumed to be as long as their initial values. The facts are
recomputed until they reach a fixed point.
"""

from __future__ import annotations

from collections.abc import Sequence

from srcdiff.ir.analysis import analysis
from srcdiff.ir.builder import folded_constant
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Const,
    Copy,
    Dim,
    Function,
    If,
    Index,
    Library,
    Loop,
    NewAxis,
    Operation,
    Part,
    Reshape,
    Slice,
    Transpose,
    Value,
    View,
)
from srcdiff.ir.types import INT, Array
from srcdiff.library.blas_lapack import LIBRARY

Shape = tuple[int | None, ...]


@analysis
def constant_shapes(function: Function) -> dict[Value, Shape]:
    """The shapes of all arrays, as far as they are constant."""
    shapes = _Shapes()
    for param in function.params:
        shapes.unknown(param)
    while shapes.changed:
        shapes.changed = False
        shapes.block(function.body)
    return shapes.found


def letter_sizes(call: Library, shapes: Sequence[Shape]) -> dict[str, int]:
    """The lengths of the letters in a row of the library, as far as the arguments determine them."""
    taken, _ = LIBRARY[call.function].shapes.split("->")
    found: dict[str, int] = {}
    for letters, shape in zip(taken.split(","), shapes, strict=bool(shapes)):
        found |= {x: n for x, n in zip(letters, shape, strict=True) if n is not None}
    return found


class _Shapes:
    """The facts so far. Values that no round has reached are missing (the top of the lattice)."""

    def __init__(self) -> None:
        self.found: dict[Value, Shape] = {}
        self.integers: dict[Value, int | None] = {}
        self.changed = True

    def block(self, block: Block) -> None:
        for operation in block.operations:
            if isinstance(operation, Loop):
                self.join(operation.params, operation.inits, operation.body.yields)
                if operation.index is not None:
                    self.unknown(operation.index)
            for inner in operation.blocks():
                self.block(inner)
            self.visit(operation)

    def visit(self, operation: Operation) -> None:
        match operation:
            case Const(out=out, value=value) if out.type == INT:
                self.integers[out] = value
            case Apply(out=out) if out.type == INT:
                self.fold(operation)
            case Dim(out=out, array=array, axis=axis):
                if array in self.found:
                    self.number(out, self.found[array][axis])
            case Alloc(out=out, shape=shape, like=like):
                self.note(out, self.found.get(like) if like is not None else self.of_integers(shape))
            case Reshape(out=out, shape=shape):
                self.note(out, self.of_integers(shape))
            case Copy(out=out, array=array) | Part(out=out, array=array):
                self.note(out, self.found.get(array))
            case Transpose(out=out, array=array, axes=axes):
                shape_of_array = self.found.get(array)
                self.note(out, shape_of_array and tuple([shape_of_array[k] for k in axes]))
            case View():
                self.view(operation)
            case Library():
                self.call(operation)
            case If():
                self.join(operation.outs, operation.then.yields, operation.orelse.yields)
            case Loop():
                self.join(operation.outs, operation.inits, operation.body.yields)
                if operation.count is not None:
                    self.unknown(operation.count)
            case _:
                for value in (*operation.inner(), *operation.defines()):
                    self.unknown(value)

    # -- facts -------------------------------------------------------------------------------------------------------

    def unknown(self, value: Value) -> None:
        if isinstance(value.type, Array):
            self.note(value, (None,) * value.type.rank)
        elif value.type == INT:
            self.number(value, None)

    def note(self, array: Value, shape: Shape | None) -> None:
        if shape is not None and self.found.get(array) != shape:
            self.found[array] = shape
            self.changed = True

    def number(self, out: Value, known: int | None) -> None:
        if out not in self.integers or self.integers[out] != known:
            self.integers[out] = known
            self.changed = True

    def join(self, outs: Sequence[Value], *sources: Sequence[Value]) -> None:
        """Join the facts of the sources; sources that no round has reached are ignored."""
        for k, out in enumerate(outs):
            if not isinstance(out.type, Array):
                self.unknown(out)
                continue
            shapes = [self.found[s[k]] for s in sources if s[k] in self.found]
            if shapes:
                self.note(out, tuple([n[0] if len(set(n)) == 1 else None for n in zip(*shapes, strict=True)]))

    # -- operations --------------------------------------------------------------------------------------------------

    def fold(self, operation: Apply) -> None:
        if all(a in self.integers for a in operation.args):
            known = [self.integers[a] for a in operation.args]
            value = None if None in known else folded_constant(operation.primitive, known, INT)
            self.number(operation.out, value)
        elif not all(a.type == INT for a in operation.args):
            self.number(operation.out, None)

    def of_integers(self, values: Sequence[Value]) -> Shape | None:
        if not all(v in self.integers for v in values):
            return None
        return tuple([self.integers[v] for v in values])

    def view(self, view: View) -> None:
        if view.array not in self.found or not all(p in self.integers for i in view.items for p in i.parts()):
            return
        lengths, shape = list(self.found[view.array]), list[int | None]()
        for item in view.items:
            match item:
                case NewAxis():
                    shape.append(1)
                case Index():
                    lengths.pop(0)
                case Slice():
                    shape.append(self.of_slice(item, lengths.pop(0)))
        self.note(view.out, (*shape, *lengths))

    def of_slice(self, item: Slice, length: int | None) -> int | None:
        if not item.parts():
            return length
        parts = [None if p is None else self.integers[p] for p in (item.start, item.stop, item.step)]
        if length is None or parts[2] == 0 or any(self.integers[p] is None for p in item.parts()):
            return None
        return len(range(*slice(*parts).indices(length)))

    def call(self, call: Library) -> None:
        if not all(a in self.found for a in call.args if isinstance(a.type, Array)):
            return
        sizes = letter_sizes(call, [self.found.get(a, ()) for a in call.args])
        _, given = LIBRARY[call.function].shapes.split("->")
        for out, letters in zip(call.outs, given.split(","), strict=True):
            if isinstance(out.type, Array):
                self.note(out, tuple([sizes.get(x) for x in letters]))
