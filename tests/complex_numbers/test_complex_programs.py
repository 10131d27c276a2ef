"""Programs of complex numbers: values, gradients and tangents, to second order, against differences.

`srcdiff.check` compares the value with that of the function, the gradient with differences along the real and the
imaginary axis of every number, and both modes with each other.
"""

from __future__ import annotations

import cmath

import numpy as np
import pytest
from scipy import integrate, linalg, signal

import srcdiff

random = np.random.default_rng(3)
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


@prog(planar(4))
def sums(z):
    return np.sum(np.abs(z) ** 2) + np.sum(z * z).imag


@prog(planar(4), real(4))
def mixed(z, x):
    w = z * x + np.exp(1j * x)
    return np.sum((w * np.conj(w)).real) + np.sum(np.angle(z + 3))


@prog(planar(3, 4))
def axis(z):
    s = np.sum(z, axis=0)
    m = np.mean(z * z.conj(), axis=1)
    return np.sum(np.abs(s)) + np.sum(m.real)


@prog(planar(5), real(5))
def writes(z, x):
    w = np.zeros(5, dtype=complex)
    for i in range(5):
        w[i] = z[i] * x[i]
        if i > 0:
            w[i] += 1j * w[i - 1]
    w *= 2.0
    w[1:] -= z[:-1]
    return np.sum(w.real * w.imag)


@prog(planar(5))
def views(z):
    w = z.copy()
    a = w.real
    b = w.imag
    a[:] = a * 2.0
    w[2] = 1j * w[1]
    b[1:] += a[:-1] ** 2
    w.real[0] = b[3]
    s = 0.0
    for i in range(5):
        s += a[i] * b[i] ** 2
    return s + np.sum(np.abs(w))


@prog(planar(4), real(3, 4))
def parts_from_slices(z, x):
    w = z.copy()
    c = np.cos(x)
    w.real[:] = c[1, 0:4]
    w.imag[1:] = w.imag[:-1]
    w.imag[:2] = w.real[2:]
    w.real[::-1] = c[:, 1][[0, 1, 2, 0]]
    return np.sum(w.real * w.imag**2) + np.abs(np.sum(w * z))


@prog(planar(4), real(4))
def fill(z, x):
    w = np.empty(4, complex)
    w.real = x
    w.imag = x**2
    w[:] = w * z
    return (w.sum() * np.conj(z[0])).real


@prog(0.3 + 0.5j, 1.2)
def scalars(z, x):
    r, p = cmath.polar(z)
    w = cmath.rect(r * x, p) + cmath.log(z, 2.0) + complex(x, r)
    return (w**3 / (1 + w)).real + abs(w)


@prog(0.3 + 0.5j)
def loop(z):
    w = 0j
    for k in range(6):
        w = w * w + z
        if abs(w) > 2.0:
            break
    return abs(w)


@prog(0.3 + 0.5j)
def whil(z):
    w = z
    n = 0
    while abs(w) < 3.0 and n < 20:
        w = w * w + 1.1 * z + 0.5
        n += 1
    return w.real - w.imag * n


@prog(planar(4))
def cond(z):
    w = np.where(z.real > 0, z * z, z.conjugate())
    m = w[z.imag > 0]
    return np.sum(m.real) + np.sum(np.abs(w))


@prog(planar(4))
def promoted(z):
    acc = 0.0
    for i in range(4):
        acc = acc + z[i] * (i + 1)
    return abs(acc)


@prog(planar(4))
def funcs(z):
    circular = np.sin(z) + np.tan(z) - np.arctan(z) * np.arccos(z) + np.arcsin(z)
    hyperbolic = np.cosh(z) - np.tanh(z) + np.sinh(z) + np.arcsinh(z) + np.arccosh(z) + np.arctanh(z)
    logarithms = np.log10(z) + np.log1p(z) + np.log2(z) + np.sqrt(z)
    return np.sum(circular + hyperbolic + logarithms + np.expm1(z) + np.exp2(z) + np.reciprocal(z) * np.square(z)).real


@prog(planar(4))
def funcs_i(z):
    product = np.sin(z) * np.cosh(z) - np.tanh(z) * np.arctan(z) + np.arcsinh(z) * np.sqrt(z)
    return np.sum(product + np.expm1(z) * np.log1p(z)).imag + np.sum(np.sign(z) * np.arange(4)).real


