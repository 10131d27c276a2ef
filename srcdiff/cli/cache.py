"""`srcdiff cache`: the location and size of the cache, and its removal."""

from __future__ import annotations

import argparse

from srcdiff.cli.answer import Answer


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="delete all cached files")


def run(chosen: argparse.Namespace) -> Answer:
    """The location and size of the cache, after clearing it with `--clear`."""
    from srcdiff.caching import store

    if chosen.clear:
        store.clear()
    files, size = store.size()
    place, usable = store.directory(), store.is_usable()
    text = f"{place}: {files} files, {size / 1e6:.1f} MB"
    if not usable:
        text += "\nThe cache is not used: it must be a directory that you own and that nobody else can write to."
    return Answer(text, {"directory": place and str(place), "files": files, "bytes": size, "usable": usable})
