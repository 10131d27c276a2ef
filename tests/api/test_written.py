"""Arrays that a function writes into are results of it, also in tuples, lists, dictionaries and dataclasses."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcdiff

BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass
class State:
    x: Any
    y: Any
    factor: float = 2.0


@dataclass(frozen=True)
class Outer:
    inner: dict[str, Any]


def x() -> np.ndarray:
    return np.array([1.0, 2.0])


def y() -> np.ndarray:
    return np.array([3.0, 5.0])


def of_a_tuple(state, a):
    state[1][:] = a * state[0] ** 2 + state[1]


def of_a_named_tuple(state, a):
    state.y[:] = a * state.x**2 + state.y


def of_a_dictionary(state, a):
    state["y"][:] = a * state["x"] ** 2 + state["y"]


def of_a_dataclass(state, a):
    state.y[:] = a * state.x**2 + state.y


def nested(state, a):
    state.inner["pair"][1][:] = a * state.inner["pair"][0] ** 2 + state.inner["pair"][1]


def starred(*state, a=2.0):
    state[1][:] = a * state[0] ** 2 + state[1]


# A function that sets y to a * x**2 + y, its first argument, and the name of the array.
CASES: dict[str, tuple[Any, Any, str]] = {
    "tuple": (of_a_tuple, lambda: (x(), y()), "state[1]"),
    "list": (of_a_tuple, lambda: [x(), y()], "state[1]"),
    "named tuple": (of_a_named_tuple, lambda: Pair(x(), y()), "state[1]"),
    "dictionary": (of_a_dictionary, lambda: {"x": x(), "y": y()}, "state['y']"),
    "ordered dictionary": (of_a_dictionary, lambda: collections.OrderedDict(y=y(), x=x()), "state['y']"),
    "dataclass": (of_a_dataclass, lambda: State(x(), y()), "state.y"),
    "nested": (nested, lambda: Outer({"n": 3, "pair": (x(), y())}), "state.inner['pair'][1]"),
}
VALUE, BY_A = [5.0, 13.0], [1.0, 4.0]


ON_NUMBA = [pytest.param(*CASES[n], "numba", id=f"{n}, numba", marks=pytest.mark.numba) for n in ("list", "nested")]


@pytest.mark.parametrize(
    ("function", "state", "name", "backend"), [*((*case, "python") for case in CASES.values()), *ON_NUMBA]
)
def test_arrays_in_structures_are_results(function: Any, state: Any, name: str, backend: str) -> None:
    given = state()
    value, pullback = srcdiff.vjp(function, given, 2.0, backend=backend)
    state_bar, a_bar = pullback(**{name: np.array([1.0, 10.0])})
    same, tangent = srcdiff.jvp(function, (given, 2.0), (None, 1.0), backend=backend)
    _, other = srcdiff.jvp(function, (given, 2.0), (given, None), backend=backend)

    assert {n: v.tolist() for n, v in value.items()} == {name: VALUE}
    assert a_bar == 41.0
    assert sorted(np.sum(bar) for bar in floats_in(state_bar)) == [11.0, 84.0]
    assert same[name].tolist() == VALUE
    assert tangent[name].tolist() == BY_A
    assert other[name].tolist() == [7.0, 21.0]  # 2 * a * x * x + y
    assert [a.tolist() for a in floats_in(given)] == [a.tolist() for a in floats_in(state())]


def floats_in(value: Any) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    parts = value.values() if isinstance(value, dict) else vars(value).values() if hasattr(value, "__dict__") else value
    return [a for part in parts if not isinstance(part, int | float | None) for a in floats_in(part)]


@pytest.mark.parametrize(("function", "state", "name"), CASES.values(), ids=CASES)
def test_jacobians_of_arrays_in_structures(function: Any, state: Any, name: str) -> None:
    for mode in ("forward", "reverse"):
        jacobian = srcdiff.jacobian(function, "a", mode=mode, backend="python")
        assert jacobian(state(), 2.0)[name].tolist() == BY_A


@pytest.mark.parametrize(("function", "state", "name"), CASES.values(), ids=CASES)
def test_the_compiled_function_writes_into_them_and_check_agrees(function: Any, state: Any, name: str) -> None:
    given = state()

    assert srcdiff.differentiable(function, backend="python")(given, 2.0) is None
    assert VALUE in [a.tolist() for a in floats_in(given)]
    srcdiff.check(function, state(), 2.0, backend="python")


def test_arrays_of_further_arguments_have_names_too() -> None:
    value, pullback = srcdiff.vjp(starred, x(), y(), backend="python")

    assert value["state[1]"].tolist() == VALUE
    x_bar, y_bar, a_bar = pullback(**{"state[1]": np.ones(2)})
    assert (x_bar.tolist(), y_bar.tolist(), a_bar) == ([4.0, 8.0], [1.0, 1.0], 5.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_that_a_loop_chooses_are_results(backend: str) -> None:
    def scaled(states, a):
        for i in range(len(states)):
            states[i][:] = a * states[i]

    value, pullback = srcdiff.vjp(scaled, [x(), y()], 3.0, backend=backend)
    states_bar, a_bar = pullback(**{"states[0]": np.ones(2), "states[1]": 2.0 * np.ones(2)})

    assert [v.tolist() for v in value.values()] == [[3.0, 6.0], [9.0, 15.0]]
    assert [bar.tolist() for bar in states_bar] == [[3.0, 3.0], [6.0, 6.0]]
    assert a_bar == 3.0 + 16.0


def test_a_result_beside_written_arrays() -> None:
    def both(state, a):
        state["x"][:] = a * state["x"]
        return a * a

    value, pullback = srcdiff.vjp(both, {"x": x()}, 3.0, backend="python")

    assert value == 9.0
    assert pullback(1.0)[1] == 6.0
    assert pullback(1.0, **{"state['x']": np.ones(2)})[1] == 9.0
    with pytest.raises(TypeError, match=r"does not write to state: it writes to state\['x'\]"):
        pullback(1.0, state=np.ones(2))


def test_names_of_adjoints_do_not_clash() -> None:
    def function(result, state, state_x):
        result[:] = state_x * state["x"]
        state["x"][:] = result + state_x

    _, pullback = srcdiff.vjp(function, x(), {"x": y()}, x(), backend="python")
    result_bar, state_bar, state_x_bar = pullback(**{"result": np.ones(2), "state['x']": np.ones(2)})

    assert result_bar.tolist() == [0.0, 0.0]
    assert state_bar["x"].tolist() == [2.0, 4.0]
    assert state_x_bar.tolist() == [7.0, 11.0]


def test_arrays_that_share_memory_are_refused_by_vjp_too() -> None:
    def function(state, a):
        state[1][:] = a * state[0]

    whole = np.arange(3.0)
    with pytest.raises(srcdiff.DifferentiationError, match=r"`state\[0\]` and `state\[1\]` share memory"):
        srcdiff.vjp(function, (whole[:2], whole[1:]), 2.0, backend="python")


def test_the_same_arrays_in_other_elements_of_a_batch_are_not_written_by_threads() -> None:
    def function(state, c):
        state["sum"][0] += c

    def counted(counts, c):
        counts[0] += 1
        return c * counts[0]

    with pytest.raises(ValueError, match=r"threads would write to `state\['sum'\]`"):
        srcdiff.batched(function, over="c", parallel=True)({"sum": np.zeros(1)}, np.ones(3))
    with pytest.raises(ValueError, match="threads would write to `counts`"):
        srcdiff.batched(counted, over="c", parallel=True)(np.zeros(1, dtype=int), np.ones(3))


def test_exported_functions_take_structures_that_they_write_into() -> None:
    text = srcdiff.export(of_a_dictionary, None, {"x": x(), "y": y()}, 2.0, mode="vjp", wrt=("state", "a"), plain=True)
    names: dict[str, Any] = {}
    exec(text, names)

    state_bar, a_bar = names["of_a_dictionary_pullback"]({"x": x(), "y": y()}, 2.0, np.array([1.0, 10.0]))

    assert (state_bar["x"].tolist(), state_bar["y"].tolist(), a_bar) == ([4.0, 80.0], [1.0, 10.0], 41.0)


# -------------------------------------------------------------------------------------- effects that would be lost


def sets(items, a):
    items[0] = a * items[1]


def appends(items, a):
    items.append(a)


def sorts(items, a):
    items.sort()


def of_a_row(items, a):
    for i in range(len(items)):
        items[i][0] = a


def recursive(items, a):
    if len(items) < 5:
        items.append(a)
        recursive(items, a)


@pytest.mark.parametrize(
    ("function", "items"),
    [(sets, [3.0, 2.0]), (appends, [3.0]), (sorts, [3.0, 2.0]), (of_a_row, [[1.0], [2.0]]), (recursive, [1.0])],
)
def test_a_function_that_only_changes_a_list_is_refused(function: Any, items: list[Any]) -> None:
    said = "returns nothing and changes the list `items`"
    with pytest.raises(srcdiff.DifferentiationError, match=said):
        srcdiff.vjp(function, items, 2.0, backend="python")
    with pytest.raises(srcdiff.DifferentiationError, match=said):
        srcdiff.jvp(function, (items, 2.0), (None, 1.0), backend="python")
    with pytest.raises(srcdiff.DifferentiationError, match=said):
        srcdiff.differentiable(function, backend="python")(items, 2.0)


def test_lists_that_are_read_or_copied_are_no_reason_to_refuse() -> None:
    def function(out, items, table):
        more = list(items)
        more.append(1.0)
        for i in range(len(out)):
            out[i] = more[i] * items[0] * table[i][0] + max(items)

    value, pullback = srcdiff.vjp(function, np.zeros(2), [3.0, 2.0], [[1.0], [2.0]], backend="python")

    assert value["out"].tolist() == [12.0, 15.0]
    assert pullback(out=np.ones(2))[1] == [12.0, 6.0]


GIVEN = np.zeros(2)


def test_a_function_that_only_writes_into_arrays_from_outside_is_refused() -> None:
    def function(x):
        GIVEN[:] = x

    said = "returns nothing and writes to `GIVEN`, which is not an argument"
    with pytest.raises(srcdiff.DifferentiationError, match=said):
        srcdiff.jvp(function, (x(),), (x(),), backend="python")
    with pytest.raises(srcdiff.DifferentiationError, match=said):
        srcdiff.vjp(function, x(), backend="python")[1]()


# -------------------------------------------------------------------------------------------- adjoints of lists


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_lists_of_other_things_than_floats_beside_a_float(count: int, backend: str) -> None:
    def function(n, a):
        pairs = []
        for i in range(n):
            pairs.append((i, 2 * i))
        return pairs, a * a

    (pairs, _), pullback = srcdiff.vjp(function, count, 3.0, backend=backend)

    assert pairs == [(i, 2 * i) for i in range(count)]
    assert pullback((None, 1.0)) == (None, 6.0)
    assert pullback(([None] * count, 1.0)) == (None, 6.0)
    assert pullback(([(None, None)] * count, 1.0)) == (None, 6.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_adjoints_of_lists_of_tuples_are_taken(backend: str) -> None:
    def function(n, a):
        found = []
        for i in range(n):
            found.append((i, (a * i, a * a)))
        return found

    _, pullback = srcdiff.vjp(function, 3, 5.0, backend=backend)

    assert pullback([(None, (1.0, 0.0)), (None, (1.0, 1.0)), (None, None)]) == (None, 11.0)
    rows = srcdiff.jacobian(function, "a", mode="reverse", backend="python")(3, 5.0)
    assert rows == [(None, (float(i), 10.0)) for i in range(3)]
    srcdiff.check(function, 3, 5.0, backend=backend)


def test_adjoints_of_arrays_in_a_list_of_unknown_length_are_not_taken() -> None:
    def function(n, a):
        found = []
        for i in range(n):
            found.append(np.ones(2) * a * i)
        return found, a * a

    (_, _), pullback = srcdiff.vjp(function, 2, 5.0, backend="python")

    assert pullback((None, 1.0)) == (None, 10.0)
    assert pullback(([np.zeros(2)] * 2, 1.0)) == (None, 10.0)
    with pytest.raises(TypeError, match=r"result_bar\[0\]\[1\] is not supported: it is an array in a list"):
        pullback(([None, np.ones(2)], 1.0))
    by_forward_mode = srcdiff.jacobian(function, "a", backend="python")(2, 5.0)
    assert [part.tolist() for part in by_forward_mode[0]] == [[0.0, 0.0], [1.0, 1.0]]


def test_an_adjoint_that_is_not_made_like_its_result_is_refused() -> None:
    _, pullback = srcdiff.vjp(lambda a: (a, a), 1.0, backend="python")

    with pytest.raises(TypeError, match="result_bar must have the structure of its value, a tuple of 2 elements"):
        pullback(1.0)
    with pytest.raises(ValueError, match="result_bar has 3 parts, but its value has 2"):
        pullback((1.0, 1.0, 1.0))
