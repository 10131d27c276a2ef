"""The results of a recursive function: its return value, the names it assigns, and the lists it changes."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator
from dataclasses import field, replace

from srcdiff.diagnostics import Problem
from srcdiff.frontend.callees import holds_array
from srcdiff.frontend.domain.abstract_values import Abstract, Group, Items, List, Maybe, Poison, Stored
from srcdiff.frontend.domain.lattice import (
    describe,
    handles,
    holds_lists,
    join,
    leaf_types,
    loosened,
    mentioned,
    objects_in,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.shapes import ANYTHING, may_meet
from srcdiff.frontend.domain.state import Cells, Location, name_at
from srcdiff.frontend.interpreter.aliases import all_origins
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.ir.aliasing import Sites, points_to, written_sites
from srcdiff.ir.nodes import Block, Call, Function, Grow, Operation, Store, Value, walk
from srcdiff.ir.types import Stack
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.descriptions import Description


def owned_in(d: Description) -> int:
    """The number of lists in a value of this description."""
    return 1 if d.kind == "owned" else sum(map(owned_in, d.parts))


def storage_in(d: Description) -> Iterator[int]:
    """For each run-time value of this description, the number of the list that it belongs to, or -1."""
    lists = 0

    def visit(d: Description) -> Iterator[int]:
        nonlocal lists
        types = leaf_types(d) or ()
        if d.kind == "owned":
            lists += 1
            yield from (lists - 1 for _ in types)
        elif d.kind in ("tuple", "record", "maybe", "optional"):
            own = sum(len(leaf_types(p) or ()) for p in d.parts)
            yield from (-1 for _ in range(len(types) - own))
            for part in d.parts:
                yield from visit(part)
        else:
            yield from (-1 for _ in types)

    yield from visit(d)


Place = str | Location
"""The source of a list in a recursive function: an argument, or a name or a list of the enclosing functions."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results and effects of a recursive function."""

    result: Description
    changed: dict[Location, Description] = field(default_factory=dict)
    """The names of enclosing functions that it assigns."""
    lists: dict[Place, Description] = field(default_factory=dict)
    """The lists that it is given and changes, in their final state."""
    written: frozenset[int] = frozenset()
    """The array parameters that it writes."""
    shares: tuple[frozenset[Hashable], ...] = ()
    """For each array it returns, its possible aliases: parameters and earlier results, by number, and others."""
    same: tuple[frozenset[Place | int], ...] = ()
    """For each list it returns, the argument lists or earlier results that it may be in Python."""

    @property
    def gives(self) -> Description:
        """All results."""
        lists = (Description("owned", None, (d,)) for d in self.lists.values())
        return Description("tuple", None, (self.result, *self.changed.values(), *lists))

    @property
    def new_lists(self) -> int:
        """The number of returned lists that are not among its arguments."""
        return sum(owned_in(d) for d in (self.result, *self.changed.values()))


@dataclass(slots=True)
class Unit:
    """A recursive function at certain argument types."""

    name: str
    params: tuple[Value, ...] = ()
    outcome: Outcome | None = None
    function: Function | None = None
    problems: tuple[Problem, ...] = ()
    """Its problem, which is reported for each caller, also if an earlier reading discarded it."""


_GIVES = "use numbers, arrays, or lists of numbers or of tuples of numbers"


def holds_arrays(x: Stored) -> bool:
    return any(isinstance(a.type, Stack) for a in x.arrays)


def widened(a: Description, b: Description) -> Description:
    """The join of two descriptions. If they have no join, the second one, because a later reading knows more."""
    lists = {a.kind, b.kind} <= {"items", "stored"}
    found = join(a, b) if lists or a.kind == b.kind else b
    return b if leaf_types(found) is None else found


