"""What users call: derivatives of functions, specialised by the types of their arguments."""

from __future__ import annotations

import enum
import functools
import inspect
import operator
import re
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numba.core.errors import NumbaError

from srcdiff.backends import numba_cpu, numba_cuda
from srcdiff.backends.direct import Direct, UnfitError
from srcdiff.backends.signals import ONE_AT_A_TIME
from srcdiff.diagnostics import DifferentiationError, Problem, Refusal, Span, ZeroGradientWarning
from srcdiff.ir.types import FLOAT
from srcdiff.report import MemoryReport, memory_report
from srcdiff.source.abstract import Abstract, Description, Record, Static, Tuple
from srcdiff.source.capture import Captured, capture, findable, plain_function, reader_of, standing_for
from srcdiff.source.declared import CustomRule
from srcdiff.source.signature import (
    describe_argument,
    floats_for_integers,
    gradient_of_argument,
    holds_list,
    is_large,
    is_on_device,
    is_passed,
    is_rebuilt,
    is_stored,
    layout_on_device,
    listed,
    lists_in,
)
from srcdiff.source.structures import Layout, layout_of, parts_of
from srcdiff.workspace import Given, Memory, Workspace, no_memory

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.backends.on_device import OnDevice
    from srcdiff.pipeline import Compiled, Derivation, Request
    from srcdiff.source.derivatives import Reading

Wrt = int | str | Sequence[int | str]

_OURS = str(Path(__file__).parent)
_BACKENDS = ("numba", "python", "cuda")
_GPU_OPTIONS = ("threads", "blocks", "memory_limit", "stream")
_ARRAY = np.ndarray
_PLAIN = frozenset({float, int})
_COMPARED = frozenset({float, int, bool, str, tuple})


