"""Kernels with equivalent sequential programs, launches, arguments, and the arguments that have adjoints."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import complex128, cuda, float64

from srcdiff.cuda import kernel

PROGRAMS: list[Program] = []
BLOCK = 4
TILE = 2


@dataclass(frozen=True)
class Program:
    """A kernel, and a sequential function with the same arguments and effects."""

    kernel: Any
    sequential: Callable[..., None]
    launch: tuple[Any, Any]
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]

    @property
    def name(self) -> str:
        return str(self.kernel.function.__name__)

    @property
    def has_adjoint(self) -> tuple[bool, ...]:
        """Whether each argument holds floats."""
        args = self.arguments(np.random.default_rng(0))
        return tuple(isinstance(a, float) or (isinstance(a, np.ndarray) and a.dtype.kind in "fc") for a in args)


def program(sequential: Any, blocks: Any, threads: Any, arguments: Any) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        made = kernel(function)
        PROGRAMS.append(Program(made, sequential, (blocks, threads), arguments))
        return made

    return add


# -- one element a thread --------------------------------------------------------------------------------------------


def saxpy_loop(a, x, y):
    for i in range(len(x)):
        y[i] = a * x[i] + y[i]


@program(saxpy_loop, 2, 4, lambda r: (1.5, r.normal(size=7), r.normal(size=7)))
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = a * x[i] + y[i]


def planar(random, n):
    return random.normal(size=n) + 1j * random.normal(size=n)


def iterated_loop(c, w, out):
    for i in range(len(c)):
        z = 0j
        for _ in range(3):
            z = z * z + c[i] * w[0]
        out[i] = abs(z) ** 2 + z.real


@program(iterated_loop, 2, 4, lambda r: (0.3 * planar(r, 5), planar(r, 2), np.zeros(5)))
def iterated(c, w, out):
    """Complex numbers; all threads read one of them."""
    i = cuda.grid(1)
    if i < c.shape[0]:
        z = 0j
        for _ in range(3):
            z = z * z + c[i] * w[0]
        out[i] = abs(z) ** 2 + z.real


def phases_loop(c, x, out):
    for i in range(len(c)):
        turned = c[i] * cmath.exp(1j * x[i])
        out[i] = turned * turned + cmath.asin(c[0])


@program(phases_loop, 2, 4, lambda r: (planar(r, 5), r.normal(size=5), planar(r, 5)))
def phases(c, x, out):
    i = cuda.grid(1)
    t = cuda.local.array(2, complex128)
    if i < c.shape[0]:
        t[0] = cmath.exp(1j * x[i])
        t[1] = c[i] * t[0]
        out[i] = t[1] * t[1] + cmath.asin(c[0])


def strided_loop(x, y):
    for i in range(len(x)):
        y[i] = math.sin(x[i]) * x[i]


@program(strided_loop, 2, 2, lambda r: (r.normal(size=11), r.normal(size=11)))
def strided(x, y):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        y[i] = math.sin(x[i]) * x[i]


def strided_from_the_second_loop(x, y):
    for i in range(4, len(x)):
        y[i] = x[i] * x[i]


@program(strided_from_the_second_loop, 2, 2, lambda r: (r.normal(size=11), r.normal(size=11)))
def strided_from_the_second(x, y):
    """The first element of each thread is skipped."""
    first, threads = cuda.grid(1), cuda.gridsize(1)
    for iteration in range(1, len(range(first, x.shape[0], threads))):
        i = first + iteration * threads
        y[i] = x[i] * x[i]


def stencil_loop(x, y):
    for i in range(1, len(x) - 1):
        y[i] = x[i - 1] * x[i] + math.sin(x[i + 1])


@program(stencil_loop, 2, 4, lambda r: (r.normal(size=7), r.normal(size=7)))
def stencil(x, y):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i > 0 and i < x.shape[0] - 1:
        y[i] = x[i - 1] * x[i] + math.sin(x[i + 1])


def diffusion_loop(u, out, rate):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
            out[i, j] = u[i, j] + rate * around * u[i, j]


@program(diffusion_loop, (2, 2), (2, 3), lambda r: (r.normal(size=(4, 5)), r.normal(size=(4, 5)), 0.3))
def diffusion(u, out, rate):
    i, j = cuda.grid(2)
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
        out[i, j] = u[i, j] + rate * around * u[i, j]


def gathered_loop(x, index, y):
    for i in range(len(y)):
        y[i] = x[index[i]] ** 2


@program(gathered_loop, 2, 4, lambda r: (r.normal(size=5), r.integers(0, 5, 7), r.normal(size=7)))
def gathered(x, index, y):
    i = cuda.grid(1)
    if i < y.shape[0]:
        y[i] = x[index[i]] ** 2


def permuted_loop(x, index, y):
    for i in range(len(y)):
        y[index[i]] = math.exp(x[i])


@program(permuted_loop, 2, 4, lambda r: (r.normal(size=7), r.permutation(7), r.normal(size=7)))
def permuted(x, index, y):
    i = cuda.grid(1)
    if i >= y.shape[0]:
        return
    y[index[i]] = math.exp(x[i])


# -- loops, overwritten values ---------------------------------------------------------------------------------------


def product_loop(x, y, n):
    for i in range(len(y)):
        p = 1.0
        for k in range(n):
            p = p * x[i, k]
        y[i] = p


@program(product_loop, 2, 4, lambda r: (r.normal(size=(5, 3)), r.normal(size=5), 3))
def product(x, y, n):
    i = cuda.grid(1)
    if i < y.shape[0]:
        p = 1.0
        for k in range(n):
            p = p * x[i, k]
        y[i] = p


def used_after_loop_loop(x, y, n):
    for i in range(len(y)):
        a = x[i] * x[i]
        s = 0.0
        for k in range(n):
            s = s + a * k
        y[i] = s * a


@program(used_after_loop_loop, 2, 4, lambda r: (r.normal(size=5), r.normal(size=5), 3))
def used_after_loop(x, y, n):
    i = cuda.grid(1)
    if i < y.shape[0]:
        a = x[i] * x[i]
        s = 0.0
        for k in range(n):
            s = s + a * k
        y[i] = s * a


def squared_often_loop(x, y):
    for i in range(len(y)):
        v = x[i]
        while v < 100:
            v = v * v
        y[i] = v


@program(squared_often_loop, 2, 4, lambda r: (r.uniform(1.1, 3.0, 6), r.normal(size=6)))
def squared_often(x, y):
    i = cuda.grid(1)
    if i < y.shape[0]:
        v = x[i]
        while v < 100:
            v = v * v
        y[i] = v


def multiplied_loop(x, y):
    for i in range(len(y)):
        y[i] *= x[i]


@program(multiplied_loop, 2, 4, lambda r: (r.normal(size=6), r.normal(size=6)))
def multiplied(x, y):
    i = cuda.grid(1)
    if i < y.shape[0]:
        y[i] *= x[i]


def squared_loop(y):
    for i in range(len(y)):
        y[i] = y[i] * y[i]


@program(squared_loop, 2, 4, lambda r: (r.normal(size=6),))
def squared(y):
    i = cuda.grid(1)
    if i < y.shape[0]:
        y[i] = y[i] * y[i]


def recurrence_loop(u, rate, steps):
    for i in range(len(u)):
        for _ in range(steps):
            u[i] = rate * u[i] * (1.0 - u[i])


@program(recurrence_loop, 2, 4, lambda r: (r.uniform(0.1, 0.9, 6), 3.2, 5))
def recurrence(u, rate, steps):
    i = cuda.grid(1)
    if i < u.shape[0]:
        for _ in range(steps):
            u[i] = rate * u[i] * (1.0 - u[i])


def rows_loop(a, b):
    for i in range(a.shape[0]):
        row = a[i]
        for k in range(1, a.shape[1]):
            row[k] = row[k] * row[k - 1] + b[i]


@program(rows_loop, 1, 4, lambda r: (r.normal(size=(3, 4)), r.normal(size=3)))
def rows(a, b):
    i = cuda.grid(1)
    if i < a.shape[0]:
        row = a[i]
        for k in range(1, a.shape[1]):
            row[k] = row[k] * row[k - 1] + b[i]


def local_polynomial_loop(x, c, y):
    for i in range(len(x)):
        powers = np.empty(4)
        powers[0] = 1.0
        for k in range(1, 4):
            powers[k] = powers[k - 1] * x[i]
        total = 0.0
        for k in range(4):
            total += c[k] * powers[k]
        y[i] = total


@program(local_polynomial_loop, 2, 4, lambda r: (r.normal(size=6), r.normal(size=4), r.normal(size=6)))
def local_polynomial(x, c, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        powers = cuda.local.array(4, float64)
        powers[0] = 1.0
        for k in range(1, 4):
            powers[k] = powers[k - 1] * x[i]
        total = 0.0
        for k in range(4):
            total += c[k] * powers[k]
        y[i] = total


# -- shared memory ---------------------------------------------------------------------------------------------------


def block_sums_loop(x, out):
    for b in range(len(out)):
        s = 0.0
        for i in range(b * BLOCK, min((b + 1) * BLOCK, len(x))):
            s += x[i] * x[i]
        out[b] = s


@program(block_sums_loop, 2, BLOCK, lambda r: (r.normal(size=7), r.normal(size=2)))
def block_sums(x, out):
    parts = cuda.shared.array(BLOCK, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    value = 0.0
    if i < x.shape[0]:
        value = x[i] * x[i]
    parts[t] = value
    cuda.syncthreads()
    width = cuda.blockDim.x // 2
    while width > 0:
        if t < width:
            parts[t] += parts[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        out[cuda.blockIdx.x] = parts[0]


def block_products_loop(x, out):
    for b in range(len(out)):
        p = 1.0
        for i in range(b * BLOCK, min((b + 1) * BLOCK, len(x))):
            p *= x[i]
        out[b] = p


@program(block_products_loop, 2, BLOCK, lambda r: (r.normal(size=7), r.normal(size=2)))
def block_products(x, out):
    parts = cuda.shared.array(BLOCK, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    parts[t] = 1.0
    if i < x.shape[0]:
        parts[t] = x[i]
    cuda.syncthreads()
    width = cuda.blockDim.x // 2
    while width > 0:
        if t < width:
            parts[t] = parts[t] * parts[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        out[cuda.blockIdx.x] = parts[0]


def tiled_product_loop(a, b, c):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s


@program(
    tiled_product_loop,
    (2, 2),
    (TILE, TILE),
    lambda r: (r.normal(size=(3, 3)), r.normal(size=(3, 4)), r.normal(size=(3, 4))),
)
def tiled_product(a, b, c):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    i, j = cuda.grid(2)
    ti = cuda.threadIdx.x
    tj = cuda.threadIdx.y
    total = 0.0
    for m in range((a.shape[1] + TILE - 1) // TILE):
        left[ti, tj] = 0.0
        right[ti, tj] = 0.0
        if i < a.shape[0] and tj + m * TILE < a.shape[1]:
            left[ti, tj] = a[i, tj + m * TILE]
        if j < b.shape[1] and ti + m * TILE < b.shape[0]:
            right[ti, tj] = b[ti + m * TILE, j]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[ti, k] * right[k, tj]
        cuda.syncthreads()
    if i < c.shape[0] and j < c.shape[1]:
        c[i, j] = total


def heat_loop(u, steps):
    for _ in range(steps):
        before = u.copy()
        for i in range(1, len(u) - 1):
            u[i] = before[i - 1] * before[i + 1] + 0.5 * before[i] * before[i]


@program(heat_loop, 1, 8, lambda r: (r.normal(size=8), 3))
def heat(u, steps):
    state = cuda.shared.array(8, float64)
    t = cuda.threadIdx.x
    state[t] = u[t]
    cuda.syncthreads()
    for _ in range(steps):
        v = state[t]
        if t > 0 and t < 7:
            v = state[t - 1] * state[t + 1] + 0.5 * state[t] * state[t]
        cuda.syncthreads()
        state[t] = v
        cuda.syncthreads()
    u[t] = state[t]


def heat_in_place_loop(u, steps):
    for _ in range(steps):
        before = u.copy()
        for i in range(1, len(u) - 1):
            u[i] = before[i - 1] * before[i + 1]


@program(heat_in_place_loop, 1, 6, lambda r: (r.normal(size=6), 3))
def heat_in_place(u, steps):
    """Threads read elements that other threads write, in global memory."""
    t = cuda.threadIdx.x
    for _ in range(steps):
        v = u[t]
        if t > 0 and t < u.shape[0] - 1:
            v = u[t - 1] * u[t + 1]
        cuda.syncthreads()
        u[t] = v
        cuda.syncthreads()


def exchange_loop(x, rate, steps):
    for _ in range(steps):
        before = x.copy()
        for i in range(4):
            x[i] = math.sin(before[3 - i] * rate)


@program(exchange_loop, 1, 4, lambda r: (r.normal(size=4), 1.3, 4))
def exchange(x, rate, steps):
    """Values that are read before a barrier are used after it, where their places have been overwritten."""
    state = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    state[t] = x[t]
    cuda.syncthreads()
    for _ in range(steps):
        v = state[3 - t] * rate
        cuda.syncthreads()
        state[t] = math.sin(v)
        cuda.syncthreads()
    x[t] = state[t]


# -- atomic adds -----------------------------------------------------------------------------------------------------


def histogram_loop(x, bins, h):
    for i in range(len(x)):
        h[bins[i]] += x[i] * x[i]


@program(histogram_loop, 2, 4, lambda r: (r.normal(size=7), r.integers(0, 3, 7), r.normal(size=3)))
def histogram(x, bins, h):
    i = cuda.grid(1)
    if i < x.shape[0]:
        cuda.atomic.add(h, bins[i], x[i] * x[i])


def shared_histogram_loop(x, bins, h):
    for b in range(2):
        counts = np.zeros(3)
        for i in range(b * 4, min(b * 4 + 4, len(x))):
            counts[bins[i]] += x[i] * x[i]
        for k in range(3):
            h[k] += counts[k] * counts[k]


@program(shared_histogram_loop, 2, 4, lambda r: (r.normal(size=7), r.integers(0, 3, 7), r.normal(size=3)))
def shared_histogram(x, bins, h):
    counts = cuda.shared.array(3, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if t < 3:
        counts[t] = 0.0
    cuda.syncthreads()
    if i < x.shape[0]:
        cuda.atomic.add(counts, bins[i], x[i] * x[i])
    cuda.syncthreads()
    if t < 3:
        cuda.atomic.add(h, t, counts[t] * counts[t])


def total_loop(x, a, total):
    for i in range(len(x)):
        total[0] -= math.log(1.0 + a * x[i] * x[i])


@program(total_loop, 2, 4, lambda r: (r.normal(size=7), 0.7, r.normal(size=1)))
def total(x, a, total):
    i = cuda.grid(1)
    if i < x.shape[0]:
        cuda.atomic.sub(total, 0, math.log(1.0 + a * x[i] * x[i]))


# -- whole programs --------------------------------------------------------------------------------------------------


def force(xi, yi, xj, yj, softening):
    dx, dy = xj - xi, yj - yi
    r2 = dx * dx + dy * dy + softening
    w = 1.0 / (r2 * math.sqrt(r2))
    return dx * w, dy * w


device_force = cuda.jit(device=True)(force)


def bodies_loop(x, m, a, softening):
    for i in range(x.shape[0]):
        ax, ay = 0.0, 0.0
        for j in range(x.shape[0]):
            if i != j:
                fx, fy = force(x[i, 0], x[i, 1], x[j, 0], x[j, 1], softening)
                ax += m[j] * fx
                ay += m[j] * fy
        a[i, 0] = ax
        a[i, 1] = ay


@program(bodies_loop, 2, 4, lambda r: (r.normal(size=(5, 2)), r.uniform(1, 2, 5), r.normal(size=(5, 2)), 0.1))
def bodies(x, m, a, softening):
    i = cuda.grid(1)
    if i < x.shape[0]:
        ax, ay = 0.0, 0.0
        for j in range(x.shape[0]):
            if i != j:
                fx, fy = device_force(x[i, 0], x[i, 1], x[j, 0], x[j, 1], softening)
                ax += m[j] * fx
                ay += m[j] * fy
        a[i, 0] = ax
        a[i, 1] = ay


def ragged_loop(x, tolerance, y):
    for i in range(len(x)):
        v = 1.0
        for _ in range(i):
            v = v + 0.1 * x[i]
        while abs(v * v - x[i]) > tolerance:
            v = 0.5 * (v + x[i] / v)
        y[i] = v


@program(ragged_loop, 2, 4, lambda r: (r.uniform(0.5, 9.0, 6), 0.01, r.normal(size=6)))
def ragged(x, tolerance, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        v = 1.0
        for _ in range(i):
            v = v + 0.1 * x[i]
        while abs(v * v - x[i]) > tolerance:
            v = 0.5 * (v + x[i] / v)
        y[i] = v


def slope(x, y, rate):
    return y * (1.0 - x) * rate, -x * y


device_slope = cuda.jit(device=True)(slope)


def solver_loop(state, rates, dt, steps):
    for i in range(state.shape[0]):
        x, y = state[i, 0], state[i, 1]
        for _ in range(steps):
            ax, ay = slope(x, y, rates[i])
            bx, by = slope(x + 0.5 * dt * ax, y + 0.5 * dt * ay, rates[i])
            x += dt * bx
            y += dt * by
        state[i, 0] = x
        state[i, 1] = y


@program(solver_loop, 2, 2, lambda r: (r.uniform(0.5, 1.5, (4, 2)), r.uniform(0.5, 1.5, 4), 0.05, 6))
def solver(state, rates, dt, steps):
    i = cuda.grid(1)
    if i < state.shape[0]:
        x, y = state[i, 0], state[i, 1]
        for _ in range(steps):
            ax, ay = device_slope(x, y, rates[i])
            bx, by = device_slope(x + 0.5 * dt * ax, y + 0.5 * dt * ay, rates[i])
            x += dt * bx
            y += dt * by
        state[i, 0] = x
        state[i, 1] = y


def pricing_loop(draws, s0, sigma, rate, strike, dt, payoff):
    for i in range(draws.shape[0]):
        s = s0
        mean = 0.0
        for k in range(draws.shape[1]):
            s = s * math.exp((rate - 0.5 * sigma * sigma) * dt + sigma * math.sqrt(dt) * draws[i, k])
            mean += s
        value = mean / draws.shape[1] - strike
        if value > 0.0:
            payoff[0] += value * math.exp(-rate * dt * draws.shape[1])


@program(pricing_loop, 2, 4, lambda r: (r.normal(size=(7, 4)), 1.0, 0.3, 0.05, 0.95, 0.25, r.normal(size=1)))
def pricing(draws, s0, sigma, rate, strike, dt, payoff):
    i = cuda.grid(1)
    if i < draws.shape[0]:
        s = s0
        mean = 0.0
        for k in range(draws.shape[1]):
            s = s * math.exp((rate - 0.5 * sigma * sigma) * dt + sigma * math.sqrt(dt) * draws[i, k])
            mean += s
        value = mean / draws.shape[1] - strike
        if value > 0.0:
            cuda.atomic.add(payoff, 0, value * math.exp(-rate * dt * draws.shape[1]))
