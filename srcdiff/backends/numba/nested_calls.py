"""More nested calls than Python allows otherwise, while Numba compiles.

Numba follows a variable from block to block by recursion, several calls a block: a program of fifty nested loops has
more blocks than the thousand calls that Python allows reach. The calls are between Python functions, which take no C
stack.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

_NESTED_CALLS = 50_000


@contextlib.contextmanager
def allowed() -> Iterator[None]:
    """Allow them, and no more than before afterwards."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _NESTED_CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
