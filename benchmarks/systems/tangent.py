"""The programs for tangent-ad, which reads Python source as srcdiff does. Some are rewritten for it.

It has no rules for `math`, for methods like `u.copy()` or for attributes like `a.T` of what it differentiates, and
no `np.empty` or `np.diag`; the functions below say the same with functions of NumPy that it knows.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

import numpy as np
import tangent

from benchmarks.programs import Program


def version() -> str:
    return f"tangent-ad {importlib.metadata.version('tangent-ad')}"


def burgers(u0, steps, c, d):
    u = u0 * 1.0
    n = len(u0)
    for _ in range(steps):
        v = np.zeros(n)
        v[0] = u[0]
        v[n - 1] = u[n - 1]
        for i in range(1, n - 1):
            v[i] = u[i] - c * u[i] * (u[i + 1] - u[i - 1]) + d * (u[i + 1] - 2.0 * u[i] + u[i - 1])
        u = v
    total = 0.0
    for i in range(n):
        total += u[i] * u[i]
    return total


def gauss_seidel(source, reaction, sweeps):
    n = len(source)
    u = np.zeros((n, n))
    for _ in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                u[i, j] = 0.25 * (around + source[i, j] - reaction * u[i, j] ** 3)
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += u[i, j] * u[i, j]
    return total


def jacobi(u0, source, sweeps):
    u = u0 * 1.0
    for _ in range(sweeps):
        v = u * 1.0
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + source[1:-1, 1:-1])
        u = v
    return np.sum(u * u)


def lennard_jones(p):
    n = len(p[0])
    energy = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx = p[0, i] - p[0, j]
            dy = p[1, i] - p[1, j]
            dz = p[2, i] - p[2, j]
            s = 1.0 / (dx * dx + dy * dy + dz * dz)
            s6 = s * s * s
            energy += 4.0 * (s6 * s6 - s6)
    return energy


def cholesky(a0):
    a = a0 * 1.0
    n = len(a0)
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] = a[i, j] - a[i, k] * a[j, k]
            a[i, j] = a[i, j] / a[j, j]
        for k in range(i):
            a[i, i] = a[i, i] - a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])
    total = 0.0
    for i in range(n):
        total += 2.0 * np.log(a[i, i])
    return total


def sparse_product(data, x0, starts, columns, power):
    n = len(x0)
    x = x0 * 1.0
    for _ in range(power):
        y = np.zeros(n)
        for i in range(n):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += data[k] * x[columns[k]]
            y[i] = total
        x = y
    result = 0.0
    for i in range(n):
        result += x[i] * x[i]
    return result


def bundle_adjustment(cameras, points, weights, seen_by, seen_point, features):
    total = 0.0
    for k in range(len(weights)):
        camera = cameras[seen_by[k]]
        point = points[seen_point[k]]
        theta = np.sqrt(camera[0] * camera[0] + camera[1] * camera[1] + camera[2] * camera[2])
        cos = np.cos(theta)
        sin = np.sin(theta)
        wx = camera[0] / theta
        wy = camera[1] / theta
        wz = camera[2] / theta
        x = point[0] - camera[3]
        y = point[1] - camera[4]
        z = point[2] + camera[5]
        along = (wx * x + wy * y + wz * z) * (1.0 - cos)
        depth = z * cos + (wx * y - wy * x) * sin + wz * along
        px = (x * cos + (wy * z - wz * y) * sin + wx * along) / depth
        py = (y * cos + (wz * x - wx * z) * sin + wy * along) / depth
        r2 = px * px + py * py
        distortion = 1.0 + camera[9] * r2 + camera[10] * r2 * r2
        ex = weights[k] * (camera[6] * px * distortion + camera[7] - features[k, 0])
        ey = weights[k] * (camera[6] * py * distortion + camera[8] - features[k, 1])
        missing = 1.0 - weights[k] * weights[k]
        total = total + ex * ex + ey * ey + missing * missing
    return total


def barrier(spot, rate, volatility, strike, barrier, maturity, noise):
    paths = len(noise)
    steps = len(noise[0])
    step = maturity / steps
    drift = (rate - 0.5 * volatility * volatility) * step
    spread = volatility * np.sqrt(step)
    total = 0.0
    for p in range(paths):
        price = spot
        alive = True
        for t in range(steps):
            price = price * np.exp(drift + spread * noise[p, t])
            if price < barrier:
                alive = False
                break
        if alive and price > strike:
            total += price - strike
    return np.exp(-rate * maturity) * total / paths


def gaussian_mixture(weights, means, factors, x):
    n = len(x)
    d = len(x[0])
    scores = np.zeros((len(weights), n))
    for k in range(len(weights)):
        centred = np.dot(x - means[k], factors[k])
        log_determinant = np.sum(np.log(np.abs(np.sum(factors[k] * np.eye(d), axis=1))))
        scores[k] = weights[k] + log_determinant - 0.5 * np.sum(centred**2, axis=1)
    largest = np.max(scores, axis=0)
    likelihood = np.sum(largest + np.log(np.sum(np.exp(scores - largest), axis=0)))
    normaliser = np.log(np.sum(np.exp(weights))) + 0.5 * d * np.log(2.0 * np.pi)
    return likelihood - n * normaliser


def kalman(motion, motion_noise, measure, measure_noise, measured):
    state = np.zeros(4)
    covariance = np.eye(4)
    total = 0.0
    for t in range(len(measured)):
        state = np.dot(motion, state)
        covariance = np.dot(np.dot(motion, covariance), np.transpose(motion)) + motion_noise
        seen = np.dot(covariance, measure)
        spread = np.dot(measure, seen) + measure_noise
        surprise = measured[t] - np.dot(measure, state)
        state = state + seen * (surprise / spread)
        covariance = covariance - np.outer(seen, seen) / spread
        total += 0.5 * (np.log(2.0 * np.pi * spread) + surprise * surprise / spread)
    return total


def prepare(program: Program, arguments: tuple[Any, ...], variant: str) -> Callable[[], Any]:
    function = globals().get(program.name, program.primal)
    differentiated = tangent.grad(function, wrt=program.positions, preserve_result=True)
    return lambda: differentiated(*arguments)


def reason_of(error: Exception) -> str:
    """The first informative line of an error. Its errors are decorated."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line and set(line) != {"="} and line != "Tangent Error"]
    return f"{type(error).__name__}: {(telling or [''])[0]}"[:300]


def to_numpy(result: Any) -> tuple[float, list[np.ndarray]]:
    *gradients, value = result
    return float(value), [np.asarray(g) for g in gradients]
