"""A corpus of small plain-Python programs: every part of the language, alone and in difficult combinations.

Nothing here knows srcdiff. Each function's docstring is the fact it stands for; `program(...)` below it names the
points at which it is run, chosen so that every line of it is executed at one of them. `exact` holds answers known
without computing; everything else is compared with differences (tests/numerical.py).
"""

# Written as users write: `zip` without `strict`, closures over loop variables, operators by their own precedence.
# ruff: noqa: B905, B023, RUF005, RUF021, UP031

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tests.numerical import is_active_type


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A function, the points to run it at, and what is known about the answers."""

    function: Callable[..., Any]
    at: tuple[tuple[Any, ...], ...]
    wrt: tuple[int, ...]
    exact: tuple[tuple[Any, ...] | None, ...] = ()
    raises: tuple[tuple[tuple[Any, ...], type[BaseException]], ...] = ()
    single_precision: bool = False

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def fact(self) -> str:
        return (self.function.__doc__ or "").strip().splitlines()[0]


PROGRAMS: list[Program] = []


def program(
    function: Callable[..., Any],
    at: Sequence[tuple[Any, ...]],
    wrt: Sequence[int] | None = None,
    exact: Sequence[tuple[Any, ...] | None] = (),
    raises: Sequence[tuple[tuple[Any, ...], type[BaseException]]] = (),
    single_precision: bool = False,
) -> None:
    """Put a function into the corpus; `wrt` is every argument that can be differentiated unless said otherwise."""
    example = at[0] if at else raises[0][0]
    chosen = tuple(k for k, value in enumerate(example) if is_active_type(value)) if wrt is None else tuple(wrt)
    PROGRAMS.append(Program(function, tuple(at), chosen, tuple(exact), tuple(raises), single_precision))


def array(*numbers: float) -> np.ndarray:
    """A vector of float64."""
    return np.array(numbers, dtype=np.float64)


def grid(*shape: int) -> np.ndarray:
    """An array of the given shape whose entries are all different, between -1 and 1, none near zero."""
    count = math.prod(shape)
    return np.array([math.sin(1.7 * k + 0.6) + 0.01 * k for k in range(count)]).reshape(shape)


def vector(length: int) -> np.ndarray:
    """A vector whose entries are all different."""
    return grid(length)


# ----------------------------------------------------------------------------------------------------- the simplest


def identity(x):
    """The derivative of the argument itself is one."""
    return x


program(identity, at=[(0.3,)], exact=[(1.0,)])


def constant_result(x):
    """A result that does not depend on the argument has derivative zero."""
    return 2.5


program(constant_result, at=[(0.3,)], exact=[(0.0,)])


def unused_argument(x, y):
    """An argument that is not used gets zero, not None."""
    return x * x


program(unused_argument, at=[(3.0, 2.0)], exact=[(6.0, 0.0)])


def overwritten_argument(x):
    """An argument overwritten before it is read does not reach the result."""
    x = 3.0
    return x * x


program(overwritten_argument, at=[(0.7,)], exact=[(0.0,)])


def polynomial(x, y):
    """Products, sums, differences, quotients and signs."""
    return (x * y - 3.0 * x) / (1.0 + y * y) - -x + +y


program(polynomial, at=[(0.5, 2.0), (-1.3, 0.4)])


def same_variable_thrice(x):
    """Every use of a variable adds to its adjoint."""
    return x * x * x + x + x


program(same_variable_thrice, at=[(2.0,)], exact=[(14.0,)])


def reused_name(x):
    """A scalar assigned again and again is a new value each time."""
    x = x * x
    x = math.sin(x) + x
    y = x
    x = x * y
    return x + y


program(reused_name, at=[(0.8,), (-1.1,)])


def integer_argument(x, n):
    """Integers take part in arithmetic but have no derivative."""
    return x * n + n // 2 - (n % 3) * x**n


program(integer_argument, at=[(1.3, 4), (0.7, 5)])


# --------------------------------------------------------------------------------------------- Python's own library


def numbers_written_as_texts(x):
    """`float` and `int` of a constant text are constants."""
    best = float("inf")
    for k in range(5):
        best = min(best, (x - 0.15 * k) ** 2)
    return best + x * int("12") + int("ff", 16) * max(float("-inf"), x) if best == best else float("nan")


program(numbers_written_as_texts, at=[(0.4,), (2.0,)])


def text_that_is_no_number(x, n):
    """A text that is no number raises where it is read."""
    if n > 0:
        return x * float("much")
    return x


program(text_that_is_no_number, at=[(0.4, 0)], exact=[(1.0,)], raises=[((0.4, 1), ValueError)])


def whole_number_functions(x, n, k):
    """Factorials, choices, roots and divisors of whole numbers are whole numbers."""
    total = x * math.factorial(n) + x**2 * math.comb(n, k) + math.perm(n, k) / x + math.perm(n) * x
    total += math.isqrt(n * n + k) * x + math.gcd(n, k, 12) * x * x + math.lcm(n + 1, 4, 6) * x + math.gcd() * x
    return total + math.gcd(-n) * x + math.factorial(5) * x


program(
    whole_number_functions,
    at=[(0.3, 7, 3), (0.3, 0, 0), (0.3, 3, 7), (0.3, 20, 10)],
    raises=[((0.3, -1, 2), ValueError), ((0.3, 4, -1), ValueError)],
)


def integers_of_more_than_64_bits(x):
    """A constant that is too large for 64 bits is a float beside a float."""
    return (x * 10**30 if x < 10**40 else x) / math.factorial(25) + x * (math.factorial(25) // math.factorial(23))


program(integers_of_more_than_64_bits, at=[(0.3,)])


def fractions_and_exponents(x):
    """`modf` and `frexp` take a number apart into piecewise linear functions of it."""
    fraction, whole = math.modf(13.0 * x)
    mantissa, exponent = math.frexp(37.0 * x)
    return fraction**2 * whole + mantissa**2 * exponent + math.ulp(x) + math.modf(-x)[0] * math.frexp(0.01 * x)[0]


program(fractions_and_exponents, at=[(0.3,), (-0.7,), (1e3 + 0.123,)])


def nearest_remainder(x, y):
    """The remainder of the nearest multiple, below or above."""
    return math.remainder(x, y) ** 2 + math.remainder(-x, y) * x + math.remainder(x, math.inf) * math.fmod(x, y)


program(nearest_remainder, at=[(7.3, 2.1), (6.9, 2.1), (-7.3, 2.1), (7.3, -2.5), (0.4, 2.0)])


def distances_of_points(p, q):
    """`math.dist` of arrays and of displays, and `math.hypot` of any number of arguments."""
    total = math.dist(p, q) ** 3 + math.dist([p[0], 1.0], [q[0], 2.0]) + math.dist((p[0],), (5.0,)) + math.dist(p, p)
    return total + math.hypot(p[0], q[0], p[1], q[1]) + math.hypot(p[0]) + math.hypot()


program(
    distances_of_points,
    at=[(np.array([0.3, 0.4, -1.2]), np.array([0.1, 0.2, 0.9]))],
    raises=[((np.array([0.3, 0.4, -1.2]), np.array([0.1, 0.2])), ValueError)],
)


def close_numbers(x, y):
    """`math.isclose` has no derivative; the branch that it selects has one."""
    if math.isclose(x, y, rel_tol=0.1):
        return x * x
    if math.isclose(x, y, abs_tol=0.5) or math.isclose(x, math.inf):
        return x * y
    return y * y


program(close_numbers, at=[(1.0, 1.02), (1.0, 1.3), (1.0, 2.0)])


def best_by_a_key(a, n):
    """`max` and `min` by a key give the first of the best, and the derivative goes to it."""
    place = max(range(n), key=lambda i: abs(a[i]))
    small = min(a, key=lambda v: (v - 0.5) ** 2)
    low, high = min([(v, v * v) for v in a], key=lambda pair: pair[1])
    several = max(a[0], a[1] * a[2], -a[0], key=abs)
    return a[place] ** 2 + small * low + high * several


program(best_by_a_key, at=[(np.array([0.3, -0.5, 0.8, 1.2]), 4), (np.array([0.3, -1.5, 0.8]), 1)])


def best_of_equals(x, y):
    """Of equal elements the first one counts, and the key is called once for each element, in order."""
    asked = []

    def key(v):
        asked.append(v)
        return round(v)

    return max([x, y, 1.3 * x], key=key) * 3.0 + min(x, y, key=key) + asked[3] * asked[0] + len(asked)


program(best_of_equals, at=[(1.1, 0.9), (0.9, 1.2)], exact=[(6.2, 0.0), None])


def best_of_nothing(values, other):
    """`default` stands for an empty sequence, and only for that."""
    large = [v * v for v in values if v > 0.5]
    fallback = max(large, default=other)
    return fallback * 2.0 + min((v for v in values if v > 9.0), default=other * other) + max([], default=other)


program(best_of_nothing, at=[([0.3, 0.6, 0.9], 0.7), ([0.3], 0.7), ([], 0.7)])


def best_tuple(a):
    """Tuples are ordered by the first items that differ."""
    pairs = [(round(v), v * v) for v in a]
    rest = a[0] if (a[0], a[1]) < (a[0], a[2]) else a[1]
    return max(pairs)[1] + min(pairs)[1] * rest + (a[2] if (1.0, a[0]) >= (1.0, a[1], 3.0) else a[3])


program(best_tuple, at=[(np.array([0.3, -0.4, 0.8, 1.2]),), (np.array([0.7, 1.4, 0.8, 1.3]),)])


def sorted_lists(a):
    """A sorted list is a new one; each element's derivative goes to where it came from."""
    up = sorted(a)
    down = sorted([v * v for v in a], reverse=True)
    by_size = sorted(a, key=abs)
    up[0] = up[0] * 2.0
    total = 0.0
    for k, v in enumerate(up):
        total += (k + 1) * v * down[k]
    return total + by_size[0] * by_size[-1] * a[0]


program(sorted_lists, at=[(np.array([0.3, -0.5, 0.8, 1.2]),), (np.array([0.4]),)])


def list_sorted_in_place(values):
    """All names of a list see that it is sorted; pairs are sorted by both items, equal ones stay in order."""
    copy = list(values)
    other = copy
    copy.sort(reverse=True)
    copy.append(values[0])
    pairs = [(round(v), v * v) for v in values]
    by_first = sorted(pairs, key=operator.itemgetter(0), reverse=True)
    pairs.sort()
    return other[0] * other[-1] + pairs[0][1] * by_first[0][1] + by_first[-1][1] * len(other)


program(list_sorted_in_place, at=[([0.3, 1.4, 0.8, 1.2],), ([1.2, 0.8, -0.6],), ([0.7],)])


def sorted_and_unpacked(x, y):
    """The length of a sorted list stays known at compile time, and so do constant keys."""
    low, middle, high = sorted((x, y, x * y))
    settings = {"b": x, "a": y}
    total = low + 2.0 * middle + 3.0 * high
    for k, (name, value) in enumerate(sorted(settings.items())):
        total += (k + 1) * value * settings[name]
    return total + sorted([3, 1, 2], reverse=True)[0] * x


program(sorted_and_unpacked, at=[(0.3, 0.2), (1.4, 2.5), (-0.7, 1.1)])


def rows_in_order(a):
    """Arrays are sorted by a key that is a number."""
    rows = [a * k for k in range(3)]
    ordered = sorted(rows, key=lambda row: -row[0])
    return ordered[0][1] * ordered[2][0] + ordered[1][2] ** 2


program(rows_in_order, at=[(np.array([0.3, -0.5, 0.8]),), (np.array([-0.3, -0.5, 0.8]),)])


def mapped(a, b):
    """`map` and `filter` go element by element through one sequence, or through several in step."""
    total = sum(map(operator.mul, a, b)) + max(map(abs, a)) + min(map(lambda v: v * v, filter(None, b)))
    first, second = map(lambda v: v * v, (a[0], b[0]))
    total += math.hypot(*map(math.sin, (a[0], b[0]))) + sum(
        [v * w for v, w in itertools.product(map(math.sin, a), (1, 2))]
    )
    return total * first + second + sum(list(filter(lambda v: v > 0.1, a))) * sum(sorted(map(math.exp, b))[:1])


program(mapped, at=[(np.array([0.3, -0.5, 0.8]), np.array([0.2, 0.9, -0.4]))])


def mapped_while_it_changes(a):
    """The functions of `map` and `filter` are called between the iterations, and see what these have changed."""
    total = 0.0
    for v in map(lambda u: u * u * a[0], a):
        total += v
        a[0] = total
    for v in filter(lambda u: u > 0.1 * a[2], map(lambda u: u * total, a)):
        if v > 0.9:
            break
        a[2] += v
        total += v * v * a[2]
    else:
        total += 10.0 * a[1]
    return total


program(
    mapped_while_it_changes,
    at=[(np.array([0.3, 0.5, 0.8]),), (np.array([0.9, 0.2, 0.1]),), (np.array([0.4, 0.9, 2.0]),)],
)


def any_of_mapped(x):
    """`any` and `all` of a `map` stop where they are decided."""
    seen = []

    def large(v):
        seen.append(v)
        return v > 0.5

    if any(map(large, (x, 2.0 * x, 3.0 * x))) and not all(map(large, [x, 4.0 * x])):
        seen.append(x * x)
    return sum(seen) * len(seen)


program(any_of_mapped, at=[(0.3,), (0.1,), (0.7,)])


def cube_of(n, x):
    return x**n


CUBE = functools.partial(cube_of, 3)


def functions_of_functions(a, x):
    """`reduce` and `partial`, of functions from inside and outside."""
    horner = functools.reduce(lambda total, c: total * x + c, a, 0.0)
    product = functools.reduce(operator.mul, [v * v for v in a])
    power = functools.partial(cube_of, x=x)
    square = functools.partial(power, 2)
    return horner * product + CUBE(x) + power(4) * square()


program(
    functions_of_functions,
    at=[(np.array([0.3, -0.5, 0.8]), 0.7)],
    raises=[((np.zeros(0), 0.7), TypeError)],
)


def pairs_and_chains(a, b):
    """Combinations, pairs, sums so far, and one sequence after the other."""
    total = sum((v - w) ** 2 for v, w in itertools.combinations(a, 2))
    for k, (i, j) in enumerate(itertools.permutations(range(len(a)), 2)):
        total += k * a[i] * a[j] ** 2
    for v, w in itertools.pairwise(a):
        total += v * w
    for v in itertools.chain(a, b, [sum(a), 1.0]):
        total += v * v * total
    for v in itertools.accumulate(a):
        total += v * v
    return (
        total + sum(list(itertools.accumulate(b, operator.mul, initial=2.0))) + sum(map(sum, itertools.product(a, b)))
    )


program(
    pairs_and_chains,
    at=[(np.array([0.3, -0.5, 0.8]), np.array([0.2, 0.9])), (np.array([0.3]), np.zeros(0)), (np.zeros(0), np.ones(1))],
)


def methods_of_texts(x, method):
    """Strings are known at compile time, and so are the results of their methods."""
    name, _, order = method.strip().lower().partition("-")
    if name.startswith(("rk", "ab")) and name.upper() != "AB":
        return x ** int(order)
    parts = "0.5,2.0".split(",")
    return x * float(parts[0]) + float(parts[1].replace("2", "3")) * x * x


program(methods_of_texts, at=[(0.7, " RK-3"), (0.7, "Euler"), (0.7, "AB-2")])


def numbers_of_numpy(a):
    """`item` gives a number as it is, `tolist` a list that is a copy."""
    values = a.tolist()
    first = a[0].item()
    a[1] = 5.0 * a[2]
    return values[1] * first + len(values) * values[-1]


program(numbers_of_numpy, at=[(np.array([0.3, -0.5, 0.8]),)])


def without_warnings(x, n):
    """`np.errstate` changes no number. Loops, exits and names inside it behave as without it."""
    total = 0.0
    with np.errstate(divide="ignore", invalid="warn"):
        y = np.log(x)
        for k in range(n):
            with np.errstate(all="ignore"):
                if k == 3:
                    break
                total += y * k
        if total > 5.0:
            return total * x
    if n < 0:
        raise ValueError("a negative number") from None
    return total + y


program(without_warnings, at=[(0.7, 2), (0.7, 6), (9.0, 3), (9.0, 0)], raises=[((0.7, -1), ValueError)])


def parts_of_lists_replaced(a, n):
    """A slice of a list is replaced by more or fewer elements, and all names of the list see the change."""
    known = [a[0], 1.0, 2.0]
    known[1:] = [a[0] * a[1], a[1], 3.0]
    known[0:2] = []
    values = [v * v for v in a]
    other = values
    values[1:n] = map(math.sin, values)
    values[len(values) :] = [a[0]]
    del values[n:-1]
    values[5:2] = [a[1]] * 2
    total = 0.0
    for k, v in enumerate(other):
        total += (k + 1) * v
    return total * known[0] + len(known) * len(other)


program(parts_of_lists_replaced, at=[(np.array([0.3, -0.5, 0.8]), n) for n in (0, 1, 2, 7, -1)])


def unpacked_around_a_star(values):
    """A starred name takes the elements that remain, which may be none."""
    first, *rest, last = values
    head, *tail = rest + [first]
    total = first * last
    for k, v in enumerate(rest):
        total += (k + 2) * v * v
    return total * head + len(tail)


program(
    unpacked_around_a_star,
    at=[([0.3, 0.4, 0.5, 0.6],), ([0.3, 0.4],), (np.array([0.3, -0.4, 0.5]),)],
    raises=[(([0.3],), ValueError)],
)


def printed_by_percent(x, n):
    """Formats with `%`."""
    print("%.3f and %5d%%" % (x, n), "%s %r" % (n, "text"), "%-8.2e|%+g|%08.3f" % (x, x, x))
    return x * x


program(printed_by_percent, at=[(0.7, 3)], exact=[(1.4,)])


# ------------------------------------------------------------------------------------------------------- expressions


