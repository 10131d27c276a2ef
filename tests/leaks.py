"""Looks for memory leaks: `python -m tests.leaks` makes 20,000 calls of each kind, on both backends.

    python -m tests.leaks --calls 2000 --backend python hvp raises     some of them, fewer calls
    python -m tests.leaks --functions 300                              what a compiled function takes

Memory is measured in two ways, after bounded caches are full: by the blocks of Python's own allocator, which is exact,
and by the memory of the process, which includes that of LLVM and NumPy.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import srcdiff

BACKENDS = ("python", "numba")
FEW = 500
"""Blocks that are not leaks: dictionaries that grow, and memory that is freed later. A leak has one for each call."""
NOISE = 2_000_000
"""The normal variation of the memory of the process, in bytes."""
BOUNDED = 600
"""The number of functions in the caches. After as many calls, the memory of new functions is counted."""


def energy(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += np.sin(x[i]) * x[i] ** 2
    return total


def model(parameters):
    return np.sum(parameters["w"] ** 2) * parameters["b"] + parameters["rest"][0] * parameters["rest"][1]


def failing(x):
    if x[0] > 0.0:
        raise ValueError(f"{x[0]} is too large, in {x.shape[0]}")
    return np.sum(x)


def misfitting(x, y):
    return np.sum((x + y) ** 2)


X = np.linspace(0.1, 1.0, 30)
PARAMETERS = {"w": np.ones(5), "b": 2.0, "rest": [1.0, 2.0]}


def _raising(gradient: Any, *args: Any) -> Callable[[], Any]:
    def call() -> None:
        with contextlib.suppress(ValueError):
            gradient(*args)
            raise AssertionError("nothing was raised")

    return call


def _repeated(backend: str) -> dict[str, Callable[[], Any]]:
    """Calls of existing derivatives."""
    gradient = srcdiff.grad(energy, backend=backend)
    workspace, out = gradient.workspace(X), np.empty_like(X)
    product, of_model = srcdiff.hvp(energy, backend=backend), srcdiff.value_and_grad(model, backend=backend)
    jacobian = srcdiff.jacobian(lambda x: x[:3] * x[1], backend=backend)
    batched, batch = srcdiff.batched(gradient), np.ones((3, 4))
    return {
        "grad": lambda: gradient(X),
        "hvp": lambda: product(X, X),
        "dictionaries": lambda: of_model(PARAMETERS),
        "raises": _raising(srcdiff.grad(failing, backend=backend), X),
        "sizes that differ": _raising(srcdiff.grad(misfitting, backend=backend), X, np.ones(3)),
        "vjp": lambda: srcdiff.vjp(energy, X, backend=backend)[1](1.0),
        "jvp": lambda: srcdiff.jvp(energy, (X,), (X,), backend=backend),
        "jacobian": lambda: jacobian(X),
        "batched": lambda: batched(batch),
        "workspace": lambda: workspace(X),
        "out": lambda: gradient(X, out=out),
    }


def _new(backend: str) -> dict[str, Callable[[], Any]]:
    """Calls of derivatives that each call creates."""
    return {
        "new grad": lambda: srcdiff.grad(energy, backend=backend)(X),
        "new value_and_grad": lambda: srcdiff.value_and_grad(model, backend=backend)(PARAMETERS),
        "new hvp": lambda: srcdiff.hvp(energy, backend=backend)(X, X),
        "new batched": lambda: srcdiff.batched(srcdiff.grad(energy, backend=backend))(np.ones((3, 4))),
        "new function": lambda: srcdiff.grad(lambda x: x * x * 3.0, backend=backend)(2.0),
    }


def scenarios(backend: str) -> dict[str, Callable[[], Any]]:
    return {**_repeated(backend), **_new(backend)}


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of memory after this number of calls."""

    calls: int
    blocks: int
    memory: int
    seconds: float

    @property
    def is_flat(self) -> bool:
        return self.blocks < self.calls + FEW and self.memory < NOISE

    def __str__(self) -> str:
        each = f"{self.blocks / self.calls:8.3f} blocks and {self.memory / self.calls:9.1f} bytes a call"
        return f"{self.calls:6} calls  {each}  {'' if self.is_flat else 'LEAKS  '}{self.seconds:6.1f} s"


def memory() -> int:
    """The bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(name: str, call: Callable[[], Any], calls: int) -> Growth:
    """The growth of memory by the calls, after a warm-up."""
    for _ in range(BOUNDED if name == "new function" else 60 if name.startswith("new") else 300):
        call()
    start, before, blocks = time.perf_counter(), memory(), sys.getallocatedblocks()
    for _ in range(calls):
        call()
    after = memory()
    return Growth(calls, sys.getallocatedblocks() - blocks, after - before, time.perf_counter() - start)


_FUNCTION = """
def f{k}(x, w):
    s = {k}.0
    for i in range(x.shape[0]):
        y = np.tanh(x[i] * w[0] + {k}.0)
        if y > 0.3:
            s += y * y * w[1]
        else:
            s += np.sin(y) * w[0]
    return s
"""


def memory_of_functions(count: int, backend: str, **options: Any) -> float:
    """The memory in bytes of the gradient of one function, measured with this many different functions."""
    text = "import numpy as np\n" + "".join(_FUNCTION.format(k=k) for k in range(count + 10))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "many_functions.py").write_text(text)
        sys.path.insert(0, folder)
        functions = importlib.import_module("many_functions")
        sys.path.remove(folder)
        weights, gradients = np.array([0.5, 2.0]), []
        for k in range(count + 10):
            if k == 10:  # the first functions also load the compiler
                before = memory()
            gradients.append(srcdiff.grad(getattr(functions, f"f{k}"), wrt=(0, 1), backend=backend, **options))
            gradients[-1](X, weights)
        del sys.modules["many_functions"]
        return (memory() - before) / count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--new-calls", type=int, help="of derivatives that are made for them (default: as many)")
    parser.add_argument("--functions", type=int)
    parser.add_argument("--backend", choices=BACKENDS)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which of them (default: all)")
    given = parser.parse_args()
    backends = (given.backend,) if given.backend else BACKENDS
    if given.functions:
        for backend in backends:
            each = memory_of_functions(given.functions, backend, cache=False)
            print(f"{backend:7} {given.functions} functions, {each / 1000:.0f} kB each")
        return 0
    all_flat = True
    for backend in backends:
        for name, call in scenarios(backend).items():
            if not given.names or name in given.names:
                new = name.startswith("new") and given.new_calls
                found = growth(name, call, given.new_calls if new else given.calls)
                all_flat &= found.is_flat
                print(f"{backend:7} {name:20} {found}", flush=True)
    return 0 if all_flat else 1


if __name__ == "__main__":
    sys.exit(main())
