"""Forward and reverse mode against each other: every program of the corpus, and all forms of arguments and results.

The two modes share the rules but not the way through the program, and agree to rounding, which no difference quotient
does.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import srcdiff
from tests.arrays.programs import PROGRAMS as ARRAY_PROGRAMS
from tests.arrays.rows import Row
from tests.numerical import clone, numbers_in
from tests.programs import PROGRAMS, Program
from tests.subset import every

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]

#: The allowed difference between two orders of evaluation, relative to the largest term of the sum.
AGREE = {False: 1e-10, True: 1e-4}


def direction(value: Any, random: np.random.Generator) -> Any:
    """A tangent for an argument."""
    if isinstance(value, np.ndarray):
        return random.standard_normal(value.shape).astype(value.dtype)
    if isinstance(value, tuple | list):
        items = [direction(item, random) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return float(random.standard_normal())


def along(bars: Any, dots: Any) -> tuple[float, float]:
    """The sum of the products of all numbers, and the sum of their absolute values."""
    terms = [a * b for a, b in zip(numbers_in(bars), numbers_in(dots), strict=True)]
    return float(sum(terms)), float(sum(abs(t) for t in terms))


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a zero gradient gives a warning; here it is compared
        return function(*arguments)


@pytest.mark.parametrize("program", [*PROGRAMS, *ARRAY_PROGRAMS], ids=lambda program: program.name)
def test_forward_agrees_with_reverse(program: Program | Row, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(7)
    for arguments in program.at:
        gradient = srcdiff.grad(program.function, wrt=program.wrt, backend="python")
        bars = quietly(gradient, *clone(arguments))
        dots = tuple(direction(arguments[k], random) for k in program.wrt)
        tangents = [dots[program.wrt.index(k)] if k in program.wrt else None for k in range(len(arguments))]

        value, tangent = srcdiff.jvp(program.function, clone(arguments), tangents, backend="python")

        expected, scale = along(bars, dots)
        assert value == pytest.approx(program.function(*clone(arguments)), rel=1e-4)
        assert abs(tangent - expected) <= AGREE[program.single_precision] * max(1.0, scale), arguments


# ------------------------------------------------------------------------------------------- arguments and results


def pair(x, a):
    """Two results, an array and a number."""
    b = a * x
    for i in range(1, len(b)):
        b[i] += np.sin(b[i - 1]) * x
    return b, x * x


def write_squares(out, x):
    """Writes its result into an argument whose old contents it reads."""
    for i in range(len(x)):
        out[i] = out[i] * x[i] ** 2


def squares_of(xs):
    """A list for a list."""
    ys = [x * x for x in xs]
    ys.append(2.0)
    return ys


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_without_tangent_is_constant(backend: str) -> None:
    a = np.arange(3.0)

    (_, square), (b_dot, square_dot) = srcdiff.jvp(pair, (1.5, a), (None, np.ones(3)), backend=backend)

    assert square == 2.25
    assert square_dot == 0.0
    assert b_dot[0] == 1.5


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pullback_is_the_transpose_of_the_tangent(backend: str) -> None:
    random = np.random.default_rng(3)
    a, a_dot, b_bar = (random.standard_normal(4) for _ in range(3))

    _, (b_dot, square_dot) = srcdiff.jvp(pair, (1.5, a), (0.3, a_dot), backend=backend)
    _, pullback = srcdiff.vjp(pair, 1.5, a, backend=backend)
    x_bar, a_bar = pullback((b_bar, 0.7))

    np.testing.assert_allclose(b_bar @ b_dot + 0.7 * square_dot, 0.3 * x_bar + a_bar @ a_dot, rtol=1e-13)
    assert pullback((None, 1.0))[0] == 3.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_written_into_arguments_is_a_result(backend: str) -> None:
    out, x = np.array([3.0, 4.0]), np.array([1.0, 2.0])

    value, tangent = srcdiff.jvp(write_squares, (out, x), (None, np.ones(2)), backend=backend)
    same_value, pullback = srcdiff.vjp(write_squares, out, x, backend=backend)
    out_bar, x_bar = pullback(out=np.ones(2))

    assert out.tolist() == [3.0, 4.0]
    assert value["out"].tolist() == same_value["out"].tolist() == [3.0, 16.0]
    assert tangent["out"].tolist() == x_bar.tolist() == [6.0, 16.0]
    assert out_bar.tolist() == [1.0, 4.0]
    with pytest.raises(TypeError, match="does not write to x: it writes to out"):
        pullback(x=np.ones(2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_have_lists_as_tangents(backend: str) -> None:
    assert srcdiff.jvp(squares_of, ([1.0, 3.0],), ([1.0, 2.0],), backend=backend) == (
        [1.0, 9.0, 2.0],
        [2.0, 12.0, 0.0],
    )
    assert srcdiff.vjp(squares_of, [1.0, 3.0], backend=backend)[1]([1.0, 1.0, 1.0]) == ([2.0, 6.0],)


def test_a_tangent_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a_dot has the shape \(2,\), but its value has \(3,\)"):
        srcdiff.jvp(pair, (1.0, np.ones(3)), (1.0, np.ones(2)), backend="python")


# ------------------------------------------------------------------------------------------- derivatives of derivatives

CORPUS = [*PROGRAMS, *ARRAY_PROGRAMS]
COSTLY = {"gaussian_process"}  # to the third order
FIFTH, SAMPLE = every(5, CORPUS), [p for p in every(30, CORPUS) if p.name not in COSTLY]

#: The derivative along a direction, as a function of this many arguments and their tangents.
ALONG: dict[int, Callable[..., Any]] = {
    1: lambda f: lambda a, v: srcdiff.jvp(f, (a,), v)[1],
    2: lambda f: lambda a, b, v: srcdiff.jvp(f, (a, b), v)[1],
    3: lambda f: lambda a, b, c, v: srcdiff.jvp(f, (a, b, c), v)[1],
    4: lambda f: lambda a, b, c, d, v: srcdiff.jvp(f, (a, b, c, d), v)[1],
    5: lambda f: lambda a, b, c, d, e, v: srcdiff.jvp(f, (a, b, c, d, e), v)[1],
    6: lambda f: lambda a, b, c, d, e, g, v: srcdiff.jvp(f, (a, b, c, d, e, g), v)[1],
    7: lambda f: lambda a, b, c, d, e, g, h, v: srcdiff.jvp(f, (a, b, c, d, e, g, h), v)[1],
    8: lambda f: lambda a, b, c, d, e, g, h, i, v: srcdiff.jvp(f, (a, b, c, d, e, g, h, i), v)[1],
}


def holds_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, tuple) and any(map(holds_list, value)))


class Directions:
    """Random directions for the arguments of a program at a point, and its derivatives along them."""

    def __init__(self, program: Program | Row, arguments: tuple[Any, ...]) -> None:
        random = np.random.default_rng(11)
        self.program, self.arguments, self.wrt = program, arguments, program.wrt
        self.first, self.second, self.third = (
            tuple(direction(arguments[k], random) for k in self.wrt) for _ in range(3)
        )

    def tangents(self, dots: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dots[self.wrt.index(k)] if k in self.wrt else None for k in range(len(self.arguments)))

    def forward_over(self, derivative: Any, *further: Any, by: Any) -> Any:
        arguments = (*clone(self.arguments), *further)
        tangents = (*self.tangents(by), *(None for _ in further))
        return quietly(lambda: srcdiff.jvp(derivative, arguments, tangents, backend="python")[1])

    def reverse_over(self, derivative: Any, *further: Any, by: Any) -> Any:
        arguments = (*clone(self.arguments), *further)
        return quietly(lambda: srcdiff.vjp(derivative, *arguments, wrt=self.wrt, backend="python")[1](by))

    def require_equal(self, *pairs: tuple[Any, Any]) -> None:
        """Check that all sums of products are equal."""
        (expected, scale), *others = [along(*pair) for pair in pairs]
        for found, _ in others:
            assert abs(found - expected) <= AGREE[self.program.single_precision] * max(1.0, scale), self.arguments


@pytest.mark.parametrize("program", FIFTH, ids=lambda program: program.name)
def test_second_derivatives_agree(program: Program | Row, capsys: pytest.CaptureFixture[str]) -> None:
    """Forward over reverse, reverse over reverse and reverse over forward: the Hessian between two directions."""
    gradient = srcdiff.grad(program.function, wrt=program.wrt, backend="python")
    counts = {len(arguments) for arguments in program.at[:2]}
    of_tangents = {n: srcdiff.grad(ALONG[n](program.function), wrt=program.wrt, backend="python") for n in counts}
    for arguments in program.at[:2]:
        given = Directions(program, arguments)

        forward = given.forward_over(gradient, by=given.first)
        backward = given.reverse_over(gradient, by=given.second)
        pairs = [(forward, given.second), (backward, given.first)]
        if not holds_list(arguments):  # inside a function, `jvp` takes no tangents of lists
            mixed = quietly(of_tangents[len(arguments)], *clone(arguments), given.tangents(given.first))
            pairs.append((mixed, given.second))

        given.require_equal(*pairs)


@pytest.mark.parametrize("program", SAMPLE, ids=lambda program: program.name)
def test_third_derivatives_agree(program: Program | Row, capsys: pytest.CaptureFixture[str]) -> None:
    """Forward over reverse over forward, and reverse over reverse over forward."""
    if holds_list(program.at[0]):
        pytest.skip("inside of a function, `jvp` takes no tangents of lists")
    given = Directions(program, program.at[0])
    tangent = ALONG[len(program.at[0])](program.function)
    second = srcdiff.grad(tangent, wrt=program.wrt, backend="python")
    direction = given.tangents(given.first)

    forward = given.forward_over(second, direction, by=given.second)
    backward = given.reverse_over(second, direction, by=given.third)

    given.require_equal((forward, given.third), (backward, given.second))


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives_of_any_order(backend: str) -> None:
    second = srcdiff.grad(srcdiff.grad(lambda x: x * x), backend=backend)
    third = srcdiff.grad(srcdiff.grad(srcdiff.grad(lambda x: x**4)), backend=backend)

    assert second(3.0) == 2.0
    assert third(2.0) == 48.0
    assert srcdiff.grad(srcdiff.grad(lambda x: math.sin(x)), backend=backend)(0.7) == -math.sin(0.7)


def sums_of_squares(x):
    """A `while` loop: the first derivative keeps values on a stack."""
    total = 0.0
    while x < 10.0:
        x = x * x
        total += np.sin(x)
    return total


def rosenbrock(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return total


@pytest.mark.parametrize("backend", BACKENDS)
def test_hessian_of_rosenbrock(backend: str) -> None:
    x = np.array([1.2, 0.7, -0.3])

    found = srcdiff.hessian(rosenbrock, backend=backend)(x)

    expected = np.array([[1450.0, -480.0, 0.0], [-480.0, 910.0, -280.0], [0.0, -280.0, 200.0]])
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(srcdiff.hvp(rosenbrock, backend=backend)(x, x), expected @ x, rtol=1e-12)


def test_a_while_loop_is_differentiated_to_the_third_order() -> None:
    first = srcdiff.grad(sums_of_squares, backend="python")
    second = srcdiff.grad(first, backend="python")
    third = srcdiff.grad(second, backend="python")

    h = 1e-5
    assert second(1.5) == pytest.approx((first(1.5 + h) - first(1.5 - h)) / (2 * h), rel=1e-5)
    assert third(1.5) == pytest.approx((second(1.5 + h) - second(1.5 - h)) / (2 * h), rel=1e-5)
    assert srcdiff.jvp(second, (1.5,), (1.0,), backend="python")[1] == pytest.approx(third(1.5), rel=1e-12)


# ---------------------------------------------------------------------------- derivatives inside of differentiated code


def perturbations(x):
    return x * srcdiff.grad(lambda y: x + y)(1.0)


def energy(q, k):
    """A chain of springs that get harder."""
    total = 0.0
    for i in range(1, len(q)):
        d = q[i] - q[i - 1]
        total += 0.5 * k * d * d + 0.1 * d**4
    return total


def trajectory(q, k):
    """Physics with forces from an energy: a particle chain, in steps of half a tenth."""
    p = np.zeros_like(q)
    for _ in range(5):
        p = p - 0.05 * srcdiff.grad(energy)(q, k)
        q = q + 0.05 * p
    return np.sum(q * q) + energy(q, k)


def descent(w, rate):
    """Gradient descent on a nested function."""

    def loss(v):
        return (v[0] - 1.0) ** 2 * v[1] ** 2 + np.sum(v**3) * rate

    for _ in range(3):
        value, slope = srcdiff.value_and_grad(loss)(w)
        w = w - rate * slope / (1.0 + value)
    return loss(w)


def newton(a):
    """Newton's method with the second derivative."""
    x = 2.0
    slope = srcdiff.grad(lambda y: y**4 / 4.0 - a * y)
    for _ in range(6):
        x = x - slope(x) / srcdiff.grad(slope)(x)
    return x


