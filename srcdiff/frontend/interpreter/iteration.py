"""Iteration: the number of elements of an iterable, and the element at each position."""

from __future__ import annotations

import ast
import enum
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Drawn,
    Each,
    Enumerate,
    Items,
    Iteration,
    List,
    Object,
    Poison,
    Range,
    Record,
    Reversed,
    Static,
    Stored,
    Structured,
    Through,
    Tuple,
    Zip,
    class_of,
    is_array_value,
    is_instance,
    is_none,
)
from srcdiff.frontend.domain.lattice import NOTHING
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import BREAKS, GOES_ON, Cells, Key
from srcdiff.frontend.interpreter.arithmetic import binary
from srcdiff.frontend.interpreter.dictionaries import as_now
from srcdiff.frontend.interpreter.evaluation import call_value, evaluate, evaluate_lazily
from srcdiff.frontend.interpreter.fixed_point import read_loop
from srcdiff.frontend.interpreter.forks import branch_on, fork, leave_by, left_by_branches
from srcdiff.frontend.interpreter.instances import in_class, read_attribute
from srcdiff.frontend.interpreter.joins import possible
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.known_iterations import (
    elements_of_array,
    places_of,
    range_iteration,
    require_same_lengths,
)
from srcdiff.frontend.interpreter.list_elements import as_iteration
from srcdiff.frontend.interpreter.list_storage import append, contents_of_list, new_list, of_numbers
from srcdiff.frontend.interpreter.materialization import AS_LIST, forced
from srcdiff.frontend.interpreter.numbers import is_array, truth_of
from srcdiff.frontend.interpreter.presence import checked, needed
from srcdiff.frontend.interpreter.record_fields import any_field, element_of_records, is_record
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.tables import GOES_THROUGH
from srcdiff.frontend.interpreter.unchanged_iterables import nothing_changed, watching_items, watching_lengths
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array

NONE = Static(None)


def iteration_over(reader: Reader, x: Abstract, node: ast.AST) -> Iteration | tuple[Abstract, ...]:
    """The iteration over a value: at run time, or unrolled if the elements are known one by one."""
    x = needed(reader, x, node)
    if is_instance(x):
        if in_class(class_of(x), "__iter__") is MISSING:
            reader.refuse("SD203", node, f"{in_words(reader, x)} cannot be iterated", help_="define `__iter__`")
        return iteration_over(reader, call_value(reader, read_attribute(reader, x, "__iter__", node), [], node), node)
    x = as_now(reader, forced(reader, drained(reader, x, node)))
    match x:
        case Tuple():
            return x.items
        case Record() if x.kind.is_mapping:
            return tuple(Static(name) for name in x.kind.names)
        case Static(value=str()):
            return tuple(Static(c) for c in x.value)
        case Static(value=enum.EnumType() | enum.Flag()):
            return tuple(Static(member) for member in x.value)
        case Range():
            return range_iteration(reader, x)
        case List():
            contents = contents_of_list(reader, x)
            if isinstance(contents, Items) and (not contents.items or not of_numbers(reader, contents)):
                return contents.items
            if isinstance(contents, Stored) and contents.element == NOTHING:
                return ()
            return as_iteration(reader, x)
        case Structured() if not is_record(x):
            return Iteration(reader.dim(any_field(x), 0), lambda k: element_of_records(reader, x, k))
        case Value(type=Array()):
            return Iteration(reader.dim(x, 0), lambda k: elements_of_array(reader, x, k))
        case Enumerate():
            inner = iteration_over(reader, x.of, node)
            if not isinstance(inner, Iteration):
                numbers = [binary(reader, ast.Add, Static(k), x.start, node) for k in range(len(inner))]
                return tuple(Tuple((n, i)) for n, i in zip(numbers, inner, strict=True))
            found = inner
            return Iteration(
                found.length, lambda k: Tuple((binary(reader, ast.Add, k, x.start, node), found.element(k)))
            )
        case Zip():
            return zip_iteration(reader, x, node)
        case Reversed():
            inner = iteration_over(reader, x.of, node)
            if not isinstance(inner, Iteration):
                return tuple(reversed(inner))
            forward = inner
            last = binary(reader, ast.Sub, forward.length, Static(1), node)
            return Iteration(forward.length, lambda k: forward.element(binary(reader, ast.Sub, last, k, node)))
        case Each():
            return places_of(reader, x)
    reader.refuse("SD203", node, f"{in_words(reader, x)} cannot be iterated")


