"""Conditional sums: a branch selects the term instead of the sum, so that LLVM recognises the sum and vectorises it.

    if x[i] > 0.0:                          term = x[i] if x[i] > 0.0 else -0.0
        total = total + x[i]                total = total + term

LLVM vectorises the form on the left only with full `fastmath`, or before it has converted the branch to a `select`. The
transformed program is Numba's IR, with types and phi nodes:

    total.2 = total.1 + a                   total.3 = phi(total.1, total.2)

becomes

    term = phi(zero, a)                     total.3 = total.1 + term

Minus zero is the neutral element of every floating-point sum.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from numba.core import ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import mk_unique_var

_ADDS = (operator.add, operator.iadd)
_SUBTRACTS = (operator.sub, operator.isub)


class _Sum(NamedTuple):
    """`start + term` or `start - term` in the program.

    The start is the variable that is there on both sides of the branch: the sum itself may begin from a copy that one
    side makes.
    """

    start: ir.Var
    term: ir.Var
    expression: ir.Expr


@register_pass(mutates_CFG=False, analysis_only=False)
class ConditionalSums(FunctionPass):
    _name = "srcdiff_conditional_sums"

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def run_pass(self, state: Any) -> bool:
        return "reassoc" in state.flags.fastmath.flags and _Rewriting(state).run()


class _Rewriting:
    def __init__(self, state: Any) -> None:
        self.blocks: Mapping[int, ir.Block] = state.func_ir.blocks
        self.typemap, self.calltypes = state.typemap, state.calltypes
        self.definition: dict[str, Any] = {}
        self.uses: Counter[str] = Counter()
        self.assigned_once = True
        for block in self.blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.Assign):
                    self.assigned_once &= statement.target.name not in self.definition
                    self.definition[statement.target.name] = statement.value
                self.uses.update({v.name for v in statement.list_vars()})
        self.zeros: dict[types.Float, ir.Var] = {}

    def run(self) -> bool:
        found = False
        for block in self.blocks.values() if self.assigned_once else ():
            phis = [s for s in block.body if isinstance(s, ir.Assign) and _is_phi(s.value)]
            for phi in phis:
                sums = self.sums(phi)
                if sums is not None:
                    self.rewrite(block, phi, phis[-1], sums)
                    found = True
        if found:
            self.define_zeros()
        return found

    def sums(self, phi: Any) -> list[_Sum | None] | None:
        """For each operand of the phi node, its sum; None for the common start of all sums."""
        kind, values = self.typemap[phi.target.name], phi.value.incoming_values
        if not isinstance(kind, types.Float) or any(not isinstance(v, ir.Var) for v in values):
            return None
        roots = [self.root(v) for v in values]
        options = [self.options(root, kind) for root in roots]
        common = set(options[0]).intersection(*options[1:])
        starts = common.intersection(r.name for r in roots) or common
        if len(starts) != 1:
            return None
        (start,) = starts
        chosen = [o[start] for o in options]
        sums = [(v, s) for v, s in zip(values, chosen, strict=True) if s is not None]
        signs = {s.expression.fn in _ADDS for _, s in sums}
        return chosen if len(signs) == 1 and all(self.is_used_here_only(v) for v, _ in sums) else None

    def options(self, root: ir.Var, kind: types.Float) -> dict[str, _Sum | None]:
        """The possible forms of a value: itself, or a sum that starts from another value."""
        found: dict[str, _Sum | None] = {root.name: None}
        value = self.definition.get(root.name)
        if isinstance(value, ir.Expr) and value.op in ("binop", "inplace_binop"):
            left, right = value.lhs, value.rhs
            if self.typemap[left.name] == self.typemap[right.name] == kind:
                if value.fn in _ADDS:
                    found[self.root(right).name] = _Sum(self.root(right), left, value)
                if value.fn in (*_ADDS, *_SUBTRACTS):
                    found[self.root(left).name] = _Sum(self.root(left), right, value)
        return found

    def root(self, variable: ir.Var) -> ir.Var:
        """The variable that this one is a copy of."""
        while True:
            value = self.definition.get(variable.name)
            if not isinstance(value, ir.Var) or self.typemap[value.name] != self.typemap[variable.name]:
                return variable
            variable = value

    def is_used_here_only(self, variable: ir.Var) -> bool:
        """Whether neither the sum nor its copies are used but by the phi node."""
        while True:
            if self.uses[variable.name] > 2:  # at its definition, and here
                return False
            value = self.definition[variable.name]
            if not isinstance(value, ir.Var):
                return True
            variable = value

    def rewrite(self, block: ir.Block, phi: Any, last: ir.Assign, sums: list[_Sum | None]) -> None:
        sum_ = next(s for s in sums if s is not None)
        location, kind = phi.loc, self.typemap[phi.target.name]
        term = self.variable(block.scope, "term", kind, location)
        terms = ir.Expr.phi(location)
        terms.incoming_blocks.extend(phi.value.incoming_blocks)
        terms.incoming_values.extend(self.zero(kind) if s is None else s.term for s in sums)
        function = operator.add if sum_.expression.fn in _ADDS else operator.sub
        total = ir.Expr.binop(function, sum_.start, term, location)
        self.calltypes[total] = self.calltypes[sum_.expression]
        block.body[block.body.index(phi)] = choice = ir.Assign(terms, term, location)
        after = choice if last is phi else last
        block.body.insert(block.body.index(after) + 1, ir.Assign(total, phi.target, location))

    def zero(self, kind: types.Float) -> ir.Var:
        if kind not in self.zeros:
            first = self.blocks[min(self.blocks)]
            self.zeros[kind] = self.variable(first.scope, "zero", kind, first.loc)
        return self.zeros[kind]

    def define_zeros(self) -> None:
        first = self.blocks[min(self.blocks)]
        for variable in self.zeros.values():
            first.body.insert(0, ir.Assign(ir.Const(-0.0, first.loc), variable, first.loc))

    def variable(self, scope: Any, name: str, kind: types.Float, location: Any) -> ir.Var:
        made = scope.define(mk_unique_var(f"${name}"), location)
        self.typemap[made.name] = kind
        return made  # type: ignore[no-any-return]


def _is_phi(value: Any) -> bool:
    return isinstance(value, ir.Expr) and value.op == "phi"
