"""Numerical derivatives with error estimates. The tests compare gradients with them.

A derivative along a line is estimated from central differences at a ladder of halved steps, extrapolated twice
(sixth order), and reported with its error: the truncation error from two neighbouring orders, and the rounding error
from the noise of the function itself, measured by a difference table at a tiny spacing (Hamming; Moré and Wild,
"Estimating computational noise", 2011). Nothing is guessed, so a tolerance can be derived from it.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: The danger of an error estimate are two values that agree by chance. So the allowed difference is this many errors.
SAFETY = 20.0


@dataclass(frozen=True, slots=True)
class Derivative:
    """A directional derivative, its estimated error, and whether the one-sided derivatives disagree."""

    value: float
    error: float
    kinked: bool = False

    @property
    def tolerance(self) -> float:
        """The allowed difference of a correct derivative."""
        return SAFETY * self.error + 1e-11 * abs(self.value) + 1e-13

    def resolved(self, relative: float = 1e-5, scale: float = 1.0) -> bool:
        """Whether the estimate is accurate enough for a meaningful comparison."""
        return not self.kinked and self.tolerance <= relative * max(scale, abs(self.value))


def noise_of(function: Callable[[float], float], spacing: float = 2.0**-38) -> float:
    """The standard deviation of the rounding noise of `function` near zero.

    >>> noise_of(lambda t: 3.0 + 0.0 * t)
    0.0
    """
    order = 4
    table = np.array([function((k - order / 2) * spacing) for k in range(order + 3)])
    for _ in range(order):
        table = table[1:] - table[:-1]
    gamma = math.factorial(order) ** 2 / math.factorial(2 * order)
    return float(np.sqrt(gamma * np.mean(table * table)))


def derivative(function: Callable[[float], float], first: float = 2.0**-6, levels: int = 9) -> Derivative:
    """The derivative of `function` at zero, from central differences at the steps first / 2**k.

    >>> found = derivative(lambda t: math.sin(1.0 + t))
    >>> abs(found.value - math.cos(1.0)) <= found.tolerance <= 1e-10
    True
    """
    centre = float(function(0.0))
    noise = noise_of(function)
    steps = [first / 2.0**k for k in range(levels)]
    ahead = np.array([function(h) for h in steps], dtype=float)
    behind = np.array([function(-h) for h in steps], dtype=float)
    if not (math.isfinite(centre) and np.all(np.isfinite(ahead)) and np.all(np.isfinite(behind))):
        return Derivative(math.nan, math.inf)
    largest = max(abs(centre), float(np.max(np.abs(ahead))), float(np.max(np.abs(behind))))
    rounding = noise + np.finfo(float).eps * largest
    second = (ahead - behind) / (2.0 * np.array(steps))
    fourth = (4.0 * second[1:] - second[:-1]) / 3.0
    sixth = (16.0 * fourth[1:] - fourth[:-1]) / 15.0
    # rounding: the weights of the sixth-order formula at steps h, h/2, h/4 add up to less than 4 / h
    errors = np.abs(sixth - fourth[1:]) + 4.0 * rounding / np.array(steps[:-2])
    best = int(np.argmin(errors))
    return Derivative(float(sixth[best]), float(errors[best]), _kinked(centre, ahead, behind, steps, rounding))


def _kinked(centre: float, ahead: np.ndarray, behind: np.ndarray, steps: Sequence[float], rounding: float) -> bool:
    """Whether the one-sided differences stay apart as the step shrinks: a kink exactly at the point.

    Central differences agree with each other there, so this is the only sign of a kink at the point itself.
    """
    gaps = np.abs(ahead - 2.0 * centre + behind) / np.array(steps)
    beyond_rounding = gaps > 16.0 * rounding / np.array(steps) + 1e-9
    usable = np.flatnonzero(beyond_rounding)
    if len(usable) < 3 or usable[-1] < len(steps) - 2:
        return False
    last = usable[-3:]
    # for a smooth function the gap halves with the step; at a kink it stays
    return bool(gaps[last[-1]] > 0.75 * gaps[last[-2]] and gaps[last[-2]] > 0.75 * gaps[last[-3]])


# --------------------------------------------------------------------------------------------- points of many arguments


def parts_of(value: Any) -> list[Any] | None:
    """The parts of a structure: a tuple, a list, a dictionary or an instance of a class; None for other values.

    >>> parts_of({"x": 1.0, "y": 2.0})
    [1.0, 2.0]
    """
    if isinstance(value, (tuple, list)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if hasattr(value, "__dict__") and not isinstance(value, (type, types.FunctionType, np.ndarray)):
        return [part for _, part in sorted(vars(value).items())]
    return None


def with_parts(value: Any, parts: Sequence[Any]) -> Any:
    """A structure of the same form with other parts.

    >>> with_parts({"x": 1.0, "y": 2.0}, [3.0, 4.0])
    {'x': 3.0, 'y': 4.0}
    """
    if isinstance(value, (tuple, list)):
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return dict(zip(value, parts, strict=True))
    made = object.__new__(type(value))
    made.__dict__.update(zip(sorted(vars(value)), parts, strict=True))
    return made


def float_fields(dtype: np.dtype) -> list[str]:
    """The fields of a structured dtype that have derivatives."""
    return [name for name in dtype.names or () if dtype[name].base.kind == "f"]


def clone(value: Any, memory: dict[int, Any] | None = None) -> Any:
    """A deep copy that preserves properties of arrays: strides, order, views of one base, one array passed twice."""
    memory = {} if memory is None else memory
    if id(value) in memory:
        return memory[id(value)]
    copied: Any
    if isinstance(value, np.ndarray):
        if isinstance(value.base, np.ndarray) and value.size:
            base = clone(value.base, memory)
            offset = value.__array_interface__["data"][0] - value.base.__array_interface__["data"][0]
            start = base.__array_interface__["data"][0] + offset
            copied = np.lib.stride_tricks.as_strided(_at_address(base, start, value), value.shape, value.strides)
        else:
            copied = value.copy(order="K")
    elif (parts := parts_of(value)) is not None:
        copied = with_parts(value, [clone(item, memory) for item in parts])
    else:
        copied = value
    memory[id(value)] = copied
    return copied


def _at_address(base: np.ndarray, address: int, like: np.ndarray) -> np.ndarray:
    """One element of `base`'s memory, at `address`, as an array."""
    owner = base
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    flat = owner.ravel(order="K")
    assert np.shares_memory(flat, owner)
    index = (address - flat.__array_interface__["data"][0]) // like.itemsize
    return flat[index : index + 1]


