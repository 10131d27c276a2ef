"""The rules of the functions of `scipy.special`, see rules/scalars.py for how they are written.

`refused` are the parameters that a function depends on smoothly and that no formula here is for: a program that
differentiates with respect to them is refused.
"""

from __future__ import annotations

from math import inf

from srcdiff.rules.table import (
    BETWEEN_POLES,
    INSIDE_ONE,
    INTEGER,
    ORDER,
    POSITIVE,
    UNIT,
    Domain,
    constant,
    edge,
    elementwise,
)

ORDERS = Domain(((0.3, 3.7),))
NEGATIVE = Domain(((-5.0, -0.5),))
BELOW_ONE = Domain(((-2.0, 0.9),))
BRANCHES = Domain(((0.0, 1.0),), "int")
OF_ORDER = {"v": ORDERS, "x": POSITIVE}
SECOND = Domain(((0.0, 2.0),), "int")

# fmt: off

# -- the error function and the normal distribution ------------------------------------------------------------------
# Far from zero, the short formula cancels, and the derivative is that of the asymptotic series (DLMF 7.12.1).
elementwise("erfcx(x)",        x="-2.0 * r / sqrt_pi * (1.0 - 3.0 * r * (1.0 - 5.0 * r * tail)) if x > 11.0 else "
                                 "2.0 * x * out - 2.0 / sqrt_pi",        at=[edge(x=inf, x_bar=0.0)],
            let="r = 0.5 / (x if x > 11.0 else 1.0) / (x if x > 11.0 else 1.0); "
                "far = 1.0 - 13.0 * r * (1.0 - 15.0 * r * (1.0 - 17.0 * r * (1.0 - 19.0 * r * (1.0 - 21.0 * r)))); "
                "tail = 1.0 - 7.0 * r * (1.0 - 9.0 * r * (1.0 - 11.0 * r * far))")
elementwise("erfi(x)",         x="2.0 / sqrt_pi * exp(x * x)",           on=INSIDE_ONE)
elementwise("dawsn(x)",        x="-r * (1.0 + 3.0 * r * (1.0 + 5.0 * r * tail)) if absolute(x) > 11.0 else "
                                 "1.0 - 2.0 * x * out",                  at=[edge(x=inf, x_bar=0.0)],
            let="r = 0.5 / (x if absolute(x) > 11.0 else 1.0) / (x if absolute(x) > 11.0 else 1.0); "
                "far = 1.0 + 13.0 * r * (1.0 + 15.0 * r * (1.0 + 17.0 * r * (1.0 + 19.0 * r * (1.0 + 21.0 * r)))); "
                "tail = 1.0 + 7.0 * r * (1.0 + 9.0 * r * (1.0 + 11.0 * r * far))")
elementwise("erfinv(x)",       x="0.5 * sqrt_pi * exp(out * out)",       on=INSIDE_ONE)
elementwise("erfcinv(x)",      x="-0.5 * sqrt_pi * exp(out * out)",      on=UNIT)
elementwise("ndtr(x)",         x="exp(-0.5 * x * x) / sqrt_2pi",         at=[edge(x=inf, x_bar=0.0)])
# phi(x) / Phi(x), by two formulas: each is used where it neither overflows nor cancels.
elementwise("log_ndtr(x)",     x="exp(-0.5 * x * x) / sqrt_2pi / ndtr(x if x > 0.0 else 0.0) if x > 0.0 else "
                                 "2.0 / sqrt_2pi / erfcx(-(0.0 if x > 0.0 else x) / sqrt_2)",
            at=[edge(x=inf, x_bar=0.0)])
elementwise("ndtri(p)",        p="sqrt_2pi * exp(0.5 * out * out)",      on=UNIT)
elementwise("ndtri_exp(y)",    y="sqrt_2pi * exp(y + 0.5 * out * out)",  on=NEGATIVE)
elementwise("owens_t(h, a)",   h="-0.5 / sqrt_2pi * exp(-0.5 * h * h) * erf(a * h / sqrt_2)",
                               a="exp(-0.5 * h * h * (1.0 + a * a)) / (2.0 * pi * (1.0 + a * a))")
elementwise("wofz_real(x, y)", x="2.0 * (y * wofz_imag(x, y) - x * out)",
                               y="2.0 * (x * wofz_imag(x, y) + y * out) - 2.0 / sqrt_pi",  on={"y": POSITIVE})
elementwise("wofz_imag(x, y)", x="2.0 / sqrt_pi - 2.0 * (x * out + y * wofz_real(x, y))",
                               y="2.0 * (y * out - x * wofz_real(x, y))",                  on={"y": POSITIVE})
