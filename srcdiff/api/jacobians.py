"""Jacobians and Hessians: `jacobian` and `hessian`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from srcdiff.api.checking import _random_like
from srcdiff.api.chosen_arguments import chosen_names
from srcdiff.api.derivatives import Derivative, described
from srcdiff.api.fitting import directions, fitted_tangents, leaves, leaves_beside, like
from srcdiff.api.hessian_products import Composed
from srcdiff.api.modes import derivative_of, pulled_back, returns_nothing
from srcdiff.api.reverse import grad
from srcdiff.backends.numba import numba_cpu
from srcdiff.diagnostics import ComplexJacobianError, ListsInJacobianError
from srcdiff.diagnostics.options import (
    FEW_DIRECTIONS,
    OTHER_NUMBER,
    Wrt,
    check_sweeps,
    each_of,
    is_one,
    require_inside,
)
from srcdiff.frontend.domain.abstract_values import Abstract, Stored
from srcdiff.frontend.source.capture import findable
from srcdiff.ir.types import Stack, is_inexact
from srcdiff.library import composed
from srcdiff.signature.complex_pairs import Partials
from srcdiff.signature.random_sources import Replay
from srcdiff.signature.trees import NODES, VALUES, floats_for_integers

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.frontend.derivation import Derivation

Function = Callable[..., Any]

_REMEMBERED = 256  # shapes of arguments for which a Jacobian knows the mode


class Jacobian(Composed):
    """The Jacobian of a function: see `jacobian`."""

    def __init__(
        self,
        f: Function,
        wrt: Wrt,
        mode: str | None,
        directions_at_once: int | None,
        backend: str,
        options: dict[str, Any],
        holomorphic: bool = False,
    ) -> None:
        check_sweeps(mode, directions_at_once)
        self.holomorphic = bool(holomorphic)
        self.function, self.mode, self.backend, self.options = f, mode, backend, options
        self.directions = None if directions_at_once is None else int(directions_at_once)
        self.single, self.wrt = is_one(wrt), each_of(wrt)
        self.columns = self.sweeps("forward")
        self.rows = self.sweeps("pullback")
        self.few: dict[tuple[str, int], Derivative] = {}
        """The same for a small fixed number of directions."""
        self.chosen: dict[Any, Derivative] = {}
        """The chosen program for each combination of argument shapes."""
        self.latest: Derivative | None = None
        """The program of the latest call."""
        self.complex: set[Any] = set()
        """The argument shapes for which the results are complex."""
        self.entry: Any = None
        functools.update_wrapper(self, self.columns.function, updated=())
        self.__doc__ = described("All derivatives", self.columns, self.columns.function.__doc__)
        self.__signature__ = self.columns.signature.replace(return_annotation=inspect.Signature.empty)

    def sweeps(self, mode: str, numbers: int | None = None) -> Derivative:
        """The program that computes the Jacobian by forward or reverse mode."""
        wrt = self.wrt[0] if self.single else self.wrt
        how = {"backend": self.backend, **self.options, "directions": self.directions, "numbers": numbers}
        return Derivative(self.function, mode, wrt, with_value=False, jacobian=True, **how)

    def __reduce__(self) -> Any:
        wrt = self.wrt[0] if self.single else self.wrt
        given = (findable(self.function), wrt, self.mode, self.directions, self.backend, self.options)
        return Jacobian, (*given, self.holomorphic)

    @property
    def __srcdiff_inside__(self) -> tuple[Any, ...]:
        wrt = self.columns.wrt[0] if self.single else self.columns.wrt
        return composed.jacobian_of, jacobian, self.function, wrt, self.mode, self.directions, self.holomorphic

    def __repr__(self) -> str:
        return f"<srcdiff.jacobian({self.columns.function.__code__.co_qualname}, wrt={self.columns.wrt!r})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.holomorphic or self.is_complex(args, kwargs):
            return self.one_by_one.at(self.columns.bound(args, kwargs))
        try:
            self.latest = self.chosen_for(args, kwargs)
            return self.latest(*args, **kwargs)
        except ListsInJacobianError:
            return self.one_by_one.at(self.columns.bound(args, kwargs))
        except ComplexJacobianError:
            self.complex.add((_shapes(args), _shapes(tuple(kwargs.values()))))
            return self.one_by_one.at(self.columns.bound(args, kwargs))
        except ValueError as error:
            if self.latest is None or str(error) != OTHER_NUMBER.format(self.latest.numbers):
                raise
        self.chosen.clear()  # the function or a value that it reads from outside has changed
        self.latest = self.columns if self.latest.mode == "forward" else self.rows
        return self.latest(*args, **kwargs)

    def is_complex(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether an argument to differentiate by is complex, or the result has been."""
        if self.complex and (_shapes(args), _shapes(tuple(kwargs.values()))) in self.complex:
            return True
        if not any(map(_holds_complex, (*args, *kwargs.values()))):
            return False
        given = dict(zip(self.columns.names, self.columns.bound(args, kwargs), strict=True))
        return any(_holds_complex(given[name]) for name in self.columns.wrt)

    def body_for(self, given: tuple[Any, ...], types_: Any) -> numba_cpu.Body:
        """The code that a Numba function runs for a call: the mode with fewer sweeps, as far as that is known."""
        from srcdiff.driver.compiling import cheaper_mode

        if self.holomorphic:
            raise TypeError(f"{self!r} cannot be called from compiled code: it is holomorphic")
        defaults = self.columns.bound((None,) * len(given), {})[len(given) :]
        asked = "pullback" if self.mode == "reverse" else self.mode
        mode, numbers = cheaper_mode(self.columns.request((*given, *defaults)), asked)
        return numba_cpu.body_of_call(*self.by(mode == "forward", numbers).compiled_for(given))

    def chosen_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Derivative:
        """The program in the chosen mode, or the one that needs fewer sweeps."""
        key = (_shapes(args), _shapes(tuple(kwargs.values())))
        found = self.chosen.get(key)
        if found is None:
            if len(self.chosen) >= _REMEMBERED:
                self.chosen.clear()
            given = self.columns.bound(args, kwargs)
            found = self.chosen[key] = self.fewest_sweeps(given)
        return found

    def fewest_sweeps(self, given: tuple[Any, ...]) -> Derivative:
        """Forward mode if there are at least as many results as inputs, otherwise reverse mode."""
        from srcdiff.driver.compiling import numbers_of

        inputs, outputs = known = numbers_of(self.columns.request(given), given)
        if outputs is None and self.mode is None:
            primal = derivative_of(self.function, "primal", 0, self.backend, self.options)
            replay = Replay(given)
            outputs = sum(np.size(leaf) for leaf in leaves(pulled_back(primal, given, self.columns.wrt)[0]))
            replay.again(given)
        has_more_rows = inputs is None or outputs is None or inputs <= outputs
        by_columns = has_more_rows if self.mode is None else self.mode == "forward"
        return self.by(by_columns, known[0 if by_columns else 1])

    def by(self, columns: bool, numbers: int | None) -> Derivative:
        """By columns or by rows, of which there are so many."""
        derivative = self.columns if columns else self.rows
        if numbers is None or not 0 < numbers <= FEW_DIRECTIONS or self.directions is not None:
            return derivative
        return self.few.setdefault((derivative.mode, numbers), self.sweeps(derivative.mode, numbers))

    @functools.cached_property
    def one_by_one(self) -> SweepForEach:
        """One sweep for each direction: for lists with lengths known only at run time, and for complex numbers."""
        return SweepForEach(self)

    @property
    def source(self) -> str:
        """The generated source code of the latest call; before that, of the chosen mode or of forward mode."""
        return self._shown().source

    def _repr_html_(self) -> str | None:
        """The function and its Jacobian side by side, for notebooks."""
        return self._shown()._repr_html_()

    def _shown(self) -> Derivative:
        if self.latest is None:
            self.latest = self.rows if self.mode == "reverse" else self.columns
        return self.latest


