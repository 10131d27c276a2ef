"""`batched`: calls of a function or derivative for each element along the leading axis, in one compiled loop."""

from __future__ import annotations

import functools
import inspect
import itertools
import os
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any

import numpy as np

from srcdiff.api.chosen_arguments import chosen_names
from srcdiff.api.derivatives import Derivative
from srcdiff.api.reverse import differentiable
from srcdiff.api.specialisations import Specialisation
from srcdiff.backends.backend import Trait
from srcdiff.backends.numba import numba_cpu
from srcdiff.backends.numba.loading import load_calling
from srcdiff.diagnostics.options import SHARED, SWITCH
from srcdiff.frontend.boundary import holds_stored
from srcdiff.passes.workspace_parameters import WorkspaceBuffer
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.keys import is_on_device, layout_on_device
from srcdiff.signature.trees import VALUES, Part

_LOOP = """
def loop(start, stop, {parameters}):
    for k in range(start, stop):
        r = compiled({elements})
        {checks}
        {stores}
    return stop
"""

_FILLING = """
import numpy as np


def loop({parameters}):
    {made}
    for k in range({start}, stop):
        compiled({elements})
    return {result}
"""

_UNSIGNED = np.uintp
"""Unsigned indices need no wraparound test, so the loop can be vectorised."""


_SMALL = 64
"""How many numbers the arguments of an element may have for its results to be written where they belong at once.

In longer loops, the compiler gains from knowing that results share no memory with arguments.
"""


