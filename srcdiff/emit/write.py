"""Writes a function of the IR as Python text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from srcdiff.diagnostics import Span
from srcdiff.emit import formatting
from srcdiff.emit.head import Objects, name_objects, name_of, printer
from srcdiff.emit.layout import Layout, lay_out
from srcdiff.emit.naming import give_names, what_grows
from srcdiff.emit.spelling import NUMPY, Spelling
from srcdiff.emit.stack_groups import Group, together
from srcdiff.ir.nodes import (
    STACK_START,
    Alloc,
    Apply,
    Barrier,
    Block,
    BlockSum,
    Call,
    Comment,
    Const,
    Coordinate,
    Copy,
    Custom,
    Dim,
    Enlarge,
    Formatted,
    Function,
    Grow,
    If,
    Index,
    Library,
    Load,
    Loop,
    NewAxis,
    NewStack,
    Operation,
    Part,
    Peek,
    Pop,
    Print,
    Push,
    Raise,
    Reshape,
    Slice,
    Store,
    Transpose,
    Value,
    View,
    walk,
)
from srcdiff.ir.primitives import ATOM, BROUGHT_ALONG, PRIMITIVES
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, Stack, is_inexact
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.quick_dataclasses import dataclass

_UNARY_MINUS = 50
_IN_PLACE = {
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


def write_function(
    function: Function,
    *,
    parameters: Sequence[str | Value],
    unpack: Sequence[tuple[Value, str]] = (),
    result: str | None = None,
    doc: str = "",
    reserved: Sequence[str] = (),
    spelling: Spelling = NUMPY,
    on_host: bool = True,
    in_thread: bool = False,
    objects: Objects | None = None,
) -> Text:
    """Write a function with these parameters. `unpack` are its first assignments, `result` is a template of its result.

    With `on_host` the host creates the arrays, and with `in_thread` a GPU thread runs the function. `objects` are the
    objects that the function may use, by their names.
    """
    tuples = [p for p in parameters if isinstance(p, str)]
    objects = name_objects([function], taken=reserved) if objects is None else objects
    writer = _Writer(function, [*reserved, *tuples], objects, spelling)
    writer.arrays, writer.in_thread = spelling.arrays if on_host else "np", in_thread
    return writer.run(parameters, unpack, result, doc)


class _Writer:
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

    def run(
        self, parameters: Sequence[str | Value], unpack: Sequence[tuple[Value, str]], result: str | None, doc: str
    ) -> Text:
        names = [p if isinstance(p, str) else self.names[p] for p in parameters]
        self.depth = 0
        self.line(f"def {self.function.name}({', '.join(names)}):")
        self.depth = 1
        if doc:
            self.line(f'"""{doc}"""')
        for value, text in unpack:
            self.line(f"{self.names[value]} = {text}")
        self.block(self.function.body)
        values = [self.expression(v) for v in self.function.body.yields]
        if result is not None:
            self.line(f"return {result.format(*values)}")
        elif values:
            self.line(f"return {', '.join(values)}")
        elif len(self.text.lines) == 1:
            self.line("pass")
        return self.text

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

    # -- expressions -------------------------------------------------------------------------------------------------

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

    # -- statements --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        visible = [o for o in block.operations if not self.layout.is_inlined(o)]
        for k, operation in enumerate(visible):
            following = (o for o in visible[k + 1 :] if not self.layout.is_named_length(o))
            if isinstance(operation, Comment) and isinstance(next(following, None), Comment):
                self.reversing = self.reversing or operation.text == "reverse sweep"
                continue  # the section would be empty
            self.statement(operation)

    def nested(self, block: Block, moves: list[tuple[Value, Value]], last: Sequence[str] = ()) -> None:
        self.depth += 1
        start = len(self.text.lines)
        self.block(block)
        self.move(moves)
        for text in last:
            self.line(text)
        if len(self.text.lines) == start:
            self.line("pass")
        self.depth -= 1

    def move(self, moves: list[tuple[Value, Value]]) -> None:
        """Assign values to the variables of a branch or a loop, in one statement if one reads what another writes."""
        own, self.own = self.own, None
        pairs = []
        for target, source in moves:
            text, name = self.expression(source), self.names[target]
            if text != name:
                pairs.append((name, text, self.read(source)))
        names = [p[0] for p in pairs]
        clash = any(names[i] in pairs[j][2] for i in range(len(pairs)) for j in range(i + 1, len(pairs)))
        if clash:
            self.line(f"{', '.join(names)} = {', '.join(p[1] for p in pairs)}")
        else:
            self.inside, self.keeps = [], False
            for target, source in moves:
                self.assign_to(self.names[target], source)
        self.own = own

    def read(self, value: Value) -> set[str]:
        """The variables that an expression reads."""
        operation = self.layout.inlined.get(value)
        if operation is None:
            return {self.names[value]}
        return set().union(*(self.read(v) for v in operation.uses())) if operation.uses() else set()

    def assign_to(self, name: str, source: Value) -> None:
        """Write `name = source`, or nothing if both are the same variable."""
        operation = self.layout.inlined.get(source)
        if operation is not None:
            self.assign_formula(name, operation)
        elif self.names[source] != name:
            self.line(f"{name} = {self.names[source]}")

    def assign_formula(self, name: str, operation: Operation) -> None:
        """Write an assignment, and `x = x + y` as `x += y`."""
        if isinstance(operation, Apply) and operation.primitive in _IN_PLACE:
            first, second = operation.args
            if first not in self.layout.inlined and self.names[first] == name:
                sign = _IN_PLACE[self.turned(operation)[0]]
                self.line(f"{name} {sign} {self.expression(second)}")
                return
        self.line(f"{name} = {self.formula(operation)[0]}")

    def assign(self, out: Value, text: str) -> None:
        self.line(f"{self.names[out]} = {text}")

    def user_comments(self, operation: Operation) -> None:
        """Write the user's comments above the statement that they belong to."""
        for comment in self.comments_above(operation):
            self.line(comment)
        if operation.span is not None and not self.reversing:
            self.seen.add((operation.span.file, operation.span.line))

    def comments_above(self, operation: Operation) -> tuple[str, ...]:
        """The comments above a statement that have not been written yet."""
        span = operation.span
        return () if span is None or self.reversing or (span.file, span.line) in self.seen else tuple(span.comments)

    def mirrored(self, operation: Operation) -> str:
        """A comment in the reverse sweep that quotes the user's line, unless the last comment is the same."""
        if not self.reversing or operation.span is None or not operation.span.text:
            return ""
        if isinstance(operation, If) and operation.span.text.split()[0] in ("for", "while"):
            return ""  # the loop itself quotes it
        before, self.quoted = self.quoted, operation.span.text.strip()
        return f"  # {self.quoted}" if self.quoted != before else ""

    def statement(self, operation: Operation, keyword: str = "if") -> None:
        outer = self.own, self.around
        self.own, self.inside, self.keeps = operation.span, [], False
        if isinstance(operation, NewStack | Push | Pop):
            self.stacked = self.kept.get(operation.out if isinstance(operation, NewStack) else operation.stack)
        if operation.blocks():
            self.around = operation.span
        self.user_comments(operation)
        if isinstance(operation, If):
            self.branch(operation, keyword)
        else:
            self.write(operation)
        self.own, self.around, self.stacked = *outer, None

    def write(self, operation: Operation) -> None:
        self.comes_from(operation)
        match operation:
            case Apply() | Load() | Dim() | Const() | Coordinate():
                self.assign_formula(self.names[operation.out], operation)
            case Store():
                self.store(operation)
            case Alloc() if operation.workspace is not None:
                self.fit(operation, operation.workspace)
            case Copy() if operation.workspace is not None:
                self.text.support.add("copied")
                self.assign(
                    operation.out, f"copied({self.names_of(operation.array)}, {self.expression(operation.workspace)})"
                )
            case Alloc():
                self.assign(operation.out, self.alloc(operation))
            case Copy() if self.arrays != "np":
                self.assign(operation.out, f"{self.arrays}.copy({self.names_of(operation.array)})")
            case Copy():
                self.assign(operation.out, f"{self.names_of(operation.array)}.copy()")
            case BlockSum():
                self.text.support.add("block_sum")
                self.assign(operation.out, f"block_sum({self.expression(operation.value)})")
            case Enlarge():
                self.enlarge(operation)
            case View() if self.arrays != "np" and any(isinstance(i, NewAxis) for i in operation.items):
                items = ", ".join(self.item(i) for i in operation.items)
                self.assign(operation.out, f"{self.arrays}.view({self.names_of(operation.array)}, np.s_[{items}])")
            case View():
                items = ", ".join(self.item(i) for i in operation.items)
                items += ", ..." if operation.out.array.rank == 0 else ""  # a view of one element, and not the element
                self.assign(operation.out, f"{self.names_of(operation.array)}[{items}]")
            case Transpose():
                self.assign(operation.out, self.transpose(operation))
            case Reshape():
                shape = ", ".join(self.expression(s) for s in operation.shape)
                self.assign(operation.out, f"{self.names_of(operation.array)}.reshape({shape})")
            case Part():
                self.assign(operation.out, f"{self.names_of(operation.array)}.{operation.part}")
            case Library():
                self.library(operation)
            case Grow() if self.arrays != "np":
                array, size = self.names_of(operation.array), self.expression(operation.size)
                self.assign(operation.out, f"{self.arrays}.grown({array}, {size}, {operation.axis})")
            case Grow():
                name = what_grows(operation.array.array.rank, operation.axis)
                self.text.support.add(name)
                array, size = self.names_of(operation.array), self.expression(operation.size)
                self.assign(operation.out, f"{name}({array}, {size})")
            case Loop():
                self.loop(operation)
            case Custom():
                self.custom(operation)
            case Call():
                outs = ", ".join(self.names[v] for v in operation.outs)
                args = ", ".join(self.expression(a) for a in operation.args)
                target = f"{outs}{',' if len(operation.outs) == 1 else ''} = " if outs else ""
                self.line(f"{target}{operation.function}{self.launch(operation)}({args})")
            case Barrier():
                self.line(self.spelling.barrier)
            case Raise():
                self.raise_(operation)
            case Print():
                self.print(operation)
            case Peek():
                index = self.expression(operation.index)
                self.assign(operation.out, f"{self.names[operation.stack]}[{index}]")
            case NewStack() | Push() | Pop():
                self.stack(operation)
            case Comment():
                self.reversing = self.reversing or operation.text == "reverse sweep"
                self.line(f"# {operation.text}")
            case _:
                raise AssertionError(operation)

    def launch(self, operation: Call) -> str:
        """How many threads run a kernel."""
        if operation.blocks_of_threads is None:
            return ""
        shape = "alone" if operation.alone else f"shape({self.expression(operation.blocks_of_threads)})"
        return f"[{self.arrays}.{shape}]"

    def store(self, operation: Store) -> None:
        if operation.atomic:
            at = self.indices(operation.indices)
            at = at if len(operation.indices) == 1 else f"({at})"
            array, value = self.names_of(operation.array), self.expression(operation.value)
            text = self.spelling.atomic_add.format(array=array, index=at, value=value)
            name = text.partition("(")[0]
            if name in BROUGHT_ALONG:
                self.text.support.add(name)
            self.line(text)
            return
        place = f"{self.names_of(operation.array)}[{self.indices(operation.indices)}]"
        inner = self.layout.inlined.get(operation.value)
        if not operation.adds:
            if isinstance(inner, Apply) and inner.primitive in _IN_PLACE and self.expression(inner.args[0]) == place:
                sign = _IN_PLACE[self.turned(inner)[0]]
                self.line(f"{place} {sign} {self.expression(inner.args[1])}")
            else:
                self.line(f"{place} = {self.expression(operation.value)}")
            return
        sign = "-=" if self.drop_sign(operation.value) else "+="
        self.line(f"{place} {sign} {self.expression(operation.value)}")

    def alloc(self, operation: Alloc) -> str:
        dtype = operation.out.array.dtype
        sizes = [self.expression(s) for s in operation.shape]
        shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
        if operation.place:
            return self.spelling.thread_array.format(place=operation.place, shape=shape, dtype=_kind(dtype))
        fill = self.layout.inlined.get(operation.fill) if operation.fill is not None else None
        known = fill.value if isinstance(fill, Const) else None
        if operation.fill is None:
            maker, rest = "empty", ""
        elif known is not None and known == 0:
            maker, rest = "zeros", ""
        elif known is not None and known == 1:
            maker, rest = "ones", ""
        else:
            maker, rest = "full", f", {self.expression(operation.fill)}"
        if operation.like is not None:
            return f"{self.arrays}.{maker}_like({self.expression(operation.like)}{rest})"
        kind = "" if dtype == "float64" else f", np.{_kind(dtype)}"
        if maker == "full" and not kind:
            kind = ", np.float64"
        return f"{self.arrays}.{maker}({shape}{rest}{kind})"

    def fit(self, operation: Alloc, buffer: Value) -> None:
        fitting = "as_long" if operation.grows else "fitting"
        self.text.support.add(fitting)
        if operation.like is not None:
            shape = f"{self.expression(operation.like)}.shape"
        else:
            sizes = [self.expression(s) for s in operation.shape]
            shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
        self.assign(operation.out, f"{fitting}({self.expression(buffer)}, {shape})")
        if operation.fill is not None:
            self.line(f"{self.names[operation.out]}[...] = {self.expression(operation.fill)}")

    def item(self, item: Index | Slice | NewAxis) -> str:
        match item:
            case Index():
                return self.expression(item.value)
            case NewAxis():
                return "None"
        start, stop, step = ("" if p is None else self.expression(p) for p in (item.start, item.stop, item.step))
        return f"{start}:{stop}" + (f":{step}" if step else "")

    def transpose(self, operation: Transpose) -> str:
        array, axes = self.names_of(operation.array), ", ".join(map(str, operation.axes))
        if self.arrays != "np":
            return f"{self.arrays}.transpose({array}, {axes})"
        if operation.axes == tuple(reversed(range(len(operation.axes)))):
            return f"{array}.T"
        return f"{array}.transpose(({axes}))" if self.in_thread else f"{array}.transpose({axes})"

    def library(self, operation: Library) -> None:
        outs = ", ".join(self.names[v] for v in operation.outs)
        args = [self.expression(a) for a in operation.args]
        if operation.function.startswith("device."):  # a method of the object that creates the arrays
            self.line(f"{outs} = {self.arrays}.{operation.function.removeprefix('device.')}({', '.join(args)})")
            return
        if support := LIBRARY[operation.function].support:
            self.text.support.add(support)
        if self.arrays != "np":
            text = self.on_host(operation, args)
        else:
            text = self.spelled(operation, args)
        self.line(f"{outs} = {text}" if outs else text)

    def spelled(self, operation: Library, args: list[str]) -> str:
        row = LIBRARY[operation.function]
        return row.spelling.format(*args, call=self.named(row.call) if row.call is not None else "")

    def on_host(self, operation: Library, args: list[str]) -> str:
        """A product is computed on the device. NumPy computes everything else, from copies on the host."""
        if operation.function in ("matrix_matrix", "matrix_vector", "vector_vector"):
            return f"{self.arrays}.matmul({', '.join(args)})"
        if operation.function == "vector_matrix":
            return f"{self.arrays}.matmul({', '.join(reversed(args))})"
        names = [f"a{k}" for k in range(len(args))]
        text = self.spelled(operation, names)
        return f"{self.arrays}.on_host(lambda {', '.join(names)}: {text}, {', '.join(args)})"

    def enlarge(self, operation: Enlarge) -> None:
        value = self.expression(operation.value)
        array, index = self.names[operation.array], self.expression(operation.index)
        self.line(self.spelling.atomic_max.format(array=array, index=index, value=value))
        if operation.capacity is not None:
            self.line(f"if {value} > {self.expression(operation.capacity)}:")
            self.line("    return")

    def raise_(self, operation: Raise) -> None:
        if operation.errors is not None:
            self.line(f"{self.names[operation.errors]}[0] = {operation.code}")
            self.line("return")
            return
        name = self.named(operation.exception)
        if not operation.parts:
            self.line(f"raise {name}")
        elif not any(isinstance(p, Formatted) for p in operation.parts):
            self.line(f"raise {name}({', '.join(self.part(p, plain=True) for p in operation.parts)})")
        else:  # Numba cannot format floats, but it can pass them to the class
            maker = self.named(formatting.formatted(operation.exception))
            layout = tuple(p.template if isinstance(p, Formatted) else None for p in operation.parts)
            given = [self.part(p) for p in operation.parts for p in (p.values if isinstance(p, Formatted) else (p,))]
            first = repr(layout[0] if len(layout) == 1 else layout)
            self.line(f"raise {maker}({', '.join([first, *given])})")

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

    def print(self, operation: Print) -> None:
        if not any(isinstance(p, Formatted) for p in operation.parts):
            self.line(f"print({', '.join(self.part(p) for p in operation.parts)})")
            return
        (text,) = operation.parts
        name = self.named(printer(operation))
        self.line(f"{name}({', '.join([repr(text.template), *(self.part(v) for v in text.values)])})")

    def stack(self, operation: NewStack | Push | Pop) -> None:
        """Stacks of arrays, and stacks that functions share, are lists. Other stacks are arrays that grow."""
        owner = operation.out if isinstance(operation, NewStack) else operation.stack
        assert isinstance(owner.type, Stack)
        element, name = owner.type.element, self.names[owner]
        kind = _kind(element.dtype)
        if isinstance(element, Array) or owner in self.shared:
            match operation:
                case NewStack():
                    self.line(f"{name} = [{_bottom(element, is_shared=owner in self.shared)}]")
                case Push():
                    self.line(f"{name}.append({self.expression(operation.value)})")
                case Pop():
                    self.assign(operation.out, f"{name}.pop()")
            return
        group, top = self.groups[owner], self.top(owner)
        match operation:
            case NewStack():
                fresh = f"np.empty({STACK_START}{'' if kind == 'float64' else f', np.{kind}'})"
                self.line(f"{name} = {fresh if operation.workspace is None else self.expression(operation.workspace)}")
                if operation is group.made[0]:
                    self.line(f"{top} = 0")
            case Push():
                if group.comes_first(operation):
                    self.grow_stacks(group, top)
                self.line(f"{name}[{top}] = {self.expression(operation.value)}")
                if group.comes_last(operation):
                    self.line(f"{top} += 1")
            case Pop():
                if group.comes_first(operation):
                    self.line(f"{top} -= 1")
                if operation.out not in self.layout.inlined:
                    self.assign(operation.out, f"{name}[{top}]")

    def top(self, stack: Value) -> str:
        """The variable that counts the elements of a stack."""
        return f"{self.names[self.groups[stack].made[0].out]}_top"

    def grow_stacks(self, group: Group, top: str) -> None:
        """Enlarge full stacks. The test is inline, because a call in every iteration would count references."""
        self.text.support.add("grown")
        names = [self.names[made.out] for made in group.made]
        self.line(f"if {top} == {names[0]}.shape[0]:")
        for name in names:
            self.line(f"    {name} = grown({name}, {top})")

    def branch(self, operation: If, keyword: str = "if") -> None:
        condition = self.expression(operation.condition)
        then = list(zip(operation.outs, operation.then.yields, strict=True))
        orelse = list(zip(operation.outs, operation.orelse.yields, strict=True))
        then_empty, else_empty = self.is_empty(operation.then, then), self.is_empty(operation.orelse, orelse)
        if then_empty and not else_empty:
            self.line(f"{keyword} {self.negated(operation.condition)}:{self.mirrored(operation)}")
            self.nested(operation.orelse, orelse)
            return
        self.line(f"{keyword} {condition}:{self.mirrored(operation)}")
        self.nested(operation.then, then)
        further = self.only_branch(operation.orelse, orelse)
        if further is not None:
            self.statement(further, "elif")
        elif not else_empty:
            self.line("else:")
            self.nested(operation.orelse, orelse)

    def only_branch(self, block: Block, moves: list[tuple[Value, Value]]) -> If | None:
        """The branch that is the only statement of a block, if there is no comment above it."""
        visible = [o for o in block.operations if not self.layout.is_inlined(o)]
        if len(visible) != 1 or not isinstance(visible[0], If) or self.comments_above(visible[0]):
            return None
        is_all = all(s not in self.layout.inlined and self.names[s] == self.names[t] for t, s in moves)
        return visible[0] if is_all else None

    def negated(self, condition: Value) -> str:
        operation = self.layout.inlined.get(condition)
        if isinstance(operation, Apply) and operation.primitive == "logical_not":
            return self.expression(operation.args[0])
        text, strength = self.strong(condition)
        return f"not {text}" if strength > PRIMITIVES["logical_not"].strength else f"not ({text})"

    def is_empty(self, block: Block, moves: list[tuple[Value, Value]]) -> bool:
        visible = [o for o in block.operations if not self.layout.is_inlined(o)]
        if visible:
            return False
        noted = list(self.inside), self.keeps
        idle = all(self.expression(source) == self.names[target] for target, source in moves)
        self.inside, self.keeps = noted  # these expressions are not written
        return idle

    def loop(self, operation: Loop) -> None:
        self.move(list(zip(operation.params, operation.inits, strict=True)))
        last = []
        if operation.count is not None:
            self.line(f"{self.names[operation.count]} = 0")
            last.append(f"{self.names[operation.count]} += 1")
        # the last value of the body may be the condition to leave the loop
        moves = list(zip(operation.params, operation.body.yields, strict=False))
        if operation.leaves:
            stop = operation.body.yields[-1]
            last += [] if self.is_false(stop) else [f"if {self.expression(stop)}:", "    break"]
            self.inside = []
        if operation.bounds is not None:
            index = operation.index
            name = self.names[index] if index in self.layout.used and index is not None else "_"
            whole = self.counted_down(operation.bounds) if name == "_" else None
            over = self.range(operation.bounds) if whole is None else f"range({self.expression(whole)})"
            over = f"p{over}" if operation.threads else over
            self.line(f"for {name} in {over}:{self.mirrored(operation)}")
        elif operation.test is not None and self.is_empty(operation.test, []):
            self.line(f"while {self.expression(operation.test.yields[0])}:")
        else:
            self.line("while True:")
            if operation.test is not None:
                self.depth += 1
                self.block(operation.test)
                self.line(f"if {self.negated(operation.test.yields[0])}:")
                self.line("    break")
                self.depth -= 1
        self.nested(operation.body, moves, last)
        self.move(list(zip(operation.outs, operation.params, strict=True)))

    def is_false(self, value: Value) -> bool:
        operation = self.layout.inlined.get(value)
        return isinstance(operation, Const) and operation.value is False

    def counted_down(self, bounds: Sequence[Value]) -> Value | None:
        """The `n` in `range(n - 1, -1, -1)`."""
        first, stop, step = (self.layout.inlined.get(b) for b in bounds)
        if not isinstance(first, Apply) or first.primitive != "subtract" or first.args[1] not in self.layout.inlined:
            return None
        one = self.layout.inlined[first.args[1]]
        values = [o.value if isinstance(o, Const) else None for o in (one, stop, step)]
        return first.args[0] if values == [1, -1, -1] else None

    def range(self, bounds: Sequence[Value]) -> str:
        start, stop, step = (self.expression(b) for b in bounds)
        if step != "1":
            return f"range({start}, {stop}, {step})"
        return f"range({stop})" if start == "0" else f"range({start}, {stop})"

    def custom(self, operation: Custom) -> None:
        self.move(list(zip(operation.params, operation.args, strict=True)))
        self.block(operation.body)
        self.move(list(zip(operation.outs, operation.body.yields, strict=True)))


