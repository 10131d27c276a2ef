"""Loggers that are asked, sets with numbers, instances without attributes, and what is said of them once."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import srcdiff

LOGGER = logging.getLogger("srcdiff.test_small_statements")


def logging_details(x):
    if LOGGER.isEnabledFor(logging.INFO):
        logging.getLogger(__name__).info("x is %s", x)
        return 2.0 * x
    return x


def test_a_logger_says_what_it_takes_at_the_call() -> None:
    gradient = srcdiff.grad(logging_details, backend="python")

    LOGGER.setLevel(logging.ERROR)
    assert gradient(1.0) == 1.0
    LOGGER.setLevel(logging.DEBUG)
    assert gradient(1.0) == 2.0


def in_a_set(x, n, m):
    return sum([x**k for k in range(5) if k in {1, 3, n} and k not in {m}])


def test_sets_with_numbers_of_the_call_are_for_membership() -> None:
    gradient = srcdiff.grad(in_a_set, backend="python")

    assert gradient(2.0, 2, 1) == 4.0 + 12.0
    assert gradient(2.0, 3, 4) == 1.0 + 12.0


class Square:
    power = 2

    def of(self, x):
        return x**self.power


class Cube(Square):
    power = 3


def by_strategy(x, strategy):
    return strategy.of(x) if hasattr(strategy, "power") else x


def test_instances_without_attributes_are_arguments() -> None:
    gradient = srcdiff.grad(by_strategy, backend="python")

    assert gradient(2.0, Square()) == 4.0
    assert gradient(2.0, Cube()) == 12.0
    changed = Cube()
    assert gradient(2.0, changed) == 12.0
    changed.power = 4  # type: ignore[misc]
    assert gradient(2.0, changed) == 32.0


class FailureError(Exception):
    def __init__(self, amount):
        super().__init__(amount)
        self.amount = amount


def with_amount(x):
    try:
        if x > 1.0:
            raise FailureError(x)
    except FailureError as failure:
        return failure.amount
    return x


def of_a_dense_array(a):
    sparse = scipy.sparse.csr_matrix(a)
    return sparse.multiply(sparse).sum() * sparse.nnz


def of_handlers(x):
    return x * len(LOGGER.handlers)


class Body:
    def __init__(self, x):
        self.x, self.v = x, 0.0

    def kick(self, by):
        self.v += by


def best_of(x):
    first = best = Body(x)
    for k in range(int(10.0 * x)):
        other = Body(x * k)
        other.kick(x)
        if other.x > best.x:
            best = other
    best.kick(1.0)
    return best.v * best.x + first.v


def makes_and_passes(body, n):
    made = Body(2.0 * body.x)
    made.kick(body.v + 1.0)
    return made.v if n == 0 else made.v + makes_and_passes(made, n - 1)


def recursion(x):
    return makes_and_passes(Body(x), int(x))


@pytest.mark.parametrize(
    ("function", "argument", "words"),
    [
        (best_of, 2.0, "`best` may be any of the instances of `Body` that iterations make"),
        (recursion, 2.0, "makes an instance of `Body`, whose attributes are assigned, and passes it to itself"),
        (with_amount, 2.0, "`amount` of an exception is not supported"),
        (of_a_dense_array, np.eye(2), "this way to make a sparse array"),
        (of_handlers, 2.0, "`handlers` of a logger is not supported"),
    ],
)
def test_one_problem_is_reported_once(function: Any, argument: Any, words: str) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=words) as caught:
        srcdiff.grad(function, backend="python")(argument)
    assert len(caught.value.problems) == 1
