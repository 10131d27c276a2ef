"""What must raise does, as NumPy does and as clearly, and what is refused says what to write instead."""

from __future__ import annotations

import os
from typing import Any

import pytest

import srcdiff
from tests.arrays.comparison import BACKENDS, call, same
from tests.arrays.errors import RAISED, REFUSED, Failure, Refusal
from tests.numerical import clone, is_active_type

on_both_backends = pytest.mark.parametrize("backend", BACKENDS)


def _derivative(failure: Failure | Refusal, backend: str) -> srcdiff.Derivative:
    wrt = tuple(k for k, value in enumerate(failure.arguments) if is_active_type(value))
    return srcdiff.value_and_grad(failure.function, wrt=wrt, backend=backend, boundscheck=True)


def _on_backends() -> list[Any]:
    """Every failure on `python`; every third on `numba` too, which compiles: with SRCDIFF_TEST_ALL, all of them."""
    step = 1 if "SRCDIFF_TEST_ALL" in os.environ else 3
    found = [pytest.param(f, "python", id=f"{f.name}-python") for f in RAISED]
    return found + [pytest.param(f, "numba", id=f"{f.name}-numba") for f in RAISED[::step]]


@pytest.mark.parametrize(("failure", "backend"), _on_backends())
def test_raises_as_numpy_does(failure: Failure, backend: str) -> None:
    given = clone(failure.arguments)

    with pytest.raises(failure.exception) as caught:
        call(_derivative(failure, backend), given)

    assert caught.type is failure.exception
    assert same(given, failure.arguments), "the arguments were changed"
    if backend == "python":  # compiled code raises without the numbers
        message = str(caught.value).replace(", ", ",")
        assert [words for words in failure.says if words not in message] == [], message


@on_both_backends
@pytest.mark.parametrize("refusal", REFUSED, ids=lambda refusal: refusal.name)
def test_is_refused_in_words(refusal: Refusal, backend: str) -> None:
    with pytest.raises(srcdiff.DifferentiationError) as caught:
        call(_derivative(refusal, backend), clone(refusal.arguments))

    message = str(caught.value)
    assert [words for words in refusal.says if words not in message] == [], message


# ---------------------------------------------------------------------------------------------------- the list itself


@pytest.mark.parametrize("failure", RAISED, ids=lambda failure: failure.name)
def test_numpy_raises_it(failure: Failure) -> None:
    with pytest.raises(failure.exception) as caught:
        failure.function(*clone(failure.arguments))

    assert caught.type is failure.exception
    message = str(caught.value).replace(", ", ",")
    assert [words for words in failure.says if words not in message] == [], message
