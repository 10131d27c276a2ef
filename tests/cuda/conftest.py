"""The tests of this folder run in Numba's simulator, which is chosen when a process starts."""

from __future__ import annotations

import os
import sys

if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    collect_ignore_glob = ["test_*.py"]
else:
    # A block waits for its threads by asking each of them in a loop, and they run only when that loop is interrupted.
    sys.setswitchinterval(1e-5)
