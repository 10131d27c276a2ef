"""`collections`: `deque`, `defaultdict` and `OrderedDict`."""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict, deque

import numpy as np
import pytest

import srcdiff


def moving_mean(x):
    window, out = deque(maxlen=3), 0.0
    for v in x:
        window.append(v)
        out += (sum(window) / len(window)) ** 2
    return out


def delay_line(x):
    line, out = deque([0.0] * 4), 0.0
    for v in x:
        line.appendleft(v)
        out += line.pop() * v + line[0] * line[-1]
    line.rotate(2)
    line.rotate(-1)
    line[2] *= 2.0
    return out + line[1] * line[0] + line[2]


def breadth_first(x):
    queue, total, count = deque([x[0], x[1]]), 0.0, 0
    while queue and count < 20:
        v = queue.popleft()
        count += 1
        total += v * v
        if v > 0.5:
            queue.append(v * 0.6)
            queue.append(v * 0.3)
    return total


def of_arrays(x):
    history = deque(maxlen=2)
    for k in range(4):
        history.append(x * k)
    other = history
    other.append(np.sin(x))
    newest = np.array(history)
    return np.sum(newest**2) + np.mean(history[0]) * isinstance(history, deque) + len(list(history))


def left_and_right(x):
    a = deque(x[:2], 3)
    a.extend([x[2], 2.0])
    b = a.copy()
    b.extendleft((x[0] * x[0], 1.0))
    b.reverse()
    a.clear()
    a.insert(0, x[1])
    return sum(b) * b[0] + a[0] * b.maxlen


class Filter:
    def __init__(self, size):
        self.taps = deque(maxlen=size)
        self.gain = 0.5

    def __call__(self, v):
        self.taps.append(v)
        return self.gain * sum(self.taps)


def in_instances(x):
    one, two, total = Filter(2), Filter(3), 0.0
    for v in x:
        total += one(v) ** 2 * two(v)
    return total


OUTSIDE = Filter(2)
OUTSIDE.taps.append(3.0)
QUEUE = deque([1.0, 2.0, 3.0])


def from_outside(x):
    queue = QUEUE
    QUEUE.append(x[0])
    first = queue.popleft()
    return sum(QUEUE) * first + OUTSIDE(x[1]) * OUTSIDE(x[2]) + len(OUTSIDE.taps)


def sums_by_name(x):
    sums = defaultdict(float)
    sums["a"] += x[0]
    sums["a"] += x[1]
    if x[0] > 0:
        sums["b"] += x[2]
    sums["b"] *= 2.0
    return sums["a"] ** 2 + sums["b"] + sums["c"] + len(sums) * ("d" in sums or sums.get("d") is None)


def sums_by_number(x):
    sums, counts = defaultdict(float), defaultdict(int)
    for k in range(len(x)):
        sums[(k * k) % 3] += x[k]
        counts[k % 2] += 1
    return sum(v * v for v in sums.values()) + sums[7] + counts[0] * x[0]


def lists_by_name(x):
    lists = defaultdict(list, given=[2.0])
    lists["p"].append(x[0])
    lists["p"].append(x[1])
    lists["q"].append(x[2])
    lists["given"].append(x[0])
    return sum(lists["p"]) * lists["q"][0] + lists["given"][0] * lists["given"][1] + len(lists["none"])


def with_a_function(x):
    start = defaultdict(lambda: x[0] * x[1])
    start["k"] += x[2]
    return start["k"] * start["other"]


def ordered(x):
    weights = OrderedDict(first=x[0])
    weights["second"] = x[1] * x[2]
    return sum(v * len(k) for k, v in weights.items())


PROGRAMS = [
    moving_mean,
    delay_line,
    breadth_first,
    of_arrays,
    left_and_right,
    in_instances,
    from_outside,
    sums_by_name,
    sums_by_number,
    lists_by_name,
    with_a_function,
    ordered,
]


@pytest.mark.parametrize("x", [np.array([0.9, 1.3, -0.4]), np.array([-0.9, 0.3, 0.4])], ids=["one", "other"])
@pytest.mark.parametrize("function", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_derivatives_agree_with_differences(function, x, monkeypatch):
    def plain(v):
        with monkeypatch.context() as patch:
            patch.setitem(globals(), "OUTSIDE", copy.deepcopy(OUTSIDE))
            patch.setitem(globals(), "QUEUE", copy.deepcopy(QUEUE))
            return function(v)

    steps = 1e-6 * np.eye(3)
    expected = [(plain(x + h) - plain(x - h)) / 2e-6 for h in steps]
    value, gradient = srcdiff.value_and_grad(function, backend="python")(x)
    assert value == pytest.approx(plain(x), rel=1e-14)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)
    tangent = srcdiff.jvp(function, (x,), (np.array([1.0, -0.5, 2.0]),), backend="python")[1]
    assert tangent == pytest.approx(gradient @ [1.0, -0.5, 2.0], rel=1e-12, abs=1e-13)
    assert list(QUEUE) == [1.0, 2.0, 3.0]
    assert list(OUTSIDE.taps) == [3.0]


def test_deques_from_outside_have_their_current_contents():
    def f(x):
        return x * sum(QUEUE)

    gradient = srcdiff.grad(f, backend="python")
    assert gradient(2.0) == 6.0
    QUEUE.append(4.0)
    try:
        assert gradient(2.0) == 10.0
    finally:
        QUEUE.pop()
    assert gradient(2.0) == 6.0


@pytest.mark.numba
def test_compiled_gradients_are_the_same():
    x = np.array([0.9, 1.3, -0.4])
    for function in (moving_mean, breadth_first, sums_by_number):
        np.testing.assert_allclose(srcdiff.grad(function)(x), srcdiff.grad(function, backend="python")(x), rtol=1e-13)


def test_exceptions_are_those_of_python():
    def pops(x):
        queue = deque([x])
        return queue.pop() + queue.pop()

    def full(x):
        queue = deque([x], maxlen=1)
        queue.insert(0, 2.0)
        return queue[0]

    def missing(x):
        return x * defaultdict(None, a=2.0)["b"]

    for function, kind in ((pops, IndexError), (full, IndexError), (missing, KeyError)):
        with pytest.raises(kind):
            function(1.0)
        with pytest.raises(kind):
            srcdiff.grad(function, backend="python")(1.0)


def test_what_is_not_supported_is_refused():
    def returned(x):
        return x, deque([x])

    def copied(x):
        d = defaultdict(float)
        d["a"] += x
        return copy.copy(d)["b"] + x

    with pytest.raises(srcdiff.DifferentiationError, match="deque"):
        srcdiff.value_and_grad(returned, has_aux=True, backend="python")(1.0)
    with pytest.raises(srcdiff.DifferentiationError, match="copy of a `defaultdict`"):
        srcdiff.grad(copied, backend="python")(1.0)
