"""A derivative beside the function it is of: which generated lines came from which lines of the user's source."""

from __future__ import annotations

import ast
import linecache
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from srcdiff.diagnostics import Span
from srcdiff.frontend.source.capture import Captured
from srcdiff.inspect.explanation import Kept, kept_values
from srcdiff.inspect.syntax import Line, styled
from srcdiff.inspect.terminal import painted, wants_colour
from srcdiff.ir.print import lines_with_places
from srcdiff.passes.compilation import Compilation
from srcdiff.quick_dataclasses import dataclass

Place = tuple[int, int]
"""A line of the user's source: which of the pieces, and its number in the file."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The source of a user's function, with its place in the file."""

    name: str
    file: str
    first: int
    lines: tuple[Line, ...]

    def __contains__(self, span: Span) -> bool:
        return span.file == self.file and self.first <= span.line < self.first + len(self.lines)


@dataclass(frozen=True, slots=True)
class Step:
    """The program after a step of the compiler: its lines, and where they come from; no lines if it has not changed."""

    name: str
    lines: tuple[tuple[str, Place | None], ...]


@dataclass(frozen=True, slots=True)
class Sides:
    """The user's source and the generated source, side by side: prints as text, with colour in a terminal."""

    function: str
    derivative: str
    pieces: tuple[Piece, ...]
    """The function that is differentiated, and those that it calls."""
    generated: tuple[Line, ...]
    links: tuple[tuple[Place, ...], ...]
    """For each generated line, the lines from which it originates."""
    keeps: tuple[bool, ...]
    """For each generated line, whether it stores or loads values for the reverse sweep."""
    kept: tuple[tuple[Place, Kept], ...]
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return self.text(colour=wants_colour(), width=shutil.get_terminal_size((160, 24)).columns)

    __repr__ = __str__

    def text(self, *, colour: bool = False, width: int = 160) -> str:
        """Each generated line behind the line that it comes from."""
        return "\n".join(_rows(self, colour, width))

    def html(self) -> str:
        """A page that needs nothing else: hover over a line of either side, and its partners light up."""
        from srcdiff.inspect.page import page

        return page(self)

    def _repr_html_(self) -> str:
        from srcdiff.inspect.page import framed

        return framed(self.html())

    def save(self, file: str | Path) -> None:
        """Write the page into a file."""
        Path(file).write_text(self.html(), encoding="utf-8")


def sides_of(work: Compilation) -> Sides:
    """Both sources, from the results of the passes."""
    captured, module = work.request.captured, work.module
    found = list(kept_values(work, {}))
    spans = [s for o in module.origins for s in o.spans] + [k.span for k in found]
    pieces = tuple(_pieces(captured, spans))

    def place(span: Span | None) -> Place | None:
        return next(((k, span.line) for k, p in enumerate(pieces) if span in p), None) if span is not None else None

    links = [tuple(dict.fromkeys(p for s in o.spans if (p := place(s)) is not None)) for o in module.origins]
    for k, line in enumerate(module.text.splitlines()):
        if line.startswith(f"def {module.name}("):
            links[k] = ((0, captured.node.lineno),)
    return Sides(
        captured.name,
        module.name,
        pieces,
        tuple(styled(module.text.rstrip("\n"))),
        tuple(links),
        tuple(o.keeps for o in module.origins),
        tuple((p, k) for k in found if (p := place(k.span)) is not None),
        tuple(_steps(work, place)),
    )


def _steps(work: Compilation, place: Callable[[Span | None], Place | None]) -> Iterator[Step]:
    before: list[str] = []
    for name, function in work.history:
        lines = lines_with_places(function)
        texts = [text for text, _ in lines]
        yield Step(name, () if texts == before else tuple((text, place(span)) for text, span in lines))
        before = texts


# -- the user's source -----------------------------------------------------------------------------------------------


def _pieces(captured: Captured, spans: Iterable[Span]) -> Iterator[Piece]:
    first = min([captured.node.lineno, *(d.lineno for d in getattr(captured.node, "decorator_list", ()))])
    found = [_piece(captured.name, captured.file, first, captured.node.end_lineno or first)]
    yield found[0]
    for span in spans:
        if not any(span in piece for piece in found):
            piece = _around(span)
            if piece is not None:
                found.append(piece)
                yield piece


def _piece(name: str, file: str, first: int, last: int) -> Piece:
    """Lines of a file, in the colours that they have there."""
    text = "".join(linecache.getlines(file)[first - 1 : last]).rstrip("\n")
    return Piece(name, file, first, tuple(styled(textwrap.dedent(text))))


def _around(span: Span) -> Piece | None:
    """The function of the file that the place is in, the outermost; or the statement, if it is in none."""
    try:
        tree = ast.parse("".join(linecache.getlines(span.file)))
    except SyntaxError:
        return None
    body = tree.body
    while True:
        inside = [s for s in body if s.lineno <= span.line <= (s.end_lineno or s.lineno)]
        if not inside:
            return None
        if not isinstance(inside[0], ast.ClassDef | ast.If | ast.Try | ast.With):
            return _piece(span.function, span.file, inside[0].lineno, inside[0].end_lineno or inside[0].lineno)
        body = [s for s in ast.iter_child_nodes(inside[0]) if isinstance(s, ast.stmt)]


# -- in a terminal ---------------------------------------------------------------------------------------------------


def _rows(sides: Sides, colour: bool, width: int) -> Iterator[str]:
    """The generated source line by line, with the original line in front of it where that changes."""
    numbers = max(len(_number(sides, place)) for link in [*sides.links, ((0, 1),)] for place in link)
    shown = {link[-1] for link in sides.links if link}
    longest = max((sum(len(t) for _, t in _source(sides, place)) for place in shown), default=0)
    width_left = min(longest, max(20, (width - numbers) * 2 // 5))
    kept = {place for place, _ in sides.kept}
    yield painted(f"{sides.function.ljust(numbers + width_left + 3)}   {sides.derivative}", "title", colour)
    before: Place | None = None
    for line, link, keeps in zip(sides.generated, sides.links, sides.keeps, strict=True):
        place = link[-1] if link else None
        left = " " * (numbers + 3 + width_left)
        if place is not None and place != before:
            number = painted(_number(sides, place).rjust(numbers), "note" if place in kept else "faint", colour)
            left = f"{number}   {_fitted(_source(sides, place), width_left, colour)}"
        before = place or before
        mark = painted("*" if keeps else "|", "note" if keeps else "faint", colour)
        yield f"{left} {mark} {''.join(painted(t, s, colour) for s, t in line)}".rstrip()


def _number(sides: Sides, place: Place) -> str:
    piece, number = place
    return f"{sides.pieces[piece].name}:{number}" if piece else str(number)


def _source(sides: Sides, place: Place) -> Line:
    piece = sides.pieces[place[0]]
    return piece.lines[place[1] - piece.first]


def _fitted(line: Line, width: int, colour: bool) -> str:
    """The line, cut to the width."""
    shown, left = "", width
    for style, text in line:
        cut = text[:left]
        if len(text) > left and left:
            cut = cut[:-1] + "…"
        shown += painted(cut, style, colour)
        left -= len(cut)
    return shown + " " * left
