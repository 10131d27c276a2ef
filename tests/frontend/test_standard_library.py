"""The standard library: values of its functions at the edges of their domains, and refusals."""

# Written as users write.
# ruff: noqa: B905, F507, RUF005, UP031

from __future__ import annotations

import bisect
import functools
import importlib
import itertools
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import srcdiff

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


def same_numbers(first: Any, second: Any) -> bool:
    """Equality, including the sign of zero and NaN."""
    return repr(first) == repr(second)


# ------------------------------------------------------------------------------------------------------------ `math`


def parts(x):
    return (*math.frexp(x), *math.modf(x), math.ulp(x))


def rest(x, y):
    return math.remainder(x, y)


def close(x, y):
    return 1.0 if math.isclose(x, y) else 0.0


def root(x, n):
    return x * math.isqrt(n)


NUMBERS = [0.0, -0.0, 1.0, -2.0, 0.5, 2.75, -1e300, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308]


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_of_numbers_are_those_of_math(backend: str) -> None:
    compiled = srcdiff.differentiable(backend=backend, fastmath=False)(parts)

    for x in [*NUMBERS, math.inf, -math.inf, math.nan]:
        assert same_numbers(parts(x), tuple(v.item() if isinstance(v, np.generic) else v for v in compiled(x))), x


@pytest.mark.parametrize("backend", BACKENDS)
def test_nearest_remainders_are_those_of_math(backend: str) -> None:
    compiled = srcdiff.differentiable(backend=backend, fastmath=False)(rest)

    for x in [0.0, -0.0, 1.0, 1.5, 2.5, 3.5, -2.5, 1e300, 7.3]:
        for y in [1.0, -1.0, 3.0, 0.7, math.inf, 1e-3]:
            assert same_numbers(rest(x, y), float(compiled(x, y))), (x, y)


def sums_of_products(x, y):
    return math.sumprod(x, y) ** 2 + math.sumprod([x[0], 2.0], (3, y[1])) + math.sumprod(x[:0], y[:0])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="`math.sumprod` is new in Python 3.12")
@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_of_products_are_those_of_math(backend: str) -> None:
    derivative = srcdiff.value_and_grad(sums_of_products, wrt=(0, 1), backend=backend)
    x, y = np.array([0.5, -2.0, 3.0]), np.array([1.5, 0.25, 4.0])

    value, (x_bar, y_bar) = derivative(x, y)

    assert sums_of_products(x, y) == pytest.approx(value, rel=1e-15)
    np.testing.assert_allclose(x_bar, 2.0 * (x @ y) * y + np.array([3.0, 0.0, 0.0]), rtol=1e-15)
    np.testing.assert_allclose(y_bar, 2.0 * (x @ y) * x + np.array([0.0, 2.0, 0.0]), rtol=1e-15)
    with pytest.raises(ValueError, match="same length"):
        derivative(x, y[:2])


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_are_as_close_as_math_says(backend: str) -> None:
    compiled = srcdiff.differentiable(backend=backend, fastmath=False)(close)

    for x in [*NUMBERS, math.inf, -math.inf, math.nan]:
        for y in [x, x * (1 + 1e-10), x * (1 + 1e-8), math.inf, math.nan, 0.0]:
            assert close(x, y) == compiled(x, y), (x, y)


@pytest.mark.parametrize("backend", BACKENDS)
def test_roots_of_large_whole_numbers_are_exact(backend: str) -> None:
    compiled = srcdiff.differentiable(backend=backend, fastmath=False)(root)

    for r in [0, 1, 2, 94906265, 94906267, 3037000498, 3037000499]:
        for n in (r * r, r * r + 1, abs(r * r - 1)):
            assert math.isqrt(n) == compiled(1.0, n), n
    assert math.isqrt(2**63 - 1) == compiled(1.0, 2**63 - 1)


def large(x, n):
    return x * math.factorial(n)


def choices(x, n, k):
    return x * math.comb(n, k)


@pytest.mark.parametrize("backend", BACKENDS)
def test_whole_numbers_of_more_than_64_bits_raise(backend: str) -> None:
    assert srcdiff.grad(large, backend=backend)(1.0, 20) == math.factorial(20)
    assert srcdiff.grad(choices, backend=backend)(1.0, 66, 33) == float(math.comb(66, 33))
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        srcdiff.grad(large, backend=backend)(1.0, 21)
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        srcdiff.grad(choices, backend=backend)(1.0, 67, 33)


# ------------------------------------------------------------------------------------------------------- iterators

A = np.array([0.3, -0.5, 0.8])


def twice(items):
    return sum(items) + sum(items)


def map_with_a_name(a):
    sines = map(math.sin, a)
    return sum(sines) + sum(sines)


def map_passed_on(a):
    return twice(map(math.sin, a))


def map_in_a_tuple(a):
    pair = (map(math.sin, a), 1.0)
    return sum(pair[0]) + sum(pair[0])


