"""Step 3, facts. Comes in: IR. Goes out: what is known about it; nothing is changed and nothing is hung on nodes."""
