"""What users call: derivatives, modes, batching, export, checks."""
