"""Globals may change between calls: the derivative uses the current values, or is refused.

A row of the table is a program, something that changes, and the derivatives before and after.
"""

import dataclasses
import functools
import importlib
import linecache
import math
import sys
import textwrap
import types

import numba
import numpy as np
import pytest

import srcdiff

BACKENDS = ("python", "numba")


def module(text: str, **names) -> types.ModuleType:
    """A module of its own, with a text that can be read."""
    module.count += 1
    made = types.ModuleType(f"guarded_{module.count}")
    file = f"<guarded {module.count}>"
    text = textwrap.dedent(text)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    made.__dict__.update(np=np, math=math, srcdiff=srcdiff, numba=numba, functools=functools, **names)
    sys.modules[made.__name__] = made
    exec(compile(text, file, "exec"), made.__dict__)
    return made


module.count = 0


@dataclasses.dataclass(frozen=True)
class Code:
    """The code of a function `f`, compiled on demand, because tests may have cleared `linecache`."""

    text: str

    def made(self) -> types.CodeType:
        return module(self.text).f.__code__


def code_of(text: str) -> Code:
    return Code(text)


def set_global(**values):
    return lambda m: m.__dict__.update(values)


def set_attribute(owner: str, name: str, value):
    """A change that sets an attribute in the module. The value may be computed there too."""

    def change(m: types.ModuleType) -> None:
        made = eval(value, m.__dict__) if isinstance(value, str) else value.made() if isinstance(value, Code) else value
        setattr(eval(owner, m.__dict__), name, made)

    return change


