"""Recursive functions: each becomes a function of the program, one for each set of argument types.

Variables that a nested function reads from enclosing functions become further arguments, and those that it assigns
there (`nonlocal`) further results:

    def outer(x):                               def f(n, x):
        def f(n):                                   return 1.0 if n == 0 else x * f(n - 1, x)
            return 1.0 if n == 0 else x * f(n - 1)
        return f(3)                             def outer(x):
                                                    return f(3, x)

So do the lists that it changes: it works on copies, which then replace them.

    def visit(k, out):                          def visit(k, out, length):
        if k > 0:                                   out = out.copy()
            visit(k - 1, out)                       if k > 0: out, length = visit(k - 1, out.copy(), length)
        out.append(k)                               ...
                                                    return out, length

What it returns is new: arrays and lists that Python would return as they are, are copied (see sameness.py).
"""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.frontend.abstract_values import (
    Abstract,
    Choice,
    Closure,
    Group,
    Items,
    List,
    Maybe,
    Poison,
    Record,
    Static,
    Stored,
    Tuple,
    describe,
    holds_lists,
    join,
    leaf_types,
    loosened,
)
from srcdiff.frontend.aliases import Sameness, lists_in, owned_in, storage_in
from srcdiff.frontend.environment import LISTS, Frame, Key, NeverReturns, UnknownResult, handles, list_key, mentioned
from srcdiff.frontend.scopes import free_names, nonlocal_names
from srcdiff.frontend.shapes import ANYTHING, may_meet
from srcdiff.ir.aliasing import Sites, points_to, written_sites
from srcdiff.ir.nodes import Block, Call, Copy, Function, Grow, Operation, Store, Value, walk
from srcdiff.ir.primitives import BROUGHT_ALONG
from srcdiff.ir.types import Array, Stack, is_float
from srcdiff.signature.descriptions import Description

Place = str | Key
"""Where a recursive function has a list from: an argument, or a name or a list of the functions around it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a recursive function gives and does."""

    result: Description
    changed: dict[Key, Description] = field(default_factory=dict)
    """Names of enclosing functions that it assigns."""
    lists: dict[Place, Description] = field(default_factory=dict)
    """Lists that it is given and changes, as it leaves them."""
    written: frozenset[int] = frozenset()
    """The parameters that are arrays it writes into."""
    shares: tuple[frozenset[Hashable], ...] = ()
    """For each array it gives, what that may be in Python: parameters and earlier results, by number, and others."""
    same: tuple[frozenset[Place | int], ...] = ()
    """For each list it gives, which of the given ones that may be in Python, or which of the earlier results."""

    @property
    def gives(self) -> Description:
        """All that comes back."""
        lists = (Description("owned", None, (d,)) for d in self.lists.values())
        return Description("tuple", None, (self.result, *self.changed.values(), *lists))

    @property
    def new_lists(self) -> int:
        """How many lists it gives beside those that it is given."""
        return sum(owned_in(d) for d in (self.result, *self.changed.values()))


@dataclass(slots=True)
class Unit:
    """A recursive function at certain argument types."""

    name: str
    params: tuple[Value, ...] = ()
    outcome: Outcome | None = None
    function: Function | None = None
    problems: tuple[Problem, ...] = ()
    """What is wrong with it: to be said by everyone who calls it, also where somebody was not listened to before."""


