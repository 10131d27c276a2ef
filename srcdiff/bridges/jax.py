"""Functions for JAX: `function(f)` makes a function of JAX from a Python function, with derivatives by srcdiff.

A call is one operation of JAX with all its transformations. Each is again a call of such an operation:

    f(x)                       -> out
    tangent(x, x_dot)          =  jvp of f, linear in x_dot                          -> out_dot
    transposed to pullback(x, out_bar) = grad of sum(f(x) * out_bar)                 -> x_bar
    in a batch (`vmap`)        =  a loop over the elements, in compiled code

On the CPU, XLA calls the compiled function by its address (`jax.ffi`), without Python and without copies of the
arguments. For other devices, and for the backend "python", JAX calls Python (`jax.pure_callback`).
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from srcdiff.api.c_functions import Constants, specialised_for_sizes
from srcdiff.api.derivatives import Derivative
from srcdiff.backends.numba import xla_callable
from srcdiff.backends.numba.xla_callable import Buffer
from srcdiff.bridges import written_functions as written
from srcdiff.bridges.result_structures import Results, results_of
from srcdiff.diagnostics.naming_objects import named
from srcdiff.frontend.source.capture import plain_function

Function = Callable[..., Any]
_FLOATS = {np.dtype(np.float32), np.dtype(np.float64)}
_count = itertools.count()
_alive: list[Any] = []  # XLA knows compiled functions by their addresses, and never forgets them


def function(f: Function, *, shape: Callable[..., Sequence[int]] | None = None, backend: str = "numba") -> JaxFunction:
    """Make a function of JAX from a Python function, with derivatives by srcdiff, for all transformations of JAX.

    Args:
        f: A function of numbers and arrays that returns a float or an array, or several. They may be in tuples, lists
            and dictionaries. Arguments may also be in named tuples and dataclasses.
        shape: If `f` returns arrays, a function of the same arguments that returns their shapes, with the structure of
            the results. The shape of a number is `()`.
        backend: As for `srcdiff.grad`. `"python"` runs the generated code without compiling it, called back by JAX.

    Returns:
        A function that takes arrays of JAX or NumPy and numbers, and returns arrays of JAX. An array without axes
        stands for a number. Arrays and numbers of floats have derivatives. Strings, booleans and None are constants.
    """
    return JaxFunction(f, shape, backend)


class JaxFunction:
    """A function of arrays of JAX: see `function`."""

    def __init__(self, f: Function, shape: Callable[..., Sequence[int]] | None, backend: str) -> None:
        plain = plain_function(f)
        if plain is None:
            raise TypeError(f"{f!r} is not a Python function: wrap it in a function or a lambda")
        self.f, self.shape, self.backend, self.name = f, shape, backend, written.identifier(plain.__name__)
        self.signature = inspect.signature(plain)
        self.operations: dict[Any, UserOperation] = {}
        """The operations by the structures, shapes and dtypes of their arguments."""
        self.flat: dict[Any, Function] = {}
        functools.update_wrapper(self, plain, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        leaves: list[Any] = []
        call = [*written.expressions(bound, leaves)]
        kinds = tuple([_kind_of(name, leaf) for name, leaf in leaves])
        values = [jnp.asarray(leaf) for (_, leaf), kind in zip(leaves, kinds, strict=True) if kind.is_array]
        shape = None if self.shape is None else self.shape(*args, **kwargs)
        sizes, structure = jax.tree.flatten(shape)
        key = (*call, kinds, tuple(map(int, sizes)), structure)
        operation = self.operations.get(key)
        if operation is None or not operation.is_current():
            operation = self.operations[key] = self._operation(tuple(call), kinds, shape)
        return operation.results.rebuilt(call_p.bind(*values, operation=operation, batch=None))

    def _operation(self, call: tuple[str, ...], kinds: tuple[_Kind, ...], shape: Any) -> UserOperation:
        f = self.flat.setdefault(call, written.flattened(self.f, self.name, call, len(kinds)))
        primal = Derivative(f, "primal", 0, backend=self.backend)
        specialisation = specialised_for_sizes(primal, tuple([kind.example() for kind in kinds]))
        results = results_of(specialisation.compiled.reading.result)
        if results is None:
            raise ValueError(f"{written.place_of(self.f)} must return floats and arrays, and structures of these")
        outs = _outs(written.place_of(self.f), results, shape, kinds)
        if not results.is_single:
            f = written.flattened(self.f, self.name, call, len(kinds), [leaf.text for leaf in results.leaves])
        return UserOperation(f, self.name, kinds, outs, results=results, backend=self.backend)

    def __deepcopy__(self, memo: dict[int, Any]) -> JaxFunction:
        """Copies of a model share its functions, as they share functions of Python."""
        return self

    def __reduce__(self) -> Any:
        return written.reduced(self, self.f, functools.partial(function, shape=self.shape, backend=self.backend))

    def __repr__(self) -> str:
        return f"<srcdiff.bridges.jax.function({self.name})>"


@dataclass(frozen=True)
class _Kind:
    """An array or a number of JAX, by shape and dtype; or a constant."""

    shape: tuple[int, ...]
    dtype: Any
    constant: Any = None

    @property
    def is_array(self) -> bool:
        return self.dtype is not None

    @property
    def is_active(self) -> bool:
        return self.dtype in _FLOATS

    def example(self) -> Any:
        if not self.is_array:
            return self.constant
        if self.shape:
            return np.zeros(self.shape, self.dtype)
        return 0.0 if self.is_active else 0


def _kind_of(name: str, value: Any) -> _Kind:
    if value is None or isinstance(value, str | bool):
        return _Kind((), None, value)
    if isinstance(value, jax.Array | np.ndarray | np.number | float | int):
        array: Any = value if hasattr(value, "dtype") else jnp.asarray(value)
        shape, dtype = tuple(array.shape), jax.dtypes.canonicalize_dtype(array.dtype)
        if dtype not in _FLOATS and dtype.kind not in "iub":
            raise TypeError(f"`{name}` is an array of {dtype}: it must have integers, float32 or float64")
        if dtype.kind == "b" and not shape:
            raise TypeError(f"`{name}` is a boolean of JAX: pass True or False, which is compiled in")
        return _Kind(shape, np.dtype(dtype))
    raise TypeError(f"`{name}` is {named(value)}: it must be an array, a number or a string")


class Operation:
    """A compiled function of arrays and numbers of known shapes, with its derivatives."""

    def __init__(
        self,
        f: Function,
        name: str,
        ins: tuple[_Kind, ...],
        outs: tuple[_Kind, ...],
        *,
        as_tuple: bool,
        backend: str,
        root: Operation | None = None,
    ) -> None:
        self.f, self.name, self.ins, self.outs, self.as_tuple, self.backend = f, name, ins, outs, as_tuple, backend
        self.root = root or self
        """The operation of the user's function."""
        self.places = [k for k, kind in enumerate(ins) if kind.is_array]
        """The arguments that are passed; the others are constants."""
        self.primal = Derivative(f, "primal", 0, backend=backend)
        self.examples = tuple([kind.example() for kind in ins])
        self.specialisation = specialised_for_sizes(self.primal, self.examples)
        self.outside = [written.snapshot(o.read()) for o in self.specialisation.outside]
        """The outside values that the function has read. They are compiled in, as always in JAX."""
        self.handlers: dict[Any, str] = {}
        self.tangents: dict[tuple[int, ...], Operation] = {}
        self.pullbacks: dict[tuple[int, ...], Operation] = {}
        self.tangent_of: tuple[Operation, tuple[int, ...]] | None = None

    def __repr__(self) -> str:
        return self.name

    def is_current(self) -> bool:
        """Whether the function, and all that it reads from outside, are as they were."""
        if not self.specialisation.is_current():
            return False
        now = [o.read() for o in self.specialisation.outside]
        return all(written.is_same(a, b) for a, b in zip(self.outside, now, strict=True))

    @property
    def place(self) -> str:
        return written.place_of(self.root.f)

    # -- derivatives ---------------------------------------------------------------------------------------------------

    def tangent(self, active: tuple[int, ...]) -> Operation:
        """The directional derivative; `active` are the places of the arguments that have tangents."""
        if active not in self.tangents:
            name = f"{self.name}_tangent"
            f = written.tangent(self.f, name, len(self.ins), active)
            ins = (*self.ins, *[self.ins[k] for k in active])
            made = Operation(f, name, ins, self.outs, as_tuple=self.as_tuple, backend=self.backend, root=self.root)
            made.tangent_of = (self, active)
            self.tangents[active] = made
        return self.tangents[active]

    def pullback(self, active: tuple[int, ...]) -> Operation:
        """The gradients by the active arguments, from the arguments and the adjoints of the results."""
        if active not in self.pullbacks:
            numbers = [not kind.shape for kind in self.outs]
            weighted = written.weighted(self.f, f"{self.name}_weighted", len(self.ins), numbers, as_tuple=self.as_tuple)
            name, ins = f"{self.name}_pullback", (*self.ins, *self.outs)
            f = written.pullback(weighted, name, len(ins), active)
            outs = tuple([self.ins[k] for k in active])
            self.pullbacks[active] = Operation(f, name, ins, outs, as_tuple=True, backend=self.backend, root=self.root)
        return self.pullbacks[active]

    # -- calls ---------------------------------------------------------------------------------------------------------

    def run(self, *values: Any) -> list[np.ndarray[Any, Any]]:
        """Compute the results by a call of Python."""
        args = list(self.examples)
        for k, value in zip(self.places, values, strict=True):
            array = np.array(value, self.ins[k].dtype)
            args[k] = array if array.shape else array.item()
        try:
            result = self.primal(*args)
            outs = [
                np.asarray(r, k.dtype) for r, k in zip(result if self.as_tuple else (result,), self.outs, strict=True)
            ]
            for out, kind in zip(outs, self.outs, strict=True):
                if out.shape != kind.shape:
                    raise ValueError(f"the result has the shape {out.shape}, but `shape` says {kind.shape}")
        except Exception as error:
            error.add_note(f"in {self.place}, called by JAX")
            raise
        return outs

    def run_batch(self, count: int, flags: Sequence[bool], *values: Any) -> list[np.ndarray[Any, Any]]:
        """Compute the results for all elements of a batch."""
        outs = [np.empty((count, *kind.shape), kind.dtype) for kind in self.outs]
        for k in range(count):
            found = self.run(*[v[k] if flag else v for v, flag in zip(values, flags, strict=True)])
            for out, one in zip(outs, found, strict=True):
                out[k] = one
        return outs

    def target(self, batch: Any) -> str:
        """The name of the compiled function for XLA, which is compiled at the first request."""
        if batch not in self.handlers:
            if not self.root.is_current():
                raise RuntimeError(f"{self.place} or a variable that it reads has changed since JAX traced it")
            name = f"srcdiff_{self.name}_{next(_count)}"
            _alive.append(self._compiled(batch))
            address = _alive[-1][0].address
            jax.ffi.register_ffi_target(name, _capsule(address), platform="cpu")
            self.handlers[batch] = name
        return self.handlers[batch]

    def _compiled(self, batch: Any) -> Any:
        count, flags = batch or (1, [False] * len(self.places))
        specialisation = self.specialisation
        specialisation.compile(self.examples)
        prepared = specialisation.prepared(self.examples)
        copied = bool(specialisation.compiled.writes or specialisation.apart)
        constants, call = Constants(), []
        place_of = {k: n for n, k in enumerate(self.places)}
        for n, value in enumerate(prepared):
            k = specialisation.positions[n] if n < len(specialisation.positions) else None
            if k is not None and self.ins[k].is_array:
                place = place_of[k]
                buffer = Buffer(place, self.ins[k].shape, self.ins[k].dtype, flags[place])
                call.append(xla_callable.argument(buffer, copied=copied))
            else:
                call.append(constants.expression(value))
        stores = []
        for n, kind in enumerate(self.outs):
            result = f"result[{n}]" if self.as_tuple else "result"
            buffer = Buffer(n, kind.shape, kind.dtype, batch is not None)
            stores += xla_callable.store(buffer, result, is_number=not kind.shape)
        text = xla_callable.text_of(count, call, stores)
        messages = {
            "raised": f"{self.place} has raised an exception: call it without JAX to see it",
            "other_shape": f"{self.place} returns an array with another shape than `shape` says",
        }
        kept = {name: ctypes.create_string_buffer(message.encode()) for name, message in messages.items()}
        addresses = {name: ctypes.addressof(message) for name, message in kept.items()}
        compiled = xla_callable.handler(text, specialisation.function, {**constants.objects, **addresses})
        return compiled, constants.arrays, kept


