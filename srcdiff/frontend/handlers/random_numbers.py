"""Random numbers: `np.random`, NumPy generators, and Python's `random`.

A draw is a call out of generated code. It takes the number of draws before it and returns the next number, which is a
variable of the program. So all draws happen in program order, each once.
"""

from __future__ import annotations

import ast
import inspect
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from srcdiff.frontend.domain.abstract_values import Abstract, Arguments, Keywords, List, Record, Static, Tuple, is_none
from srcdiff.frontend.domain.reader import Reader
from srcdiff.frontend.domain.state import DRAWS
from srcdiff.frontend.handlers.builtin_functions import call_len
from srcdiff.frontend.interpreter.call_arguments import computed
from srcdiff.frontend.interpreter.evaluation import bound_to, call_named, call_value, known_value
from srcdiff.frontend.interpreter.iteration import unpacked
from srcdiff.frontend.interpreter.library_calls import library_call
from srcdiff.frontend.interpreter.list_elements import as_iteration
from srcdiff.frontend.interpreter.materialization import forced
from srcdiff.frontend.interpreter.numbers import as_integer, as_number, is_array
from srcdiff.frontend.interpreter.representation import as_value
from srcdiff.frontend.interpreter.tables import draws_from, handles
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array
from srcdiff.library import random_draws
from srcdiff.library.blas_lapack import call_out
from srcdiff.library.call_outs import CallOut, Kind
from srcdiff.library.random_draws import NUMBA, Draw
from srcdiff.quick_dataclasses import dataclass
from srcdiff.signature.random_sources import source_layout

_NO_DEFAULT = inspect.Parameter.empty
_NUMBERS, _INTEGERS = "float64", "int64"
_HELP = "draw the numbers outside the function and pass them in"


@dataclass(frozen=True, slots=True)
class Distribution:
    """A sampling method, as a function of standard draws."""

    draw: Draw
    parameters: tuple[tuple[str, Any], ...] = ()
    made_by: Callable[..., Any] = random_draws.as_it_is
    given: int = 0
    """The number of parameters of the draw. The others are those of `made_by`."""
    dtype: str = _NUMBERS
    has_size: bool = True


def _of(*names: str, **defaults: Any) -> tuple[tuple[str, Any], ...]:
    return (*((name, _NO_DEFAULT) for name in names), *defaults.items())


def _passed(name: str, *names: str, dtype: str = _NUMBERS, **defaults: Any) -> Distribution:
    parameters = _of(*names, **defaults)
    return Distribution(Draw(name), parameters, given=len(parameters), dtype=dtype)


_LOCATED = {name: _of(loc=0.0, scale=1.0) for name in ("laplace", "gumbel", "logistic")}
_OF_NUMPY: dict[str, Distribution] = {
    "random": Distribution(Draw("random")),
    "standard_normal": Distribution(Draw("standard_normal")),
    "standard_exponential": Distribution(Draw("standard_exponential")),
    "uniform": Distribution(Draw("random"), _of(low=0.0, high=1.0), random_draws.rising),
    "normal": Distribution(Draw("standard_normal"), _of(loc=0.0, scale=1.0), random_draws.located),
    "lognormal": Distribution(Draw("standard_normal"), _of(mean=0.0, sigma=1.0), random_draws.exponential_of),
    "exponential": Distribution(Draw("standard_exponential"), _of(scale=1.0), random_draws.scaled),
    "weibull": Distribution(Draw("standard_exponential"), _of("a"), random_draws.root_of),
    "rayleigh": Distribution(Draw("rayleigh", (1.0,)), _of(scale=1.0), random_draws.scaled),
    **{n: Distribution(Draw(n, (0.0, 1.0)), p, random_draws.located) for n, p in _LOCATED.items()},
    "gamma": Distribution(Draw("standard_gamma"), _of("shape", scale=1.0), random_draws.scaled, given=1),
    "standard_gamma": _passed("standard_gamma", "shape"),
    "standard_cauchy": _passed("standard_cauchy"),
    "standard_t": _passed("standard_t", "df"),
    "chisquare": _passed("chisquare", "df"),
    "beta": _passed("beta", "a", "b"),
    "f": _passed("f", "dfnum", "dfden"),
    "pareto": _passed("pareto", "a"),
    "power": _passed("power", "a"),
    "vonmises": _passed("vonmises", "mu", "kappa"),
    "wald": _passed("wald", "mean", "scale"),
    "triangular": _passed("triangular", "left", "mode", "right"),
    "poisson": _passed("poisson", dtype=_INTEGERS, lam=1.0),
    "binomial": _passed("binomial", "n", "p", dtype=_INTEGERS),
    "negative_binomial": _passed("negative_binomial", "n", "p", dtype=_INTEGERS),
    "geometric": _passed("geometric", "p", dtype=_INTEGERS),
    "hypergeometric": _passed("hypergeometric", "ngood", "nbad", "nsample", dtype=_INTEGERS),
    "zipf": _passed("zipf", "a", dtype=_INTEGERS),
    "logseries": _passed("logseries", "p", dtype=_INTEGERS),
}
_OLD_UNIFORM = Distribution(Draw("random"), _of(low=0.0, high=1.0), random_draws.between)
_LEGACY = {
    **_OF_NUMPY,
    "uniform": _OLD_UNIFORM,
    **dict.fromkeys(("random_sample", "ranf", "sample"), _OF_NUMPY["random"]),
}


