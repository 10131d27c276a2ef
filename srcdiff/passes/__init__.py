"""Step 4, passes: from IR to IR, one pass in each file."""
