"""The distributions of `scipy.stats`: densities, distribution functions and quantiles, with `loc` and `scale`.

A family consists of the functions of the standard distribution; all others follow from these. Outside of the support,
densities are zero and distribution functions are zero or one, and so are their derivatives. A function that is only
valid inside the support is evaluated at a number inside it, so that no infinite derivative is multiplied by zero. The
numbers 0.9189... and 1.1447... are log(sqrt(2 pi)) and log(pi).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from srcdiff.library.language import Elementwise, is_array, known, unsupported

ndtr, log_ndtr, ndtri = Elementwise("ndtr"), Elementwise("log_ndtr"), Elementwise("ndtri")
erf, erfc, expit, log_expit, logit = (Elementwise(n) for n in ("erf", "erfc", "expit", "log_expit", "logit"))
gammaln, betaln, xlogy, xlog1py = (Elementwise(n) for n in ("gammaln", "betaln", "xlogy", "xlog1py"))
gammainc, gammaincc = Elementwise("gammainc"), Elementwise("gammaincc")
gammaincinv, gammainccinv = Elementwise("gammaincinv"), Elementwise("gammainccinv")
betainc, betaincc, betaincinv = Elementwise("betainc"), Elementwise("betaincc"), Elementwise("betaincinv")
stop_gradient = Elementwise("stop_gradient")
stdtr, stdtrit = Elementwise("stdtr"), Elementwise("stdtrit")

# --------------------------------------------------------------------------------- the methods, from the standard ones


def density(log_density: Any, x: Any, shapes: Any, loc: Any, scale: Any) -> Any:
    return np.exp(logarithmic_density(log_density, x, shapes, loc, scale))


def logarithmic_density(log_density: Any, x: Any, shapes: Any, loc: Any, scale: Any) -> Any:
    y = standard(x, loc, scale)
    found = log_density(y, *shapes)
    return where_it_exists(found if known(scale) and scale == 1 else found - np.log(scale), y, shapes, scale)


def probability(fraction: Any, x: Any, shapes: Any, loc: Any, scale: Any) -> Any:
    y = standard(x, loc, scale)
    return where_it_exists(fraction(y, *shapes), y, shapes, scale)


def logarithm(fraction: Any, complement: Any, x: Any, shapes: Any, loc: Any, scale: Any) -> Any:
    return logarithm_of(probability(fraction, x, shapes, loc, scale), probability(complement, x, shapes, loc, scale))


def logarithm_of(found: Any, rest: Any) -> Any:
    """The logarithm. For numbers close to one it is computed from one minus the number."""
    return np.where(found < 0.5, np.log(np.where(found < 0.5, found, 0.5)), np.log1p(-np.where(found < 0.5, 0.5, rest)))


def quantile(of_probability: Any, q: Any, shapes: Any, loc: Any, scale: Any) -> Any:
    q = np.asarray(q) if is_array(q) else q
    found = of_probability(q, *shapes)
    found = found if known(scale) and scale == 1 else found * scale
    found = found if known(loc) and loc == 0 else found + loc
    return where_it_exists(found, q + loc + scale, shapes, scale)


def upper_quantile(of_probability: Any, q: Any, shapes: Any, loc: Any, scale: Any) -> Any:
    return quantile(of_probability, 1.0 - (np.asarray(q) if is_array(q) else q), shapes, loc, scale)


def where_it_exists(found: Any, place: Any, shapes: Any, scale: Any) -> Any:
    """NaN where the scale or a shape is not positive, as no distribution has it, and where the place is NaN.

    Then all derivatives are NaN, too, because that NaN is computed from everything: the place depends on the scale.
    """
    exists, everything = place == place, place
    for shape in shapes:
        everything = everything + shape
    for positive in (*shapes, scale):
        if not (known(positive) and positive > 0):
            exists = exists & (positive > 0)
    return np.where(exists, found, np.nan * everything)


def standard(x: Any, loc: Any, scale: Any) -> Any:
    x = np.asarray(x) if is_array(x) else x
    moved = x if known(loc) and loc == 0 else x - loc
    return moved + 0.0 if known(scale) and scale == 1 else moved / scale


def mass(log_mass: Any, k: Any, shapes: Any, loc: Any) -> Any:
    return np.exp(logarithmic_mass(log_mass, k, shapes, loc))


def logarithmic_mass(log_mass: Any, k: Any, shapes: Any, loc: Any) -> Any:
    """There is no derivative with respect to k, because it is an integer."""
    count = counted_from(k, loc)
    return where_counted(log_mass(count, *shapes), count, shapes)


def probability_of_count(fraction: Any, k: Any, shapes: Any, loc: Any) -> Any:
    count = np.floor(counted_from(k, loc))
    return where_counted(fraction(count, *shapes), count, shapes)


def logarithm_of_count(fraction: Any, complement: Any, k: Any, shapes: Any, loc: Any) -> Any:
    found, rest = probability_of_count(fraction, k, shapes, loc), probability_of_count(complement, k, shapes, loc)
    return logarithm_of(found, rest)


def where_counted(found: Any, count: Any, shapes: Any) -> Any:
    """NaN where the count is NaN, and so are the derivatives."""
    everything = count
    for shape in shapes:
        everything = everything + shape
    return np.where(count == count, found, np.nan * everything)


def counted_from(k: Any, loc: Any) -> Any:
    return stop_gradient((np.asarray(k) if is_array(k) else k) - loc) + 0.0


# ----------------------------------------------------------------------------------------------- standard distributions


def norm_logpdf(y: Any) -> Any:
    return -0.5 * y * y - 0.9189385332046727


def norm_cdf(y: Any) -> Any:
    return ndtr(y)


def norm_sf(y: Any) -> Any:
    return ndtr(-y)


def norm_logcdf(y: Any) -> Any:
    return log_ndtr(y)


def norm_logsf(y: Any) -> Any:
    return log_ndtr(-y)


def norm_ppf(q: Any) -> Any:
    return ndtri(q)


def norm_isf(q: Any) -> Any:
    return -ndtri(q)


def t_logpdf(y: Any, df: Any) -> Any:
    return -betaln(0.5, 0.5 * df) - 0.5 * np.log(df) - 0.5 * (df + 1.0) * np.log1p(y * y / df)


def t_cdf(y: Any, df: Any) -> Any:
    return stdtr(df, y)


def t_sf(y: Any, df: Any) -> Any:
    return stdtr(df, -y)


def t_ppf(q: Any, df: Any) -> Any:
    return stdtrit(df, q)


def t_isf(q: Any, df: Any) -> Any:
    return -stdtrit(df, q)


def gamma_logpdf(y: Any, a: Any) -> Any:
    inner = np.where(y >= 0, y, 1.0)
    return np.where(y >= 0, xlogy(a - 1.0, inner) - inner - gammaln(a), -np.inf)


def gamma_cdf(y: Any, a: Any) -> Any:
    return np.where(y > 0, gammainc(a, np.where(y > 0, y, 1.0)), 0.0)


def gamma_sf(y: Any, a: Any) -> Any:
    return np.where(y > 0, gammaincc(a, np.where(y > 0, y, 1.0)), 1.0)


def gamma_ppf(q: Any, a: Any) -> Any:
    return gammaincinv(a, q)


def gamma_isf(q: Any, a: Any) -> Any:
    return gammainccinv(a, q)


def chi2_logpdf(y: Any, df: Any) -> Any:
    return gamma_logpdf(0.5 * y, 0.5 * df) - 0.6931471805599453


def chi2_cdf(y: Any, df: Any) -> Any:
    return gamma_cdf(0.5 * y, 0.5 * df)


def chi2_sf(y: Any, df: Any) -> Any:
    return gamma_sf(0.5 * y, 0.5 * df)


def chi2_ppf(q: Any, df: Any) -> Any:
    return 2.0 * gammaincinv(0.5 * df, q)


def chi2_isf(q: Any, df: Any) -> Any:
    return 2.0 * gammainccinv(0.5 * df, q)


def beta_logpdf(y: Any, a: Any, b: Any) -> Any:
    inside = (y >= 0) & (y <= 1)
    inner = np.where(inside, y, 0.5)
    return np.where(inside, xlogy(a - 1.0, inner) + xlog1py(b - 1.0, -inner) - betaln(a, b), -np.inf)


def beta_cdf(y: Any, a: Any, b: Any) -> Any:
    inside = (y > 0) & (y < 1)
    return np.where(inside, betainc(a, b, np.where(inside, y, 0.5)), np.where(y >= 1, 1.0, 0.0 * y))


def beta_sf(y: Any, a: Any, b: Any) -> Any:
    inside = (y > 0) & (y < 1)
    return np.where(inside, betaincc(a, b, np.where(inside, y, 0.5)), np.where(y <= 0, 1.0, 0.0 * y))


def beta_ppf(q: Any, a: Any, b: Any) -> Any:
    return betaincinv(a, b, q)


def expon_logpdf(y: Any) -> Any:
    return np.where(y >= 0, -y, -np.inf)


def expon_cdf(y: Any) -> Any:
    return np.where(y > 0, -np.expm1(-np.where(y > 0, y, 1.0)), 0.0)


def expon_sf(y: Any) -> Any:
    return np.where(y > 0, np.exp(-np.where(y > 0, y, 1.0)), 1.0)


def expon_logsf(y: Any) -> Any:
    return np.where(y > 0, -y, 0.0)


def expon_ppf(q: Any) -> Any:
    return -np.log1p(-np.where((q >= 0) & (q <= 1), q, np.nan))


def expon_isf(q: Any) -> Any:
    return -np.log(np.where((q >= 0) & (q <= 1), q, np.nan))


def uniform_logpdf(y: Any) -> Any:
    return np.where((y >= 0) & (y <= 1), 0.0, -np.inf)


def uniform_cdf(y: Any) -> Any:
    return np.where(y > 0, np.where(y < 1, y, 1.0), 0.0)


def uniform_sf(y: Any) -> Any:
    return np.where(y > 0, np.where(y < 1, 1.0 - y, 0.0), 1.0)


def uniform_ppf(q: Any) -> Any:
    return np.where((q >= 0) & (q <= 1), q, np.nan)


def lognorm_logpdf(y: Any, s: Any) -> Any:
    inner = np.log(np.where(y > 0, y, 1.0))
    return np.where(y > 0, -0.5 * (inner / s) ** 2 - np.log(s) - inner - 0.9189385332046727, -np.inf)


def lognorm_cdf(y: Any, s: Any) -> Any:
    return np.where(y > 0, ndtr(np.log(np.where(y > 0, y, 1.0)) / s), 0.0)


def lognorm_sf(y: Any, s: Any) -> Any:
    return np.where(y > 0, ndtr(-np.log(np.where(y > 0, y, 1.0)) / s), 1.0)


def lognorm_logcdf(y: Any, s: Any) -> Any:
    return np.where(y > 0, log_ndtr(np.log(np.where(y > 0, y, 1.0)) / s), -np.inf)


def lognorm_logsf(y: Any, s: Any) -> Any:
    return np.where(y > 0, log_ndtr(-np.log(np.where(y > 0, y, 1.0)) / s), 0.0)


def lognorm_ppf(q: Any, s: Any) -> Any:
    return np.exp(s * ndtri(q))


def lognorm_isf(q: Any, s: Any) -> Any:
    return np.exp(-s * ndtri(q))


def laplace_logpdf(y: Any) -> Any:
    return -0.6931471805599453 - np.abs(y)


def laplace_cdf(y: Any) -> Any:
    half = 0.5 * np.exp(-np.abs(y))
    return np.where(y > 0, 1.0 - half, half)


def laplace_sf(y: Any) -> Any:
    half = 0.5 * np.exp(-np.abs(y))
    return np.where(y > 0, half, 1.0 - half)


def laplace_isf(q: Any) -> Any:
    return -laplace_ppf(q)


def laplace_ppf(q: Any) -> Any:
    return np.where(q > 0.5, -np.log(2.0 - 2.0 * np.maximum(q, 0.5)), np.log(2.0 * np.minimum(q, 0.5)))


def logistic_logpdf(y: Any) -> Any:
    return log_expit(y) + log_expit(-y)


def logistic_cdf(y: Any) -> Any:
    return expit(y)


def logistic_sf(y: Any) -> Any:
    return expit(-y)


def logistic_logcdf(y: Any) -> Any:
    return log_expit(y)


def logistic_logsf(y: Any) -> Any:
    return log_expit(-y)


def logistic_ppf(q: Any) -> Any:
    return logit(q)


def logistic_isf(q: Any) -> Any:
    return -logit(q)


def cauchy_logpdf(y: Any) -> Any:
    return -1.1447298858494002 - np.log1p(y * y)


def cauchy_cdf(y: Any) -> Any:
    return np.arctan2(1.0, -y) / np.pi


def cauchy_sf(y: Any) -> Any:
    return np.arctan2(1.0, y) / np.pi


def cauchy_ppf(q: Any) -> Any:
    inner = -1.0 / np.tan(np.pi * np.where((q > 0) & (q < 1), q, 0.5))
    return np.where((q > 0) & (q < 1), inner, np.where(q == 0, -np.inf, np.where(q == 1, np.inf, np.nan)))


def cauchy_isf(q: Any) -> Any:
    return -cauchy_ppf(q)


def halfnorm_logpdf(y: Any) -> Any:
    return np.where(y >= 0, 0.6931471805599453 - 0.9189385332046727 - 0.5 * y * y, -np.inf)


def halfnorm_cdf(y: Any) -> Any:
    return np.where(y > 0, erf(y * 0.7071067811865476), 0.0)


def halfnorm_sf(y: Any) -> Any:
    return np.where(y > 0, erfc(y * 0.7071067811865476), 1.0)


def halfnorm_logsf(y: Any) -> Any:
    return np.where(y > 0, 0.6931471805599453 + log_ndtr(-y), 0.0)


def halfnorm_ppf(q: Any) -> Any:
    return ndtri(0.5 * (1.0 + np.where(q >= 0, q, np.nan)))


def halfnorm_isf(q: Any) -> Any:
    return -ndtri(0.5 * np.where(q <= 1, q, np.nan))


def weibull_logpdf(y: Any, c: Any) -> Any:
    inner = np.where(y >= 0, y, 1.0)
    return np.where(y >= 0, np.log(c) + xlogy(c - 1.0, inner) - inner**c, -np.inf)


def weibull_cdf(y: Any, c: Any) -> Any:
    return np.where(y > 0, -np.expm1(-(np.where(y > 0, y, 1.0) ** c)), 0.0)


def weibull_sf(y: Any, c: Any) -> Any:
    return np.where(y > 0, np.exp(-(np.where(y > 0, y, 1.0) ** c)), 1.0)


def weibull_logsf(y: Any, c: Any) -> Any:
    return np.where(y > 0, -(np.where(y > 0, y, 1.0) ** c), 0.0)


def weibull_ppf(q: Any, c: Any) -> Any:
    return expon_ppf(q) ** (1.0 / c)


def weibull_isf(q: Any, c: Any) -> Any:
    return expon_isf(q) ** (1.0 / c)


# -- of whole numbers


def poisson_logpmf(k: Any, mu: Any) -> Any:
    inside = (k >= 0) & (k == np.floor(k))
    inner = np.where(inside, k, 0.0)
    return np.where(mu >= 0, np.where(inside, xlogy(inner, mu) - gammaln(inner + 1.0) - mu, -np.inf), np.nan * mu)


def poisson_cdf(k: Any, mu: Any) -> Any:
    return np.where(mu >= 0, np.where(k >= 0, gammaincc(np.where(k >= 0, k, 0.0) + 1.0, mu), 0.0), np.nan * mu)


def poisson_sf(k: Any, mu: Any) -> Any:
    return np.where(mu >= 0, np.where(k >= 0, gammainc(np.where(k >= 0, k, 0.0) + 1.0, mu), 1.0), np.nan * mu)


def binom_logpmf(k: Any, n: Any, p: Any) -> Any:
    n = stop_gradient(n) + 0.0
    inside = (k >= 0) & (k <= n) & (k == np.floor(k))
    inner = np.where(inside, k, 0.0)
    choices = gammaln(n + 1.0) - gammaln(inner + 1.0) - gammaln(n - inner + 1.0)
    return where_valid(np.where(inside, choices + xlogy(inner, p) + xlog1py(n - inner, -p), -np.inf), n, p)


def binom_cdf(k: Any, n: Any, p: Any) -> Any:
    n = stop_gradient(n) + 0.0
    inside = (k >= 0) & (k < n)
    inner = np.where(inside, k, 0.0)
    rest = np.where(inside, n - inner, 1.0)
    return where_valid(np.where(inside, betaincc(inner + 1.0, rest, p), np.where(k >= n, 1.0, 0.0)), n, p)


def binom_sf(k: Any, n: Any, p: Any) -> Any:
    n = stop_gradient(n) + 0.0
    inside = (k >= 0) & (k < n)
    inner = np.where(inside, k, 0.0)
    rest = np.where(inside, n - inner, 1.0)
    return where_valid(np.where(inside, betainc(inner + 1.0, rest, p), np.where(k >= n, 0.0, 1.0)), n, p)


def where_valid(found: Any, n: Any, p: Any) -> Any:
    """NaN where there is no such binomial distribution."""
    return np.where((n >= 0) & (p >= 0) & (p <= 1), found, np.nan * p)


def bernoulli_logpmf(k: Any, p: Any) -> Any:
    return binom_logpmf(k, 1, p)


def bernoulli_cdf(k: Any, p: Any) -> Any:
    return binom_cdf(k, 1, p)


def bernoulli_sf(k: Any, p: Any) -> Any:
    return binom_sf(k, 1, p)


# ------------------------------------------------------------------------------------------- of several dimensions


def multivariate_normal_logpdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = False) -> Any:
    """By the Cholesky factor of the covariance. Only the lower triangle is read. A singular one raises in any case."""
    x = np.asarray(x) if is_array(x) else np.expand_dims(x + 0.0, 0)
    moved = x - (0.0 if mean is None else np.asarray(mean) if is_array(mean) else mean)
    if moved.ndim > 2:
        unsupported("more than two axes of `x`")
    if not is_array(cov):
        return whitened_logpdf(moved / np.sqrt(cov), 0.5 * moved.shape[-1] * np.log(cov))
    cov = np.asarray(cov)
    if cov.ndim == 1:
        return whitened_logpdf(moved / np.sqrt(cov), 0.5 * np.sum(np.log(cov)))
    factor = np.linalg.cholesky(cov)
    half_log_determinant = np.sum(np.log(np.diag(factor)))
    if moved.ndim == 1:
        return whitened_logpdf(np.linalg.solve(factor, moved), half_log_determinant)
    return whitened_logpdf(np.linalg.solve(factor, np.asarray(moved.T)).T, half_log_determinant)


def whitened_logpdf(z: Any, half_log_determinant: Any) -> Any:
    return -0.5 * np.sum(z * z, axis=-1) - half_log_determinant - 0.9189385332046727 * z.shape[-1]


def multivariate_normal_pdf(x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = False) -> Any:
    return np.exp(multivariate_normal_logpdf(x, mean, cov, allow_singular))


# -------------------------------------------------------------------------------------------------------- the families


@dataclass(frozen=True)
class Method:
    """A method of a distribution: a program that takes a standard function, the first argument and the parameters."""

    distribution: str
    name: str
    program: Callable[..., Any]
    standard: tuple[Callable[..., Any], ...]
    parameters: tuple[str, ...]
    """The parameters after the first: shapes, `loc`, and `scale` if it has one. Only shapes have no default."""
    shapes: int

    @property
    def __srcdiff_distribution__(self) -> Method:
        return self


METHODS: dict[str, dict[str, Method]] = {}
"""The methods, by the name in `scipy.stats` and the name of the method."""
PARAMETERS: dict[str, tuple[str, ...]] = {"multivariate_normal": ("mean", "cov", "allow_singular")}
"""The families, by the name in `scipy.stats`."""


def _continuous(name: str, shapes: str, **standard: Callable[..., Any]) -> None:
    parameters = (*shapes.split(), "loc", "scale")
    programs: dict[str, tuple[Any, ...]] = {
        "pdf": (density, "logpdf"),
        "logpdf": (logarithmic_density, "logpdf"),
        "cdf": (probability, "cdf"),
        "sf": (probability, "sf"),
        "logcdf": (probability, "logcdf") if "logcdf" in standard else (logarithm, "cdf", "sf"),
        "logsf": (probability, "logsf") if "logsf" in standard else (logarithm, "sf", "cdf"),
        "ppf": (quantile, "ppf"),
        "isf": (quantile, "isf") if "isf" in standard else (upper_quantile, "ppf"),
    }
    _add(name, parameters, len(shapes.split()), programs, standard)


def _discrete(name: str, shapes: str, **standard: Callable[..., Any]) -> None:
    programs: dict[str, tuple[Any, ...]] = {
        "pmf": (mass, "logpmf"),
        "logpmf": (logarithmic_mass, "logpmf"),
        "cdf": (probability_of_count, "cdf"),
        "sf": (probability_of_count, "sf"),
        "logcdf": (logarithm_of_count, "cdf", "sf"),
        "logsf": (logarithm_of_count, "sf", "cdf"),
    }
    _add(name, (*shapes.split(), "loc"), len(shapes.split()), programs, standard)


def _add(
    name: str, parameters: tuple[str, ...], shapes: int, programs: dict[str, tuple[Any, ...]], standard: dict[str, Any]
) -> None:
    PARAMETERS[name] = parameters
    METHODS[name] = {
        method: Method(name, method, program, tuple(standard[n] for n in of), parameters, shapes)
        for method, (program, *of) in programs.items()
    }


# fmt: off
_continuous("norm", "", logpdf=norm_logpdf, cdf=norm_cdf, sf=norm_sf, logcdf=norm_logcdf, logsf=norm_logsf,
            ppf=norm_ppf, isf=norm_isf)
_continuous("t", "df", logpdf=t_logpdf, cdf=t_cdf, sf=t_sf, ppf=t_ppf, isf=t_isf)
_continuous("gamma", "a", logpdf=gamma_logpdf, cdf=gamma_cdf, sf=gamma_sf, ppf=gamma_ppf, isf=gamma_isf)
_continuous("chi2", "df", logpdf=chi2_logpdf, cdf=chi2_cdf, sf=chi2_sf, ppf=chi2_ppf, isf=chi2_isf)
_continuous("beta", "a b", logpdf=beta_logpdf, cdf=beta_cdf, sf=beta_sf, ppf=beta_ppf)
_continuous("expon", "", logpdf=expon_logpdf, cdf=expon_cdf, sf=expon_sf, logsf=expon_logsf, ppf=expon_ppf,
            isf=expon_isf)
_continuous("uniform", "", logpdf=uniform_logpdf, cdf=uniform_cdf, sf=uniform_sf, ppf=uniform_ppf)
_continuous("lognorm", "s", logpdf=lognorm_logpdf, cdf=lognorm_cdf, sf=lognorm_sf, logcdf=lognorm_logcdf,
            logsf=lognorm_logsf, ppf=lognorm_ppf, isf=lognorm_isf)
_continuous("laplace", "", logpdf=laplace_logpdf, cdf=laplace_cdf, sf=laplace_sf, ppf=laplace_ppf,
            isf=laplace_isf)
_continuous("logistic", "", logpdf=logistic_logpdf, cdf=logistic_cdf, sf=logistic_sf, logcdf=logistic_logcdf,
            logsf=logistic_logsf, ppf=logistic_ppf, isf=logistic_isf)
_continuous("cauchy", "", logpdf=cauchy_logpdf, cdf=cauchy_cdf, sf=cauchy_sf, ppf=cauchy_ppf,
            isf=cauchy_isf)
_continuous("halfnorm", "", logpdf=halfnorm_logpdf, cdf=halfnorm_cdf, sf=halfnorm_sf, ppf=halfnorm_ppf,
            logsf=halfnorm_logsf, isf=halfnorm_isf)
_continuous("weibull_min", "c", logpdf=weibull_logpdf, cdf=weibull_cdf, sf=weibull_sf, logsf=weibull_logsf,
            ppf=weibull_ppf, isf=weibull_isf)
_discrete("poisson", "mu", logpmf=poisson_logpmf, cdf=poisson_cdf, sf=poisson_sf)
_discrete("binom", "n p", logpmf=binom_logpmf, cdf=binom_cdf, sf=binom_sf)
_discrete("bernoulli", "p", logpmf=bernoulli_logpmf, cdf=bernoulli_cdf, sf=bernoulli_sf)
# fmt: on
METHODS["multivariate_normal"] = {
    name: Method("multivariate_normal", name, program, (), PARAMETERS["multivariate_normal"], 0)
    for name, program in (("pdf", multivariate_normal_pdf), ("logpdf", multivariate_normal_logpdf))
}
