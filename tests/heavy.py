"""Libraries that `.ci/run` does not install. `.ci/bridges` runs the tests that need them."""

import re

import pytest

HEAVY = {
    name: name
    for name in ("torch", "jax", "nutpie", "pymc", "pytensor", "nlopt", "iminuit", "lmfit", "openmdao", "pandas")
}
HEAVY["ipopt"] = "cyipopt"
"""The package of each bridge."""


def imported_by(program: str) -> list[str]:
    """The heavy libraries that a program imports."""
    found = "|".join(HEAVY)
    names = re.findall(rf"^\s*(?:import|from|from srcdiff\.bridges import) ({found})\b", program, re.MULTILINE)
    return sorted({HEAVY[name] for name in names})


def skip_without_heavy(program: str) -> None:
    """Skip the test if a program imports a heavy library that is not installed."""
    for name in imported_by(program):
        pytest.importorskip(name)
