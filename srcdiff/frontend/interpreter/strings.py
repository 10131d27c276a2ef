"""Strings: formatted text for `print`, `assert` and `raise`, and methods of constant strings."""

from __future__ import annotations

import ast
import enum
import logging
import re
import string
import warnings
from collections.abc import Sequence
from typing import Any

from srcdiff.frontend.domain.abstract_values import (
    Abstract,
    Arguments,
    Caught,
    Items,
    Keywords,
    List,
    Static,
    Text,
    Tuple,
    is_none,
)
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.interpreter.evaluation import evaluate, known_value
from srcdiff.frontend.interpreter.iteration import evaluate_elements, unpacked
from srcdiff.frontend.interpreter.kind_in_words import in_words
from srcdiff.frontend.interpreter.list_storage import contents_of_list, new_list
from srcdiff.frontend.interpreter.tables import expression, handles, handles_syntax, method, operation
from srcdiff.frontend.source.guards import Constant, Summary
from srcdiff.ir.nodes import Formatted, Print, Value
from srcdiff.ir.types import Array, Scalar, is_float

TEXT_METHODS = frozenset(
    (
        *("capitalize", "casefold", "count", "endswith", "find", "isalpha", "isdigit", "isidentifier", "isnumeric"),
        *("lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rpartition", "rsplit", "rstrip"),
        *("split", "startswith", "strip", "title", "upper"),
    )
)
"""Methods that return a string, a number, a truth value, or a tuple or list of strings."""


_CONVERSIONS = {-1: "", ord("s"): "!s", ord("r"): "!r", ord("a"): "!a"}


_PERCENT = re.compile(r"%([-+ 0#]*)(\d*)(\.\d+)?(.)", re.DOTALL)


_EXAMPLES: dict[str, Any] = {"int64": 1, "bool": True}


def known(x: Abstract) -> Any:
    if isinstance(x, Tuple):
        return tuple(known(i) for i in x.items)
    if not isinstance(x, Static):
        raise LookupError
    return x.value


def _array(x: Value) -> bool:
    return isinstance(x.type, Array)


def joined(a: Text, b: Text) -> Text:
    return Text(a.template + b.template, a.values + b.values)


def literal(text: str) -> Text:
    """Text without values. Braces are escaped in its template."""
    return Text(text.replace("{", "{{").replace("}", "}}"))


def constant(text: Text) -> Abstract:
    return text if text.values else Static(text.template.format())


@expression(ast.JoinedStr)
def f_string(reader: Reader, node: ast.JoinedStr) -> Abstract:
    text = Text("")
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            text = joined(text, literal(str(piece.value)))
            continue
        assert isinstance(piece, ast.FormattedValue)
        spec = Text("") if piece.format_spec is None else text_of(reader, evaluate(reader, piece.format_spec), node)
        one = formatted_text(reader, evaluate(reader, piece.value), _CONVERSIONS[piece.conversion], spec, node)
        text = joined(text, one)
    return text if text.values else Static(text.template.format())


def formatted_text(reader: Reader, x: Abstract, conversion: str, spec: Text, node: ast.AST) -> Text:
    """`{x!conversion:spec}`."""
    colon = f":{spec.template}" if spec.template else ""
    if isinstance(x, Value):
        if isinstance(x.type, Scalar) and not spec.values:
            fits_format(reader, _EXAMPLES.get(x.type.dtype, 1.5), f"{{{conversion}{colon}}}", node)
        return Text(f"{{{conversion}{colon}}}", (x, *spec.values))
    if isinstance(x, Static) and not spec.values:
        template = f"{{{conversion}{colon}}}"
        fits_format(reader, x.value, template, node)
        return literal(template.format(x.value))
    if colon or conversion not in ("", "!s"):
        if isinstance(x, Static | Text):
            reader.refuse("SD102", node, "a width that is known only at run time is not supported for strings")
        if colon:
            reader.refuse("SD203", node, f"{in_words(reader, x)} cannot be formatted")
    return text_of(reader, x, node)


def fits_format(reader: Reader, example: Any, template: str, node: ast.AST) -> None:
    try:
        template.format(example)
    except (ValueError, TypeError) as error:
        reader.refuse("SD203", node, f"the format does not match the value: {error}")


