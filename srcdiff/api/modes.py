"""Derivatives of functions with any results: `jvp`, `vjp`, `jacobian`, `hessian`, `hvp`; and `check`."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core.errors import NumbaError
from numba.extending import overload

from srcdiff.api.complex_pairs import Partials
from srcdiff.api.derivatives import Derivative, chosen_names, described, has_floats, is_of_floats
from srcdiff.api.finite_differences import Report, compare, require_values
from srcdiff.api.reverse import grad
from srcdiff.api.specialisations import with_written
from srcdiff.backends.numba import numba_cpu
from srcdiff.backends.numba.direct import UnfitError
from srcdiff.caching.fingerprint import fingerprint
from srcdiff.diagnostics import ComplexJacobianError, ListsInJacobianError
from srcdiff.diagnostics.options import (
    DERIVATIVE,
    FEW_DIRECTIONS,
    ORDER,
    OTHER_NUMBER,
    Wrt,
    check_sweeps,
    compile_options,
    each_of,
    is_one,
    require_inside,
)
from srcdiff.frontend.domain.abstract_values import Abstract, List, Static, Stored, Tuple
from srcdiff.frontend.source.capture import WRITTEN_FOR, findable, made_once
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array, Stack, is_complex, is_inexact
from srcdiff.library import composed
from srcdiff.signature.copies import copied, state_of
from srcdiff.signature.own_arrays import with_own_arrays
from srcdiff.signature.random_sources import Replay
from srcdiff.signature.record_layouts import RecordLayout
from srcdiff.signature.structures import layout_of
from srcdiff.signature.trees import NODES, VALUES, Part, floats_for_integers, parts_of

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.driver.compiling import Compiled
    from srcdiff.frontend.derivation import Derivation
    from srcdiff.frontend.reading import Reading

Function = Callable[..., Any]

_REMEMBERED = 256  # shapes of arguments for which a Jacobian knows the mode


def derivative_of(f: Function, mode: str, wrt: Any, backend: str, options: dict[str, Any]) -> Derivative:
    """The same derivative for equal requests."""
    if options or type(backend) is not str:
        options = compile_options(backend, options)
    derivative: Derivative = _made_once(f, mode, wrt, backend, tuple(sorted(options.items())))
    return derivative


@made_once
def _made_once(f: Function, mode: str, wrt: Any, backend: str, options: tuple[tuple[str, Any], ...]) -> Derivative:
    return Derivative(f, mode, wrt, with_value=mode == "forward", backend=backend, **dict(options))


def fitted(taken: Abstract, of: Abstract, value: Any, given: Any, name: str) -> Any:
    """A tangent or adjoint of a value in the form that compiled code takes. None means zero.

    `taken` describes the form that the code takes, `of` the value.
    """
    pairs = NODES.beside(of, (value, given), name, _pairs)
    takes = NODES.beside(of, taken, name, lambda _, x, __: x.items)
    found = iter([_fitted_leaf(x, part, *pair) for (part, pair), (_, x) in zip(pairs, takes, strict=True)])
    return NODES.fold(of, lambda _: next(found), lambda _, parts: tuple(parts))


def _pairs(_: Any, pair: tuple[Any, Any], name: str) -> list[tuple[Any, Any]]:
    """The parts of a value, each with the given tangent or adjoint."""
    value, given = pair
    parts = parts_of(value) or ()
    return list(zip(parts, [None] * len(parts) if given is None else _parts_like(value, given, name), strict=True))


def _fitted_leaf(taken: Abstract, of: Part, value: Any, given: Any) -> Any:
    if isinstance(of.value, Stored):
        assert isinstance(taken, Tuple)
        return _columns(taken, of.value, (value, given), of.name)
    if not isinstance(taken, Value):
        return None
    if not isinstance(taken.type, Array):
        convert = complex if is_complex(taken.type) else float
        return convert(0.0 if given is None else given)
    result = np.zeros_like(value)
    if given is not None:
        found = np.asarray(given)
        if found.shape != value.shape:
            raise ValueError(f"{of.name} has the shape {found.shape}, but its value has {value.shape}")
        if np.iscomplexobj(found) and not np.iscomplexobj(value):
            raise TypeError(f"{of.name} is complex, but its value is real: take its real part")
        result[...] = found
    return result


def _columns(taken: Tuple, of: Stored, pair: tuple[list[Any], Any], name: str) -> tuple[Any, ...]:
    """The tangent or adjoint of a list of run-time length: one array for each number in its elements."""
    elements = [NODES.beside(of.element, one, f"{name}[{k}]", _pairs) for k, one in enumerate(_pairs(of, pair, name))]
    rows = [[(part.name, bar) for part, (_, bar) in row if part.value.kind != "static"] for row in elements]
    found: list[Any] = [None] * len(taken.items)
    for k, (storage, kind) in enumerate(zip(of.arrays, taken.items, strict=False)):
        column = [row[k] for row in rows]
        if isinstance(kind, Value) and isinstance(kind.type, Array):
            found[k] = np.array([0.0 if bar is None else bar for _, bar in column], dtype=kind.type.dtype)
        elif isinstance(storage.type, Stack) and is_inexact(storage.type.element):
            for place, bar in column:
                if bar is not None and np.any(bar):
                    message = f"{place} is not supported: it is an array in a list with a length known only at run time"
                    raise TypeError(f"{message}. Use forward mode, or return an array")
    return tuple(found)


def _parts_like(value: Any, given: Any, name: str) -> list[Any]:
    """The parts of a tangent or adjoint, which must have the structure of its value."""
    layout = layout_of(value)
    assert layout is not None
    if isinstance(layout, RecordLayout):
        return layout.tangent_parts(given, name)
    if layout.is_mapping:
        if not isinstance(given, dict) or given.keys() != value.keys():
            raise ValueError(f"{name} must be a dictionary with the keys {', '.join(map(repr, value))}")
        return layout.taken_apart(given)
    if layout.is_instance:
        if type(given) not in (type(value), layout.kind):  # gradients by compiled classes are of a class beside them
            raise ValueError(f"{name} must be an instance of {type(value).__name__}")
        if hasattr(layout.kind, "__srcdiff_alike__") and not layout.kind.__srcdiff_alike__(value, given):
            raise ValueError(f"{name} must have the same elements as its value")
        return layout.taken_apart(given)
    if not isinstance(given, tuple | list | np.ndarray):
        raise TypeError(
            f"{name} must have the structure of its value, a {type(value).__name__} of {len(value)} elements"
        )
    if len(given) != len(value):
        raise ValueError(f"{name} has {len(given)} parts, but its value has {len(value)}")
    return list(given)


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
    primal = _made_once(f, "primal", 0, "python", ())  # only its signature is needed
    args, dots = primal.bound(tuple(primals), {}), _by_parameter(primal, tangents)
    chosen = tuple(n for n, dot in dots.items() if any(d is not None for d in (dot if n in primal.stars else (dot,))))
    chosen = chosen or tuple(n for n in dots if has_floats(args[primal.names.index(n)]))  # None is zero there
    derivative = derivative_of(f, "forward", chosen, backend, options)
    value, tangent = derivative.run_tangent(args, _fitted_tangents(derivative, args, [dots[n] for n in chosen]))
    return value, tangent


@made_once
def _forward(f: Function, backend: str, given: tuple[bool, ...]) -> Derivative:
    """The tangent program for tangents of some arguments; raises UnfitError if the general case is needed."""
    primal = _made_once(f, "primal", 0, "python", ())
    if primal.by_name or len(given) != len(primal.names) or not any(given):
        raise UnfitError
    chosen = tuple(n for n, is_given in zip(primal.names, given, strict=True) if is_given)
    return derivative_of(f, "forward", chosen, backend, {})


def _by_parameter(primal: Derivative, given: Sequence[Any]) -> dict[str, Any]:
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


jvp.__srcdiff_tangents__ = _jvp_of  # type: ignore[attr-defined]


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
        value, pullback = _pulled_back(primal, given, primal.chosen(wrt))
        return value, (lambda *bars, **named: pullback(*bars, **named)[0]) if is_one(wrt) else pullback
    by_name = dict(zip(primal.names, given, strict=True))
    floats = tuple(n for n, a in by_name.items() if has_floats(a))
    nothing: dict[str, Any] = {n: (None,) * len(by_name[n]) for n in primal.stars}
    value, pullback = _pulled_back(primal, given, floats)

    def adjoints(*bars: Any, **named: Any) -> tuple[Any, ...]:
        found = nothing | dict(zip(floats, pullback(*bars, **named), strict=True))
        each: list[tuple[str, Any]] = [(n, found.get(n)) for n in primal.names]
        return tuple([b for n, bar in each for b in (bar if n in primal.stars else (bar,))])

    return value, adjoints


def _pulled_back(primal: Derivative, args: tuple[Any, ...], wrt: tuple[str, ...]) -> tuple[Any, Callable[..., Any]]:
    """The value, and the pullback to the arguments `wrt`."""
    specialisation = primal.specialised(args)
    specialisation.prepared(args)  # copies share no memory, and would not be refused for that
    kept = tuple(map(_copied, args))
    run_on = tuple(map(_copied, args)) if specialisation.compiled.writes else kept
    with _put_back(specialisation.compiled) as arrays:
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
def _put_back(compiled: Compiled) -> Iterator[list[Any]]:
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


class Composed:
    """A derivative composed of others. Differentiated functions can call it, and it can be differentiated."""

    __signature__: inspect.Signature
    _readable: Function | None = None

    @property
    def __srcdiff_inside__(self) -> tuple[Any, ...]:
        """The function that replaces it inside a differentiated function, and its leading arguments."""
        raise NotImplementedError

    @property
    def __srcdiff_function__(self) -> Function:
        """A function with source code that calls it."""
        if self._readable is None:
            self._readable = _calling(self, self.__signature__)
        return self._readable


def _calling(derivative: Any, signature: inspect.Signature) -> Function:
    """A function with source code and this signature that calls the derivative."""
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    shown = [p.replace(default=None) if p.default is not inspect.Parameter.empty else p for p in bare]
    passed = [
        f"{p.name}={p.name}" if p.kind is inspect.Parameter.KEYWORD_ONLY else stars.get(p.kind, "") + p.name
        for p in bare
    ]
    name = derivative.__name__ if derivative.__name__.isidentifier() else "function"
    text = f"def {name}{inspect.Signature(shown)}:\n    return derivative({', '.join(passed)})\n"
    origin = inspect.unwrap(derivative).__code__.co_filename
    # the same name in all processes, for the cache on disk
    file = f"<srcdiff {derivative!r} {fingerprint(text, origin)[:8]}>"
    WRITTEN_FOR[file] = WRITTEN_FOR.get(origin, origin)
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
    """The product of a Hessian and a vector, `h(*args, v)`, by forward mode over reverse mode: see `hvp`."""

    def __init__(self, f: Function, wrt: Wrt, backend: str, options: dict[str, Any]) -> None:
        self.gradient = grad(f, wrt, backend=backend, **options)
        self.derivative = Derivative(
            self.gradient, "forward", each_of(wrt), with_value=False, backend=backend, **options
        )
        self.entry: Any = None
        functools.update_wrapper(self, self.gradient.function, updated=())
        self.__doc__ = described("The Hessian, times a vector,", self.gradient, self.gradient.function.__doc__)
        self.__signature__ = _with_vector(self.gradient.signature)

    def __reduce__(self) -> Any:
        gradient = self.gradient
        wrt = gradient.wrt[0] if gradient.single else gradient.wrt
        return HessianProduct, (findable(gradient.of), wrt, gradient.backend, gradient.options)

    @property
    def __srcdiff_inside__(self) -> tuple[Any, ...]:
        wrt = self.gradient.wrt
        return composed.product_of, grad, jvp, self.gradient.of, wrt[0] if self.gradient.single else wrt

    def body_for(self, given: tuple[Any, ...], types_: Any) -> numba_cpu.Body:
        """The compiled function for a call with such arguments."""
        vector = f"args[{len(given) - 1}]"
        single, count = self.gradient.single, len(self.derivative.wrt)
        dots = [vector] if single else [f"{vector}[{k}]" for k in range(count)]
        return self.derivative.body_with_tangents(given[:-1], dots, "{}[0]")

    def hessp(self, x: Any, vector: Any, *rest: Any) -> Any:
        """The product with the vector as second argument, as `scipy.optimize.minimize(hessp=...)` calls it."""
        return self(x, *rest, vector)

    def __call__(self, *args: Any) -> Any:
        try:
            return self.derivative.tangent(args[:-1], args[-1:] if self.gradient.single else args[-1])
        except UnfitError:
            return self.at(self.derivative.bound(args[:-1], {}), args[-1])

    def at(self, given: tuple[Any, ...], vector: Any) -> Any:
        """The product for all arguments of the function, by position."""
        dots = _fitted_tangents(self.derivative, given, (vector,) if self.gradient.single else vector)
        return self.derivative.run_tangent(given, dots)

    @property
    def source(self) -> str:
        """The generated source code for the argument types of the latest call."""
        return self.derivative.source

    def _repr_html_(self) -> str | None:
        """The gradient and its tangent program side by side, for notebooks."""
        return self.derivative._repr_html_()

    def __repr__(self) -> str:
        return f"<srcdiff.hvp({self.gradient.function.__code__.co_qualname}, wrt={self.gradient.wrt!r})>"


def _with_vector(signature: inspect.Signature) -> inspect.Signature:
    """The signature with one more positional parameter."""
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
    """Make a function that computes the Hessian of `f` times a vector, without forming the Hessian.

    >>> import numpy as np
    >>> def saddle(x):
    ...     return x[0] ** 2 - x[1] ** 2
    >>> hvp(saddle)(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 2., -2.])

    Args:
        f: A Python function that returns one float.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        A function that takes the arguments of `f` and then the vector, which has the structure and shape of the
        argument `wrt` (a tuple, if `wrt` is a tuple). It returns the product in the same form. Its method `hessp` takes
        the vector as its second argument, as `scipy.optimize.minimize(hessp=...)` expects.

    Raises:
        DifferentiationError: At the first call with new argument types, if `f` cannot be differentiated.
    """
    return HessianProduct(f, wrt, backend, options)


def _fitted_tangents(derivative: Derivative, args: tuple[Any, ...], tangents: Sequence[Any]) -> tuple[Any, ...]:
    compiled = derivative.specialised(args).compiled
    takes, reading = compiled.further, compiled.reading
    if len(tangents) != len(takes):
        raise ValueError(f"{len(takes)} tangents are needed, but {len(tangents)} are given")
    positions = [derivative.names.index(n) for n in derivative.wrt]
    shapes = [_with_stored(reading.arguments[n], reading) for n in derivative.wrt]
    each = zip(positions, shapes, takes.items(), tangents, strict=True)
    return tuple(fitted(x, of, args[k], t, name) for k, of, (name, x), t in each)


def _with_stored(x: Abstract, reading: Reading) -> Abstract:
    """An argument, with its lists replaced by their storage."""
    return NODES.map(lambda leaf: reading.lists.get(leaf, Static(None)) if isinstance(leaf, List) else leaf, x)


def derivative_by_name(f: Function, mode: str, wrt: Wrt = 0, **options: Any) -> Derivative | HessianProduct:
    """The derivative with a name: `grad`, `value_and_grad`, `jvp`, `vjp`, `hvp`, or `primal` for the function."""
    match DERIVATIVE.checked("mode", mode):
        case "grad" | "value_and_grad":
            return Derivative(f, "reverse", wrt, with_value=mode == "value_and_grad", **options)
        case "jvp":
            return Derivative(f, "forward", wrt, with_value=True, **options)
        case "vjp":
            return Derivative(f, "pullback", wrt, with_value=False, **options)
        case "hvp":
            return hvp(f, wrt, **options)
    return Derivative(f, "primal", 0, **options)


class Jacobian(Composed):
    """The Jacobian of a function: see `jacobian`."""

    def __init__(
        self,
        f: Function,
        wrt: Wrt,
        mode: str | None,
        directions_at_once: int | None,
        backend: str,
        options: dict[str, Any],
        holomorphic: bool = False,
    ) -> None:
        check_sweeps(mode, directions_at_once)
        self.holomorphic = bool(holomorphic)
        self.function, self.mode, self.backend, self.options = f, mode, backend, options
        self.directions = None if directions_at_once is None else int(directions_at_once)
        self.single, self.wrt = is_one(wrt), each_of(wrt)
        self.columns = self.sweeps("forward")
        self.rows = self.sweeps("pullback")
        self.few: dict[tuple[str, int], Derivative] = {}
        """The same for a small fixed number of directions."""
        self.chosen: dict[Any, Derivative] = {}
        """The chosen program for each combination of argument shapes."""
        self.latest: Derivative | None = None
        """The program of the latest call."""
        self.complex: set[Any] = set()
        """The argument shapes for which the results are complex."""
        self.entry: Any = None
        functools.update_wrapper(self, self.columns.function, updated=())
        self.__doc__ = described("All derivatives", self.columns, self.columns.function.__doc__)
        self.__signature__ = self.columns.signature.replace(return_annotation=inspect.Signature.empty)

    def sweeps(self, mode: str, numbers: int | None = None) -> Derivative:
        """The program that computes the Jacobian by forward or reverse mode."""
        wrt = self.wrt[0] if self.single else self.wrt
        how = {"backend": self.backend, **self.options, "directions": self.directions, "numbers": numbers}
        return Derivative(self.function, mode, wrt, with_value=False, jacobian=True, **how)

    def __reduce__(self) -> Any:
        wrt = self.wrt[0] if self.single else self.wrt
        given = (findable(self.function), wrt, self.mode, self.directions, self.backend, self.options)
        return Jacobian, (*given, self.holomorphic)

    @property
    def __srcdiff_inside__(self) -> tuple[Any, ...]:
        wrt = self.columns.wrt[0] if self.single else self.columns.wrt
        return composed.jacobian_of, jacobian, self.function, wrt, self.mode, self.directions

    def __repr__(self) -> str:
        return f"<srcdiff.jacobian({self.columns.function.__code__.co_qualname}, wrt={self.columns.wrt!r})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.holomorphic or self.is_complex(args, kwargs):
            return self.one_by_one.at(self.columns.bound(args, kwargs))
        try:
            self.latest = self.chosen_for(args, kwargs)
            return self.latest(*args, **kwargs)
        except ListsInJacobianError:
            return self.one_by_one.at(self.columns.bound(args, kwargs))
        except ComplexJacobianError:
            self.complex.add((_shapes(args), _shapes(tuple(kwargs.values()))))
            return self.one_by_one.at(self.columns.bound(args, kwargs))
        except ValueError as error:
            if self.latest is None or str(error) != OTHER_NUMBER.format(self.latest.numbers):
                raise
        self.chosen.clear()  # the function or a value that it reads from outside has changed
        self.latest = self.columns if self.latest.mode == "forward" else self.rows
        return self.latest(*args, **kwargs)

    def is_complex(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether an argument to differentiate by is complex, or the result has been."""
        if self.complex and (_shapes(args), _shapes(tuple(kwargs.values()))) in self.complex:
            return True
        if not any(map(_holds_complex, (*args, *kwargs.values()))):
            return False
        given = dict(zip(self.columns.names, self.columns.bound(args, kwargs), strict=True))
        return any(_holds_complex(given[name]) for name in self.columns.wrt)

    def body_for(self, given: tuple[Any, ...], types_: Any) -> numba_cpu.Body:
        """The code that a Numba function runs for a call: the mode with fewer sweeps, as far as that is known."""
        from srcdiff.driver.compiling import cheaper_mode

        if self.holomorphic:
            raise TypeError(f"{self!r} cannot be called from compiled code: it is holomorphic")
        defaults = self.columns.bound((None,) * len(given), {})[len(given) :]
        asked = "pullback" if self.mode == "reverse" else self.mode
        mode, numbers = cheaper_mode(self.columns.request((*given, *defaults)), asked)
        return numba_cpu.body_of_call(*self.by(mode == "forward", numbers).compiled_for(given))

    def chosen_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Derivative:
        """The program in the chosen mode, or the one that needs fewer sweeps."""
        key = (_shapes(args), _shapes(tuple(kwargs.values())))
        found = self.chosen.get(key)
        if found is None:
            if len(self.chosen) >= _REMEMBERED:
                self.chosen.clear()
            given = self.columns.bound(args, kwargs)
            found = self.chosen[key] = self.fewest_sweeps(given)
        return found

    def fewest_sweeps(self, given: tuple[Any, ...]) -> Derivative:
        """Forward mode if there are at least as many results as inputs, otherwise reverse mode."""
        from srcdiff.driver.compiling import numbers_of

        inputs, outputs = known = numbers_of(self.columns.request(given), given)
        if outputs is None and self.mode is None:
            primal = derivative_of(self.function, "primal", 0, self.backend, self.options)
            replay = Replay(given)
            outputs = sum(np.size(leaf) for leaf in leaves(_pulled_back(primal, given, self.columns.wrt)[0]))
            replay.again(given)
        has_more_rows = inputs is None or outputs is None or inputs <= outputs
        by_columns = has_more_rows if self.mode is None else self.mode == "forward"
        return self.by(by_columns, known[0 if by_columns else 1])

    def by(self, columns: bool, numbers: int | None) -> Derivative:
        """By columns or by rows, of which there are so many."""
        derivative = self.columns if columns else self.rows
        if numbers is None or not 0 < numbers <= FEW_DIRECTIONS or self.directions is not None:
            return derivative
        return self.few.setdefault((derivative.mode, numbers), self.sweeps(derivative.mode, numbers))

    @functools.cached_property
    def one_by_one(self) -> SweepForEach:
        """One sweep for each direction: for lists with lengths known only at run time, and for complex numbers."""
        return SweepForEach(self)

    @property
    def source(self) -> str:
        """The generated source code of the latest call; before that, of the chosen mode or of forward mode."""
        return self._shown().source

    def _repr_html_(self) -> str | None:
        """The function and its Jacobian side by side, for notebooks."""
        return self._shown()._repr_html_()

    def _shown(self) -> Derivative:
        if self.latest is None:
            self.latest = self.rows if self.mode == "reverse" else self.columns
        return self.latest


