"""A memory pool for large arrays in compiled code: later calls reuse freed blocks without page faults.

The C library returns the memory of large arrays to the system as soon as it is freed, and the next call faults its
pages in again, which can take longer than its computation. So compiled code allocates its arrays here. A freed block is
held for an allocation of the same size, or up to a quarter smaller. If there is no such block, memory comes from
Python's allocator, as in Numba. Small arrays always come from there.

How much is held:

- at most a quarter of the memory that the process may use (`most_held`); the block that was freed first is released
  first;
- a block is released if it was not reused while the pool has handed out sixteen times the held bytes (or 64 MB): so at
  most one in sixteen of the allocated bytes is faulted in again;
- nothing after `release_all`.

On Linux, blocks of 4 MB or more use huge pages if the system has them, which are faulted in within a quarter of the
time. Held blocks of 32 MB or more are marked as free (`MADV_FREE`): their pages remain usable at no cost until the
system or the container is short of memory and reclaims them.

The functions are written in LLVM IR, because threads call them without holding the GIL: a block is in one of the slots
of an array, and one atomic operation takes it or puts it there. Sizes and times beside the slots are only hints: a
block contains its own size. Time is the number of bytes handed out. In memory a block is

    | ...  | bytes, 8 | address of the whole, 8 | the allocated memory
           ^ a multiple of 64

so that elements, which follow 48 bytes of Numba's own data on the array, also start at a multiple of 64.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import re
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba.core.runtime import _nrt_python  # type: ignore[attr-defined]

NEW = "srcdiff.new_memory"
"""The name of the allocation function for compiled code: it takes a number of bytes and returns a reference-counted
object of Numba."""

ELEMENTS = "srcdiff.elements"
"""The name of the function that returns the unaliased address of the elements of such an object."""

LIMIT = "SRCDIFF_HELD_MEMORY"
"""The environment variable that limits the held memory: `2 GB`, `500 MB`, `0`."""

_PLACES = 64
_SMALL = 1 << 14
_HUGE = 1 << 22
"""Blocks of at least this number of bytes use huge pages, as in NumPy."""
_LAZY = 1 << 25
"""From how many bytes on the system may take the pages of blocks that wait."""
_AGE = 4
"""The binary logarithm of the bytes handed out before a block is released, as a multiple of the held bytes."""
_ALWAYS = 1 << 26
"""The least number of bytes in that multiple; the interval, in bytes handed out, between searches for old blocks."""

_TEXT = """
@blocks = internal global [{places} x ptr] zeroinitializer, align 64
@sizes = internal global [{places} x i64] zeroinitializer, align 64
@times = internal global [{places} x i64] zeroinitializer, align 64
@held = internal global i64 0
@time = internal global i64 0
@checked = internal global i64 0
@most = internal global i64 0
@allocator = internal constant {{ ptr, ptr, ptr, ptr }} {{ ptr @take, ptr null, ptr @give_back, ptr null }}

declare ptr @srcdiff.malloc(i64)
declare void @srcdiff.free(ptr)
declare ptr @srcdiff.small_memory(i64, i32)
declare ptr @srcdiff.large_memory(i64, ptr)
declare i32 @srcdiff.advise(ptr, i64, i32)

