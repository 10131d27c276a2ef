"""`collections`: deques, ordered dictionaries, and dictionaries that make the values of missing keys."""

from __future__ import annotations

import ast
import collections

from srcdiff.frontend.domain.abstract_values import Abstract, Object, Static, Tuple, is_none
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import IsWritten
from srcdiff.frontend.handlers.builtin_functions import call_dict, call_list
from srcdiff.frontend.interpreter.dictionaries import KeysAtRunTime
from srcdiff.frontend.interpreter.evaluation import call_with
from srcdiff.frontend.interpreter.instances import new_object, read_attribute
from srcdiff.frontend.interpreter.list_storage import new_list
from srcdiff.frontend.interpreter.made_dictionaries import is_table
from srcdiff.frontend.interpreter.tables import handles
from srcdiff.library.deques import Deque

handles(collections.OrderedDict, consumes=True)(call_dict)


@handles(collections.deque, consumes=True)
def call_deque(
    reader: Reader, node: ast.AST, iterable: Abstract = Tuple(()), maxlen: Abstract = Static(None)
) -> Abstract:
    if Deque not in reader.stateful:
        raise IsWritten(Deque)
    new = new_object(reader, Deque, {"elements": new_list(reader, ()), "maxlen": maxlen}, node)
    if is_none(maxlen):
        reader.cells[new.number, "elements"] = call_list(reader, node, iterable)
    else:
        call_with(reader, read_attribute(reader, new, "extend", node), [iterable], {}, node)
    return new


@handles(collections.defaultdict, consumes=True)
def call_defaultdict(
    reader: Reader, node: ast.AST, factory: Abstract = Static(None), /, *of: Abstract, **items: Abstract
) -> Abstract:
    """The dictionary is an object from the start, because reading a missing key changes it."""
    if node not in reader.stateful and KeysAtRunTime(node) not in reader.stateful:
        raise IsWritten(node)
    made = call_dict(reader, node, *of, **items)
    assert isinstance(made, Object)
    if is_none(factory):
        return made
    if is_table(made):
        reader.cells[made.number, "factory"] = factory
    else:
        reader.factories[made.number] = factory
    return made
