"""What srcdiff supports, as tables, from the tables that it works by: for the command line and the documentation.

>>> row = next(row for row in elementwise().rows if "`np.divide`" in row[0])
>>> row[1]
'`x`: `1.0 / y`; `y`: `-out / y`'
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from srcdiff.diagnostics.catalogue import CATALOGUE
from srcdiff.frontend.interpreter.tables import HANDLERS, METHODS
from srcdiff.frontend.rows import ROWS
from srcdiff.frontend.source.accepted import REFUSED
from srcdiff.ir.primitives import PRIMITIVES, Primitive
from srcdiff.library import (
    arranging,
    building,
    indices,
    joining,
    linear_algebra,
    mathematics,
    products,
    reductions,
    scans,
    scipy_table,
    signals,
    sorting,
)
from srcdiff.library.distributions import METHODS as DISTRIBUTIONS
from srcdiff.library.distributions import PARAMETERS
from srcdiff.library.numpy_table import METHODS as ARRAY_METHODS
from srcdiff.library.numpy_table import STANDARD, UFUNC_METHODS
from srcdiff.quick_dataclasses import dataclass
from srcdiff.rules import RULES
from srcdiff.rules.table import Edge, Rule

assert ROWS  # the tables have all their rows

_MODULES = {"math": math, "np": np, "builtins": builtins}


@dataclass(frozen=True, slots=True)
class Table:
    """Cells are Markdown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        lines = [self.columns, tuple("---" for _ in self.columns), *self.rows]
        return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines)


# -- elementwise functions -------------------------------------------------------------------------------------------


def elementwise() -> Table:
    """The scalar functions with a derivative: their formulas, and the conventions at kinks."""
    rows = [
        (_names(row), _formulas(RULES[row.name]), _agreed(RULES[row.name].edges))
        for row in PRIMITIVES.values()
        if _known(row) and RULES[row.name].partials
    ]
    columns = ("function", "derivative with respect to each argument", "at special points")
    return Table("Elementwise functions", columns, tuple(rows))


def constant() -> Table:
    """The scalar functions whose derivative is zero wherever it exists."""
    rows = [(_names(row),) for row in PRIMITIVES.values() if _known(row) and not RULES[row.name].partials]
    return Table("Functions whose derivative is zero", ("function",), tuple(rows))


def _known(row: Primitive) -> list[str]:
    """The names by which users call it, in this Python and this NumPy."""
    return [name for name in row.names if hasattr(_MODULES[name.partition(".")[0]], name.partition(".")[2])]


def _names(row: Primitive) -> str:
    return ", ".join(f"`{name.removeprefix('builtins.')}`" for name in _known(row))


def _formulas(rule: Rule) -> str:
    formulas = "; ".join(f"`{name}`: `{ast.unparse(formula)}`" for name, formula in rule.partials.items())
    let = "; ".join(f"`{name} = {ast.unparse(formula)}`" for name, formula in rule.let)
    return f"{formulas} where {let}" if let else formulas


def _agreed(edges: Sequence[Edge]) -> str:
    def values(of: Iterable[tuple[str, float]], suffix: str = "") -> str:
        return ", ".join(f"{name}{suffix} = {value:g}" for name, value in of)

    return "; ".join(f"at {values(e.inputs.items())}: {values(e.partials.items(), '_bar')}" for e in edges)


# -- NumPy -----------------------------------------------------------------------------------------------------------

_CHAPTERS: dict[str, Any] = {
    "Reductions": reductions,
    "Scans, differences and comparisons": scans,
    "Elements by their positions": indices,
    "Building": building,
    "Joining and padding": joining,
    "Rearranging": arranging,
    "Sorting": sorting,
    "Products": products,
    "Linear algebra": linear_algebra,
    "Signals and samples": signals,
}


def functions() -> Iterator[Table]:
    """NumPy's functions of whole arrays, with the arguments that they take."""
    for title, chapter in _CHAPTERS.items():
        rows = [(f"`{_called(numpy)}`", _parameters(ours)) for numpy, ours in chapter.FUNCTIONS.items()]
        yield Table(title, ("function", "arguments"), tuple(rows))
    rows = [
        (f"`{_called(numpy)}`", _parameters(handler.run, skipped=2))
        for numpy, handler in HANDLERS.items()
        if getattr(numpy, "__module__", "") == "numpy" and isinstance(numpy, Callable)  # type: ignore[arg-type]
    ]
    yield Table("New arrays, views and types", ("function", "arguments"), tuple(sorted(rows)))


def _called(function: Any) -> str:
    module = getattr(function, "__module__", "").removeprefix("numpy").lstrip(".")
    prefix = f"np.{module}" if module in ("linalg", "lib.stride_tricks") else "np"
    return f"{prefix}.{function.__name__}"


