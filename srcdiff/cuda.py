"""The public names for CUDA: differentiable kernels, and gradients that kernels can call."""

from srcdiff.api.kernels import AdjointKernel, Kernel, TangentKernel, grad, kernel, value_and_grad

__all__ = ["AdjointKernel", "Kernel", "TangentKernel", "grad", "kernel", "value_and_grad"]
