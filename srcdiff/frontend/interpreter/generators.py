"""Generators: the consumer's code is read in place of each `yield`.

    def squares(n):                 for s in squares(4):        for k in range(4):
        for k in range(n):              total += s                  s = k * k
            yield k * k                                             total += s

The body does not run before the generator is consumed, as in Python. An exit of the consuming loop, `break` or
`return`, leaves the generator too.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

from srcdiff.diagnostics import Problem, Refusal
from srcdiff.frontend.domain.abstract_values import MISSING, Abstract, Generated, Poison, Static
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import CONTINUES, GOES_ON, RAISES, RETURNS, Context, Frame, NeverReturns
from srcdiff.frontend.interpreter.evaluation import evaluate
from srcdiff.frontend.interpreter.forks import is_among, leave_by
from srcdiff.frontend.interpreter.joins import caught, possible
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.statements import read_statements
from srcdiff.frontend.interpreter.tables import expression, goes_through
from srcdiff.frontend.source.scopes import inner_scopes
from srcdiff.ir.nodes import Value
from srcdiff.quick_dataclasses import dataclass

_FRESH, _SPENT, _LEFT = Static("fresh"), Static("spent"), Static("left")
"""The state of a generator: how far it has been consumed."""

_ITEM = "%item"
"""The element that `yield from` passes on."""


@dataclass(frozen=True, eq=False, slots=True)
class Consumer:
    """The consumer of a generator that is being read."""

    take: Callable[[Abstract], None]
    """Reads the use of an element."""
    context: Context
    """The place of the consumer."""
    loop: ast.For | None
    """The user's loop, if there is one."""
    ways: set[int] = field(default_factory=set)
    """The possible exits of its body."""
    is_context: bool = False
    """Whether it is a `with`. Then the generator continues after every exit of the body except an exception."""


def made_generator(reader: Reader, function: Any, frame: Frame, bound: dict[str, Abstract]) -> Generated:
    """The result of a call of a generator function."""
    frame = replace(frame, locals=frame.locals | {_ITEM})
    made = Generated(frame.name, function, frame, bound)
    reader.cells[(made.number, "%spent")] = _FRESH
    return made


@goes_through(Generated)
def go_through_generator(
    reader: Reader, x: Generated, take: Callable[[Abstract], None], node: ast.AST, loop: ast.For | None
) -> Abstract:
    """Read the body of a generator, with the use of an element in place of each `yield`.

    Returns the exits, as for a loop.
    """
    state = reader.cells.get((x.number, "%spent"), MISSING)
    if not isinstance(state, Static):
        message = f"`{x.name}(...)` may have been consumed already"
        problem = Problem("SD104", message, reader.span_of(node), help="make a list of it: `list(...)`")
        either = state.problem if isinstance(state, Poison) else None
        if either in reader.culprits:
            reader.culprits[problem] = reader.culprits[either]  # the code that follows may be read for each case
        raise Refusal(problem)
    if state == _SPENT:
        return Static(GOES_ON)
    if state == _LEFT:
        message = f"`{x.name}(...)` is consumed again, after a loop over it has ended early"
        reader.refuse("SD104", node, message, help_="consume it once, or make a list of it: `list(...)`")
    identity = (x.function, "generator")
    active = reader.context.active_calls
    if any(identity == call for call, _ in active):
        message = f"`{x.name}` is a recursive generator, which is not supported"
        reader.refuse("SD104", node, message, help_="write a function that appends to a list")
    consumer = Consumer(take, reader.context, loop)
    before = reader.exit
    reader.cells[reader.exit_key] = Static(GOES_ON)
    reader.cells[(x.number, "%spent")] = _SPENT
    run_generator(reader, x, consumer, (*active, (identity, identity)), node)
    code = reader.exit
    if consumer.ways - {GOES_ON, CONTINUES}:
        reader.cells[(x.number, "%spent")] = _LEFT
    if isinstance(code, Value):
        reader.codes[code] = frozenset(consumer.ways | {GOES_ON}) - {CONTINUES}
    reader.cells[reader.exit_key] = before
    return code


def go_through_context(reader: Reader, x: Generated, take: Callable[[Abstract], None], node: ast.AST) -> None:
    """Read a generator whose only `yield` stands for the body of a `with`."""
    consumer = Consumer(take, reader.context, None, is_context=True)
    reader.cells[reader.exit_key] = Static(GOES_ON)
    identity = (x.function, "generator")
    run_generator(reader, x, consumer, (*reader.context.active_calls, (identity, identity)), node)
    code = reader.exit
    if isinstance(code, Value):
        reader.codes[code] = frozenset(consumer.ways | {GOES_ON})


