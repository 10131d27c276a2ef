"""Programs of the library whose adjoints and tangents the library writes in terms of derivatives of a piece.

    states = steps(start)                        n steps of an equation
    adjoint: bar = states_bar[n]; for each step, backwards: bar, p_bar = pullback of the step at its state, from bar

The piece, here a step, is read with the outside values that it uses, including those of closures in the user's
function. Each call of `pull` or `push` in the adjoint or the tangent is the derivative of the piece at one place, with
respect to one argument and to all outside floats.
"""

from __future__ import annotations

import ast
from dataclasses import field, replace
from typing import Any

from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Keywords, Own, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.handlers.implicit_functions import Blocks
from srcdiff.frontend.interpreter.array_conversion import the_array
from srcdiff.frontend.interpreter.evaluation import call_value
from srcdiff.frontend.interpreter.materialization import forced, settle
from srcdiff.frontend.interpreter.numbers import as_number, is_array
from srcdiff.frontend.interpreter.tables import handles, marked
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import inline
from srcdiff.ir.nodes import Block, Custom, Value
from srcdiff.ir.types import Array
from srcdiff.ir.written_rules import WrittenRule
from srcdiff.library import composed, language
from srcdiff.quick_dataclasses import dataclass


@handles(language.with_derivative)
def call_with_derivative(
    reader: Reader,
    node: ast.AST,
    what: Abstract,
    run: Abstract,
    piece: Abstract,
    backward: Abstract,
    forward: Abstract,
    start: Abstract,
    fixed: Abstract,
    constants: Abstract = Tuple(()),
) -> Abstract:
    assert isinstance(what, Static)
    start = the_array(reader, start, node)
    blocks = Blocks(reader, node, start, what.value)
    body = blocks.block(lambda: _items(reader, call_value(reader, run, [start], node), node))
    outs = tuple([_new(reader, y) for y in body.yields])
    bars = tuple([blocks.beside(out, "bar") for out in outs])
    first = Piece(blocks, piece, set(_items(reader, constants, node)))
    taken = first.takes(_items(reader, fixed, node), node)
    assert not set(taken) & {start, *outs, *bars}  # the start is a copy

    def backwards(pull: Piece, zeros: list[Abstract]) -> list[Value]:
        given: list[Abstract] = [Own(pull), Tuple(tuple(zeros)), Tuple(outs), Tuple(bars)]
        found = call_value(reader, backward, given, node)
        assert isinstance(found, Tuple)
        start_bar, others = found.items
        return [the_array(reader, start_bar, node), *_items(reader, others, node)]

    zeros_like = Static(language.zeros_like)
    adjoint = blocks.block(
        lambda: backwards(replace(first, taken=taken), [call_value(reader, zeros_like, [v], node) for v in taken])
    )
    own = {start, *outs, *bars}
    args = (start, *(v for v in dict.fromkeys((*taken, *blocks.around(body, adjoint))) if v not in own))
    dots = {v: blocks.dot(v) for v in args}

    def forwards() -> list[Value]:
        push = replace(first, taken=taken, dots=tuple([dots[v] for v in taken]))
        return _items(reader, call_value(reader, forward, [Own(push), Tuple(outs), dots[start]], node), node)

    tangent = blocks.block(forwards)
    rule = WrittenRule(
        blocks.function("adjoint", (*args, *outs, *bars), adjoint),
        blocks.function("tangent", (*args, *outs, *dots.values()), tangent),
        tuple(k <= len(taken) for k in range(len(args))),
    )
    params = tuple(Value(v.type, v.name) for v in args)
    builder = Builder()
    yields = inline(blocks.function("run", args, body), list(params), builder)
    settle(reader)
    reader.add(Custom(outs, args, params, Block(tuple(builder.operations), tuple(yields)), rule, span=reader.span))
    return Tuple(outs)


def _items(reader: Reader, x: Abstract, node: ast.AST) -> list[Value]:
    """The numbers and arrays in a tuple."""
    assert isinstance(x, Tuple)
    items = [forced(reader, item) for item in x.items]
    return [the_array(reader, i, node) if is_array(i) else as_number(reader, i, node) for i in items]


@dataclass(eq=False)
class Piece:
    """The derivative of a piece of the program, as a function that the library can call at any place."""

    blocks: Blocks
    function: Abstract
    constants: set[Value]
    """Outside values without a derivative."""
    taken: list[Value] = field(default_factory=list)
    """The outside floats that the piece reads."""
    dots: tuple[Value, ...] | None = None
    """The tangents of these floats in forward mode."""

    __srcdiff_piece__ = True

    def takes(self, fixed: list[Value], node: ast.AST) -> list[Value]:
        """The outside floats that the piece reads, for `fixed` with the types of its first arguments."""
        reader = self.blocks.reader
        given = [reader.register(Value(v.type)) for v in fixed]
        y = self.blocks.like("y")
        inner = self.blocks.block(lambda: _items(reader, call_value(reader, self.function, [*given, y], node), node))
        return self.blocks.floats_around(inner, (*self.constants, *given, y))

    def derivative(self, fixed: Tuple, y: Abstract, seeds: Abstract, node: ast.AST) -> Abstract:
        reader, blocks = self.blocks.reader, self.blocks
        fixed_values = _items(reader, fixed, node)
        y = reader.copy(the_array(reader, y, node))  # reads of a view become reads of the array below it
        seed_values = _items(reader, seeds, node) if self.dots is None else [the_array(reader, seeds, node)]
        seed_values = [reader.copy(v) if isinstance(v.type, Array) else v for v in seed_values]

        def evaluated() -> list[Value]:
            found = call_value(reader, self.function, [*fixed_values, y], node)
            if self.dots is not None:
                return _items(reader, found, node)
            bars = Tuple(tuple(seed_values))
            return [as_number(reader, call_value(reader, Static(composed.paired), [found, bars], node), node)]

        inner = blocks.block(evaluated)
        known = {*self.constants, *fixed_values, *seed_values, y}
        around = blocks.floats_around(inner, tuple(known))
        assert set(around) <= set(self.taken), "the piece reads other outside values than before"
        if self.dots is None:
            return Tuple(blocks.derivative(inner, (y, *self.taken), "reverse"))
        outs = blocks.derivative(inner, (y, *self.taken), "forward", (*seed_values, *self.dots))
        count = len(inner.yields)
        return Tuple((Tuple(outs[:count]), Tuple(outs[count:])))


def _new(reader: Reader, like: Value) -> Value:
    """A result of which only the type is known."""
    out = Value(like.type, like.name)
    assert isinstance(out.type, Array)
    return reader.made(out, tuple(("d", out, axis) for axis in range(out.type.rank)))


@marked("__srcdiff_piece__")
def call_piece(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    fixed, y, seeds = args
    assert isinstance(target, Piece) and isinstance(fixed, Tuple)
    return target.derivative(fixed, y, seeds, node)
