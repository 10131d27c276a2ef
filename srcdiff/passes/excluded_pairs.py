"""A branch that leaves out one iteration of a loop computes for that one, too, and chooses zero instead.

for j in range(n):                           for j in range(n):
    if j != i:                                   r = 1.0 / abs(x[i] - x[j])
        r = 1.0 / abs(x[i] - x[j])    =>         total += r if j != i else 0.0
        total += r

LLVM loads the elements of rows for several iterations at once, but not in a branch. What is computed without being
needed may be infinite or NaN, and is not chosen. Elements that are loaded must exist (decided by isl). This is for
compiled code in which divisions do not raise.
"""

from __future__ import annotations

from srcdiff.analyses.access_relations import exists
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Block, Const, Dim, Function, If, Load, Loop, Operation, changed, walk
from srcdiff.ir.types import BOOL, FLOAT, INT

_OF_INTEGERS = ("add", "subtract", "multiply", "negative", "int")


def compute_for_all(function: Function) -> Function:
    """The function with choices in place of such branches."""
    if not any(isinstance(o, Apply) and o.primitive in ("equal", "not_equal") for o in walk(function.body)):
        return function
    return changed(function, body=_Exclusions(function).block(function.body))


class _Exclusions:
    def __init__(self, function: Function) -> None:
        self.structure: Structure = structure_of(function)

    def block(self, block: Block) -> Block:
        operations = [o.rebuilt(self.block) for o in block.operations]
        for place, before in enumerate(block.operations):
            is_counted = isinstance(before, Loop) and before.counted and before.index is not None
            if isinstance(before, Loop) and is_counted and not any(isinstance(o, Loop) for o in walk(before.body)):
                operations[place] = changed(before, body=self.body(before))
        return changed(block, operations=tuple(operations))

    def body(self, loop: Loop) -> Block:
        builder = Builder()
        builder.constants = dict(self.structure.constants)
        for operation in loop.body.operations:
            sides = self.sides(operation, loop) if isinstance(operation, If) else None
            if isinstance(operation, If) and sides is not None:
                self.write(operation, *sides, builder)
            else:
                builder.add(operation)
        return changed(loop.body, operations=tuple(builder.operations))

    def sides(self, branch: If, loop: Loop) -> tuple[Block, Block] | None:
        """The side for all iterations but one, if it can run in all, and the side for that one."""
        condition = self.structure.definition.get(branch.condition)
        if not isinstance(condition, Apply) or condition.primitive not in ("equal", "not_equal"):
            return None
        others = [a for a in condition.args if a is not loop.index]
        if len(others) != 1 or others[0].type != INT or self.structure.home.get(others[0]) is loop.body:
            return None
        sides = (branch.then, branch.orelse)
        usual, other = sides if condition.primitive == "not_equal" else sides[::-1]
        if not all(v.type in (FLOAT, INT, BOOL) for v in branch.outs):
            return None
        if not all(isinstance(o, Const) for o in other.operations):
            return None
        return (usual, other) if all(self.can_run(o, loop) for o in usual.operations) else None

    def can_run(self, operation: Operation, loop: Loop) -> bool:
        """Whether an operation of the branch may run in any iteration."""
        match operation:
            case Const() | Dim():
                return True
            case Apply():
                return operation.out.type != INT or operation.primitive in _OF_INTEGERS
            case Load():
                return exists(operation.array, operation.indices, self.structure, loop.body)
        return False

    def write(self, branch: If, usual: Block, other: Block, builder: Builder) -> None:
        for operation in (*usual.operations, *other.operations):
            builder.add(operation)
        builder.span = branch.span
        is_usual = usual is branch.then
        for out, value, instead in zip(branch.outs, usual.yields, other.yields, strict=True):
            definition = self.structure.definition.get(value)
            adds = isinstance(definition, Apply) and definition.primitive in ("add", "subtract")
            if isinstance(definition, Apply) and adds and definition.args[0] is instead and out.type == FLOAT:
                added, nothing = definition.args[1], builder.const(0.0)
                sides = (added, nothing) if is_usual else (nothing, added)
                term = builder.apply("where", branch.condition, *sides)
                builder.add(Apply(out, definition.primitive, (instead, term), span=branch.span))
            else:
                sides = (value, instead) if is_usual else (instead, value)
                builder.add(Apply(out, "where", (branch.condition, *sides), span=branch.span))
