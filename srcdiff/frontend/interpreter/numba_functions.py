"""Functions compiled by Numba: their declared types and options are respected.

    @njit("float64(int64)")          the argument `n` is converted first: a float loses its fraction, and with it
    def f(n):                        its derivative
        return 2.5 * n

Without a signature and declared types of variables, nothing changes.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

from numba.core import types

from srcdiff.diagnostics import Problem, Refusal, Span
from srcdiff.diagnostics.naming_objects import declared_as, instead_of_call, is_installed
from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Keywords, Static, Tuple
from srcdiff.frontend.domain.lattice import describe, leaf_types, loosened
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Frame
from srcdiff.frontend.interpreter.declared_functions import rule_declared_for, with_instance
from srcdiff.frontend.interpreter.evaluation import by_position, call_with, is_library
from srcdiff.frontend.interpreter.inlining import bind_arguments, enter_call
from srcdiff.frontend.interpreter.instances import written_around
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.numba_types import ANY_TYPES, as_told, refuse_told
from srcdiff.frontend.interpreter.outside import lift_defaults
from srcdiff.frontend.interpreter.representation import fresh_values, leaves_of
from srcdiff.frontend.source.capture import Captured, capture, plain_function
from srcdiff.frontend.source.guards import Attribute, Constant, Summary
from srcdiff.frontend.source.numba_options import (
    Told,
    fitting,
    implementation,
    is_replaced,
    results,
    settings,
    spelled,
    type_of,
)
from srcdiff.frontend.source.scopes import scopes_of
from srcdiff.ir.nodes import Block, Custom, Value
from srcdiff.ir.types import Scalar, is_float


def enter_captured(
    reader: Reader, captured: Captured, frame: Frame, bound: dict[str, Abstract], node: ast.AST | None
) -> Abstract:
    """Read the body of a function with the semantics of its Numba options."""
    told = captured.told
    where = captured.node if node is None else node
    if told is None:
        return enter_call(reader, captured.function, frame, bound, where)
    ask_for(reader, told)
    bound = {n: bound[n] for n in inspect.signature(captured.function, follow_wrapped=False).parameters}
    decorator, span = decorator_span(captured), reader.span
    with reader.at(decorator):
        if told.compiler:
            why = f"`{captured.name}` is compiled with `pipeline_class={told.compiler}`, which may change its results"
            refuse_told(reader, why, "remove `pipeline_class`")
        signatures = signatures_for(reader, captured, told, bound, span if node is not None else decorator)
        if told.signatures is not None:
            taken = zip(bound.items(), signatures[0].args, strict=True)
            bound = {n: as_told(reader, x, t, f"`{n}`", captured) for (n, x), t in taken}
        for name, type_ in told.variables:
            if name in bound:
                bound[name] = as_told(reader, bound[name], type_, f"`{name}`", captured)
    plain = not told.variables and not told.error_model
    result = enter_call(reader, captured.function if plain else (captured.function, told), frame, bound, where)
    return returned_by(reader, result, signatures, captured, told)


def decorator_span(captured: Captured) -> Span:
    """The span of the decorator with the Numba options."""
    node = captured.node
    of: ast.AST = next(iter(getattr(node, "decorator_list", ())), node)
    line, column = getattr(of, "lineno", 1), getattr(of, "col_offset", 0)
    end = getattr(of, "end_col_offset", column) if getattr(of, "end_lineno", line) == line else 10_000
    return Span(captured.file, line, column, end, captured.name)


def ask_for(reader: Reader, told: Told) -> None:
    """Record the requirements of the functions on the generated code. The strictest one applies."""
    asked = told.options
    if "fastmath" in asked:
        asked["fastmath"] &= reader.told_options.get("fastmath", asked["fastmath"])
    reader.told_options |= asked
    dispatcher = Constant(told.dispatcher)
    reader.guards.add(Attribute(dispatcher, "_can_compile"), told.dispatcher._can_compile)
    if told != Told():
        reader.guards.add(Summary(settings, dispatcher), settings(told.dispatcher))


def signatures_for(
    reader: Reader, captured: Captured, told: Told, bound: dict[str, Abstract], span: Span | None
) -> list[Any]:
    """The signature that Numba chooses for the arguments, and all others with the same conversions."""
    given = [type_given(reader, x) for x in bound.values()]
    known = told.dispatcher.nopython_signatures if told.signatures is None else told.signatures
    found = fitting(known, given, told.dispatcher.typingctx)
    if told.signatures is None:  # Numba compiles another one, unless there is one for exactly these types
        return [s for s in found if all(g is None or g == t for g, t in zip(given, s.args, strict=True))]
    if not found or len(results(found)) > 1:
        signatures = " and ".join(f"`{spelled(s)}`" for s in known)
        given_as = ", ".join(f"`{n}`, {in_words(reader, x)}" for n, x in bound.items())
        why = "and the memory layout decides which one Numba calls for" if found else "but it is called with"
        message = f"`{captured.name}` is compiled for {signatures}, {why} {given_as}"
        raise Refusal(Problem("SD304", message, span, help=f"convert the arguments, or {ANY_TYPES}"))
    return found


def type_given(reader: Reader, x: Abstract) -> Any:
    """The type that Numba gives an argument."""
    if isinstance(x, Value) and x in reader.whole:
        return types.int64
    if isinstance(x, Tuple):
        parts = [type_given(reader, i) for i in x.items]
        return None if None in parts else types.BaseTuple.from_types(tuple(parts), x.kind)
    return type_of(describe(x))


def returned_by(reader: Reader, result: Abstract, signatures: list[Any], captured: Captured, told: Told) -> Abstract:
    """The result of a function, converted to the type in its signature."""
    if not signatures:
        return result
    type_ = signatures[0].return_type
    with reader.at(decorator_span(captured)):
        if told.signatures is not None:
            return as_told(reader, result, type_, "the result", captured)
        require_same_kind(reader, result, type_, captured)
    return result


def require_same_kind(reader: Reader, result: Abstract, type_: Any, captured: Captured) -> None:
    """Refuse a function that Numba has compiled to return integers, but that returns floats."""
    found = result.type if isinstance(result, Value) else None
    if isinstance(found, Scalar) and is_float(found) and isinstance(type_, types.Integer | types.Boolean):
        message = f"Numba compiled `{captured.name}` to return {type_} here, but Python returns a float"
        refuse_told(reader, message, "convert the result in the function, and let Numba infer the types")


_PACKAGES = {"scipy": "SciPy", "numpy": "NumPy"}


def call_plain(reader: Reader, function: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A call of a Python function, or of one that Numba compiles."""
    try:
        captured = capture(function)
    except Refusal as refusal:
        problem = refusal.problem
        assert problem is not None
        help_ = "let it return a list" if inspect.isgeneratorfunction(function) else ""
        reader.refuse("SD302", node, problem.message, help_=help_)
    plain = captured.function
    if captured.node.args.kwarg is not None and is_installed(captured.file):
        package = str(getattr(plain, "__module__", "")).partition(".")[0]
        if package in ("scipy", "numpy"):
            spelled = ast.unparse(node.func) if isinstance(node, ast.Call) else captured.name
            message = f"`{spelled}` is not among the functions of {_PACKAGES[package]} that srcdiff reads"
            reader.refuse("SD302", node, message, help_=declared_as(spelled, len(args)))
        message = f"`{captured.name}` is a library function that takes `**` keywords, which is not supported"
        help_ = instead_of_call(plain)[1]
        if hasattr(plain, "__wrapped__"):
            message = f"`{captured.name}` is wrapped by a library decorator, which is not supported"
            help_ = "call the function itself, without the decorator"
        reader.refuse("SD302", node, message, help_=help_)
    if not is_library(plain):
        reader.guards.add_function(plain, captured.code)
    if captured.method is not None:
        reader.guards.add_function(captured.method, captured.method.__code__)
        if rule_declared_for(reader, Static(captured.method)) is not None:
            return call_with(
                reader, Static(captured.method), with_instance(reader, captured, args, node), keywords, node
            )
    bound = bind_arguments(
        reader, captured.node, args, keywords, lift_defaults(reader, plain, node), captured.name, node
    )
    library = is_library(plain)
    around = None if library else reader.frame.told
    if around is not None and captured.told is None and is_replaced(plain):
        given = [type_given(reader, a) for a in args]
        by_name = {n: type_given(reader, a) for n, a in keywords.items()}
        found = None if None in (*given, *by_name.values()) else implementation(plain, given, by_name)
        if found is not None and found is not plain:
            return call_plain(reader, found, args, keywords, node)
        message = f"`{captured.name}` has an `@overload`, so compiled code calls another function"
        reader.refuse("SD307", node, message, help_="call an `@njit` function without an `@overload`")
    told = captured.told or (None if around is None else Told(parallel=around.parallel))
    scopes = scopes_of(captured.node)
    frame = Frame(captured, captured.node, captured.file, captured.name, None, *scopes, library, told)
    return enter_captured(reader, captured, frame, bound, node)


