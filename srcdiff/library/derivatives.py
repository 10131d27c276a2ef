"""Derivatives made of others, for calls inside of functions that are differentiated themselves.

`grad` and `jvp` are given, because the library knows nothing of those who call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import as_tuple, each, exchanged, float_positions, is_array, only, placed, positions_of


def hvp(grad: Any, jvp: Any, f: Any, wrt: Any = 0, backend: Any = None) -> Any:
    def product(*args: Any) -> Any:
        given, vector = args[:-1], args[-1]
        return jvp(grad(f, wrt), given, placed(len(given), positions_of(f, wrt), vector))[1]

    return product


def hessian(grad: Any, jvp: Any, f: Any, wrt: Any = 0, directions: Any = None, backend: Any = None) -> Any:
    return jacobian(grad, jvp, grad(f, wrt), wrt)


def jacobian(
    grad: Any, jvp: Any, f: Any, wrt: Any = 0, mode: Any = None, directions: Any = None, backend: Any = None
) -> Any:
    """By columns: a sweep of forward mode for each number of the argument."""

    def columns(*args: Any) -> Any:
        position = positions_of(f, wrt)
        x = args[position]
        if not is_array(x):
            return jvp(f, args, placed(len(args), position, 1.0))[1]
        value = f(*args)
        result = np.empty((*np.shape(value), *x.shape))
        for i in each(x.shape):
            unit = np.zeros(x.shape, x.dtype)
            unit[i] = 1.0
            column = jvp(f, args, placed(len(args), position, unit))[1]
            if is_array(value):
                for j in each(value.shape):
                    result[(*j, *i)] = column[j]
            else:
                result[i] = column
        return result

    return columns


def vjp(grad: Any, jvp: Any, f: Any, *args: Any, wrt: Any = None, backend: Any = None) -> Any:
    """The adjoints of the arguments are the gradient of the results times their adjoints."""

    positions = float_positions(args) if wrt is None else as_tuple(positions_of(f, wrt))

    def pullback(bar: Any) -> Any:
        def weighted(chosen: Any) -> Any:
            return paired(f(*exchanged(args, positions, chosen)), bar)

        found = grad(weighted)(only(args, positions))
        if wrt is None:
            return placed(len(args), positions, found)
        return found if isinstance(wrt, tuple) else found[0]

    return f(*args), pullback


def paired(x: Any, bar: Any) -> Any:
    """The sum of the products of all numbers of two things that are made alike."""
    if isinstance(x, tuple):
        total = 0.0
        for part, part_bar in zip(x, bar, strict=True):
            if part_bar is not None:
                total += paired(part, part_bar)
        return total
    return np.sum(x * bar) if is_array(x) else x * bar
