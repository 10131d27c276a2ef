"""The public names for CUDA: `srcdiff.cuda.kernel`, and gradients that kernels call."""

from srcdiff.api.kernels import AdjointKernel, Kernel, TangentKernel, grad, kernel, value_and_grad

__all__ = ["AdjointKernel", "Kernel", "TangentKernel", "grad", "kernel", "value_and_grad"]