class Batched:
    """A function or derivative over a batch: see `batched`. Its results have one more leading axis."""

    def __init__(self, of: Derivative, over: Any, parallel: bool, shared: str) -> None:
        SHARED.checked("shared", shared)
        SWITCH.checked("parallel", parallel)
        self.of, self.parallel, self.sums = of, parallel, shared == "sum"
        self.over = of.names if over is None else chosen_names(over, of.names, of.function.__name__, of.stars)
        self.on_device: dict[Any, Specialisation] = {}
        self.loops: dict[Any, Callable[..., Any]] = {}
        self.entry: Any = None
        functools.update_wrapper(self, of.function, updated=())
        self.__signature__ = of.signature.replace(return_annotation=inspect.Signature.empty)

    def __reduce__(self) -> Any:
        return Batched, (self.of, self.over, self.parallel, "sum" if self.sums else "each")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given, kinds, before = self.of.converted(args, kwargs)
        mapped = [k for k, n in enumerate(self.of.names) if n in self.over]
        count = self.length(given, mapped)
        if kinds:
            self.of.refuse_other_meanings(before, _Batch(given, mapped, count).first, kinds)
        if self.of.has(Trait.KERNELS):
            given = tuple(_widened(a) if k in mapped else a for k, a in enumerate(given))
            return self.specialised(given, mapped)(given)
        batch = _Batch(given, mapped, count)
        if self.of.has(Trait.COMPILED) and self.of.mode == "primal" and batch.is_small:
            specialisation = self.of.specialised_with_results(batch.first)
            if specialisation.fills_results:
                return self.filled(specialisation, batch)
        specialisation = self.of.specialised(batch.first)
        self.refuse_lists(specialisation)
        self.refuse_races(specialisation)
        result = self.of.run(batch.first) if self.of.by_name else self.of(*batch.first)  # to learn the shapes
        leaves = list(VALUES.named(result, "result"))
        whole = VALUES.structure(result).rebuild(self.stacked(specialisation, batch, leaves))
        if self.of.mode != "reverse":
            return whole
        as_given = specialisation.with_gradients(whole, lambda bars: self.typed(bars, given))
        return specialisation.with_gradients(as_given, self.added_up) if self.sums else as_given

    def filled(self, specialisation: Specialisation, batch: _Batch) -> Any:
        """The results of all elements, each written where it belongs."""
        values = specialisation.prepared(batch.first)
        shapes = [buffer.shape_for(values) for buffer in specialisation.workspace]
        if specialisation.structure is None:
            specialisation.learn_structure(values, shapes)
        values, places = self.whole(specialisation, batch, values)
        loop = self.filling_loop(specialisation, places, len(values))
        if self.parallel:
            outs = [np.empty((batch.count, *s), b.dtype) for b, s in zip(specialisation.workspace, shapes, strict=True)]
            _in_threads(loop, batch.count, (*values, *outs), 0)
        else:
            outs = loop(_UNSIGNED(batch.count), *values)
        return specialisation.structure.rebuild(list(outs))

    def filling_loop(self, specialisation: Specialisation, places: Sequence[int], count: int) -> Callable[..., Any]:
        """The loop over the batch, which calls a compiled function that puts its results where they belong itself."""
        key = (id(specialisation.function), tuple(places), count)
        if key not in self.loops:
            text = _filling_text(places, count, specialisation.workspace, is_part=self.parallel)
            self.loops[key] = load_calling(text, "loop", specialisation.function)
        return self.loops[key]

    def whole(
        self, specialisation: Specialisation, batch: _Batch, values: list[Any]
    ) -> tuple[list[Any], Sequence[int]]:
        """The arguments of the compiled function with whole arrays in place of the batched ones, and their places."""
        places = [specialisation.positions.index(k) for k in batch.mapped]
        for k, place in zip(batch.mapped, places, strict=True):
            values[place] = batch.given[k].astype(np.asarray(values[place]).dtype, copy=False)
        return values, places

    def stacked(self, specialisation: Specialisation, batch: _Batch, leaves: Sequence[Part]) -> list[Any]:
        """The stacked results of all elements, for each number or array in the result of the first."""
        shapes = [np.shape(leaf.value) for leaf in leaves]
        outs = [
            np.empty((batch.count, *shape), np.asarray(leaf.value).dtype)
            for leaf, shape in zip(leaves, shapes, strict=True)
        ]
        for out, leaf in zip(outs, leaves, strict=True):
            out[0] = leaf.value
        arrays = [shape for shape in shapes if shape]
        found = np.empty((batch.count, sum(map(len, arrays))), np.int64)
        stores = (*outs, *arrays, found)
        bad = None
        if not specialisation.stretches:
            try:
                bad = self.swept(specialisation, batch, leaves, stores)
            except (ValueError, IndexError):
                if not specialisation.assumes_sizes:
                    raise
        if bad is None:  # sizes that are one stretch
            bad = self.swept(self.of.exactly_specialised(batch.first), batch, leaves, stores)
        if bad < batch.count:
            raise _differing(bad, leaves, found[bad].tolist())
        return outs

    def swept(
        self, specialisation: Specialisation, batch: _Batch, leaves: Sequence[Part], stores: tuple[Any, ...]
    ) -> int:
        """Call the function for all elements but the first; which of them does not fit, or how many there are."""
        values, places = self.whole(specialisation, batch, specialisation.prepared(batch.first))
        if specialisation.apart:
            specialisation.keep_apart(values)
        loop = self.loop(specialisation.function, places, len(values), leaves)
        if self.parallel and self.of.has(Trait.COMPILED):
            return _in_threads(loop, batch.count, (*values, *stores))
        return int(loop(_UNSIGNED(1), _UNSIGNED(batch.count), *values, *stores))

    def body_for(self, given: tuple[Any, ...], types_: tuple[Any, ...]) -> numba_cpu.Body:
        """The compiled function for a call with such arguments, in one thread."""
        if self.sums:
            raise TypeError(
                f"{self!r} cannot be called from compiled code with `shared='sum'`: sum the results of `shared='each'`"
            )
        mapped = [k for k, n in enumerate(self.of.names[: len(given)]) if n in self.over]
        elements = [numba_cpu.element_of(t) if k in mapped else t for k, t in enumerate(types_)]
        described = tuple(numba_cpu.described(t) if k in mapped else given[k] for k, t in enumerate(elements))
        compiled, apart, passed = self.of.compiled_for(described)
        if apart or not mapped:
            raise TypeError(
                f"{self!r} cannot be called from compiled code: it writes to an argument, or has no batched argument"
            )
        return numba_cpu.body_of_batch(compiled, passed, elements, [f"args[{k}]" for k in mapped])

    def refuse_lists(self, specialisation: Specialisation) -> None:
        """Lists whose lengths show only when the function runs have none that all elements share."""
        if holds_stored(specialisation.compiled.reading.result):
            raise TypeError(f"{self.of!r} returns a list with a length known only at run time: return an array")

    def refuse_races(self, specialisation: Specialisation) -> None:
        shared = [name for name in specialisation.compiled.writes if name not in self.over]
        if self.parallel and self.of.mode == "primal" and shared:
            raise ValueError(f"all threads would write to `{shared[0]}`: name it in `over`, or remove `parallel`")
        if self.parallel and specialisation.compiled.reading.draws:
            raise ValueError("the function draws random numbers, whose order threads do not keep: remove `parallel`")

    def typed(self, gradients: list[Any], given: Sequence[Any]) -> list[Any]:
        """Gradients by numbers, each with the type of the array that the numbers are in."""
        arrays = {n: a for n, a in zip(self.of.names, given, strict=True) if n in self.over}
        pairs = zip(self.of.wrt, gradients, strict=True)
        return [g.astype(arrays[n].dtype, copy=False) if n in arrays and g is not None else g for n, g in pairs]

    def added_up(self, gradients: list[Any]) -> list[Any]:
        """The gradients of arguments that the calls share, added up."""
        pairs = zip(self.of.wrt, gradients, strict=True)
        return [g if n in self.over else VALUES.map(_total, g) for n, g in pairs]

    def specialised(self, given: tuple[Any, ...], mapped: Sequence[int]) -> Specialisation:
        """The function for a batch on the GPU, one thread for each element."""
        first = tuple(element_of(a) if k in mapped else a for k, a in enumerate(given))
        key = self.of.key(first)
        known = self.on_device.get(key)
        if known is None or not known.is_current():
            batch = tuple(n for n in self.of.names if n in self.over)
            known = self.of.specialised_for_batch(first, batch, self.sums)
            self.on_device[key] = known
        return known

    def length(self, given: Sequence[Any], mapped: Sequence[int]) -> int:
        lengths: dict[int, str] = {}
        for k in mapped:
            name = self.of.names[k]
            if not (isinstance(given[k], np.ndarray) or is_on_device(given[k])) or len(given[k].shape) == 0:
                raise TypeError(f"`{name}` is not an array, so it cannot be batched: name other arguments in `over`")
            if given[k].dtype.kind not in "biufc":
                raise TypeError(
                    f"`{name}` is an array of {given[k].dtype}, not of numbers: name other arguments in `over`"
                )
            lengths.setdefault(len(given[k]), name)
        if len(lengths) != 1:
            counts = ", ".join(f"`{name}` has {n}" for n, name in lengths.items())
            equal = f"the batched arguments must have equal lengths: {counts}"
            raise ValueError(equal if counts else "no argument is batched: name at least one array in `over`")
        (count,) = lengths
        if count == 0:
            raise ValueError("the batch is empty, so the shapes of its results are not known")
        return count

    def loop(
        self, inner: Callable[..., Any], places: Sequence[int], count: int, leaves: Sequence[Part]
    ) -> Callable[..., Any]:
        """The loop over the batch, which calls the compiled function and puts its results where they belong."""
        key = (id(inner), tuple(places), count, tuple((_text(leaf), np.ndim(leaf.value)) for leaf in leaves))
        if key not in self.loops:
            text = _loop_text(places, count, leaves)
            is_compiled = self.of.has(Trait.COMPILED)
            self.loops[key] = load_calling(text, "loop", inner) if is_compiled else _interpreted(text, inner)
        return self.loops[key]

    @property
    def source(self) -> str:
        """The generated source code for one element or, on a GPU, for the whole batch."""
        return self.of.source

    def _repr_html_(self) -> str | None:
        """The page of the function that is called for each element, for notebooks."""
        return self.of._repr_html_()

    def ptx(self, cc: tuple[int, int] = (8, 0)) -> dict[str, str]:
        """The code of each kernel of the latest call's types, for GPUs of the compute capability; none is needed."""
        return self.of.ptx(cc)

    def resources(self, cc: tuple[int, int] = (8, 0)) -> dict[str, dict[str, int]]:
        """The resources of each kernel per thread: registers, bytes of stack and of shared memory, and spills."""
        return self.of.resources(cc)

    def compile(self, *args: Any, **kwargs: Any) -> Batched:
        """Write and compile it for example arguments, without running anything on a GPU."""
        given, _, _ = self.of.converted(args, kwargs)
        mapped = [k for k, n in enumerate(self.of.names) if n in self.over]
        self.length(given, mapped)
        if self.of.has(Trait.KERNELS):
            self.specialised(given, mapped)
        else:
            self(*args, **kwargs)
        return self

    def __repr__(self) -> str:
        return f"<srcdiff.batched({self.of!r})>"


