"""Bridges to libraries that use derivatives. Each is imported only when it is used, and needs its own extra."""
