"""Objects of SciPy: distributions, frozen or not, and their methods.

A distribution of `scipy.stats` is a constant, and `norm(loc, scale)` is the distribution together with its parameters,
like a `functools.partial`. Their methods are programs of the library (`library/distributions.py`). SciPy is not
imported here: its objects are recognised by the loaded modules.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Mapping
from typing import Any

from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Keywords, Own, Partial, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.evaluation import call_with
from srcdiff.frontend.interpreter.outside import lift
from srcdiff.frontend.interpreter.tables import marked
from srcdiff.frontend.source.guards import Attribute, Constant, Element, Summary, contents

_STATS = "scipy.stats"


def _is_scipys(value: Any) -> bool:
    return "scipy" in sys.modules and type(value).__module__.partition(".")[0] == "scipy"


# -- distributions -----------------------------------------------------------------------------------------------------


def _distribution(value: Any) -> str:
    """The name of a distribution of `scipy.stats`; empty for other objects."""
    stats = sys.modules.get(_STATS)
    if stats is None or not _is_scipys(value):
        return ""
    name = getattr(value, "name", None) or type(value).__name__.removesuffix("_gen")
    is_there = isinstance(name, str) and getattr(stats, name, None) is value
    return name if is_there and (hasattr(value, "logpdf") or hasattr(value, "logpmf")) else ""


def _frozen(value: Any) -> str:
    """The name of the distribution of a frozen object of `scipy.stats`; empty for other objects."""
    stats = sys.modules.get(_STATS)
    if stats is None or not _is_scipys(value):
        return ""
    whole = type(value).__name__.removesuffix("_frozen")
    if whole != type(value).__name__ and hasattr(value, "cov_object"):
        return whole
    of = getattr(value, "dist", None)
    name = getattr(of, "name", "")
    return name if isinstance(name, str) and type(of) is type(getattr(stats, name, None)) else ""


def attribute_of(reader: Reader, base: Abstract, name: str, node: ast.AST) -> Abstract | None:
    """An attribute of an object of SciPy; None for other objects."""
    match base:
        case Static(value=value) if found := _distribution(value):
            return Static(_method(reader, found, name, node))
        case Partial(function=Static(value=value), keywords=keywords) if found := _distribution(value):
            return Partial(Static(_method(reader, found, name, node)), (), keywords)
        case Static(value=value) if found := _frozen(value):
            return Partial(Static(_method(reader, found, name, node)), (), _parameters(reader, found, value, node))
    return None


_EVERYWHERE = frozenset({"cauchy", "laplace", "logistic", "norm"})
"""Distributions of all real numbers without shapes. `norm._cdf(x)` is `norm.cdf(x)` without its checks."""


def _method(reader: Reader, distribution: str, name: str, node: ast.AST) -> Any:
    from srcdiff.library.distributions import METHODS

    if distribution not in METHODS:
        message = f"the distribution `scipy.stats.{distribution}` is not supported"
        reader.refuse("SD302", node, message, help_="write its density as a function of yours")
    if distribution in _EVERYWHERE:
        name = name.removeprefix("_")
    if name not in METHODS[distribution]:
        known = ", ".join(f"`{method}`" for method in METHODS[distribution])
        message = f"`{name}` of the distribution `scipy.stats.{distribution}` is not supported"
        reader.refuse("SD302", node, message, help_=f"these methods are: {known}")
    return METHODS[distribution][name]


def _parameters(reader: Reader, name: str, frozen: Any, node: ast.AST) -> dict[str, Abstract]:
    """The parameters of an outside frozen distribution. Numbers and arrays are inputs, read at each call."""
    whole = Constant(frozen)
    if not hasattr(frozen, "kwds"):  # a multivariate distribution
        return {n: lift(reader, getattr(frozen, n), Attribute(whole, n), n, (), node) for n in ("mean", "cov")}
    args, keywords = Attribute(whole, "args"), Attribute(whole, "kwds")
    reader.guard(args, frozen.args)
    reader.guard(Summary(contents, keywords), contents(frozen.kwds))
    lifted = [lift(reader, a, Element(args, k), "parameter", (k,), node) for k, a in enumerate(frozen.args)]
    named = {n: lift(reader, a, Element(keywords, n), n, (), node) for n, a in frozen.kwds.items()}
    return _bound(reader, name, lifted, named, node)


def _bound(
    reader: Reader, name: str, args: list[Abstract], keywords: Mapping[str, Abstract], node: ast.AST
) -> dict[str, Abstract]:
    """The parameters by name."""
    from srcdiff.library.distributions import PARAMETERS

    names = PARAMETERS[name]
    found = {**dict(zip(names, args, strict=False)), **keywords}
    twice = [n for n in names[: len(args)] if n in keywords]
    unknown = [n for n in keywords if n not in names]
    if len(args) > len(names) or twice or unknown:
        what = f"`{(twice or unknown)[0]}`" if twice or unknown else "so many arguments"
        takes = ", ".join(f"`{n}`" for n in names)
        message = f"`scipy.stats.{name}` does not take {what} here"
        reader.refuse("SD304", node, message, help_=f"its parameters are {takes}")
    return found


@marked("__srcdiff_distribution__")
def call_method(reader: Reader, method: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A call of a distribution's method: its parameters by position or by name, then the program of the library."""
    first = "q" if method.name in ("ppf", "isf") else "k" if "scale" not in method.parameters else "x"
    first = first if method.standard else "x"
    named = dict(keywords)
    x = args[0] if args else named.pop(first, None)
    if x is None:
        reader.refuse("SD304", node, f"`{method.name}` needs a first argument, `{first}`")
    found = _bound(reader, method.distribution, args[1:], named, node)
    if not method.standard:
        return call_with(reader, Own(method.program), [x], found, node)
    missing = [n for n in method.parameters[: method.shapes] if n not in found]
    if missing:
        message = f"`scipy.stats.{method.distribution}` needs the parameter `{missing[0]}`"
        reader.refuse("SD304", node, message, help_=f"pass it: `{missing[0]}=...`")
    shapes = Tuple(tuple(found[n] for n in method.parameters[: method.shapes]))
    others = [found.get(n, Static({"loc": 0, "scale": 1}[n])) for n in method.parameters[method.shapes :]]
    return call_with(reader, Own(method.program), [*map(Own, method.standard), x, shapes, *others], {}, node)


# -- calls -------------------------------------------------------------------------------------------------------------


def is_callable(target: Any) -> bool:
    """Whether calls of the object are supported."""
    return bool(_distribution(_owner(target)))


def _owner(target: Any) -> Any:
    return target.__self__ if isinstance(target, types.MethodType) else target


def call_object(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    name = _distribution(_owner(target))
    if isinstance(target, types.MethodType):  # `logpdf = norm.logpdf` outside
        if target.__name__ == "freeze":
            return call_object(reader, target.__self__, args, keywords, node)
        return call_method(reader, _method(reader, name, target.__name__, node), args, keywords, node)
    _method(reader, name, "cdf" if name != "multivariate_normal" else "pdf", node)  # check
    return Partial(Static(target), (), _bound(reader, name, args, keywords, node))
