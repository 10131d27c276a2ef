"""The public functions: derivatives, batching, export, inspection and checks."""
