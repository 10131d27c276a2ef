"""The small arrays of known shape, with constant indices, that can become scalars, one for each element.

References that may alias are one group, and either all of a group become scalars or none. Where a library, a call,
`print` or the caller reads a whole array, it is assembled. The following prevents the replacement:

* elements at unknown indices, even if loops with a constant trip count were unrolled;
* a store by one name while another name of the same array is live: a name represents the values of its elements;
* arrays that a custom rule takes or a function writes to, and variables in `wrt`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field
from math import prod

from srcdiff.analyses.constant_shapes import Shape, constant_shapes
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.ir.aliasing import Apart, Sites, points_to
from srcdiff.ir.builder import FOLDABLE
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Const,
    Copy,
    Custom,
    Dim,
    Function,
    If,
    Library,
    Load,
    Loop,
    Operation,
    Print,
    Raise,
    References,
    Store,
    Value,
    View,
    walk,
)
from srcdiff.ir.types import INT, Array
from srcdiff.quick_dataclasses import dataclass

LARGEST = 36
"""How many elements an array may have: as many as a matrix of 6 x 6."""

_DTYPES = ("float64", "float32", "int64", "bool")  # memory of shorter integers wraps around
_READERS = (Dim, Alloc, Copy, Library, Print, Raise, Call, If, Loop, References, Load, Store)

Loops = frozenset[Loop]


@dataclass(frozen=True, slots=True)
class SmallArrays:
    group: dict[Value, Value] = field(default_factory=dict)
    """References that become scalars, with the representative of their group."""
    unrolled: dict[Loop, set[Value]] = field(default_factory=dict)
    """Loops to unroll, with the groups that need it."""


def small_arrays(
    function: Function, alone: Collection[Value], refused: Collection[Value], tables: bool = False
) -> SmallArrays:
    """The arrays that can be scalars. Values that stay `alone`, and groups that were `refused` before, stay.

    For `tables` of constants, loops are unrolled only if that is wanted.
    """
    shapes = constant_shapes(function)
    sites = points_to(function)
    if not any(_is_small(site, shapes) for found in sites.values() for site in found):
        return SmallArrays()
    return _Search(function, shapes, sites, alone, refused, tables).result()


def _is_small(array: Value, shapes: dict[Value, Shape]) -> bool:
    shape = shapes.get(array, (None,))
    lengths = [n for n in shape if n is not None]
    return len(lengths) == len(shape) and 0 < prod(lengths) <= LARGEST and array.array.dtype in _DTYPES


class _Search:
    def __init__(
        self,
        function: Function,
        shapes: dict[Value, Shape],
        sites: dict[Value, Sites],
        alone: Collection[Value],
        refused: Collection[Value],
        with_tables: bool,
    ) -> None:
        self.function, self.shapes, self.sites = function, shapes, sites
        self.structure: Structure = structure_of(function)
        self.alone, self.refused, self.with_tables = alone, refused, with_tables
        self.parent: dict[Value, Value] = {}
        self.rejected: set[Value] = set()
        self.known: dict[Value, Loops] = {}
        """Integers that are constant once these loops are unrolled."""
        self.accessed: dict[Value, list[Loops]] = {}
        """For each group, the loops that its accesses need unrolled."""
        self.read: set[Value] = set()
        """Groups whose elements are read."""

    def result(self) -> SmallArrays:
        self.join_groups()
        self.visit(self.function.body)
        for array in (*self.alone, *self.refused):
            self.reject(array)
        self.reject_other_names()
        unrolled = self.loops_to_unroll()
        group = {
            array: self.group(site)
            for array, found in self.sites.items()
            for site in list(found)[:1]
            if self.is_accepted(self.group(site))
        }
        return SmallArrays(group, unrolled)

    def is_accepted(self, group: Value) -> bool:
        return group not in self.rejected and group in self.read

    # -- groups ------------------------------------------------------------------------------------------------------

    def group(self, site: Value) -> Value:
        while (parent := self.parent.get(site, site)) is not site:
            site = parent
        return site

    def groups(self, array: Value) -> set[Value]:
        return {self.group(site) for site in self.sites.get(array, ())}

    def reject(self, array: Value) -> None:
        self.rejected |= self.groups(array)

    def join_groups(self) -> None:
        """References that may be to one of several arrays make one group of them; all must be small."""
        for found in self.sites.values():
            first, *others = found or (None,)
            for other in others:
                assert first is not None
                one, two = self.group(first), self.group(other)
                if one is not two:
                    self.parent[two] = one
        for array, found in self.sites.items():
            if not all(self.is_new(site) and _is_small(site, self.shapes) for site in found) or not _is_small(
                array, self.shapes
            ):
                self.reject(array)

    def is_new(self, site: Value) -> bool:
        """Whether the program makes the array, as any other."""
        match self.structure.definition.get(site):
            case Alloc(workspace=None, place="", grows=False, keeps=None) | Copy(workspace=None) | Library():
                return True
        return False

    # -- uses -------------------------------------------------------------------------------------------------------

    def visit(self, block: Block) -> None:
        for operation in block.operations:
            self.operation(operation)
            if isinstance(operation, Loop):
                self.counter(operation)
            if isinstance(operation, Custom):
                self.reject_all_of(operation)
                continue
            for inner in operation.blocks():
                self.visit(inner)
            if isinstance(operation, Loop) and operation.test is not None:
                for inside in walk(operation.test):
                    if isinstance(inside, Store):
                        self.reject(inside.array)

    def reject_all_of(self, custom: Custom) -> None:
        for operation in (custom, *walk(custom.body)):
            for value in (*operation.uses(), *operation.defines(), *operation.inner()):
                self.reject(value)

    def operation(self, operation: Operation) -> None:
        match operation:
            case Const(out=out) if out.type == INT:
                self.known[out] = frozenset()
            case Apply(out=out, primitive=primitive, args=args):
                if primitive in FOLDABLE and all(a in self.known for a in args):
                    self.known[out] = frozenset().union(*[self.known[a] for a in args])
            case Dim(out=out, array=array, axis=axis):
                if self.shapes.get(array, (None,) * (axis + 1))[axis] is not None:
                    self.known[out] = frozenset()
            case Load(array=array, indices=indices):
                self.access(array, indices)
                self.note_read(array)
                if operation.out in self.alone:
                    self.reject(array)
            case Store(array=array, indices=indices, atomic=atomic):
                self.access(array, indices)
                if atomic:
                    self.reject(array)
            case View(array=array):
                self.access(array, operation.uses()[1:])
            case Copy(array=array):
                self.note_read(array)
            case Library(args=args):
                for array in args:
                    self.note_read(array)
            case Call():
                for array in operation.written:
                    self.reject(array)
            case _ if not isinstance(operation, _READERS):
                for array in operation.uses():
                    self.reject(array)

    def access(self, array: Value, indices: Iterable[Value]) -> None:
        """Elements or parts of an array are taken at known places, or it cannot be scalars."""
        loops: set[Loop] = set()
        for index in indices:
            if index not in self.known:
                self.reject(array)
                return
            loops |= self.known[index]
        for group in self.groups(array):
            self.accessed.setdefault(group, []).append(frozenset(loops))

    def note_read(self, array: Value) -> None:
        self.read |= self.groups(array)

    def counter(self, loop: Loop) -> None:
        """The counter of a loop is known once the loop is unrolled, if the loop is one that can be."""
        if loop.index is None or loop.bounds is None or not loop.counted:
            return
        if all(b in self.known for b in loop.bounds) and not self.makes_a_variable(loop):
            self.known[loop.index] = frozenset((loop,)).union(*[self.known[b] for b in loop.bounds])

    def makes_a_variable(self, loop: Loop) -> bool:
        """Whether a variable in `wrt` is inside the loop; unrolling would duplicate it."""
        return bool(self.alone) and any(v in self.alone for o in walk(loop.body) for v in o.defines())

    # -- other names of the same memory ------------------------------------------------------------------------------

    def reject_other_names(self) -> None:
        """No store while another name of the array is in use, here or in a later iteration."""
        uses = self.uses_of_names()
        apart: Apart | None = None
        names: dict[Value, list[Value]] = {}
        for name in uses:
            for group in self.groups(name):
                names.setdefault(group, []).append(name)
        for store in walk(self.function.body):
            if not isinstance(store, Store):
                continue
            mine = self.base(store.array)
            for group in self.groups(mine) - self.rejected:
                for other in names[group]:
                    if other is mine or not self.sites[other] & self.sites[mine] or self.comes_later(other, store):
                        continue
                    apart = apart or Apart(self.function, self.sites)
                    if not apart.different(mine, other) and self.used_after(store, other, uses[other]):
                        self.rejected.add(group)

    def base(self, array: Value) -> Value:
        definition = self.structure.definition.get(array)
        while isinstance(definition, References):
            array = definition.array
            definition = self.structure.definition.get(array)
        return array

    def uses_of_names(self) -> dict[Value, list[tuple[int, Block]]]:
        """The uses of arrays by names that are not views: the time and the block."""
        found: dict[Value, list[tuple[int, Block]]] = {}

        def note(array: Value, time: int, block: Block) -> None:
            if isinstance(array.type, Array) and array in self.sites:
                found.setdefault(self.base(array), []).append((time, block))

        def visit(block: Block, end: int) -> None:
            for operation in block.operations:
                for array in operation.uses():
                    note(array, self.structure.start[operation], block)
                for inner in operation.blocks():
                    visit(inner, self.structure.end[operation])
            for array in block.yields:
                note(array, end, block)

        visit(self.function.body, 1 + max(self.structure.end.values(), default=0))
        return found

    def comes_later(self, name: Value, store: Store) -> bool:
        """Whether a name is bound after a store: it represents the values at that time."""
        operation = self.structure.definition.get(name)
        if operation is None:
            return False
        is_result = name in operation.defines()
        time = self.structure.end[operation] if is_result else self.structure.start[operation]
        return time > self.structure.start[store]

    def used_after(self, store: Store, other: Value, uses: list[tuple[int, Block]]) -> bool:
        now = self.structure.start[store]
        if any(time > now for time, _ in uses):
            return True
        around = self.structure.loops_around(self.structure.block_of[store])
        home = self.structure.loops_around(self.structure.home.get(other, self.structure.top))
        again = [loop for loop in around if loop not in home]  # they see the same array in each iteration
        return any(loop in again for _, block in uses for loop in self.structure.loops_around(block))

    # -- loops -------------------------------------------------------------------------------------------------------

    def loops_to_unroll(self) -> dict[Loop, set[Value]]:
        """The loops that must be unrolled for the groups. A table of constants is no reason to unroll."""
        tables = set[Value]() if self.with_tables else self.tables()
        found: dict[Loop, set[Value]] = {}
        for group, accesses in self.accessed.items():
            if self.is_accepted(group) and group not in tables:
                for loop in frozenset().union(*accesses):
                    found.setdefault(loop, set()).add(group)
        for group in tables:
            if any(loop not in found for loops in self.accessed.get(group, ()) for loop in loops):
                self.rejected.add(group)
        return found

    def tables(self) -> set[Value]:
        """Groups of arrays that are made once, of constants."""
        changing: set[Value] = set()
        constants = self.structure.constants
        for operation in walk(self.function.body):
            match operation:
                case Store(array=array, value=value) if operation.adds or value not in constants:
                    changing |= self.groups(array)
                case Alloc(out=out) | Copy(out=out) if self.is_in_loop(out) or isinstance(operation, Copy):
                    changing |= self.groups(out)
                case Library(outs=outs):
                    changing |= {g for out in outs for g in self.groups(out)}
        every = {self.group(site) for found in self.sites.values() for site in found}
        return {group for group in every if self.is_accepted(group)} - changing

    def is_in_loop(self, value: Value) -> bool:
        return bool(self.structure.loops_around(self.structure.home[value]))
