"""Every pass gives the expected program for each of its cases."""

import pytest

from srcdiff.ir.parse import parse
from srcdiff.ir.verify import verify
from tests.passes import AFTER, FOLDER, OPTIONS, PASSES, all_cases
from tests.passes.derivatives import DERIVATIVES

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_pass_gives_the_expected_program(case):
    """`python -m tests.passes` writes the files again."""
    assert case.expected() == case.made()


def test_folders_have_the_names_of_passes():
    assert {case.path.parent.name for case in CASES} <= PASSES.keys()
    assert {path.parent.parent for path in FOLDER.rglob("*.ir")} == {FOLDER}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_every_pass_has_three_cases(name):
    assert len([case for case in CASES if case.path.parent.name == name]) >= 3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_begins_with_a_comment_about_its_purpose(case):
    assert case.path.read_text(encoding="utf-8").startswith("# ")
    assert case.path.read_text(encoding="utf-8").count(AFTER) == 1


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_of_the_table_runs_on_a_program(name):
    program = parse(PROGRAM)

    made = PASSES[name](
        program, {option: [] for option in OPTIONS} | {"wrt": ["x"], "batch": ["x"], "gradients": ["1"]}
    )

    verify(made, name)


PROGRAM = """
f(x%0: float64, v%1: float64[:])
    t%2: int64 = 0
    t%3: int64 = v%1.shape[0]
    t%4: int64 = 1
    total%5: float64 = for i%6 in range(t%2, t%3, t%4) with total%7 = x%0
        t%8: float64 = v%1[i%6]
        t%9: float64 = multiply(total%7, t%8)
        yield t%9
    yield total%5
"""
