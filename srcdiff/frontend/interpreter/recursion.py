"""Recursive functions: each becomes a separate function of the program, one for each set of argument types.

Variables that a nested function reads from enclosing functions become further arguments, and those that it assigns
there (`nonlocal`) further results:

    def outer(x):                               def f(n, x):
        def f(n):                                   return 1.0 if n == 0 else x * f(n - 1, x)
            return 1.0 if n == 0 else x * f(n - 1)
        return f(3)                             def outer(x):
                                                    return f(3, x)

Attributes of objects that it can reach are passed and returned like such variables. The same is done for the lists that
it changes: it works on copies, which then replace the originals.

    def visit(k, out):                          def visit(k, out, length):
        if k > 0:                                   out = out.copy()
            visit(k - 1, out)                       if k > 0: out, length = visit(k - 1, out.copy(), length)
        out.append(k)                               ...
                                                    return out, length

Its results are new: arrays and lists that Python would return themselves are copied (see aliases.py).
"""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Hashable, Iterator
from typing import Any

from srcdiff.diagnostics import Problem, Refusal, Span
from srcdiff.frontend.callees import holds_array
from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Choice,
    Closure,
    Group,
    Items,
    List,
    Maybe,
    Object,
    Poison,
    Record,
    Static,
    Stored,
    Tuple,
    class_of,
    is_instance,
)
from srcdiff.frontend.domain.lattice import describe, handles, holds_lists, leaf_types, loosened, mentioned, objects_in
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import (
    Frame,
    IsWritten,
    Key,
    Location,
    NeverReturns,
    State,
    UnknownResult,
    is_variable,
    name_at,
)
from srcdiff.frontend.interpreter.aliases import all_origins, may_be_same, may_share
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_storage import as_stored, changing, contents_of_list, copied_row, is_row, perhaps
from srcdiff.frontend.interpreter.materialization import settle
from srcdiff.frontend.interpreter.recursive_results import (
    Outcome,
    Place,
    Unit,
    holds_arrays,
    outcome_of,
    storage_in,
    with_effects,
)
from srcdiff.frontend.interpreter.representation import fresh_values, leaves_of
from srcdiff.frontend.interpreter.statements import run_body
from srcdiff.frontend.source.scopes import free_names, nonlocal_names
from srcdiff.ir.nodes import Block, Call, Function, Value
from srcdiff.ir.primitives import BROUGHT_ALONG
from srcdiff.ir.types import Stack, is_inexact
from srcdiff.library.hash_tables import HashTable
from srcdiff.signature.descriptions import Description


def lists_in(x: Abstract, d: Description) -> list[List]:
    """The lists in a value of this description, in order."""
    if isinstance(x, Maybe):
        return lists_in(x.value, d.parts[0])
    if isinstance(x, Group):
        return [h for item, part in zip(x.items, d.parts, strict=True) for h in lists_in(item, part)]
    return [x] if isinstance(x, List) else []


_TAKEN = {"np", "math", *dir(builtins), *BROUGHT_ALONG}


_DERIVED = ("_adjoint", "_tangent", "_adjoint_inside", "_tangent_inside")


_MOST_READINGS = 12  # types only widen


