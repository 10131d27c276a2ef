"""Adjoints of calls: by declared rules, by adjoint functions, and by pairs of functions that keep values on stacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srcdiff.analyses.activity import Activity
from srcdiff.analyses.saved_values import Plan
from srcdiff.analyses.structure import Structure
from srcdiff.diagnostics import DifferentiationError
from srcdiff.ir.nodes import Alloc, Call, Comment, Custom, Library, Slice, Value
from srcdiff.ir.types import Array, Scalar, is_inexact, widest
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.passes.accumulated_adjoints import AccumulatedAdjoints
from srcdiff.passes.call_pairs import Pair, has_shadow
from srcdiff.passes.custom_adjoints import adjoint_values, named, reads_parameters, require_shape, without_rule
from srcdiff.passes.recovered_values import Mirror, Storage


class AdjointCalls(AccumulatedAdjoints):
    """Writes the adjoints of calls."""

    def __init__(
        self,
        structure: Structure,
        active: Activity,
        twins: dict[Value, Value],
        lists: frozenset[Value],
        plan: Plan | None,
        storage: dict[Value, Storage],
        callees: dict[str, Any],
        lifted: dict[Value, Value],
    ) -> None:
        super().__init__(structure, active, twins, lists, plan, storage, lifted)
        self.callees = callees
        self.pairs: Mapping[str, Pair] = {}
        self.copies: dict[Call, list[tuple[Value, Value]]] = {}
        """For calls that run again, what they write into, and its copies from before."""

    def reverse_custom(self, operation: Custom, mirror: Mirror) -> None:
        self.reverse_by_rule(operation, operation.rule, mirror)

    def reverse_library(self, operation: Library, mirror: Mirror) -> None:
        active = [self.is_active(out) for out in operation.outs]
        self.reverse_by_rule(operation, LIBRARY[operation.function].for_results(active), mirror)

    def reverse_by_rule(self, operation: Custom | Library, rule: Any, mirror: Mirror) -> None:
        """The adjoint is a function of its own, written into the reverse sweep."""
        if not any(self.is_active(o) for o in operation.outs) or not any(self.is_active(a) for a in operation.args):
            for out in operation.outs:
                self.taken(out, mirror)
            return
        if rule.adjoint is None and rule.tangent is None:
            raise DifferentiationError([without_rule(rule, len(operation.args), operation.span)])
        seeds: list[Value] = []
        for out in operation.outs:
            if isinstance(out.type, Array) and not is_inexact(out.type):
                seeds.append(Value(out.type))  # integers have no adjoints, and rules read none
            elif isinstance(out.type, Array):
                seeds.append(self.shadow(out, mirror))
                self.taken(out, mirror)
            else:
                out_bar = self.taken(out, mirror)
                seeds.append(self.builder.zero(out.type) if out_bar is None else out_bar)
        given = (*operation.args, *operation.outs)
        known = [
            self.value(v, mirror) if read else Value(v.type)  # the others are not read
            for v, read in zip(given, reads_parameters(rule.adjoint or rule.tangent, len(given)), strict=True)
        ]
        args, outs = known[: len(operation.args)], known[len(operation.args) :]
        results = adjoint_values(rule, self.builder, args, outs, seeds, operation.span)
        for argument, result in zip(operation.args, results, strict=True):
            if result is not None and self.is_active(argument):
                if isinstance(argument.type, Array):
                    shadow = self.shadow(argument, mirror)
                    if isinstance(operation, Custom) and rule.adjoint is not None:
                        require_shape(result, shadow, named(rule.adjoint), self.builder, operation.span)
                    self.add_result(shadow, result, operation)
                else:
                    self.add(mirror, argument, result)

    def reverse_call(self, operation: Call, mirror: Mirror) -> None:
        pair = self.pairs.get(operation.function)
        if pair is not None:
            self.reverse_pair(operation, pair, mirror)
            return
        writes = any(map(self.has_memory, operation.written))
        counts = [out in mirror.adjoints or self.has_memory(out) for out in operation.outs]
        if not writes and not any(counts):
            for array, before in self.copies.get(operation, ()):
                self.put_back(array, before, mirror)
            return
        seeds = [self.seed_of(out, operation, mirror) for out in operation.outs if is_inexact(out.type)]
        args = [self.value(a, mirror) for a in operation.args]
        callee = self.callees[operation.function]
        shadows, apart = self.shadows_of_arguments([a for a in operation.args if callee.has_shadow(a)], mirror)
        outs = [Value(widest(a.type)) for a in operation.args if isinstance(a.type, Scalar) and is_inexact(a.type)]
        for array, before in self.copies.get(operation, ()):
            self.put_back(array, before, mirror)
        given = (*args, *seeds, *shadows)
        written = (*operation.writes, *range(len(given) - len(shadows), len(given)))
        results = [Value(out.type, out.name) for out in operation.outs] if callee.gives_results else []
        self.builder.add(Call((*results, *outs), callee.name, given, written, span=operation.span))
        for array, before in self.copies.get(operation, ()):
            self.put_back(array, before, mirror)
        for array, shadow in apart:
            self.add_elements(self.shadow(array, mirror), shadow, same_size=not self.belongs_to_list(array))
        floats = [a for a in operation.args if not isinstance(a.type, Array) and is_inexact(a.type)]
        for argument, amount in zip(floats, outs, strict=True):
            if argument in self.active:
                self.add(mirror, argument, amount)

    def reverse_pair(self, operation: Call, pair: Pair, mirror: Mirror) -> None:
        """Call the function that takes off the stacks what the call has put there; it restores what that has written.

        If nobody needs the adjoint, it adds to memory that is forgotten.
        """
        own = operation.args[: len(operation.args) - len(pair.stacks)]
        counts = any(map(self.has_memory, operation.written))
        counts = counts or any(out in mirror.adjoints or self.has_memory(out) for out in operation.outs)
        seeds = [self.seed_of(out, operation, mirror) for out in operation.outs if is_inexact(out.type)]
        given = [self.value(own[k], mirror) for k in pair.takes]
        arrays = [a for a in own if has_shadow(a)]
        shadows, apart = self.shadows_of_arguments(arrays, mirror) if counts else ([], [])
        shadows = shadows or [self.new_shadow(a, mirror) for a in arrays]
        floats = [a for a in own if is_inexact(a.type) and not isinstance(a.type, Array)]
        outs = [Value(widest(a.type)) for a in floats]
        args = (*given, *seeds, *shadows, *operation.args[len(own) :])
        restored = [place for place, k in enumerate(pair.takes) if k in pair.restores]
        taken = [place for place, seed in enumerate(seeds, len(given)) if isinstance(seed.type, Array)]
        written = (*restored, *taken, *range(len(given) + len(seeds), len(args)))
        self.builder.add(Call(tuple(outs), pair.reverse, args, written, span=operation.span))
        if counts:
            for array, shadow in apart:
                self.add_elements(self.shadow(array, mirror), shadow, same_size=not self.belongs_to_list(array))
            for argument, amount in zip(floats, outs, strict=True):
                if argument in self.active:
                    self.add(mirror, argument, amount)

    def shadows_of_arguments(
        self, arrays: list[Value], mirror: Mirror
    ) -> tuple[list[Value], list[tuple[Value, Value]]]:
        """The adjoints that a call adds to: of arrays that may share memory, those of the first, and new ones."""
        shadows: list[Value] = []
        apart: list[tuple[Value, Value]] = []
        seen: set[Value] = set()
        for array in arrays:
            memory = self.active.sites.get(array, frozenset((array,)))
            if memory & seen and self.active.memory(array):
                shadows.append(self.new_shadow(array, mirror))
                apart.append((array, shadows[-1]))
            else:
                shadows.append(self.shadow_of_argument(array, mirror))
            seen |= memory
        return shadows, apart

    def seed_of(self, out: Value, operation: Call, mirror: Mirror) -> Value:
        """The finished adjoint of what a call gives; of a list that has grown since, as much as the list had then.

        Where a loop hands it on to the call, the adjoint is copied: the adjoint of the call shares no memory with it.
        """
        if not isinstance(out.type, Array):
            found = self.taken(out, mirror)
            return self.builder.zero(out.type) if found is None else found
        if not self.active.memory(out):
            return self.zeros(out, mirror)
        shadow = self.shadow(out, mirror)
        self.taken(out, mirror)
        if any(out in self.active.sites.get(a, ()) for a in operation.args):
            shadow = self.builder.copy(shadow, shadow.name)
        if not self.belongs_to_list(out):
            return shadow
        return self.builder.view(shadow, (Slice(None, self.length(out, 0, mirror), None),), shadow.name)

    def put_back(self, array: Value, before: Value, mirror: Mirror) -> None:
        """The array as it was before the call: the adjoint of the call runs it again."""
        target, source = self.value(array, mirror), self.value(before, mirror)
        self.builder.add(Comment("as it was before the call"))
        self.for_elements(target, source, adds=False, same_size=True)

    def shadow_of_argument(self, array: Value, mirror: Mirror) -> Value:
        return self.shadow(array, mirror) if self.active.memory(array) else self.new_shadow(array, mirror)

    def new_shadow(self, array: Value, mirror: Mirror) -> Value:
        zero = self.builder.const(0.0)
        out = Value(array.type, self.bar(array))
        self.builder.add(Alloc(out, (), zero, self.value(array, mirror)))
        return out
