"""Signs: which of negative, zero, positive, infinite and NaN a number of the program may be.

The abstract value of a number is a set of these six kinds. What a primitive makes of them is found by computing it for
some numbers of each kind, so that the mathematics is stated once: `1.0 / x` is infinite if `x` may be zero, and
`1.0 / (1.0 + x * x)` never is. The arguments of the function are taken to be finite.

The numbers of a kind contain those at which functions are singular (0, 1, -1, -2), one whose square is zero, and one
whose exponential is infinite. In a sum, a constant is any number of its kind, because `x - 3.0` may be zero. On a side
of a branch, a number that the condition compares with a constant has the signs that pass the test.

An infinity is meant if the program has it as a constant: a table may start with `np.inf`. Others, such as the result
of a division by zero, seldom outlive the expression that they occur in. `expected_signs` leaves those out of memory and
out of what loops carry.
"""

from __future__ import annotations

import cmath
import contextlib
import enum
import functools
import itertools
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from srcdiff.ir.aliasing import Sites, points_to
from srcdiff.ir.analysis import analysis
from srcdiff.ir.builder import STRONG
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Const,
    Copy,
    Custom,
    Dim,
    Function,
    If,
    Load,
    Loop,
    Operation,
    Store,
    Value,
    walk,
)
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.types import BOOL, Scalar, is_complex, is_float, is_inexact
from srcdiff.quick_dataclasses import dataclass
from srcdiff.rules.evaluate import partial_of, result_of
from srcdiff.rules.formula import calls_slow_functions
from srcdiff.rules.table import RULES


class Sign(enum.IntFlag):
    """The possible values of a number."""

    NEGATIVE = 1
    ZERO = 2
    POSITIVE = 4
    INFINITY = 8
    MINUS_INFINITY = 16
    NAN = 32
    MEANT = 64
    """Not a kind of numbers: whether the program means it to be infinite or NaN."""


NOTHING = Sign(0)
FINITE = Sign.NEGATIVE | Sign.ZERO | Sign.POSITIVE
NOT_NEGATIVE = Sign.ZERO | Sign.POSITIVE
INFINITE = Sign.INFINITY | Sign.MINUS_INFINITY | Sign.NAN
ANYTHING = FINITE | INFINITE | Sign.MEANT

_TINY, LARGEST = 1e-200, 2000.0
_SIZES = (_TINY, 0.5, 1.0, 2.0, LARGEST)
_FLOATS: dict[Sign, tuple[float, ...]] = {
    Sign.NEGATIVE: tuple(-x for x in _SIZES),
    Sign.ZERO: (0.0,),
    Sign.POSITIVE: _SIZES,
    Sign.INFINITY: (math.inf,),
    Sign.MINUS_INFINITY: (-math.inf,),
    Sign.NAN: (math.nan,),
}
_COMPLEX: dict[Sign, tuple[complex, ...]] = {
    Sign.ZERO: (0j,),
    Sign.NEGATIVE | Sign.POSITIVE: (complex(_TINY, 0.0), 1 + 0j, -1 + 0j, 1j, -1j, 0.5 + 0.5j, 2000 + 0j, 2000j),
    Sign.INFINITY | Sign.MINUS_INFINITY: (complex(math.inf, 0.0),),
    Sign.NAN: (complex(math.nan, math.nan),),
}
_INTEGERS: dict[Sign, tuple[int, ...]] = {Sign.NEGATIVE: (-1, -2), Sign.ZERO: (0,), Sign.POSITIVE: (1, 2, 5)}

_SUMS = frozenset(("add", "subtract"))
"""Primitives that may be zero for some numbers of a kind and not for others."""
_DEEPEST = 30
_COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))
_TESTS = frozenset(("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit"))


