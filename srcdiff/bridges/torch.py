"""Functions for PyTorch: `function(f)` makes an operator of a Python function, whose gradients are computed by srcdiff.

The operator is a `torch.library.custom_op`. Its backward pass is a second operator, the gradient of the weighted sum
`sum(f(x) * out_bar)`, and the backward pass of that is made in the same way. So there are derivatives of any order:

    f(x)                    -> out
    pullback(x, out_bar)    =  grad of sum(f(x) * out_bar)                          -> x_bar
    its pullback            =  grad of sum(pullback(x, out_bar) * x_bar_bar)        -> x_bar_2, out_bar_bar
    tangent(x, x_dot)       =  jvp of f                                             -> out_dot
    in a batch (`vmap`)     =  the same for each element, by `srcdiff.batched`
"""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from srcdiff.api.batching import batched
from srcdiff.api.derivatives import Derivative
from srcdiff.api.reverse import grad
from srcdiff.backends.numba.direct import UnfitError
from srcdiff.bridges import written_functions as written
from srcdiff.bridges.result_structures import Results, results_of
from srcdiff.diagnostics.naming_objects import named
from srcdiff.frontend.source.capture import plain_function
from srcdiff.frontend.source.guards import ChangedError
from srcdiff.signature.trees import VALUES

Function = Callable[..., Any]
Tensor: Any = torch.Tensor  # mypy does not follow the import of PyTorch

_NUMBERS = {float: "float", int: "int", bool: "bool", str: "str"}
_FLOATS = (torch.float64, torch.float32)
_EXACT = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
_DTYPES: dict[Any, np.dtype[Any]] = {torch.float64: np.dtype(np.float64), torch.float32: np.dtype(np.float32)}
_count = itertools.count()


def function(f: Function, *, shape: Callable[..., Sequence[int]] | None = None) -> TorchFunction:
    """Make a function of tensors from a Python function, with derivatives by srcdiff, for autograd and `torch.compile`.

    Args:
        f: A function of arrays and numbers that returns a float or an array, or several in tuples, lists and
            dictionaries.
        shape: If `f` returns arrays, a function of the same arguments that returns their shapes, with the structure of
            the results. The shape of a number is `()`.

    Returns:
        A function that takes tensors on the CPU for the arrays, and returns tensors. They may be in tuples, lists,
        dictionaries, named tuples and dataclasses. A tensor without axes stands for a number. Tensors of floats get
        gradients; Python numbers, strings, and tensors of integers do not. Results have the dtype of the tensors of
        floats.
    """
    return TorchFunction(f, shape)


