"""What all tests share: the marks, and no leftovers of generated programs in the way of a report."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """The marks of this test suite."""
    config.addinivalue_line("markers", "numba: compiles with Numba, a second or so a program")
