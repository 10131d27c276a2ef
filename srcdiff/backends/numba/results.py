"""Conversion of results of compiled code to Python objects, for arrays in at most half of Numba's time.

Numba unpickles the class of the array by its name, in Python, and wraps the memory in its own object that the array
refers to. Here the class is a constant beside the code, and small results are copied into an array made by NumPy's C
API. Memory with other references (another result, or an argument) is not copied, so shared memory remains shared.
"""

from __future__ import annotations

import copy
import ctypes
import functools
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.callconv import CPUCallConv
from numba.core.callwrapper import PyCallWrapper
from numba.core.pythonapi import PythonAPI
from numba.core.runtime.nrtdynmod import _meminfo_struct_type

_SMALL = 4096
"""Fewer bytes than this are copied."""

_NEW = "srcdiff.PyArray_NewFromDescr"
_PLACE_OF_NEW = 94
"""Of `PyArray_NewFromDescr` in the table of NumPy's functions: the same since the first version."""

_COLUMNS_FIRST = 2
"""NumPy's flag for arrays in Fortran's order."""

_DATA = object.__basicsize__
"""The offset of the data pointer in an array object: directly after the object header."""


@functools.cache
def ensure_known() -> bool:
    """Whether compiled code can have NumPy make arrays; it finds the function by its name from now on."""
    example = np.zeros(1)
    if ctypes.c_void_p.from_address(id(example) + _DATA).value != example.ctypes.data:
        return False
    try:
        from numpy._core._multiarray_umath import _ARRAY_API  # type: ignore[import-not-found]
    except ImportError:
        return False
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    functions = ctypes.cast(pointer(_ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    llvm.add_symbol(_NEW, functions[_PLACE_OF_NEW])
    return True


class Wrapper(PyCallWrapper):
    """The wrapper that Python calls: it unboxes the arguments, calls the compiled function and boxes the result."""

    def build_wrapper(self, api: Any, builder: Any, closure: Any, args: Any, kws: Any) -> None:
        super().build_wrapper(_Api(self.context, builder), builder, closure, args, kws)  # type: ignore[no-untyped-call]


class Convention(CPUCallConv):
    """How compiled code raises exceptions with numbers in them: as Numba does, but all references are dropped."""

    def emit_unwrap_dynamic_exception_fn(self, *args: Any) -> Any:
        context = copy.copy(self.context)
        context.get_python_api = lambda builder: _OfExceptions(context, builder)  # type: ignore[no-untyped-call]
        return CPUCallConv(context).emit_unwrap_dynamic_exception_fn(*args)


class _OfExceptions(PythonAPI):
    def tuple_pack(self, items: Any) -> Any:
        """A tuple, which has the only references to its items."""
        packed = super().tuple_pack(items)  # type: ignore[no-untyped-call]
        for item in items:
            self.decref(item)  # type: ignore[no-untyped-call]
        return packed


class _Api(PythonAPI):
    """Numba's way to make Python's objects, but for arrays."""

    def get_env_manager(self, *args: Any) -> Any:
        self.constants = super().get_env_manager(*args)  # type: ignore[no-untyped-call]
        return self.constants

    def build_dynamic_excinfo_struct(self, struct_gv: Any, exc_args: Any) -> Any:
        """The parts of an exception; Numba never frees them."""
        made = super().build_dynamic_excinfo_struct(struct_gv, exc_args)  # type: ignore[no-untyped-call]
        for part in (struct_gv, exc_args):
            self.decref(part)  # type: ignore[no-untyped-call]
        return made

    def nrt_adapt_ndarray_to_python(self, kind: Any, value: Any, dtype: Any) -> Any:
        class_ = self.constants.read_const(self.constants.add_const(kind.box_type))
        if not (ensure_known() and kind.layout in "CF" and kind.mutable and kind.box_type is np.ndarray):
            return self._wrapped(kind, class_, value, dtype)
        builder = self.builder
        array = self.context.make_array(kind)(self.context, builder, value=value)
        size = builder.mul(array.nitems, array.itemsize)
        small = builder.icmp_unsigned("<", size, size.type(_SMALL))
        result = cgutils.alloca_once(builder, self.pyobj)
        with builder.if_else(builder.and_(small, self._nobody_else_has(array))) as (copy, wrap):
            with copy:
                builder.store(self._copied(kind, class_, array, dtype), result)
            with wrap:
                builder.store(self._wrapped(kind, class_, value, dtype), result)
        return builder.load(result)

    def _nobody_else_has(self, array: Any) -> Any:
        """Whether the reference of the result is the only one, to memory that is Numba's own."""
        builder = self.builder
        alone = cgutils.alloca_once_value(builder, cgutils.false_bit)
        with builder.if_then(cgutils.is_not_null(builder, array.meminfo)):
            memory = builder.bitcast(array.meminfo, _meminfo_struct_type.as_pointer())
            count, destructor = (builder.load(cgutils.gep(builder, memory, 0, k)) for k in range(2))
            own = cgutils.is_null(builder, destructor)
            builder.store(builder.and_(own, builder.icmp_unsigned("==", count, count.type(1))), alone)
        return builder.load(alone)

    def _copied(self, kind: Any, class_: Any, array: Any, dtype: Any) -> Any:
        builder, number = self.builder, ir.IntType(32)
        nothing = ir.Constant(self.voidptr, None)
        pointers = [self.voidptr] * 3
        type_ = ir.FunctionType(self.pyobj, [self.pyobj, self.pyobj, number, *pointers, number, self.pyobj])
        new = cgutils.get_or_insert_function(builder.module, type_, _NEW)
        shape = builder.bitcast(cgutils.alloca_once_value(builder, array.shape), self.voidptr)
        order = number(_COLUMNS_FIRST if kind.layout == "F" else 0)
        self.incref(dtype)  # type: ignore[no-untyped-call]  # the function takes it
        sizes = (number(kind.ndim), shape, nothing)
        result = builder.call(new, [class_, dtype, *sizes, nothing, order, ir.Constant(self.pyobj, None)])
        with builder.if_then(cgutils.is_not_null(builder, result), likely=True):
            data = builder.load(cgutils.pointer_add(builder, result, _DATA), typ=self.voidptr)
            cgutils.raw_memcpy(builder, data, array.data, array.nitems, array.itemsize)
        return result

    def _wrapped(self, kind: Any, class_: Any, value: Any, dtype: Any) -> Any:
        builder, number = self.builder, ir.IntType(32)
        type_ = ir.FunctionType(self.pyobj, [self.voidptr, self.pyobj, number, number, self.pyobj])
        wrap = cgutils.get_or_insert_function(builder.module, type_, "NRT_adapt_ndarray_to_python_acqref")
        array = builder.bitcast(cgutils.alloca_once_value(builder, value), self.voidptr)
        return builder.call(wrap, [array, class_, number(kind.ndim), number(int(kind.mutable)), dtype])
