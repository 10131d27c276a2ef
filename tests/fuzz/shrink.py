"""Makes a failing program small: removes statements and expressions as long as it fails in the same way."""

from __future__ import annotations

import ast
import copy
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.fuzz.cases import Case

Edit = Callable[[ast.Module], None]


def shrink(case: Case, still_fails: Callable[[Case], bool], seconds: float = 60.0) -> Case:
    """The smallest case that was found in the given time for which `still_fails` holds."""
    end = time.monotonic() + seconds
    case = fewest_points(case, still_fails)
    size = len(case.source) + 1
    while len(case.source) < size and time.monotonic() < end:
        size = len(case.source)
        case = one_pass(case, still_fails, end)
    return case


def fewest_points(case: Case, still_fails: Callable[[Case], bool]) -> Case:
    """A single point that fails, if there is one."""
    for point in case.points:
        alone = replace(case, points=(point,))
        if still_fails(alone):
            return alone
    return case


def one_pass(case: Case, still_fails: Callable[[Case], bool], end: float) -> Case:
    """Try every simplification once, and keep those after which the program still fails."""
    position = 0
    while time.monotonic() < end:
        candidates = list(simplifications(ast.parse(case.source)))
        if position >= len(candidates):
            break
        smaller = edited(case, candidates[position])
        if smaller is not None and still_fails(smaller):
            case = smaller  # the list shifts, so the same position is another simplification
        else:
            position += 1
    return case


def edited(case: Case, edit: tuple[tuple[Any, ...], Edit]) -> Case | None:
    """The case after one simplification; None if the result is not a program, or is unchanged."""
    tree = ast.parse(case.source)
    edit[1](tree)
    try:
        source = "\n\n".join(ast.unparse(node) for node in ast.fix_missing_locations(tree).body) + "\n"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<shrunk>", "exec")
    except (SyntaxError, ValueError):
        return None
    return replace(case, source=source) if source != case.source else None


def simplifications(tree: ast.Module) -> Iterator[tuple[tuple[Any, ...], Edit]]:
    """All simplifications: removals of whole statements first, large ones before small, then parts of expressions."""
    found: list[tuple[int, tuple[Any, ...], Edit]] = []
    for path, node in walk(tree, ()):
        size = sum(1 for _ in ast.walk(node))
        if isinstance(node, ast.stmt):
            found.append((-10000 - size, path, deletion(path)))
            found.extend(
                (-5000 - size, path, hoisting(path, name)) for name in ("body", "orelse") if hoistable(node, name)
            )
            found.extend((-4000, path, dropping(path, name)) for name in ("orelse",) if getattr(node, name, None))
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            parts = list(replacements(node))
            found.extend((-size, path, substitution(path, part)) for part in parts)
    found.sort(key=lambda entry: entry[0])
    for _, path, edit in found:
        yield path, edit


def walk(node: ast.AST, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], ast.AST]]:
    """Every node below `node` with its path: field names and positions."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield (*path, name), value
            yield from walk(value, (*path, name))
        elif isinstance(value, list):
            for k, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield (*path, name, k), item
                    yield from walk(item, (*path, name, k))


def reach(tree: ast.AST, path: tuple[Any, ...]) -> Any:
    place: Any = tree
    for step in path:
        place = place[step] if isinstance(step, int) else getattr(place, step)
    return place


def put(tree: ast.AST, path: tuple[Any, ...], value: Any) -> None:
    holder = reach(tree, path[:-1])
    if isinstance(path[-1], int):
        holder[path[-1]] = value
    else:
        setattr(holder, path[-1], value)


def deletion(path: tuple[Any, ...]) -> Edit:
    def edit(tree: ast.Module) -> None:
        body = reach(tree, path[:-1])
        del body[path[-1]]
        if not body and path[-2] != "orelse":
            body.append(ast.Pass())

    return edit


def hoistable(node: ast.stmt, name: str) -> bool:
    return isinstance(node, (ast.If, ast.For, ast.While)) and bool(getattr(node, name, None))


def hoisting(path: tuple[Any, ...], name: str) -> Edit:
    """A compound statement replaced by one of its blocks."""

    def edit(tree: ast.Module) -> None:
        block = getattr(reach(tree, path), name)
        reach(tree, path[:-1])[path[-1] : path[-1] + 1] = block

    return edit


def dropping(path: tuple[Any, ...], name: str) -> Edit:
    def edit(tree: ast.Module) -> None:
        setattr(reach(tree, path), name, [])

    return edit


def substitution(path: tuple[Any, ...], part: ast.expr) -> Edit:
    def edit(tree: ast.Module) -> None:
        put(tree, path, copy.deepcopy(part))

    return edit


def is_module(node: ast.expr) -> bool:
    """Whether it is `np`, `math` or one of their attributes."""
    return isinstance(node, ast.Name) and node.id in ("np", "math")


def replacements(node: ast.expr) -> Iterator[ast.expr]:
    """Simpler expressions that can replace an expression."""
    if isinstance(node, ast.Constant):
        return
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and not is_module(node.func.value):
            yield node.func.value
        for k in range(len(node.keywords)):
            yield ast.Call(node.func, node.args, node.keywords[:k] + node.keywords[k + 1 :])
        yield from (item for item in node.args if not isinstance(item, ast.Starred))
        if node.keywords or len(node.args) > 1:
            for k in range(len(node.args)):
                yield ast.Call(node.func, node.args[:k] + node.args[k + 1 :], node.keywords)
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.Compare):
        yield from (ast.Constant(True), ast.Constant(False))
        if len(node.ops) > 1:
            yield ast.Compare(node.left, node.ops[:1], node.comparators[:1])
    elif isinstance(node, ast.NamedExpr):
        yield node.value
    elif isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, ast.Attribute) and not is_module(node.value):
        yield node.value
    elif isinstance(node, ast.Slice):
        if node.lower or node.upper or node.step:
            yield ast.Slice(None, None, None)
        for name in ("lower", "upper", "step"):
            if getattr(node, name) is not None:
                yield ast.Slice(**{part: getattr(node, part) for part in ("lower", "upper", "step") if part != name})
    elif isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) > 1:
        for k in range(len(node.elts)):
            yield type(node)(node.elts[:k] + node.elts[k + 1 :], node.ctx)
    elif isinstance(node, ast.ListComp):
        yield node.generators[0].iter
    if not isinstance(node, (ast.Tuple, ast.List, ast.Slice)):
        yield ast.Constant(0.5)
        yield ast.Constant(1)
