"""Every row of the rule table, compared with differences, and every spelling, compared with the functions users call.

This file contains no rule by name. The numerical derivative is the most accurate one for the primitive: a step of one
for linear functions, a complex step (Squire and Trapp, SIAM Review 40, 1998) for functions that NumPy continues
analytically, otherwise central differences of fourth order. A function counts as linear or analytic if the results
agree with those of differences.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numba
import numpy as np
import pytest
import scipy.special
from numba.core import compiler, typed_passes, types
from numba.core.registry import cpu_target

from srcdiff.backends.numba.scipy_special import compiled_special
from srcdiff.emit.module import with_callees
from srcdiff.ir.primitives import BROUGHT_ALONG, PRIMITIVES
from srcdiff.rules import CONSTANTS, RULES, Rule, application, scipy_functions, shape_derivatives, special

Inputs = Mapping[str, Any]

NAMES = sorted(RULES)
MAKES_COMPLEX = {name for name in NAMES if PRIMITIVES[name].result.startswith("complex")}
REAL = [n for n in NAMES if n not in MAKES_COMPLEX and all(d.kind != "complex" for d in RULES[n].domain.values())]
"""The rows of real numbers. Those of complex numbers are tested in test_complex_rules.py."""
DIFFERENTIABLE = [name for name in REAL if RULES[name].partials]
SAMPLES = 8
ROUNDING = float(np.finfo(float).eps)
LIBRARIES = {"np": np, "math": math, "builtins": builtins}
SUPPORT = {
    name: function
    for module in (special, scipy_functions, shape_derivatives)
    for name, function in inspect.getmembers(module, inspect.isfunction)
}


@pytest.fixture(autouse=True)
def _infinities_are_no_news():
    with np.errstate(all="ignore"):
        yield


# ---------------------------------------------------------------------------------- the formulas, read and evaluated


@functools.cache
def spelled(name: str) -> Callable[..., Any]:
    """The primitive as plain Python, compiled from its spelling."""
    arguments = ["first", "second", "third", "fourth", "fifth"][: PRIMITIVES[name].arity]
    text = f"lambda {', '.join(arguments)}: {PRIMITIVES[name].spelling.format(*arguments)}"
    function: Callable[..., Any] = eval(text, {"np": np, "math": math, "special": scipy.special, **SUPPORT})
    return function


def apply(name: str, *arguments: Any) -> Any:
    result = spelled(name)(*arguments)
    return np.float64(result) if type(result) is float else result  # divides by zero as NumPy does


def value_of(formula: ast.expr, known: Inputs) -> Any:
    if isinstance(formula, ast.Name):
        return known[formula.id] if formula.id in known else CONSTANTS[formula.id]
    if isinstance(formula, ast.Constant):
        return formula.value
    primitive, arguments = application(formula)
    return apply(primitive, *(value_of(argument, known) for argument in arguments))


def partials_at(rule: Rule, inputs: Inputs) -> dict[str, Any]:
    """The derivatives of the row, by argument."""
    known = {**inputs, "out": apply(rule.name, *inputs.values())}
    for name, formula in rule.let:
        known[name] = value_of(formula, known)
    return {parameter: value_of(formula, known) for parameter, formula in rule.partials.items()}


def tangent_of(formula: ast.expr, known: Inputs, tangents: Inputs) -> Any:
    """The derivative of a formula by the rules; None if no rule applies."""
    if isinstance(formula, ast.Name):
        return tangents.get(formula.id)
    if isinstance(formula, ast.Constant):
        return None
    primitive, arguments = application(formula)
    rule = RULES[primitive]
    values = [value_of(argument, known) for argument in arguments]
    partials = partials_at(rule, dict(zip(rule.parameters, values, strict=True)))
    moved = [tangent_of(argument, known, tangents) for argument in arguments]
    if any(p in rule.refused and t is not None for p, t in zip(rule.parameters, moved, strict=True)):
        raise NotImplementedError(primitive)  # such a program is refused
    terms = [
        partials[parameter] * tangent
        for parameter, tangent in zip(rule.parameters, moved, strict=True)
        if parameter in partials and tangent is not None
    ]
    return sum(terms) if terms else None


def tangents_of_partials(rule: Rule, inputs: Inputs, direction: str) -> dict[str, Any]:
    """The second derivatives by the rules, by the argument of the first derivative."""
    known = {**inputs, "out": apply(rule.name, *inputs.values())}
    tangents = {direction: 1.0}
    if direction in rule.partials:
        tangents["out"] = partials_at(rule, inputs)[direction]
    for name, formula in rule.let:
        known[name] = value_of(formula, known)
        tangents[name] = tangent_of(formula, known, tangents)
    found = {parameter: tangent_of(formula, known, tangents) for parameter, formula in rule.partials.items()}
    return {parameter: 0.0 if tangent is None else tangent for parameter, tangent in found.items()}


# ------------------------------------------------------------------------------------ the points, and the tolerances


@functools.cache
def samples(name: str) -> tuple[Inputs, ...]:
    """Points in the domain of a row, equal in every run."""
    random = np.random.default_rng(1)
    kinds: dict[str, Callable[[float], Any]] = {"real": np.float64, "int": int, "bool": lambda x: x >= 1.0}
    points = []
    for _ in range(SAMPLES):
        point = {}
        for parameter, domain in RULES[name].domain.items():
            low, high = domain.intervals[random.integers(len(domain.intervals))]
            point[parameter] = kinds[domain.kind](random.uniform(low, high))
        points.append(point)
    return tuple(points)


def edges(name: str) -> tuple[Inputs, ...]:
    return tuple({p: np.float64(edge.inputs[p]) for p in RULES[name].parameters} for edge in RULES[name].edges)


def real_parameters(name: str) -> list[str]:
    """The parameters with derivatives, and their formulas."""
    domains = RULES[name].domain.items()
    return [p for p, domain in domains if domain.kind == "real" and p not in RULES[name].refused]


@dataclass(frozen=True, slots=True)
class Slope:
    """A numerical derivative and the allowed difference of a correct one."""

    value: float
    tolerance: float

    def agrees(self, other: float) -> bool:
        return bool(abs(other - self.value) <= self.tolerance)


def slope_at(function: Callable[[Any], Any], at: Any) -> Slope:
    """The most accurate numerical derivative that the differences confirm."""
    rough = differences(function, at)
    for method in (step_of_one, complex_step):
        sharp = method(function, at)
        if sharp is not None and rough.agrees(sharp.value):
            return sharp
    return rough


def step_of_one(function: Callable[[Any], Any], at: Any) -> Slope | None:
    """A linear function has no truncation error; only the values are rounded."""
    behind, middle, ahead = (function(at + step) for step in (-1.0, 0.0, 1.0))
    rounding = 4 * noise_of(behind, middle, ahead)
    if not abs(float(behind) - 2 * float(middle) + float(ahead)) <= rounding:
        return None
    return Slope((float(ahead) - float(behind)) / 2, rounding)


def complex_step(function: Callable[[Any], Any], at: Any) -> Slope | None:
    """There is no cancellation, so only a few rounding errors of the function and the formula remain."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            moved = function(at + 1e-30j)
    except (TypeError, np.exceptions.ComplexWarning):
        return None
    if not isinstance(moved, complex):
        return None
    return Slope(moved.imag / 1e-30, 256 * ROUNDING * (1.0 + abs(moved) + abs(moved.imag / 1e-30)))