class Derivative:
    """A function made from another: call it, look at its `source`, `compile` it ahead of time.

    It is specialised at the first call with new argument types.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        mode: str,
        wrt: Wrt,
        *,
        with_value: bool = True,
        has_aux: bool = False,
        backend: str = "numba",
        **options: Any,
    ) -> None:
        if backend not in _BACKENDS:
            raise ValueError(f"unknown backend {backend!r}; there are {', '.join(map(repr, _BACKENDS))}")
        if backend == "cuda":
            numba_cuda.require_installed()
        known = {"fastmath", "error_model", "boundscheck", "cache", "parallel"}
        unknown = options.keys() - (known | set(_GPU_OPTIONS) if backend == "cuda" else known)
        if unknown:
            raise TypeError(f"unknown option {', '.join(sorted(unknown))}")
        if has_aux and mode != "reverse":
            raise TypeError("`has_aux` is an option of `grad` and `value_and_grad` alone")
        self.of: Any = function
        """What is differentiated: a function, or a derivative of one."""
        self.directions = 1
        """How many tangents a sweep of forward mode carries."""
        derivative = getattr(function, "__srcdiff_derivative__", None)
        plain = plain_function(function) if derivative is None else derivative.function
        if plain is None:
            raise TypeError(f"{function!r} is not a Python function; write one that calls what it calls, or a lambda")
        self.function: types.FunctionType = plain
        self.mode, self.with_value, self.has_aux, self.backend, self.options = (
            mode,
            with_value,
            has_aux,
            backend,
            options,
        )
        self.signature = inspect.signature(plain, follow_wrapped=False)
        self.names = tuple(self.signature.parameters)
        kinds = {p.kind for p in self.signature.parameters.values()}
        self.by_name = bool(kinds - {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})
        self.takes_out = mode == "reverse" and "out" not in self.names and inspect.Parameter.VAR_KEYWORD not in kinds
        self.single = isinstance(wrt, int | str | np.integer)
        self.wrt = self._chosen(wrt) if mode != "primal" else ()
        self.specialisations: dict[Any, Specialisation] = {}
        self.direct: Specialisation | None = None
        """That of the latest call, if the next one with such arguments can go straight to compiled code."""
        self.latest: Specialisation | None = None
        self.entry: Any = None
        self._captured: Captured | None = None
        functools.update_wrapper(self, plain, updated=())
        self.__doc__ = described(_WHAT.get(self.kind, ""), self, plain.__doc__)
        self.__signature__ = self._own_signature()

    @property
    def kind(self) -> str:
        """Which derivative it is: the name of the function that makes it."""
        names = {"primal": "differentiable", "pullback": "vjp", "forward": "jvp"}
        return names.get(self.mode, "value_and_grad" if self.with_value else "grad")

    def _own_signature(self) -> inspect.Signature:
        """That of the function, with what it gives and takes besides."""
        if self.mode != "reverse":
            return self.signature
        parameters = list(self.signature.parameters.values())
        if self.takes_out:
            parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
        given = [getattr(self.signature.parameters.get(n), "annotation", inspect.Parameter.empty) for n in self.wrt]
        gradient = given[0] if self.single else _tuple_of(given)
        plain = gradient if not self.with_value else _tuple_of([self.signature.return_annotation, gradient])
        return inspect.Signature(parameters, return_annotation=inspect.Signature.empty if self.has_aux else plain)

    def __reduce__(self) -> Any:
        wrt = self.wrt[0] if self.single and self.wrt else self.wrt
        options = {**self.options, "backend": self.backend, "with_value": self.with_value, "has_aux": self.has_aux}
        return _derivative_again, (findable(self.of), self.mode, wrt, options, self.directions)

    def __dir__(self) -> list[str]:
        return sorted({*(n for n in super().__dir__() if n.startswith("__")), *self.shown})

    shown: tuple[str, ...] = ("compile", "function", "kind", "report", "source", "workspace", "wrt")
    """The attributes that are there for users."""

    def _chosen(self, wrt: Wrt) -> tuple[str, ...]:
        """The names of the arguments to differentiate by."""
        return chosen_names(wrt, self.names, self.function.__name__, self.function.__code__.co_varnames)

    # -- calling -----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        known = self.direct
        if known is not None and len(args) == known.count and not kwargs:
            try:
                return known.direct(*args)
            except UnfitError:
                known = None
            except OverflowError:
                if not any(type(a) is int and is_large(a) for a in args):
                    raise
                known = None
            except (ValueError, IndexError):
                if not known.assumes_sizes:
                    raise
            if known is not None:
                return self._exactly(known, args)
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with arguments of any kind."""
        if "out" in kwargs and self.takes_out:
            return self._into(kwargs.pop("out"), args, kwargs)
        return self.run(self.bound(args, kwargs))

    def run(self, args: tuple[Any, ...], further: tuple[Any, ...] = ()) -> Any:
        """Call it with all arguments of the function, and what its derivative takes beside them."""
        specialisation = self.specialised(args)
        try:
            plain = specialisation.plain and not further
            result = specialisation.function(*args) if plain else specialisation(args, further)
        except NumbaError as error:
            raise specialisation.not_compiled(error) from None
        except (ValueError, IndexError):
            if not specialisation.assumes_sizes:
                raise
        else:
            if not self.by_name and not further and specialisation.learn(args):
                self.direct = specialisation
            return result
        return self._exactly(specialisation, args, further)

    @staticmethod
    def key(args: tuple[Any, ...]) -> Any:
        """What tells specialisations apart."""
        return tuple(
            [
                (a.dtype.num * 64 + a.ndim, a.flags.c_contiguous)
                if type(a) is _ARRAY and a.dtype.isnative
                else float
                if type(a) is float
                else _key(a)
                for a in args
            ]
        )

    def specialised(self, args: tuple[Any, ...]) -> Specialisation:
        """What it is for arguments of these types."""
        key = self.key(args)
        specialisation = self.specialisations.get(key)
        if specialisation is None or (specialisation.watches and not specialisation.is_current()):
            specialisation = self._specialise(key, args)
        return specialisation

    def _exactly(self, specialisation: Specialisation, args: tuple[Any, ...], further: tuple[Any, ...] = ()) -> Any:
        """Once more, for a program that has met sizes that differ: those that are one stretch now."""
        result = self.exactly_specialised(args)(args, further)
        specialisation.stretches, specialisation.plain = True, False
        self.direct = None
        return result

    def exactly_specialised(self, args: tuple[Any, ...]) -> Specialisation:
        """What it is for arguments of these types whose sizes are one where these are."""
        key = ("exact", *[_exact_key(a) for a in args])
        exact = self.specialisations.get(key)
        if exact is None or (exact.watches and not exact.is_current()):
            exact = self._specialise(key, args, exact=True)
        return exact

    def _into(self, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that writes gradients into given arrays."""
        specialisation, args = self._with_rooms(args, kwargs)
        if not self.single and not (isinstance(out, tuple) and len(out) == len(self.wrt)):
            raise ValueError(f"`out` has to be a tuple of {len(self.wrt)}, for {', '.join(self.wrt)}")
        arguments = dict(zip(self.names, args, strict=True))
        given = Given(self.wrt, [arguments.get(n) for n in self.wrt], (out,) if self.single else out)
        values = specialisation.prepared(args)
        result, _ = specialisation.run(values, given.memory(specialisation.rooms, values))
        return specialisation.with_gradients(specialisation.finished(result, args), given.filled)

    def _with_rooms(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Specialisation, tuple[Any, ...]]:
        """The specialisation that takes memory from its caller, and all arguments; it knows the sizes that are one."""
        args = self.bound(args, kwargs)
        key = ("rooms", *[_exact_key(a) for a in args])
        known = self.specialisations.get(key)
        if known is None or (known.watches and not known.is_current()):
            known = self._specialise(key, args, exact=True, rooms=True)
        return known, args

    def workspace(self, *args: Any, **kwargs: Any) -> Workspace:
        """The derivative with memory of its own, compiled for such arguments: repeated calls allocate nothing large.

        Gradients are overwritten by its next call. Threads need one each.
        """
        specialisation, values = self._with_rooms(
            tuple(stand_in(a) for a in args), {k: stand_in(v) for k, v in kwargs.items()}
        )
        specialisation.compile(values)
        return Workspace(self._with_rooms)

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position; defaults are those that the function has now."""
        if not kwargs and len(args) == len(self.names) and not self.by_name:
            return args
        if not self.by_name and len(args) <= len(self.names):
            defaults = self.function.__defaults__ or ()
            first = len(self.names) - len(defaults)
            rest = self.names[len(args) :]
            known = dict(zip(self.names[first:], defaults, strict=True))
            if kwargs.keys() <= set(rest) and all(n in kwargs or n in known for n in rest):
                return args + tuple([kwargs[n] if n in kwargs else known[n] for n in rest])
        bound = inspect.signature(self.function, follow_wrapped=False).bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments[n] for n in self.names)

    def compile(self, *args: Any, **kwargs: Any) -> Derivative:
        """Specialise ahead of time, for example arguments or types such as `"float64[:]"` and `float`."""
        values = self.bound(tuple(stand_in(a) for a in args), {k: stand_in(v) for k, v in kwargs.items()})
        specialisation = self._specialise(tuple([_key(a) for a in values]), values)
        specialisation.compile(values)
        return self

    @property
    def captured(self) -> Captured:
        if self._captured is None:
            try:
                self._captured = capture(self.function)
            except Refusal as refusal:
                assert refusal.problem is not None
                raise DifferentiationError([refusal.problem]) from None
        return self._captured

    @property
    def span(self) -> Span:
        node = self.captured.node
        return Span(self.captured.file, node.lineno, node.col_offset, node.col_offset + 3, self.captured.name)

    def compiled_for(self, given: tuple[Any, ...]) -> tuple[Any, list[tuple[str, str]], list[str]]:
        """The compiled function for a call from compiled code, the arguments that must not share memory, and all.

        `given` has a description for each argument, or the argument itself where it is known.
        """
        if self.backend != "numba":
            raise TypeError(f"{self!r} runs on the backend {self.backend!r}; compiled code needs 'numba'")
        defaults = self.bound((None,) * len(given), {})[len(given) :]
        key = tuple(d if isinstance(d, Description) else (type(d), id(d)) for d in given)
        specialisation = self._specialise(("compiled", key), (*given, *defaults))
        passed = []
        for k in specialisation.positions:
            value = (*given, *defaults)[k]
            if not isinstance(value, Description | bool | int | float):
                raise TypeError(f"{self!r} cannot be called from compiled code without `{self.names[k]}`")
            passed.append(f"args[{k}]" if isinstance(value, Description) else repr(value))
        if specialisation.outside or specialisation.returns_lists:
            raise TypeError(
                f"{self!r} cannot be called from compiled code: it reads variables from outside, or returns lists"
            )
        parts = _parts_in_compiled_code(specialisation.compiled.reading)
        return specialisation.function, [(parts[a], parts[b]) for a, b in specialisation.apart], passed

    def _specialise(
        self, key: Any, args: tuple[Any, ...], *, exact: bool = False, rooms: bool = False
    ) -> Specialisation:
        """The specialisation for the key: one thread makes it, the others wait for it."""
        with ONE_AT_A_TIME:
            known = self.specialisations.get(key)
            if known is None or (known.watches and not known.is_current()):
                known = self._specialised(args, exact=exact, rooms=rooms)
                self.specialisations[key] = known
            if not rooms:
                self.latest = known
            return known

    def specialised_for_batch(self, args: tuple[Any, ...], batch: tuple[str, ...], sums: bool) -> Specialisation:
        """What it is on a GPU for many arguments at once, of which these are the first."""
        with ONE_AT_A_TIME:
            self.latest = self._specialised(args, exact=True, batch=batch, sums=sums)
            return self.latest

    def request(
        self,
        args: tuple[Any, ...],
        *,
        exact: bool = False,
        rooms: bool = False,
        batch: tuple[str, ...] = (),
        sums: bool = False,
    ) -> Request:
        """What the compiler is asked for, for all arguments or their descriptions."""
        from srcdiff.pipeline import Request

        descriptions = {
            n: Description("static", (bool, a))
            if type(a) is bool and n not in batch
            else describe_argument(a, n, self.span, exact=exact)
            for n, a in zip(self.names, args, strict=True)
        }
        for name in set(self.wrt) & set(self.names):
            descriptions[name] = floats_for_integers(descriptions[name])
        request = Request(self.captured, descriptions, self.wrt, self.mode, self.with_value, self.has_aux, self.single)
        request.exact, request.rooms, request.batch, request.sums = exact, rooms, batch, sums
        request.of = getattr(self.of, "__srcdiff_derivative__", None) or getattr(self.of, "__srcdiff_rule__", None)
        request.directions = self.directions
        return request

    def _specialised(self, args: tuple[Any, ...], **kind: Any) -> Specialisation:
        from srcdiff.pipeline import compile_request

        request = self.request(args, **kind)
        compiled = compile_request(request, self.backend, self.options)
        if compiled.reading.assumes_sizes and self.mode == "primal" and compiled.writes:
            request.exact = True  # what it has written when it meets sizes that differ cannot be taken back
            compiled = compile_request(request, self.backend, self.options)
        self._warn(compiled)
        return Specialisation(compiled, request.arguments, self, args)

    def _warn(self, compiled: Compiled) -> None:
        level, frame = 1, sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
            level, frame = level + 1, frame.f_back  # the user's line
        for message in compiled.warnings:
            warnings.warn(message, ZeroGradientWarning, stacklevel=level)

    @property
    def __srcdiff_derivative__(self) -> Derivative | None:
        """For who reads a program that calls it."""
        return getattr(self.of, "__srcdiff_derivative__", None) if self.mode == "primal" else self

    @property
    def __srcdiff_rule__(self) -> CustomRule | None:
        """The rule that the function has, where this is the function itself."""
        return getattr(self.of, "__srcdiff_rule__", None) if self.mode == "primal" else None

    @property
    def said(self) -> str:
        """What stands for it in the names of generated functions."""
        own = {"pullback": "pullback", "forward": "tangent"}.get(
            self.mode, "value_and_grad" if self.with_value else "grad"
        )
        inner = getattr(self.of, "__srcdiff_derivative__", None)
        return own if inner is None else f"{inner.said}_{own}"

    @property
    def derivation(self) -> Derivation:
        """Which derivative it is, of whatever function."""
        from srcdiff.pipeline import Derivation

        return Derivation(self.mode, self.wrt, self.with_value, self.has_aux, self.single)

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The generated source of the latest specialisation."""
        if self.latest is None:
            from srcdiff.source.guess import guessed_arguments

            with ONE_AT_A_TIME:
                self.latest = self._specialised(tuple(guessed_arguments(self.captured, self.signature).values()))
        return self.latest.compiled.text

    def ptx(self, cc: tuple[int, int] = (8, 0)) -> dict[str, str]:
        """The code of each kernel of the latest specialisation, for GPUs of the compute capability; none is needed."""
        return self._on_device().ptx(cc)

    def resources(self, cc: tuple[int, int] = (8, 0)) -> dict[str, dict[str, int]]:
        """What each kernel takes of a thread: registers, bytes of stack and of shared memory, and spills."""
        return self._on_device().resources(cc)

    def _on_device(self) -> OnDevice:
        if self.backend != "cuda":
            raise TypeError(f"{self!r} runs on the backend {self.backend!r}; only 'cuda' has kernels")
        _ = self.source  # it is specialised now, if it was not
        assert self.latest is not None
        found: Any = self.latest.function
        on_device: OnDevice = found
        return on_device

    def _repr_html_(self) -> str | None:
        """The two sources side by side, for a notebook; nothing if that needs arguments that it has not seen yet."""
        from srcdiff.looking.sides import sides_of
        from srcdiff.pipeline import follow
        from srcdiff.source.guess import guessed_arguments

        try:
            guessed = () if self.latest else tuple(guessed_arguments(self.captured, self.signature).values())
            request = self.latest.compiled.request if self.latest else self.request(guessed)
            return sides_of(follow(request, self.backend))._repr_html_()
        except DifferentiationError:
            return None

    def report(self, *args: Any, **kwargs: Any) -> MemoryReport:
        """Run it, and say how much it keeps for the reverse sweep, by variable and line."""
        specialisation, args = self._with_rooms(args, kwargs)
        _, memory = specialisation.run(specialisation.prepared(args), no_memory(specialisation.rooms))
        elsewhere = specialisation.compiled.kept_elsewhere
        return memory_report(self.function.__name__, specialisation.rooms, memory, elsewhere)

    def __repr__(self) -> str:
        wrt = f", wrt={self.wrt!r}" if self.wrt else ""
        return f"<srcdiff.{self.kind}({self.function.__code__.co_qualname}{wrt})>"


_WHAT = {
    "grad": "The gradient",
    "value_and_grad": "The value, and the gradient,",
    "jvp": "The tangent program",
    "vjp": "The pullback",
}


def described(what: str, derivative: Derivative, doc: str | None) -> str | None:
    """What `help` says of a derivative: which it is, and what its function's author has written."""
    if not what:
        return doc
    of = f"{derivative.function.__name__}({', '.join(derivative.names)})"
    line = f"{what} of `{of}` with respect to {', '.join(f'`{n}`' for n in derivative.wrt)}, by srcdiff."
    return f"{line}\n\n{inspect.cleandoc(doc)}" if doc else line


