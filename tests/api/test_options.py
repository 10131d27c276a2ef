"""Invalid options raise an error that lists the valid values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcdiff
from srcdiff import cuda
from srcdiff.api.kernels import spreads_of
from srcdiff.diagnostics.options import compile_options

X = np.array([1.0, 2.0])


def cubes(x):
    return np.sum(x**3)


def square(x):
    return x * x


# Functions that make derivatives with compile options.
MAKERS: dict[str, Callable[..., Any]] = {
    "grad": lambda **o: srcdiff.grad(cubes, **o),
    "value_and_grad": lambda **o: srcdiff.value_and_grad(cubes, **o),
    "differentiable": lambda **o: srcdiff.differentiable(cubes, **o),
    "decorator": lambda **o: srcdiff.differentiable(**o)(cubes),
    "method": lambda **o: srcdiff.differentiable(cubes).grad(**o),
    "jvp": lambda **o: srcdiff.jvp(cubes, (X,), (X,), **o),
    "vjp": lambda **o: srcdiff.vjp(cubes, X, **o),
    "hvp": lambda **o: srcdiff.hvp(cubes, **o),
    "hessian": lambda **o: srcdiff.hessian(cubes, **o),
    "jacobian": lambda **o: srcdiff.jacobian(square, **o),
    "batched": lambda **o: srcdiff.batched(cubes, **o),
    "check": lambda **o: srcdiff.check(cubes, X, **o),
}

# Invalid values of their common options.
COMMON: list[tuple[str, Any, str]] = [
    ("backend", "cython", "`backend` must be 'numba', 'python' or 'cuda', not 'cython'"),
    ("backend", None, "`backend` must be 'numba', 'python' or 'cuda', not None"),
    ("fastmath", "yes", "`fastmath` must be True, False or a set of 'afn', .* not 'yes'"),
    ("fastmath", {"quick"}, "`fastmath` must be True, False or a set of 'afn', .* not {'quick'}"),
    ("fastmath", ["nsz"], r"`fastmath` must be True, False or a set of 'afn', .* not \['nsz'\]"),
    ("error_model", "c", "`error_model` must be 'numpy' or 'python', not 'c'"),
    ("boundscheck", 1, "`boundscheck` must be None, True or False, not 1"),
    ("parallel", 4, "`parallel` must be True or False, not 4"),
    ("deterministic", None, "`deterministic` must be True or False, not None"),
    ("cache", "no", "`cache` must be None, True or False, not 'no'"),
    ("threads", 4, "`threads` is an option of the backend 'cuda'"),
    ("steps", 1e-3, "unknown option `steps`; the options are fastmath, error_model, boundscheck, cache"),
]


@pytest.mark.parametrize(("name", "value", "said"), COMMON)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_options_of_all_derivatives_are_checked(make: Callable[..., Any], name: str, value: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        make(**{name: value})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: srcdiff.jacobian(square, directions=-1), "`directions` must be None or a positive integer, not -1"),
        (lambda: srcdiff.jacobian(square, directions=0), "`directions` must be None or a positive integer, not 0"),
        (lambda: srcdiff.jacobian(square, directions=2.0), "`directions` must be None or a positive integer, not 2.0"),
        (
            lambda: srcdiff.jacobian(square, directions=True),
            "`directions` must be None or a positive integer, not True",
        ),
        (lambda: srcdiff.hessian(cubes, directions=-1), "`directions` must be None or a positive integer, not -1"),
        (
            lambda: srcdiff.jacobian(square, mode="backward"),
            "`mode` must be None, 'forward' or 'reverse', not 'backward'",
        ),
        (
            lambda: srcdiff.source(cubes, mode="grad"),
            "`mode` must be 'reverse', 'forward', 'pullback' or 'primal', not",
        ),
        (lambda: srcdiff.source(cubes, with_value="no"), "`with_value` must be True or False, not 'no'"),
        (lambda: srcdiff.grad(cubes, has_aux="yes"), "`has_aux` must be True or False, not 'yes'"),
        (lambda: srcdiff.grad(cubes, mode="forward"), "unknown option `mode`"),
        (lambda: srcdiff.grad(cubes, with_value=True), "unknown option `with_value`"),
        (lambda: srcdiff.differentiable(cubes, with_value=False), "unknown option `with_value`"),
        (lambda: srcdiff.check(cubes, X, order=3), "`order` must be 1 or 2, not 3"),
        (lambda: srcdiff.batched(cubes, shared="all"), "`shared` must be 'each' or 'sum', not 'all'"),
        (lambda: srcdiff.batched(cubes, parallel=4), "`parallel` must be True or False, not 4"),
        (lambda: srcdiff.batched(srcdiff.grad(cubes), backend="python"), "already has its own options: `backend`"),
        (lambda: srcdiff.export(cubes, mode="gradient"), "`mode` must be 'grad', .* or 'primal', not 'gradient'"),
        (lambda: srcdiff.export(cubes, plain="yes"), "`plain` must be True or False, not 'yes'"),
        (
            lambda: srcdiff.export(srcdiff.grad(cubes), mode="hvp"),
            "is already a derivative with its own `mode` and `wrt`",
        ),
        (lambda: srcdiff.export(srcdiff.grad(cubes), wrt=0), "is already a derivative with its own `mode` and `wrt`"),
        (lambda: srcdiff.benchmark(cubes, X, seconds=-1.0), "`seconds` must be a number, zero or more, not -1.0"),
        (
            lambda: srcdiff.benchmark(cubes, X, seconds=float("nan")),
            "`seconds` must be a number, zero or more, not nan",
        ),
        (lambda: srcdiff.benchmark(cubes, X, wrt="y"), "`cubes` has no argument `y`; its arguments are x"),
    ],
)
def test_options_of_one_function_are_checked(call: Callable[[], Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        call()


@pytest.mark.parametrize("wrt", [None, 1.5, True, (0, None), ("x", 2.0), {"x": 1}, {"x"}])
@pytest.mark.parametrize("make", [srcdiff.grad, srcdiff.hvp, srcdiff.hessian, srcdiff.jacobian])
def test_wrt_is_a_position_or_a_name_or_several(make: Callable[..., Any], wrt: Any) -> None:
    with pytest.raises(
        TypeError, match="`wrt` must be the position or the name of an argument, or a tuple of these, not "
    ):
        make(cubes, wrt)


def test_positions_may_be_numbers_of_numpy() -> None:
    one, several = np.int64(0), (np.int64(0),)

    assert srcdiff.grad(cubes, one, backend="python")(X).tolist() == [3.0, 12.0]
    assert srcdiff.jacobian(square, one, backend="python")(X).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert srcdiff.hvp(cubes, one, backend="python")(X, X).tolist() == [6.0, 24.0]
    assert srcdiff.vjp(cubes, X, wrt=one, backend="python")[1](1.0).tolist() == [3.0, 12.0]
    (bar,) = srcdiff.vjp(cubes, X, wrt=several, backend="python")[1](1.0)
    assert bar.tolist() == [3.0, 12.0]
    srcdiff.check(cubes, X, wrt=one, backend="python")


@pytest.mark.parametrize("backend", ["python", "cuda"])
def test_what_a_backend_cannot_do_is_refused(backend: str) -> None:
    with pytest.raises(ValueError, match=f"the backend '{backend}' does not support `error_model='python'`"):
        compile_options(backend, {"error_model": "python"})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("threads", 0, "`threads` must be None or an integer from 1 to 1024, not 0"),
        ("threads", 2048, "`threads` must be None or an integer from 1 to 1024, not 2048"),
        ("blocks", -1, "`blocks` must be None or a positive integer, not -1"),
        ("blocks", 1.5, "`blocks` must be None or a positive integer, not 1.5"),
        ("memory_limit", 0, "`memory_limit` must be None or a positive number of bytes, not 0"),
        ("memory_limit", "1 GB", "`memory_limit` must be None or a positive number of bytes, not '1 GB'"),
        ("stream", "main", "`stream` must be 0 or a stream of `numba.cuda`, not 'main'"),
        ("boundscheck", True, "the backend 'cuda' does not support `boundscheck=True`"),
    ],
)
def test_options_of_launches_are_checked(name: str, value: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        compile_options("cuda", {name: value})


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        ((0, 4), "`blocks` must be a positive integer, or a tuple of up to three, not 0"),
        ((2, -1), "`threads` must be a positive integer, or a tuple of up to three, not -1"),
        ((2, (4, 0)), r"`threads` must be a positive integer, or a tuple of up to three, not \(4, 0\)"),
        (((1, 1, 1, 1), 4), "`blocks` must be a positive integer, or a tuple of up to three"),
        ((2, 4.0), "`threads` must be a positive integer, or a tuple of up to three, not 4.0"),
        ((2,), r"a launch needs the number of blocks and of threads per block, not \(2,\)"),
        (2, "a launch needs the number of blocks and of threads per block, not 2"),
    ],
)
def test_launches_of_kernels_are_checked(launch: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        spreads_of(launch)


def test_types_of_functions_for_kernels_are_checked() -> None:
    with pytest.raises(TypeError, match=r"`types` .* not 'complex128'"):
        cuda.grad(lambda x: x * x, types=("complex128",))
    with pytest.raises(TypeError, match=r"`types` .* not 'number'"):
        cuda.grad(lambda x: x * x, types=("number",))


@pytest.mark.numba
@pytest.mark.parametrize("flags", [{"nsz"}, frozenset({"nsz"}), set(), False, True])
def test_flags_of_fastmath_are_taken_by_all(flags: Any) -> None:
    assert srcdiff.jvp(cubes, (X,), (X,), fastmath=flags, cache=False)[1] == 27.0


def test_more_directions_than_there_are_numbers_give_the_same() -> None:
    few = srcdiff.jacobian(square, directions=1000, mode="forward", backend="python")
    assert few(X).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert "range(0, n, 1000)" in few.source
