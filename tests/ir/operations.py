"""Programs in the text of the IR: a legal one for each operation, and illegal ones with their error messages.

Each is the body of `f`, whose parameters are below.
"""

from __future__ import annotations

from textwrap import dedent, indent

from srcdiff.ir.nodes import Program
from srcdiff.ir.parse import parse

PARAMETERS = (
    "x%0: float64, n%1: int64, flag%2: bool, a%3: float64[:, :], v%4: float64[:], k%5: int64[:], s%6: float32, "
    "numbers%7: stack of float64, arrays%8: stack of float64[:], w%9: float32[:]"
)
CALLEE = """
g(x%0: float64, v%1: float64[:]) writes v%1
    t%2: int64 = 0
    v%1[t%2] = x%0
    yield x%0
"""


class Rule:
    """A mock of a rule that a user declares."""

    __name__ = "rule"


OBJECTS = {"rule": Rule()}


def program(body: str) -> Program:
    """The program with this body of the main function."""
    return parse(f"f({PARAMETERS})\n{indent(dedent(body).strip(), '    ')}\n{CALLEE}", OBJECTS)


LEGAL: dict[str, list[str]] = {
    "Const": [
        "t%10: float64 = 2.5",
        "t%10: float64 = -0.0",
        "t%10: float64 = inf",
        "t%10: float64 = -inf",
        "t%10: float64 = nan",
        "t%10: float32 = 1e-05",
        "t%10: int64 = -9223372036854775808",
        "t%10: bool = True",
    ],
    "Apply": [
        "t%10: float64 = multiply(x%0, n%1)",
        "t%10: float32 = sin(s%6)",
        "t%10: bool = less(n%1, x%0)",
        "t%10: int64 = negative(flag%2)",
        "t%10: float64 = where(flag%2, x%0, s%6)",
    ],
    "Load": ["t%10: float64 = a%3[n%1, n%1]", "t%10: float32 = w%9[n%1]", "t%10: int64 = k%5[n%1]"],
    "Store": ["a%3[n%1, n%1] = x%0", "v%4[n%1] += x%0 atomic", "w%9[n%1] = x%0", "v%4[n%1] += s%6"],
    "Coordinate": ["t%10: int64 = coordinate kind=thread_index", "t%10: int64 = coordinate kind=grid_size axis=2"],
    "BlockSum": ["t%10: float64 = blocksum value=x%0", "t%10: float64 = blocksum value=s%6"],
    "Enlarge": ["enlarge array=k%5 index=n%1 value=n%1", "enlarge array=k%5 index=n%1 value=n%1 capacity=n%1"],
    "Barrier": ["barrier"],
    "Alloc": [
        "t%10: float64[:, :] = alloc shape=(n%1, n%1)",
        "t%10: float64[:] = alloc shape=(n%1) fill=x%0 workspace=v%4 grows",
        "t%10: bool[:, :] = alloc fill=flag%2 like=a%3",
        "t%10: float64[] = alloc",
        "t%10: int64[:] = alloc shape=(n%1) place=local",
    ],
    "Copy": ["t%10: float64[:] = copy array=v%4", "t%10: float64[:] = copy array=v%4 workspace=v%4"],
    "View": [
        "t%10: float64[:, :] = view a%3[n%1:n%1:n%1, newaxis, n%1]",
        "t%10: float64[:] = view a%3[n%1]",
        "t%10: float64[:, :] = view a%3[:, n%1:]",
        "t%10: float64[:] = view v%4[:n%1]",
        "t%10: float64[:] = view v%4[::n%1]",
    ],
    "Transpose": ["t%10: float64[:, :] = transpose array=a%3 axes=(1, 0)"],
    "Part": ["z%10: complex128[:] = alloc shape=(n%1)\nt%11: float64[:] = part array=z%10 part=imag"],
    "Reshape": ["t%10: float64[:] = reshape array=a%3 shape=(n%1)", "t%10: float64[] = reshape array=a%3"],
    "Library": [
        "t%10: float64[:], t%11: float64 = library eigh(a%3, x%0)",
        "t%10: float64[:] = library 'np.f a->a'(v%4)",
    ],
    "Dim": ["t%10: int64 = a%3.shape[1]"],
    "Grow": ["t%10: float64[:] = grow array=v%4 size=n%1", "t%10: float64[:, :] = grow array=a%3 size=n%1 axis=1"],
    "If": [
        """
        y%10: float64 = if flag%2
            t%11: float64 = sin(x%0)
            yield t%11
        else
            yield x%0
        """,
        """
        if flag%2
            raise ValueError('no')
        """,
        """
        if flag%2
        else
            barrier
        """,
    ],
    "Loop": [
        """
        p%10: float64, iterations%11: int64 = for i%12 in range(n%1, n%1, n%1) with p%13 = x%0
            t%14: float64 = multiply(p%13, x%0)
            yield t%14
        """,
        """
        p%10: float64 = while with p%11 = x%0
            t%12: bool = less(p%11, x%0)
            yield t%12
        do
            yield x%0
        """,
        """
        iterations%10: int64 = until it leaves
            yield flag%2
        """,
        """
        for i%10 in range(n%1, n%1, n%1) while until it leaves
            yield flag%2
        do
            yield flag%2
        """,
    ],
    "Call": [
        "y%10: float64 = call g(x%0, v%4) writes=(1)",
        "y%10: float64 = call g(x%0, v%4) blocks_of_threads=n%1 alone",
    ],
    "Custom": [
        """
        y%11: float64 = custom rule(x%0) params=(p%10: float64)
            t%12: float64 = sin(p%10)
            yield t%12
        """,
    ],
    "Derivative": [
        """
        d%11: float64 = derivative g(x%0) params=(p%10: float64) mode=reverse
            t%12: float64 = multiply(p%10, x%0)
            yield t%12
        """,
        """
        y%12: float64, b%13: bool, d%14: float64 = derivative 'a b'(s%6, n%1) \
params=(p%10: float32, m%11: int64) mode=reverse with_value
            t%15: float64 = v%4[m%11]
            yield t%15, flag%2
        """,
        """
        y%11: float32[:], d%12: float32[:] = derivative g(w%9) params=(p%10: float32[:]) \
mode=forward tangents=(w%9) with_value
            yield p%10
        """,
        """
        y%10: float64[:] = derivative g() mode=primal with_value
            yield v%4
        """,
        """
        j%12: float64[:, :], d%13: float64[:], e%14: float64[:], f%15: float64 = \
derivative g(v%4, x%0) params=(p%10: float64[:], q%11: float64) jacobian directions=2
            yield p%10, n%1, q%11
        """,
    ],
    "Raise": [
        "raise ValueError()",
        "raise ValueError('it is so', x%0, (1, (2.5, None), True), format('{} < {}', x%0, n%1))",
        "raise ValueError(np.float64(0.5), nan, -inf)",
        "raise KeyError('a') errors=k%5 code=3",
    ],
    "Print": ["print('x =', x%0)", "print(format('{:.3f}\\n', x%0)) flush", "print()"],
    "NewStack": ["t%10: stack of float64 = newstack", "t%10: stack of float64 = newstack workspace=v%4"],
    "Push": ["push stack=numbers%7 value=x%0", "push stack=arrays%8 value=v%4"],
    "Pop": ["t%10: float64 = pop stack=numbers%7"],
    "Again": ["t%10: float64[:] = again array=v%4 number=n%1 shape=(n%1)"],
    "Peek": ["t%10: float64[:] = peek stack=arrays%8 index=n%1"],
    "Comment": ["# forward sweep"],
}

