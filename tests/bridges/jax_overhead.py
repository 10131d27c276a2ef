"""Prints the cost of a call by JAX in microseconds, and that of a call with NumPy. `.ci/bridges` runs it."""

import timeit

import numpy as np

import srcdiff


def loss(x, s):
    total = 0.0
    for i in range(len(x)):
        total += np.sin(x[i]) * s * x[i]
    return total


def microseconds(call, count=2000):
    call()
    return min(timeit.repeat(call, number=count, repeat=9)) / count * 1e6


def main():
    import jax  # imported here, so that the tests can be collected without it
    import jax.numpy as jnp

    from srcdiff.bridges.jax import function

    jax.config.update("jax_enable_x64", True)
    f, called_back = function(loss), function(loss, backend="python")
    gradient = srcdiff.value_and_grad(loss, wrt=("x", "s"))
    x, s = jnp.linspace(0.1, 1.0, 5), jnp.asarray(2.0)
    array = np.array(x)
    compiled, empty = jax.jit(f), jax.jit(lambda x, s: x[0] * s)
    both = jax.jit(jax.value_and_grad(f, argnums=(0, 1)))
    scan = jax.jit(lambda x, s: jax.lax.scan(lambda c, _: (c + f(x, c), None), s, length=1000)[0])
    slow = jax.jit(called_back)
    rows = {
        "value_and_grad, called with NumPy": lambda: gradient(array, 2.0),
        "a product of two numbers, jit": lambda: empty(x, s).block_until_ready(),
        "the function, jit": lambda: compiled(x, s).block_until_ready(),
        "the function, eager": lambda: f(x, s).block_until_ready(),
        "value and gradient, jit": lambda: both(x, s)[0].block_until_ready(),
    }
    for what, call in rows.items():
        print(f"{microseconds(call):8.1f} us  {what}")
    print(
        f"{microseconds(lambda: scan(x, s).block_until_ready(), 20) / 1000:8.2f} us  each of 1000 calls in a scan, jit"
    )
    print(f"{microseconds(lambda: slow(x, s).block_until_ready(), 200):8.1f} us  by pure_callback, interpreted, jit")


if __name__ == "__main__":
    main()
