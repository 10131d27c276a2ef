"""Functions that generated code calls without reading them. Their derivatives are the user's, or finite differences."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from srcdiff.library.call_outs import CallOut, Kind
from srcdiff.library.call_outs import given as copied

Path = tuple[int, ...]
"""The position of a number or an array in the arguments: its index, and its indices within tuples."""
NO_SECOND = "no second derivative"
DIFFERENCES = ("central", "complex")
_CENTRAL_STEP = float(np.finfo(float).eps ** (1 / 3))
_IMAGINARY_STEP = 1e-100


class External:
    """A function of Python that generated code calls; see `srcdiff.external`."""

    def __init__(
        self,
        function: Callable[..., Any],
        shape: Any,
        dtype: str,
        vjp: Callable[..., Any] | None,
        jvp: Callable[..., Any] | None,
        differences: str | None,
        step: float | None,
    ) -> None:
        self.function, self.shape, self.dtype = function, shape, dtype
        self.vjp, self.jvp, self.differences, self.step = vjp, jvp, differences, step
        self.is_derivative = False
        """Whether it is the derivative of another one: then its own derivatives are the last ones."""
        self._calls: dict[Any, CallOut] = {}
        self._again: dict[CallOut, External] = {}
        functools.update_wrapper(self, function, updated=())
        del self.__dict__["__wrapped__"]  # its attribute would hide the source
        self.__name__ = name_of(function)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*args, **keywords)

    @property
    def has_derivative(self) -> bool:
        return self.reads_results or self.differences is not None

    @property
    def reads_results(self) -> bool:
        """Whether the derivative gets the results."""
        return self.vjp is not None or self.jvp is not None

    @property
    def second_differences(self) -> str | None:
        """The differences that second derivatives are computed by: of `vjp` and `jvp`, or of exact differences."""
        if self.reads_results:
            return self.differences
        return "central" if self.differences == "complex" else None

    def differentiable(self, of: CallOut) -> External:
        """The function of a derivative as a function that has a derivative by differences itself."""
        if of not in self._again:
            again = External(of.function, (), self.dtype, None, None, self.second_differences, self.step)
            again.__name__, again.is_derivative = of.__name__, True
            self._again[of] = again
        return self._again[of]

    @property
    def derivative(self) -> str:
        """A description of the derivative."""
        if self.reads_results:
            return " and ".join(f"`{name}`" for name in ("vjp", "jvp") if getattr(self, name) is not None)
        return "no derivative" if self.differences is None else f"{self.differences} differences"

    def value_call(self, results: tuple[Kind, ...]) -> CallOut:
        return self._call(self.function, results, "", ())

    def adjoint_call(self, results: tuple[Kind, ...], floats: tuple[Path, ...], outs: int) -> CallOut:
        """Takes the arguments, the results if it reads them, and their adjoints. Returns those of these floats."""
        if self.vjp is None:
            return self._call(self._adjoint_by_directions(floats, outs), results, "vjp", floats)
        return self._call(self._adjoint_as_declared(floats), results, "vjp", floats)

    def tangent_call(self, results: tuple[Kind, ...], floats: tuple[Path, ...], outs: int) -> CallOut:
        """Takes the arguments, the results if it reads them, and the tangents of these floats."""
        if self.jvp is not None:
            return self._call(self._tangent_as_declared(floats, outs), results, "jvp", floats)
        by_vjp = self.vjp is not None
        function = self._tangent_by_adjoints(floats, outs) if by_vjp else self._tangent_by_differences(floats)
        return self._call(function, results, "jvp", floats)

    def _call(self, function: Callable[..., Any], results: tuple[Kind, ...], part: str, floats: Any) -> CallOut:
        key = results, part, floats
        if key not in self._calls:
            if part:
                by = "" if self.reads_results else f" by {self.derivative}"
                meaning = f"the `{part}` of `{self.__name__}`{by}"
                self._calls[key] = CallOut(function, results, f"{self.__name__}_{part}", None, meaning, NO_SECOND)
            else:
                self._calls[key] = CallOut(function, results, self.__name__, self, derivative=self.derivative)
        return self._calls[key]

    # -- the derivative of the user's ----------------------------------------------------------------------------------

    def _adjoint_as_declared(self, floats: tuple[Path, ...]) -> Callable[..., Any]:
        def adjoint(*given: Any) -> Any:
            assert self.vjp is not None
            return self._of_floats(self.vjp(*given), given, floats)

        return adjoint

    def _of_floats(self, found: Any, args: Sequence[Any], floats: tuple[Path, ...]) -> Any:
        """The adjoints of these arguments. None means zero."""
        count = 1 + max(path[0] for path in floats)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) < count:
            raise ValueError(f"the `vjp` of `{self.__name__}` returned {len(found)} adjoints for {count} arguments")
        bars = []
        for path in floats:
            bar, argument = _at(found, path), _at(args, path)
            if bar is not None and np.shape(bar) != np.shape(argument):
                raise ValueError(
                    f"the `vjp` of `{self.__name__}` returned an adjoint of shape {np.shape(bar)} "
                    f"for an argument of shape {np.shape(argument)}"
                )
            bars.append(np.zeros(np.shape(argument)) if bar is None else bar)
        return bars[0] if len(bars) == 1 else tuple(bars)

    def _tangent_as_declared(self, floats: tuple[Path, ...], outs: int) -> Callable[..., Any]:
        def tangent(*given: Any) -> Any:
            assert self.jvp is not None
            args, results, dots = _apart(given, outs, len(floats))
            return self.jvp(*args, *results, *_dots_of(args, dict(_zipped(floats, dots))))

        return tangent

    def _tangent_by_adjoints(self, floats: tuple[Path, ...], outs: int) -> Callable[..., Any]:
        """Calls `vjp` once for each number in the results."""

        def tangent(*given: Any) -> Any:
            assert self.vjp is not None
            args, results, dots = _apart(given, outs, len(floats))
            found = [np.zeros(np.shape(x)) for x in results]
            for k, place, seeds in _directions(results):
                bars = self._of_floats(self.vjp(*map(copied, args), *map(copied, results), *seeds), args, floats)
                found[k][place] = _product(bars if len(floats) > 1 else (bars,), dots)
            return found[0] if outs == 1 else tuple(found)

        return tangent

    # -- the derivative by directions ----------------------------------------------------------------------------------

    def _adjoint_by_directions(self, floats: tuple[Path, ...], outs: int) -> Callable[..., Any]:
        """One tangent for each number in the arguments, from the user's `jvp` or from differences."""

        def adjoint(*given: Any) -> Any:
            args, results, seeds = _apart(given, outs if self.reads_results else 0, outs)
            bars = [np.zeros(np.shape(_at(args, path))) for path in floats]
            for k, place, dots in _directions(bars):
                if self.jvp is None:
                    found = self._difference(args, floats, dots)
                else:
                    every = _dots_of(args, dict(_zipped(floats, dots)))
                    found = self.jvp(*map(copied, args), *map(copied, results), *every)
                bars[k][place] = _product(self._checked(found if outs > 1 else (found,), seeds), seeds)
            return bars[0] if len(bars) == 1 else tuple(bars)

        return adjoint

    def _checked(self, found: Sequence[Any], results: Sequence[Any]) -> Sequence[Any]:
        """The tangents of the results, with the shapes of the results. The function itself may not have been called."""
        if len(found) != len(results):
            raise ValueError(f"`{self.__name__}` returned {len(found)} values, not {len(results)}")
        for x, result in _zipped(found, results):
            if np.shape(x) != np.shape(result):
                shapes = f"an array of shape {np.shape(x)}, where its `shape` says {np.shape(result)}"
                raise ValueError(f"`{self.__name__}` returned {shapes}")
            if np.iscomplexobj(x):
                raise TypeError(f"`{self.__name__}` returned numbers of type {np.asarray(x).dtype}")
        return found

    def _tangent_by_differences(self, floats: tuple[Path, ...]) -> Callable[..., Any]:
        def tangent(*given: Any) -> Any:
            args, _, dots = _apart(given, 0, len(floats))
            return self._difference(args, floats, dots)

        return tangent

    def _difference(self, args: Sequence[Any], floats: tuple[Path, ...], dots: Sequence[Any]) -> Any:
        """The derivative in one direction."""
        sizes = [float(np.max(np.abs(d), initial=0.0)) for d in dots]
        if self.differences == "complex":
            step = _IMAGINARY_STEP / (max(sizes) or 1.0)
            return _each(self._moved(args, floats, dots, 1j * step), lambda y: self._imaginary(y) / step)
        steps = [
            (self.step or _CENTRAL_STEP * max(1.0, float(np.max(np.abs(_at(args, path)), initial=0.0)))) / size
            for path, size in _zipped(floats, sizes)
            if size
        ]
        step = min(steps, default=1.0)
        above, below = (self._moved(args, floats, dots, s) for s in (step, -step))
        if isinstance(above, tuple):
            return tuple((a - b) / (2.0 * step) for a, b in _zipped(above, below))
        return (above - below) / (2.0 * step)

    def _moved(self, args: Sequence[Any], floats: tuple[Path, ...], dots: Sequence[Any], step: complex) -> Any:
        """The results for perturbed arguments. They are copied, because the function may return its own memory."""
        moved = tuple(map(copied, args))
        for path, dot in _zipped(floats, dots):
            moved = _put(moved, path, _at(args, path) + step * (dot if np.ndim(dot) else float(dot)))
        return _each(self.function(*moved), np.array)

    def _imaginary(self, y: Any) -> Any:
        if not np.iscomplexobj(y):
            instead = 'use `differences="central"`'
            raise TypeError(f"`{self.__name__}` returned real numbers for complex arguments: {instead}")
        return np.imag(y)


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function in generated code."""
    name = str(getattr(function, "__name__", type(function).__name__))
    return name if name.isidentifier() else "function"


def _zipped(first: Any, second: Any) -> Iterator[Any]:
    return zip(first, second, strict=True)


def _each(found: Any, by: Callable[[Any], Any]) -> Any:
    return tuple(map(by, found)) if isinstance(found, tuple | list) else by(found)


def _product(first: Sequence[Any], second: Sequence[Any]) -> float:
    return sum(float(np.sum(np.multiply(x, y))) for x, y in zip(first, second, strict=True))


def _apart(given: Sequence[Any], outs: int, last: int) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """The arguments, the results, and the last group."""
    first = len(given) - outs - last
    return tuple(given[:first]), tuple(given[first : first + outs]), tuple(given[first + outs :])


def _at(args: Any, path: Path) -> Any:
    found = args
    for k in path:
        if found is None:
            return None
        found = found[k]
    return found


def _put(items: tuple[Any, ...], path: Path, value: Any) -> tuple[Any, ...]:
    k, *rest = path
    return (*items[:k], _put(items[k], tuple(rest), value) if rest else value, *items[k + 1 :])


def _dots_of(args: Sequence[Any], known: Mapping[Path, Any], path: Path = ()) -> tuple[Any, ...]:
    """One tangent for each argument: zero if none is given, and None for arguments that are not numbers."""
    found: list[Any] = []
    for k, x in enumerate(args):
        at = (*path, k)
        if isinstance(x, tuple):
            found.append(_dots_of(x, known, at))
        elif isinstance(x, np.ndarray | bool | int | float):
            found.append(known[at] if at in known else np.zeros_like(x) if np.ndim(x) else 0.0)
        else:
            found.append(None)
    return tuple(found)


def _directions(items: Sequence[Any]) -> Iterator[tuple[int, tuple[int, ...], list[Any]]]:
    """For each number in the items: its position, and items that are one there and zero elsewhere."""
    for k, item in enumerate(items):
        for place in np.ndindex(np.shape(item)):
            units = [np.zeros(np.shape(x)) for x in items]
            units[k][place] = 1.0
            yield k, place, [u if u.ndim else float(u) for u in units]
