"""The benchmark itself: what it measures, prints, and reports about systems that fail or give wrong gradients."""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import programs, report, run
from benchmarks.systems import SYSTEMS
from srcdiff import measure

SHORT = run.Settings(rounds=2, turn=0.001, sizes=(0, 1), patience=60.0)


def silent(*_):
    pass


# -- measuring


def test_least_time_is_that_of_the_call():
    least, count = measure.least_time(lambda: time.sleep(0.002), 0.02)
    assert 0.002 <= least < 0.02
    assert 1 <= count <= 10


def test_short_calls_are_timed_in_batches():
    assert measure.batch_for(lambda: None) > 10
    assert measure.batch_for(lambda: time.sleep(0.001)) == 1


PEAKS = """
import numpy as np
from srcdiff import measure

def arrays():
    return np.ones(4_000_000).sum()

def objects():
    return len([float(k) for k in range(500_000)])

print(*(measure.peak_memory(f) for f in (arrays, objects, lambda: None)))
"""


def test_peak_memory_counts_arrays_and_objects_that_are_gone_when_the_call_returns():
    """In a separate process, because reused memory of earlier tests would not be counted."""
    said = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=True, cwd=run.ROOT)
    arrays, objects, nothing = map(int, said.stdout.split())
    assert arrays == pytest.approx(32e6, rel=0.1)
    # 24 bytes for a float and 8 for its place in the list, which has spare capacity while it grows
    assert 16e6 <= objects <= 24e6
    assert nothing < 500_000


# -- running


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    systems = [SYSTEMS[name] for name in ("primal", "srcdiff", "eager", "compiled")]
    saved = []
    collected = run.run(["tiny", "gaussian_mixture"], systems, SHORT, silent, lambda r: saved.append(r.as_json()))
    return collected, saved


def test_every_contestant_has_a_result_for_every_program_and_size(small_run):
    collected, _ = small_run
    found = {(r.program, r.size, r.system) for r in collected.results}
    names = ("primal", "srcdiff", "eager", "compiled")
    expected = {(p, n, s) for p in ("tiny", "gaussian_mixture") for n in programs.load(p).sizes[:2] for s in names}
    assert expected == found


def test_results_have_times_memory_and_first_calls_or_a_reason(small_run):
    collected, _ = small_run
    for result in collected.results:
        if result.refused is None:
            assert min(result.seconds, result.first_cold, result.first_warm) > 0.0
            assert result.peak >= 0
            assert result.calls >= SHORT.rounds
            assert result.spread >= 1.0
    refused = {r.system for r in collected.results if r.refused}
    assert refused <= {"srcdiff"}, "the primal and the tapes run all programs"


def test_results_are_saved_after_each_program_and_read_back(small_run):
    collected, saved = small_run
    assert [len(json.loads(text)["results"]) for text in saved] == [8, 16]
    assert run.Run.from_json(saved[-1]).results == collected.results


def test_primal_that_numba_does_not_compile_is_run_by_numpy_and_says_so(small_run):
    collected, _ = small_run
    (note,) = {
        n for r in collected.results if r.program == "gaussian_mixture" and r.system == "primal" for n in r.notes
    }
    assert note.startswith("run by NumPy, because Numba does not compile it")


def test_tables_have_all_documented_columns(small_run):
    text = "\n".join(report.describe(small_run[0]))
    for title in (
        "Value and gradient at the largest size",
        "Memory kept",
        "First call, ",
        "First call again",
        "Growth",
    ):
        assert title in text
    assert "geometric mean" in text
    assert "4 numbers" in text


def test_an_interrupt_keeps_the_finished_results():
    def interrupt(done, text):
        if text.startswith("recurrence"):
            raise KeyboardInterrupt

    systems = [SYSTEMS["primal"]]
    settings = run.replace(SHORT, fresh=False, sizes=(0,))
    collected = run.run(["tiny", "recurrence", "burgers"], systems, settings, interrupt, silent)
    assert ["tiny"] == [r.program for r in collected.results]
    assert (["recurrence", "burgers"], True) == (collected.not_run, collected.interrupted)


def test_the_budget_ends_a_run():
    settings = run.replace(SHORT, budget=-1.0)
    collected = run.run(["tiny", "burgers"], [SYSTEMS["primal"]], settings, silent, silent)
    assert ([], ["tiny", "burgers"], False) == (collected.results, collected.not_run, collected.interrupted)


