"""Step 6, from text to a function that runs. Comes in: Python source. Goes out: a callable."""
