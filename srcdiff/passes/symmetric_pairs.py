"""Symmetric pairs: what a pair adds to the element of its second member, it adds to that of the first when they swap.

for i in range(n):                           for i in range(n):
    for j in range(n):                           for j in range(n):
        d = x[i] - x[j]                              d = x[i] - x[j]
        f = np.exp(-d * d) * d        =>             f = np.exp(-d * d) * d
        x_bar[i] += f                                x_bar[i] += f
        x_bar[j] -= f                                x_bar[i] += f

Both loops have the same range, so the pair (j, i) occurs, too. There `d` has the other sign, and so has `f`. All that
is added to an element is then a sum in one iteration of the outer loop, and the inner loop stores nothing. The adjoints
of distances between all pairs are such loops. The numbers that are added are the same; only their order differs.
"""

from __future__ import annotations

from collections.abc import Sequence

from srcdiff.analyses.dependence import Dependence, Effects, dependence_of
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Block, Const, Dim, Function, If, Load, Loop, Operation, Store, Value, changed, walk
from srcdiff.ir.types import element_type

_ODD = {
    *("float", "float32", "float64", "sign", "cbrt", "sin", "tan", "arcsin", "arctan", "sinh", "tanh"),
    *("arcsinh", "arctanh", "erf"),
}
"""Functions that change their sign with their argument."""
_EVEN = {"absolute", "fabs", "square", "cos", "cosh"}
_COMMUTATIVE = {"equal", "not_equal", "logical_and", "logical_or", "maximum", "minimum", "hypot"}
_MIRRORED = {"greater": "less", "greater_equal": "less_equal"}

Form = tuple[int, int]
"""The canonical form of a number: its sign, and the number of the expression without the sign."""


def add_to_first_of_pairs(function: Function) -> Function:
    """The function with additions to the element of the outer counter in place of those to that of the inner one."""
    if not any(isinstance(o, Store) and o.adds for o in walk(function.body)):
        return function
    return changed(function, body=_Pairs(function).block(function.body))


class _Pairs:
    def __init__(self, function: Function) -> None:
        self.dependence: Dependence = dependence_of(function)
        self.lengths = self.dependence.lengths

    def block(self, block: Block) -> Block:
        operations = tuple([self.visited(o) for o in block.operations])
        return changed(block, operations=operations)

    def visited(self, operation: Operation) -> Operation:
        if isinstance(operation, Loop) and self.is_plain(operation):
            inner = [o for o in operation.body.operations if isinstance(o, Loop) and self.has_range_of(o, operation)]
            made = {o: changed(o, body=self.collected(operation, o)) for o in inner}
            if any(made[o] is not o for o in inner):
                operations = tuple([made.get(o, o) if isinstance(o, Loop) else o for o in operation.body.operations])
                return changed(operation, body=changed(operation.body, operations=operations))
        return operation.rebuilt(self.block)

    def is_plain(self, loop: Loop) -> bool:
        is_forward = loop.index is not None and loop.counted and self.dependence.step(loop) == 1
        return is_forward and not loop.claims and self.lengths.counts_naturals(loop)

    def has_range_of(self, inner: Loop, outer: Loop) -> bool:
        """Whether two loops run over the same integers."""
        if not self.is_plain(inner):
            return False
        pairs = zip(inner.bounds or (), outer.bounds or (), strict=True)
        return all(self.lengths.same(a, b) for a, b in pairs)

    def collected(self, outer: Loop, inner: Loop) -> Block:
        """The body of the inner loop, with additions to elements of the outer counter where the pairs are symmetric."""
        effects = self.dependence.effects((outer,))
        if effects.pinned or effects.raises:
            return inner.body
        forms = _Forms(outer, inner, effects, self.dependence)
        return self.rewritten(inner.body, forms)

    def rewritten(self, block: Block, forms: _Forms) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            if isinstance(operation, If) and forms.sign_when_swapped(operation.condition) == 1:
                operation = operation.rebuilt(lambda b: self.rewritten(b, forms))
            sign = forms.sign_of(operation) if isinstance(operation, Store) else None
            if isinstance(operation, Store) and sign is not None:
                self.write(operation, sign, forms, operations)
            else:
                operations.append(operation)
        return changed(block, operations=tuple(operations))

    def write(self, store: Store, sign: int, forms: _Forms, into: list[Operation]) -> None:
        builder = Builder()
        builder.operations, builder.span = into, store.span
        definition = self.dependence.definition.get(store.value)
        if isinstance(definition, Apply):
            builder.note(definition)
        value = store.value if sign > 0 else builder.apply("negative", store.value)
        indices = tuple([forms.first if i is forms.second else i for i in store.indices])
        builder.store(store.array, indices, value, adds=True)


