"""Every kind of problem, one row each: what it means, what to write instead, and a failing example that is its test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    title: str
    help: str
    example: str
    """A function `f` of one float (or what `arguments` says) that has this problem."""
    arguments: str = "1.5,"
    backend: str = ""
    """The only backend that has this problem, if it is one."""


CATALOGUE: dict[str, Kind] = {}


def _kind(code: str, title: str, help_: str, example: str, arguments: str = "1.5,", backend: str = "") -> None:
    CATALOGUE[code] = Kind(title, help_, example, arguments, backend)


# SD1xx: the language
_kind(
    "SD101",
    "a statement outside the language",
    "move it out of the function that is differentiated",
    "def f(x):\n    try:\n        return x * x\n    except ValueError:\n        return x\n",
)
_kind(
    "SD102",
    "an expression outside the language",
    "compute it outside and pass it in as an argument",
    "def f(x):\n    return x * len({1, 2})\n",
)
_kind(
    "SD103",
    "the source cannot be read",
    "define the function in a file, or in a cell of a notebook",
    "f = eval('lambda x: x * x')\n",
)
_kind(
    "SD104",
    "a kind of function outside the language",
    "use a plain function",
    "def f(x):\n    yield x\n",
)
# SD2xx: values and types
_kind(
    "SD201",
    "a value has no type srcdiff knows",
    "pass floats, integers, booleans, arrays of those, tuples, strings, None, functions or members of enums",
    "def f(x, z):\n    return x\n",
    "1.5, 1j",
)
_kind(
    "SD202",
    "a name has different types on different paths",
    "use another name for one of them",
    "def f(x):\n    if x > 1.0:\n        y = x\n    else:\n        y = (x, x)\n    return y * 2.0\n",
)
_kind(
    "SD203",
    "an operation does not fit the types",
    "check the types of the operands",
    "def f(x):\n    return x[0]\n",
)
_kind("SD204", "a name is not defined", "define it before it is used", "def f(x):\n    return x * undefined_name\n")
_kind(
    "SD205",
    "something must be known when the function is compiled",
    "write a literal, or pass a tuple whose length is known",
    "def f(x):\n    t = (x, x * x, 1)\n    return t[int(x)]\n",
)
_kind(
    "SD206",
    "lists or arrays cannot be told apart",
    "give each list its own name and do not bind it to another one in a branch or a loop",
    "def f(x, n):\n    a = [x]\n    b = [x * x]\n    c = a\n    for k in range(n):\n        if k == 1:\n"
    "            c = b\n        c.append(x)\n    return a[-1] + b[-1]\n",
    "1.5, 3",
)
# SD3xx: functions and rules
_kind(
    "SD301",
    "a function has no derivative rule",
    "write it in Python, with a rule of its own by `srcdiff.custom_rule` if you know its derivative",
    "import numpy as np\n\ndef f(x):\n    return np.spacing(x) * np.i0(x)\n",
)
_kind(
    "SD302",
    "a function is called that srcdiff cannot read",
    "write it in Python, or compute it outside and pass in what it gives",
    "import json\n\ndef f(x):\n    json.JSONEncoder().encode(1.0)\n    return x\n",
)
_kind(
    "SD303",
    "this use of arrays is not differentiated yet",
    "write the loop over the elements",
    "import numpy as np\n\ndef f(x):\n    y = x.T.reshape(6)\n    y[0] = 2.0\n    return np.sum(y)\n",
    "np.ones((2, 3)),",
)
_kind(
    "SD304",
    "a call does not fit the function's parameters",
    "check the arguments of the call",
    "def g(a, b):\n    return a * b\n\ndef f(x):\n    return g(x)\n",
)
_kind(
    "SD305",
    "a recursive function does what cannot be reversed",
    "return numbers, arrays, and lists of numbers, and pass what it changes once",
    "def visit(out, seen, n):\n    out.append(n)\n    return len(seen) if n == 0 else visit(out, seen, n - 1)\n\n"
    "def f(x):\n    items = [x]\n    return x * visit(items, items, 2)\n",
    "1.5,",
)
_kind(
    "SD306",
    "a custom rule does not fit its function",
    "write `adjoint(*arguments, out, out_bar)` that returns one adjoint for each argument",
    "import srcdiff\n\ndef wrong(x, out_bar):\n    return (out_bar,)\n\n@srcdiff.custom_rule(adjoint=wrong)\n"
    "def g(x):\n    return x * x\n\ndef f(x):\n    return g(x)\n",
)
_kind(
    "SD307",
    "a function is compiled in a way that srcdiff does not follow",
    "differentiate the function without what its compiler was told",
    "from numba import njit, uint32\n\n@njit(locals={'n': uint32})\ndef g(x):\n    n = x\n    return 2.5 * n\n\n"
    "def f(x):\n    return x * g(x)\n",
)
_kind(
    "SD308",
    "calls are nested too deeply, or without end",
    "write a loop instead of the recursion",
    "def last(t, n):\n    return 1.0 if n == 0 else last((t, t), n - 1)\n\ndef f(x, n):\n    return x * last(x, n)\n",
    "1.5, 3",
)
# SD4xx: the derivative asked for
_kind(
    "SD401",
    "the result is not one number",
    "return a float; use `has_aux=True` to return more beside it",
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
    "a derivative that cannot be taken inside of a function that is differentiated",
    "let the inner function depend on its arguments alone, and return what it computes",
    "import srcdiff\n\ndef f(x):\n    total = x\n\n    def g(y):\n        nonlocal total\n        total = total + y\n"
    "        return y * total\n\n    return srcdiff.grad(g)(x) + total\n",
)
_kind(
    "SD403",
    "arguments share memory and one of them is written",
    "pass a copy of one of them",
    "def f(a, b):\n    a[0] = 2.0 * b[0]\n    return a[0] * b[0]\n",
    "*(lambda a: (a, a))(np.ones(3)),",
)
# SD5xx: GPUs
_kind(
    "SD501",
    "something that a GPU does not do",
    "write it as a loop over elements, or compute it on the CPU and pass it in",
    "def power(x, n):\n    return x * power(x, n - 1) if n > 0 else x\n\ndef f(x):\n    return power(x, 3)\n",
    backend="cuda",
)
_kind(
    "SD502",
    "threads do what cannot be differentiated",
    "let each thread write elements of its own, and let all threads come to every `cuda.syncthreads()`",
    "from numba import cuda\n\ndef f(x):\n    return x * cuda.grid(1)\n",
)