def map_beside_another(a):
    return sum([v * w for v, w in zip(map(math.sin, a), filter(None, a))])


def map_that_is_returned(a):
    return map(math.sin, a)


def length_of_a_filter(a):
    return a[0] * len(filter(None, a))


def numpy_of_a_map(a):
    return np.sum(map(math.sin, a))


def combinations_with_a_name(a):
    pairs = itertools.combinations(range(3), 2)
    return sum(a[i] * a[j] for i, j in pairs) + sum(a[i] for i, j in pairs)


def reduced_map(a):
    seen = []

    def noted(v):
        seen.append(v)
        return v

    functools.reduce(lambda s, v: noted(s + v), map(noted, a))
    return seen[1]


def best_of_a_map(a):
    seen = []

    def noted(v):
        seen.append(v * v)
        return v * v

    return max(map(noted, a), key=lambda v: len(seen) * v)


ITERATORS = [
    reduced_map,
    best_of_a_map,
    map_with_a_name,
    map_passed_on,
    map_in_a_tuple,
    map_beside_another,
    map_that_is_returned,
    length_of_a_filter,
    numpy_of_a_map,
    combinations_with_a_name,
]


@pytest.mark.parametrize("function", ITERATORS)
def test_an_iterator_that_is_consumed_later_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="is an iterator, but a value is needed here") as caught:
        srcdiff.grad(function, backend="python")(A)

    assert "convert it to a list: `list(...)`" in str(caught.value)


def chain_that_changes(a):
    total = 0.0
    for v in itertools.chain(a, [1.0]):
        a[2] = v
        total += v * v
    return total


def pairs_that_change(a):
    values = list(a)
    for v, w in itertools.pairwise(values):
        values[2] = v * w
    return values[2]


def changed_by_a_function(a):
    def shifted(v):
        a[1] += v
        return v

    return sum([shifted(v) for v in itertools.accumulate(a)])


@pytest.mark.parametrize("function", [chain_that_changes, pairs_that_change, changed_by_a_function])
def test_sources_of_a_lazy_iterator_must_not_change(function: Callable[..., Any]) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="changes while it is iterated"):
        srcdiff.grad(function, backend="python")(A)


def blended(x, y):
    return 0.5 * x + y


@pytest.mark.parametrize("function", [blended, lambda x, y: 0.5 * x + y])
def test_accumulate_calls_no_function_of_the_users_between_the_iterations(function: Callable[..., Any]) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="`accumulate` with a custom function is not supported"):
        srcdiff.grad(lambda a: sum(itertools.accumulate(a, function)), backend="python")(A)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_list_with_nan_has_no_order(backend: str) -> None:
    with pytest.raises(ValueError, match="contains NaN cannot be ordered"):
        srcdiff.grad(lambda a: sorted(a)[0], backend=backend)(np.array([0.3, np.nan, 0.1]))


def test_default_beside_several_arguments_is_refused() -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="`default`"):
        srcdiff.grad(lambda x: max(x, 2.0, default=1.0), backend="python")(0.3)  # type: ignore[call-overload]


def test_arrays_have_no_order() -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=r"lists of arrays, .* cannot be sorted"):
        srcdiff.grad(lambda a: sorted([a, 2.0 * a])[0][0], backend="python")(A)


# ---------------------------------------------------------------------------------------------------------- texts


def formatted(x, n):
    print("%.3f and %5d%%" % (x, n), "%s %r %6s|" % (n, "text", n), "%-9.2e|%+g|%08.3f|%i" % (x, x, x, n))
    return x


def test_percent_formats_as_python_does(capsys: pytest.CaptureFixture[str]) -> None:
    for x, n in ((0.7, 3), (-12345.678, 7), (1e-9, -1)):
        formatted(x, n)
        expected = capsys.readouterr().out

        srcdiff.grad(formatted, backend="python")(x, n)

        assert expected == capsys.readouterr().out


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: print("%d" % x) or x, "needs an integer"),
        (lambda x: print("%.2f %.2f" % (x,)) or x, "fewer values"),
        (lambda x: print("%.2f" % (x, x)) or x, "more values"),
        (lambda x: print("% .2f" % x) or x, "outside the language"),
    ],
)
def test_format_that_does_not_fit_is_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=message):
        srcdiff.grad(function, backend="python")(0.3)


def raises_on_overflow(x):
    with np.errstate(over="raise"):
        return np.exp(x)


def other_context(x):
    with errstate(x):
        return x


def errstate(x):
    return x


@pytest.mark.parametrize(
    ("function", "message"),
    [(raises_on_overflow, "supported with 'ignore' and 'warn' only"), (other_context, "`with`")],
)
def test_contexts_that_do_something_are_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=message):
        srcdiff.grad(function, backend="python")(0.3)


def quotient_and_remainder(x):
    quotient, remainder = divmod(x, 0.4)
    return quotient * x + remainder


def formatted_in_three_ways(x):
    print(repr(2), format(x, ".2f"), "{:.1f}".format(x))  # noqa: UP032 -- one of the ways
    return x * x


