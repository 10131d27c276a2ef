"""The compiler as one list of named steps: the table of contents.

source text -> syntax tree -> typed IR -> facts -> adjoint or tangent IR -> Python text -> compiled function

`SRCDIFF_SHOW="reverse the program"` (or `all`) prints the program after that step; `SRCDIFF_TIMINGS=1`, how long
each of them takes. The source generated for a program, and its machine code, are kept on disk for the next process.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from srcdiff.analyses.decisions import Decisions
from srcdiff.analyses.reach import zero_gradient
from srcdiff.backends import machine_code, numba_cpu, python
from srcdiff.backends.on_device import OnDevice
from srcdiff.backends.signals import held_back
from srcdiff.caching import store
from srcdiff.caching.fingerprint import UnknownError, fingerprint, own_source, versions
from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.diagnostics.timings import timed
from srcdiff.emit.module import Module, nameable, write_module
from srcdiff.emit.naming import RESERVED
from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import without_comments
from srcdiff.ir.nodes import Block, Function, Loop, Slice, Value
from srcdiff.ir.types import FLOAT, INT, Array, is_float
from srcdiff.ir.verify import verify
from srcdiff.source.abstract import Abstract, Description, Items, List, Record, Static, Stored, Tuple, remade
from srcdiff.source.capture import Captured
from srcdiff.source.derivatives import Reading
from srcdiff.source.signature import is_written
from srcdiff.source.to_ir import mark_writing_calls, read
from srcdiff.transforms.batch import for_each
from srcdiff.transforms.contract import contract
from srcdiff.transforms.custom import rules_share_no_memory
from srcdiff.transforms.from_zero import count_from_zero
from srcdiff.transforms.fuse import fuse, straighten
from srcdiff.transforms.gather import gather
from srcdiff.transforms.kernels import to_kernels
from srcdiff.transforms.memory import tidy_memory
from srcdiff.transforms.pick import compute_where_picked
from srcdiff.transforms.products import products_as_loops
from srcdiff.transforms.recursion import adjoints_of_callees, refuse_shared_memory
from srcdiff.transforms.registers import elements_in_registers
from srcdiff.transforms.reverse import Reverse, copied_first, gradient_of, protect_arguments, with_new_results
from srcdiff.transforms.rooms import Room, with_rooms
from srcdiff.transforms.scratch import make_scratch_once
from srcdiff.transforms.share import share
from srcdiff.transforms.simplify import simplify
from srcdiff.transforms.sink import sink_into_branches
from srcdiff.transforms.stacks import stacks_as_arrays
from srcdiff.transforms.tangent import tangent_of, tangents_of_callees
from srcdiff.transforms.threads import private_memory
from srcdiff.transforms.zeros import start_from_zeros


@dataclass(slots=True)
class Request:
    """What is asked for: a function, its argument types, and which derivative."""

    captured: Captured
    arguments: dict[str, Description]
    wrt: tuple[str, ...]
    mode: str
    """`primal`; `reverse`, the gradient of a number; `pullback`, from given adjoints of all results; `forward`."""
    with_value: bool = True
    has_aux: bool = False
    single: bool = True
    """Whether the gradient stands alone, not in a tuple."""
    exact: bool = False
    """Whether sizes may be one at run time and stretch."""
    of: Any = None
    """The derivative of the function, or the function with its rule, that is meant instead of what is written there."""
    directions: int = 1
    """How many tangents of each argument `forward` takes."""
    rooms: bool = False
    """Whether it takes memory from the caller, and gives it back."""
    batch: tuple[str, ...] = ()
    """The arguments over whose leading axes it is called, if it is called for a batch at once."""
    sums: bool = False
    """Whether gradients of the other arguments are added up over the batch."""


@dataclass(slots=True)
class Work:
    """What the steps hand on."""

    request: Request
    reading: Reading
    main: Function
    callees: tuple[Function, ...]
    inside: bool = False
    """Whether the derivative is written into another function."""
    further: dict[str, Abstract] = field(default_factory=dict)
    """The parameters after those of the function: tangents of arguments, or adjoints of results."""
    rooms: tuple[Room, ...] = ()
    on_gpu: bool = False
    kernels: tuple[Function, ...] | None = None
    """The functions that a GPU runs, where there is one."""
    added_to: dict[Value, Value] = field(default_factory=dict)
    """Arrays whose adjoints are added up over a batch, with these adjoints."""
    whole: dict[Value, Value] = field(default_factory=dict)
    """What is passed for arguments of which there is a batch."""
    independent: dict[Loop, frozenset[Value]] = field(default_factory=dict)
    """Loops whose turns are known to be independent, with the arrays that they add to all the same."""
    module: Module = field(default_factory=Module)
    warnings: list[str] = field(default_factory=list)
    differentiated: Function | None = None
    """The program that the derivative is of."""

    @property
    def written(self) -> tuple[str, ...]:
        """The arguments that are arrays of floats which the function writes into."""
        return tuple(n for n, _ in _written_arrays(self.reading))

    @property
    def apart(self) -> tuple[tuple[int, int], ...]:
        """Pairs of values, counted as the function's parts, that must not share memory."""
        return _apart(self.reading, _written(self.reading))

    decisions: Decisions = field(default_factory=Decisions)
    programs: list[tuple[str, Function]] = field(default_factory=list)
    """The program after each step."""
    tidy: set[Function] = field(default_factory=set)
    """What was simplified, and need not be once more if a step changes nothing."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The text, the reading it came from, and the function that runs."""

    text: str
    reading: Reading
    function: Callable[..., Any]
    warnings: tuple[str, ...]
    apart: tuple[tuple[int, int], ...]
    """Pairs of values, counted as the function's parts, that must not share memory."""
    writes: bool
    """Whether the function writes into its arguments."""
    written: tuple[str, ...]
    """The arguments that are arrays of floats which the function writes into: results of other modes than `reverse`."""
    further: dict[str, Abstract]
    """What the compiled function takes beside the arguments and what is read from outside."""
    rooms: tuple[Room, ...]
    """The memory that it takes from the caller after its arguments, and gives back after its results."""
    kept_elsewhere: tuple[Span, ...]
    """The places of values that it keeps in other memory."""
    request: Request


