"""Runs the generated source by Python, with NumPy's divisions: for tests, for debugging, and to step through it."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import sys
import types
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from srcdiff.signature.trees import TUPLES

if TYPE_CHECKING:
    from srcdiff.backends.backend import Generated

MODULES = "srcdiff.generated."
"""The prefix of module names; modules that Numba compiles are in `sys.modules`."""
QUOTIENT = "__quotient__"
"""The name of the function that divisions call. No variable has this name."""


_numbers = itertools.count(1)


def new_file(name: str) -> str:
    """The name of a file that no generated text has yet."""
    return f"<srcdiff {name} {next(_numbers)}>"


def load_interpreted(generated: Generated, options: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of the text, run by Python."""
    from srcdiff.backends.python import race_checker

    module = generated.module
    if race_checker.is_on():
        return race_checker.load(module.text, module.name, module.objects)
    return _interpreted(module.text, module.name, tuple(module.objects.items()))


@functools.lru_cache(maxsize=256)
def _interpreted(text: str, name: str, objects: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    """The same for all derivatives that it is the text of."""
    return quiet(run(text, dict(objects), new_file(name))[name])


def run(text: str, objects: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Execute the text with the divisions of NumPy."""
    return load(text, {**objects, QUOTIENT: quotient}, file, QuietDivisions())


def load(
    text: str,
    objects: Mapping[str, Any],
    file: str,
    spelling: ast.NodeTransformer | None = None,
    *,
    for_ever: bool = False,
) -> dict[str, Any]:
    """Execute the text, spelled as a compiler wants it; tracebacks and pdb show it under its file name.

    Unless it is `for_ever`, nothing of it is left when its functions are gone.
    """
    module = types.ModuleType(f"{MODULES}{file.strip('<>').replace(' ', '_')}")
    if for_ever:
        sys.modules[module.__name__] = module  # Numba finds recursive functions through their module
    namespace = module.__dict__
    namespace.update(objects)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    tree = ast.parse(text) if spelling is None else spelling.visit(ast.parse(text))
    exec(compile(tree, file, "exec"), namespace)
    for function in namespace.values():  # they stay together, because each has all of them as globals
        if isinstance(function, types.FunctionType) and function.__code__.co_filename == file:
            weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
            break
    return namespace


class QuietDivisions(ast.NodeTransformer):
    """Divisions as NumPy has them: also a number of Python's, such as a sum of nothing, can be divided by zero."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div) or (isinstance(node.right, ast.Constant) and node.right.value):
            return node
        call = ast.Call(ast.Name(QUOTIENT, ast.Load()), [node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not isinstance(node.op, ast.Div):
            return self.generic_visit(node)
        before = ast.parse(ast.unparse(node.target), mode="eval").body  # the target again, to be read
        divided = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
        assigned = ast.copy_location(ast.Assign([node.target], divided), node)
        return ast.fix_missing_locations(self.generic_visit(assigned))


def quotient(x: Any, y: Any) -> Any:
    return x / y if y else np.divide(x, y)


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Division by zero returns infinity or NaN without a warning, and numbers are Python's, as in compiled code."""

    def call(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return _with_python_numbers(function(*(_with_numpy_floats(a) for a in args)))

    return call


def _with_numpy_floats(value: Any) -> Any:
    """NumPy's floats divide by zero as compiled code does; Python's raise."""
    if type(value) is float:
        return np.float64(value)
    return TUPLES.remade(value, [*map(_with_numpy_floats, value)]) if isinstance(value, tuple) else value


def _with_python_numbers(value: Any) -> Any:
    if type(value) in _NUMPYS:
        return value.item()
    return TUPLES.remade(value, [*map(_with_python_numbers, value)]) if isinstance(value, tuple) else value


_NUMPYS = (np.float64, np.int64, np.bool_)
