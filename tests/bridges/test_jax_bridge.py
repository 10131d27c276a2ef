"""Functions of srcdiff in JAX: its own check of gradients passes, inside all transformations. Run by .ci/bridges."""

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import srcdiff

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402  JAX is there
from jax.test_util import check_grads  # noqa: E402

from srcdiff.bridges.jax import function  # noqa: E402


def loss(x, s, k):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.4:
            total += np.sin(x[i]) * s * x[i] * k
        else:
            total += x[i] ** 3
    return total


def layer(x, w):
    return np.tanh(w @ x)


def picked(x, index):
    return np.sum(x[index] ** 2)


def scaled(x, mode):
    return x * x if mode == "square" else x * 2.0


def model(params, t):
    total = params["offset"]
    for k in range(len(t)):
        total += params["pair"][0] * np.sin(params["pair"][1][0][1] * t[k])
    return total


def writes(x, y):
    x[0] = x[0] * y[1]
    y[1] = 2.0 * y[1]
    return np.sum(x) * y[1]


X = jnp.array([0.1, 0.3, 0.6, 1.0])
W = jnp.arange(6.0).reshape(3, 2) / 10.0
CASES = {
    "number": (function(loss), lambda x, s: (x, s, 3), (X, 2.0)),
    "array": (function(layer, shape=lambda x, w: (w.shape[0],)), lambda x, w: (x, w), (X[:2], W)),
    "index": (function(picked), lambda x: (x, jnp.array([0, 2, 2])), (X,)),
    "text": (function(scaled, shape=lambda x, mode: x.shape), lambda x: (x, "square"), (X,)),
    "structure": (function(model), lambda p: (p, X), ({"pair": (1.5, [X[1:3]]), "offset": 0.5},)),
    "written": (function(writes), lambda x, y: (x, y), (X, X[1:] + 1.0)),
    "interpreted": (function(loss, backend="python"), lambda x, s: (x, s, 3), (X, 2.0)),
    "empty": (function(loss), lambda x, s: (x, s, 3), (X[:0], 2.0)),
}
each_case = pytest.mark.parametrize("case", CASES)


def called(case):
    f, full, active = CASES[case]
    return lambda *args: f(*full(*args)), active


@each_case
def test_check_grads(case):
    f, args = called(case)
    check_grads(f, args, order=1 if case == "interpreted" else 2, modes=("fwd", "rev"), atol=1e-5, rtol=1e-5)


def both(p, t):
    return {"sum": p["w"] * np.sum(t), "parts": (p["w"] * t, t[0])}


BOTH = function(both, shape=lambda p, t: {"sum": (), "parts": (t.shape, ())})


def test_several_results_have_their_structure_and_derivatives():
    p = {"w": 3.0}
    found = BOTH(p, X)
    assert ({"sum", "parts"}, tuple) == ({*found}, type(found["parts"]))
    jax.tree.map(np.testing.assert_allclose, found, both(p, np.asarray(X)))
    check_grads(lambda w, t: BOTH({"w": w}, t), (3.0, X), order=2, modes=("fwd", "rev"))
    jax.tree.map(np.testing.assert_array_equal, jax.jit(BOTH)(p, X), found)
    rows = jnp.stack([X, 2.0 * X])
    batch = jax.vmap(BOTH, (None, 0))(p, rows)
    np.testing.assert_allclose(batch["parts"][0], 3.0 * rows)
    last, sums = jax.lax.scan(lambda t, _: (BOTH(p, t)["parts"][0], BOTH(p, t)["sum"]), X, length=3)
    np.testing.assert_allclose(last, 27.0 * X)
    np.testing.assert_allclose(sums[1], 9.0 * jnp.sum(X))
    gradient = jax.grad(lambda t: BOTH(p, t)["parts"][1] + 2.0 * BOTH(p, t)["sum"])(X)
    np.testing.assert_allclose(gradient, 6.0 + np.eye(4)[0])


def test_several_results_need_their_shapes():
    with pytest.raises(ValueError, match="needs `shape=`"):
        function(both)({"w": 1.0}, X)
    with pytest.raises(ValueError, match="a shape for each result"):
        function(both, shape=lambda p, t: (t.shape, ()))({"w": 1.0}, X)
    with pytest.raises(ValueError, match=r"`result\['sum'\]` has 0 axes, but `shape` says \(4,\)"):
        function(both, shape=lambda p, t: {"sum": t.shape, "parts": (t.shape, ())})({"w": 1.0}, X)
    first, second = function(lambda x: [x[0], x[1] * 2.0])(X)
    assert (X[0], 2.0 * X[1]) == (first, second)


def test_batches_and_jit_call_no_python():
    f = function(loss)
    text = jax.jit(jax.vmap(jax.grad(f), (0, None, None))).lower(jnp.stack([X, X]), 2.0, 3.0).as_text()
    assert "srcdiff_loss_pullback" in text
    assert "callback" not in text


