"""Writes a random program from a seed: readable, terminating, numerically harmless, from the whole language.

For every name, the writer records a type with an invariant that each assignment respects: an interval for an integer, a
bound for a real, the shape of an array, the least length of a list. So every index is in range, every loop ends, and
values stay bounded on every path. A name that is not defined on all paths is forgotten at the join. A name only changes
its type where no loop carries the old type.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from tests.fuzz.arrays import BOUNDED_ARRAYS, unknown_length
from tests.fuzz.cases import ENTRY, Case, Made, Named
from tests.fuzz.constructs import CONSTRUCTS
from tests.fuzz.constructs.construct import Construct
from tests.fuzz.kinds import (
    BOUNDED,
    LARGE,
    LOOP_REUSE,
    NAMED_PAIR,
    NAMES,
    NESTED,
    PAIR,
    Array,
    Arrays,
    Boolean,
    Complex,
    Expression,
    Function,
    Generator,
    Header,
    Integer,
    List,
    Loop,
    Pairs,
    Real,
    Rows,
    Structure,
    Style,
    Text,
    Tuple,
    Type,
    common,
    fits,
)
from tests.fuzz.recursive import RecursionWriter, some_length, some_recursion

HEADER = """import math
from collections import namedtuple

import numpy as np

Pair = namedtuple("Pair", ["first", "second"])
SCALE = 0.7
TABLE = np.array([0.4, -0.9, 0.6])
"""


# ---------------------------------------------------------------------------------------------------------- a function


class Writer(RecursionWriter):
    """Writes the body of one function."""

    # -------------------------------------------------------------------------------------------------- expressions

    def constant(self) -> str:
        return repr(round(self.random.uniform(0.1, 1.6) * self.pick((1, 1, -1)), 2))

    def tamed(self, expression: Expression, limit: float = 4.0) -> str:
        if expression.bound <= limit:
            return expression.text
        if expression.bound <= 5.0 * limit and self.chance(0.6):
            return f"{max(0.2, round(limit / expression.bound, 1))} * ({expression.text})"
        return f"{self.pick(BOUNDED)}({expression.text})"

    def real(self, depth: int = 2, limit: float = 4.0) -> str:
        return self.tamed(self.expression(depth), limit)

    def leaf(self) -> Expression:
        options: list[tuple[float, Callable[[], Expression]]] = [(0.6, lambda: Expression(self.constant(), 1.6))]
        if self.reals():
            options.append((5.0, self.real_variable))
        if self.arrays():
            options.append((3.0, lambda: Expression(self.element(self.pick(self.arrays())), 4.0)))
        if self.lists(1):
            options.append((1.0, self.list_element))
        if self.rows():
            options.append((1.5, self.row_element))
        if self.pairs():
            options.append((1.5, self.pair_item))
        if self.tuples():
            options.append((1.5, self.tuple_item))
        if self.integers():
            options.append((0.6, lambda: Expression(f"0.3 * {self.integer(0)[0]}", 2.0)))
        if self.arrays("int"):
            options.append((0.3, lambda: Expression(f"0.2 * {self.element(self.pick(self.arrays('int')))}", 2.0)))
        for construct in self.constructs:
            options += construct.leaves()
        if self.chance(0.05):
            options.append((2.0, lambda: Expression(self.pick(("SCALE", f"TABLE[{self.index(3)}]")), 1.0)))
        return self.weighted(options)()

    def real_variable(self) -> Expression:
        name = self.pick(self.reals())
        return Expression(name, self.variables[name].bound)  # type: ignore[union-attr]

    def list_element(self) -> Expression:
        name = self.pick(self.lists(1))
        least = self.variables[name].least  # type: ignore[union-attr]
        if self.chance(0.3) and self.integers():
            return Expression(f"{name}[{self.integer(0)[0]} % len({name})]", 4.0)
        return Expression(f"{name}[{self.random.randrange(-least, least)}]", 4.0)

    def tuple_item(self) -> Expression:
        text, kind = self.pick(self.tuples()), None
        kind = self.variables[text]
        while isinstance(kind, Tuple):
            k = self.random.randrange(len(kind.items))
            if kind.fields and self.chance(0.7):
                text = f"{text}.{kind.fields[k]}"
            else:
                text = f"{text}[{k - len(kind.items) if self.chance(0.2) else k}]"
            kind = kind.items[k]
        if isinstance(kind, Array):
            return Expression(self.constant() if 0 in kind.shape else self.element_of(text, kind), 4.0)
        return Expression(text, 4.0)

    def expression(self, depth: int) -> Expression:
        if depth <= 0:
            return self.leaf()
        options: list[tuple[float, Callable[[int], Expression]]] = [
            (1.5, lambda d: self.leaf()),
            (5.0, self.arithmetic),
            (2.5, self.bounded_call),
            (1.0, self.other_call),
            (0.8, self.choice),
            (0.7, self.power),
            (0.6, self.conditional),
            (0.35, self.remainder),
        ]
        if self.functions(lambda result: isinstance(result, Real)):
            options.append((1.6, self.function_call))
        if self.lists() and self.iterations <= 16:
            options.append((0.5, self.list_expression))
        if self.rows() and self.iterations <= 16:
            options.append((0.5, self.row_expression))
        if self.style.whole and self.iterations <= 32 and not self.inside_array:
            options.append((2.0, self.array_number))
        for construct in self.constructs:
            options += construct.expressions()
        return self.weighted(options)(depth - 1)  # type: ignore[no-any-return]

    def arithmetic(self, depth: int) -> Expression:
        left, right = self.expression(depth), self.expression(depth)
        operator = self.pick("++--***/")
        if operator == "*":
            if left.bound * right.bound > 60.0:
                right = Expression(f"{self.pick(BOUNDED)}({right.text})", 1.6)
            return Expression(f"({left.text} * {right.text})", left.bound * right.bound)
        if operator == "/":
            return Expression(f"({left.text} / {self.positive(depth)})", left.bound)
        return Expression(f"({left.text} {operator} {right.text})", left.bound + right.bound)

    def positive(self, depth: int) -> str:
        """A real of at least one."""
        inner = self.expression(min(depth, 1))
        if inner.bound <= 8.0:
            text = inner.text if inner.text.isidentifier() else self.leaf().text
            return f"(1.0 + ({text}) * ({text}))" if self.chance(0.5) else f"(1.2 + ({text}) ** 2)"
        return f"(2.5 + math.sin({inner.text}))"

    def bounded_call(self, depth: int) -> Expression:
        return Expression(f"{self.pick(BOUNDED)}({self.expression(depth).text})", 1.6)

    def other_call(self, depth: int) -> Expression:
        small = self.tamed(self.expression(depth), 2.0)
        kind = self.random.randrange(8)
        if kind == 0:
            return Expression(f"{self.pick(('math', 'np'))}.exp({small})", 7.4)
        if kind == 1:
            return Expression(f"{self.pick(('math', 'np'))}.sqrt({self.positive(depth)})", 8.0)
        if kind == 2:
            return Expression(f"{self.pick(('math', 'np'))}.log({self.positive(depth)})", 4.2)
        if kind == 3:
            return Expression(f"math.atan2({small}, {self.positive(depth)})", 1.6)
        if kind == 4:
            return Expression(f"math.hypot({small}, {self.constant()})", 3.0)
        if kind == 5:
            return Expression(f"{self.pick(('abs', 'math.fabs', 'np.abs'))}({small})", 2.0)
        if kind == 6:
            return Expression(f"(-({small}))", 2.0)
        return Expression(f"float({small})", 2.0)

    def choice(self, depth: int) -> Expression:
        parts = [self.expression(depth) for _ in range(self.pick((2, 2, 2, 3)))]
        if self.chance(0.25):
            parts[self.random.randrange(len(parts))] = Expression(self.constant(), 1.6)
        name = self.pick(("min", "max"))
        return Expression(f"{name}({', '.join(part.text for part in parts)})", max(part.bound for part in parts))

    def power(self, depth: int) -> Expression:
        base = self.tamed(self.expression(depth), 2.0)
        kind = self.random.randrange(6)
        if kind <= 1:
            exponent = self.pick((2, 2, 3))
            return Expression(f"({base}) ** {exponent}", 2.0**exponent)
        if kind == 2:
            return Expression(f"pow({base}, {self.pick((2, 3))})", 8.0)
        if kind == 3:
            exponent, bound = self.pick(((0.5, 8.0), (-0.5, 1.0), (1.5, 500.0), (-1, 1.0), (-2, 1.0)))
            return Expression(f"{self.positive(depth)} ** {exponent}", bound)
        if kind == 4:
            return Expression(f"{self.positive(depth)} ** math.sin({base})", 65.0)
        exponent, low, high = self.integer(0)
        if low < 0 or high > 3:
            exponent = f"({exponent} % 4)"
        return Expression(f"({base}) ** {exponent}", 16.0)

    def conditional(self, depth: int) -> Expression:
        yes, no = self.expression(depth), self.expression(depth)
        return Expression(f"({yes.text} if {self.condition(1)} else {no.text})", max(yes.bound, no.bound))

    def remainder(self, depth: int) -> Expression:
        inner = self.expression(depth)
        kind = self.random.randrange(5)
        if kind <= 1:
            return Expression(f"(({inner.text}) % {self.pick((0.9, 1.3, 2.1, -1.1))})", 2.1)
        if kind == 2:
            return Expression(f"(({self.tamed(inner)}) // {self.pick((0.7, 1.1))})", 6.0)
        if kind == 3:
            return Expression(f"(round({self.tamed(inner)}) * {self.constant()})", 6.0)
        if self.chance(0.6):
            return Expression(f"float({self.pick(('int', 'round'))}({self.tamed(inner)}))", 4.0)
        return Expression(f"(int({self.tamed(inner)}) + {self.leaf().text})", 8.0)

    def list_expression(self, depth: int) -> Expression:
        name = self.pick(self.lists())
        kind = self.random.randrange(4)
        if kind == 0:
            return Expression(f"0.1 * len({name})", 2.0)
        if kind == 1:
            return Expression(f"sum({name})", 30.0)
        variable = self.pick(("e", "value"))
        if variable in self.variables or variable in self.reserved:
            return Expression(f"sum({name})", 30.0)
        body = self.pick((f"math.sin({variable})", f"{variable} * {self.leaf().text}", f"{variable} * {variable}"))
        condition = f" if {variable} > {self.constant()}" if self.chance(0.3) else ""
        return Expression(f"sum([{body} for {variable} in {name}{condition}])", 60.0)

    def function_call(self, depth: int) -> Expression:
        return Expression(self.call(self.pick(self.functions(lambda r: isinstance(r, Real))), depth), 4.0)

    def call(self, name: str, depth: int) -> str:
        """A call of a known function. Some arguments are passed by keyword, and some defaults are omitted."""
        function = self.variables[name]
        assert isinstance(function, Function)
        self.budget -= 1  # a call is evaluated in its place, as often as it is written
        count = len(function.parameters)
        if function.optional and self.chance(0.5):
            count -= self.random.randint(1, function.optional)
        pairs = [known for known, kind in self.variables.items() if kind in (PAIR, NAMED_PAIR)]
        if pairs and function.parameters[-2:] == (Real(), Real()) and self.chance(0.3):
            first = [self.argument(kind, depth) for kind in function.parameters[:-2]]
            return f"{name}({', '.join([*first, f'*{self.pick(pairs)}'])})"
        arguments = [self.argument(kind, depth) for kind in function.parameters[:count]]
        if function.names and self.chance(0.2):
            start = self.random.randint(0, count)
            arguments[start:] = [
                f"{name}={text}" for name, text in zip(function.names[start:count], arguments[start:], strict=True)
            ]
        return f"{name}({', '.join(arguments)})"

    def argument(self, kind: Type, depth: int) -> str:
        if isinstance(kind, Real):
            return self.real(min(depth, 1), 2.0)
        if isinstance(kind, Integer):
            return self.integer_within(kind.low, kind.high)
        if isinstance(kind, Boolean):
            return self.condition(0)
        if isinstance(kind, Tuple):
            return self.tuple_value(kind)
        if isinstance(kind, Function):
            return self.function_value(kind)
        if special := self.special_value(kind):
            return special
        names = [name for name in self.of(lambda known: fits(known, kind)) if self.may_pass(name)]
        if names and self.chance(0.75):
            return str(self.pick(names))
        if isinstance(kind, List):
            return self.row_text()
        assert isinstance(kind, Array)
        if self.style.whole and None not in kind.shape and self.chance(0.7):
            return self.array(self.shape_from(kind), 1)
        return self.new_array(tuple(2 if length is None else length for length in kind.shape))

    def special_value(self, kind: Type) -> str | None:
        """An expression of a type that belongs to one of the constructs."""
        same = [name for name, known in self.variables.items() if known == kind]
        texts = [text for construct in self.constructs if (text := construct.value(kind)) is not None]
        return str(self.pick(same if same and self.chance(0.6) else texts)) if texts else None

    def may_pass(self, name: str) -> bool:
        kind = self.variables[name]
        return not isinstance(kind, List) or (kind.group not in self.frozen_groups and not self.nested)

    def function_value(self, kind: Function) -> str:
        """A function of the given type: a helper, a nested function, a lambda or one of `math`."""
        known = self.of(
            lambda t: isinstance(t, Function) and t.parameters == kind.parameters and t.result == kind.result
        )
        if known and self.chance(0.5):
            return str(self.pick(known))
        of_array = isinstance(kind.result, Array)
        if self.chance(0.3):
            return str(self.pick(BOUNDED_ARRAYS if of_array else ("math.sin", "math.tanh", "math.cos")))
        saved = dict(self.variables)
        self.variables["h"] = kind.parameters[0]
        text = self.array(self.shape_from(kind.result), 1, 2.0) if of_array else self.real(1, 2.0)
        self.variables = saved
        return f"(lambda h: {text})"

    def tuple_value(self, kind: Tuple) -> str:
        same = [name for name, known in self.variables.items() if known == kind]
        if same and self.chance(0.3):
            return str(self.pick(same))
        items = [self.tuple_value(item) if isinstance(item, Tuple) else self.argument(item, 1) for item in kind.items]
        if kind.maker:
            if self.chance(0.3):
                items[-1] = f"{kind.fields[-1]}={items[-1]}"
            return f"{kind.maker}({', '.join(items)})"
        return f"({', '.join(items)})"

    # ----------------------------------------------------------------------------------------------------- integers

    def integer(self, depth: int = 1) -> tuple[str, int, int]:
        """An integer expression with its interval."""
        names = self.integers()
        if depth > 0 and self.chance(0.5):
            return self.integer_operation(depth - 1)
        if names and self.chance(0.85):
            name = self.pick(names)
            kind = self.variables[name]
            return name, kind.low, kind.high  # type: ignore[union-attr]
        value = self.random.randint(0, 3)
        return str(value), value, value

    def integer_operation(self, depth: int) -> tuple[str, int, int]:
        text, low, high = self.integer(depth)
        kind = self.random.randrange(12)
        if kind <= 2:
            shift = self.random.randint(1, 2)
            return f"({text} + {shift})", low + shift, high + shift
        if kind == 3:
            shift = self.random.randint(1, 2)
            return f"({text} - {shift})", low - shift, high - shift
        if kind == 4:
            return f"{text} * 2", 2 * low, 2 * high
        if kind == 5:
            return f"{text} // 2", low // 2, high // 2
        if kind == 6:
            divisor = self.random.randint(2, 4)
            return f"{text} % {divisor}", 0, divisor - 1
        if kind == 7:
            other, other_low, other_high = self.integer(0)
            return f"min({text}, {other})", min(low, other_low), min(high, other_high)
        if kind == 8 and self.chance(0.5):
            return f"int({self.real(1)})", -4, 4
        if kind == 9 and self.arrays():
            name = self.pick(self.arrays())
            shape = self.variables[name].shape  # type: ignore[union-attr]
            axis = self.random.randrange(len(shape))
            length = shape[axis]
            text = f"len({name})" if axis == 0 and self.chance(0.5) else f"{name}.shape[{axis}]"
            return text, length or 1, length or 64
        if kind == 10 and self.lists():
            return f"len({self.pick(self.lists())})", 0, 1000
        if kind == 11 and self.arrays("int"):
            name = self.pick(self.arrays("int"))
            return self.element(name), 0, self.variables[name].highest  # type: ignore[union-attr]
        return f"abs({text})", 0, max(abs(low), abs(high))

    def integer_within(self, low: int, high: int, depth: int = 1) -> str:
        text, found_low, found_high = self.integer(depth)
        if low <= found_low and found_high <= high:
            return text
        if low == 0:
            return self.remainder_text(text, high + 1)
        return (
            f"{self.remainder_text(text, high - low + 1)} + {low}" if low > 0 else str(self.random.randint(low, high))
        )

    def remainder_text(self, text: str, divisor: int) -> str:
        return str(int(text) % divisor) if text.isdigit() else f"{self.bracketed(text)} % {divisor}"

    @staticmethod
    def bracketed(text: str) -> str:
        return text if text.isidentifier() or text.isdigit() else f"({text})"

    def index(self, length: int | None, name: str = "", axis: int = 0) -> str:
        """An index that is always in range."""
        if length is None:
            if self.chance(0.3) or not self.integers():
                return str(self.pick((0, -1)))
            size = f"len({name})" if axis == 0 and self.chance(0.5) else f"{name}.shape[{axis}]"
            return f"{self.bracketed(self.integer(0)[0])} % {size}"
        fitting = [
            known
            for known in self.integers()
            if -length <= self.variables[known].low and self.variables[known].high < length  # type: ignore[union-attr]
        ]
        if fitting and self.chance(0.65):
            return str(self.pick(fitting))
        if self.chance(0.25):
            text, low, high = self.integer(1)
            return text if -length <= low and high < length else self.remainder_text(text, length)
        return str(self.random.randrange(-length, length) if self.chance(0.3) else self.random.randrange(length))

    # ---------------------------------------------------------------------------------------------------- conditions

    def condition(self, depth: int = 1) -> str:
        options: list[tuple[float, Callable[[], str]]] = [(3.0, self.comparison), (1.2, self.integer_comparison)]
        flags = self.of(lambda kind: isinstance(kind, Boolean))
        if flags:
            options.append((0.8, lambda: self.pick(("", "not ")) + self.pick(flags)))
        texts = self.of(lambda kind: isinstance(kind, Text))
        if texts:
            options.append((0.8, lambda: self.text_comparison(self.pick(texts))))
        if self.lists():
            options.append((0.6, self.guarded_list))
        if self.arrays("bool"):
            options.append((0.6, lambda: self.element(self.pick(self.arrays("bool")))))
        if self.style.whole and depth > 0:
            options.append((0.4, self.array_condition))
        if depth > 0:
            options.append((1.5, lambda: self.combined(depth - 1)))
        return str(self.weighted(options)())

    def comparison(self) -> str:
        left = self.expression(1)
        operator = self.pick((">", "<", ">=", "<="))
        middle = round(self.random.gauss(0.0, 0.35), 2) + 0.003  # rarely equal to a value that was assigned
        if self.chance(0.2):
            return f"{middle - 0.5:.3f} < {left.text} < {middle + 0.5:.3f}"
        if self.chance(0.25):
            return f"{left.text} {operator} {self.expression(0).text} + {middle:.3f}"
        return f"{left.text} {operator} {middle:.3f}"

    def integer_comparison(self) -> str:
        if not self.integers() and self.chance(0.9):
            return self.comparison()
        text, _, _ = self.integer(1)
        if self.chance(0.4):
            return f"{self.bracketed(text)} % {self.pick((2, 3))} {self.pick(('==', '!='))} {self.pick((0, 1))}"
        return f"{text} {self.pick(('<', '>', '<=', '>=', '==', '!='))} {self.integer(0)[0]}"

    def text_comparison(self, name: str) -> str:
        values = self.variables[name].values  # type: ignore[union-attr]
        value = self.pick(values)
        if value is None:
            return f"{name} is {self.pick(('', 'not '))}None"
        if None in values:
            return f"{name} is not None"
        return f"{name} {self.pick(('==', '!='))} {value!r}"

    def guarded_list(self) -> str:
        name = self.pick(self.lists())
        if self.integers() and self.chance(0.5):
            index, low, _ = self.integer(0)
            index = index if low >= 0 else f"abs({index})"
        else:
            index = str(self.random.randint(0, 3))
        if self.chance(0.3):
            return f"{index} >= len({name}) or {name}[{index}] < {self.constant()}"
        return f"{index} < len({name}) and {name}[{index}] > {self.constant()}"

    def combined(self, depth: int) -> str:
        first, second = self.condition(depth), self.condition(depth)
        if self.chance(0.2):
            return f"not ({first})"
        return f"({first}) {self.pick(('and', 'or'))} ({second})"

    # -------------------------------------------------------------------------------------------------------- arrays

    def element(self, name: str) -> str:
        return self.element_of(name, self.variables[name])

    def element_of(self, text: str, kind: Type) -> str:
        assert isinstance(kind, Array)
        indices = [self.index(length, text, axis) for axis, length in enumerate(kind.shape)]
        if len(indices) > 1 and self.chance(0.2):
            cut = self.random.randrange(1, len(indices))
            return f"{text}[{', '.join(indices[:cut])}][{', '.join(indices[cut:])}]"
        return f"{text}[{', '.join(indices)}]"

    def shape_text(self, shape: tuple[int | None, ...]) -> str:
        alike = [name for name in self.arrays() if self.variables[name].shape == shape]  # type: ignore[union-attr]
        if alike and self.chance(0.3):
            return f"{self.pick(alike)}.shape"
        lengths = [str(length) for length in shape]
        return lengths[0] if len(lengths) == 1 else f"({', '.join(lengths)})"

    def new_array(self, shape: tuple[int | None, ...]) -> str:
        """An expression for a fresh array of floats of this shape."""
        alike = [name for name in self.arrays() if self.variables[name].shape == shape]  # type: ignore[union-attr]
        if (alike and None not in shape) or (alike and self.chance(0.6)):
            other = self.pick(alike)
            return str(
                self.pick(
                    (
                        f"{other}.copy()",
                        f"{other}.copy()",
                        f"np.copy({other})",
                        f"np.zeros_like({other})",
                        f"np.ones_like({other})",
                        f"np.full_like({other}, {self.real(1)})",
                    )
                )
            )
        text = self.shape_text(tuple(2 if length is None else length for length in shape))
        return str(self.pick((f"np.zeros({text})", f"np.ones({text})", f"np.full({text}, 1.0 * ({self.real(1)}))")))

    def view(self, name: str) -> tuple[str, tuple[int | None, ...]]:
        """A view of an array: an expression and its shape."""
        kind = self.variables[name]
        assert isinstance(kind, Array)
        if kind.rank > 1 and self.chance(0.12):
            return f"{name}.T", kind.shape[::-1]
        parts: list[str] = []
        shape: list[int | None] = []
        for axis, length in enumerate(kind.shape):
            dropped = sum(1 for part in parts if ":" not in part)
            if self.chance(0.45) and dropped + 1 < kind.rank:
                parts.append(self.index(length, name, axis))
                continue
            text, extent = self.slice_of(length)
            parts.append(text)
            shape.append(extent)
        while len(parts) > 1 and parts[-1] == ":" and self.chance(0.7):
            parts.pop()
        return f"{name}[{', '.join(parts)}]", tuple(shape)

    def slice_of(self, length: int | None) -> tuple[str, int | None]:
        if length is None or length == 1:
            return self.pick(((":", length), ("::-1", length), ("0:1", 1), (":", length)))
        options: list[tuple[str, int | None]] = [
            (":", length),
            (":", length),
            ("1:", length - 1),
            (":-1", length - 1),
            ("::2", (length + 1) // 2),
            ("::-1", length),
            (f":{length + 3}", length),
            ("-2:", 2),
        ]
        return self.pick(options)

    # ---------------------------------------------------------------------------------------------------- statements

    def block(self, statements: int) -> bool:
        """Write up to this many statements. Returns whether the end can be reached."""
        for _ in range(statements):
            if self.budget <= 0:
                break
            if not self.statement():
                return False
        return True

    def statement(self) -> bool:
        self.budget -= 1
        simple: list[tuple[float, Callable[[], bool | None]]] = [
            (4.0, self.assign_real),
            (1.5, self.augment_real),
            (1.2, self.accumulate),
            (1.0, self.assign_several),
            (0.8, self.assign_integer),
            (0.5, self.assign_boolean),
            (0.8, self.assign_tuple),
            (0.8, self.create_array),
            (1.0, self.create_list),
            (0.4, self.create_rows),
            (0.3, self.walrus),
            (0.15, self.noise),
            (0.3, self.check),
        ]
        if self.arrays():
            simple += [(4.0, self.write_element), (1.3, self.bind_view), (0.5, self.swap_elements)]
            simple += [(0.6, self.rebind_array)]
        if len(self.arrays()) > 1:
            simple.append((1.0, self.swap_arrays))
        if self.arrays("int") or self.arrays("bool"):
            simple.append((0.6, self.write_integer_element))
        if self.lists():
            simple += [(2.5, self.append), (1.5, self.pop), (1.0, self.write_list_element)]
            simple.append((0.3, self.alias_list))
        if self.rows():
            simple += [(2.5, self.change_rows), (1.0, self.write_row_element), (1.0, self.loop_over_rows)]
        if self.pairs():
            simple.append((2.0, self.change_pairs))
        if self.tuples():
            simple.append((0.8, self.unpack))
        if self.functions(lambda result: not isinstance(result, Real)):
            simple.append((1.5, self.call_statement))
        if self.uncalled():
            simple.append((25.0, self.call_recursion))
        if not self.nested:
            simple += [(0.5, self.define_function), (0.4, self.define_recursion)]
        if self.loops:
            simple.append((1.8, self.leave_iteration))
        simple.append((0.35, self.leave_function))
        if self.style.whole and self.iterations <= 32:
            simple += self.array_statements()
        for construct in self.constructs:
            simple += construct.statements()
        if self.may_raise and self.unsure:
            simple.append((6.0, self.use_unsure))
        if self.depth < 4 and self.budget >= 2 and self.chance(0.38):
            compound: list[tuple[float, Callable[[], bool | None]]] = [
                (3.0, self.branch),
                (0.5, self.guarded_definition),
            ]
            if self.iterations <= 8 and not self.nested:
                compound.append((1.2, self.time_loop))
            if self.iterations <= 16:
                compound += [(3.0, self.for_loop), (1.4, self.while_loop), (0.8, self.fill_loop)]
            for construct in self.constructs:
                compound += construct.compounds()
            return self.weighted(compound)() is not False
        return self.weighted(simple)() is not False

    def array_statements(self) -> list[tuple[float, Callable[[], bool | None]]]:
        statements: list[tuple[float, Callable[[], bool | None]]] = [
            (4.0, self.assign_array),
            (1.0, self.bind_mask),
            (0.6, self.fill_array),
            (1.5, self.create_arrays),
        ]
        if self.fixed():
            statements += [(5.0, self.write_part), (2.0, self.step_array), (2.0, self.augment_array)]
            statements += [(2.0, self.write_picked), (1.5, self.write_masked), (0.4, self.write_out)]
            statements.append((0.5, self.bind_reshaped))
        if self.of(unknown_length):
            statements.append((2.0, self.write_unknown))
        if self.of(lambda kind: isinstance(kind, Arrays)):
            statements += [(3.0, self.append_array), (2.0, self.replace_array), (2.0, self.pop_array)]
        if not self.nested:
            statements.append((0.5, self.define_array_function))
        return statements

    # assignments ---------------------------------------------------------------------------------------------------

    def assign_real(self) -> None:
        text = self.real(self.pick((1, 2, 2, 3)))
        if self.chance(0.03):
            text = self.pick(("0", "1", "-1", "2"))  # an integer where another path has a float
        name = self.target("real", Real())
        if self.chance(0.07) and name not in self.variables:
            self.emit(f"{name}: float = {text}")
        elif self.chance(0.08):
            # `float` would make an integer expression a real, but a name keeps its type
            other = self.target("real", Real())
            self.emit(f"{name} = {other} = {text}")
            self.bind(other, Real())
        else:
            self.emit(f"{name} = {text}")
        self.bind(name, Real())

    def augment_real(self) -> None:
        names = [name for name in self.reals() if self.bindable(name, self.variables[name])]
        if not names:
            return self.assign_real()
        name = self.pick(names)
        self.emit(f"{name} {self.growth(self.variables[name])}")
        return None

    def growth(self, kind: Type) -> str:
        """An augmented assignment that lets a value grow slowly: the operator and the operand."""
        large = isinstance(kind, Real) and kind.bound > 4.0
        shape = self.random.randrange(6)
        if shape <= 1 and self.iterations > 1 and not large and self.chance(0.8):
            # the increment of each iteration must not grow with the variable
            return f"{self.pick(('+=', '-='))} {self.pick(BOUNDED)}({self.expression(1).text})"
        if shape <= 1:
            return f"{self.pick(('+=', '-='))} {self.real(2, 4.0 if large else 1.0)}"
        if shape == 2:
            return f"*= {self.pick(BOUNDED[:3])}({self.expression(1).text})"
        if shape == 3:
            return f"*= {self.constant()}" if self.iterations == 1 else f"*= {self.pick((0.9, -0.8, 0.5))}"
        if shape == 4:
            return f"/= {self.positive(1)}"
        return f"%= {self.pick((1.9, 2.3))}" if self.chance(0.3) else f"+= {self.constant()}"

    def accumulate(self) -> None:
        names = [name for name in self.reals() if self.variables[name] == LARGE and self.bindable(name, LARGE)]
        if names and self.chance(0.8):
            name = self.pick(names)
            self.emit(f"{name} {self.pick(('+=', '+=', '-='))} {self.real(2, 8.0)}")
        elif self.loops or self.depth:
            return self.assign_real()
        else:
            name = self.fresh("total", LARGE)
            self.emit(f"{name} = {self.pick(('0.0', '0.0', '0', self.real(1)))}")
            self.bind(name, LARGE)
        return None

    def assign_several(self) -> None:
        """Unpacking of a display: several names, a swap, a rotation, an element among the targets."""
        names = [name for name in self.reals() if self.variables[name] == Real() and self.bindable(name, Real())]
        if len(names) >= 2 and self.chance(0.45):
            chosen = self.random.sample(names, min(len(names), self.pick((2, 2, 3))))
            rotated = chosen[1:] + chosen[:1]
            if self.chance(0.4):
                rotated[0] = self.tamed(Expression(f"{rotated[0]} * {self.leaf().text}", 16.0))
            self.emit(f"{', '.join(chosen)} = {', '.join(rotated)}")
            return
        texts = [self.real(1) for _ in range(self.pick((2, 2, 3)))]
        targets: list[str] = []
        for _ in texts:
            name = self.target("real", Real())
            while name in targets:
                name = f"{name}_{len(targets)}" if name.isidentifier() else self.unused(NAMES["real"])
            targets.append(name)
        if any(not self.bindable(name, Real()) for name in targets):
            return self.assign_real()
        if self.arrays() and self.chance(0.2):
            element = self.element(self.pick(self.arrays()))
            if mentions(element, targets[0]):
                return None
            self.emit(f"{targets[0]}, {element} = {texts[0]}, {texts[1]}")
            self.bind(targets[0], Real())
            return None
        if len(targets) == 3 and self.chance(0.4):
            self.emit(f"({targets[0]}, {targets[1]}), {targets[2]} = ({texts[0]}, {texts[1]}), {texts[2]}")
        else:
            self.emit(f"{', '.join(targets)} = {', '.join(texts)}")
        for name in targets:
            self.bind(name, Real())
        return None

    def assign_integer(self) -> None:
        names = [name for name in self.integers() if self.bindable(name, self.variables[name])]
        if names and self.chance(0.6):
            name = self.pick(names)
            kind = self.variables[name]
        else:
            kind = self.pick((Integer(0, 3), Integer(0, 5), Integer(0, 2), Integer(-3, 3)))
            name = self.fresh("integer", kind)
        assert isinstance(kind, Integer)
        text = self.integer_within(kind.low, kind.high, 2)
        self.emit(f"{name} = {text}")
        self.bind(name, kind)

    def assign_boolean(self) -> None:
        text = self.condition(1)
        name = self.target("boolean", Boolean())
        self.emit(f"{name} = {text}")
        self.bind(name, Boolean())

    def assign_tuple(self) -> None:
        kind: Tuple = self.weighted([(3.0, PAIR), (1.5, NAMED_PAIR), (1.0, NESTED)])
        arrays = self.arrays(rank=1)
        if arrays and self.chance(0.12):
            first, second = self.pick(arrays), self.pick(arrays)
            kind = Tuple((self.variables[first], self.variables[second]))
            name = self.target("tuple", kind)
            self.emit(f"{name} = ({first}, {second})")
            self.bind(name, kind)
            return
        helpers = self.functions(lambda result: result == kind)
        if helpers and self.chance(0.5):
            text = self.call(self.pick(helpers), 1)
        else:
            text = self.tuple_value(kind)
        name = self.target("tuple", kind)
        self.emit(f"{name} = {text}")
        self.bind(name, kind)

    def unpack(self) -> None:
        source = self.pick(self.tuples())
        kind = self.variables[source]
        assert isinstance(kind, Tuple)
        taken: list[str] = []

        def pattern(part: Tuple) -> str:
            texts = []
            for item in part.items:
                if isinstance(item, Tuple):
                    texts.append(f"({pattern(item)})")
                    continue
                name = self.fresh("array" if isinstance(item, Array) else "real", item)
                while name in taken:
                    name = f"{name}_{len(taken)}"
                taken.append(name)
                found.append((name, item))
                texts.append(name)
            return ", ".join(texts)

        found: list[tuple[str, Type]] = []
        text = pattern(kind)
        if all(self.bindable(name, item) for name, item in found):
            self.emit(f"{text} = {source}")
            for name, item in found:
                self.bind(name, item)

    def walrus(self) -> None:
        name = self.fresh("real", Real())
        inner = self.real(1)
        other = self.target("real", Real())
        if other == name or not self.bindable(other, Real()):
            return
        self.bind(name, Real())
        self.emit(f"{other} = ({name} := {inner}) * math.cos({self.leaf().text}) + {self.pick(BOUNDED[:4])}({name})")
        self.bind(other, Real())

    def use_unsure(self) -> None:
        """Read a name that may be undefined. Then the gradient raises the exception of the program."""
        names = [name for name, kind in self.unsure.items() if kind == Real() and name not in self.variables]
        places = [name for name in self.reals() if self.bindable(name, self.variables[name])]
        if names and places:
            self.emit(f"{self.pick(places)} += 0.5 * {self.pick(names)}")

    def noise(self) -> None:
        """Statements without an effect on the result."""
        if self.chance(0.5) and self.reals():
            name = self.pick(self.reals())
            self.emit(self.pick((f'print("at", {name})', f'print(f"{{{name}:.3f}} of {{{name}}}")', "print()")))
        else:
            self.emit("pass")

    def check(self) -> bool | None:
        """`assert` and `raise`, which most programs never reach."""
        probable = self.may_raise and self.chance(0.5)
        condition = self.comparison() if probable else f"{self.leaf().text} < 1000000.0"
        if self.chance(0.5):
            self.emit(f"assert {condition}" + self.pick(("", ', "out of range"')))
            return None
        self.emit(f"if not ({condition}):")
        with self.indented():
            self.emit(f"raise {self.pick(('ValueError', 'RuntimeError', 'ArithmeticError'))}('too large')")
        return None

    # arrays --------------------------------------------------------------------------------------------------------

    def write_element(self) -> None:
        name = self.pick(self.arrays())
        place = self.element(name)
        if self.chance(0.45):
            self.emit(f"{place} {self.growth(Real())}")
        elif self.chance(0.12):
            # targets are bound from left to right, so the element is chosen with the new value of the first name
            text = self.real(2)
            target = self.target("real", Real())
            if mentions(place, target):
                return
            self.emit(f"{target} = {place} = {text}")
            self.bind(target, Real())
        else:
            self.emit(f"{place} = {self.real(self.pick((1, 2, 3)))}")

    def write_integer_element(self) -> None:
        name = self.pick(self.arrays("int") + self.arrays("bool"))
        kind = self.variables[name]
        assert isinstance(kind, Array)
        if kind.kind == "bool":
            self.emit(f"{self.element(name)} = {self.condition(0)}")
        else:
            self.emit(f"{self.element(name)} = {self.integer_within(0, kind.highest)}")

    def swap_elements(self) -> None:
        name = self.pick(self.arrays())
        first, second = self.element(name), self.element(self.pick((name, self.pick(self.arrays()))))
        self.emit(f"{first}, {second} = {second}, {first}")

    def bind_view(self) -> None:
        text, shape = self.view(self.pick(self.arrays()))
        kind = Array(shape)
        name = self.target("view", kind)
        self.emit(f"{name} = {text}")
        self.bind(name, kind)

    def rebind_array(self) -> None:
        """The name of an array, bound to another one of its shape: a copy, a view, a helper's result, an alias."""
        names = [name for name in self.arrays() if self.bindable(name, self.variables[name])]
        if not names:
            return self.write_element()
        name = self.pick(names)
        kind = self.variables[name]
        assert isinstance(kind, Array)
        helpers = self.functions(lambda result: result == kind)
        same = [other for other in self.arrays() if self.variables[other] == kind and other != name]
        if helpers and self.chance(0.6):
            self.emit(f"{name} = {self.call(self.pick(helpers), 1)}")
        elif same and self.chance(0.5):
            if self.chance(0.3):
                self.emit(f"{name} = {self.pick(same)} if {self.condition(0)} else {self.pick(same)}")
            else:
                self.emit(f"{name} = {self.pick(same)}")
        elif self.style.whole and None not in kind.shape and self.chance(0.5):
            self.emit(f"{name} = {self.array(self.shape_from(kind), 2)}")
        else:
            self.emit(f"{name} = {self.new_array(kind.shape)}")
        return None

    def swap_arrays(self) -> None:
        names = [name for name in self.arrays() if self.bindable(name, self.variables[name])]
        if not names:
            return self.write_element()
        first = self.pick(names)
        partners = [name for name in names if name != first and self.variables[name] == self.variables[first]]
        if not partners:
            return self.write_element()
        if len(partners) > 1 and self.chance(0.3):
            second, third = self.random.sample(partners, 2)
            self.emit(f"{first}, {second}, {third} = {second}, {third}, {first}")
        else:
            second = self.pick(partners)
            self.emit(f"{first}, {second} = {second}, {first}")
        return None

    def create_array(self) -> None:
        if self.chance(0.2):
            return self.create_integer_array()
        shapes = [self.variables[name].shape for name in self.arrays()]  # type: ignore[union-attr]
        shape: tuple[int | None, ...]
        if shapes and self.chance(0.6):
            shape = self.pick(shapes)
        else:
            shape = self.pick(((2,), (3,), (4,), (2, 2), (2, 3), (2, 1, 2), (1, 2, 1, 2)))
        counters = [name for name in self.integers() if self.variables[name].low >= 0]  # type: ignore[union-attr]
        if counters and self.chance(0.25):
            kind = Array((None,))
            name = self.target("array", kind)
            counter = self.pick(counters)
            self.emit(f"{name} = np.{self.pick(('zeros', 'ones'))}({counter} + {self.pick((1, 2))})")
        elif self.chance(0.35) and None not in shape and self.iterations <= 8:
            kind = Array(shape)
            name = self.target("array", kind)
            if name in self.pinned:
                return None  # a closure could read it before it is filled
            self.fill_empty(name, kind)
        else:
            kind = Array(shape)
            text = self.new_array(shape)
            name = self.target("array", kind)
            self.emit(f"{name} = {text}")
        self.bind(name, kind)
        return None

    def fill_empty(self, name: str, kind: Array) -> None:
        """`np.empty` and the loops that fill it. They do not read the new array."""
        old = self.variables.pop(name, None)
        alike = [other for other in self.arrays() if self.variables[other].shape == kind.shape]  # type: ignore[union-attr]
        if alike and self.chance(0.7):
            self.emit(f"{name} = np.empty_like({self.pick(alike)})")
        else:
            self.emit(f"{name} = np.empty({self.shape_text(kind.shape)})")
        counters: list[str] = []
        saved, iterations = dict(self.variables), self.iterations
        start = self.indent
        with self.reserving(name):
            for length in kind.shape:
                counter = self.unused(NAMES["counter"])
                counters.append(counter)
                self.emit(f"for {counter} in range({length}):")
                self.variables[counter] = Integer(0, (length or 1) - 1)
                self.indent += 1
                self.iterations *= length or 1
            self.emit(f"{name}[{', '.join(counters)}] = {self.real(2)}")
        self.indent = start
        self.variables, self.iterations = saved, iterations
        if old is not None:
            self.variables[name] = old

    def create_integer_array(self) -> None:
        if self.chance(0.3):
            kind = Array((self.random.randint(2, 3),), "bool")
            text = f"np.zeros({kind.shape[0]}, dtype=np.bool_)"
        else:
            kind = Array((self.random.randint(2, 4),), "int", self.random.randint(1, 3))
            text = self.pick(
                (f"np.zeros({kind.shape[0]}, dtype=np.int64)", f"np.ones({kind.shape[0]}, dtype=np.int64)")
            )
        name = self.target("indices", kind)
        self.emit(f"{name} = {text}")
        self.bind(name, kind)

    # lists ---------------------------------------------------------------------------------------------------------

    def create_list(self) -> None:
        if self.chance(0.25) and self.lists() and self.iterations <= 8:
            return self.comprehend()
        count = self.pick((0, 1, 2, 3))
        self.groups += 1
        kind = List(count, self.groups)
        text = f"[{', '.join(self.real(1) for _ in range(count))}]"
        if self.chance(0.2):
            counter = "l" if "l" not in self.variables else "i9"
            if counter not in self.variables:
                kind = List(3, self.groups)
                saved = dict(self.variables)
                self.variables[counter] = Integer(0, 2)
                text = f"[{self.real(1)} for {counter} in range(3)]"
                self.variables = saved
        name = self.fresh("list", kind)
        self.emit(f"{name} = {text}")
        self.bind(name, kind)
        return None

    def comprehend(self) -> None:
        """A list made from another by a comprehension. Sometimes it replaces the old one."""
        source = self.pick(self.lists())
        kind = self.variables[source]
        assert isinstance(kind, List)
        if "e" in self.variables or "e" in self.reserved:
            return
        saved = dict(self.variables)
        self.variables["e"] = Real()
        text = self.real(1)
        self.variables = saved
        if self.bindable(source, kind) and kind.group not in self.frozen_groups and self.chance(0.4):
            self.emit(f"{source} = [{text} for e in {source}]")
            return
        self.groups += 1
        least = kind.least
        condition = ""
        if self.chance(0.3):
            condition, least = f" if e > {self.constant()}", 0
        new = List(least, self.groups)
        name = self.fresh("list", new)
        self.emit(f"{name} = [{text} for e in {source}{condition}]")
        self.bind(name, new)

    def changeable_lists(self) -> list[str]:
        if self.nested:
            return []  # a closure may be called while the list is iterated over
        return [name for name in self.lists() if self.variables[name].group not in self.frozen_groups]  # type: ignore[union-attr]

    def alias_list(self) -> None:
        """Another name for the same list."""
        source = self.pick(self.lists())
        kind = self.variables[source]
        name = self.target("list", kind)
        if name != source and kind.group not in self.frozen_groups:  # type: ignore[union-attr]
            self.emit(f"{name} = {source}")
            self.bind(name, kind)

    def append(self) -> None:
        names = self.changeable_lists()
        if not names or self.iterations > 16:
            return self.assign_real()
        name = self.pick(names)
        self.emit(f"{name}.append({self.real(2)})")
        return None

    def pop(self) -> None:
        names = self.changeable_lists()
        if not names:
            return self.assign_real()
        name = self.pick(names)
        kind = self.variables[name]
        assert isinstance(kind, List)
        where = self.pick(("", "", "", "0", "-1"))
        least = self.least_of(kind.group)
        self.emit(f"if len({name}) > {least}:")
        with self.indented():
            places = [known for known in self.reals() if self.bindable(known, self.variables[known])]
            if places and self.chance(0.9):
                self.emit(f"{self.pick(places)} {self.pick(('=', '+= 0.5 *'))} {name}.pop({where})")
            else:
                self.emit(f"{name}.pop({where})")
        return None

    def least_of(self, group: int) -> int:
        """The largest of the least lengths of the names of one list."""
        kinds = [kind for kind in self.variables.values() if isinstance(kind, List) and kind.group == group]
        return max(kind.least for kind in kinds)

    def write_list_element(self) -> None:
        names = [name for name in self.lists(1)]
        if not names:
            return self.append()
        place = self.list_element().text
        self.emit(f"{place} {self.growth(Real())}" if self.chance(0.4) else f"{place} = {self.real(2)}")
        return None

    # functions -----------------------------------------------------------------------------------------------------

    def define_function(self) -> None:
        """A nested function or a lambda that reads enclosing variables, with their values at the call."""
        self.define(Function((Real(),), Real(), ("h",), cost=2))

    def define_array_function(self) -> None:
        """A nested function or a lambda with an array argument."""
        given = Array(self.some_shape())
        self.define(Function((given,), self.pick((given, given, Real())), ("h",), cost=2))

    def define(self, kind: Function) -> None:
        parameters = dict(zip(kind.names, kind.parameters, strict=True))
        name = self.fresh("function", kind)
        if isinstance(self.variables.get(name), Type) and name in self.variables:
            return
        visible = {
            known: what
            for known, what in self.variables.items()
            if not isinstance(what, Function) or known in self.outside
        }
        if self.chance(0.4):
            inner = Writer(self.random, parameters, kind.result, 0, visible, True, tastes=self.tastes, style=self.style)
            text = inner.array(self.shape_from(kind.result), 2) if isinstance(kind.result, Array) else inner.real(2)
            self.emit(f"{name} = lambda h: {text}")
        else:
            budget = self.random.randint(0, 3)
            inner = Writer(
                self.random, parameters, kind.result, budget, visible, True, tastes=self.tastes, style=self.style
            )
            inner.indent = self.indent + 1
            inner.iterations = 8
            inner.loop_count = 1000
            self.emit(f"def {name}(h):")
            inner.write_body()
            self.lines += inner.lines
        self.pinned.update(visible)
        self.pinned.add(name)
        self.bind(name, kind)

    def call_statement(self) -> None:
        """A call with a result that is not a real."""
        self.keep_result(self.pick(self.functions(lambda result: not isinstance(result, Real))))

    def keep_result(self, name: str) -> None:
        """A call and names for its results: none, a number, a tuple to unpack, an array, a list."""
        result = self.variables[name].result  # type: ignore[union-attr]
        text = self.call(name, 1)
        if result is None:
            self.emit(text)
        elif isinstance(result, Tuple) and result.items == PAIR.items and self.chance(0.6):
            first = self.target("real", Real())
            second = self.target("real", Real())
            if first == second:
                second = self.fresh("real", Real())
            if first == second or not (self.bindable(first, Real()) and self.bindable(second, Real())):
                return
            self.emit(f"{first}, {second} = {text}")
            self.bind(first, Real())
            self.bind(second, Real())
        elif isinstance(result, Generator):
            target = self.target("real", Real())
            self.emit(f"{target} = 0.5 * sum({text})")
            self.bind(target, Real())
        elif isinstance(result, Structure):
            target = self.fresh("structure", result, 0.0)
            self.emit(f"{target} = {text}")
            self.bind(target, result)
        elif isinstance(result, List):
            self.groups += 1
            fresh = List(result.least, self.groups)
            target = self.fresh("list", fresh)
            self.emit(f"{target} = {text}")
            self.bind(target, fresh)
        else:
            family = {Array: "array", Tuple: "tuple", Real: "real", Pairs: "list", Complex: "complex"}[type(result)]
            target = self.target(family, result)
            self.emit(f"{target} = {text}")
            self.bind(target, result)

    # control -------------------------------------------------------------------------------------------------------

    def branch(self) -> bool:
        before = dict(self.variables)
        condition = self.condition(1)
        if self.chance(0.1):
            name = self.fresh("real", Real())
            if name not in before:
                condition = f"({name} := {self.real(1)}) {self.pick('<>')} {self.constant()}"
                self.bind(name, Real())
                before = dict(self.variables)
        self.emit(f"if {condition}:")
        scopes: list[dict[str, Type]] = []
        self.depth += 1
        unsure = dict(self.unsure)
        reached = [self.arm(before, scopes)]
        if self.chance(0.25):
            self.variables, self.unsure = dict(before), dict(unsure)
            self.emit(f"elif {self.condition(1)}:")
            reached.append(self.arm(before, scopes))
        if self.chance(0.55):
            self.unsure = dict(unsure)
            self.emit("else:")
            reached.append(self.arm(before, scopes))
        else:
            scopes.append(before)
            reached.append(True)
        self.depth -= 1
        self.unsure = {name: kind for name, kind in unsure.items() if self.ever[name] == {kind}}
        if scopes:
            self.variables = common(*scopes)
            self.forget(*scopes)
        return any(reached)

    def arm(self, before: dict[str, Type], scopes: list[dict[str, Type]]) -> bool:
        """One branch; its names are added to `scopes` if its end can be reached."""
        self.variables = dict(before)
        with self.indented():
            reached = self.block(self.random.randint(1, 3))
        if reached:
            scopes.append(self.variables)
        return reached

    def guarded_definition(self) -> bool:
        """A name that is defined under a flag, and only read under the same flag."""
        flag = self.fresh("boolean", Boolean())
        if flag in self.variables:
            return True
        self.emit(f"{flag} = {self.condition(1)}")
        self.bind(flag, Boolean())
        kind: Type = self.pick((Real(), Real(), Array((2,))))
        name = self.unused(NAMES["real" if isinstance(kind, Real) else "array"])
        text = self.real(2) if isinstance(kind, Real) else f"np.full(2, 1.0 * ({self.real(1)}))"
        self.depth += 1
        with self.reserving(flag, name):
            self.emit(f"if {flag}:")
            with self.indented():
                self.emit(f"{name} = {text}")
            reached = self.block(self.random.randint(0, 2))
            if reached:
                before = dict(self.variables)
                self.emit(f"if {flag}:")
                with self.indented():
                    self.variables[name] = kind
                    self.homes[name] = self.loop
                    self.emit_use(name, kind)
                    self.block(1)
                self.variables = common(before, self.variables)
        self.depth -= 1
        return reached

    def unused(self, names: Sequence[str]) -> str:
        """The first name that has no meaning here and may be bound."""
        numbered = (f"{names[0]}{number}" for number in range(2, 1000))
        taken = {*self.variables, *self.reserved, *self.pinned}
        return next(name for name in (*names, *numbered) if name not in taken)

    def emit_use(self, name: str, kind: Type) -> None:
        read = name if isinstance(kind, Real) else self.element(name)
        places = [known for known in self.reals() if known != name and self.bindable(known, self.variables[known])]
        amount = f"0.7 * {read}" if self.iterations == 1 else f"0.7 * math.sin({read})"
        if places:
            self.emit(f"{self.pick(places)} += {amount}")
        elif self.arrays():
            self.emit(f"{self.element(self.pick(self.arrays()))} += {amount}")

    def leave_iteration(self) -> bool | None:
        """`break` or `continue`, mostly under a condition."""
        way = self.pick(("break", "continue"))
        loop = self.loops[-1]
        record = loop.breaks if way == "break" else loop.ends
        if self.depth > len(self.loops) and self.chance(0.3):
            record.append(dict(self.variables))
            self.emit(way)
            return False
        before = dict(self.variables)
        self.emit(f"if {self.condition(1)}:")
        with self.indented():
            self.depth += 1
            reached = self.block(self.random.randint(0, 1))
            self.depth -= 1
            if reached:
                record.append(dict(self.variables))
                self.emit(way)
        self.variables = before
        return None

    def leave_function(self) -> bool | None:
        if self.depth > len(self.loops) and self.chance(0.4):
            self.write_return()
            return False
        before = dict(self.variables)
        self.emit(f"if {self.condition(1)}:")
        with self.indented():
            self.depth += 1
            reached = self.block(self.random.randint(0, 1))
            self.depth -= 1
            if reached:
                self.write_return()
        self.variables = before
        return None

    def for_loop(self) -> bool:
        header, bound, iterations, runs, groups, kept = self.loop_header()
        return self.loop_body(f"for {header}:", bound, iterations, runs, groups, kept)

    def loop_header(self) -> Header:
        """A loop over one of the available iterables."""
        options: list[tuple[float, Callable[[], Header]]] = [
            (4.0, self.over_range),
            (0.5, self.over_display),
        ]
        if self.arrays():
            options += [(2.0, self.over_array), (0.6, self.over_pairs)]
        if self.lists() and self.iterations <= 4:
            options.append((1.5, self.over_list))
        if self.of(lambda kind: isinstance(kind, Arrays)) and self.iterations <= 4:
            options.append((1.5, self.over_arrays))
        return self.weighted(options)()  # type: ignore[no-any-return]

    def counter(self, kind: Integer) -> str:
        reusable = [
            name
            for name in self.integers()
            if self.bindable(name, self.variables[name])
            and self.variables[name].low <= kind.low  # type: ignore[union-attr]
            and kind.high <= self.variables[name].high  # type: ignore[union-attr]
        ]
        if reusable and self.chance(0.12):
            return str(self.pick(reusable))
        return self.fresh("counter", kind, LOOP_REUSE)

    def over_range(self) -> Header:
        way = self.random.randrange(10)
        runs = True
        low, high = 0, self.random.randint(1, 4)
        if way <= 2:
            text = f"range({high})"
        elif way == 3 and self.arrays():
            name = self.pick(self.arrays())
            length = self.variables[name].shape[0]  # type: ignore[union-attr]
            if length is None:
                return self.over_unknown_length(name)
            high = length
            text = self.pick((f"range(len({name}))", f"range({name}.shape[0])"))
        elif way == 4:
            text, first, last = self.integer(0)
            if last > 5 or first < -5:
                text, first, last = f"{text} % 4", 0, 3
            runs, high = first >= 1, max(last, 1)
            text = f"range({text})"
        elif way == 5:
            low = self.random.randint(-1, 2)
            high = low + self.random.randint(0, 3)
            runs = high > low
            text = f"range({low}, {high})"
            high = max(high, low + 1)
        elif way == 6:
            step = self.random.randint(2, 3)
            high = self.random.randint(1, 6)
            text = f"range(0, {high}, {step})"
        elif way == 7:
            text = f"range({high - 1}, -1, -1)"
        elif way == 8:
            high = self.random.randint(3, 5)
            text = f"range({high - 1}, 0, -2)"
            low = 1
        else:
            text = f"reversed(range({high}))"
        kind = Integer(low, max(high - 1, low))
        name = self.counter(kind)
        known = self.variables.get(name)
        bound = known if isinstance(known, Integer) and known.low <= low and kind.high <= known.high else kind
        return f"{name} in {text}", [(name, bound)], max(high - low, 1), runs, [], []

    def over_unknown_length(self, array: str) -> Header:
        kind = Integer(0, 63)
        name = self.fresh("counter", kind, LOOP_REUSE)
        return f"{name} in range(len({array}))", [(name, kind)], 4, True, [], []

    def over_display(self) -> Header:
        if self.chance(0.35):
            numbers = [self.random.randint(0, 3) for _ in range(self.random.randint(1, 4))]
            within = Integer(min(numbers), max(numbers))
            counter = self.fresh("counter", within, LOOP_REUSE)
            text = ", ".join(map(str, numbers))
            text = f"[{text}]" if self.chance(0.5) else f"({text},)"
            return f"{counter} in {text}", [(counter, within)], len(numbers), True, [], []
        items = [self.real(1) for _ in range(self.random.randint(1, 3))]
        name = self.fresh("real", Real(), LOOP_REUSE)
        display = f"({', '.join(items)},)"
        if self.chance(0.2):
            kind = Integer(0, len(items) - 1)
            counter = self.counter(kind)
            if counter not in self.variables and counter != name:
                return (
                    f"{counter}, {name} in enumerate({display})",
                    [(counter, kind), (name, Real())],
                    len(items),
                    True,
                    [],
                    [],
                )
        return f"{name} in {display}", [(name, Real())], len(items), True, [], []

    def over_array(self) -> Header:
        array = self.pick(self.arrays())
        kind = self.variables[array]
        assert isinstance(kind, Array)
        item: Type = Real() if kind.rank == 1 else Array(kind.shape[1:])
        name = self.fresh("real" if kind.rank == 1 else "view", item, LOOP_REUSE)
        iterations = kind.shape[0] or 4
        way = self.random.randrange(5)
        if way == 0 and kind.rank == 1:
            return f"{name} in reversed({array})", [(name, item)], iterations, True, [], []
        if way <= 2:
            start = self.pick((0, 0, 1))
            count = Integer(start, (kind.shape[0] or 64) - 1 + start)
            counter = self.fresh("counter", count, LOOP_REUSE)
            if counter != name:
                text = f"enumerate({array}, {start})" if start else f"enumerate({array})"
                return f"{counter}, {name} in {text}", [(counter, count), (name, item)], iterations, True, [], []
        return f"{name} in {array}", [(name, item)], iterations, True, [], []

    def over_pairs(self) -> Header:
        vectors = self.arrays(rank=1)
        if not vectors:
            return self.over_array()
        first, second = self.pick(vectors), self.pick(vectors)
        p, q = self.fresh("real", Real(), LOOP_REUSE), self.fresh("real", Real(), LOOP_REUSE)
        if p == q:
            return self.over_array()
        iterations = self.variables[first].shape[0] or 4  # type: ignore[union-attr]
        names: list[tuple[str, Type]] = [(p, Real()), (q, Real())]
        if self.chance(0.3):
            count = Integer(0, 63)
            counter = self.fresh("counter", count, LOOP_REUSE)
            if counter not in (p, q):
                text = f"{counter}, ({p}, {q}) in enumerate(zip({first}, {second}))"
                return text, [(counter, count), *names], iterations, True, [], []
        return f"{p}, {q} in zip({first}, {second})", names, iterations, True, [], []

    def over_list(self) -> Header:
        source = self.pick(self.lists())
        kind = self.variables[source]
        assert isinstance(kind, List)
        name = self.fresh("real", Real(), LOOP_REUSE)
        runs = kind.least > 0
        way = self.random.randrange(4)
        if way == 0:
            return f"{name} in reversed({source})", [(name, Real())], 6, runs, [kind.group], [source]
        if way == 1:
            count = Integer(0, 63)
            counter = self.fresh("counter", count, LOOP_REUSE)
            if counter != name:
                names: list[tuple[str, Type]] = [(counter, count), (name, Real())]
                return f"{counter}, {name} in enumerate({source})", names, 6, runs, [kind.group], [source]
        return f"{name} in {source}", [(name, Real())], 6, runs, [kind.group], [source]

    def over_arrays(self) -> Header:
        source = self.pick(self.of(lambda kind: isinstance(kind, Arrays)))
        kind = self.variables[source]
        assert isinstance(kind, Arrays)
        name = self.fresh("view", kind.item, LOOP_REUSE)
        runs = kind.least > 0
        if self.chance(0.3):
            count = Integer(0, 63)
            counter = self.fresh("counter", count, LOOP_REUSE)
            if counter != name:
                names: list[tuple[str, Type]] = [(counter, count), (name, kind.item)]
                return f"{counter}, {name} in enumerate({source})", names, 4, runs, [kind.group], [source]
        return f"{name} in {source}", [(name, kind.item)], 4, runs, [kind.group], [source]

    def loop_body(
        self,
        header: str,
        bound: list[tuple[str, Type]],
        iterations: int,
        runs: bool,
        groups: list[int],
        kept: list[str],
        prologue: Callable[[], None] | None = None,
    ) -> bool:
        """The body of a loop whose header has been written, its `else`, and the names that are known afterwards."""
        if not all(self.bindable(name, kind) for name, kind in bound):
            return True
        before = dict(self.variables)
        homes = dict(self.homes)
        clobbered = [name for name, kind in bound if name in before and before[name] != kind]
        self.loop_count += 1
        loop = Loop(self.loop_count)
        self.emit(header)
        saved_iterations, saved_groups = self.iterations, set(self.frozen_groups)
        self.iterations *= iterations
        self.frozen_groups.update(groups)
        self.loops.append(loop)
        self.depth += 1
        for name in clobbered:
            del self.variables[name]
        for name, kind in bound:
            if name not in before or name in clobbered:
                self.homes[name] = loop.number
            self.variables[name] = kind
        # a name of another type before the loop is unknown in all iterations
        with self.reserving(*kept), self.indented():
            if prologue is not None:
                prologue()
            if self.block(self.random.randint(1, 4)):
                loop.ends.append(dict(self.variables))
        self.loops.pop()
        self.depth -= 1
        self.iterations, self.frozen_groups = saved_iterations, saved_groups
        outer = {name: kind for name, kind in before.items() if name not in clobbered}
        if header == "while True:":
            loop.ends.clear()  # after an iteration, the next one starts
        after = common(*loop.breaks, *loop.ends) if runs and (loop.breaks or loop.ends) else outer
        normal = common(*loop.ends) if runs and loop.ends else outer
        self.homes = {**homes}
        for name in (*after, *normal):
            if name not in outer:
                self.homes[name] = self.loop
        if header != "while True:" and self.chance(0.2) and (loop.ends or not runs):
            self.variables = dict(normal)
            self.emit("else:")
            self.depth += 1
            with self.indented():
                reached = self.block(self.random.randint(1, 2))
            self.depth -= 1
            ways = [*loop.breaks, *([self.variables] if reached else [])]
            if not ways:
                return False
            self.variables = common(*(ways if runs or not loop.breaks else [*ways, outer]))
            if not runs and loop.breaks:
                self.variables = common(outer, self.variables)
            return True
        self.variables = dict(after)
        self.forget(*loop.breaks, *loop.ends)
        if runs and not loop.breaks and not loop.ends:
            return False
        return True

    def while_loop(self) -> bool:
        """A `while` with a bounded trip count: counted, conditional, `while True`."""
        fuel_type = Integer(-1, 6)
        fuel = self.unused(NAMES["fuel"])
        amount = self.random.randint(1, 4)
        self.emit(f"{fuel} = {amount}")
        self.bind(fuel, fuel_type)
        way = self.random.randrange(4)
        with self.reserving(fuel):
            if way == 0:
                return self.loop_body(f"while {fuel} > 0:", [], amount, True, [], [], lambda: self.emit(f"{fuel} -= 1"))
            if way == 1:
                condition = f"{fuel} > 0 and ({self.condition(0)})"
                return self.loop_body(
                    f"while {condition}:", [], amount, False, [], [], lambda: self.emit(f"{fuel} -= 1")
                )
            if way == 2:
                name = self.fresh("real", Real())
                if name not in self.variables:
                    # the first operand is evaluated first, so the name is bound in every iteration
                    condition = f"({name} := {self.real(1)}) {self.pick('<>')} {self.constant()} and {fuel} > 0"
                    self.bind(name, Real())
                    with self.reserving(name):
                        return self.loop_body(
                            f"while {condition}:", [], amount, False, [], [], lambda: self.emit(f"{fuel} -= 1")
                        )
            return self.loop_body("while True:", [], amount, True, [], [], lambda: self.leave_when_empty(fuel))

    def leave_when_empty(self, fuel: str) -> None:
        self.emit(f"{fuel} -= 1")
        condition = f"{fuel} < 0"
        if self.chance(0.4):
            condition += f" or {self.condition(0)}"
        self.emit(f"if {condition}:")
        with self.indented():
            before = dict(self.variables)
            if self.chance(0.1):
                self.write_return()
            else:
                self.loops[-1].breaks.append(dict(before))
                self.emit("break")
            self.variables = before

    def fill_loop(self) -> bool:
        """A typical loop: each element from its neighbours, in place or from one array into another."""
        vectors = [name for name in self.arrays(rank=1) if (self.variables[name].shape[0] or 0) >= 2]  # type: ignore[union-attr]
        if not vectors:
            return self.for_loop()
        target = self.pick(vectors)
        length = self.variables[target].shape[0]  # type: ignore[union-attr]
        sources = [name for name in vectors if self.variables[name].shape[0] == length]  # type: ignore[union-attr]
        source = self.pick(sources)
        other = self.pick(sources)
        counter = self.fresh("counter", Integer(1, length - 1))
        if counter in self.variables:
            return True
        self.emit(f"for {counter} in range(1, {length}):")
        with self.indented():
            text = self.pick(
                (
                    f"{target}[{counter}] = 0.6 * {source}[{counter} - 1] + math.sin({other}[{counter}])",
                    f"{target}[{counter}] += 0.3 * {source}[{counter} - 1] * math.cos({other}[{counter}])",
                    f"{target}[{counter} - 1] = math.tanh({source}[{counter}]) * {other}[{counter} - 1]",
                    f"{target}[{counter}] *= math.cos({source}[{counter} - 1])",
                    f"{target}[-{counter}] = math.sin({source}[{counter}] * {other}[{counter} - 1])",
                )
            )
            self.emit(text)
        return True

    def time_loop(self) -> bool:
        """Time stepping: a sweep from one buffer into another, swapped or replaced buffers, early exits."""
        vectors = [name for name in self.arrays(rank=1) if self.bindable(name, self.variables[name])]
        vectors = [name for name in vectors if (self.variables[name].shape[0] or 0) >= 2]  # type: ignore[union-attr]
        if not vectors:
            return self.for_loop()
        u = self.pick(vectors)
        kind = self.variables[u]
        assert isinstance(kind, Array)
        partners = [name for name in vectors if self.variables[name] == kind and name != u]
        if partners and self.chance(0.6):
            v = self.pick(partners)
        else:
            v = self.fresh("array", kind)
            if v in self.variables:
                return True
            self.emit(f"{v} = {self.pick((f'{u}.copy()', f'np.zeros_like({u})', f'np.ones({kind.shape[0]})'))}")
            self.bind(v, kind)
        counter = self.fresh("counter", Integer(0, 3))
        iterations = self.random.randint(0, 4)
        if counter in self.variables:
            return True

        def whole_sweep() -> None:
            change = f"{self.pick(BOUNDED_ARRAYS)}({self.array_expression(self.shape_of(u), 1).text})"
            self.emit(
                self.pick(
                    (
                        f"{v}[1:-1] = {u}[1:-1] + 0.2 * ({u}[2:] - 2.0 * {u}[1:-1] + {u}[:-2])",
                        f"{v}[1:] = 0.8 * {u}[1:] + 0.3 * np.sin({u}[:-1])",
                        f"{v}[:] = 0.7 * {u} + 0.2 * {change}",
                        f"{v} = {u} + 0.2 * {change}",
                        f"{u}[1:-1] = 0.5 * ({v}[:-2] + {u}[2:])",
                    )
                )
            )

        def sweep() -> None:
            if self.style.whole and self.chance(0.7):
                whole_sweep()
            else:
                element_sweep()
            if self.chance(0.4):
                self.leave_iteration()
            if self.chance(0.75):
                self.emit(f"{u}, {v} = {v}, {u}")
            else:
                self.emit(f"{u} = {v}" + self.pick(("", ".copy()")))

        def element_sweep() -> None:
            inner = self.unused(NAMES["counter"])
            before = self.variables
            self.variables = {**before, inner: Integer(1, (kind.shape[0] or 2) - 1)}
            self.emit(f"for {inner} in range(1, {kind.shape[0]}):")
            with self.indented():
                new = self.pick(
                    (
                        f"{v}[{inner}] = 0.7 * {u}[{inner}] + 0.4 * math.sin({u}[{inner} - 1])",
                        f"{v}[{inner}] = {u}[{inner}] * math.cos({u}[{inner} - 1]) + 0.2 * {v}[{inner}]",
                        f"{v}[{inner} - 1] = math.tanh({u}[{inner}] + {self.real(1)})",
                        f"{v}[{inner}] += 0.3 * {u}[{inner}] * {u}[{inner} - 1]",
                    )
                )
                self.emit(new)
            self.variables = before

        bound: list[tuple[str, Type]] = [(counter, Integer(0, max(iterations - 1, 0)))]
        return self.loop_body(
            f"for {counter} in range({iterations}):", bound, max(iterations, 1), iterations > 0, [], [], sweep
        )

    # ends ----------------------------------------------------------------------------------------------------------

    def write_return(self) -> None:
        if self.result is None:
            self.emit("return")
        elif isinstance(self.result, Generator):
            self.emit(f"yield {self.real(2)}")
            self.emit("return")
        elif self.recursion is not None:
            self.emit(f"return {self.plain(self.result)}")
        elif special := self.special_value(self.result):
            self.emit(f"return {special}")
        elif isinstance(self.result, Real):
            self.emit(f"return {self.real(2)}")
        elif isinstance(self.result, Tuple):
            self.emit(f"return {self.tuple_value(self.result)}")
        elif isinstance(self.result, Array):
            same = [name for name, kind in self.variables.items() if kind == self.result]
            if self.style.whole and None not in self.result.shape and self.chance(0.5):
                self.emit(f"return {self.array(self.shape_from(self.result), 2)}")
            else:
                known = same and self.chance(0.7)
                self.emit(f"return {self.pick(same) if known else self.new_array(self.result.shape)}")
        elif isinstance(self.result, List):
            names = self.lists(self.result.least)
            self.emit(f"return {self.pick(names) if names else f'[{self.real(1)}, {self.real(1)}]'}")
        else:
            raise AssertionError(self.result)

    def write_body(self) -> None:
        if self.block(100):
            if self.result is not None:
                self.write_return()
            elif not self.lines:
                self.emit("pass")

    def write_program_end(self) -> None:
        """A last statement that depends on most values of the program."""
        terms: list[str] = []
        for name, kind in list(self.variables.items()):
            if name in self.outside or isinstance(kind, Function) or self.chance(0.25):
                continue
            if isinstance(kind, Real):
                terms.append(f"{self.constant()} * {name}")
            elif name in self.fixed() and self.style.whole and self.chance(0.8):
                terms.append(self.array_terms(name))
            elif isinstance(kind, Arrays):
                terms.append(f"0.3 * sum([np.sum(np.sin(part9)) for part9 in {name}])")
            elif name in self.arrays():
                terms.append(f"{self.element(name)} * {self.constant()}")
            elif isinstance(kind, List):
                terms.append(f"0.2 * sum({name})")
            elif isinstance(kind, Pairs):
                terms.append(f"0.2 * sum([part7 * math.sin(part8) for part7, part8 in {name}])")
            elif isinstance(kind, Rows):
                terms.append(f"0.2 * sum([math.sin(part8[0]) * len(part8) for part8 in {name}])")
            elif isinstance(kind, Tuple):
                terms.append(self.tuple_item_of(name, kind))
        for construct in self.constructs:
            terms += [f"{self.constant()} * {term}" for term in construct.terms() if self.chance(0.8)]
        arrays = [name for name in self.arrays(rank=1) if name not in self.outside]
        if arrays and self.chance(0.6):
            name = self.pick(arrays)
            free = [v for v in ("value", "entry") if v not in self.variables and v not in self.reserved]
            if free:
                if "total" not in self.variables and "total" not in self.reserved:
                    self.emit("total = 0.0")
                    self.bind("total", LARGE)
                if self.variables.get("total") == LARGE and "total" not in self.reserved:
                    self.emit(f"for {free[0]} in {name}:")
                    with self.indented():
                        self.emit(
                            f"total += {free[0]} * {self.pick((free[0], self.constant(), f'math.sin({free[0]})'))}"
                        )
                    terms.append("total")
        self.emit(f"return {' + '.join(terms) if terms else self.real(2)}")

    def tuple_item_of(self, name: str, kind: Tuple) -> str:
        text, item = f"{name}[-1]", kind.items[-1]
        if isinstance(item, Array):
            return f"0.3 * np.sum({text})"
        return text if isinstance(item, Real) else self.constant()