def call_recursive(reader: Reader, identity: Any, frame: Frame, bound: dict[str, Abstract], node: ast.AST) -> Abstract:
    given = {name: lendable(reader, x) for name, x in bound.items()}
    descriptions = {name: description_passed(x) for name, x in given.items()}
    for name, d in descriptions.items():
        x = bound[name]
        if mentioned(d) and isinstance(x, Record) and is_instance(x) and class_of(x) not in reader.stateful:
            raise IsWritten(class_of(x))  # objects may have lists that change
        if leaf_types(d) is None or mentioned(d):
            message = f"`{name}` is {in_words(reader, bound[name])}, which a recursive function cannot take"
            reader.refuse("SD305", node, message)
    own_class_attributes(reader, frame, bound)
    around, objects = seen_around(reader, frame, bound, node)
    surroundings = {key: described_surrounding(reader, key, assigned) for key, assigned in around.items()}
    for d in (*descriptions.values(), *surroundings.values()):
        if any(isinstance(t, Stack) and is_inexact(t.element) for t in leaf_types(d) or ()):
            message = "a recursive function reads a list of float arrays, which is not supported"
            reader.refuse("SD305", node, message, help_="convert it to an array outside: `np.array(...)`")
    key = (identity, tuple(descriptions.items()), tuple(surroundings.items()))
    if key not in reader.units:
        reader.units[key] = Unit(unit_name(reader, frame.name))
        before, reader.problems = reader.problems, []
        try:
            with reader.within(unit_objects=frozenset(o.number for o in objects)):
                read_unit(reader, reader.units[key], frame, descriptions, surroundings, node)
            reader.units[key].problems = tuple(reader.problems)
        except (Refusal, NeverReturns):
            reader.units.pop(key, None)
            before += [p for p in reader.problems if p not in before]
            raise
        finally:
            reader.problems = before
    unit = reader.units[key]
    reader.problems += [p for p in unit.problems if p not in reader.problems]
    if unit.outcome is None:
        reader.unknown.add(unit.name)
        raise UnknownResult
    if reader.unknown - {unit.name} and unit not in reader.units_in_progress:
        del reader.units[key]  # it called a function that is not known yet, and will be read again with that function
    args: list[Value] = []
    for name, x in given.items():
        args += passed_leaves(reader, x, descriptions[name])
    for name_key, d in surroundings.items():
        if leaf_types(d):
            args += passed_leaves(reader, lendable(reader, reader.cells[name_key]), d)
    slots = reachable_lists(reader, bound, surroundings)
    may_change(reader, unit.outcome, args, slots, node)
    return take_results(reader, unit, frame.name, args, slots)


def passed_leaves(reader: Reader, x: Abstract, d: Description) -> list[Value]:
    return leaves_of(reader, x, d.parts[0] if d.kind == "owned" and isinstance(x, Items | Stored) else d)


def reachable_lists(
    reader: Reader, bound: dict[str, Abstract], surroundings: dict[Location, Description]
) -> dict[Place, List]:
    """The lists that a recursive function can reach, and how it reaches them."""
    found: dict[Place, List] = {name: x for name, x in bound.items() if isinstance(x, List)}
    known = {h: h for x in reader.cells.values() for h in handles(x)}
    for key, d in surroundings.items():
        x = reader.cells[key]
        if d.kind == "owned" and isinstance(x, List):
            found[key] = x
        elif key in known:
            found[key] = known[key]
    return found


def may_change(reader: Reader, outcome: Outcome, args: list[Value], slots: dict[Place, List], node: ast.AST) -> None:
    """Refuse a call that writes into an array, or changes a list, with unknown aliases."""
    for k in sorted(outcome.written):
        reader.may_write(args[k])
    for slot in (*outcome.lists, *(key for key in outcome.changed if key in slots)):
        others = set().union(*(perhaps(reader, h) for s, h in slots.items() if s != slot))
        if slots[slot] in others:
            message = "a recursive function changes a list that it can reach by two names"
            reader.refuse("SD305", node, message, help_="pass the list once")
        if slot in outcome.lists:
            changing(reader, slots[slot], node)
            require_alone(reader, slots[slot], node)


def require_alone(reader: Reader, handle: List, node: ast.AST) -> None:
    """Refuse a recursive function that changes a list that is an element of a list, or contains lists."""
    contents = contents_of_list(reader, handle)
    if is_row(reader, handle) or (isinstance(contents, Stored) and holds_lists(contents.element)):
        message = "a recursive function changes a list of lists, or a list in it, which is not supported"
        reader.refuse("SD305", node, message, help_="use a list of numbers, or an array")


def take_results(reader: Reader, unit: Unit, name: str, args: list[Value], slots: dict[Place, List]) -> Abstract:
    """Call the function, and store its results."""
    outcome = unit.outcome
    assert outcome is not None
    before = {slot: reader.cells[handle] for slot, handle in slots.items()}
    result, outs = fresh_values(reader, outcome.result, name)
    lists = lists_in(result, outcome.result)
    private: list[Value] = []
    for key, d in outcome.changed.items():
        reader.cells[key], values = fresh_values(reader, d, name_at(key))
        outs += values
        if isinstance(key, tuple) and key[0] in reader.objects and reader.objects[key[0]].kind is HashTable:
            private += values
        lists += lists_in(reader.cells[key], d)
    for slot, d in outcome.lists.items():
        reader.cells[slots[slot]], values = fresh_values(reader, d, "items")
        outs += values
    reader.add(Call(tuple(outs), unit.name, tuple(args), span=reader.span))
    note_arrays(reader, outcome, outs, args, private)
    note_lists(reader, outcome, lists, slots, before)
    return result


