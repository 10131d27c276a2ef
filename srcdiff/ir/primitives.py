"""The primitives: every scalar operation the IR knows, with the type of its result and how Python spells it.

A primitive names no library. `result` determines its type from the types of its arguments:

* `float`: a float, `float32` only if all arguments are;
* `same`: an integer if all arguments are integers (booleans count as integers), else a float;
* `float64`, `float32`, `complex128`, `complex64`, `int`, `bool`: always that.

Of complex numbers, `OF_COMPLEX` says it.

`spelling` is Python text with `{0}`, `{1}` for the arguments, and `strength` its operator precedence (a call is the
strongest). It means the same in Python and in Numba. Where NumPy has the function, it is NumPy's, which returns
infinity or NaN where `math` raises. `names` are the functions by which users call the primitive: attributes of `math`,
`numpy` or builtins; those that this Python or NumPy lacks are skipped.
"""

from __future__ import annotations

import builtins
import keyword

from srcdiff.quick_dataclasses import dataclass

ATOM = 100  # precedence of a name, a literal or a call


@dataclass(frozen=True, slots=True)
class Primitive:
    name: str
    arity: int
    result: str
    spelling: str
    strength: int = ATOM
    names: tuple[str, ...] = ()
    cheap: bool = False
    """Whether it is cheaper to recompute than to store."""
    support: str = ""
    """The function of `srcdiff.rules` that the spelling calls, if any."""
    library: str = ""
    """The module of SciPy whose compiled function the spelling calls, if any: no GPU has it."""
    scipy: tuple[str, ...] = ()
    """The functions of `scipy.special` that users call it by."""
    slow: bool = False
    """Whether it takes too long to be tried at many points, or may not return from unusual ones."""

    @property
    def whole(self) -> bool:
        """Whether it takes integers only; booleans count as integers."""
        return self.name in _OF_INTEGERS


PRIMITIVES: dict[str, Primitive] = {}

_OF_INTEGERS = frozenset(
    ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert", "gcd", "lcm", "range_length")
)


def length_of_range(start: int, stop: int, step: int) -> int:
    """How many integers a range has; Python's `len` knows no more than 2**63 - 1.

    >>> length_of_range(0, 10, 3), length_of_range(0, 0, 1), length_of_range(2**70, 0, -1) == 2**70
    (4, 0, True)
    """
    integers = range(start, stop, step)
    return (integers[-1] - integers[0]) // step + 1 if integers else 0


def _operator(name: str, arity: int, result: str, spelling: str, strength: int, names: str = "") -> None:
    """Add a primitive that Python writes as an operator."""
    every_name = (f"np.{name}", *names.split())
    PRIMITIVES[name] = Primitive(name, arity, result, spelling, strength, every_name, cheap=True)


def _function(
    name: str,
    arity: int,
    result: str,
    called: str = "",
    names: str = "",
    cheap: bool = False,
    support: bool = False,
    spelling: str = "",
    scipy: str = "",
    slow: bool = False,
) -> None:
    """Add a primitive that Python writes as a call of `called`, by default the function of this name in NumPy."""
    called = called or f"np.{name}"
    spelling = spelling or f"{called}({', '.join(f'{{{k}}}' for k in range(arity))})"
    library_name = (called,) if "." in called else ()
    support_name = called if support else ""
    every_name = (*library_name, *names.split())
    of_scipy = tuple(scipy.split())
    PRIMITIVES[name] = Primitive(
        name, arity, result, spelling, ATOM, every_name, cheap, support_name, scipy=of_scipy, slow=slow
    )


def _compiled(name: str, arity: int, called: str = "", result: str = "float", slow: bool = False) -> None:
    """Add a primitive that Python writes as a call of a function of `scipy.special`, by default that of this name.

    With three arguments or more, some of them loop for ever, or crash, where arguments are infinite or very large.
    """
    slow = slow or arity > 2
    arguments = ", ".join(f"{{{k}}}" for k in range(arity))
    spelling = called or f"special.{name}({arguments})"
    scipy = () if called else (name,)
    PRIMITIVES[name] = Primitive(name, arity, result, spelling, library="special", scipy=scipy, slow=slow)


