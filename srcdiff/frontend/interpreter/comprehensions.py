"""Comprehensions and generator expressions."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable

from srcdiff.frontend.domain.abstract_values import Abstract, List, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Frame, IsWritten
from srcdiff.frontend.interpreter.assignments import assign_target, assignment_statement
from srcdiff.frontend.interpreter.branches_loops import for_over, iterated
from srcdiff.frontend.interpreter.call_arguments import read_keywords
from srcdiff.frontend.interpreter.conditions import condition
from srcdiff.frontend.interpreter.dictionaries import KeysAtRunTime, constant_set
from srcdiff.frontend.interpreter.evaluation import call_with, evaluate
from srcdiff.frontend.interpreter.forks import branch_on
from srcdiff.frontend.interpreter.generators import function_of, made_generator
from srcdiff.frontend.interpreter.iteration import evaluate_elements, go_through, has_known_length, unpacked
from srcdiff.frontend.interpreter.lazy_arrays import known_elements
from srcdiff.frontend.interpreter.list_storage import append, new_list
from srcdiff.frontend.interpreter.made_dictionaries import dictionary_of_pairs, table_of_pairs
from srcdiff.frontend.interpreter.tables import expression
from srcdiff.frontend.source.scopes import assigned_names


def _uses_up(function: Abstract) -> bool:
    """Whether a function consumes its argument at once. Other iterators, and users' functions, may not."""
    if not isinstance(function, Static) or not isinstance(function.value, types.BuiltinFunctionType | type):
        return False
    return function.value not in (enumerate, zip, reversed, map, filter, iter, next, dict, set, frozenset)


_NO_ARGUMENTS = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def comprehension(reader: Reader, node: ast.ListComp | ast.GeneratorExp) -> Abstract:
    handle = new_list(reader, ())
    names = frozenset().union(*(assigned_names(g.target) for g in node.generators))
    outer = reader.frame
    first = iterated(reader, node.generators[0].iter)
    lambda_node = ast.Lambda(args=_NO_ARGUMENTS, body=node.elt)
    walrus = assigned_names(node)
    frame = Frame(None, lambda_node, outer.file, outer.name, outer, names, walrus, outer.library, outer.told)
    with reader.within(frame=frame):
        read_generator(reader, node, 0, handle, first)
    return handle


def first_that(reader: Reader, node: ast.GeneratorExp, wanted: bool) -> Abstract:
    """`any` or `all` of a generator: a loop that is left at the first element that decides the result."""
    generator = node.generators[0]
    found = ast.Name("%found", ast.Store())
    decides = node.elt if wanted else ast.UnaryOp(ast.Not(), node.elt)
    leave = ast.If(decides, [ast.Assign([found], ast.Constant(wanted)), ast.Break()], [])
    body: list[ast.stmt] = [leave]
    for test in generator.ifs:
        body = [ast.If(test, body, [])]
    source = iterated(reader, generator.iter)  # outside of the scope of the generator
    source = source if generator.ifs else written_out_for_classes(reader, source, node.elt)
    start = ast.Assign([found], ast.Constant(not wanted))
    loop = ast.For(generator.target, generator.iter, body, [])
    statements = [ast.fix_missing_locations(ast.copy_location(s, node)) for s in (start, loop)]
    outer = reader.frame
    names = assigned_names(generator.target) | {"%found"}
    lambda_node = ast.Lambda(args=_NO_ARGUMENTS, body=node.elt)
    walrus = assigned_names(node)
    frame = Frame(None, lambda_node, outer.file, outer.name, outer, names, walrus, outer.library, outer.told)
    with reader.within(frame=frame):
        assignment_statement(reader, statements[0])  # type: ignore[arg-type]
        for_over(reader, loop, source)
        return evaluate(reader, ast.copy_location(ast.Name("%found", ast.Load()), node))


def read_generator(
    reader: Reader, node: ast.ListComp | ast.GeneratorExp, level: int, handle: List, source: Abstract | None
) -> None:
    if level == len(node.generators):
        append(reader, handle, evaluate(reader, node.elt), node)
        return
    generator = node.generators[level]
    source = iterated(reader, generator.iter) if source is None else source
    source = source if generator.ifs else written_out_for_classes(reader, source, node.elt)

    def iteration(item: Abstract) -> None:
        assign_target(reader, generator.target, item)
        filtered(reader, generator.ifs, lambda: read_generator(reader, node, level + 1, handle, None), node)

    go_through(reader, generator, source, iteration, written_out=4)


