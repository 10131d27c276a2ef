"""Derivatives made of others, for calls inside of functions that are differentiated themselves.

`grad` and `jvp` are given, because the library knows nothing of those who call it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import (
    as_tuple,
    copied,
    each,
    exchanged,
    float_positions,
    is_array,
    only,
    placed,
    positions_of,
)


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
        return of_results(jvp, f, args, positions_of(f, wrt), value_of(jvp, f, args), ())

    return columns


def applied(make: Any, grad: Any, jvp: Any, f: Any, wrt: Any, *args: Any) -> Any:
    """A derivative that is made of others, called."""
    return make(grad, jvp, f, wrt)(*args)


def value_of(jvp: Any, f: Any, args: Any) -> Any:
    """What the function gives; nothing that it writes into changes, and what it gives is new."""
    return jvp(f, args, placed(len(args), (), ()))[0]


def of_results(jvp: Any, f: Any, args: Any, positions: Any, value: Any, path: Any) -> Any:
    """The derivatives of a result, or of each of several, by an argument, or by each of several."""
    found: Any = ()
    if isinstance(value, tuple):
        for k, part in enumerate(value):
            found = (*found, of_results(jvp, f, args, positions, part, (*path, k)))
        return found
    if isinstance(positions, tuple):
        for position in positions:
            found = (*found, of_numbers(jvp, f, args, position, value, path))
        return found
    return of_numbers(jvp, f, args, positions, value, path)


def of_numbers(jvp: Any, f: Any, args: Any, position: Any, value: Any, path: Any) -> Any:
    """The derivatives of the numbers of a result by those of an argument."""
    x = args[position]
    if not is_array(x):
        return at_path(jvp(f, args, placed(len(args), position, 1.0))[1], path)
    result = np.empty((*np.shape(value), *x.shape))
    for i in each(x.shape):
        unit = np.zeros(x.shape, x.dtype)
        unit[i] = 1.0
        column = at_path(jvp(f, args, placed(len(args), position, unit))[1], path)
        if is_array(value):
            for j in each(value.shape):
                result[(*j, *i)] = column[j]
        else:
            result[i] = column
    return result


def at_path(x: Any, path: Any) -> Any:
    """A part of a part of something."""
    for k in path:
        x = x[k]
    return x


def vjp(grad: Any, jvp: Any, f: Any, *args: Any, wrt: Any = None, backend: Any = None) -> Any:
    """The adjoints of the arguments, as they are now, are the gradient of the results times their adjoints."""

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
    """The sum of the products of all numbers of two things that are made alike."""
    if isinstance(x, tuple):
        total = 0.0
        for part, part_bar in zip(x, bar, strict=True):
            if part_bar is not None:
                total += paired(part, part_bar)
        return total
    return np.sum(x * bar) if is_array(x) else x * bar
