"""Step 2, the typed program. Comes in: nothing, everybody imports it. Goes out: nodes, types, primitives, `verify`."""
