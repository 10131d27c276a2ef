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

An adjoint launch runs the kernel first, so the arguments hold its results afterwards. `bars` has an array of the same
shape for each array argument, an array of one `float64` for each number, and None for each constant argument. Before
the launch, the bars are the adjoints of the values after the kernel; after the launch, they are the adjoints of the
values before the kernel. The launch adds to the adjoints of elements that the kernel reads, and resets those of
elements that it overwrites. None is rejected for an array that carries derivatives from one argument to another. `dots`
are the tangents of the arguments (numbers for numbers); after the launch, they are the tangents of the results.

The kernel itself must be free of races. A derivative is rejected if a race is certain, or if some threads of a block
may not reach a barrier. Races through index arrays, `y[index[i]] = ...`, are not detected.
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
from srcdiff.frontend.source.capture import Captured, capture, plain_function
from srcdiff.ir.nodes import CoordinateKind
from srcdiff.ir.types import FLOAT, Array, Scalar, is_inexact, is_supported_dtype
from srcdiff.signature.descriptions import Description
from srcdiff.signature.keys import describe_argument, is_on_device, layout_on_device

if TYPE_CHECKING:
    from srcdiff.driver.compiling_kernels import CompiledKernel


def kernel(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a CUDA kernel differentiable. Use it as a decorator.

    Args:
        function: A kernel: a Python function, or one decorated with `numba.cuda.jit`. Without it, a decorator is
            returned.
        **options: The options of `numba.cuda.jit`, if the function is not decorated with it.

    Returns:
        A `Kernel`. It is launched like the kernel; its attributes `adjoint` and `jvp` launch its derivatives.
    """
    return functools.partial(kernel, **options) if function is None else Kernel(function, options)


class Kernel:
    """A differentiable kernel: `kernel[blocks, threads](*args)`, with the derivatives `adjoint` and `jvp`."""

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
        """The dispatcher of Numba."""
        if self._dispatcher is None:
            self._dispatcher = numba_cuda.cuda().jit(**self._options)(self.function)
        return self._dispatcher

    def __getitem__(self, launch: Any) -> Any:
        return self.dispatcher[launch]

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Any:
        """A launch with one thread for each task: `kernel.forall(x.size)(*args)`."""
        return self.dispatcher.forall(ntasks, tpb, stream, sharedmem)

    @property
    def source(self) -> str:
        """The source code of the kernel."""
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
        """The types of these arguments, or types that are guessed from the code."""
        if args is None:
            from srcdiff.frontend.source.guess import guessed_arguments

            args = tuple(guessed_arguments(self.captured, self.signature).values())
        if len(args) != len(self.names):
            raise TypeError(f"`{self.function.__name__}` takes {len(self.names)} arguments, but {len(args)} are given")
        found = {n: describe_argument(a, n, self.span) for n, a in zip(self.names, args, strict=True)}
        for name, description in found.items():
            if description.kind not in ("value", "static"):
                message = f"the argument `{name}` is a {description.kind}, but a kernel takes arrays and numbers"
                raise DifferentiationError([Problem("SD201", message, self.span, help="pass arrays and numbers")])
        return found

    def ptx(self, args: Sequence[Any] | None = None, *, cc: tuple[int, int]) -> str:
        """The PTX code for a compute capability. Needs no GPU. Without `args`, their types are guessed."""
        params = [d.detail for d in self.described(args).values() if d.kind == "value"]
        return numba_cuda.ptx_of(self.function, params, cc)

    def resources(self, args: Sequence[Any] | None = None, *, cc: tuple[int, int]) -> dict[str, int]:
        """The resources per thread: registers, bytes of stack and of shared memory, and spills."""
        return numba_cuda.resources(self.ptx(args, cc=cc), cc)

    def __repr__(self) -> str:
        return f"<srcdiff.cuda.kernel({self.function.__qualname__})>"


class Launch:
    """A derivative of a kernel with its launch configuration."""

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
    """A derivative of a kernel, specialised by argument types, active arguments and launch shapes."""

    def __init__(self, of: Kernel) -> None:
        self.of = of
        self.known: dict[Any, CompiledKernel] = {}
        self.latest: CompiledKernel | None = None

    def __getitem__(self, shape: Any) -> Launch:
        return Launch(self, shape if isinstance(shape, tuple) else (shape,))

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Launch:
        """A launch with one thread for each task, in blocks of `tpb` threads (by default, srcdiff's block size)."""
        if ntasks < 0:
            raise ValueError(f"the number of tasks must not be negative: {ntasks}")
        threads = tpb or Device().block
        return Launch(self, (-(-ntasks // threads), threads, stream, sharedmem))

    def groups(self, first: Sequence[Any], second: Sequence[Any]) -> list[Sequence[Any]]:
        """The arguments, followed by their adjoints, tangents, or tangents of adjoints."""
        return [first, second]

    def marks(self) -> list[str]:
        """The kinds of the groups that follow the arguments."""
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
        """Groups in which every float argument is active."""
        floats = [True if d.kind == "value" and is_inexact(d.detail) else None for d in described.values()]
        return [tuple(described.values()), *(floats for _ in self.marks())]

    def current(self, given: tuple[Sequence[Any], Sequence[Any]] | None, shape: Any) -> CompiledKernel:
        if given is not None:
            return self.specialised(self.groups(*given), shape)
        return self.latest or self.specialised(None, shape)

    @property
    def source(self) -> str:
        """The generated source code of the latest specialisation, or for guessed types."""
        return self.current(None, None).text

    def ptx(self, *given: Sequence[Any], cc: tuple[int, int], launch: Any = None) -> str:
        """The PTX code for a compute capability. Needs no GPU.

        The code is for the given arguments and `launch=(blocks, threads)`. Without them, it is for the latest call, or
        for guessed types.
        """
        return self.current(given or None, launch).ptx(cc)  # type: ignore[arg-type]

    def resources(self, *given: Sequence[Any], cc: tuple[int, int], launch: Any = None) -> dict[str, int]:
        """The resources per thread: registers, bytes of stack and of shared memory, and spills."""
        return numba_cuda.resources(self.ptx(*given, cc=cc, launch=launch), cc)


class AdjointKernel(Derived):
    """The adjoint: `kernel.adjoint[blocks, threads](args, bars)` runs the kernel and then its reverse sweep."""

    def __init__(self, of: Kernel) -> None:
        super().__init__(of)
        self.jvp = AdjointTangentKernel(of)

    def marks(self) -> list[str]:
        return ["bar"]

    def __repr__(self) -> str:
        return f"<adjoint of {self.of!r}>"


class TangentKernel(Derived):
    """The tangent: `kernel.jvp[blocks, threads](args, dots)` runs the kernel with tangents of its arguments.

    Afterwards, `dots` holds the tangents of the results.
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
    """The facts about a launch that a kernel is specialised by, from general to exact."""
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
    """Check that adjoints or tangents match the arguments."""
    if len(group) != len(of.names):
        raise TypeError(
            f"one {mark} (or None) is needed for each of the {len(of.names)} arguments, but {len(group)} are given"
        )
    for name, argument, x in zip(of.names, args, group, strict=True):
        if x is None or x is True:
            continue
        description = described[name]
        if description.kind != "value" or not is_inexact(description.detail):
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
    """Make the gradient of a function of numbers as a device function that CUDA kernels can call.

    Args:
        f: A function of numbers that returns one float. Its loops need constant bounds, because the storage for the
            reverse sweep must be known at compile time.
        wrt: The arguments to differentiate with respect to, as for `srcdiff.grad`.
        types: The types of the arguments, such as `(float, int)`. Without them, an argument is a float, or an integer
            if `f` uses it as one.

    Returns:
        A function like those of `@cuda.jit(device=True)`. It returns the gradient, a tuple if `wrt` is a tuple.
    """
    return _device_function(Derivative(f, "reverse", wrt, with_value=False), types)


def value_and_grad(f: Callable[..., Any], wrt: Wrt = 0, *, types: Sequence[Any] | None = None) -> Any:
    """Make the value and gradient of a function of numbers as a device function: see `srcdiff.cuda.grad`."""
    return _device_function(Derivative(f, "reverse", wrt, with_value=True), types)


def _dtype(kind: type | str) -> np.dtype[Any]:
    try:
        found = np.dtype(kind)
    except TypeError:
        found = np.dtype(object)
    if not is_supported_dtype(found) or found.kind == "c":  # no GPU has complex numbers yet
        raise TypeError(f"`types` must be float, int, bool, or names such as 'float32', not {kind!r}")
    return found


def _device_function(derivative: Derivative, types: Sequence[Any] | None) -> Any:
    from srcdiff.driver.compiling import for_threads
    from srcdiff.frontend.source.guess import guessed_arguments
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
        if name in wrt and not is_inexact(found.detail):
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
