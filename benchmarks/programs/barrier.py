"""Monte Carlo for a call option that is void once the price falls below a barrier: paths that end early."""

import math

import numpy as np

SIZE = "paths"
SIZES = (20, 200, 2_000)
WRT = ("spot", "rate", "volatility")


def arguments(size):
    return 100.0, 0.03, 0.25, 95.0, 90.0, 1.0, np.random.default_rng(8).standard_normal((size, 50))


def primal(spot, rate, volatility, strike, barrier, maturity, noise):
    paths, steps = noise.shape
    step = maturity / steps
    drift = (rate - 0.5 * volatility * volatility) * step
    spread = volatility * math.sqrt(step)
    total = 0.0
    for p in range(paths):
        price = spot
        alive = True
        for t in range(steps):
            price *= math.exp(drift + spread * noise[p, t])
            if price < barrier:
                alive = False
                break
        if alive and price > strike:
            total += price - strike
    return math.exp(-rate * maturity) * total / paths