@prog(planar(4), real(4))
def powers(z, x):
    return np.sum(z**2 + z**3 + z**-1 + z**0.5 + (x * x + 1) ** z + z**z + 2.0**z + z**x).real


@prog(real(6))
def realin(x):
    z = x[:3] + 1j * x[3:]
    return (np.prod(z)).imag + np.sum(np.cumsum(z) * z).real


@prog(planar(3))
def cumprod(z):
    return np.sum(np.cumprod(z)).real + np.max(np.abs(z)) + np.linalg.norm(z)


@prog(planar(3), planar(3))
def vd(z, w):
    return np.vdot(z, w).real + np.dot(z, w).imag + (z @ w).real


@prog(planar(3, 3), planar(3))
def mv(a, z):
    return np.sum(np.abs(a @ z)) + (z @ a @ z.conj()).real + np.sum((a @ a.T).imag) + np.trace(a @ a.conj().T).real


@prog(planar(3, 3), real(3, 3))
def mixedmm(a, b):
    return np.sum((a @ b).real ** 2) + np.sum((b @ a).imag) + np.sum(np.abs(b @ a @ b[0]))


@prog(planar(3, 3), planar(3))
def solve(a, z):
    return np.sum(np.abs(np.linalg.solve(a, z)))


@prog(planar(3, 3))
def inv(a):
    return np.sum(np.abs(np.linalg.inv(a))) + abs(np.linalg.det(a))


@prog(planar(3, 4), planar(4, 2))
def ein(a, b):
    return np.sum(np.abs(np.einsum("ij,jk->ik", a, b))) + np.abs(np.einsum("ij,ij->", a, a.conj()))


@prog(planar(4))
def stacked(z):
    w = np.concatenate([z, z.conj()]).reshape(2, 4)
    v = np.stack([z, 2 * z], axis=1)
    return np.sum(np.abs(w[1] - v[:, 0])) + (v.T[1] * z[::-1]).sum().real


@prog(planar(4))
def lists(z):
    out = []
    for i in range(4):
        out.append(z[i] * 1j)
    return sum([abs(o) ** 2 for o in out]) + np.array(out).real.sum()


@prog(planar(4))
def recur(z):
    def f(w, n):
        if n == 0:
            return w
        return f(w * w * 0.5 + z[n], n - 1)

    return f(z[0], 3).imag


@prog(planar(4), real(4))
def augreal(z, x):
    w = z * 2
    w.real += x
    w.imag *= 3
    w.imag[1:] -= x[1:]
    return np.sum(np.abs(w))


@prog(planar(3, 3))
def slog(a):
    sign, size = np.linalg.slogdet(a)
    return size + (sign * (1 + 2j)).real


@prog(planar(3))
def varstd(z):
    return np.var(z) + np.std(z) + np.average(z, weights=np.arange(3) + 1.0).real + np.vdot(z, 1j * z).imag


@prog(planar(3, 4))
def matnorm(z):
    return np.linalg.norm(z) + np.linalg.norm(z, 1) + np.sum(np.linalg.norm(z, axis=1)) + np.linalg.norm(z[0], 3)


@prog(planar(5))
def conv(z):
    return np.sum(np.abs(np.convolve(z, z[:2]))) + np.abs(np.polyval(z, z[0])) + np.sum(np.diff(z).imag ** 2)


@prog(planar(5).astype(np.complex64), real(5).astype(np.float32))
def single(z, x):
    return np.sum(np.abs(z * x + 1j) ** 2)


@prog(planar(2, 2, 2))
def batchsolve(a):
    return np.sum(np.abs(np.linalg.solve(a, a[0]))) + np.sum(np.abs(a @ a))


@prog(planar(4))
def inplace(z):
    w = z.copy()
    for k in range(3):
        w[1:] += 0.5j * w[:-1]
        w[0] /= w[3]
    return np.sum(w.real) ** 2


@prog(planar(6))
def sincf(z):
    w = z.reshape(2, 3)
    u = w.conj().T @ w
    return np.trace(u).real + abs(u[0, 1]) + np.sum(np.ravel(u)[::2].imag)


@prog(planar(4))
def eqs(z):
    t = 0.0
    for i in range(4):
        if z[i] != 0 and z[i] == z[i]:
            t += (z[i] / (z[i] + 1)).real
        if z[i]:
            t += z[i].imag
    return t