class _Forms:
    """Canonical forms of what two loops compute for a pair, and for the pair with both members swapped."""

    def __init__(self, outer: Loop, inner: Loop, effects: Effects, dependence: Dependence) -> None:
        assert outer.index is not None and inner.index is not None
        self.first, self.second = outer.index, inner.index
        self.outer, self.inner = outer, inner
        self.effects, self.dependence = effects, dependence
        self.own = {v for o in walk(outer.body) for v in (*o.defines(), *o.inner())}
        """What the loops compute; all else is the same in every iteration."""
        self.carried = {v for o in walk(Block((outer,))) if isinstance(o, Loop) for v in (*o.params, *o.outs)}
        self.numbers: dict[object, int] = {}
        """The numbers of expressions."""
        self.known: dict[tuple[Value, bool], Form | None] = {}

    # -- stores ------------------------------------------------------------------------------------------------------

    def sign_of(self, store: Store) -> int | None:
        """The sign of what the swapped pair adds, if it adds the same but for the sign; None if this is not known."""
        if not store.adds or store.atomic or store.claims or store.array in self.own:
            return None
        if store.value.type != element_type(store.array.array):
            return None
        others = [i for i in store.indices if i is not self.second]
        if len(others) != len(store.indices) - 1 or not all(self.stays(i) for i in others):
            return None
        return self.sign_when_swapped(store.value) if self.is_only_added_to(store.array) else None

    def stays(self, index: Value) -> bool:
        """Whether an index is the same for all pairs."""
        return index in self.dependence.constants or (index not in self.own and index is not self.first)

    def is_only_added_to(self, array: Value) -> bool:
        memory, of = self.dependence.memory(array), self.dependence.memory
        if memory & self.effects.reads or any(of(x.array) & memory for x in self.effects.loads):
            return False
        return all(x.adds for x in self.effects.stores if of(x.array) & memory)

    def sign_when_swapped(self, value: Value) -> int | None:
        """1 if the swapped pair has the same value, -1 if it has the negative one, and None otherwise."""
        here, there = self.form(value, False), self.form(value, True)
        if here is None or there is None or here[1] != there[1]:
            return None
        return here[0] * there[0]

    # -- values ------------------------------------------------------------------------------------------------------

    def number(self, *expression: object) -> int:
        return self.numbers.setdefault(expression, len(self.numbers))

    def form(self, value: Value, swapped: bool) -> Form | None:
        """The canonical form of a value in the iteration of a pair, or of the swapped pair."""
        key = value, swapped
        if key not in self.known:
            self.known[key] = self.made(value, swapped)
        return self.known[key]

    def made(self, value: Value, swapped: bool) -> Form | None:
        if value is self.first or value is self.second:
            return 1, self.number("counter", (value is self.first) is swapped)
        operation = self.dependence.definition.get(value)
        match operation:
            case Const():
                return 1, self.number("constant", type(operation.value), repr(operation.value))
            case _ if value not in self.own:
                return 1, self.number("same", id(value))
            case _ if value in self.carried:
                return None
            case Dim():
                return (
                    None if operation.array in self.own else (1, self.number("length", operation.array, operation.axis))
                )
            case Load():
                return self.of_load(operation, swapped)
            case If():
                place = operation.outs.index(value)
                parts = (operation.condition, operation.then.yields[place], operation.orelse.yields[place])
                return self.chosen(self.forms(parts, swapped))
            case Apply():
                return self.applied(operation, swapped)
        return None

    def forms(self, values: Sequence[Value], swapped: bool) -> list[Form] | None:
        found = [self.form(v, swapped) for v in values]
        return None if None in found else [f for f in found if f is not None]

    def of_load(self, load: Load, swapped: bool) -> Form | None:
        memory, indices = self.dependence.memory(load.array), self.forms(load.indices, swapped)
        if indices is None or load.array in self.own or memory & self.effects.writes:
            return None
        return 1, self.number("element", id(load.array), *indices)

    def applied(self, operation: Apply, swapped: bool) -> Form | None:
        forms = self.forms(operation.args, swapped)
        if forms is None:
            return None
        name = operation.primitive
        sign, first = forms[0]
        match name:
            case "negative":
                return -sign, first
            case "positive":
                return forms[0]
            case "add" | "subtract":
                other_sign, other = forms[1]
                return self.sum((sign, first), (other_sign if name == "add" else -other_sign, other))
            case "multiply":
                low, high = sorted((first, forms[1][1]))
                return sign * forms[1][0], self.number(name, low, high)
            case "divide" | "strong_multiply" | "strong_divide":
                return sign * forms[1][0], self.number(name, first, forms[1][1])
            case "power":
                exponent = self.dependence.constants.get(operation.args[1])
                if isinstance(exponent, int):
                    return sign if exponent % 2 else 1, self.number(name, first, forms[1])
            case "where":
                return self.chosen(forms)
        if name in _EVEN:
            return 1, self.number(name, first)
        if name in _ODD:
            return sign, self.number(name, first)
        if name in _MIRRORED:
            name, forms = _MIRRORED[name], forms[::-1]
        if name in _COMMUTATIVE:
            forms = sorted(forms)
        return 1, self.number(name, *forms)

    def sum(self, a: Form, b: Form) -> Form:
        """A sum with the sign of its first term; `x - y` is `-(y - x)`."""
        (sign, first), (other_sign, other) = sorted((a, b), key=lambda form: (form[1], form[0]))
        return sign, self.number("add", first, sign * other_sign, other)

    def chosen(self, forms: list[Form] | None) -> Form | None:
        """One of two numbers: it has the sign that both have, or the one that is not zero."""
        if forms is None:
            return None
        condition, (sign, one), (other_sign, other) = forms
        zeros = {self.number("constant", type(zero), repr(zero)) for zero in (0.0, 0)}
        if one in zeros:
            sign = other_sign
        elif other not in zeros and sign != other_sign:
            return 1, self.number("where", condition, forms[1], forms[2])
        return sign, self.number("where", condition, one, other)
