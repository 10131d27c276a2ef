"""Operations of PyTensor have the values and derivatives of the function, in all modes, and compile to Numba."""

import warnings

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")
import pytensor.tensor as pt  # noqa: E402
from pytensor.gradient import verify_grad  # noqa: E402

from srcdiff.bridges.pytensor import as_op  # noqa: E402  PyTensor is there

MODES = ["FAST_COMPILE", "NUMBA"]
FACTORS = np.linspace(0.5, 1.5, 7)
SIZES = np.array([1.0, 2.0])


@pytest.fixture(autouse=True)
def _no_object_mode():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*object mode.*")
        yield


def trajectory(rates, start, count, kind="both"):
    """Predator and prey. The function reads `FACTORS` from outside."""
    out = np.zeros((count, 2))
    u, v = start[0], start[1]
    for k in range(count):
        if kind == "both":
            out[k, 0] = u
        out[k, 1] = v
        u, v = u + 0.1 * (rates["a"] * u - u * v * FACTORS[k % 7]), v + 0.1 * (u * v - rates["b"] * v)
    return out


def directly(a, b, start):
    return np.sum(trajectory({"a": a, "b": b}, start, 6) ** 2)


@pytest.mark.parametrize("mode", MODES)
def test_values_gradients_and_hessians_in_a_graph(mode):
    a, b, start = pt.dscalar("a"), pt.dscalar("b"), pt.dvector("start")
    op = as_op(trajectory)
    total = (op({"a": a, "b": b}, start, 6) ** 2).sum()
    outputs = [total, *pytensor.grad(total, [a, b, start]), pytensor.gradient.hessian(total, start)]
    value, of_a, of_b, of_start, curvature = pytensor.function([a, b, start], outputs, mode=mode)(1.0, 0.5, SIZES)

    step = 1e-5
    units = np.eye(2) * step
    np.testing.assert_allclose(value, directly(1.0, 0.5, SIZES), rtol=1e-12)
    np.testing.assert_allclose(
        of_a, (directly(1.0 + step, 0.5, SIZES) - directly(1.0 - step, 0.5, SIZES)) / (2 * step), rtol=1e-7
    )
    np.testing.assert_allclose(
        of_b, (directly(1.0, 0.5 + step, SIZES) - directly(1.0, 0.5 - step, SIZES)) / (2 * step), rtol=1e-7
    )
    np.testing.assert_allclose(
        of_start,
        [(directly(1.0, 0.5, SIZES + u) - directly(1.0, 0.5, SIZES - u)) / (2 * step) for u in units],
        rtol=1e-7,
    )
    gradient = pytensor.function([a, b, start], outputs[3], mode="FAST_COMPILE")
    np.testing.assert_allclose(
        curvature, [(gradient(1, 0.5, SIZES + u) - gradient(1, 0.5, SIZES - u)) / (2 * step) for u in units], rtol=1e-6
    )


def both(p, t):
    return {"sum": p["w"] * np.sum(t), "parts": (p["w"] * t * t, t[0])}


@pytest.mark.parametrize("mode", MODES)
def test_several_results_have_their_structure_and_derivatives(mode):
    w, t = pt.dscalar("w"), pt.dvector("t")
    found = as_op(both)({"w": w}, t)
    assert ({"sum", "parts"}, tuple) == ({*found}, type(found["parts"]))
    total = found["sum"] * 2.0 + found["parts"][0][1]
    outputs = [found["sum"], *found["parts"], *pytensor.grad(total, [w, t]), pytensor.gradient.hessian(total, t)]
    values = pytensor.function([w, t], outputs, mode=mode)(3.0, SIZES)
    for value, expected in zip(values, [9.0, [3.0, 12.0], 1.0, 10.0, [6.0, 18.0], [[0, 0], [0, 6.0]]], strict=True):
        np.testing.assert_allclose(value, expected)


def test_verify_grad_of_pytensor():
    op = as_op(trajectory)
    random = np.random.default_rng(0)
    verify_grad(lambda start: op({"a": 1.0, "b": 0.5}, start, 5), [SIZES], rng=random)
    verify_grad(lambda a, b: op({"a": a, "b": b}, SIZES, 5, kind="one"), [np.array(1.0), np.array(0.5)], rng=random)


