"""The request in terms of the values of the program: arguments, results, adjoints and tangents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from srcdiff.analyses.symbolic_shapes import lengths_of
from srcdiff.diagnostics import DifferentiationError, Problem
from srcdiff.diagnostics.options import FEW_DIRECTIONS
from srcdiff.frontend import derivation
from srcdiff.frontend.boundary import is_written, parts_of_arguments
from srcdiff.frontend.domain.abstract_values import Abstract, List, Parts, Static, Stored, Tuple
from srcdiff.frontend.domain.lattice import is_computed
from srcdiff.frontend.reading import Reading
from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Block, Function, Slice, Value
from srcdiff.ir.types import Array, is_inexact
from srcdiff.passes.compilation import Compilation
from srcdiff.signature.structures import made_layout
from srcdiff.signature.trees import NODES, Part

_FEW = 8  # results that are fewer than the numbers of an array, as a guess


def leaves(x: Abstract, reading: Reading) -> list[Value]:
    """The values in an argument; for a list, the arrays of its storage."""
    return derivation.leaves(x, reading.lists)


def chosen_values(state: Compilation, name: str) -> list[Value]:
    """The floats in an argument, or an intermediate number of the function."""
    if name not in state.reading.arguments:
        return [state.reading.intermediates[name]] if name in state.reading.intermediates else []
    values = leaves(state.reading.arguments[name], state.reading)
    return [v for v in values if is_inexact(v.type) and v not in state.reading.unchosen]


def outputs_of(state: Compilation) -> list[int]:
    """The places among the function's results that are differentiated."""
    if state.request.mode == "reverse":
        return [output_of(state)]
    results = state.reading.program.main.body.yields
    return [k for k, v in enumerate(results) if is_inexact(v.type)] or list(range(len(results)))


def chosen(state: Compilation, name: str) -> list[Value]:
    """The parts of an argument, or an intermediate number of the function, to differentiate by: floats."""
    if name not in state.reading.arguments:
        return [intermediate(state, name)]
    found = derivation.floats_in(name, state.reading.arguments[name], state.reading.lists, state.span)
    return [v for v in found if v not in state.reading.unchosen]


def intermediate(state: Compilation, name: str) -> Value:
    value = state.reading.intermediates.get(name)
    defined = {v for o in state.main.body.operations for v in o.defines()} | set(state.main.params)
    if value is None or value not in defined or isinstance(value.type, Array) or not is_inexact(value.type):
        what = f"`{name}` is not an argument, and not a float that is assigned once, outside branches and loops"
        raise DifferentiationError([Problem("SD402", what, state.span, help="name an argument with `wrt=`")])
    others = [n for n, v in state.reading.intermediates.items() if v is value and n != name]
    others += [p.name for p in parts_of_arguments(state.reading.arguments) if p.value is value]
    if others:
        what = f"`{name}` and `{others[0]}` are the same number, so the derivative by one of them alone is not defined"
        raise DifferentiationError([Problem("SD402", what, state.span, help="name an argument with `wrt=`")])
    return value


def output_of(state: Compilation) -> int:
    """Which of the function's results is the number to differentiate."""
    derivation.require_number(state.reading.result, state.request.has_aux, state.span)
    return 0


def returns_float(state: Compilation) -> bool:
    try:
        output_of(state)
    except DifferentiationError:
        return False
    return True


def refuse_lost_results(state: Compilation) -> None:
    """Reject a function that returns nothing and changes nothing that its caller gets as a result."""
    reading, mode = state.reading, state.request.mode
    if mode == "reverse" or not (isinstance(reading.result, Static) and reading.result.value is None):
        return
    written = written_arguments(reading)
    outside = [o.name for o in reading.outside if o.value in written and mode != "primal" and is_inexact(o.value.type)]
    ways = [
        *((f"changes the list `{name}`", "return the list") for name in reading.changed_lists),
        *((f"writes to `{name}`, which is not an argument", f"pass `{name}` as an argument") for name in outside),
        *((f"assigns `{name}`", "return what it computes") for name in reading.changed_attributes),
    ]
    if ways:
        what, help_ = ways[0]
        message = f"the function returns nothing and {what}, so it has no result to differentiate"
        raise DifferentiationError([Problem("SD401", message, state.span, help=help_)])


