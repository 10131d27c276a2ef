"""Configuration of the tests of the benchmark, which collects garbage before each time that it takes."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def objects_of_earlier_tests_are_frozen() -> None:
    """The garbage collector skips the objects of earlier tests. A collection of all of them takes a second."""
    gc.collect()
    gc.freeze()