def test_arguments_in_other_orders_of_memory_and_read_only():
    f, w = function(lambda w: np.sum(w[0] * w[1])), np.arange(6.0).reshape(3, 2).T
    w.flags.writeable = False
    assert float(np.sum(w[0] * w[1])) == f(w) == f(jnp.asarray(w)) == jax.jit(f)(jnp.asarray(w.T).T)


def test_third_derivatives():
    f, args = called("number")
    check_grads(f, args, order=3, modes=("fwd", "rev"))
    assert 60.0 * 4.0 == jax.grad(jax.grad(jax.grad(function(lambda x: x**5))))(2.0)


@each_case
def test_jit_agrees_with_eager_calls(case):
    f, args = called(case)
    assert jnp.array_equal(f(*args), jax.jit(f)(*args))
    eager = jax.vjp(f, *args)[1](jnp.ones_like(f(*args)))
    compiled = jax.jit(lambda *a: jax.vjp(f, *a)[1](jnp.ones_like(f(*a))))(*args)
    jax.tree.map(np.testing.assert_array_equal, eager, compiled)


@each_case
def test_vmap_agrees_with_a_loop(case):
    f, args = called(case)
    batch = jax.tree.map(lambda a: jnp.stack([a, 1.1 * a, 0.9 * a]), args)
    rows = [jax.tree.map(lambda a, k=k: a[k], batch) for k in range(3)]
    np.testing.assert_array_equal(jax.vmap(f)(*batch), jnp.stack([f(*row) for row in rows]))
    gradient = jax.jacrev(f)
    expected = jax.tree.map(lambda *a: jnp.stack(a), *[gradient(*row) for row in rows])
    jax.tree.map(np.testing.assert_array_equal, jax.vmap(gradient)(*batch), expected)


def test_derivatives_of_a_batch_with_shared_arguments():
    f = function(loss)
    rows = jnp.stack([X, 2.0 * X, 0.5 * X])

    def total(rows, s):
        return jnp.sum(jax.vmap(f, (0, None, None))(rows, s, 3.0) ** 2)

    check_grads(total, (rows, 2.0), order=2, modes=("fwd", "rev"))


def test_nested_vmap():
    f = function(loss)
    s = jnp.array([1.0, 2.0])
    grid = jax.vmap(lambda s: jax.vmap(lambda x: f(x, s, 3.0))(jnp.stack([X, 0.5 * X, 2.0 * X])))(s)
    assert grid.shape == (2, 3)
    np.testing.assert_array_equal(grid[1, 2], f(2.0 * X, 2.0, 3.0))
    columns = jax.vmap(f, (1, None, None), 0)(jnp.stack([X, 2.0 * X], axis=1), 2.0, 3.0)
    np.testing.assert_array_equal(columns, jnp.stack([f(X, 2.0, 3.0), f(2.0 * X, 2.0, 3.0)]))


def test_scan_and_control_flow():
    step = function(lambda x, a: x + 0.1 * a * np.sin(x), shape=lambda x, a: x.shape)

    def run(x, a):
        def body(state, _):
            new = step(state, a)
            return new, jnp.sum(new)

        last, sums = jax.lax.scan(body, x, length=7)
        return jnp.sum(last) + jax.lax.cond(sums[0] > 0.0, lambda: sums[3], lambda: sums[4] ** 2)

    check_grads(jax.jit(run), (X, 0.7), order=2, modes=("fwd", "rev"))
    np.testing.assert_allclose(jax.grad(jax.checkpoint(run))(X, 0.7), jax.grad(run)(X, 0.7))


def test_hessian_by_forward_over_reverse_and_reverse_over_reverse():
    f = function(layer, shape=lambda x, w: (w.shape[0],))

    def energy(x):
        return jnp.sum(f(x, W) ** 2)

    def same(x):
        return jnp.sum(jnp.tanh(W @ x) ** 2)

    np.testing.assert_allclose(jax.hessian(energy)(X[:2]), jax.hessian(same)(X[:2]), rtol=1e-12)
    np.testing.assert_allclose(jax.jacrev(jax.jacrev(energy))(X[:2]), jax.hessian(same)(X[:2]), rtol=1e-12)


def test_single_precision_stays():
    x = X.astype(jnp.float32)
    f = function(loss)
    out, gradient = jax.value_and_grad(f)(x, jnp.float32(2.0), 3)
    assert (jnp.float32, jnp.float32) == (out.dtype, gradient.dtype)
    np.testing.assert_allclose(gradient, jax.grad(f)(X, 2.0, 3), rtol=1e-6)


