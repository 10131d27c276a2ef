"""The user's functions: their text, what they read from outside, and what Numba was told."""
