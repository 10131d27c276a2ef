"""Signals, polynomials, interpolation and statistics of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library import blas_lapack
from srcdiff.library.blas_lapack import Ruled
from srcdiff.library.language import (
    agree,
    array_like,
    common_type,
    complex_type,
    each,
    float_type,
    is_array,
    is_complex_type,
    real_type,
    unsupported,
    zero,
)
from srcdiff.library.linear_algebra import eigvals, floats
from srcdiff.library.products import matmul

# -------------------------------------------------------------------------------------------------------------- signals


def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    a, v = row_of(a), row_of(v)
    start, count = part_of(mode, min(len(a), len(v)), max(len(a), len(v)))
    return part_of_convolution(a, v, start, count)


def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    a, v = row_of(a), row_of(v)
    short, long = min(len(a), len(v)), max(len(a), len(v))
    start, count = part_of(mode, short, long)
    if len(a) < len(v):  # NumPy exchanges the two and reverses the result
        start = short + long - 1 - start - count
    return part_of_convolution(a, v[::-1].conj(), start, count)


def row_of(a: Any) -> Any:
    a = np.asarray(a) if is_array(a) else np.expand_dims(a, 0)
    if len(a) == 0:
        raise ValueError("the sequences cannot be empty")
    return a


def part_of(mode: Any, short: Any, long: Any) -> Any:
    """The start and the length of the requested part of the full convolution."""
    if mode == "full":
        return 0, short + long - 1
    if mode == "same":
        return (short - 1) // 2, long
    if mode == "valid":
        return short - 1, long - short + 1
    raise ValueError("mode must be one of 'valid', 'same', or 'full'")


def part_of_convolution(a: Any, v: Any, start: Any, count: Any) -> Any:
    dtype = common_type(a.dtype, v.dtype)
    result = np.empty(count, dtype)
    n, m = len(a), len(v)
    for i in range(count):
        k = start + i
        total = zero(dtype)
        for j in range(max(0, k - m + 1), min(n, k + 1)):
            total += a[j] * v[k - j]
        result[i] = total
    return result


# ---------------------------------------------------------------------------------------------------------- polynomials


def polyval(p: Any, x: Any) -> Any:
    """Horner's scheme. The first coefficient is that of the highest power."""
    p = np.asarray(p)
    if not is_array(x):
        return horner(p, x, zero(p.dtype))
    x = array_like(x)
    dtype = common_type(p.dtype, x.dtype)
    result = np.empty(x.shape, dtype)
    for i in each(x.shape):
        result[i] = horner(p, x[i], zero(dtype))
    return result


def horner(p: Any, x: Any, start: Any) -> Any:
    total = start + 0 * x
    for k in range(len(p)):
        total = total * x + p[k]
    return total


def polyadd(a1: Any, a2: Any) -> Any:
    return sum_of_polynomials(a1, a2, 1)


def polysub(a1: Any, a2: Any) -> Any:
    return sum_of_polynomials(a1, a2, -1)


def sum_of_polynomials(a1: Any, a2: Any, sign: Any) -> Any:
    a1, a2 = np.atleast_1d(a1), np.atleast_1d(a2)
    n = max(len(a1), len(a2))
    result = np.zeros(n, common_type(a1.dtype, a2.dtype))
    result[n - len(a1) :] += a1
    result[n - len(a2) :] += sign * a2
    return result


def polymul(a1: Any, a2: Any) -> Any:
    return convolve(from_highest_power(a1), from_highest_power(a2))


def from_highest_power(p: Any) -> Any:
    """The coefficients without leading zeros. If all are zero, one zero remains."""
    p = np.atleast_1d(p)
    start = 0
    while start < len(p) - 1 and p[start] == 0:
        start += 1
    return p[start:]


def polyder(p: Any, m: Any = 1) -> Any:
    p = np.asarray(p)
    for _ in tuple(range(m)):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    p = np.asarray(p)
    for iteration in tuple(range(m)):
        constant = 0.0 if k is None else k[iteration] if is_array(k) else k
        p = np.append(p / np.arange(len(p), 0, -1), constant)
    return p


