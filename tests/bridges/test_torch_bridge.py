"""Functions of srcdiff as operators of PyTorch: its own checks of operators and gradients pass. Run by .ci/bridges."""

import copy
import pickle
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import srcdiff

torch = pytest.importorskip("torch")

from torch.autograd import forward_ad, gradcheck, gradgradcheck  # noqa: E402  PyTorch is there

from srcdiff.bridges.torch import _value, function  # noqa: E402

DOUBLE = torch.float64
Pair = namedtuple("Pair", "x y")


def tensor(*numbers, **options):
    return torch.tensor(numbers, dtype=DOUBLE, requires_grad=True, **options)


def number(value):
    return torch.tensor(value, dtype=DOUBLE, requires_grad=True)


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


CASES = {
    "number": (function(loss), lambda: (tensor(0.1, 0.3, 0.6, 1.0), number(2.0), 3.0)),
    "array": (
        function(layer, shape=lambda x, w: (w.shape[0],)),
        lambda: (tensor(0.1, 0.3), torch.arange(6.0, dtype=DOUBLE).reshape(3, 2).requires_grad_()),
    ),
    "index": (function(picked), lambda: (tensor(0.1, 0.3, 0.7), torch.tensor([0, 2, 2]))),
    "text": (function(scaled, shape=lambda x, mode: x.shape), lambda: (tensor(0.5, -0.5), "square")),
    "strided": (function(loss), lambda: (tensor(0.1, 9.0, 0.6, 9.0).detach()[::2].requires_grad_(), number(2.0), 3.0)),
}
each_case = pytest.mark.parametrize("case", CASES)


@each_case
def test_opcheck(case):
    f, args = CASES[case]
    results = torch.library.opcheck(f.operator(*args()).op, args())
    assert {"SUCCESS"} == set(results.values())


@each_case
def test_opcheck_of_the_pullback(case):
    f, args = CASES[case]
    given = args()
    out = f(*given)
    pullback = f.operator(*given).pullback((out.dim() == 0,))
    assert {"SUCCESS"} == set(torch.library.opcheck(pullback.op, (*given, torch.ones_like(out))).values())


@each_case
@pytest.mark.parametrize("dispatched", [False, True], ids=["eager", "operator"])
def test_gradcheck_and_gradgradcheck(case, dispatched):
    f, args = CASES[case]
    given = args()
    called = f.operator(*given).op if dispatched else f
    assert gradcheck(called, given)
    assert gradgradcheck(called, given)


@each_case
def test_eager_calls_and_the_operator_agree(case):
    f, args = CASES[case]
    given = args()
    by_operator = f.operator(*given).op(*given)
    assert torch.equal(f(*given), by_operator)
    with torch.no_grad():
        assert torch.equal(f(*given), by_operator)
        assert not f(*given).requires_grad


def test_third_derivative():
    f = function(lambda x: x**5)
    x = number(2.0)
    y = f(x)
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
    assert 60.0 * 4.0 == y.item()


