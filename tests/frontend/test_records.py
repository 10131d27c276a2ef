"""NumPy's records and structured arrays: fields read and written, arrays of records, gradients of the same dtype."""

import numpy as np
import pytest
from numba import njit

import srcdiff
from srcdiff import DifferentiationError

RATE = np.dtype([("k1", "f8"), ("k2", "f8")])
RECORD = np.dtype((np.record, RATE))
BODY = np.dtype([("mass", "f8"), ("x", "f8", (3,)), ("v", "f8", (3,)), ("id", "i4")])
NESTED = np.dtype([("start", [("u", "f8"), ("v", "f8")]), ("weight", "f8")])
PACKED = np.dtype([("flag", "?"), ("x", "f4"), ("n", "i2"), ("y", "f8")])


def rates(n=3):
    p = np.zeros(n, RATE)
    p["k1"], p["k2"] = 0.5 + 0.3 * np.arange(n), 1.5 - 0.2 * np.arange(n)
    return p


def bodies(n=3):
    b = np.zeros(n, BODY)
    b["mass"] = 1.0 + 0.1 * np.arange(n)
    b["x"], b["v"] = np.sin(1.0 + np.arange(3 * n).reshape(n, 3)), np.cos(np.arange(3 * n).reshape(n, 3))
    b["id"] = np.arange(n)
    return b


def packed(n=4):
    p = np.zeros(n, PACKED)
    p["flag"], p["n"], p["y"] = np.arange(n) % 2 == 0, np.arange(n), 1.0 + 0.5 * np.arange(n)
    return p


def nested(n=3):
    p = np.zeros(n, NESTED)
    p["start"]["u"], p["start"]["v"], p["weight"] = np.arange(n) + 0.5, 2.0 - np.arange(n), 1.0 + np.arange(n)
    return p


# -- the corpus --------------------------------------------------------------------------------------------------------


def by_key(p, x):
    return p["k1"] * x + p["k2"] * x**2


def by_attribute(p, x):
    return p.k1 * x + np.exp(p.k2 * x)


def elements_by_index(p, x):
    s = 0.0
    for i in range(p.shape[0]):
        s += p[i]["k1"] * x + p["k2"][i] * x**2 * p[i].k1
    return s


def elements_in_turn(p, x):
    s = 0.0
    for r in p:
        s += np.sin(r["k1"] * x) * r.k2
    return s


def elements_numbered(p, x):
    s = 0.0
    for i, (r, q) in enumerate(zip(p, p[::-1])):  # noqa: B905
        s += i * r["k1"] * q["k2"] * x
    return s


def whole_fields(p, x):
    return np.sum(p["k1"] * x) + np.dot(p["k1"], p["k2"]) + np.max(p["k2"]) * x


def helper(r, x):
    return r["k1"] / (r["k2"] + x)


def passed_to_a_helper(p, x):
    s = 0.0
    for i in range(len(p)):
        s += helper(p[i], x)
    return s


def slices(p, x):
    return np.sum(p[1:]["k1"] * p["k2"][:-1]) * x + p[-1]["k1"]


def masked(p, x):
    q = p[p["k1"] > 0.6]
    return np.sum(q["k1"] * q["k2"]) * x


def fields_written(p, x):
    for i in range(len(p)):
        p[i]["k1"] = p[i]["k1"] * x
        p["k2"][i] += p[i].k1
    p["k1"] *= 2.0
    p["k2"][1:] = p["k1"][:-1] * p["k2"][1:]
    return np.sum(p["k1"] * p["k2"])


def record_written(p, x):
    p["k1"] = p["k1"] * x
    p["k2"] += p["k1"] ** 2
    return p["k1"] * p["k2"]


def through_another_name(p, x):
    r = p[1]
    p["k1"][1] = x * x
    r["k2"] = r["k1"] * 3.0
    return p[1]["k2"] * r["k1"] + p["k2"][0]


def chosen_record(p, x):
    r = p[0]
    if x > 1.0:
        r = p[1]
    r["k1"] += x
    return p["k1"][0] * p["k1"][1] * r["k2"]


def largest_record(p, x):
    best = p[0]
    for r in p:
        if r["k1"] > best["k1"]:
            best = r
    return best["k1"] * best["k2"] * x


def records_assigned(p, x):
    q = np.zeros(3, RATE)
    q[0] = p[2]
    q[1] = (x, x * p[1]["k1"])
    q[2:] = p[:1]
    return np.sum(q["k1"] * q["k2"]) + q[2]["k1"]


def made_inside(n, x):
    p = np.empty(n, dtype=RECORD)
    for i in range(n):
        p[i].k1 = x * i
        p[i].k2 = x**2 + i
    return np.sum(p["k1"] * p["k2"])


def made_of_tuples(x, y):
    p = np.array([(x, y), (y * y, 2.0)], dtype=RATE)
    return p[0]["k1"] * p[1]["k1"] + p["k2"][0]


