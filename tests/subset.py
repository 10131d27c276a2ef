"""The subset of a table of programs for one run of the tests; `SRCDIFF_TEST_ALL=1` selects the whole table."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import Any

EVERYTHING = "SRCDIFF_TEST_ALL" in os.environ


def every(step: int, rows: Sequence[Any]) -> Sequence[Any]:
    """One row in `step`, by position, because neighbours in a table are often similar."""
    return rows if EVERYTHING else rows[::step]


def is_chosen(name: str, step: int) -> bool:
    """Whether a program is selected, one in `step`, by its name: a new program does not change the other selections."""
    return EVERYTHING or zlib.crc32(name.encode()) % step == 0
