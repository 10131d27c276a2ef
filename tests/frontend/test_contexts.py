"""`with` and users' context managers, with all kinds of exits; loggers, warnings, and functions without files."""

# Written as users write.
# ruff: noqa: PTH123, UP028

from __future__ import annotations

import contextlib
import linecache
import logging
import warnings
from typing import Any

import numpy as np
import pytest

import srcdiff

LOG = logging.getLogger("test_contexts")
A = np.array([0.3, 1.2, 1.7, 2.1])


class Scope:
    def __init__(self, log, scale):
        self.log, self.scale = log, scale

    def __enter__(self):
        self.log[0] += 1.0
        return self

    def __exit__(self, *args):
        self.log[1] += self.scale * self.log[0]


@contextlib.contextmanager
def scaled(x):
    y = x * 2.0
    yield y
    x[0] = np.sum(y)


@contextlib.contextmanager
def guarded(log, value):
    log[0] += value
    try:
        yield
    finally:
        log[1] += value * log[0]


class Model:
    def __init__(self, w):
        self.w = w

    @contextlib.contextmanager
    def frozen(self, factor):
        before = self.w
        self.w = before * factor
        yield self.w
        self.w = before


def in_order(x):
    log = np.zeros(2)
    with Scope(log, x[0]) as outer, Scope(log, x[1]) as inner:
        t = outer.scale * inner.scale
    with scaled(x * 1.0) as y, np.errstate(all="ignore"):
        t += np.sum(y)
    return t + log[0] * log[1]


def left_early(x):
    log = np.zeros(2)
    for i in range(len(x)):
        with Scope(log, x[i]):
            if x[i] > 1.0:
                log[0] += x[i]
                continue
            with guarded(log, x[0]):
                if x[i] > 0.25 and i > 5:
                    break
                log[1] += 0.5
    return log[0] * log[1]


def returned(x):
    log = np.zeros(2)

    def inner():
        with guarded(log, x[1]):
            for v in x:
                with Scope(log, v):
                    if v > 1.5:
                        return v * log[0]
        return x[0]

    return inner() + log[1]


def caught(x):
    log = np.zeros(2)
    for v in x:
        try:
            with guarded(log, v), Scope(log, x[0]):
                log[0] += 1.0
                if v > 1.5:
                    raise ValueError("too large")
                log[0] += v
        except ValueError:
            log[1] += v * v
    return log[0] * log[1]


def suppressed(x):
    t = x[0]
    with contextlib.suppress(ValueError, ZeroDivisionError):
        t = t * x[1]
        if x[0] < 1.0:
            raise ValueError
        t = t * x[2]
    with contextlib.nullcontext(x) as y:
        return t * y[3]


def of_a_method(x):
    model = Model(x[0])
    with model.frozen(x[1]) as w:
        t = w * model.w
    return t + model.w


def quiet(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t = 0.0
        for v in np.nditer(x):
            t += v * v
        return t


@pytest.mark.parametrize("x", [A, A[::-1].copy()], ids=["rising", "falling"])
@pytest.mark.parametrize("function", [in_order, left_early, returned, caught, suppressed, of_a_method, quiet])
def test_contexts_are_entered_and_left_as_in_python(function: Any, x: Any) -> None:
    value, _ = srcdiff.value_and_grad(function, backend="python")(x)

    assert function(x.copy()) == pytest.approx(value, rel=1e-13)
    srcdiff.check(function, x, backend="python", order=2 if x is A else 1)


def told(x):
    LOG.info("x is %.2f, and %d", x[0], 3)
    LOG.debug("not shown")
    if x[1] > 1.0:
        warnings.warn(f"large: {x[1]:.1f}", RuntimeWarning, stacklevel=2)
    logging.error("plain")
    return x[0] * x[1]


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_loggers_and_warnings_get_the_messages_of_the_program(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    gradient = srcdiff.grad(told, backend=backend)
    with caplog.at_level(logging.INFO), pytest.warns(RuntimeWarning, match=r"large: 1\.2"):
        gradient(A)

    assert [(r.name, r.levelno, r.getMessage()) for r in caplog.records] == [
        ("test_contexts", logging.INFO, "x is 0.30, and 3"),
        ("root", logging.ERROR, "plain"),
    ]


TEXT = "import numpy as np\n\n\ndef energy(x):\n    return np.sum(x ** 3)\n"


@pytest.mark.parametrize("kept_by", ["linecache", "module", "function"])
def test_text_of_a_function_may_be_in_memory(kept_by: str) -> None:
    names: dict[str, Any] = {}
    exec(compile(TEXT, f"<{kept_by}>", "exec"), names)
    if kept_by == "linecache":
        linecache.cache["<linecache>"] = (len(TEXT), None, TEXT.splitlines(keepends=True), "<linecache>")
    elif kept_by == "module":
        names["__source__"] = TEXT
    else:
        names["energy"].__source__ = TEXT

    np.testing.assert_allclose(srcdiff.grad(names["energy"], backend="python")(A), 3.0 * A**2)


class Ending:
    def __enter__(self):
        return self

    def __exit__(self, *args):
        return True


class Asking:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.failed = kind is not None


@contextlib.contextmanager
def twice(x):
    for v in x:
        yield v


@contextlib.contextmanager
def catching():
    try:
        yield
    except ValueError:
        pass


def ends_exceptions(x):
    with Ending():
        return x[0]


def asks_for_exceptions(x):
    try:
        with Asking():
            if x[0] > 0.0:
                raise ValueError
    except ValueError:
        return x[1]
    return x[0]


def yields_twice(x):
    with twice(x) as v:
        return v


def catches(x):
    with catching():
        return x[0]


def opens_a_file(x):
    with open("numbers.txt") as file:
        return x[0] * float(file.read())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (ends_exceptions, "may return a true value"),
        (asks_for_exceptions, "reads the exception"),
        (yields_twice, "must have one `yield`"),
        (catches, "must have one `yield`"),
        (opens_a_file, "open"),
    ],
)
def test_contexts_that_cannot_be_read_are_refused_with_their_line(function: Any, message: str) -> None:
    with pytest.raises(srcdiff.DifferentiationError, match=f"(?s){message}.*test_contexts.py"):
        srcdiff.grad(function, backend="python")(A)
