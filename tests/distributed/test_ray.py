"""Sums over data by Ray: tasks in other processes give the bits of one process. Run by .ci/bridges."""

import numpy as np
import pytest

from srcdiff import distributed
from tests.distributed.losses import PARAMS, VECTOR, chunk, data, fails_late, logistic

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def flat(value):
    return np.array([*value["w"], value["b"]])


def test_tasks_agree_to_the_last_bit_with_one_process():
    source = distributed.made(9, chunk)
    here, there = (distributed.sum_over(logistic, source, on=on, backend="python") for on in (None, "ray"))
    assert here(PARAMS) == there(PARAMS)
    np.testing.assert_array_equal(flat(here.grad(PARAMS)), flat(there.grad(PARAMS)))
    np.testing.assert_array_equal(flat(here.hvp(PARAMS, VECTOR)), flat(there.hvp(PARAMS, VECTOR)))


def test_exceptions_of_the_function():
    x, y = data(40)
    x[20, 0] = 7.0
    total = distributed.sum_over(fails_late, distributed.rows(x, y, size=10), on="ray", backend="python")
    with pytest.raises(ValueError, match="a row of sevens"):
        total.grad(PARAMS)
