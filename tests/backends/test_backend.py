"""Backends: the three that exist, and a fourth one that is defined here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import srcdiff
from srcdiff.backends import cuda, numba, python
from srcdiff.backends.backend import Backend, Generated, Trait
from srcdiff.backends.registry import BACKENDS, register
from srcdiff.diagnostics.options import BACKEND_OPTIONS, COMPILING, SWITCH, Taken
from srcdiff.pipeline import PASSES


class Counting:
    """A custom backend: it runs the text unchanged, and counts loads and calls."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.options: list[Mapping[str, Any]] = []
        self.calls = 0
        taken = Taken({**COMPILING, "doubled": SWITCH}, refused={"fastmath": (False,)})
        self.backend = Backend("counting", self.load, passes=frozenset({"growing buffers"}), options=taken)

    def load(self, generated: Generated, options: Mapping[str, Any]) -> Callable[..., Any]:
        names: dict[str, Any] = dict(generated.module.objects)
        exec(generated.module.text, names)
        self.texts.append(generated.module.text)
        self.options.append(options)

        def call(*args: Any) -> Any:
            self.calls += 1
            return names[generated.module.name](*args)

        return call


@pytest.fixture
def counting(own_backends: None) -> Counting:
    made = Counting()
    register(made.backend)
    return made


def energy(x: Any, k: float) -> float:
    total = 0.0
    for i in range(len(x) - 1):
        total += k * (x[i + 1] - x[i]) ** 2
    return total


def settled(x: float) -> float:
    for _ in range(1_000_000):
        x = np.cos(x) * x
        if x < 0.01:
            break
    return x


X = np.array([0.5, -1.0, 2.0])


def test_fourth_backend_gives_the_gradients_of_the_others(counting: Counting) -> None:
    gradient = srcdiff.grad(energy, ("x", "k"), backend="counting")
    for _ in range(2):
        x_bar, k_bar = gradient(X, 3.0)

    expected = srcdiff.grad(energy, ("x", "k"), backend="python")(X, 3.0)
    assert x_bar.tolist() == expected[0].tolist()
    assert k_bar == expected[1]
    assert (1, 2) == (len(counting.texts), counting.calls)
    assert gradient.source == counting.texts[0]


def test_all_modes_run_on_a_fourth_backend(counting: Counting) -> None:
    x_dot = np.array([1.0, 0.0, -1.0])
    value, dot = srcdiff.jvp(energy, (X, 3.0), (x_dot, 0.0), backend="counting")
    assert value == energy(X, 3.0)
    assert dot == pytest.approx(float(srcdiff.grad(energy, backend="counting")(X, 3.0) @ x_dot), rel=1e-14)
    assert srcdiff.hvp(energy, backend="counting")(X, 3.0, x_dot).tolist() == [6.0, 0.0, -6.0]
    batch = srcdiff.batched(srcdiff.grad(energy, backend="counting"), "x")(np.stack([X, X]), 3.0)
    assert batch.tolist() == [srcdiff.grad(energy, backend="python")(X, 3.0).tolist()] * 2
    srcdiff.check(energy, X, 3.0, backend="counting")


def test_passes_run_for_the_backends_that_name_them(counting: Counting) -> None:
    srcdiff.grad(settled, backend="counting")(0.5)
    assert counting.texts == [srcdiff.source(settled, 0.5, with_value=False)]
    assert "grown(" in counting.texts[0]

    register(replace(counting.backend, passes=frozenset()))
    srcdiff.grad(settled, backend="counting")(0.5)
    assert "grown(" not in counting.texts[1]


def test_backend_takes_options_of_its_own(counting: Counting) -> None:
    srcdiff.grad(energy, backend="counting", doubled=True)(X, 3.0)
    assert [{"doubled": True}] == counting.options
    with pytest.raises(TypeError, match="`doubled` must be True or False, not 2"):
        srcdiff.grad(energy, backend="counting", doubled=2)
    with pytest.raises(ValueError, match="the backend 'counting' does not support `fastmath=False`"):
        srcdiff.grad(energy, backend="counting", fastmath=False)
    with pytest.raises(TypeError, match="`doubled` is an option of the backend 'counting'"):
        srcdiff.grad(energy, doubled=True)
    with pytest.raises(ValueError, match="`backend` must be 'numba', 'python', 'cuda' or 'counting', not 'other'"):
        srcdiff.grad(energy, backend="other")


def test_a_missing_package_is_reported_when_a_derivative_is_made(counting: Counting) -> None:
    def missing() -> None:
        raise ModuleNotFoundError("the backend 'counting' needs fingers")

    register(replace(counting.backend, require_installed=missing))
    with pytest.raises(ModuleNotFoundError, match="needs fingers"):
        srcdiff.grad(energy, backend="counting")


def test_what_needs_a_trait_is_refused_without_it(counting: Counting) -> None:
    gradient = srcdiff.grad(energy, backend="counting")
    with pytest.raises(TypeError, match="uses the backend 'counting', but only 'cuda' has kernels"):
        gradient.ptx()
    with pytest.raises(TypeError, match="uses the backend 'counting', but compiled code needs 'numba'"):
        gradient.compiled_for((X, 3.0))


@pytest.mark.parametrize("backend", [numba.BACKEND, python.BACKEND, cuda.BACKEND], ids=lambda b: b.name)
def test_folder_of_a_backend_exports_it_by_its_name(backend: Backend) -> None:
    assert BACKENDS[backend.name] is backend
    assert BACKEND_OPTIONS[backend.name] is backend.options
    assert backend.options.refused.keys() <= backend.options.options.keys()


def test_passes_of_backends_are_in_the_pipeline() -> None:
    assert {name for b in BACKENDS.values() for name in b.passes} <= {p.name for p in PASSES}


def test_every_trait_is_one_of_some_backend_and_not_of_all() -> None:
    for trait in Trait:
        assert 0 < sum(trait in b.traits for b in BACKENDS.values()) < len(BACKENDS)
