"""The executors of chunks: this process, a pool of processes, Dask, MPI or Ray. All give the same number."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass
from typing import Any

from srcdiff.distributed.pairwise_sums import PairwiseSum, Vector, added, tree_of
from srcdiff.distributed.worker_programs import Program, run_chunk

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Work:
    """The sum of vectors over all chunks of a source."""

    program: Program
    what: str
    params: Any
    vector: Any
    source: Any
    args: tuple[Any, ...]
    progress: Progress | None

    def chunk(self, k: int) -> Vector:
        return run_chunk(self.program, self.what, self.params, self.vector, self.source, k, self.args)

    def sent(self, k: int) -> tuple[Any, int]:
        """The information for a worker to find the chunk: the source and the number, or the chunk itself."""
        return (self.source, k) if getattr(self.source, "is_sent_whole", False) else (self.source[k], -1)


def executor_for(on: Any) -> Callable[[Work], Vector]:
    """The executor for what users pass as `on`."""
    library = type(on).__module__.split(".")[0]
    if on is None:
        return here
    if isinstance(on, futures.Executor):
        return lambda work: by_futures(on, work)
    if library == "distributed" or on == "dask":
        return lambda work: by_dask(None if isinstance(on, str) else on, work)
    if library == "mpi4py":
        return lambda work: by_mpi(on, work)
    if on == "ray":
        return by_ray
    kinds = "None, an executor of `concurrent.futures`, a `Client` of Dask, 'dask', a communicator of mpi4py or 'ray'"
    raise TypeError(f"`on` must be {kinds}, not {on!r}")


def here(work: Work) -> Vector:
    """One chunk after the other, in this process. A few vectors are in memory."""
    count = len(work.source)
    total = PairwiseSum(count)
    for k in range(count):
        total.add((0, k), work.chunk(k))
        if work.progress is not None:
            work.progress(k + 1, count)
    return total.result()


def by_futures(pool: futures.Executor, work: Work) -> Vector:
    """By an executor of `concurrent.futures`. At most a few dozen chunks are under way."""
    count, done = len(work.source), 0
    waiting: dict[futures.Future[Vector], int] = {}
    total, k = PairwiseSum(count), 0
    try:
        while done < count:
            while k < count and len(waiting) < 32:
                given = (work.program, work.what, work.params, work.vector, *work.sent(k), work.args)
                waiting[pool.submit(run_chunk, *given)] = k
                k += 1
            finished, _ = futures.wait(waiting, return_when=futures.FIRST_COMPLETED)
            for future in finished:
                total.add((0, waiting.pop(future)), future.result())
                done += 1
                if work.progress is not None:
                    work.progress(done, count)
    finally:
        for future in waiting:
            future.cancel()
    return total.result()


RETRIES = 3
"""How often Dask and Ray compute a chunk again whose worker was lost."""


def by_dask(client: Any, work: Work) -> Vector:
    """By Dask, as one graph: chunks where they lie, and a tree of sums on the workers."""
    import dask

    delayed: Any = dask.delayed
    program, params = delayed(work.program, traverse=False), delayed(work.params, traverse=False)
    vector = delayed(work.vector, traverse=False)
    is_sent_whole = getattr(work.source, "is_sent_whole", False)
    source = delayed(work.source, traverse=False) if is_sent_whole else None
    run, add = delayed(run_chunk, pure=False), delayed(added, pure=False)
    leaves = []
    for k in range(len(work.source)):
        chunk, place = (source, k) if is_sent_whole else (work.source[k], -1)
        leaves.append(run(program, work.what, params, vector, chunk, place, work.args))
    total = tree_of(list(leaves), add)
    client = client or _client_of(dask.base.get_scheduler())
    if client is None:
        with _shown({leaf.key for leaf in leaves}, work.progress):
            (result,) = dask.compute(total)
    else:
        future, *each = client.compute([total, *(leaves if work.progress else [])], retries=RETRIES)
        if work.progress is not None:
            _follow(each, work.progress)
        result = future.result()
    return result  # type: ignore[no-any-return]


def _client_of(scheduler: Any) -> Any:
    """The client whose method the default scheduler of Dask is; None if it runs in this process."""
    owner = getattr(scheduler, "__self__", None)
    return owner if type(owner).__module__.split(".")[0] == "distributed" else None


def _shown(keys: set[Any], progress: Progress | None) -> contextlib.AbstractContextManager[Any]:
    """A context in which schedulers of Dask in this process show the progress."""
    if progress is None:
        return contextlib.nullcontext()
    from dask.callbacks import Callback

    done = itertools.count(1)

    def after(key: Any, *_: Any) -> None:
        if key in keys:
            progress(next(done), len(keys))

    made: contextlib.AbstractContextManager[Any] = Callback(posttask=after)
    return made


def _follow(each: list[Any], progress: Progress) -> None:
    from distributed import as_completed

    for done, _ in enumerate(as_completed(each), 1):
        progress(done, len(each))


def by_ray(work: Work) -> Vector:
    """By Ray: chunks and a tree of sums as tasks."""
    import ray

    program, params, vector = ray.put(work.program), ray.put(work.params), ray.put(work.vector)
    is_sent_whole = getattr(work.source, "is_sent_whole", False)
    source = ray.put(work.source) if is_sent_whole else None
    run, add = ray.remote(max_retries=RETRIES)(run_chunk), ray.remote(max_retries=RETRIES)(added)
    leaves = []
    for k in range(len(work.source)):
        chunk, place = (source, k) if is_sent_whole else (work.source[k], -1)
        leaves.append(run.remote(program, work.what, params, vector, chunk, place, work.args))
    total = tree_of(leaves, add.remote)
    try:
        if work.progress is not None:
            waiting = leaves
            for done in range(1, len(leaves) + 1):
                _, waiting = ray.wait(waiting, num_returns=1)
                work.progress(done, len(leaves))
        return ray.get(total)  # type: ignore[no-any-return]
    except ray.exceptions.RayTaskError as error:
        raise error.as_instanceof_cause() from None


def by_mpi(comm: Any, work: Work) -> Vector:
    """By MPI. All ranks call this with the same parameters, and all get the sum.

    Each rank computes a range of chunks. Partial sums go to rank 0 along a binary tree, and the sum to all ranks.
    """
    rank, size, count = comm.Get_rank(), comm.Get_size(), len(work.source)
    total, error = PairwiseSum(count), None
    try:
        first, last = rank * count // size, (rank + 1) * count // size
        for k in range(first, last):
            total.add((0, k), work.chunk(k))
            if work.progress is not None and rank == 0:
                work.progress(k + 1, last)
    except Exception as raised:  # the other ranks wait for this one, so they are notified first
        error = raised
    failure = None if error is None else f"rank {rank}: {type(error).__name__}: {error}"
    step = 1
    while step < size:
        if rank & step:
            comm.send((failure, list(total.known.items())), dest=rank - step)
            break
        if rank + step < size:
            other, nodes = comm.recv(source=rank + step)
            failure = failure or other
            if failure is None:
                total.update(nodes)
        step *= 2
    failure, result = comm.bcast((failure, None if rank or failure else total.result()), root=0)
    if error is not None:
        raise error
    if failure is not None:
        raise RuntimeError(f"a chunk was not computed, on {failure}")
    return result  # type: ignore[no-any-return]


def bar(done: int, count: int) -> None:
    """A progress bar on standard error."""
    width = 40
    filled = width * done // max(count, 1)
    end = "\n" if done == count else ""
    print(f"\r{'#' * filled}{'.' * (width - filled)} {done}/{count} chunks", end=end, file=sys.stderr, flush=True)