def compile_request(request: Request, backend: str, options: dict[str, Any]) -> Compiled:
    work = _started(request, backend)
    key = _key(work, options) if _is_kept(request, backend, options) else None
    if key is None or not _restore(work, key):
        _take_steps(work)
        if key is not None:
            _keep(work, key)
    reading, function = work.reading, _load(work, backend, options)
    written = _written(reading)
    apart, module = _apart(reading, written), work.module
    return Compiled(
        module.text,
        reading,
        function,
        tuple(work.warnings),
        apart,
        bool(written),
        tuple(n for n, _ in _written_arrays(reading)),
        work.further,
        module.rooms,
        module.kept_elsewhere,
        request,
    )


def follow(request: Request, backend: str, *, any_result: bool = False) -> Work:
    """Take all steps to the text, and give what they have left behind; nothing is compiled or kept.

    With `any_result`, the gradient of a function that does not return one float is its pullback.
    """
    work = _started(request, backend)
    if any_result and request.mode == "reverse" and not _returns_float(work):
        work = _started(replace(request, mode="pullback", with_value=False, has_aux=False, single=False), backend)
    _take_steps(work)
    return work


def for_threads(request: Request) -> Module:
    """The text of a derivative of numbers that a thread of a GPU calls: all that it keeps has a size that is known."""
    work = follow(request, "python")
    private = private_memory(work.main, Value(INT))
    for scratch in private.scratch:
        name = scratch.param.name.removeprefix("kept_").removesuffix("_of_all")
        message = f"how much is kept of `{name}` for the reverse sweep, a thread that calls it does not know"
        help_ = "let loops have constant bounds, or differentiate the kernel that calls it, with `srcdiff.cuda.kernel`"
        raise DifferentiationError([Problem("SD502", message, _span(work), help=help_)])
    if private.raised:
        span = private.raised[0].span
        raise DifferentiationError([Problem("SD501", "an exception in code that a thread calls", span)])
    work.main, work.kernels = private.kernel, ()
    _emit(work)
    return work.module


def _started(request: Request, backend: str) -> Work:
    with timed("read the function"):
        reading = read(request.captured, request.arguments, exact=request.exact, derivative=request.of)
    work = Work(request, reading, reading.program.main, reading.program.callees)
    work.on_gpu = backend == "cuda"
    work.further = _further(work)
    if hasattr(request.of, "said"):
        work.main = replace(work.main, name=f"{work.main.name}_{request.of.said}")
    if request.mode != "reverse":  # what the user's function writes into its arguments is part of what it does
        work.main = replace(work.main, written=tuple(p for p in work.main.params if isinstance(p.type, Array)))
    if request.mode == "primal":
        work.main = replace(work.main, name=_free_name(work, work.main.name))
    look("read the function", work.main)
    work.programs.append(("read the function", work.main))
    return work


def _take_steps(work: Work) -> None:
    for name, step in STEPS:
        with timed(name):
            step(work)
            look(name, work.main)
        work.programs.append((name, work.main))


