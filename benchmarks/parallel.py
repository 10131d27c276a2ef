"""Measures the speed-up by threads: primal programs with `prange`, compiled by Numba, and their gradients by srcdiff.

    python -m benchmarks.parallel                     one thread against all, on an idle machine
    python -m benchmarks.parallel jacobi k_means      some of the programs
    python -m benchmarks.parallel --threads 2 --quick smaller arrays
    python -m benchmarks.parallel --bits 1000         compares so many gradients of each program bit for bit
    OMP_WAIT_POLICY=passive python -m benchmarks.parallel --busy

With `--busy`, a time is the processor time of the thread that works longest: other programs on the machine disturb it
little. It leaves out how long threads wait for each other. JAX is compared by the mean time of all threads together.

Columns: milliseconds of the primal with one thread and how many times as fast it is with all; the same for the
gradient; the ratio of both gains; seconds of the first call of the gradient, and how many times as long it takes with
`parallel=True`; if JAX is installed, milliseconds of its gradient with as many threads, and how many times as long as
ours that is. Each time is the least of many, and the calls alternate. A gradient with other numbers than that of one
thread, or of JAX, is reported.
"""

import argparse
import time

import numba
import numpy as np
from numba import njit, prange

import srcdiff
from benchmarks import parallel_in_jax


