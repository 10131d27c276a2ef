"""Functions of structured parameters, as optimisers want them: of a vector, with all derivatives, and bounds."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.api.derivatives import Derivative
from srcdiff.api.hessian_products import hvp
from srcdiff.api.jacobians import hessian, jacobian
from srcdiff.api.reverse import value_and_grad
from srcdiff.bridges import written_functions as written
from srcdiff.signature.flat_views import FlatView
from srcdiff.signature.structures import layout_of
from srcdiff.signature.trees import VALUES, parts_of

Function = Callable[..., Any]


_KEYS = re.compile(r"\['([^']*)'\]|\[(\d+)\]|\.(\w+)")


@dataclass(frozen=True)
class Result:
    """The result of an optimiser."""

    view: FlatView
    """The view of the parameters as a vector: see `Derivative.ravel`."""
    x: np.ndarray[Any, Any]
    """The parameters as a vector."""
    fun: float
    success: bool
    message: str
    info: Any
    """The optimiser's own result."""

    @property
    def params(self) -> Any:
        """The parameters with the structure of those that it started from."""
        return self.view.unravel(self.x)


def short_name(name: str, argument: str, between: str = ".") -> str:
    """The keys and attributes that lead to a parameter; the argument itself if there are none.

    >>> short_name("params['decay'].levels[1]", "params")
    'decay.levels.1'
    >>> short_name("rate", "rate")
    'rate'
    """
    keys = ["".join(key) for key in _KEYS.findall(name.removeprefix(argument))]
    return between.join(keys) if keys else argument


class Flat:
    """A function of structured parameters and data, as functions of a vector: its value and its derivatives."""

    def __init__(
        self,
        f: Function,
        x0: Any,
        args: Sequence[Any],
        backend: str,
        caller: str = "an optimiser",
        of: Function | None = None,
    ) -> None:
        self.f, self.x0, self.backend, self.caller = f, x0, backend, caller
        self.of = of or f
        """The user's function."""
        self.gradient = value_and_grad(f, backend=backend)
        self.view: FlatView = self.gradient.ravel(x0, *args)
        if not self.view.size:
            raise ValueError("`x0` has no parameters: no number, and no array of floats")

    @functools.cached_property
    def _primal(self) -> Derivative:
        return Derivative(self.f, "primal", 0, backend=self.backend)

    @functools.cached_property
    def _jacobian(self) -> Any:
        return jacobian(self.f, backend=self.backend)

    @functools.cached_property
    def _hessian(self) -> Any:
        return hessian(self.f, backend=self.backend)

    @functools.cached_property
    def _product(self) -> Any:
        return hvp(self.f, backend=self.backend)

    def _called(self, g: Any, args: tuple[Any, ...]) -> Any:
        positional, named = self.gradient.spread(args)
        with self.place():
            return g(*positional, **named)

    def place(self) -> contextlib.AbstractContextManager[None]:
        """Exceptions get a note with the user's function and its line."""
        return written.noted(self.of, self.caller)

    def value(self, x: Any) -> Any:
        """The result of the function. If it writes to its arguments, it gets copies."""
        args = self.view.arguments(x)
        if self._primal.specialised(args).compiled.writes:
            args = VALUES.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, args)
        return self._called(self._primal, args)

    def values(self, x: Any) -> np.ndarray[Any, Any]:
        """All numbers that the function returns, as a vector."""
        return _vector(self.value(x))

    def value_and_gradient(self, x: Any) -> tuple[Any, np.ndarray[Any, Any]]:
        value, gradient = self._called(self.gradient, self.view.arguments(x))
        return value, self.view.ravel(gradient)

    def jacobian(self, x: Any) -> np.ndarray[Any, Any]:
        """The matrix of the derivatives of all numbers that the function returns."""
        found = self._called(self._jacobian, self.view.arguments(x))
        rows = [
            self._rows(part.of(found), np.shape(part.value), of_complex=np.iscomplexobj(part.value))
            for part in VALUES.named(self.value(x), "result")
        ]
        return np.concatenate(rows) if rows else np.zeros((0, self.view.size))

    def hessian(self, x: Any, *last: Any) -> np.ndarray[Any, Any]:
        """The Hessian; `last` stand for the last arguments of the example."""
        args = self.view.arguments(x)
        found = self._called(self._hessian, (*args[: len(args) - len(last)], *last))
        rows = [
            self._rows(block, part.shape, of_complex=part.is_complex)
            for part, block in self.view.beside(found, _blocks)
        ]
        return np.concatenate(rows)

    def _rows(self, block: Any, shape: tuple[int, ...], *, of_complex: bool) -> np.ndarray[Any, Any]:
        """The derivatives of each number; a complex number has a row for its real and one for its imaginary part."""
        found = self.view.ravel(block, shape, of_complex=of_complex).reshape(-1, 1, self.view.size)
        both = np.concatenate((found.real, found.imag), axis=1) if of_complex else found
        rows: np.ndarray[Any, Any] = both.reshape(-1, self.view.size)
        return rows

    def curvature(self) -> Callable[[Any, Any], np.ndarray[Any, Any]] | None:
        """The Hessian of the weighted sum of the results, as a function of the vector and the weights.

        None if the results are neither a vector nor a number. The function takes no other arguments.
        """
        value = self.value(self.view.x)
        total = _weighted(self.f, value)
        if total is None:
            return None
        flat = Flat(total, self.x0, (np.zeros(np.size(value)),), self.backend, self.caller, self.of)
        return lambda x, weights: flat.hessian(x, np.array(weights, dtype=float))

    def hessian_product(self, x: Any, vector: Any) -> np.ndarray[Any, Any]:
        """The Hessian times a vector."""
        with self.place():
            return self.view.ravel(self._product.at(self.view.arguments(x), self.view.unravel(vector)))


