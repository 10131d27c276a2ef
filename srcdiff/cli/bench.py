"""`srcdiff bench`: the cost of a gradient, compared with the function and two tapes."""

from __future__ import annotations

import argparse
import dataclasses

from srcdiff.cli import given
from srcdiff.cli.answer import Answer, working


def options(parser: argparse.ArgumentParser) -> None:
    given.add_function(parser)
    given.add_arguments(parser, values=True)
    given.add_wrt(parser)
    given.add_seconds(parser, 4.0)


def run(chosen: argparse.Namespace) -> Answer:
    """The function of a file, measured at the arguments of the example."""
    import srcdiff

    asked = given.read(chosen)
    wrt = tuple(chosen.wrt or (0,))
    with working("measuring"), given.running(asked):
        measured = srcdiff.benchmark(asked.function, *asked.arguments, wrt=wrt, seconds=chosen.seconds)
    rows = [
        {**dataclasses.asdict(row), "ratio": measured.ratio(row), "kept": measured.kept(row)} for row in measured.rows
    ]
    data = {"function": measured.function, "wrt": measured.wrt, "noisy": measured.noisy, "rows": rows}
    return Answer(f"{asked.notes}{measured}", {**data, "assumed": asked.assumed})
