"""Implicit functions: results of solvers, whose derivatives are those of the solved equation.

    x = root(r, x0, p)         r(x, p) = 0        adjoint: J^T w = -x_bar, p_bar += w dr/dp        J = dr/dx at x
                                                  tangent: J x_dot = -(dr/dp) p_dot

The solver, the adjoint and the tangent are read here, with the equation inserted from the user's program. All outside
values that they read become arguments of one operation, including those of closures in the user's function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from srcdiff.frontend.domain.abstract_values import Abstract, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.array_conversion import the_array
from srcdiff.frontend.interpreter.evaluation import call_value
from srcdiff.frontend.interpreter.instances import written_around
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.materialization import forced, settle
from srcdiff.frontend.interpreter.numbers import as_number, is_array
from srcdiff.frontend.interpreter.tables import handles
from srcdiff.ir.builder import Builder, derivative_types
from srcdiff.ir.clone import inline
from srcdiff.ir.nodes import (
    Block,
    Call,
    Const,
    Custom,
    Derivative,
    Dim,
    Function,
    Operation,
    Value,
    substituted,
    values_around,
    walk,
)
from srcdiff.ir.types import FLOAT, Array, is_float, is_inexact
from srcdiff.ir.written_rules import WrittenRule
from srcdiff.library import composed, language


@handles(language.implicitly)
def call_implicitly(
    reader: Reader,
    node: ast.AST,
    solver: Abstract,
    weights: Abstract,
    change: Abstract,
    equation: Abstract,
    x0: Abstract,
) -> Abstract:
    x0 = the_array(reader, x0, node) if is_array(x0) else reader.cast(as_number(reader, x0, node), FLOAT)
    reading = Blocks(reader, node, x0)

    def solved() -> list[Value]:
        return [reading.like_start(call_value(reader, solver, [equation, x0], node), "the solution")]

    def pulled_back() -> list[Value]:
        w = reading.like_start(call_value(reader, weights, [equation, x, x_bar], node), "the adjoint")

        def weighted() -> list[Value]:
            residual = reading.like_start(call_value(reader, equation, [x], node), "the residual")
            return [as_number(reader, call_value(reader, Static(composed.paired), [residual, w], node), node)]

        inner = reading.block(weighted)
        params = reading.floats_around(inner, (x, w))
        outs = reading.derivative(inner, params, "reverse") if params else ()
        found.update(zip(params, outs, strict=True))
        return list(outs)

    def pushed_forward() -> list[Value]:
        inner = reading.block(lambda: [reading.like_start(call_value(reader, equation, [x], node), "the residual")])
        params = [p for p in reading.floats_around(inner, (x,)) if p in dots]
        if not params:
            return [call_zeros(reader, x, node)]
        _, r_dot = reading.derivative(inner, params, "forward", [dots[p] for p in params])
        return [reading.like_start(call_value(reader, change, [equation, x, r_dot], node), "the tangent")]

    reading.block(lambda: [reading.like_start(call_value(reader, equation, [x0], node), "the residual")])  # refuses it
    body = reading.block(solved)
    x, x_bar = reading.like("x"), reading.like("x_bar")
    found: dict[Value, Value] = {}
    adjoint = reading.block(pulled_back)
    values = [v for v in reading.around(body, adjoint) if v not in (x0, x, x_bar)]
    args = (x0, *values)
    dots = {v: reading.dot(v) for v in args}
    tangent = reading.block(pushed_forward)
    rule = WrittenRule(
        reading.function("implicit_adjoint", (*args, x, x_bar), adjoint),
        reading.function("implicit_tangent", (*args, x, *dots.values()), tangent),
        tuple(v in found for v in args),
    )
    rule = replace(
        rule,
        adjoint=replace(
            rule.adjoint, body=replace(rule.adjoint.body, yields=tuple(found[v] for v in args if v in found))
        ),
    )
    out = Value(x0.type)
    params = tuple(Value(v.type, v.name) for v in args)
    builder = Builder()
    yields = inline(reading.function("solver", args, body), list(params), builder)
    settle(reader)
    reader.add(Custom((out,), args, params, Block(tuple(builder.operations), tuple(yields)), rule, span=reader.span))
    if isinstance(x0.type, Array):
        reader.made(out, reader.keys(x0))
        reader.contiguous.discard(out)
    return out


def call_zeros(reader: Reader, x: Value, node: ast.AST) -> Value:
    zeros = call_value(reader, Static(language.zeros_like), [x], node)
    return the_array(reader, zeros, node) if isinstance(x.type, Array) else as_number(reader, zeros, node)


class Blocks:
    """Reads blocks of code side by side, from the same state."""

    def __init__(
        self, reader: Reader, node: ast.AST, x0: Value, what: str = "a function that is solved for a root"
    ) -> None:
        self.reader, self.node, self.x0, self.what = reader, node, x0, what

    def block(self, read: Callable[[], list[Value]]) -> Block:
        """The block of operations that `read` writes. It has no side effects."""
        reader = self.reader
        settle(reader)
        before = reader.state
        with reader.block() as operations:
            yields = read()
            settle(reader)
        for key in written_around(reader, before.cells):
            message = f"{self.what} assigns `{key[1]}`, which is outside of it"
            reader.refuse("SD404", self.node, message, help_="let it return what it computes")
        if any(isinstance(o, Call) for operation in operations for o in (operation, *_inside(operation))):
            reader.refuse("SD404", self.node, f"{self.what} calls a recursive function")
        reader.state = replace(before, doubts=reader.state.doubts, same_lists=reader.state.same_lists)
        return Block(tuple(operations), tuple(yields))

    def like_start(self, x: Abstract, what: str) -> Value:
        """A result with the type of the start."""
        reader, wanted = self.reader, self.x0
        x = forced(reader, x)
        if isinstance(wanted.type, Array):
            if isinstance(x, Tuple) or is_array(x):
                found = the_array(reader, x, self.node)
                if found.array.rank == wanted.type.rank and is_float(found.type):
                    for axis in range(wanted.type.rank):
                        language_agrees(reader, found, wanted, axis, what, self.node)
                    return found
        elif not is_array(x) and not isinstance(x, Tuple):
            return reader.cast(as_number(reader, x, self.node), FLOAT)
        message = f"{what} is {in_words(reader, x)}, but the start is {in_words(reader, wanted)}"
        reader.refuse("SD203", self.node, message)

    def like(self, name: str) -> Value:
        """A new value with the shape of the start."""
        return self.beside(self.x0, name)

    def dot(self, of: Value) -> Value:
        return self.beside(of, f"{of.name}_dot")

    def beside(self, of: Value, name: str) -> Value:
        """A new value with the shape of another one."""
        value = self.reader.register(Value(of.type, name))
        if isinstance(of.type, Array):
            self.reader.made(value, self.reader.keys(of))
            self.reader.contiguous.discard(value)
        return value

    def around(self, *blocks: Block) -> list[Value]:
        """The outside values that blocks read. Constants are written again."""
        found = dict.fromkeys(v for block in blocks for v in values_around(block))
        return [v for v in found if v not in self.reader.constants]

    def floats_around(self, block: Block, known: Sequence[Value]) -> list[Value]:
        """The outside values with a derivative. Of some arrays, only the lengths are read."""
        operations = [o for o in walk(block) if not isinstance(o, Dim)]
        yielded = {v for o in operations for inner in o.blocks() for v in inner.yields}
        read = {v for o in operations for v in o.uses()}.union(block.yields, yielded)
        return [v for v in self.around(block) if is_inexact(v.type) and v in read and v not in known]

    def derivative(
        self, body: Block, values: Sequence[Value], mode: str, tangents: Sequence[Value] = ()
    ) -> tuple[Value, ...]:
        """The derivative of a block with respect to outside values."""
        params = {v: Value(v.type, v.name) for v in values}
        inner = substituted(body, lambda v: params.get(v, v))
        has_value = mode == "forward"
        operation = Derivative(
            (), "residual", tuple(values), tuple(params.values()), inner, mode, tuple(tangents), has_value
        )
        outs = tuple(Value(type_) for type_ in derivative_types(operation))
        self.reader.add(replace(operation, outs=outs, span=self.reader.span))
        like = values if mode == "reverse" else ()
        for k, out in enumerate(outs):
            if isinstance(out.type, Array):
                axes = range(out.type.rank)
                self.reader.made(out, self.reader.keys(like[k]) if like else tuple(("d", out, a) for a in axes))
                self.reader.contiguous.discard(out)
            else:
                self.reader.register(out)
        return outs

    def function(self, name: str, params: Sequence[Value], block: Block) -> Function:
        constants: list[Operation] = [
            Const(v, self.reader.constants[v]) for v in values_around(block, params) if v in self.reader.constants
        ]
        return Function(name, tuple(params), Block((*constants, *block.operations), block.yields))


def language_agrees(reader: Reader, found: Value, wanted: Value, axis: int, what: str, node: ast.AST) -> None:
    shapes = [reader.dim(found, axis), reader.dim(wanted, axis)]
    call_value(reader, Static(language.agree), [*shapes, Static(f"{what} and the start have different lengths")], node)


def _inside(operation: Operation) -> list[Operation]:
    return [o for block in operation.blocks() for o in walk(block)]