def _simplify(work: Work) -> None:
    by_themselves = [v for n, v in work.reading.intermediates.items() if n in work.request.wrt]
    work.main = _tidied(work, work.main, by_themselves)
    work.callees = tuple(_tidied(work, c) for c in work.callees)


def _tidied(work: Work, function: Function, by_themselves: Sequence[Value] = ()) -> Function:
    if function not in work.tidy:
        function = _simpler(function, by_themselves)
        work.tidy.add(function)
    return function


def _simpler(function: Function, by_themselves: Sequence[Value]) -> Function:
    simpler = simplify(function)
    shared = share(simpler, by_themselves)
    return shared if shared is simpler else simplify(shared)


def _share_loops(work: Work) -> None:
    _fuse(work)
    _tidy(work)


def _fuse(work: Work) -> None:
    work.main = fuse(work.main, work.decisions)
    work.callees = tuple(fuse(c) for c in work.callees)
    _simplify(work)


def _tidy(work: Work) -> None:
    work.main = tidy_memory(work.main)
    work.callees = tuple(tidy_memory(c) for c in work.callees)
    _simplify(work)


def _straighten(work: Work) -> None:
    _simplify(work)
    work.main = straighten(work.main)
    work.callees = tuple(straighten(c) for c in work.callees)
    _fuse(work)
    _tidy(work)
    work.main = contract(work.main)  # not before: what the sweeps hand each other must stay
    work.callees = tuple(contract(c) for c in work.callees)


def _gather(work: Work) -> None:
    work.main = gather(work.main)
    work.callees = tuple(gather(c) for c in work.callees)
    _simplify(work)
    work.main = start_from_zeros(work.main)
    _simplify(work)


def _suit_the_machine(work: Work) -> None:
    work.main = make_scratch_once(work.main)
    work.callees = tuple(make_scratch_once(c) for c in work.callees)
    work.main = count_from_zero(elements_in_registers(work.main))
    work.callees = tuple(count_from_zero(elements_in_registers(c)) for c in work.callees)
    _simplify(work)


def _pick(work: Work) -> None:
    if work.request.mode in ("reverse", "pullback"):
        work.main = compute_where_picked(work.main, [v for n in work.request.wrt for v in _chosen(work, n)])
        work.callees = tuple(compute_where_picked(c, c.params) for c in work.callees)
        _simplify(work)


def _sink(work: Work) -> None:
    if work.request.mode in ("reverse", "pullback"):
        work.main = sink_into_branches(work.main, [v for n in work.request.wrt for v in _chosen(work, n)])
        work.callees = tuple(sink_into_branches(c) for c in work.callees)
    work.differentiated = work.main


def _reverse(work: Work) -> None:
    request = work.request
    if request.mode != "reverse":
        return
    wrt = [v for name in request.wrt for v in _chosen(work, name)]  # integers there are why the result is none
    output = _output_of(work)
    for name in request.wrt:
        work.warnings += zero_gradient(work.reading, work.main, name, _chosen(work, name), output)
    _rules_apply(work)
    callees, written = adjoints_of_callees(work.callees)
    name = _free_name(work, f"{work.main.name}_{'value_and_grad' if request.with_value else 'grad'}")
    keep_results = request.with_value or request.has_aux
    work.added_to = _added_to(work)
    mixed = {p for sites in points_to(work.main).values() if len(sites) > 1 for p in sites if p in work.added_to}
    main, _ = copied_first(work.main, mixed)  # what is added to atomically, and what is not, are different arrays
    work.main = gradient_of(
        main,
        wrt,
        output,
        with_results=keep_results,
        name=name,
        callees=callees,
        given=work.added_to,
        decisions=work.decisions,
    )
    work.main = with_new_results(work.main) if request.has_aux else work.main
    work.callees = written


def _added_to(work: Work) -> dict[Value, Value]:
    """New adjoints for the arrays that all elements of a batch share, if those are added up."""
    shared = [n for n in work.request.wrt if work.request.sums and n not in work.request.batch]
    arrays = [v for n in shared for v in _chosen(work, n) if isinstance(v.type, Array)]
    return {v: Value(v.type, f"{v.name}_bar") for v in arrays}


def _pull_back(work: Work) -> None:
    """The adjoints of arguments from those of all results, and of the arrays that the function writes into."""
    if work.request.mode != "pullback":
        return
    _rules_apply(work)
    wrt = [v for name in work.request.wrt for v in _chosen(work, name)]
    main, copies = protect_arguments(_with_lists_cut(work.main, work.reading.result))
    floats = [v for v in _outputs(work, main, copies) if is_float(v.type)]
    seeds = list(zip(floats, [v for x in work.further.values() for v in _leaves(x, work.reading)], strict=True))
    callees, written = adjoints_of_callees(work.callees)
    name = _free_name(work, f"{work.main.name}_pullback")
    work.main = Reverse(main, wrt, seeds, callees, decisions=work.decisions).run((), name)
    work.callees = written


