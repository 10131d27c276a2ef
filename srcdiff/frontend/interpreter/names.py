"""Names, constants, displays and nested functions."""

from __future__ import annotations

import ast
import functools

from srcdiff.diagnostics import Problem
from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Closure,
    Enumerate,
    Maybe,
    Poison,
    Record,
    Reversed,
    Static,
    Tuple,
    Zip,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Frame
from srcdiff.frontend.interpreter.dictionaries import constant_set
from srcdiff.frontend.interpreter.evaluation import evaluate, evaluate_lazily
from srcdiff.frontend.interpreter.iteration import evaluate_elements
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.made_dictionaries import dictionary_of_pairs
from srcdiff.frontend.interpreter.outside import outside_name
from srcdiff.frontend.interpreter.presence import UNASSIGNED, checked, needed
from srcdiff.frontend.interpreter.tables import expression
from srcdiff.frontend.source.scopes import is_only_use


@expression(ast.Constant)
def constant_expression(reader: Reader, node: ast.Constant) -> Abstract:
    return Static(node.value)


@expression(ast.Name)
def name_expression(reader: Reader, node: ast.Name) -> Abstract:
    frame: Frame | None = reader.frame
    while frame is not None:
        if node.id in frame.locals:
            key = (frame.number, node.id)
            found = reader.cells.get(key, MISSING)
            if found is MISSING and key in reader.context.awaited:
                problem = Problem("SD204", f"`{node.id}` is not assigned on this path", reader.span_of(node))
                reader.too_early(problem, UnboundLocalError, UNASSIGNED.format(node.id))
            if isinstance(found, Poison | Maybe) or found is MISSING:
                found = checked(reader, found, node.id, node)
                reader.cells[key] = found
            if isinstance(found, Enumerate | Zip | Reversed) and not is_only_use(frame.node, node):
                message = f"`{node.id}` is an iterator, which can be consumed only once"
                reader.refuse("SD102", node, message, help_="convert it to a list: `list(...)`")
            return found
        if frame.captured is not None:
            return outside_name(reader, frame.captured.function, node)
        frame = frame.parent
    reader.refuse("SD204", node, f"`{node.id}` is not defined")


@expression(ast.Lambda)
def lambda_expression(reader: Reader, node: ast.Lambda) -> Abstract:
    return nested_function(reader, node)


def nested_function(reader: Reader, node: ast.Lambda | ast.FunctionDef) -> Closure:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[str, Abstract] = {}
    for parameter, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        defaults[parameter.arg] = evaluate(reader, default)
    for parameter, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_default is not None:
            defaults[parameter.arg] = evaluate(reader, keyword_default)
    return Closure(node, reader.frame, defaults)


@expression(ast.Tuple)
def tuple_display(reader: Reader, node: ast.Tuple) -> Abstract:
    return Tuple(
        evaluate_elements(
            reader,
            node.elts,
            functools.partial(evaluate_lazily, reader) if reader.frame.library else functools.partial(evaluate, reader),
        )
    )


@expression(ast.Dict)
def dictionary_display(reader: Reader, node: ast.Dict) -> Abstract:
    """A dictionary. Keys that are known at run time are integers."""
    found: list[tuple[Abstract, Abstract]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            more = needed(reader, evaluate(reader, value), value)
            if not (isinstance(more, Record) and more.kind.is_mapping):
                reader.refuse("SD102", value, f"`**` of {in_words(reader, more)} is not supported")
            found += [(Static(name), x) for name, x in zip(more.kind.names, more.items, strict=True)]
            continue
        found.append((evaluate(reader, key), evaluate(reader, value)))
    return dictionary_of_pairs(reader, found, node, node)


@expression(ast.Set)
def set_display(reader: Reader, node: ast.Set) -> Abstract:
    return constant_set(reader, evaluate_elements(reader, node.elts), node)


@expression(ast.Slice)
def slice_outside_brackets(reader: Reader, node: ast.Slice) -> Abstract:
    reader.refuse("SD102", node, "a slice is only allowed inside brackets")


@expression(ast.Starred)
def star_outside_call(reader: Reader, node: ast.Starred) -> Abstract:
    reader.refuse("SD102", node, "`*` is not allowed here")
