"""The program as text; `parse` reads it back.

>>> from srcdiff.ir.builder import Builder
>>> from srcdiff.ir.types import FLOAT, INT, Array
>>> x, i, build = Value(Array("float64", 1), "x"), Value(INT, "i"), Builder()
>>> y = build.apply("multiply", build.load(x, (i,)), build.const(2.0))
>>> build.store(x, (i,), y)
>>> print(show(Function("double", (x, i), Block(tuple(build.operations)), written=(x,))))
double(x%0: float64[:], i%1: int64) writes x%0
    t%2: float64 = x%0[i%1]
    t%3: float64 = 2.0
    t%4: float64 = multiply(t%2, t%3)
    x%0[i%1] = t%4

A value has its name and a number, by first appearance in the function; `t` is a value without a name, and the name `t`
itself is quoted. A definition has a type; the counter of a loop is an `int64`, and a parameter of a loop has the type
of its initial value, unless a type is written. These operations have their own notation:

    t%1: float64 = 2.0                              Const
    t%1: float64 = multiply(x%0, x%0)               Apply
    t%1: float64 = x%0[i%2, j%3]                    Load
    x%0[i%2] += t%1 atomic                          Store
    t%1: int64 = x%0.shape[0]                       Dim
    y%1: float64[:] = view x%0[a%2:b%3, i%4, newaxis, :]
    y%1: float64 = if t%0                           If: its first block, `else`, its second block, unless
                                                    that is empty
    y%1: float64 = for i%2 in range(a%3, b%4, c%5) while until it leaves with p%6 = x%0
                                                    Loop: after `while`, the test, `do`, the body; one more result than
                                                    parameters is the number of iterations
    raise ValueError('negative', format('{} < 0', x%0))
    # a comment

All others are their name and their fields, `alloc shape=(n%1) fill=t%2 grows`: a field with its default value is left
out, and a flag that is set is written as its name. Rules and exceptions are Python objects: they are written as names,
and `objects_in` returns the mapping that the parser needs. Places in the user's source (`span`, `keeps`) are not part
of the text.
"""

from __future__ import annotations

import builtins
import dataclasses
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from srcdiff.diagnostics import Span, printable
from srcdiff.ir.node_methods import words_of
from srcdiff.ir.nodes import (
    Apply,
    Block,
    Call,
    Comment,
    Const,
    Custom,
    Derivative,
    Dim,
    Formatted,
    Function,
    If,
    Index,
    Item,
    Library,
    Load,
    Loop,
    NewAxis,
    Operation,
    Print,
    Program,
    Raise,
    Store,
    Value,
    View,
)
from srcdiff.ir.types import INT

UNNAMED = "t"
"""The name of a value without a name."""

HEADS: dict[type[Operation], tuple[str, str]] = {
    Call: ("function", "args"),
    Library: ("function", "args"),
    Custom: ("rule", "args"),
    Derivative: ("function", "args"),
    Raise: ("exception", "parts"),
    Print: ("", "parts"),
    View: ("array", "items"),
}
"""Fields that are written first, as a call: `raise ValueError('text')`; that of `view x%0[...]` is in brackets."""

LEFT_OUT = frozenset(("Span | None", "Result", "Result | None", "Results", "Block", "Block | None"))
"""Kinds that are not written as fields: places are not part of the text, results come before, blocks below."""

NOTHING: tuple[Any, ...] = (None, ())
"""The value of a field that is left out, if it has no default."""


def show(shown: Function | Program) -> str:
    """The text of a function, or of all functions of a program with an empty line between them."""
    if isinstance(shown, Function):
        return "\n".join(text for text, _ in lines_with_places(shown))
    return "\n\n".join(_texts(shown, References()))


def objects_in(program: Program) -> dict[str, object]:
    """The rules and the exceptions that the text of the program names, for the parser."""
    references = References()
    _texts(program, references)
    return {name: found for found, name in references.names.values()}


def lines_with_places(function: Function) -> list[tuple[str, Span | None]]:
    """The program line by line, with the place in the user's source that each comes from."""
    return [(text, None if operation is None else operation.span) for text, operation in _Lines().function(function)]


