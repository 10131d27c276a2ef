"""Interpolation on grids: `RegularGridInterpolator`, linear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.library.language import agree, is_array, unsupported
from srcdiff.library.linear_algebra import floats
from srcdiff.library.piecewise_polynomials import piece_of
from srcdiff.signature.standing_classes import stands_for


@dataclass(frozen=True)
class GridInterpolant:
    """A `RegularGridInterpolator`, with its attributes."""

    _values: Any
    _grid: Any
    bounds_error: Any
    fill_value: Any

    @staticmethod
    def __srcdiff_fits__(value: Any) -> bool:
        return bool(value.method == "linear" and value._values.ndim >= len(value._grid))

    def __call__(self: Any, xi: Any, method: Any = None, nu: Any = None) -> Any:
        if method is not None and method != "linear":
            unsupported("`RegularGridInterpolator` with a method other than `linear`")
        if self._values.ndim > len(self._grid):
            return of_several_functions(self, xi)
        if isinstance(xi, tuple | list) and not is_array(xi[0]):
            return self.at(np.asarray(xi))
        if isinstance(xi, tuple):
            places = np.stack(np.broadcast_arrays(*xi), -1)
        else:
            places = np.asarray(xi)
        if places.ndim == 1:
            result = np.empty(1, np.float64)
            result[0] = self.at(places)
            return result
        rows = np.reshape(places, (-1, places.shape[-1]))
        found = np.empty(len(rows), np.float64)
        for i in range(len(rows)):
            found[i] = self.at(np.asarray(rows[i]))
        return np.reshape(found, places.shape[:-1])

    def at(self: Any, x: Any) -> Any:
        agree(len(x), len(self._grid), "The requested sample points xi have another dimension than the interpolator")
        values = np.ravel(self._values)
        count = len(self._grid)
        first, share, stride = np.empty(count, np.int64), np.empty(count, np.float64), np.empty(count, np.int64)
        is_outside = False
        for axis, points in enumerate(self._grid):
            if x[axis] < points[0] or x[axis] > points[-1]:
                is_outside = True
            piece = piece_of(points, x[axis])
            first[axis] = piece
            share[axis] = (x[axis] - points[piece]) / (points[piece + 1] - points[piece])
        if self.bounds_error and is_outside:
            raise ValueError("One of the requested xi is out of bounds")
        size = 1
        for axis in range(count - 1, -1, -1):
            stride[axis] = size
            size *= self._values.shape[axis]
        total = 0.0
        for corner in range(2**count):
            weight, place = 1.0, 0
            for axis in range(count):
                if (corner >> axis) % 2 == 1:
                    weight *= share[axis]
                    place += (first[axis] + 1) * stride[axis]
                else:
                    weight *= 1.0 - share[axis]
                    place += first[axis] * stride[axis]
            total += weight * values[place]
        if total != total:
            total = np.nan * (np.sum(values) + np.sum(x))  # the derivatives are NaN, too
        if self.fill_value is not None and not self.bounds_error and is_outside:
            total = self.fill_value + 0.0
        return total


def of_several_functions(interpolant: Any, xi: Any) -> Any:
    """The values have more axes than the grid: each of their other elements is a function of its own."""
    values, grid = interpolant._values, interpolant._grid
    axes, more = values.shape[: len(grid)], values.shape[len(grid) :]
    columns = np.reshape(values, (*axes, -1))
    first = GridInterpolant(np.asarray(columns[..., 0]), grid, interpolant.bounds_error, interpolant.fill_value)(xi)
    found = np.empty((*np.shape(first), columns.shape[-1]), np.float64)
    found[..., 0] = first
    for k in range(1, columns.shape[-1]):
        one = GridInterpolant(np.asarray(columns[..., k]), grid, interpolant.bounds_error, interpolant.fill_value)
        found[..., k] = one(xi)
    return np.reshape(found, (*np.shape(first), *more))


def regular_grid(
    points: Any,
    values: Any,
    method: Any = "linear",
    bounds_error: Any = True,
    fill_value: Any = np.nan,
    *,
    solver: Any = None,
    solver_args: Any = None,
) -> Any:
    if method != "linear":
        unsupported("`RegularGridInterpolator` with a method other than `linear`")
    values = np.asarray(floats(values))
    grid = tuple([np.asarray(floats(p)) for p in points])
    if values.ndim < len(grid):
        raise ValueError("There are more point arrays than axes of the values")
    for axis, p in enumerate(grid):
        agree(len(p), values.shape[axis], "the points and the values have different lengths")
        for i in range(len(p) - 1):
            if not p[i] < p[i + 1]:
                raise ValueError("The points must be strictly ascending")
    return GridInterpolant(values, grid, bounds_error, fill_value)


MAKERS: dict[str, Any] = {"RegularGridInterpolator": regular_grid}


def stand_for_scipys() -> None:
    stands_for("scipy.interpolate", "RegularGridInterpolator", GridInterpolant)
