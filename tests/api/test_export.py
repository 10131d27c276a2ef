"""Exported files run without srcdiff, give the same numbers as the derivative, and can be differentiated again."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import math
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import srcdiff
from srcdiff.api.exporting import export
from tests.numerical import clone
from tests.programs import PROGRAMS

SCALE = 2.5
WEIGHTS = np.array([[0.5, -1.0], [np.inf, 2.0]])


class Point(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True)
class Params:
    w: Any
    b: float
    name: str = "a"


class TooLargeError(ValueError):
    """An exception of the user's own."""


def loss(w, x, y, ridge=0.1):
    """Fit a plane."""
    z = x @ w - y
    return np.mean(z**2) + ridge * np.sum(w**2)


def of_structures(params, point, layers, kind):
    total = params["w"][0] * params["b"] if kind == "product" else 0.0
    for layer in layers:
        total += np.sum(layer["w"] ** 2) * point.x
    return total + point.y**2


def of_dataclass(params, x):
    return np.sum(params.w * x) * params.b


def from_outside(x):
    return SCALE * x[0] * x[1] + WEIGHTS[0, 1] * x[0]


def raises_and_prints(x, limit):
    print(f"{x:.2f} of", limit)
    if x > 10.0:
        raise TooLargeError(f"{x} is more than 10")
    if x > limit:
        raise ValueError(f"{x:.1f} is more than {limit}")
    return math.lgamma(x)


def of_lists(xs, n):
    found = [xs[0] * k for k in range(n)]
    pairs = [(k, Point(xs[1], found[k])) for k in range(n)]
    return found[-1] * xs[1], (found, pairs, {"a": xs[0]})


def factorial(x):
    return x * factorial(x - 1.0) if x > 1.0 else x


def fills(out, x):
    for i in range(len(out)):
        out[i] = x * out[i] + i


def several(x, y):
    return x * np.sum(y), y * 2.0


X = np.arange(6.0).reshape(3, 2) / 3.0
W = np.array([0.5, -0.25])
Y = np.array([1.0, 2.0, -1.0])
STRUCTURES = ({"w": W, "b": 2.0}, Point(1.0, 2.0), [{"w": W}, {"w": X[0]}])

#        what is exported                                               its arguments there         the same for `g`
CASES: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...] | None]] = {
    "gradient": (srcdiff.grad(loss), (W, X, Y), None),
    "value and gradients": (srcdiff.value_and_grad(loss, wrt=("w", "ridge")), (W, X, Y, 0.3), None),
    "Hessian times vector": (srcdiff.hvp(loss), (W, X, Y, 0.1, np.array([1.0, 2.0])), None),
    "second gradient": (srcdiff.grad(srcdiff.grad(factorial)), (3.5,), None),
    "structures": (
        srcdiff.grad(of_structures, wrt=("params", "point", "layers")),
        STRUCTURES,
        (*STRUCTURES, "product"),
    ),
    "outside": (srcdiff.value_and_grad(from_outside), (W,), None),
    "recursion": (srcdiff.value_and_grad(factorial), (4.5,), None),
    "lists": (srcdiff.value_and_grad(of_lists, has_aux=True), ([2.0, 3.0], 3), None),
    "auxiliary": (srcdiff.grad(of_lists, has_aux=True), ([2.0, 3.0], 3), None),
    "special function": (srcdiff.grad(raises_and_prints), (4.5, 8), None),
}


def exported(g: Any, file: Path, *arguments: Any, **options: Any) -> ModuleType:
    """The file, imported."""
    export(g, file, *arguments, **options)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def function_of(module: ModuleType) -> Callable[..., Any]:
    """The function for users: the last one that the file defines."""
    assert module.__file__ is not None
    defined = [line for line in Path(module.__file__).read_text().splitlines() if line.startswith("def ")]
    return getattr(module, defined[-1].removeprefix("def ").partition("(")[0])


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        assert isinstance(actual, tuple) == isinstance(expected, tuple)
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        assert_same(list(actual.values()), list(expected.values()))
    elif dataclasses.is_dataclass(expected):
        for f in dataclasses.fields(expected):
            assert_same(getattr(actual, f.name), getattr(expected, f.name))
    elif expected is None or isinstance(expected, str):
        assert actual == expected
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_plain_file_equals_the_derivative(name, tmp_path, capsys):
    g, given, all_given = CASES[name]
    arguments = clone(all_given or given)
    module = exported(
        g, tmp_path / "exported_plain.py", *(arguments[:-1] if "Hessian" in name else arguments), plain=True
    )
    printed = capsys.readouterr().out
    with np.errstate(all="ignore"):
        assert_same(function_of(module)(*clone(given)), on_python(g)(*arguments))
    assert printed == ""
    assert "numba" not in vars(module)


