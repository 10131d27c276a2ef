"""`srcdiff show`: a function and its derivative side by side, in the terminal or as an HTML page."""

from __future__ import annotations

import argparse

from srcdiff.cli import given
from srcdiff.cli.answer import Answer, CommandError, working


def options(parser: argparse.ArgumentParser) -> None:
    given.add_function(parser)
    given.add_arguments(parser)
    given.add_wrt(parser)
    given.add_mode(parser)
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write an HTML page to this file; the page highlights the lines that belong to the line under the mouse",
    )


def run(chosen: argparse.Namespace) -> Answer:
    """Both sources; with `--json`, the generated one, and the original lines of each of its lines."""
    import srcdiff

    if chosen.mode == "primal":
        raise CommandError("--mode primal is the function itself: there is no derivative to show")
    asked = given.read(chosen)
    derivative = given.derivative(chosen, asked.function)
    with working("differentiating"):
        sides = srcdiff.show(derivative, *asked.described(), **asked.keywords)
    if chosen.html is not None:
        try:
            sides.save(chosen.html)
        except OSError as error:
            raise CommandError(f"{chosen.html} cannot be written: {error.strerror}") from None
    lines = ["".join(text for _, text in line) for line in sides.generated]
    places = [[(sides.pieces[piece].file, number) for piece, number in link] for link in sides.links]
    data = {
        "function": sides.function,
        "derivative": sides.derivative,
        "source": "\n".join([*lines, ""]),
        "lines": [{"from": [{"file": f, "line": n} for f, n in place]} for place in places],
        "html": chosen.html,
        "assumed": asked.assumed,
    }
    return Answer(f"{asked.notes}{sides if chosen.html is None else f'written: {chosen.html}'}", data)
