"""The programs for TensorFlow: GradientTape around operations on whole tensors, eagerly and in `tf.function`.

The same functions are run both ways. Inside `tf.function`, AutoGraph turns their loops and branches on tensors into
`tf.while_loop` and `tf.cond`; loops of known length run over `iterations(n)`, which are numbers or, there, a tensor.
Gauss-Seidel goes along diagonals, whose points do not depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.programs import Program
from benchmarks.systems import RefusedError

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)

FLOAT = tf.float64


def version() -> str:
    return f"tensorflow {tf.__version__}"


def iterations(*limits):
    return tf.range(*limits) if tf.inside_function() else range(*limits)


def number(x):
    return tf.constant(x, FLOAT)


def tiny(x):
    return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def recurrence(a, r):
    x, total = number(0.3), number(0.0)
    for i in iterations(a.shape[0]):
        c = x + a[i]
        y = 0.5 * c
        residual = y * y * y + y - c
        while tf.abs(residual) > 1e-9:
            y = y - residual / (3.0 * y * y + 1.0)
            residual = y * y * y + y - c
        if y > 0.5:
            x = r * y * (1.0 - y)
        else:
            x = r * y + 0.1 * y * y
        total = total + x * x
    return total


def adaptive_ode(rates, start, duration, tolerance):
    grows, eaten, feeds, dies = tf.unstack(rates)

    def slope(state):
        p, h = state[0], state[1]
        met = p * h
        return tf.stack((grows * p - eaten * met, feeds * met - dies * h))

    state = start
    time, step, effort = number(0.0), number(0.01), number(0.0)
    while time < duration:
        if time + step > duration:
            step = duration - time
        k1 = slope(state)
        k2 = slope(state + 0.5 * step * k1)
        k3 = slope(state + 0.75 * step * k2)
        new = state + step * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
        k4 = slope(new)
        difference = step * (-5.0 * k1 / 72.0 + k2 / 12.0 + k3 / 9.0 - k4 / 8.0)
        error = tf.sqrt(tf.reduce_sum(difference * difference)) + 1e-14
        if error <= tolerance:
            time = time + step
            state = new
            effort = effort + step * state[0] * state[1]
        factor = 0.9 * (tolerance / error) ** (1.0 / 3.0)
        step = step * tf.clip_by_value(factor, 0.2, 5.0)
    return effort / duration + state[0] * state[1]


def burgers(u0, steps, c, d):
    u = u0
    for _ in iterations(steps):
        left, middle, right = u[:-2], u[1:-1], u[2:]
        inner = middle - c * middle * (right - left) + d * (right - 2.0 * middle + left)
        u = tf.ensure_shape(tf.concat((u[:1], inner, u[-1:]), 0), u0.shape)
    return tf.reduce_sum(u * u)


def gauss_seidel(source, reaction, sweeps):
    n = source.shape[0]
    diagonals = []
    for total in range(2, 2 * n - 3):
        i = np.arange(max(1, total - n + 2), min(n - 2, total - 1) + 1)
        j = total - i
        places = [np.stack(p, 1) for p in ((i, j), (i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))]
        diagonals.append([tf.constant(p) for p in places])
    u = tf.zeros((n, n), FLOAT)
    for _ in iterations(sweeps):
        for here, above, below, left, right in diagonals:
            around = tf.gather_nd(u, above) + tf.gather_nd(u, below) + tf.gather_nd(u, left) + tf.gather_nd(u, right)
            new = 0.25 * (around + tf.gather_nd(source, here) - reaction * tf.gather_nd(u, here) ** 3)
            u = tf.tensor_scatter_nd_update(u, here, new)
    return tf.reduce_sum(u * u)


def jacobi(u0, source, sweeps):
    u = u0
    for _ in iterations(sweeps):
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + source[1:-1, 1:-1])
        rows = tf.concat((u[1:-1, :1], inner, u[1:-1, -1:]), 1)
        u = tf.ensure_shape(tf.concat((u[:1], rows, u[-1:]), 0), u0.shape)
    return tf.reduce_sum(u * u)


def lennard_jones(p):
    itself = tf.eye(p.shape[1], dtype=FLOAT)
    difference = p[:, :, None] - p[:, None, :]
    s = 1.0 / (tf.reduce_sum(difference * difference, 0) + itself)
    s6 = s * s * s
    return 0.5 * tf.reduce_sum((1.0 - itself) * 4.0 * (s6 * s6 - s6))


def cholesky(a0):
    lower = tf.linalg.band_part(a0, -1, 0)  # the program reads the lower half
    symmetric = lower + tf.transpose(lower) - tf.linalg.diag(tf.linalg.diag_part(a0))
    return 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(tf.linalg.cholesky(symmetric))))


def sparse_product(data, x0, starts, columns, power):
    rows = tf.repeat(tf.range(x0.shape[0]), starts[1:] - starts[:-1])
    x = x0
    for _ in range(power):
        x = tf.math.segment_sum(data * tf.gather(x, columns), rows)
    return tf.reduce_sum(x * x)


def bundle_adjustment(cameras, points, weights, seen_by, seen_point, features):
    camera = tf.gather(cameras, seen_by)
    moved = tf.gather(points, seen_point) - camera[:, 3:6] * tf.constant([1.0, 1.0, -1.0], FLOAT)
    theta = tf.sqrt(tf.reduce_sum(camera[:, :3] ** 2, 1, keepdims=True))
    axis = camera[:, :3] / theta
    cos, sin = tf.cos(theta), tf.sin(theta)
    along = tf.reduce_sum(axis * moved, 1, keepdims=True) * (1.0 - cos)
    turned = moved * cos + tf.linalg.cross(axis, moved) * sin + axis * along
    p = turned[:, :2] / turned[:, 2:]
    r2 = tf.reduce_sum(p * p, 1, keepdims=True)
    distortion = 1.0 + camera[:, 9:10] * r2 + camera[:, 10:11] * r2 * r2
    error = weights[:, None] * (camera[:, 6:7] * p * distortion + camera[:, 7:9] - features)
    return tf.reduce_sum(error * error) + tf.reduce_sum((1.0 - weights * weights) ** 2)


def barrier(spot, rate, volatility, strike, barrier, maturity, noise):
    step = maturity / noise.shape[1]
    drift = (rate - 0.5 * volatility * volatility) * step
    prices = spot * tf.exp(tf.cumsum(drift + volatility * math.sqrt(step) * noise, 1))
    alive = tf.reduce_all(prices >= barrier, 1)
    paid = tf.where(alive, tf.nn.relu(prices[:, -1] - strike), number(0.0))
    return tf.exp(-rate * maturity) * tf.reduce_mean(paid)


def normal_cdf(x):
    t = 1.0 / (1.0 + 0.2316419 * tf.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = 0.3989422804014327 * tf.exp(-0.5 * x * x) * series
    return tf.where(x > 0.0, 1.0 - tail, tail)


def black_scholes(spot, volatility, rate, strike, time):
    spread = volatility * tf.sqrt(time)
    d1 = (tf.math.log(spot / strike) + (rate + 0.5 * volatility**2) * time) / spread
    d2 = d1 - spread
    return tf.reduce_mean(spot * normal_cdf(d1) - strike * tf.exp(-rate * time) * normal_cdf(d2))


def logistic_regression(w, b, x, y, ridge):
    z = tf.linalg.matvec(x, w) + b
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=z)
    return tf.reduce_mean(losses) + 0.5 * ridge * tf.reduce_sum(w * w)


def mlp(w1, b1, w2, b2, w3, b3, x, y):
    first = tf.tanh(x @ w1 + b1)
    second = tf.nn.relu(first @ w2 + b2)
    return tf.reduce_mean((tf.linalg.matvec(second, w3) + b3 - y) ** 2)


def gaussian_mixture(weights, means, factors, x):
    n, d = x.shape
    centred = tf.matmul(x - means[:, None, :], factors)
    log_determinants = tf.reduce_sum(tf.math.log(tf.abs(tf.linalg.diag_part(factors))), 1)
    scores = (weights + log_determinants)[:, None] - 0.5 * tf.reduce_sum(centred**2, 2)
    normaliser = tf.reduce_logsumexp(weights) + 0.5 * d * math.log(2.0 * math.pi)
    return tf.reduce_sum(tf.reduce_logsumexp(scores, 0)) - n * normaliser


def lstm(main, out_scale, out_bias, sequence):
    # terms that do not depend on the state are computed for all steps at once
    forget = tf.sigmoid(sequence * main[0] + main[4])
    outof = tf.sigmoid(sequence * main[2] + main[6])
    into_scale, change_scale, into_bias, change_bias = main[1], main[3], main[5], main[7]
    hidden = cell = tf.zeros(sequence.shape[1], FLOAT)
    states = tf.TensorArray(FLOAT, size=sequence.shape[0] - 1, element_shape=hidden.shape)
    for t in iterations(sequence.shape[0] - 1):
        into = tf.sigmoid(hidden * into_scale + into_bias)
        change = tf.tanh(hidden * change_scale + change_bias)
        cell = cell * forget[t] + into * change
        hidden = outof[t] * tf.tanh(cell)
        states = states.write(t, hidden)
    guess = states.stack() * out_scale + out_bias
    total = tf.reduce_sum(guess * sequence[1:]) - tf.reduce_sum(tf.reduce_logsumexp(guess, 1))
    return -total / sequence.shape[0]


def hidden_markov(initial, transition, emission, observed):
    likely = tf.gather(tf.transpose(emission), observed)
    alpha = initial * likely[0]
    scale = tf.reduce_sum(alpha)
    alpha = alpha / scale
    total = tf.math.log(scale)
    for t in iterations(1, observed.shape[0]):
        alpha = tf.linalg.matvec(transition, alpha, transpose_a=True) * likely[t]
        scale = tf.reduce_sum(alpha)
        alpha = alpha / scale
        total = total + tf.math.log(scale)
    return total


def kalman(motion, motion_noise, measure, measure_noise, measured):
    state, covariance, total = tf.zeros(4, FLOAT), tf.eye(4, dtype=FLOAT), number(0.0)
    for t in iterations(measured.shape[0]):
        state = tf.linalg.matvec(motion, state)
        covariance = motion @ covariance @ tf.transpose(motion) + motion_noise
        seen = tf.linalg.matvec(covariance, measure)
        spread = tf.reduce_sum(measure * seen) + measure_noise
        surprise = measured[t] - tf.reduce_sum(measure * state)
        state = state + seen * (surprise / spread)
        covariance = covariance - seen[:, None] * seen[None, :] / spread
        total = total + 0.5 * (tf.math.log(2.0 * math.pi * spread) + surprise * surprise / spread)
    return total


def prepare(program: Program, arguments: tuple[Any, ...], variant: str) -> Callable[[], Any]:
    function = globals().get(program.name)
    if function is None:
        raise RefusedError("not written for TensorFlow")
    given = [tf.constant(a) if isinstance(a, np.ndarray) else a for a in arguments]
    chosen = [tf.constant(arguments[k], FLOAT) for k in program.positions]

    def differentiated(*chosen):
        for position, value in zip(program.positions, chosen, strict=True):
            given[position] = value
        with tf.GradientTape() as tape:
            tape.watch(chosen)
            value = function(*given)
        return value, [tf.convert_to_tensor(g) for g in tape.gradient(value, chosen)]

    run = tf.function(differentiated) if variant == "function" else differentiated
    return lambda: run(*chosen)


def to_numpy(result: Any) -> tuple[float, list[np.ndarray]]:
    value, gradients = result
    return float(value), [g.numpy() for g in gradients]