class TorchFunction:
    """A function of tensors: see `function`."""

    def __init__(self, f: Function, shape: Callable[..., Sequence[int]] | None) -> None:
        plain = plain_function(f)
        if plain is None:
            raise TypeError(f"{f!r} is not a Python function: wrap it in a function or a lambda")
        self.f, self.shape, self.name, self.count = f, shape, plain.__name__, plain.__code__.co_argcount
        self.operators: dict[Any, UserOperator] = {}
        """The operators by the kinds of their arguments."""
        self.flat: dict[tuple[str, ...], TorchFunction] = {}
        """The same function of the tensors in structures, by the expressions of its arguments."""
        functools.update_wrapper(self, plain, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key = tuple([(a.dtype, a.dim() == 0) if isinstance(a, Tensor) else type(a) for a in args])
        operator = self.operators.get(key)
        if operator is None or kwargs:
            if kwargs or len(args) != self.count or any(map(_is_structure, args)):
                return self._of_structures(args, kwargs)
            operator = self.operator(*args)
        found = operator(*args)
        if operator.results.is_single:
            return found
        return operator.results.rebuilt([found] if isinstance(found, Tensor) else found)

    def operator(self, *args: Any) -> UserOperator:
        """The operator for such arguments."""
        kinds = tuple([_kind_of(k, a) for k, a in enumerate(args)])
        key = tuple([(a.dtype, a.dim() == 0) if isinstance(a, Tensor) else type(a) for a in args])
        if key not in self.operators:
            self.operators[key] = UserOperator(self.f, kinds, self.shape, self.name, args)
        return self.operators[key]

    def _of_structures(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with tensors in dictionaries and other structures, or by name."""
        bound = inspect.signature(self.f, follow_wrapped=False).bind(*args, **kwargs)
        bound.apply_defaults()
        leaves: list[Any] = []
        call = tuple(written.expressions(bound, leaves))
        for name, leaf in leaves:
            if not isinstance(leaf, Tensor) and type(leaf) not in _NUMBERS:
                raise TypeError(f"`{name}` is {named(leaf)}: it must be a tensor, a number or a string")
        flat = self.flat.get(call)
        if flat is None:
            name, count = written.identifier(self.name), len(leaves)
            shape = None if self.shape is None else written.flattened(self.shape, "shape", call, count)
            flat = self.flat[call] = TorchFunction(written.flattened(self.f, name, call, count), shape)
        return flat(*[leaf for _, leaf in leaves])

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchFunction:
        """Copies of a module share its functions, as they share functions of Python."""
        return self

    def __reduce__(self) -> Any:
        return written.reduced(self, self.f, functools.partial(function, shape=self.shape))

    def __repr__(self) -> str:
        return f"<srcdiff.bridges.torch.function({self.name})>"


def _is_structure(value: Any) -> bool:
    return isinstance(value, tuple | list | dict) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


class _Kind:
    """The kind of an argument."""

    def __init__(self, text: str, *, is_active: bool = False, is_number: bool = False) -> None:
        self.text, self.is_active, self.is_number = text, is_active, is_number
        self.is_tensor = text == "Tensor"


def _kind_of(k: int, value: Any) -> _Kind:
    if isinstance(value, Tensor):
        if value.dtype not in _FLOATS + _EXACT:
            raise TypeError(f"argument {k + 1} is a tensor of {value.dtype}, and srcdiff needs real numbers of NumPy")
        if value.layout is not torch.strided:
            raise TypeError(f"argument {k + 1} is a tensor with the layout {value.layout}: srcdiff needs a dense one")
        return _Kind("Tensor", is_active=value.dtype in _FLOATS, is_number=value.dim() == 0)
    if type(value) not in _NUMBERS:
        raise TypeError(f"argument {k + 1} is {named(value)}: it must be a tensor, a number or a string")
    return _Kind(_NUMBERS[type(value)])


class _Values:
    """What a function of the user returns: numbers, and arrays of known shapes."""

    def __init__(self, results: Results, shape: Callable[..., Any] | None) -> None:
        self.results, self.shape, self.count = results, shape, len(results.leaves)
        if shape is None and not all(leaf.is_number for leaf in results.leaves):
            raise ValueError("it returns an array: `function` needs `shape=` for a function with an array")

    def shapes(self, args: Sequence[Any]) -> list[tuple[int, ...]]:
        return self.results.shapes(None if self.shape is None else self.shape(*args))

    def fakes(self, args: Sequence[Any]) -> list[Any]:
        first, dtype = next(a for a in args if isinstance(a, Tensor)), _dtype_of(args)
        return [first.new_empty(shape, dtype=dtype) for shape in self.shapes(args)]

    def checked(self, result: Any, args: Sequence[Any]) -> list[Any]:
        """The results as tensors, in memory of their own."""
        found = (result,) if self.results.is_single else result
        if self.shape is not None:
            for one, shape in zip(found, self.shapes(args), strict=True):
                if np.shape(one) != shape:
                    raise ValueError(f"it returns {_what(one)}, but `shape` says {shape}")
        dtype = _dtype_of(args)
        return [_tensor(one, dtype, args) for one in found]

    def of_tangents(self, count: int) -> _Values:
        """The tangents of the results, for an operator whose first arguments, so many, are those of the function."""
        shape = self.shape
        return _Values(self.results, None if shape is None else lambda *args: shape(*args[:count]))


class _Gradients:
    """What a pullback returns: a gradient for each active argument, with its shape and dtype."""

    def __init__(self, places: Sequence[int]) -> None:
        self.places, self.count = places, len(places)

    def fakes(self, args: Sequence[Any]) -> list[Any]:
        return [args[k].new_empty(args[k].shape) for k in self.places]

    def checked(self, result: Any, args: Sequence[Any]) -> list[Any]:
        return [_tensor(x, args[k].dtype, args) for k, x in zip(self.places, result, strict=True)]

    def of_tangents(self, count: int) -> _Gradients:
        """The tangents of the gradients."""
        return self


class Operator(abc.ABC):
    """An operator of PyTorch for certain kinds of arguments, with its derivatives."""

    def __init__(self, kinds: Sequence[_Kind], count: int, name: str) -> None:
        self.kinds, self.count, self.name = kinds, count, f"{written.identifier(name)}_{next(_count)}"
        self.active = [k for k, kind in enumerate(kinds) if kind.is_active]
        self.tensors = [k for k, kind in enumerate(kinds) if kind.is_tensor]
        self.others = [k for k, kind in enumerate(kinds) if not kind.is_tensor]
        self.batches: dict[tuple[bool, ...], Batch] = {}
        takes = ", ".join(f"{kind.text} a{k}" for k, kind in enumerate(kinds))
        returns = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
        schema = f"({takes}) -> {returns}"
        self.op: Any = self._registered(self.name, self._run_without_tangents, schema)
        self.inner: Any = self._registered(f"{self.name}_inner", self.run, schema)
        """The same without derivatives, for calls whose derivatives `_Transformed` computes."""
        self.op.register_vmap(functools.partial(self.vmap, dispatched=True))
        if self.active:
            self.op.register_autograd(self.backward, setup_context=self.keep)

    def _registered(self, name: str, run: Function, schema: str) -> Any:
        op: Any = torch.library.custom_op(f"srcdiff::{name}", run, mutates_args=(), schema=schema, device_types="cpu")
        op.register_fake(self.fake)
        return op

    def __call__(self, *args: Any) -> Any:
        """Call the operator. Where only numbers are wanted, PyTorch's dispatcher is left out, which saves 4 to 5 us."""
        if torch.compiler.is_compiling():
            if _is_differentiated():
                torch._dynamo.graph_break(msg="srcdiff computes derivatives by `torch.func` outside of `torch.compile`")
            return self.op(*args)
        if not _is_eager(args):
            return _Transformed.apply(self, *args) if _is_transformed() else self.op(*args)
        if torch.is_grad_enabled() and any(args[k].requires_grad for k in self.active):
            return _Eager.apply(self, *args)
        return self.run(*args)

    def run(self, *args: Any) -> Any:
        """Compute the results from tensors, whose memory is read in place."""
        try:
            made = self.computed(args)
        except Exception as error:
            error.add_note(f"in {self.place}, called by PyTorch")
            raise
        return made[0] if len(made) == 1 else tuple(made)

    def _run_without_tangents(self, *args: Any) -> Any:
        """The same for the operator itself, whose tangents PyTorch would take for zeros."""
        if forward_ad._current_level >= 0 and self.active:
            raise NotImplementedError(f"{self.op} has no forward mode in PyTorch: call the function that made it")
        return self.run(*args)

    def fake(self, *args: Any) -> Any:
        """Tensors with the shapes and dtypes of the results."""
        devices = {a.device for a in args if isinstance(a, Tensor)}
        if len(devices) > 1:
            found = " and ".join(sorted(map(str, devices)))
            raise RuntimeError(f"Expected all tensors to be on the same device, but found {found}, in {self.place}")
        made = self.fakes(args)
        return made[0] if len(made) == 1 else tuple(made)

    @property
    @abc.abstractmethod
    def place(self) -> str:
        """The user's function and its line."""

    @abc.abstractmethod
    def computed(self, args: Sequence[Any]) -> list[Any]:
        """The results as tensors, in memory of their own."""

    @abc.abstractmethod
    def fakes(self, args: Sequence[Any]) -> list[Any]:
        """Tensors with the shapes and dtypes of the results."""

    # -- derivatives ---------------------------------------------------------------------------------------------------

    def keep(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the arguments for the backward pass."""
        ctx.save_for_backward(*[inputs[k] for k in self.tensors])
        ctx.others = [inputs[k] for k in self.others]

    def kept(self, context: Any) -> list[Any]:
        saved, others = iter(context.saved_tensors), iter(context.others)
        return [next(saved if kind.is_tensor else others) for kind in self.kinds]

    def backward(self, context: Any, *bars: Any) -> tuple[Any, ...]:
        """The gradients of all arguments, by the operator of the pullback."""
        gradients = iter(self.gradients(self.kept(context), bars))
        return tuple([next(gradients) if kind.is_active else None for kind in self.kinds])

    @abc.abstractmethod
    def gradients(self, args: Sequence[Any], bars: Sequence[Any]) -> Sequence[Any]:
        """The gradients of the active arguments."""

    @abc.abstractmethod
    def tangents(self, args: Sequence[Any], dots: Sequence[Any]) -> Any:
        """The tangents of the results, from those of the arguments: None for those that have none."""

    # -- batches -------------------------------------------------------------------------------------------------------

    def vmap(self, info: Any, axes: Any, *args: Any, dispatched: bool = False) -> Any:
        """The results for a batch, which PyTorch's `vmap` asks for, and the axes of the batch in them.

        `dispatched` says that PyTorch calls this from its dispatcher, to which another operator must go, too.
        """
        flags = tuple([axis is not None for axis in axes])
        given = [a if axis is None else a.movedim(axis, 0) for a, axis in zip(args, axes, strict=True)]
        found = self.in_batch(flags, given, dispatched=dispatched)
        return found, 0 if isinstance(found, Tensor) else (0,) * len(found)

    def in_batch(self, flags: tuple[bool, ...], args: Sequence[Any], *, dispatched: bool = False) -> Any:
        """The results for a batch: the arguments with a flag have it as their first axis."""
        if flags not in self.batches:
            self.batches[flags] = Batch(self, flags)
        batch = self.batches[flags]
        return batch.op(*args) if dispatched else batch(*args)


class SourceOperator(Operator):
    """An operator whose function was read by srcdiff."""

    def __init__(self, f: Function, kinds: Sequence[_Kind], result: _Values | _Gradients, name: str) -> None:
        self.f, self.result = f, result
        self.pullbacks: dict[tuple[bool, ...], SourceOperator] = {}
        self.directional: dict[tuple[int, ...], SourceOperator] = {}
        self.only_reads: Any = None
        """The specialisation of the latest call, if it does not write to its arguments."""
        self.compiled: Any = f if isinstance(f, Derivative) else Derivative(f, "primal", 0)
        super().__init__(kinds, result.count, name)

    @property
    def as_tuple(self) -> bool:
        return isinstance(self.result, _Gradients) or not self.result.results.is_single

    @property
    def place(self) -> str:
        return written.place_of(self.f)

    def computed(self, args: Sequence[Any]) -> list[Any]:
        values = [_value(kind, a) for kind, a in zip(self.kinds, args, strict=True)]
        return self.result.checked(self._called(values), args)

    def _called(self, values: list[Any]) -> Any:
        if self.compiled.mode != "primal":
            return self.compiled(*values)
        known = self.compiled.direct
        if known is not None and known is self.only_reads:
            with contextlib.suppress(UnfitError, ChangedError, ValueError, IndexError, OverflowError):  # as below
                return known.direct(*values)
        if self.writes(values):
            values = VALUES.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, values)
        return self.compiled(*values)

    def writes(self, values: Sequence[Any]) -> bool:
        """Whether the function writes to its arguments."""
        specialisation = self.compiled.specialised(tuple(values))
        if self.compiled.mode == "primal" and not specialisation.compiled.writes:
            self.only_reads = specialisation
        return bool(specialisation.compiled.writes)

    def fakes(self, args: Sequence[Any]) -> list[Any]:
        return self.result.fakes(args)

    def gradients(self, args: Sequence[Any], bars: Sequence[Any]) -> Sequence[Any]:
        found = self.pullback(tuple([bar.dim() == 0 for bar in bars]))(*args, *bars)
        return (found,) if isinstance(found, Tensor) else found

    def tangents(self, args: Sequence[Any], dots: Sequence[Any]) -> Any:
        moved = tuple([k for k, dot in enumerate(dots) if dot is not None])
        return self.tangent(moved)(*args, *[dots[k] for k in moved])

    def pullback(self, numbers: tuple[bool, ...]) -> SourceOperator:
        """The operator that takes the arguments and the adjoints of the results, and returns gradients.

        `numbers` says which results are numbers.
        """
        if numbers not in self.pullbacks:
            self.pullbacks[numbers] = self._pullback(numbers)
        return self.pullbacks[numbers]

    def _pullback(self, numbers: tuple[bool, ...]) -> SourceOperator:
        weighted = written.weighted(self.f, f"{self.name}_weighted", len(self.kinds), numbers, as_tuple=self.as_tuple)
        kinds = [*self.kinds, *[_Kind("Tensor", is_active=True, is_number=number) for number in numbers]]
        g = grad(weighted, wrt=tuple(f"a{k}" for k in self.active))
        return SourceOperator(g, kinds, _Gradients(self.active), f"{self.name}_pullback")

    def tangent(self, moved: tuple[int, ...]) -> SourceOperator:
        """The operator that takes the arguments and tangents of some of them, and returns those of the results."""
        if moved not in self.directional:
            name = f"{self.name}_tangent"
            f = written.tangent(self.f, name, len(self.kinds), moved)
            kinds = [*self.kinds, *[self.kinds[k] for k in moved]]
            self.directional[moved] = SourceOperator(f, kinds, self.result.of_tangents(len(self.kinds)), name)
        return self.directional[moved]


class UserOperator(SourceOperator):
    """The operator of the user's function for certain kinds of arguments."""

    def __init__(
        self, f: Function, kinds: Sequence[_Kind], shape: Callable[..., Any] | None, name: str, args: Sequence[Any]
    ) -> None:
        primal = Derivative(f, "primal", 0)
        if not any(kind.is_tensor for kind in kinds):
            raise TypeError(f"`{name}` got no tensor")
        examples = tuple([_example(kind, a) for kind, a in zip(kinds, args, strict=True)])
        results = results_of(primal.specialised(examples).compiled.reading.result)
        if results is None:
            raise TypeError(f"{written.place_of(f)} must return floats and arrays, and structures of these")
        self.results = results
        """The structure of what the function returns."""
        if not results.is_single:
            arguments = [f"a{k}" for k in range(len(kinds))]
            f = written.flattened(f, written.identifier(name), arguments, len(kinds), [r.text for r in results.leaves])
        super().__init__(f, kinds, _Values(results, shape), name)


class Batch(Operator):
    """An operator for each element of a batch, in one compiled loop. Flags say which arguments have a batch axis."""

    def __init__(self, of: Any, flags: tuple[bool, ...]) -> None:
        self.of: SourceOperator = of
        self.flags = flags
        names = of.compiled.names
        self.over = tuple([name for name, flag in zip(names, flags, strict=True) if flag])
        self.compiled = batched(of.compiled, over=self.over)
        kinds = [_Kind(kind.text, is_active=kind.is_active) for kind in of.kinds]
        super().__init__(kinds, of.count, f"{of.name}_batch")

    @property
    def place(self) -> str:
        return self.of.place

    def elements(self, args: Sequence[Any]) -> list[Any]:
        """Arguments like those of an element."""
        return [a.new_empty(a.shape[1:]) if flag else a for a, flag in zip(args, self.flags, strict=True)]

    def size(self, args: Sequence[Any]) -> int:
        return next(a.shape[0] for a, flag in zip(args, self.flags, strict=True) if flag)  # type: ignore[no-any-return]

    def fakes(self, args: Sequence[Any]) -> list[Any]:
        return [one.new_empty((self.size(args), *one.shape)) for one in self.of.fakes(self.elements(args))]

    def computed(self, args: Sequence[Any]) -> list[Any]:
        if not self.size(args):
            return self.fakes(args)
        values = [_value(kind, a, is_array=flag) for kind, a, flag in zip(self.of.kinds, args, self.flags, strict=True)]
        first = [v[0] if flag else v for v, flag in zip(values, self.flags, strict=True)]
        if self.of.compiled.mode == "primal" and self.of.writes(first):
            values = VALUES.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, values)
        found = self.compiled(*values)
        wanted = self.of.fakes(self.elements(args))
        results = found if self.of.as_tuple else (found,)
        for one, like in zip(results, wanted, strict=True):
            if one.shape[1:] != like.shape:
                raise ValueError(f"it returns {_what(one[0])}, but `shape` says {tuple(like.shape)}")
        return [_tensor(one, like.dtype, args) for one, like in zip(results, wanted, strict=True)]

    def gradients(self, args: Sequence[Any], bars: Sequence[Any]) -> Sequence[Any]:
        pullback = self.of.pullback(tuple([bar.dim() == 1 for bar in bars]))
        found = pullback.in_batch((*self.flags, *[True] * len(bars)), (*args, *bars))
        each = (found,) if isinstance(found, Tensor) else found
        return [gradient if self.flags[k] else gradient.sum(0) for k, gradient in zip(self.active, each, strict=True)]

    def tangents(self, args: Sequence[Any], dots: Sequence[Any]) -> Any:
        moved = tuple([k for k, dot in enumerate(dots) if dot is not None])
        flags = (*self.flags, *[self.flags[k] for k in moved])
        return self.of.tangent(moved).in_batch(flags, (*args, *[dots[k] for k in moved]))

    def in_batch(self, flags: tuple[bool, ...], args: Sequence[Any], *, dispatched: bool = False) -> Any:
        """The results for a batch of batches, which become one batch."""
        outer = next(a.shape[0] for a, flag in zip(args, flags, strict=True) if flag)
        inner = next(a.shape[int(flag)] for a, flag, mine in zip(args, flags, self.flags, strict=True) if mine)
        merged = []
        for a, flag, mine in zip(args, flags, self.flags, strict=True):
            if flag or mine:
                rest = a.shape[int(flag) + int(mine) :]
                a = a if flag else a[None]
                a = a if mine else a[:, None]
                a = a.expand(outer, inner, *rest).reshape(outer * inner, *rest)
            merged.append(a)
        both = tuple([flag or mine for flag, mine in zip(flags, self.flags, strict=True)])
        found = self.of.in_batch(both, merged, dispatched=dispatched)
        if isinstance(found, Tensor):
            return found.reshape(outer, inner, *found.shape[1:])
        return tuple([one.reshape(outer, inner, *one.shape[1:]) for one in found])


def _value(kind: _Kind, a: Any, *, is_array: bool = False) -> Any:
    """An argument of an operator as the function gets it."""
    if not kind.is_tensor:
        return a
    return a.item() if kind.is_number and not is_array else a.detach().resolve_neg().numpy()


def _example(kind: _Kind, a: Any) -> Any:
    """An argument of the same kind, for tensors that may have no numbers."""
    if not kind.is_tensor:
        return a
    dtype = np.dtype(str(a.dtype).removeprefix("torch."))
    return np.zeros((), dtype).item() if kind.is_number else np.zeros([int(size) for size in a.shape], dtype)


class _Eager(torch.autograd.Function):  # type: ignore[misc]
    """A call of an operator that autograd records."""

    @staticmethod
    def forward(ctx: Any, operator: Operator, *args: Any) -> Any:
        ctx.operator = operator
        output = operator.run(*args)
        operator.keep(ctx, args, output)
        return output

    @staticmethod
    def backward(ctx: Any, *bars: Any) -> Any:
        return (None, *ctx.operator.backward(ctx, *bars))


class _Transformed(torch.autograd.Function):  # type: ignore[misc]
    """A call of an operator inside of `torch.func` or in forward mode."""

    @staticmethod
    def forward(operator: Operator, *args: Any) -> Any:
        return operator.inner(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        operator, *args = inputs
        ctx.operator = operator
        operator.keep(ctx, tuple(args), output)
        ctx.save_for_forward(*[args[k] for k in operator.tensors])

    @staticmethod
    def backward(ctx: Any, *bars: Any) -> Any:
        return (None, *ctx.operator.backward(ctx, *bars))

    @staticmethod
    def jvp(ctx: Any, _: Any, *dots: Any) -> Any:
        operator = ctx.operator
        given = [dot if k in operator.active else None for k, dot in enumerate(dots)]
        args = operator.kept(ctx)
        if all(dot is None for dot in given):
            found = operator(*args)
            return torch.zeros_like(found) if isinstance(found, Tensor) else tuple(map(torch.zeros_like, found))
        return operator.tangents(args, given)

    @staticmethod
    def vmap(info: Any, axes: Any, operator: Operator, *args: Any) -> Any:
        return operator.vmap(info, axes[1:], *args)


_PLAIN = {Tensor, torch.nn.Parameter}
_is_tracing: Any = torch._C._is_tracing
_modes: Any = torch._C._len_torch_dispatch_stack
_function_modes: Any = torch._C._len_torch_function_stack
_is_batched: Any = torch._C._functorch.is_legacy_batchedtensor  # by `autograd.grad(is_grads_batched=True)`
_transforms: Any = torch._C._functorch.peek_interpreter_stack


def _is_differentiated() -> bool:
    """Whether `torch.func` or forward mode differentiates the call: PyTorch would take its tangents for zeros."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    vmap = torch._C._functorch.TransformType.Vmap
    return forward_ad._current_level >= 0 or any(one.key() != vmap for one in stack)


_is_differentiated._dynamo_marked_constant = True  # type: ignore[attr-defined]  # it is called where a graph is traced


def _is_transformed() -> bool:
    """Whether the call is inside of `torch.func`, or in forward mode, and no tracer or mode looks at it."""
    if _modes() or _function_modes() or _is_tracing():
        return False
    return _transforms() is not None or forward_ad._current_level >= 0


def _is_eager(args: Sequence[Any]) -> bool:
    """Whether only autograd observes the call: no tracer, no mode, no transform, and plain tensors on the CPU."""
    if _modes() or _function_modes() or _is_tracing() or _transforms() is not None or forward_ad._current_level >= 0:
        return False
    for a in args:  # noqa: SIM110  twice as fast as `all`
        if isinstance(a, Tensor) and (type(a) not in _PLAIN or not a.is_cpu or _is_batched(a)):
            return False
    return True


def _dtype_of(args: Sequence[Any]) -> Any:
    """The dtype of a result: that of the tensors of floats."""
    found = [a.dtype for a in args if isinstance(a, Tensor)]
    return torch.float32 if torch.float32 in found and torch.float64 not in found else torch.float64


def _tensor(value: Any, dtype: Any, args: Sequence[Any]) -> Any:
    """A tensor that shares no memory with the arguments."""
    if not isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value, _DTYPES[dtype]))
    if value.base is not None or not value.flags.owndata or not value.flags.writeable:
        value = value.copy()
    made = torch.from_numpy(value).to(dtype)
    arrays = {a.data_ptr() for a in args if isinstance(a, Tensor)}
    return made.clone() if made.data_ptr() in arrays and made.numel() else made


def _what(result: Any) -> str:
    return f"an array of shape {result.shape}" if isinstance(result, np.ndarray) else f"a {type(result).__name__}"
