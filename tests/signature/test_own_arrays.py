"""Objects that stand for arrays: `__srcdiff_array__`, arrays of other libraries, `np.asarray` of outside objects."""

from __future__ import annotations

import array
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import srcdiff

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


class Field:
    """A user's class that is not an array."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __srcdiff_array__(self) -> Any:
        return self.values


class Labelled(np.ndarray):
    """A subclass of ndarray. It is refused unless it declares that it can be treated as an array."""

    def __srcdiff_array__(self) -> Any:
        return self.view(np.ndarray)


class Converted:
    """A class that NumPy can convert."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype)


@dataclass
class State:
    field: Any
    scale: float


def energy(x: Any) -> Any:
    return np.sum(x * x) + x[0]


X = np.array([1.0, 2.0, 3.0])
GRADIENT = [3.0, 4.0, 6.0]


# -- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("made", [Field, lambda x: x.view(Labelled)], ids=["class", "subclass"])
def test_argument_stands_for_an_array_in_all_modes(made: Any, backend: str) -> None:
    x = made(X.copy())

    gradient = srcdiff.grad(energy, backend=backend)(x)
    value, pullback = srcdiff.vjp(energy, x, backend=backend)

    assert type(gradient) is np.ndarray
    assert gradient.tolist() == GRADIENT
    assert (value, pullback(1.0)[0].tolist()) == (15.0, GRADIENT)
    assert srcdiff.jvp(energy, (x,), (np.ones(3),), backend=backend) == (15.0, 13.0)
    assert srcdiff.jacobian(lambda x: x * x, backend=backend)(x).tolist() == np.diag(2.0 * X).tolist()
    assert srcdiff.hvp(energy, backend=backend)(x, np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert srcdiff.hessian(energy, backend=backend)(x).tolist() == np.diag([2.0] * 3).tolist()
    assert srcdiff.differentiable(energy, backend=backend)(x) == 15.0
    srcdiff.check(energy, x, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_argument_inside_structures(backend: str) -> None:
    def f(state: Any, more: Any) -> Any:
        return state.scale * energy(state.field) + np.sum(more["a"][1])

    by_state, by_more = srcdiff.grad(f, wrt=("state", "more"), backend=backend)(
        State(Field(X), 2.0), {"a": (1.0, Field(X))}
    )

    assert type(by_state) is State
    assert by_state.field.tolist() == [6.0, 8.0, 12.0]
    assert by_state.scale == 15.0
    assert by_more["a"][1].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_kinds_of_arguments_may_change_from_call_to_call(backend: str) -> None:
    gradient = srcdiff.grad(lambda x: np.sum(x * x), backend=backend)
    given = [X, Field(X), Field(2.0), 2.0, Field(X), X, Field(X.astype(np.float32)), 2.0, Field(2.0), np.eye(2)]

    found = [gradient(x) for x in given]

    for x, bar in zip(given, found, strict=True):
        expected = 2.0 * (x.values if isinstance(x, Field) else x)
        assert np.array_equal(bar, expected)
        assert np.asarray(bar).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("backend", BACKENDS)
def test_function_that_writes(backend: str) -> None:
    def doubled(x: Any) -> Any:
        x *= 2.0
        return np.sum(x * x)

    x = Field(X.copy())

    assert srcdiff.grad(doubled, backend=backend)(x).tolist() == [8.0, 16.0, 24.0]
    assert x.values.tolist() == X.tolist()
    with pytest.raises(srcdiff.DifferentiationError, match="writes to `x`, which is converted to an array"):
        srcdiff.differentiable(doubled, backend=backend)(x)
    assert x.values.tolist() == X.tolist()


def test_objects_that_share_memory() -> None:
    def f(a: Any, b: Any) -> Any:
        a[0] = 2.0 * b[0]
        return np.sum(a * b)

    shared = X.copy()

    with pytest.raises(srcdiff.DifferentiationError, match="SD403"):
        srcdiff.grad(f, wrt=("a", "b"), backend="python")(Field(shared), Field(shared[::-1]))


@pytest.mark.parametrize("wrong", ["text", None, [1.0], 1j, Field(1.0)], ids=lambda wrong: type(wrong).__name__)
def test_what_is_neither_array_nor_number_is_refused(wrong: Any) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=r"`Field.__srcdiff_array__` returns a `\w+`, not an array"):
        srcdiff.grad(energy, backend="python")(Field(wrong))


class Multiplied(Converted):
    """A class with an operator of its own."""

    def __mul__(self, other: Any) -> Any:
        return 3.0


@pytest.mark.parametrize(
    ("given", "help_"),
    [
        (Multiplied(X), "`np.asarray(...)`, or define `Multiplied.__srcdiff_array__`"),
        (array.array("d", X), "convert it to an array: `np.asarray(...)`"),
        (np.ma.array(X), "convert it to a plain array: `.filled(...)`"),
    ],
    ids=["operator", "array", "subclass"],
)
def test_argument_with_operators_of_its_own_is_refused(given: Any, help_: str) -> None:
    with pytest.raises(srcdiff.DifferentiationError) as caught:
        srcdiff.grad(energy, backend="python")(given)
    assert help_ in str(caught.value)


# -- arrays of other libraries; PyTorch and JAX are in tests/bridges --------------------------------------------------


class Exchanged:
    """An array that speaks DLPack only, and has attributes of its own."""

    def __init__(self) -> None:
        self.held = X

    def __dlpack__(self, **further: Any) -> Any:
        return self.held.__dlpack__(**further)

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()

    def ravel(self) -> Any:
        return self


FOREIGN = [Converted(X), Exchanged(), memoryview(X)]


@pytest.mark.parametrize("given", FOREIGN, ids=lambda given: type(given).__name__)
def test_foreign_array_is_taken_in_all_modes(given: Any) -> None:
    def weighed(p: Any) -> Any:
        return p["scale"] * energy(p["x"])

    plain, foreign = ({"x": x, "scale": 2.0} for x in (X, given))

    assert srcdiff.grad(energy, backend="python")(given).tolist() == GRADIENT
    assert srcdiff.vjp(energy, given, backend="python")[1](1.0)[0].tolist() == GRADIENT
    assert srcdiff.jvp(energy, (given,), (np.ones(3),), backend="python") == (15.0, 13.0)
    assert srcdiff.jacobian(lambda x: x * x, backend="python")(given).tolist() == np.diag(2.0 * X).tolist()
    assert srcdiff.hvp(energy, backend="python")(given, np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert srcdiff.batched(srcdiff.grad(lambda x: x * x, backend="python"))(given).tolist() == (2.0 * X).tolist()
    srcdiff.check(energy, given, backend="python")
    assert str(srcdiff.grad(weighed, backend="python")(foreign)) == str(srcdiff.grad(weighed, backend="python")(plain))


@pytest.mark.numba
def test_compiled_code_reads_the_memory_of_a_foreign_array() -> None:
    x = X.copy()
    gradient = srcdiff.grad(energy)
    view = memoryview(x)
    assert gradient(x).tolist() == gradient(view).tolist() == GRADIENT
    x[0] = 5.0
    assert gradient(view)[0] == 11.0


def test_foreign_array_is_not_written_to() -> None:
    def doubled(x: Any) -> Any:
        x *= 2.0
        return np.sum(x * x)

    x = X.copy()
    for derivative in (srcdiff.differentiable, srcdiff.grad, srcdiff.hessian):
        with pytest.raises(srcdiff.DifferentiationError, match="writes to `x`, which is converted to an array"):
            derivative(doubled, backend="python")(memoryview(x))
    with pytest.raises(srcdiff.DifferentiationError, match="writes to `p"):
        srcdiff.grad(lambda p: doubled(p["x"]), backend="python")({"x": memoryview(x)})
    assert x.tolist() == X.tolist()


def raveled(x: Any) -> Any:
    return np.sum((2.0 * x).ravel())


def test_method_that_the_foreign_class_has_too_is_refused() -> None:
    gradient = srcdiff.grad(lambda x: raveled(x), backend="python")
    with pytest.raises(srcdiff.DifferentiationError, match="array of `Exchanged`, where the method `ravel` is not"):
        gradient(Exchanged())
    with pytest.raises(srcdiff.DifferentiationError, match="where the method `ravel` is not"):
        srcdiff.batched(srcdiff.grad(lambda x, y: raveled(x * y), backend="python"), over="x")(X, Exchanged())
    assert gradient(X).tolist() == gradient(memoryview(X)).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(srcdiff.DifferentiationError, match="an array of `memoryview`, where `!=` is not"):
        srcdiff.grad(lambda x: np.sum(x * (x != 2.0)), backend="python")(memoryview(X))


def test_exceptions_of_the_library_name_the_function() -> None:
    class Broken:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise RuntimeError("it is on another device")

    with pytest.raises(RuntimeError, match="on another device") as caught:
        srcdiff.grad(energy, backend="python")(Broken())
    assert "in an argument of `energy`" in caught.value.__notes__[0]
    state = State(X, 2.0)
    state.unused = Broken()
    assert srcdiff.grad(lambda s: energy(s.field), backend="python")(state).field.tolist() == GRADIENT


# -- from outside ----------------------------------------------------------------------------------------------------

outside: Any = None


def with_outside(x: Any) -> Any:
    return np.sum(x * outside)


@pytest.mark.parametrize("backend", BACKENDS)
def test_object_from_outside_is_read_at_every_call(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = srcdiff.grad(with_outside, backend=backend)

    def found(value: Any) -> Any:
        monkeypatch.setitem(globals(), "outside", value)
        return gradient(np.ones(3)).tolist()

    held = Field(X.copy())
    assert found(held) == X.tolist()
    held.values[0] = 7.0
    assert found(held) == [7.0, 2.0, 3.0]
    held.values = np.arange(3)
    assert found(held) == [0.0, 1.0, 2.0]
    held.values = 2.0
    assert found(held) == [2.0] * 3
    held.values = 3
    assert found(held) == [3.0] * 3
    held.values = 4
    assert found(held) == [4.0] * 3
    assert found(Field(X)) == X.tolist()
    assert found(X) == X.tolist()
    assert found(5.0) == [5.0] * 3


STATE = State(Field(X.copy()), 2.0)


def with_default(x: Any, state: Any = STATE, weight: Any = Field(2.0)) -> Any:  # noqa: B008 -- it is what is tested
    return np.sum(x * STATE.field) * STATE.scale * weight


@pytest.mark.parametrize("backend", BACKENDS)
def test_object_in_a_structure_from_outside(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return with_default(x)

    gradient = srcdiff.grad(f, backend=backend)
    assert gradient(np.ones(3)).tolist() == (4.0 * X).tolist()

    monkeypatch.setattr(STATE.field, "values", 2.0 * X)
    assert gradient(np.ones(3)).tolist() == (8.0 * X).tolist()
    monkeypatch.setattr(with_default.__defaults__[1], "values", 3.0)
    assert gradient(np.ones(3)).tolist() == (12.0 * X).tolist()
    monkeypatch.setattr(STATE, "field", Field(X))
    assert gradient(np.ones(3)).tolist() == (6.0 * X).tolist()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("made", [Converted, lambda x: array.array("d", x), memoryview], ids=["own", "array", "view"])
def test_asarray_of_an_object_from_outside(made: Any, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = X.copy()
    held = made(values)

    def f(x: Any) -> Any:
        return np.sum(x * np.asarray(held)) + np.array(held)[0] * x[0]

    gradient = srcdiff.grad(f, backend=backend)
    assert gradient(np.ones(3)).tolist() == [2.0, 2.0, 3.0]

    changed = held if isinstance(held, array.array) else values
    changed[0] = 5.0
    assert gradient(np.ones(3)).tolist() == [10.0, 2.0, 3.0]


def test_object_from_outside_that_is_used_without_a_conversion_is_refused() -> None:
    held = Converted(X)

    with pytest.raises(srcdiff.DifferentiationError) as caught:
        srcdiff.grad(lambda x: np.sum(x * held), backend="python")(X)
    assert "an instance of `Converted`" in str(caught.value)


def test_primal_that_writes_to_an_object_from_outside_is_refused() -> None:
    held, buffer = Field(X.copy()), memoryview(X.copy())

    def to_field(x: float) -> float:
        held[0] = x
        return held[0]

    def to_buffer(x: float) -> float:
        np.asarray(buffer)[0] = x
        return x

    for f in (to_field, to_buffer):
        with pytest.raises(srcdiff.DifferentiationError, match="writes to an object from outside"):
            srcdiff.differentiable(f, backend="python")(1.5)
    assert held.values[0] == buffer[0] == 1.0
