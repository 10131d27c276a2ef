"""Values of small programs in Python, Numba and srcdiff. If the first two differ, srcdiff follows one of them.

`docs/reference/language.md` tells users of the rows that do not agree.
"""

import importlib.util
import math
import sys
import types
from pathlib import Path

import numba
import numpy as np
import pytest

import srcdiff

NAN, INF = math.nan, math.inf
ALL, PYTHON, NUMBA = "all", "python", "numba"
ROUNDING = 1e-12
"""The allowed relative difference of compiled code: sums are reordered, and a power may be several products."""
SINGLE = 1e-5
"""The same for sums in float32."""

NUMBERS = """
all     -7 // 3, -7 % 3, 7 % -3, n // -3, n % -3, divmod(-n, 3)[0], n / 3, n // 2.0, n % 2.5
all     (y - 10.0) % 3.0, 7.5 % -y, (y - 10.0) // 2.0, -1e-20 % y, 1.0 // 0.1, math.copysign(1.0, -3.0 % y)
all     round(y), round(-y), round(y, 1), np.round(y), np.rint(3.5), int(-y), math.floor(-y), math.trunc(-y)
all     n ** 2, y ** n, y ** -2, n ** 0.5, 0.0 ** 0, pow(n, 3), 2 ** n, (-1) ** n
all     (y > 1.0) + (y > 0.5), (y > 1.0) * 2.5, (y > 1.0) - (y > 3.0), -(y > 1.0), (n > 3) / 2, abs(y > 1.0)
all     ~n, 1 << n, -n >> 1, n ^ 3, n & 6, n | 8
all     max(n, 2.5), min(n, 3, 5), max(y, nan), max(nan, y), min(nan, y), abs(-n) / 2, sum([n > 3, n > 10])
all     1.0 if nan != nan else 0.0, 1.0 if 0.0 < y < 3.0 else 2.0, y and 3.0, 0.0 * y or 3.0
all     np.sign(nan), np.maximum(nan, y), np.copysign(1.0, -0.0), math.atan2(-0.0, -1.0), math.hypot(1e200, 1e200)
all     np.sqrt(-y), np.log(0.0 * y), np.hypot(inf, nan), math.gcd(n, 21), math.erf(y), math.expm1(1e-10 * y)
numba   big + 1, big * n, abs(-big - 1), (big * n) % 7, 1 << (n + 57)
numba   math.sqrt(-y), math.log(0.0 * y), math.exp(1000.0 * y), math.acos(y), math.pow(0.0 * y, -1.0), (0.0 * y) ** -1.0
numba   round(2.675, 2), 1.0 if big == 9223372036854775808.0 else 0.0, int(1e30 * y), np.int32(big)
python  2 ** -n, n ** -2, ~(y > 1.0)
"""

ARRAYS = """
all     np.sum(a > 1.0), np.mean(i), np.prod(i), (i // 2)[0], (i % 2)[0], np.max(b), np.argmax(b), a[-1]
all     np.sum(a[-10:100]), (s + s)[0], f[0] ** 2, np.sum(f), np.mean(f)
numba   s[0] + s[1], s[0] * 2, f[0] * 0.1, f[0] + 1, math.sin(f[0]), 1.0 if f[0] == 0.1 else 0.0
python  (s * 2)[0], (f * 0.1)[0], np.sum(f == 0.1)
"""
# Numba computes the power of integers in integers; with the bytecode of Python 3.11 it takes the result for a float.
ARRAYS += f"{ALL if sys.version_info >= (3, 12) else PYTHON} np.power(n, 35) % 1000"

GIVEN = {
    "n": 7,
    "y": 2.5,
    "big": 2**63 - 1,
    "nan": NAN,
    "inf": INF,
    "a": np.array([0.5, 2.0, 3.5]),
    "b": np.array([1.0, NAN, 2.0]),
    "i": np.array([-3, 2, 5]),
    "s": np.full(2, 2**31 - 1, np.int32),
    "f": np.full(101, 0.1, np.float32),
}


