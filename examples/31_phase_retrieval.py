"""Find the shape of a wave front from photographs of the focus: phase retrieval with Fourier transforms."""

import sys

import numpy as np
from scipy.optimize import minimize

import srcdiff

SIZE = 32
y, x = np.mgrid[-1.0 : 1.0 : SIZE * 1j, -1.0 : 1.0 : SIZE * 1j]
inside = (x**2 + y**2 <= 1.0) * 1.0  # a round aperture
focus = 2.0 * (x**2 + y**2) - 1.0  # the phase that moves the camera out of focus
moved = np.array([-2.0, 0.0, 2.0])


def image(phase, inside, size):
    """The intensities at the focus: the aperture in the middle of a plane of twice the size, transformed."""
    plane = np.zeros((2 * size, 2 * size), dtype=np.complex128)
    plane[:size, :size] = inside * np.exp(1j * phase)
    return np.abs(np.fft.fft2(plane)) ** 2 / (size * size)


def misfit(phase, photographs, moved, focus, inside, size):
    """Of amplitudes, which all have about the same noise; a little for a rough wave front."""
    total = 0.0
    for m in range(len(moved)):
        seen = image(phase + moved[m] * focus, inside, size)
        total += np.sum((np.sqrt(seen + 1e-6) - np.sqrt(photographs[m] + 1e-6)) ** 2)
    steps = np.sum((phase[1:] - phase[:-1]) ** 2) + np.sum((phase[:, 1:] - phase[:, :-1]) ** 2)
    return total + 1e-3 * steps


true = inside * (1.4 * x * y + 0.9 * (3.0 * x**2 * y - y**3) + 0.6 * np.sin(5.0 * x) + 0.8 * x**3)
random = np.random.default_rng(6)
photons = 3000.0
photographs = np.array([random.poisson(photons * image(true + m * focus, inside, SIZE)) / photons for m in moved])

gradient = srcdiff.value_and_grad(misfit)
given = (photographs, moved, focus, inside, SIZE)


def flat(phase):
    value, slope = gradient(phase.reshape(SIZE, SIZE), *given)
    return value, slope.ravel()


fit = minimize(flat, np.zeros(SIZE * SIZE), jac=True, method="L-BFGS-B", options={"maxiter": 250})
found = fit.x.reshape(SIZE, SIZE)
off = (found - true)[inside > 0.0]
error = np.std(off)  # a constant phase changes nothing
print(f"misfit {flat(np.zeros(SIZE * SIZE))[0]:.2f} before, {fit.fun:.3f} after; {fit.nfev} gradients")
print(f"the wave front: {np.std(true[inside > 0.0]):.3f} rad, error {error:.3f} rad")
assert error < 0.1

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 3, figsize=(6.0, 2.4))
    middle = np.mean((found - true)[inside > 0.0])
    hidden = np.where(inside > 0.0, 0.0, np.nan)
    seen = np.fft.fftshift(photographs[1])[SIZE // 2 : -SIZE // 2, SIZE // 2 : -SIZE // 2]
    axes[0].imshow(np.sqrt(seen), cmap="viridis")
    axes[0].set_title("photograph in focus")
    for axis, phase, title in ((axes[1], true, "true wave front"), (axes[2], found - middle, "found")):
        axis.imshow(phase + hidden, cmap="viridis", vmin=true.min(), vmax=true.max())
        axis.set_title(title)
    for axis in axes:
        axis.axis("off")
    plt.savefig(sys.argv[1])