def made_like(p, x):
    q = np.zeros_like(p)
    q["k1"] = p["k2"] * x
    c = p.copy()
    c["k1"][0] = 7.0 * x
    return np.sum(q["k1"] ** 2) + np.sum(c["k1"] * p["k1"]) + q.size + q.ndim


def gravity(b, dt):
    """Fields with vectors, and an integer that has no derivative."""
    for i in range(len(b)):
        for j in range(len(b)):
            if b[i]["id"] != b[j]["id"]:
                d = b[j]["x"] - b[i]["x"]
                b[i]["v"] += dt * b[j]["mass"] * d / np.sum(d * d) ** 1.5
    for r in b:
        r["x"] += dt * r["v"]
    return np.sum(b["mass"] * np.sum(b["v"] ** 2, axis=1)) + b["x"][0, 1]


def nested_fields(p, x):
    s = 0.0
    for r in p:
        s += r["start"]["u"] * r.start.v * r.weight * x
    return s + np.sum(p["start"]["u"] ** 2)


def unaligned_fields(p, x):
    s = 0.0
    for r in p:
        if r["flag"]:
            s += r["y"] * x ** r["n"]
    return s + np.sum(p["y"] ** 2)


def table(p, x):
    """A structured array with two axes."""
    s = 0.0
    for i in range(p.shape[0]):
        for j in range(p.shape[1]):
            s += p[i, j]["k1"] * p["k2"][j, i] * x
        row = p[i]
        s += np.sum(row["k1"]) * row[0]["k2"]
    return s


def stepped(p, x):
    """A name that refers to another part of the array in each iteration."""
    s = 0.0
    while len(p) > 0:
        s = s * x + p[0]["k1"] * p[0]["k2"]
        p = p[1:]
    return s


@njit
def compiled(p, x):
    total = 0.0
    for i in range(p.size):
        total += p[i].k1 * x / (1.0 + p[i].k2 ** 2)
    return total


SQUARE = rates(9).reshape(3, 3)
PROGRAMS = [
    (by_key, (rates()[0], 1.3)),
    (by_key, (rates().view(np.recarray)[1], 1.3)),
    (by_attribute, (rates().view(np.recarray)[1], 0.7)),
    (elements_by_index, (rates().view(np.recarray), 1.3)),
    (elements_by_index, (rates(0), 1.3)),
    (elements_in_turn, (rates(5).view(np.recarray)[::2], 1.3)),
    (elements_numbered, (rates(), 1.3)),
    (whole_fields, (rates(), 1.3)),
    (whole_fields, (rates().view(np.recarray), 1.3)),
    (passed_to_a_helper, (rates(), 1.3)),
    (slices, (rates(4), 1.3)),
    (masked, (rates(4), 1.3)),
    (fields_written, (rates().view(np.recarray), 1.3)),
    (fields_written, (rates(6).view(np.recarray)[::-2], 1.3)),
    (record_written, (rates()[1], 1.3)),
    (through_another_name, (rates(), 1.3)),
    (chosen_record, (rates(), 1.3)),
    (chosen_record, (rates(), 0.3)),
    (largest_record, (rates(), 1.3)),
    (records_assigned, (rates(), 1.3)),
    (made_inside, (4, 1.3)),
    (made_of_tuples, (1.3, 0.4)),
    (made_like, (rates(), 1.3)),
    (gravity, (bodies(), 0.1)),
    (nested_fields, (nested().view(np.recarray), 1.3)),
    (unaligned_fields, (packed(), 1.3)),
    (table, (SQUARE, 1.3)),
    (table, (SQUARE.T, 1.3)),
    (stepped, (rates(4), 1.3)),
    (compiled, (rates(), 1.3)),
]


def plain(f):
    return getattr(f, "py_func", f)


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=[plain(f).__name__ for f, _ in PROGRAMS])
def test_programs_agree_with_differences_in_all_modes(f, args):
    before = [np.array(a, copy=True) for a in args]
    srcdiff.check(f, *args, order=2, backend="python")
    for a, b in zip(args, before, strict=True):
        assert np.array_equal(np.array(a), b)


COMPILED = [gravity, fields_written, by_key, nested_fields, unaligned_fields, stepped, compiled, records_assigned]


@pytest.mark.numba
@pytest.mark.parametrize("f", COMPILED, ids=lambda f: plain(f).__name__)
def test_compiled_programs_agree_with_differences(f):
    srcdiff.check(f, *next(a for g, a in PROGRAMS if g is f))


def test_the_gradient_has_the_structured_dtype_of_the_argument():
    p = rates()
    bar = srcdiff.grad(elements_by_index, backend="python")(p, 2.0)
    assert bar.dtype == p.dtype
    assert bar.shape == p.shape
    one = srcdiff.grad(by_key, backend="python")(p[0], 2.0)
    assert isinstance(one, np.void)
    assert (one["k1"], one["k2"]) == (2.0, 4.0)
    assert isinstance(srcdiff.grad(whole_fields, backend="python")(p.view(np.recarray), 2.0), np.recarray)


