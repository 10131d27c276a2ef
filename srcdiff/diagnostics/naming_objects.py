"""What to call the things that srcdiff does not read, and what to write instead of them."""

from __future__ import annotations

import functools
import sys
import sysconfig
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

_OUTSIDE = "read the numbers that you need outside, and pass them in"
_A_DICTIONARY = "make a plain dictionary of it: `dict(...)`"
_RANDOM = "draw them outside and pass them in"

_OF_CLASSES: dict[str, str] = {
    "builtins.set": "make a tuple of it: `tuple(...)`",
    "builtins.frozenset": "make a tuple of it: `tuple(...)`",
    "builtins.complex": "use two floats, `.real` and `.imag`",
    "builtins.tuple": "make a plain tuple of it: `tuple(...)`",
    "builtins.list": "make a plain list of it: `list(...)`",
    "builtins.float": "make a plain float of it: `float(...)`",
    "builtins.int": "make a plain integer of it: `int(...)`",
    "builtins.dict": _A_DICTIONARY,
    "collections.deque": "make a list of it: `list(...)`",
    "collections.defaultdict": _A_DICTIONARY,
    "collections.Counter": _A_DICTIONARY,
    "collections.OrderedDict": _A_DICTIONARY,
    "fractions": "make a float of it: `float(...)`",
    "decimal": "make a float of it: `float(...)`",
    "logging": "log outside of the function, or use `print`",
    "random": _RANDOM,
    "numpy.random": _RANDOM,
    "numpy.ma": "make a plain array of it: `.filled(...)`",
    "numpy.ndarray": "make a plain array of it: `np.asarray(...)`",
    "numpy.matrix": "make a plain array of it: `np.asarray(...)`",
    "scipy.sparse": "make an array of it: `.toarray()`",
    "scipy.interpolate": "use `np.interp`, or interpolate in a function of your own",
    "pandas": "make an array of it: `.to_numpy()`",
    "xarray": "make an array of it: `.to_numpy()`",
    "torch": "make an array of it: `.numpy()`",
}
"""What to write instead of an instance: by its class, or by the module where that is defined."""

_TO_MAKE: dict[str, str] = {
    "builtins.set": "use a tuple or a list",
    "builtins.frozenset": "use a tuple or a list",
    "collections.deque": "use a list",
    "collections.defaultdict": "write a dictionary: `{key: value}`",
    "collections.Counter": "count in an array or a list",
    "fractions": "use floats",
    "decimal": "use floats",
    "scipy.sparse": "use arrays, or loops over the elements that are not zero",
    "builtins.type": "use `isinstance`",
}
"""What to write instead of a call of the class, where that is something else."""

_FUNCTIONS: dict[str, str] = {
    "builtins.iter": "write a `for` loop",
    "builtins.next": "write a `for` loop, and leave it with `break`",
    "builtins.open": "read outside and pass the numbers in",
    "builtins.input": "read outside and pass the numbers in",
    "builtins.getattr": "write the attribute by its name: `x.name`",
    "builtins.setattr": "make a new instance: `dataclasses.replace(...)`",
    "builtins.eval": "write the expression itself",
    "builtins.exec": "write the statements themselves",
    "builtins.vars": "name the fields one by one",
    "random": _RANDOM,
    "time": "call it outside, and pass in what it gives",
    "datetime": "call it outside, and pass in what it gives",
    "scipy.integrate": "write the steps of the integration as a loop, or give it a rule by `srcdiff.custom_rule`",
    "scipy.optimize": "write the iteration as a loop, or give it a rule by `srcdiff.custom_rule`",
    "logging": "log outside of the function, or use `print`",
}
"""What to write instead of a function of Python's or of a library."""


_FUNCTION_TYPES = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.MethodWrapperType,
    np.ufunc,
)


def _found(table: Mapping[str, str], module: str, name: str) -> str:
    """The row of a class or function, or of the module that it comes from, or of one around that."""
    place = f"{module}.{name}"
    while place:
        if place in table:
            return table[place]
        place = place.rpartition(".")[0]
    return ""


