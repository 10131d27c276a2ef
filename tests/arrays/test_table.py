"""Every row of the table, at every point, against NumPy and its differences."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.arrays.comparison import Slope, assert_close, assert_like_argument, assert_slopes, call, plain_value, same
from tests.arrays.comparison import slopes as slopes_of
from tests.arrays.rows import Row, has_single
from tests.arrays.table import GROUPS
from tests.numerical import clone
from tests.subset import is_chosen

NAMED = [(f"{group}-{row.name}", row) for group, rows in GROUPS.items() for row in rows]
POINTS = [(f"{name}-{k}", row, k) for name, row in NAMED for k in range(len(row.at))]


def _on_backends() -> list[Any]:
    """Every point on `python`; the first points of some rows also on `numba`. With SRCDIFF_TEST_ALL, all of them."""
    found = []
    for name, row, k in POINTS:
        found.append(pytest.param(row, k, "python", id=f"{name}-python"))
        if k == 0 and is_chosen(name, 24):
            found.append(pytest.param(row, k, "numba", id=f"{name}-numba", marks=pytest.mark.numba))
    return found


@functools.cache
def differentiated(row: Row, backend: str) -> Callable[..., Any]:
    return srcdiff.value_and_grad(row.function, wrt=row.wrt, backend=backend)


@functools.cache
def slopes(row: Row, k: int) -> list[Slope]:
    return slopes_of(row.function, row.at[k], row.wrt)


@pytest.mark.parametrize(("row", "k", "backend"), _on_backends())
def test_row(row: Row, k: int, backend: str) -> None:
    arguments, given = row.at[k], clone(row.at[k])
    expected = plain_value(row.function, clone(arguments))

    value, bars = call(differentiated(row, backend), given)

    single = row.single_precision or has_single(arguments)
    assert same(given, arguments), "the arguments were changed"
    assert_close(value, expected, single)
    assert isinstance(bars, tuple)
    for position, bar in zip(row.wrt, bars, strict=True):
        assert_like_argument(bar, arguments[position])
    if row.exact is None:
        for slope in slopes(row, k):  # five correct digits, so that the comparison is meaningful
            assert slope.expected.resolved(), f"along {slope.direction}: {slope.expected}"
        assert_slopes(bars, slopes(row, k), single)
        return
    for bar, answer in zip(bars, row.exact, strict=True):
        # a few roundings of a formula with a handful of operations
        np.testing.assert_allclose(bar, answer, rtol=1e-6 if single else 1e-13, atol=1e-15)


def test_names_are_unique() -> None:
    names = [name for name, _ in NAMED]

    assert sorted(set(names)) == sorted(names)


def test_a_row_with_an_exact_answer_has_one_point() -> None:
    assert [name for name, row in NAMED if row.exact is not None and len(row.at) != 1] == []
