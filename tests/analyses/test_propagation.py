"""If the result is not finite anyway, zero adjoints need no special case; otherwise they have one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import srcdiff


def straight(x: Any, y: Any) -> Any:
    ratio = x / y
    return ratio * math.sin(ratio) + math.log(y)


def a_sum(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += x[i] / y
    return total


def denominator(x: Any, y: Any) -> Any:
    return 1.0 / (1.0 + x / y)


def left_out(x: Any, y: Any) -> Any:
    return max(x * math.log(y), 0.0)


def overwritten(x: Any, y: Any) -> Any:
    last = 0.0
    for i in range(len(x)):
        last = x[i] / (y + i)
    return last


def two_results(x: Any, y: Any) -> Any:
    out = np.empty(2)
    out[0] = x / y
    out[1] = x * y
    return out


def both_results(x: Any, y: Any) -> Any:
    ratio = x / y
    out = np.empty(2)
    out[0] = ratio + x
    out[1] = ratio * y
    return out


def both_sides(x: Any, y: Any) -> Any:
    ratio = x / y
    if x > 0.5:
        result = 2.0 * ratio + 1.0
    else:
        result = ratio - x
    return result


def one_side(x: Any, y: Any) -> Any:
    ratio = x / y
    if x > 5.0:
        result = 2.0 * ratio
    else:
        result = x
    return result


def filtered(x: Any, y: Any) -> Any:
    """The last quotient is not selected, but its denominator also occurs in a term and in a logarithm."""
    state, total = 0.0, 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            spread = y + i
            error = x[i] - state
            total += math.log(2.0 * spread) + error * error / spread
            state += error / spread
    return total


def filtered_at_times(x: Any, y: Any) -> Any:
    """The last quotient is not selected, and neither is its logarithm."""
    state, total = 0.0, 0.0
    for i in range(len(x)):
        spread = y + i
        total += state
        if x[i] > 5.0:
            total += math.log(spread)
        state = x[i] / spread
    return total


VECTOR = np.array([1.0, 2.0])


@pytest.mark.parametrize(("function", "x"), [(straight, 1.0), (a_sum, VECTOR), (both_sides, 1.0), (filtered, VECTOR)])
def test_no_adjoint_is_tested_where_the_result_is_not_finite_anyway(function: Any, x: Any) -> None:
    gradient = srcdiff.grad(function, wrt=(0, 1), backend="python")
    gradient(x, 2.0)
    assert "!= 0.0" not in gradient.source


@pytest.mark.parametrize(
    ("function", "x"),
    [(denominator, 1.0), (left_out, 1.0), (overwritten, VECTOR), (filtered_at_times, VECTOR)],
)
def test_an_adjoint_is_tested_for_zero_where_an_infinity_may_be_unselected(function: Any, x: Any) -> None:
    gradient = srcdiff.grad(function, wrt=(0, 1), backend="python")
    gradient(x, 2.0)
    assert "!= 0.0" in gradient.source


def test_an_infinity_must_reach_all_results_of_a_jacobian() -> None:
    one, both = (srcdiff.jacobian(f, wrt=0, mode="reverse", backend="python") for f in (two_results, both_results))
    with np.errstate(all="ignore"):
        assert one(np.float64(1.0), np.float64(0.0))[1] == 0.0
    both(1.0, 2.0)
    assert "!= 0.0" not in both.source


def test_adjoints_that_the_user_gives_may_be_zero() -> None:
    with np.errstate(all="ignore"):
        _, pullback = srcdiff.vjp(a_sum, VECTOR, np.float64(0.0), backend="python")
        x_bar, y_bar = pullback(0.0)
    assert (x_bar.tolist(), y_bar) == ([0.0, 0.0], 0.0)


@pytest.mark.parametrize("function", [denominator, left_out])
def test_values_that_are_left_out_contribute_nothing(function: Any) -> None:
    with np.errstate(all="ignore"):
        x_bar, y_bar = srcdiff.grad(function, wrt=(0, 1), backend="python")(np.float64(1.0), np.float64(0.0))
    assert (x_bar, y_bar) == (0.0, 0.0)


def test_the_unselected_branch_and_iteration_contribute_nothing() -> None:
    with np.errstate(all="ignore"):
        by_branch = srcdiff.grad(one_side, wrt=(0, 1), backend="python")(np.float64(1.0), np.float64(0.0))
        x_bar, y_bar = srcdiff.grad(filtered_at_times, wrt=(0, 1), backend="python")(VECTOR, np.float64(-1.0))
    assert by_branch == (1.0, 0.0)
    assert (x_bar.tolist(), y_bar) == ([-1.0, 0.0], -1.0)
