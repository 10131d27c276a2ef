"""Composed derivatives, for calls inside differentiated functions.

`grad` and `jvp` are passed in, because the library does not import the modules that use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.complex_parts import has_complex_type
from srcdiff.library.language import (
    as_tuple,
    copied,
    exchanged,
    float_positions,
    is_array,
    jacobian_by_first,
    only,
    placed,
    positions_of,
)
from srcdiff.signature.complex_pairs import Partials


def hvp(grad: Any, jvp: Any, f: Any, wrt: Any = 0, *, backend: Any = None) -> Any:
    def product(*args: Any) -> Any:
        return product_of(grad, jvp, f, wrt, *args)

    return product


def product_of(grad: Any, jvp: Any, f: Any, wrt: Any, *args: Any) -> Any:
    """The product of the Hessian and the last argument."""
    given, vector = args[:-1], args[-1]
    return jvp(grad(f, wrt), given, placed(len(given), positions_of(f, wrt), vector))[1]


def hessian(grad: Any, jacobian: Any, f: Any, wrt: Any = 0, *, directions: Any = None, backend: Any = None) -> Any:
    return jacobian(grad(f, wrt), wrt, mode="forward", directions=directions)


def jacobian_of(jacobian: Any, f: Any, wrt: Any, mode: Any, directions: Any, holomorphic: Any, *args: Any) -> Any:
    return jacobian(f, wrt, mode=mode, directions=directions, holomorphic=holomorphic)(*args)


def jacobian_by_parts(f: Any, positions: Any, single: Any, kinds: Any, holomorphic: Any, *args: Any) -> Any:
    """The Jacobian of a function of complex numbers: that of its real and imaginary parts, put together.

    `kinds` is the structure of the result, with `True` for each complex number or array.
    """

    def of_parts(parts: Any) -> Any:
        given = tuple([from_two(part) for part in parts])
        return in_two(f(*exchanged(args, positions, given)))

    found = jacobian_by_first(of_parts)(tuple([in_two(x) for x in only(args, positions)]))
    pairs = put_together(kinds, found, single)
    return complex_derivatives(pairs) if holomorphic else pairs


def complex_derivatives(pairs: Any) -> Any:
    """The complex derivatives of a holomorphic function: along `1j * d`, they are `1j` times those along `d`."""
    if isinstance(pairs, Partials) and has_complex_type(pairs.real):
        if not np.allclose(1j * np.asarray(pairs.real), np.asarray(pairs.imag), rtol=1e-6, atol=1e-9, equal_nan=True):
            raise ValueError("a function is not holomorphic: it has no complex derivative")
        return pairs.real
    if not isinstance(pairs, tuple) or isinstance(pairs, Partials):
        raise TypeError("a holomorphic function has complex arguments and complex results")
    return tuple([complex_derivatives(part) for part in pairs])


def in_two(x: Any) -> Any:
    """A structure with two parts for each complex number or array."""
    if isinstance(x, tuple):
        return tuple([in_two(part) for part in x])
    if not has_complex_type(x):
        return x
    return (np.copy(x.real), np.copy(x.imag)) if is_array(x) else (x.real, x.imag)


def from_two(part: Any) -> Any:
    return complex_of(part[0], part[1]) if isinstance(part, tuple) else part


def complex_of(real: Any, imag: Any) -> Any:
    if not is_array(real):
        return complex(real, imag)
    z = np.empty(real.shape, np.complex128)
    z.real, z.imag = real, imag
    return z


def put_together(kinds: Any, found: Any, single: Any) -> Any:
    if isinstance(kinds, tuple):
        return tuple([put_together(kind, part, single) for kind, part in zip(kinds, found, strict=True)])
    if kinds:
        blocks = tuple([block_of(real, imag) for real, imag in zip(found[0], found[1], strict=True)])
    else:
        blocks = tuple([Partials(x[0], x[1]) if isinstance(x, tuple) else x for x in found])
    return blocks[0] if single else blocks


def block_of(real: Any, imag: Any) -> Any:
    """The derivatives of a complex result, from those of its parts."""
    if isinstance(real, tuple):
        return Partials(complex_of(real[0], imag[0]), complex_of(real[1], imag[1]))
    return complex_of(real, imag)


def value_of(jvp: Any, f: Any, args: Any) -> Any:
    """The result of the function on copies: its arguments do not change, and its result is new."""
    return jvp(f, args, placed(len(args), (), ()))[0]


def vjp(grad: Any, jvp: Any, f: Any, *args: Any, wrt: Any = None, backend: Any = None) -> Any:
    """The result, and the pullback: the gradient of the sum of the results times their adjoints."""

    positions = float_positions(args) if wrt is None else as_tuple(positions_of(f, wrt))
    args = copied(args)

    def pullback(bar: Any) -> Any:
        def weighted(chosen: Any) -> Any:
            return paired(f(*exchanged(args, positions, chosen)), bar)

        found = grad(weighted)(only(args, positions))
        if wrt is None:
            return placed(len(args), positions, found)
        return found if isinstance(wrt, tuple) else found[0]

    return value_of(jvp, f, args), pullback


def paired(x: Any, bar: Any) -> Any:
    """The inner product of two structures of the same form."""
    if isinstance(x, tuple):
        total = 0.0
        for part, part_bar in zip(x, bar, strict=True):
            if part_bar is not None:
                total += paired(part, part_bar)
        return total
    return np.sum(x * bar) if is_array(x) else x * bar
