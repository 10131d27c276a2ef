"""`if`, `while` and `for`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Drawn,
    Each,
    Iteration,
    List,
    Maybe,
    Object,
    Range,
    Static,
    Through,
    Tuple,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import BREAKS, CONTINUES, ENDS, GOES_ON, RETURNS, Mark
from srcdiff.frontend.interpreter.aliases import forget_doubts
from srcdiff.frontend.interpreter.assignments import assign_target
from srcdiff.frontend.interpreter.conditions import condition
from srcdiff.frontend.interpreter.evaluation import evaluate, evaluate_lazily
from srcdiff.frontend.interpreter.fixed_point import awaiting, read_loop
from srcdiff.frontend.interpreter.forks import fork, is_among
from srcdiff.frontend.interpreter.iteration import (
    asked_before_a_generator,
    forget_counters,
    iteration_over,
    iterator_of,
    peeled,
)
from srcdiff.frontend.interpreter.joins import caught, possible
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.parallel_loops import said_of
from srcdiff.frontend.interpreter.presence import knowing
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.statements import after_exit, go_on, read_statements
from srcdiff.frontend.interpreter.tables import GOES_THROUGH, compound, statement
from srcdiff.frontend.interpreter.unchanged_iterables import nothing_changed, watching_items, watching_lengths
from srcdiff.frontend.source.liveness import read_after_branches
from srcdiff.frontend.source.scopes import yields
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Call,
    Copy,
    Derivative,
    Grow,
    Library,
    Loop,
    Operation,
    Pop,
    Push,
    Store,
    Value,
    walk,
)
from srcdiff.ir.primitives import length_of_range
from srcdiff.ir.types import INT, Array

_EITHER = {False, True}


def _always_leaves(body: list[ast.stmt]) -> bool:
    """Whether control never reaches the end of the statements."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Return | ast.Break | ast.Continue | ast.Raise):
        return True
    if isinstance(last, ast.With):
        return _always_leaves(last.body)
    if isinstance(last, ast.Try):
        whole = _always_leaves(last.body) or _always_leaves(last.orelse)
        return _always_leaves(last.finalbody) or (whole and all(_always_leaves(h.body) for h in last.handlers))
    return isinstance(last, ast.If) and _always_leaves(last.body) and _always_leaves(last.orelse)


def _blocks(node: ast.With | ast.Try) -> list[list[ast.stmt]]:
    """The blocks in a statement that is neither a branch nor a loop."""
    if isinstance(node, ast.With):
        return [node.body]
    return [node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody]


def _breaks(body: list[ast.stmt]) -> bool:
    """Whether a `break` in the statements ends the loop of which they are the body."""
    for one in body:
        if isinstance(one, ast.Break):
            return True
        if isinstance(one, ast.With | ast.Try) and any(_breaks(b) for b in _blocks(one)):
            return True
        if isinstance(one, ast.If) and (_breaks(one.body) or _breaks(one.orelse)):
            return True
        if isinstance(one, ast.For | ast.While) and _breaks(one.orelse):
            return True
    return False


def _returns(body: list[ast.stmt]) -> bool:
    """Whether the statements may return. The consumer of a generator may return at each `yield`."""
    for one in body:
        if isinstance(one, ast.Return) or (isinstance(one, ast.Expr | ast.Assign) and yields(one)):
            return True
        if isinstance(one, ast.With | ast.Try) and any(_returns(b) for b in _blocks(one)):
            return True
        if isinstance(one, ast.If | ast.For | ast.While) and (_returns(one.body) or _returns(one.orelse)):
            return True
    return False


def _raises(body: list[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Raise | ast.Assert) for statement in body for n in ast.walk(statement))


@compound(ast.If)
def if_statement(reader: Reader, node: ast.If, rest: list[ast.stmt]) -> bool:
    """Read an `if`. Returns true if the following statements were read too, in the branch that reaches them."""
    before = reader.state
    truth = condition(reader, node.test)
    forget_doubts(reader, before)
    if reader.frame.number == reader.main_number:
        reader.outcomes.setdefault(node, set()).update({bool(truth.value)} if isinstance(truth, Static) else _EITHER)
    if isinstance(truth, Static):
        read_statements(reader, node.body if truth.value else node.orelse)
        return False
    taken = False

    def side(body: list[ast.stmt], truth: bool) -> None:
        with knowing(reader, node.test, truth):
            read_statements(reader, body)
        if not taken:
            forget_dead_names(reader, node)

    leaves_then, leaves_else = _always_leaves(node.body), _always_leaves(node.orelse)
    if (leaves_then != leaves_else or node in reader.split) and rest:
        taken = True
        first = node.body if leaves_then else [*node.body, *rest]
        second = node.orelse if leaves_else else [*node.orelse, *rest]
        fork(reader, truth, lambda: side(first, True), lambda: side(second, False))
    else:
        fork(reader, truth, lambda: side(node.body, True), lambda: side(node.orelse, False))
    return taken


