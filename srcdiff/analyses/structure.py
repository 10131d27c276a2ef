"""The structure of a function: the block that defines a value, the enclosing blocks, and the order of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from srcdiff.ir.analysis import analysis
from srcdiff.ir.nodes import Alloc, Apply, Block, Const, Copy, Function, Library, Loop, Operation, Value
from srcdiff.quick_dataclasses import dataclass


@dataclass(slots=True)
class Structure:
    top: Block
    home: dict[Value, Block] = field(default_factory=dict)
    """The block in which a value is defined; a loop's parameters are at home in its body."""
    definition: dict[Value, Operation] = field(default_factory=dict)
    owner: dict[Block, Operation] = field(default_factory=dict)
    """The operation that a block belongs to."""
    block_of: dict[Operation, Block] = field(default_factory=dict)
    start: dict[Operation, int] = field(default_factory=dict)
    end: dict[Operation, int] = field(default_factory=dict)
    constants: dict[Value, object] = field(default_factory=dict)
    slot: dict[Value, tuple[Loop, int]] = field(default_factory=dict)
    """A loop's parameter, with its loop and its place."""
    computed: dict[tuple[Block, str, tuple[object, ...]], Value] = field(default_factory=dict)
    """The values of a block, by primitive and arguments (see `told_apart`)."""
    is_apart: bool = False
    """Whether the reverse sweep is a separate function, which sees only the parameters of the values at top level."""

    def is_at_hand(self, value: Value) -> bool:
        """Whether the reverse sweep can read the value directly: it is at top level."""
        return self.home.get(value, self.top) is self.top and not (self.is_apart and value in self.definition)

    def told_apart(self, args: Sequence[object]) -> tuple[object, ...]:
        """Arguments that are constants, by their types and values: minus zero is another number than zero."""
        known = [self.constants.get(a, a) if isinstance(a, Value) else a for a in args]
        return tuple(a if isinstance(a, Value) else (type(a), repr(a)) for a in known)

    def blocks_around(self, block: Block) -> list[Block]:
        """The block and those it is nested in, from the outermost."""
        found = [block]
        while block in self.owner:
            block = self.block_of[self.owner[block]]
            found.append(block)
        return found[::-1]

    def loops_around(self, block: Block) -> list[Loop]:
        """The loops the block is nested in, from the outermost."""
        owners = (self.owner.get(b) for b in self.blocks_around(block))
        return [o for o in owners if isinstance(o, Loop)]

    def top_statement(self, block: Block) -> Operation:
        """The operation at top level that the block is part of."""
        return self.owner[self.blocks_around(block)[1]]


@analysis
def structure_of(function: Function) -> Structure:
    found = Structure(function.body)
    clock = 0

    def visit(block: Block) -> None:
        nonlocal clock
        for operation in block.operations:
            clock += 1
            found.start[operation] = clock
            found.block_of[operation] = block
            for value in operation.defines():
                found.home[value] = block
                found.definition[value] = operation
            if isinstance(operation, Const):
                found.constants[operation.out] = operation.value
            if isinstance(operation, Apply):
                found.computed[block, operation.primitive, found.told_apart(operation.args)] = operation.out
            for inner in operation.blocks():
                found.owner[inner] = operation
                for value in operation.inner():
                    found.home[value] = inner  # the body comes last, after a loop's test
                    found.definition[value] = operation
                visit(inner)
            if isinstance(operation, Loop):
                for k, param in enumerate(operation.params):
                    found.slot[param] = (operation, k)
            clock += 1
            found.end[operation] = clock

    for param in function.params:
        found.home[param] = function.body
    visit(function.body)
    return found


def made_anew(value: Value, structure: Structure) -> bool:
    """Whether every iteration of the loops around it makes the array, once, and all of them count their iterations."""
    is_made = isinstance(structure.definition.get(value), Alloc | Copy | Library) and value not in structure.slot
    if not is_made or not value.array.rank:
        return False
    owners = [structure.owner[b] for b in structure.blocks_around(structure.home[value])[1:]]
    while owners and not isinstance(owners[0], Loop):
        owners = owners[1:]
    return bool(owners) and all(isinstance(o, Loop) and o.counted for o in owners)


def handed_on(value: Value, structure: Structure) -> tuple[Value, Value] | None:
    """For a loop-carried array: its initial value, and the value that each iteration yields."""
    definition = structure.definition.get(value)
    if not isinstance(definition, Loop) or value is definition.index or value is definition.count:
        return None
    slot = (definition.params if value in structure.slot else definition.outs).index(value)
    following = definition.body.yields[slot]
    if structure.home.get(following) is not definition.body or not made_anew(following, structure):
        return None
    return definition.inits[slot], following
