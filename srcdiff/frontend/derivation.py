"""The requested derivative, and its requirements: floats to differentiate by, and a result that is one number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

from srcdiff.diagnostics import DifferentiationError, ListsInJacobianError, Problem, Span
from srcdiff.diagnostics.naming_objects import named
from srcdiff.frontend.domain.abstract_values import Abstract, Items, List, Record, Static, Stored, Tuple, is_array_value
from srcdiff.frontend.domain.lattice import is_computed
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import FLOAT, Array, is_complex, is_inexact, widest
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.structures import Layout
from srcdiff.signature.trees import NODES

Lists = Mapping[List, Stored]
"""The storage of lists among the arguments."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """The requested derivative of a function."""

    mode: str
    wrt: tuple[str, ...]
    with_value: bool = False
    has_aux: bool = False
    single: bool = True
    jacobian: bool = False
    """Whether all tangents or all pullbacks are requested. An empty mode means the one with fewer sweeps."""
    directions: int | None = None
    holomorphic: bool = False
    """Whether the Jacobian consists of complex derivatives, instead of pairs."""

    @property
    def takes(self) -> int:
        """The number of arguments besides those of the function."""
        return len(self.wrt) if self.mode == "forward" and not self.jacobian else 0


# -- arguments ---------------------------------------------------------------------------------------------------------


def leaves(x: Abstract, lists: Lists) -> list[Value]:
    """The values in an argument; for a list, the arrays of its storage."""
    return [leaf for leaf in NODES.leaves(_contents(x, lists)) if isinstance(leaf, Value)]


def floats_in(name: str, argument: Abstract, lists: Lists, span: Span | None) -> list[Value]:
    """The floats in an argument, to differentiate by."""
    values = [v for v in leaves(argument, lists) if is_inexact(v.type)]
    if not values:
        what = f"`{name}` holds no floats, so it has no derivative"
        if is_array_value(argument):
            what = f"`{name}` is an array of {argument.array.dtype}, so it has no derivative"
        help_ = (
            f"pass `{name}` as floats: `.astype(float)`" if "array" in what else "choose another argument with `wrt=`"
        )
        raise DifferentiationError([Problem("SD402", what, span, help=help_)])
    return values


def tangent_beside(argument: Abstract, lists: Lists, name: str) -> Abstract:
    """The tangent of an argument: a new value for each float in it."""
    return beside(_contents(argument, lists), iter(leaves(argument, lists)), name)


def beside(x: Abstract, values: Iterator[Value], name: str) -> Abstract:
    """A structure like `x`, with a new value for each float."""

    names = NODES.named(x, name, Layout.variable)

    def leaf(x: Abstract) -> Abstract:
        name = next(names).name
        if isinstance(x, Stored):
            return Tuple(tuple(new(name) for _ in (*x.arrays, x.length)))
        return new(name) if is_computed(x) else Static(None)

    def new(name: str) -> Abstract:
        type_ = next(values).type
        return Value(type_ if isinstance(type_, Array) else widest(type_), name) if is_inexact(type_) else Static(None)

    return NODES.fold(x, leaf, lambda _, items: Tuple(tuple(items)))


def _contents(x: Abstract, lists: Lists) -> Abstract:
    """An argument, with its lists replaced by their storage."""

    def visit(leaf: Abstract) -> Abstract:
        if not isinstance(leaf, List):
            return leaf
        return Tuple(lists[leaf].arrays) if leaf in lists else Static(None)

    return NODES.map(visit, x)


# -- results -----------------------------------------------------------------------------------------------------------


def require_number(result: Abstract, has_aux: bool, span: Span | None) -> None:
    """Refuse a result that is not a single float, because it has no gradient."""

    def refuse(message: str, help_: str = "") -> NoReturn:
        raise DifferentiationError([Problem("SD401", message, span, help=help_)])

    scalar = result
    if has_aux:
        if not (isinstance(result, Tuple) and len(result.items) == 2):
            refuse("with `has_aux=True` the function must return a pair: the float, and any other value")
        scalar = result.items[0]
    match scalar:
        case Static(value=float() | int()):
            return
        case Value(type=Array()):
            refuse("the result is an array, not one float")
        case Value():
            if is_complex(scalar.type):
                help_ = "return its real part, `.real`, or a norm; `vjp`, `jvp` and `jacobian` take complex results"
                refuse("the result is complex, not one float", help_)
            if not is_inexact(scalar.type):
                kinds = {"int64": "an integer", "bool": "a boolean"}
                refuse(f"the result is {kinds.get(scalar.scalar.dtype, 'not a number')}, not one float")
        case Tuple():
            refuse("the result is a tuple, not one float")
        case Record():
            refuse("the result is a dictionary or a dataclass, not one float")
        case Items() | Stored():
            refuse("the result is a list, not one float")
        case Static():
            refuse(f"the result is {named(scalar.value)}, not one float")
        case _:
            refuse("the result is not a number")


def are_lengths(x: Abstract) -> list[bool]:
    """For each value in a result, whether it is the length of a list."""
    found: list[bool] = []
    for leaf in NODES.leaves(x):
        if isinstance(leaf, Stored):
            found += [*(False for _ in leaf.arrays), True]
        elif is_computed(leaf):
            found.append(False)
    return found


# -- Jacobians ---------------------------------------------------------------------------------------------------------


def refuse_lists_in_jacobian(parts: Iterable[Abstract], span: Span | None) -> None:
    """Refuse lists whose lengths are only known at run time, because a Jacobian needs fixed axes."""
    if any(isinstance(leaf, List | Stored) for x in parts for leaf in NODES.leaves(x)):
        message = "a list with a length known only at run time has no axis in a Jacobian"
        raise ListsInJacobianError([Problem("SD404", message, span, help="use arrays as arguments and results")])


def row_of_jacobian(rank: int, arguments: Sequence[Abstract], single: bool) -> Abstract:
    """The derivatives of a number, or of an array with this many axes: a structure like that of the arguments."""

    def cell(leaf: Abstract) -> Abstract:
        if not (isinstance(leaf, Value) and is_inexact(leaf.type)):
            return Static(None)
        total = rank + (leaf.type.rank if isinstance(leaf.type, Array) else 0)
        return Value(Array("float64", total) if total else FLOAT)

    parts = [NODES.map(cell, x) for x in arguments]
    return parts[0] if single else Tuple(tuple(parts))


def jacobian_form(result: Abstract, yields: Iterable[Value], arguments: Sequence[Abstract], single: bool) -> Abstract:
    """The structure of a Jacobian: that of the result, with a structure like the arguments in place of each float."""
    values = iter(yields)

    def visit(leaf: Abstract) -> Abstract:
        type_ = next(values).type if is_computed(leaf) else None
        if type_ is None or not is_inexact(type_):
            return Static(None)
        return row_of_jacobian(type_.rank if isinstance(type_, Array) else 0, arguments, single)

    return NODES.map(visit, result)
