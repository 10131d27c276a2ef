"""Fourier transforms: `np.fft`, and the same functions of `scipy.fft`.

All transforms are written with two unnormalized transforms of complex rows, each the adjoint of the other, and with two
between real rows and the first halves of their spectra. In the adjoints of these, elements that also stand for their
conjugates are weighted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.blas_lapack import Ruled, row
from srcdiff.library.language import (
    axes_moved_last,
    axis_moved_back,
    axis_of,
    complex_type,
    each,
    factor_of,
    first_of,
    interleaved_lengths,
    is_complex_type,
    known_axes,
    last_of,
    other_direction,
)
from srcdiff.library.linear_algebra import floats
from srcdiff.library.reductions import written


def forward_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    return (backward_line(out_bar),)


def backward_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    return (forward_line(out_bar),)


def forward_rows_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    return (backward_rows(out_bar),)


def backward_rows_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    return (forward_rows(out_bar),)


def real_line_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    n = len(a)
    return (to_real_line(weighted(out_bar, (n // 2 + 1,), n, 0.5), n),)


def real_line_tangent(a: Any, out: Any, a_dot: Any) -> Any:
    return real_line(a_dot)


def to_real_line_adjoint(a: Any, n: Any, out: Any, out_bar: Any) -> Any:
    return weighted(real_line(out_bar), (len(a),), n, 2.0), None


def to_real_line_tangent(a: Any, n: Any, out: Any, a_dot: Any, n_dot: Any) -> Any:
    return to_real_line(a_dot, n)


def real_rows_adjoint(a: Any, out: Any, out_bar: Any) -> Any:
    n = a.shape[1]
    return (to_real_rows(weighted(out_bar, (len(a), n // 2 + 1), n, 0.5), n),)


def real_rows_tangent(a: Any, out: Any, a_dot: Any) -> Any:
    return real_rows(a_dot)


def to_real_rows_adjoint(a: Any, n: Any, out: Any, out_bar: Any) -> Any:
    return weighted(real_rows(out_bar), a.shape, n, 2.0), None


def to_real_rows_tangent(a: Any, n: Any, out: Any, a_dot: Any, n_dot: Any) -> Any:
    return to_real_rows(a_dot, n)


def weighted(half: Any, shape: Any, n: Any, weight: Any) -> Any:
    """The first half of a spectrum of length n, where the elements that stand for two are multiplied by the weight."""
    result = np.empty(shape, half.dtype)
    for i in each(shape):
        (k,) = last_of(i, 1)
        result[i] = half[i] if k == 0 or 2 * k == n else weight * half[i]
    return result


_TO_REAL = 'np.fft.irfft({0}, {1}, -1, "forward")'
_BACKWARD = 'np.fft.ifft({0}, None, -1, "forward")'
forward_line = row("fft", "np.fft.fft({0})", "i->i", forward_adjoint, takes_complex=True)
backward_line = row("ifft", _BACKWARD, "i->i", backward_adjoint, takes_complex=True)
forward_rows = row("fft_of_rows", "np.fft.fft({0})", "ij->ij", forward_rows_adjoint, takes_complex=True)
backward_rows = row("ifft_of_rows", _BACKWARD, "ij->ij", backward_rows_adjoint, takes_complex=True)
_of_line = row("rfft", "np.fft.rfft({0})", "i->j", None, ("complex",))
_of_rows = row("rfft_of_rows", "np.fft.rfft({0})", "ij->ik", None, ("complex",))
_to_line = row("irfft", _TO_REAL, "i,->j", None, ("real",), takes_complex=True)
_to_rows = row("irfft_of_rows", _TO_REAL, "ij,->ik", None, ("real",), takes_complex=True)


def spectrum_of_line(a: Any) -> Any:
    return _of_line(a)


def spectra_of_rows(a: Any) -> Any:
    return _of_rows(a)


def line_of_spectrum(a: Any, n: Any) -> Any:
    return _to_line(a, n)


def rows_of_spectra(a: Any, n: Any) -> Any:
    return _to_rows(a, n)


real_line = Ruled(spectrum_of_line, real_line_adjoint, real_line_tangent)
real_rows = Ruled(spectra_of_rows, real_rows_adjoint, real_rows_tangent)
to_real_line = Ruled(line_of_spectrum, to_real_line_adjoint, to_real_line_tangent, takes_complex=True)
to_real_rows = Ruled(rows_of_spectra, to_real_rows_adjoint, to_real_rows_tangent, takes_complex=True)


# ------------------------------------------------------------------------------------------------------------ one axis


def as_complex(a: Any) -> Any:
    """The computed array, as complex numbers."""
    a = np.asarray(a)
    return a if is_complex_type(a.dtype) else np.asarray(a.astype(complex_type(a.dtype)))


def sized(a: Any, n: Any) -> Any:
    """The array cut to so many elements along the last axis, or padded with zeros."""
    if n < 1:
        raise ValueError("Invalid number of FFT data points (0 or less) specified.")
    count = a.shape[a.ndim - 1]
    result = np.zeros((*first_of(a.shape, -1), n), a.dtype)
    result[..., : min(n, count)] = a[..., : min(n, count)]
    return result


def with_axis_last(a: Any, axis: Any) -> Any:
    return a if axis == a.ndim - 1 else np.transpose(a, axes_moved_last(a.ndim, (axis,)))


def with_axis_back(a: Any, axis: Any) -> Any:
    return a if axis == a.ndim - 1 else np.transpose(a, axis_moved_back(a.ndim, axis))


def rows_of(a: Any) -> Any:
    """The array with two axes, of which the last one stays."""
    count = 1
    for size in first_of(a.shape, -1):
        count *= size
    return np.reshape(a, (count, a.shape[a.ndim - 1]))


def transformed(a: Any, is_forward: Any) -> Any:
    """The unnormalized transform of complex numbers along the last axis."""
    if a.shape[a.ndim - 1] < 1:
        raise ValueError("Invalid number of FFT data points (0) specified.")
    if a.ndim == 1:
        return forward_line(a) if is_forward else backward_line(a)
    if a.ndim == 2:
        return forward_rows(a) if is_forward else backward_rows(a)
    rows = rows_of(a)
    found = forward_rows(rows) if is_forward else backward_rows(rows)
    return np.reshape(found, a.shape)


def half_spectrum(a: Any) -> Any:
    """The first half of the unnormalized transform of real numbers along the last axis."""
    n = a.shape[a.ndim - 1]
    if n < 1:
        raise ValueError("Invalid number of FFT data points (0) specified.")
    if a.ndim == 1:
        return real_line(a)
    if a.ndim == 2:
        return real_rows(a)
    return np.reshape(real_rows(rows_of(a)), (*first_of(a.shape, -1), n // 2 + 1))


def of_half_spectrum(half: Any, n: Any) -> Any:
    """The inverse of `half_spectrum`, unnormalized, to n real numbers."""
    if half.ndim == 1:
        return to_real_line(half, n)
    if half.ndim == 2:
        return to_real_rows(half, n)
    return np.reshape(to_real_rows(rows_of(half), n), (*first_of(half.shape, -1), n))


def scaled(a: Any, n: Any, norm: Any, is_forward: Any) -> Any:
    """The normalized transform."""
    kind = factor_of(norm, is_forward)
    if kind == "n":
        return np.asarray(a * (1.0 / n))
    if kind == "sqrt":
        return np.asarray(a * (1.0 / np.sqrt(n)))
    return a


def along(a: Any, n: Any, axis: Any, norm: Any, is_forward: Any) -> Any:
    a = as_complex(a)
    axis = axis_of(axis, a.ndim)
    a = with_axis_last(a, axis)
    if n is not None:
        a = sized(a, n)
    found = scaled(transformed(a, is_forward), a.shape[a.ndim - 1], norm, is_forward)
    return with_axis_back(found, axis)


def fft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    return written(along(a, n, axis, norm, True), out)


def ifft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    return written(along(a, n, axis, norm, False), out)


def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """The first half of the spectrum. The second half is its conjugate."""
    a = np.asarray(a)
    if is_complex_type(a.dtype):
        raise TypeError("a real transform takes real numbers")
    a = floats(a)
    axis = axis_of(axis, a.ndim)
    a = with_axis_last(a, axis)
    if n is not None:
        a = sized(a, n)
    half = scaled(half_spectrum(a), a.shape[a.ndim - 1], norm, True)
    return written(with_axis_back(half, axis), out)


def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """The inverse of `rfft`: the second half of the spectrum is the conjugate of the first."""
    a = as_complex(a)
    axis = axis_of(axis, a.ndim)
    half = with_axis_last(a, axis)
    is_cut = n is not None
    if n is None:
        n = 2 * (half.shape[half.ndim - 1] - 1)
    if n < 1:
        raise ValueError("Invalid number of FFT data points (0 or less) specified.")
    if is_cut:
        half = sized(half, n // 2 + 1)
    found = scaled(of_half_spectrum(half, n), n, norm, False)
    return written(with_axis_back(found, axis), out)


def hfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    return irfft(as_complex(a).conj(), n, axis, other_direction(norm), out)


def ihfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    return written(np.asarray(rfft(a, n, axis, other_direction(norm)).conj()), out)


# --------------------------------------------------------------------------------------------------------- several axes


def over_axes(a: Any, sizes: Any, axes: Any, norm: Any, is_forward: Any) -> Any:
    for axis, n in zip(axes, sizes, strict=True):
        a = along(a, n, axis, norm, is_forward)
    return a


def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    a = as_complex(a)
    axes = known_axes(s, axes, a.ndim)
    return written(over_axes(a, interleaved_lengths(s, len(axes)), axes, norm, True), out)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    a = as_complex(a)
    axes = known_axes(s, axes, a.ndim)
    return written(over_axes(a, interleaved_lengths(s, len(axes)), axes, norm, False), out)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return fftn(a, s, axes, norm, out)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return ifftn(a, s, axes, norm, out)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    a = np.asarray(a)
    axes = known_axes(s, axes, a.ndim)
    sizes = interleaved_lengths(s, len(axes))
    found = rfft(a, sizes[-1], axes[-1], norm)
    return written(over_axes(found, first_of(sizes, -1), first_of(axes, -1), norm, True), out)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    a = as_complex(a)
    axes = known_axes(s, axes, a.ndim)
    sizes = interleaved_lengths(s, len(axes))
    found = over_axes(a, first_of(sizes, -1), first_of(axes, -1), norm, False)
    return irfft(found, sizes[-1], axes[-1], norm, out)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return rfftn(a, s, axes, norm, out)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return irfftn(a, s, axes, norm, out)


# --------------------------------------------------------------------------------------------------------- frequencies


def fftfreq(n: Any, d: Any = 1.0) -> Any:
    result = np.empty(n)
    for k in range(n):
        result[k] = (k if 2 * k < n else k - n) / (n * d)
    return result


def rfftfreq(n: Any, d: Any = 1.0) -> Any:
    return np.asarray(np.arange(n // 2 + 1) / (n * d))


def fftshift(x: Any, axes: Any = None) -> Any:
    x = np.asarray(x)
    for axis in known_axes(None, axes, x.ndim):
        x = np.roll(x, x.shape[axis] // 2, axis)
    return x


def ifftshift(x: Any, axes: Any = None) -> Any:
    x = np.asarray(x)
    for axis in known_axes(None, axes, x.ndim):
        x = np.roll(x, -(x.shape[axis] // 2), axis)
    return x


OF_NUMPY: dict[Any, Any] = {
    getattr(np.fft, function.__name__): function
    for function in (
        *(fft, ifft, rfft, irfft, hfft, ihfft, fftn, ifftn, fft2, ifft2, rfftn, irfftn, rfft2, irfft2),
        *(fftfreq, rfftfreq, fftshift, ifftshift),
    )
}
