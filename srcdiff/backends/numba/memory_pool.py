"""Memory of large arrays in compiled code: what one call frees the next one takes, without asking the system for pages.

The C library gives the memory of large arrays back to the system as soon as it is freed, and the next call faults its
pages in anew: that can take longer than all that the call computes. So compiled code asks here for its arrays. A block
that is freed waits for somebody who wants as many bytes, or up to a quarter fewer. At most 64 MB wait, no block of more
than 32 MB does (the C library's own bounds, where it keeps memory), and whoever does not find a block, or frees one too
many, goes to Python's allocator, as Numba does. What is small goes there straight.

The functions are written for LLVM, because threads call them that do not hold Python's lock: a block is in one of the
places of an array, and is taken from it, or put there, by one atomic operation. Sizes beside the places only say where
to look: a block tells its own size. In memory that is

    | ...  | bytes, 8 | address of the whole, 8 | what is handed out
           ^ a multiple of 64

so that elements, which stand 48 bytes behind Numba's own data on the array, start at a multiple of 64, too.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import llvmlite.binding as llvm
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

NEW = "srcdiff.new_memory"
"""The name of the function that compiled code calls: it takes a number of bytes, and gives what Numba counts
references to."""

_PLACES = 32
_SMALL = 1 << 14
_LARGEST = 1 << 25
_MOST = 1 << 26

_TEXT = f"""
@blocks = internal global [{_PLACES} x ptr] zeroinitializer, align 64
@sizes = internal global [{_PLACES} x i64] zeroinitializer, align 64
@held = internal global i64 0
@turn = internal global i64 0
@allocator = internal constant {{ ptr, ptr, ptr, ptr }} {{ ptr @take, ptr null, ptr @give_back, ptr null }}

declare ptr @srcdiff.malloc(i64)
declare void @srcdiff.free(ptr)
declare ptr @srcdiff.small_memory(i64, i32)
declare ptr @srcdiff.large_memory(i64, ptr)

define ptr @new_memory(i64 %size) {{
  %small = icmp ult i64 %size, {_SMALL}
  br i1 %small, label %usual, label %ours
usual:
  %a = tail call ptr @srcdiff.small_memory(i64 %size, i32 32)
  ret ptr %a
ours:
  %b = tail call ptr @srcdiff.large_memory(i64 %size, ptr @allocator)
  ret ptr %b
}}

define internal i64 @size_of(ptr %block) alwaysinline {{
  %where = getelementptr i8, ptr %block, i64 -16
  %size = load i64, ptr %where
  ret i64 %size
}}

define internal void @release(ptr %block) {{
  %where = getelementptr i8, ptr %block, i64 -8
  %whole = load ptr, ptr %where
  call void @srcdiff.free(ptr %whole)
  ret void
}}

define internal ptr @take(i64 %size, ptr %nothing) {{
entry:
  %quarter = lshr i64 %size, 2
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %next, %further ]
  %size_at = getelementptr i64, ptr @sizes, i64 %k
  %said = load atomic i64, ptr %size_at monotonic, align 8
  %more = sub i64 %said, %size
  %fits = icmp ule i64 %more, %quarter  ; too small is a very large number
  br i1 %fits, label %try, label %further
try:
  %place = getelementptr ptr, ptr @blocks, i64 %k
  %block = atomicrmw xchg ptr %place, ptr null acq_rel
  %taken = icmp ne ptr %block, null
  br i1 %taken, label %measure, label %further
measure:
  %is = call i64 @size_of(ptr %block)
  %before = atomicrmw sub ptr @held, i64 %is monotonic
  %enough = icmp uge i64 %is, %size
  br i1 %enough, label %found, label %wrong
found:
  ret ptr %block
wrong:
  call void @release(ptr %block)
  br label %further
further:
  %next = add i64 %k, 1
  %end = icmp eq i64 %next, {_PLACES}
  br i1 %end, label %ask, label %look
ask:
  %whole_size = add i64 %size, 160
  %whole = call ptr @srcdiff.malloc(i64 %whole_size)
  %none = icmp eq ptr %whole, null
  br i1 %none, label %failed, label %fresh
failed:
  ret ptr null
fresh:
  %address = ptrtoint ptr %whole to i64
  %beyond = add i64 %address, 63
  %aligned = and i64 %beyond, -64
  %head = inttoptr i64 %aligned to ptr
  store i64 %size, ptr %head
  %second = getelementptr i8, ptr %head, i64 8
  store ptr %whole, ptr %second
  %new = getelementptr i8, ptr %head, i64 16
  ret ptr %new
}}

