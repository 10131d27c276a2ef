"""Calibrate Heston's model of options: gradients of prices that are integrals of a characteristic function."""

import math
import sys

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtr

import srcdiff

SPOT, RATE = 100.0, 0.02
nodes, weights = np.polynomial.legendre.leggauss(64)
nodes, weights = 50.0 * (nodes + 1.0), 50.0 * weights  # from 0 to 100


def characteristic(u, maturity, speed, level, noise, correlation, variance):
    """Of the logarithm of the forward return, in the form without jumps of the complex logarithm."""
    b = speed - 1j * correlation * noise * u
    d = np.sqrt(b**2 + noise**2 * (1j * u + u**2))
    g = (b - d) / (b + d)
    decay = np.exp(-d * maturity)
    drift = speed * level / noise**2 * ((b - d) * maturity - 2.0 * np.log((1.0 - g * decay) / (1.0 - g)))
    return np.exp(drift + variance / noise**2 * (b - d) * (1.0 - decay) / (1.0 - g * decay))


def prices(parameters, strikes, maturities, nodes, weights):
    """Of calls, one for each strike and maturity (Lewis 2001)."""
    speed, level, noise, correlation, variance = parameters
    result = np.empty(len(strikes))
    for i in range(len(strikes)):
        forward = SPOT * math.exp(RATE * maturities[i])
        distance = math.log(forward / strikes[i])
        phi = characteristic(nodes - 0.5j, maturities[i], speed, level, noise, correlation, variance)
        integral = np.sum(weights * (np.exp(1j * nodes * distance) * phi).real / (nodes**2 + 0.25))
        discount = math.exp(-RATE * maturities[i])
        result[i] = discount * (forward - math.sqrt(forward * strikes[i]) / math.pi * integral)
    return result


true = np.array([1.8, 0.06, 0.6, -0.65, 0.04])
strikes = np.tile(np.linspace(75.0, 130.0, 9), 3)
maturities = np.repeat([0.25, 0.75, 2.0], 9)
given = (strikes, maturities, nodes, weights)
quotes = prices(true, *given) + 0.003 * np.random.default_rng(5).normal(size=strikes.size)

jacobian = srcdiff.jacobian(prices)
guess = np.array([1.0, 0.04, 0.4, -0.3, 0.05])
fit = least_squares(
    lambda p: prices(p, *given) - quotes,
    guess,
    jac=lambda p: jacobian(p, *given),
    bounds=([0.1, 0.001, 0.05, -0.99, 0.001], [10.0, 1.0, 3.0, 0.5, 1.0]),
    x_scale=np.abs(guess),
)
errors = np.sqrt(np.diag(np.linalg.inv(fit.jac.T @ fit.jac)) * 2.0 * fit.cost / (strikes.size - 5))
names = ("speed", "level", "noise", "correlation", "variance")
for name, value, error, right in zip(names, fit.x, errors, true, strict=True):
    print(f"{name:12} {value:7.4f} +- {error:.4f}   true {right:7.4f}")
assert np.all(np.abs(fit.x - true) < 4.0 * errors)
away = 1e-5 * np.eye(5)
differences = [(prices(guess + h, *given) - prices(guess - h, *given)) / 2e-5 for h in away]
assert np.allclose(jacobian(guess, *given), np.transpose(differences), rtol=1e-5, atol=1e-5)


def volatility(price, strike, maturity):
    """The one with which the formula of Black and Scholes gives the price, by bisection."""
    low, high = 0.01, 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        spread = middle * math.sqrt(maturity)
        d = (math.log(SPOT / strike) + RATE * maturity) / spread + 0.5 * spread
        value = SPOT * ndtr(d) - strike * math.exp(-RATE * maturity) * ndtr(d - spread)
        low, high = (middle, high) if value < price else (low, middle)
    return middle


if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    for place, maturity in enumerate((0.25, 0.75, 2.0)):
        chosen = maturities == maturity
        line = np.linspace(75.0, 130.0, 60)
        fitted = prices(fit.x, line, np.full(60, maturity), nodes, weights)
        seen = [volatility(*row) for row in zip(quotes[chosen], strikes[chosen], maturities[chosen], strict=True)]
        plt.plot(strikes[chosen], seen, "o", color=f"C{place}", markersize=4)
        curve = [volatility(p, s, maturity) for p, s in zip(fitted, line, strict=True)]
        plt.plot(line, curve, color=f"C{place}", label=f"{maturity} years")
    plt.xlabel("strike")
    plt.ylabel("implied volatility")
    plt.legend()
    plt.savefig(sys.argv[1])
