"""Parts of Python's language that numerical programs use around their numbers."""

from __future__ import annotations

import enum
import functools
import numbers
import types
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


def case(function, *args):
    return pytest.param(function, args, id=function.__name__)


def refuses(function, *args, match):
    with pytest.raises(DifferentiationError, match=match):
        srcdiff.grad(function, backend="python")(*args)


# -- keywords that a function collects ----------------------------------------------------------------------------


SLOW = {"rate": 2.0}


def damped(x, **options):
    rate = options.get("rate", 0.5)
    if "shift" in options:
        x = x + options["shift"]
    return np.exp(-rate * x) * len(options)


def forwarded(x, scale=2.0, **options):
    return scale * damped(x, **options)


def weighted(x, /, *powers, **weights):
    total = 0.0
    for power in powers:
        total += x**power
    for name, weight in weights.items():
        total += weight * x if name == "linear" else weight * np.sin(x)
    return total


def same_name(x, /, **others):
    return x * others["x"]


def named_like_parameters(*args, **kwargs):
    return args[0] * kwargs["args"] ** 2 + kwargs["kwargs"]


def default_of_keyword(x, **options):
    return x * sum(options.values()) + (0.0 if options else x**3)


def recurs(x, n, **options):
    if n == 0:
        return x * options["scale"]
    return recurs(np.sin(x) * options["scale"], n - 1, **options)


def collects(x):
    return damped(x) + damped(x, rate=x, shift=x * x) * forwarded(x, 3.0, rate=0.1 * x)


def passes_on(x):
    options = {"rate": x, "shift": 0.25}
    return forwarded(x, **options) + forwarded(x, scale=x, **options) + forwarded(x, **{**options, "scale": 2 * x})


def goes_through_them(x):
    return weighted(x, 2, 3, linear=x * x, sine=2.0) + weighted(x) + weighted(x, sine=x)


def takes_the_name_of_a_parameter(x):
    return same_name(x, x=x**2) + named_like_parameters(x, args=np.cos(x), kwargs=x)


def with_none(x):
    return default_of_keyword(x) + default_of_keyword(x, a=x, b=2.0)


def of_a_lambda(x):
    f = lambda y, **options: y * options.get("scale", y)  # noqa: E731
    return f(x) + f(x, scale=x**3)


def of_a_nested_function(x):
    def inner(y, **options):
        return y * options["scale"] * x

    return inner(x, scale=np.sin(x)) + functools.partial(inner, scale=x)(2.0)


def of_a_recursive_function(x, n):
    return recurs(x, n, scale=1.5 * x)


def of_a_derivative(x):
    return srcdiff.grad(lambda y: damped(y, rate=x, shift=y))(2.0 * x)


def derivative_with_keywords(x):
    by_all = srcdiff.grad(forwarded, wrt=("x", "scale", "options"))(x, x * x, rate=2.0 * x)
    return srcdiff.grad(damped)(x, rate=x) + by_all[0] * by_all[1] + by_all[2]["rate"]


def arrays_in_keywords(x):
    def filled(**parts):
        parts["a"][0] = x
        return np.sum(parts["a"] * parts["b"])

    a = np.ones(3)
    return filled(a=a, b=np.array([x, 2.0, x * x])) + a[0]


class Model:
    def __init__(self, **parameters):
        self.rate = parameters["rate"]
        self.scale = parameters.get("scale", 2.0)

    def value(self, x, **options):
        return self.scale * np.exp(-self.rate * x) + options.get("offset", 0.0)


def of_a_class(x):
    return Model(rate=x).value(x, offset=x**2) + Model(rate=2.0, scale=x).value(x)


KEYWORDS = [
    case(collects, 0.7),
    case(passes_on, 0.7),
    case(goes_through_them, 0.7),
    case(takes_the_name_of_a_parameter, 0.7),
    case(with_none, 0.7),
    case(of_a_lambda, 0.7),
    case(of_a_nested_function, 0.7),
    case(of_a_recursive_function, 0.7, 3),
    case(of_a_derivative, 0.7),
    case(derivative_with_keywords, 0.7),
    case(arrays_in_keywords, 0.7),
    case(of_a_class, 0.7),
]


@pytest.mark.parametrize(("function", "args"), KEYWORDS)
def test_keywords_that_a_function_collects(function, args):
    srcdiff.check(function, *args, order=2, backend="python")


@pytest.mark.numba
@pytest.mark.parametrize("function", [collects, goes_through_them])
def test_collected_keywords_in_compiled_code(function):
    srcdiff.check(function, 0.7, order=2, backend="numba")


