"""Statements, and the entry point of the front end: from a function with argument types to IR.

Exits become numbers: `break`, `continue` and `return` set an exit code, and the following statements move into the
other branch or under a test of the code, so that later stages have only branches and loops.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from srcdiff.diagnostics import DifferentiationError, Problem, Refusal, Span
from srcdiff.diagnostics.naming_objects import is_installed
from srcdiff.frontend.abstract_values import (
    MISSING,
    Abstract,
    Drawn,
    Each,
    Group,
    Items,
    Iteration,
    List,
    Maybe,
    Method,
    Optional,
    Parts,
    Poison,
    Range,
    Record,
    Static,
    Stored,
    Through,
    Tuple,
    describe,
    holds_complex,
    holds_lists,
    is_plain,
    leaf_types,
    loosened,
    of_parts,
)
from srcdiff.frontend.accepted import refused_syntax
from srcdiff.frontend.calls import Named, RecursionFound, is_library, values_in
from srcdiff.frontend.capture import Captured
from srcdiff.frontend.environment import (
    BREAKS,
    CONTINUES,
    ENDS,
    GOES_ON,
    RAISES,
    RETURNS,
    Frame,
    Hopeless,
    Mark,
    NeverReturns,
    list_key,
)
from srcdiff.frontend.expressions import CHANGED, INSTEAD
from srcdiff.frontend.guards import Attribute, Constant, Element, collect
from srcdiff.frontend.nested_derivatives import Derivatives, Reading, as_passed
from srcdiff.frontend.recursion import with_own_results
from srcdiff.frontend.scopes import assigned_names, nonlocal_names
from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.nodes import (
    Block,
    Call,
    Function,
    Grow,
    If,
    Index,
    Item,
    NewAxis,
    Operation,
    Pop,
    Print,
    Program,
    Push,
    Raise,
    Slice,
    Store,
    Value,
    functions_with,
    walk,
)
from srcdiff.ir.primitives import length_of_range
from srcdiff.ir.types import BOOL, FLOAT, INT, Array, Scalar, Stack, is_float
from srcdiff.signature.descriptions import INTEGER, NUMPYS, Description
from srcdiff.signature.structures import Layout
from srcdiff.signature.trees import NODES

_EITHER = {False, True}


class Reader(Derivatives):
    """Reads a function into IR."""

    def __init__(self) -> None:
        super().__init__()
        self.main_number = 0
        self.split: set[ast.AST] = set()
        """Branches and loops after which the paths do not meet again, because a name would have two types."""
        self.culprits: dict[Problem, ast.AST] = {}
        """The branch or loop after which a name has two types."""
        self.assigned: dict[str, list[Value]] = {}
        """What the function that is differentiated assigns to its names."""
        self.levels: dict[tuple[ast.AST, int], ast.AST] = {}
        self.outcomes: dict[ast.If, set[bool]] = {}
        """How the branches of the function that is differentiated may go."""
        self.shared: dict[ast.AST, Problem] = {}
        """Statements that change what others may see, found in some reading of them."""

    # -- bodies ------------------------------------------------------------------------------------------------------

    def run_body(self, node: ast.FunctionDef | ast.Lambda) -> Abstract:
        if isinstance(node, ast.Lambda):
            if not self.frame.library:
                self.span = self.span_of(node.body)
            return self.expr(node.body)
        key = (self.frame.number, "%return")
        self.names[self.exit_key] = Static(GOES_ON)
        outer_depth, self.loop_depth = self.loop_depth, 0
        try:
            self.statements(node.body)
        finally:
            self.loop_depth = outer_depth
        code = self.names.pop(self.exit_key, Static(GOES_ON))
        result = self.names.pop(key, MISSING)
        if self.dead:
            raise NeverReturns
        if isinstance(code, Static):
            return result if code.value == RETURNS else Static(None)
        if result is MISSING:
            return Static(None)
        if is_plain(loosened(describe(result))):
            returned = self.apply("equal", self.value(code), self.const(RETURNS))
            return result if self.constants.get(returned) is True else Optional(returned, result)
        if isinstance(result, Optional):
            returned = self.apply("equal", self.value(code), self.const(RETURNS))
            return Optional(self.apply("logical_and", returned, self.value(result.flag)), result.value)
        if not isinstance(result, Static) or result.value is not None:
            fell = self.apply("not_equal", self.value(code), self.const(RETURNS))
            text = f"{self.frame.name} returned None"
            self.add(If(fell, Block((Raise(TypeError, (text,), span=self.span),)), Block(), span=self.span))
        return result

    def statements(self, body: list[ast.stmt]) -> None:
        for k, statement in enumerate(body):
            rest = body[k + 1 :]
            before = self.names
            if isinstance(statement, ast.If):
                if self.guarded(statement, lambda s=statement, r=rest: self.if_statement(s, r)):  # type: ignore[misc]
                    return
            elif isinstance(statement, ast.For) and statement in self.split and rest:
                if self.guarded(statement, lambda s=statement, r=rest: self.for_that_may_not_run(s, r)):  # type: ignore[misc]
                    return
            else:
                self.guarded(statement, lambda s=statement: self.statement(s))  # type: ignore[misc]
            if rest and isinstance(statement, ast.If | ast.For) and statement not in self.split:
                self.note_conflicts(statement, before)
            code = self.exit
            if isinstance(code, Static):
                if code.value != GOES_ON:
                    return
                continue
            if rest:
                self.go_on(code, rest)
            return

    def note_conflicts(self, statement: ast.stmt, before: dict[Any, Abstract]) -> None:
        """Remember after which statement a name has got two types."""
        for key, x in self.names.items():
            if isinstance(x, Poison) and x.problem is not None and not isinstance(before.get(key), Poison):
                self.culprits.setdefault(x.problem, statement)

    def note_culprit(self, problem: Problem, statement: ast.stmt) -> None:
        self.culprits.setdefault(problem, statement)

    def go_on(self, code: Abstract, rest: list[ast.stmt]) -> None:
        """Read the statements behind one that may have left: they run if it has not."""
        goes_on = self.apply("equal", self.value(code), self.const(GOES_ON))
        reached: list[Abstract] = []

        def then() -> None:
            self.names[self.exit_key] = Static(GOES_ON)
            self.statements(rest)
            reached.append(self.exit)

        self.branch_on(goes_on, then, lambda: None)
        ends = not reached or reached[0] in (Static(RETURNS), Static(RAISES))
        if self.loop_depth == 0 and ends and not self.dead:
            self.leave(RETURNS)  # outside of loops, the other way out is to have returned already

    def after_exit(self, rest: list[ast.stmt]) -> None:
        self.names[self.exit_key] = Static(GOES_ON)
        self.statements(rest)

    def guarded(self, statement: ast.stmt, read: Callable[[], Any]) -> bool:
        """Read a statement; a problem in it is noted, and what it would have assigned cannot be used."""
        if not self.frame.library:
            self.span = self.span_of(statement)
            self.made_here = 0
        depth, doubts, names, same = len(self.stack), set(self.doubts), dict(self.names), self.same_lists
        found: list[bool] = []
        try:
            self.or_die(lambda: found.append(bool(read())))
            self.forget_doubts(doubts, names)
            self.forget_same_lists(same)
            return bool(found and found[0])
        except Hopeless:
            raise
        except Refusal as refusal:
            if refusal.problem is not None and refusal.problem not in self.problems:
                self.problems.append(refusal.problem)
            assert len(self.stack) == depth
            declared = statement.names if isinstance(statement, ast.Global) else ()
            for name in (*assigned_names(statement), *declared):
                self.names[(self.frame.number, name)] = Poison(None)
            if isinstance(statement, ast.Return | ast.If | ast.For | ast.While | ast.With):
                self.names[(self.frame.number, "%return")] = Poison(None)
                self.leave(RETURNS)
        return False

    def statement(self, node: ast.stmt) -> None:
        if node in self.reported:
            raise Refusal(None)
        method = getattr(self, f"statement_{type(node).__name__}", None)
        if method is None:
            self.refuse("SD101", node, f"`{type(node).__name__.lower()}` is not supported")
        method(node)

    # -- simple statements -------------------------------------------------------------------------------------------

    def statement_Pass(self, node: ast.Pass) -> None:
        pass

    def statement_Nonlocal(self, node: ast.Nonlocal) -> None:
        pass

    def statement_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expr(node.value)

    def statement_Return(self, node: ast.Return) -> None:
        read = self.lazily if self.frame.library else self.expr
        value = Static(None) if node.value is None else self.returned(read(node.value), node)
        self.names[(self.frame.number, "%return")] = value
        self.note_name("%return", value)
        self.leave(RETURNS)

    def note_name(self, name: str, value: Abstract) -> None:
        if not self.frame.library:
            self.named += [Named(name, v, self.span) for v in values_in(value)]

    def statement_Break(self, node: ast.Break) -> None:
        self.leave(BREAKS)

    def statement_Continue(self, node: ast.Continue) -> None:
        self.leave(CONTINUES)

    def statement_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self.refuse("SD101", node, "decorators on nested functions are not supported")
        self.names[(self.frame.number, node.name)] = self.closure(node)

    def statement_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            importlib.import_module(alias.name)
            named = alias.name if alias.asname is not None else alias.name.partition(".")[0]
            self.names[(self.frame.number, alias.asname or named)] = Static(self.imported(named))

    def statement_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = self.imported(node.module or "")
        for alias in node.names:
            self.names[(self.frame.number, alias.asname or alias.name)] = self.look_up(module, alias.name, node)

    def imported(self, name: str) -> Any:
        """The module that an `import` gives."""
        module = importlib.import_module(name)
        self.guard(Element(Constant(sys.modules), name), module)
        return module

    def statement_With(self, node: ast.With) -> None:
        """`with np.errstate(...)`: derivatives give no warnings, so that there is nothing to do."""
        for item in node.items:
            call = item.context_expr
            function = self.expr(call.func) if isinstance(call, ast.Call) else MISSING
            if function != Static(np.errstate) or not isinstance(call, ast.Call) or item.optional_vars is not None:
                self.refuse("SD101", node, "`with` is not supported")
            given = [self.expr(x) for x in (*call.args, *(k.value for k in call.keywords))]
            if any(x not in (Static("ignore"), Static("warn")) for x in given):
                self.refuse("SD101", node, "`np.errstate` is supported with 'ignore' and 'warn' only")
        self.statements(node.body)

    def statement_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.names.pop((self.frame.number, target.id), None)
                continue
            owner = self.expr(target.value) if isinstance(target, ast.Subscript) else MISSING
            if not isinstance(owner, List) or not isinstance(target, ast.Subscript):
                self.refuse("SD101", node, "`del` is supported for names and for elements of lists only")
            self.delete_element(owner, target.slice, target)

    def statement_Assert(self, node: ast.Assert) -> None:
        truth = self.condition(node.test)
        if isinstance(truth, Static):
            if not truth.value:
                self.fail(node)
            return
        self.branch_on(self.apply("logical_not", truth), lambda: self.fail(node), lambda: None)

    def fail(self, node: ast.Assert) -> None:
        parts = () if node.msg is None else (self.exception_argument(self.expr(node.msg), node),)
        self.add(Raise(AssertionError, parts, span=self.span))
        self.die()

    def statement_Raise(self, node: ast.Raise) -> None:
        without_cause = node.cause is None or (isinstance(node.cause, ast.Constant) and node.cause.value is None)
        if node.exc is None or not without_cause:
            self.refuse("SD101", node, "`raise` needs an exception, and no cause other than `None`")
        call = node.exc if isinstance(node.exc, ast.Call) else None
        kind = self.expr(node.exc if call is None else call.func)
        if not (isinstance(kind, Static) and isinstance(kind.value, type) and issubclass(kind.value, BaseException)):
            self.refuse("SD101", node, "`raise` takes an exception class, or a call of one with a message")
        if call is not None and call.keywords:
            self.refuse("SD102", node, "keyword arguments of an exception are not supported")
        given = () if call is None else self.elements(call.args)
        parts = [self.exception_argument(x, node) for x in given]
        self.add(Raise(kind.value, tuple(parts), span=self.span))
        self.die()

    # -- assignment --------------------------------------------------------------------------------------------------

    def statement_Assign(self, node: ast.Assign) -> None:
        alone = len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript)
        value = self.lazily(node.value) if alone or self.frame.library else self.unpacking(node)
        if _permutes(node):
            value = self.detached(value)  # each of them is the element of a list again, once
        for target in node.targets:
            self.assign(target, value)

    def unpacking(self, node: ast.Assign) -> Abstract:
        """What is assigned; an iterator is used up where names take its elements."""
        value = self.lazily(node.value)
        if all(isinstance(t, ast.Tuple | ast.List) for t in node.targets) and len(node.targets) == 1:
            value = self.drained(value, node.value)
        return self.forced(value)

    def statement_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.expr(node.value))

    def assign(self, target: ast.expr, value: Abstract) -> None:
        match target:
            case ast.Name():
                self.assign_name(target, value)
            case ast.Tuple() | ast.List():
                self.assign_several(target, value)
            case ast.Subscript():
                self.assign_element(target, value)
            case ast.Starred():
                self.assign(target.value, value)
            case _:
                self.refuse("SD101", target, _ATTRIBUTE, help_=_ANOTHER)

    def assign_name(self, target: ast.Name, value: Abstract) -> None:
        frame = self.frame
        while target.id in frame.nonlocals and frame.parent is not None:
            frame = frame.parent
        if target.id in self.frame.nonlocals and target.id not in frame.locals:
            self.refuse(
                "SD101", target, f"`{target.id}` is defined outside the differentiated function and cannot be changed"
            )
        if isinstance(value, Method):
            self.refuse("SD102", target, "a method that is not called is not supported")
        value = self.declared(frame, target.id, value)
        self.name_value(value, target.id)
        self.note_name(target.id, value)
        if frame.number == self.main_number and isinstance(value, Value):
            self.assigned.setdefault(target.id, []).append(value)
        self.names[(frame.number, target.id)] = value
        if isinstance(value, Value) and value in self.boxes:
            self.boxed.add((frame.number, target.id))

    def name_value(self, value: Abstract, name: str) -> None:
        """Give the run-time values the user's name for them, if they have none."""
        for part in NODES.named(value, name, Layout.variable):
            leaf = part.value
            contents = self.names.get(list_key(leaf)) if isinstance(leaf, List) else None
            if isinstance(leaf, Value) and not leaf.name:
                leaf.name = part.name
            elif isinstance(contents, Stored):
                for array in contents.arrays:
                    array.name = array.name if array.name not in ("", "items") else part.name

    def assign_several(self, target: ast.Tuple | ast.List, value: Abstract) -> None:
        stars = [k for k, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        if stars and self.has_length_at_run_time(value):
            self.assign_around(target, value, stars[0])
            return
        items = (
            list(self.unpacked(value, target)) if not self.unpackable(value, target) else self.read_all(value, target)
        )
        if not stars:
            if len(items) != len(target.elts):
                text = f"{len(items)} values are unpacked into {len(target.elts)} names"
                self.refuse("SD203", target, text)
            for part, item in zip(target.elts, items, strict=True):
                self.assign(part, item)
            return
        star = stars[0]
        behind = len(target.elts) - star - 1
        if len(items) < len(target.elts) - 1:
            self.refuse("SD203", target, f"{len(items)} values are too few for the names")
        middle = items[star : len(items) - behind]
        for part, item in zip(target.elts[:star], items[:star], strict=True):
            self.assign(part, item)
        self.assign(target.elts[star], self.new_list(tuple(middle)))
        for part, item in zip(target.elts[star + 1 :], items[len(items) - behind :], strict=True):
            self.assign(part, item)

    def unpackable(self, value: Abstract, target: ast.Tuple | ast.List) -> bool:
        """Whether the number of elements is known only at run time, and the names say how many there must be."""
        if any(isinstance(t, ast.Starred) for t in target.elts):
            return False
        return self.has_length_at_run_time(value)

    def has_length_at_run_time(self, value: Abstract) -> bool:
        is_array = isinstance(value, Value) and isinstance(value.type, Array)
        return is_array or (isinstance(value, List) and isinstance(self.holding(value), Stored))

    def assign_around(self, target: ast.Tuple | ast.List, value: Abstract, star: int) -> None:
        """`a, *b, c = values`, however many there are."""
        found = self.iteration(value, target)
        assert isinstance(found, Iteration)
        length, count = self.value(found.length), len(target.elts) - 1
        too_few = self.apply("less", length, self.const(count))
        self.raise_if(too_few, ValueError, f"not enough values to unpack (expected at least {count})")
        middle = self.new_list(())
        between = Iteration(
            self.apply("subtract", length, self.const(count)),
            lambda k: found.element(self.apply("add", self.value(k), self.const(star))),
        )
        self.for_each(target, between, lambda item: self.append(middle, item, target))
        first = [found.element(Static(k)) for k in range(star)]
        last = [found.element(self.apply("subtract", length, self.const(k))) for k in range(count - star, 0, -1)]
        for part, item in zip(target.elts, [*first, middle, *last], strict=True):
            self.assign(part, item)

    def read_all(self, value: Abstract, target: ast.Tuple | ast.List) -> list[Abstract]:
        found = self.iteration(value, target)
        assert isinstance(found, Iteration)
        count = len(target.elts)
        wrong = self.apply("not_equal", self.value(found.length), self.const(count))
        self.raise_if(wrong, ValueError, f"expected {count} values to unpack")
        return [found.element(Static(k)) for k in range(count)]

    def assign_element(self, target: ast.Subscript, value: Abstract) -> None:
        base = self.needed(self.expr(target.value), target)
        if isinstance(base, List):
            self.assign_list_element(base, target, value)
            return
        if isinstance(base, Record) and base.kind.is_mapping:
            self.refuse("SD102", target, CHANGED, help_=INSTEAD)
        if not (isinstance(base, Value) and isinstance(base.type, Array)):
            help_ = "convert it to a list first: `list(...)`" if isinstance(base, Tuple) else ""
            self.refuse("SD203", target, f"the elements of {self.in_words(base)} cannot be assigned", help_=help_)
        items = self.array_items(base, target.slice, target)
        place = element_place(items, base)
        if isinstance(target.value, ast.Attribute) and target.value.attr == "flat":
            self.require_apart(base, value, target)
        if place is not None:
            self.write_element(base, place, self.number(value, target))
        else:
            self.assign_part(base, items, value, target)

    def assign_list_element(self, base: List, target: ast.Subscript, value: Abstract) -> None:
        if isinstance(target.slice, ast.Slice):
            self.assign_slice(base, target.slice, value, target)
            return
        self.write_position(base, self.expr(target.slice), value, target)

    def write_position(self, base: List, position: Abstract, value: Abstract, target: ast.AST) -> None:
        self.changing(base, target)
        contents, value = self.holding(base), self.forced(value)
        if isinstance(contents, Items) and isinstance(position, Static):
            items = list(contents.items)
            if not -len(items) <= position.value < len(items):
                self.raise_always(IndexError, "list assignment index out of range")
            items[position.value] = value
            self.hold_items(base, items, target)
            return
        stored = self.stored(base)
        where = self.list_position(stored, self.integer(position, target))
        stored = self.wide_enough(base, value, target)
        if any(isinstance(a.type, Stack) for a in stored.arrays):
            self.refuse("SD102", target, "replacing an array in a list is not supported")
        self.forget_slots(base)
        self.put(base, stored, where, value, target)

    def statement_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Subscript):
            self.augment_element(node, target)
            return
        if not isinstance(target, ast.Name):
            self.refuse("SD101", node, _ATTRIBUTE, help_=_ANOTHER)
        load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        old = self.expr(load)
        self.changes_no_other(old, node)
        if isinstance(old, List) and self.augment_in_place(node, old):
            return
        if isinstance(old, Value) and self.is_array(old) and isinstance(node.op, ast.MatMult):
            product = self.matrix_product(old, self.expr(node.value), node)
            self.require_cast(self.lazy(product, node).dtype, old, node)
            self.assign_array(old, product, node)
            return
        if isinstance(old, Value) and isinstance(old.type, Array):
            self.assign_array(old, self.passing(node.value), node, type(node.op))
            return
        self.assign(target, self.forced(self.binary(type(node.op), old, self.expr(node.value), node)))

    def changes_no_other(self, old: Abstract, node: ast.AST) -> None:
        """`x += ...` of an array without axes is seen under all its names; of a number it is not."""
        if node not in self.shared and isinstance(old, Value) and isinstance(old.type, Scalar):
            is_possible = old in self.boxes or self.boxed  # of most programs, no name is looked at
            names = self.names.items() if is_possible else ()
            holders = {k for k, x in names if k[1][:1] != "%" and _holds(x, old)}
            is_box = old in self.boxes or bool(self.boxed & holders)
            if is_box and (self.boxes.get(old) or len(holders) > 1):
                message = "a zero-dimensional array is changed in place, and other names may refer to the same array"
                instead = "convert it to a number: `float(...)`"
                self.shared[node] = Problem("SD303", message, self.span_of(node), help=instead)
        if node in self.shared:
            raise Refusal(self.shared[node])

    def augment_in_dictionary(self, node: ast.AugAssign, base: Record) -> None:
        """`params["w"] += ...` changes an array where it is; a number would be another in its place."""
        assert isinstance(node.target, ast.Subscript)
        old = self.subscript(base, node.target.slice, node)
        if not (isinstance(old, Value) and self.is_array(old)):
            self.refuse("SD102", node, CHANGED, help_=INSTEAD)
        self.assign_array(old, self.passing(node.value), node, type(node.op))

    def passing(self, node: ast.expr) -> Abstract:
        """An operand that is read before anything is written, and then gone."""
        doubts, names = set(self.doubts), dict(self.names)
        value = self.lazily(node)
        self.forget_doubts(doubts, names)
        return value

    def augment_element(self, node: ast.AugAssign, target: ast.Subscript) -> None:
        base = self.needed(self.expr(target.value), target)
        if isinstance(base, List):
            self.augment_list(node, target, base)
            return
        if isinstance(base, Record) and base.kind.is_mapping:
            self.augment_in_dictionary(node, base)
            return
        if not (isinstance(base, Value) and isinstance(base.type, Array)):
            help_ = "convert it to a list first: `list(...)`" if isinstance(base, Tuple) else ""
            self.refuse("SD203", target, f"the elements of {self.in_words(base)} cannot be assigned", help_=help_)
        items = self.array_items(base, target.slice, target)
        place = element_place(items, base)
        if place is None:
            self.augment_part(node, base, items)
            return
        if isinstance(node.op, ast.Add | ast.Sub) and is_float(base.type):
            mark = self.mark()
            amount = self.number(self.expr(node.value), node)
            if not any(o.blocks() or not o.defines() for o in self.operations[mark.operations :]):
                amount = amount if is_float(amount.type) else self.cast(amount, FLOAT)
                if isinstance(node.op, ast.Sub):
                    amount = self.apply("negative", amount)
                self.write_element(base, place, amount, adds=True)
                return
            self.go_back(mark)  # the right side may change the element: read it first, as Python does
        old = self.load(base, place)
        value = self.expr(node.value)
        if old.type == BOOL and isinstance(node.op, ast.Add):  # NumPy's, and so is what comes of it
            new: Abstract = self.arithmetic(ast.Add, old, self.number(value, node), node)
        else:
            new = self.binary(type(node.op), old, value, node)
        self.write_element(base, place, self.number(new, node))

    def augment_part(self, node: ast.AugAssign, base: Value, items: list[Abstract | Item]) -> None:
        if isinstance(node.op, ast.MatMult):
            self.refuse("SD101", node, "`@=` on a part of an array is not supported", help_="write `a = a @ b`")
        mark = self.mark()
        amount = self.passing(node.value)
        basic = all(isinstance(i, Slice | Index | NewAxis) for i in items)
        if basic or not self.writes_since(mark, base):
            self.assign_part(base, items, amount, node, type(node.op))
            return
        self.go_back(mark)  # what index arrays choose is taken before the right side changes it, as NumPy does
        old = self.forced(self.read_picked(base, items, node))
        new = self.binary(type(node.op), old, self.expr(node.value), node)
        self.require_cast(self.lazy(new, node).dtype, base, node)
        self.assign_part(base, items, new, node)

    def writes_since(self, mark: Mark, array: Value) -> bool:
        """Whether what has been read since may write into an array."""
        read = walk(Block(tuple(self.operations[mark.operations :])))
        return any(isinstance(o, Call) or (isinstance(o, Store) and not self.disjoint(o.array, array)) for o in read)

    def augment_list(self, node: ast.AugAssign, target: ast.Subscript, base: List) -> None:
        position = self.expr(target.slice)
        old = self.read_position(base, position, target)
        if isinstance(old, Value) and self.is_array(old):
            self.assign_array(old, self.passing(node.value), node, type(node.op))
            return
        if isinstance(old, List) and self.augment_in_place(node, old):
            return
        new = self.binary(type(node.op), old, self.expr(node.value), node)
        self.write_position(base, position, new, target)

    def augment_in_place(self, node: ast.AugAssign, old: List) -> bool:
        """`+=` and `*=` of a list change it, for all its names; whether it is one of these."""
        if isinstance(node.op, ast.Add):
            self.list_extend(node, old, self.expr(node.value))
            return True
        if not isinstance(node.op, ast.Mult):
            return False
        new = self.binary(ast.Mult, old, self.expr(node.value), node)
        assert isinstance(new, List)
        self.changing(old, node)
        if self.is_row(old):
            self.write_row(old, self.stored(new))
        else:
            self.names[list_key(old)] = self.names[list_key(new)]
        return True

    # -- branches and loops ------------------------------------------------------------------------------------------

    def if_statement(self, node: ast.If, rest: list[ast.stmt]) -> bool:
        """Read an `if`; true if the statements after it have been read as well, in the branch that reaches them."""
        doubts, names = set(self.doubts), dict(self.names)
        truth = self.condition(node.test)
        self.forget_doubts(doubts, names)
        if self.frame.number == self.main_number:
            self.outcomes.setdefault(node, set()).update({bool(truth.value)} if isinstance(truth, Static) else _EITHER)
        if isinstance(truth, Static):
            self.statements(node.body if truth.value else node.orelse)
            return False
        taken = False

        def side(body: list[ast.stmt], truth: bool) -> None:
            with self.knowing(node.test, truth):
                self.statements(body)

        leaves_then, leaves_else = _always_leaves(node.body), _always_leaves(node.orelse)
        if (leaves_then != leaves_else or node in self.split) and rest:
            taken = True
            first = node.body if leaves_then else [*node.body, *rest]
            second = node.orelse if leaves_else else [*node.orelse, *rest]
            self.branch_on(truth, lambda: side(first, True), lambda: side(second, False))
        else:
            self.branch_on(truth, lambda: side(node.body, True), lambda: side(node.orelse, False))
        return taken

    def statement_While(self, node: ast.While) -> None:
        forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
        if not forever:
            mark = self.mark()
            names = mark.names
            with self.awaiting(node):
                truth = self.condition(node.test)
            changed = any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)) or any(
                x is not names.get(k) and not isinstance(names.get(k), Maybe) for k, x in self.names.items()
            )
            written = Block(tuple(self.operations[mark.operations :]))
            changed = changed or any(isinstance(o, Store | Push | Pop | Grow | Call) for o in walk(written))
            self.go_back(mark)
            if isinstance(truth, Static) and not truth.value and not changed:
                self.statements(node.orelse)
                return
            if changed:
                self.while_with_assignments(node)
                return

        def test() -> Value:
            return self.value(self.condition(node.test))

        code = self.loop(node, node, None, None if forever else test, lambda _: self.loop_body(node.body))
        if forever and not _breaks(node.body):
            if _returns(node.body):
                self.leave(RETURNS)
            else:
                self.die()
            return
        self.after_loop(code, node)

    def while_with_assignments(self, node: ast.While) -> None:
        """A condition that assigns (`:=`, or a call that changes something) is part of the body."""

        def iteration(_: Value | None) -> None:
            truth = self.condition(node.test)
            if isinstance(truth, Static):
                self.loop_body(node.body) if truth.value else self.leave(ENDS)
                return
            self.branch_on(truth, lambda: self.loop_body(node.body), lambda: self.leave(ENDS))

        self.after_loop(self.loop(node, node, None, None, iteration), node)

    def loop_body(self, body: list[ast.stmt]) -> None:
        self.loop_depth += 1
        try:
            self.statements(body)
        finally:
            self.loop_depth -= 1

    def statement_For(self, node: ast.For) -> None:
        self.for_over(node, self.source(node.iter))

    def source(self, node: ast.expr) -> Abstract:
        """What a `for` goes through: also an iterator that computes its elements meanwhile."""
        found = self.lazily(node)
        return found if isinstance(found, Through | Drawn) else self.forced(found)

    def gone_through(self, source: Abstract, node: ast.For) -> Iteration | tuple[Abstract, ...]:
        """The elements that a loop goes through, if nothing ends it before."""
        before = self.ends_early
        self.ends_early = _breaks(node.body) or _returns(node.body) or _raises(node.body)
        try:
            return self.iteration(source, node.iter)
        finally:
            self.ends_early = before

    def for_that_may_not_run(self, node: ast.For, rest: list[ast.stmt]) -> bool:
        """A loop after which a name has another type if it ran: what follows is read once for each case."""
        source = self.expr(node.iter)
        found = self.gone_through(source, node)
        length = Static(len(found)) if not isinstance(found, Iteration) else found.length
        if isinstance(length, Static):
            self.for_over(node, source)
            return False

        def runs() -> None:
            mark = self.mark()
            self.sure.add(node)
            self.for_over(node, source)
            self.sure.discard(node)
            if len(self.problems) > mark.problems and not (node.orelse or _breaks(node.body) or _returns(node.body)):
                self.go_back(mark)
                self.first_iteration_apart(node, source)
            code = self.exit
            if not isinstance(code, Static):
                self.go_on(code, rest)
            elif code.value == GOES_ON:
                self.statements(rest)

        some = self.apply("greater", self.value(length), self.const(0))
        self.branch_on(some, runs, lambda: self.statements([*node.orelse, *rest]))
        return True

    def first_iteration_apart(self, node: ast.For, source: Abstract) -> None:
        """A loop that runs, and gives a name its type in the first iteration: `total = 0`, `total = total + a[i]`."""
        found = self.iteration(source, node.iter)
        assert isinstance(found, Iteration)
        outer_path = self.path
        self.path = (*outer_path, 0)
        self.assign(node.target, found.element(Static(0)))
        self.loop_body(node.body)
        self.names[self.exit_key] = Static(GOES_ON)
        self.path = (*outer_path, 1)  # what was learned of all iterations does not hold for the others

        def iteration(index: Value | None) -> None:
            assert index is not None
            self.assign(node.target, found.element(index))
            self.loop_body(node.body)

        self.loop(node, node, (self.const(1), self.value(found.length), self.const(1)), None, iteration)
        self.path = outer_path
        self.names[self.exit_key] = Static(GOES_ON)

    def for_over(self, node: ast.For, source: Abstract) -> None:
        if isinstance(source, Drawn):
            before, start = dict(self.names), len(self.operations)
            self.for_over(node, source.items)
            self.nothing_changed(source, before, self.operations[start:])
            return

        def iteration_of(item: Abstract) -> None:
            self.assign(node.target, item)
            self.loop_body(node.body)

        source, body = self.peeled(source, iteration_of)
        if isinstance(source, Range):
            self.for_range(node, source, body)
            return
        if isinstance(source, Each):
            self.for_each_place(node, source, body)
            return
        found = self.gone_through(source, node)
        if not isinstance(found, Iteration):
            self.unrolled(node, found, self.watching_items(source, found, body, node))
            return
        body = self.watching_lengths(source, found, body, node)

        def iteration(index: Value | None) -> None:
            assert index is not None
            body(found.element(index))

        bounds = (self.const(0), self.value(found.length), self.const(1))
        code = self.loop(node, node, bounds, None, iteration)
        self.after_loop(code, node)

    def for_range(self, node: ast.For, source: Range, body: Callable[[Abstract], None]) -> None:
        known = [x.value for x in (source.start, source.stop, source.step) if isinstance(x, Static)]
        mark = self.mark()
        bounds = tuple(self.cast(self.value(x), INT) for x in (source.start, source.stop, source.step))
        if not isinstance(source.step, Static):
            zero = self.apply("equal", bounds[2], self.const(0))
            self.raise_if(zero, ValueError, "range() arg 3 must not be zero")

        def iteration(index: Value | None) -> None:
            assert index is not None
            index.name = ""
            body(index)

        code = self.loop(node, node, (bounds[0], bounds[1], bounds[2]), None, iteration)
        # Something in the body must know the counter, or a name has one type in one iteration and another in the next.
        unknown = any(p.code in ("SD202", "SD203", "SD205") for p in self.problems[mark.problems :])
        short = len(known) == 3 and length_of_range(*known) <= 32
        if short and (unknown or node in self.split) and self.written_out(node, range(*known), mark, body):
            return
        self.after_loop(code, node)

    def written_out(self, node: ast.For, iterations: range, mark: Mark, body: Callable[[Abstract], None]) -> bool:
        """Read the iterations of a loop one by one, instead of once for all; false if that does not help."""
        names, operations = self.names, self.operations[mark.operations :]
        problems = self.problems[mark.problems :]
        self.go_back(mark)
        self.unrolled(node, tuple(Static(k) for k in iterations), body)
        found = self.problems[mark.problems :]
        if len(found) < len(problems) or not found:
            return True
        self.go_back(mark)
        self.names = names
        self.operations += operations
        self.problems += problems
        return False

    def for_each_place(self, node: ast.For, source: Each, body: Callable[[Abstract], None]) -> None:
        """Nested loops over all places of an array."""
        if node.orelse or _breaks(node.body) or _returns(node.body):
            self.refuse("SD101", node, "a loop over all indices of an array cannot have `break` or `return`")
        lengths = [self.cast(self.value(s), INT) for s in source.shape]
        nodes: list[ast.AST] = [self.levels.setdefault((node, axis), ast.Pass()) for axis in range(len(lengths))]

        def level(axis: int, places: tuple[Abstract, ...]) -> None:
            if axis == len(lengths):
                place = Tuple(places)
                body(place if source.of is None else self.with_element(source.of, place))
                if self.exit == Static(CONTINUES):
                    self.names[self.exit_key] = Static(GOES_ON)
                return

            def iteration(index: Value | None) -> None:
                assert index is not None
                index.name = "ijklmn"[axis % 6]
                level(axis + 1, (*places, index))

            bounds = (self.const(0), lengths[axis], self.const(1))
            self.loop(nodes[axis], node, bounds, None, iteration)

        level(0, ())
        self.names[self.exit_key] = Static(GOES_ON)

    def with_element(self, array: Value, place: Tuple) -> Tuple:
        return Tuple((place, self.load(array, tuple(self.value(k) for k in place.items))))

    def unrolled(self, node: ast.For, items: tuple[Abstract, ...], body: Callable[[Abstract], None]) -> None:
        """A loop over things known one by one is written out."""
        outer_path = self.path

        def iterations(k: int) -> None:
            if k == len(items):
                return
            self.path = (*outer_path, k)
            self.names[self.exit_key] = Static(GOES_ON)
            body(items[k])
            code = self.exit
            if isinstance(code, Static):
                if code.value in (GOES_ON, CONTINUES):
                    iterations(k + 1)
                return
            goes_on = self.apply("less_equal", self.value(code), self.const(GOES_ON))
            self.branch_on(goes_on, lambda: iterations(k + 1), lambda: None)

        iterations(0)
        self.path = outer_path
        if not self.dead:
            self.after_loop(self.exit, node)

    def after_loop(self, code: Abstract, node: ast.For | ast.While) -> None:
        """What follows a loop: its `else`, and a `return` from inside it."""
        self.names[self.exit_key] = Static(GOES_ON)
        if isinstance(code, Static):
            if code.value == RETURNS:
                self.leave(RETURNS)
            elif code.value != BREAKS:
                self.statements(node.orelse)
            return
        if _returns(node.body):
            returned = self.apply("equal", self.value(code), self.const(RETURNS))
            self.names[self.exit_key] = self.apply("where", returned, self.const(RETURNS), self.const(GOES_ON))
        if not node.orelse:
            return
        if not _breaks(node.body):
            returned = self.apply("equal", self.value(code), self.const(RETURNS))
            self.branch_on(returned, lambda: self.leave(RETURNS), lambda: self.after_exit(node.orelse))
            return
        left = self.apply("equal", self.value(code), self.const(BREAKS))
        if _returns(node.body):
            left = self.apply("logical_or", left, self.apply("equal", self.value(code), self.const(RETURNS)))
        self.branch_on(left, lambda: None, lambda: self.after_exit(node.orelse))

    # -- comprehensions ----------------------------------------------------------------------------------------------

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Abstract:
        handle = self.new_list(())
        names = frozenset().union(*(assigned_names(g.target) for g in node.generators))
        outer = self.frame
        first = self.source(node.generators[0].iter)
        lambda_node = ast.Lambda(args=_NO_ARGUMENTS, body=node.elt)
        walrus = assigned_names(node)
        self.frame = Frame(None, lambda_node, outer.file, outer.name, outer, names, walrus, outer.library, outer.told)
        try:
            self.generate(node, 0, handle, first)
        finally:
            self.frame = outer
        return handle

    def first_that(self, node: ast.GeneratorExp, wanted: bool) -> Abstract:
        """`any` or `all` of a generator: a loop that is left at the first element that decides."""
        if len(node.generators) != 1:
            self.refuse("SD102", node, "`any` and `all` support a single `for` here", help_="write the loops")
        generator = node.generators[0]
        found = ast.Name("%found", ast.Store())
        decides = node.elt if wanted else ast.UnaryOp(ast.Not(), node.elt)
        leave = ast.If(decides, [ast.Assign([found], ast.Constant(wanted)), ast.Break()], [])
        body: list[ast.stmt] = [leave]
        for condition in generator.ifs:
            body = [ast.If(condition, body, [])]
        start = ast.Assign([found], ast.Constant(not wanted))
        loop = ast.For(generator.target, generator.iter, body, [])
        statements = [ast.fix_missing_locations(ast.copy_location(s, node)) for s in (start, loop)]
        outer = self.frame
        names = assigned_names(generator.target) | {"%found"}
        lambda_node = ast.Lambda(args=_NO_ARGUMENTS, body=node.elt)
        walrus = assigned_names(node)
        self.frame = Frame(None, lambda_node, outer.file, outer.name, outer, names, walrus, outer.library, outer.told)
        try:
            self.statement_Assign(statements[0])  # type: ignore[arg-type]
            self.statement_For(statements[1])  # type: ignore[arg-type]
            return self.expr(ast.copy_location(ast.Name("%found", ast.Load()), node))
        finally:
            self.frame = outer

    def generate(
        self, node: ast.ListComp | ast.GeneratorExp, level: int, handle: List, source: Abstract | None
    ) -> None:
        if level == len(node.generators):
            self.append(handle, self.expr(node.elt), node)
            return
        generator = node.generators[level]
        source = self.source(generator.iter) if source is None else source

        def iteration(item: Abstract) -> None:
            self.assign(generator.target, item)
            self.when(generator.ifs, lambda: self.generate(node, level + 1, handle, None), node)

        self.go_through(generator, source, iteration, written_out=4)

    def when(self, conditions: list[ast.expr], then: Callable[[], None], node: ast.AST) -> None:
        if not conditions:
            then()
            return
        truth = self.condition(conditions[0])
        if isinstance(truth, Static):
            if truth.value:
                self.when(conditions[1:], then, node)
            return
        self.branch_on(truth, lambda: self.when(conditions[1:], then, node), lambda: None)


