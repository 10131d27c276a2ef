"""The options that commands share: FILE:FUNCTION, example arguments or types, and the kind of derivative."""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import inspect
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from srcdiff.cli.answer import CommandError
from srcdiff.diagnostics.options import DERIVATIVE, SECONDS

_LENGTH = 4  # of every axis of an example array: the shapes match, and no axis is broadcast


# -- options ---------------------------------------------------------------------------------------------------------


def add_function(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("function", metavar="FILE:FUNCTION", help="a Python file and the name of a function in it")


def add_arguments(parser: argparse.ArgumentParser, *, values: bool = False) -> None:
    """`--example` and `--types`; without either, types are guessed from annotations, defaults and the code."""
    guess = "prints them, and takes random numbers" if values else "and prints them"
    parser.add_argument(
        "--example",
        metavar="ARGUMENTS",
        help='arguments of a call, as Python: "np.ones(100), rate=0.5". It may use np and the names of the file',
    )
    parser.add_argument(
        "--types",
        metavar="TYPES",
        help='the types of its arguments: "float64[:], float64". Without types and example, srcdiff guesses types from '
        f"annotations, defaults and uses, {guess}",
    )


def add_wrt(parser: argparse.ArgumentParser, default: str = "the first") -> None:
    parser.add_argument(
        "--wrt", nargs="+", metavar="NAME", help=f"the arguments to differentiate with respect to (default: {default})"
    )


def add_mode(parser: argparse.ArgumentParser) -> None:
    help_ = "which derivative of the function (default: grad)"
    parser.add_argument("--mode", choices=DERIVATIVE.values, help=help_)


def add_seconds(parser: argparse.ArgumentParser, default: float) -> None:
    parser.add_argument(
        "--seconds", type=_seconds, default=default, help="how long to measure times (default: %(default)s seconds)"
    )


def _seconds(text: str) -> float:
    try:
        found: float = SECONDS.checked("--seconds", float(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"it is {SECONDS.allowed}, not {text!r}") from None
    return found


def add_backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend", choices=("numba", "python"), default="numba", help="what runs the code (default: %(default)s)"
    )


# -- their values ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Given:
    """A function of a file, and arguments to differentiate it for."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    is_example: bool
    """Whether the arguments are the user's example; otherwise they are example values of types."""
    assumed: dict[str, str]
    """For each argument without an example or a type: the guessed type, and the reason for it."""

    def described(self) -> tuple[Any, ...]:
        """The arguments of the example; without one, their types."""
        from srcdiff.signature.keys import describe_argument

        return self.arguments if self.is_example else tuple(describe_argument(a, "", None) for a in self.arguments)

    @property
    def notes(self) -> str:
        """The guessed types, as lines to print before the answer."""
        return "".join(f"assumed {name}: {what}\n" for name, what in self.assumed.items())


def read(chosen: argparse.Namespace) -> Given:
    """The function and the arguments that the options name."""
    function, names = function_in(chosen.function)
    if chosen.example is not None and chosen.types is not None:
        raise CommandError("--example and --types cannot be combined: use one of them")
    signature = inspect.signature(_user_function(function))
    if chosen.example is not None:
        positional, keywords = _example(chosen.example, names)
        bound = _bound(signature, positional, keywords, "--example", chosen.function)
        return Given(function, bound.args, bound.kwargs, True, {})
    types = [] if chosen.types is None else types_in(chosen.types)
    bound = _bound(signature, types, {}, "--types", chosen.function, partial=chosen.types is None)
    given = {name: example_of(value) for name, value in bound.arguments.items()}
    assumed: dict[str, str] = {}
    for name, guess in _guesses(function, signature).items():
        if name not in given:
            given[name] = example_of(guess.value)
            if guess.why != "default":
                assumed[name] = f"{_type_text(given[name])}, from {guess.why}"
    arguments = signature.bind_partial()
    arguments.arguments.update({name: given[name] for name in signature.parameters})
    return Given(function, arguments.args, arguments.kwargs, False, assumed)


@contextlib.contextmanager
def running(asked: Given) -> Iterator[None]:
    """Report exceptions of the function itself as errors of the command."""
    from srcdiff.diagnostics import DifferentiationError, InternalError

    if asked.keywords:
        raise CommandError(f"keyword-only arguments are not supported by this command: {', '.join(asked.keywords)}")
    try:
        yield
    except (DifferentiationError, InternalError, AssertionError):
        raise
    except Exception as error:
        where = "at the example" if asked.is_example else "at example values of the types; pass an --example"
        raise CommandError(f"{type(error).__name__}: {error}, {where}") from error


def derivative(chosen: argparse.Namespace, function: Callable[..., Any], **options: Any) -> Any:
    """The derivative that `--mode` and `--wrt` name, or the object itself if it is already a derivative."""
    from srcdiff.api.exporting import derivative_by_name

    is_own = type(function).__module__.startswith("srcdiff.")
    if is_own and (not hasattr(function, "__srcdiff_function__") or hasattr(function, "__srcdiff_inside__")):
        if chosen.wrt or chosen.mode:
            what = "--wrt" if chosen.wrt else "--mode"
            raise CommandError(f"{chosen.function} is already a derivative: remove {what}")
        return function
    wrt: Any = 0 if not chosen.wrt else chosen.wrt[0] if len(chosen.wrt) == 1 else tuple(chosen.wrt)
    try:
        return derivative_by_name(function, chosen.mode or "grad", wrt, **options)
    except ValueError as error:
        raise CommandError(str(error)) from None


def function_in(place: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function that `FILE:FUNCTION` names, and all names of its file, with `np` among them."""
    import importlib.util
    import sys
    from pathlib import Path

    import numpy as np

    file, colon, name = place.rpartition(":")
    path = Path(file if colon else name)
    if not path.is_file():
        raise CommandError(f"there is no file {str(path)!r}; write FILE:FUNCTION, like model.py:loss")
    module_name = path.stem if path.stem not in sys.modules else f"{path.stem} of srcdiff"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.parent.resolve()))  # as for a script: modules in its folder can be imported
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise CommandError(f"{path} cannot be imported: {_said_with_line(error, path.name)}") from error
    names = {"np": np, **vars(module)}
    callables = [n for n, x in vars(module).items() if getattr(x, "__module__", None) == module_name and callable(x)]
    function = vars(module).get(name)
    if not colon or not callable(function):
        near = difflib.get_close_matches(name, callables, 1)
        meant = f"; did you mean `{near[0]}`?" if near else f"; it has {', '.join(callables)}" if callables else ""
        raise CommandError(f"{path} has no function {name!r}{meant}" if colon else f"{place}: which function{meant}")
    return function, names


def _said_with_line(error: BaseException, file: str) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(file)]
    text = f"{type(error).__name__}: {error}"
    return f"{text} (line {lines[-1]})" if lines else text


def _user_function(function: Any) -> Any:
    """The function of a derivative; any other function itself."""
    return function.__wrapped__ if type(function).__module__.startswith("srcdiff.") else function


def _example(text: str, names: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, written as between its parentheses."""

    def given(*arguments: Any, **keywords: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return arguments, keywords

    try:
        found: tuple[tuple[Any, ...], dict[str, Any]] = eval(f"given({text}\n)", {**names, "given": given})
    except Exception as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise CommandError(f"--example {text!r}: {type(error).__name__}: {reason}") from error
    return found


def _bound(
    signature: inspect.Signature,
    positional: Any,
    keywords: dict[str, Any],
    option: str,
    place: str,
    *,
    partial: bool = False,
) -> inspect.BoundArguments:
    try:
        bound = (signature.bind_partial if partial else signature.bind)(*positional, **keywords)
    except TypeError as error:
        name = place.rpartition(":")[2]
        raise CommandError(f"{option} does not match {name}{signature}: {error}") from None
    if not partial:
        bound.apply_defaults()
    return bound


def _guesses(function: Callable[..., Any], signature: inspect.Signature) -> dict[str, Any]:
    from srcdiff.diagnostics import DifferentiationError, Refusal
    from srcdiff.frontend.source.capture import capture
    from srcdiff.frontend.source.guess import guesses

    try:
        return guesses(capture(_user_function(function)), signature)
    except Refusal as refusal:
        assert refusal.problem is not None
        raise DifferentiationError([refusal.problem]) from None


# -- types -----------------------------------------------------------------------------------------------------------


def types_in(text: str) -> list[Any]:
    """Descriptions of types from their text.

    >>> from srcdiff.signature.descriptions import type_text
    >>> [type_text(t) for t in types_in("float64[:], float, (int64, float32[:, :])")]
    ['float64[:]', 'float64', '(int64, float32[:, :])']
    """
    from srcdiff.frontend.source.guess import described_type

    try:
        tree = ast.parse(f"({text.strip()},)" if text.strip() else "()", mode="eval").body
    except SyntaxError as error:
        raise CommandError(f'--types {text!r}: {error.msg}; write them like "float64[:], float64"') from None
    assert isinstance(tree, ast.Tuple)
    found = [described_type(node) for node in tree.elts]
    unknown = [ast.unparse(node) for node, d in zip(tree.elts, found, strict=True) if d is None]
    if unknown:
        raise CommandError(
            f"--types: {unknown[0]!r} is not a known type; use NumPy types such as float64, int64 and bool, with a "
            'colon for each axis of an array, "float64[:, :]", and tuples of these'
        )
    return found


def example_of(value: Any) -> Any:
    """An example value of a described type; other values are returned as they are."""
    import numpy as np

    from srcdiff.ir.types import Array
    from srcdiff.signature.descriptions import Description

    if not isinstance(value, Description):
        return value
    if value.kind == "tuple":
        return value.layout.made([example_of(part) for part in value.parts])
    kind = value.detail
    dtype = np.dtype(kind.dtype)
    shape = (_LENGTH,) * kind.rank if isinstance(kind, Array) else ()
    numbers = np.random.default_rng(0).uniform(0.5, 1.5, shape) if dtype.kind == "f" else np.ones(shape)
    array = np.asarray(numbers, dtype=dtype)
    if shape:
        return array
    return dtype.type(array) if dtype.name == "float32" else array.item()


def _type_text(value: Any) -> str:
    from srcdiff.signature.descriptions import type_text
    from srcdiff.signature.keys import describe_argument

    return type_text(describe_argument(value, "", None))
