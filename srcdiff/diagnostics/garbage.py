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

_passed = [0, 300_000]
"""How many objects were passed to the oldest generation since it was looked through, and how many may be."""
_frozen_by_the_user = [False]
"""Whether there were frozen objects. They cannot be told from ours, and counting them takes time if they are many."""


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
            if gc.isenabled() and not _are_frozen_by_the_user():
                _pass_new_objects()
            gc.set_threshold(*before)


def _are_frozen_by_the_user() -> bool:
    """Whether somebody else uses `gc.freeze`. This is asked until the answer is yes."""
    if not _frozen_by_the_user[0]:
        _frozen_by_the_user[0] = gc.get_freeze_count() > 0
    return _frozen_by_the_user[0]


def _pass_new_objects() -> None:
    """Make new objects old ones, instead of looking through them as soon as the threshold is the usual one again.

    Most of them stay, or go when the last reference goes. The old ones are looked through when many were added.
    """
    _passed[0] += gc.get_count()[0]
    gc.freeze()
    gc.unfreeze()
    if _passed[0] > _passed[1]:
        gc.collect()
        _passed[:] = 0, max(300_000, len(gc.get_objects()) // 3)
