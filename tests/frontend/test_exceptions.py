"""`try`: caught exceptions, the tests that predict them, and refusals. tests/programs.py has more programs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import srcdiff


def quotient(x: Any, y: Any) -> Any:
    try:
        return x / y
    except ZeroDivisionError:
        return 3.0 * x


def element(x: Any, k: int) -> Any:
    try:
        return x[k] ** 2
    except IndexError:
        return x[0] * x[-1]


def power(x: Any, y: Any) -> Any:
    try:
        return x**y
    except ZeroDivisionError:
        return 2.0 * x
    except OverflowError:
        return 3.0 * x


def whole(x: Any) -> Any:
    try:
        return int(x) * x
    except (ValueError, OverflowError):
        return -1.0


def exponential(x: Any) -> Any:
    try:
        return math.exp(x)
    except OverflowError:
        return x


def gamma(x: Any) -> Any:
    try:
        return math.gamma(x) + math.lgamma(x)
    except ValueError:
        return x
    except OverflowError:
        return 2.0 * x


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (quotient, (2.0, 4.0), 0.25),
        (quotient, (2.0, 0.0), 3.0),
        (quotient, (2.0, -0.0), 3.0),
        (quotient, (2.0, math.nan), math.nan),
        (power, (2.0, 3.0), 12.0),
        (power, (0.0, -3.0), 2.0),
        (power, (10.0, 500.0), 3.0),
        (power, (math.inf, 2.0), math.inf),
        (whole, (2.5,), 2.0),
        (whole, (math.inf,), 0.0),
        (whole, (math.nan,), 0.0),
        (exponential, (709.0,), math.exp(709.0)),
        (exponential, (710.0,), 1.0),
        (exponential, (-math.inf,), 0.0),
        (gamma, (0.0,), 1.0),
        (gamma, (-3.0,), 1.0),
        (gamma, (180.0,), 2.0),
    ],
)
def test_the_exceptional_value_is_foreseen(
    function: Callable[..., Any], arguments: tuple[float, ...], expected: float
) -> None:
    value, gradient = srcdiff.value_and_grad(function, backend="python")(*arguments)

    assert np.array_equal(value, function(*arguments), equal_nan=True)
    assert gradient == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("k", [-4, -3, 0, 2, 3, 100])
def test_an_index_is_foreseen(k: int) -> None:
    x = np.array([1.0, 2.0, 3.0])

    assert srcdiff.value_and_grad(element, backend="python")(x, k)[0] == element(x, k)
    srcdiff.check(element, x, k, backend="python")


def test_numbers_of_numpy_do_not_raise_at_a_division() -> None:
    with np.errstate(all="ignore"):
        value, gradient = srcdiff.value_and_grad(quotient, backend="python")(np.float64(2.0), np.float64(0.0))

    assert value == math.inf
    assert gradient == math.inf


def test_python_and_numpy_numbers_are_told_apart_from_call_to_call() -> None:
    for backend in ("python", "numba"):
        gradient = srcdiff.grad(quotient, backend=backend)

        with np.errstate(all="ignore"):
            found = [gradient(2.0, 0.0), gradient(np.float64(2.0), np.float64(0.0)), gradient(2.0, 0.0)]

        assert found == [3.0, math.inf, 3.0]


def test_exceptions_that_a_try_does_not_name_are_raised() -> None:
    def function(x: float) -> float:
        try:
            if x > 1.0:
                raise KeyError("large")
        except ValueError:
            return x
        return x * x

    gradient = srcdiff.grad(function, backend="python")

    assert gradient(0.5) == 1.0
    with pytest.raises(KeyError):
        gradient(2.0)


def test_the_text_of_an_exception_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def function(x: float) -> float:
        try:
            if x > 1.0:
                raise ValueError(f"{x} is too large")
        except ValueError as error:
            print("note:", error)
        return x * x

    assert srcdiff.grad(function, backend="python")(2.0) == 4.0
    assert capsys.readouterr().out == "note: 2.0 is too large\n"


def test_an_exception_that_is_raised_again_keeps_its_text() -> None:
    def function(x: float) -> float:
        try:
            if x > 1.0:
                raise ValueError(f"{x} is too large")
        except ValueError:
            x = 3.0 * x
            raise
        return x * x

    with pytest.raises(ValueError, match=r"^2.0 is too large$"):
        srcdiff.grad(function, backend="python")(2.0)


def test_names_that_the_handler_sees_are_those_at_the_place_that_raised() -> None:
    def function(x: float) -> float:
        y = x
        out = np.zeros(3)
        try:
            y = x * x
            out[0] = y
            if y > 2.0:
                raise ValueError
            y = x * x * x
            out[1] = y
        except ValueError:
            out[2] = 2.0 * y
        return y + out[0] + 10.0 * out[1] + 100.0 * out[2]

    for x in (0.5, 1.2, 2.0):
        srcdiff.check(function, x, backend="python")


def test_a_name_that_is_not_assigned_raises_in_the_handler() -> None:
    def function(x: float) -> float:
        try:
            if x > 1.0:
                raise ValueError
            y = x * x
        except ValueError:
            x = 2.0 * x
        return x * y

    gradient = srcdiff.grad(function, backend="python")

    assert gradient(0.5) == pytest.approx(0.75)
    with pytest.raises(UnboundLocalError):
        gradient(2.0)


def test_a_try_in_a_compiled_function_catches() -> None:
    @numba.njit
    def function(x: float) -> float:
        try:
            if x > 1.0:
                raise ValueError("large")
            y = x * x
        except Exception:
            y = 3.0 * x
        return y

    for x in (0.5, 2.0):
        srcdiff.check(function, x)


@pytest.mark.parametrize("mode", ["hessian", "batched", "jvp"])
def test_modes(mode: str) -> None:
    def function(x: Any) -> Any:
        try:
            return math.log(x) ** 2
        except ValueError:
            return x**3

    if mode == "hessian":
        second = srcdiff.grad(srcdiff.grad(function, backend="python"), backend="python")
        assert second(-2.0) == pytest.approx(-12.0)
        assert second(2.0) == pytest.approx((2.0 - 2.0 * math.log(2.0)) / 4.0)
    elif mode == "batched":
        found = srcdiff.batched(srcdiff.grad(function, backend="python"))(np.array([2.0, -2.0]))
        assert found == pytest.approx([math.log(2.0), 12.0])
    else:
        assert srcdiff.jvp(function, (-2.0,), (1.0,), backend="python")[1] == pytest.approx(12.0)


def eigenvalues(a: Any) -> Any:
    try:
        return np.sum(np.linalg.eigh(a)[0])
    except np.linalg.LinAlgError:
        return a[0, 0]


def chosen(x: Any) -> Any:
    try:
        return np.sum(x[np.array([0, 1])])
    except IndexError:
        return x[0]


def unclear(x: Any, n: int) -> Any:
    s = 1.0 if n > 1 else x[0]
    try:
        return x[1] * (1.0 / s)
    except ZeroDivisionError:
        return x[0]


def leaves_in_finally(x: Any) -> Any:
    try:
        return x * x
    finally:
        return x  # noqa: B012


def countdown(x: Any, n: int) -> Any:
    if n == 0:
        raise ValueError("never")
    return x * countdown(x, n - 1) if n > 1 else x


def recursive(x: Any, n: int) -> Any:
    try:
        return countdown(x, n)
    except ValueError:
        return x


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (eigenvalues, (np.eye(2),), "which no test can predict"),
        (chosen, (np.ones(3),), "which an array of indices may raise"),
        (unclear, (np.ones(3), 1), "Python's numbers or NumPy's"),
        (leaves_in_finally, (1.5,), "`return` in `finally` is not supported"),
        (recursive, (1.5, 3), "a recursive function is called in a `try`"),
    ],
)
def test_a_try_that_no_test_can_predict_is_refused(
    function: Callable[..., Any], arguments: tuple[Any, ...], words: str
) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=words):
        srcdiff.grad(function, backend="python")(*arguments)


def divided_by_an_item(x: Any, how: str) -> Any:
    value = float(x[1]) if how == "float" else x[1].item()
    try:
        return 1.0 / value
    except ZeroDivisionError:
        return x[0] ** 2


def read_elsewhere(x: Any) -> Any:
    return float(x[1])


def divided_by_what_a_helper_reads(x: Any, _: str) -> Any:
    total = 0.0
    value = read_elsewhere(x)
    for _ in range(2):
        try:
            total += 1.0 / value
        except ZeroDivisionError:
            total += x[0]
    return total


@pytest.mark.parametrize(
    ("function", "how", "expected"),
    [
        (divided_by_an_item, "float", 4.0),
        (divided_by_an_item, "item", 4.0),
        (divided_by_what_a_helper_reads, "", 2.0),
    ],
)
def test_elements_that_are_converted_to_floats_of_python_divide_as_these(
    function: Callable[..., Any], how: str, expected: float
) -> None:
    x = np.array([2.0, 0.0])
    value, gradient = srcdiff.value_and_grad(function, backend="python")(x, how)
    assert value == function(x, how)
    assert [expected, 0.0] == gradient.tolist()


def adds_a_row_in_try(a):
    for k in range(2):
        try:
            a[:, k] += np.sin(a[0:1, 0])
            root = math.sqrt(a[0, 0])
        except ValueError:
            root = 0.0
    return np.sum(a) + root


def broadcasts_in_try(a):
    try:
        rows = a * a[:1] + a[:, :1]
    except ValueError:
        return np.sum(a)
    return np.sum(rows * rows)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("function", [adds_a_row_in_try, broadcasts_in_try])
def test_axes_of_length_one_are_broadcast_where_a_value_error_is_caught(function, sign):
    a = sign * np.array([[0.4, 0.8], [1.5, 1.4]])
    value, gradient = srcdiff.value_and_grad(function, backend="python")(a)
    assert value == pytest.approx(function(a.copy()), rel=1e-14)
    direction = np.array([[0.3, -1.0], [0.5, 0.2]])
    slope = (function(a + 1e-6 * direction) - function(a - 1e-6 * direction)) / 2e-6
    assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-6)


def test_squeeze_of_an_unknown_axis_is_refused_where_a_value_error_is_caught():
    def f(a):
        try:
            b = np.squeeze(a)
        except ValueError:
            return 0.0
        return np.sum(b)

    with pytest.raises(srcdiff.DifferentiationError, match="whether an axis has length one"):
        srcdiff.grad(f, backend="python")(np.ones((2, 2)))
