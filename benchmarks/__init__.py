"""The benchmark: compares srcdiff with tapes and other systems on the same programs."""
