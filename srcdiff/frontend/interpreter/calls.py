"""Calls, by the tables of callable objects."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from srcdiff.diagnostics import Refusal
from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    Choice,
    Closure,
    Drawn,
    Keywords,
    Method,
    Object,
    Optional,
    Own,
    Partial,
    Record,
    Static,
    Through,
    Tuple,
)
from srcdiff.frontend.domain.lattice import is_complex
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter import scipy_objects
from srcdiff.frontend.interpreter.array_conversion import spelled_out
from srcdiff.frontend.interpreter.attrs_instances import evolved
from srcdiff.frontend.interpreter.call_arguments import (
    argument_in_parts,
    computed,
    evaluate_arguments,
    read_keywords,
    run_handler,
)
from srcdiff.frontend.interpreter.choices import for_the_chosen
from srcdiff.frontend.interpreter.comprehensions import generator_call
from srcdiff.frontend.interpreter.declared_functions import as_declared, rule_declared_for
from srcdiff.frontend.interpreter.elementwise_functions import call_primitive
from srcdiff.frontend.interpreter.evaluation import call_with, evaluate, evaluate_lazily, hashable, is_library
from srcdiff.frontend.interpreter.inlining import call_closure
from srcdiff.frontend.interpreter.instances import attribute_of_tuple, call_special, defines, read_attribute
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import example_of, promoted_dtype
from srcdiff.frontend.interpreter.library_calls import call_unknown, library_call, run_structural
from srcdiff.frontend.interpreter.materialization import forced, settle
from srcdiff.frontend.interpreter.method_calls import holds_complex
from srcdiff.frontend.interpreter.numba_functions import call_custom, call_plain
from srcdiff.frontend.interpreter.number_kinds import as_element
from srcdiff.frontend.interpreter.numbers import is_array
from srcdiff.frontend.interpreter.outside import as_array_from_outside, lift_partial
from srcdiff.frontend.interpreter.presence import present
from srcdiff.frontend.interpreter.tables import (
    DRAWS,
    HANDLERS,
    MARKERS,
    SYNTAX,
    callee,
    expression,
    handles_kind,
    marked,
    row_of_kind,
)
from srcdiff.frontend.interpreter.unsupported_calls import no_source, with_rule
from srcdiff.frontend.source.capture import capture, plain_function
from srcdiff.frontend.source.guards import Attribute, Constant
from srcdiff.ir.nodes import Apply, Value
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import Scalar
from srcdiff.library import scipy_table
from srcdiff.library.blas_lapack import LibraryCall
from srcdiff.library.language import DERIVATIVES
from srcdiff.library.numpy_table import FUNCTIONS, ORDERS, SELECTS, STANDARD, TAKES_COMPLEX
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.random_sources import SOURCES
from srcdiff.signature.trees import NODES

_SPECIAL: dict[Any, str] = {
    abs: "__abs__",
    len: "__len__",
    float: "__float__",
    int: "__int__",
    bool: "__bool__",
    round: "__round__",
    math.floor: "__floor__",
    math.ceil: "__ceil__",
    iter: "__iter__",
}
"""Functions that call a special method of an instance."""
_WITHOUT_AXES = frozenset(("select", "squeeze", "where"))
"""Functions that return arrays without axes in NumPy, which are numbers here."""


_MODULES: dict[str, Any] = {"math": math, "np": np, "builtins": builtins}


@functools.cache
def _primitive_objects() -> dict[Any, str]:
    """The functions that users call, and their primitives: `math.sin` and `np.sin` are both `sin`."""
    found: dict[Any, str] = {}
    for primitive in PRIMITIVES.values():
        for name in primitive.names:
            module, _, attribute = name.partition(".")
            function = getattr(_MODULES[module], attribute, None)
            if function is not None:
                found.setdefault(function, primitive.name)
    return found


_ABOUT_TYPES = frozenset(
    (
        *(np.dtype, np.finfo, np.iinfo, np.issubdtype, np.result_type, np.promote_types, np.can_cast, np.isscalar),
        *(np.iscomplexobj, np.isrealobj),
    )
)
"""NumPy's functions of dtypes, which are evaluated at compile time."""


