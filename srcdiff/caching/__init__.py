"""What one process keeps for the next: generated sources and machine code, in files that only the user can write."""