# fmt: off
# Precedence follows the Python grammar: a number that is higher binds tighter.
#         primitive        arity result   spelling               strength   other names
_operator("where",           3, "same",  "{1} if {0} else {2}",  5)
_operator("logical_or",      2, "bool",  "{0} or {1}",          10)
_operator("logical_and",     2, "bool",  "{0} and {1}",         12)
_operator("logical_not",     1, "bool",  "not {0}",             14)
_operator("less",            2, "bool",  "{0} < {1}",           20)
_operator("less_equal",      2, "bool",  "{0} <= {1}",          20)
_operator("greater",         2, "bool",  "{0} > {1}",           20)
_operator("greater_equal",   2, "bool",  "{0} >= {1}",          20)
_operator("equal",           2, "bool",  "{0} == {1}",          20)
_operator("not_equal",       2, "bool",  "{0} != {1}",          20)
_operator("bitwise_or",      2, "same",  "{0} | {1}",           25)
_operator("bitwise_xor",     2, "same",  "{0} ^ {1}",           26)
_operator("bitwise_and",     2, "same",  "{0} & {1}",           27)
_operator("left_shift",      2, "same",  "{0} << {1}",          28,        "np.bitwise_left_shift")
_operator("right_shift",     2, "same",  "{0} >> {1}",          28,        "np.bitwise_right_shift")
_operator("add",             2, "same",  "{0} + {1}",           30)
_operator("subtract",        2, "same",  "{0} - {1}",           30)
_operator("multiply",        2, "same",  "{0} * {1}",           40)
_operator("divide",          2, "float", "{0} / {1}",           40,        "np.true_divide")
_operator("floor_divide",    2, "same",  "{0} // {1}",          40)
_operator("remainder",       2, "same",  "{0} % {1}",           40,        "np.mod")
_operator("negative",        1, "same",  "-{0}",                50)
_operator("positive",        1, "same",  "+{0}",                50)
_operator("invert",          1, "same",  "~{0}",                50,        "np.bitwise_not np.bitwise_invert")
_operator("power",           2, "same",  "{0} ** {1}",          60,        "np.pow builtins.pow")

#         primitive         arity result    called            other names
# -- from one type to another
# Numba's float() leaves a float32 as it is; np.float64() does not.
_function("float",           1, "float",   "float",           "builtins.float",                        cheap=True)
_function("float64",         1, "float64", "np.float64",      "np.double",                             cheap=True)
_function("float32",         1, "float32", "np.float32",      "np.single",                             cheap=True)
_function("int",             1, "int",     "int",             "builtins.int math.trunc np.int64 np.intp", cheap=True)
_function("bool",            1, "bool",    "bool",            "builtins.bool np.bool np.bool_",        cheap=True)

# -- complex numbers
_function("complex128",      1, "complex128", "np.complex128", "np.cdouble",                            cheap=True)
_function("complex64",       1, "complex64",  "np.complex64",  "np.csingle",                            cheap=True)
_function("complex",         2, "complex128", "complex",                                                cheap=True)
_function("conjugate",       1, "same",    "np.conj",         "np.conjugate",                          cheap=True)
_operator("real",            1, "same",    "{0}.real",        90)
_operator("imag",            1, "same",    "{0}.imag",        90)

# -- sizes and signs
_function("absolute",        1, "same",    "abs",             "builtins.abs np.absolute np.abs",       cheap=True)
_function("fabs",            1, "float",   "np.fabs",         "math.fabs",                             cheap=True)
_function("sign",            1, "same",                                                                cheap=True)
_function("copysign",        2, "float",   "np.copysign",     "math.copysign",                         cheap=True)
_function("maximum",         2, "same",                                                                cheap=True)
_function("minimum",         2, "same",                                                                cheap=True)
_function("clip",            3, "same",    "clip",  spelling="np.minimum(np.maximum({0}, {1}), {2})",   cheap=True)
_function("fmax",            2, "same",                                                                cheap=True)
_function("fmin",            2, "same",                                                                cheap=True)
_function("heaviside",       2, "float64", "heaviside",       "np.heaviside",             cheap=True, support=True)