def note_arrays(reader: Reader, outcome: Outcome, outs: list[Value], args: list[Value], private: list[Value]) -> None:
    """Record that the returned arrays are new, and which arrays each of them may be in Python.

    A `private` one belongs to a hash table, which replaces it: nothing else can refer to the array that was passed.
    """
    arrays = [v for v, number in zip(outs, storage_in(outcome.gives), strict=True) if number < 0 and holds_array(v)]
    for array in arrays:
        reader.made(array, tuple(("d", array, axis) for axis in range(array.array.rank)))
        reader.contiguous.discard(array)
    origins: dict[Hashable, frozenset[Hashable]] = {
        k: all_origins(reader, a) for k, a in enumerate(args) if holds_array(a)
    }
    origins |= {-1 - k: reader.origins_of(array) for k, array in enumerate(arrays)}
    for array, shares in zip(arrays, outcome.shares, strict=True):
        for other in () if array in private else sorted(shares, key=str):
            memory = origins.get(other, frozenset((other,)))
            passed = args[other] if isinstance(other, int) and other >= 0 else None
            may_share(reader, array, memory, passed)


def note_lists(
    reader: Reader, outcome: Outcome, lists: list[List], slots: dict[Place, List], before: dict[Place, Abstract]
) -> None:
    """Record which lists the returned lists may be in Python."""
    for handle, same in zip(lists, outcome.same, strict=True):
        contents, memory = reader.cells[handle], set[Value]()
        for other in same:
            if not isinstance(other, int) and is_row(reader, slots[other]):
                message = "a recursive function may return an argument that is an element of another list"
                reader.refuse("SD305", None, message, help_="pass a copy: `list(...)`")
            may_be_same(reader, handle, lists[other] if isinstance(other, int) else slots[other])
            was = None if isinstance(other, int) else before[other]
            memory |= set(was.arrays) if isinstance(was, Stored) else set()
        if isinstance(contents, Stored):
            reader.stands_for_list |= dict.fromkeys(contents.arrays, frozenset(memory))


def unit_name(reader: Reader, name: str) -> str:
    """Its name in the generated module. It must not hide names that the code there uses."""
    units = {u.name for u in reader.units.values()}
    derived = {f"{u}{ending}" for u in units for ending in _DERIVED}
    taken = {*_TAKEN, *units, *derived, *(u.removesuffix(ending) for u in units for ending in _DERIVED)}
    name = "function" if keyword.iskeyword(name) else name
    number = 0
    while (found := f"{name}_{number}" if number else name) in taken:
        number += 1
    return found


def lendable(reader: Reader, x: Abstract) -> Abstract:
    """A copy of a list, because this list may change while the copy is read. Borrowed lists are not copied."""
    contents = contents_of_list(reader, x) if isinstance(x, List) else x
    if isinstance(contents, Stored) and not any(isinstance(a.type, Stack) for a in contents.arrays):
        if contents.at:
            return copied_row(reader, contents)
        if not set(contents.arrays) <= reader.context.lent:
            copies = tuple(reader.copy(a) for a in contents.arrays)
            contents = Stored(contents.element, copies, contents.length)
        return contents
    return contents if isinstance(contents, Items) else x


def kind_of(reader: Reader, x: Abstract) -> Description:
    contents = reader.cells.get(x) if isinstance(x, List) else x
    known = isinstance(contents, Items) and all(isinstance(i, Value | Static) for i in contents.items)
    return description_passed(contents) if known and isinstance(contents, Items) else loosened(describe(x))


def description_passed(x: Abstract) -> Description:
    """The description of an argument: numbers by their type, lists by their contents."""
    if not isinstance(x, Items | Stored):
        return loosened(describe(x))
    contents = describe(x) if isinstance(x, Stored) else as_stored(x)
    return Description("owned", None, (contents,))


