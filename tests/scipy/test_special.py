"""The functions of `scipy.special` against mpmath, and inside differentiated functions."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import special, stats

import srcdiff
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.library import special_functions
from tests.scipy.special_table import MEASURED, ROWS, errors, names_covered


@pytest.mark.parametrize("row", ROWS, ids=[row.primitive for row in ROWS])
def test_values_and_derivatives_agree_with_mpmath(row):
    with np.errstate(all="ignore"):
        assert [] == [e for e in errors(row) if not e.size <= row.tolerance]


def test_the_errors_on_the_page_were_measured_for_every_row_and_are_below_the_bounds():
    known = json.loads(MEASURED.read_text(encoding="utf-8"))
    assert [row.primitive for row in ROWS] == list(known)
    assert [row.primitive for row in ROWS if not max(known[row.primitive].values()) <= row.tolerance] == []


WITHOUT_REFERENCE = {"gammasgn"}  # a sign


def test_every_function_is_compared():
    known = {name for row in PRIMITIVES.values() for name in row.scipy}
    assert known - set(names_covered()) - WITHOUT_REFERENCE == set()


# -- every elementwise function, differentiated in a program ---------------------------------------------------------

UFUNCS = [(row, PRIMITIVES[row.primitive].scipy[0]) for row in ROWS if PRIMITIVES[row.primitive].scipy]


def program(name, row):
    """A function of arrays that calls the ufunc with arguments that have derivatives, and constants for the others."""
    from srcdiff.rules import RULES

    rule = RULES[row.primitive]
    active = [p for p in rule.parameters if p in rule.partials]
    called = ", ".join(p if p in active else f"constant_{p}" for p in rule.parameters)
    constants = ", ".join(f"constant_{p}" for p in rule.parameters if p not in active)
    parameters = ", ".join([*active, *([constants] if constants else [])])
    return active, parameters, f"np.sum(special.{name}({called}) * weights)"


def build(tmp_path, name, row):
    active, parameters, body = program(name, row)
    file = tmp_path / f"with_{name}.py"
    lines = ["import numpy as np", "from scipy import special", "", ""]
    file.write_text("\n".join([*lines, f"def f({parameters}, weights):", f"    return {body}", ""]))
    namespace = {"__name__": f"with_{name}", "__file__": str(file)}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    return active, namespace["f"]


def given(row, active, order):
    from srcdiff.rules import RULES

    rule = RULES[row.primitive]
    some = row.points[len(row.points) // 2 : len(row.points) // 2 + 2]
    columns = dict(zip(rule.parameters, np.array(some, dtype=float).T.copy(), strict=True))
    names = [*active, *(p for p in rule.parameters if p not in active)]
    return [columns[n] for n in names], np.array([0.7, -1.3])[: len(some)]


@pytest.mark.parametrize(("row", "name"), UFUNCS, ids=[name for _, name in UFUNCS])
def test_gradient_of_a_program(row, name, tmp_path):
    active, f = build(tmp_path, name, row)
    arguments, weights = given(row, active, 1)
    with np.errstate(all="ignore"):
        expected = f(*arguments, weights)
    value, gradient = srcdiff.value_and_grad(f, wrt=tuple(range(len(active))), backend="python")(*arguments, weights)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    srcdiff.check(f, *arguments, weights, wrt=tuple(range(len(active))), backend="python")
    assert all(np.all(np.isfinite(g)) for g in gradient)


def all_at_once(x, u, p):
    total = special.erf(x) + special.erfc(x) + special.erfcx(x) + special.ndtr(x) + special.log_ndtr(-x)
    total += special.erfinv(u) + special.ndtri(u) + special.logit(u) * special.expit(x) + special.log_expit(x)
    total += special.gamma(p) + special.gammaln(p) + special.psi(p) + special.beta(p, x) + special.betaln(p, 2.0)
    total += special.gammainc(p, x) + special.gammaincc(p, 2.0 * x) + special.betainc(p, 1.5, u)
    total += special.j0(x) + special.jv(1.5, x) + special.y1(p) + special.iv(0.5, x) + special.k0e(x) + special.kv(2, x)
    total += special.airy(x)[0] * special.airy(x)[3] + special.sici(x)[0] + special.shichi(x)[1] + special.fresnel(x)[1]
    total += special.xlogy(x, p) + special.entr(u) + special.rel_entr(x, p) + special.kl_div(p, x) + special.huber(1, x)
    total += special.ellipk(u) + special.ellipe(-u) + special.hyp2f1(0.5, 1.5, 2.5, u) + special.hyp1f1(1.0, 2.0, x)
    total += special.exp1(x) + special.expi(p) + special.expn(2, x) + special.voigt_profile(x, p, u) + special.exprel(x)
    total += (
        special.polygamma(1, p) + special.zeta(2.5, p) + special.stdtr(p, x) + special.spence(p) + special.owens_t(x, p)
    )
    return total


POINT = (0.8, 0.3, 1.7)


def test_all_orders_and_modes():
    srcdiff.check(all_at_once, *POINT, wrt=(0, 1), backend="python")
    expected = all_at_once(*POINT)
    value, tangent = srcdiff.jvp(all_at_once, POINT, (1.0, 0.0, 0.0), backend="python")
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    gradient = srcdiff.grad(all_at_once, backend="python")
    np.testing.assert_allclose(tangent, gradient(*POINT), rtol=1e-12)
    second = srcdiff.grad(gradient, backend="python")(*POINT)
    h = 1e-5
    x, *others = POINT
    differences = (gradient(x + h, *others) - gradient(x - h, *others)) / (2 * h)
    np.testing.assert_allclose(second, differences, rtol=1e-7)


def few_at_once(x, u, p):
    """One of each kind: with one to four arguments, several results, own derivatives, and orders."""
    total = special.erfcx(x) * special.ndtri(u) + special.gammainc(p, x) + special.betainc(p, 1.5, u)
    total += special.jv(1.5, x) * special.airy(x)[0] + special.hyp2f1(0.5, 1.5, 2.5, u) + special.expn(2, x)
    return total + special.polygamma(1, p) + special.xlogy(x, p)


@pytest.mark.numba
def test_compiled_code_calls_the_same_functions():
    found = srcdiff.value_and_grad(few_at_once, wrt=(0, 1, 2))(*POINT)
    value, slopes = srcdiff.value_and_grad(few_at_once, wrt=(0, 1, 2), backend="python")(*POINT)
    assert found == (pytest.approx(value, rel=1e-14), pytest.approx(slopes, rel=1e-13))


def test_with_respect_to_parameters():
    def f(a, b, x):
        return special.gammainc(a, x) + special.betainc(a, b, x / 3.0) + special.beta(a, b) + special.stdtr(a, x)

    srcdiff.check(f, 1.3, 2.2, 0.9, wrt=(0, 1, 2), backend="python")


def by_shapes(a, b, x):
    total = special.gammainc(a, x) + special.gammaincc(b, x) + special.betainc(a, b, x / 3.0) + special.stdtr(a, x)
    total += special.gammaincinv(a, x / 3.0) * special.betaincinv(a, b, x / 3.0) + special.stdtrit(b, x / 3.0)
    return total + special.kv(a, x) * special.kve(-b, x) + special.betaincc(b, a, x / 3.0)


@pytest.mark.parametrize("backend", ["python", pytest.param("numba", marks=pytest.mark.numba)])
def test_second_derivatives_with_respect_to_shapes_and_orders(backend):
    point = np.array([1.3, 2.2, 0.9])
    hessian = np.array(srcdiff.hessian(by_shapes, wrt=(0, 1, 2), backend=backend)(*point))
    gradient = srcdiff.grad(by_shapes, wrt=(0, 1, 2), backend="python")

    def slopes(direction):
        def at(k):
            return np.array(gradient(*(point + k * 1e-3 * direction)))

        return (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / 12e-3

    np.testing.assert_allclose(hessian, [slopes(d) for d in np.eye(3)], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)


def test_derivatives_of_third_order_with_respect_to_a_shape():
    def f(a):
        return special.gammainc(a, 2.0) + special.kv(a, 2.0) + special.betainc(a, 1.5, 0.3)

    second = srcdiff.grad(srcdiff.grad(f, backend="python"), backend="python")
    _, third = srcdiff.jvp(second, (1.5,), (1.0,), backend="python")
    np.testing.assert_allclose(third, (second(1.501) - second(1.499)) / 2e-3, rtol=1e-5)


def test_shapes_of_distributions_have_second_derivatives():
    def f(shape):
        total = stats.gamma.cdf(1.2, shape) + stats.t.logcdf(-0.4, shape) + stats.beta.sf(0.4, shape, 2.0)
        return total + stats.chi2.ppf(0.3, shape) + stats.poisson.logsf(3, shape) + stats.binom.cdf(2, 5, shape / 4.0)

    second = srcdiff.grad(srcdiff.grad(f, backend="python"), backend="python")
    gradient = srcdiff.grad(f, backend="python")
    np.testing.assert_allclose(second(1.7), (gradient(1.7 + 1e-5) - gradient(1.7 - 1e-5)) / 2e-5, rtol=1e-7)


# -- types, shapes and options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_singles_stay_singles(backend):
    def f(x):
        return special.jv(np.float32(0.5), x) + special.expit(x) * special.erf(x)

    x = np.array([0.5, 1.5], np.float32)
    primal = srcdiff.differentiable(f, backend=backend)
    assert primal(x).dtype == np.float32 == f(x).dtype
    np.testing.assert_allclose(primal(x), f(x), rtol=1e-6)


def test_integers_become_floats():
    def f(n, x):
        return np.sum(special.gammaln(n) * x) + special.gamma(3) + special.xlogy(2, x[0])

    srcdiff.check(f, np.array([2, 5]), np.array([0.3, 0.4]), wrt=1, backend="python")


def test_broadcasting_and_out():
    def f(a, x):
        result = np.empty((3, 2))
        special.gammaincc(a[:, None], x, out=result)
        return np.sum(result * special.binom(a[:, None] + 5.0, x))

    srcdiff.check(f, np.array([0.5, 1.5, 3.0]), np.array([0.3, 2.0]), wrt=(0, 1), backend="python")


LIBRARY = {
    "logsumexp": lambda a: special.logsumexp(a) + np.sum(special.logsumexp(a, axis=1, keepdims=True)),
    "logsumexp_axis": lambda a: np.sum(special.logsumexp(a, axis=0) ** 2),
    "logsumexp_b": lambda a: special.logsumexp(a, b=np.array([[1.0, 2.0, 0.0], [0.5, 1.0, 3.0]])),
    "softmax": lambda a: np.sum(special.softmax(a, axis=1) * a) + np.sum(special.softmax(a) ** 2),
    "log_softmax": lambda a: np.sum(special.log_softmax(a, axis=0) * a) + np.sum(special.log_softmax(a)[0]),
    "polygamma": lambda a: np.sum(special.polygamma(2, np.abs(a) + 1.0) + special.polygamma(0, np.abs(a) + 0.5)),
    "multigammaln": lambda a: special.multigammaln(np.sum(np.abs(a)) + 3.0, 3),
    "softplus": lambda a: np.sum(special.softplus(a)),
    "airy": lambda a: np.sum(special.airy(a)[1] * special.airy(a)[2]),
    "sici": lambda a: np.sum(special.sici(np.abs(a) + 0.1)[1]),
    "shichi": lambda a: np.sum(special.shichi(a)[0]),
    "fresnel": lambda a: np.sum(special.fresnel(a)[0]),
    "lambertw": lambda a: (
        np.sum(special.lambertw(np.abs(a)).real * a) + np.sum(special.lambertw(-0.1 * a[0, :1] ** 2, -1).real)
    ),
    "kn": lambda a: np.sum(special.kn(2, np.abs(a))),
    "yn": lambda a: np.sum(special.yn(3, np.abs(a) + 1.0)),
    "zeta": lambda a: np.sum(special.zeta(3.0, np.abs(a) + 0.2)),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_functions_of_arrays(name):
    f = LIBRARY[name]
    a = np.array([[0.3, -1.2, 2.0], [0.1, 0.7, -0.4]])
    np.testing.assert_allclose(srcdiff.differentiable(f, backend="python")(a), f(a), rtol=1e-12)
    srcdiff.check(f, a, backend="python")


def test_every_library_function_is_tested():
    assert {name.partition("_")[0] if name.startswith("logsumexp") else name for name in LIBRARY} == set(
        special_functions.FUNCTIONS
    )


def test_lambertw_raises_where_it_is_not_real():
    g = srcdiff.value_and_grad(lambda x: special.lambertw(x).real, backend="python")
    assert g(-0.3)[0] == pytest.approx(special.lambertw(-0.3).real, rel=1e-14)
    with pytest.raises(ValueError, match="not real"):
        g(-1.0)


def test_largest_elements_do_not_overflow():
    def f(a):
        return special.logsumexp(a) + np.sum(special.log_softmax(a))

    a = np.array([1000.0, 999.0, -np.inf])
    gradient = srcdiff.grad(lambda a: special.logsumexp(a), backend="python")(a)
    np.testing.assert_allclose(gradient, special.softmax(a), rtol=1e-14)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_the_sum_of_no_exponentials_is_zero(axis):
    def f(a):
        return special.logsumexp(a, axis=axis)

    for shape in (0, 3), (3, 0), (0, 0):
        a = np.zeros(shape)
        found = srcdiff.differentiable(f, backend="python")(a)
        wanted = -np.inf if axis is None else f(a)  # SciPy fails for all axes of a matrix without elements
        np.testing.assert_array_equal(found, wanted)
        assert np.shape(found) == np.shape(wanted)
        gradient = srcdiff.grad(lambda a: np.sum(f(a)), backend="python")(a)
        assert gradient.shape == shape


# -- what has no derivative ------------------------------------------------------------------------------------------


def by_order(v, x):
    return special.jv(v, x)


@pytest.mark.parametrize("mode", [srcdiff.grad, srcdiff.jacobian])
def test_an_order_without_a_formula_is_refused(mode):
    with pytest.raises(srcdiff.DifferentiationError, match=r"`scipy\.special\.jv` has no formula .* `v`") as refusal:
        mode(by_order, wrt=0, backend="python")(0.5, 1.0)
    assert "return special.jv(v, x)" in str(refusal.value)
    with pytest.raises(srcdiff.DifferentiationError, match="no formula"):
        srcdiff.jvp(by_order, (0.5, 1.0), (1.0, 0.0), backend="python")
    assert np.isfinite(srcdiff.grad(by_order, wrt=1, backend="python")(0.5, 1.0))


WITHOUT_FORMULA = {
    "jv": lambda v: special.jv(v, 1.5),
    "yv": lambda v: special.yv(v, 1.5),
    "iv": lambda v: special.iv(v, 1.5),
    "zeta": lambda v: special.zeta(v, 1.2),
    "hyp2f1": lambda v: special.hyp2f1(v, 0.7, 1.4, 0.3),
}


@pytest.mark.parametrize("name", WITHOUT_FORMULA)
def test_the_advice_for_an_order_without_a_formula_works(name):
    from srcdiff.frontend.source.declared_rules import RULES

    function, message = WITHOUT_FORMULA[name], rf"`scipy\.special\.{name}` has no formula for a derivative"
    with pytest.raises(srcdiff.DifferentiationError, match=message) as refusal:
        srcdiff.grad(function, backend="python")(2.3)
    lines = refusal.value.problems[0].help.partition("differences:\n")[2]
    try:
        exec(lines, {"srcdiff": srcdiff})
        wanted = (function(2.3 + 1e-5) - function(2.3 - 1e-5)) / 2e-5
        assert srcdiff.grad(function, backend="python")(2.3) == pytest.approx(wanted, rel=1e-6)
    finally:
        RULES.remove(getattr(special, name))


def test_a_constant_order_is_no_reason():
    def f(v, x):
        return v * special.jv(srcdiff.stop_gradient(v), x)

    np.testing.assert_allclose(srcdiff.grad(f, backend="python")(0.5, 1.0), special.jv(0.5, 1.0))


def test_no_gpu_has_compiled_functions():
    def f(x):
        return np.sum(special.jv(0.5, x))

    with pytest.raises(srcdiff.DifferentiationError, match="GPU"):
        srcdiff.grad(f, backend="cuda")(np.ones(3))


def test_unknown_functions_are_refused_as_before():
    def f(x):
        return special.mathieu_a(2, x)

    with pytest.raises(srcdiff.DifferentiationError, match="mathieu_a"):
        srcdiff.grad(f, backend="python")(1.0)


def test_users_rules_come_first():
    def f(x):
        return special.struve(0.0, x) + special.j0(x)

    @srcdiff.rule_for(special.j0)
    def j0(x):
        return 3.0 * x

    from srcdiff.frontend.source.declared_rules import RULES

    try:
        assert srcdiff.grad(lambda x: special.j0(x), backend="python")(1.0) == 3.0
    finally:
        RULES.remove(special.j0)
    np.testing.assert_allclose(srcdiff.grad(lambda x: special.j0(x), backend="python")(1.0), -special.j1(1.0))


# -- processes -------------------------------------------------------------------------------------------------------

IN_A_FILE = """
import sys
import numpy as np
import srcdiff
from scipy import special

def f(x):
    return np.sum(special.jv(0.5, x) * special.airy(x)[0]) + special.voigt_profile(x[0], 1.0, 0.5)

if __name__ == "__main__":
    print(srcdiff.grad(f)(np.array([1.0, 2.0])).tolist())
"""


def test_machine_code_of_another_process_is_used(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(IN_A_FILE)
    environment = {"SRCDIFF_CACHE_DIR": str(tmp_path / "cache"), "SRCDIFF_TIMINGS": "1"}
    import os

    runs = [
        subprocess.run(
            [sys.executable, str(file)], capture_output=True, text=True, env={**os.environ, **environment}, check=True
        )
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    kept = {path for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert kept


def test_srcdiff_does_not_import_special_functions():
    text = "import sys, srcdiff; print([m for m in sys.modules if m.startswith('scipy.s')])"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
