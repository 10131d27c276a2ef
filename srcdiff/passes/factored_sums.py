"""Factored sums: a loop-invariant factor leaves a sum of chosen terms, and sums that are then equal become one.

for i in range(n):                                     for i in range(n):
    c = x[i] > limit                                       c = x[i] > limit
    a += k if c else 0.0                     =>            s += 1.0 if c else 0.0
    b += (k if c else 0.0) * y[i]                          t += y[i] if c else 0.0
                                                       a += k * s
                                                       b += k * t

The adjoints of `max`, `abs` or a masked sum are such terms: an adjoint that is the same in all iterations, or zero. If
the loop adds nothing, the result is what it was, also if the factor is infinite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from srcdiff.analyses.signs import Sign, Signs, signs_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Block, Const, Function, Loop, Operation, Value, changed, walk
from srcdiff.ir.types import FLOAT
from srcdiff.quick_dataclasses import dataclass

_MOST_STEPS = 12
"""How far a term is looked into."""


@dataclass(frozen=True, slots=True)
class _Term:
    """The summand of a loop: invariant factors, the conditions under which it is not zero, and the other factors."""

    invariants: tuple[Value, ...] = ()
    chosen: tuple[tuple[Value, bool], ...] = ()
    """Conditions, each with the result for which the term is not zero."""
    factors: tuple[tuple[Value, bool], ...] = ()
    """The others, each with whether the product is zero if those before it are."""
    is_negative: bool = False
    is_strong: bool = False
    steps: tuple[Apply, ...] = ()
    """The operations that the term consists of."""

    @property
    def rest(self) -> tuple[object, ...]:
        """Terms with the same rest have the same sum."""
        return self.chosen, self.factors

    def times(self, other: _Term) -> _Term:
        invariants, chosen = self.invariants + other.invariants, tuple(dict.fromkeys(self.chosen + other.chosen))
        return _Term(
            invariants,
            chosen,
            self.factors + other.factors,
            self.is_negative != other.is_negative,
            self.is_strong or other.is_strong,
            self.steps + other.steps,
        )


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum that a loop carries in a parameter."""

    slot: int
    addition: Apply
    term: _Term = field(default_factory=_Term)


def factor_sums(function: Function) -> Function:
    """The function with the factors of its sums behind the loops."""
    constants = {o.out: o.value for o in walk(function.body) if isinstance(o, Const)}
    if not any(isinstance(o, Apply) and o.primitive == "where" for o in walk(function.body)):
        return function
    return changed(function, body=_Factors(constants, signs_of(function)).block(function.body))