def test_single_precision_stays():
    f = function(layer, shape=lambda x, w: (w.shape[0],))
    x, w = torch.ones(2, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    out = f(x, w)
    out.sum().backward()
    assert (torch.float32, torch.float32, (3, 2)) == (out.dtype, x.grad.dtype, tuple(w.grad.shape))


def test_memory_of_tensors_is_read_in_place_and_never_written():

    def writes(x):
        x[0] = x[0] * x[1]
        return np.sum(x)

    f, x = function(writes), tensor(2.0, 3.0)
    assert 9.0 == f(x).item()
    f(x).backward()
    assert [2.0, 3.0] == x.tolist()
    assert [3.0, 3.0] == x.grad.tolist()

    large = torch.ones(1000, dtype=DOUBLE)
    g = function(lambda x: np.sum(x))
    operator = g.operator(large)
    value = _value(operator.kinds[0], large)
    assert value.ctypes.data == large.data_ptr()


def test_result_shares_no_memory_with_an_argument():
    x = torch.ones(3, dtype=DOUBLE)
    out = function(lambda x: x, shape=lambda x: x.shape)(x)
    out += 1.0
    assert [1.0, 1.0, 1.0] == x.tolist()


def test_compiled_by_torch():
    f, args = CASES["number"]
    given = args()
    expected = torch.autograd.grad(2.0 * f(*given), given[:2])

    found = torch.compile(lambda x, s: 2.0 * f(x, s, 3.0), backend="aot_eager", fullgraph=True)(*given[:2])

    for a, b in zip(expected, torch.autograd.grad(found, given[:2]), strict=True):
        torch.testing.assert_close(a, b)


def test_parameters_of_modules_learn():
    f, _ = CASES["array"]

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(0.1 * torch.ones(3, 2, dtype=DOUBLE))

        def forward(self, x):
            return f(x, self.w)

    net, x, target = Net(), torch.ones(2, dtype=DOUBLE), torch.tensor([0.5, -0.5, 0.1], dtype=DOUBLE)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
    for _ in range(300):
        optimizer.zero_grad()
        torch.sum((net(x) - target) ** 2).backward()
        optimizer.step()
    torch.testing.assert_close(net(x), target)


def both(x, s):
    return {"sum": np.sum(x) * s, "parts": (x * s, s * s)}


BOTH = function(both, shape=lambda x, s: {"sum": (), "parts": (x.shape, ())})


def test_several_results_have_their_structure_and_gradients():
    x, s = tensor(1.0, 2.0), number(3.0)
    found = BOTH(x, s)
    assert (["sum", "parts"], tuple) == ([*found], type(found["parts"]))
    assert (9.0, [3.0, 6.0], 9.0) == (found["sum"].item(), found["parts"][0].tolist(), found["parts"][1].item())
    (found["sum"] + 10.0 * found["parts"][0][1] + found["parts"][1]).backward()
    assert ([3.0, 33.0], 3.0 + 20.0 + 6.0) == (x.grad.tolist(), s.grad.item())

    def flat(x, s):
        found = BOTH(x, s)
        return found["sum"], *found["parts"]

    assert gradcheck(flat, (x, s), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(flat, (x, s))
    assert {"SUCCESS"} == set(torch.library.opcheck(BOTH.operator(x, s).op, (x, s)).values())


def test_several_results_need_their_shapes():
    with pytest.raises(ValueError, match="needs `shape=`"):
        function(both)(tensor(1.0), 2.0)
    with pytest.raises(ValueError, match="a shape for each result"):
        function(both, shape=lambda x, s: ((), x.shape))(tensor(1.0), 2.0)
    with pytest.raises(TypeError, match=r"must return floats and arrays"):
        function(lambda x: (x[0], "text"))(tensor(1.0))
    pair = function(lambda x: (x[0], x[1] * 2.0))(tensor(1.0, 2.0))
    assert (1.0, 4.0) == (pair[0].item(), pair[1].item())


def by_hand(x, s):
    return torch.sum(torch.where(x > 0.4, torch.sin(x) * s * x * 3.0, x**3))


ROWS = torch.tensor([[0.1, 0.5, 0.9], [1.0, 0.2, 0.3]], dtype=DOUBLE)
S = torch.tensor(2.0, dtype=DOUBLE)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: torch.vmap(f, (0, None))(ROWS, S),
        lambda f: torch.vmap(f, (1, None))(ROWS.T, S),
        lambda f: torch.vmap(f)(ROWS, torch.stack([S, 2.0 * S])),
        lambda f: torch.vmap(torch.vmap(f, (None, 0)), (0, None))(ROWS, torch.stack([S, 2.0 * S])),
        lambda f: torch.vmap(torch.vmap(f, (0, None)), (None, 0))(ROWS, torch.stack([S, 2.0 * S])),
        lambda f: torch.func.grad(f, (0, 1))(ROWS[0], S),
        lambda f: torch.vmap(torch.func.grad(f, (0, 1)), (0, None))(ROWS, S),
        lambda f: torch.func.grad(lambda r, s: torch.vmap(f, (0, None))(r, s).sum(), (0, 1))(ROWS, S),
        lambda f: torch.func.jvp(f, (ROWS[0], S), (ROWS[1], S)),
        lambda f: torch.func.jvp(lambda s: f(ROWS[0], s), (S,), (S,)),
        lambda f: torch.func.jvp(lambda r: torch.vmap(f, (0, None))(r, S), (ROWS,), (ROWS,)),
        lambda f: torch.func.hessian(f, (0, 1))(ROWS[0], S),
        lambda f: torch.func.jacrev(torch.func.jacrev(f))(ROWS[0], S),
        lambda f: torch.vmap(torch.func.hessian(f), (0, None))(ROWS, S),
        lambda f: torch.autograd.functional.jacobian(f, (ROWS[0], S)),
        lambda f: torch.autograd.functional.hessian(f, (ROWS[0], S), vectorize=True),
        lambda f: torch.autograd.functional.hessian(
            f, (ROWS[0], S), vectorize=True, outer_jacobian_strategy="forward-mode"
        ),
    ],
    ids=range(17),
)
def test_transformations_agree_with_those_of_pytorch(transformed):
    g = function(loss)
    torch.testing.assert_close(transformed(lambda x, s: g(x, s, 3.0)), transformed(by_hand))


