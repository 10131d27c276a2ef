"""Derivatives composed of others, and products of Hessians with vectors: `hvp`."""

from __future__ import annotations

import functools
import inspect
import linecache
from collections.abc import Callable
from typing import Any

from srcdiff.api.derivatives import Derivative, described
from srcdiff.api.fitting import fitted_tangents
from srcdiff.api.modes import jvp
from srcdiff.api.reverse import grad
from srcdiff.backends.numba import numba_cpu
from srcdiff.backends.numba.direct import UnfitError
from srcdiff.caching.fingerprint import fingerprint
from srcdiff.diagnostics.options import (
    Wrt,
    each_of,
)
from srcdiff.frontend.source.capture import WRITTEN_FOR, findable
from srcdiff.library import composed
from srcdiff.signature.conversion import as_gradient

Function = Callable[..., Any]


class Composed:
    """A derivative composed of others. Differentiated functions can call it, and it can be differentiated."""

    __signature__: inspect.Signature
    _readable: Function | None = None

    @property
    def __srcdiff_inside__(self) -> tuple[Any, ...]:
        """The function that replaces it inside a differentiated function, and its leading arguments."""
        raise NotImplementedError

    @property
    def __srcdiff_function__(self) -> Function:
        """A function with source code that calls it."""
        if self._readable is None:
            self._readable = _calling(self, self.__signature__)
        return self._readable


def _calling(derivative: Any, signature: inspect.Signature) -> Function:
    """A function with source code and this signature that calls the derivative."""
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    shown = [p.replace(default=None) if p.default is not inspect.Parameter.empty else p for p in bare]
    passed = [
        f"{p.name}={p.name}" if p.kind is inspect.Parameter.KEYWORD_ONLY else stars.get(p.kind, "") + p.name
        for p in bare
    ]
    name = derivative.__name__ if derivative.__name__.isidentifier() else "function"
    text = f"def {name}{inspect.Signature(shown)}:\n    return derivative({', '.join(passed)})\n"
    origin = inspect.unwrap(derivative).__code__.co_filename
    # the same name in all processes, for the cache on disk
    file = f"<srcdiff {derivative!r} {fingerprint(text, origin)[:8]}>"
    WRITTEN_FOR[file] = WRITTEN_FOR.get(origin, origin)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"derivative": derivative, "__name__": derivative.__module__}
    exec(compile(text, file, "exec"), namespace)
    function: Any = namespace[name]
    given = [p for p in bare if p.default is not inspect.Parameter.empty]
    function.__defaults__ = tuple(p.default for p in given if p.kind is not inspect.Parameter.KEYWORD_ONLY)
    function.__kwdefaults__ = {p.name: p.default for p in given if p.kind is inspect.Parameter.KEYWORD_ONLY}
    made: Function = function
    return made


class HessianProduct(Composed):
    """The product of a Hessian and a vector, `h(*args, v)`, by forward mode over reverse mode: see `hvp`."""

    def __init__(self, f: Function, wrt: Wrt, backend: str, options: dict[str, Any]) -> None:
        self.gradient = grad(f, wrt, backend=backend, **options)
        self.derivative = Derivative(
            self.gradient, "forward", each_of(wrt), with_value=False, backend=backend, **options
        )
        self.entry: Any = None
        functools.update_wrapper(self, self.gradient.function, updated=())
        self.__doc__ = described("The Hessian, times a vector,", self.gradient, self.gradient.function.__doc__)
        self.__signature__ = _with_vector(self.gradient.signature)

    def __reduce__(self) -> Any:
        gradient = self.gradient
        wrt = gradient.wrt[0] if gradient.single else gradient.wrt
        return HessianProduct, (findable(gradient.of), wrt, gradient.backend, gradient.options)

    @property
    def __srcdiff_inside__(self) -> tuple[Any, ...]:
        wrt = self.gradient.wrt
        return composed.product_of, grad, jvp, self.gradient.of, wrt[0] if self.gradient.single else wrt

    def body_for(self, given: tuple[Any, ...], types_: Any) -> numba_cpu.Body:
        """The compiled function for a call with such arguments."""
        vector = f"args[{len(given) - 1}]"
        single, count = self.gradient.single, len(self.derivative.wrt)
        dots = [vector] if single else [f"{vector}[{k}]" for k in range(count)]
        return self.derivative.body_with_tangents(given[:-1], dots, "{}[0]")

    def hessp(self, x: Any, vector: Any, *rest: Any) -> Any:
        """The product with the vector as second argument, as `scipy.optimize.minimize(hessp=...)` calls it."""
        return self(x, *rest, vector)

    def __call__(self, *args: Any) -> Any:
        try:
            return self.derivative.tangent(args[:-1], args[-1:] if self.gradient.single else args[-1])
        except UnfitError:
            return self.at(self.derivative.bound(args[:-1], {}), args[-1])

    def at(self, given: tuple[Any, ...], vector: Any) -> Any:
        """The product for all arguments of the function, by position."""
        dots = fitted_tangents(self.derivative, given, (vector,) if self.gradient.single else vector)
        product = self.derivative.run_tangent(given, dots)
        if self.derivative.specialised(given).kept_parts is None:
            return product
        active = [given[self.derivative.names.index(n)] for n in self.derivative.wrt]
        return as_gradient(active[0] if self.gradient.single else tuple(active), product)

    @property
    def source(self) -> str:
        """The generated source code for the argument types of the latest call."""
        return self.derivative.source

    def _repr_html_(self) -> str | None:
        """The gradient and its tangent program side by side, for notebooks."""
        return self.derivative._repr_html_()

    def __repr__(self) -> str:
        return f"<srcdiff.hvp({self.gradient.function.__code__.co_qualname}, wrt={self.gradient.wrt!r})>"


def _with_vector(signature: inspect.Signature) -> inspect.Signature:
    """The signature with one more positional parameter."""
    given = [
        p.replace(kind=inspect.Parameter.POSITIONAL_ONLY, default=inspect.Parameter.empty)
        for p in signature.parameters.values()
        if p.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    if any(p.kind is not inspect.Parameter.POSITIONAL_ONLY for p in given):
        return signature
    name = "vector" if "vector" not in signature.parameters else "vector_"
    vector = inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY)
    return inspect.Signature([*given, vector])


def hvp(f: Function, wrt: Wrt = 0, *, backend: str = "numba", **options: Any) -> HessianProduct:
    """Make a function that computes the Hessian of `f` times a vector, without forming the Hessian.

    >>> import numpy as np
    >>> def saddle(x):
    ...     return x[0] ** 2 - x[1] ** 2
    >>> hvp(saddle)(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 2., -2.])

    Args:
        f: A Python function that returns one float.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        A function that takes the arguments of `f` and then the vector, which has the structure and shape of the
        argument `wrt` (a tuple, if `wrt` is a tuple). It returns the product in the same form. Its method `hessp` takes
        the vector as its second argument, as `scipy.optimize.minimize(hessp=...)` expects.

    Raises:
        DifferentiationError: At the first call with new argument types, if `f` cannot be differentiated.
    """
    return HessianProduct(f, wrt, backend, options)


numba_cpu.callable_from_compiled_code(HessianProduct, HessianProduct.body_for, lambda product: None)

# its meaning inside a differentiated function
hvp.__srcdiff_inside__ = (composed.hvp, grad, jvp)  # type: ignore[attr-defined]
