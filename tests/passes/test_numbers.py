"""The programs of the cases run: derivatives agree with central differences, and other passes preserve all numbers.

So a wrong part after `# ---- after` cannot be recorded by accident.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from srcdiff.backends.python import interpreter
from srcdiff.emit.module import write_kernels
from srcdiff.emit.spelling import NUMPY
from srcdiff.frontend.source.capture import capture
from srcdiff.ir.nodes import Derivative, Program, Value, walk
from srcdiff.ir.parse import parse
from srcdiff.ir.types import Array, Scalar, is_float
from srcdiff.passes.derivative_expansion import Expansion
from tests.passes import Case, all_cases
from tests.passes.derivatives import OBJECTS, reverse

DERIVATIVES = ("callee_adjoints", "custom_adjoints", "joint_calls", "reverse_mode", "tangent", "transpose")
STEPS = (
    "array_expansion",
    "array_renaming",
    "forward_sweep",
    "iteration_counts",
    "shadows",
    "snapshots",
    "storage_plan",
)
LENGTH = 4
COUNTS = (3, 0)
Point = list[Any]
Runs = Callable[..., tuple[Any, ...]]


def of(*folders: str) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in all_cases() if case.path.parent.name in folders]


def function_of(program: Program) -> Runs:
    """The main function, as Python."""
    module = write_kernels(program.main.name, (), (program.main, *program.callees), "", NUMPY)
    names = interpreter.run(module.text, module.objects, interpreter.new_file(module.name))
    return interpreter.quiet(names[module.name])


def emitted(program: Program) -> Runs:
    """The main function. Its writes into arguments are lost."""
    function = function_of(program)
    return lambda *args: function(*copies(args))


def copies(args: Sequence[Any]) -> Point:
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def half(case: Case, number: int) -> Program:
    return parse(case.halves()[number], OBJECTS)


def choices(param: Value, number: int) -> Sequence[Any]:
    """The values for a parameter: integers are counts, including zero, and both sides of branches are taken."""
    match param.type:
        case Scalar("int64"):
            return COUNTS
        case Scalar("bool"):
            return (True, False)
        case Scalar(dtype):
            return (np.dtype(dtype).type(0.7 + 0.2 * number),)
        case Array(dtype, rank):
            shape = (LENGTH,) * rank
            numbers = np.arange(LENGTH**rank).reshape(shape)
            floats = (
                np.cos(1.0 + numbers + number) + 2.0 * np.eye(*shape) if rank == 2 else np.cos(0.3 + numbers + number)
            )
            return ((floats if is_float(param.type) else numbers % LENGTH).astype(dtype),)
    raise AssertionError(f"no number for {param.type}")


def points(program: Program) -> list[Point]:
    """Arguments for which the program does not raise. There is at least one."""
    run, found = emitted(program), []
    for args in product(*(choices(p, k) for k, p in enumerate(program.main.params))):
        try:
            run(*args)
        except (IndexError, ValueError, ZeroDivisionError):
            continue
        found.append(list(args))
    assert found
    return found


def nudged(point: Point, place: int, by: Any) -> Point:
    return [a + np.asarray(a).dtype.type(1) * by if k == place else a for k, a in enumerate(point)]


def is_single(program: Program) -> bool:
    return any("float32" in str(p.type) for p in program.main.params)


def tolerance(program: Program) -> tuple[float, float]:
    """The step of the differences, and their accuracy."""
    return (1e-2, 2e-3) if is_single(program) else (1e-6, 1e-7)


def difference(run: Runs, point: Point, place: int, along: Any, step: float) -> list[Any]:
    """The derivatives of all results along a change of one argument."""
    above, below = (run(*nudged(point, place, sign * step * along)) for sign in (1, -1))
    return [(np.asarray(a, float) - np.asarray(b, float)) / (2 * step) for a, b in zip(above, below, strict=True)]


def directions(argument: Any) -> list[Any]:
    """One direction for each number."""
    if not isinstance(argument, np.ndarray):
        return [1.0]
    return [np.eye(1, argument.size, k).reshape(argument.shape).astype(argument.dtype) for k in range(argument.size)]


def places(case: Case, program: Program) -> list[int]:
    return [k for k, p in enumerate(program.main.params) if p.name in case.options()["wrt"]]


@pytest.mark.parametrize("case", of(*DERIVATIVES))
def test_derivative_is_that_of_central_differences(case: Case) -> None:
    before, after = half(case, 0), half(case, 1)
    run, derivative = emitted(before), emitted(after)
    is_tangent = after.main.name.endswith("_tangent")
    check = check_tangent if is_tangent else check_gradient
    for point in points(before):
        check(run, derivative, point, places(case, before), *tolerance(before))


def check_gradient(run: Runs, gradient: Runs, point: Point, wrt: list[int], step: float, exact: float) -> None:
    values, found = run(*point), gradient(*point)
    for value, same in zip(values, found, strict=False):
        np.testing.assert_allclose(same, value)
    for place, bar in zip(wrt, found[len(values) :], strict=True):
        expected = [difference(run, point, place, along, step)[0] for along in directions(point[place])]
        np.testing.assert_allclose(np.ravel(bar), expected, rtol=exact, atol=exact)


def check_tangent(run: Runs, tangent: Runs, point: Point, wrt: list[int], step: float, exact: float) -> None:
    dots = [0.3 + 0.1 * k + np.zeros_like(point[place]) for k, place in enumerate(wrt)]
    changes = [difference(run, point, place, dot, step) for place, dot in zip(wrt, dots, strict=True)]
    found = tangent(*point, *dots)
    for dot, expected in zip(found, zip(*changes, strict=True), strict=True):
        np.testing.assert_allclose(dot, sum(expected), rtol=exact, atol=exact)


@pytest.mark.parametrize("case", of(*STEPS))
def test_gradient_of_a_program_for_one_step(case: Case) -> None:
    """The result of a single step is right if the result of all steps is."""
    before = half(case, 0)
    run, gradient = emitted(before), emitted(reverse(half(case, 0), case.options()))
    for point in points(before):
        check_gradient(run, gradient, point, places(case, before), *tolerance(before))


@pytest.mark.parametrize("case", of("batch_loop"))
def test_batch_equals_calls_for_its_elements(case: Case) -> None:
    before, options = half(case, 0), case.options()
    run, batch, yields = emitted(before), emitted(half(case, 1)), before.main.body.yields
    in_batch = [p.name in options["batch"] for p in before.main.params]
    for point in points(before):
        rows = [[a * (1.0 + k) if m else a for a, m in zip(point, in_batch, strict=True)] for k in range(LENGTH)]
        alone = [
            [0.0 * a if p.name in options["given"] else a for a, p in zip(row, before.main.params, strict=True)]
            for row in rows
        ]
        stacked = [np.stack([r[k] for r in rows]) if m else point[k] for k, m in enumerate(in_batch)]
        given = [a for a, p in zip(stacked, before.main.params, strict=True) if p.name not in options["given"]]
        results = zip(*(run(*args) for args in alone), strict=True)
        for k, (found, expected) in enumerate(zip(batch(*given), results, strict=True)):
            is_sum = str(k) in options["sums"] or yields[k].name in options["given"]
            np.testing.assert_allclose(found, np.sum(expected, axis=0) if is_sum else np.stack(expected))


@pytest.mark.parametrize("case", of("lanes"))
def test_lanes_equal_single_directions(case: Case) -> None:
    before = half(case, 0)
    run, lanes, wrt = emitted(before), emitted(half(case, 1)), places(case, before)
    for point in points(before):
        each = [[a * (k - 1.0) if place in wrt else a for place, a in enumerate(point)] for k in range(LENGTH)]
        stacked = [
            np.stack([args[place] for args in each], axis=-1) if place in wrt else a for place, a in enumerate(point)
        ]
        results = zip(*(run(*args) for args in each), strict=True)
        for found, expected in zip(lanes(*stacked, LENGTH), results, strict=True):
            np.testing.assert_allclose(found, np.stack(expected, axis=-1))


@pytest.mark.parametrize("case", of("jacobian"))
def test_jacobian_is_that_of_central_differences(case: Case) -> None:
    before = half(case, 0)
    run, jacobian = emitted(before), emitted(half(case, 1))
    for point in points(before):
        found, values = iter(jacobian(*point)), run(*point)
        for k in range(len(values)):
            for place in places(case, before):
                columns = [difference(run, point, place, along, 1e-6)[k] for along in directions(point[place])]
                shape = np.shape(values[k]) + np.shape(point[place])
                np.testing.assert_allclose(
                    next(found), np.stack(columns, axis=-1).reshape(shape), rtol=1e-7, atol=1e-7
                )  # of the differences


@pytest.mark.parametrize("case", of("derivative_expansion"))
def test_nested_derivative_is_that_of_central_differences(case: Case) -> None:
    """The first derivative in the program, with respect to parameters of the program."""
    before, after = half(case, 0), emitted(half(case, 1))
    found = [o for o in walk(before.main.body) if isinstance(o, Derivative)]
    if not found or set(found[0].outs).isdisjoint(before.main.body.yields):
        return
    operation, yields = found[0], list(before.main.body.yields)
    inner = Expansion(capture(of), before).closed(operation)
    run = emitted(Expansion(capture(of), Program(inner, before.callees)).run())
    wrt = [k for k, p in enumerate(operation.params) if is_float(p.type)]
    for args in product(*(choices(p, k) for k, p in enumerate(before.main.params))):
        known = dict(zip(before.main.params, args, strict=True))
        point = [known[v] for v in (*operation.args, *inner.params[len(operation.params) :])]
        values = after(*args)
        results = [values[yields.index(out)] for out in operation.outs]
        if operation.with_value:
            for value in run(*point):
                np.testing.assert_allclose(results.pop(0), value)
        changes = [difference(run, point, place, 1.0, 1e-6) for place in wrt]
        if operation.jacobian:
            expected = [change[k] for k in range(len(inner.body.yields)) for change in changes]
        elif operation.mode == "reverse":
            expected = [change[0] for change in changes]
        else:
            dots = [known[v] for v in operation.tangents]
            expected = [sum(d * c[0] for d, c in zip(dots, changes, strict=True))]
        np.testing.assert_allclose(results, expected, rtol=1e-7, atol=1e-7)  # of the differences


@pytest.mark.parametrize("case", of(*STEPS, "product_loops", "stacks"))
def test_pass_changes_no_number(case: Case) -> None:
    before, after = half(case, 0), half(case, 1)
    run, again = emitted(before), emitted(after)
    for point in points(before):
        for value, same in zip(run(*point), again(*point), strict=True):
            np.testing.assert_allclose(
                same, value, rtol=1e-6 if is_single(before) else 1e-14
            )  # a library adds in another order


def test_a_wrong_derivative_is_found() -> None:
    case = next(case for case in all_cases() if case.name == "reverse_mode/plain")
    run, wrong = emitted(half(case, 0)), emitted(parse(case.halves()[1].replace("cos(", "sin("), OBJECTS))
    with pytest.raises(AssertionError):
        check_gradient(run, wrong, [0.7, 0.9], [0], *tolerance(half(case, 0)))