def test_batches_of_the_operator_itself_and_of_arrays():
    f, args = CASES["array"]
    x, w = (a.detach() for a in args())
    rows = torch.stack([x, 2.0 * x, -x])
    expected = torch.stack([torch.tanh(w @ row) for row in rows])
    torch.testing.assert_close(torch.vmap(f.operator(x, w).op, (0, None))(rows, w), expected)
    torch.testing.assert_close(torch.vmap(f, (0, None), 1)(rows, w), expected.T)
    batch = f.operator(x, w).batches[True, False]
    assert {"SUCCESS"} == set(torch.library.opcheck(batch.op, (rows.requires_grad_(), w.requires_grad_())).values())
    assert (0, 3) == tuple(batch(rows[:0], w).shape)
    wrong = function(lambda x: x * 2.0, shape=lambda x: (3,))
    with pytest.raises(ValueError, match=r"returns an array of shape \(2,\), but `shape` says \(3,\)"):
        torch.vmap(wrong)(rows.detach())


@pytest.mark.parametrize("case", CASES)
def test_forward_mode(case):
    f, args = CASES[case]
    assert gradcheck(f, args(), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)


def test_forward_mode_of_constants_is_zero():
    f, args = CASES["number"]
    x, s, k = args()
    with forward_ad.dual_level():
        found = f(forward_ad.make_dual(x.detach(), torch.ones_like(x)), s.detach(), k)
        assert found.detach() == f(x, s, k)
        assert forward_ad.unpack_dual(f(x.detach(), s.detach(), k)).tangent is None


def test_forward_mode_of_the_operator_itself_is_refused_and_not_zero():
    f, args = CASES["number"]
    x, s, k = args()
    op = f.operator(x, s, k).op
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="call the function that made it"):
        op(forward_ad.make_dual(x.detach(), torch.ones_like(x)), s.detach(), k)
    with pytest.raises(NotImplementedError, match="call the function that made it"):
        torch.func.jvp(lambda x: op(x, s, k), (x.detach(),), (torch.ones_like(x),))


