"""Short descriptions of values, for names of variables.

>>> from srcdiff.ir.builder import Builder
>>> from srcdiff.ir.types import FLOAT
>>> angle, build = Value(FLOAT, "angle"), Builder()
>>> for value in (build.apply("sin", angle), build.apply("multiply", angle, angle), build.apply("less", angle, angle)):
...     print(words_for(value, {o.out: o for o in build.operations}.get))
sin_angle
angle_squared
condition
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from srcdiff.ir.nodes import Apply, Const, Library, Load, Operation, Part, Reshape, Transpose, Value, View
from srcdiff.ir.primitives import ATOM, PRIMITIVES
from srcdiff.ir.types import BOOL, Array, Stack
from srcdiff.quick_dataclasses import dataclass

_BETWEEN = {
    "add": "plus",
    "subtract": "minus",
    "multiply": "times",
    "divide": "over",
    "floor_divide": "div",
    "remainder": "mod",
    "power": "to",
    "float_power": "to",
}
_PRODUCTS = ("matrix_matrix", "matrix_vector", "vector_matrix", "vector_vector")
_SHORT = {"absolute": "abs", "fabs": "abs"}
_THE_SAME = {"float", "float64", "float32", "int", "positive", "stop_gradient"}
_OWN = {"%return": "result", "%choice": "choice", "%exit": "exit_code"}
"""Internal names of values, and their names in generated code."""
_NUMBERS = {"1": "one", "2": "two", "3": "three"}
_DERIVATIVES = ("_bar", "_dot")
_LONGEST = 24
WORDS = frozenset({*_BETWEEN.values(), *_SHORT.values(), *_NUMBERS.values(), *PRIMITIVES, "squared"})
"""The words in a name that are not names."""

Definition = Callable[[Value], Operation | None]


def own_name(value: Value) -> str:
    """The name of a value, if it has one."""
    if value.type == BOOL and value.name == "%choice":
        return "condition"
    return _OWN.get(value.name, value.name.strip("_") and value.name.lstrip("%"))


def words_for(value: Value, definition: Definition, *, places: bool = True) -> str:
    """The name of a value, or a description of it as one operation on named values; otherwise empty.

    An element of an array is named by the array and, with `places`, by its indices.
    """
    if own_name(value):
        return own_name(value)
    found = _Words(definition, places).of(value)
    return found if found.isidentifier() and len(found) <= _LONGEST else ""


@dataclass(frozen=True, slots=True)
class _Words:
    definition: Definition
    places: bool

    def of(self, value: Value) -> str:
        operation = self.definition(value)
        match operation:
            case Apply(primitive="range_length"):
                return "trip_count"
            case Apply() if value.type == BOOL:
                return "condition"
            case Apply():
                return self.expression(operation)
            case Load():
                array = own_name(operation.array)
                return self.element(operation) or (f"{array}_element" if self.places and array else "")
            case View() | Transpose() | Reshape() | Part() if own_name(operation.array):
                return f"{own_name(operation.array)}_view"
            case Library() if operation.outs == (value,):
                return self.call(operation)
        return ""

    def call(self, operation: Library) -> str:
        """`a_times_b` for a product, and `det_a` for a function of one matrix."""
        operands = [own_name(a) for a in operation.args]
        is_product = operation.function in _PRODUCTS
        if not all(operands) or any(name.endswith(_DERIVATIVES) for name in operands):
            return "product" if is_product else ""
        if is_product:
            return "_times_".join(reversed(operands) if operation.function == "vector_matrix" else operands)
        return "_".join([operation.function, *operands]) if len(operands) == 1 else ""

    def expression(self, operation: Apply) -> str:
        """The words for one operator, if its operands have names; else, just that of a function like `sin`."""
        row, operands = PRIMITIVES[operation.primitive], [self.operand(a) for a in operation.args]
        if not all(operands):
            return row.name if row.arity == 1 and not row.cheap else ""
        if operation.primitive in _THE_SAME:
            return operands[0]
        if row.strength == ATOM:
            return "_".join([_SHORT.get(operation.primitive, operation.primitive), *operands])
        if operation.primitive not in _BETWEEN or not all(map(self.is_plain, operation.args)):
            return ""
        operands[0] = _NUMBERS.get(operands[0], operands[0])
        if not operands[0].isidentifier():
            return ""
        if operation.primitive == "multiply" and operands[0] == operands[1]:
            return f"{operands[0]}_squared"
        return f"_{_BETWEEN[operation.primitive]}_".join(operands)

    def is_plain(self, value: Value) -> bool:
        """Whether its name is simple enough to be combined; names of elements and of derivatives are not."""
        is_element = isinstance(self.definition(value), Load) and not own_name(value)
        return not (is_element and self.places) and not own_name(value).endswith(_DERIVATIVES)

    def operand(self, value: Value) -> str:
        operation = self.definition(value)
        match operation:
            case Const(value=bool() | int() | float() as number) if 0 <= number < 100 and number == int(number):
                return str(int(number))
            case Load() if not own_name(value):
                return self.element(operation)
        return own_name(value)

    def element(self, load: Load) -> str:
        """`a_ij` for `a[i, j]`, if the indices are short."""
        array = own_name(load.array)
        if not self.places or not array:
            return array
        return element(array, [self.operand(i) for i in load.indices])


def element(array: str, indices: Sequence[str]) -> str:
    """`a_ij` for `a[i, j]` and `a_at_1` for `a[1]`, if the indices are short.

    >>> element("a", ["i", "j"]), element("a", ["1"]), element("a", ["position"])
    ('a_ij', 'a_at_1', '')
    """
    place = "".join(indices)
    if not place.isalnum() or not all(indices) or len(place) > 2 * len(indices):
        return ""
    return f"{array}_{place}" if place.isalpha() else f"{array}_at_{'_'.join(indices)}"


def plain_words(value: Value) -> tuple[str, ...]:
    """A name for a value whose type alone is known."""
    match value.type:
        case Array():
            return "array", "values"
        case Stack():
            return "arrays", "references"
    return {"int64": ("number", "integer"), "bool": ("condition", "flag")}.get(value.type.dtype, ("t", "value"))