# -- whole numbers and remainders
_function("floor",           1, "same",                                                                cheap=True)
_function("ceil",            1, "same",                                                                cheap=True)
_function("trunc",           1, "same",    "np.trunc",        "np.fix",                                cheap=True)
_function("rint",            1, "float",                                                               cheap=True)
_function("fmod",            2, "same",    "np.fmod",         "math.fmod")
_function("gcd",             2, "int",     "np.gcd",          "math.gcd")
_function("lcm",             2, "int",     "np.lcm",          "math.lcm")

# -- powers and roots
_function("square",          1, "same",                                                                cheap=True)
_function("reciprocal",      1, "same",                                                                cheap=True)
_function("sqrt",            1, "float",   "np.sqrt",         "math.sqrt")
_function("cbrt",            1, "float",   "np.cbrt",         "math.cbrt", scipy="cbrt")
_function("hypot",           2, "float",   "np.hypot",        "math.hypot")
_function("float_power",     2, "float64", "np.float_power",  "math.pow")

# -- a strong zero: zero times anything, and zero over anything, is zero (passes/strong_zeros.py writes them as choices)
_function("strong_multiply", 2, "float64", "strong_multiply", spelling="({0} * {1} if {0} != 0.0 else 0.0)", cheap=True)
_function("strong_divide",   2, "float64", "strong_divide",   spelling="({0} / {1} if {0} != 0.0 else 0.0)", cheap=True)

# -- exponentials and logarithms
_function("exp",             1, "float",   "np.exp",          "math.exp")
_function("exp2",            1, "float",   "np.exp2",         "math.exp2", scipy="exp2")
_function("expm1",           1, "float",   "np.expm1",        "math.expm1", scipy="expm1")
_function("log",             1, "float",   "np.log",          "math.log")
_function("log2",            1, "float",   "np.log2",         "math.log2")
_function("log10",           1, "float",   "np.log10",        "math.log10")
_function("log1p",           1, "float",   "np.log1p",        "math.log1p", scipy="log1p")
_function("logaddexp",       2, "float")
_function("logaddexp2",      2, "float")

# -- circular and hyperbolic functions
_function("sin",             1, "float",   "np.sin",          "math.sin")
_function("cos",             1, "float",   "np.cos",          "math.cos")
_function("tan",             1, "float",   "np.tan",          "math.tan")
_function("arcsin",          1, "float",   "np.arcsin",       "np.asin math.asin")
_function("arccos",          1, "float",   "np.arccos",       "np.acos math.acos")
_function("arctan",          1, "float",   "np.arctan",       "np.atan math.atan")
_function("arctan2",         2, "float",   "np.arctan2",      "np.atan2 math.atan2")
_function("sinh",            1, "float",   "np.sinh",         "math.sinh")
_function("cosh",            1, "float",   "np.cosh",         "math.cosh")
_function("tanh",            1, "float",   "np.tanh",         "math.tanh")
_function("arcsinh",         1, "float",   "np.arcsinh",      "np.asinh math.asinh")
_function("arccosh",         1, "float",   "np.arccosh",      "np.acosh math.acosh")
_function("arctanh",         1, "float",   "np.arctanh",      "np.atanh math.atanh")
_function("degrees",         1, "float",   "np.degrees",      "np.rad2deg math.degrees",               cheap=True)
_function("radians",         1, "float",   "np.radians",      "np.deg2rad math.radians",               cheap=True)
_function("angle",           1, "float64",                                                             cheap=True)
_function("sinc",            1, "float64")
_function("sinc_derivative", 2, "float64", "sinc_derivative",                                          support=True)

# -- the error function and the gamma function
_function("erf",             1, "float",   "math.erf",        scipy="erf")
_function("erfc",            1, "float",   "math.erfc",       scipy="erfc")
_function("gamma",           1, "float",   "math.gamma")
_function("lgamma",          1, "float",   "math.lgamma")
_function("digamma",         1, "float64", "digamma",         scipy="digamma psi",                     support=True)
_function("trigamma",        1, "float64", "trigamma",                                                 support=True)
_function("polygamma",       2, "float64", "polygamma",                                                support=True)

