"""The simulator itself: the threads of a block share one array, independent of their order."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from numba.cuda.simulator import kernelapi

import srcdiff


class SlowArrays:
    """NumPy, with a delayed creation of arrays."""

    def empty(self, *given: Any) -> Any:
        time.sleep(0.01)
        return np.empty(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def test_product_is_right_however_long_shared_arrays_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernelapi, "np", SlowArrays())
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)

    value, gradient = srcdiff.value_and_grad(lambda a, b: np.sum((a @ b) ** 2), backend="cuda")(a, b)

    np.testing.assert_allclose(value, np.sum((a @ b) ** 2), rtol=1e-13)
    np.testing.assert_allclose(gradient, 2.0 * (a @ b) @ b.T, rtol=1e-13)
