"""The rules of scalars: every primitive, with its derivatives or as a constant.

A formula is differentiated again for higher orders, so it must also be right near a special point. A convention for a
kink is therefore written into an operand, as in `x / (1.0 if out == 0.0 else out)`, and not around the quotient: the
branch that is not taken would contribute its infinite derivative times zero, which is NaN, to the next order. A special
case must also be as narrow as possible: for the derivative of x ** y, `0.0 if y == 0 else ...` would be right, but its
own derivative would be wrong.
"""

from __future__ import annotations

from math import exp, inf, nan

from srcdiff.rules.table import (
    ABOVE_ONE,
    AWAY_FROM_ZERO,
    BETWEEN_POLES,
    BOOLEAN,
    INSIDE_ONE,
    INTEGER,
    ORDER,
    PLANE,
    POSITIVE,
    UNITS,
    constant,
    edge,
    elementwise,
)

# fmt: off

# -- arithmetic ------------------------------------------------------------------------------------------------------
# primitive                       derivative with respect to each argument                 sampled on
elementwise("add(x, y)",          x="1.0",                   y="1.0")
elementwise("subtract(x, y)",     x="1.0",                   y="-1.0")
elementwise("multiply(x, y)",     x="y",                     y="x")
elementwise("divide(x, y)",       x="1.0 / y",               y="-out / y",                 on={"y": AWAY_FROM_ZERO})
elementwise("negative(x)",        x="-1.0")
elementwise("positive(x)",        x="1.0")
elementwise("square(x)",          x="2.0 * x")
elementwise("reciprocal(x)",      x="-out * out",                                          on=AWAY_FROM_ZERO)
# The first factor of these two is an adjoint or a tangent, and a zero of it is stronger than an infinite partial. They
# are products all the same: where the first factor is zero, they still have derivatives with respect to it.
elementwise("strong_multiply(x, y)",  x="y",                 y="strong_multiply(x, 1.0)",
            at=[edge(x=0.0, y=inf, x_bar=inf, y_bar=0.0), edge(x=0.0, y=3.0, x_bar=3.0, y_bar=0.0)])
elementwise("strong_divide(x, y)",    x="1.0 / y",           y="-strong_multiply(x, 1.0 / y / y)",
            on={"y": AWAY_FROM_ZERO},
            at=[edge(x=0.0, y=0.0, x_bar=inf, y_bar=-0.0), edge(x=0.0, y=4.0, x_bar=0.25, y_bar=0.0)])
elementwise("sqrt(x)",            x="0.5 / out",                                           on=POSITIVE,
            at=[edge(x=0.0, x_bar=inf), edge(x=inf, x_bar=0.0)],
            at_least={"x": "0.5 / (inf if out == 0.0 else out)"})  # sqrt(x * x) is abs(x)
elementwise("cbrt(x)",            x="1.0 / (3.0 * out * out)",                             on=AWAY_FROM_ZERO,
            at=[edge(x=0.0, x_bar=inf), edge(x=-inf, x_bar=0.0)])

# With respect to x, 0 ** -1 times zero is NaN; with respect to y, so is zero times log(0). For x < 0, there is no
# derivative with respect to y. Integers stay integers, so the derivative of x ** 3 has x ** 2, not a call of `pow`.
elementwise("power(x, y)", "float_power(x, y)",
            x="y * (1.0 if y == 0 and x == 0 else x) ** (y - 1)",
            y="out * log(1.0 if real(y) > 0 and x == 0 else x)",                                 on={"x": POSITIVE},
            at=[edge(x=0.0, y=0.0, x_bar=0.0, y_bar=-inf), edge(x=0.0, y=0.5, x_bar=inf, y_bar=0.0),
                edge(x=0.0, y=1.0, x_bar=1.0, y_bar=0.0),  edge(x=0.0, y=2.0, x_bar=0.0, y_bar=0.0),
                edge(x=3.0, y=0.0, x_bar=0.0),             edge(x=-2.0, y=3.0, x_bar=12.0, y_bar=nan)])

