"""Records: named tuples, dataclasses, dictionaries, members of enums."""

from __future__ import annotations

import ast
import dataclasses
import enum

import numpy as np

from srcdiff.frontend.domain.abstract_values import Abstract, Record, Static, Tuple
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.evaluation import call_value, call_with
from srcdiff.frontend.interpreter.indexing import key_position
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.outside import lift_fixed
from srcdiff.frontend.interpreter.tables import handles, handles_kind, method
from srcdiff.frontend.source.guards import Attribute, Constant, Summary, contents
from srcdiff.signature.structures import Layout, is_plain_tuple


@handles_kind(enum.EnumType)
def call_enum(
    reader: Reader, target: enum.EnumType, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
) -> Abstract | None:
    return member_of(reader, target, args[0], node) if len(args) == 1 and not keywords else None


@handles_kind(type)
def call_class(
    reader: Reader, target: type, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
) -> Abstract | None:
    """A new instance of a class."""
    if issubclass(target, tuple) and hasattr(target, "_fields"):
        return make_namedtuple(reader, target, args, keywords, node)
    return make_dataclass(reader, target, args, keywords, node) if dataclasses.is_dataclass(target) else None


def member_of(reader: Reader, kind: enum.EnumType, value: Abstract, node: ast.AST) -> Abstract:
    """The member of an enum that has the value."""
    if not isinstance(value, Static):
        message = f"the member of `{kind.__name__}` must be known at compile time"
        reader.refuse("SD205", node, message, help_="pass the member itself as an argument")
    try:
        return Static(kind(value.value))
    except (ValueError, TypeError, KeyError) as error:
        reader.raise_always(type(error), str(error))


def make_namedtuple(
    reader: Reader, kind: type, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
) -> Abstract:
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    if not is_plain_tuple(kind):
        message = f"`{kind.__name__}` overrides methods of a named tuple, which is not supported"
        reader.refuse("SD102", node, message, help_="use functions instead of the overridden methods")
    bound = {**dict(zip(fields, args, strict=False)), **keywords}
    defaults = getattr(kind, "_field_defaults", {})
    reader.guard(Summary(contents, Attribute(Constant(kind), "_field_defaults")), contents(defaults))
    for name, default in defaults.items():
        if name not in bound:
            bound[name] = lift_fixed(reader, default, Constant(default), name, node)
    if set(bound) != set(fields):
        reader.refuse("SD304", node, f"`{kind.__name__}` needs the fields {', '.join(fields)}")
    return Tuple(tuple(bound[f] for f in fields), kind)


def make_dataclass(
    reader: Reader, kind: type, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
) -> Abstract:
    """A new instance, where that only means to remember its fields."""
    fields = {f.name: f for f in dataclasses.fields(kind)}
    only_remembers(reader, kind, node)
    bound: dict[str, Abstract] = {**dict(zip(fields, args, strict=False)), **keywords}
    for name, field in fields.items():
        if name not in bound and field.default is not dataclasses.MISSING:
            bound[name] = lift_fixed(reader, field.default, Constant(field.default), name, node)
    if set(bound) != set(fields) or len(args) + len(keywords) > len(fields):
        reader.refuse("SD304", node, f"`{kind.__name__}` needs the fields {', '.join(fields)}")
    return Record(tuple(bound[f] for f in fields), Layout(kind, tuple(fields)))


def only_remembers(reader: Reader, kind: type, node: ast.AST) -> None:
    """Refuse a dataclass that does more than keep its fields when an instance is made."""
    made_by = kind.__init__.__code__  # type: ignore[misc]
    made_by_dataclass = made_by.co_filename == "<string>"
    simple = all(f.init and not f.kw_only for f in dataclasses.fields(kind))
    setter = getattr(kind.__setattr__, "__code__", None)  # of a frozen one, dataclasses writes it
    simple = simple and (setter is None or setter.co_filename == made_by.co_filename)
    if hasattr(kind, "__post_init__") or not made_by_dataclass or not simple:
        message = f"`{kind.__name__}` runs its own code when an instance is created, which is not supported"
        reader.refuse("SD102", node, message, help_="create the instance outside the function, and pass it in")


@handles(dataclasses.replace)
def call_replaced(reader: Reader, node: ast.AST, of: Abstract, /, **fields: Abstract) -> Abstract:
    """`dataclasses.replace`."""
    if not (isinstance(of, Record) and of.kind.is_dataclass):
        reader.refuse("SD203", node, f"{in_words(reader, of)} is used where an instance of a dataclass is needed")
    only_remembers(reader, of.kind.kind, node)
    if fields.keys() - set(of.kind.names):
        reader.refuse("SD304", node, f"`{of.kind.kind.__name__}` has the fields {', '.join(map(str, of.kind.names))}")
    named = zip(of.kind.names, of.items, strict=True)
    return Record(tuple(fields.get(str(n), x) for n, x in named), of.kind)


@method("tuple", "_replace")
def tuple__replace(reader: Reader, node: ast.AST, owner: Tuple, **fields: Abstract) -> Abstract:
    assert owner.kind is not None
    names: tuple[str, ...] = owner.kind._fields  # type: ignore[attr-defined]
    fields = {n: forced(reader, x) for n, x in fields.items()}
    return Tuple(tuple(fields.get(n, x) for n, x in zip(names, owner.items, strict=True)), owner.kind)


@method("dictionary", "keys")
def dictionary_keys(reader: Reader, node: ast.AST, owner: Record) -> Abstract:
    return Tuple(tuple(Static(name) for name in owner.kind.names))


@method("dictionary", "values")
def dictionary_values(reader: Reader, node: ast.AST, owner: Record) -> Abstract:
    return Tuple(owner.items)


@method("dictionary", "items")
def dictionary_items(reader: Reader, node: ast.AST, owner: Record) -> Abstract:
    return Tuple(tuple(Tuple((Static(n), x)) for n, x in zip(owner.kind.names, owner.items, strict=True)))


@method("dictionary", "copy")
def dictionary_copy(reader: Reader, node: ast.AST, owner: Record) -> Abstract:
    return owner  # it is not changed


@method("dictionary", "get")
def dictionary_get(
    reader: Reader,
    node: ast.AST,
    owner: Record,
    key: Abstract,
    default: Abstract = Static(None),
) -> Abstract:
    position = key_position(reader, owner, key, node)
    return default if position is None else owner.items[position]


@handles_kind(np.vectorize)
def call_vectorized(
    reader: Reader, function: np.vectorize, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
) -> Abstract:
    """What `@np.vectorize` has made of a function."""
    for name in ("signature", "excluded", "pyfunc", "otypes"):
        reader.guard(Attribute(Constant(function), name), getattr(function, name))
    if function.signature is not None or function.excluded:
        reader.refuse("SD303", node, "`np.vectorize` with a signature or excluded arguments is not supported")
    made = call_value(reader, Static(np.vectorize), [Static(function.pyfunc), Static(function.otypes)], node)
    return call_with(reader, made, args, keywords, node)
