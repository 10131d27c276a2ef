"""The generated module: imports, helper functions, and the requested function."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from srcdiff.diagnostics import Span, printable
from srcdiff.emit import support
from srcdiff.emit.expressions import Origin, Text
from srcdiff.emit.formatting import PRINTERS, formatted
from srcdiff.emit.head import name_objects, write_head
from srcdiff.emit.spelling import NUMPY, Spelling
from srcdiff.emit.write import write_function
from srcdiff.frontend.domain.abstract_values import Abstract, List, Record, Static, Tuple
from srcdiff.frontend.reading import Reading
from srcdiff.ir.nodes import Function, Library, Raise, Value, walk
from srcdiff.ir.primitives import BROUGHT_ALONG, RESERVED
from srcdiff.ir.types import Type
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.passes.workspace_parameters import WorkspaceBuffer, kept_elsewhere
from srcdiff.quick_dataclasses import dataclass
from srcdiff.rules import scipy_functions, shape_derivatives, special
from srcdiff.signature.trees import NODES


@dataclass(slots=True)
class Module:
    name: str = ""
    text: str = ""
    support: set[str] = field(default_factory=set)
    objects: dict[str, Any] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    """The functions that the text defines."""
    workspace: tuple[WorkspaceBuffer, ...] = ()
    """The buffers that the last function takes from its caller."""
    kept_elsewhere: tuple[Span, ...] = ()
    """The source lines of values that are kept outside the workspace."""
    origins: tuple[Origin, ...] = ()
    """The origin of each line of the text. Unknown if the text comes from the disk cache."""
    kernels: dict[str, tuple[Type, ...]] = field(default_factory=dict)
    """The functions that a GPU runs, with the types of their parameters."""


def write_module(
    main: Function,
    callees: Sequence[Function],
    reading: Reading,
    further: dict[str, Abstract],
    result: str,
    workspace: tuple[WorkspaceBuffer, ...] = (),
    kernels: Sequence[Function] = (),
    instead: Mapping[Value, Value] | None = None,
    spelling: Spelling = NUMPY,
) -> Module:
    """Write the module. `further` are additional parameters, and `result` is a template of the return value.

    `kernels` are functions that the main function launches. `instead` maps parameters to their replacements.
    """
    module = Module(main.name, workspace=workspace, kept_elsewhere=kept_elsewhere((main, *callees)))
    module.kernels = {k.name: tuple(p.type for p in k.params) for k in kernels}
    reserved = sorted({c.name for c in callees} | {main.name, *module.kernels})
    module.objects = {kind.__name__: kind for kind in _namedtuples(reading)}
    objects = name_objects((*callees, *kernels, main), module.objects.values(), reserved)
    texts: list[Text] = [
        write_function(c, parameters=c.params, result=_tuple_of(c), reserved=reserved, objects=objects) for c in callees
    ]
    in_kernel: dict[str, Any] = {"reserved": reserved, "objects": objects, "spelling": spelling, "on_host": False}
    for kernel in kernels:
        text = write_function(kernel, parameters=kernel.params, in_thread=True, **in_kernel)
        text.decorate(spelling.kernel)
        texts.append(text)
    parameters, unpack = _parameters(reading, further)
    if instead:
        parameters = [p if isinstance(p, str) else instead.get(p, p) for p in parameters]
        unpack = [(instead.get(value, value), text) for value, text in unpack]
    texts.append(
        write_function(
            main,
            doc=first_line_about(reading),
            parameters=[*parameters, *main.params[len(main.params) - len(workspace) :]],
            unpack=unpack,
            result=result,
            reserved=reserved,
            objects=objects,
            spelling=spelling,
        )
    )
    _put_together(module, texts, spelling)
    module.functions = [*sorted(module.support), *(c.name for c in callees), main.name]
    return module


def write_kernels(
    name: str, kernels: Sequence[Function], host: Sequence[Function], doc: str, spelling: Spelling
) -> Module:
    """Write a module with kernels that the user launches, and with functions that the host calls before the launch."""
    module = Module(name)
    module.kernels = {k.name: tuple(p.type for p in k.params) for k in kernels}
    reserved = sorted([f.name for f in (*kernels, *host)])
    objects = name_objects((*kernels, *host), taken=reserved)
    texts = [
        write_function(f, parameters=f.params, result=_tuple_of(f), reserved=reserved, objects=objects) for f in host
    ]
    for kernel in kernels:
        about = doc if kernel.name == name else ""
        in_kernel: dict[str, Any] = {"reserved": reserved, "objects": objects, "spelling": spelling, "on_host": False}
        text = write_function(kernel, parameters=kernel.params, doc=about, **in_kernel)
        text.decorate(spelling.kernel)
        texts.append(text)
    _put_together(module, texts, spelling)
    return module


def _put_together(module: Module, texts: Sequence[Text], spelling: Spelling) -> None:
    lines: list[str] = []
    origins: list[Origin] = []
    for text in texts:
        module.support |= text.support
        module.objects |= text.objects
        lines += ["", "", *text.lines]
        origins += [Origin(), Origin(), *text.origins]
    module.support = with_callees(module.support, spelling)
    for name in sorted(module.support, reverse=True):
        decorator = [spelling.device_function] if spelling.device_function else []
        lines = ["", "", *decorator, *plain_source(support_function(name, spelling)), *lines]
    named = {name for name in ("math", "np", "special", spelling.arrays) if any(_names(line, name) for line in lines)}
    named |= {"prange"} if any(" in prange(" in line.partition("# ")[0] for line in lines) else set()
    head = write_head(module.objects, named, spelling)
    lines = [*head, *lines] if head else lines[2:]
    module.text = "\n".join(lines) + "\n"
    module.origins = (*(Origin() for _ in lines[len(origins) :]), *origins)[-len(lines) :]


def _names(line: str, module: str) -> bool:
    """Whether the code of a line uses a module."""
    return re.search(rf"\b{module}\.", line.partition("# ")[0]) is not None


def nameable(reading: Reading) -> dict[str, Any]:
    """All objects that a module for this program may use."""
    functions = (reading.program.main, *reading.program.callees)
    raised = [o.exception for f in functions for o in walk(f.body) if isinstance(o, Raise)]
    rows = [LIBRARY[o.function] for f in functions for o in walk(f.body) if isinstance(o, Library)]
    called = [row.call for row in rows if row.call is not None]
    found: list[Any] = [*raised, *called, *(formatted(e) for e in raised), *PRINTERS, *_namedtuples(reading)]
    return {x.__name__: x for x in found}


def first_line_about(reading: Reading) -> str:
    """The first line of the user's docstring."""
    lines = (reading.captured.function.__doc__ or "").strip().splitlines()
    return printable(lines[0]).replace("\\", "/").replace('"', "'") if lines else ""


