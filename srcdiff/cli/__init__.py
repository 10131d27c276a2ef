"""The command `srcdiff`: what can be seen of srcdiff without writing a program."""

from srcdiff.cli.commands import main

__all__ = ["main"]
