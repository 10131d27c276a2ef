"""Step 5, from IR to Python text. The text is meant to be read, and the same program always gives the same text."""
