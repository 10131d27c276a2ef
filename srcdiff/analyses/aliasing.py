"""Which arrays a reference may point to: the allocations and parameters it can stem from."""

from __future__ import annotations

from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Call,
    Copy,
    Custom,
    Function,
    Grow,
    If,
    Library,
    Loop,
    Operation,
    Peek,
    Pop,
    Push,
    References,
    Store,
    Value,
    walk,
)
from srcdiff.ir.types import Array, Stack

Sites = frozenset[Value]


def points_to(function: Function) -> dict[Value, Sites]:
    """For every array reference, the parameters and allocations whose memory it may be (a view is its base)."""
    found: dict[Value, Sites] = {p: frozenset((p,)) for p in function.params if isinstance(p.type, Array)}
    operations = [o for o in walk(function.body) if _matters(o)]
    for operation in operations:
        if isinstance(operation, Alloc | Copy):
            found[operation.out] = frozenset((operation.out,))
        if isinstance(operation, Library):
            found |= {out: frozenset((out,)) for out in operation.outs if isinstance(out.type, Array)}
    changed = True
    while changed:
        changed = False
        for operation in operations:
            for out, sources in _flows(operation):
                old = found.get(out, frozenset())
                new = old.union(*(found.get(s, frozenset()) for s in sources))
                if new != old:
                    found[out] = new
                    changed = True
    return found


def _matters(operation: Operation) -> bool:
    kinds = Alloc | Copy | Library | References | Grow | If | Loop | Push | Pop | Peek | Custom
    return isinstance(operation, kinds)


def _flows(operation: Operation) -> list[tuple[Value, tuple[Value, ...]]]:
    """Where references go: each result with what it may be."""
    flows: list[tuple[Value, tuple[Value, ...]]]
    if isinstance(operation, References | Grow):
        return [(operation.out, (operation.array,))]
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
        case Push():
            return [(operation.stack, (operation.value,))]
        case Pop() | Peek():
            return [(operation.out, (operation.stack,))]
    return []


def _shared(flows: list[tuple[Value, tuple[Value, ...]]]) -> list[tuple[Value, tuple[Value, ...]]]:
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
