"""The advice of error messages works: each row has a refused program, and the program after the advice."""

from __future__ import annotations

import linecache
import sys
import types
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import srcdiff
from srcdiff.diagnostics import Problem

HEAD = "import math\nimport functools\nimport dataclasses\nimport collections\nimport numpy as np\nimport srcdiff\n"

CLASS = "class M:\n    def __init__(self, a):\n        self.a = a\n"
METHODS = "    def go(self, x):\n        return x * self.a\n    def __call__(self, x):\n        return x * self.a\n"
DATACLASS = "@dataclasses.dataclass\nclass M:\n    a: float\n"


@dataclass(frozen=True)
class Row:
    """A refused program, parts of its message and its help, and the program after the advice."""

    name: str
    program: str
    code: str
    message: str
    help: str
    advised: str
    arguments: str = "1.5,"
    then: str = ""
    """The arguments of the program after the advice, if they differ."""


def function(body: str, parameters: str = "x") -> str:
    return f"def f({parameters}):\n" + "".join(f"    {line}\n" for line in body.split("\n"))


ROWS = [
    # unsupported objects, by kind
    Row(
        "break out of prange",
        "from numba import prange\n"
        + function("s = 0.0\nfor i in prange(3):\n    if i > x:\n        break\n    s += x\nreturn s"),
        "SD503",
        "`break` leaves a loop over `prange`",
        "write `range`",
        function("s = 0.0\nfor i in range(3):\n    if i > x:\n        break\n    s += x\nreturn s"),
    ),
    Row(
        "statements in object mode",
        "from numba import objmode\n" + function("with objmode(y='float64'):\n    y = x * x\nreturn y"),
        "SD302",
        "the statements below `objmode` run in the interpreter",
        "`srcdiff.external`",
        "@srcdiff.external(differences='complex')\ndef square(x):\n    return x * x\n" + function("return square(x)"),
    ),
    Row(
        "module in place of a number",
        function("return x * math"),
        "SD203",
        "the module `math` is used",
        "check the types",
        function("return x * math.pi"),
    ),
    Row(
        "sparse matrix made",
        "from scipy import sparse\n" + function("return np.sum(sparse.lil_matrix(np.eye(3)) @ x)"),
        "SD302",
        "instances of the class `lil_matrix`",
        "use arrays",
        function("return np.sum(np.eye(3) @ x)"),
        "np.ones(3),",
    ),
    Row(
        "sparse matrix multiplied",
        "from scipy import sparse\na = sparse.lil_matrix(np.eye(3))\n" + function("return np.sum(a @ x)"),
        "SD203",
        "an instance of `lil_matrix`",
        "`.tocsr()`",
        "from scipy import sparse\na = sparse.lil_matrix(np.eye(3)).tocsr()\n" + function("return np.sum(a @ x)"),
        "np.ones(3),",
    ),
    Row(
        "sparse matrix as an argument",
        "from scipy import sparse\n" + function("return np.sum(a @ x)", "x, a"),
        "SD201",
        "`a` is an instance of `lil_matrix`",
        "`.tocsr()`",
        "from scipy import sparse\n" + function("return np.sum(a @ x)", "x, a"),
        "np.ones(3), sparse.lil_matrix(np.eye(3))",
        "np.ones(3), sparse.lil_matrix(np.eye(3)).tocsr()",
    ),
    Row(
        "interpolation",
        "from scipy.interpolate import UnivariateSpline\ng = UnivariateSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], k=1)\n"
        + function("return g(x)"),
        "SD302",
        "an instance of `LSQUnivariateSpline` is called",
        "np.interp",
        function("return np.interp(x, np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]))"),
    ),
    Row(
        "logger",
        "import logging\nlog = logging.getLogger('a')\n" + function("log.exception('here')\nreturn x"),
        "SD102",
        "the method `exception` of a logger",
        "",
        "import logging\nlog = logging.getLogger('a')\n" + function("log.error('here')\nreturn x"),
    ),
    Row(
        "lagrange, whose source is read into",
        "from scipy.interpolate import lagrange\n"
        + function("return lagrange(np.array([0.0, 1.0]), np.array([x, 1.0]))(0.3)"),
        "SD301" if scipy.__version__ < "1.18" else "SD302",  # what its source calls first
        "this call leads into a library",
        "srcdiff.rule_for(lagrange)",
        function("return x + 0.3 * (1.0 - x)"),
    ),
    Row(
        "texts",
        function("return x * len(a)", "x, a"),
        "SD201",
        "`a` is an array of strings",
        "`.tolist()`",
        function("return x * len(a)", "x, a"),
        "1.5, np.array(['1'])",
        "1.5, np.array(['1']).tolist()",
    ),
    Row(
        "masked array",
        function("return np.sum(x)"),
        "SD201",
        "an instance of `MaskedArray`",
        "`.filled(...)`",
        function("return np.sum(x)"),
        "np.ma.array([1.0]),",
        "np.ma.array([1.0]).filled(0.0),",
    ),
    Row(
        "matrix",
        function("return np.sum(x)"),
        "SD201",
        "an instance of `matrix`",
        "`np.asarray(...)`",
        function("return np.sum(x)"),
        "np.matrix([1.0]),",
        "np.asarray(np.matrix([1.0])),",
    ),
    Row(
        "order of complex numbers",
        function("return abs(x) if x < 2j else 0.0"),
        "SD201",
        "`x < y` of complex numbers",
        "`.real`",
        function("return abs(x) if x.real < 2.0 else 0.0"),
        "3j,",
        "3j,",
    ),
    Row(
        "lost imaginary part",
        function("a = np.zeros(2)\na[0] = x * 1j\nreturn a[0]"),
        "SD203",
        "discards the imaginary part",
        "`.real`",
        function("a = np.zeros(2)\na[0] = (x * 1j * 1j).real\nreturn a[0]"),
    ),
    Row(
        "decimal",
        "from decimal import Decimal\n" + function("return x * d", "x, d"),
        "SD201",
        "an instance of `Decimal`",
        "`float(...)`",
        "from decimal import Decimal\n" + function("return x * d", "x, d"),
        "1.5, Decimal(2)",
        "1.5, float(Decimal(2))",
    ),
    Row(
        "fraction",
        "from fractions import Fraction\n" + function("return x * Fraction(1, 2)"),
        "SD302",
        "instances of the class `Fraction`",
        "use floats",
        function("return x * (1.0 / 2.0)"),
    ),
    Row(
        "large dictionary",
        "d = {str(k): float(k) for k in range(400)}\n" + function("return x * d['3']"),
        "SD201",
        "`d` from outside the function has 400 elements",
        "read the values that you need outside",
        "d = {str(k): float(k) for k in range(400)}\nthree = d['3']\n" + function("return x * three"),
    ),
    Row(
        "long list",
        "d = [float(k) for k in range(400)]\n" + function("return x * d[3]"),
        "SD201",
        "`d` from outside the function has 400 elements",
        "`np.array(...)`",
        "d = np.array([float(k) for k in range(400)])\n" + function("return x * d[3]"),
    ),
    Row(
        "keys that are floats",
        "d = {1.5: 2.0}\n" + function("return x * d[1.5]"),
        "SD201",
        "keys other than strings and integers",
        "use strings or integers as keys",
        "d = {'1.5': 2.0}\n" + function("return x * d['1.5']"),
    ),
    Row(
        "keys of an argument",
        function("return x * d[0, 1]", "x, d"),
        "SD201",
        "keys other than strings and integers",
        "use strings or integers as keys",
        function("return x * d['01']", "x, d"),
        "1.5, {(0, 1): 2.0}",
        "1.5, {'01': 2.0}",
    ),
    Row(
        "set from outside",
        "s = {1.0, 2.0}\n" + function("return x * len(s)"),
        "SD201",
        "`s` from outside the function is a set",
        "`tuple(...)`",
        "s = tuple({1.0, 2.0})\n" + function("return x * len(s)"),
    ),
    Row(
        "set made",
        function("return x * len(set([x]))"),
        "SD102",
        "a set may contain constant numbers",
        "use a list or a tuple",
        function("return x * len([1.0])"),
    ),
    Row(
        "defaultdict",
        "q = collections.defaultdict(float, a=2.0)\n" + function("return x * q['a']"),
        "SD201",
        "is an instance of `defaultdict`",
        "`dict(...)`",
        "q = dict(collections.defaultdict(float, a=2.0))\n" + function("return x * q['a']"),
    ),
    # unsupported functions
    Row(
        "random",
        "import random\n" + function("return x * random.betavariate(2.0, 3.0)"),
        "SD302",
        "`random.betavariate`",
        "draw the numbers outside",
        function("return x * r", "x, r"),
        "1.5,",
        "1.5, 0.3",
    ),
    Row(
        "np.random",
        function("return x * np.random.dirichlet([1.0, 2.0])[0]"),
        "SD302",
        "`np.random.dirichlet` draws random numbers",
        "draw the numbers outside",
        function("return x * r", "x, r"),
        "1.5,",
        "1.5, 0.3",
    ),
    Row(
        "shape of a distribution",
        "rng = np.random.default_rng(0)\n" + function("return rng.gamma(x)"),
        "SD301",
        "what `standard_gamma` draws has no derivative",
        "srcdiff.stop_gradient",
        "rng = np.random.default_rng(0)\n" + function("return x * rng.gamma(srcdiff.stop_gradient(x))"),
        "1.5,",
        "1.5,",
    ),
    Row(
        "time",
        "import time\n" + function("return x * time.time()"),
        "SD203",
        "the time is used where a number is needed",
        "read the time outside the function",
        function("return x * t", "x, t"),
        "1.5,",
        "1.5, 0.3",
    ),
    Row(
        "datetime",
        "import datetime\n" + function("return x * datetime.datetime.now().second"),
        "SD302",
        "`datetime.now`",
        "call it outside",
        function("return x * t", "x, t"),
        "1.5,",
        "1.5, 3",
    ),
    Row(
        "hasattr of a property",
        "class M:\n    @property\n    def a(self):\n        return 2.0\n"
        + function("return x * M().a if hasattr(M(), 'a') else x"),
        "SD205",
        "`a` of `M` is a property",
        "read `.a` itself",
        "class M:\n    @property\n    def a(self):\n        return 2.0\n" + function("return x * M().a"),
    ),
    Row("eval", function("return eval('x')"), "SD302", "`eval`", "write the expression", function("return x")),
    Row(
        "type of a number that may be NumPy's",
        function("return x if type(np.sin(x)) == float else 2.0 * x"),
        "SD205",
        "whether this number is Python's or NumPy's",
        "use `isinstance`",
        function("return x if isinstance(np.sin(x), float) else 2.0 * x"),
    ),
    Row(
        "cache",
        "@functools.lru_cache\ndef g(x):\n    return [x, x]\n" + function("return g(x)[0]"),
        "SD302",
        "`g` is cached by `lru_cache` and returns a list",
        "remove the decorator `lru_cache`",
        "def g(x):\n    return [x, x]\n" + function("return g(x)[0]"),
    ),
    Row(
        "singledispatch",
        "@functools.singledispatch\ndef g(x):\n    return x * x\n" + function("return g(x)"),
        "SD302",
        "`g` is wrapped",
        "without the decorator",
        "def g(x):\n    return x * x\n" + function("return g(x)"),
    ),
    Row(
        "generator",
        "def g(x):\n    yield x\n    yield from g(x)\n" + function("s = 0.0\nfor y in g(x):\n    s += y\nreturn s"),
        "SD104",
        "`g` is a recursive generator",
        "a function that appends to a list",
        "def g(x):\n    return [x, 2 * x]\n" + function("s = 0.0\nfor y in g(x):\n    s += y\nreturn s"),
    ),
    Row(
        "rule missing",
        function("return np.i0(x)"),
        "SD301",
        "`np.i0`",
        "@srcdiff.rule_for(np.i0, adjoint=lambda x, out, out_bar: ...)",
        "def slope(x, out, out_bar):\n    return (out_bar * (np.i0(x + 1e-6) - np.i0(x - 1e-6)) / 2e-6,)\n"
        "@srcdiff.rule_for(np.i0, adjoint=slope, replace=True)\ndef i0(x): return np.i0(x)\n"
        + function("return np.i0(x)"),
    ),
    Row(
        "neither source nor rule",
        "from scipy import special\n" + function("return special.radian(x, 0.0, 0.0)"),
        "SD302",
        "`radian` has no Python source and no derivative rule",
        "@srcdiff.rule_for(special.radian)",
        "from scipy import special\n@srcdiff.rule_for(special.radian)\n"
        "def radian(d, m, s): return math.pi / 180.0 * (d + m / 60.0 + s / 3600.0)\n"
        + function("return special.radian(x, 0.0, 0.0)"),
    ),
    Row(
        "array of Python",
        "import array\na = array.array('d', [1.0, 2.0])\n" + function("return np.sum(a * x)"),
        "SD203",
        "an instance of `array` is used",
        "convert it to an array: `np.asarray(...)`",
        "import array\na = array.array('d', [1.0, 2.0])\n" + function("return np.sum(np.asarray(a) * x)"),
        "np.ones(2),",
    ),
    # statements and expressions
    Row(
        "with",
        function("with np.errstate(all='ignore'):\n    y = x\nreturn y").replace(
            "np.errstate(all='ignore')", "open('a')"
        ),
        "SD101",
        "`with` of `open(...)` is not supported",
        "around the call",
        function("return x"),
    ),
    Row(
        "match with names in alternatives",
        function("match (x,):\n    case (y,) | (_, y):\n        return y\nreturn 2 * x"),
        "SD101",
        "`match` with `**rest` or with names in alternatives is not supported",
        "use `if` and `elif`",
        function("if x == 1.0:\n    return x\nreturn 2 * x"),
    ),
    Row(
        "generator expression",
        function("g = (y for y in [x])\nreturn x * len(g)"),
        "SD203",
        "a generator expression has no length",
        "`list(...)`",
        function("g = (y for y in [x])\nreturn x * len(list(g))"),
    ),
    Row(
        "key that is not there",
        function("d = {'a': x}\nreturn d['b']"),
        "SD203",
        "has no key 'b'; it has 'a'",
        "where the dictionary is created",
        function("d = {'a': x, 'b': x}\nreturn d['b']"),
    ),
    Row(
        "tuple assigned",
        function("t = (1.0, x)\nt[0] = x\nreturn t[0]"),
        "SD203",
        "elements of a tuple",
        "`list(...)`",
        function("t = list((1.0, x))\nt[0] = x\nreturn t[0]"),
    ),
    Row(
        "truth of an array",
        function("if x > 1:\n    return x[0]\nreturn 2 * x[0]"),
        "SD203",
        "truth value of an array is ambiguous",
        "`np.any(...)`",
        function("if np.any(x > 1):\n    return x[0]\nreturn 2 * x[0]"),
        "np.ones(3),",
    ),
    Row(
        "float as an index",
        function("return x[x[0]]"),
        "SD203",
        "an index must be an integer",
        "`int(...)`",
        function("return x[int(x[0])]"),
        "np.ones(3),",
    ),
    Row(
        "range of a float",
        function("s = x\nfor i in range(x):\n    s += x\nreturn s"),
        "SD203",
        "`range` needs integers",
        "`int(...)`",
        function("s = x\nfor i in range(int(x)):\n    s += x\nreturn s"),
    ),
    Row(
        "shift of a float",
        function("return x * (n << 2)", "x, n"),
        "SD203",
        "needs integers",
        "`int(...)`",
        function("return x * (int(n) << 2)", "x, n"),
        "1.5, 2.0",
    ),
    Row(
        "function of math on an array",
        function("return np.sum(math.sin(x))"),
        "SD203",
        "`math.sin` takes numbers",
        "use `np.sin`",
        function("return np.sum(np.sin(x))"),
        "np.ones(3),",
    ),
    Row(
        "name of a module that is not there",
        function("return np.sinn(x)"),
        "SD204",
        "module `numpy` has no `sinn`",
        "check the spelling",
        function("return np.sin(x)"),
    ),
    Row(
        "name that is not defined",
        function("return x * scale"),
        "SD204",
        "`scale`",
        "assign it before this line",
        "scale = 2.0\n" + function("return x * scale"),
    ),
    Row(
        "text in place of a number",
        function("return x + 'a'"),
        "SD203",
        "a string is used",
        "check the types",
        function("return x + 1.0"),
    ),
    Row(
        "tuple indexed at run time",
        function("t = (x, 2 * x, n > 0)\nreturn t[n]", "x, n"),
        "SD205",
        "tuple",
        "give all elements the same number type",
        function("t = (x, 2 * x, 1.0)\nreturn t[n]", "x, n"),
        "1.5, 1",
    ),
    Row(
        "types that differ",
        function("y = x if x > 1.0 else (x, x)\nreturn y"),
        "SD202",
        "on one path",
        "another name",
        function("y = x if x > 1.0 else 2.0 * x\nreturn y"),
    ),
    Row(
        "list that changes while it is iterated",
        function("a = [x, x]\nfor y in a:\n    if n > 5:\n        a.append(y)\nreturn a[0]", "x, n"),
        "SD206",
        "while it is iterated",
        "iterate over a copy",
        function("a = [x, x]\nfor y in list(a):\n    if n > 5:\n        a.append(y)\nreturn a[0]", "x, n"),
        "1.5, 3",
    ),
    # calls and recursion
    Row(
        "argument missing",
        "def g(a, b):\n    return a * b\n" + function("return g(x)"),
        "SD304",
        "`g` needs an argument for `b`",
        "check the arguments",
        "def g(a, b):\n    return a * b\n" + function("return g(x, x)"),
    ),
    Row(
        "recursion with ever longer tuples",
        "def g(t, n):\n    return t[0] if n == 0 else g((*t, t[0]), n - 1)\n" + function("return g((x,), n)", "x, n"),
        "SD308",
        "`g` calls itself with a new type of `t`",
        "a list of numbers",
        "def g(t, n):\n    return t[0] if n == 0 else g([*t, t[0]], n - 1)\n" + function("return g([x], n)", "x, n"),
        "1.5, 3",
    ),
    Row(
        "recursion with ever new functions",
        "def g(h, x, n):\n    return h(x) if n == 0 else g(lambda y: 2.0 * y, x, n - 1)\n"
        + function("return g(lambda y: y, x, n)", "x, n"),
        "SD308",
        "`g` calls itself with a new type of `h`",
        "outside `g`",
        "def twice(y):\n    return 2.0 * y\ndef g(h, x, n):\n    return h(x) if n == 0 else g(twice, x, n - 1)\n"
        + function("return g(twice, x, n)", "x, n"),
        "1.5, 3",
    ),
    Row(
        "recursion with ever more axes",
        "def g(a, n):\n    return np.sum(a) if n == 0 else g(np.array([a, a]), n - 1)\n"
        + function("return g(x, n)", "x, n"),
        "SD308",
        "`g` calls itself with a new type of `a`",
        "the same number of axes",
        "def g(a, n):\n    return np.sum(a) if n == 0 else g(np.concatenate((a, a)), n - 1)\n"
        + function("return g(x, n)", "x, n"),
        "np.ones(2), 3",
    ),
    # the requested derivative
    Row(
        "result is an array",
        function("return x * x"),
        "SD401",
        "the result is an array",
        "return one float",
        function("return np.sum(x * x)"),
        "np.ones(3),",
    ),
    Row(
        "result is None",
        function("x * x"),
        "SD401",
        "the result is `None`",
        "return one float",
        function("return x * x"),
    ),
    Row(
        "result is a text",
        function("return 'a'"),
        "SD401",
        "the result is a string",
        "return one float",
        function("return x"),
    ),
    Row(
        "integers to differentiate by",
        function("return 2.0 * x[0]"),
        "SD402",
        "`x` is an array of int64",
        "`.astype(float)`",
        function("return 2.0 * x[0]"),
        "np.arange(3),",
        "np.arange(3).astype(float),",
    ),
    Row(
        "memory that is shared",
        function("a[0] = 2.0 * b[0]\nreturn a[0] * b[0]", "a, b"),
        "SD403",
        "share memory",
        "pass a copy",
        function("a[0] = 2.0 * b[0]\nreturn a[0] * b[0]", "a, b"),
        "*(lambda a: (a, a))(np.ones(3)),",
        "*(lambda a: (a, a.copy()))(np.ones(3)),",
    ),
    # types that differ
    Row(
        "tuple that grows",
        function("p = (x, x)\nfor i in range(int(x) + 1):\n    p = p + (x,)\nreturn sum(p)"),
        "SD202",
        "`p` is a tuple of 2 elements on one path and a tuple of 3 elements on another",
        "use a list",
        function("p = [x, x]\nfor i in range(int(x) + 1):\n    p.append(x)\nreturn sum(p)"),
    ),
    # numbers that go through text
    *(
        Row(
            f"number through text, {text}",
            function(f"return x * float({text})"),
            "SD203",
            "numbers that go through text have no derivative",
            "use the number itself, or round it",
            function("return x * round(x, 3)"),
        )
        for text in ("f'{x:.3f}'", "'%.2f' % x", "format(x, '.2f')", "'{:.2f}'.format(x)", "str(x).replace(',', '.')")
    ),
    # subclasses of numbers and arrays, and other classes that srcdiff does not read
    Row(
        "subclass of float",
        "class M(float):\n    pass\n" + function("return M(x) * 2.0"),
        "SD302",
        "instances of the class `M`",
        "`M` inherits from `float`: use a plain float, or a class that keeps it in an attribute",
        "class M:\n    def __init__(self, value):\n        self.value = float(value)\n"
        + function("return M(x).value * 2.0"),
    ),
    Row(
        "instance of a subclass of float",
        "class M(float):\n    pass\nm = M(2.0)\n" + function("return x * m"),
        "SD201",
        "`m` from outside the function is an instance of `M`",
        "convert it to a plain float: `float(...)`",
        "class M(float):\n    pass\nm = float(M(2.0))\n" + function("return x * m"),
    ),
    Row(
        "subclass of ndarray",
        "class M(np.ndarray):\n    pass\n" + function("return np.sum((np.ones(3) * x).view(M))"),
        "SD203",
        "an instance of `M`, a class of arrays",
        "leave the class out",
        function("return np.sum(np.ones(3) * x)"),
    ),
    Row(
        "construction of a subclass of ndarray",
        "class M(np.ndarray):\n    pass\n" + function("return np.sum(M(3) * x)"),
        "SD302",
        "instances of the class `M`",
        "`self.values = np.asarray(values)`",
        "class M:\n    def __init__(self, values):\n        self.values = np.asarray(values)\n"
        + function("return np.sum(M(np.ones(3)).values * x)"),
    ),
    Row(
        "metaclass with a call of its own",
        "class Meta(type):\n    def __call__(cls, a):\n        return super().__call__(a)\n"
        + CLASS.replace("class M", "class M(metaclass=Meta)")
        + function("return M(x).a"),
        "SD302",
        "instances of the class `M`",
        "`M` has the metaclass `Meta`",
        CLASS + function("return M(x).a"),
    ),
    Row(
        "subclass of a class of the standard library",
        "import threading\n" + CLASS.replace("class M", "class M(threading.Thread)") + function("return M(x).a"),
        "SD302",
        "instances of the class `M`",
        "`M` inherits from `threading.Thread`",
        CLASS + function("return M(x).a"),
    ),
    Row(
        "attribute that is not there",
        CLASS + function("return M(x).b"),
        "SD203",
        "`M` has no `b`; it has a",
        "assign `b` in `__init__` of `M`",
        "class M:\n    def __init__(self, a):\n        self.b = a\n" + function("return M(x).b"),
    ),
]


def run(row: Row, text: str, arguments: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The gradient of `f`, in a module with this text."""
    file = folder / "model.py"
    file.write_text(HEAD + text, encoding="utf-8")
    linecache.checkcache(str(file))
    module = types.ModuleType("model")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "model", module)
    exec(compile(HEAD + text, str(file), "exec"), vars(module))
    gradient = srcdiff.grad(module.f, backend="python")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gradient(*eval(f"({arguments})", vars(module)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_help_fits_the_program(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(srcdiff.DifferentiationError) as caught:
        run(row, row.program, row.arguments, tmp_path, monkeypatch)

    problem: Problem = caught.value.problems[0]
    assert row.code == problem.code
    assert row.message in problem.message
    assert row.help in str(problem).partition(" = help: ")[2]
    assert problem.span is not None
    assert problem.span.file == str(tmp_path / "model.py")  # the user's line, not one of a library


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_advice_works(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(row, row.advised, row.then or row.arguments, tmp_path, monkeypatch)

    assert np.all(np.isfinite(found))


def test_a_dataclass_is_advised_only_where_it_helps() -> None:
    for row in ROWS:
        assert ("dataclass" in row.help) <= ("@dataclasses.dataclass" in row.advised)
    assert len(ROWS) >= 60
