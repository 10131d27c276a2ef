"""Derivatives compared with finite differences, and forward mode with reverse mode: `check`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from srcdiff.api.chosen_arguments import has_floats
from srcdiff.api.derivatives import Derivative
from srcdiff.api.finite_differences import Report, compare, require_values
from srcdiff.api.fitting import fitted_tangents, leaves, like
from srcdiff.api.hessian_products import hvp
from srcdiff.api.modes import by_parameter, derivative_of, pulled_back, put_back, returns_nothing
from srcdiff.api.reverse import grad
from srcdiff.diagnostics.options import (
    ORDER,
    Wrt,
)
from srcdiff.signature.copies import copied
from srcdiff.signature.own_arrays import with_own_arrays
from srcdiff.signature.random_sources import Replay
from srcdiff.signature.trees import VALUES, floats_for_integers

Function = Callable[..., Any]


def check(
    f: Function, *args: Any, wrt: Wrt | None = None, order: int = 1, backend: str = "numba", **options: Any
) -> Report:
    """Compare the derivatives of `f` with finite differences, and forward mode with reverse mode.

    The value is compared with a call of `f` itself. If the result is not one float, a random linear combination of its
    numbers is differentiated.

    >>> report = check(lambda x, y: x * y**2, 2.0, 3.0)
    >>> [(entry.place, round(entry.derivative, 6)) for entry in report.entries]
    [('x', 9.0), ('y', 12.0)]

    Args:
        f: A Python function, or a function compiled with `@njit`.
        *args: The arguments at which the derivatives are compared.
        wrt: The arguments to check, as for `grad`; None means all that contain floats.
        order: 1 checks first derivatives; 2 also checks second derivatives, and that the Hessian is symmetric.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        A report with the compared numbers. Print it to read them.

    Raises:
        AssertionError: If derivatives differ; the message lists them.
        DifferentiationError: If `f` cannot be differentiated.
    """
    ORDER.checked("order", order)
    primal = derivative_of(f, "primal", 0, backend, options)
    given = by_parameter(primal, with_own_arrays(args)[0])
    names = tuple(n for n, a in given.items() if has_floats(a)) if wrt is None else primal.chosen(wrt)
    pairs = zip(primal.names, primal.bound(args, {}), strict=True)
    arguments = tuple(floats_for_integers(a) if n in names and VALUES.parts(a) is not None else a for n, a in pairs)
    replay = Replay(arguments)
    value, pullback = pulled_back(primal, arguments, names)
    replay.again(arguments)
    if isinstance(value, float | np.floating):
        bars = grad(f, names, backend=backend, **options).run(arguments)
        weights: Any = 1.0
    else:
        weights = _random_like(value, 1)
        bars = pullback(**weights) if returns_nothing(primal, arguments) else pullback(weights)

    function = _as_given(f, primal)

    def called(*given: Any) -> Any:
        compiled = primal.specialised(given).compiled
        with put_back(compiled):
            positional, named = primal.spread(given)
            replay.again(given)
            result = function(*positional, **named)
            return {part.name: part.of(given) for part in compiled.written} if result is None else result

    def combined(*given: Any) -> float:
        return _product(weights, called(*given))

    with np.errstate(all="ignore"):
        try:
            found = called(*copied(arguments))
        except NumbaError:  # Numba cannot compile the function
            function = primal.function
            try:
                found = called(*copied(arguments))
            except NumbaError:
                message = (
                    "compiled functions cannot take copies of the arguments; read a `jitclass` instance from outside"
                )
                raise TypeError(f"{message}: `srcdiff.check(lambda x: f(model, x), x)`") from None
    require_values(value, found, arguments, primal.specialised(arguments).compiled.reading.differences)
    positions = [primal.names.index(n) for n in names]
    report = compare(combined, arguments, list(zip(positions, names, strict=True)), bars)
    inputs = tuple(arguments[k] for k in positions)
    dots = _random_like(inputs, 2)
    forward = derivative_of(f, "forward", names, backend, options)
    replay.again(arguments)
    _, tangent = forward.run(arguments, fitted_tangents(forward, arguments, dots))
    _require_equal("forward and reverse mode differ", _product(weights, tangent), _product(bars, dots), bars, dots)
    if order > 1:
        product, other = hvp(f, names, backend=backend, **options), _random_like(inputs, 3)
        replay.again(arguments)
        first = product.at(arguments, dots)
        replay.again(arguments)
        second = product.at(arguments, other)
        _require_equal("the Hessian is not symmetric", _product(first, other), _product(second, dots), first, other)
    replay.again(arguments)
    return report


def _as_given(f: Function, primal: Derivative) -> Function:
    """The callable for the values of `f`: a derivative itself, or the function as the user passed it."""
    is_derivative = getattr(f, "__srcdiff_derivative__", None) is not None or hasattr(f, "__srcdiff_inside__")
    return f if is_derivative else primal.original


def _random_like(x: Any, seed: int) -> Any:
    random = np.random.default_rng(seed)

    def numbers_like(leaf: Any) -> Any:
        found = random.standard_normal(np.shape(leaf)) if np.ndim(leaf) else random.standard_normal()
        return found + 1j * random.standard_normal(np.shape(leaf)) if np.iscomplexobj(leaf) else found

    return like(x, numbers_like)


def _product(x: Any, y: Any) -> float:
    """The sum of all products; of complex numbers, of their real parts and of their imaginary parts."""
    return float(sum(np.sum(_products(a, b)) for a, b in zip(leaves(x), leaves(y), strict=True)))


def _products(a: Any, b: Any) -> Any:
    if np.iscomplexobj(a) or np.iscomplexobj(b):
        return (np.conj(a) * b).real
    return np.asarray(a, float) * b


def _require_equal(what: str, first: float, second: float, x: Any, y: Any) -> None:
    terms = [float(np.sum(np.abs(_products(a, b)))) for a, b in zip(leaves(x), leaves(y), strict=True)]
    single = any(np.asarray(a).dtype in (np.float32, np.complex64) for a in (*leaves(x), *leaves(y)))
    if abs(first - second) > (1e-3 if single else 1e-8) * max(1.0, *terms):  # two orders of evaluation
        raise AssertionError(f"{what}: {first!r} and {second!r} along a random direction")
