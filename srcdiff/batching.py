"""`batched`: a function or a derivative over the leading axis of its arguments, in one compiled loop."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.api import Derivative, Specialisation, chosen_names, differentiable
from srcdiff.backends.signals import compiled_undisturbed
from srcdiff.source.signature import is_on_device, layout_on_device
from srcdiff.source.structures import parts_of, remade

_LOOP = """
def loop({parameters}):
    for k in {range}(1, count):
        r = inner({elements})
        {stores}
"""


class Batched:
    """Calls a function for each element of a batch; results have a leading axis more."""

    def __init__(self, of: Derivative, over: Any, parallel: bool, shared: str) -> None:
        if shared not in ("each", "sum"):
            raise ValueError(f"`shared` is 'each' or 'sum', not {shared!r}")
        self.of, self.parallel, self.sums = of, parallel, shared == "sum"
        self.over = of.names if over is None else chosen_names(over, of.names, of.function.__name__)
        self.on_device: dict[Any, Specialisation] = {}
        self.loops: dict[Any, Callable[..., Any]] = {}
        functools.update_wrapper(self, of.function, updated=())
        self.__signature__ = of.signature.replace(return_annotation=inspect.Signature.empty)

    def __reduce__(self) -> Any:
        return Batched, (self.of, self.over, self.parallel, "sum" if self.sums else "each")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = self.of.bound(args, kwargs)
        mapped = [k for k, n in enumerate(self.of.names) if n in self.over]
        count = self.length(given, mapped)
        if self.of.backend == "cuda":
            given = tuple(_widened(a) if k in mapped else a for k, a in enumerate(given))
            return self.specialised(given, mapped)(given)
        first = tuple(_element(a, 0) if k in mapped else a for k, a in enumerate(given))
        result = self.of.run(first)  # the first of the batch, which says how large the results are
        specialisation = self.of.specialised(first)
        if specialisation.stretches:
            specialisation = self.of.exactly_specialised(first)
        shared = [n for n in specialisation.compiled.written if n not in self.over]
        if self.parallel and self.of.mode == "primal" and shared:
            raise ValueError(f"all threads would write into `{shared[0]}`: name it in `over`, or leave out `parallel`")
        if _holds_numbers_in_lists(result):
            raise TypeError(f"{self.of!r} takes or gives lists: it cannot be called for a batch")
        leaves = _leaves(result, "r")
        outs = [np.empty((count, np.size(leaf)), np.asarray(leaf).dtype) for _, leaf in leaves]
        for out, (_, leaf) in zip(outs, leaves, strict=True):
            out[0] = np.ravel(leaf)
        places = [specialisation.positions.index(k) for k in mapped]
        values = specialisation.prepared(first)
        for k, place in zip(mapped, places, strict=True):
            values[place] = given[k].astype(np.asarray(values[place]).dtype, copy=False)
        if specialisation.apart:
            specialisation.keep_apart(values)
        self.loop(specialisation.function, places, len(values), leaves)(count, *values, *outs)
        whole = iter(out.reshape(count, *np.shape(leaf)) for out, (_, leaf) in zip(outs, leaves, strict=True))
        whole_result = _like(result, whole)
        if self.of.mode != "reverse":
            return whole_result
        as_given = specialisation.with_gradients(whole_result, lambda bars: self.typed(bars, given))
        return specialisation.with_gradients(as_given, self.added_up) if self.sums else as_given

    def typed(self, gradients: list[Any], given: Sequence[Any]) -> list[Any]:
        """Gradients by numbers, each with the type of the array that the numbers are in."""
        arrays = {n: a for n, a in zip(self.of.names, given, strict=True) if n in self.over}
        pairs = zip(self.of.wrt, gradients, strict=True)
        return [g.astype(arrays[n].dtype, copy=False) if n in arrays and g is not None else g for n, g in pairs]

    def added_up(self, gradients: list[Any]) -> list[Any]:
        """The gradients of arguments that the calls share, added up."""
        pairs = zip(self.of.wrt, gradients, strict=True)
        return [g if n in self.over else _like(g, (_total(leaf) for _, leaf in _leaves(g, ""))) for n, g in pairs]

    def specialised(self, given: tuple[Any, ...], mapped: Sequence[int]) -> Specialisation:
        """The function for a batch on the GPU, one thread for each element."""
        first = tuple(element_of(a) if k in mapped else a for k, a in enumerate(given))
        key = self.of.key(first)
        known = self.on_device.get(key)
        if known is None or (known.watches and not known.is_current()):
            batch = tuple(n for n in self.of.names if n in self.over)
            known = self.of.specialised_for_batch(first, batch, self.sums)
            self.on_device[key] = known
        return known

    def length(self, given: Sequence[Any], mapped: Sequence[int]) -> int:
        lengths: dict[int, str] = {}
        for k in mapped:
            name = self.of.names[k]
            if not (isinstance(given[k], np.ndarray) or is_on_device(given[k])) or len(given[k].shape) == 0:
                raise TypeError(f"`{name}` is no array, so that it has no element for each call: name others in `over`")
            if given[k].dtype.kind not in "biuf":
                raise TypeError(f"`{name}` is an array of {given[k].dtype}, not of numbers: name others in `over`")
            lengths.setdefault(len(given[k]), name)
        if len(lengths) != 1:
            said = ", ".join(f"`{name}` has {n}" for n, name in lengths.items())
            raise ValueError(
                f"the arguments of a batch have as many elements as each other: {said or 'there are none'}"
            )
        (count,) = lengths
        if count == 0:
            raise ValueError("the batch is empty, so that the shapes of its results are not known")
        return count

    def loop(
        self, inner: Callable[..., Any], places: Sequence[int], count: int, leaves: Sequence[tuple[str, Any]]
    ) -> Callable[..., Any]:
        """The loop over the batch, which calls the compiled function and puts its results where they belong."""
        key = (id(inner), tuple(places), count, tuple((text, np.ndim(leaf) > 0) for text, leaf in leaves))
        if key not in self.loops:
            stores = [
                f"for j in range({text}.size): o{n}[k, j] = {text}.flat[j]" if np.ndim(leaf) else f"o{n}[k, 0] = {text}"
                for n, (text, leaf) in enumerate(leaves)
            ]
            parameters = [f"a{n}" for n in range(count)] + [f"o{n}" for n in range(len(leaves))]
            compiled = self.of.backend == "numba"
            text = _LOOP.format(
                parameters=", ".join(["count", *parameters]),
                range="prange" if compiled and self.parallel else "range",
                elements=", ".join(f"a{n}[k]" if n in places else f"a{n}" for n in range(count)),
                stores="\n        ".join(stores),
            )
            self.loops[key] = _loaded(text, inner, compiled, self.parallel)
        return self.loops[key]

    @property
    def source(self) -> str:
        """The generated code: of what is called for each element or, on a GPU, of the whole batch."""
        return self.of.source

    def ptx(self, cc: tuple[int, int] = (8, 0)) -> dict[str, str]:
        """The code of each kernel of the latest call's types, for GPUs of the compute capability; none is needed."""
        return self.of.ptx(cc)

    def resources(self, cc: tuple[int, int] = (8, 0)) -> dict[str, dict[str, int]]:
        """What each kernel takes of a thread: registers, bytes of stack and of shared memory, and spills."""
        return self.of.resources(cc)

    def compile(self, *args: Any, **kwargs: Any) -> Batched:
        """Write and compile it for example arguments, without running anything on a GPU."""
        given = self.of.bound(args, kwargs)
        mapped = [k for k, n in enumerate(self.of.names) if n in self.over]
        self.length(given, mapped)
        if self.of.backend == "cuda":
            self.specialised(given, mapped)
        else:
            self(*args, **kwargs)
        return self

    def __repr__(self) -> str:
        return f"<srcdiff.batched({self.of!r})>"


