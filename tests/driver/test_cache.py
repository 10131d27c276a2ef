"""The disk cache: entries for the next process, stale entries, and damaged or inaccessible files."""

from __future__ import annotations

import importlib
import json
import linecache
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numba import types
from numba.core import event
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

import srcdiff
from srcdiff.backends.numba import loading, machine_code
from srcdiff.caching import store
from srcdiff.caching.fingerprint import UnknownError, fingerprint
from srcdiff.cli import main
from srcdiff.diagnostics import Span
from srcdiff.driver import compiling
from srcdiff.frontend.source.capture import forget_made

PROJECT = Path(__file__).parent.parent.parent

MODEL = """
from typing import NamedTuple
import numpy as np
from helpers import Failure, rule, scaled
from settings import POWER

class Point(NamedTuple):
    x: float
    y: float

def calls(x):
    return scaled(x) + x

def constant(x):
    return x**POWER

def imported(x):
    from settings import FACTOR
    return x * FACTOR

def raises(x):
    if x > 100.0:
        raise Failure(f"{x:.1f} is too large")
    return x * x

def tuples(p):
    return p.x * p.y

def recursive(x, n):
    return x if n == 0 else x * recursive(x, n - 1)

def arrays(a, b):
    return np.sum(a * np.sin(b))

def ignored(x, y):
    return x * x

def ruled(x):
    return rule(x) + x
"""
HELPERS = """
import srcdiff

def adjoint(x, out, out_bar):
    return 4.0 * out_bar

@srcdiff.custom_rule(adjoint=adjoint)
def rule(x):
    return 4.0 * x

class Failure(Exception):
    pass

def scaled(x):
    return 2.0 * x * x
"""
SETTINGS = "POWER = 2\nFACTOR = 3\n"
RUN = """
import json, sys, warnings
import numpy as np
import srcdiff
import model

calls = {
    "calls": (model.calls, 0, (3.0,)),
    "constant": (model.constant, 0, (3.0,)),
    "imported": (model.imported, 0, (3.0,)),
    "raises": (model.raises, 0, (3.0,)),
    "tuples": (model.tuples, 0, (model.Point(2.0, 3.0),)),
    "recursive": (model.recursive, 0, (3.0, 2)),
    "arrays": (model.arrays, (0, 1), (np.ones(2), np.zeros(2))),
    "ignored": (model.ignored, 1, (3.0, 2.0)),
    "ruled": (model.ruled, 0, (3.0,)),
    "composed": (srcdiff.hvp(model.ignored), 2, (3.0, 2.0, 1.0)),
}
options = json.loads(sys.argv[1])
found = {}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for name in sys.argv[2:]:
        function, wrt, arguments = calls[name]
        gradient = srcdiff.grad(function, wrt, **options)
        result = gradient(*arguments)
        stats = gradient.latest.function.stats
        found[name] = repr(result), sum(stats.cache_misses.values())
        if name == "raises":
            try:
                gradient(1000.0)
            except model.Failure as error:
                found[name] += (str(error),)
        if name == "tuples":
            assert type(result) is model.Point
print(json.dumps([found, [str(w.message) for w in caught]]))
"""
ALL = ["calls", "constant", "imported", "raises", "tuples", "recursive", "arrays", "ignored", "ruled", "composed"]
RIGHT = {
    "calls": "13.0",
    "constant": "6.0",
    "imported": "3.0",
    "raises": "6.0",
    "tuples": "Point(x=3.0, y=2.0)",
    "recursive": "27.0",
    "arrays": "(array([0., 0.]), array([1., 1.]))",
    "ignored": "0.0",
    "ruled": "5.0",
    "composed": "2.0",
}


def write_project(folder):
    folder.mkdir()
    for name, text in (("model", MODEL), ("helpers", HELPERS), ("settings", SETTINGS), ("run", RUN)):
        (folder / f"{name}.py").write_text(text)
    return folder


def start(project, cache, names=ALL, options=None, before=""):
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "SRCDIFF_CACHE_DIR": str(cache), "SRCDIFF_TIMINGS": "1"}
    command = [sys.executable, "-c", f"{before}\nimport runpy; runpy.run_path('run.py')", json.dumps(options or {})]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, *names], cwd=project, env=environment, stdout=pipe, stderr=pipe, text=True)


