"""Programs with `prange`: gradients without races, in any order of the iterations, against differences."""

from __future__ import annotations

import numpy as np
import pytest

import srcdiff
from srcdiff.backends.python import race_checker
from tests.numerical import gradient
from tests.parallel.__main__ import any_work
from tests.parallel.programs import PROGRAMS

ALONE = {"product", "escape"}
"""Programs whose gradients have no loop that threads share."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_gradients_without_races_against_differences(program):
    expected = gradient(program.function.py_func, program.args, program.wrt)
    with any_work(), race_checker.on():
        derivative = srcdiff.grad(program.function, program.wrt, backend="python", parallel=True, fastmath=False)
        found = derivative(*program.args)
    numbers = np.concatenate([np.ravel(bar) for bar in found])
    for number, difference in zip(numbers, expected, strict=True):
        assert abs(number - difference.value) <= difference.tolerance
    assert ("get_num_threads" in derivative.source) == (program.name not in ALONE)
