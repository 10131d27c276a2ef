"""Derivatives that users declare, for their own functions and for functions that they cannot edit."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from srcdiff.frontend.source.bound_methods import method_behind
from srcdiff.frontend.source.capture import findable, plain_function, standing_for
from srcdiff.frontend.source.numba_options import layers
from srcdiff.library.externals import External
from srcdiff.quick_dataclasses import dataclass


class CustomRule:
    """A function with its derivative: an adjoint, a tangent, or both.

    `adjoint(*arguments, out, out_bar)` returns one adjoint for each argument, `tangent(*arguments, out,
    *argument_dots)` the tangent of the result. A missing one is the transpose of the other.
    """

    def __init__(
        self, function: Callable[..., Any], adjoint: Callable[..., Any] | None, tangent: Callable[..., Any] | None
    ) -> None:
        for given in (function, adjoint, tangent):
            if given is not None and plain_function(given) is None:
                raise TypeError(f"{given!r} is not a Python function")
        if adjoint is None and tangent is None:
            raise TypeError("a custom rule needs an adjoint or a tangent")
        self.function, self.adjoint, self.tangent = function, adjoint, tangent
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __reduce__(self) -> Any:
        return _declared, (findable(self.function), findable(self.adjoint), findable(self.tangent))

    @property
    def __srcdiff_function__(self) -> Callable[..., Any]:
        return self.function

    @property
    def __srcdiff_rule__(self) -> CustomRule:
        return self


def _declared(function: Any, adjoint: Any, tangent: Any) -> CustomRule:
    """The rule, looked up by the name of its function."""
    there = standing_for(function, CustomRule)
    return CustomRule(function, adjoint, tangent) if there is None else there


# -- rules for functions of others -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """The replacement of a function in generated code: another function, or one with a rule."""

    function: Callable[..., Any]
    implementation: Callable[..., Any]

    @property
    def is_elementwise(self) -> bool:
        """Whether the implementation is called for each element of arrays, as NumPy calls a ufunc."""
        return isinstance(self.function, np.ufunc) and self.function.signature is None


class RuleTable:
    """The declared rules, by the identity of the function."""

    def __init__(self) -> None:
        self.rows: dict[Hashable, Declared] = {}
        self.version = object()
        """A token that is replaced by each change of the table."""

    def find(self, function: Any) -> Declared | None:
        return self.rows.get(_identity(function)) if self.rows else None

    def add(self, row: Declared) -> None:
        self.rows[_identity(row.function)] = row
        self.version = object()

    def remove(self, function: Any) -> None:
        del self.rows[_identity(function)]
        self.version = object()


RULES = RuleTable()


def _identity(function: Any) -> Hashable:
    """The identity of a function. A bound method is a new object for each lookup, so it is identified by its parts."""
    if isinstance(function, types.MethodType):
        return id(function.__self__), _identity(function.__func__)
    if isinstance(function, types.BuiltinMethodType) and not isinstance(function.__self__, types.ModuleType | None):
        return id(function.__self__), function.__name__
    if getattr(function, "__srcdiff_derivative__", None) is None:
        function = next((layer for layer in layers(function) if isinstance(layer, types.FunctionType)), function)
    return id(function)  # the table keeps the function alive


class RulesRead:
    """The rules that were read for a program, or their absence: one guard for all of them.

    While the table does not change, the guard only compares two objects.
    """

    scope = None

    def __init__(self) -> None:
        self.version = RULES.version
        self.found: dict[Hashable, tuple[Any, Declared | None]] = {}

    @property
    def key(self) -> tuple[Any, ...]:
        return "rules", id(self)

    def text(self, name: Callable[[Any], str]) -> str:
        return f"({name(RULES)}.version is {name(self)}.version or {name(self)}.read())"

    def find(self, function: Any) -> Declared | None:
        row = RULES.find(function)
        self.found[_identity(function)] = function, row
        return row

    def read(self) -> bool:
        """Whether the same rules are declared now."""
        version = RULES.version
        is_same = all(RULES.find(function) is row for function, row in self.found.values())
        if is_same:
            self.version = version
        return is_same


def declare(
    function: Any,
    implementation: Callable[..., Any],
    adjoint: Callable[..., Any] | None,
    tangent: Callable[..., Any] | None,
    replace: bool,
) -> Callable[..., Any]:
    """Add a rule for a function; return the implementation, with its derivative if that is declared too."""
    if plain_function(implementation) is None and not isinstance(implementation, External):
        raise TypeError(f"{implementation!r} is not a Python function")
    if RULES.find(function) is not None and not replace:
        name = getattr(function, "__name__", None) or repr(function)
        raise ValueError(f"`{name}` has a rule already: pass `replace=True` to replace it")
    if adjoint is not None or tangent is not None:
        implementation = CustomRule(implementation, adjoint, tangent)
    RULES.add(Declared(function, implementation))
    return implementation


def require_declarable(function: Any) -> None:
    """Refuse objects that cannot have a rule."""
    if not callable(function):
        raise TypeError(f"`rule_for` takes the function that the rule is for, not {function!r}")
    if isinstance(function, type):
        raise TypeError(f"`rule_for` takes a function, not the class `{function.__name__}`")
    method = function if isinstance(function, types.MethodType) else method_behind(function)
    if method is not None and isinstance(method.__func__, types.FunctionType):  # methods written in C have no source
        owner = method.__self__ if isinstance(method.__self__, type) else type(method.__self__)
        name = f"{owner.__name__}.{method.__name__}"
        name += ".__func__" if isinstance(method.__self__, type) else ""
        raise TypeError(f"`rule_for` takes the function of the class, `{name}`, not a bound method or an instance")
    is_ours = str(getattr(function, "__module__", "")).partition(".")[0] == "srcdiff"
    if is_ours or getattr(function, "__srcdiff_derivative__", None) is not None:
        raise TypeError(f"`rule_for` takes a function, not {function!r} of srcdiff")
