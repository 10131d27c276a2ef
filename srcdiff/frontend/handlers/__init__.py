"""The meaning of functions of Python, NumPy and srcdiff: rows of the interpreter's tables."""
