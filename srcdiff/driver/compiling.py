"""From a request to a function that runs: reading, the passes, the cache and the backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from srcdiff import pipeline
from srcdiff.analyses.failing_checks import check_fails
from srcdiff.backends import cuda
from srcdiff.backends.backend import Backend, Generated, Trait
from srcdiff.backends.cuda.thread_memory import private_memory
from srcdiff.backends.numba import numba_cpu
from srcdiff.backends.registry import BACKENDS
from srcdiff.diagnostics import DifferentiationError, Problem, Span, progress
from srcdiff.diagnostics.garbage import seldom_collected
from srcdiff.diagnostics.timings import timed
from srcdiff.driver import source_cache
from srcdiff.emit.module import Module
from srcdiff.frontend.boundary import parts_of_arguments
from srcdiff.frontend.domain.abstract_values import Abstract, Static
from srcdiff.frontend.read import read
from srcdiff.frontend.reading import Reading
from srcdiff.frontend.source.guards import Guard, collected, names_in
from srcdiff.ir.nodes import Value, free_values
from srcdiff.ir.types import INT, Array
from srcdiff.passes import differentiation as derivative
from srcdiff.passes import requested
from srcdiff.passes.compilation import Compilation, Request
from srcdiff.passes.manager import look, run
from srcdiff.passes.workspace_parameters import WorkspaceBuffer
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.trees import Part


@dataclass(frozen=True, slots=True)
class Compiled:
    """The text, the reading it came from, and the function that runs."""

    text: str
    reading: Reading
    guards: tuple[Guard, ...]
    """The guards of the reading, and of the names in the text."""
    function: Callable[..., Any]
    warnings: tuple[str, ...]
    """Why gradients are zero."""
    equality_tests: tuple[str, ...]
    """Tests for equality of numbers that are differentiated."""
    searches: tuple[str, ...]
    """Loops that search by comparisons only."""
    apart: tuple[tuple[int, int], ...]
    """Pairs of values, counted as the function's parts, that must not share memory."""
    writes: tuple[str, ...]
    """All that the function writes into: arrays in the arguments, lists, and arrays from outside."""
    written: tuple[Part, ...]
    """The arrays of floats in the arguments that the function writes into: results of other modes than `reverse`."""
    further: dict[str, Abstract]
    """The further parameters of the compiled function, after the arguments and the outside values."""
    workspace: tuple[WorkspaceBuffer, ...]
    """The buffers that it takes from the caller after its arguments and returns after its results."""
    kept_elsewhere: tuple[Span, ...]
    """The places of values that it keeps in other memory."""
    request: Request
    form: Abstract | None
    """How a Jacobian is made."""


class StretchedError(Exception):
    """The arguments have sizes of one that stretch, and the program would be read as if there were none."""


def compile_request(
    request: Request, backend: str, options: dict[str, Any], given: Sequence[Any] | None = None
) -> Compiled:
    """Carry out a request; raise instead of compiling code that is known to raise for the given arguments."""
    with progress.shown(f"`{request.captured.name}`"), collected() as guards, seldom_collected():
        state = start(request, backend)
        state.is_followed = False
        if given is not None and state.reading.assumes_sizes and check_fails(state.main, _shapes(state, given)):
            raise StretchedError
        options = {**numba_cpu.followed(state.reading.told_options), **options}
        with source_cache.cached(state, options) as is_known:
            if not is_known:
                run(pipeline.PASSES, state)
    mentioned = names_in(state.module.text)
    _require_originals(mentioned, state)
    target = BACKENDS[backend]
    reading, module, function = state.reading, state.module, load(state, target, options)
    written = requested.written_arguments(reading)
    return Compiled(
        module.text,
        reading,
        (*guards, *(mentioned if Trait.NAMES_AT_RUN_TIME in target.traits else ())),
        function,
        tuple(state.warnings),
        tuple(state.equality_tests),
        tuple(state.searches),
        requested.apart_pairs(reading, written),
        requested.names_of(reading, written),
        requested.written_parts(reading),
        state.further,
        module.workspace,
        module.kept_elsewhere,
        request,
        requested.jacobian_form(state) if request.jacobian else None,
    )


def _shapes(state: Compilation, given: Sequence[Any]) -> dict[Value, tuple[int, ...]]:
    """The shapes of the arrays among the arguments."""
    arrays = [
        p for p in parts_of_arguments(state.reading.arguments) if isinstance(getattr(p.value, "type", None), Array)
    ]
    return {part.value: np.shape(part.of(given)) for part in arrays}


