"""Structures are flattened, named and rebuilt: every kind, and every kind in every other."""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections import OrderedDict, namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

from srcdiff.frontend.domain.abstract_values import Items, Record, Static, Tuple
from srcdiff.signature.descriptions import Description
from srcdiff.signature.keys import describe_argument
from srcdiff.signature.structures import Layout, layout_of
from srcdiff.signature.trees import LEAF, NODES, TUPLES, VALUES, Structure, Trees


class Pair(NamedTuple):
    first: Any
    second: Any


Single = namedtuple("Single", "only")


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    first: Any
    second: Any


@dataclasses.dataclass
class Counted:
    first: Any
    second: Any
    made = 0

    def __post_init__(self):
        Counted.made += 1


class Axis(enum.Enum):
    X = "x"
    Y = "y"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


KINDS = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    "dictionary": lambda a, b: {"a": a, 1: b},
    "ordered": lambda a, b: OrderedDict(z=a, a=b),
    "enum keys": lambda a, b: {Axis.X: a, Level.HIGH: b},
    "namedtuple": Pair,
    "frozen": Frozen,
    "dataclass": Counted,
}
EMPTY = {"tuple": (), "list": [], "dictionary": {}, "ordered": OrderedDict(), "none": None}


def same(x: Any, y: Any) -> bool:
    return type(x) is type(y) and x == y


@pytest.mark.parametrize(("outer", "inner"), [*itertools.product(KINDS, KINDS)])
def test_every_kind_in_every_other_comes_back_from_its_leaves(outer, inner):
    value = KINDS[outer](KINDS[inner](1.5, "text"), KINDS[inner](None, 3))

    leaves, structure = VALUES.flatten(value)

    assert [1.5, "text", 3] == leaves
    rebuilt = structure.rebuild(leaves)
    assert same(value, rebuilt)
    assert all(same(x, y) for x, y in zip(VALUES.nodes(value), VALUES.nodes(rebuilt), strict=True))


@pytest.mark.parametrize("outer", KINDS)
@pytest.mark.parametrize("inner", EMPTY)
def test_empty_structures_have_no_leaves_and_are_rebuilt(outer, inner):
    value = KINDS[outer](EMPTY[inner], 2.5)

    leaves, structure = VALUES.flatten(value)

    assert [2.5] == leaves
    assert same(value, structure.rebuild(leaves))


@pytest.mark.parametrize("leaf", [1.5, True, 3, "text", np.ones(2), np.float32(1.0), object(), {1.5: 2.0}, {3, 4}])
def test_anything_else_is_a_leaf(leaf):
    leaves, structure = VALUES.flatten(leaf)

    assert 1 == len(leaves)
    assert leaves[0] is leaf
    assert structure == LEAF
    assert structure.rebuild(leaves) is leaf


def test_none_is_a_structure_without_leaves():
    leaves, structure = VALUES.flatten(None)

    assert [] == leaves
    assert structure != LEAF
    assert structure.rebuild([]) is None


@pytest.mark.parametrize("leaves", [[], [1.0], [1.0, 2.0, 3.0]])
def test_another_number_of_leaves_is_refused(leaves):
    structure = VALUES.structure({"w": (1.0,), "b": 2.0})

    with pytest.raises(ValueError, match="more leaves"):
        structure.rebuild(leaves)


def test_dataclass_is_rebuilt_without_its_init():
    value = Counted(1.0, 2.0)
    before = Counted.made

    assert same(value, VALUES.structure(value).rebuild([1.0, 2.0]))
    assert before == Counted.made


def test_structures_are_equal_where_the_values_are_made_alike():
    assert VALUES.structure({"w": (1.0, [2.0])}) == VALUES.structure({"w": (np.ones(3), ["x"])})
    assert hash(VALUES.structure((1.0,))) == hash(VALUES.structure((2.0,)))
    different: list[Structure] = [
        VALUES.structure(x) for x in ((1.0,), [1.0], (1.0, 2.0), Single(1.0), {"a": 1.0}, {"b": 1.0}, Frozen(1.0, 2.0))
    ]
    assert len(different) == len(set(different))


def test_keys_that_are_equal_to_members_of_enums_are_other_structures():
    assert VALUES.structure({2: 1.0}) != VALUES.structure({Level.HIGH: 1.0})