def mentions(text: str, name: str) -> bool:
    """Whether an expression reads a name."""
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(ast.parse(text)))


# ------------------------------------------------------------------------------------------------------- whole programs


def write_helper(random: Random, name: str, known: dict[str, Type], style: Style) -> tuple[list[str], dict[str, Type]]:
    """A function for the program to call, and its type."""
    if random.random() < 0.15:
        return structure_helper(random, name, known, style)
    if style.whole and random.random() < 0.5:
        return array_helper(random, name, known, style)
    way = random.choices(range(12), (4, 2, 2, 2, 1.5, 1.2, 1, 0.8, 1, 0.8, 0.8, 1))[0]
    names: dict[str, Type]
    result: Type | None
    if way == 0:
        names, result = {"x": Real(), "y": Real()}, Real()
    elif way == 1:
        names, result = {"x": Real(), "k": Integer(0, 3)}, Real()
    elif way == 2:
        names, result = {"x": Real(), "y": Real()}, random.choice((PAIR, NAMED_PAIR, NESTED))
    elif way == 3:
        names, result = {"a": Array((None,)), "x": Real()}, random.choice((Real(), None))
    elif way == 4:
        length = random.choice((2, 3))
        names, result = {"u": Array((length,)), "x": Real()}, Array((length,))
    elif way == 5:
        return recursive_helper(random, name, known, style)
    elif way == 6:
        return function_taking_helper(random, name)
    elif way == 7:
        return star_helper(random, name)
    elif way == 9:
        names, result = {"items": List(0, -1), "x": Real()}, random.choice((Real(), None))
    elif way == 10:
        names, result = {"x": Real(), "k": Integer(0, 3)}, List(1, -1)
    elif way == 11:
        length = random.choice((2, 3, 4))
        names = {"u": Array((length,)), "v": Array((length,)), "x": Real()}
        result = random.choice((Array((length,)), Real(), None))
    else:
        names, result = {"x": Real()}, Real()
    optional = 1 if way in (0, 1) and random.random() < 0.4 else 0
    body = Writer(random, names, result, random.randint(1, 6), known, style=style)
    body.iterations = 4
    body.write_body()
    parameters = list(names)
    if optional:
        parameters[-1] += "=0.6" if isinstance(names[parameters[-1]], Real) else "=2"
    kind = Function(tuple(names.values()), result, tuple(names), optional, cost=4)
    return [f"def {name}({', '.join(parameters)}):", *body.lines], {name: kind}