# V + i L = w((x + i gamma) / (sigma sqrt(2))) / (sigma sqrt(2 pi)), and V solves the heat equation.
elementwise("voigt_profile(x, sigma, gamma)",
            x="vx", sigma="-(out + x * vx - gamma * lx) / sigma", gamma="-lx",
            on={"sigma": Domain(((0.5, 2.0),)), "gamma": POSITIVE},
            let="l = wofz_imag(x / (sqrt_2 * sigma), gamma / (sqrt_2 * sigma)) / (sqrt_2pi * sigma); "
                "vx = (gamma * l - x * out) / (sigma * sigma); "
                "lx = (1.0 / pi - x * l - gamma * out) / (sigma * sigma)")

# -- exponentials, logarithms and powers -----------------------------------------------------------------------------
elementwise("expit(x)",        x="out * expit(-x)",                      at=[edge(x=inf, x_bar=0.0)])
elementwise("logit(x)",        x="1.0 / (x * (1.0 - x))",                on=UNIT, at=[edge(x=0.0, x_bar=inf)])
elementwise("log_expit(x)",    x="expit(-x)",                            at=[edge(x=-inf, x_bar=1.0)])
elementwise("exp10(x)",        x="log_10 * out",                         at=[edge(x=-inf, x_bar=0.0)])
elementwise("exprel(x)",       x="exprel_derivative(1, x)",              at=[edge(x=0.0, x_bar=0.5)])
elementwise("exprel_derivative(n, x)", x="exprel_derivative(n + 1, x)",  on={"n": ORDER})
elementwise("cosm1(x)",        x="-sin(x)")
elementwise("sindg(x)",        x="pi / 180.0 * cosdg(x)")
elementwise("cosdg(x)",        x="-pi / 180.0 * sindg(x)")
elementwise("tandg(x)",        x="pi / 180.0 * (1.0 + out * out)")
elementwise("powm1(x, y)",     x="y * x ** (y - 1.0)", y="(1.0 + out) * log(x)",  on={"x": POSITIVE})
elementwise("boxcox(x, lmbda)",   x="x ** (lmbda - 1.0)",
                                  lmbda="log(x) * log(x) * exprel_derivative(1, lmbda * log(x))", on={"x": POSITIVE},
            at=[edge(x=1.0, lmbda=0.0, x_bar=1.0, lmbda_bar=0.0)])
elementwise("boxcox1p(x, lmbda)", x="exp((lmbda - 1.0) * log1p(x))",
                                  lmbda="log1p(x) * log1p(x) * exprel_derivative(1, lmbda * log1p(x))",
            on={"x": POSITIVE}, at=[edge(x=0.0, lmbda=0.0, x_bar=1.0, lmbda_bar=0.0)])
elementwise("inv_boxcox(y, lmbda)", y="out / (1.0 + lmbda * y)", refused="lmbda", on={"y": POSITIVE, "lmbda": POSITIVE})
elementwise("lambertw(x, k)",  x="exp(-out) / (1.0 + out)",
            on={"x": Domain(((-0.34, -0.05),)), "k": Domain(((-1.0, 0.0),), "int")})

# -- entropies and losses: a zero x has no log(x / y), and moves nothing when y moves ---------------------------------
elementwise("xlogy(x, y)",     x="log(y)",             y="x / (1.0 if x == 0.0 else y)",         on={"y": POSITIVE},
            at=[edge(x=0.0, y=0.0, x_bar=-inf, y_bar=0.0), edge(x=0.0, y=2.0, x_bar=0.6931471805599453, y_bar=0.0)])
elementwise("xlog1py(x, y)",   x="log1p(y)",           y="x / (1.0 if x == 0.0 else 1.0 + y)",   on={"y": POSITIVE},
            at=[edge(x=0.0, y=-1.0, x_bar=-inf, y_bar=0.0)])
elementwise("entr(x)",         x="-log(x) - 1.0 if x >= 0.0 else 0.0",  on=POSITIVE, at=[edge(x=0.0, x_bar=inf)])
elementwise("rel_entr(x, y)",  x="log(x / y) + 1.0",   y="-x / (1.0 if x == 0.0 else y)",        on=POSITIVE,
            at=[edge(x=0.0, y=2.0, x_bar=-inf, y_bar=0.0), edge(x=0.0, y=0.0, y_bar=0.0)])