def finished(process):
    """The results of the process, its warnings, and the steps of its compiler."""
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    found, warnings = json.loads(out)
    return found, warnings, [line.split(" ms  ")[1] for line in errors.splitlines() if line.startswith("srcdiff: ")]


def run(project, cache, names=ALL, **more):
    return finished(start(project, cache, names, **more))


def results(found):
    return {name: one[0] for name, one in found.items()}


def compiled(found):
    return [name for name, one in found.items() if one[1]]


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A project, and a cache that an earlier process has filled."""
    project, cache = write_project(tmp_path_factory.mktemp("warm") / "project"), tmp_path_factory.mktemp("cache")
    return project, cache, run(project, cache)


# -- between processes -----------------------------------------------------------------------------------------------


def test_first_process_compiles_everything(warm):
    _, _, (found, warnings, steps) = warm
    assert results(found) == RIGHT
    assert compiled(found) == ALL
    assert steps.count("reverse sweep") == len(ALL) + 1  # of `composed`, the derivative of a derivative
    assert len(warnings) == 1


def test_second_process_compiles_nothing_and_says_the_same(warm):
    project, cache, first = warm
    found, warnings, steps = run(project, cache)
    assert results(found) == RIGHT
    assert compiled(found) == []
    assert steps.count("load machine code") == len(ALL)
    assert steps.count("reverse sweep") == 1  # this step reads a rule, which is a function of the user
    assert warnings == first[1]
    assert found["raises"][2] == "1000.0 is too large"


def test_only_changed_functions_are_compiled_again(warm, tmp_path):
    _, cache, _ = warm
    project = write_project(tmp_path / "project")
    (project / "helpers.py").write_text(HELPERS.replace("2.0 * x * x", "5.0 * x * x").replace("4.0 * out", "8.0 * out"))
    (project / "settings.py").write_text("POWER = 3\nFACTOR = 7\n")
    found, _, _ = run(project, cache)
    assert results(found) == {**RIGHT, "calls": "31.0", "constant": "27.0", "imported": "7.0", "ruled": "9.0"}
    assert compiled(found) == ["calls", "constant", "imported", "ruled"]


def test_lines_that_move_change_the_key_of_the_source_but_not_that_of_the_machine_code(warm, tmp_path):
    _, cache, _ = warm
    project = write_project(tmp_path / "project")
    (project / "model.py").write_text(f"# moved\n{MODEL}")
    found, _, steps = run(project, cache, ["calls"])
    assert compiled(found) == []
    assert "reverse sweep" in steps


def test_other_options_are_compiled_anew(warm):
    project, cache, _ = warm
    assert compiled(run(project, cache, ["calls"], options={"fastmath": False})[0]) == ["calls"]
    assert compiled(run(project, cache, ["calls"], options={"fastmath": False})[0]) == []


@pytest.mark.parametrize("module", ["numba", "numpy", "llvmlite"])
def test_other_versions_are_compiled_anew(warm, module):
    project, cache, _ = warm
    before = f"import srcdiff, {module}; {module}.__version__ += '.1'"
    assert compiled(run(project, cache, ["calls"], before=before)[0]) == ["calls"]


def test_another_processor_is_compiled_for_anew(warm):
    project, cache, _ = warm
    before = "import os; os.environ.update(NUMBA_CPU_NAME='generic', NUMBA_CPU_FEATURES='')"
    assert compiled(run(project, cache, ["calls"], before=before)[0]) == ["calls"]


def test_without_cache_nothing_is_read_or_written(warm, tmp_path):
    project, cache, _ = warm
    assert compiled(run(project, cache, ["calls"], options={"cache": False})[0]) == ["calls"]
    run(project, tmp_path / "cache", ["calls"], options={"cache": False})
    assert not (tmp_path / "cache").exists()


def test_broken_entries_are_replaced(warm, tmp_path):
    project, _, _ = warm
    cache = tmp_path / "cache"
    run(project, cache, ["calls"])
    entries = sorted(cache.iterdir())
    assert len(entries) == 2  # the source and the machine code
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:-100])
    found, _, _ = run(project, cache, ["calls"])
    assert results(found) == {"calls": RIGHT["calls"]}
    assert compiled(found) == ["calls"]
    assert compiled(run(project, cache, ["calls"])[0]) == []


def test_processes_may_write_at_once(warm, tmp_path):
    project, _, _ = warm
    processes = [start(project, tmp_path / "cache", ["calls", "arrays"]) for _ in range(3)]
    for process in processes:
        assert results(finished(process)[0]) == {name: RIGHT[name] for name in ("calls", "arrays")}
    assert compiled(run(project, tmp_path / "cache", ["calls", "arrays"])[0]) == []
    assert [] == [f for f in (tmp_path / "cache").iterdir() if f.suffix == ".srcdiff-unfinished"]


def test_process_killed_while_it_writes_does_no_harm(warm, tmp_path):
    project, _, _ = warm
    kill = "import pathlib, os; pathlib.Path.replace = lambda *_: os.kill(os.getpid(), 9)"
    killed = start(project, tmp_path / "cache", ["calls"], before=kill)
    killed.communicate(timeout=300)
    assert killed.returncode == -signal.SIGKILL
    (unfinished,) = (tmp_path / "cache").iterdir()
    found, _, _ = run(project, tmp_path / "cache", ["calls"])
    assert results(found) == {"calls": RIGHT["calls"]}
    assert compiled(run(project, tmp_path / "cache", ["calls"])[0]) == []
    assert unfinished.exists()  # another process may still be writing it; it is removed after a day


def test_full_disk_is_nothing_to_speak_of(warm, tmp_path):
    project, _, _ = warm
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    found, _, steps = run(project, tmp_path / "cache", ["calls"], before=full)
    assert results(found) == {"calls": RIGHT["calls"]}
    assert "reverse sweep" in steps
    assert [] == list((tmp_path / "cache").iterdir())


def test_classes_of_a_script_are_not_looked_up_in_another_process(tmp_path):
    project = write_project(tmp_path / "project")
    script = """
