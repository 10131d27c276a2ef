"""The tests: one folder or file a thing, a corpus of programs (programs.py) and a fuzzer (fuzz/)."""
