"""The numba backend: the generated source, compiled for the CPU."""
