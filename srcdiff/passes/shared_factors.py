"""Shared factors: equations with the same matrix, or with its transpose, are solved by the same LU factors.

x = np.linalg.solve(a, b)                    factors, pivots = lu_factors(a)
x_bar = 2.0 * x                      =>      x = solve_lu(factors, pivots, b, False)
b_bar = np.linalg.solve(a.T, x_bar)          x_bar = 2.0 * x
                                             b_bar = solve_lu(factors, pivots, x_bar, True)

So the reverse sweep uses the factors of the forward sweep, and tangents those of the values. A loop whose iterations do
not write the matrix uses factors from before the loop. Factors raise nothing: a singular matrix raises where its
equations are solved. No derivative is taken behind this pass, so the calls that it writes have no adjoints.
"""

from __future__ import annotations

from dataclasses import dataclass

from srcdiff.analyses.structure import structure_of
from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Comment,
    Const,
    Copy,
    Dim,
    Function,
    If,
    Library,
    Load,
    Loop,
    Operation,
    References,
    Store,
    Transpose,
    Value,
    changed,
    walk,
)
from srcdiff.ir.types import Array
from srcdiff.library.blas_lapack import BY_FACTORS, INTO, triangular_factors

_READERS = (Apply, Comment, Const, Dim, If, Load, Loop, References)
"""Operations that do not write to their array operands, whatever these are."""
_WRITING_CALLS = {call.name for call in INTO.values()}
_SOLVING = {name for name, _ in BY_FACTORS}


def share_factors(function: Function) -> Function:
    if not any(isinstance(o, Library) and o.function in _SOLVING for o in walk(function.body)):
        return function
    return _Sharing(function).run()


@dataclass(frozen=True, slots=True)
class _Equations:
    """A call that solves equations, with the matrix that has the factors, and the place where these can be computed."""

    call: Library
    matrix: Value
    is_transposed: bool
    place: Operation
    """The call, or the outermost loop around it that does not change the matrix."""


@dataclass(frozen=True, slots=True)
class _Factors:
    call: Library
    users: tuple[_Equations, ...]


class _Sharing:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.structure = structure_of(function)
        self.sites: dict[Value, Sites] = points_to(function)
        self.transposes: set[Operation] = set()
        """Those of the matrices whose equations are solved by factors."""
        self.writes: list[tuple[int, Sites]] = [
            (self.structure.start[o], memory) for o in walk(function.body) if (memory := self.written(o))
        ]

    def run(self) -> Function:
        by_matrix: dict[Value, list[_Equations]] = {}
        for operation in walk(self.function.body):
            if isinstance(operation, Library) and operation.function in _SOLVING:
                equations = self.equations(operation)
                by_matrix.setdefault(equations.matrix, []).append(equations)
        shared = [factors for group in by_matrix.values() for factors in self.shared(group)]
        if not shared:
            return self.function
        before: dict[Operation, list[Library]] = {}
        for factors in shared:
            before.setdefault(factors.users[0].place, []).append(factors.call)
        instead = {e.call: _by_factors(e, factors.call) for factors in shared for e in factors.users}

        def rewritten(block: Block) -> Block:
            operations: list[Operation] = []
            for operation in block.operations:
                operations += before.get(operation, ())
                operations.append(instead[operation] if operation in instead else operation.rebuilt(rewritten))
            return changed(block, operations=tuple(operations))

        return self.without_transposes(changed(self.function, body=rewritten(self.function.body)))

    def equations(self, call: Library) -> _Equations:
        """The equations, with the matrix itself if the call has its transpose."""
        matrix, is_transposed = call.args[0], False
        definition = self.structure.definition.get(matrix)
        while isinstance(definition, Transpose) and definition.axes == (1, 0):
            self.transposes.add(definition)
            matrix, is_transposed = definition.array, not is_transposed
            definition = self.structure.definition.get(matrix)
        return _Equations(call, matrix, is_transposed, self.place(call, matrix))

    def place(self, call: Library, matrix: Value) -> Operation:
        place: Operation = call
        home = self.structure.home.get(matrix, self.structure.top)
        while True:
            loop = self.structure.owner.get(self.structure.block_of[place])
            if not isinstance(loop, Loop) or self.is_written(matrix, loop, loop):
                return place
            if home not in self.structure.blocks_around(self.structure.block_of[loop]):
                return place
            place = loop

    def shared(self, group: list[_Equations]) -> list[_Factors]:
        """The factors of one matrix that save work."""
        found: list[_Factors] = []
        rest = sorted(group, key=lambda e: self.structure.start[e.place])
        while rest:
            first, *others = rest
            users = (first, *(e for e in others if self.may_use(e, first)))
            rest = [e for e in others if e not in users]
            if len(users) > 1 or first.place is not first.call:
                array = first.matrix.array
                outs = (Value(array, "factors"), Value(Array("int64", 1), "pivots"))
                call = Library(outs, triangular_factors.name, (first.matrix,), span=first.call.span)
                found.append(_Factors(call, users))
        return found

    def may_use(self, equations: _Equations, first: _Equations) -> bool:
        """Whether the factors exist where the equations are solved, and are still those of the matrix."""
        block = self.structure.block_of[first.place]
        place: Operation = equations.call
        while self.structure.block_of[place] is not block:
            owner = self.structure.owner.get(self.structure.block_of[place])
            if owner is None:
                return False
            place = owner
        return not self.is_written(first.matrix, first.place, place)

    def is_written(self, matrix: Value, first: Operation, last: Operation) -> bool:
        """Whether anything from the first operation to the end of the last one writes to the matrix."""
        start, end = self.structure.start[first], self.structure.end[last]
        memory = self.sites.get(matrix, frozenset((matrix,)))
        return any(start <= at <= end and memory & written for at, written in self.writes)

    def written(self, operation: Operation) -> Sites:
        """The memory that an operation may write to, without those inside it."""
        written: tuple[Value | None, ...]
        match operation:
            case Store():
                written = (operation.array,)
            case Call():
                written = operation.written
            case Library():
                written = operation.args[-1:] if operation.function in _WRITING_CALLS else ()
            case Alloc() | Copy():
                written = (operation.workspace,)
            case _ if isinstance(operation, _READERS):
                return frozenset()
            case _:
                written = operation.uses()
        arrays = [v for v in written if v is not None]
        return frozenset().union(*[self.sites.get(v, frozenset((v,))) for v in arrays])

    def without_transposes(self, function: Function) -> Function:
        """The function without the transposes that only the equations have read."""
        while True:
            operations = walk(function.body)
            read = {v for o in operations for v in o.uses()} | set(function.body.yields)
            read |= {v for o in operations for block in o.blocks() for v in block.yields}
            unused = {o for o in operations if o in self.transposes and not read.intersection(o.defines())}
            if not unused:
                return function

            def left(block: Block, gone: set[Operation] = unused) -> Block:
                kept = tuple([o.rebuilt(left) for o in block.operations if o not in gone])
                return changed(block, operations=kept)

            function = changed(function, body=left(function.body))


def _by_factors(equations: _Equations, factors: Library) -> Library:
    call = equations.call
    name = BY_FACTORS[call.function, equations.is_transposed].name
    return changed(call, function=name, args=(*factors.outs, call.args[-1]))