@pytest.mark.parametrize(
    ("kind", "names"),
    {
        "tuple": ["w[0]", "w[1][0]"],
        "list": ["w[0]", "w[1][0]"],
        "dictionary": ["w['a']", "w[1][0]"],
        "ordered": ["w['z']", "w['a'][0]"],
        "enum keys": ["w[Axis.X]", "w[Level.HIGH][0]"],
        "namedtuple": ["w[0]", "w[1][0]"],
        "frozen": ["w.first", "w.second[0]"],
    }.items(),
)
def test_parts_are_named_as_users_write_them(kind, names):
    value = KINDS[kind](1.0, (2.0, None))

    assert names == [part.name for part in VALUES.named(value, "w")]
    assert [1.0, 2.0] == [part.of(value) for part in VALUES.named(value, "w")]
    assert ["r[0]", "r[1][0]"] == [part.subscripted("r") for part in VALUES.named(value, "w")]


def test_fields_of_named_tuples_have_names_where_they_are_asked_for():
    assert ["p.first[0]", "p.second"] == [p.name for p in VALUES.named(Pair((1.0,), 2.0), "p", Layout.attribute)]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"a b": 1.0, "c": (2.0, 3.0)}, ["w_a_b", "w_c_0", "w_c_1"]),
        (Frozen(1.0, {Axis.X: 2.0}), ["w_first", "w_second_Axis_X"]),
        ([1.0, Pair(2.0, 3.0)], ["w_0", "w_1_0", "w_1_1"]),
        (1.0, ["w"]),
    ],
)
def test_parts_have_names_of_variables(value, names):
    assert names == [part.name for part in VALUES.named(value, "w", Layout.variable)]


def test_part_of_an_unnamed_value_has_no_name():
    assert ["", ""] == [part.name for part in VALUES.named({"a": 1.0, "b": (2.0,)}, "", Layout.variable)]


def test_parts_are_found_in_a_structure_of_the_same_form():
    value, other = {"w": (1.0, 2.0), "b": [3.0]}, {"w": ("x", "y"), "b": ["z"]}

    assert ["x", "y", "z"] == [one for _, one in VALUES.beside(value, other, "")]


def test_none_corresponds_to_all_parts_of_a_structure():
    found = [(part.name, one) for part, one in VALUES.beside({"w": (1.0, [2.0]), "b": 3.0}, {"w": None, "b": 4.0}, "p")]

    assert [("p['w'][0]", None), ("p['w'][1][0]", None), ("p['b']", 4.0)] == found


@pytest.mark.parametrize(("value", "other"), [((1.0, 2.0), (1.0,)), ({}, {"a": 1.0}), ((), [1.0])])
def test_structures_of_other_forms_do_not_correspond(value, other):
    with pytest.raises(ValueError, match="zip"):
        list(VALUES.beside(value, other, ""))


def test_other_kinds_of_trees_define_their_children():
    halves = Trees(lambda n: (n // 2, n - n // 2) if n > 1 else None, lambda _: layout_of((0, 0)), lambda _, x: sum(x))

    assert [1] * 5 == halves.leaves(5)
    assert 10 == halves.map(lambda _: 2, 5)
    assert ["n[0]", "n[1][0]", "n[1][1]"] == [part.name for part in halves.named(3, "n")]


def test_compiled_code_has_tuples_alone():
    assert [1.0, [2.0], None, 3.0] == TUPLES.leaves((1.0, ([2.0], None), Single(3.0)))
    assert same(Pair((2.0,), 3.0), TUPLES.map(lambda x: x + 1.0, Pair((1.0,), 2.0)))


NODE = Record((Tuple((Static(1.0), Static(2.0)), Pair), Items((Static(3.0),))), Layout(dict, ("p", "l")))


def test_representations_of_structures_are_traversed_alike():
    value = {"p": Pair(1.0, 2.0), "l": [3.0]}

    leaves, structure = NODES.flatten(NODE)

    assert [Static(1.0), Static(2.0), Static(3.0)] == leaves
    assert VALUES.structure(value) == structure
    assert value == structure.rebuild(x.value for x in leaves)
    assert [p.name for p in VALUES.named(value, "w")] == [p.name for p in NODES.named(NODE, "w")]
    assert NODE == NODES.map(lambda leaf: leaf, NODE)


@pytest.mark.parametrize("kind", ["tuple", "dictionary", "ordered", "enum keys", "namedtuple", "frozen", "dataclass"])
def test_description_of_an_argument_has_its_structure(kind):
    value = KINDS[kind](np.ones(2), KINDS[kind](2.0, "text"))

    described = describe_argument(value, "x", None)

    assert VALUES.structure(value) == NODES.structure(described)
    assert ["value", "value", "static"] == [leaf.kind for leaf in NODES.leaves(described)]
    assert described == NODES.map(lambda leaf: leaf, described)


def test_list_of_numbers_is_one_leaf_of_a_description():
    described = describe_argument({"l": [1.0, 2.0], "e": []}, "x", None)

    assert ["stored", "items"] == [leaf.kind for leaf in NODES.leaves(described)]
    assert isinstance(described, Description)
