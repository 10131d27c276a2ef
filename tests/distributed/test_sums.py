"""Sums over chunks in this process and in a pool of processes, from arrays and from files."""

import functools
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import srcdiff
from srcdiff import distributed
from srcdiff.distributed.pairwise_sums import PairwiseSum, tree_of
from tests.distributed.losses import PARAMS, VECTOR, chunk, data, fails_late, logistic, residuals

LOSS = functools.partial(distributed.sum_over, logistic, backend="python")
SQUARES = functools.partial(distributed.squares_over, residuals, backend="python")


def whole(f):
    def loss(p, x, y):
        return 0.5 * np.sum(f(p, x, y) ** 2)

    return loss


def flat(value):
    return np.array([*value["w"], value["b"]])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 13, 64, 100])
def test_the_order_in_which_chunks_arrive_makes_no_difference(count):
    rng = np.random.default_rng(count)
    vectors = rng.normal(size=(count, 2)) * 10.0 ** rng.integers(-8, 8, (count, 1))
    expected = tree_of(list(vectors), lambda a, b: a + b)
    for _ in range(5):
        total = PairwiseSum(count)
        for k in rng.permutation(count):
            total.add((0, int(k)), vectors[k])
        np.testing.assert_array_equal(total.result(), expected)


@pytest.mark.parametrize(("count", "workers"), [(5, 2), (8, 3), (13, 4), (3, 5)])
def test_partial_sums_of_workers_give_the_same(count, workers):
    vectors = np.random.default_rng(0).normal(size=(count, 2))
    total = PairwiseSum(count)
    for rank in range(workers):
        part = PairwiseSum(count)
        for k in range(rank * count // workers, (rank + 1) * count // workers):
            part.add((0, k), vectors[k])
        total.update(list(part.known.items()))
    np.testing.assert_array_equal(total.result(), tree_of(list(vectors), lambda a, b: a + b))


def test_derivatives_of_the_sum_are_those_of_the_whole():
    x, y = data()
    total = LOSS(distributed.rows(x, y, size=130))
    value, gradient = total.value_and_grad(PARAMS)
    expected, slope = srcdiff.value_and_grad(logistic, backend="python")(PARAMS, x, y)
    np.testing.assert_allclose([value, total(PARAMS)], expected, rtol=1e-13)
    np.testing.assert_allclose(flat(gradient), flat(slope), rtol=1e-12)
    assert (dict, float) == (type(gradient), type(gradient["b"]))
    product = srcdiff.hvp(logistic, backend="python")(PARAMS, x, y, VECTOR)
    np.testing.assert_allclose(flat(total.hvp(PARAMS, VECTOR)), flat(product), rtol=1e-11)
    np.testing.assert_array_equal(flat(total.grad(PARAMS)), flat(gradient))


def test_gauss_newton_products():
    x, y = data(40)
    total = SQUARES(distributed.rows(x, y, size=11))
    jacobian = srcdiff.jacobian(residuals, backend="python")(PARAMS, x, y)
    matrix = np.column_stack([jacobian["w"], jacobian["b"]])
    np.testing.assert_allclose(flat(total.gauss_newton(PARAMS, VECTOR)), matrix.T @ matrix @ flat(VECTOR), rtol=1e-12)
    np.testing.assert_allclose(total(PARAMS), 0.5 * np.sum(residuals(PARAMS, x, y) ** 2), rtol=1e-13)
    np.testing.assert_allclose(flat(total.grad(PARAMS)), matrix.T @ residuals(PARAMS, x, y), rtol=1e-12)
    with pytest.raises(TypeError, match="use `squares_over`"):
        LOSS(distributed.rows(x, y, size=11)).gauss_newton(PARAMS, VECTOR)


def test_compiled_code_gives_the_same():
    source = distributed.made(5, chunk)
    compiled = distributed.sum_over(logistic, source)
    np.testing.assert_allclose(flat(compiled.grad(PARAMS)), flat(LOSS(source).grad(PARAMS)), rtol=1e-12)


@pytest.mark.parametrize("workers", [1, 3])
def test_processes_agree_to_the_last_bit(workers):
    total = LOSS(distributed.made(9, chunk))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        other = LOSS(distributed.made(9, chunk), on=pool)
        assert total.value_and_grad(PARAMS)[0] == other.value_and_grad(PARAMS)[0]
        np.testing.assert_array_equal(flat(total.grad(PARAMS)), flat(other.grad(PARAMS)))
        np.testing.assert_array_equal(flat(total.hvp(PARAMS, VECTOR)), flat(other.hvp(PARAMS, VECTOR)))


def test_threads():
    total, done = LOSS(distributed.made(9, chunk)), []
    with ThreadPoolExecutor(2) as pool:
        other = LOSS(distributed.made(9, chunk), on=pool, progress=lambda k, n: done.append((k, n)))
        np.testing.assert_array_equal(flat(total.grad(PARAMS)), flat(other.grad(PARAMS)))
    assert [(k, 9) for k in range(1, 10)] == done


def test_memory_maps_are_read_and_not_mapped(tmp_path):
    x, y = data()
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xy"]
    source = distributed.rows(*mapped, size=130)
    expected = LOSS(distributed.rows(x, y, size=130)).value_and_grad(PARAMS)
    found = LOSS(source).value_and_grad(PARAMS)
    assert expected[0] == found[0]
    assert not isinstance(source[0][0].base, np.memmap)
    assert len(pickle.dumps(source)) < 1000  # the path is sent, not the numbers
    part = distributed.rows(mapped[0][10:], mapped[1][10:], size=130)
    np.testing.assert_array_equal(part[1][0], x[140:270])
    (tmp_path / "y.npy").write_bytes((tmp_path / "y.npy").read_bytes()[:-80])
    with pytest.raises(ValueError, match="has become shorter"):
        LOSS(source).value_and_grad(PARAMS)


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    x, y = data()
    arrays = [
        zarr.create_array(str(tmp_path / name), data=a, chunks=(130, *a.shape[1:])) for name, a in (("x", x), ("y", y))
    ]
    expected = LOSS(distributed.rows(x, y, size=130)).value_and_grad(PARAMS)
    source = distributed.rows(*arrays, size=130)
    assert expected[0] == LOSS(source).value_and_grad(PARAMS)[0]
    assert expected[0] == LOSS(pickle.loads(pickle.dumps(source))).value_and_grad(PARAMS)[0]


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    x, y = data()
    for name, part in (("a", slice(0, 520)), ("b", slice(520, 1000))):
        table = pa.table({"p": x[part, 0], "q": x[part, 1], "r": x[part, 2], "hit": y[part]})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=130)
    source = distributed.parquet(tmp_path, [["p", "q", "r"], "hit"])
    expected = LOSS(distributed.rows(x, y, size=130)).value_and_grad(PARAMS)
    assert (8, expected[0]) == (len(source), LOSS(source).value_and_grad(PARAMS)[0])
    with pytest.raises(KeyError, match="no column 'z'"):
        distributed.parquet(tmp_path / "a.parquet", ["z"])
    pq.write_table(pa.table({"p": [1.0, None]}), tmp_path / "c.parquet")
    with pytest.raises(ValueError, match="missing values"):
        distributed.parquet(tmp_path / "c.parquet", ["p"])[0]
    with pytest.raises(FileNotFoundError, match="no files named"):
        distributed.parquet(tmp_path / "..", ["p"])


