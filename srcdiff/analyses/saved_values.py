"""The kept values: for every value that the reverse sweep reads, the plan says how it is recovered.

In this order: it is still there (at top level, a loop's counter, memory that nobody has overwritten since); it is cheap
to compute again; the loop that yielded it carries it backwards; else it is kept. The choice of kept values, from which
all others can be computed, is a minimum cut. It separates the values that cannot be recovered from those that the
reverse sweep reads. The cost of keeping a value grows with the loops around it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import field
from heapq import heapify, heappop, heappush
from itertools import count

from srcdiff.analyses.minimum_cut import minimum_cut
from srcdiff.analyses.structure import Structure, handed_on, made_anew
from srcdiff.ir.aliasing import Sites
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Barrier,
    Block,
    Call,
    Copy,
    Dim,
    If,
    Library,
    Load,
    Loop,
    Operation,
    Peek,
    Pop,
    References,
    Store,
    Value,
)
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import INT, Array, Scalar, bytes_of
from srcdiff.quick_dataclasses import dataclass

_PER_LOOP = 100.0  # how many iterations a loop is taken to make, when costs are compared


@dataclass(frozen=True, slots=True)
class Decision:
    """How a value is recovered.

    keep        it is kept
    again       by an operation
    yielded     carried back by the loop
    undone      what the loop carries back, less what the iteration has added
    """

    how: str
    operation: Operation | Formula | None = None
    slot: int | None = None
    added: Term | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    decisions: dict[Value, Decision]
    cost: float
    idle: frozenset[Operation] = frozenset()
    """Branches that have nothing to do in reverse."""
    lost: dict[Value, float] = field(default_factory=dict)
    """Values that there is no way to have again, with their costs: they are kept, or what is computed from them."""

    @property
    def kept(self) -> list[Value]:
        return [v for v, d in self.decisions.items() if d.how == "keep"]


Option = tuple[Decision, tuple[Value, ...]] | None
"""A way to have a value again, and the values that it takes."""


def memory_of(array: Value, sites: dict[Value, Sites]) -> Sites:
    return sites.get(array, frozenset((array,)))


class Planner:
    """Decides for one function; `restored` is the memory that the reverse sweep puts back as it was."""

    def __init__(
        self,
        structure: Structure,
        sites: dict[Value, Sites],
        demands: dict[Value, set[int]],
        restored: frozenset[Value],
        never_reload: Iterable[Value],
        still_there: StillThere,
    ) -> None:
        self.structure, self.sites, self.restored = structure, sites, restored
        self.never_reload = set(never_reload)
        self.still_there = still_there
        self.asked = dict(demands)
        blocks = {structure.end[o]: block for o, block in structure.block_of.items()}
        self.positions: dict[Value, dict[Block, int]] = {v: self.latest_in(p, blocks) for v, p in demands.items()}
        """The last place in a block that asks for a value, for all blocks around places that do."""
        self.starts: dict[Block, list[int]] = {}
        """The start of the operations of a block."""
        self.options: dict[Value, Option] = {}
        self.in_question: set[Value] = set()
        """Parameters of loops that are being looked at: whether what was added to them can be had without them."""
        self.circular: set[Value] = set()
        """Those of which it cannot, or not if others are had so."""
        self.stores = [o for o in structure.start if isinstance(o, Store)]
        self.pops = any(isinstance(o, Pop) for o in structure.start)
        self.stored_in: dict[Value, list[Store]] = {}
        for store in self.stores:
            if not store.adds:
                self.stored_in.setdefault(store.value, []).append(store)

    def latest_in(self, positions: Iterable[int], blocks: dict[int, Block]) -> dict[Block, int]:
        found: dict[Block, int] = {}
        for position in positions:
            for block in self.structure.blocks_around(blocks[position]) if position in blocks else ():
                found[block] = max(found.get(block, 0), position)
        return found

    def plan(self) -> Plan:
        """Look at values before what they are had from, so that it is known then who asks for that."""
        number = count()
        work = [(self.order(v), next(number), v) for v in self.positions]
        heapify(work)
        waiting = set(self.positions)
        while work:
            _, _, value = heappop(work)
            waiting.discard(value)
            option = self.option(value)
            self.options[value] = option
            for operand in option[1] if option is not None else ():
                if not self.is_free(operand) and self.asked_for_as(operand, value) and operand not in waiting:
                    waiting.add(operand)
                    heappush(work, (self.order(operand), next(number), operand))
        self.options = {v: self.options[v] for v in self.from_the_first()}
        return self.cut()

    def from_the_first(self) -> dict[Value, None]:
        """The values in the order of the text: what is asked for first comes first, and then what it is had from."""
        found: dict[Value, None] = {}
        work = list(self.asked)
        while work:
            value = work.pop()
            if value not in found:
                found[value] = None
                option = self.options[value]
                work += [o for o in option[1] if not self.is_free(o)] if option is not None else []
        return found

    def order(self, value: Value) -> int:
        definition = self.structure.definition.get(value)
        return 0 if definition is None else -self.structure.start[definition]

    def asked_for_as(self, operand: Value, value: Value) -> bool:
        """Note that a value is asked for wherever another is; whether that is new."""
        is_new = operand not in self.positions
        known = self.positions.setdefault(operand, {})
        for block, position in self.positions[value].items():
            if known.get(block, 0) < position:
                known[block] = position
                is_new = True
        return is_new

    def cut(self) -> Plan:
        values = list(self.options)
        edges = {
            v: [o for o in option[1] if not self.is_free(o)] for v, option in self.options.items() if option is not None
        }
        sources = [v for v in values if self.options[v] is None]
        sinks = [v for v in values if v in self.asked]
        costs = {v: self.cost(v) for v in values}
        kept = minimum_cut(values, edges, sources, sinks, costs)
        needed = self.needed(sinks, edges, kept)
        decisions: dict[Value, Decision] = {}
        for value in values:
            option = self.options[value]
            if value in needed:
                decisions[value] = Decision("keep") if value in kept or option is None else option[0]
        return Plan(decisions, sum(costs[v] for v in kept), lost={v: costs[v] for v in sources})

    def needed(self, sinks: list[Value], edges: dict[Value, list[Value]], kept: set[Value]) -> set[Value]:
        """The requested values, and their operands. Values that stand for kept ones have no operands."""
        found, work = set(sinks), list(sinks)
        while work:
            value = work.pop()
            for operand in () if value in kept else edges.get(value, ()):
                if operand not in found:
                    found.add(operand)
                    work.append(operand)
        return found

    def cost(self, value: Value) -> float:
        block = self.structure.home[value]
        loops = self.structure.loops_around(block)
        iterations = _PER_LOOP ** len(loops)
        if any(not loop.counted for loop in loops):
            iterations *= 1.3  # a stack that grows
        return iterations * (
            self.cost_of_reference(value) if isinstance(value.type, Array) else bytes_of(value.scalar.dtype)
        )

    def cost_of_reference(self, value: Value) -> float:
        """Arrays that iterations allocate are rows, found by their number. Other references are kept in a list."""
        is_row = made_anew(value, self.structure) or handed_on(value, self.structure) is not None
        return 8.0 if is_row else 40.0

    def is_free(self, value: Value) -> bool:
        """Whether the reverse sweep has it without asking: constants, what stands at top level, counters."""
        if value in self.structure.constants or self.structure.is_at_hand(value):
            return True
        home = self.structure.home.get(value, self.structure.top)
        owner = self.structure.owner.get(home)
        return isinstance(owner, Loop) and owner.counted and value is owner.index

    # -- the ways to have a value again ------------------------------------------------------------------------------

    def option(self, value: Value) -> Option:
        """The best way that keeps nothing for this value itself, and the values it needs."""
        structure = self.structure
        if value in structure.slot:
            return self.parameter(*structure.slot[value])
        operation = structure.definition.get(value)
        owner = structure.owner.get(structure.home[value])
        if isinstance(owner, Loop) and value is owner.index:
            assert owner.bounds is not None
            return Decision("again"), owner.bounds
        if isinstance(operation, Load) and value not in self.never_reload and self.reloadable(operation):
            return Decision("again", operation), operation.uses()
        stored = self.from_memory(value)
        if stored is not None and all(self.is_free(v) for v in stored.uses()):
            return Decision("again", stored), stored.uses()
        if isinstance(operation, Apply) and self.is_cheap(operation):
            return Decision("again", operation), operation.args
        if isinstance(operation, Peek) and self.is_free(operation.stack) and not self.pops:
            return Decision("again", operation), operation.uses()
        if isinstance(operation, Dim | References):
            return Decision("again", operation), operation.uses()
        chosen = choice_of(value, structure)
        if chosen is not None:
            return Decision("again", chosen), chosen.uses()
        yielded = self.yielded(value)
        if yielded is not None:
            return yielded
        if stored is not None:
            return Decision("again", stored), stored.uses()
        return None

    def is_cheap(self, operation: Apply) -> bool:
        if operation.primitive == "power":
            return operation.args[1] in self.structure.constants
        return PRIMITIVES[operation.primitive].cheap

    def parameter(self, loop: Loop, slot: int) -> Option:
        """A loop's parameter: a formula that holds at every iteration, what another parameter was given, or undone."""
        formula = invariant_formula(loop, slot, self.structure)
        if formula is not None:
            return Decision("again", formula), formula.uses()
        param = loop.params[slot]
        for other in range(len(loop.params)):
            if loop.body.yields[other] is param and other != slot:
                return Decision("yielded", slot=other), (loop.params[other], loop.outs[other])
        return self.undone(loop, slot)

    def undone(self, loop: Loop, slot: int) -> Option:
        """An integer that an iteration adds to: what it was afterwards, less what was added."""
        param = loop.params[slot]
        if param.type != INT or param in self.circular:
            return None
        added = amount_added(param, loop.body.yields[slot], loop, self.structure)
        if added is None:
            return None
        needed = (*values_of(added), loop.outs[slot])
        self.in_question.add(param)
        if self.is_circular(needed):
            self.circular.add(param)
        self.in_question.remove(param)
        return None if param in self.circular else (Decision("undone", slot=slot, added=added), needed)

    def is_circular(self, values: Iterable[Value]) -> bool:
        """Whether what is in question is needed to have these values again."""
        seen: set[Value] = set()
        work = list(values)
        while work:
            value = work.pop()
            if value in self.in_question:
                return True
            if value not in seen and not self.is_free(value):
                seen.add(value)
                self.positions.setdefault(value, {})
                option = self.option(value)
                work += option[1] if option is not None else ()
        return False

    def yielded(self, value: Value) -> Option:
        home = self.structure.home[value]
        owner = self.structure.owner.get(home)
        if isinstance(owner, Loop) and home is owner.body:
            for slot in range(len(owner.params)):
                if owner.body.yields[slot] is value:
                    return Decision("yielded", slot=slot), (owner.params[slot], owner.outs[slot])
        return None

    def from_memory(self, value: Value) -> Load | None:
        """A load from where the value was stored, if it is still there."""
        for store in self.stored_in.get(value, ()):
            block = self.structure.block_of[store]
            if block is not self.structure.home[value] or not isinstance(value.type, Scalar):
                continue
            if store.array.array.dtype != value.scalar.dtype:
                continue
            if not memory_of(store.array, self.sites) & self.restored and self.still_there.after(store):
                return Load(Value(value.type, value.name), store.array, store.indices, span=store.span)
        return None

    # -- memory ------------------------------------------------------------------------------------------------------

    def reloadable(self, load: Load) -> bool:
        memory = memory_of(load.array, self.sites)
        if memory & self.restored:
            return memory <= self.restored and self.restored_in_time(load, memory)
        return self.still_there.after(load)

    def restored_in_time(self, load: Load, memory: Sites) -> bool:
        """Whether no store stands between the load and the places that ask for it, once the reverse sweep is there.

        A value is asked for in front of the mirror of the operation, in the block of the load, that holds the place.
        """
        structure = self.structure
        block = structure.block_of[load]
        start = last = structure.start[load]
        if block in self.positions[load.out]:
            if block not in self.starts:
                self.starts[block] = [structure.start[o] for o in block.operations]
            holder = bisect_right(self.starts[block], self.positions[load.out][block]) - 1
            last = max(start, structure.end[block.operations[holder]])
        if any(start < structure.start[b] <= last for b in self.still_there.barriers_for(memory)):
            return False  # behind a barrier, it is not known which of their stores other threads have undone already
        return not any(self.still_there.is_written(site, start, last) for site in memory)


