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
    upto,
)


def hvp(grad: Any, jvp: Any, f: Any, wrt: Any = 0, *, backend: Any = None) -> Any:
    def product(*args: Any) -> Any:
        return product_of(grad, jvp, f, wrt, *args)

    return product


def product_of(grad: Any, jvp: Any, f: Any, wrt: Any, *args: Any) -> Any:
    """The Hessian times the last argument."""
    given, vector = args[:-1], args[-1]
    return jvp(grad(f, wrt), given, placed(len(given), positions_of(f, wrt), vector))[1]


def hessian(grad: Any, jvp: Any, f: Any, wrt: Any = 0, *, directions: Any = None, backend: Any = None) -> Any:
    return jacobian(grad, jvp, grad(f, wrt), wrt, directions=directions)


def jacobian(
    grad: Any, jvp: Any, f: Any, wrt: Any = 0, *, mode: Any = None, directions: Any = None, backend: Any = None
) -> Any:
    def matrix(*args: Any) -> Any:
        return jacobian_of(grad, jvp, f, wrt, mode, directions, *args)

    return matrix


def jacobian_of(grad: Any, jvp: Any, f: Any, wrt: Any, mode: Any, directions: Any, *args: Any) -> Any:
    """By rows, in reverse mode, or by columns: a sweep of forward mode for each number of the argument, or several."""
    positions, value = positions_of(f, wrt), value_of(jvp, f, args)
    if mode == "reverse":
        return of_rows(grad, f, args, positions, value, ())
    return of_results(jvp, f, args, positions, value, (), directions)


def value_of(jvp: Any, f: Any, args: Any) -> Any:
    """What the function gives; nothing that it writes into changes, and what it gives is new."""
    return jvp(f, args, placed(len(args), (), ()))[0]


def of_results(jvp: Any, f: Any, args: Any, positions: Any, value: Any, path: Any, directions: Any) -> Any:
    """The derivatives of a result, or of each of several, by an argument, or by each of several."""
    found: Any = ()
    if isinstance(value, tuple):
        for k, part in enumerate(value):
            found = (*found, of_results(jvp, f, args, positions, part, (*path, k), directions))
        return found
    if isinstance(positions, tuple):
        for position in positions:
            found = (*found, of_numbers(jvp, f, args, position, value, path, directions))
        return found
    return of_numbers(jvp, f, args, positions, value, path, directions)


def of_numbers(jvp: Any, f: Any, args: Any, position: Any, value: Any, path: Any, directions: Any) -> Any:
    """The derivatives of the numbers of a result by those of an argument."""
    x = args[position]
    if not is_array(x):
        return at_path(jvp(f, args, placed(len(args), position, 1.0))[1], path)
    if directions is not None and directions > 1:
        return of_several_numbers(jvp, f, args, position, value, path, directions)
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


def of_several_numbers(jvp: Any, f: Any, args: Any, position: Any, value: Any, path: Any, directions: Any) -> Any:
    """The same with so many tangents in a sweep; those of the last one beyond the end are zero."""
    x = args[position]
    result = np.empty((*np.shape(value), x.size))
    for start in range(0, x.size, directions):
        tangents: Any = ()
        for k in upto(directions):
            unit = np.zeros(x.size, x.dtype)
            if start + k < x.size:
                unit[start + k] = 1.0
            tangents = (*tangents, placed(len(args), position, unit.reshape(x.shape)))
        found = jvp(f, args, *tangents)
        for k in upto(directions):
            if start + k < x.size:
                column = at_path(found[k + 1], path)
                if is_array(value):
                    for j in each(value.shape):
                        result[(*j, start + k)] = column[j]
                else:
                    result[start + k] = column
    return result.reshape((*np.shape(value), *x.shape))


def of_rows(grad: Any, f: Any, args: Any, positions: Any, value: Any, path: Any) -> Any:
    """The derivatives of a result, or of each of several, by reverse mode: a sweep for each number of the results."""
    found: Any = ()
    if isinstance(value, tuple):
        for k, part in enumerate(value):
            found = (*found, of_rows(grad, f, args, positions, part, (*path, k)))
        return found
    chosen = as_tuple(positions)
    inputs = only(args, chosen)
    if not is_array(value):

        def number(given: Any) -> Any:
            return at_path(f(*exchanged(args, chosen, given)), path)

        found = grad(number)(inputs)
        return found if isinstance(positions, tuple) else found[0]
    for x in inputs:
        found = (*found, np.empty((*value.shape, *np.shape(x))))
    for j in each(value.shape):

        def element(given: Any) -> Any:
            return at_path(f(*exchanged(args, chosen, given)), path)[j]  # noqa: B023 - it is called here and now

        for bar, result in zip(grad(element)(inputs), found, strict=True):
            if is_array(bar):
                for i in each(bar.shape):
                    result[(*j, *i)] = bar[i]
            else:
                result[j] = bar
    return found if isinstance(positions, tuple) else found[0]


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
