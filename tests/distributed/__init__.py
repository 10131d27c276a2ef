"""Sums over data: by chunks, by several processes."""
