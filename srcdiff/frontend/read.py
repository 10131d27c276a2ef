"""The entry point of the front end: from a function with argument types to IR."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from srcdiff.diagnostics import DifferentiationError, Problem, Refusal, Span
from srcdiff.diagnostics.naming_objects import declared_as, is_installed
from srcdiff.frontend.callees import finished, mark_writing_calls
from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Group,
    Items,
    List,
    Object,
    Parts,
    Record,
    Static,
    Stored,
    Structured,
)
from srcdiff.frontend.domain.lattice import describe, holds_complex, leaf_types, loosened, of_parts
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import (
    DRAWS,
    EXACT,
    WHOSE,
    Found,
    Frame,
    IsMentioned,
    IsWritten,
    NeverReturns,
    RecursionFound,
)
from srcdiff.frontend.handlers.derivative_arguments import with_lists
from srcdiff.frontend.handlers.nested_derivatives import as_passed
from srcdiff.frontend.interpreter.class_attributes import make_class_scopes
from srcdiff.frontend.interpreter.contents import contents_of_result
from srcdiff.frontend.interpreter.declared_functions import rule_declared_for, with_instance
from srcdiff.frontend.interpreter.dictionaries import KeysAtRunTime
from srcdiff.frontend.interpreter.evaluation import call_with, is_library
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_storage import new_list
from srcdiff.frontend.interpreter.numba_functions import enter_captured
from srcdiff.frontend.interpreter.outside import hoist, look_at_class
from srcdiff.frontend.interpreter.presence import present
from srcdiff.frontend.interpreter.record_fields import relate_sizes
from srcdiff.frontend.interpreter.representation import fresh_values, leaves_of
from srcdiff.frontend.reading import Reading
from srcdiff.frontend.rows import ROWS
from srcdiff.frontend.source.accepted import refused_syntax
from srcdiff.frontend.source.capture import Captured
from srcdiff.frontend.source.guards import Attribute, Constant, collect
from srcdiff.frontend.source.scopes import scopes_of, yields
from srcdiff.ir.nodes import Block, Derivative, Function, Library, Program, Value, walk
from srcdiff.ir.types import Array
from srcdiff.library.blas_lapack import is_seen
from srcdiff.signature.descriptions import INTEGER, NUMPYS, UNCHOSEN, Description


def _reached(problem: Problem, led_to: dict[str, Span]) -> Problem:
    """A problem in another file, shown with the line that leads there; one in a library, shown at the user's line."""
    call = None if problem.span is None else led_to.get(problem.span.file)
    if call is None or problem.span is None:
        return problem
    around, seen = call, {problem.span.file}
    while is_installed(around.file) and around.file in led_to and around.file not in seen:
        seen.add(around.file)
        around = led_to[around.file]
    if is_installed(problem.span.file) and not is_installed(around.file):
        there = f"the problem is in {problem.span.file}:{problem.span.line}, `{problem.span.text.strip()}`"
        message = f"{_LIBRARY_CALL}: {problem.message}"
        return replace(problem, message=message, span=around, label="", notes=(there,), help=_rule_for_call(around))
    return replace(problem, notes=(*problem.notes, f"called from {call.file}:{call.line}, `{call.text.strip()}`"))


_LIBRARY_CALL = "this call leads into a library that srcdiff cannot differentiate"


def _rule_for_call(span: Span) -> str:
    """The lines to write to declare a rule for the function that is called at this place."""
    try:
        call = ast.parse(span.text[span.column : span.end_column], mode="eval").body
    except SyntaxError:  # the expression continues in the next line
        call = None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute):
        return declared_as(ast.unparse(call.func), len(call.args) + len(call.keywords))
    return "write the computation in Python, and declare it with `srcdiff.rule_for`"


def _one_a_line(problems: list[Problem]) -> list[Problem]:
    """Keep the first of the problems in a library that one line of the user causes."""
    first = {p.span: p for p in reversed(problems) if p.message.startswith(_LIBRARY_CALL)}
    return [p for p in problems if first.get(p.span, p) is p or not p.message.startswith(_LIBRARY_CALL)]


_MOST_SPLITS = 4  # each split may double the code after it