@functools.lru_cache(maxsize=256)
def _loaded(text: str, inner: Callable[..., Any], compiled: bool, parallel: bool) -> Callable[..., Any]:
    import numba

    namespace: dict[str, Any] = {"inner": inner, "prange": numba.prange}
    exec(compile(text, "<srcdiff batched>", "exec"), namespace)
    loop: Callable[..., Any] = namespace["loop"]
    return compiled_undisturbed(numba.njit(parallel=parallel, error_model="numpy")(loop)) if compiled else loop


def _element(array: Any, k: int) -> Any:
    """An element as Python has it; a `float32` keeps its type, and a `np.bool_` is no flag that all calls share."""
    is_kept = array.ndim > 1 or array.dtype in (np.float32, np.bool_)
    return array[k] if is_kept else array[k].item()


def _widened(array: Any) -> Any:
    """Integers of a batch as Python has them, where 0 - 1 is -1."""
    narrow = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iu"
    return array.astype(np.int64, copy=False) if narrow else array


def element_of(array: Any) -> Any:
    """An example of what a call gets of an array."""
    if isinstance(array, np.ndarray):
        return _element(array, 0)
    dtype, shape, _ = layout_on_device(array)
    return _element(np.zeros((1, *shape[1:]), dtype), 0)


def _total(stacked: Any) -> Any:
    total = np.sum(stacked, axis=0)
    return total if np.ndim(total) else total.item() if total.dtype == np.float64 else total


def _leaves(x: Any, text: str) -> list[tuple[str, Any]]:
    parts = parts_of(x)
    if parts is not None:
        return [leaf for k, item in enumerate(parts) for leaf in _leaves(item, f"{text}[{k}]")]
    return [] if x is None else [(text, x)]


def _like(x: Any, values: Any) -> Any:
    parts = parts_of(x)
    if parts is not None:
        return remade(x, [_like(item, values) for item in parts])
    return None if x is None else next(values)


def _holds_numbers_in_lists(x: Any) -> bool:
    """Whether lists of numbers are among what is given: compiled code has arrays in their place."""
    if isinstance(x, list) and not all(isinstance(v, np.ndarray) or parts_of(v) is not None for v in x):
        return True
    return any(_holds_numbers_in_lists(item) for item in parts_of(x) or ())


def batched(g: Any, over: Any = None, *, shared: str = "each", parallel: bool = False, **options: Any) -> Batched:
    """The function, or the derivative, for each element of the leading axes of its arguments, in one compiled loop.

    `over` names the arguments that have one, by position or name; without it all have. The others are the same for
    every call; the gradients of those come for each call, or with `shared="sum"` added up over all of them.
    `parallel=True` spreads the loop over threads; with the backend `cuda` each element has a thread of the GPU.
    """
    return Batched(g if isinstance(g, Derivative) else differentiable(g, **options), over, parallel, shared)


batched.__srcdiff_outside__ = "`batched` is called outside of what is differentiated; write a loop"  # type: ignore[attr-defined]