def stored_iteration(reader: Reader, items: tuple[Abstract, ...], node: ast.AST) -> Iteration:
    """An iterable with known elements, zipped with one of unknown length."""
    return as_iteration(reader, new_list(reader, items))


def rows_of_known(
    reader: Reader, inner: list[Iteration | tuple[Abstract, ...]], count: int, node: ast.AST
) -> tuple[Abstract, ...]:
    """The rows of `zip`, unrolled. Sequences whose length is known at run time must have so many elements."""
    for k, i in enumerate(inner):
        if isinstance(i, Iteration) and known_length(reader, i) is None:
            is_shorter = reader.apply("less", as_value(reader, i.length), reader.const(count))
            told = f"argument {k + 1} of zip() has fewer elements than another argument: srcdiff needs {count}"
            with reader.at(reader.span_of(node)):
                reader.raise_if(is_shorter, ValueError, told)
    columns = [[i.element(Static(k)) for k in range(count)] if isinstance(i, Iteration) else i for i in inner]
    return tuple(Tuple(row) for row in zip(*columns, strict=False))


def zip_iteration(reader: Reader, x: Zip, node: ast.AST) -> Iteration | tuple[Abstract, ...]:
    with reader.within(ends_early=reader.context.ends_early or not x.strict):  # the others may be shorter
        inner = [iteration_over(reader, i, node) for i in x.of]
    limits = [known_length(reader, i) for i in inner]
    if x.strict:
        require_same_lengths(reader, [length_of(reader, i) for i in inner], node)
    if any(not isinstance(i, Iteration) for i in inner) and None not in limits:
        limit = min(k for k in limits if k is not None)
        columns = [
            tuple(i.element(Static(k)) for k in range(limit)) if isinstance(i, Iteration) else i[:limit] for i in inner
        ]
        return tuple(Tuple(row) for row in zip(*columns, strict=True))
    known = [Items(i) for i in inner if not isinstance(i, Iteration)]
    if any(not i.items or not of_numbers(reader, i) for i in known):
        return rows_of_known(reader, inner, min(k for k in limits if k is not None), node)
    parts = [i if isinstance(i, Iteration) else stored_iteration(reader, i, node) for i in inner]
    if not parts:
        return ()
    length, *lengths = [i.length for i in parts]
    for other in () if x.strict else lengths:
        if isinstance(length, Static) and isinstance(other, Static):
            length = Static(min(length.value, other.value))
        elif length is not other:
            a, b = as_value(reader, length), as_value(reader, other)
            length = reader.apply("where", reader.apply("less", b, a), b, a)
    return Iteration(length, lambda k: Tuple(tuple(i.element(k) for i in parts)))


def length_of(reader: Reader, x: Iteration | tuple[Abstract, ...]) -> Abstract:
    known = known_length(reader, x)
    return x.length if known is None and isinstance(x, Iteration) else Static(known)


def for_each(reader: Reader, node: ast.AST, found: Iteration, body: Callable[[Abstract], None], first: int = 0) -> None:
    """A loop over all elements from a start position."""

    def iteration(index: Value | None) -> None:
        assert index is not None
        body(found.element(index))

    bounds = (reader.const(first), as_value(reader, found.length), reader.const(1))
    read_loop(reader, node, None, bounds, None, iteration)


