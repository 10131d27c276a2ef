"""What functions of Python, NumPy and srcdiff mean: rows of the interpreter's tables."""