def _home(thing: Any) -> tuple[str, str]:
    """The module that something comes from, and its name there; a method that is built in has that of its class."""
    owner = getattr(thing, "__objclass__", None) or getattr(thing, "__self__", None)
    class_ = owner if isinstance(owner, type) else type(owner)
    module = getattr(thing, "__module__", None) or ("" if owner is None else class_.__module__)
    return module, getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None) or ""


@functools.cache
def _installed() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def is_installed(file: str) -> bool:
    """Whether it is a file of Python's library or of a package, and not the user's."""
    return file.startswith((*_installed(), "<frozen"))


def is_own(class_: type) -> bool:
    """Whether a class is one that the user can change."""
    file = getattr(sys.modules.get(class_.__module__), "__file__", None)
    if file is None:
        return class_.__module__ not in sys.builtin_module_names and class_.__module__ != "builtins"
    return not is_installed(file)


def named(value: Any) -> str:
    """What it is, in the user's words."""
    match value:
        case None:
            return "`None`"
        case str():
            return "a text"
        case types.ModuleType():
            return f"the module `{value.__name__}`"
        case type():
            return f"the class `{value.__name__}`"
        case bool():
            return "a truth value"
        case int():
            return "an integer"
        case float() | complex() | tuple() | list() | dict() | set():
            return f"a {type(value).__name__}"
        case types.FunctionType() | types.BuiltinFunctionType():
            return f"the function `{value.__name__}`"
        case types.MethodType():
            return f"the method `{value.__qualname__}`"
    return f"an instance of `{type(value).__name__}`"


def instead_of(class_: type) -> str:
    """What to write instead of an instance of a class."""
    for base in class_.__mro__[:-1]:
        if found := _found(_OF_CLASSES, *_home(base)):
            return found
    return f"make `{class_.__name__}` a dataclass" if is_own(class_) else _OUTSIDE


def array_of(dtype: np.dtype[Any]) -> tuple[str, str]:
    """What an array is whose elements srcdiff has no type for, and what to pass instead."""
    if dtype.fields is not None:
        return "an array of records", "pass each field as an array: `a['name']`"
    if dtype == np.uint64:
        return "an array of uint64", "integers have 64 bits with a sign: pass it as `.astype(np.int64)`"
    kinds = {"U": "texts", "S": "bytes", "O": "objects", "M": "dates", "m": "durations", "V": "records"}
    known = "pass each field as an array: `a['name']`" if dtype.kind == "V" else "pass numbers: `.astype(float)`"
    return f"an array of {kinds.get(dtype.kind, dtype)}", known


def is_plain(value: Any) -> bool:
    """Whether it is one of Python's own kinds, or a function, and nothing that somebody has defined a class for."""
    return value is None or isinstance(value, str | bytes | int | float | type | types.ModuleType) or callable(value)


def instead_of_attribute(value: Any) -> str:
    """What to write instead of reading an attribute of something."""
    if isinstance(value, type) or (callable(value) and not is_own(type(value))):
        return _OUTSIDE
    return instead_of(type(value))


def instead_of_call(target: Any) -> tuple[str, str]:
    """What something is that is called and not read, if its name does not say so, and what to write instead."""
    module, name = _home(target)
    if (module, name) == ("numba.misc.special", "prange"):
        return "`prange` lets Numba share the iterations out to threads, which srcdiff does not read", "write `range`"
    if isinstance(target, type):
        made = _found(_TO_MAKE, module, name) or _found(_OF_CLASSES, module, name)
        known = made or (
            f"make `{target.__name__}` a dataclass" if is_own(target) else "compute with numbers and arrays"
        )
        return f"`{target.__name__}` is a class whose instances srcdiff does not read", known
    if isinstance(target, types.MethodType):
        message = f"`{name}` is a method without its instance"
        return message, f"pass the instance, and call the method of that: `instance.{target.__name__}(...)`"
    if isinstance(target, functools._lru_cache_wrapper):
        return f"`{name}` has a cache, which srcdiff does not read", "leave out `lru_cache`"
    if not isinstance(target, _FUNCTION_TYPES):
        class_ = type(target)
        return f"{named(target)} is called, which srcdiff does not read", instead_of(class_)
    return "", _found(_FUNCTIONS, module, name)
