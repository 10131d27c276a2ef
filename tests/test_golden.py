"""Generated source, compared byte for byte with tests/golden/*.txt."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.golden import Golden, all_golden
from tests.numerical import clone, gradient, numbers_in

GOLDEN = all_golden()


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.path.stem)
def test_generated_source_is_the_golden_one(golden: Golden) -> None:
    """`python -m tests.golden --update` writes the files again."""
    assert golden.output == golden.generated()


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.path.stem)
def test_golden_source_runs_by_itself_and_is_right(golden: Golden) -> None:
    """The contents of the file can be pasted into another one. `--update` cannot record a wrong adjoint."""
    namespace: dict[str, Any] = {}
    exec(compile(golden.output, golden.path.name, "exec"), namespace)
    name = re.findall(r"^def (\w+)", golden.output, re.MULTILINE)[-1]

    value, bar = namespace[name](*clone(golden.arguments))

    assert golden.function(*clone(golden.arguments)) == pytest.approx(value, rel=1e-14)  # sums in another order
    expected = gradient(golden.function, golden.arguments, (0,))
    for got, one in zip(numbers_in(bar), expected, strict=True):
        assert abs(got - one.value) <= one.tolerance
    assert not np.array_equal(list(numbers_in(bar)), np.zeros(len(expected)))


def test_there_are_golden_files() -> None:
    assert len(GOLDEN) >= 12
