"""Dictionaries that the function changes: keys are known when it is compiled."""

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError

BACKENDS = ["python", "numba"]


def collected(x):
    found = {}
    found["a"] = x * x
    found["b"] = found["a"] + x
    found[3] = np.sin(found["b"])
    found["a"] *= 2.0
    return sum(found.values()) + len(found)


def in_a_loop(x, n):
    state = {"x": x, "v": 1.0}
    for _ in range(n):
        state["v"] -= 0.1 * state["x"]
        state["x"] += 0.1 * state["v"]
        if state["x"] > 1.4:
            state["x"] = 0.5 * state["x"]
    return state["x"] * state["v"]


def two_names(x):
    first = {"w": x}
    second = first
    copied = dict(first)
    other = first.copy()
    second["w"] = 3.0 * x
    other["w"] += 1.0
    return first["w"] * copied["w"] + other["w"]


def by_methods(x):
    d = {"a": x, "b": 2.0}
    d.update({"c": x * x}, b=x + 1.0)
    taken = d.pop("a")
    d.setdefault("e", taken * 4.0)
    d.setdefault("b", 100.0)
    del d["c"]
    return sum(v * (k == "b" or 2.0) for k, v in d.items()) + d.pop("none", taken)


def through_a_helper(x):
    d = {"total": 0.0}

    def add(d, value):
        d["total"] += value

    for k in range(3):
        add(d, x**k)
    return d["total"]


def in_a_branch(x, flag):
    d = {"a": x}
    if x > 0.5 and flag:
        d["b"] = x * x
    return d["a"] + (d["b"] if "b" in d else 1.0)


def with_arrays(x):
    d = {"w": x.copy(), "n": 0}
    d["w"] += 1.0
    d["w"][0] = 5.0 * x[1]
    d["n"] += 2
    d["list"] = []
    d["list"].append(x[0])
    return np.sum(d["w"] ** 2) * d["n"] + d["list"][0]


def of_an_argument(params, x):
    params["b"] = params["b"] * 2.0
    params["c"] = x
    return params["w"] * x + params["b"] * params["c"]