def outcome_of(
    reader: Reader,
    result: Abstract,
    given: Cells,
    slots: dict[Place, List],
    operations: list[Operation],
    assumed: Outcome | None,
) -> tuple[Outcome, list[tuple[Abstract, Description]]]:
    """Its outcome: the return value, the names that it assigns, and the lists that it changes."""
    if isinstance(result, Group):
        result = result.remade(map(functools.partial(forced, reader), result.items))
    require_same_attributes(reader, given)
    before = assumed or Outcome(description_handed(reader, result, "the result of"))
    found = widened(before.result, description_handed(reader, result, "the result of"))
    changed = dict(before.changed)
    for key, x in given.items():
        now = reader.cells.get(key, x)
        kept = now is x or (isinstance(x, Maybe) and now is x.value)
        changes = not kept or (key in slots and is_changed(reader, slots[key], given, operations))
        around = isinstance(key, tuple) and key[0] != reader.frame.number
        if around and (changes or key in changed):
            d = description_handed(reader, now, f"`{name_at(key)}` in")
            changed[key] = widened(changed.get(key, d), d)
    lists = dict(before.lists)
    for slot, handle in slots.items():
        if slot not in changed and (slot in lists or is_changed(reader, handle, given, operations)):
            d = contents_handed(reader, reader.cells[handle], "the list in")
            d = widened(describe(given[handle]), d)
            lists[slot] = widened(lists.get(slot, d), d)
    gives = [(result, found), *((reader.cells[key], d) for key, d in changed.items())]
    gives += [(reader.cells[slots[slot]], d) for slot, d in lists.items()]
    return Outcome(found, changed, lists), gives


def require_same_attributes(reader: Reader, given: Cells) -> None:
    """Refuse a recursive function that gives objects from outside new attributes, or removes some."""
    outside = reader.context.unit_objects
    now, before = ({k for k in cells if isinstance(k, tuple) and k[0] in outside} for cells in (reader.cells, given))
    for number, name in sorted(now ^ before):
        kind = reader.objects[number].kind
        what = f"the dictionary the key `{name}`" if issubclass(kind, dict) else f"`{kind.__name__}` a new `{name}`"
        does = f"gives {what}" if (number, name) in now else f"removes `{name}`"
        message = f"the recursive function `{reader.frame.name}` {does}, which is not supported"
        reader.refuse("SD305", reader.frame.node, message, help_=f"assign `{name}` before the first call")


def description_handed(reader: Reader, x: Abstract, what: str) -> Description:
    """The description of a returned value. Lists are described by their contents."""
    if isinstance(x, List):
        return Description("owned", None, (contents_handed(reader, reader.cells[x], what),))
    if isinstance(x, Group):
        return describe(x).remade(description_handed(reader, i, what) for i in x.items)
    if isinstance(x, Poison):
        reader.refuse_poison(x)
    for made in objects_in(x):
        if made.number > reader.frame.number:
            words = f"an instance of `{made.kind.__name__}` that it makes, and whose attributes are assigned"
            message = f"{what} the recursive function `{reader.frame.name}` is {words}, which is not supported"
            reader.refuse("SD305", reader.frame.node, message, help_=_GIVES)
    found = loosened(describe(x))
    types = leaf_types(found)
    if types is None or mentioned(found) or found.kind == "closure" or any(isinstance(t, Stack) for t in types):
        message = (
            f"{what} the recursive function `{reader.frame.name}` is {in_words(reader, x)}, which is not supported"
        )
        reader.refuse("SD305", reader.frame.node, message, help_=_GIVES)
    return found


def contents_handed(reader: Reader, contents: Abstract, what: str) -> Description:
    """The contents of a returned list: the known elements, or any number of one type."""
    if isinstance(contents, Items):
        return Description("items", None, tuple(handed_element(reader, i, what) for i in contents.items))
    if not isinstance(contents, Stored) or holds_arrays(contents) or holds_lists(contents.element):
        message = f"{what} the recursive function `{reader.frame.name}` is a list whose elements are not numbers"
        reader.refuse("SD305", reader.frame.node, message, help_=_GIVES)
    return describe(contents)


