"""A problem as text: the reason, the user's line with carets under the place, and what to write instead."""

from __future__ import annotations

import unicodedata

from srcdiff.diagnostics.span import Span


def printable(text: str) -> str:
    r"""The text, with lone surrogates and control characters as escape sequences.

    >>> printable("a\ud800b\0")
    'a\\ud800b\\x00'
    """
    return "".join(repr(c)[1:-1] if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


def _lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.split("\n"))


def render(code: str, message: str, span: Span | None, label: str, notes: tuple[str, ...], help_: str) -> str:
    lines = [f"error[{code}]: {_lines(message)}"]
    margin = " "
    if span is not None:
        margin = " " * len(str(span.line))
        lines.append(f"{margin}--> {printable(span.file)}:{span.line}:{span.column + 1}")
        if span.text:
            width = max(1, span.end_column - span.column)
            width = min(width, max(1, len(span.text) - span.column))
            lines.append(f"{margin} |")
            lines.append(f"{span.line} | {span.text}")
            lines.append(f"{margin} | {' ' * span.column}{'^' * width} {label}".rstrip())
            lines.append(f"{margin} |")
    lines += [f"{margin} = note: {_lines(note)}" for note in notes]
    if help_:
        first, *more = help_.split("\n")
        lines += [f"{margin} = help: {first}", *(f"{margin}         {line}" for line in more)]
    return "\n".join(lines)
