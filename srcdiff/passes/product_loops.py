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

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Alloc, Block, Function, Library, Loop, Value, changed
from srcdiff.ir.types import INT, Array, element_type

_PRODUCTS = ("matrix_matrix", "matrix_vector", "vector_vector")


def products_as_loops(function: Function) -> Function:
    return replace(function, body=_block(function.body))


def _block(block: Block) -> Block:
    build = Builder()
    for operation in block.operations:
        if isinstance(operation, Library) and operation.function in _PRODUCTS:
            build.span = operation.span
            _product(operation, build)
        else:
            build.add(operation.rebuilt(_block))
    return changed(block, operations=tuple(build.operations))


def _product(operation: Library, build: Builder) -> None:
    (a, b), (out,) = operation.args, operation.outs
    if not isinstance(out.type, Array):
        _sum(a, b, (), (), build, out)
        return
    shape = (*build.shape(a)[:-1], *build.shape(b)[1:])
    build.add(Alloc(out, shape, span=operation.span))

    def write(at: tuple[Value, ...]) -> None:
        rows = a.array.rank - 1
        total = Value(element_type(out.array))
        _sum(a, b, at[:rows], at[rows:], build, total)
        build.store(out, at, total)

    build.each_element(out, write, lambda axis: shape[axis])


def _sum(a: Value, b: Value, before: tuple[Value, ...], behind: tuple[Value, ...], build: Builder, out: Value) -> None:
    """The sum over the last axis of one and the first of the other."""
    index, total = Value(INT, "i"), Value(out.type, "total")
    bounds = (build.const(0), build.dim(a, a.array.rank - 1), build.const(1))
    start = build.const(0.0, out.scalar)
    with build.block() as body:
        term = build.apply("multiply", build.load(a, (*before, index)), build.load(b, (index, *behind)))
        following = build.apply("add", total, term)
    loop = Loop(index, bounds, (total,), (start,), None, Block(tuple(body), (following,)), (out,), span=build.span)
    build.add(loop)
