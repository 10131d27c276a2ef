"""The progress line appears only on a terminal, and is always erased at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from srcdiff.diagnostics import progress

pty = pytest.importorskip("pty")
ERASE = "\r\x1b[K"

START = """
import sys, threading
import numpy as np
import srcdiff
from srcdiff.diagnostics import progress
progress.PATIENCE, progress.PERIOD = {patience}, 0.01

"""
WORK = """
import time
with progress.shown("`loss`"):
    progress.step("reading")
    time.sleep(0.1)
"""


def on_terminal(program, patience=0.0, **environment):
    """The output of a program: stderr on a terminal, and stdout in a pipe."""
    master, slave = pty.openpty()
    text = START.format(patience=patience) + program
    with subprocess.Popen(
        [sys.executable, "-c", text],
        stderr=slave,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "SRCDIFF_TIMINGS": "", **environment},
        text=True,
    ) as process:
        os.close(slave)
        said = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:  # the program has ended
                break
            if not part:
                break
            said += part
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(master)
    return said.decode(), out


def lines(said):
    """The progress lines, without the seconds."""
    return {line.rpartition(", ")[0] for line in said.split(ERASE) if line}


def test_progress_of_long_work_is_shown_and_erased():
    said, _ = on_terminal(WORK)

    assert {"srcdiff: `loss`: reading"} == lines(said) - {"srcdiff: `loss`"}
    assert said.endswith(ERASE)


@pytest.mark.parametrize(
    ("patience", "environment"), [(60.0, {}), (0.0, {"SRCDIFF_PROGRESS": "0"}), (0.0, {"TERM": "dumb"})]
)
def test_no_progress_is_shown_for_short_work_or_if_disabled(patience, environment):
    assert on_terminal(WORK, patience, **environment) == ("", "")


def test_no_progress_is_written_to_a_pipe():
    program = START.format(patience=0.0) + WORK
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("", "")


def test_the_line_is_erased_before_an_exception_is_shown():
    said, _ = on_terminal(WORK.replace("time.sleep(0.1)", "time.sleep(0.1); raise KeyError('found')"))

    assert "reading" in said
    assert f"{ERASE}Traceback" in said


def test_one_of_several_threads_is_shown():
    work = "\n".join(f"    {line}" for line in WORK.strip().splitlines())
    said, out = on_terminal(
        f"def work():\n{work}\nthreads = [threading.Thread(target=work) for _ in range(8)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\nprint(threading.active_count())"
    )

    assert {"srcdiff: `loss`: reading"} == lines(said) - {"srcdiff: `loss`"}
    assert said.endswith(ERASE)
    assert out == "1\n"


def test_work_inside_of_work_is_part_of_it():
    said, _ = on_terminal(WORK + "    with progress.shown('inner'):\n        time.sleep(0.05)\n")

    assert "inner" not in said


def test_a_first_call_shows_its_steps(tmp_path):
    (tmp_path / "model.py").write_text("def loss(x):\n    return x * x\n")
    slow = (
        "import time, sys\nfrom srcdiff.passes import manager\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\nimport model\n"
        "look = manager.look\n"
        "manager.look = lambda name, *rest: (time.sleep(0.03 * (name == 'reverse sweep')), look(name, *rest))[1]\n"
        "print(srcdiff.grad(model.loss, backend='python')(3.0))\n"
    )
    said, out = on_terminal(slow)

    assert "srcdiff: `loss`: reverse sweep" in lines(said)
    assert said.endswith(ERASE)
    assert out == "6.0\n"


@pytest.mark.numba
def test_numba_shows_its_stages():
    program = (
        "from srcdiff.backends.numba import numba_cpu\n"
        "f = numba_cpu.load('def f(x):\\n    return x * x\\n', ['f'], {}, {}, '<text>')\nprint(f(3.0))\n"
    )
    said, out = on_terminal(program)

    assert "srcdiff: compiling `f` with Numba: " in said
    assert said.endswith(ERASE)
    assert out == "9.0\n"


def test_a_closed_stderr_is_not_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert not progress.is_wanted()
    before = threading.active_count()
    with progress.shown("work"):
        assert threading.active_count() == before