def _carry_tangents(work: Work) -> None:
    """The tangents of all results, and of the arrays that the function writes into, from those of arguments."""
    if work.request.mode != "forward":
        return
    _rules_apply(work)
    wrt = [v for name in work.request.wrt for v in _chosen(work, name)]
    dots = [v for x in work.further.values() for v in _leaves(x, work.reading)]
    main, copies = protect_arguments(work.main)
    outputs = _outputs(work, main, copies)
    name = _free_name(work, f"{work.main.name}_tangent")
    yields = list(outputs) if work.request.with_value else []
    for k in range(0, len(dots), len(wrt)):  # only what the outputs depend on has a tangent: no tangent of another
        main = tangent_of(main, dict(zip(wrt, dots[k : k + len(wrt)], strict=True)), name, outputs)
        kinds = [*_are_lengths(work.reading.result), *(False for _ in outputs)]
        for out, tangent, is_length in zip(outputs, main.body.yields, kinds, strict=False):
            yields.append(out if is_length else tangent)  # the tangent of a list is as long as the list
        work.callees = tangents_of_callees(work.callees)
    work.main = with_new_results(replace(main, body=Block(main.body.operations, tuple(yields))))


def _rules_apply(work: Work) -> None:
    refuse_shared_memory(work.main, work.callees)
    for function in (work.main, *work.callees):
        rules_share_no_memory(function)


def _further(work: Work) -> dict[str, Abstract]:
    """What the derivative takes beside the arguments: tangents of those to differentiate by, or adjoints of results."""
    reading = work.reading
    if work.request.mode == "forward":
        found: dict[str, Abstract] = {}
        for direction in range(work.request.directions):
            for n in work.request.wrt:
                argument, name = _argument(work, n), f"{n}_dot_{direction}" if direction else f"{n}_dot"
                _chosen(work, n)  # there is something to take a tangent of
                found[name] = _beside(_contents(argument, reading), iter(_leaves(argument, reading)), name)
        return found
    if work.request.mode != "pullback":
        return {}
    written = (
        {} if work.inside else {f"{n}_bar": _beside(x, iter((x,)), f"{n}_bar") for n, x in _written_arrays(reading)}
    )
    return {"result_bar": _beside(reading.result, iter(reading.program.main.body.yields), "result_bar"), **written}


def _argument(work: Work, name: str) -> Abstract:
    """An argument to take a tangent of; intermediate numbers have none to be given."""
    if name not in work.reading.arguments:
        message = f"`{name}` is no argument of the function, so that no tangent of it can be given"
        raise DifferentiationError([Problem("SD402", message, _span(work), help="name an argument with `wrt=`")])
    return work.reading.arguments[name]


def _outputs(work: Work, main: Function, copies: dict[Value, Value]) -> list[Value]:
    """What the function returns, and the arrays that it writes into as it leaves them."""
    arrays = [] if work.inside else _written_arrays(work.reading)
    return [*main.body.yields, *(copies.get(x, x) for _, x in arrays)]


def _are_lengths(x: Abstract) -> list[bool]:
    """Of each value that a result is made of, whether it is the length of a list."""
    match x:
        case Tuple() | Record() | Items():
            return [kind for i in x.items for kind in _are_lengths(i)]
        case Stored():
            return [*(False for _ in x.arrays), True]
        case Static() if not isinstance(x.value, bool | int | float):
            return []
    return [False]


def _with_lists_cut(main: Function, result: Abstract) -> Function:
    """The function whose results have of a list's storage as much as the list is long."""
    builder, values = Builder(), iter(main.body.yields)

    def cut(x: Abstract) -> list[Value]:
        if isinstance(x, Tuple | Record | Items):
            return [v for i in x.items for v in cut(i)]
        if not isinstance(x, Stored):
            return [] if isinstance(x, Static) and not isinstance(x.value, bool | int | float) else [next(values)]
        arrays, length = [next(values) for _ in x.arrays], next(values)
        first = (Slice(None, length, None),)
        return [builder.view(a, first, a.name) if isinstance(a.type, Array) else a for a in arrays] + [length]

    yields = tuple(cut(result))
    return replace(main, body=Block((*main.body.operations, *builder.operations), yields))


def _written_arrays(reading: Reading) -> list[tuple[str, Value]]:
    """The arguments that are arrays of floats which the function writes into."""
    written = _written(reading)
    return [(n, x) for n, x in reading.arguments.items() if isinstance(x, Value) and x in written and is_float(x.type)]


