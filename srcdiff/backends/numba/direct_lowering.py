"""Elements and shapes of arrays, and loops over ranges, in the fewest instructions.

For `x[i, j]`, Numba puts all that it knows of `x` into memory of the function, and takes from there what it needs:
some fifty instructions, which LLVM then makes ten of. For `for i in range(n)` there are a hundred. Most of what
generated code does is this, so that writing the ten instructions at once halves what LLVM is given. They are the same
that LLVM comes to, negative indices included.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core import ir as numba_ir
from numba.core.ir_utils import find_const, guard
from numba.core.lowering import Lower


@dataclass(frozen=True, slots=True)
class Counting:
    """A loop over a range while it runs: where its next value is, how many are left, and the step."""

    next: Any
    left: Any
    step: Any


class DirectLower(Lower):
    """Numba's lowering, but for elements, shapes and ranges."""

    def pre_block(self, block: Any) -> None:
        self.fields.clear()
        super().pre_block(block)  # type: ignore[no-untyped-call]

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        self.fields.pop(name, None)
        super().storevar(value, name, argidx)  # type: ignore[no-untyped-call]

    @functools.cached_property
    def fields(self) -> dict[str, dict[Any, Any]]:
        """Of arrays in variables, the data, shapes and strides that the block has looked up."""
        return {}

    def field(self, name: str, *place: Any) -> Any:
        """A part of the array in a variable: its `"data"`, or `"shape", 0`."""
        known = self.fields.setdefault(name, {})
        if place not in known:
            position = self.context.data_model_manager[self.typeof(name)].get_field_position(place[0])  # type: ignore[no-untyped-call]
            indices = (position, *place[1:])
            if name in self._blk_local_varmap or name not in self.varmap:
                known[place] = self.builder.extract_value(self.loadvar(name), indices)  # type: ignore[no-untyped-call]
            else:
                known[place] = self.builder.load(cgutils.gep_inbounds(self.builder, self.varmap[name], 0, *indices))
        return known[place]

    # -- arrays ------------------------------------------------------------------------------------------------------

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        pointer = self.element(value.name, index.name)
        if pointer is None:
            return super().lower_getitem(resty, expr, value, index, signature)  # type: ignore[no-untyped-call]
        dtype = self.typeof(value.name).dtype  # type: ignore[no-untyped-call]
        return self.context.cast(self.builder, self.context.unpack_value(self.builder, dtype, pointer), dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        pointer = self.element(target_var.name, index_var.name)
        kind = self.typeof(value_var.name)  # type: ignore[no-untyped-call]
        if pointer is None or not isinstance(kind, types.Number | types.Boolean):
            return super().lower_setitem(target_var, index_var, value_var, signature)  # type: ignore[no-untyped-call]
        dtype = self.typeof(target_var.name).dtype  # type: ignore[no-untyped-call]
        value = self.loadvar(value_var.name)  # type: ignore[no-untyped-call]
        for to in (signature.args[2], dtype):
            value, kind = self.context.cast(self.builder, value, kind, to), to
        return self.context.pack_value(self.builder, dtype, value, pointer)

    def element(self, array: str, index: str) -> Any:
        """The address of an element that integers select; None if it is not this that an array is indexed by."""
        kind, selected = self.typeof(array), self.typeof(index)  # type: ignore[no-untyped-call]
        parts: tuple[Any, ...] = tuple(selected) if isinstance(selected, types.BaseTuple) else (selected,)  # type: ignore[arg-type]
        if type(kind) is not types.Array or not kind.aligned or len(parts) != kind.ndim or not parts:
            return None
        if self.context.enable_boundscheck or not isinstance(kind.dtype, types.Number | types.Boolean):
            return None
        if not all(isinstance(p, types.Integer) for p in parts):
            return None
        value = self.loadvar(index)  # type: ignore[no-untyped-call]
        is_tuple = isinstance(selected, types.BaseTuple)
        values = [self.builder.extract_value(value, k) for k in range(len(parts))] if is_tuple else [value]
        indices = [self.from_front(array, k, p, v) for k, (p, v) in enumerate(zip(parts, values, strict=True))]
        data = self.field(array, "data")
        if kind.layout not in "CF":
            offsets = [self.builder.mul(self.field(array, "strides", k), i) for k, i in enumerate(indices)]
            return cgutils.pointer_add(self.builder, data, functools.reduce(self.builder.add, offsets))
        return self.builder.gep(data, [self.offset(array, indices, first=kind.layout == "C")])

    def from_front(self, array: str, axis: int, kind: Any, value: Any) -> Any:
        """An index that counts from the front; a negative one counts from the end."""
        index = self.context.cast(self.builder, value, kind, types.intp if kind.signed else types.uintp)
        if not kind.signed or (isinstance(index, ir.Constant) and index.constant >= 0):
            return index
        length, is_negative = self.field(array, "shape", axis), self.builder.icmp_signed("<", index, index.type(0))
        return self.builder.select(is_negative, self.builder.add(index, length), index)

    def offset(self, array: str, indices: Sequence[Any], *, first: bool) -> Any:
        """How many elements an element is from the start, if the `first` axis, or the last, has the widest steps."""
        axes = range(len(indices))
        step, total = None, None
        for axis in reversed(axes) if first else axes:
            part = indices[axis] if step is None else self.builder.mul(indices[axis], step)
            total = part if total is None else self.builder.add(part, total)
            if axis != (0 if first else axes[-1]):
                length = self.field(array, "shape", axis)
                step = length if step is None else self.builder.mul(length, step)
        return total

    def constants(self, variables: Sequence[Any]) -> list[Any]:
        """The constants that variables are; nothing if one of them is none."""
        found = [guard(find_const, self.func_ir, v) for v in variables]
        return [] if None in found else found

    def transposed(self, name: str, axes: Sequence[int], kind: Any) -> Any:
        """The array with its axes in another order: Numba compiles texts for wrong ones, which takes three seconds."""
        result = self.loadvar(name)  # type: ignore[no-untyped-call]
        for field in ("shape", "strides"):
            position = self.context.data_model_manager[kind].get_field_position(field)
            values = [self.builder.extract_value(result, (position, axis)) for axis in axes]
            for k, value in enumerate(values):
                result = self.builder.insert_value(result, value, (position, k))
        self.incref(kind, result)  # type: ignore[no-untyped-call]
        return result

    # -- ranges ------------------------------------------------------------------------------------------------------

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        if expr.op == "getattr" and expr.attr == "shape" and type(self.typeof(expr.value.name)) is types.Array:  # type: ignore[no-untyped-call]
            return self.field(expr.value.name, "shape")
        if expr.op == "iternext" and expr.value.name in self.ranges:
            return self.next_of(self.counting[self.ranges[expr.value.name]], resty)
        if expr.op in ("pair_first", "pair_second") and isinstance(resty, types.Number | types.Boolean):
            return self.builder.extract_value(self.loadvar(expr.value.name), int(expr.op == "pair_second"))  # type: ignore[no-untyped-call]
        return super().lower_expr(resty, expr)  # type: ignore[no-untyped-call]

    def lower_inst(self, inst: Any) -> None:
        if isinstance(inst, numba_ir.Del) and inst.value in self.ranges:
            return
        if isinstance(inst, numba_ir.Assign) and inst.target.name in self.ranges:
            if isinstance(inst.value, numba_ir.Expr):
                self.counting[inst.target.name] = self.start(inst.value)
            return
        super().lower_inst(inst)  # type: ignore[no-untyped-call]

    def _alloca_var(self, name: str, fetype: Any) -> None:
        if name not in self.ranges:
            super()._alloca_var(name, fetype)  # type: ignore[no-untyped-call]

    @functools.cached_property
    def counting(self) -> dict[str, Counting]:
        return {}

    @functools.cached_property
    def bounds(self) -> dict[int, tuple[Any, Any, Any]]:
        """Of ranges, by which value they are: start, stop and step."""
        return {}

    @functools.cached_property
    def ranges(self) -> dict[str, str]:
        """Variables for the state of loops over ranges, with the variable that it had first.

        These are assigned once, and used behind that for nothing but the next value.
        """
        found: dict[str, tuple[str, int]] = {}
        unfit: set[str] = set()
        for label, block in sorted(self.func_ir.blocks.items()):
            for inst in block.body:
                if isinstance(inst, numba_ir.Del):
                    continue
                target = inst.target.name if isinstance(inst, numba_ir.Assign) else None
                if target in found:
                    unfit.add(found[target][0])  # assigned twice
                source = self.state_before(inst)
                if target is not None and source == target:
                    found[target] = target, label
                elif target is not None and source in found:
                    found[target] = found[source]
                used = [v.name for v in inst.list_vars() if v.name != target]
                is_next = getattr(getattr(inst, "value", None), "op", None) == "iternext"
                unfit.update(found[v][0] for v in used if v in found and not is_next and v != source)
        return {name: first for name, (first, _) in found.items() if first not in unfit}

    def state_before(self, inst: Any) -> str | None:
        """The variable that an assignment has the state of a loop from; its own one, if it starts the loop."""
        if not isinstance(inst, numba_ir.Assign):
            return None
        if isinstance(inst.value, numba_ir.Var):
            return str(inst.value.name)
        value: Any = inst.value
        is_start = isinstance(value, numba_ir.Expr) and value.op == "getiter"
        return str(inst.target.name) if is_start and self.is_range(value.value.name) else None

    def is_range(self, name: str) -> bool:
        kind = self.typeof(name)  # type: ignore[no-untyped-call]
        return isinstance(kind, types.RangeType) and kind.dtype == types.int64

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        if getattr(fnty, "typing_key", None) == "array.transpose" and (axes := self.constants(expr.args)):
            return self.transposed(expr.func.name, axes, signature.return_type)
        if getattr(fnty, "typing_key", None) is not range or expr.kws or expr.vararg:
            return super()._lower_call_normal(fnty, expr, signature)  # type: ignore[no-untyped-call]
        given = self.fold_call_args(fnty, signature, expr.args, None, ())  # type: ignore[no-untyped-call]
        kind = given[0].type
        bounds = (kind(0), given[0], kind(1)) if len(given) == 1 else (*given, kind(1))[:3]
        value = cgutils.make_anonymous_struct(self.builder, bounds, self.context.get_value_type(signature.return_type))
        self.bounds[id(value)] = bounds
        return value

    def start(self, expr: Any) -> Counting:
        """Start to count through a range."""
        builder, value = self.builder, self.loadvar(expr.value.name)  # type: ignore[no-untyped-call]
        start, stop, step = self.bounds.get(id(value)) or [builder.extract_value(value, k) for k in range(3)]
        by_one = step.constant if isinstance(step, ir.Constant) else None
        if by_one not in (1, -1):
            state = self.context.get_function("getiter", self.fndesc.calltypes[expr])(builder, (value,))
            return Counting(builder.extract_value(state, 0), builder.extract_value(state, 3), step)
        none, length = start.type(0), builder.sub(stop, start)
        is_up = builder.icmp_signed(">", length, none)
        count = builder.select(is_up, length, none) if by_one == 1 else builder.select(is_up, none, builder.neg(length))
        next_, left = (cgutils.alloca_once(builder, start.type) for _ in range(2))
        builder.store(start, next_)
        builder.store(count, left)
        return Counting(next_, left, step)

    def next_of(self, state: Counting, kind: Any) -> Any:
        """The next value, and whether there is one: behind the last, nobody asks for the value."""
        builder = self.builder
        value, left = builder.load(state.next), builder.load(state.left)
        builder.store(builder.add(value, state.step), state.next)
        builder.store(builder.sub(left, left.type(1), flags=["nsw"]), state.left)
        is_valid = builder.icmp_signed(">", left, left.type(0))
        return cgutils.make_anonymous_struct(builder, (value, is_valid), self.context.get_value_type(kind))
