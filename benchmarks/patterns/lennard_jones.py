"""All pairs on whole arrays: the energy of particles by their distances, an array of N x N."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "particles"
SIZES = (5, 300)
WRT = ("positions",)


def arguments(size):
    random = np.random.default_rng(41)
    side = int(np.ceil(size ** (1.0 / 3.0)))
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij")).reshape(3, -1)[:, :size]
    return (1.2 * grid + 0.05 * random.standard_normal(grid.shape),)


def primal(positions):
    difference = positions[:, :, None] - positions[:, None, :]
    squared = np.sum(difference**2, axis=0) + np.eye(positions.shape[1])
    s6 = 1.0 / squared**3
    energy = 4.0 * (s6 * s6 - s6)
    return 0.5 * np.sum(energy)


@compiled
def hand(positions):
    n = positions.shape[1]
    positions_bar = np.zeros_like(positions)
    x, y, z = positions[0], positions[1], positions[2]
    total = 0.0
    for i in range(n):
        xi, yi, zi = x[i], y[i], z[i]
        x_bar = y_bar = z_bar = 0.0
        # Each pair occurs twice, so each particle has one sum and nothing is scattered. A particle with itself adds
        # zero.
        for j in range(n):
            dx, dy, dz = xi - x[j], yi - y[j], zi - z[j]
            s = 1.0 / (dx * dx + dy * dy + dz * dz + (1.0 if i == j else 0.0))
            s6 = s * s * s
            total += s6 * s6 - s6
            force = s * (s6 - 2.0 * s6 * s6)
            x_bar += force * dx
            y_bar += force * dy
            z_bar += force * dz
        positions_bar[0, i] = 24.0 * x_bar
        positions_bar[1, i] = 24.0 * y_bar
        positions_bar[2, i] = 24.0 * z_bar
    return 2.0 * total, (positions_bar,)


def in_jax(positions):
    import jax.numpy as jnp

    difference = positions[:, :, None] - positions[:, None, :]
    squared = jnp.sum(difference**2, axis=0) + jnp.eye(positions.shape[1])
    s6 = 1.0 / squared**3
    return 0.5 * jnp.sum(4.0 * (s6 * s6 - s6))
