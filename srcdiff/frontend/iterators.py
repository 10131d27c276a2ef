"""Lazy iterators, sorting, and higher-order functions.

`map` and `filter` are never lists: their functions are called when an element is needed, between the iterations of a
loop, so they see the changes of earlier iterations.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

from srcdiff.frontend.abstract_values import (
    Abstract,
    Drawn,
    Items,
    Iteration,
    List,
    Partial,
    Static,
    Stored,
    Through,
    Tuple,
    Zip,
    arrays_in,
    is_of_numbers,
)
from srcdiff.frontend.builtin_functions import Builtins
from srcdiff.frontend.environment import list_key
from srcdiff.ir.nodes import Block, Call, Operation, Slice, Store, Value, walk
from srcdiff.ir.types import Array
from srcdiff.library import operators, sorting

AS_LIST = "convert it to a list: `list(...)`"
_NONE = Static(None)
_MOST_KNOWN = 16  # elements of a list that are kept apart, so that their number stays known


class Iterators(Builtins):
    """Reads `map`, `filter`, `sorted`, `functools` and `itertools`."""

    def call_map(self, node: ast.AST, function: Abstract, *of: Abstract) -> Abstract:
        if len(of) == 1:
            return Through("map", function, of[0], node)
        return Through("starmap", function, Zip(tuple(self.forced(x) for x in of)), node)

    def call_starmap(self, node: ast.AST, function: Abstract, of: Abstract) -> Abstract:
        return Through("starmap", function, of, node)

    def call_filter(self, node: ast.AST, function: Abstract, of: Abstract) -> Abstract:
        return Through("filter", function, of, node)

    def let_through(self, x: Through, item: Abstract, body: Callable[[Abstract], None]) -> None:
        """What comes of an element: the function's value of it, or the element itself if it stays."""
        if x.how != "filter":
            args = self.unpacked(item, x.node) if x.how == "starmap" else (item,)
            body(self.forced(self.call_value(x.function, list(args), x.node)))
            return
        answer = item if x.function == _NONE else self.forced(self.call_value(x.function, [item], x.node))
        truth = self.truth(answer, x.node)
        if isinstance(truth, Value):
            self.branch_on(truth, lambda: body(item), lambda: None)
        elif truth.value:
            body(item)

    def peeled(self, x: Abstract, body: Callable[[Abstract], None]) -> tuple[Abstract, Callable[[Abstract], None]]:
        """What `map` and `filter` go through, and what then happens to its elements."""
        while isinstance(x, Through):
            body = self.after(x, body)
            x = x.of
        return x, body

    def after(self, x: Through, body: Callable[[Abstract], None]) -> Callable[[Abstract], None]:
        return lambda item: self.let_through(x, item, body)

    def go_through(self, node: ast.AST, x: Abstract, body: Callable[[Abstract], None], written_out: int = 0) -> None:
        """All elements, one after the other; what is known to be as short as that is written out."""
        x, body = self.peeled(x, body)
        with_reads = x if isinstance(x, Drawn) else None
        found = self.iteration(x, node)
        if isinstance(found, Iteration) and isinstance(found.length, Static) and found.length.value <= written_out:
            found = tuple(found.element(Static(k)) for k in range(found.length.value))
        before, start = dict(self.names), len(self.operations)
        if isinstance(found, Iteration):
            self.for_each(node, found, self.watching_lengths(x, found, body, node))
        else:
            path, body = self.path, self.watching_items(x, found, body, node)
            for k, item in enumerate(found):
                self.path = (*path, k)
                body(item)
            self.path = path
        if with_reads is not None:
            self.nothing_changed(with_reads, before, self.operations[start:])

    def nothing_changed(self, x: Drawn, before: dict[Any, Abstract], operations: list[Operation]) -> None:
        """An iterator that reads as it goes must find what was there at the start."""
        lists = [y for y in x.reads if isinstance(y, List)]
        changed = any(self.names.get(list_key(y)) is not before.get(list_key(y)) for y in lists)
        arrays = [a for y in x.reads for a in arrays_in(before[list_key(y)] if isinstance(y, List) else y)]
        for operation in walk(Block(tuple(operations))):
            written = isinstance(operation, Store) and not all(self.is_apart(operation.array, a) for a in arrays)
            changed = changed or written or (bool(arrays) and isinstance(operation, Call))
        if changed:
            self.refuse("SD206", None, f"the argument of `{x.name}` changes while it is iterated", help_=AS_LIST)

    def is_apart(self, written: Value, array: Value) -> bool:
        """Whether no element is both; nothing but one list is in what a list is stored in."""
        if written in self.storage or array in self.storage:
            return written is not array
        return self.disjoint(written, array)

    def drained(self, x: Abstract, node: ast.AST) -> Abstract:
        """An iterator as the list of what it gives; anything else as it is."""
        if isinstance(x, Drawn):
            return x.items
        if not isinstance(x, Through):
            return x
        handle = self.new_list(())
        self.go_through(x.node, x, lambda item: self.append(handle, item, x.node))
        return handle

    def call_len(self, node: ast.AST, x: Abstract) -> Abstract:
        return super().call_len(node, self.forced(x) if isinstance(x, Through | Drawn) else x)

    def call_enumerate(self, node: ast.AST, of: Abstract, start: Abstract = Static(0)) -> Abstract:  # noqa: B008
        return super().call_enumerate(node, self.of_its_own(of), start)

    def call_zip(self, node: ast.AST, *of: Abstract, strict: Abstract = Static(False)) -> Abstract:  # noqa: B008
        return super().call_zip(node, *map(self.of_its_own, of), strict=strict)

    def of_its_own(self, x: Abstract) -> Abstract:
        """What an iterator gives that reads nothing as it goes."""
        return x.items if isinstance(x, Drawn) and not x.reads else self.forced(x)

    def call_any(self, node: ast.AST, of: Abstract) -> Abstract:
        return self.call_value(Static(operators.any_of), [of], node) if _is_late(of) else super().call_any(node, of)

    def call_all(self, node: ast.AST, of: Abstract) -> Abstract:
        return self.call_value(Static(operators.all_of), [of], node) if _is_late(of) else super().call_all(node, of)

    # -- orders ------------------------------------------------------------------------------------------------------

    def call_sorted(
        self,
        node: ast.AST,
        of: Abstract,
        /,
        *,
        key: Abstract = _NONE,
        reverse: Abstract = Static(False),  # noqa: B008
    ) -> Abstract:
        handle = self.call_list(node, of)
        assert isinstance(handle, List)
        self.sort_list(handle, key, reverse, node)
        return handle

    def list_sort(
        self,
        node: ast.AST,
        owner: List,
        *,
        key: Abstract = _NONE,
        reverse: Abstract = Static(False),  # noqa: B008
    ) -> Abstract:
        self.sort_list(owner, key, reverse, node)
        return _NONE

    def sort_list(self, handle: List, key: Abstract, reverse: Abstract, node: ast.AST) -> None:
        """Sort a list by its keys, each computed once, in order; the sort is stable."""
        if self.is_row(handle):
            self.as_own(handle, lambda own: self.list_sort(node, own, key=key, reverse=reverse))
            return
        keys = handle
        if key != _NONE:
            keys = self.new_list(())
            self.go_through(node, handle, lambda item: self.append(keys, self.call_value(key, [item], node), node))
        found, by = self.holding(handle), self.holding(keys)
        if isinstance(found, Items) and len(found.items) < 2:
            return
        known = _known_keys(by.items) if isinstance(found, Items) and isinstance(by, Items) else None
        if isinstance(found, Items) and known is not None:
            self.names[list_key(handle)] = Items(self.in_known_order(found.items, known, reverse, node))
            return
        order = self.order_of(self.stored(keys), reverse, node)
        picked = self.in_this_order(handle, order, node)
        if isinstance(found, Items) and len(found.items) <= _MOST_KNOWN:
            elements = self.as_iteration(picked).element
            self.names[list_key(handle)] = Items(tuple(elements(Static(k)) for k in range(len(found.items))))
        else:
            self.names[list_key(handle)] = self.names[list_key(picked)]

    def in_known_order(
        self, items: tuple[Abstract, ...], keys: list[Any], reverse: Abstract, node: ast.AST
    ) -> tuple[Abstract, ...]:
        if not isinstance(reverse, Static):
            self.refuse("SD205", node, "`reverse` must be known at compile time")
        try:
            order = sorted(range(len(items)), key=keys.__getitem__, reverse=bool(reverse.value))
        except TypeError as error:
            self.refuse("SD203", node, str(error))
        return tuple(items[k] for k in order)

    def order_of(self, keys: Stored, reverse: Abstract, node: ast.AST) -> Value:
        """The places of the elements in their order."""
        if not is_of_numbers(keys.element):
            message = "arrays cannot be ordered, and the order of these lists is not known here"
            self.refuse("SD203", node, message, help_="pass a `key` that returns a number")
        columns: list[Abstract] = [self.view(a, (Slice(None, keys.length, None),)) for a in keys.arrays]
        order = self.forced(self.call_value(Static(sorting.order_of_keys), [Tuple(tuple(columns)), reverse], node))
        assert isinstance(order, Value)
        return order

    def in_this_order(self, handle: List, order: Value, node: ast.AST) -> List:
        """A new list of the elements at these places."""
        stored = self.stored(handle)
        elements = self.as_iteration(handle).element
        if not is_of_numbers(stored.element):
            picked = self.new_list(())
            places = Iteration(stored.length, lambda k: self.load(order, (self.value(k),)))
            self.for_each(node, places, lambda place: self.append(picked, elements(place), node))
            return picked
        arrays = tuple(self.alloc(a.array.dtype, (stored.length,), None) for a in stored.arrays)

        def iteration(k: Abstract) -> None:
            place = self.load(order, (self.value(k),))
            for source, array in zip(stored.arrays, arrays, strict=True):
                self.store(array, (self.value(k),), self.load(source, (place,)))

        self.for_each(node, Iteration(stored.length, lambda k: k), iteration)
        return self.new_list(Stored(stored.element, arrays, stored.length))

    # -- functions of functions --------------------------------------------------------------------------------------

    def call_reduce(self, node: ast.AST, function: Abstract, of: Abstract, *initial: Abstract) -> Abstract:
        if len(initial) > 1:
            self.refuse("SD304", node, "`reduce` takes two or three arguments")
        if isinstance(of, Through) and not _is_builtin(function):
            of = self.forced(of)  # calls of the two functions would alternate
        step = self.applying(function, node)
        empty = (TypeError, "reduce() of empty iterable with no initial value")
        return self.fold(node, of, initial[0] if initial else None, step, when_empty=empty)

    def applying(self, function: Abstract, node: ast.AST) -> Callable[[Abstract, Abstract], Abstract]:
        return lambda a, b: self.forced(self.call_value(function, [a, b], node))

    def call_partial(self, node: ast.AST, function: Abstract, /, *args: Abstract, **keywords: Abstract) -> Abstract:
        return Partial(function, args, keywords)

    def call_itemgetter(self, node: ast.AST, *positions: Abstract) -> Abstract:
        if len(positions) == 1:
            return Partial(Static(operators.item_at), positions, {})
        return Partial(Static(operators.items_at), (Tuple(positions),), {})

    # -- itertools ---------------------------------------------------------------------------------------------------

    def call_product(self, node: ast.AST, *of: Abstract, repeat: Abstract = Static(1)) -> Abstract:  # noqa: B008
        if not isinstance(repeat, Static):
            self.refuse("SD205", node, "`repeat` must be known at compile time")
        groups = tuple(self.indexable(x, node) for x in of) * repeat.value
        if not 1 <= len(groups) <= 4:
            self.refuse("SD102", node, f"`product` of {len(groups)} sequences is not supported", help_=_LOOPS)
        return self.drawn("product", self.call_value(Static(operators.products), [Tuple(groups)], node))

    def call_combinations(self, node: ast.AST, iterable: Abstract, r: Abstract) -> Abstract:
        return self.chosen_from("combinations", iterable, r, operators.combinations, node)

    def call_permutations(self, node: ast.AST, iterable: Abstract, r: Abstract) -> Abstract:
        return self.chosen_from("permutations", iterable, r, operators.permutations, node)

    def chosen_from(self, name: str, of: Abstract, length: Abstract, function: Any, node: ast.AST) -> Abstract:
        if not (isinstance(length, Static) and length.value in (1, 2, 3)):
            self.refuse("SD102", node, f"`{name}` is supported for the lengths 1, 2 and 3 only", help_=_LOOPS)
        return self.drawn(name, self.call_value(Static(function), [self.indexable(of, node), length], node))

    def call_pairwise(self, node: ast.AST, of: Abstract) -> Abstract:
        items = self.call_value(Static(operators.pairs), [self.indexable(of, node)], node)
        return self.drawn("pairwise", items, of)

    def call_chain(self, node: ast.AST, *of: Abstract) -> Abstract:
        handle, path = self.new_list(()), self.path
        for k, x in enumerate(of):
            self.path = (*path, k)
            self.go_through(node, self.forced(x), lambda item: self.append(handle, item, node))
        self.path = path
        return self.drawn("chain", handle, *of)

    def call_accumulate(
        self,
        node: ast.AST,
        iterable: Abstract,
        func: Abstract = _NONE,
        *,
        initial: Abstract = _NONE,
    ) -> Abstract:
        handle = self.new_list(())
        function = Static(operators.add) if func == _NONE else func
        if not isinstance(func, Static) or isinstance(func.value, types.FunctionType):
            # between the iterations of a loop it might see what they change
            self.refuse("SD102", node, "`accumulate` with a custom function is not supported", help_="write the loop")

        def noted(x: Abstract) -> Abstract:
            self.append(handle, x, node)
            return x

        def add_up() -> None:
            start = None if initial == _NONE else noted(initial)
            step = self.applying(function, node)
            self.fold(node, iterable, start, lambda a, b: noted(step(a, b)), noted)

        found = self.iteration(iterable, node)
        length = found.length if isinstance(found, Iteration) else Static(len(found))
        if initial != _NONE or (isinstance(length, Static) and length.value > 0):
            add_up()
        elif not isinstance(length, Static):
            some = self.apply("greater", self.value(length), self.const(0))
            self.branch_on(some, add_up, lambda: None)
        return self.drawn("accumulate", handle, iterable)

    def indexable(self, x: Abstract, node: ast.AST) -> Abstract:
        """The sequence, or a list of what comes."""
        is_array = isinstance(x, Value) and isinstance(x.type, Array)
        return x if isinstance(x, Tuple | List) or is_array else self.call_list(node, x)

    def drawn(self, name: str, items: Abstract, *reads: Abstract) -> Drawn:
        assert isinstance(items, List)
        return Drawn(name, items, tuple(x for x in reads if not isinstance(x, Drawn)))


_LOOPS = "write nested loops"


def _is_builtin(function: Abstract) -> bool:
    return isinstance(function, Static) and isinstance(function.value, types.BuiltinFunctionType)


def _is_late(x: Abstract) -> bool:
    return isinstance(x, Through)


def _known_keys(keys: tuple[Abstract, ...]) -> list[Any] | None:
    """Keys that are constants, or tuples whose first items are and decide: `sorted(dictionary.items())`."""
    constants = [k.value for k in keys if isinstance(k, Static)]
    if len(constants) == len(keys):
        return constants
    first = [k.items[0] for k in keys if isinstance(k, Tuple) and k.items]
    constants = [k.value for k in first if isinstance(k, Static)]
    distinct = len(set(map(repr, constants))) == len(keys) and all(isinstance(k, str) for k in constants)
    return constants if distinct else None
