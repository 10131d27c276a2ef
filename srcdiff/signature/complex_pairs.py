"""Derivatives by complex numbers of functions that are not holomorphic: a pair for each complex argument."""

from __future__ import annotations

from typing import Any, NamedTuple


class Partials(NamedTuple):
    """The derivatives with respect to a complex argument `z = x + 1j * y`: by `x`, and by `y`.

    >>> found = Partials(real=2.0 + 0j, imag=0j)  # of z + conj(z)
    >>> found.by_number, found.by_conjugate
    ((1+0j), (1+0j))
    """

    real: Any
    """The derivative with respect to the real part."""
    imag: Any
    """The derivative with respect to the imaginary part."""

    @property
    def by_number(self) -> Any:
        """Wirtinger's derivative with respect to `z`."""
        return (self.real - 1j * self.imag) / 2

    @property
    def by_conjugate(self) -> Any:
        """Wirtinger's derivative with respect to `conj(z)`: zero where the function is holomorphic."""
        return (self.real + 1j * self.imag) / 2
