"""The eager tape: every call records its operations, and the reverse sweep reads the record backwards.

PyTorch, TensorFlow's GradientTape and autograd work in this way too. This tape has as little overhead as possible.
Numbers and arrays record differently:

- A `Scalar` is a number with a place on the tape. Its entry has, for each operand, the operand's place and the partial
  derivative; the reverse sweep adds the products.
- An `Array` is memory: its values, and a second array of the same layout for its adjoints. A view of the values has
  the same view of the adjoints. An operation on whole arrays puts a function on the tape that adds to the adjoints of
  its operands.
- A write into an array puts the old elements on the tape. The reverse sweep writes them back, so that each entry finds
  the memory as it was when the entry was recorded. Operands need no copies, and a call leaves its arguments unchanged.

An array is inactive until a recorded value is written into it. Numbers read from an inactive array are plain floats.
"""

from __future__ import annotations

import gc
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.tape.partials import ALIASES, BINARY, OF_ARRAYS, OF_NUMBERS, UNARY, partial
from srcdiff.tape.rebind import rebind

# The entries of the tape, distinguished by length because that is the fastest test:
#   2  (place, partial)                              a function of one number
#   4  (place, partial, place, partial)              a function of two numbers
#   3  (array, index, None)                          a number read from an array
#   5  (array, index, place or None, old, None)      a number written into an array
#   6  (array, index, source or None, old, ...)      a part of an array written
#   1  (reverse,)                                    anything else: called with the adjoints of numbers
Entry = tuple[Any, ...]