def test_mini_batches_cover_the_data_once():
    total = LOSS(distributed.made(7, chunk))
    parts = list(total.batches(2, seed=1))
    assert [2, 2, 2, 1] == [len(part.source) for part in parts]
    sums = [part(PARAMS) / part.scale for part in parts]
    np.testing.assert_allclose(sum(sums), total(PARAMS), rtol=1e-13)
    assert [p(PARAMS) for p in total.batches(2, seed=1)] == [p(PARAMS) for p in parts]
    with pytest.raises(ValueError, match="from 1 to 7 chunks"):
        next(total.batches(8))


def test_gradients_of_mini_batches_are_unbiased():
    x, y = data(120)
    total = LOSS(distributed.rows(x, y, size=20))
    mean = np.mean([flat(part.grad(PARAMS)) for part in total.batches(2, seed=0)], axis=0)
    np.testing.assert_allclose(mean, flat(total.grad(PARAMS)), rtol=1e-12)


def test_further_arguments_and_a_progress_bar(capsys):
    def scaled(p, x, factor):
        return factor * p * np.sum(x)

    total = distributed.sum_over(scaled, [np.ones(2), np.ones(3)], args=(4.0,), progress=True, backend="python")
    assert (20.0, 20.0) == total.value_and_grad(1.0)
    assert "2/2 chunks" in capsys.readouterr().err


def test_nan_is_a_value():
    x, y = data(40)
    x[13, 1] = np.nan
    assert np.isnan(LOSS(distributed.rows(x, y, size=10))(PARAMS))


def test_exceptions_name_the_chunk_and_the_function():
    x, y = data(40)
    x[20, 0] = 7.0
    total = distributed.sum_over(fails_late, distributed.rows(x, y, size=10), backend="python")
    with pytest.raises(ValueError, match="a row of sevens") as caught:
        total.grad(PARAMS)
    (note,) = caught.value.__notes__
    assert "in chunk 2 of the data, computed by `fails_late`" in note


def test_bad_input():
    x, y = data(40)
    with pytest.raises(ValueError, match="different numbers of rows: 40, 39"):
        distributed.rows(x, y[1:], size=10)
    with pytest.raises(ValueError, match="positive number"):
        distributed.rows(x, size=0)
    with pytest.raises(ValueError, match="no chunk"):
        distributed.sum_over(logistic, [])
    with pytest.raises(TypeError, match="`on` must be None"):
        distributed.sum_over(logistic, [(x, y)], on=3)
    with pytest.raises(TypeError, match="is not a Python function"):
        distributed.sum_over(np.sum, [(x, y)])
    with pytest.raises(ValueError, match="no number"):
        LOSS([(x, y)]).grad({"name": "a"})
    with pytest.raises(ValueError, match="must have the shape"):
        LOSS([(x, y)]).hvp(PARAMS, {"w": np.ones(2), "b": 0.0})
    with pytest.raises(srcdiff.DifferentiationError, match=r"test_sums\.py"):
        distributed.sum_over(lambda p, x: eval("p"), [x], backend="python").grad(1.0)
    with pytest.raises(TypeError, match=r"must be one float, not an array of shape \(40, 3\)"):
        distributed.sum_over(lambda p, x: p * x, [x], backend="python")(1.0)
