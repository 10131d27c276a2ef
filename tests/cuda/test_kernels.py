"""Users' kernels in Numba's simulator. Their derivatives agree with those of sequential programs in Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import cuda, float32, float64

import srcdiff
from srcdiff.backends.python import interpreter
from srcdiff.cuda import kernel
from tests.cuda.programs import PROGRAMS, Program

Values = tuple[Any, ...]


def arguments_and_bars(program: Program, seed: int = 1) -> tuple[Values, Values]:
    random = np.random.default_rng(seed)
    args = program.arguments(random)
    bars = tuple(
        None if not has else numbers_like(a, random) if isinstance(a, np.ndarray) else np.zeros(1)
        for a, has in zip(args, program.has_adjoint, strict=True)
    )
    return args, bars


def numbers_like(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    real = random.normal(size=array.shape)
    return real + 1j * random.normal(size=array.shape) if array.dtype.kind == "c" else real


def tangents_of(values: Values, seed: int) -> Values:
    """Tangents of the arguments with floats. Tangents of numbers are numbers."""
    random = np.random.default_rng(seed)
    found: list[Any] = []
    for value in values:
        if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
            found.append(numbers_like(value, random))
        else:
            found.append(float(random.normal()) if isinstance(value, float) else None)
    return tuple(found)


def copies(values: Values) -> Values:
    return tuple(v.copy() if isinstance(v, np.ndarray) else v for v in values)


def moved(values: Values, dots: Values, step: float) -> Values:
    return copies(tuple(v if d is None else v + step * d for v, d in zip(values, dots, strict=True)))


def expected_bars(program: Program, args: Values, bars: Values) -> Values:
    """The adjoints of the sequential program. Those of arguments that it only reads are added to."""
    left, pullback = srcdiff.vjp(program.sequential, *copies(args), backend="python")
    names = program.kernel.names
    found = pullback(**{n: b for n, b in zip(names, bars, strict=True) if n in left})
    return tuple(
        None if b is None else np.asarray(g) + (0.0 if n in left else b)
        for n, b, g in zip(names, bars, found, strict=True)
    )


def assert_equal(expected: Any, actual: Any, name: str = "") -> None:
    """Compare, up to the order of atomic adds."""
    np.testing.assert_allclose(actual, np.broadcast_to(expected, actual.shape), rtol=1e-12, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_adjoint_is_that_of_the_sequential_program(program: Program) -> None:
    args, bars = arguments_and_bars(program)
    expected = expected_bars(program, args, bars)

    program.kernel.adjoint[program.launch](copies(args), bars)

    for name, wanted, found in zip(program.kernel.names, expected, bars, strict=True):
        if wanted is not None:
            assert_equal(wanted, found, name)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_the_adjoint_leaves_the_kernels_results_in_the_arguments(program: Program) -> None:
    args, bars = arguments_and_bars(program)
    by_kernel, by_adjoint = copies(args), copies(args)

    program.kernel[program.launch](*by_kernel)
    program.kernel.adjoint[program.launch](by_adjoint, bars)

    for name, wanted, found in zip(program.kernel.names, by_kernel, by_adjoint, strict=True):
        if isinstance(wanted, np.ndarray):
            assert_equal(wanted, found, name)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_tangent_is_the_transpose_of_the_adjoint(program: Program) -> None:
    args, bars = arguments_and_bars(program)
    dots = tangents_of(args, 3)
    after, pulled = copies(dots), copies(bars)

    program.kernel.jvp[program.launch](copies(args), after)
    program.kernel.adjoint[program.launch](copies(args), pulled)

    left = sum(np.sum((np.conj(b) * d).real) for b, d in zip(bars, after, strict=True) if isinstance(d, np.ndarray))
    right = sum(np.sum((np.conj(b) * d).real) for b, d in zip(pulled, dots, strict=True) if d is not None)
    assert left == pytest.approx(right, rel=1e-11)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_tangent_of_the_adjoint_by_differences_of_the_adjoint(program: Program) -> None:
    args, bars = arguments_and_bars(program)
    dots, bar_dots = tangents_of(args, 3), tangents_of(bars, 4)
    step = 3e-5
    ends = []
    for steps in (2, 1, -1, -2):
        there = moved(bars, bar_dots, steps * step)
        program.kernel.adjoint[program.launch](moved(args, dots, steps * step), there)
        ends.append(there)

    program.kernel.adjoint.jvp[program.launch]((copies(args), copies(bars)), (copies(dots), bar_dots))

    for name, *values, found in zip(program.kernel.names, *ends, bar_dots, strict=True):
        if found is not None:  # rounding errors divided by the step; the formula is of fourth order
            wanted = (8 * (values[1] - values[2]) - (values[0] - values[3])) / (12 * step)
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9, err_msg=name)


# -- what is generated -----------------------------------------------------------------------------------------------


def program_named(name: str) -> Any:
    return next(p for p in PROGRAMS if p.name == name).kernel


def test_source_of_the_adjoint() -> None:
    text = program_named("stencil").adjoint.source

    assert text.splitlines() == [
        "import numpy as np",
        "from numba import cuda",
        "",
        "",
        "@cuda.jit",
        "def stencil_adjoint(x, y, x_bar, y_bar):",
        "    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x",
        "    condition = i > 0 and i < x.shape[0] - 1",
        "    if condition:",
        "        # forward sweep",
        "        y[i] = x[i - 1] * x[i] + np.sin(x[i + 1])",
        "        # reverse sweep",
        "        y_bar_i = y_bar[i]",
        "        y_bar[i] = 0.0",
        "        cuda.atomic.add(x_bar, i + 1, y_bar_i * np.cos(x[i + 1]))",
        "        cuda.atomic.add(x_bar, i, y_bar_i * x[i - 1])",
        "        cuda.atomic.add(x_bar, i - 1, y_bar_i * x[i])",
    ]


@pytest.mark.parametrize("name", ["saxpy", "strided", "squared", "multiplied", "recurrence", "rows", "permuted"])
def test_adds_at_the_thread_s_own_index_are_plain(name: str) -> None:
    program = next(p for p in PROGRAMS if p.name == name)

    program.kernel.adjoint[program.launch](*arguments_and_bars(program))

    atomic = [line.partition("(")[2] for line in program.kernel.adjoint.source.splitlines() if "atomic" in line]
    assert {"a_bar", "rate_bar"} >= {array.partition(",")[0] for array in atomic}


def test_source_is_that_of_the_user() -> None:
    assert program_named("squared").source.splitlines()[1] == "def squared(y):"


def test_kernel_that_is_compiled_already() -> None:
    compiled = kernel(cuda.jit(program_named("squared").py_func))
    y, y_bar = np.array([2.0, 3.0]), np.array([1.0, 10.0])

    compiled.adjoint[1, 2]((y,), (y_bar,))

    assert y.tolist() == [4.0, 9.0]
    assert y_bar.tolist() == [4.0, 60.0]


# -- types and sizes -------------------------------------------------------------------------------------------------


@kernel
def halves(a, x, y):
    parts = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    parts[t] = x[t] * a
    cuda.syncthreads()
    y[t] = parts[3 - t] * parts[t]


def test_float32_has_adjoints_in_float32() -> None:
    x, y = np.arange(1, 5, dtype=np.float32), np.zeros(4, np.float32)
    x_bar, y_bar, a_bar = np.zeros(4, np.float32), np.ones(4, np.float32), np.zeros(1)

    halves.adjoint[1, 4]((0.5, x, y), (a_bar, x_bar, y_bar))

    assert x_bar.dtype == np.float32
    assert_equal(0.5 * x[::-1], x_bar)
    assert_equal(20.0, a_bar)


def test_arguments_without_elements() -> None:
    saxpy = program_named("saxpy")
    nothing, a_bar = np.zeros(0), np.zeros(1)

    saxpy.adjoint[1, 2]((2.0, nothing, nothing.copy()), (a_bar, nothing.copy(), nothing.copy()))

    assert a_bar == 0.0


def test_nan_stays_where_it_is() -> None:
    x_bar, y_bar = np.zeros(3), np.array([1.0, np.nan, 1.0])

    program_named("multiplied").adjoint[1, 4]((np.ones(3), np.full(3, 2.0)), (x_bar, y_bar))

    np.testing.assert_array_equal(x_bar, [2.0, np.nan, 2.0])


def test_arrays_of_the_device_and_a_stream() -> None:
    x, y = (cuda.to_device(np.array(v)) for v in ([1.0, 2.0], [3.0, 4.0]))
    x_bar, y_bar = (cuda.to_device(np.array(v)) for v in ([0.0, 0.0], [1.0, 1.0]))

    program_named("multiplied").adjoint[1, 2, cuda.stream()]((x, y), (x_bar, y_bar))

    assert x_bar.copy_to_host().tolist() == [3.0, 4.0]
    assert y_bar.copy_to_host().tolist() == [1.0, 2.0]


def test_constant_arguments_have_no_adjoints() -> None:
    y_bar = np.array([1.0, 1.0])

    program_named("multiplied").adjoint[1, 2]((np.array([5.0, 6.0]), np.ones(2)), (None, y_bar))

    assert y_bar.tolist() == [5.0, 6.0]


FACTOR = 3.0


@kernel
def with_outside(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = FACTOR * x[i]


def test_numbers_from_outside() -> None:
    x_bar = np.zeros(2)

    with_outside.adjoint[1, 2]((np.ones(2), np.zeros(2)), (x_bar, np.ones(2)))

    assert x_bar.tolist() == [3.0, 3.0]


@kernel
def sum_of_three(x, y, z):
    i, j, k = cuda.grid(3)
    if i < x.shape[0] and j < y.shape[0] and k < z.shape[2]:
        z[i, j, k] = x[i] * y[j]


def test_three_axes() -> None:
    x, y, z = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.zeros((2, 2, 2))
    x_bar, y_bar = np.zeros(2), np.zeros(2)

    sum_of_three.adjoint[(1, 2, 1), (2, 1, 2)]((x, y, z), (x_bar, y_bar, np.ones((2, 2, 2))))

    assert x_bar.tolist() == [14.0, 14.0]
    assert y_bar.tolist() == [6.0, 6.0]


# -- memory and barriers ---------------------------------------------------------------------------------------------


@kernel
def grown_in_place(y, n):
    """The number of kept values depends on values that the kernel writes."""
    i = cuda.grid(1)
    if i < y.shape[0]:
        for _ in range(n):
            while y[i] < 50.0:
                y[i] = y[i] * y[i]
            y[i] = y[i] / 40.0


def test_the_measuring_kernel_does_not_write_into_the_arguments() -> None:
    y, left, y_bar = np.array([2.0, 3.0, 1.5]), np.array([2.0, 3.0, 1.5]), np.ones(3)
    grown_in_place[1, 4](left, 2)

    grown_in_place.adjoint[1, 4]((y, 2), (y_bar, None))

    assert y.tolist() == left.tolist()
    step = 1e-6
    for k in range(3):
        ends = []
        for sign in (step, -step):
            moved_one = np.array([2.0, 3.0, 1.5])
            moved_one[k] += sign
            grown_in_place[1, 4](moved_one, 2)
            ends.append(moved_one[k])
        assert y_bar[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-7)  # central differences


@kernel
def shared_behind_guard(x, y):
    parts = cuda.shared.array(4, float32)
    i = cuda.grid(1)
    if i < x.shape[0]:
        parts[cuda.threadIdx.x] = x[i]
        y[i] = parts[cuda.threadIdx.x] * parts[cuda.threadIdx.x]


def test_all_threads_clear_the_adjoints_that_they_share() -> None:
    x, x_bar = np.arange(1.0, 6.0), np.zeros(5)

    shared_behind_guard.adjoint[2, 4]((x, np.zeros(5)), (x_bar, np.ones(5)))

    assert x_bar.tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]


@kernel
def barrier_in_some_blocks(x, y):
    parts = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 1:
        parts[t] = x[t]
        cuda.syncthreads()
        y[t] = parts[3 - t] * x[t]


def test_barrier_in_a_branch_that_all_threads_of_a_block_take() -> None:
    x, x_bar = np.arange(1.0, 5.0), np.zeros(4)

    barrier_in_some_blocks.adjoint[2, 4]((x, np.zeros(4)), (x_bar, np.ones(4)))

    assert x_bar.tolist() == [8.0, 6.0, 4.0, 2.0]


# -- gradients that kernels call -------------------------------------------------------------------------------------


def potential(r, depth):
    s = 1.0
    for _ in range(6):
        s = s / r
    return 4.0 * depth * (s * s - s)


slope_of_potential = srcdiff.cuda.grad(potential)
value_and_slopes = srcdiff.cuda.value_and_grad(potential, wrt=("r", "depth"))


@cuda.jit
def energies(r, depth, forces, sums):
    i = cuda.grid(1)
    if i < r.shape[0]:
        forces[i] = -slope_of_potential(r[i], depth)
        value, (by_r, by_depth) = value_and_slopes(r[i], depth)
        sums[i] = value + by_r + by_depth


@kernel
def forces_of_potential(r, depth, forces):
    i = cuda.grid(1)
    if i < r.shape[0]:
        forces[i] = -slope_of_potential(r[i], depth)


def test_gradient_is_called_in_a_kernel() -> None:
    r, forces, sums = np.linspace(1.0, 2.0, 5), np.zeros(5), np.zeros(5)
    on_cpu = srcdiff.value_and_grad(potential, wrt=("r", "depth"), backend="python")
    expected = [on_cpu(float(x), 0.5) for x in r]

    energies[2, 4](r, 0.5, forces, sums)

    assert_equal([-gradient[0] for _, gradient in expected], forces)
    assert_equal([value + sum(gradient) for value, gradient in expected], sums)


def test_kernel_that_calls_a_gradient_has_an_adjoint() -> None:
    r, r_bar = np.linspace(1.0, 2.0, 5), np.zeros(5)
    curvature = srcdiff.hessian(potential, backend="python")

    forces_of_potential.adjoint[2, 4]((r, 0.5, np.zeros(5)), (r_bar, None, np.ones(5)))

    assert_equal([-curvature(float(x), 0.5) for x in r], r_bar)


def powered(x, n):
    p = 1.0
    for _ in range(n):
        p = p * math.sin(x)
    return p


def test_gradient_in_a_kernel_with_unknown_kept_memory_is_refused() -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="the storage that `p` needs"):
        srcdiff.cuda.grad(powered)


def test_gradient_by_an_array_is_refused_in_kernels() -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="`x` is not a number"):
        srcdiff.cuda.grad(lambda x: x[0] * x[1])


def test_types_of_a_gradient_that_kernels_call() -> None:
    assert "np.float32" not in srcdiff.cuda.grad(lambda x, n: x * n, types=(float, int)).source
    with pytest.raises(TypeError, match="one type is needed for each of the 2 arguments"):
        srcdiff.cuda.grad(lambda x, n: x * n, types=(float,))


# -- refused ---------------------------------------------------------------------------------------------------------


@kernel
def one_element(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[0] = x[i]


@kernel
def pairs(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i // 2] = x[i]


@kernel
def neighbours(x, y):
    i = cuda.grid(1)
    if i > 0 and i < x.shape[0]:
        y[i] = y[i - 1] * x[i]


@kernel
def plain_sum(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[0] += x[i]


@kernel
def no_barrier(x, y):
    parts = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    parts[t] = x[t]
    y[t] = parts[3 - t]


@kernel
def no_barrier_before_next_iteration(x, y):
    parts = cuda.shared.array(4, float32)
    t = cuda.threadIdx.x
    total = 0.0
    for k in range(2):
        parts[t] = x[t] * k
        cuda.syncthreads()
        total += parts[3 - t]
    y[t] = total


@kernel
def left_before_barrier(x, y):
    i = cuda.grid(1)
    if i >= x.shape[0]:
        return
    y[i] = x[i]
    cuda.syncthreads()


@kernel
def barrier_in_loop(x, y):
    i = cuda.grid(1)
    for _ in range(i):
        cuda.syncthreads()
    y[i] = x[i]


@kernel
def largest(x, y):
    i = cuda.grid(1)
    cuda.atomic.max(y, 0, x[i])


@kernel
def old_value(x, y):
    i = cuda.grid(1)
    y[i] = cuda.atomic.add(x, 0, 1.0)


@kernel
def warp(x, y):
    i = cuda.grid(1)
    y[i] = cuda.shfl_sync(-1, x[i], 0)


@kernel
def in_first_lane(x, y):
    i = cuda.grid(1)
    if cuda.laneid == 0:
        y[i] = x[i]


@kernel
def times_place(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * cuda.threadIdx


@kernel
def minus_function(x, y):
    i = cuda.grid(1)
    y[i] = x[i] if cuda.syncthreads else -cuda.grid


@kernel
def returning(x, y):
    i = cuda.grid(1)
    y[i] = x[i]
    return x[i]


@pytest.mark.parametrize(
    ("refused", "line", "words"),
    [
        (one_element, "y[0] = x[i]", "different threads write to the same element of `y`"),
        (pairs, "y[i // 2] = x[i]", "different threads write to the same element of `y`"),
        (neighbours, "y[i] = y[i - 1] * x[i]", "that other threads read in line"),
        (plain_sum, "y[0] += x[i]", "different threads write to the same element of `y`"),
        (no_barrier, "parts[t] = x[t]", "that other threads read in line"),
        (no_barrier_before_next_iteration, "parts[t] = x[t] * k", "that other threads read in line"),
        (left_before_barrier, "cuda.syncthreads()", "some threads may not reach this"),
        (barrier_in_loop, "cuda.syncthreads()", "some threads may not reach this"),
        (largest, "cuda.atomic.max(y, 0, x[i])", "`cuda.atomic.max` cannot be differentiated"),
        (old_value, "y[i] = cuda.atomic.add(x, 0, 1.0)", "depends on the order"),
        (warp, "y[i] = cuda.shfl_sync(-1, x[i], 0)", "`cuda.shfl_sync` cannot be differentiated"),
        (in_first_lane, "if cuda.laneid == 0:", "`cuda.laneid` is used where a value is needed"),
        (times_place, "y[i] = x[i] * cuda.threadIdx", "write `cuda.threadIdx.x`"),
        (minus_function, "y[i] = x[i] if cuda.syncthreads else", "`cuda.syncthreads` is used where a value is needed"),
        (returning, "def returning(x, y):", "a kernel cannot return a value"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_refused_with_line_and_reason(refused: Any, line: str, words: str) -> None:
    args, bars = (np.ones(4), np.ones(4)), (np.zeros(4), np.zeros(4))

    with pytest.raises(srcdiff.DifferentiationError) as caught:
        refused.adjoint[2, 4](args, bars)

    assert line in str(caught.value)
    assert words in str(caught.value)


@kernel
def two_buffers(x, n):
    parts = cuda.shared.array((2, 4), float64)
    t = cuda.threadIdx.x
    parts[0, t] = x[t]
    cuda.syncthreads()
    for k in range(n):
        parts[(k + 1) % 2, t] = parts[k % 2, 3 - t] * parts[k % 2, t]
        cuda.syncthreads()
    x[t] = parts[n % 2, t]


def test_alternating_buffers_are_not_a_race() -> None:
    x, x_bar = np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4)

    two_buffers.adjoint[1, 4]((x, 2), (x_bar, None))

    assert x.tolist() == [16.0, 36.0, 36.0, 16.0]
    assert x_bar.tolist() == [64.0, 72.0, 48.0, 16.0]


def test_one_thread_races_with_nobody() -> None:
    x_bar = np.zeros(4)

    one_element.adjoint[1, 1]((np.ones(4), np.ones(4)), (x_bar, np.ones(4)))

    assert x_bar.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_launch_along_an_axis_that_the_kernel_does_not_know_is_refused() -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=r"blockIdx.y"):
        program_named("squared").adjoint[(1, 2), 4]((np.ones(4),), (np.ones(4),))


def test_array_that_carries_derivatives_needs_an_adjoint() -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="`y` carries derivatives"):
        chained.adjoint[1, 4]((np.ones(4), np.ones(4), np.ones(4)), (np.zeros(4), None, np.ones(4)))


@kernel
def chained(x, y, z):
    i = cuda.threadIdx.x
    y[i] = math.sin(x[i])
    cuda.syncthreads()
    z[i] = y[3 - i] * y[i]


def test_arrays_that_share_memory_are_refused() -> None:
    x = np.ones(4)

    with pytest.raises(srcdiff.DifferentiationError, match="`x` and `y` share memory"):
        program_named("multiplied").adjoint[1, 4]((x, x), (np.zeros(4), np.ones(4)))
    bars = np.zeros(5)
    with pytest.raises(srcdiff.DifferentiationError, match="`x_bar` and `y_bar` share memory"):
        program_named("multiplied").adjoint[1, 4]((x, np.ones(4)), (bars[:4], bars[1:]))


def test_arrays_that_are_only_read_may_share_memory() -> None:
    x, x_bar = np.arange(5.0), np.zeros(4)

    products.adjoint[1, 4]((x[1:], x[:4], np.zeros(4)), (x_bar, None, np.ones(4)))

    assert x_bar.tolist() == [0.0, 1.0, 2.0, 3.0]


@kernel
def products(x, y, z):
    i = cuda.grid(1)
    z[i] = x[i] * y[i]


@pytest.mark.parametrize(
    ("bars", "error", "words"),
    [
        ((np.zeros(3), np.zeros(4)), ValueError, "the bar of `x` must be an array of float64 of shape \\(4,\\)"),
        ((np.zeros(4, np.float32), np.zeros(4)), ValueError, "not of float32"),
        ((0.0, np.zeros(4)), TypeError, "the bar of `x` must be an array, not float"),
        ((np.zeros(4),), TypeError, "one bar .or None. is needed for each of the 2 arguments"),
    ],
)
def test_adjoints_that_do_not_fit(bars: Values, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        program_named("multiplied").adjoint[1, 4]((np.ones(4), np.ones(4)), bars)


# -- launches ----------------------------------------------------------------------------------------------------------


@kernel
def in_warps(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = x[i] ** 2 * (i % cuda.warpsize + cuda.warpsize)


@kernel
def steps(x, n, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        value = x[i]
        for _ in range(n):
            value = np.sin(value)
        y[i] = value


def test_warps_have_thirty_two_threads() -> None:
    x, y, x_bar = np.arange(40.0), np.zeros(40), np.zeros(40)
    in_warps.adjoint[2, 20]((x, y), (x_bar, np.ones(40)))
    assert_equal(x**2 * (np.arange(40) % 32 + 32), y)
    assert_equal(2.0 * x * (np.arange(40) % 32 + 32), x_bar)


@pytest.mark.parametrize("threads", [0, 3])
def test_thread_for_each_task(threads: int) -> None:
    x, y, x_bar, x_dot, y_dot = np.arange(7.0), np.zeros(7), np.zeros(7), np.ones(7), np.zeros(7)
    in_warps.forall(7, threads)(x, y)
    assert_equal(x**2 * (np.arange(7) + 32), y)
    in_warps.adjoint.forall(7, threads)((x, y), (x_bar, np.ones(7)))
    assert_equal(2.0 * x * (np.arange(7) + 32), x_bar)
    in_warps.jvp.forall(7, tpb=threads, stream=0, sharedmem=0)((x, y), (x_dot, y_dot))
    assert_equal(2.0 * x * (np.arange(7) + 32), y_dot)


def test_no_tasks_mean_no_launch() -> None:
    x_bar = np.full(3, 5.0)
    in_warps.adjoint.forall(0)((np.ones(3), np.ones(3)), (x_bar, np.ones(3)))
    assert_equal(5.0, x_bar)
    with pytest.raises(ValueError, match="-1"):
        in_warps.adjoint.forall(-1)


def test_formulas_of_lengths_are_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    args, bars = (np.ones(4), 3, np.zeros(4)), (np.zeros(4), None, np.ones(4))
    steps.adjoint[2, 2](args, bars)
    x, x_bar = np.linspace(0.1, 0.4, 4), np.zeros(4)
    expected = srcdiff.jacobian(lambda x: np.sin(np.sin(np.sin(np.sin(np.sin(x))))), backend="python")(x)
    monkeypatch.setattr(interpreter, "load", None)
    steps.adjoint[2, 2]((x, 5, np.zeros(4)), (x_bar, None, np.ones(4)))
    assert_equal(np.diag(expected), x_bar)


def cube(x):
    return x * x * x


@kernel
def slopes(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = srcdiff.grad(cube)(x[i]) * srcdiff.jacobian(lambda z: (z, cube(z)))(x[i])[1]


def test_threads_take_derivatives():
    x, y = np.array([1.0, 2.0, 0.5]), np.zeros(3)
    x_bar, y_bar = np.zeros(3), np.ones(3)
    slopes[1, 4](x, y)
    slopes.adjoint[1, 4]((x, y), (x_bar, y_bar))

    np.testing.assert_allclose(y, 9.0 * x**4)
    np.testing.assert_allclose(x_bar, 36.0 * x**3)


@kernel
def roots_and_quotients(x, w, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = w[i] * math.sqrt(x[i]) + max(-1.0 / x[i], -4.0)


def test_an_adjoint_of_zero_contributes_nothing_in_threads():
    x, w, y = np.array([0.0, 4.0, 1.0]), np.array([0.0, 2.0, 3.0]), np.zeros(3)
    x_bar, w_bar, y_bar = np.zeros(3), np.zeros(3), np.ones(3)
    y_bar[2] = 0.0

    roots_and_quotients.adjoint[1, 4]((x, w, y), (x_bar, w_bar, y_bar))

    np.testing.assert_allclose(x_bar, [0.0, 0.5 + 1.0 / 16.0, 0.0])
    np.testing.assert_allclose(w_bar, [0.0, 2.0, 0.0])
