"""CUDA kernels: `kernel` gives a kernel of Numba an adjoint and a tangent, `grad` a function that kernels call.

    @srcdiff.cuda.kernel
    def scale(a, x, y):
        i = cuda.grid(1)
        if i < x.shape[0]:
            y[i] = a * x[i]

    scale[blocks, threads](a, x, y)                                        # the kernel, as Numba runs it
    scale.adjoint[blocks, threads]((a, x, y), (a_bar, x_bar, y_bar))       # the kernel, and then backwards
    scale.jvp[blocks, threads]((a, x, y), (a_dot, x_dot, y_dot))           # the kernel, with tangents
    scale.adjoint.jvp[blocks, threads](((a, x, y), (a_bar, x_bar, y_bar)), ((a_dot, x_dot, y_dot), (None, ...)))

An adjoint runs the kernel first: its arguments hold afterwards what the kernel leaves in them. `bars` has for each
argument an array like it, or None if the argument is constant; for a number, an array of one `float64`. What comes in
is the derivative by what the kernel leaves, what goes out that by what it was given: the adjoints of what the kernel
reads are added to, those of elements that it overwrites are used up and start again from zero. None for an array that
carries derivatives from one argument to another is refused. `dots` are tangents, numbers for numbers; afterwards they
are the tangents of what the kernel leaves.

That threads do not race with each other is the kernel's business. Where a race can be seen, or that not all threads of
a block come to a barrier, the derivative is refused; what indices in arrays, `y[index[i]] = ...`, are not is not seen.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from srcdiff.api.derivatives import Derivative
from srcdiff.backends.cuda import numba_cuda
from srcdiff.backends.cuda.device import Device
from srcdiff.backends.cuda.races import Spread
from srcdiff.backends.numba.interrupts import ONE_AT_A_TIME
from srcdiff.backends.python.interpreter import new_file
from srcdiff.diagnostics import DifferentiationError, Problem, Refusal, Span
from srcdiff.diagnostics.options import EXTENT, Wrt
from srcdiff.frontend.capture import Captured, capture, plain_function
from srcdiff.ir.nodes import CoordinateKind
from srcdiff.ir.types import FLOAT, Array, Scalar, is_float, is_supported_dtype
from srcdiff.signature.descriptions import Description
from srcdiff.signature.keys import describe_argument, is_on_device, layout_on_device

if TYPE_CHECKING:
    from srcdiff.driver.compiling_kernels import CompiledKernel


def kernel(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Give a kernel an adjoint; `options` are those of `numba.cuda.jit`, if Numba has not compiled it already."""
    return functools.partial(kernel, **options) if function is None else Kernel(function, options)


