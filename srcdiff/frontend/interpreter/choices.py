"""One of several functions or objects, by a number known at run time: what is done with it is a branch for each."""

from __future__ import annotations

import ast
from collections.abc import Callable

from srcdiff.frontend.domain.abstract_values import Abstract, Choice, Object, Static
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.forks import branch_on, left_by_branches
from srcdiff.frontend.interpreter.presence import checked


def for_the_chosen(reader: Reader, choice: Choice, do: Callable[[Abstract], Abstract], node: ast.AST) -> Abstract:
    """Do something with the option that is chosen at run time."""
    key = (reader.frame.number, "%choice")

    def side(chosen: Abstract) -> None:
        reader.cells[key] = do(chosen)

    def among(k: int) -> None:
        if k + 1 == len(choice.options):
            side(choice.options[k])
            return
        is_it = reader.apply("equal", choice.number, reader.const(k))
        branch_on(reader, is_it, lambda: side(choice.options[k]), lambda: among(k + 1))

    among(0)
    return checked(reader, left_by_branches(reader, key), "the result", node)


def assign_to_the_chosen(reader: Reader, choice: Choice, assign: Callable[[Object], None], node: ast.AST) -> None:
    """Write to the object that is chosen at run time."""

    def write(chosen: Abstract) -> Abstract:
        assert isinstance(chosen, Object)
        assign(chosen)
        return Static(None)

    for_the_chosen(reader, choice, write, node)