def differences(function: Callable[[Any], Any], at: Any, step: float = 2.0**-9) -> Slope:
    """Fourth order, at two steps. The difference of both is 15/16 of the truncation error of the coarser one."""
    coarse, fine = (fourth_order(function, at, h) for h in (step, step / 2))
    rounding = noise_of(*(function(at + k * step) for k in (-2, -1, 0, 1, 2))) / step
    return Slope(fine, abs(fine - coarse) + 16 * rounding)


def fourth_order(function: Callable[[Any], Any], at: Any, h: float) -> float:
    far_behind, behind, ahead, far_ahead = (float(function(at + k * h)) for k in (-2, -1, 1, 2))
    return (8 * (ahead - behind) - (far_ahead - far_behind)) / (12 * h)


def noise_of(*values: Any) -> float:
    """The rounding error of the values in their type."""
    types_ = [type(value) for value in values if isinstance(value, np.floating)]
    epsilon = max((float(np.finfo(type_).eps) for type_ in types_), default=ROUNDING)
    return epsilon * (1.0 + max(abs(float(value)) for value in values))


def along(function: Callable[[Inputs], Any], point: Inputs, parameter: str) -> Callable[[Any], Any]:
    """The function of one argument. It is called once for each number, though the formulas share some of them."""
    return functools.cache(lambda moved: function({**point, parameter: moved}))


