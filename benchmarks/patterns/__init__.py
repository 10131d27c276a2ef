"""Common forms of programs, one small program each, with an adjoint written by hand as a good programmer would.

They are cases in which generated code once was slower: a counter beside the loops, a state that is overwritten, a kink,
a helper that returns a small array. A module is like those in `benchmarks/programs`, with two sizes (the smaller one is
for the comparison with differences) and

- `hand`: takes the arguments and returns the value and the tuple of gradients; compiled exactly as generated code is,
  with the same flags, vector functions and allocator, so that only the code differs
- `workspace`, if the adjoint by hand works in memory of its caller: returns further arguments for `hand`
- `in_jax`, if JAX has a natural form, and `STATIC`, the arguments that JAX must know when it compiles
- `by_srcdiff` and `by_jax`, if the derivative is not `value_and_grad`: return the function to call with the arguments;
  `IS_GRADIENT` is false if this function does not return a gradient of `primal`

When it is loaded, it imports only NumPy, so that JAX can read it in an environment of its own.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

NAMES = (
    "packed_counter",
    "packed_mixture",
    "recursion",
    "determinant",
    "nearest",
    "pay_off",
    "absolute",
    "clip",
    "relu",
    "where",
    "huber",
    "burgers_in_place",
    "upwind",
    "burgers_arrays",
    "inner_while",
    "early_exit",
    "long_run",
    "jacobi",
    "jacobi_workspace",
    "gauss_seidel",
    "lstm_loops",
    "lstm_arrays",
    "rotations",
    "bundle_adjustment",
    "bundle_jacobian",
    "bundle_jacobian_batched",
    "robot_arm",
    "kalman_continue",
    "gaussian_process",
    "einsum",
    "logistic_regression",
    "lennard_jones",
    "sin_cos",
    "gradient_in_njit",
)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled as generated code is. Without Numba, as where JAX runs, it is unchanged."""
    try:
        compile_, numpy = _as_generated_code()
    except ModuleNotFoundError:
        return function
    names = function.__globals__ | {"np": numpy}
    by_numba: Callable[..., Any] = compile_(types.FunctionType(function.__code__, names, function.__name__))
    names[function.__name__] = by_numba  # for recursive functions
    return by_numba


@functools.cache
def _as_generated_code() -> tuple[Any, Any]:
    from srcdiff.backends.numba.numba_cpu import compiler
    from srcdiff.backends.numba.quick_numpy import quick_numpy

    return compiler({}), quick_numpy()
