"""The arguments to differentiate with respect to, by their names and positions, and which values hold floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from srcdiff.diagnostics.options import Wrt, each_of
from srcdiff.signature.trees import VALUES


def chosen_names(
    wrt: Wrt, names: tuple[str, ...], of: str, stars: Mapping[str, str] | None = None, variables: Sequence[str] = ()
) -> tuple[str, ...]:
    """The names of the arguments (or local variables) in `wrt`; `stars` are the variadic parameters."""
    places = range(len(names)) if not stars else range(min(map(names.index, stars)))
    found = []
    for one in each_of(wrt):
        if isinstance(one, str):
            if one not in names and one not in variables:
                raise ValueError(f"`{of}` has no argument `{one}`; its arguments are {', '.join(names)}")
            found.append(one)
        else:
            if stars and one not in places:
                name, star = next(iter(stars.items()))
                message = (
                    f"`{of}` takes `{star}`, so position {one} is not a single parameter: use the name of a parameter"
                )
                raise ValueError(f"{message}, use {name!r} for all of `{star}`, or write a lambda that calls `{of}`")
            if not -len(names) <= one < len(names):
                raise ValueError(f"`{of}` has {len(names)} arguments, so there is no position {one}")
            found.append(names[one])
    if len(set(found)) != len(found):
        raise ValueError("`wrt` names an argument twice")
    return tuple(found)


def has_floats(value: Any) -> bool:
    """Whether the value is or contains a float or an array of floats."""
    return any(map(is_of_floats, VALUES.leaves(value)))


def is_of_floats(leaf: Any) -> bool:
    """Whether the value is a float or an array of floats."""
    return isinstance(leaf, float | complex | np.inexact) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc")
