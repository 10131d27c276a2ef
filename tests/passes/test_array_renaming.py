"""Swapped buffers that become rows of all states, and adjoints of buffers that start with an assignment."""

from __future__ import annotations

import re

import pytest

from tests.passes.test_array_expansion import generated

RENEWED = [
    "burgers",
    "buffers_filled_in_every_iteration",
    "three_buffers_in_turn",
    "columns_filled_in_every_iteration",
]
SAVED = [
    "buffer_filled_but_for_one",
    "buffers_known_by_other_names",
    "buffer_read_before_it_is_filled",
    "buffer_filled_on_one_side",
    "waves_in_nested_loops",
]


@pytest.mark.parametrize("name", RENEWED)
def test_buffers_that_every_iteration_fills_are_rows(name: str) -> None:
    assert re.search(r"^        (\w+) = kept_\1\[t\]$", generated(name), re.MULTILINE)


@pytest.mark.parametrize("name", SAVED)
def test_buffers_that_are_seen_otherwise_are_not(name: str) -> None:
    assert not re.search(r" = kept_\w+\[t\]$", generated(name), re.MULTILINE)


def test_sums_in_buffers_that_were_left_empty_start_by_assignment() -> None:
    text = generated("burgers")

    assert re.search(r"^            v_bar\[i\] = \w+ \+ ", text, re.MULTILINE)
    assert "u_bar[i] = 0.0" not in text


def test_buffers_that_are_read_after_the_loop_are_left_empty() -> None:
    assert "u_bar[i] = 0.0" in generated("buffers_filled_in_every_iteration")