class UserOperation(Operation):
    """The operation of the user's function, which knows the structure of its results."""

    def __init__(self, *args: Any, results: Results, backend: str) -> None:
        super().__init__(*args, as_tuple=not results.is_single, backend=backend)
        self.results = results


def _outs(place: str, results: Results, shape: Any, kinds: Sequence[_Kind]) -> tuple[_Kind, ...]:
    """The kinds of the results. Refuses results that `shape` does not describe."""
    has_arrays = any(leaf.rank for leaf in results.leaves)
    if shape is None and has_arrays:
        raise ValueError(f"{place} returns an array: `function` needs `shape=`")
    if shape is not None and not has_arrays:
        raise ValueError(f"{place} returns a number: `function` needs no `shape=`")
    shapes = results.shapes(shape)
    for leaf, one in zip(results.leaves, shapes, strict=True):
        if len(one) != leaf.rank:
            raise ValueError(f"{place}: `{leaf.text}` has {leaf.rank} axes, but `shape` says {one}")
    is_single = {kind.dtype for kind in kinds} & _FLOATS == {np.dtype(np.float32)} or not jax.config.jax_enable_x64
    return tuple([_Kind(one, np.dtype(np.float32 if is_single else np.float64)) for one in shapes])


def _capsule(address: int) -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(address, None, None)


