"""Generators run as in Python: lazily, interleaved with their consumer, and once."""

# Written as users write.
# ruff: noqa: B905

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import srcdiff

A = np.array([0.3, 1.2, 1.7, 2.1])


def squares(n, x):
    for k in range(n):
        yield x[k] * x[k]


def newton(a):
    y = a
    while True:
        yield y
        y = 0.5 * (y + a / y)


def pairs(x):
    yield x[0], x[1]
    for i in range(1, len(x)):
        yield x[i - 1], x[i]
    yield from [(x[0], x[0]), (x[-1], x[0])]
    for v in squares(3, x):
        yield v, np.cos(v)


def products(x):
    for a in squares(3, x):
        for b in squares(2, x):
            yield a * b


def halves(x, lo, hi):
    while lo < hi:
        mid = (lo + hi) // 2
        yield mid
        if x[mid] > 1.0:
            hi = mid
        else:
            lo = mid + 1


def summed(x):
    t = 0.0
    for s in squares(len(x), x):
        t += np.sin(s)
    return t


def left_by_break(x):
    t = 0.0
    for s in squares(len(x), x):
        if s > 3.0:
            break
        t += np.sin(s)
    else:
        t += 10.0 * x[0]
    return 2.0 * t


def left_by_return(x):
    for s in squares(len(x), x):
        if s > 2.0:
            return s * x[0]
        z = s
    return z


def without_end(x):
    t = 0.0
    for y in newton(x[0] + 3.0):
        t = y
        if abs(y * y - x[0] - 3.0) < 1e-10:
            break
    return t


def builtin_functions(x):
    found = sum(squares(3, x)) + max(squares(4, x)) + min((v for v in squares(4, x) if v > 1e6), default=x[1])
    found += x[0] * any(v > 3 for v in squares(4, x)) + x[1] * all(a * b > -100 for a in x for b in x)
    listed = list(squares(3, x)) + sorted(-v for v in squares(4, x))
    return found + np.sum(np.fromiter((v * 2 for v in x), dtype=float)) * np.sum(np.array(listed))


def gone_through_twice(x):
    g = (v * v for v in x)
    t = 0.0
    for a in g:
        if a < 1.0:
            continue
        t += a * x[1]
    for a in g:
        t += 1000.0
    return t


def of_pairs(x):
    t = 0.0
    for k, (a, b) in enumerate(pairs(x), start=2):
        t += k * a * b
    return t


def beside_sequences(x):
    t = 0.0
    for a, b in zip(newton(x[0] + 3.0), x):
        t += a * b
    for b, a in zip(x, newton(x[0] + 3.0)):
        t += a * b * b
    for b, a in zip(x[:0], newton(x[0] + 3.0)):
        t += 100.0
    for i, (a, b) in enumerate(zip(x, squares(3, x))):
        t += i * a * b
    return t


def nested(x):
    out = np.zeros(len(x))
    for i, s in enumerate(squares(len(x), x)):
        for r in squares(i, x):
            if r > 3.0:
                break
            if r > 1.0:
                continue
            out[i] += s * r
        else:
            out[i] += s
    return np.sum(out)


def of_generators(x):
    t = 1.0
    for i in range(3):
        for v in products(x * (i + 1)):
            if v > 50.0:
                break
            t = t + v * t * 0.01
        if t > 30.0:
            return t * x[2]
    return t


def first_ones(x):
    return next(v for v in x if v > 0.5) * next((v for v in x if v > 100.0), x[1])


def passed_on(x):
    def use(values):
        t = 0.0
        for v in values:
            t = t * 0.5 + v
        return t + sum(values)

    return use(squares(3, x)) + use(v * x[0] for v in x)


def last_element(x):
    s = 0.0
    for s in squares(len(x), x):
        pass
    return s


def raising(x):
    t = 0.0
    try:
        for s in squares(len(x), x):
            if s > 2.0:
                raise ValueError("too large")
            t += s
    except ValueError:
        t += x[1]
    return t


def both_sides_write(x):
    y = x.copy()

    def smooth(n):
        for _ in range(n):
            y[1:] = 0.5 * (y[1:] + y[:-1])
            yield np.sum(y * y)

    t = 0.0
    for e in smooth(5):
        y[0] = y[0] * 1.1
        t += np.sqrt(e + 1.0)
    return t


def held(x):
    y = x.copy()
    found = (v * v for v in y)
    y[0] = 7.0 * x[1]
    return sum(found)


