"""The functions of SciPy that srcdiff supports."""
