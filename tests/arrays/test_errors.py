"""Programs that must raise do so as in NumPy. Refused programs get a message with a suggestion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.arrays.comparison import BACKENDS, call, same
from tests.arrays.errors import RAISED, REFUSED, Failure, Refusal
from tests.arrays.rows import NUMPY
from tests.numerical import clone, is_active_type
from tests.subset import every

on_both_backends = pytest.mark.parametrize("backend", BACKENDS)


def _derivative(failure: Failure | Refusal, backend: str) -> srcdiff.Derivative:
    wrt = tuple(k for k, value in enumerate(failure.arguments) if is_active_type(value))
    return srcdiff.value_and_grad(failure.function, wrt=wrt, backend=backend, boundscheck=True)


def _on_backends() -> list[Any]:
    """Every failure on `python`; every third also on `numba`. With SRCDIFF_TEST_ALL, all of them."""
    found = [pytest.param(f, "python", id=f"{f.name}-python") for f in RAISED]
    return found + [pytest.param(f, "numba", id=f"{f.name}-numba") for f in every(3, RAISED)]


@pytest.mark.parametrize(("failure", "backend"), _on_backends())
def test_raises_as_numpy_does(failure: Failure, backend: str) -> None:
    given = clone(failure.arguments)

    with pytest.raises(failure.exception) as caught:
        call(_derivative(failure, backend), given)

    assert caught.type is failure.exception
    assert same(given, failure.arguments), "the arguments were changed"
    if backend == "python":  # exceptions of compiled code have no numbers in their texts
        message = str(caught.value).replace(", ", ",")
        assert [words for words in failure.says if words not in message] == [], message


@on_both_backends
@pytest.mark.parametrize("refusal", REFUSED, ids=lambda refusal: refusal.name)
def test_is_refused_in_words(refusal: Refusal, backend: str) -> None:
    with pytest.raises(srcdiff.DifferentiationError) as caught:
        call(_derivative(refusal, backend), clone(refusal.arguments))

    message = str(caught.value)
    assert [words for words in refusal.says if words not in message] == [], message


def chosen(x, i, n):
    return np.sum(np.where(x > 1.0, i, n) * x)


def chosen_first(x, i, n):
    picked = np.where(x > 1.0, n, i)
    picked[0] = 1
    return np.sum(picked * x)


def selected(x, i, n):
    return np.sum(np.select([x > 1.0], [i], n) * x)


SHORT = {kind: np.array([1, 2, 3], dtype=kind) for kind in ("int8", "uint8", "int32")}
X = np.array([1.0, 2.0, 0.5])


@on_both_backends
@pytest.mark.parametrize("function", [chosen, chosen_first, selected])
@pytest.mark.parametrize("kind", SHORT)
def test_integers_that_do_not_fit_are_not_chosen(function: Any, kind: str, backend: str) -> None:
    """NumPy raises since version 2.5. Before, and in `np.select`, it wraps them around."""
    derivative = srcdiff.value_and_grad(function, backend=backend)
    limits = np.iinfo(kind)

    for n in (int(limits.min), int(limits.max), 7):
        value, x_bar = derivative(X, SHORT[kind], n)
        assert function(X, SHORT[kind], n) == value
        np.testing.assert_array_equal(np.where(X > 1.0, *_sides(function, SHORT[kind], n)), x_bar)
    for n in (int(limits.min) - 1, int(limits.max) + 1, 2**40, -(2**40)):
        with pytest.raises(OverflowError, match="out of bounds"):
            derivative(X, SHORT[kind], n)
        if NUMPY >= (2, 5) and function is not selected:
            with pytest.raises(OverflowError, match="out of bounds"):
                function(X, SHORT[kind], n)


def _sides(function: Any, i: Any, n: int) -> tuple[Any, Any]:
    return (n, np.array([1, *i[1:]])) if function is chosen_first else (i.astype(int), n)


def test_constants_that_do_not_fit_are_not_chosen() -> None:
    derivative = srcdiff.grad(lambda x, i: np.sum(np.where(x > 1.0, i, 1000) * x), backend="python")

    np.testing.assert_array_equal([1000.0, 2.0, 1000.0], derivative(X, SHORT["int32"]))
    with pytest.raises(OverflowError, match="1000 out of bounds for int8"):
        derivative(X, SHORT["int8"])


def _added(x, n):
    return x * (n + 2**40)[0]


def _multiplied(x, n):
    return x * (n * (len(n) * 2**30))[0]


def _assigned(x, n):
    n = n.copy()
    n[1:] = 2**40
    return x * n[0]


def _added_in_place(x, n):
    n = n.copy()
    n += 2**31
    return x * n[0]


@pytest.mark.parametrize("f", [_added, _multiplied, _assigned, _added_in_place])
def test_python_integers_that_do_not_fit_into_short_ones_raise_as_in_numpy(f):
    n = np.array([1, 2, 3], dtype=np.int32)
    for called in (f, srcdiff.grad(f, backend="python")):
        with pytest.raises(OverflowError, match="out of bounds for int32"):
            called(2.0, n)


def test_python_integers_that_fit_into_short_ones_are_computed_in_them():
    def f(x, n):
        n = n * 3 + (2**31 - 10)
        n[0] = -5
        n -= 7
        return x * np.sum(n)

    n = np.array([1, 2, 3], dtype=np.int32)
    assert srcdiff.grad(f, backend="python")(2.0, n) == float(f(1.0, n))


# ---------------------------------------------------------------------------------------------------- the list itself


@pytest.mark.parametrize("failure", RAISED, ids=lambda failure: failure.name)
def test_numpy_raises_it(failure: Failure) -> None:
    with pytest.raises(failure.exception) as caught:
        failure.function(*clone(failure.arguments))

    assert caught.type is failure.exception
    message = str(caught.value).replace(", ", ",")
    assert [words for words in failure.says if words not in message] == [], message
