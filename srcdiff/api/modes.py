"""Forward and reverse mode of functions with any results: `jvp` and `vjp`."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.extending import overload

from srcdiff.api.chosen_arguments import has_floats
from srcdiff.api.derivatives import Derivative
from srcdiff.api.fitting import fitted, fitted_tangents
from srcdiff.api.reverse import grad
from srcdiff.api.specialisations import with_written
from srcdiff.backends.numba import numba_cpu
from srcdiff.backends.numba.direct import UnfitError
from srcdiff.diagnostics.options import (
    Wrt,
    compile_options,
    is_one,
)
from srcdiff.frontend.domain.abstract_values import Static
from srcdiff.frontend.source.capture import made_once
from srcdiff.library import composed
from srcdiff.signature.copies import copied, state_of

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.driver.compiling import Compiled

Function = Callable[..., Any]


def derivative_of(f: Function, mode: str, wrt: Any, backend: str, options: dict[str, Any]) -> Derivative:
    """The same derivative for equal requests."""
    if options or type(backend) is not str:
        options = compile_options(backend, options)
    derivative: Derivative = derivative_once(f, mode, wrt, backend, tuple(sorted(options.items())))
    return derivative


@made_once
def derivative_once(f: Function, mode: str, wrt: Any, backend: str, options: tuple[tuple[str, Any], ...]) -> Derivative:
    return Derivative(f, mode, wrt, with_value=mode == "forward", backend=backend, **dict(options))


def jvp(
    f: Function, primals: Sequence[Any], tangents: Sequence[Any], *, backend: str = "numba", **options: Any
) -> tuple[Any, Any]:
    """The value of `f` and its directional derivative, by forward mode (Jacobian times vector).

    >>> import numpy as np
    >>> def product(x, y):
    ...     return x * y
    >>> value, tangent = jvp(product, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.0]), None))
    >>> value, tangent
    (array([3., 6.]), array([3., 0.]))

    Args:
        f: A Python function.
        primals: The arguments at which `f` is evaluated.
        tangents: The direction: one tangent for each argument, with the structure and shape of that argument. None
            holds the argument constant.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        The pair `(value, tangent)`. If `f` returns nothing, both are dictionaries of the arrays that it writes to, by
        name: `"out"`, or `"state['x']"` for an array in a dictionary.

    Raises:
        DifferentiationError: If `f` cannot be differentiated.
    """
    if len(primals) != len(tangents):
        raise ValueError(f"{len(primals)} primals but {len(tangents)} tangents are given")
    if not options:
        try:
            known = _forward(f, backend, tuple([t is not None for t in tangents]))
            pair: tuple[Any, Any] = known.tangent(primals, [t for t in tangents if t is not None])
            return pair
        except (UnfitError, TypeError):  # or something has no hash
            pass
    primal = derivative_once(f, "primal", 0, "python", ())  # only its signature is needed
    args, dots = primal.bound(tuple(primals), {}), by_parameter(primal, tangents)
    chosen = tuple(n for n, dot in dots.items() if any(d is not None for d in (dot if n in primal.stars else (dot,))))
    chosen = chosen or tuple(n for n in dots if has_floats(args[primal.names.index(n)]))  # None is zero there
    derivative = derivative_of(f, "forward", chosen, backend, options)
    value, tangent = derivative.run_tangent(args, fitted_tangents(derivative, args, [dots[n] for n in chosen]))
    return value, tangent


@made_once
def _forward(f: Function, backend: str, given: tuple[bool, ...]) -> Derivative:
    """The tangent program for tangents of some arguments; raises UnfitError if the general case is needed."""
    primal = derivative_once(f, "primal", 0, "python", ())
    if primal.by_name or len(given) != len(primal.names) or not any(given):
        raise UnfitError
    chosen = tuple(n for n, is_given in zip(primal.names, given, strict=True) if is_given)
    return derivative_of(f, "forward", chosen, backend, {})


def by_parameter(primal: Derivative, given: Sequence[Any]) -> dict[str, Any]:
    """Positional arguments by the names of their parameters; those of `*args` are a tuple."""
    if not primal.stars:
        return dict(zip(primal.names, given, strict=False))
    return primal.signature.bind_partial(*given).arguments


def _jvp_of(names: tuple[str, ...], chosen: tuple[int, ...]) -> Any:
    """What `jvp` means inside a differentiated function, with tangents of these arguments."""
    from srcdiff.frontend.derivation import Derivation

    if not chosen:  # the value alone
        return Derivation("primal", (), with_value=True, single=False)
    return Derivation("forward", tuple(names[k] for k in chosen), with_value=True)


def vjp(
    f: Function, *args: Any, wrt: Wrt | None = None, backend: str = "numba", **options: Any
) -> tuple[Any, Callable[..., Any]]:
    """The value of `f` and its pullback, by reverse mode (vector times Jacobian).

    >>> import numpy as np
    >>> def product(x, y):
    ...     return x * y
    >>> value, pullback = vjp(product, np.array([1.0, 2.0]), 3.0)
    >>> x_bar, y_bar = pullback(np.array([1.0, 1.0]))
    >>> x_bar, float(y_bar)
    (array([3., 3.]), 3.0)

    Args:
        f: A Python function.
        *args: The arguments at which `f` is evaluated.
        wrt: The arguments whose adjoints are computed, as for `grad`; None means all of them.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        The pair `(value, pullback)`. The pullback takes the adjoint of the result, with its structure and shape. It
        returns a tuple with the adjoint of each argument, None for arguments without floats; with `wrt`, it returns
        what `grad` would return. Arrays that `f` writes to are results, too. Pass their adjoints by name:
        `pullback(out=...)`, or `pullback(**{"state['x']": ...})` for an array in a dictionary, list, tuple or
        dataclass.

    Raises:
        DifferentiationError: If `f` cannot be differentiated.
    """
    primal = derivative_of(f, "primal", 0, backend, options)
    given = primal.bound(args, {})
    if wrt is not None:
        value, pullback = pulled_back(primal, given, primal.chosen(wrt))
        return value, (lambda *bars, **named: pullback(*bars, **named)[0]) if is_one(wrt) else pullback
    by_name = dict(zip(primal.names, given, strict=True))
    floats = tuple(n for n, a in by_name.items() if has_floats(a))
    nothing: dict[str, Any] = {n: (None,) * len(by_name[n]) for n in primal.stars}
    value, pullback = pulled_back(primal, given, floats)

    def adjoints(*bars: Any, **named: Any) -> tuple[Any, ...]:
        found = nothing | dict(zip(floats, pullback(*bars, **named), strict=True))
        each: list[tuple[str, Any]] = [(n, found.get(n)) for n in primal.names]
        return tuple([b for n, bar in each for b in (bar if n in primal.stars else (bar,))])

    return value, adjoints


def pulled_back(primal: Derivative, args: tuple[Any, ...], wrt: tuple[str, ...]) -> tuple[Any, Callable[..., Any]]:
    """The value, and the pullback to the arguments `wrt`."""
    specialisation = primal.specialised(args)
    specialisation.prepared(args)  # copies share no memory, and would not be refused for that
    kept = tuple(map(_copied, args))
    run_on = tuple(map(_copied, args)) if specialisation.compiled.writes else kept
    with put_back(specialisation.compiled) as arrays:
        value = primal.run(run_on) if primal.by_name else primal(*run_on)
        value = copy.deepcopy(value) if arrays else value
    parts = specialisation.compiled.written
    written = [part.of(run_on) for part in parts]
    derivative = derivative_of(primal.of, "pullback", wrt, primal.backend, primal.options)

    def pullback(result: Any = None, /, **bars: Any) -> Any:
        names = [part.name for part in parts]
        unknown = bars.keys() - set(names)
        if unknown:
            writes = f"it writes to {', '.join(names)}" if names else "it does not write to any argument"
            raise TypeError(f"`{derivative.function.__name__}` does not write to {', '.join(unknown)}: {writes}")
        compiled = derivative.specialised(kept).compiled
        pairs = [(compiled.reading.result, value, result, "result_bar")]
        pairs += [(p.value, w, bars.get(p.name), f"{p.name}_bar") for p, w in zip(parts, written, strict=True)]
        fit = [fitted(x, *pair) for x, pair in zip(compiled.further.values(), pairs, strict=True)]
        return derivative.run(kept, tuple(s for s in fit if s is not None))

    return with_written(value, parts, written), pullback


def _copied(argument: Any) -> Any:
    if type(argument) is np.ndarray:
        return argument.copy(order="K")
    return argument if type(argument) in (float, int) else copied(argument)


def returns_nothing(derivative: Derivative, args: tuple[Any, ...]) -> bool:
    """Whether the only results are the arrays that the function writes to, which are passed by name."""
    result = derivative.specialised(args).compiled.reading.result
    return isinstance(result, Static) and result.value is None


@contextlib.contextmanager
def put_back(compiled: Compiled) -> Iterator[list[Any]]:
    """Restore the outside arrays, and the outside objects, that the function writes to, at the end of the block."""
    reading = compiled.reading
    is_written = reading.written_kinds or reading.changed_lists
    objects = [state_of(place.read()) for place in reading.held_outside] if is_written else []
    arrays = [a for a in (o.read() for o in compiled.reading.outside) if isinstance(a, np.ndarray) and compiled.writes]
    before = [a.copy() for a in arrays]
    try:
        yield arrays
    finally:
        for put_back in objects:
            put_back()
        for array, contents in zip(arrays, before, strict=True):
            if array.flags.writeable:
                array[...] = contents


def _jvp_in_compiled_code(f: Any, primals: Any, tangents: Any) -> Any:
    """`jvp` in compiled code of users: `f` is compiled by Numba, or a derivative."""
    from numba.core import types

    if not isinstance(f, types.Dispatcher) or not isinstance(primals, types.BaseTuple):
        return None
    of: Any = getattr(f.dispatcher, "stands_for", f.dispatcher)
    given = tuple(numba_cpu.described(t) for t in primals)  # type: ignore[attr-defined]
    primal = derivative_once(of, "primal", 0, "python", ())
    places = [k for k, t in enumerate(tangents) if not isinstance(t, types.NoneType)]
    chosen = tuple(primal.names[k] for k in places)
    derivative = derivative_of(of, "forward", chosen, "numba", {})
    dots = [f"tangents[{k}]" for k in places]
    names, lines = derivative.body_with_tangents(given, dots, "({0}[0], {0}[2])")
    head = "call(f: Any, primals: Any, tangents: Any) -> Any"  # Numba compares it with that of this function
    return numba_cpu.function_with_body(head, (names, ["args = primals", *lines]))


overload(jvp)(_jvp_in_compiled_code)

# their meaning inside a differentiated function
jvp.__srcdiff_tangents__ = _jvp_of  # type: ignore[attr-defined]
vjp.__srcdiff_inside__ = (composed.vjp, grad, jvp)  # type: ignore[attr-defined]