def _blocks(of: Any, blocks: Any, name: str) -> Sequence[Any]:
    """The parts of a Hessian that belong to the parts of an argument."""
    return parts_of(blocks) or ()


def _vector(result: Any) -> np.ndarray[Any, Any]:
    leaves = [_reals(leaf) for leaf in VALUES.leaves(result)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


def _reals(leaf: Any) -> np.ndarray[Any, Any]:
    """The numbers of a result; of a complex number, its real and its imaginary part."""
    if np.iscomplexobj(leaf):
        leaf = np.stack((np.real(leaf), np.imag(leaf)), axis=-1)
    return np.asarray(leaf, dtype=float).reshape(-1)


def _weighted(fun: Function, value: Any) -> Function | None:
    """The weighted sum of the constraints; None if they are neither a vector nor a number."""

    def sum_of_vector(params: Any, weights: Any) -> Any:
        return np.sum(fun(params) * weights)

    def of_number(params: Any, weights: Any) -> Any:
        return fun(params) * weights[0]

    if isinstance(value, np.ndarray):
        return sum_of_vector if value.ndim == 1 and not np.iscomplexobj(value) else None
    return of_number if isinstance(value, float | np.floating) else None


def bound(view: FlatView, given: Any, unbounded: float) -> np.ndarray[Any, Any]:
    """The bounds as a vector."""
    placed = np.full(view.size, unbounded)
    for part, bound in view.beside(given, _parts_of_bounds):
        if bound is not None:
            if part.is_complex:
                raise ValueError(f"`{part.name}` is complex: bounds are for real numbers")
            try:
                placed[part.slice] = np.broadcast_to(np.asarray(bound, dtype=float), part.shape).reshape(-1)
            except (TypeError, ValueError):
                raise ValueError(f"the bound of `{part.name}` must be None, or have the shape {part.shape}") from None
    return placed


def _parts_of_bounds(of: Any, bounds: Any, name: str) -> Sequence[Any]:
    """The bounds of the parts of a structure. Keys that a dictionary leaves out have none."""
    layout = layout_of(of)
    parts: Sequence[Any] = parts_of(bounds) or ()
    if layout is not None and layout.is_mapping and isinstance(bounds, dict) and bounds.keys() <= of.keys():
        return [bounds.get(key) for key in layout.names]
    if layout is None or layout.is_mapping or type(bounds) is not type(of) or len(parts) != len(layout.names):
        raise ValueError(f"the bounds of `{name}` must have the structure of the parameters, or be None")
    return layout.taken_apart(bounds)