# The quotient that was subtracted, as a whole number: x / y may round up to the next.
elementwise("remainder(x, y)",    x="1.0",                   y="-(x // y)",                on=AWAY_FROM_ZERO)
elementwise("fmod(x, y)",         x="1.0",                   y="rint((out - x) / y)",      on=AWAY_FROM_ZERO)

# -- choices: at a tie each side gets half; NaN is neither side -------------------------------------------------------
elementwise("where(c, x, y)",     x="1.0 if c else 0.0",     y="0.0 if c else 1.0",        on={"c": BOOLEAN})
elementwise("maximum(x, y)",      x="1.0 if x > y else 0.5 if x == y else 0.0 if x < y else nan",
                                  y="1.0 if y > x else 0.5 if y == x else 0.0 if y < x else nan",
            at=[edge(x=2.0, y=2.0, x_bar=0.5, y_bar=0.5), edge(x=nan, y=2.0, x_bar=nan, y_bar=nan)])
elementwise("minimum(x, y)",      x="1.0 if x < y else 0.5 if x == y else 0.0 if x > y else nan",
                                  y="1.0 if y < x else 0.5 if y == x else 0.0 if y > x else nan",
            at=[edge(x=2.0, y=2.0, x_bar=0.5, y_bar=0.5), edge(x=nan, y=2.0, x_bar=nan, y_bar=nan)])
# `minimum(maximum(x, low), high)`: what is chosen equals `out`, and is in nobody's way.
elementwise("clip(x, low, high)",
            x="(1.0 if low < x and x < high else 0.25 if low == high else 0.5) if x == out and low <= high "
              "else 0.0 if out == out else nan",
            low="(1.0 if x < low and low < high else 0.25 if x == high else 0.5) if low == out and x <= high "
                "else 0.0 if out == out else nan",
            high="(0.5 if x <= high and low <= high else 1.0) if high == out else 0.0 if out == out else nan",
            at=[edge(x=2.0, low=2.0, high=3.0, x_bar=0.5, low_bar=0.5, high_bar=0.0),
                edge(x=3.0, low=2.0, high=3.0, x_bar=0.5, low_bar=0.0, high_bar=0.5),
                edge(x=2.0, low=3.0, high=3.0, x_bar=0.0, low_bar=0.5, high_bar=0.5),
                edge(x=3.0, low=3.0, high=3.0, x_bar=0.25, low_bar=0.25, high_bar=0.5),
                edge(x=3.0, low=4.0, high=3.0, x_bar=0.0, low_bar=0.0, high_bar=1.0),
                edge(x=inf, low=2.0, high=inf, x_bar=0.5, low_bar=0.0, high_bar=0.5),
                edge(x=nan, low=2.0, high=3.0, x_bar=nan, low_bar=nan, high_bar=nan),
                edge(x=1.0, low=2.0, high=nan, x_bar=nan, low_bar=nan, high_bar=nan)])
elementwise("fmax(x, y)", "fmin(x, y)",
                                  x="0.5 if x == y else 1.0 if x == out else 0.0 if y == out else nan",
                                  y="0.5 if y == x else 1.0 if y == out else 0.0 if x == out else nan",
            at=[edge(x=2.0, y=2.0, x_bar=0.5, y_bar=0.5), edge(x=nan, y=2.0, x_bar=0.0, y_bar=1.0),
                edge(x=nan, y=nan, x_bar=nan, y_bar=nan)])
elementwise("heaviside(x, y)",    y="1.0 if x == 0.0 else 0.0",
            at=[edge(x=0.0, y=0.5, y_bar=1.0)])

# -- sizes -----------------------------------------------------------------------------------------------------------
elementwise("absolute(x)", "fabs(x)",
                                  x="sign(x)",
            at=[edge(x=0.0, x_bar=0.0), edge(x=-inf, x_bar=-1.0), edge(x=nan, x_bar=nan)])
elementwise("copysign(x, y)",     x="sign(x) * copysign(1.0, y)",
            at=[edge(x=0.0, y=-1.0, x_bar=0.0), edge(x=2.0, y=-0.0, x_bar=-1.0)])
elementwise("hypot(x, y)",        x="x / r",                 y="y / r",
            let="r = 1.0 if out == 0.0 else out",
            at=[edge(x=0.0, y=0.0, x_bar=0.0, y_bar=0.0), edge(x=3e200, y=4e200, x_bar=0.6, y_bar=0.8)])

