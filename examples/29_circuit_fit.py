"""Fit a circuit to its measured impedance: least squares with complex numbers."""

import sys

import numpy as np
from scipy.optimize import minimize

import srcdiff


def impedance(logarithms, omega):
    """Of a coil with a resistance, and a capacitor with a leak beside it."""
    resistance, inductance, capacitance, leak = np.exp(logarithms)
    coil = resistance + 1j * omega * inductance
    return 1.0 / (1.0 / coil + 1j * omega * capacitance + 1.0 / leak)


def misfit(logarithms, omega, measured):
    """Relative, so that the resonance counts no more than its sides."""
    return np.sum(np.abs(impedance(logarithms, omega) / measured - 1.0) ** 2)


true = np.log(np.array([4.7, 2.2e-3, 1.5e-7, 5e3]))  # ohm, henry, farad, ohm
omega = 2.0 * np.pi * np.logspace(2.5, 5.0, 120)
random = np.random.default_rng(4)
noise = 0.02 * (random.normal(size=omega.size) + 1j * random.normal(size=omega.size))
measured = impedance(true, omega) * (1.0 + noise)

gradient = srcdiff.value_and_grad(misfit)
guess = np.log(np.array([10.0, 1e-3, 1e-7, 1e4]))
fit = minimize(gradient, guess, (omega, measured), jac=True, method="BFGS")

# The errors of the parameters, from the curvature at the minimum.
curvature = srcdiff.hessian(misfit)(fit.x, omega, measured)
errors = np.sqrt(np.diag(np.linalg.inv(curvature)) * 2.0 * fit.fun / (2 * omega.size - 4))
names = ("resistance", "inductance", "capacitance", "leak")
for name, value, error, right in zip(names, np.exp(fit.x), errors, np.exp(true), strict=True):
    print(f"{name:12} {value:9.4g} +- {100 * error:.1f} %   true {right:9.4g}")
assert np.all(np.abs(fit.x - true) < 4.0 * errors)
assert np.all(errors < 0.1)

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    _, (above, below) = plt.subplots(2, 1, sharex=True)
    hertz = omega / (2.0 * np.pi)
    for parameters, style, label in ((guess, ":", "first guess"), (fit.x, "-", "fit")):
        above.loglog(hertz, np.abs(impedance(parameters, omega)), style, color="tab:blue", label=label)
        below.semilogx(hertz, np.degrees(np.angle(impedance(parameters, omega))), style, color="tab:blue")
    above.loglog(hertz, np.abs(measured), ".", color="tab:red", markersize=3, label="measured")
    below.semilogx(hertz, np.degrees(np.angle(measured)), ".", color="tab:red", markersize=3)
    above.set_ylabel("impedance [ohm]")
    above.legend()
    below.set(xlabel="frequency [Hz]", ylabel="phase [degrees]")
    plt.savefig(sys.argv[1])
