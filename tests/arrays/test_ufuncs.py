"""Every ufunc of NumPy: differentiated, without a derivative, for integers and booleans, or refused."""

import functools
from pathlib import Path

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "numpy.md").read_text()

#: Those whose derivative is zero almost everywhere, and those that give positions, signs or booleans.
ZERO = """ceil divmod equal floor floor_divide greater greater_equal heaviside isfinite isinf isnan less less_equal
logical_and logical_not logical_or logical_xor not_equal rint sign signbit spacing trunc"""
INTEGERS = """bitwise_and bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd
invert lcm left_shift right_shift"""
REFUSED = "bitwise_count isnat"
PRODUCTS = "matmul matvec vecdot vecmat"

UFUNCS = sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))
INACTIVE = {*ZERO.split(), *INTEGERS.split(), *REFUSED.split()}


def applied(name, *arguments):
    found = getattr(np, name)(*arguments)
    return found[0] if isinstance(found, tuple) else found


def summed(name):
    ufunc = getattr(np, name)
    if ufunc.nin == 1 and ufunc.nout == 1:
        return lambda x: 1.0 * np.sum(ufunc(x))
    if ufunc.nin == 1:
        return lambda x: np.sum(ufunc(x)[0])
    if ufunc.nout == 1:
        return lambda x, y: 1.0 * np.sum(ufunc(x, y))
    return lambda x, y: np.sum(ufunc(x, y)[0])


@functools.cache
def arguments_of(name):
    x, y = np.array([0.3, 0.6]), np.array([0.7, 0.25])
    if name in ("arccosh", "acosh"):
        return (x + 2.0,)
    if name == "ldexp":
        return x, np.array([1, 2])
    if name in ("matvec", "matmul"):
        return np.outer(x, y), y
    if name == "vecmat":
        return x, np.outer(x, y)
    return (x, y)[: getattr(np, name).nin]


@pytest.mark.parametrize("name", [name for name in UFUNCS if name not in INTEGERS.split() + REFUSED.split()])
def test_the_derivative_is_that_of_differences(name):
    x, *others = arguments_of(name)
    gradient = srcdiff.grad(summed(name), backend="python")(x, *others)
    step = 1e-6
    direction = np.cos(np.arange(x.size)).reshape(x.shape)
    ahead, behind = (np.sum(applied(name, x + s * direction, *others)) for s in (step, -step))
    change = (float(ahead) - float(behind)) / (2 * step) if name != "spacing" else 0.0
    assert np.sum(gradient * direction) == pytest.approx(change, rel=1e-7, abs=1e-8)
    assert np.any(gradient) == (name not in INACTIVE)


@pytest.mark.parametrize("name", INTEGERS.split())
def test_functions_of_integers_agree_with_numpy(name):
    arguments = (np.array([3, 6]), np.array([2, 1]))[: getattr(np, name).nin]
    assert srcdiff.differentiable(summed(name), backend="python")(*arguments) == np.sum(applied(name, *arguments))


def test_the_others_are_refused_and_the_page_says_so():
    with pytest.raises(DifferentiationError, match="bitwise_count"):
        srcdiff.differentiable(summed("bitwise_count"), backend="python")(np.array([1, 2]))
    for name in REFUSED.split() + INTEGERS.split() + ZERO.split():
        assert f"`{name}`" in PAGE, name
