"""Step 4, from IR to IR. Comes in: a program and facts about it. Goes out: another program; one pass a file."""
