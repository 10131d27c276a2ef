"""The programs of the benchmark: each gradient that the benchmark compares is compared with differences here."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import srcdiff
from benchmarks import programs
from srcdiff import EqualityTestWarning, tape
from tests.numerical import Line, clone, derivative, size_of

ALL = [programs.load(name) for name in programs.NAMES]
EACH = pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)


@EACH
def test_eager_tape_agrees_with_differences_along_random_lines(program):
    arguments = program.arguments(program.sizes[0])
    value, gradients = tape.eager.value_and_grad(program.primal, program.positions)(*clone(arguments))
    assert value == pytest.approx(program.primal(*clone(arguments)), rel=1e-12)
    flat = np.concatenate([np.ravel(g) for g in gradients])
    for seed in range(3):
        direction = np.random.default_rng(seed).standard_normal(size_of(arguments, program.positions))
        direction /= np.linalg.norm(direction)
        found = derivative(Line(program.primal, arguments, program.positions, direction))
        assert found.resolved(scale=float(np.linalg.norm(flat)))
        assert abs(flat @ direction - found.value) <= found.tolerance + 1e-9 * np.linalg.norm(flat)


@EACH
@pytest.mark.parametrize("way", ["compiled tape", "srcdiff"])
def test_gradients_agree_with_the_eager_tape(program, way):
    arguments = program.arguments(program.sizes[0])
    expected = tape.eager.value_and_grad(program.primal, program.positions)(*clone(arguments))
    if way == "srcdiff":
        differentiated = srcdiff.value_and_grad(program.primal, wrt=program.wrt, backend="python")
    else:
        differentiated = tape.compiled.value_and_grad(program.primal, program.positions)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", EqualityTestWarning)  # bundle adjustment tests whether an angle is zero
            value, gradients = differentiated(*clone(arguments))
    except srcdiff.DifferentiationError as error:
        pytest.skip(f"srcdiff refuses it: {error}")
    assert value == pytest.approx(expected[0], rel=1e-10)
    scale = max(float(np.max(np.abs(g))) for g in expected[1])
    for gradient, right in zip(gradients, expected[1], strict=True):
        assert np.max(np.abs(gradient - right)) <= 1e-10 * scale


@EACH
def test_program_has_three_growing_sizes_and_the_same_data_every_time(program):
    assert len(program.sizes) == 3
    assert sorted(program.sizes) == list(program.sizes)
    first, second = program.arguments(program.sizes[0]), program.arguments(program.sizes[0])
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b)


def test_there_are_at_least_fifteen_programs():
    assert len(ALL) >= 15
