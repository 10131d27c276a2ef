"""Functions that take `*args` and `**kwargs`: their parameters are named, and positions are those of arguments."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import srcdiff


def power(x, y=2.0):
    return x**3 * y


def wrapper(*a, **k):
    return power(*a, **k)


@functools.wraps(power)
def decorated(*a, **k):
    return power(*a, **k)


def product(first, *rest, scale=1.0):
    return first * rest[0] ** 2 * rest[1] * scale


MAKERS = [srcdiff.grad, srcdiff.value_and_grad, srcdiff.hessian, srcdiff.hvp, srcdiff.jacobian]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("function", "wrt", "star"),
    [(wrapper, 0, "*a"), (decorated, 0, "*a"), (wrapper, (0, 1), "*a"), (product, 1, "*rest"), (product, -1, "*rest")],
)
def test_positions_of_star_arguments_are_refused(make: Any, function: Any, wrt: Any, star: str) -> None:
    name = star.strip("*")
    with pytest.raises(
        ValueError, match=rf"takes `\*{name}`, so position .* name of a parameter, use '{name}' for all"
    ):
        make(function, wrt, backend="python")


def test_a_named_parameter_with_a_star_has_a_tuple_of_gradients() -> None:
    assert srcdiff.grad(wrapper, "a", backend="python")(3.0, 4.0) == (108.0, 27.0)
    assert srcdiff.grad(wrapper, "a", backend="python")(3.0, y=4.0) == (108.0,)
    assert srcdiff.grad(wrapper, "k", backend="python")(3.0, y=4.0) == {"y": 27.0}
    assert srcdiff.grad(product, ("first", "rest"), backend="python")(2.0, 3.0, 5.0) == (45.0, (60.0, 18.0))


def test_positions_before_a_star_are_those_of_parameters() -> None:
    assert srcdiff.grad(product, backend="python")(2.0, 3.0, 5.0) == 45.0
    assert srcdiff.grad(product, "scale", backend="python")(2.0, 3.0, 5.0, scale=2.0) == 90.0


def test_tangents_and_adjoints_are_those_of_the_arguments() -> None:
    _, tangent = srcdiff.jvp(product, (2.0, 3.0, 5.0), (None, 1.0, None), backend="python")
    _, pullback = srcdiff.vjp(product, 2.0, 3.0, 5.0, backend="python")
    _, of_wrapper = srcdiff.vjp(wrapper, 3.0, 4.0, backend="python")
    _, of_rest = srcdiff.vjp(product, 2.0, 3.0, 5.0, wrt="rest", backend="python")

    assert tangent == 60.0
    assert pullback(1.0) == (45.0, 60.0, 18.0, 90.0)  # the last is that of `scale`
    assert of_wrapper(1.0) == (108.0, 27.0)
    assert of_rest(1.0) == (60.0, 18.0)


def test_arguments_without_floats_have_no_adjoints() -> None:
    def repeated(x, *counts):
        for _ in range(counts[0]):
            x = x * counts[1]
        return x

    _, pullback = srcdiff.vjp(repeated, 2.0, 2, 3, backend="python")

    assert pullback(1.0) == (9.0, None, None)
    assert srcdiff.jvp(repeated, (2.0, 2, 3), (1.0, None, None), backend="python") == (18.0, 9.0)


@pytest.mark.parametrize(("function", "arguments"), [(wrapper, (3.0, 4.0)), (product, (2.0, 3.0, 5.0))])
def test_check_takes_them(function: Any, arguments: tuple[float, ...]) -> None:
    assert f"{len(arguments)} derivatives agree" in str(srcdiff.check(function, *arguments, backend="python"))


def test_explain_and_show_take_them() -> None:
    assert srcdiff.explain(product, 2.0, 3.0, 5.0)["rest"].reaches
    assert "product_value_and_grad" in str(srcdiff.show(product, 2.0, 3.0, 5.0))


def test_positions_inside_are_refused_too() -> None:
    def outer(x):
        return srcdiff.grad(product, 1)(x, x, x)

    with pytest.raises(srcdiff.DifferentiationError, match=r"`product` takes `\*rest`, so position 1"):
        srcdiff.grad(outer, backend="python")(2.0)


def test_a_batch_over_them_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`product` takes `\*rest`"):
        srcdiff.batched(srcdiff.grad(product, backend="python"), over=1)(2.0, np.ones(3), 1.0)


class Line:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def at(self, x, y):
        return self.a * x + self.b * y


def scaled_product(a, b, c, *, k=2.0):
    return a * b**2 * c * k


def optional(a, b=1.0):
    return a * b


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda p: Line(*p).at(2.0, 3.0), [2.0, 3.0]),
        (lambda p: Line(1.0, 2.0).at(*p), [1.0, 2.0]),
        (lambda p: scaled_product(*p, 3.0), [37.5, 45.0]),
        (lambda p: scaled_product(2.0, *p, k=1.0), [2 * 2 * 1.5 * 2.5, 2 * 1.5**2]),
        (lambda p: scaled_product(*p, c=3.0), [37.5, 45.0]),
        (lambda p: (lambda a, b: a * b)(*p), [2.5, 1.5]),
        (lambda p: (lambda a, b: a * b)(*[v * v for v in p]), [2 * 1.5 * 6.25, 2 * 2.5 * 2.25]),
    ],
)
def test_an_array_has_as_many_elements_as_the_function_has_parameters(function, expected):
    assert srcdiff.grad(function, backend="python")(np.array([1.5, 2.5])) == pytest.approx(expected)


def test_another_number_of_elements_raises():
    with pytest.raises(TypeError, match="the call needs 2 elements of `p`"):
        srcdiff.grad(lambda p: Line(*p).at(2.0, 3.0), backend="python")(np.ones(3))


def test_an_array_is_refused_where_several_numbers_are_possible():
    with pytest.raises(srcdiff.DifferentiationError, match="the length of this sequence must be known"):
        srcdiff.grad(lambda p: optional(*p), backend="python")(np.ones(2))
