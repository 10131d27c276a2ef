"""The builtin functions of Python."""

from __future__ import annotations

import ast
import enum
import functools
import math
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numba
import numpy as np

from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Arguments,
    Drawn,
    Enumerate,
    Generated,
    Group,
    Items,
    Iteration,
    Keywords,
    Lazy,
    List,
    Range,
    Record,
    Reversed,
    Static,
    Text,
    Through,
    Tuple,
    Zip,
    is_array_value,
    is_none,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import IsWritten
from srcdiff.frontend.interpreter.arithmetic import binary
from srcdiff.frontend.interpreter.array_conversion import call_astype
from srcdiff.frontend.interpreter.call_arguments import run_handler
from srcdiff.frontend.interpreter.comparisons import compare
from srcdiff.frontend.interpreter.dictionaries import KeysAtRunTime, as_mapping, constant_set
from srcdiff.frontend.interpreter.evaluation import call_named, call_value, known_value
from srcdiff.frontend.interpreter.foreseen import before_rounding
from srcdiff.frontend.interpreter.forks import branch_on, left_by_branches
from srcdiff.frontend.interpreter.instances import call_special
from srcdiff.frontend.interpreter.iteration import (
    drained,
    fold_elements,
    for_each,
    has_known_length,
    iteration_over,
    known_length,
    of_its_own,
    unpacked,
)
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.lazy_arrays import elementwise, known_elements, lengths_of
from srcdiff.frontend.interpreter.list_storage import append, contents_of_list, new_list
from srcdiff.frontend.interpreter.lists import list_extend
from srcdiff.frontend.interpreter.made_dictionaries import (
    dictionary_of_pairs,
    is_table,
    made_dictionary,
    table_of_pairs,
)
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.number_kinds import is_pythons, numpys_own, pythons_own, unheld, wrapped
from srcdiff.frontend.interpreter.numbers import as_integer, as_number, is_array, truth_of
from srcdiff.frontend.interpreter.presence import checked, needed
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.tables import handles, marked
from srcdiff.ir.nodes import Slice, Value
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar
from srcdiff.library import operators

_WRITE_OUT = "write the dictionary out: `{key: value}`"


