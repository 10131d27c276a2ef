"""Seldom looking for garbage while a program is compiled.

Compilers make many objects that stay until they are done. Python looks through them for circles that nobody refers to
each time that some hundred were made, which takes an eighth of a first call and finds next to nothing.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_SELDOM = 100_000
"""How many objects are made before Python looks: the memory that this may take longer is a few megabytes."""


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """Run the garbage collector less often, unless the user has set a threshold or disabled it."""
    before = gc.get_threshold()
    if not 0 < before[0] < _SELDOM:
        yield
        return
    seldom = (_SELDOM, *before[1:])
    gc.set_threshold(*seldom)
    try:
        yield
    finally:
        if gc.get_threshold() == seldom:
            gc.set_threshold(*before)
