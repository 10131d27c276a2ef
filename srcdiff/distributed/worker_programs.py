"""What a worker computes for a chunk: a function, sent once as source, compiled once, and kept on the worker.

A function that is defined in a script or a notebook is sent by value (cloudpickle), together with the text of its file.
The worker needs no copy of the file.
"""

from __future__ import annotations

import hashlib
import linecache
import pickle
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from srcdiff.api.derivatives import Derivative
from srcdiff.api.hessian_products import hvp
from srcdiff.api.modes import jvp, vjp
from srcdiff.api.reverse import value_and_grad
from srcdiff.bridges import written_functions as written
from srcdiff.frontend.source.capture import plain_function
from srcdiff.signature.flat_views import FlatView
from srcdiff.signature.trees import VALUES

Function = Callable[..., Any]
Vector = np.ndarray[Any, Any]
_MOST = 64  # programs that a worker keeps
_programs: OrderedDict[str, Program] = OrderedDict()
_lock = threading.Lock()


def flat_view(params: Any) -> FlatView:
    """The parameters as a vector."""
    view = FlatView(("params",), (params,), ("params",), single=True)
    if not view.size:
        raise ValueError("the parameters have no number, and no array of floats")
    return view


class Program:
    """A loss, or residuals whose half sum of squares is the loss, and the derivatives that are computed for a chunk."""

    def __init__(self, f: Function, *, is_residuals: bool, backend: str) -> None:
        self.f, self.is_residuals, self.backend = f, is_residuals, backend
        plain = plain_function(f)
        if plain is None:
            raise TypeError(f"{f!r} is not a Python function: wrap it in a function or a lambda")
        count = plain.__code__.co_argcount
        self.loss = _half_squares(f, plain.__name__, count) if is_residuals else f
        self.gradient: Any = value_and_grad(self.loss, backend=backend)
        self.product: Any = hvp(self.loss, backend=backend)
        self.primal = Derivative(self.loss, "primal", 0, backend=backend)

    def __reduce__(self) -> Any:
        payload = _dumped((self.f, self.is_residuals, self.backend))
        texts = dict(_texts_of(self.f, set()))
        token = hashlib.sha256(pickle.dumps((payload, sorted(texts.items())))).hexdigest()
        return _program, (token, payload, texts)

    def run(self, what: str, params: Any, vector: Any, chunk: Any, args: tuple[Any, ...]) -> Vector:
        """A vector to be summed over the chunks: the value and the gradient, a value, or a product."""
        view = flat_view(params)
        given = (params, *chunk, *args)
        match what:
            case "value":
                if self.primal.specialised(self.primal.bound(given, {})).compiled.writes:
                    given = VALUES.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, given)
                value = self.primal(*given)
                if np.ndim(value):
                    raise TypeError(f"the loss of a chunk must be one float, not an array of shape {np.shape(value)}")
                return np.array([value], dtype=np.float64)
            case "gradient":
                value, gradient = self.gradient(*given)
                return np.concatenate([[value], view.ravel(gradient)])
            case "hvp":
                return view.ravel(self.product(*given, view.unravel(vector)))
        _, change = jvp(self.f, given, (view.unravel(vector), *[None] * (len(given) - 1)), backend=self.backend)
        _, pullback = vjp(self.f, *given, wrt=0, backend=self.backend)
        return view.ravel(pullback(change))


def _half_squares(f: Function, name: str, count: int) -> Function:
    """Half the sum of the squares of the residuals."""
    args, name = ", ".join(f"a{k}" for k in range(count)), f"{written.identifier(name)}_squares"
    return written.function_of(
        f"def {name}({args}):\n    return 0.5 * np.sum(f({args}) ** 2)\n", name, {"f": f, "np": np}
    )


def run_chunk(program: Program, what: str, params: Any, vector: Any, source: Any, k: int, args: Any) -> Vector:
    """Compute one chunk; exceptions name it. This is what workers run."""
    try:
        chunk = source if k < 0 else source[k]
        return program.run(what, params, vector, chunk if isinstance(chunk, tuple) else (chunk,), args)
    except Exception as error:
        which = "a chunk" if k < 0 else f"chunk {k}"
        error.add_note(f"in {which} of the data, computed by {written.place_of(program.f)}")
        raise


def _dumped(value: Any) -> bytes:
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value)
    dumped: bytes = cloudpickle.dumps(value)
    return dumped


def _program(token: str, payload: bytes, texts: dict[str, str]) -> Program:
    """The program on the worker: the one that it has compiled already, if there is one."""
    with _lock:
        known = _programs.get(token)
        if known is None:
            for file, text in texts.items():
                if "".join(linecache.getlines(file)) != text:
                    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            f, is_residuals, backend = pickle.loads(payload)
            known = _programs[token] = Program(f, is_residuals=is_residuals, backend=backend)
        _programs.move_to_end(token)
        while len(_programs) > _MOST:
            _programs.popitem(last=False)
        return known


def _texts_of(f: Any, seen: set[int]) -> Iterator[tuple[str, str]]:
    """The files of a function and of the functions that it names, with their texts, except for installed modules."""
    plain: Any = plain_function(f)
    if plain is None or id(plain) in seen:
        return
    seen.add(id(plain))
    file = plain.__code__.co_filename
    if _is_sent_by_value(plain):
        text = "".join(linecache.getlines(file, plain.__globals__))
        if text:
            yield file, text
    names = [n for code in _codes(plain.__code__) for n in code.co_names]
    cells = [cell.cell_contents for cell in plain.__closure__ or () if _is_filled(cell)]
    for value in [*(plain.__globals__[n] for n in names if n in plain.__globals__), *cells]:
        if isinstance(value, types.FunctionType) or hasattr(value, "py_func"):
            yield from _texts_of(value, seen)


def _is_sent_by_value(f: types.FunctionType) -> bool:
    """Whether cloudpickle sends the function itself, and not the name of a module."""
    return f.__module__ == "__main__" or "<locals>" in f.__qualname__ or "<lambda>" in f.__qualname__


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
