"""Reverse mode: the operations of a program backwards, each with the adjoint of what it did.

    primal                      kept                    adjoint
    y = f(x)                    what f' reads           x_bar += f'(x) * y_bar, nothing if y_bar is zero
    a[i] = e                                            e_bar += a_bar[i]; a_bar[i] = 0
    a[i] += e                                           e_bar += a_bar[i]
    if c: A else: B             c, if it is gone        if c: A backwards else: B backwards
    for i in range(n): A        what A's adjoint reads  for i in reversed(range(n)): A backwards
    while c: A                  the number of iterations     as many iterations of A backwards
    syncthreads()                                       syncthreads()

Every block of the program has a mirror block. Adjoints of scalars are values: a mirror maps each value to its current
adjoint, a loop carries the adjoints of what it carries and of what it reads from outside, a branch joins them. An
adjoint asks for values of the forward sweep with `value`. The plan (analyses/saved_values.py) decides how each of them
is recovered. It is made from the demands of a first run.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from srcdiff.analyses.activity import Activity
from srcdiff.analyses.propagation import harmful_zeros, propagating_values
from srcdiff.analyses.saved_values import Plan
from srcdiff.analyses.selections import selected_values
from srcdiff.analyses.signs import expected_signs
from srcdiff.analyses.structure import Structure
from srcdiff.diagnostics import DifferentiationError, Problem
from srcdiff.ir.aliasing import Sites
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Barrier,
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
    References,
    Store,
    Value,
    walk,
)
from srcdiff.ir.types import INT, Array, element_type, is_complex, widest
from srcdiff.passes.accumulated_adjoints import Guard
from srcdiff.passes.adjoint_calls import AdjointCalls
from srcdiff.passes.custom_adjoints import no_formula
from srcdiff.passes.recovered_values import Mirror, MirrorLoop, Storage
from srcdiff.rules import derivative_rule
from srcdiff.rules.formula import Number, calls_functions, names_of, times, with_values

Seeds = Sequence[tuple[Value, Value | None]]
"""Results with their adjoints; None is one."""


class Adjoint(AdjointCalls):
    """Writes the reverse sweep. Without a plan it only notes which values it asks for, and where."""

    def __init__(
        self,
        structure: Structure,
        active: Activity,
        twins: dict[Value, Value],
        lists: frozenset[Value],
        restores: dict[Store, Value],
        plan: Plan | None,
        storage: dict[Value, Storage],
        callees: dict[str, Any],
        lifted: dict[Value, Value],
    ) -> None:
        super().__init__(structure, active, twins, lists, plan, storage, callees, lifted)
        self.restores = restores
        self.problems: list[Problem] = []
        self.idle: set[Operation] = set()
        """Branches that have nothing to do in reverse, found by the first run."""
        self.returned_memory: frozenset[Value] = lists
        """Memory of which loops carry the adjoints backwards: that of lists, and of what every iteration makes anew."""
        program = Function("", (), structure.top)
        self.signs, self.selected = expected_signs(program), selected_values(program)
        self.uses: dict[Value, int] = {}
        self.seeds: Seeds = ()
        self.decides = False
        """Whether the adjoints of the results are one, or one after the other is one."""

    def run(self, seeds: Seeds) -> Mirror:
        """The reverse sweep of the whole function, from the adjoints of its results; where none is given it is one."""
        self.seeds = seeds
        self.count_uses(self.structure.top)
        with self.into(self.top):
            self.take_frame(self.top)
            for value, seed in seeds:
                if not isinstance(value.type, Array):
                    self.add(self.top, value, self.builder.const(1.0) if seed is None else seed)
                elif seed is not None and self.active.memory(value):
                    self.seed_array(value, seed)
            self.reverse_block(self.top)
        if self.problems:
            raise DifferentiationError(list(dict.fromkeys(self.problems)))
        return self.top

    def seed_array(self, array: Value, seed: Value) -> None:
        """The adjoints of an array start with what is given: a copy of it, unless they have other names.

        The caller of a function that runs backwards gives what it does not need any more.
        """
        definition = self.structure.definition.get(array)
        owner = isinstance(definition, Alloc | Copy | Library | Call | None)
        owner = owner or (isinstance(definition, If) and bool(self.active.sites[array] & self.returned_memory))
        if owner and array not in self.twins and array not in self.top.adjoints and not self.belongs_to_list(array):
            self.top.adjoints[array] = seed if self.structure.is_apart else self.builder.copy(seed, self.bar(array))
        else:
            same_size = not self.belongs_to_list(array)
            self.add_elements(self.shadow(array, self.top), seed, same_size=same_size)

    def count_uses(self, block: Block) -> None:
        for operation in block.operations:
            for value in operation.uses():
                self.uses[value] = self.uses.get(value, 0) + 1
            for inner in operation.blocks():
                self.count_uses(inner)
        for value in block.yields:
            self.uses[value] = self.uses.get(value, 0) + 1

    # -- operations --------------------------------------------------------------------------------------------------

    def reverse_block(self, mirror: Mirror) -> None:
        for operation in reversed(mirror.block.operations):
            self.position = self.structure.end[operation]
            self.builder.span = operation.span
            try:
                self.reverse(operation, mirror)
            except DifferentiationError as error:
                self.problems += error.problems

    def reverse(self, operation: Operation, mirror: Mirror) -> None:
        if self.plan is not None and operation in self.plan.idle:
            return
        match operation:
            case Apply():
                self.reverse_apply(operation, mirror)
            case Load():
                self.reverse_load(operation, mirror)
            case Store():
                self.reverse_store(operation, mirror)
            case Alloc():
                self.reverse_alloc(operation, mirror)
            case Copy():
                self.reverse_copy(operation, mirror)
            case Grow():
                self.reverse_grow(operation, mirror)
            case If():
                self.reverse_if(operation, mirror)
            case Loop():
                guard = self.guard_of(operation, mirror)
                if guard is None:
                    self.reverse_loop(operation, mirror)
                else:
                    self.reverse_guarded(operation, guard, mirror)
            case Custom():
                self.reverse_custom(operation, mirror)
            case Call():
                self.reverse_call(operation, mirror)
            case Library():
                self.reverse_library(operation, mirror)
            case Barrier():
                self.builder.add(operation)

    def reverse_apply(self, operation: Apply, mirror: Mirror) -> None:
        out_bar = self.taken(operation.out, mirror)
        if out_bar is None:
            return
        rule = derivative_rule(operation.primitive)
        if rule is None:
            span = operation.span
            raise DifferentiationError([Problem("SD301", f"`{operation.primitive}` has no derivative rule", span)])
        given = {**dict(zip(rule.parameters, operation.args, strict=True)), "out": operation.out}
        if calls_functions(rule):
            rule, given = with_values(rule, given, functools.partial(self.computed, mirror))
        again = {name: functools.partial(self.value, value, mirror) for name, value in given.items()}
        names = names_of(rule, again, self.builder)
        for name, argument in zip(rule.parameters, operation.args, strict=True):
            if name in rule.refused and argument in self.active:
                raise DifferentiationError([no_formula(operation, name)])
            if name in rule.partials and argument in self.active:
                is_least = name in rule.at_least and self.signs.is_root_of_least(operation)
                formula = rule.at_least[name] if is_least else rule.partial(name, is_complex=is_complex(argument.type))
                strong = not is_least and self.is_strong(operation, name)
                amount = times(out_bar, formula, names, self.builder, strong=strong, conjugated=True)
                if amount is not None:
                    if out_bar in self.zero_unless:
                        self.zero_unless[amount] = self.zero_unless[out_bar]
                    self.add(mirror, argument, amount)
            if name in rule.by_conjugate and argument in self.active and is_complex(argument.type):
                amount = times(self.builder.apply("conjugate", out_bar), rule.by_conjugate[name], names, self.builder)
                if amount is not None:
                    self.add(mirror, argument, amount)

    def is_strong(self, operation: Apply, parameter: str) -> bool:
        """Whether the adjoint may be zero while the derivative is infinite or NaN.

        If only an argument that nobody means to be infinite makes it so, as in `k * (1.0 / d)`, the result is no number
        either, and has an adjoint of zero only if it is left out. Nor does it matter where the results are not finite.
        """
        is_singular = self.signs.is_singular(operation, parameter)
        if not is_singular and operation.out in self.selected:
            is_singular = not self.signs.partial_is_finite(operation, parameter)
        return is_singular and not self.signs.is_covered(operation, parameter, *self.ends)

    @functools.cached_property
    def ends(self) -> tuple[frozenset[Value], frozenset[Value]]:
        """The values that are infinite or NaN only if all seeded results are, and those that make them so at zero."""
        if not self.decides:
            return frozenset(), frozenset()
        sites = self.active.sites

        def sites_of(array: Value) -> Sites:
            return sites.get(array, frozenset((array,)))

        propagating = propagating_values(self.structure, sites_of, self.signs, [value for value, _ in self.seeds])
        return propagating, harmful_zeros(propagating, self.structure, self.signs)

    def computed(self, mirror: Mirror, primitive: str, args: Sequence[Value | Number]) -> Value | None:
        """A value that the program has computed in the block of the mirror, or in an enclosing one."""
        around: Mirror | None = mirror
        while around is not None:
            found = self.structure.computed.get((around.block, primitive, self.structure.told_apart(args)))
            if found is not None:
                return found
            around = around.parent
        return None

    def reverse_load(self, operation: Load, mirror: Mirror) -> None:
        out_bar = self.taken(operation.out, mirror)
        if out_bar is None or not self.active.memory(operation.array):
            return
        shadow = self.shadow(operation.array, mirror)
        indices = tuple(self.value(i, mirror) for i in operation.indices)
        with self.builder.claiming(operation.claims):
            self.builder.store(shadow, indices, out_bar, adds=True)

    def reverse_store(self, operation: Store, mirror: Mirror) -> None:
        matters = operation.value in self.active or not operation.adds
        if matters and self.active.memory(operation.array):
            shadow = self.shadow(operation.array, mirror)
            indices = tuple(self.value(i, mirror) for i in operation.indices)
            if operation.value in self.active:
                element = Value(element_type(shadow.array), self.bar(operation.value) if operation.value.name else "")
                self.builder.add(Load(element, shadow, indices, operation.claims, span=operation.span))
                adjoint = self.builder.cast(element, widest(element.type))
                if not operation.adds:
                    with self.builder.claiming(operation.claims):
                        self.builder.store(shadow, indices, self.builder.const(0.0))
                self.add(mirror, operation.value, adjoint)
            else:
                with self.builder.claiming(operation.claims):
                    self.builder.store(shadow, indices, self.builder.const(0.0))
        if operation in self.restores:
            array = self.value(operation.array, mirror)
            indices = tuple(self.value(i, mirror) for i in operation.indices)
            before = self.value(self.restores[operation], mirror)
            with self.builder.claiming(operation.claims):
                self.builder.store(array, indices, before)

    def reverse_alloc(self, operation: Alloc, mirror: Mirror) -> None:
        fill = operation.fill
        if fill is None or fill not in self.active or not self.active.memory(operation.out):
            self.taken(operation.out, mirror)
            return
        shadow = self.shadow(operation.out, mirror)
        self.taken(operation.out, mirror)
        total = self.sum_of(shadow)
        self.add(mirror, fill, total)

    def reverse_copy(self, operation: Copy, mirror: Mirror) -> None:
        if not self.active.memory(operation.out) or not self.active.memory(operation.array):
            self.taken(operation.out, mirror)
            return
        source, home = operation.array, self.structure.home.get(operation.array, self.structure.top)
        owned = operation.out not in self.twins and source not in self.twins
        if (
            owned
            and self.uses[source] == 1
            and home is mirror.block
            and source not in mirror.adjoints
            and self.structure.definition.get(source) is None
        ):
            mirror.adjoints[source] = self.shadow(operation.out, mirror)  # nothing else adds to it, so it is passed on
            return
        target, shadow = self.shadow(source, mirror), self.shadow(operation.out, mirror)
        self.taken(operation.out, mirror)
        self.add_elements(target, shadow, same_size=not self.belongs_to_list(source))

    def reverse_grow(self, operation: Grow, mirror: Mirror) -> None:
        """The elements of the old storage live on in the new one, and so do their adjoints."""
        if not self.active.memory(operation.out):
            return
        shadow = self.shadow(operation.out, mirror)
        self.taken(operation.out, mirror)
        self.hand_back(operation.array, shadow, mirror)

    # -- branches ----------------------------------------------------------------------------------------------------

    def reverse_if(self, operation: If, mirror: Mirror) -> None:
        outs = [(k, out, self.taken(out, mirror)) for k, out in enumerate(operation.outs)]
        sides: list[Mirror] = []
        for block in (operation.then, operation.orelse):
            side = Mirror(block, mirror)
            with self.into(side):
                self.take_frame(side)
                for k, out, out_bar in outs:
                    if out_bar is None:
                        continue
                    source = block.yields[k]
                    if isinstance(out.type, Array):
                        self.start_with(source, out_bar, side)
                    elif out in self.active:
                        self.add(side, source, out_bar)
                self.reverse_block(side)
            sides.append(side)
        self.position = self.structure.end[operation]
        if not self.outliving(sides) and not any(side.operations for side in sides):
            self.idle.add(operation)
            return
        self.join(operation.condition, operation, sides, mirror)

    def outliving(self, sides: list[Mirror]) -> list[Value]:
        return [v for v in {**sides[0].adjoints, **sides[1].adjoints} if self.outlives(v, sides)]

    def join(self, condition: Value, operation: Operation, sides: list[Mirror], mirror: Mirror) -> None:
        """A branch of the reverse sweep, with the adjoints that its sides have added to."""
        is_first = self.value(condition, mirror)
        yields: tuple[list[Value], list[Value]] = ([], [])
        joined: list[Value] = []
        changed = self.outliving(sides)
        for value in changed:
            before = self.current(mirror, value)
            joined.append(Value(self.adjoint_type(value), self.bar(value)))
            for side, into in zip(sides, yields, strict=True):
                with self.into(side):
                    into.append(self.side_adjoint(value, side, before, mirror))
            changing = [k for k, side in enumerate(sides) if value in side.adjoints]
            if before is None and len(changing) == 1:
                self.zero_unless[joined[-1]] = Guard(condition, changing[0])
        blocks = [Block(tuple(s.operations), tuple(y)) for s, y in zip(sides, yields, strict=True)]
        self.builder.span = operation.span
        self.builder.branch(is_first, blocks[0], blocks[1], tuple(joined))
        mirror.adjoints.update(zip(changed, joined, strict=True))

    # -- what only one side of a branch uses ------------------------------------------------------------------------

    def guard_of(self, operation: Loop, mirror: Mirror) -> Guard | None:
        """The branch whose one side alone uses what a loop gives, if nothing else of the loop matters in reverse."""
        bars = [mirror.adjoints[out] for out in operation.outs if out in mirror.adjoints]
        guards = {self.zero_unless.get(b) for b in bars}
        guard = guards.pop() if len(guards) == 1 else None
        if guard is None or any(isinstance(p.type, Array) for p in operation.params):
            return None
        return guard if all(self.is_skipped_unnoticed(o) for o in (operation, *walk(operation.body))) else None

    def is_skipped_unnoticed(self, operation: Operation) -> bool:
        """Whether the reverse sweep may leave it out where its adjoint is zero: it undoes nothing, pops nothing."""
        kept = [self.storage.get(v) for v in (*operation.defines(), *operation.inner())]
        if any(storage is not None and storage.loops is None for storage in kept):
            return False
        if any(block in self.frames for block in operation.blocks()):
            return False
        return isinstance(operation, Apply | Const | Dim | If | Load | Loop | References)

    def reverse_guarded(self, operation: Loop, guard: Guard, mirror: Mirror) -> None:
        """The reverse of a loop, on one side of a branch."""
        sides = [Mirror(Block(), mirror), Mirror(Block(), mirror)]
        inside = sides[guard.side]
        inside.adjoints.update({out: bar for out in operation.outs if (bar := self.taken(out, mirror)) is not None})
        with self.into(inside):
            self.reverse_loop(operation, inside)
        if inside.operations or self.outliving(sides):
            self.join(guard.condition, operation, sides, mirror)

    def outlives(self, value: Value, sides: list[Mirror]) -> bool:
        """Whether the value is at home outside of the branch, so that its adjoint goes on."""
        home = self.structure.home.get(value, self.structure.top)
        is_view = isinstance(self.structure.definition.get(value), References)
        return all(home is not side.block for side in sides) and not is_view

    def side_adjoint(self, value: Value, side: Mirror, before: Value | None, mirror: Mirror) -> Value:
        found = side.adjoints.get(value, before)
        if found is not None:
            return found
        if isinstance(value.type, Array):
            return self.zeros(value, mirror)
        return self.builder.zero(value.type)

    # -- loops -------------------------------------------------------------------------------------------------------

    def name_of_index(self, loop: Loop) -> str:
        """The user's name, where the index takes the same values; else it counts the iterations."""
        if loop.index is None or loop.bounds is None:
            return "iteration"
        start, _, step = (self.structure.constants.get(b) for b in loop.bounds)
        return loop.index.name if loop.counted or (start, step) == (0, 1) else "iteration"

    def reverse_loop(self, operation: Loop, mirror: Mirror) -> None:
        index = Value(INT, self.name_of_index(operation))
        inner = Mirror(operation.body, mirror, MirrorLoop(operation, index))
        assert inner.loop is not None
        slots = [k for k in range(len(operation.params)) if self.carries_adjoint(operation, k)]
        params: list[Value] = []
        inits: list[Value] = []
        seeds = {k: self.taken(operation.outs[k], mirror) for k in slots}
        with self.into(inner):
            self.take_frame(inner)
            for k in slots:
                source = operation.body.yields[k]
                carried = Value(self.adjoint_type(source), self.bar(operation.params[k]))
                params.append(carried)
                if isinstance(source.type, Array):
                    self.start_with(source, carried, inner)
                else:
                    self.add(inner, source, carried)
            self.reverse_block(inner)
            self.position = self.structure.end[operation]
            yields = [self.next_adjoint(operation, k, inner) for k in slots]
        idle = all(y is p for y, p in zip(yields, params, strict=True))
        if not inner.operations and not inner.loop.captured and idle:
            for k in slots:
                seed = seeds[k]
                if seed is not None:
                    self.give_back(operation.inits[k], seed, mirror)
            return
        self.builder.span = operation.span
        for k in slots:
            seed = seeds[k]
            if seed is None:
                out = operation.outs[k]
                seed = self.zeros(out, mirror) if isinstance(out.type, Array) else self.builder.zero(out.type)
            inits.append(seed)
        self.finish_loop(operation, mirror, inner, slots, params, inits, yields)

    def carries_adjoint(self, operation: Loop, k: int) -> bool:
        param = operation.params[k]
        if isinstance(param.type, Array):
            return bool(self.active.sites.get(param, frozenset()) & self.returned_memory) and self.active.memory(param)
        return param in self.active or operation.outs[k] in self.active

    def next_adjoint(self, operation: Loop, k: int, inner: Mirror) -> Value:
        param = operation.params[k]
        found = inner.adjoints.get(param)
        if found is not None:
            return found
        return self.zeros(param, inner) if isinstance(param.type, Array) else self.builder.zero(param.type)

    def give_back(self, value: Value, adjoint: Value, mirror: Mirror) -> None:
        if isinstance(value.type, Array):
            self.hand_back(value, adjoint, mirror)
        else:
            self.add(mirror, value, adjoint)

    def finish_loop(
        self,
        operation: Loop,
        mirror: Mirror,
        inner: Mirror,
        slots: list[int],
        params: list[Value],
        inits: list[Value],
        yields: list[Value],
    ) -> None:
        loop = inner.loop
        assert loop is not None
        done: list[int] = []
        restored: list[tuple[Value, Value, Value]] = []
        while len(done) < len(loop.restored):  # having a parameter again may ask for another yielded value
            for k in sorted(loop.restored.keys() - set(done)):
                done.append(k)
                with self.into(inner):
                    before = self.value(operation.params[k], inner)
                restored.append((loop.restored[k], self.value(operation.outs[k], mirror), before))
        captured = list(loop.captured.items())
        for value, param in captured:
            params.append(param)
            before_loop = self.current(mirror, value)
            if before_loop is None:
                is_array = isinstance(value.type, Array)
                before_loop = self.zeros(value, mirror) if is_array else self.builder.zero(value.type)
            inits.append(before_loop)
            yields.append(inner.adjoints[value])
        for param, init, next_value in restored:
            params.append(param)
            inits.append(init)
            yields.append(next_value)
        outs = [Value(p.type, p.name) for p in params]
        bounds = self.backwards(operation, mirror)
        body = Block(tuple(inner.operations), tuple(yields))
        given = loop.index, bounds, tuple(params), tuple(inits), None, body, tuple(outs)
        self.builder.add(Loop(*given, claims=operation.claims, span=operation.span))
        for (value, _), out in zip(captured, outs[len(slots) :], strict=False):
            mirror.adjoints[value] = out
        for k, out in zip(done, outs[len(slots) + len(captured) :], strict=True):
            start = operation.inits[k]
            if isinstance(start.type, Array) and self.is_home(mirror, start):
                mirror.known[start] = out  # the loop has come back to it, and to nothing else that it carries
        for k, out in zip(slots, outs, strict=False):  # last: what a loop starts from may also be captured by it
            self.give_back(operation.inits[k], out, mirror)

    def backwards(self, operation: Loop, mirror: Mirror) -> tuple[Value, Value, Value]:
        """The loop's range in reverse."""
        build = self.builder
        minus_one, one = build.const(-1), build.const(1)
        if not operation.counted:
            assert operation.count is not None
            count = self.value(operation.count, mirror)
            return build.apply("subtract", count, one), minus_one, minus_one
        assert operation.bounds is not None
        start, stop, step = (self.value(b, mirror) for b in operation.bounds)
        known = build.constants.get(step)
        if known in (1, -1):
            return build.apply("subtract", stop, step), build.apply("subtract", start, step), build.const(-known)
        length = build.apply("range_length", start, stop, step)
        last = build.apply("multiply", build.apply("subtract", length, one), step)
        return build.apply("add", start, last), build.apply("subtract", start, step), build.apply("negative", step)