define ptr @new_memory(i64 %size) {{
  %small = icmp ult i64 %size, {small}
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

define internal void @advise(ptr %block, i64 %size, i32 %advice) {{
entry:
  br i1 {advises}, label %pages, label %out
pages:  ; that are in the block as a whole
  %address = ptrtoint ptr %block to i64
  %beyond = add i64 %address, {within_page}
  %first = and i64 %beyond, -{page}
  %end = add i64 %address, %size
  %last = and i64 %end, -{page}
  %start = inttoptr i64 %first to ptr
  %length = sub i64 %last, %first
  %ignored = call i32 @srcdiff.advise(ptr %start, i64 %length, i32 %advice)
  br label %out
out:
  ret void
}}

define internal ptr @take(i64 %size, ptr %nothing) {{
entry:
  %quarter = lshr i64 %size, 2
  %then = atomicrmw add ptr @time, i64 %size monotonic
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
  %end = icmp eq i64 %next, {places}
  br i1 %end, label %ask, label %look
ask:
  %whole_size = add i64 %size, 160
  %whole = call ptr @srcdiff.malloc(i64 %whole_size)
  %none = icmp eq ptr %whole, null
  br i1 %none, label %again, label %fresh
again:
  call void @release_all()
  %whole_2 = call ptr @srcdiff.malloc(i64 %whole_size)
  %none_2 = icmp eq ptr %whole_2, null
  br i1 %none_2, label %failed, label %fresh
failed:
  ret ptr null
fresh:
  %got = phi ptr [ %whole, %ask ], [ %whole_2, %again ]
  %address = ptrtoint ptr %got to i64
  %beyond = add i64 %address, 63
  %aligned = and i64 %beyond, -64
  %head = inttoptr i64 %aligned to ptr
  store i64 %size, ptr %head
  %second = getelementptr i8, ptr %head, i64 8
  store ptr %got, ptr %second
  %new = getelementptr i8, ptr %head, i64 16
  %pages = icmp uge i64 %size, {huge}
  br i1 %pages, label %advise, label %out
advise:
  call void @advise(ptr %new, i64 %size, i32 {huge_pages})
  br label %out
out:
  ret ptr %new
}}

define internal void @give_back(ptr %block, ptr %nothing) {{
entry:
  %size = call i64 @size_of(ptr %block)
  %most = load atomic i64, ptr @most monotonic, align 8
  %too_large = icmp ugt i64 %size, %most
  br i1 %too_large, label %away, label %measure
away:
  call void @release(ptr %block)
  ret void
measure:
  %large = icmp uge i64 %size, {lazy}
  br i1 %large, label %advise, label %keep
advise:
  call void @advise(ptr %block, i64 %size, i32 {free_lazily})  ; while nobody else has it
  br label %keep
keep:
  %added = atomicrmw add ptr @held, i64 %size monotonic
  %now = load atomic i64, ptr @time monotonic, align 8
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
further:
  %next = add i64 %k, 1
  %end = icmp eq i64 %next, {places}
  br i1 %end, label %replace, label %look
replace:
  %o = call i64 @oldest()
  %o_place = getelementptr ptr, ptr @blocks, i64 %o
  %old = atomicrmw xchg ptr %o_place, ptr %block acq_rel
  call void @drop(ptr %old)
  br label %say
say:
  %at = phi i64 [ %k, %try ], [ %o, %replace ]
  %size_at = getelementptr i64, ptr @sizes, i64 %at
  store atomic i64 %size, ptr %size_at monotonic, align 8
  %time_at = getelementptr i64, ptr @times, i64 %at
  store atomic i64 %now, ptr %time_at monotonic, align 8
  br label %bound
bound:
  %tries = phi i64 [ 0, %say ], [ %tried, %evict ]
  %held = load atomic i64, ptr @held monotonic, align 8
  %over = icmp ugt i64 %held, %most
  %few = icmp ult i64 %tries, {places}
  %go = and i1 %over, %few
  br i1 %go, label %evict, label %aged
evict:
  %tried = add i64 %tries, 1
  %e = call i64 @oldest()
  call void @empty(i64 %e)
  br label %bound
aged:
  %checked = load atomic i64, ptr @checked monotonic, align 8
  %since = sub i64 %now, %checked
  %due = icmp sgt i64 %since, {always}
  br i1 %due, label %check, label %out
check:
  store atomic i64 %now, ptr @checked monotonic, align 8
  call void @release_old(i64 %now)
  br label %out
out:
  ret void
}}

define internal i64 @oldest() {{  ; the place of the block that was freed first
entry:
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %next, %each ]
  %best = phi i64 [ 0, %entry ], [ %better, %each ]
  %least = phi i64 [ -1, %entry ], [ %less, %each ]
  %place = getelementptr ptr, ptr @blocks, i64 %k
  %block = load atomic ptr, ptr %place monotonic, align 8
  %time_at = getelementptr i64, ptr @times, i64 %k
  %said = load atomic i64, ptr %time_at monotonic, align 8
  %some = icmp ne ptr %block, null
  %earlier = icmp ult i64 %said, %least
  %is = and i1 %some, %earlier
  %better = select i1 %is, i64 %k, i64 %best
  %less = select i1 %is, i64 %said, i64 %least
  %next = add i64 %k, 1
  %end = icmp eq i64 %next, {places}
  br i1 %end, label %out, label %each
out:
  ret i64 %better
}}

define internal void @release_old(i64 %now) {{
entry:
  %held = load atomic i64, ptr @held monotonic, align 8
  %few = icmp ult i64 %held, {always}
  %counted = select i1 %few, i64 {always}, i64 %held
  %bound = shl i64 %counted, {age}
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %next, %further ]
  %time_at = getelementptr i64, ptr @times, i64 %k
  %said = load atomic i64, ptr %time_at monotonic, align 8
  %age = sub i64 %now, %said
  %old = icmp sgt i64 %age, %bound
  br i1 %old, label %away, label %further
away:
  call void @empty(i64 %k)
  br label %further
further:
  %next = add i64 %k, 1
  %end = icmp eq i64 %next, {places}
  br i1 %end, label %out, label %each
out:
  ret void
}}