_ATTRIBUTE = "assignment to an attribute is not supported"
_ANOTHER = "use a dataclass, and make a new instance: `m = dataclasses.replace(m, name=...)`"


def _reached(problem: Problem, led_to: dict[str, Span]) -> Problem:
    """A problem in another file, with the line that leads there; one in a library, at the user's line that does."""
    call = None if problem.span is None else led_to.get(problem.span.file)
    if call is None or problem.span is None:
        return problem
    around, seen = call, {problem.span.file}
    while is_installed(around.file) and around.file in led_to and around.file not in seen:
        seen.add(around.file)
        around = led_to[around.file]
    if is_installed(problem.span.file) and not is_installed(around.file):
        there = f"the problem is in {problem.span.file}:{problem.span.line}, `{problem.span.text.strip()}`"
        message = f"this call leads into a library that cannot be differentiated: {problem.message}"
        return replace(problem, message=message, span=around, label="", notes=(there,), help=_OF_LIBRARIES)
    return replace(problem, notes=(*problem.notes, f"called from {call.file}:{call.line}, `{call.text.strip()}`"))


_OF_LIBRARIES = "write the computation in Python, or declare a rule with `srcdiff.custom_rule`"


def _one_a_line(problems: list[Problem]) -> list[Problem]:
    """Of the problems that a library has, the first that comes from a line of the user's."""
    first = {p.span: p for p in reversed(problems) if p.help == _OF_LIBRARIES}
    return [p for p in problems if p.help != _OF_LIBRARIES or first[p.span] is p]


