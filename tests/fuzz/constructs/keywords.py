"""Writes functions with `*args`, keyword-only parameters and `**kwargs`, and calls of them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.fuzz.constructs.construct import Construct, Operation
from tests.fuzz.kinds import Expression, Real, Style, Type

if TYPE_CHECKING:
    from tests.fuzz.writer import Writer

OPTIONS = ("rate", "shift", "power")

#: The uses of options in a function.
USES = (
    "total += {0} * options.get('{1}', {2})",
    "total += {0} * sum(options.values())",
    "if '{1}' in options:\n    total *= math.cos(options['{1}'])",
    "for name, value in options.items():\n    total += {0} * value * len(name)",
    "total += {0} * len(options)",
    "total -= weighted(x, *rest, **options)",
    "total -= weighted({0}, **{{**options, '{1}': {2}}})",
)

WEIGHTED = """def weighted(x, *rest, rate=0.3, **options):
    return math.sin(x) * rate + sum(rest) - sum(options.values())
"""


class Keywords(Construct):
    """Helpers with any arguments, by position and by name."""

    header = "\n" + WEIGHTED

    @classmethod
    def declare(cls, random: Random, style: Style, write: type[Writer]) -> tuple[list[str], dict[str, Type]]:
        body = write(random, {"x": Real(), "scale": Real(), "total": Real(200.0)}, Real(), 0, {}, style=Style())
        lines = ["total = 0.2 * x", "for value in rest:", f"    total += value * {body.real(1, 2.0)}"]
        for use in random.sample(USES, 2):
            lines += use.format(body.real(1, 2.0), random.choice(OPTIONS), body.constant()).splitlines()
        lines.append(f"return {random.choice(('math.sin(total)', 'math.tanh(total) * scale', '0.3 * total'))}")
        return ["def mixed(x, *rest, scale=0.7, **options):", *("    " + line for line in lines)], {}

    def expressions(self) -> list[Operation]:
        return [(4.0, self.called)]

    def called(self, depth: int) -> Expression:
        w = self.writer
        w.budget -= 1
        arguments = [w.real(min(depth, 1), 2.0) for _ in range(w.random.randint(1, 3))]
        pairs = [name for name in w.tuples() if w.variables[name].items == (Real(), Real())]  # type: ignore[union-attr]
        if pairs and w.chance(0.4):
            arguments.append(f"*{w.pick(pairs)}")
        elif w.chance(0.15):
            arguments.append(f"*({w.real(0)}, {w.real(0)})")
        names = w.random.sample(OPTIONS, w.random.randint(0, 2))
        if w.chance(0.3):
            names.append("scale")
        named = [f"{name}={w.real(min(depth, 1), 2.0)}" for name in names]
        rest = [name for name in OPTIONS if name not in names]
        if w.chance(0.3):
            named.append(f"**{{'{rest[0]}': {w.real(0, 2.0)}}}")
        name = w.pick(("mixed", "mixed", "weighted"))
        if name == "weighted":
            named = [text for text in named if not text.startswith("scale")]
        return Expression(f"{name}({', '.join(arguments + named)})", 20.0)