def sign_of(number: Any) -> Sign:
    """The kind of one number.

    >>> sign_of(2.5), sign_of(-math.inf)
    (<Sign.POSITIVE: 4>, <Sign.MINUS_INFINITY: 16>)
    """
    if number != number:
        return Sign.NAN
    if isinstance(number, complex | np.complexfloating):  # one that is not zero has no sign
        infinity = Sign.INFINITY | Sign.MINUS_INFINITY
        return infinity if cmath.isinf(number) else Sign.NEGATIVE | Sign.POSITIVE if number else Sign.ZERO
    if math.isinf(number):
        return Sign.INFINITY if number > 0 else Sign.MINUS_INFINITY
    return Sign.ZERO if number == 0 else Sign.POSITIVE if number > 0 else Sign.NEGATIVE


@dataclass(frozen=True, slots=True)
class Known:
    """The facts about an argument: its kinds, and its value if it is a constant."""

    sign: Sign
    type: Scalar
    constant: Any = None
    place: int = 0
    """The first of the arguments that is the same value."""

    def numbers(self) -> Sequence[Any]:
        if self.constant is not None:
            return (self.constant,)
        if self.type == BOOL:
            return (False, True)
        of_kind: Mapping[Sign, Sequence[Any]] = _FLOATS if is_float(self.type) else _INTEGERS
        of_kind = _COMPLEX if is_complex(self.type) else of_kind
        return [number for kind, numbers in of_kind.items() if kind & self.sign for number in numbers]


def _points(arguments: Sequence[Known]) -> Iterator[tuple[Any, ...]]:
    """Numbers for all arguments, in all combinations; the same value is the same number."""
    places = sorted({a.place for a in arguments})
    for numbers in itertools.product(*(arguments[k].numbers() for k in places)):
        at = dict(zip(places, numbers, strict=True))
        yield tuple(at[a.place] for a in arguments)


@functools.cache
def _result(primitive: str, arguments: tuple[Known, ...]) -> Sign:
    meant = NOTHING
    for argument in arguments:
        meant |= argument.sign & Sign.MEANT
    if primitive in _SUMS:
        arguments = tuple([Known(a.sign, a.type, None, a.place) for a in arguments])
    found = NOTHING
    if PRIMITIVES[primitive].slow:
        return FINITE | INFINITE | meant
    for point in _points(arguments):
        found |= sign_of(result_of(primitive, point))
    return found | meant if found & INFINITE else found


@functools.cache
def _partial_is_finite(primitive: str, parameter: str, arguments: tuple[Known, ...], out: Sign) -> bool:
    rule = RULES[primitive]
    if calls_slow_functions(rule):
        return False
    for point in _points(arguments):
        if any(abs(number) == _TINY for number in point):
            continue  # its square is zero, but no derivative depends on that
        is_possible = sign_of(result_of(primitive, point)) & out
        if is_possible and not cmath.isfinite(partial_of(rule, parameter, point)):
            return False
    return True


@functools.cache
def _is_covered(
    primitive: str, parameter: str, arguments: tuple[Known, ...], places: frozenset[int], zeros: frozenset[int]
) -> bool:
    rule = RULES[primitive]
    for point in _points(arguments):
        if any(abs(number) == _TINY for number in point):
            continue
        out = result_of(primitive, point)
        if any(not cmath.isfinite(number) for k, number in enumerate((*point, out)) if k in places):
            continue
        if any(number == 0 for k, number in enumerate((*point, out)) if k in zeros):
            continue
        if not cmath.isfinite(partial_of(rule, parameter, point)):
            return False
    return True


@functools.cache
def _propagates(primitive: str, arguments: tuple[Known, ...], place: int) -> bool:
    same = arguments[place].place
    known = tuple([Known(INFINITE, a.type, None, a.place) if a.place == same else a for a in arguments])
    return not _result(primitive, known) & FINITE


@functools.cache
def _is_infinite_at_zero(primitive: str, arguments: tuple[Known, ...], place: int) -> bool:
    same = arguments[place].place
    known = tuple([Known(Sign.ZERO, a.type, None, a.place) if a.place == same else a for a in arguments])
    return not _result(primitive, known) & FINITE