def seeds_of(state: Compilation) -> dict[str, Abstract]:
    """The seeds of the derivative: tangents of the active arguments, or adjoints of results."""
    reading = state.reading
    if state.request.mode == "forward":
        found: dict[str, Abstract] = {}
        for n in state.request.wrt:
            argument, name = _argument(state, n), f"{n}_dot"
            chosen(state, n)  # there is something to take a tangent of
            found[name] = derivation.tangent_beside(argument, reading.lists, name)
        return found
    if state.request.mode != "pullback":
        return {}
    found = {"result_bar": derivation.beside(reading.result, iter(reading.program.main.body.yields), "result_bar")}
    for part in written_results(state):
        name = re.sub(r"\W+", "_", part.name).strip("_") + "_bar"
        while name in found:
            name += "_"
        found[name] = derivation.beside(part.value, iter(leaves(part.value, reading)), name)
    return found


def _argument(state: Compilation, name: str) -> Abstract:
    """An argument that gets a tangent; intermediate numbers cannot have one."""
    if name not in state.reading.arguments:
        message = f"`{name}` is not an argument of the function, so it cannot have a tangent"
        raise DifferentiationError([Problem("SD402", message, state.span, help="name an argument with `wrt=`")])
    return state.reading.arguments[name]


def outputs_with_written(state: Compilation, main: Function, copies: dict[Value, Value]) -> list[Value]:
    """The result of the function, and the final contents of the arrays that it writes to."""
    parts = written_results(state)
    return [*main.body.yields, *(copies.get(x, x) for part in parts for x in leaves(part.value, state.reading))]


def written_results(state: Compilation) -> tuple[Part, ...]:
    """The arrays that the function writes into, as far as they are results; in a Jacobian, if it returns nothing."""
    if state.inside or (state.request.jacobian and not returns_written(state)):
        return ()
    return written_parts(state.reading)


def with_lists_cut(main: Function, result: Abstract) -> Function:
    """The function whose results have of a list's storage as much as the list is long."""
    builder, values = Builder(), iter(main.body.yields)

    def cut(x: Abstract) -> list[Value]:
        if not isinstance(x, Stored):
            return [next(values)] if is_computed(x) else []
        arrays, length = [next(values) for _ in x.arrays], next(values)
        first = (Slice(None, length, None),)
        return [builder.view(a, first, a.name) if isinstance(a.type, Array) else a for a in arrays] + [length]

    yields = tuple(value for leaf in NODES.leaves(result) for value in cut(leaf))
    return replace(main, body=Block((*main.body.operations, *builder.operations), yields))


def written_arguments(reading: Reading) -> set[Value]:
    """The arrays from the caller that the function writes into."""
    main = reading.program.main
    return written_sites(main.body, points_to(main)) & set(main.params)


def written_parts(reading: Reading) -> tuple[Part, ...]:
    """The arrays of floats among the arguments, and in them, that the function writes into."""
    written = written_arguments(reading)
    parts = parts_of_arguments(reading.arguments)
    return tuple(p for p in parts if isinstance(p.value, Value) and p.value in written and is_inexact(p.value.type))


def names_of(reading: Reading, values: set[Value]) -> tuple[str, ...]:
    """The names of the parts of arguments and of outside variables among the values."""
    parts = [p.name for p in parts_of_arguments(reading.arguments) if not values.isdisjoint(leaves(p.value, reading))]
    return (*parts, *(o.name for o in reading.outside if o.value in values))


def apart_pairs(reading: Reading, written: set[Value]) -> tuple[tuple[int, int], ...]:
    """Pairs of the function's values that must not share memory, because one of them is written."""
    params = reading.program.main.params
    arrays = [k for k, p in enumerate(params) if isinstance(p.type, Array)]
    pairs = [(a, b) for n, a in enumerate(arrays) for b in arrays[n + 1 :]]
    return tuple((a, b) for a, b in pairs if params[a] in written or params[b] in written)


def jacobian_form(state: Compilation) -> Abstract:
    """How a Jacobian is made: like the result, with a structure like the arguments in place of each float.

    Of a function that returns nothing, it is a tuple of those for the arrays that the function writes into.
    """
    request, reading = state.request, state.reading
    arguments = [reading.arguments[n] for n in request.wrt]
    if returns_written(state):
        parts = written_parts(reading)
        return Tuple(tuple(derivation.row_of_jacobian(p.value.array.rank, arguments, request.single) for p in parts))
    return derivation.jacobian_form(reading.result, reading.program.main.body.yields, arguments, request.single)


