"""The programs for Warp: kernels over arrays, launched one after the other under a `wp.Tape`.

A kernel's adjoint does not restore values that the kernel overwrites, in arrays or in loop-carried variables. So a
product in a loop has a wrong gradient, and so has a sum in a loop that the same kernel passes to another function.
Therefore every state has its own place in an array, loops carry only sums, and the next kernel uses each sum. Loops of
unknown length are a sufficient number of launches, with the superfluous ones masked out. Each kernel is a module of its
own, so that a first call compiles no more than it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from benchmarks.programs import Program
from benchmarks.systems import RefusedError

wp.config.quiet = True
wp.init()

F = wp.float64
Vector = wp.array(dtype=wp.float64)
Matrix = wp.array2d(dtype=wp.float64)
Cube = wp.array3d(dtype=wp.float64)
Integers = wp.array(dtype=wp.int64)


def version() -> str:
    return f"warp {wp.config.version}"


def zeros(*shape: int) -> Any:
    return wp.zeros(shape, dtype=wp.float64, requires_grad=True, device="cpu")


def launch(kernel: Any, size: int | tuple[int, ...], *arguments: Any) -> None:
    wp.launch(kernel, dim=size, inputs=list(arguments), device="cpu")


@wp.kernel(module="unique")
def add_squares(x: Vector, out: Vector):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i] * x[i])


# -- one kernel


@wp.kernel(module="unique")
def tiny_kernel(x: Vector, out: Vector):
    i = wp.tid()
    a = x[i + 1] - x[i] * x[i]
    b = wp.float64(1.0) - x[i]
    wp.atomic_add(out, 0, wp.float64(100.0) * a * a + b * b)


def tiny(out, x):
    launch(tiny_kernel, x.shape[0] - 1, x, out)


@wp.kernel(module="unique")
def pairs(p: Matrix, out: Vector):
    i, j = wp.tid()
    if i < j:
        dx = p[0, i] - p[0, j]
        dy = p[1, i] - p[1, j]
        dz = p[2, i] - p[2, j]
        s = wp.float64(1.0) / (dx * dx + dy * dy + dz * dz)
        s6 = s * s * s
        wp.atomic_add(out, 0, wp.float64(4.0) * (s6 * s6 - s6))


def lennard_jones(out, p):
    launch(pairs, (p.shape[1], p.shape[1]), p, out)


@wp.func
def normal_cdf(x: wp.float64):
    t = wp.float64(1.0) / (wp.float64(1.0) + wp.float64(0.2316419) * wp.abs(x))
    series = wp.float64(-1.821255978) + t * wp.float64(1.330274429)
    series = wp.float64(1.781477937) + t * series
    series = wp.float64(-0.356563782) + t * series
    series = t * (wp.float64(0.319381530) + t * series)
    tail = wp.float64(0.3989422804014327) * wp.exp(wp.float64(-0.5) * x * x) * series
    return wp.where(x > wp.float64(0.0), wp.float64(1.0) - tail, tail)


@wp.kernel(module="unique")
def options(spot: Vector, volatility: Vector, rate: Vector, strike: Vector, time: Vector, out: Vector):
    i = wp.tid()
    spread = volatility[i] * wp.sqrt(time[i])
    drift = (rate[0] + wp.float64(0.5) * volatility[i] * volatility[i]) * time[i]
    d1 = (wp.log(spot[i] / strike[i]) + drift) / spread
    d2 = d1 - spread
    call = spot[i] * normal_cdf(d1) - strike[i] * wp.exp(-rate[0] * time[i]) * normal_cdf(d2)
    wp.atomic_add(out, 0, call / wp.float64(spot.shape[0]))


def black_scholes(out, spot, volatility, rate, strike, time):
    launch(options, spot.shape[0], spot, volatility, rate, strike, time, out)


@wp.kernel(module="unique")
def observations(
    cameras: Matrix, points: Matrix, weights: Vector, by: Integers, point: Integers, features: Matrix, out: Vector
):
    k = wp.tid()
    c = by[k]
    q = point[k]
    r = wp.vec3d(cameras[c, 0], cameras[c, 1], cameras[c, 2])
    moved = wp.vec3d(points[q, 0] - cameras[c, 3], points[q, 1] - cameras[c, 4], points[q, 2] + cameras[c, 5])
    theta = wp.length(r)
    axis = r / theta
    cos = wp.cos(theta)
    sin = wp.sin(theta)
    turned = moved * cos + wp.cross(axis, moved) * sin + axis * (wp.dot(axis, moved) * (wp.float64(1.0) - cos))
    px = turned[0] / turned[2]
    py = turned[1] / turned[2]
    r2 = px * px + py * py
    distortion = wp.float64(1.0) + cameras[c, 9] * r2 + cameras[c, 10] * r2 * r2
    ex = weights[k] * (cameras[c, 6] * px * distortion + cameras[c, 7] - features[k, 0])
    ey = weights[k] * (cameras[c, 6] * py * distortion + cameras[c, 8] - features[k, 1])
    missing = wp.float64(1.0) - weights[k] * weights[k]
    wp.atomic_add(out, 0, ex * ex + ey * ey + missing * missing)


def bundle_adjustment(out, cameras, points, weights, seen_by, seen_point, features):
    launch(observations, weights.shape[0], cameras, points, weights, seen_by, seen_point, features, out)


@wp.kernel(module="unique")
def path(
    spot: Vector,
    rate: Vector,
    volatility: Vector,
    barrier: wp.float64,
    maturity: wp.float64,
    noise: Matrix,
    growth: Vector,
    alive: Integers,
):
    p = wp.tid()
    step = maturity / wp.float64(noise.shape[1])
    drift = (rate[0] - wp.float64(0.5) * volatility[0] * volatility[0]) * step
    spread = volatility[0] * wp.sqrt(step)
    total = wp.float64(0.0)  # a sum of logarithms instead of a product
    for t in range(noise.shape[1]):
        total += drift + spread * noise[p, t]
        if spot[0] * wp.exp(total) < barrier:
            alive[p] = wp.int64(0)
    growth[p] = total


@wp.kernel(module="unique")
def payoff(
    spot: Vector,
    rate: Vector,
    strike: wp.float64,
    maturity: wp.float64,
    growth: Vector,
    alive: Integers,
    out: Vector,
):
    p = wp.tid()
    price = spot[0] * wp.exp(growth[p])
    if alive[p] == wp.int64(1) and price > strike:
        wp.atomic_add(out, 0, wp.exp(-rate[0] * maturity) * (price - strike) / wp.float64(growth.shape[0]))


def barrier(out, spot, rate, volatility, strike, barrier, maturity, noise):
    growth = zeros(noise.shape[0])
    alive = wp.ones(noise.shape[0], dtype=wp.int64, device="cpu")
    launch(path, noise.shape[0], spot, rate, volatility, barrier, maturity, noise, growth, alive)
    launch(payoff, noise.shape[0], spot, rate, strike, maturity, growth, alive, out)


# -- layers


@wp.kernel(module="unique")
def products(x: Matrix, w: Vector, out: Vector):
    i = wp.tid()
    z = wp.float64(0.0)
    for j in range(x.shape[1]):
        z += x[i, j] * w[j]
    out[i] = z


@wp.kernel(module="unique")
def losses(product: Vector, b: Vector, y: Vector, out: Vector):
    i = wp.tid()
    z = product[i] + b[0]
    loss = wp.log(wp.float64(1.0) + wp.exp(-wp.abs(z))) + wp.max(z, wp.float64(0.0)) - y[i] * z
    wp.atomic_add(out, 0, loss / wp.float64(y.shape[0]))


@wp.kernel(module="unique")
def ridge_penalty(w: Vector, ridge: wp.float64, out: Vector):
    j = wp.tid()
    wp.atomic_add(out, 0, wp.float64(0.5) * ridge * w[j] * w[j])


def logistic_regression(out, w, b, x, y, ridge):
    product = zeros(x.shape[0])
    launch(products, x.shape[0], x, w, product)
    launch(losses, x.shape[0], product, b, y, out)
    launch(ridge_penalty, w.shape[0], w, ridge, out)


@wp.kernel(module="unique")
def matrix_products(x: Matrix, w: Matrix, out: Matrix):
    i, j = wp.tid()
    z = wp.float64(0.0)
    for k in range(x.shape[1]):
        z += x[i, k] * w[k, j]
    out[i, j] = z


@wp.kernel(module="unique")
def hyperbolic(product: Matrix, b: Vector, out: Matrix):
    i, j = wp.tid()
    out[i, j] = wp.tanh(product[i, j] + b[j])


@wp.kernel(module="unique")
def rectified(product: Matrix, b: Vector, out: Matrix):
    i, j = wp.tid()
    out[i, j] = wp.max(product[i, j] + b[j], wp.float64(0.0))


@wp.kernel(module="unique")
def squared_error(product: Vector, b: Vector, y: Vector, out: Vector):
    i = wp.tid()
    error = product[i] + b[0] - y[i]
    wp.atomic_add(out, 0, error * error / wp.float64(y.shape[0]))


def mlp(out, w1, b1, w2, b2, w3, b3, x, y):
    n = x.shape[0]
    z = x
    for w, b, activation in ((w1, b1, hyperbolic), (w2, b2, rectified)):
        product, new = zeros(n, w.shape[1]), zeros(n, w.shape[1])
        launch(matrix_products, product.shape, z, w, product)
        launch(activation, product.shape, product, b, new)
        z = new
    product = zeros(n)
    launch(products, n, z, w3, product)
    launch(squared_error, n, product, b3, y, out)


COMPONENTS = 5  # known to the kernel, which is then written out without a loop


@wp.kernel(module="unique")
def scores_of_components(weights: Vector, means: Matrix, factors: Cube, x: Matrix, scores: Matrix):
    k, i = wp.tid()
    moved = wp.vec3d(x[i, 0] - means[k, 0], x[i, 1] - means[k, 1], x[i, 2] - means[k, 2])
    factor = wp.mat33d(
        factors[k, 0, 0], factors[k, 0, 1], factors[k, 0, 2],
        factors[k, 1, 0], factors[k, 1, 1], factors[k, 1, 2],
        factors[k, 2, 0], factors[k, 2, 1], factors[k, 2, 2],
    )  # fmt: skip
    centred = wp.transpose(factor) * moved
    log_determinant = wp.log(wp.abs(factors[k, 0, 0] * factors[k, 1, 1] * factors[k, 2, 2]))
    scores[k, i] = weights[k] + log_determinant - wp.float64(0.5) * wp.dot(centred, centred)


@wp.kernel(module="unique")
def add_log_sums(scores: Matrix, weights: Vector, constant: wp.float64, out: Vector):
    i = wp.tid()
    largest = scores[0, i]
    for k in range(COMPONENTS):
        largest = wp.max(largest, scores[k, i])
    mass = wp.float64(0.0)
    for k in range(COMPONENTS):
        mass += wp.exp(scores[k, i] - largest)
    normaliser = wp.float64(0.0)
    for k in range(COMPONENTS):
        normaliser += wp.exp(weights[k])
    wp.atomic_add(out, 0, largest + wp.log(mass) - wp.log(normaliser) - constant)


def gaussian_mixture(out, weights, means, factors, x):
    n, d = x.shape
    scores = zeros(COMPONENTS, n)
    launch(scores_of_components, (COMPONENTS, n), weights, means, factors, x, scores)
    launch(add_log_sums, n, scores, weights, 0.5 * d * np.log(2.0 * np.pi), out)


@wp.kernel(module="unique")
def products_of_rows(factor: Matrix, j: int, sums: Vector):
    i = j + wp.tid()
    total = wp.float64(0.0)
    for k in range(j):
        total += factor[i, k] * factor[j, k]
    sums[i] = total


@wp.kernel(module="unique")
def on_the_diagonal(a: Matrix, j: int, sums: Vector, factor: Matrix, out: Vector):
    root = wp.sqrt(a[j, j] - sums[j])
    factor[j, j] = root
    wp.atomic_add(out, 0, wp.float64(2.0) * wp.log(root))


@wp.kernel(module="unique")
def below_the_diagonal(a: Matrix, j: int, sums: Vector, factor: Matrix):
    i = j + 1 + wp.tid()
    factor[i, j] = (a[i, j] - sums[i]) / factor[j, j]


def cholesky(out, a0):
    n = a0.shape[0]
    factor = zeros(n, n)
    for j in range(n):
        sums = zeros(n)
        launch(products_of_rows, n - j, factor, j, sums)
        launch(on_the_diagonal, 1, a0, j, sums, factor, out)
        launch(below_the_diagonal, n - j - 1, a0, j, sums, factor)


# -- time steps


@wp.kernel(module="unique")
def newton_step(a: Vector, r: Vector, i: int, x: Vector, out: Vector):
    c = x[i] + a[i]
    y = wp.float64(0.5) * c
    for _ in range(8):  # written out, because the number is known
        residual = y * y * y + y - c
        moved = y - residual / (wp.float64(3.0) * y * y + wp.float64(1.0))
        y = wp.where(wp.abs(residual) > wp.float64(1e-9), moved, y)
    one = r[0] * y * (wp.float64(1.0) - y)
    other = r[0] * y + wp.float64(0.1) * y * y
    new = wp.where(y > wp.float64(0.5), one, other)
    x[i + 1] = new
    wp.atomic_add(out, 0, new * new)


def recurrence(out, a, r):
    n = a.shape[0]
    start = np.zeros(n + 1)
    start[0] = 0.3
    x = wp.array(start, dtype=wp.float64, requires_grad=True, device="cpu")
    for i in range(n):
        launch(newton_step, 1, a, r, i, x, out)


@wp.func
def slope(rates: Vector, state: wp.vec2d):
    met = state[0] * state[1]
    return wp.vec2d(rates[0] * state[0] - rates[1] * met, rates[2] * met - rates[3] * state[1])


@wp.kernel(module="unique")
def iteration(rates: Vector, duration: wp.float64, tolerance: wp.float64, k: int, states: Matrix):
    state = wp.vec2d(states[k, 0], states[k, 1])
    time = states[k, 2]
    effort = states[k, 4]
    going = time < duration
    step = wp.where(time + states[k, 3] > duration, duration - time, states[k, 3])
    k1 = slope(rates, state)
    k2 = slope(rates, state + k1 * (wp.float64(0.5) * step))
    k3 = slope(rates, state + k2 * (wp.float64(0.75) * step))
    new = state + (k1 * wp.float64(2.0) + k2 * wp.float64(3.0) + k3 * wp.float64(4.0)) * (step / wp.float64(9.0))
    k4 = slope(rates, new)
    difference = k2 / wp.float64(12.0) + k3 / wp.float64(9.0) - k4 / wp.float64(8.0)
    difference = (difference - k1 * (wp.float64(5.0) / wp.float64(72.0))) * step
    squared = wp.where(going, wp.dot(difference, difference), wp.float64(1.0))
    error = wp.sqrt(squared) + wp.float64(1e-14)
    factor = wp.float64(0.9) * wp.pow(tolerance / error, wp.float64(1.0) / wp.float64(3.0))
    factor = wp.min(wp.float64(5.0), wp.max(wp.float64(0.2), factor))
    accepted = going and error <= tolerance
    states[k + 1, 0] = wp.where(accepted, new[0], state[0])
    states[k + 1, 1] = wp.where(accepted, new[1], state[1])
    states[k + 1, 2] = wp.where(accepted, time + step, time)
    states[k + 1, 3] = wp.where(going, step * factor, states[k, 3])
    states[k + 1, 4] = wp.where(accepted, effort + step * new[0] * new[1], effort)


@wp.kernel(module="unique")
def begin(start: Vector, states: Matrix):
    states[0, 0] = start[0]
    states[0, 1] = start[1]
    states[0, 3] = wp.float64(0.01)


@wp.kernel(module="unique")
def finish(states: Matrix, last: int, duration: wp.float64, out: Vector):
    wp.atomic_add(out, 0, states[last, 4] / duration + states[last, 0] * states[last, 1])


def adaptive_ode(out, rates, start, duration, tolerance):
    iterations = int(42 * duration)  # enough for this accuracy
    states = zeros(iterations + 1, 5)
    launch(begin, 1, start, states)
    for k in range(iterations):
        launch(iteration, 1, rates, duration, tolerance, k, states)
    launch(finish, 1, states, iterations, duration, out)


@wp.func
def matrix_of(m: Matrix):
    return wp.mat44d(
        m[0, 0], m[0, 1], m[0, 2], m[0, 3],
        m[1, 0], m[1, 1], m[1, 2], m[1, 3],
        m[2, 0], m[2, 1], m[2, 2], m[2, 3],
        m[3, 0], m[3, 1], m[3, 2], m[3, 3],
    )  # fmt: skip


@wp.kernel(module="unique")
def filter_step(
    motion: Matrix,
    motion_noise: Matrix,
    measure: Vector,
    measure_noise: Vector,
    measured: Vector,
    t: int,
    states: wp.array(dtype=wp.vec4d),
    covariances: wp.array(dtype=wp.mat44d),
    out: Vector,
):
    f = matrix_of(motion)
    h = wp.vec4d(measure[0], measure[1], measure[2], measure[3])
    state = f * states[t]
    covariance = f * covariances[t] * wp.transpose(f) + matrix_of(motion_noise)
    seen = covariance * h
    spread = wp.dot(h, seen) + measure_noise[0]
    surprise = measured[t] - wp.dot(h, state)
    states[t + 1] = state + seen * (surprise / spread)
    covariances[t + 1] = covariance - wp.outer(seen, seen) / spread
    term = wp.log(wp.float64(6.283185307179586) * spread) + surprise * surprise / spread
    wp.atomic_add(out, 0, wp.float64(0.5) * term)


def kalman(out, motion, motion_noise, measure, measure_noise, measured):
    n = measured.shape[0]
    covariances = np.zeros((n + 1, 4, 4))
    covariances[0] = np.eye(4)
    states = wp.zeros(n + 1, dtype=wp.vec4d, requires_grad=True, device="cpu")
    kept = wp.array(covariances, dtype=wp.mat44d, requires_grad=True, device="cpu")
    for t in range(n):
        launch(filter_step, 1, motion, motion_noise, measure, measure_noise, measured, t, states, kept, out)


@wp.kernel(module="unique")
def burgers_step(states: Matrix, t: int, c: wp.float64, d: wp.float64):
    i = wp.tid()
    n = states.shape[1]
    if i == 0 or i == n - 1:
        states[t + 1, i] = states[t, i]
    else:
        left = states[t, i - 1]
        middle = states[t, i]
        right = states[t, i + 1]
        states[t + 1, i] = middle - c * middle * (right - left) + d * (right - wp.float64(2.0) * middle + left)


@wp.kernel(module="unique")
def first_row(u: Vector, states: Matrix):
    i = wp.tid()
    states[0, i] = u[i]


@wp.kernel(module="unique")
def squares_of_row(states: Matrix, t: int, out: Vector):
    i = wp.tid()
    wp.atomic_add(out, 0, states[t, i] * states[t, i])


def burgers(out, u0, steps, c, d):
    states = zeros(steps + 1, u0.shape[0])
    launch(first_row, u0.shape[0], u0, states)
    for t in range(steps):
        launch(burgers_step, u0.shape[0], states, t, c, d)
    launch(squares_of_row, u0.shape[0], states, steps, out)


@wp.kernel(module="unique")
def first_grid(u: Matrix, states: Cube):
    i, j = wp.tid()
    states[0, i, j] = u[i, j]


@wp.kernel(module="unique")
def jacobi_sweep(states: Cube, source: Matrix, t: int):
    i, j = wp.tid()
    if i == 0 or j == 0 or i == source.shape[0] - 1 or j == source.shape[1] - 1:
        states[t + 1, i, j] = states[t, i, j]
    else:
        around = states[t, i - 1, j] + states[t, i + 1, j] + states[t, i, j - 1] + states[t, i, j + 1]
        states[t + 1, i, j] = wp.float64(0.25) * (around + source[i, j])


@wp.kernel(module="unique")
def squares_of_grid(states: Cube, t: int, out: Vector):
    i, j = wp.tid()
    wp.atomic_add(out, 0, states[t, i, j] * states[t, i, j])


def jacobi(out, u0, source, sweeps):
    states = zeros(sweeps + 1, *u0.shape)
    launch(first_grid, u0.shape, u0, states)
    for t in range(sweeps):
        launch(jacobi_sweep, u0.shape, states, source, t)
    launch(squares_of_grid, u0.shape, states, sweeps, out)


@wp.kernel(module="unique")
def gauss_seidel_diagonal(states: Cube, source: Matrix, reaction: Vector, t: int, total: int, first: int):
    i = first + wp.tid()
    j = total - i
    around = states[t + 1, i - 1, j] + states[t, i + 1, j] + states[t + 1, i, j - 1] + states[t, i, j + 1]
    own = states[t, i, j]
    states[t + 1, i, j] = wp.float64(0.25) * (around + source[i, j] - reaction[0] * own * own * own)


def gauss_seidel(out, source, reaction, sweeps):
    n = source.shape[0]
    states = zeros(sweeps + 1, n, n)
    for t in range(sweeps):
        for total in range(2, 2 * n - 3):  # the points of a diagonal do not depend on each other
            first, last = max(1, total - n + 2), min(n - 2, total - 1)
            launch(gauss_seidel_diagonal, last - first + 1, states, source, reaction, t, total, first)
    launch(squares_of_grid, (n, n), states, sweeps, out)


@wp.kernel(module="unique")
def sparse_rows(data: Vector, x: Vector, starts: Integers, columns: Integers, y: Vector):
    i = wp.tid()
    total = wp.float64(0.0)
    for k in range(int(starts[i]), int(starts[i + 1])):
        total += data[k] * x[columns[k]]
    y[i] = total


def sparse_product(out, data, x0, starts, columns, power):
    x = x0
    for _ in range(power):
        y = zeros(x0.shape[0])
        launch(sparse_rows, x0.shape[0], data, x, starts, columns, y)
        x = y
    launch(add_squares, x0.shape[0], x, out)


@wp.func
def sigmoid(x: wp.float64):
    return wp.float64(1.0) / (wp.float64(1.0) + wp.exp(-x))


@wp.kernel(module="unique")
def lstm_step(main: Matrix, sequence: Matrix, t: int, hidden: Matrix, cell: Matrix):
    k = wp.tid()
    x = sequence[t, k]
    h = hidden[t, k]
    forget = sigmoid(x * main[0, k] + main[4, k])
    into = sigmoid(h * main[1, k] + main[5, k])
    outof = sigmoid(x * main[2, k] + main[6, k])
    change = wp.tanh(h * main[3, k] + main[7, k])
    new = cell[t, k] * forget + into * change
    cell[t + 1, k] = new
    hidden[t + 1, k] = outof * wp.tanh(new)


@wp.kernel(module="unique")
def lstm_sums(hidden: Matrix, out_scale: Vector, out_bias: Vector, sequence: Matrix, mass: Vector, out: Vector):
    t, k = wp.tid()
    guess = hidden[t + 1, k] * out_scale[k] + out_bias[k]
    wp.atomic_add(mass, t, wp.exp(guess))
    wp.atomic_add(out, 0, -guess * sequence[t + 1, k] / wp.float64(sequence.shape[0]))


@wp.kernel(module="unique")
def lstm_logarithms(mass: Vector, out: Vector):
    t = wp.tid()
    wp.atomic_add(out, 0, wp.log(mass[t]) / wp.float64(mass.shape[0] + 1))


def lstm(out, main, out_scale, out_bias, sequence):
    steps, width = sequence.shape
    hidden, cell = zeros(steps, width), zeros(steps, width)
    for t in range(steps - 1):
        launch(lstm_step, width, main, sequence, t, hidden, cell)
    mass = zeros(steps - 1)
    launch(lstm_sums, (steps - 1, width), hidden, out_scale, out_bias, sequence, mass, out)
    launch(lstm_logarithms, steps - 1, mass, out)


@wp.kernel(module="unique")
def arrive(initial: Vector, transition: Matrix, alpha: Matrix, t: int, mass: Matrix):
    s = wp.tid()
    if t == 0:
        mass[t, s] = initial[s]
    else:
        total = wp.float64(0.0)
        for r in range(alpha.shape[1]):
            total += alpha[t - 1, r] * transition[r, s]
        mass[t, s] = total


@wp.kernel(module="unique")
def observe(emission: Matrix, observed: Integers, mass: Matrix, t: int, likely: Matrix, scale: Vector):
    s = wp.tid()
    likely[t, s] = mass[t, s] * emission[s, observed[t]]
    wp.atomic_add(scale, t, likely[t, s])


@wp.kernel(module="unique")
def rescale(likely: Matrix, scale: Vector, t: int, alpha: Matrix):
    s = wp.tid()
    alpha[t, s] = likely[t, s] / scale[t]


@wp.kernel(module="unique")
def add_logarithms(scale: Vector, out: Vector):
    t = wp.tid()
    wp.atomic_add(out, 0, wp.log(scale[t]))


def hidden_markov(out, initial, transition, emission, observed):
    n, states = observed.shape[0], initial.shape[0]
    alpha, mass, likely, scale = zeros(n, states), zeros(n, states), zeros(n, states), zeros(n)
    for t in range(n):
        launch(arrive, states, initial, transition, alpha, t, mass)
        launch(observe, states, emission, observed, mass, t, likely, scale)
        launch(rescale, states, likely, scale, t, alpha)
    launch(add_logarithms, n, scale, out)


def prepare(program: Program, arguments: tuple[Any, ...], variant: str) -> Callable[[], Any]:
    function = globals().get(program.name)
    if function is None:
        raise RefusedError("not written for Warp")
    given = []
    for k, a in enumerate(arguments):
        chosen = k in program.positions
        if isinstance(a, np.ndarray) or chosen:
            array = np.atleast_1d(np.asarray(a))
            given.append(wp.array(array, dtype=wp.dtype_from_numpy(array.dtype), requires_grad=chosen, device="cpu"))
        else:
            given.append(a)
    chosen_arrays = [given[k] for k in program.positions]
    numbers = [not isinstance(arguments[k], np.ndarray) for k in program.positions]

    def call() -> tuple[Any, list[Any]]:
        for array in chosen_arrays:
            array.grad.zero_()
        out = zeros(1)
        with wp.Tape() as tape:
            function(out, *given)
        tape.backward(loss=out)
        gradients = [array.grad.numpy().copy() for array in chosen_arrays]
        return out, [g[0] if alone else g for g, alone in zip(gradients, numbers, strict=True)]

    return call


def to_numpy(result: Any) -> tuple[float, list[np.ndarray]]:
    value, gradients = result
    return float(value.numpy()[0]), [np.asarray(g) for g in gradients]
