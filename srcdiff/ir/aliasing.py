"""Which arrays a reference may point to: the allocations and parameters it can stem from."""

from __future__ import annotations

from srcdiff.ir.analysis import analysis
from srcdiff.ir.nodes import (
    Again,
    Alloc,
    Apply,
    Block,
    Call,
    Const,
    Copy,
    Custom,
    Derivative,
    Dim,
    Function,
    Grow,
    If,
    Library,
    Load,
    Loop,
    Operation,
    Part,
    Peek,
    Pop,
    Push,
    References,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
    walk,
)
from srcdiff.ir.types import Array, Stack

Sites = frozenset[Value]
Flow = tuple[Value, tuple[Value, ...]]


_OF_NUMBERS = (Apply, Const, Load, Store, Dim)
"""Most operations: they neither make references nor pass them on."""


@analysis
def points_to(function: Function) -> dict[Value, Sites]:
    """For every array reference, the parameters and allocations that it may point to (a view points to its base).

    A parameter that is a stack of arrays represents all arrays on it.
    """
    found: dict[Value, Sites] = {p: frozenset((p,)) for p in function.params if _holds_arrays(p)}
    flows: list[Flow] = []
    for operation in walk(function.body):
        if type(operation) in _OF_NUMBERS:
            continue
        match operation:
            case Alloc() | Copy():
                found[operation.out] = frozenset((operation.out,))
            case Library() | Call():
                found |= {out: frozenset((out,)) for out in operation.outs if isinstance(out.type, Array)}
            case Derivative():  # whose parameters are copies, as far as they are written
                arrays = (*operation.outs, *operation.params)
                found |= {v: frozenset((v,)) for v in arrays if isinstance(v.type, Array)}
            case _:
                flows += _flows(operation)
    changed = True
    while changed:
        changed = False
        for out, sources in flows:
            old = found.get(out, frozenset())
            new = old.union(*[found.get(s, frozenset()) for s in sources])
            if new != old:
                found[out] = new
                changed = True
    return found


def _holds_arrays(value: Value) -> bool:
    kind = value.type.element if isinstance(value.type, Stack) else value.type
    return isinstance(kind, Array)


def _flows(operation: Operation) -> list[Flow]:
    """The flow of references: each result with its possible sources."""
    flows: list[Flow]
    match operation:
        case If():
            pairs = zip(operation.outs, operation.then.yields, operation.orelse.yields, strict=True)
            flows = [(out, (a, b)) for out, a, b in pairs if isinstance(out.type, Array | Stack)]
            return flows + _shared(flows)
        case Loop():
            flows = []
            for k, (param, out) in enumerate(zip(operation.params, operation.outs, strict=True)):
                if isinstance(param.type, Array | Stack):
                    sources = (operation.inits[k], operation.body.yields[k])
                    flows += [(param, sources), (out, sources)]
            return flows + _shared(flows)
        case Custom():
            flows = [(p, (a,)) for p, a in zip(operation.params, operation.args, strict=True)]
            flows += [(o, (y,)) for o, y in zip(operation.outs, operation.body.yields, strict=True)]
            return [(out, sources) for out, sources in flows if isinstance(out.type, Array)]
        case View() | Transpose() | Reshape() | Part() | Grow() | Again():
            return [(operation.out, (operation.array,))]
        case Push():
            return [(operation.stack, (operation.value,))]
        case Pop() | Peek():
            return [(operation.out, (operation.stack,))]
    return []


def _shared(flows: list[Flow]) -> list[Flow]:
    """Two names of one list: elements that one appends are visible through the other."""
    return [(source, (out,)) for out, sources in flows if isinstance(out.type, Stack) for source in sources]


class Apart:
    """References that never alias at the same time, although both may point to the same arrays: swapped buffers.

    Two loop parameters are different if they start as different arrays and every iteration yields different ones. An
    array that an iteration allocates differs from all arrays that it was passed.
    """

    def __init__(self, function: Function, sites: dict[Value, Sites]) -> None:
        self.sites = sites
        self.bases: dict[Value, Value] = {}
        self.given: dict[Value, Loop] = {}
        """Array parameters, with their loops."""
        self.made: dict[Value, set[Loop]] = {}
        """New arrays, with the loops that allocate them in every iteration."""
        self.pairs: set[frozenset[Value]] = set()
        self.visit(function.body, ())

    def visit(self, block: Block, loops: tuple[Loop, ...]) -> None:
        for operation in block.operations:
            if isinstance(operation, References):
                self.bases[operation.out] = operation.array
            elif isinstance(operation, Alloc | Copy | Library | Call):
                self.made |= {v: set(loops) for v in operation.defines()}
            around = (*loops, operation) if isinstance(operation, Loop) else loops
            if isinstance(operation, Loop):
                self.given |= {p: operation for p in operation.params if isinstance(p.type, Array)}
            for inner in operation.blocks():
                self.visit(inner, around)
            if isinstance(operation, Loop):
                self.loop(operation)

    def loop(self, loop: Loop) -> None:
        """The parameters that stay different: first all of them, then those that nothing speaks against."""
        arrays = [k for k, p in enumerate(loop.params) if isinstance(p.type, Array)]
        couples = [(a, b) for n, a in enumerate(arrays) for b in arrays[n + 1 :]]
        couples = [(a, b) for a, b in couples if self.different(loop.inits[a], loop.inits[b])]
        while True:
            self.pairs |= {frozenset((loop.params[a], loop.params[b])) for a, b in couples}
            kept = [(a, b) for a, b in couples if self.different(loop.body.yields[a], loop.body.yields[b])]
            if kept == couples:
                break
            self.pairs -= {frozenset((loop.params[a], loop.params[b])) for a, b in couples}
            couples = kept
        self.pairs |= {frozenset((loop.outs[a], loop.outs[b])) for a, b in couples}

    def different(self, a: Value, b: Value) -> bool:
        """Whether two references certainly have no memory in common."""
        if not self.sites.get(a, frozenset((a,))) & self.sites.get(b, frozenset((b,))):
            return True
        first, second = self.base(a), self.base(b)
        if frozenset((first, second)) in self.pairs:
            return True
        return any(
            given in self.given and self.given[given] in self.made.get(made, ())
            for given, made in ((first, second), (second, first))
        )

    def base(self, array: Value) -> Value:
        while array in self.bases:
            array = self.bases[array]
        return array


def written_sites(block: Block, sites: dict[Value, Sites]) -> set[Value]:
    """The memory that the block may write to; what a derivative inside it writes to is its own."""
    found: set[Value] = set()
    work = [block]
    while work:
        for operation in work.pop().operations:
            if isinstance(operation, Store):
                found |= sites.get(operation.array, frozenset())
            elif isinstance(operation, Call):
                for argument in operation.written:
                    found |= sites.get(argument, frozenset())
            elif not isinstance(operation, Derivative):
                work += operation.blocks()
    return found