def call_custom(reader: Reader, rule: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A function with a derivative of the user. Its body is read, but not differentiated."""
    function = plain_function(rule.function) or rule.function
    args = by_position(reader, function, getattr(rule.function, "__name__", "function"), args, keywords, node)
    for name in ("function", "adjoint", "tangent"):
        reader.guard(Attribute(Constant(rule), name), getattr(rule, name))
    descriptions = [loosened(describe(a)) for a in args]
    if any(leaf_types(d) is None or d.kind not in ("value", "tuple", "static") for d in descriptions):
        reader.refuse("SD304", node, "a function with a custom rule takes numbers and arrays only")
    values = [v for a, d in zip(args, descriptions, strict=True) for v in leaves_of(reader, a, d)]
    params: list[Value] = []
    inner: list[Abstract] = []
    for k, d in enumerate(descriptions):
        abstract, fresh = fresh_values(reader, d, f"a{k}")
        inner.append(abstract)
        params += fresh
    before = reader.state.cells
    with reader.block() as operations:
        result = forced(reader, call_plain(reader, rule.function, inner, {}, node))
        description = loosened(describe(result))
        yields = leaves_of(reader, result, description)
    for key in written_around(reader, before):
        message = f"a function with a custom rule assigns `{key[1]}`, which is outside of it"
        reader.refuse("SD304", node, message, help_="let it return what it computes")
    reader.update(cells=before)
    types = leaf_types(description)
    if types is None or description.kind not in ("value", "tuple"):
        reader.refuse("SD304", node, "a function with a custom rule must return numbers, arrays, or a tuple of these")
    out, outs = fresh_values(reader, description, "out")
    body = Block(tuple(operations), tuple(yields))
    reader.add(Custom(tuple(outs), tuple(values), tuple(params), body, rule, span=reader.span))
    return out
