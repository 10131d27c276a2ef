"""Every example runs as a newcomer runs it, and its results are right."""

import runpy
import sys
from pathlib import Path

import pytest

from tests.heavy import skip_without_heavy

PROJECT = Path(__file__).parent.parent
EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))


@pytest.mark.smoke
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_finds_its_answers_right(example, tmp_path, monkeypatch, capsys):
    skip_without_heavy(example.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example)])

    runpy.run_path(str(example), run_name="__main__")  # in this process, which has imported Numba already

    assert capsys.readouterr().out.strip(), "an example shows something"
    assert not list(tmp_path.iterdir()), "an example writes a picture only if it is asked for one"


def test_examples_are_numbered_in_the_order_to_read_them():
    expected = [f"{number:02}" for number in range(1, len(EXAMPLES) + 1)]
    assert expected == [example.stem.split("_")[0] for example in EXAMPLES]