@prog(planar(3), 0.3 + 0.5j)
def further_functions(z, s):
    angles = np.sum(np.angle(z, deg=True)) + np.angle(s, True)
    powers = np.sum(np.float_power(z, 1.5)).real + abs(np.float_power(s, 2))
    rounded = np.sum((z * np.rint(3 * z)).real) + np.sum(np.abs(z * np.round(3 * z, 1))) + (np.round(s, 1) * s).imag
    near = z[0].real if cmath.isclose(s, s + 1e-13) and not cmath.isclose(s, z[0], abs_tol=1e-3) else 0.0
    return angles + powers + rounded + near


@prog(planar(2), planar(2, 3), 0.4)
def sequences(z, a, x):
    lines = np.sum(np.abs(np.linspace(z[0], z[1], 5)) ** 2) + np.sum(np.linspace(x, z[1], 4, endpoint=False).imag ** 2)
    powers = np.sum(np.abs(np.logspace(z[0], z[1], 4))) + np.sum(np.geomspace(z[0], z[1], 4).imag ** 2)
    return lines + powers + np.sum(np.abs(np.linspace(a[0], a[1], 3, axis=-1)))


@prog(planar(3, 5), real(5) ** 2 + 0.5)
def samples(a, w):
    covariances = np.sum(np.abs(np.cov(a)) ** 2) + np.cov(a[0]).real + np.sum(np.cov(a, aweights=w).imag ** 3)
    fitted = np.polyfit(a[0], a[1], 2, w=w)
    return covariances + np.sum(np.abs(np.corrcoef(a))) + np.sum(np.abs(fitted))


@prog(planar(3, 3))
def arrays(a):
    z = np.append(a[0], complex(np.nan, 1.0))
    sums = np.abs(np.sum(np.nancumsum(z) * np.nancumprod(z))) + np.sum(np.abs(np.nan_to_num(z, nan=0.5)))
    triangles = a[np.triu_indices_from(a, 1)] * a[np.tril_indices_from(a, -1)] * a[np.diag_indices_from(a)]
    windows = np.lib.stride_tricks.sliding_window_view(a[0], 2).sum(axis=1)
    pieces = np.piecewise(a, [a.real > 0, a.imag > 5], [lambda v: v * v, 0.5, lambda v: 1j * v])
    return sums + np.sum(np.abs(triangles)) + np.sum(np.abs(windows) ** 3) + np.sum(np.abs(pieces))


@prog(planar(5), planar(3, 4))
def sorted_numbers(z, a):
    w = z.copy()
    w.sort()
    columns = np.sum(np.abs(np.sort(a, axis=0) * np.arange(12).reshape(3, 4)))
    return columns + np.sum((w * np.arange(5) * 1j).real) + np.sum((z[np.argsort(z)] * z).imag) + np.sort(z)[1].imag


@prog(np.array([0j, 0.3 + 0.2j, 1e-4j, 0.6 - 0.2j, 2.0 - 1j]))
def cardinal_sines(z):
    return np.sum(np.sinc(z).real * np.arange(5)) + np.sum(np.sinc(0.5 * z).imag) + np.sinc(z[3]).imag


@prog(planar(4), np.array([-1.0, 0.3, 2.2, 9.0]), 1.7)
def tables(z, x, y):
    inside = np.interp(x, np.arange(4.0), z, right=2j)
    around = np.interp(y, np.arange(4.0), z, period=5.5)
    return np.sum(np.abs(inside) ** 2) + around.imag + np.sum(np.interp(x, np.arange(4.0), z, left=1).imag)


@prog(np.array([1j, 2, np.nan, 4 + 1j, 3 - 1j, 0.3]))
def without_nan(z):
    return np.nanvar(z) + np.sum(np.nanstd(z.reshape(2, 3), axis=0) * np.arange(3))


@prog(planar(6), real(3), planar(2))
def filters_and_integrals(z, b, zi):
    y, zf = signal.lfilter(b, np.array([1.0, 0.3, 0.1]), z, zi=zi)
    rows = signal.lfilter(b * 1j, [1.0, 0.5], z.reshape(2, 3))
    integrals = abs(integrate.simpson(z, dx=0.3)) + np.sum(np.abs(integrate.cumulative_trapezoid(z, initial=0)))
    return np.sum(np.abs(y) ** 2) + np.sum(np.abs(zf)) + np.sum(np.abs(rows)) + integrals


