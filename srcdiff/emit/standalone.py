"""A generated module as a self-contained file, with a wrapper that takes the arguments of the user's function.

def loss_grad(w, scale=2.0):          what users call, with arrays, dictionaries, ... of the types it was written for
    w = as_array(w, np.float64, 1)
    return _loss_grad(w, float(scale))

@compiled
def _loss_grad(w, scale):             what srcdiff wrote
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import symtable
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from srcdiff.diagnostics import NotExportedError
from srcdiff.emit import formatting
from srcdiff.emit.head import name_of
from srcdiff.emit.module import Module, plain_source
from srcdiff.frontend.boundary import result_converter
from srcdiff.frontend.domain.abstract_values import Abstract, List, Parts, Static, Stored, Tuple
from srcdiff.frontend.reading import Reading
from srcdiff.ir.nodes import Value
from srcdiff.ir.primitives import THREADS
from srcdiff.ir.types import FLOAT, Array, Scalar
from srcdiff.library.call_outs import CallOut
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.conversion import gradient_converter
from srcdiff.signature.descriptions import Description, is_passed
from srcdiff.signature.structures import Layout, is_plain_tuple, layout_of, made_layout
from srcdiff.signature.trees import NODES

LARGEST = 10_000
"""A global array with more elements is refused."""

_LARGEST_DEFAULT = 100
"""A default array with more elements is left out of the signature."""


@dataclass(slots=True)
class Exported:
    """The input of an export: a generated module, the user's function, and how the derivative is called."""

    module: Module
    reading: Reading
    descriptions: Mapping[str, Description]
    signature: inspect.Signature
    mode: str
    wrt: tuple[str, ...]
    single: bool
    with_value: bool
    has_aux: bool
    further: Mapping[str, Abstract]
    """Further inputs after the arguments: tangents, or adjoints of results."""
    asked_as: Mapping[str, str]
    """The expression for each of these."""
    parameters: Sequence[str]
    """The parameters for these."""
    written: Sequence[str]
    apart: Sequence[tuple[str, str]]
    """Pairs of arguments that must not share memory."""
    name: str
    header: str
    summary: str
    decorator: str
    """The options of the compiler; empty if nothing is compiled."""
    names: set[str] = field(default_factory=set)
    classes: dict[str, list[str]] = field(default_factory=dict)
    """The definitions of classes that results are instances of."""


def write_standalone(x: Exported) -> str:
    """The text of the file."""
    x.names = {
        *x.module.functions,
        *x.module.objects,
        *x.signature.parameters,
        *x.parameters,
        "np",
        "math",
        "numba",
        "in_threads",
    }
    inner = _free(x, f"_{x.name}")
    body = re.sub(rf"\bdef {re.escape(x.module.name)}\(", f"def {inner}(", x.module.text)
    body = re.sub(r"\A.*?(?=^def |^@)", "", body, count=1, flags=re.M | re.S)  # the file gets another head
    runs_threads = "thread_blocks" in x.module.functions
    if x.decorator:
        body = re.sub(r"^def ", "@compiled\ndef ", body, flags=re.MULTILINE)
        body = body.replace(f"@compiled\ndef {inner}(", f"@in_threads\ndef {inner}(") if runs_threads else body
    constants = {o.value: _free(x, o.value.name) for o in x.reading.outside}
    wrapper, helpers = _wrapper(x, inner, [constants[o.value] for o in x.reading.outside])
    used = "\n".join([body, *wrapper])
    defined = [line for name, thing in sorted(x.module.objects.items()) for line in _definition(name, thing, x, used)]
    defined = [*_shared_by(defined), *defined]
    classes = [line for lines in x.classes.values() for line in lines]
    values = [f"{constants[o.value]} = {_literal(o.read(), o.name)}" for o in x.reading.outside]
    compiled = [f"compiled = {x.decorator}"] if x.decorator else []
    compiled += [f"in_threads = {x.decorator[:-1]}, parallel=True)"] if runs_threads else []
    blocks = ["\n".join(lines).strip("\n") for lines in (compiled + values, classes, defined, helpers) if lines]
    text = "\n\n\n".join([*blocks, body.strip("\n"), "\n".join(wrapper)])
    apart = "\n\n" if compiled or values else "\n\n\n"
    text = f'"""{x.header}"""\n\n{_imports(text)}{apart}{text}\n'
    _require_complete(text)
    return text


def _free(x: Exported, name: str) -> str:
    """A name that is not used yet."""
    while name in x.names or hasattr(builtins, name):
        name += "_"
    x.names.add(name)
    return name


