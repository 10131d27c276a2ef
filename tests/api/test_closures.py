"""Programs for functions that are created in each call. They are compiled once, and read the new variables."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import srcdiff
from srcdiff.api.closures import Programs


def square_root(a):
    return srcdiff.root(lambda x: x * x - np.sum(a), 1.0, backend="python")


def counted():
    made = []

    def make(function, *options):
        made.append(options)
        return lambda *args: function(*args)

    return Programs(make), made


def test_functions_with_the_same_code_share_a_program():
    programs, made = counted()

    def called(a, b):
        return programs.call(lambda x, a=a: a * x + b, ("option",), 2.0)

    assert [called(a, b) for a in (1.0, 3.0) for b in (4.0, 5.0)] == [6.0, 7.0, 10.0, 11.0]
    assert len(made) == 1
    programs.call(lambda x: x, ("option",), 2.0)
    programs.call(square_root, ("option",), 2.0)
    assert len(made) == 3


def test_a_call_inside_of_a_call_has_variables_of_its_own():
    programs, made = counted()

    def factorial(n):
        return programs.call(lambda: 1 if n == 0 else n * factorial(n - 1), ())

    assert factorial(5) == 120
    assert len(made) == 6
    assert factorial(4) == 24
    assert len(made) == 6


def test_variables_may_change_their_types():
    found = [square_root(a) for a in (4.0, np.full(3, 3.0), 9, np.ones((2, 8)))]
    assert found == pytest.approx([2.0, 3.0, 3.0, 4.0])


def test_variables_may_be_other_functions():
    def of(k, a):
        return srcdiff.root(lambda x: k(x) * x - a, 1.0, backend="python")

    found = [of(k, a) for a in (1.0, 4.0) for k in (lambda x: x, lambda x: 4.0 * x)]
    assert found == pytest.approx([1.0, 0.5, 2.0, 1.0])


def test_arrays_are_not_kept():
    import weakref

    a = np.ones(2)
    square_root(a)
    dead = weakref.ref(a)
    del a
    assert dead() is None


def test_threads_have_programs_of_their_own():
    found = {}

    def run(first):
        found[first] = [square_root(float(a)) ** 2 for a in range(first, first + 40)]

    threads = [threading.Thread(target=run, args=(first,)) for first in (1, 50, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for first, squares in found.items():
        np.testing.assert_allclose(squares, np.arange(first, first + 40.0))
    assert len(found) == 3
