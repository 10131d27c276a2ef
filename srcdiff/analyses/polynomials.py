"""Integers of a program as polynomials of others: what a nest of loops has counted so far is one.

>>> n, i = Value(INT, "n"), Value(INT, "i")
>>> square = product({(i,): Fraction(1)}, {(i,): Fraction(1)})
>>> substituted(square, i, total({(i,): Fraction(1)}, {(): Fraction(1)})) == total(
...     square, {(i,): Fraction(2), (): Fraction(1)}
... )
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from srcdiff.analyses.structure import Structure
from srcdiff.ir.nodes import Apply, Operation, Value
from srcdiff.ir.types import INT
from srcdiff.quick_dataclasses import dataclass

Monomial = tuple[Value, ...]
"""Its factors, each as often as its power says, in a fixed order."""

Polynomial = Mapping[Monomial, Fraction]
"""The factors of monomials that are not zero."""

_HIGHEST = 4
"""The degree from which on values stand for themselves."""


@dataclass(frozen=True, slots=True)
class Polynomials:
    """The polynomials of a program's integers.

    `maximum(p, 0)` is p: what has to be no less than zero for that is in `not_negative`.
    """

    structure: Structure
    not_negative: list[Polynomial] = field(default_factory=list)
    known: dict[Value, Polynomial] = field(default_factory=dict)

    def of(self, value: Value) -> Polynomial:
        if value not in self.known:
            self.known[value] = self.made(value)
        return self.known[value]

    def made(self, value: Value) -> Polynomial:
        constant = self.structure.constants.get(value)
        if isinstance(constant, int):
            return {(): Fraction(constant)} if constant else {}
        found = self.formula(self.structure.definition.get(value))
        return {(value,): Fraction(1)} if found is None or any(len(m) > _HIGHEST for m in found) else found

    def formula(self, definition: Operation | None) -> Polynomial | None:
        if not isinstance(definition, Apply) or any(v.type != INT for v in (definition.out, *definition.args)):
            return None
        operands = [self.of(a) for a in definition.args]
        match definition.primitive, operands:
            case "add", [first, second]:
                return total(first, second)
            case "subtract", [first, second]:
                return total(first, second, -1)
            case "negative", [first]:
                return total({}, first, -1)
            case "multiply", [first, second]:
                return product(first, second)
            case "floor_divide", [first, second]:
                return _quotient(first, second)
            case "maximum", [first, second] if not second:
                self.not_negative.append(first)
                return first
        return None


def total(first: Polynomial, second: Polynomial, factor: int = 1) -> Polynomial:
    found = dict(first)
    for monomial, by in second.items():
        found[monomial] = found.get(monomial, Fraction(0)) + factor * by
    return {monomial: by for monomial, by in found.items() if by}


def product(first: Polynomial, second: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for one, by in first.items():
        found = total(found, {tuple(sorted((*one, *other), key=id)): by * more for other, more in second.items()})
    return found


def substituted(polynomial: Polynomial, value: Value, by: Polynomial) -> Polynomial:
    """The polynomial with another one for a value."""
    found: Polynomial = {}
    for monomial, factor in polynomial.items():
        part: Polynomial = {tuple(v for v in monomial if v is not value): factor}
        for _ in range(monomial.count(value)):
            part = product(part, by)
        found = total(found, part)
    return found


def _quotient(dividend: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """The quotient by a number, if there is no remainder for any value of its only variable."""
    values = {v for monomial in dividend for v in monomial}
    if divisor.keys() != {()} or len(values) > 1 or any(by.denominator != 1 for by in dividend.values()):
        return None
    by = divisor[()]
    remainders = [sum(f * k ** len(m) for m, f in dividend.items()) % by for k in range(abs(int(by)))]
    return None if any(remainders) else {m: f / by for m, f in dividend.items()}
