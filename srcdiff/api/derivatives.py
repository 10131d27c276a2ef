"""Derivatives of functions, specialised by the types of their arguments: `grad`, `value_and_grad` and others."""

from __future__ import annotations

import functools
import inspect
import operator
import re
import sys
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numba.core.errors import NumbaError

from srcdiff.api.direct_arguments import DirectArguments, IndirectError, Passed
from srcdiff.api.parts import gradient_of_parts
from srcdiff.api.workspaces import Given, Memory, Workspace
from srcdiff.backends.backend import Trait
from srcdiff.backends.numba import numba_cpu
from srcdiff.backends.numba.direct import Direct, UnfitError
from srcdiff.backends.numba.interrupts import ONE_AT_A_TIME
from srcdiff.backends.registry import BACKENDS
from srcdiff.diagnostics import (
    ComparisonSearchWarning,
    CompiledDiffersWarning,
    DifferentiationError,
    EqualityTestWarning,
    Problem,
    Refusal,
    Span,
    ZeroGradientWarning,
)
from srcdiff.diagnostics.options import (
    PROGRAM,
    SWITCH,
    Wrt,
    checked_backend,
    compile_options,
    each_of,
    is_one,
    require_inside,
)
from srcdiff.frontend.boundary import parts_of_arguments, result_converter
from srcdiff.frontend.domain.abstract_values import Static, Tuple
from srcdiff.frontend.source.bound_methods import method_behind
from srcdiff.frontend.source.capture import Captured, capture, findable, made_once, plain_function, standing_for
from srcdiff.frontend.source.declared_rules import CustomRule, declare, require_declarable
from srcdiff.frontend.source.guards import Attribute, ChangedError, Constant, Guard, Summary
from srcdiff.frontend.source.watch import Watch
from srcdiff.inspect.report import MemoryReport, memory_report
from srcdiff.ir.nodes import Value
from srcdiff.ir.types import Array, Scalar, is_complex
from srcdiff.library import scipy_interpolate, sparse_arrays
from srcdiff.passes.workspace_parameters import no_memory
from srcdiff.signature.checks import Names
from srcdiff.signature.conversion import as_it_is, converter, gradient_converter, with_identity
from srcdiff.signature.descriptions import Description, is_passed, to_differentiate_by
from srcdiff.signature.flat_views import FlatView
from srcdiff.signature.keys import described as description_of
from srcdiff.signature.keys import is_large, is_on_device, key_of, layout_on_device
from srcdiff.signature.own_arrays import with_own_arrays
from srcdiff.signature.record_layouts import RECORDS, memory_of_records, records_in
from srcdiff.signature.trees import NODES, TUPLES, VALUES, Part, refers_to_itself

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.api.c_functions import CFunction
    from srcdiff.backends.cuda.on_device import OnDevice
    from srcdiff.driver.compiling import Compiled
    from srcdiff.frontend.derivation import Derivation
    from srcdiff.frontend.reading import Reading
    from srcdiff.passes.compilation import Request

for _module in (sparse_arrays, scipy_interpolate):
    _module.stand_for_scipys()
