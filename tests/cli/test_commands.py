"""The command `srcdiff`: its output, for people and for programs, and its exit status."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from srcdiff.cli import main
from srcdiff.cli.demo import gradient_by_tape

PROJECT = Path(__file__).parent.parent.parent

MODEL = """
import numpy as np
import srcdiff
from numpy.typing import NDArray


def loss(w, x, y, ridge=0.1):
    z = x @ w - y
    return np.mean(z**2) + ridge * np.sum(w**2)


def annotated(a: NDArray[np.float64], b: float, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += a[i] * b
    return total


half = srcdiff.custom_rule(lambda x: x * x, adjoint=lambda x, out, out_bar: (x * out_bar,))


def half_right(x):
    return half(x)


def refused(x):
    return open(x)


def by_name(x, *, y):
    return x * y


gradient = srcdiff.grad(loss, wrt="ridge")
every = srcdiff.jacobian(loss)
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name, module in [*sys.modules.items()]:  # a copy of `sys.modules` would hide modules of Numba from themselves
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def call(capsys, *arguments):
    """The exit status, the output, and the error output."""
    try:
        status = main(arguments)
    except SystemExit as leaving:
        status = leaving.code
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_demo_shows_code_a_checked_gradient_and_times(capsys):
    assert main(["demo", "--seconds", "0"]) == 0
    printed = capsys.readouterr().out
    for part in ("def misfit(", "# reverse sweep", "conductivity_bar", "from the tape", "times the compiled function"):
        assert part in printed


def test_tape_of_the_demo_differentiates_each_of_its_operations():
    def every_operation(x):
        return (2.0 - x[0]) * x[1] + (x[0] + 1.0) ** 3 - 4.0 * (x[1] - 0.5) + (1.0 + x[0] - x[1])

    # by hand: -x1 + 3 (x0 + 1)^2 + 1, and 2 - x0 - 4 - 1
    assert [-5.0 + 48.0 + 1.0, 2.0 - 3.0 - 4.0 - 1.0] == gradient_by_tape(every_operation, [3.0, 5.0])


def test_tape_of_the_demo_gives_zero_for_a_constant():
    assert [0.0] == gradient_by_tape(lambda x: 1.0, [3.0])


def test_a_command_that_does_not_exist_is_refused(capsys):
    status, _, error = call(capsys, "chek")
    assert status == 2
    assert "invalid choice: 'chek'" in error
    assert "did you mean `srcdiff check`?" in error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.py:loss"], "there is no file 'nowhere.py'; write FILE:FUNCTION"),
        (["model.py"], "which function; it has loss, annotated"),
        (["model.py:los"], "has no function 'los'; did you mean `loss`?"),
        (["model.py:loss", "--example", "np.one(3)"], "has no attribute 'one'"),
        (["model.py:loss", "--example", "np.ones(3"], "SyntaxError: "),
        (["model.py:loss", "--example", "1.0"], "does not match loss(w, x, y, ridge=0.1): missing a required argument"),
        (["model.py:loss", "--types", "float64[:]"], "--types does not match loss(w, x, y, ridge=0.1): missing"),
        (["model.py:annotated", "--types", "float64[:], vector, int"], "'vector' is not a known type"),
        (["model.py:annotated", "--types", "float64[:", "--json"], '"error": "--types'),
        (["model.py:loss", "--types", "float", "--example", "1.0"], "cannot be combined"),
        (["model.py:loss", "--example", "np.ones(2), np.ones((3, 3)), 1.0", "--backend", "python"], "at the example"),
        (["model.py:by_name", "--backend", "python"], "keyword-only arguments are not supported by this command: y"),
    ],
)
def test_wrong_calls_are_explained(capsys, model, arguments, said):
    status, printed, error = call(capsys, "check", *arguments)
    assert status == 2
    assert said in printed + error


def test_file_that_cannot_be_imported_is_named_with_the_line(capsys, model):
    Path("broken.py").write_text("import numpy\n\n1 / 0\n")
    assert call(capsys, "check", "broken.py:f") == (
        2,
        "",
        "srcdiff check: broken.py cannot be imported: ZeroDivisionError: division by zero (line 3)\n",
    )


def test_check_guesses_types_from_uses_and_prints_its_guess(capsys, model):
    status, printed, _ = call(capsys, "check", "model.py:loss", "--backend", "python")
    assert status == 0
    assert "assumed w: float64[:], from how it is used\nassumed x: float64[:, :], from how it is used\n" in printed
    assert "22 derivatives agree with finite differences" in printed