def seen_around(
    reader: Reader, frame: Frame, bound: dict[str, Abstract], node: ast.AST
) -> tuple[dict[Location, bool], set[Object]]:
    """The names of enclosing functions and the attributes that it can reach, and whether it may assign them.

    Also the objects that it can reach.
    """
    found: dict[Location, bool] = {}
    functions: list[tuple[ast.AST, Frame | None]] = [(frame.node, frame.parent)]
    seen: set[tuple[ast.AST, Frame | None]] = set()
    functions += [(c.node, c.frame) for x in bound.values() for c in closures_around(reader, x)]
    objects = {o for x in (*bound.values(), *reader.lifted.values()) for o in objects_reached(reader, x)}
    visited: set[Object] = set()
    while functions or objects - visited:
        numbers = {o.number for o in objects - visited}
        visited |= objects
        for key, x in [(k, x) for k, x in reader.cells.items() if isinstance(k, tuple) and k[0] in numbers]:
            found[key] = not isinstance(x, List)
            functions += [(c.node, c.frame) for c in closures_around(reader, x)]
            objects |= objects_reached(reader, x)
        if not functions or (function := functions.pop()) in seen:
            continue
        seen.add(function)
        for key, assigned in names_from_around(reader, *function):
            found[key] = found.get(key, False) or assigned
            functions += [(c.node, c.frame) for c in closures_around(reader, reader.cells[key])]
            objects |= objects_reached(reader, reader.cells[key])
    own = {key: x for key, assigned in found.items() if assigned and isinstance(x := reader.cells[key], List)}
    lists: dict[Location, bool] = {h: False for key in found.keys() - own.keys() for h in handles(reader.cells[key])}
    for place, handle in own.items():
        name = name_at(place)
        if any(handle in handles(x) for k, x in reader.cells.items() if k != place):
            message = f"`{name}` is assigned in a recursive function and refers to a list that has another name too"
            reader.refuse("SD305", node, message, help_=f"make a copy: `{name} = list({name})`")
    return dict(sorted({**found, **lists}.items(), key=lambda item: _order(item[0]))), visited


