"""Loop-carried arrays with a single owner: each iteration makes a new one, and their adjoints can be carried likewise.

for t in range(n):                           for t in range(n - 1, -1, -1):
    y = np.zeros(m)                              x_bar = np.zeros(m)
    ...  # y from x                              ...  # x_bar from y_bar
    x = y                                        y_bar = x_bar

So the adjoints need the memory of one iteration, not of all iterations.
"""

from __future__ import annotations

from collections.abc import Iterable

from srcdiff.analyses.structure import Structure, made_anew, structure_of
from srcdiff.ir.aliasing import Apart, Sites, points_to
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Call,
    Copy,
    Dim,
    Function,
    If,
    Library,
    Load,
    Loop,
    Operation,
    Part,
    References,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
)
from srcdiff.ir.types import is_inexact


def owned_memory(function: Function) -> Sites:
    """The memory of such arrays."""
    return _Ownership(function).owned()


def first_stores(function: Function) -> set[Store]:
    """Stores into new arrays that have not been read yet. No reverse sweep needs the values that they overwrite."""
    structure, sites = structure_of(function), points_to(function)
    earliest: dict[Value, int] = {}
    for operation in structure.start:
        looks = isinstance(operation, Dim | References | If | Loop) or (
            isinstance(operation, Store) and not operation.adds
        )
        for value in () if looks or isinstance(operation, Alloc) else operation.uses():
            for site in sites.get(value, ()):
                earliest[site] = min(earliest.get(site, structure.start[operation]), structure.start[operation])
    found: set[Store] = set()
    for store in structure.start:
        made = structure.definition.get(store.array) if isinstance(store, Store) and not store.adds else None
        if isinstance(store, Store) and isinstance(made, Alloc):
            outside = structure.loops_around(structure.block_of[made])
            inside = structure.loops_around(structure.block_of[store])[len(outside) :]
            last = structure.end[inside[0]] if inside else structure.start[store]
            if earliest.get(store.array, last + 1) > last:
                found.add(store)
    return found


def memory_of_branches(function: Function) -> Sites:
    """The memory of results that branches make, and that have one name at a time: their adjoints go to the branches.

    if n == 1:                               if n == 1:
        y = x.copy()                             x_bar += y_bar
    else:                                    else:
        y = np.empty(n)                          ...  # from y_bar
        ...
    return y
    """
    ownership, found = _Ownership(function), set[Value]()
    for value in function.body.yields:
        if isinstance(ownership.structure.definition.get(value), If) and value in ownership.sites:
            group = ownership.connected(ownership.sites[value])
            if all(ownership.stays_in_branches(v) for v, sites in ownership.sites.items() if sites & group):
                found |= group
    return frozenset(found)


