"""`g.cfunc`: the value and the gradient as a function that C programs call by its address, for flat parameters."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from srcdiff.api.workspaces import ARGUMENTS
from srcdiff.backends.backend import Trait
from srcdiff.backends.numba import c_callable, c_library
from srcdiff.diagnostics import NotExportedError, printable
from srcdiff.signature.flat_views import FlatPart, FlatView
from srcdiff.signature.trees import VALUES

if TYPE_CHECKING:
    from srcdiff.api.derivatives import Derivative
    from srcdiff.api.specialisations import Specialisation

DECLARATION = "int {name}(int64_t n, const double *x, double *gradient, double *value, void *data);"
_HEADER = """\
/* {title}
 *
 * Its parameters are
{parameters}
 *
 * It returns 0 if the value and the gradient are written, 1 if the function has raised an exception, -1 if n is not
 * {size}, and -2 if a pointer is null; then nothing is written. Several threads may call it. `data` is not used.
 */
#ifndef {guard}
#define {guard}
#include <stdint.h>
#define {size} {n}
#ifdef __cplusplus
extern "C" {{
#endif
{declaration}
#ifdef __cplusplus
}}
#endif
#endif
"""
_POINTER = ctypes.POINTER(ctypes.c_double)
_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, _POINTER, _POINTER, _POINTER, ctypes.c_void_p)


class CFunction:
    """A compiled function for C, made by `Derivative.cfunc`. It must live for as long as C calls the address."""

    def __init__(self, derivative: Derivative, flat: FlatView) -> None:
        if derivative.mode != "reverse" or not derivative.has(Trait.COMPILED):
            raise TypeError(f"{derivative!r} has no function for C: use `grad` or `value_and_grad`, compiled by Numba")
        if not flat.size:
            raise ValueError(f"the arguments {', '.join(derivative.wrt)} of the example have no parameters")
        self.derivative = derivative if derivative.with_value else _with_value(derivative)
        """The same function for Python: `value_and_grad`."""
        self.flat = flat
        """The view of the parameters as a vector: see `Derivative.ravel`."""
        self.n = flat.size
        """The number of parameters."""
        self._constants = Constants()
        """The values that are no parameters."""
        self._compiled = self._compile()
        self.address: int = self._compiled.address
        """The address of the function."""
        self.ctypes: Any = _TYPE(self.address)
        """The function for `ctypes`, which releases the GIL for the call."""

    def __call__(self, x: Any) -> tuple[float, np.ndarray[Any, Any]]:
        """The value and the gradient at a vector, by a call of the C function.

        If it fails, this raises the exception that the derivative raises in Python.
        """
        vector = np.ascontiguousarray(self.flat.checked(x))
        gradient, value = np.empty(self.n), ctypes.c_double()
        code = self.ctypes(self.n, _pointer(vector), _pointer(gradient), ctypes.byref(value), None)
        if code == c_callable.RAISED:
            self.derivative.run(self.flat.arguments(vector))
        if code != c_callable.OK:
            raise RuntimeError(f"{self!r} returned {code}")
        return value.value, gradient

    def declaration(self, name: str = "f") -> str:
        """The declaration of the function in C."""
        return DECLARATION.format(name=name)

    def export(self, folder: str | Path, name: str | None = None) -> Path:
        """Write the function as a shared library with a header, for programs without Python: `srcdiff export --c`.

        Args:
            folder: Where to write `NAME.h` and `libNAME.so`, and what the library is linked from.
            name: The name of the function; by default, that of the Python function.

        Returns:
            The path of the library.

        Raises:
            NotExportedError: If the code needs Python when it runs, or if there is no C compiler.
        """
        name = self.derivative.function.__name__ if name is None else name
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"{name!r} is not a name in C: pass `name`")
        if c_library.is_taken(name):
            raise ValueError(f"C and its library have the name {name!r}: pass another as `name`")
        title = f"The value and the gradient of `{self.derivative.function.__name__}{self.derivative.signature}`."
        title = printable(title).replace("*/", "* /")
        parameters = [f" *   x[{k}]  {printable(n)}".replace("*/", "* /") for k, n in enumerate(self.flat.names)]
        header = _HEADER.format(
            title=title,
            guard=f"{name.upper()}_H",
            size=f"{name.upper()}_SIZE",
            n=self.n,
            parameters="\n".join(parameters),
            declaration=self.declaration(name),
        )
        text = c_callable.text_of(*self._written, catches=False)
        objects, arrays = self._constants.objects, self._constants.arrays
        try:
            return c_library.build(Path(folder), name, title, header, text, self._function, objects, arrays)
        except c_library.NotLinkedError as error:
            raise NotExportedError(f"{self!r} cannot be a library for C: {error}") from None

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} is valid only in this process: call `cfunc` again in the other one")

    def __repr__(self) -> str:
        return f"<C function of {self.derivative!r}, {self.n} parameters>"

    # -- compilation -------------------------------------------------------------------------------------------------

    def _compile(self) -> Any:
        args = self.flat.arguments(self.flat.x)
        specialisation = specialised_for_sizes(self.derivative, args)
        values = specialisation.prepared(args)
        specialisation.compile(args)
        names = [self.derivative.names[k] for k in specialisation.positions]
        parts = {name: iter(self._parts_of(name)) for name in self.derivative.wrt}
        call = []
        for k, value in enumerate(values):  # behind the arguments are values from outside
            call.append(self._expression(value, parts.get(names[k]) if k < len(names) else None))
        left = [part.name for of in parts.values() for part in of]
        assert not left, f"{left} are not passed to the compiled function"
        value = "result[0][0]" if self.derivative.has_aux else "result[0]"
        self._function, self._written = specialisation.function, (self.n, call, value, list(self._stores(args)))
        return c_callable.c_callable(c_callable.text_of(*self._written), self._function, self._constants.objects)

    def _parts_of(self, name: str) -> list[FlatPart]:
        return [part for part in self.flat.parts if part.argument == name]

    def _expression(self, value: Any, parts: Iterator[FlatPart] | None) -> str:
        """An argument of the compiled function. Its floats are the next parameters, if it has parameters."""
        if parts is None:
            return self._constants.expression(value)
        if isinstance(value, tuple):
            return self._constants.tuple_of(value, [self._expression(item, parts) for item in value])
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            start = _taken(parts, value.size * (2 if value.dtype.kind == "c" else 1))
            return c_callable.parameter(start, value.shape, value.dtype)
        if _is_number(value):
            start = _taken(parts, 2 if np.iscomplexobj(value) else 1)
            number = c_callable.number(start, is_complex=np.iscomplexobj(value))
            return number if isinstance(value, float | complex) else f"np.{value.dtype}({number})"
        return self._constants.expression(value)

    def _stores(self, args: tuple[Any, ...]) -> Iterator[str]:
        """The statements that write the gradient."""
        start = 0
        for k, name in enumerate(self.derivative.wrt):
            whole = "result[1]" if self.derivative.single else f"result[1][{k}]"
            for part in ARGUMENTS.named(args[self.derivative.names.index(name)], name):
                leaf = part.value
                is_complex = np.iscomplexobj(leaf)
                if isinstance(leaf, list):
                    shape: tuple[int, ...] | None = (sum(map(_is_number, leaf)),)
                elif isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc":
                    shape = leaf.shape
                elif _is_number(leaf):
                    shape = None
                else:
                    continue
                size = 1 if shape is None else int(np.prod(shape, dtype=np.int64))
                if size:
                    yield c_callable.store(start, part.subscripted(whole), shape, is_complex=is_complex)
                start += 2 * size if is_complex else size


class Constants:
    """Values that are compiled into a function for C, and the copies of arrays that it reads by their addresses."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.arrays: list[np.ndarray[Any, Any]] = []

    def expression(self, value: Any) -> str:
        """The expression of a value."""
        if isinstance(value, tuple):
            return self.tuple_of(value, [self.expression(item) for item in value])
        if isinstance(value, np.ndarray):
            self.arrays.append(np.array(value, order="C"))
            return c_callable.data(self.named("address", self.arrays[-1].ctypes.data), value)
        return self.named("constant", value)

    def tuple_of(self, value: tuple[Any, ...], items: Sequence[str]) -> str:
        """The expression of a tuple, or a named tuple, from those of its items."""
        if hasattr(value, "_fields"):
            return f"{self.named('kind', type(value))}({', '.join(items)})"
        return f"({', '.join(items)},)" if items else "()"

    def named(self, kind: str, value: Any) -> str:
        name = f"{kind}_{len(self.objects)}"
        self.objects[name] = value
        return name


