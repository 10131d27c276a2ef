"""A Kalman filter in matrix form: estimate the noise of motion and measurement by maximum likelihood."""

import numpy as np

import srcdiff

STEP = 0.5
MOTION = np.array([[1.0, 0.0, STEP, 0.0], [0.0, 1.0, 0.0, STEP], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
PUSH = np.array([[0.5 * STEP**2, 0.0], [0.0, 0.5 * STEP**2], [STEP, 0.0], [0.0, STEP]])
SEEN = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])


def negative_log_likelihood(log_push, log_noise, measured):
    """The negative log likelihood of measured positions in the plane. The global arrays are constants."""
    push_covariance = np.exp(2.0 * log_push) * (PUSH @ PUSH.T)
    noise_covariance = np.exp(2.0 * log_noise) * np.eye(2)
    state = np.zeros(4)
    covariance = np.eye(4)
    total = 0.0
    for y in measured:
        state = MOTION @ state
        covariance = MOTION @ covariance @ MOTION.T + push_covariance
        precision = np.linalg.inv(SEEN @ covariance @ SEEN.T + noise_covariance)
        gain = covariance @ SEEN.T @ precision
        surprise = y - SEEN @ state
        _, log_volume = np.linalg.slogdet(precision / (2.0 * np.pi))
        total += 0.5 * (surprise @ precision @ surprise - log_volume)
        state = state + gain @ surprise
        covariance = covariance - gain @ SEEN @ covariance
    return total


def by_one_large_matrix(log_push, log_noise, measured):
    """The same without a filter: all measurements together have one large multivariate normal distribution."""
    steps = len(measured)
    from_start = [SEEN @ np.linalg.matrix_power(MOTION, t + 1) for t in range(steps)]
    from_push = [SEEN @ np.linalg.matrix_power(MOTION, t) @ PUSH for t in range(steps)]
    covariance = np.exp(2.0 * log_noise) * np.eye(2 * steps)
    for t in range(steps):
        for s in range(steps):
            block = from_start[t] @ from_start[s].T
            for k in range(min(t, s) + 1):
                block = block + np.exp(2.0 * log_push) * from_push[t - k] @ from_push[s - k].T
            covariance[2 * t : 2 * t + 2, 2 * s : 2 * s + 2] += block
    y = measured.ravel()
    return 0.5 * (y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(2.0 * np.pi * covariance)[1])


random = np.random.default_rng(0)
state = random.standard_normal(4)
measured = np.empty((200, 2))
for t in range(200):
    state = MOTION @ state + PUSH @ (0.3 * random.standard_normal(2))
    measured[t] = state[:2] + 0.5 * random.standard_normal(2)

value_and_gradient = srcdiff.value_and_grad(negative_log_likelihood, wrt=("log_push", "log_noise"))

# The filter computes the density of that large normal distribution, so the gradients must agree too.
few = measured[:12]
value, (push_bar, noise_bar) = value_and_gradient(-1.0, -0.5, few)
print("by the filter:      ", value, push_bar, noise_bar)
expected = by_one_large_matrix(-1.0, -0.5, few)
h = 1e-5
push_difference = (by_one_large_matrix(-1.0 + h, -0.5, few) - by_one_large_matrix(-1.0 - h, -0.5, few)) / (2.0 * h)
noise_difference = (by_one_large_matrix(-1.0, -0.5 + h, few) - by_one_large_matrix(-1.0, -0.5 - h, few)) / (2.0 * h)
print("by one large matrix:", expected, push_difference, noise_difference)
assert np.isclose(value, expected, rtol=1e-12)  # only rounding errors
differences = [push_difference, noise_difference]
assert np.allclose([push_bar, noise_bar], differences, rtol=1e-7)  # the accuracy of the finite differences

# Maximise the likelihood by gradient descent.
log_push, log_noise = 0.0, 0.0
for iteration in range(201):
    value, (push_bar, noise_bar) = value_and_gradient(log_push, log_noise, measured)
    if iteration % 50 == 0:
        print(f"iteration {iteration:3}: {value:.4f}, push {np.exp(log_push):.4f}, noise {np.exp(log_noise):.4f}")
    log_push -= 2e-3 * push_bar
    log_noise -= 2e-3 * noise_bar

print("the data came from push 0.3 and noise 0.5")
assert max(abs(push_bar), abs(noise_bar)) < 1e-6  # the accuracy after this many steps
assert np.isclose(np.exp(log_noise), 0.5, rtol=0.1)  # 200 measurements determine the noise this well
assert np.isclose(np.exp(log_push), 0.3, rtol=0.3)