elementwise("kl_div(x, y)",    x="log(x / y)",         y="1.0 - x / (1.0 if x == 0.0 else y)",   on=POSITIVE,
            at=[edge(x=0.0, y=2.0, x_bar=-inf, y_bar=1.0)])
elementwise("huber(delta, r)", r="minimum(maximum(r, -delta), delta)",
                               delta="absolute(r) - delta if absolute(r) > delta else 0.0",      on={"delta": POSITIVE},
            at=[edge(delta=1.0, r=1.0, r_bar=1.0, delta_bar=0.0)])
elementwise("pseudo_huber(delta, r)",
            r="r / s", delta="out / d * (out / d) / (d * s)",                                  on={"delta": POSITIVE},
            let="d = 1.0 if delta == 0.0 else delta; s = hypot(1.0, r / d)")

# -- the gamma and beta functions ------------------------------------------------------------------------------------
elementwise("gamma_function(x)",  x="out * digamma(x)",                  on=BETWEEN_POLES)
elementwise("gammaln(x)",         x="digamma(x)",                        on=BETWEEN_POLES)
elementwise("loggamma(x)",        x="digamma(x)",                        on=POSITIVE)
constant("gammasgn(x)", on=BETWEEN_POLES)
elementwise("digamma_difference(x, d)", x="trigamma(x + d) - trigamma(x)", d="trigamma(x + d)",           on=POSITIVE)
elementwise("beta(a, b)",      a="-out * digamma_difference(a, b)",      b="-out * digamma_difference(b, a)",
            on=POSITIVE)
elementwise("betaln(a, b)",    a="-digamma_difference(a, b)",            b="-digamma_difference(b, a)",   on=POSITIVE)
elementwise("poch(z, m)",      z="out * digamma_difference(z, m)",       m="out * digamma(z + m)",        on=POSITIVE)
elementwise("binom(n, k)",     n="out * digamma_difference(n - k + 1.0, k)",
                               k="out * digamma_difference(k + 1.0, n - 2.0 * k)",
            on={"n": Domain(((4.0, 7.0),)), "k": POSITIVE})
elementwise("gammainc(a, x)",  a="gammainc_slope(a, x)",                  on=POSITIVE,
                               x="gamma_density(a, x)")
elementwise("gammaincc(a, x)", a="-gammainc_slope(a, x)",                 on=POSITIVE,
                               x="-gamma_density(a, x)")
elementwise("gammaincinv(a, y)",  a="-gammainc_slope(a, out) * w", y="w", on={"a": POSITIVE, "y": UNIT},
            let="w = exp(out + gammaln(a) - xlogy(a - 1.0, out))")
elementwise("gammainccinv(a, y)", a="-gammainc_slope(a, out) * w", y="-w", on={"a": POSITIVE, "y": UNIT},
            let="w = exp(out + gammaln(a) - xlogy(a - 1.0, out))")
elementwise("gammainc_slope(a, x)", a="gammainc_by_a(2, a, x)",        x="gamma_density_by_a(1, a, x)",  on=POSITIVE)
elementwise("gammainc_by_a(n, a, x)", a="gammainc_by_a(n + 1, a, x)",  on={"n": ORDER, "a": POSITIVE, "x": POSITIVE},
                               x="gamma_density_by_a(n, a, x)")
elementwise("gamma_density(a, x)",  a="gamma_density_by_a(1, a, x)",   on=POSITIVE,
                               x="out * ((a - 1.0) / (1.0 if a == 1.0 else x) - 1.0)")
elementwise("gamma_density_by_a(n, a, x)", a="gamma_density_by_a(n + 1, a, x)",
            x="out * ((a - 1.0) / x - 1.0) + n / x * gamma_density_by_a(n - 1, a, x)",
            on={"n": ORDER, "a": POSITIVE, "x": POSITIVE})
elementwise("betainc(a, b, x)", a="betainc_slope(0, a, b, x)", b="betainc_slope(1, a, b, x)",
                                x="beta_density(a, b, x)",
            on={"a": POSITIVE, "b": POSITIVE, "x": UNIT})
elementwise("betaincc(a, b, x)", a="-betainc_slope(0, a, b, x)", b="-betainc_slope(1, a, b, x)",
                                x="-beta_density(a, b, x)",
            on={"a": POSITIVE, "b": POSITIVE, "x": UNIT})
elementwise("betaincinv(a, b, y)", a="-betainc_slope(0, a, b, out) * w", b="-betainc_slope(1, a, b, out) * w", y="w",
            on={"a": ORDERS, "b": ORDERS, "y": UNIT},
            let="w = exp(betaln(a, b) - xlogy(a - 1.0, out) - xlog1py(b - 1.0, -out))")