def _bottom(element: Scalar | Array, *, is_shared: bool) -> str:
    """The first element of a new list. It is never popped, and tells the compiler the type of the elements.

    Functions that share a list of arrays may append arrays of any layout. A reversed array has the type of all layouts.
    """
    if isinstance(element, Array):
        shape = "0" if element.rank == 1 else f"({', '.join('0' * element.rank)})"
        return f"np.empty({shape}, np.{_kind(element.dtype)}){'[::-1]' if is_shared else ''}"
    known = {"float64": "0.0", "complex128": "0j", "int64": "0", "bool": "False"}
    return known.get(element.dtype, f"np.{element.dtype}(0.0)")


def _kind(dtype: str) -> str:
    return "bool_" if dtype == "bool" else dtype


def _complex_literal(value: complex) -> tuple[str, int]:
    """`2j`, `(1+2j)`, or a call of `complex` where a literal cannot express the value or the sign of a zero."""
    text = repr(value)
    is_exact = math.copysign(1.0, value.real) == 1.0 or value.real != 0
    if not (math.isfinite(value.real) and math.isfinite(value.imag) and is_exact):
        parts = (f'float("{x!r}")' if not math.isfinite(x) else repr(x) for x in (value.real, value.imag))
        return f"complex({', '.join(parts)})", ATOM
    return text, _UNARY_MINUS if text.startswith("-") else ATOM


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