def read(
    captured: Captured,
    arguments: dict[str, Description],
    *,
    exact: bool = False,
    inside: Span | None = None,
    derivative: Any = None,
    kernel: bool = False,
    error_model: str = "",
) -> Reading:
    """Read a function with arguments of these descriptions as IR. All problems are reported together.

    `exact` selects exact broadcasting (see broadcasting.py). A library function is read for a place `inside` the user's
    program. With `derivative`, that derivative of the function is read instead of it. A `kernel` runs in GPU threads.
    `error_model` sets the behaviour of division by zero, and overrides Numba's option. If a name has two types after a
    branch or a loop, and is used, the code after it is read for each of them.
    """
    split: set[ast.AST] = set()
    stateful: set[Any] = set()
    mentioned: dict[int, Found] = {}
    first: DifferentiationError | None = None
    while True:
        scopes, library = scopes_of(captured.node), is_library(captured.function)
        reader = Reader(
            Frame(captured, captured.node, captured.file, captured.name, None, *scopes, library, captured.told)
        )
        reader.exact = exact or EXACT in stateful
        reader.trusted, reader.split, reader.stateful = inside is not None, split, stateful
        reader.is_kernel, reader.error_model = kernel, error_model
        try:
            return _read(reader, captured, arguments, inside, derivative, mentioned.values())
        except IsWritten as written:
            assert written.kind not in stateful
            stateful.add(written.kind)
        except IsMentioned as instance:
            assert id(instance.found.value) not in mentioned
            mentioned[id(instance.found.value)] = instance.found
        except DifferentiationError as error:
            first = first or DifferentiationError(
                _one_a_line([_reached(p, reader.reached.get(p, reader.led_to)) for p in error.problems])
            )
            needed = {reader.needs_objects[p] for p in error.problems if p in reader.needs_objects} - stateful
            if needed:
                stateful |= needed
                continue
            found = {reader.culprits[p] for p in error.problems if p in reader.culprits} - split
            found = found or set(reader.choosing) - split
            if not found or len(split | found) > _MOST_SPLITS:
                raise first from None
            split |= found
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            if first is None:
                raise
            raise first from error  # the code that follows is not valid for one of the types


def _read(
    reader: Reader,
    captured: Captured,
    arguments: dict[str, Description],
    inside: Span | None,
    derivative: Any,
    mentioned: Iterable[Found],
) -> Reading:
    assert ROWS  # the tables are complete
    node = captured.node
    reader.span = inside if reader.frame.library else reader.span_of(node)
    called = captured.method or captured.function
    is_ruled = derivative is None and rule_declared_for(reader, Static(called)) is not None
    reader.reported = {} if is_ruled else refused_syntax(captured)
    reader.problems += reader.reported.values()
    if not is_ruled and yields(node):
        reader.problems.append(Problem("SD104", f"`{captured.name}` is a generator", captured.span))
    bound: dict[str, Abstract] = {}
    params: list[Value] = []
    lists: dict[List, Stored] = {}
    reader.guards.add(Attribute(Constant(captured.function), "__code__"), captured.code)
    if captured.method is not None:
        reader.guards.add_function(captured.method, captured.method.__code__)
    hoist(reader, mentioned, node)
    make_class_scopes(reader, node)
    reader.cells[DRAWS] = Static(0)
    for name, description in arguments.items():
        bound[name], values = _argument(reader, description, name, lists)
        params += values
    reader.given |= set(params)
    seen = {name: with_lists(reader, x) for name, x in bound.items()}
    before, given = reader.state.cells, tuple(reader.objects.values())
    try:
        by_position, by_name = as_passed(node, seen)
        if is_ruled and captured.method is not None:
            by_position = with_instance(reader, captured, by_position, node)
        if is_ruled or derivative is not None:
            result = call_with(reader, Static(called if is_ruled else derivative), by_position, by_name, node)
        else:
            result = enter_captured(reader, captured, reader.frame, seen, None)
    except Refusal as refusal:
        if refusal.problem is not None:
            reader.problems.append(refusal.problem)
        result = MISSING
    except NeverReturns:
        if not reader.problems:
            result = Static(0.0)  # every path raises, so the result is never used
        else:
            result = MISSING
    except RecursionFound as escaped:
        raise AssertionError("a recursion escaped") from escaped
    if reader.problems:
        raise DifferentiationError(list(dict.fromkeys(reader.problems)))
    try:
        result = contents_of_result(reader, present(reader, result))
        outputs = _result_values(reader, result)
    except Refusal as refusal:
        raise DifferentiationError([refusal.problem] if refusal.problem is not None else []) from None
    params += [o.value for o in reader.outside]
    stores = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    once = {name: values[-1] for name, values in reader.assigned.items() if stores.count(name) == 1}
    main = Function(captured.name, tuple(params), Block((*reader.first, *reader.operations), tuple(outputs)))
    callees = tuple(u.function for u in reader.units.values() if u.function is not None)
    program = mark_writing_calls(Program(main, callees))
    if not any(isinstance(o, Derivative) for o in walk(main.body)):
        program = finished(program, [o.value for o in reader.outside])
    outside, guards, unknown = tuple(reader.outside), tuple(reader.guards), tuple(reader.unknown_calls)
    collect(guards)
    return Reading(
        program,
        bound,
        result,
        outside,
        guards,
        captured,
        lists,
        once,
        reader.assumes,
        reader.assumes_pythons,
        unknown,
        tuple(reader.handed_over),
        tuple(reader.named),
        reader.outcomes,
        reader.told_options,
        tuple(reader.differences.values()),
        tuple(_changed_lists(reader, seen, before)),
        _written_kinds(reader),
        tuple(reader.held_outside),
        tuple(_changed_attributes(reader, given, before)),
        any(isinstance(o, Library) and is_seen(o.function) for o in walk(main.body)),
        frozenset(reader.unchosen),
        tuple(reader.meanings),
    )


