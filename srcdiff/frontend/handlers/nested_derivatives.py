"""Derivatives inside a differentiated function: the inner function is read into an operation of the program.

    def f(x):                                   the call becomes a program in which `x` is a value, so the derivative
        return x * srcdiff.grad(g)(x)           of `f` needs no knowledge of the inner derivative

The program fixes which values belong to which derivative, so perturbations cannot be confused.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from srcdiff.diagnostics import DifferentiationError, Refusal, Span
from srcdiff.diagnostics.options import require_inside
from srcdiff.frontend.callees import mark_writing_calls
from srcdiff.frontend.derivation import (
    Derivation,
    are_lengths,
    floats_in,
    jacobian_form,
    leaves,
    refuse_lists_in_jacobian,
    require_number,
    tangent_beside,
)
from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    Closure,
    Group,
    Keywords,
    List,
    Object,
    Parts,
    Record,
    Static,
    Stored,
    Transformed,
    Tuple,
    is_array_value,
    is_none,
)
from srcdiff.frontend.domain.lattice import describe, is_computed, loosened
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import DRAWS, Cells
from srcdiff.frontend.handlers.derivative_arguments import (
    as_record,
    is_of_structures,
    separated_arguments,
    with_contents_of_objects,
    with_lists,
    with_new_list,
)
from srcdiff.frontend.interpreter.array_conversion import the_array
from srcdiff.frontend.interpreter.call_arguments import computed
from srcdiff.frontend.interpreter.contents import contents_of_result, with_values
from srcdiff.frontend.interpreter.evaluation import call_with, known_value
from srcdiff.frontend.interpreter.inlining import bind_arguments
from srcdiff.frontend.interpreter.instances import written_around
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import holds_floats
from srcdiff.frontend.interpreter.list_storage import new_list
from srcdiff.frontend.interpreter.lists import list_copy
from srcdiff.frontend.interpreter.materialization import forced, settle
from srcdiff.frontend.interpreter.numba_functions import call_plain
from srcdiff.frontend.interpreter.numbers import as_number
from srcdiff.frontend.interpreter.outside import lift_defaults
from srcdiff.frontend.interpreter.presence import present
from srcdiff.frontend.interpreter.representation import leaves_of
from srcdiff.frontend.interpreter.tables import callee, handles, marked
from srcdiff.frontend.source.capture import Captured, capture, plain_function
from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.builder import complex_jacobian, derivative_types
from srcdiff.ir.nodes import Block, Derivative, Function, Program, Value, values_around
from srcdiff.ir.types import Array, is_complex, is_inexact
from srcdiff.library import composed, language
from srcdiff.signature.trees import NODES


def _names(node: ast.FunctionDef | ast.Lambda) -> tuple[str, ...]:
    arguments = node.args
    return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _stars(node: ast.FunctionDef | ast.Lambda) -> dict[str, str]:
    """The star parameters, `*args` and `**kwargs`, as they are written."""
    given = (("*", node.args.vararg), ("**", node.args.kwarg))
    return {a.arg: f"{star}{a.arg}" for star, a in given if a is not None}


def as_passed(node: ast.FunctionDef | ast.Lambda, given: dict[str, Abstract]) -> tuple[Arguments, Keywords]:
    """The arguments in the form of a call: by position where possible, the others by keyword."""
    arguments = node.args
    first = [given[a.arg] for a in (*arguments.posonlyargs, *arguments.args)]
    if arguments.vararg is not None:
        rest = given[arguments.vararg.arg]
        assert isinstance(rest, Tuple)
        first += rest.items
    by_name = {a.arg: given[a.arg] for a in arguments.kwonlyargs}
    if arguments.kwarg is not None:
        others = given[arguments.kwarg.arg]
        assert isinstance(others, Record)
        by_name |= dict(zip(map(str, others.kind.names), others.items, strict=True))
    return first, by_name


_IN_RECURSION = "a derivative is taken inside a recursive function, which is not supported"


@marked("__srcdiff_maker__")
def make_derivative(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """`srcdiff.grad(g, ...)` and similar calls. The differentiated function may be defined in the program itself."""
    if not args:
        reader.refuse("SD304", node, "the first argument of a derivative must be a function")
    options = [plain_option(reader, x, node) for x in args[1:]]
    named = {name: plain_option(reader, x, node) for name, x in keywords.items()}
    captured, names = parameters_of(reader, args[0], node)
    try:
        return Transformed(
            target.__srcdiff_maker__(captured.name, names, _stars(captured.node), *options, **named), args[0]
        )
    except (TypeError, ValueError) as error:
        reader.refuse("SD304", node, str(error))


@marked("__srcdiff_tangents__")
def call_tangent(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """`srcdiff.jvp(f, primals, tangents)`."""
    require_options(reader, keywords, node)
    groups = [x.items for x in args[1:] if isinstance(x, Tuple)]
    if len(args) != 3 or len(groups) != 2:
        reader.refuse("SD304", node, "`jvp` takes a function, a tuple of arguments and a tuple of their tangents")
    function, (primals, tangents) = args[0], groups
    if len(primals) != len(tangents):
        reader.refuse("SD304", node, f"{len(primals)} primals but {len(tangents)} tangents are given")
    chosen = tuple(k for k, t in enumerate(tangents) if not is_none(t))
    if not chosen and not reader.frame.library:
        reader.refuse("SD304", node, "at least one tangent of `jvp` must not be None")
    _, names = parameters_of(reader, function, node)
    derivative = Transformed(target.__srcdiff_tangents__(names, chosen), function)
    return call_derivative(reader, derivative, [*primals, *(tangents[k] for k in chosen)], {}, node)


@marked("__srcdiff_inside__")
def call_inside(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A derivative composed of others: a function of the library, with its first arguments."""
    function, *given = target.__srcdiff_inside__
    known = inspect.signature(function).parameters
    if "backend" in known:
        is_option = {n: n in ("backend", "mode", "directions") or n not in known for n in keywords}
        require_options(reader, {n: x for n, x in keywords.items() if is_option[n]}, node, known)
    return call_plain(reader, function, [*map(Static, given), *args], keywords, node)


