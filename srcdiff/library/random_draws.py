"""Random numbers: the draws that Python makes for generated code, and distributions as functions of standard draws.

A draw takes the number of draws before it, and returns the next number. So draws are ordered by their data dependences,
and no draw is repeated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.library.call_outs import CallOut, Kind
from srcdiff.signature.random_sources import COMPILED_IN, SOURCES, number_of, source_of

NUMBA = "numba"
"""The random states of functions that Numba compiles. Numba has its own, one for each thread."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A method of a source of random numbers, with its constant arguments."""

    method: str
    constants: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()
    takes_size: bool = True
    last: str = ""
    """The keyword of the last parameter, if it cannot be passed by position."""


@functools.cache
def call_for(draw: Draw, source: Any, rank: int, count: int, kinds: tuple[Kind, ...]) -> CallOut:
    """The function that generated code calls to draw an array of this rank, with so many parameters.

    Without a source, the call takes the number of one. Without kinds, it draws nothing and sets the seed.
    """

    if isinstance(source, SOURCES) and not any(source is s for s in COMPILED_IN):
        COMPILED_IN.append(source)

    def drawn(draws: int, *given: Any) -> Any:
        of = source_of(given[0]) if source is None else source
        parameters, shape = given[:count], given[count:]
        if source is None:
            parameters, shape = given[1 : count + 1], given[count + 1 :]
        keywords = dict(draw.keywords)
        if draw.takes_size and rank:
            keywords["size"] = shape
        if draw.last:
            *parameters, keywords[draw.last] = parameters
        method = _of_numba(draw.method) if isinstance(of, str) else getattr(of, draw.method)
        found = method(*parameters, *draw.constants, **keywords)
        return (found, draws + 1) if kinds else draws + 1

    return CallOut(drawn, (*kinds, ("int64", 0)), draw.method.rpartition(".")[2], meaning="a draw of random numbers")


@functools.cache
def maker_of(function: Callable[..., Any], count: int) -> CallOut:
    """A function that creates a source of random numbers inside the program, and returns its number."""

    def made(draws: int, *given: Any) -> Any:
        return number_of(function(*given)), draws + 1

    return CallOut(made, (("int64", 0), ("int64", 0)), function.__name__, meaning="a source of random numbers")


@functools.cache
def _of_numba(name: str) -> Callable[..., Any]:
    """A random function of Numba, callable from Python: `np.random.normal(0.0, 1.0, size=(3,))`."""
    import random

    import numba

    module, _, short = name.rpartition(".")
    names = {"random": random, "np": np}

    def compiled(count: int) -> Any:
        given = ", ".join(f"a{k}" for k in range(count))
        scope: dict[str, Any] = dict(names)
        exec(f"def draw({given}): return {module}.{short}({given})", scope)
        return numba.njit(scope["draw"])

    compiled = functools.cache(compiled)

    def drawn(*given: Any, size: tuple[int, ...] | None = None) -> Any:
        one = compiled(len(given))
        if size is None:
            return one(*given)
        return np.array([one(*given) for _ in range(int(np.prod(size)))]).reshape(size)

    return drawn


# -- distributions, as functions of standard draws: srcdiff reads these -----------------------------------------------


def _checked(scale: Any) -> Any:
    if np.any(scale < 0.0):
        raise ValueError("scale < 0")
    return scale


def located(z: Any, loc: Any, scale: Any) -> Any:
    return loc + _checked(scale) * z


def scaled(z: Any, scale: Any) -> Any:
    return _checked(scale) * z


def between(z: Any, low: Any, high: Any) -> Any:
    return low + (high - low) * z


def rising(z: Any, low: Any, high: Any) -> Any:
    if np.any(high - low < 0.0):
        raise ValueError("high - low < 0")
    return low + (high - low) * z


def exponential_of(z: Any, mean: Any, sigma: Any) -> Any:
    return np.exp(mean + _checked(sigma) * z)


def root_of(z: Any, a: Any) -> Any:
    return z ** (1.0 / a)


def as_it_is(z: Any) -> Any:
    return z


def added(*parameters: Any) -> Any:
    """An array with the broadcast shape of the parameters."""
    total = 0.0
    for one in parameters:
        total = total + one
    return total


def without_axes(z: Any, mu: Any, sigma: Any) -> Any:
    """A number, by the formula of Python's `random`."""
    return mu + z * sigma


def rate(z: Any, lambd: Any) -> Any:
    return z / lambd


def shuffled(x: Any, order: Any) -> None:
    x[:] = x[order]
