"""Every row of the catalogue of problems, by its example; and the rendering, collection and pickling of problems."""

from __future__ import annotations

import importlib.util
import linecache
import pickle
import re
import statistics
import traceback
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import srcdiff
from srcdiff.diagnostics import InternalError, Problem, Span
from srcdiff.diagnostics.catalogue import CATALOGUE

#: GPU problems, which need the package for GPUs.
CODES = sorted(
    code for code, kind in CATALOGUE.items() if kind.backend != "cuda" or importlib.util.find_spec("numba_cuda")
)

#: A function made by `eval` has no file, so that its line cannot be shown.
WITHOUT_A_LINE = {"SD103"}


def function_of(text: str, folder: Path) -> FunctionType:
    """The function `f` of a module in a file."""
    file = folder / "model.py"
    file.write_text(text, encoding="utf-8")
    linecache.checkcache(str(file))
    namespace: dict[str, Any] = {"__name__": "model"}
    exec(compile(text, str(file), "exec"), namespace)
    function = namespace["f"]
    assert isinstance(function, FunctionType)
    return function


def refusal_of(text: str, folder: Path, *arguments: Any, backend: str = "python") -> srcdiff.DifferentiationError:
    function = function_of(text, folder)
    with pytest.raises(srcdiff.DifferentiationError) as caught:
        srcdiff.grad(function, backend=backend)(*arguments)
    return caught.value


def refusal_of_row(code: str, folder: Path, backend: str = "python") -> srcdiff.DifferentiationError:
    row = CATALOGUE[code]
    return refusal_of(row.example, folder, *eval(f"({row.arguments})", {"np": np}), backend=row.backend or backend)


def generated_files() -> set[str]:
    return {file for file in linecache.cache if file.startswith("<srcdiff")}


# -------------------------------------------------------------------------------------------------------- the catalogue


@pytest.mark.parametrize("code", CODES)
def test_example_is_refused_with_its_code(code: str, tmp_path: Path) -> None:
    error = refusal_of_row(code, tmp_path)

    assert [code] == [problem.code for problem in error.problems]


@pytest.mark.parametrize("code", CODES)
def test_example_is_refused_by_numba_without_a_word_of_numba(code: str, tmp_path: Path) -> None:
    error = refusal_of_row(code, tmp_path, backend="numba")

    assert [code] == [problem.code for problem in error.problems]
    assert "numba" not in "".join(traceback.format_exception(error)).replace('backend="numba"', "").lower()


@pytest.mark.parametrize("code", [c for c in CODES if c != "SD403"])  # shared memory is checked in each call
def test_example_is_refused_before_anything_is_generated(code: str, tmp_path: Path) -> None:
    before = generated_files()

    refusal_of_row(code, tmp_path)

    assert before == generated_files()


@pytest.mark.parametrize("code", [c for c in CODES if c not in WITHOUT_A_LINE])
def test_message_shows_the_users_line_with_a_caret(code: str, tmp_path: Path) -> None:
    shown = str(refusal_of_row(code, tmp_path))

    found = re.search(r"^ *--> (.*):(\d+):(\d+)$", shown, re.MULTILINE)
    assert found is not None, shown
    file, line, column = found[1], int(found[2]), int(found[3])
    written = CATALOGUE[code].example.splitlines()[line - 1]
    assert str(tmp_path / "model.py") == file
    assert f"\n{line} | {written}\n" in shown
    caret = next(text for text in shown.splitlines() if "^" in text).partition("| ")[2]
    assert column - 1 == caret.index("^")
    assert caret.rindex("^") < len(written)
    assert not written[column - 1].isspace()


@pytest.mark.parametrize("code", CODES)
def test_problem_has_a_file_and_a_line(code: str, tmp_path: Path) -> None:
    (problem,) = refusal_of_row(code, tmp_path).problems

    assert problem.span is not None
    assert problem.span.file == ("<string>" if code in WITHOUT_A_LINE else str(tmp_path / "model.py"))


def test_function_whose_file_has_changed_is_refused_with_its_place(tmp_path: Path) -> None:
    function = function_of("def f(x):\n    return x * x\n", tmp_path)
    (tmp_path / "model.py").write_text("\n\ndef f(x):\n    return x * x * x\n", encoding="utf-8")
    linecache.checkcache(str(tmp_path / "model.py"))

    with pytest.raises(srcdiff.DifferentiationError) as caught:
        srcdiff.grad(function, backend="python")(1.5)

    (problem,) = caught.value.problems
    assert problem.code == "SD103"
    assert problem.span == Span(str(tmp_path / "model.py"), 1, 0, 3, "f")
    assert "importlib.reload" in problem.help


