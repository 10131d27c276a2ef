"""The two tapes of the benchmark give correct gradients of plain functions."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from srcdiff.tape import compiled, eager, loops
from srcdiff.tape.operations import source
from tests.numerical import clone, gradient, numbers_in
from tests.programs import PROGRAMS, Program

TAPES = pytest.mark.parametrize("tape", [eager, compiled], ids=["eager", "compiled"])


def assert_gradient(tape: Any, function: Any, arguments: tuple[Any, ...], wrt: tuple[int, ...]) -> None:
    """Check value and gradient against the function and its differences, in two calls."""
    differentiated = tape.value_and_grad(function, wrt)
    expected = gradient(function, arguments, wrt)
    for _ in range(2):
        given = clone(arguments)
        value, bars = differentiated(*given)
        assert value == pytest.approx(float(function(*clone(arguments))), rel=1e-12, nan_ok=True)
        got = [number for bar in bars for number in numbers_in(bar)]
        assert len(expected) == len(got)
        for one, bar in zip(expected, got, strict=True):
            if one.resolved():
                assert abs(bar - one.value) <= one.tolerance + 1e-9 * abs(bar)
        unchanged = zip(numbers_of(given), numbers_of(arguments), strict=True)
        assert all(a == b or a != a for a, b in unchanged), "the call changed its arguments"


def numbers_of(arguments: tuple[Any, ...]) -> list[float]:
    return [n for a in arguments if isinstance(a, np.ndarray | list | float) for n in numbers_in(a)]


@TAPES
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.wrt], ids=lambda program: program.name)
def test_tape_differentiates_the_corpus_of_srcdiff_or_refuses(tape: Any, program: Program) -> None:
    differentiated = tape.value_and_grad(program.function, program.wrt)
    precision = 1e-3 if program.single_precision else 1e-9
    for point, arguments in enumerate(program.at):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy's, at the borders of domains
                value, bars = differentiated(*clone(arguments))
        except (TypeError, AttributeError) as error:
            pytest.skip(f"the tape refuses: {error}")
        assert value == pytest.approx(float(program.function(*clone(arguments))), rel=precision, nan_ok=True)
        got = [number for bar in bars for number in numbers_in(bar)]
        exact = program.exact[point] if point < len(program.exact) else None
        if exact is not None:
            assert [n for e in exact for n in numbers_in(e)] == pytest.approx(got, rel=1e-6, abs=1e-9, nan_ok=True)
            continue
        for one, bar in zip(gradient(program.function, arguments, program.wrt), got, strict=True):
            if one.resolved():
                assert abs(bar - one.value) <= one.tolerance + precision * max(1.0, abs(bar))


# -- whole arrays


RANDOM = np.random.default_rng(20)
VECTOR = RANDOM.uniform(0.3, 0.9, 4)
MATRIX = RANDOM.uniform(0.3, 0.9, (3, 4))
SQUARE = RANDOM.uniform(-0.3, 0.3, (4, 4)) + np.eye(4)
CUBE = RANDOM.uniform(0.3, 0.9, (2, 3, 4))
WEIGHTS = np.arange(1.0, 13.0).reshape(3, 4)


def weighted(a):
    """A number from an array, with a different adjoint for each element."""
    return np.sum(a * np.reshape(np.cos(np.arange(1.0, 1.0 + np.size(a))), np.shape(a)))


WHOLE = {
    "arithmetic": (lambda a, x: weighted((a * x + 2.0) / (a - 3.0 * x) - a**2 + x**a - (-a)), (MATRIX, 0.7)),
    "broadcast": (lambda a, v: weighted(a * v + v / a[:, :1]), (MATRIX, VECTOR)),
    "broadcast more dimensions": (lambda c, m: weighted(c * m - m), (CUBE, MATRIX)),
    "elementwise": (
        lambda v: weighted(np.exp(v) + np.log(v) * np.sqrt(v) + np.tanh(v) - np.sin(v) * np.arctan(v) + np.log1p(v)),
        (VECTOR,),
    ),
    "absolute and sign": (lambda v: weighted(np.abs(v - 0.5) + np.sign(v - 0.5) * v), (VECTOR,)),
    "maximum": (lambda v: weighted(np.maximum(v, 0.5) * np.minimum(v, 0.6)), (VECTOR,)),
    "matrix times vector": (lambda a, v: weighted(a @ v), (MATRIX, VECTOR)),
    "vector times matrix": (lambda a, v: weighted(v @ a.T), (MATRIX, VECTOR)),
    "vector times vector": (lambda v: v @ (v * v), (VECTOR,)),
    "matrix times matrix": (lambda a, b: weighted(a @ b @ b.T), (MATRIX, SQUARE)),
    "dot and outer": (lambda a, v: weighted(np.outer(np.dot(a, v), v)), (MATRIX, VECTOR)),
    "data on the left": (lambda v: weighted(WEIGHTS @ v + WEIGHTS[0, 0] * v[0]), (VECTOR,)),
    "sums": (lambda a: weighted(np.sum(a * a, axis=0)) + weighted(a.sum(axis=1)) * np.sum(a), (MATRIX,)),
    "means": (lambda a: weighted(np.mean(a * a, axis=1)) + a.mean() ** 2, (MATRIX,)),
    "largest and smallest": (lambda a: weighted(np.max(a * a, axis=1)) + np.max(a) * np.min(a, axis=0)[1], (MATRIX,)),
    "sum of several axes": (lambda c: weighted(np.sum(c * c, axis=(0, 2))), (CUBE,)),
    "where": (lambda a: weighted(np.where(a > 0.6, a * a, 1.0 / a)), (MATRIX,)),
    "where with numbers": (lambda a, x: weighted(np.where(a > 0.6, x, a)), (MATRIX, 0.3)),
    "slices": (lambda v: weighted(v[1:] * v[:-1] - v[::-1][1:]), (VECTOR,)),
    "rows and columns": (lambda a: weighted(a[1] * a[:, 2:].T[0, 0] + a[-1, ::-1]), (MATRIX,)),
    "index arrays": (lambda v: weighted(v[np.array([0, 2, 2, 1])] * v), (VECTOR,)),
    "masks": (lambda v: np.sum(v[v > 0.5] ** 2), (VECTOR,)),
    "shapes": (lambda a: weighted(a.reshape(2, 6) ** 2) + weighted(a.T.ravel() * a.ravel()), (MATRIX,)),
    "transposed and reshaped": (lambda c: weighted(c.transpose(2, 0, 1).reshape(4, 6) ** 2), (CUBE,)),
    "joined": (lambda v, x: weighted(np.concatenate((v * v, np.array([x, 2.0 * x]), v[:1]))), (VECTOR, 0.3)),
    "stacked": (lambda v: weighted(np.stack((v, v * v))), (VECTOR,)),
    "array of numbers": (lambda x, y: weighted(np.array([[x, x * y], [1.0, y]]) ** 2), (0.3, 0.8)),
    "full": (lambda x: weighted(np.full(3, x) * np.arange(1.0, 4.0)), (0.3,)),
    "diagonal": (lambda a, v: weighted(np.diag(a)) + weighted(np.diag(v) @ a), (SQUARE, VECTOR)),
    "number out of an array": (lambda a: np.exp(a[1, 2]) * np.sum(a), (MATRIX,)),
    "softmax": (
        lambda a: weighted(np.exp(a - np.max(a, axis=1)[:, None]) / np.sum(np.exp(a), axis=1)[:, None]),
        (MATRIX,),
    ),
}

ONLY_EAGER = {
    "product": (lambda a: weighted(np.prod(a, axis=1)) + np.prod(a - 0.5), (MATRIX,)),
    "product with a zero": (lambda v: np.prod(v * np.array([1.0, 0.0, 1.0, 1.0])) + np.prod(v), (VECTOR,)),
    "cumulative sum": (lambda a: weighted(np.cumsum(a * a, axis=1)) + weighted(np.cumsum(a)), (MATRIX,)),
    "variance": (lambda a: weighted(np.var(a, axis=0)) + np.std(a), (MATRIX,)),
    "clipped": (lambda a: weighted(np.clip(a, 0.4, 0.8) * a), (MATRIX,)),
    "triangles": (lambda a: weighted(np.tril(a) @ np.triu(a)), (SQUARE,)),
    "inverse": (lambda a: weighted(np.linalg.inv(a)), (SQUARE,)),
    "solve": (lambda a, v: weighted(np.linalg.solve(a, v)), (SQUARE, VECTOR)),
    "solve many": (lambda a: weighted(np.linalg.solve(a, a @ a + 1.0)), (SQUARE,)),
    "determinant": (lambda a: np.linalg.det(a) + np.trace(a @ a), (SQUARE,)),
    "tensor product": (lambda c, b: weighted(np.matmul(c, b)), (CUBE, SQUARE)),
}


@TAPES
@pytest.mark.parametrize("name", WHOLE)
def test_tape_differentiates_whole_arrays(tape, name):
    function, arguments = WHOLE[name]
    assert_gradient(tape, function, arguments, tuple(range(len(arguments))))


@pytest.mark.parametrize("name", ONLY_EAGER)
def test_eager_tape_differentiates_functions_of_whole_arrays(name):
    function, arguments = ONLY_EAGER[name]
    assert_gradient(eager, function, arguments, tuple(range(len(arguments))))


# -- memory


def overwritten_after_use(v):
    a = v * v
    b = a * v  # the reverse sweep reads `a` and `v`, which have been overwritten by then
    a[1:] = np.sin(a[:-1])
    v[0] = 2.0
    return weighted(a * b) + weighted(v * b)


def added_in_place(v, x):
    a = v * x
    a += v * v
    a[1:3] *= x
    a[::2] -= a[1::2]
    a[0] += a[3] * x
    a /= 1.0 + x
    return weighted(a)


def through_a_view(m):
    row = m[1]
    row[2] = row[0] * row[1]
    m[1, 0] = 3.0 * row[2]
    column = m.T[0]
    column[:] = column * m[:, 3]
    return weighted(m) + weighted(row * row)


def into_an_empty_array(v, n):
    out = np.empty(n)
    work = np.zeros((n, 2))
    for i in range(n):
        work[i, 0] = v[i % 4] * (i + 1.0)
        work[i, 1] = work[i, 0] ** 2 - work[i - 1, 1]
        out[i] = work[i].sum()
    return weighted(out)


def into_a_given_array(v, work):
    for i in range(len(v)):
        work[i] = v[i] * work[i - 1]
    return weighted(work)


def swapped(v, steps):
    u = v.copy()
    w = np.empty_like(u)
    for _ in range(steps):
        w[1:-1] = 0.5 * u[1:-1] * (u[2:] + u[:-2])
        w[0] = u[0]
        w[-1] = u[-1]
        u, w = w, u
    return weighted(u)


def assigned_onto_itself(v):
    v[1:] = v[:-1] * v[1:]
    v[:2] = v[2:]
    v[...] = v[::-1]
    return weighted(v)


def with_integers_that_change(v, n):
    counts = np.arange(4)
    a = v * counts
    picked = v[counts]
    counts[:] = n
    return weighted(a * counts) + weighted(picked * picked)


def without_dimensions(v):
    total = np.zeros(())
    total[()] = v[0] * v[1]
    return weighted(v * total + total / v)


IN_PLACE = [
    (with_integers_that_change, (VECTOR, 3), (0,)),
    (without_dimensions, (VECTOR,), (0,)),
    (overwritten_after_use, (VECTOR,), (0,)),
    (added_in_place, (VECTOR, 0.7), (0, 1)),
    (through_a_view, (MATRIX,), (0,)),
    (into_an_empty_array, (VECTOR, 6), (0,)),
    (into_a_given_array, (VECTOR, np.linspace(0.5, 1.5, 4)), (0, 1)),
    (into_a_given_array, (VECTOR, np.linspace(0.5, 1.5, 4)), (0,)),
    (swapped, (VECTOR, 3), (0,)),
    (assigned_onto_itself, (VECTOR,), (0,)),
]


@TAPES
@pytest.mark.parametrize(("function", "arguments", "wrt"), IN_PLACE, ids=[case[0].__name__ for case in IN_PLACE])
def test_tape_differentiates_writes_into_arrays(tape, function, arguments, wrt):
    assert_gradient(tape, function, arguments, wrt)


def test_eager_tape_restores_overwritten_elements_after_an_error():
    def fails(v):
        v[0] = v[1] * 2.0
        v[1:] = v[:-1]
        raise ValueError("half way")

    given = VECTOR.copy()
    with pytest.raises(ValueError, match="half way"):
        eager.value_and_grad(fails, (0,))(given)
    assert np.array_equal(VECTOR, given)


@TAPES
def test_tape_says_what_it_cannot_do(tape):
    with pytest.raises(TypeError):
        tape.value_and_grad(lambda a: np.sum(np.fft.fft(a)), (0,))(VECTOR)


@TAPES
def test_tape_gives_zero_for_a_constant(tape):
    assert (2.0, (0.0,)) == tape.value_and_grad(lambda x: 2.0, (0,))(3.0)


@TAPES
def test_tape_follows_functions_that_are_called_by_name(tape):
    from math import exp

    def inner(x):
        return exp(x) * x

    assert_gradient(tape, lambda x: inner(x) + inner(2.0 * x), (0.3,), (0,))


# -- the record of the compiled tape


def test_compiled_tape_replays_while_branches_stay_and_records_when_they_change():
    def function(x):
        total = 0.0
        while x < 10.0:
            x = x * x
            total += x
        return total

    tape = compiled.value_and_grad(function, (0,))
    for point, recordings in ((2.0, 1), (2.1, 1), (1.5, 2), (1.51, 2), (20.0, 3), (2.0, 4)):
        expected, (expected_bar,) = eager.value_and_grad(function, (0,))(point)
        value, (bar,) = tape(point)
        assert (expected, recordings) == (value, tape.recordings)
        assert bar == pytest.approx(expected_bar, rel=1e-14)


DECISIONS = [
    lambda x: x > 1.0,
    lambda x: x >= 1.0,
    lambda x: x < 1.0,
    lambda x: x <= 1.0,
    lambda x: x == 2.0,
    lambda x: x != 2.0,
    lambda x: int(x) == 2,
    lambda x: round(x) == 2,
    lambda x: math.floor(x) == 2,
    lambda x: bool(x - 2.0),
]


@pytest.mark.parametrize("outcome", DECISIONS)
def test_compiled_tape_notices_every_kind_of_decision(outcome):
    tape = compiled.value_and_grad(lambda x: 3.0 * x if outcome(x) else x * x, (0,))
    for point in (2.0, 0.5, 2.0):
        assert (3.0 if outcome(point) else 2.0 * point) == tape(point)[1][0]
    assert tape.recordings == 3


def test_compiled_tape_records_again_when_data_change():
    def function(w, x, n):
        total = 0.0
        for i in range(n):
            total += w * x[i]
        return total

    tape = compiled.value_and_grad(function, (0,))
    data = np.array([1.0, 2.0, 3.0])
    assert [(3.0,), (3.0,)] == [tape(1.0, data, 2)[1], tape(5.0, data, 2)[1]]
    assert tape.recordings == 1
    assert tape(1.0, data, 3)[1] == (6.0,)
    data[0] = 10.0
    assert tape(1.0, data, 3)[1] == (15.0,)
    assert tape(1.0, data[:2], 2)[1] == (12.0,)
    assert tape.recordings == 4


def test_compiled_tape_knows_the_memory_of_its_record():
    tape = compiled.value_and_grad(lambda v: np.sum(v * v), (0,))
    assert tape.nbytes == 0
    tape(np.ones(1000))
    # 1999 operations of 1 + 4 + 4 bytes, and a value and an adjoint of 8 bytes for each of them and of 1000 inputs
    assert tape.nbytes == pytest.approx(1999 * 25 + 1000 * 16, rel=0.02)


def test_loops_are_written_from_the_table():
    assert source() == Path(loops.__file__).read_text(encoding="utf-8")
