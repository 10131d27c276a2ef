"""Functions for PyTensor: `as_op(f)` makes an operation from a Python function, with derivatives by srcdiff.

Models of PyMC can contain it. It compiles to Numba with the rest of the graph, without object mode. Its derivatives are
operations of the same kind, so that derivatives of any order exist:

    f(x)                -> out
    pullback(x, out_bar) = grad of sum(f(x) * out_bar)     -> x_bar
    tangent(x, x_dot)    = jvp of f                        -> out_dot
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_funcify, numba_njit
from pytensor.tensor.exceptions import ShapeError

from srcdiff.api.c_functions import Constants, specialised_for_sizes
from srcdiff.api.derivatives import Derivative
from srcdiff.backends.numba import c_callable
from srcdiff.bridges import written_functions as written
from srcdiff.bridges.result_structures import Leaf, Results, results_of
from srcdiff.diagnostics.naming_objects import named
from srcdiff.frontend.source.capture import plain_function

Function = Callable[..., Any]


def as_op(f: Function) -> TensorFunction:
    """Make a function of tensor variables from a Python function, with derivatives by srcdiff.

    Args:
        f: A function of numbers and arrays that returns a float or an array of floats, or several. They may be in
            tuples, lists and dictionaries.

    Returns:
        A function that takes tensor variables, arrays and numbers, and returns tensor variables. A tensor without axes
        stands for a number. Strings, booleans and None are constants.
    """
    return TensorFunction(f)


class TensorFunction:
    """A function of tensor variables: see `as_op`."""

    def __init__(self, f: Function) -> None:
        plain = plain_function(f)
        if plain is None:
            raise TypeError(f"{f!r} is not a Python function: wrap it in a function or a lambda")
        self.f, self.name = f, written.identifier(plain.__name__)
        self.signature = inspect.signature(plain)
        self.operations: dict[Any, UserOp] = {}
        """The operations by the structures, types and constants of their arguments."""
        functools.update_wrapper(self, plain, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        leaves: list[Any] = []
        call = tuple(written.expressions(bound, leaves))
        given = [_variable(name, leaf) for name, leaf in leaves]
        kinds = tuple(_kind_of(x) for x in given)
        op = self.operation(call, kinds)
        found = op(*[x for x, kind in zip(given, kinds, strict=True) if kind.is_tensor], return_list=True)
        return op.results.rebuilt(found)

    def operation(self, call: tuple[str, ...], kinds: tuple[_Kind, ...]) -> UserOp:
        """The operation for such arguments, as the function is now."""
        op = self.operations.get((call, kinds))
        if op is None or not op.is_current():
            op = self.operations[call, kinds] = self._operation(call, kinds)
        return op

    def _operation(self, call: tuple[str, ...], kinds: tuple[_Kind, ...]) -> UserOp:
        f = written.flattened(self.f, self.name, call, len(kinds))
        specialisation = specialised_for_sizes(Derivative(f, "primal", 0), tuple([kind.example() for kind in kinds]))
        results = results_of(specialisation.compiled.reading.result)
        if results is None:
            raise TypeError(f"{written.place_of(self.f)} must return floats and arrays, and structures of these")
        outs = tuple([_kind_of_result(self.f, leaf) for leaf in results.leaves])
        if not results.is_single:
            f = written.flattened(self.f, self.name, call, len(kinds), [leaf.text for leaf in results.leaves])
        return UserOp(f, self.name, kinds, outs, (_operation_again, (self.f, call, kinds)), results)

    def __repr__(self) -> str:
        return f"<srcdiff.bridges.pytensor.as_op({self.name})>"


@dataclass(frozen=True)
class _Kind:
    """A tensor by the sizes of its axes that are known, and its dtype; or a constant."""

    shape: tuple[int | None, ...]
    dtype: str | None
    constant: Any = None

    @property
    def is_tensor(self) -> bool:
        return self.dtype is not None

    @property
    def is_active(self) -> bool:
        return self.dtype in ("float32", "float64")

    @property
    def is_number(self) -> bool:
        return not self.shape

    def example(self) -> Any:
        if not self.is_tensor:
            return self.constant
        if self.is_number:
            return self.read(np.zeros((), self.dtype))
        return np.zeros([2 if size is None else size for size in self.shape], self.dtype)

    def read(self, value: Any) -> Any:
        """A value of PyTensor as an argument of the function."""
        if not self.is_number:
            return value
        return np.float32(value) if self.dtype == "float32" else value.item()

    def type(self) -> Any:
        return pt.TensorType(self.dtype, self.shape)


def _kind_of_result(f: Function, leaf: Leaf) -> _Kind:
    if leaf.is_number:
        return _Kind((), "float32" if leaf.dtype.name == "float32" else "float64")
    if leaf.dtype.kind != "f":
        raise TypeError(f"{written.place_of(f)} returns an array of {leaf.dtype}: it must have floats")
    return _Kind((None,) * leaf.rank, leaf.dtype.name)


def _variable(name: str, leaf: Any) -> Any:
    """A leaf as a tensor variable, or the constant itself."""
    if leaf is None or isinstance(leaf, str | bool):
        return leaf
    try:
        variable = pt.as_tensor_variable(leaf)
    except (TypeError, NotImplementedError, ValueError) as error:
        raise TypeError(f"`{name}` is {named(leaf)}: it must be a tensor, an array or a number") from error
    kind = np.dtype(variable.type.dtype)
    if kind.kind not in "iub" and kind.name not in ("float32", "float64"):
        raise TypeError(f"`{name}` is a tensor of {kind}: it must have integers, float32 or float64")
    if kind.kind == "b" and variable.type.ndim == 0:
        raise TypeError(f"`{name}` is a boolean tensor: pass True or False, which is compiled in")
    return variable


def _kind_of(x: Any) -> _Kind:
    if not isinstance(x, Variable):
        return _Kind((), None, x)
    type_: Any = x.type
    return _Kind(tuple(1 if size == 1 else None for size in type_.shape), type_.dtype)


class SourceOp(Op):  # type: ignore[misc]
    """An operation of PyTensor whose function was read by srcdiff."""

    def __init__(
        self,
        f: Function,
        name: str,
        kinds: tuple[_Kind, ...],
        outs: tuple[_Kind, ...],
        again: Any,
        *,
        as_tuple: bool = True,
    ) -> None:
        self.f, self.name, self.kinds, self.outs, self.again = f, name, kinds, outs, again
        self.places = [k for k, kind in enumerate(kinds) if kind.is_tensor]
        self.active = [k for k in self.places if kinds[k].is_active]
        self.as_tuple = as_tuple
        """Whether the function returns a tuple."""
        self.primal = Derivative(f, "primal", 0)
        self.specialisation = specialised_for_sizes(self.primal, self._arguments())
        self.like: tuple[int, ...] = ()
        """The arguments that have the shapes of the results, if that is known."""
        self.copies = bool(self.specialisation.compiled.writes or self.specialisation.apart)
        """Whether the function writes to its arguments, or needs them apart."""
        self.outside = [written.snapshot(o.read()) for o in self.specialisation.outside]

    def _arguments(self) -> tuple[Any, ...]:
        return tuple([kind.example() for kind in self.kinds])

    def is_current(self) -> bool:
        """Whether the function, and all that it reads from outside, are as they were."""
        if not self.specialisation.is_current():
            return False
        return all(written.is_same(a, o.read()) for a, o in zip(self.outside, self.specialisation.outside, strict=True))

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return self.again

    # -- what PyTensor asks --------------------------------------------------------------------------------------------

    def make_node(self, *inputs: Any) -> Any:
        given = [
            self.kinds[k].type().filter_variable(pt.as_tensor_variable(x))
            for k, x in zip(self.places, inputs, strict=True)
        ]
        return Apply(self, given, [kind.type()() for kind in self.outs])

    def infer_shape(self, node: Any, shapes: Any) -> Any:
        if self.like:
            return [shapes[self.places.index(k)] for k in self.like]
        if all(kind.is_number for kind in self.outs):
            return [() for _ in self.outs]
        raise ShapeError(f"the shape of {self.name} is known only after it has run")

    def connection_pattern(self, node: Any) -> Any:
        return [[self.kinds[k].is_active] * len(self.outs) for k in self.places]

    def perform(self, node: Any, inputs: Sequence[Any], output_storage: Any) -> None:
        args = list(self._arguments())
        for k, value in zip(self.places, inputs, strict=True):
            args[k] = self.kinds[k].read(np.array(value) if self.copies else value)
        try:
            result = self.primal(*args)
        except Exception as error:
            error.add_note(f"in {written.place_of(self.f)}, called by PyTensor")
            raise
        results = result if self.as_tuple else (result,)
        for storage, value, kind in zip(output_storage, results, self.outs, strict=True):
            storage[0] = np.array(value, kind.dtype)  # never memory of an argument

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        bars = [
            out.zeros_like() if isinstance(bar.type, DisconnectedType) else bar.astype(out.dtype)
            for out, bar in zip(outputs, cotangents, strict=True)
        ]
        if not self.active:
            return [DisconnectedType()() for _ in inputs]
        found = iter(self.pullback_op()(*inputs, *bars, return_list=True))
        return [next(found) if self.kinds[k].is_active else DisconnectedType()() for k in self.places]

    def pushforward(self, inputs: Any, outputs: Any, tangents: Any) -> Any:
        moved = tuple(
            k
            for k, dot in zip(self.places, tangents, strict=True)
            if self.kinds[k].is_active and not isinstance(dot.type, DisconnectedType)
        )
        if not moved:
            return [DisconnectedType()() for _ in outputs]
        dots = [dot.astype(self.kinds[k].dtype) for k, dot in zip(self.places, tangents, strict=True) if k in moved]
        return self.tangent_op(moved)(*inputs, *dots, return_list=True)

    # -- derivatives ---------------------------------------------------------------------------------------------------

    @functools.cache  # noqa: B019  operations live as long as the program
    def pullback_op(self) -> SourceOp:
        """The gradients by the active arguments, from the arguments and the adjoints of the results."""
        numbers = [kind.is_number for kind in self.outs]
        name = f"{self.name}_pullback"
        f = written.weighted(self.f, f"{self.name}_weighted", len(self.kinds), numbers, as_tuple=self.as_tuple)
        kinds = (*self.kinds, *self.outs)
        f = written.pullback(f, name, len(kinds), self.active)
        outs = tuple([self.kinds[k] for k in self.active])
        made = SourceOp(f, name, kinds, outs, (_pullback_again, (self,)))
        made.like = tuple(self.active)
        return made

    @functools.cache  # noqa: B019
    def tangent_op(self, moved: tuple[int, ...]) -> SourceOp:
        """The directional derivative; `moved` are the places of the arguments that have tangents."""
        name = f"{self.name}_tangent"
        f = written.tangent(self.f, name, len(self.kinds), moved)
        kinds = (*self.kinds, *[self.kinds[k] for k in moved])
        made = SourceOp(f, name, kinds, self.outs, (_tangent_again, (self, moved)), as_tuple=self.as_tuple)
        made.like = self.like
        return made

    # -- Numba ---------------------------------------------------------------------------------------------------------

    def compiled(self) -> Any:
        """The function for the graph that PyTensor compiles by Numba: tensors without axes are arrays without axes."""
        if not self.is_current():
            raise RuntimeError(
                f"{written.place_of(self.f)} or a variable that it reads has changed since the graph was built"
            )
        specialisation = self.specialisation
        place_of = {k: n for n, k in enumerate(self.places)}
        constants, call = Constants(), []
        for n, value in enumerate(specialisation.prepared(self._arguments())):
            k = specialisation.positions[n] if n < len(specialisation.positions) else None
            if k is not None and self.kinds[k].is_tensor:
                kind, name = self.kinds[k], f"x{place_of[k]}"
                converted = f"np.{kind.dtype}" if kind.is_active else "int"
                array = f"{name}.copy()" if self.copies else name
                call.append(f"{converted}({name}.item())" if kind.is_number else array)
            else:
                call.append(constants.expression(value))
        results = [f"result[{n}]" if self.as_tuple else "result" for n in range(len(self.outs))]
        made = [_as_tensor(result, kind) for result, kind in zip(results, self.outs, strict=True)]
        text = (
            f"def {self.name}({', '.join(f'x{n}' for n in range(len(self.places)))}):\n"
            f"    result = compiled({', '.join(call)})\n"
            f"    return {made[0] if len(made) == 1 else ', '.join(made)}\n"
        )
        names = {"compiled": specialisation.function, "np": np, **_of_addresses(), **constants.objects}
        function = written.function_of(text, self.name, names)
        function.constants = constants  # type: ignore[attr-defined]  # it reads them by their addresses
        return numba_njit(function)


class UserOp(SourceOp):
    """The operation of the user's function, which knows the structure of its results."""

    def __init__(
        self,
        f: Function,
        name: str,
        kinds: tuple[_Kind, ...],
        outs: tuple[_Kind, ...],
        again: Any,
        results: Results,
    ) -> None:
        super().__init__(f, name, kinds, outs, again, as_tuple=not results.is_single)
        self.results = results


@numba_funcify.register(SourceOp)  # type: ignore[untyped-decorator]
def _numba_function(op: SourceOp, node: Any = None, **further: Any) -> Any:
    return op.compiled()


def _as_tensor(result: str, kind: _Kind) -> str:
    """The expression of a result as a new array of its dtype."""
    return f"np.array({result}, dtype=np.{kind.dtype})" if kind.is_number else f"{result}.astype(np.{kind.dtype})"


def _of_addresses() -> dict[str, Any]:
    from numba.np.numpy_support import carray

    return {"carray": carray, **c_callable.helpers()}


def _operation_again(f: Function, call: tuple[str, ...], kinds: tuple[_Kind, ...]) -> UserOp:
    return as_op(f).operation(call, kinds)


def _pullback_again(of: SourceOp) -> SourceOp:
    return of.pullback_op()


def _tangent_again(of: SourceOp, moved: tuple[int, ...]) -> SourceOp:
    return of.tangent_op(moved)