def _imports(text: str) -> str:
    """The imports that the text needs."""
    named = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    own = [f"import {m}" for m in ("collections", "dataclasses", "math", "string") if m in named]
    others = ["import numba"] if "numba" in named else []
    others += ["import numpy as np"] if "np" in named else []
    others += [f"from numba import {', '.join(THREADS)}"] if named.issuperset(THREADS) else []
    return "\n".join([*own, *([""] if own and others else []), *others])


def _require_complete(text: str) -> None:
    """Raise if the file uses a name that it does not define."""
    module = symtable.symtable(text, "exported", "exec")
    known = {s.get_name() for s in module.get_symbols() if s.is_assigned() or s.is_imported()} | set(dir(builtins))
    known |= {"__name__"}

    def missing(table: symtable.SymbolTable) -> Iterator[str]:
        for symbol in table.get_symbols():
            is_outside = symbol.is_global() or (table is module and not symbol.is_assigned())
            if symbol.is_referenced() and is_outside and symbol.get_name() not in known:
                yield symbol.get_name()
        for child in table.get_children():
            yield from missing(child)

    names = sorted(set(missing(module)))
    if names:
        raise NotExportedError(f"the generated code refers to {', '.join(names)}, which cannot be written into a file")


# -- objects that the code names -------------------------------------------------------------------------------------


def _definition(name: str, thing: Any, x: Exported, body: str) -> list[str]:
    """The text that defines an object under this name."""
    if getattr(builtins, name, None) is thing or not re.search(rf"\b{name}\b", body):
        return []
    if isinstance(thing, CallOut):
        raise NotExportedError(
            f"the generated code calls `{thing.__name__}` as it is, which cannot be written to a file"
        )
    if isinstance(thing, type) and formatting.is_formatted(thing):
        base = name_of(x.module.objects, thing.__base__)
        by_parts = f"raise {name}((" in body
        return [*_definition(base, thing.__base__, x, base), *_formatted(name, base, by_parts)]
    if thing in formatting.PRINTERS:
        return _printer(name, thing, compiled=bool(x.decorator))
    if isinstance(thing, type) and hasattr(thing, "_fields"):
        return ["", "", f"{name} = collections.namedtuple({name!r}, {list(thing._fields)!r})"]
    if thing.__module__.split(".")[0] == "numpy":
        return ["", f"{name} = {thing.__module__.replace('numpy', 'np', 1)}.{thing.__qualname__}"]
    return _source_of(name, thing)


def _formatted(name: str, base: str, by_parts: bool) -> list[str]:
    """The class; one exception may have several arguments, some of them texts with numbers in them."""
    if by_parts:
        parts = "_filled(part, left) for part in ((layout,) if isinstance(layout, str) else layout)"
        body = ["        left = map(_plain, values)", f"        return {base}(*({parts}))"]
    else:
        body = [f"        return {base}(layout.format(*map(_plain, values)))"]
    text = "Makes the exception with numbers in its text: compiled code cannot format them, but it can call a class."
    head = ["", "", f"class {name}({base}):", f'    """{text}"""', "", "    def __new__(cls, layout, *values):"]
    return [*head, *body]


def _printer(name: str, function: Callable[..., Any], *, compiled: bool) -> list[str]:
    lines = ["", "", *plain_source(function)]
    if compiled:
        lines += f"""

@numba.extending.overload({name})
def compiled_{name}(template, *values):
    def run(template, *values):
        with numba.objmode():
            {name}(template, *values)

    return run""".split("\n")
    return lines


def _shared_by(definitions: Sequence[str]) -> list[str]:
    """The functions that definitions call, each after the functions that it calls itself."""
    text = "\n".join(definitions)
    needed = [formatting._plain] if "_plain" in text else []
    more: list[Callable[..., Any]] = [formatting.fields, formatting._filled] if "_filled(" in text else []
    return [line for function in (*needed, *more) for line in ["", "", *plain_source(function)]]


def _source_of(name: str, thing: Any) -> list[str]:
    """The definition of a class of the user."""
    if thing.__name__ != name:
        raise NotExportedError(f"two classes are called `{thing.__name__}`")
    try:
        lines = textwrap.dedent(inspect.getsource(thing)).rstrip().split("\n")
    except (OSError, TypeError):
        raise NotExportedError(f"`{name}` has no source text that could be written into a file") from None
    return ["", "", *lines]


