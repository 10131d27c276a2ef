"""Names for objects that srcdiff does not support, and what to write instead of them."""

from __future__ import annotations

import abc
import functools
import sys
import sysconfig
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

_OUTSIDE = "read the numbers that you need outside the function, and pass them in"
_A_DICTIONARY = "convert it to a plain dictionary: `dict(...)`"
_AN_ARRAY = "convert it to an array: `np.asarray(...)`"
_RANDOM = "draw the numbers outside the function and pass them in"

_BEFORE = "call it outside the function, and pass in its result"

_OF_CLASSES: dict[str, str] = {
    "builtins.set": "convert it to a tuple: `tuple(...)`",
    "builtins.frozenset": "convert it to a tuple: `tuple(...)`",
    "builtins.tuple": "convert it to a plain tuple: `tuple(...)`",
    "builtins.list": "convert it to a plain list: `list(...)`",
    "builtins.float": "convert it to a plain float: `float(...)`",
    "builtins.int": "convert it to a plain integer: `int(...)`",
    "builtins.dict": _A_DICTIONARY,
    "srcdiff.library.clocks.TimeOfDay": "read the time outside the function, and pass it in",
    "collections.defaultdict": _A_DICTIONARY,
    "collections.Counter": _A_DICTIONARY,
    "collections.OrderedDict": _A_DICTIONARY,
    "array.array": _AN_ARRAY,
    "builtins.memoryview": _AN_ARRAY,
    "builtins.bytearray": _AN_ARRAY,
    "builtins.bytes": "convert it to an array: `np.frombuffer(...)`",
    "builtins.generator": "make a list of it, outside the function: `list(...)`",
    "numpy.poly1d": "evaluate it by its coefficients: `np.polyval(p.coeffs, x)`",
    "numpy.polynomial": "evaluate it by its coefficients: `np.polyval(p.coef[::-1], x)`",
    "fractions": "convert it to a float: `float(...)`",
    "decimal": "convert it to a float: `float(...)`",
    "logging": "log outside the function, or use `print`",
    "random": _RANDOM,
    "numpy.random": _RANDOM,
    "numpy.ma": "convert it to a plain array: `.filled(...)`",
    "numpy.ndarray": "convert it to a plain array: `np.asarray(...)`",
    "numpy.matrix": "convert it to a plain array: `np.asarray(...)`",
    "scipy.sparse": "convert it to another format: `.tocsr()`",
    "scipy.interpolate": "use `np.interp`, `CubicSpline` or `make_interp_spline`",
    "pandas": "convert it to an array: `.to_numpy()`, or use `srcdiff.bridges.arrays.accepting`",
    "xarray": "convert it to an array: `.to_numpy()`, or use `srcdiff.bridges.arrays.accepting`",
    "torch": "convert it to an array: `.numpy()`",
}
"""Replacements for instances, by their class or by the module that defines the class."""

_TO_MAKE: dict[str, str] = {
    "builtins.set": "use a tuple or a list",
    "builtins.frozenset": "use a tuple or a list",
    "collections.Counter": "count in an array or a list",
    "fractions": "use floats",
    "decimal": "use floats",
    "itertools.zip_longest": "write a loop over `range`",
    "itertools.groupby": "write a loop",
    "builtins.bytes": "use an array of integers",
    "threading": "call the function itself, and let `parallel=True` use all cores",
    "scipy.sparse": "use arrays, or make a `csr_array` of its parts",
    "builtins.type": "use `isinstance`",
}
"""Replacements for calls of a class, if the advice for instances does not fit."""

_FUNCTIONS: dict[str, str] = {
    "builtins.iter": "write a `for` loop",
    "builtins.next": "write a `for` loop with a `break`",
    "builtins.open": "read the numbers outside the function and pass them in",
    "builtins.input": "read the numbers outside the function and pass them in",
    "builtins.eval": "write the expression itself",
    "builtins.exec": "write the statements themselves",
    "builtins.globals": "write the names themselves",
    "builtins.locals": "write the names themselves",
    "builtins.id": "compare objects with `is`",
    "builtins.hash": _BEFORE,
    "builtins.dir": _BEFORE,
    "builtins.bin": _BEFORE,
    "builtins.hex": _BEFORE,
    "builtins.oct": _BEFORE,
    "builtins.ord": _BEFORE,
    "builtins.chr": _BEFORE,
    "io.open": "read the numbers outside the function and pass them in",
    "numpy.load": "read the numbers outside the function and pass them in",
    "numpy.loadtxt": "read the numbers outside the function and pass them in",
    "numpy.genfromtxt": "read the numbers outside the function and pass them in",
    "numpy.fromfile": "read the numbers outside the function and pass them in",
    "numpy.save": "return the array, and save it outside the function",
    "numpy.savetxt": "return the array, and save it outside the function",
    "numpy.savez": "return the array, and save it outside the function",
    "sys.exit": "raise an exception",
    "os": _BEFORE,
    "json": _BEFORE,
    "random": _RANDOM,
    "time": _BEFORE,
    "datetime": _BEFORE,
    "scipy.integrate": "write the integration steps as a loop, or declare a rule with `srcdiff.rule_for`",
    "scipy.optimize": "write the iteration as a loop, or declare a rule with `srcdiff.rule_for`",
    "logging": "log outside the function, or use `print`",
}
"""The replacement for a function of Python or of a library."""


