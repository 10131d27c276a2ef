"""Specialisations: derivatives that are compiled for the types of one call, and called with their arguments."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core.errors import NumbaError

from srcdiff.api.direct_arguments import DirectArguments, IndirectError, Passed
from srcdiff.api.workspaces import Memory
from srcdiff.backends.backend import Trait
from srcdiff.backends.numba import numba_cpu
from srcdiff.backends.numba.direct import Direct, UnfitError
from srcdiff.backends.numba.loading import load_for_lengths
from srcdiff.diagnostics import (
    DifferentiationError,
    Problem,
)
from srcdiff.frontend.boundary import kept_parts, parts_of_arguments, result_converter
from srcdiff.frontend.domain.abstract_values import Static, Tuple
from srcdiff.frontend.source.guards import ChangedError
from srcdiff.frontend.source.watch import Watch
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array
from srcdiff.passes.workspace_parameters import no_memory
from srcdiff.signature.checks import Names
from srcdiff.signature.conversion import as_it_is, converter, gradient_converter, with_identity
from srcdiff.signature.descriptions import Description, is_passed
from srcdiff.signature.keys import is_on_device, key_of, layout_on_device
from srcdiff.signature.record_layouts import RECORDS, memory_of_records, records_in
from srcdiff.signature.trees import NODES, TUPLES, VALUES, Part

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.api.derivatives import Derivative
    from srcdiff.driver.compiling import Compiled
    from srcdiff.frontend.reading import Reading

_ARRAY = np.ndarray
_PLAIN = frozenset({float, int})


class Specialisation:
    """A derivative for certain argument types: the compiled function, and conversions of arguments and results."""

    def __init__(
        self,
        compiled: Compiled,
        descriptions: dict[str, Description],
        owner: Derivative,
        args: tuple[Any, ...],
        *,
        exact: bool = False,
    ) -> None:
        self.compiled = compiled
        self.function = compiled.function
        self.version: Any = None
        """What calls run: the function, or its version for the short axes of the first call. Known after that call."""
        self.workspace = compiled.workspace
        self.outside = compiled.reading.outside
        self.watch = Watch(
            owner.function, [*compiled.guards, *owner.guards()], [(o.place, key_of(o.read())) for o in self.outside]
        )
        self.from_outside = self.watch.values()
        """Returns the outside values that the function reads; raises ChangedError if a guard does not hold."""
        names = owner.names
        self.positions = [k for k, n in enumerate(names) if is_passed(descriptions[n])]
        self.converters = [converter(descriptions[n], a) for n, a in zip(names, args, strict=True)]
        self.apart = compiled.apart
        self.concerned = sorted({k for pair in self.apart for k in pair})
        self.paths: list[tuple[int, ...]] = []
        """The paths of the values in the arguments of the compiled code; known after the first call."""
        self.assumes_sizes = compiled.reading.assumes_sizes
        self.stretches = False
        """Whether a call has broadcast axes of length one."""
        returned = compiled.reading.result
        if owner.has_aux and not owner.with_value:
            assert isinstance(returned, Tuple)
            returned = returned.items[1]
        if compiled.form is not None:
            returned = compiled.form
        self.listed = result_converter(returned) or as_it_is
        """Converts the result, or its second part, to the structure that the function returns."""
        self.kept_parts = kept_parts(returned)
        """Puts the parts of a result that have no tangents into its tangent; None if not needed."""
        self.has_numbers = compiled.form is not None and any(
            isinstance(leaf, Value) and not isinstance(leaf.type, Array) for leaf in NODES.leaves(compiled.form)
        )
        """Whether a Jacobian holds numbers. The caller gets them as zero-dimensional arrays."""
        self.returns_lists = result_converter(compiled.reading.result) is not None and (
            owner.mode == "primal" or (owner.mode == "reverse" and (owner.with_value or owner.has_aux))
        )
        if compiled.form is not None:
            self.returns_lists = self.has_numbers or self.listed is not as_it_is or self.gives_written
        self.plain = (
            len(self.positions) == len(names)
            and not self.outside
            and not any(self.converters)
            and not self.apart
            and not self.returns_lists
            and (owner.mode != "forward" or owner.jacobian)
        )
        is_gradient = owner.mode != "forward" and not owner.jacobian
        each = [(k, n) for k, n in enumerate(owner.wrt) if n in names and is_gradient]
        made = [(k, names.index(n), gradient_converter(descriptions[n])) for k, n in each]
        self.lists = [(k, position, convert) for k, position, convert in made if convert is not None]
        self.has_lists = any(with_identity(a, compiled.reading.written_kinds) for a in args)
        """Whether there are lists in the arguments, or instances that are written to."""
        is_written = compiled.writes or compiled.reading.written_kinds
        self.has_records = bool(is_written) and any(map(records_in, args))
        """Whether there are records in the arguments, and something is written."""
        self.owner = owner
        self.is_repeatable = not exact and hasattr(compiled.function, "overloads")
        """Whether calls with known types may call the compiled code directly: the types do not include sizes."""
        self.is_simple = (
            self.is_repeatable
            and not self.returns_lists
            and len(self.positions) == len(names)
            and all((type(a) is _ARRAY and a.dtype.names is None) or type(a) in _PLAIN for a in args)
        )
        self.count = len(names)
        self.descriptions = [descriptions[n] for n in names]
        told_apart = compiled.reading.assumes_pythons
        self.kinds = [(k, type(a)) for k, a in enumerate(args) if type(a) is _ARRAY or self.converters[k] or told_apart]
        """Arguments whose Python type must be checked, because Numba's dispatch does not distinguish it."""
        self.direct: Any = None
        """A call with arguments of known types; made after the first call."""
        self.straight = Direct(len(self.positions) + len(self.outside))
        self.structure: Any = None
        """The structure of a result that is written to arrays of the caller; known after the first call."""
        self.tangents: list[type] = []
        """The types of the tangents of the latest call in forward mode."""

    def direct_for(self, args: tuple[Any, ...]) -> Callable[..., Any] | None:
        """A call with arguments of the types of these; raises UnfitError for all others. None if there is no such call.

        Its text for a function of an array and an integer that reads a global float `scale`:

            def guards(a0, a1):
                if not (type(a0) is ndarray and type(a1) is int): raise UnfitError
                if not (loss.__code__ is code and np.sin is sin): raise ChangedError
                scale_now = scale
                if not (type(scale_now) is float): raise ChangedError
                return straight(a0, float(a1), scale_now)
        """
        reading = self.compiled.reading
        is_changed = reading.changed_lists or reading.written_kinds
        if self.has_records or (self.has_lists and is_changed and reading.held_outside):
            return None
        watch, name = self.watch, self.watch.names
        parameters = [name.new() for _ in range(self.count)]
        try:
            given = DirectArguments(name, parameters, args, self.descriptions, bool(reading.assumes_pythons))
        except IndirectError:
            return None
        passed = [*given.passed, *(Passed(text, (text,)) for text in watch.found)]
        leaves = [leaf for one in passed for leaf in one.leaves]
        holders = given.with_identity(reading.written_kinds) if self.has_lists else []
        same = [f"{a} is {b}" for k, a in enumerate(holders) for b in holders[:k]]
        same += [self.shares(name, leaves[a], leaves[b]) for a, b in self.apart]
        last = [f"if {' or '.join(same)}: raise {name(UnfitError)}"] if same else []
        call = f"{name(self.straight)}({', '.join(one.text for one in passed)})"
        if self.returns_lists or self.owner.jacobian:
            last.append(f"return {name(self.finished)}({call}, ({''.join(f'{p}, ' for p in parameters)}))")
        elif self.lists:
            last += self.with_rebuilt_gradients(given, call)
        else:
            last.append(f"return {call}")
        return watch.function(parameters, given.lines, last)

    def with_rebuilt_gradients(self, given: DirectArguments, call: str) -> list[str]:
        """The lines of a call whose gradients get the structure of the arguments."""
        owner, whole = self.owner, given.names.new()
        lines = [f"{whole} = {call}"]
        alone = not owner.with_value and not owner.has_aux
        found = whole if alone else f"{whole}[{int(owner.with_value)}]"
        each = [found] if owner.single else [f"{found}[{k}]" for k in range(len(owner.wrt))]
        for k, position, _ in self.lists:
            each[k] = given.rebuilt(given.opened[position], self.descriptions[position], each[k], lines)
        gradients = each[0] if owner.single else f"({', '.join(each)},)"
        if not alone:
            gradients = f"({whole}[0], {gradients})" if owner.with_value else f"({gradients}, {whole}[1])"
        return [*lines, f"return {gradients}"]

    @staticmethod
    def shares(name: Names, a: str, b: str) -> str:
        """The condition that two arrays may share memory; two that own their memory share none."""
        own = f"({a}.flags.owndata and {b}.flags.owndata)"
        return f"{a} is {b} or not ({own} or not {name(np.may_share_memory)}({a}, {b}))"

    @functools.cached_property
    def direct_tangent(self) -> Callable[..., Any]:
        """The same as `direct` for forward mode: a call with arguments, and with tangents of the same shapes.

        def guards(a0, a1, a0_dot):
            if type(a0) is not ndarray or type(a0_dot) is not ndarray or a0_dot.shape != a0.shape: raise UnfitError
            ...
            return parts(straight_tangent(a0, a1, a0_dot))
        """
        name = self.watch.names
        parameters = [name.new() for _ in range(self.count)]
        kinds = [f"{name(type)}({parameters[k]}) is not {name(kind)}" for k, kind in self.kinds]
        dots = []
        for kind, of in zip(self.tangents, self.owner.wrt, strict=True):
            dots.append(name.new())
            kinds.append(f"{name(type)}({dots[-1]}) is not {name(kind)}")
            if kind is _ARRAY:
                kinds.append(f"{dots[-1]}.shape != {parameters[self.owner.names.index(of)]}.shape")
        passed = [
            parameters[k] if self.converters[k] is None else f"{name(self.converters[k])}({parameters[k]})"
            for k in self.positions
        ]
        count = self.owner.with_value + 1
        parts = operator.itemgetter(
            *range(0, 2 * count, 2)
        )  # the value and the tangent, without the (empty) tuples of written arrays
        call = f"{name(parts)}({name(self.straight_tangent)}({', '.join([*passed, *self.watch.found, *dots])}))"
        unfit = f"if {' or '.join(kinds)}: raise {name(UnfitError)}"
        return self.watch.function([*parameters, *dots], [unfit], [f"return {call}"])

    def learn_tangent(self, args: tuple[Any, ...], dots: tuple[Any, ...]) -> bool:
        """Whether the next call in forward mode with these types can call the compiled code directly."""
        simple = self.is_simple and not self.stretches and not self.apart and not self.compiled.written
        if not simple or self.listed is not as_it_is or not all(type(d) in (_ARRAY, float) for d in dots):
            return False
        self.tangents = [type(d) for d in dots]
        try:
            return self.straight_tangent.learn(self.version, [*self.converted(args), *self.from_outside(), *dots])
        except ChangedError:
            return False

    @functools.cached_property
    def straight_tangent(self) -> Direct:
        return Direct(len(self.positions) + len(self.outside) + len(self.tangents))

    def is_current(self) -> bool:
        """Whether the outside values that the function reads still fulfil the guards."""
        try:
            self.from_outside()
        except ChangedError:
            return False
        return True

    def learn(self, args: tuple[Any, ...]) -> bool:
        """Whether the next call with these types can call the compiled code directly."""
        if self.stretches or not self.is_repeatable or self.compiled.further or self.owner.mode == "forward":
            return False
        if self.direct is None:
            self.direct = self.direct_for(args)
        if self.direct is None:
            self.is_repeatable = False
            return False
        try:
            return self.straight.learn(self.version, [*self.converted(args), *self.from_outside()])
        except ChangedError:
            return False

    def __call__(self, args: tuple[Any, ...], further: tuple[Any, ...] = ()) -> Any:
        if self.stretches and self.owner.stretches(args):
            return self.owner._exactly(self, args, further)
        return self.finished(self.computed([*self.prepared(args), *further]), args)

    def computed(self, values: Sequence[Any]) -> Any:
        """The result of the compiled function, or of its version for these lengths of short axes."""
        if self.version is None:
            self.version = (load_for_lengths(self.function, values) if self.is_repeatable else None) or self.function
        if self.version is not self.function:
            try:
                return self.version(*values)
            except UnfitError:  # nothing has run yet
                self.version = self.function
                self.straight.forget()
                if "straight_tangent" in self.__dict__:
                    self.straight_tangent.forget()
        return self.function(*values)

    def prepared(self, args: tuple[Any, ...]) -> list[Any]:
        """The arguments of the compiled function."""
        values = self.converted(args) + [o.read() for o in self.outside]
        if self.has_lists:
            self.keep_identities_apart(args)
        if self.has_records:
            self.keep_records_apart(args)
        if self.apart:
            self.keep_apart(values)
        return values

    def run(self, values: Sequence[Any], memory: Memory) -> tuple[Any, Memory]:
        """The result, computed in the given memory, and the memory for the next call."""
        try:
            result, used = self.function(*values, *memory)
        except NumbaError as error:
            raise self.not_compiled(error) from None
        return result, list(used)

    @property
    def fills_results(self) -> bool:
        """Whether all that it returns is written to arrays of the caller."""
        is_plain = not (self.apart or self.outside or self.returns_lists or self.lists or self.has_lists)
        return bool(self.workspace) and is_plain and not self.assumes_sizes and not self.compiled.writes

    def learn_structure(self, values: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> None:
        """Find the structure of a result that is written to arrays of the caller, by a call."""
        results = [np.empty(shape, buffer.dtype) for buffer, shape in zip(self.workspace, shapes, strict=True)]
        try:
            self.structure = VALUES.structure(self.function(*values, *results))
        except NumbaError as error:
            raise self.not_compiled(error) from None

    def finished(self, result: Any, args: tuple[Any, ...]) -> Any:
        """The result for the caller, from the result of the compiled function."""
        if self.owner.jacobian:
            return self.as_jacobian(result)
        if self.owner.mode == "forward":
            if self.kept_parts is not None and self.owner.with_value:
                value, written, tangent, *rest = result
                result = (value, written, self.kept_parts(value, tangent), *rest)
            parts = [self.as_returned(*result[k : k + 2]) for k in range(0, len(result), 2)]
            return tuple(parts) if len(parts) > 1 else parts[0]
        if self.returns_lists:
            result = self.with_listed_results(result)
        return self.with_lists(result, args) if self.lists else result

    @property
    def gives_written(self) -> bool:
        """Whether the function returns nothing, so that the arrays it writes to are its results."""
        result = self.compiled.reading.result
        return isinstance(result, Static) and result.value is None and bool(self.compiled.written)

    def as_jacobian(self, result: Any) -> Any:
        """A Jacobian with the structure of the function's result."""
        whole = self.listed(result)
        if self.has_numbers:
            whole = VALUES.map(lambda leaf: leaf if leaf is None else np.asarray(leaf), whole)
        return with_written(None, self.compiled.written, whole) if self.gives_written else whole

    def not_compiled(self, error: NumbaError) -> Exception:
        """The exception to raise if Numba does not compile the function."""
        unknown = self.compiled.reading.unknown_calls
        if unknown:
            return DifferentiationError(list(unknown))
        return numba_cpu.not_compiled(error) if self.owner.has(Trait.COMPILED) else error

    def as_returned(self, value: Any, written: Any) -> Any:
        """A value or a tangent with the structure of the result, or the arrays that the function wrote to."""
        return with_written(self.listed(value), self.compiled.written, written)

    def with_listed_results(self, result: Any) -> Any:
        """The result with lists, which compiled code returns as tuples and arrays."""
        if self.owner.mode == "primal":
            return self.listed(result)
        first, second = result
        return (self.listed(first), second) if self.owner.with_value else (first, self.listed(second))

    def converted(self, args: tuple[Any, ...]) -> list[Any]:
        values = []
        for k in self.positions:
            convert = self.converters[k]
            values.append(args[k] if convert is None else convert(args[k]))
        return values

    def keep_apart(self, values: list[Any]) -> None:
        """Reject arrays that share memory if one is written: a derivative by one of them would have no meaning."""
        if not self.paths:
            each = [(part.path, part.value) for part in TUPLES.named(tuple(values), "")]
            self.paths = [path for path, x in each if not (x is None or isinstance(x, str) or callable(x))]
        parts = {k: functools.reduce(operator.getitem, self.paths[k], values) for k in self.concerned}
        for a, b in self.apart:
            if shares_memory(parts[a], parts[b]):
                names = names_of_parts(self.compiled.reading)
                pair = f"`{names[a]}` and `{names[b]}`"
                message = f"{pair} share memory, and `{self.owner.function.__name__}` writes to one of them"
                raise DifferentiationError([Problem("SD403", message, self.owner.span)])

    def keep_identities_apart(self, args: tuple[Any, ...]) -> None:
        """Reject the same list or instance for two arguments: a change of one would have to change the other."""
        reading = self.compiled.reading
        is_changed = reading.changed_lists or reading.written_kinds
        outside = {id(place.read()) for place in reading.held_outside} if is_changed else set()
        known = set(outside)
        for found in (x for a in args for x in with_identity(a, reading.written_kinds)):
            if id(found) in known:
                plain = "list" if isinstance(found, list) else "dictionary" if isinstance(found, dict) else ""
                what = plain or f"instance of `{type(found).__name__}`"
                function = f"`{self.owner.function.__name__}`"
                message = f"the same {what} is passed twice"
                if id(found) in outside:
                    message = f"the same {what} is passed and read from outside by {function}"
                message += "" if plain else f", and {function} writes to its attributes"
                raise DifferentiationError([Problem("SD403", message, self.owner.span)])
            known.add(id(found))

    def keep_records_apart(self, args: tuple[Any, ...]) -> None:
        """Reject a record that refers to memory which the function writes to by another argument."""
        held = [place.read() for place in self.compiled.reading.held_outside]
        each = [x for value in (*args, *held) for x in records_in(value)]
        for k, record in enumerate(each):
            others = (x for other, x in enumerate(each) if other != k and type(record) in RECORDS)
            if any(np.may_share_memory(memory_of_records(record), memory_of_records(x)) for x in others):
                function = f"`{self.owner.function.__name__}`"
                message = f"a record shares memory with another argument, and {function} writes to records"
                raise DifferentiationError([Problem("SD403", message, self.owner.span)])

    def with_lists(self, result: Any, args: tuple[Any, ...]) -> Any:
        """The gradient of a list is a list."""

        def listed_gradients(gradients: list[Any]) -> list[Any]:
            for k, position, convert in self.lists:
                gradients[k] = convert(args[position], gradients[k])
            return gradients

        return self.with_gradients(result, listed_gradients)

    def with_gradients(self, result: Any, changed: Callable[[list[Any]], list[Any]]) -> Any:
        """The result with its gradients replaced by `changed(gradients)`."""
        owner = self.owner
        place = 1 if owner.with_value else 0
        alone = not owner.with_value and not owner.has_aux
        gradient = result if alone else result[place]
        parts = changed([gradient] if owner.single else list(gradient))
        gradient = parts[0] if owner.single else tuple(parts)
        if alone:
            return gradient
        return (result[0], gradient) if place else (gradient, result[1])

    def compile(self, args: tuple[Any, ...]) -> None:
        """Compile without running."""
        if hasattr(self.function, "compile"):
            import numba

            values = [*self.converted(args), *[o.read() for o in self.outside], *no_memory(self.workspace)]
            self.function.compile(tuple(numba.typeof(a) for a in values))


def shares_memory(a: Any, b: Any) -> bool:
    """Whether two arrays share an element; for arrays on a GPU, whether their memory ranges overlap."""
    if not is_on_device(a) and not is_on_device(b):
        return np.may_share_memory(a, b) and np.shares_memory(a, b)
    if not (is_on_device(a) and is_on_device(b)):
        return False
    if not hasattr(a, "__cuda_array_interface__"):  # the simulator's
        return shares_memory(a._ary, b._ary)
    (first, _), (second, _) = (x.__cuda_array_interface__["data"] for x in (a, b))
    sizes = [np.dtype(layout_on_device(x)[0]).itemsize * int(np.prod(layout_on_device(x)[1])) for x in (a, b)]
    return bool(first < second + sizes[1] and second < first + sizes[0])


def with_written(value: Any, parts: Sequence[Part], arrays: Sequence[Any]) -> Any:
    """The result of the function; if it returns nothing, the arrays that it wrote to, by name."""
    if value is not None or not parts:
        return value
    return {part.name: array for part, array in zip(parts, arrays, strict=True)}


def names_of_parts(reading: Reading) -> list[str]:
    """The names of the flattened arguments, as a user would write them."""
    return [part.name for part in parts_of_arguments(reading.arguments)] + [o.name for o in reading.outside]


def stand_in(value: Any) -> Any:
    """An example value of a type. No axis has length one, which would be broadcast."""
    if isinstance(value, str) and re.fullmatch(r"(float|int|uint|bool)\d*(\[[:, 1]*\])?", value):
        name, _, dimensions = value.partition("[")
        if dimensions:
            return np.zeros((2,) * (dimensions.count(",") + 1), dtype=name)
        return np.dtype(name).type(0).item() if name in ("float64", "int64", "bool") else np.dtype(name).type(0)
    if isinstance(value, type) and value in (float, int, bool):
        return value()
    module = type(value).__module__
    if module.startswith("numba.core.types"):
        return stand_in(str(value)) if not hasattr(value, "ndim") else np.zeros((2,) * value.ndim, str(value.dtype))
    return value
