"""Expressions: the text of a value, with the parentheses that it needs, and where each line of the text comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from srcdiff.diagnostics import Span
from srcdiff.emit.head import Objects, name_of
from srcdiff.emit.layout import Layout, lay_out
from srcdiff.emit.naming import give_names
from srcdiff.emit.spelling import Spelling
from srcdiff.emit.stack_groups import together
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Call,
    Const,
    Coordinate,
    Dim,
    Function,
    Index,
    Load,
    NewAxis,
    NewStack,
    Operation,
    Pop,
    Slice,
    Transpose,
    Value,
    walk,
)
from srcdiff.ir.primitives import ATOM, PRIMITIVES
from srcdiff.ir.types import BOOL, FLOAT, INT, Scalar, Stack, is_inexact
from srcdiff.quick_dataclasses import dataclass

_UNARY_MINUS = 50

IN_PLACE = {
    "add": "+=",
    "subtract": "-=",
    "multiply": "*=",
    "divide": "/=",
    "floor_divide": "//=",
    "remainder": "%=",
}
"""Powers are missing, because Numba recognises a constant exponent only in `x ** 2`, not in `x **= 2`."""
_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}
"""Comparisons, and the same ones with their sides exchanged."""
_OPPOSITE = {"add": "subtract", "subtract": "add"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a generated line comes from."""

    spans: tuple[Span, ...] = ()
    keeps: bool = False
    """Whether the line stores or reads a kept value."""


@dataclass(slots=True)
class Text:
    """The text of a function, and the functions and objects that it needs."""

    lines: list[str] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    """One for each line."""
    support: set[str] = field(default_factory=set)
    objects: Objects = field(default_factory=dict)
    """The objects that the text uses, by their names."""

    def decorate(self, decorator: str) -> None:
        self.lines.insert(0, decorator)
        self.origins.insert(0, Origin())