def _contents(x: Abstract, reading: Reading) -> Abstract:
    """An argument with its lists as what stands for them."""
    if isinstance(x, List):
        return Tuple(reading.lists[x].arrays) if x in reading.lists else Static(None)
    return remade(x, (_contents(i, reading) for i in x.items)) if isinstance(x, Tuple | Record) else x


def _beside(x: Abstract, values: Iterator[Value], name: str) -> Abstract:
    """Something made like `x`, with a new value for each float among its values."""

    def new() -> Abstract:
        value = next(values)
        return (
            Value(value.type if isinstance(value.type, Array) else FLOAT, name)
            if is_float(value.type)
            else Static(None)
        )

    match x:
        case Tuple() | Items():
            return Tuple(tuple(_beside(i, values, f"{name}_{k}") for k, i in enumerate(x.items)))
        case Record():
            return Tuple(tuple(_beside(i, values, x.kind.variable(name, k)) for k, i in enumerate(x.items)))
        case Stored():
            return Tuple(tuple(new() for _ in (*x.arrays, x.length)))
        case Static() if not isinstance(x.value, bool | int | float):
            return Static(None)
    return new()


def _take_memory(work: Work) -> None:
    if work.request.rooms:
        gradients = sum(len(_chosen(work, name)) for name in work.request.wrt)
        work.main, work.rooms = with_rooms(work.main, gradients)


def _for_each(work: Work) -> None:
    """The function, or the derivative, for each element of a batch."""
    request = work.request
    if not request.batch:
        return
    mapped = [v for n in request.batch for v in _leaves(work.reading.arguments[n], work.reading)]
    chosen = [(n, v) for n in request.wrt for v in _chosen(work, n)] if request.mode == "reverse" else []
    results = len(work.main.body.yields) - len(chosen)
    summed = []
    if request.sums:
        pairs = enumerate(zip(chosen, work.main.body.yields[results:], strict=True), results)
        summed = [k for k, ((n, _), bar) in pairs if n not in request.batch and not isinstance(bar.type, Array)]
    types = {results + k: v for k, (n, v) in enumerate(chosen) if n in request.batch}
    main = _with_types_of(products_as_loops(work.main), types)
    arguments = work.reading.arguments
    like = {results + k: v for k, (n, v) in enumerate(chosen) if arguments.get(n) is v}
    batch = for_each(main, mapped, tuple(work.added_to.values()), summed, like, _span(work))
    work.main, work.whole, work.independent = batch.function, batch.whole, {batch.loop: batch.shared}


def _with_types_of(main: Function, chosen: Mapping[int, Value]) -> Function:
    """The function with results that have the types of these values: elements of an array of gradients."""
    builder, yields = Builder(), list(main.body.yields)
    for k, value in chosen.items():
        yields[k] = builder.cast(yields[k], value.type)
    return replace(main, body=Block((*main.body.operations, *builder.operations), tuple(yields)))


def _make_kernels(work: Work) -> None:
    """Independent loops become kernels."""
    if not work.on_gpu:
        return
    if work.callees:
        message = "a recursive function is not run on the GPU"
        raise DifferentiationError([Problem("SD501", message, _span(work), help="write it as a loop")])
    made = to_kernels(work.main, work.independent)
    work.main, work.kernels = made.host, made.kernels
    for kernel in work.kernels:
        verify(kernel, "make kernels of loops")


def _emit(work: Work) -> None:
    result = _shape_of_result(work)
    work.module = write_module(
        work.main, work.callees, work.reading, work.further, result, work.rooms, work.kernels, work.whole
    )


STEPS: Sequence[tuple[str, Callable[[Work], None]]] = (
    ("simplify the program", _simplify),
    ("compute elements where they are picked", _pick),
    ("let loops share a body", _share_loops),
    ("compute inside a branch what only it differentiates", _sink),
    ("reverse the program", _reverse),
    ("pull adjoints back", _pull_back),
    ("carry tangents along", _carry_tangents),
    ("let the sweeps share loops", _straighten),
    ("let elements collect what they get", _gather),
    ("keep elements that a loop comes back to in numbers, and count from zero", _suit_the_machine),
    ("take memory from the caller", _take_memory),
    ("call it for each element of a batch", _for_each),
    ("make kernels of loops", _make_kernels),
    ("write the source", _emit),
)