def changed_meanwhile(x):
    y = x.copy()
    total = 0.0
    for v in (y[k] * y[0] for k in range(3)):
        total += v
        y[0] = total
    return total


def bisection(x):
    t = 0.0
    for mid in halves(x, 0, len(x)):
        t += (mid + 1) * x[mid] ** 2
    return t


def of_itertools(x):
    t = 0.0
    for k, v in zip(itertools.count(), x):
        t += k * v * v
    for v in itertools.islice(newton(x[0] + 2.0), 1, 5):
        t += v
    for v in itertools.islice(newton(x[0] + 2.0), 3):
        t += v
    for v in itertools.takewhile(lambda v: v < 2.0, x):
        t += v**3
    for v in itertools.dropwhile(lambda v: v < 1.0, x):
        t += v**4
    for v, w in zip(itertools.repeat(x[1]), x):
        t += v * w
    return t + sum(itertools.repeat(x[0], 3))


def no_elements(x):
    t = x[0]
    for s in squares(0, x):
        t = t * s
    return t


def steps_of_a_list(x):
    states = []
    for s in squares(4, x):
        states.append(2.0 * s)
        if len(states) > 2:
            break
    return np.prod(np.array(states))


def used_in_a_loop(x):
    g = (v * v for v in x)
    t = 0.0
    for _ in range(2):
        t += sum(g)
    return t


def maybe_used(x):
    g = (v * v for v in x)
    t = 0.0
    if x[0] > 0.0:
        t = sum(g)
    return t + sum(g)


def rows(x):
    for k in range(3):
        yield x * (k + 1)


def sums_of_arrays(x):
    return np.sum(sum(rows(x)) ** 2) + sum(squares(4, x), start=x[1])


GENERATORS = [
    *(summed, left_by_break, left_by_return, without_end, builtin_functions, gone_through_twice, of_pairs),
    *(beside_sequences, nested, of_generators, first_ones, passed_on, last_element, raising, both_sides_write, held),
    *(
        used_in_a_loop,
        maybe_used,
        sums_of_arrays,
        changed_meanwhile,
        bisection,
        of_itertools,
        no_elements,
        steps_of_a_list,
    ),
]


@pytest.mark.parametrize("function", GENERATORS)
@pytest.mark.parametrize("x", [A, A[::-1] * 0.8], ids=["rising", "falling"])
def test_generator_runs_as_in_python(function: Any, x: np.ndarray[Any, Any]) -> None:
    value, _ = srcdiff.value_and_grad(function, backend="python")(x)

    assert function(x.copy()) == pytest.approx(value, rel=1e-13)
    srcdiff.check(function, x, backend="python", order=2 if x is A else 1)


@pytest.mark.parametrize("function", [left_by_break, of_generators, both_sides_write])
def test_generator_is_compiled(function: Any) -> None:
    srcdiff.check(function, A, backend="numba")


def test_loop_over_a_generator_is_the_loop_of_the_generator() -> None:
    gradient = srcdiff.grad(summed, backend="python")
    gradient(A)

    assert ["for k in range(x.shape[0]):"] == [
        line.partition("  #")[0].strip() for line in gradient.source.splitlines() if line.lstrip().startswith("for ")
    ]


def names_and_sets(x):
    powers = {name: k + 1 for k, name in enumerate(["a", "b", "c"]) if name != "b"}
    values = {name: x[p] ** p for name, p in powers.items()}
    chosen = {1, 3} if powers["a"] == 1 else {0}
    squared = {k * k for k in range(2)}
    total = dict(zip(["u", "v"], [x[0], x[1]]))["v"] + dict(w=x[2])["w"]
    for i in range(len(x)):
        if i in chosen or (i in {0, 7} and i not in frozenset([2])):
            total += (i + 1) * x[i] ** 2
        if i in squared:
            total += x[i]
    return total + values["a"] * values["c"] * len(chosen)


def test_comprehensions_of_dictionaries_and_sets_of_constants() -> None:
    value, _ = srcdiff.value_and_grad(names_and_sets, backend="python")(A)

    assert names_and_sets(A) == pytest.approx(value, rel=1e-14)
    srcdiff.check(names_and_sets, A, backend="python", order=2)


def maybe_used_in_a_loop(x):
    g = (v * v for v in x)
    t = 0.0
    for k in range(len(x)):
        if x[k] > 1.0:
            t += sum(g)
    return t


