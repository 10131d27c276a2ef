"""Workspace parameters: buffers that a function allocates once come from the caller if they fit, and are returned.

def f_grad(x):                               def f_grad(x, x_bar_buffer, kept_buffer):
    kept = np.empty(n)            =>             kept = fitting(kept_buffer, (n,))
    x_bar = np.zeros_like(x)                     x_bar = fitting(x_bar_buffer, x.shape)
    ...                                          x_bar[...] = 0.0
    return x_bar                                 ...
                                                 return x_bar, (x_bar, kept)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from srcdiff.analyses.first_touches import Place, assigns, first_touches
from srcdiff.analyses.structure import structure_of
from srcdiff.analyses.symbolic_shapes import lengths_of
from srcdiff.diagnostics import Span
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    STACK_START,
    Alloc,
    Block,
    Call,
    Copy,
    Function,
    Loop,
    NewStack,
    Operation,
    Value,
    walk,
)
from srcdiff.ir.types import INT, Array, Scalar, Stack
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkspaceBuffer:
    """Memory that a function takes from its caller: an array of this dtype with so many axes."""

    dtype: str
    rank: int
    name: str
    is_gradient: bool = False
    start: int = 0
    """The length of an array that means that there is no memory yet."""
    keeps: Span | None = None
    """The source line of the value that is stored there for the reverse sweep, if any."""
    is_copy: bool = False
    """Whether it is the copy of another one of the workspace: without a workspace, that is returned itself."""
    lengths: Sequence[Any] = ()
    """The shape of a result that the caller allocates: numbers, or the position of an argument and its axis."""

    def shape_for(self, values: Sequence[Any]) -> tuple[int, ...]:
        """The shape of a result that the caller allocates, for the arguments of the compiled function."""
        return tuple(n if isinstance(n, int) else np.shape(values[n[0]])[n[1]] for n in self.lengths)


def with_workspace(function: Function, gradients: int) -> tuple[Function, tuple[WorkspaceBuffer, ...]]:
    """The function with a buffer for each gradient among its last results, and for each other allocation.

    Other results are new arrays: a later call must not overwrite them.
    """
    yields = function.body.yields
    results, bars = yields[: len(yields) - gradients], yields[len(yields) - gradients :]
    sites = points_to(function)
    returned = frozenset(s for v in results for s in sites.get(v, frozenset()))
    passed = {v for o in walk(function.body) if isinstance(o, Call) for v in o.args if isinstance(v.type, Stack)}
    operations: list[Operation] = []
    taken: dict[Value, tuple[Value, Operation]] = {}
    for operation in function.body.operations:
        buffer = _buffer_for(operation, returned | passed)
        if buffer is not None:
            assert isinstance(operation, Alloc | Copy | NewStack)
            taken[operation.out] = buffer, operation
            operation = replace(operation, workspace=buffer)
        operations.append(operation)
    placed: dict[int, Value] = {}
    copies: set[Value] = set()
    for k, bar in enumerate(bars):
        if isinstance(bar.type, Array):
            placed[k] = bar
            if bar not in taken or bar in bars[:k]:
                placed[k] = Value(bar.type, bar.name)
                if bar not in bars[:k] and sites.get(bar, frozenset()) <= taken.keys():
                    copies.add(placed[k])
                copy = Copy(placed[k], bar)
                taken[placed[k]] = Value(bar.type, f"{bar.name}_buffer"), copy
                operations.append(replace(copy, workspace=taken[placed[k]][0]))
    first = list(placed.values())
    order = [*first, *(v for v in taken if v not in first)]
    params = (*function.params, *(taken[v][0] for v in order))
    bars = tuple(placed.get(k, bar) for k, bar in enumerate(bars))
    body = Block(tuple(operations), (*results, *bars, *order))
    return replace(function, params=params, body=body), tuple(
        replace(_described(*taken[v], is_gradient=v in first), is_copy=v in copies) for v in order
    )


def with_given_results(function: Function) -> tuple[Function, tuple[WorkspaceBuffer, ...]]:
    """The function that writes its results to arrays of its caller, and returns zeros in their places.

    All results must be new arrays whose shapes are known from those of the parameters; otherwise nothing changes.
    """
    results, lengths = function.body.yields, lengths_of(function)
    made = {o.out for o in function.body.operations if isinstance(o, Alloc) and o.workspace is None and not o.grows}
    if not results or len(set(results)) < len(results) or not made.issuperset(results):
        return function, ()
    buffers: list[WorkspaceBuffer] = []
    for result in results:
        found = [lengths.of(result, axis) for axis in range(result.array.rank)]
        places = [_place(length, function) for length in found]
        if not places or None in places:
            return function, ()
        buffers.append(WorkspaceBuffer(result.array.dtype, len(places), result.name or "result", lengths=places))
    builder, touches, constants = Builder(), first_touches(function), structure_of(function).constants
    given = [o for o in function.body.operations if isinstance(o, Alloc) and o.out in results]
    for alloc in given:  # before all else: a loop in the midst of the formulas is in the way of LLVM
        if alloc.fill is not None and alloc.fill in constants:
            assigned = {place for place, access in touches[alloc.out].items() if assigns(access)}
            known = [lengths.of(alloc.out, axis) for axis in range(alloc.out.array.rank)]
            number = builder.const(constants[alloc.fill], alloc.fill.scalar)
            _fill(alloc.out, number, _first_to_fill(assigned, known), builder)
    for operation in function.body.operations:
        if not isinstance(operation, Alloc) or operation not in given:
            builder.add(operation)
        elif operation.fill is not None and operation.fill not in constants:
            _fill(operation.out, operation.fill, (0, 0), builder)
    zeros = tuple([builder.const(0) for _ in results])
    body = Block(tuple(builder.operations), zeros)
    written = (*function.written, *results)
    return replace(function, params=(*function.params, *results), body=body, written=written), tuple(buffers)


def _first_to_fill(assigned: Collection[Place], lengths: Sequence[Any]) -> tuple[int, int]:
    """An axis, and where the elements begin along it that have to be filled: all before them are assigned."""
    for axis in range(len(lengths)):
        others = [*lengths[:axis], *lengths[axis + 1 :]]
        if not all(isinstance(n, int) and n > 0 for n in others) or math.prod(others) > len(assigned):
            continue
        across = list(itertools.product(*map(range, others)))
        start = 0
        while all((*place[:axis], start, *place[axis:]) in assigned for place in across):
            start += 1
        if start:
            return axis, start
    return 0, 0


def _fill(array: Value, number: Value, first: tuple[int, int], builder: Builder) -> None:
    """Store the number in the elements of the array, by a loop for each axis, one of which may begin later."""

    def nest(axis: int, indices: tuple[Value, ...]) -> None:
        if axis == array.array.rank:
            builder.store(array, indices, number)
            return
        index, start = Value(INT, "i"), first[1] if axis == first[0] else 0
        bounds = (builder.const(start), builder.dim(array, axis), builder.const(1))
        with builder.block() as operations:
            nest(axis + 1, (*indices, index))
        builder.add(Loop(index, bounds, (), (), None, Block(tuple(operations)), ()))

    nest(0, ())


def _place(length: Any, function: Function) -> Any:
    """A length in terms of the parameters, or None."""
    match length:
        case int():
            return length if length >= 0 else None
        case (Value() as array, int(axis)) if array in function.params:
            return function.params.index(array), axis
    return None


def _buffer_for(operation: Operation, returned: frozenset[Value]) -> Value | None:
    match operation:
        case Alloc() | Copy() if operation.out.array.rank and operation.out not in returned:
            return Value(operation.out.type, f"{operation.out.name.strip('%') or 'array'}_buffer")
        case NewStack(out=Value(type=Stack(element=Scalar() as element), name=name) as out) if out not in returned:
            return Value(Array(element.dtype, 1), f"{name}_buffer")
    return None


def _described(buffer: Value, operation: Operation, *, is_gradient: bool) -> WorkspaceBuffer:
    keeps = operation.keeps if isinstance(operation, Alloc | NewStack) else None
    start = STACK_START if isinstance(operation, NewStack) else 0
    return WorkspaceBuffer(
        buffer.array.dtype, buffer.array.rank, buffer.name.removesuffix("_buffer"), is_gradient, start, keeps
    )


def kept_elsewhere(functions: Iterable[Function]) -> tuple[Span, ...]:
    """The places of values that are kept, but not in the workspace: one array for each, or in a recursive function."""
    operations = [o for f in functions for o in walk(f.body) if isinstance(o, Alloc | NewStack) and o.workspace is None]
    return tuple(o.keeps for o in operations if o.keeps is not None)


def no_memory(workspace: Sequence[WorkspaceBuffer]) -> list[Any]:
    """The arrays that mean that there is no memory yet."""
    return [np.empty((buffer.start,) * buffer.rank, buffer.dtype) for buffer in workspace]
