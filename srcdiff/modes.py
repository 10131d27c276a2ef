"""Tangents and adjoints of whole functions: `jvp` and `vjp`."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.api import Derivative, Wrt, has_floats, with_written
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array
from srcdiff.source.abstract import Abstract, Tuple

Function = Callable[..., Any]


@functools.lru_cache(maxsize=512)
def derivative_of(f: Function, mode: str, wrt: Any, backend: str, options: tuple[tuple[str, Any], ...]) -> Derivative:
    """One derivative for all calls that ask for the same."""
    return Derivative(f, mode, wrt, with_value=False, backend=backend, **dict(options))


def fitted(x: Abstract, value: Any, given: Any, name: str) -> Any:
    """A tangent of a value, or an adjoint, as compiled code takes it: made like the value; None is zero."""
    if isinstance(x, Tuple):
        if given is not None and len(given) != len(value):
            raise ValueError(f"{name} has {len(given)} parts, its value {len(value)}")
        parts = [None] * len(value) if given is None else given
        if isinstance(value, list) and any(isinstance(v, np.ndarray | tuple | list) for v in value):
            raise TypeError(f"{name} is one of a list of other things than numbers, which is not taken yet")
        if isinstance(value, list) and not (x.items and isinstance(x.items[0], Value) and _is_number(x.items[0])):
            return (np.array([0.0 if p is None else p for p in parts], dtype=float), *[None] * (len(x.items) - 1))
        each = zip(x.items, value, parts, strict=True)
        return tuple(fitted(i, v, p, f"{name}[{k}]") for k, (i, v, p) in enumerate(each))
    if not isinstance(x, Value):
        return None
    if _is_number(x):
        return 0.0 if given is None else float(given)
    result = np.zeros_like(value)
    if given is not None:
        found = np.asarray(given)
        if found.shape != value.shape:
            raise ValueError(f"{name} has the shape {found.shape}, its value {value.shape}")
        result[...] = found
    return result


def _is_number(x: Value) -> bool:
    return not isinstance(x.type, Array)


def jvp(
    f: Function, primals: Sequence[Any], tangents: Sequence[Any], *, backend: str = "numba", **options: Any
) -> tuple[Any, Any]:
    """The value of `f` at the primals, and its derivative in the direction of the tangents, by forward mode.

    A tangent has the form of its argument; None marks an argument that is held constant. Arrays that `f` writes into
    are results too, by the names of the arguments: beside what it returns, or alone if it returns nothing.
    """
    if len(primals) != len(tangents):
        raise ValueError(f"{len(primals)} primals and {len(tangents)} tangents are given")
    chosen = tuple(k for k, t in enumerate(tangents) if t is not None)
    derivative = derivative_of(f, "forward", chosen, backend, tuple(sorted(options.items())))
    args = derivative.bound(tuple(primals), {})
    takes = derivative.specialised(args).compiled.further
    dots = [fitted(x, args[k], tangents[k], name) for k, (name, x) in zip(chosen, takes.items(), strict=True)]
    value, tangent = derivative.run(args, tuple(dots))
    return value, tangent


def vjp(
    f: Function, *args: Any, wrt: Wrt | None = None, backend: str = "numba", **options: Any
) -> tuple[Any, Callable[..., Any]]:
    """The value of `f`, and the function that takes adjoints of its results to adjoints of its arguments.

    The adjoints are a tuple with one for each argument, None for those that hold no floats; or what `wrt` names, as
    `grad` gives it. Arrays that `f` writes into are results too; their adjoints go by name: `pullback(out=...)`.
    """
    given = tuple(sorted(options.items()))
    primal = derivative_of(f, "primal", 0, backend, given)
    args = primal.bound(args, {})
    kept, run_on = copy.deepcopy(args), copy.deepcopy(args)
    value = primal.run(run_on)
    names = primal.specialised(args).compiled.written
    written = [run_on[primal.names.index(n)] for n in names]
    floats = tuple(k for k, a in enumerate(args) if has_floats(a))
    asked = floats if wrt is None else (wrt,) if isinstance(wrt, int | str) else tuple(wrt)
    derivative = derivative_of(f, "pullback", asked, backend, given)

    def pullback(result: Any = None, **bars: Any) -> Any:
        unknown = bars.keys() - set(names)
        if unknown:
            said = f"it writes into {', '.join(names)}" if names else "it writes into no argument"
            raise TypeError(f"`{derivative.function.__name__}` does not write into {', '.join(unknown)}: {said}")
        takes = derivative.specialised(kept).compiled.further
        values = {
            "result_bar": (value, result),
            **{f"{n}_bar": (w, bars.get(n)) for n, w in zip(names, written, strict=True)},
        }
        fit = [fitted(x, *values[name], name) for name, x in takes.items()]
        found = derivative.run(kept, tuple(s for s in fit if s is not None))
        if wrt is not None:
            return found[0] if isinstance(wrt, int | str) else found
        each = dict(zip(floats, found, strict=True))
        return tuple(each.get(k) for k in range(len(args)))

    return with_written(value, names, written), pullback
