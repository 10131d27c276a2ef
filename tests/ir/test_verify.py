"""The verifier accepts legal programs for each operation, and rejects each kind of illegal one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from srcdiff import pipeline
from srcdiff.api.reverse import grad
from srcdiff.diagnostics import InternalError
from srcdiff.ir import nodes
from srcdiff.ir.nodes import Block, Comment, Const, Function, Operation, Program, Value, walk
from srcdiff.ir.types import FLOAT
from srcdiff.ir.verify import verify
from srcdiff.passes.compilation import Compilation
from tests.ir.operations import ILLEGAL, LEGAL, program

KINDS = [c for c in vars(nodes).values() if isinstance(c, type) and issubclass(c, Operation) and c is not Operation]
IMPOSSIBLE_IN_TEXT = {"Barrier", "Comment"}
"""Operations without an illegal program: a barrier, and a comment of two lines, which cannot be written as text."""


def refused(given: Program, message: str) -> None:
    with pytest.raises(InternalError) as caught:
        verify(given, "reverse sweep")
    assert message in str(caught.value)
    assert "after 'reverse sweep'" in str(caught.value)
    assert "defect of srcdiff" in str(caught.value)


def each(table):
    return [pytest.param(kind, *row, id=f"{kind}-{k}") for kind, rows in table.items() for k, row in enumerate(rows)]


@pytest.mark.parametrize(("kind", "body"), each({kind: [(b,) for b in bodies] for kind, bodies in LEGAL.items()}))
def test_legal_operation_passes(kind, body):
    given = program(body)

    verify(given, "reading")

    assert kind in {type(o).__name__ for o in walk(given.main.body)}


@pytest.mark.parametrize(("kind", "body", "message"), each(ILLEGAL))
def test_illegal_operation_is_refused(kind, body, message):
    refused(program(body), message)


def test_every_operation_has_legal_and_illegal_programs():
    names = {c.__name__ for c in KINDS}

    assert names == LEGAL.keys()
    assert names == ILLEGAL.keys() | IMPOSSIBLE_IN_TEXT


# -- values: where they are defined and seen ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            """
            t%11: float64 = sin(t%10)
            t%10: float64 = 1.0
            """,
            "the value `t`, float64, is used before it is defined, in `t%11: float64 = sin(t%10)`",
            id="used before",
        ),
        pytest.param(
            """
            t%10: float64 = 1.0
            t%10: float64 = 2.0
            """,
            "is defined twice",
            id="defined twice",
        ),
        pytest.param("x%0: float64 = 1.0", "the value `x`, float64, is defined twice", id="parameter"),
        pytest.param(
            """
            if flag%2
                t%10: float64 = 1.0
            t%11: float64 = sin(t%10)
            """,
            "is used before it is defined",
            id="of a branch, behind it",
        ),
        pytest.param(
            """
            y%10: float64 = if flag%2
                t%11: float64 = 1.0
                yield t%11
            else
                yield t%11
            """,
            "is yielded but not defined",
            id="of one branch, in the other",
        ),
        pytest.param(
            """
            p%10: float64 = for i%11 in range(n%1, n%1, n%1) with p%12 = x%0
                yield p%12
            yield p%12
            """,
            "the value `p`, float64, is yielded but not defined",
            id="of a loop, behind it",
        ),
        pytest.param(
            """
            p%10: float64 = while with p%11 = x%0
                t%12: bool = less(p%11, x%0)
                yield t%12
            do
                t%13: bool = logical_not(t%12)
                yield x%0
            """,
            "the value `t`, bool, is used before it is defined",
            id="of a test, in the body",
        ),
        pytest.param(
            """
            p%10: float64 = for i%11 in range(n%1, n%1, n%1) with p%12 = p%10
                yield x%0
            """,
            "the value `p`, float64, is used before it is defined",
            id="a result, as the first value",
        ),
    ],
)
def test_value_is_defined_once_and_before_it_is_used(body, message):
    refused(program(body), message)


def test_functions_share_no_value():
    given = program("t%10: float64 = 1.0")
    inside = given.main.body.operations[0]
    other = Function("other", (), Block((inside,)))

    refused(replace(given, callees=(*given.callees, other)), "is defined twice")


def test_functions_that_are_called_have_different_names():
    given = program("barrier")

    refused(replace(given, callees=given.callees * 2), "two functions that are called have the same name")


def test_written_parameters_are_arrays_among_the_parameters():
    given = program("barrier")

    refused(replace(given, main=replace(given.main, written=given.main.params[:1])), "`x`, float64, is written, but is")
    stranger = replace(given.main, written=(Value(given.main.params[4].type, "new"),))
    refused(replace(given, main=stranger), "`new`, float64[:], is written, but is no array among the parameters")


def test_comment_is_one_line():
    refused(Program(Function("f", (), Block((Comment("one\ntwo"),)))), "a comment is one line")


def test_unknown_operation_is_refused():
    @dataclass(frozen=True, eq=False, slots=True)
    class Strange(Operation):
        pass

    refused(Program(Function("f", (), Block((Strange(),)))), "`Strange` is an operation that nobody knows")


# -- from pass to pass -------------------------------------------------------------------------------------------------


def test_caller_is_verified_again_when_a_callee_changes():
    before = program("y%10: float64 = call g(x%0, v%4)")
    verify(before, "reading")
    (callee,) = before.callees
    after = replace(before, callees=(replace(callee, body=replace(callee.body, yields=())),))

    with pytest.raises(InternalError, match="types differ: results are float64, not nothing"):
        verify(after, "reverse sweep", before)


def test_values_of_unchanged_functions_are_defined_too():
    before = program("barrier")
    verify(before, "reading")
    taken = before.callees[0].body.operations[0]
    assert isinstance(taken, Const)
    after = replace(before, main=Function("f", (), Block((Const(taken.out, 1),))))

    with pytest.raises(InternalError, match="is defined twice"):
        verify(after, "reverse sweep", before)


def test_operation_with_right_types_is_not_free_of_its_place():
    before = program("t%10: float64 = sin(x%0)")
    checked: set[Operation] = set()
    verify(before, "reading", None, checked)
    after = replace(before, main=replace(before.main, params=()))

    with pytest.raises(InternalError, match="is used before it is defined"):
        verify(after, "reverse sweep", before, checked)


def test_program_is_verified_after_every_step(monkeypatch):
    def broken(state: Compilation) -> None:
        state.main = replace(state.main, body=replace(state.main.body, yields=(Value(FLOAT),)))

    passes = [replace(one, run=broken) if one.name == "reverse sweep" else one for one in pipeline.PASSES]
    monkeypatch.setattr(pipeline, "PASSES", passes)

    with pytest.raises(InternalError, match="after 'reverse sweep'"):
        grad(lambda x: x * x, backend="python")(1.5)