def _single(method: str, made_by: Any = random_draws.as_it_is, constants: Any = (), **defaults: Any) -> Distribution:
    draw = Draw(method, constants, takes_size=False)
    return Distribution(draw, tuple(defaults.items()), made_by, has_size=False)


_OF_PYTHON: dict[str, Distribution] = {
    "random": _single("random"),
    "uniform": _single("random", random_draws.between, a=_NO_DEFAULT, b=_NO_DEFAULT),
    "gauss": _single("gauss", random_draws.without_axes, (0.0, 1.0), mu=0.0, sigma=1.0),
    "normalvariate": _single("normalvariate", random_draws.without_axes, (0.0, 1.0), mu=0.0, sigma=1.0),
    "expovariate": _single("expovariate", random_draws.rate, (1.0,), lambd=1.0),
    "randint": Distribution(Draw("randint", takes_size=False), _of("a", "b"), given=2, dtype=_INTEGERS, has_size=False),
}


def kind_of_source(source: Abstract) -> type | str:
    if isinstance(source, Record):
        return source.kind.kind
    assert isinstance(source, Static)
    return NUMBA if isinstance(source.value, str) else type(source.value)


# -- draws -----------------------------------------------------------------------------------------------------------


def call_out_of_program(
    reader: Reader, call: CallOut, values: Sequence[Value], kinds: Sequence[Kind], node: ast.AST
) -> Abstract:
    """A call ordered among the draws. Returns its result without the count."""
    if reader.is_kernel:
        reader.refuse("SD302", node, "kernels cannot draw random numbers", help_=_HELP)
    if reader.units_in_progress:
        reader.refuse("SD302", node, "recursive functions cannot draw random numbers", help_=_HELP)
    call.is_seen = True
    count = as_value(reader, reader.cells.get(DRAWS, Static(0)))
    values = (count, *values)
    ranks = [v.type.rank if isinstance(v.type, Array) else 0 for v in values]
    slots = ", ".join(f"{{{k}}}" for k in range(len(values)))
    found = library_call(reader, call_out(call, f"{{call}}({slots})", ranks, [*kinds, ("int64", 0)]), [*values], node)
    *results, after = found.items if isinstance(found, Tuple) else (found,)
    assert isinstance(after, Value)
    after.name = "draws"
    reader.cells[DRAWS] = after
    return results[0] if results else Static(None)


def called(
    reader: Reader,
    source: Abstract,
    how: Draw,
    given: Sequence[Value],
    shape: Sequence[Value],
    kinds: tuple[Kind, ...],
    node: ast.AST,
) -> Abstract:
    """The result of a method of a source."""
    of = source.value if isinstance(source, Static) else None
    if kind_of_source(source) == NUMBA:
        module = "random" if str(of).startswith("random.") else "np.random"
        how, of = Draw(f"{module}.{how.method}", how.constants, how.keywords, how.takes_size), NUMBA
    number = [as_value(reader, source.items[0])] if isinstance(source, Record) else []
    call = random_draws.call_for(how, of, len(shape), len(given), kinds)
    return call_out_of_program(reader, call, [*number, *given, *shape], kinds, node)


def draw(
    reader: Reader,
    source: Abstract,
    how: Draw,
    given: Sequence[Value],
    shape: Sequence[Value],
    node: ast.AST,
    dtype: str = _INTEGERS,
) -> Abstract:
    """New random numbers."""
    found = called(reader, source, how, given, shape, ((dtype, len(shape)),), node)
    if isinstance(found, Value) and shape:
        reader.made(found, tuple(reader.size_key(n) for n in shape))
    return found


