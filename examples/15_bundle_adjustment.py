"""Bundle adjustment: find cameras and points from pixels, by least squares that never forms the Jacobian."""

import math
import sys

import numpy as np
from scipy.optimize import least_squares
from scipy.sparse.linalg import LinearOperator

import srcdiff


def rotate(turn, x, y, z):
    """Rotate a point about the axis `turn`, by an angle that is the length of `turn` (Rodrigues' formula)."""
    angle = math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)
    if angle == 0.0:
        return x, y, z
    ax, ay, az = turn[0] / angle, turn[1] / angle, turn[2] / angle
    cos, sin = math.cos(angle), math.sin(angle)
    along = (ax * x + ay * y + az * z) * (1.0 - cos)
    return (
        x * cos + (ay * z - az * y) * sin + ax * along,
        y * cos + (az * x - ax * z) * sin + ay * along,
        z * cos + (ax * y - ay * x) * sin + az * along,
    )


def project(camera, point):
    """Where a camera sees a point. A camera: rotation (3 numbers), position (3), focal length, radial distortion."""
    x, y, z = rotate(camera, point[0] - camera[3], point[1] - camera[4], point[2] - camera[5])
    x, y = x / z, y / z
    scale = camera[6] * (1.0 + camera[7] * (x * x + y * y))
    return scale * x, scale * y


def residuals(cameras, points, views, pixels):
    """Predicted minus observed pixels. A view is a pair: the number of a camera and the number of a point."""
    missed = np.empty((len(views), 2))
    for k in range(len(views)):
        x, y = project(cameras[views[k, 0]], points[views[k, 1]])
        missed[k, 0] = x - pixels[k, 0]
        missed[k, 1] = y - pixels[k, 1]
    return missed


random = np.random.default_rng(0)
CAMERAS, POINTS = 12, 150
true_points = random.uniform(-1.0, 1.0, (POINTS, 3))
angle = np.linspace(-0.8, 0.8, CAMERAS)  # the cameras are on an arc and look at its centre
turn = np.stack([0.0 * angle, angle, 0.0 * angle], axis=1)
place = np.stack([5.0 * np.sin(angle), 0.3 * np.cos(4.0 * angle), -5.0 * np.cos(angle)], axis=1)
true_cameras = np.column_stack([turn, place, np.full(CAMERAS, 800.0), np.full(CAMERAS, -0.05)])

views = np.array([(c, p) for c in range(CAMERAS) for p in range(POINTS) if random.uniform() < 0.5])
pixels = residuals(true_cameras, true_points, views, np.zeros((len(views), 2)))
pixels += 0.2 * random.standard_normal(pixels.shape)

# All unknowns are in one vector. `unit` is the initial uncertainty of each.
unit = np.concatenate([np.tile([0.01] * 3 + [0.05] * 3 + [10.0, 0.01], CAMERAS), np.full(3 * POINTS, 0.05)])
truth = np.concatenate([true_cameras.ravel(), true_points.ravel()])
start = truth + unit * random.standard_normal(len(unit))


def parts(vector):
    return vector[: 8 * CAMERAS].reshape(CAMERAS, 8), vector[8 * CAMERAS :].reshape(POINTS, 3)


def missed(vector):
    return residuals(*parts(vector), views, pixels).ravel()


def jacobian(vector):
    """The Jacobian as a linear operator: forward mode multiplies by it, reverse mode by its transpose."""
    arguments = (*parts(vector), views, pixels)
    _, pullback = srcdiff.vjp(residuals, *arguments, wrt=("cameras", "points"))

    def along(direction):
        _, tangent = srcdiff.jvp(residuals, arguments, (*parts(direction.ravel()), None, None))
        return tangent.ravel()

    def back(weights):
        return np.concatenate([bar.ravel() for bar in pullback(weights.reshape(-1, 2))])

    return LinearOperator((pixels.size, vector.size), matvec=along, rmatvec=back)


found = least_squares(missed, start, jac=jacobian, x_scale=unit, tr_solver="lsmr", ftol=1e-4)
print(f"{len(views)} observations of {POINTS} points by {CAMERAS} cameras: {len(start)} unknowns")
print(f"{np.std(missed(start)):.3f} pixels at the start, {np.std(found.fun):.3f} after {found.nfev} steps")

# Noise of 0.2 pixels remains. Each unknown takes up one degree of freedom, except for seven that have no effect: the
# translation, rotation and scale of the whole scene.
left = 0.2**2 * (pixels.size - (len(start) - 7))
assert np.isclose(np.sum(found.fun**2), left, rtol=0.1)  # the scatter of a sum of about 1400 squares
assert found.nfev < 10

# Compare one column of the Jacobian with finite differences.
step = np.zeros(len(start))
step[3] = 1e-6
difference = (missed(start + step) - missed(start - step)) / 2e-6
assert np.allclose(jacobian(start).matvec(step * 1e6), difference, rtol=1e-6, atol=1e-6)

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    camera_places, points = parts(found.x)
    plt.plot(true_points[:, 0], true_points[:, 2], "k.", label="points")
    plt.plot(points[:, 0], points[:, 2], "o", mfc="none", label="found")
    plt.plot(place[:, 0], place[:, 2], "k^", label="cameras")
    plt.plot(camera_places[:, 3], camera_places[:, 5], "^", mfc="none", ms=10, label="found")
    plt.axis("equal")
    plt.legend()
    plt.savefig(sys.argv[1])