@functools.cache
def _passing(primitive: str, constant: Any, *, holds: bool) -> Sign:
    """The kinds of numbers for which a test, or a comparison with the constant, gives this result."""
    found = NOTHING
    for kind, numbers in _FLOATS.items():
        near = () if constant is None else (constant, constant / 2, constant * 2, 1e300, -1e300)
        for number in (*numbers, *(x for x in near if sign_of(x) == kind)):
            point = (number,) if constant is None else (number, constant)
            if bool(result_of(primitive, point)) == holds:
                found |= kind
    return found | Sign.MEANT


@dataclass(frozen=True, slots=True)
class Signs:
    """The kinds of the numbers and of the elements of memory; those that are not there may be any finite number."""

    found: Mapping[Value, Sign]
    constants: Mapping[Value, Any]
    definitions: Mapping[Value, Apply]
    carried: Mapping[Value, tuple[Value, Value, Value]] = field(default_factory=dict)
    """The results of loops, with their initial, carried and final values."""
    limits: dict[Value, Sign] = field(default_factory=dict)
    """The limits of values in the current block."""

    def of(self, value: Value) -> Sign:
        found = self.found.get(value, FINITE)
        return found & self.limits[value] if value in self.limits else found

    def known(self, arguments: Sequence[Value]) -> tuple[Known, ...]:
        """The facts about the arguments of a primitive."""
        return tuple(
            [
                Known(self.of(a), a.scalar, self.constants.get(a), next(k for k, b in enumerate(arguments) if a is b))
                for a in arguments
            ]
        )

    def numbers(self, value: Value) -> Sequence[Any]:
        """Some numbers of all kinds that a value may be."""
        return Known(self.of(value), value.scalar, self.constants.get(value)).numbers()

    def given(self, known: Mapping[Value, Any], value: Value, most: int) -> Sign:
        """The possible values of a value if others have these kinds. For long expressions, those in general."""
        found = {v: sign_of(number) for v, number in known.items()}
        constants = {**self.constants, **known}
        left = most

        def visit(value: Value) -> Sign:
            nonlocal left
            operation = self.definitions.get(value)
            if value in found or operation is None:
                return found.get(value, self.of(value))
            left -= 1
            if left < 0:
                return self.of(value)
            here = Signs({a: visit(a) for a in operation.args}, constants, {})
            found[value] = here.result(operation) & self.of(value)
            return found[value]

        return visit(value)

    def result(self, operation: Apply) -> Sign:
        """The possible results of an operation."""
        if operation.out.type == BOOL:
            return FINITE
        if operation.primitive == "where":
            condition, first, second = operation.args
            first_sign = self.of(first) & self.passing(condition, holds=True).get(first, ANYTHING)
            return first_sign | (self.of(second) & self.passing(condition, holds=False).get(second, ANYTHING))
        if operation.primitive == "multiply" and (square := self.square(operation)) is not None:
            return square
        found = _result(operation.primitive, self.known(operation.args))
        if operation.primitive == "real" and self.is_squared_size(operation.args[0]):
            found &= ~(Sign.NEGATIVE | Sign.MINUS_INFINITY)
        return found if is_inexact(operation.out.type) else found & FINITE

    def square(self, operation: Apply) -> Sign | None:
        """A product of two multiples of one number, as in `3.0 * y * y`, has the sign of the multiples."""
        (first, scale), (second, other_scale) = (self.multiple(a) for a in operation.args)
        if first is not second or scale == other_scale == 1 or is_complex(first.type):
            return None
        square = _result("multiply", (Known(self.of(first), first.scalar),) * 2)
        positive = Known(sign_of(scale * other_scale), first.scalar, None, 1)
        return _result("multiply", (Known(square, first.scalar), positive))

    def multiple(self, value: Value) -> tuple[Value, float]:
        """The number that a value is a constant multiple of, and the constant."""
        scale = 1.0
        while (operation := self.definitions.get(value)) is not None:
            factors = [a for a in operation.args if a in self.constants]
            if operation.primitive == "negative":
                (value,), scale = operation.args, -scale
            elif operation.primitive == "multiply" and len(factors) == 1 and self.constants[factors[0]]:
                scale *= self.constants[factors[0]]
                value = operation.args[1] if operation.args[0] is factors[0] else operation.args[0]
            else:
                break
        return value, scale

    def is_least_at_zero(self, value: Value, seen: frozenset[Value] = frozenset()) -> bool:
        """Whether it is a sum of squares, or like one: not negative, and where it is zero, so is its derivative."""
        if value in seen or self.constants.get(value) == 0:
            return True
        if is_complex(value.type):
            return self.is_squared_size(value, seen)
        if self.of(value) & (Sign.NEGATIVE | Sign.NAN) or len(seen) > _DEEPEST:
            return False
        seen |= {value}
        if value in self.carried:
            start, param, following = self.carried[value]
            return self.is_least_at_zero(start, seen | {param}) and self.is_least_at_zero(following, seen | {param})
        operation = self.definitions.get(value)
        if operation is None:
            return False
        args = operation.args
        least = functools.partial(self.is_least_at_zero, seen=seen)
        match operation.primitive:
            case "square":
                return True
            case "power":
                return bool(self.constants.get(args[1], 0) >= 2)
            case "add":
                return all(least(a) for a in args)
            case "multiply":
                is_square = self.multiple(args[0])[0] is self.multiple(args[1])[0]
                both = (args, args[::-1])
                return is_square or any(least(a) and (not self.of(b) & Sign.ZERO or least(b)) for a, b in both)
            case "divide":
                return least(args[0])
            case "real":
                return self.is_squared_size(args[0], seen)
        return False

    def is_squared_size(self, value: Value, seen: frozenset[Value] = frozenset()) -> bool:
        """Whether a number is a sum of products `z * conj(z)`, or like one: real, not negative, least at zero."""
        if not is_complex(value.type):
            return self.is_least_at_zero(value, seen)
        if value in seen or self.of(value) == Sign.ZERO:
            return True
        if len(seen) > _DEEPEST:
            return False
        seen |= {value}
        if value in self.carried:
            start, param, following = self.carried[value]
            return self.is_squared_size(start, seen | {param}) and self.is_squared_size(following, seen | {param})
        operation = self.definitions.get(value)
        if operation is None:
            return False
        args = operation.args
        match operation.primitive:
            case "add" | "complex128" | "complex64":
                return all(self.is_squared_size(a, seen) for a in args)
            case "multiply":
                both = (args, args[::-1])
                return any(self.is_conjugate(a, b) for a, b in both) or any(
                    self.is_squared_size(a, seen) and self.is_real_factor(b, seen) for a, b in both
                )
            case "divide":
                return self.is_squared_size(args[0], seen) and self.is_real_factor(args[1], seen)
        return False

    def is_conjugate(self, value: Value, of: Value) -> bool:
        operation = self.definitions.get(value)
        return operation is not None and operation.primitive == "conjugate" and operation.args[0] is of

    def is_real_factor(self, value: Value, seen: frozenset[Value]) -> bool:
        """Whether a number is positive, or like a squared size."""
        is_positive = not is_complex(value.type) and self.of(value) == Sign.POSITIVE
        return is_positive or self.is_squared_size(value, seen)

    def is_root_of_least(self, operation: Apply) -> bool:
        """Whether a root may be zero, and is of a sum of squares."""
        return bool(self.of(operation.out) & Sign.ZERO) and self.is_least_at_zero(operation.args[0])

    def passing(self, condition: Value, *, holds: bool) -> dict[Value, Sign]:
        """The facts that follow from a condition about the numbers that it compares with constants."""
        operation = self.definitions.get(condition)
        if operation is None:
            return {}
        primitive, args = operation.primitive, operation.args
        if primitive == "logical_not":
            return self.passing(args[0], holds=not holds)
        if primitive == ("logical_and" if holds else "logical_or"):
            first, second = (self.passing(a, holds=holds) for a in args)
            return {v: first.get(v, ANYTHING) & second.get(v, ANYTHING) for v in {**first, **second}}
        if primitive in _TESTS and is_float(args[0].type):
            return {args[0]: _passing(primitive, None, holds=holds)}
        if primitive in _COMPARISONS and is_float(args[0].type) and args[1] in self.constants:
            return {args[0]: _passing(primitive, float(self.constants[args[1]]), holds=holds)}
        return {}

    def partial_is_finite(self, operation: Apply, parameter: str) -> bool:
        """Whether the derivative of an operation with respect to a parameter is finite, whatever the numbers are."""
        return _partial_is_finite(operation.primitive, parameter, self.known(operation.args), self.of(operation.out))

    def is_covered(
        self, operation: Apply, parameter: str, marked: Container[Value], zeros: Container[Value] = ()
    ) -> bool:
        """Whether the derivative is finite unless one of the marked values, an argument or the result, is not.

        If one of `zeros` is zero, it need not be finite either.
        """
        values = (*operation.args, operation.out)
        places, at_zero = (frozenset([k for k, v in enumerate(values) if v in of]) for of in (marked, zeros))
        if not places and not at_zero:
            return False
        return _is_covered(operation.primitive, parameter, self.known(operation.args), places, at_zero)

    def propagates(self, operation: Apply, place: int) -> bool:
        """Whether the result is infinite or NaN whenever this argument is, whatever the others are."""
        args = operation.args
        known = [
            Known(ANYTHING, a.scalar, self.constants.get(a), next(k for k, b in enumerate(args) if a is b))
            for a in args
        ]
        return _propagates(operation.primitive, tuple(known), place)

    def is_infinite_at_zero(self, operation: Apply, place: int) -> bool:
        """Whether the result is infinite or NaN whenever this argument is zero, whatever the others are."""
        args = operation.args
        known = [
            Known(ANYTHING, a.scalar, self.constants.get(a), next(k for k, b in enumerate(args) if a is b))
            for a in args
        ]
        return _is_infinite_at_zero(operation.primitive, tuple(known), place)

    def is_singular(self, operation: Apply, parameter: str) -> bool:
        """Whether the derivative may be infinite or NaN for finite arguments, or for those that are meant to be not.

        The second factor of a strong product is meant to be infinite.
        """
        if operation.primitive in STRONG:
            return not self.partial_is_finite(operation, parameter)
        known = [
            Known(a.sign if a.sign & Sign.MEANT else a.sign & FINITE, a.type, a.constant, a.place)
            for a in self.known(operation.args)
        ]
        return not _partial_is_finite(operation.primitive, parameter, tuple(known), self.of(operation.out))


