"""Programs in the manner of NPBench's complex ones: contour integrals, escape times, self energies, transforms."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff

random = np.random.default_rng(8)


def planar(*shape):
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def contour_integral(hamiltonians, points, block):
    """Moments of the inverse of a polynomial of matrices along a contour."""
    count, size = hamiltonians.shape[0], hamiltonians.shape[1]
    first = np.zeros((size, block.shape[1]), dtype=np.complex128)
    second = np.zeros((size, block.shape[1]), dtype=np.complex128)
    for z in points:
        matrix = np.zeros((size, size), dtype=np.complex128)
        for n in range(count):
            matrix += z ** (n - count // 2) * hamiltonians[n]
        if abs(z) < 1.0:
            x = -np.linalg.solve(matrix, block)
        else:
            x = np.linalg.solve(matrix, block)
        first += x
        second += z * x
    return np.sum(np.abs(first) ** 2) + np.sum((first * np.conj(second)).imag)


def self_energies(neighbours, hopping, greens, phonons):
    """Sums of products of blocks over energies, frequencies and neighbours, as in quantum transport."""
    energies, atoms, orbitals = greens.shape[0], greens.shape[1], greens.shape[2]
    sigma = np.zeros((energies, atoms, orbitals, orbitals), dtype=np.complex128)
    for e in range(energies):
        for w in range(phonons.shape[0]):
            if e - w >= 0:
                for a in range(atoms):
                    for b in range(neighbours.shape[1]):
                        for i in range(hopping.shape[2]):
                            left = greens[e - w, neighbours[a, b]] @ hopping[a, b, i]
                            right = hopping[a, b, i] * phonons[w, a, b, i]
                            sigma[e, a] += left @ right
    return np.sum(np.abs(sigma) ** 2) + np.sum(sigma[:, 0].real)


def escape_times(centre, width, steps):
    """A smooth count of the steps until numbers leave a circle, with masks of whole arrays."""
    grid = np.linspace(-1.0, 1.0, 6) * width
    c = centre + grid[None, :] + 1j * grid[:, None]
    z = np.zeros(c.shape, dtype=np.complex128)
    count = np.zeros(c.shape)
    for _ in range(steps):
        inside = np.abs(z) < 4.0
        count[inside] += np.exp(-0.1 * np.abs(z[inside]))
        z[inside] = z[inside] ** 2 + c[inside]
    return np.sum(count) + 0.01 * np.sum(np.abs(z))


def escape_of_each(centre, width, steps):
    """The same with scalars, and an early exit."""
    total = 0.0
    for j in range(6):
        for k in range(6):
            c = centre + complex(width * (-1.0 + 0.4 * k), width * (-1.0 + 0.4 * j))
            z = 0j
            for _ in range(steps):
                if abs(z) >= 4.0:
                    break
                total += np.exp(-0.1 * abs(z))
                z = z * z + c
            total += 0.01 * abs(z)
    return total


def stockham(x, radix, digits):
    """A Fourier transform without reordering: each stage multiplies by a small matrix and by twiddle factors."""
    n = radix**digits
    y = x.copy()
    rows = np.arange(radix)
    dft = np.exp(-2j * np.pi * rows[:, None] * rows[None, :] / radix)
    stride, left = 1, n
    for _ in range(digits):
        spread = dft @ y.reshape(radix, n // radix)
        y = np.empty(n, dtype=np.complex128)
        for p in range(left // radix):
            for i in range(radix):
                angle = -2.0 * np.pi * p * i / left
                for q in range(stride):
                    y[q + stride * (radix * p + i)] = spread[i, q + stride * p] * complex(np.cos(angle), np.sin(angle))
        stride, left = stride * radix, left // radix
    return y


def whole_array_stockham(x, radix, digits):
    """The same with whole arrays: permutations by transposed views, twiddle factors by repeated arrays."""
    n = radix**digits
    rows, columns = np.mgrid[0:radix, 0:radix]
    dft = np.exp(-2.0j * np.pi * rows * columns / radix)
    counted, places = np.mgrid[0:radix, 0 : radix**digits]
    y, permuted = x.copy(), np.empty(n, dtype=np.complex128)
    factors = np.empty(n, dtype=np.complex128)
    for i in range(digits):
        blocks = np.reshape(y, (radix**i, radix, radix ** (digits - i - 1)))
        permuted[:] = np.reshape(np.transpose(blocks, axes=(1, 0, 2)), (n,))
        angles = np.reshape(counted[:, : radix**i] * places[:, : radix**i], (radix, radix**i, 1))
        spread = np.reshape(factors, (radix, radix**i, radix ** (digits - i - 1)))
        twiddles = np.exp(-2.0j * np.pi * angles / radix ** (i + 1))
        spread[:] = np.repeat(twiddles, radix ** (digits - i - 1), axis=2)
        y[:] = np.reshape(dft @ np.reshape(permuted * factors, (radix, radix ** (digits - 1))), (n,))
    return y


def radix_two(x, levels):
    """Butterflies in place, with strides that are powers of two."""
    y = x.copy()
    for level in range(1, levels + 1):
        m = 2**level
        for k in range(0, 2**levels, m):
            for j in range(m // 2):
                turned = np.exp(-2j * np.pi * j / m) * y[k + j + m // 2]
                y[k + j + m // 2] = y[k + j] - turned
                y[k + j] += turned
    return y


def power_of_whole_array_stockham(x, weights, radix, digits):
    return np.sum(weights * np.abs(whole_array_stockham(x, radix, digits)) ** 2)


def power_of_radix_two(x, weights, levels):
    return np.sum(weights * np.abs(radix_two(x, levels)) ** 2)


def power_of_transform(x, weights):
    return np.sum(weights * np.abs(stockham(x, 2, 3)) ** 2)


def channel(pilots, taps, noise):
    """The error of an equaliser that is made from an estimate of a channel with several taps."""
    received = np.convolve(pilots, taps)[: len(pilots)] + noise
    estimate = np.fft.fft(received) / np.fft.fft(pilots)
    equaliser = np.conj(estimate) / (np.abs(estimate) ** 2 + 0.1)
    return np.sum(np.abs(np.fft.ifft(equaliser * np.fft.fft(received)) - pilots) ** 2)


CASES = [
    (contour_integral, (planar(3, 3, 3) + 2 * np.eye(3), np.exp(1j * np.arange(4)) * ([1.3, 0.6] * 2), planar(3, 2))),
    (self_energies, (np.array([[1, 0], [0, 1]]), planar(2, 2, 2, 2, 2), planar(3, 2, 2, 2), planar(2, 2, 2, 2))),
    (escape_times, (-0.3 + 0.4j, 0.9, 8)),
    (escape_of_each, (-0.3 + 0.4j, 0.9, 8)),
    (power_of_transform, (planar(8), random.normal(size=8))),
    (power_of_whole_array_stockham, (planar(9), random.normal(size=9), 3, 2)),
    (power_of_radix_two, (planar(8), random.normal(size=8), 3)),
    (channel, (planar(8), planar(3), 0.1 * planar(8))),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_derivatives_agree_with_differences(function, arguments):
    inexact = tuple(k for k, a in enumerate(arguments) if not np.issubdtype(np.asarray(a).dtype, np.integer))
    srcdiff.check(function, *arguments, wrt=inexact, backend="python")


def test_transform_of_the_source_is_that_of_numpy():
    x = planar(27)
    np.testing.assert_allclose(stockham(x, 3, 3), np.fft.fft(x), atol=1e-12)
    np.testing.assert_allclose(whole_array_stockham(x, 3, 3), np.fft.fft(x), atol=1e-12)


@pytest.mark.parametrize("function", [escape_of_each, power_of_transform])
def test_compiled_gradients_are_those_of_the_source(function):
    arguments = dict(CASES)[function]
    expected = srcdiff.grad(function, wrt=(0, 1), backend="python")(*arguments)
    for one, other in zip(expected, srcdiff.grad(function, wrt=(0, 1))(*arguments), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-11)
