"""`srcdiff cache`: where compiled gradients are kept, how much there is, and away with it."""

from __future__ import annotations

import argparse

from srcdiff.cli.answer import Answer


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="throw them away")


def run(chosen: argparse.Namespace) -> Answer:
    """Where the cache is and how much it holds, after it has been cleared if that is wanted."""
    from srcdiff.caching import store

    if chosen.clear:
        store.clear()
    files, size = store.size()
    place, usable = store.directory(), store.is_usable()
    text = f"{place}: {files} files, {size / 1e6:.1f} MB"
    if not usable:
        text += (
            "\nNothing is kept there: it has to be a directory that you can write, that is yours, and nobody else's."
        )
    return Answer(text, {"directory": place and str(place), "files": files, "bytes": size, "usable": usable})
