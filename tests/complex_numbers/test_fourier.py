"""Fourier transforms: `np.fft` and `scipy.fft` in differentiated functions, against differences and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import fft, signal

import srcdiff
from srcdiff import DifferentiationError
from srcdiff.library import scipy_fft

random = np.random.default_rng(5)
PROGRAMS = []


def planar(*shape):
    return random.normal(size=shape) + 1j * random.normal(size=shape)


def real(*shape):
    return random.normal(size=shape)


def prog(*arguments):
    def add(function):
        PROGRAMS.append(pytest.param(function, arguments, id=function.__name__))
        return function

    return add


WEIGHTS = planar(6)


@prog(planar(6))
def forward_and_back(z):
    return np.sum(np.abs(np.fft.fft(z) * WEIGHTS) ** 2) + (np.fft.ifft(z) * WEIGHTS).real.sum()


@prog(real(7))
def real_transforms(x):
    first = np.sum(np.abs(np.fft.rfft(x)[1:]))
    return first + np.sum(np.abs(np.fft.fft(x, n=5, norm="ortho"))) + np.sum(np.fft.rfft(x, 12).imag[1:] ** 2)


@prog(planar(4))
def to_real_numbers(z):
    lengths = np.sum(np.fft.irfft(z) ** 3) + np.sum(np.fft.irfft(z, 12) ** 3) + np.sum(np.fft.irfft(z, 4) ** 3)
    hermitian = np.sum(np.fft.hfft(z) ** 2) + np.sum(np.abs(np.fft.ihfft(z.real)))
    return lengths + hermitian + np.sum(np.fft.irfft(z, 7, norm="ortho") ** 3)


@prog(planar(3, 4))
def two_axes(z):
    first = np.sum(np.abs(np.fft.fft2(z)[1:]))
    return (
        first
        + np.sum(np.abs(np.fft.fft(z, axis=0) * z))
        + np.sum(np.abs(np.fft.ifftn(z)[0]))
        + np.sum(np.abs(np.fft.fft(z.T)[0]))
    )


@prog(real(3, 4))
def real_in_two_axes(x):
    first = np.sum(np.abs(np.fft.rfft2(x)[1:]))
    return first + np.sum(np.fft.irfft2(np.fft.rfft2(x) ** 2) ** 2) + np.sum(np.abs(np.fft.rfftn(x, axes=(0,))))


@prog(planar(2, 3, 4))
def three_axes(z):
    first = np.sum(np.abs(np.fft.fftn(z)[1]))
    others = np.sum(np.abs(np.fft.fft(z, axis=1)[0]))
    return first + others + np.sum(np.abs(np.fft.fftn(z, s=(2, 5), axes=(1, 2), norm="forward")[1]))


@prog(planar(8), real(8))
def split_step(psi, v):
    k = 2 * np.pi * np.fft.fftfreq(8, 0.3)
    p = psi
    for _ in range(3):
        p = p * np.exp(-0.05j * v)
        p = np.fft.ifft(np.exp(-0.05j * k**2) * np.fft.fft(p))
        p = p * np.exp(-0.05j * v)
    return np.sum(np.abs(p) ** 2 * np.arange(8))


@prog(planar(6))
def shifts(z):
    a = np.fft.fftshift(z) * np.arange(6)
    b = np.fft.ifftshift(np.fft.fftshift(z)[:5]) * np.arange(5)
    return np.abs(a).sum() + np.abs(b).sum() + np.fft.rfftfreq(6).sum()


@prog(planar(6))
def views(z):
    return np.sum(np.abs(np.fft.fft(z[::2]) * np.arange(3))) + np.sum(np.abs(np.fft.fft(z[::-1]) * np.arange(6)))


@prog(planar(6), planar(4), real(4))
def convolutions(z, w, x):
    of_line = np.sum(np.abs(signal.fftconvolve(z, w)) ** 3) + np.sum(np.abs(signal.oaconvolve(z, x, "same")) ** 3)
    valid = signal.fftconvolve(w, z, "valid") * np.arange(3)
    direct = np.convolve(z, w) * np.arange(9) + np.correlate(z, w, "full") - signal.correlate(z, w)
    return of_line + np.sum(valid.imag) + np.sum(np.abs(direct) ** 3) + np.sum(np.abs(np.correlate(w, z, "same")) ** 3)


@prog(real(3, 4), real(2, 3))
def convolutions_of_planes(x, y):
    rows = signal.fftconvolve(x, y[:1], axes=1)
    return np.sum(signal.fftconvolve(x, y, "valid") ** 3) + np.sum(rows**3)


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS)
def test_derivatives_agree_with_differences(function, arguments):
    srcdiff.check(function, *arguments, wrt=tuple(range(len(arguments))), backend="python")


@pytest.mark.parametrize(("function", "arguments"), [p for p in PROGRAMS if p.id in ("to_real_numbers", "split_step")])
def test_second_derivatives_agree(function, arguments):
    srcdiff.check(function, *arguments, wrt=tuple(range(len(arguments))), backend="python", order=2)


@pytest.mark.parametrize(("function", "arguments"), [p for p in PROGRAMS if p.id in ("views", "real_transforms")])
def test_compiled_gradients_are_those_of_the_source(function, arguments):
    wrt = tuple(range(len(arguments)))
    expected = srcdiff.grad(function, wrt=wrt, backend="python")(*arguments)
    for one, other in zip(expected, srcdiff.grad(function, wrt=wrt)(*arguments), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-11)


def waves(x):
    cosines = np.sum(fft.dct(x)[0] ** 3) + np.sum(fft.dct(x, 1) ** 3) + np.sum(fft.dct(x, 4) ** 3)
    sines = np.sum(fft.dst(x, 1) ** 3) + np.sum(fft.idst(x, 3, norm="ortho", axis=0) ** 3)
    return cosines + sines + np.sum(fft.idct(x, n=4) ** 3)


def test_transforms_of_scipy_have_derivatives():
    srcdiff.check(waves, real(2, 6), backend="python")
    srcdiff.check(lambda z: np.sum(np.abs(fft.fft(z, workers=1) * np.arange(6))), planar(6), backend="python")


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_cosine_and_sine_transforms_are_those_of_scipy(name, kind, norm):
    x = real(2, 6)
    for orthogonalize in (None, True, False):
        options = {"norm": norm, "orthogonalize": orthogonalize}
        found = getattr(scipy_fft, name)(x, kind, **options)
        np.testing.assert_allclose(found, getattr(fft, name)(x, kind, **options), atol=1e-12)
    assert getattr(scipy_fft, name)(x.astype(np.float32), kind).dtype == np.float32


def several_axes(x, z):
    squares = np.sum(fft.dctn(x, 2, (3, 7), norm="ortho") ** 3) + np.sum(fft.idctn(x, 3) ** 2)
    sines = np.sum(fft.dstn(x, s=(5,), axes=(0,)) ** 3) + np.sum(fft.idstn(x, orthogonalize=True) ** 2)
    real = np.sum(fft.hfftn(z, (3, 5)) ** 3) + np.sum(fft.hfft2(z, norm="forward") ** 2)
    half = np.sum(np.abs(fft.ihfftn(x, (3, 5), norm="ortho"))) + np.sum(np.abs(fft.ihfft2(x)))
    return squares + sines + real + half + np.sum(np.abs(fft.dct(z, 1)) + np.abs(fft.dstn(z)))


def test_transforms_over_several_axes_have_derivatives():
    srcdiff.check(several_axes, real(3, 4), planar(3, 4), wrt=(0, 1), backend="python")


def test_adjoint_of_the_transform_is_the_transform_back_without_a_factor():
    z, seed = planar(8), planar(8)
    _, pullback = srcdiff.vjp(lambda z: np.fft.fft(z), z, backend="python")
    np.testing.assert_allclose(pullback(seed)[0], np.fft.ifft(seed) * 8)


def test_singles_stay_singles():
    def power(x):
        return np.sum(np.abs(np.fft.fft(x)) ** 2)

    x = real(5).astype(np.float32)
    gradient = srcdiff.grad(power)(x)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, 10 * x, rtol=1e-5, atol=1e-5)


def test_convolution_of_arrays_with_different_axes_raises_as_scipys():
    with pytest.raises(ValueError, match="same dimensionality"):
        srcdiff.grad(lambda x, y: np.sum(signal.fftconvolve(x, y)), backend="python")(real(3, 3), real(3))


def test_real_transforms_refuse_complex_numbers():
    with pytest.raises(DifferentiationError):
        srcdiff.grad(lambda z: np.abs(np.fft.rfft(z)).sum(), backend="python")(planar(4))


def test_transform_of_nothing_raises_as_numpys():
    with pytest.raises(ValueError, match="Invalid number of FFT data points"):
        srcdiff.grad(lambda z: np.abs(np.fft.fft(z)).sum(), backend="python")(planar(0))
