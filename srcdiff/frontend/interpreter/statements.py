"""Statements.

Exits become numbers: `break`, `continue` and `return` set an exit code. The following statements move into the other
branch or under a test of the code, so that later stages only see branches and loops.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util

from srcdiff.diagnostics import Refusal
from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Caught,
    Group,
    Lazy,
    List,
    Optional,
    Poison,
    Static,
    Stored,
    is_chosen_text,
)
from srcdiff.frontend.domain.lattice import describe, handles, is_plain, loosened
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import BREAKS, CONTINUES, GOES_ON, RAISES, RETURNS, Cells, Hopeless, NeverReturns
from srcdiff.frontend.interpreter.aliases import forget_doubts, forget_same_lists
from srcdiff.frontend.interpreter.conditions import condition
from srcdiff.frontend.interpreter.dictionaries import is_dictionary, remove_item
from srcdiff.frontend.interpreter.evaluation import evaluate, evaluate_lazily, is_library
from srcdiff.frontend.interpreter.forks import closing_escapes, fork, is_among, knowing_exit, leave_by, or_die
from srcdiff.frontend.interpreter.indexing import index_of_instance
from srcdiff.frontend.interpreter.instances import call_special, defines
from srcdiff.frontend.interpreter.iteration import evaluate_elements
from srcdiff.frontend.interpreter.joins import caught, possible
from srcdiff.frontend.interpreter.lists import delete_element, list_copy
from srcdiff.frontend.interpreter.names import nested_function
from srcdiff.frontend.interpreter.outside import imported_module, look_up
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.strings import exception_argument
from srcdiff.frontend.interpreter.tables import COMPOUND, STATEMENTS, statement
from srcdiff.frontend.interpreter.unread import leave_unread
from srcdiff.frontend.reading import Named
from srcdiff.frontend.source.accepted import REFUSED
from srcdiff.ir.nodes import Value
from srcdiff.signature.trees import NODES


def values_in(x: Abstract) -> list[Value]:
    """The run-time values of an argument that have been computed so far."""
    found = [leaf.array if isinstance(leaf, Lazy) else leaf for leaf in NODES.leaves(x)]
    return [value for value in found if isinstance(value, Value)]


def run_body(reader: Reader, node: ast.FunctionDef | ast.Lambda) -> Abstract:
    if isinstance(node, ast.Lambda):
        if not reader.frame.library:
            reader.span = reader.span_of(node.body)
        return evaluate(reader, node.body)
    key = (reader.frame.number, "%return")
    caller = reader.context.exits
    with reader.within(loop_depth=0, exits=reader.frame.number):
        reader.cells[reader.exit_key] = Static(GOES_ON)
        read_statements(reader, node.body)
        code = reader.cells.pop(reader.exit_key, Static(GOES_ON))
    if reader.dead:
        raise NeverReturns
    if reader.context.handlers and caller != reader.frame.number:
        leave_by(reader, code)
        ways = possible(reader, code)
        code = Static(RETURNS) if caught(ways) and ways - caught(ways) == {RETURNS} else code
    result = reader.cells.pop(key, MISSING)
    if isinstance(code, Static):
        return result if code.value == RETURNS else Static(None)
    if result is MISSING:
        return Static(None)
    if is_plain(loosened(describe(result))):
        returned = reader.apply("equal", as_value(reader, code), reader.const(RETURNS))
        return result if reader.constants.get(returned) is True else Optional(returned, result)
    if isinstance(result, Optional):
        returned = reader.apply("equal", as_value(reader, code), reader.const(RETURNS))
        return Optional(reader.apply("logical_and", returned, as_value(reader, result.flag)), result.value)
    if not isinstance(result, Static) or result.value is not None:
        fell = reader.apply("not_equal", as_value(reader, code), reader.const(RETURNS))
        reader.raise_if(fell, TypeError, f"{reader.frame.name} returned None")
    return result


def read_statements(reader: Reader, body: list[ast.stmt]) -> None:
    for k, node in enumerate(body):
        rest = body[k + 1 :]
        before = reader.state.cells
        if read_guarded(reader, node, rest):
            return
        if rest and isinstance(node, ast.If | ast.For) and node not in reader.split:
            note_conflicts(reader, node, before)
        code = reader.exit
        if isinstance(code, Static):
            if code.value != GOES_ON:
                return
            continue
        if rest and GOES_ON in possible(reader, code):
            go_on(reader, code, rest)
        return


def note_conflicts(reader: Reader, statement: ast.stmt, before: Cells) -> None:
    """Record the statement after which a name has two types, or is one of several strings."""
    for key, x in reader.cells.items():
        if isinstance(x, Poison) and x.problem is not None and not isinstance(before.get(key), Poison):
            reader.culprits.setdefault(x.problem, statement)
        elif is_chosen_text(x) and before.get(key) is not x:
            reader.choosing[statement] = None


def go_on(reader: Reader, code: Abstract, rest: list[ast.stmt]) -> None:
    """Read the statements after one that may have left. They run if it has not."""
    goes_on = is_among(reader, code, frozenset((GOES_ON,)))
    reached: list[Abstract] = []
    others = possible(reader, code) - {GOES_ON}

    def then() -> None:
        if caught(others):
            knowing_exit(reader, code, frozenset((GOES_ON,)))
        reader.cells[reader.exit_key] = Static(GOES_ON)
        read_statements(reader, rest)
        reached.append(reader.exit)

    def orelse() -> None:
        if caught(others):
            knowing_exit(reader, code, others)

    fork(reader, goes_on, then, orelse)
    ends = not reached or reached[0] in (Static(RETURNS), Static(RAISES))
    if reader.context.loop_depth == 0 and ends and not reader.dead and not caught(others):
        reader.leave(RETURNS)  # outside of loops, the only other exit is a return


def after_exit(reader: Reader, rest: list[ast.stmt]) -> None:
    reader.cells[reader.exit_key] = Static(GOES_ON)
    read_statements(reader, rest)


def read_guarded(reader: Reader, statement: ast.stmt, rest: list[ast.stmt]) -> bool:
    """Read a statement. Returns true if the statements after it were read too.

    If there is a problem, it is recorded, and what the statement assigns is poisoned. A problem in one of
    srcdiff's own programs ends the whole call, which is in a statement of the user.
    """
    if not reader.frame.library:
        reader.span = reader.span_of(statement)
        reader.made_here = 0
    depth, before = len(reader.stack), reader.state
    found: list[bool] = []
    try:
        with closing_escapes(reader, in_new_block=False):
            or_die(reader, lambda: found.append(read_statement(reader, statement, rest)))
        forget_doubts(reader, before)
        forget_same_lists(reader, before)
        return bool(found) and found[0]
    except Hopeless:
        raise
    except Refusal as refusal:
        captured = reader.frame.captured
        if reader.frame.library or (captured is not None and is_library(captured.function)):
            raise
        reader.note_reached(refusal.problem)
        if refusal.problem is not None and refusal.problem not in reader.problems:
            reader.problems.append(refusal.problem)
        assert len(reader.stack) == depth
        ends = isinstance(statement, ast.Return | ast.If | ast.For | ast.While | ast.With | ast.Try)
        leave_unread(reader, statement, refusal.problem, ends=ends)
        if ends:
            reader.cells[(reader.frame.number, "%return")] = Poison(None)
            reader.leave(RETURNS)
    return False


def read_statement(reader: Reader, node: ast.stmt, rest: list[ast.stmt]) -> bool:
    if node in reader.reported:
        raise Refusal(None)
    both = COMPOUND.get(type(node))
    if both is not None:
        return both(reader, node, rest)
    read = STATEMENTS.get(type(node))
    if read is None:
        code, what, instead = REFUSED.get(type(node), ("SD101", f"`{type(node).__name__.lower()}`", ""))
        reader.refuse(code, node, f"{what} is not supported", help_=instead)
    read(reader, node)
    return False


@statement(ast.Pass)
def pass_statement(reader: Reader, node: ast.Pass) -> None:
    pass


@statement(ast.Nonlocal)
def nonlocal_statement(reader: Reader, node: ast.Nonlocal) -> None:
    pass


@statement(ast.Expr)
def expression_statement(reader: Reader, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        evaluate(reader, node.value)


@statement(ast.Return)
def return_statement(reader: Reader, node: ast.Return) -> None:
    read = (
        functools.partial(evaluate_lazily, reader)
        if reader.frame.library or reader.frame.name == "__iter__"
        else functools.partial(evaluate, reader)
    )
    value = Static(None) if node.value is None else returned_value(reader, read(node.value), node)
    reader.cells[(reader.frame.number, "%return")] = value
    note_name(reader, "%return", value)
    reader.leave(RETURNS)


def note_name(reader: Reader, name: str, value: Abstract) -> None:
    if not reader.frame.library:
        reader.named += [Named(name, v, reader.span) for v in values_in(value)]


@statement(ast.Break)
def break_statement(reader: Reader, node: ast.Break) -> None:
    reader.leave(BREAKS)


@statement(ast.Continue)
def continue_statement(reader: Reader, node: ast.Continue) -> None:
    reader.leave(CONTINUES)


@statement(ast.FunctionDef)
def function_definition(reader: Reader, node: ast.FunctionDef) -> None:
    if node.decorator_list:
        reader.refuse("SD101", node, "decorators on nested functions are not supported")
    reader.cells[(reader.frame.number, node.name)] = nested_function(reader, node)


@statement(ast.Import)
def import_statement(reader: Reader, node: ast.Import) -> None:
    for alias in node.names:
        importlib.import_module(alias.name)
        named = alias.name if alias.asname is not None else alias.name.partition(".")[0]
        reader.cells[(reader.frame.number, alias.asname or named)] = Static(imported_module(reader, named))


@statement(ast.ImportFrom)
def import_from_statement(reader: Reader, node: ast.ImportFrom) -> None:
    name = node.module or ""
    if node.level:
        name = importlib.util.resolve_name("." * node.level + name, package_of(reader))
    module = imported_module(reader, name)
    for alias in node.names:
        if not hasattr(module, alias.name) and hasattr(module, "__path__"):
            importlib.import_module(f"{name}.{alias.name}")
        reader.cells[(reader.frame.number, alias.asname or alias.name)] = look_up(reader, module, alias.name, node)


def package_of(reader: Reader) -> str:
    """The package that relative imports start from."""
    frame = reader.frame
    while frame.captured is None and frame.parent is not None:
        frame = frame.parent
    globals_ = frame.captured.function.__globals__ if frame.captured is not None else {}
    return globals_.get("__package__") or ""


@statement(ast.Delete)
def delete_statement(reader: Reader, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            reader.cells.pop((reader.frame.number, target.id), None)
            continue
        owner = evaluate(reader, target.value) if isinstance(target, ast.Subscript) else MISSING
        if isinstance(target, ast.Subscript) and is_dictionary(owner):
            remove_item(reader, owner, evaluate(reader, target.slice), target)
            continue
        if isinstance(target, ast.Subscript) and defines(owner, "__delitem__"):
            call_special(reader, owner, "__delitem__", [index_of_instance(reader, target)], target)
            continue
        if not isinstance(owner, List) or not isinstance(target, ast.Subscript):
            reader.refuse("SD101", node, "`del` is supported for names, and for elements of lists and dictionaries")
        delete_element(reader, owner, target.slice, target)


@statement(ast.Assert)
def assert_statement(reader: Reader, node: ast.Assert) -> None:
    truth = condition(reader, node.test)
    if isinstance(truth, Static):
        if not truth.value:
            raise_assertion(reader, node)
        return
    fork(reader, reader.apply("logical_not", truth), lambda: raise_assertion(reader, node), lambda: None)


def raise_assertion(reader: Reader, node: ast.Assert) -> None:
    parts = () if node.msg is None else (exception_argument(reader, evaluate(reader, node.msg), node),)
    reader.raise_now(AssertionError, parts)


@statement(ast.Raise)
def raise_statement(reader: Reader, node: ast.Raise) -> None:
    if node.exc is None:
        if reader.context.handling is None:
            reader.refuse("SD101", node, "`raise` without an exception is supported inside of `except` only")
        reader.context.handling(reader)
        return
    call = node.exc if isinstance(node.exc, ast.Call) else None
    kind = evaluate(reader, node.exc if call is None else call.func)
    if isinstance(kind, Caught) and call is None:
        reader.raise_now(kind.kind, kind.parts)
    if not (isinstance(kind, Static) and isinstance(kind.value, type) and issubclass(kind.value, BaseException)):
        reader.refuse("SD101", node, "`raise` takes an exception class, or a call of one with a message")
    if call is not None and call.keywords:
        reader.refuse("SD102", node, "keyword arguments of an exception are not supported")
    given = () if call is None else evaluate_elements(reader, call.args)
    parts = [exception_argument(reader, x, node) for x in given]
    reader.raise_now(kind.value, tuple(parts))


def returned_value(reader: Reader, x: Abstract, node: ast.AST) -> Abstract:
    """The returned value. A recursive function returns a copy of a list that is not new."""
    if isinstance(x, Group):
        return x.remade(returned_value(reader, i, node) for i in x.items)
    if reader.frame is not reader.context.unit_frame or not isinstance(x, List):
        return x
    others = [y for k, y in reader.cells.items() if not isinstance(k, tuple) or k[0] != reader.frame.number]
    if x not in reader.context.lists_given and not any(x in handles(y) for y in others):
        return x
    contents, copied = reader.cells[x], list_copy(reader, node, x)
    assert isinstance(copied, List)
    copies = reader.cells[copied]
    if isinstance(contents, Stored) and isinstance(copies, Stored):
        reader.stands_for_list |= dict.fromkeys(copies.arrays, frozenset(contents.arrays))
    return copied
