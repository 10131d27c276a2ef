"""A kink in a sum over a loop: the pay-off of an option, `max(price - strike, 0)`, averaged over samples."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "samples"
SIZES = (50, 100_000)
WRT = ("start", "strike", "drift", "volatility")


def arguments(size):
    return np.random.default_rng(22).standard_normal(size), 100.0, 105.0, 0.01, 0.28


def primal(noise, start, strike, drift, volatility):
    total = 0.0
    for i in range(len(noise)):
        total += max(start * math.exp(drift + volatility * noise[i]) - strike, 0.0)
    return total / len(noise)


@compiled
def hand(noise, start, strike, drift, volatility):
    n = len(noise)
    total = count = growth_sum = noise_sum = 0.0
    for i in range(n):
        growth = math.exp(drift + volatility * noise[i])
        gain = start * growth - strike
        total += max(gain, 0.0)
        paid = 1.0 if gain > 0.0 else 0.0
        count += paid
        growth_sum += paid * growth
        noise_sum += paid * growth * noise[i]
    return total / n, (growth_sum / n, -count / n, start * growth_sum / n, start * noise_sum / n)


def in_jax(noise, start, strike, drift, volatility):
    import jax.numpy as jnp

    return jnp.mean(jnp.maximum(start * jnp.exp(drift + volatility * noise) - strike, 0.0))