class StillThere:
    """Whether memory still holds, when the forward sweep ends, what a load read or a store wrote."""

    def __init__(self, structure: Structure, sites: dict[Value, Sites]) -> None:
        self.structure, self.sites = structure, sites
        self.stores = [o for o in structure.start if isinstance(o, Store)]
        self.calls = [o for o in structure.start if isinstance(o, Call) and o.writes]
        self.writes: dict[Value, list[Store | Call]] = {}
        """Those that may write, by the memory."""
        writes: list[Store | Call] = [*self.stores, *self.calls]
        for write in writes:
            arrays = (write.array,) if isinstance(write, Store) else write.written
            for site in {s for a in arrays for s in memory_of(a, sites)}:
                self.writes.setdefault(site, []).append(write)
        self.places = {s: sorted(structure.start[w] for w in found) for s, found in self.writes.items()}
        self.known: dict[Operation, bool] = {}
        self.barriers = [o for o in structure.start if isinstance(o, Barrier)]

    def is_written(self, site: Value, start: int, last: int) -> bool:
        """Whether an operation between two places may write into the memory."""
        places = self.places.get(site, ())
        following = bisect_right(places, start)
        return following < len(places) and places[following] <= last

    def after(self, access: Load | Store) -> bool:
        if access not in self.known:
            self.known[access] = not any(self.may_overwrite(w, access) for w in self.writes_to(access.array))
        return self.known[access]

    def writes_to(self, array: Value) -> Iterable[Store | Call]:
        """The operations that may write into the array's memory: the last come first, which follow most accesses."""
        return dict.fromkeys(w for site in memory_of(array, self.sites) for w in reversed(self.writes.get(site, [])))

    def may_overwrite(self, store: Store | Call, access: Load | Store) -> bool:
        """Whether a write to the same memory comes after the access and meets its element."""
        if not self.may_follow(store, access):
            return False
        if isinstance(store, Call) or self.barriers_for(memory_of(access.array, self.sites)):
            return True  # behind a barrier, any thread may have stored there
        from srcdiff.analyses.access_relations import never_overwrites

        return not never_overwrites(store, access, self.structure)

    def barriers_for(self, memory: Sites) -> list[Barrier]:
        """The barriers behind which other threads may have touched the memory: none if it is the thread's own."""
        made = [self.structure.definition.get(site) for site in memory]
        own = all(isinstance(o, Alloc | Copy) and getattr(o, "place", "") != "shared" for o in made)
        return [] if own else self.barriers

    def may_follow(self, store: Operation, access: Operation) -> bool:
        """Whether the store may run after the access: it stands behind it, or a loop comes round to it."""
        structure = self.structure
        behind = structure.start[store] > structure.start[access]
        common = set(structure.loops_around(structure.block_of[store])) & set(
            structure.loops_around(structure.block_of[access])
        )
        made = self.maker(store.array) if isinstance(store, Store) else None
        if made is None:
            return behind or bool(common)
        if self.since(access) < structure.start[made]:
            return False  # the memory of the access is older than the array
        made_each_iteration = common <= set(structure.loops_around(structure.block_of[made]))
        return behind or (bool(common) and not made_each_iteration)

    def maker(self, array: Value) -> Operation | None:
        """The operation that makes the array."""
        definition = self.structure.definition.get(self.whole(array))
        return definition if isinstance(definition, Alloc | Copy | Library | Call) else None

    def whole(self, array: Value) -> Value:
        definition = self.structure.definition.get(array)
        while isinstance(definition, References):
            array, definition = definition.array, self.structure.definition.get(definition.array)
        return array

    def since(self, access: Operation) -> int:
        """The origin of the reference of an access: it cannot point to a later array of the same iteration."""
        if not isinstance(access, Load | Store):
            return self.structure.start[access]
        array = self.whole(access.array)
        definition = self.structure.definition.get(array)
        if definition is None:
            return 0
        return self.structure.start[definition] if array in self.structure.slot else self.structure.end[definition]


