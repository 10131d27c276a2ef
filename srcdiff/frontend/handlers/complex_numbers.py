"""Complex numbers: `complex`, the functions of `cmath`, parts of arrays, and predicates."""

from __future__ import annotations

import ast
import cmath
from collections.abc import Callable

import numpy as np

from srcdiff.frontend.domain.abstract_values import Abstract, Lazy, List, Record, Static, Tuple, is_none
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.handlers.builtin_functions import conversion
from srcdiff.frontend.interpreter.attributes import part_of_array
from srcdiff.frontend.interpreter.elementwise_functions import call_primitive
from srcdiff.frontend.interpreter.evaluation import as_array, known_value
from srcdiff.frontend.interpreter.lazy_arrays import as_lazy, elementwise
from srcdiff.frontend.interpreter.number_kinds import as_plain_number, numpys_own, pythons_own
from srcdiff.frontend.interpreter.numbers import as_number, is_array
from srcdiff.frontend.interpreter.tables import handles
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import COMPLEX, COMPLEX64, FLOAT, is_complex

_OF_CMATH = {
    **{name: name for name in ("exp", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "phase": "angle",
    **{name: name for name in ("isnan", "isinf", "isfinite")},
}
"""The functions of `cmath` with one argument, and their complex primitives."""


# -- numbers -----------------------------------------------------------------------------------------------------------


@handles(complex)
def call_complex(
    reader: Reader, node: ast.AST, real: Abstract = Static(0.0), imag: Abstract = Static(None)
) -> Abstract:
    """`complex(x, y)`, whose arguments may be complex: `x + 1j * y`."""
    if isinstance(real, Static) and isinstance(imag, Static) and not (real.numpys or imag.numpys):
        try:
            return Static(complex(real.value) if imag.value is None else complex(real.value, imag.value))
        except ValueError as error:
            reader.raise_always(ValueError, str(error))
        except TypeError as error:
            reader.refuse("SD203", node, str(error))
    first = as_plain_number(reader, as_number(reader, real, node))
    if is_none(imag):
        return pythons_own(reader, reader.cast(first, COMPLEX))
    second = as_plain_number(reader, as_number(reader, imag, node))
    if is_complex(first.type) or is_complex(second.type):
        turned = reader.apply("multiply", reader.const(1j), second)
        return pythons_own(reader, reader.cast(reader.apply("add", first, turned), COMPLEX))
    return pythons_own(reader, reader.apply("complex", reader.cast(first, FLOAT), reader.cast(second, FLOAT)))


handles(np.complex128)(conversion(COMPLEX))
handles(np.complex64)(conversion(COMPLEX64))


# -- cmath -------------------------------------------------------------------------------------------------------------


def _as_complex(reader: Reader, x: Abstract, node: ast.AST) -> Value:
    return reader.cast(as_plain_number(reader, as_number(reader, x, node)), COMPLEX)


def _of_one_number(primitive: str) -> Callable[..., Abstract]:
    def call(reader: Reader, node: ast.AST, z: Abstract) -> Abstract:
        found = call_primitive(reader, primitive, [_as_complex(reader, z, node)], {}, node)
        return pythons_own(reader, found) if isinstance(found, Value) else found

    return call


for _name, _primitive in _OF_CMATH.items():
    handles(getattr(cmath, _name))(_of_one_number(_primitive))


@handles(cmath.log)
def call_log(reader: Reader, node: ast.AST, z: Abstract, base: Abstract = Static(None)) -> Abstract:
    found = reader.apply("log", _as_complex(reader, z, node))
    if is_none(base):
        return pythons_own(reader, found)
    return pythons_own(reader, reader.apply("divide", found, reader.apply("log", _as_complex(reader, base, node))))


@handles(cmath.polar)
def call_polar(reader: Reader, node: ast.AST, z: Abstract) -> Abstract:
    number = _as_complex(reader, z, node)
    return Tuple(tuple(call_primitive(reader, p, [number], {}, node) for p in ("absolute", "angle")))


@handles(cmath.rect)
def call_rect(reader: Reader, node: ast.AST, r: Abstract, phi: Abstract) -> Abstract:
    size, angle = (reader.cast(as_number(reader, x, node), FLOAT) for x in (r, phi))
    real, imag = (reader.apply("multiply", size, reader.apply(p, angle)) for p in ("cos", "sin"))
    return pythons_own(reader, reader.apply("complex", real, imag))


@handles(np.angle, lazy=True)
def call_angle(reader: Reader, node: ast.AST, z: Abstract, deg: Abstract = Static(False)) -> Abstract:
    found = call_primitive(reader, "angle", [z], {}, node, np.angle)
    is_degrees = known_value(reader, deg, "`deg` of `angle`", node)
    return call_primitive(reader, "degrees", [found], {}, node, np.degrees) if is_degrees else found


# -- arrays ------------------------------------------------------------------------------------------------------------


def _part(reader: Reader, part: str, x: Abstract, node: ast.AST) -> Abstract:
    """The real or imaginary part of a number, or of an array, as a view."""
    if isinstance(x, Record):
        return x.items[0]
    if isinstance(x, List | Tuple):
        x = as_array(reader, x, node)
    if is_array(x):
        assert isinstance(x, Value | Lazy)
        return part_of_array(reader, part, x, node)
    return numpys_own(reader, reader.apply(part, as_plain_number(reader, as_number(reader, x, node))))


@handles(np.real, lazy=True)
def call_real(reader: Reader, node: ast.AST, val: Abstract) -> Abstract:
    return _part(reader, "real", val, node)


@handles(np.imag, lazy=True)
def call_imag(reader: Reader, node: ast.AST, val: Abstract) -> Abstract:
    return _part(reader, "imag", val, node)


def _asked(reader: Reader, x: Abstract, node: ast.AST, primitive: str) -> Abstract:
    """Whether imaginary parts are zero, or nonzero, element by element."""

    def ask(values: list[Value]) -> Value:
        imag = reader.apply("imag", as_plain_number(reader, values[0]))
        return reader.apply(primitive, imag, reader.const(0.0))

    if isinstance(x, List | Tuple):
        x = as_array(reader, x, node)
    if is_array(x):
        return elementwise(reader, (as_lazy(reader, x, node),), ask, "bool", node)
    return ask([as_number(reader, x, node)])


@handles(np.iscomplex, lazy=True)
def call_iscomplex(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    return _asked(reader, x, node, "not_equal")


@handles(np.isreal, lazy=True)
def call_isreal(reader: Reader, node: ast.AST, x: Abstract) -> Abstract:
    return _asked(reader, x, node, "equal")
