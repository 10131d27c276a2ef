"""Programs with `prange`, and a script that runs their gradients on threads many times."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait let other programs run