def floor_division_and_remainder(x, y):
    """`//` is flat and `%` has slope one in its first operand, for either sign."""
    return (x // 0.7) * y + (x % 0.7) * y + x % y + (-x) % y


program(floor_division_and_remainder, at=[(1.9, 0.83), (-1.2, 0.83), (1.9, -0.83)])


def powers_of_negative_bases(x, n):
    """Integer powers of negative numbers, with a constant and with a variable exponent."""
    return x**3 + (-x) ** 2 - x**n + (2.0 * x) ** -1


program(powers_of_negative_bases, at=[(-1.5, 3), (-0.6, 2), (1.2, 0), (-0.9, -2)])


def real_powers(x, y):
    """Both operands of a real power have a derivative."""
    return x**y + x**0.5 + 2.0**y + pow(x, 3) + pow(x, y)


program(real_powers, at=[(1.7, 0.6), (0.4, -1.3)])


def powers_of_zero(x):
    """`x ** 2` and `x ** 1` at zero have the derivatives of the polynomial, not NaN."""
    return x**2 + 3.0 * x**1 + x**0


program(powers_of_zero, at=[(0.0,)], exact=[(3.0,)])


def rounding_builtins(x):
    """`int`, `round`, `float` and floor are flat: only the smooth part has a derivative."""
    return x * int(2.0 * x) + round(x) + float(int(x)) * x + math.floor(x) + math.ceil(x) * x


program(rounding_builtins, at=[(1.3,), (-2.6,), (3.8,)])


def cast_and_round(x):
    """A cast cuts the gradient off: it is zero, and a warning says so."""
    return round(x) + float(int(3.0 * x))


program(cast_and_round, at=[(1.3,)], exact=[(0.0,)])


def minimum_maximum_absolute(x, y, z):
    """`min`, `max` and `abs` follow the operand that was chosen, also with three operands."""
    return min(x, y) * 2.0 + max(x, y, z) * z + abs(x - y) + min(x, 0.5) - max(0.1, y, z)


program(minimum_maximum_absolute, at=[(0.2, 0.7, -0.4), (0.9, -0.3, 0.45), (0.1, 0.3, 1.2)])


def ternary(x, y):
    """A conditional expression, nested, differentiates the side that was taken."""
    return x * y if x > y else (x + y if y > 1.0 else x - y * y)


program(ternary, at=[(2.0, 1.0), (0.5, 1.4), (0.2, 0.6)])


def chained_comparison(x, low, high):
    """A chained comparison evaluates its middle operand once."""
    if low < x < high:
        return x * x
    if high <= x != low:
        return x * high
    return low * x


program(chained_comparison, at=[(0.5, 0.0, 1.0), (1.5, 0.0, 1.0), (-0.5, 0.0, 1.0)])


def boolean_operators(x, y):
    """`and`, `or` and `not` combine comparisons."""
    result = 0.0
    if x > 0.0 and y > 0.0 or x < -1.0:
        result += x * y
    if not (x > 0.0 or y > 0.0):
        result -= x * x
    if not x > 0.5 and not y > 0.5:
        result += y * y * y
    return result + x


program(boolean_operators, at=[(0.7, 0.8), (-1.5, 0.3), (-0.2, -0.6), (0.1, 0.2)])


def operands_of_or(x, y):
    """The value of `or` and `and` is one of their operands."""
    first = x or y
    second = x and y
    return first * 3.0 + second * x


program(operands_of_or, at=[(0.7, 0.8), (0.0, 1.5)], wrt=[1])


def short_circuit_guards_an_index(a, k):
    """The second operand of `and` runs only where the first holds: an index stays inside."""
    total = 0.0
    while k < len(a) and a[k] > 0.0:
        total += a[k] * a[k]
        k += 1
    if k >= len(a) or a[k] < -0.5:
        total *= 2.0
    return total


program(
    short_circuit_guards_an_index,
    at=[(array(0.3, 0.5, 0.2), 0), (array(0.3, -0.7, 0.2), 0), (array(0.3, -0.1, 0.2), 0), (array(0.4), 3)],
)


def walrus_in_condition(x):
    """A walrus binds in a condition, in an operand, and in a loop's test."""
    if (y := x * x) > 0.5:
        x = x + y
    z = (w := math.sin(x)) * w + y
    while (x := x * 0.5) > 0.2:
        z += x * w
    return z + x


program(walrus_in_condition, at=[(1.3,), (0.45,)])


def comparisons_as_numbers(x, y):
    """A comparison is a number, too, without derivative."""
    return (x > y) * x + (x < y) * y * y


program(comparisons_as_numbers, at=[(0.7, 0.3), (0.3, 0.7)])


def mathematics(x):
    """Functions of `math`."""
    s = math.sin(x) + math.cos(x) * math.tan(0.3 * x) + math.exp(-x) + math.log(2.0 + x) + math.sqrt(3.0 + x)
    s += math.tanh(x) + math.atan(x) + math.asin(0.3 * x) + math.acos(0.2 * x) + math.sinh(x) + math.cosh(x)
    s += math.hypot(x, 1.5) + math.atan2(x, 2.0) + math.log1p(x * x) + math.expm1(x) + math.erf(x) + math.fabs(x)
    return s + math.copysign(x, -1.0) + math.pow(2.0 + x, 1.5) + math.fmod(x, 0.35) + math.degrees(x) * math.pi


program(mathematics, at=[(0.4,), (-0.6,)])


def numpy_on_scalars(x):
    """NumPy's elementwise functions on scalars."""
    s = np.sin(x) * np.exp(0.5 * x) + np.sqrt(x * x + 1.0) + np.log(3.0 + x) + np.arctan(x) + np.tanh(x)
    s += np.maximum(x, 0.2) + np.minimum(x, 0.3) * x + np.abs(x) + np.square(x) + np.power(2.0 + x, 1.5)
    return s + np.cbrt(2.0 + x) + np.log1p(x * x) + np.expm1(x) + np.hypot(x, 2.0) + np.sign(x) * x


program(numpy_on_scalars, at=[(0.4,), (-0.7,)])


# ------------------------------------------------------------------------------------------------------- assignments


def chained_assignment(x):
    """One value bound to several targets."""
    a = b = c = x * x
    a = a + 1.0
    b = b * a
    return a + b * c


program(chained_assignment, at=[(0.7,)])


def unpacking(x, y):
    """Unpacking, nested unpacking, and a swap without a temporary."""
    a, b = x * y, x + y
    (c, d), e = (a - b, a), b
    a, b = b, a
    c, d, e = e, c, d
    return a * 2.0 + b * c - d * e


program(unpacking, at=[(0.7, 1.9)])


def augmented_assignment(x, n):
    """Every augmented operator."""
    y = x
    y += 2.0 * x
    y *= y
    y -= x
    y /= 1.0 + x * x
    y **= 2
    y %= 10.0
    n //= 2
    n -= 1
    n *= 3
    return y * n


program(augmented_assignment, at=[(0.7, 5), (1.1, 9)])


def annotated_assignment(x: float, n: int = 3) -> float:
    """Annotations say nothing about the derivative."""
    y: float = x * n
    z: float
    z = y * y
    return z + y


program(annotated_assignment, at=[(0.7,), (0.7, 2)])


def rotation_of_three(x, y, z, n):
    """Names rotate in a loop: the reverse sweep undoes each swap."""
    for _ in range(n):
        x, y, z = y * 0.9, z + x * y, x
    return x + 2.0 * y + 3.0 * z * x


program(rotation_of_three, at=[(0.3, 0.5, 0.7, 0), (0.3, 0.5, 0.7, 1), (0.3, 0.5, 0.7, 5)])


def swap_in_branch(x, y):
    """A swap in one branch only."""
    if x > y:
        x, y = y, x
    return x * x * y


program(swap_in_branch, at=[(0.3, 0.9), (0.9, 0.3)])


# ---------------------------------------------------------------------------------------------------------- branches


def branches(x, y):
    """`if`, `elif`, `else`: a variable changed in some of them."""
    z = x
    if x > 1.0:
        z = x * y
    elif x > 0.0:
        z = math.sin(y) * z
        y = y * y
    elif y > 0.0:
        pass
    else:
        z = z - y
    return z * y


program(branches, at=[(1.5, 0.6), (0.5, 0.6), (-0.5, 0.6), (-0.5, -0.6)])


def defined_in_both_branches(x):
    """A variable that only the branches define."""
    if x > 0.0:
        z = x * x
        w = 2.0
    else:
        z = -3.0 * x
        w = x
    return z * w


program(defined_in_both_branches, at=[(0.5,), (-0.5,)])


def defined_in_one_branch(x, n):
    """A variable that one branch defines and only the same condition reads."""
    if n > 0:
        z = x * x
    y = x + 1.0
    if n > 0:
        y = y * z
    return y


program(defined_in_one_branch, at=[(0.6, 1), (0.6, -1)])


def undefined_where_not_assigned(x, n):
    """A variable that is not defined raises the exception of the program."""
    if n > 0:
        z = x
    return z * x


program(undefined_where_not_assigned, at=[(0.6, 1)], raises=[((0.6, -1), UnboundLocalError)])


def overwritten_in_branch_after_use(x, n):
    """A value used nonlinearly before a branch overwrites it."""
    y = x * x
    z = y * y
    if n > 1:
        y = z * y
        if n > 2:
            y = y * y
        z = z * y
    return y * z


program(overwritten_in_branch_after_use, at=[(0.9, 1), (0.9, 2), (0.9, 3)])


def tape_branch(x):
    """Which side of a branch is differentiated: the one that was taken."""
    y = x * x if x > 1.0 else x + 1.0
    return y + x


program(tape_branch, at=[(2.0,), (0.5,)], exact=[(5.0,), (2.0,)])


def condition_overwritten(x, y):
    """The condition's operands change inside the branch that they chose."""
    if x > y:
        x = y * y
        y = x - 0.3
    if x > y:
        x = x * y
    return x * y


program(condition_overwritten, at=[(0.9, 0.2), (0.2, 0.9), (3.0, 2.0)])


def adjoint_equal_in_both_branches(x, y, n):
    """Branches that exit in different ways but propagate the same adjoint."""
    total = 0.0
    for i in range(n):
        if i % 2 == 0:
            if x * i > 1.5:
                break
            total += x * y
        else:
            if y * i > 2.0:
                continue
            total += x * y
        y = y * 1.1
    return total + y


program(adjoint_equal_in_both_branches, at=[(0.5, 0.7, 6), (0.1, 0.7, 6), (0.9, 0.2, 3), (0.1, 0.2, 0)])


# ------------------------------------------------------------------------------------------------------------- loops


def sum_of_squares(a):
    """A sum over `range(len(a))`."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * a[i]
    return total


program(sum_of_squares, at=[(array(1.0, -2.0, 3.0),), (np.zeros(0),)], exact=[(array(2.0, -4.0, 6.0),), (np.zeros(0),)])


def scalar_recurrence(x, r, n):
    """A nonlinear recurrence: every state is needed in reverse."""
    for _ in range(n):
        x = r * x * (1.0 - x)
    return x


program(scalar_recurrence, at=[(0.3, 2.1, 0), (0.3, 2.1, 1), (0.3, 2.1, 7), (0.3, 2.1, -3)])


def negative_step(a, start):
    """A range that runs downwards."""
    total = 0.0
    for i in range(start, -1, -2):
        total = total * 0.5 + a[i] * a[i - 1]
    return total


program(negative_step, at=[(vector(6), 5), (vector(6), 4), (vector(6), -1)])


def step_from_argument(a, low, high, step):
    """A step whose sign is known only when it runs."""
    total = 1.0
    for i in range(low, high, step):
        total = total * (1.0 + 0.3 * a[i])
    return total + i if low != high else total


program(
    step_from_argument, at=[(vector(6), 0, 6, 2), (vector(6), 5, 0, -1), (vector(6), 2, 2, 1), (vector(6), 1, 5, 3)]
)


def zero_trips(x, n):
    """A loop that may not run at all leaves everything as it was."""
    y = x * x
    for _ in range(n):
        y = y * x
    for _ in range(5, n):
        y = y * y
    return y


program(zero_trips, at=[(0.9, 0), (0.9, -4), (0.9, 2), (0.9, 7)])


def bounds_changed_in_body(x, n):
    """The range is made once: changing its bound in the body changes nothing."""
    total = 0.0
    for i in range(n):
        n = n - 2
        total += math.sin(x * (i + 1)) * n
    return total * n


program(bounds_changed_in_body, at=[(0.4, 5), (0.4, 0)])


def loop_variable_after_loop(x, n):
    """The loop variable keeps its last value after the loop."""
    y = 1.0
    for i in range(n):
        y = y * (x + i)
    return y * i * x


program(loop_variable_after_loop, at=[(0.4, 4), (0.4, 1)])


def loop_variable_reassigned(x, n):
    """An assignment to the loop variable changes this iteration, not the next one."""
    total = 0.0
    for i in range(n):
        i = i * 2 + 1
        total += x**i
    return total


program(loop_variable_reassigned, at=[(0.8, 4), (0.8, 0)])


def loop_variable_shared_by_nested_loops(x, n):
    """An inner loop that uses the outer loop's variable."""
    total = 0.0
    for i in range(n):
        for i in range(3):
            total += x * (i + 1) * total + x
        total = total * (0.1 * i + x)
    return total


program(loop_variable_shared_by_nested_loops, at=[(0.4, 3), (0.4, 0)])


def triangular_nest(a):
    """Inner bounds that depend on the outer counter."""
    total = 0.0
    for i in range(len(a)):
        for j in range(i):
            for k in range(j, i + 1):
                total += a[i] * a[j] * math.sin(a[k] + total)
    return total


program(triangular_nest, at=[(vector(4),), (vector(1),)])


def while_newton(a):
    """A `while` loop whose trip count depends on values."""
    y = 0.5 * a + 0.5
    while abs(y * y - a) > 1e-13:
        y = 0.5 * (y + a / y)
    return y * y * y


program(while_newton, at=[(2.0,), (0.3,), (1.0,)])


def while_squares(x):
    """The trip count of a `while` loop has no derivative; the iterations that ran have one."""
    n = 0
    while x < 100.0:
        x = x * x
        n += 1
    return x * n


program(while_squares, at=[(1.5,), (30.0,), (101.0,)])


def while_with_zero_iterations(x):
    """A `while` that does not run, before and after one that does."""
    while x > 10.0:
        x = x * 0.5
    y = x
    while y < 1.0:
        y = y * 1.7
    while y > 5.0:
        y = y - 0.7 * x
    return y * x


program(while_with_zero_iterations, at=[(0.3,), (2.0,), (37.0,)])


def while_true_with_break(x):
    """`while True` that leaves in the middle of its body."""
    total = 0.0
    while True:
        x = x * 0.7
        if x < 0.1:
            break
        total += x * x * total + x
    return total + x


program(while_true_with_break, at=[(1.0,), (0.05,)])


def while_true_with_return(x):
    """`while True` whose only way out is a `return`."""
    n = 0
    while True:
        x = x * x + 0.1
        n += 1
        if x > 3.0:
            return x * n
        if n > 6:
            return x - n


program(while_true_with_return, at=[(1.4,), (0.3,)])


def continue_skips(a):
    """`continue` skips the rest of the iteration, at two places."""
    total = 0.0
    scale = 1.0
    for i in range(a.shape[0]):
        if a[i] < -0.5:
            continue
        scale = scale * (1.0 + a[i] * a[i])
        if i % 2 == 1:
            continue
        total += scale * a[i]
    return total * scale


program(continue_skips, at=[(vector(6),), (array(-0.9, 0.2, 0.4, -0.8),)])


def break_and_else(a, limit):
    """The `else` of a loop runs only where the loop was not broken off."""
    total = 1.0
    for i in range(len(a)):
        total = total * (1.0 + a[i])
        if total > limit:
            total = total - limit * a[i]
            break
    else:
        total = total * total
    return total * a[i]


program(break_and_else, at=[(array(0.5, 0.7, 0.9), 2.0), (array(0.5, 0.7, 0.9), 100.0), (array(0.5), 1.0)])


def while_else(x, n):
    """The `else` of a `while`, with `break` and `continue` in the body."""
    k = 0
    while k < n:
        k += 1
        if k == 2:
            continue
        x = x * 1.3
        if x > 2.0:
            break
        x = x + 0.1 * x * x
    else:
        x = math.sin(x)
    return x * x


program(while_else, at=[(0.5, 3), (1.8, 3), (0.5, 0), (0.5, 2)])


def nested_break_continue_else(a, limit):
    """Exits of nested loops, with an `else` that continues the outer loop and a `break` after it."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > limit:
                break
            total += a[i, j] * a[i, j] * (1.0 + total)
        else:
            total = total * 1.1
            continue
        total = total - a[i, j] * total
        if total < -1.0:
            break
    else:
        total = total * total
    return total


program(
    nested_break_continue_else,
    at=[(grid(3, 3), 0.5), (grid(3, 3), 10.0), (grid(3, 3), -10.0), (5.0 * grid(3, 3), 1.0), (grid(4, 2), 0.9)],
)


def return_from_nested_loops(a, limit):
    """A `return` in the middle of three nested loops."""
    total = 0.0
    for i in range(2):
        for j in range(a.shape[0]):
            k = 0
            while k < 3:
                total += a[j] * a[j] * (k + 1) + total * 0.1
                if total > limit:
                    return total * a[j] + i
                k += 1
        total = total * 0.8
    return total


program(return_from_nested_loops, at=[(array(0.5, 0.3, 0.2), v) for v in (0.1, 1.0, 2.5, 100.0)])


def many_returns(x, y):
    """Returns everywhere, also the last statement missing an `else`."""
    if x < 0.0:
        if y < 0.0:
            return x * y
        x = x * x
        if y > 1.0:
            return x + y
    else:
        for i in range(3):
            if x * (i + 1) > 2.0:
                return x * y * i
            x += 0.1 * y
    if x > 0.8:
        return x / y
    return x - y


program(
    many_returns,
    at=[(-0.5, -0.5), (-0.5, 1.5), (-0.5, 0.5), (-1.5, 0.5), (0.9, 0.5), (0.1, 0.2), (0.6, 0.9), (2.5, 1.0)],
)


def return_inside_else(x, n):
    """A `return` in the `else` of a loop and in the `else` of a branch."""
    for i in range(n):
        x = x * 1.2
        if x > 2.0:
            x = x + i
            break
    else:
        return x * 3.0
    return x * x


program(return_inside_else, at=[(0.5, 2), (1.5, 4), (0.5, 0)])


def break_in_both_branches(x, n):
    """Both sides of an `if` leave the loop, at different states."""
    for i in range(n):
        x = x * 1.5
        if i == 2:
            if x > 2.0:
                x = x * x
                break
            else:
                x = math.sin(x)
                break
        x = x + 0.1
    return x * x


program(break_in_both_branches, at=[(0.3, 5), (1.0, 5), (0.5, 2)])


def continue_in_while_with_values(x):
    """`continue` in a `while` whose state was changed before it."""
    n = 0
    while x < 5.0:
        n += 1
        x = x * 1.4
        if n % 2 == 0:
            continue
        x = x + 0.2 * math.sin(x)
    return x


program(continue_in_while_with_values, at=[(0.7,), (6.0,)])


def value_before_loop_used_after(x, n):
    """A value made before a loop, overwritten in it, and its old self used after it."""
    before = x * x
    kept = before
    for _ in range(n):
        before = before * x
    return before * kept


program(value_before_loop_used_after, at=[(1.2, 3), (1.2, 0)], exact=[(7.0 * 1.2**6,), (4.0 * 1.2**3,)])


def loop_in_branch_in_loop(a, n):
    """Loops in branches in loops, each changing what the others read."""
    x = 0.5
    for i in range(n):
        if a[i % 3] > 0.0:
            for j in range(i):
                x = x * (0.9 + 0.1 * a[j % 3])
                if x < 0.55:
                    x = x + a[0]
        else:
            k = 0
            while k < i:
                x = math.sin(x + a[k % 3])
                k = k + 1
    return x


program(loop_in_branch_in_loop, at=[(array(0.4, -0.6, 0.8), 5), (array(0.4, 0.6, -0.8), 6), (array(0.4, 0.6, 0.8), 0)])


def kept_in_nested_while(x):
    """A `while` in a `while`: the number of kept values is not known in advance."""
    total = 0.0
    while x < 4.0:
        y = x
        while y > 0.4:
            total += y * y * x
            y = y * 0.6
        x = x * 1.6 + 0.1 * y
    return total * x


program(kept_in_nested_while, at=[(0.8,), (0.3,), (5.0,)])


def two_accumulators(a):
    """Two carried values that read each other."""
    p = 1.0
    q = 0.5
    for i in range(len(a)):
        p = p + q * a[i]
        q = q * p - a[i]
    return p * q


program(two_accumulators, at=[(vector(4),)])


def fibonacci_weights(x, n):
    """Integers carried beside reals."""
    a, b = 0, 1
    total = 0.0
    for k in range(n):
        a, b = b, a + b
        total += x**k / a
    return total


program(fibonacci_weights, at=[(0.7, 6), (0.7, 0)])


def packed_triangle(a, x):
    """A counter beside a triangular nest is a polynomial of the loops' counters."""
    total, p = 0.0, 0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            total += a[p] * x[i] * x[j] * x[j]
            p += 1
    return total + p


program(packed_triangle, at=[(vector(6), vector(4)), (vector(1), vector(1)), (vector(1), array())])


def counters_with_other_steps(a, x):
    """Counters whose steps differ from those of the loops, beside a recurrence."""
    p, s = 3, 0.5
    for i in range(len(x) - 1, -1, -1):
        for j in range(0, i + 1, 2):
            s += a[p] * x[i] * s * 0.1 + a[p] * x[j]
            p += 2
        p -= 1
    return s * p


program(counters_with_other_steps, at=[(vector(16), vector(5)), (vector(16), vector(2)), (vector(16), array())])


def counted_in_a_branch(x):
    """A counter that only one branch advances: the reverse sweep undoes what the branch has added."""
    y, n = np.zeros(len(x)), 0
    for i in range(len(x)):
        if x[i] > 0.0:
            y[n] = x[i] * x[i]
            n += 1
    s = 0.0
    for k in range(n):
        s += y[k] ** 2 * x[k]
    return s


program(counted_in_a_branch, at=[(vector(7),), (-np.ones(3),), (array(),)])


def counted_in_a_while(x, m):
    """A counter that a `while` advances, inside of a `for`: undone iteration by iteration, and all at once."""
    p, s = 0, 0.0
    for i in range(m):
        v = x[p] * 1.3
        while v > 1.0 and p < len(x) - 1:
            v = v * x[p] * 0.7
            p += 1
        s += v * v
    return s


program(counted_in_a_while, at=[(np.abs(vector(7)) + 1.0, 4), (vector(3), 0), (array(0.5), 3)], wrt=[0])


def counters_of_each_other(x, n):
    """Two integers, each of which adds the other: one of them is kept, the other follows."""
    p, q, s = 0, 1, 0.0
    for i in range(n):
        s += x[p % len(x)] * x[q % len(x)] * s + x[p % len(x)]
        p, q = p + q, q + p
    return s


program(counters_of_each_other, at=[(vector(5), 6), (vector(1), 3), (vector(2), 0)], wrt=[0])


def chased_through_indices(x, steps, n):
    """The amount added to an integer depends on the integer, so the addition cannot be undone."""
    p, s = 0, 1.0
    for i in range(n):
        s = s * x[p % len(x)]
        p = p + steps[p % len(steps)]
    return s


program(chased_through_indices, at=[(vector(5), np.array([1, 2, 0, 3]), 6), (vector(1), np.array([1]), 2)], wrt=[0])


def counter_when_left_early(x, limit):
    """Loops that are left in the middle leave a counter where it is."""
    p, s = 0, 0.0
    for i in range(len(x)):
        p += 2
        for j in range(i):
            s += x[p % len(x)] * x[j] * x[i]
            if s > limit:
                break
            p += 1
    return s * p


program(counter_when_left_early, at=[(np.abs(vector(7)), 2.0), (np.abs(vector(4)), 100.0), (vector(1), 0.0)], wrt=[0])


def nearest_centre(points, centres):
    """The adjoint of a value that only a branch uses is computed in the branch, with its loops."""
    total = 0.0
    for i in range(points.shape[0]):
        closest = 1e300
        for j in range(centres.shape[0]):
            distance = 0.0
            for k in range(points.shape[1]):
                distance += (points[i, k] - centres[j, k]) ** 2
            distance = np.sqrt(distance) * 2.0
            if distance < closest:
                closest = distance
        total += closest
    return total


program(
    nearest_centre, at=[(grid(4, 2), grid(3, 2) + 0.3), (grid(1, 1), grid(1, 1) + 1.0), (np.ones((0, 2)), grid(1, 2))]
)


def sums_of_the_better_side(x, y):
    """Sums that only the other side uses, and sums that both sides use in different ways."""
    total = 0.0
    for i in range(len(x)):
        a, b = 0.0, 1.0
        for j in range(len(y)):
            a += x[i] * y[j] ** 2
            b += y[j] * x[i]
        if a > b:
            total += a * x[i]
        else:
            total += b * b + 0.5 * b
    return total


program(sums_of_the_better_side, at=[(vector(5), vector(3)), (vector(2), array()), (vector(2), -3.0 * vector(2))])


def branch_behind_kept_sums(x, n):
    """The kept values of a `while` are popped from their stack whether the branch after it was taken or not."""
    total = 0.0
    for i in range(n):
        v, w = x[i % len(x)], 0.0
        while v < 3.0:
            w += v * v
            v = v * v + 0.9
        if w > 2.0:
            total += w * x[0]
    return total


program(branch_behind_kept_sums, at=[(vector(4), 5), (vector(1), 1), (vector(2), 0)], wrt=[0])


def branch_behind_sums_in_place(x):
    """A loop that writes into an array is undone whether the branch after it uses its sum or not."""
    buffer, total = x.copy(), 0.0
    for i in range(len(x)):
        s = 0.0
        for j in range(len(x)):
            s += buffer[j] * x[i]
            buffer[j] = buffer[j] * 0.9 + s * 0.01
        if s > 0.3:
            total += s * s
    return total + np.sum(buffer * buffer)


program(branch_behind_sums_in_place, at=[(vector(4),), (vector(1),), (array(),)])


def branches_in_branches_behind_sums(x, y):
    """Sums that are only used where two conditions hold, and one that was used before the branch, too."""
    total = 0.0
    for i in range(len(x)):
        a, b = 0.0, 0.0
        for j in range(len(y)):
            a += x[i] * y[j]
            b += x[i] * y[j] ** 3
        total += 0.1 * b
        if x[i] > 0.0:
            if a > 0.1:
                total += a * a * b
            else:
                total -= b
    return total


program(branches_in_branches_behind_sums, at=[(vector(5), vector(3)), (vector(5), -vector(2)), (vector(3), array())])


# ---------------------------------------------------------------------------------------------------- loops over things


def over_array(a):
    """`for` over a vector, used after the loop."""
    total = 0.0
    for value in a:
        total += value * total + value
    return total * value


program(over_array, at=[(vector(4),), (vector(1),)])


def over_rows(a):
    """`for` over a matrix gives views of its rows: writing to one writes to the matrix."""
    for row in a:
        row[0] = row[0] * row[1]
        row[1] += row[0]
    return a[0, 0] * a[1, 1] + a[1, 0]


program(over_rows, at=[(grid(2, 2),)])


def over_tuple(x, y):
    """`for` over a tuple of expressions."""
    total = 0.0
    for value in (x, y, x * y, 2.0):
        total = total * 0.5 + value * value
    return total


program(over_tuple, at=[(0.7, 0.4)])


def over_list(x, n):
    """`for` over a list that a loop has filled."""
    items = []
    for i in range(n):
        items.append(x * (i + 1))
    total = 0.0
    for item in items:
        total += math.sin(item) * total + item
    return total


program(over_list, at=[(0.3, 4), (0.3, 0)])


def over_enumerate(a):
    """`enumerate`, with and without a start."""
    total = 0.0
    for i, value in enumerate(a):
        total += value * value * i
    for k, value in enumerate(a, 2):
        total = total * 0.9 + value**k
    return total


program(over_enumerate, at=[(vector(3),)])


def over_zip(a, b):
    """`zip` stops at the shorter one."""
    total = 0.0
    for x, y in zip(a, b):
        total += x * y * (1.0 + total)
    return total


program(over_zip, at=[(vector(3), vector(5)), (vector(4), vector(2))])


def over_enumerate_zip(a, b):
    """`enumerate(zip(...))` with nested unpacking."""
    total = 0.0
    for i, (x, y) in enumerate(zip(a, b)):
        if i == 2:
            continue
        total += x**i * y
    return total


program(over_enumerate_zip, at=[(vector(4), vector(4)), (vector(1), vector(2))])


def over_reversed(a, n):
    """`reversed` of a range, of an array and of a list."""
    total = 0.0
    items = [a[0], a[1] * a[1]]
    for i in reversed(range(n)):
        total = total * 0.5 + a[i]
    for value in reversed(a):
        total = total * value + 1.0
    for item in reversed(items):
        total = total + item * total
    return total


program(over_reversed, at=[(vector(4), 3), (vector(2), 0)])


def over_array_changed_in_body(a):
    """An array that changes while it is iterated over: later iterations see the changes."""
    total = 0.0
    for i, value in enumerate(a):
        if i + 1 < len(a):
            a[i + 1] = a[i + 1] + value * value
        total += value * total + value
    return total


program(over_array_changed_in_body, at=[(vector(4),), (vector(1),)])


def over_integer_array(x, weights):
    """`for` over an array of integers."""
    total = 0.0
    for w in weights:
        total += x**w * w
    return total


program(over_integer_array, at=[(0.8, np.array([2, 0, 3])), (0.8, np.zeros(0, dtype=np.int64))])


# ------------------------------------------------------------------------------------------------------------ tuples


def sine_and_cosine(x):
    return math.sin(x), math.cos(x)


def nested_pair(x, y):
    return (x * y, x), y + 1.0


class Particle(NamedTuple):
    position: float
    velocity: float


def advance(particle, dt):
    return Particle(particle.position + dt * particle.velocity, particle.velocity - dt * math.sin(particle.position))


def tuple_from_helper(x):
    """A helper that returns a tuple, unpacked and indexed."""
    s, c = sine_and_cosine(x)
    both = sine_and_cosine(s * c)
    return s * both[1] + c * both[0] + len(both)


program(tuple_from_helper, at=[(0.7,)])


def nested_tuples(x, y):
    """Tuples in tuples: made, indexed, unpacked, rebuilt."""
    t = ((x, y), x * y)
    (a, b), c = t
    t = (t[0], (c, a))
    (d, e), f = nested_pair(t[1][0], b)
    return t[0][1] * t[1][1] + d * e - f * t[1][0]


program(nested_tuples, at=[(0.7, 1.3)])


def tuple_argument(pair, x):
    """A tuple as an argument has a tuple as its gradient."""
    a, b = pair
    return a * x + b * b * pair[0]


program(tuple_argument, at=[((0.7, 1.3), 0.4)])


def tuple_carried_by_loop(x, n):
    """A tuple that a loop replaces."""
    state = (x, 1.0)
    for i in range(n):
        p, v = state
        state = (p + 0.1 * v, v - 0.1 * p * p)
    return state[0] * state[1]


program(tuple_carried_by_loop, at=[(0.7, 4), (0.7, 0)])


def tuple_chosen_by_branch(x, y):
    """A tuple bound in both branches."""
    pair = (x, y) if x > y else (y * y, x)
    return pair[0] - 2.0 * pair[1] * pair[0]


program(tuple_chosen_by_branch, at=[(0.9, 0.3), (0.3, 0.9)])


def namedtuple_steps(x, v, n):
    """A namedtuple made by a helper in a loop, read by field, index and unpacking."""
    particle = Particle(x, velocity=v)
    for _ in range(n):
        particle = advance(particle, 0.1)
    position, velocity = particle
    return particle.position * velocity + particle[1] * position


program(namedtuple_steps, at=[(0.7, 0.2, 3), (0.7, 0.2, 0)])


def namedtuple_argument(particle):
    """A namedtuple as an argument."""
    return particle.position**2 + math.sin(particle.velocity) * particle.position


program(namedtuple_argument, at=[(Particle(0.7, 0.3),)])


def tuple_of_arrays(a, n):
    """Arrays in tuples are the same arrays."""
    pair = (a.copy(), a)
    for i in range(n):
        pair[0][i] = pair[1][i] * a[0]
        pair[1][i] += pair[0][i]
    return pair[0][0] * a[1] + a[0]


program(tuple_of_arrays, at=[(vector(3), 2), (vector(3), 0)])


def tuple_comparison_free(x, y):
    """A tuple of integers and reals, and the integer used as an index."""
    choice = (1, x * y)
    values = (x, y, x + y)
    return values[1] * choice[1] + values[-1] * choice[0]


program(tuple_comparison_free, at=[(0.7, 0.2)])


# ------------------------------------------------------------------------------------------------------------- lists


def appended_to_a_list(x):
    """Values appended to a list keep their derivative."""
    y = x * x
    items = []
    items.append(y)
    return x + sum(items)


program(appended_to_a_list, at=[(1.0,)], exact=[(3.0,)])


def list_as_stack(x, n):
    """`append` and `pop` as a stack, with its length asked."""
    stack = [x]
    for i in range(n):
        stack.append(stack[-1] * x + i)
        if len(stack) > 3:
            top = stack.pop()
            stack[-1] = stack[-1] * top
    total = 0.0
    while len(stack) > 0:
        total = total * 0.5 + stack.pop()
    return total


program(list_as_stack, at=[(0.6, 5), (0.6, 1), (0.6, 0)])


def pop_from_front(x, y):
    """`pop(0)` takes the first."""
    queue = [x, y, x * y]
    first = queue.pop(0)
    queue.append(first * 2.0)
    second = queue.pop(0)
    return first * second + queue[0] * queue[1] + len(queue)


program(pop_from_front, at=[(0.6, 1.7)])


def list_grown_in_a_branch(x, n):
    """A list that only some iterations grow."""
    items = [x]
    for i in range(n):
        if i % 2 == 0:
            items.append(items[-1] * x)
        elif i > 4:
            break
        else:
            items[0] = items[0] * 1.1
    return items[0] * items[-1] + sum(items)


program(list_grown_in_a_branch, at=[(0.8, 0), (0.8, 1), (0.8, 4), (0.8, 7)])


def list_comprehension(a, x):
    """List comprehensions, with a condition, and nested in `sum`."""
    squares = [value * x for value in a if value > 0.0]
    total = sum([s * s for s in squares])
    table = [i * x for i in range(4)]
    return total + table[2] * table[3] + len(squares)


program(list_comprehension, at=[(array(0.5, -0.3, 0.9), 1.3), (array(-0.5), 1.3)])


def list_written_in_place(x, y):
    """A list's elements overwritten, read before and after."""
    items = [x, y, 0.5]
    first = items[0]
    items[0] = items[1] * items[1]
    items[2] += items[0] * first
    items[1], items[2] = items[2], items[1]
    return items[0] * items[1] + items[2]


program(list_written_in_place, at=[(0.6, 1.7)])


def list_aliased(x):
    """Two names of one list."""
    items = [x, x * x]
    other = items
    other.append(x * 3.0)
    other[0] = other[2] * items[1]
    return items[0] + len(items) * items[-1]


program(list_aliased, at=[(0.6,)])


def fill(items, x, n):
    for i in range(n):
        items.append(x * (i + 1) * x)
    return len(items)


def list_passed_to_helper(x, n):
    """A helper appends to the caller's list."""
    items = [x]
    count = fill(items, x, n)
    return items[-1] * count + items[0]


program(list_passed_to_helper, at=[(0.6, 3), (0.6, 0)])


def list_returned_from_helper(x, n):
    """A helper that makes a list and returns it."""

    def powers(base, count):
        result = [1.0]
        for _ in range(count):
            result.append(result[-1] * base)
        return result

    table = powers(x, n)
    return table[n] + sum(table)


program(list_returned_from_helper, at=[(0.6, 3), (0.6, 0)])


def triangle_of_lists(x):
    """A list of lists that grow, each of another length."""
    rows = []
    for i in range(len(x)):
        row = []
        for j in range(i + 1):
            row.append(x[i] * x[j])
        rows.append(row)
    total = 0.0
    for i in range(len(rows)):
        for j in range(len(rows[i])):
            total += rows[i][j] ** 2 * (i + 1)
    return total


program(triangle_of_lists, at=[(vector(4),), (vector(1),), (vector(0),)])


def buckets(x, n):
    """Elements of a list of lists grow in an order known at run time; some stay empty."""
    parts = [[] for _ in range(n)]
    for i in range(len(x)):
        if x[i] > 0.0:
            parts[i % n].append(x[i] * x[i])
    product = 1.0
    for part in parts:
        total = 1.0
        for value in part:
            total += value
        product *= total
    return product


program(buckets, at=[(vector(6), 3), (vector(6), 1), (vector(2), 5)])


def matrix_of_lists(x, n):
    """Elimination with pivots on a list of lists: rows are swapped and overwritten."""
    a = [[x[i] * x[j] + (5.0 if i == j else 0.3 * i) for j in range(n)] for i in range(n)]
    a[0][0] = 0.01 * x[0]
    determinant = 1.0
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i][k]) > abs(a[pivot][k]):
                pivot = i
        if pivot != k:
            a[k], a[pivot] = a[pivot], a[k]
            determinant = -determinant
        determinant *= a[k][k]
        for i in range(k + 1, n):
            factor = a[i][k] / a[k][k]
            for j in range(k, n):
                a[i][j] -= factor * a[k][j]
    return determinant