class Recursion(Sameness):
    """Reads recursive functions."""

    def __init__(self) -> None:
        super().__init__()
        self.units: dict[Any, Unit] = {}
        self.unknown: set[str] = set()
        """Recursive functions that were called before the type of their result was known."""
        self.lent: set[Value] = set()
        """Storage of lists that a recursive function was given to read."""
        self.stands_for_list: dict[Value, frozenset[Value]] = {}
        """Storage of lists that a recursive function gave, with that of the lists they may be in Python."""
        self.unit_frame: Frame | None = None
        """The call of the recursive function that is being read."""
        self.lists_given: set[List] = set()
        self.loop_depth = 0

    def call_recursive(self, identity: Any, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Abstract:
        given = {name: self.lendable(x) for name, x in bound.items()}
        descriptions = {name: self.passed(x) for name, x in given.items()}
        for name, d in descriptions.items():
            if leaf_types(d) is None or mentioned(d):
                self.refuse("SD305", node, f"`{name}` cannot be passed to a recursive function")
        around = self.seen_around(frame, bound, node)
        surroundings = {key: self.surrounding(key, assigned) for key, assigned in around.items()}
        for d in (*descriptions.values(), *surroundings.values()):
            if any(isinstance(t, Stack) and is_float(t.element) for t in leaf_types(d) or ()):
                message = "a recursive function reads a list of float arrays, which is not supported"
                self.refuse("SD305", node, message, help_="convert it to an array outside: `np.array(...)`")
        key = (identity, tuple(descriptions.items()), tuple(surroundings.items()))
        if key not in self.units:
            self.units[key] = Unit(self.unit_name(frame.name))
            before, self.problems = self.problems, []
            try:
                self.read_unit(self.units[key], frame, descriptions, surroundings, node)
                self.units[key].problems = tuple(self.problems)
            except (Refusal, NeverReturns):
                self.units.pop(key, None)
                before += [p for p in self.problems if p not in before]
                raise
            finally:
                self.problems = before
        unit = self.units[key]
        self.problems += [p for p in unit.problems if p not in self.problems]
        if unit.outcome is None:
            self.unknown.add(unit.name)
            raise UnknownResult
        if self.unknown - {unit.name} and unit not in self.units_in_progress:
            del self.units[key]  # it called one that is not known yet: it will be read again with that one
        args: list[Value] = []
        for name, x in given.items():
            args += self.passed_leaves(x, descriptions[name])
        for name_key, d in surroundings.items():
            if leaf_types(d):
                args += self.passed_leaves(self.lendable(self.names[name_key]), d)
        slots = self.slots(bound, surroundings)
        self.may_change(unit.outcome, args, slots, node)
        return self.take(unit, frame.name, args, slots)

    def passed_leaves(self, x: Abstract, d: Description) -> list[Value]:
        return self.leaves(x, d.parts[0] if d.kind == "owned" and isinstance(x, Items | Stored) else d)

    def slots(self, bound: dict[str, Abstract], surroundings: dict[Key, Description]) -> dict[Place, List]:
        """The lists that a recursive function can reach, by how it does."""
        found: dict[Place, List] = {name: x for name, x in bound.items() if isinstance(x, List)}
        known = {list_key(h): h for x in self.names.values() for h in handles(x)}
        for key, d in surroundings.items():
            x = self.names[key]
            if d.kind == "owned" and isinstance(x, List):
                found[key] = x
            elif key in known:
                found[key] = known[key]
        return found

    def may_change(self, outcome: Outcome, args: list[Value], slots: dict[Place, List], node: ast.AST) -> None:
        """Refuse a call that writes into an array, or changes a list, of which it is not known what else it is."""
        for k in sorted(outcome.written):
            self.may_write(args[k])
        for slot in (*outcome.lists, *(key for key in outcome.changed if key in slots)):
            others = set().union(*(self.perhaps(h) for s, h in slots.items() if s != slot))
            if slots[slot] in others:
                message = "a recursive function changes a list that it can reach by two names"
                self.refuse("SD305", node, message, help_="pass the list once")
            if slot in outcome.lists:
                self.changing(slots[slot], node)
                self.alone(slots[slot], node)

    def alone(self, handle: List, node: ast.AST) -> None:
        """Refuse to let a recursive function change a list that is an element of a list, or has lists in it."""
        contents = self.holding(handle)
        if self.is_row(handle) or (isinstance(contents, Stored) and holds_lists(contents.element)):
            message = "a recursive function changes a list of lists, or one of its elements"
            self.refuse("SD305", node, message, help_="use a list of numbers, or an array")

    def take(self, unit: Unit, name: str, args: list[Value], slots: dict[Place, List]) -> Abstract:
        """Call it, and put what it gives into its places."""
        outcome = unit.outcome
        assert outcome is not None
        before = {slot: self.names[list_key(handle)] for slot, handle in slots.items()}
        result, outs = self.fresh(outcome.result, name)
        lists = lists_in(result, outcome.result)
        for key, d in outcome.changed.items():
            self.names[key], values = self.fresh(d, key[1])
            outs += values
            lists += lists_in(self.names[key], d)
        for slot, d in outcome.lists.items():
            self.names[list_key(slots[slot])], values = self.fresh(d, "items")
            outs += values
        self.add(Call(tuple(outs), unit.name, tuple(args), span=self.span))
        self.note_arrays(outcome, outs, args)
        self.note_lists(outcome, lists, slots, before)
        return result

    def note_arrays(self, outcome: Outcome, outs: list[Value], args: list[Value]) -> None:
        """Remember that the arrays it gives are new, and what each of them may be in Python."""
        arrays = [v for v, number in zip(outs, storage_in(outcome.gives), strict=True) if number < 0 and is_array(v)]
        for array in arrays:
            self.made(array, tuple(("d", array, axis) for axis in range(array.array.rank)))
            self.contiguous.discard(array)
        origins: dict[Hashable, frozenset[Hashable]] = {
            k: self.all_origins(a) for k, a in enumerate(args) if is_array(a)
        }
        origins |= {-1 - k: self.origins_of(array) for k, array in enumerate(arrays)}
        for array, shares in zip(arrays, outcome.shares, strict=True):
            for other in sorted(shares, key=str):
                memory = origins.get(other, frozenset((other,)))
                passed = args[other] if isinstance(other, int) and other >= 0 else None
                self.may_share(array, memory, passed)

    def note_lists(
        self, outcome: Outcome, lists: list[List], slots: dict[Place, List], before: dict[Place, Abstract]
    ) -> None:
        """Remember which lists the ones it gives may be in Python."""
        for handle, same in zip(lists, outcome.same, strict=True):
            contents, memory = self.names[list_key(handle)], set[Value]()
            for other in same:
                if not isinstance(other, int) and self.is_row(slots[other]):
                    message = "a recursive function may return an argument that is an element of another list"
                    self.refuse("SD305", None, message, help_="pass a copy: `list(...)`")
                self.may_be_same(handle, lists[other] if isinstance(other, int) else slots[other])
                was = None if isinstance(other, int) else before[other]
                memory |= set(was.arrays) if isinstance(was, Stored) else set()
            if isinstance(contents, Stored):
                self.stands_for_list |= dict.fromkeys(contents.arrays, frozenset(memory))

    def unit_name(self, name: str) -> str:
        """A name for it in the generated module, where it must not stand in the way of what the code there calls."""
        units = {u.name for u in self.units.values()}
        derived = {f"{u}{ending}" for u in units for ending in _DERIVED}
        taken = {*_TAKEN, *units, *derived, *(u.removesuffix(ending) for u in units for ending in _DERIVED)}
        name = "function" if keyword.iskeyword(name) else name
        number = 0
        while (found := f"{name}_{number}" if number else name) in taken:
            number += 1
        return found

    # -- what it is given --------------------------------------------------------------------------------------------

    def lendable(self, x: Abstract) -> Abstract:
        """A list as something that may be read elsewhere while it changes here: a copy, but for those lent to us."""
        contents = self.holding(x) if isinstance(x, List) else x
        if isinstance(contents, Stored) and not any(isinstance(a.type, Stack) for a in contents.arrays):
            if contents.at:
                return self.copied_row(contents)
            if not set(contents.arrays) <= self.lent:
                copies = tuple(self.copy(a) for a in contents.arrays)
                contents = Stored(contents.element, copies, contents.length)
            return contents
        return contents if isinstance(contents, Items) else x

    def kind_of(self, x: Abstract) -> Description:
        contents = self.names.get(list_key(x)) if isinstance(x, List) else x
        known = isinstance(contents, Items) and all(isinstance(i, Value | Static) for i in contents.items)
        return self.passed(contents) if known and isinstance(contents, Items) else loosened(describe(x))

    def passed(self, x: Abstract) -> Description:
        """How an argument is described: numbers by their type, lists by what they hold."""
        if not isinstance(x, Items | Stored):
            return loosened(describe(x))
        contents = describe(x) if isinstance(x, Stored) else self.as_stored(x)
        return Description("owned", None, (contents,))

    @staticmethod
    def as_stored(x: Items) -> Description:
        if not x.items:
            return describe(x)
        element = loosened(describe(x.items[0]))
        for item in x.items[1:]:
            element = join(element, loosened(describe(item)))
        return Description("stored", None, (element,))

    def seen_around(self, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> dict[Key, bool]:
        """The names of enclosing functions that it can reach, and whether it may assign them."""
        found: dict[Key, bool] = {}
        functions: list[tuple[ast.AST, Frame | None]] = [(frame.node, frame.parent)]
        seen: set[tuple[ast.AST, Frame | None]] = set()
        functions += [(c.node, c.frame) for x in bound.values() for c in self.closures(x)]
        while functions:
            function = functions.pop()
            if function in seen:
                continue
            seen.add(function)
            for key, assigned in self.free_names(*function):
                found[key] = found.get(key, False) or assigned
                functions += [(c.node, c.frame) for c in self.closures(self.names[key])]
        own = {key: x for key, assigned in found.items() if assigned and isinstance(x := self.names[key], List)}
        lists = {list_key(h): False for key in found.keys() - own.keys() for h in handles(self.names[key])}
        for key, handle in own.items():
            if any(handle in handles(x) for k, x in self.names.items() if k != key):
                message = (
                    f"`{key[1]}` is assigned in a recursive function and refers to a list that has another name too"
                )
                self.refuse("SD305", node, message, help_=f"make a copy: `{key[1]} = list({key[1]})`")
        return dict(sorted({**found, **lists}.items()))

    def free_names(self, node: ast.AST, parent: Frame | None) -> Iterator[tuple[Key, bool]]:
        read = set(free_names(node))
        inner = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.Lambda)]
        assigned = frozenset().union(*(nonlocal_names(n) for n in inner))
        while parent is not None:
            for name in sorted((read | assigned) & parent.locals):
                if (parent.number, name) in self.names:
                    yield (parent.number, name), name in assigned
            read = read - parent.locals
            assigned = (assigned - parent.locals) | (assigned & parent.nonlocals)
            parent = parent.parent

    def closures(self, x: Abstract) -> Iterator[Closure]:
        match x:
            case Closure():
                yield x
                for default in x.defaults.values():
                    yield from self.closures(default)
            case Choice():
                for option in x.options:
                    yield from self.closures(option)
            case Tuple() | Record() | Items():
                for item in x.items:
                    yield from self.closures(item)
            case Maybe():
                yield from self.closures(x.value)
            case List():
                yield from self.closures(self.holding(x))

    def surrounding(self, key: Key, assigned: bool) -> Description:
        """How a name of an enclosing function is passed: constants stay constants unless somebody assigns them."""
        x = self.names[key]
        if assigned and isinstance(x, List):
            contents = self.names[list_key(x)]
            inner = self.as_stored(contents) if isinstance(contents, Items) else describe(contents)
            return Description("owned", None, (inner,))
        if isinstance(x, Items | Stored):
            return self.as_stored(x) if isinstance(x, Items) else describe(x)
        return loosened(describe(x)) if assigned else describe(x)

    # -- its body ----------------------------------------------------------------------------------------------------

    def read_unit(
        self,
        unit: Unit,
        frame: Frame,
        descriptions: dict[str, Description],
        surroundings: dict[Key, Description],
        node: ast.AST,
    ) -> None:
        outer = (self.names, self.frame, self.span, self.path, self.active_calls, self.loop_depth, self.lent)
        known, unsure = dict(self.units), (self.doubts, self.same_lists, self.made_here)
        around = self.unit_frame, self.lists_given
        unknown_before = self.unknown
        self.units_in_progress.append(unit)
        try:
            for _ in range(_MOST_READINGS):
                self.unknown, self.span, self.units = set(), outer[2], dict(known)
                if self.read_unit_once(unit, frame, descriptions, surroundings, node) and unit.name not in self.unknown:
                    return
            self.refuse(
                "SD305", node, f"the type of the result of the recursive function `{frame.name}` grows with every call"
            )
        finally:
            self.units_in_progress.pop()
            self.unknown = unknown_before | (self.unknown - {unit.name})
            self.names, self.frame, self.span, self.path, self.active_calls, self.loop_depth, self.lent = outer
            self.doubts, self.same_lists, self.made_here = unsure
            self.unit_frame, self.lists_given = around

    def read_unit_once(
        self,
        unit: Unit,
        like: Frame,
        descriptions: dict[str, Description],
        surroundings: dict[Key, Description],
        node: ast.AST,
    ) -> bool:
        """Read the function; true if what it gives is what was assumed."""
        calling_span, calling_frame, early = self.span, self.frame, len(self.early)
        self.names, self.active_calls, self.lent = {}, [], set()
        self.doubts, self.same_lists = set(), frozenset()
        self.frame = like.again()
        params: list[Value] = []
        for name, d in descriptions.items():
            params += self.receive((self.frame.number, name), d, node)
        for key, d in surroundings.items():
            params += self.receive(key, d, node)
        unit.params = tuple(params)
        bound = {name: self.names[self.frame.number, name] for name in descriptions}
        slots = self.slots(bound, surroundings)
        self.unit_frame, self.lists_given = self.frame, set(slots.values())
        with self.block() as operations:
            self.copy_lists(slots, unit.outcome)
            given = dict(self.names)
            try:
                result: Abstract = self.run_body(like.node)
                self.settle()
            except NeverReturns:
                self.frame, self.span = calling_frame, calling_span
                if len(self.early) > early:
                    raise  # what it needs is made by a later iteration of the loop that calls it
                self.refuse("SD305", node, f"`{like.name}` never returns without calling itself")
            if isinstance(result, Poison):
                raise Refusal(result.problem)
            outcome, gives = self.outcome(result, given, slots, operations, unit.outcome)
            yields = [v for x, d in gives for v in self.passed_leaves(x, d)]
        unit.function = Function(unit.name, unit.params, Block(tuple(operations), tuple(yields)))
        outcome = self.with_effects(unit.function, outcome, given, slots)
        stable, unit.outcome = outcome == unit.outcome, outcome
        return stable

    def copy_lists(self, slots: dict[Place, List], outcome: Outcome | None) -> None:
        """The lists that it changes are its own from the start."""
        changed = {*outcome.lists, *outcome.changed} if outcome is not None else set()
        for slot in slots:
            contents = self.names[list_key(slots[slot])]
            if slot in changed and isinstance(contents, Stored) and not holds_arrays(contents):
                copies = tuple(self.copy(a) for a in contents.arrays)
                self.storage.update(copies)
                self.names[list_key(slots[slot])] = Stored(contents.element, copies, contents.length)

    def returned(self, x: Abstract, node: ast.AST) -> Abstract:
        """What is returned: from a recursive function, a copy of a list that others have too."""
        if isinstance(x, Group):
            return x.remade(self.returned(i, node) for i in x.items)
        if self.frame is not self.unit_frame or not isinstance(x, List):
            return x
        others = [y for k, y in self.names.items() if k[0] != self.frame.number]
        if x not in self.lists_given and not any(x in handles(y) for y in others):
            return x
        contents, copied = self.names[list_key(x)], self.list_copy(node, x)
        assert isinstance(copied, List)
        copies = self.names[list_key(copied)]
        if isinstance(contents, Stored) and isinstance(copies, Stored):
            self.stands_for_list |= dict.fromkeys(copies.arrays, frozenset(contents.arrays))
        return copied

    # -- what it gives -----------------------------------------------------------------------------------------------

    def outcome(
        self,
        result: Abstract,
        given: dict[Key, Abstract],
        slots: dict[Place, List],
        operations: list[Operation],
        assumed: Outcome | None,
    ) -> tuple[Outcome, list[tuple[Abstract, Description]]]:
        """What it gives: its result, the names that it has assigned, and the lists that it has changed."""
        if isinstance(result, Group):
            result = result.remade(map(self.forced, result.items))
        before = assumed or Outcome(self.handed(result, "what it returns"))
        found = widened(before.result, self.handed(result, "what it returns"))
        changed = dict(before.changed)
        for key, x in given.items():
            now = self.names.get(key, x)
            kept = now is x or (isinstance(x, Maybe) and now is x.value)
            changes = not kept or (key in slots and self.is_changed(slots[key], given, operations))
            if key[0] not in (LISTS, self.frame.number) and (changes or key in changed):
                d = self.handed(now, f"`{key[1]}`")
                changed[key] = widened(changed.get(key, d), d)
        lists = dict(before.lists)
        for slot, handle in slots.items():
            if slot not in changed and (slot in lists or self.is_changed(handle, given, operations)):
                d = self.contents_handed(self.names[list_key(handle)], "the list")
                d = widened(describe(given[list_key(handle)]), d)
                lists[slot] = widened(lists.get(slot, d), d)
        gives = [(result, found), *((self.names[key], d) for key, d in changed.items())]
        gives += [(self.names[list_key(slots[slot])], d) for slot, d in lists.items()]
        return Outcome(found, changed, lists), gives

    def handed(self, x: Abstract, what: str) -> Description:
        """How something is described that it gives: lists by what they hold."""
        if isinstance(x, List):
            return Description("owned", None, (self.contents_handed(self.names[list_key(x)], what),))
        if isinstance(x, Group):
            return describe(x).remade(self.handed(i, what) for i in x.items)
        found = loosened(describe(x))
        types = leaf_types(found)
        if types is None or mentioned(found) or found.kind == "closure" or any(isinstance(t, Stack) for t in types):
            message = f"{what} in the recursive function `{self.frame.name}` is {self.in_words(x)}"
            self.refuse("SD305", self.frame.node, message, help_=_GIVES)
        return found

    def contents_handed(self, contents: Abstract, what: str) -> Description:
        """What a list holds when it is given back: as many as are known, or any number of one kind."""
        if isinstance(contents, Items):
            return Description("items", None, tuple(self.handed_element(i, what) for i in contents.items))
        if not isinstance(contents, Stored) or holds_arrays(contents) or holds_lists(contents.element):
            message = f"{what} in the recursive function `{self.frame.name}` is a list whose elements are not numbers"
            self.refuse("SD305", self.frame.node, message, help_=_GIVES)
        return describe(contents)

    def handed_element(self, x: Abstract, what: str) -> Description:
        if handles(x):
            message = f"{what} in the recursive function `{self.frame.name}` is a list of lists"
            self.refuse("SD305", self.frame.node, message, help_=_GIVES)
        return self.handed(x, what)

    def is_changed(self, handle: List, given: dict[Key, Abstract], operations: list[Operation]) -> bool:
        """Whether a list that it was given is another now."""
        before = given[list_key(handle)]
        now = self.names.get(list_key(handle), before)
        if now is not before and now != before:
            return True
        own = before.arrays if isinstance(before, Stored) else ()
        return any(o.array in own for o in walk(Block(tuple(operations))) if isinstance(o, Store | Grow))

    def with_effects(
        self,
        function: Function,
        outcome: Outcome,
        given: dict[Key, Abstract],
        slots: dict[Place, List],
    ) -> Outcome:
        """With what can be read off the whole function: which arrays it writes, and what its results may be."""
        sites = points_to(function)
        written = self.written_by(function, sites)
        params = {p: k for k, p in enumerate(function.params)}
        flags = list(storage_in(outcome.gives))
        arrays = [v for v, n in zip(function.body.yields, flags, strict=True) if n < 0 and is_array(v)]
        memory = [self.all_origins(a) for a in arrays]
        shares: list[frozenset[Hashable]] = []
        for k, origins in enumerate(memory):
            found: set[Hashable] = {params[o] for o in origins if o in params}
            found |= {o for o in origins if o == ANYTHING or (o in self.given and o not in params)}
            found |= {-1 - j for j in range(k) if may_meet(memory[j], origins)}
            shares.append(frozenset(found))
        storage = [
            [v for v, n in zip(function.body.yields, flags, strict=True) if n == number and is_array(v)]
            for number in range(outcome.new_lists)
        ]
        same = self.same_as_given(storage, sites, given, slots)
        return replace(outcome, written=written, shares=tuple(shares), same=same)

    def written_by(self, function: Function, sites: dict[Value, Sites]) -> frozenset[int]:
        units = {u.name: u.outcome for u in self.units.values() if u.outcome is not None}
        written = written_sites(function.body, sites)
        for call in walk(function.body):
            if isinstance(call, Call):
                outcome = units.get(call.function)
                places = range(len(call.args)) if outcome is None else outcome.written
                written |= {site for k in places for site in sites.get(call.args[k], frozenset())}
        return frozenset(k for k, p in enumerate(function.params) if p in written)

    def same_as_given(
        self,
        lists: list[list[Value]],
        sites: dict[Value, Sites],
        given: dict[Key, Abstract],
        slots: dict[Place, List],
    ) -> tuple[frozenset[Place | int], ...]:
        """For each list, which of the given ones it may be: those whose storage it has, and those that have none."""
        contents = {slot: given[list_key(handle)] for slot, handle in slots.items()}
        without = {slot for slot, x in contents.items() if not isinstance(x, Stored) or not x.arrays}
        home = {a: slot for slot, x in contents.items() if isinstance(x, Stored) for a in x.arrays}
        found: list[frozenset[Place | int]] = []
        memory: list[set[Value]] = []
        for storage in lists:
            reached = {s for v in storage for s in sites.get(v, frozenset())}
            size = -1
            while size != len(reached):
                size = len(reached)
                stands_for = {a for s in reached for a in self.stands_for_list.get(s, ())}
                reached |= {s for a in stands_for for s in sites.get(a, frozenset((a,)))}
            slots_met: set[Place | int] = {*(home[s] for s in reached if s in home), *without}
            earlier = {k for k, other in enumerate(memory) if other & reached}
            found.append(frozenset(slots_met | earlier | (set(contents) if not storage else set())))
            memory.append(reached)
        return tuple(found)

    def receive(self, key: Key, d: Description, node: ast.AST) -> list[Value]:
        """A parameter for something that it is given; what cannot be passed must not be used."""
        if leaf_types(d) is None:
            what = f"`{key[1]}`" if key[0] != LISTS else "the list"
            problem = Problem("SD305", f"{what} cannot be read in a recursive function", self.span_of(node))
            self.names[key] = Poison(problem)
            return []
        self.names[key], values = self.fresh(d, key[1] if key[0] != LISTS else "items")
        arrays = {v for v in values if is_array(v)}
        if isinstance(self.names[key], List | Stored):
            self.lent |= arrays
        else:
            self.given |= arrays
        return values


