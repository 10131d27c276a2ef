"""The cuda backend: the passes over kernels, the compiler for GPUs, and the arrays and launches of the host."""
