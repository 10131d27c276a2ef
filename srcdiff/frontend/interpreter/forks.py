"""Branches: the state is forked, both sides are read, and the two states are joined.

Inside a `try`, an operation that raises a caught exception is a branch too: the rest of the statement is written into
the other side, and both sides meet at the end of the statement. A number says how it was left.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from srcdiff.frontend.domain.abstract_values import Abstract, Lazy, Maybe, Optional, Static
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import FIRST_CAUGHT, Escaped, Key, Location, NeverReturns, State, UnknownResult
from srcdiff.frontend.interpreter.joins import Side, caught, join_states, possible
from srcdiff.frontend.interpreter.materialization import forced, settle
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.ir.nodes import Apply, Block, If, Value
from srcdiff.ir.types import INT
from srcdiff.quick_dataclasses import dataclass


def branch_on(reader: Reader, condition: Value, then: Callable[[], None], orelse: Callable[[], None]) -> None:
    """A branch in an expression. If a side raises a caught exception, so does the expression."""
    fork(reader, condition, then, orelse)
    escape_again(reader)


def fork(reader: Reader, condition: Value, then: Callable[[], None], orelse: Callable[[], None]) -> None:
    """Fork the state, read both sides, and join their states."""
    settle(reader)
    before, span = reader.state, reader.span
    sides: list[Side] = []
    for read in (then, orelse):
        reader.state = before
        reader.same = reader.with_order(condition, read is then)
        with reader.block() as operations, closing_escapes(reader, in_new_block=True):
            or_die(reader, read)
            settle(reader)
        sides.append(Side(reader.state, operations))
    reader.span, reader.state = span, before
    meet(reader, condition, *sides)


def meet(reader: Reader, condition: Value, first: Side, second: Side) -> None:
    """Continue after a branch."""
    if first.state.dead or second.state.dead:
        known = reader.with_order(condition, second.state.dead and not first.state.dead)
        # Only the other side reaches the code that follows, so it need not be nested.
        if not first.state.dead:
            condition = reader.apply("logical_not", condition)
            first, second = second, first
        reader.add(If(condition, Block(tuple(first.operations)), Block(), span=reader.span))
        reader.operations.extend(second.operations)
        reader.state = replace(second.state, same=known)
        return
    join_states(reader, condition, first, second)


def or_die(reader: Reader, read: Callable[[], None]) -> None:
    """Read something that may raise on every path. If it does, only this path ends here."""
    try:
        read()
    except NeverReturns:
        reader.die()
    except Escaped as escaped:
        reader.cells[reader.exit_key] = escaped.code
    except UnknownResult:
        if not reader.units_in_progress:
            raise
        reader.die()


def left_by_branches(reader: Reader, key: Key) -> Abstract:
    """The values of a name at the ends of a branch. If no side reaches its end, this path ends."""
    if reader.dead:
        raise NeverReturns
    return reader.cells.pop(key)


def take_side(reader: Reader, key: tuple[int, str], side: Callable[[], None], result: list[Abstract]) -> None:
    side()
    reader.cells[key] = result.pop()


# -- exceptions that are caught ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Escape:
    """A place that may raise. The code that follows is written into the other side of a branch."""

    condition: Value
    raised: State
    before: State


def truth_of_flag(reader: Reader, flag: Abstract, code: Abstract, among: frozenset[int]) -> bool | None:
    """The value of a flag if the statements were left through one of these exits, if that decides it."""
    if isinstance(flag, Static):
        return bool(flag.value)
    met = reader.exits_met.get(code) if isinstance(code, Value) else None
    if met is None or not isinstance(flag, Value) or flag not in met.flags:
        return None
    sides = [
        truth_of_flag(reader, one, way, among)
        for one, way in zip(met.flags[flag], met.sides, strict=True)
        if possible(reader, way) & among
    ]
    return sides[0] if sides and all(s == sides[0] for s in sides) else None


def knowing_exit(reader: Reader, code: Abstract, among: frozenset[int]) -> None:
    """Continue under the assumption that the statements were left through one of these exits."""
    know_flags(reader, code, among)
    reader.cells[reader.exit_key] = narrowed(reader, code, among)


def know_flags(reader: Reader, code: Abstract, among: frozenset[int]) -> None:
    """Update the flags of names: some exits imply that a name is assigned, others that it is not."""
    for key, x in list(reader.state.cells.items()):
        if not isinstance(x, Maybe | Optional):
            continue
        truth = truth_of_flag(reader, x.flag, code, among)
        if truth:
            reader.cells[key] = x.value
        elif truth is False and isinstance(x, Maybe):
            del reader.cells[key]
        elif truth is False:
            reader.cells[key] = Static(None)


def narrowed(reader: Reader, code: Abstract, among: frozenset[int]) -> Abstract:
    """An exit code that can only be one of these."""
    left = possible(reader, code) & among
    if len(left) == 1 or isinstance(code, Static):
        return Static(next(iter(left))) if left else code
    out = Value(INT, "exit_code")
    reader.add(Apply(out, "positive", (as_value(reader, code),), span=reader.span))
    reader.codes[out] = left
    if isinstance(code, Value) and code in reader.exits_met:
        reader.exits_met[out] = reader.exits_met[code]
    return out


def escape(reader: Reader, condition: Value, code: Abstract, changes: Mapping[Location, Abstract]) -> None:
    """Leave the statement under a condition. The rest of the statement is written into the other side."""
    settle(reader)
    before = reader.state
    raised = before.with_cells({**before.cells, reader.exit_key: code, **changes})
    reader.escapes.append(Escape(condition, raised, before))
    reader.stack.append(reader.operations)
    reader.operations = []
    reader.level += 1
    reader.same = reader.with_order(condition, False)


def escape_again(reader: Reader) -> None:
    """Leave the statement if a part of it, read as a separate block, has raised a caught exception."""
    code = reader.exit
    if reader.context.handlers and not reader.dead and caught(possible(reader, code)):
        leave_by(reader, code)
        ways = possible(reader, code)
        reader.cells[reader.exit_key] = narrowed(reader, code, ways - caught(ways))


def leave_by(reader: Reader, code: Abstract) -> None:
    """Leave the statement if this flag says that a caught exception was raised."""
    ways = caught(possible(reader, code))
    if not ways:
        return
    if isinstance(code, Static):
        raise Escaped(code)
    others = possible(reader, code) - ways
    if not others:
        raise Escaped(code)
    escape(reader, is_among(reader, code, ways), narrowed(reader, code, ways), {})
    know_flags(reader, code, others)


@contextlib.contextmanager
def closing_escapes(reader: Reader, *, in_new_block: bool) -> Iterator[None]:
    """Read a block or a statement. All paths that have left it meet at its end."""
    if not reader.context.handlers:
        yield
        return
    level, count, depth = reader.level, len(reader.escapes), len(reader.stack)
    reader.level = depth if depth == level + in_new_block else -1
    try:
        yield
        while len(reader.escapes) > count:
            end_escape(reader)
    except BaseException:
        reader.drop_escapes(count)
        raise
    finally:
        reader.level = level


def end_escape(reader: Reader) -> None:
    """Join the two sides of a place that may have raised."""
    if not reader.dead:
        settle(reader)
        for key, x in list(reader.state.cells.items()):
            if isinstance(x, Lazy):
                reader.cells[key] = forced(reader, x)
    made, normal = reader.escapes.pop(), Side(reader.state, reader.operations)
    reader.operations = reader.stack.pop()
    reader.level -= 1
    reader.state = made.before
    meet(reader, made.condition, Side(made.raised, []), normal)


def is_among(reader: Reader, code: Abstract, wanted: frozenset[int]) -> Value:
    """Whether the statements were left through one of these exits."""
    met = reader.exits_met.get(code) if isinstance(code, Value) else None
    if met is not None:
        then, orelse = (possible(reader, way) & possible(reader, code) for way in met.sides)
        if then <= wanted and not orelse & wanted:
            return met.condition
        if orelse <= wanted and not then & wanted:
            return reader.apply("logical_not", met.condition)
    number, ways = as_value(reader, code), possible(reader, code)
    if wanted >= caught(ways) and not wanted - caught(ways):
        return reader.apply("greater_equal", number, reader.const(FIRST_CAUGHT))
    first, *others = sorted(wanted & ways)
    found = reader.apply("equal", number, reader.const(first))
    for other in others:
        found = reader.apply("logical_or", found, reader.apply("equal", number, reader.const(other)))
    return found
