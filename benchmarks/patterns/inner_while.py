"""A `while` inside a loop: Kepler's equation solved by Newton's method, each time from the solution before."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "times"
SIZES = (20, 10_000)
WRT = ("mean", "eccentricity")


def arguments(size):
    return np.random.default_rng(27).uniform(0.0, 3.0, size), 0.4


def primal(mean, eccentricity):
    total = 0.0
    angle = 1.0
    for i in range(len(mean)):
        residual = angle - eccentricity * math.sin(angle) - mean[i]
        while abs(residual) > 1e-3:
            angle = angle - residual / (1.0 - eccentricity * math.cos(angle))
            residual = angle - eccentricity * math.sin(angle) - mean[i]
        total += math.cos(angle) - angle * mean[i]
        angle = 0.9 * angle
    return total


@compiled
def hand(mean, eccentricity):
    n = len(mean)
    counts = np.empty(n, np.int64)
    capacity = 4 * n + 64
    kept = np.empty(capacity)
    top = 0
    total, angle = 0.0, 1.0
    for i in range(n):
        begin = top
        residual = angle - eccentricity * math.sin(angle) - mean[i]
        while abs(residual) > 1e-3:
            if top + 1 >= capacity:
                capacity *= 2
                grown = np.empty(capacity)
                for k in range(top):
                    grown[k] = kept[k]
                kept = grown
            kept[top] = angle
            top += 1
            angle -= residual / (1.0 - eccentricity * math.cos(angle))
            residual = angle - eccentricity * math.sin(angle) - mean[i]
        if top + 1 >= capacity:
            capacity *= 2
            grown = np.empty(capacity)
            for k in range(top):
                grown[k] = kept[k]
            kept = grown
        kept[top] = angle
        top += 1
        counts[i] = top - begin - 1
        total += math.cos(angle) - angle * mean[i]
        angle = 0.9 * angle
    mean_bar = np.empty(n)
    eccentricity_bar = angle_bar = 0.0
    for i in range(n - 1, -1, -1):
        top -= 1
        angle = kept[top]
        angle_bar = 0.9 * angle_bar - math.sin(angle) - mean[i]
        own_bar = -angle
        for _ in range(counts[i]):
            top -= 1
            angle = kept[top]
            sin, cos = math.sin(angle), math.cos(angle)
            inverse = 1.0 / (1.0 - eccentricity * cos)
            quotient = (angle - eccentricity * sin - mean[i]) * inverse
            # angle - residual / slope: residual_bar = -angle_bar / slope, slope_bar = angle_bar * quotient / slope
            scaled = angle_bar * inverse
            own_bar += scaled
            eccentricity_bar += scaled * (sin - quotient * cos)
            angle_bar = scaled * quotient * eccentricity * sin
        mean_bar[i] = own_bar
    return total, (mean_bar, eccentricity_bar)
