"""Lists of numbers and arrays in compiled code, as stacks that only grow: Numba's own lists do more, and take longer.

    values.append(x)          if size == allocated: allocate twice as much
                              data[size] = x; size += 1
    x = values.pop()          size -= 1; x = data[size]

Numba's list shrinks when values are popped, clears their memory, and checks whether it is empty. Generated code pops
what it has pushed. A list owns a reference to each array in it; who pops an array owns that reference.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from llvmlite import ir
from numba.core import cgutils, types
from numba.cpython.listobj import ListInstance

_FIRST = 64
"""How many elements more a list has memory for, at least, when it grows."""


def is_stack(kind: Any) -> TypeGuard[types.List]:
    """Whether a type is that of a list of numbers or arrays that compiled code has to itself."""
    elements = types.Number | types.Boolean | types.Array
    return isinstance(kind, types.List) and not kind.reflected and isinstance(kind.dtype, elements)


def push(context: Any, builder: Any, kind: types.List, values: Any, value: Any) -> Any:
    instance = ListInstance(context, builder, kind, values)
    size = instance.size
    with builder.if_then(builder.icmp_signed("==", size, instance._payload.allocated), likely=False):
        _grow(context, builder, instance, size)
    if context.enable_nrt:
        context.nrt.incref(builder, kind.dtype, value)
    builder.store(instance._datamodel.as_data(builder, value), instance._gep(size))
    instance.size = builder.add(size, size.type(1))
    return context.get_dummy_value()


def pop(context: Any, builder: Any, kind: types.List, values: Any) -> Any:
    instance = ListInstance(context, builder, kind, values)
    last = builder.sub(instance.size, instance.size.type(1))
    value = instance.getitem(last)
    instance.size = last
    return value


def _grow(context: Any, builder: Any, instance: Any, size: ir.Value) -> None:
    """Twice as much memory, as `ListInstance.resize` takes it; what is in it stays."""
    allocated = builder.add(builder.shl(size, size.type(1)), size.type(_FIRST))
    payload = context.get_abi_sizeof(context.get_data_type(types.ListPayload(instance._ty)))
    head, item = size.type(payload - instance._itemsize), size.type(instance._itemsize)
    length = builder.add(builder.mul(allocated, item), head)
    pointer = context.nrt.meminfo_varsize_realloc_unchecked(builder, instance._list.meminfo, size=length)
    cgutils.guard_memory_error(context, builder, pointer, "cannot resize list")
    instance._payload.allocated = allocated
