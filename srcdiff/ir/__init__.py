"""Step 2, the typed IR: nodes, types, primitives, verification, and the points-to analysis that all stages share."""
