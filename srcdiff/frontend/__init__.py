"""Step 1, from text to IR. Comes in: a function and the types of its arguments. Goes out: the program as IR."""
