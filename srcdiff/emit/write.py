"""Writes a function of the IR as Python text."""

from __future__ import annotations

from collections.abc import Sequence

from srcdiff.emit.expressions import IN_PLACE, Text
from srcdiff.emit.head import Objects, name_objects
from srcdiff.emit.naming import what_grows
from srcdiff.emit.simple_statements import SimpleStatements
from srcdiff.emit.spelling import NUMPY, Spelling
from srcdiff.ir.nodes import (
    Alloc,
    Apply,
    Barrier,
    Block,
    BlockSum,
    Call,
    Comment,
    Const,
    Coordinate,
    Copy,
    Custom,
    Dim,
    Enlarge,
    Function,
    Grow,
    If,
    Library,
    Load,
    Loop,
    NewAxis,
    NewStack,
    Operation,
    Part,
    Peek,
    Pop,
    Print,
    Push,
    Raise,
    Reshape,
    Store,
    Transpose,
    Value,
    View,
)


def write_function(
    function: Function,
    *,
    parameters: Sequence[str | Value],
    unpack: Sequence[tuple[Value, str]] = (),
    result: str | None = None,
    doc: str = "",
    reserved: Sequence[str] = (),
    spelling: Spelling = NUMPY,
    on_host: bool = True,
    in_thread: bool = False,
    objects: Objects | None = None,
) -> Text:
    """Write a function with these parameters. `unpack` are its first assignments, `result` is a template of its result.

    With `on_host` the host creates the arrays, and with `in_thread` a GPU thread runs the function. `objects` are the
    objects that the function may use, by their names.
    """
    tuples = [p for p in parameters if isinstance(p, str)]
    objects = name_objects([function], taken=reserved) if objects is None else objects
    writer = _Writer(function, [*reserved, *tuples], objects, spelling)
    writer.arrays, writer.in_thread = spelling.arrays if on_host else "np", in_thread
    return writer.run(parameters, unpack, result, doc)


