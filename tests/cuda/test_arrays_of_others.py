"""Arrays of other packages, passed through `__cuda_array_interface__`."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
from numba import cuda

import srcdiff
from srcdiff.backends.cuda.device import Device, as_given
from srcdiff.signature.keys import layout_on_device


class Foreign:
    """An array of an unknown package, such as those of JAX, Warp and PyCUDA."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.values.__array_interface__, "strides": self.values.strides, "version": 3}


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("foreign_package")
    monkeypatch.setitem(sys.modules, "foreign_package", module)
    monkeypatch.setattr(Foreign, "__module__", "foreign_package.arrays")
    monkeypatch.setattr(cuda, "as_cuda_array", lambda array: cuda.to_device(array.values), raising=False)
    return module


def test_gradient_is_an_array_of_numba_where_the_package_makes_none(package: types.ModuleType) -> None:
    x = Foreign([1.0, 2.0, 3.0])

    value, gradient = srcdiff.value_and_grad(lambda x: np.sum(x**3), backend="cuda")(x)

    assert value == 36.0
    assert type(gradient) is type(cuda.to_device(np.zeros(1)))
    np.testing.assert_allclose(gradient.copy_to_host(), [3.0, 12.0, 27.0])


def test_gradient_is_an_array_of_the_package_that_makes_one(package: types.ModuleType) -> None:
    package.asarray = lambda array: Foreign(array.copy_to_host())  # type: ignore[attr-defined]

    gradient = srcdiff.grad(lambda x: np.sum(x**3), backend="cuda")(Foreign([1.0, 2.0, 3.0]))

    assert isinstance(gradient, Foreign)
    np.testing.assert_allclose(gradient.values, [3.0, 12.0, 27.0])


def test_array_of_a_class_in_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Foreign, "__module__", "__main__")
    result = cuda.to_device(np.ones(2))
    assert as_given((result, 1.0), Foreign([1.0]), Device())[0] is result


@pytest.mark.parametrize(("step", "in_order"), [(1, True), (2, False), (-1, False)])
def test_strides_say_whether_an_array_is_contiguous(step: int, in_order: bool) -> None:
    assert layout_on_device(Foreign(np.zeros((4, 3))[:, ::step]))[2] is in_order