def on_python(g: Any) -> Any:
    """The same derivative, run by Python."""
    if isinstance(g, srcdiff.Derivative):
        return type(g)(
            g.of, g.mode, g.wrt[0] if g.single else g.wrt, with_value=g.with_value, has_aux=g.has_aux, backend="python"
        )
    return srcdiff.hvp(g.gradient.of, backend="python")


@pytest.mark.parametrize("program", PROGRAMS[::9], ids=lambda program: program.name)
def test_programs_of_the_corpus_can_be_exported(program, tmp_path, capsys):
    g = srcdiff.value_and_grad(program.function, wrt=program.wrt, backend="python")
    if not program.at:
        pytest.skip("it only raises")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a zero gradient gives a warning
        expected = g(*clone(program.at[0]))
        module = exported(g, tmp_path / "exported_program.py", plain=True)
        bound = inspect.signature(function_of(module)).parameters
        given = [a for n, a in zip(g.names, clone(program.at[0]), strict=False) if n in bound]
        assert_same(function_of(module)(*given), expected)


RUN = """
import pickle, sys
sys.modules["srcdiff"] = None  # it cannot be imported
import importlib
results = {}
for name, (file, function, arguments) in pickle.load(open("given.pickle", "rb")).items():
    results[name] = getattr(importlib.import_module(file), function)(*arguments)
pickle.dump(results, open("found.pickle", "wb"))
"""


