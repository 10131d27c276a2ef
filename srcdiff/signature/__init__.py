"""The structures of arguments and results: flattening, rebuilding, and the names of their parts."""
