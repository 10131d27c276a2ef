"""Functions of one sample, for batches: each with its arguments, and with those that are batched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    over: tuple[str, ...]
    wrt: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.function.__name__


_random = np.random.default_rng(3)
SAMPLES: list[Sample] = []


def sample(over: str, wrt: str, *arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        SAMPLES.append(Sample(function, arguments, tuple(over.split()), tuple(wrt.split())))
        return function

    return put


@sample("x", "x", _random.normal(size=5))
def one_number(x):
    return np.sin(x) * x


@sample("x y", "theta x scale", _random.normal(size=12), _random.normal(size=(7, 2)), _random.normal(size=7), 0.3)
def hidden_layer_by_loops(theta, x, y, scale):
    h = np.zeros(4)
    for i in range(4):
        h[i] = np.tanh(theta[i] * x[0] + theta[4 + i] * x[1] + scale)
    out = 0.0
    for i in range(4):
        out += theta[8 + i] * h[i]
    return (out - y) ** 2


@sample(
    "x t",
    "w b v x",
    _random.normal(size=(3, 2)),
    _random.normal(size=3),
    _random.normal(size=3),
    _random.normal(size=(5, 2)),
    _random.normal(size=5),
)
def hidden_layer_by_products(w, b, v, x, t):
    h = np.tanh(w @ x + b)
    return (v @ h - t) ** 2


@sample("x0", "p x0", np.array([1.2, 3.0]), _random.uniform(0.2, 1.0, 5))
def steps_until_the_end(p, x0):
    x, t = x0, 0.0
    while t < 1.0:
        dx = p[0] * x * (1.0 - x / p[1])
        step = 0.1 / (1.0 + abs(dx))
        x = x + step * dx
        t += step
    return x


@sample("x", "rate x", 0.5, np.linspace(0.1, 2.0, 6))
def steps_with_a_shared_number(rate, x):
    t = 0.0
    while t < 1.0:
        step = 0.1 / (1.0 + abs(x))
        x = x - step * rate * x
        t += step
    return x * x


@sample("y0", "p y0", np.array([1.3]), _random.normal(size=(5, 2)))
def states_made_anew(p, y0):
    y = y0
    for _ in range(8):
        k1 = np.array([y[1], -p[0] * np.sin(y[0])])
        y = y + 0.1 * k1
    return np.sum(y * y)


@sample("u0", "c u0", 0.1, _random.normal(size=(3, 6)))
def swapped_buffers(c, u0):
    u = u0.copy()
    v = np.zeros_like(u)
    for _ in range(3):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1])
        u, v = v, u
    return np.sum(u**2)


@sample("x", "x", np.array([1.0, 2.0, 0.3, 0.05]))
def list_that_grows(x):
    squares = []
    y = x
    while y > 0.1:
        squares.append(y * y)
        y = y * 0.5
    return sum(squares) + x


@sample("x n", "x a", _random.uniform(1.0, 2.0, 6), np.array([0, 1, 5, 2, 3, 0]), _random.normal(size=6))
def ragged_powers(x, n, a):
    total = 0.0
    for k in range(n):
        total += a[k] * x**k
    return total


@sample("x", "x", _random.normal(size=(4, 5)))
def written_in_place(x):
    for i in range(1, len(x)):
        x[i] = x[i] * x[i - 1] + np.exp(-x[i])
    return x[len(x) - 1]


@sample("z", "s0 k sigma", 1.0, 0.9, 0.3, _random.normal(size=(6, 4)))
def barrier_option(s0, k, sigma, z):
    s, alive = s0, True
    for step in range(len(z)):
        s = s * np.exp(-0.5 * sigma**2 / len(z) + sigma * np.sqrt(1.0 / len(z)) * z[step])
        if s > 1.5:
            alive = False
            break
    return max(s - k, 0.0) if alive else 0.0


@sample("x", "x w", _random.normal(size=(5, 3)).astype(np.float32), _random.normal(size=3).astype(np.float32))
def single_precision(x, w):
    total = np.float32(0.0)
    for i in range(len(w)):
        total += x[i] * w[i] * w[i]
    return total


@sample("q", "table", _random.normal(size=6), np.array([0, 3, 3, 5, 1]))
def looked_up(table, q):
    return table[q] ** 2 + table[0]


@sample("x k", "w x", _random.normal(size=6), _random.normal(size=(5, 6)), np.array([1, 0, -1, 1, 0]))
def in_other_shapes(w, x, k):
    r = x.reshape(2, 3)
    z = np.tanh(w.reshape(3, 2).T * r).copy().ravel()
    for i in range(1, len(z)):
        z[i] = z[i] * z[i - 1] + r[k, -1]
    u = np.transpose(z.reshape(1, 2, 3), (2, 0, 1))
    return np.sum(u * u) + r[k][-2] * np.sum(u[::2, None, :, 1:])


@sample("a b", "a b", 1.0 + _random.random((4, 3)), _random.random((4, 2)))
def steps_and_lengths_by_contents(a, b):
    """The number of kept values depends on array contents, and the lengths of the arrays on other arrays."""
    passed = [x for x in a if x > 1.2]
    y = b.copy()
    steps = 0
    while np.sum(y * y) < 40.0 + len(passed):
        y[:] = y * y + a[steps % len(a)]
        passed.append(y[0])
        steps += 1
    return sum(passed) * np.sum(y)


@sample("x n", "x", _random.uniform(0.5, 1.0, 5), np.array([0, 30, 3, 1, 2]))
def list_with_contents_that_may_grow(x, n):
    items = [x, 2.0 * x, 0.5]
    for k in range(n):
        if k % 2 == 0:
            items.append(items[-1] * x)
        else:
            items[0] = items[0] * items[-1]
    return items[0] * items[-1] + sum(items)


@sample("b", "a b", _random.uniform(0.5, 1.0, 2), 3.0 * _random.normal(size=(4, 2)))
def states_made_anew_until_small(a, b):
    y = a[0] * b
    while np.sum(y * y) > 0.5:
        y = y * 0.9 * a[1]
    return np.sum(y * a)


@sample("a", "a b", _random.uniform(0.2, 1.3, (5, 2)), _random.uniform(0.2, 1.3, 2))
def one_of_several_arrays_in_each_iteration(a, b):
    z = np.zeros(2)
    y = a
    k = 0
    while k < 7 and np.sum(y) < 3.0:
        if k % 3 == 0:
            y = y * b[0]
        elif k % 3 == 1:
            z = y
            y = b
        else:
            y = y[::-1] * z
        k += 1
    return np.sum(y * y) + np.sum(z)


@sample("a b", "a b", _random.uniform(0.2, 1.3, (5, 2)), _random.uniform(0.2, 1.3, (5, 2)))
def longer_array_in_each_iteration(a, b):
    v = np.ones(1) * a[0]
    part = a[:1]
    k = 1
    while k < 5 and np.sum(v) < 6.0:
        new = np.empty(k + 1)
        for i in range(k):
            new[i] = v[i] * part[0] + 0.1
        new[k] = v[k - 1] * a[1]
        v = new
        part = b[k % 2 :]
        k += 1
    return np.sum(v * v)


@sample("a b", "a b", _random.uniform(0.2, 1.3, (5, 2)), _random.uniform(0.2, 1.3, (5, 2)))
def list_made_anew_in_each_iteration(a, b):
    items = [a[0], b[0]]
    for k in range(4):
        items = [x * b[1] + 0.2 for x in items if x < 3.0]
        items.append(a[1] * (len(items) + k))
    return sum(items) * items[0]
