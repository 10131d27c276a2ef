"""Writes expressions and statements on whole arrays.

Every expression is written for a given shape, a tuple of numbers: the operands get shapes that broadcast, reduce or
multiply to it. Arrays with a length that is unknown when the program is written (None) only occur in the few statements
that are valid for any length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache

from tests.fuzz.kinds import Array, Arrays, Expression, Shape, Type
from tests.fuzz.tools import Tools

#: Elementwise functions whose absolute result is at most about two for every argument.
BOUNDED_ARRAYS = ("np.sin", "np.cos", "np.tanh", "np.arctan")

#: Augmented operators that may change a part of an array by a small value.
AUGMENTED = ("+=", "-=", "*=", "/=")
OPERATORS = ("=", "=", *AUGMENTED)


class ArrayWriter(Tools):
    """Writes expressions and statements with whole arrays."""

    # the rest of the language, which Writer adds

    def constant(self) -> str:
        raise NotImplementedError

    def real(self, depth: int = 2, limit: float = 4.0) -> str:
        raise NotImplementedError

    def expression(self, depth: int) -> Expression:
        raise NotImplementedError

    def condition(self, depth: int = 1) -> str:
        raise NotImplementedError

    def index(self, length: int | None, name: str = "", axis: int = 0) -> str:
        raise NotImplementedError

    def call(self, name: str, depth: int) -> str:
        raise NotImplementedError

    def view(self, name: str) -> tuple[str, tuple[int | None, ...]]:
        raise NotImplementedError

    # -------------------------------------------------------------------------------------------------------- shapes

    def fixed(self, rank: int | None = None, kind: str = "float", empty: bool = True) -> list[str]:
        """The arrays of known shape."""
        return self.of(
            lambda t: (
                isinstance(t, Array)
                and t.kind == kind
                and None not in t.shape
                and rank in (None, t.rank)
                and (empty or 0 not in t.shape)
            )
        )

    def shape_of(self, name: str) -> Shape:
        kind = self.variables[name]
        assert isinstance(kind, Array)
        return tuple(length for length in kind.shape if length is not None)

    def of_shape(self, shape: Shape, kind: str = "float") -> list[str]:
        return self.of(lambda t: isinstance(t, Array) and t.kind == kind and t.shape == shape)

    def some_shape(self, least: int = 0) -> Shape:
        """A shape that occurs in the program, or a related one. No length is below `least`."""
        shapes = [self.shape_of(name) for name in self.fixed()]
        if shapes and self.chance(0.7):
            shape = self.pick(shapes)
        else:
            n, m = self.style.sizes
            shape = self.pick(((n,), (n,), (m,), (n, m), (m, n), (n, n), (n, 1), (1, m), (1,), (2, n, m)))
        return tuple(max(length, least) for length in shape)

    def narrower(self, shape: Shape) -> Shape:
        """A shape that broadcasts to the given one: with lengths of one, or without leading axes."""
        if self.chance(0.55):
            return shape
        if self.chance(0.3):
            return ()
        cut = self.random.randint(0, len(shape) - 1) if shape else 0
        return tuple(1 if self.chance(0.3) else length for length in shape[cut:])

    def length_text(self, length: int) -> str:
        """A length as a number, or read from an array that has it."""
        if self.chance(0.5):
            alike = [(n, axis) for n in self.fixed() for axis, own in enumerate(self.shape_of(n)) if own == length]
            if alike:
                name, axis = self.pick(alike)
                return f"len({name})" if axis == 0 and self.chance(0.5) else f"{name}.shape[{axis}]"
        return str(length)

    def lengths_text(self, shape: Shape) -> str:
        alike = self.of_shape(shape)
        if alike and self.chance(0.2):
            return f"{self.pick(alike)}.shape"
        if len(shape) == 1 and self.chance(0.8):
            return self.length_text(shape[0])
        return f"({', '.join(map(self.length_text, shape))},)"

    # --------------------------------------------------------------------------------------------------- expressions

    def array(self, shape: Shape, depth: int = 2, limit: float = 4.0) -> str:
        """An expression for an array of this shape whose elements stay within the limit."""
        if not shape:
            return self.real(min(depth, 1), limit)
        return self.tamed_array(self.array_expression(shape, depth), limit)

    def tamed_array(self, expression: Expression, limit: float = 4.0) -> str:
        if expression.bound <= limit:
            return expression.text
        if expression.bound <= 5.0 * limit and self.chance(0.6):
            return f"{max(0.2, round(limit / expression.bound, 1))} * ({expression.text})"
        return f"{self.pick(BOUNDED_ARRAYS)}({expression.text})"

    def array_expression(self, shape: Shape, depth: int) -> Expression:
        if not shape:
            return self.expression(min(depth, 1))
        outside, self.inside_array = self.inside_array, True
        self.budget -= 0.25
        found = self.array_leaf(shape) if depth <= 0 else self.array_operation(shape, depth)
        self.inside_array = outside
        return found

    def array_operation(self, shape: Shape, depth: int) -> Expression:
        options: list[tuple[float, Callable[[Shape, int], Expression]]] = [
            (1.5, lambda s, d: self.array_leaf(s)),
            (5.0, self.array_arithmetic),
            (2.5, self.array_function),
            (1.0, self.array_choice),
            (0.8, self.array_reduction),
            (0.5, self.array_scan),
            (0.5, self.array_joined),
            (0.4, self.array_rearranged),
            (0.3, self.array_conditional),
        ]
        if len(shape) <= 2:
            options += [(1.0, self.array_product), (0.3, self.array_solution)]
        if self.functions(lambda result: result == Array(shape)):
            options.append((1.5, lambda s, d: self.array_call(s)))
        return self.weighted(options)(shape, depth - 1)  # type: ignore[no-any-return]

    def array_leaf(self, shape: Shape) -> Expression:
        options: list[tuple[float, Callable[[Shape], Expression | None]]] = [(0.4, self.array_made)]
        if self.of_shape(shape):
            options.append((6.0, self.array_named))
        if self.fixed():
            options += [(2.0, self.array_part), (0.7, self.array_picked), (0.25, self.array_reshaped)]
        if self.lists_of(shape):
            options.append((2.0, self.array_of_list))
        return self.weighted(options)(shape) or self.array_made(shape)

    def array_named(self, shape: Shape) -> Expression:
        return Expression(self.pick(self.of_shape(shape)), 4.0)

    def array_made(self, shape: Shape) -> Expression:
        """A new array, from numbers."""
        text = self.lengths_text(shape)
        way = self.random.randrange(6)
        if way == 0:
            alike = self.of_shape(shape)
            if alike:
                return Expression(f"np.{self.pick(('zeros_like', 'ones_like'))}({self.pick(alike)})", 1.0)
        if way == 1 and len(shape) == 1 and 0 < shape[0] <= 3:
            return Expression(f"np.array([{', '.join(f'1.0 * ({self.real(1)})' for _ in range(shape[0]))}])", 4.0)
        if way == 2 and len(shape) == 1:
            text = self.length_text(shape[0])
            return Expression(self.pick((f"0.3 * np.arange({text})", f"np.linspace(-0.8, 1.1, {text})")), 1.5)
        if way == 3 and len(shape) == 2 and shape[0] == shape[1]:
            return Expression(f"np.eye({self.length_text(shape[0])})", 1.0)
        if way == 4:
            return Expression(f"np.{self.pick(('ones', 'zeros'))}({text})", 1.0)
        return Expression(f"np.full({text}, 1.0 * ({self.real(1)}))", 4.0)

    def array_part(self, shape: Shape) -> Expression | None:
        """A view of a larger array."""
        names = [name for name in self.fixed() if self.has_part(name, shape)]
        if not names:
            return None
        return Expression(self.part(self.pick(names), shape), 4.0)

    def part(self, name: str, shape: Shape) -> str:
        """A view of an array, with this shape. There must be one."""
        own = self.shape_of(name)
        ways = list(alignments(own, shape))
        fewest = min(way.count("new") for way in ways)
        way = self.pick([way for way in ways if way.count("new") == fewest or self.chance(0.3)])
        items: list[str] = []
        axis = place = 0
        for step in way:
            if step == "new":
                items.append(self.pick(("None", "np.newaxis")))
                place += 1
                continue
            if step == "index":
                items.append(self.index(own[axis], name, axis))
            else:
                items.append(self.slice_between(own[axis], shape[place]))
                place += 1
            axis += 1
        while len(items) > 1 and items[-1] == ":" and self.chance(0.6):
            items.pop()
        if len(items) > 1 and items[0] == ":" and len(way) == len(items) and self.chance(0.2):
            items[0] = "..."
        return f"{name}[{', '.join(items)}]"

    def has_part(self, name: str, shape: Shape) -> bool:
        return any(alignments(self.shape_of(name), shape))

    def slice_between(self, length: int, wanted: int) -> str:
        """A slice of an axis that selects this many elements."""
        counters = [
            name
            for name in self.integers()
            if self.variables[name].low >= 0 and self.variables[name].high + wanted <= length  # type: ignore[union-attr]
        ]
        if counters and self.chance(0.3):
            counter = self.pick(counters)
            return f"{counter}:{counter} + {wanted}"
        plain, stepped = slices(length, wanted)
        return str(self.pick(stepped if not plain or (stepped and self.chance(0.35)) else plain))

    def array_picked(self, shape: Shape) -> Expression | None:
        """Elements chosen by index arrays."""
        rows = [n for n in self.fixed(empty=False) if self.shape_of(n)[1:] == shape[1:]]
        columns = [n for n in self.fixed(2, empty=False) if len(shape) == 2 and self.shape_of(n)[0] == shape[0]]
        matrices = [n for n in self.fixed(2, empty=False) if len(shape) == 1]
        options = [name for name, known in (("rows", rows), ("columns", columns), ("matrices", matrices)) if known]
        if not options:
            return None
        way = self.pick(options)
        if way == "rows":
            name = self.pick(rows)
            index = self.indices(shape[0], self.shape_of(name)[0])
            return Expression(
                self.pick((f"{name}[{index}]", f"{name}[{index}]", f"np.take({name}, {index}, axis=0)")), 4.0
            )
        if way == "columns":
            name = self.pick(columns)
            return Expression(f"{name}[:, {self.indices(shape[1], self.shape_of(name)[1])}]", 4.0)
        name = self.pick(matrices)
        height, width = self.shape_of(name)
        first = self.indices(shape[0], height)
        second = self.index(width, name, 1) if self.chance(0.3) else self.indices(shape[0], width)
        return Expression(f"{name}[{first}, {second}]", 4.0)

    def indices(self, count: int, length: int) -> str:
        """Indices of an axis, this many."""
        known = [n for n in self.fixed(1, "int") if self.variables[n].shape == (count,)]  # type: ignore[union-attr]
        fitting = [n for n in known if self.variables[n].highest < length]  # type: ignore[union-attr]
        if fitting and self.chance(0.6):
            return str(self.pick(fitting))
        if known and self.chance(0.3):
            return f"{self.pick(known)} % {length}"
        if count <= length and self.chance(0.15):
            same = [n for n in self.of_shape((count,))]
            return (
                f"np.argsort({self.pick(same)}, kind='stable')" if same and self.chance(0.5) else f"np.arange({count})"
            )
        if count == 0:
            return "np.zeros(0, dtype=np.int64)"
        numbers = ", ".join(str(self.random.randrange(-length, length)) for _ in range(count))
        return self.pick((f"[{numbers}]", f"np.array([{numbers}])"))

    def array_reshaped(self, shape: Shape) -> Expression | None:
        """The elements of another array in this shape."""
        if len(shape) > 1:
            turned = self.of_shape(shape[::-1])
            if turned and self.chance(0.6):
                name = self.pick(turned)
                return Expression(self.pick((f"{name}.T", f"np.transpose({name})", f"{name}.transpose()")), 4.0)
        names = [
            n for n in self.fixed() if math.prod(self.shape_of(n)) == math.prod(shape) and self.shape_of(n) != shape
        ]
        if not names:
            return None
        name = self.pick(names)
        if len(shape) == 1 and self.chance(0.7):
            return Expression(self.pick((f"{name}.ravel()", f"{name}.flatten()", f"{name}.reshape(-1)")), 4.0)
        lengths = [str(length) for length in shape]
        if math.prod(shape) and self.chance(0.4):
            lengths[self.random.randrange(len(lengths))] = "-1"
        return Expression(f"{name}.reshape({', '.join(lengths)})", 4.0)

    def array_of_list(self, shape: Shape) -> Expression | None:
        """An element of a list of arrays, or the sum of all."""
        name = self.pick(self.lists_of(shape))
        kind = self.variables[name]
        assert isinstance(kind, Arrays)
        if kind.least == 0:
            return None
        if self.chance(0.2):
            return Expression(f"np.mean(np.stack({name}), axis=0)", 4.0)
        return Expression(f"{name}[{self.random.randrange(-kind.least, kind.least)}]", 4.0)

    def lists_of(self, shape: Shape) -> list[str]:
        return self.of(lambda kind: isinstance(kind, Arrays) and kind.item.shape == shape)

    def operands(self, shape: Shape) -> tuple[Shape, Shape]:
        """Two shapes that broadcast to one."""
        if len(shape) == 2 and self.chance(0.25):
            return self.pick((((shape[0], 1), shape[1:]), ((shape[0], 1), (1, shape[1])), (shape[1:], (shape[0], 1))))
        pair = (shape, self.narrower(shape))
        return pair if self.chance(0.6) else pair[::-1]

    def array_arithmetic(self, shape: Shape, depth: int) -> Expression:
        first, second = self.operands(shape)
        left = self.array_expression(first, depth)
        operator = self.pick("++--***/")
        if operator == "/":
            return Expression(f"({left.text} / {self.positive_array(second)})", left.bound)
        right = self.array_expression(second, depth)
        if operator == "*":
            if left.bound * right.bound > 60.0:
                right = Expression(f"{self.pick(BOUNDED_ARRAYS)}({right.text})", 1.6)
            return Expression(f"({left.text} * {right.text})", left.bound * right.bound)
        return Expression(f"({left.text} {operator} {right.text})", left.bound + right.bound)

    def positive_array(self, shape: Shape) -> str:
        """An array of elements of at least one."""
        text = self.array(shape, 0)
        return self.pick((f"(1.0 + ({text}) ** 2)", f"(1.3 + np.abs({text}))", f"(2.5 + np.sin({text}))"))

    def array_function(self, shape: Shape, depth: int) -> Expression:
        way = self.random.randrange(12)
        inner = self.array_expression(shape, depth)
        small = self.tamed_array(inner, 2.0)
        if way <= 4:
            return Expression(f"{self.pick(BOUNDED_ARRAYS)}({inner.text})", 1.6)
        if way == 5:
            return Expression(f"np.exp({small})", 7.4)
        if way == 6:
            return Expression(f"np.{self.pick(('sqrt', 'log'))}({self.positive_array(shape)})", 4.2)
        if way == 7:
            return Expression(f"(-({small}))", 2.0)
        if way == 8:
            exponent = self.pick((2, 2, 3))
            return Expression(f"({small}) ** {exponent}", 2.0**exponent)
        if way == 9:
            return Expression(f"np.abs({small})", 2.0)
        if way == 10:
            function = self.pick(("np.hypot", "np.arctan2", "np.logaddexp"))
            return Expression(f"{function}({small}, {self.positive_array(self.narrower(shape))})", 20.0)
        return Expression(f"({small}) * ({self.mask(self.narrower(shape))})", 2.0)

    def array_choice(self, shape: Shape, depth: int) -> Expression:
        """`np.where`, `np.clip`, `np.maximum`, `np.minimum`."""
        first, second = self.operands(shape)
        way = self.random.randrange(6)
        if way == 0:
            inner = self.array_expression(shape, depth).text
            low = round(self.random.uniform(-1.0, 0.0), 2) - 0.003
            ends = f"{low:.3f}, {low + 1.1:.3f}"
            return Expression(self.pick((f"np.clip({inner}, {ends})", f"({inner}).clip({ends})")), 2.0)
        left = self.array_expression(first, depth)
        right = self.array_expression(second, depth)
        bound = max(left.bound, right.bound)
        if way <= 2:
            return Expression(f"np.{self.pick(('maximum', 'minimum'))}({left.text}, {right.text})", bound)
        condition = self.mask(self.narrower(shape) or shape)
        return Expression(f"np.where({condition}, {left.text}, {right.text})", bound)

    def mask(self, shape: Shape, depth: int = 1) -> str:
        """Booleans of this shape."""
        if not shape:
            return f"({self.condition(0)})"
        known = self.of_shape(shape, "bool")
        if known and self.chance(0.5):
            name = self.pick(known)
            return str(self.pick((name, name, f"~{name}")))
        if depth > 0 and self.chance(0.2):
            return f"(({self.mask(shape, 0)}) {self.pick('&|')} ({self.mask(self.narrower(shape), 0)}))"
        middle = round(self.random.gauss(0.0, 0.35), 2) + 0.003
        if self.chance(0.1) and len(shape) == 1:
            return f"(np.arange({self.length_text(shape[0])}) % 2 == {self.pick((0, 1))})"
        return f"({self.array(shape, 1)} {self.pick('<>')} {middle:.3f})"

    def array_reduction(self, shape: Shape, depth: int) -> Expression:
        """A reduction along an additional axis; or along an axis of length one, which it keeps."""
        ones = [axis for axis, length in enumerate(shape) if length == 1]
        count = self.random.randint(1, 4)
        if ones and self.chance(0.6):
            axis = self.pick(ones)
            wide, keep = (*shape[:axis], count, *shape[axis + 1 :]), ", keepdims=True"
        elif len(shape) < 3:
            axis = self.random.randint(0, len(shape))
            wide, keep = (*shape[:axis], count, *shape[axis:]), ""
        else:
            return self.array_leaf(shape)
        number = axis - len(wide) if self.chance(0.3) else axis
        inner = self.array_expression(wide, depth)
        function = self.pick(("sum", "sum", "sum", "mean", "max", "min", "prod", "var"))
        if function == "prod":
            inner = Expression(self.tamed_array(inner, 1.7), 1.7)
        bound = {"sum": count * inner.bound, "prod": 9.0, "var": inner.bound**2}.get(function, inner.bound)
        if self.chance(0.4):
            return Expression(f"({inner.text}).{function}(axis={number}{keep})", bound)
        return Expression(f"np.{function}({inner.text}, axis={number}{keep})", bound)

    def array_scan(self, shape: Shape, depth: int) -> Expression:
        """`cumsum`, `sort`, `diff`, `roll`, `flip`, along an axis."""
        axis = self.random.randrange(len(shape))
        way = self.random.randrange(6)
        if way == 0:
            longer = (*shape[:axis], shape[axis] + 1, *shape[axis + 1 :])
            inner = self.array_expression(longer, depth)
            return Expression(f"np.diff({inner.text}, axis={axis})", 2.0 * inner.bound)
        inner = self.array_expression(shape, depth)
        if way <= 2:
            bound = inner.bound * max(shape[axis], 1)
            method = len(shape) == 1 and self.chance(0.4)
            return Expression(f"({inner.text}).cumsum()" if method else f"np.cumsum({inner.text}, axis={axis})", bound)
        if way == 3:
            return Expression(f"np.sort({inner.text}, axis={axis})", inner.bound)
        if way == 4:
            return Expression(f"np.roll({inner.text}, {self.pick((1, -1, 2))}, axis={axis})", inner.bound)
        return Expression(f"np.flip({inner.text}, axis={axis}) * 1.0", inner.bound)

    def array_joined(self, shape: Shape, depth: int) -> Expression:
        """An array that is concatenated from parts along an axis."""
        axis = self.random.randrange(len(shape))
        length = shape[axis]
        if len(shape) > 1 and 1 <= length <= 3 and self.chance(0.5):
            rest = (*shape[:axis], *shape[axis + 1 :])
            parts = [self.array(rest, depth - 1) for _ in range(length)]
            if axis == 0 and self.chance(0.3):
                return Expression(
                    f"np.{self.pick(('array', 'vstack'))}([{', '.join(parts)}])"
                    if len(shape) == 2
                    else f"np.array([{', '.join(parts)}])",
                    4.0,
                )
            if axis == 1 and len(shape) == 2 and self.chance(0.3):
                return Expression(f"np.column_stack(({', '.join(parts)},))", 4.0)
            return Expression(f"np.stack([{', '.join(parts)}], axis={axis})", 4.0)
        cut = self.random.randint(0, length)
        sizes = [(*shape[:axis], part, *shape[axis + 1 :]) for part in (cut, length - cut)]
        if cut in (0, length) and self.chance(0.7):
            return self.array_leaf(shape)
        parts = [self.array(size, depth - 1) for size in sizes]
        along = f", axis={axis}" if axis or self.chance(0.2) else ""
        return Expression(f"np.concatenate(({', '.join(parts)}){along})", 4.0)

    def array_rearranged(self, shape: Shape, depth: int) -> Expression:
        """A transposed, reshaped, repeated or sliced expression."""
        way = self.random.randrange(5)
        if way == 0 and len(shape) > 1:
            return Expression(f"({self.array(shape[::-1], depth)}).T", 4.0)
        if way == 1 and len(shape) == 2:
            text = self.array((shape[0] * shape[1],), depth)
            return Expression(f"({text}).reshape({self.lengths_text(shape)})", 4.0)
        if way == 2 and len(shape) == 1:
            factor = self.pick([k for k in range(1, 5) if shape[0] % k == 0])
            text = self.array((factor, shape[0] // factor), depth)
            return Expression(self.pick((f"({text}).ravel()", f"({text}).reshape(-1)", f"np.ravel({text})")), 4.0)
        if way == 3:
            text = self.array(self.narrower(shape), depth)
            return Expression(f"np.broadcast_to({text}, {self.lengths_text(shape)}) * {self.constant()}", 6.4)
        axis = self.random.randrange(len(shape))
        longer = (*shape[:axis], shape[axis] + self.random.randint(0, 2), *shape[axis + 1 :])
        items = [":"] * axis + [self.slice_between(longer[axis], shape[axis])]
        return Expression(f"({self.array(longer, depth)})[{', '.join(items)}]", 4.0)

    def array_conditional(self, shape: Shape, depth: int) -> Expression:
        yes, no = self.array(shape, depth), self.array(shape, depth)
        return Expression(f"({yes} if {self.condition(0)} else {no})", 4.0)

    def array_product(self, shape: Shape, depth: int) -> Expression:
        """A matrix product, or an outer product."""
        inner = self.random.randint(1, 3)
        if len(shape) == 1:
            shapes = self.pick((((shape[0], inner), (inner,)), ((inner,), (inner, shape[0]))))
        elif self.chance(0.3):
            left, right = (self.array_expression((length,), depth) for length in shape)
            return Expression(f"np.outer({left.text}, {right.text})", left.bound * right.bound)
        else:
            shapes = ((shape[0], inner), (inner, shape[1]))
        left, right = (self.array_expression(one, depth) for one in shapes)
        bound = inner * left.bound * right.bound
        if self.chance(0.2):
            return Expression(f"np.dot({left.text}, {right.text})", bound)
        if self.chance(0.1) and len(shape) == 2:
            return Expression(f"np.einsum('ij,jk->ik', {left.text}, {right.text})", bound)
        return Expression(f"(({left.text}) @ ({right.text}))", bound)

    def array_solution(self, shape: Shape, depth: int) -> Expression:
        """The solution of a well-conditioned system, or the inverse of a matrix."""
        size = shape[0]
        if size == 0:
            return self.array_leaf(shape)
        matrix = self.regular(size, depth)
        if len(shape) == 2 and shape[1] == size and self.chance(0.3):
            return Expression(f"np.linalg.inv({matrix})", 1.0)
        return Expression(f"np.linalg.solve({matrix}, {self.array(shape, depth)})", 4.0)

    def regular(self, size: int, depth: int) -> str:
        """A matrix whose diagonal dominates."""
        inner = self.array_expression((size, size), min(depth, 1))
        return f"({size + 1.0} * np.eye({self.length_text(size)}) + {self.pick(('np.sin', 'np.tanh'))}({inner.text}))"

    def array_call(self, shape: Shape) -> Expression:
        return Expression(self.call(self.pick(self.functions(lambda result: result == Array(shape))), 1), 4.0)

    # --------------------------------------------------------------------------------------------- numbers of arrays

    def array_number(self, depth: int) -> Expression:
        """A number from whole arrays."""
        options: list[tuple[float, Callable[[int], Expression]]] = [
            (4.0, self.reduced),
            (1.5, self.inner_product),
            (0.7, self.masked_number),
            (0.3, self.matrix_number),
        ]
        if self.of(unknown_length):
            options.append((2.0, lambda d: self.unknown_number()))
        return self.weighted(options)(depth)  # type: ignore[no-any-return]

    def reduced(self, depth: int) -> Expression:
        function = self.pick(("sum", "sum", "sum", "mean", "max", "min", "prod", "std", "norm"))
        shape = self.some_shape(least=0 if function in ("sum", "prod") else 1)
        inner = self.array_expression(shape, min(depth, 2))
        count = max(math.prod(shape), 1)
        if function == "prod":
            return Expression(f"np.prod({self.tamed_array(inner, 1.2)})", min(1.2**count, 60.0))
        if function == "std":
            return Expression(f"np.sqrt(0.5 + np.var({inner.text}))", inner.bound + 1.0)
        if function == "norm" and len(shape) <= 2:
            return Expression(f"np.linalg.norm({self.positive_array(shape)})", 20.0 * count)
        if function == "norm":
            function = "sum"
        bound = inner.bound * (count if function == "sum" else 1)
        if self.chance(0.35):
            return Expression(f"({inner.text}).{function}()", bound)
        return Expression(f"np.{function}({inner.text})", bound)

    def inner_product(self, depth: int) -> Expression:
        length = self.some_shape()[0]
        left, right = (self.array_expression((length,), min(depth, 1)) for _ in range(2))
        bound = left.bound * right.bound * max(length, 1)
        text = self.pick((f"(({left.text}) @ ({right.text}))", f"np.dot({left.text}, {right.text})"))
        if self.chance(0.1):
            text = f"np.einsum('i,i->', {left.text}, {right.text})"
        return Expression(text, bound)

    def masked_number(self, depth: int) -> Expression:
        """The sum of the elements that a mask selects."""
        names = self.fixed()
        if not names:
            return self.reduced(depth)
        name = self.pick(names)
        mask = self.mask(self.shape_of(name))
        if self.chance(0.3):
            return Expression(f"np.count_nonzero({mask}) * 0.1", 3.0)
        function = self.pick((f"np.sum({name}[{mask}])", f"{name}[{mask}].sum()", f"np.sum({name}[{mask}] ** 2)"))
        return Expression(function, 100.0)

    def matrix_number(self, depth: int) -> Expression:
        size = self.random.randint(1, 3)
        way = self.random.randrange(3)
        if way == 0:
            return Expression(f"np.linalg.det({self.regular(size, depth)}) * 0.1", 20.0)
        if way == 1:
            return Expression(f"np.linalg.slogdet({self.regular(size, depth)})[1]", 6.0)
        return Expression(f"np.trace({self.array((size, size), min(depth, 1))})", 4.0 * size)

    def unknown_number(self) -> Expression:
        name = self.pick(self.of(unknown_length))
        return Expression(
            self.pick(
                (
                    f"np.sum({name})",
                    f"np.sum(np.sin({name}) * {name})",
                    f"np.mean({name} ** 2)",
                    f"np.sum({name}[1:] * {name}[:-1])",
                    f"np.max({name})",
                    f"np.sum({name}[::2])",
                    f"np.sum({name}[{name} > 0.103])",
                    f"np.sum(np.sort({name}, axis=0)[0])",
                    f"np.sum(np.where({name} > 0.103, {name}, 0.3))",
                )
            ),
            100.0,
        )

    def array_condition(self) -> str:
        """Whether any or all elements satisfy a condition."""
        return f"np.{self.pick(('any', 'all'))}({self.mask(self.some_shape())})"

    # ---------------------------------------------------------------------------------------------------- statements

    def assign_array(self) -> None:
        """A name bound mostly to a new array, sometimes to a part of another."""
        shape = self.some_shape()
        text = self.array(shape, self.pick((1, 2, 2, 3)))
        name = self.target("array", Array(shape))
        self.emit(f"{name} = {text}")
        self.bind(name, Array(shape))

    def bindable_arrays(self) -> list[str]:
        return [name for name in self.fixed() if self.bindable(name, self.variables[name])]

    def step_array(self) -> None:
        """`u = u + h * f(u)`: a new array replaces the old one."""
        names = self.bindable_arrays()
        if not names:
            return self.assign_array()
        name = self.pick(names)
        shape = self.shape_of(name)
        change = f"{self.pick(BOUNDED_ARRAYS)}({self.array_expression(shape, 2).text})"
        self.emit(
            f"{name} = {self.pick((name, f'0.8 * {name}'))} {self.pick('+-')} {self.pick(('0.2', '0.5'))} * {change}"
        )
        return None

    def augment_array(self) -> None:
        """`u += ...`: every name of the array sees it."""
        names = self.bindable_arrays()
        if not names:
            return self.write_part()
        name = self.pick(names)
        self.emit(f"{name} {self.change(self.shape_of(name), AUGMENTED)}")
        return None

    def change(self, shape: Shape, operators: tuple[str, ...] = OPERATORS) -> str:
        """An assignment to an array, or an augmented one that lets it grow slowly: the operator and the operand."""
        operator = self.pick(operators)
        narrow = self.narrower(shape)
        if operator == "/=":
            return f"/= {self.positive_array(narrow)}"
        if operator == "*=":
            return f"*= {self.pick(BOUNDED_ARRAYS)}({self.array_expression(narrow, 1).text})"
        if operator in ("+=", "-=") and self.iterations > 1:
            return f"{operator} {self.pick(BOUNDED_ARRAYS)}({self.array_expression(narrow, 1).text})"
        return f"{operator} {self.array(narrow, 2, 4.0 if operator == '=' else 1.0)}"

    def write_part(self) -> None:
        """An assignment to a part of an array, often from other parts of it."""
        names = self.fixed()
        if not names:
            return self.assign_array()
        name = self.pick(names)
        own = self.shape_of(name)
        shape = self.part_shape(own)
        place = self.part(name, shape)
        if shape and self.chance(0.45):
            operator = self.pick(("=", "=", "+=", "-=", "*="))
            self.emit(f"{place} {operator} {self.neighbours(name, shape, operator)}")
        elif shape and self.chance(0.05):
            self.emit(f"{place}.fill({self.real(1)})" if ":" in place else f"{place} = {self.real(1)}")
        else:
            self.emit(f"{place} {self.change(shape)}")
        return None

    def part_shape(self, own: Shape) -> Shape:
        """The shape of a part of an array: with shorter or fewer axes, but not without axes."""
        kept = [axis for axis in range(len(own)) if not (own[axis] and self.chance(0.3))] or [len(own) - 1]
        lengths = [own[axis] for axis in kept]
        return tuple(length if self.chance(0.35) else self.random.randint(min(1, length), length) for length in lengths)

    def neighbours(self, name: str, shape: Shape, operator: str) -> str:
        """A combination of parts of the array, all of one shape."""
        first, second = self.part(name, shape), self.part(name, shape)
        weight = self.constant()
        if operator == "=" and self.chance(0.25):
            return first
        if operator == "*=":
            return f"np.cos({first})"
        text = self.pick(
            (
                f"0.5 * ({first} + {second})",
                f"np.sin({first}) * {second}",
                f"{first} - {second}",
                f"np.where({first} > {weight}, {second}, 0.3)",
                f"{weight} * {first}",
            )
        )
        limit = operator != "=" and self.iterations > 1
        return f"np.sin({text})" if limit else f"0.6 * ({text})"

    def write_picked(self) -> None:
        """An assignment to elements selected by index arrays, or an addition to them."""
        names = self.fixed(empty=False)
        if not names:
            return self.assign_array()
        name = self.pick(names)
        own = self.shape_of(name)
        count = self.random.randint(1, 4)
        index = self.indices(count, own[0])
        shape: Shape = (count, *own[1:])
        if len(own) == 2:
            way = self.random.randrange(5)
            if way == 0:
                index, shape = f":, {self.indices(count, own[1])}", (own[0], count)
            elif way == 1:
                index, shape = f"{index}, {self.indices(count, own[1])}", (count,)
            elif way == 2:
                index, shape = f"{index}, {self.index(own[1], name, 1)}", (count,)
            elif way == 3:
                wanted = self.random.randint(1, own[1])
                index, shape = f"{index}, {self.slice_between(own[1], wanted)}", (count, wanted)
        if ":" not in index and self.chance(0.3):
            index = f"({index})" if "," in index and len(shape) < len(own) else index
            value = self.array(self.narrower(shape), 1, 2.0)
            self.emit(f"np.{self.pick(('add', 'add', 'subtract'))}.at({name}, {index}, np.sin({value}))")
        else:
            self.emit(f"{name}[{index}] {self.change(shape)}")
        return None

    def write_masked(self) -> None:
        """An assignment to elements selected by a mask, or an update of them."""
        names = self.fixed()
        if not names:
            return self.assign_array()
        name = self.pick(names)
        shape = self.shape_of(name)
        kind = Array(shape if self.chance(0.8) else shape[:1], "bool")
        mask = self.mask(self.shape_from(kind))
        if len(mask) > 30 or self.chance(0.4):
            with self.reserving(name):
                named = self.target("mask", kind)
            self.emit(f"{named} = {mask}")
            self.bind(named, kind)
            mask = named
        operator = self.pick(OPERATORS)
        if self.chance(0.5) or operator == "/=":
            self.emit(f"{name}[{mask}] {self.change(())}")
            return None
        other = self.pick(self.of_shape(shape))
        value = self.pick((f"np.sin({other}[{mask}])", f"0.4 * {name}[{mask}] * np.cos({other}[{mask}])"))
        self.emit(f"{name}[{mask}] {operator} {value}")
        return None

    def write_unknown(self) -> None:
        """Statements that are valid for any length."""
        names = self.of(unknown_length)
        if not names:
            return self.write_part()
        name = self.pick(names)
        places = [
            f"{name}[:] = np.sin({name}) * {self.leaf_text()}",
            f"{name}[1:] = 0.6 * {name}[:-1] + 0.3 * {name}[1:]",
            f"{name}[:-1] += np.sin({name}[1:])",
            f"{name}[::-1] = 0.7 * {name}",
            f"{name}[::2] *= 0.8",
            f"{name}[{name} > 0.103] *= 0.5",
            f"{name}[{name} < -0.203] = {self.real(1)}",
        ]
        if self.bindable(name, self.variables[name]):
            places += [f"{name} = np.tanh({name} + {self.leaf_text()})", f"{name} *= np.cos({name})"]
        self.emit(self.pick(places))
        return None

    def leaf_text(self) -> str:
        return self.real(0, 2.0)

    def write_out(self) -> None:
        """`out=`: the result goes into an existing array."""
        names = self.fixed()
        if not names:
            return self.assign_array()
        name = self.pick(names)
        shape = self.shape_of(name)
        if self.chance(0.5):
            self.emit(f"{self.pick(BOUNDED_ARRAYS)}({self.array(shape, 1)}, out={name})")
        else:
            first, second = self.operands(shape)
            function = self.pick(("add", "subtract", "maximum"))
            self.emit(f"np.{function}({self.array(first, 1, 2.0)}, {self.array(second, 1, 2.0)}, out={name})")
        return None

    def fill_array(self) -> None:
        """An array of which all parts are assigned, one after the other."""
        shape = self.some_shape(least=1)
        kind = Array(shape)
        name = self.fresh("array", kind)
        if name in self.variables or name in self.pinned:
            return
        cut = self.random.randint(0, shape[0])
        alike = self.of_shape(shape)
        if alike and self.chance(0.5):
            made = f"np.empty_like({self.pick(alike)})"
        else:
            made = f"np.empty({self.lengths_text(shape)})"
        below, above = (self.array((length, *shape[1:]), 2) for length in (cut, shape[0] - cut))
        self.emit(f"{name} = {made}")
        if self.chance(0.5):
            self.emit(f"{name}[:{cut}] = {below}")
            self.emit(f"{name}[{cut}:] = {above}")
        else:
            self.emit(f"{name}[{self.pick((':', '...'))}] = {self.array(self.narrower(shape), 2)}")
        self.bind(name, kind)

    def bind_mask(self) -> None:
        """A name for a mask, or for indices."""
        if self.chance(0.6):
            kind = Array(self.some_shape(), "bool")
            text = self.mask(self.shape_from(kind))
            name = self.target("mask", kind)
        else:
            length = self.some_shape(least=1)[0]
            kind = Array((length,), "int", length - 1)
            same = self.of_shape((length,))
            text = (
                f"np.argsort({self.pick(same)}, kind='stable')"
                if same and self.chance(0.6)
                else f"np.arange({length})[::-1]"
            )
            name = self.target("indices", kind)
        self.emit(f"{name} = {text}")
        self.bind(name, kind)

    def shape_from(self, kind: Array) -> Shape:
        return tuple(length for length in kind.shape if length is not None)

    def bind_reshaped(self) -> None:
        """A name for an array in another shape: a view, or a copy if a view is impossible."""
        names = self.fixed()
        if not names:
            return
        name = self.pick(names)
        own = self.shape_of(name)
        size = math.prod(own)
        shapes: list[Shape] = [own[::-1], (size,), (1, *own), (*own, 1)]
        shapes += [(k, size // k) for k in range(1, 5) if size % k == 0 and size]
        shape = self.pick([one for one in shapes if len(one) <= 3])
        if shape == (1, *own):
            text = f"{name}[None]"
        elif shape == (*own, 1):
            text = f"{name}[..., None]"
        elif shape == own[::-1]:
            text = f"{name}.T"
        elif shape == (size,):
            text = self.pick((f"{name}.ravel()", f"{name}.reshape(-1)", f"{name}.flatten()"))
        else:
            text = f"{name}.reshape({shape[0]}, {shape[1]})"
        target = self.target("view", Array(shape))
        self.emit(f"{target} = {text}")
        self.bind(target, Array(shape))

    # ------------------------------------------------------------------------------------------------ lists of arrays

    def create_arrays(self) -> None:
        shape = self.some_shape()
        count = self.pick((0, 1, 2, 2, 3))
        self.groups += 1
        kind = Arrays(Array(shape), count, self.groups)
        name = self.fresh("arrays", kind)
        if count and self.chance(0.2):
            text = f"[{self.array(shape, 1)} for _ in range({count})]"
        else:
            text = f"[{', '.join(self.array(shape, 1) for _ in range(count))}]"
        self.emit(f"{name} = {text}")
        self.bind(name, kind)

    def changeable_arrays(self, least: int = 0) -> list[str]:
        if self.nested:
            return []
        return self.of(
            lambda kind: isinstance(kind, Arrays) and kind.least >= least and kind.group not in self.frozen_groups
        )

    def append_array(self) -> None:
        names = self.changeable_arrays()
        if not names or self.iterations > 16:
            return self.assign_array()
        name = self.pick(names)
        shape = self.variables[name].item.shape  # type: ignore[union-attr]
        self.emit(f"{name}.append({self.array(shape, 1)})")
        return None

    def replace_array(self) -> None:
        """An assignment to an element of a list of arrays, or through it."""
        names = self.changeable_arrays(least=1)
        if not names:
            return self.assign_array()
        name = self.pick(names)
        kind = self.variables[name]
        assert isinstance(kind, Arrays)
        shape = self.shape_from(kind.item)
        place = f"{name}[{self.random.randrange(-kind.least, kind.least)}]"
        way = self.random.randrange(4)
        if way == 0:
            self.emit(f"{place} {self.change(shape, AUGMENTED)}")
        elif way == 1:
            self.emit(f"{place}[{self.pick((':', '...', '::-1'))}] {self.change(shape)}")
        elif way == 2 and kind.least > 1:
            self.emit(f"{name}[0], {name}[1] = {name}[1], {name}[0]")
        else:
            self.emit(f"{place} = {self.array(shape, 2)}")
        return None

    def pop_array(self) -> None:
        names = self.changeable_arrays()
        if not names:
            return self.assign_array()
        name = self.pick(names)
        kind = self.variables[name]
        assert isinstance(kind, Arrays)
        targets = [known for known in self.of_shape(kind.item.shape) if self.bindable(known, kind.item)]  # type: ignore[arg-type]
        self.emit(f"if len({name}) > {kind.least}:")
        with self.indented():
            if targets:
                self.emit(f"{self.pick(targets)} = {name}.pop()")
            else:
                self.emit(f"{name}.pop()")
        return None

    # ------------------------------------------------------------------------------------------------------- ends

    def array_terms(self, name: str) -> str:
        """The term of an array in the result at the end of a program: all its elements, with different weights."""
        shape = self.shape_of(name)
        size = math.prod(shape)
        weights = f"np.linspace(0.3, 1.2, {size})" + (f".reshape({shape})" if len(shape) > 1 else "")
        return str(
            self.pick(
                (
                    f"np.sum({name} * {weights})",
                    f"np.sum({weights} * {name})",
                    f"0.5 * ({name} ** 2).sum()",
                    f"np.sum(np.sin({name}) * {self.constant()})",
                    f"np.sum({name} * {name})",
                )
            )
        )


def unknown_length(kind: Type) -> bool:
    return isinstance(kind, Array) and kind.kind == "float" and None in kind.shape


def alignments(own: Shape, wanted: Shape) -> Iterator[tuple[str, ...]]:
    """The ways in which basic indices turn one shape into another: an "index", a "slice" or a "new" axis each.

    >>> list(alignments((3, 2), (2,)))
    [('index', 'slice'), ('slice', 'index')]
    """
    if not own and not wanted:
        yield ()
    if own and own[0]:
        yield from (("index", *rest) for rest in alignments(own[1:], wanted))
    if own and wanted and wanted[0] <= own[0]:
        yield from (("slice", *rest) for rest in alignments(own[1:], wanted[1:]))
    if wanted and wanted[0] == 1:
        yield from (("new", *rest) for rest in alignments(own, wanted[1:]))


@cache
def slices(length: int, wanted: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The slices of an axis that leave so many elements: those of step one, and those of other steps.

    >>> slices(2, 2)[0]
    (':', ':2', '-2:', '-2:2', '0:', '0:2')
    """
    ends = [None, *range(-length, length + 1)]
    plain: list[str] = []
    stepped: list[str] = []
    for step in (None, 2, 3, -1, -2):
        for start in ends:
            for stop in ends:
                if len(range(*slice(start, stop, step).indices(length))) == wanted:
                    text = f"{'' if start is None else start}:{'' if stop is None else stop}"
                    (plain if step is None else stepped).append(text if step is None else f"{text}:{step}")
    return tuple(plain), tuple(stepped)
