"""Libraries that the tests of `.ci/run` do without: `.ci/bridges` runs what needs them."""

import re

import pytest

HEAVY = ("torch", "jax", "nutpie", "pymc", "pytensor")


def imported_by(program: str) -> list[str]:
    """The heavy libraries that a program imports."""
    return [name for name in HEAVY if re.search(rf"^\s*(import|from) {name}\b", program, re.MULTILINE)]


def skip_without_heavy(program: str) -> None:
    """Skip the test if a program imports a heavy library that is not installed."""
    for name in imported_by(program):
        pytest.importorskip(name)
