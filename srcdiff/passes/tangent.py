"""Forward mode: the program with a tangent beside every value that depends on the inputs, in the same order.

    primal                      tangent
    y = f(x)                    y_dot = f'(x) * x_dot, zero if x_dot is
    a[i] = e                    a_dot[i] = e_dot
    v = a[1:]                   v_dot = a_dot[1:]
    if c: A else: B             both sides yield the tangents too
    for i in range(n): A        the loop carries the tangents too

Scalars have tangents that are values; one that is missing is zero. Memory that may hold what depends on the inputs has
a twin of the same shape: what makes, views, copies, stores or chooses the one does the same to the other.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from srcdiff.analyses.activity import Activity, activity
from srcdiff.analyses.signs import expected_signs
from srcdiff.analyses.structure import structure_of
from srcdiff.diagnostics import DifferentiationError, Problem
from srcdiff.ir.aliasing import points_to
from srcdiff.ir.builder import Builder
from srcdiff.ir.clone import fresh
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Block,
    Call,
    Copy,
    Custom,
    Function,
    Grow,
    If,
    Library,
    Load,
    Loop,
    NewStack,
    Operation,
    Part,
    Peek,
    Pop,
    Push,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
)
from srcdiff.ir.types import Array, Stack, Type, element_type, is_complex, is_inexact, widest
from srcdiff.ir.words import own_name
from srcdiff.library.blas_lapack import LIBRARY
from srcdiff.passes.custom_adjoints import named, no_formula, require_shape, tangent_values
from srcdiff.rules import derivative_rule
from srcdiff.rules.formula import names_of, times


def tangent_of(
    function: Function, dots: dict[Value, Value], name: str, outputs: Sequence[Value], results: Sequence[Value] = ()
) -> Function:
    """The tangent function: it also takes the tangents `dots` of parameters, and returns `results` and the tangents of
    `outputs`.

    An output that does not depend on the parameters has a tangent of zeros.
    """
    tangent = Tangent(function, dots, outputs)
    with tangent.builder.block() as operations:
        tangent.start(function.params)
        tangent.operations(function.body)
        found = [tangent.dot(v) for v in outputs]
    if tangent.problems:
        raise DifferentiationError(list(dict.fromkeys(tangent.problems)))
    written = tuple(tangent.dots[p] for p in function.written if p in tangent.dots)
    body = Block(tuple(operations), (*results, *found))
    return Function(name, (*function.params, *dots.values()), body, (*function.written, *written))


def tangents_of_callees(callees: Sequence[Function]) -> tuple[Function, ...]:
    """The recursive functions, and their tangent functions, with tangents of all floats."""
    found: list[Function] = []
    names = {callee.name for callee in callees}
    for callee in callees:
        if tangent_name(callee.name) in names:  # from an earlier direction
            found.append(callee)
            continue
        copy = fresh(callee)
        dots = {p: dot_of(p) for p in copy.params if is_inexact(p.type)}
        outputs = [v for v in copy.body.yields if is_inexact(v.type)]
        found += [callee, tangent_of(copy, dots, tangent_name(callee.name), outputs, copy.body.yields)]
    return tuple(found)


def tangent_name(name: str) -> str:
    return f"{name}_tangent"


def dot_of(value: Value) -> Value:
    """A new value for a tangent: a number is as wide as can be, an array is like the array."""
    type_: Type = value.type if isinstance(value.type, Array | Stack) else widest(value.type)
    return Value(type_, f"{own_name(value)}_dot" if own_name(value) else "")


class Tangent:
    """Writes a program with its tangents."""

    def __init__(self, function: Function, dots: dict[Value, Value], outputs: Sequence[Value]) -> None:
        sites = points_to(function)
        lists = {s for v in outputs if isinstance(v.type, Stack) for s in sites.get(v, ())}
        self.active: Activity = activity(function, {*dots, *lists}, (*outputs, *function.written), sites)
        self.dots = dict(dots)
        self.builder = Builder()
        self.builder.constants.update(structure_of(function).constants)
        self.signs = expected_signs(function)
        self.problems: list[Problem] = []

    # -- tangents ----------------------------------------------------------------------------------------------------

    def varies(self, value: Value) -> bool:
        """Whether the number, the memory or the list of arrays has a tangent."""
        return self.active.memory(value) if isinstance(value.type, Array | Stack) else value in self.active

    def dot(self, value: Value) -> Value:
        """The tangent, also where it is zero."""
        if value in self.dots:
            return self.dots[value]
        if not isinstance(value.type, Array):
            return self.builder.zero(value.type)
        return self.zeros(value)

    def zeros(self, array: Value) -> Value:
        out, zero = dot_of(array), self.builder.const(0.0)
        if not is_inexact(array.type):  # a list of tuples of integers and floats has such zeros
            zero = self.builder.cast(zero, element_type(array.array))
        self.builder.add(Alloc(out, (), zero, array, span=self.builder.span))
        return out

    def new_dot(self, value: Value) -> Value:
        self.dots[value] = dot_of(value)
        return self.dots[value]

    def start(self, params: Iterable[Value]) -> None:
        """Memory of the caller without a given tangent starts with a tangent of zeros."""
        for param in params:
            if isinstance(param.type, Array) and param not in self.dots and self.varies(param):
                self.dots[param] = self.zeros(param)

    # -- operations --------------------------------------------------------------------------------------------------

    def block(self, block: Block, chosen: Sequence[int]) -> Block:
        """The block with tangents; it also yields the tangents of the chosen values, before the exit condition."""
        with self.builder.block() as operations:
            self.operations(block)
            more = [self.dot(block.yields[k]) for k in chosen]
        return Block(tuple(operations), (*block.yields, *more))

    def operations(self, block: Block) -> None:
        for operation in block.operations:
            self.builder.span = operation.span
            try:
                self.operation(operation)
            except DifferentiationError as error:
                self.problems += error.problems

    def operation(self, operation: Operation) -> None:
        match operation:
            case If():
                self.branch(operation)
                return
            case Loop():
                self.loop(operation)
                return
            case Call():
                self.call(operation)
                return
        self.builder.add(operation)
        match operation:
            case Apply():
                self.apply(operation)
            case Load():
                if operation.out in self.active and self.varies(operation.array):
                    loaded = self.builder.load(self.dot(operation.array), operation.indices, dot_of(operation.out).name)
                    self.dots[operation.out] = self.builder.cast(loaded, widest(loaded.type))
            case Store():
                self.store(operation)
            case Alloc():
                if self.varies(operation.out):
                    fill = None if operation.fill is None else self.dot(operation.fill)
                    self.builder.add(replace(operation, out=self.new_dot(operation.out), fill=fill))
            case Copy():
                self.copy(operation)
            case View() | Transpose() | Reshape() | Part() | Grow():
                if self.varies(operation.out):
                    array = self.dot(operation.array)
                    self.builder.add(replace(operation, out=self.new_dot(operation.out), array=array))
            case NewStack():
                if self.varies(operation.out):
                    self.builder.add(replace(operation, out=self.new_dot(operation.out)))
            case Push():
                if self.varies(operation.stack):
                    stack, value = self.dot(operation.stack), self.dot(operation.value)
                    self.builder.add(replace(operation, stack=stack, value=value))
            case Pop() | Peek():
                if self.varies(operation.stack):
                    stack = self.dot(operation.stack)
                    self.builder.add(replace(operation, out=self.new_dot(operation.out), stack=stack))
            case Library() | Custom():
                self.by_rule(operation)

    def apply(self, operation: Apply) -> None:
        """The sum over the arguments: the derivative by the argument times its tangent."""
        if operation.out not in self.active or not any(a in self.dots for a in operation.args):
            return
        rule = derivative_rule(operation.primitive)
        if rule is None:
            message = f"`{operation.primitive}` has no derivative rule"
            raise DifferentiationError([Problem("SD301", message, operation.span)])
        given = {**dict(zip(rule.parameters, operation.args, strict=True)), "out": operation.out}
        names = names_of(rule, {n: functools.partial(_itself, v) for n, v in given.items()}, self.builder)
        total: Value | None = None
        for name, argument in zip(rule.parameters, operation.args, strict=True):
            if name in rule.refused and argument in self.dots:
                raise DifferentiationError([no_formula(operation, name)])
            if name in rule.partials and argument in self.dots:
                is_least = name in rule.at_least and self.signs.is_root_of_least(operation)
                formula = rule.at_least[name] if is_least else rule.partial(name, is_complex=is_complex(argument.type))
                strong = not is_least and self.signs.is_singular(operation, name)
                amount = times(self.dots[argument], formula, names, self.builder, strong=strong)
                if amount is not None:
                    total = amount if total is None else self.builder.apply("add", total, amount)
            if name in rule.by_conjugate and argument in self.dots and is_complex(argument.type):
                dot = self.builder.apply("conjugate", self.dots[argument])
                amount = times(dot, rule.by_conjugate[name], names, self.builder)
                if amount is not None:
                    total = amount if total is None else self.builder.apply("add", total, amount)
        if total is None:
            return
        total = self.builder.fitted(total, operation.out)
        if operation.out.name and not total.name and total not in self.builder.constants:
            total.name = dot_of(operation.out).name
        self.dots[operation.out] = total

    def store(self, operation: Store) -> None:
        if self.varies(operation.array) and not (operation.adds and operation.value not in self.dots):
            self.builder.add(replace(operation, array=self.dot(operation.array), value=self.dot(operation.value)))

    def copy(self, operation: Copy) -> None:
        if not self.varies(operation.out):
            return
        if self.varies(operation.array):
            array = self.dot(operation.array)
            self.builder.add(replace(operation, out=self.new_dot(operation.out), array=array))
        else:
            self.dots[operation.out] = self.zeros(operation.out)

    # -- control flow ------------------------------------------------------------------------------------------------

    def branch(self, operation: If) -> None:
        chosen = [k for k, out in enumerate(operation.outs) if self.varies(out)]
        then, orelse = self.block(operation.then, chosen), self.block(operation.orelse, chosen)
        outs = (*operation.outs, *(self.new_dot(operation.outs[k]) for k in chosen))
        self.builder.add(replace(operation, then=then, orelse=orelse, outs=outs))

    def loop(self, operation: Loop) -> None:
        pairs = enumerate(zip(operation.params, operation.outs, strict=True))
        chosen = [k for k, (param, out) in pairs if self.varies(param) or self.varies(out)]
        inits = (*operation.inits, *(self.dot(operation.inits[k]) for k in chosen))
        params = (*operation.params, *(self.new_dot(operation.params[k]) for k in chosen))
        test = None if operation.test is None else self.block(operation.test, ())
        body = self.block(operation.body, chosen)
        count = len(operation.params)
        own, stop, more = body.yields[:count], operation.body.yields[count:], body.yields[len(operation.body.yields) :]
        outs = (*operation.outs, *(self.new_dot(operation.outs[k]) for k in chosen))
        body = Block(body.operations, (*own, *more, *stop))
        self.builder.add(replace(operation, params=params, inits=inits, test=test, body=body, outs=outs))

    # -- functions ---------------------------------------------------------------------------------------------------

    def call(self, operation: Call) -> None:
        """Call the tangent function: it takes the tangents of all floats and returns those of the results."""
        if not any(self.varies(v) for v in (*operation.args, *operation.outs)):
            self.builder.add(operation)
            return
        floats = [k for k, a in enumerate(operation.args) if is_inexact(a.type)]
        dots = [self.dot(operation.args[k]) for k in floats]
        outs = [self.new_dot(out) for out in operation.outs if is_inexact(out.type)]
        name, count = tangent_name(operation.function), len(operation.args)
        writes = (*operation.writes, *(count + place for place, k in enumerate(floats) if k in operation.writes))
        call = Call((*operation.outs, *outs), name, (*operation.args, *dots), writes, span=operation.span)
        call = replace(call, effects=operation.effects)
        self.builder.add(call)

    def by_rule(self, operation: Library | Custom) -> None:
        """The tangent of a call with its own derivative function."""
        outs = [v for v in operation.outs if self.varies(v)]
        given = [self.dots.get(a) if self.varies(a) else None for a in operation.args]
        if not outs or all(d is None for d in given):
            for out in outs:
                if isinstance(out.type, Array):
                    self.dots[out] = self.zeros(out)
            return
        rule: Any = operation.rule if isinstance(operation, Custom) else LIBRARY[operation.function]
        if isinstance(operation, Library):
            rule = rule.for_results([self.varies(v) for v in operation.outs])
        found = tangent_values(rule, self.builder, operation.args, operation.outs, given, operation.span)
        checks = isinstance(operation, Custom) and rule.tangent is not None
        for out, dot in zip(operation.outs, found, strict=True):
            if dot is not None and self.varies(out):
                if checks and isinstance(dot.type, Array):
                    require_shape(dot, out, named(rule.tangent), self.builder, operation.span)
                self.dots[out] = dot
            elif isinstance(out.type, Array) and self.varies(out):
                self.dots[out] = self.zeros(out)


def _itself(value: Value) -> Value:
    return value
