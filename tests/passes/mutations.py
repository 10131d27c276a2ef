"""Do the cases of a pass detect mistakes in it? `python -m tests.passes.mutations [pass ...]`

Each mutant is the module of the pass with one small mistake: a condition negated or removed, `or` for `and`, `<` for
`<=`, a number off by one, a statement removed. It is detected if a case gives another result, is illegal, raises, or
does not terminate. Undetected mutants are listed with their lines: either no case covers the line, or the mistake has
no effect (it only costs time, or another test rejects the same programs).

A mutant is compiled into a namespace of its own. The imported module of the pass is never changed.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import importlib
import inspect
import signal
import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from srcdiff.ir.nodes import Function
from tests.passes import PASSES, Case, Each, all_cases

MOST_SECONDS = 2.0
"""The time limit for all cases of a pass, after which a mutant counts as not terminating."""

# -- mistakes --------------------------------------------------------------------------------------------------------

OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {}
for one, other in (
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.Lt, ast.GtE),
    (ast.LtE, ast.Gt),
):
    OPPOSITES |= {one: other, other: one}
AT_THE_EDGE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
OTHER_NAMES = {"all": "any", "any": "all", "min": "max", "max": "min"}


def mistakes(node: ast.AST, is_negated: bool) -> Iterator[ast.AST]:
    """The possible mistakes at a node. Its negation may have been tried already."""
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            yield replaced(node, test=negated(node.test))
        case ast.comprehension(ifs=[first, *rest]):
            yield replaced(node, ifs=[negated(first), *rest])
            yield replaced(node, ifs=rest)
        case ast.match_case(guard=ast.expr() as guard):
            yield replaced(node, guard=negated(guard))
        case ast.BoolOp(op=op, values=values):
            yield replaced(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            for k in range(len(values)):
                rest = values[:k] + values[k + 1 :]
                yield rest[0] if len(rest) == 1 else replaced(node, values=rest)
        case ast.UnaryOp(op=ast.Not(), operand=operand) if not is_negated:
            yield operand
        case ast.Compare(ops=[op]):
            if not is_negated:
                yield negated(node)
            if type(op) in AT_THE_EDGE:
                yield replaced(node, ops=[AT_THE_EDGE[type(op)]()])
        case ast.Constant(value=bool(value)):
            yield replaced(node, value=not value)
        case ast.Constant(value=int(value)):
            yield replaced(node, value=value + 1)
        case ast.Name(id=name) if name in OTHER_NAMES:
            yield replaced(node, id=OTHER_NAMES[name])
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue():
            yield ast.copy_location(ast.Pass(), node)
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield ast.copy_location(ast.Pass(), node)


def replaced(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def negated(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(ops=[op]):
            changed = replaced(test, ops=[OPPOSITES[type(op)]()])
            assert isinstance(changed, ast.expr)
            return changed
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


# -- mutants ---------------------------------------------------------------------------------------------------------


Way = tuple[tuple[str, int | None], ...]
"""The path from the tree of a module to a node: field names, and positions in lists."""


@dataclass(frozen=True)
class Mutant:
    """A pass with one mistake."""

    row: Each
    way: Way
    mistake: ast.AST | None
    """The replacement; None if the node is removed."""
    line: int
    text: str
    """The original and the mutated text of the line."""

    def run(self) -> Each:
        """The pass from a namespace of its own."""
        entry = self.row.transform
        if isinstance(entry, Idle):
            return self.row
        tree = _tree(entry.__module__)
        if self.mistake is not None:
            tree = ast.fix_missing_locations(_with(tree, self.way, self.mistake))
        namespace = types.ModuleType(entry.__module__).__dict__
        exec(compile(tree, f"<mutant of {entry.__module__}>", "exec"), namespace)
        return replace(self.row, transform=namespace[entry.__name__])


def mutants(name: str) -> list[Mutant]:
    """All mutants of a pass, in text order. The first one leaves every function unchanged."""
    row = PASSES[name]
    if not isinstance(row, Each):
        raise ValueError(f"`{name}` is more than a transform on each function")
    tree = _tree(row.transform.__module__)
    idle = replace(row, transform=Idle())
    found = [Mutant(idle, (), None, row.transform.__code__.co_firstlineno, "the function as it is")]
    negated_above: set[Way] = set()
    for way, node in _places(tree, _reached(tree, row.transform.__name__)):
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            negated_above.add((*way, ("test", None)))
        elif isinstance(node, ast.comprehension):
            negated_above.add((*way, ("ifs", 0)))
        for mistake in mistakes(node, way in negated_above):
            line = getattr(node, "lineno", 0) or _line_in(node)
            found.append(Mutant(row, way, mistake, line, f"`{_first_line(node)}` -> `{_first_line(mistake)}`"))
    return found


@dataclass(frozen=True)
class Idle:
    """A transform that does nothing."""

    def __call__(self, function: Function, *others: object) -> Function:
        return function


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _reached(tree: ast.Module, entry: str) -> set[ast.AST]:
    """The functions, classes and methods of the module that the pass uses, found by their names."""
    own: dict[tuple[str, str], ast.AST] = {}
    for definition in tree.body:
        if isinstance(definition, ast.FunctionDef | ast.ClassDef):
            own["", definition.name] = definition
        if isinstance(definition, ast.ClassDef):
            own |= {(definition.name, o.name): o for o in definition.body if isinstance(o, ast.FunctionDef)}
    found: set[ast.AST] = set()
    work = [("", entry)]
    while work:
        key = work.pop()
        if own.get(key, tree) in {*found, tree}:
            continue
        found.add(own[key])
        for node in _inside(own[key]):
            match node:
                case ast.Name(id=name):
                    work.append(("", name))
                case ast.Attribute(value=ast.Name(id="self"), attr=name):
                    work.append((key[0], name))
                case ast.Attribute(value=ast.Call(func=ast.Name(id=made)), attr=name):
                    work.append((made, name))
                case ast.Attribute(value=ast.Name(), attr=name):
                    work += [k for k in own if k[0] and k[1] == name]
                case ast.FunctionDef(name=name) if name.startswith("__"):
                    work.append((key[1], name))
    return found


def _inside(definition: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or class, without those in methods."""
    for node in ast.iter_child_nodes(definition):
        yield node
        if not (isinstance(definition, ast.ClassDef) and isinstance(node, ast.FunctionDef)):
            yield from ast.walk(node)


