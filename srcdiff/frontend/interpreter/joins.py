"""Joins: the state where two paths meet, from the states at their ends."""

from __future__ import annotations

from collections.abc import Container, Mapping, MutableMapping, Sequence
from dataclasses import replace

from srcdiff.diagnostics import Problem
from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Items,
    List,
    Maybe,
    Missing,
    Object,
    Optional,
    Poison,
    Slot,
    Static,
    Stored,
    Tuple,
    class_of,
    is_instance,
    is_none,
)
from srcdiff.frontend.domain.lattice import (
    POISON,
    describe,
    handles,
    is_of_numbers,
    is_owned,
    is_without_axes,
    join,
    leaf_types,
    loosened,
    mentioned,
    objects_in,
    scalar_of,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.sizes import Key
from srcdiff.frontend.domain.state import (
    BREAKS,
    CONTINUES,
    ENDS,
    FIRST_CAUGHT,
    GOES_ON,
    RETURNS,
    WHOSE,
    Cells,
    Location,
    State,
    is_variable,
    name_at,
)
from srcdiff.frontend.interpreter.dictionaries import in_order, is_changing, is_dictionary
from srcdiff.frontend.interpreter.kind_in_words import told_apart
from srcdiff.frontend.interpreter.list_storage import SAME_ELEMENTS, contents_described, element_gone, perhaps
from srcdiff.frontend.interpreter.number_kinds import is_pythons
from srcdiff.frontend.interpreter.representation import fresh_values, leaves_of
from srcdiff.frontend.source.scopes import has_finally, has_try, inner_scopes
from srcdiff.ir.nodes import Block, If, Operation, Value
from srcdiff.ir.types import Array
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.descriptions import Description
from srcdiff.signature.trees import NODES


@dataclass(frozen=True, slots=True)
class Side:
    """A side of a branch: its operations, and the state at its end."""

    state: State
    operations: list[Operation]


def absent(reader: Reader, key: Location) -> Abstract:
    """The value of a variable without a cell. For an object's attribute, it is that of the class."""
    if not isinstance(key, tuple):
        return MISSING
    if key[1] == "%exit":
        return Static(GOES_ON)
    owner = reader.objects.get(key[0])
    return MISSING if owner is None else owner.defaults.get(key[1], MISSING)


def common_sizes(
    reader: Reader, before: State, ends: Sequence[State], arrays: tuple[Value, Value]
) -> tuple[Key, ...] | None:
    """The sizes that one array has at the end of one path, and the other one at the end of the other path.

    They are known before both paths. Each path has checked equalities of its own.
    """
    first, second = arrays
    if not isinstance(first.type, Array) or not isinstance(second.type, Array):
        return None
    found: list[Key] = []
    for pair in zip(reader.own_keys(first), reader.own_keys(second), strict=True):
        known = [(end.same, reader.canonical(key, end.same)) for end, key in zip(ends, pair, strict=True)]
        common = next((k for k in pair if all(reader.canonical(k, same) == size for same, size in known)), None)
        if common is None:
            return None
        found.append(reader.canonical(common, before.same))
    return tuple(found)


def join_states(reader: Reader, condition: Value, first: Side, second: Side) -> None:
    """The state where two sides meet. Values that differ become results of the branch."""
    before, cells_then, cells_else = reader.state, first.state.cells, second.state.cells
    changed = [k for k in {**cells_then, **cells_else} if cells_then.get(k) is not cells_else.get(k)]
    merged = {k: v for k, v in cells_then.items() if cells_else.get(k) is v}
    outs: list[Value] = []
    yields: tuple[list[Value], list[Value]] = ([], [])
    left_then, left_else = (has_left(reader, cells) for cells in (cells_then, cells_else))
    met: dict[Location, Description] = {}
    flags_met: dict[Value, tuple[Abstract, Abstract]] = {}
    ends = [first.state, second.state]
    for key in changed:
        name = name_at(key)
        a, b = (end.cells.get(key, absent(reader, key)) for end in ends)
        flags = name != "%return"
        if left_then != left_else and is_local(reader, key):
            a, b = (MISSING, b) if left_then else (a, MISSING)  # after a return, its names are not visible
            flags = False
        joined = joined_description(reader, key, a, ends[0].cells, b, ends[1].cells, flags=flags)
        if joined.kind == "poison":
            merged[key] = Poison(conflict_at(reader, key, a, b))
            continue
        if joined.kind == "missing":
            continue
        met[key] = joined
        reader.state = before.with_cells(merged)
        merged_value, values = fresh_values(reader, joined, name)
        merged = {**reader.state.cells, key: merged_value}
        if isinstance(merged_value, Maybe | Optional) and isinstance(merged_value.flag, Value):
            flags_met[merged_value.flag] = flag_of(merged_value, a), flag_of(merged_value, b)
        note_mixed(reader, key, values)
        outs += values
        for k, (x, side) in enumerate(((a, first), (b, second))):
            reader.state = ends[k]
            with reader.into(side.operations):
                yields[k].extend(leaves_of(reader, x, joined))
            ends[k] = reader.state
    for out, a_value, b_value in zip(outs, *yields, strict=True):
        reader.joins(out, a_value, b_value, common_sizes(reader, before, ends, (a_value, b_value)))
        if asks_whose(reader) and is_pythons(reader, a_value) and is_pythons(reader, b_value):
            reader.pythons.add(out)
    ways = [end.cells.get(reader.exit_key) for end in ends]
    note_exits(reader, condition, merged.get(reader.exit_key), (ways[0], ways[1]), flags_met)
    for key, joined in met.items():
        for end in ends:
            forget_elements(reader, merged, joined, end.cells.get(key, MISSING), end.cells)
    reader.state = replace(
        before,
        cells=in_order(reader, merged, cells_then, cells_else),
        doubts=ends[0].doubts | ends[1].doubts,
        same_lists=ends[0].same_lists | ends[1].same_lists,
    )
    then, orelse = Block(tuple(first.operations), tuple(yields[0])), Block(tuple(second.operations), tuple(yields[1]))
    reader.add(If(condition, then, orelse, tuple(outs), span=reader.span))


def asks_whose(reader: Reader) -> bool:
    """Whether a `try` or an operator needs to know whose numbers are, so that branches and loops must track this."""
    return bool(reader.context.handlers) or has_try(reader.frame.node) or WHOSE in reader.stateful


def note_mixed(reader: Reader, key: Location, values: list[Value]) -> None:
    """Record values that are arrays without axes on some path only. They must not be changed in place."""
    if key in reader.mixed:
        reader.boxes |= dict.fromkeys(values, True)
    if name_at(key)[:1] == "%":  # internal names are reused
        reader.mixed.discard(key)


def forget_elements(
    reader: Reader, names: MutableMapping[Location, Abstract], d: Description, x: Abstract, before: Cells
) -> None:
    """Where lists of lists meet, the inner lists move, so other names for them become unusable."""
    owner = x.value if isinstance(x, Maybe) else x
    contents = before.get(owner) if isinstance(owner, List) else owner
    if d.kind != "stored" and not is_owned(d):
        return
    inside = handles(contents) if isinstance(contents, Items) else set()
    for key, y in list(names.items()):
        if key in inside or (isinstance(y, Slot) and y.outer is owner):
            names[key] = Poison(element_gone(reader))


def has_left(reader: Reader, names: Cells) -> bool:
    """Whether a side of a branch has returned, or raises an exception that a caller catches."""
    code = names.get(reader.exit_key)
    if not isinstance(code, Static) or code.value < FIRST_CAUGHT:
        return code == Static(RETURNS)
    return all(h.frame_number != reader.frame.number for h in reader.context.handlers if code.value in h.codes)


def is_local(reader: Reader, key: Location) -> bool:
    """Whether a name is gone after the function has returned, because no inner function refers to it."""
    if not isinstance(key, tuple) or key[0] != reader.frame.number or key[1].startswith("%"):
        return False
    return not inner_scopes(reader.frame.node) and not has_finally(reader.frame.node)


def joined_description(
    reader: Reader,
    key: Location,
    a: Abstract,
    names_a: Cells,
    b: Abstract,
    names_b: Cells,
    earlier: Container[Location] = (),
    flags: bool | None = None,
) -> Description:
    """The description of a name where two paths meet. Two lists or objects are merged if neither has another name."""
    if isinstance(a, Object) and isinstance(b, Object) and a is not b:
        merged = join(instance_description(reader, key, a, names_a), instance_description(reader, key, b, names_b))
        both_exist = exists_in(a, names_a) and exists_in(a, names_b) and exists_in(b, names_a) and exists_in(b, names_b)
        return merged if merged != POISON or not both_exist else join(describe(a), describe(b))
    first, second = describe(a), describe(b)
    lists = [x.value if isinstance(x, Maybe) else x for x in (a, b)]
    one_missing = isinstance(a, Missing) or isinstance(b, Missing)
    known = all(x in names_a and x in names_b for x in lists if isinstance(x, List))
    if lists[0] is not lists[1] and any(isinstance(x, List) for x in lists) and not (one_missing and known):
        first = owned_description(reader, key, a, names_a, earlier) if not isinstance(a, Missing) else first
        second = owned_description(reader, key, b, names_b, earlier) if not isinstance(b, Missing) else second
    joined = join(first, second, flags=name_at(key) != "%return" if flags is None else flags)
    if scalar_of(joined) is not None and any(isinstance(x, Value) and is_without_axes(x.type) for x in (a, b)):
        reader.mixed.add(key)
    known = all(h in names_a and h in names_b for h in mentioned(joined))
    if known and leaf_types(joined) is not None:
        return joined
    if is_variable(key) or not handles(a) | handles(b):
        return POISON
    joined = join(contents_described(reader, a, names_a), contents_described(reader, b, names_b))
    return joined if leaf_types(joined) is not None else POISON


def exists_in(x: Object, cells: Cells) -> bool:
    """Whether an object has attributes in a state."""
    return any(isinstance(key, tuple) and key[0] == x.number for key in cells)


def instance_description(reader: Reader, key: Location, x: Abstract, cells: Cells) -> Description:
    """The attributes of an object, if this is its only name.

    They are numbers, arrays, constants, and lists of numbers that only this object has.
    """
    if not isinstance(x, Object) or issubclass(x.kind, dict):
        return POISON
    own = {k: value for k, value in cells.items() if isinstance(k, tuple) and k[0] == x.number}
    if any(x in objects_in(value) for k, value in cells.items() if k != key):
        return POISON
    parts = tuple(
        loosened(list_description(reader, k, value, cells) if isinstance(value, List) else describe(value))
        for k, value in own.items()
    )
    if any(leaf_types(p) is None or p.kind in ("list", "object", "maybe") or mentioned(p) for p in parts):
        return POISON
    return Description("instance", (x.kind, tuple(k[1] for k in own)), parts)


def list_description(reader: Reader, key: Location, x: List, cells: Cells) -> Description:
    """A list of numbers that is an attribute and has no other name."""
    contents = cells[x]
    flat = isinstance(contents, Stored) and is_of_numbers(contents.element) and not contents.at
    if not flat and not (isinstance(contents, Items) and all(isinstance(i, Value | Static) for i in contents.items)):
        return POISON
    found = owned_description(reader, key, x, cells)
    return found if leaf_types(loosened(found)) is not None else POISON


def owned_description(
    reader: Reader, key: Location, x: Abstract, names: Cells, earlier: Container[Location] = ()
) -> Description:
    """The contents of a list, if this is its only name. Names from `earlier` take precedence over new ones."""
    handle = x.value if isinstance(x, Maybe) else x
    same = perhaps(reader, handle) if isinstance(handle, List) else set()
    others = [k for k, v in names.items() if k != key and same & handles(v)]
    if isinstance(key, tuple) and key[1] == "%return":  # after a return, its names are not visible
        others = [k for k in others if not isinstance(k, tuple) or k[0] != key[0]]
    if not isinstance(handle, List) or (others and (key not in earlier or any(k in earlier for k in others))):
        return POISON
    contents = names[handle]
    inside = contents_described(reader, contents, names) if handles(contents) else describe(contents)
    found = Description("owned", None, (inside,))
    return Description("maybe", None, (found,)) if isinstance(x, Maybe) else found


def conflict_at(reader: Reader, key: Location, a: Abstract, b: Abstract) -> Problem | None:
    """The reason why a name cannot be used after a join. An earlier reason takes precedence."""
    for x in (a, b):
        if isinstance(x, Poison):
            return x.problem
    if has_unread(reader, a) or has_unread(reader, b):
        return None
    if not is_variable(key):
        if isinstance(a, Slot) or isinstance(b, Slot):
            message = "a list is an element of another list on some paths or in some iterations, but not in all"
            return Problem("SD206", message, reader.span, help="insert a copy: `list(...)`")
        collected = sorted({o.kind.__name__ for x in (a, b) for o in objects_in(x) if not is_changing(o)})
        if collected:
            message = f"the list collects instances of `{collected[0]}`, whose attributes are assigned, "
            message += "and how many there are is known at run time only"
            help_ = "keep the attributes in arrays, an element for each instance, or use a structured array"
            return Problem("SD206", message, reader.span, help=help_)
        message = "the list holds elements of different types on different paths"
        return Problem("SD202", message, reader.span, help=SAME_ELEMENTS)
    what = f"`{name_at(key)}`"
    if name_at(key) == "%return":
        what = "the result"
    if name_at(key) == "%choice":
        what = "this"
    if is_dictionary(a) and is_dictionary(b) and (is_changing(a) or is_changing(b)):
        message = f"{what} may refer to either of two dictionaries that are changed"
        return Problem("SD206", message, reader.span, help="use each of them in a branch of its own")
    if is_instance(a) and is_instance(b) and class_of(a) is class_of(b):
        message = f"{what} may refer to either of two instances of `{class_of(a).__name__}`"
        message += ", whose attributes are assigned or hold lists"
        problem = Problem("SD206", message, reader.span, help="make both of them before the branch or the loop")
        reader.needs_objects[problem] = class_of(a)
        return problem
    if isinstance(a, List) and isinstance(b, List):
        return Problem(
            "SD206",
            f"{what} is one list or another, depending on the path, and both lists have other names too",
            reader.span,
        )
    if isinstance(a, Static) and isinstance(b, Static) and type(a.value) is type(b.value):
        message = f"{what} is {a.value!r} on one path and {b.value!r} on another; only numbers may differ"
        return Problem("SD202", message, reader.span, help="use a number or a boolean, and compare that")
    first, second = told_apart(reader, a, b)
    lengths = {len(x.items) for x in (a, b) if isinstance(x, Tuple) and x.kind is None}
    help_ = "use a list, whose length may depend on the path: `[...]` and `append`" if len(lengths) == 2 else ""
    message = f"{what} is {first} on one path and {second} on another"
    return Problem("SD202", message, reader.span, help=help_)


def has_unread(reader: Reader, x: Abstract) -> bool:
    """Whether a value, or an attribute of an object in it, is unusable because of a problem that is reported."""
    numbers = {o.number for o in objects_in(x)}
    attributes = [y for k, y in reader.cells.items() if isinstance(k, tuple) and k[0] in numbers] if numbers else []
    return any(leaf == Poison(None) for y in (x, *attributes) for leaf in NODES.leaves(y))


# -- exceptions that are caught ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExitsMet:
    """A join of two exits: its condition, and the flags of the names that were joined."""

    condition: Value
    sides: tuple[Abstract, Abstract]
    flags: Mapping[Value, tuple[Abstract, Abstract]]


_ORDINARY = frozenset((GOES_ON, CONTINUES, BREAKS, RETURNS, ENDS))


def possible(reader: Reader, code: Abstract | None) -> frozenset[int]:
    """The possible exit codes."""
    if isinstance(code, Static):
        return frozenset((code.value,))
    return reader.codes.get(code, _ORDINARY) if isinstance(code, Value) else frozenset((GOES_ON,))


def caught(codes: frozenset[int]) -> frozenset[int]:
    return frozenset(c for c in codes if c >= FIRST_CAUGHT)


def note_exits(
    reader: Reader,
    condition: Value,
    out: Abstract | None,
    ways: tuple[Abstract | None, Abstract | None],
    flags: Mapping[Value, tuple[Abstract, Abstract]],
) -> None:
    """Record the possible exits before a join, if one of them is a caught exception."""
    a, b = ways
    codes = possible(reader, a) | possible(reader, b)
    if isinstance(out, Value) and caught(codes):
        reader.codes[out] = codes
        reader.exits_met[out] = ExitsMet(condition, (a or Static(GOES_ON), b or Static(GOES_ON)), flags)


def flag_of(joined: Maybe | Optional, x: Abstract) -> Abstract:
    """Whether a value exists, on one of the joined paths."""
    if isinstance(joined, Maybe):
        return x.flag if isinstance(x, Maybe) else Static(not isinstance(x, Missing))
    if isinstance(x, Maybe):
        x = x.value
    return x.flag if isinstance(x, Optional) else Static(not isinstance(x, Missing) and not is_none(x))
