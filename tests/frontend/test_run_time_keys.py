"""Dictionaries with keys known at run time, and special methods of users' containers."""

import copy

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError


def counted(x, keys):
    d = {}
    for k in keys:
        if k in d:
            d[k] += x * k
        else:
            d[k] = x
    total = 0.0
    for k in d:
        total += d[k] ** 2 * k
    for k, v in d.items():
        total += v * k
    return total + sum(np.sin(v) for v in d.values()) + len(d) * x


def memoised(x, n):
    table = {0: 0.0, 1: x}

    def value(k):
        if k not in table:
            table[k] = table[k - 1] + 0.1 * table[k - 2] * x
        return table[k]

    total = 0.0
    for k in range(n):
        total += value(k)
    return total


def with_default(x, w):
    d = {3: x, 7: x * x}
    total = 0.0
    for k in range(10):
        total += w[k] * d.get(k, 0.5 * x)
    return total


def none_by_default(x, n):
    d = {}
    for k in range(n):
        d[2 * k] = x * k
    total = 0.0
    for k in range(n):
        v = d.get(k)
        if v is not None:
            total += v * v
    return total


def pairs_as_keys(x, n):
    d = {}
    for i in range(n):
        for j in range(i):
            d[i, j] = x * i + j
    total = 0.0
    for (i, j), v in d.items():
        total += v * v * (i - j)
    return total + d[(2, 1)] * d[n - 1, 0]


def comprehension(x, n):
    d = {k: x[k] ** 2 for k in range(n) if k % 2 == 0}
    return sum(d[k] for k in range(n) if k in d) + sum(d.values())


def removed(x, n):
    d = {k: x * k for k in range(n)}
    total = 0.0
    while len(d) > 2:
        k = len(d) - 1
        total += d.pop(k) * k
    del d[0]
    for k in d:
        total += d[k] ** 2
    return total + d.pop(99, 2.0 * x)


def caught(x, n):
    d = {k: x * k for k in range(n)}
    total = 0.0
    for k in range(n + 2):
        try:
            total += d[k] ** 2
        except KeyError:
            total += 0.5 * x
    return total


def given(d, keys):
    total = 0.0
    for k in keys:
        total += d[k] ** 2
    d[2] = total
    d[keys[0] + 10] = total * total
    for k in d:
        total += d[k] * k
    return total


def many_keys(x, n):
    d = {}
    for k in range(-n, n):
        d[k * 1000003] = x * k
    total = 0.0
    for k in range(-n, n):
        total += d[k * 1000003] ** 2
    return total


def changed_while_iterated(x, n):
    d = {}
    for k in range(n):
        d[k] = x * k
    for k, v in d.items():
        d[k] = v * v
    for k in d:
        d[k] *= 3.0
    for i, (k, v) in enumerate(d.items()):
        d[k] = v + i * x
    return sum(d.values()) + max(d.values())


def as_lists(x, n):
    d = {}
    for k in range(n):
        d[k] = x * k
    total = 0.0
    for k in list(d.keys()):
        if k == 2:
            del d[k]
    for k in sorted(d):
        total += d[k] * k
    e = dict(d)
    e[0] = 2.0 * x
    total += x if 3 in d.keys() else 0.0
    return total + np.array(list(d.values()))[1] + sorted(d.items())[1][1] + e[0] + d[0]


def of_arrays(x, n):
    d = {}
    for k in range(n):
        d[k] = x * k
    for k in range(n):
        d[k] = d[k] * d[0] + d[n - 1]
    d[1] += x
    d[2][0] = 7.0
    total = 0.0
    for k, v in d.items():
        total += np.sum(v**2) * k
    return total


def of_tuples(x, n):
    d = {}
    for k in range(n):
        d[k] = (x * k, x + k)
    a, b = d[n - 1]
    return a * b


def copied_and_popped(x, n):
    d = {k: x * k for k in range(n)}
    e = d.copy()
    e[1] = 5.0 * x
    k, v = e.popitem()
    is_dictionary = isinstance(d, dict) and type(e) is dict
    return d[1] * e[1] + v * k + (x if is_dictionary else 0.0)


def on_one_path(x, n):
    d = {}
    if x > 0.0:
        for k in range(n):
            d[k] = x
    else:
        d[0] = 2.0 * x
    return d[0] ** 2 if d else 7.0


OUTSIDE = {1: 2.0, 5: 3.0}


def from_outside(x, k):
    return x * OUTSIDE[k] ** 2


def of_keys_and_values(x, keys):
    d = dict(zip(keys, x))  # noqa: B905
    return d[keys[0]] * d[keys[1]]


