"""Recursive functions of arrays, lists and tuples, with results and side effects.

A function counts down, recurses on parts of an array or a list, or along its elements. So it terminates: no other
statement binds its counter, and a list whose parts it passes on does not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.fuzz.kinds import (
    NAMED_PAIR,
    NESTED,
    PAIR,
    Array,
    Expression,
    Function,
    Integer,
    List,
    Pairs,
    Real,
    Rows,
    Structure,
    Style,
    Tuple,
    Type,
)
from tests.fuzz.rows import RowWriter

#: The parts for the recursive calls: a list loses an element, or is split in two.
PARTS: dict[str, tuple[str, ...]] = {
    "rest": ("1:",),
    "front": (":-1",),
    "halves": (":len({0}) // 2", "len({0}) // 2:"),
    "alternate": ("::2", "1::2"),
}


@dataclass(frozen=True, slots=True)
class Recursion:
    """A form of recursion: its argument, the reduction of the argument in each call, and the result."""

    way: str  # "count" with one call, "tree" with two, "along" the elements, or one of PARTS
    result: Type | None
    given: str  # the name of the argument, if it has one
    kind: Type
    changes: bool = False  # whether the argument is changed
    around: bool = False  # whether the argument belongs to the enclosing function
    least: int = 1  # the length of the smallest part

    @property
    def counts(self) -> bool:
        return self.way in ("count", "tree")

    @property
    def calls(self) -> int:
        return 2 if self.way in ("tree", "halves", "alternate") else 1

    @property
    def end(self) -> str:
        """The condition that ends the recursion."""
        if self.counts:
            return "depth <= 0"
        return f"k >= len({self.given})" if self.way == "along" else f"len({self.given}) <= {self.least}"

    @property
    def may_be_empty(self) -> bool:
        """Whether the last call has an empty argument."""
        return self.way in PARTS and self.least == 0

    @property
    def parameters(self) -> dict[str, Type]:
        names: dict[str, Type] = {} if self.around or not self.given else {self.given: self.kind}
        names["h" if self.around else "x"] = Real()
        if self.counts:
            names["depth"] = Integer(0, 3)
        elif self.way == "along":
            names["k"] = Integer(0, 1)
        return names

    def function(self, length: int | None) -> Function:
        """The type of the function, for arrays of this length, or of any length if parts are passed."""
        kinds = {**self.parameters, **({"depth": Integer(1, 3)} if self.counts else {})}
        parameters = tuple(with_length(kind, length) for kind in kinds.values())
        result = None if self.result is None else with_length(self.result, length)
        return Function(parameters, result, tuple(kinds), cost=20 if self.calls > 1 else 8, recursive=True)


def with_length(kind: Type, length: int | None) -> Type:
    """The type, with a length if it has none."""
    if isinstance(kind, Tuple):
        return replace(kind, items=tuple(with_length(item, length) for item in kind.items))
    return Array((length,)) if kind == Array((None,)) else kind


def some_length(random: Random, style: Style) -> int | None:
    """The length of the arrays of which a function passes parts: the most frequent one, or any length."""
    return random.choice((None, style.sizes[0] or None))


def some_recursion(random: Random, style: Style) -> Recursion:
    """A form of recursion that is visible in the parameters and the result."""
    n, m = style.sizes
    way = random.choices(("count", "tree", "along", *PARTS), (4, 2, 1.5, 2, 1, 2, 1))[0]
    least = random.choice((0, 1)) if way in ("rest", "front") else 1
    array: Array = Array((None,))
    pairs = (PAIR, NAMED_PAIR, NESTED)
    numbers: tuple[Type, ...] = (Real(), random.choice(pairs), List(0, -1), List(1, -1), Pairs())
    if way in ("count", "tree"):
        array = Array(random.choice(((n,), (n,), (m,), (n, m), (n, n))))
    if random.random() < 0.3:
        changes = way in ("count", "tree")
        return Recursion(way, random.choice((*numbers, None) if changes else numbers), "items", List(0, -1), changes)
    if way == "count" and random.random() < 0.3:
        return Recursion(way, random.choice(numbers[1:]), "", Real())
    arrays: tuple[Type, ...] = (array, array, array, Tuple((Real(), array)), Tuple((array, array)))
    changes = random.random() < 0.35
    results = (
        (*numbers, None) if way == "along" or (changes and random.random() < 0.6) else (*arrays, *arrays, *numbers)
    )
    result = random.choice(results)
    return Recursion(way, result, "a", array, changes or result is None, least=least)


class RecursionWriter(RowWriter):
    """Writes functions that call themselves."""

    recursion: Recursion | None = None  # of the function being written

    # the rest of the language, which Writer adds

    def block(self, statements: int) -> bool:
        raise NotImplementedError

    def write_return(self) -> None:
        raise NotImplementedError

    def leaf(self) -> Expression:
        raise NotImplementedError

    def tamed(self, expression: Expression, limit: float = 4.0) -> str:
        raise NotImplementedError

    def growth(self, kind: Type) -> str:
        raise NotImplementedError

    def element_of(self, text: str, kind: Type) -> str:
        raise NotImplementedError

    def keep_result(self, name: str) -> None:
        raise NotImplementedError

    def integer_within(self, low: int, high: int, depth: int = 1) -> str:
        raise NotImplementedError

    def changeable_lists(self) -> list[str]:
        raise NotImplementedError

    def least_of(self, group: int) -> int:
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------ functions

    def write_recursion(self, recursion: Recursion, other: str) -> None:
        """The body of a function that calls `other`: itself, or a similar function that calls it."""
        self.recursion = recursion
        self.iterations = 8
        if recursion.way == "along":
            self.variables["k"] = Integer(0, 63)
        with self.reserving(*recursion.parameters.keys() - {"x"}):
            if not recursion.counts and isinstance(recursion.kind, List):
                self.frozen_groups.add(recursion.kind.group)
            self.write_end(recursion)
            if recursion.counts:
                self.variables["depth"] = Integer(1, 3)
            if self.block(2):
                self.write_calls(recursion, other)

    def define_recursion(self) -> None:
        """A nested function that calls itself: it changes enclosing variables, or is one of the functions here."""
        recursion = some_recursion(self.random, self.style)
        if self.iterations <= 8 and self.chance(0.6):
            names = self.arrays() + self.changeable_lists()
            names += [name for name in self.reals() if self.variables[name] == Real() and self.bindable(name, Real())]
            names = [name for name in names if name.isidentifier()]
            if names:
                given = self.pick(names)
                way = self.pick(("count", "count", "tree"))
                recursion = Recursion(way, self.pick((Real(), None)), given, self.variables[given], True, True)
        kind = recursion.function(some_length(self.random, self.style))
        name = self.fresh("function", kind, 0.0)
        outside = {
            known: what
            for known, what in self.variables.items()
            if known in self.outside or (known.isidentifier() and not isinstance(what, (Function, Rows, Structure)))
        }
        inner = type(self)(
            self.random,
            recursion.parameters,
            recursion.result,
            self.random.randint(0, 2),
            outside,
            True,
            tastes=self.tastes,
            style=self.style,
        )
        inner.indent = self.indent + 1
        inner.loop_count = 1000
        self.emit(f"def {name}({', '.join(recursion.parameters)}):")
        if recursion.around and isinstance(recursion.kind, Real):
            inner.emit(f"nonlocal {recursion.given}")
        inner.write_recursion(recursion, name)
        self.lines += inner.lines
        self.pinned.update(outside)
        self.pinned.add(name)
        if recursion.around:
            self.call_around(name, kind.result)
        else:
            self.bind(name, kind)
            if self.uncalled() and self.chance(0.6):
                self.call_recursion()

    def uncalled(self) -> list[str]:
        """The recursive functions with side effects that no statement here has called."""
        known = self.functions(lambda result: True)
        return [name for name in known if self.variables[name].recursive and name not in self.called]  # type: ignore[union-attr]

    def call_recursion(self) -> None:
        name = self.pick(self.uncalled())
        self.called.add(name)
        self.keep_result(name)

    def call_around(self, name: str, result: Type | None) -> None:
        """Calls of a function that changes enclosing variables, if no loop iterates over these."""
        for _ in range(self.pick((1, 1, 2))):
            text = f"{name}({self.real(1, 2.0)}, {self.integer_within(1, 3)})"
            if result is None:
                self.emit(text)
                continue
            target = self.target("real", Real())
            self.emit(f"{target} = {text}" if self.chance(0.6) else f"{target} = {self.real(0, 2.0)} - 0.5 * {text}")
            self.bind(target, Real())

    def write_end(self, recursion: Recursion) -> None:
        """The statements for the end of the recursion."""
        before = dict(self.variables)
        if recursion.may_be_empty:
            del self.variables[recursion.given]
        self.emit(f"if {recursion.end}:")
        with self.indented():
            if recursion.changes and not recursion.may_be_empty and recursion.way != "along" and self.chance(0.4):
                self.change_given(recursion)
            self.write_return()
        self.variables = before

    def write_calls(self, recursion: Recursion, other: str) -> None:
        if recursion.changes:
            self.change_given(recursion)
        if recursion.result is None:
            for part in range(recursion.calls):
                self.emit(self.further_call(recursion, other, part))
                if self.chance(0.5):
                    self.change_given(recursion)
            return
        if isinstance(recursion.result, Tuple) and recursion.calls == 1 and self.chance(0.4):
            self.emit(f"first, second = {self.further_call(recursion, other, 0)}")
            items = zip(recursion.result.items, ("first", "second"), strict=True)
            self.emit(f"return {self.made(recursion.result, [self.gathered(item, [name]) for item, name in items])}")
            return
        named = isinstance(recursion.result, Tuple) or self.chance(0.6)
        below: list[str] = []
        for part, name in enumerate(("first", "second")[: recursion.calls]):
            text = self.further_call(recursion, other, part)
            if named:
                self.emit(f"{name} = {text}")
            below.append(name if named else text)
        if recursion.changes and self.chance(0.6):
            self.change_given(recursion)
        if named and isinstance(recursion.result, List) and self.chance(0.4):
            self.emit(f"{below[-1]}.append({self.real(1)})")
        self.emit(f"return {self.gathered(recursion.result, below)}")

    def further_call(self, recursion: Recursion, other: str, part: int) -> str:
        """A recursive call with a smaller argument."""
        return f"{other}({', '.join(self.further(recursion, name, part) for name in recursion.parameters)})"

    def further(self, recursion: Recursion, name: str, part: int) -> str:
        if name == "depth":
            return "depth - 1"
        if name == "k":
            return "k + 1"
        if name != recursion.given:
            return self.real(1, 2.0)
        if recursion.way in PARTS:
            return f"{name}[{PARTS[recursion.way][part].format(name)}]"
        if isinstance(recursion.kind, Array) and recursion.counts and not recursion.changes:
            return self.array(self.shape_from(recursion.kind), 1, 2.0)
        return name

    def change_given(self, recursion: Recursion) -> None:
        """A statement that changes the argument of the recursion: an array, a list or a number."""
        name, kind = recursion.given, recursion.kind
        if isinstance(kind, List):
            self.change_given_list(name, kind)
        elif isinstance(kind, Array) and 0 not in kind.shape:
            place = f"{name}[k]" if recursion.way == "along" else self.element_of(name, kind)
            whole = f"{name}[:]" if self.chance(0.3) and recursion.way != "along" else place
            self.emit(f"{whole} {self.growth(Real())}" if self.chance(0.6) else f"{place} = {self.real(2)}")
        elif isinstance(kind, Real):
            self.emit(f"{name} {self.growth(kind)}" if self.chance(0.6) else f"{name} = {self.real(2)}")
        else:
            self.emit(f"{name} *= 0.5")

    def change_given_list(self, name: str, kind: List) -> None:
        way = self.random.randrange(6)
        if way <= 2:
            self.emit(f"{name}.append({self.real(1)})")
        elif way == 3:
            self.emit(self.pick((f"{name}.insert(0, {self.real(1)})", f"{name}.extend({self.row_text()})")))
        else:
            self.emit(f"if len({name}) > {self.least_of(kind.group)}:")
            with self.indented():
                self.emit(f"{name}.pop()" if way == 4 else f"{name}[-1] {self.growth(Real())}")

    # -------------------------------------------------------------------------------------------------------- results

    def plain(self, kind: Type) -> str:
        """A result without a recursive call. For parts, an array is as long as the argument."""
        assert self.recursion is not None
        given = self.recursion.given
        if isinstance(kind, Tuple):
            return self.made(kind, [self.plain(item) for item in kind.items])
        if isinstance(kind, List):
            options = [self.row_text(), self.row_text(), *(["[]"] if kind.least == 0 else [])]
            if isinstance(self.recursion.kind, List) and kind.least == 0:
                options += [f"list({given})", f"{given}[:]", f"[math.sin(part7) for part7 in {given}]"]
            return str(self.pick(options))
        if isinstance(kind, Pairs):
            return f"[{self.pair_text()}]"
        if not isinstance(kind, Array):
            return self.real(2)
        if self.chance(0.4):
            return f"{given}.copy()" if self.recursion.changes or self.chance(0.9) else given
        if self.recursion.counts:
            return self.array(self.shape_from(kind), 2)
        return str(
            self.pick(
                (
                    f"np.tanh({given})",
                    f"0.7 * {given}",
                    f"np.zeros(len({given}))",
                    f"np.full(len({given}), 1.0 * ({self.real(1)}))",
                )
            )
        )

    @staticmethod
    def made(kind: Tuple, items: list[str]) -> str:
        return f"{kind.maker}({', '.join(items)})"

    def gathered(self, kind: Type, below: list[str]) -> str:
        """A result from the results of the recursive calls, each of which is read once."""
        assert self.recursion is not None
        if isinstance(kind, Tuple):
            return self.made(
                kind, [self.gathered(item, [f"{text}[{k}]" for text in below]) for k, item in enumerate(kind.items)]
            )
        if isinstance(kind, List):
            return self.gathered_lists(below)
        if isinstance(kind, Pairs):
            return f"{' + '.join(below)}{self.pick(('', f' + [{self.pair_text()}]'))}"
        if not isinstance(kind, Array):
            return self.gathered_numbers(below)
        return self.gathered_arrays(self.shape_from(kind), below) if self.recursion.counts else self.joined(below)

    def gathered_numbers(self, below: list[str]) -> str:
        first, last = below[0], below[-1]
        if len(below) > 1:
            options = [f"{first} * math.cos({last})", f"0.5 * ({first} - {last})", f"math.sin({first} + {last})"]
        else:
            options = [f"math.sin({first})", f"0.5 * {first}", f"{first} * math.cos({self.real(1)})"]
        return self.tamed(Expression(f"{self.pick(options)} + {self.leaf().text}", 6.0))

    def gathered_lists(self, below: list[str]) -> str:
        both = " + ".join(below)
        options = [both, f"{both} + {self.row_text()}", f"{self.row_text()} + {both}"]
        if len(below) > 1:
            options.append(f"[math.sin(part7) * part8 for part7, part8 in zip({', '.join(below)})]")
        else:
            options.append(f"[part7 * {self.real(0, 1.0)} for part7 in {both}] + {self.row_text()}")
        return str(self.pick(options))

    def gathered_arrays(self, shape: tuple[int, ...], below: list[str]) -> str:
        first, last = below[0], below[-1]
        if len(below) == 1:
            last = self.array(shape, 1)
        options = [
            f"{first} * np.cos({last})",
            f"0.4 * {first} + 0.4 * {last}",
            f"np.sin({last} - {first})",
            f"np.where({first} > 0.103, {last}, 0.3)",
        ]
        if len(shape) == 2 and shape[0] == shape[1]:
            options.append(f"np.tanh({first} @ ({last}))")
        return str(self.pick(options))

    def joined(self, below: list[str]) -> str:
        """The concatenated results of the parts, with the elements that the parts leave out."""
        assert self.recursion is not None
        given, way = self.recursion.given, self.recursion.way
        parts = [self.scaled(text) for text in below]
        if self.chance(0.3) and "whole" not in self.variables:
            self.emit(f"whole = {self.pick((f'{given}.copy()', f'np.empty_like({given})', f'np.zeros(len({given}))'))}")
            for slice_text, text in zip(PARTS[way], parts, strict=True):
                self.emit(f"whole[{slice_text.format(given)}] = {text}")
            if len(parts) == 1:
                self.emit(f"whole[{0 if way == 'rest' else -1}] = {self.real(2)}")
            self.variables["whole"] = Array((None,))
            return "whole"
        if len(parts) == 1:
            end = f"{given}[:1]" if way == "rest" else f"{given}[-1:]"
            parts.append(self.pick((end, self.scaled(end), f"np.array([1.0 * ({self.real(1)})])")))
        self.random.shuffle(parts)
        return f"np.concatenate(({', '.join(parts)}))"

    def scaled(self, text: str) -> str:
        """The elements of an array of any length, scaled so that they do not grow."""
        number = self.real(1, 2.0)
        return str(self.pick((text, f"{text} * math.cos({number})", f"0.5 * {text} + {number}", f"np.sin({text})")))

    # -------------------------------------------------------------------------------------------------- lists of pairs

    def pairs(self) -> list[str]:
        return self.of(lambda kind: isinstance(kind, Pairs))

    def pair_text(self) -> str:
        return f"({self.real(1)}, {self.real(1)})"

    def pair_item(self) -> Expression:
        return Expression(f"{self.pick(self.pairs())}[{self.pick((0, -1))}][{self.pick((0, 1))}]", 4.0)

    def change_pairs(self) -> None:
        name = self.pick(self.pairs())
        if self.nested or self.iterations > 16 or self.chance(0.4):
            self.emit(f"{name}[{self.pick((0, -1))}] = {self.pair_text()}")
        else:
            self.emit(f"{name}.append({self.pair_text()})")
