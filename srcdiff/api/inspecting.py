"""`explain`: which inputs affect the result, and what the gradient stores. `show`: both sources side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from srcdiff.api.derivatives import Derivative
from srcdiff.api.specialisations import stand_in
from srcdiff.diagnostics.options import Wrt
from srcdiff.ir.types import is_inexact
from srcdiff.signature.descriptions import Description
from srcdiff.signature.keys import describe_argument

if TYPE_CHECKING:  # the compiler is imported at the first use
    from pathlib import Path

    from srcdiff.inspect.explanation import Explanation
    from srcdiff.inspect.sides import Sides


def explain(f: Callable[..., Any], *args: Any, wrt: Wrt | None = None, **kwargs: Any) -> Explanation:
    """Explain which inputs of `f` reach its result, and what its gradient stores and recomputes.

    For each input: the lines that carry its derivative, or the operations that cut it off.

    >>> def growth(rate, years, start):
    ...     for _ in range(int(years)):
    ...         start = start * (1.0 + rate)
    ...     return start
    >>> explanation = explain(growth, 0.02, 10.0, 100.0)
    >>> explanation["years"].reaches, explanation["years"].cuts[0].text
    (False, 'a cast to an integer')

    Args:
        f: A function, or a derivative.
        *args: Example arguments, or types such as `"float64[:]"`. Without any, the types are guessed from annotations,
            defaults and the code.
        wrt: The inputs to explain, as for `grad`; None means all.
        **kwargs: Example arguments by name.

    Returns:
        An explanation. Print it to read it; a notebook shows it as a table; `explanation["name"]` is one input.
    """
    from srcdiff.driver.compiling import follow
    from srcdiff.inspect.explanation import explained

    asked = _asked(f, wrt, args, kwargs, every_input=True)
    work = follow(asked.derivative.request(asked.arguments), asked.derivative.backend, any_result=True)
    names = asked.derivative.names if wrt is None else asked.derivative.wrt
    found = explained(work, names, asked.example, asked.assumed)
    return _measured(found, asked) if asked.example else found


def show(
    f: Callable[..., Any], *args: Any, wrt: Wrt | None = None, html: str | Path | None = None, **kwargs: Any
) -> Sides:
    """Show a function and its derivative side by side, with links between the lines that belong together.

    >>> def twice(x):
    ...     return 2.0 * x
    >>> print(show(twice, 1.0).text())  # doctest: +ELLIPSIS
    twice                    twice_value_and_grad
    1   def twice(x):      | def twice_value_and_grad(x):
    ...
    2       return 2.0 * x |     return 2.0 * x, 2.0

    Args:
        f: A derivative, or a function. For a function, its value and gradient are shown, or its pullback if it does not
            return one float.
        *args: Example arguments or types, as for `explain`.
        wrt: The arguments to differentiate with respect to, as for `grad`; None means the first.
        html: A file to which to write the page.
        **kwargs: Example arguments by name.

    Returns:
        Both sources. Print it to read it in a terminal; a notebook shows it as a page in which the related lines light
        up under the mouse.
    """
    from srcdiff.driver.compiling import follow
    from srcdiff.inspect.sides import sides_of

    asked = _asked(f, wrt, args, kwargs, every_input=False)
    request, is_made_here = asked.derivative.request(asked.arguments), asked.derivative is not f
    sides = sides_of(follow(request, asked.derivative.backend, any_result=is_made_here))
    if html is not None:
        sides.save(html)
    return sides


class _Asked(NamedTuple):
    """The derivative, and its arguments: values, or descriptions of them."""

    derivative: Derivative
    arguments: tuple[Any, ...]
    example: dict[str, Any]
    """The arguments by name, if the user passed all of them as values."""
    assumed: dict[str, str]
    """For each guessed argument type, what suggests it."""


def _asked(
    f: Callable[..., Any], wrt: Wrt | None, args: tuple[Any, ...], kwargs: dict[str, Any], *, every_input: bool
) -> _Asked:
    derivative, assumed, example = _derivative(f, wrt), {}, {}
    if args or kwargs:
        arguments = derivative.bound(tuple(map(stand_in, args)), {name: stand_in(a) for name, a in kwargs.items()})
        if all(stand_in(a) is a and not isinstance(a, Description) for a in (*args, *kwargs.values())):
            example = dict(zip(derivative.names, arguments, strict=True))
    elif derivative.latest is not None:
        arguments = tuple(derivative.latest.compiled.request.arguments.values())
    else:
        from srcdiff.frontend.source.guess import guesses

        found = guesses(derivative.captured, derivative.signature)
        arguments = tuple(guess.value for guess in found.values())
        assumed = {name: guess.why for name, guess in found.items() if guess.why != "default"}
    if derivative is not getattr(f, "derivative", f) and wrt is None and every_input:
        pairs = zip(derivative.names, arguments, strict=True)
        derivative.wrt = tuple(n for n, a in pairs if _holds_floats(describe_argument(a, n, derivative.span)))
        derivative.single = False
    return _Asked(derivative, arguments, example, assumed)


def _derivative(f: Callable[..., Any], wrt: Wrt | None) -> Derivative:
    f = getattr(f, "derivative", f)  # `hvp` has one
    if isinstance(f, Derivative) and f.mode != "primal":
        if wrt is None:
            return f
        raise ValueError(f"{f!r} already has its own `wrt`")
    if wrt is None:
        wrt = Derivative(f, "primal", 0).names[:1]
        wrt = wrt[0] if wrt else 0
    return Derivative(f, "reverse", wrt, with_value=True)


def _holds_floats(description: Description) -> bool:
    """Whether all parts are floats."""
    if description.kind == "value":
        return is_inexact(description.detail)
    parts = [p for p in description.parts if p.kind != "static"]
    return description.kind in ("tuple", "record", "stored") and bool(parts) and all(map(_holds_floats, parts))


def _measured(found: Explanation, asked: _Asked) -> Explanation:
    """The explanation with the sizes that are known only after running the gradient."""
    missing = [
        k for k in found.kept if k.nbytes is None and k.formula.endswith("iterations") and "sizes" not in k.formula
    ]
    if asked.derivative.mode != "reverse" or not missing:
        return found
    sizes = {(f"kept_{k.variable}", k.span): k.nbytes for k in asked.derivative.report(*asked.arguments).kept}
    places = [(k.storage, k.span) for k in found.kept]
    alone = [
        k for k in missing if places.count((k.storage, k.span)) == 1
    ]  # the report adds up buffers with the same name
    kept = [replace(k, nbytes=sizes.get((k.storage, k.span))) if k in alone else k for k in found.kept]
    return replace(found, kept=tuple(kept))
