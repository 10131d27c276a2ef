"""Some hundred random programs, and tests of the fuzzer: it is reproducible, finds failures, and shrinks them."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.fuzz.campaign import coverage, describe, run_one, shrunk
from tests.fuzz.cases import Case, loaded
from tests.fuzz.changes import differences
from tests.fuzz.constructs import CONSTRUCTS
from tests.fuzz.oracle import Outcome, check, exceptions_of
from tests.fuzz.shrink import shrink
from tests.fuzz.writer import write_case
from tests.numerical import Line, clone, derivative, size_of, with_numbers

#: Programs of the test run: the first seeds of the long run (`python -m tests.fuzz`).
PYTHON_SEEDS = range(300)
NUMBA_SEEDS = range(8)
BATCH = 25


def report(outcome: Outcome, backend: str) -> str:
    case, last = shrunk(outcome, backend, seconds=20.0)
    return describe(case, last)


@pytest.mark.parametrize("first", PYTHON_SEEDS[::BATCH])
def test_random_programs(first: int) -> None:
    outcomes = [run_one(seed, "python") for seed in range(first, first + BATCH)]

    failed = [outcome for outcome in outcomes if outcome.kind == "failed"]
    assert not failed, report(failed[0], "python")
    # the long run reports refusals; here they must only not hide other results
    assert sum(1 for outcome in outcomes if outcome.kind == "refused") <= BATCH // 4


@pytest.mark.parametrize("kind", CONSTRUCTS)
def test_random_programs_of_a_kind_of_construct(kind: str) -> None:
    outcomes = [run_one(seed, "python", kinds=(kind,)) for seed in range(3)]

    assert [(outcome.seed, outcome.label) for outcome in outcomes if outcome.kind == "failed"] == []
    assert sum(1 for outcome in outcomes if outcome.kind == "fine") >= 2


@pytest.mark.numba
@pytest.mark.parametrize("seed", NUMBA_SEEDS)
def test_random_programs_compiled(seed: int) -> None:
    outcome = run_one(seed, "numba")

    assert outcome.kind != "failed", f"{describe(write_case(seed), outcome)}"


def test_random_programs_that_change_between_calls() -> None:
    counts: Counter[str] = Counter()
    assert [] == list(differences(list(range(4)), "python", 3, counts))
    assert counts["compared"] > 4


# ------------------------------------------------------------------------------------------------- the fuzzer itself


def by_differences(
    function: Callable[..., float], wrt: tuple[int, ...], backend: str
) -> Callable[..., tuple[float, tuple[Any, ...]]]:
    """A correct stand-in for srcdiff."""

    def value_and_gradient(*arguments: Any) -> tuple[float, tuple[Any, ...]]:
        value = function(*clone(arguments))
        count = size_of(arguments, wrt)
        lines = (Line(function, arguments, wrt, row) for row in np.eye(count))
        numbers = iter([derivative(line, 2.0**-8, 7).value for line in lines])
        return value, tuple(with_numbers(arguments[k], numbers, promote=False) for k in wrt)

    return value_and_gradient


def with_wrong_sine(
    function: Callable[..., float], wrt: tuple[int, ...], backend: str
) -> Callable[..., tuple[float, tuple[Any, ...]]]:
    """A wrong stand-in for srcdiff: the derivative of `math.sin` is that of `math.tanh`."""
    module = dict(function.__globals__)
    tree = ast.parse(_source_of(function))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "sin":
            node.attr = "tanh"
    exec(compile(tree, "<wrong>", "exec"), module)
    right, wrong = by_differences(function, wrt, backend), by_differences(module["program"], wrt, backend)
    return lambda *arguments: (right(*arguments)[0], wrong(*arguments)[1])


def _source_of(function: Callable[..., Any]) -> str:
    return "".join(linecache.getlines(function.__code__.co_filename))


def test_a_seed_gives_the_same_program_and_points_each_time() -> None:
    for seed in range(20):
        first, second = write_case(seed), write_case(seed)

        assert first.source == second.source
        assert repr(first.points) == repr(second.points)
        assert first.wrt == second.wrt


def test_programs_end_and_rarely_raise() -> None:
    raised = [exceptions_of(write_case(seed)) for seed in range(200)]

    assert None not in raised
    assert sum(1 for found in raised if found) <= 10


def test_nearly_all_points_can_be_compared() -> None:
    outcomes = [check(write_case(seed), "python", by_differences) for seed in range(60)]

    assert [outcome for outcome in outcomes if outcome.kind == "failed"] == []
    compared = sum(outcome.compared + outcome.raised for outcome in outcomes)
    skipped = sum(outcome.skipped for outcome in outcomes)
    assert skipped <= 0.1 * (compared + skipped)


def test_programs_contain_the_whole_language() -> None:
    found = coverage(range(1000))

    missing = {name for name in LANGUAGE if not found[name]}
    assert missing == set()


#: Syntax and calls that a few hundred programs must contain.
SYNTAX = """
    Assign AugAssign AnnAssign For While If IfExp Break Continue Return Pass Assert Raise FunctionDef Lambda NamedExpr
    ListComp List Tuple Slice Starred MatMult BoolOp And Or Not Compare FloorDiv Mod Pow JoinedStr keyword
    Nonlocal
