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
def test_exceptions_of_one_element_of_a_batch_are_raised(backend: str, parallel: bool, place: int) -> None:
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


# -- small elements, whose results are written directly into the batch -----------------------------------------------


def bent(x, y):
    """Two numbers by three and by two."""
    r = np.empty(2)
    r[0] = np.sin(x[0]) * y[0] + x[1] * x[2]
    r[1] = x[0] * x[1] * y[1] + np.exp(y[0])
    return r


def outer(x, y):
    return np.outer(x, y), {"sum": x + 1.0, "twice": (2.0 * y,)}


def twice_if_positive(x):
    if x[0] < 0.0:
        raise ValueError("negative")
    return 2.0 * x


def one_array(x):
    y = 2.0 * x
    return y, y


def scaled(x, factor):
    return x * factor


RANDOM = np.random.default_rng(5)
X, Y = RANDOM.normal(size=(7, 3)), RANDOM.normal(size=(7, 2))


def assert_same(expected: Any, actual: Any) -> None:
    if isinstance(expected, tuple | dict):
        assert type(expected) is type(actual)
        assert len(expected) == len(actual)
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            assert_same(expected[key], actual[key])
    else:
        assert expected.dtype == actual.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-13)


def stacked(results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, tuple):
        return tuple(stacked([r[k] for r in results]) for k in range(len(first)))
    if isinstance(first, dict):
        return {key: stacked([r[key] for r in results]) for key in first}
    return np.array(results)


@pytest.mark.parametrize(("backend", "parallel"), WAYS)
@pytest.mark.parametrize("count", [7, 1])
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (bent, (X, Y)),
        (bent, (X[:, ::-1], Y)),
        (outer, (X, Y)),
        (twice_if_positive, (abs(X),)),
        (twice_if_positive, (abs(X).astype(np.float32),)),
        (twice_if_positive, (abs(X[:, :1]),)),
        (one_array, (X,)),
    ],
)
def test_small_results_are_those_of_single_calls(function, arguments, count, backend, parallel):
    arguments = [a[:count] for a in arguments]
    expected = stacked([function(*(a[k] for a in arguments)) for k in range(count)])

    actual = srcdiff.batched(function, backend=backend, parallel=parallel)(*arguments)

    assert_same(expected, actual)


@pytest.mark.parametrize(("backend", "parallel"), WAYS)
def test_jacobians_of_a_batch_are_those_of_single_calls(backend, parallel):
    jacobian = srcdiff.jacobian(bent, wrt=("x", "y"), backend=backend)
    expected = stacked([jacobian(x, y) for x, y in zip(X, Y, strict=True)])

    by_x, by_y = srcdiff.batched(jacobian, backend=backend, parallel=parallel)(X, Y)

    assert_same(expected, (by_x, by_y))
    assert not np.shares_memory(by_x, by_y)


@pytest.mark.parametrize(("backend", "parallel"), WAYS)
def test_later_batches_leave_the_results_of_earlier_ones(backend, parallel):
    twice = srcdiff.batched(twice_if_positive, backend=backend, parallel=parallel)
    first = twice(abs(X))
    kept = first.copy()
    twice(abs(X) + 1.0)

    np.testing.assert_array_equal(first, kept)
    with pytest.raises(ValueError, match="negative"):
        twice(np.array([[1.0], [-1.0]]))
    with pytest.raises(ValueError, match="negative"):
        twice(np.array([[1.0, 2.0], [-1.0, 2.0]]))


@pytest.mark.parametrize(("backend", "parallel"), WAYS)
def test_small_results_with_a_shared_argument_and_other_lengths(backend, parallel):
    batch = srcdiff.batched(scaled, over="x", backend=backend, parallel=parallel)

    np.testing.assert_allclose(batch(X, 3.0), X * 3.0)
    np.testing.assert_allclose(batch(Y, 2.0), Y * 2.0)
    np.testing.assert_allclose(batch(X, np.array([1.0, 2.0, 3.0])), X * np.array([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match=r"broadcast|shape"):
        batch(X, np.array([1.0, 2.0]))


@numba
def test_small_results_are_not_allocated_for_each_element():
    jacobians = srcdiff.batched(srcdiff.jacobian(bent, wrt=("x", "y")))
    jacobians(X, Y)

    assert "np.zeros" not in jacobians.source
    assert "np.empty" not in jacobians.source