@draws_from("source")
def call_source(
    reader: Reader, source: Abstract, name: str, args: Arguments, keywords: Keywords, node: ast.AST
) -> Abstract:
    """A method of a source of random numbers."""
    kind = kind_of_source(source)
    args, keywords = computed(reader, args, keywords)
    is_python = kind == NUMBA and str(getattr(source, "value", "")).startswith("random.")
    is_python = is_python or (isinstance(kind, type) and issubclass(kind, random.Random))
    special = _SPECIAL.get(name)
    is_new = kind is np.random.Generator
    if special is not None and name in (_SPECIAL_OF_PYTHON if is_python else _SPECIAL):
        return special(reader, node, source, is_python, *args, **keywords)
    table = _OF_PYTHON if is_python else _OF_NUMPY if is_new else _LEGACY
    found = table.get(name)
    if found is None:
        owner = "random" if is_python else "np.random" if not is_new else "rng"
        message = f"`{owner}.{name}` draws random numbers in a way that is not supported"
        reader.refuse("SD302", node, message, help_=_HELP)
    size = inspect.Parameter("size", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=Static(None))
    parameters = [
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=d if d is _NO_DEFAULT else Static(d))
        for n, d in found.parameters
    ]
    signature = inspect.Signature([*parameters, *([size] if found.has_size else [])])
    bound = bound_to(reader, signature, name, args, keywords, node)
    bound.apply_defaults()
    values = [bound.arguments[n] for n, _ in found.parameters]
    shape = shape_of(reader, bound.arguments.get("size", Static(None)), values, node)
    given = [_parameter(reader, x, node) for x in values[: found.given]]
    z = draw(reader, source, found.draw, given, shape, node, found.dtype)
    return forced(reader, call_value(reader, Static(found.made_by), [z, *values[found.given :]], node))


def _parameter(reader: Reader, x: Abstract, node: ast.AST) -> Value:
    return x if isinstance(x, Value) and is_array(x) else as_number(reader, x, node)


def shape_of(reader: Reader, size: Abstract, parameters: Sequence[Abstract], node: ast.AST) -> list[Value]:
    """The requested shape, or the broadcast shape of the parameters."""
    if isinstance(size, Tuple | List):
        return [as_integer(reader, n, node, "a shape needs integers") for n in unpacked(reader, size, node)]
    if not is_none(size):
        return [as_integer(reader, size, node, "a shape needs integers")]
    arrays = [x for x in parameters if is_array(x)]
    if not arrays:
        return []
    whole = forced(reader, call_value(reader, Static(random_draws.added), arrays, node))
    assert isinstance(whole, Value)
    return [reader.dim(whole, axis) for axis in range(whole.array.rank)]


# -- what has arguments of its own -----------------------------------------------------------------------------------


def call_rand(reader: Reader, node: ast.AST, source: Abstract, is_python: bool, *size: Abstract) -> Abstract:
    return call_source(reader, source, "random", [], {"size": Tuple(size) if size else Static(None)}, node)


def call_randn(reader: Reader, node: ast.AST, source: Abstract, is_python: bool, *size: Abstract) -> Abstract:
    return call_source(reader, source, "standard_normal", [], {"size": Tuple(size) if size else Static(None)}, node)


def call_integers(
    reader: Reader,
    node: ast.AST,
    source: Abstract,
    is_python: bool,
    low: Abstract,
    high: Abstract = Static(None),
    size: Abstract = Static(None),
    *,
    endpoint: Abstract = Static(False),
) -> Abstract:
    limits = [low] if is_none(high) else [low, high]
    name = "integers" if kind_of_source(source) is np.random.Generator else "randint"
    is_closed = known_value(reader, endpoint, "`endpoint`", node)
    keywords = (("endpoint", is_closed),) if is_closed else ()
    given = [as_integer(reader, x, node, "the limits must be integers") for x in limits]
    return draw(reader, source, Draw(name, keywords=keywords), given, shape_of(reader, size, [], node), node)


def call_randrange(reader: Reader, node: ast.AST, source: Abstract, is_python: bool, *limits: Abstract) -> Abstract:
    given = [as_integer(reader, x, node, "the limits must be integers") for x in limits]
    return draw(reader, source, Draw("randrange", takes_size=False), given, [], node)


