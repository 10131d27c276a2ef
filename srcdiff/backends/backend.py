"""What a backend is: what is true of it, which options it takes, how text for it is written, and how it is loaded.

Each folder beside this file exports one `BACKEND`, and `registry.py` lists them. Nobody compares names of backends: the
pipeline, the driver and the modes ask for traits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from srcdiff.diagnostics.options import COMPILING, Taken
from srcdiff.emit.spelling import NUMPY, Spelling

if TYPE_CHECKING:
    from srcdiff.emit.module import Module
    from srcdiff.passes.compilation import Request


class Trait(Enum):
    """What is true of some backends, and not of others."""

    KERNELS = "it launches kernels: a batch is one launch, and there is code for GPUs to look at"
    COMPILED = "Numba compiles the function: compiled code can call it, and threads can run it at the same time"
    KEPT_ON_DISK = "what is generated for functions in files is kept for the next process"
    NAMES_AT_RUN_TIME = "a call looks up the names in the text, so that they have to mean what they meant"


@dataclass(frozen=True, slots=True)
class Generated:
    """A text, with what a backend may want to know about it to make a function of it."""

    module: Module
    request: Request
    passed: tuple[str, ...]
    """The names of what the function takes first: the arguments that exist at run time."""
    is_kept: bool
    """Whether machine code is kept on disk for the next process."""


COMMON = Taken(COMPILING)
"""The options of every backend, with every value."""
Load = Callable[[Generated, Mapping[str, Any]], Callable[..., Any]]


def _nothing_required() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Backend:
    """Makes functions that run of generated text."""

    name: str
    load: Load
    """The function of the text, for options that have been checked."""
    traits: frozenset[Trait] = frozenset()
    passes: frozenset[str] = frozenset()
    """The passes of `pipeline.py` that run only for the backends that name them."""
    options: Taken = COMMON
    spelling: Spelling = NUMPY
    require_installed: Callable[[], None] = _nothing_required
    """Raises if packages that it needs are not there, and says which to install."""