@njit(parallel=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def black_scholes(s, k, sigma, r):
    total = 0.0
    for i in prange(len(s)):
        d1 = (np.log(s[i] / k[i]) + r + 0.5 * sigma * sigma) / sigma
        total += s[i] * (0.5 + 0.5 * np.tanh(0.8 * d1)) - k[i] * np.exp(-r) * (0.5 + 0.5 * np.tanh(0.8 * (d1 - sigma)))
    return total


@njit(parallel=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def logistic_regression(w, x, y):
    loss = 0.0
    for i in prange(x.shape[0]):
        z = 0.0
        for j in range(x.shape[1]):
            z += x[i, j] * w[j]
        loss += np.log1p(np.exp(-y[i] * z))
    return loss / x.shape[0]


@njit(parallel=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def lennard_jones(x):
    energy = 0.0
    for i in prange(len(x)):
        for j in range(len(x)):
            if i != j:
                r2 = (x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2 + (x[i, 2] - x[j, 2]) ** 2
                energy += 1.0 / r2**6 - 1.0 / r2**3
    return energy


@njit(parallel=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def jacobi(u, steps):
    n, m = u.shape
    for _ in range(steps):
        v = u.copy()
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) + 0.01 * u[i, j] ** 2
        u = v
    return np.sum(u)


@njit(parallel=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def monte_carlo(sigma, r, noise):
    total = 0.0
    for p in prange(noise.shape[0]):
        s = 1.0
        for t in range(noise.shape[1]):
            s *= np.exp(r - 0.5 * sigma * sigma + sigma * noise[p, t])
        total += max(s - 1.0, 0.0)
    return total / noise.shape[0]


@njit(parallel=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def k_means(centers, x):
    total = 0.0
    for i in prange(x.shape[0]):
        nearest = np.inf
        for c in range(centers.shape[0]):
            d = 0.0
            for j in range(x.shape[1]):
                d += (x[i, j] - centers[c, j]) ** 2
            nearest = min(nearest, d)
        total += nearest
    return total


@njit(parallel=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def kalman_filters(q, r, series):
    total = 0.0
    for b in prange(series.shape[0]):
        m, p = 0.0, 1.0
        for t in range(series.shape[1]):
            p += q
            s = p + r
            e = series[b, t] - m
            total += 0.5 * (np.log(s) + e * e / s)
            m += p / s * e
            p *= 1.0 - p / s
    return total


def cases(size):
    """Each program with its arguments, and the positions of the arguments to differentiate."""
    rng = np.random.default_rng(1)
    n = int(400_000 * size)
    price, strike = rng.uniform(0.8, 1.2, n), rng.uniform(0.8, 1.2, n)
    rows, signs = rng.normal(size=(n // 10, 30)), np.sign(rng.normal(size=n // 10))
    side, atoms = int(600 * size**0.5), int(1500 * size**0.5)
    grid = np.stack(np.meshgrid(*[np.arange(12.0)] * 3), -1).reshape(-1, 3)[:atoms]
    return [
        (black_scholes, (price, strike, 0.3, 0.02), (0, 2)),
        (logistic_regression, (rng.normal(size=30), rows, signs), 0),
        (lennard_jones, (1.2 * grid + rng.uniform(-0.1, 0.1, grid.shape),), 0),
        (jacobi, (rng.uniform(size=(side, side)), 10), 0),
        (monte_carlo, (0.02, 0.001, rng.normal(size=(n // 20, 50))), (0, 1)),
        (k_means, (rng.normal(size=(8, 10)), rng.normal(size=(n // 10, 10))), 0),
        (kalman_filters, (0.1, 0.5, rng.normal(size=(n // 20, 60))), (0, 1)),
    ]


def first_call(function, args, wrt, **options):
    gradient = srcdiff.grad(function, wrt, cache=False, **options)
    start = time.perf_counter()
    gradient(*args)
    return gradient, time.perf_counter() - start


def working_time():
    """The processor time of this thread, and that of all others."""
    mine = time.thread_time()
    return np.array([mine, time.process_time() - mine])


def waiting_time():
    return np.array([time.perf_counter()])


def least(calls, seconds, clock=waiting_time):
    """The least time of each call, in milliseconds. The calls alternate for this many seconds."""
    best = [np.inf] * len(calls)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for k, (threads, function, args) in enumerate(calls):
            numba.set_num_threads(threads)
            start = clock()
            function(*args)
            best[k] = min(best[k], np.max(clock() - start))
    return [1e3 * t for t in best]


def time_of_all_threads(call, seconds):
    """The mean processor time of a call, in milliseconds: clocks of threads are read too late to time single calls."""
    threads, function, args = call
    numba.set_num_threads(threads)
    start, end, count = time.process_time(), time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        function(*args)
        count += 1
    return 1e3 * (time.process_time() - start) / count


def numbers(result):
    return result if isinstance(result, tuple) else (result,)


def differs(function, gradient, args, wrt, threads):
    """Whether the gradients differ by more than rounding: threads add sums in another order."""
    numba.set_num_threads(threads)
    return not agree(gradient(*args), srcdiff.grad(function, wrt)(*args), 1e-9)


def agree(found, expected, tolerance):
    return all(
        np.allclose(a, b, rtol=tolerance, atol=tolerance * np.max(np.abs(b)))
        for a, b in zip(numbers(found), numbers(expected), strict=True)
    )


def same_bits(gradient, args, threads, runs):
    numba.set_num_threads(threads)
    first = [np.asarray(x).tobytes() for x in numbers(gradient(*args))]
    return all([np.asarray(x).tobytes() for x in numbers(gradient(*args))] == first for _ in range(runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=numba.config.NUMBA_NUM_THREADS)
    parser.add_argument("--quick", action="store_true", help="small arrays, little time")
    parser.add_argument("--bits", type=int, default=0, metavar="RUNS", help="compare so many gradients bit for bit")
    parser.add_argument("--without-jax", action="store_true")
    parser.add_argument("--busy", action="store_true", help="processor time of the thread that works longest")
    parser.add_argument("names", nargs="*", metavar="PROGRAM", help="which of them (default: all)")
    given = parser.parse_args()
    if given.threads < 2:
        parser.error("one thread gains nothing")
    size, seconds = (0.1, 1.0) if given.quick else (1.0, 8.0)
    jax = None if given.without_jax else parallel_in_jax.limit(given.threads)
    srcdiff.grad(black_scholes, (0, 2), parallel=True)(np.ones(9), np.ones(9), 0.3, 0.1)  # starts Numba's threads
    print(f"one thread against {given.threads}, {numba.threading_layer()}")
    head = f"{'':20} {'primal':>9} {'gain':>5} {'gradient':>9} {'gain':>5} {'ratio':>6} {'first':>6} {'times':>6}"
    print(head + (f" {'JAX':>9} {'times':>6}" if jax is not None else ""))
    for function, args, wrt in cases(size):
        if given.names and function.__name__ not in given.names:
            continue
        function(*args)
        _, plain = first_call(function, args, wrt)
        gradient, first = first_call(function, args, wrt, parallel=True)
        calls = [(n, f, args) for f in (function, gradient) for n in (1, given.threads)]
        other = None if jax is None else parallel_in_jax.gradient_of(jax, function.__name__, args, wrt)
        calls += [] if other is None else [(given.threads, other, ())]
        if given.busy:
            primal, primals, one, several = least(calls[:4], seconds, working_time)
            whole, *others = (time_of_all_threads(call, seconds / 2) for call in calls[3:])
        else:
            primal, primals, one, several, *others = least(calls, seconds)
            whole = several
        gains = primal / primals, one / several
        ratio = gains[1] / gains[0]
        line = f"{function.__name__:20} {primal:9.3f} {gains[0]:5.2f} {one:9.3f} {gains[1]:5.2f} {ratio:6.2f} "
        line += f"{plain:6.2f} {first / plain:6.2f}"
        line += "".join(f" {time:9.3f} {time / whole:6.2f}" for time in others)
        if other is not None and not agree(gradient(*args), other(), 1e-7):
            line += "  OTHER NUMBERS THAN JAX"
        if differs(function, gradient, args, wrt, given.threads):
            line += "  OTHER NUMBERS"
        if given.bits and not same_bits(gradient, args, given.threads, given.bits):
            line += "  OTHER BITS"
        print(line, flush=True)


if __name__ == "__main__":
    main()
