"""Writes dictionaries with constant keys: reads, writes, new keys, passing to functions, iteration."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.fuzz.constructs.construct import Construct, Operation, Signature, Statement
from tests.fuzz.kinds import Array, Expression, Real, Structure, Style, Type

KEYS = ("gain", "rate", "offset", "width", "decay")


def dictionary(parts: tuple[tuple[str, Type], ...]) -> Structure:
    def argument(values: list[Any]) -> dict[str, Any]:
        return dict(zip([key for key, _ in parts], values, strict=True))

    return Structure(parts, "dict", "{0}['{1}']", len(parts), argument=argument)


SETTINGS = dictionary((("gain", Real()), ("rate", Real())))


class Dictionaries(Construct):
    """Dictionaries with keys known at compile time."""

    @classmethod
    def signatures(cls, random: Random, style: Style, known: dict[str, Type]) -> list[Signature]:
        return [({"x": Real(), "settings": SETTINGS}, random.choice((Real(), None)))] if random.random() < 0.5 else []

    @classmethod
    def parameters(cls, random: Random, style: Style, known: dict[str, Type]) -> dict[str, Type]:
        if random.random() < 0.4:
            return {}
        state = dictionary((("speed", Real()), ("field", Array((max(style.sizes[0], 1),)))))
        return {"settings": random.choice((SETTINGS, SETTINGS, state))}

    def names(self) -> list[str]:
        return self.writer.structures("dict")

    def of_reals(self) -> list[str]:
        kinds = self.writer.variables
        return [name for name in self.names() if all(kind == Real() for _, kind in kinds[name].parts)]  # type: ignore[union-attr]

    def statements(self) -> list[Statement]:
        found: list[Statement] = [(4.0, self.create)]
        if self.of_reals() and not self.writer.nested:
            found += [(3.0, self.update), (2.0, self.copy), (1.5, self.take)]
        return found

    def compounds(self) -> list[Statement]:
        return [(2.0, self.loop)] if self.of_reals() and self.writer.iterations <= 16 else []

    def expressions(self) -> list[Operation]:
        w = self.writer
        if not self.of_reals():
            return []

        def total(depth: int) -> Expression:
            name = w.pick(self.of_reals())
            texts = (
                f"sum({name}.values())",
                f"sum([math.sin(part6) for part6 in {name}.values()])",
                f"{name}.get('{w.pick(KEYS)}', {w.real(0)})",
                f"0.1 * len({name})",
                f"({w.real(0)} if '{w.pick(KEYS)}' in {name} else {w.constant()})",
                f"max({name}.values())",
            )
            return Expression(w.pick(texts), 20.0)

        return [(1.5, total)]

    def create(self) -> None:
        w = self.writer
        keys = w.random.sample(KEYS, w.pick((1, 2, 2, 3)))
        kind = dictionary(tuple((key, Real()) for key in keys))
        if w.chance(0.3):
            kind = SETTINGS
            keys = [key for key, _ in kind.parts]
        values = [w.real(1) for _ in keys]
        display = ", ".join(f"'{key}': {value}" for key, value in zip(keys, values, strict=True))
        called = ", ".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
        pairs = ", ".join(f"('{key}', {value})" for key, value in zip(keys, values, strict=True))
        texts = (f"{{{display}}}", f"{{{display}}}", f"dict({called})", f"dict([{pairs}])")
        name = w.fresh("structure", kind, 0.0)
        if w.chance(0.25):
            w.emit(f"{name} = {{}}")
            for key, value in zip(keys, values, strict=True):
                w.emit(f"{name}['{key}'] = {value}")
        else:
            w.emit(f"{name} = {w.pick(texts)}")
        w.bind(name, kind)

    def update(self) -> None:
        """Items of the dictionary, updated by a method."""
        w = self.writer
        name = w.pick(self.of_reals())
        key = w.pick([key for key, _ in w.variables[name].parts])  # type: ignore[union-attr]
        texts = (
            f"{name}.update({{'{key}': {w.real(1)}}})",
            f"{name}.update({key}={w.real(1)})",
            f"{name}.setdefault('{key}', {w.real(1)})",
        )
        w.emit(w.pick(texts))

    def copy(self) -> None:
        """A dictionary from another one: a copy, an extended one, or an alias."""
        w = self.writer
        source = w.pick(self.of_reals())
        kind = w.variables[source]
        assert isinstance(kind, Structure)
        texts = [f"dict({source})", f"{source}.copy()", source]
        texts.append(f"{{key6: 0.5 * part6 for key6, part6 in {source}.items()}}")
        text = w.pick(texts)
        added = [key for key in KEYS if key not in dict(kind.parts)]
        if text != source and added and w.chance(0.4):
            text = f"{{**{source}, '{added[0]}': {w.real(1)}}}"
            kind = dictionary((*kind.parts, (added[0], Real())))
        name = w.fresh("structure", kind, 0.0)
        w.emit(f"{name} = {text}")
        w.bind(name, kind)

    def take(self) -> None:
        """A new item that is added and removed again."""
        w = self.writer
        name = w.pick(self.of_reals())
        added = [key for key in KEYS if key not in dict(w.variables[name].parts)]  # type: ignore[union-attr]
        if w.depth or w.loops or not added:
            return self.update()
        w.emit(f"{name}['{added[0]}'] = {w.real(1)}")
        target = w.target("real", Real())
        w.emit(w.pick((f"{target} = {name}.pop('{added[0]}')", f"{target} = {name}['{added[0]}']")))
        if f"{name}.pop" not in w.lines[-1]:
            w.emit(f"del {name}['{added[0]}']")
        w.bind(target, Real())
        return None

    def loop(self) -> bool:
        w = self.writer
        name = w.pick(self.of_reals())
        count = len(w.variables[name].parts)  # type: ignore[union-attr]
        value = w.unused(("entry", "amount", "share"))
        if w.chance(0.5):
            header = f"for key6, {value} in {name}.items():"
            write = f"{name}[key6] = {w.pick(('0.5', '-0.8'))} * {value}"
        else:
            header, write = f"for {value} in {name}.values():", "pass"
        return w.loop_body(header, [(value, Real())], count, True, [], [], lambda: w.emit(write))

    def value(self, kind: Type) -> str | None:
        if kind != SETTINGS:
            return None
        return f"{{'gain': {self.writer.real(1)}, 'rate': {self.writer.real(1)}}}"
