"""Lists of lists of lengths known at run time: two names of one list are never treated as two lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import srcdiff

X = np.array([0.7, 1.3, 0.9, 1.7, 0.4])


def one_list_many_times(x, n):
    row = [x[0]]
    rows = []
    for _ in range(n):
        rows.append(row)
    rows[0].append(x[1])
    return sum(rows[-1])


def named_before_the_list_was_stored(x, n):
    row = [x[0]]
    rows = [row]
    for i in range(n):
        rows.append([x[i]])
    row.append(x[1] * 2)
    return sum(rows[0]) * sum(row)


def taken_off_while_it_has_a_name(x, n):
    rows = [[x[i]] for i in range(n)]
    row = rows[-1]
    rows.pop()
    rows.append([x[0] * 3])
    row.append(2.0)
    return sum(rows[-1]) + sum(row)


def replaced_while_it_has_a_name(x, n):
    rows = [[x[i]] for i in range(n)]
    row = rows[0]
    rows[0] = [x[4]]
    return sum(row) * rows[0][0]


def assigned_to_another_place(x, n):
    rows = [[x[i]] for i in range(n)]
    rows[0] = rows[1]
    rows[0].append(x[3])
    return sum(rows[1])


def element_of_two_lists(x, n):
    rows = [[x[i]] for i in range(n)]
    others = []
    for i in range(n):
        others.append(rows[i])
    others[0].append(x[3])
    return sum(rows[0])


def handed_on_by_a_loop(x, n):
    rows = [[x[0]]]
    row = rows[0]
    for i in range(n):
        new = [row[0] * x[i]]
        rows.append(new)
        row = new
    return row[0] * sum(rows[1])


def lists_of_lists_of_lists(x, n):
    cube = [[[x[i] * x[j]] for j in range(n)] for i in range(n)]
    return cube[0][1][0]


@pytest.mark.parametrize(
    "function",
    [
        one_list_many_times,
        named_before_the_list_was_stored,
        taken_off_while_it_has_a_name,
        replaced_while_it_has_a_name,
        assigned_to_another_place,
        element_of_two_lists,
        handed_on_by_a_loop,
        lists_of_lists_of_lists,
    ],
)
def test_programs_that_could_distinguish_a_list_from_its_copy_are_refused(function: Any) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=r"SD20[26]"):
        srcdiff.grad(function, backend="python")(X, 3)


def named_in_one_branch(x, n):
    row = [x[0]]
    rows = [[x[1]]]
    if n > 2:
        rows.append(row)
    row.append(x[1] * 2)
    return sum(rows[-1])


def rebound_while_an_element_has_a_name(x, n):
    rows = [[x[0]], [x[1]]]
    row = rows[0]
    if n > 1:
        rows = [[x[2]]]
    row.append(x[3])
    return sum(rows[0]) * sum(row)


def grown_by_a_helper(x, n):
    def add(rows, k, value):
        rows[k].append(value)
        return rows[k]

    rows = [[] for _ in range(n)]
    for i in range(len(x)):
        row = add(rows, i % n, x[i])
        row[0] = row[0] * 1.5
    return sum(rows[0]) * sum(rows[1])


def empty_all_the_time(x, n):
    rows = [[] for _ in range(n)]
    total = x[0]
    for row in rows:
        total += sum(row) + len(row)
    return total * x[1]


def elements_that_change_while_they_are_gone_through(x, n):
    rows = [[x[i], x[i + 1]] for i in range(n)]
    total = 0.0
    for row in rows:
        row += [total]
        if total > 1.0:
            row.pop()
        for _ in range(2):
            row.append(x[0] * total)
        total += sum(row)
    return total * sum(rows[-1])


@pytest.mark.parametrize(
    "function",
    [
        named_in_one_branch,
        rebound_while_an_element_has_a_name,
        grown_by_a_helper,
        empty_all_the_time,
        elements_that_change_while_they_are_gone_through,
    ],
)
@pytest.mark.parametrize("n", [2, 3])
def test_all_names_of_a_list_see_a_change(function: Any, n: int) -> None:
    assert srcdiff.value_and_grad(function, backend="python")(X, n)[0] == pytest.approx(function(X, n), rel=1e-14)
    srcdiff.check(function, X, n, wrt="x", order=2, backend="python")


def longer_while_it_is_gone_through(x, n):
    rows = [[x[0], x[1]] for _ in range(n)]
    for value in rows[0]:
        rows[n - 3].append(value)
        if len(rows[0]) > 5:
            break
    return sum(rows[0])


def test_a_list_that_changes_its_length_during_iteration_raises() -> None:
    with pytest.raises(RuntimeError, match="changes its length"):
        srcdiff.grad(longer_while_it_is_gone_through, backend="python")(X, 3)
    assert srcdiff.grad(longer_while_it_is_gone_through, backend="python")(X, 4) == pytest.approx([1, 1, 0, 0, 0])


def rows_of_different_lengths(x, n):
    return np.sum(np.array([[x[i]] * (i + 1) for i in range(n)]))


def test_an_array_of_lists_of_different_lengths_raises_as_numpy_does() -> None:
    with pytest.raises(ValueError, match="inhomogeneous"):
        rows_of_different_lengths(X, 3)
    with pytest.raises(ValueError, match="different lengths"):
        srcdiff.grad(rows_of_different_lengths, backend="python")(X, 3)
    assert srcdiff.grad(rows_of_different_lengths, backend="python")(X, 1) == pytest.approx([1, 0, 0, 0, 0])


def both_names_extended(x, n):
    row = [x]
    rows = [row]
    rows[0] += [2.0 * x]
    return sum(row) * n


def test_extending_an_element_in_place_is_seen_by_its_name() -> None:
    assert srcdiff.grad(both_names_extended, backend="python")(1.5, 2) == 6.0


def shorter_in_a_comprehension(x, n):
    items = [x[0], x[1], x[2], x[3]]
    return sum([items.pop() for _ in items])


def grown_and_shorter_in_a_comprehension(x, n):
    items = [x[0], x[1]]
    for i in range(n):
        items.append(x[i])
    return sum([items.pop() for _ in items])


def lists_taken_off_while_they_are_gone_through(x, n):
    rows = [[x[0]], [x[1]], [x[2]]]
    total = 0.0
    for row in rows:
        total += row[0]
        rows.pop()
    return total


def replaced_ahead(x, n):
    rows = [[x[0]], [x[1]], [x[2]]]
    total = 0.0
    for k, row in enumerate(rows):
        total += row[0]
        rows[2 - k] = [x[3]]
    return total


@pytest.mark.parametrize(
    "function",
    [
        shorter_in_a_comprehension,
        grown_and_shorter_in_a_comprehension,
        lists_taken_off_while_they_are_gone_through,
        replaced_ahead,
    ],
)
def test_a_list_that_changes_ahead_of_a_loop_is_refused(function: Any) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match="while it is iterated"):
        srcdiff.grad(function, backend="python")(X, 3)


def replaced_behind(x, n):
    rows = [[x[0]], [x[1]], [x[2]]]
    total = 0.0
    for k, row in enumerate(rows):
        total += row[0] * rows[0][0]
        rows[k] = [x[3] * k]
    return total + rows[n - 1][0]


def test_a_list_may_change_behind_the_position_of_a_loop() -> None:
    srcdiff.check(replaced_behind, X, 3, wrt="x", order=2, backend="python")


def names_swapped(x, n):
    rows = [[v] for v in x[:n]]
    first, second = rows[0], rows[1]
    first, second = second, first
    first.append(x[3])
    return sum(rows[1]) * second[0]


def kept_through_a_branch_that_raises(x, n):
    rows = [[x[0]], [x[1]]]
    row = rows[0]
    for _ in range(3):
        if n > 100:
            rows = [[x[2]]]
            rows[1] = [x[1]]
    row.append(x[3])
    return sum(rows[0])


def multiplied_in_place(x, n):
    rows = [[v] for v in x[:n]]
    row, items = rows[0], [x[0], x[1]]
    other = items
    row *= n
    items *= 2
    rows[1] *= 2
    return sum(rows[0]) * sum(other) + sum(rows[1])


@pytest.mark.parametrize("function", [names_swapped, kept_through_a_branch_that_raises, multiplied_in_place])
def test_names_stay_names_of_the_same_list(function: Any) -> None:
    assert srcdiff.value_and_grad(function, backend="python")(X, 3)[0] == pytest.approx(function(X, 3), rel=1e-14)
    srcdiff.check(function, X, 3, wrt="x", order=2, backend="python")


def three_places_that_may_meet(x, n):
    rows = [[v] for v in x[:n]]
    k = n % 3
    rows[0], rows[k], rows[2] = rows[2], rows[0], rows[k]
    rows[0].append(x[3])
    return sum(rows[2])


def places_with_effects(x, n):
    rows, calls = [[v] for v in x[:n]], [0]

    def place():
        calls[0] += 1
        return 1 if calls[0] < 3 else calls[0] - 3

    rows[place()], rows[place()] = rows[place()], rows[place()]
    rows[1].append(x[4])
    return sum(rows[0])


def element_returned_by_a_recursive_function(x, n):
    def same(row, k):
        if k == 0:
            return row
        return same(row, k - 1)

    rows = [[v] for v in x[:n]]
    row = same(rows[0], n)
    row.append(x[1])
    return sum(rows[0])


def identity_of_elements(x, n):
    rows = [[v] for v in x[:n]]
    return x[0] if rows[0] is rows[0] else x[1]


def bounds_with_effects(x, n):
    rows = [[v] for v in x[:n]]
    row = rows[0]

    def longer():
        row.append(x[3])
        return 0

    row[longer() : 1] = [x[4]]
    return sum(row)


def replaced_by_a_loop_that_reads_an_element(x, n):
    rows = [[v] for v in x[:n]]
    row = rows[0]
    for _ in range(n):
        rows = [[row[0]]]
    return rows[0][0]


@pytest.mark.parametrize(
    "function",
    [
        three_places_that_may_meet,
        places_with_effects,
        element_returned_by_a_recursive_function,
        identity_of_elements,
        bounds_with_effects,
        replaced_by_a_loop_that_reads_an_element,
    ],
)
def test_lists_with_unknown_identity_of_elements_are_refused(function: Any) -> None:
    with pytest.raises(srcdiff.DifferentiationError):
        srcdiff.grad(function, backend="python")(X, 3)


def in_itself(x):
    items = [x]
    items.append([items])
    return x


def in_itself_by_another(x):
    items = [x]
    others = [items]
    items.insert(0, (x, others))
    return x


def in_itself_in_a_loop(x):
    items = [[x]]
    for _ in range(3):
        items[0] = items
    return x


def in_itself_by_a_slice(x):
    items = [x]
    items[0:1] = [items]
    return x


@pytest.mark.parametrize("function", [in_itself, in_itself_by_another, in_itself_in_a_loop, in_itself_by_a_slice])
def test_a_list_in_itself_is_refused(function):
    with pytest.raises(srcdiff.DifferentiationError, match="is inserted into itself"):
        srcdiff.grad(function, backend="python")(2.0)


def collected(x, n):
    blocks, rows = [], []
    for k in range(n):
        blocks.append(x * np.ones((2, 3)) * k)
        rows.append([x * j for j in range(k + 1)])
    return blocks, rows


@pytest.mark.parametrize(
    "joined",
    [
        lambda blocks, rows: np.array(blocks)[1:, 0],
        lambda blocks, rows: np.array(blocks, dtype=np.float64),
        lambda blocks, rows: np.asarray(blocks) * np.arange(3),
        lambda blocks, rows: np.stack(blocks, axis=-1, dtype=np.float64)[0],
        lambda blocks, rows: np.concatenate(blocks, axis=1) * np.arange(3 * len(blocks)),
        lambda blocks, rows: np.concatenate(blocks, axis=None, dtype=np.float64) * np.arange(6 * len(blocks)),
        lambda blocks, rows: np.concatenate(rows, axis=-1) * np.arange(len(rows) * (len(rows) + 1) // 2),
        lambda blocks, rows: np.hstack(rows) ** 2,
        lambda blocks, rows: np.hstack(blocks)[0],
        lambda blocks, rows: np.vstack(blocks, dtype=np.float64)[:, 1],
        lambda blocks, rows: np.column_stack(blocks)[1],
        lambda blocks, rows: np.mean(blocks, axis=0),
    ],
)
def test_a_list_filled_by_a_loop_becomes_an_array(joined):
    def total(x, n):
        return np.sum(joined(*collected(x, n)) ** 2)

    srcdiff.check(total, 1.3, 4, backend="python")


def test_concatenation_has_the_requested_dtype():
    def single(x, n):
        blocks, rows = collected(x, n)
        return np.concatenate(blocks, dtype=np.float32), np.hstack(rows, dtype=np.float32), np.stack(blocks)

    value, _ = srcdiff.vjp(single, 1.3, 2, backend="python")
    assert [v.dtype for v in value] == [np.float32, np.float32, np.float64]


def column_of_changing_kind(a, iterations):
    while iterations > 0:
        iterations -= 1
        for column in a:
            column = a[0, 2::-1]
            a = 0.8 * a + 0.5 * np.sin(a[:1, -3:3])
        column = [column[np.newaxis, -1::-1] for _ in range(1)]
    return np.sum(a)


def test_a_name_that_is_a_list_and_an_array_in_iteration_is_refused():
    with pytest.raises(srcdiff.DifferentiationError, match="`column` is"):
        srcdiff.grad(column_of_changing_kind, backend="python")(np.array([[1.0, 2.0, 3.0]]), 2)
