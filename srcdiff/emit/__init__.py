"""Step 5, from IR to Python text. Comes in: a program. Goes out: source that a person can read, the same each time."""
