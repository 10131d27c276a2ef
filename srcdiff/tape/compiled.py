"""The compiled tape: records the function once, and replays the record forwards and backwards in a compiled loop.

ADOL-C and other tapes for C++ work like this. The function runs on numbers that write every operation into flat arrays:
the code of the operation and the positions of its operands. Arrays are NumPy arrays of such numbers, so that views,
slices and writes are NumPy's own. Every later call fills in the inputs, and runs the operations forwards and backwards.

A record is valid for one choice of branches, and everything that is not differentiated is a constant in it. So it also
holds every comparison with its outcome. The replay evaluates the comparisons and stops at the first one with another
outcome. Then, or if a constant has changed, the function is recorded again.
"""

from __future__ import annotations

import copy
import math
import operator
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.tape import loops
from srcdiff.tape.operations import CODES
from srcdiff.tape.partials import ALIASES, BINARY, OF_NUMBERS, UNARY
from srcdiff.tape.rebind import rebind

# -- recording -------------------------------------------------------------------------------------------------------


class Recording:
    """The record while it is written. Positions count inputs, then operations. Constants have negative positions."""

    def __init__(self) -> None:
        self.codes = array("B")
        self.left = array("i")
        self.right = array("i")
        self.inputs: list[float] = []
        self.constants: list[float] = []
        self.places: dict[tuple[float, float], int] = {}
        self.raised = False
        """Whether a function raised. If the program catches that, the record is of this call only."""

    def input(self, value: float) -> Number:
        self.inputs.append(value)
        return Number(self, value, len(self.inputs) - 1)

    def constant(self, value: float) -> int:
        """The position of a constant. Equal constants share one, but 0.0 and -0.0 are different."""
        key = (value, math.copysign(1.0, value))
        if key not in self.places:
            self.constants.append(value)
            self.places[key] = -len(self.constants)
        return self.places[key]

    def operation(self, name: str, value: float, left: int, right: int) -> Number:
        self.codes.append(CODES[name])
        self.left.append(left)
        self.right.append(right)
        return Number(self, value, len(self.inputs) + len(self.codes) - 1)

    def guard(self, name: str, left: int, right: int) -> None:
        self.codes.append(CODES[name])
        self.left.append(left)
        self.right.append(right)