def call_stop_gradient(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    if isinstance(x, Static):
        return x
    if isinstance(x, Group):
        return x.remade(call_stop_gradient(reader, node, i) for i in x.items)
    if isinstance(x, List):
        handle = new_list(reader, ())
        list_extend(reader, node, handle, x)
        found = contents_of_list(reader, handle)
        if isinstance(found, Items):
            return new_list(reader, tuple(call_stop_gradient(reader, node, i) for i in found.items))
        return list_without_gradient(reader, handle, node)
    if is_array(x):
        dtype = x.dtype if isinstance(x, Lazy) else as_value(reader, x).array.dtype
        made = elementwise(reader, (x,), lambda v: call_stop_gradient(reader, node, v[0]), dtype, node)
        if isinstance(made, Lazy) and isinstance(x, Value):
            made.view_of = x
        return made
    return reader.apply("stop_gradient", as_number(reader, x, node))


@marked("__srcdiff_stop_gradient__", lazy=True)
def stop_gradient_row(reader: Reader, target: Any, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    return run_handler(reader, call_stop_gradient, "stop_gradient", node, *args, **keywords)


def list_without_gradient(reader: Reader, handle: List, node: ast.AST) -> Abstract:
    """A copy of a list of numbers that are constants."""
    found = iteration_over(reader, handle, node)
    assert isinstance(found, Iteration)
    fresh = new_list(reader, ())
    for_each(reader, node, found, lambda item: append(reader, fresh, call_stop_gradient(reader, node, item), node))
    return fresh


@handles(range)
def call_range(reader: Reader, node: ast.AST, *args: Abstract) -> Abstract:
    if not 1 <= len(args) <= 3:
        reader.refuse("SD304", node, "`range` takes one to three arguments")
    needs = "`range` needs integers"
    if any(isinstance(a, Static) and not isinstance(a.value, int) for a in args):
        reader.refuse("SD203", node, needs, help_="convert with `int(...)`")
    args = tuple(a if isinstance(a, Static) else as_integer(reader, a, node, needs) for a in args)
    start, stop, step = (Static(0), args[0], Static(1)) if len(args) == 1 else (*args, Static(1))[:3]
    if isinstance(step, Static) and step.value == 0:
        reader.refuse("SD203", node, "the step of `range` is zero")
    return Range(start, stop, step)


@handles(numba.prange)
def call_prange(reader: Reader, node: ast.AST, *args: Abstract) -> Abstract:
    """A range whose loop has independent iterations, as the user asserts. Outside of a loop it is a plain range."""
    found = call_range(reader, node, *args)
    return replace(found, parallel=True) if isinstance(found, Range) else found


@handles(len, lazy=True)
def call_len(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    x = forced(reader, x) if isinstance(x, Through | Drawn) else x
    if isinstance(x, Generated):
        reader.refuse("SD203", node, f"{in_words(reader, x)} has no length", help_="make a list of it: `list(...)`")
    match x:
        case Value(type=Array()):
            return reader.dim(x, 0)
        case Lazy():
            return lengths_of(reader, x)[0]
        case Static() if hasattr(x.value, "__len__"):
            return Static(len(x.value))
        case Static() | Text() | Value():
            reader.refuse("SD203", node, f"{in_words(reader, x)} has no length that is known at compile time")
    found = iteration_over(reader, x, node)
    if not isinstance(found, Iteration):
        return Static(len(found))
    if isinstance(found.length, Value):
        reader.naturals.add(found.length)
        if not isinstance(x, Range):  # a range needs no memory for its elements
            reader.a_length(found.length)
    return found.length


@handles(enumerate, consumes=True)
def call_enumerate(reader: Reader, node: ast.AST, of: Abstract, start: Abstract = Static(0)) -> Abstract:
    return Enumerate(of_its_own(reader, of), start)


@handles(zip, consumes=True)
def call_zip(reader: Reader, node: ast.AST, *of: Abstract, strict: Abstract = Static(False)) -> Abstract:
    is_strict = bool(known_value(reader, strict, "`strict`", node))
    return Zip(tuple(map(functools.partial(of_its_own, reader), of)), is_strict)


@handles(reversed)
def call_reversed(reader: Reader, node: ast.AST, of: Abstract) -> Abstract:
    return Reversed(of)


@handles(tuple, consumes=True)
def call_tuple(reader: Reader, node: ast.AST, of: Abstract = Tuple(())) -> Abstract:
    of = drained(reader, of, node)
    if isinstance(of, List) and isinstance(contents_of_list(reader, of), Items):
        return Tuple(unpacked(reader, of, node))
    found = iteration_over(reader, of, node)
    if not isinstance(found, Iteration):
        return Tuple(found)
    known = known_length(reader, found)
    if known is not None:
        return Tuple(tuple(found.element(Static(k)) for k in range(known)))
    handle = list_of_iteration(reader, found, node)
    reader.tuples.add(handle)
    return handle


@handles(list, consumes=True)
def call_list(reader: Reader, node: ast.AST, of: Abstract = Tuple(())) -> Abstract:
    found = iteration_over(reader, of, node)
    if not isinstance(found, Iteration):
        return new_list(reader, found)
    if isinstance(found.length, Static) and found.length.value <= 16:
        return new_list(reader, tuple(found.element(Static(k)) for k in range(found.length.value)))
    return list_of_iteration(reader, found, node)


def list_of_iteration(reader: Reader, found: Iteration, node: ast.AST) -> List:
    """A new list of elements whose number is known at run time."""
    handle = new_list(reader, ())
    for_each(reader, node, found, lambda item: append(reader, handle, item, node))
    return handle


@handles(set, frozenset, consumes=True)
def call_set(reader: Reader, node: ast.AST, of: Abstract = Tuple(())) -> Abstract:
    if isinstance(of, Static) and isinstance(of.value, frozenset):
        return of
    return constant_set(reader, unpacked(reader, of, node), node)


@handles(dict, consumes=True)
def call_dict(reader: Reader, node: ast.AST, /, *of: Abstract, **items: Abstract) -> Abstract:
    """`dict(other, name=value)`, or of pairs."""
    of = tuple(needed(reader, x, node) for x in of)
    if len(of) == 1 and is_table(of[0]):
        of = (call_special(reader, of[0], "items", [], node),)
    if len(of) == 1 and not isinstance(of[0], Record):
        if not items and not has_known_length(reader, of[0], node):
            if KeysAtRunTime(node) not in reader.stateful:
                raise IsWritten(KeysAtRunTime(node))
            return table_of_pairs(reader, of[0], node)
        pairs = [unpacked(reader, pair, node) for pair in unpacked(reader, of[0], node)]
        if any(len(pair) != 2 for pair in pairs):
            reader.refuse("SD102", node, "a dictionary is made of pairs", help_=_WRITE_OUT)
        made = dictionary_of_pairs(reader, [(pair[0], pair[1]) for pair in pairs], node, node)
        if not items:
            return made
        of = (as_mapping(reader, made) if not isinstance(made, Record) else made,)
    if of and not (len(of) == 1 and isinstance(of[0], Record) and of[0].kind.is_mapping):
        reader.refuse("SD102", node, f"a dictionary of {in_words(reader, of[0])} is not supported", help_=_WRITE_OUT)
    found: dict[str | int | enum.Enum, Abstract] = {}
    for other in of:
        assert isinstance(other, Record)
        found |= dict(zip(other.kind.names, other.items, strict=True))
    found.update(items)
    return made_dictionary(reader, found, node, node)


@handles(slice)
def call_slice(reader: Reader, node: ast.AST, *parts: Abstract) -> Abstract:
    start, stop, step = (Static(None), *parts, Static(None))[:3] if len(parts) == 1 else (*parts, Static(None))[:3]

    def part(x: Abstract) -> Value | None:
        return None if is_none(x) else as_integer(reader, x, node)

    return Slice(part(start), part(stop), part(step))


@handles(sum, consumes=True)
def call_sum(reader: Reader, node: ast.AST, of: Abstract, start: Abstract = Static(0)) -> Abstract:
    if is_array_value(of) and of.array.rank > 1:
        return binary(reader, ast.Add, start, call_named(reader, "sum", node, of, Static(0)), node)
    return fold_elements(reader, node, of, start, lambda a, b: binary(reader, ast.Add, a, b, node))


@handles(math.prod, consumes=True)
def call_prod(reader: Reader, node: ast.AST, of: Abstract, *, start: Abstract = Static(1)) -> Abstract:
    return fold_elements(reader, node, of, start, lambda a, b: binary(reader, ast.Mult, a, b, node))


@handles(math.fsum, consumes=True)
def call_fsum(reader: Reader, node: ast.AST, of: Abstract) -> Abstract:
    return call_sum(reader, node, of, Static(0.0))


def smallest(
    reader: Reader, node: ast.AST, args: tuple[Abstract, ...], op: ast.cmpop, key: Abstract, default: Abstract
) -> Abstract:
    """`min` or `max`: the first of the best elements. The key is called once for each element."""
    if not (isinstance(key, Static) and isinstance(key.value, types.BuiltinFunctionType | types.NoneType)):
        args = tuple(forced(reader, x) for x in args)  # calls of an iterator's function and of the key would interleave
    of = drained(reader, args[0], node) if len(args) == 1 else Tuple(args)
    found = iteration_over(reader, of, node)
    length = found.length if isinstance(found, Iteration) else Static(len(found))
    if default is not MISSING and len(args) > 1:
        reader.refuse("SD304", node, "`default` is allowed with a single sequence only, not with several arguments")
    if default is MISSING or (isinstance(length, Static) and length.value > 0):
        return best_of(reader, node, of, op, key)
    if isinstance(length, Static):
        return default
    choice = (reader.frame.number, "%choice")

    def side(result: Callable[[], Abstract]) -> None:
        reader.cells[choice] = result()

    some = reader.apply("greater", as_value(reader, length), reader.const(0))
    branch_on(reader, some, lambda: side(lambda: best_of(reader, node, of, op, key)), lambda: side(lambda: default))
    return checked(reader, left_by_branches(reader, choice), "the result", node)


def best_of(reader: Reader, node: ast.AST, of: Abstract, op: ast.cmpop, key: Abstract) -> Abstract:
    if is_none(key):
        return fold_elements(
            reader, node, of, None, lambda a, b: one_of(reader, compare(reader, op, b, a, node), b, a, node)
        )

    def measured(x: Abstract) -> Tuple:
        return Tuple((forced(reader, call_value(reader, key, [x], node)), x))

    def better(a: Abstract, b: Abstract) -> Abstract:
        assert isinstance(a, Tuple)
        other = measured(b)
        return one_of(reader, compare(reader, op, other.items[0], a.items[0], node), other, a, node)

    result = fold_elements(reader, node, of, None, better, measured)
    assert isinstance(result, Tuple)
    return result.items[1]


def one_of(reader: Reader, test: Abstract, a: Abstract, b: Abstract, node: ast.AST) -> Abstract:
    """`a if test else b`, with both values computed."""
    if isinstance(test, Static):
        return a if test.value else b
    if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items) and a.kind is b.kind:
        return Tuple(tuple(one_of(reader, test, x, y, node) for x, y in zip(a.items, b.items, strict=True)), a.kind)
    if a is b:
        return a
    if is_single_number(a) and is_single_number(b):
        first, second = as_number(reader, a, node), as_number(reader, b, node)
        chosen = reader.apply("where", as_value(reader, test), first, second)
        return pythons_own(reader, chosen) if is_pythons(reader, a) and is_pythons(reader, b) else chosen
    choice = (reader.frame.number, "%choice")

    def side(x: Abstract) -> None:
        reader.cells[choice] = x

    branch_on(reader, as_value(reader, test), lambda: side(a), lambda: side(b))
    return checked(reader, left_by_branches(reader, choice), "the result", node)


def is_single_number(x: Abstract) -> bool:
    if isinstance(x, Value):
        return isinstance(x.type, Scalar)
    return isinstance(x, Static) and isinstance(x.value, bool | int | float)


def _smallest(op: ast.cmpop) -> Callable[..., Abstract]:
    def call(
        reader: Reader, node: ast.AST, *args: Abstract, key: Abstract = Static(None), default: Abstract = MISSING
    ) -> Abstract:
        return smallest(reader, node, args, op, key, default)

    return call


handles(max, consumes=True)(_smallest(ast.Gt()))
handles(min, consumes=True)(_smallest(ast.Lt()))


def _truths(primitive: str, start: bool, of_iterators: Callable[..., Any]) -> Callable[..., Abstract]:
    """`any` or `all`. Iterators end at the first element that decides."""

    def call(reader: Reader, node: ast.AST, of: Abstract) -> Abstract:
        if isinstance(of, Through | Generated):
            return call_value(reader, Static(of_iterators), [of], node)
        truths = [truth_of(reader, x, node) for x in known_elements(reader, of) or () if isinstance(x, Static)]
        known = [x.value for x in truths if isinstance(x, Static)]
        if known and len(known) == len(known_elements(reader, of) or ()):
            return Static((all if start else any)(known))
        return fold_elements(reader, node, of, Static(start), lambda a, b: both(reader, a, b, node))

    def both(reader: Reader, a: Abstract, b: Abstract, node: ast.AST) -> Value:
        truths = [truth_of(reader, x, node) for x in (a, b)]
        return reader.apply(primitive, *(as_value(reader, x) for x in truths))

    return call


handles(any, consumes=True)(_truths("logical_or", False, operators.any_of))
handles(all, consumes=True)(_truths("logical_and", True, operators.all_of))


@handles(round)
def call_round(reader: Reader, node: ast.AST, x: Abstract, ndigits: Abstract = Static(None)) -> Abstract:
    if is_none(ndigits):
        return reader.cast(reader.apply("rint", whole_number(reader, x, node)), INT)
    return reader.apply("round", reader.cast(as_number(reader, x, node), FLOAT), as_integer(reader, ndigits, node))


def whole_number(reader: Reader, x: Abstract, node: ast.AST) -> Value:
    """A number, converted to an integer."""
    number = as_number(reader, x, node)
    before_rounding(reader, number)
    return reader.cast(number, FLOAT)


def _rounded(primitive: str) -> Callable[..., Abstract]:
    return lambda reader, node, x: reader.cast(reader.apply(primitive, whole_number(reader, x, node)), INT)


handles(math.floor)(_rounded("floor"))
handles(math.ceil)(_rounded("ceil"))


def converted_to(reader: Reader, x: Abstract, to: Scalar, node: ast.AST) -> Abstract:
    """A number or an array, converted to another type."""
    if is_array(x):
        return call_astype(reader, node, x, Static(to.dtype))
    return numpys_own(reader, unheld(reader, reader.cast(as_number(reader, x, node), to)))


def conversion(to: Scalar) -> Callable[..., Abstract]:
    return lambda reader, node, x: converted_to(reader, x, to, node)


handles(np.float32)(conversion(Scalar("float32")))
handles(np.float64)(conversion(FLOAT))
handles(np.int64)(conversion(INT))
handles(np.bool_)(conversion(BOOL))


@handles(np.int32)
def call_int32(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    """A number converted to 32 bits. Thread indices have 32 bits."""
    if is_array(x):
        return call_astype(reader, node, x, Static("int32"))
    value = as_number(reader, converted_to(reader, x, INT, node), node)
    return value if reader.is_kernel else numpys_own(reader, wrapped(reader, value, "int32"))


@handles(divmod)
def call_divmod(reader: Reader, node: ast.AST, a: Abstract, b: Abstract) -> Abstract:
    return Tuple((binary(reader, ast.FloorDiv, a, b, node), binary(reader, ast.Mod, a, b, node)))
