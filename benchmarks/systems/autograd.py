"""The programs for autograd: its own NumPy, no writes into arrays, plain Python loops and branches.

Where a program writes into an array element by element, the elements are numbers in Python lists. Gauss-Seidel goes
along diagonals, whose points do not depend on each other: one array for a diagonal, replaced as a whole.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy as np
import numpy  # noqa: ICN001 (`np` is its own NumPy here)

from benchmarks.programs import Program
from benchmarks.systems import RefusedError


def version() -> str:
    return f"autograd {importlib.metadata.version('autograd')}"


def tiny(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def recurrence(a, r):
    x = 0.3
    total = 0.0
    for a_i in a:
        c = x + a_i
        y = 0.5 * c
        residual = y * y * y + y - c
        while abs(residual) > 1e-9:
            y = y - residual / (3.0 * y * y + 1.0)
            residual = y * y * y + y - c
        x = r * y * (1.0 - y) if y > 0.5 else r * y + 0.1 * y * y
        total = total + x * x
    return total


def adaptive_ode(rates, start, duration, tolerance):
    grows, eaten, feeds, dies = rates[0], rates[1], rates[2], rates[3]

    def slope(p, h):
        met = p * h
        return grows * p - eaten * met, feeds * met - dies * h

    prey, hunters = start[0], start[1]
    time, step, effort = 0.0, 0.01, 0.0
    while time < duration:
        if time + step > duration:
            step = duration - time
        a1, b1 = slope(prey, hunters)
        a2, b2 = slope(prey + 0.5 * step * a1, hunters + 0.5 * step * b1)
        a3, b3 = slope(prey + 0.75 * step * a2, hunters + 0.75 * step * b2)
        p = prey + step * (2.0 * a1 + 3.0 * a2 + 4.0 * a3) / 9.0
        h = hunters + step * (2.0 * b1 + 3.0 * b2 + 4.0 * b3) / 9.0
        a4, b4 = slope(p, h)
        error_p = step * (-5.0 * a1 / 72.0 + a2 / 12.0 + a3 / 9.0 - a4 / 8.0)
        error_h = step * (-5.0 * b1 / 72.0 + b2 / 12.0 + b3 / 9.0 - b4 / 8.0)
        error = np.sqrt(error_p * error_p + error_h * error_h) + 1e-14
        if error <= tolerance:
            time = time + step
            prey, hunters = p, h
            effort = effort + step * prey * hunters
        factor = 0.9 * (tolerance / error) ** (1.0 / 3.0)
        step = step * min(5.0, max(0.2, factor))
    return effort / duration + prey * hunters


def burgers(u0, steps, c, d):
    u = u0
    for _ in range(steps):
        left, middle, right = u[:-2], u[1:-1], u[2:]
        inner = middle - c * middle * (right - left) + d * (right - 2.0 * middle + left)
        u = np.concatenate((u[:1], inner, u[-1:]))
    return np.sum(u * u)


def gauss_seidel(source, reaction, sweeps):
    n = source.shape[0]
    diagonals = []
    for total in range(2, 2 * n - 3):
        i = numpy.arange(max(1, total - n + 2), min(n - 2, total - 1) + 1)
        diagonals.append((i, total - i))
    # the values of each diagonal, zero at the border, addressed by the row
    u = [numpy.zeros(n) for _ in range(2 * n - 1)]
    for _ in range(sweeps):
        for i, j in diagonals:
            total = i[0] + j[0]
            before, own, after = u[total - 1], u[total], u[total + 1]
            around = before[i - 1] + after[i + 1] + before[i] + after[i]
            new = 0.25 * (around + source[i, j] - reaction * own[i] ** 3)
            u[total] = np.concatenate((numpy.zeros(i[0]), new, numpy.zeros(n - 1 - i[-1])))
    return sum(np.sum(diagonal * diagonal) for diagonal in u)


def jacobi(u0, source, sweeps):
    u = u0
    for _ in range(sweeps):
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + source[1:-1, 1:-1])
        rows = np.concatenate((u[1:-1, :1], inner, u[1:-1, -1:]), axis=1)
        u = np.concatenate((u[:1], rows, u[-1:]))
    return np.sum(u * u)


def lennard_jones(p):
    itself = numpy.eye(p.shape[1])
    difference = p[:, :, None] - p[:, None, :]
    s = 1.0 / (np.sum(difference * difference, axis=0) + itself)
    s6 = s * s * s
    return 0.5 * np.sum((1.0 - itself) * 4.0 * (s6 * s6 - s6))


def cholesky(a0):
    symmetric = np.tril(a0) + np.tril(a0, -1).T  # the program reads the lower half
    return 2.0 * np.sum(np.log(np.diag(np.linalg.cholesky(symmetric))))


def sparse_product(data, x0, starts, columns, power):
    x = x0
    for _ in range(power):
        sums = np.concatenate((numpy.zeros(1), np.cumsum(data * x[columns])))
        x = sums[starts[1:]] - sums[starts[:-1]]
    return np.sum(x * x)


def bundle_adjustment(cameras, points, weights, seen_by, seen_point, features):
    camera = cameras[seen_by].T
    px, py, pz = points[seen_point].T
    theta = np.sqrt(camera[0] ** 2 + camera[1] ** 2 + camera[2] ** 2)
    wx, wy, wz = camera[0] / theta, camera[1] / theta, camera[2] / theta
    x, y, z = px - camera[3], py - camera[4], pz + camera[5]
    cos, sin = np.cos(theta), np.sin(theta)
    along = (wx * x + wy * y + wz * z) * (1.0 - cos)
    depth = z * cos + (wx * y - wy * x) * sin + wz * along
    u = (x * cos + (wy * z - wz * y) * sin + wx * along) / depth
    v = (y * cos + (wz * x - wx * z) * sin + wy * along) / depth
    r2 = u * u + v * v
    distortion = 1.0 + camera[9] * r2 + camera[10] * r2 * r2
    ex = weights * (camera[6] * u * distortion + camera[7] - features[:, 0])
    ey = weights * (camera[6] * v * distortion + camera[8] - features[:, 1])
    return np.sum(ex * ex + ey * ey) + np.sum((1.0 - weights * weights) ** 2)


def barrier(spot, rate, volatility, strike, barrier, maturity, noise):
    step = maturity / noise.shape[1]
    drift = (rate - 0.5 * volatility * volatility) * step
    prices = spot * np.exp(np.cumsum(drift + volatility * np.sqrt(step) * noise, axis=1))
    alive = np.all(prices >= barrier, axis=1)
    return np.exp(-rate * maturity) * np.mean(np.where(alive, np.maximum(prices[:, -1] - strike, 0.0), 0.0))


def normal_cdf(x):
    t = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = 0.3989422804014327 * np.exp(-0.5 * x * x) * series
    return np.where(x > 0.0, 1.0 - tail, tail)


def black_scholes(spot, volatility, rate, strike, time):
    spread = volatility * np.sqrt(time)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * time) / spread
    d2 = d1 - spread
    return np.mean(spot * normal_cdf(d1) - strike * np.exp(-rate * time) * normal_cdf(d2))


def logistic_regression(w, b, x, y, ridge):
    z = np.dot(x, w) + b
    losses = np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0) - y * z
    return np.mean(losses) + 0.5 * ridge * np.sum(w * w)


def mlp(w1, b1, w2, b2, w3, b3, x, y):
    first = np.tanh(np.dot(x, w1) + b1)
    second = np.maximum(np.dot(first, w2) + b2, 0.0)
    return np.mean((np.dot(second, w3) + b3 - y) ** 2)


def gaussian_mixture(weights, means, factors, x):
    n, d = x.shape
    scores = []
    for weight, mean, factor in zip(weights, means, factors, strict=True):
        centred = np.dot(x - mean, factor)
        log_determinant = np.sum(np.log(np.abs(np.diag(factor))))
        scores.append(weight + log_determinant - 0.5 * np.sum(centred**2, axis=1))
    scores = np.array(scores)
    largest = np.max(scores, axis=0)
    likelihood = np.sum(largest + np.log(np.sum(np.exp(scores - largest), axis=0)))
    return likelihood - n * (np.log(np.sum(np.exp(weights))) + 0.5 * d * np.log(2.0 * np.pi))


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def lstm(main, out_scale, out_bias, sequence):
    # terms that do not depend on the state are computed for all steps at once
    forget = sigmoid(sequence * main[0] + main[4])
    outof = sigmoid(sequence * main[2] + main[6])
    into_scale, change_scale, into_bias, change_bias = main[1], main[3], main[5], main[7]
    hidden = cell = numpy.zeros(sequence.shape[1])
    states = []
    for t in range(sequence.shape[0] - 1):
        into = sigmoid(hidden * into_scale + into_bias)
        change = np.tanh(hidden * change_scale + change_bias)
        cell = cell * forget[t] + into * change
        hidden = outof[t] * np.tanh(cell)
        states.append(hidden)
    guess = np.array(states) * out_scale + out_bias
    total = np.sum(guess * sequence[1:]) - np.sum(np.log(np.sum(np.exp(guess), axis=1)))
    return -total / sequence.shape[0]


def hidden_markov(initial, transition, emission, observed):
    columns = list(emission.T)  # taken apart once, not at every step
    alpha = initial * columns[observed[0]]
    total = 0.0
    for t in range(len(observed)):
        if t > 0:
            alpha = np.dot(alpha, transition) * columns[observed[t]]
        scale = np.sum(alpha)
        alpha = alpha / scale
        total = total + np.log(scale)
    return total


def kalman(motion, motion_noise, measure, measure_noise, measured):
    state, covariance = numpy.zeros(4), numpy.eye(4)
    total = 0.0
    for y in measured:
        state = np.dot(motion, state)
        covariance = np.dot(np.dot(motion, covariance), motion.T) + motion_noise
        seen = np.dot(covariance, measure)
        spread = np.dot(measure, seen) + measure_noise
        surprise = y - np.dot(measure, state)
        state = state + seen * (surprise / spread)
        covariance = covariance - np.outer(seen, seen) / spread
        total = total + 0.5 * (np.log(2.0 * np.pi * spread) + surprise * surprise / spread)
    return total


def prepare(program: Program, arguments: tuple[Any, ...], variant: str) -> Callable[[], Any]:
    function = globals().get(program.name)
    if function is None:
        raise RefusedError("not written for autograd")

    def of_chosen(chosen):
        given = list(arguments)
        for position, value in zip(program.positions, chosen, strict=True):
            given[position] = value
        return function(*given)

    differentiated = autograd.value_and_grad(of_chosen)
    chosen = tuple(arguments[k] for k in program.positions)
    return lambda: differentiated(chosen)


def to_numpy(result: Any) -> tuple[float, list[numpy.ndarray]]:
    value, gradients = result
    return float(value), [numpy.asarray(g) for g in gradients]
