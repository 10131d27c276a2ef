"""Small matrices in a loop: the distance of a robot's hand from its target, joint after joint."""

import math

import numpy as np

from benchmarks.patterns import compiled

SIZE = "poses"
SIZES = (4, 1_000)
WRT = ("angles",)


def arguments(size):
    random = np.random.default_rng(36)
    return random.uniform(-1.0, 1.0, (size, 6)), random.uniform(0.5, 1.5, 6), random.standard_normal((size, 3))


def primal(angles, lengths, targets):
    total = 0.0
    for k in range(angles.shape[0]):
        R = np.eye(3)
        p = np.zeros(3)
        for j in range(angles.shape[1]):
            c = math.cos(angles[k, j])
            s = math.sin(angles[k, j])
            if j % 2 == 0:
                joint = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            else:
                joint = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
            R = R @ joint
            p = p + R @ np.array([lengths[j], 0.0, 0.0])
        total += np.sum((p - targets[k]) ** 2)
    return total


@compiled
def hand(angles, lengths, targets):
    poses, joints = angles.shape
    angles_bar = np.empty_like(angles)
    cosines, sines = np.empty(joints), np.empty(joints)
    total = 0.0
    for k in range(poses):
        for j in range(joints):
            cosines[j] = math.cos(angles[k, j])
            sines[j] = math.sin(angles[k, j])
        # the columns of R are a, b, d: a joint turns two of them, and is turned back in the reverse sweep
        a0, a1, a2, b0, b1, b2, d0, d1, d2 = 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0
        p0 = p1 = p2 = 0.0
        for j in range(joints):
            c, s = cosines[j], sines[j]
            if j % 2 == 0:
                a0, b0 = c * a0 + s * b0, c * b0 - s * a0
                a1, b1 = c * a1 + s * b1, c * b1 - s * a1
                a2, b2 = c * a2 + s * b2, c * b2 - s * a2
            else:
                b0, d0 = c * b0 + s * d0, c * d0 - s * b0
                b1, d1 = c * b1 + s * d1, c * d1 - s * b1
                b2, d2 = c * b2 + s * d2, c * d2 - s * b2
            p0 += lengths[j] * a0
            p1 += lengths[j] * a1
            p2 += lengths[j] * a2
        p0 -= targets[k, 0]
        p1 -= targets[k, 1]
        p2 -= targets[k, 2]
        total += p0 * p0 + p1 * p1 + p2 * p2
        A0 = A1 = A2 = B0 = B1 = B2 = D0 = D1 = D2 = 0.0  # the adjoints of the columns
        for j in range(joints - 1, -1, -1):
            c, s, reach = cosines[j], sines[j], 2.0 * lengths[j]
            A0 += reach * p0
            A1 += reach * p1
            A2 += reach * p2
            if j % 2 == 0:
                angles_bar[k, j] = A0 * b0 + A1 * b1 + A2 * b2 - B0 * a0 - B1 * a1 - B2 * a2
                A0, B0 = c * A0 - s * B0, s * A0 + c * B0
                A1, B1 = c * A1 - s * B1, s * A1 + c * B1
                A2, B2 = c * A2 - s * B2, s * A2 + c * B2
                a0, b0 = c * a0 - s * b0, s * a0 + c * b0
                a1, b1 = c * a1 - s * b1, s * a1 + c * b1
                a2, b2 = c * a2 - s * b2, s * a2 + c * b2
            else:
                angles_bar[k, j] = B0 * d0 + B1 * d1 + B2 * d2 - D0 * b0 - D1 * b1 - D2 * b2
                B0, D0 = c * B0 - s * D0, s * B0 + c * D0
                B1, D1 = c * B1 - s * D1, s * B1 + c * D1
                B2, D2 = c * B2 - s * D2, s * B2 + c * D2
                b0, d0 = c * b0 - s * d0, s * b0 + c * d0
                b1, d1 = c * b1 - s * d1, s * b1 + c * d1
                b2, d2 = c * b2 - s * d2, s * b2 + c * d2
    return total, (angles_bar,)


def in_jax(angles, lengths, targets):
    import jax
    import jax.numpy as jnp

    def reach(angles, target):
        R, p = jnp.eye(3), jnp.zeros(3)
        for j in range(angles.shape[0]):
            c, s = jnp.cos(angles[j]), jnp.sin(angles[j])
            if j % 2 == 0:
                joint = jnp.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            else:
                joint = jnp.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
            R = R @ joint
            p = p + lengths[j] * R[:, 0]
        return jnp.sum((p - target) ** 2)

    return jnp.sum(jax.vmap(reach)(angles, targets))
