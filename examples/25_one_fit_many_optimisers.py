"""Fit the same function with NLopt, iminuit and lmfit: each gets the derivatives that it takes."""

from dataclasses import dataclass

import iminuit
import lmfit
import nlopt
import numpy as np

from srcdiff.bridges import iminuit as minuit_bridge
from srcdiff.bridges import lmfit as lmfit_bridge
from srcdiff.bridges import nlopt as nlopt_bridge


@dataclass
class Peak:
    middle: float
    width: float
    height: float


def shape(p, t):
    """A peak on a slope."""
    out = np.empty(len(t))
    for k in range(len(t)):
        z = (t[k] - p["peak"].middle) / p["peak"].width
        out[k] = p["slope"][0] + p["slope"][1] * t[k] + p["peak"].height * np.exp(-0.5 * z * z)
    return out


def residuals(p, t, measured, error):
    return (shape(p, t) - measured) / error


def cost(p, t, measured, error):
    return np.sum(residuals(p, t, measured, error) ** 2)


true = {"peak": Peak(1.2, 0.3, 2.0), "slope": np.array([0.5, -0.2])}
start = {"peak": Peak(1.0, 0.5, 1.0), "slope": np.zeros(2)}
random = np.random.default_rng(0)
t, error = np.linspace(0.0, 3.0, 60), 0.05
data = (t, shape(true, t) + error * random.normal(size=60), error)

by_nlopt = nlopt_bridge.minimize(cost, start, data)
print(f"NLopt {nlopt.__version__}: {by_nlopt.message}, {by_nlopt.params['peak']}")

fit = minuit_bridge.minuit(cost, start, data, lower={"peak": Peak(None, 1e-3, None)})
fit.migrad()
print(f"iminuit {iminuit.__version__}: valid {fit.valid}, {fit.fitted['peak']}")

result = lmfit_bridge.minimize(residuals, start, data)
print(f"lmfit {lmfit.__version__}: {result.nfev} calls, {result.fitted['peak']}")
for name, found in result.params.items():
    print(f"  {name:12} {found.value:7.4f} +- {found.stderr:.4f}")

for params in (by_nlopt.params, fit.fitted, result.fitted):
    assert abs(params["peak"].middle - result.fitted["peak"].middle) < 1e-4
    assert abs(params["peak"].middle - 1.2) < 4.0 * result.params["peak_middle"].stderr
