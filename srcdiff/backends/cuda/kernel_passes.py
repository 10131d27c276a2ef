"""Passes about kernels: loops that become kernels; races, guards, derivatives and memory of users' own kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from srcdiff.backends.cuda.complex_kernels import with_real_additions, with_real_functions
from srcdiff.backends.cuda.kernel_adjoint import (
    Guard,
    adding_atomically,
    refuse_lost_adjoints,
    reversal_of_kernel,
    tangent_of_kernel,
    without_guard,
)
from srcdiff.backends.cuda.kernel_extraction import to_kernels
from srcdiff.backends.cuda.races import Spread, problems_of_threads
from srcdiff.backends.cuda.thread_memory import Private, Scratch, private_memory, refuse_in_threads
from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.frontend.domain.abstract_values import Static
from srcdiff.frontend.reading import Reading
from srcdiff.frontend.source.capture import Captured
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Barrier,
    Block,
    CoordinateKind,
    Function,
    Library,
    Operation,
    Program,
    Store,
    Value,
    walk,
)
from srcdiff.library.blas_lapack import is_seen
from srcdiff.passes.compilation import Compilation
from srcdiff.passes.manager import State
from srcdiff.passes.reverse_mode import Reversal
from srcdiff.quick_dataclasses import dataclass


@dataclass(slots=True)
class KernelCompilation(State):
    """A kernel on its way from the reader to the emitter."""

    captured: Captured
    reading: Reading
    spread: Spread
    """The coordinates along which the launch has more than one thread or block."""
    bars: dict[Value, Value] = field(default_factory=dict)
    """The given adjoints of parameters."""
    dots: dict[Value, Value] = field(default_factory=dict)
    """The given tangents of parameters and of their adjoints."""
    guard: Guard | None = None
    private: Private | None = None
    reversals: tuple[Reversal, ...] = ()
    reversed_callees: tuple[Function, ...] = ()
    module: Any = None
    """The text, once it is written."""

    @property
    def main(self) -> Function:
        return self.program.main

    @main.setter
    def main(self, function: Function) -> None:
        self.program = Program(function)

    @property
    def span(self) -> Span:
        return self.captured.span


def differentiated(state: KernelCompilation) -> bool:
    """Whether the adjoint of the kernel is wanted."""
    return bool(state.bars)


def alone(state: KernelCompilation) -> bool:
    """Whether the adjoint of a kernel is requested whose threads do not share memory (unless it has a race)."""
    meets = any(isinstance(o, Barrier) or (isinstance(o, Store) and o.atomic) for o in walk(state.main.body))
    return differentiated(state) and not meets


def together(state: KernelCompilation) -> bool:
    """Whether the adjoint is wanted of a kernel whose threads meet."""
    return differentiated(state) and not alone(state)


def guarded(state: KernelCompilation) -> bool:
    return state.guard is not None


def has_tangents(state: KernelCompilation) -> bool:
    return bool(state.dots)


def check_races(state: KernelCompilation) -> None:
    problems = problems_of_threads(state.main, state.spread)
    if not isinstance(state.reading.result, Static):
        problems.append(
            Problem("SD502", "a kernel cannot return a value", state.span, help="write the results to an array")
        )
    if problems:
        raise DifferentiationError(problems)
    refuse_in_threads(state.main)


def open_guard(state: KernelCompilation) -> None:
    state.main, state.guard = without_guard(state.main)


def start_reversal(state: KernelCompilation) -> None:
    state.reversals = (reversal_of_kernel(state.main, state.bars, state.spread, f"{state.main.name}_adjoint"),)


def check_adjoints(state: KernelCompilation) -> None:
    refuse_lost_adjoints(state.reversals[0], state.bars, state.span)


def close_guard(state: KernelCompilation) -> None:
    assert state.guard is not None
    state.main = state.guard.around(state.main)


def tangent_kernel(state: KernelCompilation) -> None:
    state.main = tangent_of_kernel(state.main, state.dots, f"{state.main.name}_tangent", state.span)


def add_atomically(state: KernelCompilation) -> None:
    state.main = adding_atomically(state.main, state.spread)


def place_memory(state: KernelCompilation) -> None:
    builder = Builder()
    thread = _number_of_thread(builder, state.spread)
    main = replace(state.main, body=Block((*builder.operations, *state.main.body.operations)))
    state.private = private_memory(main, thread, measures_on_copies=True)
    state.main = state.private.kernel


def _number_of_thread(builder: Builder, spread: Spread) -> Value:
    """The number of a thread among all of the launch."""

    if all(axis == 0 for _, axis in spread):
        return builder.coordinate(CoordinateKind.GLOBAL_INDEX)
    number = builder.const(0)
    for index, extent in (
        (CoordinateKind.BLOCK_INDEX, CoordinateKind.GRID_SIZE),
        (CoordinateKind.THREAD_INDEX, CoordinateKind.BLOCK_SIZE),
    ):
        for axis in reversed([a for kind, a in spread if kind is index]):
            number = builder.apply("multiply", number, builder.coordinate(extent, axis))
            number = builder.apply("add", number, builder.coordinate(index, axis))
    number.name = "thread"
    return number


def lengths_function(
    private: Private, kernel: Function, scratch: Sequence[Scratch], definition: dict[Value, Operation]
) -> Function | None:
    """The function that computes on the host the lengths of a kernel's arrays that have a formula."""
    wanted = [n for s in scratch for n in s.lengths if isinstance(n, Value)]
    if not wanted:
        return None
    operations: dict[Operation, None] = {}

    def need(value: Value) -> None:
        operation = definition.get(value)
        if operation is not None and operation not in operations:
            for used in operation.uses():
                need(used)
            operations[operation] = None

    for value in wanted:
        need(value)
    own = {s.param for s in private.scratch}
    params = tuple(p for p in private.kernel.params if p not in own and p is not private.errors)
    return Function(f"{kernel.name}_lengths", params, Block(tuple(operations), tuple(wanted)))


def compute_by_parts(state: KernelCompilation) -> None:
    """Complex functions by real ones, and additions of several threads to complex elements by parts."""
    state.main = with_real_additions(with_real_functions(state.main))


def extract_kernels(state: Compilation) -> None:
    """Independent loops become kernels."""
    if state.callees:
        message = "a recursive function cannot run on the GPU"
        raise DifferentiationError([Problem("SD501", message, state.span, help="write it as a loop")])
    drawing = next((o for o in walk(state.main.body) if isinstance(o, Library) and is_seen(o.function)), None)
    if drawing is not None:
        message = "a function that draws random numbers cannot run on the GPU"
        help_ = "draw the numbers outside the function and pass them in"
        raise DifferentiationError([Problem("SD501", message, drawing.span, help=help_)])
    made = to_kernels(with_real_functions(state.main), state.independent)
    state.main = made.host
    state.kernels = tuple(with_real_additions(kernel) for kernel in made.kernels)