from typing import NamedTuple
import srcdiff

class Point(NamedTuple):
    x: float

class Failure(Exception):
    pass

def f(p):
    if p.x > 100.0:
        raise Failure("large")
    return p.x * p.x

gradient = srcdiff.grad(f)
assert gradient(Point(3.0)) == Point(6.0)
try:
    gradient(Point(1000.0))
except Failure:
    print([[], []])
"""
    (project / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "SRCDIFF_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        process = subprocess.run([sys.executable, "script.py"], cwd=project, env=environment, capture_output=True)
        assert process.stdout.strip() == b"[[], []]", process.stderr


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SRCDIFF_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_entry_is_found_again(cache):
    store.put("key", b"data")
    assert store.get("key") == b"data"
    assert store.get("other") is None
    assert cache.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"short", bytes(32) + b"data", bytes(40)])
def test_entry_with_a_wrong_checksum_is_not_there(cache, content):
    store.put("key", b"data")
    (entry,) = cache.iterdir()
    entry.write_bytes(content)
    assert store.get("key") is None


def test_entry_of_another_key_is_not_there(cache):
    store.put("key", b"data")
    (entry,) = cache.iterdir()
    entry.rename(cache / "other.srcdiff")
    assert store.get("other") is None


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


OTHER_THINGS = {
    "pipe": os.mkfifo,
    "directory": os.mkdir,
    "socket": a_socket,
    "loop of links": lambda path: path.symlink_to(path),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to nothing": lambda path: path.symlink_to(path.with_suffix(".nothing")),
    "file that cannot be read": lambda path: path.touch(0o000),
    "file of a terabyte": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), 2**40),
}


@pytest.mark.parametrize("kind", OTHER_THINGS)
def test_other_things_than_files_are_not_entries(cache, kind):
    store.put("other", b"data")
    OTHER_THINGS[kind](cache / "key.srcdiff")
    found = []
    reader = threading.Thread(target=lambda: found.append(store.get("key")), daemon=True)
    reader.start()
    reader.join(20)
    assert found == [None]
    store.put("key", b"data")
    assert store.get("key") == (None if kind == "directory" else b"data")


def test_cache_that_is_no_directory_is_not_used(cache):
    os.mkfifo(cache)
    store.put("key", b"data")
    assert store.get("key") is None
    assert not store.is_usable()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_directory_that_others_can_write_is_not_used(cache, mode):
    store.put("key", b"data")
    cache.chmod(mode)
    assert store.get("key") is None
    store.put("other", b"data")
    assert len(list(cache.iterdir())) == 1


def test_file_that_others_can_write_is_not_read(cache):
    store.put("key", b"data")
    (entry,) = cache.iterdir()
    entry.chmod(0o666)
    assert store.get("key") is None


def test_directory_of_another_user_is_not_used(cache, monkeypatch):
    store.put("key", b"data")
    another = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: another)
    assert store.get("key") is None


@pytest.mark.parametrize("place", ["/proc/srcdiff", "/dev/null/srcdiff"])
def test_directory_that_cannot_be_made_is_done_without(monkeypatch, place):
    monkeypatch.setenv("SRCDIFF_CACHE_DIR", place)
    store.put("key", b"data")
    assert store.get("key") is None
    assert store.size() == (0, 0)


def test_directory_is_the_users_own(monkeypatch, tmp_path):
    monkeypatch.delenv("SRCDIFF_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.directory() == tmp_path / "srcdiff"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert store.directory() == tmp_path / "home" / ".cache" / "srcdiff"


def test_entries_unused_for_long_are_deleted(cache):
    for key in ("old", "used", "new"):
        store.put(key, b"data")
    unfinished = cache / "x.srcdiff-unfinished"
    unfinished.write_bytes(b"half")
    (cache / "somebody_elses").write_bytes(b"")
    for file in cache.iterdir():
        if "new" not in file.name:
            os.utime(file, (0, 0))
    assert store.get("used") == b"data"
    store._swept.discard(cache)
    store.put("another", b"data")
    kept = {f.name for f in cache.iterdir()}
    assert kept == {"used.srcdiff", "new.srcdiff", "another.srcdiff", "somebody_elses"}


def test_command_says_how_much_there_is_and_clears_it(cache, capsys):
    store.put("key", b"data")
    assert main(["cache"]) == 0
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"{cache}: 1 files, 0.0 MB\n{cache}: 0 files, 0.0 MB\n"
    assert [] == list(cache.iterdir())


def test_command_says_if_nothing_is_kept(cache, capsys):
    cache.mkdir()
    cache.chmod(0o777)
    main(["cache"])
    assert "The cache is not used" in capsys.readouterr().out


# -- entries with a valid checksum and wrong contents ------------------------------------------------------------------


@pytest.fixture
def kept(cache, tmp_path, monkeypatch):
    """A function in a file, whose gradient is in the cache; with the keys of its source and of its machine code."""
    (tmp_path / "kept_function.py").write_text("def f(x):\n    return x * x * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(loading, "_loaded", {})
    function = importlib.import_module("kept_function").f
    assert srcdiff.grad(function)(2.0) == 12.0
    keys = [entry.stem for entry in cache.iterdir()]
    forget_made()  # as in the next process
    yield function, sorted(keys, key=lambda key: store.get(key)[:1] != b"{")
    del sys.modules["kept_function"]


def changed(**parts):
    return lambda whole: json.dumps({**whole, **parts}).encode()


GARBAGE = {
    "nothing": lambda whole: b"",
    "no text": lambda whole: b"\xff\xfe\x00",
    "no JSON": lambda whole: b"{",
    "deep JSON": lambda whole: b"[" * 100_000,
    "null": lambda whole: b"null",
    "a number": lambda whole: b"17",
    "a list": lambda whole: b"[]",
    "nothing in it": lambda whole: b"{}",
    "a number for the text": changed(text=1),
    "no Python": changed(text="def f_grad(:"),
    "no function": changed(text="x = 1"),
    "another function": changed(text="def other(x):\n    return x"),
    "another name": changed(name="other"),
    "no name": changed(name=None),
    "functions that are not there": changed(functions=["f_grad", "other"]),
    "no functions": changed(functions=[]),
    "objects that are not there": changed(objects=["other"]),
    "lists for names": changed(support=[[]]),
    "another workspace": changed(workspace=[{"dtype": "other", "rank": 1, "name": "x", "keeps": None}]),
    "numbers for a workspace": changed(workspace=[1]),
    "other places": changed(kept_elsewhere=[{"there": 1}]),
    "numbers for warnings": changed(warnings=[1]),
    "no warnings": changed(warnings=None),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_source_that_is_garbage_is_written_again(kept, kind):
    function, (source, _) = kept
    right = store.get(source)
    store.put(source, GARBAGE[kind](json.loads(right)))
    gradient = srcdiff.grad(function)
    assert gradient(2.0) == 12.0
    assert store.get(source) == right


def with_part(number, change):
    """Machine code with one part replaced."""

    def changed(data):
        symbols, content = pickle.loads(data)
        parts = list(pickle.loads(content))
        parts[number] = change(parts[number])
        return pickle.dumps((symbols, dumps(tuple(parts))))

    return changed


class OtherFunction:
    modname = "srcdiff.generated.other"


BROKEN = {
    "nothing": lambda data: b"",
    "no pickle": lambda data: b"garbage",
    "half": lambda data: data[: len(data) // 2],
    "None": lambda data: pickle.dumps(None),
    "a pair of numbers": lambda data: pickle.dumps((1, 2)),
    "nothing in it": lambda data: pickle.dumps(([], b"")),
    "other parts": lambda data: pickle.dumps(([], pickle.dumps((1, 2, 3)))),
    "symbols that are none": lambda data: pickle.dumps(([1, 2], pickle.loads(data)[1])),
    "symbols that are not there": lambda data: pickle.dumps((["no_such_symbol"], pickle.loads(data)[1])),
    "no object code": with_part(0, lambda library: (library[0], library[1], (b"", library[2][1]))),
    "other object code": with_part(0, lambda library: (library[0], library[1], (b"garbage" * 99, library[2][1]))),
    "code of another kind": with_part(0, lambda library: (library[0], "other", library[2])),
    "code of another function": with_part(1, lambda function: OtherFunction()),
    "code for other arguments": with_part(3, lambda signature: signature.return_type()),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_machine_code_that_is_garbage_is_compiled_again(kept, kind):
    function, (_, code) = kept
    (key,) = loading._loaded
    store.put(code, BROKEN[kind](store.get(code)))
    context = cpu_target.target_context
    assert machine_code.MachineCode(key).load_overload((types.float64,), context) is None
    assert srcdiff.grad(function)(2.0) == 12.0


# -- keys ------------------------------------------------------------------------------------------------------------


def test_lines_are_part_of_the_key_as_they_are_now(tmp_path):
    file = tmp_path / "lines.py"
    span = Span(str(file), 1)
    found = []
    for line in ("x = 1", "x = 2"):
        file.write_text(line)
        linecache.cache.pop(str(file), None)  # no others: some texts are nowhere else
        found.append(fingerprint(span))
    assert found[0] != found[1]


def test_equal_constants_of_different_types_have_different_fingerprints():
    things = [1, 1.0, True, "1", (1,), [1], {1: 1}, None, 0.0, -0.0, np.float64(1.0), int, float]
    assert len({fingerprint(x) for x in things}) == len(things)


def test_functions_of_the_user_have_no_fingerprint():
    for thing in (lambda x: x, cubed, srcdiff.grad(cubed), srcdiff.custom_rule(cubed, adjoint=cubed)):
        with pytest.raises(UnknownError):
            fingerprint(thing)


# -- the Numba libraries that machine code needs ----------------------------------------------------------------------


class Context:
    """A mock of Numba's context that counts how often everything is loaded."""

    refreshed = 0

    def refresh(self):
        self.refreshed += 1