def test_without_64_bits():
    with jax.enable_x64(False):
        out, gradient = jax.value_and_grad(function(loss))(jnp.asarray(X, jnp.float32), 2.0, 3)
        assert (jnp.float32, jnp.float32) == (out.dtype, gradient.dtype)


def test_memory_of_arguments_is_not_written():
    f, x, y = function(writes), X + 0.0, X + 1.0
    before = np.array(x), np.array(y)
    f(x, y), jax.grad(f, (0, 1))(x, y), f(x, x)
    np.testing.assert_array_equal(before, (x, y))


def test_the_same_array_twice_is_two_arguments():
    np.testing.assert_allclose(function(writes)(X, X), function(writes)(X, X + 0.0))
    np.testing.assert_allclose(
        jax.grad(lambda x: function(writes)(x, x))(X), sum(jax.grad(function(writes), (0, 1))(X, X + 0.0))
    )


def test_arrays_of_numpy_and_keywords():
    f = function(loss)
    assert f(np.asarray(X), 2.0, 3.0) == f(k=3.0, s=np.float64(2.0), x=X)
    assert f(np.asarray(X)[::2], 2.0, 3.0) == f(X[::2], 2.0, 3.0)


SCALE = 2.0
TABLE = np.array([1.0, 2.0])


def test_changes_outside_are_seen_by_the_next_call(monkeypatch):
    f = function(lambda x: SCALE * x[0] * TABLE[1])
    assert (4.0, 4.0) == (f(jnp.ones(2)), jax.grad(f)(jnp.ones(2))[0])
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert (10.0, 10.0) == (f(jnp.ones(2)), jax.grad(f)(jnp.ones(2))[0])
    TABLE[1] = 3.0
    try:
        assert (15.0, 15.0) == (f(jnp.ones(2)), jax.grad(f)(jnp.ones(2))[0])
    finally:
        TABLE[1] = 2.0


def test_optimisation_by_gradient_descent_inside_jit():
    f = function(lambda p: (1.0 - p[0]) ** 2 + 10.0 * (p[1] - p[0] ** 2) ** 2)

    @jax.jit
    def descend(p):
        return jax.lax.fori_loop(0, 2000, lambda _, p: p - 0.01 * jax.grad(f)(p), p)

    np.testing.assert_allclose(descend(jnp.zeros(2)), [1.0, 1.0], atol=1e-3)


def fails(x):
    if x[0] < 0.0:
        raise ValueError("below zero")
    return np.log(x[0])


@pytest.mark.parametrize("backend", ["numba", "python"])
def test_exception_of_the_function_says_where_it_is(backend):
    f = function(fails, backend=backend)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"(?s)fails.*test_jax_bridge\.py|below zero"):
        jax.block_until_ready(f(jnp.array([-1.0])))
    assert 0.0 == f(jnp.array([1.0]))  # it can be called again
    with pytest.raises(jax.errors.JaxRuntimeError):
        jax.block_until_ready(jax.jit(jax.vmap(jax.grad(f)))(jnp.array([[1.0], [-1.0]])))


def test_nan_is_a_value():
    assert jnp.isnan(function(fails)(jnp.array([np.nan])))
    assert jnp.isnan(jax.grad(function(fails))(jnp.array([np.nan]))).all()


