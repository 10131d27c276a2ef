"""Functions with the decorator `functools.lru_cache` or `functools.cache`: each call computes the result again."""

from __future__ import annotations

import ast
import functools
from typing import Any

from srcdiff.frontend.domain.abstract_values import Abstract, Static
from srcdiff.frontend.domain.lattice import arrays_in, handles, objects_in
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.shapes import ANYTHING
from srcdiff.frontend.domain.state import DRAWS
from srcdiff.frontend.interpreter.aliases import may_share
from srcdiff.frontend.interpreter.evaluation import call_with
from srcdiff.frontend.interpreter.instances import written_around
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.tables import handles_kind
from srcdiff.frontend.source.guards import Attribute, Constant


@handles_kind(functools._lru_cache_wrapper)
def call_cached(
    reader: Reader, function: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
) -> Abstract | None:
    """A call of the function without its cache, which gives the same if the function only computes.

    All calls with the same arguments return the same array, so writing to it is refused. Recursive functions are
    refused: without the cache, they may take exponentially long.
    """
    wrapped = function.__wrapped__
    if not hasattr(wrapped, "__code__") or wrapped.__name__ in wrapped.__code__.co_names:
        return None
    reader.guard(Attribute(Constant(function), "__wrapped__"), wrapped)
    before, draws = reader.state.cells, reader.cells.get(DRAWS)
    result = forced(reader, call_with(reader, Static(wrapped), args, keywords, node))
    what = None
    if reader.cells.get(DRAWS) is not draws:
        what = "draws random numbers"
    elif any(True for _ in written_around(reader, before)):
        what = "assigns variables or attributes around it"
    elif handles(result) or objects_in(result):
        what = "returns a list or an object, which all its callers share"
    if what is not None:
        message = f"`{wrapped.__name__}` is cached by `lru_cache` and {what}, which is not supported"
        reader.refuse("SD302", node, message, help_="remove the decorator `lru_cache`")
    for array in arrays_in(result):
        may_share(reader, array, frozenset((ANYTHING,)), None)
    return result