def filtered(reader: Reader, conditions: list[ast.expr], then: Callable[[], None], node: ast.AST) -> None:
    if not conditions:
        then()
        return
    truth = condition(reader, conditions[0])
    if isinstance(truth, Static):
        if truth.value:
            filtered(reader, conditions[1:], then, node)
        return
    branch_on(reader, truth, lambda: filtered(reader, conditions[1:], then, node), lambda: None)


def generator_call(reader: Reader, function: Abstract, node: ast.Call) -> Abstract | None:
    """In `sum(... for ...)` and similar calls, the generator becomes a list first. `any` and `all` stop early."""
    if isinstance(function, Static) and function.value in (any, all) and len(node.args) == 1:
        generator = node.args[0]
        if isinstance(generator, ast.GeneratorExp) and len(generator.generators) > 1:
            return None
        if isinstance(generator, ast.GeneratorExp):
            return first_that(reader, generator, function.value is any)
    if len(node.args) >= 1 and isinstance(node.args[0], ast.GeneratorExp) and _uses_up(function):
        rest, keywords = (
            list(evaluate_elements(reader, node.args[1:])),
            read_keywords(reader, node, functools.partial(evaluate, reader)),
        )
        return call_with(reader, function, [comprehension(reader, node.args[0]), *rest], keywords, node)
    return None


def written_out_for_classes(reader: Reader, source: Abstract, node: ast.expr) -> Abstract:
    """The elements of a list one by one if `isinstance` is asked for them. The answers are constants."""
    is_asked = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"
    items = known_elements(reader, source) if is_asked else None
    return source if items is None or len(items) > _MOST_ASKED else Tuple(items)


_MOST_ASKED = 50


@expression(ast.ListComp)
def list_comprehension(reader: Reader, node: ast.ListComp) -> Abstract:
    return comprehension(reader, node)


@expression(ast.DictComp)
def dictionary_comprehension(reader: Reader, node: ast.DictComp) -> Abstract:
    """A dictionary. If its keys are constants, its iterations are unrolled."""
    found: list[tuple[Abstract, Abstract]] = []
    if KeysAtRunTime(node) in reader.stateful:
        pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        pairs = comprehension(reader, ast.copy_location(ast.ListComp(pair, node.generators), node))
        return table_of_pairs(reader, pairs, node)

    def element() -> None:
        key = evaluate(reader, node.key)
        found.append((key, evaluate(reader, node.value)))

    written_out(reader, node, element)
    return dictionary_of_pairs(reader, found, node, node)


@expression(ast.SetComp)
def set_comprehension(reader: Reader, node: ast.SetComp) -> Abstract:
    items: list[Abstract] = []
    written_out(reader, node, lambda: items.append(evaluate(reader, node.elt)))
    return constant_set(reader, items, node)


def written_out(reader: Reader, node: ast.DictComp | ast.SetComp, element: Callable[[], None]) -> None:
    """An unrolled comprehension over iterables of known length."""
    names = frozenset().union(*(assigned_names(g.target) for g in node.generators))
    outer = reader.frame
    first = iterated(reader, node.generators[0].iter)
    walrus = assigned_names(node)
    frame = Frame(
        None, ast.Lambda(_NO_ARGUMENTS, node), outer.file, outer.name, outer, names, walrus, outer.library, outer.told
    )

    def level(k: int, source: Abstract | None) -> None:
        if k == len(node.generators):
            element()
            return
        generator = node.generators[k]
        of = source or iterated(reader, generator.iter)
        if isinstance(node, ast.DictComp) and not has_known_length(reader, of, generator.iter):
            raise IsWritten(KeysAtRunTime(node))
        for number, item in enumerate(unpacked(reader, of, generator.iter)):
            with reader.within(path=(*reader.path, number)):
                assign_target(reader, generator.target, item)
                tests = (constant_test(reader, test) for test in generator.ifs)
                if all(tests):
                    level(k + 1, None)

    with reader.within(frame=frame):
        level(0, first)


def constant_test(reader: Reader, node: ast.expr) -> bool:
    truth = condition(reader, node)
    if not isinstance(truth, Static):
        message = "the condition of a comprehension of a dictionary or a set must be known at compile time"
        reader.refuse("SD205", node, message, help_="write a list comprehension")
    return bool(truth.value)


@expression(ast.GeneratorExp)
def generator_expression(reader: Reader, node: ast.GeneratorExp) -> Abstract:
    """A list if a builtin function consumes the generator at once, otherwise a lazy generator."""
    if reader.frame.library:
        return comprehension(reader, node)
    function, outer = function_of(node), reader.frame
    walrus = assigned_names(node)
    names = assigned_names(function)
    frame = Frame(None, function, outer.file, "<genexpr>", outer, names | walrus, walrus, outer.library, outer.told)
    return made_generator(reader, (node, outer), frame, {".0": iterated(reader, node.generators[0].iter)})
