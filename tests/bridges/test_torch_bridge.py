"""Functions of srcdiff as operators of PyTorch: its own checks of operators and gradients pass. Run by .ci/bridges."""

import numpy as np
import pytest

import srcdiff

torch = pytest.importorskip("torch")

from torch.autograd import forward_ad, gradcheck, gradgradcheck  # noqa: E402  PyTorch is there

from srcdiff.bridges.torch import function  # noqa: E402

DOUBLE = torch.float64


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
    value = operator._value(operator.kinds[0], large)
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


def test_forward_mode_is_refused_and_not_zero():
    f, args = CASES["number"]
    x, s, k = args()
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="no forward mode"):
        f(forward_ad.make_dual(x.detach(), torch.ones_like(x)), s.detach(), k)
    with pytest.raises(NotImplementedError, match="no forward mode"):
        torch.func.jvp(lambda x: f(x, s, k), (x.detach(),), (torch.ones_like(x),))


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
        (loss, ([1.0], 1.0, 1.0), TypeError, "argument 1 is a list"),
        (fails, (1.0,), TypeError, "got no tensor"),
        (loss, (torch.ones(2, dtype=DOUBLE, device="meta"), 1.0, 1.0), None, None),
        (lambda x: x * 2.0, (torch.ones(2, dtype=DOUBLE),), ValueError, "needs `shape=`"),
        (loss, (torch.ones(2, dtype=DOUBLE),), TypeError, "got 1 arguments: it needs all of them"),
        (loss, (torch.ones((2, 2), dtype=DOUBLE).to_sparse(), 1.0, 1.0), TypeError, "[Ss]parse"),
    ],
    ids=range(9),
)
def test_bad_input(f, args, error, message):
    if error is None:  # PyTorch itself handles tensors without data, by the fake implementation
        assert "meta" == function(f)(*args).device.type
        return
    with pytest.raises(error, match=message):
        function(f)(*args)


def test_wrong_shape_is_refused():
    f = function(lambda x: x * 2.0, shape=lambda x: (3,))
    with pytest.raises(ValueError, match=r"returns an array of shape \(2,\), but `shape` says \(3,\)"):
        f(torch.ones(2, dtype=DOUBLE))
