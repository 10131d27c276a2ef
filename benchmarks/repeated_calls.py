"""Measures the cost of a repeated call, by the kind of the outside values and of the arguments.

    python -m benchmarks.repeated_calls

Prints two tables. The functions compute one product, so that nearly all of the time is the call.
"""

import collections
import dataclasses
import enum
import timeit
import types

import numpy as np

import srcdiff


class Model:
    k = 3.0

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def scaled(self, x):
        return self.a * x

    def counted(self, x):
        self.count += 1
        return self.a * x * self.count

    @staticmethod
    def twice(x):
        return 2.0 * x

    @classmethod
    def thrice(cls, x):
        return 3.0 * x


@dataclasses.dataclass
class Point:
    a: float = 1.0
    b: float = 2.0


class Kind(enum.Enum):
    ONE = 1.0
    TWO = 2.0


Pair = collections.namedtuple("Pair", "a b")

number, integer, array = 2.0, 3, np.ones(3)
a_tuple, a_list, a_dictionary = (1.0, 2.0), [1.0, 2.0, 3.0], {"a": 1.0, "b": 2.0}
nested = {"m": {"w": array, "b": 1.0}, "n": [1.0, 2.0]}
pair, point, space = Pair(1.0, 2.0), Point(), types.SimpleNamespace(a=1.0)
model, counter = Model(a=1.0, b=2.0), Model(a=1.0, count=0)
chain = Model(q=Model(r=Model(a=1.0)))
records = np.ones(3, [("a", float), ("b", float)])


def helper(x):
    return 2.0 * x


OUTSIDE = {
    "nothing": lambda x: x * x,
    "a float": lambda x: x * number,
    "an integer": lambda x: x * integer,
    "an array": lambda x: x * array[0],
    "a function": lambda x: helper(x),
    "a tuple of two floats": lambda x: x * a_tuple[0],
    "a named tuple": lambda x: x * pair.a,
    "a list of three floats": lambda x: x * a_list[0],
    "a dictionary of two floats": lambda x: x * a_dictionary["a"],
    "a dictionary in a dictionary, an array and a list": lambda x: x * nested["m"]["b"],
    "an instance": lambda x: x * model.a,
    "an instance in an instance in an instance": lambda x: x * chain.q.r.a,
    "a dataclass": lambda x: x * point.a,
    "a `SimpleNamespace`": lambda x: x * space.a,
    "an array of records": lambda x: x * records["a"][0],
    "a member of an enum": lambda x: x * Kind.ONE.value,
    "an attribute of a class": lambda x: x * Model.k,
    "a static method": lambda x: Model.twice(x),
    "a class method": lambda x: Model.thrice(x),
    "a method of an instance": lambda x: model.scaled(x),
    "a method that writes to its instance": lambda x: counter.counted(x),
    "its own instance (a bound method)": model.scaled,
}

ARGUMENTS = {
    # the argument beside `x`, and the function
    "a float": (number, lambda p, x: p * x),
    "an array": (array, lambda p, x: p[0] * x),
    "a tuple of two floats": (a_tuple, lambda p, x: p[0] * x),
    "a named tuple": (pair, lambda p, x: p.a * x),
    "a list of three floats": (a_list, lambda p, x: p[0] * x),
    "a dictionary of two floats": (a_dictionary, lambda p, x: p["a"] * x),
    "a dictionary in a dictionary, an array and a list": (nested, lambda p, x: p["m"]["b"] * x),
    "an instance": (model, lambda p, x: p.a * x),
    "an instance in an instance in an instance": (chain, lambda p, x: p.q.r.a * x),
    "an instance that is written to": (counter, lambda p, x: p.counted(x)),
    "a dataclass": (point, lambda p, x: p.a * x),
    "an array of records": (records, lambda p, x: p["a"][0] * x),
    "a record": (records[0], lambda p, x: p["a"] * x),
    "a member of an enum": (Kind.ONE, lambda p, x: p.value * x),
    "a string": ("a", lambda p, x: x if p == "a" else x * x),
    "a boolean": (True, lambda p, x: x if p else x * x),
}


def seconds(derivative, *args):
    """The least time of a call, of many."""
    for _ in range(3):
        derivative(*args)
    return min(timeit.repeat(lambda: derivative(*args), number=1000, repeat=25)) / 1000


def micro(time):
    return f"{time * 1e6:.2f} µs"


def main():
    print("| the function reads | a call |\n| --- | --- |")
    for name, function in OUTSIDE.items():
        print(f"| {name} | {micro(seconds(srcdiff.grad(function), 2.0))} |", flush=True)
    print("\n| the argument | gradient with respect to another argument | gradient with respect to it |")
    print("| --- | --- | --- |")
    for name, (value, function) in ARGUMENTS.items():
        by_x = micro(seconds(srcdiff.grad(function, wrt="x"), value, 2.0))
        by_it = "" if isinstance(value, str | bool | enum.Enum) else srcdiff.grad(function, wrt="p")
        print(f"| {name} | {by_x} | {by_it and micro(seconds(by_it, value, 2.0))} |", flush=True)


if __name__ == "__main__":
    main()
