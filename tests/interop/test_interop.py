"""Basic interoperability: SciPy's optimisers, other processes, `help`, and completion."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from numba import cloudpickle

import srcdiff
from tests.interop.models import cube, decorated, energy, of_cube, squares

PROJECT = Path(__file__).parent.parent.parent
X = np.array([-1.2, 1.0, 0.8])

DERIVATIVES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "grad": (srcdiff.grad(energy, backend="python"), (X,)),
    "value_and_grad": (srcdiff.value_and_grad(energy, wrt=("x", "scale"), backend="python"), (X, 3.0)),
    "grad of grad": (srcdiff.grad(srcdiff.grad(of_cube, backend="python"), backend="python"), (2.0,)),
    "hvp": (srcdiff.hvp(energy, backend="python"), (X, np.ones(3))),
    "hessian": (srcdiff.hessian(energy, backend="python"), (X,)),
    "jacobian": (srcdiff.jacobian(squares, backend="python", directions=2), (X,)),
    "batched": (srcdiff.batched(srcdiff.grad(energy, backend="python"), over="x"), (np.stack([X, -X]),)),
    "workspace": (srcdiff.grad(energy, backend="python").workspace(X), (X,)),
    "decorated": (decorated, (X,)),
    "gradient of decorated": (decorated.grad(), (X,)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("package", [pickle, cloudpickle], ids=["pickle", "cloudpickle"])
def test_derivatives_are_the_same_after_pickling(package, name):
    derivative, arguments = DERIVATIVES[name]
    again = package.loads(package.dumps(derivative))
    for expected, actual in zip(flat(derivative(*arguments)), flat(again(*arguments)), strict=True):
        np.testing.assert_array_equal(actual, expected)


def flat(x):
    return [part for item in x for part in flat(item)] if isinstance(x, tuple) else [x]


def test_decorated_functions_and_rules_are_found_by_their_names():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert pickle.loads(pickle.dumps(cube)) is cube
    assert repr(pickle.loads(pickle.dumps(decorated.grad()))) == "<srcdiff.grad(decorated, wrt=('x',))>"


def test_closures_are_pickled_by_value():
    factor = 3.0
    gradient = srcdiff.grad(lambda x: factor * x * x, backend="python")
    assert cloudpickle.loads(cloudpickle.dumps(gradient))(2.0) == 12.0
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(gradient)


def test_derivatives_can_be_copied():
    gradient = srcdiff.grad(energy, backend="python")
    np.testing.assert_array_equal(copy.deepcopy(gradient)(X), gradient(X))


SCRIPT = """
import multiprocessing
import numpy as np
import srcdiff


@srcdiff.differentiable(backend="python")
def loss(x):
    return np.sum(x**3)


gradient = loss.grad()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print([list(map(float, g)) for g in pool.map(gradient, [np.array([1.0, 2.0]), np.array([3.0, 4.0])])])
        print(pool.map(loss, [np.array([1.0, 2.0])]) == [9.0])
"""


def test_other_processes_take_derivatives_of_functions_in_a_script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    finished = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT), "PATH": "", "SRCDIFF_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.stdout == "[[3.0, 12.0], [27.0, 48.0]]\nTrue\n", finished.stderr


# -- SciPy ------------------------------------------------------------------------------------------------------------


def test_minimize_takes_the_value_with_the_gradient():
    found = scipy.optimize.minimize(srcdiff.value_and_grad(energy, backend="python"), X, jac=True, method="BFGS")
    np.testing.assert_allclose(found.x, np.ones(3), atol=1e-5)


def test_minimize_takes_hessian_products():
    gradient, product = srcdiff.value_and_grad(energy, backend="python"), srcdiff.hvp(energy, backend="python")
    found = scipy.optimize.minimize(gradient, X, jac=True, hessp=product, method="Newton-CG")
    with_arguments = scipy.optimize.minimize(
        gradient, X, args=(3.0,), jac=True, hessp=product.hessp, method="trust-ncg", tol=1e-8
    )
    np.testing.assert_allclose(found.x, np.ones(3), atol=1e-5)
    np.testing.assert_allclose(with_arguments.x, np.ones(3), atol=1e-5)


def test_minimize_takes_hessians_and_least_squares_jacobians():
    gradient, hessian = srcdiff.grad(energy, backend="python"), srcdiff.hessian(energy, backend="python")
    found = scipy.optimize.minimize(energy, X, jac=gradient, hess=hessian, method="trust-exact")
    np.testing.assert_allclose(found.x, np.ones(3), atol=1e-5)
    jacobian = srcdiff.jacobian(squares, backend="python")
    found = scipy.optimize.least_squares(lambda x: x**2 - 4.0, np.ones(2), jac=jacobian)
    np.testing.assert_allclose(found.x, [2.0, 2.0])


# -- looking at them --------------------------------------------------------------------------------------------------


def test_signatures_of_derivatives_have_arguments_and_results():
    assert str(inspect.signature(srcdiff.value_and_grad(energy))) == (
        "(x: 'np.ndarray', scale: 'float' = 2.0, *, out=None) -> 'tuple[float, np.ndarray]'"
    )
    assert str(inspect.signature(srcdiff.grad(energy, wrt=("scale",)))).endswith("-> 'tuple[float]'")
    assert list(inspect.signature(srcdiff.hvp(energy)).parameters) == ["x", "scale", "vector"]
    assert list(inspect.signature(srcdiff.jacobian(squares)).parameters) == ["x"]


def test_help_says_which_derivative_it_is_and_what_the_function_does():
    said = pydoc.plain(pydoc.render_doc(srcdiff.grad(energy, wrt="scale")))
    assert "The gradient of `energy(x, scale)` with respect to `scale`, by srcdiff." in said
    assert "A curved valley." in said


def test_completion_offers_what_users_need():
    offered = [name for name in dir(decorated) if not name.startswith("_")]
    assert offered == ["compile", "function", "grad", "kind", "report", "source", "value_and_grad", "workspace", "wrt"]
    for name in offered:
        assert name == "wrt" or hasattr(decorated, name)