# -- exponentials and logarithms -------------------------------------------------------------------------------------
elementwise("exp(x)",             x="out",                                         at=[edge(x=-inf, x_bar=0.0)])
elementwise("exp2(x)",            x="log_2 * out",                                 at=[edge(x=-inf, x_bar=0.0)])
elementwise("expm1(x)",           x="exp(x)",                                      at=[edge(x=-40.0, x_bar=exp(-40.0))])
elementwise("log(x)",             x="1.0 / x",               on=POSITIVE,          at=[edge(x=0.0, x_bar=inf)])
elementwise("log2(x)",            x="1.0 / (log_2 * x)",     on=POSITIVE,          at=[edge(x=0.0, x_bar=inf)])
elementwise("log10(x)",           x="1.0 / (log_10 * x)",    on=POSITIVE,          at=[edge(x=0.0, x_bar=inf)])
elementwise("log1p(x)",           x="1.0 / (1.0 + x)",       on=POSITIVE,          at=[edge(x=-1.0, x_bar=inf)])

# Of two infinities the larger has it all, and equal ones have half each.
LARGER_HAS_IT = [edge(x=1e4, y=0.0, x_bar=1.0, y_bar=0.0),  edge(x=-inf, y=-inf, x_bar=0.5, y_bar=0.5),
                 edge(x=-inf, y=3.0, x_bar=0.0, y_bar=1.0), edge(x=inf, y=3.0, x_bar=1.0, y_bar=0.0),
                 edge(x=inf, y=inf, x_bar=0.5, y_bar=0.5),  edge(x=inf, y=nan, x_bar=nan, y_bar=nan)]
elementwise("logaddexp(x, y)",    x="exp(x - out if isfinite(out) else log_x)",
                                  y="exp(y - out if isfinite(out) else log_y)",
            let="log_x = 0.0 if x > y else -log_2 if x == y else -inf if x < y else nan; "
                "log_y = 0.0 if y > x else -log_2 if y == x else -inf if y < x else nan",  at=LARGER_HAS_IT)
elementwise("logaddexp2(x, y)",   x="exp2(x - out if isfinite(out) else log_x)",
                                  y="exp2(y - out if isfinite(out) else log_y)",
            let="log_x = 0.0 if x > y else -1.0 if x == y else -inf if x < y else nan; "
                "log_y = 0.0 if y > x else -1.0 if y == x else -inf if y < x else nan",    at=LARGER_HAS_IT)

# -- circular and hyperbolic functions: (1 - x) (1 + x) is exact near one where 1 - x * x is not, hypot never overflows
elementwise("sin(x)",          x="cos(x)")
elementwise("cos(x)",          x="-sin(x)")
elementwise("tan(x)",          x="1.0 + out * out",                     on=INSIDE_ONE)
elementwise("arcsin(x)",       x="1.0 / sqrt((1.0 - x) * (1.0 + x))",   on=INSIDE_ONE, at=[edge(x=1.0, x_bar=inf)],
            of_complex={"x": "1.0 / sqrt((one - x) * (one + x))"})
elementwise("arccos(x)",       x="-1.0 / sqrt((1.0 - x) * (1.0 + x))",  on=INSIDE_ONE, at=[edge(x=1.0, x_bar=-inf)],
            of_complex={"x": "-1.0 / sqrt((one - x) * (one + x))"})
elementwise("arctan(x)",       x="1.0 / (1.0 + x * x)",                 at=[edge(x=-inf, x_bar=0.0)])
elementwise("arctan2(y, x)",   y="x / r / r", x="-y / r / r",           on=AWAY_FROM_ZERO,
            let="h = hypot(x, y); r = 1.0 if h == 0.0 else h",
            at=[edge(x=0.0, y=0.0, x_bar=0.0, y_bar=0.0), edge(x=0.0, y=1e-200, x_bar=-1e200, y_bar=0.0)])