def require_options(
    reader: Reader, keywords: dict[str, Abstract], node: ast.AST, known: Collection[str] = ("backend",)
) -> None:
    """Refuse compile options that differ from those of the surrounding function."""
    try:
        require_inside({name: plain_option(reader, x, node) for name, x in keywords.items()}, known)
    except (TypeError, ValueError) as error:
        reader.refuse("SD304", node, str(error))


@handles(language.positions_of)
def call_positions_of(reader: Reader, node: ast.AST, function: Abstract, wrt: Abstract) -> Abstract:
    _, names = parameters_of(reader, function, node)
    chosen = plain_option(reader, wrt, node)
    try:
        each = chosen if isinstance(chosen, tuple) else (chosen,)
        found = [k if isinstance(k, int) else names.index(k) for k in each]
    except ValueError:
        reader.refuse("SD304", node, f"the function has no argument {chosen!r}")
    return Tuple(tuple(map(Static, found))) if isinstance(chosen, tuple) else Static(found[0])


@handles(language.float_positions)
def call_float_positions(reader: Reader, node: ast.AST, items: Abstract) -> Abstract:
    assert isinstance(items, Tuple)
    found = [k for k, x in enumerate(items.items) if has_floats(reader, x)]
    return Tuple(tuple(map(Static, found)))


