"""Fit a model whose parameters are a dictionary of dataclasses, with bounds and a constraint, by SciPy's optimisers."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import NonlinearConstraint

from srcdiff.bridges.scipy import least_squares, minimize


@dataclass
class Tank:
    level: float
    outflow: float


def levels(params, steps):
    """Two tanks: the first flows into the second, and the second flows out."""
    first, second = params["first"].level, params["second"].level
    seen = np.zeros(steps)
    for k in range(steps):
        moved = 0.1 * params["first"].outflow * first
        first -= moved
        second += moved - 0.1 * params["second"].outflow * second
        seen[k] = second
    return seen


def residuals(params, measured):
    return levels(params, len(measured)) - measured


def misfit(params, measured):
    return np.sum(residuals(params, measured) ** 2)


def total(params):
    return params["first"].level + params["second"].level


truth = {"first": Tank(5.0, 0.4), "second": Tank(1.0, 0.2)}
measured = levels(truth, 80)
start = {"first": Tank(3.0, 0.5), "second": Tank(0.5, 0.3)}

by_residuals = least_squares(residuals, start, (measured,))
print("least_squares:", by_residuals.params)

by_hessian = minimize(misfit, start, (measured,), method="trust-exact")
print("trust-exact:  ", by_hessian.params)

# Bounds are like the parameters; None is no bound. The constraint takes the parameters, too.
bounded = minimize(
    misfit,
    start,
    (measured,),
    method="SLSQP",
    lower={"first": Tank(0.0, 0.0), "second": Tank(0.0, 0.0)},
    upper={"first": Tank(None, 0.35)},
    constraints=NonlinearConstraint(total, 6.0, 6.0),
)
print("with bounds:  ", bounded.params)

for found in (by_residuals, by_hessian):
    assert np.allclose(found.x, found.view.ravel(truth), atol=1e-4)
assert abs(total(bounded.params) - 6.0) < 1e-6
assert bounded.params["first"].outflow <= 0.35 + 1e-9