def _parameters(function: Any, skipped: int = 0) -> str:
    function = getattr(function, "function", function)
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return ", ".join(f"`{stars.get(p.kind, '')}{p.name}`" for p in parameters)


# -- SciPy -----------------------------------------------------------------------------------------------------------


def special_functions(errors: Mapping[str, Sequence[str]]) -> Table:
    """The elementwise functions of `scipy.special`.

    `errors` has, by name, the errors of values and of derivatives, and the bound of both; parts of functions of whole
    arrays, such as `airy_ai`, are rows of their own.
    """
    parts = {name: name for name in errors if name in RULES}
    named = {name: row.name for row in PRIMITIVES.values() for name in row.scipy}
    rows = []
    for name, primitive in sorted((parts | named).items()):
        rule = RULES[primitive]
        cells = errors.get(name, ("", "", ""))
        rows.append((f"`{name}`", _listed_names(rule.parameters), _listed_names(rule.partials), *cells))
    columns = ("function", "arguments", "has derivatives by", "value", "derivatives", "bound")
    return Table("", columns, tuple(rows))


def _listed_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def scipy_functions() -> Iterator[Table]:
    """The functions of SciPy's modules that are programs of the library, with the arguments that they take."""
    for module, ours in sorted(scipy_table.MODULES.items()):
        rows = [
            (f"`{name}`", _parameters(of, len(getattr(of, "__srcdiff_takes__", ()))))
            for name, of in sorted(scipy_table.functions(ours).items())
        ]
        if rows:
            yield Table(f"`{module}`", ("function", "arguments"), tuple(rows))


def distributions() -> Table:
    """The distributions of `scipy.stats`."""
    rows = [
        (f"`{name}`", _listed_names(PARAMETERS[name]), _listed_names(methods_of))
        for name, methods_of in sorted(DISTRIBUTIONS.items())
    ]
    return Table("", ("distribution", "parameters", "methods"), tuple(rows))


def methods() -> Table:
    """The methods that arrays, lists, dictionaries, and elementwise functions have."""
    arrays = sorted({*ARRAY_METHODS, *_read("array", np.ndarray)})
    rows = (
        ("arrays", arrays),
        ("lists", _read("list", list)),
        ("dictionaries", _read("dictionary", dict)),
        ("elementwise functions (`np.add.reduce`)", sorted(UFUNC_METHODS)),
    )
    return Table("Methods", ("of", "methods"), _listed(rows))


def _listed(rows: Iterable[tuple[str, Sequence[str]]]) -> tuple[tuple[str, ...], ...]:
    return tuple((of, ", ".join(f"`{name}`" for name in names)) for of, names in rows)


def _read(prefix: str, kind: type) -> list[str]:
    """The methods of a type that the reader has a way to read."""
    return sorted(name for name in dir(kind) if (prefix, name) in METHODS)


# -- the language ----------------------------------------------------------------------------------------------------


_MORE: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(("functools", ()), ("itertools", ()), ("operator", ()), ("copy", ()), ("dataclasses", ())),
    ("bisect", ("bisect.bisect",)),
)


def builtin_functions() -> Table:
    """The functions of Python that can be called, beside those of whole arrays."""
    named = {n.partition(".")[2] for row in PRIMITIVES.values() for n in row.names if n.startswith("builtins.")}
    of_math = {n for row in PRIMITIVES.values() for n in _known(row) if n.startswith("math.")}
    of_math |= {f"math.{name}" for name in mathematics.BY_NAME}  # also those that this Python does not have
    rows = [("Python", sorted({*(f.__name__ for f in _functions_of("builtins")), *named, "print"}))]
    for module, more in (("math", of_math), *_MORE):
        names = {f"{module}.{f.__name__}" for f in _functions_of(module)}
        rows.append((f"`{module}`", sorted(names.union(more))))
    return Table("Functions of Python", ("of", "functions"), _listed(rows))


def _functions_of(module: str) -> list[Any]:
    return [f for f in (*HANDLERS, *STANDARD) if str(getattr(f, "__module__", "")).lstrip("_") == module]


def refused_syntax() -> Table:
    """Unsupported syntax, and what to write instead."""
    found: dict[tuple[str, str], list[str]] = {}
    for code, what, instead in REFUSED.values():
        found.setdefault((what, f"[{code}](errors.md#{code.lower()})"), []).append(instead)
    rows = [(what, "; ".join(dict.fromkeys(instead)), error) for (what, error), instead in found.items()]
    return Table("Refused syntax", ("syntax", "instead", "error"), tuple(rows))


def errors() -> Table:
    """Every kind of refusal."""
    rows = [(f"[{code}](#{code.lower()})", kind.title, kind.help) for code, kind in sorted(CATALOGUE.items())]
    return Table("Errors", ("code", "meaning", "what to do"), tuple(rows))