def test_keywords_that_python_does_not_accept_are_refused():
    refuses(lambda x: forwarded(x, 2.0, scale=x), 1.0, match="gets `scale` by position and by keyword")
    refuses(lambda x: forwarded(x, rate=x, **SLOW), 1.0, match="the keyword `rate` is given twice")
    refuses(lambda x: forwarded(x, **{1: x}), 1.0, match="needs strings as keys, but it has the key 1")


def test_a_keyword_that_is_not_there_is_refused():
    refuses(lambda x: same_name(x, y=x), 1.0, match="x")


# -- what a program asks about its values -------------------------------------------------------------------------


class Shape:
    sides = 4.0

    def __init__(self, size):
        self.size = size

    def area(self, x):
        return self.size * x * x

    @property
    def doubled(self):
        return 2.0 * self.size


class Round(Shape):
    sides = 0.0

    def __call__(self, x):
        return self.size * np.sin(x)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Pair(NamedTuple):
    a: float
    b: float


class Colour(enum.Enum):
    RED = 1


SHAPE = Shape(3.0)
NUMBERS = [1.0, 2.0]


def reads_by_name(x):
    return getattr(SHAPE, "size") * x + getattr(SHAPE, "area")(x) + getattr(np, "sin")(x) + getattr(SHAPE, "doubled")  # noqa: B009


def reads_or_takes_a_default(x):
    made = Round(x)
    total = getattr(SHAPE, "missing", x) + getattr(made, "size", 0.0) + getattr(made, "sides", 5.0) * x
    return total + getattr(Slotted(x), "a", 2.0) ** 2 + getattr(Slotted(x), "b", x**3) + getattr(None, "a", x)


def names_in_a_loop(x):
    pair, total = Pair(x, x * x), 0.0
    for name in ("a", "b"):
        total += getattr(pair, name) ** 2
    return total


def asks_for_attributes(x, a):
    total = 0.0
    for thing in (x, a, SHAPE, None, np, NUMBERS, Pair(x, x), {"k": x}, Colour.RED, np.sin, "text"):
        total *= 2.0
        if hasattr(thing, "shape"):
            total += 1.0
        total *= 2.0
        if hasattr(thing, "size") or hasattr(thing, "__len__") or hasattr(thing, "detach"):
            total += 1.0
    return total * x + np.sum(a)


def asks_for_types(x, a):
    total = 0.0
    inner = lambda: x  # noqa: E731
    for thing in (x, a, 1, True, SHAPE, Round(x), None, NUMBERS, (1.0, x), Pair(x, x), [x], {"k": x}, "text", inner):
        for kind in (float, int, bool, np.ndarray, Shape, Round, list, tuple, Pair, dict, str, types.FunctionType):
            total *= 1.01
            if type(thing) is kind:
                total += 1.0
            if type(thing) != kind:  # noqa: E721
                total += 0.1
            if isinstance(thing, kind):
                total += 0.01
    return total * x * 1e-3 + np.sum(a)


def asks_for_abstract_classes(x, a):
    total = 0.0
    for thing in (x, a[0], 1, a, True):
        total *= 2.0
        if isinstance(thing, numbers.Real):
            total += 1.0
        if isinstance(thing, int | float) or isinstance(thing, (str, (list, np.ndarray))):
            total += 3.0
    return total * x + np.sum(a)


def number_of_the_same_type(x, a, n):
    one, zero = type(x)(1), type(a[0])(0)
    return one * x + (zero + x) ** 2 + type(n)(2.7) * x + type(a[0] * x)(3) * x


def instance_of_the_same_class(x):
    made = Round(x)
    return type(made)(x * x)(x) + (x if type(made).__name__ == "Round" else 0.0)


def what_can_be_called(x):
    total = 0.0
    for thing in (np.sin, Shape, SHAPE, Round(x), x, None, lambda y: y, SHAPE.area, functools.partial(max, x), "text"):
        total = 2.0 * total + (x if callable(thing) else 0.0)
    return total


def perhaps_none(x, n):
    y = None
    for k in range(n):
        y = x * k
    return y * x if isinstance(y, float) else x**2


ARRAY = np.array([1.0, 2.0])

ASKED = [
    case(reads_by_name, 0.7),
    case(reads_or_takes_a_default, 0.7),
    case(names_in_a_loop, 0.7),
    case(asks_for_attributes, 0.7, ARRAY),
    case(asks_for_types, 0.7, ARRAY),
    case(asks_for_abstract_classes, 0.7, ARRAY),
    case(number_of_the_same_type, 0.7, ARRAY, 3),
    case(instance_of_the_same_class, 0.7),
    case(what_can_be_called, 0.7),
    case(perhaps_none, 0.7, 3),
    case(perhaps_none, 0.7, 0),
]


