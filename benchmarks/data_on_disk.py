"""Measures sums over data: how much memory a large file needs, and how much faster two processes are than one.

    python -m benchmarks.data_on_disk [GIGABYTES]

Writes a file of so many gigabytes (1 if not given) to the folder of temporary files, and deletes it. Needs Dask.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COLUMNS = 10
ROWS = 200_000  # of a chunk: 16 MB


def loss(w, x):
    total = 0.0
    for i in range(len(x)):
        z = 0.0
        for j in range(len(w)):
            z += x[i, j] * w[j]
        total += np.log1p(np.exp(-z))
    return total


def heavy(w, x):
    """A recurrence in each row: much work on each number."""
    total = 0.0
    for i in range(len(x)):
        z = x[i, 0]
        for _ in range(50):
            for j in range(len(w)):
                z = np.sin(z + x[i, j] * w[j])
        total += z * z
    return total


def write(path: Path, gigabytes: float) -> None:
    chunks = max(1, round(gigabytes * 1e9 / (ROWS * COLUMNS * 8)))
    out = np.lib.format.open_memmap(path, "w+", np.float64, (chunks * ROWS, COLUMNS))
    rng = np.random.default_rng(0)
    for k in range(chunks):
        out[k * ROWS : (k + 1) * ROWS] = rng.normal(size=(ROWS, COLUMNS))
    out.flush()


def peak() -> float:
    """The largest resident memory of this process so far, in MB. `getrusage` would count that of the parent, too."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


def stream(path: str) -> None:
    """Runs in a process of its own: prints the memory of the process before and after."""
    from srcdiff import distributed

    distributed.sum_over(loss, [(np.zeros((2, COLUMNS)),)]).value_and_grad(np.zeros(COLUMNS))  # compiled
    source = distributed.rows(np.load(path, mmap_mode="r"), size=ROWS)
    before = peak()
    start = time.perf_counter()
    value, _ = distributed.sum_over(loss, source).value_and_grad(np.full(COLUMNS, 0.1))
    seconds = time.perf_counter() - start
    after = peak()
    print(json.dumps({"value": value, "seconds": seconds, "before": before, "after": after}))


def speed(workers: int, source: object) -> tuple[float, float, float]:
    """The seconds of a value and a gradient, the processor time of the busiest worker, and the value."""
    from distributed import Client, LocalCluster

    from srcdiff import distributed

    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": None}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        total = distributed.sum_over(heavy, source, on=client)
        value, _ = total.value_and_grad(np.full(COLUMNS, 0.1))  # compiled
        times, busiest = [], []
        for _ in range(3):
            before, start = client.run(time.process_time), time.perf_counter()
            total.value_and_grad(np.full(COLUMNS, 0.1))
            times.append(time.perf_counter() - start)
            after = client.run(time.process_time)
            busiest.append(max(after[worker] - before[worker] for worker in after))
        return min(times), min(busiest), value


def make(k: int) -> np.ndarray:
    return np.random.default_rng(k).normal(size=(20_000, COLUMNS))


def main() -> None:
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        write(path, gigabytes)
        size = path.stat().st_size / 1e9
        command = [sys.executable, "-m", "benchmarks.data_on_disk", "--stream", str(path)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout)
    print(f"{size:.2f} GB on disk: value and gradient in {found['seconds']:.1f} s")
    print(f"memory of the process: at most {found['after']:.0f} MB, {found['before']:.0f} MB before the data")

    from srcdiff import distributed

    source = distributed.made(16, make)
    (one, alone, first), (two, busiest, second) = speed(1, source), speed(2, source)
    print(f"Dask, 1 process {one:.2f} s, 2 processes {two:.2f} s: {one / two:.2f}x; the same number: {first == second}")
    print(f"processor time of the busiest process: {alone:.2f} s, {busiest:.2f} s: {alone / busiest:.2f}x")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stream"]:
        stream(sys.argv[2])
    else:
        main()