def load(state: Compilation, backend: Backend, options: dict[str, Any]) -> Callable[..., Any]:
    """The function that the backend makes from the text."""
    passed = tuple(n for n, x in state.reading.arguments.items() if not isinstance(x, Static))
    is_kept = source_cache.is_cached(state.request, backend.name, options)
    return backend.load(Generated(state.module, state.request, passed, is_kept), options)


def follow(request: Request, backend: str, *, any_result: bool = False) -> Compilation:
    """Run all passes and return the final state, without compiling or caching anything.

    With `any_result`, the pullback replaces the gradient of a function that does not return one float.
    """
    with seldom_collected():
        return _followed(request, backend, any_result)


def _followed(request: Request, backend: str, any_result: bool) -> Compilation:
    state = start(request, backend)
    if any_result and request.mode == "reverse" and not requested.returns_float(state):
        state = start(replace(request, mode="pullback", with_value=False, has_aux=False, single=False), backend)
    run(pipeline.PASSES, state)
    return state


def numbers_of(request: Request, args: Sequence[Any]) -> tuple[int | None, int | None]:
    """The numbers of inputs and outputs of the Jacobian for these arguments, if the program determines them."""
    state = _tidied(request)
    parts = parts_of_arguments(state.reading.arguments)
    known = {part.value: part.of(tuple(args)) for part in parts if isinstance(part.value, Value)}
    return requested.numbers_of(state, known)


def cheaper_mode(request: Request, asked: str | None) -> tuple[str, int | None]:
    """The mode of a Jacobian for any arguments of such types, and how many directions it has, if they are known to be
    few."""
    state = _tidied(request)
    mode = asked or requested.cheaper_mode(state)
    return mode, requested.few_directions(state, mode)


def _tidied(request: Request) -> Compilation:
    with collected(), seldom_collected():
        state = start(request, "python")
        run((pipeline.NESTED_DERIVATIVES, *pipeline.CLEAN_UP), state)
    return state


def start(request: Request, backend: str) -> Compilation:
    """Read the function."""
    progress.step("reading")
    with timed("reading"):
        how = {"exact": request.exact, "derivative": request.of, "error_model": request.error_model}
        reading = read(request.captured, request.arguments, **how)
    state = Compilation(reading.program, request, reading, backend=backend)
    state.around = frozenset(v for callee in state.callees for v in free_values(callee))  # see `finished`
    requested.refuse_lost_results(state)
    if request.jacobian:
        requested.refuse_lists_in_jacobian(state)
    state.seeds = requested.seeds_of(state)
    if hasattr(request.of, "suffix"):
        state.main = replace(state.main, name=f"{state.main.name}_{request.of.suffix}")
    if request.mode != "reverse":  # writes to the arguments are results of the function
        state.main = replace(state.main, written=tuple(p for p in state.main.params if isinstance(p.type, Array)))
    if request.mode == "primal":
        state.main = replace(state.main, name=derivative.free_name(state, state.main.name))
    look("reading", state)
    return state


def for_threads(request: Request) -> Module:
    """The text of a derivative of numbers for GPU threads: all of its storage has a known size."""
    state = follow(request, "python")
    private = private_memory(state.main, Value(INT))
    for scratch in private.scratch:
        name = scratch.param.name.removeprefix("kept_").removesuffix("_of_all")
        message = f"the storage that `{name}` needs for the reverse sweep is not known at compile time"
        help_ = "use constant loop bounds, or differentiate the kernel that calls it with `srcdiff.cuda.kernel`"
        raise DifferentiationError([Problem("SD502", message, state.span, help=help_)])
    if private.raised:
        span = private.raised[0].span
        raise DifferentiationError([Problem("SD501", "an exception is raised in code that a GPU thread calls", span)])
    state.main, state.backend = private.kernel, cuda.BACKEND.name
    pipeline.emit(state)
    module: Module = state.module
    return module


def _require_originals(mentioned: Sequence[Guard], state: Compilation) -> None:
    """Reject text whose names refer to other objects than when srcdiff was imported."""
    for guard in mentioned:
        if not guard.holds():
            name = guard.place.text(lambda module: module.__name__)
            message = f"`{name}` has been replaced, but the derivative needs the original function"
            raise DifferentiationError([Problem("SD302", message, state.span, help=f"restore `{name}`")])