def element_place(items: list[Abstract | Item], array: Value) -> tuple[Value, ...] | None:
    """The indices of a single element, if that is what a subscript means."""
    indices = tuple(i.value for i in items if isinstance(i, Index))
    return indices if len(indices) == len(items) == array.array.rank else None


_NO_ARGUMENTS = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def _scopes(node: ast.FunctionDef | ast.Lambda) -> tuple[frozenset[str], frozenset[str]]:
    return assigned_names(node), nonlocal_names(node)


def _always_leaves(body: list[ast.stmt]) -> bool:
    """Whether the statements never fall through to what follows."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Return | ast.Break | ast.Continue | ast.Raise):
        return True
    if isinstance(last, ast.With):
        return _always_leaves(last.body)
    return isinstance(last, ast.If) and _always_leaves(last.body) and _always_leaves(last.orelse)


def _breaks(body: list[ast.stmt]) -> bool:
    """Whether a `break` in the statements ends the loop they are the body of."""
    for statement in body:
        if isinstance(statement, ast.Break):
            return True
        if isinstance(statement, ast.With) and _breaks(statement.body):
            return True
        if isinstance(statement, ast.If) and (_breaks(statement.body) or _breaks(statement.orelse)):
            return True
        if isinstance(statement, ast.For | ast.While) and _breaks(statement.orelse):
            return True
    return False


def _returns(body: list[ast.stmt]) -> bool:
    for statement in body:
        if isinstance(statement, ast.Return) or (isinstance(statement, ast.With) and _returns(statement.body)):
            return True
        if isinstance(statement, ast.If | ast.For | ast.While) and (
            _returns(statement.body) or _returns(statement.orelse)
        ):
            return True
    return False


def _raises(body: list[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Raise | ast.Assert) for statement in body for n in ast.walk(statement))


_MOST_SPLITS = 4  # each may double what follows it


def read(
    captured: Captured,
    arguments: dict[str, Description],
    *,
    exact: bool = False,
    inside: Span | None = None,
    derivative: Any = None,
    kernel: bool = False,
    error_model: str = "",
) -> Reading:
    """The function as IR, for arguments of these descriptions; every problem found is reported together.

    `exact` is about broadcasting (see whole_arrays.py). A function of the library is read for a place `inside` the
    user's program. With `derivative`, that derivative of the function is read instead of it. A `kernel` is what a
    thread of a GPU runs. With an `error_model`, that is what division by zero does, whatever Numba was told. Where a
    name has two types after a branch or a loop, and is used, what follows is read for each.
    """
    split: set[ast.AST] = set()
    first: DifferentiationError | None = None
    while True:
        reader = Reader()
        reader.exact, reader.trusted, reader.split = exact, inside is not None, split
        reader.is_kernel, reader.error_model = kernel, error_model
        try:
            return _read(reader, captured, arguments, inside, derivative)
        except DifferentiationError as error:
            first = first or DifferentiationError(_one_a_line([_reached(p, reader.led_to) for p in error.problems]))
            found = {reader.culprits[p] for p in error.problems if p in reader.culprits} - split
            if not found or len(split | found) > _MOST_SPLITS:
                raise first from None
            split |= found
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            if first is None:
                raise
            raise first from error  # what follows makes no sense for one of the types


def _holds(x: Abstract, value: Value) -> bool:
    return any(leaf is value for leaf in NODES.leaves(x))


def _read(
    reader: Reader, captured: Captured, arguments: dict[str, Description], inside: Span | None, derivative: Any
) -> Reading:
    node = captured.node
    library = is_library(captured.function)
    scopes, told = _scopes(node), captured.told
    reader.frame = Frame(captured, node, captured.file, captured.name, None, *scopes, library, told)
    reader.span = inside if library else reader.span_of(node)
    reader.main_number = reader.frame.number
    reader.reported = refused_syntax(captured)
    reader.problems += reader.reported.values()
    bound: dict[str, Abstract] = {}
    params: list[Value] = []
    lists: dict[List, Stored] = {}
    reader.guards.add(Attribute(Constant(captured.function), "__code__"), captured.code)
    for name, description in arguments.items():
        bound[name], values = _argument(reader, description, name, lists)
        params += values
    reader.given |= set(params)
    seen = {name: reader.with_lists(x) for name, x in bound.items()}
    before = dict(reader.names)
    try:
        if derivative is None:
            result = reader.enter_captured(captured, reader.frame, seen, None)
        else:
            by_position, by_name = as_passed(node, seen)
            result = reader.call_with(Static(derivative), by_position, by_name, node)
    except Refusal as refusal:
        if refusal.problem is not None:
            reader.problems.append(refusal.problem)
        result = MISSING
    except NeverReturns:
        if not reader.problems:
            result = Static(0.0)  # every path raises: the program has no value, and raises before it needs one
        else:
            result = MISSING
    except RecursionFound as found:
        raise AssertionError("a recursion escaped") from found
    if reader.problems:
        raise DifferentiationError(list(dict.fromkeys(reader.problems)))
    result = _with_contents(reader, reader.present(result))
    outputs, operations = _result_values(reader, result)
    params += [o.value for o in reader.outside]
    stores = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    once = {name: values[-1] for name, values in reader.assigned.items() if stores.count(name) == 1}
    main = Function(captured.name, tuple(params), Block((*reader.first, *operations), tuple(outputs)))
    callees = (*(u.function for u in reader.units.values() if u.function is not None), *reader.derived.values())
    program = mark_writing_calls(Program(main, callees))
    program = pass_outside_values(program, [o.value for o in reader.outside])
    program = replace(program, callees=tuple(with_own_results(c) for c in program.callees))
    outside, guards, unknown = tuple(reader.outside), tuple(reader.guards), tuple(reader.unknown_calls)
    collect(guards)
    return Reading(
        program,
        bound,
        result,
        outside,
        guards,
        captured,
        lists,
        once,
        reader.assumes,
        reader.assumes_pythons,
        unknown,
        tuple(reader.handed_over),
        tuple(reader.named),
        reader.outcomes,
        reader.told_options,
        tuple(reader.differences.values()),
        tuple(_changed_lists(reader, seen, before)),
    )


def _changed_lists(reader: Reader, seen: dict[str, Abstract], before: Mapping[Any, Abstract]) -> Iterator[str]:
    """The names of lists of the caller's that the function changes."""

    def visit(x: Abstract, name: str) -> Iterator[str]:
        if isinstance(x, List):
            if x in reader.changed:
                yield name
            x = before[list_key(x)]
        if isinstance(x, Parts):
            for k, item in enumerate(x.items):
                yield from visit(item, x.layout.part(name, k))

    for name, x in seen.items():
        yield from visit(x, name)


