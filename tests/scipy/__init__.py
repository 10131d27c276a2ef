"""What srcdiff reads of SciPy."""
