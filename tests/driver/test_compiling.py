"""Compilation restores every global setting that it changes."""

import gc

import pytest

import srcdiff


@pytest.mark.parametrize("is_enabled", [True, False])
def test_collections_go_on_as_before(is_enabled):
    before = gc.isenabled()
    try:
        gc.enable() if is_enabled else gc.disable()
        assert 6.0 == srcdiff.grad(lambda x: x * x, backend="python")(3.0)
        assert is_enabled == gc.isenabled()
        with pytest.raises(srcdiff.DifferentiationError):
            srcdiff.grad(lambda x: {x}, backend="python")(3.0)
        assert is_enabled == gc.isenabled()
    finally:
        gc.enable() if before else gc.disable()
