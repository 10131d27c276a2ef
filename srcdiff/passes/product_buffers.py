"""Products in loops write into an array that is allocated before the loop, if no other iteration sees the result.

for t in range(n):                           y = np.empty(m)
    y = a @ x                                for t in range(n):
    ...                           =>             np.dot(a, x, y)
                                                 ...

An allocation takes longer than the product of a small matrix and a vector. No pass but the last ones runs behind this
one: calls of a library write to no array otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from srcdiff.ir.aliasing import points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import (
    Alloc,
    Block,
    Copy,
    Dim,
    Function,
    Library,
    Load,
    Loop,
    Operation,
    Store,
    Transpose,
    Value,
    View,
    changed,
    substituted,
    walk,
)
from srcdiff.library.blas_lapack import INTO, LIBRARY
from srcdiff.passes.hoist_allocations import hoist_allocations

_READERS = Load | Store | Dim | View | Transpose | Library | Copy


def reuse_product_buffers(function: Function) -> Function:
    left: set[Value] = set()
    if not any(isinstance(o, Library) and o.function in INTO for o in walk(function.body)):
        return function
    while True:
        buffers = _Buffers(function, left)
        written = changed(function, body=buffers.block(function.body, in_loop=False))
        if not buffers.made:
            return function
        hoisted = hoist_allocations(written)
        stays = {o.out for loop in walk(hoisted.body) if isinstance(loop, Loop) for o in walk(loop.body)
                 if isinstance(o, Alloc) and o.out in buffers.made}  # fmt: skip
        if not stays:
            return hoisted
        left |= {out for new, out in buffers.made.items() if new in stays}


class _Buffers:
    def __init__(self, function: Function, left: set[Value]) -> None:
        """`left` are products that stay as they are."""
        self.left = left
        self.names: dict[Value, list[Value]] = {}
        """By memory, the values that may refer to it."""
        for value, sites in points_to(function).items():
            for site in sites:
                self.names.setdefault(site, []).append(value)
        self.users: dict[Value, list[Operation]] = {}
        self.yielded: set[Value] = set(function.body.yields)
        for operation in walk(function.body):
            for value in operation.uses():
                self.users.setdefault(value, []).append(operation)
            for block in operation.blocks():
                self.yielded |= set(block.yields)
        self.made: dict[Value, Value] = {}
        """The new arrays, and the results that they replace."""

    def block(self, block: Block, *, in_loop: bool) -> Block:
        build, known = Builder(), dict[Value, Value]()
        for before in block.operations:
            operation = before.replaced(lambda v: known.get(v, v)) if known else before
            if in_loop and isinstance(before, Library) and self.is_local(before):
                known[before.outs[0]] = self.write(before, operation.uses(), build)
                continue
            inside = isinstance(operation, Loop) and operation.counted and not operation.threads
            if known:
                operation = operation.rebuilt(lambda b: substituted(b, lambda v: known.get(v, v)))
            build.add(operation.rebuilt(partial(self.block, in_loop=inside)))
        return changed(block, operations=tuple(build.operations))

    def is_local(self, call: Library) -> bool:
        """Whether a product is only read, and only in the iteration that computes it."""
        if call.function not in INTO or call.outs[0] in self.left:
            return False
        (out,) = call.outs
        return all(
            v not in self.yielded and all(isinstance(o, _READERS) for o in self.users.get(v, ()))
            for v in self.names.get(out, [out])
        )

    def write(self, call: Library, args: Sequence[Value], build: Builder) -> Value:
        """A new array, and the call that writes into it."""
        (out,) = call.outs
        array = Value(out.type, out.name or "product")
        self.made[array] = out
        build.span = call.span
        lengths = [(args[k], axis) for k, axis in LIBRARY[call.function].lengths(0) or ()]
        build.add(Alloc(array, tuple(build.dim(*length) for length in lengths), span=call.span))
        build.add(Library((), INTO[call.function].name, (*args, array), span=call.span))
        return array
