"""Fit an epidemic model to counted cases: SciPy minimises, srcdiff computes gradients and Hessian-vector products."""

import sys

import numpy as np
from scipy.optimize import minimize

import srcdiff


def cases_by_day(parameters, days):
    """New cases on each day, by the SIR model with ten steps a day."""
    contact, recovery, first = np.exp(parameters)  # logarithms keep all three positive
    susceptible, infected = 1.0 - first, first
    cases = np.zeros(days)
    for day in range(days):
        for _ in range(10):
            new = 0.1 * contact * susceptible * infected
            susceptible -= new
            infected += new - 0.1 * recovery * infected
            cases[day] += new
    return cases


def misfit(parameters, counted):
    """The negative log likelihood of the counts, which have a Poisson distribution, in a town of a million."""
    expected = 1e6 * cases_by_day(parameters, len(counted))
    return np.sum(expected - counted * np.log(expected)) / np.sum(counted)


truth = np.log([0.4, 0.15, 1e-4])
counted = np.random.default_rng(0).poisson(1e6 * cases_by_day(truth, 90)).astype(float)
start = np.log([0.5, 0.2, 5e-4])

# With `jac=True`, SciPy expects the value and the gradient: this is what `value_and_grad` returns.
misfit_and_gradient = srcdiff.value_and_grad(misfit)
by_gradient = minimize(misfit_and_gradient, start, args=(counted,), jac=True, method="BFGS")
print(f"BFGS:       {by_gradient.nfev:3} gradients, contact, recovery and start {np.exp(by_gradient.x).round(6)}")

# `hessp` is the Hessian times a vector, with the arguments in SciPy's order.
by_curvature = minimize(
    misfit_and_gradient,
    start,
    args=(counted,),
    jac=True,
    hessp=srcdiff.hvp(misfit).hessp,
    method="trust-krylov",
)
print(f"trust-krylov: {by_curvature.nfev} gradients, {by_curvature.nhev} products, {np.exp(by_curvature.x).round(6)}")
print(f"the data came from {np.exp(truth)}")

assert np.allclose(by_gradient.x, by_curvature.x, atol=1e-3)
assert np.allclose(by_curvature.x, truth, atol=0.02)  # the counts determine the parameters this well
assert np.max(np.abs(misfit_and_gradient(by_curvature.x, counted)[1])) < 1e-4

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    plt.plot(counted, "k.", label="counted")
    plt.plot(1e6 * cases_by_day(start, 90), "--", label="first guess")
    plt.plot(1e6 * cases_by_day(by_curvature.x, 90), label="fitted")
    plt.xlabel("day")
    plt.ylabel("new cases")
    plt.legend()
    plt.savefig(sys.argv[1])
