"""Forms that people write, one small program each, with the adjoint that a good programmer would write by hand.

They stand for the places where generated code once fell behind: a counter beside the loops, a state that is
overwritten, a kink, a helper that returns a small array. A module is like those in `benchmarks/programs`, with two
sizes (the smaller is for comparing with differences) and

- `hand`: takes the arguments and returns the value and the tuple of gradients; compiled exactly as generated code is,
  with the same flags, vector functions and allocator, so that only the code differs
- `workspace`, where the adjoint by hand is given memory that its caller keeps: returns further arguments for `hand`
- `in_jax`, where JAX has a natural form, and `STATIC`, the arguments that JAX has to know when it compiles
- `by_srcdiff`, where the derivative is not called as `value_and_grad`: returns what is called with the arguments, and
  `by_jax`, which does the same for JAX; if what they return is no gradient of `primal`, `IS_GRADIENT` is false

It imports NumPy and nothing else when it is loaded, so that JAX can read it in an environment of its own.
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
    """The function compiled as generated code is; left as it is where there is no Numba, which is where JAX runs."""
    try:
        compile_, numpy = _as_generated_code()
    except ModuleNotFoundError:
        return function
    names = function.__globals__ | {"np": numpy}
    by_numba: Callable[..., Any] = compile_(types.FunctionType(function.__code__, names, function.__name__))
    names[function.__name__] = by_numba  # it may call itself
    return by_numba


@functools.cache
def _as_generated_code() -> tuple[Any, Any]:
    from srcdiff.backends.numba.numba_cpu import compiler
    from srcdiff.backends.numba.quick_numpy import quick_numpy

    return compiler({}), quick_numpy()
