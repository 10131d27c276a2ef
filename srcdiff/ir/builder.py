"""Writes operations into blocks, and folds constants."""

from __future__ import annotations

import cmath
import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Claims,
    Const,
    Coordinate,
    CoordinateKind,
    Copy,
    Derivative,
    Dim,
    If,
    Index,
    Item,
    Load,
    Loop,
    Operation,
    Store,
    Value,
    View,
)
from srcdiff.ir.primitives import ATOM, OF_COMPLEX, PRIMITIVES
from srcdiff.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    FLOAT32,
    INT,
    Array,
    Scalar,
    Type,
    element_type,
    is_complex,
    is_float,
    is_inexact,
    join_scalars,
    real_of,
    widest,
    zero_of,
)

FOLDABLE: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "negative": operator.neg,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "logical_not": operator.not_,
    "float": float,
    "int": int,
    "complex128": complex,
    "complex": complex,
    "real": lambda z: z.real,
    "imag": lambda z: z.imag,
    "conjugate": lambda z: z.conjugate(),
}


_TYPES: dict[type, Scalar] = {bool: BOOL, int: INT, complex: COMPLEX}
"""The types of constants; others are floats."""

_OPPOSITE = {"equal": "not_equal", "not_equal": "equal"}

_OF_EQUALS = {"equal": True, "less_equal": True, "greater_equal": True} | dict.fromkeys(
    ("not_equal", "less", "greater"), False
)
"""Comparisons, with what they give for a number and itself."""
STRONG = {"strong_multiply": "multiply", "strong_divide": "divide"}
"""Products and quotients that are zero if their first argument is, with those that are like them for other numbers."""

_DOUBLINGS = (0.25, 0.5, 2, 4)
"""Factors that change the exponent of a float and nothing else."""


def derivative_types(derivative: Derivative) -> list[Type]:
    """The types of the results of a derivative inside a program."""
    results = [v.type for v in derivative.body.yields]
    floats = [p.type for p in derivative.params if is_inexact(p.type)]
    if derivative.jacobian and any(is_complex(v.type) for v in (*derivative.params, *derivative.body.yields)):
        raise DifferentiationError([complex_jacobian(derivative.span)])
    if derivative.jacobian:
        return [_part_of_jacobian(result, by) for result in results if is_inexact(result) for by in floats]
    found = results if derivative.with_value else []
    beside = {"reverse": floats, "forward": results, "primal": []}[derivative.mode]
    return [*found, *map(type_beside, beside)]


def complex_jacobian(span: Span | None) -> Problem:
    """A matrix of complex numbers is the whole derivative only if the function is holomorphic."""
    message = "a Jacobian of structures of complex numbers is not supported inside a differentiated function"
    help_ = "let the inner function take and return numbers, arrays and tuples of them"
    return Problem("SD404", message, span, help=help_)


def type_beside(type_: Type) -> Type:
    """The type of the adjoint or tangent of something: a number is as wide as can be."""
    return widest(type_) if isinstance(type_, Scalar) else type_


def _part_of_jacobian(result: Type, by: Type) -> Type:
    rank = sum(t.rank for t in (result, by) if isinstance(t, Array))
    return Array("float64", rank) if rank else FLOAT


