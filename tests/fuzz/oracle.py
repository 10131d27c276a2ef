"""Compares one program with differences: its value, its gradient, its exceptions, its arguments.

The plain function runs at each point and along random lines through it. A point where differences are not accurate
(near a kink or a jump) is skipped and counted. Any other difference is a failure with a label. The shrinker uses the
label to check that a smaller program fails in the same way.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from tests.fuzz.cases import ENTRY, Case, arguments_of, loaded
from tests.numerical import Derivative, Line, clone, derivative, float_fields, numbers_in, parts_of, size_of, with_parts

Differentiate = Callable[..., Callable[..., Any]]

#: The time limit of a program in seconds. Programs are expected to take milliseconds.
SECONDS = {"python": 15.0, "numba": 300.0, "cuda": 300.0}

#: The relative difference allowed between values, which may differ in the order of operations.
VALUE_TOLERANCE = {False: 1e-9, True: 1e-3}

#: The addition to the estimated error of differences, relative to the terms of the directional derivative.
GRADIENT_TOLERANCE = {False: 1e-7, True: 1e-2}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a program: "fine", "skipped" (no point compared), "refused" or "failed", and the reason."""

    seed: int
    kind: str
    label: str = ""
    detail: str = ""
    compared: int = 0
    skipped: int = 0
    raised: int = 0


class TookTooLongError(Exception):
    """The time for one program is over."""


class Failure(Exception):  # noqa: N818 - it is an answer, not an error of ours
    """A difference between srcdiff and the plain function."""

    def __init__(self, label: str, detail: str, point: int) -> None:
        super().__init__(label)
        self.label = label
        self.detail = f"{detail}\n(point {point})"


def check(
    case: Case, backend: str = "python", differentiate: Differentiate | None = None, seconds: float | None = None
) -> Outcome:
    """Run a program with srcdiff and without, and compare."""
    if differentiate is None:
        import srcdiff

        differentiate = srcdiff.value_and_grad
    counts = {"compared": 0, "skipped": 0, "raised": 0}
    try:
        with quiet(), time_limit(seconds or SECONDS[backend]), loaded(case) as module:
            expected = [expect(case, module, number) for number in range(len(case.points))]
            compare(case, module, expected, backend, differentiate, counts)
    except Failure as failure:
        return Outcome(case.seed, "failed", failure.label, failure.detail, **counts)
    except TookTooLongError:
        return Outcome(case.seed, "failed", "took too long", "", **counts)
    except Refused as refused:
        return Outcome(case.seed, "refused", refused.code, refused.text, **counts)
    kind = "fine" if counts["compared"] or counts["raised"] else "skipped"
    return Outcome(case.seed, kind, **counts)


@dataclass(frozen=True, slots=True)
class Expected:
    """The behaviour of the plain function at a point: its value and derivatives along lines, or its exception."""

    value: float
    exception: type[BaseException] | None
    lines: tuple[tuple[np.ndarray, Derivative], ...] = ()
    closer: Callable[[np.ndarray], Derivative] | None = None
    """The derivative along a line by better differences: from steps a thousandfold smaller, which pass over fewer
    jumps, or of the program in double precision."""

    def sharp(self, single_precision: bool) -> bool:
        relative = 1e-2 if single_precision else 1e-5
        return math.isfinite(self.value) and all(found.resolved(relative) for _, found in self.lines)


def expect(case: Case, module: types.ModuleType, number: int) -> Expected:
    """Run the plain function at a point of a case."""
    function = widened(getattr(module, ENTRY)) if case.single_precision else getattr(module, ENTRY)
    arguments = arguments_of(case.points[number], module)
    try:
        value = float(function(*clone(arguments)))
    except TookTooLongError:
        raise
    except Exception as raised:
        # overflow: Python raises, and compiled code gives infinity, so nothing is compared
        ran_away = isinstance(raised, (OverflowError, ZeroDivisionError)) or str(raised) == "math domain error"
        return Expected(math.nan, None if ran_away else type(raised))
    random = Random(f"{case.seed} {number}")
    lines = []
    for _ in range(1 if number else 2):
        direction = np.array([random.gauss(0.0, 1.0) for _ in range(size_of(arguments, case.wrt))])
        direction /= max(1.0, float(np.sqrt(np.sum(direction * direction))))
        try:
            found = derivative(Line(function, arguments, case.wrt, direction), 2.0**-8, 7)
        except TookTooLongError:
            raise
        except Exception:
            found = Derivative(math.nan, math.inf)  # it raises nearby, so there is a jump
        lines.append((direction, found))

    def closer(direction: np.ndarray) -> Derivative:
        if case.single_precision:
            return derivative(Line(function, in_double(arguments), case.wrt, direction), 2.0**-8, 7)
        return derivative(Line(function, arguments, case.wrt, direction), 2.0**-18, 5)

    return Expected(value, None, tuple(lines), closer)


def widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """The point in float64: NumPy rounds Python floats to float32 beside a float32, which spoils differences."""
    return lambda *args: function(*(np.float64(a) if type(a) is float else a for a in args))


def in_double(value: Any) -> Any:
    """The arguments with every float32 as a float64."""
    if (parts := parts_of(value)) is not None:
        return with_parts(value, [in_double(part) for part in parts])
    return value.astype(np.float64) if getattr(value, "dtype", None) == np.float32 else value


class Refused(Exception):  # noqa: N818 - it is an answer, not an error of ours
    """A refusal of srcdiff. `code` is its first reason, without names."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = next(iter(reasons(text)), text.strip()[:80])
        self.text = text


def reasons(text: str) -> list[str]:
    """The codes and messages of a DifferentiationError, without the names in them.

    >>> reasons("error[SD204]: `y` is not defined")
    ['SD204: `...` is not defined']
    """
    found = re.findall(r"\b(SD\d+)\]?:? (.*)", text)
    return [f"{code}: {re.sub('`[^`]*`', '`...`', message)}" for code, message in found]


def compare(
    case: Case,
    module: types.ModuleType,
    expected: list[Expected],
    backend: str,
    differentiate: Differentiate,
    counts: dict[str, int],
) -> None:
    """Run the derivative at every point with a reference. Raises Failure or Refused."""
    try:
        gradient = differentiate(getattr(module, ENTRY), wrt=case.wrt, backend=backend)
    except TookTooLongError:
        raise
    except Exception as raised:
        raise classified(raised, 0) from raised
    for number, wanted in enumerate(expected):
        point = arguments_of(case.points[number], module)
        given = clone(point)
        if wanted.exception is None and not wanted.sharp(case.single_precision):
            counts["skipped"] += 1
            continue
        try:
            answer = gradient(*given)
        except TookTooLongError:
            raise
        except Exception as raised:
            if wanted.exception is type(raised):
                counts["raised"] += 1
                continue
            raise classified(raised, number) from raised
        if wanted.exception is not None:
            detail = f"the plain function raises {wanted.exception.__name__}, the gradient returned {answer!r}"
            raise Failure("no exception", detail, number)
        judge(case, point, given, answer, wanted, number)
        counts["compared"] += 1


def judge(case: Case, point: Any, given: Any, answer: Any, wanted: Expected, number: int) -> None:
    """Compare one result with the reference. Raises Failure."""
    if not unchanged(point, given):
        raise Failure("arguments changed", f"were {point!r}\nare  {given!r}", number)
    value, bars = answer
    allowed = VALUE_TOLERANCE[case.single_precision] * max(1.0, abs(wanted.value))
    if not abs(value - wanted.value) <= allowed:
        raise Failure("wrong value", f"expected {wanted.value!r}\ngot      {value!r}", number)
    for k, bar in zip(case.wrt, bars, strict=True):
        if not like(bar, point[k]):
            raise Failure("wrong type", f"argument {k} is {point[k]!r}\nits gradient {bar!r}", number)
    numbers = np.array(list(numbers_in(bars)))
    for direction, found in wanted.lines:
        got = float(numbers @ direction)
        terms = max(1e-4, float(np.sum(np.abs(numbers * direction))), abs(found.value))
        rounding = GRADIENT_TOLERANCE[case.single_precision] * terms
        if not abs(got - found.value) <= found.tolerance + rounding:
            near = found if wanted.closer is None else wanted.closer(direction)
            if case.single_precision and abs(got - near.value) <= near.tolerance + rounding:
                continue  # the difference was inaccurate because of rounding
            apart = abs(near.value - found.value)
            if (
                not case.single_precision
                and not apart <= 1e-3 * max(abs(near.value), abs(found.value)) + found.tolerance
            ):
                continue  # the two estimates disagree: there are jumps between the steps
            detail = f"along {direction.tolist()}\nexpected {found.value!r} +- {found.error:.1e}\ngot      {got!r}\n"
            raise Failure("wrong gradient", detail + f"gradient {bars!r}", number)


def classified(raised: BaseException, number: int) -> Exception:
    """The meaning of an exception of srcdiff: a refusal, or an internal error."""
    if type(raised).__name__ == "DifferentiationError" and not reports_a_bug(str(raised)):
        return Refused(str(raised))
    frames = traceback.extract_tb(raised.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}srcdiff{os.sep}" in frame.filename]
    place = f" in {ours[-1].name}" if ours else ""
    generated = "" if ours and frames[-1] == ours[-1] else " (raised in generated code)"
    if raised.__class__.__module__.startswith("numba"):
        generated = ""
    text = "".join(traceback.format_exception(raised, limit=-8))
    return Failure(f"internal error: {type(raised).__name__}{place}{generated}", text, number)


def reports_a_bug(text: str) -> bool:
    """Whether a DifferentiationError reports a bug of srcdiff."""
    return bool(re.search(r"\bbug\b|internal error", text.lower()))


def unchanged(before: Any, after: Any) -> bool:
    if isinstance(before, np.ndarray):
        return np.array_equal(before, after) and before.dtype == after.dtype
    parts, others = parts_of(before), parts_of(after)
    if parts is not None and others is not None:
        return len(parts) == len(others) and all(map(unchanged, parts, others))
    return before is after or bool(before == after)


def like(bar: Any, argument: Any) -> bool:
    """Whether a gradient has the type, dtype and shape of its argument."""
    if isinstance(argument, np.ndarray):
        names = float_fields(argument.dtype)
        dtype = argument[names].dtype if names else argument.dtype
        same = isinstance(bar, np.ndarray) and bar.shape == argument.shape
        return same and (bar.dtype.names == dtype.names if names else bar.dtype == dtype)
    parts, bars = parts_of(argument), parts_of(bar)
    if parts is not None:
        kind = next((kind for kind in (tuple, list, dict) if isinstance(argument, kind)), type(argument))
        return isinstance(bar, kind) and bars is not None and len(bars) == len(parts) and all(map(like, bars, parts))
    if isinstance(argument, complex):
        return isinstance(bar, (complex, np.complexfloating))
    return isinstance(bar, (float, np.floating))


# ------------------------------------------------------------------------------------------------------ surroundings


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress prints of the programs, and warnings about zero gradients and divisions."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLongError in the block after the time limit (if the platform has signals)."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def over(number: int, frame: types.FrameType | None) -> None:
        raise TookTooLongError

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


class TooManyLinesError(Exception):
    """A program ran more lines than programs of the writer do."""


def exceptions_of(case: Case, lines: int = 30000) -> set[str] | None:
    """The exceptions of the plain function at its points; None if it gives no float or does not end soon.

    A program being shrunk may have lost its fuel, its name or a definition.
    """
    remaining = lines

    def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
        nonlocal remaining
        if not frame.f_code.co_filename.startswith("<fuzz program"):
            return None
        remaining -= 1
        if remaining < 0:
            raise TooManyLinesError
        return trace

    before = sys.gettrace()
    raised: set[str] = set()
    with quiet():
        try:
            loading = loaded(case)
            module = loading.__enter__()
            function = getattr(module, ENTRY)
            points = [clone(arguments_of(point, module)) for point in case.points]
        except Exception:
            return None
        for point in points:
            sys.settrace(trace)
            try:
                if not isinstance(function(*point), (float, np.floating)):
                    return None
            except (TooManyLinesError, RecursionError):
                return None
            except Exception as exception:
                raised.add(type(exception).__name__)
            finally:
                sys.settrace(before)
        loading.__exit__(None, None, None)
    return raised