class Kernel:
    """A kernel of Numba: `kernel[blocks, threads](*args)` runs it; `kernel.adjoint` and `kernel.jvp` go with it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        plain = plain_function(function)
        if plain is None:
            raise TypeError(f"{function!r} is not a kernel")
        self.function: types.FunctionType = plain
        self._dispatcher: Any = None if function is plain else function
        self._options = options
        self.signature = inspect.signature(plain, follow_wrapped=False)
        self.names = tuple(self.signature.parameters)
        self.adjoint = AdjointKernel(self)
        self.jvp = TangentKernel(self)
        functools.update_wrapper(self, plain, updated=())  # type: ignore[arg-type]

    @property
    def py_func(self) -> types.FunctionType:
        return self.function

    @property
    def dispatcher(self) -> Any:
        """The kernel as Numba has it."""
        if self._dispatcher is None:
            self._dispatcher = numba_cuda.cuda().jit(**self._options)(self.function)
        return self._dispatcher

    def __getitem__(self, launch: Any) -> Any:
        return self.dispatcher[launch]

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Any:
        """A launch with a thread for each task, as Numba has it: `kernel.forall(x.size)(*args)`."""
        return self.dispatcher.forall(ntasks, tpb, stream, sharedmem)

    @property
    def source(self) -> str:
        """What the user wrote."""
        return inspect.getsource(self.function)

    @property
    def captured(self) -> Captured:
        try:
            return capture(self.function)
        except Refusal as refusal:
            assert refusal.problem is not None
            raise DifferentiationError([refusal.problem]) from None

    @property
    def span(self) -> Span:
        node = self.captured.node
        return Span(self.captured.file, node.lineno, node.col_offset, node.col_offset + 3, self.captured.name)

    def described(self, args: Sequence[Any] | None) -> dict[str, Description]:
        """The types of arguments: of these, or as they are used."""
        if args is None:
            from srcdiff.frontend.guess import guessed_arguments

            args = tuple(guessed_arguments(self.captured, self.signature).values())
        if len(args) != len(self.names):
            raise TypeError(f"`{self.function.__name__}` takes {len(self.names)} arguments, but {len(args)} are given")
        found = {n: describe_argument(a, n, self.span) for n, a in zip(self.names, args, strict=True)}
        for name, description in found.items():
            if description.kind not in ("value", "static"):
                message = f"the argument `{name}` is a {description.kind}, which cannot be passed to a kernel"
                raise DifferentiationError([Problem("SD201", message, self.span, help="pass arrays and numbers")])
        return found

    def ptx(self, args: Sequence[Any] | None = None, *, cc: tuple[int, int]) -> str:
        """The code for GPUs of a compute capability; none has to be there. Without `args` their types are guessed."""
        params = [d.detail for d in self.described(args).values() if d.kind == "value"]
        return numba_cuda.ptx_of(self.function, params, cc)

    def resources(self, args: Sequence[Any] | None = None, *, cc: tuple[int, int]) -> dict[str, int]:
        """What a thread takes: registers, bytes of stack and of shared memory, and spills."""
        return numba_cuda.resources(self.ptx(args, cc=cc), cc)

    def __repr__(self) -> str:
        return f"<srcdiff.cuda.kernel({self.function.__qualname__})>"


class Launch:
    """A derivative of a kernel, with how many threads run it."""

    def __init__(self, derived: Derived, shape: Any) -> None:
        self.derived, self.shape = derived, shape

    def __call__(self, first: Sequence[Any], second: Sequence[Any]) -> None:
        if self.shape[0] == 0:
            return  # `forall` of no tasks
        numba_cuda.require_device()
        groups = self.derived.groups(first, second)
        found = self.derived.specialised(groups, self.shape)
        found.run(self.shape, [x for group in groups for x in group])


class Derived:
    """A derivative of a kernel, compiled for types of arguments, those that have adjoints or tangents, and launches."""

    def __init__(self, of: Kernel) -> None:
        self.of = of
        self.known: dict[Any, CompiledKernel] = {}
        self.latest: CompiledKernel | None = None

    def __getitem__(self, shape: Any) -> Launch:
        return Launch(self, shape if isinstance(shape, tuple) else (shape,))

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Launch:
        """A launch with a thread for each task, in blocks of `tpb` threads, or of as many as srcdiff takes itself."""
        if ntasks < 0:
            raise ValueError(f"the number of tasks must not be negative: {ntasks}")
        threads = tpb or Device().block
        return Launch(self, (-(-ntasks // threads), threads, stream, sharedmem))

    def groups(self, first: Sequence[Any], second: Sequence[Any]) -> list[Sequence[Any]]:
        """The arguments, then what there is beside them for each: adjoints, tangents, tangents of adjoints."""
        return [first, second]

    def marks(self) -> list[str]:
        """What the groups behind the arguments are."""
        raise NotImplementedError

    def specialised(self, groups: Sequence[Sequence[Any]] | None, shape: Any) -> CompiledKernel:
        from srcdiff.driver.compiling_kernels import compile_kernel

        args = None if groups is None else groups[0]
        described = self.of.described(args)
        if groups is None:
            groups = self.guessed(described)
        for mark, group in zip(self.marks(), groups[1:], strict=True):
            _check_group(self.of, described, groups[0], group, mark)
        chosen = {
            mark: tuple(n for n, x in zip(self.of.names, group, strict=True) if x is not None)
            for mark, group in zip(self.marks(), groups[1:], strict=True)
        }
        types = (tuple(described.values()), tuple(chosen.items()))
        spreads: Sequence[Spread | None] = [None] if shape is None else spreads_of(shape)
        with ONE_AT_A_TIME:
            for spread in spreads:
                found = self.known.get((types, spread))
                if found is not None and found.is_current():
                    self.latest = found
                    return found
            for spread in spreads:
                try:
                    found = compile_kernel(self.of.captured, described, chosen, spread)
                except DifferentiationError:
                    if spread is spreads[-1]:
                        raise
                    continue
                self.known[types, spread] = self.latest = found
                break
        assert found is not None
        return found

    def guessed(self, described: dict[str, Description]) -> list[Sequence[Any]]:
        """All that can have derivatives has them."""
        floats = [True if d.kind == "value" and is_float(d.detail) else None for d in described.values()]
        return [tuple(described.values()), *(floats for _ in self.marks())]

    def current(self, given: tuple[Sequence[Any], Sequence[Any]] | None, shape: Any) -> CompiledKernel:
        if given is not None:
            return self.specialised(self.groups(*given), shape)
        return self.latest or self.specialised(None, shape)

    @property
    def source(self) -> str:
        """The generated source of the latest specialisation, or for types that are guessed."""
        return self.current(None, None).text

    def ptx(self, *given: Sequence[Any], cc: tuple[int, int], launch: Any = None) -> str:
        """The code for GPUs of a compute capability; none has to be there.

        For what a call takes, and `launch=(blocks, threads)`; or for the latest call, or types that are guessed.
        """
        return self.current(given or None, launch).ptx(cc)  # type: ignore[arg-type]

    def resources(self, *given: Sequence[Any], cc: tuple[int, int], launch: Any = None) -> dict[str, int]:
        """What a thread takes: registers, bytes of stack and of shared memory, and spills."""
        return numba_cuda.resources(self.ptx(*given, cc=cc, launch=launch), cc)


class AdjointKernel(Derived):
    """The adjoint: `kernel.adjoint[blocks, threads](args, bars)` runs the kernel, and then backwards."""

    def __init__(self, of: Kernel) -> None:
        super().__init__(of)
        self.jvp = AdjointTangentKernel(of)

    def marks(self) -> list[str]:
        return ["bar"]

    def __repr__(self) -> str:
        return f"<adjoint of {self.of!r}>"


class TangentKernel(Derived):
    """The tangent: `kernel.jvp[blocks, threads](args, dots)` runs the kernel with tangents of its arguments.

    Afterwards `dots` are the tangents of what the kernel leaves in its arguments.
    """

    def marks(self) -> list[str]:
        return ["dot"]

    def __repr__(self) -> str:
        return f"<tangent of {self.of!r}>"


class AdjointTangentKernel(Derived):
    """The tangent of the adjoint, for second derivatives: `[...]((args, bars), (args_dots, bars_dots))`."""

    def groups(self, first: Sequence[Any], second: Sequence[Any]) -> list[Sequence[Any]]:
        return [*first, *second]

    def marks(self) -> list[str]:
        return ["bar", "dot", "bar_dot"]

    def __repr__(self) -> str:
        return f"<tangent of the adjoint of {self.of!r}>"


def spreads_of(shape: Any) -> list[Spread]:
    """What is known of a launch; then, for kernels that need to know, with how many threads its blocks have."""
    if not isinstance(shape, tuple) or len(shape) < 2:
        raise ValueError(f"a launch needs the number of blocks and of threads per block, not {shape!r}")
    pairs = zip(("blocks", "threads"), shape, strict=False)
    extents = [(x,) if isinstance(x, int | np.integer) else tuple(x) for x in (EXTENT.checked(*p) for p in pairs)]
    kinds = zip((CoordinateKind.BLOCK_INDEX, CoordinateKind.THREAD_INDEX), extents, strict=False)
    found = frozenset((kind, axis) for kind, some in kinds for axis, n in enumerate(some) if n != 1)
    x, y, z = (int(n) for n in (*extents[-1], 1, 1)[:3])
    return [Spread(found), Spread(found, (x, y, z))]


def _check_group(
    of: Kernel, described: dict[str, Description], args: Sequence[Any], group: Sequence[Any], mark: str
) -> None:
    """What stands beside the arguments fits them."""
    if len(group) != len(of.names):
        raise TypeError(
            f"one {mark} (or None) is needed for each of the {len(of.names)} arguments, but {len(group)} are given"
        )
    for name, argument, x in zip(of.names, args, group, strict=True):
        if x is None or x is True:
            continue
        description = described[name]
        if description.kind != "value" or not is_float(description.detail):
            message = f"`{name}` holds no floats, so it has no {mark}"
            raise DifferentiationError([Problem("SD402", message, of.span, help=f"pass None for it in the {mark}s")])
        _check_fit(name, argument, description, x, mark)


def _check_fit(name: str, argument: Any, description: Description, x: Any, mark: str) -> None:
    if not isinstance(description.detail, Array) and mark == "dot":
        if not isinstance(x, int | float | np.number):
            raise TypeError(f"the tangent of the number `{name}` must be a number")
        return
    if not (isinstance(x, np.ndarray) or is_on_device(x)):
        raise TypeError(f"the {mark} of `{name}` must be an array, not {type(x).__name__}")
    wanted: tuple[np.dtype[Any], tuple[int, ...]] = (np.dtype("float64"), (1,))
    if isinstance(description.detail, Array):
        if isinstance(argument, Description):
            return
        wanted = _layout(argument)
    if _layout(x) != wanted:
        dtype, shape = wanted
        found = f"{_layout(x)[0]} of shape {_layout(x)[1]}"
        raise ValueError(f"the {mark} of `{name}` must be an array of {dtype} of shape {shape}, not of {found}")


def _layout(array: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    if isinstance(array, np.ndarray):
        return array.dtype, array.shape
    dtype, shape, _ = layout_on_device(array)
    return dtype, shape


# -- gradients that kernels call -------------------------------------------------------------------------------------


def grad(f: Callable[..., Any], wrt: Wrt = 0, *, types: Sequence[Any] | None = None) -> Any:
    """The gradient of `f`, a function of numbers, as a function that kernels call: `@cuda.jit(device=True)`.

    Its arguments are floats, or integers where `f` counts with them; `types` says so otherwise: `(float, int)`. A tuple
    `wrt` gives a tuple. What it keeps for the reverse sweep must have a size that is known: loops with constant bounds.
    """
    return _device_function(Derivative(f, "reverse", wrt, with_value=False), types)


def value_and_grad(f: Callable[..., Any], wrt: Wrt = 0, *, types: Sequence[Any] | None = None) -> Any:
    """The value of `f` together with its gradient, as a function that kernels call: see `grad`."""
    return _device_function(Derivative(f, "reverse", wrt, with_value=True), types)


def _dtype(kind: type | str) -> np.dtype[Any]:
    try:
        found = np.dtype(kind)
    except TypeError:
        found = np.dtype(object)
    if not is_supported_dtype(found):
        raise TypeError(f"`types` must be float, int, bool, or names such as 'float32', not {kind!r}")
    return found


def _device_function(derivative: Derivative, types: Sequence[Any] | None) -> Any:
    from srcdiff.driver.compiling import for_threads
    from srcdiff.frontend.guess import guessed_arguments
    from srcdiff.passes.compilation import Request

    names, captured, wrt = derivative.names, derivative.captured, derivative.wrt
    given = tuple(guessed_arguments(captured, derivative.signature).values()) if types is None else tuple(types)
    if len(given) != len(names):
        raise TypeError(f"one type is needed for each of the {len(names)} arguments, but {len(given)} are given")
    described: dict[str, Description] = {}
    for name, kind in zip(names, given, strict=True):
        if isinstance(kind, type | str):
            found = Description("value", Scalar(_dtype(kind).name))
        else:
            found = describe_argument(kind, name, derivative.span)
        if name in wrt and not is_float(found.detail):
            found = Description("value", FLOAT)
        if found.kind != "value" or isinstance(found.detail, Array):
            message = f"the argument `{name}` is not a number: kernels can differentiate functions of numbers only"
            raise DifferentiationError([Problem("SD502", message, derivative.span, help="pass its elements")])
        described[name] = found
    request = Request(captured, described, wrt, "reverse", derivative.with_value, False, derivative.single)
    module = for_threads(request)
    loaded = numba_cuda.load_kernels(module.text, module.objects, new_file(module.name))
    function = numba_cuda.cuda().jit(device=True)(loaded[module.name])
    function.source, function.__srcdiff_derivative__ = module.text, derivative
    return function