class _Factors:
    def __init__(self, constants: dict[Value, object], signs: Signs) -> None:
        self.constants, self.signs = constants, signs

    def block(self, block: Block) -> Block:
        builder = Builder()
        builder.constants = dict(self.constants)
        for operation in block.operations:
            inner = operation.rebuilt(self.block)
            if isinstance(inner, Loop):
                self.loop(inner, builder)
            else:
                builder.operations.append(inner)
        return changed(block, operations=tuple(builder.operations))

    def loop(self, loop: Loop, builder: Builder) -> None:
        """Write the loop, and what its sums are."""
        sums = _worthwhile(list(self.sums(loop)), loop)
        if not sums:
            builder.operations.append(loop)
            return
        groups: dict[tuple[object, ...], list[_Sum]] = {}
        for found in sums:
            groups.setdefault(found.term.rest, []).append(found)
        gone = {found.slot for found in sums}
        kept = [k for k in range(len(loop.params)) if k not in gone]
        firsts = [group[0] for group in groups.values()]
        params = [Value(FLOAT, f"{name}_sum" if (name := loop.params[s.slot].name) else "") for s in firsts]
        outs = [Value(FLOAT) for _ in firsts]
        zero = builder.const(0.0)
        body = self.body(loop, {s.addition for s in sums}, kept, firsts, params)
        new = replace(
            loop,
            params=(*(loop.params[k] for k in kept), *params),
            inits=(*(loop.inits[k] for k in kept), *(zero for _ in firsts)),
            outs=(*(loop.outs[k] for k in kept), *outs),
            body=body,
        )
        builder.operations.append(new)
        for group, total in zip(groups.values(), outs, strict=True):
            for found in group:
                self.result(found, total, loop, builder)

    def body(
        self, loop: Loop, additions: set[Apply], kept: Sequence[int], firsts: Sequence[_Sum], params: Sequence[Value]
    ) -> Block:
        builder = Builder()
        builder.constants = dict(self.constants)
        builder.operations = [o for o in loop.body.operations if o not in additions]
        following = []
        for found, param in zip(firsts, params, strict=True):
            total: Value | None = None
            for factor, is_strong in found.term.factors:
                multiply = "strong_multiply" if is_strong else "multiply"
                total = factor if total is None else builder.apply(multiply, total, factor)
            amount = builder.const(1.0) if total is None else total
            for condition, holds in found.term.chosen:
                zero = builder.const(0.0)
                amount = builder.apply("where", condition, *((amount, zero) if holds else (zero, amount)))
            following.append(builder.apply("add", param, amount))
        yields = loop.body.yields
        left = (*(yields[k] for k in kept), *following, *yields[len(loop.params) :])
        return Block(tuple(builder.operations), left)

    def result(self, found: _Sum, total: Value, loop: Loop, builder: Builder) -> None:
        """The old sum: its start, plus the factors times the new sum."""
        term, init, out = found.term, loop.inits[found.slot], loop.outs[found.slot]
        factor = term.invariants[0]
        for other in term.invariants[1:]:
            factor = builder.apply("multiply", factor, other)
        amount = builder.apply("strong_multiply", total, factor)
        if term.is_strong and self.may_be_zero(term):
            zero = builder.const(0.0)
            amount = builder.apply("where", builder.apply("not_equal", factor, zero), amount, zero)
        adds = (found.addition.primitive == "add") != term.is_negative
        sign, operation = ("positive", "add") if adds else ("negative", "subtract")
        is_first = self.constants.get(init) == 0.0
        primitive, args = (sign, (amount,)) if is_first else (operation, (init, amount))
        builder.operations.append(Apply(out, primitive, args, span=found.addition.span))

    def may_be_zero(self, term: _Term) -> bool:
        return any(self.signs.of(v) & Sign.ZERO for v in term.invariants)

    # -- which sums ----------------------------------------------------------------------------------------------------

    def sums(self, loop: Loop) -> Iterator[_Sum]:
        """The sums of terms with an invariant factor that each iteration chooses or leaves out."""
        inside = {v for o in walk(loop.body) for v in (*o.defines(), *o.inner())} | set(loop.inner())
        own = {o.out: o for o in loop.body.operations if isinstance(o, Apply)}
        uses = _uses(loop)
        for slot, param in enumerate(loop.params):
            addition = own.get(loop.body.yields[slot])
            if addition is None or param.type != FLOAT or addition.out.type != FLOAT:
                continue
            if addition.primitive not in ("add", "subtract") or addition.args[0] is not param:
                continue
            if uses[param] != [addition] or uses[addition.out] != [None]:
                continue
            term = self.term(addition.args[1], inside, own)
            if any(v not in self.constants for v in term.invariants) and term.chosen:
                yield _Sum(slot, addition, term)

    def term(self, value: Value, inside: set[Value], own: dict[Value, Apply], depth: int = 0) -> _Term:
        if value not in inside and value.type == FLOAT:
            return _Term(invariants=(value,))
        operation = own.get(value)
        if operation is None or depth > _MOST_STEPS or operation.out.type != FLOAT:
            return _Term(factors=((value, False),))

        def part(argument: Value) -> _Term:
            return self.term(argument, inside, own, depth + 1)

        match operation.primitive, operation.args:
            case "multiply", (first, second) if first.type == second.type == FLOAT:
                return replace((both := part(first).times(part(second))), steps=(*both.steps, operation))
            case "negative", (argument,):
                inner = part(argument)
                return replace(inner, is_negative=not inner.is_negative, steps=(*inner.steps, operation))
            case "strong_multiply", (first, second):
                inner = part(first)
                if inner.invariants or inner.chosen:
                    factors = (*inner.factors, (second, bool(inner.factors)))
                    return replace(inner, factors=factors, is_strong=True, steps=(*inner.steps, operation))
            case "where", (condition, first, second):
                for other, amount, holds in ((first, second, False), (second, first, True)):
                    if self.constants.get(other) == 0.0 and amount.type == FLOAT:
                        inner = part(amount)
                        chosen = tuple(dict.fromkeys((*inner.chosen, (condition, holds))))
                        return replace(inner, chosen=chosen, steps=(*inner.steps, operation))
        return _Term(factors=((value, False),))


def _uses(loop: Loop) -> dict[Value, list[Operation | None]]:
    """The operations of the body, inner ones too, that use a value; None for what it, or a block in it, yields."""
    found: dict[Value, list[Operation | None]] = {}
    blocks = [loop.body]
    if loop.test is not None:
        blocks.append(loop.test)
    while blocks:
        block = blocks.pop()
        for value in block.yields:
            found.setdefault(value, []).append(None)
        for operation in block.operations:
            for value in dict.fromkeys(operation.uses()):
                found.setdefault(value, []).append(operation)
            blocks += operation.blocks()
    return found


def _worthwhile(sums: list[_Sum], loop: Loop) -> list[_Sum]:
    """The sums whose terms have no other use, so that they need not be computed any more."""
    uses = _uses(loop)
    while True:
        gone = {step for found in sums for step in found.term.steps} | {found.addition for found in sums}
        left = [s for s in sums if all(user in gone for step in s.term.steps for user in uses.get(step.out, ()))]
        if len(left) == len(sums):
            return sums
        sums = left
