"""Problems in a user's program, and the exceptions and warnings that report them."""

from __future__ import annotations

from collections.abc import Sequence

from srcdiff.diagnostics.catalogue import CATALOGUE
from srcdiff.diagnostics.render import render
from srcdiff.diagnostics.span import Span
from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a function is rejected: a code of the catalogue, the message, the place and a suggestion."""

    code: str
    message: str
    span: Span | None
    label: str = ""
    notes: tuple[str, ...] = ()
    help: str = ""

    def __post_init__(self) -> None:
        if self.code not in CATALOGUE:
            raise KeyError(f"no row for {self.code} in the catalogue of problems")

    def __str__(self) -> str:
        return render(
            self.code, self.message, self.span, self.label, self.notes, self.help or CATALOGUE[self.code].help
        )


class DifferentiationError(Exception):
    """The function cannot be differentiated. `problems` lists every reason with its place in the source."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n\n".join(str(p) for p in self.problems))

    def __reduce__(self) -> tuple[type[DifferentiationError], tuple[Sequence[Problem]]]:
        return DifferentiationError, (self.problems,)

    def __str__(self) -> str:
        count = len(self.problems)
        head = "" if count == 1 else f"{count} problems\n\n"
        return "\n" + head + "\n\n".join(str(p) for p in self.problems)


class ListsInJacobianError(DifferentiationError):
    """A Jacobian of a list whose length is known only at run time: such a list has no axis in it."""


class ComplexJacobianError(DifferentiationError):
    """A Jacobian by complex numbers, or of complex results: a matrix of real numbers does not hold it."""


class NotExportedError(TypeError):
    """A derivative, or an object that its code refers to, cannot be written to a file."""


class ZeroGradientWarning(UserWarning):
    """The result does not depend on a chosen argument, so its gradient is zero; the message says why."""


class ComparisonSearchWarning(UserWarning):
    """A loop searches by comparisons only: the derivative of what it finds is lost. The message has the line."""


class EqualityTestWarning(UserWarning):
    """A test for equality of floats decides what is differentiated; the message has the line."""


class CompiledDiffersWarning(UserWarning):
    """Numba may compile a function to results that differ from its source, which srcdiff differentiates."""


class Refusal(Exception):  # noqa: N818 -- it never reaches the user; it carries a problem to the list of problems
    """Raised inside the compiler; `None` means that the problem is already reported."""

    def __init__(self, problem: Problem | None) -> None:
        self.problem = problem
        super().__init__(str(problem))


class InternalError(Exception):
    """A defect of srcdiff, not of the user's program."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}\nThis is a defect of srcdiff, not of your program. Please report it with the function and its "
            "argument types; backend='python' and SRCDIFF_SHOW=all show more."
        )
