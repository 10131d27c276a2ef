"""Arguments are converted to the form of compiled code, and gradients to the structure of the arguments."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

from srcdiff.frontend.boundary import result_converter
from srcdiff.frontend.domain.abstract_values import Items, Record, Static, Stored, Tuple
from srcdiff.frontend.domain.lattice import list_of
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import FLOAT, INT, Array
from srcdiff.signature.conversion import converter, gradient_converter, with_identity
from srcdiff.signature.descriptions import Description, floats_for_integers, to_differentiate_by, type_text
from srcdiff.signature.keys import describe_argument, key_of
from srcdiff.signature.structures import Layout


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Model:
    w: Any
    name: str


W = np.array([1.0, 2.0])


def converted(value: Any) -> Any:
    convert = converter(to_differentiate_by(describe_argument(value, "x", None)), value)
    return value if convert is None else convert(value)


@pytest.mark.parametrize("value", [1.5, W, (1.0, W), Pair(1.0, (W,)), "text", None])
def test_arguments_in_compiled_form_are_not_converted(value):
    assert converter(describe_argument(value, "x", None), value) is None


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        (3, 3.0),
        ((1, 2.0), (1.0, 2.0)),
        (Pair(1, "text"), Pair(1.0, "text")),
        ((1.0, None), (1.0, None)),
        ({"a": 1.0, "n": "text", "b": (2, 3.0)}, (1.0, (2.0, 3.0))),
        (Model(1.0, "name"), (1.0,)),
        ({}, ()),
    ],
)
def test_structures_become_tuples_of_their_run_time_parts(value, taken):
    found = converted(value)

    assert taken == found
    assert type(taken) is type(found)


def test_list_of_numbers_is_an_array():
    array, (inner,) = converted({"l": [1, 2.5], "d": {"k": [3]}})

    assert array.dtype == inner.dtype == np.float64
    assert ([1.0, 2.5], [3.0]) == (array.tolist(), inner.tolist())


@pytest.mark.parametrize("value", [1.5, W, (1.0, (2.0,)), Pair(1.0, 2.0)])
def test_gradients_of_numbers_arrays_and_tuples_have_their_form(value):
    assert gradient_converter(describe_argument(value, "x", None)) is None


def test_gradient_gets_the_form_of_its_argument():
    argument = {"p": Pair([1.0, 2.0], 3.0), "m": Model(4.0, "name")}
    convert = gradient_converter(describe_argument(argument, "x", None))
    assert convert is not None

    assert {"p": Pair([0.1, 0.2], 0.3), "m": Model(0.4, None)} == convert(
        argument, (Pair(np.array([0.1, 0.2, 9.0]), 0.3), (0.4, None))
    )


@pytest.mark.parametrize("x", [Static(1.0), Static("text"), Value(FLOAT), Tuple((Value(FLOAT), Static(None)))])
def test_results_in_final_form_are_not_converted(x):
    assert result_converter(x) is None


def test_result_gets_the_form_that_the_function_gives_it():
    value = Value(FLOAT)
    x = Tuple((Record((value, Static(abs)), Layout(dict, ("v", "f"))), Items((value, value)), value), None)
    convert = result_converter(x)
    assert convert is not None

    assert ({"v": 1.0, "f": abs}, [2.0, 3.0], 4.0) == convert(((1.0, None), (2.0, 3.0), 4.0))


def test_rows_of_a_list_are_made_of_its_columns():
    number = Description("value", FLOAT)
    element = Description("tuple", Pair, (number, Description("record", Layout(dict, ("k", "s")), (number, _TEXT))))
    convert = result_converter(Stored(element, (Value(Array("float64", 1)),) * 2, Value(INT)))
    assert convert is not None

    columns = np.array([1.0, 2.0, 9.0]), np.array([3.0, 4.0, 9.0])
    assert [Pair(1.0, {"k": 3.0, "s": "t"}), Pair(2.0, {"k": 4.0, "s": "t"})] == convert((*columns, 2))


def test_list_of_numbers_is_its_column():
    convert = result_converter(Stored(Description("value", FLOAT), (Value(Array("float64", 1)),), Value(INT)))
    assert convert is not None

    assert [1.0, 2.0] == convert((np.array([1.0, 2.0, 9.0]), 2))


def test_list_of_constants_has_as_many_as_its_length():
    convert = result_converter(Stored(_TEXT, (), Value(INT)))
    assert convert is not None

    assert ["t", "t"] == convert((2,))


_TEXT = Description("static", (str, "t"))


def test_lists_are_found_wherever_they_are():
    first, second = [1.0], [[2.0]]

    assert [first, second, second[0]] == with_identity({"a": first, "t": (second, 1.0)}, set())


def test_integers_to_differentiate_by_are_floats_all_the_way_down():
    described = describe_argument({"i": 3, "l": [1, 2], "t": (4, "text"), "e": []}, "x", None)

    assert "{'i': float64, 'l': [float64], 't': (float64, 'text'), 'e': [float64]}" == type_text(
        floats_for_integers(described)
    )
    assert list_of(Description("value", FLOAT)) == floats_for_integers(Description("items"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1.0,), "(float64,)"),
        ((), "()"),
        (Pair(1.0, W), "Pair(float64, float64[:])"),
        (Model(1, "m"), "Model(w: int64, name: 'm')"),
        ([(1.0, 2), {"k": []}], "[(float64, int64), {'k': []}]"),
    ],
)
def test_types_are_written_as_users_write_them(value, text):
    assert text == type_text(describe_argument(value, "x", None))


def test_keys_tell_structures_apart():
    values = [(1.0,), [1.0], {"a": 1.0}, {"b": 1.0}, {"a": 1}, Pair(1.0, 2.0), (1.0, 2.0), Model(1.0, "m"), None, {}]

    assert len(values) == len({key_of(value) for value in values})
    assert key_of({"a": (1.0, W)}) == key_of({"a": (2.0, W + 1.0)})
