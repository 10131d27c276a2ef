"""Programs that are hard for gradient tapes, in plain Python, each with its exact gradient."""

import math
import warnings

import numpy as np
from scipy import special

import srcdiff


def report(complaint, answer, exact):
    print(f"{complaint:58} {answer}")
    assert np.array_equal(answer, exact), f"{complaint}: {answer}, and {exact} is right"


# -- values appended to a list


def through_a_list(x):
    y = x * x
    items = []
    items.append(y)
    return x + sum(items)


report("values appended to a list", srcdiff.grad(through_a_list)(1.0), 3.0)

# -- a branch on a computed value: the derivative is that of the branch that ran


def branch(x):
    y = x * x if x > 1.0 else x + 1.0
    return y + x


report("a branch, on one side", srcdiff.grad(branch)(2.0), 5.0)
report("a branch, on the other", srcdiff.grad(branch)(0.5), 2.0)

# -- a loop whose trip count depends on a value: x, x^2, x^4, x^8, ... until it is large enough


def square_until_large(x):
    n = 0
    while x < 100.0:
        x = x * x
        n += 1
    return x * n


# From 2 the loop has three iterations, to x^8 = 256; from 1.5 it has four, to x^16; from 200 it has none.
report("a loop with three iterations", srcdiff.grad(square_until_large)(2.0), 3.0 * 8.0 * 2.0**7)
report("the same loop, four iterations", srcdiff.grad(square_until_large)(1.5), 4.0 * 16.0 * 1.5**15)
report("the same loop, no iteration", srcdiff.grad(square_until_large)(200.0), 0.0)

# -- an array whose shape depends on a value


def shape_from_value(x):
    n = int(x) + 2
    a = np.zeros(n)
    a[:] = x
    return np.sum(a * a)


report("an array whose shape depends on a value", srcdiff.grad(shape_from_value)(2.5), 20.0)

# -- in-place writes after a value was used


def overwrite(x):
    y = x[0]
    x[0] = y * y
    x[1] += x[0]
    return x[0] * x[1]


x = np.array([2.0, 3.0])
report("in-place writes after a value was used", srcdiff.grad(overwrite)(x), [44.0, 4.0])
report("  and the argument is left unchanged", x, [2.0, 3.0])

# -- writes through a view


def through_a_view(a):
    row = a[1]
    row[0] = a[0, 0] ** 2
    return np.sum(a * a)


a = np.array([[3.0, 1.0], [5.0, 7.0]])
report("writes through a view", srcdiff.grad(through_a_view)(a), [[2.0 * 3.0 + 4.0 * 27.0, 2.0], [0.0, 14.0]])

# -- helpers: srcdiff uses the custom rule of a helper, or reads its source; a helper with neither is refused


def half_square(x):
    return 0.5 * x * x


def with_helper(x):
    return 3.0 * half_square(x)


def table_lookup_adjoint(x, out, out_bar):
    return (10.0 * out_bar,)


@srcdiff.custom_rule(adjoint=table_lookup_adjoint)
def table_lookup(x):
    return 10.0 * math.floor(x)  # a staircase; the rule gives its average slope


def with_rule(x):
    return x * table_lookup(x)


def without_source(x):
    return x * special.wrightomega(x)  # written in C


report("a helper with source", srcdiff.grad(with_helper)(2.0), 6.0)
report("a helper with its own rule", srcdiff.grad(with_rule)(2.5), 20.0 + 2.5 * 10.0)
try:
    srcdiff.grad(without_source)(2.0)
except srcdiff.DifferentiationError as error:
    refusal = str(error)
else:
    raise AssertionError("a function without source and without rule was not refused")
assert "`wrightomega`" in refusal
assert "return x * special.wrightomega(x)" in refusal
print(f"\na helper with neither is refused before anything runs:\n\n{refusal}\n")

# -- an unused variable, and an operation that cuts the gradient off: zero, with a warning that gives the reason


def uses_one(x, unused):
    return x * x


def rounded(x):
    return round(x) * 2.0


