"""Recursive functions that write to objects and change dictionaries, their own or their caller's."""

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError

X = np.array([0.5, 1.2, -0.3])


class Part:
    def __init__(self, a):
        self.a, self.t, self.n, self.seen = a, 2 * a, 0, []
        self.values, self.named, self.other = np.zeros(3), {"k": a}, None


class Rule:
    calls = 0

    def __init__(self, f, tolerance):
        self.f, self.tolerance, self.worst = f, tolerance, 0.0

    def integral(self, a, b, depth):
        self.calls += 1
        middle = 0.5 * (a + b)
        one, two = (b - a) * self.f(middle), 0.5 * (b - a) * (self.f(a) + self.f(b))
        self.worst = max(self.worst, abs(one - two))
        if abs(one - two) < self.tolerance or depth == 0:
            return one
        return self.integral(a, middle, depth - 1) + self.integral(middle, b, depth - 1)


def methods_that_count(x):
    rule = Rule(lambda v: np.exp(v * x[1]), 1e-2)
    return rule.integral(0.0, x[1], 4) * rule.calls + rule.worst


def visit(part, k):
    if k == 0:
        return
    part.seen.append(part.a * k)
    part.values[k % 3] += part.a
    part.named["k"] *= 1.1
    part.n += 1
    visit(part, k - 1)
    part.t = part.t + len(part.seen) * part.named["k"]


def attributes_of_all_kinds(x):
    part = Part(x[0])
    visit(part, int(5 * x[1]) - 2)
    return sum(part.seen) * part.t + np.sum(part.values**2) + part.n * part.named["k"]


def exchanged(one, two, k):
    if k == 0:
        return one.t - two.t
    one.t += two.a
    two.t *= 1.1
    return exchanged(two, one, k - 1) * 0.5 + one.t


def two_objects_and_one_object_twice(x):
    one, two = Part(x[0]), Part(x[1])
    return exchanged(one, two, 3) + exchanged(one, one, 2) * two.t


class Node:
    def __init__(self, depth, value):
        self.value, self.visits, self.left, self.right = value, 0, None, None
        if depth > 0:
            self.left, self.right = Node(depth - 1, 0.5 * value), Node(depth - 1, 1.5 * value)

    def scale(self, s):
        self.value *= s
        if self.left is not None:
            self.left.scale(0.9 * s)
            self.right.scale(s + self.value)

    def total(self):
        self.visits += 1
        return self.value**2 + (self.left.total() + self.right.total() if self.left is not None else 0.0)


def a_tree(x):
    tree = Node(2, x[0])
    tree.scale(x[1])
    return tree.total() * tree.visits + tree.total()


class Remembering:
    def __init__(self, x):
        self.x, self.known, self.hits = x, {}, 0

    def value(self, k):
        if k in self.known:
            self.hits += 1
            return self.known[k]
        self.known[k] = self.x if k < 2 else self.value(k - 1) * self.x + self.value(k - 2)
        return self.known[k]


def results_that_are_remembered(x):
    remembering = Remembering(x[1])
    return remembering.value(len(x) + 2) + remembering.hits + sum(remembering.known.values())


def one_of_two_chosen_before(x):
    one, two = Part(x[0]), Part(x[1])
    part = one if x[0] > 0.0 else two
    part.t += 1.0

    def go(k):
        one.t += k * two.a
        return one.t if k == 0 else go(k - 1) * 0.5

    return go(3) + one.t * two.t + part.t


PROGRAMS = [
    *(methods_that_count, attributes_of_all_kinds, two_objects_and_one_object_twice, a_tree),
    *(results_that_are_remembered, one_of_two_chosen_before),
]


@pytest.mark.parametrize("function", PROGRAMS)
def test_recursive_programs_that_write_to_objects(function):
    srcdiff.check(function, X, backend="python")
    assert srcdiff.value_and_grad(function, backend="python")(X)[0] == pytest.approx(function(X))


def test_a_compiled_recursion_that_writes_to_objects():
    srcdiff.check(attributes_of_all_kinds, X, backend="numba")


OUTSIDE = Part(1.0)


def writes_outside(x, k):
    OUTSIDE.t += x
    OUTSIDE.named["k"] *= 1.2
    return x if k == 0 else writes_outside(1.1 * x, k - 1) + OUTSIDE.t * OUTSIDE.named["k"]


def test_objects_from_outside_stay_as_they_were():
    srcdiff.check(writes_outside, 1.3, 3, backend="python")
    assert (OUTSIDE.t, OUTSIDE.named) == (2.0, {"k": 1.0})


def gives_a_new_attribute(part, k):
    if k == 0:
        return 1.0
    part.fresh = k * part.a
    return gives_a_new_attribute(part, k - 1) + part.fresh


def makes_a_part(k):
    if k == 0:
        return Part(1.0)
    part = makes_a_part(k - 1)
    part.t += 1.0
    return part


def counts_the_keys(part, k):
    if k == 0:
        return part.t
    if k == 1:
        del part.named["k"]
    return counts_the_keys(part, k - 1) + len(part.named)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: gives_a_new_attribute(Part(x), int(x)), "gives `Part` a new `fresh`"),
        (lambda x: makes_a_part(int(x)).t * x, "an instance of `Part` that it makes"),
        (lambda x: counts_the_keys(Part(x), int(x)), "the key 'k' is in the dictionary on some paths only"),
    ],
)
def test_what_a_recursion_cannot_do_with_objects_is_refused(function, said):
    with pytest.raises(DifferentiationError, match=said):
        srcdiff.grad(function, backend="python")(3.0)
