"""Explanations of a gradient: which inputs reach the result, what is stored or recomputed, which loops are fused."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from srcdiff.analyses.comparison_searches import comparison_searches
from srcdiff.analyses.equality_tests import equality_tests
from srcdiff.analyses.kept_sizes import Sizes
from srcdiff.analyses.reach import Cut, reach, reaches, reason
from srcdiff.analyses.structure import structure_of
from srcdiff.analyses.table_searches import table_searches
from srcdiff.diagnostics import Span, printable
from srcdiff.frontend.domain.abstract_values import Abstract
from srcdiff.frontend.reading import Reading
from srcdiff.inspect.terminal import amount, painted, wants_colour
from srcdiff.ir.nodes import Alloc, Call, Function, Library, NewStack, Value, walk
from srcdiff.ir.types import Array, Scalar, Stack, bytes_of, is_complex, is_inexact
from srcdiff.ir.words import WORDS
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.passes.compilation import Compilation
from srcdiff.passes.loops_in_threads import Choice
from srcdiff.passes.requested import chosen_values, outputs_of
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.descriptions import type_text
from srcdiff.signature.structures import Layout
from srcdiff.signature.trees import NODES


@dataclass(frozen=True, slots=True)
class Input:
    """An argument, and what becomes of it."""

    name: str
    type: str
    reaches: bool | None
    """Whether the result depends on it with a derivative; None if it holds no floats."""
    path: tuple[Span, ...]
    """The lines that carry it on to the result."""
    cuts: tuple[Cut, ...]
    """The operation that cuts it off, or a part of the values that depend on it."""
    cut_off: tuple[Input, ...] = ()
    """The parts of a tuple, a dictionary or a dataclass that do not reach the result, where others do."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A variable from outside, which is held constant."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Kept:
    """Values of a variable that are kept until the reverse sweep reads them."""

    variable: str
    """Its name; empty for a part of an expression."""
    span: Span
    formula: str
    """How many bytes, in terms of the arguments; `iterations`, `sizes`, `values` and `calls` show only when it runs."""
    nbytes: int | None
    """The same for the example arguments."""
    storage: str
    """The name of its memory in the generated code, which may append a number."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A variable that the reverse sweep computes again, because that is cheaper than keeping it."""

    variable: str
    """Its name; empty for a part of an expression."""
    span: Span | None


@dataclass(frozen=True, slots=True)
class Shared:
    """Loops of these lines that have been joined: so many before, so many after."""

    lines: tuple[Span, ...]
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ExternalCall:
    """A function of `srcdiff.external`, and its derivative: `vjp`, `jvp` or differences."""

    function: str
    derivative: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class Threaded:
    """A loop of the derivative, and whether threads share it."""

    span: Span | None
    in_threads: bool
    why: str
    """The private memory of each block of iterations, or the reason why one thread runs the loop."""


@dataclass(frozen=True, slots=True)
class ComplexValues:
    """A variable that has complex values, in a line that computes it."""

    variable: str
    """Its name; empty for a part of an expression."""
    type: str
    span: Span


