"""Chosen arrays: if a branch selects the array that a loop carries, both sides fill one new array instead.

for t in range(n):                           for t in range(n):
    u = F @ u                                    u = F @ u
    if c[t]:                                     new = np.empty(m)
        new = np.empty(m)                        if c[t]:
        for i in range(m):                           for i in range(m):
            new[i] = f(u[i])      =>                     new[i] = f(u[i])
        u = new                                  else:
                                                     for i in range(m):
                                                         new[i] = u[i]
                                                 u = new

Then every iteration makes one array, and the reverse sweep reads one array with a row for each iteration, instead of a
stack of the selected arrays and another one of their adjoints. Every iteration must allocate such an array anyway:
copies would slow down a loop that mostly carries its array unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from srcdiff.analyses.dependence import dependence_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Call,
    Copy,
    Function,
    If,
    Library,
    Loop,
    Store,
    Value,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.types import Array
from srcdiff.quick_dataclasses import dataclass


def fill_chosen_arrays(function: Function) -> Function:
    """One choice after the other, of the loops at top level."""
    while (found := next(_Finder(function).choices(), None)) is not None:
        function = _filled(function, found)
    return function


@dataclass(frozen=True, slots=True)
class _Choice:
    """A result of a branch in a loop's body, and its lengths."""

    branch: If
    loop: Loop
    result: int
    shape: tuple[Value, ...]


class _Finder:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.dependence = dependence_of(function)
        self.structure = self.dependence.structure
        self.writing = [o for o in walk(function.body) if isinstance(o, Store | Call)]

    def choices(self) -> Iterator[_Choice]:
        for loop in self.function.body.operations:
            if isinstance(loop, Loop) and loop.counted:
                for branch in loop.body.operations:
                    if isinstance(branch, If):
                        yield from self.choices_of(branch, loop)

    def choices_of(self, branch: If, loop: Loop) -> Iterator[_Choice]:
        for k, out in enumerate(branch.outs):
            if isinstance(out.type, Array) and out.type.rank and out in loop.body.yields:
                shape = self.shape(branch, k, loop)
                if shape is not None and self.is_made_anyway(out, loop) and not self.is_written_later(branch, k, loop):
                    yield _Choice(branch, loop, k, shape)

    def is_made_anyway(self, array: Value, loop: Loop) -> bool:
        """Whether every iteration allocates an array of this size, so that a copy is relatively cheap."""
        lengths = self.dependence.lengths
        made = [v for o in loop.body.operations if isinstance(o, Alloc | Copy | Library) for v in o.defines()]
        alike = [v for v in made if v.type == array.type]
        axes = range(array.array.rank)
        return any(all(lengths.of(v, axis) == lengths.of(array, axis) for axis in axes) for v in alike)

    def shape(self, branch: If, k: int, loop: Loop) -> tuple[Value, ...] | None:
        """The lengths of the arrays of both sides, as known before the loop."""
        lengths = self.dependence.lengths
        sizes = lengths.named(self.function, loop)
        axes = range(branch.outs[k].array.rank)
        first, second = ([lengths.of(b.yields[k], axis) for axis in axes] for b in branch.blocks())
        return tuple(sizes[key] for key in first) if first == second and all(key in sizes for key in first) else None

    def is_written_later(self, branch: If, k: int, loop: Loop) -> bool:
        """Whether one of the arrays is written after the selection, or in a later iteration."""
        sites, structure = self.dependence.sites, self.structure
        memory = sites.get(branch.outs[k], frozenset())
        for operation in self.writing:
            for array in (operation.array,) if isinstance(operation, Store) else operation.written:
                if not sites.get(array, frozenset()) & memory:
                    continue
                is_inside = structure.start[loop] < structure.start[operation] < structure.end[loop]
                is_new = isinstance(structure.definition.get(array), Alloc) and array not in structure.slot
                if structure.start[operation] > structure.end[branch] or (is_inside and not is_new):
                    return True
        return False


def _filled(function: Function, found: _Choice) -> Function:
    branch, loop, k = found.branch, found.loop, found.result
    new = Value(branch.outs[k].type, branch.outs[k].name)
    sides = [_side(block, k, new) for block in branch.blocks()]
    outs = tuple(out for n, out in enumerate(branch.outs) if n != k)
    filled = replace(branch, then=sides[0], orelse=sides[1], outs=outs)
    place = loop.body.operations.index(branch)
    before, behind = loop.body.operations[:place], loop.body.operations[place + 1 :]
    made = Alloc(new, found.shape, span=branch.span)
    rest = substituted(Block(behind, loop.body.yields), lambda v: new if v is branch.outs[k] else v)
    body = Block((*before, made, filled, *rest.operations), rest.yields)
    operations = tuple(replace(o, body=body) if o is loop else o for o in function.body.operations)
    return replace(function, body=changed(function.body, operations=operations))


def _side(block: Block, k: int, target: Value) -> Block:
    """A side that leaves its result in the array: it fills the array directly, or copies."""
    source = block.yields[k]
    yields = tuple(v for n, v in enumerate(block.yields) if n != k)
    made = next((o for o in block.operations if isinstance(o, Alloc) and o.out is source), None)
    builder = Builder()
    if made is None or made.fill is not None or source in yields:
        builder.span = block.operations[-1].span if block.operations else None
        builder.each_element(target, lambda at: builder.store(target, at, builder.load(source, at)))
        return Block((*block.operations, *builder.operations), yields)
    rest = Block(tuple(o for o in block.operations if o is not made), yields)
    return substituted(rest, lambda v: target if v is source else v)
