"""The python backend: the generated source as it is."""