def random_helper(
    random: Random, name: str, parameters: dict[str, Type], result: Type | None, known: dict[str, Type], style: Style
) -> tuple[list[str], dict[str, Type]]:
    """A function with given parameters and a given result."""
    body = Writer(random, parameters, result, random.randint(0, 4), known, style=style)
    body.iterations = 4
    body.write_body()
    kind = Function(tuple(parameters.values()), result, tuple(parameters), cost=4)
    return [f"def {name}({', '.join(parameters)}):", *body.lines], {name: kind}


def array_helper(random: Random, name: str, known: dict[str, Type], style: Style) -> tuple[list[str], dict[str, Type]]:
    """A function of arrays. It returns an array, a number or both, or nothing and writes into its arguments."""
    n, m = style.sizes
    given = Array(random.choice(((n,), (n,), (m,), (n, m), (n, n))))
    other = Array(random.choice(((n,), (n,), (m,), (n, m), (1,))))
    if random.random() < 0.25:
        return stepping_helper(random, name, given)
    names: dict[str, Type] = {"u": given}
    if random.random() < 0.5:
        names["v"] = random.choice((given, other))
    if random.random() < 0.6:
        names["x"] = Real()
    result = random.choice((given, given, other, Real(), Tuple((given, Real())), Tuple((given, given)), None))
    body = Writer(random, names, result, random.randint(0, 5), known, style=style)
    body.iterations = 4
    body.write_body()
    kind = Function(tuple(names.values()), result, tuple(names), cost=4)
    return [f"def {name}({', '.join(names)}):", *body.lines], {name: kind}


