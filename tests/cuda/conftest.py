"""The tests of this folder run in Numba's simulator, which is chosen when a process starts."""

from __future__ import annotations

import os

if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    collect_ignore_glob = ["test_*.py"]
