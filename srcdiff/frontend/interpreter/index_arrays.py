"""Index arrays and masks in subscripts."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NoReturn

from srcdiff.frontend.domain.abstract_values import Abstract, Lazy, List, Size, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.array_assignment import (
    Update,
    assign_array,
    reads_before_writing,
    require_update,
    updated_value,
    write_part,
)
from srcdiff.frontend.interpreter.broadcasting import (
    axis_step,
    broadcast_sizes,
    mapped_place,
    raise_with,
    require_equal,
    require_fit,
)
from srcdiff.frontend.interpreter.evaluation import call_named
from srcdiff.frontend.interpreter.lazy_arrays import as_lazy, axis_size, computed_once, is_data, through_view
from srcdiff.frontend.interpreter.materialization import Places, forced, nest_loops, new_lazy, settle
from srcdiff.frontend.interpreter.number_kinds import as_element
from srcdiff.frontend.interpreter.numbers import as_number, is_array, truth_of
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.ir.nodes import Block, If, Index, Item, NewAxis, Slice, Value
from srcdiff.ir.types import Array

_MOST_AXES = 4
"""How many axes a mask may have: `nonzero` makes a vector of positions for each of them."""


class Picked:
    """The elements that index arrays select: the array, their number, and the index of each."""

    __slots__ = ("base", "indices", "place", "sizes")

    def __init__(
        self, base: Value, sizes: tuple[Size, ...], place: Callable[[Places], Places], indices: tuple[Lazy, ...]
    ) -> None:
        self.base, self.sizes, self.place, self.indices = base, sizes, place, indices


def picks(item: Abstract) -> bool:
    """Whether a part of a subscript is an index array, or a list of indices."""
    return is_array(item) or isinstance(item, List)


def index_arrays(reader: Reader, items: list[Abstract | Item], array: Value, node: ast.AST) -> list[Lazy | Item]:
    """The parts of a subscript, with masks replaced by the indices where they are true."""
    found: list[Lazy | Item] = []
    axis = 0
    for item in items:
        if isinstance(item, Slice | Index | NewAxis):
            found.append(item)
            axis += not isinstance(item, NewAxis)
            continue
        lazy = as_lazy(reader, item, node)
        if lazy.dtype == "bool":
            for k, size in enumerate(lazy.sizes):
                require_mask(reader, size, axis_size(reader, array, axis + k), axis + k)
            positions = positions_of(reader, lazy, node)
            found += [as_lazy(reader, p, node) for p in positions]
            axis += len(positions)
            continue
        if lazy.dtype.startswith("float"):
            reader.refuse("SD203", node, "an index array must hold integers or booleans")
        if not lazy.plain:
            lazy = as_lazy(reader, forced(reader, lazy), node)
        check_positions(reader, lazy, axis_size(reader, array, axis))
        found.append(lazy)
        axis += 1
    return found


def require_mask(reader: Reader, own: Size, size: Size, axis: int) -> None:
    def words() -> tuple[str | Value, ...]:
        start = f"boolean index did not match the array along axis {axis}: it has the length "
        return (start, size.value(), ", the boolean index has ", own.value())

    require_equal(reader, own, size, words, IndexError)


def check_positions(reader: Reader, lazy: Lazy, size: Size) -> None:
    """Raise `IndexError` for an index outside of the axis."""
    length = size.value()
    lowest = reader.apply("negative", length)

    def check(places: Places) -> None:
        position = lazy.at(places)
        below = reader.apply("less", position, lowest)
        outside = reader.apply("logical_or", below, reader.apply("greater_equal", position, length))
        words = ("index ", position, " is out of bounds for axis with size ", length)
        raise_with(reader, outside, IndexError, words)

    nest_loops(reader, lazy.sizes, check)


def picked_elements(reader: Reader, array: Value, items: list[Abstract | Item], node: ast.AST) -> Picked:
    """The elements selected by a subscript with index arrays."""
    parts = index_arrays(reader, items, array, node)
    parts += [Slice(None, None, None)] * (array.array.rank - sum(not isinstance(p, NewAxis) for p in parts))
    advanced = [k for k, p in enumerate(parts) if isinstance(p, Lazy | Index)]
    together = advanced == list(range(advanced[0], advanced[-1] + 1))
    basic: list[Item] = [Slice(None, None, None) if isinstance(p, Lazy | Index) else p for p in parts]
    plain = all(isinstance(b, Slice) and not b.parts() for b in basic)
    base = array if plain else reader.view(array, tuple(basic))
    chosen = [picked_position(parts[k], node) for k in advanced]
    sizes, places, _ = broadcast_sizes(reader, chosen, node, IndexError)
    rest = [k for k in range(len(parts)) if k not in advanced]
    front = 0 if not together else sum(k < advanced[0] for k in rest)
    rest_sizes = [axis_size(reader, base, k) for k in rest]
    every = (*rest_sizes[:front], *sizes, *rest_sizes[front:])

    def place(where: Places) -> Places:
        inner = where[front : front + len(sizes)]
        others = iter((*where[:front], *where[front + len(sizes) :]))
        at = {k: lazy.at(to(inner)) for k, lazy, to in zip(advanced, chosen, places, strict=True)}
        return tuple(at[k] if k in at else next(others) for k in range(len(parts)))

    return Picked(base, every, place, tuple(chosen))


def picked_position(part: Lazy | Item, node: ast.AST) -> Lazy:
    if isinstance(part, Lazy):
        return part
    assert isinstance(part, Index)
    value = part.value
    return Lazy("int64", (), lambda _: value, plain=True)


def read_picked(reader: Reader, array: Value, items: list[Abstract | Item], node: ast.AST) -> Abstract:
    chosen = picked_elements(reader, array, items, node)
    base = chosen.base
    made = new_lazy(
        reader,
        base.array.dtype,
        chosen.sizes,
        lambda where: reader.load(base, chosen.place(where)),
        chosen.indices,
        False,
    )
    made.reads = (*made.reads, (base, False))
    made.ordered = False
    return made


def write_picked(
    reader: Reader,
    array: Value,
    items: list[Abstract | Item],
    value: Abstract,
    node: ast.AST,
    op: Update | None = None,
    *,
    one_by_one: bool = False,
) -> None:
    """`array[items] = value`. With an operator, all elements are read before any is written, as in NumPy."""
    masks = [i for i in items if is_array(i) and as_lazy(reader, i, node).dtype == "bool"]  # type: ignore[arg-type]
    if len(items) == 1 and masks and not is_array(value) and not isinstance(value, List):
        write_masked(reader, array, as_lazy(reader, masks[0], node), value, node, op)  # type: ignore[arg-type]
        return
    if op is None and len(items) == 1 and masks and as_lazy(reader, masks[0], node).rank == array.array.rank:  # type: ignore[arg-type]
        require_apart(reader, array, value, node)
    if not one_by_one:
        require_update(
            reader, array, op, as_lazy(reader, value, node) if isinstance(value, List | Tuple) else value, node
        )
    items = [unharmed(reader, i, array, node) for i in items]
    distinct = one_by_one or len(masks) == sum(not isinstance(i, Slice | Index | NewAxis) for i in items)
    chosen = picked_elements(reader, array, items, node)
    source = as_lazy(reader, value, node)
    if op is not None and not distinct:
        gathered = read_picked(reader, array, items, node)
        source = as_lazy(reader, forced(reader, updated_value(reader, op, gathered, source, node)), node)
        op = None
    target = Lazy(array.array.dtype, chosen.sizes, lambda _: reader.const(0))
    require_fit(reader, source, target)
    if not all(reader.disjoint(a, array) for a, _ in source.reads):
        source = as_lazy(reader, forced(reader, source), node)
    reader.pending.discard(source)
    settle(reader)
    own_sizes = zip(source.sizes, target.sizes[target.rank - source.rank :], strict=True)
    steps = [axis_step(reader, own, size) for own, size in own_sizes]

    def write(where: Places) -> None:
        element = source.at(mapped_place(reader, where, steps))
        write_part(reader, chosen.base, chosen.place(where), element, node, op)

    nest_loops(reader, chosen.sizes, write)


def require_apart(reader: Reader, array: Value, value: Abstract, node: ast.AST) -> None:
    """Refuse to assign parts of an array to itself if NumPy reads them while it writes."""
    if isinstance(value, Lazy) and value.view_of is None and value.array is None:
        return  # it is a new array
    if is_array(value) and not all(reader.disjoint(a, array) for a, _ in as_lazy(reader, value, node).reads):
        refuse_shared(reader, node)


def require_order(reader: Reader, target: Value, value: Abstract, node: ast.AST) -> None:
    """The same for a copy along one axis. NumPy makes no temporary copy, and only chooses the direction."""
    if target.array.rank != 1 or not isinstance(value, Value | Lazy):
        return
    seen = value if isinstance(value, Value) else value.view_of
    if seen is None or not isinstance(seen.type, Array) or reader.disjoint(seen, target):
        return
    if value is not seen or (seen.array.rank == 1 and not reader.copied_in_order(seen, target)):
        refuse_shared(reader, node)


def refuse_shared(reader: Reader, node: ast.AST) -> NoReturn:
    message = "the assigned values may overlap the array, and NumPy may overwrite some of them before reading them"
    reader.refuse("SD303", node, message, help_="copy the values first: `.copy()`")


def unharmed(reader: Reader, item: Abstract | Item, array: Value, node: ast.AST) -> Abstract | Item:
    """The index array before the write, if the write may change it."""
    if isinstance(item, Slice | Index | NewAxis) or not picks(item):
        return item
    lazy = as_lazy(reader, item, node)
    if all(reader.disjoint(read, array) for read, _ in lazy.reads):
        return item
    return forced(reader, Lazy(lazy.dtype, lazy.sizes, lazy.at, lazy.reads))


def write_masked(reader: Reader, array: Value, mask: Lazy, value: Abstract, node: ast.AST, op: Update | None) -> None:
    """`array[mask] = number`: no index array is needed."""
    number = as_number(reader, value, node)
    require_update(reader, array, op, value, node)
    mine = as_lazy(reader, array, node)
    if mask.rank > mine.rank:
        reader.refuse("SD203", node, f"a mask with {mask.rank} axes is used on an array with {mine.rank}")
    for own, size in zip(mask.sizes, mine.sizes, strict=False):
        require_mask(reader, own, size, mine.sizes.index(size))
    if not reads_before_writing(reader, mask, array):
        mask = as_lazy(reader, forced(reader, mask), node)
    reader.pending.discard(mask)
    settle(reader)

    base, to_base = through_view(reader, array)

    def write(places: Places) -> None:
        holds = mask.at(places[: mask.rank])
        with reader.block() as operations:
            write_part(reader, base, to_base(places), number, node, op)
        reader.add(If(holds, Block(tuple(operations)), Block(), span=reader.span))

    nest_loops(reader, mine.sizes, write)


def choose_elements(
    reader: Reader, condition: Abstract, a: Abstract, b: Abstract, dtype: str, node: ast.AST
) -> Abstract:
    """`np.where`: only the selected element of each pair is computed."""
    lazies = [as_lazy(reader, x, node) for x in (condition, a, b)]
    sizes, places, straight = broadcast_sizes(reader, lazies, node)
    lazies[0] = computed_once(reader, lazies[0], sizes, node)

    def at(where: Places) -> Value:
        test = as_value(reader, truth_of(reader, lazies[0].at(places[0](where)), node))
        sides: list[Block] = []
        for lazy, place in zip(lazies[1:], places[1:], strict=True):
            with reader.block() as operations:
                chosen = as_element(reader, lazy.at(place(where)), dtype)
            sides.append(Block(tuple(operations), (chosen,)))
        if all(is_data(reader, lazy) for lazy in lazies[1:]):
            reader.operations.extend((*sides[0].operations, *sides[1].operations))
            return reader.apply("where", test, sides[0].yields[0], sides[1].yields[0])
        out = Value(sides[0].yields[0].type)
        reader.add(If(test, sides[0], sides[1], (out,), span=reader.span))
        return out

    if not sizes:
        return at(())
    return new_lazy(reader, dtype, sizes, at, lazies, straight)


def positions_of(reader: Reader, mask: Lazy, node: ast.AST) -> tuple[Abstract, ...]:
    if mask.rank > _MOST_AXES:
        help_ = "use vectors: `a.ravel()[mask.ravel()]`"
        reader.refuse("SD303", node, f"a mask with more than {_MOST_AXES} axes is not supported", help_=help_)
    found = call_named(reader, "nonzero", node, mask)
    assert isinstance(found, Tuple)
    return found.items


def assign_part(
    reader: Reader, array: Value, items: list[Abstract | Item], value: Abstract, node: ast.AST, op: Update | None = None
) -> None:
    """`array[items] = value`, or `op=`, for a part of an array."""
    basic = [i for i in items if isinstance(i, Slice | Index | NewAxis)]
    if len(basic) < len(items):
        write_picked(reader, array, items, value, node, op)
        return
    whole = all(isinstance(i, Slice) and not i.parts() for i in basic)
    target = array if whole else reader.view(array, tuple(basic))
    if op is None:
        require_order(reader, target, value, node)
    assign_array(reader, target, value, node, op)
