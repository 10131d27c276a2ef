"""Numba's stencils: kernels that index arrays relative to the place of the result.

    @stencil
    def mean(a):                                 def mean(i0, a):
        return 0.5 * (a[-1] + a[1])      ->          return 0.5 * (a[i0 + -1] + a[i0 + 1])

The rewritten kernel is called in a loop over the places whose neighbours are all inside. The others get `cval`.
"""

from __future__ import annotations

import ast
import copy
import functools
from typing import Any

import numpy as np
from numba.stencils.stencil import StencilFunc

from srcdiff.diagnostics import Problem, Refusal, Span
from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Closure, Keywords, Own, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Frame
from srcdiff.frontend.interpreter.evaluation import call_value, call_with
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.numba_functions import call_plain
from srcdiff.frontend.interpreter.numbers import as_number, is_array
from srcdiff.frontend.interpreter.outside import lift_defaults
from srcdiff.frontend.interpreter.tables import handles_kind
from srcdiff.frontend.source.capture import Captured, capture
from srcdiff.frontend.source.scopes import scopes_of
from srcdiff.ir.nodes import Value
from srcdiff.library.stencil_loops import stencil_loop

_LOOPS = "write the loops over the elements, or slices: `a[1:-1, 2:] + a[1:-1, :-2]`"
Bounds = tuple[tuple[int, int], ...]


