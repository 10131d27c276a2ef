"""The kinks of `np.clip` on whole arrays: a gain whose output saturates."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "samples"
SIZES = (50, 100_000)
WRT = ("gain", "signal")


def arguments(size):
    random = np.random.default_rng(24)
    return 1.4, random.standard_normal(size), random.standard_normal(size)


def primal(gain, signal, wanted):
    return np.sum((np.clip(gain * signal, -1.0, 1.0) - wanted) ** 2)


@compiled
def hand(gain, signal, wanted):
    n = len(signal)
    total = gain_bar = 0.0
    signal_bar = np.empty(n)
    for i in range(n):
        driven = gain * signal[i]
        error = min(max(driven, -1.0), 1.0) - wanted[i]
        total += error * error
        driven_bar = 2.0 * error if abs(driven) <= 1.0 else 0.0
        gain_bar += driven_bar * signal[i]
        signal_bar[i] = driven_bar * gain
    return total, (gain_bar, signal_bar)


def in_jax(gain, signal, wanted):
    import jax.numpy as jnp

    return jnp.sum((jnp.clip(gain * signal, -1.0, 1.0) - wanted) ** 2)
