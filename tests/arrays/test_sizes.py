"""Invalid lengths raise as in NumPy, even if the optimised program does not create the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcdiff

Program = Callable[[float, int], Any]

NOT_SEEN = np.array([1.0, 2.0])


def unused(x, n):
    a = np.empty((3, n))
    return x * x * len(a)


def filled_by_a_loop(x, n):
    z = np.zeros(n)
    for i in range(n):
        z[i] = x * i
    return np.sum(z)


def in_a_loop(x, n):
    total = 0.0
    for i in range(3):
        a = np.zeros(n - i)
        total += x + len(a)
    return total


def on_one_side(x, n):
    return x * len(np.ones(n)) if x > 0.0 else x


PROGRAMS: dict[str, Program] = {
    "zeros": lambda x, n: np.sum(np.zeros(n)) + x,
    "ones of two axes": lambda x, n: np.sum(np.ones((2, n)) * x),
    "the length of zeros": lambda x, n: x * len(np.zeros(n)),
    "the size of zeros": lambda x, n: x * np.zeros((n, n)).size,
    "unused": unused,
    "full": lambda x, n: np.sum(np.full((n, 2), x)),
    "ndarray": lambda x, n: x * len(np.ndarray(n)),
    "zeros_like": lambda x, n: np.sum(np.zeros_like(NOT_SEEN, shape=(n,))) + x,
    "filled by a loop": filled_by_a_loop,
    "in a loop": in_a_loop,
    "on one side": on_one_side,
    "eye": lambda x, n: np.sum(np.eye(n) * x),
    "eye of two lengths": lambda x, n: np.sum(np.eye(3, n) * x),
    "identity": lambda x, n: np.sum(np.identity(n) * x),
    "linspace": lambda x, n: np.sum(np.linspace(0.0, x, n)),
    "geomspace": lambda x, n: np.sum(np.geomspace(1.0, x, n)),
    "tile": lambda x, n: np.sum(np.tile(np.array([x, x]), (2, n))),
    "repeat": lambda x, n: np.sum(np.repeat(np.array([x, x]), n)),
    "repeat, each so often": lambda x, n: np.sum(np.repeat(np.array([x, x]), np.array([n, 8]))),
    "broadcast_to": lambda x, n: np.sum(np.broadcast_to(x, (n,))),
    "resize": lambda x, n: np.sum(np.resize(np.array([x, x]), (n, 2))),
    "pad": lambda x, n: np.sum(np.pad(np.array([x, x]), (1, n))),
    "vander": lambda x, n: np.sum(np.vander(np.array([x, x]), n)),
    "indices": lambda x, n: np.sum(np.indices((n, 2)) * x),
    "bincount": lambda x, n: np.sum(np.bincount(np.array([0, 1]), np.array([x, x]), n)),
    "partition": lambda x, n: np.sum(np.partition(np.array([x, x]), n)),
}
ALSO_TOO_LARGE = [
    *("zeros", "ones of two axes", "the length of zeros", "the size of zeros", "unused", "full", "filled by a loop"),
    *("in a loop", "eye", "eye of two lengths", "broadcast_to", "linspace", "indices"),
]


def raised_by(function: Callable[..., Any], n: int) -> tuple[type[BaseException], str]:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 -- the texts are compared
        function(1.5, n)
    return caught.type, str(caught.value)


@pytest.mark.parametrize("name", PROGRAMS)
def test_lengths_below_zero_raise_as_in_numpy(name: str) -> None:
    function = PROGRAMS[name]

    assert raised_by(function, -3) == raised_by(srcdiff.value_and_grad(function, backend="python"), -3)
    assert raised_by(function, -3) == raised_by(srcdiff.differentiable(function, backend="python"), -3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_lengths_that_are_none_and_others_are_as_in_numpy(name: str) -> None:
    for n in (0, 1, 2):
        try:
            expected = PROGRAMS[name](1.5, n)
        except ValueError:
            continue
        value, _ = srcdiff.value_and_grad(PROGRAMS[name], backend="python")(1.5, n)
        np.testing.assert_allclose(value, expected)


@pytest.mark.parametrize("n", [2**62, 2**60])
@pytest.mark.parametrize("name", ALSO_TOO_LARGE)
def test_sizes_that_no_memory_has_raise_as_in_numpy(name: str, n: int) -> None:
    function = PROGRAMS[name]

    assert raised_by(function, n) == raised_by(srcdiff.value_and_grad(function, backend="python"), n)


@pytest.mark.parametrize(
    "name", ["zeros", "ones of two axes", "unused", "the size of zeros", "filled by a loop", "eye"]
)
def test_compiled_code_raises_as_numpy_does(name: str) -> None:
    compiled = srcdiff.value_and_grad(PROGRAMS[name])

    for n in (-3, 2**62):
        assert raised_by(PROGRAMS[name], n) == raised_by(compiled, n)


def test_triangles_have_no_length_below_zero_as_in_numpy() -> None:
    def triangle(x, n):
        return np.sum(np.tri(n) * x) + np.sum(np.triu_indices(n)[0]) * x

    assert srcdiff.value_and_grad(triangle, backend="python")(1.5, -3) == (0.0, 0.0)


def of_an_array(x):
    a = np.zeros(len(x))
    b = np.ones((x.shape[0] + 1, 2))
    for i in range(len(x)):
        a[i] = x[i] * np.sum(np.full(i, 2.0)) * len(np.empty(len(x) // 2))
    return np.sum(a) * b.shape[0]


def of_at_least_zero(x, n):
    return np.sum(x) * len(np.zeros((max(n, 0), len(x)))[0])


def that_was_asked_for(x, n):
    if n < 0:
        raise ValueError("too few")
    assert n >= 0
    return np.sum(x) * len(np.ones(n) * x[0])


@pytest.mark.parametrize("function", [of_an_array, of_at_least_zero, that_was_asked_for])
def test_lengths_that_cannot_be_negative_are_not_checked(function) -> None:
    derivative: Any = srcdiff.grad(function, backend="python")
    derivative(np.arange(4.0), *(3 for _ in range(function.__code__.co_argcount - 1)))

    assert "negative dimensions" not in derivative.source


def test_allocations_check_their_lengths_themselves() -> None:
    def kept(x, n):
        u = np.zeros(n)
        for t in range(1, n):
            u[t] = np.sin(u[t - 1]) + x
        return u[-1] ** 2

    derivative: Any = srcdiff.grad(kept, backend="python")
    derivative(0.5, 4)

    assert "raise" not in derivative.source