_FUNCTION_TYPES = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.MethodWrapperType,
    np.ufunc,
)


def _found(table: Mapping[str, str], module: str, name: str) -> str:
    """The row of a class or function, or else of the innermost module around it that has a row."""
    place = f"{module}.{name}"
    while place:
        if place in table:
            return table[place]
        place = place.rpartition(".")[0]
    return ""


def _home(thing: Any) -> tuple[str, str]:
    """The module and the qualified name of an object; a built-in method has the module of its class."""
    owner = getattr(thing, "__objclass__", None) or getattr(thing, "__self__", None)
    class_ = owner if isinstance(owner, type) else type(owner)
    module = getattr(thing, "__module__", None) or ("" if owner is None else class_.__module__)
    return module, getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None) or ""


@functools.cache
def _installed() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def is_installed(file: str) -> bool:
    """Whether the file belongs to the standard library or an installed package, not to the user."""
    return file.startswith((*_installed(), "<frozen"))


def is_own(class_: type) -> bool:
    """Whether the user can change the class."""
    file = getattr(sys.modules.get(class_.__module__), "__file__", None)
    if file is None:
        return class_.__module__ not in sys.builtin_module_names and class_.__module__ != "builtins"
    return not is_installed(file)


def named(value: Any) -> str:
    """The kind of a value, for messages."""
    match value:
        case None:
            return "`None`"
        case str():
            return "a string"
        case types.ModuleType():
            return f"the module `{value.__name__}`"
        case type():
            return f"the class `{value.__name__}`"
        case bool():
            return "a boolean"
        case int() if type(value) is int or not is_own(type(value)):
            return "an integer"
        case _ if type(value) in (float, complex, tuple, list, dict, set):
            return f"a {type(value).__name__}"
        case types.FunctionType() | types.BuiltinFunctionType():
            return f"the function `{value.__name__}`"
        case types.MethodType():
            return f"the method `{value.__qualname__}`"
    own_words: str = getattr(type(value), "__srcdiff_words__", "")
    return own_words or f"an instance of `{type(value).__name__}`"


_UNUSUAL = "`{}` {}: write a class with plain attributes, and convert"
_INSTEAD_OF_BASES = {
    np.ndarray: "use a plain array, or a class that keeps it in an attribute: `self.values = np.asarray(values)`",
    float: "use a plain float, or a class that keeps it in an attribute: `self.value = float(value)`",
    int: "use a plain integer, or a class that keeps it in an attribute: `self.value = int(value)`",
    list: "use a plain list, or a class that keeps it in an attribute: `self.items = list(items)`",
    dict: "use a plain dictionary, or a class that keeps it in an attribute: `self.items = dict(items)`",
}
"""What to write instead of a class that inherits from another one."""
_WITHOUT_STATE = ("abc", "typing", "collections.abc")
"""The modules whose classes say something about classes, and have no attributes."""
_WRITTEN_IN_PYTHON = 1 << 9
"""The flag of classes that were made by a `class` statement."""
_COMPILED = ("cython_function_or_method", "fused_cython_function", "fortran")
_ACCESS = ("__getattr__", "__getattribute__", "__setattr__", "__delattr__")


def _plainly(class_: type) -> str:
    """What keeps the instances of a user's class from being read, and what to write."""
    if not class_.__flags__ & _WRITTEN_IN_PYTHON:
        return f"`{class_.__name__}` is compiled and has no Python source: write the class in Python"
    for base, instead in _INSTEAD_OF_BASES.items():
        if issubclass(class_, base):
            return f"`{class_.__name__}` inherits from `{_spelled(base)}`: {instead}"
    if hasattr(class_, "__array__"):
        return _UNUSUAL.format(class_.__name__, "defines `__array__`, so that NumPy takes its instances for arrays")
    for base in class_.__mro__[:-1]:
        if found := next((name for name in _ACCESS if isinstance(vars(base).get(name), types.FunctionType)), ""):
            where = "defines" if base is class_ else f"inherits from `{base.__name__}`, which defines"
            return _UNUSUAL.format(class_.__name__, f"{where} `{found}`")
    above = (b for b in class_.__mro__[:-1] if not is_own(b) and b.__module__ not in _WITHOUT_STATE)
    if (base_of_others := next(above, None)) is not None:
        return _UNUSUAL.format(class_.__name__, f"inherits from `{_spelled(base_of_others)}`")
    if type(class_) not in (type, abc.ABCMeta):
        return _UNUSUAL.format(class_.__name__, f"has the metaclass `{type(class_).__name__}`")
    entries = {n: e for base in reversed(class_.__mro__) for n, e in vars(base).items() if n[:2] != "__"}
    hiding = [n for n, e in entries.items() if isinstance(e, property) or hasattr(type(e), "__set__")]
    if hiding:
        which = ", ".join(f"`{n}`" for n in hiding)
        return f"`{class_.__name__}` has {which} as properties or descriptors: keep the values under other names"
    return f"write `{class_.__name__}` as a class whose instances are their attributes"


