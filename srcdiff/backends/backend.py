"""The class of backends: their traits, options, spelling, and how they load generated code.

Each folder beside this file exports one `BACKEND`, and `registry.py` lists them. Other code does not compare names of
backends: the pipeline, the driver and the API test traits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from srcdiff.diagnostics.options import COMPILING, Taken
from srcdiff.emit.spelling import NUMPY, Spelling
from srcdiff.quick_dataclasses import dataclass

if TYPE_CHECKING:
    from srcdiff.emit.module import Module
    from srcdiff.passes.compilation import Request


class Trait(Enum):
    """Properties that some backends have."""

    KERNELS = "it launches kernels: a batch is one launch, and there is GPU code to inspect"
    COMPILED = "Numba compiles the function: compiled code can call it, and threads can run it at the same time"
    KEPT_ON_DISK = "the code generated for functions in files is cached for later processes"
    NAMES_AT_RUN_TIME = "calls look up the names in the text, so these must refer to the original objects"


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated text, with the facts that a backend needs to make a function from it."""

    module: Module
    request: Request
    passed: tuple[str, ...]
    """The names of the first parameters: the arguments that exist at run time."""
    is_kept: bool
    """Whether machine code is kept on disk for the next process."""


COMMON = Taken(COMPILING)
"""The options of every backend, with every value."""
Load = Callable[[Generated, Mapping[str, Any]], Callable[..., Any]]


def _nothing_required() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend: makes functions from generated text."""

    name: str
    load: Load
    """Returns the function of the text, for checked options."""
    traits: frozenset[Trait] = frozenset()
    passes: frozenset[str] = frozenset()
    """The passes of `pipeline.py` that run only for the backends that name them."""
    options: Taken = COMMON
    spelling: Spelling = NUMPY
    require_installed: Callable[[], None] = _nothing_required
    """Raises if a required package is missing, and names it."""
