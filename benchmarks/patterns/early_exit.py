"""An exit from the middle of an inner loop: rays that march through a scene until they hit something."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "rays"
SIZES = (8, 5_000)
WRT = ("centre", "radius")


def arguments(size):
    angle = np.linspace(-0.4, 0.4, size)
    return np.array([0.2, 3.0]), 0.8, np.stack([np.sin(angle), np.cos(angle)], axis=1)


def primal(centre, radius, directions):
    total = 0.0
    for i in range(directions.shape[0]):
        depth = 0.1
        for _ in range(40):
            x = depth * directions[i, 0] - centre[0]
            y = depth * directions[i, 1] - centre[1]
            distance = math.sqrt(x * x + y * y) - radius - 0.1 * math.sin(3.0 * depth)
            if distance < 1e-2:
                break
            if depth > 6.0:
                break
            depth += 0.7 * distance
        total += math.exp(-0.2 * depth)
    return total


@compiled
def hand(centre, radius, directions):
    total = centre0_bar = centre1_bar = radius_bar = 0.0
    c0, c1 = centre[0], centre[1]
    kept = np.empty(40)
    for i in range(directions.shape[0]):
        d0, d1 = directions[i, 0], directions[i, 1]
        depth = 0.1
        count = 0
        for _ in range(40):
            x, y = depth * d0 - c0, depth * d1 - c1
            distance = math.sqrt(x * x + y * y) - radius - 0.1 * math.sin(3.0 * depth)
            if distance < 1e-2 or depth > 6.0:
                break
            kept[count] = depth
            count += 1
            depth += 0.7 * distance
        brightness = math.exp(-0.2 * depth)
        total += brightness
        depth_bar = -0.2 * brightness
        for k in range(count - 1, -1, -1):
            depth = kept[k]
            x, y = depth * d0 - c0, depth * d1 - c1
            over = 1.0 / math.sqrt(x * x + y * y)
            distance_bar = 0.7 * depth_bar
            radius_bar -= distance_bar
            x_bar, y_bar = distance_bar * x * over, distance_bar * y * over
            centre0_bar -= x_bar
            centre1_bar -= y_bar
            depth_bar += x_bar * d0 + y_bar * d1 - 0.3 * distance_bar * math.cos(3.0 * depth)
    centre_bar = np.zeros_like(centre)
    centre_bar[0] = centre0_bar
    centre_bar[1] = centre1_bar
    return total, (centre_bar, radius_bar)