# -- the operation of JAX, with its rules ------------------------------------------------------------------------------

call_p: Any = Primitive("srcdiff_call")
call_p.multiple_results = True


def _results(operation: Operation, batch: Any) -> list[Any]:
    lead = () if batch is None else (batch[0],)
    return [jax.ShapeDtypeStruct((*lead, *kind.shape), kind.dtype) for kind in operation.outs]


def _abstract(*_: Any, operation: Operation, batch: Any) -> list[Any]:
    return [jax.core.ShapedArray(r.shape, r.dtype) for r in _results(operation, batch)]


@functools.lru_cache(maxsize=4096)
def _jitted(operation: Operation, batch: Any) -> Any:
    return jax.jit(functools.partial(call_p.bind, operation=operation, batch=batch))


def _call(*args: Any, operation: Operation, batch: Any) -> Any:
    return _jitted(operation, batch)(*args)


def _by_address(*args: Any, operation: Operation, batch: Any) -> Any:
    return jax.ffi.ffi_call(operation.target(batch), _results(operation, batch))(*args)


def _by_python(*args: Any, operation: Operation, batch: Any) -> Any:
    run = operation.run if batch is None else functools.partial(operation.run_batch, *batch)
    return jax.pure_callback(run, _results(operation, batch), *args)


def _lowered_on_cpu(context: Any, *args: Any, operation: Operation, batch: Any) -> Any:
    way = _by_address if operation.backend == "numba" else _by_python
    return mlir.lower_fun(way, multiple_results=True)(context, *args, operation=operation, batch=batch)


