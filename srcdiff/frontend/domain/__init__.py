"""The abstract domain: abstract values, their lattice, and the state."""
