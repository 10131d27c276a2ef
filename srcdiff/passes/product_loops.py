"""Products of matrices and vectors as loops, for code that runs in one thread.

c = a @ b                         =>         for i in range(n):
                                                 for j in range(m):
                                                     total = 0.0
                                                     for k in range(l):
                                                         total += a[i, k] * b[k, j]
                                                     c[i, j] = total
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.analyses.constant_shapes import Shape, constant_shapes, letter_sizes
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Alloc, Block, Function, Library, Loop, Value, changed
from srcdiff.ir.types import INT, Array, element_type
from srcdiff.library.blas_lapack import LIBRARY

PRODUCTS = ("matrix_matrix", "matrix_vector", "vector_matrix", "vector_vector")
LONGEST = 8
"""How long the axes are of matrices for which loops are faster than a call of BLAS."""


def products_as_loops(function: Function) -> Function:
    return replace(function, body=_Products(None).block(function.body))


def small_products_as_loops(function: Function) -> Function:
    """Only those of small matrices, whose sizes are known: a call of BLAS takes longer than the product."""
    return changed(function, body=_Products(constant_shapes(function)).block(function.body))


class _Products:
    def __init__(self, shapes: dict[Value, Shape] | None) -> None:
        self.shapes = shapes
        """The shapes that are known, if only small products are meant."""

    def block(self, block: Block) -> Block:
        build = Builder()
        for operation in block.operations:
            if isinstance(operation, Library) and operation.function in PRODUCTS and self.is_meant(operation):
                build.span = operation.span
                self.product(operation, build)
            else:
                build.add(operation.rebuilt(self.block))
        return changed(block, operations=tuple(build.operations))

    def is_meant(self, call: Library) -> bool:
        if self.shapes is None:
            return True
        shapes = [self.shapes[a] for a in call.args]
        sizes = letter_sizes(call, shapes)
        letters = LIBRARY[call.function].shapes.split("->")[0].split(",")
        wanted = [tuple([sizes.get(x, 0) for x in axes]) for axes in letters]
        return wanted == shapes and all(0 < n <= LONGEST for axes in wanted for n in axes)

    def length(self, array: Value, axis: int, build: Builder) -> Value:
        known = None if self.shapes is None else self.shapes[array][axis]
        return build.dim(array, axis) if known is None else build.const(known)

    def product(self, operation: Library, build: Builder) -> None:
        (a, b), (out,) = operation.args, operation.outs
        if operation.function == "vector_matrix":
            a, b = b, a
        if not isinstance(out.type, Array):
            self.sum(a, b, (), (), build, out)
            return
        axes = [(array, axis) for array in (a, b) for axis in range(array.array.rank)]
        lengths = [self.length(array, axis, build) for array, axis in axes]
        rows = a.array.rank - 1
        shape = (*lengths[:rows], *lengths[rows + 2 :])
        build.add(Alloc(out, shape, span=operation.span))

        def write(at: tuple[Value, ...]) -> None:
            total = Value(element_type(out.array))
            self.sum(a, b, at[:rows], at[rows:], build, total)
            build.store(out, at, total)

        build.each_element(out, write, lambda axis: shape[axis])

    def sum(
        self, a: Value, b: Value, before: tuple[Value, ...], behind: tuple[Value, ...], build: Builder, out: Value
    ) -> None:
        """The sum over the last axis of one and the first of the other."""
        index, total = Value(INT, "i"), Value(out.type, "total")
        bounds = (build.const(0), self.length(a, a.array.rank - 1, build), build.const(1))
        start = build.const(0.0, out.scalar)
        with build.block() as body:
            term = build.apply("multiply", build.load(a, (*before, index)), build.load(b, (index, *behind)))
            following = build.apply("add", total, term)
        loop = Loop(index, bounds, (total,), (start,), None, Block(tuple(body), (following,)), (out,), span=build.span)
        build.add(loop)
