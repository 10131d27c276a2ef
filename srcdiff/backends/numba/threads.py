"""Loops over `prange`, run by Numba's threads without its parallel compiler.

Numba's own parallel compiler takes several times as long for the same loop. Here the loop is a function that is
compiled as a part of the code around it (`backends/python/outlined_loops.py`), and threads call it for blocks of
iterations. They are those of Numba's threading layer, which `numba.set_num_threads` and `NUMBA_THREADING_LAYER` choose.

If a loop is running in threads already, for whatever Python thread, the next one runs in the thread that asks for it:
nothing is nested, and there are never more threads than Numba has. It is the same in a process that was forked after
OpenMP has started threads, which cannot start any. Matrix products of a loop in threads use one thread each: OpenBLAS
would start its own for each of them. An exception is raised again when all threads are done; that of the
earliest block, as it would be raised without threads.
"""

from __future__ import annotations

import ctypes
import functools
import os
from contextvars import ContextVar
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from srcdiff.backends.numba import blas
from srcdiff.backends.python.outlined_loops import CALL
from srcdiff.ir.primitives import WORK_OF_BLOCK

RUN = "numba_parallel_for"
STATE_OF_THREAD = "PyGILState_GetThisThreadState"
_BUSY = "srcdiff.threads_are_busy"
_LIMITING = "srcdiff.blas_limiting"
_FREE, _TAKEN, _NEVER = 0, 1, 2

_busy = ctypes.c_int64(_FREE)


# -- running -----------------------------------------------------------------------------------------------------------


@functools.cache
def ensure_started() -> None:
    """Start Numba's threads, and tell compiled code where they are."""
    from numba.np.ufunc import parallel

    parallel._launch_threads()
    llvm.add_symbol(_BUSY, ctypes.addressof(_busy))
    llvm.add_symbol(_LIMITING, ctypes.addressof(blas.LIMITING))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    from numba.np.ufunc import parallel

    _busy.value = _NEVER if parallel.threading_layer() == "omp" else _FREE


@functools.cache
def functions() -> dict[str, Any]:
    """The names by which outlined loops are called, and the replacements of functions in the text."""
    from numba.core import types
    from numba.extending import intrinsic

    ensure_started()

    @intrinsic
    def thread_blocks(typing_context: Any, count: Any, work: Any, private: Any) -> Any:
        return types.int64(types.int64, types.int64, types.int64), _blocks

    @intrinsic
    def iterations_of(typing_context: Any, block: Any, blocks: Any, count: Any) -> Any:
        return types.UniTuple(types.int64, 2)(types.int64, types.int64, types.int64), _iterations

    @intrinsic
    def in_threads(typing_context: Any, body: Any, count: Any, given: Any) -> Any:
        signature = types.none(body, types.int64, given)
        return signature, lambda *parts: _Launch(body.dispatcher, given, *parts).write()

    @intrinsic
    def atomic_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        return types.none(array, index, value), _atomic_add

    found = {"atomic_add": atomic_add, "thread_blocks": thread_blocks, "iterations_of": iterations_of}
    return {CALL: in_threads, **found}