def is_active_type(value: Any) -> bool:
    """Whether a derivative with respect to `value` makes sense."""
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, (float, complex, np.inexact)):
        return True
    if isinstance(value, np.ndarray):
        return bool(np.issubdtype(value.dtype, np.inexact))
    if isinstance(value, (tuple, list)):
        return len(value) > 0 and all(is_active_type(item) for item in value)
    return False


def numbers_in(value: Any) -> Iterator[float]:
    """The real numbers inside a value, in order.

    >>> list(numbers_in((1.0, [2.0, np.array([3.0, 4.0])])))
    [1.0, 2.0, 3.0, 4.0]
    >>> list(numbers_in(1.0 + 2.0j))
    [1.0, 2.0]
    """
    if isinstance(value, np.ndarray) and value.dtype.names:
        for name in float_fields(value.dtype):
            yield from numbers_in(value[name])
    elif isinstance(value, np.ndarray):
        for item in value.ravel():
            yield from numbers_in(item)
    elif isinstance(value, (complex, np.complexfloating)):
        yield from (float(value.real), float(value.imag))
    elif (parts := parts_of(value)) is not None:
        for item in parts:
            yield from numbers_in(item)
    else:
        yield float(value)


def with_numbers(value: Any, numbers: Iterator[float], promote: bool) -> Any:
    """A copy of `value` that contains the next elements of `numbers`; in float64 if `promote`."""
    if isinstance(value, np.ndarray) and value.dtype.names:
        filled = value.copy()
        for name in float_fields(value.dtype):
            filled[name] = with_numbers(value[name].copy(), numbers, promote=False)
        return filled
    if isinstance(value, np.ndarray):
        if promote and value.dtype.kind != "c" and value.dtype != np.float64:
            filled = value.astype(np.float64)
        else:
            filled = clone(value)
        for index in np.ndindex(filled.shape):
            filled[index] = complex(next(numbers), next(numbers)) if filled.dtype.kind == "c" else next(numbers)
        return filled
    if (parts := parts_of(value)) is not None:
        return with_parts(value, [with_numbers(item, numbers, promote) for item in parts])
    if isinstance(value, (complex, np.complexfloating)):
        return type(value)(complex(next(numbers), next(numbers)))
    number = next(numbers)
    return number if promote or isinstance(value, float) else type(value)(number)


class Line:
    """A function of many arguments along a line through a point: what `derivative` takes."""

    def __init__(
        self,
        function: Callable[..., float],
        arguments: Sequence[Any],
        wrt: Sequence[int],
        direction: Sequence[float],
    ) -> None:
        self.function = function
        self.arguments = tuple(arguments)
        self.wrt = tuple(wrt)
        self.origin = np.array([n for k in wrt for n in numbers_in(arguments[k])], dtype=float)
        self.direction = np.asarray(direction, dtype=float)

    def __call__(self, t: float) -> float:
        numbers = iter((self.origin + t * self.direction).tolist())
        moved = list(clone(self.arguments))
        for k in self.wrt:
            moved[k] = with_numbers(self.arguments[k], numbers, promote=True)
        return float(self.function(*moved))


def size_of(arguments: Sequence[Any], wrt: Sequence[int]) -> int:
    """The number of reals in the chosen arguments."""
    return sum(1 for k in wrt for _ in numbers_in(arguments[k]))


def gradient(function: Callable[..., float], arguments: Sequence[Any], wrt: Sequence[int]) -> list[Derivative]:
    """The derivative along every coordinate of the chosen arguments, in order.

    >>> found = gradient(lambda x, a: x * a[0], (2.0, np.array([3.0])), (0, 1))
    >>> [round(one.value, 9) for one in found]
    [3.0, 2.0]
    """
    count = size_of(arguments, wrt)
    return [derivative(Line(function, arguments, wrt, row)) for row in np.eye(count)]
