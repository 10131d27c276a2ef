"""A race checker: runs loops over `prange` iteration by iteration and records which one touched which element.

    with race_checker.on():
        srcdiff.grad(f, backend="python", parallel=True)(x)

Every iteration is a block of its own, whatever its work. If two of them touch the same element, and one writes to it,
the call raises `RaceError`. Blocks run in the reverse order, so a result that depends on the order differs, too. Tests
use it: it is slow.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np

from srcdiff.backends.python import interpreter
from srcdiff.backends.python.outlined_loops import CALL, Outlining

_GET, _SET, _WHOLE = "__get__", "__set__", "__whole__"
_is_on: ContextVar[bool] = ContextVar("race_checker_is_on", default=False)


class RaceError(AssertionError):
    """Two iterations of a loop in threads touch the same element, and one writes to it."""


@contextlib.contextmanager
def on() -> Iterator[None]:
    """Check the programs that are loaded meanwhile, at all of their calls."""
    token = _is_on.set(True)
    try:
        yield
    finally:
        _is_on.reset(token)


def is_on() -> bool:
    return _is_on.get()


def load(text: str, name: str, objects: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of the text, with the checks."""
    recorder = _Recorder()
    given = {
        **objects,
        interpreter.QUOTIENT: interpreter.quotient,
        CALL: recorder.run,
        _GET: recorder.get,
        _SET: recorder.set,
        _WHOLE: recorder.whole,
    }
    namespace = interpreter.load(text, given, interpreter.new_file(name), _Spelling())
    namespace["atomic_add"] = recorder.add
    namespace["thread_blocks"] = lambda count, work, private: max(1, count)
    return interpreter.quiet(namespace[name])


class _Spelling(interpreter.QuietDivisions):
    def visit_Module(self, node: ast.Module) -> ast.AST:
        outlining = Outlining()
        self.generic_visit(node)
        made: ast.Module = outlining.visit(node)
        for function in outlining.functions:
            _Accesses().visit(function)
        made.body += outlining.functions
        return ast.fix_missing_locations(made)


class _Accesses(ast.NodeTransformer):
    """Calls the recorder for each access to an element, and for arrays that are arguments of a function."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(_called(_GET, node.value, node.slice), node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        (target,) = node.targets
        if not isinstance(target, ast.Subscript):
            return node
        return ast.copy_location(ast.Expr(_called(_SET, target.value, target.slice, node.value)), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not isinstance(node.target, ast.Subscript):
            return self.generic_visit(node)
        before = ast.parse(ast.unparse(node.target), mode="eval").body
        made = ast.Assign([node.target], ast.BinOp(before, node.op, node.value))
        return self.visit_Assign(ast.copy_location(made, node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "atomic_add":
            return node
        node.args = [ast.copy_location(_called(_WHOLE, a), a) if isinstance(a, ast.Name) else a for a in node.args]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            node.left, node.right = _called(_WHOLE, node.left), _called(_WHOLE, node.right)
        return node


def _called(name: str, *args: ast.expr) -> ast.Call:
    given = [_as_value(a) for a in args]
    return ast.Call(ast.Name(name, ast.Load()), given, [])


def _as_value(index: ast.expr) -> ast.expr:
    """An index with slices as a value."""
    match index:
        case ast.Slice():
            parts = [ast.Constant(None) if p is None else p for p in (index.lower, index.upper, index.step)]
            return ast.Call(ast.Name("slice", ast.Load()), parts, [])
        case ast.Tuple():
            return ast.Tuple([_as_value(e) for e in index.elts], ast.Load())
    return index


class _Recorder:
    def __init__(self) -> None:
        self.block = 0
        self.readers: dict[int, int] = {}
        """For each address that was read, the block that read it; -1 if several did."""
        self.writers: dict[int, int] = {}
        self.atomic: set[int] = set()
        """The addresses that were added to atomically."""
        self.held: list[Any] = []
        """Arrays whose memory must not be used again while the loop runs."""

    def run(self, body: Callable[..., None], count: int, given: tuple[Any, ...]) -> None:
        self.readers, self.writers, self.held, self.atomic = {}, {}, [given], set()
        for block in range(count - 1, -1, -1):
            self.block = block
            body(block, block + 1, *given)
        self.held = []

    def get(self, array: Any, index: Any) -> Any:
        found = array[index]
        if isinstance(array, np.ndarray) and not isinstance(found, np.ndarray):
            self.read(_address(array, index))
            self.held.append(array)
        return found

    def set(self, array: Any, index: Any, value: Any) -> None:
        part = array[index]
        if isinstance(part, np.ndarray):
            for address in _addresses(part):
                self.write(address)
        elif isinstance(array, np.ndarray):
            self.write(_address(array, index))
        self.held.append(array)
        array[index] = value

    def add(self, array: Any, index: Any, value: Any) -> None:
        """An atomic addition, beside which nothing but others may be done with the element."""
        address = _address(array, index)
        others = {self.readers.get(address, self.block), self.writers.get(address, self.block)} - {self.block}
        if others:
            raise RaceError(f"iteration {self.block} adds atomically to an element that another one reads or writes")
        self.atomic.add(address)
        self.held.append(array)
        array[index] += value

    def whole(self, x: Any) -> Any:
        if isinstance(x, np.ndarray):
            self.held.append(x)
            for address in _addresses(x):
                self.read(address)
        return x

    def read(self, address: int) -> None:
        self.forbid_atomic(address)
        writer = self.writers.get(address, self.block)
        if writer != self.block:
            raise RaceError(f"iteration {self.block} reads an element that iteration {writer} writes")
        reader = self.readers.setdefault(address, self.block)
        if reader != self.block:
            self.readers[address] = -1

    def forbid_atomic(self, address: int) -> None:
        if address in self.atomic:
            raise RaceError(f"iteration {self.block} reads or writes an element that others add to atomically")

    def write(self, address: int) -> None:
        self.forbid_atomic(address)
        other = self.readers.get(address, self.block)
        if other != self.block:
            raise RaceError(f"iteration {self.block} writes an element that another one reads")
        writer = self.writers.setdefault(address, self.block)
        if writer != self.block:
            raise RaceError(f"iterations {self.block} and {writer} write to the same element")


def _address(array: np.ndarray, index: Any) -> int:
    place: int = array.__array_interface__["data"][0]
    for k, step, size in zip(index if isinstance(index, tuple) else (index,), array.strides, array.shape, strict=True):
        place += int(step) * (int(k) + size if k < 0 else int(k))
    return place


def _addresses(array: np.ndarray) -> Iterator[int]:
    return (_address(array, index) for index in np.ndindex(array.shape))