def _shapes(given: tuple[Any, ...]) -> Any:
    """The key for the shapes of the results: the shapes of the arguments, and integers."""
    return tuple([a.shape if type(a) is np.ndarray else None if type(a) is float else _shape(a) for a in given])


def _shape(x: Any) -> Any:
    return (
        x
        if isinstance(x, int)
        else tuple([_shape(part) if part is not x else np.shape(x) for part in VALUES.leaves(x)])
    )


def _holds_complex(x: Any) -> bool:
    if type(x) is np.ndarray:
        return bool(x.dtype.kind == "c")
    return type(x) is not float and any(map(np.iscomplexobj, leaves(x)))


class SweepForEach:
    """A Jacobian by one sweep per direction, for any structure of arguments and results."""

    def __init__(self, jacobian: Jacobian) -> None:
        self.function, self.mode, self.backend, self.options = (
            jacobian.function,
            jacobian.mode,
            jacobian.backend,
            jacobian.options,
        )
        self.single, self.holomorphic = jacobian.single, jacobian.holomorphic
        self.forward = Derivative(self.function, "forward", jacobian.wrt, backend=self.backend, **self.options)

    def at(self, given: tuple[Any, ...]) -> Any:
        """The Jacobian for all arguments of the function."""
        chosen = self.forward.wrt
        given = tuple(
            [floats_for_integers(x) if n in chosen else x for n, x in zip(self.forward.names, given, strict=True)]
        )
        zeros = fitted_tangents(self.forward, given, [None] * len(self.forward.wrt))
        inputs = [given[self.forward.names.index(n)] for n in chosen]
        value, _ = self.forward.run(given, zeros)
        if self.holomorphic:
            self.require_holomorphic(given, inputs, value)
        sizes = [sum(np.size(leaf) for leaf in leaves(x)) for x in (tuple(inputs), value)]
        by_columns = sizes[0] <= sizes[1] or not _is_pulled_back(
            self.forward.specialised(given).compiled.reading.result
        )
        forward = self.mode == "forward" or (self.mode is None and by_columns)
        found = iter((self.by_columns if forward else self.by_rows)(given, inputs, value))
        return like(value, lambda _: self.row(next(found), inputs))

    def row(self, parts: list[list[Any]], inputs: list[Any]) -> Any:
        """The derivatives of one result, in the structure of the arguments."""
        found = iter(parts)
        whole = like(tuple(inputs), lambda _: _one_or_pair(next(found)))
        return whole[0] if self.single else whole

    def empty(self, inputs: list[Any], value: Any) -> list[list[list[Any]]]:
        """For each result and each argument an array, or two for a complex argument."""
        return [
            [
                [
                    np.zeros(np.shape(out) + np.shape(leaf), complex if np.iscomplexobj(out) else float)
                    for _ in self.units(leaf)
                ]
                for leaf in leaves(tuple(inputs))
            ]
            for out in leaves(value)
        ]

    def units(self, leaf: Any) -> tuple[complex, ...]:
        """The numbers to differentiate along: also the imaginary one, unless the function is holomorphic."""
        return (1.0, 1.0j) if np.iscomplexobj(leaf) and not self.holomorphic else (1.0,)

    def require_holomorphic(self, given: tuple[Any, ...], inputs: list[Any], value: Any) -> None:
        """Raise if the derivative along `1j * d` is not `1j` times the derivative along `d`."""
        if not all(np.iscomplexobj(leaf) for leaf in (*leaves(tuple(inputs)), *leaves(value))):
            raise TypeError("a holomorphic function has complex arguments and complex results")
        along = _random_like(tuple(inputs), 4)
        beside = like(along, lambda leaf: 1j * leaf)
        tangents = [self.forward.run(given, fitted_tangents(self.forward, given, list(d)))[1] for d in (along, beside)]
        for first, second in zip(*map(leaves, tangents), strict=True):
            if not np.allclose(1j * np.asarray(first), second, rtol=1e-6, atol=1e-9, equal_nan=True):
                raise ValueError(f"`{self.forward.function.__name__}` is not holomorphic: it has no complex derivative")

    def by_columns(self, given: tuple[Any, ...], inputs: list[Any], value: Any) -> list[list[list[Any]]]:
        """Forward mode: one sweep for each input number, two if it is complex."""
        found = self.empty(inputs, value)
        for leaf, place, part, _, whole in directions(tuple(inputs), self.units):
            _, tangent = self.forward.run(given, fitted_tangents(self.forward, given, list(whole)))
            for row, out in zip(found, leaves_beside(value, tangent), strict=True):
                row[leaf][part][(..., *place)] = out
        return found

    def by_rows(self, given: tuple[Any, ...], inputs: list[Any], value: Any) -> list[list[list[Any]]]:
        """Reverse mode: one sweep for each result number, two if it is complex: they give its two parts."""
        found = self.empty(inputs, value)
        primal = derivative_of(self.function, "primal", 0, self.backend, self.options)
        _, pullback = pulled_back(primal, given, self.forward.wrt)
        for k, place, _, unit, bars in directions(value, self.units):
            back = pullback(**bars) if returns_nothing(self.forward, given) else pullback(bars)
            for parts, bar in zip(found[k], leaves(back), strict=True):
                if self.holomorphic:
                    parts[0][place] = np.conj(bar)
                    continue
                for part, of in zip(parts, (np.real(bar), np.imag(bar)), strict=False):
                    part[place] += unit * of
        return found


