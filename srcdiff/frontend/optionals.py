"""Names that are `None` on some paths and a value on others.

After a test (`if y is None`), the name has the tested state. Where the state is not known and a value is needed, the
program raises as Python does.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator

from srcdiff.diagnostics import Problem
from srcdiff.frontend.abstract_values import Abstract, Iteration, List, Maybe, Optional, Static, Tuple
from srcdiff.frontend.environment import Frame, Key
from srcdiff.frontend.scopes import names_in
from srcdiff.frontend.strings import Texts
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array


class Known(ast.expr):
    """An expression that is evaluated only if a test before it came out one way."""

    _fields = ("inner",)

    def __init__(self, inner: ast.expr, test: ast.expr, truth: bool) -> None:
        super().__init__()
        self.inner, self.test, self.truth = inner, test, truth
        ast.copy_location(self, inner)


class Optionals(Texts):
    """Reads expressions in which a name may be `None`."""

    # -- what needs a value ------------------------------------------------------------------------------------------

    def binary(self, op: type[ast.operator], left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
        left, right = self.needed(left, node), self.needed(right, node)
        for group, times in ((left, right), (right, left)):
            repeats = op is ast.Mult and isinstance(group, Tuple | List)
            if repeats and isinstance(times, Static) and not isinstance(times.value, int):
                self.refuse("SD203", node, f"{self.in_words(group)} cannot be multiplied by {self.in_words(times)}")
        return super().binary(op, left, right, node)

    def subscript(self, base: Abstract, where: ast.expr, node: ast.AST) -> Abstract:
        return super().subscript(self.needed(base, node), where, node)

    def iteration(self, x: Abstract, node: ast.AST) -> Iteration | tuple[Abstract, ...]:
        return super().iteration(self.needed(x, node), node)

    def expr_Attribute(self, node: ast.Attribute) -> Abstract:
        if isinstance(node.value, ast.Name):
            key = self.key_of(node.value.id)
            if key is not None and isinstance(self.names.get(key), Optional):
                self.names[key] = self.present(self.names[key])
        return super().expr_Attribute(node)

    def number(self, x: Abstract, node: ast.AST) -> Value:
        return super().number(self.needed(x, node), node)

    def needed(self, x: Abstract, node: ast.AST) -> Abstract:
        """The value of something that cannot be `None` here; before a loop that assigns it, it may have been."""
        if isinstance(x, Static) and x.value is None and self.awaited and not self.frame.library:
            problem = Problem("SD203", "`None` is used where a value is needed", self.span_of(node))
            self.too_early(problem, TypeError, "the value is None")
        return self.present(x)

    # -- tests -------------------------------------------------------------------------------------------------------

    def truth(self, x: Abstract, node: ast.AST) -> Static | Value:
        if not isinstance(x, Optional):
            return super().truth(x, node)
        inner = super().truth(x.value, node)
        if isinstance(inner, Static):
            return self.value(x.flag) if inner.value else inner
        return self.apply("logical_and", self.value(x.flag), inner)

    def compare(self, op: ast.cmpop, left: Abstract, right: Abstract, node: ast.AST) -> Abstract:
        if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            left, right = self.needed(left, node), self.needed(right, node)
        sides = [x for x in (left, right) if isinstance(x, Optional)]
        if not sides:
            kinds = {isinstance(x, Tuple | List) for x in (left, right) if not _is_array(x)}
            if isinstance(op, ast.Eq | ast.NotEq) and len(kinds) == 2:
                return Static(isinstance(op, ast.NotEq))  # a tuple is no number
            return super().compare(op, left, right, node)
        other = right if sides[0] is left else left
        if (
            isinstance(other, Static)
            and other.value is None
            and isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq)
        ):
            there = self.value(sides[0].flag)
            return there if isinstance(op, ast.IsNot | ast.NotEq) else self.apply("logical_not", there)
        if isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn):
            self.refuse("SD205", node, "one side of the comparison may be `None`", help_="test it with `is None` first")
        return super().compare(op, self.present(left), self.present(right), node)

    def key_of(self, name: str) -> Key | None:
        """Where a name of the functions around stands."""
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.locals:
                return (frame.number, name)
            frame = None if frame.captured is not None else frame.parent
        return None

    @contextlib.contextmanager
    def knowing(self, test: ast.expr, truth: bool) -> Iterator[None]:
        """Read something that is reached only if a test came out this way."""
        replaced: dict[Key, tuple[Abstract, Abstract]] = {}
        for name, there in facts(test, truth).items():
            key = self.key_of(name)
            before = None if key is None else self.names.get(key)
            if key is not None and isinstance(before, Optional):
                replaced[key] = before, before.value if there else Static(None)
                self.names[key] = replaced[key][1]
        yield
        for key, (before, now) in replaced.items():
            if self.names.get(key) is now:
                self.names[key] = before  # nobody assigned it, so that both sides leave what was there

    def expr_Known(self, node: Known) -> Abstract:
        with self.knowing(node.test, node.truth):
            return self.expr(node.inner)

    def expr_BoolOp(self, node: ast.BoolOp) -> Abstract:
        if not self.asks(node):
            return super().expr_BoolOp(node)
        is_and = isinstance(node.op, ast.And)
        values = list(node.values)
        for k in range(1, len(values)):
            before = values[0] if k == 1 else ast.BoolOp(node.op, node.values[:k])
            values[k] = Known(node.values[k], before, is_and)
        known = ast.copy_location(ast.BoolOp(node.op, values), node)
        self.conditions |= {known} if node in self.conditions else set()
        return super().expr_BoolOp(known)

    def expr_IfExp(self, node: ast.IfExp) -> Abstract:
        if not self.asks(node.test):
            return super().expr_IfExp(node)
        body, orelse = Known(node.body, node.test, True), Known(node.orelse, node.test, False)
        return super().expr_IfExp(ast.copy_location(ast.IfExp(node.test, body, orelse), node))

    def asks(self, test: ast.expr) -> bool:
        """Whether a test is about something that may be `None`."""
        found = [self.names.get(key) for key in map(self.key_of, names_in(test)) if key is not None]
        return any(isinstance(x, Optional) or (isinstance(x, Maybe) and isinstance(x.value, Optional)) for x in found)


def _is_array(x: Abstract) -> bool:
    return isinstance(x, Value) and isinstance(x.type, Array)


def facts(test: ast.expr, truth: bool) -> dict[str, bool]:
    """Names of which a test shows whether they are there (not `None`), by how it came out.

    >>> facts(ast.parse("y is None or not z", mode="eval").body, False)
    {'y': True, 'z': True}
    """
    match test:
        case ast.Name():
            return {test.id: True} if truth else {}
        case ast.UnaryOp(op=ast.Not()):
            return facts(test.operand, not truth)
        case ast.BoolOp():
            if isinstance(test.op, ast.And) != truth:
                return {}
            return {n: there for value in test.values for n, there in facts(value, truth).items()}
        case ast.Compare(left=ast.Name(id=name), comparators=[ast.Constant(value=None)]):
            if isinstance(test.ops[0], ast.Is | ast.Eq):
                return {name: not truth}
            if isinstance(test.ops[0], ast.IsNot | ast.NotEq):
                return {name: truth}
    return {}