@pytest.mark.numba
def test_compiled_files_run_without_srcdiff(tmp_path):
    given = {}
    for k, name in enumerate(["gradient", "Hessian times vector", "structures", "special function"]):
        g, arguments, all_given = CASES[name]
        asked = (all_given or arguments)[: -1 if "Hessian" in name else None]
        module = exported(g, tmp_path / f"exported_{k}.py", *asked)
        plain = tuple(tuple(a) if isinstance(a, Point) else a for a in arguments)  # its class is in this file
        given[name] = (f"exported_{k}", function_of(module).__name__, plain)
    (tmp_path / "given.pickle").write_bytes(pickle.dumps(given))
    finished = subprocess.run(
        [sys.executable, "-c", RUN], cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True, timeout=600
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "4.50 of 8\n"
    sys.path.insert(0, str(tmp_path))
    try:
        found = pickle.loads((tmp_path / "found.pickle").read_bytes())
    finally:
        sys.path.remove(str(tmp_path))
    for name, result in found.items():
        g, arguments, all_given = CASES[name]
        assert_same(result, on_python(g)(*clone(all_given or arguments)))


def test_exceptions_have_their_numbers_in_them(tmp_path, capsys):
    module = exported(srcdiff.grad(raises_and_prints), tmp_path / "exported_raises.py", 4.5, 8, plain=True)
    with pytest.raises(ValueError, match=r"^9\.0 is more than 8$"):
        module.raises_and_prints_grad(9.0, 8)
    with pytest.raises(module.TooLargeError, match=r"^11\.5 is more than 10$"):
        module.raises_and_prints_grad(11.5, 8)
    assert capsys.readouterr().out == "9.00 of 8\n11.50 of 8\n"


def with_parts(x):
    if x > 1.0:
        raise ValueError(f"{x:.1f}", 3, f"{2.0 * x}")
    return x * x


def test_exceptions_have_several_arguments(tmp_path):
    module = exported(srcdiff.grad(with_parts), tmp_path / "exported_parts.py", 0.5, plain=True)
    with pytest.raises(ValueError, match=r"1\.5") as caught:
        module.with_parts_grad(1.5)
    assert caught.value.args == ("1.5", 3, "3.0")


def test_dataclasses_are_defined_in_the_file(tmp_path):
    module = exported(srcdiff.grad(of_dataclass), tmp_path / "exported_class.py", Params(W, 2.0), W, plain=True)
    found = module.of_dataclass_grad(Params(W, 2.0), W)
    assert type(found) is module.Params
    assert_same(found, srcdiff.grad(of_dataclass, backend="python")(Params(W, 2.0), W))


@pytest.mark.parametrize("mode", ["primal", "grad", "value_and_grad", "jvp", "vjp", "hvp"])
def test_every_mode_can_be_exported_by_its_name(mode, tmp_path):
    module = exported(loss, tmp_path / f"exported_{mode}.py", W, X, Y, 0.1, mode=mode, wrt="w", plain=True)
    v = np.array([1.0, 3.0])
    gradient = srcdiff.grad(loss, backend="python")(W, X, Y)
    expected: dict[str, Any] = {
        "primal": loss(W, X, Y),
        "grad": gradient,
        "value_and_grad": (loss(W, X, Y), gradient),
        "jvp": (loss(W, X, Y), gradient @ v),
        "vjp": 3.0 * gradient,
        "hvp": srcdiff.hvp(loss, backend="python")(W, X, Y, v),
    }
    more: dict[str, tuple[Any, ...]] = {"jvp": (0.1, v), "vjp": (0.1, 3.0), "hvp": (0.1, v)}
    assert_same(function_of(module)(W, X, Y, *more.get(mode, ())), expected[mode])


def test_functions_of_several_results_and_those_that_write_can_be_exported(tmp_path):
    pullback = exported(several, tmp_path / "exported_several.py", 2.0, W, mode="vjp", wrt=("x", "y"), plain=True)
    _, back = srcdiff.vjp(several, 2.0, W, backend="python")
    assert_same(function_of(pullback)(2.0, W, (1.5, W)), back((1.5, W)))
    tangent = exported(fills, tmp_path / "exported_fills.py", W, 3.0, mode="jvp", wrt="x", plain=True)
    assert_same(function_of(tangent)(W, 3.0, 1.0), ({"out": [1.5, 0.25]}, {"out": W}))
    primal = exported(fills, tmp_path / "exported_primal.py", W, 3.0, mode="primal", plain=True)
    out = W.copy()
    function_of(primal)(out, 3.0)
    assert_same(list(out), [1.5, 0.25])
    with pytest.raises(TypeError, match="it is written into"):
        function_of(primal)([1.0, 2.0], 3.0)


def test_file_is_the_same_byte_for_byte_and_says_where_it_comes_from(tmp_path):
    first, second = (export(srcdiff.grad(loss), None, W, X, Y) for _ in range(2))
    assert first == second
    assert export(srcdiff.grad(loss), tmp_path / "a.py", "float64[:]", "float64[:, :]", "float64[:]", float) == first
    assert (tmp_path / "a.py").read_text() == first
    head = first.split('"""')[1]
    assert f"srcdiff {srcdiff.__version__} from the function `loss` of test_export.py" in head
    assert "w: float64[:], x: float64[:, :], y: float64[:], ridge: float64" in head
    assert "fastmath={'arcp', 'contract', 'nsz', 'reassoc'}" in head
    assert str(Path(__file__).parent) not in first


def test_exported_function_can_be_differentiated_again(tmp_path):
    module = exported(srcdiff.grad(loss), tmp_path / "exported_again.py", W, X, Y)
    hessian = srcdiff.jacobian(module.loss_grad, backend="python")(W, X, Y)
    assert_same(hessian, srcdiff.hessian(loss, backend="python")(W, X, Y))
    again = exported(module.loss_grad, tmp_path / "exported_tangent.py", W, X, Y, 0.1, mode="jvp", plain=True)
    assert_same(function_of(again)(W, X, Y, 0.1, np.array([1.0, 0.0]))[1], hessian[:, 0])


def test_arguments_of_other_types_are_converted_where_nothing_is_lost(tmp_path):
    gradient = function_of(exported(srcdiff.grad(loss), tmp_path / "exported_types.py", W, X, Y, plain=True))
    assert_same(gradient([1, 2], X.tolist(), Y), gradient(np.array([1.0, 2.0]), X, Y))
    assert_same(gradient(W, np.asfortranarray(X), Y), gradient(W, X, Y))
    with pytest.raises(TypeError, match="Cannot cast"):
        gradient(W * 1j, X, Y)
    with pytest.raises(TypeError, match="an array of 2 axes is given, the code was written for 1"):
        gradient(X, X, Y)


def test_axes_of_length_one_stretch_where_they_do_in_the_example(tmp_path):
    def weighted(a, b):
        return np.sum(a * b)

    gradient = function_of(
        exported(srcdiff.grad(weighted), tmp_path / "exported_ones.py", np.ones((3, 1)), np.ones((3, 2)), plain=True)
    )
    assert_same(gradient(np.ones((3, 1)), X), X.sum(axis=1, keepdims=True))
    assert_same(gradient(np.ones((3, 2)), X), X)


def test_structures_that_differ_from_the_example_are_refused(tmp_path):
    module = exported(
        srcdiff.grad(of_structures), tmp_path / "exported_structures.py", *STRUCTURES, "product", plain=True
    )
    with pytest.raises(TypeError, match="`params` has to have the keys 'w', 'b'"):
        module.of_structures_grad({"w": W, "b": 1.0, "c": 2.0}, *STRUCTURES[1:])
    with pytest.raises(TypeError, match="`layers` has to have 2 elements"):
        module.of_structures_grad(*STRUCTURES[:2], STRUCTURES[2][:1])


def test_arrays_that_share_memory_are_refused_where_one_is_written(tmp_path):
    def into(a, b):
        a[0] = 2.0 * b[1]
        return a[0] * b[0]

    module = exported(srcdiff.grad(into, wrt="b"), tmp_path / "exported_into.py", W, W.copy(), plain=True)
    with pytest.raises(ValueError, match="`a` and `b` share memory"):
        module.into_grad(W, W)


def test_what_cannot_be_exported_is_refused(monkeypatch):
    with pytest.raises(TypeError, match="export `grad` or `hvp`"):
        export(srcdiff.jacobian(several), None, 2.0, W)
    with pytest.raises(TypeError, match="export `grad` or `hvp`"):
        export(srcdiff.batched(srcdiff.grad(loss)), None, W, X, Y)
    monkeypatch.setitem(globals(), "WEIGHTS", np.ones((200, 200)))
    with pytest.raises(TypeError, match="`WEIGHTS` from outside of the function is an array of 40000 elements"):
        export(srcdiff.grad(from_outside), None, W)
    with pytest.raises(ValueError, match="'hvp' or 'primal', not 'gradient'"):
        export(loss, None, W, X, Y, mode="gradient")


def test_class_without_source_is_refused():
    made = type("MadeError", (ValueError,), {})

    def raising(x):
        if x > 1.0:
            raise made
        return x * x

    with pytest.raises(TypeError, match="`MadeError` has no source text"):
        export(srcdiff.grad(raising), None, 2.0)


class Bounds(NamedTuple):
    low: float
    high: float


def test_defaults_are_kept() -> None:
    def scaled(
        x,
        weights=(2.0, 3.0),
        nested=((1, True), "a", None),
        bounds=Bounds(-math.inf, math.inf),  # noqa: B008 - it is the default
        items=[1.0, 2.0],  # noqa: B006 - nobody changes it
        options={"n": 3, "rate": 0.5},  # noqa: B006
        shift=np.array([1.0, -1.0]),  # noqa: B008
        *,
        factor=np.float32(2.0),  # noqa: B008
    ):
        low = min(max(x, bounds.low), bounds.high)
        total = low * weights[0] * weights[1] * nested[0][0] + items[1] * x * options["n"] * options["rate"]
        return total + x * shift[0] * factor

    namespace: dict[str, Any] = {}
    exec(export(srcdiff.grad(scaled), None, 2.0, plain=True), namespace)

    assert namespace["scaled_grad"](2.0) == srcdiff.grad(scaled, backend="python")(2.0) == 6.0 + 3.0 + 2.0
    assert namespace["scaled_grad"](2.0, (1.0, 1.0), factor=1.0) == 1.0 + 3.0 + 1.0


def test_a_default_that_cannot_be_written_is_an_argument_that_is_needed() -> None:
    large = np.ones(1000)

    def function(scale=2.0, weights=large, x=3.0):
        return scale * np.sum(weights) * x

    text = export(srcdiff.grad(function, "x"), None, plain=True)

    assert "def function_grad(scale, weights, x=3.0):" in text


def test_constants_in_tuples_are_those_that_it_was_written_for() -> None:
    def function(x, how=("cube", 2.0), also={"kind": "sum", "n": 3.0}):  # noqa: B006 - nobody changes it
        return x**3 * how[1] if how[0] == "cube" and also["kind"] == "sum" else x * how[1] * also["n"]

    namespace: dict[str, Any] = {}
    exec(export(srcdiff.grad(function), None, 2.0, plain=True), namespace)

    assert namespace["function_grad"](2.0, ("cube", 1.0)) == 12.0
    with pytest.raises(ValueError, match=r"`how\[0\]` has to be 'cube'"):
        namespace["function_grad"](2.0, ("line", 1.0))
    with pytest.raises(ValueError, match=r"`also\['kind'\]` has to be 'sum'"):
        namespace["function_grad"](2.0, ("cube", 1.0), {"kind": "product", "n": 3.0})
