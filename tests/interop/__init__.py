"""Derivatives in other libraries and in other processes."""