class Expressions:
    """Writes expressions, and lines of text."""

    def __init__(self, function: Function, reserved: Sequence[str], objects: Objects, spelling: Spelling) -> None:
        self.function, self.objects, self.spelling = function, objects, spelling
        self.layout: Layout = lay_out(function, {*reserved, *objects})
        self.names = give_names(function, self.layout, {*reserved, *objects})
        self.text = Text()
        self.depth = 1
        self.seen: set[tuple[str, int]] = set()
        self.reversing = False
        self.quoted = ""
        """The line of the user that the last comment of the reverse sweep quotes."""
        self.unsigned: set[Operation] = set()
        """Negations that stand in the sign of a sum: `x + -y * z` is written as `x - y * z`."""
        self.arrays = "np"
        """The object that creates new arrays."""
        self.in_thread = False
        """Whether a GPU thread runs the code. The simulator needs the axes of a transposition as a tuple."""
        stored = [o for o in walk(function.body) if isinstance(o, Alloc | NewStack)]
        self.kept = {o.out: o.keeps for o in stored if o.keeps is not None}
        passed = [v for o in walk(function.body) if isinstance(o, Call) for v in o.args]
        self.shared = {v for v in (*function.params, *passed) if isinstance(v.type, Stack)}
        """Stacks that other functions use too."""
        self.groups = together(function, self.shared)
        """The group of each stack of numbers. The first stack of a group has the counter of all."""
        both = [o for o in walk(function.body) if isinstance(o, Apply) and o.primitive == "logical_and"]
        self.chained = {self.layout.inlined.get(v) for o in both for v in o.args}
        """Comparisons that may be parts of one, as in `0 < i and i < n`. They stay as they are."""
        self.own: Span | None = None
        """The source line of the current statement; `around` is that of the branch or loop around it."""
        self.around: Span | None = None
        self.stacked: Span | None = None
        """The source line of the value on the stack that the current statement changes."""
        self.inside: list[Span] = []
        """The source lines of the parts of the current line."""
        self.keeps = False

    def line(self, text: str) -> None:
        code, _, comment = text.partition("  # ")
        if code == comment:  # the comment would repeat the line
            text = code
        self.text.lines.append("    " * self.depth + text)
        spans = [*self.inside, *(s for s in (self.stacked, self.own) if s is not None)]
        if not spans and self.around is not None:
            spans = [self.around]
        self.text.origins.append(Origin(tuple(dict.fromkeys(spans)), self.keeps or self.stacked is not None))
        self.inside, self.keeps = [], False

    def comes_from(self, operation: Operation) -> None:
        """Note the origin of a part of the line. Constants and sizes have no particular origin."""
        if isinstance(operation, Const | Dim):
            return
        if operation.span is not None:
            self.inside.append(operation.span)
        for value in (*operation.uses(), *operation.defines()):
            if value in self.kept:
                self.inside.insert(0, self.kept[value])
                self.keeps = True

    def expression(self, value: Value) -> str:
        return self.strong(value)[0]

    def strong(self, value: Value) -> tuple[str, int]:
        """The text of a value, and the precedence of its operator."""
        operation = self.layout.inlined.get(value)
        if operation is None:
            return self.names[value], ATOM
        return self.formula(operation)

    def formula(self, operation: Operation) -> tuple[str, int]:
        self.comes_from(operation)
        match operation:
            case Const():
                return literal(operation.value, operation.out)
            case Apply():
                return self.apply(operation)
            case Load():
                text = f"{self.names_of(operation.array)}[{self.indices(operation.indices)}]"
                if operation.out.type == INT and operation.array.array.dtype != "int64":
                    text = f"np.int64({text})"
                return text, ATOM
            case Dim():
                return f"{self.names_of(operation.array)}.shape[{operation.axis}]", ATOM
            case Coordinate():
                return self.spelling.coordinates[operation.kind][operation.axis], ATOM
            case Pop():
                return f"{self.names[operation.stack]}[{self.top(operation.stack)}]", ATOM
            case Transpose():
                return self.transpose(operation), ATOM
        raise AssertionError(operation)

    def names_of(self, array: Value) -> str:
        return self.expression(array)

    def indices(self, indices: tuple[Value, ...]) -> str:
        return ", ".join(self.expression(i) for i in indices) if indices else "()"

    def apply(self, operation: Apply) -> tuple[str, int]:
        row = PRIMITIVES[operation.primitive]
        if row.support:
            self.text.support.add(row.support)
        if operation.primitive == "range_length":
            return f"len({self.range(operation.args)})", ATOM
        if operation in self.unsigned:
            return self.strong(operation.args[0])
        if row.strength == ATOM:
            return row.spelling.format(*(self.expression(a) for a in operation.args)), ATOM
        primitive, args = self.turned(operation)
        row, texts = PRIMITIVES[primitive], []
        for k, argument in enumerate(args):
            text, strength = self.strong(argument)
            weak = strength < row.strength or (strength == row.strength and self.needs(primitive, k))
            texts.append(f"({text})" if weak else text)
        return row.spelling.format(*texts), row.strength

    def turned(self, operation: Apply) -> tuple[str, tuple[Value, ...]]:
        """The operation as one would write it: `n > 0` for `0 < n`, and `x - y` for `x + -y`."""
        primitive, args = operation.primitive, operation.args
        if primitive in _MIRRORED and operation not in self.chained and self.is_constant(args[0]):
            return (_MIRRORED[primitive], args[::-1]) if not self.is_constant(args[1]) else (primitive, args)
        if primitive in _OPPOSITE and self.drop_sign(args[1]):
            return _OPPOSITE[primitive], args
        return primitive, args

    def is_constant(self, value: Value) -> bool:
        return isinstance(self.layout.inlined.get(value), Const)

    def drop_sign(self, value: Value) -> bool:
        """Whether a product starts with a negation; if so, it is written without that.

        A floating-point product changes its sign, and nothing else, if one of its factors does. So does a quotient, but
        LLVM reorders sums of quotients in another way, and the last bit of the result may differ.
        """
        operation = self.layout.inlined.get(value)
        while isinstance(operation, Apply) and operation.primitive == "multiply":
            operation = self.layout.inlined.get(operation.args[0])
        if not isinstance(operation, Apply) or operation.primitive != "negative" or not is_inexact(operation.out.type):
            return False
        self.unsigned.add(operation)
        return True

    @staticmethod
    def needs(primitive: str, position: int) -> bool:
        """Whether an argument of the same precedence needs parentheses."""
        if primitive in _MIRRORED or primitive == "where":
            return True
        if primitive == "power":
            return position == 0
        if primitive in ("logical_and", "logical_or", "logical_not"):
            return False
        return primitive == "negative" or position == 1

    def transpose(self, operation: Transpose) -> str:
        array, axes = self.names_of(operation.array), ", ".join(map(str, operation.axes))
        if self.arrays != "np":
            return f"{self.arrays}.transpose({array}, {axes})"
        if operation.axes == tuple(reversed(range(len(operation.axes)))):
            return f"{array}.T"
        return f"{array}.transpose(({axes}))" if self.in_thread else f"{array}.transpose({axes})"

    def item(self, item: Index | Slice | NewAxis) -> str:
        match item:
            case Index():
                return self.expression(item.value)
            case NewAxis():
                return "None"
        start, stop, step = ("" if p is None else self.expression(p) for p in (item.start, item.stop, item.step))
        return f"{start}:{stop}" + (f":{step}" if step else "")

    def range(self, bounds: Sequence[Value]) -> str:
        start, stop, step = (self.expression(b) for b in bounds)
        if step != "1":
            return f"range({start}, {stop}, {step})"
        return f"range({stop})" if start == "0" else f"range({start}, {stop})"

    def top(self, stack: Value) -> str:
        """The variable that counts the elements of a stack."""
        return f"{self.names[self.groups[stack].made[0].out]}_top"

    def named(self, thing: Any) -> str:
        """The name of an object. The text then needs the object."""
        name = name_of(self.objects, thing)
        self.text.objects[name] = thing
        return name

    def part(self, part: Any, *, plain: bool = False) -> str:
        """An argument of `print` or of an exception. With `plain`, NumPy's numbers become Python's."""
        if isinstance(part, Value):
            makers = {"float64": "float", "complex128": "complex", "int64": "int", "bool": "bool"}
            maker = makers.get(part.type.dtype, "") if plain and isinstance(part.type, Scalar) else ""
            return f"{maker}({self.expression(part)})" if maker else self.expression(part)
        if isinstance(part, tuple):
            return f"({', '.join(self.part(p, plain=plain) for p in part)}{',' if len(part) == 1 else ''})"
        return repr(part)

    def negated(self, condition: Value) -> str:
        operation = self.layout.inlined.get(condition)
        if isinstance(operation, Apply) and operation.primitive == "logical_not":
            return self.expression(operation.args[0])
        text, strength = self.strong(condition)
        return f"not {text}" if strength > PRIMITIVES["logical_not"].strength else f"not ({text})"

    def is_false(self, value: Value) -> bool:
        operation = self.layout.inlined.get(value)
        return isinstance(operation, Const) and operation.value is False