def text_of(reader: Reader, x: Abstract, node: ast.AST, conversion: str = "") -> Text:
    """The text of `str` or `repr` for a value."""
    match x:
        case Static():
            return literal(f"{{{conversion}}}".format(x.value))
        case Text() if conversion != "!r":
            return x
        case Value():
            return Text(f"{{{conversion}}}", (x,))
        case Tuple():
            names = [f"{n}=" for n in x.kind._fields] if x.kind is not None else [""] * len(x.items)  # type: ignore[attr-defined]
            return listed_text(reader, x.kind.__name__ if x.kind else "", "()", x.items, names, node)
        case Caught() if conversion != "!r":
            if len(x.parts) == 1:
                return text_of(reader, argument_of(x.parts[0]), node, "!r" if issubclass(x.kind, KeyError) else "")
            return text_of(reader, Tuple(tuple(map(argument_of, x.parts))), node) if x.parts else Text("")
        case List():
            contents = contents_of_list(reader, x)
            if isinstance(contents, Items):
                return listed_text(reader, "", "[]", contents.items, [""] * len(contents.items), node)
    reader.refuse("SD102", node, f"{in_words(reader, x)} cannot be printed", help_="print its elements")


def listed_text(
    reader: Reader, name: str, brackets: str, items: tuple[Abstract, ...], names: list[str], node: ast.AST
) -> Text:
    text = literal(name + brackets[0])
    for k, (label, item) in enumerate(zip(names, items, strict=True)):
        text = joined(joined(text, literal((", " if k else "") + label)), text_of(reader, item, node, "!r"))
    alone = len(items) == 1 and brackets == "()" and not name
    return joined(text, literal(("," if alone else "") + brackets[1]))


@handles(str)
def call_str(reader: Reader, node: ast.AST, x: Abstract = Static("")) -> Abstract:
    return constant(text_of(reader, x, node))