class _Writer(SimpleStatements):
    def run(
        self, parameters: Sequence[str | Value], unpack: Sequence[tuple[Value, str]], result: str | None, doc: str
    ) -> Text:
        names = [p if isinstance(p, str) else self.names[p] for p in parameters]
        self.depth = 0
        self.line(f"def {self.function.name}({', '.join(names)}):")
        self.depth = 1
        if doc:
            self.line(f'"""{doc}"""')
        for value, text in unpack:
            self.line(f"{self.names[value]} = {text}")
        self.block(self.function.body)
        values = [self.expression(v) for v in self.function.body.yields]
        if result is not None:
            self.line(f"return {result.format(*values)}")
        elif values:
            self.line(f"return {', '.join(values)}")
        elif len(self.text.lines) == 1:
            self.line("pass")
        return self.text

    # -- statements --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        visible = [o for o in block.operations if not self.layout.is_inlined(o)]
        for k, operation in enumerate(visible):
            following = (o for o in visible[k + 1 :] if not self.layout.is_named_length(o))
            if isinstance(operation, Comment) and isinstance(next(following, None), Comment):
                self.reversing = self.reversing or operation.text == "reverse sweep"
                continue  # the section would be empty
            self.statement(operation)

    def nested(self, block: Block, moves: list[tuple[Value, Value]], last: Sequence[str] = ()) -> None:
        self.depth += 1
        start = len(self.text.lines)
        self.block(block)
        self.move(moves)
        for text in last:
            self.line(text)
        if len(self.text.lines) == start:
            self.line("pass")
        self.depth -= 1

    def move(self, moves: list[tuple[Value, Value]]) -> None:
        """Assign values to the variables of a branch or a loop, in one statement if one reads what another writes."""
        own, self.own = self.own, None
        pairs = []
        for target, source in moves:
            text, name = self.expression(source), self.names[target]
            if text != name:
                pairs.append((name, text, self.read(source)))
        names = [p[0] for p in pairs]
        clash = any(names[i] in pairs[j][2] for i in range(len(pairs)) for j in range(i + 1, len(pairs)))
        if clash:
            self.line(f"{', '.join(names)} = {', '.join(p[1] for p in pairs)}")
        else:
            self.inside, self.keeps = [], False
            for target, source in moves:
                self.assign_to(self.names[target], source)
        self.own = own

    def read(self, value: Value) -> set[str]:
        """The variables that an expression reads."""
        operation = self.layout.inlined.get(value)
        if operation is None:
            return {self.names[value]}
        return set().union(*(self.read(v) for v in operation.uses())) if operation.uses() else set()

    def assign_to(self, name: str, source: Value) -> None:
        """Write `name = source`, or nothing if both are the same variable."""
        operation = self.layout.inlined.get(source)
        if operation is not None:
            self.assign_formula(name, operation)
        elif self.names[source] != name:
            self.line(f"{name} = {self.names[source]}")

    def assign_formula(self, name: str, operation: Operation) -> None:
        """Write an assignment, and `x = x + y` as `x += y`."""
        if isinstance(operation, Apply) and operation.primitive in IN_PLACE:
            first, second = operation.args
            if first not in self.layout.inlined and self.names[first] == name:
                sign = IN_PLACE[self.turned(operation)[0]]
                self.line(f"{name} {sign} {self.expression(second)}")
                return
        self.line(f"{name} = {self.formula(operation)[0]}")

    def user_comments(self, operation: Operation) -> None:
        """Write the user's comments above the statement that they belong to."""
        for comment in self.comments_above(operation):
            self.line(comment)
        if operation.span is not None and not self.reversing:
            self.seen.add((operation.span.file, operation.span.line))

    def comments_above(self, operation: Operation) -> tuple[str, ...]:
        """The comments above a statement that have not been written yet."""
        span = operation.span
        return () if span is None or self.reversing or (span.file, span.line) in self.seen else tuple(span.comments)

    def mirrored(self, operation: Operation) -> str:
        """A comment in the reverse sweep that quotes the user's line, unless the last comment is the same."""
        if not self.reversing or operation.span is None or not operation.span.text:
            return ""
        if isinstance(operation, If) and operation.span.text.split()[0] in ("for", "while"):
            return ""  # the loop itself quotes it
        before, self.quoted = self.quoted, operation.span.text.strip()
        return f"  # {self.quoted}" if self.quoted != before else ""

    def statement(self, operation: Operation, keyword: str = "if") -> None:
        outer = self.own, self.around
        self.own, self.inside, self.keeps = operation.span, [], False
        if isinstance(operation, NewStack | Push | Pop):
            self.stacked = self.kept.get(operation.out if isinstance(operation, NewStack) else operation.stack)
        if operation.blocks():
            self.around = operation.span
        self.user_comments(operation)
        if isinstance(operation, If):
            self.branch(operation, keyword)
        else:
            self.write(operation)
        self.own, self.around, self.stacked = *outer, None

    def write(self, operation: Operation) -> None:
        self.comes_from(operation)
        match operation:
            case Apply() | Load() | Dim() | Const() | Coordinate():
                self.assign_formula(self.names[operation.out], operation)
            case Store():
                self.store(operation)
            case Alloc() if operation.workspace is not None:
                self.fit(operation, operation.workspace)
            case Copy() if operation.workspace is not None:
                self.text.support.add("copied")
                self.assign(
                    operation.out, f"copied({self.names_of(operation.array)}, {self.expression(operation.workspace)})"
                )
            case Alloc():
                self.assign(operation.out, self.alloc(operation))
            case Copy() if self.arrays != "np":
                self.assign(operation.out, f"{self.arrays}.copy({self.names_of(operation.array)})")
            case Copy():
                self.assign(operation.out, f"{self.names_of(operation.array)}.copy()")
            case BlockSum():
                self.text.support.add("block_sum")
                self.assign(operation.out, f"block_sum({self.expression(operation.value)})")
            case Enlarge():
                self.enlarge(operation)
            case View() if self.arrays != "np" and any(isinstance(i, NewAxis) for i in operation.items):
                items = ", ".join(self.item(i) for i in operation.items)
                self.assign(operation.out, f"{self.arrays}.view({self.names_of(operation.array)}, np.s_[{items}])")
            case View():
                items = ", ".join(self.item(i) for i in operation.items)
                items += ", ..." if operation.out.array.rank == 0 else ""  # a view of one element, and not the element
                self.assign(operation.out, f"{self.names_of(operation.array)}[{items}]")
            case Transpose():
                self.assign(operation.out, self.transpose(operation))
            case Reshape():
                shape = ", ".join(self.expression(s) for s in operation.shape)
                self.assign(operation.out, f"{self.names_of(operation.array)}.reshape({shape})")
            case Part():
                self.assign(operation.out, f"{self.names_of(operation.array)}.{operation.part}")
            case Library():
                self.library(operation)
            case Grow() if self.arrays != "np":
                array, size = self.names_of(operation.array), self.expression(operation.size)
                self.assign(operation.out, f"{self.arrays}.grown({array}, {size}, {operation.axis})")
            case Grow():
                name = what_grows(operation.array.array.rank, operation.axis)
                self.text.support.add(name)
                array, size = self.names_of(operation.array), self.expression(operation.size)
                self.assign(operation.out, f"{name}({array}, {size})")
            case Loop():
                self.loop(operation)
            case Custom():
                self.custom(operation)
            case Call():
                outs = ", ".join(self.names[v] for v in operation.outs)
                args = ", ".join(self.expression(a) for a in operation.args)
                target = f"{outs}{',' if len(operation.outs) == 1 else ''} = " if outs else ""
                self.line(f"{target}{operation.function}{self.launch(operation)}({args})")
            case Barrier():
                self.line(self.spelling.barrier)
            case Raise():
                self.raise_(operation)
            case Print():
                self.print(operation)
            case Peek():
                index = self.expression(operation.index)
                self.assign(operation.out, f"{self.names[operation.stack]}[{index}]")
            case NewStack() | Push() | Pop():
                self.stack(operation)
            case Comment():
                self.reversing = self.reversing or operation.text == "reverse sweep"
                self.line(f"# {operation.text}")
            case _:
                raise AssertionError(operation)

    def branch(self, operation: If, keyword: str = "if") -> None:
        condition = self.expression(operation.condition)
        then = list(zip(operation.outs, operation.then.yields, strict=True))
        orelse = list(zip(operation.outs, operation.orelse.yields, strict=True))
        then_empty, else_empty = self.is_empty(operation.then, then), self.is_empty(operation.orelse, orelse)
        if then_empty and not else_empty:
            self.line(f"{keyword} {self.negated(operation.condition)}:{self.mirrored(operation)}")
            self.nested(operation.orelse, orelse)
            return
        self.line(f"{keyword} {condition}:{self.mirrored(operation)}")
        self.nested(operation.then, then)
        further = self.only_branch(operation.orelse, orelse)
        if further is not None:
            self.statement(further, "elif")
        elif not else_empty:
            self.line("else:")
            self.nested(operation.orelse, orelse)

    def only_branch(self, block: Block, moves: list[tuple[Value, Value]]) -> If | None:
        """The branch that is the only statement of a block, if there is no comment above it."""
        visible = [o for o in block.operations if not self.layout.is_inlined(o)]
        if len(visible) != 1 or not isinstance(visible[0], If) or self.comments_above(visible[0]):
            return None
        is_all = all(s not in self.layout.inlined and self.names[s] == self.names[t] for t, s in moves)
        return visible[0] if is_all else None

    def is_empty(self, block: Block, moves: list[tuple[Value, Value]]) -> bool:
        visible = [o for o in block.operations if not self.layout.is_inlined(o)]
        if visible:
            return False
        noted = list(self.inside), self.keeps
        idle = all(self.expression(source) == self.names[target] for target, source in moves)
        self.inside, self.keeps = noted  # these expressions are not written
        return idle

    def loop(self, operation: Loop) -> None:
        self.move(list(zip(operation.params, operation.inits, strict=True)))
        last = []
        if operation.count is not None:
            self.line(f"{self.names[operation.count]} = 0")
            last.append(f"{self.names[operation.count]} += 1")
        # the last value of the body may be the condition to leave the loop
        moves = list(zip(operation.params, operation.body.yields, strict=False))
        if operation.leaves:
            stop = operation.body.yields[-1]
            last += [] if self.is_false(stop) else [f"if {self.expression(stop)}:", "    break"]
            self.inside = []
        if operation.bounds is not None:
            index = operation.index
            name = self.names[index] if index in self.layout.used and index is not None else "_"
            whole = self.counted_down(operation.bounds) if name == "_" else None
            over = self.range(operation.bounds) if whole is None else f"range({self.expression(whole)})"
            over = f"p{over}" if operation.threads else over
            self.line(f"for {name} in {over}:{self.mirrored(operation)}")
        elif operation.test is not None and self.is_empty(operation.test, []):
            self.line(f"while {self.expression(operation.test.yields[0])}:")
        else:
            self.line("while True:")
            if operation.test is not None:
                self.depth += 1
                self.block(operation.test)
                self.line(f"if {self.negated(operation.test.yields[0])}:")
                self.line("    break")
                self.depth -= 1
        self.nested(operation.body, moves, last)
        self.move(list(zip(operation.outs, operation.params, strict=True)))

    def counted_down(self, bounds: Sequence[Value]) -> Value | None:
        """The `n` in `range(n - 1, -1, -1)`."""
        first, stop, step = (self.layout.inlined.get(b) for b in bounds)
        if not isinstance(first, Apply) or first.primitive != "subtract" or first.args[1] not in self.layout.inlined:
            return None
        one = self.layout.inlined[first.args[1]]
        values = [o.value if isinstance(o, Const) else None for o in (one, stop, step)]
        return first.args[0] if values == [1, -1, -1] else None

    def custom(self, operation: Custom) -> None:
        self.move(list(zip(operation.params, operation.args, strict=True)))
        self.block(operation.body)
        self.move(list(zip(operation.outs, operation.body.yields, strict=True)))
