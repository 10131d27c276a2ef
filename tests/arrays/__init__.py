"""Whole-array NumPy: a table of small functions, and real programs, each against NumPy itself and its differences."""
