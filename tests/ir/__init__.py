"""Tests of the IR: its text, and what a legal program is."""
