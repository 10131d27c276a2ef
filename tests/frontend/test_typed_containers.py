"""`numba.typed.List` and `numba.typed.Dict`: as arguments, from outside, and made inside functions."""

import numpy as np
import pytest
from numba import njit, typed, types

import srcdiff
from srcdiff import DifferentiationError


def dictionary(items, key=types.int64):
    made = typed.Dict.empty(key, types.float64)
    for k, v in items.items():
        made[k] = v
    return made


def squares(items):
    total = 0.0
    for k in range(len(items)):
        total += items[k] ** 2
    return total + sum(np.sin(v) for v in items)


def test_a_list_of_floats_is_an_argument():
    gradient = srcdiff.grad(squares, backend="python")(typed.List([1.0, 2.0]))
    assert isinstance(gradient, typed.List)
    assert list(gradient) == pytest.approx([2 + np.cos(1.0), 4 + np.cos(2.0)])


def of_arrays(items):
    total = 0.0
    for a in items:
        total += np.sum(a**2)
    return total * items[1][0]


def test_a_list_of_arrays_is_an_argument():
    gradient = srcdiff.grad(of_arrays, backend="python")(typed.List([np.arange(3.0), np.ones(2)]))
    assert isinstance(gradient, typed.List)
    assert [0.0, 2.0, 4.0] == list(gradient[0])
    assert [2.0 + 7.0, 2.0] == list(gradient[1])


def changes(items):
    items.append(2.0)
    items[0] *= 2.0
    return items[0] * items[1] * items[-1]


def test_a_list_that_is_changed_stays_as_it_was():
    items = typed.List([1.0, 3.0])
    assert [12.0, 4.0] == list(srcdiff.grad(changes, backend="python")(items))
    assert [1.0, 3.0] == list(items)


@njit
def made_inside(x, n):
    items = typed.List.empty_list(types.float64)
    for k in range(n):
        items.append(x * k)
    items.append(3)
    items.insert(0, x)
    items.pop()
    first = typed.List()
    first.append(x)
    first.extend(items)
    return items[0] * items[2] + items[-1] + len(items) * x + first[0] * first[1]


@njit
def dictionary_inside(x, n):
    d = typed.Dict.empty(types.int64, types.float64)
    for k in range(n):
        d[k] = x * k
    total = 0.0
    for k, v in d.items():
        total += v * k
    e = typed.Dict()
    e[3] = x
    return total + d.get(2, 0.0) + (d[1] if 1 in d else 0.0) + e[3] * len(d)


@njit
def dictionary_of_arrays(x, n):
    d = typed.Dict.empty(key_type=types.int64, value_type=types.float64[:])
    for k in range(n):
        d[k] = np.full(3, x * k)
    d[1][0] = 4.0 * x
    d[0] = d[1] * 2
    total = 0.0
    for v in d.values():
        total += np.sum(v**2)
    return total


PAIR = types.UniTuple(types.int64, 2)


@njit
def pairs_as_keys(x, n):
    d = typed.Dict.empty(PAIR, types.float64)
    for k in range(n):
        d[k, k + 1] = x * k
    return d[1, 2] * d[(2, 3)]


@njit
def texts_as_keys(x):
    d = typed.Dict.empty(types.unicode_type, types.float64)
    d["a"] = x
    d["b"] = 2
    d["a"] *= x
    return d["a"] * d["b"]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (made_inside, (1.5, 3)),
        (dictionary_inside, (1.2, 4)),
        (dictionary_of_arrays, (1.3, 3)),
        (pairs_as_keys, (1.3, 4)),
    ],
)
def test_containers_are_made_inside(function, arguments):
    value, gradient = srcdiff.value_and_grad(function, backend="python")(*arguments)
    plain = function.py_func
    assert value == pytest.approx(plain(*arguments), rel=1e-14)
    step = 1e-5
    ahead, behind = (plain(arguments[0] + s, *arguments[1:]) for s in (step, -step))
    assert gradient == pytest.approx((ahead - behind) / (2 * step), rel=1e-7)


def test_texts_may_be_keys():
    assert srcdiff.value_and_grad(texts_as_keys, backend="python")(1.5) == (4.5, 6.0)


def looked_up(d, keys):
    total = 0.0
    for k in keys:
        total += d[k] ** 2
    d[9] = total
    return total + d[9]


def test_a_dictionary_is_an_argument():
    d = dictionary({3: 1.5, 5: 0.5})
    gradient = srcdiff.grad(looked_up, backend="python")(d, np.array([3, 5, 3]))
    assert isinstance(gradient, typed.Dict)
    assert {3: 12.0, 5: 2.0} == dict(gradient)
    assert {3: 1.5, 5: 0.5} == dict(d)


ITEMS = typed.List([1.0, 2.0])
TABLE = dictionary({3: 2.0, 5: 4.0})


def from_outside(x, n):
    total = 0.0
    for k in range(len(ITEMS)):
        total += ITEMS[k] * x
    return total * TABLE[n]


def test_containers_are_read_from_outside_as_they_are_at_the_call():
    gradient = srcdiff.grad(from_outside, backend="python")
    assert gradient(1.0, 5) == 12.0
    ITEMS[0] = 5.0
    assert gradient(1.0, 3) == 14.0
    ITEMS[0] = 1.0


def twice(a, b):
    a[0] = 2.0
    return a[0] * b[0]


def test_a_list_that_is_changed_is_not_passed_twice():
    items = typed.List([1.0, 3.0])
    with pytest.raises(DifferentiationError, match="twice"):
        srcdiff.grad(twice, backend="python")(items, items)


@njit
def other_type(x):
    items = typed.List()
    items.append(1)
    items.append(x)
    return items[1]


def test_elements_of_another_type_are_refused():
    with pytest.raises(DifferentiationError, match="elements have another type"):
        srcdiff.grad(other_type, backend="python")(1.5)


def asks_for_its_class(items):
    return items[0] * (2.0 if isinstance(items, list) else 3.0) * (5.0 if isinstance(items, typed.List) else 7.0)


def test_a_list_of_numba_is_no_list_of_python():
    assert srcdiff.value_and_grad(asks_for_its_class, backend="python")(typed.List([1.0]))[0] == 15.0