def copied_dictionary(x):
    terms = {"a": x, "b": x * x}
    copy = terms.copy()
    total = 0.0
    for key in terms.keys():
        total += copy[key]
    return total


def imported_inside(x):
    import math

    return math.sin(x)


def cleared_list(x):
    values = []
    for k in range(3):
        values.append(k * x)
    values.clear()
    values.append(x * x)
    return values[-1]


def sums_of_lists(x):
    return math.fsum([x, x * x]) + sum(itertools.starmap(lambda a, b: a * b, [(x, 2.0), (x, x)]))


def constant_list(x):
    held = srcdiff.stop_gradient([x, 2.0 * x])
    return x * held[0] * held[1]


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (quotient_and_remainder, 3.0 + 1.0),
        (formatted_in_three_ways, 3.0),
        (copied_dictionary, 1.0 + 3.0),
        (imported_inside, math.cos(1.5)),
        (cleared_list, 3.0),
        (sums_of_lists, 4.0 + 2.0 + 3.0),
        (constant_list, 4.5),
    ],
)
def test_parts_of_the_language_that_few_programs_use(function, slope):
    value, derivative = srcdiff.value_and_grad(function, backend="python")(1.5)

    assert value == function(1.5)
    assert derivative == pytest.approx(slope, rel=1e-15)


# -- bisect, clocks, caches -------------------------------------------------------------------------------------------


def looked_up(x, v):
    knots = np.sort(x)
    listed = list(knots)
    return knots[bisect.bisect(knots, v) - 1] * v + listed[bisect.bisect_left(listed, v, 0, 2)] * bisect.bisect(x, 9.0)


class Timed:
    def __init__(self, x):
        self.x, self.started, self.last = x, time.time(), None

    def square(self):
        if self.last is None:
            self.last = time.perf_counter()
        self.last = time.monotonic()
        return self.x**2


def timed(x):
    timer = Timed(x[0])
    for _ in range(3):
        timer.square()
    return timer.square() * x[1]


@functools.cache
def nodes(n):
    return np.linspace(0.0, 1.0, n)


@functools.cache
def doubled(x):
    return 2.0 * x


def with_caches(x):
    return np.sum(nodes(3) * x) * doubled(x[0])


def with_tuples(x):
    squares, positive = tuple(v * v for v in x), tuple(x[x > 0])
    total = 0.0 if isinstance(squares, tuple) else 100.0
    for v in squares:
        total += v
    return total + squares[1] * len(squares) + sum(positive) + max(squares)


def with_repeated_arrays(x):
    n = int(x[1] * 3)
    matrices, state = [np.outer(x, x)] * n, x
    for k, a in enumerate(matrices):
        state = a @ state + k
    return np.sum(state) + len(matrices)


def with_joined_lists(x):
    history = [v for v in x]
    for k in range(len(x)):
        history = history + [history[-1] * x[k]]
    twice = history + history
    twice[0] = 9.0
    return sum(history) * sum(twice) + history[0]


PROGRAMS = [lambda x: looked_up(x, 0.7), timed, with_caches, with_tuples, with_repeated_arrays, with_joined_lists]


@pytest.mark.parametrize("function", PROGRAMS)
def test_bisection_clocks_caches_tuples_and_lists(function):
    x = np.array([0.5, 1.2, -0.3])
    srcdiff.check(function, x, backend="python")
    assert srcdiff.value_and_grad(function, backend="python")(x)[0] == pytest.approx(function(x))


@functools.lru_cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@functools.lru_cache
def listed(n):
    return [1.0, n]


def writes_to_a_cached_array(x):
    a = nodes(3)
    a[0] += x
    return np.sum(a)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: x * (time.time() - time.time()), "computes with the time"),
        (lambda x: x if time.time() else 2.0 * x, "computes with the time"),
        (lambda x: x * np.sin(time.time()), "the time is used where a number is needed"),
        (lambda x: x * fibonacci(5), "`fibonacci` is cached by `lru_cache`"),
        (lambda x: x * listed(5)[1], "`listed` is cached by `lru_cache` and returns a list"),
        (writes_to_a_cached_array, "this writes to an array that may be a view"),
    ],
)
def test_what_clocks_and_caches_do_not_allow(function, said):
    with pytest.raises(srcdiff.DifferentiationError, match=said):
        srcdiff.grad(function, backend="python")(1.5)


def test_relative_import_inside_a_function(tmp_path, monkeypatch):
    package = tmp_path / "package_with_relative_imports"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helpers.py").write_text("def square(x):\n    return x * x\n")
    imports = "    from . import helpers\n    from .helpers import square\n"
    (package / "model.py").write_text(f"def loss(x):\n{imports}    return square(x) * helpers.square(x)\n")
    monkeypatch.syspath_prepend(tmp_path)
    loss = importlib.import_module("package_with_relative_imports.model").loss
    assert srcdiff.grad(loss, backend="python")(2.0) == 32.0
