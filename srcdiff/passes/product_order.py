"""The order of products in sums of bilinear forms: what has no adjoint is multiplied first.

p = x @ w                                    q = y @ w.T
for i in range(n):                           for i in range(n):
    s = 0.0                                      s = 0.0
    for j in range(len(p[0])):          =>       for k in range(len(q[0])):
        s += p[i, j] * y[i, j]                       s += x[i, k] * q[i, k]
    total += f(s)                                total += f(s)

Both take the same time, and `y` has no adjoint. The adjoint of `p` is that of a product of active matrices, which is a
product for each of them; that of `x` on the right is a loop over elements, and only `w` needs a product. So gradients
have one product less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from srcdiff.analyses.activity import Activity, activity
from srcdiff.analyses.structure import Structure, structure_of
from srcdiff.analyses.symbolic_shapes import Lengths, Pair, lengths_of
from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Apply,
    Block,
    Const,
    Dim,
    Function,
    Library,
    Load,
    Loop,
    Operation,
    Transpose,
    Value,
    changed,
    walk,
)
from srcdiff.ir.types import FLOAT, Array
from srcdiff.quick_dataclasses import dataclass


def reorder_products(function: Function, inputs: Iterable[Value]) -> Function:
    """The function with sums over rows of products in the order that leaves fewer products to its adjoint."""
    products = [o for o in walk(function.body) if isinstance(o, Library) and o.function == "matrix_matrix"]
    if not products:
        return function
    outputs = [*function.body.yields, *(p for p in function.params if isinstance(p.type, Array))]
    active = activity(function, inputs, outputs, points_to(function))
    return changed(function, body=_Reordering(function, active).block(function.body, []))


@dataclass(frozen=True, eq=False, slots=True)
class _Form:
    """The sum of the products of the elements of two rows: one of a matrix product, one of another matrix."""

    loop: Loop
    of_product: Load
    other: Load


class _Reordering:
    def __init__(self, function: Function, active: Activity) -> None:
        self.active = active
        self.structure: Structure = structure_of(function)
        self.lengths: Lengths = lengths_of(function)
        self.written = written_sites(function.body, active.sites)
        self.users: dict[Value, list[Operation]] = {}
        self.yielded: set[Value] = set(function.body.yields)
        for operation in walk(function.body):
            for value in operation.uses():
                self.users.setdefault(value, []).append(operation)
            for block in operation.blocks():
                self.yielded.update(block.yields)
        self.instead: dict[Operation, Operation] = {}

    def block(self, block: Block, facts: list[Pair]) -> Block:
        builder = Builder()
        builder.constants = dict(self.structure.constants)
        facts = list(facts)
        for operation in block.operations:
            form = self.form(operation, facts) if isinstance(operation, Library) else None
            if form is not None:
                assert isinstance(operation, Library)
                self.reorder(operation, form, builder)
                continue
            operation = self.instead.get(operation, operation)
            builder.add(operation.rebuilt(lambda inner: self.block(inner, facts)))
            equal = self.lengths.compared(operation)
            if equal is not None:
                facts.append(equal)
        return changed(block, operations=tuple(builder.operations))

    # -- which products ------------------------------------------------------------------------------------------------

    def form(self, product: Library, facts: list[Pair]) -> _Form | None:
        """The only use of a product, if another order is better."""
        out = product.outs[0]
        if product.function != "matrix_matrix" or out in self.yielded:
            return None
        left, right = product.args
        loads = [o for o in self.users.get(out, ()) if not isinstance(o, Dim)]
        found = self.sum_with(loads[0]) if len(loads) == 1 and isinstance(loads[0], Load) else None
        if found is None or not self.active.memory(left) or self.active.memory(found.other.array):
            return None
        if not self.is_there(found.other.array, product):
            return None
        other = found.other.array
        if not all(self.is_fixed(a) and a.array.dtype == "float64" for a in (left, right, out, other)):
            return None
        assert found.loop.bounds is not None
        length = self.lengths.of
        equal = (
            (length(other, 0), length(left, 0)),
            (length(other, 1), length(right, 1)),
            (self.lengths.size(found.loop.bounds[1]), length(right, 1)),
        )
        return found if all(self.lengths.alike(a, b, facts) for a, b in equal) else None

    def is_fixed(self, array: Value) -> bool:
        """Whether nothing is written to its memory."""
        return self.written.isdisjoint(self.active.sites.get(array, frozenset((array,))))

    def is_there(self, array: Value, before: Operation) -> bool:
        """Whether an array is made before an operation, and seen there."""
        home, block = self.structure.home.get(array), self.structure.block_of[before]
        definition = self.structure.definition.get(array)
        if home not in self.structure.blocks_around(block):
            return False
        return definition is None or self.structure.start[definition] < self.structure.start[before]

    def sum_with(self, load: Load) -> _Form | None:
        """The loop that sums up the products of elements in its row with those of another matrix."""
        loop = self.structure.owner.get(self.structure.block_of[load])
        if not isinstance(loop, Loop) or not loop.counted or loop.bounds is None or len(loop.params) != 1:
            return None
        if [self.structure.constants.get(b) for b in (loop.bounds[0], loop.bounds[2])] != [0, 1]:
            return None
        operations = [o for o in loop.body.operations if not isinstance(o, Const)]
        loads = [o for o in operations if isinstance(o, Load) and o is not load]
        times, plus = (self.only(operations, name) for name in ("multiply", "add"))
        if len(operations) != 4 or len(loads) != 1 or times is None or plus is None:
            return None
        (other,) = loads
        if other.array.array.rank != 2 or other.indices != load.indices or load.indices[1] is not loop.index:
            return None
        if load.indices[0] is loop.index or {*times.args} != {load.out, other.out}:
            return None
        if {*plus.args} != {loop.params[0], times.out} or loop.body.yields != (plus.out,):
            return None
        return _Form(loop, load, other) if plus.out.type == FLOAT else None

    def only(self, operations: list[Operation], primitive: str) -> Apply | None:
        found = [o for o in operations if isinstance(o, Apply) and o.primitive == primitive]
        return found[0] if len(found) == 1 else None

    # -- how it is written ---------------------------------------------------------------------------------------------

    def reorder(self, product: Library, form: _Form, builder: Builder) -> None:
        """Write the other product, and note what the loop becomes."""
        left, right = product.args
        turned, other = Value(right.type), Value(product.outs[0].type, product.outs[0].name)
        builder.add(Transpose(turned, right, (1, 0), span=product.span))
        builder.add(replace(product, outs=(other,), args=(form.other.array, turned)))
        count = builder.dim(right, 0)
        loop = form.loop
        assert loop.bounds is not None
        renamed = {form.of_product: replace(form.of_product, array=left), form.other: replace(form.other, array=other)}
        body = tuple(renamed.get(o, o) if isinstance(o, Load) else o for o in loop.body.operations)
        bounds = (loop.bounds[0], count, loop.bounds[2])
        self.instead[loop] = replace(loop, bounds=bounds, body=Block(body, loop.body.yields))
        for user in self.users.get(product.outs[0], ()):
            if isinstance(user, Dim):
                self.instead[user] = replace(user, array=(left, right)[user.axis], axis=user.axis)