@pytest.mark.parametrize("code", CODES)
def test_message_ends_with_help(code: str, tmp_path: Path) -> None:
    shown = str(refusal_of_row(code, tmp_path))

    assert re.search(r"\n += help: .+(\n {8,}\S.*)*\Z", shown)


@pytest.mark.parametrize("code", CODES)
def test_error_survives_pickling(code: str, tmp_path: Path) -> None:
    error = refusal_of_row(code, tmp_path)

    copy = pickle.loads(pickle.dumps(error))

    assert error.problems == copy.problems
    assert str(error) == str(copy)


@pytest.mark.parametrize("code", CODES)
def test_row_says_what_it_means_and_what_to_write(code: str) -> None:
    row = CATALOGUE[code]

    assert re.fullmatch(r"SD[1-5]\d\d", code)
    assert row.title
    assert row.help
    assert not row.title.endswith(".")


def test_problem_without_a_row_cannot_be_made() -> None:
    with pytest.raises(KeyError, match="SD999"):
        Problem("SD999", "something", None)


# ------------------------------------------------------------------------------------------------- all problems at once


def codes_and_lines(error: srcdiff.DifferentiationError) -> list[tuple[str, int | None]]:
    return [(p.code, None if p.span is None else p.span.line) for p in error.problems]


def test_three_statements_outside_the_language_are_reported_together(tmp_path: Path) -> None:
    text = "def f(x):\n    class A:\n        y = x\n\n    y = 1.0\n"
    text += "    z = {x, 2}\n    global w\n    return y\n"

    error = refusal_of(text, tmp_path, 1.5)

    assert [("SD101", 2), ("SD102", 6), ("SD101", 7)] == sorted(codes_and_lines(error), key=lambda found: found[1] or 0)
    assert str(error).startswith("\n3 problems")


def test_three_names_that_are_not_defined_are_reported_together(tmp_path: Path) -> None:
    error = refusal_of("def f(x):\n    a = x * one\n    b = x * two\n    return x * three\n", tmp_path, 1.5)

    assert [("SD204", 2), ("SD204", 3), ("SD204", 4)] == codes_and_lines(error)


def test_problems_of_different_kinds_are_reported_together(tmp_path: Path) -> None:
    text = "def f(x):\n    s = {x, 2}\n    y = x * nowhere\n    z = x[0]\n    return y * z\n"

    error = refusal_of(text, tmp_path, 1.5)

    assert [("SD102", 2), ("SD204", 3), ("SD203", 4)] == codes_and_lines(error)


def test_problem_in_a_loop_is_reported_once_and_nothing_follows_from_it(tmp_path: Path) -> None:
    text = "def f(x, n):\n    for _ in range(n):\n        x = x * nowhere\n    return x\n"

    error = refusal_of(text, tmp_path, 1.5, 3)

    assert [("SD204", 3)] == codes_and_lines(error)


def test_problem_in_both_branches_is_reported_twice(tmp_path: Path) -> None:
    text = "def f(x):\n    if x > 1.0:\n        y = x * here\n    else:\n        y = x * there\n    return y\n"

    error = refusal_of(text, tmp_path, 1.5)

    assert [("SD204", 3), ("SD204", 5)] == codes_and_lines(error)


def test_problem_of_a_helper_is_shown_in_the_helper_once(tmp_path: Path) -> None:
    text = "def helper(x):\n    return x * nowhere\n\ndef f(x):\n    return helper(x) + helper(2.0 * x)\n"

    error = refusal_of(text, tmp_path, 1.5)

    assert [("SD204", 2)] == codes_and_lines(error)


def test_write_to_a_global_is_one_problem(tmp_path: Path) -> None:
    text = "calls = 0\n\ndef f(x):\n    global calls\n    calls += 1\n    return x * calls\n"

    error = refusal_of(text, tmp_path, 1.5)

    assert [("SD101", 4)] == codes_and_lines(error)


def test_array_of_integers_is_named_before_the_integer_it_leads_to(tmp_path: Path) -> None:
    error = refusal_of("def f(a):\n    return a[0] * a[1]\n", tmp_path, np.arange(3))

    assert ["`a` is an array of int64, so it has no derivative"] == [problem.message for problem in error.problems]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y = [x] if x > 1.0 else x\n    return y", "a list on one path and a float on another"),
        ("y = None\n    if x > 1.0:\n        y = [x]\n    return y[0]", "`None` on another"),
        ("y = range(3) if x > 1.0 else x\n    return y", "a range on one path and a float on another"),
        ("return zip([x]) * 2.0", "`zip(...)` is used where a number is needed"),
        ("return (lambda t: t) * x", "a function is used where a number is needed"),
        ("return f'{x}' * x", "a text with numbers is used where a number is needed"),
        ("return 2.0 * [x]", "a list cannot be multiplied by a float"),
        ("y = [x].append\n    return y", "a method is assigned to a name"),
    ],
)
def test_things_are_named_in_plain_words(text: str, words: str, tmp_path: Path) -> None:
    error = refusal_of(f"def f(x):\n    {text}\n", tmp_path, 1.5)

    assert words in error.problems[0].message