_TAKEN = {"np", "math", *dir(builtins), *BROUGHT_ALONG}
_DERIVED = ("_adjoint", "_tangent", "_adjoint_inside", "_tangent_inside")
_GIVES = "use numbers, arrays, or lists of numbers or of tuples of numbers"
_MOST_READINGS = 12  # types only widen


def is_array(value: Value) -> bool:
    return isinstance(value.type, Array)


def holds_arrays(x: Stored) -> bool:
    return any(isinstance(a.type, Stack) for a in x.arrays)


def widened(a: Description, b: Description) -> Description:
    """What holds either; of two kinds of things the second, since a later reading knows more."""
    lists = {a.kind, b.kind} <= {"items", "stored"}
    found = join(a, b) if lists or a.kind == b.kind else b
    return b if leaf_types(found) is None else found


def with_own_results(function: Function) -> Function:
    """The function with copies of the arrays that it would give and that are not its own, or that it gives twice."""
    sites, taken = points_to(function), set(function.params)
    copies: list[Operation] = []
    yields: list[Value] = []
    for value in function.body.yields:
        memory = sites.get(value, frozenset())
        if is_array(value) and (not memory or memory & taken):
            copies.append(Copy(Value(value.type, value.name), value))
            value = copies[-1].defines()[0]
        taken |= memory
        yields.append(value)
    return replace(function, body=Block((*function.body.operations, *copies), tuple(yields))) if copies else function