def stepping_helper(random: Random, name: str, given: Array) -> tuple[list[str], dict[str, Type]]:
    """A function that takes a function of arrays, and makes steps with it."""
    bodies = [
        ["for i in range(3):", "    u = u + 0.2 * x * f(u)", "return u"],
        ["k = f(u)", "return 0.8 * u + 0.3 * np.tanh(f(u + 0.2 * k) + x)"],
        ["v = u.copy()", "for i in range(2):", "    v += 0.2 * np.sin(f(v))", "return v * np.cos(x)"],
        ["if x > 0.2:", "    return np.sin(f(u))", "u = 0.5 * u", "return u"],
        ["v = f(u)", "for i in range(2):", "    u, v = np.sin(v), 0.7 * u + 0.1 * x", "return u"],
    ]
    lines = [f"def {name}(f, u, x):", *("    " + line for line in random.choice(bodies))]
    kind = Function((Function((given,), given), given, Real()), given, ("f", "u", "x"), cost=8)
    return lines, {name: kind}


def recursive_helper(
    random: Random, name: str, known: dict[str, Type], style: Style
) -> tuple[list[str], dict[str, Type]]:
    """A function that calls itself, or two that call each other, with a counter that decreases."""
    mutual = random.random() < 0.4
    partner = f"{name}_other" if mutual else name
    lines: list[str] = []
    for this, other in ((name, partner), (partner, name)) if mutual else ((name, name),):
        base = Writer(random, {"x": Real(), "depth": Integer(0, 3)}, Real(), 0, known, style=style)
        lines += [f"def {this}(x, depth):", "    if depth <= 0:", f"        return {base.real(2)}"]
        names: dict[str, Type] = {"x": Real(), "depth": Integer(1, 3)}
        rest = Writer(random, names, Real(), random.randint(0, 3), known, style=style)
        rest.iterations = 8
        rest.reserved.add("depth")
        deeper = f"{other}({rest.real(1, 2.0)}, depth - 1)"
        if rest.block(2):
            deeper = f"{other}({rest.real(1, 2.0)}, depth - {random.choice((1, 1, 2))})"
            if random.random() < 0.5:
                rest.emit(f"below = {deeper}")
                rest.bind("below", Real())
                rest.emit(f"return {rest.tamed(Expression(f'below * {rest.leaf().text} + {rest.leaf().text}', 20.0))}")
            else:
                rest.emit(f"return math.sin({deeper}) + {rest.real(1)}")
        lines += rest.lines
    kind = Function((Real(), Integer(0, 3)), Real(), ("x", "depth"), cost=12)
    return lines, {name: kind}