CHANGES = {
    # the changed object: the program, the change, and the derivative with respect to x at 2 before and after it
    "a float of the module": ("k = 3.0\ndef f(x): return k * x", set_global(k=5.0), 3, 5),
    "an integer of the module": ("k = 3\ndef f(x): return x ** k", set_global(k=2), 12, 4),
    "an integer becomes a float": ("k = 3\ndef f(x): return x ** k", set_global(k=2.0), 12, 4),
    "a number of NumPy's": ("k = np.int64(3)\ndef f(x): return x ** k", set_global(k=np.int64(2)), 12, 4),
    "a flag": ("k = True\ndef f(x): return x * x if k else x", set_global(k=False), 4, 1),
    "a flag of NumPy's": ("k = np.True_\ndef f(x): return x * x if k else x", set_global(k=np.False_), 4, 1),
    "a text": ("k = 'square'\ndef f(x): return x * x if k == 'square' else x", set_global(k="line"), 4, 1),
    "an array of the module": (
        "k = np.ones(2)\ndef f(x): return np.sum(k) * x",
        set_global(k=np.ones((3, 2))),
        2,
        6,
    ),
    "the elements of an array": (
        "k = np.ones(2)\ndef f(x): return np.sum(k) * x",
        lambda m: m.k.fill(4.0),
        2,
        8,
    ),
    "a list": ("k = [1.0, 2.0]\ndef f(x): return sum(k) * x", lambda m: m.k.append(4.0), 3, 7),
    "a number in a list": ("k = [1.0, 2.0]\ndef f(x): return sum(k) * x", lambda m: m.k.__setitem__(0, 5.0), 3, 7),
    "an integer in a list": ("k = [1, 2]\ndef f(x): return x ** k[1]", lambda m: m.k.__setitem__(1, 3), 4, 12),
    "a dictionary": ("k = {'a': 3}\ndef f(x): return x ** k['a']", lambda m: m.k.update(a=2), 12, 4),
    "a key of a dictionary": (
        "k = {'a': 3.0}\ndef f(x): return x * (k['b'] if 'b' in k else k['a'])",
        lambda m: m.k.update(b=7.0),
        3,
        7,
    ),
    "a tuple": ("k = (3, 2)\ndef f(x): return x ** k[0]", set_global(k=(2, 3)), 12, 4),
    "a deleted variable": (
        "k = 3.0\ndef abs(x): return k * x\ndef f(x): return abs(x)",
        lambda m: m.__dict__.pop("abs"),
        3,
        1,
    ),
    "a builtin that is shadowed": (
        "def f(x): return abs(x) * x",
        set_global(abs=lambda x: 3.0 * x),
        4,
        12,
    ),
    "a helper": ("def h(x): return x * x\ndef f(x): return h(x)", set_global(h=lambda x: 3.0 * x), 4, 3),
    "the code of a helper": (
        "def h(x): return x * x\ndef f(x): return h(x)",
        set_attribute("h", "__code__", code_of("def f(x): return 3.0 * x")),
        4,
        3,
    ),
    "the code of the function": (
        "def f(x): return x * x",
        set_attribute("f", "__code__", code_of("def f(x): return 3.0 * x")),
        4,
        3,
    ),
    "the code of the function, with another parameter": (
        "def f(x): return x * x",
        set_attribute("f", "__code__", code_of("def f(y): return 3.0 * y")),
        4,
        3,
    ),
    "the defaults of a helper": (
        "def h(x, k=3): return x ** k\ndef f(x): return h(x)",
        set_attribute("h", "__defaults__", (2,)),
        12,
        4,
    ),
    "the defaults by name of a helper": (
        "def h(x, *, k=3): return x ** k\ndef f(x): return h(x)",
        lambda m: m.h.__kwdefaults__.update(k=2),
        12,
        4,
    ),
    "the defaults by name of a helper, replaced": (
        "def h(x, *, k=3.0): return x * k\ndef f(x): return h(x)",
        set_attribute("h", "__kwdefaults__", {"k": 5.0}),
        3,
        5,
    ),
    "a list in the defaults of a helper": (
        "def h(x, k=([3.0], 1)): return x * k[0][0]\ndef f(x): return h(x)",
        lambda m: m.h.__defaults__[0][0].__setitem__(0, 5.0),
        3,
        5,
    ),
    "the defaults of the function": (
        "def f(x, k=3): return x ** k",
        set_attribute("f", "__defaults__", (2,)),
        12,
        4,
    ),
    "the keywords of a partial": (
        "def h(x, k): return x ** k\np = functools.partial(h, k=3)\ndef f(x): return p(x)",
        lambda m: m.p.keywords.update(k=2),
        12,
        4,
    ),
    "an array in the keywords of a partial": (
        "def h(x, k): return x * k[0]\np = functools.partial(h, k=np.ones(1))\ndef f(x): return p(x)",
        lambda m: m.p.keywords["k"].fill(6.0),
        1,
        6,
    ),
    "a function of NumPy": (
        "def f(x): return np.sin(x)",
        set_attribute("np", "sin", lambda x: 3.0 * x),
        math.cos(2),
        3,
    ),
    "a number of another module": (
        "import other_guarded\ndef f(x): return other_guarded.k * x",
        set_attribute("other_guarded", "k", 5.0),
        3,
        5,
    ),
    "a function of another module": (
        "import other_guarded\ndef f(x): return other_guarded.h(x)",
        set_attribute("other_guarded", "h", lambda x: 5.0 * x),
        4,
        5,
    ),
    "what another module's function reads": (
        "import other_guarded\ndef f(x): return other_guarded.reads(x)",
        set_attribute("other_guarded", "k", 5.0),
        3,
        5,
    ),
    "the name of a module": (
        "import math as m\ndef f(x): return m.sin(x)",
        set_global(m=np),
        math.cos(2),
        math.cos(2),
    ),
    "what is imported in the function": (
        "def f(x):\n    from other_guarded import k\n    return k * x",
        lambda m: setattr(sys.modules["other_guarded"], "k", 5.0),
        3,
        5,
    ),
    "a variable around the function": (
        "def make():\n    k = 3\n    def f(x): return x ** k\n    def change():\n        nonlocal k\n"
        "        k = 2\n    return f, change\nf, change = make()",
        lambda m: m.change(),
        12,
        4,
    ),
    "a float around the function": (
        "def make():\n    k = 3.0\n    def f(x): return x * k\n    def change():\n        nonlocal k\n"
        "        k = 2.0\n    return f, change\nf, change = make()",
        lambda m: m.change(),
        3,
        2,
    ),
    "an attribute of a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    k: int\np = P(3)\ndef f(x): return x ** p.k",
        set_attribute("p", "k", 2),
        12,
        4,
    ),
    "a method of a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    k: float\n    def h(self, x): return x * self.k\n"
        "p = P(3.0)\ndef f(x): return p.h(x)",
        set_attribute("P", "h", lambda self, x: x * x * self.k),
        3,
        12,
    ),
    "a method in the class above": (
        "from dataclasses import dataclass\n@dataclass\nclass Q:\n    k: float\n    def h(self, x): return x * self.k\n"
        "@dataclass\nclass P(Q): pass\np = P(3.0)\ndef f(x): return p.h(x)",
        set_attribute("P", "h", lambda self, x: x * x * self.k),
        3,
        12,
    ),
    "a property of a dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    k: float\n    @property\n"
        "    def twice(self): return 2.0 * self.k\np = P(3.0)\ndef f(x): return x * p.twice",
        set_attribute("P", "twice", property(lambda self: 3.0 * self.k)),
        6,
        9,
    ),
    "an attribute of a class": (
        "class P:\n    k = 3\ndef f(x): return x ** P.k",
        set_attribute("P", "k", 2),
        12,
        4,
    ),
    "an attribute of a class in place of another": (
        "class P:\n    other = 1\n    def __init__(self): self.k = 3.0\np = P()\ndef f(x): return x * p.k",
        lambda m: (delattr(m.P, "other"), setattr(m.P, "k", property(lambda self: 5.0))),
        3,
        5,
    ),
    "the class above a class": (
        "class A:\n    def h(self, x): return 3.0 * x\nclass B:\n    def h(self, x): return 5.0 * x\n"
        "class P(A): pass\np = P()\ndef f(x): return p.h(x)",
        set_attribute("P", "__bases__", "(B,)"),
        3,
        5,
    ),
    "an instance in an instance": (
        "class P:\n    def __init__(self, **k): self.__dict__.update(k)\n"
        "p = P(q=P(r=P(k=3)))\ndef f(x): return x ** p.q.r.k",
        lambda m: setattr(m.p.q, "r", m.P(k=2)),
        12,
        4,
    ),
    "an attribute of a part of an instance that becomes an array": (
        "class P:\n    def __init__(self, **k): self.__dict__.update(k)\n"
        "p = P(q=P(k=3.0))\ndef f(x): return np.sum(x * p.q.k)",
        lambda m: setattr(m.p.q, "k", np.ones(5)),
        3,
        5,
    ),
    "a slot that gets a value": (
        "class P:\n    __slots__ = ('k', 'other')\np = P()\np.k = 3.0\n"
        "def f(x): return x * (p.other if hasattr(p, 'other') else p.k)",
        lambda m: setattr(m.p, "other", 5.0),
        3,
        5,
    ),
    "an instance without attributes that gets one": (
        "class P: pass\nclass Q: pass\np = Q()\np.inner = P()\n"
        "def f(x): return x * (p.inner.k if hasattr(p.inner, 'k') else 3.0)",
        lambda m: setattr(m.p.inner, "k", 5.0),
        3,
        5,
    ),
    "one list in two places that become two": (
        "k = {'a': [3.0], 'b': [3.0]}\nk['b'] = k['a']\ndef f(x): return x * k['b'][0]",
        lambda m: m.k.update(b=[5.0]),
        3,
        5,
    ),
    "the default in a tuple of a helper": (
        "def h(x, *, k=((3, 1.0),)): return x ** k[0][0]\ndef f(x): return h(x)",
        lambda m: m.h.__kwdefaults__.update(k=((2, 1.0),)),
        12,
        4,
    ),
    "a static method": (
        "class P:\n    @staticmethod\n    def h(x): return x * x\ndef f(x): return P.h(x)",
        set_attribute("P", "h", staticmethod(lambda x: 5.0 * x)),
        4,
        5,
    ),
    "the function behind a dispatcher": (
        "@numba.njit\ndef h(x): return x * x\ndef f(x): return h(x)",
        set_attribute("h", "py_func", lambda x: 5.0 * x),
        4,
        5,
    ),
    "the adjoint of a rule": (
        "def bar(x, out, out_bar): return (2.0 * x * out_bar,)\n@srcdiff.custom_rule(adjoint=bar)\n"
        "def h(x): return x * x\ndef f(x): return h(x)",
        set_attribute("h", "adjoint", lambda x, out, out_bar: (7.0 * out_bar,)),
        4,
        7,
    ),
    "what the adjoint of a rule calls": (
        "def two(x): return 2.0 * x\ndef bar(x, out, out_bar): return (two(x) * out_bar,)\n"
        "@srcdiff.custom_rule(adjoint=bar)\ndef h(x): return x * x\ndef f(x): return h(x)",
        set_global(two=lambda x: 3.0 * x),
        4,
        6,
    ),
    "the code of a function that is differentiated inside": (
        "def h(x): return x * x * x\ndef f(x): return srcdiff.grad(h)(x)",
        set_attribute("h", "__code__", code_of("def f(x): return x * x")),
        12,
        2,
    ),
    "the default of a function that is differentiated inside": (
        "def h(x, k=3): return x ** k\ndef f(x): return srcdiff.grad(h)(x)",
        set_attribute("h", "__defaults__", (2,)),
        12,
        2,
    ),
    "a function that is vectorized": (
        "h = np.vectorize(lambda x: x * x)\ndef f(x): return np.sum(h(np.array([x])))",
        set_attribute("h", "pyfunc", lambda x: 3.0 * x),
        4,
        3,
    ),
}


