"""`map`, `filter`, `sorted`, `functools` and `itertools`."""

from __future__ import annotations

import ast
import functools
import itertools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Drawn,
    Generated,
    Items,
    Iteration,
    List,
    Own,
    Partial,
    Static,
    Stored,
    Through,
    Tuple,
    Zip,
    is_array_value,
    is_none,
)
from srcdiff.frontend.domain.lattice import is_of_numbers
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.handlers.builtin_functions import call_list
from srcdiff.frontend.interpreter.evaluation import call_named, call_value, call_with, known_value
from srcdiff.frontend.interpreter.forks import branch_on
from srcdiff.frontend.interpreter.iteration import (
    NONE,
    defines_iterator,
    fold_elements,
    for_each,
    go_through,
    iteration_over,
    steps,
)
from srcdiff.frontend.interpreter.list_elements import as_iteration
from srcdiff.frontend.interpreter.list_storage import (
    append,
    changing,
    contents_of_list,
    is_row,
    new_list,
    stored_contents,
)
from srcdiff.frontend.interpreter.lists import as_own
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.tables import handles, method
from srcdiff.ir.nodes import Slice, Value
from srcdiff.library import operators, sorting

_MOST_KNOWN = 16  # longer lists are stored in arrays


_LOOPS = "write nested loops"


def _is_builtin(function: Abstract) -> bool:
    return isinstance(function, Static) and isinstance(function.value, types.BuiltinFunctionType)


def _known_keys(keys: tuple[Abstract, ...]) -> list[Any] | None:
    """Keys that are constants, or tuples that constant first items order: `sorted(dictionary.items())`."""
    constants = [k.value for k in keys if isinstance(k, Static)]
    if len(constants) == len(keys):
        return constants
    first = [k.items[0] for k in keys if isinstance(k, Tuple) and k.items]
    constants = [k.value for k in first if isinstance(k, Static)]
    distinct = len(set(map(repr, constants))) == len(keys) and all(isinstance(k, str) for k in constants)
    return constants if distinct else None


@handles(map, consumes=True)
def call_map(reader: Reader, node: ast.AST, function: Abstract, *of: Abstract) -> Abstract:
    if len(of) == 1:
        return Through("map", function, of[0], node)
    return Through("starmap", function, Zip(tuple(forced(reader, x) for x in of)), node)


@handles(itertools.starmap, consumes=True)
def call_starmap(reader: Reader, node: ast.AST, function: Abstract, of: Abstract) -> Abstract:
    return Through("starmap", function, of, node)


@handles(filter, consumes=True)
def call_filter(reader: Reader, node: ast.AST, function: Abstract, of: Abstract) -> Abstract:
    return Through("filter", function, of, node)


@handles(sorted, consumes=True)
def call_sorted(
    reader: Reader, node: ast.AST, of: Abstract, /, *, key: Abstract = NONE, reverse: Abstract = Static(False)
) -> Abstract:
    handle = call_list(reader, node, of)
    assert isinstance(handle, List)
    sort_list(reader, handle, key, reverse, node)
    return handle


@method("list", "sort")
def list_sort(
    reader: Reader, node: ast.AST, owner: List, *, key: Abstract = NONE, reverse: Abstract = Static(False)
) -> Abstract:
    sort_list(reader, owner, key, reverse, node)
    return NONE


def sort_list(reader: Reader, handle: List, key: Abstract, reverse: Abstract, node: ast.AST) -> None:
    """Sort a list by its keys, each computed once, in order; the sort is stable."""
    changing(reader, handle, node)
    if is_row(reader, handle):
        as_own(reader, handle, lambda own: list_sort(reader, node, own, key=key, reverse=reverse))
        return
    keys = handle
    if not is_none(key):
        keys = new_list(reader, ())
        go_through(reader, node, handle, lambda item: append(reader, keys, call_value(reader, key, [item], node), node))
    found, by = contents_of_list(reader, handle), contents_of_list(reader, keys)
    if isinstance(found, Items) and len(found.items) < 2:
        return
    known = _known_keys(by.items) if isinstance(found, Items) and isinstance(by, Items) else None
    if isinstance(found, Items) and known is not None:
        reader.cells[handle] = Items(in_known_order(reader, found.items, known, reverse, node))
        return
    order = sorting_order(reader, stored_contents(reader, keys), reverse, node)
    picked = in_this_order(reader, handle, order, node)
    if isinstance(found, Items) and len(found.items) <= _MOST_KNOWN:
        elements = as_iteration(reader, picked).element
        reader.cells[handle] = Items(tuple(elements(Static(k)) for k in range(len(found.items))))
    else:
        reader.cells[handle] = reader.cells[picked]


