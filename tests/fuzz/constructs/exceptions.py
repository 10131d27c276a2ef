"""Writes `try` with exceptions that the program raises itself, and those that a test can predict."""

from __future__ import annotations

from random import Random

from tests.fuzz.constructs.construct import Construct, Signature, Statement
from tests.fuzz.kinds import Integer, Real, Style, Type, common

RAISED = ("ValueError", "ArithmeticError", "RuntimeError", "KeyError")

HEADER = """
def checked(x, limit):
    if x > limit:
        raise ValueError("above the limit")
    return math.sin(x)

def positive(x):
    assert x > -0.353, "too small"
    return math.sqrt(x + 0.4)
"""


class Exceptions(Construct):
    """`try`, `except`, `else`, `finally`, around statements one of which may raise."""

    header = HEADER

    @classmethod
    def signatures(cls, random: Random, style: Style, known: dict[str, Type]) -> list[Signature]:
        return [({"x": Real(), "k": Integer(0, 3)}, Real())] if random.random() < 0.5 else []

    def compounds(self) -> list[Statement]:
        return [(8.0, self.attempt)] if self.writer.recursion is None else []

    def raising(self) -> tuple[str, str]:
        """A line that may raise, and its exception."""
        w = self.writer
        name = w.pick(RAISED)
        condition = w.comparison()
        options = [
            (f"if {condition}:\n    raise {name}('no')", name),
            (f"if {condition}:\n    raise {name}", name),
            (f"assert {condition}, 'no'", "AssertionError"),
        ]
        target = w.target("real", Real())
        options += [
            (f"{target} = checked({w.real(1)}, {w.constant()})", "ValueError"),
            (f"{target} = positive({w.real(1)})", "AssertionError"),
            (f"{target} = math.sqrt({w.real(1)} + {w.constant()})", "ValueError"),
            (f"{target} = math.log({w.real(1)} + 0.8)", "ValueError"),
        ]
        lists = w.lists()
        if lists:
            options.append((f"{target} = {w.pick(lists)}[{w.integer_within(0, 3)}]", "IndexError"))
        vectors = w.arrays(rank=1)
        if vectors:
            options.append((f"{target} = {w.pick(vectors)}[{w.integer_within(0, 5)}]", "IndexError"))
        counters = [name for name in w.integers() if w.homes.get(name, 0) and name.isidentifier()]
        if counters:
            options.append((f"{target} = {w.real(0)} / ({w.pick(counters)} % 2)", "ZeroDivisionError"))
        text, raised = w.pick(options)
        if text.startswith(f"{target} = ") and target not in w.variables:
            # where the line raises, the name is unbound; otherwise it is forgotten
            w.reserved.add(target)
        return text, raised

    def attempt(self) -> bool:
        w = self.writer
        before = dict(w.variables)
        text, raised = self.raising()
        w.depth += 1
        w.emit("try:")
        with w.indented():
            reached = w.block(w.random.randint(0, 2))
            if reached:
                for line in text.splitlines():
                    w.emit(line)
                reached = w.block(w.random.randint(0, 2))
        # known names keep their types or are forgotten, wherever the body raises
        handled = common(before, w.variables) if reached else before
        scopes = [w.variables] if reached else []
        caught = w.pick((raised, raised, f"({raised}, TypeError)", "Exception", self.parent(raised)))
        w.emit(f"except {caught}{w.pick(('', '', ' as error'))}:")
        w.variables = dict(handled)
        with w.indented():
            if w.block(w.random.randint(1, 2)):
                scopes.append(w.variables)
        if reached and w.chance(0.3):
            w.emit("else:")
            w.variables = scopes.pop(0)
            with w.indented():
                if w.block(w.random.randint(1, 2)):
                    scopes.insert(0, w.variables)
        w.variables = common(*scopes) if scopes else dict(handled)
        if scopes and w.chance(0.25):
            w.emit("finally:")
            w.variables = common(handled, w.variables)
            with w.indented():
                self.last_lines()
        w.depth -= 1
        return bool(scopes)

    def last_lines(self) -> None:
        w = self.writer
        names = [name for name in w.reals() if w.variables[name] == Real() and w.bindable(name, Real())]
        w.emit(f"{w.pick(names)} {w.growth(Real())}" if names else "pass")

    @staticmethod
    def parent(name: str) -> str:
        parents = {"KeyError": "LookupError", "IndexError": "LookupError", "ZeroDivisionError": "ArithmeticError"}
        return parents.get(name, name)
