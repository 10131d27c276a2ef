"""A Kalman filter with one measurement a step: the negative log-likelihood of a model of motion."""

import numpy as np

SIZE = "measurements"
SIZES = (20, 200, 2_000)
WRT = ("motion", "motion_noise", "measure", "measure_noise")


def arguments(size):
    random = np.random.default_rng(14)
    motion = np.array([[1.0, 0.1, 0.0, 0.0], [0.0, 0.95, 0.1, 0.0], [0.0, 0.0, 0.9, 0.1], [0.0, 0.0, -0.1, 0.9]])
    root = 0.1 * random.standard_normal((4, 4))
    measure = np.array([1.0, 0.2, 0.0, 0.1])
    return motion, root @ root.T + 0.05 * np.eye(4), measure, 0.5, random.standard_normal(size)


def primal(motion, motion_noise, measure, measure_noise, measured):
    state = np.zeros(4)
    covariance = np.eye(4)
    total = 0.0
    for t in range(len(measured)):
        state = motion @ state
        covariance = motion @ covariance @ motion.T + motion_noise
        seen = covariance @ measure
        spread = measure @ seen + measure_noise
        surprise = measured[t] - measure @ state
        state = state + seen * (surprise / spread)
        covariance = covariance - np.outer(seen, seen) / spread
        total += 0.5 * (np.log(2.0 * np.pi * spread) + surprise * surprise / spread)
    return total