def _tuple_of(annotations: Sequence[Any]) -> Any:
    """The annotation of a tuple, where all of its parts are annotated."""
    if any(a is inspect.Parameter.empty for a in annotations):
        return inspect.Parameter.empty
    if any(isinstance(a, str) for a in annotations):
        return f"tuple[{', '.join(a if isinstance(a, str) else inspect.formatannotation(a) for a in annotations)}]"
    return tuple[tuple(annotations)]  # type: ignore[misc]


def _derivative_again(of: Any, mode: str, wrt: Wrt, options: dict[str, Any], directions: int) -> Derivative:
    derivative = Derivative(of, mode, wrt, **options)
    derivative.directions = directions
    return derivative


class Specialisation:
    """A derivative for certain argument types: the compiled function, and what has to be done around it."""

    def __init__(
        self, compiled: Compiled, descriptions: dict[str, Description], owner: Derivative, args: tuple[Any, ...]
    ) -> None:
        self.compiled = compiled
        self.function = compiled.function
        self.rooms = compiled.rooms
        self.outside = compiled.reading.outside
        self.expected = [(reader_of(place, name), value) for place, name, value in compiled.reading.guards]
        self.readers = [(o.read if o.path else reader_of(o.place, o.name), _key(o.read())) for o in self.outside]
        self.watches = bool(self.readers or self.expected)
        names = owner.names
        self.positions = [k for k, n in enumerate(names) if is_passed(descriptions[n])]
        self.converters = [_converter(descriptions[n], a) for n, a in zip(names, args, strict=True)]
        self.apart = compiled.apart
        self.concerned = sorted({k for pair in self.apart for k in pair})
        self.assumes_sizes = compiled.reading.assumes_sizes
        self.stretches = False
        """Whether sizes of one have been seen to stretch."""
        self.returns_lists = holds_list(compiled.reading.result) and (
            owner.mode == "primal" or (owner.mode == "reverse" and (owner.with_value or owner.has_aux))
        )
        self.plain = (
            len(self.positions) == len(names)
            and not self.outside
            and not any(self.converters)
            and not self.apart
            and not self.returns_lists
            and owner.mode != "forward"
        )
        self.lists = [
            (k, names.index(n), descriptions[n])
            for k, n in enumerate(owner.wrt)
            if n in names and is_rebuilt(descriptions[n]) and owner.mode != "forward"
        ]
        self.has_lists = any(len(lists_in(a)) for a in args)
        self.owner = owner
        self.is_simple = (
            not self.returns_lists
            and not compiled.further
            and hasattr(compiled.function, "overloads")
            and len(self.positions) == len(names)
            and all(type(a) is _ARRAY or type(a) in _PLAIN for a in args)
        )
        self.count = len(names)
        told_apart = compiled.reading.assumes_pythons
        self.kinds = [(k, type(a)) for k, a in enumerate(args) if type(a) is _ARRAY or self.converters[k] or told_apart]
        """What Numba does not tell from other types: other arrays and numbers, and what is converted before."""
        self.as_given = len(self.positions) == len(names) and not any(self.converters)
        self.straight = Direct(len(self.positions) + len(self.outside))
        self.direct: Callable[..., Any] = (
            self.straight if self.plain and not self.watches and not self.kinds else self.checked
        )

    def is_current(self) -> bool:
        """Whether what the function reads from outside is what it was compiled for."""
        try:
            self.from_outside()
        except UnfitError:
            return False
        return True

    def from_outside(self) -> list[Any]:
        """What the function reads from outside, if it is still what it was compiled for."""
        values: list[Any] = []
        try:
            for read, value in self.expected:
                found = read()
                if found is not value and not (
                    type(found) is type(value) and type(value) in _COMPARED and found == value
                ):
                    raise UnfitError
            for read, key in self.readers:
                found = read()
                if type(found) is not key and _key(found) != key:
                    raise UnfitError
                values.append(found)
        except (KeyError, ValueError, IndexError):
            raise UnfitError from None  # it is not there any more
        return values

    def learn(self, args: tuple[Any, ...]) -> bool:
        """Whether the next call with arguments of these types can go straight to compiled code."""
        if self.stretches or not self.is_simple:
            return False
        try:
            return self.straight.learn(self.function, [*self.converted(args), *self.from_outside()])
        except UnfitError:
            return False

    def checked(self, *args: Any) -> Any:
        """A call with arguments of types that are known, if nothing else stands in the way."""
        for k, kind in self.kinds:
            if type(args[k]) is not kind:
                raise UnfitError
        values = args if self.as_given else self.converted(args)
        if self.watches:
            values = [*values, *self.from_outside()]
        if self.apart:
            own = True  # two arrays that own their memory share none
            for k in self.concerned:
                own = own and values[k].flags.owndata
            for a, b in self.apart:
                if values[a] is values[b] or (not own and np.may_share_memory(values[a], values[b])):
                    raise UnfitError
        return self.straight(*values)

    def __call__(self, args: tuple[Any, ...], further: tuple[Any, ...] = ()) -> Any:
        if self.stretches and _exact_key(args) != _exact_key(args, ones=False):
            return self.owner._exactly(self, args, further)
        return self.finished(self.function(*self.prepared(args), *further), args)

    def prepared(self, args: tuple[Any, ...]) -> list[Any]:
        """What the compiled function is called with."""
        values = self.converted(args) + [o.read() for o in self.outside]
        if self.has_lists:
            self.keep_lists_apart(args)
        if self.apart:
            self.keep_apart(values)
        return values

    def run(self, values: Sequence[Any], memory: Memory) -> tuple[Any, Memory]:
        """The result, in the memory where there is some, and the memory for the next call."""
        try:
            result, used = self.function(*values, *memory)
        except NumbaError as error:
            raise self.not_compiled(error) from None
        return result, list(used)

    def finished(self, result: Any, args: tuple[Any, ...]) -> Any:
        """What the caller gets for what the compiled function returns."""
        if self.owner.mode == "forward":
            parts = [self.as_returned(*result[k : k + 2]) for k in range(0, len(result), 2)]
            return tuple(parts) if len(parts) > 1 else parts[0]
        if self.returns_lists:
            result = self.with_listed_results(result)
        return self.with_lists(result, args) if self.lists else result

    def not_compiled(self, error: NumbaError) -> Exception:
        """What is said if Numba does not compile the function."""
        unknown = self.compiled.reading.unknown_calls
        return DifferentiationError(list(unknown)) if unknown else numba_cpu.not_compiled(error, self.owner.backend)

    def as_returned(self, value: Any, written: Any) -> Any:
        """A value or a tangent in the form of the result, or the arrays that the function has written into."""
        return with_written(listed(self.compiled.reading.result, value), self.compiled.written, written)

    def with_listed_results(self, result: Any) -> Any:
        """Lists that the function returns come as tuples and arrays."""
        owner, shape = self.owner, self.compiled.reading.result
        if owner.mode == "primal":
            return listed(shape, result)
        if owner.with_value:
            return listed(shape, result[0]), result[1]
        assert isinstance(shape, Tuple)
        return result[0], listed(shape.items[1], result[1])

    def converted(self, args: tuple[Any, ...]) -> list[Any]:
        values = []
        for k in self.positions:
            convert = self.converters[k]
            values.append(args[k] if convert is None else convert(args[k]))
        return values

    def keep_apart(self, values: list[Any]) -> None:
        """Arrays that share memory are refused where one is written: a derivative by one of them has no meaning."""
        parts: list[Any] = []
        for value in values:
            parts += _parts(value)
        for a, b in self.apart:
            if shares_memory(parts[a], parts[b]):
                names = names_of_parts(self.compiled.reading)
                pair = f"`{names[a]}` and `{names[b]}`"
                message = f"{pair} share memory, and `{self.owner.function.__name__}` writes into one of them"
                raise DifferentiationError([Problem("SD403", message, self.owner.span)])

    def keep_lists_apart(self, args: tuple[Any, ...]) -> None:
        """The same list under two names is refused: what happens to one would have to happen to the other."""
        lists = [found for a in args for found in lists_in(a)]
        if len({id(found) for found in lists}) < len(lists):
            message = "the same list is passed for two arguments"
            raise DifferentiationError([Problem("SD403", message, self.owner.span)])

    def with_lists(self, result: Any, args: tuple[Any, ...]) -> Any:
        """The gradient of a list is a list."""

        def listed_gradients(gradients: list[Any]) -> list[Any]:
            for k, position, description in self.lists:
                gradients[k] = gradient_of_argument(description, args[position], gradients[k])
            return gradients

        return self.with_gradients(result, listed_gradients)

    def with_gradients(self, result: Any, changed: Callable[[list[Any]], list[Any]]) -> Any:
        """The result, with something done to its gradients."""
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

            values = [*self.converted(args), *[o.read() for o in self.outside], *no_memory(self.rooms)]
            self.function.compile(tuple(numba.typeof(a) for a in values))


