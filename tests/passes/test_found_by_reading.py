"""Programs that gave wrong numbers. They were found by a review of the passes."""

import numpy as np
import pytest

import srcdiff
from tests.numerical import clone

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


def no_sum_in_one_branch(x):
    """A branch that discards the sum, so the order of the iterations matters."""
    s = 1.0
    for i in range(len(x) - 1, -1, -1):
        if x[i] > 0.5:
            u = s + x[i]
        else:
            u = 0.0
        s = u + s
    return s


def no_sum_that_starts_late(x):
    z = np.empty(len(x))
    t = 0.0
    for i in range(len(x)):
        z[i] = x[i] * x[i]
        t += z[i]
    s = t
    for i in range(len(x)):
        if z[i] > 0.25:
            u = s + z[i]
        else:
            u = 0.0
        s = u + s
    return s


def no_sum_in_an_expression(x):
    s = 1.0
    for i in range(len(x) - 1, -1, -1):
        y = s + x[i] if i % 2 == 0 else 1.0
        s = y + s
    return s


def buffer_with_another_name(x):
    """The body reads a swapped buffer by the name that it had before the loop."""
    n = len(x)
    b = np.zeros(n)
    v, u, s = b, x.copy(), 0.0
    for _ in range(2):
        for i in range(n):
            v[i] = u[i] * u[i]
        u, v = v, u
        s += b[0]
    return s


def buffer_written_by_another_name(x):
    n = len(x)
    b = np.zeros(n)
    v, u, s = b, x.copy(), 0.0
    for _ in range(5):
        for i in range(n):
            v[i] = np.sin(u[i]) * u[i] + u[0]
        u, v = v, u
        s += b[0] * b[1]
        b[1] = s
    return s


PROGRAMS = [
    no_sum_in_one_branch,
    no_sum_that_starts_late,
    no_sum_in_an_expression,
    buffer_with_another_name,
    buffer_written_by_another_name,
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values_and_derivatives_are_those_of_the_program(program, backend):
    x = np.array([0.3, 0.7, 0.9, 0.2, 1.5])
    value, _ = srcdiff.value_and_grad(program, backend=backend)(clone(x))
    np.testing.assert_allclose(value, program(clone(x)), rtol=1e-13)  # a few additions in another order
    srcdiff.check(program, x, backend=backend)


SCALE = 0.7


def scaled(x, k):
    if k <= 0:
        return x * x * SCALE
    return x * 0.5 + scaled(x * x, k - 1)


def test_second_derivative_of_a_recursive_function_that_reads_from_outside():
    hessian = srcdiff.hessian(lambda a: scaled(a[0], 2), backend="python")(np.array([0.5, 0.2]))
    np.testing.assert_allclose(hessian, [[56 * SCALE * 0.5**6 + 1.0, 0.0], [0.0, 0.0]], rtol=1e-13)


@pytest.mark.parametrize("again", ["z * 1.0", "z", "-(-z)", "float(z)"])
def test_derivative_by_one_of_two_names_of_a_number_is_refused(again, tmp_path):
    names = {}
    file = tmp_path / "twice.py"
    file.write_text(f"def f(x):\n    z = x[0] * x[1]\n    y = {again}\n    return z * z + y * y * y\n")
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(srcdiff.DifferentiationError, match="`y` and `z` are the same number"):
        srcdiff.grad(names["f"], wrt="y", backend="python")(np.array([0.3, 0.7]))