def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with these roots, or with the eigenvalues of a matrix as roots."""
    zeros = np.asarray(seq_of_zeros)
    if zeros.ndim == 2:
        found = poly(eigvals(zeros.astype(complex_type(float_type(zeros.dtype)))))
        return found if is_complex_type(zeros.dtype) else np.asarray(found.real)
    n = len(zeros)
    result = np.zeros(n + 1, float_type(zeros.dtype))
    result[0] = 1.0
    for k in range(n):
        for j in range(k + 1, 0, -1):
            result[j] -= zeros[k] * result[j - 1]
    return result


def roots(p: Any) -> Any:
    """For real polynomials with real roots, and for complex ones. Other real polynomials raise `ValueError`."""
    return roots_of(floats(p))


def any_roots(p: Any) -> Any:
    return blas_lapack.complex_roots(p) if is_complex_type(p.dtype) else blas_lapack.real_roots(p)


def roots_adjoint(p: Any, out: Any, out_bar: Any) -> Any:
    """From p(r) = 0 follows dr = -dp(r) / p'(r); a root of higher order has no finite derivative."""
    n = len(p)
    p_bar = np.zeros(n, p.dtype)
    for k in range(len(out)):
        slope, power = zero(p.dtype), zero(p.dtype) + 1
        for i in range(n - 1):
            slope = slope * out[k] + (n - 1 - i) * p[i]
        share = out_bar[k] / slope.conjugate()
        for i in range(n - 1, -1, -1):
            p_bar[i] -= share * power.conjugate()
            power *= out[k]
    return (p_bar,)


roots_of = Ruled(any_roots, roots_adjoint, takes_complex=True)


def trim_zeros(filt: Any, trim: Any = "fb", axis: Any = None) -> Any:
    filt = np.asarray(filt)
    if filt.ndim != 1:
        unsupported("`trim_zeros` of more than one axis")
    start, stop = 0, len(filt)
    if "f" in trim.lower():
        while start < stop and filt[start] == 0:
            start += 1
    if "b" in trim.lower():
        while start < stop and filt[stop - 1] == 0:
            stop -= 1
    return filt[start:stop]


def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    """Least squares with scaled columns, as in NumPy."""
    if full or cov or rcond is not None:
        unsupported("`polyfit` with `full`, `cov` or `rcond`")
    powers = np.vander(np.asarray(x) + 0.0, deg + 1)
    y = np.asarray(y) + 0.0
    if w is not None:
        w = np.asarray(w)
        powers = powers * w[:, None]
        y = y * w if y.ndim == 1 else y * w[:, None]
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    found = np.linalg.lstsq(powers / scale, y)[0]
    return found / scale if y.ndim == 1 else found / scale[:, None]


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """At a data point, the derivative is that of the piece on its right."""
    xp, fp = np.asarray(xp), np.asarray(fp)
    if len(xp) != len(fp):
        raise ValueError("fp and xp are not of the same length.")
    if len(xp) == 0:
        raise ValueError("array of sample points is empty")
    if is_complex_type(fp.dtype):
        fp = fp.astype(np.complex128)
    if period is not None:
        return interp_periodic(x, xp, fp, np.abs(period))
    if not is_array(x):
        return between(x, xp, fp, left, right)
    x = array_like(x)
    result = np.empty(x.shape, np.result_type(fp.dtype, np.float64))
    for i in each(x.shape):
        result[i] = between(x[i], xp, fp, left, right)
    return result


def interp_periodic(x: Any, xp: Any, fp: Any, period: Any) -> Any:
    """Map all points into one period, and extend it by one point on both sides."""
    if period == 0:
        raise ValueError("period must be a non-zero value")
    xp = np.asarray(xp % period)
    order = np.argsort(xp)
    xp, fp = np.asarray(xp[order]), np.asarray(fp[order])
    xp = np.concatenate((xp[-1:] - period, xp, xp[:1] + period))
    fp = np.concatenate((fp[-1:], fp, fp[:1]))
    return interp(np.mod(x, period), xp, fp)