def _argument(reader: Reader, d: Description, name: str, lists: dict[List, Stored]) -> tuple[Abstract, list[Value]]:
    """What stands for an argument, and the parameters it is made of; lists come as arrays."""
    if d.kind in ("tuple", "record"):
        reader.look_at_class(d.layout.kind)
        parts = [_argument(reader, p, d.layout.variable(name, k), lists) for k, p in enumerate(d.parts)]
        return of_parts(d, (x for x, _ in parts)), [v for _, values in parts for v in values]
    if d.kind == "items":
        return reader.new_list(()), []
    if d.kind != "stored":
        found, values = reader.fresh(d, name)
        if d.kind == "value" and NUMPYS not in d.parts and not reader.trusted:
            reader.pythons |= set(values)
        if INTEGER in d.parts:
            reader.whole |= set(values)
        return found, values
    arrays = [Value(t, name) for t in leaf_types(d) or () if isinstance(t, Array)]
    reader.storage.update(arrays)
    handle = List()
    lists[handle] = Stored(d.parts[0], tuple(arrays), reader.dim(arrays[0], 0))
    reader.names[list_key(handle)] = lists[handle]
    return handle, arrays


def mark_writing_calls(program: Program) -> Program:
    """Note which calls write into arrays they are given, raise or print: that is seen by whoever calls."""
    writing: dict[str, tuple[int, ...]] = {}
    effects = functions_with(program.callees, (Raise, Print))

    def marked(block: Block) -> Block:
        operations = []
        for operation in block.operations:
            if isinstance(operation, Call) and operation.function in writing:
                has_effects = operation.function in effects
                operation = replace(operation, writes=writing[operation.function], effects=has_effects)
            operations.append(operation.rebuilt(marked))
        return Block(tuple(operations), block.yields)

    def writes(function: Function) -> tuple[int, ...]:
        function = replace(function, body=marked(function.body))
        written = written_sites(function.body, points_to(function))
        return tuple(k for k, p in enumerate(function.params) if p in written)

    def whole(function: Function) -> Function:
        written = tuple(function.params[k] for k in writing[function.name])
        return replace(function, body=marked(function.body), written=written)

    found: dict[str, tuple[int, ...]] = {c.name: () for c in program.callees}
    while found != writing:
        writing = found
        found = {c.name: writes(c) for c in program.callees}
    main = replace(program.main, body=marked(program.main.body))
    return Program(main, tuple(whole(c) for c in program.callees))