SKIPPED = {"decorator_list", "annotation", "returns", "type_params"}


def _places(tree: ast.Module, reached: set[ast.AST]) -> Iterator[tuple[Way, ast.AST]]:
    """Every node of these functions and classes, with its path."""
    for k, statement in enumerate(tree.body):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield from _below((("body", k),), statement, reached)


def _below(way: Way, node: ast.AST, reached: set[ast.AST]) -> Iterator[tuple[Way, ast.AST]]:
    if isinstance(node, ast.Assert | ast.MatchValue) or _is_text(node):
        return
    is_inner = not way or way[-1][0] != "body" or len(way) > 2
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and not is_inner and node not in reached:
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":
        return  # the condition that `zip` checks always holds
    yield way, node
    for name, value in ast.iter_fields(node):
        if name in SKIPPED:
            continue
        for k, inner in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(inner, ast.AST):
                yield from _below((*way, (name, k)), inner, reached)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _with(tree: ast.AST, way: Way, node: ast.AST) -> ast.Module:
    """The tree with the node at a path replaced. Other nodes are shared."""
    (name, k), *rest = way
    field = getattr(tree, name)
    inner = field if k is None else field[k]
    inner = _with(inner, tuple(rest), node) if rest else node
    found = replaced(tree, **{name: inner if k is None else [*field[:k], inner, *field[k + 1 :]]})
    return found  # type: ignore[return-value]


def _line_in(node: ast.AST) -> int:
    return min((n.lineno for n in ast.walk(node) if hasattr(n, "lineno")), default=0)


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).strip().splitlines()[0]


# -- detection -------------------------------------------------------------------------------------------------------


class TooLong(BaseException):
    """Is no `Exception`, so that nothing in a pass catches it."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TooLong` after this many seconds of processor time. Other processes do not count."""

    def stop(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


@functools.cache
def _cases(name: str) -> list[tuple[Case, str]]:
    return [(case, case.expected()) for case in all_cases() if case.path.parent.name == name]


def is_noticed(mutant: Mutant, name: str) -> bool:
    """Whether a case of the pass has another result."""
    try:
        with at_most(MOST_SECONDS):
            run = mutant.run()
            return any(case.made(run) != expected for case, expected in _cases(name))
    except (Exception, TooLong):
        return True


def report(name: str) -> Iterator[str]:
    found = mutants(name)
    missed = [m for m in found if not is_noticed(m, name)]
    yield f"{name}: {len(found) - len(missed)} of {len(found)} mutants are noticed, by {len(_cases(name))} cases"
    row = PASSES[name]
    assert isinstance(row, Each)
    place = Path(*row.transform.__module__.split(".")).with_suffix(".py")
    for mutant in missed:
        yield f"    {place}:{mutant.line}: {mutant.text}"


def main(names: Sequence[str]) -> None:
    with_cases = {case.path.parent.name for case in all_cases()}
    for name in names or [n for n, row in PASSES.items() if isinstance(row, Each) and n in with_cases]:
        for line in report(name):
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
