"""`srcdiff rules`: all supported functions, methods and rules, printed from the tables of the compiler."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from srcdiff.cli.answer import NO, Answer

if TYPE_CHECKING:
    from srcdiff.inspect.reference import Table


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "word", nargs="?", metavar="WORD", help='show only rows that name it, such as "log" or "np.sort"'
    )


def run(chosen: argparse.Namespace) -> Answer:
    """The tables, or their rows for a word; without any row, the answer is negative."""
    found = list(_selected(chosen.word))
    data = [
        {"title": table.title, "columns": list(table.columns), "rows": [[_plain(cell) for cell in row] for row in rows]}
        for table, rows in found
    ]
    if not found:
        return Answer(f"{chosen.word!r} is not supported", {"tables": []}, NO)
    width = min(shutil.get_terminal_size().columns, 120)
    return Answer("\n\n".join(_text(table, rows, width) for table, rows in found), {"tables": data})


def _selected(word: str | None) -> Iterator[tuple[Table, list[tuple[str, ...]]]]:
    """The tables with the rows to show. A word is searched in the names of a row, not in its formulas."""
    from srcdiff.inspect import reference

    tables = [
        reference.elementwise(),
        reference.constant(),
        *reference.functions(),
        reference.methods(),
        reference.builtin_functions(),
        reference.refused_syntax(),
    ]
    for table in tables:
        rows = list(table.rows if word is None else _rows_of(table, word))
        if rows:
            yield table, rows


def _rows_of(table: Table, word: str) -> Iterator[tuple[str, ...]]:
    """The rows that name the word; a row that lists several names is reduced to this one."""
    lists = table.columns[0] == "of"
    for row in table.rows:
        names = [part.strip("` ") for part in row[1 if lists else 0].split(",")]
        named = [name for name in names if word in (name, name.rpartition(".")[2])]
        if named:
            yield (row[0], ", ".join(named)) if lists else row


def _plain(cell: str) -> str:
    """A cell without its Markdown."""
    text = cell.replace("`", "")
    return text[1:].partition("]")[0] if text.startswith("[") else text


def _text(table: Table, rows: list[tuple[str, ...]], width: int) -> str:
    """A table for the terminal: the first column, and the other columns, wrapped."""
    lines = [table.title, "-" * len(table.title)]
    first = max(min(len(_plain(row[0])), 44) for row in rows) + 2
    for row in rows:
        name, rest = _plain(row[0]), "; ".join(_plain(cell) for cell in row[1:] if cell)
        if len(name) >= first:
            lines.append(name)
            name = ""
        wrapped = textwrap.wrap(rest, max(width - first, 30)) or [""]
        lines += [f"{name:{first}}{wrapped[0]}".rstrip(), *(f"{'':{first}}{line}" for line in wrapped[1:])]
    return "\n".join(lines)
