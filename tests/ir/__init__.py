"""Tests of the IR: its text, and the verifier."""
