"""The part of a table of programs that one run of the tests takes; `SRCDIFF_TEST_ALL=1` takes the whole table."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import Any

EVERYTHING = "SRCDIFF_TEST_ALL" in os.environ


def every(step: int, rows: Sequence[Any]) -> Sequence[Any]:
    """One row in `step`, by position: neighbours in a table are often alike."""
    return rows if EVERYTHING else rows[::step]


def is_chosen(name: str, step: int) -> bool:
    """Whether a program is one in `step`, by its name: programs that are added to a table change no other choice."""
    return EVERYTHING or zlib.crc32(name.encode()) % step == 0