@analysis
def signs_of(function: Function) -> Signs:
    """The least fixed point: nothing is possible until an operation makes it so."""
    return _Flow(function, forgets=False).run()


@analysis
def expected_signs(function: Function) -> Signs:
    """The same without infinities that are not intended, in memory and in values that loops carry."""
    return _Flow(function, forgets=True).run()


def _carried(operations: Sequence[Operation]) -> dict[Value, tuple[Value, Value, Value]]:
    found: dict[Value, tuple[Value, Value, Value]] = {}
    for loop in operations:
        if isinstance(loop, Loop):
            following = loop.body.yields[: len(loop.params)]
            found |= dict(zip(loop.outs, zip(loop.inits, loop.params, following, strict=True), strict=True))
    return found


class _Flow:
    def __init__(self, function: Function, *, forgets: bool) -> None:
        self.function, self.forgets = function, forgets
        operations = list(walk(function.body))
        self.sites: dict[Value, Sites] = points_to(function)
        constants = {o.out: o.value for o in operations if isinstance(o, Const) and isinstance(o.value, int | float)}
        self.found: dict[Value, Sign] = {}
        definitions = {o.out: o for o in operations if isinstance(o, Apply)}
        self.signs = Signs(self.found, constants, definitions, _carried(operations))
        for operation in operations:
            self.start(operation)
            if isinstance(operation, Const) and isinstance(operation.value, complex):
                self.found[operation.out] = sign_of(operation.value)
        self.changed = True

    def start(self, operation: Operation) -> None:
        """Nothing is known to be possible, where the flow of data will tell."""
        values: Sequence[Value] = ()
        match operation:
            case Apply() | Load() | Dim() | Alloc() | Copy():
                values = operation.defines()
            case Const() if operation.out in self.signs.constants:
                values = operation.defines()
            case If():
                values = operation.outs
            case Loop():
                values = (*operation.outs, *operation.params)
                if operation.index is not None:
                    values = (*values, operation.index)
        for value in values:
            if isinstance(value.type, Scalar) or value in self.sites.get(value, ()):
                self.found[value] = NOTHING

    def run(self) -> Signs:
        while self.changed:
            self.changed = False
            self.block(self.function.body)
        return self.signs

    def block(self, block: Block) -> None:
        for operation in block.operations:
            self.visit(operation)

    def add(self, value: Value, sign: Sign) -> None:
        before = self.found.get(value, FINITE)
        if sign | before != before:
            self.found[value] = sign | before
            self.changed = True

    def of_memory(self, array: Value) -> Sign:
        found = NOTHING
        for site in self.sites.get(array, frozenset((array,))):
            found |= self.signs.of(site)
        return found

    def outliving(self, sign: Sign) -> Sign:
        return sign & ~INFINITE if self.forgets and not sign & Sign.MEANT else sign

    def add_to_memory(self, array: Value, sign: Sign) -> None:
        for site in self.sites.get(array, frozenset((array,))):
            self.add(site, self.outliving(sign))

    def visit(self, operation: Operation) -> None:
        of = self.signs.of
        match operation:
            case Apply(out=out):
                self.add(out, self.signs.result(operation))
            case Const(out=out) if out in self.signs.constants:
                sign = sign_of(operation.value)
                self.add(out, sign | Sign.MEANT if sign & INFINITE else sign)
            case Load(out=out, array=array):
                self.add(out, self.of_memory(array))
            case Store(array=array, value=value):
                sign = of(value)
                if operation.adds:
                    before = Known(self.of_memory(array), value.scalar)
                    sign = _result("add", (before, Known(sign, value.scalar, None, 1)))
                self.add_to_memory(array, sign)
            case Alloc(out=out, fill=fill):
                self.add(out, FINITE if fill is None else self.outliving(of(fill)))
            case Copy(out=out, array=array):
                self.add(out, self.of_memory(array))
            case Dim(out=out):
                self.add(out, NOT_NEGATIVE)
            case If():
                for side, block in enumerate((operation.then, operation.orelse)):
                    with self.limited(self.signs.passing(operation.condition, holds=side == 0)):
                        self.block(block)
                        self.flow(block.yields, operation.outs)
            case Loop():
                self.loop(operation)
            case Custom():
                self.block(operation.body)

    @contextlib.contextmanager
    def limited(self, limits: Mapping[Value, Sign]) -> Iterator[None]:
        before = dict(self.signs.limits)
        for value, sign in limits.items():
            self.signs.limits[value] = sign & before.get(value, ANYTHING)
        try:
            yield
        finally:
            self.signs.limits.clear()
            self.signs.limits.update(before)

    def loop(self, operation: Loop) -> None:
        if operation.index is not None:
            start, step = (self.signs.of(operation.bounds[k]) if operation.bounds else FINITE for k in (0, 2))
            rises = not (start | step) & Sign.NEGATIVE
            self.add(operation.index, start | Sign.POSITIVE if rises else FINITE)
        if operation.test is not None:
            self.block(operation.test)
        self.block(operation.body)
        following = operation.body.yields[: len(operation.params)]
        for source in (operation.inits, following):
            for target in (operation.params, operation.outs):
                self.flow(source, target, carried=source is following)

    def flow(self, sources: Sequence[Value], targets: Sequence[Value], *, carried: bool = False) -> None:
        for source, target in zip(sources, targets, strict=True):
            if isinstance(target.type, Scalar):
                sign = self.signs.of(source)
                self.add(target, self.outliving(sign) if carried else sign)
