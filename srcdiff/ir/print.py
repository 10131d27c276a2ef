"""The program as text, for people who want to see what the compiler makes of it.

>>> from srcdiff.ir.builder import Builder
>>> from srcdiff.ir.types import FLOAT, INT, Array
>>> x, i, build = Value(Array("float64", 1), "x"), Value(INT, "i"), Builder()
>>> y = build.apply("multiply", build.load(x, (i,)), build.const(2.0))
>>> build.store(x, (i,), y)
>>> print(show(Function("double", (x, i), Block(tuple(build.operations)))))
double(x%0: float64[:], i%1: int64)
    t%2: float64 = x%0[i%1]
    t%3: float64 = 2.0
    t%4: float64 = multiply(t%2, t%3)
    x%0[i%1] = t%4
"""

from __future__ import annotations

from dataclasses import fields

from srcdiff.diagnostics import Span, printable
from srcdiff.ir.nodes import Apply, Block, Comment, Const, Dim, Function, If, Load, Loop, Operation, Store, Value

_LEFT_OUT = {"span", "out", "outs", "then", "orelse", "body", "test", "rule", "keeps"}


def show(function: Function) -> str:
    return "\n".join(text for text, _ in lines_with_places(function))


def lines_with_places(function: Function) -> list[tuple[str, Span | None]]:
    """The program line by line, with the place in the user's source that each comes from."""
    return _Lines().function(function)


class _Lines:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.lines: list[tuple[str, Span | None]] = []

    def function(self, function: Function) -> list[tuple[str, Span | None]]:
        params = ", ".join(f"{self.name(p)}: {p.type}" for p in function.params)
        self.lines.append((f"{function.name}({params})", None))
        self.block(function.body, 1)
        return self.lines

    def block(self, block: Block, depth: int) -> None:
        for operation in block.operations:
            self.add(self.line(operation), depth, operation.span)
            for k, inner in enumerate(operation.blocks()):
                if k:
                    self.add("else" if isinstance(operation, If) else "do", depth, operation.span)
                self.block(inner, depth + 1)
        if block.yields:
            self.add(f"yield {self.several(block.yields)}", depth, None)

    def add(self, text: str, depth: int, span: Span | None) -> None:
        self.lines.append(("    " * depth + printable(text), span))

    def name(self, value: object) -> str:
        if isinstance(value, Value):
            return self.names.setdefault(value, f"{value.name or 't'}%{len(self.names)}")
        if isinstance(value, tuple):
            return f"({', '.join(self.name(v) for v in value)})"
        return str(value)

    def several(self, values: tuple[Value, ...]) -> str:
        return ", ".join(self.name(v) for v in values)

    def line(self, operation: Operation) -> str:
        said = self.said(operation)
        outs = ", ".join(f"{self.name(v)}: {v.type}" for v in operation.defines())
        return f"{outs} = {said}" if outs else said

    def said(self, operation: Operation) -> str:
        match operation:
            case Const():
                return repr(operation.value)
            case Apply():
                return f"{operation.primitive}({self.several(operation.args)})"
            case Load():
                return f"{self.name(operation.array)}[{self.several(operation.indices)}]"
            case Store():
                place = f"{self.name(operation.array)}[{self.several(operation.indices)}]"
                return f"{place} {'+=' if operation.adds else '='} {self.name(operation.value)}"
            case Dim():
                return f"{self.name(operation.array)}.shape[{operation.axis}]"
            case If():
                return f"if {self.name(operation.condition)}"
            case Loop():
                return self.loop(operation)
            case Comment():
                return f"# {operation.text}"
        given = [(f.name, getattr(operation, f.name)) for f in fields(operation) if f.name not in _LEFT_OUT]
        shown = [f"{name}={self.name(x)}" for name, x in given if x not in (None, (), False, "")]
        return " ".join([type(operation).__name__.lower(), *shown])

    def loop(self, loop: Loop) -> str:
        counted = f"for {self.name(loop.index)} in range({self.several(loop.bounds)})" if loop.bounds else ""
        carried = [f"{self.name(p)} = {self.name(i)}" for p, i in zip(loop.params, loop.inits, strict=True)]
        ways = ("while" if loop.test is not None else "", "until it leaves" if loop.leaves else "")
        return " ".join(part for part in (counted, *ways, "with " * bool(carried) + ", ".join(carried)) if part)