def test_integers_have_no_place_in_a_gradient():
    bar = srcdiff.grad(gravity, backend="python")(bodies(), 0.1)
    assert bar.dtype.names == ("mass", "x", "v")
    assert bar["x"].shape == (3, 3)


def test_a_batch_shares_structured_arrays_and_is_not_over_them():
    slope = srcdiff.grad(whole_fields, wrt="x", backend="python")
    assert np.allclose(srcdiff.batched(slope, over="x")(rates(), np.ones(4)), slope(rates(), 1.0))
    with pytest.raises(TypeError, match="name other arguments in `over`"):
        srcdiff.batched(slope, over="p")(SQUARE, 1.3)


LIMITS = rates()
FIRST = rates()[0]


def from_outside(x):
    s = FIRST["k1"] * x
    for r in LIMITS:
        s += r["k2"] * x**2
    return s


def test_records_from_outside_are_read_at_every_call():
    g = srcdiff.grad(from_outside, backend="python")
    before = g(1.0)
    LIMITS["k2"][0] += 1.0
    FIRST["k1"] += 3.0
    try:
        assert np.isclose(g(1.0), before + 5.0)
    finally:
        LIMITS["k2"][0] -= 1.0
        FIRST["k1"] -= 3.0


def returned(p, x):
    q = p.copy()
    q["k1"] *= x
    return q


def returned_record(p, x):
    p[0]["k1"] = x * x
    return p[0]


def test_results_are_records_and_structured_arrays():
    value, tangent = srcdiff.jvp(returned, (rates(), 2.0), (None, 1.0), backend="python")
    assert value.dtype == RATE
    assert np.array_equal(tangent["k1"], rates()["k1"])
    value, tangent = srcdiff.jvp(returned_record, (rates(), 2.0), (None, 1.0), backend="python")
    assert isinstance(value, np.void)
    assert (value["k1"], tangent["k1"]) == (4.0, 4.0)


def test_a_tangent_has_the_fields_of_floats():
    dot = np.ones(3, RATE)
    _, tangent = srcdiff.jvp(whole_fields, (rates(), 1.0), (dot, 0.0), backend="python")
    bar = srcdiff.grad(whole_fields, backend="python")(rates(), 1.0)
    assert np.isclose(tangent, bar["k1"].sum() + bar["k2"].sum())
    with pytest.raises(ValueError, match="must have the fields k1, k2"):
        srcdiff.jvp(whole_fields, (rates(), 1.0), (np.ones(3), 0.0), backend="python")


def test_the_function_itself_writes_into_the_callers_array():
    p = rates()
    srcdiff.differentiable(fields_written, backend="python")(p, 1.3)
    q = rates().view(np.recarray)
    fields_written(q, 1.3)
    assert np.array_equal(p, np.asarray(q))


def two(p, q, x):
    p["k1"] = x * x
    return p["k1"] * q["k1"]


def test_records_that_share_memory_are_refused_where_one_is_written():
    p = rates()
    with pytest.raises(DifferentiationError, match="shares memory with another argument"):
        srcdiff.grad(two, wrt="x", backend="python")(p[0], p[0], 1.3)
    g = srcdiff.grad(two, wrt="x", backend="python")
    assert np.isclose(g(p[0], p[1], 1.3), 2.6 * p[1]["k1"])


def element_and_array(r, p, x):
    p["k1"][:] = x * x
    return r["k1"] * x


def test_a_record_of_an_array_that_is_written_is_refused():
    p = rates()
    with pytest.raises(DifferentiationError, match="shares memory with another argument"):
        srcdiff.grad(element_and_array, wrt="x", backend="python")(p[0], p, 1.3)
    other = rates()
    assert np.isclose(srcdiff.grad(element_and_array, wrt="x", backend="python")(p[0], other, 1.3), p[0]["k1"])


def with_text(p, x):
    return p["y"] * x


def text_used(p, x):
    return p["name"] * x


def test_a_field_that_cannot_be_used_must_not_be_used():
    p = np.array([("a", 2.0)], np.dtype([("name", "U4"), ("y", "f8")]))
    assert srcdiff.grad(with_text, wrt="x", backend="python")(p[0], 1.0) == 2.0
    assert srcdiff.grad(with_text, backend="python")(p[0], 3.0)["y"] == 3.0
    with pytest.raises(DifferentiationError, match="the field `name` is"):
        srcdiff.grad(text_used, wrt="x", backend="python")(p[0], 1.0)
    with pytest.raises(DifferentiationError, match="has no field `z`"):
        srcdiff.grad(lambda p, x: p["z"] * x, wrt="x", backend="python")(p[0], 1.0)


def test_other_dtypes_have_another_specialisation():
    g = srcdiff.grad(by_key, backend="python")
    single = np.array([(1.0, 2.0)], np.dtype([("k2", "f4"), ("k1", "f4")]))[0]
    assert g(rates()[0], 2.0)["k2"] == 4.0
    assert g(single, 2.0)["k2"] == 4.0
    assert g(single, 2.0).dtype == single.dtype