@pytest.mark.parametrize(("function", "args"), ASKED)
def test_programs_inspect_their_values(function, args):
    srcdiff.check(function, *args, order=2, backend="python")


@pytest.mark.numba
@pytest.mark.parametrize(("function", "args"), [ASKED[1], ASKED[6]])
def test_compiled_programs_inspect_their_values(function, args):
    srcdiff.check(function, *args, backend="numba")


def by_type(x):
    return 2.0 * x if type(x) is float else 3.0 * x


def test_a_number_of_numpy_is_not_taken_for_one_of_python():
    gradient = srcdiff.grad(by_type, backend="python")
    assert gradient(1.0) == 2.0
    with pytest.raises(DifferentiationError, match="whether this number is Python's or NumPy's"):
        gradient(np.float64(1.0))
    assert gradient(1.0) == 2.0
    refuses(lambda a: a[0] if type(a[0]) is float else 2.0 * a[0], ARRAY, match="is Python's or NumPy's")
    refuses(
        lambda x, n: x if isinstance(n[0] + 1, int) else 2.0 * x, 1.0, np.array([1]), match="is Python's or NumPy's"
    )


def test_an_integer_to_differentiate_by_is_an_integer():
    assert srcdiff.grad(lambda x: 2.0 * x if isinstance(x, int) else 3.0 * x, backend="python")(2) == 2.0


def test_an_element_of_an_integer_array_is_no_int():
    f = lambda x, n: 2.0 * x if isinstance(n[0], int) else 3.0 * x  # noqa: E731
    assert srcdiff.grad(f, backend="python")(1.0, np.array([1])) == 3.0
    compiled = numba.njit(f)
    assert srcdiff.grad(compiled, backend="python")(1.0, np.array([1])) == 2.0


def test_attributes_that_come_and_go():
    box = types.SimpleNamespace(a=2.0)
    module = types.ModuleType("module_for_test")

    def f(x):
        return x * getattr(box, "a", 5.0) * (2.0 if hasattr(module, "b") else 1.0)

    gradient = srcdiff.grad(f, backend="python")
    assert gradient(1.0) == 2.0
    del box.a
    assert gradient(1.0) == 5.0
    module.b = 1
    assert gradient(1.0) == 10.0


class Cached:
    def __init__(self, w):
        self.w = w

    def value(self, x):
        if not hasattr(self, "kept"):
            self.kept = self.w * x
        return self.kept


def test_an_attribute_that_is_assigned_if_it_is_not_there():
    def once(x):
        cached = Cached(x)
        return cached.value(x) + cached.value(2.0 * x)

    def in_a_loop(x, n):
        cached, total = Cached(x), 0.0
        for k in range(n):
            total += cached.value(x + k)
        return total

    srcdiff.check(once, 0.7, order=2, backend="python")
    refuses(in_a_loop, 0.7, 3, match="`kept`")


def test_unsupported_inspection_is_refused():
    refuses(lambda x: x if hasattr(SHAPE, "doubled") else 0.0, 1.0, match="is a property")
    refuses(lambda x, n: getattr(SHAPE, "a" * n) * x, 1.0, 2, match="known at compile time|text|string")


# -- sums of booleans ---------------------------------------------------------------------------------------------


def sums_of_arrays(a):
    n = np.sum(a > 0) + np.count_nonzero(a > 1) + (a > 1.5).sum() + np.count_nonzero([v > 0 for v in a])
    return (n + np.mean(a > 0) + np.sum((a > 0) + (a > 1)) + np.cumsum(a > 0)[-1]) * a[0] ** 2


def sums_of_flags(a):
    flags = [a[0] > 0, a[1] > 0, a[1] > a[0]]
    n = sum(flags) + sum(v > 1 for v in a) + sum(a > 0) + (True + True)
    for v in a:
        n += v > 0
    return n * a[0] ** 2


def of_pythons_numbers(x, y):
    return ((x > 0) + (y > 0) - (x > y)) * x**2 + sum((x > 0, y > 0)) * y


@numba.njit
def in_compiled_code(a):
    n = (a[0] > 0) + (a[1] > 0) - (a[0] > a[1])
    return (n + (-(a[1] > 0.5)) * 0.5) * a[0] ** 2 + ((a[0] > 0) * (a[1] > 0) + (a[0] > 0)) * a[1]


@pytest.mark.parametrize("function", [sums_of_arrays, sums_of_flags])
def test_sums_of_booleans(function):
    srcdiff.check(function, np.array([0.5, 1.25]), order=2, backend="python")


