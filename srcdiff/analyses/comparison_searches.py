"""Loops that search a root or a minimum by comparisons only: its derivative is not that of the program.

    for _ in range(60):
        middle = 0.5 * (low + high)
        if f(middle, p) > 0.0:          `p` decides which of the two moves, and enters into neither
            high = middle
        else:
            low = middle
    return middle                       depends on `p` as the root does; the derivative that the program has is zero

What distinguishes such a loop from one with `min`, `max`, a clip or an adaptive step:

- Some numbers that it carries, the bracket, are computed from each other and from constants. A running maximum takes
  numbers that are differentiated from outside, and so does a clip of a sum.
- A comparison chooses between them. It depends on the bracket, and on something that is differentiated and does not
  change in the loop. It does not look at another state of the loop, as an adaptive solver does.
- The bracket is combined, as in `0.5 * (low + high)`. Exchanging numbers, or halving a step, is no search.
- What remains of the bracket after the loop reaches the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from srcdiff.analyses.activity import useful_values, varied_values
from srcdiff.diagnostics import Span
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.nodes import Alloc, Apply, Block, Const, Function, If, Load, Loop, Operation, Store, Value, walk
from srcdiff.ir.types import Array, is_float
from srcdiff.quick_dataclasses import dataclass

_COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal"))


def comparison_searches(function: Function, inputs: Sequence[Value], outputs: Iterable[Value]) -> list[Span]:
    """The places of the comparisons, each line once, in order."""
    operations = list(walk(function.body))
    loops = [o for o in operations if isinstance(o, Loop) and sum(is_float(p.type) for p in o.params) > 1]
    if not loops or not any(isinstance(o, Apply) and o.primitive in _COMPARISONS for o in operations):
        return []
    sites = points_to(function)
    varied = varied_values(function, inputs, sites)
    useful = useful_values(function, outputs, sites)

    def is_varied(value: Value) -> bool:
        if isinstance(value.type, Array):
            return bool(sites.get(value, frozenset((value,))) & varied)
        return value in varied

    found: dict[Span, None] = {}
    for loop in loops:
        results = [p for p, out in zip(loop.params, loop.outs, strict=True) if out in useful and is_float(p.type)]
        if results:
            body = _Body(loop, {v for v in _taken(loop.body) if is_varied(v)})
            found |= dict.fromkeys(body.searches(results))
    lines = {(span.file, span.line): span for span in found}
    return [lines[key] for key in sorted(lines)]


def _taken(block: Block) -> set[Value]:
    """All values that the operations of a block use."""
    operations = walk(block)
    return {v for o in operations for v in o.uses()} | {v for o in operations for b in o.blocks() for v in b.yields}


@dataclass
class _Slice:
    """The values on which a value of the body depends."""

    carried: set[Value] = field(default_factory=set)
    """Numbers that the loop carries."""
    computed: set[Value] = field(default_factory=set)
    """Those of them that it is computed from, and not only copied."""
    varied: set[Value] = field(default_factory=set)
    """The differentiated values that do not change in the loop."""
    choices: dict[Value, Span | None] = field(default_factory=dict)
    """The conditions that choose it."""
    is_clear: bool = True
    """Whether all of it is known: memory that earlier iterations wrote is not."""


class _Body:
    """The body of a loop, and what its values depend on."""

    def __init__(self, loop: Loop, varied: set[Value]) -> None:
        self.varied = varied
        self.next = dict(zip(loop.params, loop.body.yields[: len(loop.params)], strict=True))
        operations = walk(loop.body)
        self.makers: dict[Value, Operation] = {v: o for o in operations for v in o.defines()}
        self.inner = {p: o for o in operations if isinstance(o, Loop) for p in o.params}
        self.local = {o.out for o in operations if isinstance(o, Alloc)}
        self.written: dict[Value, list[Value]] = {}
        for o in operations:
            if isinstance(o, Store):
                self.written.setdefault(o.array, []).append(o.value)

        self.idle = {o.condition for o in operations if isinstance(o, If) and self.is_idle(o)}
        """Conditions of branches of which one moves nothing, such as one that leaves the loop."""

    def is_idle(self, branch: If) -> bool:
        sides = (branch.then.yields, branch.orelse.yields)
        return any(all(v in self.next for v in side if is_float(v.type)) for side in sides)

    def searches(self, results: Sequence[Value]) -> list[Span]:
        data = {p: self.slice(v, follows_choices=False) for p, v in self.next.items() if is_float(p.type)}
        bracket = {p for p, d in data.items() if d.is_clear and not d.varied}
        while True:
            smaller = {p for p in bracket if data[p].carried & data.keys() <= bracket}
            if smaller == bracket:
                break
            bracket = smaller
        if not any(p in bracket and data[p].carried & bracket for p in results):
            return []
        found: dict[Value, Span] = {}
        for p in sorted(bracket, key=list(data).index):
            combined = any(len(data[q].computed & bracket) > 1 for q in {p} | data[p].carried & bracket)
            chosen = data[p].choices.items() if combined else ()
            for condition, span in chosen:
                is_first = span is not None and (condition not in found or span.line < found[condition].line)
                if span is not None and is_first and self.searches_by(condition, bracket, data):
                    found[condition] = span
        return [span for condition, span in found.items() if condition not in self.idle] or list(found.values())

    def searches_by(self, condition: Value, bracket: set[Value], data: dict[Value, _Slice]) -> bool:
        """Whether a condition depends on the bracket, on what is differentiated, and on no other state."""
        seen = self.slice(condition, follows_choices=True)
        others = {c for c in seen.carried & data.keys() if c not in bracket}
        depends = bool(seen.carried & bracket)
        varied = bool(seen.varied)
        for other in others:  # a value at the bracket, kept from an earlier iteration
            kept = data[other]
            if not kept.is_clear or not kept.computed & data.keys() <= bracket or not kept.carried <= bracket | others:
                return False
            depends = depends or bool(kept.carried & bracket)
            varied = varied or bool(kept.varied)
        return seen.is_clear and depends and varied

    def slice(self, value: Value, *, follows_choices: bool) -> _Slice:
        found = _Slice()
        seen: set[tuple[Value, bool]] = set()
        queue = [(value, False)]
        while queue:
            now, is_computed = queue.pop()
            if (now, is_computed) in seen:
                continue
            seen.add((now, is_computed))
            queue += [(v, c or is_computed) for v, c in self.step(now, found, is_computed, follows_choices)]
        return found

    def step(self, value: Value, found: _Slice, is_computed: bool, follows_choices: bool) -> list[tuple[Value, bool]]:
        """The values that one is made of, and whether it is computed from them."""
        if value in self.next:
            found.carried.add(value)
            if is_computed:
                found.computed.add(value)
            return []
        if value in self.inner:
            loop = self.inner[value]
            k = loop.params.index(value)
            return [(loop.inits[k], False), (loop.body.yields[k], True)]
        operation = self.makers.get(value)
        match operation:
            case None | Const():
                if value in self.varied:
                    found.varied.add(value)
                return []
            case If():
                k = operation.outs.index(value)
                found.choices.setdefault(operation.condition, operation.span)
                chosen = [(operation.condition, True)] if follows_choices else []
                return [(operation.then.yields[k], False), (operation.orelse.yields[k], False), *chosen]
            case Apply(primitive="where", args=(condition, first, second)):
                found.choices.setdefault(condition, operation.span)
                return [(first, False), (second, False), *([(condition, True)] if follows_choices else [])]
            case Loop() if value in operation.outs:
                k = operation.outs.index(value)
                return [(operation.inits[k], False), (operation.body.yields[k], True)]
            case Load():
                if operation.array in self.makers or operation.array in self.written:
                    known = operation.array in self.local
                    found.is_clear = found.is_clear and known
                    return [(v, True) for v in self.written.get(operation.array, ())]
                if operation.array in self.varied:
                    found.varied.add(operation.array)
                return [(v, True) for v in operation.indices]
            case Apply():
                return [(v, True) for v in operation.args]
        found.is_clear = False
        return []


def in_words(span: Span) -> str:
    """The text of the warning about a search."""
    return (
        f"{span.place}, `{span.text.strip()}`: the loop searches by comparisons only. Comparisons have no "
        f"derivative, so the number that the loop finds has none either: use `srcdiff.root`, or `srcdiff.minimize`"
    )
