"""`export`: a derivative as a file that needs NumPy and Numba, or only NumPy, but not srcdiff."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from srcdiff.api.batching import Batched
from srcdiff.api.derivatives import Derivative
from srcdiff.api.hessian_products import HessianProduct, hvp
from srcdiff.api.jacobians import Jacobian
from srcdiff.api.specialisations import names_of_parts, stand_in
from srcdiff.backends.numba import numba_cpu
from srcdiff.backends.numba.interrupts import ONE_AT_A_TIME
from srcdiff.diagnostics import NotExportedError, printable
from srcdiff.diagnostics.options import DERIVATIVE, SWITCH, Wrt
from srcdiff.frontend.domain.abstract_values import Static
from srcdiff.signature.descriptions import is_passed, type_text
from srcdiff.signature.trees import VALUES
from srcdiff.version import __version__

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.emit.standalone import Exported


def export(
    g: Any,
    file: str | Path | None = None,
    *arguments: Any,
    plain: bool = False,
    mode: str | None = None,
    wrt: Wrt | None = None,
    **keywords: Any,
) -> str:
    """Write a derivative as a Python module that does not need srcdiff.

    >>> def square(x):
    ...     return x * x
    >>> text = export(square, None, 2.0, plain=True)
    >>> module = {}
    >>> exec(text, module)
    >>> float(module["square_grad"](3.0))
    6.0

    Args:
        g: A derivative, or a function; see `mode`.
        file: The file to write, or None.
        *arguments: Example arguments, or types such as `float` and `"float64[:]"`. Without any, those of the latest
            call are used, or types that are guessed from the code.
        plain: Whether the module needs only NumPy. Otherwise it needs NumPy and Numba.
        mode: If `g` is a function, the derivative to export: `"grad"` (the default), `"value_and_grad"`, `"jvp"`,
            `"vjp"`, `"hvp"`, or `"primal"` for the function itself.
        wrt: If `g` is a function, the arguments to differentiate with respect to, as for `grad`.
        **keywords: Example arguments by name.

    Returns:
        The text of the module.

    Raises:
        NotExportedError: If the code refers to an object that cannot be written to a file.
        DifferentiationError: If the function cannot be differentiated.
    """
    SWITCH.checked("plain", plain)
    if not isinstance(g, Derivative | HessianProduct | Jacobian | Batched):
        g = derivative_by_name(g, "grad" if mode is None else mode, 0 if wrt is None else wrt)
    elif mode is not None or wrt is not None:
        raise ValueError(f"{g!r} is already a derivative with its own `mode` and `wrt`")
    if isinstance(g, Jacobian | Batched):
        raise NotExportedError(
            f"{g!r} calls other derivatives in a loop and cannot be exported: export `grad` or `hvp`"
        )
    from srcdiff.emit.standalone import write_standalone

    derivative: Derivative = g.derivative if isinstance(g, HessianProduct) else g
    work, args = _followed(derivative, arguments, keywords, plain)
    text = write_standalone(_exported(g, derivative, work, args, plain=plain))
    if file is not None:
        Path(file).write_text(text, encoding="utf-8")
    return text


def _followed(
    derivative: Derivative, arguments: tuple[Any, ...], keywords: dict[str, Any], plain: bool
) -> tuple[Any, Any]:
    """The program for these arguments; it broadcasts axes of length one if the example has any."""
    from srcdiff.driver.compiling import follow
    from srcdiff.passes.requested import written_parts

    args = _arguments(derivative, arguments, keywords)
    with ONE_AT_A_TIME:
        request = derivative.request(args)
        request.parallel = request.parallel and not plain
        request.deterministic = True  # Numba alone has no atomic additions
        work = follow(request, "python")
        writes = derivative.mode == "primal" and written_parts(work.reading)
        if work.reading.assumes_sizes and (writes or _has_unit_axes(args)):
            request.exact = True
            work = follow(request, "python")
    return work, args


def _arguments(derivative: Derivative, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    if arguments or keywords:
        return derivative.bound(
            tuple(stand_in(a) for a in arguments), {name: stand_in(a) for name, a in keywords.items()}
        )
    if derivative.latest is not None:
        return tuple(derivative.latest.compiled.request.arguments.values())
    from srcdiff.frontend.source.guess import guessed_arguments

    return tuple(guessed_arguments(derivative.captured, derivative.signature).values())


def _has_unit_axes(value: Any) -> bool:
    return any(1 in getattr(leaf, "shape", ()) for leaf in VALUES.leaves(value))


def _exported(g: Any, derivative: Derivative, work: Any, args: tuple[Any, ...], *, plain: bool) -> Exported:
    from srcdiff.emit.standalone import Exported
    from srcdiff.passes.requested import apart_pairs, written_arguments, written_parts

    reading, descriptions = work.reading, work.request.arguments
    if reading.unknown_calls and not plain:
        reasons = "; ".join(problem.message for problem in reading.unknown_calls)
        raise NotExportedError(f"{reasons}: export it with `plain=True`")
    is_product, names = isinstance(g, HessianProduct), names_of_parts(reading)
    name = f"{derivative.function.__name__}_hvp" if is_product else work.module.name
    single = derivative.single if not is_product else g.gradient.single
    vector = "vector" if "vector" not in derivative.names else "vector_"
    asked_as = {further: vector if single else f"{vector}[{k}]" for k, further in enumerate(work.further)}
    taken = [n for n, x in work.further.items() if not isinstance(x, Static)]
    options = _options(derivative, reading) if not plain else {}
    return Exported(
        module=work.module,
        reading=reading,
        descriptions=descriptions,
        signature=derivative.signature,
        mode=derivative.mode,
        wrt=derivative.wrt,
        single=derivative.single,
        with_value=derivative.with_value,
        has_aux=derivative.has_aux,
        further=work.further,
        asked_as=asked_as if is_product else {},
        parameters=[vector] if is_product else taken,
        written=tuple(part.name for part in written_parts(reading)),
        apart=[(names[a], names[b]) for a, b in apart_pairs(reading, written_arguments(reading))],
        name=name if name.isidentifier() else "function",
        header=_header(g, derivative, name, descriptions, reading, options),
        summary=_summary(g),
        decorator="" if plain else f"numba.njit({', '.join(f'{k}={_option(v)}' for k, v in options.items())})",
    )


def _summary(g: Any) -> str:
    """The first line of the docstring of the derivative."""
    lines = inspect.cleandoc(g.__doc__ or "").splitlines() or [""]
    return printable(lines[0]).replace(", by srcdiff.", ".").replace("\\", "/").replace('"', "'")


def _options(derivative: Derivative, reading: Any) -> dict[str, Any]:
    """How Numba compiles the code, as it does in srcdiff, but for what only srcdiff has."""
    given = {**numba_cpu.followed(reading.told_options), **derivative.options}
    fastmath = given.get("fastmath", True)
    options = {
        "error_model": given.get("error_model", "numpy"),
        "fastmath": set(numba_cpu.FASTMATH) if fastmath is True else fastmath or False,
        "boundscheck": given.get("boundscheck"),
    }
    return {name: value for name, value in options.items() if value is not None}


def _option(value: Any) -> str:
    return "{" + ", ".join(map(repr, sorted(value))) + "}" if isinstance(value, set | frozenset) else repr(value)


def _header(g: Any, derivative: Derivative, name: str, descriptions: Any, reading: Any, options: dict[str, Any]) -> str:
    """The origin of the file. It depends neither on the machine nor on the date."""
    file = printable(Path(derivative.captured.file).name)
    where = f"of {file}" if not file.startswith("<") else "of a notebook or a prompt"
    passed = {n: type_text(d) for n, d in descriptions.items()}
    rows = [
        ("types", ", ".join(f"{n}: {t}" for n, t in passed.items() if is_passed(descriptions[n]))),
        ("constants", ", ".join(f"{n} = {t}" for n, t in passed.items() if not is_passed(descriptions[n]))),
        ("from outside", ", ".join(dict.fromkeys(o.name for o in reading.outside))),
        ("options", ", ".join(f"{k}={_option(v)}" for k, v in options.items()) or "plain"),
        ("needs", "numpy, numba" if options else "numpy"),
    ]
    lines = "\n".join(f"    {what:14}{text}" for what, text in rows if text)
    made = f"Written by srcdiff {__version__} from the function `{derivative.function.__name__}` {where}."
    return f"{_summary(g) or f'`{name}`, as srcdiff compiles it.'}\n\n{made}\n\n{lines}\n".replace("\\", "/")


def derivative_by_name(f: Callable[..., Any], mode: str, wrt: Wrt = 0, **options: Any) -> Derivative | HessianProduct:
    """The derivative with a name: `grad`, `value_and_grad`, `jvp`, `vjp`, `hvp`, or `primal` for the function."""
    match DERIVATIVE.checked("mode", mode):
        case "grad" | "value_and_grad":
            return Derivative(f, "reverse", wrt, with_value=mode == "value_and_grad", **options)
        case "jvp":
            return Derivative(f, "forward", wrt, with_value=True, **options)
        case "vjp":
            return Derivative(f, "pullback", wrt, with_value=False, **options)
        case "hvp":
            return hvp(f, wrt, **options)
    return Derivative(f, "primal", 0, **options)
