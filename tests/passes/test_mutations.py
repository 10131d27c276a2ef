"""The cases of a pass detect mistakes in it: few mutants of a sample survive.

`python -m tests.passes.mutations` makes all mutants, and lists those that no case detects.
"""

import signal
from dataclasses import replace

import pytest

from tests.passes import PASSES, Each, all_cases
from tests.passes.mutations import TooLong, at_most, is_noticed, mutants

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="a mutant that does not terminate cannot be stopped"
)

SAMPLED = (
    "array_contraction",
    "carried_elements",
    "code_sinking",
    "cse",
    "fold_views",
    "growing_buffers",
    "hoist_allocations",
    "loop_normalization",
    "loop_reversal",
    "scalar_replacement",
    "shape_checks",
    "simplify",
)
PER_PASS = 9
WITH_CASES = sorted({case.path.parent.name for case in all_cases()})


@pytest.mark.parametrize("name", [n for n in WITH_CASES if isinstance(PASSES[n], Each)])
def test_a_pass_that_does_nothing_is_noticed(name):
    assert is_noticed(mutants(name)[0], name)


@pytest.mark.parametrize("name", SAMPLED)
def test_mistakes_are_noticed(name):
    """Some mutations have no effect. Of a sample over the text, at least two thirds are detected."""
    found = mutants(name)[1:]
    sample = found[:: max(1, len(found) // PER_PASS)][:PER_PASS]

    missed = [f"line {m.line}: {m.text}" for m in sample if not is_noticed(m, name)]

    assert len(missed) <= PER_PASS // 3, "\n".join(missed)


def test_a_pass_without_a_mistake_is_not_noticed():
    """Recompilation alone does not change the pass, so only the mistakes are detected."""
    mutant = mutants("cse")[1]

    assert is_noticed(mutant, "cse")
    assert not is_noticed(replace(mutant, mistake=None), "cse")


def never_ends():
    while True:
        pass


def test_a_mutant_that_does_not_terminate_is_stopped():
    with pytest.raises(TooLong), at_most(0.05):
        never_ends()
