"""Docstrings as the site shows them: examples as blocks of code, and what is returned as a paragraph."""

import re
import textwrap
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n(?!>>>)|\Z)", re.MULTILINE | re.DOTALL)
_RETURNS = re.compile(r"^Returns:\n((?: +\S.*\n?)+)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Markdown would take `>>>` for quotations, and griffe would look for a type before the first colon."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            text = _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", obj.docstring.value)
            obj.docstring.value = _RETURNS.sub(lambda part: f"**Returns:**\n\n{textwrap.dedent(part[1])}", text)
