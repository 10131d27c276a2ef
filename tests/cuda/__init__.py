"""What runs in Numba's simulator of a GPU, in a process of its own: see tests/test_simulator.py."""
