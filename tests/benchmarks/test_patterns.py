"""The patterns: hand-written adjoints agree with differences, and srcdiff agrees with them. Also their table."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import srcdiff
from benchmarks import __main__ as command
from benchmarks import patterns, programs, report, run
from benchmarks.systems import hand
from tests.numerical import Line, clone, derivative, size_of

ALL = [programs.load(f"patterns.{name}") for name in patterns.NAMES]
EACH = pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
GRADIENTS = pytest.mark.parametrize("program", [p for p in ALL if p.is_gradient], ids=lambda program: program.name)


def by_hand(program, size):
    return hand.to_numpy(hand.prepare(program, clone(program.arguments(size)), "hand")())


def test_every_module_is_listed():
    files = {path.stem for path in Path(patterns.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == set(patterns.NAMES)


@GRADIENTS
def test_adjoint_by_hand_agrees_with_differences_along_random_lines(program):
    size = program.sizes[0]
    arguments = program.arguments(size)
    value, gradients = by_hand(program, size)
    assert value == pytest.approx(program.primal(*clone(arguments)), rel=1e-12)
    flat = np.concatenate([np.ravel(g) for g in gradients])
    for seed in range(3):
        direction = np.random.default_rng(seed).standard_normal(size_of(arguments, program.positions))
        direction /= np.linalg.norm(direction)
        found = derivative(Line(program.primal, arguments, program.positions, direction))
        assert found.resolved(scale=float(np.linalg.norm(flat)))
        assert abs(flat @ direction - found.value) <= found.tolerance + 1e-9 * np.linalg.norm(flat)


@GRADIENTS
def test_srcdiff_agrees_with_the_adjoint_by_hand(program):
    size = program.sizes[0]
    arguments = program.arguments(size)
    expected_value, expected = by_hand(program, size)
    differentiated = srcdiff.value_and_grad(program.primal, wrt=program.wrt, backend="python")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, gradients = differentiated(*clone(arguments))
    assert value == pytest.approx(expected_value, rel=1e-10)
    scale = max(float(np.max(np.abs(g))) for g in expected)
    for gradient, right in zip(gradients, expected, strict=True):
        assert np.max(np.abs(gradient - right)) <= 1e-10 * scale


def test_jacobians_by_hand_agree_with_srcdiff_and_with_differences():
    program = programs.load("patterns.bundle_jacobian")
    _, (by_camera, by_point) = by_hand(program, program.sizes[0])
    jacobian = srcdiff.jacobian(program.primal, wrt=program.wrt, backend="python")
    for k, given in enumerate(zip(*program.arguments(program.sizes[0]), strict=True)):
        for found, expected in zip(jacobian(*given), (by_camera[k], by_point[k]), strict=True):
            assert np.allclose(found, expected, rtol=1e-10, atol=1e-10 * np.max(np.abs(expected)))
        direction = np.random.default_rng(k).standard_normal(12)
        for row in range(2):
            line = Line(lambda *a, row=row: program.primal(*a)[row], given, (0, 1), direction)
            along = derivative(line)
            flat = np.concatenate([by_camera[k, row], by_point[k, row]])
            assert abs(flat @ direction - along.value) <= along.tolerance + 1e-9 * np.linalg.norm(flat)


def test_descent_by_hand_agrees_with_descent_by_srcdiff():
    program = programs.load("patterns.gradient_in_njit")
    start, steps = program.arguments(program.sizes[0])
    value, (expected,) = by_hand(program, steps)
    gradient = srcdiff.value_and_grad(program.primal, backend="python")
    x = start.copy()
    for _ in range(steps):
        total, x_bar = gradient(x)
        x = x - 1e-4 * x_bar
    assert total == pytest.approx(value, rel=1e-12)
    assert np.allclose(x, expected, rtol=1e-12)


@EACH
def test_pattern_has_two_sizes_and_the_same_data_every_time(program):
    small, large = program.sizes
    assert small < large
    for a, b in zip(program.arguments(small), program.arguments(small), strict=True):
        assert np.array_equal(a, b, equal_nan=True)


# -- the table


def some_run(times):
    """A run with the given times: {(pattern, system): seconds}."""
    sizes = {name: programs.load(f"patterns.{name}").sizes[-1] for name, _ in times}
    results = [
        run.Result(f"patterns.{name}", sizes[name], system, seconds=t, spread=1.0, busy_cold=1.5, busy_warm=0.25)
        for (name, system), t in times.items()
    ]
    machine = {"processor": "a processor", "system": "a system", "python": "3"}
    return run.Run("2000-01-01 00:00", machine, {"srcdiff": "srcdiff 0"}, {}, results)


def test_table_says_how_far_srcdiff_is_from_the_adjoint_by_hand():
    times = {("relu", "hand"): 1e-3, ("relu", "srcdiff"): 2e-3, ("relu", "jax"): 1.5e-3}
    times |= {("clip", "hand"): 1e-3, ("clip", "srcdiff"): 0.5e-3}
    lines = list(report.describe(some_run(times)))
    (relu,) = [line.split() for line in lines if line.startswith("relu")]
    assert ["2.00", "ms", "2.00", "1.50", "ms", "1.50", "1.50", "0.25", "1.50"] == relu[5:]
    (mean,) = [line.split() for line in lines if line.startswith("geometric mean")]
    assert ["geometric", "mean", "1.00", "1.50"] == mean
    assert "Above 1.3: relu 2.00" in lines
    assert "Slower than JAX: relu" in lines
    without = {key: t for key, t in times.items() if key[1] != "jax"}
    assert not any(line.startswith("Slower than JAX") for line in report.describe(some_run(without)))


def test_a_wrong_adjoint_by_hand_is_found():
    program = programs.load("patterns.sin_cos")
    _, gradients = run.reference(program, program.sizes[0])
    run.compare_with_differences(program, gradients)
    with pytest.raises(AssertionError, match="differences"):
        run.compare_with_differences(program, [1.0001 * g for g in gradients])


def test_command_knows_the_names_of_patterns(capsys):
    assert command.parse(["--patterns", "--only", "relu"]).only == ["patterns.relu"]
    assert len(command.parse(["--patterns"]).only) == len(patterns.NAMES)
    with pytest.raises(SystemExit):
        command.parse(["--only", "relu"])
    assert "there is no relu: choose from tiny" in capsys.readouterr().err