def _shapes(given: tuple[Any, ...]) -> Any:
    """The key for the shapes of the results: the shapes of the arguments, and integers."""
    return tuple([a.shape if type(a) is np.ndarray else None if type(a) is float else _shape(a) for a in given])


def _shape(x: Any) -> Any:
    return (
        x
        if isinstance(x, int)
        else tuple([_shape(part) if part is not x else np.shape(x) for part in VALUES.leaves(x)])
    )


def _holds_complex(x: Any) -> bool:
    if type(x) is np.ndarray:
        return bool(x.dtype.kind == "c")
    return type(x) is not float and any(map(np.iscomplexobj, leaves(x)))


class SweepForEach:
    """A Jacobian by one sweep per direction, for any structure of arguments and results."""

    def __init__(self, jacobian: Jacobian) -> None:
        self.function, self.mode, self.backend, self.options = (
            jacobian.function,
            jacobian.mode,
            jacobian.backend,
            jacobian.options,
        )
        self.single, self.holomorphic = jacobian.single, jacobian.holomorphic
        self.forward = Derivative(self.function, "forward", jacobian.wrt, backend=self.backend, **self.options)

    def at(self, given: tuple[Any, ...]) -> Any:
        """The Jacobian for all arguments of the function."""
        chosen = self.forward.wrt
        given = tuple(
            [floats_for_integers(x) if n in chosen else x for n, x in zip(self.forward.names, given, strict=True)]
        )
        zeros = _fitted_tangents(self.forward, given, [None] * len(self.forward.wrt))
        inputs = [given[self.forward.names.index(n)] for n in chosen]
        value, _ = self.forward.run(given, zeros)
        if self.holomorphic:
            self.require_holomorphic(given, inputs, value)
        sizes = [sum(np.size(leaf) for leaf in leaves(x)) for x in (tuple(inputs), value)]
        by_columns = sizes[0] <= sizes[1] or not _is_pulled_back(
            self.forward.specialised(given).compiled.reading.result
        )
        forward = self.mode == "forward" or (self.mode is None and by_columns)
        found = iter((self.by_columns if forward else self.by_rows)(given, inputs, value))
        return like(value, lambda _: self.row(next(found), inputs))

    def row(self, parts: list[list[Any]], inputs: list[Any]) -> Any:
        """The derivatives of one result, in the structure of the arguments."""
        found = iter(parts)
        whole = like(tuple(inputs), lambda _: _one_or_pair(next(found)))
        return whole[0] if self.single else whole

    def empty(self, inputs: list[Any], value: Any) -> list[list[list[Any]]]:
        """For each result and each argument an array, or two for a complex argument."""
        return [
            [
                [
                    np.zeros(np.shape(out) + np.shape(leaf), complex if np.iscomplexobj(out) else float)
                    for _ in self.units(leaf)
                ]
                for leaf in leaves(tuple(inputs))
            ]
            for out in leaves(value)
        ]

    def units(self, leaf: Any) -> tuple[complex, ...]:
        """The numbers to differentiate along: also the imaginary one, unless the function is holomorphic."""
        return (1.0, 1.0j) if np.iscomplexobj(leaf) and not self.holomorphic else (1.0,)

    def require_holomorphic(self, given: tuple[Any, ...], inputs: list[Any], value: Any) -> None:
        """Raise if the derivative along `1j * d` is not `1j` times the derivative along `d`."""
        if not all(np.iscomplexobj(leaf) for leaf in (*leaves(tuple(inputs)), *leaves(value))):
            raise TypeError("a holomorphic function has complex arguments and complex results")
        along = _random_like(tuple(inputs), 4)
        beside = like(along, lambda leaf: 1j * leaf)
        tangents = [self.forward.run(given, _fitted_tangents(self.forward, given, list(d)))[1] for d in (along, beside)]
        for first, second in zip(*map(leaves, tangents), strict=True):
            if not np.allclose(1j * np.asarray(first), second, rtol=1e-6, atol=1e-9, equal_nan=True):
                raise ValueError(f"`{self.forward.function.__name__}` is not holomorphic: it has no complex derivative")

    def by_columns(self, given: tuple[Any, ...], inputs: list[Any], value: Any) -> list[list[list[Any]]]:
        """Forward mode: one sweep for each input number, two if it is complex."""
        found = self.empty(inputs, value)
        for leaf, place, part, _, whole in directions(tuple(inputs), self.units):
            _, tangent = self.forward.run(given, _fitted_tangents(self.forward, given, list(whole)))
            for row, out in zip(found, leaves_beside(value, tangent), strict=True):
                row[leaf][part][(..., *place)] = out
        return found

    def by_rows(self, given: tuple[Any, ...], inputs: list[Any], value: Any) -> list[list[list[Any]]]:
        """Reverse mode: one sweep for each result number, two if it is complex: they give its two parts."""
        found = self.empty(inputs, value)
        primal = derivative_of(self.function, "primal", 0, self.backend, self.options)
        _, pullback = _pulled_back(primal, given, self.forward.wrt)
        for k, place, _, unit, bars in directions(value, self.units):
            back = pullback(**bars) if returns_nothing(self.forward, given) else pullback(bars)
            for parts, bar in zip(found[k], leaves(back), strict=True):
                if self.holomorphic:
                    parts[0][place] = np.conj(bar)
                    continue
                for part, of in zip(parts, (np.real(bar), np.imag(bar)), strict=False):
                    part[place] += unit * of
        return found


