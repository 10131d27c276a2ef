"""Kernels as users write them, in Numba's simulator: their adjoints against differences of the kernels themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda, float64, int64

from srcdiff.cuda import kernel

_random = np.random.default_rng(5)
KERNELS: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = []


def case(launch: tuple[Any, ...], *arguments: Any) -> Callable[[Any], Any]:
    def put(function: Any) -> Any:
        KERNELS.append((kernel(function), launch, arguments))
        return function

    return put


def numbers(*shape: int) -> Any:
    return _random.normal(size=shape)


@case(((2, 2), (2, 2)), numbers(4, 4), numbers(4, 4))
def transpose(a, b):
    tile = cuda.shared.array((2, 3), float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x = cuda.blockIdx.x * 2 + tx
    y = cuda.blockIdx.y * 2 + ty
    tile[ty, tx] = a[y, x] * a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 2 + tx
    y = cuda.blockIdx.x * 2 + ty
    b[y, x] = tile[tx, ty]


@case((1, 4), numbers(4), numbers(4))
def scan(x, y):
    s = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    s[t] = x[t] * x[t]
    cuda.syncthreads()
    d = 1
    while d < 4:
        v = s[t - d] if t >= d else 0.0
        cuda.syncthreads()
        s[t] += v
        cuda.syncthreads()
        d *= 2
    y[t] = s[t] * x[t]


@case((3, 4), numbers(3, 4), numbers(3, 4))
def softmax(x, y):
    s = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    s[t] = x[b, t]
    cuda.syncthreads()
    k = 2
    while k > 0:
        if t < k:
            s[t] = max(s[t], s[t + k])
        cuda.syncthreads()
        k = k // 2
    m = s[0]
    cuda.syncthreads()
    e = math.exp(x[b, t] - m)
    s[t] = e
    cuda.syncthreads()
    k = 2
    while k > 0:
        if t < k:
            s[t] = s[t] + s[t + k]
        cuda.syncthreads()
        k = k // 2
    y[b, t] = e / s[0]


@case((2, 4), numbers(8), numbers(3), numbers(8))
def convolution(x, w, y):
    s = cuda.shared.array(6, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t + 1] = x[i]
    if t == 0:
        s[0] = x[i - 1] if i > 0 else 0.0
    if t == cuda.blockDim.x - 1:
        s[t + 2] = x[i + 1] if i + 1 < x.shape[0] else 0.0
    cuda.syncthreads()
    acc = 0.0
    for k in range(3):
        acc += w[k] * s[t + k]
    y[i] = acc


@case((1, 3), 3.0 + 0.3 * numbers(3, 5), numbers(3, 5) * 0.3, numbers(3, 5) * 0.3, numbers(3, 5))
def thomas(b, a, c, d):
    r = cuda.grid(1)
    if r < b.shape[0]:
        m = b.shape[1]
        for i in range(1, m):
            w = a[r, i] / b[r, i - 1]
            b[r, i] -= w * c[r, i - 1]
            d[r, i] -= w * d[r, i - 1]
        d[r, m - 1] /= b[r, m - 1]
        for i in range(m - 2, -1, -1):
            d[r, i] = (d[r, i] - c[r, i] * d[r, i + 1]) / b[r, i]


@case((1, 4), 4.0 * np.eye(3) + 0.2 * numbers(3, 3, 3), numbers(3))
def cholesky_logdet(a, out):
    i = cuda.grid(1)
    if i >= a.shape[0]:
        return
    lower = cuda.local.array((3, 3), float64)
    for r in range(3):
        for c in range(r + 1):
            s = a[i, r, c]
            for k in range(c):
                s -= lower[r, k] * lower[c, k]
            if r == c:
                lower[r, c] = math.sqrt(s)
            else:
                lower[r, c] = s / lower[c, c]
    total = 0.0
    for r in range(3):
        total += 2.0 * math.log(lower[r, r])
    out[i] = total


@case((2, 4), numbers(2, 4), 1.0 + 0.3 * numbers(4), numbers(2, 4))
def layernorm(x, g, y):
    s = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    b = cuda.blockIdx.x
    s[t] = x[b, t]
    cuda.syncthreads()
    mean = 0.0
    for k in range(4):
        mean += s[k] / 4
    cuda.syncthreads()
    d = x[b, t] - mean
    s[t] = d * d
    cuda.syncthreads()
    var = 0.0
    for k in range(4):
        var += s[k] / 4
    y[b, t] = g[t] * d / math.sqrt(var + 1e-3)


@case((2, 4), numbers(8, 2), numbers(8, 2))
def tiled_bodies(pos, force):
    s = cuda.shared.array((4, 2), float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    fx = 0.0
    fy = 0.0
    xi = pos[i, 0]
    yi = pos[i, 1]
    for tile in range(cuda.gridDim.x):
        j = tile * 4 + t
        s[t, 0] = pos[j, 0]
        s[t, 1] = pos[j, 1]
        cuda.syncthreads()
        for k in range(4):
            dx = s[k, 0] - xi
            dy = s[k, 1] - yi
            r2 = dx * dx + dy * dy + 0.1
            inv = 1.0 / (r2 * math.sqrt(r2))
            fx += dx * inv
            fy += dy * inv
        cuda.syncthreads()
    force[i, 0] = fx
    force[i, 1] = fy


COEF = np.array([0.5, -1.0, 0.25])


@case((1, 4), numbers(4), numbers(4))
def constants(x, y):
    c = cuda.const.array_like(COEF)
    i = cuda.grid(1)
    y[i] = c[0] + c[1] * x[i] + c[2] * x[i] ** 2


@case((1, 4), numbers(4, 4), numbers(4))
def wavefront(x, y):
    t = cuda.threadIdx.x
    for d in range(1, 4):
        if t > 0:
            x[t, d] = x[t, d] + 0.5 * x[t - 1, d - 1] * x[t, d - 1]
        cuda.syncthreads()
    y[t] = x[t, 3]


@case((1, 4), numbers(4, 6), numbers(4))
def skipping(x, y):
    i = cuda.grid(1)
    total = 1.0
    for j in range(x.shape[1]):
        if x[i, j] < -0.5:
            continue
        total *= 1.0 + 0.3 * x[i, j]
        if total > 2.5:
            total = total * x[i, j]
            break
    else:
        total = total * total
    y[i] = total


@case((2, 4), numbers(8), numbers(2))
def int_shared(x, y):
    s = cuda.shared.array(4, int64)
    v = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = 3 - t
    v[t] = x[i]
    cuda.syncthreads()
    for k in range(2):
        w = v[s[t]] * v[t]
        cuda.syncthreads()
        v[t] = w
        s[t] = (s[t] + 1) % 4
        cuda.syncthreads()
    if t == 0:
        y[cuda.blockIdx.x] = v[1] * v[2]


@case((1, 4), numbers(4), np.zeros(3), 3)
def shared_atomic_loop(x, y, m):
    t = cuda.threadIdx.x
    s = cuda.shared.array(1, float64)
    for k in range(m):
        if t == 0:
            s[0] = 0.0
        cuda.syncthreads()
        cuda.atomic.add(s, 0, x[t] * x[t] * (k + 1))
        cuda.syncthreads()
        x[t] = x[t] / math.sqrt(s[0])
        if t == 0:
            y[k] = s[0]
        cuda.syncthreads()


@case((1, 4), numbers(4), numbers(4), 3)
def nested_barriers(x, y, m):
    t = cuda.threadIdx.x
    s = cuda.shared.array(4, float64)
    s[t] = x[t]
    cuda.syncthreads()
    for a in range(m):
        for b in range(a):
            v = s[(t + b + 1) % 4]
            cuda.syncthreads()
            s[t] = s[t] * v + 0.1 * a
            cuda.syncthreads()
        if t == a:
            y[a] = s[t]
        cuda.syncthreads()
    x[t] = s[t]


@case(((2, 2), (2, 2)), numbers(4, 4), numbers(4, 4), numbers(4, 4))
def matmul_hard_coded(a, b, c):
    sa = cuda.shared.array((2, 2), float64)
    sb = cuda.shared.array((2, 2), float64)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    row = cuda.blockIdx.y * 2 + ty
    col = cuda.blockIdx.x * 2 + tx
    acc = 0.0
    for m in range(2):
        sa[ty, tx] = a[row, m * 2 + tx]
        sb[ty, tx] = b[m * 2 + ty, col]
        cuda.syncthreads()
        for k in range(2):
            acc += sa[ty, k] * sb[k, tx]
        cuda.syncthreads()
    c[row, col] = acc


@cuda.jit(device=True)
def search(x, v):
    for k in range(x.shape[0]):
        if x[k] > v:
            return k
    return x.shape[0] - 1


@case((1, 4), np.sort(numbers(6)), numbers(6), numbers(4))
def interpolate(xs, ys, q):
    i = cuda.grid(1)
    k = search(xs, q[i])
    if k == 0:
        k = 1
    w = (q[i] - xs[k - 1]) / (xs[k] - xs[k - 1])
    q[i] = ys[k - 1] * (1.0 - w) + ys[k] * w


@cuda.jit(device=True)
def axpy(a, x, y):
    for k in range(x.shape[0]):
        y[k] = a * x[k] + y[k]


@cuda.jit(device=True)
def twice(a, x, y):
    axpy(a, x, y)
    axpy(y[0], y, y)


@case((1, 3), numbers(3), numbers(3, 4), numbers(3, 4))
def device_in_place(a, x, y):
    i = cuda.grid(1)
    twice(a[i], x[i], y[i])


@case((2, 4), numbers(13), numbers(13))
def stride_by_hand(x, y):
    start = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    stride = cuda.blockDim.x * cuda.gridDim.x
    i = start
    while i < x.shape[0]:
        y[i] = y[i] * math.exp(-x[i])
        i += stride


def copies(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(v.copy() if isinstance(v, np.ndarray) else v for v in values)


@pytest.mark.parametrize(("made", "launch", "arguments"), KERNELS, ids=lambda x: getattr(x, "__name__", ""))
def test_adjoint_by_differences_of_the_kernel(made: Any, launch: tuple[Any, ...], arguments: tuple[Any, ...]) -> None:
    random = np.random.default_rng(1)
    has = [isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in arguments]
    bars = tuple(random.normal(size=a.shape) if h else None for a, h in zip(arguments, has, strict=True))
    dots = tuple(random.normal(size=a.shape) if h else None for a, h in zip(arguments, has, strict=True))

    def along(step: float) -> float:
        given = copies(tuple(a if d is None else a + step * d for a, d in zip(arguments, dots, strict=True)))
        made[launch](*given)
        return sum(float(np.sum(b * a)) for a, b in zip(given, bars, strict=True) if b is not None)

    found, left, by_kernel = copies(bars), copies(arguments), copies(arguments)
    made.adjoint[launch](left, found)
    made[launch](*by_kernel)

    step = 1e-4
    expected = (8 * (along(step) - along(-step)) - (along(2 * step) - along(-2 * step))) / (12 * step)
    actual = sum(float(np.sum(f * d)) for f, d in zip(found, dots, strict=True) if d is not None)
    assert actual == pytest.approx(expected, rel=1e-8, abs=1e-8)  # rounding, divided by the step
    for mine, other in zip(left, by_kernel, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-13)
