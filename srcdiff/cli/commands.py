"""The commands, one module each, and the parser of the command line."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from srcdiff import __version__
from srcdiff.cli import bench, cache, check_command, demo, explain, export_command, rules, show
from srcdiff.cli.answer import MISUSED, NO, Answer, CommandError
from srcdiff.diagnostics import DifferentiationError


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name, its help text, its options, and the function that runs it."""

    name: str
    help: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Answer]


COMMANDS = (
    Command(
        "demo",
        "differentiate a small simulation, show the generated code, check it and time it",
        demo.options,
        demo.run,
    ),
    Command(
        "show",
        "show your function and its derivative side by side, in the terminal or as an HTML page",
        show.options,
        show.run,
    ),
    Command(
        "explain",
        "show which inputs of your function affect its result, and what its gradient stores",
        explain.options,
        explain.run,
    ),
    Command(
        "check",
        "compare the derivatives of your function with finite differences",
        check_command.options,
        check_command.run,
    ),
    Command(
        "export",
        "write a derivative of your function to a file that does not need srcdiff",
        export_command.options,
        export_command.run,
    ),
    Command(
        "bench",
        "time the gradient of your function, the function itself, and two tapes",
        bench.options,
        bench.run,
    ),
    Command("rules", "list all supported functions, methods and rules", rules.options, rules.run),
    Command(
        "cache", "show the location and size of the cache of compiled gradients, or clear it", cache.options, cache.run
    ),
)


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest command."""

    def error(self, message: str) -> NoReturn:
        given = message.partition("invalid choice: '")[2].partition("'")[0]
        near = difflib.get_close_matches(given, [c.name for c in COMMANDS], 1) if "argument command" in message else []
        super().error(f"{message}; did you mean `{self.prog} {near[0]}`?" if near else message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or with those of the process, and return its exit status."""
    parser = Parser(
        prog="srcdiff",
        description="Gradients of ordinary Python functions, as Python source, compiled by Numba.",
        epilog="Exit status: 0 for success, 1 if a check fails or the function is refused, 2 for wrong usage.",
    )
    parser.add_argument("--version", action="version", version=f"srcdiff {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=Parser)
    parsers = {}
    for command in COMMANDS:
        parsers[command.name] = one = commands.add_parser(
            command.name, help=command.help, description=f"{command.help[0].upper()}{command.help[1:]}."
        )
        one.add_argument("--json", action="store_true", help="print the answer as JSON")
        command.options(one)
        one.set_defaults(run=command.run)
    chosen = parser.parse_args(arguments)
    try:
        answer: Answer = chosen.run(chosen)
    except CommandError as error:
        answer = Answer(f"srcdiff {chosen.command}: {error}", {"error": str(error)}, MISUSED)
    except DifferentiationError as error:
        answer = Answer(str(error).strip(), {"error": str(error).strip(), "problems": _problems(error)}, NO)
    try:
        _print(answer, as_json=chosen.json)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return answer.status


def _print(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(answer.data, indent=2))
        return
    print(answer.notes, end="", file=sys.stderr)
    if answer.text:
        print(answer.text, file=sys.stderr if "error" in answer.data else sys.stdout)


def _problems(error: DifferentiationError) -> list[dict[str, Any]]:
    return [
        {
            "code": problem.code,
            "message": problem.message,
            "file": problem.span and problem.span.file,
            "line": problem.span and problem.span.line,
            "column": problem.span and problem.span.column + 1,
            "help": problem.help,
        }
        for problem in error.problems
    ]
