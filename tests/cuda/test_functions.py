"""Functions on the GPU, in Numba's simulator: batches and whole-array programs, against the same on `python`."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda

import srcdiff
from srcdiff.ir.types import Array
from tests.arrays.programs import PROGRAMS as ARRAY_PROGRAMS
from tests.arrays.table import GROUPS
from tests.cuda.samples import SAMPLES, Sample
from tests.programs import PROGRAMS, Program
from tests.subset import every


def leaves(x: Any) -> list[Any]:
    if isinstance(x, tuple | list):
        return [leaf for item in x for leaf in leaves(item)]
    return [] if x is None or isinstance(x, str) else [x]


def assert_same(found: Any, expected: Any, *, single: bool = False) -> None:
    assert len(leaves(found)) == len(leaves(expected))
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        if callable(a):
            assert a is b
            continue
        rtol, atol = (2e-5, 1e-6) if single else (1e-9, 1e-11)  # sums in another order
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


# ------------------------------------------------------------------------------------------------------------ batches


@pytest.mark.parametrize("shared", ["each", "sum"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)
def test_batch(sample: Sample, shared: str) -> None:
    given = copy.deepcopy(sample.arguments)
    derivative = srcdiff.value_and_grad(sample.function, wrt=sample.wrt, backend="cuda")
    plain = srcdiff.value_and_grad(sample.function, wrt=sample.wrt, backend="python")

    found = srcdiff.batched(derivative, sample.over, shared=shared)(*given)

    single = any(getattr(a, "dtype", None) == np.float32 for a in given)
    expected = srcdiff.batched(plain, sample.over, shared=shared)(*copy.deepcopy(sample.arguments))
    assert_same(found, expected, single=single)
    assert_same(given, sample.arguments)
    for bar, name in zip(found[1], sample.wrt, strict=True):
        argument = given[derivative.names.index(name)]
        assert not isinstance(argument, np.ndarray) or bar.dtype == argument.dtype


def strided(a: Any) -> Any:
    whole = np.zeros((2 * len(a), *a.shape[1:]), a.dtype)
    whole[::2] = a
    return whole[::2]


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "one sample": lambda a: a[:1],
    "columns first": np.asfortranarray,
    "strided": strided,
    "backwards": lambda a: a[::-1],
    "on the device": cuda.to_device,
    "single precision": lambda a: a.astype(np.float32) if a.dtype == np.float64 else a,
    "narrow integers": lambda a: a.astype(np.int8) if a.dtype == np.int64 else a,
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", ["ragged_powers", "in_other_shapes"])
def test_batch_however_its_arrays_lie_in_memory(name: str, layout: Callable[[Any], Any]) -> None:
    sample = next(s for s in SAMPLES if s.name == name)
    derivative = srcdiff.value_and_grad(sample.function, sample.wrt, backend="cuda")
    plain = srcdiff.value_and_grad(sample.function, sample.wrt, backend="python")
    names = derivative.names
    given = tuple(layout(a) if n in sample.over else a for n, a in zip(names, sample.arguments, strict=True))

    value, gradients = srcdiff.batched(derivative, sample.over)(*given)

    on_host = tuple(a.copy_to_host() if hasattr(a, "copy_to_host") else a for a in given)
    expected = srcdiff.batched(plain, sample.over)(*on_host)
    found = tuple(g.copy_to_host() if hasattr(g, "copy_to_host") else g for g in (value, *gradients))
    assert_same(found, (expected[0], *expected[1]), single=any(a.dtype == np.float32 for a in on_host))
    for bar, wrt in zip(gradients, sample.wrt, strict=True):
        argument = given[names.index(wrt)]
        assert bar.dtype == argument.dtype
        assert type(bar) is type(argument) or wrt not in sample.over


@pytest.mark.parametrize(("n", "m"), [(2, 3), (-2, -3), (-2, 3), (2, -3)])
def test_loops_of_lengths_below_zero_in_one_kernel(n: int, m: int) -> None:
    def squares(a, n, m):
        total = 0.0
        for i in range(n):
            for j in range(m):
                total += a[i, j] * a[i, j]
        return total

    a = np.arange(6.0).reshape(2, 3)
    found = srcdiff.value_and_grad(squares, "a", backend="cuda")(a, n, m)

    assert_same(found, srcdiff.value_and_grad(squares, "a", backend="python")(a, n, m))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.bool_])
def test_threads_have_arrays_of_short_integers(dtype: Any) -> None:
    def weighted(x, n):
        weights = np.ones(n, dtype)
        total = 0.0
        for i in range(n):
            total += weights[i] * x
        return total

    found = srcdiff.batched(srcdiff.value_and_grad(weighted, backend="cuda"))(np.array([2.0, 3.0]), np.array([3, 4]))

    assert_same(found, (np.array([6.0, 12.0]), np.array([3.0, 4.0])))


def test_batch_of_an_array_that_is_two_results() -> None:
    def twice(v):
        w = 2.0 * v
        return w, w

    v = np.arange(6.0).reshape(2, 3)

    assert_same(srcdiff.batched(twice, backend="cuda")(v), (2.0 * v, 2.0 * v))


def test_batch_without_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="the batch is empty"):
        srcdiff.batched(srcdiff.grad(lambda x: x * x, backend="cuda"))(np.zeros(0))


def test_batch_over_an_argument_that_is_not_numeric_is_refused() -> None:
    with pytest.raises(TypeError, match="`x` is an array of object"):
        srcdiff.batched(srcdiff.grad(lambda x: x * x, backend="cuda"))(np.array([1.0, None]))


@pytest.mark.parametrize(("threads", "blocks"), [(1, 1), (3, 2), (8, 5)])
def test_any_number_of_threads_gives_the_same(threads: int, blocks: int) -> None:
    sample = next(s for s in SAMPLES if s.function.__name__ == "hidden_layer_by_loops")
    plain = srcdiff.batched(srcdiff.value_and_grad(sample.function, sample.wrt, backend="python"), sample.over)
    derivative = srcdiff.value_and_grad(sample.function, sample.wrt, backend="cuda", threads=threads, blocks=blocks)

    found = srcdiff.batched(derivative, sample.over)(*sample.arguments)

    assert_same(found, plain(*sample.arguments))


def test_less_memory_means_fewer_threads_and_the_same_numbers() -> None:
    sample = next(s for s in SAMPLES if s.function.__name__ == "swapped_buffers")
    plain = srcdiff.batched(srcdiff.value_and_grad(sample.function, sample.wrt, backend="python"), sample.over)

    for limit in (600, 10_000):
        derivative = srcdiff.value_and_grad(
            sample.function, sample.wrt, backend="cuda", threads=2, memory_limit=2 * limit
        )
        assert_same(srcdiff.batched(derivative, sample.over)(*sample.arguments), plain(*sample.arguments))


def test_too_little_memory_is_said_with_the_number() -> None:
    sample = next(s for s in SAMPLES if s.function.__name__ == "swapped_buffers")
    derivative = srcdiff.value_and_grad(sample.function, sample.wrt, backend="cuda", threads=2, memory_limit=100)

    with pytest.raises(MemoryError, match=r"needs \d+ bytes .* only 100 are available"):
        srcdiff.batched(derivative, sample.over)(*sample.arguments)


def test_exceptions_of_a_thread_are_raised_by_the_host() -> None:
    def checked(x, n):
        if n < 0:
            raise ValueError("too small")
        return x**n

    batch = srcdiff.batched(srcdiff.grad(checked, backend="cuda"))

    assert_same(batch(np.array([1.0, 2.0]), np.array([2, 3])), np.array([2.0, 12.0]))
    with pytest.raises(ValueError, match="too small"):
        batch(np.array([1.0, 2.0]), np.array([2, -1]))


def test_what_a_thread_cannot_do_is_refused_before_anything_runs() -> None:
    def solved(a, b):
        return np.sum(np.linalg.solve(a, b))

    def part_of_one_of_several(a, b):
        m = a * 2.0 if b[0] > 0.5 else a
        r = m[0]
        for i in range(3):
            q = r
            r = m[i % 2]
            r[0] = r[0] * q[1]
        return np.sum(m)

    for function, words in (
        (solved, "on arrays is not supported in code"),
        (part_of_one_of_several, r"`r\[:\] = ...`"),
    ):
        batch = srcdiff.batched(srcdiff.grad(function, backend="cuda"))
        with pytest.raises(srcdiff.DifferentiationError, match=f"SD501(.|\n)*{words}"):
            batch(np.ones((3, 2, 2)), np.ones((3, 2)))


# ------------------------------------------------------------------------------------------------- whole-array programs


def loss(w, x, y):
    return np.mean((x @ w - y) ** 2) + 0.5 * np.sum(w**2)


def test_arrays_come_back_as_the_kind_they_were_given_as() -> None:
    random = np.random.default_rng(0)
    w, x, y = random.normal(size=3), random.normal(size=(5, 3)), random.normal(size=5)
    gradient = srcdiff.grad(loss, wrt=("w", "x"), backend="cuda")
    expected = srcdiff.grad(loss, wrt=("w", "x"), backend="python")(w, x, y)

    w_bar, x_bar = gradient(cuda.to_device(w), x, y)

    assert hasattr(w_bar, "copy_to_host")
    assert isinstance(x_bar, np.ndarray)
    assert_same((w_bar.copy_to_host(), x_bar), expected)


def test_a_stream_is_used() -> None:
    w, x, y = np.ones(3), np.arange(6.0).reshape(2, 3), np.ones(2)

    found = srcdiff.grad(loss, backend="cuda", stream=cuda.stream())(w, x, y)

    assert_same(found, srcdiff.grad(loss, backend="python")(w, x, y))


def test_a_function_that_writes_into_its_arguments_writes_into_them() -> None:
    def scale(x, out):
        for i in range(len(x)):
            out[i] = 2.0 * x[i]

    out = np.zeros(3)
    srcdiff.differentiable(scale, backend="cuda")(np.arange(3.0), out)

    np.testing.assert_array_equal(out, [0.0, 2.0, 4.0])


def test_kernels_and_launches_are_in_the_source() -> None:
    gradient = srcdiff.grad(loss, backend="cuda").compile(np.ones(3), np.ones((2, 3)), np.ones(2))

    assert "@cuda.jit\ndef loss_grad_1(" in gradient.source
    assert "loss_grad_1[device.shape(blocks)](" in gradient.source


def is_recursive(program: Program) -> bool:
    return "recurs" in program.name or program.name in ("ackermann_like", "none_as_an_argument")


CORPUS = [p for p in PROGRAMS if p.at and not p.single_precision and not is_recursive(p)]


@pytest.mark.parametrize("program", every(12, CORPUS), ids=lambda p: p.name)
@pytest.mark.filterwarnings("ignore::srcdiff.ZeroGradientWarning", "ignore::RuntimeWarning")
def test_program_of_the_corpus(program: Program) -> None:
    compare(program.function, program.wrt, program.at[-1])


def as_samples(program: Program) -> tuple[tuple[int, ...], list[tuple[Any, ...]]]:
    """The arguments that can be samples, and three samples: points that differ only in these arguments."""
    first = program.at[0]
    own = tuple(k for k, x in enumerate(first) if isinstance(x, float | int | np.ndarray))
    kinds = [(type(first[k]), np.shape(first[k])) for k in own]
    full = [x for x in program.at if len(x) == len(first)]
    alike = [x for x in full if [(type(x[k]), np.shape(x[k])) for k in own] == kinds]
    samples = [tuple(x[k] if k in own else v for k, v in enumerate(first)) for x in alike]
    return own, [*samples, first, first][:3]


def takes_any_number_of_arguments(program: Program) -> bool:
    return bool(program.function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))


def takes_lists(program: Program) -> bool:
    """Whether it has lists besides its samples. Their gradients are a list for each sample, not stacked arrays."""
    return any(isinstance(x, list) for x in program.at[0])


OF_ONE_SAMPLE = [
    p
    for p in PROGRAMS
    if p.at and p.wrt and as_samples(p)[0] and not takes_any_number_of_arguments(p) and not takes_lists(p)
]


@pytest.mark.parametrize("shared", ["each", "sum"])
@pytest.mark.parametrize("program", every(18, OF_ONE_SAMPLE), ids=lambda p: p.name)
@pytest.mark.filterwarnings("ignore::srcdiff.ZeroGradientWarning", "ignore::RuntimeWarning")
def test_program_of_the_corpus_for_each_sample(program: Program, shared: str) -> None:
    """The numbers are right, or the program is refused, because a thread cannot run it."""
    own, samples = as_samples(program)
    over = own if shared == "each" else own[:1]
    if shared == "sum" and program.raises:
        samples = samples[:1] * 3  # arguments of different points may raise together
    elif shared == "sum":
        samples = [
            tuple(x if k in over else v for k, (x, v) in enumerate(zip(s, samples[0], strict=True))) for s in samples
        ]
    plain = srcdiff.value_and_grad(program.function, program.wrt, backend="python")
    expected = [plain(*copy.deepcopy(s)) for s in samples]
    stacked = tuple(np.stack(values) if k in over else values[0] for k, values in enumerate(zip(*samples, strict=True)))
    derivative = srcdiff.value_and_grad(program.function, program.wrt, backend="cuda", threads=2, blocks=1)
    batch = srcdiff.batched(derivative, over, shared=shared)

    try:
        value, gradients = batch(*stacked)
    except srcdiff.DifferentiationError as error:
        if any(p.code != "SD501" for p in error.problems):
            raise
        pytest.skip(error.problems[0].message)

    single = program.single_precision
    values = [np.stack(x) for x in zip(*(leaves(e[0]) for e in expected), strict=True)]
    assert_same(leaves(value), values, single=single)
    for k, bar in zip(program.wrt, gradients, strict=True):
        each = [leaves(e[1][program.wrt.index(k)]) for e in expected]
        wanted = [np.stack(x) for x in zip(*each, strict=True)]
        if shared == "sum" and k not in over:
            wanted = [np.sum(x, axis=0) for x in wanted]
        assert_same(leaves(bar), wanted, single=single)


@pytest.mark.parametrize("program", every(11, ARRAY_PROGRAMS), ids=lambda p: p.name)
@pytest.mark.filterwarnings("ignore::srcdiff.ZeroGradientWarning", "ignore::RuntimeWarning")
def test_array_program(program: Any) -> None:
    compare(program.function, program.wrt, program.at[0])


ROWS = [pytest.param(row, id=f"{group}-{row.name}") for group, rows in GROUPS.items() for row in rows]


@pytest.mark.parametrize("row", every(24, ROWS))
@pytest.mark.filterwarnings("ignore::srcdiff.ZeroGradientWarning", "ignore::RuntimeWarning")
def test_array_function(row: Any) -> None:
    compare(row.function, row.wrt, row.at[0])


def compare(function: Callable[..., Any], wrt: Any, arguments: tuple[Any, ...]) -> None:
    given = copy.deepcopy(arguments)
    expected = srcdiff.value_and_grad(function, wrt=wrt, backend="python")(*copy.deepcopy(arguments))

    found = srcdiff.value_and_grad(function, wrt=wrt, backend="cuda")(*given)

    single = any(isinstance(a, np.ndarray) and a.dtype == np.float32 for a in leaves(arguments))
    assert_same(found, expected, single=single)
    assert_same(given, arguments)


def test_kernels_have_the_types_that_they_are_compiled_for() -> None:
    gradient = srcdiff.grad(loss, backend="cuda").compile(np.ones(3), np.ones((2, 3)), np.ones(2))

    kernels = gradient._on_device().module.kernels

    assert Array("float64", 1) in kernels["loss_grad_1"]


def test_every_mode_runs_on_the_gpu() -> None:
    random = np.random.default_rng(2)
    w, x, v = random.normal(size=3), random.normal(size=(4, 3)), random.normal(size=3)

    def f(w, x):
        return np.sum(np.tanh(x @ w) ** 2)

    def scaled(x, w):
        return np.exp(x) * w

    def found(backend: str) -> list[Any]:
        value, pullback = srcdiff.vjp(scaled, v, w, backend=backend)
        return [
            srcdiff.jvp(f, (w, x), (v, None), backend=backend),
            srcdiff.hvp(f, backend=backend)(w, x, v),
            srcdiff.jacobian(scaled, backend=backend)(v, w),
            srcdiff.hessian(f, backend=backend)(w, x),
            value,
            pullback(np.ones(3)),
        ]

    assert_same(found("cuda"), found("python"))


def chosen_by_a_flag(x, flag):
    return x * x if flag else 3.0 * x


def test_flags_of_a_batch_are_those_of_its_samples() -> None:
    batch = srcdiff.batched(srcdiff.grad(chosen_by_a_flag, backend="cuda"), over=("x", "flag"))

    found = batch(np.array([0.3, 0.4, 0.5]), np.array([True, False, True]))

    np.testing.assert_allclose(found, [0.6, 3.0, 1.0], rtol=1e-15)
