"""`with`: objects with `__enter__` and `__exit__`, functions made by `contextlib.contextmanager`, and warnings.

with scope(x) as y:        y = x * 2.0           the function before its `yield`,
    body                   body                  the statements in place of the `yield`,
                           ...                   and the function after it
"""

from __future__ import annotations

import ast
import contextlib
import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import MISSING, Abstract, Generated, Partial, Static, class_of, is_instance
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import GOES_ON
from srcdiff.frontend.interpreter.assignments import assign_target
from srcdiff.frontend.interpreter.call_arguments import read_keywords
from srcdiff.frontend.interpreter.evaluation import call_value, call_with, evaluate
from srcdiff.frontend.interpreter.generators import go_through_context
from srcdiff.frontend.interpreter.instances import in_class, read_attribute
from srcdiff.frontend.interpreter.iteration import evaluate_elements
from srcdiff.frontend.interpreter.joins import caught, possible
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.statements import read_statements
from srcdiff.frontend.interpreter.tables import statement
from srcdiff.frontend.source.capture import capture, plain_function
from srcdiff.frontend.source.scopes import names_in
from srcdiff.signature.structures import is_plain_class

_ABOUT_WARNINGS = (Static(np.errstate), Static(warnings.catch_warnings), Static(np.printoptions))


@statement(ast.With)
def with_statement(reader: Reader, node: ast.With) -> None:
    enter(reader, node, 0)


def enter(reader: Reader, node: ast.With, k: int) -> None:
    """Enter the contexts from this one on, read the statements, and leave the contexts again."""
    if k == len(node.items):
        read_statements(reader, node.body)
        return
    item = node.items[k]
    call = item.context_expr

    def entered(value: Abstract) -> None:
        if item.optional_vars is not None:
            assign_target(reader, item.optional_vars, value)
        enter(reader, node, k + 1)

    if not isinstance(call, ast.Call):
        enter_object(reader, evaluate(reader, call), item, entered)
        return
    function = evaluate(reader, call.func)
    if function in _ABOUT_WARNINGS and item.optional_vars is None:
        refuse_raising(reader, function, call)
        enter(reader, node, k + 1)
        return
    if function == Static(contextlib.suppress):
        read_statements(reader, [suppressing(node, k)])
        return
    target = function.value if isinstance(function, Static) else None
    is_foreign: Any = isinstance(target, types.BuiltinFunctionType)
    if is_foreign or (isinstance(target, type) and target is not contextlib.nullcontext and not is_plain_class(target)):
        message = f"`with` of `{ast.unparse(call.func)}(...)` is not supported"
        reader.refuse("SD101", call, message, help_="enter the context around the call of the gradient")
    args = list(evaluate_elements(reader, call.args))
    keywords = read_keywords(reader, call, functools.partial(evaluate, reader))
    if function == Static(contextlib.nullcontext):
        entered(args[0] if args else Static(None))
        return
    before: tuple[Abstract, ...] = ()
    if isinstance(function, Partial) and not function.keywords:
        before, function = function.args, function.function
    wrapped = made_of_generator(function)
    if wrapped is None:
        made = call_with(reader, function, [*before, *args], keywords, call)
        enter_object(reader, made, item, entered)
        return
    made = call_with(reader, Static(wrapped), [*before, *args], keywords, call)
    assert isinstance(made, Generated)
    require_one_yield(reader, made, call)
    go_through_context(reader, made, entered, call)


def refuse_raising(reader: Reader, function: Abstract, call: ast.Call) -> None:
    """Refuse an `np.errstate` that would raise, because derivatives may produce infinities."""
    given = [evaluate(reader, x) for x in (*call.args, *(k.value for k in call.keywords))]
    if function == Static(np.errstate) and any(x not in (Static("ignore"), Static("warn")) for x in given):
        reader.refuse("SD101", call, "`np.errstate` is supported with 'ignore' and 'warn' only")


