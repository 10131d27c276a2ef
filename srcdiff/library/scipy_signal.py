"""`scipy.signal`: filters and convolutions."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from srcdiff.library import fourier, signals
from srcdiff.library.language import is_complex_type, known_axes, part, structural, unsupported
from srcdiff.library.linear_algebra import floats
from srcdiff.library.products import of_one_type
from srcdiff.library.scipy_ndimage import place_of


def lfilter(b: Any, a: Any, x: Any, axis: Any = -1, zi: Any = None) -> Any:
    """The direct form: the outputs themselves are the state."""
    b, a, x = np.atleast_1d(np.asarray(floats(b))), np.atleast_1d(np.asarray(floats(a))), np.asarray(floats(x))
    if a[0] == 0.0:
        raise ValueError("the first coefficient a[0] is zero")
    if x.ndim == 1:
        if zi is None:
            return filtered(b, a, x, np.zeros(0))
        zi = np.asarray(floats(zi))
        y = filtered(b, a, x, zi)
        return y, final_state(b, a, x, y, zi)
    if zi is not None:
        unsupported("`lfilter` of several rows with `zi`")
    x = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    rows = np.reshape(x, (-1, x.shape[-1]))
    result = np.empty(rows.shape, output_type(b.dtype, a.dtype, x.dtype))
    for r in range(rows.shape[0]):
        result[r] = filtered(b, a, np.asarray(rows[r]), np.zeros(0))
    return np.moveaxis(np.reshape(result, x.shape), -1, axis)


@structural
def output_type(*dtypes: Any) -> Any:
    """The type of the outputs of a filter: float64, or complex."""
    return np.result_type(np.float64, *dtypes)


def filtered(b: Any, a: Any, x: Any, zi: Any) -> Any:
    y = np.empty(len(x), output_type(b.dtype, a.dtype, x.dtype, zi.dtype))
    for n in range(len(x)):
        total = zi[n] if n < len(zi) else 0.0
        for k in range(min(len(b), n + 1)):
            total += b[k] / a[0] * x[n - k]
        for k in range(1, min(len(a), n + 1)):
            total -= a[k] / a[0] * y[n - k]
        y[n] = total
    return y


def final_state(b: Any, a: Any, x: Any, y: Any, zi: Any) -> Any:
    count = max(len(a), len(b)) - 1
    state = np.zeros(count, y.dtype)
    for k in range(count):
        total = zi[k + len(x)] if k + len(x) < len(zi) else 0.0
        for j in range(k + 1, count + 1):
            n = len(x) + k - j
            if n >= 0:
                if j < len(b):
                    total += b[j] / a[0] * x[n]
                if j < len(a):
                    total -= a[j] / a[0] * y[n]
        state[k] = total
    return state


def convolve(in1: Any, in2: Any, mode: Any = "full", method: Any = "auto") -> Any:
    first, second = np.asarray(in1), np.asarray(in2)
    if first.ndim == 1 and second.ndim == 1:
        if mode == "same":
            start = (len(second) - 1) // 2
            return np.asarray(signals.convolve(first, second, "full")[start : start + len(first)])
        return signals.convolve(first, second, mode)
    if first.ndim != 2 or second.ndim != 2:
        return fftconvolve(first, second, mode)
    full = in_plane(first, second)
    rows, columns = first.shape
    if mode == "full":
        return full
    if mode == "same":
        top, left = (second.shape[0] - 1) // 2, (second.shape[1] - 1) // 2
        return np.ascontiguousarray(full[top : top + rows, left : left + columns])
    if mode != "valid":
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    fits = rows >= second.shape[0] and columns >= second.shape[1]
    is_inside = second.shape[0] >= rows and second.shape[1] >= columns
    if not (fits or is_inside):
        raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
    height, width = min(rows, second.shape[0]), min(columns, second.shape[1])
    bottom, right = max(rows, second.shape[0]), max(columns, second.shape[1])
    return np.ascontiguousarray(full[height - 1 : bottom, width - 1 : right])


def in_plane(first: Any, second: Any) -> Any:
    shape = first.shape[0] + second.shape[0] - 1, first.shape[1] + second.shape[1] - 1
    result = np.zeros(shape, np.result_type(first, second))
    for i in range(first.shape[0]):
        for j in range(first.shape[1]):
            for k in range(second.shape[0]):
                for m in range(second.shape[1]):
                    result[i + k, j + m] += first[i, j] * second[k, m]
    return result


def correlate(in1: Any, in2: Any, mode: Any = "full", method: Any = "auto") -> Any:
    second = np.asarray(in2)
    if second.ndim == 1:
        return convolve(in1, np.asarray(second[::-1].conj()), mode)
    return convolve(in1, np.asarray(np.flip(second).conj()), mode)


def convolve2d(in1: Any, in2: Any, mode: Any = "full", boundary: Any = "fill", fillvalue: Any = 0) -> Any:
    if boundary != "fill" or fillvalue != 0:
        unsupported("`convolve2d` with a boundary")
    return convolve(in1, in2, mode)


def fftconvolve(in1: Any, in2: Any, mode: Any = "full", axes: Any = None) -> Any:
    """By products of Fourier transforms, of fast lengths."""
    first, second = of_one_type(floats(in1), floats(in2))
    if first.ndim != second.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    axes = known_axes(None, axes, first.ndim)
    lengths: Any = ()
    for axis in axes:
        lengths = (*lengths, fast_length(first.shape[axis] + second.shape[axis] - 1))
    if is_complex_type(first.dtype):
        product = fourier.fftn(first, lengths, axes) * fourier.fftn(second, lengths, axes)
        found = fourier.ifftn(product, lengths, axes)
    else:
        product = fourier.rfftn(first, lengths, axes) * fourier.rfftn(second, lengths, axes)
        found = fourier.irfftn(product, lengths, axes)
    fits, is_inside = True, True
    for axis in axes:
        fits = fits and first.shape[axis] >= second.shape[axis]
        is_inside = is_inside and second.shape[axis] >= first.shape[axis]
    if mode == "valid" and not (fits or is_inside):
        raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
    for axis in axes:
        n, m = first.shape[axis], second.shape[axis]
        if mode == "full":
            found = part(found, axis, 0, n + m - 1)
        elif mode == "same":
            found = part(found, axis, (m - 1) // 2, (m - 1) // 2 + n)
        elif mode == "valid":
            found = part(found, axis, min(n, m) - 1, max(n, m))
        else:
            raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    return np.ascontiguousarray(found)


def oaconvolve(in1: Any, in2: Any, mode: Any = "full", axes: Any = None) -> Any:
    """The same numbers as of `fftconvolve`."""
    return fftconvolve(in1, in2, mode, axes)


def fast_length(n: Any) -> Any:
    """The smallest length from n on with no prime factor above 5."""
    length = n
    while length > 1:
        rest = length
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            break
        length += 1
    return length


@structural
def savgol_weights(window_length: Any, polyorder: Any, deriv: Any, delta: Any) -> Any:
    """For each position in a window, the weights of its elements. They are constants, which SciPy computes."""
    if not all(isinstance(x, int) for x in (window_length, polyorder, deriv)) or not isinstance(delta, int | float):
        raise ValueError("the parameters of `savgol_filter` must be known at compile time")
    if window_length % 2 == 0:
        raise NotImplementedError("`savgol_filter` with an even window")
    coefficients = importlib.import_module("scipy.signal").savgol_coeffs
    given = [
        coefficients(window_length, polyorder, deriv=deriv, delta=delta, pos=k, use="dot") for k in range(window_length)
    ]
    return tuple(tuple(row.tolist()) for row in given)


def savgol_filter(
    x: Any,
    window_length: Any,
    polyorder: Any,
    deriv: Any = 0,
    delta: Any = 1.0,
    axis: Any = -1,
    mode: Any = "interp",
    cval: Any = 0.0,
) -> Any:
    x = np.ascontiguousarray(np.moveaxis(np.asarray(floats(x)), axis, -1))
    weights = np.array(savgol_weights(window_length, polyorder, deriv, delta))
    if mode == "interp" and window_length > x.shape[-1]:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    rows = np.reshape(x, (-1, x.shape[-1]))
    result = np.zeros(rows.shape, np.float64)
    half, n = window_length // 2, rows.shape[1]
    for r in range(rows.shape[0]):
        for i in range(n):
            first, line = i - half, half
            if mode == "interp":
                first = min(max(first, 0), n - window_length)
                line = i - first
            for k in range(window_length):
                place = first + k if mode == "interp" else place_of(first + k, n, mode)
                if place >= 0:
                    result[r, i] += weights[line, k] * rows[r, place]
                else:
                    result[r, i] += weights[line, k] * cval
    return np.moveaxis(np.reshape(result, x.shape), -1, axis)


FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (lfilter, convolve, correlate, convolve2d, fftconvolve, oaconvolve, savgol_filter)
}
"""By the name in `scipy.signal`."""

TAKES_COMPLEX = frozenset((convolve, correlate, convolve2d, fftconvolve, oaconvolve, lfilter))
"""The functions that are right for complex numbers, too."""
