"""The programs for PyTorch: operations on whole tensors where there are any, Python's loops around them.

The same functions are run eagerly and given to `torch.compile`. Gauss-Seidel goes along diagonals, whose points do not
depend on each other: one operation for a diagonal instead of one for a point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.programs import Program
from benchmarks.systems import RefusedError

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


def version() -> str:
    return f"torch {torch.__version__}"


def tiny(x):
    return torch.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def recurrence(a, r):
    x = torch.tensor(0.3)
    values = []
    for a_i in a.unbind():
        c = x + a_i
        y = 0.5 * c
        residual = y * y * y + y - c
        while abs(residual) > 1e-9:
            y = y - residual / (3.0 * y * y + 1.0)
            residual = y * y * y + y - c
        x = r * y * (1.0 - y) if y > 0.5 else r * y + 0.1 * y * y
        values.append(x)
    return torch.sum(torch.stack(values) ** 2)


def adaptive_ode(rates, start, duration, tolerance):
    grows, eaten, feeds, dies = rates.unbind()

    def slope(state):
        p, h = state.unbind()
        met = p * h
        return torch.stack((grows * p - eaten * met, feeds * met - dies * h))

    state = start
    time, step, effort = torch.tensor(0.0), torch.tensor(0.01), torch.tensor(0.0)
    while time < duration:
        if time + step > duration:
            step = duration - time
        k1 = slope(state)
        k2 = slope(state + 0.5 * step * k1)
        k3 = slope(state + 0.75 * step * k2)
        new = state + step * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
        k4 = slope(new)
        difference = step * (-5.0 * k1 / 72.0 + k2 / 12.0 + k3 / 9.0 - k4 / 8.0)
        error = torch.sqrt(torch.sum(difference * difference)) + 1e-14
        if error <= tolerance:
            time = time + step
            state = new
            effort = effort + step * torch.prod(state)
        factor = 0.9 * (tolerance / error) ** (1.0 / 3.0)
        step = step * torch.clamp(factor, 0.2, 5.0)
    return effort / duration + torch.prod(state)


def burgers(u0, steps, c, d):
    u = u0
    for _ in range(steps):
        left, middle, right = u[:-2], u[1:-1], u[2:]
        inner = middle - c * middle * (right - left) + d * (right - 2.0 * middle + left)
        u = torch.cat((u[:1], inner, u[-1:]))
    return torch.sum(u * u)


def gauss_seidel(source, reaction, sweeps):
    n = source.shape[0]
    diagonals = []
    for total in range(2, 2 * n - 3):
        i = torch.arange(max(1, total - n + 2), min(n - 2, total - 1) + 1)
        diagonals.append((i, total - i))
    u = torch.zeros(n, n)
    for _ in range(sweeps):
        for i, j in diagonals:
            around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            u[i, j] = 0.25 * (around + source[i, j] - reaction * u[i, j] ** 3)
    return torch.sum(u * u)


def jacobi(u0, source, sweeps):
    u = u0
    for _ in range(sweeps):
        new = u.clone()
        new[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + source[1:-1, 1:-1])
        u = new
    return torch.sum(u * u)


def lennard_jones(p):
    i, j = torch.triu_indices(p.shape[1], p.shape[1], 1)
    difference = p[:, i] - p[:, j]
    s6 = torch.sum(difference * difference, dim=0) ** -3
    return torch.sum(4.0 * (s6 * s6 - s6))


def cholesky(a0):
    symmetric = torch.tril(a0) + torch.tril(a0, -1).T  # the program reads the lower half
    return 2.0 * torch.sum(torch.log(torch.diagonal(torch.linalg.cholesky(symmetric))))


def sparse_product(data, x0, starts, columns, power):
    rows = torch.repeat_interleave(torch.arange(len(x0)), torch.diff(starts))
    x = x0
    for _ in range(power):
        x = torch.zeros_like(x0).index_add(0, rows, data * x[columns])
    return torch.sum(x * x)


def bundle_adjustment(cameras, points, weights, seen_by, seen_point, features):
    camera = cameras[seen_by]
    moved = points[seen_point] - camera[:, 3:6] * torch.tensor([1.0, 1.0, -1.0])
    theta = torch.sqrt(torch.sum(camera[:, :3] ** 2, dim=1, keepdim=True))
    axis = camera[:, :3] / theta
    cos, sin = torch.cos(theta), torch.sin(theta)
    along = torch.sum(axis * moved, dim=1, keepdim=True) * (1.0 - cos)
    turned = moved * cos + torch.linalg.cross(axis, moved) * sin + axis * along
    p = turned[:, :2] / turned[:, 2:]
    r2 = torch.sum(p * p, dim=1, keepdim=True)
    distortion = 1.0 + camera[:, 9:10] * r2 + camera[:, 10:11] * r2 * r2
    error = weights[:, None] * (camera[:, 6:7] * p * distortion + camera[:, 7:9] - features)
    return torch.sum(error * error) + torch.sum((1.0 - weights * weights) ** 2)


def barrier(spot, rate, volatility, strike, barrier, maturity, noise):
    step = maturity / noise.shape[1]
    drift = (rate - 0.5 * volatility * volatility) * step
    prices = spot * torch.exp(torch.cumsum(drift + volatility * math.sqrt(step) * noise, dim=1))
    alive = torch.all(prices >= barrier, dim=1)
    paid = torch.where(alive, torch.relu(prices[:, -1] - strike), 0.0)
    return torch.exp(-rate * maturity) * torch.mean(paid)


def normal_cdf(x):
    t = 1.0 / (1.0 + 0.2316419 * torch.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = 0.3989422804014327 * torch.exp(-0.5 * x * x) * series
    return torch.where(x > 0.0, 1.0 - tail, tail)


def black_scholes(spot, volatility, rate, strike, time):
    spread = volatility * torch.sqrt(time)
    d1 = (torch.log(spot / strike) + (rate + 0.5 * volatility**2) * time) / spread
    d2 = d1 - spread
    return torch.mean(spot * normal_cdf(d1) - strike * torch.exp(-rate * time) * normal_cdf(d2))


def logistic_regression(w, b, x, y, ridge):
    z = x @ w + b
    return torch.nn.functional.binary_cross_entropy_with_logits(z, y) + 0.5 * ridge * torch.sum(w * w)


def mlp(w1, b1, w2, b2, w3, b3, x, y):
    first = torch.tanh(torch.addmm(b1, x, w1))
    second = torch.relu(torch.addmm(b2, first, w2))
    return torch.mean((second @ w3 + b3 - y) ** 2)


def gaussian_mixture(weights, means, factors, x):
    n, d = x.shape
    centred = torch.matmul(x - means[:, None, :], factors)
    log_determinants = torch.sum(torch.log(torch.abs(torch.diagonal(factors, dim1=1, dim2=2))), dim=1)
    scores = (weights + log_determinants)[:, None] - 0.5 * torch.sum(centred**2, dim=2)
    normaliser = torch.logsumexp(weights, 0) + 0.5 * d * math.log(2.0 * math.pi)
    return torch.sum(torch.logsumexp(scores, dim=0)) - n * normaliser


def lstm(main, out_scale, out_bias, sequence):
    # terms that do not depend on the state are computed for all steps at once
    forget = torch.sigmoid(sequence * main[0] + main[4])
    outof = torch.sigmoid(sequence * main[2] + main[6])
    hidden = cell = torch.zeros(sequence.shape[1])
    states = []
    for t in range(sequence.shape[0] - 1):
        into = torch.sigmoid(torch.addcmul(main[5], hidden, main[1]))
        change = torch.tanh(torch.addcmul(main[7], hidden, main[3]))
        cell = cell * forget[t] + into * change
        hidden = outof[t] * torch.tanh(cell)
        states.append(hidden)
    guess = torch.stack(states) * out_scale + out_bias
    total = torch.sum(guess * sequence[1:]) - torch.sum(torch.logsumexp(guess, dim=1))
    return -total / sequence.shape[0]


def hidden_markov(initial, transition, emission, observed):
    likely = emission.T[observed]
    alpha = initial * likely[0]
    scales = []
    for t in range(len(observed)):
        if t > 0:
            alpha = (alpha @ transition) * likely[t]
        scale = torch.sum(alpha)
        alpha = alpha / scale
        scales.append(scale)
    return torch.sum(torch.log(torch.stack(scales)))


def kalman(motion, motion_noise, measure, measure_noise, measured):
    state, covariance = torch.zeros(4), torch.eye(4)
    spreads, surprises = [], []
    for y in measured.unbind():
        state = motion @ state
        covariance = motion @ covariance @ motion.T + motion_noise
        seen = covariance @ measure
        spread = measure @ seen + measure_noise
        surprise = y - measure @ state
        state = state + seen * (surprise / spread)
        covariance = covariance - torch.outer(seen, seen) / spread
        spreads.append(spread)
        surprises.append(surprise)
    spread = torch.stack(spreads)
    return 0.5 * torch.sum(torch.log(2.0 * math.pi * spread) + torch.stack(surprises) ** 2 / spread)


def prepare(program: Program, arguments: tuple[Any, ...], variant: str) -> Callable[[], Any]:
    function = globals().get(program.name)
    if function is None:
        raise RefusedError("not written for PyTorch")
    if variant == "compiled":
        function = torch.compile(function)
    given = [torch.from_numpy(np.ascontiguousarray(a)) if isinstance(a, np.ndarray) else a for a in arguments]
    for k in program.positions:
        given[k] = torch.as_tensor(given[k]).requires_grad_()
    chosen = [given[k] for k in program.positions]

    def call():
        value = function(*given)
        return value.detach(), torch.autograd.grad(value, chosen)

    return call


def to_numpy(result: Any) -> tuple[float, list[np.ndarray]]:
    value, gradients = result
    return float(value), [g.numpy() for g in gradients]