@pytest.mark.parametrize("mode", MODES)
def test_forward_mode(mode):
    x = pt.dvector("x")
    y = as_op(lambda x: x[0] * np.sin(x))(x)
    moved = pytensor.gradient.pushforward([y], [x], [pt.constant(np.array([1.0, 2.0]))], use_op_pushforward=True)
    found = pytensor.function([x], moved, mode=mode)(SIZES)[0]
    np.testing.assert_allclose(found, np.sin(SIZES) + 1.0 * np.cos(SIZES) * np.array([1.0, 2.0]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes_and_integers(mode, dtype):
    def picked(x, places, scale):
        return x[places] * scale * scale

    x, scale = pt.vector("x", dtype=dtype), pt.scalar("scale", dtype=dtype)
    y = as_op(picked)(x, np.array([2, 0, 2]), scale)
    of_x, of_scale = pytensor.grad(y.sum(), [x, scale])
    given = np.array([1.0, 2.0, 3.0], dtype)
    value, x_bar, scale_bar = pytensor.function([x, scale], [y, of_x, of_scale], mode=mode)(
        given, np.asarray(2.0, dtype)
    )
    assert (dtype, dtype, dtype) == (str(value.dtype), str(x_bar.dtype), str(scale_bar.dtype))
    np.testing.assert_allclose(value, [12.0, 4.0, 12.0])
    np.testing.assert_allclose(x_bar, [4.0, 0.0, 8.0])
    np.testing.assert_allclose(scale_bar, 4.0 * 7.0)


@pytest.mark.parametrize("mode", MODES)
def test_arguments_are_not_written_and_results_share_no_memory(mode):
    def scaled(x):
        x[0] = 5.0
        return x

    x = pt.dvector("x")
    y = as_op(scaled)(x)
    z = as_op(lambda x: x)(x)
    f = pytensor.function([pytensor.In(x, borrow=True)], [y, z], mode=mode)
    given = SIZES.copy()
    first, second = f(given)
    first[:], second[:] = 0.0, 0.0
    assert [1.0, 2.0] == given.tolist()


@pytest.mark.parametrize("mode", MODES)
def test_axes_of_length_one_strides_and_empty_arrays(mode):
    row, matrix = pt.TensorType("float64", (1, None))("row"), pt.dmatrix("matrix")
    y = as_op(lambda a, b: a * b)(row, matrix)
    f = pytensor.function([row, matrix], [y, *pytensor.grad(y.sum(), [row, matrix])], mode=mode)
    a, b = np.array([[1.0, 2.0, 3.0]]), np.arange(24.0).reshape(4, 6)[:, ::2]
    value, of_a, of_b = f(a, b)
    np.testing.assert_allclose(value, a * b)
    np.testing.assert_allclose(of_a, b.sum(axis=0, keepdims=True))
    np.testing.assert_allclose(of_b, np.broadcast_to(a, b.shape))
    assert (0, 0) == f(np.zeros((1, 0)), np.zeros((0, 0)))[0].shape


@pytest.mark.parametrize("mode", MODES)
def test_exceptions_of_the_function_reach_the_caller(mode):
    def root(x):
        if x < 0.0:
            raise ValueError("negative")
        return np.sqrt(x)

    x = pt.dscalar("x")
    f = pytensor.function([x], pytensor.grad(as_op(root)(x), x), mode=mode)
    assert float(f(4.0)) == 0.25
    with pytest.raises(ValueError, match="negative"):
        f(-1.0)


@pytest.mark.parametrize("mode", MODES)
def test_shapes_strides_read_only_memory_and_nan(mode):
    x = pt.dmatrix("x")
    y = as_op(lambda x: x[0] @ x[1])(x)
    f = pytensor.function([pytensor.In(x, borrow=True)], [y, pytensor.grad(y, x)], mode=mode)
    given = np.arange(6.0).reshape(3, 2).T
    given.flags.writeable = False
    value, gradient = f(given)
    assert (given[0] @ given[1], given[::-1].tolist()) == (value, gradient.tolist())
    given = np.array([[np.nan, 1.0], [1.0, 1.0]])
    assert np.isnan(f(given)[0])
    with pytest.raises(TypeError, match="dimensions"):  # PyTensor's own check
        f(np.ones(2))
    with pytest.raises(TypeError, match="float64"):
        f(np.ones((2, 2), complex))


def test_bad_arguments_are_refused_when_the_graph_is_built():
    op = as_op(lambda x: np.sum(x))
    with pytest.raises(TypeError, match=r"`x` is a tensor of complex128"):
        op(pt.zvector("x"))
    with pytest.raises(TypeError, match=r"`x` is a object"):
        op(object())
    with pytest.raises(TypeError, match="missing a required argument"):
        op()
    with pytest.raises(TypeError, match="must return floats and arrays"):
        as_op(lambda x: (x, "text"))(1.0)
    with pytest.raises(TypeError, match="must have floats"):
        as_op(lambda x: np.arange(len(x)))(SIZES)
    with pytest.raises(TypeError, match="not a Python function"):
        as_op(np.sin)


def test_a_changed_function_is_read_again():
    factor = np.array([2.0])

    def scaled(x):
        return factor[0] * x

    op, x = as_op(scaled), pt.dscalar("x")
    assert float(pytensor.function([x], op(x), mode="NUMBA")(1.0)) == 2.0
    assert op(x).owner.op is op(x).owner.op
    factor[0] = 3.0
    assert float(pytensor.function([x], op(x), mode="NUMBA")(1.0)) == 3.0


@pytest.mark.parametrize("name", ["f", "np", "compiled"])
def test_any_name_of_a_function(name):
    def squares(x):
        return np.sum(x**2)

    squares.__name__ = name
    x = pt.dvector("x")
    y = as_op(squares)(x)
    value, gradient = pytensor.function([x], [y, pytensor.grad(y, x)], mode="NUMBA")(np.array([1.0, 2.0]))
    assert (5.0, [2.0, 4.0]) == (value, gradient.tolist())


def test_a_model_of_pymc_samples_by_nutpie():
    pymc, nutpie = pytest.importorskip("pymc"), pytest.importorskip("nutpie")

    def line(slope, start, times):
        out = np.zeros(len(times))
        for k in range(len(times)):
            out[k] = start + slope * times[k]
        return out

    times = np.linspace(0.0, 1.0, 20)
    with pymc.Model() as model:
        slope, start = pymc.Normal("slope"), pymc.Normal("start")
        pymc.Normal("measured", as_op(line)(slope, start, times), 0.1, observed=1.0 + 2.0 * times)
    trace = nutpie.sample(nutpie.compile_pymc_model(model), draws=300, tune=300, chains=2, seed=1, progress_bar=False)
    np.testing.assert_allclose(float(trace.posterior["slope"].mean()), 1.98, atol=0.05)
    np.testing.assert_allclose(float(trace.posterior["start"].mean()), 1.0, atol=0.05)