def _one_or_pair(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else Partials(*parts)


def _is_pulled_back(x: Abstract) -> bool:
    """Whether all floats of a result have adjoints; arrays in lists of run-time length have none."""
    arrays = [a.type for leaf in NODES.leaves(x) if isinstance(leaf, Stored) for a in leaf.arrays]
    return not any(isinstance(t, Stack) and is_inexact(t.element) for t in arrays)


def jacobian(
    f: Function,
    wrt: Wrt = 0,
    *,
    mode: str | None = None,
    directions: int | None = None,
    holomorphic: bool = False,
    backend: str = "numba",
    **options: Any,
) -> Jacobian:
    """Make a function that computes the Jacobian of `f`: the derivatives of all results by all inputs.

    >>> import numpy as np
    >>> def polar(p):
    ...     return np.array([p[0] * np.cos(p[1]), p[0] * np.sin(p[1])])
    >>> jacobian(polar)(np.array([2.0, 0.0]))
    array([[1., 0.],
           [0., 2.]])

    Args:
        f: A Python function that returns numbers and arrays, or tuples, lists, dictionaries and dataclasses of these.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        mode: `"forward"`, `"reverse"`, or None for the one that needs fewer sweeps.
        directions: The number of derivatives that one sweep computes together in its innermost loops; None means 32.
        holomorphic: Whether arguments and results are complex, and the derivatives are complex numbers. A function that
            is not holomorphic raises `ValueError`. Without it, the derivative by a complex argument is a pair,
            `Partials`: by its real part, and by its imaginary part.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        A function with the parameters of `f`. It returns an array whose shape is the shape of the result followed by
        the shape of the argument. If the result or `wrt` has several parts, it returns these arrays in the structure of
        the result, and inside that in the structure of the arguments.

    Raises:
        DifferentiationError: At the first call with new argument types, if `f` cannot be differentiated.
    """
    return Jacobian(f, wrt, mode, directions, backend, options, holomorphic)


def hessian(
    f: Function, wrt: Wrt = 0, *, directions: int | None = None, backend: str = "numba", **options: Any
) -> Jacobian:
    """Make a function that computes the Hessian of `f`, by forward mode over reverse mode.

    >>> import numpy as np
    >>> def surface(x):
    ...     return x[0] ** 2 * x[1]
    >>> hessian(surface)(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])

    Args:
        f: A Python function that returns one float.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        directions: As for `jacobian`.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        A function with the parameters of `f` that returns the second derivatives: for an array `x`, an array of the
        shape `x.shape + x.shape`. For large `x`, use `hvp`.

    Raises:
        DifferentiationError: At the first call with new argument types, if `f` cannot be differentiated.
    """
    gradient = grad(f, wrt, backend=backend, **options)
    return Jacobian(gradient, wrt, "forward", directions, backend, options)


def _jacobian_inside(
    of: str,
    names: tuple[str, ...],
    stars: Mapping[str, str],
    wrt: Wrt = 0,
    *,
    mode: str | None = None,
    directions: int | None = None,
    holomorphic: bool = False,
    **options: Any,
) -> Derivation:
    """What `jacobian` means inside a differentiated function."""
    from srcdiff.frontend.derivation import Derivation

    require_inside({**options, "mode": mode, "directions": directions}, ("backend", "mode", "directions"))
    kind = {None: "", "forward": "forward", "reverse": "pullback"}[mode]
    chosen = chosen_names(wrt, names, of, stars)
    return Derivation(
        kind, chosen, single=is_one(wrt), jacobian=True, directions=directions, holomorphic=bool(holomorphic)
    )


numba_cpu.callable_from_compiled_code(Jacobian, Jacobian.body_for, lambda jacobian: jacobian.columns)

# their meaning inside a differentiated function
jacobian.__srcdiff_maker__ = _jacobian_inside  # type: ignore[attr-defined]
hessian.__srcdiff_inside__ = (composed.hessian, grad, jacobian)  # type: ignore[attr-defined]