@functools.cache
def writes_parameters(function: Any) -> bool:
    """Whether a function of the library writes into its parameters."""
    node = capture(function).node
    given = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    targets = [t for n in ast.walk(node) for t in (*getattr(n, "targets", ()), getattr(n, "target", None))]
    return any(isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name) and t.value.id in given for t in targets)


@dataclass(frozen=True, slots=True)
class Row:
    """The meaning of a call of an object."""

    run: Callable[[Reader, Any, list[Abstract], dict[str, Abstract], ast.AST], Abstract | None]
    """Takes the reader, the object, the arguments, and the place of the call. It may decline."""
    lazy: bool = False
    """Whether it accepts arrays that are not computed yet."""
    consumes: bool = False
    """Whether it consumes iterators itself."""
    needs_arrays: bool = False
    """Whether an argument must not be None if it may be an array. An axis may be None."""


@functools.cache
def rows_by_object() -> dict[Any, Row]:
    """The functions that users call, by object."""
    found: dict[Any, Row] = {function: Row(_handled, h.lazy, h.consumes) for function, h in HANDLERS.items()}
    for function in _ABOUT_TYPES:
        found.setdefault(function, Row(_about_types))
    for function in _primitive_objects():
        found.setdefault(function, Row(_primitive, lazy=True, needs_arrays=True))
    for function in FUNCTIONS:
        found.setdefault(function, Row(_library_function, lazy=True, needs_arrays=True))
    for function in STANDARD:
        found.setdefault(function, Row(_standard))
    return found


def rows_for(target: Any) -> Iterator[Row]:
    """The possible meanings of a call of an object, in the order in which they are tried."""
    if source_of_method(target) is not None:
        yield Row(_drawn)
    by_object = rows_by_object().get(target) if hashable(target) else None
    if by_object is not None:
        yield by_object
    by_kind = row_of_kind(target)
    if by_kind is not None:
        yield Row(by_kind)
    for marker, handler in MARKERS.items():
        if getattr(target, marker, None) is not None:
            yield Row(handler.run, handler.lazy)
    if target is not None and target is getattr(sys.modules.get("attr"), "evolve", None):
        yield Row(_evolve)
    if scipy_objects.is_callable(target):
        yield Row(scipy_objects.call_object)
    if scipy_table.find(target) is not None:
        yield Row(_scipy_function, lazy=True, needs_arrays=True)
    if isinstance(target, np.ufunc) and target in special_primitives():
        yield Row(_special, lazy=True, needs_arrays=True)
    yield Row(call_unknown)
    yield Row(_with_source)


@expression(ast.Call)
def call_expression(reader: Reader, node: ast.Call) -> Abstract:
    function = as_declared(reader, evaluate(reader, node.func))
    target = function.value if isinstance(function, Static) and hashable(function.value) else None
    if target in SYNTAX:
        found = SYNTAX[target](reader, node)
        if found is not None:
            return found
    generator = generator_call(reader, function, node)
    if generator is not None:
        return generator
    takes_apart = isinstance(function, Static) and target in FUNCTIONS
    read = functools.partial(argument_in_parts if takes_apart else evaluate_lazily, reader)
    args = evaluate_arguments(reader, function, node, read)
    result = call_with(reader, function, args, read_keywords(reader, node, read), node)
    return result if reader.frame.library else without_axes(reader, function, args, result)


def without_axes(reader: Reader, function: Abstract, args: list[Abstract], found: Abstract) -> Abstract:
    """A number that is an array without axes in NumPy, so that other names may share it."""
    target = function.value if isinstance(function, Static) else None
    of = function.of if isinstance(function, Method) else args[0] if args else None
    name = function.name if isinstance(function, Method) else getattr(target, "__name__", "")
    if name not in _WITHOUT_AXES or not (isinstance(found, Value) and isinstance(found.type, Scalar)):
        return found
    if not isinstance(function, Method) and getattr(np, name) is not target:
        return found
    box = Value(found.type)
    reader.add(Apply(box, "positive", (found,), span=reader.span))
    reader.boxes[box] = name == "squeeze" and of is not None and is_array(of)
    return box


# -- what is called --------------------------------------------------------------------------------------------------


