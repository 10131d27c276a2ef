"""Functions of `bisect`, as Python that srcdiff reads. They compare numbers, so that results have no derivative."""

from __future__ import annotations

import bisect
from typing import Any


def bisect_left(a: Any, x: Any, lo: Any = 0, hi: Any = None) -> Any:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    first, last = lo, len(a) if hi is None else hi
    while first < last:
        middle = (first + last) // 2
        if a[middle] < x:
            first = middle + 1
        else:
            last = middle
    return first


def bisect_right(a: Any, x: Any, lo: Any = 0, hi: Any = None) -> Any:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    first, last = lo, len(a) if hi is None else hi
    while first < last:
        middle = (first + last) // 2
        if x < a[middle]:
            last = middle
        else:
            first = middle + 1
    return first


FUNCTIONS: dict[Any, Any] = {bisect.bisect_left: bisect_left, bisect.bisect_right: bisect_right}
"""`bisect.bisect` is `bisect.bisect_right`."""
