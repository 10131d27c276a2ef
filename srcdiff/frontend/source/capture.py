"""From a function object to its syntax tree, and the names in its scope."""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import inspect
import linecache
import operator
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from srcdiff.diagnostics import Problem, Refusal, Span
from srcdiff.diagnostics.span import SHARED
from srcdiff.frontend.source.bound_methods import method_behind, opened
from srcdiff.frontend.source.matches import without_matches
from srcdiff.frontend.source.numba_options import Told, layers, told
from srcdiff.quick_dataclasses import dataclass

WRITTEN_FOR: dict[str, str] = {}
"""The file names of generated functions that are in no file, and the files that they were generated from."""


@dataclass(frozen=True, eq=False, slots=True)
class Captured:
    """A function with its source."""

    function: types.FunctionType
    code: types.CodeType
    """The code object that the syntax tree belongs to. The code of a function can be replaced."""
    node: ast.FunctionDef | ast.Lambda
    file: str
    told: Told | None = None
    """Its Numba options, if Numba compiles it."""
    method: Any = None
    """The bound method that the function replaces: see bound_methods.py."""
    instance: str = ""
    """The name that holds the instance of the method."""

    @property
    def name(self) -> str:
        return self.function.__name__ if self.function.__name__ != "<lambda>" else "function"

    @property
    def span(self) -> Span:
        """The place of the definition of the function."""
        return Span(self.file, self.node.lineno, self.node.col_offset, self.node.col_offset + 3, self.name)


def plain_function(function: Any) -> types.FunctionType | None:
    """The Python function behind a function, a Numba dispatcher, a bound method or an object of srcdiff."""
    found = next((layer for layer in layers(function) if isinstance(layer, types.FunctionType)), None)
    method = method_behind(function) if found is None else None
    if method is None or not isinstance(method.__func__, types.FunctionType):
        return found
    captured = capture(method.__func__)
    if not (captured.node.args.posonlyargs or captured.node.args.args):
        return None  # the instance is one of its `*args`
    made = opened(method, captured.node, captured.file)
    _METHODS[made.function] = Captured(
        made.function, made.function.__code__, made.node, captured.file, captured.told, captured.function, made.instance
    )
    return made.function


_METHODS: weakref.WeakKeyDictionary[types.FunctionType, Captured] = weakref.WeakKeyDictionary()
"""Functions that replace bound methods, with the syntax trees of the methods."""


T = TypeVar("T")


def standing_for(function: Any, kind: type[T]) -> T | None:
    """The object under the function's name in its module, if it is of this kind."""
    found: Any = sys.modules.get(getattr(function, "__module__", ""))
    code = getattr(function, "__code__", None)
    for step in code.co_qualname.split(".") if code is not None else ():
        found = getattr(found, step, None)
    return found if isinstance(found, kind) and getattr(found, "function", None) is function else None


def findable(function: Any) -> Any:
    """The function, if pickle finds it by its name, or the object of srcdiff with its name, as `loss.function`."""
    if isinstance(function, types.FunctionType) and standing_for(function, object) is not None:
        function.__qualname__ = f"{function.__code__.co_qualname}.function"
    return function


@functools.lru_cache(maxsize=256)
def _parsed(file: str, text: str) -> ast.Module:
    tree = without_matches(ast.parse(text, file))
    if "__" in text:
        _PrivateNames().visit(tree)
    return tree


class _PrivateNames(ast.NodeVisitor):
    """Mangles private names, as Python does: `self.__w` in `Model` is `self._Model__w`."""

    def __init__(self) -> None:
        self.prefix = ""

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, name = self.prefix, node.name.lstrip("_")
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self.prefix = f"_{name}" if name else ""
        for part in node.body:
            self.visit(part)
        self.prefix = outer

    def generic_visit(self, node: ast.AST) -> None:
        match node:
            case ast.Name():
                node.id = self.full(node.id)
            case ast.Attribute():
                node.attr = self.full(node.attr)
            case ast.arg():
                node.arg = self.full(node.arg)
            case ast.keyword(arg=str() as name):
                node.arg = self.full(name)
            case ast.Global() | ast.Nonlocal():
                node.names = [self.full(name) for name in node.names]
        super().generic_visit(node)

    def full(self, name: str) -> str:
        is_private = name.startswith("__") and not name.endswith("__") and "." not in name
        return self.prefix + name if is_private and self.prefix else name


