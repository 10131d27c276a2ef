"""Random numbers are those of the function itself, drawn once; derivatives are pathwise."""

# Written as users write.
# ruff: noqa: NPY002

from __future__ import annotations

import copy
import dataclasses
import random
from typing import Any

import numba
import numpy as np
import pytest

import srcdiff

X = np.array([0.3, 1.2, 1.7, 2.1])
OUTSIDE = np.random.default_rng(5)


@dataclasses.dataclass
class Model:
    w: Any
    rng: Any


class Noise:
    def __init__(self, rng):
        self.rng = rng
        self.count = 0

    def draw(self, scale):
        self.count += 1
        return self.rng.normal(0.0, scale) * self.count


def in_a_loop(x, rng):
    total = 0.0
    for i in range(len(x)):
        total += rng.normal(x[i], x[0]) ** 2
    return total


def branches_and_unused(x, rng):
    z = rng.normal()
    w = rng.normal(size=2)
    total = x[0] ** 2
    if x[1] > 1.5:
        total += np.exp(z * x[1]) * rng.random()
    else:
        total += x[1] * rng.random() * rng.random()
    for _ in range(3):
        rng.random()
    u = np.sin(x[2] * w[0]) if x[0] > 1.0 else 0.0
    rng.normal()
    rng.random(3)
    return total + u


def exits(x, rng):
    total = 0.0
    for i in range(5):
        if rng.random() < 0.5:
            continue
        if i == 3 and x[0] > 2.0:
            break
        total += x[i % 4] * rng.normal(x[0], x[1])
    return total


def objects(x, rng):
    model, noise = Model(x, rng), Noise(rng)
    return model.rng.normal() * model.w[0] + noise.draw(x[1]) + noise.draw(x[2]) + noise.count


def caught(x, rng):
    try:
        total = 0.0
        for _ in range(6):
            if rng.random() > 0.7:
                raise ValueError
            total += x[0] * rng.normal()
    except ValueError:
        total = x[1] * rng.normal()
    return total


def comprehensions(x, rng):
    path = (v * rng.random() for v in x)
    return np.sum([rng.normal() * v for v in x]) + sum(path) + np.sum(np.where(x > 0.5, x * rng.random(4), 1.0))


def sizes(x, rng):
    n = rng.integers(1, 5)
    z = np.zeros(n)
    for i in range(n):
        z[i] = rng.normal() * x[0]
    return np.sum(z * z) + np.mean(rng.normal(x, 0.1)) + np.sum(rng.uniform(0.0, x[1], size=(2, 3)))


def metropolis(x, rng):
    y, accepted = x[0], 0
    for _ in range(10):
        proposed = y + 0.5 * x[1] * rng.standard_normal()
        if np.log(rng.random()) < -0.5 * (proposed**2 - y**2):
            y = proposed
            accepted += 1
    return y * accepted


def until(x, rng):
    y, n = x[0], 0
    while rng.random() < 0.8:
        y = np.sin(y) + rng.normal() * x[1]
        n += 1
    return y * n


def distributions(x, rng):
    total = rng.exponential(x[0]) + rng.lognormal(x[0], 0.3) + x[1] * rng.gamma(2.0, x[2]) + rng.laplace(x[0])
    total += rng.rayleigh(x[1]) + rng.gumbel(0.0, x[2]) + rng.logistic(x[3]) + rng.weibull(x[2])
    return total + x[0] * (rng.standard_t(3.0) + rng.beta(2.0, 3.0) + rng.chisquare(2.0) + rng.binomial(5, 0.3))


def elements(x, rng):
    place, count, weighted = (
        rng.integers(0, 4),
        rng.poisson(3.0),
        rng.choice(4, size=3, p=np.array([0.1, 0.2, 0.3, 0.4])),
    )
    turned, order = rng.permutation(x), rng.permutation(4)
    y = x * 2.0
    rng.shuffle(y)
    total = x[place] * count + rng.choice(x) ** 2 + np.sum(rng.choice(x, size=(2, 2)) ** 2)
    return total + np.sum(x[weighted] * turned[:3]) + y[0] * y[1] * x[order[0]]


