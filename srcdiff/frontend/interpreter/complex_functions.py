"""Complex functions in terms of real ones, because they are not analytic, or for accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable

from srcdiff.frontend.domain.reader import Reader
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import FLOAT, is_complex, real_of


def parts(reader: Reader, z: Value) -> tuple[Value, Value]:
    """The real and the imaginary part."""
    return reader.apply("real", z), reader.apply("imag", z)


def _absolute(reader: Reader, z: Value) -> Value:
    return reader.apply("hypot", *parts(reader, z))


def _angle(reader: Reader, z: Value) -> Value:
    real, imag = parts(reader, z)
    return reader.apply("arctan2", imag, real)


def _sign(reader: Reader, z: Value) -> Value:
    """`z / abs(z)`, and zero for zero."""
    size = _absolute(reader, z)
    is_zero = reader.apply("equal", size, reader.const(0.0, real_of(z.scalar)))
    one = reader.const(1.0, real_of(z.scalar))
    return reader.apply("divide", z, reader.apply("where", is_zero, one, size))


def _log2(reader: Reader, z: Value) -> Value:
    return reader.apply("divide", reader.apply("log", z), reader.const(math.log(2.0), real_of(z.scalar)))


def _exp2(reader: Reader, z: Value) -> Value:
    return reader.apply("exp", reader.apply("multiply", z, reader.const(math.log(2.0), real_of(z.scalar))))


def _log1p(reader: Reader, z: Value) -> Value:
    """The sum has the imaginary part of `z`, also the sign of a zero, which says on which side of the cut it is."""
    return reader.apply("log", reader.apply("add", z, reader.const(complex(1.0, -0.0), z.scalar)))


def _expm1(reader: Reader, z: Value) -> Value:
    """`exp(x) * cos(y) - 1` without cancellation, and `exp(x) * sin(y)`."""
    x, y = (reader.cast(part, FLOAT) for part in parts(reader, z))
    sine = reader.apply("sin", reader.apply("multiply", y, reader.const(0.5)))
    twice = reader.apply("multiply", reader.const(2.0), reader.apply("multiply", sine, sine))
    real = reader.apply("subtract", reader.apply("multiply", reader.apply("expm1", x), reader.apply("cos", y)), twice)
    imag = reader.apply("multiply", reader.apply("exp", x), reader.apply("sin", y))
    return reader.cast(reader.apply("complex", real, imag), z.type)


def _rint(reader: Reader, z: Value) -> Value:
    real, imag = (reader.apply("rint", reader.cast(part, FLOAT)) for part in parts(reader, z))
    return reader.cast(reader.apply("complex", real, imag), z.type)


def _sinc(reader: Reader, z: Value) -> Value:
    """`sin(y) / y` with `y = pi * z`; near zero its power series, of which each derivative is accurate, too."""
    real = real_of(z.scalar)
    y = reader.apply("multiply", z, reader.const(math.pi, real))
    is_small = reader.apply("less", _absolute(reader, y), reader.const(2.0, real))
    small = reader.apply("where", is_small, y, reader.const(0j, z.scalar))
    large = reader.apply("where", is_small, reader.const(1 + 0j, z.scalar), y)
    square, one = reader.apply("multiply", small, small), reader.const(1.0, real)
    series = reader.const(1 + 0j, z.scalar)
    for k in range(_SINC_TERMS, 0, -1):
        factor = reader.const(1.0 / (2 * k * (2 * k + 1)), real)
        series = reader.apply(
            "subtract", one, reader.apply("multiply", reader.apply("multiply", square, factor), series)
        )
    quotient = reader.apply("divide", reader.apply("sin", large), large)
    return reader.apply("where", is_small, series, quotient)


_SINC_TERMS = 14
"""Of the series at 2: the next term is less than 1e-20."""

_WRITTEN: dict[str, Callable[[Reader, Value], Value]] = {
    "absolute": _absolute,
    "angle": _angle,
    "sign": _sign,
    "log2": _log2,
    "exp2": _exp2,
    "log1p": _log1p,
    "expm1": _expm1,
    "sinc": _sinc,
    "rint": _rint,
}


def of_complex(reader: Reader, primitive: str, values: list[Value]) -> Value | None:
    """A function of a complex number in terms of real functions, if it is one of these."""
    written = _WRITTEN.get(primitive)
    if written is None or len(values) != 1 or not is_complex(values[0].type):
        return None
    return written(reader, values[0])