def handed_element(reader: Reader, x: Abstract, what: str) -> Description:
    if handles(x):
        message = f"{what} the recursive function `{reader.frame.name}` is a list of lists, which is not supported"
        reader.refuse("SD305", reader.frame.node, message, help_=_GIVES)
    return description_handed(reader, x, what)


def is_changed(reader: Reader, handle: List, given: Cells, operations: list[Operation]) -> bool:
    """Whether a list argument has been changed."""
    before = given[handle]
    now = reader.cells.get(handle, before)
    if now is not before and now != before:
        return True
    own = before.arrays if isinstance(before, Stored) else ()
    return any(o.array in own for o in walk(Block(tuple(operations))) if isinstance(o, Store | Grow))


def with_effects(
    reader: Reader, function: Function, outcome: Outcome, given: Cells, slots: dict[Place, List]
) -> Outcome:
    """The outcome with facts about the whole function: the arrays it writes, and possible aliases of results."""
    sites = points_to(function)
    written = written_by(reader, function, sites)
    params = {p: k for k, p in enumerate(function.params)}
    flags = list(storage_in(outcome.gives))
    arrays = [v for v, n in zip(function.body.yields, flags, strict=True) if n < 0 and holds_array(v)]
    memory = [all_origins(reader, a) for a in arrays]
    shares: list[frozenset[Hashable]] = []
    for k, origins in enumerate(memory):
        found: set[Hashable] = {params[o] for o in origins if o in params}
        found |= {o for o in origins if o == ANYTHING or (o in reader.given and o not in params)}
        found |= {-1 - j for j in range(k) if may_meet(memory[j], origins)}
        shares.append(frozenset(found))
    storage = [
        [v for v, n in zip(function.body.yields, flags, strict=True) if n == number and holds_array(v)]
        for number in range(outcome.new_lists)
    ]
    same = same_as_given(reader, storage, sites, given, slots)
    return replace(outcome, written=written, shares=tuple(shares), same=same)


def written_by(reader: Reader, function: Function, sites: dict[Value, Sites]) -> frozenset[int]:
    units = {u.name: u.outcome for u in reader.units.values() if u.outcome is not None}
    written = written_sites(function.body, sites)
    for call in walk(function.body):
        if isinstance(call, Call):
            outcome = units.get(call.function)
            places = range(len(call.args)) if outcome is None else outcome.written
            written |= {site for k in places for site in sites.get(call.args[k], frozenset())}
    return frozenset(k for k, p in enumerate(function.params) if p in written)


def same_as_given(
    reader: Reader, lists: list[list[Value]], sites: dict[Value, Sites], given: Cells, slots: dict[Place, List]
) -> tuple[frozenset[Place | int], ...]:
    """For each list, the argument lists that it may be: those with the same storage, and those without storage."""
    contents = {slot: given[handle] for slot, handle in slots.items()}
    without = {slot for slot, x in contents.items() if not isinstance(x, Stored) or not x.arrays}
    home = {a: slot for slot, x in contents.items() if isinstance(x, Stored) for a in x.arrays}
    found: list[frozenset[Place | int]] = []
    memory: list[set[Value]] = []
    for storage in lists:
        reached = {s for v in storage for s in sites.get(v, frozenset())}
        size = -1
        while size != len(reached):
            size = len(reached)
            stands_for = {a for s in reached for a in reader.stands_for_list.get(s, ())}
            reached |= {s for a in stands_for for s in sites.get(a, frozenset((a,)))}
        slots_met: set[Place | int] = {*(home[s] for s in reached if s in home), *without}
        earlier = {k for k, other in enumerate(memory) if other & reached}
        found.append(frozenset(slots_met | earlier | (set(contents) if not storage else set())))
        memory.append(reached)
    return tuple(found)