@pytest.fixture
def context():
    rtsys.initialize(cpu_target.target_context)
    return Context()


def test_machine_code_with_known_symbols_does_not_load_the_compiler(context):
    machine_code._provide(["NRT_Allocate", "sin"], context)
    assert context.refreshed == 0


def test_machine_code_with_missing_symbols_is_not_loaded(context):
    with pytest.raises(LookupError):
        machine_code._provide(["there_is_no_such_function"], context)
    assert context.refreshed == 1


# -- threads ---------------------------------------------------------------------------------------------------------


def cubed(x, a):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * x**3
    return total


def test_many_threads_at_once_compile_once_and_all_are_right(monkeypatch):
    gradient = srcdiff.grad(cubed, cache=False)
    requests, results = [], {}
    compile_request = compiling.compile_request
    monkeypatch.setattr(compiling, "compile_request", lambda *a: requests.append(a) or compile_request(*a))
    barrier = threading.Barrier(50)

    def call(k):
        barrier.wait()
        results[k] = gradient(float(k), np.ones(2))

    threads = [threading.Thread(target=call, args=(k,)) for k in range(50)]
    with event.install_recorder("numba:compile") as recorder:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ours = [e for _, e in recorder.buffer if e.is_start and e.data["dispatcher"] is gradient.latest.function]
    assert results == {k: 6.0 * k * k for k in range(50)}
    assert len(requests) == 1
    assert len(ours) == 1


