"""Products of small matrices and vectors without a call of BLAS, which takes longer than such a product.

The lengths are known when the program runs. So the call is behind a comparison, and the other side calls a function of
the same module: one for each order of the matrix in memory and each precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MOST_BY_ROWS, MOST_BY_COLUMNS = 1024, 256
"""How many elements a matrix has that is multiplied without BLAS: measured, loops take at most as long as BLAS."""

_FLAGS = ("reassoc", "contract", "nsz")
"""As in BLAS, sums are reordered, and products are fused with sums."""


@contextmanager
def unless_small(builder: Any, matrix: Any, lengths: Any, a: Any, b: Any, out: Any) -> Iterator[None]:
    """Multiply a small matrix with a vector; the code that the caller adds is for other matrices."""
    from numba.core import types as kinds

    if not isinstance(matrix.dtype, kinds.Float):
        yield
        return
    rows, columns = lengths
    by_rows = matrix.layout == "C"
    most = rows.type(MOST_BY_ROWS if by_rows else MOST_BY_COLUMNS)
    small = builder.icmp_unsigned("<=", builder.mul(rows, columns), most)
    with builder.if_else(small) as (without, by_blas):
        with without:
            product = _function(builder.module, a.type, rows.type, by_rows=by_rows)
            builder.call(product, [rows, columns, a, b, out])
        with by_blas:
            yield


def _function(module: Any, pointer: Any, length: Any, *, by_rows: bool) -> Any:
    """`out[i] = sum(a[i, k] * b[k])`: row by row, or for all rows one column after the other."""
    from llvmlite import ir

    number = pointer.pointee
    name = f"srcdiff.product_by_{'rows' if by_rows else 'columns'}.{number}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [length, length, *[pointer] * 3]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    for argument in function.args[2:]:
        argument.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    rows, columns, a, b, out = function.args

    def at(array: Any, index: Any) -> Any:
        return builder.gep(array, [index], inbounds=True)

    def add(target: Any, x: Any, y: Any) -> None:
        term = builder.fmul(x, y, flags=_FLAGS)
        builder.store(builder.fadd(builder.load(target), term, flags=_FLAGS), target)

    zero = ir.Constant(number, 0.0)
    if by_rows:
        total = builder.alloca(number)
        with _each(builder, rows) as i:
            builder.store(zero, total)
            row = at(a, builder.mul(i, columns))
            with _each(builder, columns) as k:
                add(total, builder.load(at(row, k)), builder.load(at(b, k)))
            builder.store(builder.load(total), at(out, i))
    else:
        with _each(builder, rows) as i:
            builder.store(zero, at(out, i))
        with _each(builder, columns) as k:
            column, factor = at(a, builder.mul(k, rows)), builder.load(at(b, k))
            with _each(builder, rows) as i:
                add(at(out, i), builder.load(at(column, i)), factor)
    builder.ret_void()
    return function


@contextmanager
def _each(builder: Any, length: Any) -> Iterator[Any]:
    """A loop over a length that is not zero; it is short, so LLVM vectorises it without unrolling it."""
    from llvmlite import ir

    from srcdiff.backends.numba.loop_settings import settings_of_loop

    before, body = builder.basic_block, builder.append_basic_block("body")
    behind = builder.append_basic_block("behind")
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(length.type)
    yield index
    following = builder.add(index, length.type(1), flags=["nsw", "nuw"])
    index.add_incoming(length.type(0), before)
    index.add_incoming(following, builder.basic_block)
    latch = builder.cbranch(builder.icmp_unsigned("<", following, length), body, behind)
    one = ir.Constant(ir.IntType(32), 1)
    settings = (["llvm.loop.unroll.disable"], ["llvm.loop.interleave.count", one])
    latch.set_metadata("llvm.loop", settings_of_loop(builder.module, *settings))
    builder.position_at_end(behind)