program(matrix_of_lists, at=[(array(0.7, 1.3, 0.9, 1.7), 4), (array(0.7, 1.3), 2), (array(0.7), 1)])


def table_of_lists(x, n):
    """Each list is made from the one before, as in dynamic programming."""
    table = [[1.0]]
    for i in range(n):
        before = table[-1]
        new = [x[0]]
        for j in range(len(before) - 1):
            new.append(before[j] + x[j] * before[j + 1])
        new.append(x[i] * before[-1])
        table.append(new)
    return sum([sum(row) for row in table])


program(table_of_lists, at=[(vector(4), 4), (vector(4), 1), (vector(4), 0)])


def paths_on_a_stack(x, n):
    """A list of lists as a stack: a popped list is independent of the stack."""
    stack = [[x[0]]]
    total = 0.0
    while stack:
        path = stack.pop()
        if len(path) == n:
            product = 1.0
            for value in path:
                product *= value
            total += product
            continue
        for k in range(len(x)):
            stack.append(path + [x[k]])
    return total


program(paths_on_a_stack, at=[(vector(3), 3), (vector(2), 1)])


def list_with_a_name_in_a_list(x, n):
    """A list that is an element of another list can still be changed by its own names."""
    rows = []
    for i in range(n):
        row = [x[0]]
        rows.append(row)
        for j in range(3):
            row.append(x[j] * (i + 1.0) * row[-1])
        row[0] = rows[0][0] * x[1]
    a = np.array(rows)
    return np.sum(a @ a.T)


program(list_with_a_name_in_a_list, at=[(array(0.7, 1.3, 0.9), 3), (array(0.7, 1.3, 0.9), 1)])


def lists_in_tuples_in_a_list(x, n):
    """Elements that are tuples of numbers and lists; integers that become floats."""
    pairs = []
    for i in range(n):
        pairs.append((x[i], [0, i]))
    for weight, items in pairs:
        items.append(weight * 3.0)
        items[0] = weight * items[1]
    total = 0.0
    for weight, items in pairs:
        total += weight * items[0] * items[2] + len(items)
    return total


program(lists_in_tuples_in_a_list, at=[(vector(4), 4), (vector(4), 0)])


def methods_of_lists_in_a_list(x, n):
    """Lists inside of a list support the same operations as other lists."""
    rows = [[x[i], x[i + 1], x[i + 2]] for i in range(n)]
    rows[0].insert(1, x[4])
    rows[1].reverse()
    rows[-1].sort()
    rows[0].pop(0)
    rows[1][1:2] = [x[2] * x[3], x[0]]
    rows[1].extend(rows[0])
    rows[2] += [x[0] * x[1]]
    del rows[0][1]
    for value in rows[0]:
        rows[1].append(value * x[2])
    last = rows.pop()
    last.append(max(rows[0]))
    rows.append([value * last[0] for value in last])
    return sum([row[0] * row[-1] * len(row) for row in rows]) + rows[1][3] * last[1]


program(methods_of_lists_in_a_list, at=[(array(0.7, 1.3, 0.9, 1.7, 0.4), 3)])


def rows_pushed_and_popped(x, n):
    """Elements of inner lists are overwritten many times."""
    rows = [[] for _ in range(n)]
    total = 0.0
    for i in range(12):
        k = i % n
        if len(rows[k]) > 1:
            total += rows[k].pop() * x[k]
        else:
            rows[k].append(x[i % 5] * (1.0 + total))
    return total


program(rows_pushed_and_popped, at=[(array(0.7, 1.3, 0.9, 1.7, 0.4), n) for n in (1, 2, 3)])


def turned_and_reshaped(x, a, n):
    """An array whose elements are in another order in memory is reshaped, in every iteration of a loop."""
    for _ in range(n):
        a[0, 0, 0] += np.cos(a[-1, 1, 1])
        a = (x * a.reshape(3, -1, 2)).T
    return np.sum(np.linspace(0.3, 1.2, 12).reshape((2, 2, 3)) * a)


program(turned_and_reshaped, at=[(1.4, vector(12).reshape(2, 2, 3), n) for n in (2, 3, 0)])


def single_precision_stored_and_read(a):
    """A value stored in single precision is read by an adjoint of double precision."""
    a = np.sin(a)
    a[:] = a[None,] @ np.where(a < 0.093, a, 0.5)
    total = 0.0
    for value in a:
        total += value
    return total


program(
    single_precision_stored_and_read,
    at=[(np.array([0.53, 0.82], np.float32),), (np.array([0.01, 0.82], np.float32),)],
    single_precision=True,
)


def list_made_in_a_loop_and_grown(b):
    """A list that a loop may never make; the next loop carries it under two names."""
    for row in b:
        history = [row[1]]
    for _ in range(4):
        history.append(0.5 * history[-1])
        history[0] *= 1.1
    return sum(history) * history[0]


program(
    list_made_in_a_loop_and_grown,
    at=[(vector(4).reshape(2, 2),)],
    raises=[((np.zeros((0, 2)),), UnboundLocalError)],
)


def list_of_integers_as_index(a, x):
    """A list of integers used as indices."""
    order = [2, 0]
    order.append(1)
    total = x
    for k in order:
        total = total * a[k] + a[k]
    return total


program(list_of_integers_as_index, at=[(vector(3), 0.7)])


def list_replaced_in_loop(x, n):
    """A list replaced by a new one each iteration, of another length."""
    items = [x, 1.0]
    for _ in range(n):
        longer = [items[0] * items[1]]
        for item in items:
            longer.append(item * 0.5 + x)
        items = longer
    return sum(items) * items[0]


program(list_replaced_in_loop, at=[(0.6, 3), (0.6, 0)])


def list_argument(items, x):
    """A list as an argument; appending to it does not change the caller's."""
    items.append(x * items[0])
    items[1] = items[1] * items[2]
    return items[1] + items[-1] * x


program(list_argument, at=[([0.3, 0.5, 0.7], 1.2)], wrt=[1])


def list_argument_differentiated(items, n):
    """A list as an argument has a list as its gradient, of the length it came with."""
    for i in range(n):
        items.append(items[i] * items[-1])
    last = items.pop()
    return last * items[0] + sum(items)


program(list_argument_differentiated, at=[([0.3, 0.5, 0.7], 2), ([0.3], 1)])


def list_of_tuples(x, n):
    """A list whose elements are tuples."""
    history = [(x, 1.0)]
    for i in range(n):
        p, v = history[-1]
        history.append((p * v, v + x))
    total = 0.0
    for p, v in history:
        total += p * v
    return total


program(list_of_tuples, at=[(0.6, 3), (0.6, 0)])


def list_of_arrays(a, n):
    """A list whose elements are arrays."""
    states = [a]
    for _ in range(n):
        u = states[-1].copy()
        u[0] = u[0] * u[1]
        u[1] = math.sin(u[0])
        states.append(u)
    total = 0.0
    for state in states:
        total += state[0] * state[1]
    return total


program(list_of_arrays, at=[(vector(2), 3), (vector(2), 0)])


def pop_from_empty(x, n):
    """`pop` from an empty list raises as Python does."""
    items = [x]
    for _ in range(n):
        x = x * items.pop()
    return x


program(pop_from_empty, at=[(0.6, 1)], raises=[((0.6, 2), IndexError)])


# --------------------------------------------------------------------------------------------------------- functions

SCALE = 1.7
TABLE = np.array([0.3, 0.9, -0.4])
LIMITS = (0.25, 2.5)


def square(x):
    return x * x


def smooth_step(x, edge=0.5, width=0.3):
    """Early return, defaults."""
    t = (x - edge) / width
    if t < -1.0:
        return 0.0
    if t > 1.0:
        return 1.0
    return 0.5 + t * (0.75 - 0.25 * t * t)


def helper_calls(x):
    """Calls of plain functions, nested, with positional, keyword and default arguments."""
    return (
        square(square(x) + 1.0) + smooth_step(x) * smooth_step(x, width=2.0) + smooth_step(width=0.7, x=x, edge=x * x)
    )


program(helper_calls, at=[(0.6,), (0.1,), (1.4,)])


@njit
def compiled_helper(x, n):
    total = 0.0
    for i in range(n):
        if i % 2:
            continue
        total += math.sin(x * (i + 1)) * x
    return total


@njit
def compiled_caller(x, n):
    return compiled_helper(x, n) * compiled_helper(x * x, n + 1)


def njit_helper(x, n):
    """Functions compiled with `@njit`, which call each other."""
    y = compiled_helper(x, n)
    return compiled_caller(y + x, n) + y


program(njit_helper, at=[(0.6, 3), (0.6, 0)])


def helper_writes_array(a, i):
    a[i] = a[i] * a[i]
    a[i - 1] += a[i]


def helper_with_side_effect(a, n):
    """A helper that returns nothing and writes to its argument."""
    for i in range(n):
        helper_writes_array(a, i)
    return a[0] * a[-1]


program(helper_with_side_effect, at=[(vector(3), 3), (vector(3), 0)])


def larger(a, b):
    """Returns one of its arguments."""
    if a[0] > b[0]:
        return a
    return b


def helper_returns_its_argument(a, b):
    """A helper that returns one of the arrays it was given: writing to it writes to that array."""
    chosen = larger(a, b)
    chosen[0] = chosen[0] * chosen[1]
    return a[0] * b[0] + a[1] - b[1] * b[1]


program(helper_returns_its_argument, at=[(array(0.3, 0.7), array(0.5, 0.2)), (array(0.6, 0.7), array(0.5, 0.2))])


def nested_function(x, n):
    """A nested function that reads the enclosing variables."""
    scale = x * x

    def term(k):
        if k % 2:
            return scale * k
        return math.sin(k * x)

    total = 0.0
    for i in range(n):
        total += term(i)
    return total


program(nested_function, at=[(0.6, 4), (0.6, 0)])


def closure_sees_later_values(x):
    """A nested function sees the value a variable has when it is called."""
    scale = x

    def scaled(y):
        return scale * y

    first = scaled(x)
    scale = scale * scale
    return first + 3.0 * scaled(x)


program(closure_sees_later_values, at=[(0.6,)], exact=[(2.0 * 0.6 + 9.0 * 0.36,)])


def closure_in_a_loop(x, n):
    """A nested function defined in a loop."""
    total = 0.0
    for i in range(n):

        def power(y):
            return y**i + total

        total = power(x) * 0.5
    return total


program(closure_in_a_loop, at=[(0.6, 4), (0.6, 0)])


def lambdas(x, y):
    """Lambdas bound to names, called in place and returned by the ternary."""
    double = lambda t: 2.0 * t * y  # noqa: E731
    chosen = (lambda t: t * t) if x > 0.0 else (lambda t: -t)
    return double(x) + (lambda s, t: s * t)(x, y) + chosen(y)


program(lambdas, at=[(0.6, 1.1), (-0.6, 1.1)])


def apply_twice(f, x):
    return f(f(x))


def integrate(f, low, high, n, *parameters):
    h = (high - low) / n
    total = 0.0
    for i in range(n):
        total += f(low + (i + 0.5) * h, *parameters)
    return total * h


def damped(t, rate, frequency):
    return math.exp(-rate * t) * math.cos(frequency * t)


def functions_as_arguments(x, rate):
    """Functions passed to functions: plain, nested, lambda, library."""

    def shifted(t):
        return t + rate * math.sin(t)

    return (
        apply_twice(square, x) + apply_twice(shifted, x) + apply_twice(lambda t: t * rate, x) + apply_twice(math.sin, x)
    )


program(functions_as_arguments, at=[(0.6, 0.3)])


def star_arguments(rate, frequency, high):
    """`*args` collects and passes on."""
    parameters = (rate, frequency)
    return integrate(damped, 0.0, high, 4, *parameters) + integrate(damped, 0.0, 1.0, 3, rate, 2.0)


program(star_arguments, at=[(0.6, 1.3, 2.0)])


def sum_of_all(*values):
    total = 0.0
    for k, value in enumerate(values):
        total += value * value * k
    return total + len(values)


def star_arguments_of_the_program(x, *rest):
    """The differentiated function itself has `*args`."""
    return x * sum_of_all(*rest) + sum_of_all(x, x * x, rest[0])


program(star_arguments_of_the_program, at=[(0.6, 1.3, 0.4)], wrt=[0])


def function_argument(f, x):
    """A function given as an argument of the differentiated function."""
    return f(x) * x + f(2.0 * x)


program(function_argument, at=[(square, 0.6), (math.sin, 0.6), (smooth_step, 0.6)])


def flags(x, mode, flag, weight=None):
    """Strings, None and booleans select the branch at compile time."""
    if mode == "square":
        x = x * x
    elif mode in ("sine", "sin"):
        x = math.sin(x)
    if weight is None:
        weight = 1.0
    if flag:
        x = x * weight
    return x if not flag or mode != "sine" else x * x


program(
    flags,
    at=[
        (0.6, "square", True, 2.0),
        (0.6, "sine", True, 0.5),
        (0.6, "sin", False, 2.0),
        (0.6, "none", False),
        (0.6, "sine", True, None),
    ],
    wrt=[0],
)


def factorial_like(x, n):
    if n <= 0:
        return 1.0
    return (x + n) * factorial_like(x * 0.9, n - 1)


def recursion(x, n):
    """A function that calls itself."""
    return factorial_like(x, n) * x


program(recursion, at=[(0.6, 4), (0.6, 0)])


def self_recursive(x, n):
    """The differentiated function calls itself, twice, with early return."""
    if n <= 1:
        return math.sin(x)
    half = self_recursive(x * 0.5, n - 1)
    return half * self_recursive(x + half, n - 2) + x


program(self_recursive, at=[(0.6, 4), (0.6, 1)])


def even_part(x, n):
    if n == 0:
        return x
    return math.sin(odd_part(x * 1.1, n - 1))


def odd_part(x, n):
    if n == 0:
        return x * x
    y = even_part(x, n - 1)
    return y * x + y


def mutual_recursion(x, n):
    """Two functions that call each other."""
    return even_part(x, n) + odd_part(x, n)


program(mutual_recursion, at=[(0.6, 5), (0.6, 2), (0.6, 0)])


def sum_tree(a, low, high):
    if high - low == 1:
        return a[low] * a[low]
    middle = (low + high) // 2
    left = sum_tree(a, low, middle)
    a[low] = left
    return left * math.cos(sum_tree(a, middle, high)) + a[low]


def recursion_over_array(a):
    """Divide and conquer that also writes to the array."""
    return sum_tree(a, 0, len(a)) + a[0]


program(recursion_over_array, at=[(vector(5),), (vector(1),)])


def global_constants(x):
    """Numbers, tuples and arrays of the module are constants."""
    total = SCALE * x
    for i in range(len(TABLE)):
        total += TABLE[i] * x**i
    if total > LIMITS[1]:
        total = LIMITS[1] * x
    return max(total, LIMITS[0] * x)


program(global_constants, at=[(0.6,), (3.0,), (-0.5,)])


def make_model(weights, power):
    """A closure over an array and a number."""

    def model(x):
        """A function made by another function reads the variables of its closure."""
        total = 0.0
        for i in range(weights.shape[0]):
            total += weights[i] * x ** (power + i)
        return total

    return model


program(make_model(np.array([0.4, -1.2, 0.3]), 2), at=[(0.6,)])


def printing(x, verbose):
    """Prints with f-strings do not disturb the derivative."""
    y = x * x
    if verbose:
        print(f"y = {y:.3f} at {x}")
        print("twice", 2.0 * y, 3)
    return y * x


program(printing, at=[(0.6, True), (0.6, False)])


def asserting(x):
    """`assert` holds or raises."""
    assert x > 0.0
    y = math.sqrt(x)
    assert y < 2.0, "too large"
    return y * x


program(asserting, at=[(0.6,)], raises=[((-1.0,), AssertionError), ((9.0,), AssertionError)])


def raising(x, n):
    """`raise` ends the gradient as it ends the program."""
    total = 0.0
    for i in range(n):
        total += x * x * i
        if total > 3.0:
            raise ValueError("total too large")
    if n < 0:
        raise RuntimeError(f"n = {n}")
    return total


program(raising, at=[(0.6, 4), (0.6, 0)], raises=[((1.5, 6), ValueError), ((0.6, -1), RuntimeError)])


def raise_in_helper_of_branch(x):
    if x < 0.0:
        raise ValueError("negative")
    return math.sqrt(x)


def raising_in_helper(x, y):
    """A helper that raises in the branch that is not always taken."""
    if y > 0.0:
        return raise_in_helper_of_branch(x) * y
    return x * y


program(raising_in_helper, at=[(0.6, 1.0), (0.6, -1.0), (-0.6, -1.0)], raises=[((-0.6, 1.0), ValueError)])


# ------------------------------------------------------------------------------------------------------- exceptions


def checked_square(x, limit=2.0):
    """Raises an exception above the limit."""
    if x > limit:
        raise ValueError("too large")
    return x * x


