"""The inputs that reach the result, their lines, and the operations that cut others off. Gradients must agree."""

import math
import warnings

import numpy as np
import pytest

import srcdiff

ARRAY = np.array([0.3, 1.2, -0.7])
OUTSIDE = np.array([1.0, 2.0, 3.0])


def cast(x, y):
    n = int(x)
    return n * y


def rounded(x, y):
    return y * round(x)


def floored(x, y):
    return y * math.floor(x)


def divided(x, y):
    return y * (x // 2.0)


def sign(x, y):
    return y * np.sign(x)


def sign_copied(x, y):
    return math.copysign(y, x)


def compared(x, y):
    if x > 1.0:
        return y
    return 2.0 * y


def stopped(x, y):
    z = srcdiff.stop_gradient(x * x)
    return z * y


def element_of_integers(x, y):
    a = np.zeros(2, np.int64)
    a[0] = int(x)
    return y * a[0]


def argsorted(x, y):
    order = np.argsort(x)
    return y[order[0]] * 2.0


def overwritten(x, y):
    z = x * 2.0
    z = y * y
    return z


def overwritten_in_a_loop(x, y):
    z = 0.0
    for i in range(3):
        z = x * i
    z = y
    return z


def overwritten_array(x, y):
    z = x * 2.0
    z = y * 3.0
    return np.sum(z)


def overwritten_element(x, y):
    a = np.zeros(2)
    a[0] = x
    a[0] = y
    return a[0] * y


def overwritten_argument(x, y):
    x = y
    return x * y


def captured(x):
    return np.sum(OUTSIDE * 2.0)


def other_branch(x, y, mode):
    if mode == "full":
        y = y * x
    return y


def uses_the_second(first, second):
    return second * second


def helper(x, y):
    return uses_the_second(x, y)


def snap(a):
    return math.floor(a) * 2.0


def inactive_helper(x, y):
    s = snap(x * 3.0)
    return s * y


def shape(x, y):
    return y * len(x)


def unread(x, y):
    z = x * 2.0
    z += 1.0
    return y


def unused(x, y):
    return y


# function              arguments                 kind of cut      the line
CUTS = [
    (cast, (1.5, 2.0), "integer", "n = int(x)"),
    (rounded, (1.5, 2.0), "rounding", "return y * round(x)"),
    (floored, (1.5, 2.0), "rounding", "return y * math.floor(x)"),
    (divided, (1.5, 2.0), "rounding", "return y * (x // 2.0)"),
    (sign, (1.5, 2.0), "sign", "return y * np.sign(x)"),
    (sign_copied, (1.5, 2.0), "sign", "return math.copysign(y, x)"),
    (compared, (1.5, 2.0), "comparison", "if x > 1.0:"),
    (stopped, (1.5, 2.0), "stop_gradient", "z = srcdiff.stop_gradient(x * x)"),
    (element_of_integers, (1.5, 2.0), "integer", "a[0] = int(x)"),
    (argsorted, (ARRAY, ARRAY), "no derivative", "order = np.argsort(x)"),
    (overwritten, (1.5, 2.0), "overwritten", "z = x * 2.0"),
    (overwritten_in_a_loop, (1.5, 2.0), "overwritten", "z = x * i"),
    (overwritten_array, (ARRAY, ARRAY), "overwritten", "z = x * 2.0"),
    (overwritten_element, (1.5, 2.0), "overwritten", "a[0] = x"),
    (overwritten_argument, (1.5, 2.0), "overwritten", "x = y"),
    (captured, (1.5,), "captured", "return np.sum(OUTSIDE * 2.0)"),
    (other_branch, (1.5, 2.0, "half"), "branch", 'if mode == "full":'),
    (helper, (1.5, 2.0), "helper", "return uses_the_second(x, y)"),
    (inactive_helper, (1.5, 2.0), "rounding", "return math.floor(a) * 2.0"),
    (shape, (ARRAY, 2.0), "shape", "return y * len(x)"),
    (unread, (1.5, 2.0), "unread", "z = x * 2.0"),
]


@pytest.mark.parametrize(("function", "arguments", "kind", "line"), CUTS, ids=lambda x: getattr(x, "__name__", ""))
def test_what_cuts_an_input_off_is_named_with_its_line(function, arguments, kind, line):
    found = srcdiff.explain(function, *arguments)["x"]

    assert (found.reaches, found.path) == (False, ())
    assert (kind, line) in [(c.kind, c.span and c.span.text.strip()) for c in found.cuts]


@pytest.mark.parametrize(("function", "arguments", "kind", "line"), CUTS, ids=lambda x: getattr(x, "__name__", ""))
def test_the_gradient_of_a_cut_input_is_zero_and_one_warning_names_the_line(function, arguments, kind, line):
    derivative = srcdiff.grad(function, wrt="x", backend="python")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [derivative(*arguments), derivative(*arguments)]

    assert np.all(np.array(found) == 0.0)
    (warning,) = caught
    assert warning.category is srcdiff.ZeroGradientWarning
    assert f"`{line}`" in str(warning.message)
    assert warning.filename == __file__


def test_an_input_that_is_not_used_has_no_line():
    (cut,) = srcdiff.explain(unused, 1.5, 2.0)["x"].cuts
    assert (cut.kind, cut.text, cut.span) == ("unused", "it is not used", None)


def test_the_warning_can_be_silenced():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", srcdiff.ZeroGradientWarning)
        assert srcdiff.grad(cast, backend="python")(1.5, 2.0) == 0.0


def test_a_cut_in_a_helper_names_the_helper():
    (cut,) = srcdiff.explain(inactive_helper, 1.5, 2.0)["x"].cuts
    assert cut.elsewhere == "snap"
    assert str(cut).endswith("of `snap`, `return math.floor(a) * 2.0`")


def lines(found):
    return [s.text.strip() for s in found.path]


def huber(w, x):
    total = 0.0
    for i in range(len(x)):
        r = w[0] * x[i] + w[1]
        if abs(r) < 1.0:
            total += 0.5 * r * r
        else:
            total += abs(r) - 0.5
    return total


def test_the_path_of_an_input_has_the_lines_that_carry_it_on():
    found = srcdiff.explain(huber, np.ones(2), ARRAY)["w"]

    assert found.reaches
    assert lines(found) == [
        "r = w[0] * x[i] + w[1]",
        "total += 0.5 * r * r",
        "total += abs(r) - 0.5",
        "return total",
    ]
    assert [(c.kind, c.span.text.strip()) for c in found.cuts] == [("comparison", "if abs(r) < 1.0:")]


def through_a_helper(x, y):
    a = uses_the_second(x, y)
    return a + x


def test_the_path_goes_through_helpers():
    found = srcdiff.explain(through_a_helper, 1.5, 2.0)
    assert lines(found["x"]) == ["return a + x"]
    assert lines(found["y"]) == ["return second * second", "a = uses_the_second(x, y)", "return a + x"]


def written_elsewhere(x, y):
    a = np.zeros(2)
    a[0] = x
    t = a[0] * 2.0
    a[0] = y
    a[1] = x * y
    return t + a[0]


def test_a_read_before_an_overwrite_is_on_the_path():
    found = srcdiff.explain(written_elsewhere, 1.5, 2.0)["x"]
    assert found.reaches
    assert {"a[0] = x", "t = a[0] * 2.0", "return t + a[0]"} <= set(lines(found))
    assert not [c for c in found.cuts if c.kind == "overwritten"]


def one_side(x, flag):
    if flag > 0.0:
        total = x * x
    else:
        total = flag
    return total


def test_a_branch_that_does_not_read_an_input_is_named():
    (cut,) = srcdiff.explain(one_side, 1.5, 1.0)["x"].cuts
    assert (cut.kind, cut.span.text.strip()) == ("branch", "if flag > 0.0:")
    assert "is not met" in cut.text


def two_ways(x, y):
    z = x * 3.0
    z = x * y
    return z


def test_an_input_that_reaches_the_result_may_be_overwritten_on_another_way():
    found = srcdiff.explain(two_ways, 1.5, 2.0)["x"]
    assert found.reaches
    assert lines(found) == ["z = x * y", "return z"]
    assert [(c.kind, c.span.text.strip()) for c in found.cuts] == [("overwritten", "z = x * 3.0")]
