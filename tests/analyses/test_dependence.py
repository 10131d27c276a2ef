"""Sums in loops are found however long they are."""

import pytest

from srcdiff.analyses.dependence import Dependence
from srcdiff.ir.nodes import Loop, walk
from srcdiff.ir.parse import parse


def loop_with(additions, last="add"):
    """A loop that adds as many terms to a number, in the IR, with the dependences of the program."""
    lines = [f"        t%{k}: float64 = add(t%{k - 1}, x%0)" for k in range(7, 6 + additions)]
    text = f"""
f(x%0: float64, n%1: int64)
    t%2: int64 = 0
    t%3: int64 = 1
    s%{6 + additions + 1}: float64 = for i%4 in range(t%2, n%1, t%3) with s%5 = x%0
        t%6: float64 = add(s%5, x%0)
{chr(10).join(lines)}
        t%{6 + additions}: float64 = {last}(t%{5 + additions}, x%0)
        yield t%{6 + additions}
    yield s%{6 + additions + 1}
"""
    program = parse(text).main
    (loop,) = (o for o in walk(program.body) if isinstance(o, Loop))
    return Dependence(program), loop


@pytest.mark.parametrize("additions", [2, 5_000])
def test_additions_in_a_row_are_a_sum(additions):
    dependence, loop = loop_with(additions)

    assert dependence.is_sum(loop, 0)


@pytest.mark.parametrize("last", ["multiply", "divide"])
def test_other_operations_are_no_sum(last):
    dependence, loop = loop_with(5_000, last)

    assert not dependence.is_sum(loop, 0)


def test_differences_are_sums():
    dependence, loop = loop_with(2, "subtract")

    assert dependence.is_sum(loop, 0)
