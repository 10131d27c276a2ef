"""Python's own library: the values of its functions at their edges, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import srcdiff

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


def same_numbers(first: Any, second: Any) -> bool:
    """Equal, also in the sign of zero and in NaN."""
    return repr(first) == repr(second)


# ------------------------------------------------------------------------------------------------------------ `math`


def parts(x):
    return (*math.frexp(x), *math.modf(x), math.ulp(x))


def rest(x, y):
    return math.remainder(x, y)


def close(x, y):
    return 1.0 if math.isclose(x, y) else 0.0


def root(x, n):
    return x * math.isqrt(n)


NUMBERS = [0.0, -0.0, 1.0, -2.0, 0.5, 2.75, -1e300, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308]


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_of_numbers_are_those_of_math(backend: str) -> None:
    compiled = srcdiff.differentiable(backend=backend, fastmath=False)(parts)

    for x in [*NUMBERS, math.inf, -math.inf, math.nan]:
        assert same_numbers(parts(x), tuple(v.item() if isinstance(v, np.generic) else v for v in compiled(x))), x


@pytest.mark.parametrize("backend", BACKENDS)
def test_nearest_remainders_are_those_of_math(backend: str) -> None:
    compiled = srcdiff.differentiable(backend=backend, fastmath=False)(rest)

    for x in [0.0, -0.0, 1.0, 1.5, 2.5, 3.5, -2.5, 1e300, 7.3]:
        for y in [1.0, -1.0, 3.0, 0.7, math.inf, 1e-3]:
            assert same_numbers(rest(x, y), float(compiled(x, y))), (x, y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_are_as_close_as_math_says(backend: str) -> None:
    compiled = srcdiff.differentiable(backend=backend, fastmath=False)(close)

    for x in [*NUMBERS, math.inf, -math.inf, math.nan]:
        for y in [x, x * (1 + 1e-10), x * (1 + 1e-8), math.inf, math.nan, 0.0]:
            assert close(x, y) == compiled(x, y), (x, y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_roots_of_large_whole_numbers_are_exact(backend: str) -> None:
    compiled = srcdiff.differentiable(backend=backend, fastmath=False)(root)

    for r in [0, 1, 2, 94906265, 94906267, 3037000498, 3037000499]:
        for n in (r * r, r * r + 1, abs(r * r - 1)):
            assert math.isqrt(n) == compiled(1.0, n), n
    assert math.isqrt(2**63 - 1) == compiled(1.0, 2**63 - 1)


def large(x, n):
    return x * math.factorial(n)


def choices(x, n, k):
    return x * math.comb(n, k)


@pytest.mark.parametrize("backend", BACKENDS)
def test_whole_numbers_of_more_than_64_bits_raise(backend: str) -> None:
    assert srcdiff.grad(large, backend=backend)(1.0, 20) == math.factorial(20)
    assert srcdiff.grad(choices, backend=backend)(1.0, 66, 33) == float(math.comb(66, 33))
    with pytest.raises(OverflowError, match="more than 64 bits"):
        srcdiff.grad(large, backend=backend)(1.0, 21)
    with pytest.raises(OverflowError, match="more than 64 bits"):
        srcdiff.grad(choices, backend=backend)(1.0, 67, 33)