def shares_memory(a: Any, b: Any) -> bool:
    """Whether two arrays have an element in common; arrays of a GPU, whether their memory overlaps."""
    if not is_on_device(a) and not is_on_device(b):
        return np.may_share_memory(a, b) and np.shares_memory(a, b)
    if not (is_on_device(a) and is_on_device(b)):
        return False
    if not hasattr(a, "__cuda_array_interface__"):  # the simulator's
        return shares_memory(a._ary, b._ary)
    (first, _), (second, _) = (x.__cuda_array_interface__["data"] for x in (a, b))
    sizes = [np.dtype(layout_on_device(x)[0]).itemsize * int(np.prod(layout_on_device(x)[1])) for x in (a, b)]
    return bool(first < second + sizes[1] and second < first + sizes[0])


def with_written(value: Any, names: Sequence[str], arrays: Sequence[Any]) -> Any:
    """What the function returns, or where it returns nothing, the arrays that it has written into, by name."""
    return dict(zip(names, arrays, strict=True)) if value is None and names else value


def names_of_parts(reading: Reading) -> list[str]:
    """What the user calls each of the values that the arguments are taken apart into."""

    def names(x: Abstract, name: str) -> list[str]:
        if isinstance(x, Tuple):
            return [n for k, item in enumerate(x.items) for n in names(item, f"{name}[{k}]")]
        if isinstance(x, Record):
            return [n for k, item in enumerate(x.items) for n in names(item, x.kind.part(name, k))]
        return [] if isinstance(x, Static) else [name]

    found = [n for name, x in reading.arguments.items() for n in names(x, name)]
    return found + [o.name for o in reading.outside]


