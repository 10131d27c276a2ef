"""Prints the cost of a call by PyTorch in microseconds, and that of a call with NumPy. `.ci/bridges` runs it."""

import timeit

import numpy as np

import srcdiff


def loss(x, s):
    total = 0.0
    for i in range(len(x)):
        total += np.sin(x[i]) * s * x[i]
    return total


def microseconds(call, count=5000):
    call()
    return min(timeit.repeat(call, number=count, repeat=15)) / count * 1e6


def main():
    import torch  # imported here, so that the tests can be collected without it

    from srcdiff.bridges.torch import function

    f, compiled, gradient = function(loss), srcdiff.differentiable(loss), srcdiff.value_and_grad(loss, wrt=("x", "s"))
    x = torch.linspace(0.1, 1.0, 5, dtype=torch.float64)
    s = torch.tensor(2.0, dtype=torch.float64)
    x_active, s_active = x.clone().requires_grad_(), s.clone().requires_grad_()
    operator, array = f.operator(x, s).op, x.numpy()

    def forward_and_backward():
        torch.autograd.grad(f(x_active, s_active), (x_active, s_active))

    rows = {
        "compiled function, called with NumPy": lambda: compiled(array, 2.0),
        "by PyTorch, without gradient": lambda: f(x, s),
        "by PyTorch, recorded by autograd": lambda: f(x_active, s_active),
        "by PyTorch's dispatcher (custom_op), without gradient": lambda: operator(x, s),
        "by PyTorch's dispatcher (custom_op), recorded by autograd": lambda: operator(x_active, s_active),
        "value_and_grad, called with NumPy": lambda: gradient(array, 2.0),
        "by PyTorch, forward and backward": forward_and_backward,
    }
    for what, call in rows.items():
        print(f"{microseconds(call):7.1f} us  {what}")


if __name__ == "__main__":
    main()
