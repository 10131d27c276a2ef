"""Writes classes, instances of them, and what is done with instances.

Attributes are names like others for the writer, with a dot in them. A method is a function that an instance has, and a
class is a function that returns an instance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from tests.fuzz.constructs.construct import Construct, Operation, Signature, Statement
from tests.fuzz.kinds import Array, Expression, Function, Real, Structure, Style, Type

if TYPE_CHECKING:
    from tests.fuzz.writer import Writer

Known = dict[str, Type]


class Description:
    """A class that is being written: its lines, and the facts about its instances."""

    def __init__(
        self, random: Random, style: Style, write: type[Writer], name: str, parts: Known, known: Known
    ) -> None:
        self.random, self.style, self.write, self.known = random, style, write, known
        self.lines: list[str] = []
        self.kind = Structure(tuple(parts.items()), name, given=len(parts))

    def add(self, *lines: str) -> None:
        self.lines += ["    " + line for line in lines]

    def has(self, name: str, kind: Type, fixed: bool = False) -> None:
        """Record that instances have this part."""
        parts = tuple(part for part in self.kind.parts if part[0] != name)
        fixed_names = (*self.kind.fixed, name) if fixed else self.kind.fixed
        self.kind = replace(self.kind, parts=(*parts, (name, kind)), fixed=fixed_names)

    def body(self, parameters: Known, result: Type | None, budget: int = 3) -> Writer:
        """A function that writes a method with these parameters after `self`."""
        writer = self.write(
            self.random, {"self": self.kind, **parameters}, result, budget, self.known, style=self.style
        )
        writer.iterations = 4
        return writer

    def method(self, name: str, parameters: Known, result: Type | None, decorator: str = "") -> None:
        """A method with a random body."""
        writer = self.body(parameters, result, self.random.randint(0, 3))
        writer.write_body()
        if decorator:
            self.add(decorator)
        self.add(f"def {name}({', '.join(('self', *parameters))}):", *writer.lines)
        if decorator == "@property":
            self.has(name, Real(), fixed=True)
        elif not name.startswith("__"):
            self.has(name, Function(tuple(parameters.values()), result, tuple(parameters), cost=4), fixed=True)

    def with_trait(self, trait: str) -> None:
        self.kind = replace(self.kind, traits=(*self.kind.traits, trait))

    def constructor(self) -> Function:
        given = self.kind.parts[: self.kind.given]
        names = tuple(name for name, _ in given)
        return Function(tuple(part for _, part in given), self.kind, names, cost=2)


# -------------------------------------------------------------------------------------------------------------- members


def computed(made: Description) -> list[str]:
    """Lines of `__init__` that store the arguments, and a value computed from them."""
    names = [name for name, _ in made.kind.parts]
    lines = [f"self.{name} = {name}" for name in names]
    if made.random.random() < 0.6:
        writer = made.body({}, Real(), 0)
        lines.append(f"self.age = {writer.real(2)}")
        made.has("age", Real())
    return lines


def add_property(made: Description) -> None:
    made.method("size", {}, Real(), "@property")


def add_setter(made: Description) -> None:
    first = made.kind.parts[0][0]
    made.add("@property", "def level(self):", f"    return 0.8 * self.{first}")
    made.add("@level.setter", "def level(self, value):", f"    self.{first} = math.sin(value) * 1.3")
    made.has("level", Real())


def add_static(made: Description) -> None:
    made.add("@staticmethod", "def curve(h):", f"    return {made.random.choice(('math.tanh(h)', '0.7 * h', 'h * h'))}")
    made.has("curve", Function((Real(),), Real(), ("h",)), fixed=True)


def add_class_method(made: Description) -> None:
    count = made.kind.given
    made.add("@classmethod", "def other(cls, h):", f"    return cls({', '.join(['0.5 * h', '0.4', 'h'][:count])})")
    made.with_trait("other")


def add_class_attribute(made: Description) -> None:
    made.add("FACTOR = 0.8")
    made.has("FACTOR", Real(), fixed=True)


def add_operators(made: Description) -> None:
    names = [name for name, _ in made.kind.parts[: made.kind.given]]

    def each(text: str) -> str:
        return f"    return {made.kind.maker}({', '.join(text.format(name) for name in names)})"

    made.add("def __add__(self, other):", each("0.5 * self.{0} + 0.5 * other.{0}"))
    made.add("def __mul__(self, h):", each("math.sin(h) * self.{0}"))
    made.add("def __rmul__(self, h):", "    return self * h")
    made.add("def __neg__(self):", each("-self.{0}"))
    made.with_trait("operators")


def add_order(made: Description) -> None:
    first = made.kind.parts[0][0]
    made.add("def __lt__(self, other):", f"    return self.{first} < other.{first} + 0.013")
    made.with_trait("order")


def add_call(made: Description) -> None:
    made.method("__call__", {"dt": Real()}, Real())
    made.with_trait("call")


def add_sequence(made: Description) -> None:
    names = [f"self.{name}" for name, _ in made.kind.parts[: made.kind.given]]
    items = ", ".join(names)
    made.add("def __len__(self):", f"    return {len(names)}")
    made.add("def __getitem__(self, k):", f"    return ({items},)[k]")
    if made.random.random() < 0.5:
        made.add("def __iter__(self):", *(f"    yield {name}" for name in names))
    else:
        made.add("def __iter__(self):", f"    return iter(({items},))")
    made.with_trait("sequence")


def add_size(made: Description) -> None:
    made.add("def __abs__(self):", f"    return math.sqrt(0.1 + self.{made.kind.parts[0][0]} ** 2)")
    made.with_trait("size")


MEMBERS: tuple[Callable[[Description], None], ...] = (
    add_property,
    add_setter,
    add_static,
    add_class_method,
    add_class_attribute,
    add_call,
    add_size,
)
#: Members that require all parts to be numbers.
OF_NUMBERS: tuple[Callable[[Description], None], ...] = (add_operators, add_order, add_sequence)


def add_members(made: Description) -> None:
    """Methods, and some of the other members."""
    numbers = all(kind == Real() for _, kind in made.kind.parts[: made.kind.given])
    chosen = [add for add in MEMBERS if numbers or add is not add_class_method]
    members = [*made.random.sample(chosen, made.random.randint(1, 3))]
    if numbers:
        members += made.random.sample(OF_NUMBERS, made.random.randint(0, 2))
    if made.kind.parts[0][0] in made.kind.fixed:
        members = [add for add in members if add is not add_setter]
    if made.kind.parts[0][1] != Real():
        members = [add for add in members if add not in (add_setter, add_size)]
    for add in members:
        add(made)
    made.method("energy", {"dt": Real()}, Real())
    made.method("advance", {"dt": Real()}, None)


def plain_class(random: Random, style: Style, write: type[Writer], name: str) -> tuple[list[str], Structure, Function]:
    """A class with an `__init__`."""
    parts: Known = {"x": Real(), "v": Real()}
    if random.random() < 0.4:
        parts["state"] = Array((max(style.sizes[0], 1),))
    made = Description(random, style, write, name, parts, {})
    lines = computed(made)
    if random.random() < 0.15:
        names = [part for part, _ in made.kind.parts]
        made.add(f"__slots__ = ({', '.join(repr(part) for part in names)},)")
        made.with_trait("slots")
    made.add(f"def __init__({', '.join(('self', *parts))}):", *("    " + line for line in lines))
    add_members(made)
    return [f"class {name}:", *made.lines], made.kind, made.constructor()


def derived_class(base: Structure, name: str, made: Description) -> list[str]:
    """A subclass with another attribute, and a method that calls the one of the base."""
    given = [part for part, _ in base.parts[: base.given]]
    parts = (*base.parts[: base.given], ("mass", Real()), *base.parts[base.given :])
    overridden = {part: kind for part, kind in parts if part not in ("energy", "advance")}
    made.kind = replace(base, parts=tuple(overridden.items()), maker=name, given=base.given + 1)
    made.add(f"def __init__(self, {', '.join(given)}, mass):", f"    super().__init__({', '.join(given)})")
    made.add("    self.mass = mass")
    writer = made.body({"dt": Real()}, Real(), 2)
    text = writer.real(2)
    made.add("def energy(self, dt):", f"    return 0.6 * super().energy(dt) * math.cos(self.mass) + {text}")
    if made.random.random() < 0.5:
        made.add("def advance(self, dt):", f"    self.mass = {writer.real(2)}", "    super().advance(dt)")
    # the base's methods make instances of the base
    made.kind = replace(
        made.kind, parts=parts, traits=tuple(trait for trait in base.traits if trait in ("call", "size", "slots"))
    )
    return [f"class {name}({base.maker}):", *made.lines]


# ------------------------------------------------------------------------------------------------------------ instances


class Classes(Construct):
    """Instances of classes: created, read, written, called, added, in lists, under two names."""

    header = "from dataclasses import dataclass, field\n"

    @classmethod
    def declare(cls, random: Random, style: Style, write: type[Writer]) -> tuple[list[str], Known]:
        lines, kind, constructor = plain_class(random, style, write, "Body")
        known: Known = {"Body": constructor}
        if random.random() < 0.5:
            made = Description(random, style, write, "Heavy", {}, {})
            lines += ["", "", *derived_class(kind, "Heavy", made)]
            known["Heavy"] = made.constructor()
        return lines, known

    @classmethod
    def kinds(cls, known: Known) -> list[Structure]:
        """The classes of this construct, by the kind of their instances."""
        results = [kind.result for kind in known.values() if isinstance(kind, Function)]
        return [kind for kind in results if isinstance(kind, Structure) and kind.maker in cls.makers]

    makers = ("Body", "Heavy")

    @classmethod
    def signatures(cls, random: Random, style: Style, known: Known) -> list[Signature]:
        kind = random.choice(cls.kinds(known))
        options: list[Signature] = [
            ({"body": kind, "x": Real()}, random.choice((Real(), None))),
            ({"x": Real(), "y": Real()}, kind),
            ({"body": kind, "other": kind}, random.choice((Real(), None))),
        ]
        return random.sample(options, random.randint(0, 2))

    @classmethod
    def parameters(cls, random: Random, style: Style, known: Known) -> Known:
        kinds = [kind for kind in cls.kinds(known) if "slots" not in kind.traits]
        return {"model": random.choice(kinds)} if kinds and random.random() < 0.6 else {}

    # ----------------------------------------------------------------------------------------------------- expressions

    def instances(self, trait: str = "") -> list[str]:
        kinds = self.writer.variables
        names = [name for maker in self.makers for name in self.writer.structures(maker)]
        return [name for name in names if not trait or trait in kinds[name].traits]  # type: ignore[union-attr]

    def alike(self, name: str) -> list[str]:
        return [other for other in self.instances() if self.writer.variables[other] == self.writer.variables[name]]

    def expressions(self) -> list[Operation]:
        found: list[Operation] = []
        for trait, way in (
            ("call", self.called),
            ("sequence", self.item),
            ("size", self.size),
            ("order", self.compared),
        ):
            if self.instances(trait):
                found.append((1.5, way))
        if self.writer.structures("sequence") and self.writer.iterations <= 16 and not self.writer.nested:
            found.append((2.0, self.sum_of_held))
        return found

    def sum_of_held(self, depth: int) -> Expression:
        """A sum over instances in a list or a tuple, of an attribute or of a method's result."""
        w = self.writer
        name = w.pick(w.structures("sequence"))
        (_, kind), *_ = w.variables[name].parts  # type: ignore[union-attr]
        texts = [f"part3.{part}" for part, known in kind.parts if isinstance(known, Real)]
        if any(part == "energy" for part, _ in kind.parts):
            texts.append(f"part3.energy({w.real(min(depth, 1), 2.0)})")
        return Expression(f"sum([{w.pick(texts)} for part3 in {name}])", 12.0)

    def called(self, depth: int) -> Expression:
        w = self.writer
        w.budget -= 1
        return Expression(f"{w.pick(self.instances('call'))}({w.real(min(depth, 1), 2.0)})", 4.0)

    def item(self, depth: int) -> Expression:
        w = self.writer
        name = w.pick(self.instances("sequence"))
        texts = (
            f"{name}[{w.pick((0, 1, -1))}]",
            f"0.1 * len({name})",
            f"sum({name})",
            f"sum([math.sin(part4) for part4 in {name}])",
        )
        return Expression(w.pick(texts), 12.0)

    def size(self, depth: int) -> Expression:
        return Expression(f"abs({self.writer.pick(self.instances('size'))})", 4.0)

    def compared(self, depth: int) -> Expression:
        w = self.writer
        first = w.pick(self.instances("order"))
        second = w.pick(self.alike(first))
        return Expression(f"({w.real(0)} if {first} < {second} else {w.real(0)})", 4.0)

    # ------------------------------------------------------------------------------------------------------ statements

    def statements(self) -> list[Statement]:
        found: list[Statement] = [(5.0, self.create)]
        if self.instances():
            found += [(2.0, self.alias), (4.0, self.hold)]
        if self.instances("operators"):
            found.append((4.0, self.operate))
        if self.instances("other"):
            found.append((1.0, self.create_by_class_method))
        return found if self.writer.recursion is None else []

    def bound(self, text: str, kind: Type) -> None:
        name = self.writer.fresh("structure", kind, 0.0)
        self.writer.emit(f"{name} = {text}")
        self.writer.bind(name, kind)

    def create(self) -> None:
        w = self.writer
        kinds = self.kinds(w.variables)
        if kinds:
            kind = w.pick(kinds)
            self.bound(w.call(kind.maker, 1), kind)

    def create_by_class_method(self) -> None:
        name = self.writer.pick(self.instances("other"))
        kind = self.writer.variables[name]
        assert isinstance(kind, Structure)
        self.bound(f"{self.writer.pick((name, kind.maker))}.other({self.writer.real(1)})", kind)

    def alias(self) -> None:
        """Another name for an object, or for one of two objects: a write to one name is visible through the other."""
        name = self.writer.pick(self.instances())
        other = self.writer.pick(self.alike(name))
        text = f"{name} if {self.writer.condition(0)} else {other}" if self.writer.chance(0.3) else name
        self.bound(text, self.writer.variables[name])

    def hold(self) -> None:
        """Instances in a list, a tuple or a dictionary."""
        w = self.writer
        name = w.pick(self.instances())
        kind = w.variables[name]
        items = [name]
        for _ in range(w.random.randint(0, 2)):
            items.append(w.pick(self.alike(name)) if w.chance(0.6) else self.value(kind) or name)
        way = w.pick(("[{0}]", "({0},)", "dictionary"))
        if way == "dictionary":
            text = ", ".join(f"'{'abc'[k]}': {item}" for k, item in enumerate(items))
            held = Structure(tuple(("abc"[k], kind) for k in range(len(items))), "group", "{0}['{1}']")
            return self.bound(f"{{{text}}}", held)
        held = Structure(tuple((str(k), kind) for k in range(len(items))), "sequence", "{0}[{1}]")
        return self.bound(way.format(", ".join(items)), held)

    def operate(self) -> None:
        w = self.writer
        name = w.pick(self.instances("operators"))
        kind = w.variables[name]
        assert isinstance(kind, Structure)
        other = w.pick(self.alike(name))
        texts = (f"{name} + {other}", f"{name} * {w.real(1)}", f"{w.real(1)} * {name}", f"-{name}")
        self.bound(w.pick((*texts, f"{name} + 0.4 * {other}", f"sum([{name}, {other}], -{name})")), kind)

    def compounds(self) -> list[Statement]:
        w = self.writer
        held = [name for name in w.structures("sequence") if w.variables[name].parts]  # type: ignore[union-attr]
        return [(15.0, self.loop)] if held and w.iterations <= 8 and w.recursion is None else []

    def loop(self) -> bool:
        """A loop over instances, whose attributes it reads and writes."""
        w = self.writer
        name = w.pick(w.structures("sequence"))
        parts = w.variables[name].parts  # type: ignore[union-attr]
        item = w.unused(("each", "one", "member"))
        kind = parts[0][1]
        if not w.bindable(item, kind):
            return True
        header = f"for {item} in {name}:"
        return w.loop_body(header, [(item, kind)], len(parts), True, [], [], lambda: w.bind(item, kind))

    def value(self, kind: Type) -> str | None:
        if not isinstance(kind, Structure) or kind.maker not in self.makers or kind.maker not in self.writer.variables:
            return None
        return self.writer.call(kind.maker, 0)
