"""Recursive functions: each becomes a function of the program, one for each set of argument types.

What a nested function reads from the functions around it becomes further arguments, and what it changes there
(`nonlocal`) further results:

    def outer(x):                               def f(n, x):
        def f(n):                                   return 1.0 if n == 0 else x * f(n - 1, x)
            return 1.0 if n == 0 else x * f(n - 1)
        return f(3)                             def outer(x):
                                                    return f(3, x)
"""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.ir.nodes import Block, Call, Function, Grow, Store, Value, walk
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import Array, Scalar, Stack
from srcdiff.source.abstract import (
    Abstract,
    Choice,
    Closure,
    Description,
    Items,
    List,
    Maybe,
    Poison,
    Record,
    Stored,
    Tuple,
    describe,
    join,
    leaf_types,
    loosened,
)
from srcdiff.source.calls import Calls
from srcdiff.source.environment import LISTS, Frame, Key, NeverReturns, UnknownResult, handles, list_key, mentioned
from srcdiff.source.scopes import free_names, nonlocal_names


@dataclass(slots=True)
class Unit:
    """A recursive function at certain argument types."""

    name: str
    params: tuple[Value, ...] = ()
    result: Description | None = None
    changed: dict[Key, Description] = field(default_factory=dict)
    """Names of enclosing functions that it assigns."""
    function: Function | None = None


