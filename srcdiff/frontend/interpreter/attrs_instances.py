"""Instances of `attrs` classes: their `__init__`, converters and validators, and `attrs.evolve`."""

from __future__ import annotations

import ast
import operator
from typing import Any

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    Keywords,
    Object,
    Static,
    class_of,
    is_instance,
    is_none,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.comparisons import compare
from srcdiff.frontend.interpreter.evaluation import call_value, call_with
from srcdiff.frontend.interpreter.forks import fork
from srcdiff.frontend.interpreter.instances import defines, own_attribute, read_attribute
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.outside import lift_fixed
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.source.guards import Constant
from srcdiff.signature.attrs_classes import assigned_by, attributes_declared

_WRITE_INIT = "compute it in `__attrs_post_init__`"
_COMPARED: dict[Any, type[ast.cmpop]] = {
    operator.lt: ast.Lt,
    operator.le: ast.LtE,
    operator.ge: ast.GtE,
    operator.gt: ast.Gt,
}


def fill_attributes(
    reader: Reader, new: Object, kind: type, args: Arguments, keywords: Keywords, node: ast.AST
) -> None:
    """The `__init__` that `attrs` generates: defaults, converters, validators and `__attrs_post_init__`."""
    declared = attributes_declared(kind)
    by_position = [a.alias for a in declared if a.init and not a.kw_only]
    bound = {**dict(zip(by_position, args, strict=False)), **keywords}
    is_twice = set(by_position[: len(args)]) & set(keywords)
    if is_twice or len(args) > len(by_position) or set(bound) - {a.alias for a in declared if a.init}:
        reader.refuse("SD304", node, f"`{kind.__name__}` needs the attributes {', '.join(by_position)}")
    if defines(new, "__attrs_pre_init__"):
        call_with(reader, read_attribute(reader, new, "__attrs_pre_init__", node), [], {}, node)
    for a in declared:
        if a.alias in bound:
            value = bound[a.alias]
        elif hasattr(a.default, "factory"):
            given = [new] if a.default.takes_self else []
            value = forced(reader, call_value(reader, Static(a.default.factory), list(given), node))
        elif bool(a.default) or type(a.default).__name__ != "_Nothing":
            value = lift_fixed(reader, a.default, Constant(a.default), a.name, node)
        elif a.init:
            reader.refuse("SD304", node, f"`{kind.__name__}` needs the attributes {', '.join(by_position)}")
        else:
            continue
        reader.cells[new.number, a.name] = converted(reader, a, value, node)
    for a in declared:
        if (new.number, a.name) in reader.cells:
            validate(reader, new, a, a.validator, reader.cells[new.number, a.name], node)
    if defines(new, "__attrs_post_init__"):
        call_with(reader, read_attribute(reader, new, "__attrs_post_init__", node), [], {}, node)


def converted(reader: Reader, attribute: Any, value: Abstract, node: ast.AST) -> Abstract:
    """The value of an attribute after its converter."""
    if attribute.converter is None:
        return value
    if type(attribute.converter).__name__ == "Converter":
        message = f"the converter of `{attribute.name}` takes the instance or the attribute, which is not supported"
        reader.refuse("SD102", node, message, help_=_WRITE_INIT)
    return forced(reader, call_value(reader, Static(attribute.converter), [value], node))


def validate(reader: Reader, owner: Abstract, attribute: Any, validator: Any, x: Abstract, node: ast.AST) -> None:
    """Run a validator, which may raise."""
    name = type(validator).__name__ if type(validator).__module__ in ("attr.validators", "attr._make") else ""
    if validator is None:
        return
    if name == "_AndValidator":
        for one in validator._validators:
            validate(reader, owner, attribute, one, x, node)
    elif name == "_OptionalValidator" and is_none(x):
        return
    elif name == "_OptionalValidator":
        validate(reader, owner, attribute, validator.validator, x, node)
    elif name == "_NumberValidator":
        bound = lift_fixed(reader, validator.bound, Constant(validator.bound), attribute.name, node)
        holds = compare(reader, _COMPARED[validator.compare_func](), x, bound, node)
        message = f"'{attribute.name}' must be {validator.compare_op} {validator.bound}"
        raise_unless(reader, holds, ValueError, message)
    elif name == "_InstanceOfValidator":
        holds = call_value(reader, Static(isinstance), [x, Static(validator.type)], node)
        raise_unless(reader, holds, TypeError, f"'{attribute.name}' must be {validator.type!r}")
    elif name or not callable(validator):
        message = f"the validator `{validator!r}` of `{attribute.name}` is not supported"
        reader.refuse("SD102", node, message, help_=_WRITE_INIT)
    else:
        call_value(reader, Static(validator), [owner, Static(attribute), x], node)


def raise_unless(reader: Reader, holds: Abstract, kind: type[Exception], message: str) -> None:
    if not isinstance(holds, Static):
        reader.raise_if(reader.apply("logical_not", as_value(reader, holds)), kind, message)
    elif not holds.value:
        fork(reader, reader.const(True), lambda: reader.raise_always(kind, message), lambda: None)


def evolved(reader: Reader, args: Arguments, keywords: Keywords, node: ast.AST) -> Abstract:
    """`attrs.evolve(x, a=1.0)`: a new instance with other values of some attributes."""
    of = args[0] if len(args) == 1 else Static(None)
    if not (is_instance(of) and attributes_declared(class_of(of))):
        message = f"{in_words(reader, of)} is used where an instance of a class of `attrs` is needed"
        reader.refuse("SD203", node, message)
    declared = [a for a in attributes_declared(class_of(of)) if a.init]
    given = {a.alias: own_attribute(reader, of, a.name) for a in declared if a.alias not in keywords}
    return call_with(reader, Static(class_of(of)), [], {**given, **keywords}, node)


def as_assigned(reader: Reader, owner: Abstract, name: str, value: Abstract, node: ast.AST) -> Abstract:
    """A value that is assigned to an attribute. `attrs.define` converts and validates it again."""
    kind = class_of(owner) if is_instance(owner) else object
    attribute = next((a for a in attributes_declared(kind) if a.name == name), None)
    if attribute is None or owner in reader.constructing:
        return value
    does = assigned_by(kind, name)
    if does is None:
        message = f"`{kind.__name__}` has an `on_setattr` of its own, which is not supported"
        reader.refuse("SD102", node, message, help_="use a property")
    value = converted(reader, attribute, value, node) if does[0] else value
    if does[1] and attribute.validator is not None:
        validate(reader, owner, attribute, attribute.validator, value, node)
    return value
