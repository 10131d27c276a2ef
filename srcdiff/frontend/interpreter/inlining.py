"""Calls of functions with source code are inlined."""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from srcdiff.diagnostics import Problem, Span
from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    Closure,
    Group,
    Keywords,
    List,
    Poison,
    Stored,
    Tuple,
)
from srcdiff.frontend.domain.lattice import arrays_in, describe, loosened, objects_in
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Frame, Hopeless, RecursionFound
from srcdiff.frontend.interpreter.dictionaries import is_changing
from srcdiff.frontend.interpreter.generators import made_generator
from srcdiff.frontend.interpreter.growth import (
    Argument,
    Called,
    Growing,
    how_it_grows,
    size,
    steps_without_end,
    too_large,
    without_end,
)
from srcdiff.frontend.interpreter.list_storage import contents_of_list
from srcdiff.frontend.interpreter.made_dictionaries import made_dictionary
from srcdiff.frontend.interpreter.materialization import forced, settle
from srcdiff.frontend.interpreter.presence import checked
from srcdiff.frontend.interpreter.recursion import call_recursive, kind_of
from srcdiff.frontend.interpreter.statements import run_body, values_in
from srcdiff.frontend.reading import Passed
from srcdiff.frontend.source.scopes import inner_scopes, scopes_of, yields
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array
from srcdiff.signature.trees import NODES

_MOST_NESTED = 60
"""The maximum depth of calls."""


_MOST_INLINED = 12
"""The maximum number of recursive calls whose lists of known length get shorter or longer each time."""