_OURS = str(Path(__file__).parent.parent)
_ARRAY = np.ndarray
_PLAIN = frozenset({float, int})
_WORKSPACE = ("workspace",)
_THE_ARRAY = "pass the array itself, not an object that has `__srcdiff_array__`"
_STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class Derivative:
    """A derivative of a function, made by `grad`, `value_and_grad` and others. Call it like the function.

    The first call with new argument types generates and compiles code for these types: a specialisation.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        mode: str,
        wrt: Wrt,
        *,
        with_value: bool = True,
        has_aux: bool = False,
        jacobian: bool = False,
        directions: int | None = None,
        numbers: int | None = None,
        backend: str = "numba",
        **options: Any,
    ) -> None:
        PROGRAM.checked("mode", mode)
        checked_backend(backend)
        SWITCH.checked("has_aux", has_aux)
        options = compile_options(backend, options)
        BACKENDS[backend].require_installed()
        if has_aux and mode != "reverse":
            raise TypeError("`has_aux` is an option of `grad` and `value_and_grad` only")
        self.of: Any = function
        """The function or derivative that is differentiated."""
        self.jacobian, self.directions, self.numbers = jacobian, directions, numbers
        """Whether this is a Jacobian; the number of directions in one sweep; the number of all directions."""
        derivative = getattr(function, "__srcdiff_derivative__", None)
        plain = plain_function(function) if derivative is None else derivative.function
        if plain is None:
            raise TypeError(f"{function!r} is not a Python function: wrap it in a function or a lambda")
        self.function: types.FunctionType = plain
        self.original: Any = function if derivative is None else derivative.original
        """The function that the user passed, which may be a Numba dispatcher."""
        self.mode, self.with_value, self.has_aux, self.backend, self.options = (
            mode,
            with_value,
            has_aux,
            backend,
            options,
        )
        self.single = is_one(wrt)
        self.asked = wrt
        """`wrt` as the user wrote it."""
        self.specialisations: dict[Any, Specialisation] = {}
        self.stretched: set[Any] = set()
        """The keys of arguments whose axes of length one are broadcast. They need an exact specialisation."""
        self.direct: Specialisation | None = None
        """The specialisation of the latest call, if the next call with such arguments can call it directly."""
        self.direct_tangent: Specialisation | None = None
        """The same for forward mode."""
        self.latest: Specialisation | None = None
        self.entry: Any = None
        functools.update_wrapper(self, plain, updated=())
        self._look_at_parameters()

    def _look_at_parameters(self) -> None:
        """Read the parameters from the current code of the function."""
        self.code = self.function.__code__
        self.signature = inspect.signature(self.function, follow_wrapped=False)
        self.names = tuple(self.signature.parameters)
        kinds = {p.kind for p in self.signature.parameters.values()}
        self.stars = {n: _STARS[p.kind] + n for n, p in self.signature.parameters.items() if p.kind in _STARS}
        """The variadic parameters, as they are written: `*args`."""
        self.by_name = bool(kinds - {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})
        self.takes_out = self.mode == "reverse" and "out" not in self.names
        self.takes_out = self.takes_out and inspect.Parameter.VAR_KEYWORD not in kinds
        self.wrt = self.chosen(self.asked) if self.mode != "primal" else ()
        self.__doc__ = described(_WHAT.get(self.kind, ""), self, self.function.__doc__)
        self.__signature__ = self._own_signature()

    def has(self, trait: Trait) -> bool:
        """Whether its backend has the trait."""
        return trait in BACKENDS[self.backend].traits

    def follow(self) -> None:
        """Notice that the function has new code, or that its dispatcher has a new function."""
        inner = getattr(self.of, "__srcdiff_derivative__", None)
        if inner is not None:
            inner.follow()
        function = (plain_function(self.of) if inner is None else inner.function) or self.function
        if function is not self.function or function.__code__ is not self.code:
            self.function, self.direct, self.direct_tangent, self.latest = function, None, None, None
            self._look_at_parameters()

    @property
    def kind(self) -> str:
        """The name of the public function that makes this kind of derivative."""
        names = {"primal": "differentiable", "pullback": "vjp", "forward": "jvp"}
        return names.get(self.mode, "value_and_grad" if self.with_value else "grad")

    def _own_signature(self) -> inspect.Signature:
        """The signature of the function, with `out` and the return type of the derivative."""
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
        options |= {"jacobian": self.jacobian, "directions": self.directions, "numbers": self.numbers}
        return _derivative_again, (findable(self.of), self.mode, wrt, options)

    def __dir__(self) -> list[str]:
        return sorted({*(n for n in super().__dir__() if n.startswith("__")), *self.shown})

    shown: tuple[str, ...] = ("cfunc", "compile", "function", "kind", "ravel", "report", "source", "workspace", "wrt")
    """The public attributes."""

    def chosen(self, wrt: Wrt) -> tuple[str, ...]:
        """The names of the arguments to differentiate by."""
        return chosen_names(wrt, self.names, self.function.__name__, self.stars, self.function.__code__.co_varnames)

    # -- calling -----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        known = self.direct
        if known is not None and len(args) == known.count and not kwargs:
            try:
                return known.direct(*args)
            except (UnfitError, ChangedError):
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

    def tangent(self, args: Sequence[Any], dots: Sequence[Any]) -> Any:
        """The result of forward mode for known types of arguments and tangents; otherwise raise UnfitError."""
        known = self.direct_tangent
        if known is None or len(args) != known.count or len(dots) != len(known.tangents):
            raise UnfitError
        try:
            return known.direct_tangent(*args, *dots)
        except (ChangedError, OverflowError):  # or an integer that is too large: see `_call`
            raise UnfitError from None
        except (ValueError, IndexError):
            if not known.assumes_sizes:
                raise
            raise UnfitError from None

    def run_tangent(self, args: tuple[Any, ...], dots: tuple[Any, ...]) -> Any:
        """The result of forward mode, for all arguments and for tangents in the form that compiled code takes."""
        result = self.run(args, dots)
        known = self.specialised(args)
        self.direct_tangent = known if not self.by_name and known.learn_tangent(args, dots) else None
        return result

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with arguments of any kind."""
        if "out" in kwargs and self.takes_out:
            return self._into(kwargs.pop("out"), args, kwargs)
        given = self.bound(args, kwargs)
        if self.mode == "primal":
            self._refuse_lost_writes(self._bound(args, kwargs), given)
        return self.run(given)

    def run(self, args: tuple[Any, ...], further: tuple[Any, ...] = ()) -> Any:
        """Call it with all arguments of the function, and the further arguments of the derivative."""
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
    def key(args: tuple[Any, ...], *, exact: bool = False) -> Any:
        """The key of a specialisation; the values of booleans are compiled in."""
        return tuple([("flag", a) if a is True or a is False else key_of(a, exact=exact) for a in args])

    def specialised(self, args: tuple[Any, ...]) -> Specialisation:
        """The specialisation for these arguments. It broadcasts axes of length one if it would raise otherwise."""
        return self._unless_stretched((), args)

    def _unless_stretched(self, kind: tuple[str, ...], args: tuple[Any, ...]) -> Specialisation:
        """The specialisation for the types of the arguments, or the exact one if axes of length one are broadcast."""
        key = (*kind, *self.key(args))
        specialisation = self.specialisations.get(key)
        if specialisation is not None and specialisation.is_current():
            return specialisation
        exact = (*kind, *self.key(args, exact=True))
        if exact == key:  # no size is one
            return self._specialise(key, args, workspace=bool(kind))
        if exact not in self.stretched:
            from srcdiff.driver.compiling import StretchedError

            try:
                return self._specialise(key, args, workspace=bool(kind), given=args)
            except StretchedError:
                self.stretched.add(exact)
        return self._specialise(("exact", *exact), args, exact=True, workspace=bool(kind))

    def _exactly(self, specialisation: Specialisation, args: tuple[Any, ...], further: tuple[Any, ...] = ()) -> Any:
        """Call again after the sizes were found to differ, with axes of length one broadcast."""
        result = self.exactly_specialised(args)(args, further)
        self._note_stretched((), args)
        specialisation.stretches, specialisation.plain = True, False
        self.direct = None
        return result

    def _note_stretched(self, kind: tuple[str, ...], args: tuple[Any, ...]) -> None:
        """Remember that axes of length one are broadcast in such arguments."""
        exact = (*kind, *self.key(args, exact=True))
        if exact != (*kind, *self.key(args)):
            self.stretched.add(exact)

    def stretches(self, args: tuple[Any, ...], kind: tuple[str, ...] = ()) -> bool:
        """Whether axes of length one were broadcast in such arguments before."""
        return bool(self.stretched) and (*kind, *self.key(args, exact=True)) in self.stretched

    def exactly_specialised(self, args: tuple[Any, ...]) -> Specialisation:
        """The specialisation for these types in which the axes of length one are known."""
        return self._specialise(("exact", *self.key(args, exact=True)), args, exact=True)

    def _into(self, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that writes the gradients to given arrays."""
        args = self.bound(args, kwargs)
        if not self.single and not (isinstance(out, tuple) and len(out) == len(self.wrt)):
            raise ValueError(f"`out` must be a tuple of {len(self.wrt)} arrays, for {', '.join(self.wrt)}")
        arguments = dict(zip(self.names, args, strict=True))
        given = Given(self.wrt, [arguments.get(n) for n in self.wrt], (out,) if self.single else out)

        def call(specialisation: Specialisation) -> Any:
            values = specialisation.prepared(args)
            result, _ = specialisation.run(values, given.memory(specialisation.workspace, values))
            return specialisation.with_gradients(specialisation.finished(result, args), given.filled)

        return self.with_workspace(args, call)

    def with_workspace(self, args: tuple[Any, ...], call: Callable[[Specialisation], Any]) -> Any:
        """Call a specialisation that takes its memory from the caller, the exact one if sizes differ."""
        specialisation = self._unless_stretched(_WORKSPACE, args)
        if not self.stretches(args, _WORKSPACE):
            try:
                return call(specialisation)
            except (ValueError, IndexError):
                if not specialisation.assumes_sizes:
                    raise
        exact = ("exact", *_WORKSPACE, *self.key(args, exact=True))
        result = call(self._specialise(exact, args, exact=True, workspace=True))
        self._note_stretched(_WORKSPACE, args)
        return result

    def workspace(self, *args: Any, **kwargs: Any) -> Workspace:
        """A version of the derivative that reuses its memory, so that repeated calls allocate no large arrays.

        The next call overwrites the gradients of the call before. Each thread needs its own workspace. The arguments
        are examples or types, as for `compile`.
        """
        values = self.bound(tuple(stand_in(a) for a in args), {k: stand_in(v) for k, v in kwargs.items()})
        self._unless_stretched(_WORKSPACE, values).compile(values)
        return Workspace(self)

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with the current defaults of the function, as numbers, arrays and structures."""
        given = self._bound(args, kwargs)
        try:
            return with_own_arrays(given)
        except TypeError as error:
            raise DifferentiationError([Problem("SD201", str(error), self.span)]) from None

    def _refuse_lost_writes(self, given: tuple[Any, ...], converted: tuple[Any, ...]) -> None:
        """Refuse to write to an array that stands for an object of the caller's: it may be a copy."""
        if all(a is b for a, b in zip(given, converted, strict=True)):
            return
        writes = self.specialised(converted).compiled.writes
        for name, a, b in zip(self.names, given, converted, strict=True):
            if a is not b and any(re.match(rf"{re.escape(name)}\b", written) for written in writes):
                message = f"the function writes to `{name}`, which is converted to an array for the call"
                raise DifferentiationError([Problem("SD201", message, self.span, help=_THE_ARRAY)])

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        self.follow()
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

    def spread(self, args: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """All arguments in the form of a call: positional ones and keywords."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for value, parameter in zip(args, self.signature.parameters.values(), strict=True):
            match parameter.kind:
                case inspect.Parameter.VAR_POSITIONAL:
                    positional += value
                case inspect.Parameter.VAR_KEYWORD:
                    named |= value
                case inspect.Parameter.KEYWORD_ONLY:
                    named[parameter.name] = value
                case _:
                    positional.append(value)
        return positional, named

    def compile(self, *args: Any, **kwargs: Any) -> Derivative:
        """Generate and compile the code before the first call, for example arguments or types.

        Types are written `float`, `int`, `bool` or as in Numba: `"float64[:]"` is an array with one axis. Returns the
        derivative itself.
        """
        values = self.bound(tuple(stand_in(a) for a in args), {k: stand_in(v) for k, v in kwargs.items()})
        self.specialised(values).compile(values)
        return self

    def ravel(self, *args: Any, **kwargs: Any) -> FlatView:
        """The parameters of the derivative as one vector of float64, with names and slices, and back.

        The arguments are an example. The parameters are all numbers and arrays of floats in the arguments `wrt`: in
        tuples, lists, dictionaries and instances of classes, too.

        >>> def line(p, t):
        ...     return np.sum(p["slope"] * t + p["start"])
        >>> view = grad(line).ravel({"slope": 2.0, "start": np.zeros(2)}, np.ones(2))
        >>> view.x, view.names
        (array([2., 0., 0.]), ["p['slope']", "p['start'][0]", "p['start'][1]"])
        >>> view.unravel([1.0, 2.0, 3.0])
        {'slope': 1.0, 'start': array([2., 3.])}
        """
        bound = self.bound(args, kwargs)
        inner = [name for name in self.wrt if name not in self.names]
        if inner or not self.wrt:
            what = f"`{inner[0]}` is not an argument" if inner else "it has no arguments to differentiate by"
            raise TypeError(f"{self!r} has no flat view: {what}")
        if any(
            refers_to_itself(argument) for name, argument in zip(self.names, bound, strict=True) if name in self.wrt
        ):
            raise TypeError(f"{self!r} has no flat view: an instance in the arguments refers to itself")
        return FlatView(self.names, bound, self.wrt, single=self.single)

    def cfunc(self, *args: Any, **kwargs: Any) -> CFunction:
        """A compiled function for C that computes the value and the gradient, without Python in the call.

            int f(int64_t n, const double *x, double *gradient, double *value, void *data)

        `x` is the vector of parameters, as `ravel` makes it from the same example. The other arguments are copied
        now, and the code is that of the function as it is now. It returns 0, 1 if the function has raised an exception,
        -1 if `n` is wrong, and -2 for a null pointer; if it does not return 0, it has written nothing.

        >>> c = grad(lambda x: x[0] * x[1]).cfunc(np.array([2.0, 3.0]))
        >>> c.address > 0
        True
        >>> c(np.array([2.0, 3.0]))  # through ctypes
        (6.0, array([3., 2.]))
        """
        from srcdiff.api.c_functions import CFunction

        return CFunction(self, self.ravel(*args, **kwargs))

    @property
    def captured(self) -> Captured:
        try:
            return capture(self.original)
        except Refusal as refusal:
            assert refusal.problem is not None
            raise DifferentiationError([refusal.problem]) from None

    @property
    def span(self) -> Span:
        node = self.captured.node
        return Span(self.captured.file, node.lineno, node.col_offset, node.col_offset + 3, self.captured.name)

    def body_for(self, given: tuple[Any, ...], types_: Any = None) -> numba_cpu.Body:
        """The code that a Numba function runs when it calls the derivative with such arguments."""
        if self.mode == "forward" and not self.jacobian:
            raise TypeError(f"{self!r} takes tangents: use `srcdiff.jvp`")
        return numba_cpu.body_of_call(*self.compiled_for(given))

    def body_with_tangents(self, given: tuple[Any, ...], dots: Sequence[str], form: str) -> numba_cpu.Body:
        """The code that a Numba function runs for a call in forward mode; `dots` are expressions of the tangents."""
        compiled, apart, passed = self.compiled_for(given)
        specialisation = self.latest
        assert specialisation is not None
        if specialisation.listed is not as_it_is or specialisation.compiled.written:
            raise TypeError(f"{self!r} cannot be called from compiled code: it returns lists, or writes to arguments")
        checks = []
        for name, dot in zip(self.wrt, dots, strict=True):
            kind = getattr(specialisation.compiled.reading.arguments[name], "type", None)
            if isinstance(kind, Array):
                checks += numba_cpu.check_of_shapes(f"args[{self.names.index(name)}]", dot, name)
                passed.append(dot)
            elif isinstance(kind, Scalar):
                passed.append(f"{'complex' if is_complex(kind) else 'float'}({dot})")
            else:
                raise TypeError(
                    f"{self!r} cannot be called from compiled code: `{name}` is neither a number nor an array"
                )
        return numba_cpu.body_of_call(compiled, apart, passed, form, checks)

    def compiled_for(self, given: tuple[Any, ...]) -> tuple[Any, list[tuple[str, str]], list[str]]:
        """For a call from compiled code: the compiled function, the pairs of arguments that must not share memory, and
        the expressions of all arguments.

        `given` has a description of each argument, or the argument itself if it is a constant.
        """
        if not self.has(Trait.COMPILED):
            raise TypeError(f"{self!r} uses the backend {self.backend!r}, but compiled code needs 'numba'")
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
        parts = [part.subscripted("args") for part in parts_of_arguments(specialisation.compiled.reading.arguments)]
        return specialisation.function, [(parts[a], parts[b]) for a, b in specialisation.apart], passed

    def _specialise(
        self, key: Any, args: tuple[Any, ...], *, given: Sequence[Any] | None = None, **kind: Any
    ) -> Specialisation:
        """The specialisation for the key. One thread makes it while the others wait."""
        known = self.specialisations.get(key)
        if known is None or not known.is_current():
            with ONE_AT_A_TIME:
                known = self.specialisations.get(key)
                if known is None or not known.is_current():
                    known = self._specialised(args, given, **kind)
                    self.specialisations[key] = known
        if not kind.get("workspace"):
            self.latest = known
        return known

    def specialised_with_results(self, args: tuple[Any, ...]) -> Specialisation:
        """The specialisation that writes its results to arrays of the caller, or the plain one if none does."""
        key = self.key(args)
        if key != self.key(args, exact=True):  # axes of length one may be broadcast
            return self.specialised(args)
        known = self.specialisations.get(key)
        if known is not None and known.is_current() and ("results", *key) not in self.specialisations:
            return known
        found = self._specialise(("results", *key), args, given_results=True)
        if not found.workspace:
            self.specialisations[key] = found
        return found

    def specialised_for_batch(self, args: tuple[Any, ...], batch: tuple[str, ...], sums: bool) -> Specialisation:
        """The specialisation for a batch on a GPU; `args` are the arguments of its first element."""
        with ONE_AT_A_TIME:
            self.latest = self._specialised(args, None, exact=True, batch=batch, sums=sums)
            return self.latest

    def request(
        self,
        args: tuple[Any, ...],
        *,
        exact: bool = False,
        workspace: bool = False,
        given_results: bool = False,
        batch: tuple[str, ...] = (),
        sums: bool = False,
    ) -> Request:
        """The request to the compiler for these arguments, or for their descriptions."""
        from srcdiff.passes.compilation import Request

        keys = zip(self.names, self.key(args, exact=exact), strict=True)
        descriptions = {n: description_of(key, n, self.span, exact=exact) for n, key in keys}
        for name in set(self.wrt) & set(self.names):
            descriptions[name] = to_differentiate_by(descriptions[name])
        request = Request(self.captured, descriptions, self.wrt, self.mode, self.with_value, self.has_aux, self.single)
        request.exact, request.workspace, request.batch, request.sums = exact, workspace, batch, sums
        request.given_results = given_results
        request.of = getattr(self.of, "__srcdiff_derivative__", None) or getattr(self.of, "__srcdiff_rule__", None)
        request.jacobian, request.directions, request.numbers = self.jacobian, self.directions, self.numbers
        request.error_model = self.options.get("error_model", "")
        request.parallel = self.options.get("parallel", False)
        return request

    def _specialised(self, args: tuple[Any, ...], given: Sequence[Any] | None = None, **kind: Any) -> Specialisation:
        from srcdiff.driver.compiling import compile_request

        request = self.request(args, **kind)
        compiled = compile_request(request, self.backend, self.options, given)
        if compiled.reading.assumes_sizes and ((self.mode == "primal" and compiled.writes) or compiled.reading.draws):
            request.exact = True  # a second call cannot undo what the first has written
            compiled = compile_request(request, self.backend, self.options)
        if self.mode == "primal" and any(
            o.name in compiled.writes and isinstance(o.place, Summary) for o in compiled.reading.outside
        ):
            message = "the function writes to an object from outside, which is converted to an array for the call"
            raise DifferentiationError([Problem("SD201", message, self.span, help=_THE_ARRAY)])
        self._warn(compiled)
        return Specialisation(compiled, request.arguments, self, args, exact=bool(kind.get("exact")))

    def _warn(self, compiled: Compiled) -> None:
        level, frame = 1, sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
            level, frame = level + 1, frame.f_back  # the user's line
        for message in compiled.warnings:
            warnings.warn(message, ZeroGradientWarning, stacklevel=level)
        for message in compiled.equality_tests:
            warnings.warn(message, EqualityTestWarning, stacklevel=level)
        for message in compiled.searches:
            warnings.warn(message, ComparisonSearchWarning, stacklevel=level)
        for message in compiled.reading.differences:
            warnings.warn(message, CompiledDiffersWarning, stacklevel=level)

    @property
    def __srcdiff_derivative__(self) -> Derivative | None:
        """The derivative that a program means when it calls this object."""
        return getattr(self.of, "__srcdiff_derivative__", None) if self.mode == "primal" else self

    @property
    def __srcdiff_rule__(self) -> CustomRule | None:
        """The custom rule of the function, if this is the function itself."""
        return getattr(self.of, "__srcdiff_rule__", None) if self.mode == "primal" else None

    @property
    def suffix(self) -> str:
        """The suffix of the names of generated functions."""
        own = {"pullback": "pullback", "forward": "tangent"}.get(
            self.mode, "value_and_grad" if self.with_value else "grad"
        )
        inner = getattr(self.of, "__srcdiff_derivative__", None)
        return own if inner is None else f"{inner.suffix}_{own}"

    @property
    def derivation(self) -> Derivation:
        """The kind of this derivative, without its function."""
        from srcdiff.frontend.derivation import Derivation

        kind = (self.with_value, self.has_aux, self.single, self.jacobian, self.directions)
        return Derivation(self.mode, self.wrt, *kind)

    def guards(self) -> list[Guard]:
        """Guards that the dispatcher, or the class of the instance, still has this function."""
        if hasattr(self.of, "py_func"):
            return [Guard(Attribute(Constant(self.of), "py_func"), self.function)]
        method = None if isinstance(self.of, types.MethodType) else method_behind(self.of)
        if method is None or isinstance(self.of, types.FunctionType):
            return []
        return [Guard(Attribute(Attribute(Constant(self.of), "__call__"), "__func__"), method.__func__)]

    # -- inspection --------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The generated source code for the argument types of the latest call.

        Before the first call, the types are guessed from annotations, defaults and the code of the function.
        """
        if self.latest is None:
            from srcdiff.frontend.source.guess import guessed_arguments

            with ONE_AT_A_TIME:
                self.latest = self._specialised(tuple(guessed_arguments(self.captured, self.signature).values()))
        return self.latest.compiled.text

    def ptx(self, cc: tuple[int, int] = (8, 0)) -> dict[str, str]:
        """The PTX code of each kernel of the latest specialisation, for a compute capability. Needs no GPU."""
        return self._on_device().ptx(cc)

    def resources(self, cc: tuple[int, int] = (8, 0)) -> dict[str, dict[str, int]]:
        """The resources of each kernel per thread: registers, bytes of stack and of shared memory, and spills."""
        return self._on_device().resources(cc)

    def _on_device(self) -> OnDevice:
        if not self.has(Trait.KERNELS):
            raise TypeError(f"{self!r} uses the backend {self.backend!r}, but only 'cuda' has kernels")
        _ = self.source  # it is specialised now, if it was not
        assert self.latest is not None
        found: Any = self.latest.function
        on_device: OnDevice = found
        return on_device

    def _repr_html_(self) -> str | None:
        """The function and its derivative side by side, for notebooks; None if the argument types are not known yet."""
        from srcdiff.driver.compiling import follow
        from srcdiff.frontend.source.guess import guessed_arguments
        from srcdiff.inspect.sides import sides_of

        try:
            guessed = () if self.latest else tuple(guessed_arguments(self.captured, self.signature).values())
            request = self.latest.compiled.request if self.latest else self.request(guessed)
            return sides_of(follow(request, self.backend))._repr_html_()
        except DifferentiationError:
            return None

    def report(self, *args: Any, **kwargs: Any) -> MemoryReport:
        """Call the derivative, and report the bytes that it stores for the reverse sweep, by variable and line."""
        args = self.bound(args, kwargs)

        def call(specialisation: Specialisation) -> MemoryReport:
            _, memory = specialisation.run(specialisation.prepared(args), no_memory(specialisation.workspace))
            elsewhere = specialisation.compiled.kept_elsewhere
            return memory_report(self.function.__name__, specialisation.workspace, memory, elsewhere)

        report: MemoryReport = self.with_workspace(args, call)
        return report

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
    """The docstring of a derivative: its kind, and the docstring of its function."""
    if not what:
        return doc
    of = f"{derivative.function.__name__}({', '.join(derivative.names)})"
    line = f"{what} of `{of}` with respect to {', '.join(f'`{n}`' for n in derivative.wrt)}, by srcdiff."
    return f"{line}\n\n{inspect.cleandoc(doc)}" if doc else line


def _tuple_of(annotations: Sequence[Any]) -> Any:
    """The annotation of a tuple, if all of its elements are annotated."""
    if any(a is inspect.Parameter.empty for a in annotations):
        return inspect.Parameter.empty
    if any(isinstance(a, str) for a in annotations):
        return f"tuple[{', '.join(a if isinstance(a, str) else inspect.formatannotation(a) for a in annotations)}]"
    return tuple[tuple(annotations)]  # type: ignore[misc]


def _derivative_again(of: Any, mode: str, wrt: Wrt, options: dict[str, Any]) -> Derivative:
    return Derivative(of, mode, wrt, **options)


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
            return self.straight_tangent.learn(self.function, [*self.converted(args), *self.from_outside(), *dots])
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
            return self.straight.learn(self.function, [*self.converted(args), *self.from_outside()])
        except ChangedError:
            return False

    def __call__(self, args: tuple[Any, ...], further: tuple[Any, ...] = ()) -> Any:
        if self.stretches and self.owner.stretches(args):
            return self.owner._exactly(self, args, further)
        return self.finished(self.function(*self.prepared(args), *further), args)

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
                what = "list" if isinstance(found, list) else f"instance of `{type(found).__name__}`"
                function = f"`{self.owner.function.__name__}`"
                message = f"the same {what} is passed twice"
                if id(found) in outside:
                    message = f"the same {what} is passed and read from outside by {function}"
                message += "" if isinstance(found, list) else f", and {function} writes to its attributes"
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


numba_cpu.callable_from_compiled_code(Derivative, Derivative.body_for)
numba_cpu.compiled_code_prints_text()


def chosen_names(
    wrt: Wrt, names: tuple[str, ...], of: str, stars: Mapping[str, str] | None = None, variables: Sequence[str] = ()
) -> tuple[str, ...]:
    """The names of the arguments (or local variables) in `wrt`; `stars` are the variadic parameters."""
    places = range(len(names)) if not stars else range(min(map(names.index, stars)))
    found = []
    for one in each_of(wrt):
        if isinstance(one, str):
            if one not in names and one not in variables:
                raise ValueError(f"`{of}` has no argument `{one}`; its arguments are {', '.join(names)}")
            found.append(one)
        else:
            if stars and one not in places:
                name, star = next(iter(stars.items()))
                message = (
                    f"`{of}` takes `{star}`, so position {one} is not a single parameter: use the name of a parameter"
                )
                raise ValueError(f"{message}, use {name!r} for all of `{star}`, or write a lambda that calls `{of}`")
            if not -len(names) <= one < len(names):
                raise ValueError(f"`{of}` has {len(names)} arguments, so there is no position {one}")
            found.append(names[one])
    if len(set(found)) != len(found):
        raise ValueError("`wrt` names an argument twice")
    return tuple(found)


def _maker(with_value: bool) -> Callable[..., Derivation]:
    """What `grad` and `value_and_grad` mean inside a differentiated function."""

    def make(
        of: str,
        names: tuple[str, ...],
        stars: Mapping[str, str],
        wrt: Wrt = 0,
        *,
        has_aux: bool = False,
        **options: Any,
    ) -> Derivation:
        from srcdiff.frontend.derivation import Derivation

        require_inside(options)
        chosen = chosen_names(wrt, names, of, stars)
        return Derivation("reverse", chosen, with_value, SWITCH.checked("has_aux", has_aux), is_one(wrt))

    return make


@made_once
def _reverse(f: Any, wrt: Any, with_value: bool, has_aux: bool, backend: str, options: tuple[Any, ...]) -> Derivative:
    how = dict(options)
    return Derivative(f, "reverse", wrt, with_value=with_value, has_aux=has_aux, backend=backend, **how)


def _reverse_mode(f: Any, wrt: Wrt, with_value: bool, has_aux: bool, backend: str, options: dict[str, Any]) -> Any:
    """The same derivative for equal requests, so that `grad(f)(x)` in a loop compiles once."""
    if type(wrt) is not int:
        parts = gradient_of_parts(f, wrt, lambda g, of: _reverse_mode(g, of, with_value, has_aux, backend, options))
        if parts is not None:
            return parts
    if options:
        options = compile_options(backend, options)
    is_key = type(wrt) in _NAMES or (type(wrt) is tuple and all(type(one) in _NAMES for one in wrt))
    if is_key and type(has_aux) is bool and type(backend) is str:  # type: ignore[redundant-expr]
        try:
            derivative: Derivative = _reverse(f, wrt, with_value, has_aux, backend, tuple(sorted(options.items())))
            return derivative
        except TypeError:  # an argument is not hashable, or it is wrong and the call below raises
            pass
    return Derivative(f, "reverse", wrt, with_value=with_value, has_aux=has_aux, backend=backend, **options)


_NAMES = (int, str)


# -- the public functions --------------------------------------------------------------------------------------------


def grad(
    f: Callable[..., Any], wrt: Wrt = 0, *, has_aux: bool = False, backend: str = "numba", **options: Any
) -> Derivative:
    """Make a function that computes the gradient of `f`.

    `f` is not called. The first call of the gradient with new argument types generates code for these types and
    compiles it; later calls with the same types run the compiled code.

    >>> import numpy as np
    >>> def energy(x, scale):
    ...     return scale * np.sum(x**2)
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> grad(energy)(x, 0.5)  # with respect to x, the first argument
    array([1., 2., 3.])
    >>> x_bar, scale_bar = grad(energy, wrt=("x", "scale"))(x, 0.5)
    >>> float(scale_bar)
    14.0
    >>> print(grad(energy).source)
    import numpy as np
    ...
    def energy_grad(x, scale):
    ...

    Args:
        f: A Python function that returns one float. It may call other functions. It may also be a function compiled
            with `@njit`, a bound method, an instance with `__call__`, or a derivative made by srcdiff.
        wrt: The arguments to differentiate with respect to: a position, a name, or a tuple of these. They may be
            floats, arrays of floats, and tuples, lists, dictionaries and instances of classes of these. `"model.w"`
            is an attribute of an argument, and `"self.w"` one of the instance that a method is bound to.
        has_aux: Whether `f` returns a pair of a float and any other value. Then the gradient returns a pair, too: the
            derivative of the float, and the other value.
        backend: `"numba"` compiles the generated code, `"python"` runs it in the interpreter, `"cuda"` runs its loops
            on a GPU.
        **options: How the code is compiled: `fastmath`, `error_model`, `boundscheck`, `parallel`, `cache`.

    Returns:
        A function with the parameters of `f`. It returns the gradient: a value with the structure, shape and dtype of
        the argument, or a tuple of these if `wrt` is a tuple. With `out=`, it writes the gradient to given arrays. Its
        attribute `source` is the generated code; `compile` compiles it before the first call.

    Raises:
        DifferentiationError: At the first call with new argument types, if `f` cannot be differentiated. The message
            shows the lines of `f`, the reason, and what to write instead.
    """
    derivative: Derivative = _reverse_mode(f, wrt, False, has_aux, backend, options)
    return derivative


def value_and_grad(
    f: Callable[..., Any], wrt: Wrt = 0, *, has_aux: bool = False, backend: str = "numba", **options: Any
) -> Derivative:
    """Make a function that computes the value of `f` together with its gradient.

    This costs less than a call of `f` and a call of its gradient.

    >>> value, slope = value_and_grad(lambda x: x**3)(2.0)
    >>> float(value), float(slope)
    (8.0, 12.0)

    Args:
        f: A Python function that returns one float, as for `grad`.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        has_aux: Whether `f` returns a pair of a float and any other value. Then the value is this pair.
        backend: As for `grad`.
        **options: As for `grad`.

    Returns:
        A function with the parameters of `f` that returns the pair `(value, gradient)`.

    Raises:
        DifferentiationError: At the first call with new argument types, if `f` cannot be differentiated.
    """
    derivative: Derivative = _reverse_mode(f, wrt, True, has_aux, backend, options)
    return derivative


grad.__srcdiff_maker__ = _maker(with_value=False)  # type: ignore[attr-defined]
value_and_grad.__srcdiff_maker__ = _maker(with_value=True)  # type: ignore[attr-defined]


class Differentiable(Derivative):
    """A function compiled by srcdiff, with its derivatives as methods: see `differentiable`."""

    def __init__(self, function: Callable[..., Any], *, backend: str = "numba", **options: Any) -> None:
        checked = compile_options(backend, options)
        super().__init__(function, "primal", 0, backend=backend, **checked)
        self.given = {"backend": backend, **checked}

    shown = ("compile", "function", "grad", "kind", "report", "source", "value_and_grad", "workspace", "wrt")

    def __reduce__(self) -> Any:
        return _differentiable_again, (findable(self.of), self.given)

    @property
    def __srcdiff_function__(self) -> Any:
        return self.original

    def grad(self, wrt: Wrt = 0, *, has_aux: bool = False, **options: Any) -> Derivative:
        """The gradient of the function: see `srcdiff.grad`."""
        return grad(self.of, wrt, has_aux=has_aux, **{**self.given, **options})

    def value_and_grad(self, wrt: Wrt = 0, *, has_aux: bool = False, **options: Any) -> Derivative:
        """The value and the gradient of the function: see `srcdiff.value_and_grad`."""
        return value_and_grad(self.of, wrt, has_aux=has_aux, **{**self.given, **options})


def _differentiable_again(function: Any, options: dict[str, Any]) -> Differentiable:
    there = standing_for(function, Differentiable)
    return Differentiable(function, **options) if there is None else there


@overload
def differentiable(f: Callable[..., Any], **options: Any) -> Differentiable: ...
@overload
def differentiable(f: None = None, **options: Any) -> Callable[[Callable[..., Any]], Differentiable]: ...
def differentiable(f: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function with srcdiff, and give it its derivatives as methods. Use it as a decorator.

    >>> @differentiable
    ... def square(x):
    ...     return x * x
    >>> float(square(3.0)), float(square.grad()(3.0))
    (9.0, 6.0)

    Args:
        f: A Python function. Without it, a decorator is returned: `@differentiable(backend="python")`.
        **options: `backend` and the compile options of `grad`.

    Returns:
        A function that runs the compiled code of `f`. Its methods `grad` and `value_and_grad` take the arguments of
        `srcdiff.grad` except `f`.
    """
    if f is None:
        return lambda function: Differentiable(function, **options)
    return Differentiable(f, **options)


def source(f: Callable[..., Any], *args: Any, wrt: Wrt = 0, mode: str = "reverse", with_value: bool = True) -> str:
    """The generated source code of a derivative, without compiling or running it.

    >>> def square(x):
    ...     return x * x
    >>> print(source(square, 1.5, with_value=False).rstrip())
    def square_grad(x):
        # reverse sweep
        x_bar = 2.0 * x
        return x_bar

    Args:
        f: A Python function.
        *args: Example arguments, or types such as `float` and `"float64[:]"`. Without any, the types are guessed from
            annotations, defaults and the code.
        wrt: The arguments to differentiate with respect to, as for `grad`.
        mode: `"reverse"` (a gradient), `"forward"` (tangents), `"pullback"` (adjoints of any result), or `"primal"`
            (the function itself, as srcdiff compiles it).
        with_value: Whether the code also returns the value of `f`.

    Returns:
        The text of a Python module.
    """
    PROGRAM.checked("mode", mode)
    SWITCH.checked("with_value", with_value)
    derivative = Derivative(f, mode, wrt, with_value=with_value and mode != "pullback", backend="python")
    if args:
        derivative.compile(*args)
    return derivative.source


def stop_gradient(x: Any) -> Any:
    """Return `x`; a derivative treats it as a constant.

    >>> float(grad(lambda x: x * stop_gradient(x))(3.0))
    3.0

    Args:
        x: A number, or an array.

    Returns:
        `x` itself.
    """
    return x


stop_gradient.__srcdiff_stop_gradient__ = True  # type: ignore[attr-defined]


def custom_rule(
    f: Callable[..., Any] | None = None,
    *,
    adjoint: Callable[..., Any] | None = None,
    tangent: Callable[..., Any] | None = None,
) -> Any:
    """Declare the derivative of a function. The body of the function is not differentiated.

    Either rule is enough: each is linear in its last arguments, and srcdiff derives the other as its transpose.

    >>> import math
    >>> def cube_root_adjoint(x, out, out_bar):
    ...     return out_bar / (3.0 * out**2)
    >>> @custom_rule(adjoint=cube_root_adjoint)
    ... def cube_root(x):
    ...     return math.cbrt(x)
    >>> float(grad(cube_root)(8.0))
    0.08333333333333333

    Args:
        f: The function; it takes and returns numbers and arrays. Without it, a decorator is returned.
        adjoint: `adjoint(*arguments, out, out_bar)`: from the arguments, the result and the adjoint of the result, it
            returns the adjoint of the argument, or a tuple with one adjoint for each argument.
        tangent: `tangent(*arguments, out, *argument_dots)`: from the arguments, the result and the tangents of the
            arguments, it returns the tangent of the result.

    Returns:
        A function that can be called like `f`, inside and outside of differentiated functions.
    """
    if f is None:
        return lambda function: CustomRule(function, adjoint, tangent)
    return CustomRule(f, adjoint, tangent)


def rule_for(
    function: Callable[..., Any],
    *,
    adjoint: Callable[..., Any] | None = None,
    tangent: Callable[..., Any] | None = None,
    replace: bool = False,
) -> Callable[[Callable[..., Any]], Any]:
    """Declare the derivative of a function that you cannot edit: one of a library, or one without Python source.

    Use it as a decorator on a Python function that computes the same. In generated code, this implementation stands for
    the function. Without `adjoint` and `tangent`, the implementation itself is differentiated.

    >>> from scipy.special import exprel
    >>> @rule_for(exprel, adjoint=lambda x, out, out_bar: out_bar * (np.exp(x) - out) / x)
    ... def relative_exponential(x):
    ...     return np.expm1(x) / x
    >>> float(grad(lambda x: exprel(x))(1.0))
    1.0

    Args:
        function: The function as your code calls it, for example `scipy.special.j0`. If it is a ufunc of NumPy or
            SciPy, the implementation and its rules take numbers, and are called for each element of arrays.
        adjoint: The rule in reverse mode, as for `custom_rule`.
        tangent: The rule in forward mode, as for `custom_rule`.
        replace: Whether the function may have a rule already. Without it, a second rule is an error.

    Returns:
        A decorator. It returns the implementation, with the derivative that is declared.
    """
    SWITCH.checked("replace", replace)
    require_declarable(function)
    return lambda implementation: declare(function, implementation, adjoint, tangent, replace)


def has_floats(value: Any) -> bool:
    """Whether the value is or contains a float or an array of floats."""
    return any(map(is_of_floats, VALUES.leaves(value)))


def is_of_floats(leaf: Any) -> bool:
    """Whether the value is a float or an array of floats."""
    return isinstance(leaf, float | complex | np.inexact) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc")
