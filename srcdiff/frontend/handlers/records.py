"""Records: named tuples, dataclasses, dictionaries, members of enums."""

from __future__ import annotations

import ast
import dataclasses
import enum
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import (
    MISSING,
    Abstract,
    Arguments,
    Keywords,
    Namespace,
    Object,
    Record,
    Static,
    Tuple,
    class_of,
    is_instance,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import Frame, IsWritten
from srcdiff.frontend.interpreter.attrs_instances import fill_attributes
from srcdiff.frontend.interpreter.dictionaries import (
    changed,
    is_there,
    items_now,
    read_item,
    remove_item,
    view_of,
    write_item,
)
from srcdiff.frontend.interpreter.evaluation import call_value, call_with, known_value
from srcdiff.frontend.interpreter.forks import branch_on, left_by_branches
from srcdiff.frontend.interpreter.indexing import key_position
from srcdiff.frontend.interpreter.instances import (
    in_class,
    is_set_by_class,
    new_object,
    object_as_record,
    own_attribute,
    read_attribute,
    require_usual_access,
    set_by_class,
)
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.made_dictionaries import made_dictionary
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.outside import lift_fixed, look_at_class
from srcdiff.frontend.interpreter.presence import checked, needed
from srcdiff.frontend.interpreter.tables import handles, handles_kind, method
from srcdiff.frontend.source.guards import Attribute, Constant, Summary, contents
from srcdiff.ir.nodes import Value
from srcdiff.signature.attrs_classes import sets_all
from srcdiff.signature.jit_classes import standing_for
from srcdiff.signature.structures import FOREIGN, Layout, is_plain_class, is_plain_tuple


@handles_kind(enum.EnumType)
def call_enum(
    reader: Reader, target: enum.EnumType, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract | None:
    return member_of(reader, target, args[0], node) if len(args) == 1 and not keywords else None


@handles_kind(type)
def call_class(reader: Reader, target: type, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract | None:
    """A new instance of a class. A Numba `jitclass` is replaced by the class that it was made from."""
    target = standing_for(target) or target
    if issubclass(target, tuple) and hasattr(target, "_fields"):
        return make_namedtuple(reader, target, args, keywords, node)
    if target.__module__.partition(".")[0] not in FOREIGN:
        require_usual_access(reader, target, ("__setattr__", "__getattribute__", "__getattr__"), node)
    if dataclasses.is_dataclass(target) and target not in reader.stateful and only_remembers(target):
        return make_dataclass(reader, target, args, keywords, node)
    is_plain = dataclasses.is_dataclass(target) or is_plain_class(target)
    return construct(reader, target, args, keywords, node) if is_plain else None


def construct(reader: Reader, kind: type, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A new instance of a class whose `__init__` computes. While `__init__` runs, the instance is an object."""
    if in_class(kind, "__new__") is not object.__new__ and kind is not types.SimpleNamespace:
        message = f"`{kind.__name__}` defines `__new__`, which is not supported"
        reader.refuse("SD102", node, message, help_="create the instance outside the function, and pass it in")
    look_at_class(reader, kind)
    new = new_object(reader, kind, {}, node)
    reader.constructing.append(new)
    try:
        if dataclasses.is_dataclass(kind) and kind.__init__.__code__.co_filename == "<string>":
            fill_fields(reader, new, kind, args, keywords, node)
        elif sets_all(kind):
            fill_attributes(reader, new, kind, args, keywords, node)
        elif isinstance(in_class(kind, "__init__"), types.FunctionType):
            init = read_attribute(reader, new, "__init__", node)
            call_with(reader, init, args, keywords, node)
        elif kind is types.SimpleNamespace:
            reader.cells.update({(new.number, name): x for name, x in keywords.items()})
        elif args or keywords:
            reader.refuse("SD304", node, f"`{kind.__name__}` takes no arguments")
    finally:
        reader.constructing.remove(new)
    if kind in reader.stateful:
        return new
    found = object_as_record(reader, new)
    if any(refers_to(x, new) for x in reader.cells.values()):
        raise IsWritten(kind)  # it was stored elsewhere while it was constructed, so its identity matters
    reader.update(cells={k: x for k, x in reader.cells.items() if not isinstance(k, tuple) or k[0] != new.number})
    return found


def refers_to(x: Any, to: Object) -> bool:
    """Whether a value, a bound method, a closure or an iterator refers to an object."""
    if x is to or isinstance(x, Object | Value | Frame | ast.AST | type):
        return x is to
    if isinstance(x, tuple | list):
        return any(refers_to(item, to) for item in x)
    if isinstance(x, dict):
        return any(refers_to(item, to) for item in x.values())
    fields = dataclasses.fields(x) if dataclasses.is_dataclass(x) else ()
    return any(refers_to(getattr(x, f.name), to) for f in fields)


def fill_fields(reader: Reader, new: Object, kind: type, args: Arguments, keywords: Keywords, node: ast.AST) -> None:
    """The generated `__init__` of a dataclass: it assigns the fields and calls `__post_init__`."""
    fields = tuple(f for f in vars_of_dataclass(kind).values() if f._field_type is not dataclasses._FIELD_CLASSVAR)  # type: ignore[attr-defined]
    by_position = [f.name for f in fields if f.init and not f.kw_only]
    bound = {**dict(zip(by_position, args, strict=False)), **keywords}
    is_twice = set(by_position[: len(args)]) & set(keywords)
    if is_twice or len(args) > len(by_position) or set(bound) - {f.name for f in fields if f.init}:
        reader.refuse("SD304", node, f"`{kind.__name__}` needs the fields {', '.join(by_position)}")
    only_passed: list[Abstract] = []
    for field in fields:
        if field.name in bound:
            value = bound[field.name]
        elif field.default is not dataclasses.MISSING:
            value = lift_fixed(reader, field.default, Constant(field.default), field.name, node)
        elif field.default_factory is not dataclasses.MISSING:
            value = forced(reader, call_value(reader, Static(field.default_factory), [], node))
        elif field.init:
            reader.refuse("SD304", node, f"`{kind.__name__}` needs the fields {', '.join(by_position)}")
        else:
            continue
        if field._field_type is dataclasses._FIELD_INITVAR:  # type: ignore[attr-defined]
            only_passed.append(value)
        elif not set_by_class(reader, new, field.name, value, node):
            reader.cells[new.number, field.name] = value
    if in_class(kind, "__post_init__") is not MISSING:
        call_with(reader, read_attribute(reader, new, "__post_init__", node), only_passed, {}, node)


def vars_of_dataclass(kind: type) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a dataclass or of a class below one, with its `ClassVar` and `InitVar`."""
    fields: dict[str, dataclasses.Field[Any]] = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return fields


def member_of(reader: Reader, kind: enum.EnumType, value: Abstract, node: ast.AST) -> Abstract:
    """The member of an enum with this value."""
    help_ = "pass the member itself as an argument"
    known = known_value(reader, value, f"the member of `{kind.__name__}`", node, help_=help_)
    try:
        return Static(kind(known))
    except (ValueError, TypeError, KeyError) as error:
        reader.raise_always(type(error), str(error))


def make_namedtuple(reader: Reader, kind: type, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    if not is_plain_tuple(kind):
        message = f"`{kind.__name__}` overrides methods of a named tuple, which is not supported"
        reader.refuse("SD102", node, message, help_="use functions instead of the overridden methods")
    defaults = defaults_of(kind)
    reader.guard(Summary(contents, Summary(defaults_of, Constant(kind))), contents(defaults))
    return Tuple(_stored(reader, kind, fields, defaults, args, keywords, node), kind)


def defaults_of(kind: type) -> dict[str, Any]:
    """The defaults of a named tuple. They are those of its `__new__`, to which they may have been assigned."""
    values = getattr(kind.__new__, "__defaults__", None) or ()
    names = kind._fields[len(kind._fields) - len(values) :]  # type: ignore[attr-defined]
    return dict(zip(names, values, strict=True))


def make_dataclass(reader: Reader, kind: type, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """A new instance of a dataclass that only stores its fields."""
    defaults = {f.name: f.default for f in dataclasses.fields(kind)}
    fields = tuple(defaults)
    defaults = {name: x for name, x in defaults.items() if x is not dataclasses.MISSING}
    return Record(_stored(reader, kind, fields, defaults, args, keywords, node), Layout(kind, fields))


def _stored(
    reader: Reader,
    kind: type,
    fields: tuple[str, ...],
    defaults: dict[str, Any],
    args: Arguments,
    keywords: Keywords,
    node: ast.AST,
) -> tuple[Abstract, ...]:
    """The fields of a new instance that only stores them."""
    bound = {**dict(zip(fields, args, strict=False)), **keywords}
    for name, default in defaults.items():
        if name not in bound:
            bound[name] = lift_fixed(reader, default, Constant(default), name, node)
    if set(bound) != set(fields) or len(args) > len(fields) or set(fields[: len(args)]) & set(keywords):
        reader.refuse("SD304", node, f"`{kind.__name__}` needs the fields {', '.join(fields)}")
    return tuple(bound[f] for f in fields)


def only_remembers(kind: type) -> bool:
    """Whether the construction of a dataclass only stores its fields."""
    made_by = kind.__init__.__code__  # type: ignore[misc]
    simple = all(f.init and not f.kw_only for f in dataclasses.fields(kind))
    simple = simple and all(f.default_factory is dataclasses.MISSING for f in dataclasses.fields(kind))
    simple = simple and not any(is_set_by_class(kind, f.name) for f in dataclasses.fields(kind))
    setter = getattr(kind.__setattr__, "__code__", None)  # `dataclasses` itself writes it for frozen classes
    simple = simple and (setter is None or setter.co_filename == made_by.co_filename)
    return simple and made_by.co_filename == "<string>" and not hasattr(kind, "__post_init__")


@handles(dataclasses.replace)
def call_replaced(reader: Reader, node: ast.AST, of: Abstract, /, **fields: Abstract) -> Abstract:
    """`dataclasses.replace`."""
    if not (is_instance(of) and dataclasses.is_dataclass(class_of(of))):
        reader.refuse("SD203", node, f"{in_words(reader, of)} is used where an instance of a dataclass is needed")
    kind = class_of(of)
    names = [f.name for f in dataclasses.fields(kind) if f.init]
    if fields.keys() - set(names):
        reader.refuse("SD304", node, f"`{kind.__name__}` has the fields {', '.join(names)}")
    given = {n: fields[n] if n in fields else own_attribute(reader, of, n) for n in names}
    return call_with(reader, Static(kind), [], given, node)


@method("tuple", "_replace")
def tuple__replace(reader: Reader, node: ast.AST, owner: Tuple, **fields: Abstract) -> Abstract:
    assert owner.kind is not None
    names: tuple[str, ...] = owner.kind._fields  # type: ignore[attr-defined]
    fields = {n: forced(reader, x) for n, x in fields.items()}
    return Tuple(tuple(fields.get(n, x) for n, x in zip(names, owner.items, strict=True)), owner.kind)


def _view(name: str) -> Callable[..., Abstract]:
    return lambda reader, node, owner: view_of(reader, owner, name)


for _name in ("keys", "values", "items"):
    method("dictionary", _name)(_view(_name))


@method("dictionary", "copy")
def dictionary_copy(reader: Reader, node: ast.AST, owner: Record) -> Abstract:
    return made_dictionary(reader, dict(zip(owner.kind.names, owner.items, strict=True)), node, node)


@method("dictionary", "get")
def dictionary_get(
    reader: Reader, node: ast.AST, owner: Record | Object, key: Abstract, default: Abstract = Static(None)
) -> Abstract:
    if not isinstance(owner, Object):
        position = key_position(reader, owner, key, node)
        return default if position is None else owner.items[position]
    there = is_there(reader, owner, key, node)
    if isinstance(there, Static):
        return read_item(reader, owner, key, node) if there.value else default
    result = (reader.frame.number, "%choice")

    def side(found: Callable[[], Abstract]) -> Callable[[], None]:
        return lambda: reader.cells.update({result: found()})

    assert isinstance(there, Value)
    branch_on(reader, there, side(lambda: read_item(reader, owner, key, node)), side(lambda: default))
    return checked(reader, left_by_branches(reader, result), "the result", node)


@method("dictionary", "update")
def dictionary_update(
    reader: Reader, node: ast.AST, owner: Abstract, /, *others: Abstract, **items: Abstract
) -> Abstract:
    if not isinstance(owner, Namespace):
        changed(reader, owner, node)
    for other in others:
        more = needed(reader, other, node)
        if not (isinstance(more, Record) and more.kind.is_mapping):
            reader.refuse("SD102", node, f"`update` with {in_words(reader, more)} is not supported")
        for key, x in zip(more.kind.names, more.items, strict=True):
            write_item(reader, owner, Static(key), x, node)
    for key, x in items.items():
        write_item(reader, owner, Static(key), forced(reader, x), node)
    return Static(None)


@method("dictionary", "pop")
def dictionary_pop(
    reader: Reader, node: ast.AST, owner: Abstract, key: Abstract, default: Abstract = MISSING, /
) -> Abstract:
    there = is_there(reader, changed(reader, owner, node), key, node)
    if default is not MISSING and not isinstance(there, Static):
        reader.refuse("SD205", node, "srcdiff cannot tell here whether the key is in the dictionary")
    if default is not MISSING and there == Static(False):
        return default
    return remove_item(reader, owner, key, node)


@method("dictionary", "setdefault")
def dictionary_setdefault(
    reader: Reader, node: ast.AST, owner: Abstract, key: Abstract, default: Abstract = Static(None), /
) -> Abstract:
    own = changed(reader, owner, node)
    there = is_there(reader, own, key, node)
    if not isinstance(there, Static):
        reader.refuse("SD205", node, "srcdiff cannot tell here whether the key is in the dictionary")
    if not there.value:
        write_item(reader, owner, key, default, node)
    return read_item(reader, own, key, node)


@method("dictionary", "clear")
def dictionary_clear(reader: Reader, node: ast.AST, owner: Abstract) -> Abstract:
    own = changed(reader, owner, node)
    for key in items_now(reader, own):
        remove_item(reader, own, Static(key), node)
    return Static(None)


@handles_kind(np.vectorize)
def call_vectorized(
    reader: Reader, function: np.vectorize, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    """A function made by `@np.vectorize`."""
    for name in ("signature", "excluded", "pyfunc", "otypes"):
        reader.guard(Attribute(Constant(function), name), getattr(function, name))
    if function.signature is not None or function.excluded:
        reader.refuse("SD303", node, "`np.vectorize` with a signature or excluded arguments is not supported")
    made = call_value(reader, Static(np.vectorize), [Static(function.pyfunc), Static(function.otypes)], node)
    return call_with(reader, made, args, keywords, node)
