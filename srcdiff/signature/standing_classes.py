"""Classes of ours that stand for classes of other packages: objects of these are structures, with fields of ours.

A class that stands for another has static methods: `__srcdiff_fits__` says whether it stands for an object, or which
class does. `__srcdiff_parts__` makes the fields of a container, which has no such attributes. `__srcdiff_made__` makes
the object from the fields, and `__srcdiff_gradient__` the gradient of such an object; without these, both are instances
of our class. The package is not imported for it.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

_NAMES: dict[str, dict[str, type]] = {}
"""By module and name."""


def stands_for(module: str, name: str, kind: type) -> None:
    """Let a dataclass of ours stand for a class of a package."""
    _NAMES.setdefault(module, {})[name] = kind
    standing.cache_clear()


@functools.lru_cache(maxsize=1024)
def standing(kind: type) -> type | None:
    """The class of ours that stands for a class, if it is one of another package."""
    for module, names in _NAMES.items():
        if module.partition(".")[0] == kind.__module__.partition(".")[0] and kind.__name__ in names:
            return names[kind.__name__] if getattr(sys.modules.get(module), kind.__name__, None) is kind else None
    return None


def fields_of(value: Any) -> tuple[type, tuple[str, ...]] | None:
    """The class that stands for that of an object, and the names of its fields; None for other objects."""
    plain: Any = type(value)
    kind: Any = standing(plain)
    fits = kind is not None and kind.__srcdiff_fits__(value)
    if not fits:
        return None
    kind = fits if isinstance(fits, type) else kind
    return kind, tuple(kind.__dataclass_fields__)