def forget_dead_names(reader: Reader, node: ast.If) -> None:
    """At the end of a side: remove names of objects and lists that nobody reads any more.

    What has no other name is merged where the sides meet:

        if trial.cost < best.cost:
            best = trial                the next iteration assigns `trial` before it reads it
    """
    live = read_after_branches(reader.frame.node).get(node)
    own = [k for k in reader.cells if isinstance(k, tuple) and k[0] == reader.frame.number and k[1][:1] != "%"]
    for key in own if live is not None else ():
        if live is not None and key[1] not in live and isinstance(reader.cells[key], Object | List):
            del reader.cells[key]


def may_store(operation: Operation) -> bool:
    """Whether an operation writes memory, or its derivative does, which keeps values of loops and arrays."""
    if isinstance(operation, Derivative):
        kept = operation.jacobian or any(isinstance(o, Loop | Alloc | Copy | Library) for o in walk(operation.body))
        return kept or any(isinstance(v.type, Array) for v in operation.params)
    return isinstance(operation, Store | Push | Pop | Grow | Call)


@statement(ast.While)
def while_statement(reader: Reader, node: ast.While) -> None:
    forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
    if not forever:
        mark = reader.mark()
        names = mark.state.cells
        with awaiting(reader, node):
            truth = condition(reader, node.test)
        changed = any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)) or any(
            x is not names.get(k) and not isinstance(names.get(k), Maybe) for k, x in reader.cells.items()
        )
        written = Block(tuple(reader.operations[mark.operations :]))
        changed = changed or any(may_store(o) for o in walk(written))
        changed = changed or (bool(reader.context.handlers) and not isinstance(node.test, ast.Compare | ast.Name))
        changed = changed or len(reader.escapes) > mark.escapes
        reader.go_back(mark)
        if isinstance(truth, Static) and not truth.value and not changed:
            read_statements(reader, node.orelse)
            return
        if changed:
            while_with_assignments(reader, node)
            return

    def test() -> Value:
        return as_value(reader, condition(reader, node.test))

    code = read_loop(reader, node, node, None, None if forever else test, lambda _: loop_body(reader, node.body))
    if forever and not _breaks(node.body):
        if caught(possible(reader, code)):
            leave_loop(reader, code)
        elif _returns(node.body):
            reader.leave(RETURNS)
        else:
            reader.die()
        return
    after_loop(reader, code, node)


def while_with_assignments(reader: Reader, node: ast.While) -> None:
    """A condition with side effects (`:=`, or a call that writes) becomes part of the body."""

    def iteration(_: Value | None) -> None:
        truth = condition(reader, node.test)
        if isinstance(truth, Static):
            loop_body(reader, node.body) if truth.value else reader.leave(ENDS)
            return
        fork(reader, truth, lambda: loop_body(reader, node.body), lambda: reader.leave(ENDS))

    after_loop(reader, read_loop(reader, node, node, None, None, iteration), node)


def loop_body(reader: Reader, body: list[ast.stmt]) -> None:
    with reader.within(loop_depth=reader.context.loop_depth + 1):
        read_statements(reader, body)


@compound(ast.For)
def for_statement(reader: Reader, node: ast.For, rest: list[ast.stmt]) -> bool:
    if node in reader.split and rest:
        return for_that_may_not_run(reader, node, rest)
    for_over(reader, node, iterated(reader, node.iter))
    return False


def iterated(reader: Reader, node: ast.expr) -> Abstract:
    """The iterable of a `for`. It may be a lazy iterator."""
    found = evaluate_lazily(reader, node)
    return found if isinstance(found, Through | Drawn) else forced(reader, found)


def gone_through(reader: Reader, source: Abstract, node: ast.For) -> Iteration | tuple[Abstract, ...]:
    """The iteration of a loop. It may end early if the body may leave the loop."""
    with reader.within(ends_early=_breaks(node.body) or _returns(node.body) or _raises(node.body)):
        return iteration_over(reader, source, node.iter)


def for_that_may_not_run(reader: Reader, node: ast.For, rest: list[ast.stmt]) -> bool:
    """A loop after which a name has another type if it ran. The code that follows is read once for each case."""
    source = iterator_of(reader, evaluate(reader, node.iter), node.iter)
    if type(source) in GOES_THROUGH:
        for_over(reader, node, source)
        return False
    found = gone_through(reader, source, node)
    length = Static(len(found)) if not isinstance(found, Iteration) else found.length
    if isinstance(length, Static):
        for_over(reader, node, source)
        return False

    def runs() -> None:
        mark = reader.mark()
        reader.sure.add(node)
        for_over(reader, node, source)
        reader.sure.discard(node)
        plain = not (node.orelse or _breaks(node.body) or _returns(node.body) or reader.context.handlers)
        if len(reader.problems) > mark.problems and plain:
            reader.go_back(mark)
            first_iteration_apart(reader, node, source)
        code = reader.exit
        if not isinstance(code, Static):
            go_on(reader, code, rest)
        elif code.value == GOES_ON:
            read_statements(reader, rest)

    some = reader.apply("greater", as_value(reader, length), reader.const(0))
    fork(reader, some, runs, lambda: read_statements(reader, [*node.orelse, *rest]))
    return True


