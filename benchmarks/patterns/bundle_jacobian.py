"""`jacobian` called from compiled code: two errors by a camera and a point, for one observation after the other."""

import numpy as np

from benchmarks.patterns import bundle_adjustment, compiled

SIZE, SIZES, WRT = "observations", (10, 5_000), ("camera", "point")
IS_GRADIENT = False

project = bundle_adjustment.project
turn, turn_back = bundle_adjustment.turn, bundle_adjustment.turn_back


def arguments(size):
    """The camera and the point of each observation."""
    cameras, points, seen_by, seen_point, _ = bundle_adjustment.arguments(size)
    return cameras[seen_by], points[seen_point]


def primal(camera, point):
    return project(camera, point)


@compiled
def one(camera, point, by_camera, by_point):
    theta, k0, k1, k2, c, s, x, y, z = turn(camera, point)
    over_z = 1.0 / z
    a, b = x * over_z, y * over_z
    r2 = a * a + b * b
    focal, first, second = camera[6], camera[7], camera[8]
    distortion = 1.0 + r2 * (first + r2 * second)
    slope = 2.0 * focal * (first + 2.0 * second * r2)
    u_by_a, mixed, v_by_b = focal * distortion + slope * a * a, slope * a * b, focal * distortion + slope * b * b
    for row in range(2):
        by_a, by_b, own = (u_by_a, mixed, a) if row == 0 else (mixed, v_by_b, b)
        g0, g1, g2 = by_a * over_z, by_b * over_z, -(by_a * a + by_b * b) * over_z
        r0, r1, r2_, q0, q1, q2 = turn_back(point, theta, k0, k1, k2, c, s, g0, g1, g2)
        by_camera[row, 0] = r0
        by_camera[row, 1] = r1
        by_camera[row, 2] = r2_
        by_camera[row, 3] = g0
        by_camera[row, 4] = g1
        by_camera[row, 5] = g2
        by_camera[row, 6] = distortion * own
        by_camera[row, 7] = focal * own * r2
        by_camera[row, 8] = focal * own * r2 * r2
        by_point[row, 0] = q0
        by_point[row, 1] = q1
        by_point[row, 2] = q2


@compiled
def hand(cameras, points):
    n = len(cameras)
    by_camera, by_point = np.empty((n, 2, 9)), np.empty((n, 2, 3))
    for i in range(n):
        one(cameras[i], points[i], by_camera[i], by_point[i])
    return 0.0, (by_camera, by_point)


def by_srcdiff():
    import numba

    import srcdiff

    jacobian = srcdiff.jacobian(primal, wrt=WRT)

    @numba.njit
    def each(cameras, points):
        n = len(cameras)
        by_camera, by_point = np.empty((n, 2, 9)), np.empty((n, 2, 3))
        for i in range(n):
            by_camera[i], by_point[i] = jacobian(cameras[i], points[i])
        return 0.0, (by_camera, by_point)

    return each


def by_jax():
    import jax

    jacobian = jax.jit(jax.vmap(jax.jacrev(bundle_adjustment.project_in_jax, argnums=(0, 1))))
    return lambda cameras, points: (0.0, jacobian(cameras, points))
