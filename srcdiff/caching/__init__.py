"""The cache on disk: generated sources and machine code, in files that only the user can write."""
