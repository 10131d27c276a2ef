"""Possible values of numbers: negative, zero, positive, infinite, NaN."""

from __future__ import annotations

import inspect
import re

import pytest

from srcdiff.analyses.selections import selected_values
from srcdiff.analyses.signs import (
    FINITE,
    INFINITE,
    NOT_NEGATIVE,
    Sign,
    expected_signs,
    sign_of,
    signs_of,
)
from srcdiff.ir.nodes import Apply, Function, walk
from srcdiff.ir.parse import parse
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.rules import RULES, scipy_rows


def read(body: str, params: str = "x%0: float64, y%1: float64, v%2: float64[:], n%3: int64") -> Function:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return parse(f"f({params})\n{lines}\n").main


def sign_of_result(body: str) -> Sign:
    function = read(body)
    return signs_of(function).of(function.body.yields[0])


CASES = {
    "t%4: float64 = multiply(x%0, x%0)\nyield t%4": NOT_NEGATIVE,
    "t%4: float64 = multiply(x%0, y%1)\nyield t%4": FINITE,
    "t%4: float64 = 3.0\nt%5: float64 = multiply(t%4, x%0)\nt%6: float64 = multiply(t%5, x%0)\nyield t%6": NOT_NEGATIVE,
    "t%4: float64 = -3.0\nt%5: float64 = multiply(t%4, x%0)\nt%6: float64 = multiply(t%5, x%0)\nyield t%6": (
        Sign.NEGATIVE | Sign.ZERO
    ),
    "t%4: float64 = 1.0\nt%5: float64 = multiply(x%0, x%0)\nt%6: float64 = add(t%4, t%5)\nyield t%6": Sign.POSITIVE,
    "t%4: float64 = 3.0\nt%5: float64 = subtract(x%0, t%4)\nyield t%5": FINITE,
    "t%4: float64 = absolute(x%0)\nyield t%4": NOT_NEGATIVE,
    "t%4: float64 = exp(x%0)\nyield t%4": NOT_NEGATIVE | Sign.INFINITY,
    "t%4: float64 = 1.0\nt%5: float64 = divide(t%4, x%0)\nyield t%5": (Sign.NEGATIVE | Sign.POSITIVE | Sign.INFINITY),
    "t%4: float64 = log(x%0)\nyield t%4": FINITE | Sign.MINUS_INFINITY | Sign.NAN,
    "t%4: float64 = 2.0\nt%5: float64 = power(x%0, t%4)\nyield t%5": NOT_NEGATIVE,
    "t%4: float64 = 0.5\nt%5: float64 = power(x%0, t%4)\nyield t%5": NOT_NEGATIVE | Sign.NAN,
}


@pytest.mark.parametrize("body", CASES)
def test_a_result_may_be(body: str) -> None:
    assert CASES[body] == sign_of_result(body)


def test_a_branch_limits_the_possible_values_of_a_number() -> None:
    function = read(
        """
t%4: float64 = 0.0
t%5: bool = equal(x%0, t%4)
t%6: float64 = if t%5
    yield y%1
else
    t%7: float64 = absolute(x%0)
    yield t%7
t%8: float64 = 2.0
t%9: bool = greater(y%1, t%8)
t%10: float64 = where(t%9, y%1, t%8)
yield t%10
"""
    )
    signs = signs_of(function)
    absolute = next(o.out for o in walk(function.body) if isinstance(o, Apply) and o.primitive == "absolute")
    assert signs.of(absolute) == Sign.POSITIVE
    assert signs.of(function.body.yields[0]) == Sign.POSITIVE


LOOP = """
zero%4: int64 = 0
one%5: int64 = 1
start%6: float64 = {start}
t%7: float64 = for i%8 in range(zero%4, n%3, one%5) with s%9 = start%6
    a%10: float64 = v%2[i%8]
    b%11: float64 = {operation}(a%10, a%10)
    c%12: float64 = add(s%9, b%11)
    yield c%12
yield t%7
"""