@handles_kind(StencilFunc)
def call_stencil(reader: Reader, function: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    captured = capture(function.kernel_ir.func_id.func)
    reader.guards.add_function(captured.function, captured.code)
    names = [a.arg for a in captured.node.args.args]
    options = function.options
    if len(args) != len(names) or set(keywords) - {"out"}:
        message = f"the stencil `{captured.name}` takes {len(names)} positional arguments, and `out`"
        reader.refuse("SD304", node, message, help_="give `neighborhood` to the decorator")
    arrays = {n: a for n, a in zip(names, args, strict=True) if is_array(a)}
    relative = tuple(n for n in arrays if n not in options.get("standard_indexing", ()))
    first = arrays.get(names[0])
    if not isinstance(first, Value) or not relative or relative[0] != names[0]:
        reader.refuse("SD304", node, f"the first argument of the stencil `{captured.name}` must be an array")
    rank = first.array.rank
    kernel, bounds = rewritten(captured, relative, rank)
    given = options.get("neighborhood")
    bounds = bounds if given is None else tuple(tuple(int(end) for end in axis) for axis in given)  # type: ignore[misc]
    if bounds is None:
        message = f"the stencil `{captured.name}` has indices that are not constants, and no `neighborhood`"
        reader.refuse("SD304", node, message, help_="give `neighborhood` to the decorator")
    starts = [-min(0, low) for low, _ in bounds]
    lengths = call_value(reader, Own(np.shape), [first], node)
    assert isinstance(lengths, Tuple)
    for name in relative[1:]:
        require_size(reader, arrays[name], lengths, captured.name, node)
    frame = Frame(captured, captured.node, captured.file, captured.name, None, *scopes_of(captured.node))
    frame.told = reader.frame.told
    closure = Closure(kernel, frame, lift_defaults(reader, captured.function, node))
    counts = []
    for length, (low, high) in zip(lengths.items, bounds, strict=True):
        margin = reader.const(max(0, high) - min(0, low))
        count = reader.apply("subtract", as_number(reader, length, node), margin)
        counts.append(reader.apply("where", reader.apply("less", count, reader.const(0)), reader.const(0), count))
    out = keywords.get("out")
    border = options.get("cval", 0)
    if out is None:
        dtype = kind_of_result(reader, closure, args, rank, node)
        out = forced(reader, call_value(reader, Own(np.full), [lengths, Static(border), Static(np.dtype(dtype))], node))
    elif "cval" in options:
        call_with(reader, Own(np.copyto), [out, Static(border)], {}, node)
    places: list[Abstract] = [Tuple(tuple(map(Static, starts))), Tuple(tuple(counts))]
    return forced(reader, call_plain(reader, stencil_loop, [closure, out, *places, *args], {}, node))


def require_size(reader: Reader, other: Abstract, lengths: Tuple, name: str, node: ast.AST) -> None:
    """Raise if an array that is indexed relatively is smaller than the first one."""
    own = call_value(reader, Own(np.shape), [other], node)
    assert isinstance(own, Tuple)
    if len(own.items) != len(lengths.items):
        reader.refuse("SD304", node, f"the arrays of the stencil `{name}` have different numbers of axes")
    for size, needed in zip(own.items, lengths.items, strict=True):
        smaller = reader.apply("less", as_number(reader, size, node), as_number(reader, needed, node))
        message = "Secondary stencil array does not have the same size as the first stencil input."
        reader.raise_if(smaller, ValueError, message)


def kind_of_result(reader: Reader, closure: Closure, args: list[Abstract], rank: int, node: ast.AST) -> str:
    """The type of what the kernel returns; what is written to find it out is discarded."""
    mark = reader.mark()
    found = as_number(reader, forced(reader, call_value(reader, closure, [*[Static(0)] * rank, *args], node)), node)
    reader.go_back(mark)
    return found.scalar.dtype


@functools.lru_cache(maxsize=256)
def rewritten(captured: Captured, relative: tuple[str, ...], rank: int) -> tuple[Any, Bounds | None]:
    """The kernel with the place of the result as further parameters, and the neighbours that it reads if known."""
    kernel = copy.deepcopy(captured.node)
    rewriter = _Relative(captured, relative, rank)
    body: list[Any] = kernel.body if isinstance(kernel.body, list) else [kernel.body]
    changed = [rewriter.visit(part) for part in body]
    kernel.body = changed if isinstance(kernel, ast.FunctionDef) else changed[0]
    places = [ast.copy_location(ast.arg(name), kernel) for name in rewriter.places]
    kernel.args.args = [*places, *kernel.args.args]
    if isinstance(kernel, ast.FunctionDef):
        kernel.decorator_list = []
    low, high = ([f([0, *ends]) for ends in rewriter.ends] for f in (min, max))
    return ast.fix_missing_locations(kernel), tuple(zip(low, high, strict=True)) if rewriter.is_known else None


class _Relative(ast.NodeTransformer):
    """Adds the place of the result to the indices of some arrays."""

    def __init__(self, captured: Captured, relative: tuple[str, ...], rank: int) -> None:
        self.captured, self.relative, self.rank = captured, relative, rank
        used = {n.id for n in ast.walk(captured.node) if isinstance(n, ast.Name)}
        self.places = [next(n for n in (f"i{k}", f"place_{k}", f"place_of_{k}") if n not in used) for k in range(rank)]
        self.ends: list[list[int]] = [[] for _ in range(rank)]
        self.is_known = True

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not (isinstance(node.value, ast.Name) and node.value.id in self.relative):
            return self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) != self.rank or any(isinstance(p, ast.Slice | ast.Starred) for p in parts):
            self.refuse(node, f"a stencil reads `{ast.unparse(node)}`, which is not one element")
        if not isinstance(node.ctx, ast.Load):
            self.refuse(node, "a stencil writes to its argument")
        for k, part in enumerate(parts):
            try:
                self.ends[k].append(int(ast.literal_eval(part)))
            except (ValueError, TypeError):
                self.is_known = False
        pairs = zip(self.places, parts, strict=True)
        shifted: list[ast.expr] = [ast.BinOp(ast.Name(n, ast.Load()), ast.Add(), self.visit(p)) for n, p in pairs]
        where = shifted[0] if self.rank == 1 else ast.Tuple(shifted, ast.Load())
        for inner in ast.walk(where):
            ast.copy_location(inner, node)
        return ast.copy_location(ast.Subscript(node.value, where, node.ctx), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.relative:
            self.refuse(node, f"a stencil may only read single elements of `{node.id}`")
        return node

    def refuse(self, node: ast.expr, message: str) -> None:
        span = Span(self.captured.file, node.lineno, node.col_offset, node.end_col_offset or 0, self.captured.name)
        raise Refusal(Problem("SD302", message, span, help=_LOOPS))
