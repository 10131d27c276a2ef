"""Log densities for nutpie: `model(logp, example)` is a model that `nutpie.sample` takes, with gradients by srcdiff.

nutpie, which is written in Rust, calls the compiled function by its address, from all its threads at once: there is no
Python in a step of the sampler.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from nutpie.compile_pymc import CompiledPyMCModel

from srcdiff.api.c_functions import CFunction
from srcdiff.api.derivatives import Derivative
from srcdiff.api.reverse import value_and_grad
from srcdiff.bridges import written_functions as written
from srcdiff.bridges.flat_functions import short_name
from srcdiff.diagnostics.options import Wrt

Function = Callable[..., Any]
_POINTER = ctypes.POINTER(ctypes.c_double)
_EXPAND = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, _POINTER, _POINTER, ctypes.c_void_p)


def model(
    logp: Function,
    *example: Any,
    wrt: Wrt = 0,
    expand: Function | None = None,
    jitter: float = 1.0,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
    **options: Any,
) -> CompiledPyMCModel:
    """Make a model for `nutpie.sample` from a log density.

    Args:
        logp: A function of parameters and data that returns the logarithm of a density, without its constant. The
            parameters may take all real values: transform those that must be positive, and add the logarithm of the
            derivative of the transformation.
        *example: All arguments of `logp`. The parameters are the middle of the points that chains start from; the
            other arguments are copied now.
        wrt: Which arguments are the parameters, as for `srcdiff.grad`. They may be numbers, arrays, dictionaries and
            instances.
        expand: A function of the same arguments that returns a dictionary of further numbers and arrays to store for
            each draw, such as a scale that is sampled as its logarithm. It is ordinary Python.
        jitter: How far, at most, the starts of chains are from the example, in each parameter.
        dims: The names of the axes of parameters, and of what `expand` returns.
        coords: The coordinates of axes, by their names.
        **options: The compile options of `srcdiff.grad`.

    Returns:
        A model of nutpie. The names of its variables are the keys and attributes that lead to a parameter, with points
        between them: `"decay.rate"` for `params["decay"].rate`.

    Raises:
        ValueError: If the log density of the example is not finite.
    """
    f = CFunction(derivative := value_and_grad(logp, wrt, **options), derivative.ravel(*example))
    with written.noted(logp, "nutpie"):
        value, gradient = f(f.flat.x)
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        what = f"{value}" if not np.isfinite(value) else "finite, but its gradient is not"
        raise ValueError(f"the log density of the example is {what}, in {written.place_of(logp)}")
    stored = _Stored(f, derivative, expand, [*_short_names(f)])
    names, shapes = list(stored.shapes), list(stored.shapes.values())
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    slices = [slice(end - np.prod(shape, dtype=int), end) for end, shape in zip(ends, shapes, strict=True)]
    known = {name: pd.Index(values) for name, values in (coords or {}).items()}
    unknown = {*(dims or {})} - {*names}
    if unknown:
        raise ValueError(f"`dims` has {', '.join(sorted(unknown))}, but the variables are {', '.join(names)}")

    def start(seed: int | None = None) -> np.ndarray[Any, Any]:
        return f.flat.x + np.random.default_rng(seed).uniform(-jitter, jitter, f.n)

    return CompiledPyMCModel(
        dims={name: tuple(axes) for name, axes in (dims or {}).items()},
        compiled_logp_func=f,
        compiled_expand_func=stored,
        initial_point_func=start,
        shared_data={},
        shared_var_keys={},
        user_data=np.zeros(()),
        n_expanded=int(ends[-1]),
        shape_info=(names, slices, shapes),
        logp_func=f,
        expand_func=stored,
        _n_dim=f.n,
        _shapes=stored.shapes,
        _coords={**known, "unconstrained_parameter": pd.Index(f.flat.names)},
    )


class _Stored:
    """The values to store for each draw, as a function that nutpie calls by its address."""

    def __init__(self, f: CFunction, derivative: Derivative, expand: Function | None, names: Sequence[str]) -> None:
        self.f, self.derivative, self.expand = f, derivative, expand
        self.shapes: dict[str, tuple[int, ...]] = {
            name: part.shape_in_vector for name, part in zip(names, f.flat.parts, strict=True)
        }
        for name, further in self._further(f.flat.x).items():
            if name in self.shapes:
                raise ValueError(f"`expand` returns {name!r}, which is a parameter")
            self.shapes[name] = further.shape
        self.further = [*self.shapes][len(f.flat.parts) :]
        self.function: Any = _copied() if expand is None else _EXPAND(self._written)
        self.address: Any = getattr(self.function, "address", 0) or ctypes.cast(self.function, ctypes.c_void_p).value

    def _further(self, x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
        if self.expand is None:
            return {}
        args, named = self.derivative.spread(self.f.flat.arguments(x))
        found = self.expand(*args, **named)
        if not isinstance(found, Mapping):
            raise TypeError(f"`expand` must return a dictionary, not a {type(found).__name__}")
        return {name: np.asarray(value, dtype=float) for name, value in found.items()}

    def _written(self, n: int, size: int, x: Any, out: Any, data: Any) -> int:
        """Write the parameters and the further values of a draw.

        An exception would stop the process, as nutpie is now: further values that cannot be computed are NaN.
        """
        vector, row = np.ctypeslib.as_array(x, (n,)), np.ctypeslib.as_array(out, (size,))
        row[:n], row[n:] = vector, np.nan
        try:
            further = self._further(vector)
            if {name: value.shape for name, value in further.items()} != {k: self.shapes[k] for k in self.further}:
                raise ValueError("it must always return the same keys and shapes")
            if further:
                row[n:] = np.concatenate([further[name].reshape(-1) for name in self.further])
        except Exception as error:
            message = f"`expand` has raised {error!r} for a draw, in {written.place_of(self.expand)}: NaN is stored"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        return 0


@functools.cache
def _copied() -> Any:
    """The function for models without further values: draws are stored as they are."""
    import numba
    from numba import types

    @numba.cfunc(types.int64(types.uint64, types.uint64, *[types.CPointer(types.float64)] * 2, types.voidptr))
    def copied(n: Any, size: Any, x: Any, out: Any, data: Any) -> Any:
        if n != size:
            return -1
        for k in range(n):
            out[k] = x[k]
        return 0

    return copied


def _short_names(f: CFunction) -> Iterator[str]:
    """The names of the variables: without the argument, if there is one argument with all parameters."""
    single = f.derivative.single
    for part in f.flat.parts:
        name = short_name(part.name, part.argument)
        yield name if single or name == part.argument else f"{part.argument}.{name}"
