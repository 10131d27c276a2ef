"""Plan a short path around obstacles with Ipopt: bounds, constraints in a loop, and exact Hessians."""

import numpy as np

from srcdiff.bridges import ipopt

OBSTACLES = np.array([[3.0, 2.5], [6.5, 5.5]])
REACH = 1.5


def length(path):
    """The sum of the squares of the steps from (0, 0) to (10, 8)."""
    x, y = path["x"], path["y"]
    total = x[0] ** 2 + y[0] ** 2 + (10.0 - x[-1]) ** 2 + (8.0 - y[-1]) ** 2
    for k in range(len(x) - 1):
        total += (x[k + 1] - x[k]) ** 2 + (y[k + 1] - y[k]) ** 2
    return total


def distances(path):
    """The squared distances between all points and all obstacles."""
    count = len(path["x"])
    out = np.empty(2 * count)
    for which in range(2):
        for k in range(count):
            across, along = path["x"][k] - OBSTACLES[which, 0], path["y"][k] - OBSTACLES[which, 1]
            out[which * count + k] = across**2 + along**2
    return out


steps = np.linspace(0.0, 1.0, 14)[1:-1]
start = {"x": 10.0 * steps, "y": 8.0 * steps + np.sin(np.pi * steps)}
found = ipopt.minimize(length, start, lower={"y": 0.0}, upper={"y": 8.0}, constraints=[(distances, REACH**2, None)])

nearest = np.sqrt(distances(found.params).min())
print(found.message)
print(f"length {found.fun:.3f}, in a straight line {164.0 / 13.0:.3f}; nearest to an obstacle {nearest:.4f}")
for x, y in zip(found.params["x"], found.params["y"], strict=True):
    print(f"  {x:6.3f} {y:6.3f}")
assert found.success
assert nearest > REACH - 1e-6
assert found.fun > 164.0 / 13.0
