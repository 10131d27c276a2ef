"""Predators and prey, integrated with an adaptive step: a `while` loop with an unknown trip count."""

import numpy as np

SIZE = "duration"
SIZES = (5, 50, 500)
WRT = ("rates", "start")


def arguments(size):
    return np.array([1.1, 0.4, 0.1, 0.4]), np.array([10.0, 5.0]), float(size), 1e-6


def primal(rates, start, duration, tolerance):
    prey, hunters = start[0], start[1]
    time, step, effort = 0.0, 0.01, 0.0
    while time < duration:
        if time + step > duration:
            step = duration - time
        # Bogacki and Shampine: the third order to go on with, the second to estimate the error
        a1 = rates[0] * prey - rates[1] * prey * hunters
        b1 = rates[2] * prey * hunters - rates[3] * hunters
        p = prey + 0.5 * step * a1
        h = hunters + 0.5 * step * b1
        a2 = rates[0] * p - rates[1] * p * h
        b2 = rates[2] * p * h - rates[3] * h
        p = prey + 0.75 * step * a2
        h = hunters + 0.75 * step * b2
        a3 = rates[0] * p - rates[1] * p * h
        b3 = rates[2] * p * h - rates[3] * h
        p = prey + step * (2.0 * a1 + 3.0 * a2 + 4.0 * a3) / 9.0
        h = hunters + step * (2.0 * b1 + 3.0 * b2 + 4.0 * b3) / 9.0
        a4 = rates[0] * p - rates[1] * p * h
        b4 = rates[2] * p * h - rates[3] * h
        error_p = step * (-5.0 * a1 / 72.0 + a2 / 12.0 + a3 / 9.0 - a4 / 8.0)
        error_h = step * (-5.0 * b1 / 72.0 + b2 / 12.0 + b3 / 9.0 - b4 / 8.0)
        error = np.sqrt(error_p * error_p + error_h * error_h) + 1e-14
        if error <= tolerance:
            time += step
            prey, hunters = p, h
            effort += step * prey * hunters
        factor = 0.9 * (tolerance / error) ** (1.0 / 3.0)
        step *= min(5.0, max(0.2, factor))
    return effort / duration + prey * hunters