class Builder:
    """The operations of the block being written, and facts about values."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.constants: dict[Value, Any] = {}
        self.negated: dict[Value, Value] = {}
        self.offsets: dict[Value, tuple[Value, int]] = {}
        """Integers that are another integer plus a constant."""
        self.sums: dict[Value, tuple[Value, ...]] = {}
        """Integers that are the sum of two."""
        self.scaled: dict[Value, tuple[float, Value]] = {}
        """Floats that are a constant times another float."""
        self.added: dict[Value, tuple[Value, ...]] = {}
        """Floats that are the sum of two."""
        self.formulas: dict[Value, Apply] = {}
        """Comparisons and selections, for folding with their uses."""
        self.complex_parts: dict[Value, tuple[Value, Value | None]] = {}
        """Complex numbers with their real and imaginary parts, where these are numbers of their own; None is zero."""
        self.turned: dict[Value, tuple[float, Value]] = {}
        """Complex numbers that are `1j` times a constant times another number."""
        self.conjugates: dict[Value, Value] = {}
        self.span: Span | None = None
        self.claims: Claims = ()
        """The user's claim about the loads and stores that are written."""
        self.stack: list[list[Operation]] = []

    def add(self, operation: Operation) -> None:
        self.operations.append(operation)

    @contextlib.contextmanager
    def block(self) -> Iterator[list[Operation]]:
        """Write into a new block for a while."""
        self.stack.append(self.operations)
        self.operations = []
        try:
            yield self.operations
        finally:
            self.operations = self.stack.pop()

    def coordinate(self, kind: CoordinateKind, axis: int = 0, name: str = "") -> Value:
        out = Value(INT, name)
        self.add(Coordinate(out, kind, axis))
        return out

    def const(self, value: Any, type_: Scalar | None = None) -> Value:
        if type_ is None:
            type_ = _TYPES.get(type(value), FLOAT)
        if is_complex(type_):
            value = complex(value)
        out = Value(type_)
        self.constants[out] = value
        self.add(Const(out, value, span=self.span))
        return out

    def apply(self, primitive: str, *args: Value, name: str = "") -> Value:
        """The primitive on the arguments; exact identities and constants are folded."""
        if any(is_complex(a.type) for a in args) and primitive not in OF_COMPLEX:
            what = PRIMITIVES[primitive].spelling if PRIMITIVES[primitive].strength < ATOM else primitive
            what = what.format("x", "y", "z") if what != primitive else what
            message = f"`{what}` of complex numbers is not supported"
            help_ = "use its real and imaginary parts"
            if primitive in _OF_EQUALS:
                help_ = "compare their real parts: `.real`"
            if primitive in ("maximum", "minimum", "fmax", "fmin"):
                help_ = "NumPy compares real parts first: say what to compare, as in `np.where(abs(z) > abs(w), z, w)`"
            raise DifferentiationError([Problem("SD201", message, self.span, help=help_)])
        type_ = result_type(primitive, args)
        folded = self.folded(primitive, args, type_)
        if folded is not None:
            return folded
        operation = Apply(Value(type_, name), primitive, args, span=self.span)
        self.note(operation)
        self.add(operation)
        return operation.out

    def note(self, operation: Apply) -> None:
        """Remember what later operations can be folded with."""
        if operation.primitive == "negative":
            self.negated[operation.out] = operation.args[0]
        if operation.primitive in ("equal", "not_equal", "where"):
            self.formulas[operation.out] = operation
        if operation.primitive == "multiply" and operation.out.type == FLOAT:
            for factor, other in (operation.args, operation.args[::-1]):
                if factor in self.constants and other.type == FLOAT:
                    self.scaled[operation.out] = (self.constants[factor], other)
        if is_complex(operation.out.type):
            self.note_complex(operation)
        if operation.primitive == "add" and operation.out.type == INT:
            self.sums[operation.out] = operation.args
        if operation.primitive == "add" and operation.out.type == FLOAT:
            self.added[operation.out] = operation.args
        if operation.primitive in ("add", "subtract") and operation.out.type == INT:
            amount = self.constants.get(operation.args[1])
            if amount is not None:
                self.offsets[operation.out] = (operation.args[0], amount if operation.primitive == "add" else -amount)

    def note_complex(self, operation: Apply) -> None:
        """Remember what a complex number is made of."""
        match operation.primitive, operation.args:
            case "complex", (first, second):
                self.complex_parts[operation.out] = first, second
            case "complex128", (value,) if value.type == FLOAT:
                self.complex_parts[operation.out] = value, None
            case "conjugate", (value,):
                self.conjugates[operation.out] = value
            case "multiply", (first, second):
                for factor, other in ((first, second), (second, first)):
                    constant = self.constants.get(factor, 1.0)
                    if isinstance(constant, complex) and constant.real == 0:
                        self.turned[operation.out] = constant.imag, other

    def folded_part(self, primitive: str, value: Value) -> Value | None:
        """The real or imaginary part, or the conjugate, of a number that is real or has been put together."""
        if not is_complex(value.type):
            return self.const(0.0 if is_float(value.type) else 0, value.scalar) if primitive == "imag" else value
        if primitive == "conjugate":
            return self.conjugates.get(value)
        if value in self.complex_parts:
            part = self.complex_parts[value][primitive == "imag"]
            return self.const(0.0) if part is None else part
        if value in self.turned and value.type == COMPLEX:
            factor, other = self.turned[value]
            if primitive == "real":
                factor, other = -factor, self.apply("imag", other)
            else:
                other = self.apply("real", other)
            return self.apply("multiply", self.const(factor), other)
        return None

    def folded(self, primitive: str, args: tuple[Value, ...], type_: Scalar) -> Value | None:
        """The result of the primitive if it can be folded exactly: constants, factors of one."""
        known = [self.constants.get(a) for a in args]
        if primitive in FOLDABLE and all(k is not None for k in known):
            value = folded_constant(primitive, known, type_)
            return None if value is None else self.const(value, type_)
        if primitive == "float" and args[0].type == FLOAT:
            return args[0]
        if primitive in ("real", "imag", "conjugate"):
            return self.folded_part(primitive, args[0])
        if primitive == "add" and type_ == COMPLEX:
            for first, second in (args, args[::-1]):
                real, imag = self.complex_parts.get(first, (first, first))
                length, turned = self.turned.get(second, (0.0, second))
                if imag is None and length == 1 and turned.type == FLOAT:
                    return self.apply("complex", real, turned)
        if primitive == "where" and known[0] is not None and args[1 if known[0] else 2].type == type_:
            return args[1 if known[0] else 2]
        if primitive in ("logical_and", "logical_or"):
            for one, other in ((known[0], args[1]), (known[1], args[0])):
                if one is not None:
                    decides = bool(one) == (primitive == "logical_or")
                    return self.const(bool(one)) if decides else other
        if primitive == "logical_not" and args[0] in self.formulas:
            inner = self.formulas[args[0]]
            if inner.primitive in _OPPOSITE:
                return self.apply(_OPPOSITE[inner.primitive], *inner.args)
        if primitive in _OPPOSITE and args[0] in self.formulas and known[1] is not None:
            return self._compared_choice(primitive, self.formulas[args[0]], known[1])
        if primitive in _OF_EQUALS and args[0] is args[1] and args[0].type == INT:
            return self.const(_OF_EQUALS[primitive])
        if primitive == "where" and args[1] is args[2] and args[1].type == type_:
            return args[1]
        if primitive == "negative" and args[0] in self.negated:
            return self.negated[args[0]]
        if primitive == "add" and args[1] in self.negated and args[0].type == type_:
            return self.apply("subtract", args[0], self.negated[args[1]])
        if primitive == "positive" and args[0].type == type_:
            return args[0]
        if primitive == "multiply":
            for factor, other in ((known[0], args[1]), (known[1], args[0])):
                if other.type == type_ and factor is not None and not isinstance(factor, bool):
                    if factor == 1:
                        return other
                    if factor == -1:
                        return self.apply("negative", other)
                    if factor in _DOUBLINGS and type_ == FLOAT and other in self.scaled:
                        constant, base = self.scaled[other]
                        return self.apply("multiply", self.const(factor * constant), base)
        if primitive in STRONG and (known[0] or (known[1] is not None and cmath.isfinite(known[1]) and known[1] != 0)):
            return self.apply(STRONG[primitive], *args)
        if primitive in ("divide", "power") and known[1] == 1 and args[0].type == type_ and known[1] is not True:
            return args[0]
        if type_ == INT and primitive in ("add", "subtract") and known[1] == 0 and args[0].type == INT:
            return args[0]
        if type_ == INT and primitive == "subtract" and args[1] in (summands := self.sums.get(args[0], ())):
            other = summands[1 if args[1] is summands[0] else 0]
            return other if other.type == INT else None
        if type_ == INT and primitive in ("add", "subtract") and known[1] is not None:
            base, amount = self.offsets.get(args[0], (args[0], 0))
            total = amount + (known[1] if primitive == "add" else -known[1])
            if total == 0:
                return base
            if base is not args[0] or known[1] < 0:
                return self.apply("add" if total > 0 else "subtract", base, self.const(abs(total)))
        if type_ == INT and primitive == "add" and known[0] == 0 and args[1].type == INT:
            return args[1]
        return None

    def doubled(self, primitive: str, args: tuple[Value, ...], name: str) -> Value | None:
        """`x + x` is `2.0 * x`, and `0.5 * x + 0.5 * x` is `x`: doubling is exact. Variables keep their formulas.

        `y + x + x` is `y + 2.0 * x`, which is rounded once less.
        """
        if primitive != "add" or (name and not name.endswith("_bar")) or not all(a.type == FLOAT for a in args):
            return None
        first, second = args
        if first is second:
            return self.apply("multiply", self.const(2.0), first)
        if first in self.scaled and self.scaled[first] == self.scaled.get(second):
            constant, base = self.scaled[first]
            return self.apply("multiply", self.const(2.0 * constant), base)
        if first in self.added and self.added[first][1] is second:
            twice = self.apply("multiply", self.const(2.0), second)
            return self.apply("add", self.added[first][0], twice)
        return None

    def _compared_choice(self, primitive: str, choice: Apply, constant: Any) -> Value | None:
        """`(2 if c else 0) == 2` is `c`."""
        if choice.primitive != "where":
            return None
        sides = [self.constants.get(a) for a in choice.args[1:]]
        if None in sides or choice.args[1].type != INT:
            return None
        first, second = ((side == constant) == (primitive == "equal") for side in sides)
        if first == second:
            return self.const(first)
        return choice.args[0] if first else self.apply("logical_not", choice.args[0])

    def cast(self, value: Value, type_: Type) -> Value:
        """The value as another scalar type."""
        if value.type == type_ or not isinstance(type_, Scalar):
            return value
        if is_complex(value.type) and not is_complex(type_):
            if type_ == BOOL:
                return self.apply("not_equal", value, self.const(0.0))
            message = f"this conversion to {type_} discards the imaginary part of a complex number"
            raise DifferentiationError([Problem("SD203", message, self.span, help="take its real part: `.real`")])
        if value.type == BOOL and is_inexact(type_):
            value = self.cast(value, INT)  # Numba has no float(bool)
        known = self.constants.get(value)
        if known is not None and type_ in (FLOAT, INT, COMPLEX):
            return self.const({FLOAT: float, INT: int, COMPLEX: complex}[type_](known), type_)
        target = {
            "float64": "float64" if value.type == FLOAT32 else "float",
            "float32": "float32",
            "complex128": "complex128",
            "complex64": "complex64",
            "int64": "int",
            "bool": "bool",
        }[type_.dtype]
        out = Value(type_, value.name)
        self.add(Apply(out, target, (value,), span=self.span))
        if type_ == COMPLEX and value.type == FLOAT:
            self.complex_parts[out] = value, None
        return out

    def zero(self, type_: Type) -> Value:
        """The constant zero for an adjoint or a tangent of a number of this type."""
        return self.const(zero_of(type_))

    def fitted(self, amount: Value, value: Value) -> Value:
        """The contribution to the adjoint or the tangent of a number. For a real number, it is the real part."""
        if is_complex(value.type) == is_complex(amount.type):
            return amount
        return self.cast(amount, COMPLEX) if is_complex(value.type) else self.apply("real", amount)

    @contextlib.contextmanager
    def claiming(self, claims: Claims) -> Iterator[None]:
        """Loads and stores that are written meanwhile have these claims."""
        self.claims = claims
        try:
            yield
        finally:
            self.claims = ()

    def load(self, array: Value, indices: tuple[Value, ...], name: str = "") -> Value:
        out = Value(element_type(array.array), name)
        self.add(Load(out, array, indices, self.claims, span=self.span))
        return out

    def store(self, array: Value, indices: tuple[Value, ...], value: Value, adds: bool = False) -> None:
        self.add(Store(array, indices, value, adds, claims=self.claims, span=self.span))

    def dim(self, array: Value, axis: int) -> Value:
        out = Value(INT)
        self.add(Dim(out, array, axis, span=self.span))
        return out

    def shape(self, array: Value) -> tuple[Value, ...]:
        return tuple(self.dim(array, axis) for axis in range(array.array.rank))

    def alloc(
        self, dtype: str, shape: tuple[Value, ...], fill: Value | None, name: str = "", like: Value | None = None
    ) -> Value:
        out = Value(Array(dtype, len(shape)), name)
        self.add(Alloc(out, shape if like is None else (), fill, like, span=self.span))
        return out

    def copy(self, array: Value, name: str = "") -> Value:
        out = Value(array.type, name)
        self.add(Copy(out, array, span=self.span))
        return out

    def view(self, array: Value, items: tuple[Item, ...], name: str = "") -> Value:
        rank = array.array.rank - sum(isinstance(i, Index) for i in items)
        rank += sum(not i.parts() and not hasattr(i, "step") for i in items)
        out = Value(Array(array.array.dtype, rank), name)
        self.add(View(out, array, items, span=self.span))
        return out

    def each_element(
        self,
        array: Value,
        write: Callable[[tuple[Value, ...]], None],
        length: Callable[[int], Value] | None = None,
    ) -> None:
        """A loop for each axis; `write` writes the body for the element with these indices."""

        def nest(axis: int, indices: tuple[Value, ...]) -> None:
            if axis == array.array.rank:
                write(indices)
                return
            index = Value(INT, "i")
            size = self.dim(array, axis) if length is None else length(axis)
            bounds = (self.const(0), size, self.const(1))
            with self.block() as operations:
                nest(axis + 1, (*indices, index))
            self.add(Loop(index, bounds, (), (), None, Block(tuple(operations)), ()))

        nest(0, ())

    def branch(self, condition: Value, then: Block, orelse: Block, outs: tuple[Value, ...]) -> None:
        self.add(If(condition, then, orelse, outs, span=self.span))


