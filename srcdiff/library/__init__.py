"""NumPy's functions on arrays, written in the language that srcdiff reads.

Everything but elementwise operations, indexing and views is a plain Python function here: loops over elements, read and
differentiated like the user's code. Only operations for BLAS and LAPACK are calls with their own adjoints
(`blas_lapack.py`). An argument may be an array expression that is not computed yet; a function reads each of its
elements once, or starts with `a = np.asarray(a)`.
"""
