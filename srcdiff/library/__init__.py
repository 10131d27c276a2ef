"""NumPy's functions on arrays, written in the language that srcdiff reads.

Elementwise operations, indexing and views are built into the front end. All other functions are plain Python here:
loops over elements, read and differentiated like the user's code. Only calls of BLAS and LAPACK have their own adjoints
(`blas_lapack.py`). An argument may be an array expression that is not computed yet; a function reads each of its
elements once, or starts with `a = np.asarray(a)`.
"""