def structure_helper(
    random: Random, name: str, known: dict[str, Type], style: Style
) -> tuple[list[str], dict[str, Type]]:
    """A function that calls itself, or two that call each other, with arrays, lists and tuples."""
    recursion = some_recursion(random, style)
    partner = f"{name}_other" if random.random() < 0.2 else name
    lines: list[str] = []
    for this, other in ((name, partner), (partner, name))[: 1 if partner == name else 2]:
        budget = random.randint(0, 3)
        body = Writer(random, recursion.parameters, recursion.result, budget, known, style=style)
        body.write_recursion(recursion, other)
        lines += [f"def {this}({', '.join(recursion.parameters)}):", *body.lines]
    return lines, {name: recursion.function(some_length(random, style))}


def function_taking_helper(random: Random, name: str) -> tuple[list[str], dict[str, Type]]:
    """A function that is given a function."""
    of_real = Function((Real(),), Real())
    bodies = [
        ["return 0.5 * f(x) + 0.5 * f(f(x) + y)"],
        ["total = y", "for i in range(3):", "    total += 0.3 * f(x + 0.1 * i)", "return total"],
        ["if x > 0.2:", "    return f(x)", "return f(y) * math.sin(x)"],
        ["k = 0", "while k < 3 and abs(x) < 3.0:", "    k += 1", "    x = 0.8 * f(x) + 0.1 * y", "return x"],
    ]
    lines = [f"def {name}(f, x, y):", *("    " + line for line in random.choice(bodies))]
    return lines, {name: Function((of_real, Real(), Real()), Real(), ("f", "x", "y"), cost=8)}


