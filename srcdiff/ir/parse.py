"""Reads the text that `print` writes: programs for tests, written by hand or taken from the compiler.

>>> from srcdiff.ir.print import show
>>> program = parse('''
... half(x%0: float64[:], i%1: int64) writes x%0
...     t%2: float64 = x%0[i%1]
...     t%3: float64 = 0.5
...     t%4: float64 = multiply(t%2, t%3)
...     x%0[i%1] = t%4
... ''')
>>> program.main.body.operations[2].primitive
'multiply'
>>> parse("half(x%0: float64)\\n    yield y%1")
Traceback (most recent call last):
    ...
srcdiff.ir.parse.ParseError: line 2: `y%1` has no definition
        yield y%1

Empty lines, and lines that start with a comment, are skipped. A new operation needs no code here, unless it has its own
notation: its fields are parsed by their declared kinds.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np

from srcdiff.ir import nodes
from srcdiff.ir.node_methods import words_of
from srcdiff.ir.nodes import (
    Apply,
    Block,
    Comment,
    Const,
    Dim,
    Formatted,
    Function,
    If,
    Index,
    Item,
    Load,
    Loop,
    NewAxis,
    Operation,
    Parallel,
    Program,
    Slice,
    Store,
    Value,
)
from srcdiff.ir.print import HEADS, OWN, UNNAMED, type_name
from srcdiff.ir.types import INT, Array, Scalar, Stack, Type

_INDENT = 4
_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_TOKEN = re.compile(
    rf"""(?P<value>(?:[%\w]+|{_STRING})%\d+(?!\w))
       | (?P<string>{_STRING})
       | (?P<number>-?(?:inf|nan)\b | -?\d+(?:\.\d+)?(?:e[+-]?\d+)?)
       | (?P<word>[^\W\d][\w.]*)
       | (?P<sign>\+= | \.shape | [][(),:=])
       | (?P<space>\ +)""",
    re.VERBOSE,
)
_SCALARS = ("float64", "float32", "complex128", "complex64", "int64", "bool")
_DTYPES = (*_SCALARS, "int8", "int16", "int32", "uint8", "uint16", "uint32")
_WORDS = {"True": True, "False": False, "None": None}

Objects = Mapping[str, Any]
"""The objects that names of rules and exceptions refer to; builtin exceptions are known."""
T = TypeVar("T")


class ParseError(ValueError):
    """An error in a line of the text."""

    def __init__(self, line: Line, what: str) -> None:
        super().__init__(f"line {line.number}: {what}\n    {line.text}")


def parse(text: str, objects: Objects | None = None) -> Program:
    """The program of a text: its first function is the main one."""
    main, *callees = _functions(text, objects or {})
    return Program(main, tuple(callees))


def _functions(text: str, objects: Objects) -> list[Function]:
    numbered = enumerate(text.split("\n"), 1)
    lines = [Line(number, line) for number, line in numbered if line.strip() and not line.startswith("#")]
    if not lines:
        raise ParseError(Line(1, ""), "there is no function")
    starts = [k for k, line in enumerate(lines) if line.depth == 0]
    if starts[:1] != [0]:
        lines[0].fail("a function starts at the first column, with its name and its parameters")
    ends = [*starts[1:], len(lines)]
    return [_Reader(lines[start:end], objects).function() for start, end in zip(starts, ends, strict=True)]


class Line:
    """A line of the text: its tokens, and how far it has been read."""

    def __init__(self, number: int, text: str) -> None:
        self.number, self.text = number, text
        content = text.lstrip(" ")
        self.depth, beyond = divmod(len(text) - len(content), _INDENT)
        if beyond:
            self.fail(f"the indentation is no multiple of {_INDENT}")
        self.comment = content[1:].removeprefix(" ") if content.startswith("#") else None
        self.tokens = [] if self.comment is not None else self.split(content)
        self.at = 0

    def split(self, content: str) -> list[tuple[str, str]]:
        """Pairs of a kind and a text."""
        found, position = [], 0
        while position < len(content):
            token = _TOKEN.match(content, position)
            if token is None:
                self.fail(f"`{content[position:]}` cannot be read")
            position = token.end()
            if token.lastgroup != "space":
                found.append((str(token.lastgroup), token[0]))
        return found

    def fail(self, what: str) -> NoReturn:
        raise ParseError(self, what)

    def next(self, ahead: int = 0) -> tuple[str, str]:
        """The kind and the text of the next token, or of one behind it; empty at the end."""
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ("", "")

    def takes(self, *texts: str) -> bool:
        """Read these tokens if they come next."""
        if any(self.next(k)[1] != text or self.next(k)[0] in ("string", "value") for k, text in enumerate(texts)):
            return False
        self.at += len(texts)
        return True

    def need(self, *texts: str) -> None:
        for text in texts:
            if not self.takes(text):
                self.fail(f"`{text}` is missing before `{self.rest()}`" if self.rest() else f"`{text}` is missing")

    def take(self, *kinds: str) -> str:
        """Read a token of one of these kinds."""
        kind, text = self.next()
        if kind not in kinds:
            self.fail(f"a {' or a '.join(kinds)} is missing before `{self.rest()}`")
        self.at += 1
        return text

    def rest(self) -> str:
        return " ".join(text for _, text in self.tokens[self.at :])

    def end(self) -> None:
        if self.at < len(self.tokens):
            self.fail(f"`{self.rest()}` is not expected here")

    def name(self) -> str:
        """A name, in quotes or without."""
        kind = self.next()[0]
        text = self.take("word", "string")
        return str(ast.literal_eval(text)) if kind == "string" else text

    def integer(self) -> int:
        return int(self.take("number"))

    def constant(self) -> Any:
        """A number, a text or None."""
        kind, text = self.next()
        if kind == "word" and text.startswith("np."):
            self.at += 1
            self.need("(")
            number = getattr(np, text.removeprefix("np."))(self.constant())
            self.need(")")
            return number
        if kind == "word" and text == "complex":
            self.at += 1
            return complex(float(self.take("number")), float(self.take("number")))
        self.take("number", "string", "word")
        if kind == "number":
            return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
        if kind == "string":
            return ast.literal_eval(text)
        return _WORDS[text] if text in _WORDS else self.fail(f"`{text}` is no constant")

    def type(self) -> Type:
        if self.takes("stack", "of"):
            element = self.type()
            return self.fail("there are no stacks of stacks") if isinstance(element, Stack) else Stack(element)
        dtype = self.take("word")
        rank = len(self.several("[", lambda: self.need(":"), "]")) if self.next()[1] == "[" else None
        if dtype not in (_SCALARS if rank is None else _DTYPES):
            self.fail(f"`{dtype}` is no type")
        return Scalar(dtype) if rank is None else Array(dtype, rank)

    def several(self, opening: str, one: Callable[[], T], closing: str) -> list[T]:
        """The items between brackets, separated by commas."""
        self.need(opening)
        found: list[T] = []
        while not self.takes(closing):
            if found:
                self.need(",")
            found.append(one())
        return found


class _Reader:
    """Reads one function."""

    def __init__(self, lines: list[Line], objects: Objects) -> None:
        self.lines, self.objects = lines, objects
        self.position = 0
        self.values: dict[str, Value] = {}
        for line in lines:
            self.find_definitions(line)

    def find_definitions(self, line: Line) -> None:
        """Values with a type in this line. All are known from the start: `verify` judges where they are used."""
        for place, (kind, text) in enumerate(line.tokens):
            line.at = place + 1
            if kind == "value" and line.takes(":") and line.next()[0] == "word":
                self.define(text, line.type(), line)
        line.at = 0

    def define(self, text: str, type_: Type, line: Line) -> Value:
        name = text.rpartition("%")[0]
        name = ast.literal_eval(name) if name[:1] in ("'", '"') else "" if name == UNNAMED else name
        known = self.values.setdefault(text, Value(type_, name))
        if known.type != type_:
            line.fail(f"`{text}` is {known.type} elsewhere")
        return known

    # -- functions and blocks ----------------------------------------------------------------------------------------

    def function(self) -> Function:
        line = self.lines[0]
        self.position = 1
        name = line.name()
        params = line.several("(", lambda: self.definition(line), ")")
        written = self.list_of(line, self.value) if line.takes("writes") else []
        line.end()
        body = self.block(1)
        if self.position < len(self.lines):
            self.lines[self.position].fail("this line is indented too far, or stands behind `yield`")
        return Function(name, tuple(params), body, tuple(written))

    def block(self, depth: int) -> Block:
        operations: list[Operation] = []
        while (line := self.line_at(depth)) is not None and line.next()[1] not in ("else", "do"):
            self.position += 1
            if line.takes("yield"):
                yields = self.list_of(line, self.value)
                line.end()
                return Block(tuple(operations), tuple(yields))
            operations.append(self.operation(line))
        return Block(tuple(operations))

    def line_at(self, depth: int) -> Line | None:
        """The next line, if it is at this depth."""
        line = self.lines[self.position] if self.position < len(self.lines) else None
        return line if line is not None and line.depth == depth else None

    def between(self, word: str, depth: int) -> bool:
        """Read the word that separates two blocks of an operation, if it is there."""
        line = self.line_at(depth)
        if line is None or not line.takes(word):
            return False
        line.end()
        self.position += 1
        return True

    # -- operations --------------------------------------------------------------------------------------------------

    def operation(self, line: Line) -> Operation:
        if line.comment is not None:
            return Comment(line.comment)
        outs: list[Value] = []
        if line.next()[0] == "value" and line.next(1)[1] == ":":
            outs = self.list_of(line, self.definition)
            line.need("=")
        kind, text = line.next()
        if kind == "value":
            operation = self.about_array(line, outs)
        elif text == "if":
            operation = self.branch(line, outs)
        elif text in ("for", "while", "until"):
            operation = self.loop(line, outs)
        elif text in KINDS:
            operation = self.fields(line, outs)
        elif kind == "word" and line.next(1)[1] == "(" and not text.startswith("np."):
            line.at += 1
            operation = Apply(self.one(line, outs), text, self.operands(line))
        else:
            operation = Const(self.one(line, outs), line.constant())
        line.end()
        return operation

    def about_array(self, line: Line, outs: list[Value]) -> Operation:
        """An operation that starts with a value: a length, a load or a store."""
        array = self.value(line)
        if line.takes(".shape"):
            (axis,) = line.several("[", line.integer, "]")
            return Dim(self.one(line, outs), array, axis)
        indices = tuple(line.several("[", lambda: self.value(line), "]"))
        if outs:
            return Load(self.one(line, outs), array, indices)
        adds = line.takes("+=")
        if not adds:
            line.need("=")
        return Store(array, indices, self.value(line), adds, line.takes("atomic"))

    def branch(self, line: Line, outs: list[Value]) -> If:
        line.need("if")
        condition = self.value(line)
        then = self.block(line.depth + 1)
        orelse = self.block(line.depth + 1) if self.between("else", line.depth) else Block()
        return If(condition, then, orelse, tuple(outs))

    def loop(self, line: Line, results: list[Value]) -> Loop:
        index, bounds = None, None
        if line.takes("for"):
            index = self.define(line.take("value"), line.type() if line.takes(":") else INT, line)
            line.need("in", "range")
            bounds = self.operands(line)
            if len(bounds) != 3:
                line.fail("a range has a start, a stop and a step")
        tested = line.takes("while")
        leaves = line.takes("until", "it", "leaves")
        parallel = Parallel() if line.takes("parallel") else None
        threads = line.takes("in", "threads")
        carried = self.list_of(line, self.carried) if line.takes("with") else []
        outs, count = results[: len(carried)], results[len(carried) :]
        if len(count) > 1:
            line.fail("a loop has a result for each parameter, and one for the number of iterations")
        test = self.block(line.depth + 1) if tested else None
        if tested and not self.between("do", line.depth):
            line.fail("the line `do` is missing between the test of this loop and its body")
        body = self.block(line.depth + 1)
        params, inits = tuple(p for p, _ in carried), tuple(i for _, i in carried)
        found = count[0] if count else None
        return Loop(index, bounds, params, inits, test, body, tuple(outs), found, leaves, parallel, threads)

    def carried(self, line: Line) -> tuple[Value, Value]:
        """A parameter of a loop, and its initial value."""
        text = line.take("value")
        type_ = line.type() if line.takes(":") else None
        line.need("=")
        init = self.value(line)
        return self.define(text, type_ or init.type, line), init

    def fields(self, line: Line, outs: list[Value]) -> Operation:
        """An operation by its name and its fields."""
        cls = KINDS[line.take("word")]
        words, found = words_of(cls), self.results(cls, line, outs)
        for name in HEADS.get(cls, ()):
            if name:
                found[name] = self.field(words[name], line)
        while (name := line.next()[1]) in words and line.next()[0] == "word":
            line.at += 1
            if words[name] != "bool":
                line.need("=")
            found[name] = self.field(words[name], line)
        line.end()
        for name, word in words.items():
            if word == "Block":
                found[name] = self.block(line.depth + 1)
        return cls(**self.completed(cls, found, line))

    def results(self, cls: type[Operation], line: Line, outs: list[Value]) -> dict[str, Any]:
        """The fields of an operation that its results are."""
        words = words_of(cls)
        found: dict[str, Any] = {name: tuple(outs) for name, word in words.items() if word == "Results"}
        found |= {name: self.one(line, outs) for name, word in words.items() if word == "Result"}
        return found if found or not outs else line.fail(f"`{type_name(cls)}` has no result")

    def completed(self, cls: type[Operation], found: dict[str, Any], line: Line) -> dict[str, Any]:
        """The fields, with the defaults of those that are left out."""
        for field in dataclasses.fields(cls):
            if field.name not in found and field.default is dataclasses.MISSING:
                if words_of(cls)[field.name] not in _EMPTY:
                    line.fail(f"`{type_name(cls)}` needs `{field.name}=`")
                found[field.name] = ()
        return found

    def field(self, word: str, line: Line) -> Any:
        return READ[word](self, line)

    # -- values and fields -------------------------------------------------------------------------------------------

    def value(self, line: Line) -> Value:
        text = line.take("value")
        return self.values[text] if text in self.values else line.fail(f"`{text}` has no definition")

    def definition(self, line: Line) -> Value:
        text = line.take("value")
        line.need(":")
        return self.define(text, line.type(), line)

    def one(self, line: Line, outs: list[Value]) -> Value:
        return outs[0] if len(outs) == 1 else line.fail("this has one result, and its type")

    def list_of(self, line: Line, one: Callable[[Line], T]) -> list[T]:
        """One or several, with commas between."""
        found = [one(line)]
        while line.takes(","):
            found.append(one(line))
        return found

    def operands(self, line: Line) -> Any:
        return tuple(line.several("(", lambda: self.value(line), ")"))

    def item(self, line: Line) -> Item:
        """An index, a new axis, or a slice."""
        if line.takes("newaxis"):
            return NewAxis()
        start = self.value(line) if line.next()[0] == "value" else None
        if start is not None and line.next()[1] != ":":
            return Index(start)
        line.need(":")
        stop = self.value(line) if line.next()[0] == "value" else None
        return Slice(start, stop, self.value(line) if line.takes(":") else None)

    def part(self, line: Line) -> Any:
        """An argument of `print` or of an exception."""
        if line.next()[0] == "value":
            return self.value(line)
        if line.next()[1] == "(":
            return self.parts(line)
        if not line.takes("format"):
            return line.constant()
        template, *values = line.several("(", lambda: self.part(line), ")")
        return Formatted(template, tuple(values))

    def parts(self, line: Line) -> tuple[Any, ...]:
        return tuple(line.several("(", lambda: self.part(line), ")"))

    def object(self, line: Line) -> Any:
        """A rule or an exception by its name."""
        name = line.name()
        found = self.objects.get(name, getattr(builtins, name, None))
        return line.fail(f"nobody says which object `{name}` is") if found is None else found


KINDS: dict[str, type[Operation]] = {
    type_name(cls): cls
    for cls in vars(nodes).values()
    if isinstance(cls, type) and issubclass(cls, Operation) and cls is not Operation and cls not in OWN
}
"""Operations without a notation of their own, by their names in the text."""

READ: dict[str, Callable[[_Reader, Line], Any]] = {
    "Operand": _Reader.value,
    "Operand | None": _Reader.value,
    "Value": _Reader.value,
    "Operands": _Reader.operands,
    "Inner": _Reader.definition,
    "Inners": lambda reader, line: tuple(line.several("(", lambda: reader.definition(line), ")")),
    "Items": lambda reader, line: tuple(line.several("[", lambda: reader.item(line), "]")),
    "Parts": _Reader.parts,
    "int": lambda reader, line: line.integer(),
    "tuple[int, ...]": lambda reader, line: tuple(line.several("(", line.integer, ")")),
    "str": lambda reader, line: line.name(),
    "CoordinateKind": lambda reader, line: nodes.CoordinateKind(line.name()),
    "bool": lambda reader, line: True,
    "Any": _Reader.object,
    "type[BaseException]": _Reader.object,
}
"""The parser of a field, by its declared kind."""

_EMPTY = ("Operands", "Inners", "Items", "Parts", "tuple[int, ...]")
"""Fields that are empty if they are not in the text."""