def between(x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    """The value at one point. Bisection finds the piece."""
    last = len(xp) - 1
    if x < xp[0]:
        value = fp[0] + 0.0 if left is None else left + 0.0
    elif x > xp[last]:
        value = fp[last] + 0.0 if right is None else right + 0.0
    elif x == xp[last]:
        value = fp[last] + 0.0
    else:
        low, high = 0, last
        while high - low > 1:
            middle = (low + high) // 2
            if x >= xp[middle]:
                low = middle
            else:
                high = middle
        value = fp[low] + (fp[low + 1] - fp[low]) / (xp[low + 1] - xp[low]) * (x - xp[low])
    return value


# -------------------------------------------------------------------------------------------------------------- samples


def cov(
    m: Any,
    y: Any = None,
    rowvar: Any = True,
    bias: Any = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    x = variables(m, rowvar)
    if y is not None:
        x = np.concatenate((x, variables(y, rowvar)))
    if ddof is None:
        ddof = 0 if bias else 1
    weights = product_of_weights(fweights, aweights, real_type(float_type(x.dtype)))
    products, norm = centred_products(x, weights, aweights, ddof)
    if m.ndim == 1 and y is None:
        return products[0, 0] / max(norm, 0)
    return products / max(norm, 0)


def product_of_weights(fweights: Any, aweights: Any, dtype: Any) -> Any:
    if fweights is None and aweights is None:
        return None
    if fweights is None:
        return np.asarray(np.asarray(aweights) + zero(dtype))
    if aweights is None:
        return np.asarray(np.asarray(fweights) + zero(dtype))
    return np.asarray(np.asarray(fweights) * np.asarray(aweights) + zero(dtype))


def centred_products(x: Any, weights: Any, aweights: Any, ddof: Any) -> Any:
    """The products of all pairs of centred variables, and their divisor."""
    n, count = x.shape
    centred = np.empty(x.shape, float_type(x.dtype))
    if weights is None:
        for i in range(n):
            total = zero(centred.dtype)
            for k in range(count):
                total += x[i, k]
            mean = total / count
            for k in range(count):
                centred[i, k] = x[i, k] - mean
        return matmul(centred, adjoint(centred)), count - ddof
    agree(len(weights), count, "incompatible numbers of samples and weights")
    whole = np.sum(weights)
    for i in range(n):
        total = zero(centred.dtype)
        for k in range(count):
            total += x[i, k] * weights[k]
        mean = total / whole
        for k in range(count):
            centred[i, k] = x[i, k] - mean
    norm = whole - ddof
    if aweights is not None and ddof != 0:
        norm = whole - ddof * np.sum(weights * np.asarray(aweights)) / whole
    return matmul(centred * weights, adjoint(centred)), norm


def adjoint(a: Any) -> Any:
    """The conjugate transpose."""
    return np.conj(a.T) if is_complex_type(a.dtype) else a.T


def variables(m: Any, rowvar: Any) -> Any:
    """The samples as a matrix with one row for each variable."""
    m = np.asarray(m)
    if m.ndim == 1:
        return m[None, :]
    return m if rowvar else m.T


def corrcoef(x: Any, y: Any = None, rowvar: Any = True) -> Any:
    c = cov(x, y, rowvar)
    if not is_array(c):
        return c / c
    c = np.asarray(c)
    n = len(c)
    scale = np.empty(n, real_type(c.dtype))
    for i in range(n):
        scale[i] = np.sqrt(c[i, i].real if is_complex_type(c.dtype) else c[i, i])
    result = np.empty((n, n), c.dtype)
    for i in range(n):
        for j in range(n):
            # NumPy clips rounding errors beyond one. The derivative ignores this.
            result[i, j] = c[i, j] / scale[i] / scale[j]
    return result


FUNCTIONS: dict[Any, Any] = {
    np.convolve: convolve,
    np.correlate: correlate,
    np.polyval: polyval,
    np.polyadd: polyadd,
    np.polysub: polysub,
    np.polymul: polymul,
    np.polyder: polyder,
    np.polyint: polyint,
    np.poly: poly,
    np.roots: roots,
    np.trim_zeros: trim_zeros,
    np.polyfit: polyfit,
    np.interp: interp,
    np.cov: cov,
    np.corrcoef: corrcoef,
}