@functools.cache
def slopes(name: str) -> tuple[Mapping[str, Slope], ...]:
    """The numerical derivatives of a primitive at its samples."""

    def value(inputs: Inputs) -> Any:
        return apply(name, *inputs.values())

    return tuple(
        {parameter: slope_at(along(value, point, parameter), point[parameter]) for parameter in real_parameters(name)}
        for point in samples(name)
    )


# ------------------------------------------------------------------------------------------------------- the checker


def disagreements(rule: Rule) -> list[str]:
    """The errors of a row: at samples, compared with numerical derivatives; at edges, with their convention."""
    found = []
    for point, expected in zip(samples(rule.name), slopes(rule.name), strict=True):
        actual = partials_at(rule, point)
        found += [
            f"{rule.name} at {point}: with respect to {parameter} {actual.get(parameter, 0.0)}, should be {slope}"
            for parameter, slope in expected.items()
            if not slope.agrees(actual.get(parameter, 0.0))
        ]
    for point, edge in zip(edges(rule.name), rule.edges, strict=True):
        actual = partials_at(rule, point)
        found += [
            f"{rule.name} at {point}: with respect to {parameter} {actual.get(parameter, 0.0)}, should be {convention}"
            for parameter, convention in edge.partials.items()
            # one or two rounding errors in the formula
            if not np.isclose(actual.get(parameter, 0.0), convention, rtol=4 * ROUNDING, atol=0.0, equal_nan=True)
        ]
    return found


def test_every_primitive_has_a_row():
    assert sorted(PRIMITIVES) == NAMES


@pytest.mark.parametrize("name", REAL)
def test_row_agrees_with_differences(name):
    assert [] == disagreements(RULES[name])


@pytest.mark.parametrize("name", REAL)
def test_differences_are_sharp(name):
    # A hundredth of the mutation below, which this test must detect.
    dull = [one for point in slopes(name) for one in point.values() if one.tolerance > 1e-4 * (1 + abs(one.value))]
    assert [] == dull


def mutations(rule: Rule) -> list[Rule]:
    """The row with one partial slightly larger, with the wrong sign, or missing; or a constant with a derivative."""
    mutants = []
    for parameter, formula in rule.partials.items():
        others = {p: f for p, f in rule.partials.items() if p != parameter}
        larger = ast.BinOp(formula, ast.Mult(), ast.Constant(1.01))
        mutants += [others, {**others, parameter: larger}, {**others, parameter: ast.UnaryOp(ast.USub(), formula)}]
    for parameter in real_parameters(rule.name):
        if parameter not in rule.partials:
            mutants.append({**rule.partials, parameter: ast.Constant(0.01)})
    return [dataclasses.replace(rule, partials=partials) for partials in mutants]


@pytest.mark.parametrize("name", REAL)
def test_mutated_row_fails(name):
    assert [] == [mutant.partials for mutant in mutations(RULES[name]) if not disagreements(mutant)]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_rules_differentiate_the_formulas_of_the_row(name):
    rule = RULES[name]
    for point in samples(name):
        for direction in real_parameters(name):
            try:
                tangents = tangents_of_partials(rule, point, direction)
            except NotImplementedError:
                continue
            partials = along(functools.partial(partials_at, rule), point, direction)
            for parameter, actual in tangents.items():
                expected = slope_at(lambda x, parameter=parameter, of=partials: of(x)[parameter], point[direction])
                assert expected.agrees(actual), (point, parameter, direction, actual, expected)


@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if RULES[name].edges])
def test_convention_does_not_poison_the_next_order(name):
    rule = RULES[name]
    for point in edges(name):
        # At infinity, or if a derivative is close to overflow, the next order may be NaN.
        if all(abs(number) < 1e100 for number in (*point.values(), *partials_at(rule, point).values())):
            for direction in rule.parameters:
                second = tangents_of_partials(rule, point, direction)
                assert not any(math.isnan(tangent) for tangent in second.values()), (point, direction, second)


# ----------------------------------------------------------------------------------------------------- the spellings


def same(one: Any, other: Any) -> bool:
    # The libraries' functions differ by a few units in the last place.
    return bool(np.isclose(float(one), float(other), rtol=32 * ROUNDING, atol=ROUNDING, equal_nan=True))


@pytest.mark.parametrize("name", REAL)
def test_spelling_means_what_users_call(name):
    for full_name in PRIMITIVES[name].names:
        library, _, attribute = full_name.partition(".")
        function = getattr(LIBRARIES[library], attribute, None)
        for point in samples(name) if function else ():
            assert same(spelled(name)(*point.values()), function(*point.values())), (full_name, point)
    for attribute in PRIMITIVES[name].scipy:
        for point in samples(name):
            theirs = getattr(scipy.special, attribute)(*point.values())
            assert same(spelled(name)(*point.values()), theirs), (attribute, point)


