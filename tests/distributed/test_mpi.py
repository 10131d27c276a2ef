"""Sums over data by MPI: `mpirun` with two and three ranks gives the result of one process, to the last bit."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from srcdiff import distributed
from tests.distributed.losses import PARAMS, VECTOR, chunk, logistic

PROJECT = Path(__file__).parent.parent.parent
PROGRAM = """
import json
import sys
from pathlib import Path
import numpy as np
from mpi4py import MPI
from srcdiff import distributed
from tests.distributed.losses import PARAMS, VECTOR, chunk, fails_late, logistic

comm = MPI.COMM_WORLD
total = distributed.sum_over(logistic, distributed.made(int(sys.argv[1]), chunk), on=comm, backend="python")
value, gradient = total.value_and_grad(PARAMS)
product = total.hvp(PARAMS, VECTOR)
numbers = [value, *gradient["w"], gradient["b"], *product["w"], product["b"]]
everywhere = comm.allgather([float(x).hex() for x in numbers])
assert all(one == everywhere[0] for one in everywhere)

ones, sevens = np.ones((4, 3)), np.full((4, 3), 7.0)
bad = distributed.sum_over(fails_late, [(ones, ones), (ones, ones), (sevens, ones)], on=comm, backend="python")
try:
    bad.grad(PARAMS)
except Exception as error:
    said = comm.gather(f"{type(error).__name__}: {error}")
if comm.Get_rank() == 0:
    Path(sys.argv[2]).write_text(json.dumps([everywhere[0], said]))
"""


def mpirun():
    # in a separate process, because a process that has initialised MPI cannot start `mpirun`
    tried = subprocess.run(
        [sys.executable, "-c", "from mpi4py import MPI"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"mpi4py does not work here: {tried.stderr.splitlines()[-1:]}")
    found = shutil.which("mpirun")
    if found is None:
        pytest.skip("there is no mpirun (on Debian: apt-get install openmpi-bin)")
    return [found, "--allow-run-as-root", "--oversubscribe"]


@pytest.mark.parametrize(("ranks", "chunks"), [(2, 9), (3, 2)])
def test_ranks_agree_to_the_last_bit_with_one_process(ranks, chunks, tmp_path):
    found = tmp_path / "found.json"  # not the output, because MPI and terminals may add to it
    ran = subprocess.run(
        [*mpirun(), "-n", str(ranks), sys.executable, "-c", PROGRAM, str(chunks), str(found)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=PROJECT,
    )
    assert 0 == ran.returncode, ran.stderr
    numbers, said = json.loads(found.read_text(encoding="utf-8"))

    total = distributed.sum_over(logistic, distributed.made(chunks, chunk), backend="python")
    value, gradient = total.value_and_grad(PARAMS)
    product = total.hvp(PARAMS, VECTOR)
    expected = np.array([value, *gradient["w"], gradient["b"], *product["w"], product["b"]])
    np.testing.assert_array_equal(expected, [float.fromhex(x) for x in numbers])

    # A rank that fails notifies the others, which do not wait for it.
    assert "ValueError: a row of sevens" in said
    assert any(one.startswith("RuntimeError: a chunk was not computed, on rank") for one in said)
