"""`srcdiff check`: the derivatives of a function, compared with finite differences."""

from __future__ import annotations

import argparse

from srcdiff.cli import given
from srcdiff.cli.answer import NO, Answer, working
from srcdiff.diagnostics.options import ORDER


def options(parser: argparse.ArgumentParser) -> None:
    given.add_function(parser)
    given.add_arguments(parser, values=True)
    given.add_wrt(parser, default="all that contain floats")
    parser.add_argument(
        "--order", type=int, choices=ORDER.values, default=1, help="2 also checks second derivatives (default: 1)"
    )
    given.add_backend(parser)


def run(chosen: argparse.Namespace) -> Answer:
    """The report, or the list of derivatives that differ."""
    import srcdiff

    asked = given.read(chosen)
    wrt = tuple(chosen.wrt) if chosen.wrt else None
    try:
        with working("checking"), given.running(asked):
            report = srcdiff.check(
                asked.function, *asked.arguments, wrt=wrt, order=chosen.order, backend=chosen.backend
            )
    except AssertionError as error:
        return Answer(f"{asked.notes}{error}", {"agree": False, "reason": str(error), "assumed": asked.assumed}, NO)
    entries = [{"place": e.place, "derivative": e.derivative, "differences": e.differences} for e in report.entries]
    return Answer(f"{asked.notes}{report}", {"agree": True, "entries": entries, "assumed": asked.assumed})