def exception_of_a_helper(x):
    """The caller catches an exception that a helper raises in the middle of an expression."""
    try:
        y = checked_square(x) + 3.0 * checked_square(2.0 * x)
    except ValueError:
        y = 5.0 * x
    else:
        y += x
    return y


program(exception_of_a_helper, [(0.7,), (1.5,), (2.5,)])


def exception_in_a_loop(x):
    """Some iterations raise; `finally` runs in all of them, also before a `break`."""
    total = 0.0
    for v in x:
        try:
            total += checked_square(v)
        except ValueError:
            total += math.sin(v)
            if total > 20.0:
                break
        finally:
            total *= 1.25
    return total


program(exception_in_a_loop, [(array(0.5, 1.0, 3.0, 0.2),), (array(9.0, 1.5, 8.0, 7.0, 1.9, 1.9, 1.9, 3.0),)])


def exception_out_of_loops(x):
    """A `try` around loops: what they have computed until then is kept."""
    total, rounds = 0.0, 0
    try:
        while True:
            for v in x:
                total += checked_square(v * (1.0 + rounds), 6.0)
            rounds += 1
    except ValueError:
        total *= 2.0 + rounds
    return total


program(exception_out_of_loops, [(array(0.5, 1.1, 0.9),), (array(7.0, 0.3),)])


def exceptions_nested(x):
    """An exception that an inner `try` does not catch leaves it after its `finally`."""
    y = x
    try:
        try:
            if x < 0.0:
                raise KeyError("negative")
            y = checked_square(x) * 3.0
        except KeyError:
            y = -x
        finally:
            x = 2.0 * x
        y += x
    except ValueError:
        y = x * x * x
    return y * x


program(exceptions_nested, [(0.5,), (3.0,), (-0.5,)])


def exception_raised_again(x):
    """`raise` in an `except`, and another exception from there, reach the `try` around."""

    def inner(v):
        try:
            return checked_square(v)
        except ValueError as error:
            if v > 4.0:
                raise KeyError("far too large") from error
            if v > 3.0:
                raise
            return 7.0 * v

    total = 0.0
    for k in range(4):
        try:
            total += inner(x + k)
        except KeyError:
            total += 0.5 * x
        except ValueError:
            total += 0.25 * x * x
    return total


program(exception_raised_again, [(1.5,), (0.3,)])


def division_caught(x, y):
    """A test predicts a division by zero of Python's numbers, also of numbers that a loop carries."""
    total = x
    for k in range(5):
        try:
            total = total * 0.5 + x / (k - 2) + total / (y - k)
        except ZeroDivisionError:
            total = total * x
    return total


program(division_caught, [(1.5, 7.5), (1.5, 3.0)], wrt=[0])


def domain_error_caught(x, y):
    """Tests predict the exceptions of `math`: arguments outside of the domain, and results that are too large."""
    total = 0.0
    for v in (x, y, x - y):
        try:
            total += math.log(v) + math.sqrt(3.0 - v) + math.acos(v / 4.0)
        except ValueError:
            total += v * v
    try:
        total += math.exp(3.0 * y**3)
    except OverflowError:
        total += y
    return total


program(domain_error_caught, [(1.5, 0.5), (5.0, 6.5), (-1.0, 1.0)])


def index_error_ends_a_loop(x):
    """An index out of range ends a loop that has no other end."""
    total, k = 0.0, 0
    while True:
        try:
            total += x[k] * x[k + 1]
        except IndexError:
            break
        k += 1
    return total


program(index_error_ends_a_loop, [(vector(4),), (vector(1),)])


def key_error_chooses_a_default(x):
    """A key that is not in a dictionary is known when the function is compiled."""
    options = {"scale": x}
    try:
        shift = options["shift"]
    except KeyError:
        shift = 2.0
    return options["scale"] * shift * x


program(key_error_chooses_a_default, [(1.5,)])


def jitter_until_positive_definite(x):
    """A matrix gets a larger diagonal until it has a Cholesky factor."""
    k = np.array([[x, 2.0], [2.0, 1.0]])
    jitter = 1e-3
    for _ in range(8):
        try:
            factor = np.linalg.cholesky(k + jitter * np.eye(2))
            break
        except np.linalg.LinAlgError:
            jitter *= 10.0
    else:
        raise ValueError("no factor")
    return factor[1, 1] + factor[1, 0] * jitter


program(jitter_until_positive_definite, [(5.0,), (1.7,)], raises=[((-1e6,), ValueError)])


def inverse_or_transpose(a, scale):
    """A singular matrix has no inverse: LAPACK reports it, and the exception is caught."""
    try:
        b = np.linalg.inv(a * scale)
    except np.linalg.LinAlgError:
        b = a.T
    return np.sum(b * b[0])


program(inverse_or_transpose, [(np.array([[2.0, 1.0], [0.5, 1.5]]), k) for k in (2, 0)])


def comprehension_that_raises(x):
    """An exception in a comprehension, a conditional expression and an `and`."""
    try:
        roots = [math.sqrt(v) for v in x]
        total = sum(roots) + (math.log(x[0] - 0.4) if x[0] < 2.0 else x[0])
        if x[1] > 0.7 and math.log(x[1] - 0.6) < 1.0:
            total *= 2.0
    except ValueError:
        total = x[0] * x[-1]
    return total


program(comprehension_that_raises, [(array(0.5, 0.8),), (array(0.3, 2.0),), (array(3.0, -2.0),), (array(2.5, 0.2),)])


def safely(function, x, default):
    """Any function, or a default where it is not defined."""
    try:
        return function(x)
    except (ValueError, ZeroDivisionError):
        return default


def safe_calls(x):
    """A helper with a `try` around what it is given."""
    return safely(lambda t: 1.0 / t, x, x) + safely(math.log, x - 1.0, x * x)


program(safe_calls, [(3.0,), (0.5,)])


def assertion_caught(x):
    """An assertion that fails, and a name that is assigned before it."""
    seen = 0.0
    try:
        seen = x * x
        assert x > 1.0, "too small"
        y = x**3
    except (AssertionError, ArithmeticError):
        y = -x * seen
    finally:
        seen += 1.0
    return y * seen


program(assertion_caught, [(0.5,), (1.5,)])


# -------------------------------------------------------------------------------------------------- arrays as memory


def in_place_after_use(x):
    """An element overwritten after it was read; the caller's array stays as it was."""
    y = x[0]
    x[0] = y * y
    x[1] += x[0]
    return x[0] * x[1]


program(in_place_after_use, at=[(array(2.0, 3.0),)], exact=[(array(44.0, 4.0),)])


def write_through_view(a):
    """Writing to a row writes to the matrix."""
    row = a[1]
    row[0] = a[0, 0] ** 2
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * a[i, j]
    return total


program(write_through_view, at=[(grid(2, 3),)])


def product_over_range(a, n):
    """The product kernel that Warp differentiates wrongly."""
    p = 1.0
    for i in range(n):
        p = p * a[i]
    return p


program(
    product_over_range,
    at=[(array(2.0, 3.0, 5.0), 3), (array(2.0, 3.0, 5.0), 0)],
    exact=[(array(15.0, 10.0, 6.0),), (array(0.0, 0.0, 0.0),)],
)


def multiply_in_place(x, y):
    """`y[i] *= x[i]`, and the product read again."""
    for i in range(len(x)):
        y[i] *= x[i]
    total = 0.0
    for i in range(len(x)):
        total += y[i] * y[i]
    return total


program(multiply_in_place, at=[(vector(3), vector(4))])


def square_in_place(y, n):
    """`y[i] = y[i] * y[i]`, several times over."""
    for _ in range(n):
        for i in range(len(y)):
            y[i] = y[i] * y[i]
    total = 0.0
    for i in range(len(y)):
        total += y[i]
    return total


program(square_in_place, at=[(array(1.1, -0.9, 0.5), 3), (array(1.1, -0.9, 0.5), 0)])


def augmented_elements(a, x):
    """Every augmented operator on elements."""
    a[0] += x * a[1]
    a[1] -= a[0] * a[1]
    a[0] /= 1.0 + x * x
    a[1] *= a[1]
    a[-1] **= 2
    a[0] %= 5.0
    return a[0] * a[1] + a[-1]


program(augmented_elements, at=[(array(0.7, 1.3, 0.4), 0.9), (array(0.7, 1.3), 0.9)])


def element_zeroed_between_uses(a):
    """A constant that overwrites an element cuts off the old value, not later ones."""
    first = a[0] * a[1]
    a[0] = 0.0
    second = a[0] * a[1] + a[1]
    a[0] = second
    return first * 3.0 + a[0] * a[0]


program(element_zeroed_between_uses, at=[(array(0.7, 1.3),)])


def negative_indices(a, k):
    """Negative indices, constant and computed."""
    a[-1] = a[-2] * a[k]
    a[k] += a[-1] * a[-len(a)]
    return a[-1] * a[k - 1] + a[len(a) - 1]


program(negative_indices, at=[(vector(4), -3), (vector(4), 2), (vector(4), 0), (vector(4), -1)])


def four_dimensions(a):
    """A four-dimensional array, read and written."""
    n, m, p, q = a.shape
    total = 0.0
    for i in range(n):
        for j in range(m):
            for k in range(p):
                for last in range(q):
                    a[i, j, k, last] = a[i, j, k, last] * a[0, j, 0, last] + 0.1 * total
                    total += a[i, j, k, last] * (i + 1)
    return total


program(four_dimensions, at=[(grid(2, 1, 2, 2),)])


def three_dimensions_by_parts(a, i):
    """Partial indices one after another: `a[i][j][k]`, `a[i, j][k]`, `a[i][j, k]`."""
    plane = a[i]
    line = plane[1]
    line[0] = a[i][0][1] * a[i, 1][1]
    plane[0, 1] = a[i - 1][0, 0] * line[0]
    a[i, 0][0] += a[i, 0, 1] ** 2
    return a[i, 0, 0] * a[i, 1, 0] + plane[0, 1]


program(three_dimensions_by_parts, at=[(grid(2, 2, 2), 1), (grid(2, 2, 2), 0)])


def slices_as_views(a, n):
    """Slices of a vector are views: with bounds, steps, negative steps, open ends."""
    middle = a[1:n]
    for i in range(len(middle)):
        middle[i] = middle[i] * a[i]
    every = a[::2]
    for i in range(len(every)):
        every[i] += a[0] * 0.5
    backward = a[::-1]
    backward[0] = backward[-1] * backward[1]
    tail = a[-2:]
    return tail[0] * tail[1] + middle.size * a[0] + every[-1] ** 2


program(slices_as_views, at=[(vector(5), 4), (vector(6), 10), (vector(5), 1)])


def columns_and_blocks(a):
    """Columns, blocks and views of views."""
    column = a[:, 1]
    column[0] = column[1] * a[0, 0]
    block = a[0:2, 1:]
    block[1, 1] += block[0, 0] * block[0, 0]
    inner = block[1]
    inner[0] = inner[1] * column[0]
    corner = a[1:][0][:2]
    return corner[0] * corner[1] + column[-1] + block[1, 1] * inner[0]


program(columns_and_blocks, at=[(grid(3, 3),), (grid(2, 4),)])


def transposed_view(a):
    """The transpose is a view."""
    t = a.T
    t[0, 1] = t[1, 0] * a[0, 0]
    a[0, 1] += t[0, 1]
    return t[1, 0] * t[0, 1] + a[1, 0]


program(transposed_view, at=[(grid(2, 3),)])


def view_moves_in_loop(a):
    """A name bound to another view each iteration."""
    row = a[0]
    for i in range(1, a.shape[0]):
        previous = row
        row = a[i]
        for j in range(a.shape[1]):
            row[j] = row[j] * previous[j] + 0.2
    return row[0] * row[1] + previous[0]


program(view_moves_in_loop, at=[(grid(4, 2),)])


def view_outlives_rebinding(a):
    """A view keeps its array when the array's name is bound to another."""
    row = a[0]
    a = a.copy()
    a[0, 0] = 3.0 * row[0] * row[0]
    row[1] = a[0, 0] * row[1]
    return a[0, 1] * row[1] + a[0, 0]


program(view_outlives_rebinding, at=[(grid(2, 2),)])


def view_chosen_by_branch(a, b, flag):
    """A name for one of two arrays, written through."""
    target = a if flag else b
    target[0] = a[1] * b[1]
    target[1] *= target[0]
    return a[0] * b[0] + a[1] * b[1]


program(view_chosen_by_branch, at=[(vector(2), array(0.4, 1.6), True), (vector(2), array(0.4, 1.6), False)])


def view_chosen_by_value(a, b):
    """A value decides which array a name refers to, and both arrays are written before and after."""
    if a[0] > b[0]:
        target = a
        other = b
    else:
        target = b
        other = a
    target[0] = target[0] * other[1]
    a[1] += target[0]
    other[0] = other[0] * a[1]
    return a[0] * b[0] + a[1] + b[1] * b[1]


program(view_chosen_by_value, at=[(array(0.3, 0.7), array(0.5, 0.2)), (array(0.6, 0.7), array(0.5, 0.2))])


def creation(x, n):
    """Arrays made by zeros, ones, full, empty, copy and their `_like`."""
    a = np.zeros(n)
    b = np.ones((2, n))
    c = np.full(n, x)
    d = np.empty(n)
    for i in range(n):
        a[i] = x * i
        d[i] = c[i] * a[i] + b[1, i]
        b[0, i] += d[i]
    e = np.zeros_like(b)
    f = np.ones_like(a)
    g = np.full_like(a, x * x)
    h = np.empty_like(a)
    for i in range(n):
        h[i] = e[1, i] + f[i] * g[i]
        e[1, i] = h[i] * b[0, i]
    k = e.copy()
    k[1, 0] *= e[1, n - 1]
    return k[1, 0] + e[1, 0] * c[0] + np.copy(d)[n - 1]


program(creation, at=[(0.6, 3), (0.6, 1)])


def shapes(a, x):
    """`shape`, `size`, `ndim` and `len` are integers."""
    n, m = a.shape
    result = x * a.size + a.ndim * x * x + len(a) + a.shape[1] * x**n
    for i in range(a.shape[0]):
        result += a[i, m - 1] * a.shape[-1]
    return result


program(shapes, at=[(grid(2, 3), 0.7), (grid(3, 1), 0.7)])


def array_replaced_in_loop(a, n):
    """`u = step(u)`: a fresh array each iteration."""

    def step(u):
        v = np.empty_like(u)
        for i in range(len(u)):
            v[i] = u[i] * u[i - 1] + 0.3
        return v

    u = a
    for _ in range(n):
        u = step(u)
    return u[0] * u[1] + a[0]


program(array_replaced_in_loop, at=[(vector(3), 3), (vector(3), 0)])


def buffers_swapped(a, n):
    """Two buffers swapped each iteration, for an even and an odd number of iterations."""
    u = a.copy()
    v = np.zeros_like(u)
    for t in range(n):
        for i in range(len(u)):
            v[i] = math.sin(u[i]) + 0.1 * u[i - 1] * v[i]
        u, v = v, u
    return u[0] * u[1] + v[2]


program(buffers_swapped, at=[(vector(3), 0), (vector(3), 3), (vector(3), 4)])


def buffers_swapped_with_exits(a, n, limit):
    """Swapped buffers in a loop that is left early, before or after the swap."""
    u = a.copy()
    v = a.copy()
    for t in range(n):
        for i in range(len(u)):
            v[i] = u[i] * 1.1 + 0.1 * u[i - 1]
        if v[0] > limit:
            break
        u, v = v, u
        if t == 2:
            continue
        u[0] = u[0] * v[1]
    return u[0] * v[0] + u[1]


program(
    buffers_swapped_with_exits,
    at=[(array(0.9, 0.8, 0.7), 5, 100.0), (array(0.9, 0.8, 0.7), 5, 1.0), (array(0.9, 0.8, 0.7), 3, 1.15)],
)


def three_buffers_rotated(a, n):
    """The leapfrog: three time levels that rotate."""
    old, now, new = a.copy(), a.copy(), np.zeros(len(a))
    for _ in range(n):
        for i in range(1, len(a) - 1):
            new[i] = 2.0 * now[i] - old[i] + 0.2 * (now[i + 1] - 2.0 * now[i] + now[i - 1]) * now[i]
        old, now, new = now, new, old
    total = 0.0
    for i in range(len(a)):
        total += now[i] * now[i] + old[i] * new[i]
    return total


program(three_buffers_rotated, at=[(vector(5), 4), (vector(5), 0)])


def loop_dependent_size(x, n):
    """Arrays whose size depends on the iteration."""
    total = 0.0
    for i in range(n):
        a = np.zeros(i + 1)
        for j in range(i + 1):
            a[j] = x * (j + 1) + total
        total = total * 0.3 + a[i] * a[0]
    return total


program(loop_dependent_size, at=[(0.4, 4), (0.4, 0)])


def grown_by_hand(x, n):
    """An array that is replaced by a larger one when it is full."""
    buffer = np.zeros(1)
    for i in range(n):
        if i >= len(buffer):
            grown = np.zeros(2 * len(buffer))
            for k in range(len(buffer)):
                grown[k] = buffer[k]
            buffer = grown
        buffer[i] = x * x * (i + 1) + (buffer[i - 1] if i > 0 else x)
    return buffer[n - 1] * buffer[0]


program(grown_by_hand, at=[(0.6, 1), (0.6, 5)])


def shape_from_value(x):
    """An array whose shape depends on a value."""
    n = int(x) + 2
    a = np.zeros(n)
    for i in range(n):
        a[i] = x
    total = 0.0
    for i in range(n):
        total += a[i] * a[i]
    return total


program(shape_from_value, at=[(2.5,)], exact=[(20.0,)])


def integer_array_as_index(a, index):
    """An array of integers as indices, with repetitions: adjoints add up."""
    total = 0.0
    for k in range(len(index)):
        total += a[index[k]] * (k + 1)
        a[index[k]] *= 0.5
    return total * a[index[0]]


program(integer_array_as_index, at=[(vector(4), np.array([1, 3, 1, -1])), (vector(4), np.array([2]))])


def integer_array_written(a, n):
    """An array of integers computed on the way: the counting sort of the signs."""
    order = np.zeros(len(a), dtype=np.int64)
    low = 0
    high = len(a) - 1
    for i in range(len(a)):
        if a[i] < 0.0:
            order[low] = i
            low += 1
        else:
            order[high] = i
            high -= 1
    total = 1.0
    for i in range(n):
        total = total * a[order[i]] + a[order[0]]
    return total


program(integer_array_written, at=[(array(0.5, -0.7, 0.9, -0.2), 3), (array(0.5, 0.7), 2), (array(0.5, 0.7), 0)])


def boolean_array(a, mask):
    """An array of booleans as data and as a mask made on the way."""
    seen = np.zeros(len(a), dtype=np.bool_)
    total = 0.0
    for i in range(len(a)):
        if mask[i]:
            total += a[i]
            seen[i] = True
        elif a[i] > 0.5 and not seen[i - 1]:
            total += a[i] * a[i]
    return total * 2.0


program(
    boolean_array,
    at=[(array(0.3, 0.7, 0.9), np.array([False, True, False])), (array(0.9, 0.1, 0.9), np.array([False, False, True]))],
)


def masked_sum(w, mask):
    """The sum of the elements that a mask chooses, as a loop."""
    total = 0.0
    for value, chosen in zip(w, mask):
        if chosen:
            total += value
    return total


program(masked_sum, at=[(array(1.0, 2.0, 3.0), np.array([False, True, False]))], exact=[(array(0.0, 1.0, 0.0),)])


def mask_by_multiplication(w, x):
    """A product with a mask of zeros and ones."""
    total = 0.0
    for i in range(len(w)):
        total += w[i] * x[i]
    return total


program(
    mask_by_multiplication, at=[(array(1.0, 2.0, 3.0), array(0.0, 1.0, 0.0))], wrt=[0], exact=[(array(0.0, 1.0, 0.0),)]
)


def single_precision(a, x):
    """A float32 program has float32 gradients."""
    total = a[0] * x
    for i in range(len(a)):
        a[i] = a[i] * a[i] + x
        total += a[i] * total
    return total


program(single_precision, at=[(vector(3).astype(np.float32), np.float32(0.6))], single_precision=True)


def mixed_precision(a, b):
    """float32 and float64 side by side."""
    total = 0.0
    for i in range(len(a)):
        b[i] = b[i] * a[i]
        a[i] = b[i] * 0.5
        total += a[i] * b[i]
    return total


program(mixed_precision, at=[(vector(3).astype(np.float32), vector(3) + 0.1)], single_precision=True)


def any_order(a):
    """Transposed, strided and Fortran-ordered inputs."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] * a[0, j] * (i + 1)
            total += a[i, j] * total + a[i, j]
    return total


program(
    any_order,
    at=[
        (grid(2, 3),),
        (grid(3, 2).T,),
        (np.asfortranarray(grid(2, 3)),),
        (grid(4, 6)[::2, ::2],),
        (grid(2, 3)[:, ::-1],),
    ],
)


def empty_arrays(a, x):
    """Arrays without elements."""
    total = x * len(a)
    for row in a:
        for j in range(len(row)):
            total += row[j] * x
    b = np.zeros((0, len(a)))
    return total + x * x + b.size + b.shape[0]


program(empty_arrays, at=[(np.zeros((0, 3)), 0.7), (np.zeros((2, 0)), 0.7), (grid(1, 2), 0.7)])


def same_array_twice(a, b):
    """The same array passed twice: the derivative with respect to each argument."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * a[i] * b[i]
    return total


_TWICE = vector(3)
program(same_array_twice, at=[(_TWICE, _TWICE), (vector(3), vector(4))])


def array_returned_by_argument(a):
    """The array itself, bound to another name, is still the same array."""
    b = a
    b[0] = a[1] * a[1]
    c = b[:]
    c[1] = a[0] * b[0]
    return a[0] + a[1] * b[1]


program(array_returned_by_argument, at=[(vector(2),)])


def copies_are_separate(a):
    """A copy does not see later writes."""
    b = a.copy()
    a[0] = b[1] * 3.0
    c = np.copy(a)
    b[1] = a[0] * c[0]
    a[1] = 0.5
    return a[0] * b[0] + b[1] * c[1] + a[1]


program(copies_are_separate, at=[(vector(2),)])


def state_as_its_own_record(a, n):
    """`u[t + 1] = f(u[t])`: nothing is overwritten."""
    u = np.zeros(n + 1)
    u[0] = a[0]
    for t in range(n):
        u[t + 1] = math.sin(u[t]) * a[1] + u[t] * u[t]
    return u[n] + u[n // 2]


program(state_as_its_own_record, at=[(array(0.4, 0.8), 5), (array(0.4, 0.8), 0)])


def overlapping_shift(x):
    """A shift within one array reads what it has just written."""
    for i in range(1, len(x)):
        x[i] = x[i - 1] * 2.0 * x[i]
    for i in range(len(x) - 1):
        x[i] = x[i + 1] * x[i]
    return x[0] + x[-1]


program(overlapping_shift, at=[(array(0.7, 0.9, 0.6, 1.1),)])


def prefix_sums_in_place(a):
    """In-place prefix sums and products, forwards and backwards."""
    for i in range(1, len(a)):
        a[i] += a[i - 1]
    for i in range(len(a) - 2, -1, -1):
        a[i] *= a[i + 1]
    return a[0]


program(prefix_sums_in_place, at=[(vector(4),), (vector(1),)])


def bubble_sort(a):
    """Elements swapped in place, by comparison."""
    n = len(a)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swapped = True
        if not swapped:
            break
    total = 0.0
    for i in range(n):
        total += (i + 1) * a[i] * a[i]
    return total


program(bubble_sort, at=[(array(0.9, 0.3, 0.7, 0.1),), (array(0.1, 0.3, 0.7),)])


def rows_swapped(a):
    """Elimination with row exchanges: swaps of elements under a condition on values."""
    n = a.shape[0]
    sign = 1.0
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            sign = -sign
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
    result = sign
    for k in range(n):
        result *= a[k, k]
    return result


program(rows_swapped, at=[(grid(3, 3),), (np.array([[0.1, 0.9], [0.7, 0.3]]),)])


def state_copied_back(u, steps):
    """A state that is computed into a buffer and copied back: every step has a state of its own."""
    u, v = u.copy(), np.zeros_like(u)
    n = len(u)
    for _ in range(steps):
        for i in range(1, n - 1):
            v[i] = u[i] - 0.3 * u[i] * (u[i + 1] - u[i - 1])
        v[0], v[n - 1] = u[0], u[n - 1] * u[0]
        u[:] = v
    return np.sum(u**2) + v[0]


program(state_copied_back, at=[(vector(5), 3), (vector(2), 2), (vector(4), 0), (vector(1), 1)], wrt=[0])


def inner_state_in_place(u, steps):
    """A state whose border stays as it is, in an argument that is written into."""
    for _ in range(steps):
        u[1:-1] = u[1:-1] + 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return np.sum(u * u)


program(inner_state_in_place, at=[(vector(9), 3), (vector(3), 2), (vector(2), 2), (vector(7), 0)], wrt=[0])


def states_in_place_on_a_grid(u, w, steps):
    """Two states on a grid, each overwritten from both; one of them also reads what was written before."""
    for _ in range(steps):
        u[1:-1, 1:-1] = u[1:-1, 1:-1] * w[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] - u[:-2, 1:-1]) * u[1:-1, 2:]
        w[:, :] = w * u + 0.2 * w
        w[0, :] = u[0, :] * 0.5
    return np.sum(u * w)