def fold_elements(
    reader: Reader,
    node: ast.AST,
    of: Abstract,
    start: Abstract | None,
    step: Callable[[Abstract, Abstract], Abstract],
    begin: Callable[[Abstract], Abstract] = lambda x: x,
    when_empty: tuple[type[Exception], str] = (ValueError, "the sequence is empty"),
) -> Abstract:
    """`step(...step(step(start, x0), x1)..., xn)` over the elements. Without a start, it begins with `begin(x0)`."""
    keys = ((reader.frame.number, f"%fold{number or ''}") for number in itertools.count())
    key = next(k for k in keys if k not in reader.cells)

    def iteration(item: Abstract) -> None:
        reader.cells[key] = forced(reader, step(reader.cells[key], item))

    if start is not None and steps(of):
        mark = reader.mark()
        reader.cells[key] = forced(reader, start)
        go_through(reader, node, of, iteration)
        result = left_by_branches(reader, key)
        if not isinstance(result, Poison):
            return checked(reader, result, "the result", node)
        reader.go_back(mark)  # it begins with a number to which arrays are added
    found = iteration_over(reader, of, node)
    if isinstance(found, Iteration) and isinstance(found.length, Static) and found.length.value <= 8:
        found = tuple(found.element(Static(k)) for k in range(found.length.value))
    if not isinstance(found, Iteration):
        if start is None and not found:
            reader.refuse("SD203", node, "the sequence is empty")
        result, items = (begin(found[0]), found[1:]) if start is None else (start, found)
        for item in items:
            result = step(result, item)
        return result
    first, done = start, 0 if start is not None else 1
    if first is None:
        empty = reader.apply("less_equal", as_value(reader, found.length), reader.const(0))
        reader.raise_if(empty, *when_empty)
        first = begin(found.element(Static(0)))
    elif starts_arrays(reader, first, found):
        empty = reader.apply("less_equal", as_value(reader, found.length), reader.const(0))
        reader.raise_if(empty, ValueError, "the sequence is empty, so the shape of the result is not known")
        first, done = step(first, found.element(Static(0))), 1
    reader.cells[key] = forced(reader, first)
    for_each(reader, node, found, iteration, done)
    return checked(reader, left_by_branches(reader, key), "the result", node)


def starts_arrays(reader: Reader, start: Abstract, found: Iteration) -> bool:
    """Whether the fold starts with a number to which arrays are added."""
    mark = reader.mark()
    first = found.element(Static(0))
    reader.go_back(mark)
    return is_array(first) and not is_array(start)


def defines_iterator(x: Abstract) -> TypeGuard[Record | Object]:
    """Whether it is an instance of a class with `__iter__`."""
    return is_instance(x) and in_class(class_of(x), "__iter__") is not MISSING


def iterator_of(reader: Reader, x: Abstract, node: ast.AST) -> Abstract:
    """The iterator of a value. For an instance it is the result of `__iter__`, which may be a generator."""
    if isinstance(x, Enumerate | Through):
        return replace(x, of=iterator_of(reader, x.of, node))
    if isinstance(x, Zip):
        return replace(x, of=tuple(iterator_of(reader, of, node) for of in x.of))
    if not defines_iterator(x):
        return x
    found = call_value(reader, read_attribute(reader, x, "__iter__", node), [], node)
    return iterator_of(reader, found if isinstance(found, Through | Drawn) else forced(reader, found), node)


def asked_before_a_generator(x: Abstract) -> Iterator[Abstract]:
    """The sequences of a `zip` whose elements Python reads before it resumes a generator beside them."""
    if isinstance(x, Enumerate | Through):
        yield from asked_before_a_generator(x.of)
    elif isinstance(x, Zip) and any(map(steps, x.of)):
        place = next(k for k, of in enumerate(x.of) if steps(of))
        yield from itertools.chain.from_iterable(map(sequences_in, x.of[:place]))
        yield from asked_before_a_generator(x.of[place])


def sequences_in(x: Abstract) -> Iterator[Abstract]:
    """The sequences that the elements are read from. Rows of arrays are views, and are not read."""
    if isinstance(x, Enumerate | Reversed):
        yield from sequences_in(x.of)
    elif isinstance(x, Zip):
        yield from itertools.chain.from_iterable(map(sequences_in, x.of))
    elif isinstance(x, Drawn):
        yield from (x.items, *x.reads)
    elif isinstance(x, List) or (is_array_value(x) and x.array.rank == 1):
        yield x


def peeled(
    reader: Reader, x: Abstract, body: Callable[[Abstract], None]
) -> tuple[Abstract, Callable[[Abstract], None]]:
    """The sources of `map` and `filter`, and the function to apply to each element."""
    while True:
        if isinstance(x, Through):
            body, x = after_filter(reader, x, body), x.of
        elif isinstance(x, Enumerate) and steps(x.of):
            body, x = after_counting(reader, x, body), x.of
        elif isinstance(x, Zip) and any(map(steps, x.of)):
            x, body = beside_others(reader, x, body)
        else:
            return x, body


