"""Forward and reverse mode against each other: every program of the corpus, and all forms of arguments and results.

The two modes share the rules but not the way through the program, and agree to rounding, which no difference quotient
does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.arrays.programs import PROGRAMS as ARRAY_PROGRAMS
from tests.arrays.rows import Row
from tests.numerical import clone, numbers_in
from tests.programs import PROGRAMS, Program

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]

#: How far two orders of evaluation may be apart, relative to the largest of the terms that are added up.
AGREE = {False: 1e-10, True: 1e-4}


def direction(value: Any, random: np.random.Generator) -> Any:
    """A tangent for an argument."""
    if isinstance(value, np.ndarray):
        return random.standard_normal(value.shape).astype(value.dtype)
    if isinstance(value, tuple | list):
        items = [direction(item, random) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return float(random.standard_normal())


def along(bars: Any, dots: Any) -> tuple[float, float]:
    """The sum of the products of all numbers, and the sum of their sizes."""
    terms = [a * b for a, b in zip(numbers_in(bars), numbers_in(dots), strict=True)]
    return float(sum(terms)), float(sum(abs(t) for t in terms))


def quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a gradient that is zero by nature is announced; here it is compared
        return function(*arguments)


@pytest.mark.parametrize("program", [*PROGRAMS, *ARRAY_PROGRAMS], ids=lambda program: program.name)
def test_forward_agrees_with_reverse(program: Program | Row, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(7)
    for arguments in program.at:
        gradient = srcdiff.grad(program.function, wrt=program.wrt, backend="python")
        bars = quietly(gradient, *clone(arguments))
        dots = tuple(direction(arguments[k], random) for k in program.wrt)
        tangents = [dots[program.wrt.index(k)] if k in program.wrt else None for k in range(len(arguments))]

        value, tangent = srcdiff.jvp(program.function, clone(arguments), tangents, backend="python")

        if isinstance(tangent, tuple):  # the program also writes into an argument
            value, tangent = value[0], tangent[0]
        expected, scale = along(bars, dots)
        assert value == pytest.approx(program.function(*clone(arguments)), rel=1e-4)
        assert abs(tangent - expected) <= AGREE[program.single_precision] * max(1.0, scale), arguments


# ------------------------------------------------------------------------------------------- arguments and results


def pair(x, a):
    """Two results, an array and a number."""
    b = a * x
    for i in range(1, len(b)):
        b[i] += np.sin(b[i - 1]) * x
    return b, x * x


def write_squares(out, x):
    """Writes its result into an argument, of which it reads what was there."""
    for i in range(len(x)):
        out[i] = out[i] * x[i] ** 2


def squares_of(xs):
    """A list for a list."""
    ys = [x * x for x in xs]
    ys.append(2.0)
    return ys


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_without_tangent_is_constant(backend: str) -> None:
    a = np.arange(3.0)

    (_, square), (b_dot, square_dot) = srcdiff.jvp(pair, (1.5, a), (None, np.ones(3)), backend=backend)

    assert square == 2.25
    assert square_dot == 0.0
    assert b_dot[0] == 1.5


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pullback_is_the_transpose_of_the_tangent(backend: str) -> None:
    random = np.random.default_rng(3)
    a, a_dot, b_bar = (random.standard_normal(4) for _ in range(3))

    _, (b_dot, square_dot) = srcdiff.jvp(pair, (1.5, a), (0.3, a_dot), backend=backend)
    _, pullback = srcdiff.vjp(pair, 1.5, a, backend=backend)
    x_bar, a_bar = pullback((b_bar, 0.7))

    np.testing.assert_allclose(b_bar @ b_dot + 0.7 * square_dot, 0.3 * x_bar + a_bar @ a_dot, rtol=1e-13)
    assert pullback((None, 1.0))[0] == 3.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_written_into_arguments_is_a_result(backend: str) -> None:
    out, x = np.array([3.0, 4.0]), np.array([1.0, 2.0])

    value, tangent = srcdiff.jvp(write_squares, (out, x), (None, np.ones(2)), backend=backend)
    same_value, pullback = srcdiff.vjp(write_squares, out, x, backend=backend)
    out_bar, x_bar = pullback(out=np.ones(2))

    assert out.tolist() == [3.0, 4.0]
    assert value["out"].tolist() == same_value["out"].tolist() == [3.0, 16.0]
    assert tangent["out"].tolist() == x_bar.tolist() == [6.0, 16.0]
    assert out_bar.tolist() == [1.0, 4.0]
    with pytest.raises(TypeError, match="does not write into x: it writes into out"):
        pullback(x=np.ones(2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_have_lists_as_tangents(backend: str) -> None:
    assert srcdiff.jvp(squares_of, ([1.0, 3.0],), ([1.0, 2.0],), backend=backend) == (
        [1.0, 9.0, 2.0],
        [2.0, 12.0, 0.0],
    )
    assert srcdiff.vjp(squares_of, [1.0, 3.0], backend=backend)[1]([1.0, 1.0, 1.0]) == ([2.0, 6.0],)


def test_a_tangent_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a_dot has the shape \(2,\), its value \(3,\)"):
        srcdiff.jvp(pair, (1.0, np.ones(3)), (1.0, np.ones(2)), backend="python")