PROGRAMS = {
    "collected": (collected, (0.7,)),
    "in a loop": (in_a_loop, (1.3, 5)),
    "in a loop that does not run": (in_a_loop, (1.3, 0)),
    "two names": (two_names, (0.7,)),
    "by methods": (by_methods, (0.7,)),
    "through a helper": (through_a_helper, (0.7,)),
    "in a branch": (in_a_branch, (0.7, True)),
    "not in a branch": (in_a_branch, (0.7, False)),
    "with arrays": (with_arrays, (np.array([1.0, 2.0]),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_both_orders_agree_with_differences(name):
    function, arguments = PROGRAMS[name]
    srcdiff.check(function, *arguments, order=2, backend="python")


@pytest.mark.parametrize("name", ["collected", "in a loop", "in a branch", "with arrays"])
def test_compiled_derivatives_agree_with_differences(name):
    function, arguments = PROGRAMS[name]
    srcdiff.check(function, *arguments)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_that_is_changed_stays_as_it_was(backend):
    params = {"w": 2.0, "b": 3.0}
    gradient = srcdiff.grad(of_an_argument, backend=backend)(params, 1.5)
    assert gradient == {"w": 1.5, "b": 3.0}
    assert params == {"w": 2.0, "b": 3.0}


def missing(x):
    d = {"a": x}
    d["b"] = 1.0
    return d["c"]


def test_a_key_that_is_not_there_raises_as_in_python():
    with pytest.raises(KeyError, match="c"):
        srcdiff.grad(missing, backend="python")(1.0)


OUTSIDE = {1: 1.0}


def changes_outside(x):
    OUTSIDE[1] = x
    return OUTSIDE[1]


def key_at_run_time(x, n):
    d = {}
    for k in range(n):
        d[0.5 * k] = x * k
    return d[0.0]


def either_of_two(x):
    a, b = {"v": x}, {"v": 2.0 * x}
    c = a if x > 1.0 else b
    c["v"] += 1.0
    return a["v"] * b["v"]


def some_keys_at_run_time(x):
    d = {"a": x}
    if x > 1.0:
        d["b"] = x
    return sum(d.values())


def made_anew_in_a_loop(x, n):
    d = {"v": x}
    for _ in range(n):
        d = {"v": d["v"] * x}
        d["v"] += 1.0
    return d["v"]


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (changes_outside, (1.0,), "is from outside and has integers as keys"),
        (key_at_run_time, (1.0, 3), "must be known at compile time"),
        (either_of_two, (1.5,), "may be either of two"),
        (made_anew_in_a_loop, (1.5, 2), "either of two dictionaries that are changed"),
        (some_keys_at_run_time, (1.5,), "in the dictionary on some paths only"),
    ],
)
def test_what_cannot_be_read_is_refused(function, arguments, said):
    with pytest.raises(DifferentiationError, match=said):
        srcdiff.grad(function, backend="python")(*arguments)


def keywords_that_are_changed(x):
    def helper(a, **options):
        options["scale"] = options.pop("scale", 1.0) * a
        return options["scale"] + options["shift"]

    return helper(x, scale=3.0, shift=x) * helper(2.0 * x, shift=1.0)


def test_keywords_of_a_helper_may_be_changed():
    srcdiff.check(keywords_that_are_changed, 0.7, order=2, backend="python")


def view_before_a_change(x):
    d = {"a": x, "b": 2.0 * x}
    values, pairs, keys = d.values(), d.items(), d.keys()
    d["b"] = x**3
    d["c"] = x
    return sum(values) + sum([k * v for k, (_, v) in enumerate(pairs)]) + len(keys)


def view_read_by_a_generator_later(x):
    d = {"a": x, "b": 2.0 * x}
    scaled = (x * v for v in d.values())
    d["a"] = x**3
    return sum(scaled)


def items_that_change_themselves(x):
    d = {"a": x, "b": 2.0 * x}
    for k, v in d.items():
        d[k] = v * v
    return d["a"] + d["b"]


def order_after_a_branch(x):
    d = {"a": x, "b": 2.0 * x}
    if x > 0.2:
        d["a"] = x**3
    first, _ = d.values()
    return first


def order_after_an_exception(x):
    d = {"a": x, "b": 2.0 * x}
    try:
        d["a"] *= x
        if x > 0.5:
            raise ValueError
    except ValueError:
        d["a"] *= x
    total = 0.0
    for v in d.values():
        total = 2.0 * total + v
    return total


@pytest.mark.parametrize(
    "function",
    [
        view_before_a_change,
        view_read_by_a_generator_later,
        items_that_change_themselves,
        order_after_a_branch,
        order_after_an_exception,
    ],
)
def test_views_show_what_the_dictionary_holds_now_in_the_order_of_its_keys(function):
    srcdiff.check(function, 0.7, backend="python")


def next_item_changes(x):
    d = {"a": x, "b": 2.0 * x}
    total = 0.0
    for v in d.values():
        d["b"] = 5.0 * x
        total += v
    return total


def changes_in_an_inner_loop(x):
    d = {"a": x, "b": 2.0 * x}
    for _, v in d.items():
        for k, w in d.items():
            d[k] = 0.5 * w
    return v


@pytest.mark.parametrize("function", [next_item_changes, changes_in_an_inner_loop])
def test_a_dictionary_whose_next_items_change_while_it_is_iterated_is_refused(function):
    with pytest.raises(DifferentiationError, match="the dictionary changes while it is iterated"):
        srcdiff.grad(function, backend="python")(0.7)


def moved_in_a_branch(x):
    d = {"a": x, "b": 2.0 * x}
    if x > 0.2:
        d["a"] = d.pop("a")
    first, _ = d.values()
    return first


def moved_in_a_loop(x):
    d = {"a": x, "b": 2.0 * x}
    total = 0.0
    for _ in range(3):
        first, _ = d.values()
        total = 2.0 * total + first
        d["a"] = x * d.pop("a")
    return total


@pytest.mark.parametrize("function", [moved_in_a_branch, moved_in_a_loop])
def test_an_order_of_keys_that_depends_on_the_path_is_refused(function):
    with pytest.raises(DifferentiationError, match="in another order on some path"):
        srcdiff.grad(function, backend="python")(0.7)


# -- dictionaries from outside ----------------------------------------------------------------------------------------

SHARED = {"a": 1.0}


class Machine:
    def __init__(self):
        self.data, self.info, self.shared = {}, {"n": 2.0, "list": [1.0]}, SHARED

    def run(self, x):
        self.data["last"] = x[0]
        self.data["last"] *= 2.0
        self.info["n"] += x[1]
        self.info["list"].append(x[2])
        self.shared["a"] += x[0]
        for v in x:
            if "sum" in self.data:
                self.data["sum"] += v
            else:
                self.data["sum"] = 2.0 * v
        return self.data["last"] * self.info["n"] * self.data["sum"] + sum(self.info["list"]) * SHARED["a"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_dictionaries_of_outside_objects_are_changed_during_the_call_only(backend):
    machine, x = Machine(), np.array([0.5, 1.2, -0.3])
    srcdiff.check(machine.run, x, backend=backend)
    assert (machine.data, machine.info, SHARED) == ({}, {"n": 2.0, "list": [1.0]}, {"a": 1.0})
    gradient = srcdiff.value_and_grad(machine.run, backend=backend)
    assert gradient(x)[0] == pytest.approx(1.0 * 3.2 * 1.9 + 0.7 * 1.5)
    machine.data["sum"] = 1.0  # another key: the program is read anew
    machine.info["n"] = 3.0
    assert gradient(x)[0] == pytest.approx(1.0 * 4.2 * 2.4 + 0.7 * 1.5)


def changed_by_one_of_two_names(first, second):
    first["a"] += second["a"]
    return first["a"] * second["a"]


def test_a_dictionary_that_is_changed_cannot_be_passed_twice():
    gradient, same = srcdiff.grad(changed_by_one_of_two_names, backend="python"), {"a": 2.0}
    assert gradient({"a": 2.0}, {"a": 3.0}) == {"a": 3.0}
    with pytest.raises(DifferentiationError, match="the same dictionary is passed twice"):
        gradient(same, same)
    with pytest.raises(DifferentiationError, match="the same dictionary is passed and read from outside"):
        srcdiff.grad(adds_to_shared, backend="python")(SHARED)


def adds_to_shared(given):
    SHARED["a"] += 1.0
    return given["a"] ** 2


def perhaps_there(x):
    d = {"a": x[0]}
    for v in x:
        if v > 0:
            d["b"] = d.get("b", 0.0) + v
        else:
            d["a"] *= 2.0
    return d["a"] * d["b"] + d.get("c", x[1])


def test_get_of_a_key_that_is_there_on_some_paths_only():
    srcdiff.check(perhaps_there, np.array([0.5, 1.2, -0.3]), backend="python")
