"""NumPy's functions on whole arrays, written in the language that srcdiff reads.

What is not an elementwise operation, an index or a view is a plain Python function here: loops over elements, read and
differentiated like the user's own code. Only what is better left to BLAS and LAPACK is a call with an adjoint of its
own (`calls.py`). A function may be given arrays that are not computed yet; it reads each element once, or starts with
`a = np.asarray(a)`.
"""
