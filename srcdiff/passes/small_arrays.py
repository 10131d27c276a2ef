"""Scalar replacement of aggregates: a small array of known shape becomes one scalar for each element.

    for i in range(n):                              for i in range(n):
        q = np.empty(2)                                 q_0 = c * x[i] - s * y[i]
        q[0] = c * x[i] - s * y[i]        =>            q_1 = s * x[i] + c * y[i]
        q[1] = s * x[i] + c * y[i]                      q_0, q_1 = q_0 + b_0, q_1 + b_1
        for k in range(2):                              total += q_0 * q_1
            q[k] += b[k]
        total += q[0] * q[1]

Loops over the elements are unrolled, products of small matrices are written as sums, and a loop that replaces an array
in each iteration carries its elements. What is left is neither allocated nor kept in arrays of its own, and iterations
that only shared such memory are independent. Where an array is needed as a whole, it is put together there.

What is written stays within limits: an array whose loops would become too long stays an array.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from srcdiff.analyses.constant_shapes import Shape, constant_shapes, letter_sizes
from srcdiff.analyses.small_array_groups import LARGEST, SmallArrays, small_arrays
from srcdiff.analyses.structure import structure_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import cloned
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Const,
    Copy,
    Custom,
    Dim,
    Function,
    If,
    Index,
    Item,
    Library,
    Load,
    Loop,
    NewAxis,
    Operation,
    Part,
    References,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
    changed,
    substituted,
    walk,
)
from srcdiff.ir.primitives import length_of_range
from srcdiff.ir.types import Scalar, element_type
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.passes.cse import eliminate_common_subexpressions
from srcdiff.passes.product_loops import small_products_as_loops
from srcdiff.passes.simplify import simplify
from srcdiff.passes.small_matrices import FORMULAS
from srcdiff.quick_dataclasses import dataclass

LONGEST_NEST = 400
"""How many operations a nest of loops, or the formula for a library call, may become."""
LARGEST_ARGUMENT = 9
"""How many elements an array may have that is put together, or taken apart, for a library call."""
LARGEST_GROWTH = 1000
"""How many operations more a function may have than it had."""

Elements = Any  # an array of values; None where nothing was stored


def replace_small_seeds(function: Function, alone: Collection[Value]) -> Function:
    """The function with small arrays as scalars, also those of constants: loops over lanes, of few, are unrolled."""
    return replace_small_arrays(function, alone, tables=True)


def replace_small_arrays(function: Function, alone: Collection[Value], tables: bool = False) -> Function:
    """The function with small arrays as scalars; values that stay `alone` are left as they are."""
    refused: set[Value] = set()
    while (small := small_arrays(function, alone, refused, tables)).group:
        try:
            replaced = _Replacement(function, small, alone).run()
        except _RefusedError as found:
            refused |= set(found.groups)
            continue
        return small_products_as_loops(simplify(eliminate_common_subexpressions(replaced, alone)))
    return small_products_as_loops(function)


class _RefusedError(Exception):
    """Groups of arrays for which scalars are not worthwhile."""

    def __init__(self, groups: Collection[Value]) -> None:
        super().__init__()
        self.groups = groups


@dataclass(eq=False, slots=True)
class _Memory:
    """The current contents of an array: its elements as values."""

    name: str
    shape: tuple[int, ...]
    type: Scalar
    elements: Elements

    def named(self, place: int) -> str:
        """The name of an element: `P_0_1` for `P[0, 1]`."""
        return "_".join([self.name, *map(str, np.unravel_index(place, self.shape))]) if self.name else ""

    def new_elements(self) -> list[Value]:
        return [Value(self.type, self.named(place)) for place in range(len(self.elements))]


@dataclass(frozen=True, eq=False, slots=True)
class _Reference:
    """An array, or a part of it: the places in its memory, in the shape of the part."""

    memory: _Memory
    places: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.places.shape)

    @property
    def elements(self) -> Elements:
        return np.asarray(self.memory.elements[self.places], dtype=object)  # arrays without axes, too


class _CountingBuilder(Builder):
    """Counts what it writes, without constants."""

    written = 0

    def add(self, operation: Operation) -> None:
        self.written += not isinstance(operation, Const)
        super().add(operation)


class _Replacement:
    def __init__(self, function: Function, small: SmallArrays, alone: Collection[Value]) -> None:
        self.function, self.small, self.alone = function, small, alone
        self.shapes: dict[Value, Shape] = constant_shapes(function)
        self.definition = structure_of(function).definition
        self.build = _CountingBuilder()
        self.known: dict[Value, Value] = {}
        """Values of the program, by what they are called now."""
        self.references: dict[Value, _Reference] = {}
        """Arrays of the program that are scalars now."""
        self.copies = 0
        """How many unrolled loops are around: what is written there needs values of its own."""
        self.most = len(walk(function.body)) + LARGEST_GROWTH

    def run(self) -> Function:
        with self.build.block() as operations:
            self.operations(self.function.body)
            yields = {v: self.whole(v) for v in self.function.body.yields}
        body = Block(tuple(operations), tuple([yields[v] for v in self.function.body.yields]))
        return changed(self.function, body=body)

    # -- operations --------------------------------------------------------------------------------------------------

    def operations(self, block: Block) -> None:
        for operation in block.operations:
            self.build.span = operation.span
            self.operation(operation)
            if self.build.written > self.most:
                self.refuse_largest()

    def operation(self, operation: Operation) -> None:
        small = self.small.group
        match operation:
            case Const():
                made = replace(operation, out=self.fresh(operation.out))
                self.build.constants[made.out] = made.value
                self.build.add(made)
            case Apply():
                self.apply(operation)
            case If():
                self.branch(operation)
            case Loop() if operation in self.small.unrolled:
                self.unroll(operation)
            case Loop():
                self.loop(operation)
            case Load() if operation.array in small:
                self.load(operation)
            case Store() if operation.array in small:
                self.store(operation)
            case Dim() if operation.array in small:
                self.known[operation.out] = self.build.const(self.references[operation.array].shape[operation.axis])
            case View() | Transpose() | Reshape() if operation.array in small:
                self.references[operation.out] = self.part(operation)
            case Alloc() if operation.out in small or operation.like in small:
                self.alloc(operation)
            case Copy() if operation.out in small and operation.array in small:
                self.bind(operation.out, self.references[operation.array].elements)
            case Library() if self.formula(operation):
                pass
            case _:
                self.plain(operation)

    def now(self, value: Value) -> Value:
        return self.known.get(value, value)

    def fresh(self, value: Value) -> Value:
        """The value, or one like it where the program is written more than once."""
        if not self.copies:
            return value
        self.known[value] = Value(value.type, value.name)
        return self.known[value]

    def plain(self, operation: Operation) -> None:
        """An operation that stays: arrays that it reads are put together, small arrays that it gives taken apart."""
        operation = operation.replaced(self.whole)
        if isinstance(operation, Custom):
            stays = operation.rebuilt(lambda block: substituted(block, self.now))
            self.build.add(cloned(operation, self.known) if self.copies else stays)
            return
        given = [v for v in operation.defines() if v in self.small.group]
        results = {v: Value(v.type, v.name) if v in given else self.fresh(v) for v in operation.defines()}
        made = operation.redefined(results.__getitem__)
        self.build.add(replace(made) if self.copies else made)  # every place has an operation of its own
        for array in given:
            shape = self.shape_of(array)
            places = product(*[range(n) for n in shape])
            loads = [self.build.load(results[array], self.constants(place)) for place in places]
            self.bind(array, np.array(loads, dtype=object).reshape(shape))

    def apply(self, operation: Apply) -> None:
        args = tuple([self.now(a) for a in operation.args])
        folded = None
        if operation.out not in self.alone:
            folded = self.build.folded(operation.primitive, args, operation.out.scalar)
        if folded is not None:
            self.known[operation.out] = folded
            return
        made = replace(operation, out=self.fresh(operation.out), args=args)
        self.build.note(made)
        self.build.add(made)

    # -- arrays ------------------------------------------------------------------------------------------------------

    def bind(self, array: Value, elements: Elements) -> None:
        """The array is of these elements from here on; those that have no name yet are called by their place."""
        memory = _Memory(array.name, elements.shape, element_type(array.array), elements.ravel().copy())
        for place, element in enumerate(memory.elements):
            self.give_name(element, memory, place)
        self.references[array] = _Reference(memory, np.arange(elements.size).reshape(elements.shape))

    def give_name(self, element: Value | None, memory: _Memory, place: int) -> None:
        if element is not None and not element.name and element not in self.build.constants:
            element.name = memory.named(place)

    def whole(self, value: Value) -> Value:
        """The value, or an array that is made here of its elements."""
        if value not in self.references:
            return self.now(value)
        reference = self.references[value]
        out = self.build.alloc(value.array.dtype, self.constants(reference.shape), None, value.name)
        for place in product(*[range(n) for n in reference.shape]):
            element = reference.elements[place]
            if element is not None:
                self.build.store(out, self.constants(place), element)
        return out

    def alloc(self, operation: Alloc) -> None:
        shape = self.shape_of(operation.out)
        if operation.out not in self.small.group:
            self.plain(replace(operation, like=None, shape=self.constants(shape)))
            return
        fill = None
        if operation.fill is not None:
            fill = self.build.cast(self.now(operation.fill), element_type(operation.out.array))
        self.bind(operation.out, np.full(shape, fill, dtype=object))

    def shape_of(self, array: Value) -> tuple[int, ...]:
        return tuple([n for n in self.shapes[array] if n is not None])

    def constants(self, numbers: Iterable[int]) -> tuple[Value, ...]:
        return tuple([self.build.const(int(n)) for n in numbers])

    def load(self, operation: Load) -> None:
        memory, place = self.place(operation)
        element = memory.elements[place]
        if element is None:  # the old value is unknown
            raise _RefusedError({self.small.group[operation.array]})
        if operation.out.name and not element.name and element not in self.build.constants:
            element.name = operation.out.name
        self.known[operation.out] = element

    def store(self, operation: Store) -> None:
        memory, place = self.place(operation)
        value = self.now(operation.value)
        if operation.adds:
            if memory.elements[place] is None:
                raise _RefusedError({self.small.group[operation.array]})
            value = self.build.apply("add", memory.elements[place], value)
        value = self.build.cast(value, memory.type)
        self.give_name(value, memory, place)
        memory.elements[place] = value

    def place(self, access: Load | Store) -> tuple[_Memory, int]:
        reference = self.references[access.array]
        try:
            return reference.memory, reference.places[tuple([self.integer(i, access.array) for i in access.indices])]
        except IndexError:  # the program itself raises it, with checks
            raise _RefusedError({self.small.group[access.array]}) from None

    def integer(self, value: Value, array: Value) -> int:
        known = self.build.constants.get(self.now(value))
        if not isinstance(known, int):
            raise _RefusedError({self.small.group[array]})
        return known

    def part(self, operation: References) -> _Reference:
        reference, array = self.references[operation.array], operation.array
        match operation:
            case Transpose(axes=axes):
                return replace(reference, places=reference.places.transpose(axes))
            case Reshape(shape=shape):
                lengths = [self.integer(n, array) for n in shape]
                return replace(reference, places=reference.places.reshape(lengths))
            case Part():  # arrays of complex numbers are not small
                raise _RefusedError({self.small.group[array]})
        try:
            places = reference.places[tuple([self.item(i, array) for i in operation.items])]
        except (IndexError, ValueError):
            raise _RefusedError({self.small.group[array]}) from None
        return replace(reference, places=np.asarray(places))

    def item(self, item: Item, array: Value) -> Any:
        match item:
            case NewAxis():
                return None
            case Index(value=value):
                return self.integer(value, array)
        return slice(*[None if p is None else self.integer(p, array) for p in (item.start, item.stop, item.step)])

    # -- calls of libraries ------------------------------------------------------------------------------------------

    def formula(self, call: Library) -> bool:
        """Write a call on small matrices as a formula, if there is one."""
        shapes = self.argument_shapes(call)
        if shapes is None:
            self.refuse_arguments(call, unless=LARGEST_ARGUMENT)
            return False
        start = self.build.written
        args = [self.elements(a, shape) for a, shape in zip(call.args, shapes, strict=True)]
        if any(x is None for a in args for x in a.ravel()):
            self.refuse_arguments(call)
        results = FORMULAS[call.function](self.build, *args)
        if results is None or self.build.written - start > LONGEST_NEST:
            self.refuse_arguments(call)
            return False
        for out, elements in zip(call.outs, results, strict=True):
            if is_array(out):
                self.bind(out, elements)
            else:
                self.known[out] = elements.item()
        return True

    def argument_shapes(self, call: Library) -> list[tuple[int, ...]] | None:
        """The shapes of the arguments of a call for which there is a formula, if some of them are scalars now."""
        if call.function not in FORMULAS or not any(a in self.references for a in call.args):
            return None
        if not all(v in self.small.group for v in call.outs if is_array(v)):
            return None
        shapes = [self.references[a].shape if a in self.references else self.shapes[a] for a in call.args]
        sizes = letter_sizes(call, shapes)
        taken = LIBRARY[call.function].shapes.split("->")[0].split(",")
        if not all(x in sizes for letters in taken for x in letters):
            return None
        wanted = [tuple([sizes[x] for x in letters]) for letters in taken]
        lengths = [pair for shape, want in zip(shapes, wanted, strict=True) for pair in zip(shape, want, strict=True)]
        return wanted if all(n in (None, m) for n, m in lengths) else None  # if they differ, it raises an error

    def refuse_arguments(self, call: Library, unless: int = 0) -> None:
        """Leave the arrays of a call as they are, if they have more elements."""
        small = [v for v in (*call.args, *call.outs) if v in self.small.group]
        if any(prod(self.shape_of(v)) > unless for v in small):
            raise _RefusedError({self.small.group[v] for v in small})

    def elements(self, array: Value, shape: tuple[int, ...]) -> Elements:
        """The elements of an argument; that its shape fits was checked before the call."""
        if array in self.references:
            return self.references[array].elements
        elements = np.empty(shape, dtype=object)
        for place in product(*[range(n) for n in shape]):
            elements[place] = self.build.load(self.now(array), self.constants(place))
        return elements

    # -- branches ----------------------------------------------------------------------------------------------------

    def branch(self, operation: If) -> None:
        condition = self.now(operation.condition)
        if condition in self.build.constants:
            taken = operation.then if self.build.constants[condition] else operation.orelse
            self.operations(taken)
            self.pass_on(operation.outs, taken.yields)
            return
        memories = self.stored_in(operation)
        before = [m.elements.copy() for m in memories]
        then, then_elements = self.side(operation.then, memories)
        for memory, elements in zip(memories, before, strict=True):
            memory.elements = elements
        orelse, other_elements = self.side(operation.orelse, memories)
        outs, yields = list[Value](), list[tuple[Value, Value]]()

        def merged(pair: tuple[Value | None, Value | None], memory: _Memory, place: int) -> Value | None:
            if pair[0] is pair[1]:
                return pair[0]
            one, two = (self.zero(memory) if v is None else v for v in pair)
            outs.append(Value(memory.type, memory.named(place)))
            yields.append((one, two))
            return outs[-1]

        for k, out in enumerate(operation.outs):
            pair = operation.then.yields[k], operation.orelse.yields[k]
            if out not in self.small.group:
                outs.append(self.fresh(out))
                yields.append((then_elements[k], other_elements[k]))
                continue
            self.bind(out, then_elements[k])
            memory = self.references[out].memory
            if then_elements[k].shape != other_elements[k].shape:
                raise _RefusedError({self.small.group[v] for v in pair})
            pairs = zip(then_elements[k].ravel(), other_elements[k].ravel(), strict=True)
            memory.elements[:] = [merged(p, memory, place) for place, p in enumerate(pairs)]
        for k, memory in enumerate(memories, len(operation.outs)):
            pairs = zip(then_elements[k], other_elements[k], strict=True)
            memory.elements = _array([merged(p, memory, place) for place, p in enumerate(pairs)])
        one_side, other_side = (tuple([y[k] for y in yields]) for k in range(2))
        self.build.add(
            replace(
                operation,
                condition=condition,
                then=Block(then, one_side),
                orelse=Block(orelse, other_side),
                outs=tuple(outs),
            )
        )

    def side(self, block: Block, memories: Sequence[_Memory]) -> tuple[tuple[Operation, ...], list[Any]]:
        """One side of a branch: what it does, and what it yields and leaves in memories."""
        with self.build.block() as operations:
            self.operations(block)
            found = [self.references[v].elements if v in self.references else self.now(v) for v in block.yields]
        return tuple(operations), [*found, *(m.elements for m in memories)]

    def pass_on(self, outs: Sequence[Value], sources: Sequence[Value]) -> None:
        """Other names for the same, all at once."""
        now = [self.references.get(v) or self.now(v) for v in sources]
        for out, source in zip(outs, now, strict=True):
            if isinstance(source, _Reference):
                self.references[out] = source
            else:
                self.known[out] = source

    def zero(self, memory: _Memory) -> Value:
        """For an element to which nothing was stored yet."""
        return self.build.const({"bool": False, "int64": 0}.get(memory.type.dtype, 0.0), memory.type)

    def stored_in(self, operation: If | Loop) -> list[_Memory]:
        """The arrays from before the operation that it may store to."""
        inside = [o for block in operation.blocks() for o in walk(block)]
        defined = {v for o in (operation, *inside) for v in (*o.defines(), *o.inner())}
        found: dict[_Memory, None] = {}
        for store in inside:
            if isinstance(store, Store) and store.array in self.small.group:
                array = store.array
                while array in defined and isinstance(self.definition[array], References):
                    array = self.definition[array].uses()[0]
                if array not in defined:
                    found[self.references[array].memory] = None
        return list(found)

    # -- loops -------------------------------------------------------------------------------------------------------

    def unroll(self, loop: Loop) -> None:
        """The iterations of a loop, one after the other."""
        assert loop.bounds is not None
        assert loop.index is not None
        bounds = [self.build.constants.get(self.now(b)) for b in loop.bounds]
        groups = self.small.unrolled[loop]
        if not all(isinstance(b, int) for b in bounds) or bounds[2] == 0 or length_of_range(*bounds) > LARGEST:  # type: ignore[arg-type]
            raise _RefusedError(groups)
        start, sources = self.build.written, loop.inits
        self.copies += 1
        for number in range(*bounds):  # type: ignore[arg-type]
            self.pass_on(loop.params, sources)
            self.known[loop.index] = self.build.const(number)
            self.operations(loop.body)
            sources = loop.body.yields
            if self.copies == 1 and self.build.written - start > LONGEST_NEST:
                raise _RefusedError(groups)
        self.copies -= 1
        self.pass_on(loop.outs, sources)
        if loop.count is not None:
            self.known[loop.count] = self.build.const(len(range(*bounds)))  # type: ignore[arg-type]

    def loop(self, loop: Loop) -> None:
        """A loop that stays, with the elements of arrays that it replaces or stores to as parameters."""
        bounds = None if loop.bounds is None else tuple([self.now(b) for b in loop.bounds])
        count = len(loop.params)
        memories = self.stored_in(loop)
        inits = [self.flat(v) for v in loop.inits]
        inits += [self.initialized(m.elements, m) for m in memories]
        index = None if loop.index is None else self.fresh(loop.index)
        params = [self.carried(p, init) for p, init in zip(loop.params, inits, strict=False)]
        params += [self.renewed(m) for m in memories]
        test = None
        if loop.test is not None:
            with self.build.block() as operations:
                self.operations(loop.test)
            test = Block(tuple(operations), tuple([self.now(v) for v in loop.test.yields]))
        with self.build.block() as operations:
            self.operations(loop.body)
            yields = [self.flat(v) for v in loop.body.yields[:count]]
            yields += [self.initialized(m.elements, m) for m in memories]
            yields.append([self.now(v) for v in loop.body.yields[count:]])
        for param, init, following in zip(loop.params, inits, yields, strict=False):
            if len(init) != len(following):
                raise _RefusedError({self.small.group[param]})
        outs = [self.carried(v, init) for v, init in zip(loop.outs, inits, strict=False)]
        outs += [self.renewed(m) for m in memories]
        self.build.add(
            replace(
                loop,
                index=index,
                bounds=bounds,  # type: ignore[arg-type]
                params=_joined(params),
                inits=_joined(inits),
                test=test,
                body=Block(tuple(operations), _joined(yields)),
                outs=_joined(outs),
                count=None if loop.count is None else self.fresh(loop.count),
                claims=() if self.copies else loop.claims,
            )
        )

    def flat(self, value: Value) -> list[Value]:
        """The value, or the elements of the array."""
        if value not in self.references:
            return [self.now(value)]
        reference = self.references[value]
        return self.initialized(reference.elements.ravel(), reference.memory)

    def initialized(self, elements: Elements, memory: _Memory) -> list[Value]:
        return [self.zero(memory) if e is None else e for e in elements]

    def carried(self, value: Value, init: Sequence[Value]) -> list[Value]:
        """A parameter or a result of a loop: itself, or the elements of the array that it is."""
        if value not in self.small.group:
            return [self.fresh(value)]
        shape = self.shape_of(value)
        if prod(shape) != len(init):
            raise _RefusedError({self.small.group[value]})
        self.bind(value, np.full(shape, None, dtype=object))
        return self.renewed(self.references[value].memory)

    def renewed(self, memory: _Memory) -> list[Value]:
        """The memory with new values for all elements."""
        made = memory.new_elements()
        memory.elements = _array(made)
        return made

    # -- limits ------------------------------------------------------------------------------------------------------

    def refuse_largest(self) -> None:
        sizes: dict[Value, int] = {}
        for array, group in self.small.group.items():
            sizes[group] = max(sizes.get(group, 0), prod(self.shape_of(array)))
        largest = max(sizes.values())
        raise _RefusedError([group for group, size in sizes.items() if size == largest])


def is_array(value: Value) -> bool:
    return not isinstance(value.type, Scalar)


def _array(values: Sequence[Value | None]) -> Elements:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _joined(parts: Iterable[Sequence[Value]]) -> tuple[Value, ...]:
    return tuple([v for part in parts for v in part])
