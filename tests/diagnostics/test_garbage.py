"""The garbage collector while programs are compiled: its settings come back, and circles are found in the end."""

import gc
import weakref

import pytest

from srcdiff.diagnostics import garbage
from srcdiff.diagnostics.garbage import seldom_collected


class Circle:
    def __init__(self):
        self.itself = self


@pytest.fixture
def unfrozen(monkeypatch):
    """Without the objects that the configuration of the tests has frozen."""
    monkeypatch.setattr(garbage, "_frozen_by_the_user", [False])
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()


def test_thresholds_come_back():
    before = gc.get_threshold()
    with seldom_collected():
        with seldom_collected():
            assert gc.get_threshold()[0] > before[0]
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_thresholds_that_are_set_meanwhile_stay():
    before = gc.get_threshold()
    try:
        with seldom_collected():
            gc.set_threshold(123)
        assert gc.get_threshold()[0] == 123
    finally:
        gc.set_threshold(*before)


def test_circles_go_when_many_objects_were_made(unfrozen, monkeypatch):
    monkeypatch.setattr(garbage, "_passed", [0, 1000])
    gc.collect()
    with seldom_collected():
        circle = weakref.ref(Circle())
    assert circle() is not None
    with seldom_collected():
        more = [[] for _ in range(2000)]
    assert circle() is None
    assert len(more) == 2000


def test_frozen_objects_stay_frozen(unfrozen):
    circle = Circle()
    gc.freeze()
    with seldom_collected():
        pass
    assert not any(x is circle for x in gc.get_objects())  # those are the objects that are not frozen
