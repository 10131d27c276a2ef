"""Control flow that depends on values: `while`, `break`, `continue`, `else` on a loop, and early `return`."""

import math

import numpy as np

import srcdiff


def square_root(a):
    """Newton's method: the trip count depends on `a`."""
    x = a
    while abs(x * x - a) > 1e-14 * a:
        x = 0.5 * (x + a / x)
    return x


def first_crossing(position, velocity, wall):
    """The velocity of a falling body when it passes the wall, or half of its last velocity if it never does."""
    for _ in range(1000):
        position = position + 0.001 * velocity
        velocity = velocity - 0.001 * (9.81 - 0.5 * position + 0.1 * velocity * abs(velocity))
        if position < wall:
            break
    else:
        return 0.5 * velocity
    return velocity


def pick(x, limit):
    """Two returns, and a `continue` that skips elements."""
    total = 0.0
    for i in range(len(x)):
        if x[i] < 0.0:
            continue
        total += x[i] ** 3
        if total > limit:
            return total
    return -total


# The derivative of the square root is 1 / (2 sqrt(a)). The gradient of the loop agrees, for every trip count.
for a in (2.0, 100.0, 1e-6):
    a_bar = srcdiff.grad(square_root)(a)
    print(f"d sqrt / d a at {a:g}: {a_bar:.12g}, exact {0.5 / math.sqrt(a):.12g}")
    assert math.isclose(a_bar, 0.5 / math.sqrt(a), rel_tol=1e-9)  # the derivative converges one iteration later

# The same gradient is right for both exits of the loop.
fall = srcdiff.value_and_grad(first_crossing, wrt=("position", "velocity"))
for wall in (-2.0, -50.0):
    last, (position_bar, velocity_bar) = fall(0.0, 1.0, wall)
    print(f"wall at {wall:g}: velocity {last:.6f}, its derivatives {position_bar:.6f} and {velocity_bar:.6f}")
    step = 1e-7
    difference = (first_crossing(0.0, 1.0 + step, wall) - first_crossing(0.0, 1.0 - step, wall)) / (2.0 * step)
    assert math.isclose(velocity_bar, difference, rel_tol=1e-6)  # the accuracy of the finite differences

# Elements that the loop skips, or that come after the `return`, have the gradient zero.
x = np.array([1.0, -1.0, 2.0, 3.0])
early, late = srcdiff.grad(pick)(x, 8.5), srcdiff.grad(pick)(x, 100.0)
print("returned early:", early)
print("ran to the end:", late)
assert np.array_equal(early, [3.0, 0.0, 12.0, 0.0])
assert np.array_equal(late, [-3.0, 0.0, -12.0, -27.0])