def in_known_order(
    reader: Reader, items: tuple[Abstract, ...], keys: list[Any], reverse: Abstract, node: ast.AST
) -> tuple[Abstract, ...]:
    is_reversed = bool(known_value(reader, reverse, "`reverse`", node))
    try:
        order = sorted(range(len(items)), key=keys.__getitem__, reverse=is_reversed)
    except TypeError as error:
        reader.refuse("SD203", node, str(error))
    return tuple(items[k] for k in order)


def sorting_order(reader: Reader, keys: Stored, reverse: Abstract, node: ast.AST) -> Value:
    """The indices that sort the elements."""
    if not is_of_numbers(keys.element):
        message = "lists of arrays, and lists of lists with lengths known only at run time, cannot be sorted"
        reader.refuse("SD203", node, message, help_="pass a `key` that returns a number")
    columns: list[Abstract] = [reader.view(a, (Slice(None, keys.length, None),)) for a in keys.arrays]
    order = forced(reader, call_value(reader, Static(sorting.order_of_keys), [Tuple(tuple(columns)), reverse], node))
    assert isinstance(order, Value)
    return order


def in_this_order(reader: Reader, handle: List, order: Value, node: ast.AST) -> List:
    """A new list of the elements at these indices."""
    stored = stored_contents(reader, handle)
    elements = as_iteration(reader, handle).element
    if not is_of_numbers(stored.element):
        picked = new_list(reader, ())
        places = Iteration(stored.length, lambda k: reader.load(order, (as_value(reader, k),)))
        for_each(reader, node, places, lambda place: append(reader, picked, elements(place), node))
        return picked
    arrays = tuple(reader.alloc(a.array.dtype, (stored.length,), None) for a in stored.arrays)

    def iteration(k: Abstract) -> None:
        place = reader.load(order, (as_value(reader, k),))
        for source, array in zip(stored.arrays, arrays, strict=True):
            reader.store(array, (as_value(reader, k),), reader.load(source, (place,)))

    for_each(reader, node, Iteration(stored.length, lambda k: k), iteration)
    return new_list(reader, Stored(stored.element, arrays, stored.length))


@handles(functools.reduce, consumes=True)
def call_reduce(reader: Reader, node: ast.AST, function: Abstract, of: Abstract, *initial: Abstract) -> Abstract:
    if len(initial) > 1:
        reader.refuse("SD304", node, "`reduce` takes two or three arguments")
    if isinstance(of, Through) and not _is_builtin(function):
        of = forced(reader, of)  # calls of the two functions would interleave
    step = applying(reader, function, node)
    empty = (TypeError, "reduce() of empty iterable with no initial value")
    return fold_elements(reader, node, of, initial[0] if initial else None, step, when_empty=empty)


def applying(reader: Reader, function: Abstract, node: ast.AST) -> Callable[[Abstract, Abstract], Abstract]:
    return lambda a, b: forced(reader, call_value(reader, function, [a, b], node))


@handles(functools.partial)
def call_partial(
    reader: Reader, node: ast.AST, function: Abstract, /, *args: Abstract, **keywords: Abstract
) -> Abstract:
    return Partial(function, args, keywords)


@handles(operator.itemgetter)
def call_itemgetter(reader: Reader, node: ast.AST, *positions: Abstract) -> Abstract:
    if len(positions) == 1:
        return Partial(Static(operators.item_at), positions, {})
    return Partial(Static(operators.items_at), (Tuple(positions),), {})


@handles(itertools.product, consumes=True)
def call_product(reader: Reader, node: ast.AST, *of: Abstract, repeat: Abstract = Static(1)) -> Abstract:
    count = known_value(reader, repeat, "`repeat`", node)
    groups = tuple(indexable(reader, x, node) for x in of) * count
    if not 1 <= len(groups) <= 4:
        reader.refuse("SD102", node, f"`product` of {len(groups)} sequences is not supported", help_=_LOOPS)
    return drawn_from("product", call_value(reader, Static(operators.products), [Tuple(groups)], node))


@handles(itertools.combinations, consumes=True)
def call_combinations(reader: Reader, node: ast.AST, iterable: Abstract, r: Abstract) -> Abstract:
    return chosen_from(reader, "combinations", iterable, r, operators.combinations, node)


@handles(itertools.permutations, consumes=True)
def call_permutations(reader: Reader, node: ast.AST, iterable: Abstract, r: Abstract) -> Abstract:
    return chosen_from(reader, "permutations", iterable, r, operators.permutations, node)


def chosen_from(reader: Reader, name: str, of: Abstract, length: Abstract, function: Any, node: ast.AST) -> Abstract:
    if not (isinstance(length, Static) and length.value in (1, 2, 3)):
        reader.refuse("SD102", node, f"`{name}` is supported for the lengths 1, 2 and 3 only", help_=_LOOPS)
    return drawn_from(name, call_value(reader, Static(function), [indexable(reader, of, node), length], node))