def _one_or_pair(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else Partials(*parts)


def _is_pulled_back(x: Abstract) -> bool:
    """Whether all floats of a result have adjoints; arrays in lists of run-time length have none."""
    arrays = [a.type for leaf in NODES.leaves(x) if isinstance(leaf, Stored) for a in leaf.arrays]
    return not any(isinstance(t, Stack) and is_inexact(t.element) for t in arrays)


def leaves(x: Any) -> list[Any]:
    """The floats and arrays of floats in a structure."""
    return [leaf for leaf in VALUES.leaves(x) if is_of_floats(leaf)]


def leaves_beside(x: Any, other: Any) -> list[Any]:
    """The entries of another structure of the same form at the places of these leaves.

    >>> leaves_beside((1.5, 2, [3.5]), (0.1, 0.2, [0.3]))
    [0.1, 0.3]
    """
    return [one for part, one in VALUES.beside(x, other, "") if is_of_floats(part.value)]


def like(x: Any, make: Callable[[Any], Any]) -> Any:
    """A structure of the same form with new leaves; leaves without floats become None."""
    return VALUES.map(lambda leaf: make(leaf) if is_of_floats(leaf) else None, x)


def directions(
    x: Any, units_of: Callable[[Any], tuple[complex, ...]]
) -> Iterator[tuple[int, tuple[int, ...], int, complex, Any]]:
    """For each number in a structure: its leaf, its index, and each unit direction with its position."""
    found = leaves(x)
    for k, leaf in enumerate(found):
        for place in np.ndindex(np.shape(leaf)):
            for position, unit in enumerate(units_of(leaf)):
                along = [np.zeros(np.shape(other), complex if np.iscomplexobj(other) else float) for other in found]
                along[k][place] = unit
                left = (one if one.ndim else one.item() for one in along)
                yield k, place, position, unit, like(x, lambda _, left=left: next(left))  # type: ignore[misc]


def jacobian(
    f: Function,
    wrt: Wrt = 0,
    *,
    mode: str | None = None,
    directions: int | None = None,
    holomorphic: bool = False,
    backend: str = "numba",
    **options: Any,
) -> Jacobian:
    """Make a function that computes the Jacobian of `f`: the derivatives of all results by all inputs.

    >>> import numpy as np
    >>> def polar(p):
    ...     return np.array([p[0] * np.cos(p[1]), p[0] * np.sin(p[1])])
    >>> jacobian(polar)(np.array([2.0, 0.0]))
    array([[1., 0.],
           [0., 2.]])

    Args:
        f: A Python function that returns numbers and arrays, or tuples, lists, dictionaries and dataclasses of these.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        mode: `"forward"`, `"reverse"`, or None for the one that needs fewer sweeps.
        directions: The number of derivatives that one sweep computes together in its innermost loops; None means 32.
        holomorphic: Whether arguments and results are complex, and the derivatives are complex numbers. A function that
            is not holomorphic raises `ValueError`. Without it, the derivative by a complex argument is a pair,
            `Partials`: by its real part, and by its imaginary part.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        A function with the parameters of `f`. It returns an array whose shape is the shape of the result followed by
        the shape of the argument. If the result or `wrt` has several parts, it returns these arrays in the structure of
        the result, and inside that in the structure of the arguments.

    Raises:
        DifferentiationError: At the first call with new argument types, if `f` cannot be differentiated.
    """
    return Jacobian(f, wrt, mode, directions, backend, options, holomorphic)


def hessian(
    f: Function, wrt: Wrt = 0, *, directions: int | None = None, backend: str = "numba", **options: Any
) -> Jacobian:
    """Make a function that computes the Hessian of `f`, by forward mode over reverse mode.

    >>> import numpy as np
    >>> def surface(x):
    ...     return x[0] ** 2 * x[1]
    >>> hessian(surface)(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])

    Args:
        f: A Python function that returns one float.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        directions: As for `jacobian`.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        A function with the parameters of `f` that returns the second derivatives: for an array `x`, an array of the
        shape `x.shape + x.shape`. For large `x`, use `hvp`.

    Raises:
        DifferentiationError: At the first call with new argument types, if `f` cannot be differentiated.
    """
    gradient = grad(f, wrt, backend=backend, **options)
    return Jacobian(gradient, wrt, "forward", directions, backend, options)


def _jacobian_inside(
    of: str,
    names: tuple[str, ...],
    stars: Mapping[str, str],
    wrt: Wrt = 0,
    *,
    mode: str | None = None,
    directions: int | None = None,
    **options: Any,
) -> Derivation:
    """What `jacobian` means inside a differentiated function."""
    from srcdiff.frontend.derivation import Derivation

    require_inside({**options, "mode": mode, "directions": directions}, ("backend", "mode", "directions"))
    kind = {None: "", "forward": "forward", "reverse": "pullback"}[mode]
    chosen = chosen_names(wrt, names, of, stars)
    return Derivation(kind, chosen, single=is_one(wrt), jacobian=True, directions=directions)


numba_cpu.callable_from_compiled_code(HessianProduct, HessianProduct.body_for, lambda product: None)
numba_cpu.callable_from_compiled_code(Jacobian, Jacobian.body_for, lambda jacobian: jacobian.columns)


def _jvp_in_compiled_code(f: Any, primals: Any, tangents: Any) -> Any:
    """`jvp` in compiled code of users: `f` is compiled by Numba, or a derivative."""
    from numba.core import types

    if not isinstance(f, types.Dispatcher) or not isinstance(primals, types.BaseTuple):
        return None
    of: Any = getattr(f.dispatcher, "stands_for", f.dispatcher)
    given = tuple(numba_cpu.described(t) for t in primals)  # type: ignore[attr-defined]
    primal = _made_once(of, "primal", 0, "python", ())
    places = [k for k, t in enumerate(tangents) if not isinstance(t, types.NoneType)]
    chosen = tuple(primal.names[k] for k in places)
    derivative = derivative_of(of, "forward", chosen, "numba", {})
    dots = [f"tangents[{k}]" for k in places]
    names, lines = derivative.body_with_tangents(given, dots, "({0}[0], {0}[2])")
    head = "call(f: Any, primals: Any, tangents: Any) -> Any"  # Numba compares it with that of this function
    return numba_cpu.function_with_body(head, (names, ["args = primals", *lines]))


overload(jvp)(_jvp_in_compiled_code)

# their meaning inside a differentiated function
jacobian.__srcdiff_maker__ = _jacobian_inside  # type: ignore[attr-defined]
hvp.__srcdiff_inside__ = (composed.hvp, grad, jvp)  # type: ignore[attr-defined]
vjp.__srcdiff_inside__ = (composed.vjp, grad, jvp)  # type: ignore[attr-defined]
hessian.__srcdiff_inside__ = (composed.hessian, grad, jacobian)  # type: ignore[attr-defined]


# -- checking --------------------------------------------------------------------------------------------------------


def check(
    f: Function, *args: Any, wrt: Wrt | None = None, order: int = 1, backend: str = "numba", **options: Any
) -> Report:
    """Compare the derivatives of `f` with finite differences, and forward mode with reverse mode.

    The value is compared with a call of `f` itself. If the result is not one float, a random linear combination of its
    numbers is differentiated.

    >>> report = check(lambda x, y: x * y**2, 2.0, 3.0)
    >>> [(entry.place, round(entry.derivative, 6)) for entry in report.entries]
    [('x', 9.0), ('y', 12.0)]

    Args:
        f: A Python function, or a function compiled with `@njit`.
        *args: The arguments at which the derivatives are compared.
        wrt: The arguments to check, as for `grad`; None means all that contain floats.
        order: 1 checks first derivatives; 2 also checks second derivatives, and that the Hessian is symmetric.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        A report with the compared numbers. Print it to read them.

    Raises:
        AssertionError: If derivatives differ; the message lists them.
        DifferentiationError: If `f` cannot be differentiated.
    """
    ORDER.checked("order", order)
    primal = derivative_of(f, "primal", 0, backend, options)
    given = _by_parameter(primal, with_own_arrays(args))
    names = tuple(n for n, a in given.items() if has_floats(a)) if wrt is None else primal.chosen(wrt)
    pairs = zip(primal.names, primal.bound(args, {}), strict=True)
    arguments = tuple(floats_for_integers(a) if n in names and VALUES.parts(a) is not None else a for n, a in pairs)
    replay = Replay(arguments)
    value, pullback = _pulled_back(primal, arguments, names)
    replay.again(arguments)
    if isinstance(value, float | np.floating):
        bars = grad(f, names, backend=backend, **options).run(arguments)
        weights: Any = 1.0
    else:
        weights = _random_like(value, 1)
        bars = pullback(**weights) if returns_nothing(primal, arguments) else pullback(weights)

    function = _as_given(f, primal)

    def called(*given: Any) -> Any:
        compiled = primal.specialised(given).compiled
        with _put_back(compiled):
            positional, named = primal.spread(given)
            replay.again(given)
            result = function(*positional, **named)
            return {part.name: part.of(given) for part in compiled.written} if result is None else result

    def combined(*given: Any) -> float:
        return _product(weights, called(*given))

    with np.errstate(all="ignore"):
        try:
            found = called(*copied(arguments))
        except NumbaError:  # Numba cannot compile the function
            function = primal.function
            try:
                found = called(*copied(arguments))
            except NumbaError:
                message = (
                    "compiled functions cannot take copies of the arguments; read a `jitclass` instance from outside"
                )
                raise TypeError(f"{message}: `srcdiff.check(lambda x: f(model, x), x)`") from None
    require_values(value, found, arguments, primal.specialised(arguments).compiled.reading.differences)
    positions = [primal.names.index(n) for n in names]
    report = compare(combined, arguments, list(zip(positions, names, strict=True)), bars)
    inputs = tuple(arguments[k] for k in positions)
    dots = _random_like(inputs, 2)
    forward = derivative_of(f, "forward", names, backend, options)
    replay.again(arguments)
    _, tangent = forward.run(arguments, _fitted_tangents(forward, arguments, dots))
    _require_equal("forward and reverse mode differ", _product(weights, tangent), _product(bars, dots), bars, dots)
    if order > 1:
        product, other = hvp(f, names, backend=backend, **options), _random_like(inputs, 3)
        replay.again(arguments)
        first = product.at(arguments, dots)
        replay.again(arguments)
        second = product.at(arguments, other)
        _require_equal("the Hessian is not symmetric", _product(first, other), _product(second, dots), first, other)
    replay.again(arguments)
    return report


def _as_given(f: Function, primal: Derivative) -> Function:
    """The callable for the values of `f`: a derivative itself, or the function as the user passed it."""
    is_derivative = getattr(f, "__srcdiff_derivative__", None) is not None or hasattr(f, "__srcdiff_inside__")
    return f if is_derivative else primal.original


def _random_like(x: Any, seed: int) -> Any:
    random = np.random.default_rng(seed)

    def numbers_like(leaf: Any) -> Any:
        found = random.standard_normal(np.shape(leaf)) if np.ndim(leaf) else random.standard_normal()
        return found + 1j * random.standard_normal(np.shape(leaf)) if np.iscomplexobj(leaf) else found

    return like(x, numbers_like)


def _product(x: Any, y: Any) -> float:
    """The sum of all products; of complex numbers, of their real parts and of their imaginary parts."""
    return float(sum(np.sum(_products(a, b)) for a, b in zip(leaves(x), leaves(y), strict=True)))


def _products(a: Any, b: Any) -> Any:
    if np.iscomplexobj(a) or np.iscomplexobj(b):
        return (np.conj(a) * b).real
    return np.asarray(a, float) * b


def _require_equal(what: str, first: float, second: float, x: Any, y: Any) -> None:
    terms = [float(np.sum(np.abs(_products(a, b)))) for a, b in zip(leaves(x), leaves(y), strict=True)]
    single = any(np.asarray(a).dtype in (np.float32, np.complex64) for a in (*leaves(x), *leaves(y)))
    if abs(first - second) > (1e-3 if single else 1e-8) * max(1.0, *terms):  # two orders of evaluation
        raise AssertionError(f"{what}: {first!r} and {second!r} along a random direction")
