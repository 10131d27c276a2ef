"""Verification: the rules of legal programs, checked after every pass. A violation is a defect of srcdiff.

Every value is defined once, before its uses, in their scope. Each operation has a row in `_CHECKS` with the conditions
on its operands, results and blocks; an operation without a row is illegal.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NoReturn

from srcdiff.diagnostics import InternalError
from srcdiff.ir.builder import derivative_types, result_type_of, type_beside
from srcdiff.ir.nodes import (
    Again,
    Alloc,
    Apply,
    Barrier,
    Block,
    BlockSum,
    Call,
    Comment,
    Const,
    Coordinate,
    Copy,
    Custom,
    Derivative,
    Dim,
    Enlarge,
    Formatted,
    Function,
    Grow,
    If,
    Index,
    Library,
    Load,
    Loop,
    NewAxis,
    NewStack,
    Operation,
    Part,
    Peek,
    Pop,
    Print,
    Program,
    Push,
    Raise,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
    walk,
)
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.print import line_of
from srcdiff.ir.types import (
    BOOL,
    FLOAT,
    INT,
    Array,
    Scalar,
    Stack,
    Type,
    element_type,
    is_complex,
    is_float,
    is_inexact,
    real_of,
)

_PLACES = ("", "local", "shared")
_MODES = ("reverse", "forward", "primal")
_MODES_OF_JACOBIANS = ("", "forward", "pullback")
_CONSTANTS: dict[str, tuple[type, ...]] = {
    "float64": (float,),
    "float32": (float,),
    "complex128": (complex,),
    "complex64": (complex,),
    "int64": (int,),
    "bool": (bool,),
}
_INT_RANGE = range(-(2**63), 2**63)


def verify(
    program: Program,
    step: str,
    before: Program | None = None,
    checked: set[Operation] | None = None,
    around: Collection[Value] = (),
) -> None:
    """Reject an illegal program, with the name of the pass that made it.

    Functions that are also in the legal program `before` are not checked again. Operations in `checked` have the right
    types; newly checked ones are added, and those of earlier programs removed. Values `around` are in scope in all
    functions of a partial program.
    """
    checked = set() if checked is None else checked
    functions = (program.main, *program.callees)
    callees = {f.name: f for f in program.callees}  # not the main one, which may have the name of one of them
    known = _unchanged(program, before)
    defined: set[Value] = set()
    seen: set[Operation] = set()
    for function in functions:
        check = _Check(step, function, callees, defined, checked)
        check.visible.update(around)
        if len(callees) < len(program.callees):
            check.fail("two functions that are called have the same name")
        if function in known:
            check.note_definitions()
        else:
            check.function()
        seen |= check.seen
    checked &= seen


def _unchanged(program: Program, before: Program | None) -> frozenset[Function]:
    """The functions that are still legal, because the types of their callees have not changed."""
    if before is None or [_signature(f) for f in program.callees] != [_signature(f) for f in before.callees]:
        return frozenset()
    return frozenset((before.main, *before.callees))


def _signature(function: Function) -> tuple[object, ...]:
    return function.name, [p.type for p in function.params], [v.type for v in function.body.yields]


@functools.cache
def _result_type(primitive: str, dtypes: tuple[str, ...]) -> str:
    """The type of a primitive's result, by names of types, so that the cache holds no parts of programs."""
    return result_type_of(primitive, tuple([Scalar(d) for d in dtypes])).dtype


