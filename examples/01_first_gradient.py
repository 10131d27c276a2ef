"""The gradient of a function: call it, read it, check it."""

import math

import numpy as np

import srcdiff


def area(a, b, angle):
    """The area of a triangle with two sides and the angle between them."""
    return 0.5 * a * b * math.sin(angle)


# A gradient is a function with the same arguments. By default it is with respect to the first one.
a_bar = srcdiff.grad(area)(3.0, 4.0, 1.0)
print("d area / d a =", a_bar)
assert math.isclose(a_bar, 0.5 * 4.0 * math.sin(1.0), rel_tol=1e-15)

# `wrt` names an argument by position or by name; a tuple of them gives a tuple of gradients.
a_bar, angle_bar = srcdiff.grad(area, wrt=("a", "angle"))(3.0, 4.0, 1.0)
print("d area / d angle =", angle_bar)
assert math.isclose(angle_bar, 0.5 * 3.0 * 4.0 * math.cos(1.0), rel_tol=1e-15)

# `value_and_grad` returns the value too.
value, (a_bar, b_bar) = srcdiff.value_and_grad(area, wrt=(0, 1))(3.0, 4.0, 1.0)
print("area =", value)
assert math.isclose(value, area(3.0, 4.0, 1.0), rel_tol=1e-15)
assert math.isclose(b_bar, 0.5 * 3.0 * math.sin(1.0), rel_tol=1e-15)


# The gradient with respect to an array is an array of the same shape. The decorator also compiles the function itself.
@srcdiff.differentiable
def squared_distance(x, y):
    total = 0.0
    for i in range(len(x)):
        total += (x[i] - y[i]) ** 2
    return total


x = np.array([1.0, 2.0, 3.0])
y = np.array([0.0, 4.0, 3.0])
print("squared distance =", squared_distance(x, y))
x_bar = squared_distance.grad(wrt="x")(x, y)
print("d squared distance / d x =", x_bar)
assert np.array_equal(x_bar, 2.0 * (x - y))

# The generated program is readable Python.
print("\nThe generated code:\n")
print(srcdiff.source(squared_distance, x, y, wrt="x"))

# `check` compares the gradient with finite differences. It raises an AssertionError if they differ.
print(srcdiff.check(squared_distance, x, y, wrt="x"))
