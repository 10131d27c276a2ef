"""A name for one of several objects, chosen at run time: read, written to, called and compared."""

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError


class Body:
    def __init__(self, x):
        self.x = x
        self.w = np.ones(2) * x

    def step(self, d):
        self.x += d * self.x
        self.w[0] = self.x
        return self.x

    @property
    def square(self):
        return self.x**2

    def __call__(self, t):
        return self.x * t


class Other(Body):
    def step(self, d):
        self.x -= d
        return 2 * self.x


def written(x, c):
    a, b = Body(x), Body(2 * x)
    m = a if c > 0 else b
    m.x += 1.0
    return a.x * b.x * m.x * m.square


def of_two_classes(x, c):
    a, b = Body(x), Other(2 * x)
    if c > 0:
        m = a
    else:
        m = b
    total = m.step(0.5)
    m.x = m.x * 2
    return a.x * b.x + total * m(3.0) + np.sum(m.w) * a.w[0]


def in_a_loop(x, n):
    a, b = Body(x), Body(x * 2)
    best = a
    for k in range(n):
        other = b if best is a else a
        best.step(0.1 * k)
        best = b if a.x > b.x * 0.6 else other
    return a.x * b.x * best.x


def largest_of_a_list(x, _):
    bodies = [Body(x), Body(2 * x), Other(3 * x)]
    far = bodies[0]
    for body in bodies:
        body.step(0.2)
        if body.x > far.x:
            far = body
    far.x *= x
    return sum(body.x * k for k, body in enumerate(bodies))


def swapped(x, c):
    a, b = Body(x), Body(2 * x)
    large, small = (a, b) if c > 0 else (b, a)
    large.x += small.x
    small.x *= large.x
    return a.x - 3 * b.x


def two_choices(x, c):
    a, b = Body(x), Body(2 * x)
    m = a if c > 0 else b
    n = a if c > 1 else b
    m.x += 1.0
    n.x *= 2.0
    return (a.x * b.x + m.x * n.x) * (2.0 if m is n else 1.0) * (3.0 if m is not a else 1.0)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        *((f, (1.3, c)) for f in (written, of_two_classes, swapped) for c in (1.0, -1.0)),
        *((two_choices, (1.3, c)) for c in (-1.0, 0.5, 2.0)),
        (in_a_loop, (1.3, 5)),
        (largest_of_a_list, (1.3, 0)),
    ],
)
def test_gradients_are_those_of_differences(function, arguments):
    value, _ = srcdiff.value_and_grad(function, backend="python")(*arguments)
    assert value == pytest.approx(function(*arguments), rel=1e-14)
    srcdiff.check(function, *arguments, wrt=0, backend="python")


@pytest.mark.numba
def test_compiled():
    assert srcdiff.grad(two_choices)(1.3, 0.5) == srcdiff.grad(two_choices, backend="python")(1.3, 0.5)


def made_in_a_branch(x, c):
    a = Body(x)
    m = a if c > 0 else Body(2 * x)
    m.x += 1.0
    return a.x * m.x


def collected(x, n):
    bodies = []
    for k in range(n):
        bodies.append(Body(x * k))
    for body in bodies:
        body.x += 1.0
    return bodies[0].x


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (made_in_a_branch, "either of two instances of `Body`"),
        (collected, "the list collects instances of `Body`, whose attributes are assigned"),
    ],
)
def test_other_choices_are_refused(function, said):
    with pytest.raises(DifferentiationError, match=said):
        srcdiff.grad(function, backend="python")(1.3, 2)


# -- objects that branches and loops replace ---------------------------------------------------------------------------


class Point:
    def __init__(self, x, cost=0.0):
        self.x, self.cost, self.log = x, cost, [cost]

    def evaluate(self):
        self.cost = np.sum((self.x - 1.0) ** 2)
        return self.cost

    def moved(self, d):
        return Point(self.x + d, self.cost)


def the_best_of_several(x):
    best = Point(x.copy())
    best.evaluate()
    for k in range(len(x)):
        trial = best.moved(0.3 * (k - 1))
        if trial.evaluate() < best.cost:
            best = trial
        best.log.append(best.cost)
    return best.cost * sum(best.log) + np.sum(best.x)


def replaced_in_each_iteration(x):
    point, k = Point(x.copy(), 0.1), 0
    while point.cost < 2.0 and k < 4:
        k += 1
        old, point = point, Point(point.x * 1.1, point.cost + 0.3)
        point.evaluate()
        if k % 2:
            point.log.extend(old.log)
    return point.cost + sum(point.log)


def its_list_has_another_name(x):
    point = Point(x.copy())
    kept = point.log
    if x[0] > 0:
        point = Point(2.0 * x, x[1])
    point.evaluate()
    kept.append(5.0 * x[0])
    return point.cost + sum(point.log) + sum(kept)


def a_name_that_an_inner_function_reads(x):
    point, best = Point(x.copy()), Point(2.0 * x)

    def later():
        return point.cost

    if x[0] > 0:
        best = point
    best.cost += 4.0 * x[0]
    return later() + best.cost


REPLACED = [
    *(the_best_of_several, replaced_in_each_iteration, its_list_has_another_name),
    a_name_that_an_inner_function_reads,
]


@pytest.mark.parametrize("function", REPLACED)
def test_objects_with_lists_that_branches_and_loops_replace(function):
    x = np.array([0.5, 1.2, -0.3])
    srcdiff.check(function, x, backend="python")
    assert srcdiff.value_and_grad(function, backend="python")(x)[0] == pytest.approx(function(x))


def by_a_position(x):
    points = [Point(x[0]), Point(x[1]), Point(x[2])]
    for i in range(3):
        for j in range(3):
            if i != j:
                points[i].cost += 0.1 * (points[j].x - points[i].x)
    for k in np.array([0, 1, -1, 0]):
        points[k].x, points[k - 1].x = points[k - 1].x, 2.0 * points[k].cost
    return sum([p.x * (k + 1) + p.cost**2 for k, p in enumerate(points)])


def functions_by_a_position(x):
    functions, result = [np.sin, lambda v: v * v, np.exp], x[0]
    for k in np.array([0, 1, 2, 1]):
        result = functions[k](result) * x[1]
    return result


@pytest.mark.parametrize("function", [by_a_position, functions_by_a_position])
def test_objects_and_functions_in_lists_are_selected_by_positions_known_at_run_time(function):
    srcdiff.check(function, np.array([0.5, 1.2, -0.3]), backend="python")


def test_a_position_outside_of_the_list_raises_as_in_python():
    with pytest.raises(IndexError, match="list index out of range"):
        srcdiff.grad(lambda x, k: [Point(x), Point(2.0 * x)][k].evaluate(), backend="python")(1.5, 2)
