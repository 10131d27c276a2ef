"""A state that each step copies back in place: Burgers' equation with `u[:] = v`."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "grid points"
SIZES = (20, 1_000)
WRT = ("u0",)
STATIC = ("steps",)


def arguments(size):
    x = np.linspace(0.0, 2.0 * np.pi, size)
    return np.sin(x) + 0.5 * np.sin(3.0 * x), 10 if size < 100 else 200, 0.1, 0.2


def primal(u0, steps, c, d):
    u = u0.copy()
    v = np.empty_like(u)
    n = len(u)
    for _ in range(steps):
        for i in range(1, n - 1):
            v[i] = u[i] - c * u[i] * (u[i + 1] - u[i - 1]) + d * (u[i + 1] - 2.0 * u[i] + u[i - 1])
        v[0] = u[0]
        v[n - 1] = u[n - 1]
        u[:] = v
    return np.sum(u**2)


@compiled
def hand(u0, steps, c, d):
    n = len(u0)
    kept = np.empty((steps + 1, n))
    for i in range(n):
        kept[0, i] = u0[i]
    for t in range(steps):
        u, v = kept[t], kept[t + 1]
        for k in range(n - 2):
            v[k + 1] = u[k + 1] - c * u[k + 1] * (u[k + 2] - u[k]) + d * (u[k + 2] - 2.0 * u[k + 1] + u[k])
        v[0] = u[0]
        v[n - 1] = u[n - 1]
    total = 0.0
    u = kept[steps]
    v_bar = np.empty(n)
    u_bar = np.empty(n)
    for i in range(n):
        total += u[i] * u[i]
        v_bar[i] = 2.0 * u[i]
    own = 1.0 - 2.0 * d
    for t in range(steps - 1, -1, -1):
        u = kept[t]
        # each element gathers from its inner neighbours; the border passes its adjoint on
        for k in range(n - 4):
            u_bar[k + 2] = (
                v_bar[k + 2] * (own - c * (u[k + 3] - u[k + 1]))
                + v_bar[k + 1] * (d - c * u[k + 1])
                + v_bar[k + 3] * (d + c * u[k + 3])
            )
        u_bar[0] = v_bar[0] + v_bar[1] * (d + c * u[1])
        u_bar[1] = v_bar[1] * (own - c * (u[2] - u[0])) + v_bar[2] * (d + c * u[2])
        u_bar[n - 2] = v_bar[n - 2] * (own - c * (u[n - 1] - u[n - 3])) + v_bar[n - 3] * (d - c * u[n - 3])
        u_bar[n - 1] = v_bar[n - 1] + v_bar[n - 2] * (d - c * u[n - 2])
        u_bar, v_bar = v_bar, u_bar
    return total, (v_bar,)


def in_jax(u0, steps, c, d):
    import jax.numpy as jnp
    from jax import lax

    def step(u, _):
        left, middle, right = u[:-2], u[1:-1], u[2:]
        inner = middle - c * middle * (right - left) + d * (right - 2.0 * middle + left)
        return jnp.concatenate((u[:1], inner, u[-1:])), None

    return jnp.sum(lax.scan(step, u0, length=steps)[0] ** 2)