class Number:
    """A number that writes down what is done with it."""

    __slots__ = ("place", "recording", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, recording: Recording, value: float, place: int) -> None:
        self.recording = recording
        self.value = value
        self.place = place

    def __add__(self, other: Any) -> Any:
        return _operation("add", "add_constant", "add_constant", self, other, operator.add)

    def __radd__(self, other: Any) -> Any:
        return _operation("add", "add_constant", "add_constant", other, self, operator.add)

    def __sub__(self, other: Any) -> Any:
        return _operation("subtract", "subtract_constant", "constant_subtract", self, other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return _operation("subtract", "subtract_constant", "constant_subtract", other, self, operator.sub)

    def __mul__(self, other: Any) -> Any:
        return _operation("multiply", "multiply_constant", "multiply_constant", self, other, operator.mul)

    def __rmul__(self, other: Any) -> Any:
        return _operation("multiply", "multiply_constant", "multiply_constant", other, self, operator.mul)

    def __truediv__(self, other: Any) -> Any:
        return _operation("divide", "divide_constant", "constant_divide", self, other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Any:
        return _operation("divide", "divide_constant", "constant_divide", other, self, operator.truediv)

    def __pow__(self, other: Any) -> Any:
        if type(other) in (int, float) and other == 0:
            return 1.0
        if type(other) in (int, float) and other in (2, 3, 4):  # products are faster than the function
            square = self.unary("square", self.value * self.value)
            return square if other == 2 else square * self if other == 3 else square * square
        return _operation("power", "power_constant", "power", self, other, operator.pow)

    def __rpow__(self, other: Any) -> Any:
        return _operation("power", "power_constant", "power", other, self, operator.pow)

    def __mod__(self, other: Any) -> Any:
        return _operation("remainder", "remainder", "remainder", self, other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return _operation("remainder", "remainder", "remainder", other, self, operator.mod)

    def __floordiv__(self, other: Any) -> Any:
        return _operation("floor_divide", "floor_divide", "floor_divide", self, other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return _operation("floor_divide", "floor_divide", "floor_divide", other, self, operator.floordiv)

    def __neg__(self) -> Number:
        return self.unary("negative", -self.value)

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Number:
        return self.unary("absolute", abs(self.value))

    def unary(self, name: str, value: float) -> Number:
        return self.recording.operation(name, value, self.place, self.place)

    def __lt__(self, other: Any) -> Any:
        return _compared("less", self, other)

    def __le__(self, other: Any) -> Any:
        return _compared("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return _compared("less", other, self)

    def __ge__(self, other: Any) -> Any:
        return _compared("less_equal", other, self)

    def __eq__(self, other: object) -> Any:
        return _compared("equal", self, other)

    def __ne__(self, other: object) -> Any:
        equal = _compared("equal", self, other)
        return equal if equal is NotImplemented else not equal

    def __bool__(self) -> bool:
        return bool(self != 0.0)

    # an integer may decide what the function does, so it must be the same in the replay

    def settled(self) -> float:
        self.recording.guard("equal", self.place, self.recording.constant(self.value))
        return self.value

    def __int__(self) -> int:
        return int(self.unary("trunc", float(math.trunc(self.value))).settled())

    __trunc__ = __int__

    def __floor__(self) -> int:
        return int(self.unary("floor", float(math.floor(self.value))).settled())

    def __ceil__(self) -> int:
        return int(self.unary("ceil", float(math.ceil(self.value))).settled())

    def __round__(self, digits: int | None = None) -> int:
        if digits is not None:
            raise TypeError("the compiled tape rounds to integers only")
        return int(self.unary("rint", float(round(self.value))).settled())

    def __format__(self, form: str) -> str:
        return format(self.value, form)

    def __repr__(self) -> str:
        return f"Number({self.value!r})"


def value_of(x: Any) -> float:
    """The value of a number, recorded or not."""
    return x.value if type(x) is Number else float(x)


def _operation(
    name: str,
    with_constant: str,
    of_constant: str,
    a: Any,
    b: Any,
    function: Callable[[float, float], float],
) -> Any:
    """Record an operation of two numbers, under another name if one of them is a constant."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return NotImplemented  # NumPy calls the operation for each element
    try:
        value = function(value_of(a), value_of(b))
    except (ArithmeticError, ValueError):
        (a if type(a) is Number else b).recording.raised = True
        raise
    if type(a) is Number:
        recording = a.recording
        if type(b) is Number:
            return recording.operation(name, value, a.place, b.place)
        right = recording.constant(float(b))
        return recording.operation(with_constant, value, a.place, right)
    recording = b.recording
    constant = recording.constant(float(a))
    if of_constant == name:  # this operation has no variant for constants
        return recording.operation(name, value, constant, b.place)
    return recording.operation(of_constant, value, b.place, constant)


def _compared(name: str, a: Any, b: Any) -> Any:
    """Record a comparison with its outcome."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return NotImplemented
    compare = {"less": operator.lt, "less_equal": operator.le, "equal": operator.eq}[name]
    outcome = compare(value_of(a), value_of(b))
    recording = a.recording if type(a) is Number else b.recording
    left, right = (x.place if type(x) is Number else recording.constant(float(x)) for x in (a, b))
    opposite = "not_equal" if name == "equal" else f"not_{name}"
    recording.guard(name if outcome else opposite, left, right)
    return outcome


# -- what the function finds under the names of numpy and math -------------------------------------------------------


def _recorded(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that records calls with recorded numbers, or arrays of them. Other calls go to the original."""
    function = OF_NUMBERS.get(name)

    def of_one(a: Any) -> Any:
        if type(a) is not Number:
            return float(original(a))
        if function is not None:
            try:
                return a.unary(name, float(function(a.value)))
            except (ArithmeticError, ValueError):  # at the edge of the domain
                if original is function:
                    a.recording.raised = True
                    raise
        with np.errstate(all="ignore"):
            return a.unary(name, float(original(a.value)))

    def of_two(a: Any, b: Any) -> Any:
        if type(a) is Number or type(b) is Number:
            return _operation(name, name, name, a, b, OF_NUMBERS[name])
        return float(original(a, b))

    each: Any = np.frompyfunc(of_two, 2, 1) if name in BINARY else np.frompyfunc(of_one, 1, 1)

    def recorded(*args: Any) -> Any:
        if any(type(x) is Number or (isinstance(x, np.ndarray) and x.dtype == object) for x in args):
            return each(*args)
        return original(*args)

    return recorded


def _extreme(name: str) -> Callable[..., Any]:
    each = np.frompyfunc(_recorded(name, getattr(np, name)), 2, 1)

    def extreme(a: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        a = np.asarray(a)
        result = each.reduce(a.ravel() if axis is None else a, axis=0 if axis is None else axis)
        if not keepdims:
            return result
        return np.reshape(result, (1,) * a.ndim) if axis is None else np.expand_dims(result, axis)

    return extreme


def _as_objects(make: Callable[..., Any]) -> Callable[..., Any]:
    """Arrays of floats are made as arrays of objects, so that recorded numbers can be written into them."""

    def made(*args: Any, **options: Any) -> Any:
        value = make(*args, **options)
        return value.astype(object) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value

    return made


def _filled(number: Any) -> Callable[..., Any]:
    return lambda a, *args, **options: np.full(np.shape(a), number, dtype=object)


def numpy_names() -> dict[str, Any]:
    """The names of `numpy` that record, and those that make arrays."""
    names: dict[str, Any] = {}
    for name in (*UNARY, *BINARY, *ALIASES):
        if hasattr(np, name):
            names[name] = _recorded(ALIASES.get(name, name), getattr(np, name))
    for name in ("floor", "ceil", "rint", "trunc", "sign"):
        names[name] = _recorded(name, getattr(np, name))
    for name in ("zeros", "ones", "empty", "full", "eye", "identity", "linspace", "arange", "array", "asarray"):
        names[name] = _as_objects(getattr(np, name))
    names |= {"max": _extreme("maximum"), "amax": _extreme("maximum")}
    names |= {"min": _extreme("minimum"), "amin": _extreme("minimum")}
    names |= {"zeros_like": _filled(0.0), "empty_like": _filled(0.0), "ones_like": _filled(1.0)}
    names["full_like"] = lambda a, number: np.full(np.shape(a), number, dtype=object)
    names["ascontiguousarray"] = names["asarray"]
    names["float64"] = _float
    return names


def math_names() -> dict[str, Any]:
    """The names of `math` that record."""
    names = {name: _recorded(name, getattr(math, name)) for name in (*UNARY, "atan2", "hypot")}
    names["pow"] = _recorded("power", math.pow)
    names["fabs"] = abs
    return names


def _float(x: Any) -> Any:
    return x if type(x) is Number else float(x)


# -- replaying -------------------------------------------------------------------------------------------------------


class Replay:
    """A finished record in flat arrays. `values` has one element for each constant, input and operation."""

    def __init__(self, recording: Recording, result: Any) -> None:
        constants, inputs = len(recording.constants), len(recording.inputs)
        self.inputs = slice(constants, constants + inputs)
        self.first = constants + inputs
        self.codes = np.frombuffer(recording.codes, dtype=np.uint8).copy()
        self.left, self.right = (_shifted(places, constants) for places in (recording.left, recording.right))
        self.values = np.empty(self.first + len(self.codes))
        self.values[:constants] = recording.constants
        self.adjoints = np.zeros_like(self.values)
        if type(result) is Number:
            self.result = constants + result.place
        else:  # the result does not depend on the inputs
            self.values = np.append(self.values, float(result))
            self.adjoints = np.append(self.adjoints, 0.0)
            self.result = len(self.values) - 1

    @property
    def nbytes(self) -> int:
        """The memory that the record holds between calls."""
        return sum(a.nbytes for a in (self.codes, self.left, self.right, self.values, self.adjoints))

    def run(self, inputs: np.ndarray) -> tuple[float, np.ndarray] | None:
        """Value and gradient; None if a comparison has another outcome than in the record."""
        values, adjoints = self.values, self.adjoints
        values[self.inputs] = inputs
        if loops.forward(self.codes, self.left, self.right, values, self.first) >= 0:
            return None
        adjoints[: self.first] = 0.0
        adjoints[self.result] = 1.0
        loops.backward(self.codes, self.left, self.right, values, adjoints, self.first)
        return float(values[self.result]), adjoints[self.inputs].copy()


def _shifted(places: array[int], constants: int) -> np.ndarray:
    """Positions in `values`. They are unsigned, so that the compiled loop need not test for negative indices."""
    signed = np.frombuffer(places, dtype=np.int32)
    return np.where(signed < 0, -1 - signed, signed + constants).astype(np.uint32)


class CompiledTape:
    """The value and the gradients of a function, from a record. An invalid record is made again."""

    def __init__(self, function: Callable[..., Any], positions: Sequence[int]) -> None:
        self.positions = tuple(positions)
        self.recording_function = rebind(function, numpy_names(), math_names(), {"float": _float})
        self.replay: Replay | None = None
        self.constants: list[Any] = []
        self.shapes: list[Any] = []
        self.recordings = 0

    @property
    def nbytes(self) -> int:
        """The memory that is held between calls."""
        return 0 if self.replay is None else self.replay.nbytes

    def __call__(self, *args: Any) -> tuple[float, tuple[Any, ...]]:
        chosen = [args[k] for k in self.positions]
        inputs = np.concatenate([_numbers(a) for a in chosen])
        found = self.replay.run(inputs) if self.replay is not None and self._is_current(args) else None
        if found is None or found[0] != found[0]:  # if the replay has a NaN, a function of `math` may raise
            found = self._record(args).run(inputs)
            assert found is not None, "the record differs from the function that was just recorded"
        value, gradient = found
        start = 0
        gradients = []
        for a in chosen:
            part, start = _like(a, gradient, start)
            gradients.append(part)
        return value, tuple(gradients)

    def _is_current(self, args: tuple[Any, ...]) -> bool:
        """Whether all constants of the record are unchanged."""
        if [_shape(args[k]) for k in self.positions] != self.shapes:
            return False
        given = [a for k, a in enumerate(args) if k not in self.positions]
        return _same(given, self.constants)

    def _record(self, args: tuple[Any, ...]) -> Replay:
        recording = Recording()
        given = [_recorded_argument(recording, a, k in self.positions) for k, a in enumerate(args)]
        self.replay = None  # if the function raises, there is no record
        result = self.recording_function(*given)
        replay = Replay(recording, result.item() if isinstance(result, np.ndarray) else result)
        self.replay = None if recording.raised else replay
        self.shapes = [_shape(args[k]) for k in self.positions]
        self.constants = [copy.deepcopy(a) for k, a in enumerate(args) if k not in self.positions]
        self.recordings += 1
        return replay


def _recorded_argument(recording: Recording, a: Any, active: bool) -> Any:
    """An argument for the recording call: active numbers are recorded, and arrays of floats hold objects."""
    if isinstance(a, np.ndarray):
        if not active:
            return a.astype(object) if a.dtype.kind == "f" else a.copy()
        array_of_numbers = np.empty(a.shape, dtype=object)
        for index in np.ndindex(a.shape):
            array_of_numbers[index] = recording.input(float(a[index]))
        return array_of_numbers
    if isinstance(a, tuple | list):
        return _again(a, [_recorded_argument(recording, item, active) for item in a])
    return recording.input(float(a)) if active else a


def _again(a: Any, items: list[Any]) -> Any:
    """A tuple or list like `a` with other items."""
    return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)


def _numbers(a: Any) -> np.ndarray:
    """All numbers of an argument, in order."""
    if isinstance(a, tuple | list):
        return np.concatenate([_numbers(item) for item in a]) if a else np.zeros(0)
    return np.ravel(np.asarray(a, dtype=np.float64))


def _shape(a: Any) -> Any:
    return [_shape(item) for item in a] if isinstance(a, tuple | list) else np.shape(a)


def _like(a: Any, numbers: np.ndarray, start: int) -> tuple[Any, int]:
    """The numbers from `start` on in the structure of an argument, and the position after them."""
    if isinstance(a, tuple | list):
        items = []
        for item in a:
            part, start = _like(item, numbers, start)
            items.append(part)
        return _again(a, items), start
    if isinstance(a, np.ndarray):
        return numbers[start : start + a.size].reshape(a.shape), start + a.size
    return float(numbers[start]), start + 1


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, tuple | list) and type(a) is type(b):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b)


def value_and_grad(function: Callable[..., Any], positions: Sequence[int]) -> CompiledTape:
    """A function that returns the value and the gradients with respect to the arguments at these positions.

    >>> f = value_and_grad(lambda x: x * x if x > 0.0 else -x, (0,))
    >>> f(3.0), f(4.0), f.recordings
    ((9.0, (6.0,)), (16.0, (8.0,)), 1)
    >>> f(-3.0), f.recordings
    ((3.0, (-1.0,)), 2)
    """
    return CompiledTape(function, positions)
