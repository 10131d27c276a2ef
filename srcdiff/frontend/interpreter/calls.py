"""Calls, by the tables of callable objects."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import inspect
import logging
import math
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.diagnostics.naming_objects import declared_as, instead_of_call
from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    Choice,
    Closure,
    Drawn,
    Element,
    Items,
    Iteration,
    Keywords,
    Lazy,
    List,
    Method,
    Object,
    Optional,
    Own,
    Partial,
    Record,
    Static,
    Structured,
    Through,
    Tuple,
)
from srcdiff.frontend.domain.lattice import is_complex
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter import scipy_objects
from srcdiff.frontend.interpreter.attrs_instances import evolved
from srcdiff.frontend.interpreter.choices import for_the_chosen
from srcdiff.frontend.interpreter.comprehensions import generator_call
from srcdiff.frontend.interpreter.declared_functions import as_declared, rule_declared_for
from srcdiff.frontend.interpreter.dictionaries import is_dictionary
from srcdiff.frontend.interpreter.elementwise_functions import call_primitive, pythons_copy
from srcdiff.frontend.interpreter.evaluation import call_with, evaluate, evaluate_lazily, hashable, is_library
from srcdiff.frontend.interpreter.inlining import call_closure
from srcdiff.frontend.interpreter.instances import attribute_of_tuple, call_special, defines, read_attribute
from srcdiff.frontend.interpreter.iteration import (
    evaluate_elements,
    iteration_over,
    known_length,
    read_keywords,
    unpacked,
)
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import example_of, promoted_dtype
from srcdiff.frontend.interpreter.library_calls import call_unknown, library_call, run_structural
from srcdiff.frontend.interpreter.list_storage import contents_of_list
from srcdiff.frontend.interpreter.materialization import forced, settle
from srcdiff.frontend.interpreter.numba_functions import call_custom, call_plain
from srcdiff.frontend.interpreter.number_kinds import as_element, pythons_own
from srcdiff.frontend.interpreter.numbers import is_array
from srcdiff.frontend.interpreter.outside import as_array_from_outside, lift_partial
from srcdiff.frontend.interpreter.presence import needed, present
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.strings import TEXT_METHODS, text_method
from srcdiff.frontend.interpreter.tables import (
    DRAWS,
    HANDLERS,
    MARKERS,
    METHODS,
    SYNTAX,
    callee,
    expression,
    handles_kind,
    marked,
    row_of_kind,
)
from srcdiff.frontend.source.capture import capture, plain_function
from srcdiff.frontend.source.guards import Attribute, Constant
from srcdiff.ir.nodes import Apply, Value
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import Array, Scalar, is_inexact, widest
from srcdiff.ir.types import is_complex as is_complex_number
from srcdiff.library import scipy_table
from srcdiff.library.blas_lapack import LibraryCall
from srcdiff.library.language import DERIVATIVES
from srcdiff.library.numpy_table import FUNCTIONS, ORDERS, STANDARD, TAKES_COMPLEX, UFUNC_METHODS
from srcdiff.library.numpy_table import METHODS as ARRAY_METHODS
from srcdiff.signature.random_sources import SOURCES, SourceLayout
from srcdiff.signature.trees import NODES


@functools.cache
def _signature(method: Any) -> inspect.Signature:
    return inspect.signature(method)


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
_CHANGING = frozenset(("update", "pop", "setdefault", "clear"))
"""Methods that change a dictionary."""
_VIEWS = frozenset(("keys", "values", "items"))
"""Methods whose results see later changes of a dictionary."""
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
    if getattr(target, "__module__", "") == "attr._make" and getattr(target, "__name__", "") == "evolve":
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
    read = functools.partial(_argument_in_parts if takes_apart else evaluate_lazily, reader)
    args = evaluate_arguments(reader, function, node, read)
    result = call_with(reader, function, args, read_keywords(reader, node, read), node)
    return result if reader.frame.library else without_axes(reader, function, args, result)


def evaluate_arguments(
    reader: Reader, function: Abstract, node: ast.Call, read: Callable[[ast.expr], Abstract]
) -> list[Abstract]:
    """The arguments by position. The elements of `*array` are as many as the function has parameters without one."""
    args: list[Abstract] = []
    for argument in node.args:
        if not isinstance(argument, ast.Starred):
            args.append(read(argument))
            continue
        of = evaluate_lazily(reader, argument.value)
        of = forced(reader, of) if isinstance(of, Lazy) else of
        count = None if is_of_known_length(reader, of) else number_of_parameters(function, node)
        if count is None:
            args += unpacked(reader, of, argument)
            continue
        found = iteration_over(reader, of, argument)
        assert isinstance(found, Iteration)
        differs = reader.apply("not_equal", as_value(reader, found.length), reader.const(count))
        reader.raise_if(differs, TypeError, f"the call needs {count} elements of `{ast.unparse(argument.value)}`")
        args += [found.element(Static(k)) for k in range(count)]
    return args


def is_of_known_length(reader: Reader, x: Abstract) -> bool:
    """Whether it is anything but an array or a list whose length is known at run time."""
    if isinstance(x, List):
        return isinstance(contents_of_list(reader, x), Items)
    if not (isinstance(x, Value) and isinstance(x.type, Array)):
        return True
    return known_length(reader, Iteration(reader.dim(x, 0), lambda k: k)) is not None


def number_of_parameters(function: Abstract, node: ast.Call) -> int | None:
    """How many elements `*array` must have in a call; None if several numbers are possible."""
    bound = 0
    while isinstance(function, Partial):
        bound, function = bound + len(function.args) + len(function.keywords), function.function
    if isinstance(function, Closure):
        taken = function.node.args
        names = [a.arg for a in (*taken.posonlyargs, *taken.args)]
        is_open = bool(function.defaults or taken.vararg)
    elif isinstance(function, Static):
        target = plain_function(function.value) or function.value
        if not isinstance(target, type | types.FunctionType):
            return None
        with contextlib.suppress(TypeError, ValueError):
            parameters = inspect.signature(target).parameters.values()
            names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            is_open = any(
                p.kind is p.VAR_POSITIONAL or (p.default is not p.empty and p.name in names) for p in parameters
            )
            return None if is_open else _without(names, bound, node)
        return None
    else:
        return None
    return None if is_open else _without(names, bound, node)


def _without(names: list[str], bound: int, node: ast.Call) -> int | None:
    """The number of parameters that the other arguments of a call leave."""
    stars = sum(isinstance(a, ast.Starred) for a in node.args)
    if stars > 1 or any(k.arg is None for k in node.keywords):
        return None
    count = len(names) - bound - (len(node.args) - 1) - sum(k.arg in names for k in node.keywords)
    return count if count >= 0 else None


def _argument_in_parts(reader: Reader, node: ast.expr) -> Abstract:
    """An argument that may contain arrays that are not computed yet, also in a list display."""
    if isinstance(node, ast.Tuple | ast.List):
        return Tuple(evaluate_elements(reader, node.elts, functools.partial(_argument_in_parts, reader)))
    return evaluate_lazily(reader, node)


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
        reader.refuse(
            "SD201", node, "an argument is complex, which is not supported", help_="pass its real part: `.real`"
        )


def holds_complex(reader: Reader, x: Abstract) -> bool:
    """Whether a value is or contains complex numbers."""
    match x:
        case Lazy():
            return x.dtype.startswith("complex")
        case Value():
            return is_complex_number(x.type)
        case Static():
            return isinstance(x.value, complex)
        case List():
            contents = contents_of_list(reader, x)
            parts = getattr(contents, "items" if isinstance(contents, Items) else "arrays")
            return any(holds_complex(reader, part) for part in parts)
        case Tuple() | Record():
            return any(holds_complex(reader, part) for part in x.items)
    return False


def holds_reals(reader: Reader, x: Abstract) -> bool:
    """Whether it is an array of real numbers."""
    return is_array(x) and not (is_complex_number(x.type) if isinstance(x, Value) else holds_complex(reader, x))


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
    args, keywords = _computed(reader, args, keywords)
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
    args, keywords = _computed(reader, args, keywords)
    return call_with(reader, read_attribute(reader, function, "__call__", node), args, keywords, node)


@callee(Tuple)
def call_named_tuple(reader: Reader, function: Tuple, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A named tuple of a class with `__call__`."""
    if not defines(function, "__call__"):
        reader.refuse("SD203", node, "a tuple cannot be called")
    args, keywords = _computed(reader, args, keywords)
    return call_with(reader, attribute_of_tuple(reader, function, "__call__", node), args, keywords, node)