def test_annotations_give_the_types_of_arguments(capsys, model):
    _, printed, _ = call(capsys, "check", "model.py:annotated", "--backend", "python")
    assert "assumed a: float64[:], from its annotation\nassumed b: float64, from its annotation\n" in printed


def test_types_are_not_assumed(capsys, model):
    types = "float64[:], float64[:, :], float64[:]"
    status, printed, _ = call(capsys, "check", "model.py:loss", "--types", types, "--backend", "python")
    assert status == 0
    assert "assumed" not in printed


def test_check_answers_for_programs(capsys, model):
    example = "np.ones(2), np.ones((3, 2)), y=np.arange(3.0)"
    status, printed, _ = call(
        capsys, "check", "model.py:loss", "--example", example, "--wrt", "w", "--json", "--backend", "python"
    )
    answer = json.loads(printed)
    assert (0, True, ["w[0]", "w[1]"]) == (status, answer["agree"], [entry["place"] for entry in answer["entries"]])


def test_derivative_that_is_wrong_has_the_status_one(capsys, model):
    status, printed, _ = call(capsys, "check", "model.py:half_right", "--example", "3.0", "--backend", "python")
    assert status == 1
    assert "x: derivative 3, differences 6" in printed


def test_function_that_is_refused_has_the_status_one_and_its_problems(capsys, model):
    status, printed, _ = call(capsys, "check", "model.py:refused", "--json")
    problem = json.loads(printed)["problems"][0]
    assert (1, "SD302", "model.py", 27) == (status, problem["code"], Path(problem["file"]).name, problem["line"])
    status, _, error = call(capsys, "check", "model.py:refused")
    assert (status, error[:12]) == (1, "error[SD302]")


def test_export_writes_a_file_that_runs(capsys, model):
    types = ["--types", "float64[:], float64[:, :], float64[:]"]
    arguments = ["export", "model.py:loss", *types, "--wrt", "w", "ridge", "--mode", "value_and_grad", "--plain"]
    status, printed, error = call(capsys, *arguments, "-o", "loss_grad.py")
    assert (0, "loss_grad.py: ", "") == (status, printed[:14], error)
    names = {"__name__": "loss_grad"}
    exec(Path("loss_grad.py").read_text(), names)
    value, (w_bar, _) = names["loss_value_and_grad"]([1.0, 2.0], [[1.0, 1.0]], [2.0])
    assert (value, list(w_bar)) == (1.5, [2.2, 2.4])
    assert call(capsys, *arguments)[1] == Path("loss_grad.py").read_text()


def test_export_writes_a_library_for_c(capsys, model):
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    example = ["--example", "np.ones(2), 3.0, 2", "--wrt", "a", "b"]
    status, printed, _ = call(capsys, "export", "model.py:annotated", *example, "--c", "library", "--name", "model")
    assert (status, "3 parameters: a[0], a[1], b") == (0, printed.splitlines()[-1])
    assert Path("library/libmodel.so").exists()
    assert "int model(int64_t n, " in Path("library/model.h").read_text(encoding="utf-8")


def test_export_prints_code_alone_and_assumptions_beside_it(capsys, model):
    status, printed, error = call(capsys, "export", "model.py:loss")
    assert status == 0
    assert printed.startswith('"""The gradient of `loss(w, x, y, ridge)` with respect to `w`.')
    assert "assumed w: float64[:], from how it is used" in error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["model.py:loss", "--wrt", "v"], "`loss` has no argument `v`; its arguments are w, x, y, ridge"),
        (["model.py:gradient", "--wrt", "w"], "is already a derivative: remove --wrt"),
        (["model.py:gradient", "--mode", "hvp"], "is already a derivative: remove --mode"),
        (["model.py:annotated", "--types", "float64[:], float64, int64", "--c", "f"], "--c needs an --example"),
        (["model.py:annotated", "--example", "np.ones(2), 3.0, 2", "--c", "f", "--plain"], "neither --plain nor"),
        (["model.py:every", "--example", "np.ones(2), np.ones((3, 2)), np.ones(3)"], "export `grad` or `hvp`"),
        (["model.py:loss", "-o", "nowhere/loss.py"], "nowhere/loss.py cannot be written: No such file or directory"),
    ],
)
def test_wrong_exports_are_explained(capsys, model, arguments, said):
    status, _, error = call(capsys, "export", *arguments)
    assert status == 2
    assert said in error


