"""Compares the modes with each other on random programs: they agree to rounding, which is sharper than differences.

The functions here have the signature of `value_and_grad`, and raise if the modes disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.numerical import clone, float_fields, numbers_in, parts_of, with_parts

#: The allowed difference between two orders of evaluation, relative to the terms of the sum, by whether there are
#: float32.
AGREE = {False: 1e-8, True: 1e-2}


class ModesDisagree(Exception):  # noqa: N818 - it is an answer, not an error of ours
    """Forward and reverse mode give different numbers."""


def forward_and_reverse(function: Callable[..., Any], wrt: tuple[int, ...], backend: str) -> Callable[..., Any]:
    """The gradient, after a comparison with a tangent in a random direction."""
    import srcdiff

    gradient = srcdiff.value_and_grad(function, wrt=wrt, backend=backend)

    def run(*arguments: Any) -> Any:
        value, bars = gradient(*arguments)
        dots = directions(arguments, wrt, seed=1)
        _, tangent = srcdiff.jvp(function, clone(arguments), tangents(arguments, wrt, dots), backend=backend)
        require_equal((tangent,), (1.0,), bars, dots, arguments)
        return value, bars

    return run


def second_order(function: Callable[..., Any], wrt: tuple[int, ...], backend: str) -> Callable[..., Any]:
    """The gradient, after a comparison of its derivatives: forward over reverse with reverse over reverse."""
    import srcdiff

    both = forward_and_reverse(function, wrt, backend)
    gradient = srcdiff.grad(function, wrt=wrt, backend=backend)

    def run(*arguments: Any) -> Any:
        answer = both(*arguments)
        first, second = (directions(arguments, wrt, seed) for seed in (2, 3))
        _, forward = srcdiff.jvp(gradient, clone(arguments), tangents(arguments, wrt, first), backend=backend)
        _, pullback = srcdiff.vjp(gradient, *clone(arguments), wrt=wrt, backend=backend)
        require_equal(forward, second, pullback(second), first, arguments)
        return answer

    return run


def in_lanes(function: Callable[..., Any], wrt: tuple[int, ...], backend: str) -> Callable[..., Any]:
    """The gradient. It is compared with Jacobians in both modes, and its tangent with the Hessian."""
    import srcdiff

    gradient = srcdiff.value_and_grad(function, wrt=wrt, backend=backend)
    jacobians = [srcdiff.jacobian(function, wrt, mode=mode, backend=backend) for mode in ("forward", "reverse")]
    hessian, product = (make(function, wrt, backend=backend) for make in (srcdiff.hessian, srcdiff.hvp))

    def run(*arguments: Any) -> Any:
        value, bars = gradient(*arguments)
        dots, others = (directions(arguments, wrt, seed) for seed in (1, 2))
        for jacobian in jacobians:
            require_equal(jacobian(*clone(arguments)), dots, bars, dots, arguments)
        rows = list(numbers_in(hessian(*clone(arguments))))
        if len(wrt) == 1:
            along = np.array(list(numbers_in(dots)))
            by_rows = np.reshape(rows, (len(along), len(along))) @ along
            require_equal(by_rows, others, product(*clone(arguments), dots), others, arguments)
        return value, bars

    return run


def directions(arguments: tuple[Any, ...], wrt: tuple[int, ...], seed: int) -> tuple[Any, ...]:
    random = np.random.default_rng(seed)

    def direction(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind == "c":
            return (random.standard_normal(value.shape) + 1j * random.standard_normal(value.shape)).astype(value.dtype)
        if isinstance(value, np.ndarray) and value.dtype.names:
            names = float_fields(value.dtype)
            made = np.zeros(value.shape, [(name, value.dtype[name]) for name in names])
            for name in names:
                made[name] = random.standard_normal(made[name].shape)
            return made
        if isinstance(value, np.ndarray):
            return random.standard_normal(value.shape).astype(value.dtype)
        if (parts := parts_of(value)) is not None:
            return with_parts(value, [direction(part) for part in parts])
        if isinstance(value, complex):
            return complex(random.standard_normal(), random.standard_normal())
        return float(random.standard_normal())

    return tuple(direction(arguments[k]) for k in wrt)


def tangents(arguments: tuple[Any, ...], wrt: tuple[int, ...], dots: tuple[Any, ...]) -> list[Any]:
    return [dots[wrt.index(k)] if k in wrt else None for k in range(len(arguments))]


def require_equal(left: Any, by_left: Any, right: Any, by_right: Any, arguments: Any) -> None:
    """Check that two sums of products are equal. Infinite and NaN sums are not compared."""
    pairs = ((left, by_left), (right, by_right))
    terms = [[a * b for a, b in zip(numbers_in(x), numbers_in(y), strict=True)] for x, y in pairs]
    first, second = (float(sum(t)) for t in terms)
    if not (np.isfinite(first) and np.isfinite(second)):
        return
    scale = max(1.0, *(sum(abs(x) for x in t) for t in terms))
    if abs(first - second) > AGREE[has_single(arguments)] * scale:
        raise ModesDisagree(f"{first!r} and {second!r}")


def has_single(value: Any) -> bool:
    """Whether a float32 is among the arguments."""
    if (parts := parts_of(value)) is not None:
        return any(has_single(part) for part in parts)
    return getattr(value, "dtype", None) == np.float32
