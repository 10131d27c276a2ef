"""Functions that bridges write around the user's function: weighted sums, tangents, and arguments in structures."""

from __future__ import annotations

import hashlib
import linecache
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.api.derivatives import Derivative, grad
from srcdiff.api.modes import jvp
from srcdiff.frontend.source.capture import plain_function

Function = Callable[..., Any]
_FILE = "<srcdiff.bridges "


def function_of(text: str, name: str, names: dict[str, Any]) -> Function:
    """The function of a text that srcdiff can read again."""
    file = f"{_FILE}{name} {hashlib.sha256(text.encode()).hexdigest()[:12]}>"  # one file, one text
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    made: Function = names[name]
    return made


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


def flattened(f: Function, name: str, call: Sequence[str], count: int) -> Function:
    """`f` as a function of `count` numbers and arrays, from the expressions of its arguments: `{'w': a0, 'b': a1}`."""
    args = ", ".join(_names("a", count))
    return function_of(f"def {name}({args}):\n    return f({', '.join(call)})\n", name, {"f": f})


def place_of(f: Any) -> str:
    """The user's function and its line, for messages."""
    while True:
        plain: Any = plain_function(f.function if isinstance(f, Derivative) else f)
        code = plain.__code__
        if not code.co_filename.startswith(_FILE):
            return f"`{code.co_qualname}`, {code.co_filename}:{code.co_firstlineno}"
        f = plain.__globals__["f"]


def identifier(name: str) -> str:
    """A name for generated code, for that of any function."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name.replace("<lambda>", "function"))


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}{k}" for k in range(count)]