ILLEGAL: dict[str, list[tuple[str, str]]] = {
    "Const": [
        ("t%10: int64 = 2.5", "the constant 2.5 is float, not int64"),
        ("t%10: float64 = 2", "the constant 2 is int, not float64"),
        ("t%10: int64 = True", "the constant True is bool, not int64"),
        ("t%10: int64 = 9223372036854775808", "does not fit into 64 bits"),
        ("t%10: float64[:] = 2.5", "the constant 2.5 is float, not float64[:]"),
    ],
    "Apply": [
        ("t%10: float64 = sine(x%0)", "there is no primitive `sine`"),
        ("t%10: float64 = multiply(x%0)", "`multiply` takes 2 arguments, not 1"),
        ("t%10: float64 = multiply(x%0, v%4)", "`multiply` takes numbers, not float64[:]"),
        ("t%10: int64 = multiply(x%0, n%1)", "`multiply` gives float64 here, not int64"),
        ("t%10: float64 = sin(s%6)", "`sin` gives float32 here, not float64"),
        ("t%10: float64 = left_shift(x%0, n%1)", "`left_shift` takes integers, not float64, int64"),
    ],
    "Load": [
        ("t%10: float64 = a%3[n%1]", "an element of float64[:, :] needs an index for each axis, not 1"),
        ("t%10: float64 = v%4[x%0]", "an index is float64, not int64"),
        ("t%10: float64 = w%9[n%1]", "the element is float64, not float32"),
        ("t%10: float64 = x%0[n%1]", "what is indexed is float64, not an array"),
    ],
    "Store": [
        ("v%4[n%1, n%1] = x%0", "an element of float64[:] needs an index for each axis, not 2"),
        ("v%4[n%1] = n%1", "what is stored is int64, not float64"),
        ("k%5[n%1] = x%0", "what is stored is float64, not int64"),
        ("v%4[n%1] = x%0 atomic", "only an addition is atomic"),
    ],
    "Coordinate": [
        ("t%10: float64 = coordinate kind=thread_index", "a coordinate is float64, not int64"),
        ("t%10: int64 = coordinate kind=block_index axis=3", "a launch has three axes"),
    ],
    "BlockSum": [
        ("t%10: int64 = blocksum value=n%1", "threads add floats, not int64"),
        ("t%10: float32 = blocksum value=x%0", "the sum is float32, not float64"),
    ],
    "Enlarge": [
        ("enlarge array=v%4 index=n%1 value=n%1", "the array of sizes is float64[:], not int64[:]"),
        ("enlarge array=k%5 index=n%1 value=x%0", "an index or a size is float64, not int64"),
    ],
    "Alloc": [
        ("t%10: float64 = alloc shape=(n%1)", "an allocation is float64, not an array"),
        ("t%10: float64[:, :] = alloc shape=(n%1)", "1 lengths are not the shape of float64[:, :]"),
        ("t%10: float64[:] = alloc shape=(x%0)", "a length is float64, not int64"),
        ("t%10: float64[:] = alloc shape=(n%1) fill=n%1", "`fill` is int64, not float64"),
        ("t%10: float64[:] = alloc like=a%3", "float64[:, :] does not give the shape of float64[:]"),
        ("t%10: float64[:] = alloc shape=(n%1) workspace=k%5", "`workspace` is int64[:], not float64[:]"),
        ("t%10: float64[:] = alloc shape=(n%1) place=heap", "there is no memory `heap`"),
        ("t%10: float64[] = alloc grows", "an array without axes does not grow"),
    ],
    "Copy": [
        ("t%10: float64[:, :] = copy array=v%4", "the copy is float64[:, :], not float64[:]"),
        ("t%10: float64[:] = copy array=v%4 workspace=w%9", "`workspace` is float32[:], not float64[:]"),
    ],
    "View": [
        ("t%10: float64[:, :] = view a%3[n%1]", "the view is float64[:, :], not float64[:]"),
        ("t%10: float64[:] = view v%4[x%0:]", "an index is float64, not int64"),
        ("t%10: float64[:] = view v%4[:, :]", "there are more indices than axes of float64[:]"),
    ],
    "Part": [
        ("t%10: float64[:, :] = part array=a%3 part=real", "float64[:, :] has no part `real`"),
        (
            "z%10: complex64[:] = alloc shape=(n%1)\nt%11: float64[:] = part array=z%10 part=real",
            "the part is float64[:], not float32[:]",
        ),
    ],
    "Transpose": [
        ("t%10: float64[:, :] = transpose array=a%3 axes=(1, 1)", "(1, 1) is no permutation of the axes"),
        ("t%10: float64[:] = transpose array=a%3 axes=(1, 0)", "the transpose is float64[:], not float64[:, :]"),
    ],
    "Reshape": [
        ("t%10: float64[:] = reshape array=a%3 shape=(n%1, n%1)", "2 lengths are not the shape of float64[:]"),
        ("t%10: float32[:] = reshape array=a%3 shape=(n%1)", "the memory of float64[:, :] has no float32"),
    ],
    "Library": [("t%10: float64[:] = library f(numbers%7)", "numbers and arrays, not stack of float64")],
    "Dim": [
        ("t%10: int64 = a%3.shape[2]", "there is no axis 2 of float64[:, :]"),
        ("t%10: float64 = a%3.shape[0]", "a length is float64, not int64"),
        ("t%10: int64 = x%0.shape[0]", "what has a length is float64, not an array"),
    ],
    "Grow": [
        ("t%10: float64[:] = grow array=v%4 size=x%0", "the size is float64, not int64"),
        ("t%10: float64[:] = grow array=v%4 size=n%1 axis=1", "there is no axis 1 of float64[:]"),
        ("t%10: int64[:] = grow array=v%4 size=n%1", "the larger array is int64[:], not float64[:]"),
    ],
    "If": [
        ("if n%1", "the condition is int64, not bool"),
        (
            """
            y%10: float64 = if flag%2
                yield x%0
            else
                yield n%1
            """,
            "types differ: values of the second block are int64, not float64",
        ),
        (
            """
            y%10: float64 = if flag%2
                yield x%0
            """,
            "types differ: values of the second block are nothing, not float64",
        ),
        (
            """
            y%10: float32 = if flag%2
                yield x%0
            else
                yield x%0
            """,
            "types differ: values of the first block are float64, not float32",
        ),
    ],
    "Loop": [
        ("for i%10 in range(n%1, x%0, n%1)", "a bound is float64, not int64"),
        ("for i%10: float64 in range(n%1, n%1, n%1)", "the counter is float64, not int64"),
        (
            """
            p%10: float64 = for i%11 in range(n%1, n%1, n%1) with p%12: float64 = n%1
                yield p%12
            """,
            "types differ: first values are int64, not float64",
        ),
        (
            """
            p%10: float64 = for i%11 in range(n%1, n%1, n%1) with p%12 = x%0
                yield n%1
            """,
            "types differ: next values are int64, not float64",
        ),
        (
            """
            p%10: int64 = for i%11 in range(n%1, n%1, n%1) with p%12 = x%0
                yield x%0
            """,
            "types differ: results are int64, not float64",
        ),
        (
            """
            iterations%10: float64 = for i%11 in range(n%1, n%1, n%1)
            """,
            "the number of iterations is float64, not int64",
        ),
        (
            """
            for i%10 in range(n%1, n%1, n%1)
                yield x%0
            """,
            "the body yields 1 values, not 0",
        ),
        ("until it leaves", "the body yields 0 values, not 1"),
        (
            """
            until it leaves
                yield x%0
            """,
            "what ends the loop is float64, not bool",
        ),
        (
            """
            while
            do
            """,
            "the test yields 0 values, not one",
        ),
        (
            """
            while
                yield n%1
            do
            """,
            "the test is int64, not bool",
        ),
    ],
    "Call": [
        ("y%10: float64 = call h(x%0)", "there is no function `h`"),
        ("y%10: float64 = call f(x%0)", "there is no function `f`"),
        ("y%10: float64 = call g(x%0)", "types differ: arguments are float64, not float64, float64[:]"),
        ("y%10: float64 = call g(n%1, v%4)", "types differ: arguments are int64, float64[:], not float64"),
        ("call g(x%0, v%4)", "types differ: results are nothing, not float64"),
        ("y%10: float64 = call g(x%0, v%4) writes=(2)", "there is no argument 2"),
        ("y%10: float64 = call g(x%0, v%4) writes=(0)", "what is written into is float64, not an array"),
        ("y%10: float64 = call g(x%0, v%4) blocks_of_threads=x%0", "the number of blocks is float64, not int64"),
    ],
    "Custom": [
        (
            """
            y%10: float64 = custom rule(n%1) params=(p%11: float64)
                yield p%11
            """,
            "types differ: parameters are float64, not int64",
        ),
        (
            """
            y%10: float64 = custom rule(n%1) params=(p%11: int64)
                yield p%11
            """,
            "types differ: values of the body are int64, not float64",
        ),
    ],
    "Derivative": [
        (
            """
            d%11: float64 = derivative g(n%1) params=(p%10: float64) mode=reverse
                yield p%10
            """,
            "types differ: parameters are float64, not int64",
        ),
        (
            """
            d%11: float64 = derivative g(x%0) params=(p%10: float64) mode=backwards
                yield p%10
            """,
            "there is no mode `backwards`",
        ),
        (
            "d%11: float64 = derivative g(x%0) params=(p%10: float64) mode=reverse",
            "there is no result to differentiate",
        ),
        (
            """
            d%11: float64 = derivative g(x%0) params=(p%10: float64) mode=forward
                yield p%10
            """,
            "types differ: tangents are nothing, not float64",
        ),
        (
            """
            d%11: float64 = derivative g(s%6) params=(p%10: float32) mode=forward tangents=(s%6)
                yield p%10
            """,
            "types differ: tangents are float32, not float64",
        ),
        (
            """
            d%11: float64[:] = derivative g(x%0) params=(p%10: float64) mode=reverse
                yield p%10
            """,
            "types differ: results are float64[:], not float64",
        ),
        (
            """
            d%11: float64 = derivative g(x%0) params=(p%10: float64) jacobian with_value
                yield p%10
            """,
            "a Jacobian has no value",
        ),
    ],
    "Raise": [
        ("raise rule('text')", "is no exception"),
        ("raise ValueError(numbers%7)", "stack of float64 is no text"),
        ("raise ValueError() errors=v%4 code=1", "the array of errors is float64[:], not int64[:]"),
    ],
    "Print": [
        ("print('a', format('{}', x%0))", "a formatted text stands alone"),
        ("print(numbers%7)", "stack of float64 is no text"),
    ],
    "NewStack": [
        ("t%10: float64 = newstack", "the stack is float64"),
        ("t%10: stack of float64[:] = newstack workspace=v%4", "takes no memory from the caller"),
        ("t%10: stack of float64 = newstack workspace=k%5", "`workspace` is int64[:], not float64[:]"),
    ],
    "Push": [
        ("push stack=numbers%7 value=n%1", "what is pushed is int64, not float64"),
        ("push stack=v%4 value=x%0", "the stack is float64[:]"),
    ],
    "Pop": [("t%10: int64 = pop stack=numbers%7", "what is popped is int64, not float64")],
    "Again": [
        ("t%10: float64[:, :] = again array=v%4 number=n%1 shape=(n%1)", "the reference is float64[:, :]"),
        ("t%10: float64[:] = again array=v%4 number=x%0 shape=(n%1)", "the number is float64, not int64"),
        (
            """
            t%10: float64[:] = again array=t%11 number=n%1 shape=(n%1)
            t%11: float64[:] = copy array=v%4
            """,
            "the value `t`, float64[:], has not been made before",
        ),
    ],
    "Peek": [
        ("t%10: float64[:] = peek stack=arrays%8 index=x%0", "an index is float64, not int64"),
        ("t%10: float64 = peek stack=arrays%8 index=n%1", "what is there is float64, not float64[:]"),
    ],
}
