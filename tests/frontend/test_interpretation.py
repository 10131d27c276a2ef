"""The abstract interpreter: states are values, and statements are read as few times as the fixed point needs."""

import ast
import collections
import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import pytest

import srcdiff
from srcdiff.frontend.domain.abstract_values import List, Static
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import CellsOf, Context, Frame, State
from srcdiff.frontend.interpreter import statements
from srcdiff.frontend.interpreter.tables import EXPRESSIONS, HANDLERS, METHODS, STATEMENTS, Table
from srcdiff.frontend.rows import ROWS
from srcdiff.frontend.source.capture import capture
from srcdiff.frontend.source.scopes import scopes_of


def reader_of(function: Callable[..., object]) -> Reader:
    captured = capture(function)
    return Reader(Frame(captured, captured.node, captured.file, captured.name, None, *scopes_of(captured.node)))


def nothing(x):
    return x


# -- states ----------------------------------------------------------------------------------------------------------


def test_assigning_a_cell_makes_another_state():
    reader = reader_of(nothing)
    before = reader.state
    reader.cells[1, "x"] = Static(2)
    assert (1, "x") not in before.cells
    assert reader.state.cells == {(1, "x"): Static(2)}


def test_going_back_to_a_mark_restores_the_state_itself():
    reader = reader_of(nothing)
    reader.cells[1, "x"] = Static(2)
    mark, state = reader.mark(), reader.state
    del reader.cells[1, "x"]
    reader.cells.update({(1, "y"): Static(3), List(): Static(4)})
    reader.go_back(mark)
    assert reader.state is state


def test_a_context_ends_with_its_block_also_if_that_raises():
    reader = reader_of(nothing)
    before = reader.context
    with pytest.raises(AssertionError, match="0 calls"), reader.within(path=(1, 2), loop_depth=3):
        raise AssertionError(f"{len(reader.context.active_calls)} calls, {reader.path}, {reader.context.loop_depth}")
    assert reader.context is before


@pytest.mark.parametrize("kind", [State, Context])
def test_states_and_contexts_are_frozen(kind):
    field = dataclasses.fields(kind)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(object.__new__(kind), field, None)


def test_the_cells_of_a_state_have_no_way_to_change_it():
    assert not hasattr(CellsOf(reader_of(nothing)), "copy")


# -- how often statements are read -------------------------------------------------------------------------------------


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> collections.Counter[str]:
    """The number of readings of each statement in users' functions, by its text."""
    counts: collections.Counter[str] = collections.Counter()
    read_statement = statements.read_statement

    def counting(reader: Reader, node: ast.stmt, rest: list[ast.stmt]) -> bool:
        if not reader.frame.library:
            counts[ast.unparse(node).splitlines()[0]] += 1
        return read_statement(reader, node, rest)

    monkeypatch.setattr(statements, "read_statement", counting)
    return counts


def test_straight_lines_and_branches_are_read_once(readings):
    def f(x):
        y = x * x
        if y > 1.0:
            z = y + 1.0
        else:
            z = y - 1.0
        return z * y

    srcdiff.grad(f, backend="python")(1.5)
    assert set(readings.values()) == {1}


def test_a_nest_of_loops_with_numbers_is_read_once(readings):
    def f(x):
        total = 0.0
        for i in range(len(x)):
            for j in range(i):
                total += x[i] * x[j]
        return total

    srcdiff.grad(f, backend="python")(np.arange(4.0))
    assert set(readings.values()) == {1}


def test_a_type_that_a_loop_widens_is_read_twice(readings):
    def f(x):
        total = 0
        for _ in range(3):
            total = total + x
        return total

    srcdiff.grad(f, backend="python")(1.5)
    assert readings["total = total + x"] == 2
    assert readings["total = 0"] == 1


# -- the tables ------------------------------------------------------------------------------------------------------


def test_a_row_is_added_once():
    with pytest.raises(AssertionError):
        Table({len: max}).row(len)(min)


def test_every_row_is_a_function_of_a_module_that_is_listed():
    listed = {module.__name__ for module in ROWS}
    rows = [*EXPRESSIONS.values(), *STATEMENTS.values(), *METHODS.values(), *(h.run for h in HANDLERS.values())]
    assert {row.__module__ for row in rows} <= listed


@pytest.mark.parametrize("constant", [True, 1, 0.0, None, "text"])
def test_functions_and_methods_are_not_constants(constant):
    class Scale:
        def by(self, x):
            return 2.0 * x

    def times(x, how):
        return x if how is constant else how(x)

    def f(x):
        def inner(y):
            return y * x

        methods = times(x, Scale().by) + times(x, functools.partial(inner))
        return methods * times(x, inner) if inner is not constant else 0.0

    assert srcdiff.grad(f, backend="python")(3.0) == 6.0 * 3.0**2 + 4.0 * 3.0**3
