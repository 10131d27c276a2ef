"""The systems of the benchmark, one module for each library. Each runs in a process of its own.

A module has `version()` and `prepare(program, arguments, variant)`, which returns a call without arguments that gives
the value and the gradients in the library's own types, and `to_numpy(result)`. An unsupported program raises
`RefusedError` with the reason. A module imports NumPy, its library and the programs, and nothing else of ours.
"""

from __future__ import annotations

from dataclasses import dataclass


class RefusedError(Exception):
    """The system cannot do this program, for the reason given."""


@dataclass(frozen=True, slots=True)
class System:
    """A contestant: its name, its module and variant, and the package that it needs."""

    name: str
    title: str
    module: str
    variant: str
    package: str

    @property
    def variable(self) -> str:
        """The environment variable that names a Python where the package is installed."""
        return f"SRCDIFF_BENCH_{self.module.upper()}"


SYSTEMS = {
    s.name: s
    for s in (
        System("primal", "primal", "ours", "primal", "numba"),
        System("hand", "by hand", "hand", "hand", "numba"),
        System("srcdiff", "srcdiff", "ours", "srcdiff", "numba"),
        System("eager", "eager tape", "ours", "eager", "numba"),
        System("compiled", "compiled tape", "ours", "compiled", "numba"),
        System("jax", "JAX jit", "jax", "jit", "jax"),
        System("torch", "PyTorch", "torch", "eager", "torch"),
        System("torch_compiled", "PyTorch compiled", "torch", "compiled", "torch"),
        System("tensorflow", "TensorFlow", "tensorflow", "eager", "tensorflow"),
        System("tf_function", "tf.function", "tensorflow", "function", "tensorflow"),
        System("autograd", "autograd", "autograd", "eager", "autograd"),
        System("tangent", "tangent-ad", "tangent", "source", "tangent"),
        System("warp", "Warp", "warp", "kernel", "warp"),
    )
}

#: Always there, because they are part of the project.
OWN = ("primal", "srcdiff", "eager", "compiled")

#: The systems for the patterns: each pattern has an adjoint by hand, and a JAX form where one is natural.
OF_PATTERNS = ("hand", "srcdiff", "jax")