@dataclass(frozen=True, slots=True)
class Derived:
    """A derivative as a program, to be written into another."""

    main: Function
    callees: tuple[Function, ...]
    further: dict[str, Abstract]
    written: set[Value]
    """The parameters that the function writes into; the derivative writes into copies."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """Which derivative is meant, of a function that is read elsewhere."""

    mode: str
    wrt: tuple[str, ...]
    with_value: bool = False
    has_aux: bool = False
    single: bool = True

    @property
    def takes(self) -> int:
        """How many arguments it takes beside those of the function."""
        return len(self.wrt) if self.mode == "forward" else 0

    def derive(self, reading: Reading) -> Derived:
        """The derivative as IR: the steps up to it, without those that are about text."""
        request = Request(reading.captured, {}, self.wrt, self.mode, self.with_value, self.has_aux, self.single)
        program = mark_writing_calls(reading.program)
        work = Work(request, reading, program.main, program.callees, inside=True)
        work.further = _further(work)
        for name, step in STEPS[: [step for _, step in STEPS].index(_straighten)]:
            step(work)
            look(name, work.main)
        main, _ = protect_arguments(stacks_as_arrays(without_comments(work.main)))
        main = with_new_results(main) if self.mode == "primal" else main
        callees = tuple(stacks_as_arrays(without_comments(c)) for c in work.callees)
        return Derived(main, callees, work.further, _written(reading))


def _load(work: Work, backend: str, options: dict[str, Any]) -> Callable[..., Any]:
    module = work.module
    if backend == "cuda":
        return OnDevice(module, work.request, _passed(work), _file(module), options)
    if backend == "python":
        return _interpreted(module.text, module.name, tuple(module.objects.items()))
    with held_back():
        is_kept = _is_kept(work.request, backend, options)
        key = machine_code.key_of(module.text, module.objects, options) if is_kept else None
        if key is not None:
            if key not in _loaded:  # the code has the key in its names, and there can be only one of a name
                _loaded[key] = module.objects, _compiled(module, options, key)
            objects, function = _loaded[key]
            if objects == module.objects:
                return function
        # What LLVM has compiled stays in memory: it is compiled once, however many derivatives are made of it.
        same = module.text, repr(sorted(options.items())), *((name, id(x)) for name, x in module.objects.items())
        if same not in _loaded:
            _loaded[same] = module.objects, _compiled(module, options)
        return _loaded[same][1]


def _passed(work: Work) -> tuple[str, ...]:
    """The names of what the generated function takes first: the arguments that exist at run time."""
    return tuple(n for n, x in work.reading.arguments.items() if not isinstance(x, Static))


_loaded: dict[Any, tuple[dict[str, Any], Callable[..., Any]]] = {}
"""What has been compiled, with the objects that it refers to: by the key of its machine code, or by its text."""


@functools.lru_cache(maxsize=256)
def _interpreted(text: str, name: str, objects: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    """The function of the text, run by Python: the same for all derivatives that it is the text of."""
    return python.quiet(python.run(text, dict(objects), f"<srcdiff {name} {serial()}>")[name])


def _compiled(module: Module, options: dict[str, Any], key: str | None = None) -> Callable[..., Any]:
    file = _file(module, key)
    function: Callable[..., Any] = numba_cpu.load(module.text, module.functions, module.objects, options, file, key)
    return function


def _file(module: Module, key: str | None = None) -> str:
    return f"<srcdiff {module.name} {serial() if key is None else key[:20]}>"


# -- what is kept for the next process -------------------------------------------------------------------------------


def _is_kept(request: Request, backend: str, options: dict[str, Any]) -> bool:
    """Functions in files are called again by other processes; what was typed in is not."""
    if backend != "numba" or os.environ.get("SRCDIFF_SHOW"):
        return False
    wanted = options.get("cache")
    return Path(request.captured.file).is_file() if wanted is None else bool(wanted)


def _key(work: Work, options: dict[str, Any]) -> str | None:
    """All that the steps read; None if there is something among it that another process cannot recognise."""
    request, reading = work.request, work.reading
    asked = (
        request.wrt,
        request.mode,
        request.with_value,
        request.has_aux,
        request.single,
        request.exact,
        request.rooms,
        request.directions,
    )
    read = (reading.arguments, reading.result, reading.lists, reading.intermediates)
    outside = [o.value for o in reading.outside]
    doc = reading.captured.function.__doc__
    with timed("recognise the program"):
        try:
            return fingerprint(
                "source", asked, options, work.main, work.callees, read, outside, doc, versions(), own_source()
            )
        except (UnknownError, OSError):
            return None


def _restore(work: Work, key: str) -> bool:
    """Take the source from the cache, if it is there."""
    data = store.get(key)
    if data is None:
        return False
    try:
        work.module, work.warnings = _restored(json.loads(data), nameable(work.reading))
    except Exception:  # an entry that does not fit, for whatever reason, is replaced
        return False
    return True


def _restored(found: Any, objects: Mapping[str, Any]) -> tuple[Module, list[str]]:
    """What `_keep` has written; raises of anything else."""
    module = Module(
        found["name"],
        found["text"],
        set(found["support"]),
        {name: objects[name] for name in found["objects"]},
        found["functions"],
        tuple(Room(**{**room, "keeps": room["keeps"] and Span(**room["keeps"])}) for room in found["rooms"]),
        tuple(Span(**span) for span in found["kept_elsewhere"]),
    )
    defined = [node.name for node in ast.parse(module.text).body if isinstance(node, ast.FunctionDef)]
    if set(module.functions) != set(defined) or module.functions[-1] != module.name:
        raise ValueError(module.functions)
    if not all(isinstance(text, str) for text in (*module.support, *found["warnings"])):
        raise TypeError(found["warnings"])
    for room in module.rooms:
        np.empty((room.start,) * room.rank, room.dtype)  # what says that there is no memory yet
    return module, found["warnings"]


def _keep(work: Work, key: str) -> None:
    module, objects = work.module, nameable(work.reading)
    if any(objects.get(name) is not x for name, x in module.objects.items()):
        return  # it cannot be put together again
    kept = {
        "name": module.name,
        "text": module.text,
        "support": sorted(module.support),
        "objects": list(module.objects),
        "functions": module.functions,
        "rooms": [asdict(room) for room in module.rooms],
        "kept_elsewhere": [asdict(span) for span in module.kept_elsewhere],
        "warnings": work.warnings,
    }
    store.put(key, json.dumps(kept).encode())


def _free_name(work: Work, name: str) -> str:
    """The name for the function asked for; what it calls may have it already."""
    called = {n for c in work.callees for n in (c.name, f"{c.name}_adjoint", f"{c.name}_tangent")}
    while name in called or name in RESERVED:
        name += "_"
    return name


_count = 0


def serial() -> int:
    """A number that no generated file has yet."""
    global _count
    _count += 1
    return _count


# -- what the user asked for, in terms of the function's values ------------------------------------------------------


def _span(work: Work) -> Span:
    captured = work.request.captured
    node = captured.node
    return Span(captured.file, node.lineno, node.col_offset, node.col_offset + 3, captured.name)


def _leaves(x: Abstract, reading: Reading) -> list[Value]:
    match x:
        case Value():
            return [x]
        case Tuple() | Record():
            return [v for i in x.items for v in _leaves(i, reading)]
        case List():
            return list(reading.lists[x].arrays) if x in reading.lists else []
    return []


def chosen_values(work: Work, name: str) -> list[Value]:
    """The floats that an argument or an intermediate number of the function is made of."""
    if name not in work.reading.arguments:
        return [work.reading.intermediates[name]] if name in work.reading.intermediates else []
    return [v for v in _leaves(work.reading.arguments[name], work.reading) if is_float(v.type)]


def outputs_of(work: Work) -> list[int]:
    """The places among the function's results that are differentiated."""
    if work.request.mode == "reverse":
        return [_output_of(work)]
    results = work.reading.program.main.body.yields
    return [k for k, v in enumerate(results) if is_float(v.type)] or list(range(len(results)))


