"""Programs with loops over `prange`, in the manner of NPBench's `numba_np` files: what people run on all cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, prange

_RNG = np.random.default_rng(11)


@dataclass(frozen=True, slots=True)
class Program:
    """A function with arguments, and the places of those that it is differentiated by."""

    function: Any
    args: tuple[Any, ...]
    wrt: tuple[int, ...]

    @property
    def name(self) -> str:
        return str(self.function.py_func.__name__)


PROGRAMS: list[Program] = []


def program(*args: Any, wrt: tuple[int, ...] = (0,)) -> Callable[[Callable[..., float]], Any]:
    """Compile a function by Numba, as its users do, and note it."""

    def note(function: Callable[..., float]) -> Any:
        compiled = njit(parallel=True)(function)
        PROGRAMS.append(Program(compiled, args, wrt))
        return compiled

    return note


def numbers(*shape: int) -> np.ndarray:
    return _RNG.uniform(0.5, 1.5, shape)


# -- finance, statistics and learning ----------------------------------------------------------------------------------


@program(numbers(9), numbers(9), 0.3, 0.02, wrt=(0, 2, 3))
def black_scholes(price, strike, sigma, rate):
    total = 0.0
    for i in prange(len(price)):
        d = (np.log(price[i] / strike[i]) + rate + 0.5 * sigma * sigma) / sigma
        total += price[i] * np.tanh(d) - strike[i] * np.exp(-rate) * np.tanh(d - sigma)
    return total


@program(numbers(4), numbers(7, 4), np.sign(_RNG.normal(size=7)), wrt=(0, 1))
def logistic_regression(w, x, y):
    loss = 0.0
    for i in prange(x.shape[0]):
        z = 0.0
        for j in range(x.shape[1]):
            z += x[i, j] * w[j]
        loss += np.log1p(np.exp(-y[i] * z))
    return loss / x.shape[0]


@program(0.2, 0.01, _RNG.normal(size=(6, 5)), wrt=(0, 1))
def monte_carlo(sigma, rate, noise):
    total = 0.0
    for p in prange(noise.shape[0]):
        s = 1.0
        for t in range(noise.shape[1]):
            s *= np.exp(rate - 0.5 * sigma * sigma + sigma * noise[p, t])
        total += max(s - 0.9, 0.0)
    return total / noise.shape[0]


@program(_RNG.normal(size=(3, 2)), _RNG.normal(size=(8, 2)), wrt=(0, 1))
def k_means(centers, x):
    total = 0.0
    for i in prange(x.shape[0]):
        nearest = np.inf
        for c in range(centers.shape[0]):
            d = 0.0
            for j in range(x.shape[1]):
                d += (x[i, j] - centers[c, j]) ** 2
            nearest = min(nearest, d)
        total += nearest
    return total


@program(0.1, 0.5, _RNG.normal(size=(5, 6)), wrt=(0, 1, 2))
def kalman_filters(q, r, series):
    total = 0.0
    for b in prange(series.shape[0]):
        m, p = 0.0, 1.0
        for t in range(series.shape[1]):
            p += q
            s = p + r
            e = series[b, t] - m
            total += 0.5 * (np.log(s) + e * e / s)
            m += p / s * e
            p *= 1.0 - p / s
    return total


@program(numbers(6, 4))
def correlation(data):
    n, m = data.shape
    centred = np.empty((n, m))
    for j in prange(m):
        mean, square = 0.0, 0.0
        for i in range(n):
            mean += data[i, j]
        mean /= n
        for i in range(n):
            square += (data[i, j] - mean) ** 2
        for i in range(n):
            centred[i, j] = (data[i, j] - mean) / np.sqrt(square)
    result = np.zeros((m, m))
    for j in prange(m):
        for k in range(m):
            for i in range(n):
                result[j, k] += centred[i, j] * centred[i, k]
    return np.sum(result * result)


@program(numbers(4, 5), numbers(5, 3), numbers(3), wrt=(0, 1, 2))
def softmax_layer(x, w, b):
    loss = 0.0
    for i in prange(x.shape[0]):
        z = b.copy()
        for j in range(w.shape[1]):
            for k in range(w.shape[0]):
                z[j] += x[i, k] * w[k, j]
        top = np.max(z)
        loss += top + np.log(np.sum(np.exp(z - top))) - z[0]
    return loss


@program(numbers(5, 4), numbers(4, 3), numbers(3, 2), wrt=(0, 1, 2))
def two_layers(x, first, second):
    total = 0.0
    for i in prange(x.shape[0]):
        hidden = np.tanh(x[i] @ first)
        total += np.sum((hidden @ second) ** 2)
    return total


# -- linear algebra ----------------------------------------------------------------------------------------------------


@program(numbers(4, 3), numbers(3, 5), numbers(4, 5), 1.5, 0.7, wrt=(0, 1, 2, 3))
def gemm(a, b, c, alpha, beta):
    result = np.empty_like(c)
    for i in prange(c.shape[0]):
        for j in range(c.shape[1]):
            result[i, j] = beta * c[i, j]
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                result[i, j] += alpha * a[i, k] * b[k, j]
    return np.sum(np.sin(result))


@program(numbers(5, 4), numbers(4), wrt=(0, 1))
def atax(a, x):
    m, n = a.shape
    inner = np.zeros(m)
    for i in prange(m):
        for j in range(n):
            inner[i] += a[i, j] * x[j]
    y = np.zeros(n)
    for j in prange(n):
        for i in range(m):
            y[j] += a[i, j] * inner[i]
    return np.sum(y * y)


@program(numbers(4, 4), numbers(4, 4), numbers(4), wrt=(0, 1, 2))
def gesummv(a, b, x):
    y = np.zeros(len(x))
    for i in prange(len(x)):
        s, t = 0.0, 0.0
        for j in range(len(x)):
            s += a[i, j] * x[j]
            t += b[i, j] * x[j]
        y[i] = 1.5 * s + 1.2 * t
    return np.sum(np.log(y))


@program(numbers(3, 3, 4), numbers(4, 4), wrt=(0, 1))
def doitgen(a, c):
    a = a.copy()
    for r in prange(a.shape[0]):
        for q in range(a.shape[1]):
            row = np.zeros(a.shape[2])
            for p in range(a.shape[2]):
                for s in range(a.shape[2]):
                    row[p] += a[r, q, s] * c[s, p]
            for p in range(a.shape[2]):
                a[r, q, p] = row[p]
    return np.sum(a * a)


@program(numbers(5, 5) + 4.0 * np.eye(5))
def lu(a):
    a = a.copy()
    n = len(a)
    for k in range(n):
        for i in prange(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    total = 0.0
    for i in range(n):
        total += np.log(a[i, i])
    return total


@program(numbers(9), np.array([0, 2, 3, 6, 9]), np.array([0, 1, 2, 0, 2, 3, 1, 2, 3]), numbers(4), wrt=(0, 3))
def sparse_product(values, starts, columns, x):
    y = np.zeros(len(starts) - 1)
    for i in prange(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            y[i] += values[k] * x[columns[k]]
    return np.sum(y**3)


# -- stencils ----------------------------------------------------------------------------------------------------------


@program(numbers(6, 5), 3)
def jacobi_2d(u, steps):
    n, m = u.shape
    for _ in range(steps):
        v = u.copy()
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.2 * (u[i, j] + u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) + 0.1 * u[i, j] ** 2
        u = v
    return np.sum(u * u)


@program(numbers(4, 4, 4), 2)
def heat_3d(u, steps):
    n = len(u)
    for _ in range(steps):
        v = u.copy()
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    v[i, j, k] = u[i, j, k] + 0.125 * (
                        (u[i + 1, j, k] - 2.0 * u[i, j, k] + u[i - 1, j, k])
                        + (u[i, j + 1, k] - 2.0 * u[i, j, k] + u[i, j - 1, k])
                        + (u[i, j, k + 1] - 2.0 * u[i, j, k] + u[i, j, k - 1])
                    )
        u = v
    return np.sum(np.exp(u))


@program(numbers(6, 6))
def horizontal_diffusion(u):
    n, m = u.shape
    laplace = np.zeros((n, m))
    for i in prange(1, n - 1):
        for j in range(1, m - 1):
            laplace[i, j] = 4.0 * u[i, j] - (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1])
    out = np.zeros((n, m))
    for i in prange(1, n - 2):
        for j in range(1, m - 2):
            flux = laplace[i + 1, j] - laplace[i, j]
            if flux * (u[i + 1, j] - u[i, j]) > 0.0:
                flux = 0.0
            out[i, j] = u[i, j] - 0.3 * flux
    return np.sum(out * out)


@program(numbers(3, 6), numbers(3, 6), wrt=(0, 1))
def vertical_advection(speed, x):
    """A tridiagonal system for each column."""
    total = 0.0
    for i in prange(x.shape[0]):
        n = x.shape[1]
        c, d = np.empty(n), np.empty(n)
        c[0] = 0.1 * speed[i, 0]
        d[0] = x[i, 0]
        for k in range(1, n):
            pivot = 1.0 / (2.0 - 0.1 * speed[i, k] * c[k - 1])
            c[k] = 0.1 * speed[i, k] * pivot
            d[k] = (x[i, k] + 0.1 * speed[i, k] * d[k - 1]) * pivot
        for k in range(n - 2, -1, -1):
            d[k] -= c[k] * d[k + 1]
        for k in range(n):
            total += d[k] * d[k]
    return total


@program(numbers(7, 7), numbers(3, 3), wrt=(0, 1))
def convolution(image, kernel):
    n, k = len(image) - len(kernel) + 1, len(kernel)
    out = np.zeros((n, n))
    for i in prange(n):
        for j in range(n):
            for a in range(k):
                for b in range(k):
                    out[i, j] += image[i + a, j + b] * kernel[a, b]
    return np.sum(np.tanh(out))


# -- particles and points ----------------------------------------------------------------------------------------------


@program(2.0 * numbers(5, 3))
def lennard_jones(x):
    energy = 0.0
    for i in prange(len(x)):
        for j in range(len(x)):
            if i != j:
                r2 = (x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2 + (x[i, 2] - x[j, 2]) ** 2 + 0.5
                energy += 1.0 / r2**6 - 1.0 / r2**3
    return energy


@program(_RNG.normal(size=(4, 2)), numbers(4), 3, wrt=(0, 1))
def n_bodies(x, mass, steps):
    x = x.copy()
    v = np.zeros(x.shape)
    for _ in range(steps):
        force = np.zeros(x.shape)
        for i in prange(len(x)):
            for j in range(len(x)):
                dx, dy = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1]
                strength = mass[j] / (dx * dx + dy * dy + 0.1) ** 1.5
                force[i, 0] += strength * dx
                force[i, 1] += strength * dy
        for i in prange(len(x)):
            for d in range(2):
                v[i, d] += 0.1 * force[i, d]
                x[i, d] += 0.1 * v[i, d]
    return np.sum(x * x)


@program(numbers(6), numbers(6), numbers(6), numbers(6), wrt=(0, 1, 2, 3))
def arc_distance(a_theta, a_phi, b_theta, b_phi):
    out = np.empty(len(a_theta))
    for i in prange(len(a_theta)):
        t = np.sin((b_theta[i] - a_theta[i]) / 2) ** 2
        t += np.cos(a_theta[i]) * np.cos(b_theta[i]) * np.sin((b_phi[i] - a_phi[i]) / 2) ** 2
        out[i] = 2.0 * np.arctan2(np.sqrt(t), np.sqrt(1.0 - t))
    return np.sum(out)


@program(numbers(10), _RNG.integers(0, 4, 10), numbers(4), wrt=(0, 2))
def means_in_bins(x, places, weights):
    """Sums of an array: each thread has one of its own."""
    sums = np.zeros(len(weights))
    for i in range(len(x)):
        sums[places[i]] += x[i] * x[i]
    total = 0.0
    for k in prange(len(weights)):
        total += weights[k] * np.sqrt(sums[k] + 0.1)
    return total


@program(_RNG.normal(size=(4, 3)), 6)
def oscillators(start, steps):
    out = np.empty(len(start))
    for i in prange(len(start)):
        x, v, damping = start[i, 0], start[i, 1], start[i, 2]
        for _ in range(steps):
            v += 0.1 * (-np.sin(x) - 0.1 * damping * damping * v)
            x += 0.1 * v
        out[i] = x * x + v * v
    return np.sum(out)


@program(0.1 * numbers(6), 0.1 * numbers(6), 5, wrt=(0, 1))
def escape(re, im, steps):
    """How fast points go away from zero."""
    total = 0.0
    for i in prange(len(re)):
        x, y = 0.0, 0.0
        count = 0
        while x * x + y * y < 4.0 and count < steps:
            x, y = x * x - y * y + re[i], 2.0 * x * y + im[i]
            count += 1
        total += np.log(1.0 + x * x + y * y)
    return total


# -- what nobody can show ----------------------------------------------------------------------------------------------


@program(numbers(8), _RNG.permutation(8), numbers(3), wrt=(0, 2))
def scattered(x, places, w):
    y = np.zeros(len(x))
    for i in prange(len(x)):
        y[places[i]] = np.sin(x[i]) * w[0] + w[1]
    return np.sum(y * y * y)


@program(numbers(12), 3, 4)
def flat_rows(x, n, m):
    y = np.empty(n * m)
    for i in prange(n):
        for j in range(m):
            y[i * m + j] = np.exp(x[i * m + j]) * x[j]
    return np.sum(y * y)


@program(numbers(8), _RNG.permutation(8), 3)
def in_place(x, places, steps):
    y = x.copy()
    for _ in range(steps):
        for i in prange(len(x)):
            y[places[i]] = y[places[i]] * np.sin(y[places[i]]) + 0.5
    return np.sum(y * y)


@program(numbers(10), np.array([0, 3, 4, 8, 10]))
def normalised_groups(x, starts):
    y = np.zeros(len(x))
    for i in prange(len(starts) - 1):
        total = 0.0
        for j in range(starts[i], starts[i + 1]):
            total += x[j]
        for j in range(starts[i], starts[i + 1]):
            y[j] = x[j] / total
    return np.sum(y**3)


# -- reductions --------------------------------------------------------------------------------------------------------


@program(numbers(9))
def largest(x):
    most = -np.inf
    for i in prange(len(x)):
        most = max(most, x[i] * np.sin(3.0 * x[i]))
    return most


@program(numbers(3), numbers(9), wrt=(0, 1))
def closest(x, y):
    least, where = np.inf, 0
    for i in range(len(y)):
        distance = (x[0] - y[i]) ** 2
        if distance < least:
            least, where = distance, i
    return np.sqrt(least) * y[where] * x[1]


@program(numbers(7))
def product(x):
    p = 1.0
    for i in prange(len(x)):
        p *= np.sin(x[i]) + 1.0
    return p


@program(numbers(4, 6), numbers(6), wrt=(0, 1))
def whole_arrays(a, w):
    total = 0.0
    for i in prange(a.shape[0]):
        total += np.sum(np.tanh(a[i] * w) ** 2) + np.mean(np.exp(a[i]))
    return total
