"""The options of the public functions: their allowed values, and the errors for all other values.

>>> DIRECTIONS.checked("directions", -1)
Traceback (most recent call last):
ValueError: `directions` must be None or a positive integer, not -1
>>> compile_options("numba", {"error_model": "c"})
Traceback (most recent call last):
ValueError: `error_model` must be 'numpy' or 'python', not 'c'
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from srcdiff.quick_dataclasses import dataclass

Wrt = int | str | Sequence[int | str]

_NONE = type(None)
INTEGERS = (int, np.integer)
_FLAGS = frozenset({"nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc", "fast"})


@dataclass(frozen=True, slots=True)
class Option:
    """The allowed values of an option: a description for messages, the types, and a test of the value."""

    allowed: str
    types: tuple[type, ...]
    fits: Callable[[Any], bool] = lambda _: True

    def checked(self, name: str, value: Any) -> Any:
        """The value if the option allows it; otherwise raise `TypeError` or `ValueError`."""
        is_other_number = isinstance(value, bool) and bool not in self.types
        if not isinstance(value, self.types) or is_other_number:
            raise TypeError(f"`{name}` must be {self.allowed}, not {value!r}")
        if not self.fits(value):
            raise ValueError(f"`{name}` must be {self.allowed}, not {value!r}")
        return value


@dataclass(frozen=True, slots=True)
class Choice(Option):
    """One of a few values."""

    values: tuple[Any, ...] = ()


def one_of(*values: Any) -> Choice:
    """An option that is one of these.

    >>> one_of("each", "sum").checked("shared", "all")
    Traceback (most recent call last):
    ValueError: `shared` must be 'each' or 'sum', not 'all'
    """
    *first, last = map(repr, values)
    allowed = f"{', '.join(first)} or {last}" if first else last
    return Choice(allowed, tuple({type(v) for v in values}), lambda value: value in values, values)


SWITCH = Option("True or False", (bool,))
DERIVATIVE = one_of("grad", "value_and_grad", "jvp", "vjp", "hvp", "primal")
"""`mode` of `export` and of the commands; `primal` is the function itself."""
PROGRAM = one_of("reverse", "forward", "pullback", "primal")
"""`mode` of `source`."""
SWEEPS = one_of(None, "forward", "reverse")
"""`mode` of `jacobian`: None chooses the mode that needs fewer sweeps."""
FEW_DIRECTIONS = 8
"""Directions of a Jacobian, at most, whose number is compiled in."""
OTHER_NUMBER = "this Jacobian is compiled for {} directions"
"""The error of compiled code that is called with another number of directions."""
DIRECTIONS = Option("None or a positive integer", (*INTEGERS, _NONE), lambda n: n is None or n >= 1)
SHARED = one_of("each", "sum")
ORDER = one_of(1, 2)
SECONDS = Option("a number, zero or more", (int, float, np.number), lambda s: 0.0 <= s < float("inf"))
EXTENT = Option(
    "a positive integer, or a tuple of up to three",
    (*INTEGERS, tuple, list),
    lambda n: _are_extents(n if isinstance(n, tuple | list) else (n,)),
)
"""The number of blocks in a launch, or of threads in a block."""
CAPABILITY = Option(
    "a pair of integers, such as (8, 0)",
    (tuple,),
    lambda cc: len(cc) == 2 and all(isinstance(n, INTEGERS) and n >= 0 for n in cc),
)


def _are_extents(numbers: Sequence[Any]) -> bool:
    return 1 <= len(numbers) <= 3 and all(isinstance(n, INTEGERS) and n >= 1 for n in numbers)


_PERHAPS = one_of(None, True, False)
COMPILING: dict[str, Option] = {
    "fastmath": Option(
        f"True, False or a set of {', '.join(map(repr, sorted(_FLAGS)))}",
        (bool, set, frozenset),
        lambda flags: isinstance(flags, bool) or flags <= _FLAGS,
    ),
    "error_model": one_of("numpy", "python"),
    "boundscheck": _PERHAPS,
    "cache": _PERHAPS,
    "parallel": SWITCH,
    "deterministic": SWITCH,
}
"""The options that all backends have."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The options that a backend takes."""

    options: Mapping[str, Option]
    refused: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Values that this backend rejects because they would change which exceptions a call raises."""


BACKEND_OPTIONS: dict[str, Taken] = {}
"""The options of each backend, by its name; `srcdiff.backends.registry` fills this table."""


def checked_backend(backend: Any) -> str:
    """The name of a registered backend."""
    name: str = one_of(*BACKEND_OPTIONS).checked("backend", backend)
    return name


def compile_options(backend: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The checked options for compiling and running a derivative; all values are hashable."""
    taken = BACKEND_OPTIONS[checked_backend(backend)]
    found = {}
    for name, value in given.items():
        if name not in taken.options:
            raise TypeError(_unknown(name, taken.options))
        if taken.options[name].checked(name, value) in taken.refused.get(name, ()):
            raise ValueError(f"the backend {backend!r} does not support `{name}={value!r}`")
        found[name] = frozenset(value) if isinstance(value, set) else value
    return found


def check_sweeps(mode: Any, directions: Any) -> None:
    """Check the options of Jacobians."""
    SWEEPS.checked("mode", mode)
    DIRECTIONS.checked("directions", directions)


def require_inside(given: Mapping[str, Any], known: Collection[str] = ("backend",)) -> None:
    """Check the options of a derivative inside a differentiated function.

    Compile options belong to the outer derivative. `backend` is accepted and has no effect.
    """
    for name in given:
        if any(name in taken.options for taken in BACKEND_OPTIONS.values()):
            raise TypeError(f"`{name}` is a compile option: pass it to the outer derivative")
        if name not in known:
            raise TypeError(f"unknown option `{name}`")
    checked_backend(given.get("backend", "numba"))
    check_sweeps(given.get("mode"), given.get("directions"))


def _unknown(name: str, table: Mapping[str, Option]) -> str:
    for backend, taken in BACKEND_OPTIONS.items():
        if name in taken.options:
            return f"`{name}` is an option of the backend {backend!r} only"
    return f"unknown option `{name}`; the options are {', '.join(table)}"


def is_one(wrt: Any) -> bool:
    """Whether `wrt` names one argument: then the gradient is not wrapped in a tuple."""
    return isinstance(wrt, str | int | np.integer)


def each_of(wrt: Any, name: str = "wrt") -> tuple[int | str, ...]:
    """The positions and names of arguments in the value of an option.

    >>> each_of("x"), each_of((0, "y"))
    (('x',), (0, 'y'))
    """
    asked = (wrt,) if is_one(wrt) else tuple(wrt) if isinstance(wrt, Sequence) else ()
    if not (is_one(wrt) or isinstance(wrt, Sequence)) or not all(is_one(a) and type(a) is not bool for a in asked):
        raise TypeError(f"`{name}` must be the position or the name of an argument, or a tuple of these, not {wrt!r}")
    return tuple(a if isinstance(a, str) else int(a) for a in asked)
