"""Derivatives of users' own kernels: compiled for types and launches, and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from srcdiff.backends.cuda import numba_cuda
from srcdiff.backends.cuda.device import Device
from srcdiff.backends.cuda.kernel_passes import KernelCompilation
from srcdiff.backends.cuda.races import SPREAD, Spread
from srcdiff.backends.cuda.thread_memory import CAPACITY, Scratch
from srcdiff.backends.python import interpreter
from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.diagnostics.timings import timed
from srcdiff.frontend.read import read
from srcdiff.frontend.source.capture import Captured
from srcdiff.frontend.source.guards import ChangedError
from srcdiff.frontend.source.watch import Watch
from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.nodes import Coordinate, Formatted, Function, Program, Value, walk
from srcdiff.ir.types import FLOAT, Array, bytes_of
from srcdiff.passes.manager import look, run
from srcdiff.pipeline import KERNEL_PASSES
from srcdiff.signature.descriptions import Description


def compile_kernel(
    captured: Captured,
    arguments: dict[str, Description],
    chosen: dict[str, tuple[str, ...]],
    spread: Spread | None,
) -> CompiledKernel:
    """A derivative of the kernel; `chosen` has the active arguments for each kind of adjoint or tangent.

    Without `spread`, several threads and blocks are assumed along the axes that the kernel uses.
    """
    with timed("reading"):
        reading = read(captured, arguments, kernel=True)
    main = replace(reading.program.main, written=tuple(p for p in reading.program.main.params if _is_array(p)))
    work = KernelCompilation(Program(main), captured, reading, _axes_spoken_of(main) if spread is None else spread)
    params = {name: value for name, value in reading.arguments.items() if isinstance(value, Value)}
    work.bars = {params[n]: _beside(params[n], "bar") for n in chosen.get("bar", ())}
    work.dots = {params[n]: _beside(params[n], "dot") for n in chosen.get("dot", ())}
    work.dots |= {work.bars[params[n]]: _beside(work.bars[params[n]], "dot") for n in chosen.get("bar_dot", ())}
    look("reading", work)
    run(KERNEL_PASSES, work)
    given = [params.get(n) for n in arguments]
    beside: dict[str, list[Value | None]] = {
        "bar": [work.bars.get(p) if p else None for p in given],
        "dot": [work.dots.get(p) if p else None for p in given],
        "bar_dot": [work.dots.get(work.bars[p]) if p and p in work.bars else None for p in given],
    }
    return CompiledKernel(work, [*given, *(v for mark in chosen for v in beside[mark])])


class CompiledKernel:
    """A derivative of a kernel, ready to be launched."""

    def __init__(self, work: KernelCompilation, given: Sequence[Value | None]) -> None:
        assert work.private is not None
        self.work, self.private, self.given = work, work.private, given
        """`given` are the parameters of a call, in order; None for those without a value."""
        self.text: str = work.module.text
        self.file = interpreter.new_file(work.module.name)
        self.watch = Watch(work.captured.function, work.reading.guards).values()
        sites = points_to(work.main)
        self.stored = written_sites(work.main.body, sites)
        self.stored_by_measure: set[Value] = set()
        if self.private.measure is not None:
            measuring = self.private.measure.kernel
            self.stored_by_measure = written_sites(measuring.body, points_to(measuring))
        self._names: dict[str, Any] | None = None
        self._host: dict[str, Any] | None = None

    def is_current(self) -> bool:
        """Whether the outside values that are compiled in have not changed."""
        try:
            self.watch()
        except ChangedError:
            return False
        return True

    @property
    def names(self) -> dict[str, Any]:
        if self._names is None:
            self._names = numba_cuda.load_kernels(self.text, self.work.module.objects, self.file)
        return self._names

    def ptx(self, cc: tuple[int, int]) -> str:
        module = self.work.module
        kernels = {module.name: module.kernels[module.name]}
        return numba_cuda.ptx(self.text, kernels, module.objects, self.file, cc)[module.name]

    # -- running -----------------------------------------------------------------------------------------------------

    def run(self, shape: tuple[Any, ...], values: Sequence[Any]) -> None:
        """Launch it in blocks of threads of this shape, on a stream if there is one."""
        passed = {p: v for p, v in zip(self.given, values, strict=True) if p is not None and v is not None}
        refuse_shared_memory(passed, self.stored, self.work.span)
        passed |= {o.value: o.read() for o in self.work.reading.outside}
        stream = shape[2] if len(shape) > 2 else 0
        device = Device(stream=stream)
        if self.private.scratch:
            passed |= self.scratch(shape, passed, device)
        if self.private.errors is not None:
            passed[self.private.errors] = device.zeros(1, np.int64)
        self.names[self.work.main.name][shape](*(passed[p] for p in self.work.main.params))
        if self.private.errors is not None:
            self.raise_what_threads_raised(int(device.host_array(passed[self.private.errors])[0]))

    def scratch(self, shape: tuple[Any, ...], passed: dict[Value, Any], device: Device) -> dict[Value, Any]:
        """The workspace of the threads."""
        threads = 1
        for extents in shape[:2]:
            for extent in (extents,) if isinstance(extents, int | np.integer) else extents:
                threads *= int(extent)
        measured = self.measured_lengths(shape, passed, device, threads)
        return self.arrays(self.private.scratch, self.private.kernel.name, passed, measured, device, threads)

    def arrays(
        self,
        scratch: Sequence[Scratch],
        kernel: str,
        passed: dict[Value, Any],
        measured: Mapping[int, int],
        device: Device,
        threads: int,
    ) -> dict[Value, Any]:
        """The workspace arrays of a kernel, with lengths from formulas or from measurement."""
        known = iter(self.known_lengths(kernel, passed))
        shapes: dict[Value, tuple[int, ...]] = {}
        for one in scratch:
            lengths = [measured[n] if isinstance(n, int) else int(next(known)) for n in one.lengths]
            shapes[one.param] = (*(max(1, n) for n in lengths), threads)
        self.refuse_too_much(shapes, device, threads)
        return {param: device.empty(s, np.dtype(param.array.dtype)) for param, s in shapes.items()}

    def known_lengths(self, kernel: str, passed: dict[Value, Any]) -> tuple[int, ...]:
        name = f"{kernel}_lengths"
        if f"def {name}(" not in self.text:
            return ()
        extra = {s.param for s in self.private.scratch}
        params = [p for p in self.work.main.params if p not in extra and p is not self.private.errors]
        if self._host is None:
            self._host = interpreter.load(self.text, self.work.module.objects, self.file)
        found: tuple[int, ...] = self._host[name](*(passed[p] for p in params))
        return found

    def measured_lengths(
        self, shape: tuple[Any, ...], passed: dict[Value, Any], device: Device, threads: int
    ) -> dict[int, int]:
        """The lengths that a measuring run of the kernel reports; it runs on copies of the arrays that it writes."""
        measure = self.private.measure
        if measure is None:
            return {}
        sizes = device.zeros(measure.count, np.int64)
        capacities = dict.fromkeys(measure.guessed, CAPACITY)
        while True:
            copies = {p: device.copy(device.array(passed[p])) for p in self.stored_by_measure if p in passed}
            values = {**passed, **copies, measure.sizes: sizes}
            values |= self.arrays(measure.scratch, measure.kernel.name, passed, capacities, device, threads)
            if self.private.errors is not None:
                values[self.private.errors] = device.zeros(1, np.int64)
            self.names[measure.kernel.name][shape](*(values[p] for p in measure.kernel.params))
            found = {n: int(size) for n, size in enumerate(device.host_array(sizes))}
            lacking = {n: 2 * found[n] for n, capacity in capacities.items() if found[n] > capacity}
            if not lacking:
                return found
            capacities |= lacking

    def refuse_too_much(self, shapes: dict[Value, tuple[int, ...]], device: Device, threads: int) -> None:
        needed = sum(int(np.prod(s)) * bytes_of(p.array.dtype) for p, s in shapes.items())
        free = device.free_memory()
        if free is not None and needed > free:
            each = needed // threads
            raise MemoryError(
                f"`{self.work.main.name}` needs {needed} bytes of workspace ({each} for each of {threads} threads), "
                f"but the device has {free}: launch the kernel on parts of the arrays, one after the other"
            )

    def raise_what_threads_raised(self, code: int) -> None:
        if code:
            raised = self.private.raised[code - 1]
            raise raised.exception(*(_said(p) for p in raised.parts))


def _said(part: Any) -> Any:
    """A part of an exception; the numbers that a thread had are not known to the host."""
    if isinstance(part, Formatted):
        return part.template.replace("{}", "...")
    return "..." if isinstance(part, Value) else part


def refuse_shared_memory(passed: dict[Value, Any], stored: set[Value], span: Span) -> None:
    """Arrays that the kernel writes into have memory of their own."""
    arrays = [(p, _extent(v)) for p, v in passed.items() if _is_array(p)]
    for k, (p, mine) in enumerate(arrays):
        for q, other in arrays[k + 1 :]:
            if (p in stored or q in stored) and mine[0] < other[1] and other[0] < mine[1]:
                message = f"`{p.name}` and `{q.name}` share memory, and the kernel writes to one of them"
                raise DifferentiationError([Problem("SD403", message, span)])


def _extent(array: Any) -> tuple[int, int]:
    """The addresses that an array may touch, from and to."""
    if isinstance(array, np.ndarray):
        return np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)
    if not hasattr(array, "__cuda_array_interface__"):
        return _extent(array._ary)  # of the simulator
    interface = array.__cuda_array_interface__
    itemsize, start = np.dtype(interface["typestr"]).itemsize, int(interface["data"][0])
    if 0 in interface["shape"]:
        return start, start
    strides = interface.get("strides")
    if strides is None:
        return start, start + itemsize * int(np.prod(interface["shape"]))
    ends = [s * (n - 1) for s, n in zip(strides, interface["shape"], strict=True)]
    return start + sum(e for e in ends if e < 0), start + sum(e for e in ends if e > 0) + itemsize


def _is_array(value: Value) -> bool:
    return isinstance(value.type, Array)


def _beside(value: Value, what: str) -> Value:
    """The adjoint of a number is an array of one element, to which threads add; its tangent is a number."""
    type_ = value.type if _is_array(value) else Array("float64", 1) if what == "bar" else FLOAT
    return Value(type_, f"{value.name}_{what}")


def _axes_spoken_of(kernel: Function) -> Spread:
    axes = {0, *(o.axis for o in walk(kernel.body) if isinstance(o, Coordinate))}
    return Spread(frozenset((kind, axis) for kind, axis in SPREAD if axis in axes))
