"""The memory report of a call: the bytes stored for the reverse sweep, by variable and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from srcdiff.diagnostics import Span
from srcdiff.quick_dataclasses import dataclass

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.passes.workspace_parameters import WorkspaceBuffer


@dataclass(frozen=True, slots=True)
class Kept:
    """Values of a variable, computed in a line of the program, that are kept until the reverse sweep reads them."""

    variable: str
    span: Span
    nbytes: int

    @property
    def line(self) -> int:
        return self.span.line


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The memory of one call; prints as a table."""

    function: str
    kept: tuple[Kept, ...]
    """The most first."""
    working: int
    """Bytes of other arrays that the gradient needs while it runs: the function's own, copies, and adjoints."""
    gradients: int
    """Bytes of the arrays that it returns as gradients."""
    uncounted: tuple[Span, ...]
    """Lines whose arrays are stored on a stack, or in a recursive function: their number is known only at run time."""

    @property
    def nbytes(self) -> int:
        """The number of stored bytes."""
        return sum(k.nbytes for k in self.kept)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.function} keeps {_amount(self.nbytes)} for the reverse sweep"
        names = [k.variable for k in self.kept]
        width = max((len(n) for n in names), default=0)
        for kept, name in zip(self.kept, names, strict=True):
            yield f"{_amount(kept.nbytes):>10}  {name:{width}}  {_place(kept.span)}"
        for span in self.uncounted:
            yield f"{'?':>10}  {'':{width}}  {_place(span)}"
        yield f"besides {_amount(self.working)} for other arrays, and {_amount(self.gradients)} for gradients"


def memory_report(
    function: str, workspace: Sequence[WorkspaceBuffer], memory: Sequence[Any], uncounted: Sequence[Span]
) -> MemoryReport:
    """The contents of the workspace after a call."""
    kept: dict[tuple[str, Span], int] = {}
    working = gradients = 0
    for buffer, array in zip(workspace, memory, strict=True):
        if buffer.keeps is not None:
            row = buffer.name.removeprefix("kept_"), buffer.keeps
            kept[row] = kept.get(row, 0) + array.nbytes
        elif buffer.is_gradient:
            gradients += array.nbytes
            working -= array.nbytes if buffer.is_copy else 0
        else:
            working += array.nbytes
    rows = sorted((Kept(*row, nbytes) for row, nbytes in kept.items()), key=lambda k: -k.nbytes)
    return MemoryReport(function, tuple(rows), working, gradients, tuple(dict.fromkeys(uncounted)))


def _amount(nbytes: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes} B"


def _place(span: Span) -> str:
    return f"line {span.line}: {span.text.strip()}"