def specialised_for_sizes(derivative: Derivative, args: tuple[Any, ...]) -> Specialisation:
    """The specialisation; if the example has axes of length one, the code that broadcasts them."""
    found = derivative.specialised(args)
    has_unit_axes = any(1 in getattr(leaf, "shape", ()) for leaf in VALUES.leaves(args))
    return derivative.exactly_specialised(args) if found.assumes_sizes and has_unit_axes else found


def _with_value(derivative: Derivative) -> Derivative:
    options = {**derivative.options, "backend": derivative.backend, "has_aux": derivative.has_aux}
    return type(derivative)(derivative.of, "reverse", derivative.asked, with_value=True, **options)


def _is_number(leaf: Any) -> bool:
    """Whether a value of an unravelled argument is a parameter: they are floats and complex numbers."""
    return isinstance(leaf, float | complex | np.inexact)


def _taken(parts: Iterator[FlatPart], size: int) -> int:
    """Take the next parts with so many numbers, which become one array if they were a list; their start."""
    first = next(parts)
    taken = first.size
    while taken < size and first.is_complex == (part := next(parts)).is_complex:
        taken += part.size
    if taken != size:
        raise TypeError(f"C functions take no lists of real and complex numbers, such as that of `{first.name}`")
    return int(first.slice.start)


def _pointer(array: np.ndarray[Any, Any]) -> Any:
    return array.ctypes.data_as(_POINTER)