@pytest.mark.parametrize(
    "differentiated",
    [
        lambda f, x: torch.func.jvp(f, (x,), (x,))[1],
        lambda f, x: torch.func.grad(f)(x),
        lambda f, x: torch.vmap(torch.func.grad(f))(torch.stack([x, 2.0 * x])),
    ],
    ids=range(3),
)
def test_derivatives_by_torch_func_inside_of_compile(differentiated):
    g = function(loss)
    g(ROWS[0], S, 3.0)  # makes the operator
    compiled = torch.compile(lambda x: differentiated(lambda x: g(x, S, 3.0), x), backend="aot_eager")
    torch.testing.assert_close(compiled(ROWS[0]), differentiated(lambda x: by_hand(x, S), ROWS[0]))


def test_compiled_batches():
    g = function(loss)
    g(ROWS[0], S, 3.0)  # makes the operator
    compiled = torch.compile(torch.vmap(lambda x: g(x, S, 3.0)), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(ROWS), torch.stack([by_hand(row, S) for row in ROWS]))


def fails(x):
    if x[0] < 0.0:
        raise ValueError("below zero")
    return np.log(x[0])


@pytest.mark.parametrize("dispatched", [False, True], ids=["eager", "operator"])
def test_exception_of_the_function_says_where_it_is(dispatched):
    f, x = function(fails), tensor(-1.0)
    with pytest.raises(ValueError, match="below zero") as caught:
        (f.operator(x).op if dispatched else f)(x)
    assert any("test_torch_bridge.py" in note for note in caught.value.__notes__)
    assert x.grad is None
    with pytest.raises(ValueError, match="below zero") as caught:
        torch.vmap(f)(torch.tensor([[1.0], [-1.0]], dtype=DOUBLE))
    assert any("test_torch_bridge.py" in note for note in caught.value.__notes__)


def fails_backward(x):
    total = 0.0
    for k in range(len(x)):
        total += checked(x[k])
    return total


def checked_adjoint(x, out, out_bar):
    if x > 1.5:
        raise ValueError("no way back")
    return (out_bar,)


@srcdiff.custom_rule(adjoint=checked_adjoint)
def checked(x):
    return x


def test_exception_in_the_backward_pass_leaves_gradients_alone():
    x = tensor(1.0, 2.0)
    x.grad = torch.ones_like(x)
    with pytest.raises(ValueError, match="no way back") as caught:
        function(fails_backward)(x).backward()
    assert any("test_torch_bridge.py" in note for note in caught.value.__notes__)
    assert [1.0, 1.0] == x.grad.tolist()


def test_tensors_of_different_devices_are_refused():
    with pytest.raises(
        RuntimeError, match=r"(?s)same device, but found cpu and meta, in `loss`.*test_torch_bridge\.py"
    ):
        function(loss)(torch.ones(2, dtype=DOUBLE), torch.ones((), dtype=DOUBLE, device="meta"), 1.0)


def test_read_only_memory_is_read():
    array = np.array([0.1, 0.6])
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        x = torch.from_numpy(array)
    assert function(loss)(x, 2.0, 1.0).item() == loss(array, 2.0, 1.0)


def test_negative_bits_of_complex_pipelines():
    """PyTorch's imaginary parts of conjugates are views that change the sign later, also where they are adjoints."""
    cubes = function(lambda x: x**3, shape=lambda x: x.shape)
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    view = torch.complex(x, 2.0 * x).conj().imag
    assert view.is_neg()
    (slope,) = torch.autograd.grad(cubes(view).sum(), x)
    assert slope.tolist() == [-24.0, -96.0]
    bar = torch.complex(x, 2.0 * x).detach().conj().imag
    (slope,) = torch.autograd.grad(cubes(x), x, bar)
    assert slope.tolist() == [-6.0, -48.0]


def squares(x):
    return np.sum(x * x)


@function
def halved(x):
    return 0.5 * np.sum(x)


@pytest.mark.parametrize("name", ["f", "np", "jvp"])
def test_any_name_of_a_function(name):
    def both(x):
        return {"sum": np.sum(x["a"] ** 2), "first": x["a"][0]}

    both.__name__ = name
    x = tensor(1.0, 2.0)
    (slope,) = torch.autograd.grad(function(both, shape=lambda x: {"sum": (), "first": ()})({"a": x})["sum"], x)
    assert slope.tolist() == [2.0, 4.0]