@pytest.fixture
def other():
    made = module("k = 3.0\ndef h(x): return x * x\ndef reads(x): return k * x")
    sys.modules["other_guarded"] = made
    yield made
    del sys.modules["other_guarded"]


@pytest.fixture
def numpy_put_back():
    before = np.sin
    yield
    np.sin = before


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("what", CHANGES)
def test_change_between_two_calls_is_seen(what, backend, other, numpy_put_back):
    text, change, before, after = CHANGES[what]
    m = module(text)
    derivative = srcdiff.grad(m.f, backend=backend)
    assert before == pytest.approx(derivative(2.0))
    assert before == pytest.approx(derivative(2.0))
    change(m)
    assert after == pytest.approx(derivative(2.0))
    assert after == pytest.approx(derivative(2.0))


CALLS = {
    # every kind of call: a function that takes the program and returns its derivative at 2
    "value_and_grad": lambda f, **o: (lambda g: lambda: g(2.0)[1])(srcdiff.value_and_grad(f, **o)),
    "grad of a differentiable": lambda f, **o: (lambda g: lambda: g(2.0))(srcdiff.differentiable(f, **o).grad()),
    "with a keyword": lambda f, **o: (lambda g: lambda: g(x=2.0))(srcdiff.grad(f, **o)),
    "vjp": lambda f, **o: lambda: srcdiff.vjp(f, 2.0, **o)[1](1.0)[0],
    "jvp": lambda f, **o: lambda: srcdiff.jvp(f, (2.0,), (1.0,), **o)[1],
    "jacobian": lambda f, **o: (lambda g: lambda: g(2.0))(srcdiff.jacobian(f, **o)),
    "batched": lambda f, **o: (lambda g: lambda: g(np.full(2, 2.0))[1])(srcdiff.batched(srcdiff.grad(f, **o))),
    "check": lambda f, **o: lambda: srcdiff.check(f, 2.0, **o) and srcdiff.grad(f, **o)(2.0),
    "grad of a function that calls it": lambda f, **o: (lambda g: lambda: g(2.0))(srcdiff.grad(lambda x: f(x), **o)),
    "hvp": lambda f, **o: (lambda g: lambda: g(2.0, 2.0))(srcdiff.hvp(lambda x: f(x) * x / 2 - x, **o)),
}


