"""Gradients with `out=` and with a workspace: the same numbers, in the requested memory."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcdiff
from srcdiff.driver import compiling
from tests.numerical import clone
from tests.programs import PROGRAMS, Program
from tests.subset import every

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


def assert_same(first: Any, second: Any) -> None:
    if isinstance(first, tuple | list):
        assert type(first) is type(second)
        assert len(first) == len(second)
        for a, b in zip(first, second, strict=True):
            assert_same(a, b)
    else:
        np.testing.assert_array_equal(first, second)


def assert_workspace_gives_the_same(program: Program, backend: str) -> None:
    gradient = srcdiff.value_and_grad(program.function, wrt=program.wrt, backend=backend, fastmath=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workspace = gradient.workspace(*program.at[0])
        for _ in range(2):
            for arguments in program.at:
                assert_same(gradient(*clone(arguments)), workspace(*clone(arguments)))


@pytest.mark.parametrize("program", every(3, [p for p in PROGRAMS if p.at]), ids=lambda p: p.name)
def test_workspace_equals_the_gradient(program):
    assert_workspace_gives_the_same(program, "python")


@pytest.mark.numba
@pytest.mark.parametrize("program", every(60, [p for p in PROGRAMS if p.at]), ids=lambda p: p.name)
def test_compiled_workspace_equals_the_gradient(program):
    assert_workspace_gives_the_same(program, "numba")


# -- a program that keeps arrays, a stack, and a copy of its argument -------------------------------------------------


def relaxed(x, k):
    for i in range(len(x)):
        x[i] = np.sin(x[i]) * k
        while x[i] > 0.5:
            x[i] = x[i] * np.cos(x[i])
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 2
    return total


POINT = np.linspace(0.1, 3.0, 7)


@pytest.mark.parametrize("backend", BACKENDS)
def test_workspace_uses_the_same_memory_again(backend):
    gradient = srcdiff.grad(relaxed, backend=backend)
    workspace = gradient.workspace("float64[:]", float)
    assert workspace.nbytes == 0
    first = workspace(POINT, 1.0)
    assert len(gradient.specialisations) == 1
    held = workspace.nbytes
    assert held > POINT.nbytes
    second = workspace(POINT, 0.7)
    assert np.shares_memory(first, second)
    assert workspace.nbytes == held
    np.testing.assert_allclose(srcdiff.grad(relaxed, backend="python")(POINT, 0.7), second, rtol=1e-14)  # fast math


@pytest.mark.parametrize("backend", BACKENDS)
def test_workspace_takes_arguments_of_any_size_and_type(backend):
    gradient = srcdiff.grad(relaxed, backend=backend)
    workspace = gradient.workspace(POINT, 1.0)
    for x in (POINT, POINT[:3], np.empty(0), POINT[::2], POINT.astype(np.float32), POINT[:1], POINT):
        np.testing.assert_allclose(gradient(x, k=0.9), workspace(x, k=0.9), rtol=1e-6)  # fast math


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradient_in_a_workspace_may_be_an_argument_of_the_next_call(backend):
    gradient = srcdiff.grad(relaxed, backend=backend, fastmath=False)
    workspace = gradient.workspace(POINT, 1.0)
    x = y = POINT
    for _ in range(3):
        x, y = gradient(x, 1.0), workspace(y, 1.0)
        assert_same(x, y)


def test_auxiliary_results_in_a_workspace_are_not_overwritten():
    def with_squares(x):
        squares = x * x
        return np.sum(squares * x), squares

    workspace = srcdiff.grad(with_squares, has_aux=True, backend="python").workspace(POINT)
    _, squares = workspace(POINT)
    workspace(2.0 * POINT)
    assert_same(POINT * POINT, squares)


# -- into given arrays ------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    a: Any
    b: Any


def of_pair(p, scale):
    return np.sum(np.sin(p.a)) * p.b * scale


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradient_is_written_into_the_given_array(backend):
    out = np.full(7, np.nan)
    gradient = srcdiff.grad(relaxed, backend=backend)
    assert gradient(POINT, 1.0, out=out) is out
    np.testing.assert_allclose(gradient(POINT, 1.0), out, rtol=1e-14)  # fast math


@pytest.mark.parametrize("backend", BACKENDS)
def test_out_follows_the_form_of_the_gradients(backend):
    both = srcdiff.value_and_grad(relaxed, (1, 0), backend=backend)
    out = np.empty(7)
    value, (k_bar, x_bar) = both(POINT, k=1.0, out=(None, out))
    assert x_bar is out
    np.testing.assert_allclose([value, k_bar], [both(POINT, 1.0)[0], both(POINT, 1.0)[1][0]], rtol=1e-14)

    found = srcdiff.grad(of_pair, backend=backend)(Pair(POINT, 2.0), 3.0, out=Pair(out, None))
    assert type(found) is Pair
    assert found.a is out
    np.testing.assert_allclose(6.0 * np.cos(POINT), out, rtol=1e-14)


@pytest.mark.parametrize("backend", BACKENDS)
def test_out_may_have_strides_and_share_memory_with_arguments(backend):
    gradient = srcdiff.grad(relaxed, backend=backend)
    expected = gradient(POINT, 1.0)
    wide = np.zeros((7, 2))
    gradient(POINT, 1.0, out=wide[:, 1])
    np.testing.assert_allclose(expected, wide[:, 1], rtol=1e-14)
    memory = np.concatenate([POINT, [0.0]])
    for out in (memory[:7], memory[1:]):
        memory[:7] = POINT
        assert gradient(memory[:7], 1.0, out=out) is out
        np.testing.assert_allclose(expected, out, rtol=1e-14)


READ_ONLY = np.empty(7)
READ_ONLY.flags.writeable = False
SHARED = np.empty(7)
FORMS = [
    (np.empty(6), ValueError, r"`out` for `x` has the shape \(6,\), but the gradient has \(7,\)"),
    (np.empty((7, 1)), ValueError, "shape"),
    (np.empty(7, np.float32), TypeError, "`out` for `x` has the dtype float32, but the gradient has float64"),
    (np.empty(7, ">f8"), TypeError, "dtype"),
    (READ_ONLY, ValueError, "read-only"),
    ([0.0] * 7, TypeError, "must be an array, not list"),
    ((np.empty(7),), TypeError, "must be an array, not tuple"),
]


@pytest.mark.parametrize(("out", "kind", "message"), FORMS)
def test_out_that_does_not_fit_is_refused(out, kind, message):
    with pytest.raises(kind, match=message):
        srcdiff.grad(relaxed, backend="python")(POINT, 1.0, out=out)


def test_tuples_in_out_that_do_not_fit_are_refused():
    both = srcdiff.grad(relaxed, (0, 1), backend="python")
    for out in (np.empty(7), (np.empty(7),)):
        with pytest.raises(ValueError, match="tuple of 2 arrays, for x, k"):
            both(POINT, 1.0, out=out)
    with pytest.raises(TypeError, match="`out` for `k` must be None: the gradient is a number"):
        both(POINT, 1.0, out=(None, np.empty(1)))
    of_product = srcdiff.grad(lambda a, b: np.sum(a * b), (0, 1), backend="python")
    with pytest.raises(ValueError, match="share memory"):
        of_product(POINT, POINT, out=(SHARED, SHARED))


def test_lists_have_gradients_beside_given_arrays():
    def weighted(numbers, x):
        total = np.sum(x * x)
        for number in numbers:
            total += number * x[0]
        return total

    gradient = srcdiff.grad(weighted, (0, 1), backend="python")
    for numbers in ([], [1.0, 2.0]):
        out = np.empty(7)
        found = gradient(numbers, POINT, out=(None, out))
        assert found[1] is out
        assert_same(gradient(numbers, POINT), found)
    with pytest.raises(TypeError, match="`out` for `numbers` must be None: the gradient is a list"):
        gradient([1.0], POINT, out=([0.0], None))


def test_function_itself_may_have_a_workspace():
    function = srcdiff.differentiable(relaxed, backend="python")
    expected, x, y = function(POINT.copy(), 1.0), POINT.copy(), POINT.copy()
    assert expected == function.workspace(x, 1.0)(y, 1.0)
    assert_same(POINT, x)
    assert not np.array_equal(POINT, y)


def test_out_belongs_to_the_function_if_it_has_such_an_argument():
    def scaled(x, out):
        return x * out

    assert 5.0 == srcdiff.grad(scaled, backend="python")(2.0, out=5.0)


# -------------------------------------------------------------------------------------------- sizes of one that stretch


def scaled(a, b):
    total = 0.0
    for _ in range(2):
        total += np.sum(np.sin(a) * b)
    return total


@pytest.fixture
def loaded(monkeypatch):
    """The programs that a backend loads, in order."""
    requests = []
    load = compiling.load
    monkeypatch.setattr(compiling, "load", lambda state, *rest: (requests.append(state.request), load(state, *rest))[1])
    return requests


def test_workspace_runs_the_program_that_the_gradient_runs(loaded):
    gradient = srcdiff.grad(scaled, backend="python")
    x, y = np.ones((3, 2)), np.ones((3, 2))
    assert_same(gradient(x, y), gradient.workspace(x, y)(x, y))
    gradient(x, y, out=np.empty((3, 2)))

    assert [(False, False), (False, True)] == [(r.exact, r.workspace) for r in loaded]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shapes", [((1, 3), (2, 3)), ((2, 1), (1, 3)), ((2, 3), (1, 1)), ((1,), (2, 3))])
def test_sizes_of_one_stretch_in_a_workspace(backend, shapes):
    gradient = srcdiff.grad(scaled, wrt=("a", "b"), backend=backend)
    a, b = (np.linspace(0.1, 1.0, int(np.prod(shape))).reshape(shape) for shape in shapes)
    expected = srcdiff.grad(scaled, wrt=("a", "b"), backend="python")(a, b)
    np.testing.assert_allclose(expected[0], srcdiff.jacobian(scaled, mode="forward", backend="python")(a, b))
    same = np.ones((2, 3))
    workspace = gradient.workspace(same, same)
    out = np.empty(shapes[0]), np.empty(shapes[1])
    for _ in range(2):
        for found in (workspace(a, b), gradient(a, b, out=out), gradient(a, b)):
            for x, y in zip(expected, found, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-14)
        np.testing.assert_allclose(workspace(same, same)[1], 2.0 * np.sin(same))
    assert gradient.report(a, b) is not None
    with pytest.raises(ValueError, match="broadcast"):
        workspace(np.ones((3, 3)), same)
    with pytest.raises(ValueError, match="broadcast"):
        gradient(np.ones((3, 3)), same, out=(np.empty((3, 3)), np.empty((2, 3))))


def test_a_program_that_would_raise_for_sizes_of_one_is_not_compiled(loaded):
    gradient = srcdiff.grad(scaled, backend="python")
    column, row, same = np.ones((2, 1)), np.ones((1, 3)), np.ones((2, 3))
    for _ in range(2):
        gradient(column, row)
    assert [True] == [r.exact for r in loaded]
    gradient(same, same)
    assert [True, False] == [r.exact for r in loaded]
    for _ in range(2):
        gradient(column, row)
        gradient(same, same)
        gradient(np.ones((1, 3)), np.ones((1, 3)))  # equal sizes are not broadcast

    assert [True, False] == [r.exact for r in loaded]


def test_sizes_that_are_one_only_when_it_runs_stretch_after_the_first_try(loaded):
    def summed(x, n):
        return np.sum(x * np.ones(n))

    gradient = srcdiff.grad(summed, backend="python")

    assert [3.0] == gradient(np.ones(1), 3).tolist()
    assert [1.0, 1.0] == gradient(np.ones(2), 1).tolist()
    assert [1.0, 1.0] == gradient.workspace(np.ones(2), 1)(np.ones(2), 1).tolist()
    assert [1.0, 1.0] == gradient(np.ones(2), 2).tolist()


@pytest.mark.parametrize("derivative", [srcdiff.jacobian, srcdiff.hessian])
def test_other_derivatives_of_stretched_arguments(derivative, loaded):
    a, b = np.array([0.5]), np.array([1.0, 2.0])
    found = derivative(scaled, backend="python")(a, b)

    expected = 6.0 * np.cos(a) if derivative is srcdiff.jacobian else [-6.0 * np.sin(a)]
    np.testing.assert_allclose(expected, found)
    assert all(r.exact for r in loaded)