@handles(language.copied)
def call_copied(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    def copied(leaf: Abstract) -> Abstract:
        if isinstance(leaf, List):
            return list_copy(reader, node, leaf)
        return reader.copy(leaf) if is_array_value(leaf) else leaf

    return NODES.map(copied, x)


def has_floats(reader: Reader, x: Abstract) -> bool:
    """Whether a value is or contains a float."""
    return any(map(functools.partial(holds_floats, reader), NODES.leaves(x)))


def plain_option(reader: Reader, x: Abstract, node: ast.AST) -> Any:
    if isinstance(x, Tuple):
        return tuple(plain_option(reader, i, node) for i in x.items)
    return known_value(reader, x, "an option of a derivative", node)


def parameters_of(reader: Reader, function: Abstract, node: ast.AST) -> tuple[Captured, tuple[str, ...]]:
    """The differentiated function below all derivatives, and the names of its parameters."""
    while isinstance(function, Transformed):
        function = function.function
    if isinstance(function, Closure):
        outer = function.frame
        while outer.captured is None:
            outer = outer.parent
        around = outer.captured
        return Captured(around.function, around.code, function.node, outer.file), _names(function.node)
    target = function.value if isinstance(function, Static) else None
    inner = getattr(target, "__srcdiff_derivative__", None)
    plain = plain_function(target if inner is None else inner.function)
    if plain is None:
        reader.refuse("SD302", node, f"{in_words(reader, function)} cannot be differentiated")
    try:
        return capture(plain), tuple(inspect.signature(plain, follow_wrapped=False).parameters)
    except Refusal as refusal:
        assert refusal.problem is not None
        reader.refuse("SD302", node, refusal.problem.message)


def bound_arguments(
    reader: Reader, function: Abstract, args: Arguments, keywords: Keywords, node: ast.AST
) -> dict[str, Abstract]:
    """All arguments of the differentiated function, by name."""
    while isinstance(function, Transformed):
        function = function.function
    captured, _ = parameters_of(reader, function, node)
    if isinstance(function, Closure):
        defaults = function.defaults
    else:
        reader.guards.add_function(captured.function, captured.code)
        defaults = lift_defaults(reader, captured.function, node)
    return bind_arguments(reader, captured.node, args, keywords, defaults, captured.name, node)


@callee(Transformed)
def call_derivative(
    reader: Reader, derivative: Transformed, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    args, keywords = computed(reader, args, keywords)
    derivation = derivative.derivation
    if any(u.function is None for u in reader.units.values()):
        reader.refuse("SD404", node, _IN_RECURSION, help_="take the derivative outside the recursive function")
    count = len(args) - derivation.takes
    args, further = args[:count], args[count:]
    captured, _ = parameters_of(reader, derivative.function, node)
    given = bound_arguments(reader, derivative.function, args, keywords, node)
    if any(n not in given for n in derivation.wrt):
        message = "a derivative inside another one cannot be taken with respect to an intermediate variable"
        reader.refuse("SD404", node, message, help_="make it an argument of the inner function")
    settle(reader)
    given = {n: with_values(reader, x) for n, x in given.items()}
    given, copied = with_contents_of_objects(reader, given)
    before, reader.stand_ins = reader.state, set()
    used_around, reader.used_objects = reader.used_objects, set()
    inner, pairs, lists = separated_arguments(reader, given, derivation.wrt)
    with reader.block() as operations:
        settle(reader)
        by_position, by_name = as_passed(captured.node, {n: with_lists(reader, x) for n, x in inner.items()})
        at_start = dict(reader.cells)
        result = forced(reader, call_with(reader, derivative.function, by_position, by_name, node))
        settle(reader)
        result = contents_of_result(reader, result, present)
        yields = leaves_of(reader, result, loosened(describe(result)))
    only_reads_around(reader, before.cells, node)
    if copied & reader.used_objects and writes_to_copies(reader, before.cells, at_start):
        message = "the inner function writes to an object that it also reads from outside"
        reader.refuse("SD403", node, message, help_="read it from the argument")
    reader.used_objects |= used_around
    reader.state = replace(before, doubts=reader.state.doubts, same_lists=reader.state.same_lists)
    body, known = Block(tuple(operations), tuple(yields)), dict(pairs)
    chosen = {n: inner[n] for n in derivation.wrt}
    if derivation.jacobian and any(is_complex(v.type) for v in (*yields, *leaves_in(chosen, lists))):
        return jacobian_by_parts(reader, derivative, captured, given, result, node)
    if derivation.holomorphic:
        reader.refuse("SD401", node, "a holomorphic function has complex arguments and complex results")
    try:
        require_differentiable(derivation, chosen, lists, result, captured.span)
    except DifferentiationError as error:
        reader.problems += error.problems
        raise Refusal(None) from None
    params = tuple(v for x in chosen.values() for v in leaves(x, lists))
    tangents = tangent_values(reader, chosen, lists, further, node) if derivation.takes else ()
    keep_apart(reader, Function(captured.name, params, body), known, node)
    has_value = derivation.with_value or derivation.has_aux or bool(derivation.takes)
    taken, kind = tuple(known[p] for p in params), (derivation.jacobian, derivation.directions or 0)
    operation = Derivative((), captured.name, taken, params, body, derivation.mode, tangents, has_value, *kind)
    outs = tuple(Value(type_) for type_ in derivative_types(operation))
    reader.add(replace(operation, outs=outs, span=reader.span))
    if derivation.jacobian:
        form = jacobian_form(result, yields, tuple(chosen.values()), derivation.single)
        return like_result(reader, form, iter(outs))
    return assembled_result(reader, derivation, result, {n: (given[n], x) for n, x in chosen.items()}, lists, outs)


def leaves_in(arguments: dict[str, Abstract], lists: dict[List, Stored]) -> list[Value]:
    return [v for x in arguments.values() for v in leaves(x, lists)]


def jacobian_by_parts(
    reader: Reader,
    derivative: Transformed,
    captured: Captured,
    given: dict[str, Abstract],
    result: Abstract,
    node: ast.AST,
) -> Abstract:
    """A Jacobian of complex numbers, by their real and imaginary parts."""

    def kind(leaf: Abstract) -> Abstract:
        return Static(is_complex(leaf.type)) if isinstance(leaf, Value) else Static(None)

    derivation = derivative.derivation
    kinds = NODES.map(kind, result)
    args, by_name = as_passed(captured.node, given)
    are_numbers = all(isinstance(given[n], Value) for n in derivation.wrt)
    if by_name or not are_numbers or not are_kinds(kinds):
        problem = complex_jacobian(reader.span_of(node))
        reader.refuse("SD404", node, problem.message, help_=problem.help)
    names = _names(captured.node)
    positions = Tuple(tuple(Static(names.index(n)) for n in derivation.wrt))
    options: list[Abstract] = [positions, Static(derivation.single), kinds, Static(derivation.holomorphic)]
    return call_plain(reader, composed.jacobian_by_parts, [derivative.function, *options, *args], {}, node)


def are_kinds(x: Abstract) -> bool:
    """Whether it is a tuple, or tuples in a tuple, of booleans."""
    if isinstance(x, Tuple):
        return x.kind is None and all(map(are_kinds, x.items))
    return isinstance(x, Static) and isinstance(x.value, bool)


@handles(language.jacobian_by_first)
def call_jacobian_by_first(reader: Reader, node: ast.AST, function: Abstract) -> Abstract:
    _, names = parameters_of(reader, function, node)
    return Transformed(Derivation("", names[:1], jacobian=True), function)


def require_differentiable(
    derivation: Derivation, chosen: dict[str, Abstract], lists: dict[List, Stored], result: Abstract, span: Span
) -> None:
    """Refuse arguments without floats, and results without the requested derivative."""
    if derivation.jacobian:
        refuse_lists_in_jacobian((*chosen.values(), result), span)
    for name, x in chosen.items():
        floats_in(name, x, lists, span)
    if derivation.mode == "reverse":
        require_number(result, derivation.has_aux, span)


@marked("__srcdiff_derivative__")
def call_derivative_object(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A derivative object that was created outside."""
    derivative = target.__srcdiff_derivative__
    return call_derivative(reader, Transformed(derivative.derivation, Static(derivative.of)), args, keywords, node)


def only_reads_around(reader: Reader, before: Cells, node: ast.AST) -> None:
    """Refuse an inner function that assigns names of the outer one, because derivatives have no side effects.

    What it writes into objects from outside of the program is undone, as after every call of a derivative.
    """
    outside = {x.number for x in (*reader.lifted.values(), *reader.class_scopes.values()) if isinstance(x, Object)}
    for key in written_around(reader, before):
        if key[0] in outside:
            continue
        if key == DRAWS and not reader.chain:
            continue  # the derivative is the whole program
        if key == DRAWS:
            message = "the inner function draws random numbers, which derivatives inside a function do not support"
            reader.refuse("SD404", node, message, help_="draw the numbers first, and pass them in")
        reader.refuse("SD404", node, f"the inner function assigns `{key[1]}` of the enclosing function")


def writes_to_copies(reader: Reader, before: Cells, at_start: Cells) -> bool:
    """Whether the inner function changed an object that was copied for it."""
    around = {key[0] for key in before if isinstance(key, tuple)}
    copies = {key[0] for key in at_start if isinstance(key, tuple)} - around
    cells = {key: x for key, x in reader.cells.items() if isinstance(key, tuple) and key[0] in copies}
    return any(at_start.get(key) is not x for key, x in cells.items())


def keep_apart(reader: Reader, inner: Function, known: dict[Value, Value], node: ast.AST) -> None:
    """If the inner function writes into an argument array, no other argument may share its memory."""
    around = [v for v in values_around(inner.body, inner.params) if isinstance(v.type, Array)]
    arrays = [*(p for p in inner.params if isinstance(p.type, Array)), *around]
    units = tuple(u.function for u in reader.units.values() if u.function is not None)
    main = mark_writing_calls(Program(replace(inner, params=(*inner.params, *around)), units)).main
    written = written_sites(main.body, points_to(main))
    for a in (p for p in arrays if p in written):
        for b in arrays:
            if a is not b and not reader.disjoint(known.get(a, a), known.get(b, b)):
                message = "the inner function writes to an array that may share memory"
                reader.refuse("SD403", node, f"{message} with another array that it reads")


def tangent_values(
    reader: Reader, chosen: dict[str, Abstract], lists: dict[List, Stored], given: list[Abstract], node: ast.AST
) -> tuple[Value, ...]:
    """The arguments of the derivative after those of the function: tangents of the floats in them."""
    taken = [tangent_beside(x, lists, f"{name}_dot") for name, x in chosen.items()]
    found: list[Value] = []

    def opened(x: Parts, y: Abstract, _: str) -> tuple[Abstract, ...]:
        y = as_record(reader, y) if isinstance(y, List) and is_of_structures(reader, y) else y
        parts = y.items if isinstance(y, Group) else ()
        if len(parts) != len(x.items):
            reader.refuse("SD203", node, "a tangent does not have the structure of its argument")
        return parts

    pairs = [NODES.beside(x, y, "", opened) for x, y in zip(taken, given, strict=True)]
    for x, y in ((part.value, y) for each in pairs for part, y in each):
        if isinstance(x, Value):
            value = (
                the_array(reader, y, node)
                if isinstance(x.type, Array)
                else reader.cast(as_number(reader, y, node), x.type)
            )
            if value.type != x.type:
                message = f"a tangent is {in_words(reader, y)}, but its argument is {in_words(reader, x)}"
                reader.refuse("SD203", node, message)
            found.append(reader.copy(value) if isinstance(value.type, Array) else value)  # the function may return it
    return tuple(found)


def assembled_result(
    reader: Reader,
    derivation: Derivation,
    x: Abstract,
    arguments: dict[str, tuple[Abstract, Abstract]],
    lists: dict[List, Stored],
    outs: tuple[Value, ...],
) -> Abstract:
    """The result of the derivative in the form of the user's code, for a function that returns `x`.

    `arguments` are those to differentiate by, in their outer and inner forms.
    """
    values = iter(outs)
    if derivation.mode == "forward":
        count = len(outs) // 2
        pairs = zip(are_lengths(x), outs[:count], outs[count:], strict=True)
        tangents = [out if is_length else tangent for is_length, out, tangent in pairs]  # lengths keep their value
        value, tangent = like_result(reader, x, values), like_result(reader, x, iter(tangents))
        return Tuple((value, tangent)) if derivation.with_value else tangent
    kept = derivation.with_value or derivation.has_aux
    result = like_result(reader, x, values) if kept else None
    bars = [like_argument(reader, given, inner, lists, values) for given, inner in arguments.values()]
    gradient = bars[0] if derivation.single else Tuple(tuple(bars))
    if result is None:
        return gradient
    if derivation.with_value:
        return Tuple((result, gradient))
    assert isinstance(result, Tuple)
    return Tuple((gradient, result.items[1]))


def like_result(reader: Reader, x: Abstract, values: Iterator[Value]) -> Abstract:
    def leaf(x: Abstract) -> Abstract:
        if isinstance(x, Stored):
            arrays = tuple(next(values) for _ in x.arrays)
            return new_list(reader, Stored(x.element, arrays, next(values)))
        return next(values) if is_computed(x) else x

    found: Abstract = NODES.fold(x, leaf, functools.partial(with_new_list, reader))
    return found


def like_argument(
    reader: Reader, x: Abstract, inner: Abstract, lists: dict[List, Stored], values: Iterator[Value]
) -> Abstract:
    x = as_record(reader, x) if isinstance(x, List) and isinstance(inner, Record) else x
    if isinstance(inner, Group) and isinstance(x, Group):
        items = [like_argument(reader, a, b, lists, values) for a, b in zip(x.items, inner.items, strict=True)]
        return with_lists(reader, inner.remade(items))
    if not isinstance(inner, List | Value) or (isinstance(inner, Value) and not is_inexact(inner.type)):
        return Static(None)  # no floats
    if isinstance(inner, List):
        stored = lists[inner]
        return new_list(reader, Stored(stored.element, tuple(next(values) for _ in stored.arrays), stored.length))
    found = next(values)
    if isinstance(found.type, Array) and isinstance(x, Value):
        reader.made(found, reader.keys(x))
        reader.contiguous.discard(found)
    return found