def test_a_process_that_ends_is_reported(monkeypatch, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho the library is broken >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("SRCDIFF_BENCH_JAX", str(broken))
    collected = run.run(["tiny"], [SYSTEMS["jax"]], SHORT, silent, silent)
    reason = "its process ended: the library is broken"
    assert [reason, f"not tried: {reason} at 2"] == [r.refused for r in collected.results]


def test_a_process_that_gives_no_answer_is_stopped_and_reported(monkeypatch, tmp_path):
    idle = tmp_path / "python"
    idle.write_text("#!/bin/sh\nexec sleep 60\n")
    idle.chmod(0o755)
    monkeypatch.setenv("SRCDIFF_BENCH_JAX", str(idle))
    settings = run.replace(SHORT, patience=0.2, sizes=(0,))
    (result,) = run.run(["tiny"], [SYSTEMS["jax"]], settings, silent, silent).results
    assert result.refused == "no answer within 0 s"


def test_a_system_is_run_where_its_variable_says(monkeypatch):
    monkeypatch.setenv("SRCDIFF_BENCH_TORCH", "/somewhere/bin/python")
    assert run.python_for(SYSTEMS["torch"]) == "/somewhere/bin/python"
    assert run.python_for(SYSTEMS["torch_compiled"]) == "/somewhere/bin/python"
    assert run.python_for(SYSTEMS["srcdiff"]) is not None


# -- judging


def test_wrong_values_gradients_and_shapes_are_found(tmp_path):
    save = tmp_path / "gradients.npz"
    expected = (2.0, [np.array([1.0, 1000.0]), np.array(3.0)])

    def judged(value, *gradients):
        np.savez(save, *gradients)
        return run.disagreement("jax", value, save, expected)

    assert judged(2.0, np.array([1.0, 1000.0]), np.array(3.0)) is None
    assert judged(2.0, np.array([1.0 + 1e-9, 1000.0]), np.array(3.0)) is None
    assert judged(2.1, np.array([1.0, 1000.0]), np.array(3.0)).startswith("wrong value")
    assert judged(math.nan, np.array([1.0, 1000.0]), np.array(3.0)).startswith("wrong value")
    assert judged(2.0, np.array([1.01, 1000.0]), np.array(3.0)).startswith("wrong gradient")
    assert judged(2.0, np.array([1.0, math.nan]), np.array(3.0)).startswith("wrong gradient")
    assert judged(2.0, np.array([1.0, 1000.0])).startswith("gradients of shapes")


@pytest.mark.parametrize("name", ["tiny", "barrier"])
def test_a_wrong_reference_is_found(name):
    program = programs.load(name)
    _, gradients = run.reference(program, program.sizes[0])
    run.compare_with_differences(program, gradients)
    with pytest.raises(AssertionError, match="differences"):
        run.compare_with_differences(program, [g * (1.0 + 1e-4) for g in gradients])


# -- reporting


def some_run(times):
    """A run with the given times: {(size, system): seconds}."""
    results = [
        run.Result("tiny", size, system, seconds=t, spread=1.0, first_cold=1.0, peak=1000 * size)
        for (size, system), t in times.items()
    ]
    machine = {"processor": "a processor", "system": "a system", "python": "3"}
    return run.Run("2000-01-01 00:00", machine, {"srcdiff": "srcdiff 0"}, {}, results)


def test_growth_is_the_exponent_of_a_power_law():
    times = {(n, s): 3e-6 * n**p for n in (2, 4, 8) for s, p in (("primal", 1.0), ("srcdiff", 1.0), ("eager", 2.5))}
    found = report.Findings(some_run(times))
    assert found.growth("tiny", "eager") == pytest.approx(2.5)
    assert found.speed_up("tiny", 8, "eager") == pytest.approx(8**1.5)
    assert found.ratio("tiny", 4, "eager") == pytest.approx(4**1.5)
    mean, count = found.mean_speed_up("eager")
    assert (pytest.approx(8**1.5), 1) == (mean, count)


def test_slower_is_reported_as_well_as_faster():
    text = "\n".join(report.describe(some_run({(2, "primal"): 1e-6, (2, "srcdiff"): 4e-6, (2, "eager"): 1e-6})))
    assert "0.25x" in text


def test_noise_and_refusals_are_reported():
    collected = some_run({(2, "primal"): 1e-6, (2, "srcdiff"): 4e-6})
    collected.results[1].spread = 2.0
    collected.results.append(run.Result("tiny", 2, "jax", refused="it cannot"))
    text = "\n".join(report.describe(collected))
    assert "4.00 µs~" in text
    assert "the machine was busy" in text
    assert "JAX jit, tiny: it cannot" in text


# -- the command


def test_command_runs_and_writes_results_that_it_can_show(tmp_path, capsys):
    arguments = ["--quick", "--only", "tiny", "--sizes", "0", "--systems", "eager", "--output", str(tmp_path)]
    assert command.main(arguments) == 0
    printed = capsys.readouterr()
    assert "eager tape" in printed.out
    assert "tiny" in printed.err, "there is a line of progress"
    assert command.main(["--show", str(tmp_path / "results.json")]) == 0
    assert printed.out == capsys.readouterr().out


# -- the systems


@pytest.mark.parametrize("module", sorted({s.module for s in SYSTEMS.values()}))
def test_system_has_the_functions_that_a_worker_calls_and_imports_nothing_else_of_ours(module):
    path = Path(run.__file__).parent / "systems" / f"{module}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert {"version", "prepare", "to_numpy"} <= functions
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in imported if name and name.split(".")[0] in ("benchmarks", "srcdiff", "tests")}
    if module != "ours":
        assert ours <= {"benchmarks.programs", "benchmarks.systems"}


# -- the plots


def test_plots_are_drawn_from_a_run_with_gaps(tmp_path):
    pytest.importorskip("matplotlib", reason="only the extra `bench` installs it")
    from benchmarks import plots

    times = {(n, s): 1e-6 * n for n in (2, 4, 8) for s in ("primal", "srcdiff", "eager", "compiled")}
    collected = some_run(times)
    collected.results.append(run.Result("tiny", 8, "jax", refused="it cannot"))
    written = list(plots.draw(collected, tmp_path))
    names = ["speed_up", "time_by_size", "memory_by_size"]
    assert [f"{name}.{ending}" for name in names for ending in ("png", "svg")] == [path.name for path in written]
    assert all(path.stat().st_size > 1000 for path in written)
