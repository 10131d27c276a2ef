"""Where Numba reads elements that it has already written, srcdiff follows NumPy and warns."""

import warnings

import numpy as np
import pytest
from numba import njit

import srcdiff
from tests.subset import EVERYTHING


def shifted(y):
    y[1:] += y[:-1]


def turned(y):
    y[:4] -= y[3::-1]


def flipped(y):
    y[:4] *= np.flip(y[:4])


def renamed(y):
    part = y[1:]
    part += y[:-1]


def into(y):
    np.add(y[1:], y[:-1], y[1:])


def alone(y):
    np.sin(y[::-1], y)


def rows(y):
    a = y.reshape(2, 3)
    a += a[0]


def columns(y):
    a = y.reshape(2, 3)
    a[:, 1:] += a[:, :-1]


def transposed(y):
    a = y[:4].reshape(2, 2)
    a += a.T


def stretched(y):
    y /= y[:1]


def reshaped(y):
    y[1:] += y[:-1].reshape(5)


OVERLAP = [shifted, turned, flipped, renamed, into, alone, rows, columns, transposed, stretched, reshaped]


def computed(y):
    y[1:] += 2.0 * y[:-1]


def assigned(y):
    y[1:] = y[:-1]


def copied(y):
    y[1:] += y[:-1].copy()


def ahead(y):
    y[:-1] += y[1:]


def halves(y):
    h = len(y) // 2
    y[:h] += y[h:]


def interleaved(y):
    y[::2] += y[1::2]


def of_one(y):
    a = y.reshape(2, 3)
    for i in range(2):
        for j in range(2):
            a[i] += a[j]


def itself(y):
    y += y
    y[1:] *= y[1:]


def element(y):
    y += y[2]


NO_OVERLAP = [computed, assigned, copied, ahead, halves, interleaved, of_one, itself, element]

RUN = [*OVERLAP, *NO_OVERLAP] if EVERYTHING else [alone, element]
"""The compiled cases, which take more time."""


def written(function):
    """The array after the call, and its value after a call with a tangent."""
    y, y_dot = np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0]), np.linspace(-1.0, 1.0, 6)
    value, tangent = srcdiff.jvp(function, (y,), (y_dot,), backend="python")
    return value["y"], tangent["y"]


def run(function):
    y = np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])
    function(y)
    return y


@pytest.mark.parametrize("function", OVERLAP, ids=lambda f: f.__name__)
def test_srcdiff_warns_where_numba_reads_elements_that_it_has_written(function):
    compiled = njit(function)

    if function in RUN:
        assert run(compiled).tolist() != run(function).tolist()
    place = function.__code__.co_firstlineno
    with pytest.warns(srcdiff.CompiledDiffersWarning, match=rf"line {place + 1}|line {place + 2}") as caught:
        value, tangent = written(compiled)
    assert len([w for w in caught if w.category is srcdiff.CompiledDiffersWarning]) == 1
    np.testing.assert_array_equal(value, run(function))
    np.testing.assert_array_equal(tangent, written(function)[1])


@pytest.mark.parametrize("function", NO_OVERLAP, ids=lambda f: f.__name__)
def test_there_is_no_warning_where_both_agree(function):
    compiled = njit(function)

    with warnings.catch_warnings():
        warnings.simplefilter("error", srcdiff.CompiledDiffersWarning)
        value, _ = written(compiled)
    np.testing.assert_array_equal(value, run(function))
    if function in RUN:
        np.testing.assert_array_equal(run(compiled), run(function))


@pytest.mark.parametrize("function", [computed, assigned, ahead], ids=lambda f: f.__name__)
def test_parallel_loops_make_no_copies(function):
    with pytest.warns(srcdiff.CompiledDiffersWarning):
        written(njit(function, parallel=True))


def test_there_is_no_warning_for_python():
    with warnings.catch_warnings():
        warnings.simplefilter("error", srcdiff.CompiledDiffersWarning)
        written(shifted)


def test_helpers_are_compiled_too():
    helper = njit(shifted)

    def total(y):
        y = y.copy()
        helper(y)
        return np.sum(y * y)

    with pytest.warns(srcdiff.CompiledDiffersWarning, match="`y\\[1:\\] \\+= y\\[:-1\\]`"):
        assert srcdiff.grad(total, backend="python")(np.array([1.0, 2.0])).tolist() == [8.0, 6.0]
