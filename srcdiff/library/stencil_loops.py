"""The loop of a Numba stencil: a kernel for each place whose neighbours are all inside of the array."""

from __future__ import annotations

from typing import Any

from srcdiff.library.language import each


def stencil_loop(kernel: Any, out: Any, starts: Any, counts: Any, *args: Any) -> Any:
    """Write `kernel(i, j, ..., *args)` to each place from `starts` on, `counts` of them along each axis."""
    for k in each(counts):
        place = tuple([k[axis] + starts[axis] for axis in range(len(starts))])
        out[place] = kernel(*place, *args)
    return out