def kind_of(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


def _complex_literal(value: complex) -> tuple[str, int]:
    """`2j`, `-2j`, `(1+2j)`, or a call of `complex` where a literal cannot express the value or the sign of a zero."""
    real_is_minus, imag_is_minus = (math.copysign(1.0, part) < 0.0 for part in (value.real, value.imag))
    if math.isfinite(value.real) and math.isfinite(value.imag):
        if value.real == 0.0 and real_is_minus == imag_is_minus:
            return (f"-{-value!r}", _UNARY_MINUS) if imag_is_minus else (repr(value), ATOM)
        if value.real != 0.0 and (value.imag != 0.0 or not imag_is_minus):
            return repr(value), ATOM
    parts = (f'float("{x!r}")' if not math.isfinite(x) else repr(x) for x in (value.real, value.imag))
    return f"complex({', '.join(parts)})", ATOM


def literal(value: Any, out: Value) -> tuple[str, int]:
    if out.type == BOOL or isinstance(value, bool | np.bool_):
        return str(bool(value)), ATOM
    if out.type == INT:
        return str(int(value)), ATOM if value >= 0 else _UNARY_MINUS
    if isinstance(value, complex):
        return _complex_literal(value)
    if out.type == FLOAT or isinstance(value, float):
        if math.isnan(value):
            return "np.nan", ATOM
        if math.isinf(value):
            return ("np.inf", ATOM) if value > 0 else ("-np.inf", _UNARY_MINUS)
    text = repr(float(value))
    return text, _UNARY_MINUS if text.startswith("-") else ATOM