@functools.lru_cache(maxsize=1024)
def suppressing(node: ast.With, k: int) -> ast.Try:
    """`with suppress(E): ...` as `try: ... except E: pass`."""
    call = node.items[k].context_expr
    assert isinstance(call, ast.Call)
    rest = node.items[k + 1 :]
    body: list[ast.stmt] = [ast.With(rest, node.body)] if rest else node.body
    clause = ast.ExceptHandler(ast.Tuple(call.args, ast.Load()), None, [ast.Pass()])
    return ast.fix_missing_locations(ast.copy_location(ast.Try(body, [clause], [], []), node))


def made_of_generator(function: Abstract) -> Any:
    """The generator function of a context manager made by `contextlib.contextmanager`."""
    target = function.value if isinstance(function, Static) else None
    is_made = isinstance(target, types.FunctionType) and target.__code__.co_filename == contextlib.__file__
    return getattr(target, "__wrapped__", None) if is_made else None


def require_one_yield(reader: Reader, made: Generated, node: ast.AST) -> None:
    """Refuse a context manager that does not yield exactly once, or that catches exceptions."""
    body: list[ast.stmt] = made.frame.node.body
    while True:
        place = next((one for one in body if any(isinstance(n, ast.Yield) for n in ast.walk(one))), None)
        if (isinstance(place, ast.Try) and not place.handlers) or isinstance(place, ast.With):
            body = place.body
        else:
            break
    count = sum(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(made.frame.node))
    if count != 1 or not isinstance(place, ast.Expr | ast.Assign):
        message = f"`{made.name}` must have one `yield`, outside of branches and loops, and without `except` around it"
        reader.refuse("SD104", node, message, help_="write a class with `__enter__` and `__exit__`")


def enter_object(reader: Reader, manager: Abstract, item: ast.withitem, entered: Callable[[Abstract], None]) -> None:
    """An instance with `__enter__` and `__exit__`."""
    node = item.context_expr
    if not is_instance(manager) or in_class(class_of(manager), "__enter__") is MISSING:
        message = f"`with` of {in_words(reader, manager)} is not supported"
        reader.refuse("SD101", node, message, help_="enter the context around the call of the gradient")
    leave = read_attribute(reader, manager, "__exit__", node)
    reads_exception = refuse_suppressing(reader, leave, node)
    entered(call_value(reader, read_attribute(reader, manager, "__enter__", node), [], node))
    if reader.dead:
        return
    code = reader.exit
    if caught(possible(reader, code)) and reads_exception:
        message = "`__exit__` reads the exception, which is not supported inside of a `try`"
        reader.refuse("SD101", node, message, help_="use `try` and `except`")
    key = (reader.context.exits, f"%left_{node.lineno}_{node.col_offset}")
    reader.cells[key] = code
    reader.cells[reader.exit_key] = Static(GOES_ON)
    call_value(reader, leave, [Static(None)] * 3, node)
    if not reader.dead:
        reader.cells[reader.exit_key] = reader.cells.pop(key)


def refuse_suppressing(reader: Reader, leave: Abstract, node: ast.AST) -> bool:
    """Refuse an `__exit__` that may suppress exceptions. Returns whether it reads its arguments."""
    function = leave.function if isinstance(leave, Partial) else leave
    target = function.value if isinstance(function, Static) else None
    if plain_function(target) is None:
        reader.refuse("SD101", node, "`__exit__` has no Python source")
    captured = capture(target).node
    returned = [n.value for n in ast.walk(captured) if isinstance(n, ast.Return) and n.value is not None]
    if not all(isinstance(x, ast.Constant) and not x.value for x in returned):
        message = "`__exit__` may return a true value, which would suppress an exception"
        reader.refuse("SD101", node, message, help_="return nothing, and use `try` and `except`")
    _, *given = [a.arg for a in (*captured.args.posonlyargs, *captured.args.args)]
    given += [captured.args.vararg.arg] if captured.args.vararg is not None else []
    body = captured.body if isinstance(captured.body, list) else [captured.body]
    return any(set(given) & names_in(part) for part in body)
