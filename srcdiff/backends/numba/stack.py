"""Makes unbounded recursion in compiled code raise `RecursionError` instead of overflowing the stack.

A recursive function checks its position on the stack. Threads have stacks of different sizes, and querying the system
for their ends is slow. So compiled code keeps a table of pages that are known to be on the stack of a thread, far
enough from its end:

    page = stack pointer >> 12
    if pages[page & 1023] != page: look_at_stack(stack pointer)

The function queries the system once for each thread, stores the answer in thread-local memory (`pthread_setspecific`),
and enters the page into the table if enough space is left. When a thread ends, the table is cleared: the next thread
may get the same memory for a shorter stack.

If there is not enough space, it leaves all recursive calls at once by `longjmp`:

    def function_asked_for(...):                  the function that Python calls: it is not recursive
        if setjmp() != 0: raise RecursionError
        return function_asked_for.inside(...)

Raising an exception would work as well, but then every call must check whether its callee has failed, which makes calls
of a small function half as slow again. As after other exceptions in compiled code, the references of the abandoned
frames are not released.

The functions are written in LLVM IR, because threads call them without holding the GIL. Compiled code finds them by
name, so it can be cached in files.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils

MESSAGE = (
    "maximum recursion depth exceeded in `{}`: the stack of this thread is full "
    "(set its size with `threading.stack_size`, or with `ulimit -s` for the main thread)"
)

ENTER, _LEAVE, _SETJMP = "srcdiff.enter_recursion", "srcdiff.leave_recursion", "srcdiff._setjmp"
_LOOK = "srcdiff.look_at_stack"
_PAGES = "srcdiff.stack_pages"

_PAGE_BITS = 12
"""Ends of stacks are multiples of 4096 on all systems: a page belongs to one stack."""
_COUNT = 1024

_LEAST_RESERVE, _MOST_RESERVE = 1 << 16, 1 << 21
"""A part in 32 of the stack is left for what recursive functions call, and for signals: at least 64 kB. At most 2 MB,
more than the gap of 1 MB that Linux keeps between an unlimited stack and other memory."""
_MOST = 1 << 30
"""The part of an unlimited stack that is used, so that unbounded recursion does not exhaust the memory."""
_ASSUMED = 1 << 18
"""The assumed stack size if the system does not answer."""

# `ask` writes the two ends of the stack; it returns zero if the system does not provide them.
_LINUX = """
declare i64 @srcdiff.pthread_self()
declare i32 @srcdiff.pthread_getattr_np(i64, ptr)
declare i32 @srcdiff.pthread_attr_getstack(ptr, ptr, ptr)
declare i32 @srcdiff.pthread_attr_destroy(ptr)

define internal i32 @ask(ptr %low, ptr %high) {
  %attributes = alloca [256 x i8], align 16
  %size_at = alloca i64
  %thread = call i64 @srcdiff.pthread_self()
  %failed = call i32 @srcdiff.pthread_getattr_np(i64 %thread, ptr %attributes)
  %answered = icmp eq i32 %failed, 0
  br i1 %answered, label %told, label %nothing
told:
  %a = call i32 @srcdiff.pthread_attr_getstack(ptr %attributes, ptr %low, ptr %size_at)
  %b = call i32 @srcdiff.pthread_attr_destroy(ptr %attributes)
  %lowest = load i64, ptr %low
  %size = load i64, ptr %size_at
  %highest = add i64 %lowest, %size
  store i64 %highest, ptr %high
  ret i32 1
nothing:
  ret i32 0
}
"""

_MACOS = """
declare i64 @srcdiff.pthread_self()
declare i64 @srcdiff.pthread_get_stackaddr_np(i64)
declare i64 @srcdiff.pthread_get_stacksize_np(i64)

define internal i32 @ask(ptr %low, ptr %high) {
  %thread = call i64 @srcdiff.pthread_self()
  %highest = call i64 @srcdiff.pthread_get_stackaddr_np(i64 %thread)
  %size = call i64 @srcdiff.pthread_get_stacksize_np(i64 %thread)
  %lowest = sub i64 %highest, %size
  store i64 %lowest, ptr %low
  store i64 %highest, ptr %high
  ret i32 1
}
"""

_TEXT = f"""
@pages = global [{_COUNT} x i64] zeroinitializer, align 64
@limit_key = global i64 0
@entry_key = global i64 0

