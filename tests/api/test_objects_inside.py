"""Derivatives inside functions, of functions that write to the instances and dictionaries that they are given."""

from __future__ import annotations

import pytest

import srcdiff
from srcdiff import DifferentiationError


class Pendulum:
    def __init__(self, angle):
        self.angle, self.time = angle, 0.0

    def step(self, dt):
        self.angle = self.angle * dt + 1.0
        self.time += dt


def run(pendulum, dt):
    for _ in range(3):
        pendulum.step(dt)
    return pendulum.angle * pendulum.time


def rescaled(x, settings):
    settings["rate"] *= x
    return settings["rate"] * x


def central(function, x, h=1e-6):
    return (function(x + h) - function(x - h)) / (2.0 * h)


def test_second_derivative_by_an_instance_that_is_written():
    gradient = srcdiff.grad(run, wrt=(0, 1), backend="python")

    def along(t):
        pendulum = Pendulum(2.0 + t)
        first, second = gradient(pendulum, 0.5 + t)
        return first.angle + 3.0 * first.time + second

    _, (first, second) = srcdiff.jvp(gradient, (Pendulum(2.0), 0.5), (Pendulum(1.0), 1.0), backend="python")

    assert first.angle + 3.0 * first.time + second == pytest.approx(central(along, 0.0), rel=1e-7)


def test_second_derivative_by_a_dictionary_that_is_written():
    gradient = srcdiff.grad(rescaled, wrt=(0, 1), backend="python")

    assert srcdiff.jvp(gradient, (0.5, {"rate": 2.0}), (1.0, {"rate": 0.3}), backend="python") == (
        (2.0, {"rate": 0.25}),
        (pytest.approx(4.3), {"rate": 1.0}),
    )


def leaves_the_instance(x):
    pendulum = Pendulum(x)
    pendulum.step(x)
    bar = srcdiff.grad(run)(pendulum, 0.5)
    return bar.angle * x + bar.time + pendulum.angle


def beside_a_number(x):
    pendulum = Pendulum(x)
    pendulum.step(x)
    bars = srcdiff.grad(lambda pair: pair[0].angle * pair[1] * pair[0].angle)((pendulum, x))
    return bars[0].angle + bars[1]


def read_under_two_names(x):
    pendulum = Pendulum(x)
    pendulum.step(x)
    return srcdiff.grad(lambda other: other.angle * pendulum.angle**2)(pendulum).angle


@pytest.mark.parametrize("function", [leaves_the_instance, beside_a_number, read_under_two_names])
def test_the_object_of_the_outer_function_stays_as_it_is(function):
    assert srcdiff.grad(function, backend="python")(0.7) == pytest.approx(central(function, 0.7), rel=1e-7)


def written_under_two_names(x):
    pendulum = Pendulum(x)
    pendulum.step(x)
    return srcdiff.grad(lambda other: (other.step(pendulum.time), other.angle)[1])(pendulum).angle


def passed_twice(x):
    pendulum = Pendulum(x)
    pendulum.step(x)
    return srcdiff.grad(lambda one, two: (one.step(0.5), one.angle * two.angle)[1])(pendulum, pendulum).angle


@pytest.mark.parametrize("function", [written_under_two_names, passed_twice])
def test_an_object_that_is_written_must_have_one_name_in_the_inner_function(function):
    with pytest.raises(DifferentiationError, match="SD40"):
        srcdiff.grad(function, backend="python")(0.7)
