"""The flat view of parameters: a vector with names and slices, and the structure back."""

import collections
import enum
import functools
from dataclasses import dataclass, field

import numpy as np
import pytest

import srcdiff

Pair = collections.namedtuple("Pair", "first second")


class Colour(enum.IntEnum):
    RED = 3


@dataclass(frozen=True)
class Layer:
    weights: np.ndarray
    offset: float
    name: str = "layer"
    sizes: np.ndarray = field(default_factory=lambda: np.array([1, 2]))

    @functools.cached_property
    def total(self):
        return self.weights.sum()


def loss(p, t):
    return np.sum(p["layer"].weights) * p["pair"].first + p["layer"].offset * t


def parameters():
    return {
        "layer": Layer(np.arange(6.0).reshape(2, 3), 0.5),
        "pair": Pair(np.float32(1.5), [1.0, 2]),
        "count": 4,
        "flag": True,
        "colour": Colour.RED,
        "nothing": None,
        "single": np.array(7.0, np.float32),
        "empty": np.zeros((0, 2)),
    }


NAMES = [
    *(f"p['layer'].weights[{i}, {j}]" for i in range(2) for j in range(3)),
    "p['layer'].offset",
    "p['pair'].first",
    "p['pair'].second[0]",
    "p['pair'].second[1]",
    "p['count']",
    "p['single']",
]


def test_names_and_slices_say_where_each_number_is():
    view = srcdiff.grad(loss).ravel(parameters(), 2.0)

    assert NAMES == view.names
    assert np.array_equal([0, 1, 2, 3, 4, 5, 0.5, 1.5, 1, 2, 4, 7], view.x)
    assert slice(0, 6) == view.slices["p['layer'].weights"]
    assert slice(12, 12) == view.slices["p['empty']"]
    assert len(NAMES) == view.size


def test_unravel_rebuilds_structure_types_and_other_parts():
    given = parameters()
    view = srcdiff.grad(loss).ravel(given, 2.0)

    made = view.unravel(view.x + 1.0)

    assert list(given) == list(made)
    assert np.array_equal(given["layer"].weights + 1.0, made["layer"].weights)
    assert (1.5, "layer") == (made["layer"].offset, made["layer"].name)
    assert made["layer"].sizes is given["layer"].sizes
    assert (Pair, np.float32) == (type(made["pair"]), type(made["pair"].first))
    assert [2.0, 3.0] == made["pair"].second
    assert (5.0, float) == (made["count"], type(made["count"]))
    assert (True, Colour.RED, None) == (made["flag"], made["colour"], made["nothing"])
    assert (np.float32, (), 8.0) == (made["single"].dtype, made["single"].shape, made["single"])
    assert (0, 2) == made["empty"].shape


def test_ravel_takes_gradients_in_which_other_parts_are_none():
    view = srcdiff.grad(loss).ravel(parameters(), 2.0)
    gradient = srcdiff.grad(loss, backend="python")(parameters(), 2.0)

    assert np.array_equal([1.5] * 6 + [2.0, 15.0] + [0.0] * 4, view.ravel(gradient))


def test_unravelled_arrays_share_no_memory_with_the_vector():
    view = srcdiff.grad(loss).ravel(parameters(), 2.0)
    x = view.x.copy()
    made = view.unravel(x)
    x[:] = -1.0
    assert np.array_equal(parameters()["layer"].weights, made["layer"].weights)


def test_several_arguments_follow_wrt():
    view = srcdiff.grad(lambda a, b, c: a * b[0] * c, wrt=("c", "b")).ravel(1.0, np.array([2.0, 3.0]), 4.0)

    assert ["c", "b[0]", "b[1]"] == view.names
    assert np.array_equal([4.0, 2.0, 3.0], view.x)
    c, b = view.unravel([5.0, 6.0, 7.0])
    assert (5.0, [6.0, 7.0]) == (c, b.tolist())
    assert np.array_equal([5.0, 6.0, 7.0], view.ravel((c, b)))
    assert (1.0, 5.0) == view.arguments([5.0, 6.0, 7.0])[::2]


def test_keywords_defaults_and_star_arguments_are_bound():
    view = srcdiff.grad(lambda a, *b, c=3.0, **d: a, wrt=("b", "c", "d")).ravel(1.0, 2.0, 5.0, e=4.0)
    assert ["b[0]", "b[1]", "c", "d['e']"] == view.names
    assert np.array_equal([2.0, 5.0, 3.0, 4.0], view.x)


def test_parameters_are_those_with_a_gradient():
    """The flat view and `grad` agree on what a parameter is, whatever is beside it."""
    given = {"f": 1.0, "i": 2, "n": np.int64(3), "a": np.ones(2), "k": np.ones(2, int), "b": np.ones(2, bool), "s": "s"}
    view = srcdiff.grad(lambda p: p["f"]).ravel(given)
    gradient = srcdiff.grad(lambda p: p["f"], backend="python")(given)
    assert [f"p[{n!r}]" for n, g in gradient.items() if g is not None] == list(view.slices)