@prog(planar(2), 0.7)
def evolution_by_scipy(y0, e):
    def slope(t, y, a):
        return np.array([1j * a * y[1], 1j * y[0] - 0.1 * y[1]])

    span, options = (0.0, 1.0), {"rtol": 1e-9, "atol": 1e-10}
    found = integrate.solve_ivp(slope, span, y0, t_eval=[0.2, 0.7], args=(e,), dense_output=True, **options)
    inside = abs(found.sol(0.3)[0]) + np.sum(found.sol(np.array([0.1, 0.4])).imag)
    return np.sum(np.abs(found.y) ** 2 * np.arange(4).reshape(2, 2)) + inside


@prog(np.array([0j, 1 + 1j]))
def zeroabs(z):
    return np.abs(z[1]) + np.abs(z[1]) ** 2 + (z[0] * z[1]).real


@prog(planar(3))
def constant_powers(z):
    w = z ** (1 + 2j)
    v = np.float_power(z, 2)
    return np.sum(0.7 * w.real + w.imag - v.real * v.imag)


@prog(planar(3))
def counted_numbers(z):
    return max(np.linalg.norm(z, 0), 1.0) * np.abs(z[0])


@prog(0.3 + 0.5j, 0.4)
def recursion_that_only_reads(z, x):
    def step(size, depth):
        nonlocal x
        if depth <= 0:
            return
        x = 0.5
        step(z - np.empty(4), depth - 1)

    step(0.5, 2)
    return abs(z) * x


@pytest.mark.parametrize(("function", "arguments"), PROGRAMS)
def test_derivatives_agree_with_differences(function, arguments):
    srcdiff.check(function, *arguments, wrt=tuple(range(len(arguments))), backend="python")


SECOND = (
    *("mixed", "writes", "views", "scalars", "loop", "funcs", "powers", "vd", "cardinal_sines"),
    *("mv", "solve", "slog", "inv", "matnorm"),
)


@pytest.mark.parametrize(("function", "arguments"), [p for p in PROGRAMS if p.id in SECOND])
def test_second_derivatives_agree(function, arguments):
    srcdiff.check(function, *arguments, wrt=tuple(range(len(arguments))), backend="python", order=2)


COMPILED = ("writes", "views", "solve", "slog")


@pytest.mark.parametrize(("function", "arguments"), [p for p in PROGRAMS if p.id in COMPILED])
def test_compiled_gradients_are_those_of_the_source(function, arguments):
    wrt = tuple(range(len(arguments)))
    expected = srcdiff.grad(function, wrt=wrt, backend="python")(*arguments)
    for one, other in zip(expected, srcdiff.grad(function, wrt=wrt)(*arguments), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-11)


def evolved(y0, e):
    h = np.array([[1.0, 0.5j], [-0.5j, e]])
    y = srcdiff.odeint(lambda y, t: -1j * (h @ y), y0, np.array([0.0, 0.5, 1.0]), rtol=1e-10, atol=1e-12)
    number = srcdiff.odeint(lambda y, t, a: 1j * a * y, y0[0, 0], np.array([0.0, 1.0]), (e,), rtol=1e-10, atol=1e-12)
    return np.sum(np.abs(y[-1]) ** 2 * np.array([1.0, 3.0])) + y[1, 0, 1].imag + number[1].real


def evolved_exactly(y0, e):
    h = np.array([[1.0, 0.5j], [-0.5j, e]])
    last, middle = linalg.expm(-1j * h) @ y0, linalg.expm(-0.5j * h) @ y0
    return np.sum(np.abs(last) ** 2 * np.array([1.0, 3.0])) + middle[0, 1].imag + (np.exp(1j * e) * y0[0, 0]).real


def test_differential_equations_of_complex_states_have_the_derivatives_of_their_solutions():
    given = planar(2, 2), 0.7
    found = srcdiff.value_and_grad(evolved, wrt=("y0", "e"), backend="python")(*given)
    expected = srcdiff.value_and_grad(evolved_exactly, wrt=("y0", "e"), backend="python")(*given)
    for one, other in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
