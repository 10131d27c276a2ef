"""Functions that bridges write around the user's function: weighted sums, tangents, and arguments in structures."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import inspect
import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from srcdiff.api.derivatives import Derivative
from srcdiff.api.modes import jvp
from srcdiff.api.reverse import grad
from srcdiff.diagnostics import DifferentiationError
from srcdiff.frontend.source.capture import plain_function

Function = Callable[..., Any]
_FILE = "<srcdiff.bridges "


def function_of(text: str, name: str, names: dict[str, Any]) -> Function:
    """The function of a text that srcdiff can read again.

    >>> f = function_of("def f(x):\\n    return f(x) + 1.0\\n", "f", {"f": lambda x: 2.0 * x})
    >>> f(3.0)
    7.0
    """
    file = f"{_FILE}{name} {hashlib.sha256(text.encode()).hexdigest()[:12]}>"  # one file, one text
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    defined: dict[str, Function] = {}  # not in `names`: the user's function may be called `f`, as it is called there
    exec(compile(text, file, "exec"), names, defined)
    return defined[name]


def weighted(f: Function, name: str, count: int, numbers: Sequence[bool], *, as_tuple: bool) -> Function:
    """The sum of the results of `f`, each multiplied by an adjoint: its gradient is the pullback.

    `f` takes `count` arguments. `numbers` says which results are numbers.
    """
    args, bars = _names("a", count), _names("bar", len(numbers))
    results = [f"results[{k}]" for k in range(len(bars))] if as_tuple else ["results"]
    terms = [
        f"{one} * {bar}" if number else f"np.sum({one} * {bar})"
        for one, bar, number in zip(results, bars, numbers, strict=True)
    ]
    text = (
        f"def {name}({', '.join([*args, *bars])}):\n"
        f"    results = f({', '.join(args)})\n"
        f"    return {' + '.join(terms)}\n"
    )
    return function_of(text, name, {"f": f, "np": np})


def pullback(f: Function, name: str, count: int, active: Sequence[int]) -> Function:
    """The gradient of `f` by some of its arguments, as a function that returns a tuple."""
    args = ", ".join(_names("a", count))
    wrt = "".join(f"'{f.__code__.co_varnames[k]}', " for k in active)
    return function_of(f"def {name}({args}):\n    return grad(f, wrt=({wrt}))({args})\n", name, {"f": f, "grad": grad})


def tangent(f: Function, name: str, count: int, active: Sequence[int]) -> Function:
    """The directional derivative of `f`: a function of its arguments, and of tangents of some of them."""
    args, dots = _names("a", count), _names("dot", len(active))
    by_place = dict(zip(active, dots, strict=True))
    tangents = "".join(f"{by_place.get(k, 'None')}, " for k in range(count))
    text = (
        f"def {name}({', '.join([*args, *dots])}):\n"
        f"    return jvp(f, ({''.join(f'{a}, ' for a in args)}), ({tangents}))[1]\n"
    )
    return function_of(text, name, {"f": f, "jvp": jvp})


def flattened(f: Function, name: str, call: Sequence[str], count: int, results: Sequence[str] = ()) -> Function:
    """`f` as a function of `count` numbers and arrays, from the expressions of its arguments: `{'w': a0, 'b': a1}`.

    It returns a tuple of `results`, if these are given: expressions of the parts of `result`.
    """
    args = ", ".join(_names("a", count))
    body = f"    result = f({', '.join(call)})\n"
    returned = f"({''.join(f'{one}, ' for one in results)})" if results else "result"
    return function_of(f"def {name}({args}):\n{body}    return {returned}\n", name, {"f": f, **_classes})


def expressions(bound: inspect.BoundArguments, leaves: list[Any]) -> Iterator[str]:
    """The arguments as expressions of the leaves, `{'w': a0, 'b': a1}`; the leaves are added to the list."""
    for name, value in bound.arguments.items():
        match bound.signature.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                for k, item in enumerate(value):
                    yield expression(f"{name}[{k}]", item, leaves)
            case inspect.Parameter.VAR_KEYWORD:
                for key, item in value.items():
                    yield f"{key}={expression(key, item, leaves)}"
            case inspect.Parameter.KEYWORD_ONLY:
                yield f"{name}={expression(name, value, leaves)}"
            case _:
                yield expression(name, value, leaves)


def expression(name: str, value: Any, leaves: list[Any]) -> str:
    """An argument as an expression of the leaves."""
    if type(value) in (tuple, list):
        items = [expression(f"{name}[{k}]", item, leaves) for k, item in enumerate(value)]
        comma = "," if len(items) == 1 else ""
        return f"({', '.join(items)}{comma})" if type(value) is tuple else f"[{', '.join(items)}]"
    if type(value) is dict:
        if not all(type(key) in (str, int) for key in value):
            raise TypeError(f"the keys of `{name}` must be strings or integers")
        pairs = [f"{key!r}: {expression(f'{name}[{key!r}]', item, leaves)}" for key, item in value.items()]
        return f"{{{', '.join(pairs)}}}"
    fields = _fields_of(name, value)
    if fields is not None:
        parts = [f"{one}={expression(f'{name}.{one}', getattr(value, one), leaves)}" for one in fields]
        return f"{_class_name(type(value))}({', '.join(parts)})"
    leaves.append((name, value))
    return f"a{len(leaves) - 1}"


_classes: dict[str, type] = {}
"""The classes of structures, by the names that written functions use for them."""


def _class_name(kind: type) -> str:
    known = next((name for name, one in _classes.items() if one is kind), None)
    if known is None:
        known = f"{identifier(kind.__name__)}_{len(_classes)}"
        _classes[known] = kind
    return known


def _fields_of(name: str, value: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass or a named tuple, which its class takes by name; None for anything else."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        if not all(field.init for field in fields):
            raise TypeError(
                f"`{name}` is a {type(value).__name__}, which has fields that its constructor does not take"
            )
        return tuple([field.name for field in fields])
    return value._fields if isinstance(value, tuple) and hasattr(value, "_fields") else None


def place_of(f: Any) -> str:
    """The user's function and its line, for messages."""
    while True:
        plain: Any = plain_function(f.function if isinstance(f, Derivative) else f)
        code = plain.__code__
        if not code.co_filename.startswith(_FILE):
            return f"`{code.co_qualname}`, {code.co_filename}:{code.co_firstlineno}"
        f = plain.__globals__["f"]


