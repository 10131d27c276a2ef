"""A function together with the derivative that the user declares for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from srcdiff.source.capture import plain_function


class CustomRule:
    """A function together with its adjoint: `adjoint(*arguments, out, out_bar)` gives one adjoint per argument."""

    def __init__(self, function: Callable[..., Any], adjoint: Callable[..., Any]) -> None:
        for given in (function, adjoint):
            if plain_function(given) is None:
                raise TypeError(f"{given!r} is not a Python function")
        self.function, self.adjoint = function, adjoint
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def __srcdiff_rule__(self) -> CustomRule:
        return self