def numbers_of(state: Compilation, known: Mapping[Value, Any]) -> tuple[int | None, int | None]:
    """The numbers of inputs and outputs of a Jacobian, if they are known."""
    main = state.main
    inputs = [v for name in state.request.wrt for v in chosen(state, name)]
    outputs = [v for v in outputs_with_written(state, main, {}) if is_inexact(v.type)]
    lengths = lengths_of(main)
    return lengths.numbers_in(inputs, known), lengths.numbers_in(outputs, known)


def cheaper_mode(state: Compilation) -> str:
    """The mode of a Jacobian inside of a function: the one with fewer sweeps, as far as that can be known."""
    inputs, outputs = numbers_of(state, {})
    if outputs is None:
        return "forward"
    return "pullback" if outputs < (_FEW if inputs is None else inputs) else "forward"


def few_directions(state: Compilation, mode: str) -> int | None:
    """How many directions a Jacobian has by this mode, for all arguments, if they are few and the program says it."""
    numbers = numbers_of(state, {})[0 if mode == "forward" else 1]
    return numbers if numbers is not None and 0 < numbers <= FEW_DIRECTIONS else None


def returns_written(state: Compilation) -> bool:
    """Whether the function returns nothing, so that the arrays it writes to are its results."""
    result = state.reading.result
    return isinstance(result, Static) and result.value is None and not state.inside


def refuse_lists_in_jacobian(state: Compilation) -> None:
    """Lists whose lengths are known only at run time have no axis in a Jacobian."""
    arguments = [state.reading.arguments[n] for n in state.request.wrt if n in state.reading.arguments]
    derivation.refuse_lists_in_jacobian((*arguments, state.reading.result), state.span)


def result_template(state: Compilation) -> str:
    """A template of the returned expression: `{0}` and so on are the function's results in order."""
    asked_for = _template_of_request(state)
    if not state.request.workspace:
        return asked_for
    count = len(state.main.body.yields)
    memory = "".join(f"{{{k}}}, " for k in range(count - len(state.workspace), count))
    return f"({asked_for}), ({memory.strip()})"


def _template_of_request(state: Compilation) -> str:
    request, reading = state.request, state.reading
    count = 0

    def shaped(x: Abstract, constant: bool) -> str:
        return NODES.fold(x, lambda leaf: filled(leaf, constant), grouped)

    def grouped(x: Parts, parts: list[str]) -> str:
        """Dictionaries, dataclasses and lists are tuples in generated code."""
        return (x.layout if isinstance(x, Tuple) else made_layout(tuple, len(parts))).text(parts)

    def filled(x: Abstract, constant: bool) -> str:
        if isinstance(x, List) and x not in reading.lists:
            return "None"  # of an empty list
        if isinstance(x, List):
            parts = [_next() for _ in reading.lists[x].arrays]
            return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        if isinstance(x, Stored):
            return f"({', '.join(_next() for _ in (*x.arrays, x.length))})"
        if isinstance(x, Static) and not is_computed(x):
            return repr(x.value) if constant and is_written(x) else "None"
        if isinstance(x, Value) and not constant and (not is_inexact(x.type) or x in reading.unchosen):
            return "None"  # data has no gradient
        return _next()

    def _next() -> str:
        nonlocal count
        count += 1
        return f"{{{count - 1}}}"

    if request.mode == "primal":
        return shaped(reading.result, True)
    if request.jacobian:
        return shaped(jacobian_form(state), True)
    if request.mode == "forward":
        written = written_parts(reading)
        count_of_parts = request.with_value + 1
        parts = [(shaped(reading.result, True), [_next() for _ in written]) for _ in range(count_of_parts)]
        return ", ".join(f"{first}, ({''.join(f'{array}, ' for array in rest)})" for first, rest in parts)
    result = shaped(reading.result, True) if request.with_value or request.has_aux else ""
    bars = [shaped(reading.arguments.get(name, Static(0.0)), False) for name in request.wrt]
    gradient = bars[0] if request.single else f"({', '.join(bars)}{',' if len(bars) == 1 else ''})"
    if request.has_aux and not request.with_value:
        assert isinstance(reading.result, Tuple)
        count = 1
        auxiliary = shaped(reading.result.items[1], True)
        return f"{gradient}, {auxiliary}"
    return f"{result}, {gradient}" if request.with_value else gradient
