"""The benchmark: srcdiff beside tapes and other systems, on the same programs, in one command."""
