"""Complex numbers in kernels: functions of complex numbers by functions of real ones, which is what GPUs have.

w = np.exp(z)       =>      e = np.exp(z.real)
                            w = complex(e * np.cos(z.imag), e * np.sin(z.imag))

Additions of several threads to one element are two additions, to its real and to its imaginary part. What has no such
formula here is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from srcdiff.diagnostics import DifferentiationError, Problem, Span
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Apply, Block, Function, Library, Part, Store, Value, changed, walk
from srcdiff.ir.types import COMPLEX, FLOAT, Array, Scalar, is_complex, real_of

_AS_THEY_ARE = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "negative", "positive", "complex", "complex128", "complex64"),
        *("real", "imag"),
        *("equal", "not_equal", "where", "stop_gradient"),
    )
)
"""The primitives that Numba compiles for GPUs as they are."""


def with_real_functions(function: Function) -> Function:
    """The function, in which no other primitives have complex arguments."""
    if not any(is_complex(v.type) for o in walk(function.body) for v in (*o.uses(), *o.defines())):
        return function
    return changed(function, body=_block(function.body))


def _block(block: Block) -> Block:
    build = Builder()
    for operation in block.operations:
        build.span = operation.span
        _refuse_what_no_gpu_does(operation)
        formula = _formula(operation)
        if isinstance(operation, Apply) and formula is not None:
            parts = formula(build, *(_part(build, a, p) for a in operation.args for p in ("real", "imag")))
            both = operation.out if operation.out.type == COMPLEX else Value(COMPLEX)
            build.add(Apply(both, "complex", tuple(build.cast(p, FLOAT) for p in parts), span=operation.span))
            if both is not operation.out:
                build.add(Apply(operation.out, "complex64", (both,), span=operation.span))
        else:
            build.add(operation.rebuilt(_block))
    return changed(block, operations=tuple(build.operations))


def _formula(operation: object) -> Callable[..., tuple[Value, Value]] | None:
    if not isinstance(operation, Apply) or not any(is_complex(a.type) for a in operation.args):
        return None
    if operation.primitive in _AS_THEY_ARE:
        return None
    found = _FORMULAS.get(operation.primitive)
    if found is None:
        _refuse(f"`{operation.primitive}` of complex numbers cannot be computed on the GPU", operation.span)
    return found


def _refuse_what_no_gpu_does(operation: object) -> None:
    match operation:
        case Library(function=name, args=args, outs=outs, span=span):
            if name.startswith(("fft", "ifft", "rfft", "irfft")):
                _refuse("Fourier transforms cannot be computed on the GPU", span)
            if any(is_complex(v.type) for v in (*args, *outs)):
                _refuse("products and equations of complex matrices cannot be computed on the GPU", span)


def with_real_additions(kernel: Function) -> Function:
    """The kernel, in which several threads add to the real and to the imaginary part of an element."""

    def block(old: Block) -> Block:
        build = Builder()
        for operation in old.operations:
            build.span = operation.span
            if isinstance(operation, Store) and operation.atomic and is_complex(operation.array.type):
                for part in ("real", "imag"):
                    numbers = operation.array.array
                    of_array = Value(Array(real_of(Scalar(numbers.dtype)).dtype, numbers.rank))
                    build.add(Part(of_array, operation.array, part, span=operation.span))
                    build.add(replace(operation, array=of_array, value=_part(build, operation.value, part)))
            else:
                build.add(operation.rebuilt(block))
        return changed(old, operations=tuple(build.operations))

    return changed(kernel, body=block(kernel.body))


def _refuse(message: str, span: Span | None) -> None:
    raise DifferentiationError([Problem("SD501", message, span, help='use `backend="numba"`')])


# -- formulas --------------------------------------------------------------------------------------------------------


def _part(build: Builder, z: Value, part: str) -> Value:
    return build.apply(part, z) if is_complex(z.type) else build.apply(part, build.cast(z, COMPLEX))


def _product(build: Builder, x: Value, y: Value) -> Value:
    return build.apply("multiply", x, y)


def _exp(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    size = build.apply("exp", x)
    return _product(build, size, build.apply("cos", y)), _product(build, size, build.apply("sin", y))


def _of_both(first: tuple[str, str], second: tuple[str, str], *, negated: bool) -> Callable[..., tuple[Value, Value]]:
    def formula(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
        real, imag = (_product(build, build.apply(of_x, x), build.apply(of_y, y)) for of_x, of_y in (first, second))
        return real, build.apply("negative", imag) if negated else imag

    return formula


def _log(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    return build.apply("log", build.apply("hypot", x, y)), build.apply("arctan2", y, x)


def _log10(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    factor = build.const(1.0 / math.log(10.0))
    real, imag = _log(build, x, y)
    return _product(build, factor, real), _product(build, factor, imag)


def _sqrt(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """The larger part by a root without cancellation, the other one by division."""
    half, zero = build.const(0.5), build.const(0.0)
    mean = _product(build, half, build.apply("add", build.apply("hypot", x, y), build.apply("absolute", x)))
    larger = build.apply("sqrt", mean)
    is_zero = build.apply("equal", larger, zero)
    smaller = build.apply("divide", _product(build, half, y), build.apply("where", is_zero, build.const(1.0), larger))
    is_right = build.apply("greater_equal", x, zero)
    real = build.apply("where", is_right, larger, build.apply("absolute", smaller))
    return real, build.apply("where", is_right, smaller, build.apply("copysign", larger, y))


def _square(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    real = build.apply("subtract", _product(build, x, x), _product(build, y, y))
    return real, _product(build, build.const(2.0), _product(build, x, y))


def _conjugate(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    return x, build.apply("negative", y)


def _tanh(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """With t and u, the tangents of both parts: t (1 + u u) / (1 + t t u u), and u (1 - t) (1 + t) / (1 + t t u u)."""
    one = build.const(1.0)
    t, u = build.apply("tanh", x), build.apply("tan", y)
    uu = _product(build, u, u)
    below = build.apply("add", one, _product(build, _product(build, t, t), uu))
    decay = _product(build, build.apply("subtract", one, t), build.apply("add", one, t))
    parts = _product(build, t, build.apply("add", one, uu)), _product(build, u, decay)
    real, imag = (build.apply("divide", part, below) for part in parts)
    return real, imag


def _tan(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """-1j times the hyperbolic tangent of 1j z."""
    real, imag = _tanh(build, build.apply("negative", y), x)
    return imag, build.apply("negative", real)


def _power(build: Builder, x: Value, y: Value, real: Value, imag: Value) -> tuple[Value, Value]:
    """The exponential of the logarithm times the exponent; zero is its own positive power, and has no others."""
    size, angle = _log(build, x, y)
    larger = build.apply("subtract", _product(build, real, size), _product(build, imag, angle))
    turned = build.apply("add", _product(build, imag, size), _product(build, real, angle))
    zero, nothing = build.const(0.0), build.const(math.nan)
    at_zero = build.apply("where", build.apply("greater", real, zero), zero, nothing)
    is_one = build.apply("logical_and", *(build.apply("equal", part, zero) for part in (real, imag)))
    is_zero = build.apply("logical_and", *(build.apply("equal", part, zero) for part in (x, y)))
    first, second = _exp(build, larger, turned)
    first = build.apply("where", is_zero, build.apply("where", is_one, build.const(1.0), at_zero), first)
    return first, build.apply("where", is_zero, build.apply("where", is_one, zero, at_zero), second)


def _reciprocal(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    inverse = build.apply("divide", build.const(1.0 + 0.0j), build.apply("complex", x, y))
    return build.apply("real", inverse), build.apply("imag", inverse)


# -- inverse functions: Kahan's formulas, which are exact on both sides of the cuts. W. Kahan, Branch Cuts for Complex
# Elementary Functions, in: The State of the Art in Numerical Analysis (1987)


def _minus(build: Builder, x: Value, y: Value) -> Value:
    return build.apply("subtract", x, y)


def _cross(build: Builder, a: Value, b: Value, c: Value, d: Value) -> Value:
    """a b - c d."""
    return _minus(build, _product(build, a, b), _product(build, c, d))


def _roots_beside_one(build: Builder, x: Value, y: Value) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    """The roots of 1 - z and of 1 + z."""
    one = build.const(1.0)
    below = _sqrt(build, _minus(build, one, x), build.apply("negative", y))
    return below, _sqrt(build, build.apply("add", one, x), y)


def _arccos(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    (a, b), (c, d) = _roots_beside_one(build, x, y)
    real = _product(build, build.const(2.0), build.apply("arctan2", a, c))
    return real, build.apply("arcsinh", _cross(build, c, b, d, a))


def _arccosh(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    one = build.const(1.0)
    a, b = _sqrt(build, _minus(build, x, one), y)
    c, d = _sqrt(build, build.apply("add", x, one), y)
    total = build.apply("add", _product(build, a, c), _product(build, b, d))
    return build.apply("arcsinh", total), _product(build, build.const(2.0), build.apply("arctan2", b, c))


def _arcsinh(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    real, imag = _arcsin(build, build.apply("negative", y), x)
    return imag, build.apply("negative", real)


def _arcsin(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    (a, b), (c, d) = _roots_beside_one(build, x, y)
    real = build.apply("arctan2", x, _cross(build, a, c, b, d))
    return real, build.apply("arcsinh", _cross(build, a, d, c, b))


def _arctanh(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """In the right half plane; it is odd."""
    one = build.const(1.0)
    sign = build.apply("copysign", one, x)
    x, y = build.apply("absolute", x), _product(build, sign, y)
    beside, square = _minus(build, one, x), _product(build, y, y)
    below = build.apply("add", _product(build, beside, beside), square)
    ratio = build.apply("divide", _product(build, build.const(4.0), x), below)
    real = _product(build, build.const(0.25), build.apply("log1p", ratio))
    across = _minus(build, _product(build, beside, build.apply("add", one, x)), square)
    angle = build.apply("arctan2", _product(build, build.const(-2.0), y), across)
    return _product(build, sign, real), _product(build, _product(build, build.const(-0.5), sign), angle)


def _arctan(build: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    real, imag = _arctanh(build, build.apply("negative", y), x)
    return imag, build.apply("negative", real)


_FORMULAS: dict[str, Callable[..., tuple[Value, Value]]] = {
    "exp": _exp,
    "log": _log,
    "log10": _log10,
    "sqrt": _sqrt,
    "square": _square,
    "conjugate": _conjugate,
    "reciprocal": _reciprocal,
    "tan": _tan,
    "tanh": _tanh,
    "power": _power,
    "arcsin": _arcsin,
    "arccos": _arccos,
    "arctan": _arctan,
    "arcsinh": _arcsinh,
    "arccosh": _arccosh,
    "arctanh": _arctanh,
    "sin": _of_both(("sin", "cosh"), ("cos", "sinh"), negated=False),
    "cos": _of_both(("cos", "cosh"), ("sin", "sinh"), negated=True),
    "sinh": _of_both(("sinh", "cos"), ("cosh", "sin"), negated=False),
    "cosh": _of_both(("cosh", "cos"), ("sinh", "sin"), negated=False),
}
"""By the primitive: its real and imaginary part, from those of its argument."""
