"""Derivatives inside a differentiated function: the inner function is read, differentiated and inlined.

    def f(x):                                   what stands for the call is a program like any other, in which `x` is
        return x * srcdiff.grad(g)(x)           a value: whoever differentiates `f` knows nothing of the derivative

The program fixes which values belong to which derivative, so perturbations cannot be confused.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from srcdiff.diagnostics import DifferentiationError, Refusal
from srcdiff.diagnostics.options import require_inside
from srcdiff.frontend.abstract_values import (
    Abstract,
    Closure,
    Group,
    Items,
    List,
    Parts,
    Record,
    Static,
    Stored,
    Transformed,
    Tuple,
    describe,
    holds_lists,
    is_computed,
    loosened,
)
from srcdiff.frontend.calls import Named, Passed
from srcdiff.frontend.capture import Captured, capture, plain_function
from srcdiff.frontend.environment import LISTS, list_key
from srcdiff.frontend.expressions import Outside
from srcdiff.frontend.guards import Guard
from srcdiff.frontend.recursion import Recursion
from srcdiff.ir.clone import inline, renamed
from srcdiff.ir.nodes import Block, Const, Function, Operation, Program, Value, walk
from srcdiff.ir.types import FLOAT, Array, Stack, is_float
from srcdiff.signature.descriptions import Description, floats_for_integers
from srcdiff.signature.structures import Layout
from srcdiff.signature.trees import NODES


@dataclass(frozen=True, slots=True)
class Reading:
    """A function read at certain argument types."""

    program: Program
    arguments: dict[str, Abstract]
    result: Abstract
    outside: tuple[Outside, ...]
    guards: tuple[Guard, ...]
    captured: Captured
    lists: dict[List, Stored]
    """What stands for lists among the arguments."""
    intermediates: dict[str, Value]
    """Numbers that the function assigns once, by name."""
    assumes_sizes: bool = False
    """Whether it was read as if no size were one that stretches."""
    assumes_pythons: bool = False
    """Whether something else would come of arguments that are numbers of NumPy's."""
    unknown_calls: tuple[Any, ...] = ()
    """The problems to report if the backend does not compile the calls of unknown functions."""
    passed: tuple[Passed, ...] = ()
    """The values that were passed to other functions of the program."""
    named: tuple[Named, ...] = ()
    """The values that statements give names to, or return."""
    outcomes: dict[ast.If, set[bool]] = field(default_factory=dict)
    """How the branches of the function may go; what is known before it runs goes one way."""
    told_options: dict[str, Any] = field(default_factory=dict)
    """The compile options that follow from the Numba options of the functions."""
    differences: tuple[str, ...] = ()
    """Lines in which functions that Numba compiles give other numbers, and why."""
    changed_lists: tuple[str, ...] = ()
    """Lists of the caller's that it changes."""