@pytest.mark.parametrize("call", CALLS)
def test_change_is_seen_by_every_way_to_call(call):
    m = module("k = 3\ndef h(x): return k * x\ndef f(x): return h(x)")
    derivative = CALLS[call](m.f, backend="python")
    scale = 2.0 if call == "hvp" else 1.0
    assert 3.0 * scale == pytest.approx(derivative())
    m.k = 5
    assert 5.0 * scale == pytest.approx(derivative())
    m.h.__code__ = code_of("def f(x): return 7.0 * x").made()
    assert 7.0 * scale == pytest.approx(derivative())


def test_objects_are_compared_by_identity():
    odd = "class Odd:\n    def __eq__(self, other): raise ValueError\n    def __bool__(self): raise ValueError\n"
    text = "class P:\n    odd = Odd()\n    k = 3.0\nodd = Odd()\ndef f(x): return x * P.k if P.odd is not odd else x"
    m = module(odd + text)
    derivative = srcdiff.grad(m.f, backend="python")
    assert (3.0, 3.0) == (derivative(2.0), derivative(2.0))
    m.P.odd = m.odd
    assert 1.0 == derivative(2.0)


def test_workspace_sees_changes():
    m = module("k = 3\ndef f(x): return np.sum(x ** k)")
    workspace = srcdiff.grad(m.f).workspace(np.ones(2))
    assert [3.0, 3.0] == list(workspace(np.ones(2)))
    m.k = 2
    assert [2.0, 2.0] == list(workspace(np.ones(2)))