@pytest.mark.parametrize("seconds", ["-1", "nan", "soon"])
def test_times_to_measure_are_numbers_that_are_not_negative(capsys, model, seconds):
    status, _, error = call(capsys, "bench", "model.py:loss", f"--seconds={seconds}")
    assert status == 2
    assert f"it is a number, zero or more, not '{seconds}'" in error


def test_derivative_of_a_file_is_exported_as_it_is(capsys, model):
    _, printed, _ = call(capsys, "export", "model.py:gradient", "--types", "float64[:], float64[:, :], float64[:]")
    assert "with respect to `ridge`" in printed.splitlines()[0]


def test_rules_come_from_the_tables(capsys):
    status, printed, _ = call(capsys, "rules")
    assert status == 0
    for row in ("np.divide, np.true_divide", "x: 1.0 / y; y: -out / y", "np.cumsum", "math.lgamma", "async with"):
        assert row in printed


def test_rules_of_a_word(capsys):
    status, printed, _ = call(capsys, "rules", "log")
    assert (0, ["np.log, math.log  x: 1.0 / x; at x = 0: x_bar = inf"]) == (status, printed.splitlines()[2:3])
    status, printed, _ = call(capsys, "rules", "np.sort", "--json")
    assert (0, [["Sorting"], ["np.sort"]]) == (
        status,
        [
            [t["title"] for t in json.loads(printed)["tables"]],
            [row[0] for row in json.loads(printed)["tables"][0]["rows"]],
        ],
    )
    status, printed, _ = call(capsys, "rules", "frobnicate")
    assert (1, "'frobnicate' is not supported\n") == (status, printed)


def test_cache_answers_for_programs(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("SRCDIFF_CACHE_DIR", str(tmp_path / "cache"))
    status, printed, _ = call(capsys, "cache", "--json")
    assert (0, {"directory": str(tmp_path / "cache"), "files": 0, "bytes": 0, "usable": True}) == (
        status,
        json.loads(printed),
    )


@pytest.mark.smoke
def test_package_runs_as_a_module():
    finished = subprocess.run(
        [sys.executable, "-m", "srcdiff", "--help"], cwd=PROJECT, capture_output=True, text=True, timeout=60
    )
    assert finished.returncode == 0, finished.stderr
    assert "demo" in finished.stdout


def test_explain_says_what_reaches_the_result(capsys, model):
    status, printed, _ = call(capsys, "explain", "model.py:loss", "--types", "float64[:], float64[:, :], float64[:]")
    assert status == 0
    assert "w: float64[:] reaches the result" in printed
    assert "z = x @ w - y" in printed


def test_explain_gives_sizes_for_an_example_and_says_no_if_a_chosen_input_is_cut_off(capsys, model):
    Path("cut.py").write_text("def cut(x, y):\n    return int(x) * y\n")
    assert call(capsys, "explain", "cut.py:cut", "--example", "1.5, 2.0")[0] == 0
    status, printed, _ = call(capsys, "explain", "cut.py:cut", "--wrt", "x", "--json")
    data = json.loads(printed)
    assert status == 1
    assert [(i["name"], i["reaches"], i["cuts"][0]["line"]) for i in data["inputs"]] == [("x", False, 2)]
    assert data["assumed"].keys() == {"x", "y"}


def test_explain_of_an_unknown_input_is_a_wrong_call(capsys, model):
    status, _, error = call(capsys, "explain", "model.py:loss", "--wrt", "nothing")
    assert status == 2
    assert "`loss` has no argument `nothing`" in error


TYPES = "float64[:], float64[:, :], float64[:]"


def test_show_prints_both_sources(capsys, model):
    status, printed, _ = call(capsys, "show", "model.py:loss", "--types", TYPES)
    assert status == 0
    assert "def loss(w, x, y, ridge=0.1):" in printed
    assert "def loss_grad(w, x, y, ridge):" in printed


def test_show_writes_a_page(capsys, model):
    status, printed, _ = call(capsys, "show", "model.py:loss", "--types", TYPES, "--html", "page.html")
    assert (status, printed.splitlines()[-1]) == (0, "written: page.html")
    assert Path("page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert call(capsys, "show", "model.py:loss", "--types", TYPES, "--html", "nowhere/page.html")[0] == 2


def test_show_gives_links_to_programs(capsys, model):
    status, printed, _ = call(capsys, "show", "model.py:loss", "--types", TYPES, "--wrt", "w", "x", "--json")
    data = json.loads(printed)
    assert status == 0
    assert len(data["lines"]) == len(data["source"].splitlines())
    assert {place["line"] for line in data["lines"] for place in line["from"]} >= {7, 8, 9}