def test_nothing_is_printed_before_a_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refusal_of("def f(x):\n    print(x)\n    return x * nowhere\n", tmp_path, 1.5)

    assert capsys.readouterr().out == ""


# -------------------------------------------------------------------------------------------- what a message looks like


def test_message_of_the_style_guide(tmp_path: Path) -> None:
    text = "import numpy as np\n\ndef f(x):\n    return np.i0(x)\n"

    shown = str(refusal_of(text, tmp_path, 1.5))

    assert shown.splitlines() == [
        "",
        "error[SD301]: `np.i0` has no derivative rule",
        f" --> {tmp_path / 'model.py'}:4:12",
        "  |",
        "4 |     return np.i0(x)",
        "  |            ^^^^^^^^",
        "  |",
        "  = help: declare its derivative:",
        "          @srcdiff.rule_for(np.i0, adjoint=lambda x, out, out_bar: ...)",
        "          def i0(x): return np.i0(x)",
    ]


def test_caret_stays_on_the_line_where_an_expression_goes_on(tmp_path: Path) -> None:
    shown = str(refusal_of("def f(x):\n    return x[\n        0\n    ]\n", tmp_path, 1.5))

    assert "2 |     return x[\n  |            ^^\n" in shown


def test_span_in_a_deleted_file_shows_no_line() -> None:
    problem = Problem("SD204", "`y` is not defined", Span("<nowhere>", 3, 4, 5))

    assert str(problem).splitlines() == [
        "error[SD204]: `y` is not defined",
        " --> <nowhere>:3:5",
        "  = help: assign it before this line, or check the spelling",
    ]


def test_defect_of_srcdiff_is_reported_as_such() -> None:
    shown = str(InternalError("two values have one name"))

    assert "two values have one name" in shown
    assert "defect of srcdiff, not of your program" in shown
    assert "report" in shown


def test_a_problem_in_a_library_is_shown_at_the_users_line() -> None:
    def function(x):
        return x * statistics.mean([x, 2.0 * x])

    with pytest.raises(srcdiff.DifferentiationError) as caught:
        srcdiff.grad(function, backend="python")(0.3)

    (problem,) = caught.value.problems
    assert problem.span is not None
    assert problem.span.file == __file__
    assert "return x * statistics.mean([x, 2.0 * x])" in problem.span.text
    assert "statistics.py:" in problem.notes[0]


def test_a_problem_in_another_file_comes_with_the_users_line(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("def helper(x):\n    return x * nowhere\n", encoding="utf-8")
    namespace: dict[str, Any] = {}
    exec(compile((tmp_path / "helpers.py").read_text(), str(tmp_path / "helpers.py"), "exec"), namespace)
    helper = namespace["helper"]

    with pytest.raises(srcdiff.DifferentiationError) as caught:
        srcdiff.grad(lambda x: helper(x), backend="python")(0.3)

    (problem,) = caught.value.problems
    assert problem.span is not None
    assert problem.span.file == str(tmp_path / "helpers.py")
    assert "called from" in problem.notes[0]
    assert "helper(x)" in problem.notes[0]


def test_called_from_names_the_call_that_leads_there(tmp_path: Path) -> None:
    text = "def good(x):\n    return 2.0 * x\n\n\ndef bad(x):\n    return x * nowhere\n"
    (tmp_path / "others.py").write_text(text, encoding="utf-8")
    namespace: dict[str, Any] = {}
    exec(compile(text, str(tmp_path / "others.py"), "exec"), namespace)
    good, bad = namespace["good"], namespace["bad"]

    def function(x: float) -> float:
        a = good(x)
        b = bad(x)
        return float(a + b)

    with pytest.raises(srcdiff.DifferentiationError) as caught:
        srcdiff.grad(function, backend="python")(0.3)

    (problem,) = caught.value.problems
    assert "`b = bad(x)`" in problem.notes[0]


def test_text_of_another_string_is_not_taken_for_that_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since Python 3.13, the text of `python -c` has the same file name as any text in `eval`."""
    monkeypatch.setitem(linecache.cache, "<string>", (11, None, ["import this\n"], "<string>"))

    with pytest.raises(srcdiff.DifferentiationError, match="`<string>` is not a file with source text") as caught:
        srcdiff.grad(eval("lambda x: x * x"), backend="python")(1.0)

    assert "import this" not in str(caught.value)