def directional(x, v):
    """A tangent inside a function: `jvp` of a function with two results."""
    value, tangent = srcdiff.jvp(lambda y: y * np.sin(y), (x,), (v,))
    return np.sum(value * tangent)


def likelihood(w, x, y, ridge):
    """The negative log likelihood of labels 0 and 1."""
    z = x @ w
    return np.sum(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0) - y * z) + ridge * np.sum(w * w)


def most_likely(x, y, ridge):
    """Newton's method on a likelihood, as a function of the data."""
    w = np.zeros(2)
    for _ in range(4):
        slope, bend = srcdiff.grad(likelihood)(w, x, y, ridge), srcdiff.hessian(likelihood)(w, x, y, ridge)
        w = w - np.linalg.solve(bend, slope)
    return w[0] * w[1] + np.sum(w**3)


def saddle(a):
    """A minimax problem: gradient descent inside gradient ascent (Pearlmutter and Siskind 2008)."""

    def smallest(x):
        y = 0.5
        for _ in range(3):
            y = y - 0.1 * srcdiff.grad(lambda z: x * x * a - 2.0 * x * z + 3.0 * z * z - x**3 * z)(y)
        return x * x * a - 2.0 * x * y + 3.0 * y * y - x**3 * y

    x = 0.4
    for _ in range(3):
        x = x + 0.1 * srcdiff.grad(smallest)(x)
    return x * smallest(x)