@handles(itertools.pairwise)
def call_pairwise(reader: Reader, node: ast.AST, of: Abstract) -> Abstract:
    refuse_generators(reader, node, "pairwise", of)
    items = call_value(reader, Static(operators.pairs), [indexable(reader, of, node)], node)
    return drawn_from("pairwise", items, of)


@handles(iter, consumes=True)
def call_iter(reader: Reader, node: ast.AST, of: Abstract) -> Abstract:
    """The elements are known here. It is checked that they do not change before they are consumed."""
    if isinstance(of, Generated):
        return of
    return drawn_from("iter", call_value(reader, Static(list), [of], node), of)


@handles(next, consumes=True)
def call_next(reader: Reader, node: ast.AST, of: Abstract, *default: Abstract) -> Abstract:
    """The first element of a new generator. The generator cannot be used again."""
    if not isinstance(of, Generated):
        message = "`next` is supported for generators only"
        reader.refuse("SD102", node, message, help_="write a `for` loop with a `break`")
    return call_value(reader, Static(operators.first_of if not default else operators.first_or), [of, *default], node)


@handles(np.fromiter, consumes=True)
def call_fromiter(
    reader: Reader,
    node: ast.AST,
    iter: Abstract,  # noqa: A002 -- NumPy's name
    dtype: Abstract,
    count: Abstract = Static(-1),
) -> Abstract:
    if count != Static(-1):
        reader.refuse("SD102", node, "`np.fromiter` is supported without `count`", help_="leave `count` out")
    return call_with(reader, Own(np.array), [call_list(reader, node, iter)], {"dtype": dtype}, node)


@handles(np.nditer)
def call_nditer(reader: Reader, node: ast.AST, of: Abstract) -> Abstract:
    """The elements in memory order."""
    if not (is_array_value(of) and of in reader.contiguous):
        message = "`np.nditer` is supported for one contiguous array, without options"
        reader.refuse("SD102", node, message, help_="iterate over `a.ravel()`, or `np.ndindex(a.shape)`")
    return call_named(reader, "ravel", node, of)


@handles(itertools.chain)
def call_chain(reader: Reader, node: ast.AST, *of: Abstract) -> Abstract:
    refuse_generators(reader, node, "chain", *of)
    handle = new_list(reader, ())
    for k, x in enumerate(of):
        with reader.within(path=(*reader.path, k)):
            go_through(reader, node, forced(reader, x), lambda item: append(reader, handle, item, node))
    return drawn_from("chain", handle, *of)


@handles(itertools.accumulate)
def call_accumulate(
    reader: Reader, node: ast.AST, iterable: Abstract, func: Abstract = NONE, *, initial: Abstract = NONE
) -> Abstract:
    refuse_generators(reader, node, "accumulate", iterable)
    handle = new_list(reader, ())
    function = Static(operators.add) if is_none(func) else func
    if not isinstance(func, Static) or isinstance(func.value, types.FunctionType):
        # it might observe changes between the iterations of a loop
        reader.refuse("SD102", node, "`accumulate` with a custom function is not supported", help_="write the loop")

    def noted(x: Abstract) -> Abstract:
        append(reader, handle, x, node)
        return x

    def add_up() -> None:
        start = None if is_none(initial) else noted(initial)
        step = applying(reader, function, node)
        fold_elements(reader, node, iterable, start, lambda a, b: noted(step(a, b)), noted)

    found = iteration_over(reader, iterable, node)
    length = found.length if isinstance(found, Iteration) else Static(len(found))
    if not is_none(initial) or (isinstance(length, Static) and length.value > 0):
        add_up()
    elif not isinstance(length, Static):
        some = reader.apply("greater", as_value(reader, length), reader.const(0))
        branch_on(reader, some, add_up, lambda: None)
    return drawn_from("accumulate", handle, iterable)


def indexable(reader: Reader, x: Abstract, node: ast.AST) -> Abstract:
    """The sequence itself, or a list of the elements of an iterator."""
    is_array = is_array_value(x)
    return x if isinstance(x, Tuple | List) or is_array else call_list(reader, node, x)


def refuse_generators(reader: Reader, node: ast.AST, name: str, *of: Abstract) -> None:
    """Refuse generators, because their bodies would run too early: these functions compute all elements first.

    The same holds for the `__iter__` of an instance, which may be a generator or read values that the loop changes.
    """
    if any(steps(x) or defines_iterator(x) for x in of):
        help_ = "use `yield from`" if name == "chain" else "make a list of it: `list(...)`"
        what = "a generator" if any(map(steps, of)) else "an instance with `__iter__`"
        reader.refuse("SD104", node, f"`{name}` of {what} is not supported", help_=help_)


def drawn_from(name: str, items: Abstract, *reads: Abstract) -> Drawn:
    assert isinstance(items, List)
    return Drawn(name, items, tuple(x for x in reads if not isinstance(x, Drawn)))
