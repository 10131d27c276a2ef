"""Syntax colour: Python text as lines of pieces, each with its style.

>>> styled("def f(x):  # twice\\n    return 2.0 * x_bar")[1]
[('', '    '), ('keyword', 'return'), ('', ' '), ('number', '2.0'), ('', ' * '), ('adjoint', 'x_bar')]
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Iterator

Line = list[tuple[str, str]]

_ADJOINT = re.compile(r"\w+_(bar|dot)(_\d+)*$")
_STRINGS = {
    tokenize.STRING,
    *(getattr(tokenize, n) for n in ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END") if hasattr(tokenize, n)),
}


def styled(text: str) -> list[Line]:
    """The highlighted lines of the text; text that is not Python has no colour."""
    lines = text.split("\n")
    marks: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    try:
        for style, (first, start), (last, end) in _tokens(text):
            for row in range(first, min(last, len(lines)) + 1):
                begin = start if row == first else 0
                marks[row - 1].append((begin, end if row == last else len(lines[row - 1]), style))
    except (tokenize.TokenError, SyntaxError):
        pass
    return [_cut(line, found) for line, found in zip(lines, marks, strict=True)]


def _tokens(text: str) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        style = _style(token, before)
        if style:
            yield style, token.start, token.end
        before = token.string


def _style(token: tokenize.TokenInfo, before: str) -> str:
    if token.type in _STRINGS:
        return "string"
    if token.type in (tokenize.NUMBER, tokenize.COMMENT):
        return tokenize.tok_name[token.type].lower()
    if token.type != tokenize.NAME:
        return ""
    if keyword.iskeyword(token.string):
        return "keyword"
    if before == "def":
        return "function"
    if _ADJOINT.match(token.string):
        return "adjoint"
    return "kept" if token.string.startswith("kept_") else ""


def _cut(line: str, marks: list[tuple[int, int, str]]) -> Line:
    """The line in pieces, those without a mark too."""
    pieces: Line = []
    at = 0
    for start, end, style in marks:
        if start > at:
            pieces.append(("", line[at:start]))
        if end > start:
            pieces.append((style, line[start:end]))
        at = max(at, end)
    if at < len(line):
        pieces.append(("", line[at:]))
    return pieces