@dataclass(frozen=True, slots=True)
class Claimed:
    """A property of a loop over `prange` that is unknown, and assumed because the user claims it."""

    span: Span | None
    what: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a derivative: text, with colour in a terminal, and HTML in a notebook."""

    function: str
    span: Span
    wrt: tuple[str, ...]
    inputs: tuple[Input, ...]
    constants: tuple[Constant, ...]
    kept: tuple[Kept, ...]
    repeated: tuple[Repeated, ...]
    shared: tuple[Shared, ...]
    equality_tests: tuple[Span, ...]
    """Tests for equality that decide what is differentiated."""
    external: tuple[ExternalCall, ...]
    """Functions that are called as they are."""
    assumed: dict[str, str]
    """For each guessed argument type, what suggests it."""
    threads: tuple[Threaded, ...] = ()
    """The loops of the derivative, if `parallel=True`."""
    claims: tuple[Claimed, ...] = ()
    """The unproved properties of loops over `prange`."""
    complex_values: tuple[ComplexValues, ...] = ()
    """Where the function computes with complex numbers."""
    searches: tuple[Span, ...] = ()
    """Comparisons by which loops search roots or minima, so that the derivative of what they find is lost."""

    @property
    def nbytes(self) -> int | None:
        """The number of stored bytes for the example arguments."""
        sizes = [k.nbytes for k in self.kept]
        return None if None in sizes else sum(n for n in sizes if n is not None)

    def __getitem__(self, name: str) -> Input:
        """The explanation of one input."""
        return next(i for i in self.inputs if i.name == name)

    def __str__(self) -> str:
        return self.text(colour=wants_colour())

    __repr__ = __str__

    def text(self, *, colour: bool = False) -> str:
        return "\n".join(_Text(self, colour).lines())

    def _repr_html_(self) -> str:
        return _html(self)

    def data(self) -> dict[str, Any]:
        """All of it as numbers, strings, lists and dictionaries."""
        return {
            "function": self.function,
            "file": self.span.file,
            "line": self.span.line,
            "wrt": list(self.wrt),
            "assumed": dict(self.assumed),
            "inputs": [_data_of(i) for i in self.inputs],
            "constants": [{"name": c.name, "type": c.type} for c in self.constants],
            "kept": [
                {"variable": k.variable, "formula": k.formula, "nbytes": k.nbytes, **_place(k.span)} for k in self.kept
            ],
            "repeated": [{"variable": r.variable, **_place(r.span)} for r in self.repeated],
            "equality_tests": [_place(span) for span in self.equality_tests],
            "searches": [_place(span) for span in self.searches],
            "external": [{"function": e.function, "derivative": e.derivative, **_place(e.span)} for e in self.external],
            "threads": [{"in_threads": t.in_threads, "why": t.why, **_place(t.span)} for t in self.threads],
            "claims": [{"what": c.what, **_place(c.span)} for c in self.claims],
            "complex_values": [{"variable": c.variable, "type": c.type, **_place(c.span)} for c in self.complex_values],
            "shared": [
                {"before": s.before, "after": s.after, "lines": [_place(line) for line in s.lines]} for s in self.shared
            ],
        }


def _data_of(one: Input) -> dict[str, Any]:
    return {
        "name": one.name,
        "type": one.type,
        "reaches": one.reaches,
        "path": [_place(s) for s in one.path],
        "cuts": [{"kind": c.kind, "text": c.text, **_place(c.span)} for c in one.cuts],
        "cut_off": [_data_of(part) for part in one.cut_off],
    }


def _place(span: Span | None) -> dict[str, Any]:
    return {} if span is None else {"file": span.file, "line": span.line, "text": span.text.strip()}


# -- from the results of the passes ----------------------------------------------------------------------------------


def explained(
    work: Compilation, names: Sequence[str], given: Mapping[str, Any], assumed: dict[str, str]
) -> Explanation:
    """The explanation of these inputs; `given` are example arguments, by name."""
    reading, captured = work.reading, work.request.captured
    span = Span(captured.file, captured.node.lineno, captured.node.col_offset, 0, captured.name)
    return Explanation(
        captured.name,
        span,
        work.request.wrt,
        tuple(_input(work, name) for name in names),
        tuple(dict.fromkeys(Constant(o.name, str(o.value.type)) for o in reading.outside if is_inexact(o.value.type))),
        tuple(kept_values(work, given)),
        tuple(_repeated(work)),
        tuple(_shared(work)),
        _deciding(work, equality_tests),
        tuple(_external(work)),
        assumed,
        tuple(dict.fromkeys(_threaded(c) for c in work.choices if c.span is not None)),
        tuple(dict.fromkeys(Claimed(span, conflict.what) for span, conflict in work.claims)),
        tuple(_complex_values(work)),
        (*_deciding(work, comparison_searches), *_deciding(work, table_searches)),
    )


def _deciding(
    work: Compilation, tests: Callable[[Function, Sequence[Value], Iterable[Value]], list[Span]]
) -> tuple[Span, ...]:
    """The tests that decide the derivative."""
    assert work.differentiated is not None
    inputs = [v for name in work.request.wrt for v in chosen_values(work, name)]
    program = work.differentiated
    return tuple(tests(program, inputs, [program.body.yields[k] for k in outputs_of(work)]))


def _complex_values(work: Compilation) -> Iterator[ComplexValues]:
    """The complex variables of each line; of a line without any, the parts of expressions that are complex."""
    assert work.differentiated is not None
    lines: dict[tuple[str, int], list[ComplexValues]] = {}
    for operation in walk(work.differentiated.body):
        span = operation.span
        if span is None:
            continue
        for value in operation.defines():
            if isinstance(value.type, Scalar | Array) and is_complex(value.type):
                found = ComplexValues(_user_name(value.name, span), str(value.type), span)
                lines.setdefault((span.file, span.line), []).append(found)
    for line in sorted(lines):
        named = {c.variable: c for c in lines[line] if c.variable}
        yield from named.values() or lines[line][-1:]


def _external(work: Compilation) -> Iterator[ExternalCall]:
    assert work.differentiated is not None
    calls = [o for o in walk(work.differentiated.body) if isinstance(o, Library) and o.function in LIBRARY]
    rows = [(LIBRARY[o.function].call, o.span) for o in calls]
    yield from dict.fromkeys(ExternalCall(c.__name__, c.derivative, span) for c, span in rows if c and not c.is_own)


def _input(work: Compilation, name: str) -> Input:
    values = chosen_values(work, name)
    type_ = type_text(work.request.arguments[name]) if name in work.request.arguments else "float64"
    if not values:
        return Input(name, type_, None, (), ())
    assert work.differentiated is not None
    outputs, program = outputs_of(work), work.differentiated
    found = reach(work.reading, program, name, values, outputs)
    parts = [v for v in values if len(values) > 1 and not reaches(program, [v], outputs)] if found.reaches else []
    cut_off = []
    for part in parts:
        place = dict(_names(work.reading))[part]
        cuts = reach(work.reading, program, place, [part], outputs).cuts
        cut_off.append(Input(place, str(part.type), False, (), cuts))
    return Input(name, type_, found.reaches, found.path, found.cuts, tuple(cut_off))


def kept_values(work: Compilation, given: Mapping[str, Any]) -> Iterator[Kept]:
    """The buffers that the final program stores for its reverse sweep; `given` are example arguments, by name."""
    names = dict(_names(work.reading))
    values = {**{o.name: o.read() for o in work.reading.outside if not o.path}, **given}
    found: list[Kept] = []
    for function in (work.main, *work.callees):
        sizes = Sizes(function, names)
        shared = {v for o in walk(function.body) if isinstance(o, Call) for v in o.args}
        for operation in walk(function.body):
            if isinstance(operation, Alloc | NewStack) and operation.keeps is not None:
                size = sizes.of(operation) if isinstance(operation, Alloc) else None
                formula = _unknown_size(operation, shared) if size is None else str(size)
                formula += "" if function is work.main else " * calls"
                known = size is not None and not (isinstance(operation, Alloc) and operation.grows)
                nbytes = size.evaluated(values) if size and known and given and function is work.main else None
                variable = _user_name(operation.out.name.removeprefix("kept_"), operation.keeps)
                found.append(Kept(variable, operation.keeps, formula, nbytes, operation.out.name))
    yield from sorted(found, key=lambda k: (k.span.file, k.span.line))


def _unknown_size(operation: Alloc | NewStack, shared: set[Value]) -> str:
    """The formula for a size that is known only at run time; recursive calls share stacks of values."""
    type_ = operation.out.type.element if isinstance(operation.out.type, Stack) else operation.out.type
    assert not isinstance(type_, Stack)
    factors = [str(bytes_of(type_.dtype))]
    factors += ["sizes"] if isinstance(type_, Array) else []
    factors += [("values" if operation.out in shared else "iterations")] if isinstance(operation, NewStack) else []
    return " * ".join(factors)


def _user_name(name: str, span: Span | None) -> str:
    """The name, if it comes from the user's code and not from a library function."""
    known = frozenset() if span is None else _identifiers(span.file, span.function)
    parts = name.split("_")
    is_made_of_theirs = all(p in known or p in WORDS for p in parts) and any(p in known for p in parts)
    return name if name in known or is_made_of_theirs else ""


