"""A function for each element of the leading axes of some of its arguments, as one loop of independent iterations.

def f(w, x):                                 def f(w, x):
    ...                                          value = np.empty(x.shape[0])
    return value                  =>             for k in range(x.shape[0]):
                                                     ... x[k] ...
                                                     value[k] = ...
                                                 return value
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import cloned
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Comment,
    Const,
    Copy,
    Dim,
    Function,
    Index,
    Library,
    Loop,
    Operation,
    Slice,
    Transpose,
    Value,
    walk,
)
from srcdiff.ir.types import INT, Array, Scalar, element_type
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.quick_dataclasses import dataclass

_ALL = Slice(None, None, None)


@dataclass(frozen=True, slots=True)
class Batch:
    function: Function
    loop: Loop
    whole: dict[Value, Value]
    """The parameters that hold one element for each iteration."""
    shared: frozenset[Value]
    """The arrays that all iterations add to."""


def for_each(
    function: Function,
    mapped: Collection[Value],
    given: Collection[Value],
    summed: Collection[int],
    like: Mapping[int, Value],
    span: Span | None,
) -> Batch:
    """The function over the leading axes of the parameters `mapped`.

    Parameters `given` are arrays that every iteration adds to: they become results. The results `summed` are numbers
    that are added up over the iterations; those that are `like` a parameter have its shape.
    """
    return _Batch(function, mapped, given, summed, like, span).run()


class _Batch:
    def __init__(
        self,
        function: Function,
        mapped: Collection[Value],
        given: Collection[Value],
        summed: Collection[int],
        like: Mapping[int, Value],
        span: Span | None,
    ) -> None:
        self.function, self.mapped, self.given, self.summed, self.span = function, mapped, given, summed, span
        self.shaped_like = {function.body.yields[k]: param for k, param in like.items()}
        self.definition = {v: o for o in walk(function.body) for v in o.defines()}
        self.build = Builder()
        self.build.constants.update({o.out: o.value for o in walk(function.body) if isinstance(o, Const)})
        self.whole = {
            p: Value(Array(p.scalar.dtype if isinstance(p.type, Scalar) else p.array.dtype, self.rank(p) + 1), p.name)
            for p in function.params
            if p in mapped
        }
        """The parameters that have a leading axis now."""
        self.iteration = Value(INT, "k")

    @staticmethod
    def rank(value: Value) -> int:
        return value.array.rank if isinstance(value.type, Array) else 0

    def run(self) -> Batch:
        build, function = self.build, self.function
        first = next(p for p in function.params if p in self.mapped)
        count = build.dim(self.whole[first], 0)
        totals = {bar: Value(bar.type, bar.name) for bar in self.given}
        for bar, like in self.like():
            build.add(Alloc(totals[bar], (), build.const(0.0), like))
        yields = function.body.yields
        places = [k for k, y in enumerate(yields) if k not in self.summed and y not in self.given]
        outs = {k: self.new_result(yields[k], count) for k in places}
        params = tuple(Value(yields[k].type, yields[k].name) for k in self.summed)
        loop_body, sums = self.body(totals, outs, params)
        inits = tuple(build.const(0.0, p.scalar) for p in params)
        results = tuple(Value(p.type, p.name) for p in params)
        bounds = (build.const(0), count, build.const(1))
        loop = Loop(self.iteration, bounds, params, inits, None, Block(tuple(loop_body), sums), results, span=self.span)
        build.add(loop)
        added = dict(zip(self.summed, results, strict=True))
        new_yields = tuple(added.get(k) or outs.get(k) or totals[y] for k, y in enumerate(yields))
        new_params = tuple(self.whole.get(p, p) for p in function.params if p not in self.given)
        made = replace(function, params=new_params, body=Block(tuple(build.operations), new_yields), written=())
        return Batch(made, loop, self.whole, frozenset(totals.values()))

    def like(self) -> list[tuple[Value, Value]]:
        """The arrays that every iteration adds to, with the parameter that each has the shape of."""
        names = {p.name: p for p in self.function.params}
        return [(bar, names[bar.name.removesuffix("_bar")]) for bar in self.given]

    def new_result(self, value: Value, count: Value) -> Value:
        """An array for the results of the iterations."""
        if not isinstance(value.type, Array):
            assert isinstance(value.type, Scalar)
            return self.build.alloc(value.type.dtype, (count,), None, value.name)
        return self.build.alloc(value.array.dtype, (count, *self.shape(value)), None, value.name)

    def shape(self, value: Value) -> list[Value]:
        """The shape of a result, which is the same for all iterations."""
        operation = self.definition.get(value)
        if isinstance(operation, Alloc):
            if operation.like is not None:
                return [self.length(operation.like, axis) for axis in range(value.array.rank)]
            sizes: dict[Value, Value] = {}
            return [self.outside(s, sizes) for s in operation.shape]
        if isinstance(operation, Copy):
            return [self.length(operation.array, axis) for axis in range(value.array.rank)]
        if isinstance(operation, Transpose):
            return [self.length(operation.array, axis) for axis in operation.axes]
        if isinstance(operation, Library):
            lengths = LIBRARY[operation.function].lengths(operation.outs.index(value))
            if lengths is not None:
                return [self.length(operation.args[place], axis) for place, axis in lengths]
        known = value if value in self.function.params else self.shaped_like.get(value)
        if known is not None:
            return [self.length(known, axis) for axis in range(value.array.rank)]
        raise self.unknown_shape()

    def length(self, array: Value, axis: int) -> Value:
        if array in self.whole:
            return self.build.dim(self.whole[array], axis + 1)
        if array in self.function.params:
            return self.build.dim(array, axis)
        return self.shape(array)[axis]

    def outside(self, size: Value, known: dict[Value, Value]) -> Value:
        """A size, computed before the loop."""
        if size in known:
            return known[size]
        operation = self.definition.get(size)
        match operation:
            case None if size in self.function.params and size not in self.mapped:
                return size
            case Const():
                self.build.add(cloned(operation, known))
                return known[size]
            case Dim():
                known[size] = self.length(operation.array, operation.axis)
                return known[size]
            case Apply():
                for used in operation.args:
                    known[used] = self.outside(used, known)
                self.build.add(cloned(operation, known))
                return known[size]
        raise self.unknown_shape()

    def unknown_shape(self) -> DifferentiationError:
        message = "the shape of a result is known only at run time, so it may differ within a batch"
        help_ = "return an array whose shape depends only on the shapes of the arguments"
        return DifferentiationError([Problem("SD501", message, self.span, help=help_)])

    def body(
        self, totals: dict[Value, Value], outs: dict[int, Value], params: tuple[Value, ...]
    ) -> tuple[list[Operation], tuple[Value, ...]]:
        build, function = self.build, self.function
        with build.block() as operations:
            known: dict[Value, Value] = dict(totals)
            for param, whole in self.whole.items():
                known[param] = self.element(whole, param.name)
            direct = self.written_at_once(outs)
            for operation in function.body.operations:
                if isinstance(operation, Alloc) and operation.out in direct:
                    self.place(operation, direct[operation.out], known)
                elif not isinstance(operation, Comment):
                    build.add(cloned(operation, known))
            for k, out in outs.items():
                value = function.body.yields[k]
                if direct.get(value) is not out:  # an array that is two results is written into the first
                    self.put(known.get(value, value), out)
            sums = []
            for param, k in zip(params, self.summed, strict=True):
                value = function.body.yields[k]
                sums.append(build.apply("add", param, known.get(value, value)))
        return operations, tuple(sums)

    def element(self, whole: Value, name: str) -> Value:
        """The part of an array that belongs to an iteration."""
        if whole.array.rank == 1:
            return self.build.load(whole, (self.iteration,), name)
        return self.build.view(whole, (Index(self.iteration), *[_ALL] * (whole.array.rank - 1)), name)

    def written_at_once(self, outs: dict[int, Value]) -> dict[Value, Value]:
        """New arrays that are results: the batch array that contains each of them."""
        top = {o.out for o in self.function.body.operations if isinstance(o, Alloc)}
        found: dict[Value, Value] = {}
        for k, out in outs.items():
            value = self.function.body.yields[k]
            if value in top and value not in found:
                found[value] = out
        return found

    def place(self, operation: Alloc, whole: Value, known: dict[Value, Value]) -> None:
        """A new array is the part of a result that belongs to the iteration."""
        part = self.element(whole, operation.out.name)
        known[operation.out] = part
        if operation.fill is not None:
            fill = self.build.cast(known.get(operation.fill, operation.fill), element_type(part.array))
            self.build.each_element(part, lambda at: self.build.store(part, at, fill))

    def put(self, value: Value, out: Value) -> None:
        if not isinstance(value.type, Array):
            self.build.store(out, (self.iteration,), value)
            return
        part = self.element(out, value.name)
        self.build.each_element(part, lambda at: self.build.store(part, at, self.build.load(value, at)))
