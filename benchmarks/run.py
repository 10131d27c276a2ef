"""Runs the contestants of each program, interleaved, and collects the measurements.

Each contestant is a process (`worker.py`) that waits for its turn, so that one runs at a time, in an environment of its
own, on one processor. A contestant's time is the least of all its calls in all rounds; the rounds are interleaved, so
that a slow moment of the machine does not hit one contestant alone.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import programs
from benchmarks.systems import OWN, SYSTEMS, System
from srcdiff import measure, tape

__all__ = ["Result", "Run", "Settings", "chosen_systems", "replace", "run"]

ROOT = Path(__file__).parent.parent

#: One thread: for every library that has a variable for it. The processes are also bound to one processor.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
}

#: Above this, the rounds of a contestant differ so much that its least time may not be its time.
NOISY = 1.15

#: Long calls get fewer rounds, because the last per cent of their time does not matter.
ROUNDS_OF_LONG_CALLS = 2

#: Gradients of two methods may differ by this much of the largest component.
TOLERANCE = 1e-6


@dataclass(slots=True)
class Result:
    """The measurements of one contestant on one program at one size. Times in seconds, memory in bytes."""

    program: str
    size: int
    system: str
    seconds: float | None = None
    calls: int = 0
    spread: float | None = None
    first_cold: float | None = None
    first_warm: float | None = None
    busy_cold: float | None = None  # processor time, which does not count other processes
    busy_warm: float | None = None
    peak: int | None = None
    refused: str | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Settings:
    """How much to measure."""

    rounds: int = 7
    turn: float = 0.15
    sizes: tuple[int, ...] = (0, 1, 2)
    patience: float = 120.0
    fresh: bool = True  # new processes with empty caches for each program, and others to measure memory
    budget: float = math.inf

    @classmethod
    def quick(cls) -> Settings:
        return cls(rounds=3, turn=0.03, sizes=(1,), patience=30.0, fresh=False, budget=150.0)


class LostError(Exception):
    """The process of a contestant gave no answer."""


class Contestant:
    """A worker process, and a way to ask it."""

    def __init__(self, system: System, caches: Path) -> None:
        python = python_for(system)
        assert python is not None, f"{system.name} was chosen and cannot be run"
        environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(ROOT)} | _cache_variables(caches)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has byte code
        self.system = system
        self.version: str | None = None
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by `stop`)
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", system.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=environment,
            start_new_session=True,  # only the main process handles Ctrl-C
        )
        _bind_to_one_processor(self.process.pid)

    def greet(self, patience: float) -> str:
        """Wait until the process is ready. Returns its version."""
        if self.version is None:
            self.version = self._answer(patience)["version"]
        return self.version

    def ask(self, patience: float, **command: Any) -> dict[str, Any]:
        """Send a command and wait for the answer. A process that does not answer is stopped."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise LostError(f"its process ended: {self._last_words()}") from None
        return self._answer(patience)

    def _answer(self, patience: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], patience)
        if not ready:
            self.process.kill()
            raise LostError(f"no answer within {patience:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise LostError(f"its process ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        self.process.wait()
        self.log.seek(0)
        lines = self.log.read().strip().splitlines()
        return lines[-1] if lines else f"exit status {self.process.returncode}"

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.log.close()


class Contestants:
    """The processes that run, by system, and the folder of their caches."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.caches = Path(self.folder.name)
        self.running: dict[str, Contestant] = {}

    def get(self, system: System) -> Contestant:
        if system.name not in self.running:
            self.running[system.name] = Contestant(system, self.caches)
        return self.running[system.name]

    def stop(self, *names: str) -> None:
        """Stop these, or all."""
        for name in names or tuple(self.running):
            self.running.pop(name).stop()

    def __enter__(self) -> Contestants:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.folder.cleanup()


def _cache_variables(folder: Path) -> dict[str, str]:
    """The environment variables that set the folders of compiled code."""
    names = (
        "NUMBA_CACHE_DIR",
        "JAX_COMPILATION_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
        "TANGENT_CACHE_DIR",
        "WARP_CACHE_PATH",
        "SRCDIFF_CACHE_DIR",
    )
    return {name: str(folder / name.lower()) for name in names}


def _bind_to_one_processor(process: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process, {max(os.sched_getaffinity(0))})


def python_for(system: System) -> str | None:
    """The interpreter for a system: the one that its variable names, or this one if the package is installed here."""
    named = os.environ.get(system.variable)
    if named:
        return named
    return sys.executable if importlib.util.find_spec(system.package) else None


class Race:
    """One program: first calls and interleaved times, size by size; then, if requested, memory, in new processes."""

    def __init__(
        self,
        program: programs.Program,
        systems: Sequence[System],
        contestants: Contestants,
        settings: Settings,
        progress: Callable[[str], None],
        versions: dict[str, str],
    ) -> None:
        self.program, self.systems, self.contestants = program, list(systems), contestants
        self.settings, self.progress, self.versions = settings, progress, versions
        self.sizes = [program.sizes[k] for k in settings.sizes]
        self.save = contestants.caches / "gradients.npz"
        self.results = {(s.name, n): Result(program.name, n, s.name) for n in self.sizes for s in systems}

    def run(self) -> list[Result]:
        for system in self.systems:
            self.contestants.get(system)  # this starts all processes at the same time
        racing = [system for system in self.systems if self._start(system)]
        if self.program.is_gradient:
            compare_with_differences(self.program, reference(self.program, self.program.sizes[0])[1])
        for size in self.sizes:
            expected = reference(self.program, size)
            running = [system for system in racing if self._first_call(system, size, expected)]
            self._rounds(running, size)
            racing = [system for system in racing if system.name in self.contestants.running]
        if self.settings.fresh:
            self.contestants.stop(*self.contestants.running)
            for system in self.systems:
                self._memory(system)
        return list(self.results.values())

    def _lost(self, system: System, size: int, lost: LostError) -> None:
        """Systems that gave no answer at one size are skipped at larger ones."""
        self.contestants.stop(system.name)
        self.results[system.name, size].refused = str(lost)
        for larger in self.sizes[self.sizes.index(size) + 1 :]:
            self.results[system.name, larger].refused = f"not tried: {lost} at {size}"

    def _start(self, system: System) -> bool:
        self.progress(f"{self.program.name}: start {system.title}")
        try:
            self.versions[system.name] = self.contestants.get(system).greet(self.settings.patience)
        except LostError as lost:
            self._lost(system, self.sizes[0], lost)
            return False
        return True

    def _ask(self, system: System, **command: Any) -> dict[str, Any]:
        return self.contestants.get(system).ask(self.settings.patience, **command)

    def _first_call(self, system: System, size: int, expected: tuple[float, list[np.ndarray]]) -> bool:
        """The first call, and whether its gradient is right."""
        self.progress(f"{self.program.name} {size}: first call, {system.title}")
        result = self.results[system.name, size]
        try:
            answer = self._ask(system, do="first", program=self.program.name, size=size, save=str(self.save))
        except LostError as lost:
            self._lost(system, size, lost)
            return False
        result.refused = answer.get("refused")
        if result.refused is None:
            if self.settings.fresh:
                result.first_cold, result.busy_cold = answer["seconds"], answer["busy"]
            result.notes += answer["notes"]
            result.refused = disagreement(system.name, answer["value"], self.save, expected)
        return result.refused is None

    def _rounds(self, running: list[System], size: int) -> None:
        times: dict[str, list[float]] = {system.name: [] for system in running}
        for turn in range(self.settings.rounds):
            for system in running:
                result = self.results[system.name, size]
                enough = turn >= ROUNDS_OF_LONG_CALLS and min(times[system.name], default=0.0) > measure.LONG
                if enough or result.refused is not None:
                    continue
                self.progress(f"{self.program.name} {size}: round {turn + 1}, {system.title}")
                try:
                    answer = self._ask(system, do="time", seconds=self.settings.turn)
                except LostError as lost:
                    self._lost(system, size, lost)
                    continue
                result.refused = answer.get("refused")
                if result.refused is None:
                    times[system.name].append(answer["seconds"])
                    result.calls += answer["calls"]
                    result.seconds = min(times[system.name])
                    result.spread = measure.spread(times[system.name])

    def _memory(self, system: System) -> None:
        """The first call in a new process with the caches of the first one, and the peak memory."""
        sizes = [size for size in self.sizes if self.results[system.name, size].refused is None]
        for size in sizes:
            self.progress(f"{self.program.name} {size}: memory, {system.title}")
            result = self.results[system.name, size]
            try:
                self.contestants.get(system).greet(self.settings.patience)
                answer = self._ask(system, do="first", program=self.program.name, size=size, save=str(self.save))
                result.first_warm, result.busy_warm = answer.get("seconds"), answer.get("busy")
                result.peak = self._ask(system, do="memory").get("peak")
            except LostError as lost:
                result.notes.append(f"memory not measured: {lost}")
                break
        if system.name in self.contestants.running:
            self.contestants.stop(system.name)


# -- is the gradient right? ------------------------------------------------------------------------------------------


def reference(program: programs.Program, size: int) -> tuple[float, list[np.ndarray]]:
    """The value and the gradients to compare with: written by hand, otherwise those of the eager tape."""
    arguments = program.arguments(size)
    if hasattr(program.module, "hand"):
        from benchmarks.systems import hand  # it needs Numba

        return hand.to_numpy(hand.prepare(program, arguments, "hand")())
    value, gradients = tape.eager.value_and_grad(program.primal, program.positions)(*arguments)
    return value, [np.asarray(g) for g in gradients]


def compare_with_differences(program: programs.Program, gradients: Sequence[np.ndarray]) -> None:
    """Compare gradients at the smallest size with central differences of the sixth order, along a line."""
    arguments = program.arguments(program.sizes[0])
    random = np.random.default_rng(0)
    directions = [random.standard_normal(np.shape(g)) for g in gradients]
    length = math.sqrt(sum(float(np.sum(d * d)) for d in directions))
    directions = [d / length for d in directions]

    def along(t: float) -> float:
        moved = list(arguments)
        for position, direction in zip(program.positions, directions, strict=True):
            original = arguments[position]
            moved[position] = original + t * (direction if isinstance(original, np.ndarray) else float(direction))
        return float(program.primal(*moved))

    by_gradient = sum(float(np.sum(g * d)) for g, d in zip(gradients, directions, strict=True))
    scale = math.sqrt(sum(float(np.sum(g * g)) for g in gradients))
    # The best of several steps: long steps have truncation errors, short ones rounding errors.
    errors = []
    for step in (1e-2, 3e-3, 1e-3, 3e-4, 1e-4):
        weights = ((1, 3.0 / 4.0), (2, -3.0 / 20.0), (3, 1.0 / 60.0))
        by_differences = sum(w * (along(k * step) - along(-k * step)) for k, w in weights) / step
        errors.append(abs(by_differences - by_gradient))
    if min(errors) > 1e-6 * max(scale, abs(by_gradient)):
        raise AssertionError(
            f"{program.name}: the reference says {by_gradient}, differences are {min(errors)} away from it"
        )


def disagreement(
    system: str, value: float, save: Path, expected: tuple[float, list[np.ndarray]], tolerance: float = TOLERANCE
) -> str | None:
    """A message if the value or the gradients are wrong."""
    right_value, right = expected
    if not abs(value - right_value) <= tolerance * max(1.0, abs(right_value)):
        return f"wrong value: {value:.6g} instead of {right_value:.6g}"
    if system == "primal":
        return None
    with np.load(save) as file:
        gradients = [file[f"arr_{k}"] for k in range(len(file.files))]
    if [g.shape for g in gradients] != [r.shape for r in right]:
        return f"gradients of shapes {[g.shape for g in gradients]} instead of {[r.shape for r in right]}"
    scale = max(float(np.max(np.abs(r), initial=0.0)) for r in right)
    furthest = max(float(np.max(np.abs(g - r), initial=0.0)) for g, r in zip(gradients, right, strict=True))
    if not furthest <= tolerance * scale:
        return f"wrong gradient: off by {furthest / scale:.2g} of the largest component"
    return None


# -- everything ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Run:
    """All results, and the conditions of the measurement."""

    date: str
    machine: dict[str, Any]
    versions: dict[str, str]
    settings: dict[str, Any]
    results: list[Result] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    interrupted: bool = False

    def as_json(self) -> str:
        content = asdict(self)
        content["settings"] = {k: (None if v == math.inf else v) for k, v in content["settings"].items()}
        return json.dumps(content, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Run:
        content = json.loads(text)
        results = [Result(**r) for r in content.pop("results")]
        return cls(results=results, **content)


def machine() -> dict[str, Any]:
    """The properties of the machine that affect the times."""
    import platform

    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = [x for x in information.read_text().splitlines() if x.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def run(
    names: Sequence[str],
    systems: Sequence[System],
    settings: Settings,
    progress: Callable[[float, str], None],
    save: Callable[[Run], None],
) -> Run:
    """Run the programs in order and save after each. An interrupt ends the run and keeps the results so far."""
    collected = Run(time.strftime("%Y-%m-%d %H:%M"), machine(), {}, asdict(settings))
    start = time.monotonic()
    with ExitStack() as stack:
        shared = None if settings.fresh else stack.enter_context(Contestants())
        for k, name in enumerate(names):
            if time.monotonic() - start > settings.budget:
                collected.not_run += names[k:]
                break
            show = functools.partial(progress, k / len(names))
            try:
                with ExitStack() as own:
                    contestants = shared or own.enter_context(Contestants())
                    race = Race(programs.load(name), systems, contestants, settings, show, collected.versions)
                    collected.results += race.run()
            except KeyboardInterrupt:
                collected.not_run += names[k:]
                collected.interrupted = True
                break
            finally:
                save(collected)
    progress(1.0, "done")
    return collected


def chosen_systems(names: Sequence[str] | None, always: Sequence[str] = OWN[:2]) -> tuple[list[System], list[System]]:
    """The systems to run, and the requested systems that are not installed (by default, all but those by hand)."""
    everybody = [name for name in SYSTEMS if name != "hand"]
    wanted = [SYSTEMS[n] for n in dict.fromkeys([*always, *(everybody if names is None else names)])]
    return [s for s in wanted if python_for(s)], [s for s in wanted if not python_for(s)]