def lands_at(charge):
    """The place where a particle in the field of two charges crosses the axis, with second derivatives."""
    x, y, u, v = 0.0, 8.0, 0.75, 0.0

    def potential(p, q):
        return 1.0 / np.sqrt(p * p + (q - charge) ** 2) + 1.0 / np.sqrt((p - 10.0) ** 2 + (q + charge - 10.0) ** 2)

    step = 0.1
    while y + step * v > 0.0:
        p_bar, q_bar = srcdiff.grad(potential, (0, 1))(x, y)
        x, y = x + step * u, y + step * v
        u, v = u - step * p_bar, v - step * q_bar
    return x - u * y / v


def decayed(rates):
    """An adaptive ODE solver: two orders, and a `while` loop."""
    t, y, h = 0.0, 1.0, 0.2
    while t < 1.0:
        h = min(h, 1.0 - t)
        k1 = -rates[0] * y + np.sin(rates[1] * t)
        k2 = -rates[0] * (y + h * k1) + np.sin(rates[1] * (t + h))
        error = abs(0.5 * h * (k2 - k1))
        if error < 0.05:
            t, y = t + h, y + 0.5 * h * (k1 + k2)
        h = h * 1.3 if error < 0.01 else h * 0.6
    return y * y


def quartic(x, k=1.5):
    return np.sum(np.sin(x) * x[::-1] ** 2) * k + x[0] ** 4


