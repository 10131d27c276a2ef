"""`sum_over` and `squares_over`: a loss that is a sum over chunks of data, and its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from srcdiff.diagnostics.naming_objects import named
from srcdiff.distributed.chunk_sources import Blocks, chosen
from srcdiff.distributed.executors import Progress, Work, bar, executor_for
from srcdiff.distributed.worker_programs import Program, Vector, flat_view

Function = Callable[..., Any]


class SumOver:
    """A loss that is a sum over chunks of data: see `sum_over`."""

    def __init__(
        self,
        program: Program,
        source: Any,
        args: tuple[Any, ...],
        on: Any,
        progress: Progress | None,
        scale: float = 1.0,
    ) -> None:
        self.program, self.source, self.args, self.on = program, source, args, on
        self.progress, self.scale = progress, scale
        self._run = executor_for(on)

    def __call__(self, params: Any) -> float:
        """The loss."""
        return float(self._sum("value", params)[0])

    def value_and_grad(self, params: Any) -> tuple[float, Any]:
        """The loss and its gradient, which has the structure of the parameters."""
        found = self._sum("gradient", params)
        return float(found[0]), flat_view(params).unravel(found[1:])

    def grad(self, params: Any) -> Any:
        """The gradient, with the structure of the parameters."""
        return self.value_and_grad(params)[1]

    def hvp(self, params: Any, vector: Any) -> Any:
        """The Hessian times a vector, both with the structure of the parameters."""
        view = flat_view(params)
        return view.unravel(self._sum("hvp", params, view.ravel(vector)))

    def gauss_newton(self, params: Any, vector: Any) -> Any:
        """The Gauss-Newton matrix `J.T @ J` times a vector, where `J` is the Jacobian of the residuals."""
        if not self.program.is_residuals:
            raise TypeError("a Gauss-Newton product needs residuals: use `squares_over`")
        view = flat_view(params)
        return view.unravel(self._sum("gauss_newton", params, view.ravel(vector)))

    def batches(self, chunks: int, *, seed: Any = None) -> Iterator[SumOver]:
        """All data once, in mini-batches of so many chunks, in random order.

        Each batch is a loss with the same methods. It is multiplied by the number of all chunks over the number of its
        own, so that its expected value is the whole loss if the chunks are of one size.
        """
        count = len(self.source)
        if not 0 < chunks <= count:
            raise ValueError(f"a batch has from 1 to {count} chunks, not {chunks}")
        order = np.random.default_rng(seed).permutation(count).tolist()
        for start in range(0, count, chunks):
            which = order[start : start + chunks]
            part = chosen(self.source, which)
            scale = self.scale * count / len(which)
            yield SumOver(self.program, part, self.args, self.on, self.progress, scale)

    def _sum(self, what: str, params: Any, vector: Any = None) -> Vector:
        flat_view(params)  # refuses parameters without numbers
        work = Work(self.program, what, params, vector, self.source, self.args, self.progress)
        total = self._run(work)
        return total if self.scale == 1.0 else self.scale * total

    def __repr__(self) -> str:
        return f"<the sum of {self.program.f.__name__} over {len(self.source)} chunks>"


def sum_over(
    f: Function,
    data: Any,
    *,
    args: Sequence[Any] = (),
    on: Any = None,
    progress: bool | Progress = False,
    backend: str = "numba",
) -> SumOver:
    """A loss that is a sum over chunks of data, and its derivatives by the parameters.

    >>> def misfit(p, x, y):
    ...     return np.sum((p["slope"] * x - y) ** 2)
    >>> x = np.arange(6.0)
    >>> total = sum_over(misfit, [(x[:3], 2.0 * x[:3]), (x[3:], 2.0 * x[3:])], backend="python")
    >>> total.value_and_grad({"slope": 1.0})
    (55.0, {'slope': -110.0})

    The chunks are added pairwise, in an order that depends on their number only. So the result is the same to the last
    bit for any number of workers, and if work is done again because a worker was lost.

    Args:
        f: A function of the parameters and of the arrays of one chunk that returns one float.
        data: The chunks: `distributed.rows`, `distributed.parquet`, `distributed.made`, a sequence of tuples of arrays,
            or a tuple of arrays of Dask with the same chunks along their first axes.
        args: Further arguments of `f`, behind the arrays of a chunk.
        on: Who computes: None (this process), an executor of `concurrent.futures`, a `Client` of Dask, `"dask"` (its
            default scheduler), a communicator of mpi4py, or `"ray"`.
        progress: True shows a progress bar. A function is called with the number of chunks that are done, and of all.
        backend: As for `srcdiff.grad`.
    """
    return _over(Program(f, is_residuals=False, backend=backend), data, args, on, progress)


def squares_over(
    residuals: Function,
    data: Any,
    *,
    args: Sequence[Any] = (),
    on: Any = None,
    progress: bool | Progress = False,
    backend: str = "numba",
) -> SumOver:
    """Half the sum of the squares of residuals over chunks of data, also with Gauss-Newton products.

    >>> def off(p, x, y):
    ...     return p * x - y
    >>> x = np.arange(4.0)
    >>> total = squares_over(off, [(x, 2.0 * x)], backend="python")
    >>> total(1.0), total.gauss_newton(1.0, 1.0)
    (7.0, 14.0)

    Args:
        residuals: A function of the parameters and of the arrays of one chunk that returns an array.
        data: As for `sum_over`.
        args: As for `sum_over`.
        on: As for `sum_over`.
        progress: As for `sum_over`.
        backend: As for `sum_over`.
    """
    return _over(Program(residuals, is_residuals=True, backend=backend), data, args, on, progress)


def _over(program: Program, data: Any, args: Sequence[Any], on: Any, progress: bool | Progress) -> SumOver:
    arrays = data if isinstance(data, tuple) else (data,)
    if any(_is_of_dask(a) for a in arrays):
        data, on = _blocks(arrays), "dask" if on is None else on
        if on != "dask" and type(on).__module__.split(".")[0] != "distributed":
            raise TypeError("arrays of Dask are computed by Dask: `on` must be a `Client` or 'dask'")
    if not len(data):
        raise ValueError("there is no data: no chunk")
    shown = bar if progress is True else progress or None
    return SumOver(program, data, tuple(args), on, shown)


def _is_of_dask(value: Any) -> bool:
    return type(value).__module__.startswith("dask.array")


def _blocks(arrays: Sequence[Any]) -> Blocks:
    """The chunks of arrays of Dask, as they lie on the workers."""
    import dask

    delayed: Any = dask.delayed
    for array in arrays:
        if not _is_of_dask(array):
            raise TypeError(f"all arrays must be of Dask: one is {named(array)}")
        if array.chunks[0] != arrays[0].chunks[0]:
            raise ValueError("the arrays have different chunks along their first axes: use `rechunk`")
        if any(len(sizes) > 1 for sizes in array.chunks[1:]):
            raise ValueError("an array is divided along another axis than the first: use `rechunk({1: -1})`")
    columns = [array.to_delayed().reshape(-1).tolist() for array in arrays]
    return Blocks(arrays, [delayed(tuple)(list(blocks)) for blocks in zip(*columns, strict=True)])
