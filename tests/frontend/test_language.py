"""Parts of Python's language that numerical programs use around their numbers."""

from __future__ import annotations

import functools

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
    refuses(lambda x: forwarded(x, **{1: x}), 1.0, match="needs strings as keys, and 1 is none")


def test_a_keyword_that_is_not_there_is_refused():
    refuses(lambda x: same_name(x, y=x), 1.0, match="x")


def test_collected_keywords_cannot_be_changed():
    def changed(x, **options):
        options["a"] = x
        return x

    refuses(lambda x: changed(x, a=1.0), 1.0, match="dictionar")
