"""Access relations: which elements loads and stores touch, as Presburger sets of isl (Verdoolaege 2010).

An access runs once for each iteration of the loops around it. If its indices are affine in the loop counters, the
iterations in which one access touches an element after another access are a set of integers, and isl decides whether it
is empty. An index that is not affine may have any value.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import field

from srcdiff.analyses.structure import Structure
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Coordinate,
    Copy,
    Dim,
    If,
    Index,
    Library,
    Load,
    Loop,
    Slice,
    Store,
    Transpose,
    Value,
    View,
)
from srcdiff.ir.types import INT
from srcdiff.quick_dataclasses import dataclass

_LONG = 8
"""So many iterations are enough to see whether any two depend on each other."""


@dataclass(frozen=True, slots=True)
class Affine:
    """A sum of loop counters and of values that no loop changes, with whole factors."""

    constant: int = 0
    terms: tuple[tuple[Value, int], ...] = ()

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        terms = dict(self.terms)
        for value, count in other.terms:
            terms[value] = terms.get(value, 0) + factor * count
        kept = tuple((v, c) for v, c in terms.items() if c)
        return Affine(self.constant + factor * other.constant, kept)

    def times(self, factor: int) -> Affine:
        return Affine(0).plus(self, factor)


@dataclass(slots=True)
class _Names:
    """Names for isl: counters of one access or the other are variables, all else are parameters."""

    parameters: dict[Value, str] = field(default_factory=dict)

    def text(self, expression: Affine, counters: dict[Value, str]) -> str:
        parts = [str(expression.constant)]
        for value, count in expression.terms:
            name = counters.get(value) or self.parameters.setdefault(value, f"p{len(self.parameters)}")
            parts.append(f"{count}*{name}")
        return " + ".join(parts)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """The iterations in which two accesses touch the same element, as a set for isl."""

    variables: list[str]
    constraints: list[str]
    names: _Names
    common: list[Loop]
    """The loops around both."""

    def never(self, order: list[str]) -> bool:
        """Whether no iterations in this order have such a dependence."""
        return _is_empty(self.variables, [*self.constraints, *order], self.names)


def _meeting(
    a: Load | Store, b: Load | Store, structure: Structure, loop: Loop | None = None, *, one_iteration: bool = False
) -> _Meeting | None:
    """None if too little is known about the accesses."""
    first, second = (element(x.array, x.indices, structure, loop, one_iteration=one_iteration) for x in (a, b))
    if first is None or second is None or first.array is not second.array:
        return None
    a_loops = structure.loops_around(structure.block_of[a])
    b_loops = structure.loops_around(structure.block_of[b])
    common = 0
    while common < min(len(a_loops), len(b_loops)) and a_loops[common] is b_loops[common]:
        common += 1
    names = _Names()
    a_names = {loop: f"a{k}" for k, loop in enumerate(a_loops)}
    b_names = {loop: f"b{k}" for k, loop in enumerate(b_loops)}
    a_counters, b_counters = _counters(a_names), _counters(b_names)
    constraints = [*_domain(a_names, structure, names), *_domain(b_names, structure, names)]
    variables = [*a_names.values(), *b_names.values()]
    for found, loops in ((first, a_names), (second, b_names)):
        for index in (i for i in (*found.indices, *found.inner) if i is not None):
            if not _is_negative_nowhere(index, loops, structure):
                # only iterations of both loops matter: `u[n - 1]` and a loop over range(1, n - 1) need no empty `u`
                negative = f"{names.text(index, _counters(loops))} < 0"
                if not _is_empty(variables, [*constraints, negative, *_lengths(names, structure)], names):
                    return None
    for x, y in zip(first.indices, second.indices, strict=True):
        if x is not None and y is not None:
            constraints.append(f"{names.text(x, a_counters)} = {names.text(y, b_counters)}")
    return _Meeting(variables, constraints, names, a_loops[:common])


def never_overwrites(store: Store, access: Load | Store, structure: Structure) -> bool:
    """Whether no run of the store, after a run of the access, touches the same element."""
    meeting = _meeting(access, store, structure)
    if meeting is None:
        return False
    orders = [
        [f"a{k} = b{k}" for k in range(level)] + [_before(loop, level, structure)]
        for level, loop in enumerate(meeting.common)
    ]
    if structure.start[store] > structure.start[access]:
        orders.append([f"a{k} = b{k}" for k in range(len(meeting.common))])
    return all(meeting.never(order) for order in orders)


def never_written_before(store: Store, load: Load, loop: Loop, structure: Structure) -> bool:
    """Whether no run of the store, before a run of the load in the same iteration of a loop, touches its element."""
    meeting = _meeting(load, store, structure, loop)
    if meeting is None or loop not in meeting.common:
        return False
    orders = []
    for level in range(meeting.common.index(loop) + 1, len(meeting.common)):
        step = _step(meeting.common[level], structure)
        before = "0 = 0" if step is None else f"b{level} {'<' if step > 0 else '>'} a{level}"
        orders.append([*(f"a{k} = b{k}" for k in range(level)), before])
    if structure.start[store] < structure.start[load]:
        orders.append([f"a{k} = b{k}" for k in range(len(meeting.common))])
    return all(meeting.never(order) for order in orders)


def iterations_are_apart(loop: Loop, a: Load | Store, b: Load | Store, structure: Structure) -> bool:
    """Whether two accesses never touch the same element in different iterations of a loop around both."""
    meeting = _meeting(a, b, structure, loop)
    if meeting is None or loop not in meeting.common:
        return False
    level = meeting.common.index(loop)
    return meeting.never([*(f"a{k} = b{k}" for k in range(level)), f"(a{level} < b{level} or a{level} > b{level})"])


def surely_meet(loop: Loop, a: Load | Store, b: Load | Store, structure: Structure) -> bool:
    """Whether two accesses touch the same element in different iterations of a loop, whenever all loops around them
    that do not depend on others are long: in a few iterations more may be true than in many."""
    meeting = _meeting(a, b, structure, loop)
    if meeting is None or loop not in meeting.common:
        return False
    for access in (a, b):
        found = element(access.array, access.indices, structure, loop)
        blocks = structure.blocks_around(structure.block_of[access])
        owners = [structure.owner[block] for block in blocks[blocks.index(loop.body) :]]
        if found is None or None in found.indices:
            return False
        if not all(isinstance(x, Loop) and x.counted and _is_exact(x, structure) for x in owners):
            return False  # a branch, or a loop of unknown length, may leave the access out
    level = meeting.common.index(loop)
    order = [*(f"a{k} = b{k}" for k in range(level)), f"(a{level} < b{level} or a{level} > b{level})"]
    names = meeting.names
    long = [*_lengths(names, structure)]
    loops = {*structure.loops_around(structure.block_of[a]), *structure.loops_around(structure.block_of[b])}
    for x in loops:
        start, stop = (affine(bound, structure) for bound in (x.bounds or ())[:2])
        counters = {y.index for y in loops}
        if start is None or stop is None or any(v in counters for v, _ in (*start.terms, *stop.terms)):
            continue
        first, last = (start, stop) if _step(x, structure) == 1 else (stop, start)
        long.append(f"{names.text(last, {})} - ({names.text(first, {})}) >= {_LONG}")
    import islpy

    parameters = f"[{', '.join(names.parameters.values())}]"
    variables, conditions = ", ".join(meeting.variables), " and ".join([*meeting.constraints, *order])
    dependent = islpy.Set(f"{parameters} -> {{ [{variables}] : {conditions} }}").params()
    return bool(islpy.Set(f"{parameters} -> {{ : {' and '.join(long) or '0 = 0'} }}").is_subset(dependent))


def never_in_one_iteration(loop: Loop, a: Load | Store, b: Load | Store, structure: Structure) -> bool:
    """Whether two accesses never touch the same element in the same iteration of a loop around both."""
    meeting = _meeting(a, b, structure, loop, one_iteration=True)
    if meeting is None or loop not in meeting.common:
        return False
    return meeting.never([f"a{k} = b{k}" for k in range(meeting.common.index(loop) + 1)])


def never_meets(
    access: Load | Store, array: Value, indices: Sequence[Value], structure: Structure, loop: Loop | None = None
) -> bool:
    """Whether no run of the access (or none in this loop) touches the element, while its indices stay the same."""
    first = element(access.array, access.indices, structure, loop)
    second = element(array, indices, structure, loop)
    if first is None or second is None or first.array is not second.array:
        return False
    names, loops = _Names(), {x: f"a{k}" for k, x in enumerate(structure.loops_around(structure.block_of[access]))}
    counters = _counters(loops)
    constraints = _domain(loops, structure, names)
    for found in (first, second):
        known = [i for i in (*found.indices, *found.inner) if i is not None]
        if not all(_is_negative_nowhere(index, loops, structure) for index in known):
            return False
    for x, y in zip(first.indices, second.indices, strict=True):
        if x is not None and y is not None:
            constraints.append(f"{names.text(x, counters)} = {names.text(y, counters)}")
    return _is_empty(list(loops.values()), constraints, names)


def runs(loop: Loop, structure: Structure) -> bool:
    """Whether a loop makes an iteration whenever the loops around it make one."""
    return _is_never_shorter(loop, structure, 1)


def length_is_difference(loop: Loop, structure: Structure) -> bool:
    """Whether a loop in steps of one makes as many iterations as its bounds are apart: they are in order."""
    return _step(loop, structure) == 1 and _is_never_shorter(loop, structure, 0)


def _is_never_shorter(loop: Loop, structure: Structure, least: int) -> bool:
    """Whether the bounds of a loop are at least so far apart, whenever the loops around it make an iteration."""
    step = _step(loop, structure)
    if step is None or loop.bounds is None:
        return False
    start, stop = (affine(b, structure) for b in loop.bounds[:2])
    if start is None or stop is None:
        return False
    names, loops = _Names(), {x: f"a{k}" for k, x in enumerate(structure.loops_around(structure.block_of[loop]))}
    first, last = (names.text(x, _counters(loops)) for x in ((start, stop) if step > 0 else (stop, start)))
    domain = _domain(loops, structure, names)
    domain += _lengths(names, structure)
    return _is_empty(list(loops.values()), [*domain, f"{last} - ({first}) < {least}"], names)


def exists(array: Value, indices: Sequence[Value], structure: Structure, block: Block) -> bool:
    """Whether the index is in bounds whenever the block runs, by the lengths of the array."""
    names, loops = _Names(), {x: f"a{k}" for k, x in enumerate(structure.loops_around(block))}
    domain = [*_domain(loops, structure, names), *_equal_numbers(block, structure, names)]
    for axis, index in enumerate(indices):
        place, length = affine(index, structure), _length(array, axis, structure)
        if place is None or length is None or not _is_negative_nowhere(place, loops, structure):
            return False
        ends = f"{names.text(place, _counters(loops))} >= {names.text(length, _counters(loops))}"
        sizes = [
            f"{names.parameters[v]} >= 0" for v in names.parameters if isinstance(structure.definition.get(v), Dim)
        ]
        if not _is_empty(list(loops.values()), [*domain, *sizes, ends], names):
            return False
    return True


def _equal_numbers(block: Block, structure: Structure, names: _Names) -> list[str]:
    """What the branches around a block have found equal, of what is computed at top level."""
    found: list[str] = []
    for inner in structure.blocks_around(block):
        branch = structure.owner.get(inner)
        work = [branch.condition] if isinstance(branch, If) and inner is branch.then else []
        while work:
            condition = structure.definition.get(work.pop())
            if isinstance(condition, Apply) and condition.primitive == "logical_and":
                work += condition.args
            elif isinstance(condition, Apply) and condition.primitive == "equal" and condition.args[0].type == INT:
                sides = [affine(a, structure) for a in condition.args if a.type == INT]
                known = [names.text(a, {}) for a in sides if a is not None and not _has_counter(a, structure)]
                found += [" = ".join(known)] if len(known) == 2 else []
    return found


def _has_counter(expression: Affine, structure: Structure) -> bool:
    return any(isinstance(structure.definition.get(value), Loop) for value, _ in expression.terms)


def fills(stores: Sequence[Store], sizes: Sequence[Value], structure: Structure, block: Block, border: int = 0) -> bool:
    """Whether the stores, in loops that a block always runs, reach every element of an array of these sizes.

    With a `border`, elements nearer to an end of an axis are exempt.
    """
    names = _Names()
    lengths = [affine(size, structure) for size in sizes]
    limits = [f"{border} <= e{k} < {names.text(n, {})} - {border}" for k, n in enumerate(lengths) if n is not None]
    return len(limits) == len(sizes) and _is_covered(" and ".join(limits), stores, structure, block, names)


def leaves_border(
    stores: Sequence[Store], sizes: Sequence[Value], structure: Structure, block: Block, border: int
) -> bool:
    """Whether no store, in loops that a block runs through, reaches an element near an end of an axis."""
    names = _Names()
    lengths = [affine(size, structure) for size in sizes]
    parts = [_reached(store, structure, block, names) for store in stores]
    if None in lengths or None in parts:
        return False
    limits = [f"(e{k} < {border} or e{k} >= {names.text(n, {})} - {border})" for k, n in enumerate(lengths) if n]
    reached = " or ".join(part for part in parts if part is not None)
    return _is_empty([f"e{k}" for k in range(len(sizes))], [f"({reached})", f"({' or '.join(limits)})"], names)


def reaches(stores: Sequence[Store], other: Store, structure: Structure, block: Block) -> bool:
    """Whether the stores, in loops that a block runs through, reach every element that another reaches."""
    names = _Names()
    wanted = _reached(other, structure, block, names)
    return wanted is not None and _is_covered(wanted, stores, structure, block, names)


def _is_covered(wanted: str, stores: Sequence[Store], structure: Structure, block: Block, names: _Names) -> bool:
    parts = [_reached(store, structure, block, names) for store in stores]
    known = [part for part in parts if part is not None]
    if not known:
        return False
    import islpy

    parameters = f"[{', '.join(names.parameters.values())}]"
    elements = f"[{', '.join(f'e{k}' for k in range(len(stores[0].indices)))}]"
    whole, covered = (f"{parameters} -> {{ {elements} : {text} }}" for text in (wanted, " or ".join(known)))
    return bool(islpy.Set(whole).is_subset(islpy.Set(covered)))


def _reached(store: Store, structure: Structure, block: Block, names: _Names) -> str | None:
    """The elements that a store reaches while a block runs once, if they are known exactly."""
    around = structure.loops_around(block)
    loops = {x: f"a{k}" for k, x in enumerate(structure.loops_around(structure.block_of[store])) if x not in around}
    places = [affine(i, structure) for i in store.indices]
    if not all(_is_exact(x, structure) for x in loops):
        return None
    conditions = _domain(loops, structure, names)
    for k, place in enumerate(places):
        if place is None:
            return None
        conditions.append(f"e{k} = {names.text(place, _counters(loops))}")
    exist = f"exists {', '.join(loops.values())} : " if loops else ""
    return f"({exist}{' and '.join(conditions)})"


def _is_exact(loop: Loop, structure: Structure) -> bool:
    """Whether the iterations of a loop are all the numbers between two that are affine."""
    return _step(loop, structure) in (1, -1) and all(_is_known(b, structure) for b in (loop.bounds or ())[:2])


def _is_choice(value: Value, structure: Structure) -> bool:
    """Whether a value is the smaller or the larger of two, perhaps with a constant added."""
    match structure.definition.get(value):
        case Apply(primitive="minimum" | "maximum"):
            return True
        case Apply(primitive="add" | "subtract", args=(first, second)):
            return second in structure.constants and _is_choice(first, structure)
    return False


def _is_known(bound: Value, structure: Structure) -> bool:
    """Whether `_limit` can say all that a bound says."""
    definition = structure.definition.get(bound)
    if affine(bound, structure) is not None:
        return True
    match definition:
        case Apply(primitive="add" | "subtract", args=(first, second)):
            return isinstance(structure.constants.get(second), int) and _is_known(first, structure)
        case Apply(primitive="minimum" | "maximum", args=args):
            return all(_is_known(a, structure) for a in args)
    return False


def _length(array: Value, axis: int, structure: Structure) -> Affine | None:
    """The length of an axis, in terms of values at top level."""
    definition = structure.definition.get(array)
    match definition:
        case Alloc(like=None):
            return affine(definition.shape[axis], structure)
        case Alloc(like=source) | Copy(array=source) if source is not None:
            return _length(source, axis, structure)
    for value, operation in structure.definition.items():
        if isinstance(operation, Dim) and operation.array is array and operation.axis == axis:
            return affine(value, structure)
    return None


@dataclass(frozen=True, slots=True)
class Element:
    """An element of an array at top level; `inner` are indices into views of it, before their offset is added."""

    array: Value
    indices: list[Affine | None]
    inner: list[Affine]


def element(
    array: Value,
    indices: Sequence[Value],
    structure: Structure,
    loop: Loop | None = None,
    *,
    one_iteration: bool = False,
) -> Element | None:
    """The array that an access touches, and the element of it: an allocation or parameter at top level, or any that was
    there before the loop, if its iterations are all that is compared; or, in one iteration, what that was given."""
    found: list[Affine | None] = [affine(i, structure) for i in indices]
    seen: list[Affine] = []
    definition = structure.definition.get(array)
    while isinstance(definition, View | Transpose):
        if isinstance(definition, Transpose):
            turned: list[Affine | None] = [None] * len(found)
            for position, axis in enumerate(definition.axes):
                turned[axis] = found[position]
            found = turned
        else:
            seen += [i for i in found if i is not None]
            inner, rest = list[Affine | None](), iter(found)
            for item in definition.items:
                if isinstance(item, Index):
                    inner.append(affine(item.value, structure))
                elif isinstance(item, Slice):
                    inner.append(_sliced(item, next(rest), structure))
                else:
                    next(rest)
            found = [*inner, *rest]
        array = definition.array
        definition = structure.definition.get(array)
    home = structure.home.get(array, structure.top)
    if loop is not None and (loop not in structure.loops_around(home) or (one_iteration and home is loop.body)):
        return Element(array, found, seen)
    is_own = definition is None or isinstance(definition, Alloc | Copy | Library | Call)
    return Element(array, found, seen) if home is structure.top and is_own else None


def _sliced(item: Slice, index: Affine | None, structure: Structure) -> Affine | None:
    if index is None or (item.step is not None and structure.constants.get(item.step) != 1):
        return None
    if item.start is None:
        return index
    start = affine(item.start, structure)
    return None if start is None or start.terms or start.constant < 0 else index.plus(start)


def affine(value: Value, structure: Structure, *, opaque: bool = True) -> Affine | None:
    """The value in terms of counters and what is computed at top level: by whatever means, if it may be `opaque`."""
    return _affine(value, structure, opaque, {})


def _affine(value: Value, structure: Structure, opaque: bool, found: dict[Value, Affine | None]) -> Affine | None:
    """The same; `found` has the forms of values that are operands more than once."""
    if value not in found:
        found[value] = _affine_of(value, structure, opaque, found)
    return found[value]


def _affine_of(value: Value, structure: Structure, opaque: bool, found: dict[Value, Affine | None]) -> Affine | None:
    if value in structure.constants:
        known = structure.constants[value]
        return Affine(known) if isinstance(known, int) else None
    definition = structure.definition.get(value)
    if isinstance(definition, Apply):
        args = [_affine(a, structure, opaque, found) for a in definition.args]
        if all(a is not None for a in args):
            known_args = [a for a in args if a is not None]
            match definition.primitive:
                case "add":
                    return known_args[0].plus(known_args[1])
                case "subtract":
                    return known_args[0].plus(known_args[1], -1)
                case "negative":
                    return known_args[0].times(-1)
                case "multiply":
                    for x, y in (known_args, known_args[::-1]):
                        if not x.terms:
                            return y.times(x.constant)
    if structure.home.get(value, structure.top) is structure.top and (opaque or not _is_choice(value, structure)):
        return Affine(0, ((value, 1),))
    if isinstance(definition, Dim) and structure.home.get(definition.array, structure.top) is structure.top:
        return Affine(0, ((value, 1),))
    if isinstance(definition, Loop) and definition.index is value and definition.counted:
        return Affine(0, ((value, 1),))
    return None


def _counters(names: dict[Loop, str]) -> dict[Value, str]:
    return {loop.index: name for loop, name in names.items() if loop.index is not None}


def _step(loop: Loop, structure: Structure) -> int | None:
    step = structure.constants.get(loop.bounds[2]) if loop.bounds is not None and loop.counted else None
    return step if isinstance(step, int) and step != 0 else None


def _domain(loops: dict[Loop, str], structure: Structure, names: _Names) -> list[str]:
    """The iterations of the loops; a bound that is not affine bounds nothing."""
    counters, found = _counters(loops), []
    for loop, name in loops.items():
        step = _step(loop, structure)
        if step is None or loop.bounds is None:
            continue
        start, stop, _ = loop.bounds
        limits = ((start, ">="), (stop, "<")) if step > 0 else ((stop, ">"), (start, "<="))
        for bound, relation in limits:
            limit = _limit(name, relation, bound, 0, structure, names, counters)
            if limit is not None:
                found.append(limit)
    return found


def _limit(
    name: str,
    relation: str,
    bound: Value,
    offset: int,
    structure: Structure,
    names: _Names,
    counters: dict[Value, str],
) -> str | None:
    """The constraint `name relation bound + offset`. The bound may be a minimum or a maximum of others."""
    definition = structure.definition.get(bound)
    known = affine(bound, structure, opaque=False)
    if known is not None:
        return f"{name} {relation} {names.text(known, counters)} + {offset}"
    match definition:
        case Apply(primitive="add" | "subtract", args=(first, second)):
            amount = structure.constants.get(second)
            if isinstance(amount, int):
                offset += amount if definition.primitive == "add" else -amount
                return _limit(name, relation, first, offset, structure, names, counters)
        case Apply(primitive="minimum" | "maximum", args=args):
            parts = [_limit(name, relation, a, offset, structure, names, counters) for a in args]
            is_both = (definition.primitive == "minimum") == relation.startswith("<")
            limits = [part for part in parts if part is not None]
            if is_both or len(limits) == len(parts):
                return f"({(' and ' if is_both else ' or ').join(limits)})" if limits else None
            return None
    known = affine(bound, structure)
    return None if known is None else f"{name} {relation} {names.text(known, counters)} + {offset}"


def _lengths(names: _Names, structure: Structure) -> list[str]:
    """The constraint that lengths of axes are not negative."""
    return [f"{name} >= 0" for v, name in names.parameters.items() if isinstance(structure.definition.get(v), Dim)]


def _before(loop: Loop, level: int, structure: Structure) -> str:
    step = _step(loop, structure)
    if step is None:
        return "0 = 0"  # nothing is known about the order of the iterations
    return f"a{level} < b{level}" if step > 0 else f"a{level} > b{level}"


def _is_negative_nowhere(index: Affine, loops: dict[Loop, str], structure: Structure) -> bool:
    """A negative index would count from the end."""
    names = _Names()
    constraints = [*_domain(loops, structure, names), f"{names.text(index, _counters(loops))} < 0"]
    sizes = [v for v in names.parameters if isinstance(structure.definition.get(v), Dim | Coordinate)]
    constraints += [f"{names.parameters[v]} >= 0" for v in sizes]
    return _is_empty(list(loops.values()), constraints, names)


def never_negative(expression: Affine, block: Block, structure: Structure) -> bool:
    """Whether an expression is nonnegative whenever the block runs."""
    loops = {x: f"a{k}" for k, x in enumerate(structure.loops_around(block))}
    return _is_negative_nowhere(expression, loops, structure)


def _is_empty(variables: list[str], constraints: list[str], names: _Names) -> bool:
    parameters = ", ".join(names.parameters.values())
    return _is_empty_set(f"[{parameters}] -> {{ [{', '.join(variables)}] : {' and '.join(constraints) or '0 = 0'} }}")


@functools.lru_cache(maxsize=4096)  # names are numbered, so equal queries have equal texts
def _is_empty_set(text: str) -> bool:
    import islpy

    return bool(islpy.Set(text).is_empty())
