"""Recursive functions that run together with their adjoints: nothing is kept between the sweeps.

def f(a):                                    def f_with_adjoint(a, y_bar, a_bar):
    y = 0.0                                      y = 0.0
    for j in range(n):                           for j in range(n):
        part = g(a, j)            =>                 part = g(a, j)
        y += a[j] * f(part)                          part_bar = zeros
    return y                                         r = f_with_adjoint(part, y_bar * a[j], part_bar)
                                                     y += a[j] * r
                                                     a_bar[j] += y_bar * r
                                                     (the adjoint of g adds part_bar to a_bar)
                                                 return y

This is possible if the adjoint of what a call returns is known before the call: the function adds up what its calls
return, times numbers that need none of the calls. Branches and loops that only add up are split into pieces, an
iteration or a side of a branch each; a piece runs forwards and backwards before the next one starts. In a piece, a call
and its adjoint become one call (`join_calls`). If one call remains that does not, the function becomes a pair instead
(`call_pairs.py`): otherwise every level would run the levels below it twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from srcdiff.analyses.activity import Activity, activity
from srcdiff.diagnostics import DifferentiationError
from srcdiff.ir.aliasing import Sites, points_to, written_sites
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import fresh, inline, without_comments
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
    Part,
    Print,
    References,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
    changed,
    free_values,
    functions_with,
    substituted,
    use_counts,
    walk,
)
from srcdiff.ir.types import Array, Stack, is_inexact, widest
from srcdiff.ir.words import own_name
from srcdiff.passes.call_pairs import has_shadow
from srcdiff.passes.cse import eliminate_common_subexpressions
from srcdiff.passes.reverse_mode import Reversal, reversed_function
from srcdiff.passes.shadows import list_storage
from srcdiff.passes.simplify import simplify
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Joint:
    """A function that takes the arguments of another one, the adjoints of its results and of its arrays.

    It returns the results, and the adjoints of the numbers among the arguments; to the adjoints of arrays it adds.
    """

    name: str
    gives_results: bool = True

    @staticmethod
    def has_shadow(argument: Value) -> bool:
        return has_shadow(argument)


class _NotJointError(Exception):
    """The function does not run together with its adjoint."""


def joint_functions(callees: Sequence[Function], names: Mapping[str, str]) -> list[Function] | None:
    """The functions with their adjoints, by the names that they get; None if one of them is not possible."""
    if functions_with(callees, (Print,)):
        return None
    known = {name: Joint(new) for name, new in names.items()}
    try:
        return [_Together(fresh(callee), known).run() for callee in callees]
    except (_NotJointError, DifferentiationError):  # a pair refuses functions without derivative too
        return None


@dataclass(slots=True)
class _Swept:
    """A block that runs forwards and backwards."""

    operations: list[Operation]
    yields: tuple[Value, ...]
    bars: list[Value]
    """The contributions to the adjoints of number parameters."""


@dataclass(slots=True)
class _Together:
    function: Function
    known: Mapping[str, Joint]
    active: Activity = field(init=False)
    shadows: dict[Value, Value] = field(init=False)
    numbers: list[Value] = field(init=False)
    """The parameters that are numbers with adjoints."""

    def run(self) -> Function:
        function, sites = self.function, points_to(self.function)
        results = function.body.yields
        changing = written_sites(function.body, sites) | list_storage(function, sites)
        if changing & set(function.params) or any(isinstance(v.type, Array | Stack) for v in results):
            raise _NotJointError
        if any(isinstance(p.type, Stack) for p in function.params):
            raise _NotJointError
        floats = [p for p in function.params if is_inexact(p.type)]
        self.active = activity(function, floats, [v for v in results if is_inexact(v.type)], sites)
        self.numbers = [p for p in floats if not isinstance(p.type, Array)]
        self.shadows = {p: Value(p.type, f"{p.name}_bar") for p in function.params if has_shadow(p)}
        seeds = {
            k: Value(widest(v.type), f"{own_name(v) or 'result'}_bar")
            for k, v in enumerate(results)
            if is_inexact(v.type)
        }
        swept = self.block(function.body, seeds)
        return Function(
            self.known[function.name].name,
            (*function.params, *seeds.values(), *self.shadows.values()),
            Block(tuple(swept.operations), (*swept.yields, *swept.bars)),
            tuple(self.shadows.values()),
        )

    def block(self, block: Block, seeds: Mapping[int, Value]) -> _Swept:
        """The block and its adjoint; `seeds` has the adjoints of the values that it yields, by their positions."""
        around = self.split(block)
        if around is None:
            return self.piece(block, seeds)
        before, inner, after = around
        place = {v: k for k, v in enumerate(inner.defines())}
        inside: dict[int, Value] = {}
        for k, bar in seeds.items():
            value = block.yields[k]
            if self.is_active(value) and place.get(value, -1) in (-1, *inside):
                return self.piece(block, seeds)  # a value from elsewhere, or one that is returned twice
            if value in place:
                inside[place[value]] = bar
        made = self.branch(inner, inside) if isinstance(inner, If) else self.loop(inner, inside)
        if made is None:
            return self.piece(block, seeds)
        operations, bars = made
        return _Swept([*before, *operations, *after], block.yields, bars)

    def split(self, block: Block) -> tuple[list[Operation], If | Loop, list[Operation]] | None:
        """The operation that makes all calls, if nothing around it has an adjoint."""
        calling = [k for k, o in enumerate(block.operations) if self.calls(o)]
        if len(calling) != 1:
            return None
        inner = block.operations[calling[0]]
        if not isinstance(inner, If | Loop):
            return None
        before, after = list(block.operations[: calling[0]]), list(block.operations[calling[0] + 1 :])
        around = [o for one in (*before, *after) for o in (one, *(i for b in one.blocks() for i in walk(b)))]
        if any(self.is_active(v) for o in around for v in o.defines()):
            return None
        if any(v in inner.defines() and self.is_active(v) for o in around for v in o.uses()):
            return None
        return before, inner, after

    def calls(self, operation: Operation) -> bool:
        operations = (operation, *(o for b in operation.blocks() for o in walk(b)))
        return any(isinstance(o, Call) and o.function in self.known for o in operations)

    def is_active(self, value: Value) -> bool:
        return self.active.memory(value) if isinstance(value.type, Array) else value in self.active

    def branch(self, branch: If, seeds: Mapping[int, Value]) -> tuple[list[Operation], list[Value]]:
        """The branch whose sides run forwards and backwards, and what it adds to the adjoints of parameters."""
        then, orelse = self.block(branch.then, seeds), self.block(branch.orelse, seeds)
        bars = [Value(widest(p.type), f"{p.name}_bar") for p in self.numbers]
        sides = [Block(tuple(s.operations), (*s.yields, *s.bars)) for s in (then, orelse)]
        return [replace(branch, then=sides[0], orelse=sides[1], outs=(*branch.outs, *bars))], bars

    def loop(self, loop: Loop, seeds: Mapping[int, Value]) -> tuple[list[Operation], list[Value]] | None:
        """The loop whose iterations run forwards and backwards, if they have nothing but sums in common."""
        if not loop.counted or any(isinstance(p.type, Array) for p in loop.params):
            return None
        sums: dict[int, list[tuple[str, Value]]] = {}
        adding: set[Operation] = set()
        for k, out in enumerate(loop.outs):
            if not self.is_active(out) and not self.is_active(loop.params[k]):
                continue
            if self.is_active(loop.inits[k]) or (chain := _sum_of(loop.params[k], loop.body, k)) is None:
                return None
            sums[k] = [(primitive, term) for primitive, term, _ in chain]
            adding |= {operation for _, _, operation in chain}
        others = [k for k in range(len(loop.params)) if k not in sums]
        if any(self.is_active(v) for v in (loop.body.yields[k] for k in others)):
            return None
        terms = [(k, primitive, term) for k, chain in sums.items() for primitive, term in chain]
        values = (*(loop.body.yields[k] for k in others), *(term for _, _, term in terms))
        body = Block(tuple([o for o in loop.body.operations if o not in adding]), values)
        inner = Builder()
        bars: dict[int, Value] = {}
        for place, (k, primitive, _) in enumerate(terms, len(others)):
            if k in seeds:
                bars[place] = inner.apply("negative", seeds[k]) if primitive == "subtract" else seeds[k]
        swept = self.block(body, bars)
        inner.operations += swept.operations
        yields = dict(zip(others, swept.yields, strict=False))
        yields |= {k: loop.params[k] for k in sums}
        for (k, primitive, _), term in zip(terms, swept.yields[len(others) :], strict=True):
            yields[k] = inner.apply(primitive, yields[k], term, name=loop.params[k].name)
        totals = [Value(widest(p.type), f"{p.name}_bar") for p in self.numbers]
        outs = [Value(widest(p.type), f"{p.name}_bar") for p in self.numbers]
        added = [inner.apply("add", t, bar) for t, bar in zip(totals, swept.bars, strict=True)]
        builder = Builder()
        zeros = [builder.zero(t.type) for t in totals]
        builder.add(
            replace(
                loop,
                params=(*loop.params, *totals),
                inits=(*loop.inits, *zeros),
                body=Block(tuple(inner.operations), (*(yields[k] for k in range(len(loop.params))), *added)),
                outs=(*loop.outs, *outs),
            )
        )
        return builder.operations, outs

    def piece(self, block: Block, seeds: Mapping[int, Value]) -> _Swept:
        """The block, then its adjoint."""
        block = self.with_constants(block)
        free = free_values(Function("piece", (), block))
        inputs = [v for v in (*self.function.params, *_in_order(self.function)) if v in free]
        own = {o.out for o in walk(block) if isinstance(o, Alloc | Copy)}
        own |= {v for o in walk(block) if isinstance(o, Library | Call) for v in o.outs}
        written = written_sites(block, points_to(self.function))
        outside = [v for v in inputs if self.is_active(v) and v not in self.function.params]
        if outside or not written <= own or any(isinstance(v.type, Array) for v in block.yields):
            raise _NotJointError
        piece = Function("piece", tuple(inputs), block)
        used = [v for v in inputs if v in self.numbers]
        shadows = {v: self.shadows[v] for v in inputs if v in self.shadows}
        builder = Builder()
        given: dict[Value, Value] = {}
        for k, bar in seeds.items():
            value = block.yields[k]
            given[value] = builder.apply("add", given[value], bar) if value in given else bar
        chosen = tuple((value, Value(widest(value.type), bar.name)) for value, bar in given.items())

        def finish(adjoint: Function) -> Function:
            body = Block(adjoint.body.operations, adjoint.body.yields[: len(block.yields) + len(used)])
            return Function("piece", (*adjoint.params, *shadows.values()), body, tuple(shadows.values()))

        reversal = Reversal(
            piece,
            (*used, *shadows),
            chosen,
            "piece",
            block.yields,
            callees=dict(self.known),
            given=shadows,
            finish=finish,
        )
        found = without_comments(simplify(eliminate_common_subexpressions(reversed_function(reversal), ())))
        found = join_calls(found, {name: joint.name for name, joint in self.known.items()})
        if any(isinstance(o, Call) and o.function in self.known for o in walk(found.body)):
            raise _NotJointError
        values = inline(found, [*inputs, *given.values(), *shadows.values()], builder)
        found_bars = dict(zip(used, values[len(block.yields) :], strict=True))
        bars = [found_bars[p] if p in found_bars else builder.zero(p.type) for p in self.numbers]
        return _Swept(list(builder.operations), tuple(values[: len(block.yields)]), bars)

    def with_constants(self, block: Block) -> Block:
        """The block with the constants that it uses, which simplify its adjoint."""
        free = free_values(Function("piece", (), block))
        constants = [o for o in walk(self.function.body) if isinstance(o, Const) and o.out in free]
        known = {o.out: Value(o.out.type, o.out.name) for o in constants}
        body = substituted(block, lambda v: known.get(v, v))
        own = [replace(o, out=known[o.out]) for o in constants]
        return Block((*own, *body.operations), body.yields)


def _in_order(function: Function) -> Iterator[Value]:
    for operation in walk(function.body):
        yield from operation.inner()
        yield from operation.defines()


def _sum_of(param: Value, body: Block, place: int) -> list[tuple[str, Value, Operation]] | None:
    """The terms that an iteration adds to a parameter of a loop, or subtracts; None if it does more with it."""
    uses, found, current = use_counts(body), list[tuple[str, Value, Operation]](), param
    while current is not body.yields[place]:
        using = [o for o in body.operations if current in o.uses()]
        if uses[current] != 1 or len(using) != 1:
            return None
        match using[0]:
            case Apply(out=out, primitive="add", args=(left, right)) if left is not right:
                found.append(("add", right if left is current else left, using[0]))
            case Apply(out=out, primitive="subtract", args=(left, right)) if left is current and right is not current:
                found.append(("subtract", right, using[0]))
            case _:
                return None
        current = out
    return found if uses[current] == 1 else None


# -- a call and its adjoint ------------------------------------------------------------------------------------------


def join_calls(function: Function, names: Mapping[str, str]) -> Function:
    """Calls of functions whose adjoints are called in the same block become calls of both together."""
    if not names or not any(isinstance(o, Call) and o.function in names for o in walk(function.body)):
        return function
    sites = points_to(function)

    def visit(block: Block) -> Block:
        operations = _joined([o.rebuilt(visit) for o in block.operations], names, sites)
        return changed(block, operations=tuple(operations))

    return changed(function, body=visit(function.body))


def _joined(operations: list[Operation], names: Mapping[str, str], sites: Mapping[Value, Sites]) -> list[Operation]:
    start = 0
    while start < len(operations):
        call = operations[start]
        if isinstance(call, Call) and call.function in names and not call.writes:
            for end in range(start + 1, len(operations)):
                adjoint = operations[end]
                if isinstance(adjoint, Call) and adjoint.function == names[call.function]:
                    before = _moved(operations, start, end, set(names.values()), sites)
                    if before is not None:
                        outs = (*call.outs, *adjoint.outs[len(call.outs) :])
                        both = replace(adjoint, outs=outs, effects=call.effects)
                        rest = [o for o in operations[start + 1 : end] if o not in before]
                        operations = [*operations[:start], *before, both, *rest, *operations[end + 1 :]]
                        start += len(before)
                        break
        start += 1
    return operations


def _moved(
    operations: Sequence[Operation], start: int, end: int, joint: set[str], sites: Mapping[Value, Sites]
) -> list[Operation] | None:
    """The values that the adjoint of a call needs before the call, and their operations; None if impossible."""
    call, adjoint = operations[start], operations[end]
    assert isinstance(call, Call) and isinstance(adjoint, Call)
    count = len(call.args)
    if adjoint.args[:count] != call.args:
        return None
    between = operations[start + 1 : end]
    written = _written(between, sites)
    if written & _memory(call.args, sites):
        return None
    defined = {v: o for o in between for v in o.defines()}
    needed, work = set[Operation](), list(adjoint.args[count:])
    while work:
        value = work.pop()
        if value in call.outs:
            return None
        operation = defined.get(value)
        if operation is None or operation in needed:
            continue
        if not isinstance(operation, Const | Apply | Dim | Load | Alloc | References):
            return None
        if isinstance(operation, Load) and written & _memory((operation.array,), sites):
            return None
        needed.add(operation)
        work += operation.uses()
    shadows = _memory(adjoint.args[count:], sites)
    if not all(_only_adds(o, shadows, joint, sites) for o in between if o not in needed):
        return None
    return [o for o in between if o in needed]


def _memory(values: Iterable[Value], sites: Mapping[Value, Sites]) -> Sites:
    return frozenset[Value]().union(*(sites.get(v, frozenset()) for v in values))


def _written(operations: Sequence[Operation], sites: Mapping[Value, Sites]) -> set[Value]:
    return set(written_sites(Block(tuple(operations)), dict(sites)))


def _only_adds(operation: Operation, memory: Sites, joint: set[str], sites: Mapping[Value, Sites]) -> bool:
    """Whether all that the operation does to the memory is to add to it, so that it may also do so later."""
    match operation:
        case Comment() | Dim() | View() | Transpose() | Reshape() | Part() | Alloc():
            return True
        case Store(adds=True):
            return True
        case Call() if operation.function in joint:
            reads = len(operation.args) - len(operation.writes)
            return not memory & _memory(operation.args[:reads], sites)
        case If() | Loop():
            if any(memory & sites.get(v, frozenset()) for v in operation.uses()):
                return False
            return all(_only_adds(o, memory, joint, sites) for b in operation.blocks() for o in b.operations)
    return not memory & _memory(operation.uses(), sites)
