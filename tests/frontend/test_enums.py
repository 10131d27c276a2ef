"""Members of enums: comparisons, lookups, names and values, and arithmetic with members that are numbers."""

from __future__ import annotations

import enum
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError
from srcdiff.backends.numba import loading
from srcdiff.diagnostics import NotExportedError

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


class Kind(enum.Enum):
    SQUARE = 2
    CUBE = 3


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Options(enum.Flag):
    A = 1
    B = 2


class Bits(enum.IntFlag):
    A = 1
    B = 2


class Text(enum.StrEnum):
    X = "x"
    Y = "y"


class Half(float, enum.Enum):
    HALF = 0.5
    QUARTER = 0.25


class Pair(enum.Enum):
    P = (2.0, 3.0)
    Q = (5.0, 7.0)


class OfTuples(tuple, enum.Enum):
    P = (2.0, 3.0)
    Q = (5.0, 7.0)


class Activation(enum.Enum):
    TANH = np.tanh
    EXP = np.exp


class Weights(enum.Enum):
    W = np.array([1.0, 2.0])


class OwnProduct(enum.IntEnum):
    A = 2

    def __mul__(self, other):
        return 100.0 * other

    __rmul__ = __mul__


class OwnValue(enum.Enum):
    A = 2

    @property
    def value(self):
        return 50.0

    def scale(self):
        return 3.0


@dataclass
class Model:
    x: float
    kind: Kind


Named = namedtuple("Named", "x kind")
FACTORS = {Kind.SQUARE: 2.0, Kind.CUBE: 3.0}
LEVELS = {Level.LOW: 2.0}
CHOSEN = Kind.SQUARE
PARTS = (Kind.SQUARE, Half.HALF)


def by_identity(x, kind):
    return x * x if kind is Kind.SQUARE else x**3


def by_equality(x, kind):
    if kind != Kind.SQUARE:
        return x**3
    return x * x if kind == Kind.SQUARE else x


def by_value(x, kind):
    return x**kind.value


def by_name(x, kind):
    return x * x if kind.name == "SQUARE" else x**3


def in_table(x, kind):
    powers = {Kind.SQUARE: 2, Kind.CUBE: 3}
    return x ** powers[kind] if kind in powers else x


def among(x, kind):
    return x * x if kind in (Kind.SQUARE,) else x**3


def from_value(x, kind):
    return x * x if Kind(2) is kind and Kind["SQUARE"] is kind else x**3


def from_default(x, kind=Kind.SQUARE):
    return by_identity(x, kind)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "function", [by_identity, by_equality, by_value, by_name, in_table, among, from_value, from_default]
)
def test_each_member_has_its_own_program(function, backend):
    gradient = srcdiff.grad(function, backend=backend)
    for _ in range(2):
        assert gradient(3.0, Kind.SQUARE) == 6.0
        assert gradient(3.0, Kind.CUBE) == 27.0


def arithmetic(x, level):
    return x**level + level * x + x * Level.HIGH


def compared(x, level):
    return x * x if level > Level.LOW else x


def same(x, level):
    return x * x if level is Level.HIGH else x


def ranged(x, level):
    total = 0.0
    for _ in range(level):
        total += x
    return total


def raised_in_loop(x, level):
    for _ in range(3):
        level = level + 1
    return x * level


def chosen(x, level):
    return x * (Level.HIGH if x > 0.0 else level)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [arithmetic, compared, same, ranged, raised_in_loop, chosen])
@pytest.mark.parametrize("level", list(Level))
def test_members_that_are_integers_compute_as_such(function, level, backend):
    expected = (function(2.0 + 1e-6, level) - function(2.0 - 1e-6, level)) / 2e-6
    assert srcdiff.grad(function, backend=backend)(2.0, level) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("function", "member", "expected"),
    [
        (lambda x, k: x * x if k & Options.A else x, Options.A | Options.B, 6.0),
        (lambda x, k: x * x if k & Options.A else x, Options.B, 1.0),
        (lambda x, k: x * x if Options.A in k else x, Options.A, 6.0),
        (lambda x, k: x * x if ~k == Options.B else x, Options.A, 6.0),
        (lambda x, k: x * (k & Bits.B), Bits.A | Bits.B, 2.0),
        (lambda x, k: x * (k | 4), Bits.A, 5.0),
        (lambda x, k: x * x if k == "x" else x, Text.X, 6.0),
        (lambda x, k: x * k + Half.QUARTER * x, Half.HALF, 0.75),
        (lambda x, k: x * k.value[0] + k.value[1], Pair.Q, 5.0),
        (lambda x, k: x * k.value[0] + k.value[1], OfTuples.Q, 5.0),
        (lambda x, k: k.value(x), Activation.EXP, np.exp(3.0)),
        (lambda x, k: x * np.sum(k.value), Weights.W, 3.0),
        (lambda x, k: x * sum(m.value for m in Kind), Kind.CUBE, 5.0),
        (lambda x, k: x * x if isinstance(k, Kind) else x, Level.LOW, 1.0),
        (lambda x, k: x * len(f"{k} {k!r} {k.name}"), Kind.CUBE, 29.0),
        (lambda x, k: x if (Kind.CUBE if x > 0.0 else Kind.SQUARE) is k else 2.0 * x, Kind.CUBE, 1.0),
    ],
)
def test_members_mean_what_they_mean_in_python(function, member, expected):
    difference = (function(3.0 + 1e-6, member) - function(3.0 - 1e-6, member)) / 2e-6
    assert difference == pytest.approx(expected, rel=1e-6)
    assert srcdiff.grad(function, backend="python")(3.0, member) == pytest.approx(expected, rel=1e-12)