def _literal(value: Any, name: str) -> str:
    """A global number or array with its current value."""
    if isinstance(value, np.ndarray):
        if value.size > LARGEST:
            raise NotExportedError(
                f"`{name}` from outside of the function is an array of {value.size} elements, too many to be written "
                f"into a file: pass it as an argument"
            )
        nested = re.sub(r"\bnan\b", "np.nan", re.sub(r"\binf\b", "np.inf", repr(value.tolist())))
        return f"np.array({nested}, dtype=np.{value.dtype.name}).reshape({value.shape})"
    number = re.sub(r"\bnan\b", "np.nan", re.sub(r"\binf\b", "np.inf", repr(float(value))))
    return f"np.float32({number})" if isinstance(value, np.float32) else number


# -- the function that users call ------------------------------------------------------------------------------------


def _wrapper(x: Exported, inner: str, constants: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lines of the function, and of the functions that it calls."""
    taking = _Taking(x)
    given = [taking.whole(d, n) for n, d in x.descriptions.items() if is_passed(d)]
    further = [taking.beside(x, value, name) for name, value in x.further.items()]
    call = f"{inner}({', '.join([*given, *constants, *(f for f in further if f is not None)])})"
    lines = [f"def {x.name}{_signature(x)}:", f'    """{x.summary}"""', *(f"    {line}" for line in taking.checks)]
    for a, b in x.apart:
        lines.append(f"    if np.shares_memory({a}, {b}):")
        text = f"`{a}` and `{b}` share memory, and one of them is written"
        lines.append(f"        raise ValueError({text!r})")
    result = _free(x, "result")
    returned = _returned(x, result)
    if returned == result:
        lines.append(f"    return {call}")
    else:
        lines += [f"    {result} = {call}", f"    return {returned}"]
    return lines, taking.helpers()


def _signature(x: Exported) -> str:
    """The parameters of the user's function that are not constants here, with the defaults that can be written."""
    empty, parameters = inspect.Parameter.empty, list[inspect.Parameter]()
    needed = bool(x.parameters)  # a parameter after one with a default needs a default too
    for name, parameter in reversed(list(x.signature.parameters.items())):
        if is_passed(x.descriptions[name]):
            text = None if parameter.default is empty or needed else _default(x, parameter.default)
            by_position = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            needed = needed or (text is None and by_position)
            default: Any = empty if text is None else _Text(text)
            parameters.insert(0, parameter.replace(annotation=empty, default=default))
    last = [p for p in parameters if p.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)]
    kind = inspect.Parameter.KEYWORD_ONLY if last else inspect.Parameter.POSITIONAL_OR_KEYWORD
    return str(inspect.Signature([*parameters, *(inspect.Parameter(n, kind) for n in x.parameters)]))


class _Text(str):
    """Constants that a signature can contain."""

    __repr__ = str.__str__


def _default(x: Exported, value: Any) -> str | None:
    """A default as an expression; None if it cannot be written as one."""
    if value is None or type(value) in (bool, int, str):
        return repr(value)
    if type(value) is float or isinstance(value, np.floating | np.ndarray):
        return _literal(value, "the default") if np.size(value) <= _LARGEST_DEFAULT else None
    kind, layout = type(value), layout_of(value)
    if not (kind in (tuple, list, dict) or (isinstance(value, tuple) and is_plain_tuple(kind))):
        return None
    parts = [] if layout is None else [_default(x, part) for part in layout.taken_apart(value)]
    texts = [part for part in parts if part is not None]
    return None if layout is None or len(texts) != len(parts) else _made(x, layout, texts)