def _spelled(class_: type) -> str:
    """The name of a class with its module."""
    return f"{class_.__module__}.{class_.__name__}".removeprefix("builtins.")


def _outside(class_: type) -> str:
    return f"its class defines `__getattr__`: {_OUTSIDE}" if hasattr(class_, "__getattr__") else _OUTSIDE


def instead_of(class_: type) -> str:
    """The replacement for an instance of a class."""
    for base in class_.__mro__[:-1]:
        if found := _found(_OF_CLASSES, *_home(base)):
            return found
    if hasattr(class_, "__array__"):
        own = f", or define `{class_.__name__}.__srcdiff_array__`" if is_own(class_) else ""
        return f"{_AN_ARRAY}{own}"
    return _plainly(class_) if is_own(class_) else _outside(class_)


def array_of(dtype: np.dtype[Any]) -> tuple[str, str]:
    """A name for an array of an unsupported dtype, and what to pass instead."""
    if dtype.fields is not None:
        return "an array of records", "pass each field as an array: `a['name']`"
    if dtype == np.uint64:
        return "an array of uint64", "pass signed integers: `.astype(np.int64)`"
    kinds = {"U": "strings", "S": "bytes", "O": "objects", "M": "dates", "m": "durations"}
    known = {"U": "pass a list of the strings: `.tolist()`"}
    if dtype.type is np.void:  # other packages' numbers have the kind "V", too
        kinds["V"], known["V"] = "records", "pass each field as an array: `a['name']`"
    return f"an array of {kinds.get(dtype.kind, dtype)}", known.get(dtype.kind, "pass numbers: `.astype(float)`")


def is_plain(value: Any) -> bool:
    """Whether the value is callable or an instance of a basic Python type."""
    return value is None or isinstance(value, str | bytes | int | float | type | types.ModuleType) or callable(value)


def instead_of_attribute(value: Any) -> str:
    """The replacement for reading an attribute of a value."""
    if isinstance(value, type) or (callable(value) and not is_own(type(value))):
        return _outside(type(value))
    return instead_of(type(value))


def instead_of_call(target: Any) -> tuple[str, str]:
    """Why srcdiff cannot read a called object (empty if its name says enough), and what to write instead."""
    module, name = _home(target)
    if isinstance(target, type):
        made = _found(_TO_MAKE, module, name) or _found(_OF_CLASSES, module, name)
        known = made or (_plainly(target) if is_own(target) else "compute with numbers and arrays")
        return f"instances of the class `{target.__name__}` are not supported", known
    if isinstance(target, types.MethodType):
        message = f"`{name}` is a bound method"
        return message, f"pass the instance and call its method: `instance.{target.__name__}(...)`"
    if isinstance(target, functools._lru_cache_wrapper):
        return f"`{name}` is cached by `lru_cache`, which is not supported", "remove the decorator `lru_cache`"
    if not isinstance(target, _FUNCTION_TYPES) and type(target).__name__ not in _COMPILED:
        class_ = type(target)
        return f"{named(target)} is called, which is not supported", instead_of(class_)
    return "", _found(_FUNCTIONS, module, name)


def declared_as(function: str, count: int, keywords: Iterable[str] = (), *, can_be_called: bool = False) -> str:
    """The lines that declare a rule for a function, as the user calls it, of so many arguments and these keywords.

    >>> print(declared_as("special.j0", 1))
    declare a rule, with a Python function that computes the same:
    @srcdiff.rule_for(special.j0)
    def j0(x): ...
    or let the program call it as it is, with a derivative by differences:
    srcdiff.rule_for(special.j0)(srcdiff.external(special.j0, shape=(), differences="central"))
    """
    positional = ("x" if count == 1 else "xyzuvw"[k : k + 1] or f"x{k}" for k in range(count))
    names = ", ".join((*positional, *keywords))
    name = function.rpartition(".")[2]
    if can_be_called:
        adjoint = f"lambda {names}{', ' if names else ''}out, out_bar: ..."
        head, rule, body = "declare its derivative:", f"{function}, adjoint={adjoint}", f"return {function}({names})"
    else:
        head, rule, body = "declare a rule, with a Python function that computes the same:", function, "..."
    lines = f"{head}\n@srcdiff.rule_for({rule})\ndef {name}({names}): {body}"
    if can_be_called:
        return lines
    return f"{lines}\nor {by_differences(function)}"


def by_differences(function: str, before: str = "") -> str:
    """The line after which programs call a function of numbers as it is. `before` is for imports."""
    line = f'{before}srcdiff.rule_for({function})(srcdiff.external({function}, shape=(), differences="central"))'
    return f"let the program call it as it is, with a derivative by differences:\n{line}"
