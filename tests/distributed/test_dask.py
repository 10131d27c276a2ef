"""Sums over data by Dask: a cluster of processes on this machine, with a worker that dies, and Dask's own arrays."""

import functools
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from srcdiff import distributed
from tests.distributed.losses import PARAMS, VECTOR, chunk, data, dies_once, fails_late, logistic, residuals

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
cluster_of = pytest.importorskip("distributed")

PROJECT = Path(__file__).parent.parent.parent
LOSS = functools.partial(distributed.sum_over, logistic, backend="python")


def flat(value):
    return np.array([*value["w"], value["b"]])


def new_cluster(workers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ports in use
        return cluster_of.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
        )


@pytest.fixture(scope="module")
def client():
    with new_cluster(4) as cluster, cluster_of.Client(cluster) as client:
        yield client


def programs_on_worker():
    from srcdiff.distributed import worker_programs

    return len(worker_programs._programs)


def test_four_workers_one_worker_and_this_process_agree_to_the_last_bit(client):
    source = distributed.made(13, chunk)
    value, gradient = LOSS(source).value_and_grad(PARAMS)
    four = LOSS(source, on=client)
    with new_cluster(1) as cluster, cluster_of.Client(cluster, set_as_default=False) as other:
        one = LOSS(source, on=other)
        for total in (four, one):
            found, slope = total.value_and_grad(PARAMS)
            assert value == found
            np.testing.assert_array_equal(flat(gradient), flat(slope))
        np.testing.assert_array_equal(flat(four.hvp(PARAMS, VECTOR)), flat(one.hvp(PARAMS, VECTOR)))


def test_a_worker_compiles_once(client):
    total = LOSS(distributed.made(13, chunk), on=client)
    before = client.run(programs_on_worker)
    for step in range(3):
        total.value_and_grad({"w": PARAMS["w"] + step, "b": 0.0})
    after = client.run(programs_on_worker)
    assert all(after[w] <= before[w] + 1 for w in after)


def test_a_worker_that_is_killed_changes_nothing(tmp_path):
    marker = tmp_path / "marker"
    source = distributed.made(9, functools.partial(dies_once, str(marker)))
    with new_cluster(2) as cluster, cluster_of.Client(cluster, set_as_default=False) as client:
        value, gradient = LOSS(source, on=client).value_and_grad(PARAMS)
    assert marker.exists()
    expected, slope = LOSS(distributed.made(9, chunk)).value_and_grad(PARAMS)
    assert expected == value
    np.testing.assert_array_equal(flat(slope), flat(gradient))


def test_arrays_of_dask_where_they_lie(client):
    x, y = data()
    expected = LOSS(distributed.rows(x, y, size=130)).value_and_grad(PARAMS)
    chunks = da.from_array(x, chunks=(130, 3)), da.from_array(y, chunks=130)
    for arrays in (chunks, client.persist(list(chunks))):
        found = LOSS(tuple(arrays), on=client).value_and_grad(PARAMS)
        assert expected[0] == found[0]
        np.testing.assert_array_equal(flat(expected[1]), flat(found[1]))
    assert expected[0] == LOSS(chunks, on="dask").value_and_grad(PARAMS)[0]


def test_arrays_that_only_the_sum_keeps(client):
    x, y = data()
    arrays = client.persist([da.from_array(x, chunks=(300, 3)), da.from_array(y, chunks=300)])
    total = LOSS(tuple(arrays), on=client)
    del arrays
    assert total(PARAMS) == LOSS(distributed.rows(x, y, size=300))(PARAMS)
    assert len([batch(PARAMS) for batch in total.batches(2, seed=0)]) == 2


def test_the_default_scheduler():
    x, y = data()
    done = []
    with dask.config.set(scheduler="synchronous"):
        total = distributed.squares_over(
            residuals,
            distributed.rows(x, y, size=130),
            on="dask",
            progress=lambda k, n: done.append((k, n)),
            backend="python",
        )
        here = distributed.squares_over(residuals, distributed.rows(x, y, size=130), backend="python")
        np.testing.assert_array_equal(flat(total.gauss_newton(PARAMS, VECTOR)), flat(here.gauss_newton(PARAMS, VECTOR)))
    assert [(k, len(done)) for k in range(1, len(done) + 1)] == done


def test_progress_and_mini_batches(client):
    done = []
    total = LOSS(distributed.made(6, chunk), on=client, progress=lambda k, n: done.append((k, n)))
    total(PARAMS)
    assert [(k, 6) for k in range(1, 7)] == done
    values = [part(PARAMS) for part in total.batches(2, seed=5)]
    assert values == [part(PARAMS) for part in LOSS(distributed.made(6, chunk)).batches(2, seed=5)]


def test_exceptions_name_the_chunk(client):
    x, y = data(40)
    x[20, 0] = 7.0
    total = distributed.sum_over(fails_late, distributed.rows(x, y, size=10), on=client, backend="python")
    with pytest.raises(ValueError, match="a row of sevens") as caught:
        total.grad(PARAMS)
    assert any("computed by `fails_late`" in note for note in caught.value.__notes__)


def test_bad_input(client):
    x, y = data(40)
    with pytest.raises(ValueError, match="different chunks"):
        LOSS((da.from_array(x, chunks=(10, 3)), da.from_array(y, chunks=20)), on=client)
    with pytest.raises(ValueError, match=r"rechunk\(\{1: -1\}\)"):
        LOSS((da.from_array(x, chunks=(10, 1)), da.from_array(y, chunks=10)), on=client)
    with pytest.raises(TypeError, match="all arrays must be of Dask"):
        LOSS((da.from_array(x, chunks=(10, 3)), y), on=client)


SCRIPT = """
import numpy as np
from pathlib import Path
from distributed import Client, LocalCluster
from srcdiff import distributed

SCALE = 3.0

def helper(z):
    return SCALE * z * z

def loss(p, x):
    total = 0.0
    for i in range(len(x)):
        total += helper(p * x[i])
    return total

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, memory_limit=None) as cluster:
        with Client(cluster) as client:
            total = distributed.sum_over(loss, [(np.ones(2),), (np.ones(3),)], on=client, backend="python")
            loss.__code__.co_filename and distributed.sum_over(loss, [(np.ones(1),)], backend="python").grad(1.0)
            Path(__file__).unlink()
            print(total.value_and_grad(2.0))
            SCALE = 5.0
            print(total.value_and_grad(2.0))
"""


def test_functions_of_a_script_are_sent_with_their_text(tmp_path):
    """The file is deleted before a worker needs it. A global that changes is sent again."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )
    assert ["(60.0, 60.0)", "(100.0, 100.0)"] == ran.stdout.split("\n")[:2], ran.stderr
