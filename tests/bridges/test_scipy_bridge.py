"""SciPy's optimisers with structured parameters give the results of vectors with derivatives by hand."""

import collections
from dataclasses import dataclass

import numpy as np
import pytest

import srcdiff
from srcdiff.bridges.flat_functions import Flat

optimize = pytest.importorskip("scipy.optimize")

from srcdiff.bridges import scipy as bridge  # noqa: E402  SciPy is there

Point = collections.namedtuple("Point", "x y")


@dataclass
class Curve:
    level: float
    slopes: np.ndarray


def valley(p, a):
    """The minimum is at slopes (1, 1) and level 2. The other parts are not parameters."""
    x, y = p["curve"].slopes[0], p["curve"].slopes[1]
    return (1.0 - x) ** 2 + a * (y - x**2) ** 2 + (p["curve"].level - 2.0) ** 2 + p["index"][0]


def start():
    return {"curve": Curve(0, np.array([0.5, 0.25])), "index": np.array([3]), "name": "valley"}


METHODS = ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"]
WITHOUT = ["Nelder-Mead", "Powell", "COBYLA", "COBYQA"]


@pytest.mark.parametrize("method", [None, *METHODS, "dogleg", "trust-exact", *WITHOUT])
def test_minimize_by_every_method(method):
    given = start()
    options = {"maxiter": 4000} if method in ("COBYLA", "Nelder-Mead") else {}
    found = bridge.minimize(valley, given, (10.0,), method=method, tol=1e-9, options=options)

    tolerance = 1e-3 if method in WITHOUT else 1e-4  # without gradients they end earlier
    np.testing.assert_allclose(found.params["curve"].slopes, [1.0, 1.0], atol=tolerance)
    np.testing.assert_allclose(found.params["curve"].level, 2.0, atol=tolerance)
    assert (Curve, "valley") == (type(found.params["curve"]), found.params["name"])
    assert ["p['curve'].level", "p['curve'].slopes[0]", "p['curve'].slopes[1]"] == found.view.names
    assert [0.5, 0.25] == given["curve"].slopes.tolist()


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"])
def test_methods_that_take_products_also_take_matrices(method):
    found = bridge.minimize(valley, start(), (10.0,), method=method, hess="matrix", tol=1e-9)
    np.testing.assert_allclose(found.params["curve"].slopes, [1.0, 1.0], atol=1e-4)


def test_all_methods_of_scipy_are_known():
    known = {*METHODS, *WITHOUT, "dogleg", "trust-exact"}
    described = optimize._minimize.MINIMIZE_METHODS
    assert {name.lower() for name in known} == set(described)


def test_gradient_and_hessian_are_those_of_the_vector():
    flat = bridge.Flat(valley, start(), (10.0,), "numba")

    def of_vector(x):
        return (1.0 - x[1]) ** 2 + 10.0 * (x[2] - x[1] ** 2) ** 2 + (x[0] - 2.0) ** 2 + 3.0

    x = np.array([0.3, -0.7, 1.1])
    value, gradient = flat.value_and_gradient(x)
    np.testing.assert_allclose(value, of_vector(x), rtol=1e-14)
    np.testing.assert_allclose(gradient, srcdiff.grad(of_vector)(x), rtol=1e-14)
    np.testing.assert_allclose(flat.hessian(x), srcdiff.hessian(of_vector)(x), rtol=1e-13)
    product = flat.hessian_product(x, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(product, srcdiff.hessian(of_vector)(x) @ [1.0, 2.0, 3.0], rtol=1e-13)


@pytest.mark.parametrize("method", ["Nelder-Mead", "L-BFGS-B", "TNC", "SLSQP", "trust-constr", "COBYQA"])
def test_bounds_have_the_structure_of_the_parameters(method):
    found = bridge.minimize(
        valley,
        start(),
        (10.0,),
        method=method,
        lower={"curve": Curve(None, 0.0)},
        upper={"curve": Curve(1.5, np.array([0.75, np.inf]))},
        tol=1e-10,
    )
    expected = Curve(1.5, np.array([0.75, 0.5625]))
    np.testing.assert_allclose(found.params["curve"].level, expected.level, atol=1e-3)
    np.testing.assert_allclose(found.params["curve"].slopes, expected.slopes, atol=2e-3)


def test_powell_takes_the_same_steps_as_for_the_vector():
    """It does not find the minimum within these bounds."""

    def of_vector(x):
        return (1.0 - x[1]) ** 2 + 10.0 * (x[2] - x[1] ** 2) ** 2 + (x[0] - 2.0) ** 2 + 3.0

    bounds = optimize.Bounds([-np.inf, 0.0, 0.0], [1.5, 0.75, np.inf])
    expected = optimize.minimize(of_vector, [0.0, 0.5, 0.25], method="Powell", bounds=bounds)
    found = bridge.minimize(valley, start(), (10.0,), method="Powell", bounds=bounds)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)


