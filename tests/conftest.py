"""What all tests share: the marks, and a cache of their own, so that every run compiles what it tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """The marks of this test suite, and a new cache, which the processes of a run share."""
    config.addinivalue_line("markers", "numba: compiles with Numba, a second or so a program")
    if not hasattr(config, "workerinput"):
        cache = tempfile.mkdtemp(prefix="srcdiff-tests-")
        os.environ["SRCDIFF_CACHE_DIR"] = cache
        config.add_cleanup(lambda: shutil.rmtree(cache, ignore_errors=True))


@pytest.fixture
def own_backends() -> Iterator[None]:
    """Backends that the test registers are gone behind it."""
    from srcdiff.backends.registry import BACKENDS
    from srcdiff.diagnostics.options import BACKEND_OPTIONS

    names = set(BACKENDS)
    yield
    for name in set(BACKENDS) - names:
        del BACKENDS[name], BACKEND_OPTIONS[name]
