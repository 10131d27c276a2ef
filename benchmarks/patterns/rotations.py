"""A helper that returns a small array: points that Rodrigues' formula turns around an axis."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "points"
SIZES = (10, 10_000)
WRT = ("axis_angle",)


def arguments(size):
    return np.random.default_rng(31).standard_normal((size, 3)), np.array([0.1, 0.2, 0.3])


def rotate(p, axis_angle):
    theta = math.sqrt(axis_angle[0] ** 2 + axis_angle[1] ** 2 + axis_angle[2] ** 2)
    k = axis_angle / theta
    c, s = math.cos(theta), math.sin(theta)
    cross = np.array([k[1] * p[2] - k[2] * p[1], k[2] * p[0] - k[0] * p[2], k[0] * p[1] - k[1] * p[0]])
    dot = k[0] * p[0] + k[1] * p[1] + k[2] * p[2]
    out = np.empty(3)
    for i in range(3):
        out[i] = p[i] * c + cross[i] * s + k[i] * dot * (1.0 - c)
    return out


def primal(points, axis_angle):
    total = 0.0
    for i in range(points.shape[0]):
        q = rotate(points[i], axis_angle)
        total += q[0] * q[1] + q[2] ** 2
    return total


@compiled
def hand(points, axis_angle):
    a, b, d = axis_angle[0], axis_angle[1], axis_angle[2]
    theta = math.sqrt(a * a + b * b + d * d)
    kx, ky, kz = a / theta, b / theta, d / theta
    c, s = math.cos(theta), math.sin(theta)
    rest = 1.0 - c
    total = kx_bar = ky_bar = kz_bar = c_bar = s_bar = 0.0
    for i in range(points.shape[0]):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        crossed_x, crossed_y, crossed_z = ky * z - kz * y, kz * x - kx * z, kx * y - ky * x
        along = kx * x + ky * y + kz * z
        qx = x * c + crossed_x * s + kx * along * rest
        qy = y * c + crossed_y * s + ky * along * rest
        qz = z * c + crossed_z * s + kz * along * rest
        total += qx * qy + qz * qz
        qx_bar, qy_bar, qz_bar = qy, qx, 2.0 * qz
        k_dot = kx * qx_bar + ky * qy_bar + kz * qz_bar
        c_bar += x * qx_bar + y * qy_bar + z * qz_bar - along * k_dot
        s_bar += crossed_x * qx_bar + crossed_y * qy_bar + crossed_z * qz_bar
        # the adjoint of `k x p` by k is `p x adjoint`
        kx_bar += rest * (along * qx_bar + k_dot * x) + s * (y * qz_bar - z * qy_bar)
        ky_bar += rest * (along * qy_bar + k_dot * y) + s * (z * qx_bar - x * qz_bar)
        kz_bar += rest * (along * qz_bar + k_dot * z) + s * (x * qy_bar - y * qx_bar)
    theta_bar = s_bar * c - c_bar * s - (kx_bar * kx + ky_bar * ky + kz_bar * kz) / theta
    axis_angle_bar = np.zeros_like(axis_angle)
    axis_angle_bar[0] = kx_bar / theta + theta_bar * kx
    axis_angle_bar[1] = ky_bar / theta + theta_bar * ky
    axis_angle_bar[2] = kz_bar / theta + theta_bar * kz
    return total, (axis_angle_bar,)


def in_jax(points, axis_angle):
    import jax.numpy as jnp

    theta = jnp.sqrt(jnp.sum(axis_angle**2))
    k = axis_angle / theta
    along = (points @ k)[:, None]
    q = points * jnp.cos(theta) + jnp.cross(k, points) * jnp.sin(theta) + k * along * (1.0 - jnp.cos(theta))
    return jnp.sum(q[:, 0] * q[:, 1] + q[:, 2] ** 2)