def line_of(function: Function, operation: Operation) -> str:
    """The first line of an operation, as in the text of its function."""
    return next(text.strip() for text, found in _Lines().function(function) if found is operation)


def _texts(program: Program, references: References) -> list[str]:
    functions = (program.main, *program.callees)
    return ["\n".join(text for text, _ in _Lines(references).function(f)) for f in functions]


def type_name(operation: type[Operation]) -> str:
    """The name of an operation without its own notation in the text."""
    return operation.__name__.lower()


def word(text: str) -> str:
    """A name; quoted unless it has only letters, digits, underscores and points."""
    return text if re.fullmatch(r"[^\W\d][\w.]*", text) else repr(text)


class References:
    """Names for Python objects; two objects with the same name get different numbers."""

    def __init__(self) -> None:
        self.names: dict[int, tuple[object, str]] = {}

    def name(self, found: object) -> str:
        if id(found) not in self.names:
            name = getattr(found, "__name__", type(found).__name__)
            taken = {given for _, given in self.names.values()}
            number, unique = 1, name
            while unique in taken or getattr(builtins, unique, found) is not found:
                number += 1
                unique = f"{name}.{number}"
            self.names[id(found)] = (found, unique)
        return self.names[id(found)][1]


class _Lines:
    def __init__(self, references: References | None = None) -> None:
        self.references = references or References()
        self.names: dict[Value, str] = {}
        self.lines: list[tuple[str, Operation | None]] = []

    def function(self, function: Function) -> list[tuple[str, Operation | None]]:
        params = self.definitions(function.params)
        written = f" writes {self.several(function.written)}" if function.written else ""
        self.lines.append((f"{word(function.name)}({params}){written}", None))
        self.block(function.body, 1)
        return self.lines

    def block(self, block: Block, depth: int) -> None:
        for operation in block.operations:
            self.add(self.line(operation), depth, operation)
            self.blocks(operation, depth)
        if block.yields:
            self.add(f"yield {self.several(block.yields)}", depth, None)

    def blocks(self, operation: Operation, depth: int) -> None:
        """The blocks of an operation, with a word between them; a second one that is empty is not there."""
        between = "do" if isinstance(operation, Loop) else "else"
        for k, inner in enumerate(operation.blocks()):
            if k and (inner.operations or inner.yields or isinstance(operation, Loop)):
                self.add(between, depth, operation)
            self.block(inner, depth + 1)

    def add(self, text: str, depth: int, operation: Operation | None) -> None:
        self.lines.append(("    " * depth + printable(text), operation))

    # -- values ------------------------------------------------------------------------------------------------------

    def name(self, value: Value) -> str:
        if value not in self.names:
            plain = value.name != UNNAMED and re.fullmatch(r"[%\w]*", value.name)
            name = (value.name or UNNAMED) if plain else repr(value.name)
            self.names[value] = f"{name}%{len(self.names)}"
        return self.names[value]

    def several(self, values: Iterable[Value]) -> str:
        return ", ".join([self.name(v) for v in values])

    def definitions(self, values: Iterable[Value]) -> str:
        return ", ".join([f"{self.name(v)}: {v.type}" for v in values])

    # -- operations --------------------------------------------------------------------------------------------------

    def line(self, operation: Operation) -> str:
        own = OWN.get(type(operation))
        text = own(self, operation) if own is not None else self.fields(operation)
        outs = self.definitions(operation.defines())
        return f"{outs} = {text}" if outs else text

    def fields(self, operation: Operation) -> str:
        """The name of the operation, its first fields, and the others."""
        words, head = words_of(type(operation)), HEADS.get(type(operation), ())
        text = [type_name(type(operation)) + self.head(operation, *head) if head else type_name(type(operation))]
        defaults = {f.name: f.default for f in dataclasses.fields(operation)}
        for name, kind in words.items():
            value = getattr(operation, name)
            if kind in LEFT_OUT or name in head or value in NOTHING or same(value, defaults[name]):
                continue
            text.append(name if kind == "bool" else f"{name}={WRITTEN[kind](self, value)}")
        return " ".join(text)

    def head(self, operation: Operation, called: str, given: str) -> str:
        words = words_of(type(operation))
        first = " " + WRITTEN[words[called]](self, getattr(operation, called)) if called else ""
        return first + WRITTEN[words[given]](self, getattr(operation, given))

    def place(self, operation: Load | Store) -> str:
        return f"{self.name(operation.array)}[{self.several(operation.indices)}]"

    def store(self, operation: Store) -> str:
        sign, atomic = "+=" if operation.adds else "=", " atomic" if operation.atomic else ""
        return f"{self.place(operation)} {sign} {self.name(operation.value)}{atomic}"

    def loop(self, loop: Loop) -> str:
        counted = ""
        if loop.bounds is not None and loop.index is not None:
            index = self.name(loop.index) + ("" if loop.index.type == INT else f": {loop.index.type}")
            counted = f"for {index} in range({self.several(loop.bounds)})"
        carried = [self.carried(p, i) for p, i in zip(loop.params, loop.inits, strict=True)]
        ways = ("while" if loop.test is not None else "", "until it leaves" if loop.leaves else "")
        said = "parallel" if loop.parallel is not None else "in threads" if loop.threads else ""
        return " ".join(part for part in (counted, *ways, said, "with " * bool(carried) + ", ".join(carried)) if part)

    def carried(self, param: Value, init: Value) -> str:
        """A parameter of a loop; its type is that of its initial value, unless it is written."""
        type_ = "" if param.type == init.type else f": {param.type}"
        return f"{self.name(param)}{type_} = {self.name(init)}"

    # -- fields ------------------------------------------------------------------------------------------------------

    def item(self, item: Item) -> str:
        if isinstance(item, NewAxis):
            return "newaxis"
        if isinstance(item, Index):
            return self.name(item.value)
        start, stop, step = ("" if v is None else self.name(v) for v in (item.start, item.stop, item.step))
        return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"

    def part(self, part: Any) -> str:
        """An argument of `print` or of an exception."""
        match part:
            case Value():
                return self.name(part)
            case Formatted():
                return f"format({', '.join([repr(part.template), *(self.name(v) for v in part.values)])})"
            case tuple():
                return f"({', '.join([self.part(p) for p in part])})"
        return constant(part)