def test_text_and_the_member_that_equals_it_have_programs_of_their_own():
    gradient = srcdiff.grad(lambda x, k: x * x if k is Text.X else x, backend="python")
    assert [gradient(3.0, k) for k in ("x", Text.X, "x", Text.Y)] == [1.0, 6.0, 1.0, 1.0]


def test_members_that_are_tuples_have_programs_of_their_own_where_sizes_are_known():
    gradient = srcdiff.grad(lambda x, k: np.sum(x * np.ones(3) * k.value[0]), backend="python")
    assert [gradient(np.ones(1), k)[0] for k in (OfTuples.P, OfTuples.Q)] == [6.0, 15.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_members_in_structures(backend):
    def of_tuple(pair, a):
        a[0] = pair[0] * a[0]
        return a[0] * a[0] if pair[1] is Kind.SQUARE else a[0]

    def of_object(model):
        return model.x**2 if model.kind is Kind.SQUARE else model.x

    gradient = srcdiff.grad(of_tuple, backend=backend)
    assert gradient((3.0, Kind.SQUARE), np.ones(1)) == (6.0, None)
    assert gradient((3.0, Kind.CUBE), np.ones(1)) == (1.0, None)
    gradient = srcdiff.grad(of_object, backend=backend)
    assert gradient(Model(3.0, Kind.SQUARE)) == Model(6.0, None)
    assert gradient(Model(3.0, Kind.CUBE)) == Model(1.0, None)
    assert gradient(Named(3.0, Kind.SQUARE)) == Named(6.0, None)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dictionaries_with_members_for_keys(backend):
    gradient = srcdiff.grad(lambda d: d[Kind.SQUARE] ** 2 * d[Kind.CUBE], backend=backend)
    assert gradient({Kind.SQUARE: 3.0, Kind.CUBE: 2.0}) == {Kind.SQUARE: 12.0, Kind.CUBE: 9.0}


def test_key_and_the_integer_that_equals_it_are_told_apart():
    def f(d):
        total = 0.0
        for key in d:
            total += d[key] * (10.0 if key is Level.LOW else 1.0)
        return total

    gradient = srcdiff.grad(f, backend="python")
    assert [gradient({key: 2.0}) for key in (Level.LOW, 1, Level.LOW)] == [{1: 10.0}, {1: 1.0}, {1: 10.0}]


@pytest.mark.parametrize("backend", BACKENDS)
def test_outside_members_have_their_current_value(backend, monkeypatch):
    def outside(x):
        factor = FACTORS[CHOSEN] * PARTS[1] * (2.0 if PARTS[0] is Kind.SQUARE else 1.0)
        for level in LEVELS:
            factor *= 10.0 if level is Level.LOW else 1.0
        return x * factor

    gradient = srcdiff.grad(outside, backend=backend)
    here = globals()
    assert gradient(1.0) == outside(1.0) == 20.0
    for name, value in [
        ("CHOSEN", Kind.CUBE),
        ("FACTORS", {Kind.CUBE: 7.0}),
        ("PARTS", (Kind.CUBE, Half.HALF)),
        ("PARTS", (Kind.CUBE, Half.QUARTER)),
        ("LEVELS", {1: 2.0}),
    ]:
        monkeypatch.setitem(here, name, value)
        assert gradient(1.0) == outside(1.0)


def test_defaults_have_their_current_value(monkeypatch):
    gradient = srcdiff.grad(from_default, backend="python")
    assert gradient(3.0) == 6.0
    monkeypatch.setattr(from_default, "__defaults__", (Kind.CUBE,))
    assert gradient(3.0) == 27.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_members_and_functions_are_returned(backend):
    def f(x, kind):
        return x * x, (kind, np.sin, {Kind.CUBE: x})

    result = srcdiff.value_and_grad(f, has_aux=True, backend=backend)(3.0, Kind.SQUARE)
    assert result == ((9.0, (Kind.SQUARE, np.sin, {Kind.CUBE: 3.0})), 6.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_modes_take_members(backend):
    assert srcdiff.vjp(by_identity, 3.0, Kind.CUBE, wrt=0, backend=backend)[1](1.0) == 27.0
    assert srcdiff.jvp(by_identity, (3.0, Kind.CUBE), (1.0, None), backend=backend) == (27.0, 27.0)
    assert srcdiff.hvp(by_identity, backend=backend)(3.0, Kind.CUBE, 1.0) == 18.0
    batched = srcdiff.batched(srcdiff.grad(by_identity, backend=backend), over="x")
    for kind, expected in ((Kind.CUBE, [3.0, 12.0]), (Kind.SQUARE, [2.0, 4.0])):
        assert batched(np.array([1.0, 2.0]), kind).tolist() == expected


def test_derivative_by_a_member_is_by_its_number():
    assert srcdiff.grad(lambda x: x**2, backend="python")(Level.HIGH) == 6.0


@pytest.mark.parametrize(
    ("function", "member", "message"),
    [
        (lambda x, k: x * k, Kind.CUBE, "`Kind.CUBE` is used where a number is needed"),
        (lambda x, k: x * k, OwnProduct.A, "`OwnProduct` defines its own operators"),
        (lambda x, k: x if k < Kind.CUBE else 2.0 * x, Kind.CUBE, "not supported between instances of 'Kind'"),
        (lambda x, k: x * -k, Kind.CUBE, "bad operand type for unary -: 'Kind'"),
        (lambda x, k: x if 1 in k else 2.0 * x, Options.A, "unsupported operand type"),
        (lambda x, k: x if Kind["OTHER"] is k else 2.0 * x, Kind.CUBE, "`Kind` has no member 'OTHER'"),
        (lambda x, k: x if Kind(int(x)) is k else 2.0 * x, Kind.CUBE, "the member of `Kind` must be known"),
    ],
)
def test_what_is_not_read_is_refused(function, member, message):
    with pytest.raises(DifferentiationError, match=message):
        srcdiff.grad(function, backend="python")(3.0, member)


def test_members_have_the_properties_and_methods_of_their_class():
    assert srcdiff.grad(lambda x, k: x * k.value * k.scale(), backend="python")(3.0, OwnValue.A) == 150.0


def test_value_that_no_member_has_raises_as_in_python():
    with pytest.raises(ValueError, match="7 is not a valid Kind"):
        srcdiff.grad(lambda x: x if Kind(7) is Kind.CUBE else 2.0 * x, backend="python")(3.0)


def test_exported_function_has_the_member_compiled_in():
    text = srcdiff.export(srcdiff.grad(by_identity), None, 3.0, Kind.CUBE, plain=True)
    assert "kind = Kind.CUBE" in text
    with pytest.raises(NotExportedError, match="keys are members of an enum"):
        srcdiff.export(srcdiff.grad(lambda d: d[Kind.CUBE] ** 2), None, {Kind.CUBE: 3.0})


@pytest.mark.numba
def test_members_are_known_in_the_cache(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("SRCDIFF_CACHE_DIR", str(cache))
    monkeypatch.setattr(loading, "_loaded", {})
    for kind in Kind:
        srcdiff.grad(by_identity)(3.0, kind)
    assert len(list(cache.iterdir())) == 4
    for kind, expected in ((Kind.SQUARE, 6.0), (Kind.CUBE, 27.0)):
        assert srcdiff.grad(by_identity)(3.0, kind) == expected
    assert len(list(cache.iterdir())) == 4


class Degrees(float):
    pass


class Strange(float):
    def __mul__(self, other):
        return 100.0 * other


class Count(int):
    pass


@pytest.mark.parametrize("backend", BACKENDS)
def test_other_classes_of_numbers_are_numbers_unless_they_compute_in_another_way(backend):
    gradient = srcdiff.grad(lambda x, y: x * y, backend=backend)
    assert [gradient(2.0, y) for y in (Degrees(3.0), Degrees(4.0), Count(5), Count(6), Count(2**70))] == [
        3.0,
        4.0,
        5.0,
        6.0,
        2.0**70,
    ]
    assert len(gradient.specialisations) == 3
    with pytest.raises(DifferentiationError, match="`y` is a `Strange`, which defines its own operators"):
        gradient(2.0, Strange(3.0))
