"""Small matrices allocated in a loop with a `continue`: a Kalman filter that skips missing measurements."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "measurements"
SIZES = (15, 2_000)
WRT = ("noise",)


def arguments(size):
    random = np.random.default_rng(32)
    measured = np.cumsum(random.standard_normal(size))
    measured[random.uniform(size=size) < 0.2] = np.nan
    return np.array([-0.3, 0.2, 0.1]), measured


def primal(noise, measured):
    F = np.array([[1.0, 1.0], [0.0, 1.0]])
    Q = np.diag(np.exp(noise[:2]))
    H = np.array([1.0, 0.0])
    m, P, total = np.zeros(2), np.eye(2) * 10.0, 0.0
    for value in measured:
        m = F @ m
        P = F @ P @ F.T + Q
        if np.isnan(value):
            continue
        S = H @ P @ H + np.exp(noise[2])
        K = P @ H / S
        e = value - H @ m
        total += -0.5 * (np.log(2 * np.pi * S) + e * e / S)
        m = m + K * e
        P = P - np.outer(K, H @ P)
    return total


@compiled
def hand(noise, measured):
    n = len(measured)
    kept = np.empty((n, 3))
    q0, q1, r = math.exp(noise[0]), math.exp(noise[1]), math.exp(noise[2])
    m0 = m1 = total = 0.0
    a, b, d = 10.0, 0.0, 10.0  # P = [[a, b], [b, d]]
    for t in range(n):
        m0 += m1
        a += 2.0 * b + d + q0
        b += d
        d += q1
        if math.isnan(measured[t]):
            continue
        e = measured[t] - m0
        kept[t, 0], kept[t, 1], kept[t, 2] = a, b, e
        inverse = 1.0 / (a + r)
        total -= 0.5 * (math.log(2.0 * math.pi * (a + r)) + e * e * inverse)
        gain0, gain1 = a * inverse, b * inverse
        m0 += gain0 * e
        m1 += gain1 * e
        d -= gain1 * b
        b -= gain0 * b
        a -= gain0 * a
    q0_bar = q1_bar = r_bar = m0_bar = m1_bar = a_bar = b_bar = d_bar = 0.0
    for t in range(n - 1, -1, -1):
        if not math.isnan(measured[t]):
            a, b, e = kept[t, 0], kept[t, 1], kept[t, 2]
            inverse = 1.0 / (a + r)
            inverse_bar = e * (m0_bar * a + m1_bar * b - 0.5 * e) - a_bar * a * a - b_bar * a * b - d_bar * b * b
            e_bar = inverse * (m0_bar * a + m1_bar * b - e)
            spread_bar = -inverse * (inverse_bar * inverse + 0.5)
            r_bar += spread_bar
            a_new = a_bar + inverse * (m0_bar * e - 2.0 * a_bar * a - b_bar * b) + spread_bar
            b_bar = b_bar + inverse * (m1_bar * e - b_bar * a - 2.0 * d_bar * b)
            a_bar = a_new
            m0_bar -= e_bar
        q0_bar += a_bar
        q1_bar += d_bar
        d_bar += a_bar + b_bar
        b_bar += 2.0 * a_bar
        m1_bar += m0_bar
    noise_bar = np.zeros_like(noise)
    noise_bar[0] = q0_bar * q0
    noise_bar[1] = q1_bar * q1
    noise_bar[2] = r_bar * r
    return total, (noise_bar,)


def in_jax(noise, measured):
    import jax.numpy as jnp
    from jax import lax

    F = jnp.array([[1.0, 1.0], [0.0, 1.0]])
    Q = jnp.diag(jnp.exp(noise[:2]))
    H = jnp.array([1.0, 0.0])

    def step(state, value):
        m, P = state
        m = F @ m
        P = F @ P @ F.T + Q
        S = H @ P @ H + jnp.exp(noise[2])
        K = P @ H / S
        missing = jnp.isnan(value)
        e = jnp.where(missing, 0.0, value) - H @ m
        term = -0.5 * (jnp.log(2 * jnp.pi * S) + e * e / S)
        after = m + K * e, P - jnp.outer(K, H @ P)
        return (jnp.where(missing, m, after[0]), jnp.where(missing, P, after[1])), jnp.where(missing, 0.0, term)

    return jnp.sum(lax.scan(step, (jnp.zeros(2), jnp.eye(2) * 10.0), measured)[1])
