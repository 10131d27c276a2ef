"""The distributions of `scipy.stats` against SciPy and differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import srcdiff
from srcdiff.library.distributions import METHODS

SHAPES = {
    "norm": {},
    "t": {"df": 3.7},
    "gamma": {"a": 2.3},
    "chi2": {"df": 4.2},
    "beta": {"a": 2.3, "b": 1.7},
    "expon": {},
    "uniform": {},
    "lognorm": {"s": 0.8},
    "laplace": {},
    "logistic": {},
    "cauchy": {},
    "halfnorm": {},
    "weibull_min": {"c": 1.6},
    "poisson": {"mu": 2.4},
    "binom": {"n": 6, "p": 0.3},
    "bernoulli": {"p": 0.3},
}
ONE = [(d, m) for d in SHAPES for m in METHODS[d]]
"""All methods of distributions of one dimension."""


WITHOUT_SCALE = ("poisson", "binom", "bernoulli")


def names_of(distribution):
    return [*SHAPES[distribution], "loc", *([] if distribution in WITHOUT_SCALE else ["scale"])]


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """All of them in one file."""
    lines = ["from scipy import stats", "import numpy as np", ""]
    for distribution, method in ONE:
        names = names_of(distribution)
        given = ", ".join(f"{n}={n}" for n in names)
        lines += ["", f"def {distribution}_{method}(x, {', '.join(names)}):"]
        lines += [f"    return np.sum(stats.{distribution}.{method}(x, {given}) * np.array([0.7, -1.3, 0.4]))", ""]
    file = tmp_path_factory.mktemp("stats") / "with_stats.py"
    file.write_text("\n".join(lines))
    namespace = {"__name__": "with_stats"}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    return namespace


def arguments_of(distribution, method):
    names = names_of(distribution)
    discrete = "scale" not in names
    x = np.array([0.12, 0.45, 0.83])
    if discrete:
        x = np.array([0.0, 1.0, 3.0]) if distribution != "bernoulli" else np.zeros(3)
        x += 1.0
    elif method not in ("ppf", "isf"):
        x = x * 1.7 + 0.3
    shapes = {**SHAPES[distribution], "loc": 1.0 if discrete else 0.3, "scale": 1.7}
    return x, [shapes[n] for n in names]


@pytest.mark.parametrize(("distribution", "method"), ONE, ids=[f"{d}.{m}" for d, m in ONE])
def test_values_and_gradients(programs, distribution, method):
    f = programs[f"{distribution}_{method}"]
    x, parameters = arguments_of(distribution, method)
    value = srcdiff.differentiable(f, backend="python")(x, *parameters)
    np.testing.assert_allclose(value, f(x, *parameters), rtol=1e-10)
    names = names_of(distribution)
    wrt = tuple(n for n in ("x", *names) if "scale" in names or n in ("mu", "p"))
    srcdiff.check(f, x, *parameters, wrt=wrt, backend="python")


@pytest.mark.parametrize(("distribution", "method"), ONE, ids=[f"{d}.{m}" for d, m in ONE])
def test_outside_of_the_support(distribution, method):
    _, parameters = arguments_of(distribution, method)
    of, names = getattr(stats, distribution), names_of(distribution)
    edges = (0.3, 2.0) if "scale" in names else ()
    program, given = ONE_NUMBER[method], (of, tuple(parameters))
    value_of, slope_of = srcdiff.differentiable(program, backend="python"), srcdiff.grad(program, backend="python")
    for x in (-5.0, -2.0, -1.0, 0.3, 1.0, 2.0, 3.5, 50.0, 300.0):
        with np.errstate(all="ignore"):
            expected = getattr(of, method)(x, *parameters)
        if x == 300.0 and (distribution, method) == ("halfnorm", "logsf"):
            expected = np.log(2.0) + stats.norm.logsf(x, *parameters)  # SciPy's is minus infinity
        np.testing.assert_allclose(value_of(x, *given), expected, rtol=1e-9, atol=1e-40)
        is_constant = np.isneginf(expected) or expected in (0.0, 1.0)
        if is_constant and x not in edges and method not in ("ppf", "isf"):
            assert abs(slope_of(x, *given)) < 1e-12, x


ONE_NUMBER = {
    "pdf": lambda x, d, p: d.pdf(x, *p),
    "logpdf": lambda x, d, p: d.logpdf(x, *p),
    "pmf": lambda x, d, p: d.pmf(x, *p),
    "logpmf": lambda x, d, p: d.logpmf(x, *p),
    "cdf": lambda x, d, p: d.cdf(x, *p),
    "sf": lambda x, d, p: d.sf(x, *p),
    "logcdf": lambda x, d, p: d.logcdf(x, *p),
    "logsf": lambda x, d, p: d.logsf(x, *p),
    "ppf": lambda x, d, p: d.ppf(x, *p),
    "isf": lambda x, d, p: d.isf(x, *p),
}


# -- the forms in which users write them -------------------------------------------------------------------------------


def likelihood(theta, x, k):
    m, s = theta[0], np.exp(theta[1])
    prior = stats.norm(0.0, 10.0)
    total = prior.logpdf(m) + prior.logpdf(theta[1])
    model = stats.norm(loc=m, scale=s)
    total += np.sum(model.logpdf(x)) + model.logsf(2.0)
    rates = stats.gamma(2.0, scale=s)
    for i in range(len(x)):
        total += rates.logpdf(abs(x[i])) + stats.t.logpdf(x[i], 4.0, m, s)
    return total + stats.poisson.logpmf(k, s).sum() + np.sum(stats.binom(10, 1.0 / (1.0 + s)).logpmf(k))


@pytest.mark.parametrize("backend", ["python", "numba"])
def test_a_likelihood(backend):
    given = np.array([0.4, 0.2]), np.array([0.3, -1.0, 2.2]), np.array([0, 3, 1])
    np.testing.assert_allclose(srcdiff.differentiable(likelihood, backend=backend)(*given), likelihood(*given))
    srcdiff.check(likelihood, *given, backend=backend)
    hessian = srcdiff.hessian(likelihood, backend=backend)(*given)
    gradient, h = srcdiff.grad(likelihood, backend=backend), 1e-5
    for k in range(2):
        step = h * np.eye(2)[k]
        differences = (gradient(given[0] + step, *given[1:]) - gradient(given[0] - step, *given[1:])) / (2 * h)
        np.testing.assert_allclose(hessian[k], differences, rtol=1e-6, atol=1e-8)


OUTSIDE = stats.norm(1.0, scale=2.0)
FUNCTION = stats.norm.logpdf


def test_made_outside():
    def f(x):
        return OUTSIDE.logpdf(x) + FUNCTION(x, scale=3.0)

    np.testing.assert_allclose(srcdiff.differentiable(f, backend="python")(0.4), f(0.4))
    srcdiff.check(f, 0.4, backend="python")


def test_parameters_outside_are_read_at_each_call():
    scale = np.array([1.0, 2.0])
    frozen = stats.norm(0.0, scale)

    def f(x):
        return np.sum(frozen.logpdf(x))

    gradient = srcdiff.grad(f, backend="python")
    before = gradient(1.0)
    scale *= 2.0
    np.testing.assert_allclose(gradient(1.0), -1.0 / 4.0 - 1.0 / 16.0)
    np.testing.assert_allclose(before, -1.0 - 1.0 / 4.0)
    frozen.kwds = {}
    frozen.args = (0.0, 5.0)
    np.testing.assert_allclose(gradient(1.0), -1.0 / 25.0)


def test_broadcasting():
    def f(x, m, s):
        return np.sum(stats.norm.cdf(x[:, None], m, s) * stats.gamma.pdf(x[:, None], m + 2.0))

    given = np.array([0.3, 1.0]), np.array([0.1, 0.5, 1.2]), np.array([[0.7], [1.3]])
    srcdiff.check(f, *given, wrt=(0, 1, 2), backend="python")


def test_a_negative_scale_has_no_density():
    def f(x, s):
        return stats.norm.cdf(x, 0.0, s)

    assert np.isnan(srcdiff.differentiable(f, backend="python")(1.0, -1.0))


def test_in_branches_and_helpers():
    def prior(p):
        return stats.beta(p + 1.0, 1.0)

    def f(p, kind):
        if kind > 0.0:
            return prior(p).logpdf(p)
        fixed = stats.beta(2.0, 3.0)
        return fixed.logpdf(p) + fixed.cdf(0.2 * p)

    for kind in (-1.0, 1.0):
        srcdiff.check(f, 0.3, kind, backend="python")


MULTIVARIATE = {
    "vector": lambda x, m, c: stats.multivariate_normal.logpdf(x[0], m, c @ c.T + np.eye(3)),
    "rows": lambda x, m, c: np.sum(stats.multivariate_normal.logpdf(x, mean=m, cov=c @ c.T + np.eye(3)) * np.arange(2)),
    "frozen": lambda x, m, c: np.sum(stats.multivariate_normal(m, c @ c.T + np.eye(3)).pdf(x)),
    "variances": lambda x, m, c: np.sum(stats.multivariate_normal.logpdf(x, m, c[0] ** 2 + 1.0)),
    "variance": lambda x, m, c: np.sum(stats.multivariate_normal.logpdf(x, m, c[0, 0] ** 2 + 1.0)),
    "no_mean": lambda x, m, c: np.sum(stats.multivariate_normal.logpdf(x * m, cov=c @ c.T + np.eye(3))),
}


@pytest.mark.parametrize("name", MULTIVARIATE)
@pytest.mark.parametrize("backend", ["python", "numba"])
def test_multivariate_normal(name, backend):
    f = MULTIVARIATE[name]
    random = np.random.default_rng(3)
    given = random.normal(size=(2, 3)), random.normal(size=3), random.normal(size=(3, 3))
    np.testing.assert_allclose(srcdiff.differentiable(f, backend=backend)(*given), f(*given))
    srcdiff.check(f, *given, wrt=(0, 1, 2), backend=backend)


MVN = stats.multivariate_normal(np.array([1.0, 2.0]), np.array([[2.0, 0.3], [0.3, 1.0]]))


def test_multivariate_normal_made_outside():
    srcdiff.check(lambda x: MVN.logpdf(x), np.array([0.3, 0.4]), backend="python")


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED = {
    "`rvs` of the distribution `scipy.stats.norm` is not supported": lambda x: stats.norm.rvs() * x,
    "the distribution `scipy.stats.skewnorm` is not supported": lambda x: stats.skewnorm.logpdf(x, 1.0),
    "needs the parameter `a`": lambda x: stats.gamma.logpdf(x),
    "does not take `size` here": lambda x: stats.norm.logpdf(x, size=3),
    "does not take so many arguments": lambda x: stats.norm.logpdf(x, 1.0, 2.0, 3.0),
    "does not take `loc` here": lambda x: stats.norm(1.0, loc=2.0).logpdf(x),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refusals(reason):
    with pytest.raises(srcdiff.DifferentiationError) as refusal:
        srcdiff.grad(REFUSED[reason], backend="python")(1.0)
    assert reason in str(refusal.value)
    assert "stats." in str(refusal.value).split("\n", 2)[1] + str(refusal.value)


INVALID = {
    "gamma": (-1.0,),
    "beta": (1.0, -2.0),
    "chi2": (-3.0,),
    "lognorm": (-0.8,),
    "weibull_min": (-1.5,),
    "poisson": (-1.0,),
    "binom": (5, 1.3),
    "bernoulli": (-0.4,),
}


@pytest.mark.parametrize("distribution", INVALID)
def test_a_distribution_that_does_not_exist_has_no_numbers(distribution):
    of, shapes = getattr(stats, distribution), INVALID[distribution]
    density = of.logpdf if hasattr(of, "logpdf") else of.logpmf

    def both(x, *shapes):
        return np.array([density(x, *shapes), of.cdf(x, *shapes)])

    assert np.isnan(both(1.0, *shapes)).all()
    assert np.isnan(srcdiff.differentiable(both, backend="python")(1.0, *shapes)).all()


@pytest.mark.parametrize(
    "of", [stats.norm.cdf, stats.norm.ppf, stats.poisson.logpmf, stats.expon.sf, stats.chi2.logpdf]
)
def test_a_distribution_that_does_not_exist_has_no_derivative(of):
    scaled = (lambda s: of(0.3, 0.0, s)) if of.__self__.name in ("norm", "expon") else (lambda s: of(1.0, s))
    value, slope = srcdiff.value_and_grad(scaled, backend="python")(-1.0)
    assert np.isnan(value)
    assert np.isnan(slope)


@pytest.mark.parametrize(("distribution", "method"), ONE, ids=[f"{d}.{m}" for d, m in ONE])
def test_where_a_result_is_nan_all_derivatives_are_nan(distribution, method):
    """A scale or a shape that is not positive, or a place that is NaN, in each position."""
    program, names = ONE_NUMBER[method], names_of(distribution)
    of, usual = getattr(stats, distribution), {**SHAPES[distribution], "loc": 0.1, "scale": 1.3}
    continuous = "scale" in names
    wrt = (0, 1) if continuous else (1,)
    value_and_grad = srcdiff.value_and_grad(lambda x, p: program(x, of, p), wrt, backend="python")
    changes = [{"x": np.nan}, *({n: -1.5} for n in names if n not in ("loc", "n")), *([{"scale": 0.0}] * continuous)]
    for change in changes:
        for x in (0.4, 0.9, -3.0):
            at = {**usual, "x": x if continuous else 1.1, **change}
            if np.isnan(program(at["x"], of, tuple(at[n] for n in names))):
                value, (*slope, slopes) = value_and_grad(at["x"], tuple(float(at[n]) for n in names))
                assert np.isnan(value), at
                found = [*slope, *slopes] if continuous else slopes[names.index("mu" if "mu" in names else "p")]
                assert np.isnan(found).all(), at


def test_counts_of_distributions_with_a_parameter_at_its_bound():
    def logarithms(k):
        return np.array([stats.poisson.logcdf(k, 0.0), stats.binom.logsf(k, 3, 1.0), stats.binom.logcdf(k, 3, 0.0)])

    np.testing.assert_array_equal(srcdiff.differentiable(logarithms, backend="python")(1.0), logarithms(1.0))


def test_quantiles_of_tiny_probabilities():
    def both(q):
        return np.array([stats.cauchy.isf(q), stats.laplace.isf(q), stats.cauchy.ppf(q)])

    found = srcdiff.differentiable(both, backend="python")(1e-20)
    np.testing.assert_allclose(found[:2], both(1e-20)[:2], rtol=1e-13)
    assert found[2] == pytest.approx(-1e20 / np.pi)
