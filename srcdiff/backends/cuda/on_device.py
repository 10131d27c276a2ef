"""A generated function that runs on a GPU; it takes arrays of host or device and returns the same kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from srcdiff.backends.cuda import numba_cuda
from srcdiff.backends.cuda.device import Device, as_given, kind_of
from srcdiff.backends.cuda.launch_options import LAUNCHING
from srcdiff.backends.python.interpreter import new_file
from srcdiff.signature.keys import is_on_device
from srcdiff.signature.trees import TUPLES

if TYPE_CHECKING:
    from srcdiff.backends.backend import Generated


def load_on_device(generated: Generated, options: Mapping[str, Any]) -> Callable[..., Any]:
    """Calls the host's code, which launches kernels. Numba compiles them in the first call."""
    return OnDevice(generated, options)


class OnDevice:
    """Calls the host code of a derivative, which launches its kernels."""

    def __init__(self, generated: Generated, options: Mapping[str, Any]) -> None:
        self.module, self.request, self.passed = generated.module, generated.request, generated.passed
        self.file = new_file(self.module.name)
        self.options = {name: options[name] for name in LAUNCHING if name in options}
        self._names: dict[str, Any] | None = None
        self._device: Device | None = None

    def names(self) -> tuple[dict[str, Any], Device]:
        if self._names is None or self._device is None:
            self._device = Device(**self.options)
            self._names = numba_cuda.load(
                self.module.text, list(self.module.kernels), self.module.objects, self._device, self.file
            )
        return self._names, self._device

    def __call__(self, *args: Any) -> Any:
        numba_cuda.require_device()
        names, device = self.names()
        on_device = [device.array(a) for a in args]
        result = names[self.module.name](*on_device)
        if self.request.mode == "primal":
            self.write_back(args, on_device, device)
        return self.as_given(result, args, device)

    def as_given(self, result: Any, args: Sequence[Any], device: Device) -> Any:
        """Gradients are arrays of the kind of their arguments, other results of the kind of any."""
        kind = kind_of(args)
        if self.request.mode != "reverse":
            return as_given(result, kind, device)
        by_name = dict(zip(self.passed, args, strict=False))
        examples = [by_name.get(n) for n in self.request.wrt]
        example = examples[0] if self.request.single else tuple(examples)
        if not self.request.with_value and not self.request.has_aux:
            return as_given(result, example, device)
        first, second = result
        kinds = (kind, example) if self.request.with_value else (example, kind)
        return as_given(first, kinds[0], device), as_given(second, kinds[1], device)

    def write_back(self, args: Sequence[Any], on_device: Sequence[Any], device: Device) -> None:
        """Copy back the arrays that the function has written."""
        for given, array in zip(TUPLES.leaves(tuple(args)), TUPLES.leaves(tuple(on_device)), strict=True):
            if given is not array and hasattr(array, "copy_to_host") and not is_on_device(given):
                given[...] = device.host_array(array)

    # -- looking at machine code -------------------------------------------------------------------------------------

    def ptx(self, cc: tuple[int, int]) -> dict[str, str]:
        """The code of each kernel."""
        module = self.module
        return numba_cuda.ptx(module.text, module.kernels, module.objects, self.file, cc)

    def resources(self, cc: tuple[int, int]) -> dict[str, dict[str, int]]:
        """The resources of each kernel per thread."""
        return {name: numba_cuda.resources(code, cc) for name, code in self.ptx(cc).items()}
