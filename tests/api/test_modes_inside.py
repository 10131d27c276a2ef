"""Derivatives inside functions have no side effects, and derivatives of derivatives work there too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcdiff
from srcdiff import hessian, hvp, jacobian, jvp, vjp
from tests.numerical import derivative

M = np.array([1.0, 2.0])
CASES: list[Callable[..., Any]] = []


class Parameters(NamedTuple):
    w: Any
    b: Any


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    CASES.append(function)
    return function


def adds_up(m):
    m[0] += m[1]
    return m**2


@case
def jacobian_of_what_writes(m):
    return np.sum(jacobian(adds_up)(m)) + np.sum(m**3)


@case
def pullback_of_what_writes(m):
    value, pullback = vjp(adds_up, m)
    return np.sum(pullback(np.ones(2))[0]) + np.sum(m * value)


@case
def pullback_of_what_was(m):
    _, pullback = vjp(lambda q: q**3, m)
    m[1] = 7.0
    return np.sum(pullback(np.ones(2))[0]) + m[1] * m[0]


@case
def values_are_new(m):
    value, _ = vjp(lambda y: y, m)
    value[1] = 7.0
    other, tangent = jvp(lambda y: y, (m,), (m,))
    other[0], tangent[1] = 9.0, 3.0
    return np.sum(m**2 * value * other * tangent)


@case
def pullback_of_what_writes_around_it(m):
    buffer = np.ones(2)

    def scaled(q):
        buffer[0] += q[1]
        return buffer * q**2

    value, pullback = vjp(scaled, m)
    return np.sum(pullback(np.ones(2))[0] * value) + np.sum(buffer * m)


@case
def jacobian_of_several_results(m):
    first, (second, third) = jacobian(lambda y: (y * y, (y[0] ** 3, np.sum(y**4))))(m)
    return np.sum(first * m) + np.sum(second) + np.sum(third**2)


@case
def hessian_by_several_arguments(m):
    (aa, ab), (ba, _) = hessian(lambda a, b: np.sum(a**3 * b), wrt=(0, 1))(m, m * 2.0)
    return np.sum(ab * m) + np.sum(aa) + np.sum(ba**2)


@case
def pullback_by_a_dictionary(m):
    _, pullback = vjp(lambda p: p["w"] * p["b"] ** 2, {"w": m, "b": m * 3.0})
    return np.sum(pullback(m)[0]["b"])


@case
def pullback_by_a_named_tuple(m):
    _, pullback = vjp(lambda p: p.w * p.b**2, Parameters(m, m * 3.0))
    return np.sum(pullback(m)[0].b)


def three(x):
    return np.array([x[0] ** 2 * x[1], np.sin(x[1]) * x[0], x[0] * x[1]])


def quartic(x):
    return np.sum(x**3) * x[0]


@case
def jacobian_by_rows(m):
    return np.sum(jacobian(three, mode="reverse")(m) ** 2)


@case
def jacobian_by_rows_of_several_results_by_several_arguments(m):
    def results(a, b):
        return a * b, (np.outer(a, a) * b, a[0] * b**3)

    (aa, ab), ((ba, bb), (ca, cb)) = jacobian(results, (0, "b"), mode="reverse")(m, m[1])
    return np.sum(aa * m) + np.sum(ab**2) + np.sum(ba**2) + np.sum(bb) + np.sum(ca * m) + cb


@case
def jacobian_by_rows_of_what_writes(m):
    return np.sum(jacobian(adds_up, mode="reverse")(m)) + np.sum(m**3)


@case
def jacobian_with_four_tangents_in_a_sweep(m):
    matrix = np.array([[m[0], 2.0, m[1]], [m[0] * m[1], 1.0, 3.0]])  # more numbers than a sweep has directions
    of_sum, of_square = jacobian(lambda a: (np.sum(a**3), a * a[0, 0]), directions=4)(matrix)
    return np.sum(of_sum * matrix) + np.sum(of_square**2)


@case
def hessian_with_several_tangents_in_a_sweep(m):
    return np.sum(hessian(quartic, directions=2)(m) * m)


JACOBIAN, HESSIAN, PRODUCT = jacobian(three), hessian(quartic), hvp(quartic)
BY_ROWS, IN_PAIRS = jacobian(three, mode="reverse"), hessian(quartic, directions=2)


@case
def made_outside_with_options(m):
    return np.sum(BY_ROWS(m) ** 2) + np.sum(IN_PAIRS(m) * m)


@case
def made_outside(m):
    return np.sum(JACOBIAN(m) ** 2) + np.sum(HESSIAN(m) * m) + np.sum(PRODUCT(m, m**2))


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_the_derivative_agrees_with_the_function_in_python(function):
    """Value and gradient. The differences are of the function in Python, which calls srcdiff's derivatives."""
    value, gradient = srcdiff.value_and_grad(function, backend="python")(M.copy())

    def run(x):
        with srcdiff_on_python():
            return function(x)

    assert value == pytest.approx(run(M.copy()), rel=1e-12)
    for k in range(2):
        slope = derivative(lambda t, k=k: run(M + t * np.eye(2)[k]))
        assert abs(gradient[k] - slope.value) <= slope.tolerance