def test_functions_are_copied_with_modules_and_pickled():
    module = torch.nn.Module()
    module.loss = function(squares)
    x = torch.ones(2, dtype=torch.float64)
    assert copy.deepcopy(module).loss is module.loss
    module.loss(x)
    assert pickle.loads(pickle.dumps(module)).loss(x) == module.loss(x)
    assert pickle.loads(pickle.dumps(halved)) is halved


def test_nan_is_a_value():
    x = tensor(np.nan)
    out = function(fails)(x)
    out.backward()
    assert torch.isnan(out)
    assert torch.isnan(x.grad).all()


def test_refusals_of_srcdiff_show_the_line():
    with pytest.raises(srcdiff.DifferentiationError, match=r"test_torch_bridge\.py"):
        function(lambda x: eval("x"))(tensor(1.0))


@pytest.mark.parametrize(
    ("f", "args", "error", "message"),
    [
        (loss, (torch.ones(2, dtype=torch.float16), 1.0, 1.0), TypeError, "tensor of torch.float16"),
        (loss, (torch.ones(2, dtype=torch.complex128), 1.0, 1.0), TypeError, "tensor of torch.complex128"),
        (loss, (np.ones(2), 1.0, 1.0), TypeError, "argument 1 is a ndarray"),
        (loss, ([1.0], 1.0, 1.0), TypeError, "got no tensor"),
        (loss, ([np.ones(2)], 1.0, 1.0), TypeError, r"`x\[0\]` is a ndarray"),
        (fails, (1.0,), TypeError, "got no tensor"),
        (loss, (torch.ones(2, dtype=DOUBLE, device="meta"), 1.0, 1.0), None, None),
        (lambda x: x * 2.0, (torch.ones(2, dtype=DOUBLE),), ValueError, "needs `shape=`"),
        (loss, (torch.ones(2, dtype=DOUBLE),), TypeError, "missing a required argument: 's'"),
        (loss, (torch.ones((2, 2), dtype=DOUBLE).to_sparse(), 1.0, 1.0), TypeError, "layout torch.sparse_coo"),
    ],
    ids=range(10),
)
def test_bad_input(f, args, error, message):
    if error is None:  # PyTorch itself handles tensors without data, by the fake implementation
        assert "meta" == function(f)(*args).device.type
        return
    with pytest.raises(error, match=message):
        function(f)(*args)


@dataclass
class Weights:
    w: object
    b: object


def test_tensors_in_structures_by_name_and_with_defaults():
    def model(p, x, more, scale=2.0):
        return np.sum(np.tanh(p.w @ x + p.b)) * scale + more["n"].y * more["l"][0]

    def plain(w, b, x, y):
        return torch.tanh(w @ x + b).sum() * 3.0 + y * 2.0

    f = function(model)
    given = [torch.rand(2, 3, dtype=DOUBLE), torch.rand(2, dtype=DOUBLE), torch.rand(3, dtype=DOUBLE), number(1.5)]
    w, b, x, y = [one.detach().requires_grad_() for one in given]
    more = {"n": Pair("text", y), "l": [2.0]}
    assert f(Weights(w, b), x, more).item() != f(Weights(w, b), x, more, scale=3.0).item()
    found = torch.autograd.grad(f(Weights(w, b), x, scale=3.0, more=more), (w, b, x, y))
    for one, expected in zip(found, torch.autograd.grad(plain(w, b, x, y), (w, b, x, y)), strict=True):
        torch.testing.assert_close(one, expected)
    assert gradcheck(lambda w, b: f(Weights(w, b), x, more), (w, b))

    layered = function(lambda p: np.tanh(p["w"]), shape=lambda p: p["w"].shape)
    rows = torch.vmap(lambda w: layered({"w": w}))(w.detach())
    torch.testing.assert_close(rows, torch.tanh(w.detach()))