def _chosen(work: Work, name: str) -> list[Value]:
    """The parts of an argument, or an intermediate number of the function, to differentiate by: floats."""
    if name not in work.reading.arguments:
        return [_intermediate(work, name)]
    argument = work.reading.arguments[name]
    values = [v for v in _leaves(argument, work.reading) if is_float(v.type)]
    if not values:
        what = f"`{name}` holds no floats"
        if isinstance(argument, Value) and isinstance(argument.type, Array):
            what = f"`{name}` is an array of {argument.type.dtype}"
        help_ = (
            f"pass `{name}` as floats: `.astype(float)`" if "array" in what else "choose another argument with `wrt=`"
        )
        raise DifferentiationError([Problem("SD402", what, _span(work), help=help_)])
    return values


def _intermediate(work: Work, name: str) -> Value:
    value = work.reading.intermediates.get(name)
    defined = {v for o in work.main.body.operations for v in o.defines()} | set(work.main.params)
    if value is None or value not in defined or isinstance(value.type, Array) or not is_float(value.type):
        what = (
            f"`{name}` is neither an argument nor a float that the function assigns once, outside of branches and loops"
        )
        raise DifferentiationError([Problem("SD402", what, _span(work), help="name an argument with `wrt=`")])
    return value


def _output_of(work: Work) -> int:
    """Which of the function's results is the number to differentiate."""
    result = work.reading.result
    scalar = result
    if work.request.has_aux:
        if not (isinstance(result, Tuple) and len(result.items) == 2):
            message = "with `has_aux=True` the function returns a pair: the number, and anything else"
            raise DifferentiationError([Problem("SD401", message, _span(work))])
        scalar = result.items[0]
    if isinstance(scalar, Static) and isinstance(scalar.value, float | int):
        return 0
    if not isinstance(scalar, Value) or isinstance(scalar.type, Array) or not is_float(scalar.type):
        kinds = {"int64": "an integer", "bool": "a truth value"}
        what = (
            "a tuple"
            if isinstance(scalar, Tuple)
            else "a dictionary or a dataclass"
            if isinstance(scalar, Record)
            else "a list"
            if isinstance(scalar, Items | Stored)
            else "not a number"
        )
        if isinstance(scalar, Value):
            what = "an array" if isinstance(scalar.type, Array) else kinds.get(scalar.scalar.dtype, what)
        raise DifferentiationError([Problem("SD401", f"the result is {what}, not one float", _span(work))])
    return 0