def test_complex_numbers_are_two_numbers_of_the_vector():
    def misfit(p):
        return np.sum(np.abs(p["z"] - 1j) ** 2) + (p["w"] * p["w"]).imag * p["x"]

    given = {"z": np.array([[1.0 + 2.0j], [3.0j]], np.complex64), "x": 3.0, "w": 2.0 - 1.0j}
    view = srcdiff.grad(misfit).ravel(given)
    assert ["p['z'][0, 0].real", "p['z'][0, 0].imag"] == view.names[:2]
    assert ["p['x']", "p['w'].real", "p['w'].imag"] == view.names[4:]
    assert [1.0, 2.0, 0.0, 3.0, 3.0, 2.0, -1.0] == view.x.tolist()
    back = view.unravel(np.arange(7.0))
    assert back["z"].dtype == np.complex64
    assert [[1j], [2.0 + 3.0j]] == back["z"].tolist()
    assert (back["x"], back["w"]) == (4.0, 5.0 + 6.0j)

    slopes = view.ravel(srcdiff.grad(misfit, backend="python")(given))
    for k, unit in enumerate(np.eye(7)):
        ends = [misfit(view.unravel(view.x + step * unit)) for step in (0.5, -0.5)]
        assert abs(ends[0] - ends[1] - slopes[k]) < 1e-5, view.names[k]  # of a quadratic; singles have seven digits


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.zeros(3), ValueError, r"shape \(2,\), not \(3,\)"),
        (np.zeros((1, 2)), ValueError, r"not \(1, 2\)"),
        (1.0, ValueError, r"not \(\)"),
        (np.zeros(2, complex), TypeError, "real numbers, not complex128"),
        (["a", "b"], TypeError, "real numbers, not <U1"),
        (None, TypeError, "real numbers, not object"),
        (np.zeros(2, bool), TypeError, "real numbers, not bool"),
    ],
)
def test_unravel_refuses_other_vectors(x, error, message):
    view = srcdiff.grad(lambda p: p[0] * p[1]).ravel((1.0, 2.0))
    with pytest.raises(error, match=message):
        view.unravel(x)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ({"w": np.zeros(3), "b": 0.0}, ValueError, r"`p\['w'\]` must have the shape \(2,\)"),
        ({"w": np.zeros(2)}, ValueError, "a dict with 2 parts"),
        ({"w": np.zeros(2), "c": 0.0}, ValueError, "must have the keys 'w', 'b'"),
        ({"w": np.zeros(2), "b": None}, TypeError, r"`p\['b'\]` must be a number or an array, not None"),
        ({"w": np.zeros(2), "b": 1j}, TypeError, "real numbers, not complex"),
        ((np.zeros(2), 0.0), ValueError, "a dict with 2 parts"),
    ],
)
def test_ravel_refuses_other_structures(value, error, message):
    view = srcdiff.grad(lambda p: p["b"]).ravel({"w": np.zeros(2), "b": 0.0})
    with pytest.raises(error, match=message):
        view.ravel(value)


def test_keys_in_another_order_are_the_same_parameters():
    view = srcdiff.grad(lambda p: p["b"]).ravel({"w": 1.0, "b": 2.0})
    assert np.array_equal([1.0, 2.0], view.ravel({"b": 2.0, "w": 1.0}))


def test_object_that_overrides_its_class_is_refused():
    layer = Layer(np.ones(2), 1.0)
    assert layer.total == 2.0  # which is stored in the object, and would be lost or stale
    with pytest.raises(TypeError, match="`total` of its class Layer"):
        srcdiff.grad(loss).ravel({"layer": layer}, 1.0)


class Model:
    def __init__(self, w):
        self.w, self.scale, self.name = w, 2, "model"


def test_attributes_of_instances_are_parameters():
    view = srcdiff.grad(lambda m, t: m.scale * np.sum(m.w) * t).ravel(Model(np.ones(2)), 1.0)
    made = view.unravel([3.0, 4.0, 5.0])
    assert ["m.w[0]", "m.w[1]", "m.scale"] == view.names
    assert (Model, [3.0, 4.0], 5.0, "model") == (type(made), made.w.tolist(), made.scale, made.name)


def test_instance_that_refers_to_itself_is_refused():
    model = Model(np.ones(2))
    model.itself = model
    with pytest.raises(TypeError, match="refers to itself"):
        srcdiff.grad(lambda m: np.sum(m.w)).ravel(model)


def test_only_derivatives_by_arguments_have_a_flat_view():
    def squared(x):
        y = x * x
        return y

    with pytest.raises(TypeError, match="`y` is not an argument"):
        srcdiff.grad(squared, wrt="y").ravel(1.0)
    with pytest.raises(TypeError, match="there is nothing to differentiate with respect to"):
        srcdiff.differentiable(squared).ravel(1.0)
