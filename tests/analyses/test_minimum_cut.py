"""Minimum cuts of small networks, compared with known answers and with an exhaustive search."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence

import pytest

from srcdiff.analyses.minimum_cut import minimum_cut

Needs = Mapping[str, Sequence[str]]


def can_be_had(sinks: Iterable[str], needs: Needs, sources: Sequence[str], kept: set[str]) -> bool:
    """Whether every sink is kept, or computed from values that are available."""

    def had(node: str) -> bool:
        return node in kept or (node not in sources and all(had(n) for n in needs.get(node, ())))

    return all(had(sink) for sink in sinks)


def test_the_cheaper_of_source_and_sink_is_kept():
    needs = {"b": "a"}

    assert minimum_cut("ab", needs, "a", "b", {"a": 1.0, "b": 2.0}) == {"a"}
    assert minimum_cut("ab", needs, "a", "b", {"a": 2.0, "b": 1.0}) == {"b"}


def test_of_equal_cuts_the_one_next_to_the_sinks_is_chosen():
    assert minimum_cut("abc", {"b": "a", "c": "b"}, "a", "c", {"a": 1.0, "b": 1.0, "c": 1.0}) == {"c"}


def test_one_operand_of_many_values_is_kept_instead_of_them():
    needs = {"b": "a", "c": "a", "d": "a"}

    assert minimum_cut("abcd", needs, "a", "bcd", dict.fromkeys("abcd", 1.0)) == {"a"}


def test_one_result_of_many_operands_is_kept_instead_of_them():
    needs = {"d": "abc"}

    assert minimum_cut("abcd", needs, "abc", "d", dict.fromkeys("abcd", 1.0)) == {"d"}


def test_value_in_the_middle_is_kept():
    needs = {"m": "ab", "x": "m", "y": "m"}

    assert minimum_cut("abmxy", needs, "ab", "xy", dict.fromkeys("abmxy", 1.0)) == {"m"}


def test_a_source_that_is_a_sink_is_kept():
    assert minimum_cut("ab", {"b": "a"}, "a", "ab", {"a": 5.0, "b": 1.0}) == {"a"}


def test_a_value_without_operands_is_not_kept():
    assert minimum_cut("ab", {"b": "a"}, "", "b", {"a": 1.0, "b": 1.0}) == set()


def test_without_sinks_nothing_is_kept():
    assert minimum_cut("ab", {"b": "a"}, "a", "", {"a": 1.0, "b": 1.0}) == set()


def test_disconnected_parts_are_cut_separately():
    costs = {"a": 1.0, "b": 2.0, "c": 4.0, "d": 3.0}

    assert minimum_cut("abcd", {"b": "a", "d": "c"}, "ac", "bd", costs) == {"a", "d"}


def test_costs_far_apart_are_told_apart():
    costs = {"a": 1e8, "b": 1.0, "c": 1e8 + 2.0}

    assert minimum_cut("abc", {"c": "ab"}, "ab", "c", costs) == {"a", "b"}


def test_a_cycle_of_values_is_cut():
    """A loop parameter is computed from the value that the loop yields, which is computed from the parameter."""
    needs = {"p": "yi", "y": "p"}

    assert minimum_cut("ipy", needs, "i", "p", {"i": 1.0, "p": 5.0, "y": 5.0}) == {"i"}


@pytest.mark.parametrize("seed", range(40))
def test_no_set_of_values_is_cheaper(seed):
    chance = random.Random(seed)
    nodes = "abcdefg"
    needs = {node: [other for other in nodes[:k] if chance.random() < 0.4] for k, node in enumerate(nodes)}
    sources = [node for node in nodes if not needs[node] and chance.random() < 0.8]
    sinks = [node for node in nodes if chance.random() < 0.4]
    costs = {node: float(chance.randint(1, 9)) for node in nodes}

    kept = minimum_cut(nodes, needs, sources, sinks, costs)

    sets = (set(chosen) for size in range(len(nodes) + 1) for chosen in itertools.combinations(nodes, size))
    enough = [chosen for chosen in sets if can_be_had(sinks, needs, sources, chosen)]
    assert can_be_had(sinks, needs, sources, kept)
    assert sum(costs[node] for node in kept) == min(sum(costs[node] for node in chosen) for chosen in enough)
