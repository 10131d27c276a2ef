"""The energy of a cluster of atoms: a double loop over pairs that only adds to a sum."""

import numpy as np

SIZE = "atoms"
SIZES = (27, 125, 343)
WRT = ("p",)


def arguments(size):
    side = np.arange(round(size ** (1.0 / 3.0)))
    lattice = 1.2 * np.stack(np.meshgrid(side, side, side, indexing="ij")).reshape(3, -1)
    return (lattice + 0.05 * np.random.default_rng(4).standard_normal(lattice.shape),)


def primal(p):
    n = p.shape[1]
    energy = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx = p[0, i] - p[0, j]
            dy = p[1, i] - p[1, j]
            dz = p[2, i] - p[2, j]
            s = 1.0 / (dx * dx + dy * dy + dz * dz)
            s6 = s * s * s
            energy += 4.0 * (s6 * s6 - s6)
    return energy
