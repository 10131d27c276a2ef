"""`explain` compared with the gradient itself: memory, recomputation and fused loops, as text, HTML and data."""

import json
import subprocess
import sys

import numpy as np
import pytest

import srcdiff


def logistic(x, rate, steps):
    for t in range(steps):
        for i in range(len(x)):
            x[i] = rate * x[i] * (1.0 - x[i])
    return np.sum(x)


def cells(grid, weights):
    total = 0.0
    for i in range(1, grid.shape[0] - 1):
        for j in range(grid.shape[1]):
            s = np.sin(grid[i, j]) * weights[j]
            total += np.exp(s) * s
        total = np.sqrt(total)
    return total


def until_small(x):
    while x > 1e-9:
        x = np.sin(x) * 0.99
    return x


def recursive(x, n):
    if n == 0:
        return x
    for _ in range(3):
        x = np.sin(x)
    return recursive(x * x, n - 1)


def curved(x, n):
    return x if n == 0 else np.sin(curved(x, n - 1))


POINT = np.linspace(0.1, 0.9, 50)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (logistic, (POINT, 3.0, 40)),
        (logistic, (POINT, 3.0, 0)),
        (logistic, (POINT[:0], 3.0, 7)),
        (cells, (np.ones((9, 5)), np.ones(5))),
        (cells, (np.ones((1, 5)), np.ones(5))),
        (until_small, (0.5,)),
    ],
)
def test_sizes_are_those_that_the_gradient_takes(function, arguments):
    derivative = srcdiff.grad(function, backend="python")
    explanation = srcdiff.explain(derivative, *arguments)

    assert explanation.nbytes == derivative.report(*arguments).nbytes


def test_size_is_a_formula_in_the_arguments():
    (kept,) = srcdiff.explain(logistic, POINT, 3.0, 40).kept
    assert (kept.variable, kept.formula, kept.nbytes) == ("x", "8 * steps * len(x)", 8 * 40 * 50)
    assert kept.span.text.strip() == "x[i] = rate * x[i] * (1.0 - x[i])"


def test_without_an_example_there_is_a_formula_and_no_size():
    explanation = srcdiff.explain(logistic, "float64[:]", float, int)
    assert [(k.formula, k.nbytes) for k in explanation.kept] == [("8 * steps * len(x)", None)]
    assert explanation.nbytes is None
    assert explanation.assumed == {}


def test_without_arguments_types_are_assumed_and_said():
    explanation = srcdiff.explain(logistic)
    assert explanation.assumed == {"x": "how it is used", "rate": "how it is used", "steps": "how it is used"}
    assert "assumed x: float64[:], from how it is used" in str(explanation)


def test_sizes_known_only_at_run_time_are_reported_as_such():
    assert [k.formula for k in srcdiff.explain(until_small).kept] == ["8 * iterations"]
    assert [k.formula for k in srcdiff.explain(recursive, "float64", "int64").kept] == ["8 * values"]
    assert [k.formula for k in srcdiff.explain(curved, "float64", "int64").kept] == ["8 * values"]


def distances(a, b):
    d = a - b
    scaled = d * 2.0
    return np.sum(scaled * scaled)


def test_fused_loops_are_listed_with_their_lines():
    explanation = srcdiff.explain(distances, POINT, POINT)
    assert sum(s.before - s.after for s in explanation.shared) > 0
    told = {line.text.strip() for shared in explanation.shared for line in shared.lines}
    assert "return np.sum(scaled * scaled)" in told


def carried(x, n):
    for i in range(n):
        step = x * 0.5 - i
        x = step * x * 0.1
    return x


def test_recomputed_values_are_computed_twice_in_the_source():
    derivative = srcdiff.value_and_grad(carried, backend="python").compile(0.3, 4)
    explanation = srcdiff.explain(derivative, 0.3, 4)

    twice = [r.variable for r in explanation.repeated]
    assert twice == [v for v in ("step",) if derivative.source.count(f"{v} = ") == 2]
    assert twice == ["step"]


def test_inputs_without_floats_have_no_gradient():
    assert srcdiff.explain(logistic, POINT, 3.0, 40)["steps"].reaches is None


def test_wrt_chooses_the_inputs():
    explanation = srcdiff.explain(logistic, POINT, 3.0, 40, wrt="rate")
    assert [i.name for i in explanation.inputs] == ["rate"]
    assert explanation.wrt == ("rate",)


def test_a_derivative_is_explained_for_the_arguments_of_its_latest_call():
    derivative = srcdiff.grad(logistic, wrt="rate", backend="python")
    derivative(POINT.astype(np.float32), 3.0, 2)

    explanation = srcdiff.explain(derivative)

    assert explanation.wrt == ("rate",)
    assert explanation["x"].type == "float32[:]"
    with pytest.raises(ValueError, match="its own `wrt`"):
        srcdiff.explain(derivative, wrt="x")


def both(x, y):
    return x * y, int(x)


def whole(x):
    return int(x)


