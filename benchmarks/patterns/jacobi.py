"""A stencil of five points through two swapped buffers: Jacobi sweeps, written as loops."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "grid points a side"
SIZES = (8, 128)
WRT = ("u0", "source")
STATIC = ("sweeps",)


def arguments(size):
    random = np.random.default_rng(28)
    return random.standard_normal((size, size)), random.standard_normal((size, size)), 5 if size < 50 else 40


def primal(u0, source, sweeps):
    u = u0.copy()
    v = u0.copy()
    rows, columns = u.shape
    for _ in range(sweeps):
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + source[i, j])
        u, v = v, u
    return np.sum(u * u)


@compiled
def adjoint(u0, source, sweeps, u, v, u_bar, source_bar, q, p):
    rows, columns = u0.shape
    for i in range(rows):
        for j in range(columns):
            u[i, j] = v[i, j] = u0[i, j]
            u_bar[i, j] = source_bar[i, j] = q[i, j] = p[i, j] = 0.0
    for _ in range(sweeps):
        for i in range(rows - 2):
            for j in range(columns - 2):
                neighbours = u[i, j + 1] + u[i + 2, j + 1] + u[i + 1, j] + u[i + 1, j + 2]
                v[i + 1, j + 1] = 0.25 * (neighbours + source[i + 1, j + 1])
        u, v = v, u
    # q: the adjoints of the inner points, with a border of zeros; u_bar: the adjoints of the border
    total = 0.0
    for i in range(rows):
        for j in range(columns):
            total += u[i, j] * u[i, j]
            if 0 < i < rows - 1 and 0 < j < columns - 1:
                q[i, j] = 2.0 * u[i, j]
            else:
                u_bar[i, j] = 2.0 * u[i, j]
    for _ in range(sweeps):
        for i in range(rows - 2):
            for j in range(columns - 2):
                p[i + 1, j + 1] = 0.25 * (q[i, j + 1] + q[i + 2, j + 1] + q[i + 1, j] + q[i + 1, j + 2])
                source_bar[i + 1, j + 1] += 0.25 * q[i + 1, j + 1]
        q, p = p, q
    # A border point and the source at its inner neighbour have the same weight there, so they have the same adjoint.
    for j in range(1, columns - 1):
        u_bar[0, j] += source_bar[1, j]
        u_bar[rows - 1, j] += source_bar[rows - 2, j]
    for i in range(1, rows - 1):
        u_bar[i, 0] += source_bar[i, 1]
        u_bar[i, columns - 1] += source_bar[i, columns - 2]
        for j in range(1, columns - 1):
            u_bar[i, j] = q[i, j]
    return total, (u_bar, source_bar)


@compiled
def hand(u0, source, sweeps):
    u, v, u_bar = np.empty_like(u0), np.empty_like(u0), np.empty_like(u0)
    source_bar, q, p = np.empty_like(u0), np.empty_like(u0), np.empty_like(u0)
    return adjoint(u0, source, sweeps, u, v, u_bar, source_bar, q, p)


def in_jax(u0, source, sweeps):
    import jax.numpy as jnp
    from jax import lax

    def sweep(u, _):
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + source[1:-1, 1:-1])
        return u.at[1:-1, 1:-1].set(inner), None

    return jnp.sum(lax.scan(sweep, u0, length=sweeps)[0] ** 2)