def first_iteration_apart(reader: Reader, node: ast.For, source: Abstract) -> None:
    """A loop that runs, and whose first iteration gives a name its type: `total = 0`, `total = total + a[i]`."""
    found = iteration_over(reader, source, node.iter)
    assert isinstance(found, Iteration)
    with reader.within(path=(*reader.path, 0)):
        assign_target(reader, node.target, found.element(Static(0)))
        loop_body(reader, node.body)
        reader.cells[reader.exit_key] = Static(GOES_ON)

    def iteration(index: Value | None) -> None:
        assert index is not None
        assign_target(reader, node.target, found.element(index))
        loop_body(reader, node.body)

    bounds = (reader.const(1), as_value(reader, found.length), reader.const(1))
    with reader.within(path=(*reader.path, 1)):  # facts about all iterations of the loop need not hold here
        read_loop(reader, node, node, bounds, None, iteration)
    reader.cells[reader.exit_key] = Static(GOES_ON)


def for_over(reader: Reader, node: ast.For, source: Abstract) -> None:
    source = iterator_of(reader, source, node.iter)
    if isinstance(source, Drawn):
        before, start = reader.state.cells, len(reader.operations)
        for_over(reader, node, source.items)
        nothing_changed(reader, source.name, source.reads, before, reader.operations[start:])
        return

    def iteration_of(item: Abstract) -> None:
        assign_target(reader, node.target, item)
        loop_body(reader, node.body)
        note_ways(reader, node)

    cells, earlier = reader.state.cells, list(asked_before_a_generator(source))
    source, body = peeled(reader, source, iteration_of)
    run, before, start = GOES_THROUGH.get(type(source)), reader.state.cells, len(reader.operations)
    if run is not None:
        code = run(reader, source, body, node.iter, node)
        nothing_changed(reader, "zip", earlier, before, reader.operations[start:])
        forget_counters(reader, cells)
        if node.orelse and BREAKS in possible(reader, code) and not _breaks(node.body):
            reader.refuse("SD104", node, "`else` of a loop over `zip` of a generator is not supported")
        after_loop(reader, code, node)
        return
    if isinstance(source, Range):
        for_range(reader, node, source, body)
        return
    if isinstance(source, Each):
        for_each_place(reader, node, source, body)
        return
    found = gone_through(reader, source, node)
    if not isinstance(found, Iteration):
        read_unrolled(reader, node, found, watching_items(reader, source, found, body, node))
        return
    body = watching_lengths(reader, source, found, body, node)

    def iteration(index: Value | None) -> None:
        assert index is not None
        body(found.element(index))

    bounds = (reader.const(0), as_value(reader, found.length), reader.const(1))
    code = read_loop(reader, node, node, bounds, None, iteration)
    after_loop(reader, code, node)


def note_ways(reader: Reader, node: ast.For) -> None:
    """Record how an iteration may be left, as far as the syntax tells."""
    code = reader.exit
    if isinstance(code, Value) and code not in reader.codes:
        ways = {GOES_ON, CONTINUES, *((BREAKS,) if _breaks(node.body) else ())}
        reader.codes[code] = frozenset(ways | ({RETURNS} if _returns(node.body) else set()))


def for_range(reader: Reader, node: ast.For, source: Range, body: Callable[[Abstract], None]) -> None:
    known = [x.value for x in (source.start, source.stop, source.step) if isinstance(x, Static)]
    mark = reader.mark()
    bounds = tuple(reader.cast(as_value(reader, x), INT) for x in (source.start, source.stop, source.step))
    if not isinstance(source.step, Static):
        zero = reader.apply("equal", bounds[2], reader.const(0))
        reader.raise_if(zero, ValueError, "range() arg 3 must not be zero")

    def iteration(index: Value | None) -> None:
        assert index is not None
        index.name = ""
        body(index)

    parallel = said_of(reader, node) if source.parallel else None
    code = read_loop(reader, node, node, (bounds[0], bounds[1], bounds[2]), None, iteration, parallel)
    # The body must need the counter as a constant, or a name must change its type between iterations.
    unknown = any(p.code in ("SD202", "SD203", "SD205") for p in reader.problems[mark.problems :])
    short = len(known) == 3 and length_of_range(*known) <= 32
    if short and (unknown or node in reader.split) and read_written_out(reader, node, range(*known), mark, body):
        return
    after_loop(reader, code, node)


