"""Arrays that become rows of one array, and arrays that are kept on a stack."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.numerical import clone
from tests.programs import PROGRAMS

ROWS = [
    "array_made_anew_in_every_iteration",
    "array_of_another_length_before_the_first_iteration",
    "array_of_the_iteration_before_is_written",
    "array_made_anew_inside_a_branch",
]
STACKS = [
    "array_made_anew_in_some_iterations",
    "array_that_grows_with_every_iteration",
    "array_made_anew_until_the_loop_is_left",
    "arrays_of_an_unknown_length",
]


def generated(name: str) -> str:
    program = next(p for p in PROGRAMS if p.name == name)
    derivative: Any = srcdiff.value_and_grad(program.function, wrt=program.wrt, backend="python")
    derivative.compile(*clone(program.at[0]))
    text: str = derivative.source
    return text


@pytest.mark.parametrize("name", ROWS)
def test_arrays_allocated_in_every_iteration_become_rows(name: str) -> None:
    assert ".append(" not in generated(name)


@pytest.mark.parametrize("name", STACKS)
def test_arrays_of_unknown_number_or_length_are_kept_on_a_stack(name: str) -> None:
    assert ".append(" in generated(name)


def test_only_the_result_of_an_inner_loop_is_kept() -> None:
    text = generated("arrays_made_anew_in_nested_loops")

    assert "h_1 = kept_h[k, t - 1]" in text


def test_adjoints_of_arrays_that_every_iteration_allocates_are_carried_backwards() -> None:
    text = generated("arrays_made_anew_in_nested_loops")

    assert "kept_h_bar" not in text
    assert re.search(r"^            (h_bar\w*), (h_bar\w*) = \2, \1$", text, re.MULTILINE)


def test_adjoints_of_an_array_with_two_names_are_stored_once() -> None:
    assert "kept_new_bar" in generated("array_handed_on_under_two_names")


def test_values_that_one_iteration_keeps_for_itself_need_the_memory_of_one_iteration() -> None:
    text = generated("paths_that_end_early")

    assert "kept_price = np.empty(steps)" in text
    assert text.count("for p in range(paths)") == 1


def until_it_is_small(x, rate):
    """Only numbers of the array in the middle are read again."""
    while np.sum(x * x) > 0.1:
        middle = x - 0.5 * rate * x
        a, b = middle
        x = np.array([a - 0.2 * a * b, b * np.cos(a) * 0.5])
    return x[0]


def test_every_push_has_a_pop() -> None:
    derivative = srcdiff.value_and_grad(until_it_is_small, wrt=("x", "rate"), backend="python")
    derivative.compile("float64[:]", float)

    put, taken = (set(re.findall(rf"(\w+)\.{word}\(", derivative.source)) for word in ("append", "pop"))
    assert put == taken
    srcdiff.check(until_it_is_small, np.array([1.0, 2.0]), 0.1, backend="python")
