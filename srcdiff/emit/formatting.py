"""Formatted text for exceptions and `print`. Generated code calls these functions, and Python does the formatting."""

from __future__ import annotations

import functools
import importlib
import logging
import string
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_MADE: dict[Any, type[BaseException]] = {}
_PICKLED = "formatted:"


def formatted(exception: type[BaseException]) -> type[BaseException]:
    """A class that takes a template and values, and creates the exception with the formatted text.

    Compiled code cannot format a float, but it can call an exception class with one.

    >>> formatted(ValueError)("x is {:.3f}", 1.5)
    ValueError('x is 1.500')
    >>> formatted(ValueError)(("x is {}", None), 1.5, 3)
    ValueError('x is 1.5', 3)
    """

    def make(cls: type, layout: str | tuple[str | None, ...], *values: Any) -> BaseException:
        left = (_plain(v) for v in values)
        return exception(*(_filled(p, left) for p in ((layout,) if isinstance(layout, str) else layout)))

    if exception not in _MADE:
        name = f"{_PICKLED}{exception.__module__}:{exception.__qualname__}".replace(".", "/")
        contents = {"__new__": make, "__module__": __name__, "__qualname__": name}
        _MADE[exception] = type(f"formatted_{exception.__name__}", (exception,), contents)
    return _MADE[exception]


def __getattr__(name: str) -> Any:
    """The class of this name. When compiled code raises it, Numba unpickles it, and pickle looks it up here."""
    if not name.startswith(_PICKLED):
        raise AttributeError(name)
    module, path = name.removeprefix(_PICKLED).replace("/", ".").split(":")
    found: Any = importlib.import_module(module)
    for step in path.split("."):
        found = getattr(found, step)
    return formatted(found)


def is_formatted(kind: type) -> bool:
    """Whether `formatted` made the class."""
    return _MADE.get(kind.__base__) is kind


def _filled(template: str | None, values: Iterator[Any]) -> Any:
    if template is None:
        return next(values)
    return template.format(*(next(values) for _ in range(fields(template))))


def fields(template: str) -> int:
    """How many values a template takes."""
    count = 0
    for _, name, spec, _ in string.Formatter().parse(template):
        count += 0 if name is None else 1 + fields(spec or "")
    return count


def _plain(value: Any) -> Any:
    """The value as a Python number, because NumPy's numbers print in another way."""
    return value.item() if isinstance(value, np.generic) else value


def print_text(template: str, *values: Any) -> None:
    print(template.format(*map(_plain, values)), end="")


def print_flushed(template: str, *values: Any) -> None:
    print(template.format(*map(_plain, values)), end="", flush=True)


def _print_text(template: str, values: tuple[Any, ...]) -> None:
    print_text(template, *values)


def _print_flushed(template: str, values: tuple[Any, ...]) -> None:
    print_flushed(template, *values)


def log_text(template: str, *values: Any) -> None:
    """A text for a logger; the first line has the level, and the name of the logger."""
    head, _, text = template.format(*map(_plain, values)).partition("\n")
    level, _, name = head.partition(" ")
    logging.getLogger(name).log(int(level), "%s", text)


def warn_text(template: str, *values: Any) -> None:
    """A warning; the first line has the module and the name of its class."""
    head, _, text = template.format(*map(_plain, values)).partition("\n")
    module, _, path = head.partition(" ")
    kind: Any = functools.reduce(getattr, path.split("."), importlib.import_module(module))
    warnings.warn(text, kind, stacklevel=2)


def _log_text(template: str, values: tuple[Any, ...]) -> None:
    log_text(template, *values)


def _warn_text(template: str, values: tuple[Any, ...]) -> None:
    warn_text(template, *values)


PRINTERS: dict[Callable[..., None], Callable[..., None]] = {
    print_text: _print_text,
    print_flushed: _print_flushed,
    log_text: _log_text,
    warn_text: _warn_text,
}
"""For each printing function, the variant that compiled code calls. It takes the values as a tuple."""
