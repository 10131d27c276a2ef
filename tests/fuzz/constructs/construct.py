"""The interface of a kind of construct in random programs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from tests.fuzz.kinds import Expression, Style, Type

if TYPE_CHECKING:
    from tests.fuzz.writer import Writer

Statement = tuple[float, Callable[[], "bool | None"]]
Leaf = tuple[float, Callable[[], Expression]]
Operation = tuple[float, Callable[[int], Expression]]

#: A function that the program can call: its parameters and its result.
Signature = tuple[dict[str, Type], "Type | None"]


class Construct:
    """A kind of construct in one function that is being written. Class methods concern the whole program."""

    header = ""  # lines of the module: imports, and functions that the construct uses

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    @classmethod
    def declare(cls, random: Random, style: Style, write: type[Writer]) -> tuple[list[str], dict[str, Type]]:
        """Definitions of the module, such as classes, and the names that they define for all functions."""
        return [], {}

    @classmethod
    def signatures(cls, random: Random, style: Style, known: dict[str, Type]) -> list[Signature]:
        """Functions with random bodies."""
        return []

    @classmethod
    def parameters(cls, random: Random, style: Style, known: dict[str, Type]) -> dict[str, Type]:
        """Arguments of the program."""
        return {}

    def begin(self) -> None:
        """The first statements of the program."""

    def statements(self) -> list[Statement]:
        """Statements that can be written here, with their weights."""
        return []

    def compounds(self) -> list[Statement]:
        """Statements that contain others."""
        return []

    def leaves(self) -> list[Leaf]:
        """Expressions for a real number that contain no other expressions."""
        return []

    def expressions(self) -> list[Operation]:
        """Expressions for a real number, with this depth of subexpressions."""
        return []

    def value(self, kind: Type) -> str | None:
        """An expression of a type that belongs to this construct, otherwise None."""
        return None

    def terms(self) -> list[str]:
        """Terms for the result of the program, so that it depends on most values."""
        return []
