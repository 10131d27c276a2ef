"""Give a function a derivative of your own, and hold a value constant."""

import math

import srcdiff

# An adjoint rule takes the arguments, the result, and the adjoint of the result. It returns one adjoint for each
# argument. Here the rule is the implicit function theorem: with y^3 + y = x, dy/dx = 1 / (3 y^2 + 1). Without the rule,
# srcdiff would differentiate the iteration itself. That is right too, but it keeps every iterate.


def solve_cubic_adjoint(x, out, out_bar):
    return (out_bar / (3.0 * out * out + 1.0),)


@srcdiff.custom_rule(adjoint=solve_cubic_adjoint)
def solve_cubic(x):
    """The y with y^3 + y = x, by Newton's method."""
    y = 0.5 * x
    for _ in range(50):
        y -= (y * y * y + y - x) / (3.0 * y * y + 1.0)
    return y


def cost(x):
    return solve_cubic(x) ** 2 + x


y = solve_cubic(10.0)
print("solve_cubic(10) =", y)
x_bar = srcdiff.grad(cost)(10.0)
print("d cost / d x =", x_bar)
assert math.isclose(y, 2.0, rel_tol=1e-15)
assert math.isclose(x_bar, 2.0 * 2.0 / 13.0 + 1.0, rel_tol=1e-15)

print("\nThe generated code uses the rule:\n")
print(srcdiff.source(cost, 10.0))


# `stop_gradient` holds a value constant: here it is the weight in a reweighted fit.
def reweighted(x, centre):
    distance = x - centre
    weight = 1.0 / (1.0 + srcdiff.stop_gradient(distance * distance))
    return weight * distance * distance


x_bar = srcdiff.grad(reweighted)(3.0, 1.0)
print("d reweighted / d x =", x_bar)
assert math.isclose(x_bar, 2.0 * 2.0 / 5.0, rel_tol=1e-15)
