"""Writes NumPy's records and structured arrays: fields and elements, read and written to, as views."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from tests.fuzz.constructs.construct import Construct, Operation, Signature, Statement
from tests.fuzz.kinds import Array, Expression, Integer, Real, Structure, Style, Type

DTYPE = [("mass", "f8"), ("charge", "f8"), ("place", "f8", (2,))]

RECORD = Structure((("mass", Real()), ("charge", Real()), ("place", Array((2,)))), "record", "{0}['{1}']")


def records(length: int) -> Structure:
    """An array of this many records. A write to a field is a write to the array."""

    def argument(values: list[Any]) -> np.ndarray:
        made = np.zeros(length, dtype=DTYPE)
        made["mass"], made["charge"], made["place"] = values
        return made

    parts = (("mass", Array((length,))), ("charge", Array((length,))), ("place", Array((length, 2))))
    return Structure(parts, "records", "{0}['{1}']", 3, argument=argument)


class Records(Construct):
    """Arrays of records with two numbers and a vector, and references to their elements."""

    header = f"PARTICLE = np.dtype({DTYPE!r})\n"

    @classmethod
    def signatures(cls, random: Random, style: Style, known: dict[str, Type]) -> list[Signature]:
        given: dict[str, Type] = {"particles": records(max(style.sizes[0], 1)), "x": Real()}
        return [(given, random.choice((Real(), None)))] if random.random() < 0.4 else []

    @classmethod
    def parameters(cls, random: Random, style: Style, known: dict[str, Type]) -> dict[str, Type]:
        return {"particles": records(max(style.sizes[0], 1))} if random.random() < 0.7 else {}

    def arrays(self) -> list[str]:
        return self.writer.structures("records")

    def length(self, name: str) -> int:
        kind = self.writer.variables[name].parts[0][1]  # type: ignore[union-attr]
        assert isinstance(kind, Array)
        assert kind.shape[0] is not None
        return kind.shape[0]

    def statements(self) -> list[Statement]:
        found: list[Statement] = [(3.0, self.create)]
        if self.arrays():
            found += [(4.0, self.refer), (4.0, self.write), (2.0, self.derive), (1.5, self.view), (1.0, self.masked)]
        return found if not self.writer.nested else []

    def compounds(self) -> list[Statement]:
        return [(4.0, self.loop)] if self.arrays() and self.writer.iterations <= 8 else []

    def expressions(self) -> list[Operation]:
        return [(2.0, self.read)] if self.arrays() else []

    def place(self, name: str) -> str:
        """A number in an array of records, selected by field and element or by element and field."""
        w = self.writer
        index = w.index(self.length(name))
        texts = [f"{name}[{index}]['{field}']" for field in ("mass", "charge")]
        texts += [f"{name}['{field}'][{index}]" for field in ("mass", "charge")]
        texts += [f"{name}[{index}]['place'][{w.pick((0, 1))}]", f"{name}['place'][{index}, {w.pick((0, 1))}]"]
        return str(w.pick(texts))

    def read(self, depth: int) -> Expression:
        w = self.writer
        name = w.pick(self.arrays())
        texts = (
            self.place(name),
            f"np.sum({name}['mass'] * {name}['charge'])",
            f"np.sum({name}['place'])",
            f"np.sum({name}['mass'][{name}['charge'] > {w.constant()}])",
            f"np.sum({name}[{name}['charge'] > {w.constant()}]['mass'])",
            f"0.1 * len({name})",
            f"np.mean({name}[::-1]['place'][0])",
        )
        return Expression(w.pick(texts) if not w.inside_array else texts[0], 30.0)

    def create(self) -> None:
        w = self.writer
        length = max(w.some_shape(1)[0], 1)
        name = w.fresh("structure", RECORD, 0.0)
        if w.chance(0.3):
            rows = ", ".join(f"({w.real(1)}, {w.real(1)}, ({w.real(0)}, {w.constant()}))" for _ in range(length))
            w.emit(f"{name} = np.array([{rows}], dtype=PARTICLE)")
        else:
            w.emit(f"{name} = np.{w.pick(('zeros', 'ones'))}({length}, dtype=PARTICLE)")
            if w.chance(0.5):
                w.emit(f"{name}['mass'] = {w.array((length,), 1)}")
        w.bind(name, records(length))

    def refer(self) -> None:
        """A name for an element. A write to it is a write to the array."""
        w = self.writer
        array = w.pick(self.arrays())
        text = f"{array}[{w.index(self.length(array))}]"
        name = w.fresh("structure", RECORD, 0.0)
        w.emit(f"{name} = {text}")
        w.bind(name, RECORD)

    def write(self) -> None:
        w = self.writer
        name = w.pick(self.arrays())
        place = self.place(name)
        whole = f"{name}['{w.pick(('mass', 'charge'))}']"
        texts = (
            f"{place} = {w.real(2)}",
            f"{place} {w.growth(Real())}",
            f"{whole} = {w.array((self.length(name),), 1)}",
            f"{whole} *= {w.pick((0.9, -0.7))}",
            f"{name}[{w.index(self.length(name))}] = {name}[{w.index(self.length(name))}]",
        )
        w.emit(w.pick(texts))

    def derive(self) -> None:
        """A new array of records: a copy, a selection, another order."""
        w = self.writer
        source = w.pick(self.arrays())
        n = self.length(source)
        options = [(f"{source}.copy()", n), (f"{source}[{w.indices(2, n)}]", 2), (source, n)]
        text, length = w.pick(options)
        name = w.fresh("structure", RECORD, 0.0)
        w.emit(f"{name} = {text}")
        w.bind(name, records(length))

    def view(self) -> None:
        w = self.writer
        source = w.pick(self.arrays())
        n = self.length(source)
        text, length = w.pick(((f"{source}[::-1]", n), (f"{source}[:1]", 1), (f"{source}[::2]", (n + 1) // 2)))
        name = w.fresh("structure", RECORD, 0.0)
        w.emit(f"{name} = {text}")
        w.bind(name, records(length))

    def masked(self) -> None:
        w = self.writer
        name = w.pick(self.arrays())
        w.emit(f"{name}['mass'][{name}['charge'] > {w.constant()}] {w.pick(('*= 0.5', '= 0.3', '+= 0.2'))}")

    def loop(self) -> bool:
        """A loop over the elements, by reference or by index."""
        w = self.writer
        array = w.pick(self.arrays())
        length = self.length(array)
        item = w.unused(("each", "one", "particle"))
        if w.chance(0.4):
            counter = w.unused(("i", "j", "place"))
            return w.loop_body(
                f"for {counter} in range(len({array})):", [(counter, Integer(0, length - 1))], length, True, [], []
            )
        return w.loop_body(
            f"for {item} in {array}:", [(item, RECORD)], length, True, [], [], lambda: w.bind(item, RECORD)
        )

    def value(self, kind: Type) -> str | None:
        if not isinstance(kind, Structure) or kind.maker != "records":
            return None
        length = kind.parts[0][1].shape[0]  # type: ignore[union-attr]
        return f"np.ones({length}, dtype=PARTICLE)"