@functools.lru_cache(maxsize=256)
def _functions(file: str, text: str) -> dict[tuple[str, int], list[ast.AST]]:
    """The functions in the text by name and first line, including decorators. Lambdas share one name."""
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
        return [min(near, key=_extent)] if near else []  # lambdas may be nested
    found = functions.get((code.co_name, code.co_firstlineno), [])
    if any(isinstance(n, ast.AsyncFunctionDef) for n in found):
        raise Refusal(Problem("SD104", f"`{function.__name__}` is a coroutine function", first_line(function)))
    return [n for n in found if isinstance(n, ast.FunctionDef)]


def _extent(node: ast.FunctionDef | ast.Lambda) -> tuple[int, int]:
    lines = (node.end_lineno or 0) - node.lineno
    return lines, (node.end_col_offset or 0) - node.col_offset


def _contains(node: ast.Lambda, function: types.FunctionType) -> bool:
    """Whether the lambda's body contains all positions in the code."""
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


def _unreadable(function: types.FunctionType, reason: str, help_: str = "") -> Refusal:
    name = function.__code__.co_qualname
    return Refusal(
        Problem("SD103", f"the source of `{name}` cannot be read: {reason}", first_line(function), help=help_)
    )


def first_line(function: types.FunctionType) -> Span:
    """The place where a function was defined, from its code. The file may have changed since."""
    code = function.__code__
    return Span(code.co_filename, code.co_firstlineno, 0, 3, function.__name__)


def capture(function: Any) -> Captured:
    """Find the syntax tree of the function in its file or notebook cell, in the text that was compiled."""
    plain = plain_function(function)
    if plain is None:
        raise Refusal(Problem("SD103", f"`{function!r}` is not a Python function", None))  # it has no line
    if plain in _METHODS:
        return _METHODS[plain]
    captured: Captured = _captured(plain, plain.__code__)
    by_numba = told(function)
    return captured if by_numba is None else replace(captured, told=by_numba)


_FORGETTING: list[Callable[[], None]] = []


def forget_made() -> None:
    """Discard everything that was made from outside state, because that state has changed."""
    for forget in _FORGETTING:
        forget()


def made_once(make: Callable[..., Any]) -> Callable[..., Any]:
    """Cache the results of a function whose first argument is a function.

    A cached result keeps the function alive, and a closure may hold large objects, so that few results are kept.
    """
    of_few, of_many = functools.lru_cache(maxsize=16)(make), functools.lru_cache(maxsize=512)(make)
    _FORGETTING.extend((of_few.cache_clear, of_many.cache_clear))

    @functools.wraps(make)
    def made(f: Any, *rest: Any) -> Any:
        plain = getattr(f, "function", f)
        return (of_many if getattr(plain, "__closure__", ()) is None else of_few)(f, *rest)

    return made


@made_once
def _captured(plain: types.FunctionType, code: types.CodeType) -> Captured:
    file = code.co_filename
    if inspect.iscoroutinefunction(plain):
        raise Refusal(Problem("SD104", f"`{plain.__name__}` is a coroutine function", first_line(plain)))
    without_text = f"`{file}` is not a file with source text", ""
    reason, help_ = without_text
    for text in _texts(file, plain):
        own = _own_lines(text, code)
        if own is not None:  # the file may be long
            with contextlib.suppress(SyntaxError):
                found = _candidates(file, own, plain)
                if len(found) == 1 and _is_what_runs(plain, file, own, found[0]):
                    return Captured(plain, code, found[0], file)
        try:
            found = _candidates(file, text, plain)
        except SyntaxError as error:
            reason, help_ = f"`{file}` has changed: {error}", _AGAIN
            continue
        if len(found) != 1:
            reason, help_ = ("its line in the file does not define it any more", _AGAIN) if not found else _SEVERAL
        elif _is_what_runs(plain, file, text, found[0]):
            return Captured(plain, code, found[0], file)
        else:
            reason, help_ = f"`{file}` has changed since the function was defined", _AGAIN
    raise _unreadable(plain, *(without_text if file == SHARED else (reason, help_)))