def _returns_float(work: Work) -> bool:
    try:
        _output_of(work)
    except DifferentiationError:
        return False
    return True


def _shape_of_result(work: Work) -> str:
    """A template of the returned expression: `{0}` and so on are the function's results in order."""
    asked_for = _shape_of_what_is_asked(work)
    if not work.request.rooms:
        return asked_for
    count = len(work.main.body.yields)
    memory = "".join(f"{{{k}}}, " for k in range(count - len(work.rooms), count))
    return f"({asked_for}), ({memory.strip()})"


def _shape_of_what_is_asked(work: Work) -> str:
    request, reading = work.request, work.reading
    count = 0

    def shaped(x: Abstract, constant: bool) -> str:
        nonlocal count
        if isinstance(x, Tuple):
            parts = [shaped(i, constant) for i in x.items]
            if x.kind is not None:
                return f"{x.kind.__name__}({', '.join(parts)})"
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if isinstance(x, Record):
            return shaped(Tuple(x.items), constant)
        if isinstance(x, List) and x not in reading.lists:
            return "None"  # of an empty list
        if isinstance(x, List):
            parts = [_next() for _ in reading.lists[x].arrays]
            return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        if isinstance(x, Items):
            return shaped(Tuple(x.items), constant)
        if isinstance(x, Stored):
            return f"({', '.join(_next() for _ in (*x.arrays, x.length))})"
        if isinstance(x, Static) and not isinstance(x.value, bool | int | float):
            return repr(x.value) if constant and is_written(x) else "None"
        if isinstance(x, Value) and not constant and not is_float(x.type):
            return "None"  # data has no gradient
        return _next()

    def _next() -> str:
        nonlocal count
        count += 1
        return f"{{{count - 1}}}"

    if request.mode == "primal":
        return shaped(reading.result, True)
    if request.mode == "forward":
        written = _written_arrays(reading)
        count_of_parts = request.with_value + request.directions
        parts = [(shaped(reading.result, True), [_next() for _ in written]) for _ in range(count_of_parts)]
        return ", ".join(f"{first}, ({''.join(f'{array}, ' for array in rest)})" for first, rest in parts)
    result = shaped(reading.result, True) if request.with_value or request.has_aux else ""
    bars = [shaped(reading.arguments.get(name, Static(0.0)), False) for name in request.wrt]
    gradient = bars[0] if request.single else f"({', '.join(bars)}{',' if len(bars) == 1 else ''})"
    if request.has_aux and not request.with_value:
        assert isinstance(reading.result, Tuple)
        count = 1
        auxiliary = shaped(reading.result.items[1], True)
        return f"{gradient}, {auxiliary}"
    return f"{result}, {gradient}" if request.with_value else gradient


def _written(reading: Reading) -> set[Value]:
    """The arrays from the caller that the function writes into."""
    main = reading.program.main
    return written_sites(main.body, points_to(main)) & set(main.params)


def _apart(reading: Reading, written: set[Value]) -> tuple[tuple[int, int], ...]:
    """Pairs of the function's values that must not share memory, because one of them is written."""
    params = reading.program.main.params
    arrays = [k for k, p in enumerate(params) if isinstance(p.type, Array)]
    pairs = [(a, b) for n, a in enumerate(arrays) for b in arrays[n + 1 :]]
    return tuple((a, b) for a, b in pairs if params[a] in written or params[b] in written)


def look(name: str, function: Function) -> None:
    """Verify the program after a step, and show it if that is wanted."""
    verify(function, name)
    wanted = os.environ.get("SRCDIFF_SHOW", "")
    if wanted and (wanted == "all" or wanted == name):
        from srcdiff.ir.show import show

        print(f"--- after: {name}\n{show(function)}", file=sys.stderr)
