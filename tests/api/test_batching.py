"""`batched` with elements that differ: results of different shapes, exceptions, and broadcast axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcdiff

numba = pytest.mark.numba
WAYS = [
    pytest.param("python", False, id="python"),
    pytest.param("numba", False, id="numba", marks=numba),
    pytest.param("numba", True, id="threads", marks=numba),
]


def multiples(n, x):
    found = np.zeros(n)
    for i in range(n):
        found[i] = x * i
    return found


def turned(k, x):
    return np.ones((2, 3)) * x if k > 0 else np.ones((3, 2)) * x


def several(n, x):
    return {"number": n * x, "pair": (np.ones(2), np.ones((n, 2)))}


@pytest.mark.parametrize(("backend", "parallel"), WAYS)
@pytest.mark.parametrize(
    ("function", "sizes", "said"),
    [
        (multiples, [2, 2, 3], r"`result` of element 2 has the shape \(3,\), that of element 0 has \(2,\)"),
        (multiples, [2, 1, 3], r"`result` of element 1 has the shape \(1,\), that of element 0 has \(2,\)"),
        (multiples, [2, 0, 2], r"`result` of element 1 has the shape \(0,\), that of element 0 has \(2,\)"),
        (multiples, [1, 1, 10**6], r"element 2 has the shape \(1000000,\)"),
        (turned, [1, 0], r"`result` of element 1 has the shape \(3, 2\), that of element 0 has \(2, 3\)"),
        (several, [2, 2, 2, 5], r"`result\['pair'\]\[1\]` of element 3 has the shape \(5, 2\), .* \(2, 2\)"),
    ],
)
def test_results_of_other_shapes_than_the_first_are_refused(
    function: Any, sizes: list[int], said: str, backend: str, parallel: bool
) -> None:
    with pytest.raises(ValueError, match=said):
        srcdiff.batched(function, over=0, backend=backend, parallel=parallel)(np.array(sizes), 2.0)


@pytest.mark.parametrize(("backend", "parallel"), WAYS)
@pytest.mark.parametrize("shared", ["each", "sum"])
def test_values_and_further_results_of_gradients_are_compared_too(backend: str, parallel: bool, shared: str) -> None:
    def loss(n, w):
        return w[0] * n, np.ones(int(n)) * w[0]

    gradient = srcdiff.grad(loss, "w", has_aux=True, backend=backend)
    batch = srcdiff.batched(gradient, over="n", shared=shared, parallel=parallel)

    w_bar, ones = batch(np.array([2, 2, 2]), np.array([3.0, 1.0]))

    assert w_bar.tolist() == ([6.0, 0.0] if shared == "sum" else [[2.0, 0.0]] * 3)
    assert ones.tolist() == [[3.0, 3.0]] * 3
    with pytest.raises(ValueError, match=r"element 2 has the shape \(1,\)"):
        batch(np.array([2, 2, 1]), np.array([3.0, 1.0]))


@numba
def test_the_first_of_several_elements_that_differ_is_named() -> None:
    sizes = np.full(1000, 2)
    sizes[[400, 700, 999]] = 3, 4, 5

    for _ in range(3):
        with pytest.raises(ValueError, match="element 400 "):
            srcdiff.batched(multiples, over="n", parallel=True)(sizes, 2.0)


def positive(x):
    if x < 0.0:
        raise ValueError("below zero")
    return x * x


@pytest.mark.parametrize(("backend", "parallel"), WAYS)
@pytest.mark.parametrize("place", [1, 50, 99])
def test_what_an_element_raises_is_raised(backend: str, parallel: bool, place: int) -> None:
    x = np.ones(100)
    x[place] = -1.0

    with pytest.raises(ValueError, match="below zero"):
        srcdiff.batched(srcdiff.grad(positive, backend=backend), parallel=parallel)(x)


@pytest.mark.parametrize(("backend", "parallel"), WAYS)
def test_sizes_that_are_one_stretch_in_any_element(backend: str, parallel: bool) -> None:
    def total(n, x):
        return np.sum(np.ones(n) * x + np.arange(3.0))

    batch = srcdiff.batched(total, over="n", backend=backend, parallel=parallel)

    assert batch(np.array([3, 1, 3]), 2.0).tolist() == [9.0, 9.0, 9.0]
    with pytest.raises(ValueError, match="broadcast"):
        batch(np.array([3, 1, 2]), 2.0)


@pytest.mark.parametrize(("backend", "parallel"), WAYS)
def test_lists_of_known_length_have_a_list_of_batches(backend: str, parallel: bool) -> None:
    def both(x, weights):
        return x * weights[0] * weights[1], [x, weights[1]]

    gradient = srcdiff.grad(both, ("x", "weights"), has_aux=True, backend=backend)
    (x_bar, weights_bar), given = srcdiff.batched(gradient, over="x", parallel=parallel)(np.array([1.0, 2.0]), [3.0, 5])

    assert x_bar.tolist() == [15.0, 15.0]
    assert [bar.tolist() for bar in weights_bar] == [[5.0, 10.0], [3.0, 6.0]]
    assert [part.tolist() for part in given] == [[1.0, 2.0], [5.0, 5.0]]


@pytest.mark.parametrize("sizes", [[0, 2], [2, 0], [2, 2]])
def test_lists_whose_lengths_show_at_run_time_are_refused(sizes: list[int]) -> None:
    def numbers(n, x):
        found = []
        for i in range(n):
            found.append(x * i)
        return found

    def arrays(n, x):
        found = []
        for _ in range(n):
            found.append(np.ones(2) * x)
        return found

    for function in (numbers, arrays):
        with pytest.raises(TypeError, match="returns a list with a length known only at run time"):
            srcdiff.batched(function, over="n", backend="python")(np.array(sizes), 2.0)
