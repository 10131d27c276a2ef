"""The Numba options of a function, as far as they affect its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.compiler import Compiler
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.typing.templates import Signature
from numba.extending import register_jitable

from srcdiff.ir.types import Array, Scalar
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.descriptions import Description


@dataclass(frozen=True, slots=True)
class Told:
    """The Numba options of a function that differ from the defaults."""

    signatures: tuple[Any, ...] | None = None
    """The signatures, if Numba compiles for no others. Arguments are converted to one of them."""
    variables: tuple[tuple[str, Any], ...] = ()
    """The declared types of variables. Assigned values are converted to them."""
    error_model: str = ""
    boundscheck: bool = False
    fastmath: frozenset[str] | None = None
    """The allowed reorderings of sums and products, if they are restricted."""
    parallel: bool = False
    compiler: str = ""
    """The name of the compiler, if it is not Numba's default one."""
    dispatcher: Any = field(default=None, compare=False, repr=False)

    def inside(self) -> Told:
        """The options that apply to a nested function."""
        return Told(error_model=self.error_model, parallel=self.parallel)

    @property
    def options(self) -> dict[str, Any]:
        """The requirements on generated code."""
        asked: dict[str, Any] = {"boundscheck": True} if self.boundscheck else {}
        return asked if self.fastmath is None else {**asked, "fastmath": self.fastmath}


def settings(dispatcher: Any) -> tuple[Any, ...]:
    """The current Numba options of a function, for the comparison with earlier ones."""
    signatures = () if dispatcher._can_compile else tuple(dispatcher.overloads)
    return signatures, dict(dispatcher.locals), dict(dispatcher.targetoptions)


def layers(function: Any) -> Iterator[Any]:
    """The function and its wrappers: Numba's dispatchers and objects of srcdiff contain another function."""
    for _ in range(10):
        if function is None:
            return
        yield function
        function = getattr(function, "__srcdiff_function__", None) or getattr(function, "py_func", None)


def told(function: Any) -> Told | None:
    """The Numba options of a function; None if Numba does not compile it."""
    dispatcher: Any = next((layer for layer in layers(function) if isinstance(layer, Dispatcher)), None)
    if dispatcher is None or dispatcher.targetoptions.get("forceobj"):
        return None
    options = dispatcher.targetoptions
    kind = dispatcher._compiler.pipeline_class
    fastmath = options.get("fastmath", True)
    return Told(
        None if dispatcher._can_compile else tuple(dispatcher.nopython_signatures),
        tuple(sorted(dispatcher.locals.items(), key=lambda item: item[0])),
        options.get("error_model") or "",
        bool(options.get("boundscheck")),
        None if fastmath is True else frozenset(fastmath or ()),
        bool(options.get("parallel")),
        "" if kind is Compiler else kind.__name__,
        dispatcher,
    )


def is_replaced(function: Any) -> bool:
    """Whether compiled code replaces calls of a Python function by another one, from `@overload`."""
    context: Any = cpu_target.typing_context
    context.refresh()
    known = getattr(context._lookup_global(function), "templates", ())
    given = [getattr(template, "_overload_func", function).__qualname__ for template in known]
    return any(not name.startswith(register_jitable.__name__) for name in given)


def implementation(function: Any, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    """The Python function that `@overload` returns for these argument types in any memory layout, or None."""
    context: Any = cpu_target.typing_context
    known = getattr(context._lookup_global(function), "templates", ())
    found = []
    for layout in "AC":
        given = [_laid_out(t, layout) for t in positional]
        by_name = {n: _laid_out(t, layout) for n, t in named.items()}
        choices = (getattr(template, "_overload_func", None) for template in known)
        try:
            made = (choose(*given, **by_name) for choose in choices if choose is not None)
            found.append(next((one for one in made if one is not None), None))
        except Exception:  # the user's function may raise anything for unknown types
            return None
    one, other = found
    same = isinstance(one, FunctionType) and isinstance(other, FunctionType) and one.__code__ is other.__code__
    return one if same else None


def _laid_out(type_: Any, layout: Any) -> Any:
    return type_.copy(layout=layout) if isinstance(type_, types.Array) else type_


# -- types -----------------------------------------------------------------------------------------------------------


def type_of(d: Description) -> Any:
    """Numba's type of a value; None if it is not compared."""
    match d.kind:
        case "value" if isinstance(d.detail, Scalar):
            return numba.from_dtype(np.dtype(d.detail.dtype))
        case "value" if isinstance(d.detail, Array):
            return types.Array(numba.from_dtype(np.dtype(d.detail.dtype)), d.detail.rank, "A")
        case "static" if isinstance(d.detail[1], bool | int | float | complex | None):
            return numba.typeof(d.detail[1])
        case "optional":
            inner = type_of(d.parts[0])
            return None if inner is None else types.Optional(inner)
        case "tuple":
            parts = [type_of(p) for p in d.parts]
            return None if None in parts else types.BaseTuple.from_types(tuple(parts), d.detail)
    return None


def _compared(type_: Any) -> Any:
    """A type without memory layout, which does not affect numbers; None if it is neither number nor array."""
    of: Any = type_
    match type_:
        case types.Literal():
            return _compared(type_.literal_type)
        case types.Omitted():
            return _compared(numba.typeof(type_.value))
        case types.Array():
            return types.Array(type_.dtype, type_.ndim, "A")
        case types.BaseTuple():
            parts = [_compared(t) for t in of]
            kind = getattr(type_, "instance_class", None)
            return None if None in parts else types.BaseTuple.from_types(tuple(parts), kind)
        case types.Number() | types.Boolean() | types.NoneType() | types.Optional():
            return type_
    return None


def fitting(signatures: Sequence[Any], given: Sequence[Any], context: Any) -> list[Any]:
    """The signatures that Numba may choose for arguments of these types. They differ only in memory layouts.

    The list is empty if Numba finds no signature, or an ambiguity.
    """
    found: dict[tuple[Any, ...], list[Any]] = {}
    for signature in signatures:
        taken = [_compared(t) for t in signature.args]
        same = len(taken) == len(given) and all((t is None) == (g is None) for t, g in zip(taken, given, strict=True))
        if same:
            found.setdefault(tuple(types.none if t is None else t for t in taken), []).append(signature)
    cases = [Signature(types.none, args, None) for args in found]
    args = tuple(types.none if g is None else g for g in given)
    try:
        best = context.resolve_overload("function", cases, args, {}, allow_ambiguous=False)
    except TypeError:
        return []
    return [] if best is None else found[tuple(best.args)]


def results(signatures: Sequence[Any]) -> set[Any]:
    """The result types of these signatures, as far as they are compared."""
    return {_compared(s.return_type) for s in signatures}


def spelled(x: Any) -> str:
    """A type or a signature of Numba, as it is written in a decorator."""
    if isinstance(x, Signature):
        return f"{spelled(x.return_type)}({', '.join(map(spelled, x.args))})"
    return f"{x.dtype}[{', '.join(':' * x.ndim)}]" if isinstance(x, types.Array) else str(x)


def numba_type(x: Any) -> str | None:
    """The name of the dtype of a type such as `numba.float32`."""
    if not type(x).__module__.startswith("numba."):
        return None
    name = str(getattr(x, "name", ""))
    others = ("bool", "float32", "float64", "complex64", "complex128")
    return name if name in others or name.lstrip("u").startswith("int") else None
