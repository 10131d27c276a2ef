"""Components of OpenMDAO from Python functions, with partial derivatives by srcdiff."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import openmdao.api as om

from srcdiff.bridges import written_functions as written
from srcdiff.bridges.flat_functions import Flat, short_name
from srcdiff.signature.trees import VALUES

Function = Callable[..., Any]


def component(f: Function, *example: Any, outputs: Sequence[str] | None = None, backend: str = "numba") -> Component:
    """Make an explicit component of OpenMDAO from a Python function.

    Args:
        f: A function that returns one float, one array, or a dictionary, tuple or instance of these.
        *example: All arguments of `f`. The numbers and arrays of floats in them are the inputs, with these values and
            shapes. Everything else is a constant, and so are arguments that are integers.
        outputs: The names of the outputs, if `f` does not return a dictionary.
        backend: As for `srcdiff.grad`.

    Returns:
        A component. Inputs have the names of the arguments; in a dictionary, the keys follow after a colon: `p:w`.
    """
    return Component(f, example, outputs, backend)


class Component(om.ExplicitComponent):  # type: ignore[misc]
    """A function as a component of OpenMDAO: see `component`."""

    def __init__(self, f: Function, example: Sequence[Any], outputs: Sequence[str] | None, backend: str) -> None:
        super().__init__()
        bound = inspect.signature(f).bind(*example)
        bound.apply_defaults()
        name = written.identifier(f.__name__)
        arguments = [one for one, value in bound.arguments.items() if not isinstance(value, int | np.integer)]
        constants = [one for one in bound.arguments if one not in arguments]
        call = [
            f"args[{arguments.index(one)}]" if one in arguments else f"constants[{constants.index(one)}]"
            for one in bound.arguments
        ]
        text = f"def {name}(args, constants):\n    return f({', '.join(call)})\n"
        together = written.function_of(text, name, {"f": f})
        given = [tuple([bound.arguments[one] for one in names]) for names in (arguments, constants)]
        self.f, self.flat = f, Flat(together, given[0], (given[1],), backend, "OpenMDAO")
        self.places: dict[str, Any] = {}
        """The parts of the vector by the names of the inputs."""
        for part in self.flat.view.parts:
            first, _, keys = short_name(part.name, part.argument, ":").partition(":")
            self.places[":".join([arguments[int(first)], *([keys] if keys else [])])] = part
        results = [*VALUES.named(self.flat.value(self.flat.view.x), "result")]
        names = outputs or [short_name(one.name, "result", ":") for one in results]
        if len(names) != len(results):
            raise ValueError(
                f"{written.place_of(f)} returns {len(results)} results, but `outputs` has {len(names)} names"
            )
        names = [name if one == "result" else one for one in names]
        shapes = [np.shape(one.value) + ((2,) if np.iscomplexobj(one.value) else ()) for one in results]
        self.shapes = dict(zip(names, shapes, strict=True))
        clash = {*self.shapes} & {*self.places}
        if clash:
            raise ValueError(f"`{min(clash)}` is an input and an output: pass `outputs`")

    def setup(self) -> None:
        for name, part in self.places.items():
            self.add_input(name, val=self.flat.view.x[part.slice].reshape(part.shape_in_vector or (1,)))
        for name, shape in self.shapes.items():
            self.add_output(name, shape=shape or (1,))
        self.declare_partials("*", "*")

    def _vector(self, inputs: Any) -> Any:
        return np.concatenate([np.ravel(inputs[name]) for name in self.places])

    def compute(self, inputs: Any, outputs: Any, *discrete: Any) -> None:
        """Compute the outputs. If the function raises, none is written."""
        values = self.flat.values(self._vector(inputs))
        for name, start, shape in self._rows():
            outputs[name] = values[start : start + int(np.prod(shape))].reshape(shape or (1,))

    def compute_partials(self, inputs: Any, partials: Any, *discrete: Any) -> None:
        """Compute the derivatives of all outputs by all inputs."""
        jacobian = self.flat.jacobian(self._vector(inputs))
        for output, start, shape in self._rows():
            for name, part in self.places.items():
                partials[output, name] = jacobian[start : start + int(np.prod(shape)), part.slice]

    def _rows(self) -> list[tuple[str, int, tuple[int, ...]]]:
        found, start = [], 0
        for name, shape in self.shapes.items():
            found.append((name, start, shape))
            start += int(np.prod(shape))
        return found
