"""The operations of the compiled tape, and the loops that replay them, written from the table into `loops.py`.

The loops are a file so that Numba can keep what it compiled from one process to the next. After a change here or in
`partials.py`, `python -m srcdiff.tape.operations` writes it again; a test compares it with the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from srcdiff.tape.partials import BINARY, UNARY

#: name: (value, partial derivative by `a`, partial derivative by `b`), all as formulas; None has no derivative.
#: An operation with a constant has it as `b`.
OPERATIONS: dict[str, tuple[str, str | None, str | None]] = {
    "add": ("a + b", "1.0", "1.0"),
    "add_constant": ("a + b", "1.0", None),
    "subtract": ("a - b", "1.0", "-1.0"),
    "subtract_constant": ("a - b", "1.0", None),
    "constant_subtract": ("b - a", "-1.0", None),
    "multiply": ("a * b", "b", "a"),
    "multiply_constant": ("a * b", "b", None),
    "divide": ("a / b", "1.0 / b", "-y / b"),
    "divide_constant": ("a / b", "1.0 / b", None),
    "constant_divide": ("b / a", "-y / a", None),
    "negative": ("-a", "-1.0", None),
    "absolute": ("abs(a)", "sign(a)", None),
    "square": ("a * a", "2.0 * a", None),
    "power_constant": ("power(a, b)", "b * power(a, b - 1.0)", None),
    "remainder": ("a % b", "1.0", "-(a // b)"),
    "floor_divide": ("a // b", None, None),
    "floor": ("np.floor(a)", None, None),
    "ceil": ("np.ceil(a)", None, None),
    "trunc": ("np.trunc(a)", None, None),
    "rint": ("np.rint(a)", None, None),
    "sign": ("sign(a)", None, None),
    **{name: (f"{name}(a)", by_a, None) for name, by_a in UNARY.items()},
    **{name: (f"{name}(a, b)", by_a, by_b) for name, (by_a, by_b) in BINARY.items()},
}

#: name: what must hold for the record to be valid, and what it is when it does not
GUARDS = {
    "less": "not a < b",
    "not_less": "a < b",
    "less_equal": "not a <= b",
    "not_less_equal": "a <= b",
    "equal": "a != b",
    "not_equal": "a == b",
}

CODES = {name: code for code, name in enumerate((*OPERATIONS, *GUARDS))}

_HELPERS = """
compiled = numba.njit(error_model="numpy", fastmath={"contract"}, cache=True)


@compiled
def power(a, b):
    return a**b


@compiled
def maximum(a, b):
    return a if a > b or a != a else b  # NaN wins, as in NumPy


@compiled
def minimum(a, b):
    return a if a < b or a != a else b


@compiled
def sign(a):
    return 1.0 if a > 0.0 else -1.0 if a < 0.0 else a


@compiled
def log2(a):
    return np.log2(a)


@compiled
def logaddexp(a, b):
    return max(a, b) + log1p(exp(-abs(a - b)))


@compiled
def log_or_zero(a):
    return log(a) if a > 0.0 else 0.0

"""


def source() -> str:
    """The text of `loops.py`."""
    return "\n".join([*_head(), *_forward(), "", "", *_backward()]) + "\n"


def _head() -> Iterator[str]:
    yield '"""The loops of the compiled tape: written by `operations.py`, not by hand."""'
    yield ""
    functions = sorted(name for name in (*UNARY, *BINARY) if hasattr(math, name) and name != "log2")
    yield "from math import ("
    yield from (f"    {name}," for name in functions)
    yield ")"
    yield ""
    yield "import numba"
    yield "import numpy as np"
    yield _HELPERS


def _forward() -> Iterator[str]:
    yield "@compiled"
    yield "def forward(codes, left, right, values, first):"
    yield '    """All operations in order; the number of the first comparison that comes out otherwise, or -1."""'
    yield "    out = values[first:]"
    yield "    for k in range(codes.shape[0]):"
    yield "        code = codes[k]"
    yield "        a = values[left[k]]"
    yield "        b = values[right[k]]"
    word = "if"
    for name, code in CODES.items():
        yield f"        {word} code == {code}:  # {name}"
        if name in OPERATIONS:
            yield f"            out[k] = {OPERATIONS[name][0]}"
        else:
            yield f"            if {GUARDS[name]}:"
            yield "                return k"
        word = "elif"
    yield "    return -1"


def _backward() -> Iterator[str]:
    yield "@compiled"
    yield "def backward(codes, left, right, values, adjoints, first):"
    yield '    """All operations backwards, each adding to the adjoints of its operands."""'
    yield "    out = values[first:]"
    yield "    bars = adjoints[first:]"
    yield "    for k in range(codes.shape[0] - 1, -1, -1):"
    yield "        bar = bars[k]"
    yield "        if bar == 0.0:"
    yield "            continue"
    yield "        bars[k] = 0.0  # as the next call needs it"
    yield "        code = codes[k]"
    yield "        a = values[left[k]]"
    yield "        b = values[right[k]]"
    yield "        y = out[k]"
    word = "if"
    for name, (_, *partials) in OPERATIONS.items():
        if any(partials):
            yield f"        {word} code == {CODES[name]}:  # {name}"
            for side, partial in zip(("left", "right"), partials, strict=True):
                if partial is not None:
                    product = {"1.0": "bar", "-1.0": "-bar"}.get(partial, f"bar * ({partial})")
                    yield f"            adjoints[{side}[k]] += {product}"
            word = "elif"


if __name__ == "__main__":
    Path(__file__).with_name("loops.py").write_text(source(), encoding="utf-8")