program(
    states_in_place_on_a_grid,
    at=[(grid(4, 5), grid(4, 5) + 0.5, 2), (grid(8, 7), grid(8, 7), 1), (grid(2, 2), grid(2, 2), 3)],
    wrt=[0, 1],
)


def sweeps_in_place(u, steps):
    """Elements that are computed from new ones on one side and old ones on the other: they stay in one array."""
    u = u.copy()
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            u[i] = u[i] * (u[i - 1] - 0.5 * u[i + 1]) + 0.1
    return np.sum(u**2)


program(sweeps_in_place, at=[(vector(6), 3), (vector(3), 2), (vector(2), 2), (vector(5), 0)], wrt=[0])


def scaled_in_place(u, steps):
    """Elements that are computed from themselves, before and behind which others are read."""
    u, total = u.copy(), 0.0
    for t in range(steps):
        total += u[t % len(u)] ** 2
        for i in range(len(u)):
            u[i] = np.sin(u[i]) * u[i] + 0.2
        total += u[0] * u[-1]
    return total + u[1]


program(scaled_in_place, at=[(vector(4), 3), (vector(2), 1), (vector(3), 0)], wrt=[0])


def state_overwritten_in_a_branch(u, steps):
    """Only some iterations overwrite the state."""
    u = u.copy()
    for t in range(steps):
        if t % 2 == 0:
            u[:] = u * u * 0.7
        u[0] = u[0] + u[-1] ** 2
    return np.sum(u**3)


program(state_overwritten_in_a_branch, at=[(vector(4), 3), (vector(1), 2), (vector(3), 0)], wrt=[0])


def rows_overwritten_and_seen_through_a_view(u, steps):
    """A view of the state sees what every step writes."""
    u = u.copy()
    last = u[-1:]
    total = 0.0
    for _ in range(steps):
        u[:] = u * u + 0.1
        total += last[0] * u[0]
    return total


program(rows_overwritten_and_seen_through_a_view, at=[(vector(4), 3), (vector(1), 2), (vector(3), 0)], wrt=[0])


def state_kept_by_another_name(u, steps):
    """A step reads what an earlier step stored, beside the new state."""
    u = u.copy()
    before = u.copy()
    total = 0.0
    for _ in range(steps):
        before[:] = u
        u[:] = u * before * 0.9 + 0.1
        total += u[0] * before[0]
    return total + np.sum(before * u)


program(state_kept_by_another_name, at=[(vector(4), 3), (vector(1), 2), (vector(3), 0)], wrt=[0])


def states_some_steps_skip(x, f, y):
    """States that are made anew, in steps of which some are left by `continue`."""
    m, p, total = x, np.outer(x, x) + np.eye(len(x)), 0.0
    for value in y:
        m = f @ m
        p = f @ p @ f.T
        if value < 0.0:
            continue
        e = value - m[0]
        total += e * e / (p[0, 0] + 1.0)
        if value > 1.5:
            m = m * 0.9
            continue
        m = m + 0.1 * e * m
        p = p * 0.9 + 0.1
    return total + m[0] * p[0, 0]


program(
    states_some_steps_skip,
    at=[
        (vector(2), grid(2, 2) + 0.5, array(1.0, -1.0, 2.0, 0.5)),
        (vector(1), grid(1, 1), array(-1.0, -2.0)),
        (vector(2), grid(2, 2), array()),
    ],
    wrt=[0, 1],
)


def state_or_the_one_before(x, flags):
    """A step keeps the state, doubles it in a new array, or starts again from the argument."""
    u = x * 1.0
    for flag in flags:
        if flag == 1:
            u = u * u + 0.1
        elif flag == 2:
            u = x * u[0]
    return np.sum(u * u)


program(state_or_the_one_before, at=[(vector(3), np.array([1, 0, 2, 1])), (vector(2), np.array([0]))], wrt=[0])


def chosen_state_written_into(x, flags):
    """The array that a branch selected is written to, and read by its older name."""
    u = x.copy()
    total = 0.0
    for flag in flags:
        v = u * 1.1
        w = v * v if flag else v
        w[0] = w[0] + 1.0
        total += v[0] * w[-1]
        u = w
    return total


program(
    chosen_state_written_into, at=[(vector(3), np.array([True, False, False])), (vector(1), np.array([False]))], wrt=[0]
)


# --------------------------------------------------------------------------------------------------------- rebinding


def another_type(x):
    """A name bound to an integer, then to a real, a tuple, a list and an array."""
    t = 3
    y = x * t
    t = x * x + t
    y = y + t
    t = (t, y)
    y = t[0] * t[1]
    t = [y, x]
    t.append(x * y)
    y = t[2] - t[1]
    t = np.zeros(2)
    t[0] = y
    t[1] = t[0] * x
    return t[0] * t[1]


program(another_type, at=[(0.7,)])


def integer_becomes_real(x, n):
    """An accumulator that starts as an integer."""
    total = 0
    product = 1
    for i in range(n):
        total += x * i
        product *= x
    return total + product


program(integer_becomes_real, at=[(0.7, 3), (0.7, 1), (0.7, 0)])


def another_shape(x, n):
    """A name bound to arrays of different rank."""
    a = np.zeros((2, n))
    for i in range(n):
        a[1, i] = x * i
    total = a[1, n - 1]
    a = a[1]
    a[0] = total * x
    a = np.full((n, 2, 2), a[0])
    a[0, 1, 1] *= x
    return a[0, 1, 1] + a[n - 1, 0, 0]


program(another_shape, at=[(0.7, 3), (0.7, 1)])


def argument_rebound(a, x):
    """Arguments bound to values of another type."""
    first = a[0] * x
    a = a[1]
    x = np.zeros(2)
    x[0] = first * a
    x[1] = x[0] * a
    return x[0] + x[1] * a


program(argument_rebound, at=[(vector(3), 0.7)])


def loop_defined_variable(x, n):
    """Variables first defined in a loop and read after it."""
    for i in range(n):
        y = x * (i + 1)
        if i > 1:
            z = y * y
    if n > 2:
        y = y * z
    return y


program(loop_defined_variable, at=[(0.7, 1), (0.7, 4)], raises=[((0.7, 0), UnboundLocalError)])


def branch_types_differ(x, n):
    """A name that is an integer in one branch and a real in the other."""
    if n > 0:
        scale = 2
    else:
        scale = x
    return scale * x


program(branch_types_differ, at=[(0.7, 1), (0.7, 0)])


# ------------------------------------------------------------------------------------------------------ small print


def least_of_all(a):
    """A search that starts from infinity."""
    best = math.inf
    place = -1
    for i in range(len(a)):
        if a[i] < best:
            best = a[i]
            place = i
    return best * best + a[place] * place


program(least_of_all, at=[(array(0.7, 0.2, 0.5),), (array(0.1),)])


def truth_of_things(x, n):
    """Numbers and lists as conditions."""
    stack = [x]
    if n:
        stack.append(x * x)
    total = 0.0
    while stack:
        total = total * 0.5 + stack.pop()
    if not stack and not n:
        total *= x
    return total if x else 0.0


program(truth_of_things, at=[(0.7, 3), (0.7, 0)])


def chained_assignment_of_an_array(x, n):
    """One array under two names by a chained assignment."""
    u = v = np.zeros(n)
    for i in range(n):
        u[i] = x * (i + 1)
        v[i] *= u[i]
    p = v[0] = u[1] * v[n - 1]
    return u[0] * p + v[1]


program(chained_assignment_of_an_array, at=[(0.7, 3), (0.7, 2)])


def overlapping_views(a):
    """Two views of one array that overlap, one written while the other is read."""
    left = a[:-1]
    right = a[1:]
    for i in range(len(left)):
        right[i] = left[i] * right[i]
        left[i] += right[i] * 0.5
    return left[0] * right[-1] + a[1] * a[1]


program(overlapping_views, at=[(array(0.7, 1.2, 0.9, 1.4),), (array(0.7, 1.2),)])


def scaled_sum(u, v, x):
    for i in range(len(u)):
        u[i] = v[i] * x + u[i]
        v[-1] *= u[i]
    return u[0]


def same_array_twice_in_a_call(a, x):
    """A helper that is given one array as two arguments and writes to both."""
    first = scaled_sum(a, a, x)
    return first * a[1] + scaled_sum(a, a.copy(), first) * a[-1]


program(same_array_twice_in_a_call, at=[(array(0.7, 0.9, 0.4), 0.6)])


def keyword_only(x, /, y, *, scale=2.0):
    """Positional-only, ordinary and keyword-only parameters."""
    return x * y * scale + y * y


program(keyword_only, at=[(0.7, 1.3)])


def pairs_of_a_display(a, x):
    """`for` over a display of pairs, unpacked."""
    total = x
    for i, j in ((0, 1), (2, 0), (1, 1)):
        total += a[i] * a[j] * total
    for (p, q), w in zip(((x, 1.0), (x * x, a[0])), (0.5, 2.0)):
        total = total * p + q * w
    return total


program(pairs_of_a_display, at=[(vector(3), 0.7)])


def function_bound_by_a_branch(x, n):
    """A name for one function or another, chosen by an argument."""
    f = math.sin
    if n > 0:
        f = math.exp
    return f(x) * x


program(function_bound_by_a_branch, at=[(0.7, 1), (0.7, 0)])


def builtin_sum_of_an_array(a):
    """`sum`, `min` and `max` of a vector and of a list."""
    items = [a[0] * a[1], a[1], a[2] * 2.0]
    return sum(a) * a[0] + max(items) * min(items) + sum(items)


program(builtin_sum_of_an_array, at=[(array(0.7, 0.2, 0.9),), (array(0.1, 1.4, 0.3),)])


def nested_comprehension(a, x):
    """A comprehension over two loops, and one inside another."""
    products = [p * q * x for p in a for q in a if p > 0.0]
    sums = [sum([p * k for p in products]) for k in range(2)]
    return sums[1] + len(products)


program(nested_comprehension, at=[(array(0.7, -0.2), 0.5)])


def counting_sort_weights(a, index):
    """An array of integers that is counted up and then used as indices."""
    counts = np.zeros(3, dtype=np.int64)
    for k in index:
        counts[k] += 1
    total = 0.0
    for k in range(3):
        total += a[counts[k]] * (counts[k] + 1)
        a[counts[k]] = total * a[k]
    return total


program(counting_sort_weights, at=[(vector(4), np.array([0, 2, 2])), (vector(4), np.array([1, 1, 1]))])


def stored_in_an_integer_array(x):
    """A real that is stored in an array of integers is truncated, so it has no derivative."""
    a = np.zeros(2, dtype=np.int64)
    a[0] = int(3.0 * x)
    return a[0] * x


program(stored_in_an_integer_array, at=[(0.7,), (1.2,)])


def single_element_tuples(x):
    """Tuples of one and of none."""
    (y,) = (x * x,)
    empty = ()
    return y * y + len(empty)


program(single_element_tuples, at=[(0.7,)])


def early_return_in_for_else_in_while(x):
    """A `return` in the `else` of a `for` inside a `while`."""
    n = 0
    while x < 3.0:
        n += 1
        for i in range(n):
            x = x * 1.2
            if x > 1.5:
                x = x + 0.3 * x * x
                break
        else:
            if n > 3:
                return x * n
            continue
        x = x + 0.1
    return x


program(early_return_in_for_else_in_while, at=[(0.9,), (0.2,), (4.0,)])


def helper_with_closure_argument(x, n):
    """A closure over a changing variable, given to a helper in a loop."""
    total = 0.0
    for i in range(n):
        total += apply_twice(lambda t: math.sin(t * x + total), x * i)
    return total


program(helper_with_closure_argument, at=[(0.7, 3), (0.7, 0)])


def list_first_bound_in_a_loop(x, n):
    """A list that a loop makes anew, read after the loop."""
    for i in range(n):
        items = [x, x * i]
        items.append(items[0] * items[1])
    return items[2] + sum(items)


program(list_first_bound_in_a_loop, at=[(0.7, 3), (0.7, 1)])


def guarded_index_of_an_empty_list(x):
    """A guard before an index into a list that happens to be empty."""
    items = []
    x = items[0] if len(items) > 0 and items[0] > x else 2.0 * x
    if x > 1.0:
        items.append(x * x)
    return sum(items) * x + x


program(guarded_index_of_an_empty_list, at=[(0.3,), (1.7,)])


def short_circuit_before_an_index_that_raises(x, n):
    """A list that is always empty, indexed only where the first operand of `or` does not hold."""
    for k in range(n):
        values = []
    y = x if k >= 1 or values[0] < 0.3 else 2.0
    return x * y


program(short_circuit_before_an_index_that_raises, at=[(0.7, 3)], raises=[((0.7, 1), IndexError)])


def list_made_and_grown_by_sibling_loops(x, n):
    """One inner loop makes a list anew, the next one grows it."""
    total = 0.0
    for i in range(n):
        left = 2
        while left > 0:
            left -= 1
            values = [x, total]
        for j in range(i):
            values.append(values[-1] * x + j)
        total = total * 0.5 + sum(values)
    return total


program(list_made_and_grown_by_sibling_loops, at=[(0.7, 3), (0.7, 0)])


def guarded_index_of_an_empty_list_in_a_loop(x, n):
    """A guard before an index into a list that stays empty, with an index that changes."""
    items = []
    for k in range(n):
        x = items[k] if k < len(items) and items[k] > x else x * 1.1
    return x * x


program(guarded_index_of_an_empty_list_in_a_loop, at=[(0.7, 3), (0.7, 0)])


def list_bound_by_a_loop_to_another(x, n):
    """A loop gives a list a second name, read after the loop."""
    values = [x]
    for i in range(n):
        other = values
        other.append(other[-1] * x)
    return sum(other) * values[-1]


program(list_bound_by_a_loop_to_another, at=[(0.7, 3), (0.7, 1)])


def name_taken_by_a_loop(x, a):
    """A loop variable takes a name that stood for something else."""
    i = x * x
    total = i
    for i in range(3):
        total += a[i] * total
    return total * a[i]


program(name_taken_by_a_loop, at=[(0.7, vector(3))])


# ----------------------------------------------------------------------------------------- programs people really write


def newton_recurrence(a, r):
    """A recurrence with a branch on a value and an inner Newton iteration (golden/recurrence)."""
    x = 0.3
    total = 0.0
    for i in range(a.shape[0]):
        c = x + a[i]
        y = 0.5 * c
        res = y * y * y + y - c
        while abs(res) > 1e-12:
            y = y - res / (3.0 * y * y + 1.0)
            res = y * y * y + y - c
        if y > 0.5:
            x = r * y * (1.0 - y)
        else:
            x = r * y + 0.1 * y * y
        total += x * x
    return total


program(newton_recurrence, at=[(np.random.default_rng(1).uniform(-1.0, 3.0, 8), 1.7), (np.zeros(0), 1.7)])


def burgers(u0, steps, c, d):
    """Two swapped buffers and a nonlinear stencil (golden/burgers)."""
    u = u0.copy()
    v = np.empty_like(u)
    n = u.shape[0]
    for t in range(steps):
        v[0] = u[0]
        v[n - 1] = u[n - 1]
        for i in range(1, n - 1):
            v[i] = u[i] - c * u[i] * (u[i + 1] - u[i - 1]) + d * (u[i + 1] - 2.0 * u[i] + u[i - 1])
        u, v = v, u
    total = 0.0
    for i in range(n):
        total += u[i] * u[i]
    return total


program(
    burgers, at=[(vector(6), 4, 0.1, 0.2), (vector(6), 3, 0.1, 0.2), (vector(3), 0, 0.1, 0.2), (vector(2), 2, 0.1, 0.2)]
)


def lennard_jones(p):
    """A sum over pairs (golden/lennard_jones)."""
    n = p.shape[1]
    energy = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx = p[0, i] - p[0, j]
            dy = p[1, i] - p[1, j]
            dz = p[2, i] - p[2, j]
            s = 1.0 / (dx * dx + dy * dy + dz * dz)
            s6 = s * s * s
            energy += 4.0 * (s6 * s6 - s6)
    return energy


_POINTS = np.array([[0.0, 1.2, 0.1, 1.3], [0.0, 0.1, 1.25, 1.2], [0.05, 0.0, 0.1, 1.15]])
program(lennard_jones, at=[(_POINTS,), (_POINTS[:, :1].copy(),)])


def cholesky(a0):
    """In-place factorisation (golden/cholesky)."""
    a = a0.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = np.sqrt(a[i, i])
    total = 0.0
    for i in range(n):
        total += 2.0 * np.log(a[i, i])
    return total


_FACTOR = grid(4, 4)
program(cholesky, at=[(_FACTOR @ _FACTOR.T + 4.0 * np.eye(4),), (np.array([[2.0]]),)])


def logistic_regression(w, b, x, y, ridge):
    """A likelihood as loops (golden/logistic_regression)."""
    total = 0.0
    n = x.shape[0]
    for i in range(n):
        z = b
        for j in range(len(w)):
            z += x[i, j] * w[j]
        total += np.log1p(np.exp(-abs(z))) + max(z, 0.0) - y[i] * z
    penalty = 0.0
    for j in range(len(w)):
        penalty += w[j] * w[j]
    return total / n + 0.5 * ridge * penalty


program(logistic_regression, at=[(vector(3), 0.1, grid(4, 3), array(0.0, 1.0, 1.0, 0.0), 0.01)], wrt=[0, 1])


def linear_regression(w, b, x, y):
    """The line that fits exactly has gradient zero."""
    total = 0.0
    for i in range(len(x)):
        residual = w * x[i] + b - y[i]
        total += residual * residual
    return total / len(x)


program(
    linear_regression,
    at=[(2.0, 1.0, array(1.0, 2.0, 3.0, 4.0), array(3.0, 5.0, 7.0, 9.0)), (1.5, 0.5, array(1.0, 2.0), array(3.0, 5.0))],
    wrt=[0, 1],
    exact=[(0.0, 0.0), None],
)


def through_an_intermediate(x):
    """The chain rule through a named intermediate value."""
    y = x**2
    z = y + x
    return z


program(through_an_intermediate, at=[(2.0,)], exact=[(5.0,)])


def rosenbrock(x):
    """The banana valley, any length."""
    total = 0.0
    for i in range(len(x) - 1):
        total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return total


program(rosenbrock, at=[(array(-1.2, 1.0, 0.5),), (array(1.0, 1.0),)], exact=[None, (array(0.0, 0.0),)])


def runge_kutta(y0, rate, n):
    """A classical integrator with a nested right-hand side and tuples for states."""

    def right_hand_side(p, v):
        return v, -rate * math.sin(p)

    p, v = y0[0], y0[1]
    h = 0.1
    for _ in range(n):
        a1, b1 = right_hand_side(p, v)
        a2, b2 = right_hand_side(p + 0.5 * h * a1, v + 0.5 * h * b1)
        p, v = p + h * a2, v + h * b2
    return p * p + v


program(runge_kutta, at=[(array(0.5, 0.2), 1.3, 4)])


def adaptive_step(x, end):
    """An integrator whose step depends on the state, with a step rejected now and then."""
    t = 0.0
    h = 0.3
    steps = 0
    while t < end:
        if t + h > end:
            h = end - t
        slope = -x * x + 0.3
        trial = x + h * slope
        error = abs(h * slope) * 0.5
        if error > 0.06 and steps < 20:
            h = h * 0.5
            steps += 1
            continue
        x = trial
        t = t + h
        steps += 1
        if steps > 9:
            break
        h = h * 1.3
    return x


program(adaptive_step, at=[(0.9, 1.0), (0.2, 0.5), (1.9, 2.0)])


def bisection(c):
    """A root found by halving an interval has no derivative through the halving."""
    low, high = 0.0, 2.0
    for _ in range(8):
        middle = 0.5 * (low + high)
        if middle * middle * middle > c:
            high = middle
        else:
            low = middle
    return middle * c


program(bisection, at=[(1.3,), (0.2,)])


def horner(coefficients, x):
    """A polynomial and its derivative in one loop."""
    p = 0.0
    d = 0.0
    for k in range(len(coefficients) - 1, -1, -1):
        d = d * x + p
        p = p * x + coefficients[k]
    return p * d


program(horner, at=[(vector(5), 0.8), (vector(1), 0.8)])


def option_price(spot, strike, volatility, n):
    """A binomial tree with early exercise: in-place, backwards, with `max`."""
    dt = 1.0 / n
    up = math.exp(volatility * math.sqrt(dt))
    probability = (math.exp(0.05 * dt) - 1.0 / up) / (up - 1.0 / up)
    discount = math.exp(-0.05 * dt)
    values = np.zeros(n + 1)
    for i in range(n + 1):
        values[i] = max(strike - spot * up ** (2 * i - n), 0.0)
    for step in range(n - 1, -1, -1):
        for i in range(step + 1):
            held = discount * (probability * values[i + 1] + (1.0 - probability) * values[i])
            exercised = strike - spot * up ** (2 * i - step)
            values[i] = held if held > exercised else exercised
    return values[0]


program(option_price, at=[(1.0, 1.1, 0.3, 5), (1.3, 1.0, 0.2, 3)])


def viterbi(scores, transitions):
    """The best path: comparisons choose, integers remember, only the chosen entries have a gradient."""
    steps, states = scores.shape
    best = scores[0].copy()
    back = np.zeros((steps, states), dtype=np.int64)
    for t in range(1, steps):
        fresh = np.empty(states)
        for s in range(states):
            top = best[0] + transitions[0, s]
            for r in range(1, states):
                if best[r] + transitions[r, s] > top:
                    top = best[r] + transitions[r, s]
                    back[t, s] = r
            fresh[s] = top + scores[t, s]
        best = fresh
    last = 0
    for s in range(states):
        if best[s] > best[last]:
            last = s
    total = 0.0
    for t in range(steps - 1, -1, -1):
        total += scores[t, last] ** 2
        last = back[t, last]
    return total + best[last]


program(viterbi, at=[(grid(4, 3), 0.7 * grid(3, 3))])


def gauss_seidel(u, b, sweeps):
    """A sweep that reads what it has just written, until it no longer changes much."""
    for _ in range(sweeps):
        change = 0.0
        for i in range(1, len(u) - 1):
            new = 0.5 * (u[i - 1] + u[i + 1] + b[i] * u[i])
            change = max(change, abs(new - u[i]))
            u[i] = new
        if change < 1e-3:
            break
    total = 0.0
    for i in range(len(u)):
        total += u[i] * b[i]
    return total


program(gauss_seidel, at=[(vector(5), 0.1 * vector(5), 3), (np.full(5, 0.5), np.zeros(5), 3)])