def test_program_is_read_once_while_nothing_changes():
    text = "k = 3\ns = 2.0\na = np.ones(3)\nt = (1, [2.0])\ndef h(x, p=(1.0, 2)): return x ** p[1] * t[1][0]\n"
    m = module(text + "def f(x, y): return h(x) * k * s * np.sum(a) * np.int64(2) * y")
    derivative = srcdiff.grad(m.f, backend="python")
    for y in (1.0, 1.0, 2.0):
        derivative(2.0, y)
        (known,) = derivative.specialisations.values()
    m.s, m.a, m.t = 3.0, np.ones(4), (1, [5.0])  # of the same types
    m.k = int("3")
    derivative(2.0, 1.0)
    assert [known] == list(derivative.specialisations.values())


def test_instance_with_an_attribute_in_place_of_a_method_is_refused():
    text = (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    k: float\n    def h(self, x): return x * self.k\n"
    )
    m = module(text + "\np = P(3.0)\ndef f(x): return p.h(x)\ndef g(x, p): return p.h(x)")
    by_name, given = srcdiff.grad(m.f, backend="python"), srcdiff.grad(m.g, backend="python")
    assert 3.0 == by_name(2.0) == given(2.0, m.p)
    m.p.h = lambda x: x * x
    with pytest.raises(srcdiff.DifferentiationError, match="overrides the attribute `h` of its class"):
        by_name(2.0)
    with pytest.raises(srcdiff.DifferentiationError, match="overrides the attribute `h` of its class"):
        given(2.0, m.p)


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivative_that_needs_a_replaced_function_of_numpy_is_refused(backend, numpy_put_back):
    m = module("def f(x): return np.cos(x)\ndef g(x): return np.cos(x) * 1.0")
    before = srcdiff.grad(m.f, backend=backend)
    assert -math.sin(2.0) == pytest.approx(before(2.0))
    np.sin = lambda x: 3.0 * x
    with pytest.raises(srcdiff.DifferentiationError, match=r"`numpy.sin` has been replaced"):
        srcdiff.grad(m.g, backend=backend)(2.0)
    if backend == "python":
        with pytest.raises(srcdiff.DifferentiationError, match=r"`numpy.sin` has been replaced"):
            before(2.0)
    else:
        assert -math.sin(2.0) == pytest.approx(before(2.0))  # it is compiled in


def test_functions_of_ours_call_numpy_as_it_was(numpy_put_back):
    m = module("def f(x): return np.linalg.norm(x)")
    np.sqrt, before = (lambda x: 3.0 * x), np.sqrt
    try:
        with pytest.raises(srcdiff.DifferentiationError, match=r"`numpy.sqrt` has been replaced"):
            srcdiff.grad(m.f, backend="python")(np.array([3.0, 4.0]))
    finally:
        np.sqrt = before
    assert [0.6, 0.8] == pytest.approx(list(srcdiff.grad(m.f, backend="python")(np.array([3.0, 4.0]))))


# -- the text is the code --------------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes modules to files and imports them. Each write has a new time stamp, as with an editor."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names: set[str] = set()

    def write(name: str, text: str) -> None:
        names.add(name)
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()

    yield write
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("backend", BACKENDS)
def test_constant_that_was_edited_and_reloaded_is_seen(written, backend):
    written("edited_one", "def f(x):\n    return 2.0 * x * x\n")
    import edited_one

    assert 4.0 == srcdiff.grad(edited_one.f, backend=backend)(1.0)
    written("edited_one", "def f(x):\n    return 5.25 * x * x\n")
    importlib.reload(edited_one)
    assert 10.5 == srcdiff.grad(edited_one.f, backend=backend)(1.0)


def test_constant_that_was_edited_and_not_reloaded_is_not_taken(written):
    written("edited_two", "def f(x):\n    return 2.0 * x * x\n\ndef g(x):\n    return f(x)\n")
    import edited_two

    linecache.checkcache()
    written("edited_two", "def f(x):\n    return 3.5 * x * x\n\ndef g(x):\n    return f(x)\n")
    with pytest.raises(srcdiff.DifferentiationError, match="has changed since the function was defined"):
        srcdiff.grad(edited_two.f, backend="python")(1.0)
    with pytest.raises(srcdiff.DifferentiationError, match="has changed since the function was defined"):
        srcdiff.grad(edited_two.g, backend="python")(1.0)


def test_text_that_was_read_before_the_file_changed_is_still_the_code(written):
    written("edited_three", "def f(x):\n    return 2.0 * x * x\n\ndef g(x):\n    return 7.0 * x\n")
    import edited_three

    assert 4.0 == srcdiff.grad(edited_three.f, backend="python")(1.0)
    written("edited_three", "def f(x):\n    return 3.5 * x * x\n\ndef g(x):\n    return 8.25 * x\n")
    assert 7.0 == srcdiff.grad(edited_three.g, backend="python")(1.0)