def test_sums_of_booleans_of_python_and_of_numba():
    srcdiff.check(of_pythons_numbers, 0.7, 0.3, order=2, backend="python")
    srcdiff.check(in_compiled_code, np.array([0.5, 1.25]), order=2, backend="python")


@pytest.mark.numba
def test_sums_of_booleans_in_compiled_code():
    srcdiff.check(in_compiled_code, np.array([0.5, 1.25]), backend="numba")


def test_a_sum_of_booleans_that_may_be_numpys_is_refused():
    refuses(lambda a: ((a[0] > 0) + (a[1] > 0)) * a[0], ARRAY, match="NumPy adds booleans with `or`")


# -- match --------------------------------------------------------------------------------------------------------


class Method(enum.Enum):
    EULER = 1
    HEUN = 2


@dataclass
class Spring:
    stiffness: float
    length: float = 1.0


@dataclass
class Damper:
    rate: float


def by_text(x, kind):
    match kind:
        case "square" | "sq":
            return x * x
        case "sine":
            y = np.sin(x)
        case None:
            y = x
        case other if len(other) > 5:
            y = x**3 * len(other)
        case _:
            return np.exp(x)
    return y * 2.0


def by_member(x, method, n):
    for k in range(n):
        match method:
            case Method.EULER:
                x += 0.1 * np.sin(x)
            case Method.HEUN:
                if k == 2:
                    continue
                x += 0.05 * (np.sin(x) + np.sin(x + 0.1))
                if x > 3.0:
                    break
    return x * x


def by_structure(x, thing):
    match thing:
        case Spring(k, length=1.0):
            return k * x**2
        case Spring(stiffness=k, length=l0):
            return k * (x - l0) ** 2
        case Damper(rate):
            return rate * np.sin(x)
        case (a, b):
            return a * x + b * x**2
        case [first, *others, last]:
            return first * x + last * x**3 + len(others) * sum(others) * x
        case {"scale": scale, "kind": "cubic"}:
            return scale * x**3
        case {"scale": scale}:
            return scale * x
        case float(value):
            return value * x**4
        case int() | bool():
            return thing * x**5
        case str():
            return x
    return x**6


def by_number(x, n):
    total = 0.0
    for k in range(n):
        match k % 4, k:
            case (0, _):
                total += x
            case (1, 1):
                total += x**2
            case (m, j) if j > 4:
                total += m * x**3
            case (m, _):
                total += 0.5 * m * x
    return total


def by_range(x):
    match x:
        case y if y > 1.0:
            return y**2
        case y if y > 0.0:
            return y**3
    return y * 5.0


MATCHES = [
    *(pytest.param(by_text, (0.7, kind), id=f"by_text {kind}") for kind in ("square", "sine", None, "longer", "other")),
    *(pytest.param(by_member, (0.7, method, 5), id=f"by_member {method}") for method in Method),
    *(
        pytest.param(by_structure, (0.7, thing), id=f"by_structure {k}")
        for k, thing in enumerate(
            (
                *(Spring(2.0), Spring(2.0, 0.5), Damper(3.0), (1.0, 2.0), (1.0, 2.0, 3.0, 4.0), 1.5, 2, True, "text"),
                *(
                    None,
                    {"scale": 2.0, "kind": "cubic"},
                    {"scale": 2.0},
                    {"other": 1.0},
                    [1.0, 2.0, 3.0],
                    np.ones(2),
                    np.ones(3),
                ),
            )
        )
    ),
    *(pytest.param(by_number, (0.7, n), id=f"by_number {n}") for n in (0, 9)),
    *(pytest.param(by_range, (x,), id=f"by_range {x}") for x in (1.7, 0.7, -0.7)),
]


@pytest.mark.parametrize(("function", "args"), MATCHES)
def test_match(function, args):
    srcdiff.check(function, *args, wrt=0, order=2, backend="python")


@pytest.mark.numba
@pytest.mark.parametrize("function", [by_number])
def test_match_in_compiled_code(function):
    srcdiff.check(function, 0.7, 9, wrt=0, order=2, backend="numba")


def alternatives_that_assign(x, y):
    match y:
        case (a,) | (_, a):
            return a * x
    return x


def test_patterns_that_are_not_supported_are_refused():
    refuses(alternatives_that_assign, 1.0, (2.0,), match="`match` with")


OUTSIDE_A, OUTSIDE_B = [1.0, 2.0], [3.0, 4.0]


def test_a_list_that_may_be_either_of_two_is_not_taken_for_a_tuple():
    def chosen(x):
        values = OUTSIDE_A if x > 1.0 else OUTSIDE_B
        return x * values[0] if isinstance(values, list) else 100.0 * x

    refuses(chosen, 1.5, match="")
