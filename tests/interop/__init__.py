"""Derivatives in the hands of other libraries, and in other processes."""
