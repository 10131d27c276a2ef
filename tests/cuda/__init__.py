"""Tests that run in Numba's CUDA simulator, in a process of their own: see tests/test_simulator.py."""
