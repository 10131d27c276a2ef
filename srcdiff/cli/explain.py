"""`srcdiff explain`: which inputs of a user's function reach its result, and what its gradient keeps."""

from __future__ import annotations

import argparse

from srcdiff.cli import given
from srcdiff.cli.answer import DONE, NO, Answer, CommandError, working


def options(parser: argparse.ArgumentParser) -> None:
    given.add_function(parser)
    given.add_arguments(parser)
    given.add_wrt(parser, default="all that contain floats")


def run(chosen: argparse.Namespace) -> Answer:
    """The explanation; the answer is negative if a chosen input does not reach the result."""
    import srcdiff
    from srcdiff.inspect.terminal import wants_colour

    asked = given.read(chosen)
    try:
        with working("explaining"):
            found = srcdiff.explain(
                asked.function, *asked.described(), wrt=tuple(chosen.wrt) if chosen.wrt else None, **asked.keywords
            )
    except ValueError as error:
        raise CommandError(str(error)) from None
    cut_off = [i.name for i in found.inputs if i.reaches is False]
    text = f"{asked.notes}{found.text(colour=wants_colour())}"
    return Answer(text, {**found.data(), "assumed": asked.assumed}, NO if chosen.wrt and cut_off else DONE)