def _parts_in_compiled_code(reading: Reading) -> list[str]:
    """The same as expressions, where all the arguments are in `args`."""

    def parts(x: Abstract, text: str) -> list[str]:
        if isinstance(x, Tuple):
            return [p for k, item in enumerate(x.items) for p in parts(item, f"{text}[{k}]")]
        return [] if isinstance(x, Static) else [text]

    return [p for k, x in enumerate(reading.arguments.values()) for p in parts(x, f"args[{k}]")]


def _parts(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [p for v in value for p in _parts(v)]
    return [] if value is None or isinstance(value, str) or callable(value) else [value]


def _converter(description: Description, example: Any) -> Callable[[Any], Any] | None:
    """What has to be done to an argument before the call: lists become arrays, integers to differentiate by floats."""
    if isinstance(example, Description):
        return None
    if description.kind == "stored":
        dtype = np.dtype(description.parts[0].detail.dtype)
        return lambda values: np.array(values, dtype=dtype)
    if description.kind == "value" and description.detail == FLOAT and isinstance(example, int | np.integer):
        return float
    if description.kind == "record":
        return _record_converter(description, example)
    if description.kind == "tuple":
        inner = [
            _converter(d, e) if is_passed(d) else _left_out if d.kind == "static" else lambda _: ()
            for d, e in zip(description.parts, example, strict=True)
        ]
        if any(inner):

            def convert(values: Any) -> Any:
                items = [v if c is None else c(v) for c, v in zip(inner, values, strict=True)]
                return type(values)(*items) if hasattr(values, "_fields") else tuple(items)

            return convert
    return None


def _record_converter(description: Description, example: Any) -> Callable[[Any], Any]:
    """A dictionary, a dataclass or a list becomes a tuple of what there is of it at run time."""
    layout: Layout = description.detail
    parts = layout.taken_apart(example)
    inner = [(k, _converter(d, parts[k]) or _as_it_is) for k, d in enumerate(description.parts) if is_passed(d)]

    def convert(value: Any) -> Any:
        parts = layout.taken_apart(value)
        return tuple([each(parts[k]) for k, each in inner])

    return convert


def _as_it_is(value: Any) -> Any:
    return value


def _left_out(value: Any) -> Any:
    """What stands in a tuple for something that is compiled in."""
    return value if isinstance(value, str) else None


def _key(value: Any) -> Any:
    """What distinguishes specialisations."""
    kind = type(value)
    if kind is float:
        return kind
    if kind is int:
        return (kind, value) if is_large(value) else kind
    if isinstance(value, enum.Enum):
        return kind, id(value)
    if isinstance(value, np.ndarray):
        exact = kind is np.ndarray and value.dtype.isnative
        what = value.dtype.num * 64 + value.ndim if exact else (kind, value.dtype.str, value.ndim)
        return what, value.flags.c_contiguous
    if kind is tuple or isinstance(value, tuple):
        return (kind, *[_key(v) for v in value])
    if kind is list:
        kinds = {type(v) for v in value}
        return (list, *(kinds if kinds == {float} or is_stored(value) else [_key(v) for v in value]))
    if kind is bool:
        return kind, value
    if kind is np.uint64 and is_large(value.item()):
        return kind, value
    if value is None or isinstance(value, str | np.generic):
        return value if not isinstance(value, np.generic) else kind
    if isinstance(value, int | float):
        return (kind, int(value)) if isinstance(value, int) and is_large(value) else kind
    if is_on_device(value):
        dtype, shape, order = layout_on_device(value)
        return kind, dtype.str, len(shape), order
    layout = layout_of(value)
    if layout is not None:
        return (layout, *[_key(v) for v in layout.taken_apart(value)])
    return (kind, id(value))


def _exact_key(value: Any, *, ones: bool = True) -> Any:
    """What distinguishes specialisations for which lengths of one matter."""
    if isinstance(value, np.ndarray):
        return _key(value), tuple(axis for axis, n in enumerate(value.shape) if n == 1) if ones else ()
    if isinstance(value, tuple) and not isinstance(value, enum.Enum):
        return (type(value), *[_exact_key(v, ones=ones) for v in value])
    if is_on_device(value):
        return _key(value), tuple(axis for axis, n in enumerate(value.shape) if n == 1) if ones else ()
    layout = layout_of(value)
    if layout is not None and not (isinstance(value, list) and is_stored(value)):
        return (layout, *[_exact_key(v, ones=ones) for v in layout.taken_apart(value)])
    return _key(value)


def stand_in(value: Any) -> Any:
    """An example for a type; no length is one, which would stretch."""
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


numba_cpu.callable_from_compiled_code(Derivative, Derivative.compiled_for)
numba_cpu.compiled_code_prints_text()


def chosen_names(wrt: Wrt, names: tuple[str, ...], of: str, variables: Sequence[str] = ()) -> tuple[str, ...]:
    """The names of the arguments to differentiate by, or of the variables."""
    asked: Sequence[int | str] = (wrt,) if isinstance(wrt, int | str | np.integer) else tuple(wrt)
    found = []
    for one in asked:
        one = one if isinstance(one, str) else operator.index(one)
        if isinstance(one, str):
            if one not in names and one not in variables:
                raise ValueError(f"`{of}` has no argument `{one}`; it has {', '.join(names)}")
            found.append(one)
        else:
            if not -len(names) <= one < len(names):
                raise ValueError(f"`{of}` has {len(names)} arguments, there is no {one}")
            found.append(names[one])
    if len(set(found)) != len(found):
        raise ValueError("`wrt` names an argument twice")
    return tuple(found)


def _maker(with_value: bool) -> Callable[..., Derivation]:
    """What `grad` and `value_and_grad` mean inside of a function that is read: of a function with these parameters."""

    def make(names: tuple[str, ...], wrt: Wrt = 0, *, has_aux: bool = False, **options: Any) -> Derivation:
        from srcdiff.pipeline import Derivation

        single = isinstance(wrt, int | str)
        return Derivation("reverse", chosen_names(wrt, names, "the function"), with_value, has_aux, single)

    return make


# -- the public functions --------------------------------------------------------------------------------------------


def grad(
    f: Callable[..., Any], wrt: Wrt = 0, *, has_aux: bool = False, backend: str = "numba", **options: Any
) -> Derivative:
    """The gradient of `f`, a function that returns one float, with respect to the arguments `wrt`.

    `wrt` is a position, a name, or a tuple of those; a tuple gives a tuple of gradients. With `has_aux` the function
    returns a pair, and the gradient is followed by its second part.
    """
    return Derivative(f, "reverse", wrt, with_value=False, has_aux=has_aux, backend=backend, **options)


def value_and_grad(
    f: Callable[..., Any], wrt: Wrt = 0, *, has_aux: bool = False, backend: str = "numba", **options: Any
) -> Derivative:
    """The value of `f` together with its gradient: see `grad`."""
    return Derivative(f, "reverse", wrt, with_value=True, has_aux=has_aux, backend=backend, **options)


grad.__srcdiff_maker__ = _maker(with_value=False)  # type: ignore[attr-defined]
value_and_grad.__srcdiff_maker__ = _maker(with_value=True)  # type: ignore[attr-defined]


class Differentiable(Derivative):
    """A function compiled by srcdiff, with its derivatives as methods."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, "primal", 0, **options)
        self.given = options

    shown = (*Derivative.shown, "grad", "value_and_grad")

    def __reduce__(self) -> Any:
        return _differentiable_again, (findable(self.of), self.given)

    @property
    def __srcdiff_function__(self) -> types.FunctionType:
        return self.function

    def grad(self, wrt: Wrt = 0, *, has_aux: bool = False, **options: Any) -> Derivative:
        """Its gradient: see `srcdiff.grad`."""
        return grad(self.of, wrt, has_aux=has_aux, **{**self.given, **options})

    def value_and_grad(self, wrt: Wrt = 0, *, has_aux: bool = False, **options: Any) -> Derivative:
        """Its value and its gradient: see `srcdiff.value_and_grad`."""
        return value_and_grad(self.of, wrt, has_aux=has_aux, **{**self.given, **options})


def _differentiable_again(function: Any, options: dict[str, Any]) -> Differentiable:
    there = standing_for(function, Differentiable)
    return Differentiable(function, **options) if there is None else there


@overload
def differentiable(f: Callable[..., Any], **options: Any) -> Differentiable: ...
@overload
def differentiable(f: None = None, **options: Any) -> Callable[[Callable[..., Any]], Differentiable]: ...
def differentiable(f: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a function differentiable: calling it runs it compiled, `.grad(...)` gives its gradient."""
    if f is None:
        return lambda function: Differentiable(function, **options)
    return Differentiable(f, **options)


def source(f: Callable[..., Any], *args: Any, wrt: Wrt = 0, mode: str = "reverse", with_value: bool = True) -> str:
    """The generated code as text, for example arguments (or types); without any, types are guessed from the code."""
    if mode not in ("reverse", "forward", "pullback", "primal"):
        raise ValueError(f"unknown mode {mode!r}; there are 'reverse', 'forward', 'pullback' and 'primal'")
    derivative = Derivative(f, mode, wrt, with_value=with_value and mode != "pullback", backend="python")
    if args:
        derivative.compile(*args)
    return derivative.source


def stop_gradient(x: Any) -> Any:
    """`x` itself, taken for a constant by the derivative."""
    return x


stop_gradient.__srcdiff_stop_gradient__ = True  # type: ignore[attr-defined]


def custom_rule(
    f: Callable[..., Any] | None = None,
    *,
    adjoint: Callable[..., Any] | None = None,
    tangent: Callable[..., Any] | None = None,
) -> Any:
    """Declare the derivative of a function: `adjoint(*arguments, out, out_bar)` gives one adjoint for each argument.

    `tangent(*arguments, out, *argument_dots)` gives the tangent of the result. One of the two is enough: each is linear
    in its last arguments, and the other is its transpose. As a decorator, `@custom_rule(adjoint=g)`, or called with the
    function. The function's body is not differentiated.
    """
    if f is None:
        return lambda function: CustomRule(function, adjoint, tangent)
    return CustomRule(f, adjoint, tangent)


def has_floats(value: Any) -> bool:
    """Whether it is, or holds, something to differentiate by."""
    if isinstance(value, np.ndarray):
        return bool(value.dtype.kind == "f")
    parts = parts_of(value)
    return isinstance(value, float | np.floating) if parts is None else any(has_floats(v) for v in parts)