def test_assertion_in_a_function_whose_file_has_changed(written):
    written("edited_four", "def f(x):\n    assert x > 0.0\n    return 2.0 * x\n")
    import edited_four

    linecache.checkcache()
    written("edited_four", "def f(x):\n    assert x > 0.0\n    return 21.5 * x\n")
    with pytest.raises(srcdiff.DifferentiationError, match="has changed since the function was defined"):
        srcdiff.grad(edited_four.f, backend="python")(1.0)


def test_assertion_that_pytest_has_rewritten_is_read():
    def f(x):
        assert x > 0.0, "positive"
        return 2.0 * x

    assert 2.0 == srcdiff.grad(f, backend="python")(1.0)
    with pytest.raises(AssertionError):
        srcdiff.grad(f, backend="python")(-1.0)


def test_cell_that_ran_again_under_the_same_name():
    cell = "<cell 12 of a notebook>"

    def run(text: str):
        linecache.cache[cell] = (len(text), None, text.splitlines(keepends=True), cell)
        names: dict = {}
        exec(compile(text, cell, "exec"), names)
        return names["f"]

    old = run("def f(x): return 6.0 * x * x\n")
    new = run("def f(x): return 9.0 * x * x\n")
    assert 18.0 == srcdiff.grad(new, backend="python")(1.0)
    with pytest.raises(srcdiff.DifferentiationError, match="has changed since the function was defined"):
        srcdiff.grad(old, backend="python")(1.0)


@pytest.mark.parametrize("constants", [(None, 9.0), (None, 2), (None, True)])
def test_code_with_other_constants_than_its_text(constants):
    m = module("def f(x): return 2.0 * x * x")
    m.f.__code__ = m.f.__code__.replace(co_consts=constants)
    with pytest.raises(srcdiff.DifferentiationError, match="has changed since the function was defined"):
        srcdiff.grad(m.f, backend="python")(1.0)


def test_lambdas_of_one_line_are_told_apart():
    m = module("f, g = (lambda x: 2.0 * x), (lambda x: 3.0 * x)")
    assert (2.0, 3.0) == (srcdiff.grad(m.f, backend="python")(1.0), srcdiff.grad(m.g, backend="python")(1.0))


# -- arguments that are compiled in ----------------------------------------------------------------------------------


def chosen(x, how):
    if how == "sin":
        return np.sin(x)
    return x * x * x


def chosen_by_key(x, how):
    return chosen(x, how["name"])


@dataclasses.dataclass
class Options:
    name: str


@pytest.mark.parametrize("kind", [str, np.str_])
def test_texts_are_told_apart_by_value(kind):
    g = srcdiff.grad(chosen, backend="python")
    assert (math.cos(1.0), 3.0, math.cos(1.0)) == (g(1.0, kind("sin")), g(1.0, kind("cube")), g(1.0, kind("sin")))
    by_key = srcdiff.grad(chosen_by_key, backend="python")
    for how, wanted in (("sin", math.cos(1.0)), ("cube", 3.0)):
        assert wanted == by_key(1.0, {"name": kind(how)})
        assert wanted == srcdiff.grad(lambda x, o: chosen(x, o.name), backend="python")(1.0, Options(kind(how)))
        assert wanted == srcdiff.grad(lambda x, o: chosen(x, o[0]), backend="python")(1.0, (kind(how),))


def test_functions_and_flags_are_told_apart():
    g = srcdiff.grad(lambda x, h, flag: h(x) if flag else 2.0 * h(x), backend="python")
    assert 4.0 == g(2.0, lambda x: x * x, True)
    assert 8.0 == g(2.0, lambda x: x * x, False)
    assert 3.0 == g(2.0, lambda x: 3.0 * x, True)
    for k in range(20):  # each new object may have the address of the previous one
        assert float(k) == g(2.0, eval_with_source(f"lambda x: {float(k)} * x"), True)


def eval_with_source(text: str):
    return module(f"f = {text}").f


def test_globals_may_have_the_names_that_guards_are_made_with():
    made = module(
        """
        factor = 2.0

        def inner(x):
            return x * x * factor

        def outer(x):
            return inner(x) * x
        """
    )

    np.testing.assert_allclose(6.0 * 1.5**2, srcdiff.grad(made.outer, backend="python")(1.5))