def _atomic_add(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """`array[index] += value` by one instruction, or as often as another thread has written meanwhile."""
    from numba.core import cgutils, types
    from numba.np import arrayobj

    kind, index, number = signature.args
    several = isinstance(index, types.BaseTuple)
    kinds = list(index) if several else [index]
    places = cgutils.unpack_tuple(builder, args[1]) if several else [args[1]]
    places = [context.cast(builder, place, k, types.intp) for place, k in zip(places, kinds, strict=True)]
    array = arrayobj.make_array(kind)(context, builder, value=args[0])
    element = cgutils.get_item_pointer(context, builder, kind, array, places, wraparound=True)
    builder.atomic_rmw("fadd", element, context.cast(builder, args[2], number, kind.dtype), "monotonic")
    return context.get_dummy_value()


def _number_of_threads(builder: Any) -> Any:
    from numba.core import cgutils

    type_ = ir.FunctionType(ir.IntType(64), [])
    return builder.call(cgutils.get_or_insert_function(builder.module, type_, "get_num_threads"), [])


def _smaller(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.icmp_signed("<", x, y), x, y)


def _larger(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.icmp_signed(">", x, y), x, y)


def _blocks(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """`max(1, min(get_num_threads(), count, work // (WORK_OF_BLOCK + 4 * private)))`, without negative work."""
    count, work, private = args
    least = builder.add(builder.mul(private, private.type(4)), private.type(WORK_OF_BLOCK))
    enough = builder.sdiv(work, least)
    blocks = _smaller(builder, _number_of_threads(builder), _smaller(builder, count, enough))
    return _larger(builder, blocks, blocks.type(1))


def _iterations(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """`max(block * count // blocks, 0), (block + 1) * count // blocks`; a negative count has no iterations."""
    block, blocks, count = args
    count = _larger(builder, count, count.type(0))
    start = builder.sdiv(builder.mul(block, count), blocks)
    stop = builder.sdiv(builder.mul(builder.add(block, block.type(1)), count), blocks)
    return context.make_tuple(builder, signature.return_type, (_larger(builder, start, start.type(0)), stop))


PART: ContextVar[tuple[str, str]] = ContextVar("part", default=("", ""))
"""A function that is compiled as a part of another one, and the name of what holds the constants of that one."""


def _compiled_into(context: Any, dispatcher: Any, types: tuple[Any, ...]) -> Any:
    """The function as a part of the code that calls it: LLVM looks at it once, and Python never calls it."""
    from numba.core import compiler

    of = dispatcher._compiler
    flags: Any = compiler.Flags()
    of.targetdescr.options.parse_as_flags(flags, of.targetoptions)
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
    contexts = of.targetdescr.typing_context, of.targetdescr.target_context
    how = {"library": context.active_code_library, "pipeline_class": of.pipeline_class}
    token = PART.set((of.py_func.__qualname__, context.fndesc.env_name))
    try:
        return compiler.compile_extra(*contexts, of.py_func, types, None, flags, of.locals, **how)
    finally:
        PART.reset(token)


class _Launch:
    """Writes the call of a function for ranges of blocks, by several threads."""

    def __init__(self, body: Any, given: Any, context: Any, builder: Any, signature: Any, args: Any) -> None:
        from numba.core import cgutils, types

        self.tools: Any = cgutils
        self.context, self.builder = context, builder
        self.count = args[1]
        self.types = (types.int64, types.int64, *given.types)
        self.given = [builder.extract_value(args[2], k) for k in range(len(given.types))]
        self.compiled = _compiled_into(context, body, self.types)
        self.long, self.bytes = ir.IntType(64), cgutils.voidptr_t
        # the lock of the other fields; the first block of a call that raised, its status and its exception
        failed = [self.long, self.long, ir.IntType(32), self.bytes]
        self.shared = ir.LiteralStructType([*failed, *(v.type for v in self.given)])

    def write(self) -> Any:
        builder, tools, long = self.builder, self.tools, self.long
        shared = tools.alloca_once(builder, self.shared)
        for k, value in enumerate([long(0), self.count, ir.IntType(32)(0), ir.Constant(self.bytes, None), *self.given]):
            builder.store(value, tools.gep_inbounds(builder, shared, 0, k))
        entry = self.entry()
        start = tools.alloca_once(builder, self.bytes)
        sizes, steps = tools.alloca_once(builder, long), tools.alloca_once(builder, long, size=2)
        builder.store(ir.Constant(self.bytes, None), start)
        builder.store(self.count, sizes)
        builder.store(long(1), steps)
        builder.store(long(0), tools.gep(builder, steps, 1))
        several = builder.and_(builder.icmp_signed(">", self.count, long(1)), self.may_launch())
        taken = tools.alloca_once_value(builder, tools.false_bit)
        busy = self.known(_BUSY)
        with builder.if_then(several):
            swapped = builder.cmpxchg(busy, long(_FREE), long(_TAKEN), "acq_rel", "monotonic")
            builder.store(builder.extract_value(swapped, 1), taken)
        with builder.if_else(builder.load(taken)) as (threads, here):
            with threads:
                self.run(entry, start, sizes, steps, shared)
                builder.store_atomic(long(_FREE), busy, "release", 8)
            with here:
                arguments = [start, sizes, steps, builder.bitcast(shared, self.bytes)]
                builder.call(entry, arguments)
        self.raise_first(shared)
        return self.context.get_dummy_value()

    def may_launch(self) -> Any:
        """Whether this is a thread of Python, and none that runs a part of somebody else's parallel loop.

        The layer `workqueue` ends the process if such a thread starts a loop.
        """
        builder, tools = self.builder, self.tools
        of_thread = tools.get_or_insert_function(builder.module, ir.FunctionType(self.bytes, []), STATE_OF_THREAD)
        return tools.is_not_null(builder, builder.call(of_thread, []))

    def known(self, name: str) -> Any:
        """A number of ours in the memory of the process."""
        module = self.builder.module
        found = module.globals.get(name)
        return found if found is not None else ir.GlobalVariable(module, self.long, name)

    def run(self, entry: Any, start: Any, sizes: Any, steps: Any, shared: Any) -> None:
        """Numba's threads run the entry, each for some blocks; other Python threads run meanwhile."""
        builder, tools, long = self.builder, self.tools, self.long
        type_ = ir.FunctionType(ir.VoidType(), [self.bytes] * 5 + [long] * 3)
        parallel_for = tools.get_or_insert_function(builder.module, type_, RUN)
        python = self.context.get_python_api(builder)
        lock = python.gil_ensure()
        state = python.save_thread()
        given = [builder.bitcast(x, self.bytes) for x in (entry, start, sizes, steps, shared)]
        before = self.limit_blas(ir.IntType(32)(1))
        builder.call(parallel_for, [*given, long(1), long(1), _number_of_threads(builder)])
        self.limit_blas(builder.load(before))
        python.restore_thread(state)
        python.gil_release(lock)

    def limit_blas(self, number: Any) -> Any:
        """Let BLAS use this number of threads, while ours run; where the number before is."""
        builder, tools = self.builder, self.tools
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)]).as_pointer()
        before = tools.alloca_once_value(builder, number)
        address = builder.load(self.known(_LIMITING))
        with builder.if_then(builder.icmp_signed("!=", address, self.long(0))):
            builder.store(builder.call(builder.inttoptr(address, kind), [number]), before)
        return before

    def entry(self) -> Any:
        """The function that a thread calls: `(char **start, int64 *size, int64 *steps, shared *)`."""
        module, tools, long = self.builder.module, self.tools, self.long
        kinds = [self.bytes.as_pointer(), long.as_pointer(), long.as_pointer(), self.bytes]
        name = module.get_unique_name(f"{self.compiled.fndesc.llvm_func_name}.entry")
        entry = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
        entry.linkage = "internal"
        entry.attributes.add("noinline")  # or LLVM would have all of the loop twice
        builder = ir.IRBuilder(entry.append_basic_block("entry"))
        first = builder.ptrtoint(builder.load(entry.args[0]), long)
        last = builder.add(first, builder.load(entry.args[1]))
        shared = builder.bitcast(entry.args[3], self.shared.as_pointer())
        given = [builder.load(tools.gep_inbounds(builder, shared, 0, 4 + k)) for k in range(len(self.given))]
        function = self.context.declare_function(module, self.compiled.fndesc)
        status, _ = self.context.call_conv.call_function(
            builder, function, self.compiled.fndesc.restype, self.types, [first, last, *given]
        )
        with builder.if_then(status.is_error, likely=False):
            self.note(builder, shared, first, status)
        builder.ret_void()
        return entry

    def note(self, builder: Any, shared: Any, first: Any, status: Any) -> None:
        """Keep the exception of the earliest block."""
        tools, long = self.tools, self.long
        lock, block, code, exception = (tools.gep_inbounds(builder, shared, 0, k) for k in range(4))
        wait = builder.append_basic_block("wait")
        enter = builder.append_basic_block("enter")
        builder.branch(wait)
        builder.position_at_end(wait)
        swapped = builder.cmpxchg(lock, long(0), long(1), "acq_rel", "monotonic")
        builder.cbranch(builder.extract_value(swapped, 1), enter, wait)
        builder.position_at_end(enter)
        with builder.if_then(builder.icmp_signed("<", first, builder.load(block))):
            builder.store(first, block)
            builder.store(status.code, code)
            builder.store(builder.bitcast(status.excinfoptr, self.bytes), exception)
        builder.store_atomic(long(0), lock, "release", 8)

    def raise_first(self, shared: Any) -> None:
        """Raise what the earliest block has raised."""
        from numba.core.callconv import excinfo_ptr_t

        builder, tools = self.builder, self.tools
        code, exception = (builder.load(tools.gep_inbounds(builder, shared, 0, k)) for k in (2, 3))
        convention = self.context.call_conv
        status = convention._get_return_status(builder, code, builder.bitcast(exception, excinfo_ptr_t))
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
