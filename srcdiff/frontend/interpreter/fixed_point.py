"""Loops: the body is read until the types of the carried values reach a fixed point."""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields, replace
from typing import Any, NoReturn

from srcdiff.diagnostics import InternalError, Refusal
from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    List,
    Object,
    Poison,
    Slot,
    Static,
    is_array_value,
    scope_numbers,
)
from srcdiff.frontend.domain.lattice import (
    describe,
    handles,
    is_owned,
    join,
    leaf_types,
    loosened,
    mentioned,
    objects_in,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import CONTINUES, GOES_ON, RAISES, Cells, Key, Location, State, is_variable, name_at
from srcdiff.frontend.interpreter.dictionaries import is_changing, note_orders
from srcdiff.frontend.interpreter.forks import closing_escapes, escape_again, or_die
from srcdiff.frontend.interpreter.joins import (
    absent,
    asks_whose,
    conflict_at,
    forget_elements,
    instance_description,
    joined_description,
    note_mixed,
    owned_description,
    possible,
)
from srcdiff.frontend.interpreter.list_storage import contents_described
from srcdiff.frontend.interpreter.materialization import settle
from srcdiff.frontend.interpreter.number_kinds import is_pythons
from srcdiff.frontend.interpreter.representation import as_value, fresh_values, leaves_of, nothing_of
from srcdiff.frontend.source.liveness import read_after_iterations
from srcdiff.frontend.source.scopes import assigned_names, yields
from srcdiff.ir.nodes import Block, Loop, Operation, Parallel, Value
from srcdiff.ir.primitives import length_of_range
from srcdiff.ir.types import INT, Array
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.descriptions import Description

_MOST_READINGS = 25  # of one loop; types only widen, so a few readings suffice
_MOST_READINGS_AGAIN = 4  # of a loop that has reached no fixed point before: around it, there may be more loops


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One reading of a loop's body under assumed types."""

    problems: int
    carried: dict[Location, Description]
    params: list[Value]
    after: State
    operations: list[Operation]
    index: Value | None
    test: tuple[list[Operation], Value] | None
    place: Any
    again: bool
    """Whether an assumption about arrays does not hold."""


def read_loop(
    reader: Reader,
    node: ast.AST,
    statement: ast.For | ast.While | None,
    bounds: tuple[Value, Value, Value] | None,
    test: Callable[[], Value] | None,
    body: Callable[[Value | None], None],
    parallel: Parallel | None = None,
) -> Abstract:
    """Read a loop until its carried values reach a fixed point. `statement` is the user's loop, if there is one.

    Returns the exits of the loop.
    """
    settle(reader)  # computing pending arrays calls functions, whose names must not become the loop's
    before, span, newest = reader.state, reader.span, next(scope_numbers)
    place = (id(node), reader.path)
    assigned, passing = assigned_by(reader, statement)
    carried = first_guess(reader, place, before.cells, assigned)
    made_here, early = reader.made_here, tuple(reader.early)
    for iteration in itertools.count():
        reader.made_here = made_here  # the origins of new arrays must not depend on the reading
        reader.early = list(early)
        with awaiting(reader, statement):
            attempt = one_pass(reader, place, before, carried, passing, newest, bounds, test, body)
        # doubts refer to memory of program points, which the next iteration shares
        before = replace(before, doubts=attempt.after.doubts, same_lists=attempt.after.same_lists)
        if attempt.carried == carried and not attempt.again:
            break
        if iteration > (_MOST_READINGS_AGAIN if place in reader.unsettled else _MOST_READINGS):
            reader.unsettled.add(place)
            refuse_unsettled(reader, node, before.cells, carried, attempt)
        carried = next_guess(reader, before.cells, carried, attempt, statement)
    reader.learned[place] = carried
    reader.span, reader.state = span, before
    if reader.early and not reader.context.awaited:
        (problem, *others), reader.early = reader.early, []
        reader.problems += [p for p in others if p not in reader.problems]
        raise Refusal(problem)  # no iteration assigns it
    code = finish_loop(reader, attempt, bounds, node in reader.sure, parallel)
    if statement is None and reader.context.handlers:
        reader.cells[reader.exit_key] = code
        escape_again(reader)
    return code


def first_guess(reader: Reader, place: Any, before: Cells, assigned: list[Key]) -> dict[Location, Description]:
    """The first guess of the carried values: those of an earlier reading, and the names that the loop assigns."""
    scopes = {k[0] for k in before if isinstance(k, tuple)}
    carried = {
        k: d
        for k, d in reader.learned.get(place, {}).items()
        if all(h in before for h in mentioned(d)) and (k in before or is_still_there(reader, k, scopes))
    }
    for key in assigned:
        if key not in carried and key in before:
            carried[key] = loosened(describe(before[key]))
    return {k: join(d, head_description(reader, k, d, before)) for k, d in carried.items()}


def is_still_there(reader: Reader, key: Location, scopes: set[int]) -> bool:
    """Whether a variable still exists when a loop is read again: the object of an attribute may be gone."""
    return isinstance(key, tuple) and (key[0] not in reader.objects or key[0] in scopes)


def next_guess(
    reader: Reader,
    before: Cells,
    carried: dict[Location, Description],
    attempt: _Attempt,
    statement: ast.For | ast.While | None,
) -> dict[Location, Description]:
    """The carried values after an attempt. Names that cannot be carried keep the reason."""
    after = attempt.after.cells
    poisoned = [k for k, x in after.items() if isinstance(x, Poison) and k in attempt.carried]
    if not any(attempt.carried[k] != carried.get(k) for k in poisoned):
        del reader.problems[attempt.problems :]  # the next reading finds them again
    reader.poisoned |= {k: after[k] for k in poisoned}
    for key in attempt.carried.keys() - set(poisoned):
        if leaf_types(attempt.carried[key]) is None and key in after:
            changes_its_type(reader, key, before.get(key, absent(reader, key)), after[key], statement)
    return attempt.carried


def refuse_unsettled(
    reader: Reader, node: ast.AST, before: Cells, carried: dict[Location, Description], attempt: _Attempt
) -> NoReturn:
    """Refuse a loop whose types do not reach a fixed point."""
    if any(isinstance(x, Slot) for x in before.values()):
        message = "a loop replaces a list of lists while another name refers to one of its elements"
        reader.refuse("SD206", node, message, help_="copy the element first: `list(...)`")
    after = attempt.after.cells
    for key in [k for k in carried.keys() | attempt.carried.keys() if carried.get(k) != attempt.carried.get(k)]:
        made = sorted({o.kind.__name__ for o in objects_in(after.get(key, MISSING)) if not is_changing(o)})
        if made and is_variable(key):
            message = (
                f"`{name_at(key)}` may be any of the instances of `{made[0]}` that iterations make, and these have "
            )
            message += "other names, or attributes that are not numbers or arrays"
            help_ = "copy the attributes that you need, or make all instances before the loop and keep an index"
            reader.refuse("SD206", node, message, help_=help_)
    unsettled = {k: d for k, d in {**carried, **attempt.carried}.items() if is_variable(k)}
    named = [name_at(k) for k in unsettled if carried.get(k) != attempt.carried.get(k)]
    for name in named or [name_at(k) for k, d in unsettled.items() if d.kind == "poison"]:
        message = f"`{name}` has different types in different iterations of the loop"
        reader.refuse("SD202", node, message, help_="use another name for one of the types")
    raise InternalError("the types of the variables in a loop reach no fixed point")


@contextlib.contextmanager
def awaiting(reader: Reader, loop: ast.For | ast.While | None) -> Iterator[None]:
    """Read the body of a loop. Names that it assigns may exist from the second iteration on."""
    assigned, passing = assigned_by(reader, loop)
    with reader.within(awaited=reader.context.awaited | (set(assigned) - passing)):
        yield


def changes_its_type(
    reader: Reader, key: Location, first: Abstract, then: Abstract, loop: ast.For | ast.While | None
) -> None:
    """Report a name that has one type before a loop and another after an iteration."""
    problem = conflict_at(reader, key, first, then)
    reader.poisoned[key] = Poison(problem)
    if problem is not None and loop is not None:
        reader.culprits.setdefault(problem, loop)


def assigned_by(reader: Reader, loop: ast.For | ast.While | None) -> tuple[list[Key], set[Key]]:
    """The names that a loop assigns, and those among them that are not carried."""
    if loop is None:
        return [], set()
    names = assigned_names(loop)
    read = read_after_iterations(reader.frame.node).get(loop, names)
    found, passing = [(reader.frame.number, n) for n in sorted(names)], {(reader.frame.number, n) for n in names - read}
    consumer = reader.context.consumer
    if consumer is not None and consumer.loop is not None and yields(loop):
        with reader.within(**{f.name: getattr(consumer.context, f.name) for f in fields(consumer.context)}):
            more, more_passing = assigned_by(reader, consumer.loop)
        return [*found, *more], passing | more_passing
    return found, passing


def head_description(reader: Reader, key: Location, d: Description, before: Cells) -> Description:
    """The description of a carried name before the loop."""
    x = before.get(key, absent(reader, key))
    if isinstance(x, Object) and d.kind == "instance":
        return instance_description(reader, key, x, before)
    if handles(x) and is_owned(d):
        there = owned_description(reader, key, x, before, before)
    else:
        there = contents_described(reader, x, before) if handles(x) and d.kind == "stored" else describe(x)
    return d if name_at(key) == "%return" and there.kind == "missing" else loosened(there)


def one_pass(
    reader: Reader,
    place: Any,
    before: State,
    carried: dict[Location, Description],
    passing: set[Key],
    newest: int,
    bounds: tuple[Value, Value, Value] | None,
    test: Callable[[], Value] | None,
    body: Callable[[Value | None], None],
) -> _Attempt:
    """Read the body from a state in which the carried values have the guessed types."""
    problems = len(reader.problems)
    reader.state = before
    params = carry(reader, place, before.cells, carried)
    assumed = reader.assume(place, carried_arrays(before.cells, carried), carried_arrays(reader.cells, carried))
    reader.cells[reader.exit_key] = Static(GOES_ON)
    head = reader.state
    test_block = None
    if test is not None:
        with reader.block() as test_operations:
            condition = test()
        test_block = (test_operations, condition)
        reader.state = reader.state.with_cells(head.cells)  # the body does not see assignments in the test
    index = None if bounds is None else counter(reader, bounds)
    with reader.block() as operations, closing_escapes(reader, in_new_block=True):
        or_die(reader, lambda: body(index))
        settle(reader)
    after = reader.state
    if after.dead:
        after = after.with_cells({**head.cells, reader.exit_key: Static(RAISES)})
    unordered = set(reader.unordered)
    note_orders(reader, head.cells, after.cells)
    found = carried_after(reader, before.cells, head.cells, after.cells, carried, passing, newest)
    again = not reader.dead and reader.learn(place, assumed, carried_arrays(after.cells, carried))
    again = learn_whose(reader, place, head.cells, after.cells, carried) or again or reader.unordered != unordered
    return _Attempt(problems, found, params, after, operations, index, test_block, place, again)


def carry(reader: Reader, place: Any, before: Cells, carried: dict[Location, Description]) -> list[Value]:
    """Give the carried values new run-time values, for any iteration. Names that cannot be carried are poisoned."""
    params: list[Value] = []
    for key, description in carried.items():
        if leaf_types(description) is None:
            default = Poison(conflict_at(reader, key, before.get(key, absent(reader, key)), MISSING))
            reader.cells[key] = reader.poisoned.get(key, default)
            continue
        fresh, values = fresh_values(reader, description, name_at(key))
        reader.cells[key] = fresh
        note_mixed(reader, key, values)
        assume_pythons(reader, place, key, before.get(key), fresh)
        params += values
    for key, description in carried.items():
        forget_elements(reader, reader.cells, description, before.get(key, absent(reader, key)), before)
    return params


def assume_pythons(reader: Reader, place: Any, key: Location, first: Abstract | None, carried: Abstract) -> None:
    """Assume that a number is Python's in all iterations if it is before the loop, where this matters."""
    if not isinstance(carried, Value) or isinstance(carried.type, Array) or not asks_whose(reader):
        return
    if first is not None and is_pythons(reader, first) and (place, key) not in reader.not_pythons:
        reader.pythons.add(carried)


def learn_whose(reader: Reader, place: Any, head: Cells, after: Cells, carried: dict[Location, Description]) -> bool:
    """Whether the loop must be read again, because a number is NumPy's after the first iteration."""
    wrong = [
        key
        for key in carried
        if key in after and head.get(key) in reader.pythons and not is_pythons(reader, after[key])
    ]
    reader.not_pythons |= {(place, key) for key in wrong}
    return bool(wrong) and asks_whose(reader)


def counter(reader: Reader, bounds: tuple[Value, Value, Value]) -> Value:
    """The counter of a `for`."""
    index = Value(INT, "i")
    reader.counters[index] = bounds
    start, stop, step = bounds
    ends_at_zero = reader.is_natural(stop) or reader.constants.get(stop) == -1
    if reader.is_natural(start) if reader.constants.get(step, 0) > 0 else step in reader.constants and ends_at_zero:
        reader.a_length(index)
    return index


def carried_after(
    reader: Reader,
    before: Cells,
    head: Cells,
    after: Cells,
    carried: dict[Location, Description],
    passing: set[Key],
    newest: int,
) -> dict[Location, Description]:
    """The carried values joined with those after the body. Objects after `newest` were created in the body."""
    found = dict(carried)
    for key, x in after.items():
        first = key not in before and key not in carried
        if (
            key == reader.exit_key
            or (head.get(key) is x and not is_whole_instance(carried.get(key)))
            or (first and (key in passing or is_inner(reader, key, newest)))
        ):
            continue
        old = carried.get(key)
        if old is None:
            new = joined_description(reader, key, before.get(key, absent(reader, key)), before, x, after, before)
        elif isinstance(x, Object) and old.kind in ("object", "instance"):
            new = with_instance(reader, key, old, before, x, after)
        elif is_owned(old) and handles(x):
            new = join(old, owned_description(reader, key, x, after, before))
        elif handles(x):
            new = joined_description(reader, key, before.get(key, absent(reader, key)), before, x, after, before)
        else:
            new = join(old, describe(x), flags=name_at(key) != "%return")
        if old is None or new != old:
            found[key] = loosened(new)
    return found


def is_whole_instance(d: Description | None) -> bool:
    """Whether a loop carries an object by its attributes. They may change while the name stays the same."""
    return d is not None and d.kind == "instance"


def with_instance(
    reader: Reader, key: Location, old: Description, before: Cells, x: Object, after: Cells
) -> Description:
    """The carried form of a name that is an object after the body: the object itself, or its attributes."""
    if old.kind == "object" and old.detail is x:
        return old
    first = instance_description(reader, key, before.get(key, MISSING), before) if old.kind == "object" else old
    return join(first, instance_description(reader, key, x, after))


def carried_arrays(cells: Cells, carried: dict[Location, Description]) -> dict[Hashable, Value]:
    """The arrays among the carried values."""
    found = {key: cells.get(key) for key in carried}
    return {key: x for key, x in found.items() if is_array_value(x)}


def is_inner(reader: Reader, key: Location, newest: int) -> bool:
    """Whether it belongs to a call, an object or a list created in the body, so that no other iteration sees it."""
    if not isinstance(key, tuple):
        return True
    owner = reader.objects.get(key[0])
    return key[0] > (reader.frame.number if owner is None else newest)


def finish_loop(
    reader: Reader,
    attempt: _Attempt,
    bounds: tuple[Value, Value, Value] | None,
    sure: bool = False,
    parallel: Parallel | None = None,
) -> Abstract:
    """Write the loop, from the state before it to the state after it."""
    before, after, behind = reader.state, attempt.after, reader.state
    inits: list[Value] = []
    outs: list[Value] = []
    yields: list[Value] = []
    code = after.cells.get(reader.exit_key, Static(GOES_ON))
    for key, description in attempt.carried.items():
        if leaf_types(description) is None:
            a, b = before.cells.get(key, absent(reader, key)), after.cells.get(key, absent(reader, key))
            poison = b if isinstance(b, Poison) else Poison(conflict_at(reader, key, a, b))
            behind = behind.with_cells({**behind.cells, key: poison})
            continue
        reader.state = before
        inits += leaves_of(reader, before.cells.get(key, absent(reader, key)), description)
        before, reader.state = reader.state, after
        with reader.into(attempt.operations):
            yields += leaves_of(reader, after.cells.get(key, absent(reader, key)), description)
        after, reader.state = reader.state, behind
        fresh, values = fresh_values(reader, description, name_at(key))
        reader.cells[key] = fresh
        behind = reader.state
        note_mixed(reader, key, values)
        assume_pythons(reader, attempt.place, key, before.cells.get(key), fresh)
        outs += values
    reader.assume(
        attempt.place, carried_arrays(before.cells, attempt.carried), carried_arrays(behind.cells, attempt.carried)
    )
    reader.state = behind
    for key, description in attempt.carried.items():
        for end in (before, after):
            forget_elements(reader, reader.cells, description, end.cells.get(key, MISSING), end.cells)
    params = list(attempt.params)
    if sure or runs_at_least_once(reader, bounds, attempt):
        last_values(reader, after, attempt, params, inits, yields, outs)
    leaves = not (isinstance(code, Static) and code.value in (GOES_ON, CONTINUES))
    out_code: Abstract = Static(GOES_ON)
    if leaves:
        with reader.into(attempt.operations):
            number = as_value(reader, code)
            stops = reader.apply("greater", number, reader.const(0))
            yields += [number, stops]
        inits.append(reader.const(GOES_ON))
        params.append(Value(INT, "exit_code"))
        out_code = Value(INT, "exit_code")
        reader.codes[out_code] = (possible(reader, code) - {CONTINUES}) | {GOES_ON}
        outs.append(out_code)
    test_block = None if attempt.test is None else Block(tuple(attempt.test[0]), (attempt.test[1],))
    reader.add(
        Loop(
            attempt.index,
            bounds,
            tuple(params),
            tuple(inits),
            test_block,
            Block(tuple(attempt.operations), tuple(yields)),
            tuple(outs),
            Value(INT, "iterations"),
            leaves,
            parallel,
            span=reader.span,
        )
    )
    return out_code


def runs_at_least_once(reader: Reader, bounds: tuple[Value, Value, Value] | None, attempt: _Attempt) -> bool:
    if bounds is None or attempt.test is not None:
        return False
    known = [reader.constants.get(b) for b in bounds]
    return all(isinstance(k, int) for k in known) and length_of_range(*known) > 0  # type: ignore[arg-type]


def last_values(
    reader: Reader,
    after: State,
    attempt: _Attempt,
    params: list[Value],
    inits: list[Value],
    yields: list[Value],
    outs: list[Value],
) -> None:
    """A name that the last iteration certainly assigned has that value, whatever its value before the loop."""
    for key, description in attempt.carried.items():
        x = after.cells.get(key, absent(reader, key))
        if isinstance(x, List) and handles(after.cells[x]):
            continue  # other names may refer to the lists in it
        last = loosened(owned_description(reader, key, x, after.cells) if isinstance(x, List) else describe(x))
        types = leaf_types(last) if last.kind in ("value", "tuple", "owned", "optional") else None
        if types is None or last == description or mentioned(last):
            continue
        inits += [nothing_of(reader, t) for t in types]
        params += [Value(t, name_at(key)) for t in types]
        behind, reader.state = reader.state, after
        with reader.into(attempt.operations):
            yields += leaves_of(reader, x, last)
        after, reader.state = reader.state, behind
        fresh, values = fresh_values(reader, last, name_at(key))
        reader.cells[key] = fresh
        outs += values
