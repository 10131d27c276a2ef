"""Ipopt finds the known point of a problem with constraints, with exact Hessians of the Lagrangian."""

import numpy as np
import pytest

pytest.importorskip("cyipopt")

from srcdiff.bridges import ipopt

# Hock and Schittkowski's problem 71: a known point and value


def hs71(p):
    return p["a"] * p["d"] * (p["a"] + p["bc"][0] + p["bc"][1]) + p["bc"][1]


def product(p):
    return p["a"] * p["bc"][0] * p["bc"][1] * p["d"]


def squares(p):
    return p["a"] ** 2 + np.sum(p["bc"] ** 2) + p["d"] ** 2


HS71 = {"a": 1.0, "bc": np.array([5.0, 5.0]), "d": 1.0}
BOUNDS = {"a": 1.0, "bc": 1.0, "d": 1.0}, {"a": 5.0, "bc": 5.0, "d": 5.0}
SOLUTION = [1.0, 4.74299963, 3.82114998, 1.37940829]


def raises(p):
    if p["x"] < 0.5:
        raise KeyError("of the user")
    return p["x"] ** 2


def test_a_problem_with_constraints():
    bounded = [(product, 25.0, None), (squares, 40.0, 40.0)]
    found = ipopt.minimize(hs71, HS71, lower=BOUNDS[0], upper=BOUNDS[1], constraints=bounded)
    assert found.success, found.message
    np.testing.assert_allclose(found.x, SOLUTION, rtol=1e-6)
    np.testing.assert_allclose(found.fun, 17.0140173, rtol=1e-6)
    np.testing.assert_allclose(found.params["bc"], SOLUTION[1:3], rtol=1e-6)


def test_hessians_are_exact():
    both = [(lambda p: np.array([product(p), squares(p)]), [25.0, 40.0], [np.inf, 40.0])]
    found = ipopt.minimize(
        hs71, HS71, lower=BOUNDS[0], upper=BOUNDS[1], constraints=both, options={"derivative_test": "second-order"}
    )
    np.testing.assert_allclose(found.x, SOLUTION, rtol=1e-6)


def test_no_constraints_and_data():
    def valley(p, a):
        return (1.0 - p["x"]) ** 2 + a * (p["y"] - p["x"] ** 2) ** 2

    found = ipopt.minimize(valley, {"x": 0.0, "y": 0.0}, (100.0,), options={"tol": 1e-10})
    np.testing.assert_allclose(found.x, [1.0, 1.0], rtol=1e-6)


def test_exceptions_and_bad_arguments():
    with pytest.raises(KeyError, match="of the user"):
        ipopt.minimize(raises, {"x": 2.0})
    with pytest.raises(TypeError, match="must return one float or a vector"):
        ipopt.minimize(hs71, HS71, constraints=[(lambda p: {"x": p["a"]}, 0.0, 1.0)])
