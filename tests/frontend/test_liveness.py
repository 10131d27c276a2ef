"""The names assigned in an iteration that a later iteration, or the code after the loop, may read."""

from __future__ import annotations

import ast
import textwrap

import pytest

from srcdiff.frontend.source.liveness import read_after_iterations


def handed_on(text: str) -> list[set[str]]:
    """For each loop in text order, the assigned names that may be read after an iteration."""
    function = ast.parse(textwrap.dedent(text)).body[0]
    assert isinstance(function, ast.FunctionDef)
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found = read_after_iterations(function)
    return [set(found[loop]) & stored for loop in sorted(found, key=lambda loop: loop.lineno)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in a:\n    y = a[i]\n    s = s + y", {"s"}),
        ("for i in a:\n    s = s + y\n    y = i", {"s", "y"}),
        ("for i in a:\n    y = i\ns = y", {"y"}),
        ("for i in a:\n    y = i\ny = 1.0\ns = y", set()),
        ("for i in a:\n    if i:\n        y = i\n    else:\n        y = 2\n    s = s + y", {"s"}),
        ("for i in a:\n    if i:\n        y = i\n    s = s + y", {"s", "y"}),
        (
            "for i in a:\n    if i:\n        continue\n    y = i\nelse:\n    y = 0\ns = y",
            {"y"},
        ),  # as with a `break`
        ("for i in a:\n    y = i\n    if i:\n        break\nelse:\n    y = 0\ns = y", {"y"}),
        ("for i in a:\n    if i:\n        continue\n    y = i\ns = y", {"y"}),
        ("for i in a:\n    y = i\n    g = lambda: y\ns = g()", {"g", "y"}),
        ("for i in a:\n    y = i\n    z = [y for _ in a]\n    s = s + z[0]", {"s"}),
        ("while s < 9:\n    y = s\n    s = s + y", {"s"}),
        ("while (y := s) < 9:\n    s = s + y", {"s", "y"}),
        ("for i in a:\n    y = i\n    a[y] = y", set()),
        ("for i in a:\n    a[y], y = 1, i", {"y"}),
        ("for i in a:\n    y = i\n    y += 1\n    s += y", {"s"}),
    ],
)
def test_names_handed_on(body: str, expected: set[str]) -> None:
    text = f"def f(a, s, y, z, g):\n{textwrap.indent(body, '    ')}\n    return s"

    assert [expected | {"s"}] == [found | {"s"} for found in handed_on(text)]


def test_a_break_in_the_else_of_a_loop_leaves_the_loop_around_it() -> None:
    text = """
        def f(a, y):
            for i in a:
                for j in a:
                    y = j
                else:
                    break
                y = 0
            return y
        """

    assert [{"y"}, {"y"}] == handed_on(text)


def test_names_live_after_an_inner_loop_include_those_of_the_next_outer_iteration() -> None:
    text = """
        def f(a, s):
            for i in a:
                s = w
                for j in a:
                    t = j
                    w = t
            return s
        """

    assert [{"s", "w"}, {"s", "w"}] == handed_on(text)
