"""Sums over data by Ray: tasks in other processes give the bits of one process. Run by .ci/bridges."""

import functools

import numpy as np
import pytest

from srcdiff import distributed
from tests.distributed.losses import PARAMS, VECTOR, chunk, data, dies_once, fails_late, logistic, residuals

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


def test_products_mini_batches_progress_and_data_that_is_sent():
    x, y = data()
    source, done = distributed.rows(x, y, size=130), []
    here, there = (
        distributed.squares_over(residuals, source, on=on, backend="python", progress=shown)
        for on, shown in ((None, False), ("ray", lambda k, n: done.append((k, n))))
    )
    assert here(PARAMS) == there(PARAMS)
    assert [(k, len(source)) for k in range(1, len(source) + 1)] == done
    np.testing.assert_array_equal(flat(here.gauss_newton(PARAMS, VECTOR)), flat(there.gauss_newton(PARAMS, VECTOR)))
    assert [part(PARAMS) for part in here.batches(2, seed=5)] == [part(PARAMS) for part in there.batches(2, seed=5)]


def test_a_worker_that_is_killed_changes_nothing(tmp_path):
    source = distributed.made(5, functools.partial(dies_once, str(tmp_path / "marker")))
    value, gradient = distributed.sum_over(logistic, source, on="ray", backend="python").value_and_grad(PARAMS)
    assert (tmp_path / "marker").exists()
    expected, slope = distributed.sum_over(logistic, distributed.made(5, chunk), backend="python").value_and_grad(
        PARAMS
    )
    assert expected == value
    np.testing.assert_array_equal(flat(slope), flat(gradient))


def test_exceptions_of_the_function():
    x, y = data(40)
    x[20, 0] = 7.0
    total = distributed.sum_over(fails_late, distributed.rows(x, y, size=10), on="ray", backend="python")
    with pytest.raises(ValueError, match="a row of sevens"):
        total.grad(PARAMS)