def test_wrong_shape_is_refused():
    f = function(lambda x: x * 2.0, shape=lambda x: (3,))
    with pytest.raises(ValueError, match=r"returns an array of shape \(2,\), but `shape` says \(3,\)"):
        f(torch.ones(2, dtype=DOUBLE))


# -- tensors as arguments of derivatives, without the bridge ----------------------------------------------------------


def test_derivatives_take_tensors_without_copying_them():
    x = torch.tensor([0.1, 0.3, 0.6, 1.0], dtype=DOUBLE)
    gradient = srcdiff.grad(loss, backend="python")
    expected = gradient(x.numpy(), 2.0, 3.0)
    for given in (x, torch.nn.Parameter(x, requires_grad=False)):
        found = gradient(given, 2.0, 3.0)
        assert np.ndarray is type(found)
        np.testing.assert_array_equal(expected, found)
    np.testing.assert_array_equal(expected[::2], gradient(x[::2], 2.0, 3.0))
    assert np.float32 == gradient(x.float(), 2.0, 3.0).dtype
    srcdiff.check(layer, x[:2], x.reshape(2, 2), backend="python")


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x: x.std(), "std"),
        (lambda x: np.sum(np.sin(x).var(0)), "var"),
        (lambda x: np.sum(x.max(0)), "max"),
        (lambda x: np.sum(x.repeat(2) ** 2), "repeat"),
        (lambda x: np.sum(x.flatten()), "flatten"),
    ],
)
def test_methods_that_compute_something_else_are_refused(f, name):
    with pytest.raises(srcdiff.DifferentiationError, match=f"an array of PyTorch, where the method `{name}` is not"):
        srcdiff.grad(f, backend="python")(torch.ones(2, 3, dtype=DOUBLE))
    srcdiff.grad(f, backend="python")(np.arange(6.0).reshape(2, 3))


def test_every_method_that_both_have_is_the_same_or_refused():
    """A method of tensors that NumPy has, too, gives NumPy's numbers unless it is refused."""
    from srcdiff.library.numpy_table import METHODS
    from srcdiff.signature.foreign_arrays import kind_of

    x = torch.tensor([[1.5, -0.5], [2.5, 0.25]], dtype=DOUBLE)
    differing = kind_of(x).differing
    given = {"take": (torch.tensor([1, 0]),), "cumsum": (0,), "cumprod": (0,), "clip": (0.0, 1.0), "swapaxes": (0, 1)}
    for name in METHODS:
        if hasattr(x, name) and name not in differing and name not in ("dot", "put"):
            args = given.get(name, ())
            mine = getattr(x.numpy(), name)(*[np.asarray(a) if torch.is_tensor(a) else a for a in args])
            np.testing.assert_allclose(getattr(x, name)(*args), mine, err_msg=name)
            if name in ("sum", "mean", "prod", "argmax", "argmin", "all", "any", "argsort"):
                np.testing.assert_allclose(getattr(x, name)(0), getattr(x.numpy(), name)(0), err_msg=name)


def test_tensors_with_derivatives_of_their_own_are_refused():
    gradient, x = srcdiff.grad(loss, backend="python"), torch.ones(2, dtype=DOUBLE)
    with pytest.raises(RuntimeError, match="requires grad") as caught:
        gradient(x.clone().requires_grad_(), 1.0, 1.0)
    assert "in an argument of `loss`" in caught.value.__notes__[0]
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="that has a tangent"):
        gradient(forward_ad.make_dual(x, x), 1.0, 1.0)
    with pytest.raises(RuntimeError):
        torch.func.grad(lambda x: torch.tensor(gradient(x, 1.0, 1.0)).sum())(x)
    with pytest.raises(RuntimeError):
        torch.vmap(lambda x: torch.tensor(gradient(x, 1.0, 1.0)))(x[None])