def srcdiff_on_python():
    """Derivatives that the function calls in Python run on the `python` backend."""
    patch = pytest.MonkeyPatch()
    for name in ("jacobian", "hessian", "vjp", "jvp"):
        whole = getattr(srcdiff, name)
        patch.setitem(globals(), name, lambda *args, whole=whole, **options: whole(*args, backend="python", **options))
    patch.setitem(globals(), "JACOBIAN", whole_of("jacobian", three))
    patch.setitem(globals(), "HESSIAN", whole_of("hessian", quartic))
    patch.setitem(globals(), "PRODUCT", whole_of("hvp", quartic))
    patch.setitem(globals(), "BY_ROWS", whole_of("jacobian", three))
    patch.setitem(globals(), "IN_PAIRS", whole_of("hessian", quartic))
    return undone(patch)


def whole_of(name, function):
    return getattr(srcdiff, name)(function, backend="python")


class undone:  # noqa: N801 - a context
    def __init__(self, patch):
        self.patch = patch

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.patch.undo()


def by_columns(function, *args):
    """The derivatives by the first argument, from central differences."""
    unit = np.eye(args[0].size)
    steps = [1e-5 * u.reshape(args[0].shape) for u in unit]
    columns = [(function(args[0] + s, *args[1:]) - function(args[0] - s, *args[1:])) / 2e-5 for s in steps]
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobians_and_hessians_have_jacobians(mode):
    x = np.array([0.7, 1.3])
    inner = jacobian(three, mode=mode, backend="python")
    np.testing.assert_allclose(jacobian(inner, mode=mode, backend="python")(x), by_columns(inner, x), atol=1e-8)
    second = hessian(quartic, backend="python")
    np.testing.assert_allclose(jacobian(second, mode=mode, backend="python")(x), by_columns(second, x), atol=1e-8)
    np.testing.assert_allclose(
        jacobian(jacobian(srcdiff.grad(quartic), mode=mode), backend="python")(x), by_columns(second, x), atol=1e-8
    )


def test_products_with_hessians_have_adjoints_tangents_and_batches():
    x, v = np.array([0.7, 1.3]), np.array([1.0, -2.0])
    product = hvp(quartic, backend="python")
    value, pullback = vjp(product, x, v, backend="python")
    np.testing.assert_allclose(value, product(x, v), rtol=1e-13)
    by_x, by_v = pullback(v)
    np.testing.assert_allclose(by_x, by_columns(lambda y: np.sum(product(y, v) * v), x), atol=1e-8)
    np.testing.assert_allclose(by_v, value, rtol=1e-13)  # it is linear, and its own transpose
    _, tangent = jvp(product, (x, v), (v, None), backend="python")
    np.testing.assert_allclose(tangent, by_columns(lambda y: product(y, v), x) @ v, atol=1e-8)
    both = srcdiff.batched(product, over=(0, 1), backend="python")(np.stack([x, v]), np.stack([v, x]))
    np.testing.assert_allclose(both, [product(x, v), product(v, x)], rtol=1e-13)


@pytest.mark.numba
def test_a_jacobian_of_a_jacobian_is_compiled():
    x = np.array([0.7, 1.3])
    compiled = jacobian(jacobian(three))
    np.testing.assert_allclose(compiled(x), jacobian(jacobian(three), backend="python")(x), rtol=1e-12)


BUFFER = np.array([1.0, 1.0])


def adds_to_a_global(m):
    BUFFER[0] += m[1]
    return BUFFER * m**2


