"""Surrogates, which cannot be encoded, in docstrings, strings and file names."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import sys

import pytest

import srcdiff
from srcdiff.cli import main

MODULE = '''
def documented(x):
    """Half a character, \\ud800, and an \\0 in the first line."""
    return x * x

def compared(x, kind="a\\udcff"):
    return x * x if kind == "a\\udcff" else x

def raised(x):
    if x > 10.0:
        raise ValueError("not \\udcff")
    return x * x

def filled(x):
    if x > 10.0:
        raise ValueError(f"not {x} \\udcff")
    return x * x

def looked_up(x):
    table = {"\\udcff": 2.0}
    return table["\\udcff"] * x * x / 2.0

def kept(x):
    for _ in range(3):
        x = x * x
    return x

def refused(x):
    return "\\udcff" + x
'''
NAMES = ["documented", "compared", "raised", "filled", "looked_up"]
BACKENDS = ["python", pytest.param("numba", marks=pytest.mark.numba)]


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """A module in a file whose name is not valid UTF-8."""
    path = tmp_path_factory.mktemp("surrogates") / os.fsdecode(b"half_\xff.py")
    try:
        path.write_text(MODULE)
    except OSError:
        pytest.skip("file names are UTF-8 here")
    spec = importlib.util.spec_from_file_location("half_a_character", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules["half_a_character"] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules["half_a_character"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NAMES)
def test_functions_with_such_texts_have_gradients(module, name, backend):
    assert srcdiff.grad(getattr(module, name), backend=backend)(3.0) == 6.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_exceptions_have_their_texts(module, backend):
    with pytest.raises(ValueError, match=re.escape("not \udcff")):
        srcdiff.grad(module.raised, backend=backend)(30.0)
    with pytest.raises(ValueError, match=re.escape("not 30.0 \udcff")):
        srcdiff.grad(module.filled, backend=backend)(30.0)


def printed(x):
    print("half \udcff", x)
    return x * x


def printed_in_text(x):
    print(f"half \udcff {x:.1f}")
    return x * x


def with_zero(x):
    print("zero \0", x)
    return x * x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [printed, printed_in_text])
def test_what_cannot_be_printed_raises_as_in_python(function, backend, monkeypatch):
    gradient = srcdiff.grad(function, backend=backend)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    with pytest.raises(UnicodeEncodeError):
        gradient(3.0)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape"))
    assert gradient(3.0) == 6.0
    sys.stdout.seek(0)
    assert sys.stdout.read() == "half \udcff 3.0\n"


@pytest.mark.parametrize("backend", BACKENDS)
def test_text_with_a_zero_is_printed_whole(backend, capsys):
    assert srcdiff.grad(with_zero, backend=backend)(3.0) == 6.0
    assert capsys.readouterr().out == "zero \0 3.0\n"


@pytest.mark.parametrize("name", NAMES)
def test_messages_about_surrogates_can_be_encoded(module, name, tmp_path):
    function = getattr(module, name)
    gradient = srcdiff.grad(function, backend="python")
    sides = srcdiff.show(function, 3.0)
    said = [
        gradient.source,
        str(srcdiff.grad(module.kept, backend="python").report(3.0)),
        str(sides),
        sides._repr_html_(),
        str(srcdiff.explain(function, 3.0)),
        srcdiff.export(gradient, tmp_path / "exported.py", 3.0),
        srcdiff.export(gradient, None, 3.0, plain=True),
    ]
    for text in said:
        text.encode()


def test_generated_source_is_that_of_a_function_without_such_a_docstring(module):
    def plain(x):
        """Half a character, /ud800, and an /x00 in the first line."""
        return x * x

    expected = srcdiff.grad(plain, backend="python").source.replace("plain", "documented")
    assert srcdiff.grad(module.documented, backend="python").source == expected


def test_refusal_can_be_written(module):
    with pytest.raises(srcdiff.DifferentiationError) as refused:
        srcdiff.grad(module.refused, backend="python")(3.0)
    line = module.refused.__code__.co_firstlineno + 1
    assert rf"half_\udcff.py:{line}" in str(refused.value)
    str(refused.value).encode()


@pytest.mark.parametrize("command", ["show", "explain", "export"])
def test_commands_can_print_their_answers(module, command, capsys):
    assert main([command, f"{module.__file__}:documented", "--example", "3.0"]) == 0
    assert capsys.readouterr().out.encode()


def test_check_takes_defaults(module):
    assert "1 derivative agrees" in str(srcdiff.check(module.compared, 3.0, backend="python"))