def constant(value: Any) -> str:
    """A number, a text or None, exactly; a number of NumPy as a call of its class."""
    if isinstance(value, np.generic):
        return f"np.{type(value).__name__}({value.item()!r})"
    if isinstance(value, complex):
        return f"complex {value.real!r} {value.imag!r}"
    return repr(value)


def same(value: Any, default: Any) -> bool:
    """Whether a field has its default value; zero is not False."""
    return type(value) is type(default) and bool(value == default)


OWN: dict[type[Operation], Callable[[_Lines, Any], str]] = {
    Const: lambda lines, o: constant(o.value),
    Apply: lambda lines, o: f"{o.primitive}({lines.several(o.args)})",
    Load: _Lines.place,
    Store: _Lines.store,
    Dim: lambda lines, o: f"{lines.name(o.array)}.shape[{o.axis}]",
    If: lambda lines, o: f"if {lines.name(o.condition)}",
    Loop: _Lines.loop,
    Comment: lambda lines, o: f"# {o.text}",
}
"""How the operations that have a notation of their own are written."""

WRITTEN: dict[str, Callable[[_Lines, Any], str]] = {
    "Operand": _Lines.name,
    "Operand | None": _Lines.name,
    "Value": _Lines.name,
    "Operands": lambda lines, values: f"({lines.several(values)})",
    "Inner": lambda lines, value: lines.definitions((value,)),
    "Inners": lambda lines, values: f"({lines.definitions(values)})",
    "Items": lambda lines, items: f"[{', '.join([lines.item(i) for i in items])}]",
    "Parts": _Lines.part,
    "int": lambda lines, number: str(number),
    "tuple[int, ...]": lambda lines, numbers: f"({', '.join(map(str, numbers))})",
    "str": lambda lines, text: word(text),
    "CoordinateKind": lambda lines, value: str(value),
    "Any": lambda lines, found: word(lines.references.name(found)),
    "type[BaseException]": lambda lines, found: word(lines.references.name(found)),
}
"""The printer of a field, by its declared kind."""
