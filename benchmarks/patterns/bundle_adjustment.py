"""A helper that returns `np.empty(2)`: bundle adjustment, with the gradient by cameras and points."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "observations"
SIZES = (10, 5_000)
WRT = ("cameras", "points")


def arguments(size):
    """A camera is a rotation vector, a shift, a focal length and two coefficients of distortion."""
    random = np.random.default_rng(37)
    camera_count, point_count = max(2, size // 100), max(4, size // 5)
    cameras = 0.1 * random.standard_normal((camera_count, 9))
    cameras[:, 5] += 5.0
    cameras[:, 6] = 100.0
    points = random.standard_normal((point_count, 3))
    seen_by = random.integers(0, camera_count, size)
    seen_point = random.integers(0, point_count, size)
    return cameras, points, seen_by, seen_point, 20.0 * random.standard_normal((size, 2))


def project(camera, point):
    theta = math.sqrt(camera[0] ** 2 + camera[1] ** 2 + camera[2] ** 2)
    k = camera[:3] / theta
    c, s = math.cos(theta), math.sin(theta)
    dot = (k[0] * point[0] + k[1] * point[1] + k[2] * point[2]) * (1.0 - c)
    x = point[0] * c + (k[1] * point[2] - k[2] * point[1]) * s + k[0] * dot + camera[3]
    y = point[1] * c + (k[2] * point[0] - k[0] * point[2]) * s + k[1] * dot + camera[4]
    z = point[2] * c + (k[0] * point[1] - k[1] * point[0]) * s + k[2] * dot + camera[5]
    a, b = x / z, y / z
    r2 = a * a + b * b
    distortion = 1.0 + camera[7] * r2 + camera[8] * r2 * r2
    out = np.empty(2)
    out[0] = camera[6] * distortion * a
    out[1] = camera[6] * distortion * b
    return out


def primal(cameras, points, seen_by, seen_point, features):
    total = 0.0
    for i in range(len(seen_by)):
        error = project(cameras[seen_by[i]], points[seen_point[i]]) - features[i]
        total += error[0] ** 2 + error[1] ** 2
    return total


@compiled
def turn(camera, point):
    """Rodrigues' formula: axis, cosine and sine, and the point in the frame of the camera."""
    theta = math.sqrt(camera[0] ** 2 + camera[1] ** 2 + camera[2] ** 2)
    k0, k1, k2 = camera[0] / theta, camera[1] / theta, camera[2] / theta
    c, s = math.cos(theta), math.sin(theta)
    dot = (k0 * point[0] + k1 * point[1] + k2 * point[2]) * (1.0 - c)
    x = point[0] * c + (k1 * point[2] - k2 * point[1]) * s + k0 * dot + camera[3]
    y = point[1] * c + (k2 * point[0] - k0 * point[2]) * s + k1 * dot + camera[4]
    z = point[2] * c + (k0 * point[1] - k1 * point[0]) * s + k2 * dot + camera[5]
    return theta, k0, k1, k2, c, s, x, y, z


@compiled
def turn_back(point, theta, k0, k1, k2, c, s, g0, g1, g2):
    """The adjoints of the rotation vector and of the point, from that of the turned point."""
    p0, p1, p2 = point[0], point[1], point[2]
    rest = 1.0 - c
    dot, k_dot = k0 * p0 + k1 * p1 + k2 * p2, k0 * g0 + k1 * g1 + k2 * g2
    c_bar = p0 * g0 + p1 * g1 + p2 * g2 - dot * k_dot
    # p x g, which times k is the adjoint of the sine
    w0, w1, w2 = p1 * g2 - p2 * g1, p2 * g0 - p0 * g2, p0 * g1 - p1 * g0
    s_bar = k0 * w0 + k1 * w1 + k2 * w2
    k0_bar = rest * (dot * g0 + k_dot * p0) + s * w0
    k1_bar = rest * (dot * g1 + k_dot * p1) + s * w1
    k2_bar = rest * (dot * g2 + k_dot * p2) + s * w2
    inverse = 1.0 / theta
    theta_bar = s_bar * c - c_bar * s - (k0_bar * k0 + k1_bar * k1 + k2_bar * k2) * inverse
    along = rest * k_dot
    return (
        k0_bar * inverse + theta_bar * k0,
        k1_bar * inverse + theta_bar * k1,
        k2_bar * inverse + theta_bar * k2,
        c * g0 + s * (g1 * k2 - g2 * k1) + along * k0,
        c * g1 + s * (g2 * k0 - g0 * k2) + along * k1,
        c * g2 + s * (g0 * k1 - g1 * k0) + along * k2,
    )


@compiled
def hand(cameras, points, seen_by, seen_point, features):
    total = 0.0
    cameras_bar, points_bar = np.zeros_like(cameras), np.zeros_like(points)
    for i in range(len(seen_by)):
        camera, camera_bar = cameras[seen_by[i]], cameras_bar[seen_by[i]]
        point, point_bar = points[seen_point[i]], points_bar[seen_point[i]]
        theta, k0, k1, k2, c, s, x, y, z = turn(camera, point)
        over_z = 1.0 / z
        a, b = x * over_z, y * over_z
        r2 = a * a + b * b
        focal, first, second = camera[6], camera[7], camera[8]
        distortion = 1.0 + r2 * (first + r2 * second)
        u, v = focal * distortion * a - features[i, 0], focal * distortion * b - features[i, 1]
        total += u * u + v * v
        u_bar, v_bar = 2.0 * u, 2.0 * v
        along = u_bar * a + v_bar * b
        distortion_bar = focal * along
        r2_bar = distortion_bar * (first + 2.0 * second * r2)
        a_bar = focal * distortion * u_bar + 2.0 * r2_bar * a
        b_bar = focal * distortion * v_bar + 2.0 * r2_bar * b
        g0, g1, g2 = a_bar * over_z, b_bar * over_z, -(a_bar * a + b_bar * b) * over_z
        r0, r1, r2_, q0, q1, q2 = turn_back(point, theta, k0, k1, k2, c, s, g0, g1, g2)
        camera_bar[0] += r0
        camera_bar[1] += r1
        camera_bar[2] += r2_
        camera_bar[3] += g0
        camera_bar[4] += g1
        camera_bar[5] += g2
        camera_bar[6] += distortion * along
        camera_bar[7] += distortion_bar * r2
        camera_bar[8] += distortion_bar * r2 * r2
        point_bar[0] += q0
        point_bar[1] += q1
        point_bar[2] += q2
    return total, (cameras_bar, points_bar)


def project_in_jax(camera, point):
    import jax.numpy as jnp

    theta = jnp.sqrt(jnp.sum(camera[:3] ** 2))
    k = camera[:3] / theta
    c, s = jnp.cos(theta), jnp.sin(theta)
    x, y, z = point * c + jnp.cross(k, point) * s + k * (jnp.dot(k, point) * (1.0 - c)) + camera[3:6]
    a = jnp.stack((x / z, y / z))
    r2 = jnp.sum(a * a)
    return camera[6] * (1.0 + camera[7] * r2 + camera[8] * r2 * r2) * a


def in_jax(cameras, points, seen_by, seen_point, features):
    import jax
    import jax.numpy as jnp

    return jnp.sum((jax.vmap(project_in_jax)(cameras[seen_by], points[seen_point]) - features) ** 2)