class Recursion(Calls):
    """Reads recursive functions."""

    def __init__(self) -> None:
        super().__init__()
        self.units: dict[Any, Unit] = {}
        self.unknown: set[str] = set()
        """Recursive functions that were called before the type of their result was known."""
        self.lent: set[Value] = set()
        """Storage of lists that a recursive function was given to read."""
        self.loop_depth = 0

    def call_recursive(self, identity: Any, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Abstract:
        given = {name: self.lendable(x) for name, x in bound.items()}
        descriptions = {name: self.passed(x) for name, x in given.items()}
        for name, d in descriptions.items():
            if leaf_types(d) is None or mentioned(d):
                self.refuse("SD305", node, f"`{name}` cannot be passed to a recursive function")
        around = self.seen_around(frame, bound)
        surroundings = {key: self.surrounding(key, assigned) for key, assigned in around.items()}
        key = (identity, tuple(descriptions.items()), tuple(surroundings.items()))
        if key not in self.units:
            self.units[key] = Unit(self.unit_name(frame.name))
            self.read_unit(self.units[key], frame, descriptions, surroundings, node)
        unit = self.units[key]
        if unit.result is None:
            self.unknown.add(unit.name)
            raise UnknownResult
        if self.unknown - {unit.name} and unit not in self.units_in_progress:
            del self.units[key]  # it called one that is not known yet: it will be read again with that one
        args: list[Value] = []
        for name, x in given.items():
            d = descriptions[name]
            args += self.leaves(x, d.parts[0] if isinstance(x, Items | Stored) else d)
        for name_key, d in surroundings.items():
            if leaf_types(d):
                args += self.leaves(self.lendable(self.names[name_key]), d)
        result, outs = self.fresh(unit.result, frame.name)
        for name_key, d in unit.changed.items():
            self.names[name_key], values = self.fresh(d, name_key[1])
            outs += values
        self.add(Call(tuple(outs), unit.name, tuple(args), span=self.span))
        return result

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

    def seen_around(self, frame: Frame, bound: dict[str, Abstract]) -> dict[Key, bool]:
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
        lists = {list_key(h): False for key in found for h in handles(self.names[key])}
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
        unknown_before = self.unknown
        self.units_in_progress.append(unit)
        try:
            for _ in range(12):
                self.unknown, self.span = set(), outer[2]
                if self.read_unit_once(unit, frame, descriptions, surroundings, node) and unit.name not in self.unknown:
                    break
        finally:
            self.units_in_progress.pop()
            self.unknown = unknown_before | (self.unknown - {unit.name})
            self.names, self.frame, self.span, self.path, self.active_calls, self.loop_depth, self.lent = outer

    def read_unit_once(
        self,
        unit: Unit,
        like: Frame,
        descriptions: dict[str, Description],
        surroundings: dict[Key, Description],
        node: ast.AST,
    ) -> bool:
        """Read the function; true if the type of its result is what was assumed."""
        calling_span, calling_frame = self.span, self.frame
        self.names, self.active_calls, self.lent = {}, [], set()
        self.frame = like.again()
        params: list[Value] = []
        for name, d in descriptions.items():
            params += self.receive((self.frame.number, name), d, node)
        for key, d in surroundings.items():
            params += self.receive(key, d, node)
        given = dict(self.names)
        with self.block() as operations:
            try:
                result: Abstract = self.run_body(like.node)
            except NeverReturns:
                self.frame, self.span = calling_frame, calling_span
                self.refuse("SD305", node, f"`{like.name}` never returns without calling itself")
            if isinstance(result, Poison):
                raise Refusal(result.problem)
            changed = self.changed(given, surroundings)
            found = loosened(describe(result))
            types = leaf_types(found)
            yields = self.leaves(result, found) if types is not None else []
            for key, d in changed.items():
                yields += self.leaves(self.names[key], d)
        if types is None or not all(isinstance(t, Scalar) for t in types) or found.kind in ("list", "owned", "closure"):
            self.refuse("SD305", like.node, f"the recursive function `{like.name}` must return numbers")
        body = Block(tuple(operations), tuple(yields))
        self.only_reads_lists(body)
        stable = found == unit.result and changed == unit.changed
        unit.result, unit.changed, unit.params = found, changed, tuple(params)
        unit.function = Function(unit.name, unit.params, body)
        return stable

    def receive(self, key: Key, d: Description, node: ast.AST) -> list[Value]:
        """A parameter for something that it is given; what cannot be passed must not be used."""
        if leaf_types(d) is None:
            what = f"`{key[1]}`" if key[0] != LISTS else "the list"
            problem = Problem("SD305", f"{what} cannot be read in a recursive function", self.span_of(node))
            self.names[key] = Poison(problem)
            return []
        self.names[key], values = self.fresh(d, key[1] if key[0] != LISTS else "items")
        self.lent |= {v for v in values if isinstance(v.type, Array) and self.is_storage(self.names[key])}
        return values

    @staticmethod
    def is_storage(x: Abstract) -> bool:
        return isinstance(x, List | Stored)

    def changed(self, given: dict[Key, Abstract], surroundings: dict[Key, Description]) -> dict[Key, Description]:
        """What it has assigned in the functions around it."""
        found: dict[Key, Description] = {}
        for key, before in given.items():
            now = self.names.get(key, before)
            if now is before or (isinstance(before, Maybe) and now is before.value):
                continue
            if isinstance(before, Items | Stored):
                self.refuse("SD305", self.frame.node, "a recursive function changes a list", help_=_LISTS)
            if key[0] == self.frame.number:
                continue
            d = loosened(describe(now))
            if not all(isinstance(t, Scalar) for t in leaf_types(d) or (None,)):
                self.refuse("SD305", self.frame.node, f"a recursive function assigns `{key[1]}`, which is no number")
            found[key] = d
        return found

    def only_reads_lists(self, body: Block) -> None:
        """The lists that it is given are copies, so that a write into them would be lost."""
        for operation in walk(body):
            if isinstance(operation, Store | Grow) and operation.array in self.lent:
                raise Refusal(Problem("SD305", "a recursive function changes a list", operation.span, help=_LISTS))


_TAKEN = {"np", "math", "grown", *dir(builtins), *(row.support for row in PRIMITIVES.values() if row.support)}
_DERIVED = ("_adjoint", "_tangent", "_adjoint_inside", "_tangent_inside")
_LISTS = "let it return the numbers, or write into an array"
