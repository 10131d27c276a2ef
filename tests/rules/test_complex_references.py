"""Values and derivatives of functions of complex numbers against mpmath: both modes, and second derivatives.

For an adjoint `u`, the real function `L(x, y) = Re(conj(u) * f(x + 1j * y))` has the gradient `L_x + 1j * L_y`, whether
`f` is analytic or not. mpmath differentiates it with fifty digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import srcdiff
from srcdiff.ir.primitives import OF_COMPLEX

POINTS = np.array([0.3 + 0.4j, -0.7 + 0.2j, 1.6 - 0.9j, -1.3 - 2.1j, 0.05 - 1e-3j, 2.5 + 3.0j])
ADJOINT, DIRECTION = 0.8 - 1.7j, -0.6 + 1.1j
TOLERANCE = 2e-13
"""Relative to the size of the exact numbers: mantissas have 53 bits, and some functions of NumPy lose ten of them."""

W = 0.7 - 0.4j


ROWS: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
    ("add", lambda z: z + W, lambda z: z + W),
    ("subtract", lambda z: W - z, lambda z: W - z),
    ("multiply", lambda z: z * z * W, lambda z: z * z * W),
    ("divide", lambda z: z / (z + W), lambda z: z / (z + W)),
    ("negative", lambda z: -z, lambda z: -z),
    ("positive", lambda z: +z, lambda z: z),
    ("power", lambda z: z**3, lambda z: z**3),
    ("power", lambda z: z**-2, lambda z: z**-2),
    ("power", lambda z: z**1.5, lambda z: z ** mp.mpf("1.5")),
    ("power", lambda z: z**W, lambda z: z ** mp.mpc(W)),
    ("power", lambda z: W**z, lambda z: mp.mpc(W) ** z),
    ("power", lambda z: 2.5**z, lambda z: mp.mpf("2.5") ** z),
    ("square", np.square, lambda z: z * z),
    ("reciprocal", np.reciprocal, lambda z: 1 / z),
    ("sqrt", np.sqrt, mp.sqrt),
    ("exp", np.exp, mp.exp),
    ("exp2", np.exp2, lambda z: mp.mpf(2) ** z),
    ("expm1", np.expm1, mp.expm1),
    ("log", np.log, mp.log),
    ("log2", np.log2, lambda z: mp.log(z, 2)),
    ("log10", np.log10, mp.log10),
    ("log1p", np.log1p, lambda z: mp.log(1 + z)),
    *((name, getattr(np, name), getattr(mp, name)) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")),
    *(
        (f"arc{name}", getattr(np, f"arc{name}"), getattr(mp, f"a{name}"))
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
    ),
    ("conjugate", np.conj, mp.conj),
    ("absolute", np.abs, abs),
    ("angle", np.angle, mp.arg),
    ("real", np.real, mp.re),
    ("imag", np.imag, mp.im),
    ("complex", lambda z: z.imag**2 + 1j * np.sin(z.real), lambda z: mp.im(z) ** 2 + 1j * mp.sin(mp.re(z))),
    ("sign", np.sign, lambda z: z / abs(z)),
]


def partials(f: Callable[..., Any], order: tuple[int, int], z: complex) -> Any:
    return mp.diff(lambda x, y: f(mp.mpc(x, y)), (z.real, z.imag), order)


def exact(f: Callable[..., Any]) -> tuple[list[complex], ...]:
    """At each point: the value, the tangent, the gradient of L, and its derivative along the direction."""
    found = []
    u, a, b = mp.mpc(ADJOINT), DIRECTION.real, DIRECTION.imag
    with mp.workdps(50):
        for z in POINTS:
            f_x, f_y = (partials(f, order, z) for order in ((1, 0), (0, 1)))
            l_x, l_y = (mp.re(mp.conj(u) * p) for p in (f_x, f_y))
            l_xx, l_xy, l_yy = (mp.re(mp.conj(u) * partials(f, order, z)) for order in ((2, 0), (1, 1), (0, 2)))
            further = mp.mpc(l_xx * a + l_xy * b, l_xy * a + l_yy * b)
            found.append([complex(x) for x in (f(mp.mpc(z)), f_x * a + f_y * b, mp.mpc(l_x, l_y), further)])
    return tuple(map(list, zip(*found, strict=True)))


def close(found: Any, expected: list[complex]) -> None:
    sizes = 1.0 + np.abs(expected)
    assert np.max(np.abs(np.asarray(found) - np.array(expected)) / sizes) < TOLERANCE


@pytest.mark.parametrize(("name", "ours", "exactly"), ROWS, ids=[f"{k}-{row[0]}" for k, row in enumerate(ROWS)])
def test_function_agrees_with_mpmath(name: str, ours: Callable[..., Any], exactly: Callable[..., Any]) -> None:
    def function(z):
        return ours(z)

    def loss(z):
        return np.sum((np.conj(ADJOINT) * ours(z)).real)

    value, tangent, gradient, further = exact(exactly)
    directions = np.full(len(POINTS), DIRECTION)

    found, found_tangent = srcdiff.jvp(function, (POINTS,), (directions,), backend="python")
    close(found, value)
    close(found_tangent, tangent)
    close(srcdiff.grad(loss, backend="python")(POINTS), gradient)
    close(srcdiff.hvp(loss, backend="python")(POINTS, directions), further)


def test_every_function_with_derivatives_has_a_row():
    without = {"stop_gradient", "where", "strong_multiply", "strong_divide", "complex64", "complex128"}
    without |= {name for name, result in OF_COMPLEX.items() if result == "bool"}
    assert set(OF_COMPLEX) - without <= {name for name, _, _ in ROWS}