def circle(p):
    return np.array([p.x**2 + p.y**2, p.x - p.y])


def distance(p):
    return (p.x - 2.0) ** 2 + (p.y - 1.0) ** 2


NEAREST = np.array([2.0, 1.0]) / np.sqrt(5.0)


@pytest.mark.parametrize("method", [None, "SLSQP", "trust-constr", "COBYLA", "COBYQA"])
def test_constraints_take_the_parameters(method):
    inside = optimize.NonlinearConstraint(circle, [-np.inf, -5.0], [1.0, 5.0])
    found = bridge.minimize(distance, Point(0.1, 0.2), method=method, constraints=inside, tol=1e-9)
    assert Point is type(found.params)
    np.testing.assert_allclose(found.params, NEAREST, atol=1e-4)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints_as_dictionaries_and_numbers(method):
    as_dictionary = {"type": "ineq", "fun": lambda p, r: r - p.x**2 - p.y**2, "args": (1.0,)}
    found = bridge.minimize(distance, Point(0.1, 0.2), method=method, constraints=as_dictionary, tol=1e-9)
    np.testing.assert_allclose(found.params, NEAREST, atol=1e-4)
    as_number = optimize.NonlinearConstraint(lambda p: p.x**2 + p.y**2, -np.inf, 1.0)
    linear = optimize.LinearConstraint(np.array([[1.0, 0.0]]), -5.0, 5.0)
    found = bridge.minimize(distance, Point(0.1, 0.2), method=method, constraints=[as_number, linear], tol=1e-9)
    np.testing.assert_allclose(found.params, NEAREST, atol=1e-4)


def test_second_derivatives_of_constraints_are_exact():
    made = bridge._flat_constraint(optimize.NonlinearConstraint(circle, 0.0, 1.0), Point(0.1, 0.2), "numba", True)
    x = np.array([0.3, 0.4])
    np.testing.assert_allclose(made.jac(x), [[0.6, 0.8], [1.0, -1.0]], rtol=1e-14)
    np.testing.assert_allclose(made.hess(x, [3.0, 5.0]), [[6.0, 0.0], [0.0, 6.0]], atol=1e-14)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method):
    t = np.linspace(0.0, 2.0, 20)

    def residuals(p, t, measured):
        return {"curve": p["size"][0] * np.exp(-p["rate"] * t) - measured, "weak": 1e-3 * (p["size"][1] - 1.0)}

    measured = 3.0 * np.exp(-1.5 * t)
    p = {"rate": 1.0, "size": np.ones(2)}
    found = bridge.least_squares(residuals, p, (t, measured), method=method)
    np.testing.assert_allclose(found.params["rate"], 1.5, rtol=1e-6)
    np.testing.assert_allclose(found.params["size"], [3.0, 1.0], rtol=1e-6)
    assert (21, 3) == found.jac.shape


def test_least_squares_within_bounds():
    found = bridge.least_squares(lambda p: np.array([p.x - 3.0, p.y + 1.0]), Point(1.0, 1.0), upper=Point(2.0, None))
    np.testing.assert_allclose(found.params, [2.0, -1.0], atol=1e-6)


def equations(p):
    x, y = p["x"][0], p["y"]
    return np.array([x + 0.5 * (x - y) ** 3 - 1.0, 0.5 * (y - x) ** 3 + y])


@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "anderson", "df-sane"])
def test_root(method):
    found = bridge.root(equations, {"x": np.zeros(1), "y": 0.0}, method=method)
    np.testing.assert_allclose(found.params["x"], [0.841164], atol=1e-5)
    np.testing.assert_allclose(found.params["y"], 0.158836, atol=1e-5)


def test_function_that_writes_to_its_data_leaves_it_as_it_was():
    data = np.array([1.0, 2.0])

    def f(p, data):
        data[0] = data[0] * p
        return (data[0] - 3.0) ** 2

    for method in ("Nelder-Mead", "BFGS"):
        np.testing.assert_allclose(bridge.minimize(f, 1.0, (data,), method=method).params, 3.0, atol=1e-3)
        assert [1.0, 2.0] == data.tolist()