def two_rows(x, k):
    return np.array([x[0] * x[1] * k, np.sin(x[2]) * x[0]])


def cubes_and_doubles(x):
    return np.sum(x**3), x * 2.0


def pulled_back(x):
    value, pullback = srcdiff.vjp(two_rows, x, 2.0)
    x_bar, k_bar = pullback(value * value)
    return np.sum(x_bar * x) + k_bar


def pulled_back_pair(x):
    value, pullback = srcdiff.vjp(cubes_and_doubles, x, wrt=0)
    return np.sum(pullback((x[0], x)) ** 2) + value[0]


def two_products(x, v):
    of_x, of_k = srcdiff.hvp(quartic, wrt=(0, 1))(x, 1.5, (v, 0.3))
    return np.sum(of_x) + of_k


def test_newtons_method_on_a_likelihood_is_differentiated() -> None:
    x = np.array([[0.5, 1.0], [1.5, -1.0], [-1.0, 0.5], [2.0, 2.0]])

    srcdiff.check(most_likely, x, np.array([1.0, 0.0, 0.0, 1.0]), 0.1, wrt=2, backend="python")


def test_a_saddle_point_by_nested_descents_is_differentiated() -> None:
    srcdiff.check(saddle, 1.3, backend="python", order=2)


def test_where_a_particle_lands_has_second_derivatives() -> None:
    srcdiff.check(lands_at, 0.3, backend="python", order=2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_hessian_of_a_solver_that_chooses_its_steps(backend: str) -> None:
    srcdiff.check(decayed, np.array([0.7, 1.9]), backend=backend, order=2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_perturbations_are_not_confused(backend: str) -> None:
    assert srcdiff.grad(perturbations, backend=backend)(3.0) == 1.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_forces_from_an_energy(backend: str) -> None:
    srcdiff.check(trajectory, np.array([0.0, 1.1, 1.9, 3.2]), 2.0, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradient_descent_is_differentiated(backend: str) -> None:
    srcdiff.check(descent, np.array([0.3, 0.4]), 0.1, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_newtons_method_is_differentiated(backend: str) -> None:
    assert srcdiff.grad(newton, backend=backend)(3.0) == pytest.approx(3.0 ** (1.0 / 3.0) / 9.0, rel=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_tangent_inside_is_differentiated(backend: str) -> None:
    srcdiff.check(directional, np.array([0.3, 1.4]), np.array([1.0, -0.5]), backend=backend)


# ------------------------------------------------------------------------------------------------- what may go wrong

SCALE = np.array([1.0, 2.0, 3.0])
slope_of_cubes = srcdiff.grad(lambda x: np.sum(SCALE * x**3))


def captured_array_changes(a):
    """The inner function reads an array that the outer one overwrites afterwards."""
    total = 0.0
    for i in range(3):
        slope = srcdiff.grad(lambda b: np.sum(b * b * a * a[i]))(a)  # noqa: B023
        total += np.sum(slope * slope)
        a[i] = total * 0.1
        a *= 0.5
    return total + np.sum(a)


def pair_beside(x):
    """A second result, with both kinds of gradient."""

    def loss(w):
        return np.sum(w**3), w * 2.0

    slope, beside = srcdiff.grad(loss, has_aux=True)(x)
    (value, again), other = srcdiff.value_and_grad(loss, has_aux=True)(x)
    return np.sum(slope * beside) + value * np.sum(other) + np.sum(again)


def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


def fill(a, k, x):
    """A recursive function that returns nothing."""
    if k < len(a):
        a[k] = x * x * k + a[k - 1] * x
        fill(a, k + 1, x)


def filled(x):
    a = np.zeros(4)
    fill(a, 0, x)
    return np.sum(a * a)


def leaves_early(y, n):
    total = 0.0
    for _ in range(n):
        if y > 1.5:
            return total * y
        total += y * y
        y = y * 1.2
    return total


def first_becomes_product(a):
    a[0] = a[1] * a[0]
    return np.sum(a * a)


def mixed(a, b):
    a[0] = b[1] * a[0]
    return np.sum(a * b)


def chosen_inside(x, flag):
    """Derivatives in branches and loops, of functions that read variables of the loop."""
    if x[0] > 0.0:
        g = srcdiff.grad(lambda y: np.sum(np.sin(y) * x))(x)
    else:
        g = x * 2.0
    for k in range(3):
        if k != flag:
            g = g * srcdiff.grad(lambda y: np.sum(y * y * g))(x)  # noqa: B023
    return np.sum(g)


def gradient_is_written(x):
    """A gradient is new memory."""
    c = x.copy()
    g = srcdiff.grad(lambda y: np.sum(y * c))(x)
    g[0] = 5.0 * x[1]
    return np.sum(g * c)


def tangent_is_written(x, v):
    """A tangent is new memory too, also if it is the one that was passed."""
    y, t = srcdiff.jvp(lambda a: a, (x,), (v,))
    t[0] = 3.0 * x[0]
    return np.sum(t * v) + np.sum(y)


def with_keywords(x):
    x = x * 2.0

    def g(y, s=3.0):
        return s * y * y * x

    return srcdiff.grad(g)(x, s=x) + srcdiff.grad(g, "s")(x)


def of_a_tuple(p):
    w, b = p
    w_bar, b_bar = srcdiff.grad(lambda q: np.sum(q[0] ** 2 * q[1] ** 3))((w, b))
    return np.sum(w_bar * w) + b_bar * b


def of_a_list(xs):
    g = srcdiff.grad(lambda ys: sum(y**3 for y in ys))(xs)
    g.append(1.0)
    return g[0] * g[1] + len(g)


NASTY: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (captured_array_changes, (np.array([0.3, 0.5, 0.2]),)),
    (pair_beside, (np.array([0.3, 0.5]),)),
    (lambda x: srcdiff.grad(power)(x, 4) * x, (1.3,)),
    (filled, (0.7,)),
    (lambda x: srcdiff.grad(filled)(x) * x, (0.7,)),
    (lambda x: srcdiff.grad(leaves_early)(x, 5) * x, (1.01,)),
    (lambda x: np.sum(slope_of_cubes(x) * x), (0.2 * SCALE,)),
    (lambda x: np.sum(srcdiff.grad(first_becomes_product)(x) * x), (np.array([0.3, 0.5]),)),
    (lambda x: np.sum(srcdiff.grad(lambda y: first_becomes_product(x) * y)(2.0) * x), (np.array([0.3, 0.5]),)),
    (lambda x: np.sum(srcdiff.grad(mixed, (0, 1))(x * 2.0, x)[1]), (np.array([0.3, 0.5]),)),
    (chosen_inside, (np.array([0.3, 0.5]), 1)),
    (gradient_is_written, (np.array([0.3, 0.5]),)),
    (tangent_is_written, (np.array([0.3, 0.5]), np.array([1.0, -2.0]))),
    (with_keywords, (0.7,)),
    (of_a_tuple, ((np.array([0.3, 0.5]), 1.2),)),
    (of_a_list, ([1.0, 2.0],)),
    (lambda x: srcdiff.grad(srcdiff.grad(lambda y: y**4 * x))(x), (1.3,)),
    (lambda x, v: np.sum(srcdiff.hvp(quartic)(x, v) ** 2), (0.2 * SCALE, np.array([1.0, 0.3, -0.2]))),
    (two_products, (0.2 * SCALE, np.array([1.0, 0.3, -0.2]))),
    (lambda x: np.sum(srcdiff.hessian(quartic)(x) ** 2), (0.2 * SCALE,)),
    (lambda x: srcdiff.hessian(lambda y: y**4)(x) * x, (0.7,)),
    (lambda x: np.sum(srcdiff.jacobian(two_rows)(x, 2.0) ** 2), (0.2 * SCALE,)),
    (lambda x, k: np.sum(srcdiff.jacobian(two_rows, wrt="k")(x, k) * x[:2]), (0.2 * SCALE, 1.3)),
    (pulled_back, (0.2 * SCALE,)),
    (pulled_back_pair, (0.2 * SCALE,)),
]


@pytest.mark.parametrize(("function", "arguments"), NASTY)
def test_derivatives_inside_functions_agree_with_python(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    srcdiff.check(function, *arguments, backend="python", order=2)


@pytest.mark.parametrize(
    "function", [lambda x: srcdiff.grad(mixed)(x, x)[0], lambda x: srcdiff.grad(mixed)(x[:2], x[1:])[0]]
)
def test_an_inner_function_that_writes_into_shared_memory_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="SD403"):
        srcdiff.grad(function, backend="python")(np.array([0.3, 0.5, 0.7]))


@pytest.mark.parametrize(
    "matrix", [np.eye(3), np.diag([1.0, 1.0, 0.0]), np.zeros((2, 2))], ids=["one", "rank 2", "zero"]
)
def test_second_derivatives_of_a_determinant_exist_everywhere(matrix: np.ndarray) -> None:
    found = srcdiff.hessian(lambda a: np.linalg.det(a), backend="python")(matrix)

    n = len(matrix)
    gradient = srcdiff.grad(lambda a: np.linalg.det(a), backend="python")
    for i, j in np.ndindex(n, n):
        step = np.zeros((n, n))
        step[i, j] = 1.0  # the gradient is linear in one element
        np.testing.assert_allclose(found[:, :, i, j], gradient(matrix + step) - gradient(matrix), atol=1e-13)


def test_empty_arrays_have_empty_hessians() -> None:
    assert srcdiff.hessian(lambda a: np.sum(a * a), backend="python")(np.zeros(0)).shape == (0, 0)


# ----------------------------------------------------------------------------------------------------- rules and checks


def square_adjoint(x, out, out_bar):
    return (2.0 * x * out_bar,)


def square_tangent(x, out, x_dot):
    return 2.0 * x * x_dot


def wrong_tangent(x, out, x_dot):
    return 2.1 * x * x_dot


def not_linear(x, out, out_bar):
    return (2.0 * x * out_bar * abs(out_bar),)


@pytest.mark.parametrize("rules", [{"adjoint": square_adjoint}, {"tangent": square_tangent}])
def test_one_rule_is_enough(rules: dict[str, Any]) -> None:
    square = srcdiff.custom_rule(lambda x: x * x, **rules)

    srcdiff.check(lambda x: square(x) * x, 2.0, backend="python", order=2)


def test_rules_that_do_not_belong_together_are_found() -> None:
    square = srcdiff.custom_rule(lambda x: x * x, adjoint=square_adjoint, tangent=wrong_tangent)

    with pytest.raises(AssertionError, match="forward and reverse mode differ"):
        srcdiff.check(lambda x: square(x), 2.0, backend="python")


def test_a_rule_that_is_not_linear_has_no_transpose() -> None:
    square = srcdiff.custom_rule(lambda x: x * x, adjoint=not_linear)

    with pytest.raises(srcdiff.DifferentiationError, match="`not_linear` is not linear in `out_bar`"):
        srcdiff.jvp(lambda x: square(x), (2.0,), (1.0,), backend="python")


def test_check_takes_any_results() -> None:
    srcdiff.check(pair, 1.5, np.array([0.3, 0.5]), backend="python")
    srcdiff.check(write_squares, np.array([3.0, 4.0]), np.array([1.0, 2.0]), backend="python")


FACTOR = 2.0


@numba.njit
def compiled_with_a_constant(x: Any) -> Any:
    return FACTOR * x


@numba.njit
def not_compiled(x: Any) -> Any:
    return np.linalg.multi_dot((x, x, x))[0, 1]


@numba.njit("float64(int64)")
def truncated(x: Any) -> Any:
    return 2.5 * x


def test_check_calls_the_function_as_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert srcdiff.check(compiled_with_a_constant, 1.5, backend="python").entries[0].derivative == 2.0
    monkeypatch.setitem(globals(), "FACTOR", 3.0)  # that Numba has compiled in, and Python reads

    with pytest.raises(AssertionError, match=r"differs from .* function itself returns\n  result: 4.5, .* returns 3$"):
        srcdiff.check(compiled_with_a_constant, 1.5, backend="python")
    srcdiff.check(compiled_with_a_constant.py_func, 1.5, backend="python")


@pytest.mark.filterwarnings("ignore::srcdiff.ZeroGradientWarning")
def test_check_takes_differences_of_the_function_as_it_was_given() -> None:
    assert srcdiff.check(truncated, 2.7, backend="python").entries[0].derivative == 0.0
    srcdiff.check(not_compiled, np.ones((2, 2)), backend="python")  # Numba does not know the function


@pytest.mark.filterwarnings("ignore::srcdiff.CompiledDiffersWarning")
def test_check_names_the_line_where_compiled_code_reads_overwritten_elements() -> None:
    def squared(y: Any) -> None:
        np.square(y[::-1], y)

    with pytest.raises(AssertionError, match=r"result\['y'\]\[1\]: 4, .* 81\n(?s:.)*`np.square\(y\[::-1\], y\)`"):
        srcdiff.check(numba.njit(squared), np.array([2.0, 3.0]), backend="python")
    srcdiff.check(squared, np.array([2.0, 3.0]), backend="python")


def test_check_of_a_derivative_takes_differences_of_the_derivative() -> None:
    report = srcdiff.check(srcdiff.grad(lambda x: x**3, backend="python"), 1.5, backend="python")

    assert report.entries[0].differences == pytest.approx(9.0)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_results_that_are_no_floats_have_no_jacobian(mode: str) -> None:
    found = srcdiff.jacobian(lambda x: {"double": 2.0 * x, "rest": (len(x), x[1])}, mode=mode, backend="python")(
        np.ones(2)
    )

    assert found["double"].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert found["rest"][0] is None
    assert found["rest"][1].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("make", [srcdiff.jacobian, srcdiff.hessian])
def test_intermediate_variables_have_no_jacobian(make: Any) -> None:
    def function(x: float) -> float:
        y = x * x
        return y * y

    with pytest.raises(srcdiff.DifferentiationError, match=r"SD40[24]"):
        make(function, wrt="y", backend="python")(2.0)


@pytest.mark.parametrize("make", [srcdiff.jacobian, srcdiff.hessian, srcdiff.hvp])
def test_only_gradients_have_auxiliary_results(make: Any) -> None:
    with pytest.raises(TypeError, match="has_aux"):
        make(lambda x: (x * x, 10.0 * x), has_aux=True, backend="python")


def test_all_arguments_may_be_held_constant() -> None:
    assert srcdiff.jvp(lambda x, n: np.sum(x**n), (np.ones(2), 3), (None, None), backend="python") == (2.0, 0.0)


def short_adjoint(x: Any, out: Any, out_bar: Any) -> Any:
    return (2.0 * out_bar[:2],)


def adjoint_in_one_number(x: Any, out: Any, out_bar: Any) -> Any:
    return (np.sum(out_bar),)


def short_tangent(x: Any, out: Any, x_dot: Any) -> Any:
    return (2.0 * x[:2] * x_dot[:2],)


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_adjoints_of_rules_must_have_the_shapes_of_the_arguments(backend: str) -> None:
    def function(square: Any) -> Any:
        return lambda x: np.sum(square(x))

    x = np.array([0.3, -0.7, 1.1])
    by_adjoint = function(srcdiff.custom_rule(lambda x: x**2, adjoint=short_adjoint))
    by_tangent = function(srcdiff.custom_rule(lambda x: x**2, tangent=short_tangent))
    with pytest.raises(ValueError, match="shape differs from"):
        srcdiff.grad(by_adjoint, backend=backend)(x)
    with pytest.raises(ValueError, match="shape differs from"):
        srcdiff.jvp(by_tangent, (x,), (x,), backend=backend)
    number = function(srcdiff.custom_rule(lambda x: x**2, adjoint=adjoint_in_one_number))
    with pytest.raises(srcdiff.DifferentiationError, match="returns a number for `x`"):
        srcdiff.grad(number, backend=backend)(x)


def test_threads_do_not_write_into_shared_arguments_of_a_batch() -> None:
    def summed(total: Any, c: float) -> float:
        total[0] += c
        return total[0] * c

    total = np.zeros(1)
    with pytest.raises(ValueError, match="threads would write to `total`"):
        srcdiff.batched(summed, over="c", parallel=True)(total, np.ones(3))
    assert total[0] == 0.0


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_several_results_by_several_arguments(mode: str) -> None:
    def two(a, b):
        return a * b, a[0] * b

    (of_product, of_product_b), (of_first, of_first_b) = srcdiff.jacobian(two, (0, 1), mode=mode, backend="python")(
        np.array([1.0, 2.0]), 3.0
    )

    assert of_product.tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert of_product_b.tolist() == [1.0, 2.0]
    assert of_first.tolist() == [3.0, 0.0]
    assert of_first_b == 1.0


@pytest.mark.parametrize("count", [1, 3, 4])
def test_a_sweep_carries_several_tangents(count: int) -> None:
    def sums(a, k):
        return 0.0 if k == len(a) else np.sin(a[k]) * a[0] + sums(a, k + 1)

    x = np.array([0.3, 0.5, -0.2, 0.9, 1.3])

    several = srcdiff.hessian(rosenbrock, directions=count, backend="python")(x)
    recursive = srcdiff.jacobian(lambda a: (a * sums(a, 0), a[0]), directions=count, mode="forward", backend="python")(
        x
    )

    np.testing.assert_allclose(several, srcdiff.hessian(rosenbrock, backend="python")(x), rtol=1e-13)
    expected = srcdiff.jacobian(lambda a: (a * sums(a, 0), a[0]), mode="reverse", backend="python")(x)
    np.testing.assert_allclose(recursive[0], expected[0], rtol=1e-12)
    np.testing.assert_array_equal(recursive[1], expected[1])


# ------------------------------------------------------------------------------------------------------------ batches


def wave(x, k):
    total = 0.0
    for i in range(len(x)):
        total += np.sin(x[i] * k)
    return total


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_batch_equals_calls_for_its_elements(backend: str) -> None:
    x, k = np.random.default_rng(0).standard_normal((5, 4)), np.linspace(1.0, 2.0, 5)
    gradient = srcdiff.value_and_grad(wave, (0, 1), backend=backend)

    value, (x_bar, k_bar) = srcdiff.batched(gradient, parallel=backend == "numba")(x, k)
    _, (same, _) = srcdiff.batched(gradient, over="x")(x, 1.5)

    for i in range(5):
        one, (x_bar_i, k_bar_i) = gradient(x[i], k[i])
        np.testing.assert_allclose([value[i], k_bar[i], *x_bar[i]], [one, k_bar_i, *x_bar_i], rtol=1e-12)
        np.testing.assert_allclose(same[i], gradient(x[i], 1.5)[1][0], rtol=1e-12)


def chosen_by_a_flag(x, flag):
    return x * x if flag else 3.0 * x


@pytest.mark.parametrize("backend", BACKENDS)
def test_flags_of_a_batch_are_those_of_its_elements(backend: str) -> None:
    x, flags = np.array([0.3, 0.4, 0.5]), np.array([True, False, True])
    batched = srcdiff.batched(srcdiff.grad(chosen_by_a_flag, backend=backend), over=("x", "flag"))

    np.testing.assert_allclose(batched(x, flags), [0.6, 3.0, 1.0], rtol=1e-15)
    np.testing.assert_allclose(batched(x, ~flags), [3.0, 0.8, 3.0], rtol=1e-15)


def test_arguments_of_a_batch_that_do_not_fit_raise() -> None:
    gradient = srcdiff.batched(srcdiff.grad(wave, backend="python"))

    with pytest.raises(ValueError, match="`x` has 5, `k` has 4"):
        gradient(np.ones((5, 3)), np.ones(4))
    with pytest.raises(TypeError, match="`k` is not an array"):
        gradient(np.ones((5, 3)), 1.0)


def test_jacobians_and_their_like_have_a_source() -> None:
    def squares(x):
        return x * x

    def total(x):
        return np.sum(x * x * x)

    makers = (srcdiff.jacobian(squares), srcdiff.jacobian(squares, mode="reverse"), srcdiff.hessian(total))
    heads = ("squares_jacobian(x)", "squares_jacobian(x)", "total_grad_jacobian(x)")
    for derivative, head in zip(makers, heads, strict=True):
        assert f"def {head}:" in derivative.source
    assert "def total_grad_tangent(x, x_dot):" in srcdiff.hvp(total).source

    chosen = srcdiff.jacobian(total, backend="python")
    chosen(np.ones(3))
    assert "x_bar" in chosen.source  # which needs one sweep, not three
    several = srcdiff.jacobian(squares, directions=2, backend="python")
    several(np.ones(3))
    assert "for start in range(0, n, 2):" in several.source


def test_source_shows_every_mode() -> None:
    def doubled(x):
        return 2.0 * x

    heads = {
        "primal": "doubled(x)",
        "forward": "doubled_tangent(x, x_dot)",
        "pullback": "doubled_pullback(x, result_bar)",
    }
    for mode, head in heads.items():
        assert f"def {head}:" in srcdiff.source(doubled, np.ones(3), mode=mode)


def never(x):
    return math.sqrt(x * 0.0) + x


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
def test_product_by_a_constant_zero_is_constant(backend):
    """The derivative of the root is infinite there, but it is multiplied by a constant zero."""
    assert srcdiff.grad(never, backend=backend)(2.0) == 1.0
    assert srcdiff.jvp(never, (2.0,), (1.0,), backend=backend) == (2.0, 1.0)


@pytest.mark.parametrize("mixed", [{"a": [1.0, 2.0], "n": 3}, ([1.0, 2.0], 3)], ids=["dictionary", "tuple"])
def test_integers_beside_lists_have_derivatives_of_both_orders(mixed):
    def f(p):
        a, n = (p["a"], p["n"]) if isinstance(p, dict) else p
        return a[0] ** 2 * n + a[0] * a[1]

    def parts(p):
        return (*p["a"], p["n"]) if isinstance(p, dict) else (*p[0], p[1])

    assert parts(srcdiff.jacobian(f, backend="python")(mixed)) == (8.0, 1.0, 1.0)
    second = parts(srcdiff.hessian(f, backend="python")(mixed))
    assert [parts(row) for row in second] == [(6.0, 1.0, 2.0), (1.0, 0.0, 0.0), (2.0, 0.0, 0.0)]
