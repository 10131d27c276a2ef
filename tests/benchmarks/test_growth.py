"""The growth benchmark: the generated programs run and have the stated size, and slopes of power laws are exact."""

from __future__ import annotations

import ast
import importlib

import numpy as np
import pytest

import srcdiff
from benchmarks import __main__ as command
from benchmarks import growth


def program_of(kind, statements):
    namespace = {}
    exec(growth.text_of(kind, statements), namespace)
    return namespace["program"]


@pytest.mark.parametrize("kind", growth.KINDS)
def test_generated_program_has_about_as_many_statements_as_it_says(kind):
    tree = ast.parse(growth.text_of(kind, 300))
    found = sum(isinstance(node, ast.stmt) for node in ast.walk(tree))
    assert 300 <= found <= 420  # definitions, imports and the code around the loops count too


@pytest.mark.parametrize("kind", growth.KINDS)
def test_generated_program_gives_a_number_at_every_size(kind):
    for statements in growth.SIZES[:3]:
        assert np.isfinite(program_of(kind, statements)(np.linspace(0.1, 0.9, 5)))


@pytest.mark.parametrize("kind", ["scalars", "loops", "arrays"])  # other kinds give numbers that are too large
def test_gradients_of_long_programs_need_no_deep_recursion(kind, tmp_path, monkeypatch):
    (tmp_path / f"long_{kind}.py").write_text(growth.text_of(kind, 600), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    program = importlib.import_module(f"long_{kind}").program
    x, x_dot = np.linspace(0.1, 0.9, 5), np.linspace(1.0, -1.0, 5)

    gradient = srcdiff.grad(program, backend="python")(x)
    _, tangent = srcdiff.jvp(program, (x,), (x_dot,), backend="python")

    assert gradient @ x_dot == pytest.approx(tangent, rel=1e-9)  # sums of thousands of roundings


def test_slope_is_the_exponent_of_a_power_law():
    times = {n: {"cse": 1e-3 * n, "fusion": 1e-5 * n**2.5, "short": 1e-6 * n} for n in growth.SIZES}
    found = growth.Growth({"loops": times})
    assert found.slope("loops", "cse") == pytest.approx(1.0)
    assert found.slope("loops", "fusion") == pytest.approx(2.5)
    assert found.slope("loops", "short") is None
    text = "\n".join(growth.describe(found))
    assert text.endswith("Steeper than 1.2:\nloops, fusion: 2.50")
    assert growth.Growth.from_json(found.as_json()) == found


def test_steps_of_one_name_are_added_and_the_remaining_time_is_reported():
    said = "srcdiff:  5.0 ms  cse\nother\nsrcdiff: 7.0 ms  cse\nsrcdiff: 3.0 ms  compile `f` with Numba\n"
    assert {"cse": 0.012, "Numba": 0.003} == growth.steps_of(said)
    whole = growth.steps_of(said + "srcdiff:  2.0 ms      typing\nsrcdiff: 20.0 ms  first call\n")
    numba = {"Numba": 0.003, "Numba: typing": 0.002}
    assert {"cse": 0.012, **numba, "between the steps": 0.005, "first call": 0.02} == whole


def test_a_first_call_is_measured_step_by_step(tmp_path, capsys):
    assert command.main(["--growth", "--only", "scalars", "--statements", "5", "--output", str(tmp_path)]) == 0
    found = growth.Growth.from_json((tmp_path / "growth.json").read_text(encoding="utf-8"))
    steps = found.seconds["scalars"][5]
    assert {"reading", "emission", "Numba", "first call"} <= set(steps)
    assert steps["first call"] >= max(steps["Numba"], steps["reading"])
    assert "scalars" in capsys.readouterr().out


def test_a_first_call_that_takes_too_long_is_killed_and_reported():
    steps, problem = growth.measure("scalars", 50, patience=0.0)
    assert "first call" not in steps
    assert "not finished within 0 s" in problem
