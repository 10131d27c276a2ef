"""A problem as text: the user's line, a caret under the place, the reason, and what to write instead."""

from __future__ import annotations

from srcdiff.diagnostics.span import Span


def render(code: str, message: str, span: Span | None, label: str, notes: tuple[str, ...], help_: str) -> str:
    lines = [f"error[{code}]: {message}"]
    margin = " "
    if span is not None:
        margin = " " * len(str(span.line))
        lines.append(f"{margin}--> {span.file}:{span.line}:{span.column + 1}")
        if span.text:
            width = max(1, span.end_column - span.column)
            width = min(width, max(1, len(span.text) - span.column))
            lines.append(f"{margin} |")
            lines.append(f"{span.line} | {span.text}")
            lines.append(f"{margin} | {' ' * span.column}{'^' * width} {label}".rstrip())
            lines.append(f"{margin} |")
    lines += [f"{margin} = note: {note}" for note in notes]
    if help_:
        lines.append(f"{margin} = help: {help_}")
    return "\n".join(lines)