def test_enclosing_variables_are_unchanged_after_a_derivative_inside():
    value, pullback = vjp(adds_to_a_global, M, backend="python")
    np.testing.assert_array_equal(value, [3.0, 4.0])
    np.testing.assert_array_equal(pullback(np.ones(2))[0], [6.0, 5.0])
    for mode in ("forward", "reverse"):
        found = jacobian(adds_to_a_global, mode=mode, backend="python")(M)
        np.testing.assert_array_equal(found, [[6.0, 1.0], [0.0, 4.0]])
    srcdiff.check(adds_to_a_global, M, backend="python")
    np.testing.assert_array_equal(BUFFER, [1.0, 1.0])


def test_whole_numbers_in_structures_are_checked_as_floats():
    report = srcdiff.check(lambda p: np.sum(p["a"] ** 2) * p["n"], {"a": M, "n": 3}, backend="python")
    assert "3 derivatives agree" in str(report)


@pytest.mark.parametrize(
    ("options", "sweeps"),
    [
        ({}, 1),
        ({"mode": "reverse"}, 1),
        ({"mode": "forward"}, 1),
        ({"mode": "forward", "directions": 4}, 2),
        ({"mode": "forward", "directions": 1}, 6),
    ],
)
def test_options_of_jacobians_inside_say_how_many_sweeps_there_are(options, sweeps, capfd):
    def loss(x):
        print("run")
        return np.sum(x**2) * x[0]

    inner = jacobian(loss, **options)
    found = srcdiff.differentiable(lambda x: inner(x), backend="python")(np.arange(6.0))

    assert capfd.readouterr().out.count("run") == sweeps
    np.testing.assert_array_equal(found, srcdiff.grad(loss, backend="python")(np.arange(6.0)))


REFUSED = [
    (lambda x: jacobian(three, mode="backward")(x), "`mode` must be None, 'forward' or 'reverse', not 'backward'"),
    (lambda x: jacobian(three, directions=-1)(x), "`directions` must be None or a positive integer, not -1"),
    (lambda x: hessian(quartic, directions=0)(x), "`directions` must be None or a positive integer, not 0"),
    (lambda x: hessian(quartic, mode="reverse")(x), "unknown option `mode`"),
    (
        lambda x: jacobian(three, fastmath=False)(x),
        "`fastmath` is a compile option: pass it to the outer derivative",
    ),
    (lambda x: hvp(quartic, cache=False)(x, x), "`cache` is a compile option: pass it to the outer derivative"),
    (
        lambda x: vjp(three, x, boundscheck=True)[0],
        "`boundscheck` is a compile option: pass it to the outer derivative",
    ),
    (
        lambda x: jvp(three, (x,), (x,), fastmath=True)[0],
        "`fastmath` is a compile option: pass it to the outer derivative",
    ),
    (
        lambda x: srcdiff.grad(quartic, error_model="python")(x),
        "`error_model` is a compile option: pass it to the outer derivative",
    ),
    (lambda x: srcdiff.value_and_grad(quartic, steps=3)(x), "unknown option `steps`"),
    (lambda x: srcdiff.grad(quartic, backend="c")(x), "`backend` must be 'numba', 'python' or 'cuda', not 'c'"),
    (lambda x: jacobian(three, backend="c")(x), "`backend` must be 'numba', 'python' or 'cuda', not 'c'"),
    (lambda x: srcdiff.grad(quartic, has_aux=1)(x), "`has_aux` must be True or False, not 1"),
    (lambda x: srcdiff.grad(quartic, wrt=0.5)(x), "`wrt` must be the position or the name of an argument"),
]


@pytest.mark.parametrize(("function", "said"), REFUSED)
def test_options_that_mean_nothing_inside_are_refused(function, said):
    with pytest.raises(srcdiff.DifferentiationError) as caught:  # the quoted source line contains the expected text
        srcdiff.differentiable(function, backend="python")(M)
    assert said in caught.value.problems[0].message


@pytest.mark.parametrize("backend", ["numba", "python"])
def test_the_backend_inside_is_that_around_it(backend):
    def loss(x):
        product = hvp(quartic, backend=backend)(x, x)
        _, tangent = jvp(quartic, (x,), (x,), backend=backend)
        _, pullback = vjp(quartic, x, backend=backend)
        return np.sum(product * jacobian(three, backend=backend)(x)[0]) + tangent + np.sum(pullback(1.0)[0])

    srcdiff.check(loss, M, backend="python")
