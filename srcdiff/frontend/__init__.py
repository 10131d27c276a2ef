"""Step 1, the front end: from the source of a function and its argument types to IR."""
