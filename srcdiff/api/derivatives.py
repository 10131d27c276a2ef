"""Derivatives as objects that users call: one keeps a specialisation for each combination of argument types."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core.errors import NumbaError

from srcdiff.api.chosen_arguments import chosen_names
from srcdiff.api.specialisations import Specialisation, stand_in
from srcdiff.api.workspaces import Given, Workspace
from srcdiff.backends.backend import Trait
from srcdiff.backends.numba import numba_cpu
from srcdiff.backends.numba.direct import UnfitError
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
from srcdiff.diagnostics.garbage import seldom_collected
from srcdiff.diagnostics.options import PROGRAM, SWITCH, Wrt, checked_backend, compile_options, is_one
from srcdiff.frontend.boundary import parts_of_arguments
from srcdiff.frontend.source.bound_methods import method_behind
from srcdiff.frontend.source.capture import Captured, capture, findable, plain_function
from srcdiff.frontend.source.declared_rules import CustomRule
from srcdiff.frontend.source.guards import Attribute, ChangedError, Constant, Guard, Summary
from srcdiff.inspect.report import MemoryReport, memory_report
from srcdiff.ir.aliasing import points_to, written_sites
from srcdiff.ir.types import Array, Scalar, is_complex
from srcdiff.library import constraints, scipy_interpolate, sparse_arrays
from srcdiff.passes.workspace_parameters import no_memory
from srcdiff.signature.conversion import as_it_is
from srcdiff.signature.descriptions import Description, Paths, paths_below, to_differentiate_by
from srcdiff.signature.flat_views import FlatView
from srcdiff.signature.foreign_arrays import Kind, kind_of
from srcdiff.signature.keys import described as description_of
from srcdiff.signature.keys import is_large, key_of
from srcdiff.signature.own_arrays import NoArrayError, with_own_arrays
from srcdiff.signature.trees import refers_to_itself

if TYPE_CHECKING:  # the compiler is imported when the first function is differentiated
    from srcdiff.api.c_functions import CFunction
    from srcdiff.backends.cuda.on_device import OnDevice
    from srcdiff.driver.compiling import Compiled
    from srcdiff.frontend.derivation import Derivation
    from srcdiff.passes.compilation import Request

for _module in (sparse_arrays, scipy_interpolate, constraints):
    _module.stand_for_scipys()
_OURS = str(Path(__file__).parent.parent)
_WORKSPACE = ("workspace",)
_AN_ARRAY = "pass an array of NumPy, for example `np.asarray(x)`, if NumPy's meaning is intended"
_THE_ARRAY = "pass an array of NumPy, not an object that stands for one"
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
        parts: Paths = (),
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
        self.parts = parts
        """The attributes of arguments that the caller asks for, if not for whole arguments."""
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
        self.taken: weakref.WeakKeyDictionary[Specialisation, frozenset[Kind]] = weakref.WeakKeyDictionary()
        """The kinds of foreign arrays that specialisations have been found to take."""
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
        options |= {
            "jacobian": self.jacobian,
            "directions": self.directions,
            "numbers": self.numbers,
            "parts": self.parts,
        }
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
            result = specialisation.computed(args) if plain else specialisation(args, further)
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
        converted, kinds, given = self.converted(args, kwargs)
        if kinds:
            self.refuse_other_meanings(given, converted, kinds)
        return converted

    def converted(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], list[Kind], tuple[Any, ...]]:
        """The same, the kinds of foreign arrays that became arrays of NumPy, and the arguments as they were."""
        given = self._bound(args, kwargs)
        try:
            return *with_own_arrays(given), given
        except NoArrayError as error:
            raise DifferentiationError([Problem("SD201", str(error), self.span)]) from None
        except Exception as error:
            place = f"`{self.function.__code__.co_qualname}`, {self.code.co_filename}:{self.code.co_firstlineno}"
            error.add_note(f"in an argument of {place}, which srcdiff takes as an array of NumPy")
            raise

    def refuse_other_meanings(self, given: tuple[Any, ...], converted: tuple[Any, ...], kinds: Sequence[Kind]) -> None:
        """Refuse what is something else for arrays of NumPy than for the foreign ones in their place.

        These are methods of the same name, and writes: elements of arrays may be views, and copies may be written to.
        """
        specialisation = self.specialised(converted)
        unknown = {*kinds} - self.taken.get(specialisation, frozenset())
        if not unknown:
            return
        reading = specialisation.compiled.reading
        for name, span in reading.meanings:
            for kind in unknown:
                if name in kind.differing:
                    what = f"`{name}`" if name in ("==", "!=") else f"the method `{name.removesuffix('(...)')}`"
                    message = f"an argument is an array of {kind.name}, where {what} is not the one of NumPy"
                    raise DifferentiationError([Problem("SD201", message, span, help=_AN_ARRAY)])
        main = reading.program.main
        written = written_sites(main.body, points_to(main))
        for part in parts_of_arguments(reading.arguments):
            if part.value in written and kind_of(part.of(given)) is not None:
                message = f"the function writes to `{part.name}`, which is converted to an array for the call"
                raise DifferentiationError([Problem("SD201", message, self.span, help=_THE_ARRAY)])
        inner = getattr(self.of, "__srcdiff_derivative__", None)  # it copies what its function writes to
        if inner is not None and inner.names == self.names:
            inner.refuse_other_meanings(given, converted, kinds)
        self.taken[specialisation] = self.taken.get(specialisation, frozenset()) | unknown

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
        tuples, lists, dictionaries and instances of classes, too. A complex number is two numbers of the vector.

        >>> import srcdiff
        >>> def line(p, t):
        ...     return np.sum(p["slope"] * t + p["start"])
        >>> view = srcdiff.grad(line).ravel({"slope": 2.0, "start": np.zeros(2)}, np.ones(2))
        >>> view.x, view.names
        (array([2., 0., 0.]), ["p['slope']", "p['start'][0]", "p['start'][1]"])
        >>> view.unravel([1.0, 2.0, 3.0])
        {'slope': 1.0, 'start': array([2., 3.])}
        """
        bound = self.bound(args, kwargs)
        inner = [name for name in self.wrt if name not in self.names]
        if inner or not self.wrt:
            what = f"`{inner[0]}` is not an argument" if inner else "there is nothing to differentiate with respect to"
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

        >>> import srcdiff
        >>> c = srcdiff.grad(lambda x: x[0] * x[1]).cfunc(np.array([2.0, 3.0]))
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
        from srcdiff.passes.short_axes import short_axes

        keys = zip(self.names, self.key(args, exact=exact), strict=True)
        descriptions = {n: description_of(key, n, self.span, exact=exact) for n, key in keys}
        for name in set(self.wrt) & set(self.names):
            descriptions[name] = to_differentiate_by(descriptions[name], paths_below(name, self.parts))
        request = Request(self.captured, descriptions, self.wrt, self.mode, self.with_value, self.has_aux, self.single)
        request.exact, request.workspace, request.batch, request.sums = exact, workspace, batch, sums
        request.given_results = given_results
        request.short_axes = tuple(
            (n, axis, length)
            for n, a in zip(self.names, args, strict=True)
            if type(a) is np.ndarray and a.ndim > 1
            for axis, length in short_axes(a.shape).items()
        )
        request.of = getattr(self.of, "__srcdiff_derivative__", None) or getattr(self.of, "__srcdiff_rule__", None)
        request.jacobian, request.directions, request.numbers = self.jacobian, self.directions, self.numbers
        request.error_model = self.options.get("error_model", "")
        request.parallel = self.options.get("parallel", False)
        request.deterministic = self.options.get("deterministic", True)
        return request

    def _specialised(self, args: tuple[Any, ...], given: Sequence[Any] | None = None, **kind: Any) -> Specialisation:
        with seldom_collected():  # until most objects of the compiler are gone
            from srcdiff.driver.compiling import compile_request

            request = self.request(args, **kind)
            compiled = compile_request(request, self.backend, self.options, given)
            if compiled.reading.assumes_sizes and (
                (self.mode == "primal" and compiled.writes) or compiled.reading.draws
            ):
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


numba_cpu.callable_from_compiled_code(Derivative, Derivative.body_for)
numba_cpu.compiled_code_prints_text()
