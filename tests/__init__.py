"""The tests: folders that mirror `srcdiff/`, a corpus of programs (programs.py), and a fuzzer (fuzz/)."""