def _own_lines(text: str, code: types.CodeType) -> str | None:
    """The lines of a function of a module and of the imports around it, at their places; None for other functions.

    The function ends where a line begins at the left margin. If that is inside of a string, the result is no program.
    (Calls of functions of modules are compiled by what is imported.)
    """
    if "." in code.co_qualname or code.co_name == "<lambda>":
        return None
    lines, first = text.split("\n"), code.co_firstlineno - 1
    end, has_begun = first, False
    while end < len(lines) and not (has_begun and lines[end] and lines[end][0] not in " \t\r\f#)]}"):
        has_begun = has_begun or lines[end].startswith(("def ", "async "))
        end += 1
    kept, closing = [""] * len(lines), ""
    kept[first:end] = lines[first:end]
    for k, line in enumerate(lines):
        if closing or line.startswith(("import ", "from ")):
            kept[k] = line
            if not closing:
                closing = ")" if line.rstrip().endswith("(") else ""
            elif closing in line:
                closing = ""
    return "\n".join(kept) + "\n"


_AGAIN = "reload its module with `importlib.reload`, or run its notebook cell again"
_SEVERAL = ("its line defines several functions", "write each function on its own line")


def _texts(file: str, function: types.FunctionType) -> Iterator[str]:
    """The earlier text of a file, which may be the text that runs; then its current text.

    The text of functions without a file may be in `__source__`, of the function or of its module.
    """
    known = linecache.getlines(file, function.__globals__)
    if known:
        yield "".join(known)
    for text in (getattr(function, "__source__", None), function.__globals__.get("__source__")):
        if isinstance(text, str):
            yield text
    linecache.checkcache(file)
    now = linecache.getlines(file, function.__globals__)
    if now and now != known:
        yield "".join(now)


def _is_what_runs(function: types.FunctionType, file: str, text: str, node: ast.AST) -> bool:
    """Whether the text compiles to the code of the function. srcdiff's own library is trusted."""
    if str(function.__module__).startswith("srcdiff.library"):
        return True
    code = function.__code__
    flags = code.co_flags & _FUTURE_FLAGS
    rewriter = _assertion_rewriter(function) if any(isinstance(n, ast.Assert) for n in ast.walk(node)) else None
    here = _codes(file, text, flags, rewriter).get((code.co_qualname, code.co_firstlineno), [])
    if isinstance(node, ast.Lambda):  # the line may have other lambdas
        here = [c for c in here if list(c.co_positions()) == list(code.co_positions())]
    return any(_is_same_code(c, code) for c in here)


_FUTURE_FLAGS = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


def _assertion_rewriter(function: types.FunctionType) -> Any:
    """The hook that rewrote the assertions in the function's module: pytest rewrites the modules of tests."""
    loader = function.__globals__.get("__loader__")
    return loader if type(loader).__module__ == "_pytest.assertion.rewrite" else None


@functools.lru_cache(maxsize=64)
def _codes(file: str, text: str, flags: int, rewriter: Any) -> dict[tuple[str, int], list[types.CodeType]]:
    """The code of every function in the text, by its name and line. A line may have several lambdas."""
    tree = ast.parse(text, file)
    if rewriter is not None:
        rewrite = sys.modules[type(rewriter).__module__].rewrite_asserts
        rewrite(tree, text.encode(), file, rewriter.config)
    found: dict[tuple[str, int], list[types.CodeType]] = {}
    stack = [compile(tree, file, "exec", flags, dont_inherit=True)]
    while stack:
        code = stack.pop()
        found.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
        stack += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return found


_COMPARED = (
    *("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_exceptiontable"),
    *("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_name"),
)


def _is_same_code(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two code objects are equivalent, regardless of their origin.

    While a profiler is active, Numba removes the flag `CO_OPTIMIZED` from the code of functions that it runs.
    """
    flags = (one.co_flags ^ other.co_flags) & ~inspect.CO_OPTIMIZED
    is_alike = not flags and all(getattr(one, name) == getattr(other, name) for name in _COMPARED)
    return is_alike and _is_same_constant(one.co_consts, other.co_consts)


def _is_same_constant(one: Any, other: Any) -> bool:
    """Whether two constants of code objects are equal: `1`, `1.0` and `True` differ, and so do `0.0` and `-0.0`."""
    if type(one) is not type(other):
        return False
    if isinstance(one, types.CodeType):
        return _is_same_code(one, other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_is_same_constant, one, other))
    if isinstance(one, frozenset):
        return len(one) == len(other) and sorted(map(repr, one)) == sorted(map(repr, other))
    return repr(one) == repr(other)