def steps(x: Abstract) -> bool:
    """Whether it can only be consumed element by element."""
    inner = (x.of,) if isinstance(x, Through | Enumerate | Reversed) else x.of if isinstance(x, Zip) else ()
    return type(x) in GOES_THROUGH or any(map(steps, inner))


def new_counter(reader: Reader, start: Abstract) -> Key:
    """A variable that counts elements."""
    keys = ((reader.frame.number, f"%count{number or ''}") for number in itertools.count())
    key = next(k for k in keys if k not in reader.cells)
    reader.cells[key] = as_value(reader, start)
    return key


def forget_counters(reader: Reader, before: Cells) -> None:
    """Remove the counters."""
    for key in [
        k for k in reader.state.cells if isinstance(k, tuple) and k[1].startswith("%count") and k not in before
    ]:
        del reader.cells[key]


def after_counting(reader: Reader, x: Enumerate, body: Callable[[Abstract], None]) -> Callable[[Abstract], None]:
    """The use of the elements, with a counter for each."""
    key = new_counter(reader, x.start)

    def counted(item: Abstract) -> None:
        number = reader.cells[key]
        reader.cells[key] = reader.apply("add", as_value(reader, number), reader.const(1))
        body(Tuple((number, item)))

    return counted


def beside_others(
    reader: Reader, x: Zip, body: Callable[[Abstract], None]
) -> tuple[Abstract, Callable[[Abstract], None]]:
    """`zip` of a generator and sequences: the generator leads, and it is left when a sequence ends."""
    message = "`zip` of several generators is not supported"
    if sum(map(steps, x.of)) > 1 or x.strict:
        message = "`zip` of a generator with `strict=True` is not supported" if x.strict else message
        reader.refuse("SD104", None, message, help_=AS_LIST)
    place = next(k for k, of in enumerate(x.of) if steps(of))
    with reader.within(ends_early=True):
        others = [None if k == place else iteration_over(reader, of, ast.Pass()) for k, of in enumerate(x.of)]
    parts = [i if i is None or isinstance(i, Iteration) else stored_iteration(reader, i, ast.Pass()) for i in others]
    key = new_counter(reader, Static(0))

    def ended(among: Sequence[Iteration | None]) -> Value | None:
        found: Value | None = None
        for part in among:
            if part is not None:
                ends = reader.apply("greater_equal", as_value(reader, reader.cells[key]), as_value(reader, part.length))
                found = ends if found is None else reader.apply("logical_or", found, ends)
        return found

    def row(item: Abstract) -> None:
        count = reader.cells[key]
        reader.cells[key] = reader.apply("add", as_value(reader, count), reader.const(1))
        body(Tuple(tuple(item if part is None else part.element(count) for part in parts)))

    def zipped(item: Abstract) -> None:
        """Python reads the arguments before the generator first, so they are checked before the generator resumes."""
        over = ended(parts)
        if over is None:
            row(item)
        else:
            ways: set[int] = {BREAKS}

            def orelse() -> None:
                row(item)
                ways.update(possible(reader, reader.exit))

            fork(reader, over, lambda: reader.leave(BREAKS), orelse)
            if isinstance(reader.exit, Value) and reader.exit not in reader.codes:
                reader.codes[reader.exit] = frozenset(ways)
        before = ended(parts[:place])
        if before is not None and not reader.dead and not is_left(reader):
            stop = reader.apply("where", before, reader.const(BREAKS), reader.const(GOES_ON))
            code = as_value(reader, reader.exit)
            stays = reader.apply("less_equal", code, reader.const(GOES_ON))
            found = reader.apply("where", stays, stop, code)
            reader.codes[found] = possible(reader, reader.exit) | {BREAKS, GOES_ON}
            reader.cells[reader.exit_key] = found

    return x.of[place], zipped


def is_left(reader: Reader) -> bool:
    """Whether the preceding statements certainly left."""
    return isinstance(reader.exit, Static) and reader.exit.value > GOES_ON


def after_filter(reader: Reader, x: Through, body: Callable[[Abstract], None]) -> Callable[[Abstract], None]:
    return lambda item: let_through(reader, x, item, body)


