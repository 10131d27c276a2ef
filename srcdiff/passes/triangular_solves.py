"""Triangular solves: equations whose matrix is a Cholesky factor are solved by substitution.

factor = np.linalg.cholesky(a)               factor = np.linalg.cholesky(a)
y = np.linalg.solve(factor, b)       =>      y = solve_lower(factor, b)
x = np.linalg.solve(factor.T, y)             x = solve_lower_transposed(factor, y)

The factor must not be written. Differentiation then yields substitutions, too.
"""

from __future__ import annotations

from srcdiff.ir.aliasing import points_to
from srcdiff.ir.nodes import (
    Apply,
    Block,
    Comment,
    Const,
    Copy,
    Dim,
    Function,
    If,
    Library,
    Load,
    Loop,
    Operation,
    References,
    Transpose,
    Value,
    changed,
    walk,
)
from srcdiff.ir.types import Array

_SUBSTITUTIONS = {
    ("solve", False): "solve_lower",
    ("solve", True): "solve_lower_transposed",
    ("solve_vector", False): "solve_lower_vector",
    ("solve_vector", True): "solve_lower_transposed_vector",
}
"""By the general call, and whether the factor is transposed."""

_READERS = (Apply, Comment, Const, Copy, Dim, If, Library, Load, Loop, References)
"""Operations that do not write to their array operands."""


def solve_triangles(function: Function) -> Function:
    if not any(isinstance(o, Library) and o.function == "cholesky" for o in walk(function.body)):
        return function
    return changed(function, body=_Solving(function).block(function.body))


class _Solving:
    def __init__(self, function: Function) -> None:
        self.sites = points_to(function)
        self.definition: dict[Value, Operation] = {}
        self.written: set[Value] = set(function.written)
        for operation in walk(function.body):
            self.definition.update(dict.fromkeys(operation.defines(), operation))
            if not isinstance(operation, _READERS):
                for array in operation.uses():
                    if isinstance(array.type, Array):
                        self.written |= self.sites.get(array, frozenset((array,)))

    def block(self, block: Block) -> Block:
        return changed(block, operations=tuple(self.operation(o.rebuilt(self.block)) for o in block.operations))

    def operation(self, operation: Operation) -> Operation:
        if not isinstance(operation, Library) or operation.function not in ("solve", "solve_vector"):
            return operation
        matrix, is_transposed = operation.args[0], False
        definition = self.definition.get(matrix)
        if isinstance(definition, Transpose):
            matrix, is_transposed = definition.array, definition.axes == (1, 0)
            definition = self.definition.get(matrix)
        if not isinstance(definition, Library) or definition.function != "cholesky" or matrix in self.written:
            return operation
        name = _SUBSTITUTIONS[operation.function, is_transposed]
        return changed(operation, function=name, args=(matrix, *operation.args[1:]))
