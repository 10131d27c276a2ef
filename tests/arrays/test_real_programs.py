"""Every real program, on every backend, against NumPy and its differences."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.arrays.comparison import (
    BACKENDS,
    Slope,
    assert_close,
    assert_like_argument,
    assert_slopes,
    call,
    plain_value,
    same,
)
from tests.arrays.comparison import slopes as slopes_of
from tests.arrays.programs import PROGRAMS, escape_counts
from tests.arrays.rows import Row, array
from tests.numerical import clone
from tests.subset import every

every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)


@functools.cache
def differentiated(program: Row, backend: str) -> Callable[..., Any]:
    return srcdiff.value_and_grad(program.function, wrt=program.wrt, backend=backend)


@functools.cache
def slopes(program: Row, k: int) -> list[Slope]:
    return slopes_of(program.function, program.at[k], program.wrt)


def _on_backends() -> list[Any]:
    """Every program on `python`; one in nine also on `numba`. With SRCDIFF_TEST_ALL, all of them."""
    found = [pytest.param(p, "python", id=f"{p.name}-python") for p in PROGRAMS]
    return found + [pytest.param(p, "numba", id=f"{p.name}-numba") for p in every(9, PROGRAMS)]


@pytest.mark.parametrize(("program", "backend"), _on_backends())
def test_program(program: Row, backend: str) -> None:
    for k, arguments in enumerate(program.at):
        given = clone(arguments)
        expected = plain_value(program.function, clone(arguments))

        value, bars = call(differentiated(program, backend), given)

        assert same(given, arguments), "the arguments were changed"
        assert_close(value, expected, single=False)
        for position, bar in zip(program.wrt, bars, strict=True):
            assert_like_argument(bar, arguments[position])
        if program.exact is None:
            assert_slopes(bars, slopes(program, k), single=False)
        else:
            for bar, answer in zip(bars, program.exact, strict=True):
                np.testing.assert_array_equal(bar, answer)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_through_counts_is_announced_as_zero(backend: str) -> None:
    gradient = srcdiff.grad(escape_counts, wrt=(0, 1), backend=backend)

    with pytest.warns(srcdiff.ZeroGradientWarning):
        bars = gradient(array(3), array(2), 4)

    assert [bar.tolist() for bar in bars] == [[0.0] * 3, [0.0] * 2]


# ---------------------------------------------------------------------------------------------- the programs themselves


@every_program
def test_differences_are_sharp(program: Row) -> None:
    """Every point is smooth and its differences have five correct digits, so that the comparison is meaningful."""
    for k, arguments in enumerate(program.at):
        assert np.isfinite(plain_value(program.function, clone(arguments)))
        for slope in slopes(program, k):
            assert slope.expected.resolved(scale=max(1.0, abs(plain_value(program.function, clone(arguments))))), slope