def _identifiers(file: str, function: str) -> frozenset[str]:
    """The names in a function of a file. Without such a function, the names in the file."""
    functions = _identifiers_of_functions("".join(linecache.getlines(file)))
    return functions.get(function, functions[""])


@functools.lru_cache(maxsize=8)
def _identifiers_of_functions(text: str) -> dict[str, frozenset[str]]:
    """The names in each function of a text, by the name of the function, and those in the whole text, by ""."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {"": frozenset()}
    found: dict[str, set[str]] = {}
    for function in (tree, *(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))):
        inside = [n for n in ast.walk(function) if isinstance(n, ast.Name | ast.arg)]
        names = found.setdefault(getattr(function, "name", ""), set())
        names.update(n.id if isinstance(n, ast.Name) else n.arg for n in inside)
    return {name: frozenset(names) for name, names in found.items()}


def _names(reading: Reading) -> Iterator[tuple[Value, str]]:
    """The expressions of the parts of arguments and outside variables, as a user would write them."""

    def parts(x: Abstract, text: str) -> Iterator[tuple[Value, str]]:
        for part in NODES.named(x, text, Layout.attribute):
            if isinstance(part.value, Value):
                yield part.value, part.name
            elif part.value in reading.lists:
                yield from ((array, part.name) for array in reading.lists[part.value].arrays)

    for name, argument in reading.arguments.items():
        yield from parts(argument, name)
    for outside in reading.outside:
        yield outside.value, "".join([outside.name, *(f"[{k}]" for k in outside.path)])


def _repeated(work: Compilation) -> Iterator[Repeated]:
    definition = structure_of(work.main).definition
    found = work.decisions.computed_again(work.main)
    spans = [(_user_name(v.name, definition[v].span), definition[v].span) for v in found]
    lines = {_line(span) for name, span in spans if name}
    rows = [Repeated(name, span) for name, span in spans if name or _line(span) not in lines]
    yield from {(r.variable, _line(r.span)): r for r in rows}.values()


def _line(span: Span | None) -> tuple[str, int] | None:
    return None if span is None else (span.file, span.line)


def _shared(work: Compilation) -> Iterator[Shared]:
    groups: dict[tuple[Span, ...], list[int]] = {}
    for loops in work.decisions.joined():
        lines = {_line(loop.span): loop.span for loop in loops if loop.span is not None}
        groups.setdefault(tuple(sorted(lines.values(), key=lambda s: (s.file, s.line))), []).append(len(loops))
    for spans in sorted(groups, key=lambda spans: [s.line for s in spans]):
        yield Shared(spans, sum(groups[spans]), len(groups[spans]))


def _threaded(choice: Choice) -> Threaded:
    if not choice.in_threads:
        return Threaded(choice.span, False, choice.reason)
    arrays = " and ".join(f"`{name}`" for name in dict.fromkeys(choice.private))
    told = ["its iterations are independent, as `prange` says"] if choice.on_word else []
    told += [f"each block of iterations adds to {arrays} of its own"] if arrays else []
    shared = " and ".join(f"`{name}`" for name in dict.fromkeys(choice.atomic))
    told += [f"threads add to {shared} atomically"] if shared else []
    return Threaded(choice.span, True, "; ".join(told))


_EXTERNAL_TITLE = "functions that are called as they are"
_THREADS_TITLE = "threads share the iterations of loops"
_CLAIMS_TITLE = "loops over `prange`: what is taken on your word"
_COMPLEX_TITLE = "complex numbers"
_SEARCHES_TITLE = "searches by comparisons: the derivative of what they find is lost"
_EQUALITY_TITLE = "tests for equality: there, the derivative is that of the side that runs"


# -- as text ---------------------------------------------------------------------------------------------------------


class _Text:
    def __init__(self, explanation: Explanation, colour: bool) -> None:
        self.all, self.colour = explanation, colour

    def paint(self, text: str, style: str) -> str:
        return painted(text, style, self.colour)

    def lines(self) -> Iterator[str]:
        found, span = self.all, self.all.span
        place = self.paint(f"{printable(Path(span.file).name)}:{span.line}", "faint")
        yield f"{self.paint(found.function, 'title')}  {place}"
        for one in found.inputs:
            yield ""
            yield from self.input(one)
        if found.constants:
            names = ", ".join(f"{c.name} ({c.type})" for c in found.constants)
            yield from ("", f"{self.paint('held constant', 'title')}, read from outside: {names}")
        yield from self.section(_COMPLEX_TITLE, [_complex_row(c) for c in found.complex_values])
        yield from self.section(_kept_title(found), [_kept_row(k) for k in found.kept])
        yield from self.section("computed again in the reverse sweep", [_repeated_row(r) for r in found.repeated])
        yield from self.section("fused loops", [_shared_row(s) for s in found.shared])
        yield from self.section(_THREADS_TITLE, [_threaded_row(t) for t in found.threads])
        yield from self.section(_CLAIMS_TITLE, [(c.what, _at(c.span)) for c in found.claims])
        yield from self.section(_EQUALITY_TITLE, [(_at(span),) for span in found.equality_tests])
        yield from self.section(_SEARCHES_TITLE, [(_at(span),) for span in found.searches])
        yield from self.section(_EXTERNAL_TITLE, [_external_row(e) for e in found.external])
        if found.assumed:
            yield ""
        for one in found.inputs:
            if one.name in found.assumed:
                yield self.paint(f"assumed {one.name}: {one.type}, from {found.assumed[one.name]}", "faint")

    def input(self, one: Input) -> Iterator[str]:
        style, verdict = _verdict(one)
        yield f"{self.paint(one.name, 'title')}: {one.type} {self.paint(verdict, style)}"
        rows = _excerpt(one)
        width = max((len(str(span.line)) for span, _ in rows), default=0)
        longest = max((len(span.text) for span, notes in rows if notes), default=0)
        for span, notes in rows:
            number = self.paint(f"{span.line:>{width + 4}} |", "faint")
            code = span.text.ljust(min(longest, 80)) if notes else span.text
            yield f"{number} {code}" + (f"  {self.paint('<- ' + '; '.join(notes), 'note')}" if notes else "")
        for part in one.cut_off:
            yield f"    {part.name}: {part.type} {self.paint(_verdict(part)[1], 'bad')}"

    def section(self, title: str, rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
        if not rows and not title.startswith("nothing"):
            return
        yield from ("", self.paint(title, "title"))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)] if rows else []
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            yield "    " + "  ".join([*cells, self.paint(row[-1], "faint")])


def _verdict(one: Input) -> tuple[str, str]:
    if one.reaches is None:
        return "faint", "holds no floats: it has no gradient"
    if one.reaches:
        return "good", "reaches the result"
    return (
        "bad",
        f"does not reach the result: {reason([replace(c, span=None, text=c.text.rstrip(',')) for c in one.cuts])}",
    )


def _excerpt(one: Input) -> list[tuple[Span, list[str]]]:
    """The lines to show for an input, in order, each with its notes."""
    rows: dict[tuple[str, int], tuple[Span, list[str]]] = {(s.file, s.line): (s, []) for s in one.path}
    for cut in one.cuts:
        if cut.span is not None:
            where = f", in `{cut.elsewhere}`" if cut.elsewhere else ""
            note = f"{'cut by ' if cut.is_way else ''}{cut.text.rstrip(',')}{where}"
            rows.setdefault((cut.span.file, cut.span.line), (cut.span, []))[1].append(note)
    files = list(dict.fromkeys(file for file, _ in rows))
    return [rows[key] for key in sorted(rows, key=lambda key: (files.index(key[0]), key[1]))]


def _kept_title(found: Explanation) -> str:
    if not found.kept:
        return "nothing is kept for the reverse sweep"
    total = found.nbytes
    return "kept for the reverse sweep" + ("" if total is None else f": {amount(total)}")


def _kept_row(kept: Kept) -> tuple[str, ...]:
    known = "" if kept.nbytes is None else f"= {amount(kept.nbytes)}"
    return kept.variable or "part of", f"{kept.formula} bytes", known, _at(kept.span)


def _complex_row(found: ComplexValues) -> tuple[str, ...]:
    return found.variable or "part of", found.type, _at(found.span)


def _repeated_row(repeated: Repeated) -> tuple[str, ...]:
    return repeated.variable or "part of", _at(repeated.span)


def _shared_row(shared: Shared) -> tuple[str, ...]:
    numbers = [str(span.line) for span in shared.lines]
    where = f"line{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
    return where, f"{shared.before} loops became {shared.after}"


def _external_row(call: ExternalCall) -> tuple[str, ...]:
    return call.function, call.derivative, _at(call.span)


def _threaded_row(found: Threaded) -> tuple[str, ...]:
    return "threads" if found.in_threads else "one thread", found.why, _at(found.span)


def _at(span: Span | None) -> str:
    return "" if span is None else f"line {span.line}: {span.text.strip()}"


# -- as HTML ---------------------------------------------------------------------------------------------------------

_STYLE = """<style>
.srcdiff-explanation{font:13px/1.5 system-ui,sans-serif}
.srcdiff-explanation pre{margin:2px 0 10px 12px;font:12px/1.5 ui-monospace,monospace;white-space:pre;background:none}
.srcdiff-explanation .good{color:#1a7f37}.srcdiff-explanation .bad{color:#cf222e}
.srcdiff-explanation .note{color:#9a6700}.srcdiff-explanation .faint{opacity:.6}
.srcdiff-explanation table{border-collapse:collapse;margin:2px 0 10px 12px;font:12px/1.5 ui-monospace,monospace}
.srcdiff-explanation td{padding:0 14px 0 0;text-align:left}
</style>"""


def _html(found: Explanation) -> str:
    parts = [_STYLE, '<div class="srcdiff-explanation">']
    place = f"{printable(Path(found.span.file).name)}:{found.span.line}"
    parts.append(f'<p><b>{escape(found.function)}</b> <span class="faint">{escape(place)}</span></p>')
    for one in found.inputs:
        style, verdict = _verdict(one)
        parts.append(
            f'<div><b>{escape(one.name)}</b>: {escape(one.type)} <span class="{style}">{escape(verdict)}</span></div>'
        )
        rows = []
        for span, notes in _excerpt(one):
            note = f'  <span class="note">← {escape("; ".join(notes))}</span>' if notes else ""
            rows.append(f'<span class="faint">{span.line:>5} </span>{escape(span.text)}{note}')
        for part in one.cut_off:
            verdict = escape(_verdict(part)[1])
            rows.append(f'{escape(part.name)}: {escape(part.type)} <span class="bad">{verdict}</span>')
        parts.append(f"<pre>{chr(10).join(rows)}</pre>" if rows else "")
    if found.constants:
        names = ", ".join(f"{c.name} ({c.type})" for c in found.constants)
        parts.append(f"<div><b>held constant</b>, read from outside: {escape(names)}</div>")
    for title, table in (
        (_COMPLEX_TITLE, [_complex_row(c) for c in found.complex_values]),
        (_kept_title(found), [_kept_row(k) for k in found.kept]),
        ("computed again in the reverse sweep", [_repeated_row(r) for r in found.repeated]),
        ("fused loops", [_shared_row(s) for s in found.shared]),
        (_THREADS_TITLE, [_threaded_row(t) for t in found.threads]),
        (_CLAIMS_TITLE, [(c.what, _at(c.span)) for c in found.claims]),
        (_EQUALITY_TITLE, [(_at(span),) for span in found.equality_tests]),
        (_SEARCHES_TITLE, [(_at(span),) for span in found.searches]),
        (_EXTERNAL_TITLE, [_external_row(e) for e in found.external]),
    ):
        if table or title.startswith("nothing"):
            cells = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in table)
            parts.append(f"<div><b>{escape(title)}</b></div><table>{cells}</table>")
    return "".join([*parts, "</div>"])