def recurrent_cell(w, x):
    """A recurrent network written as loops over time and units."""
    units = w.shape[0]
    h = np.zeros(units)
    for t in range(len(x)):
        new = np.empty(units)
        for i in range(units):
            s = x[t]
            for j in range(units):
                s += w[i, j] * h[j]
            new[i] = math.tanh(s)
        h = new
    return h[0] * h[-1]


program(recurrent_cell, at=[(grid(2, 2), vector(3)), (grid(2, 2), np.zeros(0))])


def heat_equation_2d(u, steps):
    """A two-dimensional stencil with row views and swapped buffers."""
    v = u.copy()
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            above, here, below = u[i - 1], u[i], u[i + 1]
            out = v[i]
            for j in range(1, u.shape[1] - 1):
                out[j] = here[j] + 0.1 * (above[j] + below[j] + here[j - 1] + here[j + 1] - 4.0 * here[j]) * here[j]
        u, v = v, u
    total = 0.0
    for row in u:
        for value in row:
            total += value * value
    return total


program(heat_equation_2d, at=[(grid(4, 3), 2), (grid(3, 3), 1)])


def random_walk(x, seed, n):
    """A hand-written random generator steers the branches: integers decide, reals flow."""
    state = seed
    for _ in range(n):
        state = (1103515245 * state + 12345) % 2147483648
        kind = (state // 65536) % 4
        if kind == 0:
            x = x * 1.1
        elif kind == 1:
            x = x - 0.3 * x * x
        elif kind == 2:
            continue
        else:
            if x < 0.1:
                break
            x = math.sin(x)
    return x


program(random_walk, at=[(0.7, 1, 12), (0.7, 5, 12), (0.05, 9, 12)])


def collatz_weights(x, n):
    """Integer control, real work."""
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
            x = x * 0.9 + 0.01 * steps
        else:
            n = 3 * n + 1
            x = x + 0.05 * x * x
        steps += 1
    return x


program(collatz_weights, at=[(0.7, 7), (0.7, 1)])


def ackermann_like(x, depth):
    """Recursion inside a loop inside recursion."""
    if depth == 0:
        return x * 0.5
    total = 0.0
    for k in range(depth):
        total += math.sin(ackermann_like(x + k, depth - 1))
        if total > 1.4:
            return total * x
    return total


program(ackermann_like, at=[(0.7, 3), (1.4, 3), (0.7, 0)])


def everything(a, x, n, mode="plain"):
    """Exits, views, lists, closures and swaps in one function."""
    rows, columns = a.shape
    items = [x]
    u = a.copy()
    v = a

    def weight(k):
        return x * k + len(items)

    for i in range(rows):
        row = u[i]
        for j in range(columns):
            if row[j] < -0.8:
                continue
            row[j] *= weight(j)
            if len(items) > n:
                items[-1] += row[j] * items.pop(0)
                break
            items.append(math.sin(row[j]) * v[i, j - 1])
        else:
            u, v = v, u
            continue
        if mode == "short" and items[-1] > 0.0:
            return items[-1] * u[0, 0]
    total = sum([item * item for item in items])
    for k, (p, q) in enumerate(zip(u[0], v[-1])):
        total += p * q * (k + 1)
    return total


program(
    everything,
    at=[(grid(3, 3), 0.7, 2), (grid(3, 3), 0.7, 9), (grid(3, 3), 0.7, 1, "short"), (-grid(3, 2), 0.7, 2, "short")],
    wrt=[0, 1],
)


def overwrite_first(a, x):
    a[1], a[0] = x, 0.5
    return math.tanh(x)


def condition_that_writes(a, x):
    """The condition of a `while` writes into an array."""
    iterations = 0
    while overwrite_first(a, x * (iterations + 1)) < 0.9 and iterations < 4:
        iterations += 1
    return a[1] * a[2]


program(condition_that_writes, at=[(vector(3), 0.4), (vector(3), 2.1)])


def list_replaced_or_grown(a):
    """One branch replaces a list by a new one that grows, the other grows the old one."""
    items = [0.5]
    if a[0] > 0.2:
        items = [a[1] * item for item in items]
    elif a[1] <= 0.5:
        items.append(a[0])
    return sum(items) * items[-1]


program(list_replaced_or_grown, at=[(np.array([0.7, 0.3]),), (np.array([0.1, 0.3]),), (np.array([0.1, 0.9]),)])


# --------------------------------------------------------------------------------------------- recursion, nested


def nested_recursion(x, n):
    """A nested function calls itself and reads what is around it."""

    def power(k):
        return 1.0 if k == 0 else math.sin(x) * power(k - 1)

    return power(n) + x


program(nested_recursion, at=[(0.7, 4), (0.7, 0)])


def nested_mutual_recursion(x, y, n):
    """Two nested functions call each other; the second is defined after the first."""

    def even(k, s):
        if k == 0:
            return s * y
        return odd(k - 1, s * x)

    def odd(k, s):
        if k == 0:
            return s + x
        return even(k - 1, s + scale)

    scale = x * y
    return even(n, x) * odd(n, y)


program(nested_mutual_recursion, at=[(0.7, 1.3, 3), (0.7, 1.3, 0)])


def nested_recursion_that_counts(x, n):
    """A recursive nested function changes variables of the function around it."""
    calls = 0
    total = 0

    def visit(k):
        nonlocal calls, total
        calls += 1
        total += math.cos(x * k)
        if k < 2:
            return x
        return visit(k - 1) + visit(k - 2) * x

    result = visit(n)
    return result * total + calls


program(nested_recursion_that_counts, at=[(0.9, 5), (0.9, 1)])


def nested_recursion_over_an_array(a, x):
    """A recursive nested function writes into an array of the function around it."""

    def visit(i):
        if i >= len(a):
            return 0.0
        a[i] = a[i] * x
        return a[i] * a[0] + visit(i + 1) * x

    return visit(0) * a[-1]


program(nested_recursion_over_an_array, at=[(vector(4), 1.3)])


def nested_recursion_over_lists(x, n):
    """A recursive nested function reads a list that grows between its calls, and one that it is given."""
    around = [x, x * x]

    def visit(items, i):
        if i >= len(items):
            return 0.0
        return items[i] * around[i % len(around)] + visit(items, i + 1) * x

    total = 0.0
    for k in range(n):
        around.append(x * k)
        total += visit([x, total, 2], 0) + visit(around, 1)
    return total


program(nested_recursion_over_lists, at=[(0.8, 3)])


def recursive_lambda(x, n):
    """A lambda calls itself by its name, inside a function that is called for two values."""

    def around(y):
        f = lambda k: y if k == 0 else x * f(k - 1) + y  # noqa: E731
        return f(n)

    return around(x) * around(x * x)


program(recursive_lambda, at=[(0.8, 3)])


def recursion_defined_in_a_loop(x, n):
    """A recursive function is defined again in every iteration and sees its variables."""
    total = 0.0
    for i in range(n):
        step = x * i

        def visit(k):
            return step if k == 0 else x * visit(k - 1) + total

        total += visit(i)
    return total


program(recursion_defined_in_a_loop, at=[(0.8, 4)])


def apply_to(function, k):
    return function(k)


def recursion_through_a_helper(x, n):
    """A nested function calls itself through a function that it is passed to."""

    def visit(k):
        return x if k == 0 else x * apply_to(visit, k - 1) + 1.0

    return apply_to(visit, n)


program(recursion_through_a_helper, at=[(0.8, 3)])


# -------------------------------------------------------------------------------------------- lists, at run time


def sines(x, n):
    items = []
    for k in range(n):
        items.append(math.sin(x + k))
    return items


def weighted(items):
    total = 0.0
    for k, item in enumerate(items):
        total += (k + 1) * item * item
    return total


def list_insert(x, n, where):
    """Insertion in the middle, at the ends and beyond them; an integer into a list of floats."""
    items = sines(x, n)
    items.insert(where, x * x)
    items.insert(0, 2)
    items.insert(-1, x)
    short = [x]
    short.insert(5, 2.0)
    for k in range(n):
        short.insert(k // 2, x * k)
        short[0] *= x
    return weighted(items) * weighted(short)


program(list_insert, at=[(0.7, 4, 2), (0.7, 4, -1), (0.7, 4, -9), (0.7, 4, 9), (0.7, 0, 0)])


def list_reverse(x, n):
    """A list is reversed in place, and reversed again."""
    items = sines(x, n)
    items.reverse()
    items[0] = items[1] * x
    items.reverse()
    short = [x, 2.0, x * x]
    short.reverse()
    return weighted(items) * items[0] + weighted(short)


program(list_reverse, at=[(0.7, 5), (0.7, 2)])


def list_without_some(x, n):
    """Elements are deleted, removed by value, found and counted."""
    items = sines(x, n)
    items.append(0.5)
    del items[1], items[-2]
    items.remove(items[1])
    short = [x, x * 2.0, 3.0]
    del short[1:]
    return weighted(items) + weighted(short) + items.index(0.5) + items.count(0.5)


program(
    list_without_some,
    at=[(0.7, 5), (0.7, 4)],
    raises=[((0.7, 0), IndexError), ((0.7, 3), ValueError)],
)


def list_slices(x, n, k):
    """Slices of a list that has grown, with every kind of end and step."""
    items = sines(x, n)
    total = weighted(items[1:]) + 2 * weighted(items[-3:]) + 3 * weighted(items[::2]) + 5 * weighted(items[::-1])
    total += 7 * weighted(items[:-1]) + 11 * weighted(items[k:]) + 13 * weighted(items[4:1:-1])
    total += weighted(items[-2:-5:-2]) * weighted(items[k : n - k]) + weighted(items[100:-100:-3])
    short = [x, 2.0, x * x]
    return total + weighted(items[-100:100:3]) * weighted(short[k:])


program(list_slices, at=[(0.7, 5, 1), (0.7, 8, -2), (0.7, 0, 0), (0.7, 2, 3)])


def list_arithmetic(x, n):
    """Sums and products of lists that have grown."""
    items = sines(x, n)
    both = items + [x] + items[1:]
    both = both * 2
    more = 3 * both + [x, 1] * n
    both.append(x * 2)
    items += both
    items.extend(items)
    again = [*items, x, *both[1:], 2]
    again[0] = x
    return weighted(both) + weighted(items) + weighted(again) + weighted(more)


program(list_arithmetic, at=[(0.7, 3), (0.7, 0)])


def membership(x, n):
    """`in` for ranges, tuples, lists and arrays."""
    items = sines(x, 4)
    table = np.array([1.0, 3.0])
    total = 0.0
    for k in range(12):
        if k in range(n):
            total += x
        if k in range(2, n, 2):
            total += x * x
        if k in range(n, 0, -3):
            total += 5 * x
        if k not in range(1, 5):
            total += math.sin(x) * k
        if k in (1, 2, n):
            total += x * x * 7
        if 2 * items[0] in items or items[3] in items:
            total += x**4
        if k * 1.0 in range(3, n) and k in table:
            total += x**5
    return total


program(membership, at=[(0.7, 9), (0.7, 3)])


def list_that_shrinks_and_grows(x, n):
    """A loop replaces a list by a slice of it, inserts elements and removes others."""
    items = sines(x, n)
    total = 0.0
    for _ in range(4):
        if len(items) < 3:
            break
        total += items.pop(len(items) // 2) * items[0]
        items = items[1:] + [total]
        if total < 0.1:
            items.insert(1, total)
    return total * items[0]


program(list_that_shrinks_and_grows, at=[(0.7, 6), (0.2, 12), (0.5, 2)])


def lists_of_pairs(x, n):
    """Pairs in lists are inserted, reversed, sliced and deleted."""
    pairs = [(k, x * k) for k in range(n)]
    pairs.insert(2, (1, x))
    pairs.reverse()
    rest = pairs[1:]
    del rest[0]
    total = 0.0
    for (a, b), (c, d) in zip(pairs, rest):
        total += a * d + b * b * c
    return total


program(lists_of_pairs, at=[(0.7, 5), (0.7, 1)])


def list_in_a_tuple(pair, items, x):
    """Lists are arguments, one of them inside a tuple, and they grow."""
    total = x
    for item in pair[0]:
        total += item * item * x
    for item in items:
        total += item * x
    pair[0].append(x)
    items.append(total)
    return total + len(items) * items[-1] + pair[0][-1] * pair[1]


program(list_in_a_tuple, at=[(([1.0, 2.0], 3.0), [4.0], 2.0), (([], 3.0), [], 2.0)])


# ------------------------------------------------------------------------------------------- a value, or None


def none_or_value(x, c):
    """A name is None unless a branch assigns it; a test tells."""
    y = None
    if c > 0:
        y = x * x
    if y is None:
        return math.sin(x)
    return y * x


program(none_or_value, at=[(0.7, 1), (0.7, 0)])


def none_is_replaced(x, c):
    """A test for None assigns a number instead."""
    y = None
    if c > 0:
        y = x * x
    elif c < -3:
        y = 2
    if y is None:
        y = 3.0 * x
    return y * x


program(none_is_replaced, at=[(0.7, 1), (0.7, 0), (0.7, -5)])


def best_so_far(a):
    """The largest square so far, None before the first."""
    best = None
    for i in range(len(a)):
        if best is None or a[i] * a[i] > best:
            best = a[i] * a[i]
    return 0.5 if best is None else best


program(best_so_far, at=[(array(0.3, -0.9, 0.5),), (array(),)])


def first_above(a, limit):
    for k in range(len(a)):
        if a[k] > limit:
            return a[k] * k


def search_that_finds_or_not(a, limit):
    """A function returns a number or, at its end, nothing."""
    found = first_above(a, limit)
    if found is not None and found > 0.1:
        return found * a[0]
    if not found:
        return a[1]
    return found


program(
    search_that_finds_or_not,
    at=[(array(0.3, 0.9, 0.5), 0.4), (array(0.3, 0.9, 0.5), 4.0), (array(0.04, 0.09, 0.5), 0.05)],
    wrt=[0],
)


def none_or_more_than_a_number(x, n):
    """Pairs and arrays that are None at first."""
    pair = None
    a = None
    for k in range(n):
        pair = (x * k, k)
        if k == 2:
            a = np.zeros(2)
            a[0] = x
    total = 0.0
    if pair is not None:
        u, v = pair
        total += u * v + pair[0]
    if a is not None:
        total += a[0] * a.shape[0] * x
    return total


program(none_or_more_than_a_number, at=[(0.7, 0), (0.7, 2), (0.7, 4)])


def none_again(x, n):
    """A value of the iteration before, forgotten now and then."""
    before = None
    total = 0.0
    for k in range(n):
        now = math.sin(x * k)
        if before is not None:
            total += now * before
        before = now
        if k % 3 == 2:
            before = None
    return total if before is None else total * before


program(none_again, at=[(0.7, 0), (0.7, 3), (0.7, 5), (0.7, 7)])


def none_as_an_argument(x, c):
    """A function is given something that may be None, also by a recursive function."""
    y = None
    if c > 0:
        y = x

    def or_else(z, w=None):
        if z is None:
            return 1.5 if w is None else w
        return z * x

    def power(k):
        if k <= 0:
            return None
        r = power(k - 1)
        return x if r is None else r * x

    return or_else(y) + or_else(x, y) + or_else(None, y if y is not None else x) + or_else(power(c), y)


program(none_as_an_argument, at=[(0.7, 3), (0.7, 0)])


def none_where_a_number_is_needed(x, c):
    """Arithmetic with None raises."""
    y = None
    if c > 0:
        y = x
    return y + 1.0


program(none_where_a_number_is_needed, at=[(0.7, 1)], raises=[((0.7, 0), TypeError)])


def none_in_a_list(x):
    """A list that holds None, known element by element."""
    total = 0.0
    for item in [None, x, 2.0]:
        if item is None:
            total += 1
        else:
            total += item * item
    return total


program(none_in_a_list, at=[(0.7,)])


# ------------------------------------------------------------------------------ a name of two types, and used


def type_by_branch(x, n, a):
    """A branch replaces an array by one of another type; what follows is read for each."""
    if n > 1:
        a = np.full(2, x)
    total = 0.0
    for item in a:
        total += item * x
    return total


program(
    type_by_branch,
    at=[(0.7, 2, np.array([1.0, 2.0], dtype=np.float32)), (0.7, 0, np.array([1.0, 2.0], dtype=np.float32))],
    wrt=[0],
    single_precision=True,
)


def type_in_a_branch_that_returns(x, n):
    """A name has another type on a path that returns before the paths meet."""
    if n > 2:
        y = 3
        if n > 4:
            y = (x, x * x)
            return y[0] * y[1]
        x = x * y
    return x


program(type_in_a_branch_that_returns, at=[(0.7, 1), (0.7, 3), (0.7, 5)])


def type_in_some_iterations(x):
    """An iteration of a short loop replaces a number by a pair."""
    y = x
    for k in range(3):
        if k == 1:
            y = (x, x * k)
    return y[0] * y[1]


program(type_in_some_iterations, at=[(0.7,)])


def type_of_the_iteration_before(x):
    """The first iteration finds a number, the others a pair."""
    state = 0
    for k in range(3):
        state = (x, k) if state == 0 else (state[0] * x, k)
    return state[0]


program(type_of_the_iteration_before, at=[(0.7,)])


def type_after_an_else(index, x):
    """The `else` of a loop that may return gives a name another type."""
    for _ in range(len(index)):
        x = x * 1.1
        if x > 3.0:
            return x
    else:
        index = (0, x)
    return index[1] * x


program(type_after_an_else, at=[(np.array([1, 2, 3]), 1.0), (np.array([1, 2, 3]), 2.9)], wrt=[1])


def list_of_the_last_iteration(x):
    """Every iteration of a loop makes a new list, and the last one is used."""
    for _ in range(3):
        for j in range(3):
            items = [x * j]
        values = items
    return values[0] * x


program(list_of_the_last_iteration, at=[(0.7,)])


def index_from_the_end_of_a_view(a):
    """Positions that count from the end count from the end of the view, not of the array it is part of."""
    view = a[1:4]
    view[[-3, 1]] /= 0.5 + a[0]
    view[np.array([-1])] = a[-1] * view[[-2]]
    np.add.at(view, [-3, -3], a[:2])
    return np.sum(np.sin(a) * view[[-1]])


program(index_from_the_end_of_a_view, at=[(np.array([0.7, 0.3, -1.2, 0.5, 1.1]),)])


def sizes_that_fit_only_at_run_time(a, b):
    """The length of an array is compared with a length computed from it, after loops have used that one."""
    a[:, 0] *= np.eye(1) @ a[1, :1]
    wide = a[:, :1] * b[1:]
    return np.sum(a * (2.0,)) + np.sum(wide + b[:-1])


program(sizes_that_fit_only_at_run_time, at=[(np.array([[0.7, 0.3], [-1.2, 0.5]]), np.array([0.4, -0.6, 1.1]))])


def stacked_in_a_branch_of_a_loop(a, n):
    """Arrays of a list that are not computed where the list is made are computed in the branch, not after it."""
    for j in range(n):
        if a.shape[0] == 3:
            u = np.stack([2.0 * a, np.sin(a)])
            a = u[j % 2]
    return np.sum(a)


program(stacked_in_a_branch_of_a_loop, at=[(np.array([0.7, 0.3, -1.2]), 3), (np.array([0.7, 0.3]), 2)])


def array_returned_from_a_loop(a, n):
    """A function that returns an array while it loops."""

    def first_large(u):
        for j in range(n):
            if u[j] > 0.5:
                return u
            u = u * 2.0
        return 3.0 * u

    u = first_large(a * a)
    return np.sum(u) * a[0]


program(
    array_returned_from_a_loop, at=[(np.array([0.9, 0.3]), 2), (np.array([0.2, 0.6]), 2), (np.array([0.1, 0.2]), 2)]
)


def reshaped_for_a_moment(a, n):
    """An array may be written to if its reshaped form has no name."""
    total = np.sum(a.ravel() ** 2)
    b = 2.0 * (a * 3.0)[:, ::2].reshape(-1)
    b[1:] = b[:-1] * total
    for i in range(n):
        total += np.dot(a.ravel(), a.reshape(-1)) * b[1]
        if a.ravel().sum() > 0.2:
            a = 0.8 * a
        a[1:] = 0.5 * np.sin(a[:-1])
    a += np.cos(a[:, ::-1].ravel()).reshape(2, 3)
    return total + np.sum(a)


program(reshaped_for_a_moment, at=[(np.array([[0.7, 0.3, -1.2], [0.4, -0.6, 1.1]]), 2)])


def computed_before_a_loop_in_a_branch(a, n):
    """An array that is computed at the start of a loop calls functions, whose variables are not those of the loop."""
    if n > 1:
        u = np.stack([np.eye(2) * a, np.ones((2, 2))])
        for j in range(n):
            a = a * 0.5 + u[0, 1, 1]
    return np.sum(a)


program(computed_before_a_loop_in_a_branch, at=[(np.array([0.7, 0.3]), 2), (np.array([0.7, 0.3]), 0)])


def reshaped_arrays_of_any_order(a):
    """A reshaped array may be transposed in memory. A new array without a name may be a view or a copy."""
    b = (a * 2.0).reshape(-1)
    b[1] = 3.0
    total = np.sum(a.reshape(-1) * b)
    c = a.copy()
    d = c.reshape(2, -1)
    d[0] = 1.5
    a = 2.0 * a
    a[0] = 1.0
    return total + np.sum(a * a) + np.sum(c * c) + np.sum(np.einsum("ij->ji", a) ** 2)


program(
    reshaped_arrays_of_any_order,
    at=[
        (np.array([[0.7, 0.3], [-1.2, 0.4], [0.5, -0.6], [0.2, 0.9]]),),
        (np.asfortranarray([[0.7, 0.3], [-1.2, 0.4], [0.5, -0.6], [0.2, 0.9]]),),
    ],
)


def chosen_before_the_right_side_changes_it(a):
    """`a[[1]] -= f()` takes the old elements, `a[1:] -= f()` the new ones."""

    def halved():
        a[...] /= 2.0
        return 1.2 * a[0, 0]

    a[[1],] -= halved()
    a[1:] *= halved()
    return np.sum(a * a)


program(chosen_before_the_right_side_changes_it, at=[(np.array([[-1.2, 0.4], [0.9, -1.1]]),)])


def nothing_returned_after_a_loop(x):
    """A function without `return`, left by a loop's `else`."""
    seen = [x]

    def note(y):
        while (z := 0.5 * y) > 0.5:
            y = z
        else:
            seen.append(z * z)

    note(0.5 * x)
    return seen[-1]


program(nothing_returned_after_a_loop, at=[(0.7,), (3.0,)])


def arrays_of_a_list_changed_in_place(a, n):
    """`layers[k] /= 2.0` changes the array that the list holds, and every other name of it."""
    layers = [a, 3.0 * a]
    layers[0] /= 1.3
    layers[-1] += a
    for k in range(n):
        layers.append(a * k)
        layers[k] *= 0.5 + k
    total = np.sum(a)
    for layer in layers:
        total = 0.5 * total + np.sum(layer * layer)
    return total


program(arrays_of_a_list_changed_in_place, at=[(np.array([0.7, -0.3]), 3), (np.array([0.7, -0.3]), 0)])


def array_made_anew_in_every_iteration(a, w, n):
    """Each iteration makes an array from that of the iteration before; the reverse sweep reads all of them."""
    h = a * w
    for t in range(1, n):
        s = np.sin(h) * w
        h = h * s + a[t % 2]
    return np.sum(h * h)


program(array_made_anew_in_every_iteration, at=[(np.array([0.7, 0.3, -1.2]), 0.9, n) for n in (5, 2, 1, 0)])


def array_of_another_length_before_the_first_iteration(m, h, n):
    """A loop starts from an array that is shorter than those it makes, if it makes only one iteration."""
    for t in range(n):
        h = m @ h
        h = np.tanh(h) * h
    return np.sum(h)


program(
    array_of_another_length_before_the_first_iteration,
    at=[
        (np.array([[0.7, 0.3], [-1.2, 0.4], [0.5, -0.6]]), np.array([0.8, 0.5]), 1),
        (np.array([[0.7, 0.3], [-1.2, 0.4]]), np.array([0.8, 0.5]), 3),
        (np.array([[0.7, 0.3], [-1.2, 0.4]]), np.array([0.8, 0.5]), 0),
    ],
)


def arrays_made_anew_in_nested_loops(a, w, n):
    """The inner loop restarts in every outer iteration, and the outer loop carries its final value."""
    total = 0.0
    for k in range(n):
        h = np.zeros(len(a))
        for t in range(len(w)):
            h = np.tanh(h * w[t] + a) * h + 0.1
        c = h.copy()
        c[0] *= c[-1]
        total += np.sum(c * h)
        a = a * h
    return total


program(
    arrays_made_anew_in_nested_loops,
    at=[
        (np.array([0.7, 0.3, -1.2]), np.array([0.4, 0.9]), 3),
        (np.array([0.7, 0.3, -1.2]), np.array([0.4]), 1),
        (np.array([0.7, 0.3, -1.2]), np.zeros(0), 2),
        (np.array([0.7, 0.3, -1.2]), np.array([0.4, 0.9]), 0),
    ],
)


def array_made_anew_in_some_iterations(a, w):
    """In the other iterations, the loop carries its array unchanged."""
    h = a
    for t in range(len(w)):
        if w[t] > 0.0:
            h = np.sin(h) * h * w[t]
    return np.sum(h * a)


program(array_made_anew_in_some_iterations, at=[(np.array([0.7, 0.3]), np.array([0.5, -1.0, 1.5, 0.8, -0.3]))])


def array_that_grows_with_every_iteration(a, n):
    """Each iteration makes an array that is longer than the one before."""
    h = a[:1] * 2.0
    for t in range(n):
        longer = np.empty(t + 2)
        longer[0] = a[t] * h[0]
        for i in range(t + 1):
            longer[i + 1] = np.sin(h[i]) * h[i]
        h = longer
    return np.sum(h * h)


program(array_that_grows_with_every_iteration, at=[(np.array([0.7, 0.3, -1.2]), 3), (np.array([0.7, 0.3, -1.2]), 0)])


def array_made_anew_until_the_loop_is_left(a, n):
    """The number of arrays is known when the loop ends."""
    h = a
    for _ in range(n):
        h = np.sin(h) * h
        if np.sum(h) < 0.2:
            break
        h = 0.9 * h
    return np.sum(h * a)


program(array_made_anew_until_the_loop_is_left, at=[(np.array([0.9, 0.8]), n) for n in (9, 1, 0)])


def array_of_the_iteration_before_is_written(a, n):
    """An iteration writes into what the iteration before made, and keeps what was there."""
    h = a * 1.5
    total = 0.0
    for t in range(n):
        h[0] *= h[1]
        following = np.full(2, a[0])
        following[1] += h[0] * h[1]
        h[1] = following[1] * a[1]
        total += np.sum(h * following)
        h = following
    return total


program(array_of_the_iteration_before_is_written, at=[(np.array([0.9, 0.8]), n) for n in (3, 1, 0)])


def arrays_of_an_unknown_length(a, n, m):
    """A negative length is an error where the array is made, not before, and not if it is never made."""
    h = a[:2]
    for _ in range(n):
        h = np.full(m, np.sum(h)) * np.sin(h[0]) * h[0]
    return np.sum(h)


program(
    arrays_of_an_unknown_length,
    at=[(np.array([0.9, 0.8]), 3, 3), (np.array([0.9, 0.8]), 0, -1)],
    raises=[((np.array([0.9, 0.8]), 2, -1), ValueError)],
)


def array_made_anew_inside_a_branch(a, n):
    """The loop as a whole stands in a branch, and starts from what the branch has made."""
    if n > 1:
        h = a * 2.0
        for t in range(n):
            h = np.sin(h) * h * a[0]
        a = h
    return np.sum(a * a)


program(array_made_anew_inside_a_branch, at=[(np.array([0.9, 0.8]), 3), (np.array([0.9, 0.8]), 1)])


def sizes_that_follow_from_each_other(a):
    """Two axes are found to have equal lengths twice, in opposite directions: the facts do not form a cycle."""
    a = a[1, :2] - a[:2, 1] - (np.full((a.shape[1], 1), 1.0) + a)
    return np.sum(a * a)


program(sizes_that_follow_from_each_other, at=[(np.array([[0.7, 0.3], [-1.2, 0.4]]),)])


def reshaped_in_the_order_of_memory(a):
    """An array whose elements follow each other in memory is reshaped to a view, also after arithmetic and copies."""
    b = np.copy(a)
    c = b.reshape(2, 4)
    c -= 1.0
    d = 2.0 * a
    e = d.reshape(-1)
    e[1] = 5.0
    f = np.ascontiguousarray(a)
    f[0, 1] *= 3.0
    g = np.zeros_like(a).reshape(-1)
    g[1] = a[0, 0]
    return np.sum(a * b) + np.sum(d * d) + np.sum(g)


program(reshaped_in_the_order_of_memory, at=[(np.array([[0.7, 0.3], [-1.2, 0.4], [0.5, -0.6], [0.2, 0.9]]),)])


def neighbours_of_every_length(a, c):
    """The reverse of a stencil collects from neighbours; at both ends, and in short arrays, some are missing."""
    n = a.shape[0]
    u = a.copy()
    v = np.zeros(n)
    for _ in range(2):
        for i in range(1, n - 2):
            v[i] = u[i] * u[i] + c * u[i - 1] - u[i + 2] * u[i + 1]
        u, v = v, u
    total = 0.0
    for i in range(n):
        total += u[i] * u[i] * (i + 1)
    return total


program(
    neighbours_of_every_length,
    at=[(np.array([0.7, 0.3, -1.2, 0.5, 0.9, -0.4, 0.8, 1.1])[:n].copy(), 0.3) for n in range(9)],
)


def rows_and_columns_of_neighbours(a, sweeps):
    """A stencil in two dimensions: some neighbours are in the same row, others in another row of the same array."""
    u = a.copy()
    v = a.copy()
    for _ in range(sweeps):
        v[1:-1, 1:-1] = u[:-2, 1:-1] * u[2:, 1:-1] + 0.5 * u[1:-1, :-2] - u[1:-1, 2:] * a[1:-1, 1:-1]
        u, v = v, u
    return np.sum(u * u * a)


program(
    rows_and_columns_of_neighbours,
    at=[
        (0.1 * np.arange(20.0).reshape(4, 5) - 0.7, 3),
        (0.1 * np.arange(6.0).reshape(2, 3) - 0.7, 2),
        (0.1 * np.arange(12.0).reshape(3, 4) - 0.7, 0),
        (np.zeros((0, 3)), 2),
    ],
)


def buffers_that_become_one(a, n):
    """Two names that are swapped, and then are the same array: what is written under one is seen under the other."""
    u = a * 1.0
    v = a * 2.0
    for k in range(n):
        if k == 1:
            v = u
        for i in range(1, len(a) - 1):
            v[i] = 0.5 * u[i - 1] * u[i + 1] + u[i]
        u, v = v, u
    return np.sum(u) + np.sum(v * v)


program(
    buffers_that_become_one,
    at=[(np.array([0.7, 0.3, -1.2, 0.5, 0.9]), 4), (np.array([0.7, 0.3, -1.2]), 1), (np.array([0.7, 0.3, -1.2]), 0)],
)


def sums_in_an_element(a, b, n):
    """An element that a loop adds to is a number meanwhile, unless the loop may meet it under another index."""
    m = a.shape[1]
    for i in range(n):
        for j in range(m):
            b[i] += a[i, j] * b[0]
            a[i, 0] -= 0.1 * a[i, j]
        for j in range(i, m):
            b[i] -= a[0, j] * b[j]
            a[n - 1, j] += b[i] * 0.25
    return np.sum(a * a) + np.sum(b)


program(
    sums_in_an_element,
    at=[
        (np.array([[0.7, 0.3, -1.2], [0.5, 0.9, -0.4]]), np.array([0.2, -0.5, 0.8]), 2),
        (np.zeros((0, 3)), np.array([0.2, -0.5, 0.8]), 0),
        (np.zeros((2, 0)), np.array([0.2, -0.5, 0.8]), 2),
    ],
)


def element_beyond_an_empty_loop(a, n):
    """A loop that does not run does not touch an element that does not exist."""
    total = 0.0
    for i in range(n + 2):
        for j in range(i, n):
            a[i] += a[j] * a[j]
            total += a[i] * a[n - 1]
    return total + a[0]


program(element_beyond_an_empty_loop, at=[(np.array([0.7, 0.3, -1.2]), 3), (np.array([0.7, 0.3, -1.2]), 0)])


def buffers_filled_in_every_iteration(a, c, iterations):
    """Swapped buffers, one of which every iteration fills; both are used afterwards, for any trip count."""
    n = a.shape[0]
    u = a.copy()
    v = np.zeros(n)
    total = 0.0
    for t in range(iterations):
        v[0] = u[0] * u[0]
        v[n - 1] = u[n - 1] * c
        for i in range(1, n - 1):
            v[i] = u[i] * u[i] + c * u[i - 1] - u[i + 1] * u[i]
        total += v[n // 2] * u[0]
        u, v = v, u
    for i in range(n):
        total += u[i] * v[i] * (i + 1)
    return total


program(
    buffers_filled_in_every_iteration,
    at=[
        *((np.array([0.7, 0.3, -1.2, 0.5, 0.9, -0.4])[:n].copy(), 0.3, 2) for n in range(1, 7)),
        *((np.array([0.7, 0.3, -1.2, 0.5, 0.9, -0.4]), 0.3, iterations) for iterations in (0, 1, 3)),
    ],
)


def buffer_filled_but_for_one(a, iterations):
    """One element of a swapped buffer is not written: its value is from the iteration before the last."""
    n = a.shape[0]
    u = a.copy()
    v = 2.0 * a
    for t in range(iterations):
        for i in range(1, n):
            v[i] = u[i] * u[i - 1] + 0.1 * i
        u, v = v, u
    return np.sum(u * u)


program(
    buffer_filled_but_for_one, at=[(np.array([0.7, 0.3, -1.2, 0.5])[:n].copy(), t) for n in (1, 2, 4) for t in (0, 3)]
)


def buffers_known_by_other_names(a, iterations):
    """Other names of a swapped buffer see what is written into it, in the loop and after it."""
    n = a.shape[0]
    u = a.copy()
    v = np.ones(n)
    first, second = u, v[1:]
    total = 0.0
    for t in range(iterations):
        for i in range(n):
            v[i] = u[i] * u[n - 1 - i] + 0.5
        total += second[0] * u[0]
        u, v = v, u
    return total + np.sum(first * u)


program(buffers_known_by_other_names, at=[(np.array([0.7, 0.3, -1.2, 0.5]), t) for t in (0, 1, 2, 3)])


def buffer_read_before_it_is_filled(a, iterations):
    """An iteration reads one element of the buffer before it overwrites it."""
    n = a.shape[0]
    u = a.copy()
    v = a * a
    total = 0.0
    for t in range(iterations):
        total += v[0] * u[n - 1]
        for i in range(n):
            v[i] = u[i] * u[0] + 0.3
        u, v = v, u
    return total + np.sum(u * u)


program(buffer_read_before_it_is_filled, at=[(np.array([0.7, 0.3, -1.2]), t) for t in (0, 1, 4)])


def three_buffers_in_turn(a, c, iterations):
    """A wave: three rotating buffers; every iteration fills one of them."""
    n = a.shape[0]
    before, now, after = a.copy(), a * c, np.zeros(n)
    for t in range(iterations):
        after[0] = 0.0
        for i in range(1, n - 1):
            after[i] = 2.0 * now[i] - before[i] + c * (now[i - 1] - now[i] * now[i] + now[i + 1])
        after[n - 1] = 0.0
        before, now, after = now, after, before
    return np.sum(now * now) + np.sum(before * a)


program(
    three_buffers_in_turn,
    at=[
        *((np.array([0.7, 0.3, -1.2, 0.5, 0.9, -0.4])[:n].copy(), 0.3, 4) for n in range(1, 7)),
        (np.array([0.7, 0.3, -1.2]), 0.3, 0),
    ],
)


def buffer_filled_on_one_side(a, iterations):
    """Some iterations fill the buffer; in the others the states swap places."""
    n = a.shape[0]
    u, v = a.copy(), a * 0.5
    for t in range(iterations):
        if t % 2 == 0:
            for i in range(n):
                v[i] = u[i] * u[n - 1 - i]
        u, v = v, u
    return np.sum(u * u) + v[0]


program(buffer_filled_on_one_side, at=[(np.array([0.7, 0.3, -1.2]), t) for t in (0, 1, 2, 5)])


def columns_filled_in_every_iteration(a, c, iterations):
    """Swapped buffers of two axes, filled in parts: columns at both ends, and what is between."""
    n, m = a.shape
    u, v = a.copy(), np.zeros((n, m))
    for t in range(iterations):
        for i in range(n):
            v[i, 0] = u[i, 0] * c
            v[i, m - 1] = u[i, 0] * u[i, m - 1]
            for j in range(1, m - 1):
                v[i, j] = u[i, j - 1] * u[i, j] - c * u[i, j + 1]
        u, v = v, u
    return np.sum(u * u * a)


program(
    columns_filled_in_every_iteration,
    at=[
        (0.1 * np.arange(n * m).reshape(n, m) - 0.7, 0.4, t)
        for n, m, t in ((3, 5, 3), (1, 4, 2), (2, 2, 2), (2, 3, 1), (0, 3, 2))
    ],
)


def waves_in_nested_loops(a, c, iterations):
    """Buffers that an inner loop swaps, in every iteration of an outer loop."""
    n = a.shape[0]
    u, v = a.copy(), np.zeros(n)
    total = 0.0
    for s in range(2):
        for t in range(iterations):
            for i in range(n):
                v[i] = u[i] * u[i] - c * u[n - 1 - i]
            u, v = v, u
        total += u[0] * (s + 1)
    return total + v[n - 1]


program(waves_in_nested_loops, at=[(np.array([0.7, 0.3, -1.2]), 0.4, t) for t in (0, 1, 2)])


def array_handed_on_under_two_names(a, iterations):
    """A new array is carried under two names, which are the same array in the next iteration until one is replaced."""
    x, y = a * 1.0, a * 2.0
    for t in range(iterations):
        new = x * y + 0.1
        if t % 2 == 0:
            new[0] = y[0] * 3.0
        x = new
        y = new
        x[1] = x[1] * 0.5
    return np.sum(x * y)


program(array_handed_on_under_two_names, at=[(np.array([0.7, 0.3, -1.2]), t) for t in (0, 1, 2, 3)])


def arrays_of_two_iterations_ago(a, iterations):
    """The last two arrays are carried by the loop and used afterwards."""
    x, before = a * 1.0, a * a
    total = 0.0
    for t in range(iterations):
        new = np.empty(len(a))
        for i in range(len(a)):
            new[i] = x[i] * before[len(a) - 1 - i] + 0.3
        total += new[0] * before[1]
        before = x
        x = new
    return total + np.sum(x * x) + np.sum(before)


program(arrays_of_two_iterations_ago, at=[(np.array([0.7, 0.3, -1.2]), t) for t in (0, 1, 2, 3)])


def first_array_used_after_the_loop(a, iterations):
    """The initial array of a loop is used again after it."""
    first = a * a
    x = first
    for t in range(iterations):
        x = x * a + 0.2
    first[0] = first[0] * 2.0
    return np.sum(x * first)


program(first_array_used_after_the_loop, at=[(np.array([0.7, 0.3, -1.2]), t) for t in (0, 1, 3)])


def views_handed_on(a, iterations):
    """An iteration carries a part of its new array, which is shorter in every iteration."""
    x = a * 1.5
    for t in range(iterations):
        new = x * x + 0.1
        new[0] *= 2.0
        x = new[1:]
    return np.sum(x * x)


program(views_handed_on, at=[(np.array([0.7, 0.3, -1.2, 0.4, 0.9]), t) for t in (0, 1, 3, 5)])


def arrays_made_before_an_inner_loop(a, iterations):
    """An inner loop starts from what the outer iteration has made, and the outer one goes on from where it ends."""
    x = a * 1.0
    total = 0.0
    for s in range(iterations):
        scratch = np.zeros(len(a))
        y = x * a
        for t in range(s):
            for i in range(1, len(a)):
                scratch[i] += y[i - 1] * x[i]
            y = y * scratch + 0.1
        total += scratch[len(a) - 1] * y[0]
        x = y
    return total + np.sum(x)


program(arrays_made_before_an_inner_loop, at=[(np.array([0.7, 0.3, -1.2, 0.4]), t) for t in (0, 1, 2, 4)])


def scratch_of_other_lengths(a, iterations):
    """The scratch array of an iteration grows with its number, and is read through a view."""
    total = 0.0
    for t in range(iterations):
        scratch = np.zeros(t + 1)
        other = np.ones(len(a))
        part = other[1:]
        for i in range(t):
            scratch[i] += a[i % len(a)] * a[0]
            part[0] *= a[i % len(a)]
        total += np.sum(scratch * scratch) + other[1]
    return total


program(scratch_of_other_lengths, at=[(np.array([0.7, 0.3, -1.2]), t) for t in (0, 1, 2, 5)])


def array_replaced_in_some_iterations(a, iterations):
    """Whether an iteration carries a new array depends on the elements of the old one."""
    x = a * 1.0
    for t in range(iterations):
        if x[0] > 0.2:
            x = x * x
        else:
            x[0] = x[0] + 0.3
    return np.sum(x * x)


program(array_replaced_in_some_iterations, at=[(np.array([0.4, 0.3, -1.2]), t) for t in (0, 1, 3)])


def paths_that_end_early(a, noise, barrier):
    """Independent paths, each of which may end early: the kept values of one are overwritten by the next."""
    paths, steps = noise.shape
    total = 0.0
    for p in range(paths):
        price = a
        alive = True
        for t in range(steps):
            price *= np.exp(a * noise[p, t])
            if price < barrier:
                alive = False
                break
        if alive:
            total += price * price
    return total * a


program(
    paths_that_end_early,
    at=[
        (1.2, np.array([[0.3, -0.4, 0.2], [-0.5, -0.6, 0.4], [0.1, 0.2, -0.3]]), 0.6),
        (1.2, np.zeros((0, 3)), 0.6),
        (1.2, np.zeros((2, 0)), 0.6),
    ],
)


def counters_in_step(a, n):
    """Counters that go in step with each other and with a `for`, forwards, backwards, and used after it."""
    up, also, down, twice = 2, 2, n, 0
    total = 0.0
    for i in range(n):
        total += a[up - 2] * a[also % len(a)] * total + a[down - 1] * a[twice % len(a)]
        up += 1
        down -= 1
        also += 1
        twice += 2
    for i in range(n - 1, -1, -1):
        down += 1
        up -= 1
        total += a[up - 2] * math.sin(total) + a[down - 1]
    return total * (1.0 + up + 0.1 * down - also + 0.01 * twice)


program(counters_in_step, at=[(np.array([0.4, 0.3, -1.2, 0.9]), n) for n in (4, 1, 0)])


def counters_that_fall_out_of_step(x, n):
    """Counters that start together, but do not go on in every iteration; and a loop that is left between them."""
    every, some, k = 0, 0, 0
    total = x
    while k < n:
        k += 1
        every += 1
        if total * x < 0.3:
            continue
        some += 1
        total = math.sin(total) + 0.1 * some * x
        if every > 4 and total > 0.2:
            break
    return total * (every + 0.5 * some) + x * k


program(counters_that_fall_out_of_step, at=[(0.8, 7), (0.4, 3), (-0.7, 2), (0.8, 0)])


def buffer_filled_and_returned(a, n):
    """A copy that is changed and swapped with another array: what is returned may be either of the two."""
    u = a.copy()
    v = np.zeros_like(a)
    for t in range(n):
        for i in range(len(a)):
            v[i] = u[i] * u[-1 - i] + 0.1 * t
        u, v = v, u
    a[0] = u[1] * a[0]
    return a[0] + u[0] * u[2] - v[1]


program(buffer_filled_and_returned, at=[(np.array([0.4, 0.3, -1.2]), n) for n in (0, 1, 4)])


def names_bound_inside_comprehensions(x):
    """`:=` inside a comprehension binds in the function around it, also where `any` stops early."""
    total, w = 0.0, 0.0
    sums = [total := total + v for v in (x, 2.0 * x, 3.0 * x)]
    if any((w := x * k) > 0.5 for k in range(5)):
        total += w * w
    squares = [y * y for k in range(4) if (y := x - 0.2 * k) > 0.0]
    return sums[2] * sums[0] + total + sum(squares) * y


program(names_bound_inside_comprehensions, at=[(0.3,), (0.05,), (0.71,)])


def generators_with_keywords(a):
    """The argument after a generator is used: the start of a sum or a product."""
    return sum((v * v for v in a), start=2.0) * math.prod((v for v in a), start=3.0) + sum((v for v in a), a[0])


program(generators_with_keywords, at=[(np.array([0.4, 0.3, -1.2]),)])


def expressions_put_into_a_list(a):
    """An expression of arrays is computed when it is put into a list or a named tuple, not when it is read."""
    held = [a, a]
    held[0] = a * 2.0
    pair = Particle(a, a)
    pair = pair._replace(position=a * 3.0)
    a[0] = 5.0 * a[1]
    return np.sum(held[0] * held[1]) + np.sum(pair.position) * pair.velocity[0]


program(expressions_put_into_a_list, at=[(np.array([0.4, 0.3, -1.2]),)])


def tuple_beside_an_array(a, n):
    """`zip` of a tuple with arrays and lists of other lengths."""
    total = 0.0
    for weight, value, k in zip((0.5, 2.0, 3.0), a, range(n)):
        total += weight * value * value * (k + 1)
    for (p, q), r in zip(zip((1.0, 2.0), [total, total * total]), (3.0, a[0])):
        total += p * q * r
    return total


program(
    tuple_beside_an_array, at=[(np.array([0.4, 0.3]), 4), (np.array([0.4, 0.3, 0.1, 0.9]), 2), (np.array([0.7]), 0)]
)

WEIGHTS = [(-1, 0.5), (0, -1.0), (1, 0.75)]
CONSTANTS = {"g": 9.81, "n": 2, "table": np.array([0.3, -0.4]), "shape": math.sin}


def structures_from_outside(a):
    """Lists and dictionaries of the module are read as they are."""
    total = sum(w * a[1 + k] ** CONSTANTS["n"] for k, w in WEIGHTS)
    for k in range(len(WEIGHTS)):
        total += CONSTANTS["g"] * a[WEIGHTS[k][0]] * CONSTANTS["table"][k % 2]
    return CONSTANTS["shape"](total)


program(structures_from_outside, at=[(np.array([0.4, 0.3, -1.2]),)])


def recursion_with_names_of_its_own(a, n):
    """A nested recursive function whose parameter has the name of a variable around it."""

    def run(u, k):
        if k == 0:
            return 0.0
        u[0] *= u[1]
        return u[0] + run(u, k - 1)

    u = a * 1.0
    return run(u, n) + np.sum(u)


program(recursion_with_names_of_its_own, at=[(np.array([0.4, 0.3, -1.2]), n) for n in (0, 1, 3)])


def flag_that_decides_a_shape(a, matrix):
    """A flag is a constant, so the type of a name may depend on it."""
    b = np.outer(a, a) if matrix else a
    return b[0, 1] * b[1, 1] if matrix else b[0] * b[1]


program(flag_that_decides_a_shape, at=[(np.array([0.4, 0.3]), True), (np.array([0.4, 0.3]), False)])


def lists_by_counters(x, n):
    """Positions that a loop counts are never negative, but positions beyond the list raise."""
    items = [x, x * x]
    for k in range(n):
        items.append(items[k] * x + items[k + 1])
    total = 0.0
    for k in range(len(items)):
        total += items[k] * total + items[k]
        items[k] *= 0.5
    for k in range(n, -1, -1):
        total += items[k] * items[k - 1]
    for k in range(2):
        if k == 0:
            items.pop()
        total += items[k]
    return total


program(lists_by_counters, at=[(0.4, 2), (0.7, 1)], raises=[((0.4, 0), IndexError)])


# --------------------------------------------------------------------- recursion that gives arrays and changes lists


def list_that_may_not_be_there(x, n):
    """A list that one loop makes, if it runs, and that another loop reads only in that case."""
    while n > 0:
        n -= 1
        items = []
        for k in range(3):
            items.append(x * (k + 1))
    total = 0.0
    for _ in range(2):
        total += items[0] * x
    return total + sum([item * item for item in items])


program(list_that_may_not_be_there, at=[(0.7, 2)], raises=[((0.7, 0), UnboundLocalError)])


def rows_that_may_not_be_there(x, n):
    """The same for lists inside of a list, in branches and loops."""
    for j in range(n):
        if j > 0:
            rows = []
            for k in range(3):
                rows.append([x, x * x * k])
    total = 0.0
    for t in range(4):
        if t % 2 == 0:
            total += rows[0][0] * x
        else:
            x = x * rows[-1][1]
    return total + sum([row[0] * len(row) + row[1] for row in rows])


program(rows_that_may_not_be_there, at=[(0.7, 2), (1.1, 3)])


def arrays_of_a_list_that_grows(a, n):
    """Arrays that a loop collects become one array, side by side or one behind the other."""
    states = []
    u = a
    for k in range(n):
        u = np.sin(u) * (1.0 + 0.1 * k)
        states.append(u)
    return np.sum(np.array(states)[:, 0] ** 2) + np.sum(np.concatenate(states) * np.arange(n * len(a)))


program(arrays_of_a_list_that_grows, at=[(vector(3), 3), (vector(2), 1)], raises=[((vector(3), 0), ValueError)])


def arrays_of_rows(x, n):
    """Lists in a list are joined and stacked as arrays are."""
    rows = []
    for k in range(n):
        rows.append([x**k, x * k])
    return np.sum(np.concatenate(rows) * np.arange(2 * n)) + np.sum(np.vstack(rows)[:, 0] ** 2)


program(arrays_of_rows, at=[(0.7, 3), (1.3, 1)])


def recursive_merge_sort(a):
    """Divide and conquer: a recursive function returns its argument, or an array that it makes."""

    def sort(v):
        if len(v) <= 1:
            return v
        middle = len(v) // 2
        left, right = sort(v[:middle]), sort(v[middle:])
        out = np.empty_like(v)
        i = j = 0
        for k in range(len(v)):
            if j >= len(right) or (i < len(left) and left[i] <= right[j]):
                out[k] = left[i]
                i += 1
            else:
                out[k] = right[j]
                j += 1
        return out

    return np.sum(sort(a) ** 2 * np.arange(len(a)))


program(recursive_merge_sort, at=[(vector(5),), (vector(1),)])


def recursive_sort_by_masks(a):
    """The arrays that it is called with have any length, also none."""

    def sort(v):
        if len(v) < 2:
            return v
        rest = v[1:]
        return np.concatenate((sort(rest[rest < v[0]]), v[:1], sort(rest[rest >= v[0]])))

    return np.sum(sort(a) * np.arange(len(a))) + np.sum(sort(a[len(a) :]))


program(recursive_sort_by_masks, at=[(vector(4),)])


def recursive_fourier_transform(re, im):
    """A pair of arrays is returned, and parts of arrays that are not contiguous are passed."""

    def transform(re, im):
        n = len(re)
        if n == 1:
            return re, im
        even_re, even_im = transform(re[::2], im[::2])
        odd_re, odd_im = transform(re[1::2], im[1::2])
        angle = 2 * np.pi * np.arange(n // 2) / n
        c, s = np.cos(angle), -np.sin(angle)
        t_re, t_im = c * odd_re - s * odd_im, c * odd_im + s * odd_re
        return np.concatenate((even_re + t_re, even_re - t_re)), np.concatenate((even_im + t_im, even_im - t_im))

    a, b = transform(re, im)
    return np.sum(a * a * np.arange(len(a))) + np.sum(b**3)


program(recursive_fourier_transform, at=[(vector(4), vector(4) * 0.7)])


def recursive_power_of_a_matrix(m, n):
    """Powers by squaring."""

    def power(x, k):
        return x if k == 1 else (power(x @ x, k // 2) if k % 2 == 0 else x @ power(x, k - 1))

    return np.sum(power(m, n) * np.array([[1.0, 2.0], [3.0, 4.0]]))


program(recursive_power_of_a_matrix, at=[(grid(2, 2), 6), (grid(2, 2), 1)])


def recursive_steps_in_a_loop(a, iterations):
    """The returned array is carried, written to and stored in every iteration."""

    def step(u, n):
        if n == 0:
            return u
        return step(u + 0.1 * (np.sin(u) - u * u), n - 1)

    u = a.copy()
    total = 0.0
    for k in range(iterations):
        u = step(u, k)
        total += np.sum(u * u)
        u[k] = u[k] * 2.0
    return total


program(recursive_steps_in_a_loop, at=[(vector(3), 3), (vector(3), 0)])


def recursive_vectors_of_two_functions(a, n):
    """Two functions that call each other return arrays, and read one of the function around them."""
    w = np.cos(a)

    def even(v, k):
        return v * 2.0 if k == 0 else odd(np.sin(v), k - 1) + w

    def odd(v, k):
        return np.ones(len(v)) if k == 0 else even(v * v, k - 1) * w

    return np.sum(even(a, n)) + np.sum(odd(a, n) ** 2)


program(recursive_vectors_of_two_functions, at=[(vector(3), 3), (vector(3), 0)])


def recursive_numbers_and_arrays(x, n):
    """A tuple of a number and an array is returned."""

    def visit(k):
        if k == 0:
            return x, np.array([x, x * x])
        s, v = visit(k - 1)
        return s * x + v[0], v * s

    pair = visit(n)
    return pair[0] * pair[1][1]


program(recursive_numbers_and_arrays, at=[(0.7, 3), (0.7, 0)])


def recursive_results_written_and_passed(a):
    """An array that was returned is written, and passed on to another call."""

    def squashed(v, n):
        return v * 1.0 if n == 0 else squashed(np.tanh(v), n - 1)

    total = 0.0
    for k in range(3):
        w = squashed(a, k)
        total += np.sum(w * w)
        w[k] = w[k] ** 2
        w *= a
        total += np.sum(squashed(w, 1))
    return total


program(recursive_results_written_and_passed, at=[(vector(3),)])


def recursive_single_precision(a):
    """Arrays of float32 are passed and returned."""

    def halved(v, n):
        return v if n == 0 else halved(v * v, n - 1) + v

    return float(np.sum(halved(a, 2)))


program(recursive_single_precision, at=[(vector(3).astype(np.float32),)], single_precision=True)


def recursive_array_assigned_around(a, n):
    """A recursive function assigns an array of the function around it."""
    u = a * 1.0

    def visit(k):
        nonlocal u
        if k > 0:
            u = np.sin(u) + a * k
            visit(k - 1)

    visit(n)
    u[0] = u[0] * 2.0
    return np.sum(u * a)


program(recursive_array_assigned_around, at=[(vector(3), 3), (vector(3), 0)])


def recursive_sort_of_a_list(items):
    """A recursive function takes a list and returns it, or a list that is joined from the results of its calls."""

    def sort(v):
        if len(v) <= 1:
            return v
        low = [x for x in v[1:] if x < v[0]]
        high = [x for x in v[1:] if x >= v[0]]
        return sort(low) + [v[0]] + sort(high)

    return sum(v * v * (k + 1) for k, v in enumerate(sort(items)))


program(recursive_sort_of_a_list, at=[([0.5, 0.2, 0.9, 0.1, 0.7],), ([0.4],)])


def recursive_list_of_pairs(a):
    """The list that is returned holds pairs."""

    def split(low, high):
        if high - low == 1:
            return [(a[low], low)]
        middle = (low + high) // 2
        return split(low, middle) + split(middle, high)

    total = 0.0
    for v, k in split(0, len(a)):
        total += v * v * (k + 1)
    return total


program(recursive_list_of_pairs, at=[(vector(4),), (vector(1),)])


def recursive_walk_that_collects(tree):
    """Lists that are passed, and lists of the function around it, get longer."""
    after = []

    def walk(node, before):
        if node < len(tree):
            before.append(tree[node])
            walk(2 * node + 1, before)
            walk(2 * node + 2, before)
            after.append(tree[node] ** 2)

    before = []
    walk(0, before)
    total = 0.0
    for p, q in zip(before, after):
        total += p * q
    return total + before[-1]


program(recursive_walk_that_collects, at=[(vector(5),)])


def recursive_search_that_goes_back(a, n):
    """Backtracking: `append`, the call, `pop`."""
    path = []
    total = 0.0

    def visit(k):
        nonlocal total
        if k == n:
            product = 1.0
            for v in path:
                product *= v
            total += product
            return
        for i in range(len(a)):
            if i != k:
                path.append(a[i])
                visit(k + 1)
                path.pop()

    visit(0)
    return total


program(recursive_search_that_goes_back, at=[(vector(3), 2)])


def recursive_function_with_a_memory(x, n):
    """Elements of a list of the enclosing function are assigned, and read again."""
    memory = [0.0] * 6

    def value(k):
        if k < 2:
            return x + k
        if memory[k] == 0.0:
            memory[k] = value(k - 1) * 0.5 + value(k - 2) * x
        return memory[k]

    return value(n) + memory[3]


program(recursive_function_with_a_memory, at=[(0.6, 5)])


def recursive_list_handed_down(x, n):
    """A list is passed on with one element more, one is changed and returned, and one is assigned."""
    path = [x]

    def longer(k, so_far):
        return longer(k - 1, so_far + [x * k]) if k > 0 else so_far[0] + so_far[-1]

    def filled(k, items):
        if k == 0:
            return items
        items.append(x * k)
        return filled(k - 1, items)

    def assigned(k):
        nonlocal path
        if k > 0:
            path = path + [path[-1] * x]
            assigned(k - 1)

    assigned(n)
    return longer(n, [x * x]) * sum(filled(n, [])) + sum(path)


program(recursive_list_handed_down, at=[(0.8, 3)])


def recursive_return_from_a_loop(a, n):
    """An array is returned from inside a loop, or by the next call."""

    def visit(v, k):
        for i in range(len(v)):
            if v[i] > 1.23 or k == 0:
                return v * v[i]
            v = v + 0.2
        return visit(v, k - 1)

    return np.sum(visit(a, n))


program(recursive_return_from_a_loop, at=[(array(0.1, 0.3, 0.2), 3), (array(0.1, 0.3, 0.2), 0)])


def made_in_the_first_iteration(x, n):
    """A name assigned in the first iteration is read in later iterations, also before it is assigned again."""
    total = 0.0
    for i in range(n):
        for j in range(2):
            if i > 0:
                total += last * j  # noqa: F821
        if i == 0:
            power = x
            steps = [x]
            field = np.full(3, x)
        else:
            power = power * x
            steps.append(steps[-1] * 0.5)
            field[i % 3] += steps[-1] * power
        last = power * (i + 1)
        if i == 1:
            older = last * last
        elif i > 1:
            older *= last
        total += (older if i > 0 else 0.0) + np.sum(field)
    return total


program(made_in_the_first_iteration, [(1.3, 0), (1.3, 1), (0.7, 2), (0.9, 5)])


def condition_of_the_iterations_before(x):
    """The condition of a loop reads a name that only the body assigns."""
    k = 0
    while k == 0 or abs(change) > 0.05:  # noqa: F821
        change = 0.5 * (x / (1.0 + k) - x * x * 0.1)
        x -= change
        k += 1
    return x * change


program(condition_of_the_iterations_before, [(1.3,), (4.1,), (0.0,)])


def none_in_the_first_iteration(x, n):
    """A name that is None before a loop is used as a number, or an array, in the iterations after the first."""
    last, field = None, None
    total = x
    for i in range(n):
        if i > 0 and last > -5.0:
            total += last * x
            field[i % 2] += last * 0.3
            total += np.sum(field) * field[1]
        else:
            field = np.array([x, 0.5])
        last = total * 0.5
    return total * np.sum(np.sin(field))


program(none_in_the_first_iteration, [(1.3, 1), (0.7, 2), (0.4, 4)], raises=[((1.3, 0), TypeError)])


class Settings(NamedTuple):
    """Some numbers, most of which have defaults."""

    scale: float
    range: tuple[float, float] = (1.0, 2.0)


def named_tuple_with_a_tuple_as_default(x, n):
    """A field without an argument has the default of the class, which may be a tuple."""
    settings = Settings(x)
    for _ in range(n):
        settings = settings._replace(range=(settings.scale, x * settings.range[1]))
    return settings.scale * settings.range[1]


program(named_tuple_with_a_tuple_as_default, [(1.3, 0), (0.7, 2)])


def lists_in_conditions(x, n):
    """`and` and `or` of lists and numbers, of which only the truth value matters."""
    stack = [x * i for i in range(n)]
    total = x
    while stack and total < 3.0:
        total = total * stack.pop() + 1.0
    if not (stack and x > 5.0) or (n and stack):
        total *= x
    peak = None
    if n > 1:
        peak = 3.0 * x
    if peak and peak > 0.1 or not n:
        total += x
    return total * (2.0 if stack or n > 2 else x) + sum([v for v in stack if v and stack])


program(lists_in_conditions, [(1.3, 0), (1.3, 1), (0.7, 2), (1.4, 3), (2.1, 6)])


def recursion_over_what_earlier_iterations_made(x, n):
    """A recursive function reads a name that only an earlier iteration assigns, and one that is None before."""
    total, weight = x, None

    def down(k):
        return weight * x if k == 0 else down(k - 1) * x

    for i in range(n):

        def back(k):
            return last if k == 0 else back(k - 1) + x

        if i > 0:
            total += down(2) + back(i)
        last = total * 0.5
        weight = x * (i + 1)
    return total


program(recursion_over_what_earlier_iterations_made, [(0.7, 0), (0.7, 1), (0.9, 3)])


# ------------------------------------------------------------------------------------------ small arrays of known size


def turned_by(angle):
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def arm_of_joints(angles, target):
    """Small matrices that a loop replaces, from a helper, with a product in each iteration."""
    rotation = np.eye(3)
    position = np.zeros(3)
    for k in range(len(angles)):
        rotation = rotation @ turned_by(angles[k]) @ turned_by(0.5 * k).T
        position = position + rotation @ np.array([0.3, 0.1 * k, 0.2])
    return np.sum((position - target) ** 2)


program(arm_of_joints, [(vector(4), vector(3)), (vector(1), vector(3)), (np.zeros(0), vector(3))])


def filter_with_gaps(noise, values):
    """A Kalman filter that skips what was not measured: equations, an inverse and a determinant of known size."""
    motion = np.array([[1.0, 0.5], [0.0, 1.0]])
    measure = np.array([[1.0, 0.0], [0.3, 1.0]])
    state, spread, total = np.zeros(2), np.eye(2) * 2.0, 0.0
    for k in range(len(values)):
        state = motion @ state
        spread = motion @ spread @ motion.T + np.eye(2) * math.exp(noise[0])
        if values[k] > 100.0:
            continue
        expected = measure @ spread @ measure.T + np.eye(2) * math.exp(noise[1])
        surprise = np.array([values[k], 0.5 * values[k]]) - measure @ state
        gain = spread @ measure.T @ np.linalg.inv(expected)
        total += surprise @ np.linalg.solve(expected, surprise) + math.log(np.linalg.det(expected))
        state = state + gain @ surprise
        spread = spread - gain @ measure @ spread
    return total


program(filter_with_gaps, [(array(0.1, -0.3), array(0.5, 200.0, 1.5, -0.4)), (array(0.1, -0.3), array(200.0))])


def small_factors(a):
    """Cholesky factors, equations and determinants of three rows, with rows that have to be exchanged."""
    m = np.array([[a[0], a[1], a[2]], [a[3], a[4], a[5]], [a[6], a[7], a[8]]])
    spread = m @ m.T + np.eye(3)
    factor = np.linalg.cholesky(spread)
    x = np.linalg.solve(m, factor[2])
    return np.sum(factor**3) + np.sum(x * x) + np.linalg.det(m) * np.linalg.det(spread)


program(small_factors, [(vector(9),), (array(0.0, 0.0, 1.5, 0.0, 2.0, 0.3, 1.1, 0.2, 0.1),)])


def determinant_of_a_singular_matrix(a):
    """Has a derivative where the first column is zero."""
    m = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            m[i, j] = a[i, j] * (j + 1.0)
    return np.linalg.det(m)


program(
    determinant_of_a_singular_matrix,
    [(grid(3, 3),), (grid(3, 3) * np.array([0.0, 1.0, 1.0]),), (grid(3, 3) * np.array([1.0, 1.0, 0.0]),)],
)


def equations_without_a_solution(a, n):
    """A singular matrix raises the exception of NumPy, and none in a branch that does not run."""
    m = np.array([[a[0], a[1]], [2.0 * a[0], 2.0 * a[1]]])
    if n > 0:
        return np.linalg.solve(m, a[:2])[0]
    return np.linalg.cholesky(m)[1, 1] if n < 0 else m[1, 0] * m[0, 1]


program(
    equations_without_a_solution,
    [(vector(3), 0)],
    wrt=(0,),
    raises=[((vector(3), 1), np.linalg.LinAlgError), ((-np.abs(vector(3)), -1), np.linalg.LinAlgError)],
)


def small_buffers_swapped(a, n):
    """Two small buffers that change places, one of them read before it is written."""
    old, new = np.zeros(3), np.ones(3)
    for k in range(n):
        for i in range(3):
            new[i] = math.sin(old[i] + a[i]) * old[(i + 1) % 3] + new[i] * 0.5
        old, new = new, old
    return old[0] * old[1] + new[2] * old[2]


program(small_buffers_swapped, [(vector(3), 3), (vector(3), 0)], wrt=(0,))


def two_names_of_a_small_array(a, n):
    """A value stored by one name of an array is read by another name, also in the next iteration of a loop."""
    v = np.array([a[0], a[1]])
    w = v
    u = np.array([a[1], a[2]]) if n > 1 else v
    total = 0.0
    for _ in range(n):
        total += w[0] * u[1]
        v[0] = math.sin(total) + w[1]
        u[1] += v[0]
    return total + v[0] * w[1]


program(two_names_of_a_small_array, [(vector(3), 3), (vector(3), 1), (vector(3), 0)], wrt=(0,))


def rows_of_a_small_matrix(a):
    """Views of rows and columns, from the end too, stored to and reshaped."""
    m = np.zeros((3, 2))
    m[:, 0] = a[:3]
    m[-1] = m[0] * 2.0 + a[1]
    column = m[::-1, -1]
    column[1] = a[0] * a[2]
    flat = m.reshape(6)
    flat[1:3] *= a[1]
    return np.sum(m[1:] ** 2) + flat[-2] * m.T[1, 0] + m[0, 1]


program(rows_of_a_small_matrix, [(vector(4),)])


def stored_in_branches_of_loops(a, n):
    """Elements that only some iterations store, in a loop with a `break`."""
    best = np.empty(2)
    best[0], best[1] = a[0], 0.0
    for i in range(n):
        pair = np.array([a[i] * a[i], math.cos(a[i])])
        if pair[1] < 0.2:
            break
        if pair[0] > best[0]:
            best = pair
        else:
            best[1] += pair[1] * best[0]
    return best[0] * 2.0 + best[1]


program(stored_in_branches_of_loops, [(vector(6), 6), (vector(6), 0), (array(0.3, 0.9, 1.5, 0.2), 4)], wrt=(0,))


def small_array_of_single_precision(x, n):
    """Every store rounds a float; integers and booleans stay as they are."""
    v = np.zeros(2, np.float32)
    counts = np.zeros(2, np.int64)
    seen = np.zeros(2, np.bool_)
    for k in range(n):
        v[k % 2] += x * 0.1
        counts[0] += k
        seen[1] = seen[0]
        seen[0] = counts[0] > 2
    return float(v[0]) * 2.0 + float(v[1]) * counts[0] + (x if seen[1] else 0.0)


program(small_array_of_single_precision, [(0.7, 4), (0.7, 1)], wrt=(0,), single_precision=True)


def small_array_with_an_argument(points, x):
    """Products of a small matrix with rows of an argument, whose lengths have to fit."""
    m = np.array([[x, 0.5], [x * x, -1.0]])
    total = 0.0
    for point in points:
        q = m @ point
        total += q[0] * q[1] + point @ q
    return total


program(
    small_array_with_an_argument,
    [(grid(4, 2), 0.3), (grid(1, 2), 0.3)],
    raises=[((grid(4, 3), 0.3), ValueError)],
)


def small_array_in_a_loop_of_unknown_length(x):
    """A `while` whose condition reads elements that it replaces."""
    y = np.array([x, 1.0])
    steps = 0
    while y[0] * y[0] + y[1] * y[1] < 50.0:
        y = y + 0.1 * np.array([y[1], y[0] * x])
        steps += 1
    return y[0] + y[1] * steps


program(small_array_in_a_loop_of_unknown_length, [(1.5,), (9.0,)])


# --------------------------------------------------------- generators, contexts and classes, in combination


class Walker:
    """A particle whose steps are a generator, and whose writes are undone behind a `with`."""

    def __init__(self, position, speed):
        self.position, self.speed = position, speed

    def steps(self, n, dt):
        for k in range(n):
            self.position = self.position + dt * self.speed
            self.speed = self.speed - dt * math.sin(self.position)
            yield k, self.position

    @contextlib.contextmanager
    def slower(self, factor):
        before, self.speed = self.speed, self.speed * factor
        yield self.speed
        self.speed = before + 0.1 * self.speed


def generator_method_that_writes_attributes(x, v, n):
    """A generator that is a method changes the instance between two elements, and the loop does, too."""
    walker = Walker(x, v)
    found = {"far": 0.0, "steps": 0}
    for k, position in walker.steps(n, 0.1):
        if position > 1.2:
            walker.speed *= 0.5
            found["far"] += position * k
            continue
        if position < -0.5:
            break
        found["steps"] += 1
    return found["far"] + walker.position * walker.speed + x * found["steps"]


program(
    generator_method_that_writes_attributes,
    [(0.3, 1.0, 5), (1.1, 2.0, 6), (-0.3, -1.5, 8), (0.3, 1.0, 0)],
)


def generator_inside_contexts_and_exceptions(a, n):
    """A context of the instance around a loop over a generator that ends by an exception, caught outside."""
    walker, total = Walker(a[0], a[1]), 0.0
    for factor in (0.5, 2.0):
        try:
            with walker.slower(factor) as speed:
                total += speed
                for _, position in itertools.islice(walker.steps(10, 0.2), 1, n):
                    if position > 1.5:
                        raise ValueError("too far")
                    total = total * 0.9 + position * a[2]
        except ValueError:
            total += walker.speed
    return total * walker.speed


program(
    generator_inside_contexts_and_exceptions,
    [(array(0.3, 1.0, 0.7), 4), (array(0.9, 2.0, 0.7), 6), (array(0.3, 1.0, 0.7), 1)],
)


def segments(a, size):
    """Parts of an array, and the rest."""
    for start in range(0, len(a), size):
        part = a[start : start + size]
        if len(part) < size:
            yield part, False
            return
        yield part, True


def generator_of_views_that_are_written(a, size):
    """A generator gives views, into which the loop writes, before the generator goes on."""
    b = a * 1.0
    whole = 0
    for part, is_whole in segments(b, size):
        part[0] = part[0] * 2.0 + b[-1]
        b[-1] = b[-1] * part[0]
        whole += is_whole
    return np.sum(b * b) * (1 + whole)


program(generator_of_views_that_are_written, [(vector(6), 2), (vector(7), 3), (vector(2), 4), (vector(0), 2)][:3])


def generators_of_generators(a, limit):
    """Generator expressions over generators, zipped with a sequence, with `yield from` and an early return."""

    def both(n):
        yield from (v * v for v in a[:n])
        yield from (v * a[0] for v in a[n:])

    total = 0.0
    for k, (w, v) in enumerate(zip(a, both(2))):
        if v * k > limit:
            return total * w
        total += v / (1.0 + k) + sum(u * w for u in both(1) if u > 0.0)
    return total


program(generators_of_generators, [(array(0.5, 1.2, 0.8, 2.0), 9.0), (array(0.5, 1.2, 0.8, 2.0), 0.3)])