# -- functions of scipy.special that have a source in rules/scipy_functions.py, for every backend
_function("gamma_function",  1, "float64", "gamma_function",  scipy="gamma",                           support=True)
_function("gammaln",         1, "float64", "gammaln",         scipy="gammaln",                         support=True)
_function("loggamma",        1, "float64", "loggamma",        scipy="loggamma",                        support=True)
_function("gammasgn",        1, "float64", "gammasgn",        scipy="gammasgn",                        support=True)
_function("betaln",          2, "float64", "betaln",          scipy="betaln",                          support=True)
_function("digamma_difference", 2, "float64", "digamma_difference",                                    support=True)
_function("ndtr",            1, "float64", "ndtr",            scipy="ndtr",                            support=True)
_function("expit",           1, "float64", "expit",           scipy="expit",                           support=True)
_function("logit",           1, "float64", "logit",           scipy="logit",                           support=True)
_function("log_expit",       1, "float64", "log_expit",       scipy="log_expit",                       support=True)
_function("xlogy",           2, "float64", "xlogy",           scipy="xlogy",                           support=True)
_function("xlog1py",         2, "float64", "xlog1py",         scipy="xlog1py",                         support=True)
_function("entr",            1, "float64", "entr",            scipy="entr",                            support=True)
_function("rel_entr",        2, "float64", "rel_entr",        scipy="rel_entr",                        support=True)
_function("kl_div",          2, "float64", "kl_div",          scipy="kl_div",                          support=True)
_function("huber",           2, "float64", "huber",           scipy="huber",                           support=True)
_function("pseudo_huber",    2, "float64", "pseudo_huber",    scipy="pseudo_huber",                    support=True)
_function("exprel_derivative", 2, "float64", "exprel_derivative",                                      support=True)
_function("boxcox",          2, "float64", "boxcox",          scipy="boxcox",                          support=True)
_function("boxcox1p",        2, "float64", "boxcox1p",        scipy="boxcox1p",                        support=True)
_function("exp10",           1, "float64", "exp10",           scipy="exp10",                           support=True)
_function("lambertw",        2, "float64", "lambertw",                                                 support=True)
_function("zeta",            2, "float64", "zeta",                                                     support=True)
_function("exprel",          1, "float64", "exprel_derivative", spelling="exprel_derivative(0, {0})", scipy="exprel",
          support=True)

# -- derivatives of such functions with respect to shapes and orders, in rules/shape_derivatives.py
_function("gamma_density",   2, "float64", "gamma_density",                                            support=True)
_function("gamma_density_by_a", 3, "float64", "gamma_density_by_a",                                    support=True)
_function("gammainc_slope",  2, "float64", "gammainc_slope",                                support=True, slow=True)
_function("betainc_slope",   4, "float64", "betainc_slope",                                 support=True, slow=True)
_function("gammainc_by_a",   3, "float64", "gammainc_by_a",                                 support=True, slow=True)
_function("beta_density",    3, "float64", "beta_density",                                             support=True)
_function("beta_density_by", 5, "float64", "beta_density_by",                               support=True, slow=True)
_function("betainc_by",      5, "float64", "betainc_by",                                    support=True, slow=True)
_function("kve_by_order",    3, "float64", "kve_by_order",                                  support=True, slow=True)

# -- compiled functions of scipy.special
for _name in (
    *("erfcx", "erfi", "dawsn", "erfinv", "erfcinv", "log_ndtr", "ndtri", "ndtri_exp", "cosm1"),
    *("sindg", "cosdg", "tandg", "j0", "j1", "y0", "y1", "i0", "i0e", "i1", "i1e", "k0", "k0e", "k1", "k1e"),
    *("ellipk", "ellipkm1", "ellipe", "exp1", "expi", "spence"),
):
    _compiled(_name, 1)
for _name in (
    *("beta", "poch", "binom", "gammainc", "gammaincc", "gammaincinv", "gammainccinv", "jv", "yv", "iv", "ive", "kv"),
    *("kve", "ellipkinc", "ellipeinc", "hyp0f1", "owens_t", "inv_boxcox", "powm1", "stdtr", "stdtrit", "expn"),
):
    _compiled(_name, 2)
for _name in ("betainc", "betaincc", "betaincinv", "hyp1f1", "voigt_profile"):
    _compiled(_name, 3)
