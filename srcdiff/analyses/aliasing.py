"""Which arrays a reference may point to: the allocations and parameters it can stem from."""

from __future__ import annotations

from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Const,
    Copy,
    Custom,
    Dim,
    Function,
    Grow,
    If,
    Library,
    Load,
    Loop,
    Operation,
    Peek,
    Pop,
    Push,
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


def points_to(function: Function) -> dict[Value, Sites]:
    """For every array reference, the parameters and allocations whose memory it may be (a view is its base)."""
    found: dict[Value, Sites] = {p: frozenset((p,)) for p in function.params if isinstance(p.type, Array)}
    flows: list[Flow] = []
    for operation in walk(function.body):
        match operation:
            case Alloc() | Copy():
                found[operation.out] = frozenset((operation.out,))
            case Library():
                found |= {out: frozenset((out,)) for out in operation.outs if isinstance(out.type, Array)}
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


def _flows(operation: Operation) -> list[Flow]:
    """Where references go: each result with what it may be."""
    flows: list[Flow]
    match operation:
        case Apply() | Const() | Load() | Store() | Dim():
            return []
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
        case View() | Transpose() | Reshape() | Grow():
            return [(operation.out, (operation.array,))]
        case Push():
            return [(operation.stack, (operation.value,))]
        case Pop() | Peek():
            return [(operation.out, (operation.stack,))]
    return []


def _shared(flows: list[Flow]) -> list[Flow]:
    """A list under two names: what one puts into it, the other finds."""
    return [(source, (out,)) for out, sources in flows if isinstance(out.type, Stack) for source in sources]


def written_sites(block: Block, sites: dict[Value, Sites]) -> set[Value]:
    """The memory that the block may write to."""
    found: set[Value] = set()
    for operation in walk(block):
        if isinstance(operation, Store):
            found |= sites.get(operation.array, frozenset())
        if isinstance(operation, Call) and operation.writes:
            for argument in operation.args:
                found |= sites.get(argument, frozenset())
    return found
