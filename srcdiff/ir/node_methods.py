"""The methods of operations, generated from the declarations of their fields.

    class Load(Operation):              def uses(self): return (self.array, *self.indices)
        out: Result                     def defines(self): return (self.out,)
        array: Operand                  def replaced(self, by):
        indices: Operands                   array, indices = by(self.array), tuple([by(v) for v in self.indices])
                                            if array is self.array and indices == self.indices: return self
                                            return type(self)(self.out, array, indices, span=self.span)

They are generated as text and compiled, so they are as fast as methods written by hand.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Sequence
from typing import Any

_ONE = "({0},)"
_MAYBE_ONE = "(() if {0} is None else ({0},))"
_SEVERAL = "{0}"
_MAYBE_SEVERAL = "({0} or ())"

_WORDS = {
    # the declaration of a field: the method that returns it as a tuple, and the one that replaces its values or blocks
    "Result": ("defines", _ONE, "by({0})"),
    "Result | None": ("defines", _MAYBE_ONE, "None if {0} is None else by({0})"),
    "Results": ("defines", _SEVERAL, "tuple([by(v) for v in {0}])"),
    "Inner": ("inner", _ONE, "by({0})"),
    "Inner | None": ("inner", _MAYBE_ONE, "None if {0} is None else by({0})"),
    "Inners": ("inner", _SEVERAL, "tuple([by(v) for v in {0}])"),
    "Operand": ("uses", _ONE, "by({0})"),
    "Operand | None": ("uses", _MAYBE_ONE, "None if {0} is None else by({0})"),
    "Operands": ("uses", _SEVERAL, "tuple([by(v) for v in {0}])"),
    "Bounds | None": ("uses", _MAYBE_SEVERAL, "None if {0} is None else (by({0}[0]), by({0}[1]), by({0}[2]))"),
    "Items": ("uses", "tuple([v for item in {0} for v in item.parts()])", "tuple([i.replaced(by) for i in {0}])"),
    "Parts": ("uses", "values_in({0})", "with_values({0}, by)"),
    "Block": ("blocks", _ONE, "by({0})"),
    "Block | None": ("blocks", _MAYBE_ONE, "None if {0} is None else by({0})"),
}
_CHANGES = {"replaced": ("uses",), "redefined": ("defines", "inner"), "rebuilt": ("blocks",)}


def derive_methods(cls: Any) -> None:
    """Add the generated methods to a class of operations."""
    if "__slots__" in vars(cls):  # the class is made again with slots, and has its methods
        return
    words = words_of(cls)
    declared = {name: _WORDS[word] for name, word in words.items() if word in _WORDS}
    methods: dict[str, str] = {}
    for method in ("uses", "defines", "inner", "blocks"):
        tuples = [as_tuple.format(f"self.{name}") for name, (of, as_tuple, _) in declared.items() if of == method]
        if tuples:
            methods[method] = _definition(method, ("self",), [f"return {' + '.join(tuples)}"])
    for method, changed in _CHANGES.items():
        parts = {name: with_others for name, (of, _, with_others) in declared.items() if of in changed}
        if parts:
            methods[method] = _definition(method, ("self", "by"), _changed(words, parts))
    if methods:  # compiled in the module of the class
        made: dict[str, Any] = {}
        exec("".join(methods.values()), vars(sys.modules[cls.__module__]), made)
        for name in methods:
            setattr(cls, name, made[name])


def words_of(cls: Any) -> dict[str, str]:
    """The declarations of the fields of a class of operations, in order."""
    return inspect.get_annotations(cls)


def _changed(words: Iterable[str], parts: dict[str, str]) -> list[str]:
    """The lines that make an operation with other parts, or return it if they are the same."""
    lines = [f"{name} = {with_others.format(f'self.{name}')}" for name, with_others in parts.items()]
    same = " and ".join(f"{name} == self.{name}" for name in parts)
    given = ", ".join(name if name in parts else f"self.{name}" for name in words)
    return [*lines, f"if {same}: return self", f"return type(self)({given}, span=self.span)"]


def _definition(name: str, parameters: Sequence[str], lines: Sequence[str]) -> str:
    return f"def {name}({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)