@callee(Choice)
def call_choice(reader: Reader, function: Choice, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    args, keywords = _computed(reader, args, keywords)
    return for_the_chosen(reader, function, lambda chosen: call_with(reader, chosen, args, keywords, node), node)


@callee(Closure)
def call_nested_function(
    reader: Reader, function: Closure, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    args, keywords = _computed(reader, args, keywords)
    return call_closure(reader, function, args, keywords, node)


def _computed(reader: Reader, args: Arguments, keywords: Keywords) -> tuple[Arguments, Keywords]:
    """Arguments of a user's function, with their arrays computed."""
    return [forced(reader, a) for a in args], {n: forced(reader, a) for n, a in keywords.items()}


# -- rows ------------------------------------------------------------------------------------------------------------


def is_source(x: Abstract) -> bool:
    """Whether it is a source of random numbers."""
    known = isinstance(x, Static) and isinstance(x.value, SOURCES)
    return known or (isinstance(x, Record) and isinstance(x.kind, SourceLayout))


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
    return call_library(reader, scipy_table.find(target), args, keywords, node)


def call_library(reader: Reader, library: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A function of the library that implements one of NumPy or SciPy."""
    knows_complex = library in TAKES_COMPLEX or scipy_table.takes_complex(library)
    if not knows_complex and any(holds_complex(reader, a) for a in (*args, *keywords.values())):
        name = getattr(library, "__name__", "this function")
        message = f"`{name}` of complex numbers is not supported"
        help_ = "pass their real and imaginary parts: `.real`, `.imag`"
        if library in ORDERS:
            help_ = "NumPy compares real parts first: sort by a real number, as in `z[np.argsort(np.abs(z))]`"
        reader.refuse("SD303", node, message, help_=help_)
    args = [*(Static(DERIVATIVES[name]) for name in getattr(library, "__srcdiff_takes__", ())), *args]
    if "out" in keywords or writes_parameters(library):
        args = [forced(reader, a) for a in args]
        keywords = {n: forced(reader, a) for n, a in keywords.items()}
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


def _call_method_of_option(
    reader: Reader,
    name: str,
    args: Arguments,
    keywords: Keywords,
    node: ast.AST,
    chosen: Abstract,
) -> Abstract:
    """A call of a method of one of several objects."""
    assert isinstance(chosen, Object)
    return call_with(reader, read_attribute(reader, chosen, name, node), args, keywords, node)


@callee(Method)
def call_method(reader: Reader, method: Method, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    owner = method.of
    if isinstance(owner, Choice):
        args, keywords = _computed(reader, args, keywords)
        called = functools.partial(_call_method_of_option, reader, method.name, args, keywords, node)
        return for_the_chosen(reader, owner, called, node)
    named = ARRAY_METHODS.get(method.name)
    if isinstance(owner, Static) and isinstance(owner.value, np.ufunc):
        if rule_declared_for(reader, owner) is not None:
            message = f"the rule for `{owner.value.__name__}` does not cover its method `{method.name}`"
            reader.refuse("SD304", node, message, help_="write a loop that calls the function")
        return call_with(reader, Own(UFUNC_METHODS[method.name]), [owner, *args], keywords, node)
    if method.name in ("conj", "conjugate") and holds_reals(reader, owner) and not args and not keywords:
        return forced(reader, owner)  # for real numbers it is the array itself; `np.conj` makes a copy
    if is_array(owner) and hasattr(np.ndarray, method.name):
        declared = rule_declared_for(reader, Static(getattr(np.ndarray, method.name)))
        if declared is not None:
            return call_with(reader, Static(declared), [owner, *args], keywords, node)
    if named is not None and is_array(owner):
        return call_with(reader, Own(named), [owner, *args], keywords, node)
    owner = forced(reader, owner)
    args = [forced(reader, a) for a in args]
    if isinstance(owner, Value) and not isinstance(owner.type, Array):
        return call_method_of_number(reader, owner, method.name, args, keywords, node)
    if isinstance(owner, List):
        kind = "list"
    elif isinstance(owner, Value) and isinstance(owner.type, Array):
        kind = "array"
    elif isinstance(owner, Tuple):
        kind = "tuple"
    elif is_dictionary(owner):
        kind = "dictionary"
        owner = owner if method.name in _CHANGING or method.name in _VIEWS else needed(reader, owner, node)
    elif isinstance(owner, Structured | Element):
        kind = "records"
    elif isinstance(owner, Static) and isinstance(owner.value, logging.Logger):
        kind = "logger"
    elif is_source(owner):
        return DRAWS["source"](reader, owner, method.name, args, keywords, node)
    elif isinstance(owner, Record | Object):
        return call_with(reader, read_attribute(reader, owner, method.name, node), args, keywords, node)
    elif isinstance(owner, Static) and isinstance(owner.value, str):
        kind = "text"
    elif isinstance(owner, Value) and method.name == "item" and not args and not keywords:
        return (
            reader.cast(owner, widest(owner.type)) if is_inexact(owner.type) else owner
        )  # it was NumPy's number, and is Python's now
    else:
        reader.refuse("SD203", node, f"the method `{method.name}` of {in_words(reader, owner)} is not supported")
    function = METHODS.get((kind, method.name))
    if function is None and kind == "text" and method.name in TEXT_METHODS:
        return text_method(reader, method.name, owner, args, keywords, node)
    if function is None:
        code = "SD303" if kind == "array" else "SD102"
        if kind == "tuple" and hasattr(list, method.name):
            message = "a tuple, or a list from outside the function, cannot be changed"
            reader.refuse(code, node, message, help_="convert it to a list first: `list(...)`")
        reader.refuse(code, node, f"the method `{method.name}` of a {kind} is not supported")
    return run_handler(reader, function, method.name, node, owner, *args, **keywords)


def run_handler(
    reader: Reader, handler: Callable[..., Abstract], name: str, node: ast.AST, /, *args: Abstract, **keywords: Abstract
) -> Abstract:
    """The result of a row for a call, which messages name `name`."""
    try:
        _signature(handler).bind(reader, node, *args, **keywords)
    except TypeError as error:
        reader.refuse("SD304", node, f"`{name}` does not take these arguments: {error}")
    return handler(reader, node, *args, **keywords)


def no_source(reader: Reader, target: Any, args: list[Abstract], node: ast.AST) -> Abstract:
    if not hasattr(target, "__name__"):
        message, help_ = instead_of_call(target)
        reader.refuse("SD302", node, message, help_=help_)
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or repr(target)
    module = getattr(target, "__module__", "") or ""
    inner = module.removeprefix("numpy").lstrip(".")
    name = f"{inner}.{name}" if inner and "." not in name and not inner.startswith(("_", "lib")) else name
    if module.startswith("numpy.random") or "numpy.random" in str(type(getattr(target, "__self__", None))):
        short = name.rpartition(".")[2]
        if getattr(np.random, short, None) == target:  # a method of NumPy's hidden generator
            name = f"np.random.{short}"
        reader.refuse(
            "SD302",
            node,
            f"`{name}` draws random numbers",
            help_="draw the numbers outside the function and pass them in",
        )
    rule = declared_as(_spelled(node, name), len(args))
    if module.startswith("numpy") or getattr(np, name, None) is target:
        if any(isinstance(a, Value) and isinstance(a.type, Array) for a in args):
            reader.refuse("SD303", node, f"`np.{name}` is not supported for arrays", help_=rule)
        reader.refuse("SD301", node, f"`np.{name}` has no derivative rule", help_=rule)
    name = name.removeprefix("builtins.")
    reason, instead = instead_of_call(target)
    if type(target).__module__.startswith("numba."):
        reason, instead = "", "call the Python function that Numba compiled, with arrays or in a loop"
        name = getattr(target, "__name__", type(target).__name__)
    message = reason or f"`{name}` has no Python source and no derivative rule"
    reader.refuse("SD302", node, message, help_=instead or rule)


def _spelled(node: ast.AST, name: str) -> str:
    """A function, as the user's call spells it."""
    function = node.func if isinstance(node, ast.Call) else None
    return ast.unparse(function) if isinstance(function, ast.Name | ast.Attribute) else name


def call_method_of_number(
    reader: Reader, owner: Value, name: str, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    """NumPy's numbers have the methods of arrays."""
    if name in ("item", "tolist") and not args and not keywords:
        return pythons_own(reader, pythons_copy(reader, owner, "float" if is_inexact(owner.type) else "int"))
    if name == "copy" and not args and not keywords:
        return owner
    if name not in ARRAY_METHODS:
        reader.refuse("SD203", node, f"the method `{name}` of {in_words(reader, owner)} is not supported")
    return call_with(reader, Own(ARRAY_METHODS[name]), [owner, *args], keywords, node)
