"""Lengths of short axes as constants of the machine code: LLVM compiles a loop of eight iterations as such.

Where a call passes many numbers, the axes of few elements are those of the program: coordinates, states, features. With
their lengths at the first call, LLVM knows how often inner loops run, and uses vectors without testing for a remainder.
Generated text stays the same. The machine code compares the lengths first; for others it raises UnfitError, and the
function is compiled once more, for any lengths.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import ir as numba_ir
from numba.core import types
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.ir_utils import get_definition, guard

from srcdiff.backends.numba.loop_settings import settings_of_loop

LONGEST = 32
"""The most elements of a short axis: eight vectors of four."""
LEAST_NUMBERS = 1000
"""How many numbers a call passes at least: calls with less may have short axes by chance."""
_MOST_UNROLLED = 4
"""The most iterations of a loop that is unrolled before it is vectorised. LLVM would unroll more, and then use no
vectors."""

Lengths = tuple[tuple[tuple[int, ...], int, int], ...]
"""Axes of arrays in the arguments, with their lengths: the path of the array, the axis, and the length."""


def short_lengths(values: Sequence[Any]) -> Lengths:
    """The lengths of short axes in the arguments of a call; none if the call passes few numbers."""
    arrays = list(_arrays(tuple(values), ()))
    if sum(array.size for _, array in arrays) < LEAST_NUMBERS:
        return ()
    return tuple([(path, k, n) for path, array in arrays for k, n in enumerate(array.shape) if 1 < n <= LONGEST])


def _arrays(value: Any, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    if type(value) is np.ndarray and value.dtype.names is None:
        yield path, value
    elif isinstance(value, tuple):
        for k, item in enumerate(value):
            yield from _arrays(item, (*path, k))


def differ(lower: Any, arguments: Sequence[Any], lengths: Lengths) -> Any:
    """The condition that arguments have other lengths than these."""
    builder = lower.builder
    parts = []
    for (first, *rest), axis, length in lengths:
        place = lower.context.data_model_manager[_kind(lower, first, rest)].get_field_position
        found = builder.extract_value(arguments[first], (*rest, place("shape"), axis))
        parts.append(builder.xor(found, found.type(length)))
    different = functools.reduce(builder.or_, parts)
    return builder.icmp_signed("!=", different, different.type(0))


def fixed(lower: Any, arguments: Sequence[Any], lengths: Lengths) -> list[Any]:
    """The arguments with constants for the lengths, and for the steps in memory that follow from them."""
    builder, values = lower.builder, list(arguments)
    for first, *rest in dict.fromkeys(path for path, _, _ in lengths):
        kind = _kind(lower, first, rest)
        known = {axis: n for path, axis, n in lengths if path == (first, *rest)}
        place = lower.context.data_model_manager[kind].get_field_position
        size = lower.context.get_abi_sizeof(lower.context.get_data_type(kind.dtype))
        for field, numbers in (("shape", known), ("strides", _steps(kind, known, size))):
            for axis, number in numbers.items():
                constant = lower.context.get_constant(types.intp, number)
                values[first] = builder.insert_value(values[first], constant, (*rest, place(field), axis))
    return values


def _kind(lower: Any, first: int, rest: Sequence[int]) -> Any:
    """The type of an array in the arguments."""
    return functools.reduce(operator.getitem, rest, lower.fndesc.argtypes[first])


def _steps(kind: Any, known: dict[int, int], size: int) -> dict[int, int]:
    """For axes of a contiguous array: the steps in memory that follow from the known lengths, in bytes."""
    found: dict[int, int] = {}
    if kind.layout in "CF":
        for axis in reversed(range(kind.ndim)) if kind.layout == "C" else range(kind.ndim):
            found[axis] = size
            if axis not in known:
                break
            size *= known[axis]
    return found


def keep_rolled(lower: Any, lengths: Lengths, block: Any, terminator: Any) -> None:
    """Where this block ends an iteration of a loop of known length: vectors come first, unrolling afterwards."""
    known = {(path, axis): length for path, axis, length in lengths}
    for header in lower.headers.get(id(block), ()):
        count = guard(_iterations, lower.func_ir, lower.func_ir.blocks[header], known)
        if count is not None and count > _MOST_UNROLLED:
            vectors = lower.module.add_metadata(["llvm.loop.isvectorized", ir.Constant(ir.IntType(32), 1)])
            then = ["llvm.loop.vectorize.followup_vectorized", vectors]  # this loop may be unrolled
            settings = settings_of_loop(lower.module, ["llvm.loop.unroll.disable"], then)
            terminator.set_metadata("llvm.loop", settings)


def headers_of(blocks: dict[int, Any]) -> dict[int, list[int]]:
    """The headers of the loops that end an iteration with a block, by the identity of the block."""
    graph: Any = compute_cfg_from_blocks(blocks)
    found: dict[int, list[int]] = {}
    for header, loop in graph.loops().items():
        for end in loop.body:
            if any(target == header for target, _ in graph.successors(end)):
                found.setdefault(id(blocks[end]), []).append(header)
    return found


def _iterations(program: Any, header: Any, known: dict[tuple[tuple[int, ...], int], int]) -> int | None:
    """How often a loop over a range runs, if that is known: an array that is no argument may have short axes, too."""
    asked = next(header.find_exprs("iternext"), None)
    iterator = asked and get_definition(program, asked.value)
    called = iterator and get_definition(program, iterator.value)
    if not isinstance(called, numba_ir.Expr) or called.op != "call" or not 0 < len(called.args) < 3:
        return None
    bounds = [_number(program, v, known) for v in called.args]
    return None if None in bounds else bounds[-1] - (bounds[0] if len(bounds) == 2 else 0)


def _number(program: Any, variable: Any, known: dict[tuple[tuple[int, ...], int], int]) -> Any:
    """The value of an integer, if that follows from the known lengths."""
    made = get_definition(program, variable)
    if isinstance(made, numba_ir.Const | numba_ir.Global | numba_ir.FreeVar):
        return made.value if type(made.value) is int else None
    if not isinstance(made, numba_ir.Expr):
        return None
    if made.op == "static_getitem":
        shape = get_definition(program, made.value)
        if isinstance(shape, numba_ir.Expr) and shape.op == "getattr" and shape.attr == "shape":
            path = _path(program, shape.value)
            return LONGEST if path is None else known.get((path, made.index))
    if made.op == "binop" and made.fn.__name__ in ("add", "sub", "mul"):
        left, right = (_number(program, v, known) for v in (made.lhs, made.rhs))
        return None if left is None or right is None else made.fn(left, right)
    return None


def _path(program: Any, variable: Any) -> tuple[int, ...] | None:
    """The path of an array in the arguments."""
    made = guard(get_definition, program, variable)
    if isinstance(made, numba_ir.Arg):
        return (made.index,)
    if isinstance(made, numba_ir.Expr) and made.op == "static_getitem" and type(made.index) is int:
        whole = _path(program, made.value)
        return None if whole is None else (*whole, made.index)
    return None
