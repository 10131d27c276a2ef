"""Complex numbers: the convention of gradients, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as linalg
import scipy.special as special

import srcdiff
from srcdiff import DifferentiationError

Z = np.array([1.0 + 2.0j, -0.5 + 0.3j, 0.2 - 1.1j])


def squares(z):
    return np.sum(np.abs(z * z + 1j) ** 2)


def test_a_step_against_the_gradient_goes_downhill():
    gradient = srcdiff.grad(squares, backend="python")(Z)
    assert squares(Z - 1e-4 * gradient) < squares(Z)


def test_gradient_of_half_the_squared_size_is_the_number_itself():
    assert srcdiff.grad(lambda z: 0.5 * abs(z) ** 2, backend="python")(1.5 - 2.5j) == pytest.approx(1.5 - 2.5j)


def test_gradient_with_respect_to_a_real_number_is_real():
    gradient = srcdiff.grad(lambda x: abs(np.exp(1j * x) + x), backend="python")(0.3)
    assert isinstance(gradient, float)


def test_pullback_of_a_holomorphic_function_conjugates_its_derivative():
    _, pullback = srcdiff.vjp(lambda z: z**3, 1.0 + 1.0j, backend="python")
    assert pullback(2.0 - 1.0j)[0] == pytest.approx((2.0 - 1.0j) * np.conj(3 * (1.0 + 1.0j) ** 2))


def test_tangent_of_a_holomorphic_function_does_not():
    _, tangent = srcdiff.jvp(lambda z: z**3, (1.0 + 1.0j,), (2.0 - 1.0j,), backend="python")
    assert tangent == pytest.approx((2.0 - 1.0j) * 3 * (1.0 + 1.0j) ** 2)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_a_holomorphic_function_has_complex_derivatives(mode):
    jacobian = srcdiff.jacobian(lambda z: np.sin(z) * z[0], mode=mode, holomorphic=True, backend="python")(Z)
    expected = np.diag(np.cos(Z) * Z[0])
    expected[:, 0] += np.sin(Z)
    np.testing.assert_allclose(jacobian, expected)


def test_complex_jacobian_of_a_function_that_is_not_holomorphic_is_refused():
    with pytest.raises(ValueError, match="not holomorphic"):
        srcdiff.jacobian(lambda z: z * z.conj(), holomorphic=True, backend="python")(Z)


def mixed(z, x):
    return {"planar": z * z.conj()[::-1] * x + z, "real": np.abs(z) ** 2 + x.sum()}


def difference(function, direction, step=1e-6):
    return (function(step * direction) - function(-step * direction)) / (2 * step)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_by_complex_numbers_is_a_pair(mode):
    x = np.array([0.3, -0.4, 0.8])
    found = srcdiff.jacobian(mixed, wrt=("z", "x"), mode=mode, backend="python")(Z, x)
    for name, dtype in (("planar", complex), ("real", float)):
        by_z, by_x = found[name]
        assert by_z.real.dtype == by_z.imag.dtype == by_x.dtype == dtype
        for k, unit in enumerate(np.eye(3)):
            for got, along in ((by_z.real, unit), (by_z.imag, 1j * unit)):
                expected = difference(lambda d, name=name: mixed(Z + d, x)[name], along)
                np.testing.assert_allclose(got[:, k], expected, atol=1e-8)
            expected = difference(lambda d, name=name: mixed(Z, x + d)[name], unit)
            np.testing.assert_allclose(by_x[:, k], expected, atol=1e-8)


def test_pair_has_the_derivatives_of_wirtinger():
    jacobian = srcdiff.jacobian(lambda z: z * z.conjugate() + z * z, backend="python")
    z = 1.5 - 0.5j
    found = jacobian(z)
    assert found.by_number == pytest.approx(z.conjugate() + 2 * z)
    assert found.by_conjugate == pytest.approx(z)
    assert srcdiff.Partials(found.real, found.imag) == found


def test_hessian_has_the_derivatives_of_the_gradient():
    found = srcdiff.hessian(squares, backend="python")(Z)
    gradient = srcdiff.grad(squares, backend="python")
    for k, unit in enumerate(np.eye(3)):
        for got, along in ((found.real, unit), (found.imag, 1j * unit)):
            np.testing.assert_allclose(got[:, k], difference(lambda d: gradient(Z + d), along), atol=1e-7)


def conjugated(w):
    return w * w.conj()[::-1] + np.sin(w)


def by_arrays(z, x):
    whole = srcdiff.jacobian(conjugated)(z)
    parts = srcdiff.jacobian(lambda w, x: (abs(w[0]) ** 2 * x, w * x), wrt=(0, 1))(z, x)
    first = np.sum(np.abs(whole.real) ** 2) + np.sum(np.abs(whole.by_number) ** 2 * np.arange(9).reshape(3, 3))
    return first + np.sum(parts[0][0].imag ** 2) + parts[0][1] ** 2 + np.sum((parts[1][0].imag * parts[1][1][0]).real)


def by_numbers(s):
    pair = srcdiff.jacobian(lambda s: s**3 / abs(s))(s)
    second = srcdiff.hessian(lambda s: abs(s) ** 4 * s.real)(s)
    return abs(pair.by_conjugate) ** 2 + pair.real.imag + second.real.imag**2 + second.imag.real


def by_reals(x):
    return np.sum(np.abs(srcdiff.jacobian(lambda x: np.exp(1j * x) * x[0])(x)) ** 2 * np.arange(9).reshape(3, 3))


@pytest.mark.parametrize(
    ("function", "arguments"), [(by_arrays, (Z, 0.7)), (by_numbers, (0.3 + 0.8j,)), (by_reals, (Z.real,))]
)
def test_jacobians_inside_a_function_are_pairs(function, arguments):
    srcdiff.check(function, *arguments, wrt=tuple(range(len(arguments))), backend="python")


def test_jacobian_inside_a_function_is_that_outside():
    expected = srcdiff.jacobian(conjugated, backend="python")(Z)
    found = srcdiff.differentiable(lambda z: srcdiff.jacobian(conjugated)(z), backend="python")(Z)
    assert isinstance(found, srcdiff.Partials)
    np.testing.assert_allclose(found, expected)


def test_complex_derivatives_inside_a_function():
    outside = srcdiff.jacobian(lambda z: np.sin(z) * z[0], holomorphic=True, backend="python")

    def inside(z):
        own = srcdiff.jacobian(lambda w: np.sin(w) * w[0], holomorphic=True)(z)
        return np.sum(np.abs(own) ** 2 * np.arange(9).reshape(3, 3)) + np.sum(outside(z).imag ** 2)

    srcdiff.check(inside, Z, backend="python")


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda z: z * z.conj(), "not holomorphic"),
        (lambda z: z.real, "complex arguments and complex results"),
        (lambda z: (z, z.imag), "complex arguments and complex results"),
    ],
)
def test_complex_derivatives_inside_a_function_need_a_holomorphic_one(function, error):
    jacobian = srcdiff.jacobian(function, holomorphic=True, backend="python")
    outer = srcdiff.differentiable(lambda z: jacobian(z), backend="python")
    with pytest.raises((ValueError, TypeError, DifferentiationError), match=error):
        outer(Z)


def test_jacobian_of_structures_inside_a_function_is_refused():
    def inside(z):
        return np.abs(srcdiff.jacobian(lambda d: d["w"] * d["w"].conj())({"w": z})["w"].real).sum()

    with pytest.raises(DifferentiationError, match="a Jacobian of structures of complex numbers"):
        srcdiff.grad(inside, backend="python")(Z)


def test_gradient_is_made_of_the_pair():
    found = srcdiff.jacobian(squares, backend="python")(Z)
    np.testing.assert_allclose(srcdiff.grad(squares, backend="python")(Z), found.real + 1j * found.imag)


def test_jacobian_of_complex_results_by_real_numbers_is_complex():
    jacobian = srcdiff.jacobian(lambda x: np.exp(1j * x) * x[0], backend="python")
    for _ in range(2):
        x = np.array([0.3, 0.7])
        expected = np.diag(1j * np.exp(1j * x) * x[0])
        expected[:, 0] += np.exp(1j * x)
        np.testing.assert_allclose(jacobian(x), expected)


def test_jacobian_of_real_numbers_may_compute_with_complex_ones():
    x = np.array([0.3, 0.7])
    for mode in ("forward", "reverse"):
        jacobian = srcdiff.jacobian(lambda x: np.exp(1j * x).imag, mode=mode, backend="python")(x)
        np.testing.assert_allclose(jacobian, np.diag(np.cos(x)))


def test_zero_numbers_have_a_derivative_of_zero():
    def sizes(z):
        return np.sum(np.abs(z)) + np.linalg.norm(z)

    assert [0, 0] == list(srcdiff.grad(sizes, backend="python")(np.zeros(2, complex)))


def test_check_finds_a_wrong_rule_of_complex_numbers():
    @srcdiff.custom_rule(adjoint=lambda z, out, out_bar: (out_bar * 2.0 * z,))  # lacks the conjugate
    def square(z):
        return z * z

    with pytest.raises(AssertionError, match="differ"):
        srcdiff.check(lambda z: square(z).real + square(z).imag, 1.0 + 2.0j, backend="python")


def into_real(z):
    a = np.zeros(3)
    a[:] = z
    return a.sum()


def into_sum(z):
    a = np.zeros(3)
    a += z
    return a.sum()


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z[0] * z[1],
        lambda z: z.astype(float).sum(),
        lambda z: float(z[0]),
        lambda z: z[0].real if z[0] < z[1] else 0.0,
        lambda z: max(z[0], z[1]).real,
        lambda z: np.max(z).real,
        lambda z: np.median(z).real,
        lambda z: np.maximum(z, 1.0).real.sum(),
        lambda z: np.clip(z, 0, 1).real.sum(),
        lambda z: (z // 2.0).real.sum(),
        lambda z: (z % 2.0).real.sum(),
        lambda z: np.floor(z).real.sum(),
        lambda z: np.arctan2(z, z).real.sum(),
        lambda z: np.interp(z[0], np.arange(3.0), z).real,
        lambda z: np.sum(np.interp(z.real, np.arange(3.0), z.real, left=1j)),
        lambda z: abs(special.erf(z[0])),
        lambda z: np.abs(linalg.logm(np.outer(z, z))).sum(),
        into_real,
        into_sum,
    ],
)
def test_what_has_no_meaning_or_no_rule_for_complex_numbers_is_refused(function):
    with pytest.raises(DifferentiationError):
        srcdiff.grad(function, backend="python")(Z)


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda z: np.max(z).real, r"np\.max\(np\.abs\(z\)\)"),
        (lambda z: z.argmin() * z[0].real, r"np\.argmin\(np\.abs\(z\)\)"),
        (lambda z: np.nanmedian(z).real, r"np\.nanmedian\(np\.abs\(z\)\)"),
        (lambda z: np.minimum(z, 1j)[0].real, r"np\.where\(abs\(z\) > abs\(w\), z, w\)"),
    ],
)
def test_selections_by_size_say_how_numpy_compares(function, advice):
    with pytest.raises(DifferentiationError, match=f"NumPy compares real parts first.*{advice}"):
        srcdiff.grad(function, backend="python")(Z)


@pytest.mark.parametrize(
    ("function", "advice", "instead"),
    [
        (lambda z: np.sum(z.view(float) ** 2), "z.imag", lambda z: np.stack((z.real, z.imag), axis=-1).ravel()),
        (lambda x: np.abs(x.real.copy().view(complex)).sum(), r"1j \* x\[..., 1::2\]", None),
    ],
)
def test_views_as_numbers_of_another_type_say_what_to_write(function, advice, instead):
    with pytest.raises(DifferentiationError, match=f"a view of .* as numbers of another type.*(?s:.*){advice}"):
        srcdiff.grad(function, backend="python")(Z)
    if instead is not None:
        np.testing.assert_array_equal(srcdiff.differentiable(instead, backend="python")(Z), Z.view(float))
    x = np.arange(4.0)
    found = srcdiff.differentiable(lambda x: x[..., ::2] + 1j * x[..., 1::2], backend="python")(x)
    np.testing.assert_array_equal(found, x.view(complex))


def test_views_of_the_same_numbers_are_written_through():
    def written(z):
        w = z.copy()
        v = w.view()
        v.view(np.complex128)[1:] *= 2j
        return np.sum(np.abs(w) ** 2 * w.real)

    srcdiff.check(written, Z, backend="python", order=2)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda z: np.abs(np.fft.fft(z)).sum(), "Fourier transforms"),
        (lambda z: np.abs(np.outer(z, z) @ z).sum(), "products and equations of complex matrices"),
    ],
)
def test_what_gpus_do_not_have_is_refused(function, words):
    pytest.importorskip("numba_cuda", reason="srcdiff[cuda] is not installed")
    with pytest.raises(DifferentiationError, match=words):
        srcdiff.grad(function, backend="cuda").compile(Z)


def test_real_tangents_are_not_given_imaginary_parts():
    with pytest.raises(TypeError, match="complex"):
        srcdiff.jvp(lambda x: np.sum(x), (np.ones(2),), (np.array([1j, 0]),), backend="python")


def test_batches_of_complex_numbers_are_those_of_one_after_the_other():
    gradient = srcdiff.grad(lambda z: abs(z) ** 2 + z.real**3, backend="python")
    assert [gradient(z) for z in Z] == list(srcdiff.batched(gradient)(Z))
