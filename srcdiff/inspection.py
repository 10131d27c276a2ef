"""What users call to look: `explain`, why a gradient is what it is, and `show`, how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from srcdiff.api import Derivative, Wrt, stand_in
from srcdiff.ir.types import is_float
from srcdiff.source.abstract import Description, leaf_types
from srcdiff.source.guess import guessed_arguments
from srcdiff.source.signature import describe_argument

if TYPE_CHECKING:  # the compiler is imported when somebody looks
    from srcdiff.looking.explanation import Explanation


def explain(f: Callable[..., Any], *args: Any, wrt: Wrt | None = None, **kwargs: Any) -> Explanation:
    """Which inputs of `f` reach its result, along which lines, and what cuts off the others; what its gradient keeps.

    `f` is a function or a derivative of one. `args` are example arguments, or types such as `"float64[:]"`; without
    any, types are assumed from annotations and from how arguments are used. `wrt` are the inputs to look at, all of
    them if it is left out.

    >>> def growth(rate, years, start):
    ...     for _ in range(int(years)):
    ...         start = start * (1.0 + rate)
    ...     return start
    >>> explain(growth, 0.02, 10.0, 100.0)["years"].reaches
    False
    """
    from srcdiff.looking.explanation import explained
    from srcdiff.pipeline import follow

    given = tuple(stand_in(a) for a in args)
    named = {name: stand_in(a) for name, a in kwargs.items()}
    derivative, arguments = _asked(f, wrt, given, named)
    work = follow(derivative.request(arguments), any_result=True)
    is_example = bool(args or kwargs) and all(
        a is b for a, b in zip((*given, *named.values()), (*args, *kwargs.values()), strict=True)
    )
    values = dict(zip(derivative.names, arguments, strict=True)) if is_example else {}
    names = derivative.names if wrt is None else derivative.wrt
    found = explained(work, names, values, assumed=not given and not named)
    return _measured(found, derivative, arguments) if is_example else found


def _asked(
    f: Callable[..., Any], wrt: Wrt | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Derivative, tuple[Any, ...]]:
    """The derivative to look at, and its arguments or their descriptions."""
    if isinstance(f, Derivative) and f.mode != "primal" and wrt is None:
        derivative = f
    else:
        derivative = Derivative(f, "reverse", () if wrt is None else wrt, with_value=True)
    if args or kwargs:
        arguments = derivative.bound(args, kwargs)
    elif derivative.latest is not None:
        arguments = tuple(derivative.latest.compiled.request.arguments.values())
    else:
        arguments = tuple(guessed_arguments(derivative.captured, derivative.signature).values())
    if derivative is not f and wrt is None:
        described = {
            n: describe_argument(a, n, derivative.span) for n, a in zip(derivative.names, arguments, strict=True)
        }
        derivative.wrt = tuple(n for n, d in described.items() if _holds_floats(d))
        derivative.single = False
    return derivative, arguments


def _holds_floats(description: Description) -> bool:
    if description.kind == "stored":
        return _holds_floats(description.parts[0])
    types = leaf_types(description)
    return bool(types) and all(is_float(t) for t in types or ())


def _measured(found: Explanation, derivative: Derivative, arguments: tuple[Any, ...]) -> Explanation:
    """With the sizes that show only when the gradient runs."""
    missing = [k for k in found.kept if k.nbytes is None and k.formula.endswith("turns") and "sizes" not in k.formula]
    if derivative.mode != "reverse" or not missing:
        return found
    sizes = {k.span: k.nbytes for k in derivative.report(*arguments).kept}
    kept = [replace(k, nbytes=sizes.get(k.span)) if k in missing else k for k in found.kept]
    return replace(found, kept=tuple(kept))