declare ptr @srcdiff.pthread_getspecific(i64)
declare i32 @srcdiff.pthread_setspecific(i64, ptr)
declare void @srcdiff._longjmp(ptr, i32)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; The lowest address that recursive functions may use: the start of a page, or zero if the system does not tell.
define internal i64 @limit() {{
  %low_at = alloca i64
  %high_at = alloca i64
  %answered = call i32 @ask(ptr %low_at, ptr %high_at)
  %told = icmp ne i32 %answered, 0
  br i1 %told, label %known, label %unknown
known:
  %low = load i64, ptr %low_at
  %high = load i64, ptr %high_at
  %whole = sub i64 %high, %low
  %size = call i64 @llvm.umin.i64(i64 %whole, i64 {_MOST})
  %part = lshr i64 %size, 5
  %not_less = call i64 @llvm.umax.i64(i64 %part, i64 {_LEAST_RESERVE})
  %reserve = call i64 @llvm.umin.i64(i64 %not_less, i64 {_MOST_RESERVE})
  %lowest = sub i64 %high, %size
  %end = add i64 %lowest, %reserve
  %beyond = add i64 %end, {(1 << _PAGE_BITS) - 1}
  %limit = and i64 %beyond, {-(1 << _PAGE_BITS)}
  ret i64 %limit
unknown:
  ret i64 0
}}

define internal void @keep(i64 %limit) {{
  %key = load i64, ptr @limit_key
  %value = inttoptr i64 %limit to ptr
  %done = call i32 @srcdiff.pthread_setspecific(i64 %key, ptr %value)
  ret void
}}

; Gives what was there before.
define ptr @enter(ptr %entry) {{
  %key = load i64, ptr @entry_key
  %previous = call ptr @srcdiff.pthread_getspecific(i64 %key)
  %done = call i32 @srcdiff.pthread_setspecific(i64 %key, ptr %entry)
  ret ptr %previous
}}

define void @leave(ptr %previous) {{
  %key = load i64, ptr @entry_key
  %done = call i32 @srcdiff.pthread_setspecific(i64 %key, ptr %previous)
  ret void
}}

define preserve_mostcc void @look(i64 %address) {{
entry:
  %key = load i64, ptr @limit_key
  %value = call ptr @srcdiff.pthread_getspecific(i64 %key)
  %kept = ptrtoint ptr %value to i64
  %new = icmp eq i64 %kept, 0
  br i1 %new, label %first, label %judge
first:
  %told = call i64 @limit()
  %silent = icmp eq i64 %told, 0
  %guess = sub i64 %address, {_ASSUMED}
  %found = select i1 %silent, i64 %guess, i64 %told
  call void @keep(i64 %found)
  br label %judge
judge:
  %limit = phi i64 [ %kept, %entry ], [ %found, %first ]
  %enough = icmp uge i64 %address, %limit
  br i1 %enough, label %fine, label %below
below:  ; another stack, of a library that has its own, or the end of this one
  %distance = sub i64 %limit, %address
  %elsewhere = icmp ugt i64 %distance, {2 * _MOST_RESERVE}
  br i1 %elsewhere, label %unknown, label %again
again:  ; the limit may have been raised
  %now = call i64 @limit()
  %raised = icmp ne i64 %now, 0
  %above = icmp uge i64 %address, %now
  %more = and i1 %raised, %above
  br i1 %more, label %larger, label %full
larger:
  call void @keep(i64 %now)
  br label %fine
fine:
  %page = lshr i64 %address, {_PAGE_BITS}
  %slot = and i64 %page, {_COUNT - 1}
  %at = getelementptr i64, ptr @pages, i64 %slot
  store atomic i64 %page, ptr %at monotonic, align 8
  br label %unknown
unknown:
  ret void
full:
  %entry_key = load i64, ptr @entry_key
  %outermost = call ptr @srcdiff.pthread_getspecific(i64 %entry_key)
  call void @srcdiff._longjmp(ptr %outermost, i32 1)
  unreachable
}}