elementwise("betainc_slope(n, a, b, x)",
            a="betainc_by(2 - n, n, a, b, x)", b="betainc_by(1 - n, 1 + n, a, b, x)",
            x="beta_density_by(1 - n, n, a, b, x)",
            on={"n": SECOND, "a": POSITIVE, "b": POSITIVE, "x": UNIT})
elementwise("betainc_by(n, m, a, b, x)",
            a="betainc_by(n + 1, m, a, b, x)", b="betainc_by(n, m + 1, a, b, x)", x="beta_density_by(n, m, a, b, x)",
            on={"n": ORDER, "m": SECOND, "a": POSITIVE, "b": POSITIVE, "x": UNIT})
elementwise("beta_density(a, b, x)", a="beta_density_by(1, 0, a, b, x)", b="beta_density_by(0, 1, a, b, x)",
            x="out * ((a - 1.0) / (1.0 if a == 1.0 else x) - (b - 1.0) / (1.0 if b == 1.0 else 1.0 - x))",
            on={"a": POSITIVE, "b": POSITIVE, "x": UNIT})
elementwise("beta_density_by(n, m, a, b, x)",
            a="beta_density_by(n + 1, m, a, b, x)", b="beta_density_by(n, m + 1, a, b, x)",
            x="out * ((a - 1.0) / x - (b - 1.0) / (1.0 - x)) + n / x * beta_density_by(n - 1, m, a, b, x) "
              "- m / (1.0 - x) * beta_density_by(n, m - 1, a, b, x)",
            on={"n": ORDER, "m": SECOND, "a": POSITIVE, "b": POSITIVE, "x": UNIT})
elementwise("stdtr(df, t)",    t="exp(-0.5 * (df + 1.0) * log1p(t * t / df) - betaln(0.5, 0.5 * df)) / sqrt(df)",
                               df="-0.25 * sign(t) * by_df - 0.5 * t * "
                                  "exp((0.5 * df - 1.0) * log(z) - betaln(0.5, 0.5 * df)) / (df + t * t) ** 1.5",
            let="z = df / (df + t * t); by_df = -betainc_slope(1, 0.5, 0.5 * df, t * t / (df + t * t)) if t * t < df "
                "else betainc_slope(0, 0.5 * df, 0.5, z)", on={"df": POSITIVE})
elementwise("stdtrit(df, p)",  p="w",
                               df="w * (0.25 * sign(out) * by_df + 0.5 * out * "
                                  "exp((0.5 * df - 1.0) * log(z) - betaln(0.5, 0.5 * df)) / (df + out * out) ** 1.5)",
            let="z = df / (df + out * out); "
                "by_df = -betainc_slope(1, 0.5, 0.5 * df, out * out / (df + out * out)) if out * out < df "
                "else betainc_slope(0, 0.5 * df, 0.5, z); "
                "w = sqrt(df) * exp(0.5 * (df + 1.0) * log1p(out * out / df) + betaln(0.5, 0.5 * df))",
            on={"df": POSITIVE, "p": UNIT})
elementwise("zeta(x, q)",      q="-x * zeta(x + 1.0, q)", refused="x", on={"x": Domain(((1.5, 5.0),)), "q": POSITIVE})

# -- Bessel functions ------------------------------------------------------------------------------------------------
elementwise("j0(x)",           x="-j1(x)")
elementwise("j1(x)",           x="0.5 * (j0(x) - jv(2.0, x))")
elementwise("jv(v, x)",        x="0.5 * (jv(v - 1.0, x) - jv(v + 1.0, x))",    refused="v", on=OF_ORDER)
elementwise("y0(x)",           x="-y1(x)",                                     on=POSITIVE)
elementwise("y1(x)",           x="0.5 * (y0(x) - yv(2.0, x))",                 on=POSITIVE)
elementwise("yv(v, x)",        x="0.5 * (yv(v - 1.0, x) - yv(v + 1.0, x))",    refused="v", on=OF_ORDER)
elementwise("i0(x)",           x="i1(x)")
elementwise("i1(x)",           x="0.5 * (i0(x) + iv(2.0, x))")
elementwise("iv(v, x)",        x="0.5 * (iv(v - 1.0, x) + iv(v + 1.0, x))",    refused="v", on=OF_ORDER)
elementwise("i0e(x)",          x="i1e(x) - sign(x) * out",                     at=[edge(x=0.0, x_bar=0.0)])
elementwise("i1e(x)",          x="0.5 * (i0e(x) + ive(2.0, x)) - sign(x) * out")
elementwise("ive(v, x)",       x="0.5 * (ive(v - 1.0, x) + ive(v + 1.0, x)) - sign(x) * out",
            refused="v", on=OF_ORDER)
