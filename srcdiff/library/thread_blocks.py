"""Functions that programs with threaded loops call: the division of iterations into blocks."""

from __future__ import annotations

from srcdiff.library.blas_lapack import row

BLOCKS = row("thread_blocks", "thread_blocks({0}, {1}, {2})", ",,->", support="thread_blocks")
"""The number of blocks, from the number of iterations, the total work, and the private numbers of a block."""
ITERATIONS = row("iterations_of", "iterations_of({0}, {1}, {2})", ",,->,", support="iterations_of")
"""The range of a block, from its number, the number of blocks, and the number of iterations."""
