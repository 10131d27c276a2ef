"""Functions made by Numba's decorators: `@vectorize`, `@guvectorize`, `@cfunc`, `@overload`."""

from __future__ import annotations

import ast
import re
from typing import Any

import numba.misc.special
import numpy as np
from numba.core import types
from numba.core.ccallback import CFunc
from numba.core.withcontexts import objmode_context
from numba.np.ufunc.dufunc import DUFunc
from numba.np.ufunc.gufunc import GUFunc

from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Keywords, Own, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.declared_functions import as_dtype, types_of_loop
from srcdiff.frontend.interpreter.evaluation import call_value
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.numba_functions import call_plain
from srcdiff.frontend.interpreter.number_kinds import as_element, numpys_own
from srcdiff.frontend.interpreter.numbers import as_number, is_array
from srcdiff.frontend.interpreter.tables import handles, handles_kind
from srcdiff.frontend.source.guards import Attribute, Constant
from srcdiff.library.generalized import generalized


@handles(numba.misc.special.literally)
def literally(reader: Reader, node: ast.AST, value: Abstract, /) -> Abstract:
    """In Numba it specialises on the value. Here it returns the value."""
    return value


@handles_kind(CFunc)
def call_for_c(reader: Reader, function: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A function for C. Python calls the underlying function."""
    return call_plain(reader, function.__wrapped__, args, keywords, node)


@handles_kind(DUFunc)
def call_ufunc(reader: Reader, function: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A `@vectorize` function: its scalar function, applied to each element of arrays."""
    python = function._dispatcher.py_func
    name = python.__name__
    reader.guard(Attribute(Constant(function._dispatcher), "py_func"), python)
    if keywords or len(args) != function.nin:
        message = f"`{name}` is a ufunc, which takes {function.nin} positional arguments here"
        reader.refuse("SD304", node, message, help_="assign the result: `y = f(x)` instead of `f(x, out=y)`")
    over: list[Abstract] = [Static(python)]
    of_result = None
    if function._frozen:  # it has fixed signatures, and NumPy converts to one of them
        *taken, of_result = types_of_loop(reader, function.ufunc, args, node)
        args = [as_dtype(reader, a, dtype, node) for a, dtype in zip(args, taken, strict=True)]
        over.append(Tuple((Static(of_result),)))
    if any(is_array(a) for a in args):
        return forced(reader, call_value(reader, call_value(reader, Own(np.vectorize), over, node), args, node))
    result = forced(reader, call_value(reader, Static(python), args, node))
    if of_result is not None:
        result = as_element(reader, as_number(reader, result, node), of_result.name)
    return numpys_own(reader, as_number(reader, result, node))


@handles_kind(GUFunc)
def call_generalized_ufunc(
    reader: Reader, function: Any, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    """A `@guvectorize` function: it writes into its last arguments, for each part of arrays."""
    python = function.gufunc_builder.py_func
    name, count = python.__name__, function.nin + function.nout
    reader.guard(Attribute(Constant(function.gufunc_builder), "py_func"), python)
    inputs, outputs = (re.findall(r"\(([^()]*)\)", side) for side in function.signature.split("->"))
    cores = [[axis.strip() for axis in core.split(",") if axis.strip()] for core in (*inputs, *outputs)]
    signatures = function.gufunc_builder._sigs
    if keywords or len(args) not in (function.nin, count):
        message = f"`{name}` takes {function.nin} positional arguments, or {count} with the results"
        reader.refuse("SD304", node, message)
    if len(signatures) != 1 or any("?" in axis or axis.isdigit() for core in cores for axis in core):
        message = f"`{name}` has {len(signatures)} signatures or optional axes, which is not supported"
        reader.refuse("SD304", node, message, help_="give `@guvectorize` one signature")
    where = {axis: (k, len(core) - i) for k, core in enumerate(cores[: function.nin]) for i, axis in enumerate(core)}
    unknown = [axis for core in cores for axis in core if axis not in where]
    if unknown and len(args) < count:
        message = f"no argument of `{name}` has the axis `{unknown[0]}` of the result, so its size is not known"
        reader.refuse("SD304", node, message, help_="pass an array for the result")
    kinds = [t.dtype if isinstance(t, types.Array) else t for t in _arguments_of(signatures[0])]
    dtypes = [np.dtype(str(kind)) for kind in kinds]
    given = [as_dtype(reader, a, dtype, node) for a, dtype in zip(args, dtypes, strict=False)]
    for a, converted in zip(args[function.nin :], given[function.nin :], strict=True):
        if a is not converted:
            reader.refuse("SD304", node, f"`{name}` writes into an array of another type than its signature has")
    boxed = [
        isinstance(t, types.Array) and not core for t, core in zip(_arguments_of(signatures[0]), cores, strict=True)
    ]
    plan = (
        tuple(map(len, cores)),
        tuple(boxed),
        tuple(tuple(where.get(axis, (0, 0)) for axis in core) for core in cores[function.nin :]),
        tuple(dtypes[function.nin :]),
    )
    own = call_plain(reader, generalized, [Static(python), *map(_as_abstract, plan), *given], {}, node)
    return forced(reader, own)


@handles_kind(type(objmode_context))
def object_mode(reader: Reader, function: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """Statements that Numba hands to the interpreter have no compiled derivative."""
    help_ = "write a function with these statements, and declare its derivative with `srcdiff.external`"
    reader.refuse("SD302", node, "the statements below `objmode` run in the interpreter", help_=help_)


def _arguments_of(signature: Any) -> tuple[Any, ...]:
    return tuple(getattr(signature, "args", signature))


def _as_abstract(x: Any) -> Abstract:
    return Tuple(tuple(map(_as_abstract, x))) if isinstance(x, tuple) else Static(x)