def expressions(table: str) -> list[tuple[str, str]]:
    """The expressions of a table, each with the systems that agree on it."""
    found: list[tuple[str, str]] = []
    for line in table.strip().splitlines():
        who, _, text = line.partition(" ")
        depth, start = 0, 0
        for place, letter in enumerate(f"{text},"):
            depth += (letter in "([") - (letter in ")]")
            if letter == "," and depth == 0:
                found.append((who, text[start:place].strip()))
                start = place + 1
    return found


def value_by(function):
    """The value of an expression in Python, or the name of its exception."""
    with np.errstate(all="ignore"):
        try:
            return function()
        except (ArithmeticError, ValueError) as error:
            return type(error).__name__


def agree(first, second, tolerance: float) -> bool:
    if isinstance(first, str | complex) or isinstance(second, str | complex):
        return first == second
    if isinstance(first, int) and isinstance(second, int):
        return first == second
    return math.isclose(first, second, rel_tol=tolerance, abs_tol=0.0) or bool(np.isnan(first) and np.isnan(second))


def programs(rows: list[str], names: str, folder: Path) -> types.ModuleType:
    """A module with a function for each expression, and one, `rows`, for all of them, which compiles faster."""
    alone = "".join(f"def row{k}({names}):\n    return {text}\n\n" for k, text in enumerate(rows))
    lines = "".join(f"    row{k} = {text}\n" for k, text in enumerate(rows))
    results = [f"row{k}" for k in range(len(rows))]
    parts = [f"({', '.join(results[k : k + 20])},)" for k in range(0, len(rows), 20)]  # Numba's limit
    file = folder / "rows.py"
    together = f"def rows(x, {names}):\n{lines}    return x, ({', '.join(parts)},)\n"
    file.write_text(f"import math\nimport numpy as np\n\n{alone}{together}", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("rows", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flat(parts):
    return [v.item() if isinstance(v, np.generic) else v for part in parts for v in part]


@pytest.mark.numba
@pytest.mark.parametrize("table", [NUMBERS, ARRAYS], ids=["numbers", "arrays"])
def test_srcdiff_agrees_with_the_system_in_the_table(table: str, tmp_path: Path) -> None:
    rows, given = expressions(table), tuple(GIVEN.values())
    module = programs([text for _, text in rows], ", ".join(GIVEN), tmp_path)

    python = flat([[value_by(lambda k=k: getattr(module, f"row{k}")(*given))] for k in range(len(rows))])
    compiled = flat(numba.njit(module.rows)(1.5, *given)[1])
    (_, ours), gradient = srcdiff.value_and_grad(module.rows, has_aux=True)(1.5, *given)

    found = []
    for (_, text), by_python, by_numba, own in zip(rows, python, compiled, flat(ours), strict=True):
        tolerance = SINGLE if "(f)" in text else ROUNDING
        same = [agree(own, by_python, tolerance), agree(own, by_numba, tolerance)]
        found.append((ALL if all(same) else PYTHON if same[0] else NUMBA if same[1] else "nobody", text))
    assert rows == found
    assert gradient == 1.0


ZERO = [
    ("y / (y - y)", INF, "ZeroDivisionError"),
    ("(y - y) / (y - y)", NAN, "ZeroDivisionError"),
    ("y // (y - y)", INF, "ZeroDivisionError"),
    ("n // (n - n)", 0, "ZeroDivisionError"),
    ("n % (n - n)", 0, "ZeroDivisionError"),
]
"""Division by zero, which raises in Python, and by default in Numba."""


@pytest.mark.numba
def test_division_by_zero_is_that_of_numpy(tmp_path: Path) -> None:
    module = programs([text for text, _, _ in ZERO], "n, y", tmp_path)

    (_, (ours,)), _ = srcdiff.value_and_grad(module.rows, has_aux=True)(1.5, 7, 2.5)

    for k, (_, expected, raised) in enumerate(ZERO):
        assert value_by(lambda k=k: getattr(module, f"row{k}")(7, 2.5)) == raised
        assert agree(ours[k], expected, 0.0)
    assert value_by(lambda: numba.njit(module.row0)(7, 2.5)) == "ZeroDivisionError"
