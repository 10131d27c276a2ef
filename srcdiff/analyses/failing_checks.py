"""Whether a program is known to raise for arguments of these shapes, before it is compiled.

A program that was read without broadcasting axes of length one checks that sizes are equal:

    if a.shape[0] != b.shape[0]:
        raise ValueError(...)

If such a check fails for the shapes of the arguments, compiling the program would be useless.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Alloc, Apply, Const, Derivative, Dim, Function, If, Raise, Value, walk
from srcdiff.ir.types import Scalar


def check_fails(function: Function, shapes: Mapping[Value, Sequence[int]]) -> bool:
    """Whether any check of the function fails, by the shapes of its parameters alone."""
    builder = Builder()
    known, made, shapes = builder.constants, dict[Value, Alloc](), dict(shapes)
    for operation in walk(function.body):
        match operation:
            case Const():
                known[operation.out] = operation.value
            case Alloc():
                made[operation.out] = operation
            case Derivative():
                pairs = zip(operation.params, operation.args, strict=True)
                shapes |= {param: shapes[arg] for param, arg in pairs if arg in shapes}
            case Dim(array=array, axis=axis):
                size = _length(array, axis, shapes, made, known)
                if size is not None:
                    known[operation.out] = size
            case Apply(out=Value(type=Scalar() as type_)):
                found = builder.folded(operation.primitive, operation.args, type_)
                if found in known:
                    known[operation.out] = known[found]
            case If() if known.get(operation.condition) is True:
                raised = [o.exception for o in operation.then.operations if isinstance(o, Raise)]
                if any(issubclass(exception, ValueError | IndexError) for exception in raised):
                    return True
    return False


def _length(
    array: Value,
    axis: int,
    shapes: Mapping[Value, Sequence[int]],
    made: Mapping[Value, Alloc],
    known: Mapping[Value, Any],
) -> Any:
    """The length of an axis of an array, if the shapes of the parameters determine it."""
    while array in made and (like := made[array].like) is not None:
        array = like
    if array in made:
        return known.get(made[array].shape[axis])
    return shapes[array][axis] if array in shapes else None
