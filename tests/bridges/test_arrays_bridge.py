"""Gradients take arrays of other libraries without copies, and return them with the labels of the arguments."""

import array

import numpy as np
import pytest

import srcdiff
from srcdiff.bridges.arrays import accepting

BASE = np.linspace(0.5, 2.0, 4)


def loss(x, scale=2.0):
    return np.sum(np.sin(x) * scale)


def gradient(**options):
    return accepting(srcdiff.grad(loss, backend="python", **options))


class OnlyDLPack:
    def __dlpack__(self, **further):
        return BASE.__dlpack__(**further)

    def __dlpack_device__(self):
        return BASE.__dlpack_device__()


OTHERS = {
    "memoryview": lambda: memoryview(BASE),
    "array": lambda: array.array("d", BASE),
    "dlpack": OnlyDLPack,
    "arrow": lambda: pytest.importorskip("pyarrow").array(BASE),
    "index": lambda: pytest.importorskip("pandas").Index(BASE),
}


@pytest.mark.parametrize("name", OTHERS)
def test_arrays_without_labels_give_arrays_of_numpy(name):
    found = gradient()(OTHERS[name]())
    assert np.ndarray is type(found)
    np.testing.assert_array_equal(found, 2.0 * np.cos(BASE))


@pytest.mark.parametrize("name", ["memoryview", "dlpack", "arrow", "series"])
def test_nothing_is_copied(name):
    from srcdiff.bridges.arrays import _converted

    given = pytest.importorskip("pandas").Series(BASE, copy=False) if name == "series" else OTHERS[name]()
    start = given.buffers()[1].address if name == "arrow" else BASE.ctypes.data
    assert start == _converted(given).ctypes.data


def test_pandas_keeps_rows_columns_and_names():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(BASE, index=[*"abcd"], name="level")
    found = gradient()(series)
    pandas.testing.assert_series_equal(found, np.cos(series) * 2.0)

    frame = pandas.DataFrame({"u": BASE, "v": 2.0 * BASE}, index=[*"abcd"])
    value, found = accepting(srcdiff.value_and_grad(loss, backend="python"))(frame, scale=3.0)
    assert value == pytest.approx(np.sum(3.0 * np.sin(frame.to_numpy())))
    pandas.testing.assert_frame_equal(found, np.cos(frame) * 3.0)


def test_xarray_keeps_dimensions_and_coordinates():
    xarray = pytest.importorskip("xarray")
    given = xarray.DataArray(BASE.reshape(2, 2), dims=("t", "x"), coords={"t": [10, 20]}, name="level")
    found = gradient()(given)
    xarray.testing.assert_identical(found, (2.0 * np.cos(given)).rename("level"))


def test_structures_several_arguments_and_further_results():
    pandas = pytest.importorskip("pandas")

    def pair(p, y):
        return np.sum(p["w"] * y) + p["b"], p["b"]

    series = pandas.Series(BASE, index=[*"abcd"])
    g = accepting(srcdiff.grad(pair, wrt=("p", "y"), has_aux=True, backend="python"))
    (of_p, of_y), further = g({"w": series, "b": 1.5}, series * 2.0)
    pandas.testing.assert_series_equal(of_p["w"], series * 2.0)
    pandas.testing.assert_series_equal(of_y, series)
    assert (1.0, 1.5) == (of_p["b"], further)


def test_the_same_labels_in_different_orders_are_refused():
    pd, xr = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    product = accepting(srcdiff.grad(lambda m, v: np.sum(m @ v), backend="python"))
    m = pd.DataFrame(np.ones((2, 3)), columns=list("abc"))
    assert product(m, pd.Series(np.arange(3.0), index=list("abc"))).loc[0, "c"] == 2.0
    assert product(m, pd.Series(np.arange(3.0), index=list("xyz"))).loc[0, "c"] == 2.0
    with pytest.raises(ValueError, match="labels of columns and rows are the same in different orders"):
        product(m, pd.Series(np.arange(3.0), index=list("cab")))
    table = pd.DataFrame(np.ones((2, 2)), index=["a", "b"], columns=["b", "a"])
    assert product(table, np.ones(2)).columns.tolist() == ["b", "a"]
    square = xr.DataArray(np.ones((2, 2)), dims=("a", "b"))
    assert product(square, square).dims == ("a", "b")
    with pytest.raises(ValueError, match=r"the dimensions \('b', 'a'\) in different orders: transpose one of them"):
        product(square, square.T)


def test_what_cannot_be_converted_gets_the_exception_of_its_library_with_the_line():
    class OnDevice:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    with pytest.raises(TypeError, match="Implicit conversion") as caught:
        accepting(srcdiff.grad(lambda x: np.sum(x * x)))(OnDevice())
    assert "in an argument of `" in caught.value.__notes__[0]


def test_different_labels_and_wrong_arguments_are_refused():
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    g = accepting(srcdiff.grad(lambda x, y: np.sum(x * y), backend="python"))
    with pytest.raises(ValueError, match="different labels of their rows: align them first"):
        g(pandas.Series(BASE, index=[*"abcd"]), pandas.Series(BASE, index=[*"abdc"]))
    one = xarray.DataArray(BASE, dims="t", coords={"t": [1, 2, 3, 4]})
    with pytest.raises(ValueError, match="different labels of their dimension 't'"):
        g(one, one.assign_coords(t=[2, 3, 4, 5]))
    with pytest.raises(srcdiff.DifferentiationError):
        g(pandas.Series([*"abcd"]), BASE)
    with pytest.raises(TypeError, match="is not a gradient"):
        accepting(np.sin)
