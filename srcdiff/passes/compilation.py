"""The request to the compiler, and the state that the passes transform."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from srcdiff.analyses.decisions import Decisions
from srcdiff.analyses.parallel_iterations import Conflict
from srcdiff.diagnostics import Span
from srcdiff.frontend.domain.abstract_values import Abstract
from srcdiff.frontend.reading import Reading
from srcdiff.frontend.source.capture import Captured
from srcdiff.ir.nodes import Function, Loop, Program, Value
from srcdiff.passes.loops_in_threads import Choice
from srcdiff.passes.manager import State
from srcdiff.passes.reverse_mode import Reversal
from srcdiff.passes.workspace_parameters import WorkspaceBuffer
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.descriptions import Description


@dataclass(slots=True)
class Request:
    """A request: a function, its argument types, and the kind of derivative."""

    captured: Captured
    arguments: dict[str, Description]
    wrt: tuple[str, ...]
    mode: str
    """`primal`; `reverse`, the gradient of a number; `pullback`, from given adjoints of all results; `forward`."""
    with_value: bool = True
    has_aux: bool = False
    single: bool = True
    """Whether the gradient is a single value and not a tuple."""
    exact: bool = False
    """Whether sizes may be one at run time and stretch."""
    of: Any = None
    """The derivative, or the function with a custom rule, that is differentiated instead of the plain function."""
    jacobian: bool = False
    """Whether to compute all tangents or pullbacks (a Jacobian) instead of those of given directions."""
    directions: int | None = None
    """The number of directions in one sweep, if the user chose it."""
    numbers: int | None = None
    """How many of them there are, if that is known: so few that the innermost loops over them are unrolled."""
    workspace: bool = False
    """Whether it takes its memory from the caller and returns it."""
    given_results: bool = False
    """Whether it writes its results to arrays of the caller, if their shapes are known from those of the arguments."""
    batch: tuple[str, ...] = ()
    """The arguments over whose leading axes it is called, if it is called for a batch at once."""
    sums: bool = False
    """Whether gradients of the other arguments are added up over the batch."""
    short_axes: tuple[tuple[str, int, int], ...] = ()
    """Axes of few elements, of arrays that are large: the argument, the axis, and its length at the first call."""
    error_model: str = ""
    """The behaviour of division by zero, if the user chose it."""
    parallel: bool = False
    """Whether threads share its loops."""
    deterministic: bool = True
    """Whether the order of additions by threads is always the same: there are no atomic additions."""


@dataclass(slots=True)
class Compilation(State):
    """A program on its way from the reader to the emitter."""

    request: Request
    reading: Reading
    inside: bool = False
    """Whether the derivative is written into another function."""
    seeds: dict[str, Abstract] = field(default_factory=dict)
    """The seeds of the derivative: tangents of arguments, or adjoints of results."""
    workspace: tuple[WorkspaceBuffer, ...] = ()
    backend: str = ""
    """The name of the backend that the text is for; none of a derivative that is written into another function."""
    kernels: tuple[Function, ...] = ()
    """The functions that a GPU runs."""
    added_to: dict[Value, Value] = field(default_factory=dict)
    """Arrays whose adjoints are added up over a batch, with these adjoints."""
    whole: dict[Value, Value] = field(default_factory=dict)
    """The batched arguments."""
    independent: dict[Loop, frozenset[Value]] = field(default_factory=dict)
    """Loops whose iterations are known to be independent, with the arrays that they add to all the same."""
    module: Any = None
    """The text, once it is written."""
    warnings: list[str] = field(default_factory=list)
    """Why gradients are zero."""
    equality_tests: list[str] = field(default_factory=list)
    """Tests for equality of numbers that are differentiated."""
    searches: list[str] = field(default_factory=list)
    """Loops that search by comparisons only."""
    reversals: tuple[Reversal, ...] = ()
    """The functions that are being reversed: the main one, and those it calls."""
    reversed_callees: tuple[Function, ...] = ()
    """Those that it calls, as they are."""
    joint: dict[str, str] = field(default_factory=dict)
    """Recursive functions that run together with their adjoints, and the names of both together."""
    differentiated: Function | None = None
    """The program that the derivative is of."""
    differentiated_callees: tuple[Function, ...] = ()
    """The functions that it calls."""
    decisions: Decisions = field(default_factory=Decisions)
    claims: tuple[tuple[Span | None, Conflict], ...] = ()
    """Loops over `prange`, and what is taken on the user's word of them."""

    choices: tuple[Choice, ...] = ()
    """The decision for each loop, if threads share loops."""

    @property
    def further(self) -> dict[str, Abstract]:
        """The parameters after those of the function: the seeds, if they are passed."""
        return {} if self.request.jacobian else self.seeds

    @property
    def main(self) -> Function:
        return self.program.main

    @main.setter
    def main(self, function: Function) -> None:
        self.program = replace(self.program, main=function)

    @property
    def callees(self) -> tuple[Function, ...]:
        return self.program.callees

    @callees.setter
    def callees(self, functions: tuple[Function, ...]) -> None:
        self.program = replace(self.program, callees=functions)

    def whole_program(self) -> Program:
        """The program with the kernels that it calls."""
        return replace(self.program, callees=(*self.callees, *self.kernels)) if self.kernels else self.program

    @property
    def span(self) -> Span:
        """The place where the function is defined."""
        return self.request.captured.span
