"""The text of the IR: printed programs are parsed as the same program, and errors name their line."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

import srcdiff
from srcdiff.driver import compiling
from srcdiff.emit.write import write_function
from srcdiff.ir import nodes, parse, print
from srcdiff.ir.node_methods import words_of
from srcdiff.ir.nodes import Alloc, Block, Const, Function, NewStack, Operation, Program, Raise, Value, walk
from srcdiff.ir.parse import ParseError
from srcdiff.ir.primitives import PRIMITIVES
from srcdiff.ir.print import objects_in, show
from srcdiff.ir.types import FLOAT
from srcdiff.passes import manager
from tests.ir.operations import CALLEE, LEGAL, OBJECTS, PARAMETERS, program
from tests.numerical import clone
from tests.programs import PROGRAMS
from tests.subset import is_chosen

BODIES = [pytest.param(body, id=f"{kind}-{k}") for kind, bodies in LEGAL.items() for k, body in enumerate(bodies)]


def again(given: Program) -> Program:
    return parse.parse(show(given), objects_in(given))


@pytest.mark.parametrize("body", BODIES)
def test_every_operation_is_read_as_it_is_printed(body):
    given = program(body)

    assert show(given) == show(again(given))
    assert show(parse.parse(show(given), OBJECTS)) == show(given)


@pytest.mark.parametrize("body", [b for b in BODIES if "Loop" not in str(b.id)])  # its parameters come first
def test_operation_is_printed_as_it_is_written(body):
    lines = show(program(body)).split("\n\n")[0].split("\n")[1:]

    assert [line.strip() for line in body.strip().split("\n")] == [line.strip() for line in lines]


def test_every_kind_of_field_can_be_written_and_read():
    kinds = [c for c in vars(nodes).values() if isinstance(c, type) and issubclass(c, Operation) and c is not Operation]
    words = {word for kind in kinds if kind not in print.OWN for word in words_of(kind).values()} - print.LEFT_OUT

    assert words - {"bool"} <= print.WRITTEN.keys()
    assert words <= parse.READ.keys()


def test_no_primitive_has_the_name_of_an_operation():
    assert not parse.KINDS.keys() & PRIMITIVES.keys()


# -- values and objects ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "t", "x", "%choice", "größe", "it's", "a b", "5", "x%1"])
def test_names_of_values_are_kept(name):
    value = Value(FLOAT, name)
    given = Program(Function("f", (value,), Block((), (value,))))

    assert again(given).main.params[0].name == name


@pytest.mark.parametrize("name", ["f", "<lambda>", "a b"])
def test_names_of_functions_are_kept(name):
    assert again(Program(Function(name, (), Block()))).main.name == name


def test_value_without_a_name_is_not_the_value_called_t():
    unnamed, named = Value(FLOAT), Value(FLOAT, "t")

    assert show(Function("f", (unnamed, named), Block())) == "f(t%0: float64, 't'%1: float64)"


@pytest.mark.parametrize("constant", [0.1, 1e300, 5e-324, -0.0, float("inf"), float("nan"), 2**62, True])
def test_constants_are_exact(constant):
    out = Value(FLOAT)
    given = Program(Function("f", (), Block((Const(out, constant),))))
    (found,) = again(given).main.body.operations

    assert isinstance(found, Const)
    assert repr(found.value) == repr(constant)


class OwnError(Exception):
    pass


def test_objects_with_the_same_name_are_told_apart():
    class ValueError(Exception):
        pass

    errors = [ValueError, OwnError, type("OwnError", (Exception,), {}), KeyError]
    given = Program(Function("f", (), Block(tuple([Raise(e, ()) for e in errors]))))

    assert ["raise ValueError.2()", "raise OwnError()", "raise OwnError.2()", "raise KeyError()"] == [
        line.strip() for line in show(given).split("\n")[1:]
    ]
    assert errors == [o.exception for o in again(given).main.body.operations if isinstance(o, Raise)]


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("t%10: float64 = sin(y%11)", 2, "`y%11` has no definition"),
        ("t%10: float64 = sin(x%0", 2, "`,` is missing"),
        ("t%10: float64 = sin(x%0) twice", 2, "`twice` is not expected here"),
        ("t%10: complex = 1.0", 2, "`complex` is no type"),
        ("t%10: float64 = ?", 2, "`?` cannot be read"),
        ("t%10: float64 = one", 2, "`one` is no constant"),
        ("barrier\n  barrier", 3, "the indentation is no multiple of 4"),
        ("barrier\n    barrier", 3, "indented too far"),
        ("yield x%0\nbarrier", 3, "stands behind `yield`"),
        ("sin(x%0)", 2, "this has one result"),
        ("t%10: float64 = barrier", 2, "`barrier` has no result"),
        ("push stack=numbers%7", 2, "`push` needs `value=`"),
        ("t%10: float64 = 1.0\nt%10: int64 = 1", 3, "`t%10` is float64 elsewhere"),
        ("while\n    yield flag%2", 2, "the line `do` is missing"),
        ("for i%10 in range(n%1)", 2, "a range has a start, a stop and a step"),
        ("a%10: int64, b%11: int64 = until it leaves", 2, "a result for each parameter"),
        ("raise OtherError('text')", 2, "nobody says which object `OtherError` is"),
        ("t%10: stack of stack of float64 = newstack", 2, "no stacks of stacks"),
    ],
)
def test_error_names_the_line(body, line, message):
    with pytest.raises(ParseError) as caught:
        program(body)
    assert str(caught.value).startswith(f"line {line}: ")
    assert message in str(caught.value)


def test_text_without_a_function_is_refused():
    with pytest.raises(ParseError, match="there is no function"):
        parse.parse("# nothing\n\n")
    with pytest.raises(ParseError, match="line 3: a function starts at the first column"):
        parse.parse("\n# nothing\n    barrier")


def test_comments_around_functions_are_passed_over():
    text = f"# first\n\nf({PARAMETERS})\n    # inside\n\n    barrier\n# between\n{CALLEE}"

    assert len(parse.parse(text).callees) == 1
    assert len(parse.parse(text).main.body.operations) == 2


# -- the corpus --------------------------------------------------------------------------------------------------------


def some_programs():
    """Every twentieth program; with SRCDIFF_TEST_ALL, all of them."""
    return [p for p in PROGRAMS if p.at and p.wrt and is_chosen(p.name, 20)]


def without_places(function: Function) -> Function:
    """The function as in its text, which has no places of the source, where comments of the user are found."""

    def visit(block: Block) -> Block:
        return replace(block, operations=tuple([stripped(o).rebuilt(visit) for o in block.operations]))

    def stripped(operation: Operation) -> Operation:
        kept = {"keeps": None} if isinstance(operation, Alloc | NewStack) else {}
        return replace(operation, span=None, **kept)

    return replace(function, body=visit(function.body))


def emitted(function: Function) -> list[str]:
    return write_function(without_places(function), parameters=function.params).lines


@pytest.mark.parametrize("tested", some_programs(), ids=lambda p: p.name)
def test_programs_are_read_as_they_are_printed(tested, monkeypatch, tmp_path):
    monkeypatch.setenv("SRCDIFF_CACHE_DIR", str(tmp_path))
    programs: list[Program] = []
    look = manager.look

    def looked_at(name, state, before=None):
        look(name, state, before)
        if state.program is not before:
            programs.append(state.whole_program())

    monkeypatch.setattr(manager, "look", looked_at)
    monkeypatch.setattr(compiling, "look", looked_at)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        srcdiff.value_and_grad(tested.function, wrt=tested.wrt, backend="python")(*clone(tested.at[0]))

    assert programs
    for given in programs:
        assert show(given) == show(again(given))
    last, read = programs[-1], again(programs[-1])
    for function, other in zip((last.main, *last.callees), (read.main, *read.callees), strict=True):
        assert len(walk(function.body)) == len(walk(other.body))
        assert emitted(function) == emitted(other)
