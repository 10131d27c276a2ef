"""The program as text, for people who work on the compiler."""

from __future__ import annotations

from dataclasses import fields

from srcdiff.ir.nodes import Block, Function, Operation, Value


def show(function: Function) -> str:
    names: dict[Value, str] = {}

    def name(value: object) -> str:
        if isinstance(value, Value):
            return names.setdefault(value, f"{value.name or 't'}%{len(names)}")
        if isinstance(value, tuple):
            return f"({', '.join(name(v) for v in value)})"
        return str(value)

    lines = [f"{function.name}({', '.join(f'{name(p)}: {p.type}' for p in function.params)})"]

    def visit(block: Block, depth: int) -> None:
        for operation in block.operations:
            lines.append("    " * depth + line(operation))
            for inner in operation.blocks():
                visit(inner, depth + 1)
        if block.yields:
            lines.append("    " * depth + f"yield {', '.join(name(v) for v in block.yields)}")

    def line(operation: Operation) -> str:
        shown = [
            f"{f.name}={name(getattr(operation, f.name))}"
            for f in fields(operation)
            if f.name not in ("span", "out", "outs", "then", "orelse", "body", "test", "rule", "keeps")
            and getattr(operation, f.name) not in (None, (), False)
        ]
        outs = ", ".join(f"{name(v)}: {v.type}" for v in operation.defines())
        return f"{outs + ' = ' if outs else ''}{type(operation).__name__.lower()} {' '.join(shown)}"

    visit(function.body, 1)
    return "\n".join(lines)
