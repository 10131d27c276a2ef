"""Functions of `scipy.special` that are not elementwise, or that have options."""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import Elementwise, is_array, unsupported

airy_ai, airy_aip, airy_bi, airy_bip = (Elementwise(f"airy_{name}") for name in ("ai", "aip", "bi", "bip"))
sine_integral, cosine_integral = Elementwise("sine_integral"), Elementwise("cosine_integral")
sinh_integral, cosh_integral = Elementwise("sinh_integral"), Elementwise("cosh_integral")
fresnel_s, fresnel_c = Elementwise("fresnel_s"), Elementwise("fresnel_c")
digamma, gammaln, polygamma_of_order = Elementwise("digamma"), Elementwise("gammaln"), Elementwise("polygamma")
hurwitz = Elementwise("zeta")
lambert, bessel_kv, bessel_yv = Elementwise("lambertw"), Elementwise("kv"), Elementwise("yv")


def airy(z: Any) -> Any:
    return airy_ai(z), airy_aip(z), airy_bi(z), airy_bip(z)


def sici(x: Any) -> Any:
    return sine_integral(x), cosine_integral(x)


def shichi(x: Any) -> Any:
    return sinh_integral(x), cosh_integral(x)


def fresnel(z: Any) -> Any:
    return fresnel_s(z), fresnel_c(z)


def polygamma(n: Any, x: Any) -> Any:
    """For one integer order."""
    if is_array(n):
        unsupported("`polygamma` of several orders")
    if n == 0:
        return digamma(x)
    return polygamma_of_order(int(n), x)


def zeta(x: Any, q: Any = None) -> Any:
    """There is no derivative with respect to x here."""
    return hurwitz(x, 1.0) if q is None else hurwitz(x, q)


def lambertw(z: Any, k: Any = 0, tol: Any = 1e-8) -> Any:
    """For real results. Its type is complex, as in SciPy."""
    if np.iscomplexobj(z):
        unsupported("`lambertw` of complex numbers")
    x = np.asarray(z * 1.0) if is_array(z) else z * 1.0
    values = np.asarray(lambert(x, k)) if is_array(z) else lambert(x, k)
    if np.any(np.isnan(values) & np.logical_not(np.isnan(x))):
        raise ValueError("lambertw is not real here, which is not supported")
    return values + 0j


def kn(n: Any, x: Any) -> Any:
    return bessel_kv(1.0 * n, x)


def yn(n: Any, x: Any) -> Any:
    return bessel_yv(1.0 * n, x)


def multigammaln(a: Any, d: Any) -> Any:
    total = 0.25 * d * (d - 1) * np.log(np.pi) + 0.0 * a
    for j in range(d):
        total = total + gammaln(a - 0.5 * j)
    return total


def softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: Any = False, return_sign: Any = False) -> Any:
    """The largest element is subtracted first. The derivative is that of the exact sum."""
    if return_sign:
        unsupported("`logsumexp` with `return_sign`")
    a = np.asarray(a) + 0.0
    if b is not None:
        b = np.asarray(b)
        a = np.where(b == 0, -np.inf, a)
    largest = np.max(a, axis=axis, keepdims=True, initial=-np.inf)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    terms = np.exp(a - largest)
    if b is not None:
        terms = b * terms
    total = np.log(np.sum(terms, axis=axis, keepdims=keepdims))
    if not keepdims:
        largest = np.squeeze(largest, axis=axis) if axis is not None else np.max(largest)
    return total + largest


def softmax(x: Any, axis: Any = None) -> Any:
    x = np.asarray(x) + 0.0
    terms = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return terms / np.sum(terms, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    x = np.asarray(x) + 0.0
    largest = np.max(x, axis=axis, keepdims=True)
    shifted = x - np.where(np.isfinite(largest), largest, 0.0)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


FUNCTIONS: dict[str, Any] = {
    "airy": airy,
    "fresnel": fresnel,
    "kn": kn,
    "lambertw": lambertw,
    "log_softmax": log_softmax,
    "logsumexp": logsumexp,
    "multigammaln": multigammaln,
    "polygamma": polygamma,
    "shichi": shichi,
    "sici": sici,
    "softmax": softmax,
    "softplus": softplus,
    "yn": yn,
    "zeta": zeta,
}
"""By the name in `scipy.special`."""
