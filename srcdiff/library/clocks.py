"""The time of day: a program may read and store it, but not compute with it."""

from __future__ import annotations

import time
from typing import Any, NoReturn

MESSAGE = "the program computes with the time, which differs in each call: read it outside, and pass it in"


class TimeOfDay:
    """The result of every clock."""

    __srcdiff_words__ = "the time"
    """Its name in messages."""

    def refuse(self, *_: Any) -> NoReturn:
        raise TypeError(MESSAGE)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = refuse
    __neg__ = __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __float__ = __int__ = refuse


NOW = TimeOfDay()
CLOCKS = (time.time, time.monotonic, time.perf_counter, time.process_time, time.time_ns, time.perf_counter_ns)
