"""From a function object to its syntax tree, with the names it can see."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import operator
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from srcdiff.diagnostics import Problem, Refusal, Span
from srcdiff.source.told import Told, layers, told


@dataclass(frozen=True, eq=False, slots=True)
class Captured:
    """A function with its source."""

    function: types.FunctionType
    node: ast.FunctionDef | ast.Lambda
    file: str
    told: Told | None = None
    """What Numba was told about it, if it is compiled."""

    @property
    def name(self) -> str:
        return self.function.__name__ if self.function.__name__ != "<lambda>" else "function"


def plain_function(function: Any) -> types.FunctionType | None:
    """The Python function behind a function, a Numba dispatcher or one of our own objects."""
    return next((layer for layer in layers(function) if isinstance(layer, types.FunctionType)), None)


T = TypeVar("T")


def standing_for(function: Any, kind: type[T]) -> T | None:
    """What stands in a function's module in its place, if that is of this kind."""
    found: Any = sys.modules.get(getattr(function, "__module__", ""))
    code = getattr(function, "__code__", None)
    for step in code.co_qualname.split(".") if code is not None else ():
        found = getattr(found, step, None)
    return found if isinstance(found, kind) and getattr(found, "function", None) is function else None


def findable(function: Any) -> Any:
    """The function, which pickle finds by its name; behind an object of ours that has its name, as `loss.function`."""
    if isinstance(function, types.FunctionType) and standing_for(function, object) is not None:
        function.__qualname__ = f"{function.__code__.co_qualname}.function"
    return function


@functools.lru_cache(maxsize=256)
def _parsed(file: str, text: str) -> ast.Module:
    return ast.parse(text, file)


@functools.lru_cache(maxsize=256)
def _functions(file: str, text: str) -> dict[tuple[str, int], list[ast.AST]]:
    """The functions in the text by name and first line, where their decorators stand; all lambdas together."""
    found: dict[tuple[str, int], list[ast.AST]] = {}
    for node in ast.walk(_parsed(file, text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.setdefault((node.name, first), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", 0), []).append(node)
    return found


def _candidates(file: str, text: str, function: types.FunctionType) -> list[ast.FunctionDef | ast.Lambda]:
    code, functions = function.__code__, _functions(file, text)
    if code.co_name == "<lambda>":
        line = code.co_firstlineno
        near = [n for n in functions.get(("<lambda>", 0), []) if isinstance(n, ast.Lambda)]
        near = [n for n in near if n.lineno <= line <= (n.end_lineno or n.lineno) and _contains(n, function)]
        return [min(near, key=_extent)] if near else []  # a lambda may stand inside another
    found = functions.get((code.co_name, code.co_firstlineno), [])
    if any(isinstance(n, ast.AsyncFunctionDef) for n in found):
        raise _unreadable(function, "it is asynchronous", "SD104")
    return [n for n in found if isinstance(n, ast.FunctionDef)]


def _extent(node: ast.FunctionDef | ast.Lambda) -> tuple[int, int]:
    lines = (node.end_lineno or 0) - node.lineno
    return lines, (node.end_col_offset or 0) - node.col_offset


def _contains(node: ast.Lambda, function: types.FunctionType) -> bool:
    """Whether the lambda's body holds every place that the code speaks of."""
    body, places = node.body, set()
    for start, end, column, end_column in function.__code__.co_positions():
        if (
            start is not None
            and end is not None
            and column is not None
            and end_column is not None
            and column != end_column
        ):
            places.add(((start, column), (end, end_column)))
    whole = ((body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0))
    return bool(places) and all(whole[0] <= begin and finish <= whole[1] for begin, finish in places)


def _unreadable(function: Any, reason: str, code: str = "SD103") -> Refusal:
    name = function.__code__.co_qualname if isinstance(function, types.FunctionType) else repr(function)
    return Refusal(Problem(code, f"the source of `{name}` cannot be read: {reason}", None))


def capture(function: Any) -> Captured:
    """Find the syntax tree of the function in its file (or notebook cell)."""
    plain = plain_function(function)
    if plain is None:
        raise _unreadable(function, "it is not a Python function")
    captured, by_numba = _captured(plain), told(function)
    return captured if by_numba is None else replace(captured, told=by_numba)


@functools.lru_cache(maxsize=512)
def _captured(plain: types.FunctionType) -> Captured:
    file = plain.__code__.co_filename
    for is_kind, what in ((inspect.isgeneratorfunction, "a generator"), (inspect.iscoroutinefunction, "asynchronous")):
        if is_kind(plain):
            span = Span(file, plain.__code__.co_firstlineno, 0, 3, plain.__name__)
            raise Refusal(Problem("SD104", f"`{plain.__name__}` is {what}", span))
    lines = linecache.getlines(file, plain.__globals__)
    if not lines:
        raise _unreadable(plain, f"`{file}` has no text")
    try:
        found = _candidates(file, "".join(lines), plain)
    except SyntaxError as error:
        raise _unreadable(plain, f"`{file}` has changed: {error}") from None
    if len(found) != 1:
        reason = "its line does not define it any more" if not found else "several functions stand in its place"
        raise _unreadable(plain, reason)
    if not _is_what_runs(plain, file, "".join(lines), found[0]):
        raise _unreadable(plain, f"`{file}` has changed since the function was defined")
    return Captured(plain, found[0], file)


def _is_what_runs(function: types.FunctionType, file: str, text: str, node: ast.AST) -> bool:
    """Whether the text compiles to the code of the function; not asked of `assert`, which pytest rewrites.

    Nor of srcdiff's own library, whose modules are long and do not change.
    """
    if str(function.__module__).startswith("srcdiff.library") or any(isinstance(n, ast.Assert) for n in ast.walk(node)):
        return True
    code = function.__code__
    here = _codes(file, text).get((code.co_qualname, code.co_firstlineno), [])
    return not here or any(c.co_code == code.co_code and c.co_names == code.co_names for c in here)


@functools.lru_cache(maxsize=64)
def _codes(file: str, text: str) -> dict[tuple[str, int], list[types.CodeType]]:
    """The code of every function in the text, by its name and line; there may be several lambdas in one."""
    found: dict[tuple[str, int], list[types.CodeType]] = {}
    stack = [compile(text, file, "exec", dont_inherit=True)]
    while stack:
        code = stack.pop()
        found.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
        stack += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return found


def outside_variable(function: types.FunctionType, name: str) -> tuple[dict[str, Any] | types.CellType, str] | None:
    """Where the function finds a name that is not its own: a closure cell, its globals, or the builtins."""
    code = function.__code__
    if name in code.co_freevars and function.__closure__ is not None:
        return function.__closure__[code.co_freevars.index(name)], name
    if name in function.__globals__:
        return function.__globals__, name
    if hasattr(builtins, name):
        return builtins.__dict__, name
    return None


def reader_of(place: Mapping[str, Any] | types.CellType, name: str) -> Callable[[], Any]:
    """What reads a variable anew whenever it is called."""
    if isinstance(place, types.CellType):
        return functools.partial(getattr, place, "cell_contents")
    return functools.partial(operator.getitem, place, name)


def read_variable(place: Mapping[str, Any] | types.CellType, name: str) -> Any:
    return reader_of(place, name)()