@contextlib.contextmanager
def noted(f: Function, caller: str) -> Iterator[None]:
    """Exceptions get a note with the user's function and its line: compiled code is in no traceback.

    An exception that passes several places, such as a constraint and the optimiser itself, keeps the first note.
    """
    by = f"called by {caller}"
    try:
        yield
    except DifferentiationError:
        raise  # it shows the line
    except Exception as error:
        if not any(note.endswith(by) for note in getattr(error, "__notes__", ())):
            error.add_note(f"in {place_of(f)}, {by}")
        raise


def reduced(wrapper: Any, f: Function, made: Callable[[Function], Any]) -> Any:
    """What `__reduce__` of a wrapper returns: its name if it is a decorated function, else how it is made again."""
    module = inspect.getmodule(f)
    return f.__qualname__ if getattr(module, f.__name__, None) is wrapper else (made, (f,))


def snapshot(value: Any) -> Any:
    """A value as it is now."""
    return value.copy() if isinstance(value, np.ndarray) else value


def is_same(a: Any, b: Any) -> bool:
    """Whether a value from outside is what it was."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        floats = isinstance(a, np.ndarray) and a.dtype.kind == "f"
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=floats)
    return type(a) is type(b) and bool(a == b or (a != a and b != b))


def identifier(name: str) -> str:
    """A name for generated code, for that of any function."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name.replace("<lambda>", "function"))


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}{k}" for k in range(count)]
