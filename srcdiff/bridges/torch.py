"""Functions for PyTorch: `function(f)` makes an operator of a Python function, whose gradients are computed by srcdiff.

The operator is a `torch.library.custom_op`. Its backward pass is a second operator, the gradient of the weighted sum
`sum(f(x) * out_bar)`, and the backward pass of that is made in the same way. So there are derivatives of any order:

    f(x)                    -> out
    pullback(x, out_bar)    =  grad of sum(f(x) * out_bar)                          -> x_bar
    its pullback            =  grad of sum(pullback(x, out_bar) * x_bar_bar)        -> x_bar_2, out_bar_bar
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from srcdiff.api.derivatives import Derivative
from srcdiff.api.reverse import grad
from srcdiff.backends.numba.direct import UnfitError
from srcdiff.bridges import written_functions as written
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
        f: A function of arrays and numbers that returns one float or one array.
        shape: If `f` returns an array, a function of the same arguments that returns its shape.

    Returns:
        A function that takes tensors on the CPU for the arrays, and returns a tensor. A tensor without axes stands for
        a number. Tensors of floats get gradients; Python numbers, strings, and tensors of integers do not. The result
        has the dtype of the tensors of floats.
    """
    return TorchFunction(f, shape)


class TorchFunction:
    """A function of tensors: see `function`."""

    def __init__(self, f: Function, shape: Callable[..., Sequence[int]] | None) -> None:
        plain = plain_function(f)
        if plain is None:
            raise TypeError(f"{f!r} is not a Python function: wrap it in a function or a lambda")
        self.f, self.shape, self.name = f, shape, plain.__name__
        self.operators: dict[Any, Operator] = {}
        """The operators by the kinds of their arguments."""
        functools.update_wrapper(self, plain, updated=())

    def __call__(self, *args: Any) -> Any:
        key = tuple([(a.dtype, a.dim() == 0) if isinstance(a, Tensor) else type(a) for a in args])
        operator = self.operators.get(key)
        if operator is None:
            operator = self.operator(*args)
        return operator(*args)

    def operator(self, *args: Any) -> Operator:
        """The operator for such arguments."""
        kinds = tuple([_kind_of(k, a) for k, a in enumerate(args)])
        key = tuple([(a.dtype, a.dim() == 0) if isinstance(a, Tensor) else type(a) for a in args])
        if key not in self.operators:
            self.operators[key] = Operator(self.f, kinds, _Value(self.shape), self.name)
        return self.operators[key]

    def __repr__(self) -> str:
        return f"<srcdiff.bridges.torch.function({self.name})>"


class _Kind:
    """The kind of an argument."""

    def __init__(self, text: str, *, is_active: bool = False, is_number: bool = False) -> None:
        self.text, self.is_active, self.is_number = text, is_active, is_number
        self.is_tensor = text == "Tensor"


def _kind_of(k: int, value: Any) -> _Kind:
    if isinstance(value, Tensor):
        if value.dtype not in _FLOATS + _EXACT:
            raise TypeError(f"argument {k + 1} is a tensor of {value.dtype}, and srcdiff needs real numbers of NumPy")
        return _Kind("Tensor", is_active=value.dtype in _FLOATS, is_number=value.dim() == 0)
    if type(value) not in _NUMBERS:
        raise TypeError(f"argument {k + 1} is a {type(value).__name__}: it must be a tensor, a number or a string")
    return _Kind(_NUMBERS[type(value)])


class _Value:
    """What a function of the user returns: a number, or an array of known shape."""

    count = 1

    def __init__(self, shape: Callable[..., Sequence[int]] | None) -> None:
        self.shape = shape

    def fakes(self, args: Sequence[Any]) -> list[Any]:
        shape = () if self.shape is None else tuple(self.shape(*args))
        first = next(a for a in args if isinstance(a, Tensor))
        return [first.new_empty(shape, dtype=_dtype_of(args))]

    def checked(self, result: Any, args: Sequence[Any]) -> list[Any]:
        """The result as a tensor, in memory of its own."""
        if self.shape is None:
            if not isinstance(result, float | int | np.floating | np.integer) and np.shape(result) != ():
                raise ValueError(f"it returns {_what(result)}: `function` needs `shape=` for a function with an array")
            shape: tuple[int, ...] = ()
        else:
            shape = tuple(self.shape(*args))
            if not isinstance(result, np.ndarray) or result.shape != shape:
                raise ValueError(f"it returns {_what(result)}, but `shape` says {shape}")
        return [_tensor(result, _dtype_of(args), args)]


class _Gradients:
    """What a pullback returns: a gradient for each active argument, with its shape and dtype."""

    def __init__(self, places: Sequence[int]) -> None:
        self.places, self.count = places, len(places)

    def fakes(self, args: Sequence[Any]) -> list[Any]:
        return [args[k].new_empty(args[k].shape) for k in self.places]

    def checked(self, result: Any, args: Sequence[Any]) -> list[Any]:
        return [_tensor(x, args[k].dtype, args) for k, x in zip(self.places, result, strict=True)]


