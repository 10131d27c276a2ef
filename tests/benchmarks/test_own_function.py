"""`srcdiff.benchmark` and `srcdiff bench`: a user's own function, compared with the tapes."""

import numpy as np
import pytest

import srcdiff
from srcdiff.api.benchmarking import Benchmark, Row, compiled_primal
from srcdiff.cli import main


def loss(w, x):
    total = 0.0
    for i in range(len(x)):
        total += (w[0] * x[i] - w[1]) ** 2
    return total


def helper(x):
    return x * x


def calls_a_helper(x):
    return helper(x) + helper(2.0 * x)


@pytest.fixture(scope="module")
def measured():
    return srcdiff.benchmark(loss, np.array([1.0, 2.0]), np.linspace(0.0, 1.0, 500), wrt="w", seconds=0.2)


def test_benchmark_measures_the_function_srcdiff_and_both_tapes(measured):
    for row in measured.rows:
        assert row.seconds > 0.0
        assert row.first_call > 0.0
        assert row.note == ""
    assert measured.srcdiff.seconds < measured.eager_tape.seconds
    assert measured.speed_up(measured.eager_tape) == measured.eager_tape.seconds / measured.srcdiff.seconds
    assert measured.ratio(measured.srcdiff) == measured.srcdiff.seconds / measured.primal.seconds


def test_benchmark_prints_as_a_table(measured):
    text = str(measured)
    assert "loss, value and gradient with respect to `w`" in text
    for name in ("function", "srcdiff", "eager tape", "compiled tape", "memory kept", "faster"):
        assert name in text


def test_a_refused_function_is_a_row_with_the_reason():
    found = srcdiff.benchmark(lambda x: (np.uint8(1) + np.uint8(2)) * x * x, 2.0, seconds=0.01)
    assert found.srcdiff.seconds is None
    assert "SD301" in found.srcdiff.note
    assert found.eager_tape.seconds > 0.0
    assert f"srcdiff: {found.srcdiff.note}" in str(found)


def test_slow_gradients_and_a_busy_machine_are_reported():
    def row(name, seconds, spread=1.0):
        return Row(name, seconds, 1.0, 0, spread)

    found = Benchmark("f", "`x`", row("function", 1.0), row("srcdiff", 4.0), row("eager tape", 2.0, 1.5), row("c", 8.0))
    assert "2.00x slower" in str(found)
    assert "2.00x faster" in str(found)
    assert found.noisy
    assert "the machine was busy" in str(found)


def test_primal_is_compiled_with_the_functions_it_calls():
    compiled, note = compiled_primal(calls_a_helper, (3.0,))
    assert (45.0, "") == (compiled(3.0), note)
    assert hasattr(compiled, "py_func")


def test_primal_that_numba_cannot_compile_is_run_as_it_is():
    function, note = compiled_primal(lambda x: {"a": [x], 1: x}["a"][0], (3.0,))
    assert function(3.0) == 3.0
    assert "Numba does not compile it" in note


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model_of_a_user.py"
    path.write_text("import numpy as np\nSCALE = 2.0\n\ndef loss(x, y):\n    return x[0] * x[1] * y\n")
    return path


def test_command_measures_a_function_of_a_file(model, capsys):
    arguments = ["bench", f"{model}:loss", "--example", "np.ones(2), SCALE", "--wrt", "x", "y", "--seconds", "0.05"]
    assert main(arguments) == 0
    assert "with respect to `x`, `y`" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "example", "reason"),
    [
        ("nowhere.py:loss", "1.0", "there is no file"),
        ("{}:lost", "1.0", "no function 'lost'"),
        ("{}:loss", "x", "NameError"),
    ],
)
def test_command_says_what_is_wrong(model, place, example, reason, capsys):
    assert main(["bench", place.format(model), "--example", example]) == 2
    assert reason in capsys.readouterr().err
