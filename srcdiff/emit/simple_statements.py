"""Statements without blocks: stores, new arrays, stacks of kept values, calls of libraries, exceptions and output."""

from __future__ import annotations

from srcdiff.emit import formatting
from srcdiff.emit.expressions import IN_PLACE, Expressions, kind_of
from srcdiff.emit.head import printer
from srcdiff.emit.stack_groups import Group
from srcdiff.ir.nodes import (
    STACK_START,
    Alloc,
    Apply,
    Call,
    Const,
    Enlarge,
    Formatted,
    Library,
    NewStack,
    Pop,
    Print,
    Push,
    Raise,
    Store,
    Value,
)
from srcdiff.ir.primitives import BROUGHT_ALONG
from srcdiff.ir.types import Array, Scalar, Stack
from srcdiff.library.blas_lapack import LIBRARY


class SimpleStatements(Expressions):
    """Writes statements that consist of one line, or of a few."""

    def assign(self, out: Value, text: str) -> None:
        self.line(f"{self.names[out]} = {text}")

    def store(self, operation: Store) -> None:
        if operation.atomic:
            at = self.indices(operation.indices)
            at = at if len(operation.indices) == 1 else f"({at})"
            array, value = self.names_of(operation.array), self.expression(operation.value)
            text = self.spelling.atomic_add.format(array=array, index=at, value=value)
            name = text.partition("(")[0]
            if name in BROUGHT_ALONG:
                self.text.support.add(name)
            self.line(text)
            return
        place = f"{self.names_of(operation.array)}[{self.indices(operation.indices)}]"
        inner = self.layout.inlined.get(operation.value)
        if not operation.adds:
            if isinstance(inner, Apply) and inner.primitive in IN_PLACE and self.expression(inner.args[0]) == place:
                sign = IN_PLACE[self.turned(inner)[0]]
                self.line(f"{place} {sign} {self.expression(inner.args[1])}")
            else:
                self.line(f"{place} = {self.expression(operation.value)}")
            return
        sign = "-=" if self.drop_sign(operation.value) else "+="
        self.line(f"{place} {sign} {self.expression(operation.value)}")

    def alloc(self, operation: Alloc) -> str:
        dtype = operation.out.array.dtype
        sizes = [self.expression(s) for s in operation.shape]
        shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
        if operation.place:
            return self.spelling.thread_array.format(place=operation.place, shape=shape, dtype=kind_of(dtype))
        fill = self.layout.inlined.get(operation.fill) if operation.fill is not None else None
        known = fill.value if isinstance(fill, Const) else None
        if operation.fill is None:
            maker, rest = "empty", ""
        elif known is not None and known == 0:
            maker, rest = "zeros", ""
        elif known is not None and known == 1:
            maker, rest = "ones", ""
        else:
            maker, rest = "full", f", {self.expression(operation.fill)}"
        if operation.like is not None:
            return f"{self.arrays}.{maker}_like({self.expression(operation.like)}{rest})"
        kind = "" if dtype == "float64" else f", np.{kind_of(dtype)}"
        if maker == "full" and not kind:
            kind = ", np.float64"
        return f"{self.arrays}.{maker}({shape}{rest}{kind})"

    def fit(self, operation: Alloc, buffer: Value) -> None:
        fitting = "as_long" if operation.grows else "fitting"
        self.text.support.add(fitting)
        if operation.like is not None:
            shape = f"{self.expression(operation.like)}.shape"
        else:
            sizes = [self.expression(s) for s in operation.shape]
            shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
        self.assign(operation.out, f"{fitting}({self.expression(buffer)}, {shape})")
        if operation.fill is not None:
            self.line(f"{self.names[operation.out]}[...] = {self.expression(operation.fill)}")

    def stack(self, operation: NewStack | Push | Pop) -> None:
        """Stacks of arrays, and stacks that functions share, are lists. Other stacks are arrays that grow."""
        owner = operation.out if isinstance(operation, NewStack) else operation.stack
        assert isinstance(owner.type, Stack)
        element, name = owner.type.element, self.names[owner]
        kind = kind_of(element.dtype)
        if isinstance(element, Array) or owner in self.shared:
            match operation:
                case NewStack():
                    self.line(f"{name} = [{_bottom(element, is_shared=owner in self.shared)}]")
                case Push():
                    self.line(f"{name}.append({self.expression(operation.value)})")
                case Pop():
                    self.assign(operation.out, f"{name}.pop()")
            return
        group, top = self.groups[owner], self.top(owner)
        match operation:
            case NewStack():
                fresh = f"np.empty({STACK_START}{'' if kind == 'float64' else f', np.{kind}'})"
                self.line(f"{name} = {fresh if operation.workspace is None else self.expression(operation.workspace)}")
                if operation is group.made[0]:
                    self.line(f"{top} = 0")
            case Push():
                if group.comes_first(operation):
                    self.grow_stacks(group, top)
                self.line(f"{name}[{top}] = {self.expression(operation.value)}")
                if group.comes_last(operation):
                    self.line(f"{top} += 1")
            case Pop():
                if group.comes_first(operation):
                    self.line(f"{top} -= 1")
                if operation.out not in self.layout.inlined:
                    self.assign(operation.out, f"{name}[{top}]")

    def grow_stacks(self, group: Group, top: str) -> None:
        """Enlarge full stacks. The test is inline, because a call in every iteration would count references."""
        self.text.support.add("grown")
        names = [self.names[made.out] for made in group.made]
        self.line(f"if {top} == {names[0]}.shape[0]:")
        for name in names:
            self.line(f"    {name} = grown({name}, {top})")

    def library(self, operation: Library) -> None:
        outs = ", ".join(self.names[v] for v in operation.outs)
        args = [self.expression(a) for a in operation.args]
        if operation.function.startswith("device."):  # a method of the object that creates the arrays
            self.line(f"{outs} = {self.arrays}.{operation.function.removeprefix('device.')}({', '.join(args)})")
            return
        if support := LIBRARY[operation.function].support:
            self.text.support.add(support)
        if self.arrays != "np":
            text = self.on_host(operation, args)
        else:
            text = self.spelled(operation, args)
        self.line(f"{outs} = {text}" if outs else text)

    def spelled(self, operation: Library, args: list[str]) -> str:
        row = LIBRARY[operation.function]
        return row.spelling.format(*args, call=self.named(row.call) if row.call is not None else "")

    def on_host(self, operation: Library, args: list[str]) -> str:
        """A product is computed on the device. NumPy computes everything else, from copies on the host."""
        if operation.function in ("matrix_matrix", "matrix_vector", "vector_vector"):
            return f"{self.arrays}.matmul({', '.join(args)})"
        if operation.function == "vector_matrix":
            return f"{self.arrays}.matmul({', '.join(reversed(args))})"
        names = [f"a{k}" for k in range(len(args))]
        text = self.spelled(operation, names)
        return f"{self.arrays}.on_host(lambda {', '.join(names)}: {text}, {', '.join(args)})"

    def enlarge(self, operation: Enlarge) -> None:
        value = self.expression(operation.value)
        array, index = self.names[operation.array], self.expression(operation.index)
        self.line(self.spelling.atomic_max.format(array=array, index=index, value=value))
        if operation.capacity is not None:
            self.line(f"if {value} > {self.expression(operation.capacity)}:")
            self.line("    return")

    def launch(self, operation: Call) -> str:
        """How many threads run a kernel."""
        if operation.blocks_of_threads is None:
            return ""
        shape = "alone" if operation.alone else f"shape({self.expression(operation.blocks_of_threads)})"
        return f"[{self.arrays}.{shape}]"

    def raise_(self, operation: Raise) -> None:
        if operation.errors is not None:
            self.line(f"{self.names[operation.errors]}[0] = {operation.code}")
            self.line("return")
            return
        name = self.named(operation.exception)
        if not operation.parts:
            self.line(f"raise {name}")
        elif not any(isinstance(p, Formatted) for p in operation.parts):
            self.line(f"raise {name}({', '.join(self.part(p, plain=True) for p in operation.parts)})")
        else:  # Numba cannot format floats, but it can pass them to the class
            maker = self.named(formatting.formatted(operation.exception))
            layout = tuple(p.template if isinstance(p, Formatted) else None for p in operation.parts)
            given = [self.part(p) for p in operation.parts for p in (p.values if isinstance(p, Formatted) else (p,))]
            first = repr(layout[0] if len(layout) == 1 else layout)
            self.line(f"raise {maker}({', '.join([first, *given])})")

    def print(self, operation: Print) -> None:
        if not any(isinstance(p, Formatted) for p in operation.parts):
            self.line(f"print({', '.join(self.part(p) for p in operation.parts)})")
            return
        (text,) = operation.parts
        name = self.named(printer(operation))
        self.line(f"{name}({', '.join([repr(text.template), *(self.part(v) for v in text.values)])})")


def _bottom(element: Scalar | Array, *, is_shared: bool) -> str:
    """The first element of a new list. It is never popped, and tells the compiler the type of the elements.

    Functions that share a list of arrays may append arrays of any layout. A reversed array has the type of all layouts.
    """
    if isinstance(element, Array):
        shape = "0" if element.rank == 1 else f"({', '.join('0' * element.rank)})"
        return f"np.empty({shape}, np.{kind_of(element.dtype)}){'[::-1]' if is_shared else ''}"
    known = {"float64": "0.0", "complex128": "0j", "int64": "0", "bool": "False"}
    return known.get(element.dtype, f"np.{element.dtype}(0.0)")