class _Taking:
    """Writes code that flattens an argument and checks its type."""

    def __init__(self, x: Exported) -> None:
        self.x = x
        self.checks: list[str] = []
        self.plain = not x.decorator
        self.writes = set(x.written) if x.mode == "primal" else set()
        self.as_array, self.to_write = _free(x, "as_array"), _free(x, "array_to_write")
        self.needs: set[str] = set()

    def whole(self, d: Description, name: str) -> str:
        """An argument; arrays keep their names."""
        made = self.argument(d, name, name)
        if d.kind == "value" and isinstance(d.detail, Array):
            self.checks.append(f"{name} = {made}")
            return name
        return made

    def argument(self, d: Description, text: str, name: str) -> str:
        match d.kind:
            case "value" if isinstance(d.detail, Array):
                return self.array(d.detail, text, written=text in self.writes)
            case "value":
                return self.number(d.detail, text)
            case "stored":
                return f"np.array({text}, dtype=np.{d.parts[0].detail.dtype})"
            case "tuple" | "record":
                return self.group(d, d.layout, text)
        raise NotExportedError(f"the argument `{name}` is of a kind that cannot be exported")

    def group(self, d: Description, layout: Layout, text: str) -> str:
        """A tuple keeps its form, with None for constants. Other structures become tuples of their run-time parts."""
        _require_plain_keys(layout)
        if not layout.is_instance:
            keys = f"the keys {', '.join(map(repr, layout.names))}"
            count = f"{len(d.parts)} {'elements' if layout.kind is list else 'parts'}"
            self.require_length(text, len(d.parts), keys if layout.is_mapping else count)
        parts = [self.part(p, layout.part(text, k), text) for k, p in enumerate(d.parts)]
        if d.kind == "tuple":
            return _made(self.x, layout, [part or "None" for part in parts])
        return _tuple([part for part in parts if part is not None])

    def part(self, d: Description, text: str, name: str) -> str | None:
        """A part of an argument. None for a constant part, which must have the value that it had at export."""
        if is_passed(d):
            return self.argument(d, text, name)
        value = [] if d.kind == "items" else d.detail[1]
        if value is None or isinstance(value, bool | str | list):
            self.checks += [f"if {text} != {value!r}:", f"    raise ValueError({f'`{text}` has to be {value!r}'!r})"]
        return None

    def require_length(self, text: str, count: int, has: str) -> None:
        message = f"`{text}` has to have {has}"
        self.checks += [f"if len({text}) != {count}:", f"    raise TypeError({message!r})"]

    def array(self, kind: Array, text: str, *, written: bool = False) -> str:
        function = self.to_write if written else self.as_array
        self.needs.add(function)
        return f"{function}({text}, np.{kind.dtype}, {kind.rank})"

    def number(self, kind: Scalar, text: str) -> str:
        if kind == FLOAT:
            return f"np.float64({text})" if self.plain else f"float({text})"
        return f"np.float32({text})" if kind.dtype == "float32" else text

    def beside(self, x: Exported, value: Abstract, name: str) -> str | None:
        """A tangent of an argument, or an adjoint of a result; None if it does not exist at run time."""
        if name.endswith("_dot"):
            of: Abstract = x.reading.arguments[name.removesuffix("_dot")]
        else:
            of = x.reading.result if name == "result_bar" else value
        return None if isinstance(value, Static) else self.like(value, of, x.asked_as.get(name, name))

    def like(self, value: Abstract, of: Abstract, text: str) -> str:
        """An expression for a value with the types of `of`: floats, arrays, and tuples of these."""
        match value:
            case Value(type=Array() as kind):
                return self.array(kind, text)
            case Value():
                return self.number(FLOAT, text)
            case Tuple() if isinstance(of, List | Stored):
                if all(isinstance(item, Static) for item in value.items):
                    return _tuple(["None"] * len(value.items))
                if isinstance(of, Stored) and of.element.kind != "value":
                    raise NotExportedError("adjoints of lists can be exported only if the lists contain numbers")
                return _tuple([f"np.array({text}, dtype=float)", *["None"] * (len(value.items) - 1)])
            case Tuple() if isinstance(of, Parts):
                each = enumerate(zip(value.items, of.items, strict=True))
                return _tuple([self.like(v, o, of.layout.part(text, k)) for k, (v, o) in each])
        return "None"

    def helpers(self) -> list[str]:
        lines: list[str] = []
        if self.as_array in self.needs:
            lines += _AS_ARRAY.format(name=self.as_array).rstrip("\n").split("\n")
        if self.to_write in self.needs:
            lines += [*([""] * 2 if lines else []), *_TO_WRITE.format(name=self.to_write).rstrip("\n").split("\n")]
        return lines


_AS_ARRAY = '''\
def {name}(x, dtype, rank):
    """The argument as an array of the type that the code was written for; nothing is lost on the way."""
    array = np.asarray(x)
    if array.ndim != rank:
        raise TypeError(f"an array of {{array.ndim}} axes is given, the code was written for {{rank}}")
    if array.dtype != dtype:
        array = array.astype(dtype, casting="safe")
    return np.ascontiguousarray(array) if rank else array
'''

_TO_WRITE = '''\
def {name}(x, dtype, rank):
    """An array that is written into: it has to be what the code was written for."""
    if not isinstance(x, np.ndarray) or x.dtype != dtype or x.ndim != rank or not x.flags.c_contiguous:
        raise TypeError(f"an array of {{dtype.__name__}} with {{rank}} axes, in order, is needed: it is written into")
    return x
'''


def _tuple(parts: Sequence[str]) -> str:
    return made_layout(tuple, len(parts)).text(parts)


# -- what it returns -------------------------------------------------------------------------------------------------


