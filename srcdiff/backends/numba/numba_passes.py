"""The passes of Numba's compiler that generated code needs, with faster versions of some.

Generated code has no closures, no `with`, nothing to unroll and no array expressions, so Numba's passes for these are
left out. Others end with a liveness analysis that only the last pass needs. Numba also rewrites the whole program for
each variable that is assigned twice; here, only the blocks that mention it are rewritten.
"""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from typing import Any

from numba.core import ir, ssa, transforms, typed_passes, types, untyped_passes
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler_machinery import register_pass
from numba.core.ir_utils import build_definitions
from numba.core.rewrites.registry import rewrite_registry

UNNEEDED = (
    typed_passes.AnnotateTypes,  # which only `inspect_types` needs, and keeps Numba's whole program for
    typed_passes.NopythonRewrites,
    untyped_passes.InlineClosureLikes,
    untyped_passes.LiteralPropagationSubPipelinePass,
    untyped_passes.LiteralUnroll,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.WithLifting,
)


@register_pass(mutates_CFG=False, analysis_only=False)
class SingleAssignments(untyped_passes.ReconstructSSA):
    """Every variable is assigned once."""

    _name = "srcdiff_single_assignments"

    def run_pass(self, state: Any) -> bool:
        state.func_ir.blocks = single_assignments(state.func_ir.blocks)
        self._patch_locals(state)  # type: ignore[no-untyped-call]
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class WithoutPhis(typed_passes.PreLowerStripPhis):
    """Values are assigned where they come from, instead of chosen where they arrive."""

    _name = "srcdiff_without_phis"

    def run_pass(self, state: Any) -> bool:
        state.func_ir = self._strip_phi_nodes(state.func_ir)  # type: ignore[no-untyped-call]
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class CanonicalBlocks(untyped_passes.IRProcessing):
    """Blocks in Numba's canonical form, without an analysis of liveness."""

    _name = "srcdiff_canonical_blocks"

    def run_pass(self, state: Any) -> bool:
        state.func_ir.blocks = transforms.canonicalize_cfg(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class Rewrites(untyped_passes.GenericRewrites):
    """Numba's rewrites, each as often as it matches, without an analysis of liveness."""

    _name = "srcdiff_rewrites"

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        for kind in rewrite_registry.rewrites["before-inference"]:
            rewrite = kind(state)
            for label in list(blocks):
                while rewrite.match(state.func_ir, blocks[label], state.typemap, state.calltypes):
                    blocks[label] = rewrite.apply()
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class Inference(typed_passes.NopythonTypeInference):
    """Numba's type inference, which looks up each operator for the same types of numbers once."""

    _name = "srcdiff_type_inference"

    def run_pass(self, state: Any) -> bool:
        context = state.typingctx
        known: dict[Any, Any] = {}
        before = vars(context).get("resolve_function_type")
        plain = context.resolve_function_type

        def resolve(function: Any, args: Any, kws: Any) -> Any:
            if kws or not _is_operator(function) or not all(isinstance(a, types.Number | types.Boolean) for a in args):
                return plain(function, args, kws)
            key = function, tuple(args)
            found = known.get(key)
            if found is None:
                found = known[key] = plain(function, args, kws)
            return found

        context.resolve_function_type = resolve
        try:
            return bool(super().run_pass(state))  # type: ignore[no-untyped-call]
        finally:
            if before is None:
                del context.resolve_function_type
            else:
                context.resolve_function_type = before


def _is_operator(function: Any) -> bool:
    return isinstance(function, types.Function) and getattr(function.typing_key, "__module__", "") == "_operator"


INSTEAD = {
    untyped_passes.IRProcessing: CanonicalBlocks,
    untyped_passes.GenericRewrites: Rewrites,
    untyped_passes.ReconstructSSA: SingleAssignments,
    typed_passes.NopythonTypeInference: Inference,
    typed_passes.PreLowerStripPhis: WithoutPhis,
}


def single_assignments(blocks: dict[int, Any]) -> dict[int, Any]:
    """As `numba.core.ssa.reconstruct_ssa` has it (Choi, Cytron and Ferrante 1991)."""
    tools: Any = ssa
    graph = compute_cfg_from_blocks(blocks)
    growing = _growing(blocks)
    names = [name for name in tools._find_defs_violators(blocks, graph) if name not in growing]
    frontiers = tools._iterated_domfronts(graph)
    known, blocks, mentioned = tools._CacheListVars(), dict(blocks), _mentioned(blocks, names)
    for name in names:
        touched = {label: blocks[label] for label in mentioned[name]}
        touched, defined = tools._fresh_vars(touched, name)
        states = {
            "scope": tools._get_scope(touched),
            "varname": name,
            "defmap": defined,
            "phimap": defaultdict(list),
            "cfg": graph,
            "phi_locations": tools._compute_phi_locations(frontiers, defined),
        }
        blocks |= tools._run_block_rewrite(touched, states, tools._FixSSAVars(known))
        for label, chosen in states["phimap"].items():
            blocks[label] = copy(blocks[label])
            blocks[label].body = chosen + blocks[label].body
    return blocks


def _growing(blocks: dict[int, Any]) -> set[str]:
    """Buffers that a larger one replaces when they are full.

    They remain one variable. If every iteration chose between the buffer and a larger one, it would count a reference
    to the buffer, and then count it down again.
    """
    assigned = [s for block in blocks.values() for s in block.find_insts(ir.Assign)]
    known = {s.target.name: s.value for s in assigned}
    found: set[str] = set()
    for statement in assigned:
        call = statement.value
        call = known.get(call.name) if isinstance(call, ir.Var) else call
        if isinstance(call, ir.Expr) and call.op == "call":
            function = known.get(call.func.name)
            if isinstance(function, ir.Global | ir.FreeVar) and function.name == "grown":
                found.add(statement.target.name)
    return found


def _mentioned(blocks: dict[int, Any], names: Any) -> dict[str, dict[int, None]]:
    """The blocks that mention variables, in their order."""
    found: dict[str, dict[int, None]] = {name: {} for name in names}
    for label, block in blocks.items():
        for statement in block.body:
            for variable in statement.list_vars():
                if variable.name in found:
                    found[variable.name][label] = None
    return found