def test_exceptions_of_the_function_are_raised_and_start_is_left_alone():
    def f(x):
        if x[0] > 1.5:
            raise ValueError("beyond the border")
        return -x[0]

    x0 = np.array([1.0, 2.0])
    with pytest.raises(ValueError, match="beyond the border") as caught:
        bridge.minimize(f, x0, method="BFGS")
    assert any("test_scipy_bridge.py" in note and "called by SciPy" in note for note in caught.value.__notes__)
    assert [1.0, 2.0] == x0.tolist()


def test_functions_without_derivative_are_refused_with_their_line():
    with pytest.raises(srcdiff.DifferentiationError, match=r"test_scipy_bridge\.py"):
        bridge.minimize(lambda x: eval("x"), 1.0)


def test_nan_does_not_raise():
    found = bridge.minimize(lambda x: np.log(x), -1.0, method="BFGS")
    assert not found.success


def wave(p, t):
    return {"at": p["size"] * np.exp(1j * p["rate"] * t), "growth": p["rate"].imag * p["scale"]}


def test_complex_parameters_and_residuals_are_those_of_their_parts():
    true, t = {"size": 0.7 + 0.2j, "rate": 0.3 + 1.0j, "scale": 2.0}, np.linspace(0.0, 2.0, 9)
    expected = wave(true, t)

    def residuals(p, t):
        found = wave(p, t)
        return {"at": found["at"] - expected["at"], "growth": found["growth"] - expected["growth"]}

    found = bridge.least_squares(residuals, {"size": 1.0 + 0j, "rate": 0.8j, "scale": 1.5}, (t,), backend="python")
    assert found.jac.shape == (2 * 9 + 1, 5)
    np.testing.assert_allclose([*found.params.values()], [*true.values()], rtol=1e-6)

    flat = Flat(
        lambda p: np.abs(p["z"] ** 3 * p["x"] + 1j).sum(), {"z": np.array([1j, 2 - 1j]), "x": 0.5}, (), "python"
    )
    columns = [flat.value_and_gradient(flat.view.x + d)[1] for d in (*1e-5 * np.eye(5), *-1e-5 * np.eye(5))]
    differences = (np.array(columns[:5]) - np.array(columns[5:])) / 2e-5
    np.testing.assert_allclose(flat.hessian(flat.view.x), differences, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        flat.hessian_product(flat.view.x, np.arange(5.0)), differences @ np.arange(5.0), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: bridge.minimize(valley, {"name": "a"}, (1.0,)), ValueError, "has no parameters"),
        (lambda: bridge.minimize(valley, start(), (1.0,), jac=True), TypeError, "`jac` is computed by srcdiff"),
        (lambda: bridge.minimize(valley, start(), (1.0,), "BFGS", hess="matrix"), ValueError, "takes no Hessian"),
        (lambda: bridge.minimize(valley, start(), (1.0,), "dogleg", hess="product"), ValueError, "as a matrix"),
        (lambda: bridge.minimize(valley, start(), (1.0,), hess="exact"), ValueError, "'matrix' or 'product'"),
        (lambda: bridge.minimize(valley, start(), (1.0,), "newton"), ValueError, "unknown method 'newton'"),
        (lambda: bridge.minimize(valley, start(), (1.0,), lower={"w": 1.0}), ValueError, "bounds of `p`"),
        (lambda: bridge.minimize(distance, Point(0.0, 0.0), lower=[1.0, 2.0]), ValueError, "bounds of `p`"),
        (lambda: bridge.minimize(distance, Point(0.0, 0.0), lower=Point("a", 1.0)), ValueError, r"bound of `p\.x`"),
        (lambda: bridge.minimize(lambda x: x[0], np.zeros(2), lower=np.zeros(3)), ValueError, r"shape \(2,\)"),
        (
            lambda: bridge.minimize(lambda z: abs(z), 1j, lower=0.0),
            ValueError,
            "`z` is complex: bounds are for real numbers",
        ),
        (lambda: bridge.least_squares(equations, {"x": np.zeros(1), "y": 0.0}, jac="2-point"), TypeError, "`jac`"),
        (lambda: bridge.root(equations, {"x": np.zeros(1), "y": 0.0}, jac=None), TypeError, "`jac`"),
    ],
    ids=range(13),
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