class _Ownership:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.sites: dict[Value, Sites] = points_to(function)
        self.structure: Structure = structure_of(function)
        self.uses: dict[Value, list[Operation]] = {}
        self.yields: dict[Value, list[Block]] = {}
        for operation in self.structure.start:
            for value in operation.uses():
                self.uses.setdefault(value, []).append(operation)
            for block in operation.blocks():
                for value in block.yields:
                    self.yields.setdefault(value, []).append(block)

    def owned(self) -> Sites:
        found: set[Value] = set()
        for operation in self.structure.start:
            if isinstance(operation, Loop):
                for param, following in zip(operation.params, operation.body.yields, strict=False):
                    memory = self.sites.get(param, frozenset())
                    if (
                        memory
                        and is_inexact(param.type)
                        and not memory <= found
                        and made_anew(following, self.structure)
                    ):
                        group = self.connected(memory)
                        if self.is_owned(group):
                            found |= group
        return frozenset(found)

    def connected(self, group: Sites) -> Sites:
        """All memory that some reference may confuse with this."""
        size = 0
        while size != len(group):
            size = len(group)
            for sites in self.sites.values():
                if sites & group:
                    group |= sites
        return group

    def is_owned(self, group: Sites) -> bool:
        names = [v for v, sites in self.sites.items() if sites & group]
        returned = set(self.function.body.yields)
        return not any(v in returned or not self.is_plain(v) or not self.moves_once(v) for v in names)

    def stays_in_branches(self, value: Value) -> bool:
        """Whether a name is that of a new array, a view, or a branch, and only the end of its block passes it on."""
        passed = [*self.yields.get(value, ()), *(self.function.body for v in self.function.body.yields if v is value)]
        match self.structure.definition.get(value):
            case If():
                return not self.uses.get(value) and passed == [self.structure.home[value]]
            case Alloc() | Copy() | Library() | Call():
                return passed in ([], [self.structure.home[value]]) and not self.is_body_of_loop(passed)
            case View() | Transpose() | Reshape() | Part():
                return not passed
        return False

    def is_body_of_loop(self, blocks: list[Block]) -> bool:
        return any(isinstance(self.structure.owner.get(b), Loop) for b in blocks)

    def is_plain(self, value: Value) -> bool:
        """Whether a value is an argument, a new array, a view, or carried by a loop of known length."""
        definition = self.structure.definition.get(value)
        if isinstance(definition, Loop):
            return definition.counted
        return definition is None or isinstance(definition, Alloc | Copy | Library | References)

    def moves_once(self, value: Value) -> bool:
        """Whether a loop takes or yields the value at most once, and it is not used afterwards."""
        users, blocks = self.users(value), self.yields.get(value, [])
        definition = self.structure.definition.get(value)
        kinds = (Load, Store, Dim, Copy, Library, References, Alloc)
        loops = [u for u in users if isinstance(u, Loop)]
        if any(not isinstance(u, (*kinds, Loop)) for u in users) or len(loops) + len(blocks) > 1:
            return False
        if isinstance(definition, References):
            return not loops and not blocks
        home = self.structure.home[value]
        if blocks:
            owner = self.structure.owner.get(home)
            return blocks == [home] and isinstance(owner, Loop) and owner.body is home and owner.counted
        for loop in loops:
            if self.structure.block_of[loop] is not home or loop.inits.count(value) != 1:
                return False
            behind = [u for u in users if self.structure.start[u] > self.structure.start[loop]]
            if not all(isinstance(u, Dim | Alloc) for u in behind):  # they read the shape
                return False
        return True

    def users(self, value: Value) -> list[Operation]:
        """The uses of a value and of its views."""
        found = list(self.uses.get(value, ()))
        for operation in found:
            if isinstance(operation, References):
                found += self.uses.get(operation.out, ())
                if operation.out in self.yields:
                    found.append(self.structure.owner[self.yields[operation.out][0]])
        return found


class LastSeen:
    """Which arrays that an iteration of a loop gets are not seen again after the iteration, by any name."""

    def __init__(self, function: Function) -> None:
        self.sites: dict[Value, Sites] = points_to(function)
        self.structure: Structure = structure_of(function)
        self.apart = Apart(function, self.sites)
        self.latest: dict[Value, int] = {}
        """The last place where a reference is used."""
        for operation in self.structure.start:
            self.note(operation.uses(), self.structure.start[operation])
        self.note(function.body.yields, 10**9)
        for block, owner in self.structure.owner.items():
            self.note(block.yields, self.structure.end[owner])

    def note(self, values: Iterable[Value], place: int) -> None:
        for value in values:
            if value in self.sites:
                self.latest[value] = max(place, self.latest.get(value, 0))

    def is_left_behind(self, param: Value) -> bool:
        structure, (loop, _) = self.structure, self.structure.slot[param]
        memory = self.sites.get(param, frozenset())
        around = structure.loops_around(structure.block_of[loop])
        for site in memory:
            made = structure.definition.get(site)
            if made is None or structure.loops_around(structure.block_of[made])[: len(around)] != around:
                return False
        names = [v for v, sites in self.sites.items() if sites & memory and not self.apart.different(v, param)]
        return not any(self.is_seen(name, loop) for name in (param, *names))

    def is_seen(self, name: Value, loop: Loop) -> bool:
        """Whether an iteration passes the array on, or the array is older than the loop and used in it."""
        structure = self.structure
        if loop in structure.loops_around(structure.home.get(name, structure.top)):
            return name in loop.body.yields
        definition = structure.definition.get(name)
        is_older = definition is None or structure.start[definition] < structure.start[loop]
        return is_older and self.latest.get(name, 0) > structure.start[loop]