def folded_constant(primitive: str, known: Sequence[Any], type_: Scalar) -> Any:
    """The result of a primitive for constants, if it can be computed at compile time and is finite."""
    if primitive not in FOLDABLE:
        return None
    try:
        value = FOLDABLE[primitive](*known)
    except (ArithmeticError, ValueError):
        return None
    if (is_inexact(type_) and not cmath.isfinite(value)) or (type_ == INT and not -(2**63) <= value < 2**63):
        return None
    return value


def result_type(primitive: str, args: tuple[Value, ...]) -> Scalar:
    """The type of a primitive's result."""
    return result_type_of(primitive, tuple([a.scalar for a in args]))


def result_type_of(primitive: str, types: tuple[Scalar, ...]) -> Scalar:
    """The type of a primitive's result from those of its arguments, by its row."""
    rule = PRIMITIVES[primitive].result
    if primitive == "where":
        return join_scalars(*types[1:])
    if any(map(is_complex, types)):
        joined, of_complex = join_scalars(*types), OF_COMPLEX.get(primitive, "")
        return {"same": joined, "real": real_of(joined), "bool": BOOL}.get(of_complex) or Scalar(of_complex)
    if rule in ("float64", "float32", "complex128", "complex64"):
        return Scalar(rule)
    if rule == "bool":
        return BOOL
    if rule == "int":
        return INT
    joined = join_scalars(*types)
    if rule == "float":
        return joined if is_inexact(joined) else FLOAT
    return INT if joined == BOOL and not primitive.startswith("bitwise") else joined
