"""`scipy.fft`: NumPy's Fourier transforms with SciPy's arguments, and the cosine and sine transforms of types 1 to 4.

A cosine transform is the real part of a Fourier transform of twice the length, between factors of absolute value one; a
sine transform is the imaginary part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library import fourier
from srcdiff.library.fourier import sized, transformed, with_axis_back, with_axis_last
from srcdiff.library.language import (
    axis_of,
    factor_of,
    first_of,
    interleaved_lengths,
    inverse_type,
    is_complex_type,
    known_axes,
    other_direction,
)


def fft(x: Any, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False, workers: Any = None) -> Any:
    return fourier.fft(x, n, axis, norm)


def ifft(x: Any, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False, workers: Any = None) -> Any:
    return fourier.ifft(x, n, axis, norm)


def rfft(x: Any, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False, workers: Any = None) -> Any:
    return fourier.rfft(x, n, axis, norm)


def irfft(
    x: Any, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.irfft(x, n, axis, norm)


def hfft(x: Any, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False, workers: Any = None) -> Any:
    return fourier.hfft(x, n, axis, norm)


def ihfft(
    x: Any, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.ihfft(x, n, axis, norm)


def fftn(
    x: Any, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.fftn(x, s, axes, norm)


def ifftn(
    x: Any, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.ifftn(x, s, axes, norm)


def rfftn(
    x: Any, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.rfftn(x, s, axes, norm)


def irfftn(
    x: Any, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.irfftn(x, s, axes, norm)


def fft2(
    x: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.fftn(x, s, axes, norm)


def ifft2(
    x: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.ifftn(x, s, axes, norm)


def rfft2(
    x: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.rfftn(x, s, axes, norm)


def irfft2(
    x: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.irfftn(x, s, axes, norm)


def hfftn(
    x: Any, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return fourier.irfftn(np.asarray(x).conj(), s, axes, other_direction(norm))


def ihfftn(
    x: Any, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return np.asarray(fourier.rfftn(x, s, axes, other_direction(norm)).conj())


def hfft2(
    x: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return hfftn(x, s, axes, norm)


def ihfft2(
    x: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, overwrite_x: Any = False, workers: Any = None
) -> Any:
    return ihfftn(x, s, axes, norm)


# ---------------------------------------------------------------------------------------- cosine and sine transforms


def dct(
    x: Any,
    type: Any = 2,  # noqa: A002 -- SciPy's name
    n: Any = None,
    axis: Any = -1,
    norm: Any = None,
    overwrite_x: Any = False,
    workers: Any = None,
    orthogonalize: Any = None,
) -> Any:
    return wave_transform(x, type, n, axis, norm, orthogonalize, True)


def idct(
    x: Any,
    type: Any = 2,  # noqa: A002 -- SciPy's name
    n: Any = None,
    axis: Any = -1,
    norm: Any = None,
    overwrite_x: Any = False,
    workers: Any = None,
    orthogonalize: Any = None,
) -> Any:
    return wave_transform(x, inverse_type(type), n, axis, other_direction(norm), orthogonalize, True)


def dst(
    x: Any,
    type: Any = 2,  # noqa: A002 -- SciPy's name
    n: Any = None,
    axis: Any = -1,
    norm: Any = None,
    overwrite_x: Any = False,
    workers: Any = None,
    orthogonalize: Any = None,
) -> Any:
    return wave_transform(x, type, n, axis, norm, orthogonalize, False)


def idst(
    x: Any,
    type: Any = 2,  # noqa: A002 -- SciPy's name
    n: Any = None,
    axis: Any = -1,
    norm: Any = None,
    overwrite_x: Any = False,
    workers: Any = None,
    orthogonalize: Any = None,
) -> Any:
    return wave_transform(x, inverse_type(type), n, axis, other_direction(norm), orthogonalize, False)


def dctn(
    x: Any,
    type: Any = 2,  # noqa: A002 -- SciPy's name
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    overwrite_x: Any = False,
    workers: Any = None,
    orthogonalize: Any = None,
) -> Any:
    return waves_over_axes(x, type, s, axes, norm, orthogonalize, True)


def idctn(
    x: Any,
    type: Any = 2,  # noqa: A002 -- SciPy's name
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    overwrite_x: Any = False,
    workers: Any = None,
    orthogonalize: Any = None,
) -> Any:
    return waves_over_axes(x, inverse_type(type), s, axes, other_direction(norm), orthogonalize, True)


def dstn(
    x: Any,
    type: Any = 2,  # noqa: A002 -- SciPy's name
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    overwrite_x: Any = False,
    workers: Any = None,
    orthogonalize: Any = None,
) -> Any:
    return waves_over_axes(x, type, s, axes, norm, orthogonalize, False)


def idstn(
    x: Any,
    type: Any = 2,  # noqa: A002 -- SciPy's name
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    overwrite_x: Any = False,
    workers: Any = None,
    orthogonalize: Any = None,
) -> Any:
    return waves_over_axes(x, inverse_type(type), s, axes, other_direction(norm), orthogonalize, False)


def waves_over_axes(x: Any, kind: Any, s: Any, axes: Any, norm: Any, orthogonalize: Any, is_cosine: Any) -> Any:
    x = np.asarray(x)
    axes = known_axes(s, axes, x.ndim)
    for axis, n in zip(axes, interleaved_lengths(s, len(axes)), strict=True):
        x = wave_transform(x, kind, n, axis, norm, orthogonalize, is_cosine)
    return x


def wave_transform(x: Any, kind: Any, n: Any, axis: Any, norm: Any, orthogonalize: Any, is_cosine: Any) -> Any:
    x = np.asarray(x)
    if is_complex_type(x.dtype):
        real = wave_transform(x.real, kind, n, axis, norm, orthogonalize, is_cosine)
        return np.asarray(real + 1j * wave_transform(x.imag, kind, n, axis, norm, orthogonalize, is_cosine))
    axis = axis_of(axis, x.ndim)
    lines = with_axis_last(x, axis) + 0.0
    lines = np.asarray(lines) if n is None else sized(np.asarray(lines), n)
    found = wave_lines(lines, kind, norm, orthogonalize, is_cosine)
    if lines.dtype == np.float32:
        found = np.asarray(found.astype(np.float32))
    return with_axis_back(found, axis)


def wave_lines(x: Any, kind: Any, norm: Any, orthogonalize: Any, is_cosine: Any) -> Any:
    """Along the last axis."""
    n = x.shape[x.ndim - 1]
    if n < 1 or (kind == 1 and is_cosine and n < 2):
        raise ValueError("Invalid number of data points specified")
    length = 2 * (n - 1 if is_cosine else n + 1) if kind == 1 else 2 * n
    is_orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    root = np.sqrt(2.0) if is_orthogonal else 1.0
    weights, scale = np.ones(n), np.full(n, 2.0 if is_cosine else -2.0)
    if is_cosine:
        if kind == 1:
            weights[0], weights[n - 1] = 0.5 * root, 0.5 * root
            scale[0] /= root
            scale[n - 1] /= root
        elif kind == 2:
            scale[0] /= root
        elif kind == 3:
            weights[0] = 0.5 * root
    elif kind == 2:
        scale[n - 1] /= root
    elif kind == 3:
        weights[n - 1] = 0.5 * root
    first = 1 if not is_cosine and (kind == 1 or kind == 3) else 0
    start = 1 if not is_cosine and (kind == 1 or kind == 2) else 0
    places, found = np.arange(n), np.arange(n)
    turned = np.zeros((*first_of(x.shape, -1), length), np.complex128)
    if kind == 3 or kind == 4:
        turned[..., first : first + n] = x * (weights * np.exp(-0.5j * np.pi / n * (places + first)))
    else:
        turned[..., first : first + n] = x * weights
    spectrum = transformed(turned, True)[..., start : start + n]
    if kind == 2:
        spectrum = spectrum * np.exp(-0.5j * np.pi / n * (found + start))
    elif kind == 4:
        spectrum = spectrum * np.exp(-0.25j * np.pi / n * (2 * found + 1))
    spectrum = np.asarray(spectrum)
    result = (spectrum.real if is_cosine else spectrum.imag) * scale
    factor = factor_of(norm, True)
    if factor == "n":
        return np.asarray(result * (1.0 / length))
    if factor == "sqrt":
        return np.asarray(result * (1.0 / np.sqrt(length)))
    return np.asarray(result)


FUNCTIONS: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(fft, ifft, rfft, irfft, hfft, ihfft, fftn, ifftn, rfftn, irfftn, fft2, ifft2, rfft2, irfft2),
        *(hfft2, ihfft2, hfftn, ihfftn, dctn, idctn, dstn, idstn),
        *(dct, idct, dst, idst, fourier.fftfreq, fourier.rfftfreq, fourier.fftshift, fourier.ifftshift),
    )
}
TAKES_COMPLEX = tuple(
    FUNCTIONS[name]
    for name in (
        *("fft", "ifft", "irfft", "hfft", "fftn", "ifftn", "irfftn", "fft2", "ifft2", "irfft2", "hfft2", "hfftn"),
        *("dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn", "fftshift", "ifftshift"),
    )
)
