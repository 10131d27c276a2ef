"""The command `srcdiff`."""

from srcdiff.cli.commands import main

__all__ = ["main"]