define internal void @empty(i64 %k) {{
  %place = getelementptr ptr, ptr @blocks, i64 %k
  %block = atomicrmw xchg ptr %place, ptr null acq_rel
  call void @drop(ptr %block)
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
  call void @empty(i64 %k)
  %next = add i64 %k, 1
  %end = icmp eq i64 %next, {places}
  br i1 %end, label %out, label %each
out:
  ret void
}}

define i64 @held_bytes() {{
  %held = load atomic i64, ptr @held monotonic, align 8
  ret i64 %held
}}

define void @hold_at_most(i64 %bytes) {{
  store atomic i64 %bytes, ptr @most monotonic, align 8
  ret void
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
    if has_huge_pages():
        addresses["srcdiff.advise"] = ctypes.cast(ctypes.CDLL(None).madvise, ctypes.c_void_p).value
    else:
        addresses["srcdiff.advise"] = addresses["srcdiff.free"]  # LLVM wants an address, which is never called
    for name, address in addresses.items():
        llvm.add_symbol(name, address)
    module = llvm.parse_assembly(_text())
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0)  # in 6 ms, not 29
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(engine.get_function_address("hold_at_most"))(most_held())
    llvm.add_symbol(NEW, engine.get_function_address("new_memory"))
    llvm.add_symbol(ELEMENTS, helpers["MemInfo_data"])
    python.Py_IncRef(ctypes.py_object(engine))  # arrays are freed after the interpreter has ended, too
    return engine


def _text() -> str:
    return _TEXT.format(
        places=_PLACES,
        small=_SMALL,
        huge=_HUGE,
        lazy=_LAZY,
        age=_AGE,
        always=_ALWAYS,
        page=mmap.PAGESIZE,
        within_page=mmap.PAGESIZE - 1,
        advises="true" if has_huge_pages() else "false",
        huge_pages=getattr(mmap, "MADV_HUGEPAGE", 0),
        free_lazily=getattr(mmap, "MADV_FREE", 0),
    )


@functools.cache
def has_huge_pages() -> bool:
    """Whether the system provides huge pages on request: without them, marking held blocks takes too long."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    try:
        return sys.platform == "linux" and hasattr(mmap, "MADV_FREE") and "[never]" not in setting.read_text()
    except OSError:
        return False


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def most_held() -> int:
    """The limit of held bytes: from the environment, or a quarter of the memory that the process may use."""
    said = os.environ.get(LIMIT, "").strip()
    if not said:
        return usable_memory() // 4
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?B|)", said.upper())
    if not found:
        raise ValueError(f"{LIMIT}={said!r} is not an amount of memory: write '2 GB', '500 MB' or 0")
    return int(float(found[1]) * _UNITS[found[2]])


def usable_memory() -> int:
    """The bytes that the machine has, or that its container may use."""
    try:
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not available on Windows
        most = 8 << 30
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            most = min(most, int(Path(file).read_text()))
        except (ValueError, OSError):  # there is no container, or no limit
            continue
    return most


def held_bytes() -> int:
    """How many bytes wait."""
    if not ensure_loaded.cache_info().currsize:
        return 0
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(ensure_loaded().get_function_address("held_bytes"))())


def release_all() -> int:
    """Free all held blocks; return their number of bytes."""
    held = held_bytes()
    if held:
        ctypes.CFUNCTYPE(None)(ensure_loaded().get_function_address("release_all"))()
    return held


def hold_at_most(count: int) -> None:
    """Let so many bytes wait, from the next one that is freed on."""
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(ensure_loaded().get_function_address("hold_at_most"))(count)
