"""Products and quotients of adjoints that are zero if the adjoint is, whatever it is multiplied by, become choices.

x_bar = strong_divide(y_bar, x)     =>      x_bar = y_bar / x if y_bar != 0.0 else 0.0

The derivatives of `log`, `sqrt` or a division are not finite everywhere, and an adjoint of exactly zero is that of an
element that a mask or a branch has left out: zero times infinity would be NaN. Where the adjoint cannot be zero, no
choice is needed; where the same number makes both what they are, zero would be wrong.

The primitives stay until a program has been differentiated as often as it is: a choice has another derivative than a
product if the adjoint is zero.
"""

from __future__ import annotations

from dataclasses import replace

from srcdiff.analyses.signs import INFINITE, LARGEST, Sign, Signs, signs_of
from srcdiff.ir.builder import STRONG
from srcdiff.ir.nodes import Apply, Block, Const, Function, Operation, Value, changed, walk
from srcdiff.ir.types import BOOL, is_inexact, widest, zero_of
from srcdiff.quick_dataclasses import dataclass

_MOST_OPERATIONS = 60
"""How far an adjoint is looked into."""
_MOST_CAUSES = 4
"""For how many of the numbers that both arguments depend on."""


def choose_zeros(function: Function) -> Function:
    """The function without strong products."""
    if not any(isinstance(o, Apply) and o.primitive in STRONG for o in walk(function.body)):
        return function
    return changed(function, body=_Choices(signs_of(function)).block(function.body))


@dataclass(frozen=True, slots=True)
class _Selection:
    """A choice between a number and zero."""

    condition: Value
    amount: Value
    is_first: bool
    """Whether the number is chosen if the condition holds."""
    operations: list[Operation]
    """They compute the number."""

    def followed_by(self, operation: Apply, *args: Value) -> _Selection:
        amount = Value(operation.out.type)
        return replace(self, amount=amount, operations=[*self.operations, replace(operation, out=amount, args=args)])


class _Choices:
    def __init__(self, signs: Signs) -> None:
        self.signs = signs

    def block(self, block: Block) -> Block:
        operations: list[Operation] = []
        for operation in block.operations:
            if isinstance(operation, Apply) and operation.primitive in STRONG:
                operations += self.chosen(operation)
            else:
                operations.append(operation.rebuilt(self.block))
        return changed(block, operations=tuple(operations))

    def chosen(self, operation: Apply) -> list[Operation]:
        factor, primitive = operation.args[0], STRONG[operation.primitive]
        if not self.signs.of(factor) & Sign.ZERO or self.needs_no_choice(operation):
            return [changed(operation, primitive=primitive)]
        if (selection := self.selection(factor)) is not None:
            return self.selected(operation, selection)
        type_ = widest(operation.out.type)
        zero, product, counts = Value(type_), Value(type_), Value(BOOL)
        return [
            Const(zero, zero_of(type_), span=operation.span),
            Apply(counts, "not_equal", (self.source(factor), zero), span=operation.span),
            Apply(product, primitive, operation.args, span=operation.span),
            Apply(operation.out, "where", (counts, product, zero), span=operation.span),
        ]

    def selection(self, factor: Value) -> _Selection | None:
        """The choice between zero and a number that a factor is, or is a multiple of."""
        operation = self.signs.definitions.get(factor)
        if operation is None or factor.name:
            return None
        match operation.primitive, operation.args:
            case "where", (condition, first, second):
                for other, amount, is_first in ((first, second, False), (second, first, True)):
                    if self.signs.constants.get(other) == 0.0:
                        return _Selection(condition, amount, is_first, [])
            case "negative", (argument,) if (inner := self.selection(argument)) is not None:
                return inner.followed_by(operation, inner.amount)
            case "multiply", (first, second):
                if (inner := self.selection(first)) is not None:
                    return inner.followed_by(operation, inner.amount, second)
                if (inner := self.selection(second)) is not None:
                    return inner.followed_by(operation, first, inner.amount)
        return None

    def selected(self, operation: Apply, selection: _Selection) -> list[Operation]:
        """The choice of a product: where the factor is zero by choice, no other test is needed."""
        type_ = widest(operation.out.type)
        zero, product, amount = Value(type_), Value(type_), selection.amount
        chosen = self.chosen(changed(operation, out=product, args=(amount, *operation.args[1:])))
        sides = (product, zero) if selection.is_first else (zero, product)
        return [
            Const(zero, zero_of(type_), span=operation.span),
            *selection.operations,
            *chosen,
            Apply(operation.out, "where", (selection.condition, *sides), span=operation.span),
        ]

    def source(self, value: Value) -> Value:
        """The value that this one is a multiple of, if this one has no name: both are zero, or none is."""
        source = self.signs.multiple(value)[0]
        return source if not value.name and is_inexact(source.type) else value

    # -- adjoints that are known where the partial is infinite ---------------------------------------------------------

    def needs_no_choice(self, operation: Apply) -> bool:
        """Whether the numbers that make the other argument infinite say what the factor is.

        In the derivative of s ** 3 with s = 1 / t, the factor is infinite where `s` is, which is where `t` is zero. So
        for each of the numbers that `t` may be, either `s` is finite or the factor is not zero.

        In the derivative of sqrt(x) ** 2, the factor is zero because `x` is, which also makes the derivative of the
        root infinite. Their product has a limit, but it is not zero. It stays NaN.
        """
        factor, other = operation.args
        harmful = INFINITE if operation.primitive == "strong_multiply" else Sign.ZERO | Sign.NAN
        if not self.signs.of(other) & harmful:
            return True
        of_factor = self.ancestors(factor)
        causes = [value for value in self.ancestors(other) if value in of_factor][:_MOST_CAUSES]
        limits = not any(
            bool(self.signs.of(cause) & Sign.ZERO) and self.signs.is_least_at_zero(cause) for cause in causes
        )
        return any(self.decides(cause, factor, other, harmful, limits) for cause in causes)

    def decides(self, cause: Value, factor: Value, other: Value, harmful: Sign, limits: bool) -> bool:
        for number in self.signs.numbers(cause):
            known = {cause: number}
            if not self.signs.given(known, other, _MOST_OPERATIONS) & harmful:
                continue
            found = self.signs.given(known, factor, _MOST_OPERATIONS)
            is_limit = limits and found == Sign.ZERO and abs(number) < LARGEST  # no overflow
            if found & Sign.ZERO and not is_limit:
                return False
        return True

    def ancestors(self, value: Value) -> dict[Value, None]:
        """The numbers that a value is computed from, the nearest first."""
        found, waiting = {value: None}, [value]
        while waiting and len(found) < _MOST_OPERATIONS:
            operation = self.signs.definitions.get(waiting.pop(0))
            for argument in operation.args if operation is not None else ():
                if is_inexact(argument.type) and argument not in self.signs.constants and argument not in found:
                    found[argument] = None
                    waiting.append(argument)
        return found