@handles(repr)
def call_repr(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    return constant(text_of(reader, x, node, "!r"))


@handles(format)
def call_format(reader: Reader, node: ast.AST, x: Abstract, spec: Abstract = Static("")) -> Abstract:
    return constant(formatted_text(reader, x, "", text_of(reader, spec, node), node))


def text_method(
    reader: Reader, name: str, owner: Abstract, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    """A method of a constant string with constant arguments. It is evaluated at compile time."""
    try:
        result = getattr(str, name)(*(known(x) for x in (owner, *args)), **{n: known(x) for n, x in keywords.items()})
    except LookupError:
        reader.refuse("SD205", node, f"the arguments of `{name}` must be known at compile time")
    except (TypeError, ValueError) as error:
        reader.refuse("SD203", node, str(error))
    if isinstance(result, list):
        return new_list(reader, tuple(Static(x) for x in result))
    return Tuple(tuple(Static(x) for x in result)) if isinstance(result, tuple) else Static(result)


@method("text", "format")
def text_format(reader: Reader, node: ast.AST, owner: Static, *args: Abstract, **keywords: Abstract) -> Abstract:
    """`"...".format(...)`."""
    text, count = Text(""), 0
    for before, name, spec, conversion in string.Formatter().parse(owner.value):
        text = joined(text, literal(before))
        if name is None:
            continue
        if "{" in (spec or ""):
            message = "a placeholder inside the format of another is not supported"
            reader.refuse("SD102", node, message, help_="use an f-string")
        key = name or str(count)
        count += not name
        known: dict[str, Abstract] = {**{str(k): a for k, a in enumerate(args)}, **keywords}
        if key not in known:
            reader.refuse("SD304", node, f"`format` has no argument for `{{{name}}}`")
        mark = f"!{conversion}" if conversion else ""
        text = joined(text, formatted_text(reader, known[key], mark, Text(spec or ""), node))
    return constant(text)


@method("text", "join")
def text_join(reader: Reader, node: ast.AST, owner: Static, of: Abstract) -> Abstract:
    """`", ".join(texts)` of texts that are known one by one."""
    text = Text("")
    for k, item in enumerate(unpacked(reader, of, node)):
        if not (isinstance(item, Text) or (isinstance(item, Static) and isinstance(item.value, str))):
            reader.refuse("SD203", node, f"`join` needs strings; this element is {in_words(reader, item)}")
        text = joined(joined(text, literal(owner.value if k else "")), text_of(reader, item, node))
    return constant(text)


@operation(Text)
def text_operation(
    reader: Reader, op: type[ast.operator], left: Abstract, right: Abstract, node: ast.AST
) -> Abstract | None:
    """`"%.3f" % x`, and concatenation of strings."""
    if op is ast.Mod and isinstance(left, Static) and isinstance(left.value, str):
        return percent_format(reader, left.value, right.items if isinstance(right, Tuple) else (right,), node)
    texts = [x for x in (left, right) if isinstance(x, Text)]
    if texts and op is ast.Add and all(isinstance(x, Text | Static) for x in (left, right)):
        return joined(text_of(reader, left, node), text_of(reader, right, node))
    return None


def percent_format(reader: Reader, template: str, args: tuple[Abstract, ...], node: ast.AST) -> Abstract:
    """`"%.3f" % x`."""
    text, end, rest = Text(""), 0, list(args)
    for found in _PERCENT.finditer(template):
        text, end = joined(text, literal(template[end : found.start()])), found.end()
        flags, width, precision, kind = found.groups()
        if kind == "%":
            text = joined(text, literal("%"))
            continue
        if kind not in "sdifeEgGr" or set(flags) - set("-+0"):
            reader.refuse("SD102", node, f"the format `{found[0]}` is not supported", help_="use an f-string")
        if not rest:
            reader.refuse("SD203", node, "there are fewer values than placeholders in the format")
        x = rest.pop(0)
        if kind in "di" and not (isinstance(x, Value) and not is_float(x.type)) and not isinstance(x, Static):
            reader.refuse("SD203", node, f"`{found[0]}` needs an integer", help_="convert with `int(...)`")
        align = "<" if "-" in flags else ">" if kind in "sr" and width else ""
        sign, zero = "+" if "+" in flags else "", "0" if "0" in flags and not align else ""
        spec = f"{align}{sign}{zero}{width}{precision or ''}" + ("" if kind in "sr" else kind.replace("i", "d"))
        conversion = "!r" if kind == "r" else "!s" if kind == "s" and spec else ""
        text = joined(text, formatted_text(reader, x, conversion, Text(spec), node))
    if rest:
        reader.refuse("SD203", node, "there are more values than placeholders in the format")
    return constant(joined(text, literal(template[end:])))


def argument_of(part: Any) -> Abstract:
    """An argument of an exception, from the form that `exception_argument` returns."""
    match part:
        case Value():
            return part
        case Formatted():
            return Text(part.template, part.values)
        case tuple():
            return Tuple(tuple(map(argument_of, part)))
    return Static(part)


def exception_argument(reader: Reader, x: Abstract, node: ast.AST) -> Any:
    """An argument of an exception: a constant, a value, text with values, or a tuple of constants and values."""
    match x:
        case Static(value=None | str() | int() | float()) if not isinstance(x.value, enum.Enum):
            return x.value
        case Value():
            return x
        case Text():
            return Formatted(x.template, x.values)
        case Tuple(kind=None) if x.items:
            parts = tuple(exception_argument(reader, i, node) for i in x.items)
            if not any(isinstance(p, Formatted) for p in parts):
                return parts
    text = text_of(reader, x, node)
    return Formatted(text.template, text.values) if text.values else text.template.format()


@handles_syntax(print)
def print_call(reader: Reader, node: ast.Call) -> Abstract:
    args = evaluate_elements(reader, node.args)
    options = {"sep": " ", "end": "\n", "flush": False}
    for keyword in node.keywords:
        if keyword.arg not in options:
            reader.refuse("SD102", node, f"`print` with `{keyword.arg}=` is not supported")
        given = known_value(reader, evaluate(reader, keyword.value), f"`{keyword.arg}=` of `print`", node)
        if given is not None:
            options[keyword.arg] = given
    plain = options == {"sep": " ", "end": "\n", "flush": False}
    if plain and all(isinstance(x, Static) or (isinstance(x, Value) and not _array(x)) for x in args):
        parts = tuple(str(x.value) if isinstance(x, Static) else x for x in args)
        if all(p.isprintable() for p in parts if isinstance(p, str)):  # Numba only prints these strings
            reader.add(Print(parts, span=reader.span))
            return Static(None)
    text = Text("")
    for k, x in enumerate(args):
        text = joined(joined(text, literal(str(options["sep"]) if k else "")), text_of(reader, x, node))
    text = joined(text, literal(str(options["end"])))
    reader.add(Print((Formatted(text.template, text.values),), bool(options["flush"]), span=reader.span))
    return Static(None)


# -- loggers and warnings ---------------------------------------------------------------------------------------------

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


@method("logger", *_LEVELS)
def log_method(reader: Reader, node: ast.Call, owner: Static, message: Abstract, *args: Abstract) -> Abstract:
    return log(reader, node, owner.value.name, _LEVELS[node.func.attr], message, args)  # type: ignore[attr-defined]


@method("logger", "log")
def log_at_level(
    reader: Reader, node: ast.AST, owner: Static, level: Abstract, message: Abstract, *args: Abstract
) -> Abstract:
    return log(reader, node, owner.value.name, known_value(reader, level, "the level", node, int), message, args)


@method("logger", "isEnabledFor")
def is_enabled_for(reader: Reader, node: ast.AST, owner: Static, level: Abstract) -> Abstract:
    """Whether a logger takes messages of a level. It may be another answer in the next call."""
    number = str(known_value(reader, level, "the level", node, int))
    enabled = _takes(owner.value, number)
    reader.guard(Summary(_takes, Constant(owner.value), (number,)), enabled)
    return Static(enabled)


def _takes(logger: logging.Logger, level: str) -> bool:
    return logger.isEnabledFor(int(level))


@handles(logging.getLogger)
def get_logger(reader: Reader, node: ast.AST, name: Abstract = Static(None)) -> Abstract:
    known = None if is_none(name) else known_value(reader, name, "the name of the logger", node, str)
    return Static(logging.getLogger(known))


def _of_module(level: int) -> Any:
    def log_of_module(reader: Reader, node: ast.AST, message: Abstract, *args: Abstract) -> Abstract:
        return log(reader, node, "root", level, message, args)

    return log_of_module


for _name, _level in _LEVELS.items():
    handles(getattr(logging, _name))(_of_module(_level))


def log(reader: Reader, node: ast.AST, name: str, level: int, message: Abstract, args: Sequence[Abstract]) -> Abstract:
    """A log message. Like `print`, it happens once."""
    if args:
        template = known_value(reader, message, "the text of the message", node, str)
        message = percent_format(reader, template, tuple(args), node)
    text = joined(literal(f"{level} {name}\n"), text_of(reader, message, node))
    reader.add(Print((Formatted(text.template, text.values),), to="log", span=reader.span))
    return Static(None)


@handles(warnings.warn)
def warn_call(
    reader: Reader,
    node: ast.AST,
    message: Abstract,
    category: Abstract = Static(None),
    stacklevel: Abstract = Static(1),
) -> Abstract:
    kind = UserWarning if is_none(category) else getattr(category, "value", None)
    if not (isinstance(kind, type) and issubclass(kind, Warning)):
        reader.refuse("SD102", node, "`warnings.warn` takes a text, and a class of warnings")
    text = joined(literal(f"{kind.__module__} {kind.__qualname__}\n"), text_of(reader, message, node))
    reader.add(Print((Formatted(text.template, text.values),), to="warn", span=reader.span))
    return Static(None)


@handles(warnings.simplefilter, warnings.filterwarnings)
def filter_call(reader: Reader, node: ast.AST, *args: Abstract, **keywords: Abstract) -> Abstract:
    """`warnings.filterwarnings` and similar calls: derivatives only give the warnings of the program."""
    if args and args[0] == Static("error"):
        reader.refuse("SD102", node, "warnings that become errors are not supported")
    return Static(None)
