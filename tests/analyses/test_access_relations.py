"""Access relations of small programs: is an element that a load reads still in memory after the forward sweep?"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from srcdiff.analyses.access_relations import Affine, affine, never_overwrites
from srcdiff.analyses.saved_values import StillThere
from srcdiff.analyses.structure import structure_of
from srcdiff.frontend.read import read
from srcdiff.frontend.source.capture import capture
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.nodes import Function, Load, Loop, Store, walk
from srcdiff.passes.cse import eliminate_common_subexpressions
from srcdiff.passes.simplify import simplify
from srcdiff.signature.keys import describe_argument

VECTOR, MATRIX = np.ones(5), np.ones((5, 5))


def program(function: Callable[..., Any], *arguments: Any) -> Function:
    captured = capture(function)
    names = [a.arg for a in captured.node.args.args]
    descriptions = {n: describe_argument(a, n, None) for n, a in zip(names, arguments, strict=True)}
    return simplify(eliminate_common_subexpressions(simplify(read(captured, descriptions).program.main)))


def still_there(function: Callable[..., Any], *arguments: Any) -> dict[str, list[bool]]:
    """For each line with loads, the known facts about them, from left to right."""
    main = program(function, *arguments)
    answers = StillThere(structure_of(main), points_to(main))
    found: dict[str, list[bool]] = {}
    for operation in walk(main.body):
        if isinstance(operation, Load):
            assert operation.span is not None
            found.setdefault(operation.span.text.strip(), []).append(answers.after(operation))
    return found


# --------------------------------------------------------------------------------------- the array itself is the record


def test_cholesky_in_place_leaves_every_factor_that_it_reads():
    def cholesky(a):
        n = a.shape[0]
        for j in range(n):
            for k in range(j):
                for i in range(j, n):
                    a[i, j] -= a[i, k] * a[j, k]
            a[j, j] = math.sqrt(a[j, j])
            for i in range(j + 1, n):
                a[i, j] /= a[j, j]
        return a[0, 0]

    assert still_there(cholesky, MATRIX) == {
        "a[i, j] -= a[i, k] * a[j, k]": [True, True],
        "a[j, j] = math.sqrt(a[j, j])": [False],
        "a[i, j] /= a[j, j]": [False, True],
        "return a[0, 0]": [True],
    }


def test_time_steps_in_rows_of_one_array_are_their_own_record():
    def steps(u):
        for t in range(u.shape[0] - 1):
            for i in range(1, u.shape[1] - 1):
                u[t + 1, i] = u[t, i] * u[t, i - 1]
        return u[0, 0]

    assert still_there(steps, MATRIX)["u[t + 1, i] = u[t, i] * u[t, i - 1]"] == [True, True]


def test_recurrence_along_an_array_is_its_own_record():
    def recurrence(u):
        for t in range(len(u) - 1):
            u[t + 1] = u[t] * u[t]
        return u[-1]

    assert still_there(recurrence, VECTOR)["u[t + 1] = u[t] * u[t]"] == [True]


def test_recurrence_that_runs_back_is_its_own_record():
    def recurrence(u, n):
        for t in range(n - 2, -1, -1):
            u[t] = u[t + 1] * u[t + 1]
        return u[0]

    assert still_there(recurrence, VECTOR, 5)["u[t] = u[t + 1] * u[t + 1]"] == [True]


def test_array_that_is_only_read_is_there():
    def product(u, v):
        for i in range(len(u)):
            v[i] = u[i] * u[i]
        return v[0]

    assert still_there(product, VECTOR, VECTOR)["v[i] = u[i] * u[i]"] == [True]


def test_halves_of_an_array_do_not_touch():
    def halves(u, n):
        for i in range(n):
            u[i + n] = u[i] * u[i]
        return u[0]

    assert still_there(halves, VECTOR, 2)["u[i + n] = u[i] * u[i]"] == [True]


def test_even_and_odd_elements_do_not_touch():
    def interleaved(u, n):
        for i in range(n):
            u[2 * i + 1] = u[2 * i] * u[2 * i]
        return u[0]

    assert still_there(interleaved, VECTOR, 2)["u[2 * i + 1] = u[2 * i] * u[2 * i]"] == [True]


# ---------------------------------------------------------------------------------------------------------- overwritten


def test_gauss_seidel_overwrites_what_it_reads():
    def relaxed(u, iterations):
        for _ in range(iterations):
            for i in range(1, len(u) - 1):
                u[i] = u[i] * (u[i - 1] + u[i + 1])
        return u[1]

    assert still_there(relaxed, VECTOR, 3)["u[i] = u[i] * (u[i - 1] + u[i + 1])"] == [False, False, False]


def test_one_sweep_reads_the_left_neighbour_after_its_last_write():
    def swept(u):
        for i in range(1, len(u) - 1):
            u[i] = u[i] * (u[i - 1] + u[i + 1])
        return u[1]

    assert still_there(swept, VECTOR)["u[i] = u[i] * (u[i - 1] + u[i + 1])"] == [False, True, False]


def test_sweep_that_runs_back_reads_the_right_neighbour_after_its_last_write():
    def swept(u, n):
        for i in range(n - 2, 0, -1):
            u[i] = u[i] * (u[i - 1] + u[i + 1])
        return u[1]

    assert still_there(swept, VECTOR, 5)["u[i] = u[i] * (u[i - 1] + u[i + 1])"] == [False, False, True]


def test_store_behind_a_load_in_the_same_iteration_overwrites_it():
    def scaled(u):
        for i in range(len(u)):
            u[i] = u[i] * u[i]
        return u[0]

    assert still_there(scaled, VECTOR) == {"u[i] = u[i] * u[i]": [False], "return u[0]": [True]}


def test_augmented_addition_overwrites_the_element_that_was_read():
    def grows(u):
        y = u[0]
        u[0] += y * y
        return u[0]

    assert still_there(grows, VECTOR) == {"y = u[0]": [False], "return u[0]": [True]}


def test_loop_of_unknown_length_may_come_round_to_the_store():
    def searched(u, limit):
        i = 0
        total = 0.0
        while total < limit:
            y = u[i]
            total += y * y
            u[i] = 0.0
            i += 1
        return total

    assert still_there(searched, VECTOR, 3.0)["y = u[i]"] == [False]


def test_the_counter_after_an_early_exit_is_unknown():
    def searched(u):
        total = 0.0
        for i in range(len(u) - 1):
            y = u[i]
            total += y * y
            if total > 3.0:
                break
            u[i + 1] = y
        return total

    assert still_there(searched, VECTOR)["y = u[i]"] == [False]


def test_index_that_is_read_from_an_array_may_be_any():
    def scattered(u, order):
        total = 0.0
        for k in range(len(order)):
            y = u[k]
            total += y * y
            u[order[k]] = 1.0
        return total

    assert still_there(scattered, VECTOR, np.arange(5))["y = u[k]"] == [False]


# ----------------------------------------------------------------------------------------------------- triangular loops


def test_triangular_loop_reads_only_what_is_finished():
    def lower(a):
        for i in range(a.shape[0]):
            for j in range(i):
                a[i, j] = a[j, j] * a[j, j]
            a[i, i] = a[i, i] * 2.0
        return a[0, 0]

    assert still_there(lower, MATRIX)["a[i, j] = a[j, j] * a[j, j]"] == [True]


def test_triangular_loop_reads_what_comes_later():
    def upper(a):
        for i in range(a.shape[0]):
            for j in range(i + 1, a.shape[0]):
                a[i, j] = a[j, j] * a[j, j]
            a[i, i] = a[i, i] * 2.0
        return a[0, 0]

    assert still_there(upper, MATRIX)["a[i, j] = a[j, j] * a[j, j]"] == [False]


def test_forward_substitution_leaves_the_solution_that_it_reads():
    def solved(a, x):
        for i in range(len(x)):
            for j in range(i):
                x[i] -= a[i, j] * x[j]
            x[i] /= a[i, i]
        return x[0]

    assert still_there(solved, MATRIX, VECTOR)["x[i] -= a[i, j] * x[j]"] == [True, True]


# ------------------------------------------------------------------------------------------------- indices from the end


def test_index_from_the_end_may_be_any_element():
    def last(u):
        y = u[-1]
        u[2] = 0.0
        return y * y

    assert still_there(last, VECTOR)["y = u[-1]"] == [False]


def test_index_that_is_negative_in_the_first_iteration_may_be_any_element():
    def wraps(u, n):
        total = 0.0
        for i in range(n):
            y = u[i - 1]
            total += y * y
            u[i] = 0.0
        return total

    assert still_there(wraps, VECTOR, 5)["y = u[i - 1]"] == [False]


def test_index_that_the_range_keeps_from_being_negative_is_known():
    def shifted(u):
        total = 0.0
        for i in range(1, len(u)):
            u[i] = 0.5 * i
            y = u[i - 1]
            total += y * y
        return total

    assert still_there(shifted, VECTOR)["y = u[i - 1]"] == [True]


def test_argument_that_may_be_negative_may_be_any_index():
    def at(u, k):
        y = u[k]
        u[k + 1] = 0.0
        return y * y

    assert still_there(at, VECTOR, 1)["y = u[k]"] == [False]


# ---------------------------------------------------------------------------------------------------------------- views


def test_rows_as_views_are_told_apart():
    def rows(a):
        for i in range(1, a.shape[0]):
            row = a[i]
            above = a[i - 1]
            for j in range(row.shape[0]):
                y = above[j]
                row[j] = y * y
        return a[0, 0]

    assert still_there(rows, MATRIX)["y = above[j]"] == [True]


def test_view_that_starts_later_is_shifted():
    def shifted(u):
        v = u[1:]
        for i in range(len(u) - 1):
            y = u[i]
            v[i] = y * y
        return u[0]

    assert still_there(shifted, VECTOR)["y = u[i]"] == [True]


def test_column_of_a_transposed_view_is_a_row():
    def turned(a):
        b = a.T
        for j in range(a.shape[0] - 1):
            for i in range(a.shape[1]):
                y = b[i, j]
                b[i, j + 1] = y * y
        return a[0, 0]

    assert still_there(turned, MATRIX)["y = b[i, j]"] == [True]


def test_a_store_through_a_transposed_view_overwrites_elements_read_directly():
    def turned(a):
        b = a.T
        total = 0.0
        for i in range(a.shape[0]):
            for j in range(a.shape[0]):
                y = a[i, j]
                total += y * y
                b[i, j] = 0.0
        return total

    assert still_there(turned, MATRIX)["y = a[i, j]"] == [False]


@pytest.mark.parametrize("step", [-1, 2])
def test_view_with_a_step_may_be_any_element(step):
    def backwards(u):
        v = u[::-1]
        total = 0.0
        for i in range(len(u)):
            y = u[i]
            total += y * y
            v[i] = 0.0
        return total

    def every_second(u):
        v = u[::2]
        total = 0.0
        for i in range(2):
            y = u[i]
            total += y * y
            v[i] = 0.0
        return total

    assert still_there(backwards if step == -1 else every_second, VECTOR)["y = u[i]"] == [False]


def test_index_from_the_end_of_a_view_that_starts_later_may_be_any_element():
    """`v[-1]` is `u[4]`, not `u[-1 + 2]`."""

    def last(u):
        v = u[2:]
        total = 0.0
        for i in range(3):
            y = v[i - 1]
            total += y * y
            u[4] = 1.0
        return total

    assert still_there(last, VECTOR)["y = v[i - 1]"] == [False]


def test_view_chosen_by_a_branch_may_be_either():
    def either(u, w, first):
        if first:
            v = u
        else:
            v = w
        y = u[0]
        v[1] = y * y
        return u[0] * y

    assert still_there(either, VECTOR, VECTOR.copy(), True)["y = u[0]"] == [False]


# -------------------------------------------------------------------------------------------------------- the questions


def test_a_stored_value_is_available_unless_another_store_follows():
    def twice(u):
        u[0] = math.sin(u[2])
        y = u[0] * u[0]
        u[0] = math.cos(y)
        u[1] = u[0] * y
        return u[1]

    main = program(twice, VECTOR)
    answers = StillThere(structure_of(main), points_to(main))
    stores = [operation for operation in walk(main.body) if isinstance(operation, Store)]

    assert [answers.after(store) for store in stores] == [False, True, True]


def test_store_never_overwrites_elements_of_later_accesses():
    def ordered(u):
        u[0] = 2.0
        return u[0] * u[1]

    main = program(ordered, VECTOR)
    structure = structure_of(main)
    (store,) = (operation for operation in walk(main.body) if isinstance(operation, Store))

    assert all(never_overwrites(store, o, structure) for o in walk(main.body) if isinstance(o, Load))


def test_affine_form_of_an_index():
    def shifted(u, n):
        total = 0.0
        for i in range(n):
            total += u[2 * (i + 1) - n + 3]
        return total

    main = program(shifted, VECTOR, 2)
    structure = structure_of(main)
    (load,) = (operation for operation in walk(main.body) if isinstance(operation, Load))
    (loop,) = (operation for operation in walk(main.body) if isinstance(operation, Loop))

    found = affine(load.indices[0], structure)

    assert found is not None
    assert found.constant == 5
    assert dict(found.terms) == {loop.index: 2, main.params[1]: -1}


def test_product_of_two_counters_is_not_affine():
    def product(u, n):
        total = 0.0
        for i in range(n):
            for j in range(n):
                total += u[i * j]
        return total

    main = program(product, VECTOR, 2)
    (load,) = (operation for operation in walk(main.body) if isinstance(operation, Load))

    assert affine(load.indices[0], structure_of(main)) is None


def test_terms_that_cancel_are_gone():
    value = program(lambda n: n * 1.0, 3).params[0]
    one = Affine(3, ((value, 2),))

    assert Affine(2) == one.plus(Affine(1, ((value, 2),)), -1)
    assert Affine(-3, ((value, -2),)) == one.times(-1)