def read_written_out(
    reader: Reader, node: ast.For, iterations: range, mark: Mark, body: Callable[[Abstract], None]
) -> bool:
    """Unroll the loop: read its iterations one by one. Returns false if that does not help."""
    state, operations = reader.state, reader.operations[mark.operations :]
    problems = reader.problems[mark.problems :]
    reader.go_back(mark)
    read_unrolled(reader, node, tuple(Static(k) for k in iterations), body)
    found = reader.problems[mark.problems :]
    if len(found) < len(problems) or not found:
        return True
    reader.go_back(mark)
    reader.state = state
    reader.operations += operations
    reader.problems += problems
    return False


def for_each_place(reader: Reader, node: ast.For, source: Each, body: Callable[[Abstract], None]) -> None:
    """Nested loops over all indices of an array."""
    lengths = [reader.cast(as_value(reader, s), INT) for s in source.shape]
    nodes: list[ast.AST] = [reader.levels.setdefault((node, axis), ast.Pass()) for axis in range(len(lengths))]

    def level(axis: int, places: tuple[Abstract, ...]) -> None:
        if axis == len(lengths):
            place = Tuple(places)
            body(place if source.of is None else with_element(reader, source.of, place))
            return

        def iteration(index: Value | None) -> None:
            assert index is not None
            index.name = "ijklmn"[axis % 6]
            level(axis + 1, (*places, index))

        bounds = (reader.const(0), lengths[axis], reader.const(1))
        reader.cells[reader.exit_key] = read_loop(reader, nodes[axis], node, bounds, None, iteration)

    level(0, ())
    after_loop(reader, reader.exit, node)


def with_element(reader: Reader, array: Value, place: Tuple) -> Tuple:
    return Tuple((place, reader.load(array, tuple(as_value(reader, k) for k in place.items))))


def read_unrolled(reader: Reader, node: ast.For, items: tuple[Abstract, ...], body: Callable[[Abstract], None]) -> None:
    """Unroll a loop over elements that are known one by one."""

    def iterations(k: int) -> None:
        if k == len(items):
            return
        reader.cells[reader.exit_key] = Static(GOES_ON)
        with reader.within(path=(*reader.path, k)):
            body(items[k])
        code = reader.exit
        if isinstance(code, Static):
            if code.value in (GOES_ON, CONTINUES):
                iterations(k + 1)
            return
        goes_on = reader.apply("less_equal", as_value(reader, code), reader.const(GOES_ON))
        fork(reader, goes_on, lambda: iterations(k + 1), lambda: None)

    iterations(0)
    if not reader.dead:
        after_loop(reader, reader.exit, node)


def after_loop(reader: Reader, code: Abstract, node: ast.For | ast.While) -> None:
    """The code after a loop: its `else`, and the exit of a `return` inside it."""
    reader.cells[reader.exit_key] = Static(GOES_ON)
    if caught(possible(reader, code)):
        leave_loop(reader, code)
        if node.orelse:
            reader.refuse("SD101", node, "`else` of a loop that raises an exception which is caught is not supported")
        return
    if isinstance(code, Static):
        if code.value == RETURNS:
            reader.leave(RETURNS)
        elif code.value != BREAKS:
            read_statements(reader, node.orelse)
        return
    if _returns(node.body):
        returned = reader.apply("equal", as_value(reader, code), reader.const(RETURNS))
        reader.cells[reader.exit_key] = reader.apply("where", returned, reader.const(RETURNS), reader.const(GOES_ON))
    if not node.orelse:
        return
    if not _breaks(node.body):
        returned = reader.apply("equal", as_value(reader, code), reader.const(RETURNS))
        fork(reader, returned, lambda: reader.leave(RETURNS), lambda: after_exit(reader, node.orelse))
        return
    left = reader.apply("equal", as_value(reader, code), reader.const(BREAKS))
    if _returns(node.body):
        left = reader.apply("logical_or", left, reader.apply("equal", as_value(reader, code), reader.const(RETURNS)))
    fork(reader, left, lambda: None, lambda: after_exit(reader, node.orelse))


def leave_loop(reader: Reader, code: Abstract) -> None:
    """After a loop that may have raised a caught exception, propagate the exception outwards."""
    ways = possible(reader, code)
    outward = frozenset(c for c in ways if c == RETURNS or c in caught(ways))
    if isinstance(code, Static):
        reader.cells[reader.exit_key] = code
        return
    if ways - outward == {GOES_ON}:
        reader.cells[reader.exit_key] = code
        return
    found = reader.apply("where", is_among(reader, code, outward), as_value(reader, code), reader.const(GOES_ON))
    reader.cells[reader.exit_key] = found
    reader.codes[found] = outward | {GOES_ON}