def _returned(x: Exported, text: str) -> str:
    """The result in the structure that the user's function returns, or in that of the arguments."""
    shape = x.reading.result
    if x.mode == "primal":
        return _listed(x, shape, text)
    if x.mode == "forward":
        parts = [_with_written(x, f"{text}[{2 * k}]", f"{text}[{2 * k + 1}]") for k in range(1 + x.with_value)]
        return ", ".join(parts)
    alone = not x.with_value and not x.has_aux
    gradient = text if alone else f"{text}[{int(x.with_value)}]"
    described = [x.descriptions.get(n, Description("value", FLOAT)) for n in x.wrt]
    if x.single:
        bars = _gradient(x, described[0], x.wrt[0], gradient)
    elif any(map(gradient_converter, described)):
        each = enumerate(zip(described, x.wrt, strict=True))
        bars = _tuple([_gradient(x, d, n, f"{gradient}[{k}]") for k, (d, n) in each])
    else:
        bars = gradient
    if alone:
        return bars
    if x.with_value:
        value = _listed(x, shape, f"{text}[0]")
        return text if (value, bars) == (f"{text}[0]", gradient) else f"{value}, {bars}"
    assert isinstance(shape, Tuple)
    rest = _listed(x, shape.items[1], f"{text}[1]")
    return text if (bars, rest) == (gradient, f"{text}[1]") else f"{bars}, {rest}"


def _with_written(x: Exported, text: str, arrays: str) -> str:
    """The expression to return. If the function returns nothing, these are the arrays that it writes."""
    if isinstance(x.reading.result, Static) and x.reading.result.value is None and x.written:
        return "{" + ", ".join(f"{n!r}: {arrays}[{k}]" for k, n in enumerate(x.written)) + "}"
    return _listed(x, x.reading.result, text)


def _listed(x: Exported, shape: Abstract, text: str) -> str:
    """A result with its lists, dictionaries and dataclasses."""
    if result_converter(shape) is None:
        return text
    match shape:
        case Parts():
            return _made(x, shape.layout, [_listed(x, i, f"{text}[{k}]") for k, i in enumerate(shape.items)])
        case Stored():
            length = f"{text}[{len(shape.arrays)}]"
            columns = [
                f"{text}[{k}][:{length}].tolist()"
                if isinstance(array.type, Array)
                else f"list({text}[{k}][1 : {length} + 1])"
                for k, array in enumerate(shape.arrays)
            ]
            if shape.element.kind == "value":
                return columns[0]
            names = [f"e{k}" for k in range(len(columns))]
            left = iter(names)
            element = NODES.fold(
                shape.element,
                lambda d: repr(d.detail[1]) if d.kind == "static" else next(left),
                lambda d, parts: _made(x, d.layout, parts),
            )
            if not columns:
                return f"[{element} for _ in range({length})]"
            return f"[{element} for {', '.join(names)}, in zip({', '.join(columns)}, strict=True)]"
    raise NotExportedError("the result is of a kind that cannot be exported")


def _gradient(x: Exported, d: Description, argument: str, text: str) -> str:
    """The gradient in the structure of its argument."""
    if d.kind == "stored":
        return f"{text}[: len({argument})].tolist()"
    if gradient_converter(d) is None:
        return text
    layout = d.layout
    parts = [_gradient(x, p, layout.part(argument, k), f"{text}[{k}]") for k, p in enumerate(d.parts)]
    return _made(x, layout, parts)


def _require_plain_keys(layout: Layout) -> None:
    if layout.types:
        raise NotExportedError("a dictionary whose keys are members of an enum cannot be exported")


def _made(x: Exported, layout: Layout, parts: Sequence[str]) -> str:
    """A tuple, a dictionary, a list, or an instance of a class that is defined in the file."""
    _require_plain_keys(layout)
    name = layout.kind.__name__
    if not layout.is_instance:
        is_named = hasattr(layout.kind, "_fields")
        if is_named and x.module.objects.setdefault(name, layout.kind) is not layout.kind:
            raise NotExportedError(f"two classes are called `{name}`")
        return layout.text(parts)
    frozen = layout.kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    lines = [f"@dataclasses.dataclass({'frozen=True' if frozen else ''})".replace("()", ""), f"class {name}:"]
    lines += [f"    {n}: object" for n in layout.names] or ["    pass"]
    before = x.classes.setdefault(name, lines if not x.classes else ["", "", *lines])
    if [line for line in before if line] != lines:
        raise NotExportedError(f"two classes are called `{name}`")
    return f"{name}({', '.join(parts)})"
