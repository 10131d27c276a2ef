"""The public functions of reverse mode, and functions that have their derivatives as methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, overload

from srcdiff.api.chosen_arguments import chosen_names
from srcdiff.api.derivatives import Derivative
from srcdiff.api.parts import gradient_of_parts
from srcdiff.diagnostics.options import (
    PROGRAM,
    SWITCH,
    Wrt,
    compile_options,
    is_one,
    require_inside,
)
from srcdiff.frontend.source.capture import findable, made_once, standing_for
from srcdiff.signature.descriptions import Paths

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.frontend.derivation import Derivation


def _maker(with_value: bool) -> Callable[..., Derivation]:
    """What `grad` and `value_and_grad` mean inside a differentiated function."""

    def make(
        of: str,
        names: tuple[str, ...],
        stars: Mapping[str, str],
        wrt: Wrt = 0,
        *,
        has_aux: bool = False,
        **options: Any,
    ) -> Derivation:
        from srcdiff.frontend.derivation import Derivation

        require_inside(options)
        chosen = chosen_names(wrt, names, of, stars)
        return Derivation("reverse", chosen, with_value, SWITCH.checked("has_aux", has_aux), is_one(wrt))

    return make


@made_once
def _reverse(f: Any, wrt: Any, with_value: bool, has_aux: bool, parts: Paths, options: tuple[Any, ...]) -> Derivative:
    return Derivative(f, "reverse", wrt, with_value=with_value, has_aux=has_aux, parts=parts, **dict(options))


def _reverse_mode(
    f: Any, wrt: Wrt, with_value: bool, has_aux: bool, backend: str, options: dict[str, Any], parts: Paths = ()
) -> Any:
    """The same derivative for equal requests, so that `grad(f)(x)` in a loop compiles once."""
    if type(wrt) is not int and not parts:
        found = gradient_of_parts(
            f, wrt, lambda g, of, parts: _reverse_mode(g, of, with_value, has_aux, backend, options, parts)
        )
        if found is not None:
            return found
    if options:
        options = compile_options(backend, options)
    options = {"backend": backend, **options}
    is_key = type(wrt) in _NAMES or (type(wrt) is tuple and all(type(one) in _NAMES for one in wrt))
    if is_key and type(has_aux) is bool and type(backend) is str:  # type: ignore[redundant-expr]
        try:
            derivative: Derivative = _reverse(f, wrt, with_value, has_aux, parts, tuple(sorted(options.items())))
            return derivative
        except TypeError:  # an argument is not hashable, or it is wrong and the call below raises
            pass
    return Derivative(f, "reverse", wrt, with_value=with_value, has_aux=has_aux, parts=parts, **options)


_NAMES = (int, str)


# -- the public functions --------------------------------------------------------------------------------------------


def grad(
    f: Callable[..., Any], wrt: Wrt = 0, *, has_aux: bool = False, backend: str = "numba", **options: Any
) -> Derivative:
    """Make a function that computes the gradient of `f`.

    `f` is not called. The first call of the gradient with new argument types generates code for these types and
    compiles it; later calls with the same types run the compiled code.

    >>> import numpy as np
    >>> def energy(x, scale):
    ...     return scale * np.sum(x**2)
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> grad(energy)(x, 0.5)  # with respect to x, the first argument
    array([1., 2., 3.])
    >>> x_bar, scale_bar = grad(energy, wrt=("x", "scale"))(x, 0.5)
    >>> float(scale_bar)
    14.0
    >>> print(grad(energy).source)
    import numpy as np
    ...
    def energy_grad(x, scale):
    ...

    Args:
        f: A Python function that returns one float. It may call other functions. It may also be a function compiled
            with `@njit`, a bound method, an instance with `__call__`, or a derivative made by srcdiff.
        wrt: The arguments to differentiate with respect to: a position, a name, or a tuple of these. They may be
            floats, complex numbers, arrays of these, and tuples, lists, dictionaries and instances of classes that
            contain these. `"model.w"` is an attribute of an argument, and `"self.w"` one of the instance that a method
            is bound to.
        has_aux: Whether `f` returns a pair of a float and any other value. Then the gradient returns a pair, too: the
            derivative of the float, and the other value.
        backend: `"numba"` compiles the generated code, `"python"` runs it in the interpreter, `"cuda"` runs its loops
            on a GPU.
        **options: How the code is compiled: `fastmath`, `error_model`, `boundscheck`, `parallel`,
            `deterministic`, `cache`.

    Returns:
        A function with the parameters of `f`. It returns the gradient: a value with the structure, shape and dtype of
        the argument, or a tuple of these if `wrt` is a tuple. With `out=`, it writes the gradient to given arrays. Its
        attribute `source` is the generated code; `compile` compiles it before the first call.

    Raises:
        DifferentiationError: At the first call with new argument types, if `f` cannot be differentiated. The message
            shows the lines of `f`, the reason, and what to write instead.
    """
    derivative: Derivative = _reverse_mode(f, wrt, False, has_aux, backend, options)
    return derivative


def value_and_grad(
    f: Callable[..., Any], wrt: Wrt = 0, *, has_aux: bool = False, backend: str = "numba", **options: Any
) -> Derivative:
    """Make a function that computes the value of `f` together with its gradient.

    This costs less than a call of `f` and a call of its gradient.

    >>> value, slope = value_and_grad(lambda x: x**3)(2.0)
    >>> float(value), float(slope)
    (8.0, 12.0)

    Args:
        f: A Python function that returns one float, as for `grad`.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        has_aux: Whether `f` returns a pair of a float and any other value. Then the value is this pair.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        A function with the parameters of `f` that returns the pair `(value, gradient)`.

    Raises:
        DifferentiationError: At the first call with new argument types, if `f` cannot be differentiated.
    """
    derivative: Derivative = _reverse_mode(f, wrt, True, has_aux, backend, options)
    return derivative


grad.__srcdiff_maker__ = _maker(with_value=False)  # type: ignore[attr-defined]
value_and_grad.__srcdiff_maker__ = _maker(with_value=True)  # type: ignore[attr-defined]


class Differentiable(Derivative):
    """A function compiled by srcdiff, with its derivatives as methods: see `differentiable`."""

    def __init__(self, function: Callable[..., Any], *, backend: str = "numba", **options: Any) -> None:
        checked = compile_options(backend, options)
        super().__init__(function, "primal", 0, backend=backend, **checked)
        self.given = {"backend": backend, **checked}

    shown = ("compile", "function", "grad", "kind", "report", "source", "value_and_grad", "workspace", "wrt")

    def __reduce__(self) -> Any:
        return _differentiable_again, (findable(self.of), self.given)

    @property
    def __srcdiff_function__(self) -> Any:
        return self.original

    def grad(self, wrt: Wrt = 0, *, has_aux: bool = False, **options: Any) -> Derivative:
        """The gradient of the function: see `srcdiff.grad`."""
        return grad(self.of, wrt, has_aux=has_aux, **{**self.given, **options})

    def value_and_grad(self, wrt: Wrt = 0, *, has_aux: bool = False, **options: Any) -> Derivative:
        """The value and the gradient of the function: see `srcdiff.value_and_grad`."""
        return value_and_grad(self.of, wrt, has_aux=has_aux, **{**self.given, **options})


def _differentiable_again(function: Any, options: dict[str, Any]) -> Differentiable:
    there = standing_for(function, Differentiable)
    return Differentiable(function, **options) if there is None else there


@overload
def differentiable(f: Callable[..., Any], **options: Any) -> Differentiable: ...
@overload
def differentiable(f: None = None, **options: Any) -> Callable[[Callable[..., Any]], Differentiable]: ...
def differentiable(f: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function with srcdiff, and give it its derivatives as methods. Use it as a decorator.

    >>> @differentiable
    ... def square(x):
    ...     return x * x
    >>> float(square(3.0)), float(square.grad()(3.0))
    (9.0, 6.0)

    Args:
        f: A Python function. Without it, a decorator is returned: `@differentiable(backend="python")`.
        **options: `backend` and the compile options of `grad`.

    Returns:
        A function that runs the compiled code of `f`. Its methods `grad` and `value_and_grad` take the arguments of
        `srcdiff.grad` except `f`.
    """
    if f is None:
        return lambda function: Differentiable(function, **options)
    return Differentiable(f, **options)


def source(f: Callable[..., Any], *args: Any, wrt: Wrt = 0, mode: str = "reverse", with_value: bool = True) -> str:
    """The generated source code of a derivative, without compiling or running it.

    >>> def square(x):
    ...     return x * x
    >>> print(source(square, 1.5, with_value=False).rstrip())
    def square_grad(x):
        # reverse sweep
        x_bar = 2.0 * x
        return x_bar

    Args:
        f: A Python function.
        *args: Example arguments, or types such as `float` and `"float64[:]"`. Without any, the types are guessed from
            annotations, defaults and the code.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        mode: `"reverse"` (a gradient), `"forward"` (tangents), `"pullback"` (adjoints of any result), or `"primal"`
            (the function itself, as srcdiff compiles it).
        with_value: Whether the code also returns the value of `f`.

    Returns:
        The text of a Python module.
    """
    PROGRAM.checked("mode", mode)
    SWITCH.checked("with_value", with_value)
    derivative = Derivative(f, mode, wrt, with_value=with_value and mode != "pullback", backend="python")
    if args:
        derivative.compile(*args)
    return derivative.source
