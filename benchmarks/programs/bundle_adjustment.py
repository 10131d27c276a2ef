"""Bundle adjustment: the sum of squared distances between observed and predicted pixels.

A camera is a rotation vector, a position, a focal length, a principal point and two coefficients of radial distortion.
The gradient is the one that least squares needs, by all cameras, points and weights.
"""

import math

import numpy as np

SIZE = "observations"
SIZES = (20, 200, 2_000)
WRT = ("cameras", "points", "weights")


def arguments(size):
    random = np.random.default_rng(5)
    camera_count, point_count = max(2, size // 50), max(4, size // 5)
    cameras = 0.1 * random.standard_normal((camera_count, 11))
    cameras[:, 5] += 5.0
    cameras[:, 6] = 100.0
    points = random.standard_normal((point_count, 3))
    seen_by = random.integers(0, camera_count, size)
    seen_point = random.integers(0, point_count, size)
    features = 20.0 * random.standard_normal((size, 2))
    return cameras, points, random.uniform(0.5, 1.5, size), seen_by, seen_point, features


def rotate(rx, ry, rz, x, y, z):
    """Rodrigues' formula: turn a point around an axis by an angle, both given by the rotation vector."""
    squared = rx * rx + ry * ry + rz * rz
    if squared == 0.0:
        return x + ry * z - rz * y, y + rz * x - rx * z, z + rx * y - ry * x
    theta = math.sqrt(squared)
    cos = math.cos(theta)
    sin = math.sin(theta)
    wx, wy, wz = rx / theta, ry / theta, rz / theta
    along = (wx * x + wy * y + wz * z) * (1.0 - cos)
    return (
        x * cos + (wy * z - wz * y) * sin + wx * along,
        y * cos + (wz * x - wx * z) * sin + wy * along,
        z * cos + (wx * y - wy * x) * sin + wz * along,
    )


def primal(cameras, points, weights, seen_by, seen_point, features):
    total = 0.0
    for k in range(len(weights)):
        camera = cameras[seen_by[k]]
        point = points[seen_point[k]]
        x, y, z = rotate(
            camera[0], camera[1], camera[2], point[0] - camera[3], point[1] - camera[4], point[2] + camera[5]
        )
        px = x / z
        py = y / z
        r2 = px * px + py * py
        distortion = 1.0 + camera[9] * r2 + camera[10] * r2 * r2
        ex = weights[k] * (camera[6] * px * distortion + camera[7] - features[k, 0])
        ey = weights[k] * (camera[6] * py * distortion + camera[8] - features[k, 1])
        total += ex * ex + ey * ey
        missing = 1.0 - weights[k] * weights[k]
        total += missing * missing
    return total