for function, wrt, word in ((uses_one, "unused", "unused"), (rounded, "x", "round")):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        arguments = (3.0, 4.0) if function is uses_one else (2.4,)
        report(f"a gradient that is zero: {function.__name__}", srcdiff.grad(function, wrt=wrt)(*arguments), 0.0)
    assert any(word in str(warning.message) for warning in caught), "nothing said why the gradient is zero"
    print("  with the warning:", str(caught[0].message).splitlines()[0])

# -- a global variable is a constant, with its value at the time of the call

scale = 2.0


def scaled(x):
    return scale * x * x


scaled_bar = srcdiff.grad(scaled)
assert "scale" in str(srcdiff.explain(scaled, 3.0)), "the global variable is not named"
report("a global variable", scaled_bar(3.0), 12.0)
scale = 5.0
report("  after it has changed", scaled_bar(3.0), 30.0)

# -- boolean indexing: reading, assignment, and in-place updates


def chosen(w, mask):
    return np.sum(w[mask])


def replaced(w, mask, v):
    w[mask] = v
    return np.sum(w * w)


def doubled_where_positive(w):
    w[w > 0] *= 2
    return np.sum(w * w)


w = np.array([1.0, 2.0, 3.0])
mask = np.array([False, True, False])
report("boolean indexing", srcdiff.grad(chosen)(w, mask), [0.0, 1.0, 0.0])
report("  assignment, by the array", srcdiff.grad(replaced)(w, mask, 5.0), [2.0, 0.0, 6.0])
report("  assignment, by the assigned value", srcdiff.grad(replaced, wrt="v")(w, mask, 5.0), 10.0)
matrix = np.array([[1.0, -2.0], [-3.0, 4.0]])
report("  with two axes, in place", srcdiff.grad(doubled_where_positive)(matrix), [[8.0, -4.0], [-6.0, 32.0]])

# -- masking by multiplication


def masked(w, x):
    return np.sum(w * x)


report("masking by multiplication", srcdiff.grad(masked)(w, np.array([0.0, 1.0, 0.0])), [0.0, 1.0, 0.0])

# -- second and higher derivatives by nesting: a gradient is a function, so it has a gradient


def fifth_power(x):
    return x**5


def sine(x):
    return math.sin(x)


report("the second derivative of the sine", srcdiff.grad(srcdiff.grad(sine))(2.0), -math.sin(2.0))
report("the third of a power", srcdiff.grad(srcdiff.grad(srcdiff.grad(fifth_power)))(2.0), 60.0 * 2.0**2)

# -- Hessians, and Hessian-vector products without the matrix


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


point = np.array([1.0, 2.0, 3.0])
second = [[402.0, -400.0, 0.0], [-400.0, 3802.0, -800.0], [0.0, -800.0, 200.0]]
report("the Hessian of Rosenbrock's function", srcdiff.hessian(rosenbrock)(point).tolist(), second)
report("  times a vector", srcdiff.hvp(rosenbrock)(point, np.array([0.0, 0.0, 1.0])), [0.0, -800.0, 200.0])

# -- persistent tapes: a derivative holds no state between calls, so it can be called any number of times

branch_bar = srcdiff.grad(branch)
report("the same derivative, called three times", [branch_bar(2.0), branch_bar(0.5), branch_bar(2.0)], [5.0, 2.0, 5.0])

# -- the derivative with respect to an intermediate value


def intermediate(x):
    y = x**2
    z = y + x
    return z


report("with respect to the argument", srcdiff.grad(intermediate)(2.0), 5.0)
report("with respect to an intermediate value", srcdiff.grad(intermediate, wrt="y")(2.0), 1.0)

# -- linear regression, at the line that fits exactly


def mean_squared_error(w, b, x, y):
    return np.mean((w * x + b - y) ** 2)


points = np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 5.0, 7.0, 9.0])
report("linear regression", srcdiff.grad(mean_squared_error, wrt=("w", "b"))(2.0, 1.0, *points), (0.0, 0.0))

# -- debugging with `print`: it prints once; with the `python` backend, a debugger steps through the generated code


def with_print(x):
    y = x * x
    print("  y is", y)
    return y * y


print("a function that prints:")
report("  and its gradient", srcdiff.grad(with_print, backend="python")(2.0), 32.0)
