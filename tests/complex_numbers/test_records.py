"""Complex fields of NumPy's records and structured arrays."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError

WAVES = np.dtype([("w", complex), ("k", float), ("n", int), ("v", np.complex64, (2,))])
PACKED = np.dtype([("n", np.int32), ("w", complex), ("k", float)])  # complex numbers at odd places


def records(dtype):
    a = np.zeros(3, dtype)
    a["w"], a["k"] = [1 + 1j, 2j, 0.3], [1.0, 2.0, 3.0]
    return a


def read(a):
    s = 0.0
    for i in range(3):
        s += abs(a[i]["w"] * a[i]["k"]) ** 2
    for r in a:
        s += (r["w"] ** 3).imag
    return s + np.sum(a["w"].imag ** 3)


def written(a):
    a["w"][1] *= 2j
    a["w"].real[2] = a["k"][0]
    a[0] = a[1]
    a["k"] += a["w"].imag
    return np.sum((a["w"] ** 2).real) + np.sum(a["k"] ** 2)


def made(a):
    b = np.zeros(3, dtype=a.dtype)
    b["w"], b["k"] = a["w"] * 1j, a["w"].real
    b[1:] = a[:-1]
    c = b[::-1].copy()
    c["w"][0] += b["k"][1]
    return np.sum(np.abs(c["w"] * b["k"]) ** 2)


def by_differences(function, a, step=1e-6):
    """The gradient with respect to the two fields of double precision."""
    found = {"w": np.zeros(3, complex), "k": np.zeros(3)}
    for name, units in (("w", (1, 1j)), ("k", (1,))):
        for i in range(3):
            for unit in units:
                ahead, behind = a.copy(), a.copy()
                ahead[name][i] += unit * step
                behind[name][i] -= unit * step
                found[name][i] += unit * (function(ahead) - function(behind)) / (2 * step)
    return found


@pytest.mark.parametrize("dtype", [WAVES, PACKED])
@pytest.mark.parametrize("function", [read, written, made])
def test_gradients_have_complex_fields(function, dtype):
    a = records(dtype)
    found, expected = srcdiff.grad(function, backend="python")(a), by_differences(function, a)
    for name in ("w", "k"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-7)
    along = records(dtype)
    _, tangent = srcdiff.jvp(function, (a,), (along,), backend="python")
    lines = (np.conj(found["w"]) * along["w"]).real + found["k"] * along["k"]
    assert tangent == pytest.approx(np.sum(lines))
    assert np.all(a == records(dtype))


def test_compiled_gradients_are_those_of_the_source():
    for dtype in (WAVES, PACKED):
        expected, found = (srcdiff.grad(written, backend=b)(records(dtype)) for b in ("python", "numba"))
        np.testing.assert_allclose(found["w"], expected["w"])
        np.testing.assert_allclose(found["k"], expected["k"])


def test_hessian_products_are_differences_of_gradients():
    a, along = records(WAVES), records(WAVES)
    along["w"], along["k"] = 1 + 2j, 0.5
    found = srcdiff.hvp(written, backend="python")(a, along)
    gradients = []
    for step in (1e-5, -1e-5):
        near = a.copy()
        near["w"] += step * along["w"]
        near["k"] += step * along["k"]
        gradients.append(srcdiff.grad(written, backend="python")(near))
    for name in ("w", "k"):
        np.testing.assert_allclose(found[name], (gradients[0][name] - gradients[1][name]) / 2e-5, rtol=1e-7)


def test_gradient_of_a_record_is_a_record_of_its_numbers():
    gradient = srcdiff.grad(lambda r: abs(r["w"]) ** 2 * r["k"], backend="python")(records(PACKED)[0])
    assert (gradient["w"], gradient["k"]) == (pytest.approx(2 + 2j), pytest.approx(2.0))


def test_complex_numbers_do_not_fit_into_real_fields():
    def into_real(a):
        a["k"] = a["w"]
        return np.sum(a["k"])

    with pytest.raises(DifferentiationError, match="complex"):
        srcdiff.grad(into_real, backend="python")(records(WAVES))