def let_through(reader: Reader, x: Through, item: Abstract, body: Callable[[Abstract], None]) -> None:
    """The result for an element: the function's value, or the element itself if `filter` selects it."""
    if x.how != "filter":
        args = unpacked(reader, item, x.node) if x.how == "starmap" else (item,)
        body(forced(reader, call_value(reader, x.function, list(args), x.node)))
        return
    answer = item if is_none(x.function) else forced(reader, call_value(reader, x.function, [item], x.node))
    truth = truth_of(reader, answer, x.node)
    if isinstance(truth, Value):
        branch_on(reader, truth, lambda: body(item), lambda: None)
    elif truth.value:
        body(item)


def go_through(
    reader: Reader, node: ast.AST, x: Abstract, body: Callable[[Abstract], None], written_out: int = 0
) -> None:
    """Consume all elements in order. Short iterables of known length are unrolled."""
    x = iterator_of(reader, x, node)
    cells, earlier = reader.state.cells, list(asked_before_a_generator(x))
    x, body = peeled(reader, x, body)
    run, before, start = GOES_THROUGH.get(type(x)), reader.state.cells, len(reader.operations)
    if run is not None:
        code = run(reader, x, body, node, None)
        nothing_changed(reader, "zip", earlier, before, reader.operations[start:])
        forget_counters(reader, cells)
        leave_by(reader, code)
        return
    with_reads = x if isinstance(x, Drawn) else None
    found = iteration_over(reader, x, node)
    if isinstance(found, Iteration) and isinstance(found.length, Static) and found.length.value <= written_out:
        found = tuple(found.element(Static(k)) for k in range(found.length.value))
    before, start = reader.state.cells, len(reader.operations)
    if isinstance(found, Iteration):
        for_each(reader, node, found, watching_lengths(reader, x, found, body, node))
    else:
        body = watching_items(reader, x, found, body, node)
        for k, item in enumerate(found):
            with reader.within(path=(*reader.path, k)):
                body(item)
    if with_reads is not None:
        nothing_changed(reader, with_reads.name, with_reads.reads, before, reader.operations[start:])


def of_its_own(reader: Reader, x: Abstract) -> Abstract:
    """The elements of an iterator that reads nothing lazily."""
    return x.items if isinstance(x, Drawn) and not x.reads else forced(reader, x)


def known_length(reader: Reader, x: Iteration | tuple[Abstract, ...]) -> int | None:
    if not isinstance(x, Iteration):
        return len(x)
    found = x.length.value if isinstance(x.length, Static) else reader.constants.get(as_value(reader, x.length))
    return found if isinstance(found, int) else None


def drained(reader: Reader, x: Abstract, node: ast.AST) -> Abstract:
    """The list of an iterator's elements. Other values are unchanged."""
    if isinstance(x, Drawn):
        return x.items
    if not isinstance(x, Through) and type(x) not in GOES_THROUGH:
        return x
    node = x.node if isinstance(x, Through) else node
    handle = new_list(reader, ())
    go_through(reader, node, x, lambda item: append(reader, handle, item, node))
    return handle


def evaluate_elements(
    reader: Reader, nodes: list[ast.expr], read: Callable[[ast.expr], Abstract] | None = None
) -> tuple[Abstract, ...]:
    items: list[Abstract] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            items += unpacked(reader, evaluate_lazily(reader, node.value), node)
        else:
            items.append((read or functools.partial(evaluate, reader))(node))
    return tuple(items)


def has_known_length(reader: Reader, x: Abstract, node: ast.AST) -> bool:
    """Whether the number of elements is known at compile time."""
    return known_length(reader, iteration_over(reader, drained(reader, x, node), node)) is not None


def unpacked(reader: Reader, x: Abstract, node: ast.AST) -> tuple[Abstract, ...]:
    """The elements of an iterable of known length."""
    x = drained(reader, x, node)
    if isinstance(x, List):
        held = contents_of_list(reader, x)
        if isinstance(held, Items):
            return held.items
    found = iteration_over(reader, x, node)
    if isinstance(found, Iteration):
        known = known_length(reader, found)
        if known is None:
            reader.refuse("SD205", node, "the length of this sequence must be known at compile time")
        return tuple(found.element(Static(k)) for k in range(known))
    return found