class Derivatives(Recursion):
    """Reads calls of derivatives."""

    def __init__(self) -> None:
        super().__init__()
        self.derived: dict[str, Function] = {}
        """Derivatives of recursive functions, by name."""
        self.stand_ins: set[Any] = set()
        """Sizes that stand for those of the arguments of the derivative that is being read."""

    # -- which derivative of what ------------------------------------------------------------------------------------

    def make_derivative(
        self, maker: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        """`srcdiff.grad(g, ...)` and its like: what is differentiated may be a function of the program itself."""
        if not args:
            self.refuse("SD304", node, "the first argument of a derivative must be a function")
        options = [self.plain_option(x, node) for x in args[1:]]
        named = {name: self.plain_option(x, node) for name, x in keywords.items()}
        captured, names = self.parameters(args[0], node)
        try:
            return Transformed(maker(captured.name, names, _stars(captured.node), *options, **named), args[0])
        except (TypeError, ValueError) as error:
            self.refuse("SD304", node, str(error))

    def call_tangent(self, maker: Any, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST) -> Abstract:
        """`srcdiff.jvp(f, primals, tangents)`."""
        self.require_options(keywords, node)
        groups = [x.items for x in args[1:] if isinstance(x, Tuple)]
        if len(args) != 3 or len(groups) != 2:
            self.refuse("SD304", node, "`jvp` takes a function, a tuple of arguments and a tuple of their tangents")
        function, (primals, tangents) = args[0], groups
        if len(primals) != len(tangents):
            self.refuse("SD304", node, f"{len(primals)} primals but {len(tangents)} tangents are given")
        chosen = tuple(k for k, t in enumerate(tangents) if t != Static(None))
        if not chosen and not self.frame.library:
            self.refuse("SD304", node, "at least one tangent of `jvp` must not be None")
        _, names = self.parameters(function, node)
        derivative = Transformed(maker(names, chosen), function)
        return self.call_derivative(derivative, [*primals, *(tangents[k] for k in chosen)], {}, node)

    def call_inside(
        self, inside: tuple[Any, ...], args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        """A derivative that is made of others: a function of the library, with what it is given first."""
        function, *given = inside
        known = inspect.signature(function).parameters
        if "backend" in known:
            self.require_options({n: x for n, x in keywords.items() if n != "wrt"}, node, known)
        return self.call_plain(function, [*map(Static, given), *args], keywords, node)

    def require_options(
        self, keywords: dict[str, Abstract], node: ast.AST, known: Collection[str] = ("backend",)
    ) -> None:
        """Options for how code is compiled are those of the function around it."""
        try:
            require_inside({name: self.plain_option(x, node) for name, x in keywords.items()}, known)
        except (TypeError, ValueError) as error:
            self.refuse("SD304", node, str(error))

    def call_positions_of(self, node: ast.AST, function: Abstract, wrt: Abstract) -> Abstract:
        _, names = self.parameters(function, node)
        chosen = self.plain_option(wrt, node)
        try:
            each = chosen if isinstance(chosen, tuple) else (chosen,)
            found = [k if isinstance(k, int) else names.index(k) for k in each]
        except ValueError:
            self.refuse("SD304", node, f"{chosen!r} is not an argument of the function")
        return Tuple(tuple(map(Static, found))) if isinstance(chosen, tuple) else Static(found[0])

    def call_float_positions(self, node: ast.AST, items: Abstract) -> Abstract:
        assert isinstance(items, Tuple)
        found = [k for k, x in enumerate(items.items) if self.has_floats(x)]
        return Tuple(tuple(map(Static, found)))

    def call_copied(self, node: ast.AST, x: Abstract) -> Abstract:
        def copied(leaf: Abstract) -> Abstract:
            if isinstance(leaf, List):
                return self.list_copy(node, leaf)
            return self.copy(leaf) if isinstance(leaf, Value) and isinstance(leaf.type, Array) else leaf

        return NODES.map(copied, x)

    def has_floats(self, x: Abstract) -> bool:
        """Whether it is, or holds, something to differentiate by."""
        return any(map(self.holds_floats, NODES.leaves(x)))

    def plain_option(self, x: Abstract, node: ast.AST) -> Any:
        if isinstance(x, Tuple):
            return tuple(self.plain_option(i, node) for i in x.items)
        if not isinstance(x, Static):
            self.refuse("SD304", node, "the derivative must be known at compile time")
        return x.value

    def parameters(self, function: Abstract, node: ast.AST) -> tuple[Captured, tuple[str, ...]]:
        """The function that is differentiated, through all derivatives, and the names of its parameters."""
        while isinstance(function, Transformed):
            function = function.function
        if isinstance(function, Closure):
            outer = function.frame
            while outer.captured is None:
                outer = outer.parent
            around = outer.captured
            return Captured(around.function, around.code, function.node, outer.file), _names(function.node)
        target = function.value if isinstance(function, Static) else None
        inner = getattr(target, "__srcdiff_derivative__", None)
        plain = plain_function(target if inner is None else inner.function)
        if plain is None:
            self.refuse("SD302", node, f"{self.in_words(function)} cannot be differentiated")
        try:
            return capture(plain), tuple(inspect.signature(plain, follow_wrapped=False).parameters)
        except Refusal as refusal:
            assert refusal.problem is not None
            self.refuse("SD302", node, refusal.problem.message)

    def bound(
        self, function: Abstract, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> dict[str, Abstract]:
        """All arguments of the function that is differentiated, by name."""
        while isinstance(function, Transformed):
            function = function.function
        captured, _ = self.parameters(function, node)
        if isinstance(function, Closure):
            defaults = function.defaults
        else:
            self.guards.add_function(captured.function, captured.code)
            defaults = self.lift_defaults(captured.function, node)
        return self.bind(captured.node, args, keywords, defaults, captured.name, node)

    # -- the call ----------------------------------------------------------------------------------------------------

    def call_derivative(
        self, derivative: Transformed, args: list[Abstract], keywords: dict[str, Abstract], node: ast.AST
    ) -> Abstract:
        derivation = derivative.derivation
        if any(u.function is None for u in self.units.values()):
            self.refuse("SD404", node, "a derivative is taken inside a recursive function")
        count = len(args) - derivation.takes
        args, further = args[:count], args[count:]
        captured, _ = self.parameters(derivative.function, node)
        given = self.bound(derivative.function, args, keywords, node)
        if any(n not in given for n in derivation.wrt):
            message = "a derivative inside another one cannot be taken with respect to an intermediate variable"
            self.refuse("SD404", node, message)
        self.settle()
        before, same, self.stand_ins = dict(self.names), self.same, set()
        inner, pairs, lists = self.separated(given, derivation.wrt)
        with self.block() as operations:
            self.settle()
            by_position, by_name = as_passed(captured.node, {n: self.with_lists(x) for n, x in inner.items()})
            result = self.forced(self.call_with(derivative.function, by_position, by_name, node))
            self.settle()
            result = self.contents_of(result)
            yields = self.leaves(result, loosened(describe(result)))
        self.only_reads_around(before, node)
        self.names, self.same = before, same
        body = Block(tuple(operations), tuple(yields))
        main = self.closed(captured.name, [fresh for fresh, _ in pairs], body)
        callees = (*(u.function for u in self.units.values() if u.function is not None), *self.derived.values())
        reading = Reading(Program(main, callees), inner, result, (), (), captured, lists, {})
        try:
            derived = derivation.derive(reading)
        except DifferentiationError as error:
            self.problems += error.problems
            raise Refusal(None) from None
        known = {**dict(pairs), **self.further_values(derived.further, further, node)}
        self.keep_apart(main, derived.written, dict(pairs), node)
        there = {u.name for u in self.units.values()} | self.derived.keys()
        # the derivative around this one may have to write functions of the same names, which take more
        names = {c.name: f"{c.name}_inside" for c in derived.callees if c.name not in there}
        self.derived |= {names[c.name]: renamed(c, names) for c in derived.callees if c.name in names}
        values = inline(renamed(derived.main, names), [known.get(p, p) for p in derived.main.params], self)
        if derived.form is not None:
            return self.like_result(derived.form, iter(values))
        return self.assembled(derivation, reading, given, iter(values))

    def separated(
        self, given: dict[str, Abstract], wrt: tuple[str, ...]
    ) -> tuple[dict[str, Abstract], list[tuple[Value, Value]], dict[List, Stored]]:
        """The arguments with new values for those to differentiate by, and each new value with what it stands for."""
        pairs: list[tuple[Value, Value]] = []
        lists: dict[List, Stored] = {}
        inner = dict(given)
        for name in wrt:
            inner[name] = self.all_anew(given[name], name, pairs, lists)
        return inner, pairs, lists

    def all_anew(self, x: Abstract, name: str, pairs: list[tuple[Value, Value]], lists: dict[List, Stored]) -> Abstract:
        names = NODES.named(x, name, Layout.variable)
        return NODES.map(lambda leaf: self.anew(leaf, next(names).name, pairs, lists), x)

    def anew(self, x: Abstract, name: str, pairs: list[tuple[Value, Value]], lists: dict[List, Stored]) -> Abstract:
        match x:
            case List() if self.is_of_structures(x):
                return self.all_anew(self.as_record(x), name, pairs, lists)
            case List():
                contents = self.stored_floats(self.own_contents(x))
                if isinstance(contents, Stored) and not any(isinstance(a.type, Stack) for a in contents.arrays):
                    arrays = [self.anew(a, name, pairs, lists) for a in contents.arrays]
                    handle = List()
                    own = tuple(a for a in arrays if isinstance(a, Value))
                    lists[handle] = Stored(contents.element, own, contents.length)
                    self.names[list_key(handle)] = lists[handle]
                    return handle
                return x
        d = floats_for_integers(loosened(describe(x)))
        if d.kind != "value":
            return x
        value = self.cast(self.value(x), d.detail)
        fresh = self.register(Value(value.type, value.name or name))
        pairs.append((fresh, value))
        if self.is_pythons(x):
            self.pythons.add(fresh)
        if loosened(describe(x)) != d:
            self.whole.add(fresh)
        if isinstance(value.type, Array):
            self.stands_for(fresh, value)
        return fresh

    def is_of_structures(self, x: List) -> bool:
        """Whether it is a list whose elements are not numbers, all of them known."""
        contents = self.holding(x)
        return isinstance(contents, Items) and bool(contents.items) and not self.of_numbers(contents)

    def as_record(self, x: List) -> Record:
        """What such a list holds now."""
        contents = self.holding(x)
        assert isinstance(contents, Items)
        return Record(contents.items, contents.layout)

    def with_lists(self, x: Abstract) -> Abstract:
        """An argument as the function sees it: with lists that it may change."""
        found: Abstract = NODES.fold(x, lambda leaf: leaf, self.with_new_list)
        return found

    def with_new_list(self, x: Group | Items, items: Iterable[Abstract]) -> Abstract:
        """The same of these parts; a list is one that may be changed."""
        return self.new_list(tuple(items)) if x.layout.kind is list else x.remade(items)

    def stored_floats(self, contents: Abstract) -> Abstract:
        """What a list holds as arrays; whole numbers to differentiate by are floats."""
        if isinstance(contents, Items):
            element = self.as_stored(contents).parts[0] if contents.items else Description("value", FLOAT)
            contents = self.store_items(contents, floats_for_integers(loosened(element)))
        if isinstance(contents, Stored) and contents.element != floats_for_integers(contents.element):
            contents = self.restored(contents, floats_for_integers(contents.element), self.frame.node)
        return contents

    def stands_for(self, fresh: Value, array: Value) -> None:
        """What is known of an array is known of the parameter that stands for it, and sizes are asked of that."""
        for axis, key in enumerate(self.keys(array)):
            if key[0] not in ("n", "v") and key not in self.stand_ins:
                self.stand_ins.add(("d", fresh, axis))
                self.same = {**self.same, key: ("d", fresh, axis)}
        self.sizes[fresh], self.origins[fresh] = self.keys(array), self.origins_of(array)
        if array in self.contiguous:
            self.contiguous.add(fresh)

    def own_contents(self, x: List) -> Abstract:
        """What a list holds, in arrays of its own if in any; lists of lists in arrays are not passed on."""
        contents = self.holding(x)
        if isinstance(contents, Stored) and holds_lists(contents.element):
            message = "a list of lists with lengths known only at run time cannot be passed to a derivative"
            self.refuse("SD203", None, message, help_="pass an array: `np.array(...)`")
        return self.flat(x) if isinstance(contents, Stored) else contents

    def contents_of(self, x: Abstract) -> Abstract:
        """A result with its lists as what they hold."""

        def visit(leaf: Abstract) -> Abstract:
            match leaf:
                case List():
                    return self.contents_of(self.own_contents(leaf))
                case Value(type=Array(rank=0)):
                    return self.load(leaf, ())
            return self.present(leaf)

        return NODES.map(visit, x)

    def only_reads_around(self, before: dict[Any, Abstract], node: ast.AST) -> None:
        """A derivative changes nothing: an inner function that assigns names of the outer one is refused."""
        for key, x in before.items():
            if key[0] != LISTS and key[1][:1] != "%" and self.names.get(key, x) is not x:
                self.refuse("SD404", node, f"the inner function assigns `{key[1]}` of the enclosing function")

    def closed(self, name: str, params: list[Value], body: Block) -> Function:
        """The function whose further parameters are the values that the body takes from around it."""
        constants: list[Operation] = []
        free: dict[Value, None] = {}
        for value in _free_values(body, set(params)):
            if value in self.constants:
                constants.append(Const(value, self.constants[value]))
            else:
                free[value] = None
        return Function(name, (*params, *free), Block((*constants, *body.operations), body.yields))

    def keep_apart(self, main: Function, written: set[Value], pairs: dict[Value, Value], node: ast.AST) -> None:
        """Where the inner function writes into an array it is given, no other may share its memory."""
        arrays = [p for p in main.params if isinstance(p.type, Array)]
        for a in (p for p in arrays if p in written):
            for b in arrays:
                if a is not b and not self.disjoint(pairs.get(a, a), pairs.get(b, b)):
                    message = "the function that is differentiated here writes to an array that may share memory"
                    self.refuse("SD403", node, f"{message} with another array that it reads")

    def further_values(self, taken: dict[str, Abstract], given: list[Abstract], node: ast.AST) -> dict[Value, Value]:
        """What the derivative takes beside the arguments of the function: tangents."""
        known: dict[Value, Value] = {}

        def opened(x: Parts, y: Abstract, _: str) -> tuple[Abstract, ...]:
            y = self.as_record(y) if isinstance(y, List) and self.is_of_structures(y) else y
            parts = y.items if isinstance(y, Group) else ()
            if len(parts) != len(x.items):
                self.refuse("SD203", node, "a tangent does not have the structure of its argument")
            return parts

        pairs = [NODES.beside(x, y, "", opened) for x, y in zip(taken.values(), given, strict=True)]
        for x, y in ((part.value, y) for each in pairs for part, y in each):
            if isinstance(x, Value):
                value = (
                    self.the_array(y, node) if isinstance(x.type, Array) else self.cast(self.number(y, node), x.type)
                )
                if value.type != x.type:
                    self.refuse(
                        "SD203", node, f"a tangent is {self.in_words(y)}, but its argument is {self.in_words(x)}"
                    )
                known[x] = self.copy(value) if isinstance(value.type, Array) else value  # it may be given back
        return known

    # -- the result --------------------------------------------------------------------------------------------------

    def assembled(
        self, derivation: Any, reading: Reading, given: dict[str, Abstract], values: Iterator[Value]
    ) -> Abstract:
        """The result of the derivative, as the user's code sees it."""
        if derivation.mode == "forward":
            count = derivation.with_value + 1
            parts = [self.like_result(reading.result, values) for _ in range(count)]
            return Tuple(tuple(parts)) if count > 1 else parts[0]
        kept = derivation.with_value or derivation.has_aux
        result = self.like_result(reading.result, values) if kept else None
        bars = [self.like_argument(given[n], reading.arguments[n], reading.lists, values) for n in derivation.wrt]
        gradient = bars[0] if derivation.single else Tuple(tuple(bars))
        if result is None:
            return gradient
        if derivation.with_value:
            return Tuple((result, gradient))
        assert isinstance(result, Tuple)
        return Tuple((gradient, result.items[1]))

    def like_result(self, x: Abstract, values: Iterator[Value]) -> Abstract:
        def leaf(x: Abstract) -> Abstract:
            if isinstance(x, Stored):
                arrays = tuple(next(values) for _ in x.arrays)
                return self.new_list(Stored(x.element, arrays, next(values)))
            return next(values) if is_computed(x) else x

        return NODES.fold(x, leaf, self.with_new_list)

    def like_argument(
        self, x: Abstract, inner: Abstract, lists: dict[List, Stored], values: Iterator[Value]
    ) -> Abstract:
        x = self.as_record(x) if isinstance(x, List) and isinstance(inner, Record) else x
        if isinstance(inner, Group) and isinstance(x, Group):
            items = [self.like_argument(a, b, lists, values) for a, b in zip(x.items, inner.items, strict=True)]
            return self.with_lists(inner.remade(items))
        if not isinstance(inner, List | Value) or (isinstance(inner, Value) and not is_float(inner.type)):
            return Static(None)  # it holds no floats
        if isinstance(inner, List):
            stored = lists[inner]
            return self.new_list(Stored(stored.element, tuple(next(values) for _ in stored.arrays), stored.length))
        found = next(values)
        if isinstance(found.type, Array) and isinstance(x, Value):
            self.made(found, self.keys(x))
            self.contiguous.discard(found)
        return found


def _names(node: ast.FunctionDef | ast.Lambda) -> tuple[str, ...]:
    arguments = node.args
    return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _stars(node: ast.FunctionDef | ast.Lambda) -> dict[str, str]:
    """The parameters that take any number of arguments, as they are written."""
    given = (("*", node.args.vararg), ("**", node.args.kwarg))
    return {a.arg: f"{star}{a.arg}" for star, a in given if a is not None}


def as_passed(
    node: ast.FunctionDef | ast.Lambda, given: dict[str, Abstract]
) -> tuple[list[Abstract], dict[str, Abstract]]:
    """Arguments by name as they are passed: those that can be by position, the others by keyword."""
    arguments = node.args
    first = [given[a.arg] for a in (*arguments.posonlyargs, *arguments.args)]
    if arguments.vararg is not None:
        rest = given[arguments.vararg.arg]
        assert isinstance(rest, Tuple)
        first += rest.items
    return first, {a.arg: given[a.arg] for a in arguments.kwonlyargs}


def _free_values(block: Block, defined: set[Value]) -> dict[Value, None]:
    """The values that a block takes from around it."""
    operations = list(walk(block))
    defined = defined | {v for o in operations for v in (*o.defines(), *o.inner())}
    blocks = [block, *(b for o in operations for b in o.blocks())]
    used = [v for o in operations for v in o.uses()] + [v for b in blocks for v in b.yields]
    return {v: None for v in used if v not in defined}