"""
CALLED = """
    range len enumerate zip reversed sum min max abs round int float pow print Pair a.copy items.append items.pop
    np.zeros np.ones np.full np.empty np.copy np.zeros_like np.ones_like np.full_like np.empty_like
"""
#: Functions of whole arrays that they must contain too.
WHOLE = """
    np.where np.clip np.maximum np.exp np.abs np.sum np.mean np.max np.prod np.cumsum np.sort np.diff np.roll np.dot
    np.outer np.linalg.solve np.linalg.inv np.concatenate np.stack np.add.at np.take np.argsort np.broadcast_to np.any
    a.reshape a.ravel a.sum parts.append parts.pop
"""
#: Constructs that some of the programs of each kind must contain.
TEXTS_OF_KINDS = {
    "classes": ("class Body", "(Body):", "super()", "@property", "__add__", ".advance(", "for each in "),
    "complex": ("1j", ".conj", "cmath.", "np.fft.fft", "np.linalg.solve", ".real", ".imag", "dtype=complex"),
    "dataclasses": ("@dataclass", "frozen=True", "__post_init__", "class Plant", ".inner.x"),
    "dictionaries": (".items()", ".update(", ".get(", "del ", "['gain'] ="),
    "draws": ("np.random.seed", "default_rng", ".normal(", ".shuffle(", "size="),
    "exceptions": ("try:", "except", "else:", "finally:", "checked(", "raise ValueError"),
    "generators": ("yield", "yield from", "next(", " for part5 in ", "islice"),
    "keywords": ("**options", "*rest", "mixed(", "scale="),
    "parallel": ("prange(",),
    "records": ("dtype=PARTICLE", "['mass']", "['place']", "for each in "),
}
LANGUAGE = [*SYNTAX.split(), *(f"call {name}" for name in (CALLED + WHOLE).split()), "For with else", "While with else"]


@pytest.mark.parametrize(("kind", "texts"), TEXTS_OF_KINDS.items())
def test_programs_contain_their_kind_of_construct(kind: str, texts: tuple[str, ...]) -> None:
    sources = [write_case(seed, kinds=(kind,)).source for seed in range(60)]

    assert [text for text in texts if not any(text in source for source in sources)] == []


def test_programs_of_constructs_end_and_rarely_raise() -> None:
    raised = [exceptions_of(write_case(seed, kinds=tuple(CONSTRUCTS))) for seed in range(100)]

    assert None not in raised
    assert sum(1 for found in raised if found) <= 10


def test_a_planted_wrong_derivative_is_found_and_shrunk() -> None:
    outcomes = (check(write_case(seed), "python", with_wrong_sine) for seed in range(3, 100))
    failed = next(outcome for outcome in outcomes if outcome.kind == "failed")

    smallest, last = shrunk(failed, "python", seconds=90.0, differentiate=with_wrong_sine)

    assert last.label == "wrong gradient"
    assert "sin(" in smallest.source
    program = next(node for node in ast.parse(smallest.source).body if getattr(node, "name", "") == "program")
    assert len(list(ast.walk(program))) < 40
    assert "wrong gradient" in describe(smallest, last)


FINE = "def program(x):\n    return x * x\n"


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (lambda x: (9.0, (6.0,)), ""),
        (lambda x: (9.5, (6.0,)), "wrong value"),
        (lambda x: (9.0, (6.1,)), "wrong gradient"),
        (lambda x: (9.0, (float("nan"),)), "wrong gradient"),
        (lambda x: (float("nan"), (6.0,)), "wrong value"),
        (lambda x: (9.0, (6,)), "wrong type"),
        (lambda x: 1 / 0, "internal error: ZeroDivisionError"),
    ],
)
def test_what_is_wrong_is_named(answer: Callable[[float], Any], label: str) -> None:
    outcome = check(Case(0, FINE, ((3.0,),), (0,)), "python", lambda function, wrt, backend: answer)

    assert outcome.kind == ("failed" if label else "fine")
    assert outcome.label.startswith(label)


def test_a_changed_argument_is_a_failure() -> None:
    source = "def program(a):\n    return a[0] * a[0]\n"

    def writes(a: np.ndarray) -> Any:
        a[0] += 1.0
        return 9.0, (np.array([6.0]),)

    outcome = check(Case(0, source, ((np.array([3.0]),),), (0,)), "python", lambda function, wrt, backend: writes)

    assert outcome.label == "arguments changed"


def test_an_exception_must_be_the_same() -> None:
    source = "def program(x):\n    raise ValueError('no')\n"
    case = Case(0, source, ((3.0,),), (0,))

    def raises(exception: type[Exception]) -> Callable[..., Any]:
        def gradient(x: float) -> Any:
            raise exception("no")

        return lambda function, wrt, backend: gradient

    assert check(case, "python", raises(ValueError)).kind == "fine"
    assert check(case, "python", raises(KeyError)).label.startswith("internal error: KeyError")
    assert check(case, "python", lambda *_, **__: lambda x: (0.0, (0.0,))).label == "no exception"


def test_a_jump_at_the_point_is_skipped() -> None:
    source = "def program(x):\n    return x if x > 0.5 else 0.0\n"

    assert check(Case(0, source, ((0.5,),), (0,)), "python", by_differences).kind == "skipped"


def test_a_kink_at_the_point_is_skipped() -> None:
    source = "def program(x):\n    return abs(x - 0.5)\n"

    assert check(Case(0, source, ((0.5,),), (0,)), "python", by_differences).kind == "skipped"


def test_numbers_that_run_away_are_skipped() -> None:
    source = "import math\ndef program(x):\n    return math.exp(1000.0 * x)\n"

    assert check(Case(0, source, ((3.0,),), (0,)), "python", by_differences).kind == "skipped"


def test_shrinking_keeps_what_matters() -> None:
    source = """
def program(x, n):
    y = x * 2.0
    for i in range(n):
        if i > 1:
            y = y * x
        else:
            y = y + 1.0
    while n > 0:
        n -= 1
        y += x
    return y
"""

    smallest = shrink(Case(0, source, ((3.0, 2),), (0,)), lambda case: "while" in case.source, seconds=10.0)

    assert len(smallest.source.splitlines()) <= 4
    assert "while" in smallest.source


def test_programs_can_be_read_back() -> None:
    with loaded(Case(0, FINE, ((3.0,),), (0,))) as module:
        assert inspect.getsource(module.program) == FINE
