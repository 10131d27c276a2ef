"""Options of LLVM that generated code wants, for the whole process: LLVM has no others.

Before a loop that was vectorised, LLVM compares the arrays' addresses: if two overlap, the loop runs one element at a
time. For an inner loop it makes one comparison before the outer loop where it can, with all that the outer loop
reaches. In

    for step in range(steps):
        row = kept[step]
        for i in range(n):
            row[i] = x[i] + sin(x[i])
        x = row

that is the whole of `kept`, which overlaps with `x`, a row of it, and the vectors are never used: such a loop takes ten
times as long. So the comparison is made before each inner loop, with the rows that it reaches.
"""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

_TRIED = (22,)
"""The versions of LLVM that are known to have the option: others end the process if they have not."""


@functools.cache
def ensure_set() -> None:
    if llvm.llvm_version_info[0] in _TRIED:
        llvm.set_option("", "--hoist-runtime-checks=false")
