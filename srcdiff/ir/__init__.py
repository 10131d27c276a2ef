"""Step 2, the typed program. Comes in: nothing, everybody imports it. Goes out: nodes, types, primitives, `verify`, and
which memory a reference may be to, which reading and all that follows it must agree on."""
