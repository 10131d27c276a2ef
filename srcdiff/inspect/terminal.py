"""Colour in a terminal; none in pipes and files."""

from __future__ import annotations

import os
import sys
from typing import TextIO

STYLES = {
    "title": "1",
    "good": "32",
    "bad": "31",
    "note": "33",
    "faint": "2",
    "keyword": "35",
    "string": "32",
    "number": "36",
    "comment": "2",
    "function": "34",
    "adjoint": "33",
    "kept": "31",
}
"""The styles as escape codes of ECMA-48."""


def wants_colour(stream: TextIO | None = None) -> bool:
    """Whether the stream is a terminal, and its user does not object: https://no-color.org."""
    stream = stream or sys.stdout
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def painted(text: str, style: str, colour: bool) -> str:
    """The text in a style, if there is colour at all.

    >>> painted("zero", "bad", True)
    '\\x1b[31mzero\\x1b[0m'
    >>> painted("zero", "bad", False)
    'zero'
    """
    return f"\033[{STYLES[style]}m{text}\033[0m" if colour and text and style else text


def amount(nbytes: int) -> str:
    """A number of bytes, for people.

    >>> amount(160000)
    '160 kB'
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes} B"
