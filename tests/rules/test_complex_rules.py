"""Every row of the rule table for complex numbers, compared with differences along the real and imaginary axes.

This file contains no rule by name. A row states the derivative `p` of an analytic function, and optionally the
derivative `q` with respect to the conjugate: along a direction, the function changes by `p * d + q * conj(d)`; if the
result is real, by the real part.
"""

from __future__ import annotations

import ast
import dataclasses
import functools

import numpy as np
import pytest

from srcdiff.ir.primitives import OF_COMPLEX, PRIMITIVES
from srcdiff.rules import RULES, Rule
from tests.rules.test_rules import apply, value_of

NAMES = sorted(n for n in {*OF_COMPLEX, *(n for n in PRIMITIVES if PRIMITIVES[n].result.startswith("complex"))}
               if RULES[n].partials)  # fmt: skip
SAMPLES = 6
STEP = 2.0**-10


@pytest.fixture(autouse=True)
def _infinities_are_no_news():
    with np.errstate(all="ignore"):
        yield


@functools.cache
def points(name):
    """Numbers away from zero and from the branch cuts, equal in every run. Rows for real numbers get real ones."""
    random, rule = np.random.default_rng(2), RULES[name]
    found = []
    for _ in range(SAMPLES):
        sizes = random.uniform(0.3, 0.9, len(rule.parameters))
        angles = random.uniform(0.3, 2.8, len(rule.parameters)) * random.choice([-1, 1], len(rule.parameters))
        point = {}
        for parameter, size, angle in zip(rule.parameters, sizes, angles, strict=True):
            kind = rule.domain[parameter].kind
            takes_complex = name in OF_COMPLEX and kind != "bool"
            number = np.complex128(size * np.exp(1j * angle)) if takes_complex else np.float64(size)
            point[parameter] = bool(size > 0.6) if kind == "bool" else number
        found.append(point)
    return found


def change(rule: Rule, point, parameter, direction):
    """The change of the function along a direction, according to the row."""
    out = apply(rule.name, *point.values())
    known = {**point, "out": out}
    for name, formula in rule.let:
        known[name] = value_of(formula, known)
    is_complex = np.iscomplexobj(point[parameter])
    found = value_of(rule.partial(parameter, is_complex=is_complex), known) * direction
    if parameter in rule.by_conjugate and is_complex:
        found += value_of(rule.by_conjugate[parameter], known) * np.conj(direction)
    return found if np.iscomplexobj(out) else np.real(found)


def difference(name, point, parameter, direction):
    def at(k):
        return apply(name, *{**point, parameter: point[parameter] + k * STEP * direction}.values())

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * STEP)


def disagreements(rule: Rule):
    tolerance = 1e-3 if "64" in PRIMITIVES[rule.name].result and "complex64" in rule.name else 1e-6
    return [
        (rule.name, point, parameter, direction)
        for point in points(rule.name)
        for parameter in rule.partials
        for direction in ((1.0, 1j) if np.iscomplexobj(point[parameter]) else (1.0,))
        if not np.isclose(
            change(rule, point, parameter, direction),
            difference(rule.name, point, parameter, direction),
            rtol=tolerance,  # differences of fourth order; in single precision they have few digits
            atol=tolerance,
        )
    ]


@pytest.mark.parametrize("name", NAMES)
def test_row_agrees_with_differences_along_both_axes(name):
    assert [] == disagreements(RULES[name])


@pytest.mark.parametrize("name", NAMES)
def test_mutated_row_fails(name):
    rule = RULES[name]
    for parameter in rule.partials:
        point = points(name)[0]
        formula = rule.partial(parameter, is_complex=np.iscomplexobj(point[parameter]))
        wrong = {**rule.partials, parameter: ast.BinOp(formula, ast.Add(), ast.Constant(0.01))}
        assert disagreements(dataclasses.replace(rule, partials=wrong, of_complex={})), parameter


def test_rows_of_complex_numbers_are_refused_everywhere_else():
    orders = {"less", "greater", "maximum", "minimum", "floor", "sign", "arctan2", "hypot", "remainder", "erf"}
    assert orders.isdisjoint(OF_COMPLEX)
