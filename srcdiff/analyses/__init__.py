"""Step 3, analyses: facts about the IR. They change nothing and attach nothing to nodes."""
