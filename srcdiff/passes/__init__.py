"""Step 4, from IR to IR: the pass manager, and what is compiled."""
