"""The state of a random function while it is written, and the choice of names in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

from tests.fuzz.kinds import NAMES, Array, Function, Integer, List, Loop, Real, Structure, Style, Tuple, Type

if TYPE_CHECKING:
    from tests.fuzz.constructs.construct import Construct


class Tools:
    """The known facts at a place in a function that is being written, and the choice of names."""

    def __init__(
        self,
        random: Random,
        parameters: dict[str, Type],
        result: Type | None,
        budget: float,
        outside: dict[str, Type] | None = None,
        nested: bool = False,
        may_raise: bool = False,
        tastes: dict[str, float] | None = None,
        style: Style | None = None,
    ) -> None:
        self.random = random
        self.tastes = {} if tastes is None else tastes
        self.style = style or Style()
        self.constructs: list[Construct] = [make(self) for make in self.style.constructs]
        self.lines: list[str] = []
        self.indent = 1
        self.outside = dict(outside or {})  # read-only: helpers, or the names of the enclosing function
        self.variables: dict[str, Type] = {**self.outside, **parameters}
        self.reserved: set[str] = set(self.outside)  # names that no statement binds
        self.called: set[str] = set()  # functions that have to be called
        self.pinned: set[str] = set()  # names whose type must not change, because closures read them
        self.frozen_groups: set[int] = set()  # lists that are being iterated over
        self.homes: dict[str, int] = dict.fromkeys(parameters, 0)
        self.result = result
        self.budget: float = budget
        self.inside_array = False  # whether the number becomes an element of an array
        self.loops: list[Loop] = []
        self.loop_count = 0
        self.groups = 1000 if nested else 0
        self.iterations = 1
        self.depth = 0
        self.nested = nested
        self.may_raise = may_raise
        self.unsure: dict[str, Type] = {}  # names that are undefined on some paths, and have this type on all others
        self.ever: dict[str, set[Type]] = {name: {kind} for name, kind in self.variables.items()}
        for name, kind in parameters.items():
            self.bind(name, kind)

    # ------------------------------------------------------------------------------------------------- small tools

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.random.randrange(len(options))]

    def weighted(self, options: Sequence[tuple[float, Any]]) -> Any:
        """One of the options, by its weight and by the taste of this program."""
        weights = [weight * self.taste(getattr(what, "__name__", "")) for weight, what in options]
        return self.random.choices([what for _, what in options], weights)[0]

    def taste(self, name: str) -> float:
        """Programs differ mostly in the features that they use (swarm testing)."""
        if name == "<lambda>":
            return 1.0
        if name not in self.tastes:
            self.tastes[name] = self.random.choices((0.15, 1.0, 3.5), (0.3, 0.45, 0.25))[0]
        return self.tastes[name]

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.indent += 1
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.emit("pass")
        self.indent -= 1

    @contextmanager
    def reserving(self, *names: str) -> Iterator[None]:
        added = [name for name in names if name not in self.reserved]
        self.reserved.update(added)
        yield
        self.reserved.difference_update(added)

    @property
    def loop(self) -> int:
        return self.loops[-1].number if self.loops else 0

    def of(self, wanted: Callable[[Type], bool]) -> list[str]:
        return [name for name, kind in self.variables.items() if wanted(kind)]

    def reals(self) -> list[str]:
        return self.of(lambda kind: isinstance(kind, Real))

    def integers(self) -> list[str]:
        return self.of(lambda kind: isinstance(kind, Integer))

    def arrays(self, kind: str = "float", rank: int | None = None) -> list[str]:
        """The nonempty arrays."""
        return self.of(
            lambda t: isinstance(t, Array) and t.kind == kind and rank in (None, t.rank) and 0 not in t.shape
        )

    def lists(self, least: int = 0) -> list[str]:
        return self.of(lambda kind: isinstance(kind, List) and kind.least >= least)

    def tuples(self) -> list[str]:
        return self.of(lambda kind: isinstance(kind, Tuple))

    def structures(self, maker: str = "") -> list[str]:
        """The structures, or only those of the given maker."""
        return self.of(lambda kind: isinstance(kind, Structure) and maker in ("", kind.maker))

    def functions(self, result: Callable[[Type | None], bool]) -> list[str]:
        return self.of(
            lambda kind: isinstance(kind, Function) and result(kind.result) and self.iterations * kind.cost <= 200
        )

    def bindable(self, name: str, kind: Type) -> bool:
        """Whether the name may be bound to a value of this type here."""
        if name in self.reserved:
            return False
        old = self.variables.get(name)
        if old is None or old == kind:
            # a forgotten name may have another type on some path, but it is never read
            return name not in self.pinned or old == kind
        return self.homes.get(name, -1) == self.loop and name not in self.pinned and not isinstance(old, Function)

    def fresh(self, family: str, kind: Type, reuse: float = 0.12) -> str:
        """A name to bind: mostly a new one, sometimes one that had another meaning."""
        if self.chance(reuse):
            others = [name for name in self.variables if self.bindable(name, kind) and self.variables[name] != kind]
            if others:
                return str(self.pick(others))
        names = [name for name in NAMES[family] if name not in self.variables and self.bindable(name, kind)]
        if names:
            return str(self.pick(names[:6]))
        for number in range(2, 100):
            name = f"{self.pick(NAMES[family])}{number}"
            if name not in self.variables and self.bindable(name, kind):
                return name
        raise AssertionError("out of names")

    def target(self, family: str, kind: Type) -> str:
        """A name to assign to: an old one of the same type, or a new one."""
        old = [name for name, known in self.variables.items() if known == kind and self.bindable(name, kind)]
        if old and self.chance(0.7 if self.loops else 0.55):
            return str(self.pick(old))
        return self.fresh(family, kind)

    def bind(self, name: str, kind: Type) -> None:
        if self.variables.get(name) != kind or name not in self.homes:
            self.homes[name] = self.loop
        self.variables[name] = kind
        self.ever.setdefault(name, set()).add(kind)
        self.unsure.pop(name, None)
        if isinstance(kind, Structure):
            self.pinned.add(name)
            for member, part in kind.members(name).items():
                self.bind(member, part)
                self.pinned.add(member)
            self.reserved.update(kind.way.format(name, part) for part in kind.fixed)

    def forget(self, *scopes: dict[str, Type]) -> None:
        """Record the names that were lost at a join. Reading them may raise."""
        for scope in scopes:
            for name, kind in scope.items():
                if name not in self.variables and self.ever.get(name) == {kind}:
                    self.unsure[name] = kind