def star_helper(random: Random, name: str) -> tuple[list[str], dict[str, Type]]:
    """A function with `*args`."""
    bodies = [
        ["total = x", "for value in rest:", "    total = 0.5 * total + math.sin(value)", "return total"],
        [
            "total = 0.1 * len(rest)",
            "for i, value in enumerate(rest):",
            "    total += value * x * 0.2 * i",
            "return math.sin(total)",
        ],
        ["return math.tanh(x * rest[0]) + 0.2 * rest[-1]"],
    ]
    lines = [f"def {name}(x, *rest):", *("    " + line for line in random.choice(bodies))]
    count = random.randint(2, 4)
    return lines, {name: Function((Real(),) * count, Real(), cost=4)}


def parameters_of(random: Random, known: dict[str, Type], style: Style) -> dict[str, Type]:
    """The parameters of the program, those to differentiate by first."""
    reals, arrays = iter(("x", "y", "z")), iter(("a", "b", "c"))

    def some_array() -> Array:
        shapes: tuple[tuple[int | None, ...], ...] = (
            (2,), (3,), (4,), (3,), (None,), (2, 2), (2, 3), (3, 2), (2, 2, 2), (1, 2, 2, 1), (None, 2),
        )  # fmt: skip
        if style.whole and random.random() < 0.9:
            n, m = style.sizes
            shapes = ((n,), (n,), (m,), (n, m), (n, m), (m, n), (n, n), (n, 1), (1, m), (1,), (2, n, m))
        return Array(random.choice(shapes))

    parameters: dict[str, Type] = {}
    if random.random() < (0.2 if style.whole else 0.5):
        parameters[next(reals)] = Real()
    else:
        parameters[next(arrays)] = some_array()
    for _ in range(random.randint(0, 3)):
        way = random.choices(range(10), (4, 3, 2, 0.8, 0.6, 0.8, 0.5, 0.4, 0.4, 0.4))[0]
        if way == 0:
            name = next(reals, None)
            if name:
                parameters[name] = Real()
        elif way == 1:
            name = next(arrays, None)
            if name:
                same = [kind for kind in parameters.values() if isinstance(kind, Array)]
                parameters[name] = random.choice(same) if same and random.random() < 0.5 else some_array()
        elif way == 2:
            parameters["n"] = random.choice((Integer(0, 3), Integer(1, 4), Integer(-1, 2)))
        elif way == 3:
            parameters["flag"] = Boolean()
        elif way == 4:
            parameters["pair"] = random.choice((PAIR, NAMED_PAIR, NESTED))
        elif way == 5:
            parameters["index"] = Array((random.randint(2, 4),), "int", random.randint(1, 3))
        elif way == 6:
            parameters["mode"] = random.choice((Text(("fast", "slow")), Text((None, "given"))))
        elif way == 7:
            parameters["mask"] = Array((random.randint(2, 3),), "bool")
        elif way == 9:
            parameters["items"] = List(1, 0)
        else:
            of_real = Function((Real(),), Real(), cost=2)
            if any(isinstance(kind, Function) and kind.parameters == (Real(),) for kind in known.values()):
                parameters["f"] = of_real
    return parameters


