"""An array that each step allocates, and a stencil whose direction depends on a branch: an upwind scheme."""

import numpy as np

from benchmarks.patterns import compiled

SIZE = "grid points"
SIZES = (20, 1_000)
WRT = ("u",)
STATIC = ("steps",)


def arguments(size):
    return np.sin(np.linspace(0.3, 6.2, size)), 10 if size < 100 else 200, 0.01, 0.1


def primal(u, steps, dt, nu):
    for _ in range(steps):
        new = u.copy()
        for i in range(1, len(u) - 1):
            if u[i] > 0:
                slope = u[i] * (u[i] - u[i - 1])
            else:
                slope = u[i] * (u[i + 1] - u[i])
            new[i] = u[i] - dt * slope + nu * dt * (u[i + 1] - 2 * u[i] + u[i - 1])
        u = new
    return np.sum(u**2)


@compiled
def hand(u0, steps, dt, nu):
    n = len(u0)
    r = nu * dt
    kept = np.empty((steps + 1, n))
    for i in range(n):
        kept[0, i] = u0[i]
    for t in range(steps):
        u, v = kept[t], kept[t + 1]
        for k in range(n - 2):
            left, middle, right = u[k], u[k + 1], u[k + 2]
            slope = middle * (middle - left if middle > 0.0 else right - middle)
            v[k + 1] = middle - dt * slope + r * (right - 2.0 * middle + left)
        v[0] = u[0]
        v[n - 1] = u[n - 1]
    total = 0.0
    u = kept[steps]
    v_bar = np.empty(n)
    u_bar = np.empty(n)
    for i in range(n):
        total += u[i] * u[i]
        v_bar[i] = 2.0 * u[i]
    own = 1.0 - 2.0 * r
    for t in range(steps - 1, -1, -1):
        u = kept[t]
        for k in range(n - 4):
            left, middle, right = u[k + 1], u[k + 2], u[k + 3]
            slope_by_middle = 2.0 * middle - left if middle > 0.0 else right - 2.0 * middle
            u_bar[k + 2] = (
                v_bar[k + 2] * (own - dt * slope_by_middle)
                + v_bar[k + 1] * (r - dt * min(left, 0.0))
                + v_bar[k + 3] * (r + dt * max(right, 0.0))
            )
        u_bar[0] = v_bar[0] + v_bar[1] * (r + dt * max(u[1], 0.0))
        slope_by_middle = 2.0 * u[1] - u[0] if u[1] > 0.0 else u[2] - 2.0 * u[1]
        u_bar[1] = v_bar[1] * (own - dt * slope_by_middle) + v_bar[2] * (r + dt * max(u[2], 0.0))
        slope_by_middle = 2.0 * u[n - 2] - u[n - 3] if u[n - 2] > 0.0 else u[n - 1] - 2.0 * u[n - 2]
        u_bar[n - 2] = v_bar[n - 2] * (own - dt * slope_by_middle) + v_bar[n - 3] * (r - dt * min(u[n - 3], 0.0))
        u_bar[n - 1] = v_bar[n - 1] + v_bar[n - 2] * (r - dt * min(u[n - 2], 0.0))
        u_bar, v_bar = v_bar, u_bar
    return total, (v_bar,)


def in_jax(u, steps, dt, nu):
    import jax.numpy as jnp
    from jax import lax

    def step(u, _):
        left, middle, right = u[:-2], u[1:-1], u[2:]
        slope = middle * jnp.where(middle > 0.0, middle - left, right - middle)
        inner = middle - dt * slope + nu * dt * (right - 2.0 * middle + left)
        return jnp.concatenate((u[:1], inner, u[-1:])), None

    return jnp.sum(lax.scan(step, u, length=steps)[0] ** 2)
