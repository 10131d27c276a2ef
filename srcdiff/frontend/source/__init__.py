"""The user's functions: their source, their outside values, and their Numba options."""