@dataclass(frozen=True, slots=True)
class Formula:
    """A primitive on values, constants and other formulas."""

    primitive: str
    args: tuple[Term, ...]

    def uses(self) -> tuple[Value, ...]:
        return tuple(v for a in self.args for v in values_of(a))


Term = Value | Formula | int
"""The operations that formulas consist of."""


def values_of(term: Term) -> tuple[Value, ...]:
    match term:
        case Formula():
            return term.uses()
        case Value():
            return (term,)
    return ()


def amount_added(start: Value, end: Value, loop: Loop, structure: Structure) -> Term | None:
    """The increment of an integer in an iteration, from values that are known at its end."""
    around = structure.blocks_around(loop.body)

    def had(term: Term | None) -> Term | None:
        """The term, if what it takes is there at the end of the iteration."""
        if isinstance(term, Value) and term in structure.constants:
            return int(structure.constants[term])  # type: ignore[call-overload, no-any-return]
        values = () if term is None else values_of(term)
        return term if all(structure.home.get(v, structure.top) in around for v in values) else None

    def total(first: Term | None, second: Term | None, primitive: str = "add") -> Term | None:
        if first is None or second is None:
            return None
        return second if first == 0 and primitive == "add" else Formula(primitive, (first, second))

    def added(end: Value) -> Term | None:
        if end is start:
            return 0
        match structure.definition.get(end):
            case Apply(primitive="add", args=(first, second)) if end.type == INT:
                found = total(added(first), had(second))
                return total(added(second), had(first)) if found is None else found
            case Apply(primitive="subtract", args=(first, second)) if end.type == INT:
                return total(added(first), had(second), "subtract")
            case If(condition=condition, then=then, orelse=orelse, outs=outs):
                then_added, else_added = (added(block.yields[outs.index(end)]) for block in (then, orelse))
                if then_added is not None and else_added is not None and had(condition) is not None:
                    return Formula("where", (condition, then_added, else_added))
            case Loop(outs=outs) as inner if end in outs:
                slot = outs.index(end)
                each = amount_added(inner.params[slot], inner.body.yields[slot], loop, structure)
                count = Formula("range_length", inner.bounds) if inner.counted and inner.bounds else inner.count
                if each is not None and had(count) is not None and count is not None:
                    return total(added(inner.inits[slot]), Formula("multiply", (count, each)))
        return None

    return added(end)


