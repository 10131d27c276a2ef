"""What a legal program is: a legal one passes, and each way to break it is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from srcdiff import pipeline
from srcdiff.api.derivatives import grad
from srcdiff.diagnostics import InternalError
from srcdiff.ir.builder import Builder
from srcdiff.ir.nodes import Alloc, Apply, Block, Const, Dim, Function, If, Load, Loop, Operation, Store, Value
from srcdiff.ir.types import BOOL, FLOAT, FLOAT32, INT, Array
from srcdiff.ir.verify import verify
from srcdiff.passes.compilation import Compilation


def function_of(operations: list[Operation], params: tuple[Value, ...], *yields: Value) -> Function:
    return Function("f", params, Block(tuple(operations), yields))


def refused(function: Function, message: str) -> None:
    with pytest.raises(InternalError, match=message) as caught:
        verify(function, "reverse sweep")
    assert "after 'reverse sweep'" in str(caught.value)
    assert "defect of srcdiff" in str(caught.value)


X, N, FLAG, A = Value(FLOAT, "x"), Value(INT, "n"), Value(BOOL, "flag"), Value(Array("float64", 2), "a")
PARAMETERS = (X, N, FLAG, A)


def a_loop(change: Callable[[Loop], Loop] = lambda loop: loop) -> Function:
    """`total = x; for i in range(0, n): total = total * x`, changed."""
    builder = Builder()
    zero, one = builder.const(0), builder.const(1)
    total, out = Value(FLOAT, "total"), Value(FLOAT)
    with builder.block() as body:
        following = builder.apply("multiply", total, X)
    loop = Loop(Value(INT, "i"), (zero, N, one), (total,), (X,), None, Block(tuple(body), (following,)), (out,))
    builder.add(change(loop))
    return function_of(builder.operations, PARAMETERS, out)


def a_branch(then: Value, orelse: Value, out: Value) -> Function:
    return function_of([If(FLAG, Block((), (then,)), Block((), (orelse,)), (out,))], PARAMETERS, out)


def test_legal_loop_passes():
    verify(a_loop(), "reading")


def test_legal_branch_passes():
    verify(a_branch(X, X, Value(FLOAT)), "reading")


def test_value_is_defined_before_it_is_used():
    late = Value(FLOAT)
    operations = [Apply(Value(FLOAT), "sin", (late,)), Const(late, 1.0)]

    refused(function_of(operations, PARAMETERS), "used before it is defined")


def test_value_is_defined_once():
    twice = Value(FLOAT)

    refused(function_of([Const(twice, 1.0), Const(twice, 2.0)], PARAMETERS), "defined twice")


def test_parameter_is_not_defined_again():
    refused(function_of([Const(X, 1.0)], PARAMETERS), "defined twice")


def test_value_of_a_branch_is_not_seen_outside():
    inner, out = Value(FLOAT), Value(FLOAT)
    branch = If(FLAG, Block((Const(inner, 1.0),), (inner,)), Block((), (X,)), (out,))

    refused(function_of([branch], PARAMETERS, inner), "yielded but not defined")


def test_value_of_one_branch_is_not_seen_in_the_other():
    inner, out = Value(FLOAT), Value(FLOAT)
    branch = If(FLAG, Block((Const(inner, 1.0),), (inner,)), Block((), (inner,)), (out,))

    refused(function_of([branch], PARAMETERS, out), "yielded but not defined")


def test_parameter_of_a_loop_is_not_seen_behind_it():
    kept: list[Value] = []

    def remember(loop: Loop) -> Loop:
        kept.append(loop.params[0])
        return loop

    function = a_loop(remember)

    refused(replace(function, body=replace(function.body, yields=(kept[0],))), "yielded but not defined")


def test_branches_yield_what_comes_out():
    refused(a_branch(X, N, Value(FLOAT)), "types differ")
    refused(a_branch(X, X, Value(INT)), "types differ")


def test_single_precision_is_a_type_of_its_own():
    refused(a_branch(X, X, Value(FLOAT32)), "types differ")


def test_loop_starts_with_a_value_for_each_parameter():
    refused(a_loop(lambda loop: replace(loop, inits=(N,))), "types differ")
    refused(a_loop(lambda loop: replace(loop, inits=())), "types differ")


def test_loop_yields_a_value_for_each_parameter():
    refused(a_loop(lambda loop: replace(loop, body=replace(loop.body, yields=(N,)))), "types differ")
    refused(a_loop(lambda loop: replace(loop, body=replace(loop.body, yields=()))), "types differ")
    refused(a_loop(lambda loop: replace(loop, body=replace(loop.body, yields=(X, X)))), "too many")


def test_loop_that_its_body_ends_yields_one_value_more():
    refused(a_loop(lambda loop: replace(loop, leaves=True)), "yields too many values")


def test_element_has_an_index_for_each_axis():
    refused(function_of([Load(Value(FLOAT), A, (N,))], PARAMETERS), "an index for each axis")
    refused(function_of([Store(A, (N, N, N), X)], PARAMETERS), "an index for each axis")


def test_index_is_an_integer():
    refused(function_of([Load(Value(FLOAT), A, (N, X))], PARAMETERS), "not an integer")


def test_length_is_that_of_an_axis_that_there_is():
    refused(function_of([Dim(Value(INT), A, 2)], PARAMETERS), "no such axis")


def test_allocation_is_an_array():
    refused(function_of([Alloc(Value(FLOAT), (N,))], PARAMETERS), "is an array")


def test_program_is_verified_after_every_step(monkeypatch):
    def broken(state: Compilation) -> None:
        state.main = replace(state.main, body=replace(state.main.body, yields=(Value(FLOAT),)))

    passes = [replace(one, run=broken) if one.name == "reverse sweep" else one for one in pipeline.PASSES]
    monkeypatch.setattr(pipeline, "PASSES", passes)

    with pytest.raises(InternalError, match="after 'reverse sweep'"):
        grad(lambda x: x * x, backend="python")(1.5)
