"""Users' own kernels in Numba's simulator: their adjoints against those of sequential programs, run as Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcdiff
from tests.cuda.programs import PROGRAMS, Program


def arguments_and_bars(program: Program, seed: int = 1) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    random = np.random.default_rng(seed)
    args = program.arguments(random)
    bars = tuple(
        None if not has else random.normal(size=a.shape) if isinstance(a, np.ndarray) else np.zeros(1)
        for a, has in zip(args, program.has_adjoint, strict=True)
    )
    return args, bars


def copies(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(v.copy() if isinstance(v, np.ndarray) else v for v in values)


def expected_bars(program: Program, args: tuple[Any, ...], bars: tuple[Any, ...]) -> tuple[Any, ...]:
    """By the adjoint of the sequential program: adjoints of what it does not write into are added to."""
    value, pullback = srcdiff.vjp(program.sequential, *copies(args), backend="python")
    names = program.kernel.names
    written = set(value)  # the sequential programs return nothing
    given = {n: b for n, b in zip(names, bars, strict=True) if n in written}
    found = pullback(**given)
    return tuple(
        None if b is None else np.asarray(g) + (0.0 if n in written else b)
        for n, b, g in zip(names, bars, found, strict=True)
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_adjoint_is_that_of_the_sequential_program(program: Program) -> None:
    args, bars = arguments_and_bars(program)
    expected = expected_bars(program, args, bars)

    program.kernel.adjoint[program.launch](copies(args), bars)

    for name, wanted, found in zip(program.kernel.names, expected, bars, strict=True):
        if wanted is not None:  # sums in another order
            wanted = np.broadcast_to(wanted, found.shape)
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13, err_msg=name)
