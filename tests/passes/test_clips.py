"""The derivative of a clip is that of its two functions."""

import itertools

import numpy as np

import srcdiff

NUMBERS = (0.0, -0.0, 1.0, -2.0, 3.0, np.inf, -np.inf)
NAMES = ("x", "low", "high")


def larger(x, low):
    return np.maximum(x, low)


def smaller(x, high):
    return np.minimum(x, high)


def test_a_clip_has_the_derivatives_of_its_parts_at_ties_and_with_limits_in_any_order():
    clip = srcdiff.grad(lambda x, low, high: np.clip(x, low, high), wrt=NAMES, backend="python")
    of_larger = srcdiff.grad(larger, wrt=("x", "low"), backend="python")
    of_smaller = srcdiff.grad(smaller, wrt=("x", "high"), backend="python")
    for x, low, high in itertools.product(NUMBERS, repeat=3):
        (x_bar, low_bar), (bar, high_bar) = of_larger(x, low), of_smaller(max(x, low), high)

        assert clip(x, low, high) == (bar * x_bar, bar * low_bar, high_bar), (x, low, high)


def test_a_clip_of_nan_contributes_to_no_argument():
    clip = srcdiff.grad(lambda x, low, high: np.clip(x, low, high), wrt=NAMES, backend="python")
    for place, number in itertools.product(range(3), NUMBERS):
        point = [number] * 3
        point[place] = np.nan

        assert np.isnan(clip(*point)).all(), point


def test_a_variable_that_is_differentiated_by_stays():
    def program(x):
        kept = np.maximum(x, 0.0)
        return np.minimum(kept, 1.0)

    assert srcdiff.grad(program, wrt="kept")(0.5) == 1.0