define internal void @give_back(ptr %block, ptr %nothing) {{
entry:
  %size = call i64 @size_of(ptr %block)
  %too_large = icmp ugt i64 %size, {_LARGEST}
  br i1 %too_large, label %away, label %keep
away:
  call void @release(ptr %block)
  ret void
keep:
  %added = atomicrmw add ptr @held, i64 %size monotonic
  br label %look
look:
  %k = phi i64 [ 0, %keep ], [ %next, %further ]
  %place = getelementptr ptr, ptr @blocks, i64 %k
  %there = load atomic ptr, ptr %place monotonic, align 8
  %empty = icmp eq ptr %there, null
  br i1 %empty, label %try, label %further
try:
  %put = cmpxchg ptr %place, ptr null, ptr %block acq_rel monotonic
  %done = extractvalue {{ ptr, i1 }} %put, 1
  br i1 %done, label %say, label %further
say:
  %size_at = getelementptr i64, ptr @sizes, i64 %k
  store atomic i64 %size, ptr %size_at monotonic, align 8
  br label %bound
further:
  %next = add i64 %k, 1
  %end = icmp eq i64 %next, {_PLACES}
  br i1 %end, label %replace, label %look
replace:
  %turn = atomicrmw add ptr @turn, i64 1 monotonic
  %r = and i64 %turn, {_PLACES - 1}
  %r_place = getelementptr ptr, ptr @blocks, i64 %r
  %old = atomicrmw xchg ptr %r_place, ptr %block acq_rel
  %r_size_at = getelementptr i64, ptr @sizes, i64 %r
  store atomic i64 %size, ptr %r_size_at monotonic, align 8
  call void @drop(ptr %old)
  br label %bound
bound:
  %tries = phi i64 [ 0, %say ], [ 0, %replace ], [ %tried, %evict ]
  %now = load atomic i64, ptr @held monotonic, align 8
  %over = icmp ugt i64 %now, {_MOST}
  %few = icmp ult i64 %tries, {_PLACES}
  %go = and i1 %over, %few
  br i1 %go, label %evict, label %out
evict:
  %tried = add i64 %tries, 1
  %turn2 = atomicrmw add ptr @turn, i64 1 monotonic
  %e = and i64 %turn2, {_PLACES - 1}
  %e_place = getelementptr ptr, ptr @blocks, i64 %e
  %oldest = atomicrmw xchg ptr %e_place, ptr null acq_rel
  call void @drop(ptr %oldest)
  br label %bound
out:
  ret void
}}

define internal void @drop(ptr %block) {{
  %none = icmp eq ptr %block, null
  br i1 %none, label %out, label %some
some:
  %size = call i64 @size_of(ptr %block)
  %before = atomicrmw sub ptr @held, i64 %size monotonic
  call void @release(ptr %block)
  br label %out
out:
  ret void
}}

define void @release_all() {{
entry:
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %next, %each ]
  %place = getelementptr ptr, ptr @blocks, i64 %k
  %block = atomicrmw xchg ptr %place, ptr null acq_rel
  call void @drop(ptr %block)
  %next = add i64 %k, 1
  %end = icmp eq i64 %next, {_PLACES}
  br i1 %end, label %out, label %each
out:
  ret void
}}

define i64 @held_bytes() {{
  %held = load atomic i64, ptr @held monotonic, align 8
  ret i64 %held
}}
"""


@functools.cache
def ensure_loaded() -> Any:
    """Let compiled code find the function by its name; the code that holds it."""
    helpers = _nrt_python.c_helpers
    get_api = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p))(helpers["get_api"])
    python = ctypes.pythonapi
    addresses = {
        "srcdiff.malloc": ctypes.cast(python.PyMem_RawMalloc, ctypes.c_void_p).value,
        "srcdiff.free": ctypes.cast(python.PyMem_RawFree, ctypes.c_void_p).value,
        "srcdiff.small_memory": helpers["MemInfo_alloc_aligned"],
        "srcdiff.large_memory": get_api()[1],  # NRT_api_functions.allocate_external
    }
    for name, address in addresses.items():
        llvm.add_symbol(name, address)
    module = llvm.parse_assembly(_TEXT)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0)  # in 6 ms, not 29
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    llvm.add_symbol(NEW, engine.get_function_address("new_memory"))
    python.Py_IncRef(ctypes.py_object(engine))  # arrays are freed after the interpreter has ended, too
    return engine


def held_bytes() -> int:
    """How many bytes wait."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(ensure_loaded().get_function_address("held_bytes"))())


def release_all() -> None:
    """Free what waits."""
    ctypes.CFUNCTYPE(None)(ensure_loaded().get_function_address("release_all"))()
