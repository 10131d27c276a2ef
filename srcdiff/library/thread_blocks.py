"""What programs with loops in threads call: how iterations are divided into blocks."""

from __future__ import annotations

from srcdiff.library.blas_lapack import row

BLOCKS = row("thread_blocks", "thread_blocks({0}, {1}, {2})", ",,->", support="thread_blocks")
"""How many blocks, from the number of iterations, the work of all, and the private numbers of a block."""
ITERATIONS = row("iterations_of", "iterations_of({0}, {1}, {2})", ",,->,", support="iterations_of")
"""The first iteration of a block and the first one behind it, from its number, and how many blocks and iterations."""