class Table:
    """A container of a user."""

    def __init__(self, n):
        self.values = np.zeros(n)
        self.written = 0

    def __getitem__(self, k):
        return self.values[k - 1]

    def __setitem__(self, k, value):
        self.values[k - 1] = value
        self.written += 1

    def __delitem__(self, k):
        self.values[k - 1] = -1.0

    def __contains__(self, k):
        return 0 < k <= len(self.values)

    def __len__(self):
        return self.written


def container_of_ones_own(x, n):
    t = Table(n)
    if t:
        return x
    for k in range(1, n + 1):
        t[k] = x * k
        t[k] += x * x
    if t and 0 not in t and n in t:
        del t[1]
    return t[1] * t[2] * t[n] * t.written


PROGRAMS = [
    (counted, (0.7, np.array([3, 1, 3, 2, 1, 3]))),
    (memoised, (0.9, 9)),
    (with_default, (1.1, np.arange(10.0))),
    (none_by_default, (1.2, 6)),
    (pairs_as_keys, (0.4, 4)),
    (comprehension, (np.arange(1.0, 7.0), 6)),
    (removed, (0.3, 6)),
    (caught, (0.3, 4)),
    (given, ({2: 1.5, 5: 2.5, -3: 0.5}, np.array([5, -3, 5]))),
    (many_keys, (0.3, 20)),
    (changed_while_iterated, (1.3, 4)),
    (as_lists, (1.3, 4)),
    (of_arrays, (np.arange(1.0, 4.0), 3)),
    (of_tuples, (1.2, 3)),
    (copied_and_popped, (1.2, 4)),
    (on_one_path, (1.2, 3)),
    (on_one_path, (-1.2, 3)),
    (from_outside, (1.2, 5)),
    (of_keys_and_values, (np.arange(1.0, 4.0), np.array([4, 5, 6]))),
    (container_of_ones_own, (1.2, 3)),
]


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_gradients_are_those_of_differences(function, arguments):
    value, _ = srcdiff.value_and_grad(function, backend="python")(*arguments)
    assert value == pytest.approx(function(*copy.deepcopy(arguments)), rel=1e-13)
    srcdiff.check(function, *arguments, backend="python")


@pytest.mark.numba
def test_compiled():
    assert srcdiff.grad(many_keys)(0.3, 20) == pytest.approx(srcdiff.grad(many_keys, backend="python")(0.3, 20))


def test_second_derivatives():
    step = 1e-5
    first = srcdiff.grad(memoised, backend="python")
    second = srcdiff.grad(first, backend="python")
    assert (first(0.9 + step, 6) - first(0.9 - step, 6)) / (2 * step) == pytest.approx(second(0.9, 6), rel=1e-8)
    _, tangent = srcdiff.jvp(lambda x: memoised(x, 6), (0.9,), (1.0,), backend="python")
    assert tangent == pytest.approx(first(0.9, 6), rel=1e-12)


def test_an_argument_stays_as_it_was():
    d = {2: 1.5, 5: 2.5}
    srcdiff.grad(given, backend="python")(d, np.array([5, 2]))
    assert d == {2: 1.5, 5: 2.5}


def test_a_gradient_has_the_keys_of_the_argument():
    assert srcdiff.grad(given, backend="python")({2: 0.0, 5: 1.0}, np.array([5])).keys() == {2, 5}


def test_a_key_that_is_not_there_raises():
    with pytest.raises(KeyError, match="not in the dictionary"):
        srcdiff.grad(from_outside, backend="python")(1.0, 2)


def grows(x, n):
    d = {}
    for k in range(n):
        d[k] = x
    for k in d:
        d[k + n] = x
    return d[0]


def test_a_dictionary_that_grows_while_it_is_iterated_raises_as_in_python():
    with pytest.raises(RuntimeError, match="changed size"):
        srcdiff.grad(grows, backend="python")(1.0, 2)


def float_keys(x, n):
    d = {}
    for k in range(n):
        d[0.5 * k] = x
    return d[0.0]


def texts_and_integers(x, n):
    d = {"a": x}
    for k in range(n):
        d[k] = x
    return d["a"]


def as_result(x, n):
    d = {}
    for k in range(n):
        d[k] = x
    return d


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (float_keys, "must be known at compile time"),
        (texts_and_integers, "must be known at compile time"),
        (as_result, "the result is a dictionary whose keys are known at run time"),
    ],
)
def test_other_dictionaries_are_refused(function, said):
    with pytest.raises(DifferentiationError, match=said):
        srcdiff.grad(function, backend="python")(1.0, 3)