; Called when a thread ends.
define void @forget(ptr %limit) {{
  call void @llvm.memset.p0.i64(ptr @pages, i8 0, i64 {8 * _COUNT}, i1 false)
  ret void
}}
"""

_SYSTEMS: Mapping[str, str] = {"linux": _LINUX, "darwin": _MACOS}
_PROCESSORS = ("x86_64", "aarch64", "arm64")
"""The processors for which LLVM has calls that preserve all registers, so that the check needs no stack space."""
_JUMP_BUFFER = ir.ArrayType(ir.IntType(64), 64)
"""Larger than any `jmp_buf`."""


def is_supported() -> bool:
    """Whether compiled code can look at the stack: elsewhere, endless recursion ends the process."""
    return sys.platform in _SYSTEMS and platform.machine() in _PROCESSORS


@functools.cache
def ensure_loaded() -> bool:
    """Let compiled code find the functions and the table by their names, if it can look at the stack."""
    if not is_supported():
        return False
    library = ctypes.CDLL(None)
    module = llvm.parse_assembly(_SYSTEMS[sys.platform] + _TEXT)
    for function in module.functions:
        if function.is_declaration and function.name.startswith("srcdiff."):
            _add_symbol(function.name, library)
    _add_symbol(_SETJMP, library)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    forget = engine.get_function_address("forget")
    for name, at_end in (("limit_key", forget), ("entry_key", 0)):
        if library.pthread_key_create(*map(ctypes.c_void_p, (engine.get_global_value_address(name), at_end))):
            return False  # there are no more keys
    os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(forget))  # the threads of the parent are gone
    for symbol, name in {ENTER: "enter", _LEAVE: "leave", _LOOK: "look"}.items():
        llvm.add_symbol(symbol, engine.get_function_address(name))
    llvm.add_symbol(_PAGES, engine.get_global_value_address("pages"))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))  # threads end after the interpreter has ended, too
    return True


def _add_symbol(name: str, library: Any) -> None:
    """Let compiled code find a function of the C library."""
    llvm.add_symbol(name, ctypes.cast(library[name.removeprefix("srcdiff.")], ctypes.c_void_p).value)


def look(builder: Any) -> None:
    """At the start of a recursive function: go on only if there is enough of the stack left."""
    module, word = builder.module, ir.IntType(64)
    address = builder.ptrtoint(builder.call(_function(module, "llvm.stacksave", cgutils.voidptr_t), []), word)
    page = builder.lshr(address, word(_PAGE_BITS))
    pages = module.globals.get(_PAGES) or ir.GlobalVariable(module, ir.ArrayType(word, _COUNT), _PAGES)
    slot = builder.gep(pages, [word(0), builder.and_(page, word(_COUNT - 1))], inbounds=True)
    known = builder.load_atomic(slot, ordering="monotonic", align=8)
    with builder.if_then(builder.icmp_unsigned("!=", page, known), likely=False):
        function = _function(module, _LOOK, ir.VoidType(), word, attributes=("cold", "nounwind"))
        function.calling_convention = _LEAVES_REGISTERS
        builder.call(function, [address], cconv=_LEAVES_REGISTERS)


_LEAVES_REGISTERS = "preserve_mostcc"


@contextlib.contextmanager
def entered(builder: Any, inside: ir.Function) -> Iterator[None]:
    """Lets the builder write a function that does what the one inside does; the caller, what it does if it recurses too
    deeply."""
    module, pointer = builder.module, cgutils.voidptr_t
    leave = _function(module, _LEAVE, ir.VoidType(), pointer)
    setjmp = _function(module, _SETJMP, ir.IntType(32), pointer, attributes=("returns_twice", "nounwind"))
    entry = builder.bitcast(builder.alloca(_JUMP_BUFFER), pointer)
    previous = builder.call(_function(module, ENTER, pointer, pointer), [entry])
    jumped = builder.call(setjmp, [entry])
    with builder.if_then(builder.icmp_unsigned("!=", jumped, jumped.type(0)), likely=False):
        builder.call(leave, [previous])
        yield
    status = builder.call(inside, builder.function.args)
    builder.call(leave, [previous])
    builder.ret(status)


def _function(module: ir.Module, name: str, result: Any, *kinds: Any, attributes: Sequence[str] = ()) -> ir.Function:
    function = cgutils.get_or_insert_function(module, ir.FunctionType(result, kinds), name)
    function.attributes.update(attributes)
    return function
