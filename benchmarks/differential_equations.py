"""Gradients of solutions of differential equations, beside diffrax: the times, and whether the gradients agree.

    python -m benchmarks.differential_equations [PROBLEM ...]

Three problems: Lotka and Volterra (not stiff), Robertson (stiff), and the Brusselator in one dimension (stiff, 64
numbers). Both programs run in one process, on one thread, in float64, with the same tolerances; the least of
interleaved calls counts. The second column is srcdiff with the continuous adjoint, or for the Brusselator with a banded
Jacobian matrix. Needs jax and diffrax.
"""

import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import srcdiff

jax.config.update("jax_enable_x64", True)
CALLS, CELLS = 30, 32
TOLERANCES = {"rtol": 1e-7, "atol": 1e-9}


def lotka_volterra(y, t, p, xp=np):
    return xp.array([p[0] * y[0] - p[1] * y[0] * y[1], p[3] * y[0] * y[1] - p[2] * y[1]])


def robertson(y, t, p, xp=np):
    first, second, third = p[0] * y[0], p[1] * y[1] * y[1], p[2] * y[1] * y[2]
    return xp.array([third - first, first - second - third, second])


def brusselator(y, t, p):
    """Two concentrations that react and diffuse, one after the other, with fixed values at both ends."""
    slope = np.empty(2 * CELLS)
    factor = p[2] * (CELLS + 1) ** 2
    for i in range(CELLS):
        u, v = y[2 * i], y[2 * i + 1]
        u_left, v_left = (y[2 * i - 2], y[2 * i - 1]) if i > 0 else (1.0, 3.0)
        u_right, v_right = (y[2 * i + 2], y[2 * i + 3]) if i < CELLS - 1 else (1.0, 3.0)
        slope[2 * i] = p[0] + u * u * v - (p[1] + 1.0) * u + factor * (u_left - 2.0 * u + u_right)
        slope[2 * i + 1] = p[1] * u - u * u * v + factor * (v_left - 2.0 * v + v_right)
    return slope


def brusselator_of_arrays(y, t, p, xp=jnp):
    u, v = y[::2], y[1::2]
    wide_u = xp.concatenate((xp.ones(1), u, xp.ones(1)))
    wide_v = xp.concatenate((xp.full(1, 3.0), v, xp.full(1, 3.0)))
    factor = p[2] * (CELLS + 1) ** 2
    u_slope = p[0] + u * u * v - (p[1] + 1.0) * u + factor * (wide_u[:-2] - 2.0 * u + wide_u[2:])
    v_slope = p[1] * u - u * u * v + factor * (wide_v[:-2] - 2.0 * v + wide_v[2:])
    return xp.stack((u_slope, v_slope), axis=1).ravel()


PLACES = np.arange(1, CELLS + 1) / (CELLS + 1)
PROBLEMS = {
    "lotka_volterra": (
        *(lotka_volterra, lambda y, t, p: lotka_volterra(y, t, p, jnp), "tsit5", diffrax.Tsit5),
        *(np.array([1.0, 1.0]), np.linspace(0.0, 10.0, 11), np.array([1.5, 1.0, 3.0, 1.0])),
    ),
    "robertson": (
        *(robertson, lambda y, t, p: robertson(y, t, p, jnp), "rodas5p", diffrax.Kvaerno5),
        *(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 40.0, 1000.0]), np.array([0.04, 3e7, 1e4])),
    ),
    "brusselator": (
        *(brusselator, brusselator_of_arrays, "rodas5p", diffrax.Kvaerno5),
        np.stack((1.0 + np.sin(2.0 * np.pi * PLACES), np.full(CELLS, 3.0)), axis=1).ravel(),
        *(np.linspace(0.0, 10.0, 6), np.array([1.0, 3.0, 0.02])),
    ),
}


def of_srcdiff(f, method, start, times, **options):
    def loss(p):
        return np.sum(srcdiff.odeint(f, start, times, (p,), method=method, **options, **TOLERANCES) ** 2)

    return srcdiff.value_and_grad(loss)


def of_diffrax(f, solver, start, times):
    controller = diffrax.PIDController(**TOLERANCES)
    term = diffrax.ODETerm(lambda t, y, p: f(y, t, p))

    def loss(p):
        solution = diffrax.diffeqsolve(
            *(term, solver(), times[0], times[-1], None, jnp.asarray(start), p),
            saveat=diffrax.SaveAt(ts=jnp.asarray(times)),
            stepsize_controller=controller,
            max_steps=4096,
        )
        return jnp.sum(solution.ys**2)

    compiled = jax.jit(jax.value_and_grad(loss))
    return lambda p: jax.block_until_ready(compiled(p))


def seconds(function, p):
    begin = time.perf_counter()
    found = function(p)
    return time.perf_counter() - begin, found


def main():
    print(f"{'problem':16}{'srcdiff':>12}{'second':>12}{'diffrax':>12}{'first calls':>24}{'differences':>20}")
    for name in sys.argv[1:] or PROBLEMS:
        ours, theirs, method, solver, start, times, p = PROBLEMS[name]
        second = {"lotka_volterra": {"adjoint": "continuous"}, "brusselator": {"bands": (2, 2)}}.get(name)
        functions = [
            of_srcdiff(ours, method, start, times),
            of_srcdiff(ours, method, start, times, **second) if second else None,
            of_diffrax(theirs, solver, start, times),
        ]
        known = [f for f in functions if f is not None]
        first = [seconds(f, p) for f in known]
        least = dict.fromkeys(known, np.inf)
        for _ in range(CALLS):
            for f in known:
                least[f] = min(least[f], seconds(f, p)[0])
        other = np.asarray(first[-1][1][1])
        differences = [np.max(np.abs(found[1] - other) / np.abs(other)) for _, found in first[:-1]]
        times_in_words = "".join(f"{least[f] * 1e3:>9.2f} ms" if f is not None else f"{'-':>12}" for f in functions)
        calls = " ".join(f"{s:.1f} s" for s, _ in first)
        agreement = " ".join(f"{d:.1e}" for d in differences)
        print(f"{name:16}{times_in_words}{calls:>24}{agreement:>20}", flush=True)


if __name__ == "__main__":
    main()
