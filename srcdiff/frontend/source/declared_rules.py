"""A function together with the derivative that the user declares for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from srcdiff.frontend.source.capture import findable, plain_function, standing_for


class CustomRule:
    """A function together with its derivative: an adjoint, a tangent, or both.

    `adjoint(*arguments, out, out_bar)` gives one adjoint per argument, `tangent(*arguments, out, *argument_dots)` the
    tangent of the result. The one that is not there is the transpose of the other.
    """

    def __init__(
        self, function: Callable[..., Any], adjoint: Callable[..., Any] | None, tangent: Callable[..., Any] | None
    ) -> None:
        for given in (function, adjoint, tangent):
            if given is not None and plain_function(given) is None:
                raise TypeError(f"{given!r} is not a Python function")
        if adjoint is None and tangent is None:
            raise TypeError("a custom rule needs an adjoint or a tangent")
        self.function, self.adjoint, self.tangent = function, adjoint, tangent
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __reduce__(self) -> Any:
        return _declared, (findable(self.function), findable(self.adjoint), findable(self.tangent))

    @property
    def __srcdiff_function__(self) -> Callable[..., Any]:
        return self.function

    @property
    def __srcdiff_rule__(self) -> CustomRule:
        return self


def _declared(function: Any, adjoint: Any, tangent: Any) -> CustomRule:
    """The rule again: that which stands in the place of its function, if there is one."""
    there = standing_for(function, CustomRule)
    return CustomRule(function, adjoint, tangent) if there is None else there