def plain_source(function: Any) -> list[str]:
    """The text of a support function, without its annotations."""
    tree = ast.parse(inspect.getsource(function))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return ast.unparse(tree).split("\n")


def support_function(name: str, spelling: Spelling = NUMPY) -> Any:
    modules = (*spelling.support, support, special, scipy_functions, shape_derivatives)
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def with_callees(names: set[str], spelling: Spelling = NUMPY) -> set[str]:
    """These support functions, and those that they call."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        called = support_function(name, spelling).__code__.co_names
        waiting |= {other for other in called if other in BROUGHT_ALONG} - found
    return found


def _tuple_of(function: Function) -> str:
    slots = [f"{{{k}}}" for k in range(len(function.body.yields))]
    return f"({', '.join(slots)}{',' if len(slots) == 1 else ''})" if slots else "()"


def _parameters(reading: Reading, further: dict[str, Abstract]) -> tuple[list[str | Value], list[tuple[Value, str]]]:
    """The parameters in the `def` line, and the assignments that unpack tuples."""
    parameters, unpack = _taken(reading.arguments, reading)
    more, unpack_more = _taken(further, reading)
    return [*parameters, *(o.value for o in reading.outside), *more], unpack + unpack_more


def _taken(arguments: dict[str, Abstract], reading: Reading) -> tuple[list[str | Value], list[tuple[Value, str]]]:
    parameters: list[str | Value] = []
    unpack: list[tuple[Value, str]] = []
    for name, argument in arguments.items():
        if isinstance(argument, Static):
            continue
        if isinstance(argument, Value):
            parameters.append(argument)
        elif isinstance(argument, List):
            parameters += reading.lists[argument].arrays if argument in reading.lists else ()
        else:
            spare = f"{name}_" if name in RESERVED else name
            parameters.append(spare)
            unpack += _taken_apart(argument, spare, reading)
    return parameters, unpack


def _taken_apart(x: Abstract, text: str, reading: Reading) -> list[tuple[Value, str]]:
    if isinstance(x, Tuple | Record):
        passed = [i for i in x.items if isinstance(x, Tuple) or _is_passed(i, reading)]
        return [line for k, item in enumerate(passed) for line in _taken_apart(item, f"{text}[{k}]", reading)]
    if isinstance(x, List):
        return [(array, text) for array in (reading.lists[x].arrays if x in reading.lists else ())]
    return [(x, text)] if isinstance(x, Value) else []


def _is_passed(x: Abstract, reading: Reading) -> bool:
    """Whether it exists at run time. Constants and empty lists do not."""
    return x in reading.lists if isinstance(x, List) else not isinstance(x, Static)


def _namedtuples(reading: Reading) -> list[type]:
    nodes = NODES.nodes(Tuple((*reading.arguments.values(), reading.result)))
    return list(dict.fromkeys(x.kind for x in nodes if isinstance(x, Tuple) and x.kind is not None))