def _changed_attributes(reader: Reader, given: Iterable[Object], before: Mapping[Any, Abstract]) -> Iterator[str]:
    """The attributes of the caller's objects that the function assigns."""
    kinds = {x.number: x.kind for x in given}
    for key, x in reader.cells.items():
        if isinstance(key, tuple) and key[0] in kinds and before.get(key) is not x:
            yield f"{kinds[key[0]].__name__}.{key[1]}"


def _written_kinds(reader: Reader) -> frozenset[Any]:
    """The classes whose instances are written; `dict` if a dictionary of the caller is."""
    sites = {site.site if isinstance(site, KeysAtRunTime) else site for site in reader.stateful}
    of_arguments = any(isinstance(site, tuple) and site[0] == "argument" for site in sites)
    return frozenset(reader.stateful | {dict} if of_arguments else reader.stateful) - {WHOSE, EXACT}


def _changed_lists(reader: Reader, seen: dict[str, Abstract], before: Mapping[Any, Abstract]) -> Iterator[str]:
    """The names of the caller's lists that the function changes."""

    def visit(x: Abstract, name: str) -> Iterator[str]:
        if isinstance(x, List):
            if x in reader.changed:
                yield name
            x = before[x]
        if isinstance(x, Parts):
            for k, item in enumerate(x.items):
                yield from visit(item, x.layout.part(name, k))

    for name, x in seen.items():
        yield from visit(x, name)


def _argument(reader: Reader, d: Description, name: str, lists: dict[List, Stored]) -> tuple[Abstract, list[Value]]:
    """The abstract value of an argument, and its parameters. Lists become arrays."""
    if d.kind in ("tuple", "record"):
        look_at_class(reader, d.layout.kind)
        parts = [_argument(reader, p, d.layout.variable(name, k), lists) for k, p in enumerate(d.parts)]
        made = of_parts(d, (x for x, _ in parts))
        if isinstance(made, Record) and made.kind.is_mapping:
            made = replace(made, site=("argument", name))
        if isinstance(made, Structured):
            relate_sizes(reader, made)
        return made, [v for _, values in parts for v in values]
    if d.kind == "items":
        return new_list(reader, ()), []
    if d.kind != "stored":
        found, values = fresh_values(reader, d, name)
        if d.kind == "value" and NUMPYS not in d.parts and not reader.trusted:
            reader.pythons |= set(values)
        if d.kind == "value" and NUMPYS in d.parts:
            reader.computed_by_numpy |= set(values)
        if INTEGER in d.parts:
            reader.whole |= set(values)
        if UNCHOSEN in d.parts:
            reader.unchosen |= set(values)
        return found, values
    arrays = [Value(t, name) for t in leaf_types(d) or () if isinstance(t, Array)]
    reader.storage.update(arrays)
    handle = List()
    lists[handle] = Stored(d.parts[0], tuple(arrays), reader.dim(arrays[0], 0))
    reader.cells[handle] = lists[handle]
    return handle, arrays


def _result_values(reader: Reader, result: Abstract) -> list[Value]:
    if isinstance(result, Static | Value | Group | Items | Stored):
        description = loosened(describe(result))
        if holds_complex(description):
            reader.refuse("SD401", None, "the result is complex", help_="return its real part: `.real`")
        if leaf_types(description) is not None:
            return leaves_of(reader, result, description)
    reader.refuse("SD401", None, f"the result is {in_words(reader, result)}", help_="return one float")
