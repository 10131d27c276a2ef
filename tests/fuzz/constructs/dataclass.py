"""Writes dataclasses, frozen or not, with defaults, a `__post_init__`, and other instances in their fields."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from tests.fuzz.constructs.classes import Classes, Description, Known, add_members
from tests.fuzz.kinds import Array, Real, Style

if TYPE_CHECKING:
    from tests.fuzz.writer import Writer

ANNOTATIONS = {Real: "float", Array: "np.ndarray"}


class Dataclasses(Classes):
    """Dataclasses, in place of classes with an `__init__`."""

    makers = ("Settings", "Plant")

    @classmethod
    def declare(cls, random: Random, style: Style, write: type[Writer]) -> tuple[list[str], Known]:
        frozen = random.random() < 0.3
        parts: Known = {"x": Real(), "v": Real()}
        if random.random() < 0.4:
            parts["state"] = Array((max(style.sizes[0], 1),))
        made = Description(random, style, write, "Settings", parts, {})
        if frozen:
            made.kind = replace(made.kind, fixed=tuple(parts))
        made.add(*(f"{name}: {ANNOTATIONS[type(kind)]}" for name, kind in parts.items()))
        if random.random() < 0.4:
            made.add(random.choice(("bias: float = 0.4", "bias: float = field(default=-0.3)")))
            made.has("bias", Real(), fixed=frozen)
        if not frozen and random.random() < 0.4:
            writer = made.body({}, Real(), 0)
            made.add("age: float = field(init=False)")
            made.add("def __post_init__(self):", f"    self.age = {writer.real(2)}")
            made.has("age", Real())
        add_members(made)
        decorator = "@dataclass(frozen=True)" if frozen else "@dataclass"
        lines = [decorator, "class Settings:", *made.lines]
        known: Known = {"Settings": made.constructor()}
        if random.random() < 0.5:
            holder = Description(random, style, write, "Plant", {"inner": made.kind, "load": Real()}, {})
            holder.add("inner: Settings", "load: float")
            holder.method("output", {"dt": Real()}, Real())
            holder.method("run", {"dt": Real()}, None)
            lines += ["", "", "@dataclass", "class Plant:", *holder.lines]
            known["Plant"] = holder.constructor()
        return lines, known
