"""What all tests share: the marks, and a cache of their own, so that every run compiles what it tests."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """The marks of this test suite, and a new cache, which the processes of a run share."""
    config.addinivalue_line("markers", "numba: compiles with Numba, a second or so a program")
    if not hasattr(config, "workerinput"):
        cache = tempfile.mkdtemp(prefix="srcdiff-tests-")
        os.environ["SRCDIFF_CACHE_DIR"] = cache
        config.add_cleanup(lambda: shutil.rmtree(cache, ignore_errors=True))
