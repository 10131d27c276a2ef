"""Functions that generated code calls without reading them: `srcdiff.external`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import srcdiff

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]
X = np.array([0.3, -0.7, 1.1])


def waves(x: Any, k: Any) -> Any:
    return np.sin(k * x) * x


def waves_vjp(x: Any, k: Any, out: Any, out_bar: Any) -> Any:
    slope = np.cos(k * x) * x
    return out_bar * (np.sin(k * x) + k * slope), np.sum(out_bar * slope * x)


def waves_jvp(x: Any, k: Any, out: Any, x_dot: Any, k_dot: Any) -> Any:
    return np.sin(k * x) * x_dot + np.cos(k * x) * x * (k * x_dot + k_dot * x)


def like_x(x: Any, k: Any) -> Any:
    return x.shape


WAYS: dict[str, dict[str, Any]] = {
    "vjp": {"vjp": waves_vjp},
    "jvp": {"jvp": waves_jvp},
    "both": {"vjp": waves_vjp, "jvp": waves_jvp},
    "central": {"differences": "central"},
    "complex": {"differences": "complex"},
}


@pytest.mark.parametrize(
    ("way", "backend"),
    [
        *((way, "python") for way in WAYS),
        *(pytest.param(w, "numba", marks=pytest.mark.numba) for w in ("vjp", "central")),
    ],
)
def test_the_derivative_is_the_declared_one_or_that_of_differences_in_both_modes(way, backend):
    called = srcdiff.external(waves, shape=like_x, **WAYS[way])

    def f(x, k):
        return np.sum(called(2.0 * x, k) ** 2)

    def read(x, k):
        return np.sum(waves(2.0 * x, k) ** 2)

    tolerance = 1e-8 if way == "central" else 1e-12  # differences have about nine digits
    value, bars = srcdiff.value_and_grad(f, wrt=("x", "k"), backend=backend)(X, 1.5)
    expected, wanted = srcdiff.value_and_grad(read, wrt=("x", "k"), backend="python")(X, 1.5)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    for bar, other in zip(bars, wanted, strict=True):
        np.testing.assert_allclose(bar, other, rtol=tolerance)
    _, dot = srcdiff.jvp(f, (X, 1.5), (X + 1.0, 0.5), backend=backend)
    np.testing.assert_allclose(dot, srcdiff.jvp(read, (X, 1.5), (X + 1.0, 0.5), backend="python")[1], rtol=tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
def test_several_results_constants_and_tuples(backend):
    @srcdiff.external(shape=[(), (None,)], differences="complex")
    def both(name: str, pair: Any, n: int) -> Any:
        assert name == "fast"
        assert type(n) is int
        x, k = pair
        return np.sum(x * x) * k, x[:n] * k

    def f(x, k):
        total, part = both("fast", (x, k), 2)
        return total * np.sum(part)

    def read(x, k):
        return np.sum(x * x) * k * np.sum(x[:2] * k)

    found = srcdiff.grad(f, wrt=("x", "k"), backend=backend)(X, 1.5)
    for bar, other in zip(found, srcdiff.grad(read, wrt=("x", "k"), backend="python")(X, 1.5), strict=True):
        np.testing.assert_allclose(bar, other, rtol=1e-12)
    _, dot = srcdiff.jvp(f, (X, 1.5), (X, 1.0), backend=backend)
    np.testing.assert_allclose(dot, srcdiff.jvp(read, (X, 1.5), (X, 1.0), backend="python")[1], rtol=1e-12)


def test_an_argument_that_has_no_derivative_costs_no_call():
    calls = []

    @srcdiff.external(differences="central")
    def misfit(p, data):
        calls.append(len(data))
        return float(np.sum((p - data) ** 2))

    bar = srcdiff.grad(lambda p, data: misfit(p, data), wrt="p", backend="python")(0.5, np.arange(1000.0))
    assert len(calls) <= 3
    np.testing.assert_allclose(bar, 2.0 * np.sum(0.5 - np.arange(1000.0)), rtol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_function_may_write_to_its_arguments_and_return_its_own_memory(backend):
    memory = np.zeros(3)

    @srcdiff.external(shape=(3,), differences="central")
    def squares(x):
        memory[:] = x
        memory[:] *= x
        x[:] = 0.0
        return memory

    def f(x):
        return np.sum(squares(x) * squares(2.0 * x))

    np.testing.assert_allclose(srcdiff.grad(f, backend=backend)(X), 16.0 * X**3, rtol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_exceptions_of_the_function_reach_the_caller(backend):
    @srcdiff.external(differences="central")
    def failing(x):
        if x > 1.0:
            raise KeyError("too large")
        return x

    g = srcdiff.value_and_grad(lambda x: failing(x) ** 2, backend=backend)
    assert g(0.5)[0] == 0.25
    with pytest.raises(KeyError, match="too large"):
        g(1.5)
    assert g(0.5)[0] == 0.25


def returns_ones(x):
    return np.ones(2)


WRONG = {
    "rank": (returns_ones, {}, ValueError, "returned an array of shape"),
    "length": (returns_ones, {"shape": (3,)}, ValueError, "another shape|of shape"),
    "type": (lambda x: 1j * x, {}, TypeError, "complex128"),
    "count": (lambda x: (x, x), {"shape": [(), (), ()]}, ValueError, "returned 2 values"),
    "real": (lambda x: abs(x), {"differences": "complex"}, TypeError, "returned real numbers"),
    "adjoint": (lambda x: x, {"vjp": lambda x, out, out_bar: np.ones(3)}, ValueError, r"shape \(3,\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_results_of_another_form_raise(case):
    function, options, error, message = WRONG[case]
    called = srcdiff.external(function, **{"differences": None if "vjp" in options else "central", **options})

    def f(x):
        found = called(x)
        return np.sum(found[0] if isinstance(found, tuple) else found)

    with pytest.raises(error, match=message):
        srcdiff.grad(f, backend="python")(1.5)


SECOND: dict[str, tuple[dict[str, Any], float]] = {
    "differences of vjp": ({"vjp": waves_vjp, "differences": "central"}, 1e-8),
    "differences of jvp": ({"jvp": waves_jvp, "differences": "central"}, 1e-8),
    "complex differences of both": ({"vjp": waves_vjp, "jvp": waves_jvp, "differences": "complex"}, 1e-12),
    "differences of complex ones": ({"differences": "complex"}, 1e-8),
}


@pytest.mark.parametrize("way", SECOND)
def test_second_derivatives_by_differences(way):
    options, tolerance = SECOND[way]
    called = srcdiff.external(waves, shape=like_x, **options)

    def f(x, k):
        return np.sum(called(2.0 * x, k) ** 2) * k

    def read(x, k):
        return np.sum(waves(2.0 * x, k) ** 2) * k

    for wrt in (0, 1):
        found, wanted = (srcdiff.hessian(of, wrt=wrt, backend="python")(X, 1.5) for of in (f, read))
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=1e-8)
    mixed, wanted = (srcdiff.hvp(of, backend="python")(X, 1.5, X) for of in (f, read))
    np.testing.assert_allclose(mixed, wanted, rtol=tolerance)
    with pytest.raises(srcdiff.DifferentiationError, match="no second derivative"):
        srcdiff.grad(lambda k: np.sum(srcdiff.hessian(f, wrt="k")(X, k)), backend="python")(1.5)


def test_second_derivatives_are_refused_unless_the_derivative_can_be_read():
    called = srcdiff.external(math.exp, differences="central")

    def f(x):
        return called(x) * x

    with pytest.raises(srcdiff.DifferentiationError, match="no second derivative"):
        srcdiff.grad(srcdiff.grad(f, backend="python"), backend="python")(0.5)

    plain = srcdiff.external(math.exp)

    @srcdiff.custom_rule(adjoint=lambda x, out, out_bar: out_bar * exponential(x))
    def exponential(x):
        return plain(x)

    np.testing.assert_allclose(
        srcdiff.grad(srcdiff.grad(exponential, backend="python"), backend="python")(0.5), math.exp(0.5), rtol=1e-12
    )


def test_an_external_function_without_derivative_is_refused_where_one_is_needed():
    plain = srcdiff.external(math.exp)

    def f(x):
        return plain(x) * x

    with pytest.raises(
        srcdiff.DifferentiationError, match="`exp` is an external function, and has no derivative"
    ) as error:
        srcdiff.grad(f, backend="python")(0.5)
    assert "return plain(x) * x" in str(error.value)
    assert srcdiff.grad(lambda x, y: plain(y) * x, backend="python")(2.0, 0.0) == 1.0


def test_an_option_that_is_not_supported_is_one_problem_at_the_call_with_the_lines_of_a_rule():
    from scipy import linalg

    def product(x):
        q, r = linalg.qr(x, mode="raw")
        return np.sum(q) + np.sum(r)

    with pytest.raises(srcdiff.DifferentiationError) as error:
        srcdiff.grad(product, backend="python")(np.eye(2))
    (problem,) = error.value.problems
    assert "with the mode 'raw' is not supported" in problem.message
    assert problem.span is not None
    line = problem.span.text
    assert line[problem.span.column : problem.span.end_column] == 'linalg.qr(x, mode="raw")'
    assert "@srcdiff.rule_for(linalg.qr)\ndef qr(x, mode): ..." in problem.help
    assert 'srcdiff.external(linalg.qr, shape=(), differences="central")' in problem.help


@pytest.mark.parametrize("backend", BACKENDS)
def test_rule_for_takes_an_external_function_as_the_error_proposes(backend):
    from scipy import special

    function = special.kolmogi

    def f(x):
        return np.sum(special.kolmogi(x) ** 2)

    with pytest.raises(srcdiff.DifferentiationError) as error:
        srcdiff.grad(f, backend="python")(np.abs(X) / 2.0)
    proposed = str(error.value).split("by differences:")[1].split("\n")[1].strip()
    declared = eval(proposed, {"srcdiff": srcdiff, "special": special})
    try:
        assert declared is not None
        bars = srcdiff.grad(f, backend=backend)(np.abs(X) / 2.0)
    finally:
        from srcdiff.frontend.source.declared_rules import RULES

        RULES.remove(function)
    x, h = np.abs(X) / 2.0, 1e-5
    slope = (function(x + h) - function(x - h)) / (2.0 * h)
    np.testing.assert_allclose(bars, 2.0 * function(x) * slope, rtol=1e-5)


def test_explain_lists_the_calls_with_their_derivatives():
    simulator = srcdiff.external(math.sin, differences="central")

    def f(x):
        return simulator(x) ** 2

    found = srcdiff.explain(f, 0.5)
    assert [(e.function, e.derivative) for e in found.external] == [("sin", "central differences")]
    assert "central differences" in str(found)
    assert "central differences" in found._repr_html_()


@pytest.mark.parametrize("backend", BACKENDS)
def test_in_loops_branches_batches_and_jacobians(backend):
    called = srcdiff.external(waves, shape=like_x, vjp=waves_vjp, jvp=waves_jvp)

    def f(x, n):
        y = x
        for i in range(n):
            if i % 2 == 0:
                y = called(y, 1.1) + y
        return y

    def read(x, n):
        y = x
        for i in range(n):
            if i % 2 == 0:
                y = waves(y, 1.1) + y
        return y

    for n in (0, 3):
        np.testing.assert_allclose(
            srcdiff.jacobian(f, backend=backend)(X, n), srcdiff.jacobian(read, backend="python")(X, n), rtol=1e-12
        )
    rows = np.array([X, 2.0 * X])
    g = srcdiff.batched(srcdiff.grad(lambda x: np.sum(f(x, 3)), backend=backend))
    wanted = [srcdiff.grad(lambda x: np.sum(read(x, 3)), backend="python")(x) for x in rows]
    np.testing.assert_allclose(g(rows), wanted, rtol=1e-12)


def test_complex_arguments_are_refused():
    called = srcdiff.external(np.abs, differences="central")
    with pytest.raises(srcdiff.DifferentiationError, match="complex numbers"):
        srcdiff.grad(lambda x: called(x * 1j), backend="python")(0.5)


def test_options_are_checked():
    for options in (
        {"shape": 3},
        {"shape": (1.5,)},
        {"vjp": 3},
        {"differences": "forward"},
        {"dtype": "complex128"},
        {"step": 1e-3},
    ):
        with pytest.raises((TypeError, ValueError)):
            srcdiff.external(waves, **options)
