"""Writes generator functions and generator expressions, each of which is consumed once."""

from __future__ import annotations

from random import Random

from tests.fuzz.constructs.construct import Construct, Operation, Signature, Statement
from tests.fuzz.kinds import Array, Expression, Generator, Integer, Real, Style, Type


class Generators(Construct):
    """Functions with `yield`, and their consumers: loops and builtin functions."""

    header = "import itertools\n"

    @classmethod
    def signatures(cls, random: Random, style: Style, known: dict[str, Type]) -> list[Signature]:
        given: list[dict[str, Type]] = [
            {"x": Real(), "k": Integer(0, 3)},
            {"x": Real(), "y": Real()},
            {"u": Array((max(style.sizes[0], 1),)), "x": Real()},
        ]
        return [(random.choice(given), Generator()) for _ in range(random.randint(1, 2))]

    def functions(self) -> list[str]:
        return self.writer.functions(lambda result: isinstance(result, Generator))

    def statements(self) -> list[Statement]:
        w = self.writer
        if isinstance(w.result, Generator):
            return [(12.0, self.give), (3.0, self.delegate)]
        return [(2.0, self.first)] if self.functions() and not w.nested else []

    def give(self) -> None:
        self.writer.emit(f"yield {self.writer.real(2)}")

    def delegate(self) -> None:
        w = self.writer
        if self.functions() and w.chance(0.5):
            w.emit(f"yield from {w.call(w.pick(self.functions()), 1)}")
        elif w.arrays(rank=1):
            w.emit(f"yield from {w.pick(w.arrays(rank=1))}")
        else:
            self.give()

    def first(self) -> None:
        """The first element of a generator."""
        w = self.writer
        name = w.target("real", Real())
        w.emit(f"{name} = next({w.call(w.pick(self.functions()), 1)}, {w.constant()})")
        w.bind(name, Real())

    def source(self, depth: int, generators: bool = True) -> str:
        """An iterable of real numbers: a generator, an array, a list."""
        w = self.writer
        sources = [f"[{w.real(depth)}, {w.real(depth)}]"]
        sources += [str(w.pick(names)) for names in (w.arrays(rank=1), w.lists()) if names]
        if generators and self.functions():
            sources += [w.call(w.pick(self.functions()), depth)] * 4
        return str(w.pick(sources))

    def expressions(self) -> list[Operation]:
        w = self.writer
        if w.iterations > 16 or isinstance(w.result, Generator):
            return []
        return [(3.0, self.consumed)]

    def consumed(self, depth: int) -> Expression:
        """A number computed from all elements of a generator."""
        w = self.writer
        saved = dict(w.variables)
        w.variables["part5"] = Real()
        body = w.real(depth, 2.0)
        condition = f" if {w.leaf().text} > {w.constant()}" if w.chance(0.3) else ""
        w.variables = saved
        source = self.source(depth)
        texts = (
            f"sum({body} for part5 in {source}{condition})",
            f"sum({source})",
            f"max(({body} for part5 in {source}), default=0.3)",
            f"sum({body} * (0.2 + place5) for place5, part5 in enumerate({source}))",
            f"sum({body} * other5 for part5, other5 in zip({source}, {self.source(depth, generators=False)}))",
            f"sum(math.tanh(part5) for part5 in itertools.islice({source}, {w.random.randint(0, 3)}))",
            f"sum([{body} for part5 in {source}])",
            f"sum(math.sin(part5) for part5 in ({body} for part5 in {source}))",
            f"0.1 * len(list({source}))",
        )
        return Expression(w.pick(texts), 40.0)

    def compounds(self) -> list[Statement]:
        return [(5.0, self.loop)] if self.functions() and self.writer.iterations <= 8 else []

    def loop(self) -> bool:
        w = self.writer
        name = w.unused(("draw", "sample", "given"))
        text = w.call(w.pick(self.functions()), 1)
        if w.chance(0.3):
            counter = w.unused(("place", "number"))
            bound: list[tuple[str, Type]] = [(counter, Integer(0, 63)), (name, Real())]
            return w.loop_body(f"for {counter}, {name} in enumerate({text}):", bound, 4, False, [], [])
        return w.loop_body(f"for {name} in {text}:", [(name, Real())], 4, False, [], [])
