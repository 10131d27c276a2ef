"""Every program of the corpus, on `python` and many on `numba`, against the plain function and its differences."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import srcdiff
from tests import programs
from tests.numerical import Derivative, clone, gradient, numbers_in
from tests.programs import PROGRAMS, Program
from tests.subset import is_chosen

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]

#: One unit in the last place of the working precision, by whether the program computes in float32.
PRECISION = {False: float(np.finfo(np.float64).eps), True: float(np.finfo(np.float32).eps)}

#: The number of roundings by which a value or a gradient may differ in another order of evaluation.
ROUNDINGS = 2000.0


@functools.cache
def differentiated(program: Program, backend: str) -> Callable[..., Any]:
    return srcdiff.value_and_grad(program.function, wrt=program.wrt, backend=backend)


@functools.cache
def expected_gradient(program: Program, point: int) -> list[Derivative]:
    return gradient(program.function, program.at[point], program.wrt)


def run(program: Program, backend: str, arguments: tuple[Any, ...]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a zero gradient gives a warning; here it is compared
        return differentiated(program, backend)(*arguments)


def same(first: Any, second: Any) -> bool:
    """Whether arguments are equal, bit for bit, including arrays and lists."""
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and first.strides == second.strides and np.array_equal(first, second)
    if isinstance(first, (tuple, list)):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second) or first is second


def assert_like_argument(bar: Any, argument: Any) -> None:
    """A gradient has the type, dtype and shape of its argument."""
    if isinstance(argument, np.ndarray):
        assert isinstance(bar, np.ndarray)
        assert bar.dtype == argument.dtype
        assert bar.shape == argument.shape
    elif isinstance(argument, (tuple, list)):
        assert isinstance(bar, tuple if isinstance(argument, tuple) else list)
        assert len(bar) == len(argument)
        for part, item in zip(bar, argument, strict=True):
            assert_like_argument(part, item)
    else:
        assert isinstance(bar, (float, np.floating))


def cases() -> list[Any]:
    """Every program on `python`; one in eight also on `numba`. With SRCDIFF_TEST_ALL, all of them."""
    compiled = [p for p in PROGRAMS if is_chosen(p.name, 8)]
    found = [pytest.param(p, "python", id=f"{p.name}-python") for p in PROGRAMS]
    return found + [pytest.param(p, "numba", marks=pytest.mark.numba, id=f"{p.name}-numba") for p in compiled]


@pytest.mark.parametrize(("program", "backend"), cases())
def test_program(program: Program, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    rounding = ROUNDINGS * PRECISION[program.single_precision]
    for point, arguments in enumerate(program.at):
        given = clone(arguments)
        expected_value = program.function(*clone(arguments))

        value, bars = run(program, backend, given)

        where = f"{program.name}{arguments}"
        assert same(given, arguments), f"{where}: the arguments were changed"
        assert abs(value - expected_value) <= rounding * max(1.0, abs(expected_value)), where
        assert isinstance(bars, tuple), where
        assert len(bars) == len(program.wrt), where
        for k, bar in zip(program.wrt, bars, strict=True):
            assert_like_argument(bar, arguments[k])
        found = list(numbers_in(bars))
        wanted = expected_gradient(program, point)
        assert len(found) == len(wanted), where
        scale = max([1.0, *(abs(one.value) for one in wanted)])
        for position, (got, one) in enumerate(zip(found, wanted, strict=True)):
            allowed = one.tolerance + rounding * scale
            assert abs(got - one.value) <= allowed, f"{where}: coordinate {position}: {got}, by differences {one}"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.exact], ids=lambda program: program.name)
def test_exact_answer(program: Program, backend: str) -> None:
    for arguments, exact in zip(program.at, program.exact, strict=True):
        if exact is None:
            continue

        _, bars = run(program, backend, clone(arguments))

        for bar, answer in zip(bars, exact, strict=True):
            # a few roundings of a formula with a handful of operations
            np.testing.assert_allclose(bar, answer, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.raises], ids=lambda program: program.name)
def test_raises_as_the_program_does(program: Program, backend: str) -> None:
    for arguments, exception in program.raises:
        with pytest.raises(exception) as caught:
            run(program, backend, clone(arguments))

        assert caught.type is exception


# ---------------------------------------------------------------------------------------------- outside values

FACTOR = 2.0
WEIGHTS = np.array([1.0, 2.0])


def scaled(x: float) -> float:
    return FACTOR * x * x


def weighted(x: float) -> float:
    return WEIGHTS[0] * x + WEIGHTS[1] * x * x


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_changed_global_is_seen(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gradient_of_scaled = srcdiff.value_and_grad(scaled, wrt=(0,), backend=backend)
    before = gradient_of_scaled(3.0)

    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 5.0)

    assert before == (18.0, (12.0,))
    assert gradient_of_scaled(3.0) == (45.0, (30.0,))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_changed_global_array_is_seen(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gradient_of_weighted = srcdiff.value_and_grad(weighted, wrt=(0,), backend=backend)
    before = gradient_of_weighted(3.0)

    monkeypatch.setattr(sys.modules[__name__], "WEIGHTS", np.array([0.0, 1.0]))
    replaced = gradient_of_weighted(3.0)
    WEIGHTS[0] = 4.0

    assert before == (21.0, (13.0,))
    assert replaced == (9.0, (6.0,))
    assert gradient_of_weighted(3.0) == (21.0, (10.0,))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_changed_closure_variable_is_seen(backend: str) -> None:
    factor = 2.0

    def inner(x: float) -> float:
        return factor * x * x

    gradient_of_inner = srcdiff.value_and_grad(inner, wrt=(0,), backend=backend)
    before = gradient_of_inner(3.0)
    factor = 5.0

    assert before == (18.0, (12.0,))
    assert gradient_of_inner(3.0) == (45.0, (30.0,))


@pytest.mark.parametrize("backend", BACKENDS)
def test_arguments_by_name_and_by_position_are_the_same(backend: str) -> None:
    by_name = srcdiff.value_and_grad(programs.polynomial, wrt=("y", "x"), backend=backend)
    by_position = srcdiff.value_and_grad(programs.polynomial, wrt=(1, 0), backend=backend)

    assert by_name(0.5, 2.0) == by_position(0.5, y=2.0)


# ------------------------------------------------------------------------------------------------- the corpus itself


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_differences_are_sharp(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    """Every point is smooth and its differences have five correct digits, so that the comparison is meaningful."""
    for point, arguments in enumerate(program.at):
        for one in expected_gradient(program, point):
            assert one.resolved(), f"{program.name}{arguments}: {one}"


def test_the_points_execute_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    functions = [value for value in vars(programs).values() if inspect.isfunction(value)]
    functions = [f for f in functions if f.__module__ == programs.__name__ and f.__name__ not in _MAKERS]
    functions += [p.function for p in PROGRAMS if p.function not in functions]

    executed = _lines_executed()

    missing = {line for function in functions for line in _lines_of(function.__code__)} - executed
    assert missing == set()


def test_every_program_states_its_fact() -> None:
    assert [p.name for p in PROGRAMS if not p.fact.endswith(".")] == []


def test_names_are_unique() -> None:
    names = [p.name for p in PROGRAMS]

    assert len(names) == len(set(names))


#: Functions of programs.py that build the corpus and are not part of it.
_MAKERS = {"program", "array", "grid", "vector", "make_model"}


def _lines_of(code: types.CodeType) -> Iterator[int]:
    """The numbers of the executable lines, without the `def` line, including nested functions."""
    yield from (line for _, _, line in code.co_lines() if line is not None and line != code.co_firstlineno)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _lines_of(constant)


def _lines_executed() -> set[int]:
    executed: set[int] = set()

    def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != programs.__file__:
            return None
        if event == "line":
            executed.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for one in PROGRAMS:
            for arguments in [*one.at, *(given for given, _ in one.raises)]:
                try:
                    one.function(*clone(arguments))
                except Exception:
                    continue  # points that raise only count for their lines
    finally:
        sys.settrace(before)
    return executed
