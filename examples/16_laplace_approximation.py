"""A Laplace approximation: the Hessian at the mode gives an approximate posterior and the evidence of the model."""

import sys

import numpy as np

import srcdiff


def minus_log_posterior(parameters, dose, deaths, animals):
    """Deaths are binomial, with a logit that is linear in the logarithm of the dose. The priors are wide and normal."""
    logit = parameters[0] + parameters[1] * dose
    log_likelihood = np.sum(deaths * logit - animals * np.logaddexp(0.0, logit))
    return 0.5 * np.sum((parameters / 10.0) ** 2) - log_likelihood


# The bioassay data of Racine et al. (1986): log doses, animals, deaths.
dose = np.array([-0.86, -0.30, -0.05, 0.73])
animals = np.array([5.0, 5.0, 5.0, 5.0])
deaths = np.array([0.0, 1.0, 3.0, 5.0])
data = (dose, deaths, animals)

# Newton's method, with the gradient and the Hessian.
gradient = srcdiff.grad(minus_log_posterior)
hessian = srcdiff.hessian(minus_log_posterior)
mode = np.zeros(2)
for _ in range(20):
    mode = mode - np.linalg.solve(hessian(mode, *data), gradient(mode, *data))
assert np.max(np.abs(gradient(mode, *data))) < 1e-12

# Near the mode the posterior is approximately normal. Its covariance is the inverse of the Hessian.
covariance = np.linalg.inv(hessian(mode, *data))
log_evidence = 0.5 * np.linalg.slogdet(2.0 * np.pi * covariance)[1] - minus_log_posterior(mode, *data)
print("mode:               ", mode.round(4))
print("standard deviations:", np.sqrt(np.diag(covariance)).round(4))
print("log evidence:       ", round(log_evidence, 4))

# The uncertainty of the dose that kills half of the animals, to first order.
lethal = srcdiff.value_and_grad(lambda parameters: -parameters[0] / parameters[1])
ld50, slope = lethal(mode)
print(f"half die at a log dose of {ld50:.3f} +- {np.sqrt(slope @ covariance @ slope):.3f}")

# Check by hand: the Hessian of a logistic regression, and the evidence as a sum over a grid.
p = 1.0 / (1.0 + np.exp(-(mode[0] + mode[1] * dose)))
design = np.stack([np.ones(4), dose], axis=1)
assert np.allclose(hessian(mode, *data), design.T @ np.diag(animals * p * (1.0 - p)) @ design + 0.01 * np.eye(2))

a, b = np.meshgrid(np.linspace(-6.0, 12.0, 401), np.linspace(-10.0, 50.0, 401), indexing="ij")
logit = a[..., None] + b[..., None] * dose
log_posterior = np.sum(deaths * logit - animals * np.logaddexp(0.0, logit), axis=-1) - 0.005 * (a**2 + b**2)
cell = (18.0 / 400.0) * (60.0 / 400.0)
by_grid = np.log(np.sum(np.exp(log_posterior)) * cell)
print("  by a grid:        ", round(by_grid, 4))
assert abs(by_grid - log_evidence) < 0.4  # four doses are few, so the posterior is skewed

if len(sys.argv) > 1:  # a file name for a picture
    import matplotlib.pyplot as plt

    away = np.stack([a - mode[0], b - mode[1]], axis=-1)
    normal = np.exp(-0.5 * np.einsum("...i,ij,...j", away, np.linalg.inv(covariance), away))
    plt.contour(a, b, np.exp(log_posterior - np.max(log_posterior)), colors="k")
    plt.contour(a, b, normal, linestyles="dashed")
    plt.xlabel("offset")
    plt.ylabel("slope")
    plt.savefig(sys.argv[1])
