"""Functions are found in long files by their own lines, wherever these seem to end."""

import importlib

import pytest

from srcdiff.diagnostics.problem import Refusal
from srcdiff.frontend.source.capture import capture

TEXT = '''
import functools
from math import (
    sin,
    cos,
)


def text(x):
    """A text
at the left margin."""
    return sin(x) * functools.reduce(max, [x, x])


def brackets(
    x,
    y=(
1.0
),
) -> float:
# a comment
    z = 2.0 * \\
x

    return z * y


@functools.wraps(text)
def wrapped(x): return text(x)
def follows(x): return 3.0 * x


def refused(x):
    return x + undefined_name


def nested(x):
    def inner(y):
        return y * x
    return inner
'''


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captured")
    (folder / "captured_functions.py").write_text("# a line\n" * 100 + TEXT)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("captured_functions")


@pytest.mark.parametrize("name", ["text", "brackets", "follows", "refused", "nested"])
def test_functions_have_their_own_places(module, name):
    function = getattr(module, name)
    captured = capture(function)
    assert (captured.node.name, captured.node.lineno) == (name, function.__code__.co_firstlineno)
    assert captured.node.end_lineno <= len((TEXT + "# a line\n" * 100).splitlines())


def test_functions_inside_of_others_are_found(module):
    assert capture(module.nested(2.0)).node.name == "inner"


def test_a_file_that_has_changed_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "changing_functions.py"
    file.write_text("def f(x):\n    return 2.0 * x\n\n\ndef g(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    changing = importlib.import_module("changing_functions")
    file.write_text("def f(x):\n    return 3.0 * x\n\n\ndef g(x):\n    return x\n")
    assert capture(changing.g).node.name == "g"
    with pytest.raises(Refusal, match="has changed since the function was defined"):
        capture(changing.f)
