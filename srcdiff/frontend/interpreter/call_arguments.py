"""The arguments of calls: positions, keywords, and the elements of `*x` and `**x`."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    Closure,
    Items,
    Iteration,
    Keywords,
    Lazy,
    List,
    Partial,
    Record,
    Static,
    Tuple,
    is_array_value,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.evaluation import bound_to, evaluate, evaluate_lazily
from srcdiff.frontend.interpreter.iteration import evaluate_elements, iteration_over, known_length, unpacked
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_storage import contents_of_list
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.presence import needed
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.source.capture import plain_function


def evaluate_arguments(
    reader: Reader, function: Abstract, node: ast.Call, read: Callable[[ast.expr], Abstract]
) -> list[Abstract]:
    """The arguments by position. The elements of `*array` are as many as the function has parameters without one."""
    args: list[Abstract] = []
    for argument in node.args:
        if not isinstance(argument, ast.Starred):
            args.append(read(argument))
            continue
        of = evaluate_lazily(reader, argument.value)
        of = forced(reader, of) if isinstance(of, Lazy) else of
        count = None if is_of_known_length(reader, of) else number_of_parameters(function, node)
        if count is None:
            args += unpacked(reader, of, argument)
            continue
        found = iteration_over(reader, of, argument)
        assert isinstance(found, Iteration)
        differs = reader.apply("not_equal", as_value(reader, found.length), reader.const(count))
        reader.raise_if(differs, TypeError, f"the call needs {count} elements of `{ast.unparse(argument.value)}`")
        args += [found.element(Static(k)) for k in range(count)]
    return args


def is_of_known_length(reader: Reader, x: Abstract) -> bool:
    """Whether it is anything but an array or a list whose length is known at run time."""
    if isinstance(x, List):
        return isinstance(contents_of_list(reader, x), Items)
    if not is_array_value(x):
        return True
    return known_length(reader, Iteration(reader.dim(x, 0), lambda k: k)) is not None


def number_of_parameters(function: Abstract, node: ast.Call) -> int | None:
    """How many elements `*array` must have in a call; None if several numbers are possible."""
    bound = 0
    while isinstance(function, Partial):
        bound, function = bound + len(function.args) + len(function.keywords), function.function
    if isinstance(function, Closure):
        taken = function.node.args
        names, is_open = [a.arg for a in (*taken.posonlyargs, *taken.args)], bool(function.defaults or taken.vararg)
        return None if is_open else _without(names, bound, node)
    target = (plain_function(function.value) or function.value) if isinstance(function, Static) else None
    if isinstance(target, type | types.FunctionType):
        with contextlib.suppress(TypeError, ValueError):
            parameters = inspect.signature(target).parameters.values()
            names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            is_open = any(
                p.kind is p.VAR_POSITIONAL or (p.default is not p.empty and p.name in names) for p in parameters
            )
            return None if is_open else _without(names, bound, node)
    return None


def _without(names: list[str], bound: int, node: ast.Call) -> int | None:
    """The number of parameters that the other arguments of a call leave."""
    stars = sum(isinstance(a, ast.Starred) for a in node.args)
    if stars > 1 or any(k.arg is None for k in node.keywords):
        return None
    count = len(names) - bound - (len(node.args) - 1) - sum(k.arg in names for k in node.keywords)
    return count if count >= 0 else None


def argument_in_parts(reader: Reader, node: ast.expr) -> Abstract:
    """An argument that may contain arrays that are not computed yet, also in a list display."""
    if isinstance(node, ast.Tuple | ast.List):
        return Tuple(evaluate_elements(reader, node.elts, functools.partial(argument_in_parts, reader)))
    return evaluate_lazily(reader, node)


def read_keywords(reader: Reader, node: ast.Call, read: Callable[[ast.expr], Abstract]) -> dict[str, Abstract]:
    found: dict[str, Abstract] = {}
    for keyword in node.keywords:
        if keyword.arg is not None:
            more: dict[Any, Abstract] = {keyword.arg: read(keyword.value)}
        else:
            given = needed(reader, evaluate(reader, keyword.value), node)
            if not (isinstance(given, Record) and given.kind.is_mapping):
                reader.refuse("SD102", node, f"`**` of {in_words(reader, given)} is not supported")
            more = dict(zip(given.kind.names, given.items, strict=True))
        for name, x in more.items():
            if not isinstance(name, str):
                reader.refuse("SD304", node, f"`**` of a dictionary needs strings as keys, but it has the key {name!r}")
            if name in found:
                reader.refuse("SD304", node, f"the keyword `{name}` is given twice")
            found[str.__str__(name)] = x
    return found


@functools.cache
def _signature(method: Any) -> inspect.Signature:
    return inspect.signature(method)


def computed(reader: Reader, args: Arguments, keywords: Keywords) -> tuple[Arguments, Keywords]:
    """Arguments of a user's function, with their arrays computed."""
    return [forced(reader, a) for a in args], {n: forced(reader, a) for n, a in keywords.items()}


def run_handler(
    reader: Reader, handler: Callable[..., Abstract], name: str, node: ast.AST, /, *args: Abstract, **keywords: Abstract
) -> Abstract:
    """The result of a row for a call, which messages name `name`."""
    bound_to(reader, _signature(handler), name, (reader, node, *args), keywords, node)
    return handler(reader, node, *args, **keywords)
