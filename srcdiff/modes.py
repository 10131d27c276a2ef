"""Tangents and adjoints of whole functions: `jvp`, `vjp`, Jacobians, Hessians, and Hessians times vectors."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import itertools
import linecache
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from srcdiff.api import Derivative, Wrt, chosen_names, described, grad, has_floats, with_written
from srcdiff.check import Report, compare
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array
from srcdiff.library import derivatives
from srcdiff.source.abstract import Abstract, Static, Tuple
from srcdiff.source.capture import findable
from srcdiff.source.structures import layout_of, parts_of, place_of, remade

Function = Callable[..., Any]

_SEVERAL = 4  # tangents that a sweep carries, where there are many
_numbers = itertools.count(1)


@functools.lru_cache(maxsize=512)
def derivative_of(f: Function, mode: str, wrt: Any, backend: str, options: tuple[tuple[str, Any], ...]) -> Derivative:
    """One derivative for all calls that ask for the same."""
    return Derivative(f, mode, wrt, with_value=mode == "forward", backend=backend, **dict(options))


def fitted(x: Abstract, value: Any, given: Any, name: str) -> Any:
    """A tangent of a value, or an adjoint, as compiled code takes it: made like the value; None is zero."""
    if isinstance(x, Tuple):
        values = parts_of(value) or []
        parts = [None] * len(values) if given is None else _parts_like(value, given, name)
        if isinstance(value, list) and _is_stored(x, values):
            return (np.array([0.0 if p is None else p for p in parts], dtype=float), *[None] * (len(x.items) - 1))
        if isinstance(value, list) and len(x.items) != len(values):
            raise TypeError(f"{name} is one of a list of other things than numbers, which is not taken yet")
        each = zip(x.items, values, parts, strict=True)
        return tuple(fitted(i, v, p, place_of(value, k, name)) for k, (i, v, p) in enumerate(each))
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


def _is_stored(x: Tuple, values: list[Any]) -> bool:
    """Whether a list of numbers comes as an array."""
    by_element = len(x.items) == len(values) and bool(x.items) and isinstance(x.items[0], Value)
    numbers = all(parts_of(v) is None and not isinstance(v, np.ndarray) for v in values)
    return numbers and not (by_element and isinstance(x.items[0], Value) and _is_number(x.items[0]))


def _parts_like(value: Any, given: Any, name: str) -> list[Any]:
    """The parts of a tangent or an adjoint, which is made like its value."""
    layout = layout_of(value)
    if layout is not None and layout.is_mapping:
        if not isinstance(given, dict) or given.keys() != value.keys():
            raise ValueError(f"{name} has to be a dictionary with the keys {', '.join(map(repr, value))}")
        return layout.taken_apart(given)
    if layout is not None and layout.is_dataclass:
        if type(given) is not type(value):
            raise ValueError(f"{name} has to be an instance of {type(value).__name__}")
        return layout.taken_apart(given)
    if len(given) != len(value):
        raise ValueError(f"{name} has {len(given)} parts, its value {len(value)}")
    return list(given)


def _is_number(x: Value) -> bool:
    return not isinstance(x.type, Array)


def jvp(
    f: Function, primals: Sequence[Any], tangents: Sequence[Any], *, backend: str = "numba", **options: Any
) -> tuple[Any, Any]:
    """The value of `f` at the primals, and its derivative in the direction of the tangents, by forward mode.

    A tangent has the form of its argument; None marks an argument that is held constant. Of a function that returns
    nothing, the arrays it writes into are the result, by the names of the arguments.
    """
    if len(primals) != len(tangents):
        raise ValueError(f"{len(primals)} primals and {len(tangents)} tangents are given")
    chosen = tuple(k for k, t in enumerate(tangents) if t is not None)
    chosen = chosen or tuple(k for k, x in enumerate(primals) if has_floats(x))  # None is zero there
    derivative = derivative_of(f, "forward", chosen, backend, tuple(sorted(options.items())))
    args = derivative.bound(tuple(primals), {})
    value, tangent = derivative.run(args, _fitted_tangents(derivative, args, [tangents[k] for k in chosen]))
    return value, tangent


def _jvp_of(names: tuple[str, ...], chosen: tuple[int, ...]) -> Any:
    """What `jvp` means inside of a function that is read: the tangents of these arguments are given."""
    from srcdiff.pipeline import Derivation

    if not chosen:  # the value alone
        return Derivation("primal", (), with_value=True, single=False)
    return Derivation("forward", tuple(names[k] for k in chosen), with_value=True)


jvp.__srcdiff_tangents__ = _jvp_of  # type: ignore[attr-defined]


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
    with _put_back(primal, args) as arrays:
        value = primal.run(run_on)
        value = copy.deepcopy(value) if arrays else value
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


def returns_nothing(derivative: Derivative, args: tuple[Any, ...]) -> bool:
    """Whether the arrays that the function writes into are its only results, which go by name."""
    result = derivative.specialised(args).compiled.reading.result
    return isinstance(result, Static) and result.value is None


@contextlib.contextmanager
def _put_back(primal: Derivative, args: tuple[Any, ...]) -> Iterator[list[Any]]:
    """Arrays from outside that the function writes into are as before, afterwards."""
    compiled = primal.specialised(args).compiled
    arrays = [a for a in (o.read() for o in compiled.reading.outside) if isinstance(a, np.ndarray) and compiled.writes]
    before = [a.copy() for a in arrays]
    try:
        yield arrays
    finally:
        for array, contents in zip(arrays, before, strict=True):
            if array.flags.writeable:
                array[...] = contents


class Composed:
    """A derivative that is made of others; it can be called in functions that are read, and be differentiated."""

    __signature__: inspect.Signature
    _readable: Function | None = None

    def as_inside(self) -> tuple[Any, Any, Wrt]:
        """What makes it inside of a function that is read, of what, and by what."""
        raise NotImplementedError

    @property
    def __srcdiff_inside__(self) -> tuple[Any, ...]:
        make, f, wrt = self.as_inside()
        return derivatives.applied, make, grad, jvp, f, wrt

    @property
    def __srcdiff_function__(self) -> Function:
        """A function that calls it, to be read."""
        if self._readable is None:
            self._readable = _calling(self, self.__signature__)
        return self._readable


def _calling(derivative: Any, signature: inspect.Signature) -> Function:
    """A function with this signature that calls the derivative, with a source."""
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    shown = [p.replace(default=None) if p.default is not inspect.Parameter.empty else p for p in bare]
    passed = [
        f"{p.name}={p.name}" if p.kind is inspect.Parameter.KEYWORD_ONLY else stars.get(p.kind, "") + p.name
        for p in bare
    ]
    name = derivative.__name__ if derivative.__name__.isidentifier() else "function"
    text = f"def {name}{inspect.Signature(shown)}:\n    return derivative({', '.join(passed)})\n"
    file = f"<srcdiff {derivative!r} {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"derivative": derivative, "__name__": derivative.__module__}
    exec(compile(text, file, "exec"), namespace)
    function: Any = namespace[name]
    given = [p for p in bare if p.default is not inspect.Parameter.empty]
    function.__defaults__ = tuple(p.default for p in given if p.kind is not inspect.Parameter.KEYWORD_ONLY)
    function.__kwdefaults__ = {p.name: p.default for p in given if p.kind is inspect.Parameter.KEYWORD_ONLY}
    made: Function = function
    return made


class HessianProduct(Composed):
    """The Hessian of a function times a vector: `h(*args, v)`, by forward mode over reverse mode."""

    def __init__(self, f: Function, wrt: Wrt, backend: str, options: dict[str, Any]) -> None:
        self.gradient = grad(f, wrt, backend=backend, **options)
        chosen = (wrt,) if isinstance(wrt, int | str) else tuple(wrt)
        self.derivative = Derivative(self.gradient, "forward", chosen, with_value=False, backend=backend, **options)
        functools.update_wrapper(self, self.gradient.function, updated=())
        self.__doc__ = described("The Hessian, times a vector,", self.gradient, self.gradient.function.__doc__)
        self.__signature__ = _with_vector(self.gradient.signature)

    def __reduce__(self) -> Any:
        gradient = self.gradient
        wrt = gradient.wrt[0] if gradient.single else gradient.wrt
        return HessianProduct, (findable(gradient.of), wrt, gradient.backend, gradient.options)

    def as_inside(self) -> tuple[Any, Any, Wrt]:
        wrt = self.gradient.wrt
        return derivatives.hvp, self.gradient.of, wrt[0] if self.gradient.single else wrt

    def hessp(self, x: Any, vector: Any, *rest: Any) -> Any:
        """The same with the vector behind the first argument, as `scipy.optimize.minimize(hessp=...)` calls it."""
        return self(x, *rest, vector)

    def __call__(self, *args: Any) -> Any:
        given, vector = self.derivative.bound(args[:-1], {}), args[-1]
        dots = _fitted_tangents(self.derivative, given, (vector,) if self.gradient.single else vector)
        return self.derivative.run(given, dots)

    @property
    def source(self) -> str:
        """The generated source of the latest specialisation."""
        return self.derivative.source

    def __repr__(self) -> str:
        return f"<srcdiff.hvp({self.gradient.function.__code__.co_qualname}, wrt={self.gradient.wrt!r})>"


def _with_vector(signature: inspect.Signature) -> inspect.Signature:
    """The signature with one more argument by position."""
    given = [
        p.replace(kind=inspect.Parameter.POSITIONAL_ONLY, default=inspect.Parameter.empty)
        for p in signature.parameters.values()
        if p.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    if any(p.kind is not inspect.Parameter.POSITIONAL_ONLY for p in given):
        return signature
    name = "vector" if "vector" not in signature.parameters else "vector_"
    vector = inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY)
    return inspect.Signature([*given, vector])


def hvp(f: Function, wrt: Wrt = 0, *, backend: str = "numba", **options: Any) -> HessianProduct:
    """The Hessian of `f`, a function that returns one float, times a vector: `hvp(f)(*args, v)`.

    `v` has the form of the argument `wrt`; of several, it is a tuple.
    """
    return HessianProduct(f, wrt, backend, options)


def _fitted_tangents(derivative: Derivative, args: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, ...]:
    takes = derivative.specialised(args).compiled.further
    if len(tangents) != len(takes):
        raise ValueError(f"{len(takes)} tangents are needed, {len(tangents)} are given")
    positions = [derivative.names.index(n) for n in derivative.wrt] * derivative.directions
    each = zip(positions, takes.items(), tangents, strict=True)
    return tuple(fitted(x, args[k], t, name) for k, (name, x), t in each)


def derivative_by_name(f: Function, mode: str, wrt: Wrt = 0, **options: Any) -> Derivative | HessianProduct:
    """The derivative that a word names: `grad`, `value_and_grad`, `jvp`, `vjp`, `hvp`, or `primal`, none at all."""
    match mode:
        case "grad" | "value_and_grad":
            return Derivative(f, "reverse", wrt, with_value=mode == "value_and_grad", **options)
        case "jvp":
            return Derivative(f, "forward", wrt, with_value=True, **options)
        case "vjp":
            return Derivative(f, "pullback", wrt, with_value=False, **options)
        case "hvp":
            return hvp(f, wrt, **options)
        case "primal":
            return Derivative(f, "primal", 0, **options)
    raise ValueError(f"unknown mode {mode!r}; there are 'grad', 'value_and_grad', 'jvp', 'vjp', 'hvp' and 'primal'")


class Jacobian(Composed):
    """All derivatives of all results by all numbers of the arguments `wrt`."""

    def __init__(
        self,
        f: Function,
        wrt: Wrt,
        mode: str | None,
        directions_at_once: int | None,
        backend: str,
        options: dict[str, Any],
    ) -> None:
        if mode not in (None, "forward", "reverse"):
            raise ValueError(f"unknown mode {mode!r}; there are 'forward' and 'reverse'")
        self.function, self.mode, self.backend, self.options = f, mode, backend, options
        self.directions = directions_at_once
        self.sweeps: dict[int, Derivative] = {}
        self.single = isinstance(wrt, int | str)
        self.wrt = (wrt,) if isinstance(wrt, int | str) else tuple(wrt)
        self.forward = Derivative(f, "forward", self.wrt, backend=backend, **options)
        functools.update_wrapper(self, self.forward.function, updated=())
        self.__doc__ = described("All derivatives", self.forward, self.forward.function.__doc__)
        self.__signature__ = self.forward.signature.replace(return_annotation=inspect.Signature.empty)

    def __reduce__(self) -> Any:
        wrt = self.wrt[0] if self.single else self.wrt
        return Jacobian, (findable(self.function), wrt, self.mode, self.directions, self.backend, self.options)

    def as_inside(self) -> tuple[Any, Any, Wrt]:
        return derivatives.jacobian, self.function, self.forward.wrt[0] if self.single else self.forward.wrt

    def __repr__(self) -> str:
        return f"<srcdiff.jacobian({self.forward.function.__code__.co_qualname}, wrt={self.forward.wrt!r})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.forward.bound(args, kwargs)
        zeros = _fitted_tangents(self.forward, given, [None] * len(self.wrt))
        inputs = [given[self.forward.names.index(n)] for n in self.forward.wrt]
        value, _ = self.forward.run(given, zeros)
        sizes = [sum(np.size(leaf) for leaf in leaves(x)) for x in (tuple(inputs), value)]
        forward = self.mode == "forward" or (self.mode is None and sizes[0] <= sizes[1])
        found = iter((self.by_columns if forward else self.by_rows)(given, inputs, value))
        return like(value, lambda _: self.row(next(found), inputs))

    def row(self, parts: list[Any], inputs: list[Any]) -> Any:
        """The derivatives of one result, in the form of the arguments."""
        found = iter(parts)
        whole = like(tuple(inputs), lambda _: next(found))
        return whole[0] if self.single else whole

    def empty(self, inputs: list[Any], value: Any) -> list[list[Any]]:
        shapes = [np.shape(leaf) for leaf in leaves(tuple(inputs))]
        return [[np.zeros(np.shape(out) + shape) for shape in shapes] for out in leaves(value)]

    def by_columns(self, given: tuple[Any, ...], inputs: list[Any], value: Any) -> list[list[Any]]:
        """Forward mode: a sweep for each number of the arguments, or for several of them."""
        found = self.empty(inputs, value)
        waiting = list(directions(tuple(inputs)))
        count = self.directions or (_SEVERAL if len(waiting) >= 4 * _SEVERAL else 1)
        derivative = self.sweeps.setdefault(count, self.carrying(count))
        for k in range(0, len(waiting), count):
            group = waiting[k : k + count]
            tangents = [t for _, _, whole in group for t in whole] + [None] * (len(inputs) * (count - len(group)))
            _, *results = derivative.run(given, _fitted_tangents(derivative, given, tangents))
            for (leaf, place, _), tangent in zip(group, results, strict=False):
                for row, out in zip(found, leaves_beside(value, tangent), strict=True):
                    row[leaf][(..., *place)] = out
        return found

    def carrying(self, count: int) -> Derivative:
        """The tangent program that carries so many tangents."""
        if count == 1:
            return self.forward
        derivative = Derivative(self.function, "forward", self.wrt, backend=self.backend, **self.options)
        derivative.directions = count
        return derivative

    def by_rows(self, given: tuple[Any, ...], inputs: list[Any], value: Any) -> list[list[Any]]:
        """Reverse mode: a sweep for each number of the results."""
        found = self.empty(inputs, value)
        _, pullback = vjp(self.function, *given, wrt=self.wrt, backend=self.backend, **self.options)
        for k, place, bars in directions(value):
            back = pullback(**bars) if returns_nothing(self.forward, given) else pullback(bars)
            for part, bar in zip(found[k], leaves(back), strict=True):
                part[place] = bar
        return found


def leaves(x: Any) -> list[Any]:
    """The numbers and arrays of floats that something is made of."""
    parts = parts_of(x)
    if parts is not None:
        return [leaf for item in parts for leaf in leaves(item)]
    return [x] if isinstance(x, float | np.floating) or (isinstance(x, np.ndarray) and x.dtype.kind == "f") else []


def leaves_beside(x: Any, other: Any) -> list[Any]:
    """What stands in another structure of the same form where this one has its leaves.

    >>> leaves_beside((1.5, 2, [3.5]), (0.1, 0.2, [0.3]))
    [0.1, 0.3]
    """
    parts = parts_of(x)
    if parts is not None:
        return [leaf for pair in zip(parts, parts_of(other) or (), strict=True) for leaf in leaves_beside(*pair)]
    return [other] if leaves(x) else []


def like(x: Any, make: Callable[[Any], Any]) -> Any:
    """Something of the same form, with other leaves; what is no float becomes None."""
    parts = parts_of(x)
    if parts is not None:
        return remade(x, [like(item, make) for item in parts])
    return make(x) if leaves(x) else None


def directions(x: Any) -> Iterator[tuple[int, tuple[int, ...], Any]]:
    """For every number in something: which leaf it is in, where, and the direction that is one there alone."""
    for k, leaf in enumerate(leaves(x)):
        for place in np.ndindex(np.shape(leaf)):
            count = iter(range(len(leaves(x))))

            def unit(other: Any, k: int = k, place: Any = place, count: Iterator[int] = count) -> Any:
                result = np.zeros(np.shape(other))
                if next(count) == k:
                    result[place] = 1.0
                return result if np.ndim(other) else float(result)

            yield k, place, like(x, unit)


def jacobian(
    f: Function,
    wrt: Wrt = 0,
    *,
    mode: str | None = None,
    directions: int | None = None,
    backend: str = "numba",
    **options: Any,
) -> Jacobian:
    """All derivatives of what `f` returns by the arguments `wrt`: an array of the result's shape, then the argument's.

    Results and arguments that are tuples give tuples: one for each result, with one for each argument inside. The mode
    is the one that needs fewer sweeps, or `"forward"`, or `"reverse"`. A sweep of forward mode carries as many
    `directions` as are asked for; without a word four, where there are sixteen or more.
    """
    return Jacobian(f, wrt, mode, directions, backend, options)


def hessian(
    f: Function, wrt: Wrt = 0, *, directions: int | None = None, backend: str = "numba", **options: Any
) -> Jacobian:
    """The second derivatives of `f`, a function that returns one float, by forward mode over reverse mode."""
    gradient = grad(f, wrt, backend=backend, **options)
    return Jacobian(gradient, wrt, "forward", directions, backend, options)


for _name in ("hvp", "hessian", "jacobian", "vjp"):  # what they mean inside of a function that is read
    globals()[_name].__srcdiff_inside__ = (getattr(derivatives, _name), grad, jvp)


# -- checking --------------------------------------------------------------------------------------------------------


def check(
    f: Function, *args: Any, wrt: Wrt | None = None, order: int = 1, backend: str = "numba", **options: Any
) -> Report:
    """Compare the derivatives of `f` with finite differences, and its modes with each other; says where they differ.

    Without `wrt`, all arguments that hold floats are checked. Of a result that is not one float, a random combination
    of its numbers is taken. With `order=2` the Hessian is checked too, to be that of a function: symmetric.
    """
    primal = derivative_of(f, "primal", 0, backend, tuple(sorted(options.items())))
    asked = tuple(k for k, a in enumerate(args) if has_floats(a)) if wrt is None else wrt
    asked = (asked,) if isinstance(asked, int | str) else tuple(asked)
    names = chosen_names(asked, primal.names, primal.function.__name__)
    positions = [primal.names.index(n) for n in names]
    args = args if primal.by_name else primal.bound(args, {})
    args = tuple(_with_floats(a) if k in positions else a for k, a in enumerate(args))
    value, pullback = vjp(f, *args, wrt=asked, backend=backend, **options)
    if isinstance(value, float | np.floating):
        bars = grad(f, asked, backend=backend, **options)(*args)
        weights: Any = 1.0
    else:
        weights = _random_like(value, 1)
        bars = pullback(**weights) if returns_nothing(primal, args) else pullback(weights)

    def combined(*given: Any) -> float:
        with _put_back(primal, given):
            result = primal.function(*given)
            if result is None:
                result = {n: given[primal.names.index(n)] for n in value}
            return _product(weights, result)

    report = compare(combined, args, list(zip(positions, names, strict=True)), bars)
    inputs = tuple(args[k] for k in positions)
    dots = _random_like(inputs, 2)
    tangents = [dots[positions.index(k)] if k in positions else None for k in range(len(args))]
    _, tangent = jvp(f, args, tangents, backend=backend, **options)
    _require_equal("forward and reverse mode differ", _product(weights, tangent), _product(bars, dots), bars, dots)
    if order > 1:
        product, other = hvp(f, asked, backend=backend, **options), _random_like(inputs, 3)
        first, second = product(*args, dots), product(*args, other)
        _require_equal("the Hessian is not symmetric", _product(first, other), _product(second, dots), first, other)
    return report


def _with_floats(x: Any) -> Any:
    """A structure with floats in place of integers, as its derivative takes them."""
    parts = parts_of(x)
    if parts is None:
        return x
    numbers = [float(p) if isinstance(p, int | np.integer) and not isinstance(p, bool) else p for p in parts]
    return remade(x, [_with_floats(p) for p in numbers])


def _random_like(x: Any, seed: int) -> Any:
    random = np.random.default_rng(seed)
    return like(x, lambda leaf: random.standard_normal(np.shape(leaf)) if np.ndim(leaf) else random.standard_normal())


def _product(x: Any, y: Any) -> float:
    return float(sum(np.sum(np.asarray(a, float) * b) for a, b in zip(leaves(x), leaves(y), strict=True)))


def _require_equal(what: str, first: float, second: float, x: Any, y: Any) -> None:
    terms = [float(np.sum(np.abs(np.asarray(a, float) * b))) for a, b in zip(leaves(x), leaves(y), strict=True)]
    single = any(np.asarray(a).dtype == np.float32 for a in (*leaves(x), *leaves(y)))
    if abs(first - second) > (1e-3 if single else 1e-8) * max(1.0, *terms):  # two orders of evaluation
        raise AssertionError(f"{what}: {first!r} and {second!r} along a random direction")