def own_class_attributes(reader: Reader, frame: Frame, bound: dict[str, Abstract]) -> None:
    """Give objects that are arguments the attributes of their class that the function assigns, as their own."""
    stored = {n.attr for n in ast.walk(frame.node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    for x in bound.values():
        if isinstance(x, Object):
            missing = {(x.number, name): value for name, value in x.defaults.items() if name in stored}
            reader.cells.update({key: value for key, value in missing.items() if key not in reader.cells})


def objects_reached(reader: Reader, x: Abstract) -> set[Object]:
    """The objects that a value refers to, also by lists."""
    return objects_in(x).union(*(objects_in(contents_of_list(reader, h)) for h in handles(x)))


def _order(key: Location) -> Key:
    """Lists come before names, so that the order of parameters is fixed."""
    return key if isinstance(key, tuple) else (0, str(key.number))


def names_from_around(reader: Reader, node: ast.AST, parent: Frame | None) -> Iterator[tuple[Key, bool]]:
    read = set(free_names(node))
    inner = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    assigned = frozenset().union(*(nonlocal_names(n) for n in inner))
    while parent is not None:
        for name in sorted((read | assigned) & parent.locals):
            if (parent.number, name) in reader.cells:
                yield (parent.number, name), name in assigned
        read = read - parent.locals
        assigned = (assigned - parent.locals) | (assigned & parent.nonlocals)
        parent = parent.parent


def closures_around(reader: Reader, x: Abstract) -> Iterator[Closure]:
    match x:
        case Closure():
            yield x
            for default in x.defaults.values():
                yield from closures_around(reader, default)
        case Choice():
            for option in x.options:
                yield from closures_around(reader, option)
        case Tuple() | Record() | Items():
            for item in x.items:
                yield from closures_around(reader, item)
        case Maybe():
            yield from closures_around(reader, x.value)
        case List():
            yield from closures_around(reader, contents_of_list(reader, x))


def described_surrounding(reader: Reader, key: Location, assigned: bool) -> Description:
    """How a name of an enclosing function is passed. Constants stay constants unless they are assigned."""
    x = reader.cells[key]
    if assigned and isinstance(x, List):
        contents = reader.cells[x]
        inner = as_stored(contents) if isinstance(contents, Items) else describe(contents)
        return Description("owned", None, (inner,))
    if isinstance(x, Items | Stored):
        return as_stored(x) if isinstance(x, Items) else describe(x)
    return loosened(describe(x)) if assigned else describe(x)


def read_unit(
    reader: Reader,
    unit: Unit,
    frame: Frame,
    descriptions: dict[str, Description],
    surroundings: dict[Location, Description],
    node: ast.AST,
) -> None:
    """Read a recursive function until its results reach a fixed point."""
    before, made_here, known, unknown = reader.state, reader.made_here, dict(reader.units), reader.unknown
    calling = reader.span if reader.frame.library else reader.span_of(node)
    reader.units_in_progress.append(unit)
    try:
        for _ in range(_MOST_READINGS):
            reader.unknown, reader.units = set(), dict(known)
            again = frame.again()
            with (
                reader.at(reader.span),
                reader.within(frame=again, active_calls=(), lent=frozenset(), unit_frame=again, handlers=()),
            ):
                is_stable = read_unit_once(reader, unit, frame, descriptions, surroundings, node, calling)
            if is_stable and unit.name not in reader.unknown:
                return
        message = f"the type of the result of the recursive function `{frame.name}` grows with every call"
        reader.refuse("SD305", node, message)
    finally:
        reader.units_in_progress.pop()
        reader.unknown = unknown | (reader.unknown - {unit.name})
        reader.state, reader.made_here = before, made_here


def read_unit_once(
    reader: Reader,
    unit: Unit,
    like: Frame,
    descriptions: dict[str, Description],
    surroundings: dict[Location, Description],
    node: ast.AST,
    calling: Span | None,
) -> bool:
    """Read the function. Returns true if the results agree with the assumption."""
    early = len(reader.early)
    reader.state = State()
    params: list[Value] = []
    lent: set[Value] = set()
    own: dict[Location, Description] = {(reader.frame.number, name): d for name, d in descriptions.items()}
    for key, d in {**own, **surroundings}.items():
        values = receive_parameter(reader, key, d, node)
        params += values
        if isinstance(reader.cells[key], List | Stored):
            lent |= {v for v in values if holds_array(v)}
    unit.params = tuple(params)
    bound = {name: reader.cells[reader.frame.number, name] for name in descriptions}
    lists = reachable_lists(reader, bound, surroundings)
    with reader.block() as operations, reader.within(lists_given=frozenset(lists.values()), lent=frozenset(lent)):
        copy_lists(reader, lists, unit.outcome)
        given = reader.state.cells
        try:
            result: Abstract = run_body(reader, like.node)
            settle(reader)
        except NeverReturns:
            if len(reader.early) > early:
                raise  # it needs a value that a later iteration of the calling loop assigns
            never = f"`{like.name}` never returns without calling itself"
            raise Refusal(Problem("SD305", never, calling)) from None
        if isinstance(result, Poison):
            raise Refusal(result.problem)
        outcome, gives = outcome_of(reader, result, given, lists, operations, unit.outcome)
        yields = [v for x, d in gives for v in passed_leaves(reader, x, d)]
    unit.function = Function(unit.name, unit.params, Block(tuple(operations), tuple(yields)))
    outcome = with_effects(reader, unit.function, outcome, given, lists)
    stable, unit.outcome = outcome == unit.outcome, outcome
    return stable


def copy_lists(reader: Reader, slots: dict[Place, List], outcome: Outcome | None) -> None:
    """The lists that it changes are copied at the start."""
    changed = {*outcome.lists, *outcome.changed} if outcome is not None else set()
    for slot in slots:
        contents = reader.cells[slots[slot]]
        if slot in changed and isinstance(contents, Stored) and not holds_arrays(contents):
            copies = tuple(reader.copy(a) for a in contents.arrays)
            reader.storage.update(copies)
            reader.cells[slots[slot]] = Stored(contents.element, copies, contents.length)


def receive_parameter(reader: Reader, key: Location, d: Description, node: ast.AST) -> list[Value]:
    """A parameter for an argument. One that cannot be passed is poisoned."""
    if leaf_types(d) is None:
        what = f"`{name_at(key)}`" if is_variable(key) else "the list"
        problem = Problem(
            "SD305", f"{what} from outside a recursive function is of a type that it cannot read", reader.span_of(node)
        )
        reader.cells[key] = Poison(problem)
        return []
    fresh, values = fresh_values(reader, d, name_at(key))
    reader.cells[key] = fresh
    if not isinstance(fresh, List | Stored):
        reader.given |= {v for v in values if holds_array(v)}
    return values