@callee(Static, Own)
def call_object(reader: Reader, function: Static, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A call of an object that is known at compile time."""
    target = rule_declared_for(reader, function) or function.value
    if args and (target is np.asarray or target is np.array) and not isinstance(function, Own):
        args = [as_array_from_outside(reader, args[0], node), *args[1:]]
    if _computes_numbers(target):
        refuse_complex(reader, (*args, *keywords.values()), node)
    special = _SPECIAL.get(target) if hashable(target) else None
    if special is not None and len(args) == 1 and defines(args[0], special) and not keywords:
        return call_special(reader, args[0], special, [], node)
    for row in rows_for(target):
        taken, named = _prepared(reader, row, target, args, keywords)
        found = row.run(reader, target, taken, named, node)
        if found is not None:
            return found
    return no_source(reader, target, args, node)


def _computes_numbers(target: Any) -> bool:
    """Whether it is a NumPy function that computes, rather than takes a real part or makes a named tuple."""
    is_numpys = str(getattr(target, "__module__", "")).partition(".")[0] == "numpy"
    return is_numpys and target is not np.real and not (isinstance(target, type) and issubclass(target, tuple))


def refuse_complex(reader: Reader, args: Iterable[Abstract], node: ast.AST) -> None:
    if any(is_complex(part) for a in args for part in NODES.nodes(a)):
        message = "an argument is complex, which is not supported"
        reader.refuse("SD201", node, message, help_="pass its real part: `.real`")


def _prepared(reader: Reader, row: Row, target: Any, args: Arguments, keywords: Keywords) -> tuple[Arguments, Keywords]:
    """The arguments for a row: arrays are computed and iterators consumed, unless the row does that itself."""
    ours = is_library(target)
    if not ours and not row.consumes:
        args = [forced(reader, a) if isinstance(a, Through | Drawn) else a for a in args]
    if not row.lazy and not ours:
        args = [a if isinstance(a, Through | Drawn) else forced(reader, a) for a in args]
        keywords = {n: forced(reader, a) for n, a in keywords.items()}
    if row.needs_arrays:
        args = [present(reader, a) if isinstance(a, Optional) and is_array(a.value) else a for a in args]
    return args, keywords


@callee(Partial)
def call_partial_application(
    reader: Reader, function: Partial, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    args, keywords = computed(reader, args, keywords)
    return call_with(reader, function.function, [*function.args, *args], {**function.keywords, **keywords}, node)


@handles_kind(functools.partial)
def call_partial_object(
    reader: Reader, target: functools.partial[Any], args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    lifted, named = lift_partial(reader, target, node)
    return call_with(reader, Static(target.func), [*lifted, *args], {**named, **keywords}, node)


@callee(Record, Object)
def call_instance(
    reader: Reader, function: Record | Object, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    """An instance of a class with `__call__`."""
    if isinstance(function, Record) and not function.kind.is_instance:
        reader.refuse("SD203", node, f"{in_words(reader, function)} cannot be called")
    args, keywords = computed(reader, args, keywords)
    return call_with(reader, read_attribute(reader, function, "__call__", node), args, keywords, node)


@callee(Tuple)
def call_named_tuple(reader: Reader, function: Tuple, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A named tuple of a class with `__call__`."""
    if not defines(function, "__call__"):
        reader.refuse("SD203", node, "a tuple cannot be called")
    args, keywords = computed(reader, args, keywords)
    return call_with(reader, attribute_of_tuple(reader, function, "__call__", node), args, keywords, node)


@callee(Choice)
def call_choice(reader: Reader, function: Choice, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    args, keywords = computed(reader, args, keywords)
    return for_the_chosen(reader, function, lambda chosen: call_with(reader, chosen, args, keywords, node), node)


@callee(Closure)
def call_nested_function(
    reader: Reader, function: Closure, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    args, keywords = computed(reader, args, keywords)
    return call_closure(reader, function, args, keywords, node)


# -- rows ------------------------------------------------------------------------------------------------------------


def source_of_method(target: Any) -> Any:
    """The source of random numbers of a function: NumPy's global one, or one from outside."""
    if target is np.random.seed:
        return np.random.mtrand._rand
    owner = getattr(target, "__self__", None)
    return owner if isinstance(owner, SOURCES) else None


def _drawn(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A draw. Functions compiled by Numba draw from Numba's own sources."""
    source = Static(source_of_method(target))
    if reader.frame.told is not None and source.value in (np.random.mtrand._rand, random._inst):
        source = Static("random." if source.value is random._inst else "np.random.")
    return DRAWS["source"](reader, source, target.__name__, args, keywords, node)


def _handled(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    return run_handler(reader, HANDLERS[target].run, getattr(target, "__name__", str(target)), node, *args, **keywords)


def _about_types(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract | None:
    if keywords:
        return None
    args = [spelled_out(reader, a) for a in args]
    return Static(target(*(a.value if isinstance(a, Static) else example_of(reader, a, node) for a in args)))


def _primitive(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    return call_primitive(reader, _primitive_objects()[target], args, keywords, node, target)


def special_primitives() -> dict[Any, str]:
    """The ufuncs of `scipy.special` that are primitives, if SciPy is loaded."""
    return _special_primitives() if "scipy.special" in sys.modules else {}


@functools.cache
def _special_primitives() -> dict[Any, str]:
    module = sys.modules["scipy.special"]
    return {getattr(module, name): row.name for row in PRIMITIVES.values() for name in row.scipy}


def _special(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A ufunc of `scipy.special`. Its result for float32 is float32, also for a number."""
    result = call_primitive(reader, special_primitives()[target], args, keywords, node, target)
    if isinstance(result, Value) and isinstance(result.type, Scalar):
        return as_element(reader, result, promoted_dtype(reader, target, args, node))
    return result


def _evolve(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """`attrs.evolve`."""
    return evolved(reader, args, keywords, node)


@marked("__srcdiff_primitive__", lazy=True)
def _elementwise(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A helper of the library for a primitive without a name in NumPy."""
    return call_primitive(reader, target.__srcdiff_primitive__, args, keywords, node, target)


def _library_function(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    return call_library(reader, FUNCTIONS[target], args, keywords, node)


def _scipy_function(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    try:
        return call_library(reader, scipy_table.find(target), args, keywords, node)
    except Refusal as refusal:
        raise with_rule(refusal, reader, args, keywords, node) from None


def call_library(reader: Reader, library: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A function of the library that implements one of NumPy or SciPy."""
    knows_complex = library in TAKES_COMPLEX or scipy_table.takes_complex(library)
    if not knows_complex and any(holds_complex(reader, a) for a in (*args, *keywords.values())):
        name = getattr(library, "__name__", "this function")
        message = f"`{name}` of complex numbers is not supported"
        help_ = "pass their real and imaginary parts: `.real`, `.imag`"
        if library in ORDERS:
            help_ = "NumPy compares real parts first: sort by a real number, as in `z[np.argsort(np.abs(z))]`"
        if library in SELECTS:
            help_ = f"NumPy compares real parts first: compare real numbers, as in `np.{name}(np.abs(z))`"
        reader.refuse("SD303", node, message, help_=help_)
    args = [*(Static(DERIVATIVES[name]) for name in getattr(library, "__srcdiff_takes__", ())), *args]
    if "out" in keywords or writes_parameters(library):
        args, keywords = computed(reader, args, keywords)
        settle(reader)
    return call_plain(reader, library, args, keywords, node)


def _standard(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A function of the standard library. Applied to constants, it is evaluated at compile time."""
    if not keywords and all(isinstance(a, Static) for a in args):
        with contextlib.suppress(TypeError, ValueError, ArithmeticError):
            result = target(*(a.value for a in args if isinstance(a, Static)))
            if isinstance(result, bool | int | float | complex):
                return Static(result)
    return call_plain(reader, STANDARD[target], args, keywords, node)


def _with_source(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract | None:
    if plain_function(target) is None:
        return None
    if hasattr(target, "py_func"):
        reader.guard(Attribute(Constant(target), "py_func"), getattr(target, "py_func", None))
    return call_plain(reader, target, args, keywords, node)


@handles_kind(LibraryCall)
def _library_call(reader: Reader, target: LibraryCall, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    return library_call(reader, target, args, node)


@marked("__srcdiff_structural__")
def _structural(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    return run_structural(reader, target.__srcdiff_structural__, args, node)


@marked("__srcdiff_outside__")
def _not_inside(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    reader.refuse("SD102", node, target.__srcdiff_outside__)


@marked("__srcdiff_rule__")
def _declared_rule(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    if not getattr(target, "takes_complex", True) and any(holds_complex(reader, a) for a in args):
        reader.refuse("SD303", node, "this function of complex numbers has no derivative rule")
    return call_custom(reader, target.__srcdiff_rule__, args, keywords, node)


# -- methods
