"""`srcdiff export`: a derivative as a file that needs no srcdiff."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from srcdiff.cli import given
from srcdiff.cli.answer import Answer, CommandError, working


def options(parser: argparse.ArgumentParser) -> None:
    given.add_function(parser)
    given.add_arguments(parser)
    given.add_wrt(parser)
    given.add_mode(parser)
    parser.add_argument("--plain", action="store_true", help="code that needs NumPy alone, and no Numba")
    parser.add_argument("--c", metavar="FOLDER", help="write a shared library with a header there, for C and others")
    parser.add_argument("--name", help="the name of the function in that library (default: that of your function)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: it is printed)")


def run(chosen: argparse.Namespace) -> Answer:
    """Write the file, or print it."""
    import srcdiff

    asked = given.read(chosen)
    derivative = given.derivative(chosen, asked.function)
    if chosen.c is not None:
        return _library(chosen, asked, derivative)
    with working("writing the derivative"):
        try:
            text = srcdiff.export(derivative, None, *asked.arguments, plain=chosen.plain, **asked.keywords)
        except TypeError as error:
            raise CommandError(f"{chosen.function}: {error}") from None
    data = {"file": chosen.output, "assumed": asked.assumed, "text": text}
    if chosen.output is None:
        return Answer(text.rstrip("\n"), data, notes=asked.notes)
    try:
        Path(chosen.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{chosen.output} cannot be written: {error.strerror}") from None
    return Answer(f"{asked.notes}{chosen.output}: {len(text.splitlines())} lines", data)


def _library(chosen: argparse.Namespace, asked: given.Given, derivative: Any) -> Answer:
    """Write a shared library for C. The shapes are those of the example."""
    if chosen.plain or chosen.output is not None:
        raise CommandError("--c writes a folder: it goes with neither --plain nor --output")
    if not asked.is_example:
        raise CommandError("--c needs an --example of all arguments: their shapes, and the data, are compiled in")
    with working("compiling the library"):
        try:
            function = derivative.cfunc(*asked.arguments, **asked.keywords)
            library = function.export(chosen.c, chosen.name)
        except (TypeError, ValueError, OSError) as error:
            raise CommandError(f"{chosen.function}: {error}") from None
    header = library.with_name(f"{library.name.removeprefix('lib').removesuffix('.so')}.h")
    data = {"library": str(library), "header": str(header), "parameters": function.flat.names}
    return Answer(f"{asked.notes}{library}\n{header}\n{function.n} parameters: {', '.join(function.flat.names)}", data)
