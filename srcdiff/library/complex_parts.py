"""Complex numbers and arrays as vectors of real numbers: the real parts, followed by the imaginary parts.

Solvers compute with such vectors, so that derivatives need not exist in the complex sense.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from srcdiff.library.language import is_array, is_complex_type, result_type


def has_complex_type(x: Any) -> Any:
    return is_complex_type(result_type(x))


def in_parts(z: Any) -> Any:
    """The vector of a number or of an array."""
    if not is_array(z):
        return np.array([z.real, z.imag])
    z = np.asarray(z)
    z = z if z.ndim == 1 else np.reshape(z, z.size)
    found = np.empty(2 * len(z))
    for i in range(len(z)):
        found[i] = z[i].real
        found[len(z) + i] = z[i].imag
    return found


def from_parts(y: Any, y0: Any) -> Any:
    """The complex number or array of the shape of y0."""
    n = len(y) // 2
    if not is_array(y0):
        return complex(y[0], y[1])
    z = np.empty(n, np.complex128)
    for i in range(n):
        z[i] = complex(y[i], y[n + i])
    return np.reshape(z, np.shape(y0))


def rows_from_parts(rows: Any) -> Any:
    """Complex arrays, one in each row."""
    n = rows.shape[1] // 2
    found = np.empty((len(rows), n), np.complex128)
    for i in range(len(rows)):
        for m in range(n):
            found[i, m] = complex(rows[i, m], rows[i, n + m])
    return found
