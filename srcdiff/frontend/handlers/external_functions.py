"""External functions, which generated code calls without reading them: `srcdiff.external`.

The call is a library call with a name of its own. Its derivative is a rule of library calls too: one for the tangent;
one for the adjoints of all arguments, or, with differences, one for each argument, so that unused ones are dead code.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Keywords, List, Own, Static, Tuple, is_none
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.evaluation import by_position, call_value
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.library_calls import library_call, opaque_argument
from srcdiff.frontend.interpreter.tables import handles_kind
from srcdiff.ir.nodes import Block, Custom, Function, Library, Value
from srcdiff.ir.types import Array, Scalar, is_float
from srcdiff.ir.written_rules import WrittenRule
from srcdiff.library import language
from srcdiff.library.blas_lapack import LibraryCall, call_out
from srcdiff.library.call_outs import CallOut, Kind
from srcdiff.library.externals import External, Path


@handles_kind(External)
def call_external(reader: Reader, target: External, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    args = by_position(reader, target.function, target.__name__, args, keywords, node)
    values: list[Value] = []
    paths: list[Path] = []
    texts = []
    for k, x in enumerate(args):
        paths += _paths(x, (k,))
        try:
            texts.append(opaque_argument(reader, x, values, node)[1])
        except NotImplementedError:
            help_ = "pass numbers, arrays, constants and tuples of them"
            reader.refuse(
                "SD203",
                node,
                f"`{target.__name__}` is called with {in_words(reader, x)}, which is not supported",
                help_=help_,
            )
    if any(isinstance(v.type, Array | Scalar) and v.type.dtype.startswith("complex") for v in values):
        help_ = "pass its real and imaginary parts: `.real`, `.imag`"
        message = f"`{target.__name__}` is called with complex numbers, which is not supported"
        reader.refuse("SD201", node, message, help_=help_)
    shapes, is_several = _shapes(reader, target, args, node)
    kinds = tuple((target.dtype, len(shape)) for shape in shapes)
    text = ", ".join(texts)
    row = _row(target.value_call(kinds), text, values, kinds)
    if not target.has_derivative:
        found = library_call(reader, row, list(values), node)
    else:
        params = [Value(v.type, v.name) for v in values]
        with reader.block() as operations:
            inner = library_call(reader, row, list(params), node)
        yields = inner.items if isinstance(inner, Tuple) else (inner,)
        outs = tuple(y for y in yields if isinstance(y, Value))
        floats = [p for p, v in zip(paths, values, strict=True) if is_float(v.type)]
        rule = _rule(target, text, values, floats, kinds, len(args))
        made = tuple(Value(y.type) for y in outs)
        reader.add(Custom(made, tuple(values), tuple(params), Block(tuple(operations), outs), rule, span=reader.span))
        for out in made:
            if isinstance(out.type, Array):
                reader.made(out, tuple(("d", out, axis) for axis in range(out.type.rank)))
                reader.contiguous.discard(out)
        found = made[0] if len(made) == 1 else Tuple(made)
    items = found.items if isinstance(found, Tuple) else (found,)
    for item, shape in zip(items, shapes, strict=True):
        for axis, size in enumerate(shape):
            if not is_none(size) and isinstance(item, Value):
                shape_differs = Static(f"`{target.__name__}` returned an array of another shape than its `shape` says")
                call_value(reader, Own(language.agree), [reader.dim(item, axis), size, shape_differs], node)
    return Tuple(tuple(items)) if is_several else items[0]


def _paths(x: Abstract, path: Path) -> list[Path]:
    """The positions of the numbers and arrays, in the order of the arguments."""
    if isinstance(x, Tuple):
        return [p for k, item in enumerate(x.items) for p in _paths(item, (*path, k))]
    return [] if isinstance(x, Static) else [path]


def _shapes(
    reader: Reader, target: External, args: list[Abstract], node: ast.AST
) -> tuple[list[tuple[Abstract, ...]], bool]:
    """The shapes of the results, with None for unknown lengths; and whether there are several results."""
    if callable(target.shape):
        found = call_value(reader, Static(target.shape), list(args), node)
        if isinstance(found, List):
            found = call_value(reader, Static(tuple), [found], node)
        items = found.items if isinstance(found, Tuple) else (found,)
        if any(isinstance(i, Tuple) for i in items):
            return [i.items if isinstance(i, Tuple) else (i,) for i in items], True
        return [tuple(items)], False
    several = isinstance(target.shape, list)
    return [tuple(map(Static, shape)) for shape in (target.shape if several else [target.shape])], several


def _row(call: CallOut, text: str, values: Sequence[Value], kinds: tuple[Kind, ...]) -> LibraryCall:
    ranks = [v.type.rank if isinstance(v.type, Array) else 0 for v in values]
    return call_out(call, f"{{call}}({text})", ranks, kinds)


def _rule(
    target: External, text: str, values: Sequence[Value], floats: Sequence[Path], kinds: tuple[Kind, ...], count: int
) -> object:
    """The derivative as functions of the IR, which consist of calls. `count` is the number of arguments."""

    def like(v: Value) -> Value:
        return Value(v.type, v.name)

    def kind_of(v: Value) -> Kind:
        return (v.type.dtype, v.type.rank) if isinstance(v.type, Array) else (_dtype(v), 0)

    def call(of: CallOut, results: tuple[Kind, ...], given: Sequence[Value], more: int) -> Library | Custom:
        first = len(values)
        slots = ", ".join(f"{{{first + k}}}" for k in range(more))
        whole = f"{text}, {slots}" if text else slots
        row = _row(of, whole, given, results)
        if target.second_differences is None or target.is_derivative:
            return Library(tuple(_of_kind(k) for k in results), row.key or row.name, tuple(given))
        params = tuple([like(v) for v in given])
        inner = Library(tuple(_of_kind(k) for k in results), row.key or row.name, params)
        all_floats = [*floats, *((count + k,) for k, v in enumerate(given[first:]) if is_float(v.type))]
        rule = _rule(target.differentiable(of), whole, given, all_floats, results, count + more)
        outs = tuple([_of_kind(k) for k in results])
        return Custom(outs, tuple(given), params, Block((inner,), inner.outs), rule)

    given = [v for v in values if is_float(v.type)]
    outs = [_of_kind(k) for k in kinds]
    args, results, seeds = [like(v) for v in values], [like(v) for v in outs], [like(v) for v in outs]
    together = [list(zip(floats, given, strict=True))]
    groups = together if target.vjp is not None else [[pair] for pair in together[0]]
    calls = []
    for group in groups:
        of_group = tuple(kind_of(v) for _, v in group)
        of = target.adjoint_call(of_group, tuple(path for path, _ in group), len(kinds))
        more = [*results, *seeds] if target.reads_results else seeds
        calls.append(call(of, of_group, [*args, *more], len(more)))
    bars = tuple(out for c in calls for out in c.outs)
    adjoint = Function(f"{target.__name__}_vjp", (*args, *results, *seeds), Block(tuple(calls), bars))
    args, results, dots = [like(v) for v in values], [like(v) for v in outs], [like(v) for v in values]
    moved = [d for d in dots if is_float(d.type)]
    of = target.tangent_call(kinds, tuple(floats), len(kinds))
    more = [*results, *moved] if target.reads_results else moved
    pushed = call(of, kinds, [*args, *more], len(more))
    tangent = Function(f"{target.__name__}_jvp", (*args, *results, *dots), Block((pushed,), pushed.outs))
    return WrittenRule(adjoint, tangent, tuple(is_float(v.type) for v in values))


def _dtype(v: Value) -> str:
    assert isinstance(v.type, Scalar)
    return v.type.dtype


def _of_kind(kind: Kind) -> Value:
    dtype, rank = kind
    return Value(Array(np.dtype(dtype).name, rank) if rank else Scalar(dtype))