@dataclass(frozen=True)
class _Batch:
    """All arguments, and the positions of the batched ones."""

    given: tuple[Any, ...]
    mapped: Sequence[int]
    count: int

    @functools.cached_property
    def first(self) -> tuple[Any, ...]:
        return self.element(0)

    @property
    def is_small(self) -> bool:
        """Whether to allocate the results of an element takes a noticeable part of the time of its call."""
        return bool(sum(self.given[k].size // self.count for k in self.mapped) <= _SMALL)

    def element(self, k: int) -> tuple[Any, ...]:
        """The arguments of a call."""
        return tuple(_element(a, k) if place in self.mapped else a for place, a in enumerate(self.given))


def _text(leaf: Part) -> str:
    """The expression in generated code for one number or array in the result of an element."""
    return leaf.subscripted("r")


def _differing(k: int, leaves: Sequence[Part], lengths: Sequence[int]) -> ValueError:
    """The error for an element whose results have other shapes than those of the first."""
    start, difference = 0, ""
    for leaf in leaves:
        first = np.shape(leaf.value)
        shape = tuple(lengths[start : start + len(first)])
        start += len(first)
        if shape != first:
            difference = f"`{leaf.name}` of element {k} has the shape {shape}, that of element 0 has {first}"
            break
    return ValueError(f"the results of all elements of a batch must have the same shape: {difference}")


def _loop_text(places: Sequence[int], count: int, leaves: Sequence[Part]) -> str:
    """The loop: `a` are the arguments, `o` the outputs, `s` the shapes; `found` has the shapes that differ."""
    arrays = [(n, leaf) for n, leaf in enumerate(leaves) if np.ndim(leaf.value)]
    lengths = [f"{_text(leaf)}.shape[{axis}]" for _, leaf in arrays for axis in range(np.ndim(leaf.value))]
    records = [f"found[k, {n}] = {length}" for n, length in enumerate(lengths)]
    differ = " or ".join(f"{_text(leaf)}.shape != s{n}" for n, leaf in arrays)
    stores = [line for n, leaf in enumerate(leaves) for line in _stores(f"o{n}", _text(leaf), np.ndim(leaf.value))]
    shapes = [f"s{n}" for n, _ in arrays]
    names = [*(f"a{n}" for n in range(count)), *(f"o{n}" for n in range(len(leaves))), *shapes, "found"]
    return _LOOP.format(
        parameters=", ".join(names),
        elements=", ".join(f"a{n}[k]" if n in places else f"a{n}" for n in range(count)),
        checks="\n            ".join([f"if {differ}:", *records, "return k"] if arrays else []),
        stores="\n        ".join(stores),
    )


def _filling_text(places: Sequence[int], count: int, results: Sequence[WorkspaceBuffer], *, is_part: bool) -> str:
    """The loop over a function that writes its results to `o`; the loop allocates these if it is not a part of one."""

    def length(n: Any) -> str:
        return str(n) if isinstance(n, int) else f"a{n[0]}.shape[{n[1] + (n[0] in places)}]"

    arguments, outs = [f"a{n}" for n in range(count)], [f"o{n}" for n in range(len(results))]
    shapes = [", ".join(["stop", *map(length, buffer.lengths)]) for buffer in results]
    made = [f"{o} = np.empty(({s}), np.{b.dtype})" for o, s, b in zip(outs, shapes, results, strict=True)]
    elements = [f"{a}[k]" if n in places else a for n, a in enumerate(arguments)]
    return _FILLING.format(
        parameters=", ".join(["start", "stop", *arguments, *outs] if is_part else ["stop", *arguments]),
        made="" if is_part else "\n    ".join(made),
        start="start" if is_part else "0",
        elements=", ".join([*elements, *(f"{o}[k]" for o in outs)]),
        result="stop" if is_part else f"({', '.join(outs)},)",
    )


def _stores(out: str, part: str, rank: int) -> list[str]:
    """Loops over the elements of a part of the result, which put them where they belong."""
    places = [f"j{axis}" for axis in range(rank)]
    loops = [f"{axis * '    '}for {place} in range({part}.shape[{axis}]):" for axis, place in enumerate(places)]
    element = f"{part}[{', '.join(places)}]" if rank else part
    return [*loops, f"{rank * '    '}{out}[{', '.join(('k', *places))}] = {element}"]


@functools.lru_cache(maxsize=256)
def _interpreted(text: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"compiled": inner}
    exec(compile(text, "<srcdiff batched>", "exec"), namespace)
    loop: Callable[..., Any] = namespace["loop"]
    return loop


def _in_threads(loop: Callable[..., Any], count: int, given: tuple[Any, ...], first: int = 1) -> int:
    """The loop in several threads at once: what an element raises is raised here, which `prange` does not do."""
    import numba

    from srcdiff.backends.numba import blas

    threads = numba.get_num_threads()
    parts = min(threads, max(count - first, 1))
    starts = [_UNSIGNED(first + (count - first) * n // parts) for n in range(parts + 1)]
    with blas.one_thread():
        calls = [_pool(os.getpid(), threads).submit(loop, *part, *given) for part in itertools.pairwise(starts)]
        futures.wait(calls)
    for call, stop in zip(calls, starts[1:], strict=True):
        if call.result() < stop:
            return int(call.result())
    return count


@functools.lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> futures.Executor:
    """The threads of this process; a forked process needs its own."""
    import numba

    return futures.ThreadPoolExecutor(threads, "srcdiff", initializer=numba.set_num_threads, initargs=(1,))


def _element(array: Any, k: int) -> Any:
    """An element as a Python number; a `float32` or `np.bool_` keeps its type."""
    is_kept = array.ndim > 1 or array.dtype in (np.float32, np.bool_)
    return array[k] if is_kept else array[k].item()


def _widened(array: Any) -> Any:
    """The integers of a batch in 64 bits, where 0 - 1 is -1."""
    narrow = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iu"
    return array.astype(np.int64, copy=False) if narrow else array


def element_of(array: Any) -> Any:
    """An example element of a batched array."""
    if isinstance(array, np.ndarray):
        return _element(array, 0)
    dtype, shape, _ = layout_on_device(array)
    return _element(np.zeros((1, *shape[1:]), dtype), 0)


def _total(stacked: Any) -> Any:
    total = np.sum(stacked, axis=0)
    return total if np.ndim(total) else total.item() if total.dtype == np.float64 else total


numba_cpu.callable_from_compiled_code(Batched, Batched.body_for, lambda batch: batch.of)


def batched(g: Any, over: Any = None, *, shared: str = "each", parallel: bool = False, **options: Any) -> Batched:
    """Make a function that calls `g` for each element along the leading axis of its arguments, in one compiled loop.

    >>> import numpy as np
    >>> import srcdiff
    >>> def power(x, n):
    ...     return x**n
    >>> slopes = batched(srcdiff.grad(power), over="x")
    >>> slopes(np.array([1.0, 2.0, 3.0]), 2)
    array([2., 4., 6.])

    Args:
        g: A function, or a derivative such as `srcdiff.grad(f)`.
        over: The arguments that have a leading batch axis: a position, a name, or a tuple of these; None means all.
            The other arguments are the same in every call.
        shared: What to do with the gradients of the other arguments: `"each"` returns one for each element, `"sum"`
            their sum.
        parallel: Whether to run the loop in several threads. With the backend `"cuda"`, each element has its own GPU
            thread in any case.
        **options: `backend` and the compile options of `srcdiff.grad`, if `g` is a function.

    Returns:
        A function with the parameters of `g`. Its results have a leading batch axis.

    Raises:
        ValueError: At a call, if the batched arguments have different lengths, the batch is empty, or the results of
            its elements have different shapes.
    """
    if isinstance(g, Derivative) and options:
        raise TypeError(f"{g!r} already has its own options: `{next(iter(options))}` is not an option of `batched`")
    return Batched(g if isinstance(g, Derivative) else differentiable(g, **options), over, parallel, shared)


batched.__srcdiff_outside__ = "`batched` cannot be called inside a differentiated function; write a loop"  # type: ignore[attr-defined]