elementwise("k0(x)",           x="-k1(x)",                                     on=POSITIVE)
elementwise("k1(x)",           x="-0.5 * (k0(x) + kv(2.0, x))",                on=POSITIVE)
elementwise("kv(v, x)",        x="-0.5 * (kv(v - 1.0, x) + kv(v + 1.0, x))",
                               v="exp(-x) * kve_by_order(1, v, x)",            on=OF_ORDER)
elementwise("k0e(x)",          x="out - k1e(x)",                               on=POSITIVE)
elementwise("k1e(x)",          x="out - 0.5 * (k0e(x) + kve(2.0, x))",         on=POSITIVE)
elementwise("kve(v, x)",       x="out - 0.5 * (kve(v - 1.0, x) + kve(v + 1.0, x))",
                               v="kve_by_order(1, v, x)",                      on=OF_ORDER)
elementwise("kve_by_order(n, v, x)", v="kve_by_order(n + 1, v, x)",
            x="out - 0.5 * (kve_by_order(n, v - 1.0, x) + kve_by_order(n, v + 1.0, x))",
            on={"n": ORDER, "v": ORDERS, "x": POSITIVE})
elementwise("airy_ai(x)",      x="airy_aip(x)")
elementwise("airy_aip(x)",     x="x * airy_ai(x)")
elementwise("airy_bi(x)",      x="airy_bip(x)")
elementwise("airy_bip(x)",     x="x * airy_bi(x)")

# -- integrals -------------------------------------------------------------------------------------------------------
elementwise("exp1(x)",         x="-exp(-x) / x",                               on=POSITIVE)
elementwise("expi(x)",         x="exp(x) / x",                                 on=POSITIVE)
elementwise("expn(n, x)",      x="-expn(n - 1.0 if n > 0.0 else 1.0, x) if n > 0.0 else -exp(-x) * (1.0 + 1.0 / x) / x",
            on={"n": INTEGER, "x": POSITIVE}, refused="n")
elementwise("sine_integral(x)",    x="sinc(x / pi)",                           at=[edge(x=0.0, x_bar=1.0)])
elementwise("cosine_integral(x)",  x="cos(x) / x",                             on=POSITIVE)
elementwise("sinh_integral(x)",    x="0.5 * (exprel(x) + exprel(-x))",         at=[edge(x=0.0, x_bar=1.0)])
elementwise("cosh_integral(x)",    x="cosh(x) / x",                            on=POSITIVE)
elementwise("fresnel_s(x)",    x="sin(0.5 * pi * x * x)")
elementwise("fresnel_c(x)",    x="cos(0.5 * pi * x * x)")
elementwise("spence(z)",       z="-1.0 / exprel(log(z))",        on=POSITIVE, at=[edge(z=1.0, z_bar=-1.0)])
elementwise("ellipk(m)",       m="pi / 8.0 * hyp2f1(0.5, 0.5, 2.0, m) / (1.0 - m)",  on=BELOW_ONE)
elementwise("ellipkm1(p)",     p="-pi / 8.0 * hyp2f1(0.5, 0.5, 2.0, 1.0 - p) / p",   on=UNIT)
elementwise("ellipe(m)",       m="-pi / 8.0 * hyp2f1(0.5, 1.5, 2.0, m)",             on=BELOW_ONE)
elementwise("ellipkinc(phi, m)", phi="1.0 / sqrt(1.0 - m * sin(phi) * sin(phi))", refused="m", on={"m": UNIT})
elementwise("ellipeinc(phi, m)", phi="sqrt(1.0 - m * sin(phi) * sin(phi))",       refused="m", on={"m": UNIT})

# -- hypergeometric functions ----------------------------------------------------------------------------------------
elementwise("hyp0f1(v, x)",       x="hyp0f1(v + 1.0, x) / v",                     refused="v", on={"v": POSITIVE})
elementwise("hyp1f1(a, b, x)",    x="a / b * hyp1f1(a + 1.0, b + 1.0, x)",        refused="a b",
            on={"a": POSITIVE, "b": POSITIVE})
elementwise("hyp2f1(a, b, c, x)", x="a * b / c * hyp2f1(a + 1.0, b + 1.0, c + 1.0, x)", refused="a b c",
            on={"a": POSITIVE, "b": POSITIVE, "c": POSITIVE, "x": Domain(((-0.8, 0.8),))})
