"""Helpers of the library beyond Python and NumPy, known to the front end. They also run as plain Python."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ComplexArray:
    """Complex numbers with imaginary part zero. Programs may read only the real part."""

    real: Any

    def __len__(self) -> int:
        return len(self.real)


@dataclass(frozen=True)
class Elementwise:
    """A primitive without a name in NumPy: a function of numbers, applied to each element of arrays."""

    __srcdiff_primitive__: str

    def __call__(self, *args: Any) -> Any:
        """A number of the result's type, which is the float type that holds the arguments."""
        return functools.reduce(np.add, args) * np.float32(1)


def each(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All indices of an array of this shape, in order."""
    return iter(np.ndindex(*shape))


def zero(dtype: Any) -> Any:
    """The zero of a type of numbers."""
    return np.dtype(dtype).type(0)


def known(x: Any) -> bool:
    """Whether the value is known at compile time."""
    return True


def is_array(x: Any) -> bool:
    """Whether something is an array with at least one axis."""
    return np.ndim(x) > 0


def is_function(x: Any) -> bool:
    """Whether something can be called."""
    return callable(x)


def first_result(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` for the first elements. NumPy uses the type of this result for all results."""
    return function(*args)


def array_like(x: Any) -> Any:
    """The array; lists and numbers become arrays."""
    return np.asarray(x)


def counted(x: Any) -> bool:
    """Whether the length of a list is known at compile time."""
    return isinstance(x, tuple | list)


def part(a: Any, axis: int, start: Any, stop: Any, step: Any = None) -> Any:
    """The view of a range along one axis."""
    return a[(slice(None),) * axis + (slice(start, stop, step),)]


def at_axis(a: Any, axis: int, position: Any) -> Any:
    """The elements at one or several positions along one axis."""
    return a[(slice(None),) * axis + (position,)]


def agree(n: int, m: int, message: str) -> None:
    """Raise `ValueError` if two sizes differ."""
    if n != m:
        raise ValueError(message)


def checked(shape: Any, dtype: Any) -> Any:
    """The shape. Raises `ValueError` for lengths that no array can have."""
    return np.empty(shape, dtype).shape


def at_least_zero(n: int) -> int:
    """The integer, or zero if it is negative."""
    return max(n, 0)


def check_positions(positions: Any, size: int) -> None:
    """Raise `IndexError` if a position is outside of an axis of this size."""
    for position in np.ravel(positions):
        if not -size <= position < size:
            raise IndexError(f"index {position} is out of bounds for axis with size {size}")


def require_apart(a: Any, values: Any) -> None:
    """Refuse values that may share memory with the array, because NumPy reads them while it writes."""


def axes_of_length_one(a: Any) -> tuple[int, ...]:
    """The axes of an array that have the length one."""
    return tuple(k for k, n in enumerate(a.shape) if n == 1)


def result_type(*operands: Any) -> Any:
    """The common type of all of these."""
    return np.result_type(*operands)


def from_places(shape: tuple[int, ...], dtype: Any, function: Callable[..., Any]) -> Any:
    """An array from a function of the index."""
    result = np.empty(shape, dtype)
    for place in np.ndindex(*shape):
        result[place] = function(*place)
    return result


def view_from_places(a: Any, shape: tuple[int, ...], function: Callable[..., Any]) -> Any:
    """A view of an array, from a function of the index."""
    return from_places(shape, a.dtype, function)


def ufunc_at(ufunc: Any, a: Any, indices: Any, b: Any = 1) -> None:
    """`ufunc.at`."""
    ufunc.at(a, indices, b)


def positions_of(function: Any, wrt: Any) -> Any:
    """The positions of the named arguments of a function."""
    raise NotImplementedError  # the front end evaluates it


def jacobian_by_first(function: Any) -> Any:
    """The function that computes the Jacobian of a function with respect to its only argument."""
    raise NotImplementedError  # the front end evaluates it


def float_positions(items: tuple[Any, ...]) -> tuple[int, ...]:
    """The positions of the items that hold floats."""
    raise NotImplementedError  # the front end evaluates it


def copied(x: Any) -> Any:
    """A deep copy of the arrays and lists."""
    raise NotImplementedError  # the front end evaluates it


def structural(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that only rearranges tuples. It runs at compile time."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        return function(*args)

    run.__srcdiff_structural__ = function  # type: ignore[attr-defined]
    return run


@structural
def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that an `axis` argument means, in order."""
    if axis is None:
        return tuple(range(rank))
    axes = axis if isinstance(axis, tuple) else (axis,)
    for a in axes:
        if not -rank <= a < rank:
            raise ValueError(f"axis {a} is out of bounds for array of dimension {rank}")
    found = tuple(sorted(a % rank for a in axes))
    if len(set(found)) < len(found):
        raise ValueError("duplicate value in 'axis'")
    return found


@structural
def in_order(axis: Any, rank: int) -> bool:
    """Whether axes are given in the order in which the array has them."""
    axes = [a % rank for a in (axis if isinstance(axis, tuple) else (axis,))]
    return axes == sorted(axes)


@structural
def without(items: tuple[Any, ...], axes: tuple[int, ...]) -> tuple[Any, ...]:
    """The items of a shape or an index, without those at these axes."""
    return tuple(x for k, x in enumerate(items) if k not in axes)


@structural
def only(items: tuple[Any, ...], axes: tuple[int, ...]) -> tuple[Any, ...]:
    """The items of a shape or an index at these axes."""
    return tuple(items[k] for k in axes)


@structural
def interleaved(axes: tuple[int, ...], inner: tuple[Any, ...], outer: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index with `inner` at the axes and `outer` at the others."""
    first, second = iter(inner), iter(outer)
    return tuple(next(first) if k in axes else next(second) for k in range(len(inner) + len(outer)))


@structural
def replaced(items: tuple[Any, ...], position: int, item: Any) -> tuple[Any, ...]:
    """The items with the one at a position replaced."""
    position %= len(items)
    return (*items[:position], item, *items[position + 1 :])


@structural
def inserted(items: tuple[Any, ...], position: int, item: Any) -> tuple[Any, ...]:
    """The items with a new one before a position; -1 means the end."""
    position = position % (len(items) + 1)
    return (*items[:position], item, *items[position:])


@structural
def placed(count: int, positions: Any, items: Any) -> tuple[Any, ...]:
    """A tuple of this length with one item at a position, or several at several positions, and None elsewhere."""
    found: list[Any] = [None] * count
    for position, item in zip(positions, items, strict=True) if isinstance(positions, tuple) else [(positions, items)]:
        found[position] = item
    return tuple(found)


@structural
def exchanged(items: tuple[Any, ...], positions: tuple[int, ...], others: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items with those at some positions replaced."""
    found = dict(zip(positions, others, strict=True))
    return tuple(found.get(k, item) for k, item in enumerate(items))


@structural
def ones(count: int) -> tuple[int, ...]:
    return (1,) * count


@structural
def last_of(items: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """The last so many items."""
    return items[len(items) - count :]


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which arrays of these shapes are broadcast."""
    return np.broadcast_shapes(*shapes)


def stretched(place: tuple[int, ...], whole: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index in an array of this shape, from an index in the shape to which it is broadcast."""
    last = place[len(whole) - len(shape) :]
    return tuple(0 if size == 1 else i for i, size in zip(last, shape, strict=True))


@structural
def common_type(a: Any, b: Any) -> Any:
    """The type of NumPy's result for operands of two types."""
    return np.result_type(a, b)


@structural
def require_cast(source: Any, target: Any, casting: str) -> None:
    """Raise if NumPy would need an explicit conversion."""
    if not np.can_cast(source, target, casting):  # type: ignore[arg-type]
        raise TypeError(f"an array of dtype {target} cannot hold a result of dtype {source}: convert it with `.astype`")


@structural
def float_type(dtype: Any) -> Any:
    """The type that linear algebra uses for numbers of this type."""
    return np.dtype(dtype if np.dtype(dtype).kind in "fc" else np.float64)


@structural
def is_float_type(dtype: Any) -> bool:
    """Whether BLAS multiplies matrices of this type: of floats or of complex numbers."""
    return bool(np.dtype(dtype).kind in "fc")


@structural
def real_type(dtype: Any) -> Any:
    """The type of the absolute value."""
    return np.abs(np.dtype(dtype).type(0)).dtype


@structural
def complex_type(dtype: Any) -> Any:
    """The complex type for numbers of this type."""
    return np.result_type(dtype, np.complex64)


@structural
def factor_of(norm: Any, is_forward: Any) -> str:
    """The divisor of a Fourier transform: None, the number of elements, or its square root."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    if norm == "ortho":
        return "sqrt"
    return "n" if (norm == "forward") == bool(is_forward) else ""


@structural
def other_direction(norm: Any) -> Any:
    """The `norm` of the inverse transform."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, norm)


@structural
def inverse_type(kind: Any) -> int:
    """The type of the inverse of a cosine or sine transform."""
    if kind not in (1, 2, 3, 4):
        raise ValueError("invalid transform type")
    return {1: 1, 2: 3, 3: 2, 4: 4}[kind]


@structural
def known_axes(lengths: Any, axes: Any, rank: int) -> tuple[int, ...]:
    """The axes of a Fourier transform. By default, one for each given length, counted from the end, or all."""
    if axes is None:
        axes = tuple(range(rank)) if lengths is None else tuple(range(rank - len(lengths), rank))
    return tuple(a % rank for a in (axes if isinstance(axes, tuple) else (axes,)))


@structural
def interleaved_lengths(lengths: Any, count: int) -> tuple[Any, ...]:
    """A length for each axis, None for axes that keep their length."""
    return (None,) * count if lengths is None else tuple(lengths)


@structural
def is_complex_type(dtype: Any) -> bool:
    return bool(np.dtype(dtype).kind == "c")


@structural
def first_of(items: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """The first `count` items; with a negative count, all but the last ones."""
    return items[:count]


@structural
def upto(count: Any) -> tuple[int, ...]:
    """The indices below `count`."""
    if not isinstance(count, int):
        raise ValueError("the number of elements must be known at compile time")
    return tuple(range(count))


@structural
def zeros(count: int) -> tuple[int, ...]:
    return (0,) * count


@structural
def axis_of(axis: int, rank: int) -> int:
    """The axis, counted from the front."""
    if not isinstance(axis, int):
        raise ValueError("the axis must be known at compile time")
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


@structural
def axes_moved_last(rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The order of axes that moves these to the end."""
    last = tuple(a % rank for a in axes)
    return (*(k for k in range(rank) if k not in last), *last)


@structural
def axis_moved_back(rank: int, axis: int) -> tuple[int, ...]:
    """The order of axes that moves the last one to a position."""
    order = list(range(rank - 1))
    order.insert(axis % rank, rank - 1)
    return tuple(order)


@structural
def swapped(rank: int, first: int, second: int) -> tuple[int, ...]:
    """The order of axes that exchanges two of them."""
    order = list(range(rank))
    order[first], order[second] = order[second], order[first]
    return tuple(order)


@structural
def last_two_swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


@structural
def every_second(count: int, start: int) -> tuple[int, ...]:
    return tuple(range(start, count, 2))


@structural
def moved(rank: int, source: Any, destination: Any) -> tuple[int, ...]:
    """The order of axes that moves some of them to new positions."""
    sources = [s % rank for s in (source if isinstance(source, tuple) else (source,))]
    destinations = [d % rank for d in (destination if isinstance(destination, tuple) else (destination,))]
    if len(sources) != len(destinations):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [k for k in range(rank) if k not in sources]
    for position, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(position, axis)
    return tuple(order)


@structural
def as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@structural
def leaves(tree: Any) -> tuple[Any, ...]:
    """What is in nested tuples, in order."""
    return tuple([leaf for item in tree for leaf in leaves(item)]) if isinstance(tree, tuple) else (tree,)


@structural
def require_alike(tree: Any, other: Any, message: str) -> None:
    """Raise if tuples are not nested in the same way."""
    is_tuple = isinstance(tree, tuple)
    if is_tuple != isinstance(other, tuple) or (is_tuple and len(tree) != len(other)):
        raise ValueError(message)
    for one, two in zip(tree, other, strict=True) if is_tuple else ():
        require_alike(one, two, message)


@structural
def rebuilt(tree: Any, items: tuple[Any, ...]) -> Any:
    """Nested tuples like these, with other items."""
    rest = iter(items)

    def like(part: Any) -> Any:
        return tuple([like(p) for p in part]) if isinstance(part, tuple) else next(rest)

    return like(tree)


@structural
def backwards(items: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(reversed(items))


@structural
def each_axis(widths: Any, rank: int) -> tuple[tuple[Any, Any], ...]:
    """The widths before and after each axis, from a number, a pair, or a pair for each axis."""
    if not isinstance(widths, tuple):
        return ((widths, widths),) * rank
    if not any(isinstance(w, tuple) for w in widths):
        pair = widths * 2 if len(widths) == 1 else widths
        return (pair,) * rank
    pairs = tuple(w * 2 if len(w) == 1 else w for w in widths)
    return pairs * rank if len(pairs) == 1 else pairs


@structural
def unsupported(what: str, instead: str = "") -> None:
    """Reject an unsupported use at the line of the call, with a help that says what to do instead."""
    raise NotImplementedError(f"{what} is not supported", *([instead] if instead else ()))


@structural
def has_nan(dtype: Any) -> bool:
    """Whether numbers of this type may be NaN."""
    return bool(np.dtype(dtype).kind in "fc")


@structural
def is_short(dtype: Any) -> bool:
    """Whether these are unsigned integers, or integers of fewer than 32 bits."""
    return np.dtype(dtype).kind == "u" or np.dtype(dtype).name in ("int8", "int16")


@structural
def largest(dtype: Any) -> float:
    """The largest finite number of a float type."""
    return float(np.finfo(dtype).max)


@structural
def identity_of(ufunc: Any) -> Any:
    """The identity element of an operation."""
    return ufunc.identity


def event_settings(event: Any) -> tuple[int, float]:
    """The number of events after which an integration ends (0 for never), and the direction of crossings that count."""
    return int(getattr(event, "terminal", False) or 0), float(getattr(event, "direction", 0.0))


DERIVATIVES: dict[str, Any] = {}
"""The public functions that take derivatives, by name. The modules that define them add them here."""


def derivatives_first(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function that stands for one of SciPy's. It takes these public functions before SciPy's arguments."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__srcdiff_takes__ = names  # type: ignore[attr-defined]
        return function

    return mark


def zeros_like(x: Any) -> Any:
    """Zero, or an array of zeros, with the shape and type of the argument."""
    return np.zeros(np.shape(x), x.dtype) if is_array(x) else 0.0


def implicitly(solver: Any, weights: Any, change: Any, equation: Any, x0: Any) -> Any:
    """The x with equation(x) = 0 that a solver finds; its derivatives are those of the equation, not of the solver.

    `solver(equation, x0)` returns x, a number or an array like `x0`. With J the Jacobian of the equation at x,
    `weights(equation, x, x_bar)` solves J^T w = -x_bar, and `change(equation, x, r_dot)` solves J x_dot = -r_dot.
    """
    return solver(equation, x0)


def with_derivative(
    what: str,
    run: Any,
    piece: Any,
    backward: Any,
    forward: Any,
    start: Any,
    fixed: tuple[Any, ...],
    constants: tuple[Any, ...] = (),
) -> Any:
    """The tuple of arrays `run(start)`, with an adjoint and a tangent that are written from derivatives of a piece.

    `piece(*fixed, y)` returns a tuple of arrays. `pull(fixed, y, bars)` is the tuple of the adjoints of y and of all
    floats that the piece takes from around it; `push(fixed, y, y_dot)` is the tuple of its results and the tuple of
    their tangents.

    `backward(pull, zeros, outs, out_bars)` returns the adjoint of the start, and the tuple of the adjoints of the
    floats around the piece, to which it adds, beginning with `zeros`. `forward(push, outs, start_dot)` returns the
    tangents of the results. Both take `fixed` and `constants` for constants; here, `fixed` are numbers of the types of
    the first arguments of the piece. `what` names the function of the user that the piece calls.
    """
    return run(start)
