"""A sweep that reads what it has just written: Gauss-Seidel, where each point waits for its left neighbour."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "grid points a side"
SIZES = (8, 128)
WRT = ("source",)
STATIC = ("sweeps",)


def arguments(size):
    return np.random.default_rng(29).standard_normal((size, size)), 5 if size < 50 else 20


def primal(source, sweeps):
    u = np.zeros_like(source)
    rows, columns = u.shape
    for _ in range(sweeps):
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + source[i, j])
    return np.sum(u**2)


@compiled
def hand(source, sweeps):
    rows, columns = source.shape
    u = np.zeros((rows, columns))
    parts = np.empty(columns)
    for _ in range(sweeps):
        for i in range(rows - 2):
            above, own, below, force = u[i], u[i + 1], u[i + 2], source[i + 1]
            for j in range(columns - 2):
                parts[j + 1] = 0.25 * (above[j + 1] + below[j + 1] + own[j + 2] + force[j + 1])
            left = own[0]
            for j in range(columns - 2):
                left = parts[j + 1] + 0.25 * left
                own[j + 1] = left
    # q[i, j] is a quarter of the adjoint of the value that the sweep wrote. When it is read, later points of the same
    # sweep and earlier points of the next sweep have added their parts. The border is zero.
    total = 0.0
    q = np.zeros((rows, columns))
    source_bar = np.zeros((rows, columns))
    given = np.zeros((rows, columns))
    for i in range(rows):
        for j in range(columns):
            total += u[i, j] * u[i, j]
            given[i, j] = 2.0 * u[i, j]
    for sweep in range(sweeps):
        for i in range(rows - 2, 0, -1):
            above, own, below, sums = q[i - 1], q[i], q[i + 1], source_bar[i]
            if sweep == 0:
                last = given[i]
                for j in range(columns - 2):
                    parts[j + 1] = 0.25 * (last[j + 1] + below[j + 1])
            else:
                for j in range(columns - 2):
                    parts[j + 1] = 0.25 * (above[j + 1] + own[j] + below[j + 1])
            right = 0.0
            for j in range(columns - 2, 0, -1):
                right = parts[j] + 0.25 * right
                own[j] = right
            for j in range(columns - 2):
                sums[j + 1] += own[j + 1]
    return total, (source_bar,)


def in_jax(source, sweeps):
    import jax.numpy as jnp
    from jax import lax

    def point(left, part):
        new = part + 0.25 * left
        return new, new

    def row(above, given):
        own, below, force = given
        parts = 0.25 * (above[1:-1] + below[1:-1] + own[2:] + force[1:-1])
        new = jnp.concatenate((own[:1], lax.scan(point, own[0], parts)[1], own[-1:]))
        return new, new

    def sweep(u, _):
        inner = lax.scan(row, u[0], (u[1:-1], u[2:], source[1:-1]))[1]
        return jnp.concatenate((u[:1], inner, u[-1:])), None

    return jnp.sum(lax.scan(sweep, jnp.zeros_like(source), length=sweeps)[0] ** 2)