def test_functions_of_any_result_are_explained():
    explanation = srcdiff.explain(both, 1.5, 2.0)
    assert explanation["x"].reaches
    assert not srcdiff.explain(whole, 1.5)["x"].reaches


def test_forward_mode_keeps_nothing():
    from srcdiff.api.derivatives import Derivative

    assert srcdiff.explain(Derivative(logistic, "forward", "x"), POINT, 3.0, 4).kept == ()


def test_what_cannot_be_differentiated_is_refused():
    with pytest.raises(srcdiff.DifferentiationError):
        srcdiff.explain(lambda x: input(x), 1.0)


OFFSET = np.ones(50)


def with_constant(x):
    return np.sum(x * OFFSET)


def test_what_is_read_from_outside_is_named():
    assert [c.name for c in srcdiff.explain(with_constant, POINT).constants] == ["OFFSET"]


def test_text_shows_lines_and_cuts():
    text = srcdiff.explain(until_small, 0.5).text()
    first = until_small.__code__.co_firstlineno
    assert text.splitlines()[2:5] == [
        "x: float64 reaches the result",
        f"    {first + 1} |     while x > 1e-9:  <- cut by a comparison",
        f"    {first + 2} |         x = np.sin(x) * 0.99",
    ]
    assert "\033[" not in text
    assert "\033[" in srcdiff.explain(until_small, "float64").text(colour=True)


def test_colour_is_for_terminals(monkeypatch):
    explanation = srcdiff.explain(with_constant, POINT)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\033[" in str(explanation)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033[" not in str(explanation)


def test_html_escapes_the_program():
    html = srcdiff.explain(until_small, "float64")._repr_html_()
    assert "while x &gt; 1e-9:" in html
    assert html.count("<div") == html.count("</div>")


def test_data_goes_through_json():
    explanation = srcdiff.explain(logistic, POINT, 3.0, 40)
    data = json.loads(json.dumps(explanation.data()))
    assert [i["reaches"] for i in data["inputs"]] == [True, True, None]
    assert data["kept"][0]["nbytes"] == 8 * 40 * 50


def test_importing_srcdiff_imports_neither_the_compiler_nor_the_inspection():
    lazy = "srcdiff.pipeline", "srcdiff.frontend.read", "srcdiff.inspect.sides", "srcdiff.inspect.explanation"
    program = f"import sys, srcdiff; print([m for m in {lazy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def halves(x):
    total = 1.0
    for i in range(len(x) // 2):
        total = np.sin(total * x[i])
    return total


def test_the_formula_is_an_expression_in_python():
    (kept,) = srcdiff.explain(halves, POINT[:7]).kept
    assert (kept.formula, eval(kept.formula, {"x": POINT[:7]})) == ("8 * (len(x) // 2)", kept.nbytes)


def with_parameters(params, x, steps):
    h = x
    for _ in range(steps):
        h = np.tanh(params["w"] * h + params["b"])
    return np.sum(h) + int(params["shift"])


def test_parts_of_a_structure_that_do_not_reach_the_result_are_named():
    params = {"w": np.ones(50), "b": 0.5, "shift": 0.5, "unused": np.ones(3)}
    explanation = srcdiff.explain(with_parameters, params, POINT, 3)
    found = explanation["params"]

    assert found.reaches
    assert [line.text.strip() for line in found.path] == [
        'h = np.tanh(params["w"] * h + params["b"])',
        'return np.sum(h) + int(params["shift"])',
    ]
    assert [(p.name, p.cuts[0].kind) for p in found.cut_off] == [
        ("params['shift']", "integer"),
        ("params['unused']", "unused"),
    ]
    assert {k.formula for k in explanation.kept} == {"8 * steps * len(x)"}  # as long as `w`, which is checked before
    assert all(k.nbytes == 8 * 3 * 50 for k in explanation.kept)
    assert "params['unused']: float64[:] does not reach the result: it is not used" in explanation.text()


def test_left_column_is_as_wide_as_the_lines_that_it_shows() -> None:
    def half(x: float) -> float:
        """A docstring that is much longer than the lines of code below it. No generated line refers to it."""
        return 0.5 * x

    lines = str(srcdiff.show(srcdiff.grad(half), 1.0)).splitlines()

    assert max(line.index(" | ") for line in lines if " | " in line) < 40


def interference(x, n):
    amplitude = 0j
    for i in range(n):
        amplitude += np.exp(1j * x[i])
    size = abs(amplitude)
    return size + np.sum(x * (2 + 1j)).imag


def test_complex_variables_are_named_with_their_lines():
    found = srcdiff.explain(interference, POINT, 4)
    variables = [(c.variable, c.type, c.span.text.strip()) for c in found.complex_values]
    assert ("amplitude", "complex128", "amplitude += np.exp(1j * x[i])") in variables
    assert variables[-1] == ("", "complex128", "return size + np.sum(x * (2 + 1j)).imag")
    assert not any("size = " in text for _, _, text in variables)
    assert "complex numbers\n    amplitude" in str(found)
    assert not srcdiff.explain(logistic, POINT, 3.0, 4).complex_values