def used_after_break(x):
    g = squares(4, x)
    for v in g:
        if v > 1.0:
            break
    return v + sum(g)


def second_next(x):
    g = squares(4, x)
    return next(g) + next(g)


def two_generators(x):
    t = 0.0
    for a, b in zip(squares(3, x), squares(4, x)):
        t += a * b
    return t


def itself(x, n):
    if n > 0:
        yield x[n]
        yield from itself(x, n - 1)


def recursive(x):
    return sum(itself(x, 3))


def guarded(x):
    try:
        yield x[0]
        yield x[1]
    finally:
        x[0] = 2.0


def left_in_a_try(x):
    y = x * 1.0
    for v in guarded(y):
        if v > 0.0:
            break
    return v * y[0]


def chained(x):
    y = x.copy()
    t = 0.0
    for v in itertools.chain((u * u for u in y), squares(2, y)):
        y[-1] += v
        t += v * y[-1]
    return t


def answered(x):
    g = squares(3, x)
    return g.send(None)


def generator(x):
    yield x[0]


def measured(x):
    return len(squares(3, x)) * x[0]


def ordered_set(x):
    t = 0.0
    for k in {3, 1, 2}:
        t = t * x[0] + k
    return t


def set_of_values(x):
    return x[0] * len({x[0], x[1]})


class Scaled:
    def __init__(self, x):
        self.x, self.k = x, 1.0

    def __iter__(self):
        for v in self.x:
            yield self.k * v


def instance_that_changes_meanwhile(x):
    scaled, t = Scaled(x), 0.0
    for i, v in enumerate(scaled):
        scaled.k *= 1.5
        t += (i + 1) * v * v
    return t


def test_generator_of_an_instance_runs_between_the_iterations() -> None:
    value, _ = srcdiff.value_and_grad(instance_that_changes_meanwhile, backend="python")(A)

    assert instance_that_changes_meanwhile(A) == pytest.approx(value, rel=1e-14)
    srcdiff.check(instance_that_changes_meanwhile, A, backend="python")


def value_of_yield_from(x):
    def first():
        yield x[0]
        return x[1]

    def both():
        found = yield from first()
        yield x[2] if found is None else x[3]

    return sum(both())


def written_before_a_generator(x):
    y, t = x.copy(), 0.0

    def doubled():
        for i in range(len(y)):
            y[i] *= 2.0
            yield y[i]

    for a, b in zip(y, doubled()):
        t += a * b
    return t


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (value_of_yield_from, "the value of `yield from`"),
        (written_before_a_generator, "`zip` changes while it is iterated"),
        (maybe_used_in_a_loop, "may have been consumed already"),
        (used_after_break, "ended early"),
        (second_next, "ended early"),
        (two_generators, "zip.*several generators"),
        (recursive, "recursive generator"),
        (left_in_a_try, "while a `try` in the generator"),
        (chained, "`chain` of a generator"),
        (answered, "send"),
        (generator, "is a generator"),
        (measured, "has no length"),
        (ordered_set, "set"),
        (set_of_values, "a set may contain constant"),
    ],
)
def test_what_a_generator_or_a_set_cannot_do_is_refused_with_its_line(function: Any, message: str) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=f"(?s){message}.*test_generators.py"):
        srcdiff.grad(function, backend="python")(A)


class Weighted:
    def __init__(self, x):
        self.x, self.scale = x, 1.0

    def __iter__(self):
        for v in self.x:
            yield self.scale * v * v


def _chained(x):
    weighted, total = Weighted(x), 0.0
    for v in itertools.chain(weighted, [x[0]]):
        weighted.scale *= 1.5
        total += v
    return total


def _accumulated(x):
    weighted, total = Weighted(x), 0.0
    for v in itertools.accumulate(weighted):
        weighted.scale *= 1.5
        total += v
    return total


def _in_pairs(x):
    weighted, total = Weighted(x), 0.0
    for v, w in itertools.pairwise(weighted):
        weighted.scale *= 1.5
        total += v * w
    return total


@pytest.mark.parametrize("f", [_chained, _accumulated, _in_pairs])
def test_iterators_of_instances_are_not_run_before_the_loop(f):
    with pytest.raises(srcdiff.DifferentiationError, match="of an instance with `__iter__` is not supported"):
        srcdiff.grad(f, backend="python")(np.array([0.7, 1.3, -0.4]))