def test_a_sum_of_squares_is_not_negative() -> None:
    assert sign_of_result(LOOP.format(start=0.0, operation="multiply")) == NOT_NEGATIVE


def test_a_constant_infinity_survives_a_loop_and_a_possible_overflow_does_not() -> None:
    meant = read(LOOP.format(start="inf", operation="multiply"))
    accidental = read(LOOP.format(start=0.0, operation="divide"))

    assert expected_signs(meant).of(meant.body.yields[0]) & INFINITE
    assert signs_of(accidental).of(accidental.body.yields[0]) & INFINITE
    assert not expected_signs(accidental).of(accidental.body.yields[0]) & INFINITE


def test_kinds_of_numbers_are_all_different() -> None:
    numbers = [-1.0, 0.0, 1.0, float("inf"), float("-inf"), float("nan")]
    assert len({sign_of(x) for x in numbers}) == len(numbers)


#: Rows with derivatives that may be infinite or NaN at finite arguments, by argument.
SINGULAR = {
    **dict.fromkeys(
        "arccos arccosh arcsin arctanh cbrt cosh digamma exp exp2 expm1 gamma lgamma log "
        "log10 log1p log2 polygamma reciprocal sinh sqrt trigamma".split(),
        "x",
    ),
    **dict.fromkeys("fmod remainder".split(), "y"),
    **dict.fromkeys("divide float_power power strong_divide".split(), "xy"),
}


#: Rows of SciPy whose derivatives are finite at finite arguments. Those of all others may be infinite or NaN.
REGULAR_OF_SCIPY = set(
    "airy_ai airy_aip cosdg cosm1 dawsn expit fresnel_c fresnel_s huber i0e i1e j0 j1 log_expit log_ndtr ndtr owens_t "
    "sindg sine_integral tandg".split()
)
OF_SCIPY = set(re.findall(r'^elementwise\("(\w+)', inspect.getsource(scipy_rows), re.MULTILINE))


def singular_parameters(name: str) -> set[str]:
    rule = RULES[name]
    if PRIMITIVES[name].result.startswith("complex") or any(d.kind == "complex" for d in rule.domain.values()):
        return set()
    types = {"real": "float64", "int": "int64", "bool": "bool"}
    params = [f"{p}%{k}: {types[rule.domain[p].kind]}" for k, p in enumerate(rule.parameters)]
    arguments = ", ".join(f"{p}%{k}" for k, p in enumerate(rule.parameters))
    result = {"bool": "bool", "int": "int64"}.get(PRIMITIVES[name].result, "float64")
    if PRIMITIVES[name].whole or result != "float64" or not rule.partials:
        return set()
    function = read(f"out%9: {result} = {name}({arguments})\nyield out%9", ", ".join(params))
    operation = function.body.operations[0]
    assert isinstance(operation, Apply)
    signs = expected_signs(function)
    return {parameter for parameter in rule.partials if signs.is_singular(operation, parameter)}


@pytest.mark.parametrize("name", sorted(set(RULES) - OF_SCIPY))
def test_singular_rows_are_found_by_their_formulas(name: str) -> None:
    assert singular_parameters(name) == set(SINGULAR.get(name, ""))


def test_rows_of_scipy_are_singular_but_for_a_few() -> None:
    assert {name for name in OF_SCIPY if not singular_parameters(name)} == REGULAR_OF_SCIPY


def test_terms_of_a_sum_are_not_selected_and_stored_numbers_are() -> None:
    function = read(
        """
zero%4: int64 = 0
one%5: int64 = 1
start%6: float64 = 0.0
t%7: float64 = for i%8 in range(zero%4, n%3, one%5) with s%9 = start%6
    a%10: float64 = v%2[i%8]
    b%11: float64 = sqrt(a%10)
    c%12: float64 = add(s%9, b%11)
    d%13: float64 = sin(a%10)
    v%2[i%8] = d%13
    yield c%12
yield t%7
"""
    )
    selected = selected_values(function)
    found = {o.primitive for o in walk(function.body) if isinstance(o, Apply) and o.out in selected}
    assert found == {"sin"}
