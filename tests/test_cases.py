"""Programs that are difficult for gradient tapes, with exact answers, on every backend.

The list of complaints in its order, without second derivatives; what can be written with loops and with whole arrays is
here in both ways.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.numerical import gradient

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]
pytestmark = pytest.mark.parametrize("backend", BACKENDS)


def test_values_appended_to_a_list(backend):
    def appended(x):
        y = x * x
        items = []
        items.append(y)
        return x + sum(items)

    assert srcdiff.grad(appended, backend=backend)(1.0) == 3.0


def test_arrays_appended_to_a_list(backend):
    def appended(x, n):
        items = []
        for k in range(n):
            items.append(k * x)
        return np.sum(np.stack(items) ** 2)

    assert srcdiff.grad(appended, backend=backend)(np.array([1.0, 2.0]), 3).tolist() == [10.0, 20.0]


def test_branch_on_a_computed_value_takes_the_side_that_ran(backend):
    def branched(x):
        y = x * x if x > 1.0 else x + 1.0
        return y + x

    derivative = srcdiff.grad(branched, backend=backend)

    assert (5.0, 2.0) == (derivative(2.0), derivative(0.5))


def test_loop_whose_trip_count_depends_on_a_value(backend):
    def squared_until(x):
        n = 0
        while x < 100.0:
            x = x * x
            n += 1
        return x * n

    derivative = srcdiff.grad(squared_until, backend=backend)

    # from 3: three squarings, 3 * x**8; from 11: one, x**2; from 200: none, the factor is zero
    for x, exact in [(3.0, 24.0 * 3.0**7), (11.0, 22.0), (200.0, 0.0)]:
        assert derivative(x) == pytest.approx(exact, rel=1e-14)  # the powers are products of products
        (by_differences,) = gradient(squared_until, (x,), (0,))
        assert abs(derivative(x) - by_differences.value) <= by_differences.tolerance


def test_array_whose_shape_depends_on_a_value(backend):
    def filled(x):
        n = int(x) + 2
        a = np.zeros(n)
        for i in range(n):
            a[i] = x
        total = 0.0
        for i in range(n):
            total += a[i] * a[i]
        return total

    assert srcdiff.grad(filled, backend=backend)(2.5) == 20.0


def test_array_whose_shape_depends_on_a_value_as_a_whole(backend):
    def filled(x):
        n = int(x) + 2
        a = np.zeros(n)
        a[:] = x
        return np.sum(a * a)

    assert srcdiff.grad(filled, backend=backend)(2.5) == 20.0


def test_writes_in_place_after_a_value_was_used(backend):
    def written(x):
        y = x[0]
        x[0] = y * y
        x[1] += x[0]
        return x[0] * x[1]

    x = np.array([2.0, 3.0])

    assert srcdiff.grad(written, backend=backend)(x).tolist() == [44.0, 4.0]
    assert x.tolist() == [2.0, 3.0]


def test_writes_through_a_view(backend):
    def through_a_row(a):
        row = a[1]
        row[0] = a[0, 0] ** 2
        total = 0.0
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                total += a[i, j] * a[i, j]
        return total

    a = np.array([[2.0, 3.0], [5.0, 7.0]])
    found = srcdiff.grad(through_a_row, backend=backend)(a)

    # a00**2 + a01**2 + a00**4 + a11**2
    assert found.tolist() == [[4.0 + 32.0, 6.0], [0.0, 14.0]]
    for got, by_differences in zip(found.ravel(), gradient(through_a_row, (a,), (0,)), strict=True):
        assert abs(got - by_differences.value) <= by_differences.tolerance


def test_writes_through_a_view_of_an_array_that_is_summed_as_a_whole(backend):
    def through_a_row(a):
        row = a[1]
        row[0] = a[0, 0] ** 2
        return np.sum(a * a)

    a = np.array([[2.0, 3.0], [5.0, 7.0]])
    found = srcdiff.grad(through_a_row, backend=backend)(a)

    assert found.tolist() == [[4.0 + 32.0, 6.0], [0.0, 14.0]]
    assert a.tolist() == [[2.0, 3.0], [5.0, 7.0]]
    for got, by_differences in zip(found.ravel(), gradient(through_a_row, (a,), (0,)), strict=True):
        assert abs(got - by_differences.value) <= by_differences.tolerance


def cube_adjoint(x, out, out_bar):
    return 3.0 * x * x * out_bar


@srcdiff.custom_rule(adjoint=cube_adjoint)
def cube(x):
    return x**3


def doubled(x):
    return 2.0 * x


def test_helper_with_a_rule_has_the_gradient_that_is_given(backend):
    assert srcdiff.grad(lambda x: 2.0 * cube(x), backend=backend)(2.0) == 24.0


def normalised_adjoint(x, out, out_bar):
    return (out_bar - out * np.sum(out * out_bar)) / np.sqrt(np.sum(x * x))


@srcdiff.custom_rule(adjoint=normalised_adjoint)
def normalised(x):
    return x / np.sqrt(np.sum(x * x))


def test_helper_of_arrays_with_a_rule_has_the_gradient_that_is_given(backend):
    def along(x, direction):
        return np.sum(normalised(x) * direction)

    found = srcdiff.grad(along, backend=backend)(np.array([3.0, 4.0]), np.array([1.0, 0.0]))

    # d/dx of x0 / |x|: (x1**2, -x0 * x1) / |x|**3
    assert found == pytest.approx(np.array([16.0, -12.0]) / 125.0, rel=1e-14)  # rounding of the quotients


def test_helper_with_source_is_followed(backend):
    assert srcdiff.grad(lambda x: doubled(x) * doubled(x), backend=backend)(2.0) == 16.0


def test_helper_without_source_or_rule_is_refused_with_its_name_and_line(backend):
    namespace: dict[str, Any] = {}
    exec("def hidden(x):\n    return x * x\n", namespace)
    hidden = namespace["hidden"]

    def calls_hidden(x):
        return hidden(x) + x

    with pytest.raises(srcdiff.DifferentiationError) as caught:
        srcdiff.grad(calls_hidden, backend=backend)(2.0)

    (problem,) = caught.value.problems
    assert problem.span is not None
    assert problem.span.text.strip() == "return hidden(x) + x"
    assert "hidden" in problem.message


def test_unused_argument_has_zeros_and_a_warning_with_its_name(backend):
    derivative = srcdiff.grad(lambda x, unused: x * x, wrt="unused", backend=backend)

    with pytest.warns(srcdiff.ZeroGradientWarning, match="`unused` is zero: it is not used"):
        found = derivative(2.0, np.ones(2))

    assert isinstance(found, np.ndarray)
    assert found.tolist() == [0.0, 0.0]


OFFSET = 3.0


def test_what_is_read_from_outside_is_a_constant(backend):
    assert srcdiff.value_and_grad(lambda x: x * OFFSET + OFFSET, backend=backend)(2.0) == (9.0, 3.0)


@pytest.mark.parametrize(("cut", "named"), [(lambda x: 2.0 * int(x), "int"), (lambda x: 2.0 * round(x), "rounding")])
def test_cast_and_round_give_zero_and_a_warning_with_the_line(cut, named, backend):
    derivative = srcdiff.grad(cut, backend=backend)

    with pytest.warns(srcdiff.ZeroGradientWarning, match=f"{named}.* in line {cut.__code__.co_firstlineno}"):
        found = derivative(2.4)

    assert found == 0.0


@pytest.mark.parametrize(
    ("cut", "named"),
    [
        (lambda x: np.sum(2.0 * np.round(x)), "rounding"),
        (lambda x: np.sum(2.0 * x.astype(np.int64)), "int"),
        (lambda x: 2.0 * np.argmax(x), "a comparison"),
    ],
)
def test_cast_and_round_of_arrays_give_zeros_and_a_warning_with_the_line(cut, named, backend):
    derivative = srcdiff.grad(cut, backend=backend)

    with pytest.warns(srcdiff.ZeroGradientWarning, match=f"{named}.* in line {cut.__code__.co_firstlineno}"):
        found = derivative(np.array([2.4, 1.5]))

    assert found.tolist() == [0.0, 0.0]


def test_masking_by_a_condition(backend):
    def masked(w, mask):
        total = 0.0
        for i in range(len(w)):
            if mask[i]:
                total += w[i]
        return total

    found = srcdiff.grad(masked, backend=backend)(np.array([1.0, 2.0, 3.0]), np.array([False, True, False]))

    assert found.tolist() == [0.0, 1.0, 0.0]


def test_boolean_indexing(backend):
    found = srcdiff.grad(lambda w, mask: np.sum(w[mask]), backend=backend)

    assert found(np.array([1.0, 2.0, 3.0]), np.array([False, True, False])).tolist() == [0.0, 1.0, 0.0]
    two = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert found(two, two > 2.5).tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert found(two, np.array([True, False])).tolist() == [[1.0, 1.0], [0.0, 0.0]]


def squares_with_masked_replaced(w, mask, v):
    w[mask] = v
    return np.sum(w * w)


def test_boolean_indexing_as_the_target_of_a_number(backend):
    derivative = srcdiff.grad(squares_with_masked_replaced, wrt=("w", "v"), backend=backend)

    w_bar, v_bar = derivative(np.array([1.0, 2.0, 3.0]), np.array([False, True, False]), 5.0)
    assert (w_bar.tolist(), v_bar) == ([2.0, 0.0, 6.0], 10.0)
    w_bar, v_bar = derivative(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[False, True], [True, False]]), 5.0)
    assert (w_bar.tolist(), v_bar) == ([[2.0, 0.0], [0.0, 8.0]], 20.0)


def test_boolean_indexing_as_the_target_of_an_array(backend):
    derivative = srcdiff.grad(squares_with_masked_replaced, wrt=("w", "v"), backend=backend)

    w_bar, v_bar = derivative(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]), np.array([5.0, 7.0]))
    assert (w_bar.tolist(), v_bar.tolist()) == ([0.0, 4.0, 0.0], [10.0, 14.0])
    mask = np.array([[False, True], [True, False]])
    w_bar, v_bar = derivative(np.array([[1.0, 2.0], [3.0, 4.0]]), mask, np.array([5.0, 7.0]))
    assert (w_bar.tolist(), v_bar.tolist()) == ([[2.0, 0.0], [0.0, 8.0]], [10.0, 14.0])


@pytest.mark.parametrize("w", [np.array([1.0, -2.0, 3.0]), np.array([[1.0, -2.0], [-3.0, 4.0]])])
def test_boolean_indexing_with_augmented_assignment(w, backend):
    def doubled_where_positive(w):
        w[w > 0] *= 2
        return np.sum(w * w)

    before = w.copy()
    found = srcdiff.grad(doubled_where_positive, backend=backend)(w)

    assert found.tolist() == np.where(w > 0.0, 8.0 * w, 2.0 * w).tolist()
    assert w.tolist() == before.tolist()


def test_masking_by_multiplication(backend):
    def weighted(w, x):
        total = 0.0
        for i in range(len(w)):
            total += w[i] * x[i]
        return total

    x = np.array([0.0, 1.0, 0.5])

    assert srcdiff.grad(weighted, backend=backend)(np.array([1.0, 2.0, 3.0]), x).tolist() == x.tolist()


def test_masking_by_multiplication_of_whole_arrays(backend):
    x = np.array([0.0, 1.0, 0.5])

    found = srcdiff.grad(lambda w, x: np.sum(w * x), backend=backend)(np.array([1.0, 2.0, 3.0]), x)

    assert found.tolist() == x.tolist()


def test_derivative_is_a_function_that_can_be_called_as_often_as_you_like(backend):
    derivative = srcdiff.grad(lambda x: x * x * x, backend=backend)

    assert [3.0 * x * x for x in range(100)] == [derivative(float(x)) for x in range(100)]


def test_derivative_with_respect_to_an_argument_that_is_used_twice(backend):
    def summed(x):
        y = x**2
        z = y + x
        return z

    assert srcdiff.grad(summed, backend=backend)(2.0) == 5.0


def test_linear_regression_that_fits_exactly_has_no_gradient(backend):
    def mean_squared_error(w, b, x, y):
        total = 0.0
        for i in range(len(x)):
            total += (w * x[i] + b - y[i]) ** 2
        return total / len(x)

    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 5.0, 7.0, 9.0])

    assert srcdiff.grad(mean_squared_error, wrt=("w", "b"), backend=backend)(2.0, 1.0, x, y) == (0.0, 0.0)


def test_linear_regression_of_whole_arrays_that_fits_exactly_has_no_gradient(backend):
    def mean_squared_error(w, b, x, y):
        return np.mean((w * x + b - y) ** 2)

    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 5.0, 7.0, 9.0])

    assert srcdiff.grad(mean_squared_error, wrt=("w", "b"), backend=backend)(2.0, 1.0, x, y) == (0.0, 0.0)


def test_prints_to_debug_work(backend, capfd):
    def shows(x):
        print("x is", x)
        return x * x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = srcdiff.grad(shows, backend=backend)(2.0)

    assert found == 4.0
    assert capfd.readouterr().out == "x is 2.0\n"


def test_prints_of_arrays_to_debug_work(backend, capfd):
    def shows(x):
        y = x * x
        print("y is", y)
        return np.sum(y)

    assert srcdiff.grad(shows, backend=backend)(np.array([1.5, 2.0])).tolist() == [3.0, 4.0]
    assert capfd.readouterr().out == "y is [2.25 4.  ]\n"


def twice_the_square(x):
    y = x * x
    return y + x * x


def test_derivative_with_respect_to_an_intermediate_value_is_that_of_its_own_uses(backend: str) -> None:
    assert 1.0 == srcdiff.grad(twice_the_square, wrt="y", backend=backend)(2.0)
    assert (8.0, 1.0) == srcdiff.grad(twice_the_square, wrt=("x", "y"), backend=backend)(2.0)