mlir.register_lowering(call_p, mlir.lower_fun(_by_python, multiple_results=True))
mlir.register_lowering(call_p, _lowered_on_cpu, platform="cpu")


def _jvp(primals: Any, tangents: Any, *, operation: Operation, batch: Any) -> Any:
    out = call_p.bind(*primals, operation=operation, batch=batch)
    active = [
        n
        for n, (k, t) in enumerate(zip(operation.places, tangents, strict=True))
        if operation.ins[k].is_active and not isinstance(t, ad.Zero)
    ]
    if not active:
        return out, [ad.Zero.from_primal_value(o) for o in out]
    tangent = operation.tangent(tuple([operation.places[n] for n in active]))
    wider = None if batch is None else (batch[0], (*batch[1], *[batch[1][n] for n in active]))
    dots = [tangents[n] for n in active]
    return out, call_p.bind(*primals, *dots, operation=tangent, batch=wider)


def _transpose(bars: Any, *args: Any, operation: Operation, batch: Any) -> Any:
    assert operation.tangent_of is not None, "only tangents are linear"
    of, active = operation.tangent_of
    primals = args[: len(of.places)]
    bars = [ad.instantiate_zeros(bar) for bar in bars]
    wider = None if batch is None else (batch[0], (*batch[1][: len(primals)], *[True] * len(bars)))
    found = call_p.bind(*primals, *bars, operation=of.pullback(active), batch=wider)
    gradients: list[Any] = [None] * len(args)
    for n, gradient in enumerate(found, len(primals)):
        if ad.is_undefined_primal(args[n]):
            is_shared = batch is not None and not batch[1][n]
            gradients[n] = jnp.sum(gradient, axis=0) if is_shared else gradient
    return gradients


def _batched(args: Any, axes: Any, *, operation: Operation, batch: Any) -> Any:
    size = next(a.shape[axis] for a, axis in zip(args, axes, strict=True) if axis is not None)
    inner, flags = batch or (None, [False] * len(args))
    values, in_batch = [], []
    for a, axis, flag in zip(args, axes, flags, strict=True):
        is_mapped = axis is not None
        value = jnp.moveaxis(a, axis, 0) if is_mapped else a
        if inner is not None and (is_mapped or flag):  # both batches become one
            rest = value.shape[is_mapped + flag :]
            value = value if is_mapped else value[None]
            value = value if flag else value[:, None]
            value = jnp.broadcast_to(value, (size, inner, *rest)).reshape(size * inner, *rest)
        values.append(value)
        in_batch.append(is_mapped or flag)
    count = size if inner is None else size * inner
    outs = call_p.bind(*values, operation=operation, batch=(count, tuple(in_batch)))
    if inner is not None:
        outs = [o.reshape(size, inner, *o.shape[1:]) for o in outs]
    return outs, [0] * len(outs)


call_p.def_abstract_eval(_abstract)
call_p.def_impl(_call)
ad.primitive_jvps[call_p] = _jvp
ad.primitive_transposes[call_p] = _transpose
batching.primitive_batchers[call_p] = _batched
