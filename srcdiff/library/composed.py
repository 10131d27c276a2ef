"""Composed derivatives, for calls inside differentiated functions.

`grad` and `jvp` are passed in, because the library does not import the modules that use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import (
    as_tuple,
    copied,
    exchanged,
    float_positions,
    is_array,
    only,
    placed,
    positions_of,
)


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


def jacobian_of(jacobian: Any, f: Any, wrt: Any, mode: Any, directions: Any, *args: Any) -> Any:
    return jacobian(f, wrt, mode=mode, directions=directions)(*args)


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