GIVEN = [
    *(in_a_loop, branches_and_unused, exits, objects, caught, comprehensions, sizes, metropolis, until, distributions),
    elements,
]


def drawn(function: Any, x: Any) -> tuple[Any, Any]:
    """The result of a function for a new generator, and the state of the generator afterwards."""
    rng = np.random.default_rng(11)
    found = function(x.copy(), rng)
    return found, rng.bit_generator.state


@pytest.mark.parametrize("x", [X, X[::-1]], ids=["rising", "falling"])
@pytest.mark.parametrize("function", GIVEN)
def test_generator_as_argument_gives_the_numbers_of_the_function(function: Any, x: Any) -> None:
    value, state = drawn(function, x)
    gradient = srcdiff.value_and_grad(function, backend="python")
    for _ in range(2):
        (found, bar), after = drawn(gradient, x)
        assert (found, after) == (pytest.approx(value, rel=1e-13), state)
    differences = [(drawn(function, x + 1e-6 * e)[0] - drawn(function, x - 1e-6 * e)[0]) / 2e-6 for e in np.eye(len(x))]
    np.testing.assert_allclose(bar, differences, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", GIVEN)
def test_second_derivatives_draw_once(function: Any) -> None:
    _, state = drawn(function, X)
    gradient = srcdiff.grad(function, backend="python")
    found, after = drawn(srcdiff.hessian(function, backend="python"), X)
    product, then = drawn(lambda x, rng: srcdiff.hvp(function, backend="python")(x, rng, np.ones(4)), X)

    assert state == after == then
    columns = [(drawn(gradient, X + 1e-6 * e)[0] - drawn(gradient, X - 1e-6 * e)[0]) / 2e-6 for e in np.eye(4)]
    np.testing.assert_allclose(found, columns, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(product, found.sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("function", [branches_and_unused, exits, elements])
def test_compiled_code_draws_the_same(function: Any) -> None:
    rng = np.random.default_rng(11)
    compiled = srcdiff.value_and_grad(function, backend="numba")(X, rng)
    (value, bar), state = drawn(srcdiff.value_and_grad(function, backend="python"), X)

    assert (compiled[0], rng.bit_generator.state) == (pytest.approx(value, rel=1e-12), state)
    np.testing.assert_allclose(compiled[1], bar, rtol=1e-13)


def seeded(x):
    np.random.seed(3)
    a = np.random.normal(x, 2.0) + np.random.randn(4)
    total = np.sum(a * np.random.rand(4)) + np.random.lognormal(x[0], 0.3) + x[1] * np.random.gamma(2.0, x[2])
    return total + np.random.laplace(x[0]) + x[3] * np.random.randint(1, 5)


def seeded_of_python(x):
    random.seed(1)
    total = 0.0
    for i in range(3):
        total += random.gauss(x[i], x[1]) + random.uniform(0, x[0]) * random.random()
        total += random.expovariate(x[2]) * random.randint(1, 3) + random.choice([1.0, 2.0, 3.0]) * x[3]
    return total


def made_inside(x):
    rng, old = np.random.default_rng(7), np.random.RandomState(4)
    return x[0] * rng.normal() + old.normal(x[1], x[2]) * old.rand()


def from_outside(x):
    return x[0] * OUTSIDE.normal() + x[1] * OUTSIDE.random()


def without_seed(x):
    return x[0] * np.random.normal() + x[1] * random.random() * np.random.standard_normal()


@numba.njit
def compiled_by_numba(x):
    np.random.seed(2)
    random.seed(4)
    total = 0.0
    for i in range(3):
        total += np.random.normal(x[i], x[1]) ** 2 + random.gauss(0.0, 1.0) * x[i] + np.random.randint(0, 5) * x[0]
    return total + np.sum(np.random.standard_normal(4) * x)


def states() -> Any:
    return np.random.get_state(), random.getstate(), copy.deepcopy(OUTSIDE.bit_generator.state)


def put_back(state: Any) -> None:
    np.random.set_state(state[0])
    random.setstate(state[1])
    OUTSIDE.bit_generator.state = state[2]


@pytest.mark.parametrize(
    "function", [seeded, seeded_of_python, made_inside, from_outside, without_seed, compiled_by_numba]
)
def test_other_sources_give_the_numbers_of_the_function(function: Any) -> None:
    before = states()
    value = function(X)
    after = states()
    put_back(before)
    found, _ = srcdiff.value_and_grad(function, backend="python")(X)

    assert found == pytest.approx(value, rel=1e-13)
    assert str(after) == str(states())
    srcdiff.check(function, X, backend="python", order=2)
    assert str(after) == str(states())


@pytest.mark.parametrize("parallel", [False, True])
def test_batches_draw_in_order(parallel: bool) -> None:
    batch = np.array([X, 2.0 * X, 3.0 * X])
    gradient = srcdiff.grad(exits, backend="python")
    if parallel:
        with pytest.raises(ValueError, match="random numbers"):
            srcdiff.batched(srcdiff.grad(exits), over="x", parallel=True)(batch, np.random.default_rng(1))
        return
    rng = np.random.default_rng(1)
    expected = [gradient(x, rng) for x in batch]
    found = srcdiff.batched(gradient, over="x")(batch, np.random.default_rng(1))

    np.testing.assert_allclose(found, expected)


def test_explain_says_that_integers_that_are_drawn_have_no_derivative() -> None:
    def counted(x, rng):
        return rng.poisson(x[0]) * x[1]

    rng = np.random.default_rng(1)

    assert "cut by a draw of `poisson`" in str(srcdiff.explain(counted, X, rng))


def shape_of_a_distribution(x, rng):
    return rng.gamma(x[0])


def inner_derivative(x, rng):
    return srcdiff.grad(lambda y: y * rng.normal())(x[0])


def recursive(x, rng):
    def walk(n):
        return 0.0 if n == 0 else x[0] * rng.normal() + walk(n - 1)

    return walk(rng.integers(2, 5))


def of_vectors(x, rng):
    return np.sum(rng.multivariate_normal(x, np.eye(4)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (shape_of_a_distribution, "no derivative with respect to its parameters"),
        (inner_derivative, "derivatives inside a function"),
        (recursive, "recursive functions cannot draw"),
        (of_vectors, "`rng.multivariate_normal` draws random numbers"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_its_line(function: Any, message: str) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=f"(?s){message}.*test_random_numbers.py"):
        srcdiff.grad(function, backend="python")(X, np.random.default_rng(1))


def test_random_numbers_on_a_gpu_are_refused() -> None:
    pytest.importorskip("numba_cuda", reason="srcdiff[cuda] is not installed")
    with pytest.raises(srcdiff.DifferentiationError, match="random numbers cannot run on the GPU"):
        srcdiff.grad(in_a_loop, backend="cuda")(X, np.random.default_rng(1))


def test_jacobian_in_several_sweeps_is_refused() -> None:
    def many(x, rng):
        return np.sum(np.tanh(x * rng.normal(size=len(x))) ** 2 * np.sum(x))

    x = np.linspace(0.1, 1.0, 40)
    with pytest.raises(ValueError, match="directions="):
        srcdiff.hessian(many, backend="python")(x, np.random.default_rng(1))
    found = srcdiff.hessian(many, backend="python", directions=40)(x, np.random.default_rng(1))
    product = srcdiff.hvp(many, backend="python")(x, np.random.default_rng(1), np.ones(40))

    np.testing.assert_allclose(found.sum(axis=1), product)
