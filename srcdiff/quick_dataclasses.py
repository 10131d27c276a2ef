"""`dataclass` as in the standard library, made in a third of the time: an import of srcdiff makes some 270 of them.

The standard one compiles a text for each method of each class, also for those that are never called. This one compiles
one text for each class. It has the options that are used here.

>>> @dataclass(frozen=True, slots=True)
... class Point:
...     x: int
...     y: int = 0
>>> Point(1), Point(1) == Point(1, 0), hash(Point(1)) == hash(Point(1))
(Point(x=1, y=0), True, True)
>>> Point(1).x = 2
Traceback (most recent call last):
dataclasses.FrozenInstanceError: cannot assign to field 'x'
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, slots=False, weakref_slot=False):
        """The decorator, with or without options."""

        def made(kind):
            own = frozenset(vars(kind))
            doc = kind.__doc__ or kind.__name__  # the standard library would make one of the signature
            kind.__doc__ = doc
            given = {"weakref_slot": True} if weakref_slot else {}
            like_base = any(
                getattr(b, "__dataclass_params__", None) and b.__dataclass_params__.frozen for b in kind.__mro__
            )
            kind = dataclasses.dataclass(kind, init=False, repr=False, eq=False, frozen=like_base, slots=slots, **given)
            _add_methods(kind, own, frozen=frozen, eq=eq, slots=slots)
            kind.__dataclass_params__.frozen = frozen  # for classes that derive from it
            return kind

        return made if cls is None else made(cls)


def _add_methods(kind: Any, own: frozenset[str], *, frozen: bool, eq: bool, slots: bool) -> None:
    """Add the methods that the class does not define itself."""
    fields = dataclasses.fields(kind)
    names = [field.name for field in fields]
    methods = _compiled(kind, fields, frozen=frozen, eq=eq, slots=slots)
    methods["__repr__"] = _repr([field.name for field in fields if field.repr])
    if eq and not frozen:
        methods["__hash__"] = None
    if frozen and not kind.__dataclass_params__.frozen:  # the standard library writes them for classes with bases
        methods |= _frozen(kind, frozenset(names))
        if slots:
            methods |= {"__getstate__": _getstate(names), "__setstate__": _setstate(names)}
    for name, method in methods.items():
        if name not in own:
            if method is not None:
                method.__qualname__ = f"{kind.__qualname__}.{name}"
            setattr(kind, name, method)


def _compiled(
    kind: Any, fields: Sequence[dataclasses.Field[Any]], *, frozen: bool, eq: bool, slots: bool
) -> dict[str, Any]:
    """`__init__`, and `__eq__` and `__hash__` if they compare fields."""
    known: dict[str, Any] = {"_missing": dataclasses.MISSING, "_set": object.__setattr__}
    parameters, lines = ["self"], []
    by_name: list[str] = []
    for field in fields:
        name = field.name
        value, parameter = name, name
        if field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _missing else {name}" if field.init else f"_make_{name}()"
            parameter = f"{name}=_missing"
        elif field.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
            if not field.init:
                value = f"_default_{name}"
        elif not field.init:
            continue
        if field.init:
            (by_name if field.kw_only else parameters).append(parameter)
        if frozen and slots:
            known[f"_set_{name}"] = getattr(kind, name).__set__
            lines.append(f"_set_{name}(self, {value})")
        else:
            lines.append(f"_set(self, '{name}', {value})" if frozen else f"self.{name} = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters += ["*", *by_name] if by_name else []
    text = _function("__init__", parameters, lines or ["pass"])
    if eq:
        compared = [field for field in fields if field.compare]
        mine, others = (_tuple(of, compared) for of in ("self", "other"))
        same = [f"if other.__class__ is self.__class__: return {mine} == {others}", "return NotImplemented"]
        text += _function("__eq__", ["self", "other"], same)
        if frozen:
            hashed = [field for field in compared if field.hash is not False]
            text += _function("__hash__", ["self"], [f"return hash({_tuple('self', hashed)})"])
    made: dict[str, Any] = {}
    exec(text, {**known, "__name__": kind.__module__}, made)
    return made


def _function(name: str, parameters: Sequence[str], lines: Sequence[str]) -> str:
    return f"def {name}({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)


def _tuple(of: str, fields: Sequence[dataclasses.Field[Any]]) -> str:
    return f"({''.join(f'{of}.{field.name}, ' for field in fields)})"


def _repr(names: Sequence[str]) -> Callable[[Any], str]:
    @reprlib.recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807 (the name of the method)
        return f"{self.__class__.__qualname__}({', '.join([f'{name}={getattr(self, name)!r}' for name in names])})"

    return __repr__


def _frozen(kind: Any, names: frozenset[str]) -> dict[str, Any]:
    def refuse(self: Any, name: str, value: Any) -> None:
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def keep(self: Any, name: str) -> None:
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    return {"__setattr__": refuse, "__delattr__": keep}


def _getstate(names: Sequence[str]) -> Callable[[Any], list[Any]]:
    return lambda self: [getattr(self, name) for name in names]


def _setstate(names: Sequence[str]) -> Callable[[Any, Sequence[Any]], None]:
    def set_all(self: Any, values: Sequence[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    return set_all