_WITHOUT_RISK = frozenset({"add", "subtract", "multiply", "negative", "minimum", "maximum"})
"""Primitives on integers that can be computed also where the program does not: they raise nothing."""


def choice_of(value: Value, structure: Structure) -> Formula | None:
    """An integer that a branch gives, as a choice between two formulas."""
    branch = structure.definition.get(value)
    if not isinstance(branch, If) or value.type != INT:
        return None

    def formula(end: Value) -> Term | None:
        if end in structure.constants:
            return int(structure.constants[end])  # type: ignore[call-overload, no-any-return]
        if structure.home.get(end, structure.top) not in branch.blocks():
            return end
        made = structure.definition.get(end)
        if not isinstance(made, Apply) or made.primitive not in _WITHOUT_RISK or end.type != INT:
            return None
        args = [formula(a) for a in made.args]
        found = tuple(a for a in args if a is not None)
        return Formula(made.primitive, found) if len(found) == len(args) else None

    sides = [formula(block.yields[branch.outs.index(value)]) for block in branch.blocks()]
    known = tuple(side for side in sides if side is not None)
    return Formula("where", (branch.condition, *known)) if len(known) == 2 else None


def invariant_formula(loop: Loop, slot: int, structure: Structure) -> Formula | None:
    """A formula for a loop's parameter in terms of the others, if its start and its next value are the same formula.

    res = y * y - c                      at the start of every iteration res is y * y - c, so that it need not be kept
    while abs(res) > 1e-9:
        y = y - res / (2.0 * y)
        res = y * y - c
    """
    start, following = loop.inits[slot], loop.body.yields[slot]
    pairs = {
        (i, y): p
        for k, (i, y, p) in enumerate(zip(loop.inits, loop.body.yields, loop.params, strict=False))
        if k != slot
    }
    steps = 0

    def match(a: Value, b: Value) -> Term | None:
        nonlocal steps
        steps += 1
        if steps > 200:
            return None
        if (a, b) in pairs:
            return pairs[a, b]
        if a is b:
            return a
        if a in structure.constants and b in structure.constants:
            same = structure.constants[a] == structure.constants[b] and a.type == b.type
            return a if same else None
        left, right = structure.definition.get(a), structure.definition.get(b)
        if not (isinstance(left, Apply) and isinstance(right, Apply)) or left.primitive != right.primitive:
            return None
        if not PRIMITIVES[left.primitive].cheap or structure.home[b] is not loop.body:
            return None
        args = [match(x, y) for x, y in zip(left.args, right.args, strict=True)]
        found = tuple(x for x in args if x is not None)
        return Formula(left.primitive, found) if len(found) == len(args) else None

    found = match(start, following)
    return found if isinstance(found, Formula) and loop.params[slot] not in found.uses() else None