def run_generator(reader: Reader, x: Generated, consumer: Consumer, calls: Any, node: ast.AST) -> None:
    """Read the body of a generator, in a frame of its own."""
    frame, span = x.frame.again(), reader.span
    assert isinstance(frame.node, ast.FunctionDef)
    reader.cells.update({(frame.number, name): value for name, value in x.bound.items()})
    with (
        reader.led_into(frame.file, span),
        reader.at(span),
        reader.within(
            frame=frame,
            path=(*reader.path, id(node)),
            active_calls=calls,
            loop_depth=0,
            exits=frame.number,
            consumer=consumer,
        ),
    ):
        reader.cells[reader.exit_key] = Static(GOES_ON)
        read_statements(reader, frame.node.body)
        code = reader.cells.pop(reader.exit_key, Static(GOES_ON))
    if reader.dead:
        raise NeverReturns
    reader.cells.pop((frame.number, "%return"), None)
    if reader.context.handlers:
        leave_by(reader, code)
    if not inner_scopes(frame.node) & {ast.Lambda, ast.FunctionDef, ast.GeneratorExp}:
        reader.forget_frame(frame)


@expression(ast.Yield)
def yield_expression(reader: Reader, node: ast.Yield) -> Abstract:
    """The yielded value goes to the consumer. The value of the expression is None."""
    consumer, own = reader.context.consumer, reader.context
    item = Static(None) if node.value is None else evaluate(reader, node.value)
    own_exit = reader.exit_key
    there = replace(consumer.context, path=(*reader.path, id(node)), awaited=own.awaited | consumer.context.awaited)
    before, reader.context = reader.context, there
    try:
        with reader.at(reader.span):
            reader.cells[reader.exit_key] = Static(GOES_ON)
            consumer.take(item)
            leaving, code = leaves(reader, consumer)
    finally:
        reader.context = before
    if reader.dead:
        reader.cells[own_exit] = Static(RAISES)
    elif leaving is not None:
        if len(own.handlers) > len(consumer.context.handlers) and not consumer.is_context:
            message = "a loop over a generator ends early, while a `try` in the generator is active"
            reader.refuse("SD104", node, message, help_="write the `try` around the loop")
        reader.cells[own_exit] = code
    return Static(None)


def leaves(reader: Reader, consumer: Consumer) -> tuple[Abstract | None, Abstract]:
    """Whether the consumer may end the loop, and how the generator is left then."""
    code = reader.exit
    if reader.dead:
        return None, code
    ways = possible(reader, code)
    consumer.ways.update(ways)
    if consumer.is_context:
        return raised(reader, code, caught(ways))
    outward = ways - {GOES_ON, CONTINUES}
    if not outward:
        reader.cells[reader.exit_key] = Static(GOES_ON)
        return None, code
    if isinstance(code, Static):
        return code, Static(RETURNS)
    stops = ends(reader, code, outward)
    if CONTINUES in ways:
        found = reader.apply("where", stops, as_value(reader, code), reader.const(GOES_ON))
        reader.codes[found] = outward | {GOES_ON}
        reader.cells[reader.exit_key] = found
    left = reader.apply("where", stops, reader.const(RETURNS), reader.const(GOES_ON))
    reader.codes[left] = frozenset((RETURNS, GOES_ON))
    return stops, left


def raised(reader: Reader, code: Abstract, outward: frozenset[int]) -> tuple[Abstract | None, Abstract]:
    """The exception that a generator raises at its `yield`, if the body of the `with` raises it and it is caught."""
    if not outward:
        return None, code
    if isinstance(code, Static):
        return code, code
    stops = is_among(reader, code, outward)
    found = reader.apply("where", stops, as_value(reader, code), reader.const(GOES_ON))
    reader.codes[found] = outward | {GOES_ON}
    return stops, found


def ends(reader: Reader, code: Abstract, outward: frozenset[int]) -> Value:
    """Whether an exit of the statements ends the loop."""
    if caught(outward):
        return is_among(reader, code, outward)
    return reader.apply("greater", as_value(reader, code), reader.const(GOES_ON))


@expression(ast.YieldFrom)
def yield_from(reader: Reader, node: ast.YieldFrom) -> Abstract:
    """`yield from x`: a loop that yields each element."""
    statements = (n for n in ast.walk(reader.frame.node) if isinstance(n, ast.Expr))
    if all(n.value is not node for n in statements):
        message = "the value of `yield from` is not supported: what a generator returns is not kept"
        reader.refuse("SD104", node, message, help_="append it to a list")
    read_statements(reader, [loop_of(node)])
    return Static(None)


@functools.lru_cache(maxsize=1024)
def loop_of(node: ast.YieldFrom) -> ast.For:
    item = ast.Name(_ITEM, ast.Store())
    again = ast.Expr(ast.Yield(ast.Name(_ITEM, ast.Load())))
    return ast.fix_missing_locations(ast.copy_location(ast.For(item, node.value, [again], []), node))


@functools.lru_cache(maxsize=1024)
def function_of(node: ast.GeneratorExp) -> ast.FunctionDef:
    """A generator expression as a generator function of its first sequence."""
    body: ast.stmt = ast.Expr(ast.Yield(node.elt))
    for k, generator in reversed(list(enumerate(node.generators))):
        for test in reversed(generator.ifs):
            body = ast.If(test, [body], [])
        source = generator.iter if k else ast.Name(".0", ast.Load())
        body = ast.For(generator.target, source, [body], [])
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(".0")], kwonlyargs=[], kw_defaults=[], defaults=[], vararg=None, kwarg=None
    )
    made = ast.FunctionDef("<genexpr>", arguments, [body], [])
    return ast.fix_missing_locations(ast.copy_location(made, node))
