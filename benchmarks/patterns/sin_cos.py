"""Sine and cosine of the same angles: the power that an array of antennas sends into several directions."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "antennas"
SIZES = (10, 1_000)
WRT = ("position", "phase")


def arguments(size):
    random = np.random.default_rng(33)
    return random.uniform(0.0, 10.0, size), random.uniform(0.0, 1.0, size), np.linspace(-1.0, 1.0, 40)


def primal(position, phase, direction):
    total = 0.0
    for j in range(len(direction)):
        real = 0.0
        imaginary = 0.0
        for i in range(len(position)):
            angle = direction[j] * position[i] + phase[i]
            real += math.cos(angle)
            imaginary += math.sin(angle)
        total += real * real + imaginary * imaginary
    return total


@compiled
def hand(position, phase, direction):
    n = len(position)
    total = 0.0
    position_bar, phase_bar = np.zeros(n), np.zeros(n)
    sines, cosines = np.empty(n), np.empty(n)
    for j in range(len(direction)):
        along = direction[j]
        real = imaginary = 0.0
        for i in range(n):
            angle = along * position[i] + phase[i]
            cosines[i] = math.cos(angle)
            sines[i] = math.sin(angle)
            real += cosines[i]
            imaginary += sines[i]
        total += real * real + imaginary * imaginary
        for i in range(n):
            angle_bar = 2.0 * (imaginary * cosines[i] - real * sines[i])
            position_bar[i] += angle_bar * along
            phase_bar[i] += angle_bar
    return total, (position_bar, phase_bar)


def in_jax(position, phase, direction):
    import jax.numpy as jnp

    angle = direction[:, None] * position + phase
    return jnp.sum(jnp.sum(jnp.cos(angle), axis=1) ** 2 + jnp.sum(jnp.sin(angle), axis=1) ** 2)