def pass_outside_values(program: Program, outside: Sequence[Value]) -> Program:
    """Recursive functions get what they read from outside as further arguments, all of them alike."""
    if not program.callees or not outside:
        return program

    def closed(block: Block, known: dict[Value, Value]) -> Block:
        operations = []
        for operation in block.operations:
            operation = operation.replaced(lambda v: known.get(v, v))
            if isinstance(operation, Call):
                operation = replace(operation, args=(*operation.args, *(known.get(v, v) for v in outside)))
            operations.append(operation.rebuilt(lambda inner: closed(inner, known)))
        return Block(tuple(operations), tuple(known.get(v, v) for v in block.yields))

    def function(callee: Function) -> Function:
        known = {v: Value(v.type, v.name) for v in outside}
        return replace(callee, params=(*callee.params, *known.values()), body=closed(callee.body, known))

    main = replace(program.main, body=closed(program.main.body, {}))
    return Program(main, tuple(function(c) for c in program.callees))


def _permutes(node: ast.Assign) -> bool:
    """Whether two elements change their places: `a[i], a[k] = a[k], a[i]`."""
    target = node.targets[0]
    if len(node.targets) != 1 or not (isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)):
        return False
    if len(target.elts) != 2 or not all(isinstance(t, ast.Subscript) for t in target.elts):
        return False  # of three, two may be one place, and then a list is at two
    if any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(target)):
        return False
    return [ast.unparse(t) for t in target.elts] == [ast.unparse(v) for v in reversed(node.value.elts)]


