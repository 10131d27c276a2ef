"""The kernels of `tests/passes` in Numba's simulator: derivatives agree with central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda

from srcdiff.backends.cuda import numba_cuda
from srcdiff.backends.cuda.cuda_spelling import CUDA
from srcdiff.backends.cuda.device import Device
from srcdiff.backends.python import interpreter
from srcdiff.emit.module import write_kernels
from srcdiff.emit.write import write_function
from srcdiff.ir.nodes import Function, Program
from tests.passes import Case
from tests.passes.test_numbers import LENGTH, choices, copies, directions, function_of, half, of, points

LAUNCHES = ((1, LENGTH), (2, 2), (2, 3), (1, 2))
"""Blocks and threads: as many threads as there are elements, more, and fewer."""
Values = list[Any]
Run = Callable[[Values], Values]


def launched(kernel: Function, shape: tuple[int, int]) -> Run:
    """The contents of the arguments after a launch."""
    module = write_kernels(kernel.name, (kernel,), (), "", CUDA)
    found = numba_cuda.load_kernels(module.text, module.objects, interpreter.new_file(module.name))[kernel.name]

    def run(args: Values) -> Values:
        args = copies(args)
        found[shape](*args)
        return args

    return run


def arguments(kernel: Function) -> Values:
    return [choices(p, k)[0] for k, p in enumerate(kernel.params)]


def launches(kernel: Function) -> list[tuple[int, int]]:
    """The launches in which no thread leaves the arrays. There is at least one."""
    found = []
    for shape in LAUNCHES:
        try:
            launched(kernel, shape)(arguments(kernel))
        except IndexError:
            continue
        found.append(shape)
    assert found
    return found


def differentiated(case: Case, kernel: Function) -> list[int]:
    return [k for k, p in enumerate(kernel.params) if p.name in case.options()["wrt"]]


def weights(argument: Any) -> Any:
    """The adjoints of the results of a kernel."""
    return np.sin(1.0 + np.arange(LENGTH)) if isinstance(argument, np.ndarray) else np.zeros(1)


def change(run: Run, args: Values, place: int, along: Any) -> Values:
    """The derivatives of the results of a kernel along a change of one argument."""
    above, below = ([*args[:place], args[place] + s * 1e-6 * along, *args[place + 1 :]] for s in (1, -1))
    return [(np.asarray(a, float) - np.asarray(b, float)) / 2e-6 for a, b in zip(run(above), run(below), strict=True)]


@pytest.mark.parametrize("case", of("kernel_adjoint", "guard_closing"))
def test_adjoint_of_a_kernel(case: Case) -> None:
    before, after = half(case, 0).main, half(case, 1).main
    args, places = arguments(before), differentiated(case, before)
    bars = {k: weights(args[k]) for k in places}
    for shape in launches(before):
        run = launched(before, shape)
        left = launched(after, shape)([*args, *bars.values()])
        for found, expected in zip(left, run(args), strict=False):
            np.testing.assert_allclose(found, expected)
        for place, bar in zip(places, left[len(args) :], strict=True):
            expected = []
            for along in directions(args[place]):
                moved = change(run, args, place, along)
                expected.append(sum(np.sum(bars[k] * moved[k]) for k in places if np.ndim(args[k])))
            np.testing.assert_allclose(bar, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("case", of("kernel_tangent"))
def test_tangent_of_a_kernel(case: Case) -> None:
    before, after = half(case, 0).main, half(case, 1).main
    args, places = arguments(before), differentiated(case, before)
    dots = {k: weights(args[k]) for k in places}
    for shape in launches(before):
        run = launched(before, shape)
        left = launched(after, shape)([*args, *dots.values()])
        changes = [change(run, args, k, dot) for k, dot in dots.items()]
        for place, dot in zip(places, left[len(args) :], strict=True):
            np.testing.assert_allclose(dot, sum(c[place] for c in changes), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("case", of("atomic_adds", "conditions", "grid_counts", "grid_strides"))
def test_pass_over_a_kernel_changes_no_number(case: Case) -> None:
    before, after = half(case, 0).main, half(case, 1).main
    for shape in launches(before):
        results = (launched(kernel, shape)(arguments(before)) for kernel in (before, after))
        for value, same in zip(*results, strict=True):
            np.testing.assert_allclose(same, value)


def hosted(program: Program) -> Callable[..., tuple[Any, ...]]:
    """A program that launches kernels."""
    main, kernels = program.main, program.callees
    module = write_kernels(main.name, kernels, (), "", CUDA)
    result = f"({''.join([f'{{{k}}}, ' for k in range(len(main.body.yields))])})"
    host = write_function(main, parameters=main.params, result=result, reserved=list(module.kernels), spelling=CUDA)
    text, objects = "\n".join(["import numpy as np", module.text, *host.lines]), module.objects | host.objects
    function: Callable[..., tuple[Any, ...]]
    function = numba_cuda.load(text, list(module.kernels), objects, Device(), interpreter.new_file(main.name))[
        main.name
    ]
    return function


@pytest.mark.parametrize("case", of("kernel_extraction"))
def test_kernels_of_a_program_give_its_numbers(case: Case) -> None:
    """Also if lengths are negative."""
    before, after = half(case, 0), half(case, 1)
    assert after.callees
    for point in points(before):
        for args in (point, [-a if isinstance(a, int) else a for a in point]):
            given = copies(args)
            on_device = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in copies(args)]
            expected = (*function_of(before)(*given), *given)
            for value, same in zip(expected, (*hosted(after)(*on_device), *on_device), strict=True):
                found = same.copy_to_host() if hasattr(same, "copy_to_host") else same
                np.testing.assert_allclose(found, value, rtol=1e-14)
