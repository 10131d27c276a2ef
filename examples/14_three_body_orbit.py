"""Optimise a trajectory: find the start from which three stars chase each other for ever on one figure of eight."""

import sys

import numpy as np
from scipy.optimize import least_squares

import srcdiff

STEPS = 600


def accelerate(place, force):
    """Write the gravity between all pairs of stars of mass one into `force`."""
    force[:] = 0.0
    for i in range(len(place)):
        for j in range(i):
            apart = place[j] - place[i]
            pull = apart / np.sum(apart**2) ** 1.5
            force[i] += pull
            force[j] -= pull


def fly(place, velocity, duration):
    """Places and velocities after the duration, by the leapfrog method, and the places after every step."""
    step = duration / STEPS
    place, velocity = place.copy(), velocity.copy()
    way = np.empty((STEPS, len(place), 2))
    force = np.empty_like(place)
    accelerate(place, force)
    for t in range(STEPS):
        velocity += 0.5 * step * force
        place += step * velocity
        accelerate(place, force)
        velocity += 0.5 * step * force
        way[t] = place
    return place, velocity, way


def start(unknown):
    """Two stars have the same velocity, which is unknown. That of the third makes the total momentum zero."""
    place = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    velocity = np.empty((3, 2))
    velocity[:2] = unknown[:2]
    velocity[2] = -2.0 * unknown[:2]
    return place, velocity


@srcdiff.differentiable
def mismatch(unknown):
    """After a third of the period, each star must have the place and the velocity that another one had."""
    place, velocity = start(unknown)
    end, speed, _ = fly(place, velocity, unknown[2] / 3.0)
    return np.concatenate(((end - np.roll(place, -1, axis=0)).ravel(), (speed - np.roll(velocity, -1, axis=0)).ravel()))


jacobian = srcdiff.jacobian(mismatch)
guess = np.array([0.4, 0.5, 6.0])
found = least_squares(mismatch, guess, jac=jacobian, xtol=1e-15, ftol=1e-15, gtol=1e-15)
print(f"start with velocity {found.x[:2].round(6)} and period {found.x[2]:.6f} after {found.njev} Jacobians")
print(f"the stars miss their places by {np.max(np.abs(mismatch(found.x))):.1e}")

# Chenciner and Montgomery (2000): velocity (0.347111, 0.532728), period 6.325914.
assert np.allclose(found.x, [0.347111, 0.532728, 6.325914], atol=2e-4)  # the accuracy of the time steps
assert np.max(np.abs(mismatch(found.x))) < 2e-5

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    for unknown, style in ((guess, ":"), (found.x, "-")):
        way = fly(*start(unknown), unknown[2])[2]
        for star in range(3):
            plt.plot(way[:, star, 0], way[:, star, 1], style)
    plt.axis("equal")
    plt.savefig(sys.argv[1])