def test_primitives_are_called_by_different_names():
    names = [name for primitive in PRIMITIVES.values() for name in primitive.names]
    assert len(set(names)) == len(names)


def test_support_functions_are_those_that_spellings_call():
    called = {primitive.support for primitive in PRIMITIVES.values()} - {""}
    assert set(SUPPORT) == with_callees(called)
    assert set(SUPPORT) <= BROUGHT_ALONG


COLUMNS = {"real": "real", "int": "whole", "bool": "truth"}


@functools.cache
def everything() -> Any:
    """All spellings in one function. The arguments of row `k` are in `real[k, :]` and so on.

    It returns tuples of ten, because Numba does not support tuple displays of more than thirty.
    """
    lines = ["def everything(real, whole, truth):"]
    for k, name in enumerate(REAL):
        kinds = [domain.kind for domain in RULES[name].domain.values()]
        arguments = [f"{COLUMNS[kind]}[{k}, {j}]" for j, kind in enumerate(kinds)]
        lines.append(f"    result_{k} = {PRIMITIVES[name].spelling.format(*arguments)}")
    results = [f"result_{k}" for k in range(len(REAL))]
    tens = [f"({', '.join(results[k : k + 10])},)" for k in range(0, len(results), 10)]
    lines.append(f"    return {', '.join(tens)}")
    namespace: dict[str, Any] = {"np": np, "math": math, "special": compiled_special()}
    for name, function in SUPPORT.items():  # they call each other
        namespace[name] = numba.njit(FunctionType(function.__code__, namespace, name))
    exec("\n".join(lines), namespace)
    return numba.njit(namespace["everything"], error_model="numpy")


def test_numba_computes_what_python_computes():
    points = {name: (*samples(name), *edges(name)) for name in REAL}
    for iteration in range(max(len(some) for some in points.values())):
        now = {name: some[iteration % len(some)] for name, some in points.items()}
        real, whole, truth = (np.ones((len(REAL), 5), dtype) for dtype in (np.float64, np.int64, np.bool_))
        for k, (name, point) in enumerate(now.items()):
            for j, (value, domain) in enumerate(zip(point.values(), RULES[name].domain.values(), strict=True)):
                {"real": real, "int": whole, "bool": truth}[domain.kind][k, j] = value
        compiled = [result for ten in everything()(real, whole, truth) for result in ten]
        wrong = [
            (name, point, result, spelled(name)(*point.values()))
            for (name, point), result in zip(now.items(), compiled, strict=True)
            if not same(result, spelled(name)(*point.values()))
        ]
        assert [] == wrong
    (signature,) = everything().nopython_signatures
    assert_types(types.float64, signature.return_type)


def assert_types(dtype: types.Type, returned: types.Type) -> None:
    """The results have the types that the table says, for arguments of this type."""
    for name, actual in zip(REAL, [result for ten in returned for result in ten], strict=True):
        assert (name, result_type(name, dtype)) == (name, types.unliteral(actual))


@functools.cache
def never_run() -> Any:
    """As `everything`. The functions that it calls are compiled, too, but not optimized, because only types matter."""
    return everything.__wrapped__()


@pytest.mark.parametrize("dtype", [types.float32, types.int64], ids=str)
def test_results_have_the_types_that_the_table_says(dtype, monkeypatch):
    monkeypatch.setattr(numba.config, "OPT", type(numba.config.OPT)(0))
    matrix = functools.partial(types.Array, ndim=2, layout="C")
    frontend = compiler.run_frontend(never_run().py_func)
    arguments = (matrix(dtype), matrix(types.int64), matrix(types.boolean))
    cpu_target.typing_context.refresh()  # nothing may have been compiled yet
    inferred = typed_passes.type_inference_stage(
        cpu_target.typing_context, cpu_target.target_context, frontend, arguments, None
    )
    assert_types(dtype, inferred.return_type)


def result_type(name: str, dtype: types.Type) -> types.Type:
    """The result type in the table, for arguments of this type."""
    result = PRIMITIVES[name].result
    always = {"float64": types.float64, "float32": types.float32, "int": types.int64, "bool": types.boolean}
    if result in always:
        return always[result]
    has_floats = isinstance(dtype, types.Float) and real_parameters(name)
    if result == "float":
        return dtype if has_floats else types.float64
    return dtype if has_floats else types.int64
