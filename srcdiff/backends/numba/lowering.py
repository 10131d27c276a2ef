"""Numba's compiler with another last step before LLVM: vector functions are named, results are made quickly, choices
are instructions without a branch, references to arguments are not counted, lists of numbers are stacks, and recursive
functions look how much of the machine's stack is left."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import ir as numba_ir
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering, PreLowerStripPhis

from srcdiff.backends.numba import blas, growing_lists, llvm_options, stack, threads
from srcdiff.backends.numba.conditional_sums import ConditionalSums
from srcdiff.backends.numba.direct import UnfitError
from srcdiff.backends.numba.direct_lowering import DirectLower
from srcdiff.backends.numba.interrupts import look
from srcdiff.backends.numba.numba_passes import INSTEAD, UNNEEDED
from srcdiff.backends.numba.results import Convention, Wrapper
from srcdiff.backends.numba.short_lengths import Lengths, differ, fixed, headers_of, keep_rolled
from srcdiff.backends.numba.vector_math import are_used, name_vector_functions


def compiler(*, vector_functions: bool) -> type[CompilerBase]:
    """The replacement of Numba's compiler."""
    llvm_options.ensure_set()
    return _VectorCompiler if vector_functions and are_used() else _Compiler


class _Library(JITCodeLibrary):
    """Makes `a if c else b` a `select` instruction before any other transformation.

    Numba writes a branch that stores one of two values. LLVM can convert it to a `select`, but first it merges branches
    on the same condition, such as those of a kink and of its adjoint. Then the sides contain more work, and the loop is
    not vectorised.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        builder = self._codegen._pass_builder()
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
        super()._optimize_functions(ll_module)  # type: ignore[no-untyped-call]


class _Lower(DirectLower):
    def __init__(self, context: Any, library: Any, fndesc: Any, *args: Any, **kwargs: Any) -> None:
        part, environment = threads.PART.get()
        if part == fndesc.qualname:  # of another function: the constants of both are in one place
            fndesc.env_name = environment
        super().__init__(context, library, fndesc, *args, **kwargs)  # type: ignore[no-untyped-call]

    @functools.cached_property
    def call_conv(self) -> Convention:
        return Convention(self.context)  # type: ignore[no-untyped-call]

    def lower_inst(self, inst: Any) -> None:
        look()
        super().lower_inst(inst)  # type: ignore[no-untyped-call]

    @functools.cached_property
    def lengths(self) -> Lengths:
        """The lengths of short axes that the function is compiled for."""
        return getattr(self.func_ir.func_id.func, "lengths", ())

    @functools.cached_property
    def headers(self) -> dict[int, list[int]]:
        return headers_of(self.func_ir.blocks)

    def extract_function_arguments(self) -> list[Any]:
        arguments: list[Any] = super().extract_function_arguments()  # type: ignore[no-untyped-call]
        return fixed(self, arguments, self.lengths) if self.lengths else arguments

    def lower_block(self, block: Any) -> None:
        super().lower_block(block)  # type: ignore[no-untyped-call]
        if self.lengths:
            keep_rolled(self, self.lengths, block, self.builder.block.terminator)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        if name in self.borrowed:  # an object from an earlier iteration is not released either
            with self.not_counting():
                super().storevar(value, name, argidx)
        else:
            super().storevar(value, name, argidx)

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        if inst.target.name in self.borrowed:
            with self.not_counting():
                return super().lower_assign(ty, inst)  # type: ignore[no-untyped-call]
        return super().lower_assign(ty, inst)  # type: ignore[no-untyped-call]

    @functools.cached_property
    def borrowed(self) -> frozenset[str]:
        """Variables for arguments that are assigned nothing else: the caller holds what they refer to until the end.

        Other names for them are such variables, too, and so are their methods, such as `values.append`.
        """
        assigned = [i for block in self.func_ir.blocks.values() for i in block.find_insts(numba_ir.Assign)]
        times = Counter(i.target.name for i in assigned)
        once = [i for i in assigned if times[i.target.name] == 1]
        found = {i.target.name for i in once if isinstance(i.value, numba_ir.Arg)}
        copies = [(i.target.name, i.value.name) for i in once if isinstance(i.value, numba_ir.Var)]
        copies += [(i.target.name, i.value.value.name) for i in once if self.is_method(i)]
        while more := {target for target, source in copies if source in found} - found:
            found |= more
        return frozenset(found)

    def is_method(self, assigned: Any) -> bool:
        is_attribute = isinstance(assigned.value, numba_ir.Expr) and assigned.value.op == "getattr"
        return is_attribute and isinstance(self.typeof(assigned.target.name), types.BoundFunction)  # type: ignore[no-untyped-call]

    @contextlib.contextmanager
    def not_counting(self) -> Iterator[None]:
        self.counts = False
        try:
            yield
        finally:
            self.counts = True

    counts = True
    """Whether references are counted."""

    def incref(self, typ: Any, val: Any) -> None:
        if self.counts:
            super().incref(typ, val)  # type: ignore[no-untyped-call]

    def decref(self, typ: Any, val: Any) -> None:
        if self.counts:
            super().decref(typ, val)  # type: ignore[no-untyped-call]

    def delvar(self, name: str) -> None:
        if name not in self.borrowed:
            super().delvar(name)  # type: ignore[no-untyped-call]

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        """Lists are stacks: a push costs a comparison and a store, a pop a load."""
        kind = getattr(fnty, "this", None)
        if growing_lists.is_stack(kind):
            values = self.loadvar(expr.func.name)  # type: ignore[no-untyped-call]
            if fnty.typing_key == "list.append":
                (value,) = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)  # type: ignore[no-untyped-call]
                return growing_lists.push(self.context, self.builder, kind, values, value)
            if fnty.typing_key == "list.pop" and not signature.args:
                return growing_lists.pop(self.context, self.builder, kind, values)
        return super()._lower_call_normal(fnty, expr, signature)

    def _lower_call_RecursiveCall(self, fnty: Any, expr: Any, signature: Any) -> Any:  # noqa: N802 (Numba's name)
        """Another specialisation, if it is compiled by now, is called as any function.

        Numba calls it by a pointer that it sets later, which code from a file never hears of.
        """
        other = fnty.dispatcher_type.dispatcher.overloads.get(tuple(signature.args))
        if other is None:
            return super()._lower_call_RecursiveCall(fnty, expr, signature)  # type: ignore[no-untyped-call]
        given = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)  # type: ignore[no-untyped-call]
        self.context.add_linking_libs([other.library])
        return self.context.call_internal(self.builder, other.fndesc, signature, given)

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)  # type: ignore[no-untyped-call]
        if getattr(self.func_ir.func_id.func, "starts_recursion", False) and stack.ensure_loaded():
            self.end_endless_recursion()
        elif self.lengths:
            self.compare_lengths()

    def end_endless_recursion(self) -> None:
        """Let the function call another one, which is lowered in its place, and raise what that jumps out for."""
        inside = self.inside()  # LLVM does less for a function that calls `setjmp`
        with stack.entered(self.builder, inside):
            name = self.func_ir.func_id.func_name.rstrip("_")  # it exists if a recursive function has the name
            self.return_exception(RecursionError, (stack.MESSAGE.format(name),))  # type: ignore[no-untyped-call]
        self.continue_in(inside)

    def compare_lengths(self) -> None:
        """Let the function call another one, which is lowered in its place, if the arguments have the lengths."""
        inside = self.inside()  # LLVM does more for a function that does not return early
        arguments = self.call_conv.decode_arguments(self.builder, self.fndesc.argtypes, self.function)  # type: ignore[no-untyped-call]
        with self.builder.if_then(differ(self, arguments, self.lengths), likely=False):
            self.return_exception(UnfitError)  # type: ignore[no-untyped-call]
        self.builder.ret(self.builder.call(inside, self.function.args))
        self.continue_in(inside)

    def inside(self) -> ir.Function:
        """A function for the work, which this one calls."""
        inside = ir.Function(self.module, self.function.ftype, f"{self.function.name}.inside")
        inside.linkage = "internal"
        inside.attributes.add("noinline")
        self.call_conv.decorate_function(inside, self.fndesc.args, self.fndesc.argtypes, noalias=self.fndesc.noalias)  # type: ignore[no-untyped-call]
        return inside

    def continue_in(self, inside: ir.Function) -> None:
        """Lower the statements into this function."""
        self.function = inside
        self.entry_block = inside.append_basic_block("entry")
        self.builder = ir.IRBuilder(self.entry_block)
        self.call_helper = self.call_conv.init_call_helper(self.builder)  # type: ignore[no-untyped-call]

    def pre_lower(self) -> None:
        super().pre_lower()  # type: ignore[no-untyped-call]
        # Numba gives the call that closes a circle of calls a type of its own: each circle has one.
        recursive = any(isinstance(kind, types.RecursiveCall) for kind in self.fndesc.typemap.values())
        if recursive and stack.ensure_loaded():
            stack.look(self.builder)

    def create_cpython_wrapper(self, release_gil: bool = False) -> None:
        """The wrapper that Python calls: as in `CPUContext.create_cpython_wrapper`, with another class."""
        module = self.context.create_module("wrapper")
        type_ = self.context.call_conv.get_function_type(self.fndesc.restype, self.fndesc.argtypes)
        function = ir.Function(module, type_, self.fndesc.llvm_func_name)
        Wrapper(self.context, module, function, self.fndesc, self.env, self.call_helper, release_gil).build()  # type: ignore[no-untyped-call]
        self.library.add_ir_module(module)


class _VectorLower(_Lower):
    def lower_normal_function(self, fndesc: Any) -> None:
        super().lower_normal_function(fndesc)  # type: ignore[no-untyped-call]
        _, _, features = self.context.codegen().magic_tuple()
        name_vector_functions(self.module, features.split(","))


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "srcdiff_lowering"

    def run_pass(self, state: Any) -> bool:
        if state.library is None:
            state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
            state.library.enable_object_caching()  # so that it can be written to a file later
        return bool(super().run_pass(state))  # type: ignore[no-untyped-call]

    @property
    def lowering_class(self) -> type[Lower]:
        return _Lower


@register_pass(mutates_CFG=True, analysis_only=False)
class _VectorLowering(_Lowering):
    _name = "srcdiff_lowering_with_vector_functions"

    @property
    def lowering_class(self) -> type[Lower]:
        return _VectorLower


class _Compiler(CompilerBase):
    """Numba's compiler, with another last step before LLVM."""

    lowering: type[NativeLowering] = _Lowering

    def __init__(self, *args: Any) -> None:
        blas.look_for_scipy()
        super().__init__(*args)  # type: ignore[no-untyped-call]

    def define_pipelines(self) -> list[PassManager]:
        usual = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes = PassManager("nopython")
        for step, description in usual.passes:
            if step is PreLowerStripPhis:
                passes.add_pass(ConditionalSums, "terms of sums that a branch adds to")
            if step not in UNNEEDED:
                passes.add_pass(self.lowering if step is NativeLowering else INSTEAD.get(step, step), description)
        passes.finalize()
        return [passes]


class _VectorCompiler(_Compiler):
    lowering = _VectorLowering