@pytest.mark.parametrize("name", ["f", "np", "grad", "jvp"])
def test_any_name_of_a_function(name):
    def squares(x):
        return np.sum(x**2)

    squares.__name__ = name
    made = function(squares, backend="python")
    assert jax.grad(made)(jnp.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert jax.jvp(made, (jnp.ones(2),), (jnp.ones(2),))[1] == 4.0


@function
def halved(x):
    return 0.5 * np.sum(x)


def test_functions_are_copied_and_pickled():
    made = function(layer, shape=lambda x, w: (2,))
    assert copy.deepcopy({"layer": made})["layer"] is made
    again = pickle.loads(pickle.dumps(function(loss)))
    assert again(jnp.array([0.1, 0.6]), 1.0, 2.0) == function(loss)(jnp.array([0.1, 0.6]), 1.0, 2.0)
    assert pickle.loads(pickle.dumps(halved)) is halved


def test_wrong_shape_is_refused():
    f = function(lambda x: x * 2.0, shape=lambda x: (3,))
    with pytest.raises(jax.errors.JaxRuntimeError, match="another shape than `shape` says"):
        jax.block_until_ready(f(jnp.ones(2)))


def test_refusals_of_srcdiff_show_the_line():
    with pytest.raises(srcdiff.DifferentiationError, match=r"test_jax_bridge\.py"):
        function(lambda x: eval("x"))(X)


@pytest.mark.parametrize(
    ("f", "args", "error", "message"),
    [
        (loss, (X.astype(jnp.float16), 1.0, 1.0), TypeError, "`x` is an array of float16"),
        (loss, (X.astype(jnp.bfloat16), 1.0, 1.0), TypeError, "`x` is an array of bfloat16"),
        (loss, (X.astype(complex), 1.0, 1.0), TypeError, "`x` is an array of complex128"),
        (loss, (X, 1.0, jnp.array(True)), TypeError, "`k` is a boolean of JAX"),
        (loss, (X, 1.0, object()), TypeError, "`k` is a object"),
        (loss, (X,), TypeError, "missing a required argument"),
        (layer, (X[:2], W), ValueError, "needs `shape=`"),
        (lambda x: (x[0], "text"), (X,), ValueError, "must return floats and arrays"),
        (print, (), TypeError, "is not a Python function"),
    ],
    ids=range(9),
)
def test_bad_input(f, args, error, message):
    with pytest.raises(error, match=message):
        function(f)(*args)


def log_density(p, measured):
    total = -0.5 * p["shift"] ** 2 - 0.5 * p["log_width"] ** 2
    for k in range(len(measured)):
        r = (measured[k] - p["shift"]) / np.exp(p["log_width"])
        total -= 0.5 * r * r + p["log_width"]
    return total


def test_optimiser_of_optax():
    optax = pytest.importorskip("optax")
    f, measured = function(lambda p, m: -log_density(p, m)), jnp.array([1.0, 2.0, 3.5])
    solver = optax.lbfgs()
    step = jax.jit(optax.value_and_grad_from_state(lambda p: f(p, measured)))
    p = {"shift": jnp.array(0.0), "log_width": jnp.array(0.0)}
    state = solver.init(p)
    for _ in range(20):
        value, gradient = step(p, state=state)
        updates, state = solver.update(
            gradient, state, p, value=value, grad=gradient, value_fn=lambda p: f(p, measured)
        )
        p = optax.apply_updates(p, updates)
    np.testing.assert_allclose(list(jax.grad(f)(p, measured).values()), 0.0, atol=1e-5)


def test_sampler_of_blackjax():
    blackjax = pytest.importorskip("blackjax")
    f, measured = function(log_density), jnp.array([1.0, 2.0, 3.5])
    nuts = blackjax.nuts(lambda p: f(p, measured), step_size=0.3, inverse_mass_matrix=jnp.ones(2))

    @jax.jit
    def sample(key):
        def step(state, key):
            state, _ = nuts.step(key, state)
            return state, state.position

        start = nuts.init({"shift": jnp.array(1.0), "log_width": jnp.array(0.0)})
        return jax.lax.scan(step, start, jax.random.split(key, 4000))[1]

    drawn = sample(jax.random.key(0))
    grid = np.linspace(-4.0, 6.0, 201), np.linspace(-2.0, 3.0, 201)
    weights = np.exp([[log_density({"shift": a, "log_width": b}, [1.0, 2.0, 3.5]) for b in grid[1]] for a in grid[0]])
    expected = np.sum(weights * grid[0][:, None]) / np.sum(weights)
    np.testing.assert_allclose(np.mean(drawn["shift"]), expected, atol=0.1)  # its standard error is about 0.02


@jax.tree_util.register_dataclass
@dataclass
class Weights:
    w: object
    b: object


def test_dataclasses_that_jax_knows():
    def model(p, x):
        return np.sum(np.tanh(p.w * x + p.b))

    f, p, x = function(model), Weights(jnp.array([0.5, -1.0]), 0.25), jnp.array([1.0, 2.0])
    found = jax.jit(jax.grad(f))(p, x)
    expected = jax.grad(lambda p: jnp.sum(jnp.tanh(p.w * x + p.b)))(p)
    np.testing.assert_allclose(found.w, expected.w)
    np.testing.assert_allclose(found.b, expected.b)


def test_derivatives_take_arrays_of_jax_without_the_bridge():
    x, gradient = jnp.array([0.1, 0.3, 0.6, 1.0]), srcdiff.grad(loss, backend="python")
    found = gradient(x, 2.0, 3.0)
    assert np.ndarray is type(found)
    np.testing.assert_array_equal(gradient(np.asarray(x), 2.0, 3.0), found)
    for transform in (jax.jit, jax.vmap, jax.grad):
        with pytest.raises(jax.errors.TracerArrayConversionError) as caught:
            transform(lambda x: gradient(x, 2.0, 3.0))(x if transform is jax.jit else x[:, None] * x)
        assert "in an argument of `loss`" in str(caught.value.__notes__)
    with pytest.raises(srcdiff.DifferentiationError, match="an array of bfloat16"):
        gradient(x.astype(jnp.bfloat16), 2.0, 3.0)
    with pytest.raises(srcdiff.DifferentiationError):
        srcdiff.grad(lambda x: np.sum(x.sort()), backend="python")(x)
