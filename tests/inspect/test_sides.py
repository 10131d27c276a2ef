"""The two sides: the user's line for each generated line, in the terminal and as data."""

import math
import re

import numpy as np
import pytest

import srcdiff
from srcdiff.api.derivatives import Derivative


def logistic(x, rate, steps):
    for t in range(steps):
        for i in range(len(x)):
            x[i] = rate * x[i] * (1.0 - x[i])
    return np.sum(x)


def helped(x, y):
    s = scaled(x * 3.0)
    return s * y


def scaled(a):
    return math.sin(a) * 2.0


def newton(x):
    y = x
    while abs(y * y - x) > 1e-9:
        y = 0.5 * (y + x / y)
    return y


def text_of(line):
    return "".join(text for _, text in line).strip()


def partners(sides):
    """Pairs of a generated line and its origin, as text."""
    pairs = set()
    for line, link in zip(sides.generated, sides.links, strict=True):
        for piece, number in link:
            pairs.add((text_of(line), text_of(sides.pieces[piece].lines[number - sides.pieces[piece].first])))
    return pairs


def test_generated_lines_are_those_of_the_source_and_know_where_they_come_from():
    derivative = srcdiff.grad(logistic, wrt=("x", "rate"), backend="python").compile(np.ones(3), 2.0, 4)
    sides = srcdiff.show(derivative)

    assert "\n".join("".join(t for _, t in line) for line in sides.generated) + "\n" == derivative.source
    assert partners(sides) >= {
        ("def logistic_grad(x, rate, steps):", "def logistic(x, rate, steps):"),
        ("for t in range(steps):", "for t in range(steps):"),
        ("for t in range(steps - 1, -1, -1):  # for t in range(steps):", "for t in range(steps):"),
        ("x_2[i] = rate * x_1[i] * (1.0 - x_1[i])", "x[i] = rate * x[i] * (1.0 - x[i])"),
        ("x_2 = kept_x[t]", "x[i] = rate * x[i] * (1.0 - x[i])"),
        ("x_bar[i] += 1.0", "return np.sum(x)"),
    }


def test_comments_in_the_source_agree_with_the_links():
    """The emitter's comments name the line that a loop or branch reverses, independently of the links."""
    for function, arguments in ((logistic, (np.ones(3), 2.0, 4)), (newton, (2.0,)), (helped, (1.0, 2.0))):
        sides = srcdiff.show(function, *arguments)
        found = partners(sides)
        for line in map(text_of, sides.generated):
            said = re.search(r":  # (.*)$", line)
            assert said is None or (line, said[1]) in found


def test_lines_that_keep_values_are_marked_on_both_sides():
    sides = srcdiff.show(logistic, wrt="x")
    marked = {text_of(line) for line, keeps in zip(sides.generated, sides.keeps, strict=True) if keeps}

    assert marked == {text_of(line) for line in sides.generated if "kept_x" in text_of(line)}
    ((piece, number),) = [place for place, _ in sides.kept]
    assert (piece, number) == (0, logistic.__code__.co_firstlineno + 3)


def test_stacks_are_marked():
    sides = srcdiff.show(newton)
    marked = [text_of(line) for line, keeps in zip(sides.generated, sides.keeps, strict=True) if keeps]
    assert {"kept_y_top = 0", "kept_y_top += 1", "kept_y_top -= 1"} <= set(marked)


def test_helpers_have_their_own_pieces():
    sides = srcdiff.show(helped, 1.0, 2.0, wrt="x")
    assert [piece.name for piece in sides.pieces] == ["helped", "scaled"]
    assert any(source == "return math.sin(a) * 2.0" for _, source in partners(sides))


def test_lambdas_and_closures_are_shown():
    factor = 3.0
    inner = lambda x: factor * x * x  # noqa: E731 -- lambdas are functions too
    assert any("factor * x * x" in source for _, source in partners(srcdiff.show(inner, 2.0)))

    def closure(x):
        return inner(x) + x

    assert srcdiff.show(closure, 2.0).pieces[0].name == "closure"


def test_text_has_the_users_line_before_the_generated_lines():
    rows = srcdiff.show(logistic, wrt="x").text(width=160).splitlines()
    first = logistic.__code__.co_firstlineno

    assert rows[0].split() == ["logistic", "logistic_value_and_grad"]
    (loop,) = [row for row in rows if "range(steps - 1, -1, -1)" in row]
    assert loop.startswith(f"{first + 1}       for t in range(steps):")
    assert all("* kept" not in row or " * " in row for row in rows)
    assert "\033[" not in "".join(rows)
    assert "\033[" in srcdiff.show(logistic).text(colour=True)


def test_long_lines_of_the_user_are_cut_to_the_width():
    rows = srcdiff.show(logistic, wrt="x").text(width=60).splitlines()
    assert any("…" in row for row in rows)


def test_passes_that_change_something_are_shown_in_order():
    from srcdiff.pipeline import PASSES

    shown = [step.name for step in srcdiff.show(logistic, wrt="x").steps]
    assert "reading" == shown[0]
    assert "reverse sweep" in shown
    assert "forward mode" not in shown
    names = iter(one.name for one in PASSES)
    assert all(name in names for name in shown[1:])  # each search continues after the previous one


@pytest.mark.parametrize(
    "derivative",
    [
        srcdiff.grad(helped, wrt="y", backend="python"),
        srcdiff.hvp(helped, backend="python"),
        Derivative(helped, "forward", 0, backend="python"),
        Derivative(helped, "pullback", 0, with_value=False, backend="python"),
        srcdiff.differentiable(helped),
    ],
)
def test_every_derivative_can_be_shown(derivative):
    sides = srcdiff.show(derivative, 1.0, 2.0)
    assert sides.derivative.startswith("helped_")
    assert sides.pieces[0].name == "helped"


def test_a_derivative_is_a_page_in_a_notebook():
    derivative = srcdiff.grad(helped, backend="python")
    assert "helped_grad" in derivative._repr_html_()
    assert derivative._repr_html_().startswith("<iframe srcdoc=")


@pytest.mark.parametrize("make", [srcdiff.jacobian, srcdiff.hessian, srcdiff.hvp, srcdiff.batched])
def test_composed_derivatives_have_a_page_too(make):
    found = make(helped, backend="python")._repr_html_()

    assert found.startswith("<iframe srcdoc=")
    assert "helped" in found


def test_a_derivative_without_generated_code_has_no_page():
    assert srcdiff.grad(lambda x: input(x))._repr_html_() is None


def test_the_page_is_the_same_every_time():
    assert srcdiff.show(logistic).html() == srcdiff.show(logistic).html()


def pair(x):
    return x * x, np.sin(x)


def test_of_a_function_that_returns_no_float_the_pullback_is_shown():
    assert srcdiff.show(pair, 2.0).derivative == "pair_pullback"
    with pytest.raises(srcdiff.DifferentiationError):
        srcdiff.show(srcdiff.grad(pair), 2.0)
