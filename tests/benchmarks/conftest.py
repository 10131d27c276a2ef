"""Configuration of the benchmark's tests. The benchmark runs the garbage collector before each measurement."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def objects_of_earlier_tests_are_frozen() -> None:
    """The garbage collector skips the objects of earlier tests. A collection of all of them takes a second."""
    gc.collect()
    gc.freeze()