def number(random: Random) -> float:
    """A float argument that is not near zero, so that no kink is hit."""
    return random.choice((1, -1)) * random.uniform(0.06, 1.5)


class Values:
    """The arguments of a program at its points: equal layouts, different numbers."""

    def __init__(self, random: Random, parameters: dict[str, Type], known: dict[str, Type]) -> None:
        self.random = random
        self.parameters = parameters
        self.known = known
        self.layouts = {name: random.choices(LAYOUTS, (12, 1, 1, 1))[0] for name in parameters}
        self.single = [name for name, kind in parameters.items() if isinstance(kind, Array) and kind.kind == "float"]
        if random.random() >= 0.04:
            self.single = []

    def point(self) -> tuple[Any, ...]:
        return tuple(self.value(name, kind) for name, kind in self.parameters.items())

    def value(self, name: str, kind: Type) -> Any:
        random = self.random
        if isinstance(kind, Real):
            return number(random)
        if isinstance(kind, Complex):
            return complex(number(random), number(random))
        if isinstance(kind, Structure):
            values = [self.value(name, part) for _, part in kind.parts[: kind.given]]
            return Made(kind.maker, tuple(values)) if kind.argument is None else kind.argument(values)
        if isinstance(kind, Integer):
            return random.randint(kind.low, kind.high)
        if isinstance(kind, Boolean):
            return random.random() < 0.5
        if isinstance(kind, Text):
            return random.choice(kind.values)
        if isinstance(kind, Tuple):
            items = tuple(self.value(name, item) for item in kind.items)
            return Made(kind.maker, items) if kind.maker else items
        if isinstance(kind, List):
            return [number(random) for _ in range(random.randint(kind.least, 3))]
        if isinstance(kind, Function):
            names = [n for n, k in self.known.items() if isinstance(k, Function) and k.parameters == (Real(),)]
            return Named(random.choice(names))
        assert isinstance(kind, Array)
        shape = tuple(random.randint(1, 4) if length is None else length for length in kind.shape)
        count = math.prod(shape)
        if kind.kind == "int":
            return np.array([random.randint(0, kind.highest) for _ in range(count)], dtype=np.int64).reshape(shape)
        if kind.kind == "bool":
            return np.array([random.random() < 0.5 for _ in range(count)]).reshape(shape)
        numbers = np.array([number(random) for _ in range(count)]).reshape(shape)
        if kind.kind == "complex":
            numbers = numbers + 1j * np.array([number(random) for _ in range(count)]).reshape(shape)
        if name in self.single:
            numbers = numbers.astype(np.float32)
        return self.layouts[name](numbers)