def call_choice(
    reader: Reader,
    node: ast.AST,
    source: Abstract,
    is_python: bool,
    a: Abstract,
    size: Abstract = Static(None),
    replace: Abstract = Static(True),
    p: Abstract = Static(None),
) -> Abstract:
    """Choose elements by random indices. The elements have derivatives."""
    if not isinstance(replace, Static) or (is_python and not is_none(size)):
        reader.refuse("SD304", node, "`choice` is not supported with these arguments")
    is_sequence = is_array(a) or isinstance(a, Tuple | List)
    count = as_value(reader, call_len(reader, node, a)) if is_sequence else as_integer(reader, a, node)
    if is_array(a) and isinstance(a, Value) and a.array.rank != 1:
        reader.refuse("SD102", node, "`choice` of an array with several axes is not supported", help_="draw the index")
    if is_python or kind_of_source(source) == NUMBA:
        if not is_none(p) or replace != Static(True) or not is_none(size):
            reader.refuse("SD102", node, "this `choice` is supported for one element only", help_="draw the index")
        how = Draw("randrange", takes_size=False) if is_python else Draw("randint")
        limits = [count] if is_python or kind_of_source(source) != NUMBA else [reader.const(0), count]
        place = draw(reader, source, how, limits, [], node)
    else:
        keywords = (("replace", bool(replace.value)),)
        shape = shape_of(reader, size, [], node)
        if not is_none(p):
            place = _weighted(reader, source, keywords, count, p, shape, node)
        else:
            place = draw(reader, source, Draw("choice", keywords=keywords), [count], shape, node)
    if not is_sequence:
        return place
    if isinstance(a, Tuple | List) and not is_array(place):
        return as_iteration(reader, a).element(place) if isinstance(a, List) else _of_tuple(reader, a, place, node)
    whole = a if is_array(a) else call_named(reader, "array", node, a)
    return forced(reader, call_named(reader, "take", node, whole, place))


def _of_tuple(reader: Reader, a: Tuple, place: Abstract, node: ast.AST) -> Abstract:
    return call_named(reader, "take", node, call_named(reader, "array", node, a), place)


def _weighted(
    reader: Reader,
    source: Abstract,
    keywords: tuple[tuple[str, Any], ...],
    count: Value,
    p: Abstract,
    shape: Sequence[Value],
    node: ast.AST,
) -> Abstract:
    weights = p if is_array(p) else call_named(reader, "array", node, p)
    weights = forced(reader, weights)
    assert isinstance(weights, Value)
    return draw(reader, source, Draw("choice", keywords=keywords, last="p"), [count, weights], shape, node)


def call_permutation(reader: Reader, node: ast.AST, source: Abstract, is_python: bool, x: Abstract) -> Abstract:
    if isinstance(x, List | Tuple):
        x = call_named(reader, "array", node, x)
    count = reader.dim(x, 0) if isinstance(x, Value) and is_array(x) else as_integer(reader, x, node)
    order = _ordered(reader, source, count, node)
    return forced(reader, call_named(reader, "take", node, x, order, axis=Static(0))) if is_array(x) else order


def _ordered(reader: Reader, source: Abstract, count: Value, node: ast.AST) -> Abstract:
    found = called(reader, source, Draw("permutation", takes_size=False), [count], [], ((_INTEGERS, 1),), node)
    assert isinstance(found, Value)
    reader.made(found, (reader.size_key(count),))
    return found


def call_shuffle(reader: Reader, node: ast.AST, source: Abstract, is_python: bool, x: Abstract) -> Abstract:
    if not (isinstance(x, Value) and is_array(x)):
        reader.refuse("SD102", node, "`shuffle` is supported for arrays only", help_="use `permutation`")
    order = _ordered(reader, source, reader.dim(x, 0), node)
    return call_value(reader, Static(random_draws.shuffled), [x, order], node)


def call_seed(reader: Reader, node: ast.AST, source: Abstract, is_python: bool, *seed: Abstract) -> Abstract:
    given = [as_integer(reader, x, node, "a seed must be an integer") for x in seed if not is_none(x)]
    return called(reader, source, Draw("seed", takes_size=False), given, [], (), node)


_SPECIAL: dict[str, Callable[..., Abstract]] = {
    "rand": call_rand,
    "randn": call_randn,
    "integers": call_integers,
    "randint": call_integers,
    "choice": call_choice,
    "permutation": call_permutation,
    "shuffle": call_shuffle,
    "seed": call_seed,
    "randrange": call_randrange,
}
_SPECIAL_OF_PYTHON = ("choice", "seed", "randrange")


# -- sources ---------------------------------------------------------------------------------------------------------


def _maker(function: Callable[..., Any]) -> Callable[..., Abstract]:
    def make(reader: Reader, node: ast.AST, *seed: Abstract) -> Abstract:
        """A source created inside the program. With a seed, it gives the same numbers in each call."""
        given = [as_integer(reader, x, node, "a seed must be an integer") for x in seed if not is_none(x)]
        kind = np.random.Generator if function is np.random.default_rng else function
        call = random_draws.maker_of(function, len(given))
        number = call_out_of_program(reader, call, given, [(_INTEGERS, 0)], node)
        return Record((number,), source_layout(kind))  # type: ignore[arg-type]

    return make


for _function in (np.random.default_rng, np.random.RandomState, random.Random):
    handles(_function)(_maker(_function))
