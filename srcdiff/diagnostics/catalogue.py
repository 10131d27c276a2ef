"""Every kind of problem, one row each: what it means, what to write instead, and a failing example that is its test."""

from __future__ import annotations

from srcdiff.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    title: str
    help: str
    example: str
    """A function `f` that has this problem when it is called with `arguments` (by default, one float)."""
    arguments: str = "1.5,"
    backend: str = ""
    """The name of the backend, if only one backend has this problem."""


CATALOGUE: dict[str, Kind] = {}


def _kind(code: str, title: str, help_: str, example: str, arguments: str = "1.5,", backend: str = "") -> None:
    CATALOGUE[code] = Kind(title, help_, example, arguments, backend)


# SD1xx: the language
_kind(
    "SD101",
    "an unsupported statement",
    "move it out of the differentiated function",
    "def f(x):\n    global count\n    count = 1\n    return x * x\n",
)
_kind(
    "SD102",
    "an unsupported expression",
    "compute it outside the function and pass it in as an argument",
    "def f(x):\n    return x * len({x, 2})\n",
)
_kind(
    "SD103",
    "the source of a function cannot be read",
    "define the function in a file or in a notebook cell",
    "f = eval('lambda x: x * x')\n",
)
_kind(
    "SD104",
    "an unsupported kind of function",
    "write an ordinary function that returns its result",
    "def f(x):\n    yield x\n",
)
# SD2xx: values and types
_kind(
    "SD201",
    "a value of an unsupported type",
    "pass numbers, arrays of numbers, strings, None, functions, enum members, instances of your own classes, or "
    "tuples, lists and dictionaries of these",
    "def f(x, z):\n    return x\n",
    "1.5, b'bytes'",
)
_kind(
    "SD202",
    "a name has different types on different paths",
    "give one of them another name",
    "def f(x):\n    if x > 1.0:\n        y = x\n    else:\n        y = (x, x)\n    return y * 2.0\n",
)
_kind(
    "SD203",
    "an operation does not match the types of its operands",
    "check the types of the operands",
    "def f(x):\n    return x[0]\n",
)
_kind(
    "SD204",
    "a name is not defined",
    "assign it before this line, or check the spelling",
    "def f(x):\n    return x * undefined_name\n",
)
_kind(
    "SD205",
    "a value must be known at compile time",
    "write a literal, or pass a tuple of fixed length",
    "def f(x):\n    t = (x, x * x, x > 1)\n    return t[int(x)]\n",
)
_kind(
    "SD206",
    "srcdiff cannot tell which list or array a name refers to",
    "give each list its own name, and do not rebind that name in a branch or a loop",
    "def f(x, n):\n    a = [x]\n    b = [x * x]\n    c = a\n    for k in range(n):\n        if k == 1:\n"
    "            c = b\n        c.append(x)\n    return a[-1] + b[-1]\n",
    "1.5, 3",
)
# SD3xx: functions and rules
_kind(
    "SD301",
    "a function has no derivative rule",
    "write the function in Python, and declare it with `srcdiff.rule_for`",
    "import numpy as np\n\ndef f(x):\n    return np.spacing(x) * np.i0(x)\n",
)
_kind(
    "SD302",
    "a call of a function that srcdiff cannot read",
    "write the function in Python, or call it outside the differentiated function and pass in its result",
    "import json\n\ndef f(x):\n    json.JSONEncoder().encode(1.0)\n    return x\n",
)
_kind(
    "SD303",
    "an unsupported use of an array",
    "write a loop over the elements",
    "import numpy as np\n\ndef f(x):\n    y = x.T.reshape(6)\n    y[0] = 2.0\n    return np.sum(y)\n",
    "np.ones((2, 3)),",
)
_kind(
    "SD304",
    "a call does not match the parameters of its function",
    "check the arguments of the call",
    "def g(a, b):\n    return a * b\n\ndef f(x):\n    return g(x)\n",
)
_kind(
    "SD305",
    "an unsupported operation in a recursive function",
    "return numbers, arrays or lists of numbers, and pass each list or array that the function changes as one argument "
    "only",
    "def visit(out, seen, n):\n    out.append(n)\n    return len(seen) if n == 0 else visit(out, seen, n - 1)\n\n"
    "def f(x):\n    items = [x]\n    return x * visit(items, items, 2)\n",
    "1.5,",
)
_kind(
    "SD306",
    "a custom rule does not match its function",
    "write `adjoint(*arguments, out, out_bar)`, which returns one adjoint for each argument, or "
    "`tangent(*arguments, out, *argument_dots)`, which returns the tangent of the result",
    "import srcdiff\n\ndef wrong(x, out_bar):\n    return (out_bar,)\n\n@srcdiff.custom_rule(adjoint=wrong)\n"
    "def g(x):\n    return x * x\n\ndef f(x):\n    return g(x)\n",
)
_kind(
    "SD307",
    "a function is compiled with Numba options that srcdiff does not support",
    "differentiate the function without these options",
    "from numba import njit, uint32\n\n@njit(locals={'n': uint32})\ndef g(x):\n    n = x\n    return 2.5 * n\n\n"
    "def f(x):\n    return x * g(x)\n",
)
_kind(
    "SD308",
    "calls are nested too deeply, or never end",
    "write a loop instead of the recursion",
    "def last(t, n):\n    return 1.0 if n == 0 else last((t, t), n - 1)\n\ndef f(x, n):\n    return x * last(x, n)\n",
    "1.5, 3",
)
# SD4xx: the requested derivative
_kind(
    "SD401",
    "the result is not a single float",
    "return one float; with `has_aux=True`, return a pair of the float and any other value",
    "def f(x):\n    return x, x * x\n",
)
_kind(
    "SD402",
    "an argument cannot be differentiated",
    "pass a float or an array of floats",
    "def f(n):\n    return 2.0 * n[0]\n",
    "np.arange(3),",
)
_kind(
    "SD404",
    "an unsupported derivative inside a differentiated function",
    "pass everything that the inner function reads as arguments, and return everything that it computes",
    "import srcdiff\n\ndef f(x):\n    total = x\n\n    def g(y):\n        nonlocal total\n        total = total + y\n"
    "        return y * total\n\n    return srcdiff.grad(g)(x) + total\n",
)
_kind(
    "SD403",
    "arguments share memory, and the function writes to one of them",
    "pass a copy of one of them",
    "def f(a, b):\n    a[0] = 2.0 * b[0]\n    return a[0] * b[0]\n",
    "*(lambda a: (a, a))(np.ones(3)),",
)
# SD5xx: GPUs and threads
_kind(
    "SD501",
    "an operation that is not supported on a GPU",
    "write a loop over the elements, or compute the value on the CPU and pass it in",
    "def power(x, n):\n    return x * power(x, n - 1) if n > 0 else x\n\ndef f(x):\n    return power(x, 3)\n",
    backend="cuda",
)
_kind(
    "SD502",
    "an unsupported use of CUDA threads",
    "let each thread write its own elements, and let all threads of a block reach every `cuda.syncthreads()`",
    "from numba import cuda\n\ndef f(x):\n    return x * cuda.grid(1)\n",
)
_kind(
    "SD503",
    "iterations of a loop over `prange` depend on each other",
    "write `range`",
    "from numba import prange\n\ndef f(x):\n    y = x.copy()\n    for i in prange(1, len(x)):\n"
    "        y[i] = y[i - 1] * x[i]\n    return y[-1]\n",
    "np.ones(5),",
)
