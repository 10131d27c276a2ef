"""Step 5, from IR to Python text. It reads well, and the same program gives the same text."""