# -- batches ---------------------------------------------------------------------------------------------------------

BATCHES = """
import sys
import numpy as np
import srcdiff


def loss(x, w):
    if x > 100.0:
        raise OverflowError(x)
    total = 0.0
    for i in range(len(w)):
        total += x * x * w[i]
    return total


over = np.array([1.0, 2.0, 3.0])
for parallel in (False, True):
    batch = srcdiff.batched(srcdiff.value_and_grad(loss, wrt=("x", "w")), over="x", parallel=parallel)
    value, (x_bar, w_bar) = batch(over, np.ones(2))
    print(value.tolist(), x_bar.tolist(), w_bar.tolist())
    try:
        batch(np.array([1.0, 200.0, 1.0]), np.ones(2))
    except OverflowError as error:
        print("raised", error)
print(srcdiff.batched(loss, over="x")(over, np.array([1.0, 1.0, 1.0])).tolist())
"""


def test_loops_over_batches_are_kept_on_disk(tmp_path):
    (tmp_path / "batches.py").write_text(BATCHES)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "SRCDIFF_CACHE_DIR": str(tmp_path / "cache")}
    environment["SRCDIFF_TIMINGS"] = "1"
    said, steps = [], []
    for _ in range(2):
        command = [sys.executable, "batches.py"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
        said.append(done.stdout)
        steps.append([line for line in done.stderr.splitlines() if "with Numba" in line])

    whole = "[2.0, 8.0, 18.0] [4.0, 8.0, 12.0] [[1.0, 1.0], [4.0, 4.0], [9.0, 9.0]]\nraised 200.0\n"
    assert said == [whole * 2 + "[3.0, 12.0, 27.0]\n"] * 2
    assert sum("`loop`" in line for line in steps[0]) == 2, "one for the gradient, one for the function"
    assert steps[1] == []


@pytest.mark.numba
def test_timings_tell_the_stages_of_numba(tmp_path):
    program = "import srcdiff\nfrom model import loss\nsrcdiff.grad(loss, cache=False)(3.0)\n"
    (tmp_path / "model.py").write_text("def loss(x):\n    return x * x\n")
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{tmp_path}", "SRCDIFF_TIMINGS": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)

    times = [line.removeprefix("srcdiff:").split(" ms  ") for line in done.stderr.splitlines()]
    place = next(k for k, (_, step) in enumerate(times) if step == "compile `loss_grad` with Numba")
    stages = times[place + 1 : place + 7]
    assert [step.strip() for _, step in stages] == [
        "start of the compiler",
        "bytecode and rewrites",
        "typing",
        "lowering to LLVM",
        "LLVM optimisation",
        "machine code and linking",
    ]
    assert all(float(time) > 0.0 for time, _ in stages)
    assert sum(float(time) for time, _ in stages) == pytest.approx(float(times[place][0]), rel=0.1, abs=1.0)


@pytest.mark.numba
def test_timings_of_a_gradient_that_only_compiled_code_calls(tmp_path):
    """The function is compiled while Numba compiles its caller, and the start of that compilation was not observed."""
    model = "import numba, srcdiff\ng = srcdiff.grad(lambda x: x * x)\ncaller = numba.njit(lambda x: g(x) + 1.0)\n"
    (tmp_path / "model.py").write_text(model)
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}{os.pathsep}{tmp_path}", "SRCDIFF_TIMINGS": "1"}
    environment["SRCDIFF_CACHE_DIR"] = str(tmp_path / "cache")
    command = [sys.executable, "-c", "import model; print(model.caller(3.0))"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)

    assert done.stdout == "7.0\n"
    assert "LLVM optimisation" in done.stderr
