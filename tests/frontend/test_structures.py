"""Parameters in dictionaries, dataclasses, named tuples and lists. The gradient has the same structure."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcdiff
from srcdiff import DifferentiationError


@dataclass
class Model:
    w: Any
    b: float
    name: str = "model"
    SCALE = 2.0

    def __call__(self, x):
        return x @ self.w + self.b

    @property
    def penalty(self):
        return self.b**2 * self.SCALE

    def norm(self, power=2):
        return np.sum(self.w**power) + self.penalty


@dataclass(frozen=True, slots=True)
class Outer:
    inner: Model
    scale: float
    table: dict[str, list[float]]


@dataclass
class Checked:
    x: float

    def __post_init__(self):
        if self.x < 0.0:
            raise ValueError("negative")


class Pair(NamedTuple):
    first: dict[str, float]
    second: float


X = np.arange(6.0).reshape(3, 2) / 5.0
W = np.array([0.3, -0.2])
PARAMS = {"w": W, "b": 0.5}
LAYERS = [(np.array([[0.1, 0.4], [-0.3, 0.2]]), np.array([0.5, -0.5])), (np.eye(2), np.array([0.1, 0.2]))]


def linear(params, x):
    return np.sum(np.tanh(x @ params["w"] + params["b"]))


def by_items(params, x):
    total = 0.0
    for key, value in params.items():
        if key != "b":
            total += np.sum(value**3)
    for key in params:
        total += np.sum(params[key])
    for value in params.values():
        total *= np.sum(value)
    return total + len(params) + (1.0 if "c" in params else 0.0) + params.get("d", 2.0) * params.get("b")


def with_methods(model, x):
    return np.sum(np.tanh(model(x))) + model.norm() + model.norm(power=3)


def nested(outer, x):
    return outer.scale * with_methods(outer.inner, x) + outer.table["a"][0] * outer.table["a"][1]


def layers_in_turn(layers, x):
    h = x[0]
    for w, b in layers:
        h = np.tanh(w @ h + b)
    return np.sum(h)


def layers_by_number(layers, x):
    h = x[0]
    for k in range(len(layers)):
        h = np.tanh(layers[k]["w"] @ h + layers[k]["b"])
    return np.sum(h)


def made_inside(params, x):
    def product(w, b):
        return np.sum(w) * b

    new = {**params, "b": params["b"] * 2.0}
    other = dict(new, w=new["w"] * 3.0)
    model = dataclasses.replace(Model(other["w"], b=new["b"]), b=1.5 * new["b"])
    return product(**other) * new["w"][0] + np.sum(model(x))


def chosen_at_run_time(params, x):
    if x[0, 0] < x[1, 1]:
        used = {"w": params["w"], "b": params["b"] * 2.0}
    else:
        used = params
    for _ in range(2):
        used = {"w": used["w"] * 1.5, "b": used["b"] + 1.0}
    return linear(used, x)


def array_in_place(params, x):
    params["w"][0] = params["b"] * 2.0
    params["w"] += 1.0
    return linear(params, x)


PROGRAMS = {
    "dictionary": (linear, PARAMS),
    "items": (by_items, PARAMS),
    "ordered": (linear, OrderedDict(PARAMS)),
    "dataclass": (with_methods, Model(W, 0.5)),
    "nested": (nested, Outer(Model(W, 0.5), 1.5, {"a": [1.0, 2.0]})),
    "list of tuples": (layers_in_turn, LAYERS),
    "list of dictionaries": (layers_by_number, [{"w": w, "b": b} for w, b in LAYERS]),
    "made inside": (made_inside, PARAMS),
    "chosen at run time": (chosen_at_run_time, PARAMS),
    "array in place": (array_in_place, PARAMS),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_derivatives_agree_with_differences(name):
    function, params = PROGRAMS[name]
    srcdiff.check(function, params, X, order=2, backend="python")


@pytest.mark.parametrize("name", ["items", "nested", "list of tuples"])
@pytest.mark.numba
def test_compiled_code_agrees_with_python(name):
    function, params = PROGRAMS[name]
    compiled, plain = (srcdiff.grad(function, backend=b)(params, X) for b in ("numba", "python"))
    np.testing.assert_allclose(flat(compiled), flat(plain), rtol=1e-12)


def flat(x: Any) -> list[float]:
    if isinstance(x, np.ndarray | float | np.floating):
        return list(np.ravel(x))
    if dataclasses.is_dataclass(x):
        x = [getattr(x, f.name) for f in dataclasses.fields(x)]
    items = x.values() if isinstance(x, dict) else x if isinstance(x, tuple | list) else ()
    return [number for item in items for number in flat(item)]


def test_gradient_has_the_structure_of_its_argument():
    gradient = srcdiff.grad(linear, wrt="params", backend="python")

    found = gradient(PARAMS, X)
    assert type(found) is dict
    assert list(found) == ["w", "b"]
    assert list(gradient({"b": 0.5, "w": W}, X)) == ["b", "w"]
    assert type(gradient(OrderedDict(PARAMS), X)) is OrderedDict
    np.testing.assert_allclose(found["w"], gradient({"b": 0.5, "w": W}, X)["w"])


def test_gradient_of_a_dataclass_is_one_with_none_for_what_holds_no_floats():
    found = srcdiff.grad(nested, backend="python")(Outer(Model(W, 0.5), 1.5, {"a": [1.0, 2.0]}), X)

    assert type(found) is Outer
    assert type(found.inner) is Model
    assert found.inner.name is None
    assert found.table == {"a": [2.0, 1.0]}


def test_data_among_parameters_has_no_gradient():
    def picked(params):
        return params["w"][params["index"][0]] * params["b"] if params["flag"] else 0.0

    found = srcdiff.grad(picked, backend="python")(
        {"w": W, "index": np.array([1]), "b": 2.0, "flag": True, "name": "a", "extra": None}
    )
    assert (found["index"], found["flag"], found["name"], found["extra"]) == (None, None, None, None)
    assert (list(found["w"]), found["b"]) == ([0.0, 2.0], -0.2)


def test_namedtuples_may_hold_dictionaries():
    found = srcdiff.grad(lambda p: p.first["a"] * p.second, backend="python")(Pair({"a": 3.0}, 2.0))
    assert found == Pair({"a": 2.0}, 3.0)


def test_gradient_of_an_argument_whose_init_checks_it_is_made_without_init():
    assert srcdiff.grad(lambda c: -3.0 * c.x, backend="python")(Checked(2.0)).x == -3.0


def test_tangents_and_adjoints_are_made_like_their_values():
    value, tangent = srcdiff.jvp(linear, (PARAMS, X), ({"w": W, "b": 1.0}, None), backend="python")
    _, pullback = srcdiff.vjp(linear, PARAMS, X, backend="python")
    bars, _ = pullback(1.0)
    assert value == pytest.approx(linear(PARAMS, X))
    assert tangent == pytest.approx(bars["w"] @ W + bars["b"])
    with pytest.raises(ValueError, match="params_dot must be a dictionary with the keys 'w', 'b'"):
        srcdiff.jvp(linear, (PARAMS, X), ({"w": W}, None), backend="python")
    with pytest.raises(ValueError, match="must be an instance of Model"):
        srcdiff.jvp(with_methods, (Model(W, 0.5), X), (PARAMS, None), backend="python")


def test_second_derivatives_are_structures_of_structures():
    hessian = srcdiff.hessian(linear, backend="python")(PARAMS, X)
    product = srcdiff.hvp(linear, backend="python")(PARAMS, X, {"w": np.array([1.0, 0.0]), "b": 0.0})
    assert hessian["w"]["w"].shape == (2, 2)
    np.testing.assert_allclose(hessian["w"]["w"][:, 0], product["w"])
    np.testing.assert_allclose(hessian["b"]["w"][0], product["b"])


def test_results_may_be_structures():
    def several(params, x):
        return {"twice": params["w"] * 2.0, "model": Model(params["w"], x[1, 0]), "text": "t"}

    found = srcdiff.differentiable(several, backend="python")(PARAMS, X)
    assert list(found) == ["twice", "model", "text"]
    model = found["model"]
    assert type(model) is Model
    assert model.w is PARAMS["w"]
    assert (model.b, model.name) == (0.4, "model")
    jacobian = srcdiff.jacobian(several, backend="python")(PARAMS, X)
    np.testing.assert_allclose(jacobian["twice"]["w"], 2.0 * np.eye(2))


def test_gradients_are_written_into_a_given_structure():
    gradient = srcdiff.grad(linear, backend="python")
    out = {"w": np.zeros(2), "b": None}

    assert gradient(PARAMS, X, out=out)["w"] is out["w"]
    np.testing.assert_allclose(out["w"], gradient(PARAMS, X)["w"])
    np.testing.assert_allclose(gradient.workspace(PARAMS, X)(PARAMS, X)["w"], out["w"])
    with pytest.raises(ValueError, match="`out` for `params` must be a dict like it"):
        gradient(PARAMS, X, out={"w": np.zeros(2)})


def test_batch_over_data_has_a_gradient_for_each():
    batch = srcdiff.batched(srcdiff.grad(linear, backend="python"), over="x")
    found = batch(PARAMS, np.stack([X, 2.0 * X]))
    assert (found["w"].shape, found["b"].shape) == ((2, 2), (2,))
    np.testing.assert_allclose(found["w"][1], srcdiff.grad(linear, backend="python")(PARAMS, 2.0 * X)["w"])


def test_shared_arrays_that_are_written_are_named():
    with pytest.raises(DifferentiationError, match=r"`params\['v'\]` and `params\['w'\]` share memory"):
        srcdiff.grad(array_in_place, backend="python")({"v": W, "w": W, "b": 1.0}, X)


@pytest.mark.parametrize("key", [("a", "b"), 1.5, None])
def test_other_keys_than_texts_and_integers_are_refused(key):
    with pytest.raises(DifferentiationError, match="keys other than strings and integers"):
        srcdiff.grad(linear, backend="python")({key: 1.0}, X)


def test_other_dictionaries_are_refused():
    with pytest.raises(DifferentiationError, match="`params` is an instance of `defaultdict`"):
        srcdiff.grad(linear, backend="python")(defaultdict(float), X)


def misspells(params):
    return params["bias"]


def asks_at_run_time(params):
    return params[int(params["b"])]


def adds_up(params):
    return np.sum(params)


def compares(params):
    return 1.0 if params == params else 2.0


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (misspells, "has no key 'bias'; it has 'w', 'b'"),
        (asks_at_run_time, "must be known at compile time"),
        (adds_up, "a dictionary is used where"),
        (compares, "a dictionary is used where a number is needed"),
    ],
)
def test_what_is_not_read_is_refused(function, said):
    with pytest.raises(DifferentiationError, match=said):
        srcdiff.grad(function, backend="python")(PARAMS)


def has_no_such_field(model):
    return model.c


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (has_no_such_field, "`Model` has no `c`; it has w, b, name"),
    ],
)
def test_what_is_not_read_of_a_dataclass_is_refused(function, said):
    with pytest.raises(DifferentiationError, match=said):
        srcdiff.grad(function, backend="python")(Model(W, 1.0))


class Vector(NamedTuple):
    """A named tuple with vector addition."""

    x: float
    y: float

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)


class Doubled(namedtuple("Doubled", "x y")):
    """A named tuple that stores other values than its arguments."""

    __slots__ = ()

    def __new__(cls, x, y=0.0):
        return super().__new__(cls, 2.0 * x, y)


class Elsewhere(NamedTuple):
    """A named tuple whose elements differ when it is unpacked."""

    x: float
    y: float

    def __iter__(self):
        return iter((50.0, 60.0))


def unpacked(x, pair):
    a, b = pair
    return a * b * x


@dataclass
class Tripled:
    a: float

    def __setattr__(self, name, value):
        object.__setattr__(self, name, 3.0 * value)


class Shifted(list):
    """A list with another `__getitem__`."""

    def __getitem__(self, place):
        return 50.0


class Pairs(tuple):
    """A subclass of tuple."""

    __slots__ = ()


class Heavy(float):
    """A float with its own multiplication."""

    def __mul__(self, other):
        return 1000.0


MATRIX = np.matrix([[1.0, 2.0], [3.0, 4.0]])
MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])
HEAVY = Heavy(2.0)


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (lambda x: Doubled(x).x, (1.5,), "overrides methods of a named tuple"),
        (lambda x, p: p.x * x, (1.5, Doubled(1.0)), "an instance of `Doubled`"),
        (unpacked, (1.5, Elsewhere(1.0, 2.0)), "an instance of `Elsewhere`"),
        (lambda x: Tripled(x).a, (1.5,), "defines `__setattr__`, which is not supported"),
        (lambda x, items: items[0] * x, (1.5, Shifted([1.0, 2.0])), "an instance of `Shifted`"),
        (lambda x, items: items[0] * x, (1.5, Pairs([1.0, 2.0])), "an instance of `Pairs`"),
        (lambda x: np.sum(MATRIX * MATRIX) * x, (1.5,), "an instance of `matrix`"),
        (lambda x: np.sum(MASKED) * x, (1.5,), "an instance of `MaskedArray`"),
        (lambda x: HEAVY * x, (1.5,), "an instance of `Heavy`"),
    ],
)
def test_classes_that_do_something_else_than_those_they_come_from_are_refused(function, arguments, said):
    with pytest.raises(DifferentiationError) as caught:
        srcdiff.grad(function, backend="python")(*arguments)

    assert said in caught.value.problems[0].message  # the message also quotes the line, which contains the text too


def test_a_named_tuple_with_an_operator_is_one_where_that_is_not_used():
    value, bar = srcdiff.value_and_grad(lambda p: p[0] * p.y + sum(p), backend="python")(Vector(1.0, 2.0))

    assert (value, bar) == (5.0, Vector(3.0, 2.0))


@pytest.mark.parametrize(
    "function", [lambda x: x if None > x else 2.0 * x, lambda x: x if "a" < 3 else 2.0 * x], ids=["none", "text"]
)
def test_values_without_an_order_are_refused(function):
    with pytest.raises(DifferentiationError, match="SD203"):
        srcdiff.grad(function, backend="python")(1.5)
