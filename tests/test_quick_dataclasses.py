"""Classes made by srcdiff's `dataclass` behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field

import pytest

from srcdiff import quick_dataclasses


def point(dataclass):
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        names: list[str] = field(default_factory=list, compare=False, repr=False)
        y: float = field(default=0.5, kw_only=True)

    return Point


def counter(dataclass):
    @dataclass(slots=True)
    class Counter:
        count: int = 0
        seen: list[int] = field(init=False, default_factory=list)
        label: str = field(init=False, default="none")

        def __post_init__(self):
            self.seen.append(self.count)

    return Counter


def by_identity(dataclass):
    @dataclass(frozen=True, eq=False)
    class Base:
        x: int = field(default=1, kw_only=True)

    @dataclass(frozen=True, eq=False)
    class Derived(Base):
        y: int

        def __repr__(self):
            return "derived"

    return Derived


CASES = (point, ((3,), {"y": 1.5})), (point, ((3, ["a"]), {})), (counter, ((2,), {})), (by_identity, ((2,), {"x": 3}))


@pytest.mark.parametrize(("make", "given"), CASES)
def test_instances_are_those_of_the_standard_library(make, given):
    (args, kwargs), classes = given, (make(dataclasses.dataclass), make(quick_dataclasses.dataclass))
    (theirs, ours), (same, also) = ([c(*args, **kwargs) for c in classes] for _ in range(2))
    assert repr(theirs) == repr(ours)
    assert dataclasses.asdict(theirs) == dataclasses.asdict(ours)
    assert (theirs == same) is (ours == also)
    assert (theirs == 1) is (ours == 1) is False
    assert (theirs.__hash__ is None) is (ours.__hash__ is None)
    assert theirs.__hash__ is None or (hash(theirs) == hash(same)) is (hash(ours) == hash(also))
    assert classes[0].__match_args__ == classes[1].__match_args__
    assert hasattr(theirs, "__dict__") is hasattr(ours, "__dict__")
    assert dataclasses.asdict(ours) == dataclasses.asdict(dataclasses.replace(ours))


def test_frozen_instances_refuse_assignments_and_are_copied():
    ours = point(quick_dataclasses.dataclass)(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        ours.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del ours.x
    assert copy.copy(ours) == copy.deepcopy(ours) == ours


def test_missing_and_unknown_arguments_are_refused():
    for given, message in (((), "missing 1 required positional argument: 'x'"), ((1, [], 2.0), "takes from")):
        with pytest.raises(TypeError, match=message):
            point(quick_dataclasses.dataclass)(*given)


def test_operations_are_pickled():
    from srcdiff.ir.types import FLOAT

    assert pickle.loads(pickle.dumps(FLOAT)) == FLOAT
