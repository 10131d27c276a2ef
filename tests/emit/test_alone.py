"""The generated text is self-contained: copied into a file, it runs and gives the same numbers."""

from __future__ import annotations

import builtins
import symtable
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcdiff
from srcdiff.backends.python import interpreter
from tests.numerical import clone, numbers_in
from tests.programs import PROGRAMS, Program
from tests.subset import is_chosen

CHOSEN = [p for p in PROGRAMS if p.at and is_chosen(p.name, 6)]


def undefined_names(text: str) -> set[str]:
    """The names that a text reads, but neither defines nor imports."""
    module = symtable.symtable(text, "text", "exec")
    known = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()} | set(dir(builtins))

    def read(table: symtable.SymbolTable) -> Iterator[str]:
        yield from (s.get_name() for s in table.get_symbols() if s.is_referenced() and s.is_global())
        for child in table.get_children():
            yield from read(child)

    at_top = {s.get_name() for s in module.get_symbols() if s.is_referenced()}
    return {*at_top, *(name for child in module.get_children() for name in read(child))} - known


def in_empty_namespace(text: str, name: str, objects: Any = ()) -> Callable[..., Any]:
    """The function in the text, run as a separate file, and called as the `python` backend calls it."""
    namespace: dict[str, Any] = {"__name__": "m"}
    exec(compile(text, "m.py", "exec"), namespace)
    return interpreter.quiet(namespace[name])


def value_and_bars(program: Program) -> list[Any]:
    """A derivative of a copy of the function, because equal derivatives are shared."""
    given = program.function
    function = types.FunctionType(given.__code__, given.__globals__, given.__name__, given.__defaults__)
    function.__kwdefaults__ = given.__kwdefaults__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a zero gradient gives a warning
        derivative = srcdiff.value_and_grad(function, wrt=program.wrt, backend="python")
        return [list(numbers_in(derivative(*clone(at)))) for at in program.at]


@pytest.mark.parametrize("program", CHOSEN, ids=lambda program: program.name)
def test_text_runs_by_itself(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def load(text: str, name: str, objects: Any) -> Callable[..., Any]:
        texts.append(text)
        return in_empty_namespace(text, name)

    expected = value_and_bars(program)
    monkeypatch.setattr(interpreter, "_interpreted", load)

    np.testing.assert_equal(value_and_bars(program), expected)

    assert [undefined_names(text) for text in texts] == [set()] * len(texts)
    assert texts


# -- the objects that a text uses besides NumPy ------------------------------------------------------------------------


class TooLargeError(Exception):
    """This class can be imported."""


class Names:
    """A scope with another class of the same name."""

    class TooLargeError(Exception):
        """This class can be imported through its outer class."""


class Pair(NamedTuple):
    """A named tuple as a result."""

    first: float
    second: float


def refusing(x: float) -> float:
    if x > 2.0:
        raise TooLargeError(f"{x} is too large")
    if x > 1.0:
        raise Names.TooLargeError("a little too large", x)
    if x < 0.0:
        raise ValueError(f"{x:.2f} is negative")
    return x * x


def printing(x: float) -> float:
    print(f"x is {x:.3f}")
    return x * x


def in_pair(pair: Pair) -> float:
    return pair.first * pair.second


def test_exceptions_of_one_name_are_two_classes() -> None:
    alone = in_empty_namespace(srcdiff.source(refusing, 0.5), "refusing_value_and_grad")

    for function in (alone, srcdiff.value_and_grad(refusing, backend="python"), srcdiff.value_and_grad(refusing)):
        with pytest.raises(TooLargeError, match=r"3\.0 is too large"):
            function(3.0)
        with pytest.raises(Names.TooLargeError, match="a little too large"):
            function(1.5)
        with pytest.raises(ValueError, match=r"-1\.00 is negative"):
            function(-1.0)
        assert function(0.5) == (0.25, 1.0)


def test_text_imports_printing_functions(capsys: pytest.CaptureFixture[str]) -> None:
    alone = in_empty_namespace(srcdiff.source(printing, 0.5), "printing_value_and_grad")

    assert alone(0.5) == (0.25, 1.0)
    assert capsys.readouterr().out == "x is 0.500\n"


def test_text_imports_named_tuples() -> None:
    alone = in_empty_namespace(srcdiff.source(in_pair, Pair(2.0, 3.0)), "in_pair_value_and_grad")

    assert alone(Pair(2.0, 3.0)) == (6.0, Pair(3.0, 2.0))


def test_class_that_no_module_has_is_announced() -> None:
    class LocalError(Exception):
        pass

    def f(x: float) -> float:
        if x < 0.0:
            raise LocalError
        return x * x

    text = srcdiff.source(f, 0.5)

    assert "# `LocalError` is a class that no module has: define it here." in text
    assert undefined_names(text) == {"LocalError"}
    with pytest.raises(LocalError):
        srcdiff.grad(f)(-1.0)


def test_variable_with_the_name_of_a_class_does_not_hide_it() -> None:
    def f(x: float) -> float:
        Trouble = x * x  # noqa: N806
        Trouble = Trouble * Trouble  # noqa: N806
        return checked(Trouble) * Trouble

    gradient = srcdiff.value_and_grad(f, backend="python")

    assert gradient(1.0) == (1.0, 8.0)
    with pytest.raises(Trouble):
        gradient(2.0)


class Trouble(Exception):  # noqa: N818
    """This class has the name of a variable elsewhere."""


def checked(x: float) -> float:
    if x > 3.0:
        raise Trouble("large")
    return x
