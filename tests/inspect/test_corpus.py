"""Explanations of the programs of the corpus, compared with their gradients."""

import copy
import warnings

import numpy as np
import pytest

import srcdiff
from tests.programs import PROGRAMS

SOME = [p for p in PROGRAMS if p.at and p.wrt][::10]


@pytest.mark.parametrize("program", SOME, ids=lambda p: p.name)
def test_inputs_that_do_not_reach_the_result_have_zeros_and_a_warning(program):
    explanation = srcdiff.explain(program.function, *copy.deepcopy(program.at[0]))
    derivative = srcdiff.grad(program.function, wrt=program.wrt, backend="python")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradients = [derivative(*copy.deepcopy(point)) for point in program.at]

    for k, position in enumerate(program.wrt):
        found = explanation[derivative.names[position]]
        warned = any(f"with respect to `{found.name}` is zero" in str(w.message) for w in caught)
        assert found.reaches is not warned
        assert bool(found.path) == found.reaches
        assert found.reaches or all(is_zero(gradient[k]) for gradient in gradients)


def is_zero(gradient):
    return all(map(is_zero, gradient)) if isinstance(gradient, tuple | list) else not np.any(gradient)


@pytest.mark.parametrize("program", SOME, ids=lambda p: p.name)
def test_generated_lines_link_to_lines_that_are_shown(program):
    sides = srcdiff.show(program.function, *copy.deepcopy(program.at[0]), wrt=program.wrt)

    assert len(sides.generated) == len(sides.links) == len(sides.keeps)
    for place, number in {place for link in sides.links for place in link}:
        piece = sides.pieces[place]
        assert 0 <= number - piece.first < len(piece.lines)
    assert sides.html().count("<div") == sides.html().count("</div>")