_compiled("hyp2f1", 4, slow=True)
for _name, _parts in (
    ("airy", ("airy_ai", "airy_aip", "airy_bi", "airy_bip")),
    ("sici", ("sine_integral", "cosine_integral")),
    ("shichi", ("sinh_integral", "cosh_integral")),
    ("fresnel", ("fresnel_s", "fresnel_c")),
):
    for _k, _part in enumerate(_parts):
        _compiled(_part, 1, f"special.{_name}({{0}})[{_k}]")
for _part in ("real", "imag"):
    _compiled(f"wofz_{_part}", 2, f"special.wofz(complex({{0}}, {{1}})).{_part}", result="float64")

# -- floating-point numbers as such
_function("isnan",           1, "bool",    "np.isnan",        "math.isnan",                            cheap=True)
_function("isinf",           1, "bool",    "np.isinf",        "math.isinf",                            cheap=True)
_function("isfinite",        1, "bool",    "np.isfinite",     "math.isfinite",                         cheap=True)
_function("isposinf",        1, "bool",                                                                cheap=True)
_function("isneginf",        1, "bool",                                                                cheap=True)
_function("signbit",         1, "bool",                                                                cheap=True)
_function("nextafter",       2, "float",   "np.nextafter",    "math.nextafter",                        cheap=True)
_function("spacing",         1, "float",                                                               cheap=True)
_function("ldexp",           2, "float64", "np.ldexp",  "math.ldexp", spelling="np.ldexp(np.float64({0}), {1})")
_function("logical_xor",     2, "bool",                                                                cheap=True)

# -- functions that NumPy does not have
_function("round",           2, "float",   "round",                                                    cheap=True)
_function("range_length",    3, "int",     "len",   spelling="len(range({0}, {1}, {2}))",              cheap=True)
_function("stop_gradient",   1, "same",    "",      spelling="({0})",                                   cheap=True)

OF_COMPLEX: dict[str, str] = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "negative", "positive", "power"), "same"),
    **dict.fromkeys(("square", "reciprocal", "sqrt", "exp", "log", "log10", "sin", "cos", "tan", "sinh"), "same"),
    **dict.fromkeys(("cosh", "tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"), "same"),
    **dict.fromkeys(("conjugate", "stop_gradient", "where"), "same"),
    **dict.fromkeys(("strong_multiply", "strong_divide", "complex128"), "complex128"),
    "complex64": "complex64",
    **dict.fromkeys(("real", "imag"), "real"),
    **dict.fromkeys(("equal", "not_equal", "bool", "isnan", "isinf", "isfinite"), "bool"),
}
"""The primitives of complex numbers, with the type of their results: as wide as the arguments, or their real parts."""

BROUGHT_ALONG = frozenset(
    (
        *(row.support for row in PRIMITIVES.values() if row.support),
        *("as_long", "block_sum", "copied", "fitting", "grown", "more_parts", "more_planes", "more_rows", "real_eig"),
        *("atomic_add", "iterations_of", "thread_blocks"),
        *("lower_product", "lu_factors", "real_roots", "solve_lower", "solve_lower_transposed"),
        *("bell_polynomials", "bell_polynomials_of_two", "beta_weight_by", "harmonic_by", "log1p_excess"),
        *("log_beta_derivatives", "log_gamma_derivatives", "log_gamma_differences", "stirling_rest"),
        *("solve_lower_transposed_upper", "solve_lower_transposed_vector", "solve_lower_vector", "wider_rows"),
        "solve_lu",
    )
)
"""The names of functions of ours that are written beside the code that calls them; nothing else has such a name."""

THREADS = ("get_num_threads", "prange")
"""The functions of Numba for programs with loops in threads."""

WORK_OF_BLOCK = 262144
"""The operations of a block of iterations, at least: less is done sooner than other threads start.

`python -m benchmarks.parallel_threshold` measures it.
"""

RESERVED = frozenset(
    {*keyword.kwlist, *dir(builtins), "np", "math", "special", "cuda", "device", "_", *BROUGHT_ALONG, *THREADS}
)
"""Names that mean something else in generated code than a value of the program."""