def _with_contents(reader: Reader, result: Abstract) -> Abstract:
    """The result with its lists replaced by what they hold."""

    def visit(x: Abstract) -> Abstract:
        match x:
            case List():
                contents = reader.holding(x)
                if isinstance(contents, Stored) and holds_lists(contents.element):
                    message = "a list of lists with lengths known only at run time cannot be a result"
                    help_ = "return an array: `np.array(...)`"
                    raise DifferentiationError([Problem("SD401", message, reader.span, help=help_)])
                return NODES.map(visit, reader.flat(x) if isinstance(contents, Stored) else contents)
            case Value(type=Array(rank=0)):
                return reader.load(x, ())
            case Optional():
                raise DifferentiationError(
                    [Problem("SD401", f"a part of the result is {reader.in_words(x)}", reader.span)]
                )
            case Poison():
                raise DifferentiationError([x.problem] if x.problem is not None else [])
        return x

    return NODES.map(visit, result)


def _result_values(reader: Reader, result: Abstract) -> tuple[list[Value], list[Operation]]:
    if isinstance(result, Static | Value | Group | Items | Stored):
        description = loosened(describe(result))
        if holds_complex(description):
            problem = Problem("SD401", "the result is complex", reader.span, help="return its real part: `.real`")
            raise DifferentiationError([problem])
        if leaf_types(description) is not None:
            try:
                return reader.leaves(result, description), reader.operations
            except Refusal as refusal:
                raise DifferentiationError([refusal.problem] if refusal.problem is not None else []) from None
    raise DifferentiationError(
        [Problem("SD401", f"the result is {reader.in_words(result)}", reader.span, help="return one float")]
    )
