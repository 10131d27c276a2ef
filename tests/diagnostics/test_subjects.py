"""Messages name what srcdiff cannot read, with the user's line and a help that fits."""

import collections
import functools
import inspect
import itertools
import threading
from typing import NamedTuple

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial

import srcdiff
from srcdiff import DifferentiationError


class Model:
    def __init__(self):
        self.w = 2.0

    @functools.lru_cache  # noqa: B019 -- as users write it
    def cached(self, x):
        return self.w * x


MODEL, POLYNOMIAL, SERIES = Model(), np.poly1d([1.0, 2.0]), np.polynomial.Polynomial([1.0, 2.0])
GENERATOR, TREE, LOCK = (k for k in range(3)), scipy.spatial.cKDTree(np.eye(2)), threading.Lock()


def one(x):
    return x


CASES = [
    (lambda x: MODEL.cached(x), "`cached` of `Model` is cached by `lru_cache`", "remove the decorator"),
    (lambda x: POLYNOMIAL(x), "an instance of `poly1d` is called", "np.polyval(p.coeffs, x)"),
    (lambda x: SERIES(x), "an instance of `Polynomial` is called", "np.polyval(p.coef[::-1], x)"),
    (lambda x: sum(GENERATOR) * x, "an instance of `generator` cannot be iterated", "make a list of it, outside"),
    (lambda x: TREE.query([x, x])[0], "attributes of an instance of `cKDTree`", "outside the function"),
    (lambda x: (LOCK.acquire(), x)[1], "attributes of an instance of `lock`", "outside the function"),
    (lambda x: collections.Counter([1])[1] * x, "instances of the class `Counter`", "count in an array"),
    (lambda x: sum(k * x for k, _ in itertools.groupby([1, 1])), "the class `groupby`", "write a loop"),
    (lambda x: threading.Thread(target=one).start(), "the class `Thread`", "call the function itself"),
    (lambda x: scipy.linalg.schur(np.eye(2) * x)[0][0, 0], "`scipy.linalg.schur` is not among", "rule_for"),
    (lambda x: float(open("f").read()) * x, "`open`", "read the numbers outside"),  # noqa: PTH123
    (lambda x: globals()["x"] * x, "`globals`", "write the names themselves"),
    (lambda x: x * len({1, 2}.union({3})), "`union` of a set", "use a list"),
    (lambda x: np.sum(np.full((1, 1, 1, 1, 2), x)[np.ones((1, 1, 1, 1, 2)) > 0]), "more than 4 axes", "`a.ravel()["),
    (lambda x: id(x) * x, "`id`", "compare objects with `is`"),
    (lambda x: np.save("f", x), "`np.save`", ""),
    (lambda x: [x] * x, "this operation of a list and a float", ""),
    (lambda x: x.foo, "a float has no attribute `foo`", ""),
    (lambda x: (np.ones(2) * x).foo, "an array has no attribute `foo`", ""),
    (lambda x: x @ x, "`@` of a float is not defined", "use `*`"),
    (lambda x: len(x), "a float has no length", ""),
    (lambda x: len(str(x)) * x, "a string has no length", ""),
    (lambda x: (np.ones(2) * x).dump("f"), "the method `dump` of an array is not supported", ""),
    (lambda x: (np.ones(2) * x).newbyteorder().sum(), "of an array is not supported", ""),
    (lambda x: one(x, x), "`one` takes 1 argument, but 2 are given", ""),
]


@pytest.mark.parametrize(("function", "said", "help_"), CASES, ids=[said for _, said, _ in CASES])
def test_the_message_names_the_thing_at_the_line_of_the_user(function, said, help_):
    with pytest.raises(DifferentiationError) as raised:
        srcdiff.grad(function, backend="python")(1.5)
    text = str(raised.value)
    assert said in text
    assert help_ in text
    assert f"test_subjects.py:{inspect.getsourcelines(function)[1]}:" in text


def test_all_places_of_an_array_may_be_summed_in_a_generator_expression():
    def weighted(x):
        return sum(x[i, j] * (i + 2 * j) for i, j in np.ndindex(2, 3)) + sum(v * i for (i, _), v in np.ndenumerate(x))

    expected = np.add.outer(np.arange(2.0), 2 * np.arange(3.0)) + np.arange(2.0)[:, None]
    assert np.array_equal(expected, srcdiff.grad(weighted, backend="python")(np.ones((2, 3))))


WHOSE = "a tuple whose element 1 is"


class Pair(NamedTuple):
    x: float
    y: float


def shorter(x):
    p = (x, (x, x))
    while p[0] > 1.0:
        p = (x / 2.0, (x,))
    return p[0]


def of_names(x):
    p = Pair(x, x)
    while p[0] > 1.0:
        p = (x / 2.0, x)
    return p[0]


def of_types(x):
    p = (x, 1.0)
    while p[0] > 1.0:
        p = (x / 2.0, np.ones(2))
    return p[0]


def of_keys(x):
    p = {"a": x}
    while x > 1.0:
        p, x = {"b": x}, x / 2.0
    return x * len(p)


@pytest.mark.parametrize(
    ("function", "one", "other"),
    [
        (
            shorter,
            f"{WHOSE} a tuple of 2 elements",
            f"{WHOSE} a tuple of 1 element",
        ),
        (of_names, "the named tuple `Pair`", "a plain tuple"),
        (of_types, f"{WHOSE} a float", f"{WHOSE} an array (float64[:])"),
        (of_keys, "a dictionary with the keys `a`", "a dictionary with the keys `b`"),
    ],
)
def test_two_types_are_told_apart(function, one, other):
    with pytest.raises(DifferentiationError) as error:
        srcdiff.grad(function, backend="python")(1.5)
    assert f"is {one} on one path and {other} on another" in error.value.problems[0].message


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if f"{x}" == "1.5" else 2.0 * x,
        lambda x: x if f"{x}" != "1.5" else 2.0 * x,
        lambda x: x if f"{x}" in ("1.5", "2.5") else 2.0 * x,
        lambda x: x if ("1.5", 1) == (str(x), 1) else 2.0 * x,
        lambda x: ["1.5"].index("%.1f" % x) * x + x,  # noqa: UP031
        lambda x: ["1.5"].count(format(x)) * x,
    ],
)
def test_text_with_numbers_is_not_compared(function):
    with pytest.raises(DifferentiationError, match="a text with numbers is compared"):
        srcdiff.grad(function, backend="python")(1.5)