class Scalar:
    """A number that writes down what is done with it."""

    __slots__ = ("entries", "place", "value")
    __array_ufunc__ = None  # makes NumPy use the methods below
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: list[Entry], value: float, entry: Entry) -> None:
        self.entries = entries
        self.value = value
        self.place = len(entries)
        entries.append(entry)

    def __add__(self, other: Any) -> Any:
        kind = type(other)
        if kind is Scalar:
            return Scalar(self.entries, self.value + other.value, (self.place, 1.0, other.place, 1.0))
        if kind is float or kind is int:
            return Scalar(self.entries, self.value + other, (self.place, 1.0))
        return _other(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        if type(other) is float or type(other) is int:
            return Scalar(self.entries, other + self.value, (self.place, 1.0))
        return _other_first(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        kind = type(other)
        if kind is Scalar:
            return Scalar(self.entries, self.value - other.value, (self.place, 1.0, other.place, -1.0))
        if kind is float or kind is int:
            return Scalar(self.entries, self.value - other, (self.place, 1.0))
        return _other(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        if type(other) is float or type(other) is int:
            return Scalar(self.entries, other - self.value, (self.place, -1.0))
        return _other_first(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        kind = type(other)
        if kind is Scalar:
            x, y = self.value, other.value
            return Scalar(self.entries, x * y, (self.place, y, other.place, x))
        if kind is float or kind is int:
            return Scalar(self.entries, self.value * other, (self.place, other))
        return _other(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        if type(other) is float or type(other) is int:
            return Scalar(self.entries, other * self.value, (self.place, other))
        return _other_first(operator.mul, other, self)

    def __truediv__(self, other: Any) -> Any:
        kind = type(other)
        if kind is Scalar:
            inverse = 1.0 / other.value
            value = self.value / other.value
            return Scalar(self.entries, value, (self.place, inverse, other.place, -value * inverse))
        if kind is float or kind is int:
            return Scalar(self.entries, self.value / other, (self.place, 1.0 / other))
        return _other(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        if type(other) is float or type(other) is int:
            value = other / self.value
            return Scalar(self.entries, value, (self.place, -value / self.value))
        return _other_first(operator.truediv, other, self)

    def __pow__(self, other: Any) -> Any:
        kind = type(other)
        if kind is int or kind is float:
            x = self.value
            partial = other * x ** (other - 1) if other else 0.0
            return Scalar(self.entries, x**other, (self.place, partial))
        if kind is Scalar:
            return _binary("power", self, other)
        return _other(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        if type(other) is float or type(other) is int:
            return _binary("power", float(other), self)
        return _other_first(operator.pow, other, self)

    def __mod__(self, other: Any) -> Any:
        if type(other) is Scalar:
            turns = -float(self.value // other.value)
            return Scalar(self.entries, self.value % other.value, (self.place, 1.0, other.place, turns))
        return Scalar(self.entries, self.value % float(other), (self.place, 1.0))

    def __rmod__(self, other: Any) -> Any:
        return Scalar(self.entries, float(other) % self.value, (self.place, -float(other // self.value)))

    def __floordiv__(self, other: Any) -> float:
        return self.value // number(other)

    def __rfloordiv__(self, other: Any) -> float:
        return float(other // self.value)

    def __neg__(self) -> Scalar:
        return Scalar(self.entries, -self.value, (self.place, -1.0))

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        x = self.value
        return Scalar(self.entries, abs(x), (self.place, 1.0 if x > 0.0 else -1.0 if x < 0.0 else 0.0))

    def __lt__(self, other: Any) -> Any:
        return self.value < (other.value if type(other) is Scalar else other)

    def __le__(self, other: Any) -> Any:
        return self.value <= (other.value if type(other) is Scalar else other)

    def __gt__(self, other: Any) -> Any:
        return self.value > (other.value if type(other) is Scalar else other)

    def __ge__(self, other: Any) -> Any:
        return self.value >= (other.value if type(other) is Scalar else other)

    def __eq__(self, other: object) -> Any:
        return self.value == (other.value if type(other) is Scalar else other)

    def __ne__(self, other: object) -> Any:
        return self.value != (other.value if type(other) is Scalar else other)

    def __bool__(self) -> bool:
        return self.value != 0.0

    # rounded numbers have no derivative, so they are plain numbers

    def __int__(self) -> int:
        return int(self.value)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.value, digits)

    def __floor__(self) -> int:
        return math.floor(self.value)

    def __ceil__(self) -> int:
        return math.ceil(self.value)

    def __trunc__(self) -> int:
        return math.trunc(self.value)

    def __format__(self, form: str) -> str:
        return format(self.value, form)

    def __repr__(self) -> str:
        return f"Scalar({self.value!r})"


def number(x: Any) -> float:
    """The value of a number, recorded or not."""
    return x.value if type(x) is Scalar else float(x)


def _other(operation: Callable[[Any, Any], Any], a: Scalar, b: Any) -> Any:
    """The operation where the second operand is not a number of Python."""
    if isinstance(b, np.ndarray):
        return operation(_lifted(a), b)
    return operation(a, float(b)) if isinstance(b, np.number | bool) else NotImplemented


def _other_first(operation: Callable[[Any, Any], Any], a: Any, b: Scalar) -> Any:
    """The operation where the first operand is not a number of Python."""
    if isinstance(a, np.ndarray):
        return operation(a, _lifted(b))
    return operation(float(a), b) if isinstance(a, np.number | bool) else NotImplemented


#: The functions of one and of two numbers, with their partial derivatives.
_UNARY = {name: (OF_NUMBERS[name], partial(by_a, "a, y", OF_NUMBERS)) for name, by_a in UNARY.items()}
_BINARY = {
    name: (OF_NUMBERS[name], *(partial(formula, "a, b, y", OF_NUMBERS) for formula in formulas))
    for name, formulas in BINARY.items()
}


def _binary(name: str, a: Any, b: Any) -> Scalar:
    """A function of two numbers, at least one of them recorded."""
    function, by_a, by_b = _BINARY[name]
    x, y = number(a), number(b)
    value = function(x, y)
    if type(a) is not Scalar:
        return Scalar(b.entries, value, (b.place, by_b(x, y, value)))
    if type(b) is not Scalar:
        return Scalar(a.entries, value, (a.place, by_a(x, y, value)))
    return Scalar(a.entries, value, (a.place, by_a(x, y, value), b.place, by_b(x, y, value)))


class Array:
    """An array that writes down what is done with it, and with its elements."""

    __slots__ = ("_adjoint", "_adjoint_cells", "active", "base", "cells", "entries", "memory", "value", "view")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        entries: list[Entry],
        value: np.ndarray,
        active: bool,
        base: Array | None = None,
        view: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self.entries = entries
        self.value = value
        self.cells = memoryview(value)  # type: ignore[arg-type]  # elements as plain floats, faster than through NumPy
        self.base = base
        self.view = view
        self.memory: Array = self if base is None else base.memory
        self.active = active  # of the memory, asked of `memory`
        self._adjoint: np.ndarray | None = None
        self._adjoint_cells: memoryview | None = None

    # -- adjoints ----------------------------------------------------------------------------------------------------

    @property
    def adjoint(self) -> np.ndarray:
        if self._adjoint is None:
            if self.base is None or self.view is None:
                self._adjoint = np.zeros_like(self.value)
            else:
                self._adjoint = self.view(self.base.adjoint)
        return self._adjoint

    @property
    def adjoint_cells(self) -> memoryview:
        if self._adjoint_cells is None:
            self._adjoint_cells = memoryview(self.adjoint)  # type: ignore[arg-type]
        return self._adjoint_cells

    def grow_adjoint(self, by: Any, bar: np.ndarray) -> None:
        """Add to the adjoint. A new array `by` becomes the adjoint itself, unless it is `bar`."""
        if self._adjoint is None and self.base is None:
            value = self.value
            is_own = isinstance(by, np.ndarray) and by is not bar and by.base is None
            if is_own and by.strides == value.strides and by.dtype == value.dtype:
                self._adjoint = by
            else:
                self._adjoint = np.empty_like(value)
                self._adjoint[...] = by
        else:
            adjoint = self.adjoint
            adjoint += by

    # -- elements and parts ------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        try:
            value = self.cells[index]
        except (TypeError, NotImplementedError):  # not the index of one element
            return self._part(index)
        if type(value) is not float:
            return self._part(index)
        if not self.memory.active:
            return value
        return Scalar(self.entries, value, (self, index, None))

    def _part(self, index: Any) -> Any:
        index = _settled(index)
        value = self.value[index]
        if np.may_share_memory(value, self.value):
            return Array(self.entries, value, False, self, operator.itemgetter(index))

        def reverse(bar: np.ndarray) -> np.ndarray:
            scattered = np.zeros_like(self.value)
            np.add.at(scattered, index, bar)
            return scattered

        return _record(self.entries, value, [(self, reverse)])

    def __setitem__(self, index: Any, x: Any) -> None:
        kind = type(x)
        if kind is Scalar or kind is float or kind is int:
            try:
                old = self.cells[index]
            except (TypeError, NotImplementedError):
                old = None
            if type(old) is float:
                if kind is Scalar:
                    self.cells[index] = x.value
                    self.memory.active = True
                    self.entries.append((self, index, x.place, old, None))
                else:
                    self.cells[index] = x
                    self.entries.append((self, index, None, old, None))
                return
        self._put(_settled(index), x)

    def _put(self, index: Any, x: Any) -> None:
        if type(x) is Scalar:
            x = _lifted(x)
        if type(x) is Array:
            target = self.value[index]
            if x.memory is self.memory and _same_place(target, x.value):
                return  # the write at the end of `a[i:j] += b`
            old = np.array(target)
            self.value[index] = x.value
            source = x if x.memory.active else None
        else:
            source, old = None, np.array(self.value[index])
            self.value[index] = x
        if source is not None:
            self.memory.active = True
        self.entries.append((self, index, source, old, None, None))

    # -- shape -------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.value.dtype

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self.value)))

    def _viewed(self, view: Callable[[np.ndarray], np.ndarray]) -> Array:
        """The same elements in another shape: a view where NumPy gives one."""
        value = view(self.value)
        if np.may_share_memory(value, self.value):
            return Array(self.entries, value, False, self, view)
        numbers = np.arange(self.value.size).reshape(self.value.shape)
        where = np.argsort(view(numbers), axis=None)
        shape = self.value.shape
        copied: Array = _record(self.entries, value, [(self, lambda bar: bar.ravel()[where].reshape(shape))])
        return copied

    @property
    def T(self) -> Array:  # noqa: N802
        return self._viewed(np.transpose)

    def reshape(self, *shape: Any) -> Array:
        return self._viewed(lambda a: a.reshape(*shape))

    def ravel(self) -> Array:
        return self._viewed(np.ravel)

    def flatten(self) -> Array:
        return self.ravel().copy()

    def transpose(self, *axes: Any) -> Array:
        return self._viewed(lambda a: a.transpose(*axes))

    def copy(self) -> Array:
        copied: Array = _record(self.entries, self.value.copy(), [(self, lambda bar: bar)], scalar=False)
        return copied

    def astype(self, dtype: Any) -> Any:
        if np.dtype(dtype).kind != "f":
            return self.value.astype(dtype)
        return _record(self.entries, self.value.astype(dtype), [(self, lambda bar: bar)], scalar=False)

    def fill(self, x: Any) -> None:
        self._put(..., x)

    def item(self, *index: Any) -> Any:
        return self[index] if index else self.ravel()[0]

    def dot(self, other: Any) -> Any:
        return np.matmul(self, other)  # type: ignore[call-overload]

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        return _sum(self, axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        return _mean(self, axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        return _max(self, axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        return _min(self, axis, keepdims=keepdims)

    # -- operations --------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if method != "__call__" or options:
            raise TypeError(f"the tape does not record np.{ufunc.__name__} in this form")
        result = _ufunc(ufunc, *inputs)
        if out is not None:
            out[0][...] = result
            return out[0]
        return result

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, options: Any) -> Any:
        if function not in FUNCTIONS:
            raise TypeError(f"the tape has no rule for np.{function.__name__}")
        return FUNCTIONS[function](*args, **options)

    def __neg__(self) -> Any:
        return _ufunc(np.negative, self)

    def __pos__(self) -> Array:
        return self

    def __abs__(self) -> Any:
        return _ufunc(np.absolute, self)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"Array({self.value!r})"


def _operator(ufunc: np.ufunc) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    def straight(self: Array, other: Any) -> Any:
        return _ufunc(ufunc, self, other)

    def reflected(self: Array, other: Any) -> Any:
        return _ufunc(ufunc, other, self)

    def in_place(self: Array, other: Any) -> Array:
        self._put(..., _ufunc(ufunc, self, other))
        return self

    return straight, reflected, in_place


for _name, _function in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "pow": np.power,
    "matmul": np.matmul,
    "mod": np.remainder,
    "floordiv": np.floor_divide,
}.items():
    for _prefix, _method in zip(("", "r", "i"), _operator(_function), strict=True):
        setattr(Array, f"__{_prefix}{_name}__", _method)
for _name, _function in {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}.items():
    setattr(Array, f"__{_name}__", _operator(_function)[0])


def _lifted(x: Scalar) -> Array:
    """A recorded number as an array without dimensions."""
    array = Array(x.entries, np.array(x.value), True)
    place = x.place

    def reverse(adjoints: list[float]) -> None:
        if array._adjoint is not None:
            adjoints[place] += float(array._adjoint)

    x.entries.append((reverse,))
    return array


def _settled(index: Any) -> Any:
    """The index, with arrays in it copied: the function may write into them later."""
    if isinstance(index, tuple):
        return tuple(_settled(i) for i in index)
    if isinstance(index, np.ndarray | list):
        return np.array(index)
    return index


def _same_place(a: np.ndarray, b: np.ndarray) -> bool:
    return (
        a.shape == b.shape and a.strides == b.strides and a.__array_interface__["data"] == b.__array_interface__["data"]
    )


def _record(
    entries: list[Entry], value: Any, parts: Sequence[tuple[Array, Callable[[Any], Any]]], scalar: bool = True
) -> Any:
    """The result of an operation on arrays; each part is an operand and how its adjoint follows from the result's."""
    value = np.asarray(value)
    parts = [(operand, reverse) for operand, reverse in parts if operand.memory.active]
    out = Array(entries, value, bool(parts))
    if parts:

        def sweep(adjoints: list[float]) -> None:
            bar = out._adjoint
            if bar is not None:
                for operand, reverse in parts:
                    operand.grow_adjoint(_summed(reverse(bar), operand.value.shape), bar)

        entries.append((sweep,))
    if value.ndim == 0 and scalar:
        return Scalar(entries, value.item(), (out, (), None)) if parts else value.item()
    return out


def _summed(bar: Any, shape: tuple[int, ...]) -> Any:
    """Undo broadcasting: the sum over the axes along which an operand was repeated."""
    if np.shape(bar) == shape:
        return bar
    bar = np.asarray(bar)
    bar = bar.sum(axis=tuple(range(bar.ndim - len(shape))))
    repeated = tuple(k for k, n in enumerate(shape) if n == 1 and bar.shape[k] != 1)
    bar = bar.sum(axis=repeated, keepdims=True) if repeated else bar
    return bar if bar.shape == shape else np.broadcast_to(bar, shape)


# -- elementwise functions -------------------------------------------------------------------------------------------


def _matmul_by_a(bar: Any, y: Any, a: Any, b: Any) -> Any:
    if a.ndim == 1 and b.ndim == 1:
        return bar * b
    if b.ndim == 1:
        return bar[..., None] * b
    if a.ndim == 1:
        return (b @ bar[..., None])[..., 0]
    return bar @ np.swapaxes(b, -1, -2)


def _matmul_by_b(bar: Any, y: Any, a: Any, b: Any) -> Any:
    if a.ndim == 1 and b.ndim == 1:
        return bar * a
    if a.ndim == 1:
        return a[:, None] * bar[..., None, :]
    if b.ndim == 1:
        return (np.swapaxes(a, -1, -2) @ bar[..., None])[..., 0]
    return np.swapaxes(a, -1, -2) @ bar


#: For each function: the adjoint of each operand, from the adjoint of the result, the result and the operands.
UFUNCS: dict[np.ufunc, tuple[Callable[..., Any], ...]] = {
    np.add: (lambda bar, y, a, b: bar, lambda bar, y, a, b: bar),
    np.subtract: (lambda bar, y, a, b: bar, lambda bar, y, a, b: -bar),
    np.multiply: (lambda bar, y, a, b: bar * b, lambda bar, y, a, b: bar * a),
    np.true_divide: (lambda bar, y, a, b: bar / b, lambda bar, y, a, b: -bar * y / b),
    np.remainder: (lambda bar, y, a, b: bar, lambda bar, y, a, b: -bar * np.floor(a / b)),
    np.negative: (lambda bar, y, x: -bar,),
    np.positive: (lambda bar, y, x: bar,),
    np.absolute: (lambda bar, y, x: bar * np.sign(x),),
    np.square: (lambda bar, y, x: 2.0 * bar * x,),
    np.reciprocal: (lambda bar, y, x: -bar * y * y,),
    np.matmul: (_matmul_by_a, _matmul_by_b),
}
CONSTANT = {np.floor_divide, np.sign, np.floor, np.ceil, np.rint, np.trunc, np.heaviside}

for _name, _formula in UNARY.items():
    if _name in OF_ARRAYS:
        UFUNCS[OF_ARRAYS[_name]] = (partial(f"bar * ({_formula})", "bar, y, a", OF_ARRAYS),)
for _name, _formulas in BINARY.items():
    UFUNCS[OF_ARRAYS[_name]] = tuple(partial(f"bar * ({f})", "bar, y, a, b", OF_ARRAYS) for f in _formulas)
# a power with a number as exponent is what people write; its own formula costs one function less
_general_power = UFUNCS[np.power][0]
UFUNCS[np.power] = (
    lambda bar, y, a, b: 2.0 * bar * a if np.ndim(b) == 0 and b == 2.0 else _general_power(bar, y, a, b),
    UFUNCS[np.power][1],
)


def _ufunc(ufunc: np.ufunc, *inputs: Any) -> Any:
    operands = [_lifted(x) if type(x) is Scalar else x for x in inputs]
    # writes into integer arrays are not on the tape and are not undone, so these arrays are copied
    values = [x.value if type(x) is Array else np.array(x) if isinstance(x, np.ndarray) else x for x in operands]
    value = ufunc(*values)
    entries = next(x.entries for x in operands if type(x) is Array)
    if value.dtype.kind != "f":
        return value
    if ufunc in CONSTANT:
        return _record(entries, value, [])
    if ufunc not in UFUNCS:
        raise TypeError(f"the tape has no rule for np.{ufunc.__name__}")
    arrays = [np.asarray(v) for v in values] if ufunc is np.matmul else values
    out = np.asarray(value)
    parts = [
        (x, lambda bar, rule=rule: rule(bar, out, *arrays))
        for x, rule in zip(operands, UFUNCS[ufunc], strict=True)
        if type(x) is Array
    ]
    return _record(entries, out, parts)


# -- functions of whole arrays ---------------------------------------------------------------------------------------


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(a % ndim for a in (axis if isinstance(axis, tuple) else (axis,)))


def _spread(a: Array, axis: Any, bar: Any) -> Any:
    """The adjoint of a reduction, repeated along the axes that were reduced."""
    kept = [1 if k in _axes(axis, a.ndim) else n for k, n in enumerate(a.shape)]
    return np.broadcast_to(np.asarray(bar).reshape(kept), a.shape)


def _sum(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
    value = np.sum(a.value, axis=axis, keepdims=keepdims)
    return _record(a.entries, value, [(a, lambda bar: _spread(a, axis, bar))])


def _mean(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
    value = np.mean(a.value, axis=axis, keepdims=keepdims)
    share = np.size(value) / a.size if a.size else 0.0
    return _record(a.entries, value, [(a, lambda bar: _spread(a, axis, bar * share))])


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
        value = function(a.value, axis=axis, keepdims=keepdims)

        def reverse(bar: Any) -> Any:
            reached = a.value == _spread(a, axis, value)
            return reached * (_spread(a, axis, bar) / reached.sum(axis=axis, keepdims=True))

        return _record(a.entries, value, [(a, reverse)])

    return extreme


_max, _min = _extreme(np.max), _extreme(np.min)


def _prod(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
    value = np.prod(a.value, axis=axis, keepdims=keepdims)
    # without a division: an element may be zero
    return _record(a.entries, value, [(a, lambda bar: _spread(a, axis, bar) * _products_of_others(a.value, axis))])


def _products_of_others(value: np.ndarray, axis: Any) -> np.ndarray:
    axes = _axes(axis, value.ndim)
    others = [k for k in range(value.ndim) if k not in axes]
    order = (*others, *axes)
    rows = value.transpose(order).reshape(math.prod(value.shape[k] for k in others), -1)
    before, after = np.ones_like(rows), np.ones_like(rows)
    np.cumprod(rows[:, :-1], axis=1, out=before[:, 1:])
    after[:, :-1] = np.cumprod(rows[:, :0:-1], axis=1)[:, ::-1]
    moved = (before * after).reshape([value.shape[k] for k in order])
    return moved.transpose(np.argsort(order))


def _cumsum(a: Array, axis: int | None = None) -> Any:
    flat = a.ravel() if axis is None else a
    along = 0 if axis is None else axis
    value = np.cumsum(flat.value, axis=along)
    return _record(a.entries, value, [(flat, lambda bar: np.flip(np.cumsum(np.flip(bar, along), along), along))])


def _where(condition: Any, a: Any, b: Any) -> Any:
    mask = np.array(condition.value != 0.0 if type(condition) is Array else condition)
    a, b = (_lifted(x) if type(x) is Scalar else x for x in (a, b))
    entries = next(x.entries for x in (a, b, condition) if type(x) is Array)
    value = np.where(mask, *(x.value if type(x) is Array else x for x in (a, b)))
    parts: list[tuple[Array, Callable[[Any], Any]]] = []
    if type(a) is Array:
        parts.append((a, lambda bar: np.where(mask, bar, 0.0)))
    if type(b) is Array:
        parts.append((b, lambda bar: np.where(mask, 0.0, bar)))
    return _record(entries, value, parts)


def _outer(a: Any, b: Any) -> Any:
    a, b = (x.ravel() if type(x) is Array else np.ravel(x) for x in (a, b))
    return a[:, None] * b[None, :]


def _dot(a: Any, b: Any) -> Any:
    if np.ndim(number_or_array(a)) == 0 or np.ndim(number_or_array(b)) == 0:
        return a * b
    if np.ndim(number_or_array(b)) > 2:
        raise TypeError("the tape has no rule for np.dot of arrays with more than two dimensions")
    return np.matmul(a, b)


def number_or_array(x: Any) -> Any:
    """The value of anything."""
    return x.value if type(x) in (Scalar, Array) else x


def _joined(join: Callable[..., Any]) -> Callable[..., Any]:
    """`concatenate` and `stack`: each operand's adjoint is its part of the result's, found by joining numbers."""

    def joined(arrays: Sequence[Any], axis: int = 0) -> Any:
        arrays = [_lifted(x) if type(x) is Scalar else x for x in arrays]
        entries = next(x.entries for x in arrays if type(x) is Array)
        values = [np.asarray(number_or_array(x)) for x in arrays]
        owners = join([np.full(v.shape, k) for k, v in enumerate(values)], axis=axis)
        parts = [
            (x, lambda bar, k=k, shape=x.shape: bar[owners == k].reshape(shape))
            for k, x in enumerate(arrays)
            if type(x) is Array
        ]
        return _record(entries, join(values, axis=axis), parts)

    return joined


def _diag(a: Array, k: int = 0) -> Any:
    return _record(a.entries, np.diag(a.value, k), [(a, lambda bar: np.diag(bar, k))])


def _square_diag(a: Array, k: int = 0) -> Any:
    """`np.diag` both makes a matrix of a vector and takes the vector from a matrix, which need not be square."""
    if a.ndim == 1 or a.shape[0] == a.shape[1]:
        return _diag(a, k)
    rows, columns = (np.diag(n, k) for n in np.indices(a.shape))
    return a[rows, columns]


def _trace(a: Array) -> Any:
    return _sum(_square_diag(a))


def _clip(a: Any, low: Any = None, high: Any = None) -> Any:
    a = a if low is None else np.maximum(a, low)
    return a if high is None else np.minimum(a, high)


def _var(a: Array, axis: Any = None) -> Any:
    return _mean(np.square(a - _mean(a, axis, keepdims=True)), axis)


def _std(a: Array, axis: Any = None) -> Any:
    return _of_numbers("sqrt", np.sqrt)(_var(a, axis))


def _triangle(cut: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, k=0: _record(a.entries, cut(a.value, k), [(a, lambda bar: cut(bar, k))])


def _inv(a: Array) -> Any:
    value = np.linalg.inv(a.value)
    return _record(a.entries, value, [(a, lambda bar: -np.swapaxes(value, -1, -2) @ bar @ np.swapaxes(value, -1, -2))])


def _solve(a: Any, b: Any) -> Any:
    entries = next(x.entries for x in (a, b) if type(x) is Array)
    matrix = np.array(number_or_array(a))
    value = np.linalg.solve(matrix, number_or_array(b))

    def by_b(bar: Any) -> Any:
        return np.linalg.solve(matrix.T, bar)

    def by_a(bar: Any) -> Any:
        back = by_b(bar)
        return -np.outer(back, value) if value.ndim == 1 else -back @ value.T

    return _record(entries, value, [(x, rule) for x, rule in ((a, by_a), (b, by_b)) if type(x) is Array])


def _det(a: Array) -> Any:
    value = np.linalg.det(a.value)
    return _record(a.entries, value, [(a, lambda bar: bar * _cofactors(a.value))])


def _cofactors(matrix: Any) -> Any:
    """The derivative of the determinant, of singular matrices too: by singular values, each left out in turn."""
    left, values, right = np.linalg.svd(matrix)
    others = [np.prod(np.delete(values, k)) for k in range(len(values))]
    return np.linalg.det(left) * np.linalg.det(right) * (left * others) @ right


def _like(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, *args, **options: Array(a.entries, make(a.value, *args, **options), False)


#: What NumPy calls with arrays of the tape.
FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: _sum,
    np.mean: _mean,
    np.max: _max,
    np.min: _min,
    np.amax: _max,
    np.amin: _min,
    np.prod: _prod,
    np.cumsum: _cumsum,
    np.var: _var,
    np.std: _std,
    np.where: _where,
    np.dot: _dot,
    np.inner: lambda a, b: np.matmul(a, b.T),
    np.outer: _outer,
    np.concatenate: _joined(np.concatenate),
    np.stack: _joined(np.stack),
    np.diag: _square_diag,
    np.trace: _trace,
    np.clip: _clip,
    np.tril: _triangle(np.tril),
    np.triu: _triangle(np.triu),
    np.transpose: lambda a, axes=None: a._viewed(lambda v: np.transpose(v, axes)),
    np.swapaxes: lambda a, i, j: a._viewed(lambda v: np.swapaxes(v, i, j)),
    np.reshape: lambda a, shape: a.reshape(shape),
    np.ravel: lambda a: a.ravel(),
    np.expand_dims: lambda a, axis: a._viewed(lambda v: np.expand_dims(v, axis)),
    np.squeeze: lambda a, axis=None: a._viewed(lambda v: np.squeeze(v, axis)),
    np.flip: lambda a, axis=None: a._viewed(lambda v: np.flip(v, axis)),
    np.copy: lambda a: a.copy(),
    np.shape: lambda a: a.shape,
    np.size: lambda a: a.size,
    np.ndim: lambda a: a.ndim,
    np.zeros_like: _like(np.zeros_like),
    np.ones_like: _like(np.ones_like),
    np.empty_like: _like(np.empty_like),
    np.argmax: lambda a, axis=None: np.argmax(a.value, axis),
    np.argmin: lambda a, axis=None: np.argmin(a.value, axis),
    np.argsort: lambda a, axis=-1: np.argsort(a.value, axis),
    np.any: lambda a: np.any(a.value),
    np.all: lambda a: np.all(a.value),
    np.linalg.inv: _inv,
    np.linalg.solve: _solve,
    np.linalg.det: _det,
}


# -- what the function finds under the names of numpy and math -------------------------------------------------------


def _of_numbers(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that records if its arguments are recorded numbers. Otherwise it is the original one."""
    if name in UNARY:
        function, by_a = _UNARY[name]
        by_a_of_arrays = partial(UNARY[name], "a, y", OF_ARRAYS)

        def unary(x: Any) -> Any:
            if type(x) is not Scalar:
                return original(x)
            value = x.value
            try:
                y = function(value)
                return Scalar(x.entries, y, (x.place, by_a(value, y)))
            except (ArithmeticError, ValueError):  # at the edge of the domain
                if original is function:
                    raise
            with np.errstate(all="ignore"):
                y = float(original(value))
                return Scalar(x.entries, y, (x.place, float(by_a_of_arrays(np.float64(value), np.float64(y)))))

        return unary

    def binary(a: Any, b: Any) -> Any:
        if type(a) is Scalar or type(b) is Scalar:
            if isinstance(a, Array | np.ndarray) or isinstance(b, Array | np.ndarray):
                return original(*(_lifted(x) if type(x) is Scalar else x for x in (a, b)))
            return _binary(name, a, b)
        return original(a, b)

    return binary


#: The arithmetic of numbers, by the names that NumPy has for it.
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "true_divide": operator.truediv,
    "negative": operator.neg,
    "abs": abs,
    "absolute": abs,
    "fabs": abs,
    "square": lambda x: x * x,
    "sum": lambda x: x,
    "sign": lambda x: float(np.sign(x.value)),
    "floor": lambda x: float(math.floor(x.value)),
    "ceil": lambda x: float(math.ceil(x.value)),
    "isnan": lambda x: math.isnan(x.value),
    "isfinite": lambda x: math.isfinite(x.value),
}


def _arithmetic(original: Callable[..., Any], operation: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **options: Any) -> Any:
        if any(type(x) is Scalar for x in args) and not options:
            return operation(*args)
        return original(*args, **options)

    return function


def math_names() -> dict[str, Any]:
    """The names of `math` that record."""
    names: dict[str, Any] = {name: _of_numbers(name, getattr(math, name)) for name in UNARY}
    for name in ("atan2", "hypot"):
        names[name] = _of_numbers(name, getattr(math, name))
    names["pow"] = _of_numbers("power", math.pow)
    for name in ("fabs", "isnan", "isfinite"):
        names[name] = _arithmetic(getattr(math, name), _ARITHMETIC[name])
    return names


def numpy_names(entries: list[Entry]) -> dict[str, Any]:
    """The names of `numpy` that record, and those that make arrays, which have to be arrays of the tape."""
    names: dict[str, Any] = {}
    for name in (*UNARY, *BINARY, *ALIASES):
        if hasattr(np, name):
            names[name] = _of_numbers(ALIASES.get(name, name), getattr(np, name))
    for name, operation in _ARITHMETIC.items():
        names[name] = _arithmetic(getattr(np, name), operation)

    def made(make: Callable[..., Any]) -> Callable[..., Any]:
        def function(*args: Any, **options: Any) -> Any:
            value = make(*args, **options)
            floats = isinstance(value, np.ndarray) and value.dtype.kind == "f"
            return Array(entries, value, False) if floats else value

        return function

    for name in ("zeros", "ones", "empty", "eye", "identity", "linspace", "arange", "zeros_like", "ones_like"):
        names[name] = made(getattr(np, name))
    names["empty_like"] = made(np.empty_like)

    def filled(shape: Any, x: Any) -> Array:
        array = Array(entries, np.empty(shape), False)
        array._put(..., x)
        return array

    def array(x: Any, dtype: Any = None) -> Any:
        if type(x) is Array:
            return x.copy()
        if isinstance(x, list | tuple) and any(type(leaf) in (Scalar, Array) for leaf in _leaves(x)):
            return np.stack([array(item) if isinstance(item, list | tuple) else _as_array(item) for item in x])
        return made(np.array)(x, dtype=dtype)

    def _as_array(x: Any) -> Any:
        if type(x) is Scalar:
            return _lifted(x)
        return x if type(x) is Array else Array(entries, np.array(x, dtype=np.float64), False)

    def joined(join: Callable[..., Any]) -> Callable[..., Any]:
        return lambda arrays, axis=0: join([_as_array(a) for a in arrays], axis=axis)

    def asarray(x: Any, dtype: Any = None) -> Any:
        return x if type(x) is Array else array(x, dtype)

    def where(condition: Any, *sides: Any) -> Any:
        values: list[Any] = [_lifted(x) if type(x) is Scalar else x for x in sides]
        return np.where(condition, *values)

    return names | {
        "full": filled,
        "full_like": lambda a, x: filled(np.shape(a), x),
        "array": array,
        "asarray": asarray,
        "ascontiguousarray": asarray,
        "stack": joined(np.stack),
        "concatenate": joined(np.concatenate),
        "where": where,
        "float64": _float,
    }


def _leaves(x: Any) -> Any:
    if isinstance(x, list | tuple):
        for item in x:
            yield from _leaves(item)
    else:
        yield x


def _float(x: Any) -> Any:
    """`float` and `np.float64`: a recorded number is one already."""
    return x if type(x) is Scalar else float(x)


# -- the sweeps ------------------------------------------------------------------------------------------------------


def value_and_grad(
    function: Callable[..., Any], positions: Sequence[int]
) -> Callable[..., tuple[float, tuple[Any, ...]]]:
    """A function that returns the value and the gradients with respect to the arguments at these positions.

    >>> value_and_grad(lambda x, a: x * a[0] * a[1], (0, 1))(2.0, np.array([3.0, 5.0]))
    (30.0, (15.0, array([10.,  6.])))
    """
    entries: list[Entry] = []
    recording = rebind(function, numpy_names(entries), math_names(), {"float": _float})

    def differentiated(*args: Any) -> tuple[float, tuple[Any, ...]]:
        collects = gc.isenabled()
        gc.disable()  # a tape has many small objects, and all of them stay, so garbage collection would be lost time
        try:
            given = [_tracked(entries, a, k in positions) for k, a in enumerate(args)]
            leaves = len(entries)
            inputs = [_listed(x) for x in given]  # the function may change the lists themselves
            result = recording(*given)
            value = number(result)
            adjoints = [0.0] * len(entries)
            if type(result) is Scalar:
                adjoints[result.place] = 1.0
            _sweep_back(entries, adjoints, leaves)
            return value, tuple(_gradient(inputs[k], adjoints) for k in positions)
        finally:
            _restore(entries)
            entries.clear()
            if collects:
                gc.enable()

    return differentiated


def _tracked(entries: list[Entry], x: Any, active: bool) -> Any:
    """An argument as the function gets it."""
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return Array(entries, x, active)
    if isinstance(x, tuple | list):
        items = [_tracked(entries, item, active) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if active and isinstance(x, float | int | np.number) and not isinstance(x, bool):
        return Scalar(entries, float(x), ())
    return x


def _listed(x: Any) -> Any:
    """A copy of the argument with new lists."""
    if isinstance(x, tuple | list):
        items = [_listed(item) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return x


def _gradient(x: Any, adjoints: list[float]) -> Any:
    if type(x) is Array:
        return x.adjoint
    if isinstance(x, tuple | list):
        items = [_gradient(item, adjoints) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return adjoints[x.place]


def _sweep_back(entries: list[Entry], adjoints: list[float], leaves: int) -> None:
    """Read the tape backwards, down to the numbers that are the function's arguments."""
    next_entry, next_bar = entries.pop, adjoints.pop
    for _ in range(len(entries) - leaves):
        entry = next_entry()
        bar = next_bar()
        length = len(entry)
        if length == 4:
            if bar != 0.0:
                left, by_left, right, by_right = entry
                adjoints[left] += bar * by_left
                adjoints[right] += bar * by_right
        elif length == 2:
            if bar != 0.0:
                place, partial = entry
                adjoints[place] += bar * partial
        elif length == 3:
            if bar != 0.0:
                array, index, _ = entry
                array.adjoint_cells[index] += bar
        elif length == 5:
            array, index, source, old, _ = entry
            if array.memory.active:
                cells = array.adjoint_cells
                if source is not None:
                    adjoints[source] += cells[index]
                cells[index] = 0.0
            array.cells[index] = old
        elif length == 1:
            entry[0](adjoints)
        else:
            array, index, source, old, _, _ = entry
            if array.memory.active:
                bar_of_part = np.array(array.adjoint[index])
                array.adjoint[index] = 0.0
                if source is not None:
                    source.grow_adjoint(_summed(bar_of_part, source.value.shape), bar_of_part)
            array.value[index] = old


def _restore(entries: list[Entry]) -> None:
    """Write overwritten elements back after an exception, when the tape was not read to its end."""
    while entries:
        entry = entries.pop()
        if len(entry) == 5:
            entry[0].cells[entry[1]] = entry[3]
        elif len(entry) == 6:
            entry[0].value[entry[1]] = entry[3]