def call_closure(reader: Reader, closure: Closure, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    name = getattr(closure.node, "name", "lambda")
    bound = bind_arguments(reader, closure.node, args, keywords, closure.defaults, name, node)
    outer = closure.frame
    told = None if outer.told is None else outer.told.inside()
    frame = Frame(None, closure.node, outer.file, name, outer, *scopes_of(closure.node), outer.library, told)
    return enter_call(reader, (closure.node, outer), frame, bound, node)


def enter_call(reader: Reader, function: Any, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Abstract:
    """Read the function's body in its own frame. Its return value is the value of the call."""
    if yields(frame.node):
        return made_generator(reader, function, frame, bound)
    if reader.context.implemented:  # some functions have other meanings there
        function = (function, reader.context.implemented)
    with one_deeper(reader, frame, bound, node):
        # lists of unknown length have one type for all lengths; lists of known length get shorter each time
        contents = {n: contents_of_list(reader, x) if isinstance(x, List) else x for n, x in bound.items()}
        given = [c if isinstance(c, Stored) else bound[n] for n, c in contents.items()]
        identity = (function, tuple(loosened(describe(x)) for x in given))
        if not frame.library:
            settle(reader)
        kind = (function, tuple(kind_of(reader, x) for x in given))
        if identity in reader.recursive or kind in reader.recursive:
            return call_recursive(reader, function, frame, bound, node)
        if any(identity == active for active, _ in reader.context.active_calls):
            raise RecursionFound(identity)
        if sum(kind == active for _, active in reader.context.active_calls) > _MOST_INLINED:
            raise RecursionFound(kind)
        if len(reader.context.active_calls) > _MOST_NESTED:
            raise too_deep(reader.span_of(node))
        mark = reader.mark()
        try:
            return read_inline(reader, (identity, kind), frame, bound, node)
        except RecursionFound as found:
            outermost = found.identity == kind and all(kind != active for _, active in reader.context.active_calls)
            if found.identity != identity and not outermost:
                raise
            recursive = found.identity
        reader.go_back(mark)
        reader.recursive.add(recursive)
        return call_recursive(reader, function, frame, bound, node)


@contextlib.contextmanager
def one_deeper(reader: Reader, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Iterator[None]:
    """Read a nested call. Refuse calls that are nested without end."""
    depth = len(reader.chain)
    if not frame.library:
        reader.chain.append(call_record(reader, frame, bound, node))
    try:
        yield
    except RecursionError:
        reader.deepest = reader.deepest or reader.span
        if depth:
            raise  # no stack is left for an error message
        raise too_deep(reader.deepest) from None
    finally:
        del reader.chain[depth:]


def call_record(reader: Reader, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Called:
    """The record of the call, for the list of calls being read."""
    before = next((c for c in reversed(reader.chain) if c.node is frame.node), None)
    sizes = {n: size(x, reader.cells) for n, x in bound.items()}
    if before is not None:
        refuse_growing(reader, frame.name, too_large(before, sizes), bound, node)
    arguments = {n: Argument(x, kind_of(reader, x), describe(x), sizes[n]) for n, x in bound.items()}
    if before is None:
        return Called(frame.node, arguments)
    steps = steps_without_end(before, arguments)
    refuse_growing(reader, frame.name, without_end(before, arguments, steps), bound, node)
    return Called(frame.node, arguments, steps)


def refuse_growing(
    reader: Reader, function: str, grown: Growing | None, bound: dict[str, Abstract], node: ast.AST
) -> None:
    """Refuse a call with new argument types, after too many such calls."""
    if grown is None:
        return
    span = reader.span if reader.frame.library else reader.span_of(node)
    made = sorted({o.kind.__name__ for o in objects_in(bound[grown.name]) if not is_changing(o)})
    if made and not grown.is_larger:
        message = (
            f"`{function}` makes an instance of `{made[0]}`, whose attributes are assigned, and passes it to itself"
        )
        help_ = "pass the attributes as numbers, or write a loop"
        raise Hopeless(Problem("SD305", message, span, help=help_))
    message = f"`{function}` calls itself with a new type of `{grown.name}` each time, so compilation would never end"
    label, help_ = how_it_grows(bound[grown.name], grown.is_larger)
    problem = Problem("SD308", message, span, f"`{grown.name}` {label}", help=help_.format(function=function))
    raise Hopeless(problem)


def too_deep(span: Span | None) -> Hopeless:
    return Hopeless(Problem("SD308", "the calls are nested too deeply", span))


def read_inline(
    reader: Reader, identity: tuple[Any, Any], frame: Frame, bound: dict[str, Abstract], node: ast.AST
) -> Abstract:
    if not frame.library:
        settle(reader)
    outer, span, calls = reader.frame, reader.span, reader.context.active_calls
    if frame is not outer and not frame.library:
        reader.handed_over += [Passed(frame.name, n, v, span) for n, x in bound.items() for v in values_in(x)]
    reader.cells.update({(frame.number, name): x for name, x in bound.items()})
    try:
        with (
            reader.led_into(frame.file, span if outer.library else reader.span_of(node)),
            reader.at(span),
            reader.within(frame=frame, path=(*reader.path, id(node)), active_calls=(*calls, identity)),
        ):
            result = run_body(reader, frame.node)
    finally:
        if not inner_scopes(frame.node) & {ast.Lambda, ast.FunctionDef, ast.GeneratorExp}:
            reader.forget_frame(frame)
    if frame.library and not outer.library:
        laid_out_somehow(reader, result, bound)
    if isinstance(result, Group) and (frame is outer or not outer.library):  # compute lazy arrays
        result = result.remade(map(functools.partial(forced, reader), result.items))
    return checked(reader, result, f"the result of {frame.name}", node) if isinstance(result, Poison) else result


def laid_out_somehow(reader: Reader, result: Abstract, bound: dict[str, Abstract]) -> None:
    """Results of NumPy's own functions mostly have the memory layout of their arguments."""
    sources = [v for x in bound.values() for v in arrays_of(reader, x)]
    for array in arrays_of(reader, result):
        reader.laid_out_like(array, sources)


def arrays_of(reader: Reader, x: Abstract) -> list[Value]:
    """The arrays that a value is, contains, or is computed from."""
    found = [
        array for y in NODES.leaves(x) for array in arrays_in(contents_of_list(reader, y) if isinstance(y, List) else y)
    ]
    return [array for array in found if isinstance(array.type, Array)]


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def bind_arguments(
    reader: Reader,
    function: ast.FunctionDef | ast.Lambda,
    args: Arguments,
    keywords: Keywords,
    defaults: dict[str, Abstract],
    name: str,
    node: ast.AST,
) -> dict[str, Abstract]:
    """Bind arguments to parameters, as in Python."""
    arguments = function.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    bound: dict[str, Abstract] = dict(zip(positional, args, strict=False))
    extra = args[len(positional) :]
    if arguments.vararg is not None:
        bound[arguments.vararg.arg] = Tuple(tuple(extra))
    elif extra:
        takes = counted(len(positional), "argument")
        reader.refuse("SD304", node, f"`{name}` takes {takes}, but {len(args)} are given")
    names = {*positional, *(a.arg for a in arguments.kwonlyargs)} - {a.arg for a in arguments.posonlyargs}
    others: dict[Any, Abstract] = {}
    for keyword, x in keywords.items():
        if keyword in names and keyword in bound:
            reader.refuse("SD304", node, f"`{name}` gets `{keyword}` by position and by keyword")
        if keyword not in names and arguments.kwarg is None:
            reader.refuse("SD304", node, f"`{name}` has no parameter `{keyword}`")
        (bound if keyword in names else others)[keyword] = x
    if arguments.kwarg is not None:
        bound[arguments.kwarg.arg] = made_dictionary(reader, others, function, node)
    for parameter in (*positional, *(a.arg for a in arguments.kwonlyargs)):
        if parameter not in bound:
            if parameter not in defaults:
                reader.refuse("SD304", node, f"`{name}` needs an argument for `{parameter}`")
            bound[parameter] = defaults[parameter]
    return bound