class _Check:
    """Looks at one function. `defined` are the values that are defined in the whole program so far."""

    def __init__(
        self,
        step: str,
        function: Function,
        callees: dict[str, Function],
        defined: set[Value],
        checked: set[Operation],
    ) -> None:
        self.step, self.main, self.callees, self.defined, self.checked = step, function, callees, defined, checked
        self.visible: set[Value] = set()
        self.seen: set[Operation] = set()

    def fail(self, what: str, operation: Operation | None = None) -> NoReturn:
        line = "" if operation is None else f", in `{line_of(self.main, operation)}`"
        raise InternalError(f"after '{self.step}', `{self.main.name}`: {what}{line}")

    def function(self) -> None:
        function = self.main
        self.define(function.params, None)
        for value in function.written:
            if value not in function.params or not isinstance(value.type, Array):
                self.fail(f"{_said(value)} is written, but is no array among the parameters")
        self.block(function.body, function.params)

    def note_definitions(self) -> None:
        self.define(self.main.params, None)
        for operation in walk(self.main.body):
            self.seen.add(operation)
            self.define((*operation.defines(), *operation.inner()), operation)

    def define(self, values: Sequence[Value], operation: Operation | None) -> None:
        defined = self.defined
        for value in values:
            if value in defined:
                self.fail(f"{_said(value)} is defined twice", operation)
            defined.add(value)

    def block(self, block: Block, inner: tuple[Value, ...]) -> None:
        """The block; `inner` are values that are seen only there."""
        visible, defined, checked, here = self.visible, self.defined, self.checked, list(inner)
        visible.update(inner)
        for operation in block.operations:
            for value in operation.uses():
                if value not in visible:
                    self.fail(f"{_said(value)} is used before it is defined", operation)
            if operation not in checked:
                self.operation(operation)
            outs = operation.defines()
            for value in outs:
                if value in defined:
                    self.fail(f"{_said(value)} is defined twice", operation)
                defined.add(value)
            blocks = operation.blocks()
            if blocks:
                inner = operation.inner()
                self.define(inner, operation)
                for nested in blocks:
                    self.block(nested, inner)
            if outs:
                visible.update(outs)
                here += outs
        for value in block.yields:
            if value not in visible:
                self.fail(f"{_said(value)} is yielded but not defined")
        self.seen.update(block.operations)
        visible.difference_update(here)

    def operation(self, operation: Operation) -> None:
        """Whether its types are right, which depends on nothing else, unless it is about another function or place."""
        check = _CHECKS.get(type(operation))
        if check is None:
            self.fail(f"`{type(operation).__name__}` is an operation that nobody knows", operation)
        check(self, operation)
        if not isinstance(operation, Call | Again):
            self.checked.add(operation)

    # -- what values must be -----------------------------------------------------------------------------------------

    def typed(self, value: Value, type_: Type, what: str, operation: Operation) -> None:
        if value.type is not type_ and value.type != type_:
            self.fail(f"{what} is {value.type}, not {type_}", operation)

    def converted(self, value: Value, type_: Scalar, what: str, operation: Operation) -> None:
        """Memory rounds floats to its own precision, as it cuts integers; it makes no float of an integer.

        Memory of complex numbers takes floats, too.
        """
        fits = is_inexact(value.type) if is_complex(type_) else is_float(value.type) and is_float(type_)
        if value.type != type_ and not (isinstance(value.type, Scalar) and fits):
            self.fail(f"{what} is {value.type}, not {type_}", operation)

    def integers(self, values: Iterable[Value], what: str, operation: Operation) -> None:
        for value in values:
            if value.type is not INT and value.type != INT:
                self.fail(f"{what} is {value.type}, not int64", operation)

    def array(self, value: Value, what: str, operation: Operation) -> Array:
        if not isinstance(value.type, Array):
            self.fail(f"{what} is {value.type}, not an array", operation)
        return value.type

    def stack(self, value: Value, operation: Operation) -> Stack:
        if not isinstance(value.type, Stack):
            self.fail(f"the stack is {value.type}", operation)
        return value.type

    def axis(self, axis: int, array: Array, operation: Operation) -> None:
        if not 0 <= axis < array.rank:
            self.fail(f"there is no axis {axis} of {array}", operation)

    def shape(self, shape: Sequence[Value], array: Array, operation: Operation) -> None:
        self.integers(shape, "a length", operation)
        if len(shape) != array.rank:
            self.fail(f"{len(shape)} lengths are not the shape of {array}", operation)

    def agree(self, values: Sequence[Value], others: Sequence[Value], what: str, operation: Operation) -> None:
        self.have(values, [other.type for other in others], what, operation)

    def have(self, values: Sequence[Value], types: Sequence[Type], what: str, operation: Operation) -> None:
        if len(values) == len(types):
            for value, type_ in zip(values, types, strict=True):
                if value.type is not type_ and value.type != type_:
                    break
            else:
                return
        found, expected = (", ".join(map(str, side)) or "nothing" for side in ([v.type for v in values], types))
        self.fail(f"types differ: {what} are {found}, not {expected}", operation)

    # -- scalars -----------------------------------------------------------------------------------------------------

    def const(self, operation: Const) -> None:
        type_, value = operation.out.type, operation.value
        if not isinstance(type_, Scalar) or type(value) not in _CONSTANTS[type_.dtype]:
            self.fail(f"the constant {value!r} is {type(value).__name__}, not {type_}", operation)
        if type_.dtype == "int64" and value not in _INT_RANGE:
            self.fail(f"{value} does not fit into 64 bits", operation)

    def apply(self, operation: Apply) -> None:
        primitive = PRIMITIVES.get(operation.primitive)
        if primitive is None:
            self.fail(f"there is no primitive `{operation.primitive}`", operation)
        if len(operation.args) != primitive.arity:
            self.fail(f"`{primitive.name}` takes {primitive.arity} arguments, not {len(operation.args)}", operation)
        dtypes = []
        for value in operation.args:
            if not isinstance(value.type, Scalar):
                self.fail(f"`{primitive.name}` takes numbers, not {value.type}", operation)
            dtypes.append(value.type.dtype)
        if primitive.whole and any(d.startswith(("float", "complex")) for d in dtypes):
            self.fail(f"`{primitive.name}` takes integers, not {', '.join(dtypes)}", operation)
        type_, expected = operation.out.type, _result_type(primitive.name, tuple(dtypes))
        if not isinstance(type_, Scalar) or type_.dtype != expected:
            self.fail(f"`{primitive.name}` gives {expected} here, not {type_}", operation)

    def coordinate(self, operation: Coordinate) -> None:
        self.typed(operation.out, INT, "a coordinate", operation)
        if operation.axis not in range(3):
            self.fail("a launch has three axes", operation)

    def block_sum(self, operation: BlockSum) -> None:
        if not isinstance(operation.value.type, Scalar) or not is_float(operation.value.type):
            self.fail(f"threads add floats, not {operation.value.type}", operation)
        self.typed(operation.out, FLOAT, "the sum", operation)

    # -- arrays ------------------------------------------------------------------------------------------------------

    def element(self, operation: Load | Store) -> Scalar:
        """The type of an element of the array; the indices are right."""
        array = self.array(operation.array, "what is indexed", operation)
        if len(operation.indices) != array.rank:
            self.fail(f"an element of {array} needs an index for each axis, not {len(operation.indices)}", operation)
        self.integers(operation.indices, "an index", operation)
        return element_type(array)

    def load(self, operation: Load) -> None:
        self.typed(operation.out, self.element(operation), "the element", operation)

    def store(self, operation: Store) -> None:
        self.converted(operation.value, self.element(operation), "what is stored", operation)
        if operation.atomic and not operation.adds:
            self.fail("only an addition is atomic", operation)

    def enlarge(self, operation: Enlarge) -> None:
        self.typed(operation.array, Array("int64", 1), "the array of sizes", operation)
        capacity = () if operation.capacity is None else (operation.capacity,)
        self.integers((operation.index, operation.value, *capacity), "an index or a size", operation)

    def alloc(self, operation: Alloc) -> None:
        array = self.array(operation.out, "an allocation", operation)
        if operation.like is None:
            self.shape(operation.shape, array, operation)
        elif operation.shape or self.array(operation.like, "`like`", operation).rank != array.rank:
            self.fail(f"{operation.like.type} does not give the shape of {array}", operation)
        if operation.fill is not None:
            self.converted(operation.fill, element_type(array), "`fill`", operation)
        if operation.workspace is not None:
            self.typed(operation.workspace, array, "`workspace`", operation)
        if operation.place not in _PLACES:
            self.fail(f"there is no memory `{operation.place}`", operation)
        if operation.grows and not array.rank:
            self.fail("an array without axes does not grow", operation)

    def copy(self, operation: Copy) -> None:
        array = self.array(operation.array, "what is copied", operation)
        self.typed(operation.out, array, "the copy", operation)
        if operation.workspace is not None:
            self.typed(operation.workspace, array, "`workspace`", operation)

    def view(self, operation: View) -> None:
        array = self.array(operation.array, "what is indexed", operation)
        new = sum([isinstance(i, NewAxis) for i in operation.items])
        taken = sum([isinstance(i, Index) for i in operation.items])
        for item in operation.items:
            self.integers(item.parts(), "an index", operation)
        if len(operation.items) - new > array.rank:
            self.fail(f"there are more indices than axes of {array}", operation)
        self.typed(operation.out, Array(array.dtype, array.rank + new - taken), "the view", operation)

    def transpose(self, operation: Transpose) -> None:
        array = self.array(operation.array, "what is transposed", operation)
        if sorted(operation.axes) != list(range(array.rank)):
            self.fail(f"{operation.axes} is no permutation of the axes of {array}", operation)
        self.typed(operation.out, array, "the transpose", operation)

    def reshape(self, operation: Reshape) -> None:
        array = self.array(operation.array, "what is reshaped", operation)
        out = self.array(operation.out, "the result", operation)
        self.shape(operation.shape, out, operation)
        if out.dtype != array.dtype:
            self.fail(f"the memory of {array} has no {out.dtype}", operation)

    def part(self, operation: Part) -> None:
        array = self.array(operation.array, "what has parts", operation)
        if not is_complex(array) or operation.part not in ("real", "imag"):
            self.fail(f"{array} has no part `{operation.part}`", operation)
        self.typed(operation.out, Array(real_of(Scalar(array.dtype)).dtype, array.rank), "the part", operation)

    def dim(self, operation: Dim) -> None:
        self.axis(operation.axis, self.array(operation.array, "what has a length", operation), operation)
        self.typed(operation.out, INT, "a length", operation)

    def grow(self, operation: Grow) -> None:
        array = self.array(operation.array, "what grows", operation)
        self.typed(operation.out, array, "the larger array", operation)
        self.integers((operation.size,), "the size", operation)
        self.axis(operation.axis, array, operation)

    def again(self, operation: Again) -> None:
        array = self.array(operation.array, "what was made", operation)
        if operation.array not in self.defined:
            self.fail(f"{_said(operation.array)} has not been made before", operation)
        self.typed(operation.out, array, "the reference", operation)
        self.integers((operation.number,), "the number", operation)
        self.shape(operation.shape, array, operation)

    # -- stacks ------------------------------------------------------------------------------------------------------

    def new_stack(self, operation: NewStack) -> None:
        stack = self.stack(operation.out, operation)
        if operation.workspace is not None:
            if not isinstance(stack.element, Scalar):
                self.fail("a stack of arrays takes no memory from the caller", operation)
            self.typed(operation.workspace, Array(stack.element.dtype, 1), "`workspace`", operation)

    def push(self, operation: Push) -> None:
        self.typed(operation.value, self.stack(operation.stack, operation).element, "what is pushed", operation)

    def pop(self, operation: Pop) -> None:
        self.typed(operation.out, self.stack(operation.stack, operation).element, "what is popped", operation)

    def peek(self, operation: Peek) -> None:
        self.typed(operation.out, self.stack(operation.stack, operation).element, "what is there", operation)
        self.integers((operation.index,), "an index", operation)

    # -- blocks ------------------------------------------------------------------------------------------------------

    def branch(self, operation: If) -> None:
        self.typed(operation.condition, BOOL, "the condition", operation)
        self.agree(operation.then.yields, operation.outs, "values of the first block", operation)
        self.agree(operation.orelse.yields, operation.outs, "values of the second block", operation)

    def loop(self, loop: Loop) -> None:
        count, yields = len(loop.params), loop.body.yields
        self.bounds(loop)
        self.agree(loop.inits, loop.params, "first values", loop)
        self.agree(loop.outs, loop.params, "results", loop)
        self.agree(yields[:count], loop.params, "next values", loop)
        if len(yields) != count + loop.leaves:
            self.fail(f"the body yields {len(yields)} values, not {count + loop.leaves}", loop)
        if loop.leaves:
            self.typed(yields[count], BOOL, "what ends the loop", loop)
        if loop.test is not None:
            if len(loop.test.yields) != 1:
                self.fail(f"the test yields {len(loop.test.yields)} values, not one", loop)
            self.typed(loop.test.yields[0], BOOL, "the test", loop)
        if loop.threads and (loop.params or not loop.counted):
            self.fail("threads hand nothing on from iteration to iteration, and know how many there are", loop)
        if loop.count is not None:
            self.typed(loop.count, INT, "the number of iterations", loop)

    def bounds(self, loop: Loop) -> None:
        if (loop.bounds is None) != (loop.index is None):
            self.fail("a loop has a counter if it has bounds", loop)
        if loop.bounds is not None and loop.index is not None:
            if len(loop.bounds) != 3:
                self.fail("a range has a start, a stop and a step", loop)
            self.integers(loop.bounds, "a bound", loop)
            self.integers((loop.index,), "the counter", loop)
        elif loop.test is None and not loop.leaves:
            self.fail("nothing ends the loop", loop)

    def custom(self, operation: Custom) -> None:
        self.agree(operation.params, operation.args, "parameters", operation)
        self.agree(operation.body.yields, operation.outs, "values of the body", operation)
        if operation.rule is None:
            self.fail("there is no rule", operation)

    def derivative(self, operation: Derivative) -> None:
        self.agree(operation.params, operation.args, "parameters", operation)
        modes = _MODES_OF_JACOBIANS if operation.jacobian else _MODES
        if operation.mode not in modes:
            self.fail(f"there is no mode `{operation.mode}`", operation)
        if operation.mode == "reverse" and not operation.body.yields:
            self.fail("there is no result to differentiate", operation)
        if operation.jacobian and operation.with_value:
            self.fail("a Jacobian has no value", operation)
        has_tangents = operation.mode == "forward" and not operation.jacobian
        taken = [type_beside(p.type) for p in operation.params if has_tangents and is_inexact(p.type)]
        self.have(operation.tangents, taken, "tangents", operation)
        self.have(operation.outs, derivative_types(operation), "results", operation)

    # -- calls and effects -------------------------------------------------------------------------------------------

    def library(self, operation: Library) -> None:
        for value in (*operation.args, *operation.outs):
            if isinstance(value.type, Stack):
                self.fail(f"a library takes and gives numbers and arrays, not {value.type}", operation)

    def call(self, operation: Call) -> None:
        callee = self.callees.get(operation.function)
        if callee is None:
            self.fail(f"there is no function `{operation.function}`", operation)
        self.agree(operation.args, callee.params, "arguments", operation)
        self.agree(operation.outs, callee.body.yields, "results", operation)
        for k in operation.writes:
            if not 0 <= k < len(operation.args):
                self.fail(f"there is no argument {k}", operation)
            if not isinstance(operation.args[k].type, Stack):
                self.array(operation.args[k], "what is written into", operation)
        if operation.blocks_of_threads is not None:
            self.integers((operation.blocks_of_threads,), "the number of blocks", operation)

    def raise_(self, operation: Raise) -> None:
        exception: object = operation.exception
        if not (isinstance(exception, type) and issubclass(exception, BaseException)):
            self.fail(f"{operation.exception} is no exception", operation)
        self.parts(operation.parts, operation)
        if operation.errors is not None:
            self.typed(operation.errors, Array("int64", 1), "the array of errors", operation)

    def print(self, operation: Print) -> None:
        self.parts(operation.parts, operation)
        if any(isinstance(p, Formatted) for p in operation.parts) and len(operation.parts) != 1:
            self.fail("a formatted text stands alone", operation)

    def parts(self, parts: Iterable[Any], operation: Operation) -> None:
        for part in parts:
            match part:
                case Value(type=Stack()):
                    self.fail(f"{part.type} is no text", operation)
                case Formatted():
                    self.parts(part.values, operation)
                case tuple():
                    self.parts(part, operation)
                case Value() | None | str() | int() | float():
                    pass
                case _:
                    self.fail(f"{part!r} is no constant", operation)

    def comment(self, operation: Comment) -> None:
        if "\n" in operation.text:
            self.fail("a comment is one line", operation)


def _said(value: Value) -> str:
    return f"the value `{value.name or 't'}`, {value.type},"


_CHECKS: dict[type[Operation], Callable[[_Check, Any], None]] = {
    Const: _Check.const,
    Apply: _Check.apply,
    Load: _Check.load,
    Store: _Check.store,
    Coordinate: _Check.coordinate,
    BlockSum: _Check.block_sum,
    Enlarge: _Check.enlarge,
    Barrier: lambda check, operation: None,
    Alloc: _Check.alloc,
    Copy: _Check.copy,
    View: _Check.view,
    Transpose: _Check.transpose,
    Reshape: _Check.reshape,
    Part: _Check.part,
    Library: _Check.library,
    Dim: _Check.dim,
    Grow: _Check.grow,
    If: _Check.branch,
    Loop: _Check.loop,
    Call: _Check.call,
    Custom: _Check.custom,
    Derivative: _Check.derivative,
    Raise: _Check.raise_,
    Print: _Check.print,
    NewStack: _Check.new_stack,
    Push: _Check.push,
    Pop: _Check.pop,
    Again: _Check.again,
    Peek: _Check.peek,
    Comment: _Check.comment,
}
"""The check of each operation."""
