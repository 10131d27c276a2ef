"""Gradients of programs with complex numbers and Fourier transforms, beside JAX and PyTorch.

    python -m benchmarks.complex_numbers [--busy] [PROGRAM ...]

A quantum particle by the split-step method, an impedance, prices by a characteristic function, and phase retrieval. All
run in one process, on one thread, in double precision; JAX with `jit`, with a loop of known length as `lax.scan`. The
first call and the least of interleaved calls count; gradients must agree. With `--busy`, times are processor times:
other programs on the machine disturb them little. Needs jax and torch.
"""

import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np
import torch

import srcdiff

jax.config.update("jax_enable_x64", True)
torch.set_num_threads(1)
CALLS = 60
random = np.random.default_rng(0)


def split_step(path, psi, goal, x, k, step):
    for centre in path:
        half = np.exp(-0.25j * step * (x - centre) ** 2)
        psi = half * np.fft.ifft(np.exp(-0.5j * step * k**2) * np.fft.fft(half * psi))
    return -(np.abs(np.vdot(goal, psi)) ** 2)


def split_step_of_jax(path, psi, goal, x, k, step):
    def move(psi, centre):
        half = jnp.exp(-0.25j * step * (x - centre) ** 2)
        return half * jnp.fft.ifft(jnp.exp(-0.5j * step * k**2) * jnp.fft.fft(half * psi)), None

    return -(jnp.abs(jnp.vdot(goal, jax.lax.scan(move, psi, path)[0])) ** 2)


def split_step_of_torch(path, psi, goal, x, k, step):
    for centre in path:
        half = torch.exp(-0.25j * step * (x - centre) ** 2)
        psi = half * torch.fft.ifft(torch.exp(-0.5j * step * k**2) * torch.fft.fft(half * psi))
    return -(torch.abs(torch.vdot(goal, psi)) ** 2)


def impedance(p, omega, measured, xp=np):
    q = xp.exp(p)
    z = 1.0 / (1.0 / (q[0] + 1j * omega * q[1]) + 1j * omega * q[2] + 1.0 / q[3])
    return xp.sum(xp.abs(z / measured - 1.0) ** 2)


def option_prices(p, nodes, weights, distances, xp=np):
    """Heston's model, for one maturity and several strikes."""
    u = nodes - 0.5j
    b = p[0] - 1j * p[3] * p[2] * u
    d = xp.sqrt(b**2 + p[2] ** 2 * (1j * u + u**2))
    g = (b - d) / (b + d)
    decay = xp.exp(-d)
    drift = p[0] * p[1] / p[2] ** 2 * ((b - d) - 2.0 * xp.log((1.0 - g * decay) / (1.0 - g)))
    phi = xp.exp(drift + p[4] / p[2] ** 2 * (b - d) * (1.0 - decay) / (1.0 - g * decay))
    kernel = xp.exp(1j * nodes[None, :] * distances[:, None]) * phi[None, :]
    return xp.sum(xp.sum(weights * kernel.real / (nodes**2 + 0.25), 1) ** 2)


def phase_retrieval(phase, inside, photograph, xp=np):
    seen = xp.abs(xp.fft.fft2(inside * xp.exp(1j * phase))) ** 2
    return xp.sum((xp.sqrt(seen + 1e-6) - photograph) ** 2)


def planar(*shape):
    return random.normal(size=shape) + 1j * random.normal(size=shape)


n = 256
places = np.linspace(-8.0, 8.0, n, endpoint=False)
waves = 2.0 * np.pi * np.fft.fftfreq(n, 16.0 / n)
ground = np.exp(-0.5 * places**2) + 0j
omega = np.logspace(3.0, 6.0, 2000)
nodes, weights = np.polynomial.legendre.leggauss(128)
PROGRAMS = {
    "split-step, 256 points, 100 steps": (
        *(split_step, split_step_of_jax, split_step_of_torch),
        (0.3 * random.normal(size=100), ground, ground + 0.1 * planar(n), places, waves, 0.02),
    ),
    "impedance, 2000 frequencies": (
        *(impedance,) * 3,
        (np.log(np.array([4.7, 2.2e-3, 1.5e-7, 5e3])), omega, planar(2000) + 50.0),
    ),
    "Heston, 128 nodes, 20 strikes": (
        *(option_prices,) * 3,
        (np.array([1.8, 0.06, 0.6, -0.65, 0.04]), 50.0 * (nodes + 1.0), weights, np.linspace(-0.3, 0.3, 20)),
    ),
    "phase retrieval, 128 x 128": (
        *(phase_retrieval,) * 3,
        (random.normal(size=(128, 128)), np.ones((128, 128)), np.abs(planar(128, 128))),
    ),
}


def of_jax(function, arguments):
    further = () if function is split_step_of_jax else (jnp,)
    run = jax.jit(jax.value_and_grad(lambda *given: function(*given, *further)))
    given = [jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]

    def call():
        value, gradient = run(*given)
        gradient.block_until_ready()
        return value, gradient

    return call


def of_torch(function, arguments):
    further = () if function is split_step_of_torch else (torch,)
    given = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]

    def call():
        by = given[0].clone().requires_grad_()
        value = function(by, *given[1:], *further)
        value.backward()
        return value.item(), by.grad

    return call


def main(wanted):
    clock = time.process_time if "--busy" in wanted else time.perf_counter
    wanted = [name for name in wanted if name != "--busy"]
    print("| program | | srcdiff | JAX | PyTorch |\n|---|---|---|---|---|")
    for name, (function, for_jax, for_torch, arguments) in PROGRAMS.items():
        if wanted and not any(w in name for w in wanted):
            continue
        gradient = srcdiff.value_and_grad(function)
        calls = [lambda g=gradient, a=arguments: g(*a), of_jax(for_jax, arguments), of_torch(for_torch, arguments)]
        first, found = [], []
        for call in calls:
            start = clock()
            found.append(np.asarray(call()[1]))
            first.append(clock() - start)
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=1e-8, atol=1e-9 * np.max(np.abs(found[0])))
        least = [np.inf] * len(calls)
        for _ in range(CALLS):
            for place, call in enumerate(calls):
                start = clock()
                call()
                least[place] = min(least[place], clock() - start)
        print(f"| {name} | first call | {' | '.join(f'{t:.2f} s' for t in first)} |")
        print(f"| | run | {' | '.join(f'{1e3 * t:.3f} ms' for t in least)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
