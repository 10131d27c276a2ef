"""Bound methods and callable instances as functions: the instance is a variable that the function reads from outside.

class Model:                                def loss(x):            # `self` is read at every call
    def loss(self, x): ...          ->          ...
model.loss
"""

from __future__ import annotations

import ast
import copy
import functools
import types
from typing import Any

from srcdiff.frontend.source.guards import contents, exactly
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.jit_classes import class_of_value
from srcdiff.signature.keys import Kept
from srcdiff.signature.structures import is_plain_class


@dataclass(frozen=True, slots=True)
class Opened:
    """The function that replaces a bound method, and its syntax tree."""

    function: types.FunctionType
    node: ast.FunctionDef
    instance: str
    """The name of the instance parameter."""


def method_behind(function: Any) -> types.MethodType | None:
    """The bound method behind a callable: itself, or the `__call__` of an instance."""
    if isinstance(function, types.MethodType):
        compiled = class_of_value(function.__self__)
        if compiled is not type(function.__self__):
            return types.MethodType(getattr(compiled, function.__name__), function.__self__)
        return function if not isinstance(function.__self__, type) else None
    kind: Any = type(function)
    if not is_plain_class(kind):
        return None
    found = getattr(function, "__call__", None)  # noqa: B004 -- the method itself is wanted
    return found if isinstance(found, types.MethodType) else None


def opened(method: types.MethodType, node: ast.FunctionDef | ast.Lambda, file: str) -> Opened:
    """A function with the parameters of the method except the first, which it reads from its closure."""
    function = method.__func__
    assert isinstance(function, types.FunctionType)
    defaults = exactly(function.__defaults__), contents(function.__kwdefaults__)
    found: Opened = _opened(function, function.__code__, defaults, Kept(method.__self__), Kept(node), file)
    return found


@functools.lru_cache(maxsize=256)
def _opened(
    function: types.FunctionType, code: types.CodeType, defaults: Any, instance: Kept, node: Kept, file: str
) -> Opened:
    inner = _as_function(copy.deepcopy(node.value))
    inner.decorator_list = []
    group = inner.args.posonlyargs or inner.args.args
    name = group.pop(0).arg
    around = [name, *code.co_freevars]
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(n) for n in dict.fromkeys(around)], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    mention = ast.copy_location(ast.Expr(ast.Name(name, ast.Load())), inner)  # `super()` reads it implicitly
    compiled = copy.copy(inner)
    compiled.body = [*inner.body, mention]
    body: list[ast.stmt] = [compiled, ast.Return(ast.Name(inner.name, ast.Load()))]
    outer = ast.copy_location(ast.FunctionDef("around", arguments, body, [], lineno=inner.lineno, col_offset=0), inner)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    whole = compile(module, file, "exec", dont_inherit=True)
    (factory,) = (c for c in whole.co_consts if isinstance(c, types.CodeType))
    (own,) = (c for c in factory.co_consts if isinstance(c, types.CodeType) and c.co_name == inner.name)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[name] = types.CellType(instance.value)
    closure = tuple(cells[free] for free in own.co_freevars)
    made = types.FunctionType(own, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__, made.__doc__, made.__module__ = function.__kwdefaults__, function.__doc__, function.__module__
    made.__qualname__ = function.__qualname__
    return Opened(made, inner, name)


def _as_function(node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef:
    """A lambda as a `def`."""
    if isinstance(node, ast.FunctionDef):
        return node
    result = ast.copy_location(ast.Return(node.body), node.body)
    return ast.fix_missing_locations(ast.copy_location(ast.FunctionDef("function", node.args, [result], []), node))