def as_strided(values: np.ndarray) -> np.ndarray:
    wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), dtype=values.dtype)
    wide[..., ::2] = values
    return wide[..., ::2]


def as_transposed(values: np.ndarray) -> np.ndarray:
    return values.T.copy().T


LAYOUTS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (np.array, np.asfortranarray, as_strided, as_transposed)


def write_case(seed: int, points: int = 4, kinds: Sequence[str] = ()) -> Case:
    """The program of a seed, with some of these kinds of constructs. It is the same in every call.

    >>> write_case(1).source == write_case(1).source
    True
    """
    start = f"{seed} {' '.join(kinds)}" if kinds else seed
    try:
        return written(seed, Random(start), points, kinds)
    except RecursionError:  # for some seeds, the writer does not terminate
        return written(seed, Random(f"{start} again"), points, kinds)


def some_style(random: Random) -> Style:
    """Most programs have whole arrays. Few of these arrays are empty, and some have one element."""
    lengths = random.choices(range(6), (0.3, 1, 4, 4, 2, 1), k=2)
    return Style(random.random() < 0.75, (lengths[0], lengths[1]))


def some_constructs(random: Random, kinds: Sequence[str]) -> tuple[type[Construct], ...]:
    """Up to three of the kinds."""
    chosen = random.sample(list(kinds), random.randint(1, min(3, len(kinds)))) if kinds else []
    return tuple(CONSTRUCTS[kind] for kind in chosen)


def written(seed: int, random: Random, points: int, kinds: Sequence[str] = ()) -> Case:
    """A program and its points, from a random number generator."""
    style = some_style(random)
    constructs = some_constructs(random, kinds)
    style = replace(style, constructs=constructs)
    known: dict[str, Type] = {}
    text: list[str] = []
    for construct in constructs:
        lines, added = construct.declare(random, style, Writer)
        known.update(added)
        text += ["", "", *lines]
    for construct in constructs:
        for names, result in construct.signatures(random, style, known):
            name = f"special{len(known) + 1}"
            lines, added = random_helper(random, name, names, result, known, style)
            known.update(added)
            text += ["", "", *lines]
    for k in range(random.choice((0, 1, 1, 2, 3))):
        lines, added = write_helper(random, f"helper{k + 1}", known, style)
        known.update(added)
        text += ["", "", *lines]
    parameters = parameters_of(random, known, style)
    for construct in constructs:
        parameters.update(construct.parameters(random, style, known))
    may_raise = random.random() < 0.08
    budget = random.choice((2, 3, 4, 6, 9, 14))
    body = Writer(random, parameters, Real(), budget, known, may_raise=may_raise, style=style)
    for construct_here in body.constructs:
        construct_here.begin()
    if body.block(100):
        body.write_program_end()
    given = list(parameters)
    if random.random() < 0.15 and isinstance(parameters[given[-1]], (Real, Integer)) and len(given) > 1:
        given[-1] += "=0.8" if isinstance(parameters[given[-1]], Real) else "=1"
    text += ["", "", f"def {ENTRY}({', '.join(given)}):", *body.lines]
    header = HEADER + "".join(construct.header for construct in constructs)
    source = tidy(header + "\n".join(text) + "\n")
    values = Values(random, parameters, known)
    left_out = "=" in given[-1]
    chosen = tuple(values.point()[: len(given) - left_out] for _ in range(points))
    active = [k for k, kind in enumerate(parameters.values()) if differentiable(kind) and "=" not in given[k]]
    if len(active) > 1 and random.random() < 0.3:
        active = sorted(random.sample(active, random.randint(1, len(active) - 1)))
    return Case(seed, source, chosen, tuple(active), single_precision=bool(values.single))


def differentiable(kind: Type) -> bool:
    if isinstance(kind, Tuple):
        return all(differentiable(item) for item in kind.items)
    if isinstance(kind, Structure):
        return all(differentiable(part) for _, part in kind.parts[: kind.given])
    return isinstance(kind, (Real, Complex, List)) or (isinstance(kind, Array) and kind.kind in ("float", "complex"))


def tidy(source: str) -> str:
    """The same program with the necessary parentheses, and an empty line between functions."""
    tree = ast.parse(source)
    return "\n\n".join(ast.unparse(node) for node in tree.body) + "\n"
