"""Configuration of all tests: marks, and a new cache for each run, so that every run compiles what it tests."""

from __future__ import annotations

import gc
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
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes that tests start share the bytecode of srcdiff
        config.add_cleanup(lambda: shutil.rmtree(cache, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With several processes (`-n 2`), an idle process takes tests from another one."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


LONG = (
    "test_simulator.py",
    "test_own_function.py",
    "test_interrupts.py",
    "test_run.py",
    "test_leaks.py",
    "test_stack.py",
)
"""Files with tests of many seconds each. They run first, so that at the end no process is left alone with them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_collection_finish(session: pytest.Session) -> None:
    """The garbage collector skips the tests themselves. They are many, and each collection would traverse them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def derivatives_made_anew() -> None:
    """Derivatives are not shared between tests."""
    from srcdiff.frontend.source.capture import forget_made

    forget_made()


@pytest.fixture(autouse=True)
def own_rules() -> Iterator[None]:
    """Remove rules that a test has declared with `rule_for`."""
    from srcdiff.frontend.source.declared_rules import RULES

    before = dict(RULES.rows)
    yield
    if RULES.rows != before:
        RULES.rows, RULES.version = before, object()


@pytest.fixture
def own_backends() -> Iterator[None]:
    """Remove backends that a test has registered."""
    from srcdiff.backends.registry import BACKENDS
    from srcdiff.diagnostics.options import BACKEND_OPTIONS

    names = set(BACKENDS)
    yield
    for name in set(BACKENDS) - names:
        del BACKENDS[name], BACKEND_OPTIONS[name]