elementwise("sinh(x)",         x="cosh(x)")
elementwise("cosh(x)",         x="sinh(x)")
elementwise("tanh(x)",         x="1.0 - out * out",                     at=[edge(x=inf, x_bar=0.0)])
elementwise("arcsinh(x)",      x="1.0 / hypot(1.0, x)",                 at=[edge(x=1e200, x_bar=1e-200)],
            of_complex={"x": "1.0 / sqrt(one + x * x)"})
elementwise("arccosh(x)",      x="1.0 / sqrt(x - 1.0) / sqrt(x + 1.0)", on=ABOVE_ONE,  at=[edge(x=1.0, x_bar=inf)],
            of_complex={"x": "1.0 / sqrt(x - 1.0) / sqrt(one + x)"})
elementwise("arctanh(x)",      x="1.0 / ((1.0 - x) * (1.0 + x))",       on=INSIDE_ONE, at=[edge(x=1.0, x_bar=inf)])
elementwise("degrees(x)",      x="180.0 / pi")
elementwise("radians(x)",      x="pi / 180.0")
elementwise("sinc(x)",         x="sinc_derivative(1, x)",               at=[edge(x=0.0, x_bar=0.0)])
elementwise("sinc_derivative(n, x)", x="sinc_derivative(n + 1, x)",     on={"n": ORDER})

# -- the error function and the gamma function -----------------------------------------------------------------------
elementwise("erf(x)",          x="2.0 / sqrt_pi * exp(-x * x)",         at=[edge(x=inf, x_bar=0.0)])
elementwise("erfc(x)",         x="-2.0 / sqrt_pi * exp(-x * x)",        at=[edge(x=inf, x_bar=-0.0)])
elementwise("gamma(x)",        x="out * digamma(x)",                    on=BETWEEN_POLES)
elementwise("lgamma(x)",       x="digamma(x)",                          on=BETWEEN_POLES)
elementwise("digamma(x)",      x="trigamma(x)",                         on=BETWEEN_POLES)
elementwise("trigamma(x)",     x="polygamma(2, x)",                     on=BETWEEN_POLES)
elementwise("polygamma(n, x)", x="polygamma(n + 1, x)",                 on={"n": ORDER, "x": BETWEEN_POLES})

# -- complex numbers: a formula is the derivative of an analytic function; with `by_conjugate`, it is none -------------
elementwise("complex128(x)", "complex64(x)", "real(x)",
                               x="1.0",                                 on=PLANE)
elementwise("imag(x)",         x="0.0",                                 on=PLANE,      of_complex={"x": "-1j"})
elementwise("complex(x, y)",   x="1.0",                                 y="1j")
elementwise("conjugate(x)",    x="1.0",                                 on=PLANE,      of_complex={"x": "0.0"},
            by_conjugate={"x": "1.0"})

# -- floating-point numbers as such ----------------------------------------------------------------------------------
elementwise("float(x)", "float64(x)", "float32(x)", "nextafter(x, y)",
                               x="1.0")
elementwise("ldexp(x, n)",     x="ldexp(1.0, n)",                       on={"n": INTEGER})

# -- zero wherever the derivative exists ------------------------------------------------------------------------------
constant("floor(x)", "ceil(x)", "trunc(x)", "rint(x)", "sign(x)", "angle(x)", "spacing(x)", "int(x)", "bool(x)")
constant("floor_divide(x, y)", on=AWAY_FROM_ZERO)
constant("less(x, y)", "less_equal(x, y)", "greater(x, y)", "greater_equal(x, y)", "equal(x, y)", "not_equal(x, y)")
constant("isnan(x)", "isinf(x)", "isfinite(x)", "isposinf(x)", "isneginf(x)", "signbit(x)")
constant("logical_and(x, y)", "logical_or(x, y)", "logical_xor(x, y)", "logical_not(x)", on=BOOLEAN)
constant("bitwise_and(x, y)", "bitwise_or(x, y)", "bitwise_xor(x, y)", "invert(x)", on=INTEGER)
constant("left_shift(x, y)", "right_shift(x, y)", "gcd(x, y)", "lcm(x, y)", on=INTEGER)
constant("round(x, n)", on={"n": UNITS})
constant("range_length(x, y, z)", on=ORDER)
constant("stop_gradient(x)", on=INTEGER)  # by definition: differences of floats would show the identity