class Operator:
    """An operator of PyTorch for certain kinds of arguments."""

    def __init__(self, f: Function, kinds: Sequence[_Kind], result: _Value | _Gradients, name: str) -> None:
        self.f, self.kinds, self.result = f, kinds, result
        self.name = f"{written.identifier(name)}_{next(_count)}"
        self.active = [k for k, kind in enumerate(kinds) if kind.is_active]
        self.tensors = [k for k, kind in enumerate(kinds) if kind.is_tensor]
        self.others = [k for k, kind in enumerate(kinds) if not kind.is_tensor]
        if not self.tensors:
            raise TypeError(f"`{name}` got no tensor")
        self.pullbacks: dict[tuple[bool, ...], Operator] = {}
        self.only_reads: Any = None
        """The specialisation of the latest call, if it does not write to its arguments."""
        self.compiled: Any = f if isinstance(f, Derivative) else Derivative(f, "primal", 0)
        if self.compiled.by_name or len(self.compiled.names) != len(kinds):
            parameters = ", ".join(self.compiled.names)
            raise TypeError(f"`{name}({parameters})` got {len(kinds)} arguments: it needs all of them, by position")
        takes = ", ".join(f"{kind.text} a{k}" for k, kind in enumerate(kinds))
        returns = "Tensor" if result.count == 1 else f"({', '.join(['Tensor'] * result.count)})"
        self.op: Any = torch.library.custom_op(
            f"srcdiff::{self.name}", self.run, mutates_args=(), schema=f"({takes}) -> {returns}", device_types="cpu"
        )
        self.op.register_fake(self.fake)
        if self.active:
            self.op.register_autograd(self.backward, setup_context=self.keep)

    def __call__(self, *args: Any) -> Any:
        """Call the operator. Where only numbers are wanted, PyTorch's dispatcher is left out, which saves 4 to 5 us."""
        if torch.compiler.is_compiling():
            return self.op(*args)
        if not _is_eager(args):
            self._refuse_tangents(args)
            return self.op(*args)
        if torch.is_grad_enabled() and any(args[k].requires_grad for k in self.active):
            return _Eager.apply(self, *args)
        return self.run(*args)

    def _refuse_tangents(self, args: Sequence[Any]) -> None:
        """Refuse forward mode: PyTorch would take the tangents of an operator without a word for zeros."""
        if forward_ad._current_level >= 0:
            for k in self.active:
                if forward_ad.unpack_dual(args[k]).tangent is not None:
                    raise NotImplementedError(f"`{self.name}` has no forward mode in PyTorch: use reverse mode")

    def run(self, *args: Any) -> Any:
        """Compute the results from tensors, whose memory is read in place."""
        try:
            values = [self._value(kind, a) for kind, a in zip(self.kinds, args, strict=True)]
            made = self.result.checked(self._called(values), args)
        except Exception as error:
            error.add_note(f"in {written.place_of(self.f)}, called by PyTorch")
            raise
        return made[0] if len(made) == 1 else tuple(made)

    @staticmethod
    def _value(kind: _Kind, a: Any) -> Any:
        if not kind.is_tensor:
            return a
        return a.item() if kind.is_number else a.detach().numpy()

    def _called(self, values: list[Any]) -> Any:
        if self.compiled.mode != "primal":
            return self.compiled(*values)
        known = self.compiled.direct
        if known is not None and known is self.only_reads:
            with contextlib.suppress(UnfitError, ChangedError, ValueError, IndexError, OverflowError):  # as below
                return known.direct(*values)
        specialisation = self.compiled.specialised(tuple(values))
        if specialisation.compiled.writes:
            values = VALUES.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, values)
        else:
            self.only_reads = specialisation
        return self.compiled(*values)

    def fake(self, *args: Any) -> Any:
        """Tensors with the shapes and dtypes of the results."""
        made = self.result.fakes(args)
        return made[0] if len(made) == 1 else tuple(made)

    def keep(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep the arguments for the backward pass."""
        ctx.save_for_backward(*[inputs[k] for k in self.tensors])
        ctx.others = [inputs[k] for k in self.others]

    def backward(self, context: Any, *bars: Any) -> tuple[Any, ...]:
        """The gradients of all arguments, by the operator of the pullback."""
        saved, others = iter(context.saved_tensors), iter(context.others)
        args = [next(saved if kind.is_tensor else others) for kind in self.kinds]
        numbers = tuple([bar.dim() == 0 for bar in bars])
        found = self.pullback(numbers)(*args, *bars)
        gradients = iter((found,) if isinstance(found, Tensor) else found)
        return tuple([next(gradients) if kind.is_active else None for kind in self.kinds])

    def pullback(self, numbers: tuple[bool, ...]) -> Operator:
        """The operator that takes the arguments and the adjoints of the results, and returns gradients.

        `numbers` says which results are numbers.
        """
        if numbers not in self.pullbacks:
            self.pullbacks[numbers] = self._pullback(numbers)
        return self.pullbacks[numbers]

    def _pullback(self, numbers: tuple[bool, ...]) -> Operator:
        weighted = written.weighted(
            self.f, f"{self.name}_weighted", len(self.kinds), numbers, as_tuple=not isinstance(self.result, _Value)
        )
        kinds = [*self.kinds, *[_Kind("Tensor", is_active=True, is_number=number) for number in numbers]]
        g = grad(weighted, wrt=tuple(f"a{k}" for k in self.active))
        return Operator(g, kinds, _Gradients(self.active), f"{self.name}_pullback")


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


_PLAIN = {Tensor, torch.nn.Parameter}
_is_tracing: Any = torch._C._is_tracing
_modes: Any = torch._C._len_torch_dispatch_stack
_function_modes: Any = torch._C._len_torch_function_stack
_transforms: Any = torch._C._functorch.peek_interpreter_stack


def _is_eager(args: Sequence[Any]) -> bool:
    """Whether only autograd observes the call: no tracer, no mode, no transform, and plain tensors on the CPU."""
    if _modes() or _function_modes() or _is_tracing() or _transforms() is not None or forward_ad._current_level >= 0:
        return False
    for a in args:  # noqa: SIM110  twice as fast as `all`
        if isinstance(a, Tensor) and (type(a) not in _PLAIN or not a.is_cpu):
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
